use super::*;
use crate::client_driven::bw_report::Format;
use crate::interface::Sample;
use crate::testing::fifo::{Flow, MSS, Path, WIRE};
use proptest::prelude::*;
use ranpace_units::Bytes;

const RTT: Span = Span::from_millis(60);

fn control(options: &str) -> Cdbev2 {
    let given = options.split(':').filter(|part| !part.is_empty()).map(|part| {
        let (key, value) = part.split_once('=').unwrap();
        (key.to_owned(), Some(value.to_owned()))
    });
    Cdbev2::new(Settings::parse(&mut Options::new(given)).unwrap(), 1)
}

/// A connection with 100 segments in flight.
fn context(now_ms: u64) -> Context {
    Context {
        in_flight: 100,
        next_packet: 100,
        min_rtt: Span::from_millis(1), // the handshake's, which must not be used
        srtt: RTT,
        ..crate::testing::testbed::context(Time::from_millis(now_ms))
    }
}

/// An acknowledgement of two segments, with a report in Mbit/s.
fn acknowledge(
    control: &mut Cdbev2,
    cx: &Context,
    rtt: Span,
    one_way: Option<Span>,
    report: Option<f64>,
) -> Window {
    let mut w = Window::new(10.0);
    if let Some(mbit) = report {
        let report = Format::ThesisV2.encode(Rate::from_bits_per_s_f64(mbit * 1e6));
        control.on_report(cx, &mut w, &report);
    }
    let bytes = cx.mss * 2;
    let sample = Sample { delivered: 2, bytes, rtt: Some(rtt), one_way, in_flight_at_send: 100 };
    control.on_sample(cx, &mut w, &sample);
    control.on_ack(cx, &mut w, &crate::testing::testbed::ack(2, rtt));
    w
}

/// A control in a state, with a record of 60 ms and 20 Mbit/s everywhere.
fn in_state(options: &str, mode: Mode) -> Cdbev2 {
    let mut control = control(options);
    let cx = context(0);
    control.on_start(&cx, &mut Window::new(10.0));
    acknowledge(&mut control, &cx, RTT, Some(RTT / 2), None);
    (control.bw_filt, control.bw_max, control.bw_ref, control.bw_before_grow) = (20e6, 20e6, 20e6, 20e6);
    control.mode = mode;
    control
}

#[test]
fn startup_ends_at_the_fifth_growing_rtt_above_a_threshold() {
    let ms = Span::from_millis;
    // BW_max is 20 Mbit/s: Thres2 is 50 ms. RTT_min 60 ms, smallest delay 20 ms (pinned: 30 ms).
    for (case, options, excess, growing, acks, expected) in [
        ("Thres1, true clocks: 40 ms", "dsdl=true", 41, true, 5, Mode::Drain),
        ("one less", "dsdl=true", 41, true, 4, Mode::Startup),
        ("at the threshold", "dsdl=true", 40, true, 5, Mode::Startup),
        ("Thres2 is the smaller one: 50 ms of 60 ms", "", 51, true, 5, Mode::Drain),
        ("at Thres2", "", 50, true, 5, Mode::Startup),
        ("RTT does not grow: a burst", "", 51, false, 50, Mode::Startup),
        ("Thres1 by the RTT: 120 ms, so Thres2 rules", "thres1=rtt:dsdl=true", 50, true, 5, Mode::Startup),
    ] {
        let mut control = control(options);
        let cx = context(0);
        control.on_start(&cx, &mut Window::new(10.0));
        acknowledge(&mut control, &cx, RTT, Some(ms(20)), Some(20.0));
        for i in 1..=acks {
            assert_eq!(control.mode, Mode::Startup, "{case}");
            let rtt = if growing { ms(60 + i) } else { ms(200 - i) };
            // ACKs in between do not change the counters.
            acknowledge(&mut control, &cx, ms(60), Some(ms(20)), None);
            if !growing {
                control.previous_rtt = ms(500);
            }
            acknowledge(&mut control, &cx, rtt, Some(ms(20 + excess)), None);
        }
        assert_eq!(control.mode, expected, "{case}");
    }
}

#[test]
fn startup_without_timestamps_goes_by_the_rtt() {
    let mut control = in_state("", Mode::Startup);
    for i in 0..5 {
        assert_eq!(control.mode, Mode::Startup);
        acknowledge(&mut control, &context(1), Span::from_millis(111 + i), None, None);
    }
    assert_eq!(control.mode, Mode::Drain);
}

