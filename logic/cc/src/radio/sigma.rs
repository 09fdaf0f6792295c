//! SIGMA: congestion control for uploads, based on the grants that the device's own modem decodes.
//!
//! Source: Diarra 2022 (thesis), sections 3.2.1 to 3.2.6, equations 3.7 to 3.12, Algorithm 1. It runs on the device, for its
//! uploads; the peer is not involved. Radio inputs, C_max, W_max and the utilisation: [`modem`](super::modem).
//!
//! States, as `inspect` shows them:
//!
//! | | window | left when |
//! |---|---|---|
//! | 0 plain | CUBIC's: there is no radio information | [`FRESH_TO_RETURN`] fresh hints in a row |
//! | 1 Max Start | `IW = max(W_max, 10 MSS)`, paced at `IW / RTTmin`; Algorithm 1, lines 3 to 9 | IW is acknowledged; a loss |
//! | 2 Proportional Adjustment | `W_max RTTmin / RTT_last` (3.10) | an RTT below 2 RTTmin |
//! | 3 Safe Increase | grows by `1 - Utz` per byte acknowledged (3.12, in bytes) | an RTT of 2 RTTmin or more |
//! | 4 hold | as it was: the information is stale | [`FRESH_TO_RETURN`] fresh hints; plain after [`HOLD`] |
//!
//! PA scales the current W_max, not the previous window (section 3.2.4). Only Max Start is paced.
//!
//! Ours, where the thesis is silent or needs a bound:
//!
//! * the window is between [`MIN_CWND`] and 2 W_max (`cap=off`: no upper bound);
//! * RTTmin is the connection's smallest RTT and never expires: several flows in PA hold the RTT near 2 RTTmin indefinitely,
//!   and a windowed minimum would double again and again. It is measured anew after a path change, a handover, and a timeout
//!   followed by an RTT of at least [`NEW_MINIMUM`] times RTTmin. A host's connections to a destination share it
//!   ([`PathMemory`], or `rtt_min`): a flow that starts while the queue is full would measure too large a value, and never
//!   yield;
//! * Safe Increase grows the window only while the window, not the application, is the limit (as RFC 7661);
//! * a loss keeps the window within `W_max RTTmin / RTT_last`, with packet conservation until it is repaired. More than
//!   [`POLICED`] lost in each of two consecutive RTTs without a queue means that the radio is not the bottleneck: see
//!   [`policer_guard`];
//! * a timeout leaves one segment until new data are acknowledged; then Max Start again, or CUBIC's slow start up to W_max /
//!   2;
//! * a mark is a PA step as if the RTT were 2 RTTmin; after an idle time of a timeout: Max Start again;
//! * radio information is stale after `max(100 ms, 4 RTTmin)`;
//! * from time to time a trial doubles the window that the reports allow; if more than was granted gets through, the reports
//!   are false and CUBIC takes over: see [`trial`].
//!
//! `profile=thesis` is the thesis alone, for reproductions: 3.7 with its clamp, the utilisation as computed, no guards (a
//! loss changes nothing, as in the author's code), no upper bound. Stale information is never used.

mod policer_guard;
#[cfg(test)]
mod several;
#[cfg(test)]
pub(super) mod tests;
mod trial;

use ranpace_phy::Direction;
use ranpace_units::{Rate, Span, Time};

