//! Radio reports: late, lost, stale and false ones, and what the estimators make of them.

use super::*;

#[test]
fn late_feed_holds_windows_and_lost_feed_passes_through() {
    let (mut rig, flows @ [a, ..]) = Rig::first_period(Settings::THESIS);
    // The newest report is 500 us old. A little before it there was less.
    let less = RadioHint { granted: 10.0, ..report(rig.now) };
    rig.now = at(102_000);
    rig.rapid.on_radio(rig.now, 1, &RadioHint { measured_at: rig.now, ..less });
    rig.now = at(103_000);
    rig.report();
    rig.reports = false;
    let mode = |rig: &Rig| rig.rapid.user(rig.now, 1).unwrap().mode;
    rig.play_reports(at(203_000));
    assert_eq!(mode(&rig), Mode::Normal, "100 ms");
    while rig.rapid.next_change().is_some() {}
    rig.play_reports(at(203_001));
    assert_eq!(mode(&rig), Mode::Hold);
    assert!(rig.rapid.next_change().is_some());
    // 15 PRBs at MCS 28: 11 064 bits.
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().capacity, Rate::from_bits_per_s(11_064_000));
    assert!(rig.rapid.window(a).is_some() && rig.rapid.allocation(a).is_some());
    rig.rapid.observer_mut().clear();
    rig.play_reports(at(1_000_000));
    assert!(rig.categories(a).iter().all(|category| *category == Category::Slow), "it is not judged");
    rig.play_reports(at(1_103_000));
    assert_eq!(mode(&rig), Mode::Hold);
    rig.play_reports(at(1_103_001));
    assert_eq!(mode(&rig), Mode::Open);
    assert_eq!((rig.rapid.window(a), rig.rapid.allocation(a), rig.rapid.ran_window(a)), (None, None, None));
    for flow in flows {
        rig.rapid.on_wan_data(rig.now, flow, MSS); // they were idle
    }
    // Back after ten.
    for ms in 1_200..1_209 {
        rig.now = at(1_000 * ms);
        rig.report();
        assert_eq!(mode(&rig), Mode::Open);
    }
    rig.now = at(1_209_000);
    rig.report();
    assert_eq!(mode(&rig), Mode::Normal);
    near(rig.window(a), 15_280.0);
    assert_eq!(rig.rapid.look(rig.now, a).unwrap().category, Category::Init);
}

#[test]
fn a_feed_that_is_always_late_leaves_equal_shares() {
    let (mut rig, [a, b, _]) = Rig::first_period(Settings::THESIS);
    rig.reports = false;
    for ms in 102..1_500 {
        rig.now = at(1_000 * ms);
        rig.rapid.on_deadline(rig.now);
        // 200 ms old.
        rig.rapid.on_radio(rig.now, 1, &report(at(1_000 * ms - 200_000.min(1_000 * ms))));
        if ms > 310 {
            for flow in [a, b] {
                rig.rapid.on_wan_data(rig.now, flow, Bytes::new(700));
            }
        }
        let user = rig.rapid.user(rig.now, 1).unwrap();
        if ms > 310 {
            assert_eq!(user.mode, Mode::Hold);
        }
        // A second after the hold began, and its period.
        let category = rig.rapid.look(rig.now, a).unwrap().category;
        match ms {
            ..1_200 => assert_eq!(category, Category::Slow, "{ms}"),
            1_400.. => assert_eq!((category, user.slow), (Category::Init, 0), "{ms}"),
            _ => {}
        }
    }
}

#[test]
fn the_smallest_rtt_to_the_user_is_smoothed_bounded_or_plain() {
    for (ran_rttmin, ms) in [(RanRttMin::Smoothed, 44), (RanRttMin::Bounded, 30), (RanRttMin::Plain, 20)] {
        let mut rig = Rig::new(Settings { ran_rttmin, ..Settings::THESIS });
        let flow = rig.open(RTT);
        assert_eq!(rig.rapid.look(rig.now, flow).unwrap().ran_rtt_min, None);
        rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(20));
        // 44 ms for twenty and more periods, without a smaller one.
        for ms in 0..8_000 {
            rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(44));
            rig.play(at(1_000 * ms), &[(flow, 1e9)]);
        }
        let found = rig.rapid.look(rig.now, flow).unwrap().ran_rtt_min.unwrap();
        assert!(found.abs_diff(Span::from_millis(ms)) < Span::from_millis(1), "{ran_rttmin:?}: {found}");
    }
}

#[test]
fn reports_with_gaps_do_not_bring_a_lost_feed_back() {
    let (mut rig, _) = Rig::first_period(Settings::THESIS);
    rig.reports = false;
    rig.play_reports(at(2_000_000));
    for report in 0..30 {
        rig.now = at(2_000_000 + 150_000 * report);
        rig.report();
        rig.play_reports(at(2_000_000 + 150_000 * report + 1_000));
        assert_eq!(rig.rapid.user(rig.now, 1).unwrap().mode, Mode::Open);
    }
}