#[test]
fn startup_ends_with_recovery_and_on_a_plateau() {
    for (state, expected) in [
        (State::Open, Mode::Startup),
        (State::Disorder, Mode::Startup),
        (State::Cwr, Mode::Startup),
        (State::Recovery, Mode::Drain),
        (State::Loss, Mode::Drain),
    ] {
        let mut control = in_state("", Mode::Startup);
        acknowledge(&mut control, &Context { state, ..context(1) }, RTT, Some(RTT / 2), None);
        assert_eq!(control.mode, expected, "{state:?}");
    }
    let plateau = |report: fn(u64) -> Option<f64>, app_limited| {
        let mut control = control("");
        let cx = context(0);
        control.on_start(&cx, &mut Window::new(10.0));
        (1..=20u64).find(|round| {
            let cx = Context { app_limited, ..context(60 * round) };
            acknowledge(&mut control, &cx, RTT, Some(RTT / 2), report(*round));
            control.mode == Mode::Drain
        })
    };
    // The first round's report is above the initial 1 Mbit/s and counts as growth.
    assert_eq!(plateau(|_| Some(2.0), false), Some(4));
    assert_eq!(plateau(|round| Some(1.25f64.powi(round as i32)), false), None);
    assert_eq!(plateau(|round| Some(1.24f64.powi(round as i32)), false), Some(3));
    assert_eq!(
        plateau(|round| (round % 2 == 0).then_some(2.0), false),
        Some(8),
        "rounds with a report count"
    );
    assert_eq!(plateau(|_| Some(2.0), true), None, "the application has nothing to send");
}

#[test]
fn the_bandwidth_in_use_is_the_largest_report_where_it_is_needed() {
    let cases = [
        (Mode::Startup, State::Open, 30e6),
        (Mode::Grow, State::Open, 30e6),
        (Mode::Drain, State::Open, 20e6),
        (Mode::Steady, State::Open, 20e6),
        (Mode::DeepFirst, State::Disorder, 20e6),
        (Mode::Pause, State::Cwr, 20e6),
        (Mode::DeepSecond, State::Open, 20e6),
        (Mode::Drain, State::Recovery, 30e6),
        (Mode::Steady, State::Loss, 30e6),
    ];
    for (mode, state, expected) in cases {
        let mut control = in_state("", mode);
        control.bw_max = 30e6;
        assert_eq!(control.bandwidth(state), expected, "{mode:?} {state:?}");
    }
}

#[test]
fn recovery_is_read_in_three_ways() {
    // Largest report of the last cycle, of this one, and filtered; expected: bandwidth in recovery, filter after a report of
    // 10 Mbit/s.
    for (options, used, filtered) in
        [("recovery=running", 30e6, false), ("recovery=assigned", 20e6, true), ("recovery=last", 40e6, false)]
    {
        let mut control = in_state(options, Mode::Drain);
        (control.bw_last, control.bw_max, control.bw_filt) = (40e6, 30e6, 20e6);
        assert_eq!(control.bandwidth(State::Recovery), used, "{options}");
        assert_eq!(control.bandwidth(State::Open), 20e6, "{options}");
        let cx = Context { state: State::Recovery, ..context(1) };
        control.take_report(&cx, 10e6);
        assert_eq!(control.bw_filt == 30e6, filtered, "{options}: {}", control.bw_filt);
        control.take_report(&context(2), 10e6);
        assert!(control.bw_filt < 30e6, "{options}: filtered again");
    }
    let mut control = in_state("", Mode::Grow);
    control.bw_max = 30e6;
    control.enter(&context(3), Mode::Drain, Span::from_millis(60), 0.0);
    assert_eq!(control.bw_last, 30e6, "a cycle ends where DRAIN begins");
}

#[test]
fn pace_and_window_are_the_published_ones_for_payload() {
    let mut control = in_state("", Mode::Steady);
    control.steady_for = Span::SECOND;
    let w = acknowledge(&mut control, &context(1), RTT, None, None);
    // Eq. 7.2: a segment of 1448 B every 8 * 1448 / 20 Mbit/s, and Eq. 7.3: 2 * 150 000 B.
    let Pacing::Rate(rate) = w.pacing else { panic!("not paced") };
    let gap = rate.time_for(Bytes::new(WIRE)).as_secs_f64();
    assert!((gap - 8.0 * MSS as f64 / 20e6).abs() < 1e-8, "{gap}");
    assert!((w.cwnd * MSS as f64 - 300_000.0).abs() < 1e-3, "{w:?}");
    // Eq. 7.4 and the floor of four segments.
    (control.bw_filt, control.bw_max) = (50e3, 50e3);
    let w = acknowledge(&mut control, &context(2), RTT, None, None);
    assert_eq!(w.pacing, Pacing::Rate(Rate::from_bits_per_s_f64(300e3 * WIRE as f64 / MSS as f64)));
    assert_eq!(w.cwnd, 4.0);
}

