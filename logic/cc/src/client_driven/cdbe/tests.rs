//! Tests of CDBE's client and server alone, and of both over a FIFO.

use proptest::prelude::*;
use ranpace_units::{Bytes, Rate, Span, Time};

use super::*;
use crate::client_driven::cdbe::client::{CdbeClient, GapUnit, SampleEnd, SampleWindow, old_weight};
use crate::client_driven::reporter::Reporter;
use crate::interface::{Pacing, Received, ReceiverHalf, Signal};
use crate::options::Options;
use crate::testing::fifo::{Flow, Path};
use crate::testing::testbed;

const MS: Span = Span::from_millis(1);

fn ms(at: u64) -> Time {
    Time::from_millis(at)
}

// The client.

#[test]
fn samples_follow_equation_6_3() {
    // cdbe.md, section 5: ten packets of 1400 B, W_s = 20 ms.
    let window = Span::from_millis(20);
    let sample = |last: u64, stamps: u64, packets: u64| SampleWindow {
        arrivals: (ms(100), ms(100 + last)),
        stamps: (ms(50), ms(50 + stamps)),
        bytes: 1400 * packets,
    };
    for (case, sample, fence, next, expected) in [
        ("a packet per ms", sample(9, 9, 10), SampleEnd::Literal, 120, 12.444),
        ("all at once, sent within 3 ms", sample(0, 3, 10), SampleEnd::Literal, 120, 56.0),
        ("all at once, sent within 4 ms: held up", sample(0, 4, 10), SampleEnd::Literal, 120, 5.6),
        ("a single packet", sample(0, 0, 1), SampleEnd::Literal, 125, 5.6),
        ("a single packet, until the next", sample(0, 0, 1), SampleEnd::NextArrival, 125, 0.448),
        ("held up, until the next", sample(0, 40, 10), SampleEnd::NextArrival, 120, 5.6),
    ] {
        let found = sample.bandwidth(ms(next), window, fence) / 1e6;
        assert!((found - expected).abs() < 0.001, "{case}: {found}");
    }
}

#[test]
fn the_weight_of_the_old_report_follows_equation_6_5() {
    let window = Span::from_millis(20);
    let smoothed = |gap, unit| {
        let old = old_weight(Span::from_millis(gap), window, unit);
        old * 8.0 + (1.0 - old) * 20.0
    };
    assert!((smoothed(20, GapUnit::SampleWindows) - 15.2).abs() < 1e-9);
    assert!((smoothed(60, GapUnit::SampleWindows) - 18.588).abs() < 0.001);
    assert!((old_weight(Span::from_millis(60), window, GapUnit::Seconds) - 0.4 / 0.46).abs() < 1e-9);
    assert!((old_weight(Span::from_millis(60), window, GapUnit::Milliseconds) - 0.4 / 60.4).abs() < 1e-9);
}

fn client(fence: SampleEnd) -> CdbeClient {
    let reporter = Reporter::new(&mut Options::default()).unwrap();
    CdbeClient::new(fence, GapUnit::SampleWindows, MS, reporter)
}

fn receive(client: &mut CdbeClient, now: Time, rtt_ms: u64) {
    client.on_data(&Received {
        now,
        number: None,
        bytes: Bytes::new(1400),
        wire: Bytes::new(1452),
        sent_at: now,
        time_to_next: Span::ZERO,
        rtt: Some(Span::from_millis(rtt_ms)),
    });
}

#[test]
fn reports_start_at_1_mb_per_s_and_approach_what_arrives() {
    // 1400 B every ms, RTT 100 ms: W_s 20 ms, W_l 100 ms. The first long window gives 0.4 * 8 + 0.6 * 11.2 Mbit/s.
    let mut client = client(SampleEnd::NextArrival);
    for at in 0..100 {
        receive(&mut client, ms(at), 100);
        assert_eq!(client.estimate(), Rate::from_mbit_per_s(8), "at {at} ms");
    }
    receive(&mut client, ms(100), 100);
    assert_eq!(client.estimate(), Rate::from_bits_per_s(9_920_000));
    (101..=1000).for_each(|at| receive(&mut client, ms(at), 100));
    assert!((client.estimate().as_f64() / 1e6 - 11.2).abs() < 0.001);
}

