//! CDBE's server: sends at the reported bandwidth times the gains of a state; the states follow the downstream delay (DSDL).
//!
//! Source: Zhong 2020, sections 6.4 and 6.5. Pacing interval and window: equations 6.6 and 6.7. Once per RTT_min (TW) the
//! mean delay `A_i` of that period (equation 6.8) is evaluated; the first match wins:
//!
//! | from | condition | to |
//! |---|---|---|
//! | all but STARTUP | less than half a BDP in flight, application has more ([`Restart`]) | STARTUP |
//! | STARTUP | rBW grew by less than 10 % twice in a row, or the count is reached | NORMAL |
//! | NORMAL | first evaluation after DRAIN | NORMAL |
//! | NORMAL | firm growth of the delay | DRAIN |
//! | NORMAL | firm decline | GROW |
//! | GROW | delay goes up | NORMAL |
//! | DRAIN | delay goes down | NORMAL |
//!
//! | state (`inspect`) | pacing gain | window gain |
//! |---|---|---|
//! | 0 STARTUP | [`HIGH_GAIN`] | [`HIGH_GAIN`] |
//! | 1 NORMAL | 1 | 2 |
//! | 2 DRAIN | 0.75 | 2 |
//! | 3 GROW | 1.25 | 2 |
//!
//! [`Delays`] documents how the printed conditions are read (typing errors included). Ours, where the thesis is silent:
//! [`DECLINES`], [`STARTUP_EVALUATIONS`], [`RESTART_EVALUATIONS`], [`LOW_FLIGHT`]; a TW begins with the first ACK after the
//! end of the previous one; without timestamps only the end of STARTUP is evaluated; while the application is the limit,
//! reports below the bandwidth in use change nothing; losses change nothing either; the delay is at least a tick of the
//! timestamps. See also [`crate::client_driven`].
//!
//! Delays are stored as measured. With `dsdl=pinned` they are shifted on evaluation, so that the smallest equals half of the
//! RTT_min known at that time. Clock drift is not corrected.

use ranpace_units::{Span, Time};

use crate::client_driven::bw_report::Format;
use crate::client_driven::pipe::{Pipe, Unit};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, ReceiverReport, Sample, Window,
};

/// 2/ln 2 (section 6.4.1).
pub const HIGH_GAIN: f64 = core::f64::consts::LOG2_E * 2.0;
/// Threshold for obvious changes, alpha; also the growth that keeps STARTUP going (section 6.4.2).
const ALPHA: f64 = 0.1;
/// Threshold for firm changes, beta (section 6.4.2): above two obvious growths, 1.1^2 = 1.21.
const BETA: f64 = 0.25;
/// Consecutive obvious growths that make a firm one, n (section 6.4.2).
const GROWTHS: u32 = 2;
/// Consecutive obvious declines that make a firm one, m. Ours: as n.
const DECLINES: u32 = 2;
/// Consecutive evaluations without growth of rBW that end STARTUP (section 6.4.1).
const FLAT: u32 = 2;
/// Longest STARTUP in evaluations, StartupCount. Ours: normally not reached.
pub(crate) const STARTUP_EVALUATIONS: u32 = 10;
/// The same after a restart of STARTUP. Ours.
const RESTART_EVALUATIONS: u32 = 3;
/// Share of the BDP below which STARTUP restarts, gamma. Ours: below the 0.75 of DRAIN.
const LOW_FLIGHT: f64 = 0.5;

/// The state of the machine; `inspect` shows the variant's position here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Finds the bandwidth.
    Startup,
    /// Sends at the reported rate.
    Normal,
    /// Drains the queue.
    Drain,
    /// Probes for more bandwidth.
    Grow,
}

impl State {
    /// G_pacing (section 6.4.1).
    pub fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => HIGH_GAIN,
            Self::Normal => 1.0,
            Self::Drain => 0.75,
            Self::Grow => 1.25,
        }
    }

    /// G_cwnd (section 6.4.1).
    pub fn cwnd_gain(self) -> f64 {
        match self {
            Self::Startup => HIGH_GAIN,
            Self::Normal | Self::Drain | Self::Grow => 2.0,
        }
    }
}

/// Mean delays and the values they are compared with, in one unit.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// A_i.
    mean: f64,
    /// A_{i-1}.
    before: Option<f64>,
    /// DSDL_min.
    min: f64,
    /// A on entry to GROW or DRAIN.
    entered: Option<f64>,
    /// Relative rise above DSDL_min that is obvious growth.
    above_min: f64,
}

