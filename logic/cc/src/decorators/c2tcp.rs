//! C2TCP: a loss-based control that also responds to its own delay, as if an AQM at the sender dropped packets.
//!
//! Source: Abbasloo, Xu and Chao, "C2TCP: A Flexible Cellular TCP to Meet Stringent Delay Requirements" (IEEE JSAC 2019),
//! "the paper" below; the authors' kernel patch and server, `Soheil-ab/c2tcp`, "the code" below (facts only).
//!
//! A decorator over any [`LossBased`] control, its parent, which continues unchanged. On each RTT sample:
//! * Condition Detector (Algorithm 1): `Setpoint = alpha MINRTT`. Below it the condition is **Good**. Above it, the condition
//!   is **Normal** for an `Interval` (the `Setpoint` of the last Good), then repeatedly **Bad**, after further intervals of
//!   `Interval / sqrt 1`, `Interval / sqrt 2`, ...
//! * Action Enforcer (Algorithm 2): Good adds `Setpoint / RTT` segments per window (equation 1); Bad asks the parent for its
//!   `ssthresh`, then sets the window to one segment. Nothing is retransmitted or declared lost: the ACKs of the data in
//!   flight restart growth.
//! * Tuner (Algorithm 3), every cycle: adjusts `alpha` by the mean RTT and the target, which may change at any time.
//!
//! State: MINRTT, `Interval`, the condition with `next_time` and `N`, `alpha`, the sum of RTTs of this cycle.
//!
//! Ours, where the sources differ or are silent:
//! * `RTT <= Setpoint` is Good (the code), unless `strict` (the paper): at `alpha = 1` no RTT is strictly below.
//! * Both are first truncated to whole milliseconds (`clock=ms`, the code). A target below MINRTT keeps `alpha` at 1, where
//!   at nanosecond resolution hardly any RTT is Good and the flow is cut repeatedly; in whole milliseconds every RTT within
//!   the millisecond of MINRTT is Good. `clock=ns` is the specification's arithmetic.
//! * Before the first Good, `Interval` is the first `Setpoint`.
//! * Good adds per segment ACKed, except while PRR owns the window or while the window is not the limit.
//! * A cycle without samples, or with the application as the limit in more than half of them, does not tune.
//! * `kernel_compat` follows the code where no other option does: Good adds in every state, once per ACK; `Interval` follows
//!   `alpha` and MINRTT at once; application-limited cycles tune too; and `clock=ms` holds, whatever that option says.
//! * `deaf`: with a parent that has epochs (CUBIC), the detector and the tuner ignore samples from the first `deaf` of each
//!   epoch: in the code they run behind such a test of CUBIC's.
//! * `after_bad=avoidance`: `ssthresh` becomes one segment too, so that the parent continues in congestion avoidance, as
//!   section IV of the paper assumes.
//! * A target of zero becomes twice the MINRTT at the first tuning (the code).

use ranpace_units::{Rate, Span, Time};

use crate::entry::Decorator;
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Pacing, Sample, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Decorator = Decorator {
    name: "c2tcp",
    about: "keeps the mean RTT near a target",
    source: "Abbasloo et al., C2TCP (IEEE JSAC 2019)",
    options: &[
        OptionInfo {
            key: "target",
            values: "a time (50ms)",
            about: "mean RTT to be met; 0s: twice the smallest",
        },
        OptionInfo { key: "alpha", values: "1 to 100 (1.5)", about: "setpoint over smallest RTT, at first" },
        OptionInfo { key: "min_alpha", values: "1 to 100 (1)", about: "smallest alpha that is tuned to" },
        OptionInfo { key: "max_alpha", values: "1 to 100 (10)", about: "largest alpha that is tuned to" },
        OptionInfo {
            key: "tuner",
            values: "alg3, eq16, memoryless, off",
            about: "Algorithm 3, or the code's",
        },
        OptionInfo { key: "cycle", values: "a time (500ms)", about: "time between two tunings" },
        OptionInfo { key: "after_bad", values: "slow_start, avoidance", about: "how the parent grows again" },
        OptionInfo {
            key: "deaf",
            values: "a time (0s)",
            about: "beginning of an epoch that is not looked at",
        },
        OptionInfo { key: "boost", values: "real, integer", about: "arithmetic of the increment when Good" },
        OptionInfo { key: "strict", values: "off, on", about: "an RTT equal to the setpoint is not Good" },
        OptionInfo {
            key: "clock",
            values: "ms, ns",
            about: "what RTTs are counted in where they are compared with the setpoint",
        },
        OptionInfo {
            key: "kernel_compat",
            values: "off, on",
            about: "as the authors' code, where it differs",
        },
        OptionInfo {
            key: "minrtt_expiry",
            values: "a time (0s: never)",
            about: "age at which the smallest RTT is measured anew",
        },
        OptionInfo { key: "pace", values: "off, on", about: "pace at the window per smoothed RTT" },
    ],
    wrap,
};