#[test]
fn a_window_of_its_own_does_not_follow_the_rtt() {
    let mut client = client(SampleEnd::NextArrival).with_window(Span::from_millis(50));
    (0..50).for_each(|at| receive(&mut client, ms(at), 100));
    assert_eq!(client.estimate(), Rate::from_mbit_per_s(8));
    receive(&mut client, ms(50), 100);
    assert_eq!(client.estimate(), Rate::from_bits_per_s(9_920_000));
}

#[test]
fn the_literal_fence_counts_a_packet_too_many() {
    let mut client = client(SampleEnd::Literal);
    (0..=2000).for_each(|at| receive(&mut client, ms(at), 100));
    // 20 packets in 19 gaps.
    assert!((client.estimate().as_f64() / 1e6 - 11.2 * 20.0 / 19.0).abs() < 0.001);
}

#[test]
fn after_a_pause_the_open_windows_are_discarded_and_the_report_stays() {
    let mut client = client(SampleEnd::NextArrival);
    (0..=150).for_each(|at| receive(&mut client, ms(at), 100));
    let before = client.estimate();
    // The open windows contain 50 ms of data; 4 W_l later they would yield a tiny bandwidth.
    (600..=699).for_each(|at| receive(&mut client, ms(at), 100));
    assert_eq!(client.estimate(), before);
    receive(&mut client, ms(700), 100);
    // The pause since the end of the last complete long window (99 ms) gives the old report a small weight.
    let old = old_weight(Span::from_millis(501), Span::from_millis(20), GapUnit::SampleWindows);
    let expected = old * before.as_f64() + (1.0 - old) * 11.2e6;
    assert!((client.estimate().as_f64() - expected).abs() < 2.0);
}

#[test]
fn the_long_window_is_the_rtt_but_at_least_10_ms() {
    for (rtt, first) in [(50, 50), (3, 10)] {
        let mut client = client(SampleEnd::NextArrival);
        for at in 0..first * 1000 {
            let now = Time::from_nanos(at * 1_000_000);
            receive(&mut client, now, rtt);
            if client.estimate() != Rate::from_mbit_per_s(8) {
                assert_eq!(at, first, "RTT {rtt} ms");
                break;
            }
        }
    }
}

proptest! {
    #[test]
    fn any_arrival_is_accepted_without_panic(arrivals in prop::collection::vec(
        (0..500_000u64, any::<u64>(), 0..10_000_000_000u64, prop::option::of(0..5_000_000u64)), 1..200,
    )) {
        for fence in [SampleEnd::Literal, SampleEnd::NextArrival] {
            let mut client = client(fence);
            let mut now = Time::ZERO;
            for (us, sent, bytes, rtt_us) in &arrivals {
                now += Span::from_micros(*us);
                client.on_data(&Received {
                    now,
                    number: None,
                    bytes: Bytes::new(*bytes),
                    wire: Bytes::new(*bytes),
                    sent_at: Time::from_nanos(*sent),
                    time_to_next: Span::ZERO,
                    rtt: rtt_us.map(Span::from_micros),
                });
                prop_assert!(client.report(now).is_some());
                // At most all the bytes in 2 ms.
                prop_assert!(client.estimate().as_f64() < 200.0 * 1e10 * 8.0 / 0.002);
            }
        }
    }
}

// The server.

