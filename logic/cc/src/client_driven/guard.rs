//! The guard of client-driven controls: CUBIC has the window while the peer's reports are missing or contradicted.
//!
//! Source: none, all of it is ours. A report is a hint of a stranger: it may be missing, stop, or be false. With `guard=off`
//! nothing of this exists. With it, QUIC-CQIC, DCIC, CQIC-S, CDBE and CDBEv2 run behind it in one of two modes:
//!
//! * *plain*: CUBIC has the window, as if there were no reports. The control behind sees everything and sets a window that
//!   nobody uses, so that it knows the path when it is asked again. A connection begins so.
//! * *driven*: the control's window and pace hold, within what the path has delivered: at most [`FLIGHT`] times the largest
//!   delivered rate times the smallest RTT in flight, at most [`PACE`] times that rate as pace. So a false report is approached
//!   like in slow start, can be seen through on the way, and makes a queue of a BDP at most.
//!
//! **Only what is delivered contradicts a report**; a queue, a loss or a slow line does not, since a rival, the radio or a
//! delayed acknowledgement can be the reason. Both rates are compared over the last [`ROUNDS`] rounds, and a contradiction is
//! one that lasts for as many. A round is a smoothed RTT, at most [`ROUND_RTTS`] smallest ones; one in which the
//! application was the limit is not judged.
//!
//! * *Too high*: the report is more than [`CONTRADICTS`] times what is delivered, and there is a queue (without one, the link was
//!   not tried).
//! * *Too low*: more than [`CONTRADICTS`] times the report is delivered. A sender that obeys such a report never sees
//!   that. So where there is no queue the guard sends [`LIFT`] times what is delivered, whatever the control wants (a
//!   *lift*): the delivered rate rises until the report is found out, or until there is a queue, and then the report is true. The
//!   same lift takes a control along that holds back on an empty link.
//!
//! **A newcomer beside flows of its own kind** has their queue in its smallest RTT. It would see no queue and lift for ever, and have
//! all that the others give up, who see it. So where nobody fills the buffer (no loss and no deep queue for [`CALM`] rounds), a flow that sees no
//! queue *checks* every now and then: it has little more than half a BDP in flight for two rounds, in which its own part of a queue drains, and the smallest
//! RTT shows what was behind it.
//!
//! A queue is there if the smallest RTT of a round is above [`QUEUE_RATIO`] times the connection's, [`QUEUE_SLACK`] and
//! [`QUEUE_SEGMENTS`]. A lift that overflows a buffer too small to show one is bounded for a while ([`CEILING`]); what
//! it loses is not held against the reports.
//!
//! | from driven to plain (`guard_reason`) | when | then |
//! |---|---|---|
//! | 1 stale | no report for max(1 s, 4 smoothed RTT) while data are in flight | |
//! | 2 high, 3 low | the reports are contradicted | hold from [`HOLD`] on |
//! | 4 loss | more than [`LOSS`] lost in the last rounds | hold from [`LOSS_HOLD`] on |
//! | 5 timeout | the timer fires | CUBIC's answer |
//! | 6 mark | the network marks | CUBIC's answer, hold from [`HOLD`] on |
//! | 7 rival | a loss while the RTT is more than [`QUEUE_RATIO`] times [`FLIGHT`] smallest ones | CUBIC's answer, then its slow start; hold of [`LONGEST_HOLD`] |
//!
//! The last is no contradiction either. With [`FLIGHT`] BDPs in flight this flow alone does not make such a queue, so a buffer that
//! overflows with it is full of others' data; all these controls drain a queue, and would give all that they have to those who
//! do not. (For the same reason the bound on what is in flight counts with the RTT as it is then: with the smallest one this flow would be
//! held below its share of a queue that is not its own.) CUBIC takes its place beside them, which takes it many RTTs of that length.
//!
//! The way back: the hold is over, [`GOOD_ROUNDS`] rounds in a row had fresh reports that were not contradicted, nothing is being
//! repaired, and CUBIC's slow start is over, or has made a queue: it finds what there is faster than any of these controls. A hold doubles each time up to
//! [`LONGEST_HOLD`], and begins anew after a driven time as long as it was.
//!
//! Reports of a cellular link differ by many times within a round, and are true all the same: what counts is their mean,
//! taken so that those of a truthful receiver give the delivered rate however it varies: what was acknowledged since the
//! report before took its share of a second at the rate of the new one; all bytes over all these times is the mean. A silence of
//! the link counts in neither rate.
//!
//! What it does not see: reports that are false by less than half, which cost a queue of a BDP or, with the lift, nothing;
//! and reports that become too low while others keep a queue standing, where no lift tries them.
//! `docs/client-driven.md` has the same account for the guards of SIGMA and RAPID, and the figures.

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

