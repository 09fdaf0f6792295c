//! Periods, demands and shares: the worked examples of the specification.

use super::*;

#[test]
fn the_first_period_is_that_of_test_r_1() {
    let (rig, [a, b, c]) = Rig::first_period(Settings::THESIS);
    let user = rig.rapid.user(rig.now, 1).unwrap();
    assert_eq!((user.granted, user.unused, user.expected, user.tbs_bits), (20.0, 5.0, 25.0, 18_336));
    assert_eq!(user.capacity, Rate::from_bits_per_s(18_336_000));
    assert_eq!((user.flows, user.slow, user.mode), (3, 1, Mode::Normal));
    near(user.released / 8.0, 564_127.0);
    let flow = |id| rig.rapid.flow(id).unwrap();
    near(flow(a).rate, 200_000.0);
    near(flow(a).demand, 199_873.047);
    near(flow(a).expected, 764_000.0);
    near(flow(a).share, 15_280.0);
    near(flow(a).window(), 3_997.461);
    for fast in [b, c] {
        assert_eq!(flow(fast).category, Category::Fast);
        near(flow(fast).window(), 20_921.270);
        near(flow(fast).allocation(&Settings::THESIS), 1_046_063.5);
        near(flow(fast).ran_bdp(rig.rapid.settings()), 31_381.9);
    }
    near([a, b, c].iter().map(|id| flow(*id).window()).sum(), 45_840.0);
    near(flow(a).ran_bdp(rig.rapid.settings()), 5_996.2);
    assert_eq!(rig.rapid.ran_window(a), Some(MSS * 10));
    assert_eq!(rig.rapid.ran_window(b), Some(Bytes::new(31_381)));
    // Three periods of five RTTs and the slack.
    let ends: Vec<Time> = rig.rapid.observer().iter().map(|record| record.time).collect();
    assert_eq!(ends, [at(101_500); 3]);
}

#[test]
fn demand_is_weighted_as_in_test_r_1() {
    let mut rig = Rig::new(Settings::THESIS);
    let a = rig.open(RTT);
    rig.open(RTT);
    rig.open(RTT);
    let mut found = Vec::new();
    for (round, bytes) in [1_440, 2_880, 4_000, 4_000, 4_000].into_iter().enumerate() {
        rig.play_reports(at(5_000 + 20_000 * round as u64));
        rig.rapid.on_wan_data(rig.now, a, Bytes::new(bytes));
        rig.play_reports(at(1_500 + 20_000 * (round as u64 + 1)));
        found.push(rig.rapid.flow(a).unwrap().demand);
    }
    let expected = [72_000.0, 135_000.0, 191_875.0, 198_984.375, 199_873.047];
    for (found, expected) in found.into_iter().zip(expected) {
        near(found, expected);
    }
}

#[test]
fn released_rate_is_kept_in_the_second_slow_period() {
    for (accounting, fast, sum) in [
        (Accounting::Rate, 21_420.0, 45_840.0),
        (Accounting::ShareBytes, 21_420.0, 45_840.0),
        (Accounting::Literal, 15_778.73, 34_557.46),
    ] {
        let (mut rig, [a, b, c]) = Rig::first_period(Settings { accounting, ..Settings::THESIS });
        // 150 000 B/s for three RTTs (K of 3 997 B); the others fill their windows.
        for round in 0..3 {
            rig.play_reports(at(103_000 + 20_000 * round + 10_000));
            rig.rapid.on_wan_data(rig.now, a, Bytes::new(3_000));
        }
        rig.play_reports(at(163_000));
        assert_eq!(rig.categories(a), [Category::Slow; 2], "{accounting:?}");
        near(rig.window(a), 3_000.0);
        near(rig.window(b), fast);
        near(rig.window(a) + rig.window(b) + rig.window(c), sum);
    }
}