#[test]
fn the_state_table_is_that_of_figure_6_5() {
    let quiet = TransitionInputs::default();
    use State::{Drain, Grow, Normal, Startup};
    for (case, from, facts, expected) in [
        ("little in flight", Normal, TransitionInputs { flight_low: true, firm_up: true, ..quiet }, Startup),
        (
            "the same in DRAIN",
            Drain,
            TransitionInputs { flight_low: true, down_drain: true, ..quiet },
            Startup,
        ),
        ("the same in GROW", Grow, TransitionInputs { flight_low: true, up_grow: true, ..quiet }, Startup),
        (
            "the same while waiting",
            Normal,
            TransitionInputs { flight_low: true, waiting: true, ..quiet },
            Startup,
        ),
        (
            "the application is the limit",
            Normal,
            TransitionInputs { flight_low: true, app_limited: true, ..quiet },
            Normal,
        ),
        ("STARTUP does not mind", Startup, TransitionInputs { flight_low: true, ..quiet }, Startup),
        (
            "STARTUP looks at nothing else",
            Startup,
            TransitionInputs { firm_up: true, firm_down: true, ..quiet },
            Startup,
        ),
        ("end of STARTUP", Startup, TransitionInputs { startup_over: true, firm_up: true, ..quiet }, Normal),
        (
            "wait after DRAIN",
            Normal,
            TransitionInputs { waiting: true, firm_up: true, firm_down: true, ..quiet },
            Normal,
        ),
        ("firm growth", Normal, TransitionInputs { firm_up: true, ..quiet }, Drain),
        ("firm growth wins", Normal, TransitionInputs { firm_up: true, firm_down: true, ..quiet }, Drain),
        ("firm decline", Normal, TransitionInputs { firm_down: true, ..quiet }, Grow),
        ("nothing", Normal, quiet, Normal),
        ("GROW meets a queue", Grow, TransitionInputs { up_grow: true, ..quiet }, Normal),
        ("GROW goes on", Grow, TransitionInputs { firm_down: true, ..quiet }, Grow),
        ("DRAIN is done", Drain, TransitionInputs { down_drain: true, ..quiet }, Normal),
        ("DRAIN goes on", Drain, TransitionInputs { firm_up: true, ..quiet }, Drain),
        ("DRAIN has its limit", Drain, TransitionInputs { drained_long: true, ..quiet }, Normal),
    ] {
        assert_eq!(next(from, &facts), expected, "{case}");
    }
}

#[test]
fn gains_are_the_published_ones() {
    for (state, pacing, cwnd) in [
        (State::Startup, 2.885, 2.885),
        (State::Normal, 1.0, 2.0),
        (State::Drain, 0.75, 2.0),
        (State::Grow, 1.25, 2.0),
    ] {
        assert!((state.pacing_gain() - pacing).abs() < 0.0005, "{state:?}");
        assert!((state.cwnd_gain() - cwnd).abs() < 0.0005, "{state:?}");
    }
}

#[test]
fn delays_are_judged_as_in_section_6_4_2() {
    // cdbe.md, section 5; in ms, DSDL_min 55.
    let judged = |before: f64, mean: f64| {
        let delays = Delays { mean, before: Some(before), min: 55.0, entered: None, above_min: BETA };
        (delays.up(), delays.jumped(), delays.down(), delays.fell())
    };
    assert_eq!(judged(60.0, 67.0), (true, false, false, false));
    assert_eq!(judged(60.0, 75.0), (true, true, false, false));
    assert_eq!(judged(60.0, 60.0), (false, false, true, false));
    assert_eq!(judged(61.0, 62.0), (false, false, false, false));
    // Above 1.25 DSDL_min is growth whatever came before; a decrease by a quarter is a firm decline.
    assert_eq!(judged(100.0, 74.0), (true, false, true, true));
    let first = Delays { mean: 60.0, before: None, min: 55.0, entered: Some(48.0), above_min: BETA };
    assert!(first.down() && !first.up() && first.up_grow());
    assert!(Delays { mean: 66.0, entered: Some(88.0), ..first }.down_drain());
    assert!(!Delays { mean: 67.0, entered: Some(88.0), ..first }.down_drain());
    // 62 ms are a tenth above DSDL_min, but not a quarter.
    let above = Delays { mean: 62.0, ..first };
    assert!(!above.up() && Delays { above_min: ALPHA, ..above }.up());
}

/// A server that receives TWs of constant delay.
struct Rig {
    server: CdbeServer,
    cx: Context,
    w: Window,
}

const MIN_RTT: Span = Span::from_millis(100);

impl Rig {
    fn new(params: Params) -> Self {
        let mut rig = Self {
            server: CdbeServer::new(Format::V1, Unit::Payload, params),
            cx: testbed::context(Time::ZERO),
            w: Window::new(10.0),
        };
        (rig.cx.min_rtt, rig.cx.in_flight) = (MIN_RTT, 1_000_000);
        rig.server.on_start(&rig.cx, &mut rig.w);
        rig
    }

