use super::*;
use crate::Algorithm;
use crate::classic::newreno::NewReno;
use crate::testing::testbed::{Bed, ack, context, loss, reduced_to, sample};

fn over_reno(params: Params) -> C2tcp {
    C2tcp::new(Box::new(NewReno), params)
}

/// The conditions for a series of RTTs in milliseconds, `gap_ms` apart.
fn conditions(params: &Params, gap_ms: u64, rtts_ms: &[u64]) -> Vec<Condition> {
    let mut detector = Detector::new();
    let mut now = Time::from_secs(1);
    rtts_ms
        .iter()
        .map(|rtt| {
            now += Span::from_millis(gap_ms);
            detector.judge(params, params.alpha, now, Span::from_millis(*rtt));
            detector.condition
        })
        .collect()
}

#[test]
fn the_detector_looks_at_a_window_of_rtts_not_at_one() {
    use Condition::{Bad, Good, Normal};
    // The shape of the paper's Fig. 2, Setpoint 2 * 20 = 40 ms: a short peak is Normal, a long one Bad. The three peaks have
    // the same 60 ms, and are judged by what preceded them.
    let params = Params { alpha: 2.0, ..Params::default() };
    let rtts = [20, 60, 60, 60, 60, 60, 30, 60, 60, 30, 60, 25];
    let expected = [Good, Normal, Normal, Normal, Normal, Bad, Good, Normal, Normal, Good, Normal, Good];
    assert_eq!(conditions(&params, 12, &rtts), expected);
    let mut phases = expected.to_vec();
    phases.dedup();
    assert_eq!(phases, [Good, Normal, Bad, Good, Normal, Good, Normal, Good]);
}

#[test]
fn an_rtt_at_the_setpoint_is_good_unless_strict() {
    use Condition::{Good, Normal};
    for (strict, alpha, rtts, expected) in [
        (false, 1.0, [20, 20], [Good, Good]),
        (true, 1.0, [20, 20], [Normal, Normal]),
        (false, 2.0, [20, 40], [Good, Good]),
        (true, 2.0, [20, 40], [Good, Normal]),
    ] {
        let params = Params { strict, alpha, ..Params::default() };
        assert_eq!(conditions(&params, 1, &rtts), expected, "strict {strict}, alpha {alpha}");
    }
    // Whole milliseconds, as in the authors' code: 20.9 ms is 20 ms.
    let params = Params { kernel_compat: true, alpha: 1.0, ..Params::default() };
    let mut detector = Detector::new();
    for (us, verdict) in [(20_000, Verdict::Boost), (20_900, Verdict::Boost), (21_000, Verdict::Leave)] {
        let now = Time::from_millis(us);
        assert_eq!(detector.judge(&params, 1.0, now, Span::from_micros(us)), verdict, "{us} us");
    }
}

#[test]
fn bads_follow_at_codels_distances() {
    // Interval, Interval, Interval / sqrt 2, Interval / sqrt 3, ... (PT5), to within the 0.1 ms between ACKs.
    let params = Params { alpha: 2.0, ..Params::default() };
    let mut detector = Detector::new();
    let mut now = Time::from_secs(1);
    detector.judge(&params, 2.0, now, Span::from_millis(50));
    let mut bads = Vec::new();
    let begin = now + Span::from_micros(100);
    for _ in 0..10_000 {
        now += Span::from_micros(100);
        if detector.judge(&params, 2.0, now, Span::from_millis(500)) == Verdict::Cut {
            bads.push(now);
        }
    }
    let mut last = begin;
    for (index, at) in bads.iter().enumerate() {
        let expected = 100.0 / (index.max(1) as f64).sqrt();
        let distance = (*at - last).as_secs_f64() * 1e3;
        assert!((distance - expected).abs() <= 0.21, "Bad {index}: {distance} ms for {expected} ms");
        last = *at;
    }
    assert!(bads.len() > 20);
    // A Good restarts the law.
    detector.judge(&params, 2.0, now, Span::from_millis(50));
    assert_eq!((detector.n, detector.condition), (1, Condition::Good));
}

