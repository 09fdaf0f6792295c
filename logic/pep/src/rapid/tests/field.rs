//! Tests of the rules in which the profile `field` differs from the published form.

use super::*;

/// A server with enough data, as the proxy sees it: in the middle of each RTT it delivers the whole segments of the window, except
/// the last one, which waits for a delayed acknowledgement.
fn play_segments(rig: &mut Rig, flow: FlowId, rounds: u64) {
    for _ in 0..rounds {
        let begin = rig.now;
        rig.play_reports(begin + RTT / 2);
        let segments = (rig.window(flow) / MSS.as_f64()) as u64;
        rig.rapid.on_wan_data(rig.now, flow, MSS * segments.saturating_sub(1).max(1));
        rig.play_reports(begin + RTT);
    }
}

#[test]
fn a_flow_at_its_floor_gets_its_share_again_in_the_field() {
    let mut rig = Rig::new(Settings::FIELD);
    let [a, b] = [RTT; 2].map(|_| rig.open(RTT));
    // Hardly anything arrives in the RTT at the end of a period.
    rig.play(at(400_000), &[(a, 20_000.0), (b, 1e9)]);
    assert_eq!(rig.window(a), 2_880.0, "two segments: the floor");
    assert_eq!(*rig.categories(a).last().unwrap(), Category::Slow);
    // Windows of 2, 2, 4, 8 and 11 segments (S) have periods of 2, 2, 3, 4 and 5 RTTs, and one is under way.
    play_segments(&mut rig, a, 24);
    let flow = rig.rapid.flow(a).unwrap();
    assert_eq!((flow.category, flow.limit), (Category::Fast, None));
    near(flow.share, 22_920.0);
    assert!(flow.window() >= flow.share);
}

#[test]
fn a_flow_of_a_few_segments_leaves_its_share_to_others_in_the_field() {
    // 1, 2, 3, 5 and 10 segments an RTT, each at its own time.
    for segments in [1, 2, 3, 5, 10] {
        let mut rig =
            Rig::new(Settings { estimator: Estimator::AllocPlusUnused, guard: false, ..Settings::FIELD });
        let [a, b] = [RTT; 2].map(|_| rig.open(RTT));
        let demand = segments as f64 * 1_440.0 / 0.02;
        rig.play(at(500_000), &[(a, demand), (b, 1e9)]);
        for ms in 500..1_500 {
            rig.play(at(1_000 * ms), &[(a, demand), (b, 1e9)]);
            let (own, all) = (rig.window(a), 45_840.0);
            assert!(own <= 3.0 * 1.01 * (segments.max(2) * 1_440) as f64, "{segments}: {own}");
            near(own + rig.window(b), all);
        }
    }
}

#[test]
fn field_profile_ignores_slowness_caused_by_a_closed_window() {
    for (profile, expected) in [(Profile::Thesis, Category::Slow), (Profile::Field, Category::Fast)] {
        let settings = Settings { estimator: Estimator::AllocPlusUnused, ..Settings::of(profile) };
        // Its own buffer, or its user's, is full for an RTT before the end of a period.
        for by_user in [false, true] {
            let caps = Caps { user: Bytes::new(if by_user { 10_000 } else { 1 << 30 }), ..settings.caps };
            let mut rig = Rig::new(Settings { caps, ..settings });
            let [a, b] = [RTT; 2].map(|_| rig.open(RTT));
            rig.play(at(300_000), &[(a, 1e9), (b, 1e9)]);
            assert_eq!(*rig.categories(a).last().unwrap(), Category::Fast);
            let before = rig.categories(a).len();
            while rig.categories(a).len() == before {
                rig.play(rig.now + Span::from_millis(1), &[(a, 1e9), (b, 1e9)]);
            }
            let periods = rig.categories(a).len();
            let full = if by_user {
                (b, Bytes::new(10_000))
            } else {
                (a, rig.rapid.flow(a).unwrap().cap(&settings))
            };
            while rig.categories(a).len() == periods {
                // It is closed and reopened again and again, so that what arrives never matches what was offered.
                let step = rig.now + Span::from_millis(6);
                rig.rapid.on_backlog(rig.now, full.0, full.1);
                rig.play(step, &[(b, 1e9)]);
                rig.rapid.on_backlog(rig.now, full.0, Bytes::ZERO);
                rig.play(step + Span::from_millis(6), &[(b, 1e9)]);
            }
            assert_eq!(rig.categories(a)[periods], expected, "{profile:?}, by the user's cap: {by_user}");
        }
    }
}