use self::policer_guard::PolicerGuard;
use self::trial::{Finding, Trials, WindowOwner};
use super::modem::Inputs;
pub use super::modem::{Average, PMaxRule};
use crate::classic::cubic::{LinuxCubic, Params as CubicParams};
use crate::classic::hystart;
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, PathMemory, RadioHint, Sample, Sent,
    Signal, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "sigma",
    about: "uploads at the rate of the grants that the device's own modem hears",
    source: "Diarra 2022, section 3.2",
    options: &[
        OptionInfo { key: "profile", values: "field, thesis", about: "defaults of the others" },
        OptionInfo {
            key: "p_max",
            values: "reachable, eq37, own_plus_unused (thesis: eq37)",
            about: "resources that this user could have",
        },
        OptionInfo {
            key: "u_full",
            values: "0.5 to 1 [0.95] (thesis: 1)",
            about: "utilisation from which on the cell counts as used up",
        },
        OptionInfo {
            key: "avg",
            values: "window, last_tti",
            about: "grants are means over max(8 TTI, RTTmin / 2), or the last ones",
        },
        OptionInfo {
            key: "efficiency",
            values: "0.1 to 1 [1]",
            about: "share of the blocks that is left for packets",
        },
        OptionInfo { key: "sr_offset", values: "a time [0s]", about: "added to RTTmin" },
        OptionInfo { key: "rtt_last", values: "raw, min4", about: "last RTT, or smallest of the last four" },
        OptionInfo { key: "rtt_min", values: "a time [none]", about: "RTTmin that the device knows already" },
        OptionInfo {
            key: "memory",
            values: "on, off (thesis: off)",
            about: "a host's connections to a destination share RTTmin",
        },
        OptionInfo { key: "cap", values: "on, off (thesis: off)", about: "window of at most 2 W_max" },
        OptionInfo {
            key: "guards",
            values: "on, off (thesis: off)",
            about: "what is done about losses, marks, idle times and flows without data",
        },
        OptionInfo {
            key: "trials",
            values: "on, off (thesis: off)",
            about: "tries for more than is told, and is CUBIC while reports are contradicted",
        },
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::Other(Box::new(Sigma::new(read_params(options)?))))
}

/// Reads the parameters from the options.
///
/// # Errors
///
/// An option with a value that it cannot have.
pub fn read_params(options: &mut Options) -> Result<Params, OptionError> {
    let thesis = options.choice("profile", &[("field", false), ("thesis", true)])?;
    let reach = [
        ("reachable", PMaxRule::Reachable),
        ("eq37", PMaxRule::Eq37),
        ("own_plus_unused", PMaxRule::OwnPlusUnused),
    ];
    let default = if thesis { PMaxRule::Eq37 } else { PMaxRule::Reachable };
    // The default comes first.
    let mut reaches = reach.to_vec();
    reaches.sort_by_key(|(_, reach)| *reach != default);
    let average = [("window", Average::Window), ("last_tti", Average::LastTti)];
    let known = options.span("rtt_min", Span::ZERO)?;
    Ok(Params {
        reach: options.choice("p_max", &reaches)?,
        full: options.number("u_full", 0.5, 1.0, if thesis { 1.0 } else { FULL })?,
        average: options.choice("avg", &average)?,
        efficiency: options.number("efficiency", 0.1, 1.0, 1.0)?,
        sr_offset: options.span("sr_offset", Span::ZERO)?,
        least_of_four: options.choice("rtt_last", &[("raw", false), ("min4", true)])?,
        known_rtt_min: (!known.is_zero()).then_some(known),
        memory: options.flag("memory", !thesis)?,
        cap: options.flag("cap", !thesis)?,
        guards: options.flag("guards", !thesis)?,
        trials: options.flag("trials", !thesis)?,
    })
}

/// Utilisation that counts as 1. Ours: control symbols, and those that acknowledgements take from the downlink of a shared
/// carrier, keep it below 1, so that Safe Increase would continue until Proportional Adjustment cuts, again and again.
const FULL: f64 = 0.95;
/// Smallest window in segments. Ours.
const MIN_CWND: f64 = 2.0;
/// Smallest window of Max Start in segments: the standard initial window (RFC 6928). Ours.
const LEAST_START: f64 = 10.0;
/// RTT over RTTmin at which PA begins (Algorithm 1, line 14).
const QUEUE: f64 = 2.0;
/// Largest window over W_max. Ours: beyond it PA's condition holds.
const MOST: f64 = 2.0;
/// Age at which radio information is stale, unless four RTTmin are longer. Ours.
const STALE: Span = Span::from_millis(100);
/// A window is kept for this long on stale information. Ours.
const HOLD: Span = Span::SECOND;
/// Consecutive fresh hints after which SIGMA takes over from CUBIC. Ours.
const FRESH_TO_RETURN: u32 = 10;
/// RTT after a timeout, over RTTmin, that indicates a new path. Ours.
const NEW_MINIMUM: f64 = 1.5;
/// Share of segments lost in an RTT that is too large for radio losses. Ours.
const POLICED: f64 = 0.02;
/// Least margin of a retransmission timeout beyond the RTT (Linux `TCP_RTO_MIN`).
const MIN_RTO: Span = Span::from_millis(200);