impl Delays {
    /// Obvious growth. The sum of differences of equation 6.9 has the sign of A_i - A_{i-1}, so the first inequality implies
    /// the condition on it.
    fn up(&self) -> bool {
        self.before.is_some_and(|before| self.mean > (1.0 + ALPHA) * before)
            || self.mean > (1.0 + self.above_min) * self.min
    }

    /// Obvious decline.
    fn down(&self) -> bool {
        self.before.is_some_and(|before| self.mean < (1.0 - ALPHA) * before)
            || self.mean < (1.0 + ALPHA) * self.min
    }

    /// Firm growth, except by consecutive obvious growths.
    fn jumped(&self) -> bool {
        self.before.is_some_and(|before| self.mean >= (1.0 + BETA) * before)
    }

    /// Firm decline, except by consecutive obvious declines.
    fn fell(&self) -> bool {
        self.before.is_some_and(|before| self.mean < (1.0 - BETA) * before)
    }

    /// GROW has built a queue.
    fn up_grow(&self) -> bool {
        self.up() || self.entered.is_some_and(|entered| self.mean >= (1.0 + BETA) * entered)
    }

    /// DRAIN has drained the queue.
    fn down_drain(&self) -> bool {
        self.down() || self.entered.is_some_and(|entered| self.mean <= (1.0 - BETA) * entered)
    }
}

/// Inputs of the transitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TransitionInputs {
    flight_low: bool,
    app_limited: bool,
    startup_over: bool,
    /// First evaluation after DRAIN.
    waiting: bool,
    firm_up: bool,
    firm_down: bool,
    up_grow: bool,
    down_drain: bool,
    /// Whether `drain_cap` is reached.
    drained_long: bool,
}

/// The state diagram (figure 6.5), in the order of the table in the module documentation.
fn next(state: State, facts: &TransitionInputs) -> State {
    match state {
        State::Normal | State::Drain | State::Grow if facts.flight_low && !facts.app_limited => {
            State::Startup
        }
        State::Startup if facts.startup_over => State::Normal,
        State::Normal if facts.waiting => State::Normal,
        State::Normal if facts.firm_up => State::Drain,
        // Printed as DRAIN; only GROW has a gain that detects an increase of bandwidth.
        State::Normal if facts.firm_down => State::Grow,
        State::Grow if facts.up_grow => State::Normal,
        State::Drain if facts.down_drain || facts.drained_long => State::Normal,
        same => same,
    }
}

/// When low flight restarts STARTUP. Section 6.4.2: "e.g. after" a transmission that the application limited, the server "can
/// choose to".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Whenever less than half a BDP is in flight, for whatever reason.
    Flight,
    /// Only if the application has been the limit since STARTUP or since the flight was last large enough.
    AfterLimit,
}

/// Rise of a mean delay above the smallest that is obvious growth: section 6.4.2 prints beta and explains alpha.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// A quarter, as printed. Leaves a band in which NORMAL can rest.
    Beta,
    /// A tenth, as explained.
    Alpha,
}

/// Options of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Rise above the smallest delay that is obvious growth.
    pub growth: Growth,
    /// Longest first STARTUP in evaluations, StartupCount.
    pub startup: u32,
    /// When low flight restarts STARTUP.
    pub restart: Restart,
    /// Whether the smallest delay is set to half of RTT_min, whatever the clocks say.
    pub pinned: bool,
    /// Tick of the timestamps (section 6.3.1); zero for exact ones.
    pub granularity: Span,
    /// Whether the smallest delay rises to that of the wait after DRAIN (section 6.4.1).
    pub after_drain: bool,
    /// Time after which the smallest delay is forgotten, at the latest after twice as long; zero for never.
    pub min_window: Span,
    /// Evaluations after which DRAIN ends; zero for no limit.
    pub drain_cap: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            growth: Growth::Beta,
            startup: STARTUP_EVALUATIONS,
            restart: Restart::Flight,
            pinned: true,
            granularity: Span::from_millis(1),
            after_drain: false,
            min_window: Span::ZERO,
            drain_cap: 0,
        }
    }
}

/// Smallest delay, optionally over a sliding window.
#[derive(Clone, Copy, Debug)]
struct Smallest {
    /// Minima of the previous and of the current period.
    of: [f64; 2],
    since: Time,
}

impl Smallest {
    const NONE: Self = Self { of: [f64::INFINITY; 2], since: Time::ZERO };

    fn get(&self) -> f64 {
        self.of[0].min(self.of[1])
    }

