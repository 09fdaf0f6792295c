//! Properties of all schedulers, and the shares that they give.

use proptest::prelude::*;

use super::*;

const POLICIES: [Policy; 3] = [Policy::PROPORTIONAL_FAIR, Policy::RoundRobin, Policy::MaxCi];

/// Bits of each unit for each candidate; a block has the sum of its units.
struct Table {
    bits: Vec<Vec<f32>>,
    /// Whether a block has the rate of its worst unit, as in ns-3.
    worst: bool,
    /// Whether all units equal the first.
    alike: bool,
}

impl Table {
    /// A user per entry of `bits`, with equal units of these bits; the last unit has half.
    fn flat(bits: &[f32], units: u32) -> Self {
        let row = |&bits| (1..=units).map(|unit| if unit == units { bits / 2.0 } else { bits }).collect();
        Self { bits: bits.iter().map(row).collect(), worst: false, alike: false }
    }
}

impl Channel for Table {
    fn unit_bits(&self, candidate: usize, unit: u32) -> f32 {
        self.bits[candidate][if self.alike { 0 } else { unit as usize }]
    }
    fn block_bytes(&self, candidate: usize, units: Units) -> u32 {
        let bits = units.iter().map(|unit| self.unit_bits(candidate, unit));
        let sum: f32 = match self.worst {
            true => units.count() as f32 * bits.fold(f32::MAX, f32::min),
            false => bits.sum(),
        };
        (sum / 8.0) as u32
    }
}

/// Total bits and units of users 0, 1, ... in `slots` slots; `wanted` gives what a user wants in a slot.
fn play(
    scheduler: &mut Scheduler,
    table: &Table,
    wanted: impl Fn(u64, u32) -> u32,
    units: u32,
    slots: u64,
) -> Vec<(f64, u64)> {
    let mut sums = vec![(0.0, 0); table.bits.len()];
    let mut grants = Vec::new();
    for tti in 0..slots {
        let all = (0..table.bits.len() as u32).map(|user| Candidate { user, wanted: wanted(tti, user) });
        let candidates: Vec<Candidate> = all.collect();
        grants.clear();
        scheduler.allocate(tti, &candidates, table, Units::first(units), &mut grants);
        for grant in &grants {
            let bits = table.block_bytes(grant.candidate, grant.units) * 8;
            scheduler.on_sent(tti, grant.candidate as u32, bits);
            sums[grant.candidate].0 += f64::from(bits);
            sums[grant.candidate].1 += u64::from(grant.units.count());
        }
    }
    sums
}

const MUCH: u32 = 1_000_000;

#[test]
fn two_full_buffers_have_half_each() {
    // Radio-model, test P-9. 13 groups of 25 PRBs, the last with one; 8 of 15; 25; 24 symbols and 23.
    for (units, alike) in [(13, false), (8, false), (25, false), (17, false), (24, true), (23, true)] {
        for policy in [Policy::RoundRobin, Policy::PROPORTIONAL_FAIR] {
            for alloc in [Alloc::Queue, Alloc::Full] {
                let table = Table { alike, ..Table::flat(&[720.0; 2], units) };
                let mut scheduler = Scheduler::new(policy, alloc, alike);
                let sums = play(&mut scheduler, &table, |_, _| MUCH, units, 1000);
                for (bits, count) in &sums {
                    let total: f64 = sums.iter().map(|sum| sum.0).sum();
                    assert!((bits / total - 0.5).abs() < 0.005, "{policy:?} {units}: {sums:?}");
                    let share = *count as f64 / 1000.0 / f64::from(units);
                    assert!((share - 0.5).abs() < 0.005, "{policy:?} {units}: {sums:?}");
                }
            }
        }
    }
}

#[test]
fn units_that_a_small_source_leaves_go_to_others() {
    // Radio-model, test P-9: 125 bytes in each TTI (1 Mbit/s) need two units of 90 bytes.
    for policy in [Policy::RoundRobin, Policy::PROPORTIONAL_FAIR] {
        for alike in [false, true] {
            let table = Table { alike, ..Table::flat(&[720.0; 2], 13) };
            let mut scheduler = Scheduler::new(policy, Alloc::Queue, alike);
            let wanted = |_, user| if user == 0 { 125 } else { MUCH };
            let sums = play(&mut scheduler, &table, wanted, 13, 1000);
            assert_eq!(sums[0].1 + sums[1].1, 13_000, "{policy:?}");
            assert!((1900..2100).contains(&sums[0].1), "{policy:?}: {sums:?}");
        }
    }
}