fn wrap(inner: Box<dyn LossBased>, options: &mut Options) -> Result<Box<dyn LossBased>, OptionError> {
    Ok(Box::new(C2tcp::new(inner, read_params(options)?)))
}

/// Reads the options.
///
/// # Errors
///
/// Fails if an option has an invalid value.
pub fn read_params(options: &mut Options) -> Result<Params, OptionError> {
    let base = Params::default();
    let params = Params {
        target: options.span("target", base.target)?,
        alpha: options.number("alpha", 1.0, 100.0, base.alpha)?,
        min_alpha: options.number("min_alpha", 1.0, 100.0, base.min_alpha)?,
        max_alpha: options.number("max_alpha", 1.0, 100.0, base.max_alpha)?,
        tuner: options.choice(
            "tuner",
            &[
                ("alg3", Tuner::Algorithm3),
                ("eq16", Tuner::Equation16),
                ("memoryless", Tuner::Memoryless),
                ("off", Tuner::Off),
            ],
        )?,
        cycle: options.span("cycle", base.cycle)?,
        avoidance_after_bad: options.choice("after_bad", &[("slow_start", false), ("avoidance", true)])?,
        deaf: options.span("deaf", base.deaf)?,
        integer_boost: options.choice("boost", &[("real", false), ("integer", true)])?,
        strict: options.flag("strict", base.strict)?,
        whole_ms: options.choice("clock", &[("ms", true), ("ns", false)])?,
        kernel_compat: options.flag("kernel_compat", base.kernel_compat)?,
        min_rtt_expiry: options.span("minrtt_expiry", base.min_rtt_expiry)?,
        pace: options.flag("pace", base.pace)?,
    };
    if params.min_alpha > params.max_alpha {
        let expected = format!("at least min_alpha ({})", params.min_alpha);
        return Err(OptionError { key: "max_alpha", expected, found: params.max_alpha.to_string() });
    }
    Ok(params)
}

/// How `alpha` is tuned by the mean RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuner {
    /// Algorithm 3: `alpha` moves by a step.
    Algorithm3,
    /// Equation 16, and the later code: `alpha` is multiplied.
    Equation16,
    /// The earlier code: `Target / MINRTT` is multiplied, whatever `alpha` was.
    Memoryless,
    /// `alpha` stays.
    Off,
}

/// User-configurable parameters; the module documentation explains each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Target of the mean RTT.
    pub target: Span,
    /// First `alpha`.
    pub alpha: f64,
    /// Smallest `alpha` of the tuner.
    pub min_alpha: f64,
    /// Largest `alpha` of the tuner.
    pub max_alpha: f64,
    /// How `alpha` is tuned.
    pub tuner: Tuner,
    /// Time between two tunings.
    pub cycle: Span,
    /// Whether the parent continues in congestion avoidance after a Bad, instead of slow start.
    pub avoidance_after_bad: bool,
    /// Duration at the start of the parent's epoch in which samples are ignored.
    pub deaf: Span,
    /// Whether Good adds whole segments only.
    pub integer_boost: bool,
    /// Whether an RTT equal to the setpoint is not Good.
    pub strict: bool,
    /// Whether RTTs are compared in whole milliseconds, not in nanoseconds.
    pub whole_ms: bool,
    /// Whether to behave as the authors' code.
    pub kernel_compat: bool,
    /// Age at which MINRTT is measured anew; zero for never.
    pub min_rtt_expiry: Span,
    /// Whether to pace.
    pub pace: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            target: Span::from_millis(50), // the paper, section VII-C
            alpha: 1.5,                    // the code, its scripts
            min_alpha: 1.0,                // the paper, Algorithm 3
            max_alpha: 10.0,               // the paper, Algorithm 3
            tuner: Tuner::Algorithm3,
            cycle: Span::from_millis(500), // the paper, section III-D
            avoidance_after_bad: false,
            deaf: Span::ZERO,
            integer_boost: false,
            strict: false,
            whole_ms: true, // the code
            kernel_compat: false,
            min_rtt_expiry: Span::ZERO,
            pace: false,
        }
    }
}