    fn literal() -> Self {
        Self::new(Params { pinned: false, ..Params::default() })
    }

    fn ack(&mut self, delay: Option<Span>) {
        let sample = Sample { one_way: delay, ..testbed::sample(MIN_RTT) };
        self.server.on_sample(&self.cx, &mut self.w, &sample);
        self.server.on_ack(&self.cx, &mut self.w, &testbed::ack(1, MIN_RTT));
    }

    /// Evaluates a TW of this delay.
    fn window(&mut self, delay_ms: u64) -> State {
        for _ in 0..10 {
            self.ack(Some(Span::from_millis(delay_ms)));
            self.cx.now += MIN_RTT / 10;
        }
        // The first ACK after it belongs to the next TW and has no timestamp.
        self.ack(None);
        self.server.state
    }

    fn windows(&mut self, delays_ms: &[u64]) -> Vec<State> {
        delays_ms.iter().map(|delay| self.window(*delay)).collect()
    }

    fn report(&mut self, mbit: f64) {
        let rate = Rate::from_bits_per_s_f64(mbit * 1e6);
        self.server.on_report(&self.cx, &mut self.w, &Format::V1.encode(rate));
    }

    /// Leaves STARTUP, with a first TW of 60 ms and DSDL_min of 55 ms.
    fn normal(mut self) -> Self {
        self.report(10.0);
        self.ack(Some(Span::from_millis(55)));
        while self.server.state == State::Startup {
            self.window(62);
        }
        assert_eq!((self.server.ups, self.server.downs), (0, 0));
        self
    }
}

#[test]
fn startup_ends_when_the_bandwidth_no_longer_grows() {
    let ended = |bandwidths: &[f64]| {
        let mut rig = Rig::literal();
        bandwidths.iter().position(|mbit| {
            rig.report(*mbit);
            rig.window(55) != State::Startup
        })
    };
    assert_eq!(ended(&[10.0, 10.5, 11.0]), Some(2), "5 % and 4.8 %");
    assert_eq!(ended(&[10.0, 10.5, 12.0, 12.1, 12.2]), Some(4), "growth in between");
    assert_eq!(ended(&[10.0, 9.0, 8.0]), Some(2), "decline is no growth");
    let doubling: Vec<f64> = (0..20).map(|n| 0.1 * f64::from(1 << n)).collect();
    assert_eq!(ended(&doubling), Some(9), "10 evaluations at most");
}

#[test]
fn startup_count_and_obvious_growth_are_options() {
    let build = |text: &str| {
        let option = text.split_once('=').map(|(key, value)| (key.to_owned(), Some(value.to_owned())));
        crate::client_driven::cdbe::server_params(&mut Options::new(option)).unwrap()
    };
    assert_eq!(build(""), Params::default());
    assert_eq!(build("growth=alpha"), Params { growth: Growth::Alpha, ..Params::default() });
    let mut rig = Rig::new(Params { pinned: false, ..build("startup=2") });
    rig.report(1.0);
    assert_eq!(rig.window(55), State::Startup);
    rig.report(2.0);
    assert_eq!(rig.window(55), State::Normal, "although it doubles");
}

#[test]
fn without_timestamps_startup_ends_and_nothing_else_happens() {
    let mut rig = Rig::literal();
    for _ in 0..100 {
        rig.cx.now += MIN_RTT;
        rig.ack(None);
    }
    assert_eq!(rig.server.state, State::Normal);
    assert_eq!(rig.server.mean, None);
}

#[test]
fn the_machine_takes_the_published_ways() {
    use State::{Drain, Grow, Normal};
    for (case, delays, expected) in [
        ("one growth is not firm", &[69, 69][..], &[Normal, Drain][..]),
        ("a jump is", &[78], &[Drain]),
        (
            "small delays twice: probe until there is a queue",
            &[60, 60, 60, 60, 69],
            &[Normal, Grow, Grow, Grow, Normal],
        ),
        ("and one more growth is firm", &[60, 60, 69, 76], &[Normal, Grow, Normal, Drain]),
        (
            "growth against where GROW began",
            &[60, 57, 60, 63, 66, 68, 71],
            &[Normal, Grow, Grow, Grow, Grow, Grow, Normal],
        ),
        ("after DRAIN wait, then judge anew", &[78, 60, 78, 78], &[Drain, Normal, Normal, Drain]),
        ("a small delay in the wait counts", &[78, 60, 60, 60], &[Drain, Normal, Normal, Grow]),
        ("in the band nothing", &[62, 63, 62, 64], &[Normal; 4]),
    ] {
        assert_eq!(Rig::literal().normal().windows(delays), expected, "{case}");
    }
}

