use ranpace_units::{Span, Time};

use super::curve::Curve;
use super::*;
use crate::interface::{Congestion, CongestionControl, Context, LossBased, Signal, Window};
use crate::testing::testbed::{Bed, ack, context, loss, reduced_to, round, sample};

const RTT: Span = Span::from_millis(50);

/// Either form.
trait Form: LossBased {
    fn curve(&self) -> &Curve;
}

impl Form for LinuxCubic {
    fn curve(&self) -> &Curve {
        &self.curve
    }
}

impl Form for RfcCubic {
    fn curve(&self) -> &Curve {
        &self.curve
    }
}

fn linux(params: Params) -> LinuxCubic {
    LinuxCubic::new(params, hystart::Kind::Off)
}

fn rfc(params: Params) -> RfcCubic {
    RfcCubic::new(params, hystart::Kind::Off)
}

/// A control just reduced from `w_max`, its window and context.
fn reduced<C: CongestionControl>(mut control: C, w_max: f64) -> (C, Context, Window) {
    let mut w = Window::new(w_max);
    let cx = context(Time::from_secs(1));
    w.ssthresh = reduced_to(control.on_congestion(&cx, &mut w, &loss()));
    w.cwnd = w.ssthresh;
    (control, cx, w)
}

#[test]
fn the_window_follows_the_curve() {
    // RFC 9438, equation 1. One RTT ahead, as both forms aim at the window one RTT later.
    for w_max in [200.0, 1_000.0, 5_000.0] {
        follows_the_curve(linux(Params { friendliness: false, ..Params::LINUX }), w_max);
        follows_the_curve(rfc(Params { friendliness: false, ..Params::RFC }), w_max);
    }
}

fn follows_the_curve(control: impl Form, w_max: f64) {
    let (mut control, mut cx, mut w) = reduced(control, w_max);
    let params = control.curve().params;
    let k = libm::cbrt((w_max - w.cwnd) / params.c);
    let begin = cx.now;
    round(&mut control, &mut cx, &mut w, RTT);
    assert!((control.curve().k / k - 1.0).abs() < 1e-9, "K {} for {k}", control.curve().k);
    while cx.now < begin + Span::from_secs_f64(1.5 * k) {
        round(&mut control, &mut cx, &mut w, RTT);
        let t = (cx.now - begin).as_secs_f64();
        let curve = params.c * (t - k) * (t - k) * (t - k) + w_max;
        let error = w.cwnd / curve - 1.0;
        assert!(error.abs() < 0.02, "{} for {curve} at {t} s, {params:?}", w.cwnd);
    }
}

#[test]
fn k_of_a_hundred_segments_is_4_2_seconds() {
    // RFC 9438, equation 2: cbrt(100 * 0.3 / 0.4) = 4.217 s.
    let (mut control, mut cx, mut w) = reduced(rfc(Params::RFC), 100.0);
    assert_eq!(w.cwnd, 70.0);
    round(&mut control, &mut cx, &mut w, RTT);
    assert!((control.curve.k - 4.217).abs() < 0.001, "{}", control.curve.k);
    // Linux: 717/1024 and 410/1024 of whole segments: cbrt(30 / 0.4004).
    let (mut control, mut cx, mut w) = reduced(linux(Params::LINUX), 100.0);
    assert_eq!(w.cwnd, 70.0);
    round(&mut control, &mut cx, &mut w, RTT);
    assert!((control.curve.k - 4.216).abs() < 0.001, "{}", control.curve.k);
}

#[test]
fn a_maximum_that_was_not_reached_is_lowered() {
    let stubborn = Params { fast_convergence: false, ..Params::LINUX };
    lowers(linux(Params::LINUX), 80.0, 68.0, 56.0); // 80 * 1741 / 2048, 80 * 717 / 1024, truncated
    lowers(rfc(Params::RFC), 80.0, 68.0, 56.0); // 80 * 1.7 / 2, 80 * 0.7
    lowers(linux(Params::LINUX), 120.0, 120.0, 84.0);
    lowers(linux(Params::LINUX), 1.0, 0.0, 2.0); // 1 * 1741 / 2048, truncated
    lowers(linux(stubborn), 80.0, 80.0, 56.0);
}

/// A congestion event at `cwnd`, after one at 100 segments, leaves this maximum and threshold.
fn lowers(control: impl Form, cwnd: f64, w_max: f64, ssthresh: f64) {
    let (mut control, cx, mut w) = reduced(control, 100.0);
    w.cwnd = cwnd;
    assert_eq!(control.recalc_ssthresh(&cx, &w), ssthresh, "of {cwnd}");
    assert_eq!(control.curve().w_max, w_max, "of {cwnd}");
    assert_eq!(control.epoch_start(), None);
}