#[test]
fn the_interval_is_that_of_the_last_good() {
    for (kernel_compat, expected_ms) in [(false, 40), (true, 80)] {
        let params = Params { kernel_compat, ..Params::default() };
        let mut detector = Detector::new();
        detector.judge(&params, 2.0, Time::from_secs(1), Span::from_millis(20));
        detector.judge(&params, 4.0, Time::from_secs(2), Span::from_millis(90));
        assert_eq!(detector.interval, Span::from_millis(expected_ms), "kernel_compat {kernel_compat}");
        assert_eq!(detector.setpoint, Span::from_millis(80));
        detector.judge(&params, 4.0, Time::from_secs(3), Span::from_millis(50));
        assert_eq!(detector.interval, Span::from_millis(80));
    }
}

#[test]
fn the_smallest_rtt_expires_only_where_asked() {
    for (expiry_s, expected_ms) in [(0, 20), (10, 50)] {
        let params = Params { min_rtt_expiry: Span::from_secs(expiry_s), ..Params::default() };
        let mut detector = Detector::new();
        for (at_s, rtt_ms) in [(1, 20), (5, 50), (12, 50), (13, 60)] {
            detector.judge(&params, 1.5, Time::from_secs(at_s), Span::from_millis(rtt_ms));
        }
        assert_eq!(detector.min_rtt, Span::from_millis(expected_ms), "expiry {expiry_s} s");
    }
}

#[test]
fn good_adds_setpoint_over_rtt_per_window() {
    // Equation 1: Setpoint 40 ms, RTT 25 ms: 1.6 segments per window, in addition to Reno's growth.
    let params = Params { alpha: 2.0, tuner: Tuner::Off, ..Params::default() };
    let grown = |params: Params, cx: Context, rtt_ms: u64| {
        let mut control = over_reno(params);
        let mut w = Window { ssthresh: 10.0, ..Window::new(100.0) };
        control.detector.judge(&params, 2.0, cx.now, Span::from_millis(20));
        for _ in 0..101 {
            control.on_sample(&cx, &mut w, &sample(Span::from_millis(rtt_ms)));
        }
        w.cwnd - 100.0
    };
    let cx = context(Time::from_secs(1));
    let recovering = Context { state: State::Recovery, ..cx };
    let limited = Context { cwnd_limited: false, ..cx };
    let compat = Params { kernel_compat: true, ..params };
    let integer = Params { integer_boost: true, ..params };
    for (case, params, cx, rtt_ms, expected) in [
        ("avoidance", params, cx, 25, 1.6),
        ("above the setpoint", params, cx, 41, 0.0),
        ("recovery", params, recovering, 25, 0.0),
        ("limited by the application", params, limited, 25, 0.0),
        ("recovery, as the code", compat, recovering, 25, 1.6),
        ("limited by the application, as the code", compat, limited, 25, 1.6),
        ("whole numbers: 40 / 25 is 1", integer, cx, 25, 1.0),
        ("whole numbers: 40 / 21 is 1", integer, cx, 21, 1.0),
        ("whole numbers: 40 / 20 is 2", integer, cx, 20, 2.0),
    ] {
        let grown = grown(params, cx, rtt_ms);
        assert!((grown - expected).abs() < 0.03, "{case}: {grown}");
    }
    // An ACK of several segments counts for each of them, except in the authors' code, where it counts once.
    for (params, expected) in [(params, 4.0 * 1.6 / 100.0), (compat, 1.6 / 100.0)] {
        let mut control = over_reno(params);
        let mut w = Window { ssthresh: 10.0, ..Window::new(100.0) };
        control.detector.judge(&params, 2.0, cx.now, Span::from_millis(20));
        let stretch = Sample { delivered: 4, ..sample(Span::from_millis(25)) };
        control.on_sample(&cx, &mut w, &stretch);
        assert!((w.cwnd - 100.0 - expected).abs() < 1e-9, "{w:?}");
    }
}

