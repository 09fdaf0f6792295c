//! The guard of client-driven controls: CUBIC while the peer's reports cannot be relied on.
//!
//! Source: none, all of it is ours. A report is a hint of a stranger: it may be missing, stop, be false. With `guard=off`
//! nothing of this exists. With it, QUIC-CQIC, DCIC, CQIC-S, CDBE and CDBEv2 run behind it in one of two modes:
//!
//! * *plain*: CUBIC has the window, as if there were no reports. The control behind sees everything and sets a window that
//!   nobody uses, so that it knows the path when it is asked again.
//! * *driven*: the control's window and pace hold, bounded by what the path has delivered: at most [`FLIGHT`] times the
//!   largest delivered rate of the last rounds times the smallest RTT in flight, at most [`PACE`] times that rate as pace.
//!   So a false report is approached like in slow start, and can be seen through on the way.
//!
//! A round is a smoothed RTT; one in which the application was the limit is not judged. There is a queue if the smallest
//! RTT of a round is above [`QUEUE_RATIO`] times the connection's and [`QUEUE_SLACK`]; for a loss, the last RTT and
//! [`LOSS_QUEUE_RATIO`], because shallow buffers overflow early.
//!
//! | from driven to plain (`guard_reason`) | when | then |
//! |---|---|---|
//! | 1 stale | no report for max(1 s, 4 smoothed RTT) while data are in flight | plain until there are good rounds again |
//! | 2 high | a queue, and reports above [`HIGH`] times the delivered rate, in [`HIGH_ROUNDS`] rounds | hold |
//! | 3 low | delivered rate above [`LOW`] times the reports, which do not follow, in [`LOW_ROUNDS`] rounds | hold |
//! | 4 loss | a loss with a queue, or more than [`LOSS`] in the last [`LAST_ROUNDS`] rounds | CUBIC's answer, hold |
//! | 5 timeout or mark | the timer fires, or the network marks | CUBIC's answer, hold |
//! | 6 held back | no queue, and the control paces below [`HELD`] times its report, in [`HELD_ROUNDS`] rounds more than not | hold |
//!
//! Reports of a cellular link differ by many times within a round, and are true all the same: what counts is their mean over
//! the last [`LAST_ROUNDS`] rounds, taken so that those of a truthful receiver give the delivered rate however it varies: what
//! was acknowledged since the report before took its share of a second at the rate of the new one; all bytes over all these
//! times is the mean.
//!
//! A hold is 10 s, doubles each time up to 60 s, and is 10 s again after a driven time as long as it was. To be driven takes
//! a good round at first, [`GOOD_ROUNDS`] in a row after a fallback: fresh reports that do not contradict the delivered rate.
//!
//! A report that is too low makes itself true, unless somebody tries: every [`AUDIT_AFTER`] the guard paces at
//! [`AUDIT_GAIN`] times the report, until there is a queue and no more delivered than reported (it then lets the queue drain),
//! or the report is found out.

use ranpace_units::{Rate, Span, Time};

use crate::bw_report::Format;
use crate::cubic::{Cubic, Params};
use crate::filter::MaxFilter;
use crate::hystart;
use crate::interface::{
    Ack, Allocation, Answer, Congestion, CongestionControl, Context, Pacing, Packet, PathMemory, PepReport,
    RadioHint, Report, Sample, Sent, Signal, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};
use crate::registry::Control;

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