#[test]
fn rates_sum_up_with_unequal_rtts_only_where_rates_are_counted() {
    for (accounting, released, b_rate, c_rate, total) in [
        (Accounting::Rate, 0.0, 1_046_063.5, 1_046_063.5, 1.0),
        (Accounting::Literal, 11_282.539, 1_046_063.5, 834_515.9, 0.908),
    ] {
        let mut rig = Rig::new(Settings { accounting, ..Settings::THESIS });
        let [a, b, c] = [20, 20, 80].map(|ms| rig.open(Span::from_millis(ms)));
        for (id, category, limit) in
            [(a, Category::Slow, Some(3_997.461)), (b, Category::Fast, None), (c, Category::Fast, None)]
        {
            let flow = rig.rapid.flow_mut(id).unwrap();
            (flow.category, flow.limit, flow.released) = (category, limit, released);
        }
        rig.rapid.stale(1);
        rig.rapid.share_out(rig.now);
        let rate = |id| rig.rapid.flow(id).unwrap().allocation(rig.rapid.settings());
        near(rate(b) / 1e3, b_rate / 1e3);
        near(rate(c) / 1e3, c_rate / 1e3);
        assert!(((rate(a) + rate(b) + rate(c)) / 2_292_000.0 - total).abs() < 5e-4, "{accounting:?}");
    }
}

#[test]
fn a_flow_of_constant_rate_alternates_as_published_and_stays_slow_in_the_field() {
    use Category::{Fast, Slow};
    let play = |settings| {
        let (mut rig, flows @ [a, b, c]) = Rig::first_period(settings);
        let first = rig.window(a);
        let mut rates = [(a, 200_000.0), (b, 1e9), (c, 1e9)];
        rig.now = at(101_000); // on the grid of ms again
        for ms in 102..1_500 {
            rig.play(at(1_000 * ms), &rates);
            rates[0].1 = 200_000.0;
        }
        (rig.categories(a), first, rig.window(a), flows.len())
    };
    let (categories, first, ..) = play(Settings::THESIS);
    near(first, 3_997.461);
    assert!(categories.len() > 10, "{categories:?}");
    for (period, category) in categories.into_iter().enumerate() {
        assert_eq!(category, if period % 2 == 0 { Slow } else { Fast }, "period {period}");
    }
    let (categories, first, then, _) = play(Settings::FIELD);
    near(first, 5_996.2);
    near(then, 6_000.0);
    assert!(categories.len() > 10 && categories.iter().all(|category| *category == Slow), "{categories:?}");
}

#[test]
fn the_edges_of_test_r_4() {
    // All are slow: no flow to give anything to.
    let mut rig = Rig::new(Settings::THESIS);
    let flows = [RTT; 3].map(|rtt| rig.open(rtt));
    rig.play(at(150_000), &flows.map(|flow| (flow, 50_000.0)));
    let user = rig.rapid.user(rig.now, 1).unwrap();
    assert_eq!((user.flows, user.slow), (3, 3));
    for flow in flows {
        // A second period at the floor (K = 2) is not filled either.
        assert_eq!(rig.categories(flow), [Category::Slow; 2]);
        assert_eq!(rig.window(flow), 2_880.0, "the floor: the demand is 1 000 B");
    }
    // Alone: all of it.
    let mut rig = Rig::new(Settings::THESIS);
    let flow = rig.open(RTT);
    near(rig.window(flow), 45_840.0);
    // 1 ms to the server: a share below a segment.
    let mut rig = Rig::new(Settings::THESIS);
    let flows = [1; 4].map(|ms| rig.open(Span::from_millis(ms)));
    near(rig.rapid.flow(flows[0]).unwrap().share, 573.0);
    assert_eq!(rig.window(flows[0]), 2_880.0);
}

#[test]
fn without_capacity_windows_are_minimal_and_no_flow_is_classified() {
    let (mut rig, [a, b, _]) = Rig::first_period(Settings::THESIS);
    rig.reports = false;
    rig.rapid.observer_mut().clear();
    for ms in 102..400 {
        rig.now = at(1_000 * ms);
        let blocked = RadioHint { granted: 0.0, unused: 0.0, tbs_bits: None, ..report(rig.now) };
        rig.rapid.on_radio(rig.now, 1, &blocked);
        rig.rapid.on_deadline(rig.now);
    }
    assert_eq!((rig.window(a), rig.window(b)), (2_880.0, 2_880.0));
    assert!(!rig.categories(a).is_empty());
    assert!(rig.categories(a).iter().all(|category| *category == Category::Slow));
    assert!(rig.categories(b).iter().all(|category| *category == Category::Fast));
    rig.now = at(400_000);
    rig.report();
    near(rig.window(a), 3_997.461);
    near(rig.window(b), 20_921.270);
}

