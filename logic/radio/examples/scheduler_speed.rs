//! The cost of dividing a slot: `cargo run --release -p ranpace-radio --example scheduler_speed` prints it.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use ranpace_radio::scheduler::{Alloc, Candidate, Channel, Policy, Scheduler, Units};

/// The bits that each unit carries for each candidate, in rows of 32.
struct Table {
    bits: Vec<f32>,
    wideband: bool,
}

impl Channel for Table {
    fn unit_bits(&self, candidate: usize, unit: u32) -> f32 {
        self.bits[candidate * 32 + if self.wideband { 0 } else { unit as usize }]
    }
    fn block_bytes(&self, candidate: usize, units: Units) -> u32 {
        match (self.wideband, units.lowest()) {
            (false, Some(unit)) => self.unit_bits(candidate, unit) as u32 * units.count() / 8,
            _ => self.unit_bits(candidate, 0) as u32 * units.count() / 8,
        }
    }
    fn unit_bits_of(&self, candidate: usize, bits: &mut [f32]) {
        match self.wideband {
            true => bits.fill(self.bits[candidate * 32]),
            false => bits.copy_from_slice(&self.bits[candidate * 32..][..bits.len()]),
        }
    }
}

/// Nanoseconds per slot, the best of several tries, since other programs may be running.
fn play(
    policy: Policy,
    alloc: Alloc,
    symbols: bool,
    users: u32,
    units: u32,
    wideband: bool,
    wanted: u32,
) -> f64 {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        100.0 * (1 + (state >> 60)) as f32
    };
    let table = Table { bits: (0..users * 32).map(|_| random()).collect(), wideband };
    let candidates: Vec<Candidate> = (0..users).map(|user| Candidate { user, wanted }).collect();
    let mut scheduler = Scheduler::new(policy, alloc, symbols);
    let (mut grants, mut best) = (Vec::new(), f64::MAX);
    let slots = u64::from(1_000_000 / users / units).max(100);
    for part in 0..12 {
        let begin = Instant::now();
        for tti in part * slots..(part + 1) * slots {
            grants.clear();
            scheduler.allocate(tti, &candidates, &table, Units::first(units), &mut grants);
            for grant in &grants {
                let bytes = table.block_bytes(grant.candidate, grant.units);
                scheduler.on_sent(tti, candidates[grant.candidate].user, bytes * 8);
            }
        }
        best = best.min(begin.elapsed().as_secs_f64() * 1e9 / slots as f64);
    }
    best
}

fn main() {
    println!(
        "ns per slot, with what follows on it; buffers that are full, and of 100 bytes: a unit or a few"
    );
    println!("{:>34} {:>9} {:>9} {:>9} {:>9}", "candidates:", 1, 10, 100, 1000);
    let policies =
        [("PF", Policy::PROPORTIONAL_FAIR), ("max C/I", Policy::MaxCi), ("round robin", Policy::RoundRobin)];
    for (name, policy) in policies {
        for (what, symbols, units, wideband) in
            [("25 units", false, 25, false), ("25 alike", false, 25, true), ("23 symbols", true, 23, true)]
        {
            for (how, alloc, wanted) in
                [("full", Alloc::Full, 100), ("queue", Alloc::Queue, 1_000_000), ("small", Alloc::Queue, 100)]
            {
                print!("{:>34}", format!("{name}, {what}, {how}"));
                for users in [1, 10, 100, 1000] {
                    print!(" {:>9.0}", play(policy, alloc, symbols, users, units, wideband, wanted));
                }
                println!();
            }
        }
    }
}