#[test]
fn bypassing_traffic_is_deducted_from_the_capacity() {
    // 18.336 Mbit/s; UDP of 4, then of 40 Mbit/s, then none.
    for (account_udp, expected) in [(false, [18.336; 3]), (true, [14.336, 9.168, 18.336])] {
        let mut rig = Rig::new(Settings { account_udp, ..Settings::THESIS });
        let flow = rig.open(RTT);
        for (part, (rate, expected)) in
            [(4, expected[0]), (40, expected[1]), (0, expected[2])].into_iter().enumerate()
        {
            let until = at(2_000_000 * (part as u64 + 1));
            while rig.now < until {
                rig.rapid.on_passing(1, Bytes::new(rate * 125));
                rig.rapid.on_passing(9, Bytes::new(1_500)); // of an unknown user
                let next = rig.now + Span::from_millis(1);
                rig.play(next, &[(flow, 1e9)]);
            }
            let user = rig.rapid.user(rig.now, 1).unwrap();
            let found = user.capacity.as_f64() / 1e6;
            assert!((found - expected).abs() < 1e-3, "{rate} Mbit/s pass: {found}");
            near(rig.window(flow), user.capacity.as_f64() / 8.0 * 0.02);
            let counted = if account_udp { rate as f64 * 1e6 } else { 0.0 };
            assert!((user.passing.as_f64() - counted).abs() < 1e3);
        }
        assert!(rig.rapid.user(rig.now, 9).is_none());
    }
}

#[test]
fn server_window_has_headroom_minus_the_backlog_and_survives_a_short_dip() {
    let mut rig = Rig::new(Settings::FIELD);
    let flow = rig.open(RTT);
    // 1.25 times 45 840 B plus two segments; the allocation does not include the headroom.
    let open = 1.25 * 45_840.0 + 2.0 * MSS.as_f64();
    near(rig.rapid.window(flow).unwrap().as_f64(), open);
    assert_eq!(rig.rapid.allocation(flow), Some(Rate::from_bits_per_s(18_336_000)));
    rig.rapid.on_backlog(rig.now, flow, Bytes::new(10_000));
    near(rig.rapid.window(flow).unwrap().as_f64(), open - 10_000.0);
    rig.rapid.on_backlog(rig.now, flow, Bytes::new(100_000));
    assert_eq!(rig.rapid.window(flow), Some(Bytes::ZERO));
    rig.rapid.on_backlog(rig.now, flow, Bytes::ZERO);
    // Half the cell for 20 ms: the rate falls at once, the server's bound on data in flight by less than a tenth of that.
    let half = |now| RadioHint { granted: 10.0, unused: 2.5, active_users: 3, ..report(now) };
    for ms in 1..=20 {
        rig.now = at(1_000 * ms);
        rig.rapid.on_radio(rig.now, 1, &half(rig.now));
    }
    assert!(rig.rapid.allocation(flow).unwrap().as_f64() < 0.55 * 18_336_000.0);
    let short = rig.rapid.window(flow).unwrap().as_f64();
    assert!((0.93 * open..0.97 * open).contains(&short), "{short} of {open}");
    for ms in 21..=2_000 {
        rig.now = at(1_000 * ms);
        while let Some(due) = rig.rapid.next_deadline().filter(|due| *due <= rig.now) {
            rig.rapid.on_deadline(due);
        }
        rig.rapid.on_radio(rig.now, 1, &half(rig.now));
        rig.rapid.on_wan_data(rig.now, flow, Bytes::new(1_100));
    }
    let long = rig.rapid.window(flow).unwrap().as_f64();
    assert!(long < 0.6 * open, "{long} of {open}");
}