/// Condition of the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Below the setpoint.
    Good,
    /// Above it, but not for long.
    Normal,
    /// Above it for a whole interval.
    Bad,
}

/// The detector's verdict on one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Good: grow the window.
    Boost,
    /// Bad, due now: cut the window.
    Cut,
    /// Nothing to do.
    Leave,
}

/// The Condition Detector (Algorithm 1).
#[derive(Clone, Debug)]
struct Detector {
    /// MINRTT; [`Span::MAX`] before the first sample.
    min_rtt: Span,
    min_rtt_at: Time,
    setpoint: Span,
    interval: Span,
    condition: Condition,
    next_time: Time,
    /// Consecutive Bads, from 1.
    n: u32,
}

impl Detector {
    const fn new() -> Self {
        Self {
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            setpoint: Span::MAX,
            interval: Span::MAX,
            condition: Condition::Good,
            next_time: Time::ZERO,
            n: 1,
        }
    }

    fn judge(&mut self, params: &Params, alpha: f64, now: Time, rtt: Span) -> Verdict {
        let first = self.min_rtt == Span::MAX;
        let expiry = params.min_rtt_expiry;
        let expired = !expiry.is_zero() && now.since(self.min_rtt_at) > expiry;
        if rtt <= self.min_rtt || expired {
            self.min_rtt = rtt;
            self.min_rtt_at = now;
        }
        self.setpoint = self.min_rtt.mul_f64(alpha);
        if first || params.kernel_compat {
            self.interval = self.setpoint;
        }
        let (value, limit) = if params.whole_ms || params.kernel_compat {
            (rtt.as_millis(), self.setpoint.as_millis())
        } else {
            (rtt.as_nanos(), self.setpoint.as_nanos())
        };
        if value < limit || (value == limit && !params.strict) {
            self.interval = self.setpoint;
            self.condition = Condition::Good;
            self.n = 1;
            Verdict::Boost
        } else if self.condition == Condition::Good {
            self.condition = Condition::Normal;
            self.next_time = now + self.interval;
            Verdict::Leave
        } else if now > self.next_time {
            self.condition = Condition::Bad;
            self.next_time = now + self.interval.mul_f64(1.0 / f64::from(self.n).sqrt());
            self.n = self.n.saturating_add(1);
            Verdict::Cut
        } else {
            Verdict::Leave
        }
    }
}

/// Sums of one tuning cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    /// When the next tuning is due; `None` before the first sample.
    due: Option<Time>,
    rtt_ns: u64,
    samples: u64,
    app_limited: u64,
}

/// A parent control with C2TCP around it.
#[derive(Debug)]
pub struct C2tcp {
    inner: Box<dyn LossBased>,
    params: Params,
    alpha: f64,
    detector: Detector,
    cycle: Cycle,
    /// Integer boost accumulated towards the next segment.
    boost: u64,
    /// Bads since the connection began.
    bads: u64,
}

impl C2tcp {
    /// C2TCP over `inner`.
    pub fn new(inner: Box<dyn LossBased>, params: Params) -> Self {
        Self {
            inner,
            params,
            alpha: params.alpha,
            detector: Detector::new(),
            cycle: Cycle::default(),
            boost: 0,
            bads: 0,
        }
    }

    /// Good (equation 1): `cwnd += Setpoint / RTT` per window.
    fn grow(&mut self, cx: &Context, w: &mut Window, rtt: Span, delivered: u64) {
        let owned_by_prr = matches!(cx.state, State::Recovery | State::Cwr);
        if !self.params.kernel_compat && (owned_by_prr || !cx.cwnd_limited) {
            return;
        }
        if self.params.integer_boost {
            self.boost += self.detector.setpoint.as_millis() / rtt.as_millis().max(1);
            let cwnd = (w.cwnd as u64).max(1);
            w.cwnd += (self.boost / cwnd) as f64;
            self.boost %= cwnd;
        } else {
            let segments = if self.params.kernel_compat { 1 } else { delivered };
            let rtt = rtt.max(Span::from_micros(1));
            w.cwnd += self.detector.setpoint.ratio(rtt) * segments as f64 / w.cwnd;
        }
    }

    /// Bad: the parent's `ssthresh` for the window before the cut, then one segment.
    fn cut(&mut self, cx: &Context, w: &mut Window) {
        w.ssthresh = self.inner.recalc_ssthresh(cx, w);
        w.cwnd = 1.0;
        if self.params.avoidance_after_bad {
            w.ssthresh = 1.0;
        }
        self.bads += 1;
    }