#[test]
fn a_flow_that_comes_or_goes_changes_all_shares_at_once() {
    let mut rig = Rig::new(Settings::THESIS);
    let a = rig.open(RTT);
    near(rig.window(a), 45_840.0);
    let b = rig.open(Span::from_millis(40));
    near(rig.window(a), 22_920.0);
    near(rig.window(b), 45_840.0);
    rig.rapid.close(rig.now, b);
    near(rig.window(a), 45_840.0);
    assert_eq!(rig.rapid.window(b), None);
    // Its slot is reused; the old id is invalid.
    let c = rig.open(RTT);
    assert_eq!(c.index(), b.index());
    rig.rapid.close(rig.now, b);
    rig.rapid.on_wan_data(rig.now, b, MSS);
    rig.rapid.on_backlog(rig.now, b, MSS);
    assert_eq!((rig.rapid.open_flows(), rig.rapid.backlog()), (2, Bytes::ZERO));
}

#[test]
fn a_smaller_rtt_to_the_server_is_a_smaller_window() {
    let mut rig = Rig::new(Settings::THESIS);
    let a = rig.open(RTT);
    rig.rapid.on_wan_rtt(rig.now, a, Span::from_millis(10));
    near(rig.window(a), 22_920.0);
    assert_eq!(rig.rapid.look(rig.now, a).unwrap().wan_rtt, Span::from_micros(18_750));
    rig.rapid.on_wan_rtt(rig.now, a, Span::from_millis(30));
    near(rig.window(a), 22_920.0);
}

#[test]
fn silent_flows_are_not_counted_and_begin_anew() {
    let mut rig = Rig::new(Settings::THESIS);
    let [a, b] = [RTT; 2].map(|rtt| rig.open(rtt));
    rig.play(at(1_100_000), &[(a, 1e9)]);
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().flows, 1);
    near(rig.window(a), 45_840.0);
    assert_eq!(rig.window(b), 14_400.0, "10 MSS");
    assert!(!rig.rapid.look(rig.now, b).unwrap().active);
    rig.rapid.on_wan_data(rig.now, b, MSS);
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().flows, 2);
    near(rig.window(a), 22_920.0);
    near(rig.window(b), 22_920.0);
    // A backlog in the proxy keeps a flow active.
    rig.rapid.on_backlog(rig.now, b, MSS);
    rig.play(at(3_000_000), &[(a, 1e9)]);
    assert!(rig.rapid.look(rig.now, b).unwrap().active);
    rig.rapid.on_backlog(rig.now, b, Bytes::ZERO);
    rig.play(at(3_900_000), &[(a, 1e9)]);
    assert!(rig.rapid.look(rig.now, b).unwrap().active, "for a second after that");
    rig.play(at(4_100_000), &[(a, 1e9)]);
    assert!(!rig.rapid.look(rig.now, b).unwrap().active);
}

#[test]
fn growing_window_lengthens_the_period() {
    let mut rig = Rig::new(Settings::THESIS);
    let a = rig.open(RTT);
    let others = [RTT; 9].map(|rtt| rig.open(rtt));
    // S = 4 584 B: K = 3. The others close after one RTT, which makes the window ten times as large: 4 RTTs more.
    rig.play_reports(at(21_500));
    for other in others {
        rig.rapid.close(rig.now, other);
    }
    near(rig.window(a), 45_840.0);
    rig.play_reports(at(300_000));
    let ends: Vec<Time> = rig.rapid.observer().iter().map(|record| record.time).collect();
    assert_eq!(ends[0], at(1_500 + 20_000 * 7));
}

#[test]
fn impossible_settings_are_refused_by_name() {
    assert_eq!(Settings::THESIS.check(), Ok(()));
    assert_eq!(Settings::of(Profile::Field).check(), Ok(()));
    for (settings, name) in [
        (Settings { efficiency: f64::NAN, ..Settings::THESIS }, "efficiency"),
        (Settings { theta: 1.5, ..Settings::THESIS }, "theta"),
        (Settings { average: 17, ..Settings::THESIS }, "average"),
        (Settings { floor: 0, ..Settings::THESIS }, "floor"),
        (Settings { period: Span::ZERO, ..Settings::THESIS }, "period"),
    ] {
        assert_eq!(settings.check().unwrap_err().name, name);
    }
}