    #[inline]
    fn update(&mut self, now: Time, period: Span, delay: f64) {
        if !period.is_zero() && now.since(self.since) >= period {
            (self.of, self.since) = ([self.of[1], f64::INFINITY], now);
        }
        self.of[1] = self.of[1].min(delay);
    }

    fn set(&mut self, delay: f64) {
        self.of = [delay; 2];
    }
}

/// Delays of the current TW.
#[derive(Clone, Copy, Debug, Default)]
struct Evaluation {
    begin: Option<Time>,
    sum: f64,
    samples: u32,
    smallest: f64,
}

/// The server.
#[derive(Clone, Debug)]
pub struct CdbeServer {
    params: Params,
    pipe: Pipe,
    state: State,
    /// Delay measured by the current ACK, in seconds.
    measured: Option<f64>,
    smallest: Smallest,
    current: Evaluation,
    /// A_i of the last TW and the difference of equation 6.9, as measured.
    mean: Option<f64>,
    difference: f64,
    /// A on entry to GROW or DRAIN, as measured.
    entered: Option<f64>,
    ups: u32,
    downs: u32,
    waiting: bool,
    /// Whether the application has been the limit; see [`Restart::AfterLimit`].
    was_limited: bool,
    /// Evaluations in the current state, and the maximum for STARTUP.
    evaluations: u32,
    startup_limit: u32,
    /// rBW at the last evaluation of STARTUP, and consecutive evaluations without growth.
    startup_bandwidth: Option<f64>,
    flat: u32,
    /// Time in DRAIN up to the last evaluation.
    drained: Span,
    evaluated_at: Time,
}

impl CdbeServer {
    pub(crate) fn new(format: Format, unit: Unit, params: Params) -> Self {
        Self {
            params,
            pipe: Pipe::new(format, unit),
            state: State::Startup,
            measured: None,
            smallest: Smallest::NONE,
            current: Evaluation::default(),
            mean: None,
            difference: 0.0,
            entered: None,
            ups: 0,
            downs: 0,
            waiting: false,
            was_limited: false,
            evaluations: 0,
            startup_limit: params.startup,
            startup_bandwidth: None,
            flat: 0,
            drained: Span::ZERO,
            evaluated_at: Time::ZERO,
        }
    }

    fn apply(&self, cx: &Context, w: &mut Window) {
        self.pipe.apply(cx, w, self.state.pacing_gain(), self.state.cwnd_gain());
    }

    fn quantised(&self, delay: Span) -> f64 {
        let tick = self.params.granularity.as_nanos();
        let ticks = delay.as_nanos().checked_div(tick);
        ticks.map_or(delay, |ticks| Span::from_nanos(ticks * tick)).as_secs_f64()
    }

    /// Offset that converts a measured delay into the one that is evaluated.
    fn shift(&self) -> f64 {
        if self.params.pinned { self.pipe.min_rtt.as_secs_f64() / 2.0 - self.smallest.get() } else { 0.0 }
    }

    /// DSDL_min as evaluated, at least a tick.
    fn smallest(&self) -> f64 {
        (self.smallest.get() + self.shift()).max(self.params.granularity.as_secs_f64())
    }

    /// Returns whether STARTUP's growth has ended (END).
    fn startup_over(&mut self) -> bool {
        let bandwidth = self.pipe.bandwidth.as_f64();
        if let Some(before) = self.startup_bandwidth.replace(bandwidth) {
            self.flat = if bandwidth < (1.0 + ALPHA) * before { self.flat + 1 } else { 0 };
        }
        self.flat >= FLAT || self.evaluations >= self.startup_limit
    }

    /// Evaluates the TW that has ended.
    fn evaluate(&mut self, cx: &Context) {
        let Evaluation { begin, sum, samples, smallest } = self.current;
        if self.state == State::Drain {
            self.drained += cx.now.since(self.evaluated_at.max(begin.unwrap_or(cx.now)));
        }
        self.evaluated_at = cx.now;
        if samples == 0 && self.state != State::Startup {
            return;
        }
        self.evaluations += 1;
        let mut facts = TransitionInputs::default();
        if self.state == State::Startup {
            facts.startup_over = self.startup_over();
        }
        if samples > 0 {
            self.judge(cx, sum / f64::from(samples), samples, &mut facts);
        }
        let state = next(self.state, &facts);
        let waited = self.state == State::Normal && core::mem::take(&mut self.waiting);
        if (waited && self.params.after_drain) || (facts.drained_long && state == State::Normal) {
            // The delay has not returned to its minimum: this may be the new one.
            if smallest + self.shift() > (1.0 + ALPHA) * self.smallest() {
                self.smallest.set(smallest);
            }
        }
        if state != self.state {
            self.enter(state);
        }
    }