    /// Counts a sample, after the tuning that may be due first.
    fn tune(&mut self, cx: &Context, rtt: Span) {
        match self.cycle.due {
            None => self.cycle.due = Some(cx.now + self.params.cycle),
            Some(due) if cx.now >= due => {
                self.end_cycle();
                self.cycle = Cycle { due: Some(cx.now + self.params.cycle), ..Cycle::default() };
            }
            Some(_) => {}
        }
        self.cycle.rtt_ns = self.cycle.rtt_ns.saturating_add(rtt.as_nanos());
        self.cycle.samples += 1;
        self.cycle.app_limited += u64::from(cx.app_limited);
    }

    fn end_cycle(&mut self) {
        let Cycle { rtt_ns, samples, app_limited, .. } = self.cycle;
        if self.params.target.is_zero() && self.detector.min_rtt != Span::MAX {
            self.params.target = self.detector.min_rtt * 2;
        }
        if samples == 0 || (app_limited * 2 > samples && !self.params.kernel_compat) {
            return;
        }
        let mean = Span::from_nanos(rtt_ns / samples);
        self.alpha = tuned(&self.params, self.alpha, mean, self.detector.min_rtt);
    }
}

/// The next `alpha` after a cycle with this mean RTT.
fn tuned(params: &Params, alpha: f64, mean: Span, min_rtt: Span) -> f64 {
    let (avg, target) = (mean.as_secs_f64(), params.target.as_secs_f64());
    if avg <= 0.0 || target <= 0.0 {
        return alpha;
    }
    let factor =
        if avg > target { 1.0 - 2.0 * (avg - target) / avg } else { 1.0 + (target - avg) / (2.0 * avg) };
    let next = match params.tuner {
        Tuner::Off => return alpha,
        Tuner::Algorithm3 if avg > target => alpha - 2.0 * (avg - target) / target,
        Tuner::Algorithm3 => alpha + (target - avg) / (2.0 * avg),
        Tuner::Equation16 => alpha * factor,
        Tuner::Memoryless if min_rtt == Span::MAX || min_rtt.is_zero() => alpha,
        Tuner::Memoryless => params.target.ratio(min_rtt) * factor,
    };
    next.clamp(params.min_alpha, params.max_alpha)
}

impl CongestionControl for C2tcp {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(self.inner.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(self.inner.as_mut())
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.inner.on_sample(cx, w, sample);
        let Some(rtt) = sample.rtt else { return };
        let deaf = self.params.deaf;
        if deaf.is_zero() || self.inner.epoch_start().is_none_or(|epoch| cx.now.since(epoch) >= deaf) {
            self.tune(cx, rtt);
            match self.detector.judge(&self.params, self.alpha, cx.now, rtt) {
                Verdict::Boost => self.grow(cx, w, rtt, sample.delivered),
                Verdict::Cut => self.cut(cx, w),
                Verdict::Leave => {}
            }
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.inner.on_congestion(cx, w, event)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.inner.on_ack(cx, w, ack);
        if self.params.pace && !cx.srtt.is_zero() {
            let bytes = cx.wire.mul_f64(w.cwnd.max(cx.in_flight as f64));
            w.pacing = Pacing::Rate(Rate::of(bytes, cx.srtt));
        }
    }

    /// Ours: a new path has a new MINRTT; `alpha` stays, as when the target changes.
    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.detector = Detector::new();
        self.inner.on_path_change(cx, w);
    }

    /// The target takes effect at the next tuning (the paper's section III-D); `alpha` and the condition are kept.
    fn set_target(&mut self, target: Span) -> bool {
        self.params.target = target;
        true
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let d = &self.detector;
        let known = |span: Span| if span == Span::MAX { f64::NAN } else { span.as_secs_f64() };
        show("alpha", self.alpha);
        show("setpoint", known(d.setpoint));
        show("interval", known(d.interval));
        show("condition", f64::from(d.condition as u8));
        show("bads", self.bads as f64);
        show("target", self.params.target.as_secs_f64());
        self.inner.inspect(show);
    }
}

impl LossBased for C2tcp {
    fn recalc_ssthresh(&mut self, cx: &Context, w: &Window) -> f64 {
        self.inner.recalc_ssthresh(cx, w)
    }

    fn parent(&self) -> Option<&dyn LossBased> {
        Some(self.inner.as_ref())
    }
}
#[cfg(test)]
mod tests;