#[test]
fn a_report_is_filtered_with_the_weight_of_the_smallest_rtt() {
    for (options, beta) in
        [("", 0.3187), ("k=2", 0.1746), ("tw=60ms", 0.9), ("tw=10ms:report-every=2", 0.5358)]
    {
        let mut control = in_state(options, Mode::Steady);
        control.steady_for = Span::SECOND;
        acknowledge(&mut control, &context(1), RTT, None, Some(30.0));
        assert!((control.bw_filt - (20e6 + beta * 10e6)).abs() < 1e3, "{options}: {}", control.bw_filt);
        assert_eq!(control.bw_max, 30e6);
    }
    let mut startup = in_state("", Mode::Startup);
    acknowledge(&mut startup, &context(1), RTT, None, Some(10.0));
    assert_eq!((startup.bw_filt, startup.bw_max), (20e6, 20e6), "STARTUP does not filter");
    let mut idle = in_state("", Mode::Steady);
    idle.steady_for = Span::SECOND;
    let cx = Context { app_limited: true, ..context(1) };
    acknowledge(&mut idle, &cx, RTT, None, Some(10.0));
    assert_eq!(idle.bw_filt, 20e6, "the application had nothing to send");
    acknowledge(&mut idle, &cx, RTT, None, Some(30.0));
    assert!(idle.bw_filt > 20e6);
}

#[test]
fn of_two_reports_before_an_acknowledgement_both_count() {
    let mut control = in_state("", Mode::Steady);
    control.steady_for = Span::SECOND;
    let first = Format::ThesisV2.encode(Rate::from_mbit_per_s(40));
    control.on_report(&context(1), &mut Window::new(10.0), &first);
    acknowledge(&mut control, &context(1), RTT, None, Some(20.0));
    assert_eq!(control.bw_max, 40e6);
    assert!(control.bw_filt > 20e6);
}

#[test]
fn only_full_segments_update_min_rtt() {
    let mut control = in_state("", Mode::Steady);
    let mut w = Window::new(10.0);
    let rtt = Some(Span::from_millis(50));
    let small =
        Sample { delivered: 2, bytes: Bytes::new(2 * MSS - 1), rtt, one_way: None, in_flight_at_send: 2 };
    control.on_sample(&context(1), &mut w, &small);
    assert_eq!(control.rtt_min, RTT);
    control.on_sample(&context(1), &mut w, &Sample { bytes: Bytes::new(2 * MSS), ..small });
    assert_eq!(control.rtt_min, Span::from_millis(50));
    control.on_path_change(&context(2), &mut w);
    control.on_sample(&context(2), &mut w, &Sample { bytes: Bytes::new(2 * MSS), rtt: Some(RTT), ..small });
    assert_eq!(control.rtt_min, RTT, "another path");
}

#[test]
fn the_reference_of_drain_is_what_was_asked_for() {
    // From GROW: 20 Mbit/s before it, 22 at its end, 25 the largest; then reports of 30 Mbit/s.
    for (options, at_entry, later) in [
        ("drain-ref=pre", 20e6, 20e6),
        ("drain-ref=past", 25e6, 25e6),
        ("drain-ref=filt", 22e6, 22e6 + 0.3187 * 8e6),
        ("drain-ref=live", 22e6, 30e6),
        ("", 22e6, 30e6),
    ] {
        let mut control = in_state(options, Mode::Grow);
        (control.bw_filt, control.bw_max, control.bw_before_grow) = (22e6, 25e6, 20e6);
        control.enter(&context(1), Mode::Drain, RTT, 0.0);
        assert_eq!((control.bw_max, control.reference()), (22e6, at_entry), "{options}");
        let cx = Context { in_flight: 1000, ..context(2) };
        acknowledge(&mut control, &cx, RTT, None, Some(30.0));
        assert_eq!(control.mode, Mode::Drain);
        assert!((control.reference() - later).abs() < 1e3, "{options}: {}", control.reference());
    }
    let mut startup = in_state("drain-ref=pre", Mode::Startup);
    startup.bw_max = 25e6;
    startup.enter(&context(1), Mode::Drain, RTT, 0.0);
    assert_eq!(startup.bw_ref, 25e6, "after STARTUP the largest report");
    let mut second = in_state("drain-ref=pre", Mode::Pause);
    (second.bw_filt, second.bw_before_grow) = (18e6, 20e6);
    second.enter(&context(1), Mode::DeepSecond, RTT, 0.0);
    assert_eq!(second.bw_ref, 18e6, "in the second deep DRAIN the filtered bandwidth");
}