/// What contradicts a report: it and the delivered rate differ by more than this factor. SIGMA's guard has the same: true
/// reports that are wrong by 30 % and measured over other moments stay below.
const CONTRADICTS: f64 = 1.5;
/// Rounds that rates are compared over and losses counted, and that a contradiction lasts: the delivered rate of a round can
/// differ by half from the next one's in a fading cell, the mean of eight hardly.
const ROUNDS: usize = 8;
/// In flight, over the largest delivered rate times the smallest RTT: the window gain of all these controls (Zhong 2020,
/// equations 5.6, 6.7 and 7.3), so that a true report is not held back, and a false one makes a queue of a BDP at most.
const FLIGHT: f64 = 2.0;
/// Pace over the largest delivered rate: 2/ln 2, the least at which what is in flight can double each RTT (Zhong 2020, section
/// 6.4.1, as BBR).
const PACE: f64 = core::f64::consts::LOG2_E * 2.0;
/// In flight in a check, over the BDP, and at least in segments: it drains what this flow has queued. Not below half, at which these controls
/// begin STARTUP again (Zhong 2020, section 6.4.2).
const CHECK_FLIGHT: f64 = 0.6;
const LEAST_CHECK_FLIGHT: f64 = 4.0;
/// Rounds that a check takes: one to drain, one to see the path without.
const CHECK_ROUNDS: u32 = 2;
/// Rounds without a loss or a deep queue before a check: no rival is there that would take what is given up.
const CALM: u32 = 64;
/// From one check to the next, at least: in time as BBR's PROBE_RTT (Cardwell et al. 2016), and in smoothed RTTs, so that it costs at most
/// 2 % of the rate.
const CHECK_EVERY: Span = Span::from_secs(10);
const CHECK_EVERY_RTTS: u64 = 64;
/// Segments that may be in flight whatever was delivered: an initial window.
const LEAST_FLIGHT: f64 = 10.0;
/// Rounds of which the largest delivered rate counts.
const RATE_ROUNDS: u64 = 10;
/// Pace over the delivered rate in a lift: what GROW of these controls has (Zhong 2020, sections 6.4.1 and 7.2.2), as BBR.
const LIFT: f64 = 1.25;
/// Rounds after a lift in which its losses come in.
const LIFT_LOSES_FOR: u32 = 2;
/// Smallest RTT of a round where there is a queue: over that of the connection, and beyond it. The time is for cells, in which
/// blocks wait for their turn and are sent again (8 ms); the segments for slow lines, on which one that is being
/// sent is in the RTT, and the handshake's had none.
const QUEUE_RATIO: f64 = 1.25;
const QUEUE_SLACK: Span = Span::from_millis(5);
const QUEUE_SEGMENTS: f64 = 2.0;
/// A round takes at most so many smallest RTTs, and at least so many segments.
const ROUND_RTTS: u64 = 2;
const ROUND_SEGMENTS: u64 = 4;
/// After a lift that overflowed the buffer, lifts stay below this share of the largest delivered rate for this time: so a small
/// buffer overflows once in ten seconds.
const BELOW: f64 = 0.95;
const CEILING: Span = Span::from_secs(10);
/// Time that bytes can have taken at a reported rate, over the time since the report before: with more, a pause of the link
/// makes true reports look low; with less, wild ones look true. Twice as long a pause is a silence.
const MOST_CLAIMED: f64 = 2.0;
/// Share of lost segments, and how many they are at least, over the last rounds and in one. Radio links lose up to 2 %, and few
/// segments are chance; a pace above the link's rate loses what is above it.
const LOSS: f64 = 0.05;
const LEAST_LOST: u64 = 8;
const LEAST_LOST_IN_ROUND: u64 = 3;
/// Good rounds in a row before the control has the window.
const GOOD_ROUNDS: u32 = 4;
/// Age of a report at which it is stale, unless four smoothed RTTs are more.
const STALE: Span = Span::SECOND;
/// First hold where reports are contradicted or the network marks; where too much is lost, which is nothing against reports; and
/// the longest.
const HOLD: Span = Span::from_secs(10);
const LOSS_HOLD: Span = Span::SECOND;
const LONGEST_HOLD: Span = Span::from_secs(60);

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
    Mark,
    Rival,
}

/// One round's figures.
#[derive(Clone, Copy, Debug)]
struct Round {
    begin: Time,
    delivered: u64,
    lost: u64,
    app_limited: bool,
    rtt: Span,
    /// The last sample of the delivery rate.
    rate: Rate,
    /// Bytes acknowledged under a report, and the seconds that they took at the reported rate.
    reported: (f64, f64),
}

