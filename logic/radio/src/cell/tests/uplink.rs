//! The uplink under load and under losses.

use super::*;

#[test]
fn a_full_uplink_of_lte_has_the_rate_of_its_blocks() {
    for (band, metres) in [
        (LteBandwidth::Mhz20, 50.0),
        (LteBandwidth::Mhz20, 200.0),
        (LteBandwidth::Mhz5, 100.0),
        (LteBandwidth::Mhz5, 300.0),
    ] {
        let mut rig = Rig::new(&lte(band), &[standing(metres, um())]);
        let probe = rig.cell.probe(Time::ZERO, 0).unwrap().uplink;
        rig.warm_up(&[0], UP, 1460);
        let before = rig.cell.scheduled_bits(0, UP);
        rig.saturate(&[0], UP, 1460, 2000);
        let blocks = f64::from(probe.block.bits()) / 1e3;
        let scheduled = (rig.cell.scheduled_bits(0, UP) - before) as f64 / 2e6;
        assert!(
            (scheduled / blocks - 1.0).abs() < 0.03,
            "{band:?} at {metres} m: {scheduled} of {blocks} Mbit/s"
        );
        // PDCP, RLC, MAC and buffer status reports take 10 B of a block.
        let rate = rig.rate(0, UP, 2000);
        assert!(
            rate > scheduled - 0.08 - 0.01 * blocks && rate < scheduled,
            "{band:?} at {metres} m: {rate} Mbit/s"
        );
        let harq = rig.cell.harq(0, UP).unwrap();
        assert!(harq.lost == 0 && harq.retransmissions * 50 < harq.blocks, "{harq:?}");
    }
}

#[test]
fn power_by_the_standard_reaches_further_than_ns_3s() {
    let mut config = lte(LteBandwidth::Mhz20);
    config.power.control = PowerControl::THREE_GPP;
    config.adaptation = AdaptationConfig::LTE;
    // Even when it gives out everything, the scheduler gives no more PRBs than the power suffices for.
    for alloc in [Alloc::Queue, Alloc::Full] {
        config.alloc = alloc;
        for metres in [100.0, 300.0, 600.0, 1200.0] {
            let mut rig = Rig::new(&config, &[standing(metres, um())]);
            rig.send(0, UP, 60);
            rig.play_until(Time::from_millis(200));
            assert_eq!(rig.log.arrivals.len(), 1, "{alloc:?}, {metres} m");
        }
    }
}

#[test]
fn users_without_a_free_process_leave_their_share_to_others() {
    let mut config = lte(LteBandwidth::Mhz20);
    config.harq.uplink.processes = 1;
    let mut rig = Rig::new(&config, &[standing(50.0, um()), standing(50.0, um())]);
    rig.warm_up(&[0, 1], UP, 1460);
    let before = rig.cell.used_prbs();
    rig.saturate(&[0, 1], UP, 1460, 800);
    // Each sends every eighth TTI, and then gets all that it can use, not half of it.
    let after = rig.cell.used_prbs();
    let used = (after.1.uplink - before.1.uplink) / (after.0 - before.0) as f64;
    assert!((12.0..=25.0).contains(&used), "{used}");
    let blocks = [0, 1].map(|user| rig.cell.harq(user, UP).unwrap().blocks);
    assert!(blocks.iter().all(|blocks| (100..=114).contains(blocks)), "{blocks:?}");
    assert!(rig.cell.members.iter().flatten().all(|member| member.grants.len() <= 1));
}