/// User-configurable parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// How P_max is computed.
    pub reach: PMaxRule,
    /// Utilisation that counts as 1.
    pub full: f64,
    /// How P_current and P_unused are measured.
    pub average: Average,
    /// Factor of C_max.
    pub efficiency: f64,
    /// Added to RTTmin.
    pub sr_offset: Span,
    /// Whether RTT_last is the smallest of the last four RTTs.
    pub least_of_four: bool,
    /// RTTmin known before the connection begins.
    pub known_rtt_min: Option<Span>,
    /// Whether a host's connections to the same destination share their RTTmin.
    pub memory: bool,
    /// Whether the window is limited to 2 W_max.
    pub cap: bool,
    /// Reactions to losses, marks, idle times and limits of the application.
    pub guards: bool,
    /// Whether to try for more than is reported.
    pub trials: bool,
}

/// The control or state that sets the window; the values are those of `inspect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain = 0,
    MaxStart = 1,
    Proportional = 2,
    Safe = 3,
    Hold = 4,
}

/// The control.
#[derive(Debug)]
pub struct Sigma {
    params: Params,
    mode: Mode,
    /// Whether the connection is established.
    started: bool,
    cubic: LinuxCubic,
    inputs: Inputs,
    /// Smallest RTT; `None` before the first.
    min_rtt: Option<Span>,
    /// The next RTT replaces the minimum because the path has changed; and when the current path began.
    renew_min: bool,
    path_since: Time,
    /// Cell in which a smallest RTT recalled from other connections was measured, until the first hint.
    recalled_in: Option<u16>,
    /// The last four RTTs, newest last; zero for none.
    rtts: [Span; 4],
    /// When the information became stale.
    held_since: Time,
    /// IW and what was acknowledged since Max Start began, in bytes.
    start: (f64, f64),
    /// Window to restore once the losses have been repaired, in segments.
    repairing: Option<f64>,
    /// When the last timeout fired, until new data are acknowledged; and until an RTT has been judged after it.
    timeout_at: Option<Time>,
    judge_rtt_after: Option<Time>,
    policer_guard: PolicerGuard,
    trials: Option<Trials>,
}