/// In flight, over the largest delivered rate times the smallest RTT: fits a queue of three quarters of that.
const FLIGHT: f64 = 1.75;
/// Pace over the largest delivered rate.
const PACE: f64 = 2.0;
/// Segments that may be in flight whatever was delivered: an initial window.
const LEAST_FLIGHT: f64 = 10.0;
/// Rounds of which the largest delivered rate counts.
const RATE_ROUNDS: u64 = 10;
/// Smallest RTT of a round over that of the connection, where there is a queue.
const QUEUE_RATIO: f64 = 1.25;
/// The same as a difference.
const QUEUE_SLACK: Span = Span::from_millis(5);
/// RTT over the smallest at which a loss is one of a queue.
const LOSS_QUEUE_RATIO: f64 = 1.15;
/// The same as a difference.
const LOSS_QUEUE_SLACK: Span = Span::from_millis(3);
/// Report over delivered rate that is too high where there is a queue.
const HIGH: f64 = 1.5;
/// Rounds that it takes.
const HIGH_ROUNDS: u32 = 3;
/// Delivered rate over report that is too much: what is not found costs less than a tenth.
const LOW: f64 = 1.1;
/// Rounds that it takes.
const LOW_ROUNDS: u32 = 8;
/// Growth of the reports within these rounds that shows that they follow.
const FOLLOWS: f64 = 1.1;
/// Pace over report that takes a queue away.
const HELD: f64 = 0.95;
/// Rounds that this may go on without a queue. CDBE does not leave DRAIN where the radio's jitter looks like one.
const HELD_ROUNDS: u32 = 16;
/// Time that bytes can have taken at a reported rate, over the time since the report before: with more, a silence of the link
/// makes true reports look low; with less, wild ones look true.
const MOST_CLAIMED: f64 = 2.0;
/// Share of lost segments.
const LOSS: f64 = 0.02;
/// Rounds that losses and means of reports are counted over.
const LAST_ROUNDS: usize = 8;
/// Fewest lost segments that are a share.
const LEAST_LOST: u64 = 3;
/// Good rounds in a row, after a fallback.
const GOOD_ROUNDS: u32 = 4;
/// Age of a report at which it is stale, unless four smoothed RTTs are more.
const STALE: Span = Span::SECOND;
/// First hold, and the longest.
const HOLD: Span = Span::from_secs(10);
const LONGEST_HOLD: Span = Span::from_secs(60);
/// Time from one test of the report to the next.
const AUDIT_AFTER: Span = Span::from_secs(3);
/// The same where driving begins: little is known then.
const FIRST_AUDIT_AFTER: Span = Span::SECOND;
/// Pace over report in a test.
const AUDIT_GAIN: f64 = 1.25;
/// Pace over report while the queue of a test drains, and the most rounds of it.
const SETTLE_GAIN: f64 = 0.75;
const SETTLE_ROUNDS: u32 = 4;

/// Who has the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Driven,
}

/// Why CUBIC has the window; `inspect` shows its place here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// It has never been driven.
    None,
    Stale,
    High,
    Low,
    Loss,
    Timeout,
    HeldBack,
}

/// The test of a report that could be too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audit {
    /// None; when it is due.
    Waiting(Time),
    /// Paced above the report, for so many rounds.
    Testing(u32),
    /// Paced below it, for so many rounds.
    Settling(u32),
}

/// One round's figures.
#[derive(Clone, Copy, Debug)]
struct Round {
    begin: Time,
    delivered: u64,
    lost: u64,
    app_limited: bool,
    rtt: Span,
    /// Bytes acknowledged under a report, and the seconds that they took at the reported rate.
    reported: (f64, f64),
}

/// What is kept of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    delivered: u64,
    lost: u64,
    bytes: f64,
    seconds: f64,
    reported: (f64, f64),
}

impl Round {
    fn new(begin: Time) -> Self {
        Self { begin, delivered: 0, lost: 0, app_limited: false, rtt: Span::MAX, reported: (0.0, 0.0) }
    }
}

/// A client-driven control with CUBIC beside it.
#[derive(Debug)]
pub struct Guard {
    control: Box<dyn CongestionControl>,
    /// The window that the control sets.
    wanted: Window,
    cubic: Cubic,
    format: Format,
    mode: Mode,
    reason: Reason,
    /// Not driven before.
    hold_until: Time,
    hold: Span,
    /// When it was driven, or fell back.
    since: Time,
    /// Time and value of the last report.
    report: Option<(Time, Rate)>,
    round: Option<Round>,
    /// Delivered rates in bit/s by round.
    delivered: MaxFilter,
    rounds: u64,
    /// Segments in flight and pace that follow from them.
    most_flight: f64,
    most_pace: Rate,
    past: [Past; LAST_ROUNDS],
    /// Bytes acknowledged since the last new report. Where not every acknowledgement carries one, each is new; else those are
    /// that differ from the one before.
    unreported: f64,
    /// A report came with this acknowledgement, with the one before, and it is another.
    came: bool,
    came_before: bool,
    differs: bool,
    /// When the last new report came.
    news_at: Time,
    last_rtt: Option<Span>,
    /// Whether the last round had a queue.
    queue: bool,
    good: u32,
    high: u32,
    /// Rounds held back, less those that were not.
    held: u32,
    /// Delivered and reported rate of the last rounds in bit/s, as they were compared.
    compared: (f64, f64),
    /// Rounds that were low, and the first report of them.
    low: (u32, f64),
    audit: Audit,
}

