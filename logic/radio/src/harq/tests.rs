//! Worked examples of HARQ.

use proptest::prelude::*;

use super::*;

/// Sends `packets`, one per block, over `processes` processes; every block needs `needed` retransmissions. Returns the TTI in
/// which the last process is free again.
fn burst(processes: u8, packets: u32, needed: u8) -> u64 {
    let mut harq = Harq::new(HarqConfig { processes, ..HarqConfig::LTE });
    let (mut left, mut done, mut tti) = (packets, 0, 0);
    let mut attempts = vec![0u8; usize::from(processes)];
    loop {
        while harq.outcome(tti).is_some() {
            done += 1;
        }
        if done == packets && (0..processes).all(|_| harq.is_free(tti)) {
            return tti;
        }
        for process in harq.due(tti) {
            let seen = &mut attempts[usize::from(process.number())];
            *seen += 1;
            let bler = if *seen > needed { 0.0 } else { 1.0 };
            harq.send_again(tti, process, 0.0, Draw::of(0.5), |_| bler).unwrap();
        }
        while left > 0
            && let Some(process) = harq.free(tti)
        {
            attempts[usize::from(process.number())] = 1;
            let bler = if needed > 0 { 1.0 } else { 0.0 };
            harq.send(tti, process, left, 0.0, Draw::of(0.5), |_| bler).unwrap();
            left -= 1;
        }
        tti += 1;
    }
}

#[test]
fn bursts_take_as_long_as_published() {
    // Test P-3; Diarra 2022, section 4.2.1: ten packets, one or two per round of 8 ms, without and with two
    // retransmissions each.
    for (processes, retransmissions, ms) in [(1, 0, 80), (1, 2, 240), (2, 0, 40), (2, 2, 120)] {
        assert_eq!(burst(processes, 10, retransmissions), ms, "{processes} {retransmissions}");
    }
}

#[test]
fn all_processes_busy_means_no_new_data() {
    let mut harq = Harq::new(HarqConfig::LTE);
    for tti in 0..8 {
        let process = harq.free(tti).unwrap();
        assert_eq!(harq.send(tti, process, tti, 0.0, Draw::of(0.0), |_| 1.0), Some(Attempt::Failed));
    }
    assert_eq!(harq.free(8), None, "all wait to send again");
    assert_eq!(harq.due(8).count(), 1);
    assert_eq!(harq.due(15).count(), 8);
    assert_eq!(harq.next_due(0), Some(8));
}

#[test]
fn a_block_can_be_sent_in_every_tti_without_errors() {
    for config in [HarqConfig::LTE, HarqConfig::LTE_UPLINK, HarqConfig::NR, HarqConfig::MMWAVE] {
        let mut harq = Harq::new(config);
        for tti in 0..1000 {
            let process = harq.free(tti).unwrap();
            harq.send(tti, process, tti, 0.0, Draw::of(0.5), |_| 0.0);
            let expected = tti.checked_sub(config.decode).map(Outcome::Decoded);
            assert_eq!(harq.outcome(tti), expected);
        }
    }
}

#[test]
fn sinr_adds_up_and_the_second_attempt_gains_3_db() {
    let mut harq = Harq::new(HarqConfig::LTE);
    let process = harq.free(0).unwrap();
    let mut asked = Vec::new();
    let mut ask = |sinr_db| {
        asked.push(sinr_db);
        1.0
    };
    harq.send(0, process, (), 10.0, Draw::of(0.0), &mut ask);
    for attempt in 1..=4u64 {
        harq.send_again(attempt * 8, process, 10.0, Draw::of(0.0), &mut ask).unwrap();
    }
    for (found, expected) in asked.iter().zip([10.0, 13.0103, 14.7712, 16.0206, 16.9897]) {
        assert!((found - expected).abs() < 1e-4, "{found}");
    }
    assert_eq!(harq.outcome(34), None);
    assert_eq!(harq.outcome(35), Some(Outcome::Lost(())), "dropped after four retransmissions");
    assert_eq!(harq.counters(), &HarqCounters { blocks: 1, retransmissions: 4, lost: 1 });
}

#[test]
fn round_trips_grow_by_8_ms_with_each_retransmission() {
    for k in 0..=4u64 {
        let mut harq = Harq::new(HarqConfig::LTE);
        let process = harq.free(0).unwrap();
        harq.send(0, process, (), 0.0, Draw::of(0.5), |_| if k > 0 { 1.0 } else { 0.0 });
        for n in 1..=k {
            let bler = if n == k { 0.0 } else { 1.0 };
            harq.send_again(n * 8, process, 0.0, Draw::of(0.5), |_| bler).unwrap();
        }
        assert_eq!(harq.next_outcome(), Some(3 + 8 * k));
    }
}

#[test]
fn the_uplink_sends_again_at_its_own_times_only() {
    let mut harq = Harq::new(HarqConfig::LTE_UPLINK);
    let process = harq.free(2).unwrap();
    harq.send(2, process, (), 0.0, Draw::of(0.0), |_| 1.0);
    let due: Vec<u64> = (0..40).filter(|&tti| harq.due(tti).next().is_some()).collect();
    assert_eq!(due, [10, 18, 26, 34]);
    assert_eq!(harq.next_due(11), Some(18));
}

#[test]
fn a_misread_failure_loses_the_block_at_once() {
    let mut harq = Harq::new(HarqConfig { misreading: 0.1, ..HarqConfig::LTE });
    let process = harq.free(0).unwrap();
    let draw = Draw { error: 0.0, misreading: 0.05 };
    assert_eq!(harq.send(0, process, (), 0.0, draw, |_| 1.0), Some(Attempt::Lost));
    assert_eq!(harq.outcome(3), Some(Outcome::Lost(())));
    assert!(!(1..8).any(|tti| (0..8).any(|_| harq.free(tti) == Some(process))), "the sender waits its turn");
}

proptest! {
    /// Every block comes out once, is lost, or is under way, whatever the draws and however late the scheduler.
    #[test]
    fn no_block_is_unaccounted(
        processes in 0..80u8,
        turnaround in 0..12u64,
        decode in 0..12u64,
        max_retransmissions in 0..6u8,
        synchronous in any::<bool>(),
        steps in prop::collection::vec((0..3u64, any::<bool>(), 0.0..1.0f64, -400.0..400.0f64), 0..300),
    ) {
        let mut harq = Harq::new(HarqConfig {
            processes, decode, turnaround, max_retransmissions, synchronous, ..HarqConfig::LTE
        });
        let (mut tti, mut sent, mut came) = (0, 0u64, Vec::new());
        for (wait, again, error, sinr_db) in steps {
            tti += wait;
            while let Some(Outcome::Decoded(n) | Outcome::Lost(n)) = harq.outcome(tti) {
                came.push(n);
            }
            for process in harq.due(tti).filter(|_| again) {
                prop_assert!(harq.content(process).is_some());
                prop_assert!(harq.send_again(tti, process, sinr_db, Draw::of(error), |_| 0.7).is_some());
            }
            if let Some(process) = harq.free(tti) {
                prop_assert!(harq.send(tti, process, sent, sinr_db, Draw::of(error), |_| 0.7).is_some());
                prop_assert!(harq.send(tti, process, 999, sinr_db, Draw::of(error), |_| 0.7).is_none());
                sent += 1;
            }
        }
        harq.clear(|n| came.push(n));
        came.sort_unstable();
        prop_assert_eq!(came, (0..sent).collect::<Vec<_>>());
        prop_assert!(harq.is_idle());
    }
}