#[test]
fn the_robust_reference_is_live_without_a_queue_and_pre_with_one() {
    // The record is 60 ms; 70 ms that persist through deep DRAINs are the path's RTT, and 80 ms are then a queue.
    for (case, rtt_ms, clear, bdp_ms) in [("no queue", 70, true, 70), ("a queue", 80, false, 60)] {
        let mut control = in_state("drain-ref=robust", Mode::Grow);
        for _ in 0..4 {
            control.floor.begin_period();
            (0..100).for_each(|_| control.floor.take(Span::from_millis(70)));
        }
        (0..100).for_each(|_| control.floor.take(Span::from_millis(rtt_ms)));
        (control.bw_filt, control.bw_max, control.bw_before_grow) = (22e6, 25e6, 20e6);
        control.enter(&context(1), Mode::Drain, RTT, 0.0);
        control.bw_max = 24e6;
        let reference = if clear { 24e6 } else { 20e6 };
        assert_eq!(control.reference(), reference, "{case}");
        let path = control.path_rtt(RTT);
        assert!(path.abs_diff(Span::from_millis(bdp_ms)) < Span::from_micros(1), "{case}: {path}");
        let target = reference * path.as_secs_f64() / 8.0;
        assert!((control.drain_limit(path, 1400.0) - target - 2800.0).abs() < 1e-6, "{case}");
        control.bw_max = 25e6;
        assert!((control.grow_limit(path) - 1.25 * 25e6 * path.as_secs_f64() / 8.0).abs() < 1e-6, "{case}");
    }
    // The other references use RTT_min only.
    let mut control = in_state("drain-ref=live", Mode::Grow);
    (0..100).for_each(|_| control.floor.take(Span::from_millis(60)));
    assert_eq!(control.path_rtt(Span::from_millis(50)), Span::from_millis(50));
}

/// Enters and leaves GROW `grows` times without a minimal RTT, and returns the final state.
fn after_grows(options: &str, grows: u32, ms_each: u64, hit_before_last: bool) -> Mode {
    let mut control = in_state(options, Mode::Steady);
    let queued = Span::from_millis(70);
    for i in 1..=u64::from(grows) {
        let began = ms_each * (i - 1) + 1;
        control.enter(&context(began), Mode::Grow, RTT, 0.0);
        let cx = Context { in_flight: 1000, ..context(ms_each * i) };
        let hit = hit_before_last && i == u64::from(grows);
        if hit {
            acknowledge(&mut control, &Context { in_flight: 0, ..cx }, RTT, None, None);
        }
        acknowledge(&mut control, &cx, queued, None, None);
    }
    control.mode
}

#[test]
fn a_deep_drain_is_due_after_five_grows_or_two_and_a_half_seconds_without_a_minimal_rtt() {
    for (case, options, grows, ms_each, hit, expected) in [
        ("four", "", 4, 10, false, Mode::Drain),
        ("five", "", 5, 10, false, Mode::DeepFirst),
        ("a minimal RTT in the fifth", "", 5, 10, true, Mode::Drain),
        ("ten asked for", "ndd=10", 9, 10, false, Mode::Drain),
        ("ten", "ndd=10", 10, 10, false, Mode::DeepFirst),
        ("one in less than 2.5 s", "", 1, 2499, false, Mode::Drain),
        ("one after 2.5 s", "", 1, 2500, false, Mode::DeepFirst),
        ("2.5 s, and a minimal RTT", "", 1, 2500, true, Mode::Drain),
        ("off", "dd=off", 9, 1000, false, Mode::Drain),
        ("one deep DRAIN", "dd=single", 5, 10, false, Mode::DeepFirst),
    ] {
        assert_eq!(after_grows(options, grows, ms_each, hit), expected, "{case}");
    }
}

