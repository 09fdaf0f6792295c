//! Data that wait in the proxy, and limits of its memory.

use super::*;

#[test]
fn proxy_backlog_closes_server_windows() {
    let mut rig = Rig::new(Settings::THESIS);
    let [a, b] = [RTT; 2].map(|rtt| rig.open(rtt));
    while rig.rapid.next_change().is_some() {}
    let kib = |count: u64| Bytes::new(count << 10);
    for (waiting, window, told) in
        [(20, 22_920, false), (50, (64 - 50) << 10, true), (64, 0, true), (100, 0, true), (10, 22_920, true)]
    {
        rig.rapid.on_backlog(rig.now, a, kib(waiting));
        assert_eq!(rig.rapid.window(a), Some(Bytes::new(window)), "{waiting} KiB");
        assert_eq!(rig.rapid.next_change(), told.then_some(a), "{waiting} KiB");
    }
    assert_eq!(rig.rapid.window(b), Some(Bytes::new(22_920)));
    assert_eq!(rig.rapid.allocation(a), rig.rapid.allocation(b), "what waits has to be sent");
    // At its cap all of a user's windows close; they reopen at three quarters of it.
    for (waiting, open) in [(4_095, true), (4_096, false), (3_500, false), (3_072, true)] {
        rig.rapid.on_backlog(rig.now, a, kib(waiting));
        assert_eq!(rig.rapid.window(b).unwrap() > Bytes::ZERO, open, "{waiting} KiB");
    }
    rig.rapid.close(rig.now, a);
    assert_eq!(rig.rapid.backlog(), Bytes::ZERO);
}

#[test]
fn a_kernels_window_keeps_a_fourth_until_twice_the_window_waits() {
    let mut rig = Rig::new(Settings::FIELD.ticking(Span::from_millis(1)));
    let flow = rig.open(RTT);
    let wanted = rig.rapid.window(flow).unwrap();
    assert_eq!(wanted, Bytes::new(45_840 * 5 / 4 + 2 * 1_440));
    for (waiting, window) in [
        (wanted / 2, wanted / 2),
        (wanted, wanted / 4),
        (wanted * 2, wanted / 4),
        (wanted * 2 + Bytes::new(1), Bytes::ZERO),
    ] {
        rig.rapid.on_backlog(rig.now, flow, waiting);
        assert_eq!(rig.rapid.window(flow), Some(window), "{waiting} wait");
    }
    // Without radio information, too: nothing has come yet, and the least buffer counts.
    let mut rapid = Rapid::new(Settings::FIELD.ticking(Span::from_millis(1)));
    let flow = rapid.open(at(0), 1, RTT, MSS);
    for (waiting, room) in [(16, 4), (32, 4), (33, 0)] {
        rapid.on_backlog(at(0), flow, Bytes::new(waiting << 10));
        assert_eq!(rapid.room(flow), Bytes::new(room << 10), "{waiting} KiB wait");
    }
}

#[test]
fn flow_limited_by_the_user_side_is_not_slow() {
    for settings in [Settings::THESIS, Settings::FIELD] {
        let mut rig = Rig::new(settings);
        let flow = rig.open(RTT);
        // The backlog leaves 20 000 of the 45 840 B.
        let cap = |rig: &Rig| {
            let known = rig.rapid.flow(flow).unwrap();
            match settings.profile {
                Profile::Thesis => known.cap(&settings),
                Profile::Field => Bytes::new(known.wanted(&settings) as u64),
            }
        };
        let waits = cap(&rig) - Bytes::new(20_000);
        rig.rapid.on_backlog(rig.now, flow, waits);
        assert_eq!(rig.rapid.window(flow), Some(Bytes::new(20_000)));
        rig.play(at(400_000), &[(flow, 1e6)]); // 20 000 B an RTT
        assert_eq!(rig.categories(flow)[0], Category::Fast);
        // Closed for whole RTTs: nothing can arrive, and that says nothing about the server.
        let waits = cap(&rig) + Bytes::new(1);
        rig.rapid.on_backlog(rig.now, flow, waits);
        assert_eq!(rig.rapid.window(flow), Some(Bytes::ZERO));
        rig.play(at(1_200_000), &[]);
        assert!(rig.categories(flow).iter().all(|category| *category == Category::Fast));
    }
}