/// What is kept of a round.
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
    /// The window that the control sets.
    wanted: Window,
    cubic: LinuxCubic,
    format: Format,
    mode: Mode,
    reason: Reason,
    /// Not driven before, and the next hold.
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
    past: [RoundRecord; ROUNDS],
    /// Bytes acknowledged since the last new report. Where not every acknowledgement carries one, each is new; else those are
    /// that differ from the one before.
    unreported: f64,
    /// A report came with this acknowledgement, with the one before, and it is another.
    came: bool,
    came_before: bool,
    differs: bool,
    acked_at: Time,
    /// When the last new report came.
    news_at: Time,
    /// Whether the last round had a queue.
    queue: bool,
    /// Its smallest RTT, if that was longer than this flow alone makes it.
    deep: Option<Span>,
    /// Rounds in a row: good ones, and those in which the reports were too high and too low.
    good: u32,
    high: u32,
    low: u32,
    /// What is sent at least in bit/s of payload, where there is no queue.
    lift: Option<f64>,
    /// Rounds in a row without a loss or a deep queue; rounds that are left of a check; when the next one may be.
    calm: u32,
    checking: u32,
    check_at: Time,
    /// The last round was one of a check: the delivered rate of the next one is still of it.
    checked: bool,
    /// Rounds since the last that was lifted: what it lost comes in for two more.
    since_lift: u32,
    /// What a lift goes up to in bit/s, until a time, after one that overflowed.
    ceiling: (f64, Time),
    /// CUBIC's slow start begins when what was lost has been repaired.
    restart: bool,
    /// Delivered and reported rate of the last rounds in bit/s, as they were compared.
    compared: (f64, f64),
}

impl Guard {
    /// Guards a control whose reports are written in this format.
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

    /// When the last report is stale; `None` without one.
    fn stale_at(&self, cx: &Context) -> Option<Time> {
        self.report.map(|(at, _)| at + STALE.max(cx.srtt * 4))
    }

    fn is_stale(&self, cx: &Context) -> bool {
        self.stale_at(cx).is_none_or(|at| cx.now >= at)
    }

    /// Whether a round with this smallest RTT had a queue, at a delivered rate, beyond so many smallest RTTs.
    fn is_queue(cx: &Context, rtt: Span, beyond: f64, delivered: Rate) -> bool {
        if cx.min_rtt == Span::MAX || rtt == Span::MAX {
            return false;
        }
        let segments = 8.0 * QUEUE_SEGMENTS * cx.wire.as_f64() / delivered.as_f64().max(1.0);
        let slack = QUEUE_SLACK + Span::from_secs_f64(segments.min(10.0));
        rtt > cx.min_rtt.mul_f64(QUEUE_RATIO * beyond) + slack
    }

    /// What may be in flight and what the pace may be, after what has been delivered.
    fn bound(&mut self, cx: &Context) {
        let delivered = self.delivered.get() as f64;
        let mss = cx.mss.as_f64().max(1.0);
        // What of a queue this flow cannot have made is no reason to send less.
        let rtt = self.deep.unwrap_or(cx.min_rtt);
        let bdp = delivered / 8.0 * rtt.min(Span::from_secs(10)).as_secs_f64() / mss;
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
        // What was lost was CUBIC's.
        self.past.iter_mut().for_each(|past| past.lost = 0);
        self.bound(cx);
        self.publish(cx, w);
    }

    /// CUBIC goes on from the current flight.
    fn fall_back(&mut self, cx: &Context, w: &mut Window, reason: Reason) {
        let first = match reason {
            // Nothing is said against the reports.
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
        // A flow that begins beside others begins with slow start; the loss was of the others' making.
        self.restart = reason == Reason::Rival;
        self.cubic = LinuxCubic::new(Params::LINUX, hystart::Kind::Classic);
        w.cwnd = (cx.in_flight as f64).max(LEAST_FLIGHT).min(w.cwnd.max(LEAST_FLIGHT));
        // After reports that were too low slow start finds what there is; otherwise what is in flight is about right.
        w.ssthresh = if reason == Reason::Low && !self.queue { f64::INFINITY } else { w.cwnd };
        w.pacing = Pacing::Unlimited;
        self.cubic.on_start(cx, w);
    }

    /// Judges a round that has ended.
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
        // What was held back, by the application or by a check, says nothing about reports.
        let left_out = round.app_limited || self.checked || was_checked;
        self.past.rotate_left(1);
        self.past[ROUNDS - 1] = RoundRecord {
            delivered: round.delivered,
            // What a lift loses speaks against the lift, not against the reports.
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

    /// Counts the rounds of a check, and begins one where it is time and there `is_free` room. Whether the next round is one of it.
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

    /// Whether the delivered rate contradicts the reports of the last rounds; `None` if there were none.
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

    /// The control sets a window of its own.
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
            // An episode that was the control's own begins anew for CUBIC.
            return self.cubic.on_congestion(cx, w, &Congestion { first: true, ..*event });
        }
        // Another sign of congestion has its own answer.
        self.restart &= event.kind == Signal::Loss;
        self.cubic.on_congestion(cx, w, event)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.control.on_ack(cx, &mut self.wanted, ack);
        if self.mode == Mode::Plain {
            self.cubic.on_ack(cx, w, ack);
        }
        // A silence of the link says nothing of rates: more than two RTTs of one do not count.
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
        // A report that stays the same holds for all that is acknowledged.
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