#[test]
fn the_end_of_a_deep_drain_restarts_both_counts() {
    let mut control = in_state("", Mode::DeepSecond);
    (control.grows, control.last_hit) = (7, Time::ZERO);
    control.enter(&context(5000), Mode::Steady, RTT, 0.0);
    assert_eq!((control.grows, control.last_hit), (0, Time::from_millis(5000)));
    let mut ordinary = in_state("", Mode::Drain);
    ordinary.grows = 3;
    ordinary.enter(&context(5000), Mode::Steady, RTT, 0.0);
    assert_eq!(ordinary.grows, 3);
}

#[test]
fn five_minimal_rtts_end_a_deep_drain_and_an_undercut_begins_the_count_anew() {
    let run = |options: &str, mode: Mode, rtts: &[u64]| {
        let mut control = in_state(options, mode);
        for us in rtts {
            acknowledge(&mut control, &context(1), Span::from_micros(*us), None, None);
        }
        (control.mode, control.fair_hits)
    };
    let deep = Mode::DeepFirst;
    for (case, options, mode, rtts, expected) in [
        ("four", "", deep, &[60_000; 4][..], (deep, 4)),
        ("five", "", deep, &[60_000; 5], (Mode::Pause, 5)),
        ("five in the second", "", Mode::DeepSecond, &[60_000; 5], (Mode::Steady, 5)),
        ("whole milliseconds", "", deep, &[60_499; 5], (Mode::Pause, 5)),
        ("half a millisecond is none", "", deep, &[60_500; 5], (deep, 0)),
        ("others between", "", deep, &[60_000, 60_000, 70_000, 60_000, 60_000], (deep, 4)),
        ("an undercut", "", deep, &[60_000, 60_000, 60_000, 60_000, 59_000, 59_000], (deep, 1)),
        ("not asked for", "fqm=off", deep, &[60_000; 9], (deep, 9)),
        ("a minimal RTT in the pause", "", Mode::Pause, &[60_000], (Mode::Steady, 0)),
        ("an undercut in the pause", "", Mode::Pause, &[50_000], (Mode::Steady, 0)),
        ("none in the pause", "", Mode::Pause, &[61_000], (Mode::Pause, 0)),
    ] {
        // 100 segments are above 75 % of 150 000 B, so the queue does not count as drained.
        assert_eq!(run(options, mode, rtts), expected, "{case}");
    }
}

#[test]
fn steady_lasts_two_to_six_rtts_and_the_seed_decides() {
    let lengths = |seed| {
        let mut control = control("");
        control.random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let next = |_| {
            control.enter(&context(0), Mode::Steady, RTT, 0.0);
            control.steady_for.ratio(RTT)
        };
        (0..1000).map(next).collect::<Vec<f64>>()
    };
    let some = lengths(1);
    assert!(some.iter().all(|rtts| (2.0..=6.0).contains(rtts)));
    let mean = some.iter().sum::<f64>() / 1000.0;
    assert!((mean - 4.0).abs() < 0.15, "{mean}");
    assert_eq!(some, lengths(1));
    assert_ne!(some, lengths(2));
}

#[test]
fn loss_changes_no_window_and_a_timeout_only_until_the_next_acknowledgement() {
    let mut control = in_state("", Mode::Steady);
    control.steady_for = Span::SECOND;
    let before = acknowledge(&mut control, &context(1), RTT, None, None);
    let mut w = before;
    let event = |kind| Congestion { kind, ..crate::testing::testbed::loss() };
    assert_eq!(control.on_congestion(&context(1), &mut w, &event(Signal::Loss)), LossResponse::Own);
    assert_eq!(w, before);
    control.on_congestion(&context(1), &mut w, &event(Signal::Timeout { count: 1 }));
    assert_eq!(w.cwnd, 101.0);
    let recovered = acknowledge(&mut control, &context(2), RTT, None, None);
    assert_eq!(recovered, before);
}

#[test]
fn one_flow_fills_the_line_and_its_rtt_returns_to_the_minimum() {
    for reference in ["live", "pre", "robust"] {
        for (rate, rtt, least) in [(5.0, 20, 0.93), (20.0, 24, 0.95), (20.0, 60, 0.95), (100.0, 60, 0.95)] {
            let name = format!("cdbev2:guard=off:drain-ref={reference}");
            let case = format!("{name} {rate} Mbit/s {rtt} ms");
            let mut flow = Flow::new(Path::new(rate, rtt, 10_000), &name, 7);
            flow.run(Time::from_secs(3));
            let utilisation = flow.utilisation_until(Time::from_secs(13));
            assert!(utilisation > least, "{case}: {utilisation}");
            let delay = flow.mean_delay(Time::from_secs(3), Time::from_secs(13));
            assert!(delay < 0.25 * rtt as f64 * 1e-3 + 0.004, "{case}: {delay}");
            // In every three seconds a packet finds no queue.
            for from in [3, 6, 9] {
                let within = flow
                    .delays
                    .iter()
                    .filter(|(at, _)| *at >= Time::from_secs(from) && *at < Time::from_secs(from + 3));
                let least = within.map(|(_, delay)| *delay).min().unwrap();
                assert!(least < Span::from_millis(1), "{case}: {least}");
            }
        }
    }
}