#[test]
fn round_robin_turns_when_there_are_more_users_than_units() {
    // Numbers of users and units that divide evenly, and that do not; the last unit has half.
    for (users, units) in [(26, 13), (25, 13), (100, 25), (24, 12), (40, 13), (14, 13), (7, 13), (6, 8)] {
        let table = Table::flat(&vec![720.0; users], units);
        let slots = 200 * users as u64;
        let sums = play(
            &mut Scheduler::new(Policy::RoundRobin, Alloc::Full, false),
            &table,
            |_, _| MUCH,
            units,
            slots,
        );
        let (bits, count): (f64, u64) = sums.iter().fold((0.0, 0), |all, sum| (all.0 + sum.0, all.1 + sum.1));
        assert_eq!(count, slots * u64::from(units));
        for sum in &sums {
            assert!(
                sum.1.abs_diff(slots * u64::from(units) / users as u64) <= 1,
                "{users} {units}: {sums:?}"
            );
            assert!((sum.0 * users as f64 / bits - 1.0).abs() < 0.01, "{users} {units}: {sums:?}");
        }
    }
}

#[test]
fn symbols_of_round_robin_are_runs_in_turn() {
    let table = Table { alike: true, ..Table::flat(&[4000.0; 3], 24) };
    let mut scheduler = Scheduler::new(Policy::RoundRobin, Alloc::Queue, true);
    let candidates = [(0, MUCH), (1, 1500), (2, MUCH)].map(|(user, wanted)| Candidate { user, wanted });
    let mut grants = Vec::new();
    scheduler.allocate(0, &candidates, &table, Units::first(24).minus(Units::first(1)), &mut grants);
    // 1500 bytes need three symbols of 500; the other 20 of 23 are split between two.
    let runs: Vec<_> = grants.iter().map(|grant| (grant.units.lowest(), grant.units.count())).collect();
    assert_eq!(runs, [(Some(1), 10), (Some(11), 3), (Some(14), 10)]);
}

#[test]
fn proportional_fair_shares_time_equally_under_fading() {
    // Users with independently varying channels, one of them three times as good: equal time.
    let mut scheduler = Scheduler::new(Policy::PROPORTIONAL_FAIR, Alloc::Full, false);
    let (mut counts, mut bits) = ([0u64; 5], [0.0f64; 5]);
    let (mut state, mut grants) = (1u64, Vec::new());
    for tti in 0..20_000 {
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / 16_777_216.0
        };
        let scale = |user| if user == 0 { 3.0 } else { 1.0 };
        let row = |user: u32| (0..25).map(|_| scale(user) * (200.0 + 500.0 * random())).collect();
        let table = Table { bits: (0..5).map(row).collect(), worst: false, alike: false };
        grants.clear();
        let candidates: Vec<_> = (0..5).map(|user| Candidate { user, wanted: MUCH }).collect();
        scheduler.allocate(tti, &candidates, &table, Units::first(25), &mut grants);
        for grant in &grants {
            let sent = table.block_bytes(grant.candidate, grant.units) * 8;
            scheduler.on_sent(tti, grant.candidate as u32, sent);
            counts[grant.candidate] += u64::from(grant.units.count());
            bits[grant.candidate] += f64::from(sent);
        }
    }
    for user in 0..5 {
        let share = counts[user] as f64 / (25.0 * 20_000.0);
        assert!((share / 0.2 - 1.0).abs() < 0.05, "{counts:?}");
        // The mean of a unit is 450 bits; a user that is served when its channel is good gets more.
        let scale = if user == 0 { 3.0 } else { 1.0 };
        assert!(bits[user] / counts[user] as f64 / scale > 550.0, "{bits:?}");
    }
}

#[test]
fn maximum_ci_serves_the_best_and_equals_in_turn() {
    let mut scheduler = Scheduler::new(Policy::MaxCi, Alloc::Full, false);
    let sums = play(&mut scheduler, &Table::flat(&[500.0, 720.0, 720.0, 710.0], 13), |_, _| MUCH, 13, 100);
    assert_eq!(sums.iter().map(|sum| sum.1).collect::<Vec<_>>(), [0, 650, 650, 0]);
    // With Alloc::Queue, the next best gets what the best leaves.
    let mut scheduler = Scheduler::new(Policy::MaxCi, Alloc::Queue, false);
    let sums = play(&mut scheduler, &Table::flat(&[500.0, 720.0, 700.0, 710.0], 13), |_, _| 450, 13, 100);
    // 450 bytes need 5 units of 90, or 6 of 88.75; two are left for the next.
    assert_eq!(sums.iter().map(|sum| sum.1).collect::<Vec<_>>(), [0, 500, 200, 600]);
}

#[test]
fn a_newcomer_under_proportional_fair_is_served_first() {
    let mut scheduler = Scheduler::new(Policy::PROPORTIONAL_FAIR, Alloc::Full, false);
    let table = Table::flat(&[720.0, 100.0], 13);
    play(&mut scheduler, &table, |_, user| if user == 0 { MUCH } else { 0 }, 13, 500);
    assert!((scheduler.average(500, 0) / 9000.0 - 1.0).abs() < 0.01);
    let candidates = [0, 1].map(|user| Candidate { user, wanted: MUCH });
    for (forgotten, expected) in [(9, 1), (0, 0)] {
        scheduler.forget(forgotten);
        let mut grants = Vec::new();
        scheduler.allocate(500, &candidates, &table, Units::first(13), &mut grants);
        assert_eq!(grants, [Grant { candidate: expected, units: Units::first(13) }]);
    }
}