impl Sigma {
    /// Creates a control.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            mode: Mode::Plain,
            started: false,
            cubic: plain(),
            inputs: Inputs::new(
                Direction::Uplink,
                params.reach,
                params.average,
                params.full,
                params.efficiency,
            ),
            min_rtt: params.known_rtt_min,
            renew_min: false,
            path_since: Time::ZERO,
            recalled_in: None,
            rtts: [Span::ZERO; 4],
            held_since: Time::ZERO,
            start: (0.0, 0.0),
            repairing: None,
            timeout_at: None,
            judge_rtt_after: None,
            policer_guard: PolicerGuard::new(),
            trials: params.trials.then(Trials::new),
        }
    }

    /// RTTmin with the offset; `None` before the first RTT.
    fn base_rtt(&self) -> Option<Span> {
        self.min_rtt.map(|rtt| rtt + self.params.sr_offset)
    }

    /// RTT_last.
    fn last_rtt(&self) -> Span {
        let seen = self.rtts.iter().copied().filter(|rtt| !rtt.is_zero());
        match self.params.least_of_four {
            false => self.rtts[3],
            true => seen.min().unwrap_or(Span::ZERO),
        }
    }

    /// `min(1, RTTmin / RTT_last)`; 1 before there is an RTT.
    fn shrink(&self) -> f64 {
        let (Some(base), last) = (self.base_rtt(), self.last_rtt()) else { return 1.0 };
        if last > base { base.ratio(last) } else { 1.0 }
    }

    /// W_max in segments (3.9); `None` while capacity or RTT are unknown.
    fn w_max(&self, cx: &Context) -> Option<f64> {
        let bytes = self.inputs.capacity()?.as_f64() / 8.0 * self.base_rtt()?.as_secs_f64();
        Some(bytes / cx.mss.as_f64().max(1.0))
    }

    fn stale_after(&self) -> Span {
        STALE.max(self.base_rtt().unwrap_or(Span::ZERO) * 4)
    }

    fn is_fresh(&self, now: Time) -> bool {
        self.inputs.age(now).is_some_and(|age| age <= self.stale_after()) && self.inputs.capacity().is_some()
    }

    /// Clamps a window in segments to its bounds.
    fn bounded(&self, cx: &Context, segments: f64) -> f64 {
        let most = match self.w_max(cx) {
            Some(w_max) if self.params.cap => (MOST * w_max).max(MIN_CWND),
            _ => f64::MAX,
        };
        let trial = self.trials.as_ref().and_then(Trials::window).unwrap_or(0.0);
        self.policer_guard.bound(segments.min(most).max(trial)).max(MIN_CWND)
    }

    /// Enters Max Start with the current W_max; does nothing if that is unknown.
    fn max_start(&mut self, cx: &Context, w: &mut Window) {
        let Some(w_max) = self.w_max(cx) else { return };
        let initial = w_max.max(LEAST_START);
        self.mode = Mode::MaxStart;
        self.start = (initial * cx.mss.as_f64(), 0.0);
        w.cwnd = initial;
        w.ssthresh = MIN_CWND; // growth must never be slow start's
        self.pace(cx, w);
    }

    /// Max Start's pace: `max(W_max, 10 MSS) / RTTmin` of payload, which follows C_max. The endpoint counts bytes on the
    /// wire.
    fn pace(&self, cx: &Context, w: &mut Window) {
        let (Some(w_max), Some(base)) = (self.w_max(cx), self.base_rtt()) else { return };
        let bits = 8.0 * w_max.max(LEAST_START) * cx.wire.as_f64();
        let rate = bits / base.max(Span::from_micros(1)).as_secs_f64();
        w.pacing = Pacing::Rate(Rate::from_bits_per_s_f64(rate).max(Rate::from_bits_per_s(1)));
    }

    /// SIGMA continues in Safe Increase from the current window.
    fn drive(&mut self, w: &mut Window) {
        self.mode = Mode::Safe;
        self.policer_guard = PolicerGuard::new();
        (self.repairing, self.timeout_at) = (None, None);
        w.ssthresh = MIN_CWND;
        w.pacing = Pacing::Unlimited;
    }

    /// CUBIC continues from the current window.
    fn fall_back(&mut self, cx: &Context, w: &mut Window) {
        self.mode = Mode::Plain;
        self.inputs.begin_run();
        self.cubic = plain();
        self.repairing = None;
        w.pacing = Pacing::Unlimited;
        self.cubic.on_start(cx, w);
    }

    /// Checks whether the information has become stale, or fresh again, since the last check.
    fn look(&mut self, cx: &Context, w: &mut Window) {
        let fresh = self.is_fresh(cx.now);
        match self.mode {
            Mode::Plain => {}
            Mode::Hold if fresh && self.inputs.run() >= FRESH_TO_RETURN => self.mode = Mode::Safe,
            Mode::Hold if cx.now.since(self.held_since) >= HOLD => {
                // CUBIC continues from `min(cwnd, last W_max)`, which may be that of a fade: slow start, until HyStart sees a
                // queue, up to the largest window that SIGMA itself would use, and CUBIC's own growth beyond that.
                let window = self.repairing.unwrap_or(w.cwnd);
                let w_max = self.w_max(cx).unwrap_or(window);
                w.cwnd = window.min(w_max).max(MIN_CWND);
                w.ssthresh = if self.params.guards { (MOST * w_max).max(w.cwnd) } else { w.cwnd };
                self.fall_back(cx, w);
            }
            Mode::MaxStart | Mode::Proportional | Mode::Safe if !fresh => {
                self.mode = Mode::Hold;
                // The information was stale from that time on, whenever this is noticed.
                let age = self.inputs.age(cx.now).unwrap_or(Span::ZERO);
                self.held_since = cx.now - (age - self.stale_after());
                w.pacing = Pacing::Unlimited;
                self.end_trial(cx, w);
            }
            _ => {}
        }
    }

    /// SIGMA takes the window.
    fn begin_trials(&mut self, now: Time) {
        if let Some(trials) = &mut self.trials {
            trials.drive(now);
        }
    }

    /// Ends the current trial, if any.
    fn end_trial(&mut self, cx: &Context, w: &mut Window) {
        if let Some(before) = self.trials.as_mut().and_then(|trials| trials.stop(cx.now)) {
            w.pacing = Pacing::Unlimited;
            w.cwnd = self.bounded(cx, w.cwnd.min(before));
        }
    }

    /// Compares acknowledged bytes with the reports.
    fn try_reports(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let Some(base) = self.base_rtt() else { return };
        let is_open = matches!(cx.state, State::Open | State::Disorder);
        let who = match self.mode {
            Mode::Plain => WindowOwner::Plain,
            Mode::Proportional | Mode::Safe
                if is_open
                    && self.repairing.is_none()
                    && self.timeout_at.is_none()
                    && self.policer_guard.cap().is_none() =>
            {
                WindowOwner::Ready
            }
            _ => WindowOwner::Sigma,
        };
        // CUBIC does not take over during a repair.
        if who == WindowOwner::Sigma && !is_open {
            return;
        }
        let Some(trials) = &mut self.trials else { return };
        match trials.on_ack(cx, ack.bytes.as_f64(), base, w.cwnd, who) {
            Finding::Begin => {
                w.cwnd = w.cwnd.max(trials.window().unwrap_or(0.0));
                let bits = 8.0 * trials.pace().unwrap_or(0.0) * cx.wire.as_f64();
                let rate = bits / base.max(Span::from_micros(1)).as_secs_f64();
                w.pacing = Pacing::Rate(Rate::from_bits_per_s_f64(rate).max(Rate::from_bits_per_s(1)));
            }
            Finding::End(before) => {
                w.pacing = Pacing::Unlimited;
                w.cwnd = self.bounded(cx, w.cwnd.min(before));
            }
            Finding::Contradicted { queue } if who != WindowOwner::Plain => {
                self.timeout_at = None;
                w.cwnd = (cx.in_flight as f64).min(w.cwnd).max(LEAST_START);
                // Without a queue, slow start finds the capacity.
                w.ssthresh = if queue { w.cwnd } else { f64::INFINITY };
                self.fall_back(cx, w);
            }
            Finding::Contradicted { .. } | Finding::Nothing => {}
        }
    }

    /// Discards path state; the next RTT becomes RTTmin.
    fn forget_path(&mut self) {
        if let Some(trials) = &mut self.trials {
            trials.forget();
        }
        self.renew_min = true;
        self.rtts = [Span::ZERO; 4];
        self.judge_rtt_after = None;
    }

    fn on_rtt(&mut self, now: Time, rtt: Span) {
        let rtt = rtt.max(Span::from_micros(1));
        self.rtts.rotate_left(1);
        self.rtts[3] = rtt;
        // Only packets sent after the timeout measure the current path.
        if let Some(at) = self.judge_rtt_after
            && now.since(at) >= rtt
        {
            self.judge_rtt_after = None;
            self.renew_min |= self.min_rtt.is_some_and(|least| rtt >= least.mul_f64(NEW_MINIMUM));
        }
        if self.renew_min {
            self.path_since = now;
        }
        self.min_rtt = match self.min_rtt {
            Some(least) if !self.renew_min => Some(least.min(rtt)),
            _ => Some(rtt),
        };
        self.renew_min = false;
    }

    /// New data were acknowledged: applies PA or SI.
    fn adjust(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let (Some(base), Some(w_max)) = (self.base_rtt(), self.w_max(cx)) else { return };
        if self.last_rtt() >= base.mul_f64(QUEUE) {
            self.mode = Mode::Proportional;
            w.cwnd = w_max * self.shrink();
        } else {
            self.mode = Mode::Safe;
            if cx.cwnd_limited || !self.params.guards {
                let acked = ack.bytes.as_f64() / cx.mss.as_f64().max(1.0);
                w.cwnd += (1.0 - self.inputs.utilisation()) * acked;
            }
        }
        w.cwnd = self.bounded(cx, w.cwnd);
    }

    fn on_loss(&mut self, cx: &Context, w: &mut Window, event: &Congestion) {
        self.policer_guard.on_lost(event.lost);
        if self.mode == Mode::MaxStart {
            self.mode = Mode::Safe;
            w.pacing = Pacing::Unlimited;
        }
        if !self.params.guards || !event.first || cx.state == State::Loss {
            return;
        }
        let most = self.w_max(cx).unwrap_or(w.cwnd) * self.shrink();
        self.repairing = Some(self.repairing.unwrap_or(w.cwnd).min(most).max(MIN_CWND));
        w.cwnd = (cx.in_flight as f64 + 1.0).min(self.repairing.unwrap_or(w.cwnd)).max(1.0);
    }
}

