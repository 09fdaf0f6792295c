//! The guard of client-driven controls: CUBIC controls the window while the peer's reports are missing or
//! contradicted.
//!
//! Source: none; all of this is ours. A report is an unauthenticated hint: it may be missing, stop, or be false.
//! `guard=off` disables all of this. With it, QUIC-CQIC, DCIC, CQIC-S, CDBE and CDBEv2 run behind the guard in one of
//! two modes:
//!
//! * *plain*: CUBIC controls the window as if there were no reports. The guarded control still sees every event and sets a
//!   shadow window, so that it knows the path when it takes over. A connection starts in this mode.
//! * *driven*: the guarded control's window and pace apply, bounded by what the path has delivered: at most [`FLIGHT`] times the
//!   largest delivery rate times the smallest RTT in flight, and at most [`PACE`] times that rate as pace. The flow therefore
//!   approaches a false report as in slow start, can detect it on the way, and builds a queue of one BDP at most.
//!
//! **Only the delivery rate can contradict a report.** A queue, a loss or a slow link cannot, since a rival, the
//! radio or a delayed acknowledgement may cause it. Both rates are averaged over the last [`ROUNDS`] rounds, and a
//! contradiction must last for as many rounds. A round is one smoothed RTT, at most [`ROUND_RTTS`] smallest RTTs;
//! application-limited rounds are not judged.
//!
//! * *Too high*: the report exceeds [`CONTRADICTS`] times the delivery rate, and there is a queue (without one, the flow has not
//!   tested the link).
//! * *Too low*: the delivery rate exceeds [`CONTRADICTS`] times the report. A sender that obeys an under-reported capacity never
//!   exceeds it, so its own measurements cannot expose the error. While there is no queue, the guard therefore sends at [`LIFT`]
//!   times the delivery rate, whatever the control asks for (a *lift*): the delivery rate rises until it contradicts the report,
//!   or until a queue shows that the report is true. The same lift speeds up a control that holds back on an empty link.
//!
//! **A flow that joins others of its own kind** measures their queue as part of its smallest RTT. It would see no
//! queue, lift forever, and take all the capacity that the others, which do see the queue, give up. So where nobody
//! fills the buffer (no loss and no deep queue for [`CALM`] rounds), a flow that sees no queue *checks* from time to
//! time: it keeps little more than half a BDP in flight for two rounds, so that its own share of a queue drains and
//! the smallest RTT reveals the path without it.
//!
//! A round has a queue if its smallest RTT exceeds [`QUEUE_RATIO`] times the connection's by more than
//! [`QUEUE_SLACK`] and [`QUEUE_SEGMENTS`]. After a lift overflows a buffer too small to show a queue, lifts are
//! bounded for a while ([`CEILING`]); the losses of a lift do not count against the reports.
//!
//! | from driven to plain (`guard_reason`) | when | then |
//! |---|---|---|
//! | 1 stale | no report for max(1 s, 4 smoothed RTT) while data are in flight | |
//! | 2 high, 3 low | the reports are contradicted | hold of at least [`HOLD`] |
//! | 4 loss | more than [`LOSS`] lost in the last rounds | hold of at least [`LOSS_HOLD`] |
//! | 5 timeout | the timer fires | CUBIC's response |
//! | 6 mark | the network marks | CUBIC's response, hold of at least [`HOLD`] |
//! | 7 rival | a loss at an RTT above [`QUEUE_RATIO`] [`FLIGHT`] smallest RTTs | CUBIC's response, slow start; hold of [`LONGEST_HOLD`] |
//!
//! Reason 7 is no contradiction either. With [`FLIGHT`] BDPs in flight this flow alone cannot build such a queue, so
//! a buffer that overflows with it holds others' data. All these controls drain queues, and would yield everything to
//! rivals that do not. (For the same reason the bound on data in flight uses the current RTT while the queue is that
//! deep: with the smallest RTT the flow would be held below its share of a queue that others built.) CUBIC competes
//! with them instead, which takes many RTTs of that length.
//!
//! The guard returns to driven when the hold is over, [`GOOD_ROUNDS`] rounds in a row had fresh, uncontradicted
//! reports, no loss is being repaired, and CUBIC's slow start has ended or has built a queue: it finds the available
//! capacity faster than any of these controls. A hold doubles each time up to [`LONGEST_HOLD`], and is reset after a
//! driven period at least as long as it was.
//!
//! Truthful reports of a cellular link can differ many times over within a round, so the guard compares their mean.
//! The mean is weighted such that the reports of a truthful receiver yield the delivery rate however it varies: the
//! bytes acknowledged since the previous report are taken to have arrived at the rate of the new one, and the mean is
//! all bytes over the sum of these times. A silence of the link counts in neither rate.
//!
//! The guard does not detect reports that are wrong by less than a factor of [`CONTRADICTS`], which cost a queue of
//! one BDP or, with the lift, nothing; nor reports that become too low while others keep a standing queue, where no
//! lift tests them. `docs/client-driven.md` has the same account for the guards of SIGMA and RAPID, and the figures.