impl Guard {
    /// Guards a control whose reports are written in this format.
    pub fn new(control: Box<dyn CongestionControl>, format: Format) -> Self {
        Self {
            control,
            wanted: Window::new(LEAST_FLIGHT),
            cubic: Cubic::new(Params::LINUX, hystart::Kind::Classic),
            format,
            mode: Mode::Plain,
            reason: Reason::None,
            hold_until: Time::ZERO,
            hold: HOLD,
            since: Time::ZERO,
            report: None,
            round: None,
            delivered: MaxFilter::default(),
            rounds: 0,
            most_flight: LEAST_FLIGHT,
            most_pace: Rate::ZERO,
            past: [Past::default(); LAST_ROUNDS],
            unreported: 0.0,
            came: false,
            came_before: false,
            differs: false,
            news_at: Time::ZERO,
            last_rtt: None,
            queue: false,
            good: 0,
            high: 0,
            held: 0,
            compared: (0.0, 0.0),
            low: (0, 0.0),
            audit: Audit::Waiting(Time::ZERO),
        }
    }

    /// When the last report is stale; `None` without one.
    fn stale_at(&self, cx: &Context) -> Option<Time> {
        self.report.map(|(at, _)| at + STALE.max(cx.srtt * 4))
    }

    fn is_stale(&self, cx: &Context) -> bool {
        self.stale_at(cx).is_none_or(|at| cx.now >= at)
    }

    fn is_queue(cx: &Context, rtt: Span) -> bool {
        cx.min_rtt != Span::MAX && rtt > cx.min_rtt.mul_f64(QUEUE_RATIO) + QUEUE_SLACK
    }

    /// What may be in flight and what the pace may be, after what has been delivered.
    fn bound(&mut self, cx: &Context) {
        let delivered = self.delivered.get() as f64;
        let mss = cx.mss.as_f64().max(1.0);
        let bdp = delivered / 8.0 * cx.min_rtt.min(Span::from_secs(10)).as_secs_f64() / mss;
        let wire = cx.wire.as_f64();
        let least = 8.0 * LEAST_FLIGHT * wire / cx.srtt.max(Span::from_millis(1)).as_secs_f64();
        self.most_flight = (FLIGHT * bdp).max(LEAST_FLIGHT);
        self.most_pace = Rate::from_bits_per_s_f64((PACE * delivered * wire / mss).max(least));
    }

    /// The control's window and pace, within these bounds.
    #[inline]
    fn publish(&self, cx: &Context, w: &mut Window) {
        if self.mode == Mode::Plain {
            return;
        }
        w.cwnd = self.wanted.cwnd.min(self.most_flight).max(1.0);
        w.ssthresh = self.wanted.ssthresh;
        let wanted = match self.wanted.pacing {
            Pacing::Unlimited => Rate::MAX,
            Pacing::Rate(rate) => rate,
        };
        let times_report = |gain: f64| {
            let report = self.report.map_or(0.0, |(_, report)| report.as_f64());
            Rate::from_bits_per_s_f64(gain * report * cx.wire.as_f64() / cx.mss.as_f64().max(1.0))
        };
        let wanted = match self.audit {
            Audit::Waiting(_) => wanted,
            Audit::Testing(_) => wanted.max(times_report(AUDIT_GAIN)),
            Audit::Settling(_) => wanted.min(times_report(SETTLE_GAIN)),
        };
        w.pacing = Pacing::Rate(wanted.min(self.most_pace).max(Rate::from_bits_per_s(1)));
    }

    fn drive(&mut self, cx: &Context, w: &mut Window) {
        (self.mode, self.since) = (Mode::Driven, cx.now);
        (self.high, self.held, self.low) = (0, 0, (0, 0.0));
        self.audit = Audit::Waiting(cx.now + FIRST_AUDIT_AFTER);
        self.bound(cx);
        self.publish(cx, w);
    }

