//! Windows by the rules of the text, of the authors' ns-3 code and of their Linux module.

use super::*;

/// One flow alone of a user of some radio technology.
fn alone(settings: Settings, info: CellInfo) -> (Rapid, FlowId) {
    let mut rapid = Rapid::new(settings);
    let hint =
        RadioHint { granted: f64::from(info.prbs), mcs: 15, active_users: 1, ..RadioHint::of(info, at(0)) };
    let flow = rapid.open(at(0), 1, RTT, MSS);
    rapid.on_radio(at(0), 1, &hint);
    rapid.on_ran_rtt(at(0), flow, Span::from_millis(2));
    (rapid, flow)
}

#[test]
fn the_allowance_for_scheduling_requests_is_that_of_the_technology() {
    let lte = CellInfo::lte(0, LteBandwidth::Mhz5);
    let mmwave = CellInfo { technology: Technology::Mmwave, slot: Span::from_micros(125), ..lte };
    let nr = CellInfo { technology: Technology::Nr { qam256: true }, slot: Span::from_micros(500), ..lte };
    // Two periods: 16 ms on LTE, as in the authors' setup; two slots where every slot has a request.
    for (info, us) in [(lte, 18_000), (nr, 10_000), (mmwave, 2_250)] {
        let (rapid, flow) = alone(Settings::FIELD, info);
        assert_eq!(rapid.look(at(0), flow).unwrap().ran_rtt_min, Some(Span::from_micros(us)), "{info:?}");
        let (rapid, flow) = alone(Settings::THESIS, info);
        assert_eq!(rapid.look(at(0), flow).unwrap().ran_rtt_min, Some(Span::from_millis(2)));
    }
    // A handover to a cell of another technology.
    let (mut rapid, flow) = alone(Settings::FIELD, lte);
    rapid.on_radio(at(1_000), 1, &RadioHint::of(CellInfo { cell: 7, ..mmwave }, at(1_000)));
    assert_eq!(rapid.look(at(1_000), flow).unwrap().ran_rtt_min, None, "the RTT was the old cell's");
    rapid.on_ran_rtt(at(1_000), flow, Span::from_millis(2));
    assert_eq!(rapid.look(at(1_000), flow).unwrap().ran_rtt_min, Some(Span::from_micros(2_250)));
}

#[test]
fn flows_of_a_nearby_server_get_their_share_from_a_carrier_that_ticks() {
    // Each of three flows has 764 kB/s; for 1 ms that is less than two segments.
    for (settings, rtt_ms, window, rate) in [
        (Settings::THESIS, 1, 2_880, 8 * 2_880_000),
        (Settings::THESIS.ticking(Span::from_millis(1)), 1, 7_640, 8 * 764_000),
        (Settings::THESIS.ticking(Span::from_millis(1)), 20, 15_280, 8 * 764_000),
    ] {
        let mut rig = Rig::new(settings);
        let flows = [(); 3].map(|()| rig.open(Span::from_millis(rtt_ms)));
        for flow in flows {
            rig.rapid.on_wan_rtt(rig.now, flow, Span::from_millis(rtt_ms));
            near(rig.window(flow), f64::from(window));
            assert_eq!(rig.rapid.allocation(flow), Some(Rate::from_bits_per_s(rate)), "{rtt_ms} ms");
        }
    }
}