use ranpace_units::{Rate, Span, Time};

use crate::classic::cubic::{LinuxCubic, Params};
use crate::classic::hystart;
use crate::client_driven::bw_report::Format;
use crate::entry::Control;
use crate::filter::MaxFilter;
use crate::interface::{
    Ack, Allocation, Congestion, CongestionControl, Context, LossResponse, Pacing, Packet, PathMemory,
    PepReport, RadioHint, ReceiverReport, Sample, Sent, Signal, State, View, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// The option.
pub(crate) const GUARD: OptionInfo = OptionInfo {
    key: "guard",
    values: "on, off",
    about: "CUBIC while reports are missing, stale or implausible; off: as published",
};

/// The control, guarded unless the option says otherwise.
pub(crate) fn build(
    control: impl CongestionControl + 'static,
    format: Format,
    options: &mut Options,
) -> Result<Control, OptionError> {
    Ok(Control::Other(if options.flag(GUARD.key, true)? {
        Box::new(Guard::new(Box::new(control), format))
    } else {
        Box::new(control)
    }))
}

/// A report and the delivery rate contradict each other if they differ by more than this factor. SIGMA's guard uses
/// the same: truthful reports that are wrong by 30 % and measured over other intervals stay below it.
const CONTRADICTS: f64 = 1.5;
/// Rounds over which rates are averaged and losses counted, and for which a contradiction must last. In a fading cell
/// the delivery rate can differ by half from one round to the next; the mean of eight hardly varies.
const ROUNDS: usize = 8;
/// Data in flight over the largest delivery rate times the smallest RTT: the window gain of all these controls (Zhong
/// 2020, equations 5.6, 6.7 and 7.3), so that a true report is not held back, and a false one builds a queue of one
/// BDP at most.
const FLIGHT: f64 = 2.0;
/// Pace over the largest delivery rate: 2/ln 2, the least at which the data in flight can double each RTT (Zhong
/// 2020, section 6.4.1, as BBR).
const PACE: f64 = core::f64::consts::LOG2_E * 2.0;
/// Data in flight during a check, over the BDP, and its minimum in segments: it drains what this flow has queued. It
/// is not below one half, at which these controls restart STARTUP (Zhong 2020, section 6.4.2).
const CHECK_FLIGHT: f64 = 0.6;
const LEAST_CHECK_FLIGHT: f64 = 4.0;
/// Rounds of a check: one to drain, one to measure the path without the flow's queue.
const CHECK_ROUNDS: u32 = 2;
/// Rounds without a loss or a deep queue before a check: then no rival is present that would take the yielded
/// capacity.
const CALM: u32 = 64;
/// Least time between two checks: as BBR's PROBE_RTT (Cardwell et al. 2016), and in smoothed RTTs, so that checks
/// cost at most 2 % of the rate.
const CHECK_EVERY: Span = Span::from_secs(10);
const CHECK_EVERY_RTTS: u64 = 64;
/// Segments that may be in flight regardless of what was delivered: an initial window.
const LEAST_FLIGHT: f64 = 10.0;
/// Rounds of the maximum filter of the delivery rate.
const RATE_ROUNDS: u64 = 10;
/// Pace over the delivery rate in a lift: the gain of GROW in these controls (Zhong 2020, sections 6.4.1 and 7.2.2),
/// as BBR.
const LIFT: f64 = 1.25;
/// Rounds after a lift in which its losses are still detected.
const LIFT_LOSES_FOR: u32 = 2;
/// A round has a queue if its smallest RTT exceeds the connection's by this factor, plus this slack. The time allows
/// for cells, where blocks wait for their turn and are retransmitted (8 ms); the segments allow for slow links, where
/// the RTT includes the transmission time of a segment and the handshake's did not.
const QUEUE_RATIO: f64 = 1.25;
const QUEUE_SLACK: Span = Span::from_millis(5);
const QUEUE_SEGMENTS: f64 = 2.0;
/// Longest round in smallest RTTs, and shortest round in segments.
const ROUND_RTTS: u64 = 2;
const ROUND_SEGMENTS: u64 = 4;
/// After a lift overflowed the buffer, lifts stay below this share of the largest delivery rate for this time, so
/// that a small buffer overflows at most once in ten seconds.
const BELOW: f64 = 0.95;
const CEILING: Span = Span::from_secs(10);
/// Longest time that bytes may be taken to need at a reported rate, over the time since the previous report. With more,
/// a pause of the link makes true reports look low; with less, wildly wrong ones look true. A pause beyond two RTTs counts
/// as a silence.
const MOST_CLAIMED: f64 = 2.0;
/// Share of lost segments, and least number of them over the last rounds and in one round. Radio links lose up to 2
/// %, and a few lost segments are chance; a pace above the link's rate loses the excess.
const LOSS: f64 = 0.05;
const LEAST_LOST: u64 = 8;
const LEAST_LOST_IN_ROUND: u64 = 3;
/// Good rounds in a row before the guarded control takes the window.
const GOOD_ROUNDS: u32 = 4;
/// Age at which a report is stale, unless four smoothed RTTs are longer.
const STALE: Span = Span::SECOND;
/// First hold after contradicted reports or a mark; after excessive loss, which is no evidence against the reports;
/// and the longest hold.
const HOLD: Span = Span::from_secs(10);
const LOSS_HOLD: Span = Span::SECOND;
const LONGEST_HOLD: Span = Span::from_secs(60);

/// The control that sets the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Driven,
}