    /// CUBIC goes on from the current flight.
    fn fall_back(&mut self, cx: &Context, w: &mut Window, reason: Reason) {
        if reason != Reason::Stale {
            if cx.now.since(self.since) >= self.hold {
                self.hold = HOLD;
            }
            self.hold_until = cx.now + self.hold;
            self.hold = (self.hold * 2).min(LONGEST_HOLD);
        }
        (self.mode, self.reason, self.since, self.good) = (Mode::Plain, reason, cx.now, 0);
        self.cubic = Cubic::new(Params::LINUX, hystart::Kind::Classic);
        w.cwnd = (cx.in_flight as f64).max(LEAST_FLIGHT).min(w.cwnd.max(LEAST_FLIGHT));
        // After reports that were too low slow start finds what there is; otherwise what is in flight is about right.
        w.ssthresh = if matches!(reason, Reason::Low | Reason::HeldBack) && !self.queue {
            f64::INFINITY
        } else {
            w.cwnd
        };
        w.pacing = Pacing::Unlimited;
        self.cubic.on_start(cx, w);
    }

    /// Judges a round that has ended.
    fn judge(&mut self, cx: &Context, w: &mut Window, round: &Round) {
        self.queue = round.rtt != Span::MAX && Self::is_queue(cx, round.rtt);
        let (bytes, length) = (cx.mss * round.delivered, cx.now.since(round.begin).max(Span::from_micros(1)));
        let delivered = Rate::of(bytes, length);
        self.past.rotate_left(1);
        self.past[LAST_ROUNDS - 1] = Past {
            delivered: round.delivered,
            lost: round.lost,
            bytes: bytes.as_f64(),
            seconds: length.as_secs_f64(),
            reported: round.reported,
        };
        if !round.app_limited || delivered.bits_per_s() > self.delivered.get() {
            self.rounds += 1;
            self.delivered.update(RATE_ROUNDS, self.rounds, delivered.bits_per_s());
        }
        self.bound(cx);
        let contradicted = if round.app_limited { None } else { self.contradicted() };
        match self.mode {
            Mode::Plain => {
                let good = contradicted == Some(false) && !self.is_stale(cx);
                self.good = if good { self.good + 1 } else { 0 };
                let needed = if self.reason == Reason::None { 1 } else { GOOD_ROUNDS };
                if self.good >= needed && cx.now >= self.hold_until && cx.state == State::Open {
                    self.drive(cx, w);
                }
            }
            Mode::Driven => {
                let (delivered, lost) =
                    self.past.iter().fold((0, 0), |sum, past| (sum.0 + past.delivered, sum.1 + past.lost));
                let reason = if lost >= LEAST_LOST && lost as f64 > LOSS * (delivered + lost) as f64 {
                    Reason::Loss
                } else if self.high >= HIGH_ROUNDS {
                    Reason::High
                } else if self.low.0 >= LOW_ROUNDS {
                    Reason::Low
                } else if self.held >= HELD_ROUNDS {
                    Reason::HeldBack
                } else {
                    self.audit(cx);
                    return;
                };
                self.fall_back(cx, w, reason);
            }
        }
    }

    /// Whether the delivered rate contradicts the reports of the last rounds; `None` if there were none.
    fn contradicted(&mut self) -> Option<bool> {
        let sum = |part: fn(&Past) -> f64| self.past.iter().map(part).sum::<f64>();
        let delivered = 8.0 * sum(|past| past.bytes) / sum(|past| past.seconds).max(1e-9);
        let (bytes, seconds) = (sum(|past| past.reported.0), sum(|past| past.reported.1));
        if bytes <= 0.0 {
            return None;
        }
        let reported = 8.0 * bytes / seconds.max(1e-9);
        self.compared = (delivered, reported);
        let held = !self.queue && self.mode == Mode::Driven && self.wants_less_than(HELD * reported);
        self.held = if held { self.held + 1 } else { self.held.saturating_sub(1) };
        let high = self.queue && reported > HIGH * delivered;
        self.high = if high { self.high + 1 } else { 0 };
        let low = delivered > LOW * reported;
        self.low = match self.low {
            _ if !low => (0, 0.0),
            (0, _) => (1, reported),
            // They rise with what is delivered, an RTT or two behind.
            (_, first) if reported > FOLLOWS * first => (1, reported),
            (rounds, first) => (rounds + 1, first),
        };
        Some(low || high)
    }