proptest! {
    /// Whatever the channel: grants are disjoint, within the free units, non-empty, at most one per candidate. With
    /// Alloc::Queue, nobody has a unit more than it needs, and free units are useless to everybody who wants more. Without,
    /// no useful unit stays free.
    #[test]
    fn granted_units_are_free_wanted_and_useful(
        policy in prop::sample::select(POLICIES.to_vec()),
        alloc in prop::sample::select(vec![Alloc::Queue, Alloc::Full]),
        alike in any::<bool>(),
        worst in any::<bool>(),
        slots in prop::collection::vec(
            (0..150u64, prop::collection::btree_map(0..200u32, prop_oneof![1..2000u32, Just(MUCH)], 0..40), any::<u128>(), 0..=128u32),
            1..8,
        ),
        seed in any::<u64>(),
    ) {
        let mut scheduler = Scheduler::new(policy, alloc, alike);
        let (mut tti, mut state) = (0, seed);
        for (wait, users, mask, width) in slots {
            tti += wait;
            let candidates: Vec<Candidate> =
                users.into_iter().map(|(user, wanted)| Candidate { user, wanted }).collect();
            let free: Units = Units::first(width).iter().filter(|unit| mask >> unit & 1 == 1).collect();
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Few distinct rates, so that some are equal, including zero.
                (state >> 61) as f32 * 100.0
            };
            let bits = candidates.iter().map(|_| (0..128).map(|_| random()).collect()).collect();
            let table = Table { bits, worst, alike };
            let marker = Grant { candidate: 999, units: Units::NONE };
            let mut grants = vec![marker];
            scheduler.allocate(tti, &candidates, &table, free, &mut grants);
            prop_assert_eq!(grants.remove(0), marker);

            let mut left = free;
            let mut holds = vec![Units::NONE; candidates.len()];
            for grant in &grants {
                prop_assert!(!grant.units.is_empty());
                prop_assert_eq!(grant.units.minus(left), Units::NONE);
                prop_assert!(holds[grant.candidate].is_empty());
                prop_assert!(grant.units.iter().all(|unit| table.unit_bits(grant.candidate, unit) > 0.0));
                left = left.minus(grant.units);
                holds[grant.candidate] = grant.units;
                scheduler.on_sent(tti, candidates[grant.candidate].user, table.block_bytes(grant.candidate, grant.units) * 8);
            }
            for (index, candidate) in candidates.iter().enumerate() {
                let sated = alloc == Alloc::Queue && table.block_bytes(index, holds[index]) >= candidate.wanted;
                let useful = left.iter().any(|unit| table.unit_bits(index, unit) > 0.0);
                prop_assert!(sated || !useful, "{:?} {:?} {:?}", candidate, holds[index], left);
                if alloc == Alloc::Queue && !holds[index].is_empty() {
                    // The order in which units were added is unknown, but without one of them the block was too small.
                    let enough = |unit| table.block_bytes(index, holds[index].minus(Units::of(unit))) >= candidate.wanted;
                    prop_assert!(!holds[index].iter().all(enough), "{:?} {:?}", candidate, holds[index]);
                }
            }
        }
    }

    /// Grants do not depend on the previous content of scratch buffers.
    #[test]
    fn a_slot_is_divided_alike_by_a_scheduler_that_is_warm(
        policy in prop::sample::select(POLICIES.to_vec()),
        alloc in prop::sample::select(vec![Alloc::Queue, Alloc::Full]),
        users in 1..60usize,
        others in 1..60usize,
    ) {
        let mut warm = Scheduler::new(policy, alloc, false);
        let mut grants = Vec::new();
        let all = |n: usize| (0..n as u32).map(|user| Candidate { user, wanted: 300 }).collect::<Vec<_>>();
        warm.allocate(0, &all(others), &Table::flat(&vec![900.0; others], 128), Units::first(128), &mut grants);
        // User 0 has its turn again, and all users are forgotten.
        warm.allocate(1, &all(1), &Table::flat(&[900.0], 1), Units::first(1), &mut grants);
        (0..others as u32).for_each(|user| warm.forget(user));
        let mut cold = Scheduler::new(policy, alloc, false);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let table = Table::flat(&vec![700.0; users], 25);
        warm.allocate(9, &all(users), &table, Units::first(25), &mut first);
        cold.allocate(9, &all(users), &table, Units::first(25), &mut second);
        prop_assert_eq!(first, second);
    }
}