/// Why CUBIC controls the window; `inspect` shows the variant's position here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The guard has never been driven.
    None,
    Stale,
    High,
    Low,
    Loss,
    Timeout,
    Mark,
    Rival,
}

/// Measurements of the current round.
#[derive(Clone, Copy, Debug)]
struct Round {
    begin: Time,
    delivered: u64,
    lost: u64,
    app_limited: bool,
    rtt: Span,
    /// Last sample of the delivery rate.
    rate: Rate,
    /// Bytes acknowledged under a report, and the seconds that they would take at the reported rate.
    reported: (f64, f64),
}

/// Record of a finished round.
#[derive(Clone, Copy, Debug, Default)]
struct RoundRecord {
    delivered: u64,
    lost: u64,
    bytes: f64,
    seconds: f64,
    reported: (f64, f64),
}

impl Round {
    fn new(begin: Time) -> Self {
        Self {
            begin,
            delivered: 0,
            lost: 0,
            app_limited: false,
            rtt: Span::MAX,
            rate: Rate::ZERO,
            reported: (0.0, 0.0),
        }
    }
}

/// A client-driven control with CUBIC beside it.
#[derive(Debug)]
pub struct Guard {
    control: Box<dyn CongestionControl>,
    /// Window set by the guarded control.
    wanted: Window,
    cubic: LinuxCubic,
    format: Format,
    mode: Mode,
    reason: Reason,
    /// Driven mode is barred until then; length of the next hold.
    hold_until: Time,
    hold: Span,
    /// When driven mode began, or the guard fell back.
    since: Time,
    /// Time and value of the last report.
    report: Option<(Time, Rate)>,
    round: Option<Round>,
    /// Delivery rates in bit/s by round.
    delivered: MaxFilter,
    rounds: u64,
    /// Upper bounds of segments in flight and of the pace, derived from the delivery rates.
    most_flight: f64,
    most_pace: Rate,
    past: [RoundRecord; ROUNDS],
    /// Bytes acknowledged since the last new report. If not every acknowledgement carries a report, each report is
    /// new; otherwise those that differ from the previous one are.
    unreported: f64,
    /// Whether a report came with this acknowledgement, whether one came with the previous one, and whether it
    /// differs.
    came: bool,
    came_before: bool,
    differs: bool,
    acked_at: Time,
    /// When the last new report came.
    news_at: Time,
    /// Whether the last round had a queue.
    queue: bool,
    /// The last round's smallest RTT, if it was longer than this flow alone can make it.
    deep: Option<Span>,
    /// Consecutive rounds: good ones, those with reports too high, and those with reports too low.
    good: u32,
    high: u32,
    low: u32,
    /// Least payload rate in bit/s while there is no queue.
    lift: Option<f64>,
    /// Consecutive rounds without a loss or a deep queue; remaining rounds of a check; earliest time of the next
    /// check.
    calm: u32,
    checking: u32,
    check_at: Time,
    /// The last round was part of a check, so the delivery rate of the next one still reflects it.
    checked: bool,
    /// Rounds since the last lifted one, whose losses are detected for two more rounds.
    since_lift: u32,
    /// Upper bound of lifts in bit/s and when it expires, set after a lift overflowed the buffer.
    ceiling: (f64, Time),
    /// CUBIC restarts slow start once the losses have been repaired.
    restart: bool,
    /// Delivered and reported rate of the last rounds in bit/s, as compared.
    compared: (f64, f64),
}