#[test]
fn little_in_flight_starts_again_for_three_evaluations_at_most() {
    let mut rig = Rig::literal().normal();
    rig.cx.in_flight = 10;
    rig.cx.app_limited = true;
    assert_eq!(rig.window(62), State::Normal, "the application is the limit");
    rig.cx.app_limited = false;
    assert_eq!(rig.window(62), State::Startup);
    rig.cx.in_flight = 1_000_000;
    for (mbit, expected) in [(20.0, State::Startup), (40.0, State::Startup), (80.0, State::Normal)] {
        rig.report(mbit);
        assert_eq!(rig.window(62), expected, "{mbit} Mbit/s");
    }
    // Half of the BDP: 80 Mbit/s * 100 ms / 8 / 1448 B / 2 = 345.3 segments.
    for (in_flight, expected) in [(346, State::Normal), (345, State::Startup)] {
        rig.cx.in_flight = in_flight;
        assert_eq!(rig.window(62), expected, "{in_flight} in flight");
    }
}

#[test]
fn little_in_flight_may_be_asked_to_start_again_only_after_an_application_limit() {
    let mut rig = Rig::literal().normal();
    rig.server.params.restart = Restart::AfterLimit;
    rig.cx.in_flight = 10;
    assert_eq!(rig.window(62), State::Normal, "the network holds less than is reported");
    rig.cx.app_limited = true;
    assert_eq!(rig.window(62), State::Normal, "the application is the limit");
    rig.cx.app_limited = false;
    assert_eq!(rig.window(62), State::Startup, "it was");
    let mut rig = Rig::literal().normal();
    rig.server.params.restart = Restart::AfterLimit;
    rig.cx.app_limited = true;
    rig.window(62);
    (rig.cx.app_limited, rig.cx.in_flight) = (false, 1_000_000);
    rig.window(62);
    rig.cx.in_flight = 10;
    assert_ne!(rig.window(62), State::Startup, "the flight was large since");
}

#[test]
fn a_lower_report_counts_unless_the_application_is_the_limit() {
    let mut rig = Rig::literal();
    rig.cx.app_limited = true;
    rig.report(5.0);
    assert_eq!(rig.server.pipe.bandwidth, Rate::from_mbit_per_s(5), "the first report always does");
    rig.report(4.0);
    assert_eq!(rig.server.pipe.bandwidth, Rate::from_mbit_per_s(5));
    rig.report(6.0);
    assert_eq!(rig.server.pipe.bandwidth, Rate::from_mbit_per_s(6));
    rig.cx.app_limited = false;
    rig.report(4.0);
    assert_eq!(rig.server.pipe.bandwidth, Rate::from_mbit_per_s(4));
}

#[test]
fn longer_path_traps_dsdl_min_and_the_cap_resolves_it() {
    // cdbe.md, section 3.5: the delay without a queue rises by 40 % permanently.
    let mut rig = Rig::literal().normal();
    assert!(rig.windows(&[87; 100]).iter().all(|state| *state == State::Drain));
    assert!((rig.server.drained.as_secs_f64() - 9.9).abs() < 0.11, "{}", rig.server.drained);
    let params = Params { pinned: false, drain_cap: 8, ..Params::default() };
    let mut rig = Rig::new(params).normal();
    let states = rig.windows(&[87; 12]);
    assert!(states[..8].iter().all(|state| *state == State::Drain));
    assert_eq!(states[8..], [State::Normal, State::Normal, State::Grow, State::Grow]);
    assert_eq!(rig.server.smallest(), 0.087);
}