    /// Whether the control's pace is below a rate in bit/s.
    fn wants_less_than(&self, rate: f64) -> bool {
        matches!(self.wanted.pacing, Pacing::Rate(pace) if pace.as_f64() < rate)
    }

    /// The test of reports that may be too low moves on by a round.
    fn audit(&mut self, cx: &Context) {
        // A queue, and no more delivered than reported: the reports are not too low.
        let cleared = self.queue && self.low.0 == 0;
        self.audit = match self.audit {
            Audit::Waiting(due) if cx.now >= due && !cleared => Audit::Testing(0),
            Audit::Testing(_) if cleared => Audit::Settling(0),
            // Three more than it takes: the first rounds still show what was paced before.
            Audit::Testing(rounds) if rounds < LOW_ROUNDS + 3 => Audit::Testing(rounds + 1),
            Audit::Settling(rounds) if self.queue && rounds < SETTLE_ROUNDS => Audit::Settling(rounds + 1),
            Audit::Waiting(due) if cx.now < due => Audit::Waiting(due),
            _ => Audit::Waiting(cx.now + AUDIT_AFTER),
        };
    }
}

impl CongestionControl for Guard {
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
        if let Some(rtt) = sample.rtt {
            self.last_rtt = Some(rtt);
            if let Some(round) = &mut self.round {
                round.rtt = round.rtt.min(rtt);
            }
        }
        if self.mode == Mode::Plain {
            self.cubic.on_sample(cx, w, sample);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> Answer {
        let own = self.control.on_congestion(cx, &mut self.wanted, event);
        if let Some(round) = &mut self.round {
            round.lost += event.lost;
        }
        if self.mode == Mode::Driven {
            let limit = cx.min_rtt.mul_f64(LOSS_QUEUE_RATIO) + LOSS_QUEUE_SLACK;
            let queue = self.last_rtt.is_some_and(|rtt| rtt > limit);
            match event.kind {
                Signal::Loss if !queue => {
                    self.publish(cx, w);
                    return own;
                }
                Signal::Loss => self.fall_back(cx, w, Reason::Loss),
                Signal::Timeout { .. } | Signal::Ecn => self.fall_back(cx, w, Reason::Timeout),
            }
            // An episode that was the control's own begins anew for CUBIC.
            return self.cubic.on_congestion(cx, w, &Congestion { first: true, ..*event });
        }
        self.cubic.on_congestion(cx, w, event)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.control.on_ack(cx, &mut self.wanted, ack);
        if self.mode == Mode::Plain {
            self.cubic.on_ack(cx, w, ack);
        }
        let round = self.round.get_or_insert(Round::new(cx.now));
        round.delivered += ack.delivered;
        self.unreported += ack.bytes.as_f64();
        // A report that stays the same holds for all that is acknowledged.
        let over = !cx.srtt.is_zero() && cx.now.since(round.begin) >= cx.srtt;
        let came = core::mem::take(&mut self.came);
        let is_new = came && (core::mem::take(&mut self.differs) || !self.came_before);
        self.came_before = came;
        if let Some((_, report)) = self.report
            && (is_new || over && round.reported.0 == 0.0)
        {
            let bytes = core::mem::take(&mut self.unreported);
            let elapsed = cx.now.since(core::mem::replace(&mut self.news_at, cx.now)).as_secs_f64();
            round.reported.0 += bytes;
            // One report that speaks of a silence, with what came after it, shall not weigh more than the silence.
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
            Mode::Plain => self.cubic.on_recovered(cx, w),
            Mode::Driven => self.publish(cx, w),
        }
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        self.control.on_spurious(cx, &mut self.wanted, prior);
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
            // Nobody reports while nothing is sent.
            Mode::Driven if self.is_stale(cx) => {
                self.fall_back(cx, w, Reason::Stale);
                self.reason = Reason::None;
            }
            Mode::Driven => self.publish(cx, w),
        }
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.control.on_path_change(cx, &mut self.wanted);
        (self.round, self.last_rtt, self.queue) = (None, None, false);
        self.delivered = MaxFilter::default();
        self.rounds = 0;
        (self.past, self.unreported) = ([Past::default(); LAST_ROUNDS], 0.0);
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

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &Report) {
        self.control.on_report(cx, &mut self.wanted, report);
        if let Some(rate) = self.format.decode(report) {
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
    }
}

#[cfg(test)]
mod tests;