impl Guard {
    /// Guards a control that receives reports in this format.
    pub fn new(control: Box<dyn CongestionControl>, format: Format) -> Self {
        Self {
            control,
            wanted: Window::new(LEAST_FLIGHT),
            cubic: LinuxCubic::new(Params::LINUX, hystart::Kind::Classic),
            format,
            mode: Mode::Plain,
            reason: Reason::None,
            hold_until: Time::ZERO,
            hold: Span::ZERO,
            since: Time::ZERO,
            report: None,
            round: None,
            delivered: MaxFilter::default(),
            rounds: 0,
            most_flight: LEAST_FLIGHT,
            most_pace: Rate::ZERO,
            past: [RoundRecord::default(); ROUNDS],
            unreported: 0.0,
            came: false,
            came_before: false,
            differs: false,
            acked_at: Time::ZERO,
            news_at: Time::ZERO,
            queue: false,
            deep: None,
            good: 0,
            high: 0,
            low: 0,
            lift: None,
            calm: 0,
            checking: 0,
            check_at: Time::ZERO,
            checked: false,
            since_lift: u32::MAX,
            ceiling: (f64::INFINITY, Time::ZERO),
            restart: false,
            compared: (0.0, 0.0),
        }
    }

    /// When the last report becomes stale; `None` without one.
    fn stale_at(&self, cx: &Context) -> Option<Time> {
        self.report.map(|(at, _)| at + STALE.max(cx.srtt * 4))
    }

    fn is_stale(&self, cx: &Context) -> bool {
        self.stale_at(cx).is_none_or(|at| cx.now >= at)
    }

    /// Returns whether a round with this smallest RTT and delivery rate had a queue; `beyond` scales the threshold in
    /// smallest RTTs.
    fn is_queue(cx: &Context, rtt: Span, beyond: f64, delivered: Rate) -> bool {
        if cx.min_rtt == Span::MAX || rtt == Span::MAX {
            return false;
        }
        let segments = 8.0 * QUEUE_SEGMENTS * cx.wire.as_f64() / delivered.as_f64().max(1.0);
        let slack = QUEUE_SLACK + Span::from_secs_f64(segments.min(10.0));
        rtt > cx.min_rtt.mul_f64(QUEUE_RATIO * beyond) + slack
    }

    /// Updates the bounds of data in flight and pace from what has been delivered.
    fn bound(&mut self, cx: &Context) {
        let delivered = self.delivered.get() as f64;
        let mss = cx.mss.as_f64().max(1.0);
        // Queue that this flow cannot have built is no reason to send less.
        let rtt = self.deep.unwrap_or(cx.min_rtt);
        let bdp = delivered / 8.0 * rtt.min(Span::from_secs(10)).as_secs_f64() / mss;
        let wire = cx.wire.as_f64();
        let least = 8.0 * LEAST_FLIGHT * wire / cx.srtt.max(Span::from_millis(1)).as_secs_f64();
        self.most_flight = (FLIGHT * bdp).max(LEAST_FLIGHT);
        self.most_pace = Rate::from_bits_per_s_f64((PACE * delivered * wire / mss).max(least));
    }