#[test]
fn the_smallest_delay_may_rise_after_drain() {
    for (after_drain, expected) in [(false, 0.055), (true, 0.066)] {
        let mut rig = Rig::new(Params { pinned: false, after_drain, ..Params::default() }).normal();
        assert_eq!(rig.windows(&[100, 66, 66]), [State::Drain, State::Normal, State::Normal]);
        assert_eq!(rig.server.smallest(), expected);
    }
    // Not if it returned to within a tenth.
    let mut rig = Rig::new(Params { pinned: false, after_drain: true, ..Params::default() }).normal();
    rig.windows(&[100, 66, 60]);
    assert_eq!(rig.server.smallest(), 0.055);
}

#[test]
fn the_smallest_delay_may_be_forgotten() {
    let params = Params { pinned: false, min_window: Span::from_secs(2), ..Params::default() };
    let mut rig = Rig::new(params).normal();
    rig.windows(&[60; 15]);
    assert_eq!(rig.server.smallest(), 0.055);
    rig.windows(&[60; 30]);
    assert_eq!(rig.server.smallest(), 0.06);
}

#[test]
fn delays_are_counted_in_ticks_and_pinned_where_clocks_differ() {
    let mut rig = Rig::literal();
    rig.ack(Some(Span::from_micros(55_999)));
    assert_eq!(rig.server.smallest(), 0.055);
    let exact = Params { pinned: false, granularity: Span::ZERO, ..Params::default() };
    let mut rig = Rig::new(exact);
    rig.ack(Some(Span::from_micros(55_999)));
    assert!((rig.server.smallest() - 0.055_999).abs() < 1e-12);
    // Clocks an hour apart: the smallest delay is half of RTT_min, and is adjusted when RTT_min changes.
    let hour = 3_600_000;
    let mut rig = Rig::new(Params::default());
    rig.ack(Some(Span::from_millis(hour)));
    rig.window(hour + 20);
    assert!((rig.server.smallest() - 0.05).abs() < 1e-9);
    assert!((rig.server.mean.unwrap() + rig.server.shift() - 0.0682).abs() < 1e-4);
    rig.server.on_sample(&rig.cx, &mut rig.w, &testbed::sample(Span::from_millis(80)));
    assert!((rig.server.smallest() - 0.04).abs() < 1e-9);
    assert!((rig.server.mean.unwrap() + rig.server.shift() - 0.0582).abs() < 1e-4);
}

#[test]
fn a_timeout_lasts_until_the_next_report_and_not_until_the_next_evaluation() {
    let mut rig = Rig::literal().normal();
    let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..testbed::loss() };
    let before = rig.w;
    assert_eq!(rig.server.on_congestion(&rig.cx, &mut rig.w, &testbed::loss()), LossResponse::Own);
    assert_eq!(rig.w, before);
    assert_eq!(rig.server.on_congestion(&rig.cx, &mut rig.w, &timeout), LossResponse::Own);
    rig.window(62);
    assert_eq!(rig.w.cwnd, 1.0);
    rig.report(10.0);
    assert_eq!(rig.w, before);
}

proptest! {
    /// The gains are those of a state, and the pace is never below its floor.
    #[test]
    fn gains_and_pace_stay_within_what_is_stated(
        pinned in any::<bool>(),
        drain_cap in 0..5u32,
        steps in prop::collection::vec(
            (0..300_000u64, prop::option::of(0..400_000u64), 1..500_000u64, any::<u32>(), 0..2000u64, any::<bool>()),
            1..300,
        ),
    ) {
        let mut rig = Rig::new(Params { pinned, drain_cap, after_drain: pinned, ..Params::default() });
        for (wait_us, delay_us, rtt_us, report, in_flight, app_limited) in steps {
            rig.cx.now += Span::from_micros(wait_us);
            (rig.cx.in_flight, rig.cx.app_limited) = (in_flight, app_limited);
            rig.server.on_report(&rig.cx, &mut rig.w, &ReceiverReport::new(&report.to_be_bytes()).unwrap());
            let rtt = Span::from_micros(rtt_us);
            let one_way = delay_us.map(Span::from_micros);
            rig.server.on_sample(&rig.cx, &mut rig.w, &Sample { one_way, ..testbed::sample(rtt) });
            rig.server.on_ack(&rig.cx, &mut rig.w, &testbed::ack(1, rtt));
            rig.server.apply(&rig.cx, &mut rig.w);
            let mut figures = std::collections::BTreeMap::new();
            rig.server.inspect(&mut |name, value| { figures.insert(name, value); });
            prop_assert!([HIGH_GAIN, 1.0, 0.75, 1.25].contains(&figures["pacing_gain"]));
            prop_assert!([HIGH_GAIN, 2.0].contains(&figures["cwnd_gain"]));
            prop_assert!(figures.values().all(|value| value.is_finite()), "{figures:?}");
            let floor = figures["bw_bit_s"].max(8.0 * 1448.0 / figures["min_rtt_s"]) * 1500.0 / 1448.0;
            let Pacing::Rate(pace) = rig.w.pacing else { panic!("no pace") };
            prop_assert!(pace.as_f64() + 1.0 > figures["pacing_gain"] * floor);
            prop_assert!(rig.w.cwnd >= 4.0);
        }
    }
}