#[test]
fn bad_takes_the_parents_threshold_and_leaves_one_segment() {
    let now = Time::from_secs(1);
    for (name, after_bad, ssthresh) in
        [("cubic", "slow_start", 70.0), ("newreno", "slow_start", 50.0), ("cubic", "avoidance", 1.0)]
    {
        let name = format!("{name}+c2tcp:after_bad={after_bad}");
        let mut control = name.parse::<Algorithm>().unwrap().build(1);
        let mut w = Window { ssthresh: 50.0, ..Window::new(100.0) };
        for (ms, rtt_ms) in [(0, 20), (1, 100), (32, 100)] {
            w.cwnd = 100.0;
            let cx = Context { now: now + Span::from_millis(ms), ..context(now) };
            control.on_sample(&cx, &mut w, &sample(Span::from_millis(rtt_ms)));
        }
        assert_eq!((w.cwnd, w.ssthresh), (1.0, ssthresh), "{name}");
        let mut figures = std::collections::HashMap::new();
        control.inspect(&mut |key, value| {
            figures.insert(key, value);
        });
        assert_eq!((figures["condition"], figures["bads"]), (2.0, 1.0));
        if let Some(w_max) = figures.get("w_max") {
            assert_eq!(*w_max, 100.0, "CUBIC remembers the window, as after a loss");
        }
    }
}

#[test]
fn consecutive_bads_compound() {
    // Section 4.2 of the specification: the second Bad sees a window of one segment.
    let mut control = "cubic+c2tcp:tuner=off".parse::<Algorithm>().unwrap().build(1);
    let mut w = Window { ssthresh: 50.0, ..Window::new(100.0) };
    for ms in 0..200 {
        let cx = context(Time::from_millis(1_000 + ms));
        control.on_sample(&cx, &mut w, &sample(Span::from_millis(if ms == 0 { 20 } else { 300 })));
    }
    assert_eq!((w.cwnd, w.ssthresh), (1.0, 2.0));
}

#[test]
fn the_parents_first_second_is_looked_at_unless_deaf() {
    for (deaf, expected) in [("0s", 1.0), ("1s", 0.0)] {
        let mut control = format!("cubic+c2tcp:deaf={deaf}").parse::<Algorithm>().unwrap().build(1);
        let mut w = Window { ssthresh: 50.0, ..Window::new(100.0) };
        for (ms, rtt_ms) in [(0, 20), (1, 100), (500, 100)] {
            let cx = context(Time::from_millis(1_000 + ms));
            control.on_sample(&cx, &mut w, &sample(Span::from_millis(rtt_ms)));
            control.on_ack(&cx, &mut w, &ack(1, Span::from_millis(rtt_ms)));
        }
        let mut bads = f64::NAN;
        control.inspect(&mut |key, value| {
            if key == "bads" {
                bads = value;
            }
        });
        assert_eq!(bads, expected, "deaf {deaf}");
    }
}

#[test]
fn the_tuner_steps_as_published() {
    let ms = Span::from_millis;
    let of = |tuner| Params { tuner, ..Params::default() };
    for (tuner, alpha, mean, expected) in [
        // Algorithm 3, target 50 ms: + (50 - 40) / 80, - 2 (60 - 50) / 50.
        (Tuner::Algorithm3, 2.0, 40, 2.125),
        (Tuner::Algorithm3, 2.0, 60, 1.6),
        (Tuner::Algorithm3, 2.0, 50, 2.0),
        (Tuner::Algorithm3, 1.2, 60, 1.0),
        (Tuner::Algorithm3, 9.9, 10, 10.0),
        // Equation 16: times 1 + 10 / 80, times 1 - 20 / 60.
        (Tuner::Equation16, 2.0, 40, 2.25),
        (Tuner::Equation16, 2.0, 60, 2.0 * 2.0 / 3.0),
        (Tuner::Equation16, 2.0, 50, 2.0),
        (Tuner::Equation16, 2.0, 200, 1.0),
        // The same factors on 50 / 20.
        (Tuner::Memoryless, 9.0, 40, 2.5 * 1.125),
        (Tuner::Memoryless, 9.0, 60, 2.5 * 2.0 / 3.0),
        (Tuner::Off, 9.0, 60, 9.0),
    ] {
        let next = tuned(&of(tuner), alpha, ms(mean), ms(20));
        assert!((next - expected).abs() < 1e-12, "{tuner:?}, {alpha}, {mean} ms: {next}");
    }
    // Algorithm 3 decreases about four times as steeply as it increases.
    let (up, down) = (
        tuned(&of(Tuner::Algorithm3), 5.0, ms(49), ms(20)),
        tuned(&of(Tuner::Algorithm3), 5.0, ms(51), ms(20)),
    );
    assert!(((5.0 - down) / (up - 5.0) - 4.0).abs() < 0.1);
}