#[test]
fn user_without_reports_is_unbounded() {
    let mut rapid = Rapid::new(Settings::THESIS);
    let flow = rapid.open(at(0), 1, RTT, MSS);
    assert_eq!((rapid.window(flow), rapid.allocation(flow)), (None, None));
    while rapid.next_change().is_some() {}
    rapid.on_radio(at(5_000), 1, &report(at(5_000)));
    assert_eq!(rapid.next_change(), Some(flow));
    assert_eq!(rapid.window(flow), Some(Bytes::new(45_840)));
}

#[test]
fn stale_repeated_and_future_reports_are_ignored() {
    let mut rapid = Rapid::new(Settings::THESIS);
    let capacity = |rapid: &Rapid, now| rapid.user(now, 1).unwrap().capacity.bits_per_s();
    // A report from the future counts as of now, so that the next one is newer.
    rapid.on_radio(at(1_000), 1, &report(Time::from_secs(1_000)));
    assert_eq!(capacity(&rapid, at(1_000)), 18_336_000);
    rapid.on_radio(at(2_000), 1, &RadioHint { granted: 10.0, ..report(at(2_000)) });
    assert_eq!(capacity(&rapid, at(2_000)), 11_064_000);
    for old in [0, 1_000, 2_000] {
        rapid.on_radio(at(3_000), 1, &report(at(old)));
        assert_eq!(capacity(&rapid, at(3_000)), 11_064_000);
    }
}

#[test]
fn handover_discards_state_of_the_old_cell() {
    let mut rig = Rig::new(Settings::THESIS);
    let flow = rig.open(RTT);
    rig.now = at(1_000);
    rig.rapid.on_radio(rig.now, 1, &RadioHint { handover: true, ..report(rig.now) });
    assert_eq!(rig.window(flow), 2_880.0);
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().mode, Mode::Normal);
    rig.now = at(2_000);
    let info = CellInfo::lte(1, LteBandwidth::Mhz10);
    // Nothing was granted there yet: the CQI decides.
    let there = RadioHint {
        granted: 0.0,
        unused: 50.0,
        tbs_bits: None,
        mcs: 0,
        cqi: Some(15),
        ..RadioHint { cell: 50, info, ..report(rig.now) }
    };
    rig.rapid.on_radio(rig.now, 1, &there);
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().capacity, Rate::from_bits_per_s(36_696_000));
}

#[test]
fn cqi_gives_the_rate_after_a_pause() {
    let mut rapid = Rapid::new(Settings::THESIS);
    let silent = RadioHint { granted: 0.0, unused: 25.0, tbs_bits: None, ..report(at(0)) };
    let mcs = |rapid: &Rapid, now| rapid.user(now, 1).unwrap().mcs;
    for (ms, hint, expected) in [
        (0, RadioHint { cqi: Some(15), ..report(at(0)) }, 28),
        // It moved away, and has requested nothing since.
        (50, RadioHint { cqi: Some(5), ..silent }, 28),
        (150, RadioHint { cqi: Some(5), ..silent }, 8),
        (160, RadioHint { cqi: None, ..silent }, 28),
        (170, RadioHint { mcs: 31, ..report(at(0)) }, 28),
    ] {
        rapid.on_radio(at(1_000 * ms), 1, &RadioHint { measured_at: at(1_000 * ms), ..hint });
        assert_eq!(mcs(&rapid, at(1_000 * ms)), expected, "{ms} ms");
    }
    rapid.on_radio(at(180_000), 1, &RadioHint { cqi: Some(0), ..report(at(180_000)) });
    assert_eq!(rapid.user(at(180_000), 1).unwrap().capacity, Rate::ZERO);
}

#[test]
fn estimators_differ_where_others_are_busy() {
    // 25 PRBs; it has 2, others 20 (three users in all), 3 are free.
    for (estimator, expected) in [
        (Estimator::AllocPlusUnused, 5.0),
        (Estimator::FairShare, 34.0 / 3.0),
        (Estimator::Larger, 34.0 / 3.0),
    ] {
        let mut rapid = Rapid::new(Settings { estimator, ..Settings::THESIS });
        let hint = RadioHint { granted: 2.0, unused: 3.0, active_users: 3, ..report(at(0)) };
        rapid.on_radio(at(0), 1, &hint);
        near(rapid.user(at(0), 1).unwrap().expected, expected);
        // It has 20, the one other 5: half of the cell would be less.
        let hint = RadioHint { granted: 20.0, unused: 0.0, active_users: 2, ..report(at(1_000)) };
        rapid.on_radio(at(1_000), 1, &hint);
        let expected = if estimator == Estimator::FairShare { 12.5 } else { 20.0 };
        near(rapid.user(at(1_000), 1).unwrap().expected, expected);
    }
}

#[test]
fn per_tti_reports_are_averaged_on_request() {
    let mut rapid = Rapid::new(Settings { average: 8, ..Settings::THESIS });
    // All of the cell in every eighth TTI.
    for ms in 0..40 {
        let granted = if ms % 8 == 0 { 25.0 } else { 0.0 };
        rapid.on_radio(at(1_000 * ms), 1, &RadioHint { granted, unused: 0.0, ..report(at(1_000 * ms)) });
        if ms >= 8 {
            near(rapid.user(at(1_000 * ms), 1).unwrap().expected, 25.0 / 8.0);
        }
    }
}
