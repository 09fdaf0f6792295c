//! How long each control takes to load: as root, `cargo run --release -p ranpace-kernel --features bpf --example loading [CONTROL ...]`.
//!
//! Each is loaded, registered and removed [`loading::TIMES`] times, all of them in turn. Most of the time is the verifier's, whose
//! work is the number of instructions that it reads.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where it cannot go on"
)]

#[cfg(all(target_os = "linux", feature = "bpf"))]
mod loading {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::{Duration, Instant};

    use libbpf_rs::query::ProgInfoIter;
    use ranpace_kernel::{Control, KINDS, Loaded};

    /// Loads of each control.
    pub const TIMES: usize = 20;
    /// What a load is to take at most.
    const AIM: Duration = Duration::from_millis(100);

    /// Instructions that the verifier has read, by the numbers of programs.
    fn read() -> BTreeMap<u32, u32> {
        ProgInfoIter::default().map(|program| (program.id, program.verified_insns)).collect()
    }

    pub fn main() {
        let mut texts: Vec<String> = std::env::args().skip(1).collect();
        if texts.is_empty() {
            texts = KINDS.iter().map(|kind| kind.name.to_owned()).collect();
        }
        let (mut times, mut instructions) = (BTreeMap::<&str, Vec<Duration>>::new(), BTreeMap::new());
        for _ in 0..TIMES {
            for text in &texts {
                let control = Control::parse(text).unwrap();
                let before: BTreeSet<u32> = read().into_keys().collect();
                let begun = Instant::now();
                let loaded = Loaded::unnamed(&control).unwrap();
                times.entry(text).or_default().push(begun.elapsed());
                let new = read().into_iter().filter(|(id, _)| !before.contains(id));
                instructions.insert(text.as_str(), new.map(|(_, read)| u64::from(read)).sum::<u64>());
                drop(loaded);
            }
        }
        println!("{:18} {:>12} {:>9} {:>9} {:>9}", "control", "instructions", "least, ms", "median", "most");
        for (text, mut times) in times {
            times.sort();
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            let median = times[times.len() / 2];
            println!(
                "{text:18} {:>12} {:>9.1} {:>9.1} {:>9.1}{}",
                instructions[text],
                ms(times[0]),
                ms(median),
                ms(times[times.len() - 1]),
                if median > AIM { "  over the aim of 100 ms" } else { "" }
            );
        }
    }
}

#[cfg(all(target_os = "linux", feature = "bpf"))]
fn main() {
    loading::main();
}

#[cfg(not(all(target_os = "linux", feature = "bpf")))]
fn main() {
    println!("needs Linux and --features bpf");
}
