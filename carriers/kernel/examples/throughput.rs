//! What of CUBIC's throughput a flow has with each control: as root, with `ip` (iproute2),
//! `cargo run --release -p ranpace-kernel --features bpf --example throughput [CONTROL ...]`.
//!
//! One flow from the first processor to the second, between two network namespaces, as fast as they carry it. Runs with the kernel's
//! CUBIC and with the control take turns, and each run of the control is compared with the two of CUBIC around it, so that what
//! changes slowly on the machine changes nothing. The median of these ratios is printed, with an interval that has the
//! true one in 95 of 100 benchmarks (by the ranks of the ratios). On a machine that does other work the interval is wide.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where it cannot go on"
)]

#[cfg(all(target_os = "linux", feature = "bpf"))]
#[allow(dead_code, reason = "each benchmark uses some of it")]
mod rig;

#[cfg(all(target_os = "linux", feature = "bpf"))]
mod throughput {
    use std::time::Duration;

    use super::rig::{Receiver, Spaces, Used, controls};

    /// Runs of each control.
    const ROUNDS: usize = 21;
    /// Length of a run.
    const TIME: Duration = Duration::from_millis(1300);
    /// Ports of CUBIC's receiver and the control's.
    const PORTS: [u16; 2] = [5201, 5202];
    /// Processors of sender and receiver.
    const CPUS: [Option<usize>; 2] = [Some(0), Some(1)];
    /// The least share of CUBIC's throughput that a control is to have, or of [`ENOUGH`].
    const AIM: f64 = 0.97;
    /// Gbit/s.
    const ENOUGH: f64 = 10.0;

    fn median(values: &[f64]) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[half] } else { sorted[half - 1].midpoint(sorted[half]) }
    }

    /// The interval between ranks that has the true median with a probability of at least 95 %: of so many values, each is below it as
    /// often as not.
    fn interval(values: &[f64]) -> (f64, f64) {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        // Probabilities that none, one, two ... are below.
        let (mut rank, mut probability, mut below) = (0, 0.5_f64.powi(n as i32), 0.0);
        while below + probability <= 0.025 {
            below += probability;
            rank += 1;
            probability *= (n - rank + 1) as f64 / rank as f64;
        }
        let rank = rank.max(1) - 1;
        (sorted[rank], sorted[n - 1 - rank])
    }

    pub fn main() {
        let texts = controls();
        let _spaces = Spaces::new();
        println!(
            "{:18} {:>13} {:>8} {:>8} {:>16}",
            "control", "CUBIC, Gbit/s", "control", "ratio", "95 % interval"
        );
        for text in texts {
            let (plain, used) = (Used::new("cubic"), Used::new(&text));
            let mut receivers = ["cubic", &text]
                .into_iter()
                .zip(PORTS)
                .map(|(text, port)| Receiver::new(text, port, CPUS[1]));
            let (mut of_cubic, mut of_control) = (receivers.next().unwrap(), receivers.next().unwrap());
            let mut cubic = vec![of_cubic.throughput(&plain, TIME, CPUS[0])];
            let (mut own, mut ratios) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                own.push(of_control.throughput(&used, TIME, CPUS[0]));
                cubic.push(of_cubic.throughput(&plain, TIME, CPUS[0]));
                let around = &cubic[cubic.len() - 2..];
                ratios.push(own[own.len() - 1] / around[0].midpoint(around[1]));
            }
            of_cubic.end();
            of_control.end();
            let (low, high) = interval(&ratios);
            let (cubic, own, ratio) = (median(&cubic), median(&own), median(&ratios));
            let enough = ratio >= AIM || own >= AIM * ENOUGH;
            println!(
                "{text:18} {cubic:>13.1} {own:>8.1} {ratio:>8.3} {:>16}{}",
                format!("{low:.3} to {high:.3}"),
                if enough { "" } else { "  below the aim" }
            );
        }
    }
}

#[cfg(all(target_os = "linux", feature = "bpf"))]
fn main() {
    throughput::main();
}

#[cfg(not(all(target_os = "linux", feature = "bpf")))]
fn main() {
    println!("needs Linux and --features bpf");
}
