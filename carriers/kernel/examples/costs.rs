//! What each program of a control costs a call, and what throughput over loopback is left: as root,
//! `cargo run --release -p ranpace-kernel --features bpf --example costs`.
//!
//! The kernel's own accounting (`kernel.bpf_stats_enabled`) is counted in each call; the cheapest program, `driven_min_tso_segs`, which
//! reads one field and compares it, shows what that takes, and is taken off in the last column.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where it cannot go on"
)]

#[cfg(all(target_os = "linux", feature = "bpf"))]
mod costs {
    use std::collections::BTreeMap;
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread;
    use std::time::{Duration, Instant};

    use libbpf_rs::query::ProgInfoIter;
    use ranpace_kernel::{Cgroup, Control, KINDS, Loaded};

    const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";
    /// How long each control sends.
    const TIME: Duration = Duration::from_secs(3);
    /// What is taken off as the cost of counting.
    const CHEAPEST: &str = "driven_min_tso_";

    /// Sends over loopback for [`TIME`]; Gbit/s.
    fn throughput() -> f64 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut received, mut buffer, begun) = (0_usize, vec![0; 1 << 18], Instant::now());
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => return received as f64 * 8e-9 / begun.elapsed().as_secs_f64(),
                    n => received += n,
                }
            }
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let (chunk, begun) = (vec![1; 1 << 18], Instant::now());
        while begun.elapsed() < TIME {
            stream.write_all(&chunk).unwrap();
        }
        drop(stream);
        receiver.join().unwrap()
    }

    /// Calls and nanoseconds of each program by name.
    fn programs() -> BTreeMap<String, (u64, u64)> {
        let mut found = BTreeMap::new();
        for program in ProgInfoIter::default() {
            let of: &mut (u64, u64) = found.entry(program.name.to_string_lossy().into_owned()).or_default();
            of.0 += program.run_cnt;
            of.1 += program.run_time_ns;
        }
        found
    }

    pub fn main() {
        let plain = throughput();
        println!("the default control, without a program: {plain:.1} Gbit/s");
        let before = fs::read_to_string(STATS).unwrap();
        let mut rows = Vec::new();
        for kind in KINDS {
            let loaded = Loaded::unnamed(&Control::parse(kind.name).unwrap()).unwrap();
            let cgroup = Cgroup::new().unwrap();
            let attachment = loaded.attach(cgroup.path(), None).unwrap();
            cgroup.enter().unwrap();
            let without = throughput();
            fs::write(STATS, "1").unwrap();
            let old = programs();
            throughput();
            fs::write(STATS, before.trim()).unwrap();
            println!("{}: {without:.1} Gbit/s", kind.name);
            for (name, (calls, ns)) in programs() {
                let (old_calls, old_ns) = old.get(&name).copied().unwrap_or_default();
                if calls > old_calls + 100 {
                    rows.push((
                        kind.name,
                        name,
                        calls - old_calls,
                        (ns - old_ns) as f64 / (calls - old_calls) as f64,
                    ));
                }
            }
            cgroup.leave().unwrap();
            drop(attachment);
        }
        let off =
            rows.iter().filter(|row| row.1.starts_with(CHEAPEST)).map(|row| row.3).fold(f64::MAX, f64::min);
        println!("\n{:16} {:18} {:>10} {:>8} {:>12}", "control", "program", "calls", "ns", "less counting");
        for (control, program, calls, ns) in rows {
            println!("{control:16} {program:18} {calls:>10} {ns:>8.0} {:>12.0}", (ns - off).max(0.0));
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