/// `alpha` after tuning cycles with these RTTs in ms, one sample every 10 ms.
fn tuned_by(control: &mut C2tcp, cycles: &[(u64, bool)]) -> f64 {
    let mut w = Window { ssthresh: 1.0, ..Window::new(100.0) };
    let mut now = Time::from_secs(1);
    for (rtt_ms, app_limited) in cycles {
        for _ in 0..50 {
            let cx = Context { app_limited: *app_limited, ..context(now) };
            control.on_sample(&cx, &mut w, &sample(Span::from_millis(*rtt_ms)));
            now += Span::from_millis(10);
        }
    }
    // The next sample ends the last cycle.
    control.on_sample(&context(now), &mut w, &sample(Span::from_millis(1_000)));
    control.alpha
}

#[test]
fn a_cycle_is_half_a_second_of_samples() {
    assert_eq!(tuned_by(&mut over_reno(Params::default()), &[(40, false)]), 1.625);
    assert_eq!(tuned_by(&mut over_reno(Params::default()), &[(40, false), (50, false)]), 1.625);
    assert_eq!(tuned_by(&mut over_reno(Params::default()), &[(40, true)]), 1.5, "frozen");
    let compat = Params { kernel_compat: true, ..Params::default() };
    assert_eq!(tuned_by(&mut over_reno(compat), &[(40, true)]), 1.625);
    let short = Params { cycle: Span::from_millis(250), ..Params::default() };
    assert_eq!(tuned_by(&mut over_reno(short), &[(40, false)]), 1.75);
}

#[test]
fn a_target_is_taken_while_the_flow_runs() {
    let mut control = over_reno(Params::default());
    assert!(control.set_target(Span::from_millis(80)));
    assert_eq!(tuned_by(&mut control, &[(40, false)]), 2.0);
    // A target of zero becomes twice the smallest RTT, and stays.
    let mut control = over_reno(Params { target: Span::ZERO, ..Params::default() });
    tuned_by(&mut control, &[(40, false)]);
    assert_eq!(control.params.target, Span::from_millis(80));
    assert!(!NewReno.set_target(Span::from_millis(80)));
}

#[test]
fn decorators_stack_and_pass_on_what_is_the_parents() {
    let parent = C2tcp::new(Box::new(NewReno), Params::default());
    let mut control = C2tcp::new(Box::new(parent), Params::default());
    let mut w = Window::new(40.0);
    let cx = context(Time::from_secs(1));
    assert_eq!(reduced_to(control.on_congestion(&cx, &mut w, &loss())), 20.0);
    assert_eq!(control.recalc_ssthresh(&cx, &w), 20.0);
    assert!(!control.owns_recovery() && !control.wants_packets());
    assert_eq!((control.next_deadline(), control.epoch_start()), (None, None));
}

#[test]
fn pacing_is_the_window_per_smoothed_rtt() {
    let mut control = over_reno(Params { pace: true, ..Params::default() });
    let mut w = Window { ssthresh: 1.0, ..Window::new(40.0) };
    let cx = Context { srtt: Span::from_millis(40), ..context(Time::from_secs(1)) };
    control.on_ack(&Context { cwnd_limited: false, ..cx }, &mut w, &ack(1, Span::from_millis(40)));
    // 40 * 1500 B in 40 ms.
    assert_eq!(w.pacing, Pacing::Rate(Rate::from_mbit_per_s(12)));
}