    /// Publishes the control's window and pace, within these bounds.
    #[inline]
    fn publish(&self, cx: &Context, w: &mut Window) {
        if self.mode == Mode::Plain {
            return;
        }
        let wanted = match self.wanted.pacing {
            Pacing::Unlimited => Rate::MAX,
            Pacing::Rate(rate) => rate,
        };
        let mss = cx.mss.as_f64().max(1.0);
        let (window, pace) = self.lift.map_or((0.0, Rate::ZERO), |rate| {
            let window = FLIGHT * rate / 8.0 * cx.min_rtt.min(Span::from_secs(10)).as_secs_f64() / mss;
            (window, Rate::from_bits_per_s_f64(rate * cx.wire.as_f64() / mss))
        });
        w.cwnd = self.wanted.cwnd.max(window).min(self.most_flight).max(1.0);
        if self.checking > 0 {
            w.cwnd = w.cwnd.min((self.most_flight * CHECK_FLIGHT / FLIGHT).max(LEAST_CHECK_FLIGHT));
        }
        w.ssthresh = self.wanted.ssthresh;
        w.pacing = Pacing::Rate(wanted.max(pace).min(self.most_pace).max(Rate::from_bits_per_s(1)));
    }

    fn drive(&mut self, cx: &Context, w: &mut Window) {
        (self.mode, self.since) = (Mode::Driven, cx.now);
        (self.high, self.low, self.lift, self.restart) = (0, 0, None, false);
        self.checking = 0;
        // The losses so far happened under CUBIC.
        self.past.iter_mut().for_each(|past| past.lost = 0);
        self.bound(cx);
        self.publish(cx, w);
    }

    /// CUBIC takes over from the current flight.
    fn fall_back(&mut self, cx: &Context, w: &mut Window, reason: Reason) {
        let first = match reason {
            // None of these is evidence against the reports.
            Reason::None | Reason::Stale | Reason::Timeout => Span::ZERO,
            Reason::Loss => LOSS_HOLD,
            Reason::High | Reason::Low | Reason::Mark => HOLD,
            Reason::Rival => {
                self.hold_until = cx.now + LONGEST_HOLD;
                Span::ZERO
            }
        };
        if !first.is_zero() {
            if cx.now.since(self.since) >= self.hold.max(HOLD) {
                self.hold = first;
            }
            self.hold = self.hold.max(first);
            self.hold_until = cx.now + self.hold;
            self.hold = (self.hold * 2).min(LONGEST_HOLD);
        }
        (self.mode, self.reason, self.since, self.good) = (Mode::Plain, reason, cx.now, 0);
        (self.lift, self.checking) = (None, 0);
        // A flow that joins others begins with slow start; the others caused the loss.
        self.restart = reason == Reason::Rival;
        self.cubic = LinuxCubic::new(Params::LINUX, hystart::Kind::Classic);
        w.cwnd = (cx.in_flight as f64).max(LEAST_FLIGHT).min(w.cwnd.max(LEAST_FLIGHT));
        // After reports that were too low, slow start finds the capacity; otherwise the data in flight is about
        // right.
        w.ssthresh = if reason == Reason::Low && !self.queue { f64::INFINITY } else { w.cwnd };
        w.pacing = Pacing::Unlimited;
        self.cubic.on_start(cx, w);
    }

