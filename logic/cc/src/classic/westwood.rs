//! Westwood and Westwood+: Reno, except that a loss reduces the window to the bandwidth-delay product that was measured.
//!
//! Sources: Mascolo, Casetti, Gerla, Sanadidi and Wang, "TCP Westwood: Bandwidth Estimation for Enhanced Transport
//! over Wireless Links" (MobiCom 2001) for `westwood`; Grieco and Mascolo, "Performance Evaluation and Comparison of
//! Westwood+, New Reno, and Vegas TCP Congestion Control" (CCR 2004), as in `net/ipv4/tcp_westwood.c` of Linux,
//! for `westwoodplus`.
//!
//! Growth is Reno's. A loss leaves `BWE RTTmin`, at least 2 segments. In `westwood` this becomes `ssthresh` at once, and the
//! window is reduced to it if it is larger; in `westwoodplus` both are set to it at the end of recovery, during which PRR
//! reduces to half of the window, since Linux's `ssthresh` is Reno's. After a timeout `ssthresh` is `BWE RTTmin` and the
//! window 1. Data acknowledged out of order count when they arrive, so duplicate ACKs need no special treatment. State: the
//! estimate `BWE` and the current sample; `RTTmin`.
//! * `westwood`: a sample per ACK, `b = bytes / time since the last ACK`. Filter `tustin` (the paper's):
//!   `BWE = a BWE + (1 - a) (b + b_prev) / 2` with `a = (2 tau - dt) / (2 tau + dt)`; `constant`: with `a = 0.9`, as in ns-3;
//!   `none`: `BWE = b`. `sample=rtt`: `b = bytes of this ACK / RTT`, as in ns-3 of 2016, which is far too low.
//! * `westwoodplus`: a sample per `max(RTT, 50 ms)`; two filter stages of `7/8` old and `1/8` new. `BWE RTTmin` is evaluated
//!   at the end of recovery. After a timeout `RTTmin` is measured anew.
//!
//! Ours: during recovery of `westwood` the threshold is never above the window; `tau`, which the paper leaves open, is 1 s;
//! ACKs of one instant form one sample; without an estimate the control is Reno. A decorator that asks for the reduced
//! `ssthresh` (C2TCP) gets `BWE RTTmin` from both variants: no recovery follows there, at whose end it could be set.

use ranpace_units::{Span, Time};

use crate::classic::newreno::{self, MIN_SSTHRESH};
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, Signal, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Westwood, as `ranpace list cc` shows it.
pub const ENTRY: Entry = Entry {
    name: "westwood",
    about: "on loss, down to the bandwidth of the last ACKs times the smallest RTT",
    source: "Mascolo et al., TCP Westwood (MobiCom 2001)",
    options: &[
        OptionInfo {
            key: "filter",
            values: "tustin, constant, none",
            about: "how samples of bandwidth are smoothed",
        },
        OptionInfo { key: "tau", values: "a time (1s)", about: "time constant of the tustin filter" },
        OptionInfo { key: "sample", values: "gap, rtt", about: "what an ACK's bytes are divided by" },
    ],
    transport: Transport::Tcp,
    loss_based: true,
    build: &build_original,
    receiver: None,
};

/// Westwood+, as `ranpace list cc` shows it.
pub const PLUS: Entry = Entry {
    name: "westwoodplus",
    about: "Westwood with a sample of bandwidth per RTT, as in Linux",
    source: "Grieco and Mascolo, Westwood+ (CCR 2004); Linux tcp_westwood.c",
    options: &[],
    transport: Transport::Tcp,
    loss_based: true,
    build: &build_plus,
    receiver: None,
};

fn build_original(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let tau = options.span("tau", Span::SECOND)?.as_secs_f64();
    let filters =
        [("tustin", Filter::Tustin { tau }), ("constant", Filter::Constant), ("none", Filter::None)];
    let filter = options.choice("filter", &filters)?;
    let per_rtt = options.choice("sample", &[("gap", false), ("rtt", true)])?;
    Ok(Control::LossBased(Box::new(Westwood::new(Estimator::PerAck { filter, per_rtt, previous: 0.0 }))))
}

fn build_plus(_: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::LossBased(Box::new(Westwood::new(Estimator::PerRtt { first_stage: 0.0 }))))
}

/// Coefficient of the constant filter (ns-3).
const CONSTANT: f64 = 0.9;
/// Share of the new sample in each stage of Westwood+ (Linux `westwood_do_filter`).
const NEW_SHARE: f64 = 1.0 / 8.0;
/// Shortest sample of Westwood+ (Linux `TCP_WESTWOOD_RTT_MIN`).
const MIN_PERIOD: Span = Span::from_millis(50);