/// A test bed with the tuner off, warmed up for ten seconds and measured for ten more.
fn settled(parent: &str, options: &str, rate: u64, rtt_ms: u64, alpha: f64) -> Bed {
    let name = format!("{parent}+c2tcp:clock=ns:tuner=off:alpha={alpha}{options}");
    let mut bed = Bed::new(&name, rate, rtt_ms);
    bed.run(10);
    bed.forget();
    bed.run(10);
    bed
}

const PARENTS: [&str; 2] = ["newreno", "cubic"];
const MODES: [&str; 2] = [":after_bad=avoidance", ":after_bad=slow_start"];
const ALPHAS: [f64; 5] = [1.25, 1.5, 2.0, 3.0, 5.0];

/// The mean RTT is below the bounds of equations 14 and 15, times the tolerances.
fn bounds_hold(options: &str, rates: &[u64], rtts_ms: &[u64], tolerances: (f64, f64)) {
    for (parent, mode) in PARENTS.iter().flat_map(|parent| MODES.map(|mode| (parent, mode))) {
        for (rate, rtt_ms) in rates.iter().flat_map(|rate| rtts_ms.iter().map(move |rtt| (*rate, *rtt))) {
            for alpha in ALPHAS {
                let bed = settled(parent, &format!("{mode}{options}"), rate, rtt_ms, alpha);
                let min = bed.min_rtt().as_secs_f64();
                let eq14 = bed.mean_rtt() / (alpha * (min + 0.5 / rate as f64));
                let eq15 = bed.mean_rtt() / (1.5 * alpha * min);
                assert!(
                    eq14 < tolerances.0 && eq15 < tolerances.1,
                    "{parent}{mode}{options}, {rate}/s, {rtt_ms} ms, alpha {alpha}: {eq14} of (14), {eq15} of (15)"
                );
            }
        }
    }
}

#[test]
fn pt1_and_pt2_the_mean_rtt_is_within_the_papers_bounds() {
    bounds_hold("", &[500, 1_000, 2_000, 4_000, 8_000], &[10, 20, 40], (1.0, 1.0));
}

#[test]
fn pt1_and_pt2_hold_with_a_deaf_second_that_is_not_too_many_rtts() {
    bounds_hold(":deaf=1s", &[1_000, 2_000, 4_000, 8_000], &[20, 40], (1.1, 1.0));
    bounds_hold(":deaf=1s", &[500, 2_000, 4_000, 8_000], &[40], (1.1, 1.0));
    bounds_hold(":deaf=1s", &[2_000, 4_000, 8_000], &[10], (1.3, 1.0));
    // At 500/s and 10 ms the six segments of the pipe become about 25 in the deaf second, by CUBIC's Reno-friendly growth
    // alone: without a detector there is no bound.
    let bed = settled("cubic", ":deaf=1s", 500, 10, 1.25);
    assert!(bed.mean_rtt() > 1.5 * 1.25 * bed.min_rtt().as_secs_f64());
}

#[test]
fn at_the_smallest_alpha_what_is_within_the_millisecond_of_the_smallest_rtt_is_good() {
    // A target below MINRTT leaves alpha at 1, and the setpoint is MINRTT: 60.12 ms.
    let verdicts = |params: &Params| {
        let mut detector = Detector::new();
        [60_120, 60_300, 60_999, 61_000].map(|us| {
            detector.judge(params, 1.0, Time::from_secs(1), Span::from_micros(us)) == Verdict::Boost
        })
    };
    let default = Params::default();
    assert_eq!(verdicts(&default), [true, true, true, false]);
    assert_eq!(verdicts(&Params { kernel_compat: true, ..default }), [true, true, true, false]);
    assert_eq!(verdicts(&Params { whole_ms: false, ..default }), [true, false, false, false]);
}