#[test]
fn growth_is_bounded_from_both_sides() {
    let mut cx = context(Time::from_secs(1));
    let acked = |control: &mut LinuxCubic, segments: u64, w: &mut Window| {
        for _ in 0..segments {
            control.on_ack(&cx, w, &ack(1, RTT));
        }
    };
    let plain = Params { friendliness: false, ..Params::LINUX };
    // On the curve's plateau: one per 100 windows.
    let mut control = linux(plain);
    control.curve.w_max = 100.0;
    let mut w = Window { ssthresh: 100.0, ..Window::new(100.0) };
    acked(&mut control, 9_999, &mut w);
    assert_eq!(w.cwnd, 100.0);
    acked(&mut control, 1, &mut w);
    assert_eq!(w.cwnd, 101.0);
    // No maximum known: 5 %.
    let mut control = linux(plain);
    let mut w = Window { ssthresh: 100.0, ..Window::new(100.0) };
    acked(&mut control, 100, &mut w);
    assert_eq!(w.cwnd, 105.0);
    // Far below the curve: one segment per two ACKed.
    let (mut control, _, _) = reduced(linux(plain), 10_000.0);
    let mut w = Window { ssthresh: 100.0, ..Window::new(100.0) };
    control.on_ack(&cx, &mut w, &ack(1, RTT));
    cx.now += Span::from_secs(20);
    for _ in 0..20 {
        control.on_ack(&cx, &mut w, &ack(1, RTT));
    }
    assert_eq!(w.cwnd, 110.0);
}

#[test]
fn it_is_no_slower_than_reno_with_the_same_beta() {
    // W_est gains a segment per 15/8 windows; RFC 9438, section 4.3: 3 (1 - 0.7) / (1 + 0.7) = 0.529 per window.
    assert_eq!(linux(Params::LINUX).beta_scale, 15);
    let (control, cx, w) = reduced(linux(Params::LINUX), 400.0);
    gains_per_round(control, cx, w, 8.0 / 15.0);
    // From cwnd_prior on, a segment per window (RFC 9438, section 4.3).
    for (prior, per_round) in [(400.0, 0.529), (280.0, 1.0)] {
        let (mut control, cx, w) = reduced(rfc(Params::RFC), 400.0);
        control.prior = prior;
        gains_per_round(control, cx, w, per_round);
    }
}

/// 64 rounds of 5 ms, in which the curve gains 17 segments. Linux is late by up to 1/32 s.
fn gains_per_round(mut control: impl Form, mut cx: Context, mut w: Window, per_round: f64) {
    for _ in 0..64 {
        round(&mut control, &mut cx, &mut w, Span::from_millis(5));
    }
    let gained = w.cwnd - 280.0;
    assert!((gained - 64.0 * per_round).abs() <= 4.0, "{gained} by {control:?}");
}

#[test]
fn the_rate_of_growth_stands_for_a_thirty_second_of_a_second() {
    let (mut control, cx, mut w) = reduced(linux(Params { friendliness: false, ..Params::LINUX }), 1_000.0);
    let mut at = |ms: u64, control: &mut LinuxCubic| {
        let cx = Context { now: cx.now + Span::from_millis(ms), ..cx };
        control.on_ack(&cx, &mut w, &ack(1, RTT));
        control.cnt
    };
    assert_eq!(at(0, &mut control), 700, "the curve is at 700 and rising");
    assert_eq!(at(31, &mut control), 700);
    // At 32 ms: 1000 - 0.4004 (9.083 - 0.032)^3, truncated, is 704, and 700 / 4 is 175.
    assert_eq!(at(32, &mut control), 175);
}

#[test]
fn a_timeout_forgets_what_a_loss_remembers() {
    let (mut control, cx, mut w) = reduced(linux(Params::LINUX), 100.0);
    control.on_sample(&cx, &mut w, &sample(RTT));
    let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
    assert_eq!(reduced_to(control.on_congestion(&cx, &mut w, &timeout)), 49.0);
    assert_eq!((control.curve.w_max, control.curve.min_delay), (0.0, Span::ZERO));
}

#[test]
fn only_the_first_loss_of_an_episode_counts() {
    let (mut control, cx, mut w) = reduced(linux(Params::LINUX), 100.0);
    let again = Congestion { first: false, ..loss() };
    assert_eq!(reduced_to(control.on_congestion(&cx, &mut w, &again)), 70.0);
    assert_eq!(control.curve.w_max, 100.0);
}

#[test]
fn rtts_of_an_epochs_first_second_are_not_looked_at() {
    let (mut control, mut cx, mut w) = reduced(linux(Params::LINUX), 100.0);
    control.on_sample(&cx, &mut w, &sample(RTT));
    control.on_ack(&cx, &mut w, &ack(1, RTT));
    for (ms, expected) in [(0, 50), (999, 50), (1_000, 30)] {
        let cx = Context { now: cx.now + Span::from_millis(ms), ..cx };
        control.on_sample(&cx, &mut w, &sample(Span::from_millis(30)));
        assert_eq!(control.curve.min_delay, Span::from_millis(expected), "after {ms} ms");
    }
    cx.now += Span::from_secs(5);
    control.on_idle_restart(&cx, &mut w, Span::from_secs(4));
    assert_eq!(control.epoch_start(), Some(Time::from_secs(5)), "an idle time shifts the epoch");
    control.on_idle_restart(&cx, &mut w, Span::from_secs(4));
    assert_eq!(control.epoch_start(), Some(cx.now), "but not beyond now");
}

#[test]
fn a_pipe_with_a_buffer_of_its_size_stays_full() {
    for name in ["cubic", "cubic:rfc9438", "cubic:hystart=plusplus", "cubic:hystart=off"] {
        let mut bed = Bed::new(name, 2_000, 40);
        bed.buffer = 80;
        bed.run(20);
        bed.forget();
        bed.run(40);
        assert!(bed.utilisation() > 0.97, "{name}: {}", bed.utilisation());
        assert!(bed.figures.lost > 0, "{name}");
    }
}