    /// Judges a finished round.
    fn judge(&mut self, cx: &Context, w: &mut Window, round: &Round) {
        let (bytes, length) = (cx.mss * round.delivered, cx.now.since(round.begin).max(Span::from_micros(1)));
        let delivered = Rate::of(bytes, length);
        self.queue = Self::is_queue(cx, round.rtt, 1.0, delivered);
        self.deep = Self::is_queue(cx, round.rtt, FLIGHT, delivered).then_some(round.rtt);
        let overflows = round.lost >= LEAST_LOST_IN_ROUND
            && round.lost as f64 > LOSS * (round.delivered + round.lost) as f64;
        self.since_lift = if self.lift.is_some() { 0 } else { self.since_lift.saturating_add(1) };
        let lifted = self.since_lift <= LIFT_LOSES_FOR;
        let is_calm = round.lost == 0 && self.deep.is_none();
        self.calm = if is_calm { self.calm.saturating_add(1) } else { 0 };
        let was_checked = core::mem::replace(&mut self.checked, self.checking > 0);
        // A round held back by the application or by a check is no evidence about the reports.
        let left_out = round.app_limited || self.checked || was_checked;
        self.past.rotate_left(1);
        self.past[ROUNDS - 1] = RoundRecord {
            delivered: round.delivered,
            // Losses during a lift count against the lift, not against the reports.
            lost: if lifted { 0 } else { round.lost },
            bytes: if left_out { 0.0 } else { bytes.as_f64() },
            seconds: if left_out { 0.0 } else { length.as_secs_f64() },
            reported: if left_out { (0.0, 0.0) } else { round.reported },
        };
        self.rounds += 1;
        if lifted && overflows {
            self.ceiling = (BELOW * self.delivered.get() as f64, cx.now + CEILING);
        }
        let contradicted = if round.app_limited { None } else { self.contradicted() };
        match self.mode {
            Mode::Plain => {
                let good = contradicted == Some(false) && !self.is_stale(cx);
                self.good = if good { self.good + 1 } else { 0 };
                let started = self.queue || !w.in_slow_start();
                if self.good >= GOOD_ROUNDS && started && cx.now >= self.hold_until && cx.state == State::Open
                {
                    self.drive(cx, w);
                }
            }
            Mode::Driven => {
                let (arrived, lost) =
                    self.past.iter().fold((0, 0), |sum, past| (sum.0 + past.delivered, sum.1 + past.lost));
                let reason = if lost >= LEAST_LOST && lost as f64 > LOSS * (arrived + lost) as f64 {
                    Reason::Loss
                } else if self.high as usize >= ROUNDS {
                    Reason::High
                } else if self.low as usize >= ROUNDS {
                    Reason::Low
                } else {
                    let ceiling = if cx.now < self.ceiling.1 { self.ceiling.0 } else { f64::INFINITY };
                    let is_free = !self.queue && !overflows && !round.app_limited;
                    let goes = !self.advance_check(cx, is_free) && is_free;
                    let delivered = delivered.as_f64().max(self.compared.0).max(round.rate.as_f64());
                    self.lift = goes.then(|| (LIFT * delivered).min(ceiling));
                    return;
                };
                self.fall_back(cx, w, reason);
            }
        }
    }

    /// Counts down the rounds of a check, and begins one when due if the path `is_free`. Returns whether the next
    /// round is part of it.
    fn advance_check(&mut self, cx: &Context, is_free: bool) -> bool {
        if self.checking > 0 {
            self.checking -= 1;
            if self.checking == 0 {
                self.check_at = cx.now + CHECK_EVERY.max(cx.srtt * CHECK_EVERY_RTTS);
            }
        } else if is_free && self.calm >= CALM && cx.now >= self.check_at {
            self.checking = CHECK_ROUNDS;
        }
        self.checking > 0
    }

    /// Returns whether the delivered rate contradicts the reports of the last rounds; `None` if there were none.
    fn contradicted(&mut self) -> Option<bool> {
        let sum = |part: fn(&RoundRecord) -> f64| self.past.iter().map(part).sum::<f64>();
        let delivered = 8.0 * sum(|past| past.bytes) / sum(|past| past.seconds).max(1e-9);
        let (bytes, seconds) = (sum(|past| past.reported.0), sum(|past| past.reported.1));
        if bytes <= 0.0 {
            return None;
        }
        let reported = 8.0 * bytes / seconds.max(1e-9);
        self.compared = (delivered, reported);
        let high = self.queue && reported > CONTRADICTS * delivered;
        self.high = if high { self.high + 1 } else { 0 };
        let low = delivered > CONTRADICTS * reported;
        self.low = if low { self.low + 1 } else { 0 };
        Some(low || high)
    }
}