#[test]
fn a_server_that_does_not_know_of_its_window_yet_is_not_slow() {
    for settings in [Settings::THESIS, Settings::FIELD] {
        for (advertised, category) in [(None, Category::Slow), (Some(20_000), Category::Fast)] {
            let mut rig = Rig::new(settings);
            let flow = rig.open(RTT);
            if let Some(bytes) = advertised {
                rig.rapid.on_advertised(rig.now, flow, Bytes::new(bytes));
            }
            // What the kernel advertises is no decision: the window stays the one that is to be reached.
            assert_eq!(
                rig.rapid.window(flow),
                Some(Bytes::new(rig.rapid.flow(flow).unwrap().open(&settings) as u64))
            );
            rig.play(at(400_000), &[(flow, 1e6)]); // 20 000 B an RTT, of 45 840
            assert_eq!(rig.categories(flow)[0], category, "{advertised:?}");
        }
    }
}

#[test]
fn without_information_backlog_is_bounded_by_arrivals() {
    let mut rapid = Rapid::new(Settings::THESIS);
    let flow = rapid.open(at(0), 1, Span::from_millis(100), MSS);
    assert_eq!((rapid.window(flow), rapid.room(flow)), (None, Bytes::new(64 << 10)));
    rapid.on_backlog(at(0), flow, Bytes::new(60 << 10));
    assert_eq!(rapid.room(flow), Bytes::new(4 << 10));
    // 1 MB/s: two BDPs of 100 kB.
    for ms in 0..500 {
        rapid.on_wan_data(at(1_000 * ms), flow, Bytes::new(1_000));
        rapid.on_deadline(at(1_000 * ms));
    }
    rapid.on_backlog(at(500_000), flow, Bytes::new(90_000));
    assert!(rapid.room(flow).get().abs_diff(110_000) < 3_000, "{}", rapid.room(flow));
    // The rate decays slowly in a pause, and the minimum remains.
    for ms in 500..900 {
        rapid.on_deadline(at(1_000 * ms));
    }
    assert!(rapid.room(flow) > Bytes::new(10_000), "{}", rapid.room(flow));
    rapid.on_backlog(at(900_000), flow, Bytes::new(300_000));
    assert_eq!(rapid.room(flow), Bytes::ZERO);
    rapid.close(at(900_000), flow);
    assert_eq!(rapid.room(flow), Bytes::ZERO);
}

#[test]
fn new_flows_bypass_the_proxy_when_it_is_full() {
    let caps = Caps { total: Bytes::new(100_000), flows: 2, ..Settings::THESIS.caps };
    let mut rig = Rig::new(Settings { caps, ..Settings::THESIS });
    let a = rig.open(RTT);
    rig.rapid.on_backlog(rig.now, a, Bytes::new(100_000));
    assert!(!rig.rapid.admits());
    rig.rapid.on_backlog(rig.now, a, Bytes::new(99_999));
    assert!(rig.rapid.admits());
    rig.open(RTT);
    assert!(!rig.rapid.admits());
}

/// A sender with the allocated window in front of a link that carries slightly less than allocated: how its queue develops. The
/// published minimum follows the queue that it creates; the plain one does not.
#[test]
fn overestimated_rate_grows_the_queue_unless_rtt_is_bounded() {
    let settle = |ran_rttmin| {
        let mut rig = Rig::new(Settings { ran_rttmin, ..Settings::THESIS });
        let flow = rig.open(RTT);
        let base = 40e-3;
        let carries = 2_292_000.0 / 1.15;
        let mut rtt = base;
        for ms in 1..60_000 {
            rig.rapid.on_ran_rtt(rig.now, flow, Span::from_secs_f64(rtt));
            rig.play(at(1_000 * ms), &[(flow, 1e9)]);
            // The window is in flight; the part beyond what the link carries in a base RTT is queued.
            rtt = (rig.rapid.ran_window(flow).unwrap().as_f64() / carries).max(base);
        }
        (rtt - base) / base
    };
    for (ran_rttmin, least, most) in [
        (RanRttMin::Smoothed, 1.5, f64::INFINITY),
        (RanRttMin::Bounded, 0.6, 0.8), // 1.5 * 1.15 - 1
        (RanRttMin::Plain, 0.1, 0.2),
    ] {
        let queue = settle(ran_rttmin);
        assert!((least..=most).contains(&queue), "{ran_rttmin:?}: {queue} of a base RTT waits");
    }
}