// Both over a FIFO. cdbe.md, section 4, has the results of a prototype model, quoted below as "Prototype".

#[test]
fn alone_it_uses_the_link_with_little_delay_and_goes_round_its_states() {
    for dsdl in ["true", "pinned"] {
        let name = format!("cdbe:guard=off:dsdl={dsdl}");
        let mut flow = Flow::new(Path::new(20.0, 100, 10_000), &name, 1);
        flow.run(Time::from_secs(5));
        let mut seen = [0; 4];
        let from = flow.delivered;
        flow.run_with(Time::from_secs(25), &mut |flow| seen[flow.figure("state") as usize] += 1);
        let used = (flow.delivered - from) as f64 * 12_000.0 / 20.0 / 20e6;
        let delay = flow.mean_delay(Time::from_secs(5), Time::from_secs(25));
        // Prototype: 18.7 Mbit/s, mean RTT 111 ms.
        assert!(used > 0.9, "{dsdl}: {used}, {delay} s");
        assert!(delay < 0.025, "{dsdl}: {used}, {delay} s");
        assert!(seen[1..].iter().all(|times| *times > 100), "{dsdl}: {seen:?}");
    }
}

#[test]
fn it_follows_a_link_that_gets_faster_and_slower() {
    // Prototype: 92 to 95 % within 4 s of every rise; after 80 -> 5 Mbit/s the RTT is back within 6 s.
    let path =
        Path::new(5.0, 80, 700).then(10, 10.0).then(20, 20.0).then(30, 50.0).then(40, 80.0).then(50, 5.0);
    let mut flow = Flow::new(path, "cdbe:guard=off:dsdl=true", 1);
    for (rise, mbit) in [(0, 5.0), (10, 10.0), (20, 20.0), (30, 50.0), (40, 80.0)] {
        flow.run(Time::from_secs(rise + 4));
        let used = flow.utilisation_until(Time::from_secs(rise + 10));
        assert!(used > 0.88, "{mbit} Mbit/s: {used}");
    }
    flow.run(Time::from_secs(65));
    let delay = flow.mean_delay(Time::from_secs(57), Time::from_secs(65));
    assert!(delay < 0.04, "{delay} s");
}

#[test]
fn the_literal_fence_keeps_a_queue_on_slow_links() {
    // Prototype: mean RTT of 291 ms against 138 at 0.5 Mbit/s, 144 against 120 at 2, RTT without a queue 100 ms.
    for (mbit, literal, next_arrival) in [(0.5, 0.100..0.400, 0.0..0.080), (2.0, 0.025..0.120, 0.0..0.035)] {
        for (fence, range) in [("literal", literal), ("next_arrival", next_arrival)] {
            let name = format!("cdbe:guard=off:dsdl=true:fence={fence}");
            let mut flow = Flow::new(Path::new(mbit, 100, 10_000), &name, 1);
            flow.run(Time::from_secs(60));
            let delay = flow.mean_delay(Time::from_secs(20), Time::from_secs(60));
            assert!(range.contains(&delay), "{mbit} Mbit/s, {fence}: {delay} s");
        }
    }
}
