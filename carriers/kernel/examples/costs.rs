//! What each program of a control costs a call: as root, with `ip` (iproute2),
//! `cargo run --release -p ranpace-kernel --features bpf --example costs [CONTROL ...]`.
//!
//! A sender and a receiver in two network namespaces, each with the control and its own control group, and as many acknowledgements as
//! can be. The kernel's own
//! accounting (`kernel.bpf_stats_enabled`) is counted in each call: what a program of the same kind costs that does nothing
//! (bpf/empty.bpf.c; for congestion controls one that only calls the kernel's CUBIC) is taken off in the last column. The lowest of
//! [`costs::ROUNDS`] runs counts: other work on the machine only adds.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where it cannot go on"
)]

#[cfg(all(target_os = "linux", feature = "bpf"))]
#[allow(dead_code, reason = "each benchmark uses some of it")]
mod rig;

#[cfg(all(target_os = "linux", feature = "bpf"))]
mod costs {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::time::Duration;

    use libbpf_rs::query::ProgInfoIter;

    use super::rig::{Receiver, Spaces, Used, controls};

    const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";
    /// How long each control sends, in each round.
    const TIME: Duration = Duration::from_secs(2);
    /// Rounds, all controls in each.
    const ROUNDS: usize = 3;
    const PORT: u16 = 5201;

    /// Name, calls and nanoseconds of each program by its number.
    fn programs() -> BTreeMap<u32, (String, u64, u64)> {
        let of = |program: libbpf_rs::query::ProgramInfo| {
            (program.id, (program.name.to_string_lossy().into_owned(), program.run_cnt, program.run_time_ns))
        };
        ProgInfoIter::default().map(of).collect()
    }

    /// Nanoseconds of a call and calls, by end (`sender`, `receiver`) and program.
    type Costs = BTreeMap<(&'static str, String), (f64, u64)>;

    fn run(text: &str) -> Costs {
        let before: BTreeSet<u32> = programs().into_keys().collect();
        let used = Used::new(text);
        let own: BTreeSet<u32> = programs().into_keys().collect();
        let mut receiver = Receiver::new(text, PORT, None);
        let setting = fs::read_to_string(STATS).unwrap();
        fs::write(STATS, "1").unwrap();
        let old = programs();
        receiver.throughput(&used, TIME, None);
        let new = programs();
        fs::write(STATS, setting.trim()).unwrap();
        let mut costs = BTreeMap::new();
        for (id, (name, calls, ns)) in new {
            let (_, old_calls, old_ns) = old.get(&id).cloned().unwrap_or_default();
            if !before.contains(&id) && calls > old_calls + 1000 {
                let end = if own.contains(&id) { "sender" } else { "receiver" };
                let calls = calls - old_calls;
                costs.insert((end, name), ((ns - old_ns) as f64 / calls as f64, calls));
            }
        }
        receiver.end();
        costs
    }

    /// The empty program that is taken off.
    fn empty_of(program: &str) -> Option<(&'static str, &'static str)> {
        let (_, operation) = program.split_once('_').unwrap_or(("", program));
        Some(match operation {
            "acked" => ("over_cubic", "empty_acked"),
            "cong_avoi" | "cong_avoid" => ("over_cubic", "empty_cong_avoi"),
            "cong_con" | "cong_contro" | "cong_control" => ("nothing", "empty_cong_cont"),
            "cwnd_event" | "cwnd_even" | "cwnd_eve" => ("over_cubic", "empty_cwnd_even"),
            "min_tso_" | "min_tso_segs" => ("over_cubic", "empty_min_tso_s"),
            "choose" => ("over_cubic", "empty_sock_ops"),
            "arrive" => ("over_cubic", "empty_ingress"),
            _ => return None,
        })
    }

    pub fn main() {
        let texts = [vec!["over_cubic".to_owned(), "nothing".to_owned()], controls()].concat();
        let spaces = Spaces::new();
        spaces.acknowledge_each();
        let mut runs: BTreeMap<String, Vec<Costs>> = BTreeMap::new();
        for _ in 0..ROUNDS {
            for text in &texts {
                runs.entry(text.clone()).or_default().push(run(text));
            }
        }
        let lowest = |text: &str, end: &'static str, program: &str| {
            let found = runs.get(text)?.iter().filter_map(|costs| costs.get(&(end, program.to_owned())));
            found.copied().min_by(|a, b| a.0.total_cmp(&b.0))
        };
        println!(
            "{:16} {:8} {:18} {:>10} {:>8} {:>16}",
            "control", "end", "program", "calls", "ns", "less an empty one"
        );
        for text in &texts {
            let names: BTreeSet<_> = runs[text].iter().flat_map(|costs| costs.keys().cloned()).collect();
            for (end, program) in names {
                let Some((ns, calls)) = lowest(text, end, &program) else { continue };
                let empty = empty_of(&program).and_then(|(text, empty)| lowest(text, end, empty));
                let less = empty.map_or_else(|| "-".to_owned(), |(empty, _)| format!("{:.0}", ns - empty));
                println!("{text:16} {end:8} {program:18} {calls:>10} {ns:>8.0} {less:>16}");
            }
        }
    }
}

#[cfg(all(target_os = "linux", feature = "bpf"))]
fn main() {
    costs::main();
}

#[cfg(not(all(target_os = "linux", feature = "bpf")))]
fn main() {
    println!("needs Linux and --features bpf");
}