/// CUBIC as in Linux.
fn plain() -> LinuxCubic {
    LinuxCubic::new(CubicParams::LINUX, hystart::Kind::Classic)
}

impl CongestionControl for Sigma {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.started = true;
        if !cx.srtt.is_zero() {
            self.on_rtt(cx.now, cx.srtt);
        } else if cx.min_rtt != Span::MAX {
            self.on_rtt(cx.now, cx.min_rtt);
        }
        // After lost SYNs the window is one segment (RFC 5681, 3.1).
        if self.is_fresh(cx.now) && self.min_rtt.is_some() && w.cwnd > 1.0 {
            self.max_start(cx, w);
            self.begin_trials(cx.now);
        } else {
            self.cubic.on_start(cx, w);
        }
    }

    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        if self.mode == Mode::Plain {
            self.cubic.on_sent(cx, w, sent);
        }
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.on_rtt(cx.now, rtt);
            if let Some(trials) = &mut self.trials {
                trials.on_rtt(rtt);
            }
        }
        self.look(cx, w);
        if self.mode == Mode::Plain {
            self.cubic.on_sample(cx, w, sample);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.look(cx, w);
        if self.mode == Mode::Plain {
            if matches!(event.kind, Signal::Timeout { .. }) {
                self.judge_rtt_after = Some(cx.now);
            }
            return self.cubic.on_congestion(cx, w, event);
        }
        self.end_trial(cx, w);
        match event.kind {
            Signal::Loss => self.on_loss(cx, w, event),
            Signal::Ecn if self.params.guards => {
                let w_max = self.w_max(cx).unwrap_or(w.cwnd);
                let step = w_max * self.shrink().min(1.0 / QUEUE);
                let window = self.bounded(cx, step.min(self.repairing.unwrap_or(w.cwnd)));
                match &mut self.repairing {
                    Some(later) => *later = window,
                    None => w.cwnd = window,
                }
            }
            Signal::Ecn => {}
            Signal::Timeout { .. } => {
                if self.mode == Mode::MaxStart {
                    self.mode = Mode::Safe;
                }
                w.pacing = Pacing::Unlimited;
                (self.timeout_at, self.judge_rtt_after) = (Some(cx.now), Some(cx.now));
                self.repairing = None;
                w.cwnd = 1.0;
            }
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.try_reports(cx, w, ack);
        if self.mode == Mode::Plain {
            self.cubic.on_ack(cx, w, ack);
            return;
        }
        if self.params.guards {
            let queue = self.base_rtt().is_some_and(|base| self.last_rtt() >= base.mul_f64(QUEUE));
            self.policer_guard.on_ack(cx, ack.delivered, queue, self.repairing.unwrap_or(w.cwnd));
        }
        if self.timeout_at.is_some() {
            if ack.acked == 0 {
                return;
            }
            self.timeout_at = None;
            if self.is_fresh(cx.now) {
                self.max_start(cx, w);
            } else {
                // Slow start up to W_max / 2.
                w.ssthresh = (self.w_max(cx).unwrap_or(0.0) / 2.0).max(MIN_CWND);
                self.fall_back(cx, w);
            }
            return;
        }
        if let Some(later) = self.repairing {
            // Only as much is sent as has arrived (packet conservation, RFC 6937).
            w.cwnd = (cx.in_flight as f64 + ack.delivered.max(1) as f64).min(later).max(1.0);
            return;
        }
        match self.mode {
            Mode::MaxStart => {
                self.start.1 += ack.bytes.as_f64();
                if self.start.1 >= self.start.0 {
                    w.pacing = Pacing::Unlimited;
                    self.adjust(cx, w, ack);
                }
            }
            Mode::Proportional | Mode::Safe if ack.acked > 0 => self.adjust(cx, w, ack),
            _ => {}
        }
    }

    /// Recovery is PRR's after CUBIC's `ReduceTo`, and SIGMA's own after `Own`.
    fn owns_recovery(&self) -> bool {
        self.mode != Mode::Plain
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        if self.mode == Mode::Plain {
            self.cubic.on_recovered(cx, w);
        } else if let Some(later) = self.repairing.take() {
            w.cwnd = self.bounded(cx, later);
        }
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        if self.mode == Mode::Plain {
            self.cubic.on_spurious(cx, w, prior);
            return;
        }
        if self.mode == Mode::MaxStart {
            self.mode = Mode::Safe;
            w.pacing = Pacing::Unlimited;
        }
        self.timeout_at = None;
        let window = self.repairing.take().unwrap_or(w.cwnd).max(prior.cwnd);
        w.cwnd = self.bounded(cx, window);
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        self.look(cx, w);
        if self.mode == Mode::Plain {
            self.cubic.on_idle_restart(cx, w, idle);
            return;
        }
        self.end_trial(cx, w);
        if idle > cx.srtt + MIN_RTO && self.params.guards && self.mode != Mode::Hold {
            (self.repairing, self.timeout_at) = (None, None);
            self.max_start(cx, w);
        }
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.end_trial(cx, w);
        self.forget_path();
        if self.mode == Mode::Plain {
            self.cubic.on_path_change(cx, w);
        }
    }

    fn memory(&self) -> Option<PathMemory> {
        let min_rtt = self.min_rtt.filter(|_| self.params.memory && !self.renew_min)?;
        Some(PathMemory { min_rtt, cell: self.inputs.cell(), since: self.path_since })
    }

    fn recall(&mut self, memory: PathMemory) {
        if self.params.memory && !self.started {
            self.min_rtt = Some(self.min_rtt.map_or(memory.min_rtt, |known| known.min(memory.min_rtt)));
            (self.path_since, self.recalled_in) = (memory.since, memory.cell);
        }
    }

    fn wants_radio(&self) -> bool {
        true
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        if self.started {
            self.look(cx, w); // checks whether the information was stale until now
        }
        let base = self.base_rtt().unwrap_or(Span::ZERO);
        let Some(moved) = self.inputs.on_hint(cx.now, hint, base, self.stale_after()) else { return };
        if self.recalled_in.take().is_some_and(|cell| cell != hint.info.cell) {
            // The recalled RTTmin was measured in another cell.
            self.renew_min = true;
        }
        if moved && self.started {
            self.end_trial(cx, w);
            self.forget_path();
        }
        let (granted, stale_after) = (self.inputs.granted(), self.stale_after());
        if let (Some(trials), Some((at, _))) = (&mut self.trials, self.inputs.last()) {
            trials.on_report(at, granted, base, stale_after);
            if let Some(whole) = self.inputs.whole() {
                trials.on_grant(at, whole);
            }
        }
        if !self.started {
            return;
        }
        self.look(cx, w);
        match self.mode {
            Mode::Plain
                if self.inputs.run() >= FRESH_TO_RETURN
                    && self.trials.as_ref().is_none_or(|trials| trials.is_trusted(cx.now))
                    && matches!(cx.state, State::Open | State::Disorder)
                    && self.w_max(cx).is_some() =>
            {
                self.drive(w);
                self.begin_trials(cx.now);
                w.cwnd = self.bounded(cx, w.cwnd);
            }
            Mode::MaxStart => self.pace(cx, w),
            _ => {}
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(self.mode as u8));
        show("utz", self.inputs.utilisation());
        show("p_max_prbs", self.inputs.p_max());
        if let Some(capacity) = self.inputs.capacity() {
            show("c_max_bit_s", capacity.as_f64());
            if let Some(base) = self.base_rtt() {
                show("w_max_bytes", capacity.as_f64() / 8.0 * base.as_secs_f64());
            }
        }
        if let Some(base) = self.base_rtt() {
            show("min_rtt_s", base.as_secs_f64());
        }
        if let Some(cap) = self.policer_guard.cap() {
            show("cap_segments", cap);
        }
        if let Some(trials) = &self.trials {
            show("trial_segments", trials.window().unwrap_or(0.0));
            show("contradictions", f64::from(trials.contradictions()));
            if let Some(share) = trials.unlike() {
                show("reports_unlike", share);
            }
            if let Some(ratio) = trials.ratio() {
                show("delivered_over_granted", ratio);
            }
        }
    }
}