#[test]
fn in_the_authors_code_both_windows_are_one_for_both_rtts_in_whole_milliseconds() {
    let settings = Settings { window: WindowRule::Whole, ran_rttmin: RanRttMin::Plain, ..Settings::THESIS };
    for (wan, ran, ms) in [(1_000, 500, 3), (500, 800, 3), (8_000, 500, 9), (2_000, 4_000, 6)] {
        let mut rig = Rig::new(settings);
        let flows = [(); 2].map(|()| rig.open(Span::from_micros(wan)));
        for flow in flows {
            rig.rapid.on_ran_rtt(rig.now, flow, Span::from_micros(ran));
        }
        // Half of 2 292 000 B/s each, for that long.
        let expected = (1_146 * ms).max(2 * MSS.get());
        for flow in flows {
            near(rig.window(flow), expected as f64);
            let least = 10 * MSS.get();
            assert_eq!(rig.rapid.ran_window(flow).unwrap().get(), expected.max(least), "{wan}, {ran}");
        }
    }
    // The server has sent everything, and payload waits: the window stays until the backlog is gone.
    let mut rig = Rig::new(Settings { ran_floor: 1, ..settings });
    let flow = rig.open(RTT);
    rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(30));
    rig.play(at(500_000), &[(flow, 1e9)]);
    rig.rapid.on_backlog(rig.now, flow, Bytes::new(10_000));
    let before = rig.window(flow);
    rig.play(at(1_500_000), &[]);
    assert_eq!((rig.window(flow), rig.rapid.ran_window(flow)), (before, Some(Bytes::new(before as u64))));
    rig.rapid.on_backlog(rig.now, flow, Bytes::ZERO);
    rig.play(at(2_200_000), &[]);
    assert!(rig.window(flow) < before, "nothing waits any more");
}

#[test]
fn in_the_authors_ns_3_code_a_server_is_told_whole_multiples_of_16_kib() {
    let settings = Settings { window: WindowRule::Whole, ran_rttmin: RanRttMin::Plain, ..Settings::THESIS };
    // 2 292 000 B/s for both RTTs: 9 ms are 20 628 B, 30 ms 68 760 B. The user's side has them as they are.
    for (wan, ran, told) in [(2, 1, 1), (8, 1, 1), (8, 22, 4)] {
        let mut rig = Rig::new(Settings { ran_floor: 1, ..settings });
        let flow = rig.open(Span::from_millis(wan));
        rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(ran));
        assert_eq!(rig.rapid.window(flow), Some(Bytes::new(told * 16_384)), "{wan}, {ran}");
        assert_eq!(rig.rapid.ran_window(flow), Some(Bytes::new(2_292 * (wan + ran))));
    }
}

#[test]
fn the_authors_linux_module_shifts_where_the_text_divides() {
    let allowance = RttMargin::Fixed(Span::from_millis(16));
    let settings = Settings {
        window: WindowRule::Module,
        ran_rttmin: RanRttMin::Plain,
        sr_allowance: allowance,
        ..Settings::THESIS
    };
    // 2 292 000 B/s for 20 ms. Towards the user 27 and 16 ms: log2 of 43 000 us is 15, of 20 000 us 14, so that the window is four
    // times that, counted in segments of 1024 B.
    for (flows, share, segments) in
        [(1, 45_840, 179), (2, 22_920, 89), (3, 11_460, 44), (4, 11_460, 44), (8, 5_730, 22)]
    {
        let mut rig = Rig::new(settings);
        let flows: Vec<FlowId> = (0..flows).map(|_| rig.open(RTT)).collect();
        for flow in &flows {
            rig.rapid.on_ran_rtt(rig.now, *flow, Span::from_millis(27));
            assert_eq!(rig.rapid.window(*flow), Some(Bytes::new(share)));
            assert_eq!(rig.rapid.ran_window(*flow), Some(MSS * segments));
        }
    }
    // At least two segments for the server, 2880 B; for the user 2^(1 + 14 - 9) times that, 180 segments: log2 of 17 000 us is 14,
    // too.
    let mut rig = Rig::new(settings);
    let flows = [(); 2].map(|()| rig.open(Span::from_millis(1)));
    rig.rapid.on_ran_rtt(rig.now, flows[0], Span::from_millis(1));
    assert_eq!(rig.rapid.window(flows[0]), Some(Bytes::new(2_880)));
    assert_eq!(rig.rapid.ran_window(flows[0]), Some(MSS * 180));
}