/// The filters of Westwood.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Filter {
    /// The paper's, with the time constant in seconds.
    Tustin {
        tau: f64,
    },
    Constant,
    None,
}

/// The two bandwidth estimators.
#[derive(Clone, Debug)]
enum Estimator {
    /// Westwood: `previous` is the last sample.
    PerAck { filter: Filter, per_rtt: bool, previous: f64 },
    /// Westwood+: `first_stage` is the estimate between the two stages.
    PerRtt { first_stage: f64 },
}

/// Either variant.
#[derive(Clone, Debug)]
pub struct Westwood {
    estimator: Estimator,
    /// `BWE` in segments per second; zero for none.
    bandwidth: f64,
    min_rtt: Span,
    /// Latest RTT (Westwood+).
    rtt: Span,
    /// When the current sample began; `None` before the first ACK.
    since: Option<Time>,
    /// Segments in the current sample.
    segments: f64,
    /// Whether recovery follows a timeout.
    timed_out: bool,
    /// Threshold to set after recovery, if it was above the window at the loss.
    later: Option<f64>,
}

impl Westwood {
    fn new(estimator: Estimator) -> Self {
        Self {
            estimator,
            bandwidth: 0.0,
            min_rtt: Span::MAX,
            rtt: Span::ZERO,
            since: None,
            segments: 0.0,
            timed_out: false,
            later: None,
        }
    }

    /// `BWE RTTmin` in segments, if both are known.
    fn pipe(&self) -> Option<f64> {
        (self.bandwidth > 0.0 && self.min_rtt != Span::MAX)
            .then(|| (self.bandwidth * self.min_rtt.as_secs_f64()).max(MIN_SSTHRESH))
    }

    fn estimate(&mut self, now: Time, segments: f64) {
        let Some(since) = self.since else {
            self.since = Some(now);
            return;
        };
        let elapsed = now.since(since);
        match &mut self.estimator {
            Estimator::PerAck { filter, per_rtt, previous } => {
                self.segments += segments;
                let span = if *per_rtt { self.rtt } else { elapsed };
                if elapsed.is_zero() || span.is_zero() {
                    return;
                }
                let sample = self.segments / span.as_secs_f64();
                let a = match *filter {
                    Filter::None => None,
                    Filter::Constant => Some(CONSTANT),
                    Filter::Tustin { tau } => {
                        let dt = elapsed.as_secs_f64();
                        // Beyond 2 tau the filter would overshoot; the paper inserts empty samples earlier.
                        Some(((2.0 * tau - dt) / (2.0 * tau + dt)).max(0.0))
                    }
                };
                self.bandwidth = match a {
                    Some(a) if self.bandwidth > 0.0 => {
                        a * self.bandwidth + (1.0 - a) * (sample + *previous) / 2.0
                    }
                    _ => sample,
                };
                *previous = sample;
                self.segments = 0.0;
            }
            Estimator::PerRtt { first_stage } => {
                if elapsed <= self.rtt.max(MIN_PERIOD) {
                    self.segments += segments;
                    return;
                }
                let sample = self.segments / elapsed.as_secs_f64();
                if self.bandwidth == 0.0 && *first_stage == 0.0 {
                    *first_stage = sample;
                    self.bandwidth = sample;
                } else {
                    *first_stage += (sample - *first_stage) * NEW_SHARE;
                    self.bandwidth += (*first_stage - self.bandwidth) * NEW_SHARE;
                }
                self.segments = segments;
            }
        }
        self.since = Some(now);
    }
}

impl CongestionControl for Westwood {
    fn on_start(&mut self, cx: &Context, _: &mut Window) {
        self.since = Some(cx.now);
    }