#[test]
fn acknowledgements_of_fifty_users_all_arrive() {
    for (case, mut config) in frames() {
        // A tenth of the attempts fails.
        config.adaptation.errors = Errors::Fixed(0.1);
        let users: Vec<UserConfig> = (0..50).map(|_| standing(50.0, of_nr(um()))).collect();
        let mut rig = Rig::new(&config, &users);
        for round in 0..40_u64 {
            for user in 0..50 {
                // Each user at its own phase.
                rig.play_until(Time::from_nanos(25_000_000 * round + 487_123 * u64::from(user)));
                rig.send(user, UP, 52);
            }
        }
        rig.play_until(rig.now + Span::from_secs(1));
        // A block is lost if it fails five times, which hardly one of 2000 does.
        let (came, lost) = (rig.log.arrivals.len(), rig.log.dropped);
        assert!(came as u64 + lost == 2000 && lost < 4, "{case}: {came} and {lost}");
        let worst = rig.log.arrivals.iter().map(|arrival| arrival.3).max().unwrap();
        assert!(worst < Span::from_millis(150), "{case}: {worst:?}");
        assert_eq!(rig.cell.next_event(), Time::MAX, "{case}");
    }
}

#[test]
fn nothing_stalls_when_a_third_of_the_blocks_fail() {
    for (case, mut config) in frames() {
        for (errors, again) in [(0.3, 4), (0.1, 0)] {
            config.adaptation.errors = Errors::Fixed(errors);
            config.harq.downlink.max_retransmissions = again;
            config.harq.uplink.max_retransmissions = again;
            let users: Vec<UserConfig> =
                (0..4).map(|_| standing(50.0, of_nr(Config::am(Bytes::new(10_000_000))))).collect();
            let mut rig = Rig::new(&config, &users);
            for ms in 1..=300 {
                for user in 0..4 {
                    rig.send(user, DOWN, 1400);
                    rig.send(user, UP, 700);
                }
                rig.play_until(Time::from_millis(ms));
            }
            rig.play_until(rig.now + Span::from_secs(4));
            assert_eq!(rig.cell.next_event(), Time::MAX, "{case}: all is said");
            let (came, lost) = (rig.log.arrivals.len(), rig.log.dropped);
            assert_eq!(came as u64 + lost, 2400, "{case}");
            assert!(lost < 3, "{case}: {lost}");
        }
    }
}

#[test]
fn a_slot_holds_no_more_than_it_has() {
    /// Checks the PRBs used.
    struct Watch<'a>(&'a str);
    impl Listener<Datagram> for Watch<'_> {
        fn on_delivered(&mut self, _: Time, _: u32, _: Direction, _: Datagram) {}
        fn on_report(&mut self, report: &SlotReport<'_>) {
            let (used, all) = (report.used_prbs, f32::from(report.cell.prbs) + 1e-3);
            let together = used.downlink + used.uplink;
            let share = if report.cell.fdd { used.downlink.max(used.uplink) } else { together };
            assert!(share <= all, "{}: {used:?} of {all} in slot {}", self.0, report.slot);
        }
    }
    for (case, mut config) in frames() {
        config.adaptation.errors = Errors::Fixed(0.3);
        // In special slots of TDD both directions have symbols, each on all PRBs.
        let both = config.air.frame().unwrap().pattern().is_some();
        if both {
            let pattern: ranpace_phy::TddPattern = "DDDSU 14:0:0".parse().unwrap();
            let Air::Nr { duplex, .. } = &mut config.air else { continue };
            *duplex = Duplex::Tdd(pattern);
        }
        let mut log = Watch(case);
        let mut cell = Cell::new(0, &config).unwrap();
        for id in 0..4 {
            cell.attach(Time::ZERO, Subscriber::new(id, &standing(50.0, of_nr(um())), 1), &mut log);
        }
        cell.subscribe(Time::ZERO, Some(CellSubscription::EVERY_SLOT));
        for ms in 0..200 {
            let now = Time::from_millis(ms);
            for user in 0..4 {
                for direction in [DOWN, UP] {
                    while cell.queued(user, direction) < Bytes::new(200_000) {
                        cell.send(
                            now,
                            user,
                            direction,
                            0,
                            Datagram { id: 0, size: 1460, sent: now },
                            &mut log,
                        );
                    }
                }
            }
            cell.poll(now, &mut log);
        }
    }
}