impl CongestionControl for Guard {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(self.control.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(self.control.as_mut())
    }

    /// Exposes the guarded control with its shadow window.
    fn view<'a>(&'a mut self, cx: &'a Context, _: &'a mut Window) -> Option<View<'a>> {
        Some(View { control: self.control.as_mut(), cx, window: &mut self.wanted })
    }

    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.wanted = *w;
        self.control.on_start(cx, &mut self.wanted);
        self.cubic.on_start(cx, w);
    }

    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        self.control.on_sent(cx, &mut self.wanted, sent);
        if self.mode == Mode::Plain {
            self.cubic.on_sent(cx, w, sent);
        }
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.control.on_sample(cx, &mut self.wanted, sample);
        if let (Some(rtt), Some(round)) = (sample.rtt, &mut self.round) {
            round.rtt = round.rtt.min(rtt);
        }
        if self.mode == Mode::Plain {
            self.cubic.on_sample(cx, w, sample);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let own = self.control.on_congestion(cx, &mut self.wanted, event);
        if let Some(round) = &mut self.round {
            round.lost += event.lost;
        }
        if self.mode == Mode::Driven {
            match event.kind {
                Signal::Loss if self.deep.is_none() => {
                    self.publish(cx, w);
                    return own;
                }
                Signal::Loss => self.fall_back(cx, w, Reason::Rival),
                Signal::Timeout { .. } => self.fall_back(cx, w, Reason::Timeout),
                Signal::Ecn => self.fall_back(cx, w, Reason::Mark),
            }
            // For CUBIC, an episode that began under the guarded control is a first one.
            return self.cubic.on_congestion(cx, w, &Congestion { first: true, ..*event });
        }
        // Any other congestion signal has its own response.
        self.restart &= event.kind == Signal::Loss;
        self.cubic.on_congestion(cx, w, event)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.control.on_ack(cx, &mut self.wanted, ack);
        if self.mode == Mode::Plain {
            self.cubic.on_ack(cx, w, ack);
        }
        // A silence of the link says nothing about rates: all of it beyond two RTTs is excluded.
        let silence = cx.now.since(core::mem::replace(&mut self.acked_at, cx.now)) - cx.srtt * 2;
        self.news_at = (self.news_at + silence).min(cx.now);
        let round = self.round.get_or_insert(Round::new(cx.now));
        round.begin = (round.begin + silence).min(cx.now);
        if let Some(interval) = ack.rate.interval.filter(|interval| !interval.is_zero()) {
            round.rate = Rate::of(cx.mss * ack.rate.delivered, interval);
            if !ack.rate.app_limited || round.rate.bits_per_s() > self.delivered.get() {
                self.delivered.update(RATE_ROUNDS, self.rounds, round.rate.bits_per_s());
            }
        }
        round.delivered += ack.delivered;
        self.unreported += ack.bytes.as_f64();
        // A report that stays the same applies to everything acknowledged.
        let over = !cx.srtt.is_zero()
            && round.delivered >= ROUND_SEGMENTS
            && cx.now.since(round.begin) >= cx.srtt.min(cx.min_rtt * ROUND_RTTS);
        let came = core::mem::take(&mut self.came);
        let is_new = came && (core::mem::take(&mut self.differs) || !self.came_before);
        self.came_before = came;
        if let Some((_, report)) = self.report
            && (is_new || over && round.reported.0 == 0.0)
        {
            let bytes = core::mem::take(&mut self.unreported);
            let elapsed = cx.now.since(core::mem::replace(&mut self.news_at, cx.now)).as_secs_f64();
            round.reported.0 += bytes;
            // One low report after a silence, applied to the bytes that follow, must not weigh more than the silence.
            round.reported.1 += (8.0 * bytes / report.as_f64().max(1.0)).min(MOST_CLAIMED * elapsed);
        }
        round.app_limited |= ack.rate.app_limited || cx.app_limited;
        if over {
            let round = *round;
            self.judge(cx, w, &round);
            self.round = Some(Round::new(cx.now));
        }
        if self.mode == Mode::Driven && self.is_stale(cx) {
            self.fall_back(cx, w, Reason::Stale);
        }
        self.bound(cx);
        self.publish(cx, w);
    }

    fn owns_recovery(&self) -> bool {
        self.mode == Mode::Driven
    }

    fn wants_packets(&self) -> bool {
        self.control.wants_packets()
    }

    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        self.control.on_packet(cx, &mut self.wanted, packet);
        self.publish(cx, w);
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        self.control.on_recovered(cx, &mut self.wanted);
        match self.mode {
            Mode::Plain => {
                self.cubic.on_recovered(cx, w);
                if core::mem::take(&mut self.restart) {
                    w.ssthresh = f64::INFINITY;
                }
            }
            Mode::Driven => self.publish(cx, w),
        }
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        self.control.on_spurious(cx, &mut self.wanted, prior);
        self.restart = false;
        match self.mode {
            Mode::Plain => self.cubic.on_spurious(cx, w, prior),
            Mode::Driven => self.publish(cx, w),
        }
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        self.control.on_idle_restart(cx, &mut self.wanted, idle);
        self.round = None;
        match self.mode {
            Mode::Plain => self.cubic.on_idle_restart(cx, w, idle),
            // No reports arrive while nothing is sent.
            Mode::Driven if self.is_stale(cx) => {
                self.fall_back(cx, w, Reason::Stale);
                self.reason = Reason::None;
            }
            Mode::Driven => self.publish(cx, w),
        }
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.control.on_path_change(cx, &mut self.wanted);
        (self.round, self.queue, self.deep) = (None, false, None);
        self.delivered = MaxFilter::default();
        self.rounds = 0;
        (self.past, self.unreported) = ([RoundRecord::default(); ROUNDS], 0.0);
        (self.good, self.high, self.low, self.lift) = (0, 0, 0, None);
        (self.calm, self.checking, self.check_at) = (0, 0, Time::ZERO);
        (self.report, self.ceiling, self.since_lift) = (None, (f64::INFINITY, Time::ZERO), u32::MAX);
        match self.mode {
            Mode::Plain => self.cubic.on_path_change(cx, w),
            Mode::Driven => {
                self.fall_back(cx, w, Reason::Stale);
                self.reason = Reason::None;
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.control.next_deadline()
    }

    fn on_deadline(&mut self, cx: &Context, w: &mut Window) {
        self.control.on_deadline(cx, &mut self.wanted);
        self.publish(cx, w);
    }

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        self.control.on_report(cx, &mut self.wanted, report);
        if let Some(rate) = self.format.decode(report) {
            // What claims nothing cannot be contradicted: it counts as what is delivered.
            let delivered = Rate::from_bits_per_s_f64(self.compared.0.max(1.0));
            let rate = if self.format.is_claim(report) { rate } else { delivered };
            self.came = true;
            self.differs |= self.report.is_none_or(|(_, last)| last != rate);
            self.report = Some((cx.now, rate));
        }
        self.publish(cx, w);
    }

    fn wants_radio(&self) -> bool {
        self.control.wants_radio()
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        self.control.on_radio(cx, &mut self.wanted, hint);
        self.publish(cx, w);
    }

    fn on_pep(&mut self, cx: &Context, w: &mut Window, report: &PepReport) {
        self.control.on_pep(cx, &mut self.wanted, report);
        self.publish(cx, w);
    }

    fn on_allocation(&mut self, cx: &Context, w: &mut Window, allocation: Option<Allocation>) {
        self.control.on_allocation(cx, &mut self.wanted, allocation);
        self.publish(cx, w);
    }

    fn set_target(&mut self, target: Span) -> bool {
        self.control.set_target(target)
    }

    fn memory(&self) -> Option<PathMemory> {
        self.control.memory()
    }

    fn recall(&mut self, memory: PathMemory) {
        self.control.recall(memory);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.control.inspect(show);
        show("guard_driven", f64::from(u8::from(self.mode == Mode::Driven)));
        show("guard_reason", f64::from(self.reason as u8));
        show("guard_delivered_bit_s", self.compared.0);
        show("guard_reported_bit_s", self.compared.1);
        show("guard_lift_bit_s", self.lift.unwrap_or(0.0));
    }
}

#[cfg(test)]
mod tests;