    fn on_sample(&mut self, cx: &Context, _: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.rtt = rtt;
            self.min_rtt = self.min_rtt.min(rtt);
        }
        self.estimate(cx.now, sample.bytes.as_f64() / cx.mss.as_f64());
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let ssthresh = self.recalc_ssthresh(cx, w);
        let timed_out = matches!(event.kind, Signal::Timeout { .. });
        if !timed_out && matches!(self.estimator, Estimator::PerRtt { .. }) {
            self.timed_out = false;
            return LossResponse::ReduceTo((w.cwnd * newreno::BETA).max(MIN_SSTHRESH)); // Linux `tcp_reno_ssthresh`
        }
        if timed_out {
            self.timed_out = true;
            self.later = None;
            if matches!(self.estimator, Estimator::PerRtt { .. }) {
                self.min_rtt = Span::MAX;
            }
            return LossResponse::ReduceTo(ssthresh);
        }
        self.timed_out = false;
        self.later = (ssthresh > w.cwnd).then_some(ssthresh);
        LossResponse::ReduceTo(ssthresh.min(w.cwnd).max(MIN_SSTHRESH))
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        newreno::grow(cx, w, ack.acked as f64);
    }

    fn on_recovered(&mut self, _: &Context, w: &mut Window) {
        let later = self.later.take();
        if core::mem::take(&mut self.timed_out) {
            return;
        }
        match self.estimator {
            Estimator::PerAck { .. } => w.ssthresh = later.unwrap_or(w.ssthresh),
            Estimator::PerRtt { .. } => {
                if let Some(pipe) = self.pipe() {
                    w.ssthresh = pipe;
                    w.cwnd = pipe;
                }
            }
        }
    }

    fn on_path_change(&mut self, _: &Context, _: &mut Window) {
        self.min_rtt = Span::MAX;
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("bandwidth_segments", self.bandwidth);
        show("rtt_min", if self.min_rtt == Span::MAX { f64::NAN } else { self.min_rtt.as_secs_f64() });
        show("pipe", self.pipe().unwrap_or(f64::NAN));
    }
}

impl LossBased for Westwood {
    fn recalc_ssthresh(&mut self, _: &Context, w: &Window) -> f64 {
        self.pipe().unwrap_or((w.cwnd * newreno::BETA).max(MIN_SSTHRESH))
    }
}

#[cfg(test)]
mod tests {
    use ranpace_units::Bytes;

    use super::*;
    use crate::testing::testbed::{Bed, MSS, context, loss, reduced_to, sample};

    fn original(filter: Filter) -> Westwood {
        Westwood::new(Estimator::PerAck { filter, per_rtt: false, previous: 0.0 })
    }

    fn plus() -> Westwood {
        Westwood::new(Estimator::PerRtt { first_stage: 0.0 })
    }

    /// Sends an ACK of one segment every `gap_us` for `ms` milliseconds.
    fn feed(control: &mut Westwood, now: &mut Time, gap_us: u64, ms: u64, rtt: Span) {
        let until = *now + Span::from_millis(ms);
        let mut w = Window::new(10.0);
        while *now < until {
            *now += Span::from_micros(gap_us);
            control.on_sample(&context(*now), &mut w, &sample(rtt));
        }
    }

    #[test]
    fn a_loss_leaves_the_bandwidth_times_the_smallest_rtt() {
        // 1000 segments/s and 40 ms: 40 segments, whatever the window was.
        for (during, mut control) in [
            (40.0, original(Filter::Tustin { tau: 1.0 })),
            (40.0, original(Filter::None)),
            // Linux: Reno's half until the end of recovery.
            (45.0, plus()),
        ] {
            let mut now = Time::ZERO;
            control.on_start(&context(now), &mut Window::new(10.0));
            feed(&mut control, &mut now, 1_000, 10, Span::from_millis(40));
            feed(&mut control, &mut now, 1_000, 4_000, Span::from_millis(90));
            let mut w = Window::new(90.0);
            let ssthresh = reduced_to(control.on_congestion(&context(now), &mut w, &loss()));
            assert!((ssthresh - during).abs() < 1.0, "{ssthresh} by {control:?}");
            assert!((control.recalc_ssthresh(&context(now), &w) - 40.0).abs() < 1.0);
            (w.cwnd, w.ssthresh) = (ssthresh, ssthresh);
            control.on_recovered(&context(now), &mut w);
            assert!((w.cwnd - 40.0).abs() < 1.0 && (w.ssthresh - 40.0).abs() < 1.0, "{w:?} by {control:?}");
        }
    }

    #[test]
    fn a_window_below_it_is_not_raised_by_a_loss() {
        let mut control = original(Filter::None);
        let mut now = Time::ZERO;
        feed(&mut control, &mut now, 1_000, 100, Span::from_millis(40));
        let mut w = Window::new(10.0);
        let ssthresh = reduced_to(control.on_congestion(&context(now), &mut w, &loss()));
        assert_eq!(ssthresh, 10.0);
        (w.cwnd, w.ssthresh) = (10.0, 10.0);
        control.on_recovered(&context(now), &mut w);
        assert_eq!(w.cwnd, 10.0);
        assert!((w.ssthresh - 40.0).abs() < 1e-6, "slow start goes on to there: {w:?}");
    }