#[test]
fn pt3_the_mean_rtt_rises_with_alpha() {
    for parent in PARENTS {
        for mode in MODES {
            let means = ALPHAS.map(|alpha| settled(parent, mode, 2_000, 20, alpha).mean_rtt());
            assert!(means.is_sorted_by(|a, b| a < b), "{parent}{mode}: {means:?}");
        }
    }
}

#[test]
fn pt4_the_mean_rtt_does_not_depend_on_a_buffer_that_is_never_full() {
    // Qb = Qs + alpha (equation 7), with P = 41: at alpha 2, 43 segments.
    for parent in PARENTS {
        for mode in MODES {
            let mean = |times: u64| {
                let mut bed =
                    Bed::new(&format!("{parent}+c2tcp:clock=ns:tuner=off:alpha=2{mode}"), 2_000, 20);
                bed.buffer = 45 * times;
                bed.run(20);
                bed.forget();
                bed.run(40);
                assert_eq!(bed.figures.lost, 0);
                bed.mean_rtt()
            };
            let first = mean(1);
            for times in [2, 5, 20] {
                let ratio = mean(times) / first;
                assert!((ratio - 1.0).abs() < 0.02, "{parent}{mode}: {ratio} at {times} times Qb");
            }
        }
    }
}

#[test]
fn pt6_a_bad_loses_and_retransmits_nothing() {
    let bed = settled("cubic", "", 2_000, 20, 1.25);
    assert!(bed.figure("bads") > 10.0);
    assert_eq!((bed.cx.lost, bed.figures.lost, bed.figures.timeouts), (0, 0, 0));
    assert_eq!(bed.cx.state, State::Open);
}

#[test]
fn pt7_after_a_bad_the_flow_is_silent_for_half_a_window() {
    let mut bed = Bed::new("newreno+c2tcp:clock=ns:tuner=off:alpha=2", 1_000, 40);
    let (mut bads, mut silent, mut checked) = (0.0, None::<(u64, u64, u64)>, 0);
    bed.run_with(60, &mut |bed| {
        let cx = &bed.cx;
        if let Some((window, acks, next)) = &mut silent {
            *acks += 1;
            if cx.next_packet > *next {
                // The window gained one with each ACK and met the decreasing flight half-way.
                assert!(acks.abs_diff(*window / 2) <= 2, "{acks} ACKs of {window}");
                checked += 1;
                silent = None;
            }
        }
        let now_bad = bed.figure("bads");
        if now_bad > bads {
            bads = now_bad;
            // The first Bad of a run; a later one lowers the threshold to a few segments.
            let first = bed.window.ssthresh >= 20.0;
            silent = first.then_some((bed.cx.in_flight, 0, bed.cx.next_packet));
        }
    });
    assert!(checked > 5, "{checked} of {bads}");
}

#[test]
fn pt8_alpha_settles_where_the_mean_meets_the_target() {
    for target_ms in [40, 60, 100] {
        let mut bed = Bed::new(&format!("cubic+c2tcp:target={target_ms}ms"), 2_000, 20);
        bed.run(10);
        bed.forget();
        bed.run(30);
        let mean = bed.mean_rtt() * 1e3;
        assert!((mean / target_ms as f64 - 1.0).abs() < 0.2, "{mean} ms for {target_ms} ms");
        bed.control.set_target(Span::from_millis(30));
        bed.run(5);
        bed.forget();
        bed.run(20);
        assert!(bed.mean_rtt() < 0.036, "{} s for 30 ms", bed.mean_rtt());
    }
}

proptest::proptest! {
    /// PT8: holds whatever the averages.
    #[test]
    fn pt8_alpha_stays_within_its_bounds(means_us in proptest::collection::vec(0..5_000_000u64, 0..50)) {
        for tuner in [Tuner::Algorithm3, Tuner::Equation16, Tuner::Memoryless] {
            let params = Params { tuner, ..Params::default() };
            let mut alpha = params.alpha;
            for mean in &means_us {
                alpha = tuned(&params, alpha, Span::from_micros(*mean), Span::from_millis(20));
                proptest::prop_assert!((1.0..=10.0).contains(&alpha), "{} by {:?}", alpha, tuner);
            }
        }
    }
}