    /// Compares the mean of the TW with the previous values.
    fn judge(&mut self, cx: &Context, mean: f64, samples: u32, facts: &mut TransitionInputs) {
        let shift = self.shift();
        let delays = Delays {
            mean: mean + shift,
            before: self.mean.map(|before| before + shift),
            min: self.smallest(),
            entered: self.entered.map(|entered| entered + shift),
            above_min: match self.params.growth {
                Growth::Beta => BETA,
                Growth::Alpha => ALPHA,
            },
        };
        self.ups = if delays.up() { self.ups + 1 } else { 0 };
        self.downs = if delays.down() { self.downs + 1 } else { 0 };
        self.difference = self.mean.map_or(0.0, |before| f64::from(samples) * (mean - before));
        self.mean = Some(mean);
        let flight_low = (cx.in_flight as f64) < LOW_FLIGHT * self.pipe.bdp(cx);
        self.was_limited = cx.app_limited || (self.was_limited && flight_low);
        *facts = TransitionInputs {
            flight_low: flight_low && (self.params.restart == Restart::Flight || self.was_limited),
            app_limited: cx.app_limited,
            startup_over: facts.startup_over,
            waiting: self.waiting,
            firm_up: delays.jumped() || self.ups >= GROWTHS,
            firm_down: delays.fell() || self.downs >= DECLINES,
            up_grow: delays.up_grow(),
            down_drain: delays.down_drain(),
            drained_long: self.params.drain_cap > 0
                && self.state == State::Drain
                && self.evaluations >= self.params.drain_cap,
        };
    }

    fn enter(&mut self, state: State) {
        if state == State::Startup {
            self.was_limited = false;
            (self.startup_limit, self.flat) = (RESTART_EVALUATIONS.min(self.params.startup), 0);
            self.startup_bandwidth = Some(self.pipe.bandwidth.as_f64());
        }
        if matches!(state, State::Grow | State::Drain) || self.state == State::Drain {
            (self.ups, self.downs) = (0, 0);
        }
        self.waiting = self.state == State::Drain && state == State::Normal;
        self.entered = self.mean;
        (self.state, self.evaluations) = (state, 0);
    }
}

impl CongestionControl for CdbeServer {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.pipe.on_start(cx);
        self.apply(cx, w);
    }

    fn on_sample(&mut self, cx: &Context, _: &mut Window, sample: &Sample) {
        self.pipe.on_sample(sample);
        self.measured = sample.one_way.map(|delay| self.quantised(delay));
        if let Some(delay) = self.measured {
            self.smallest.update(cx.now, self.params.min_window, delay);
        }
    }

    fn on_congestion(&mut self, _: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.pipe.on_congestion(w, event);
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, _: &Ack) {
        self.was_limited |= cx.app_limited;
        let begin = *self.current.begin.get_or_insert(cx.now);
        if self.pipe.min_rtt != Span::MAX && cx.now.since(begin) >= self.pipe.min_rtt {
            self.evaluate(cx);
            self.current = Evaluation { begin: Some(cx.now), ..Evaluation::default() };
            self.apply(cx, w);
        }
        if let Some(delay) = self.measured.take() {
            let current = &mut self.current;
            current.smallest = if current.samples == 0 { delay } else { current.smallest.min(delay) };
            current.sum += delay;
            current.samples += 1;
        }
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn on_spurious(&mut self, _: &Context, _: &mut Window, _: &Window) {}

    fn on_path_change(&mut self, _: &Context, _: &mut Window) {
        self.pipe.on_path_change();
        self.smallest = Smallest::NONE;
        self.current = Evaluation::default();
        (self.measured, self.mean, self.entered) = (None, None, None);
    }

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        if self.pipe.on_report(report, cx.app_limited) {
            self.apply(cx, w);
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(self.state as u8));
        show("pacing_gain", self.state.pacing_gain());
        show("cwnd_gain", self.state.cwnd_gain());
        self.pipe.inspect(show);
        if let Some(mean) = self.mean {
            show("dsdl_mean_s", mean + self.shift());
            show("dsdl_difference_s", self.difference);
        }
        if self.smallest.get().is_finite() {
            show("dsdl_min_s", self.smallest());
        }
        show("drain_time_s", self.drained.as_secs_f64());
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