    #[test]
    fn the_filters_weigh_as_published() {
        // A first sample of 1000/s, then one of 2000/s. Tustin at dt = tau / 10: a = 19/21 (MobiCom 2001).
        for (filter, dt_ms, expected) in [
            (Filter::Tustin { tau: 1.0 }, 100, 19.0 / 21.0 * 1000.0 + 2.0 / 21.0 * 1500.0),
            (Filter::Constant, 100, 0.9 * 1000.0 + 0.1 * 1500.0),
            (Filter::None, 100, 2000.0),
        ] {
            let mut control = original(filter);
            control.since = Some(Time::ZERO);
            control.estimate(Time::from_millis(dt_ms), 100.0);
            assert!((control.bandwidth - 1000.0).abs() < 1e-6);
            control.estimate(Time::from_millis(2 * dt_ms), 200.0);
            assert!((control.bandwidth - expected).abs() < 1e-6, "{} by {filter:?}", control.bandwidth);
        }
    }

    #[test]
    fn plus_takes_a_sample_per_fifty_milliseconds_and_filters_it_twice() {
        let mut control = plus();
        control.rtt = Span::from_millis(20);
        control.since = Some(Time::ZERO);
        control.estimate(Time::from_millis(50), 60.0);
        assert_eq!(control.bandwidth, 0.0, "50 ms are not over");
        control.estimate(Time::from_millis(60), 0.0);
        assert!((control.bandwidth - 1000.0).abs() < 1e-9);
        control.estimate(Time::from_millis(100), 120.0);
        control.estimate(Time::from_millis(120), 0.0);
        // 7/8 1000 + 1/8 2000 = 1125, then 7/8 1000 + 1/8 1125 = 1015.625.
        assert!((control.bandwidth - 1015.625).abs() < 1e-9, "{}", control.bandwidth);
        control.rtt = Span::from_millis(200);
        control.estimate(Time::from_millis(300), 1000.0);
        assert!((control.bandwidth - 1015.625).abs() < 1e-9, "an RTT is not over");
    }

    #[test]
    fn a_timeout_measures_the_smallest_rtt_anew_in_plus() {
        let mut control = plus();
        let mut now = Time::ZERO;
        feed(&mut control, &mut now, 1_000, 1_000, Span::from_millis(40));
        let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
        let mut w = Window::new(90.0);
        let ssthresh = reduced_to(control.on_congestion(&context(now), &mut w, &timeout));
        assert!((ssthresh - 40.0).abs() < 1.0, "{ssthresh}");
        feed(&mut control, &mut now, 1_000, 10, Span::from_millis(70));
        assert_eq!(control.min_rtt, Span::from_millis(70));
        let mut w = Window { ssthresh, ..Window::new(5.0) };
        control.on_recovered(&context(now), &mut w);
        assert_eq!(w.cwnd, 5.0, "after a timeout slow start goes on");
    }

    #[test]
    fn random_loss_costs_less_than_it_costs_reno() {
        // 1 in 500 packets over 1000/s and 50 ms: Reno's window is about 1.22 sqrt(500) = 27 of 50.
        let used = |name| {
            let mut bed = Bed::new(name, 1000, 50);
            bed.lose_every = 500;
            bed.run(10);
            bed.forget();
            bed.run(60);
            bed.utilisation()
        };
        let reno = used("newreno");
        assert!((0.4..0.75).contains(&reno), "{reno}");
        // Linux's half during recovery costs westwoodplus part of a round per loss.
        for (name, least) in [("westwood", 0.95), ("westwoodplus", 0.85)] {
            let used = used(name);
            assert!(used > least, "{name}: {used}");
        }
    }

    #[test]
    fn ns3_of_2016_estimates_a_segment_per_rtt() {
        let mut control =
            Westwood::new(Estimator::PerAck { filter: Filter::None, per_rtt: true, previous: 0.0 });
        let mut now = Time::ZERO;
        feed(&mut control, &mut now, 1_000, 1_000, Span::from_millis(40));
        assert_eq!(control.recalc_ssthresh(&context(now), &Window::new(90.0)), 2.0);
        let bytes = Sample { bytes: Bytes::new(10 * MSS), ..sample(Span::from_millis(40)) };
        control.on_sample(&context(now + Span::from_millis(1)), &mut Window::new(90.0), &bytes);
        assert_eq!(control.recalc_ssthresh(&context(now), &Window::new(90.0)), 10.0);
    }
}