#[test]
fn startup_and_the_first_drains_take_as_long_as_published() {
    // Fig. 7.16: 20 Mbit/s, 60 ms; STARTUP about 500 ms, DRAIN about 300 ms, first deep DRAIN after about 2.5 s of cycles.
    let mut flow = Flow::new(Path::new(20.0, 60, 4_000), "cdbev2:guard=off:drain-ref=pre:dsdl=true", 3);
    let (mut entered, mut last) = (Vec::new(), -1.0);
    flow.run_with(Time::from_secs(6), &mut |flow| {
        let state = flow.figure("state");
        if state != last {
            entered.push((state, flow.now.as_secs_f64()));
            last = state;
        }
    });
    let first = |state: f64| entered.iter().find(|(entered, _)| *entered == state).unwrap().1;
    let (drain, steady, deep) = (first(1.0), first(2.0), first(4.0));
    assert!((0.3..0.6).contains(&drain), "STARTUP {drain} s");
    assert!((0.1..0.4).contains(&(steady - drain)), "DRAIN {} s", steady - drain);
    assert!((1.5..4.0).contains(&deep), "first deep DRAIN {deep} s");
}

#[test]
fn new_bandwidth_is_taken_up_and_lost_bandwidth_given_up() {
    for (from, to) in [(10.0, 20.0), (20.0, 10.0)] {
        let path = Path::new(from, 40, 10_000).then(4, to);
        let mut flow = Flow::new(path, "cdbev2:guard=off:drain-ref=live", 5);
        flow.run(Time::from_secs(6));
        let utilisation = flow.utilisation_until(Time::from_secs(10));
        assert!(utilisation > 0.95, "{from} -> {to} Mbit/s: {utilisation}");
        assert!(flow.mean_delay(Time::from_secs(6), Time::from_secs(10)) < 0.015);
    }
}

/// An ACK: RTT in microseconds, segments left in flight, report in kbit/s, milliseconds since the previous one.
fn any_ack() -> impl Strategy<Value = (u64, u64, u64, u64, u8)> {
    (1..400_000u64, 0..500u64, 0..200_000u64, 0..50u64, 0..5u8)
}

proptest! {
    #[test]
    fn gains_are_of_the_published_sets_and_the_pace_has_its_least(
        acks in prop::collection::vec(any_ack(), 1..200), options in 0..5usize,
    ) {
        let options = ["", "dd=single:drain-ref=pre", "dd=off:gc=off:drain-ref=past", "fqm=off:gc=bdp:drain-ref=filt", "drain-ref=robust"][options];
        let mut control = control(options);
        let mut cx = context(0);
        control.on_start(&cx, &mut Window::new(10.0));
        for (rtt, in_flight, report, wait, state) in acks {
            cx.now += Span::from_millis(wait);
            cx.in_flight = in_flight;
            cx.state = [State::Open, State::Disorder, State::Cwr, State::Recovery, State::Loss][usize::from(state)];
            let w = acknowledge(&mut control, &cx, Span::from_micros(rtt), None, Some(report as f64 / 1e3));
            let mut gains = [0.0; 2];
            control.inspect(&mut |key, value| match key {
                "pacing_gain" => gains[0] = value,
                "cwnd_gain" => gains[1] = value,
                _ => {}
            });
            prop_assert!([2.175, 0.75, 1.0, 1.25].contains(&gains[0]), "{gains:?}");
            prop_assert!([2.175, 2.0].contains(&gains[1]), "{gains:?}");
            let Pacing::Rate(rate) = w.pacing else { panic!("not paced") };
            prop_assert!(rate.as_f64() >= gains[0] * 300e3, "{rate}");
            prop_assert!(w.cwnd >= 4.0 && w.cwnd.is_finite());
            prop_assert!(control.bw_filt <= control.bw_max && control.bw_filt > 0.0);
        }
    }
}
