//! Trials of whether more gets through than the modem reports: SIGMA's guard against reports that are too low.
//!
//! Ours, all of it. A sender that obeys an under-reported capacity never exceeds it, so its own measurements cannot expose
//! the error; only trying for more can. The one statement in each report that measurements can contradict is how many
//! resources were **granted** to this device. Data are granted before they are acknowledged, so over any period long enough
//! that single blocks do not matter, a true report is never below the delivery rate. (C_max is no such statement: it is a
//! potential rate, and a connection that is alone may well stay below it. A report above the delivery rate is no
//! contradiction either: the device has other connections.)
//!
//! * **Account.** Resources granted, as a share of the cell, times the rate of the whole cell at the reported MCS, summed
//!   over the measurement times. It is compared with the bytes acknowledged, in rounds of RTTmin: a round from `a` to `b` is
//!   compared with what was granted from `a - RTTmin` to `b - RTTmin` (data that have left the queue need no longer), as soon
//!   as reports of that period have arrived. Rounds are contiguous: data that arrive in a burst after a silence were granted
//!   during it. Rounds in which the window was not the limit do not count.
//! * **Held back.** A block that RLC retransmits holds back all blocks behind it, which then arrive in a burst. So grants
//!   from before the first of the rounds judged together count too, for as long as that round's largest RTT exceeds RTTmin,
//!   at most [`HELD`].
//! * **Contradiction by the delivery rate.** Over the newest rounds that comprise [`ROUNDS`], [`SPAN`] and [`REPORTS`]
//!   reports, more than [`LOW`] times what was granted is delivered.
//! * **Contradiction between reports.** SIGMA uses a report until the next one arrives, so the whole cell's rate that it
//!   implies must hold for that long. It can differ from the previous one where a device is granted two parts of the band in
//!   turn; but if, of [`TOLD`] reports of a grant, more than [`UNLIKE`] differ by more than [`LOW`] times from both
//!   predecessors, which are at most [`COHERENT`] old, the reports carry no information. No sum shows this, since such
//!   reports are not low on average.
//! * **Trial.** A trial starts [`FIRST`] after SIGMA took the window; the interval then doubles each time up to
//!   [`LONGEST_WAIT`]. The window becomes [`GAIN`] times the larger of what was delivered and what was granted in the newest
//!   rounds, times RTTmin, at least [`LEAST`] segments and at most [`MOST`] times what was delivered; it is paced at [`PACE`]
//!   of that per RTTmin. A trial ends when there is a queue (the smallest RTT of a round is [`QUEUE`] RTTmin) and its rounds
//!   have not delivered more than [`LOW`] times what was granted, when there are enough rounds to judge, when something is
//!   lost, or after [`LONGEST`].
//! * After a contradiction CUBIC controls the window, in slow start if there was no queue, until no rounds have contradicted
//!   the reports for a hold of [`HOLD`], which doubles each time up to [`LONGEST_HOLD`].
//!
//! Each connection judges for itself: where several share a modem with false reports, a connection detects them if it alone
//! can achieve more than [`LOW`] times what is reported for all.

use std::collections::VecDeque;

use ranpace_units::{Rate, Span, Time};

use crate::interface::Context;

/// Ratio of delivered to granted that is a contradiction: reports wrong by 30 % and late blocks stay below it.
const LOW: f64 = 1.5;
/// Least rounds, time and reports that are judged together. A failed HARQ process and the RLC retransmission take a tenth of
/// a second. If reports are sparse, each samples grants that are all or nothing in a TTI: with only 16 reports, true ones
/// covering one in a hundred TTIs were contradicted. Reports less frequent than about every 40 ms are too few to be judged.
const ROUNDS: u32 = 4;
const SPAN: Span = Span::from_millis(400);
const REPORTS: u32 = 64;
/// Reports that are compared with their predecessors, and how many may differ from both. Of 256 true reports up to 18 % do so
/// far from the base station and 10 % near it, from standing to 120 km/h; of random MCS 44 % and more (LTE, 20 MHz, EPA and
/// ETU).
const TOLD: u32 = 256;
const UNLIKE: u32 = TOLD / 3;
/// Time for which a radio's rate holds: a device at 3 km/h moves an eighth of a wavelength (2 GHz) in 22 ms. A faster device
/// does so sooner, but its MCS follows measurements some milliseconds apart, so most reports still resemble a predecessor.
const COHERENT: Span = Span::from_millis(20);
/// Longest time for which RLC retransmissions hold back granted data: half of [`SPAN`]. A tenth of a second is usual.
const HELD: Span = Span::from_millis(200);
/// Time from SIGMA taking the window to the first trial, and the longest interval between trials.
const FIRST: Span = Span::SECOND;
const LONGEST_WAIT: Span = Span::from_secs(5);
/// Window of a trial over the data delivered or granted in RTTmin: more than [`LOW`], and no more than SIGMA's own bound.
const GAIN: f64 = 2.0;
/// Smallest window of a trial in segments: an initial window (RFC 6928).
const LEAST: f64 = 10.0;
/// Pace of a trial over its window per RTTmin: the window, not the pace, is the limit.
const PACE: f64 = 1.25;
/// Largest window of a trial over the data delivered in RTTmin.
const MOST: f64 = 4.0;
/// Smallest RTT of a round over RTTmin that counts as a queue: a window of two bandwidth-delay products makes the ratio 2.
const QUEUE: f64 = 1.5;
/// Longest trial that finds nothing.
const LONGEST: Span = Span::from_secs(2);
/// Time without a contradiction after which SIGMA takes the window back, and its maximum.
const HOLD: Span = Span::from_secs(10);
const LONGEST_HOLD: Span = Span::from_secs(60);
/// Shortest round.
const LEAST_ROUND: Span = Span::from_millis(20);
/// Points of the account that are kept, and the most rounds kept, both judged and waiting.
const POINTS: usize = 256;
const MOST_ROUNDS: usize = 64;
/// Most points of the account per RTTmin, taken as [`LEAST_ACCOUNT`] at least, so that it goes back for 16 times that.
const POINTS_PER_RTT: u64 = 16;
const LEAST_ACCOUNT: Span = Span::from_millis(40);

/// Cumulative grants up to a time.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Time,
    bytes: f64,
    reports: u32,
}

/// The current round.
#[derive(Clone, Copy, Debug)]
struct Open {
    begin: Time,
    bytes: f64,
    limited: bool,
    /// Smallest and largest RTT.
    rtt: Span,
    most_rtt: Span,
}

impl Open {
    const fn at(begin: Time) -> Self {
        Self { begin, bytes: 0.0, limited: true, rtt: Span::MAX, most_rtt: Span::ZERO }
    }
}

/// A finished round; its times are those at which the data it delivered were granted.
#[derive(Clone, Copy, Debug)]
struct FinishedTrial {
    from: Time,
    to: Time,
    bytes: f64,
    /// Some of the data may have been granted up to this long before `from`.
    held: Span,
}

/// One or more compared rounds: bytes delivered and granted.
#[derive(Clone, Copy, Debug)]
struct Compared {
    span: Span,
    delivered: f64,
    granted: f64,
    /// Bytes granted before it, while data may have been held back.
    before: f64,
    reports: u32,
}

/// The current trial.
#[derive(Clone, Copy, Debug)]
struct Trial {
    since: Time,
    /// Window in segments.
    window: f64,
    /// Window before the trial.
    before: f64,
}

/// The control that sets the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowOwner {
    /// CUBIC.
    Plain,
    /// SIGMA, in a state that does not allow a trial.
    Sigma,
    /// SIGMA, in a state that allows a trial.
    Ready,
}

/// Result at the end of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finding {
    /// Nothing.
    Nothing,
    /// A trial begins.
    Begin,
    /// The trial is over; the window to return to.
    End(f64),
    /// The reports are contradicted; whether there is a queue.
    Contradicted { queue: bool },
}

/// The guard.
#[derive(Debug)]
pub(super) struct Trials {
    account: VecDeque<Point>,
    /// The last two reports of a grant: time and whole cell's rate. Reports compared with them, how many differed from both,
    /// and whether these were too many in the last batch.
    told: [Option<(Time, Rate)>; 2],
    unlike: (u32, u32),
    says_nothing: bool,
    /// Share of the last [`TOLD`] reports that differed from both predecessors, for `inspect`.
    share: Option<f64>,
    open: Option<Open>,
    waiting: VecDeque<FinishedTrial>,
    compared: VecDeque<Compared>,
    trial: Option<Trial>,
    due: Time,
    wait: Span,
    /// SIGMA may not take the window back before this time; next hold; when SIGMA took the window.
    hold_until: Time,
    hold: Span,
    driven_since: Time,
    contradictions: u32,
}

impl Trials {
    pub(super) fn new() -> Self {
        Self {
            account: VecDeque::with_capacity(POINTS),
            told: [None; 2],
            unlike: (0, 0),
            says_nothing: false,
            share: None,
            open: None,
            waiting: VecDeque::with_capacity(MOST_ROUNDS),
            compared: VecDeque::with_capacity(MOST_ROUNDS),
            trial: None,
            due: Time::MAX,
            wait: FIRST,
            hold_until: Time::ZERO,
            hold: HOLD,
            driven_since: Time::ZERO,
            contradictions: 0,
        }
    }

    /// SIGMA takes the window.
    pub(super) fn drive(&mut self, now: Time) {
        (self.wait, self.driven_since) = (FIRST, now);
        self.due = now + FIRST;
        self.trial = None;
    }

    /// Returns whether the reports may be used again.
    pub(super) fn is_trusted(&self, now: Time) -> bool {
        now >= self.hold_until
    }

    /// Window of the current trial, in segments.
    pub(super) fn window(&self) -> Option<f64> {
        self.trial.map(|trial| trial.window)
    }

    /// Pace of the current trial in segments per RTTmin.
    pub(super) fn pace(&self) -> Option<f64> {
        self.window().map(|window| PACE * window)
    }

    /// Share of the last [`TOLD`] reports of grants that differed from both predecessors.
    pub(super) fn unlike(&self) -> Option<f64> {
        self.share
    }

    /// Contradictions so far.
    pub(super) const fn contradictions(&self) -> u32 {
        self.contradictions
    }

    /// Ratio of delivered to granted over the newest rounds; `None` if there are not enough of them.
    pub(super) fn ratio(&self) -> Option<f64> {
        let newest = self.newest()?;
        let granted = newest.granted + newest.before;
        (granted > 0.0).then(|| newest.delivered / granted)
    }

    /// Ends the trial, whatever it found; returns the window before it.
    pub(super) fn stop(&mut self, now: Time) -> Option<f64> {
        let trial = self.trial.take()?;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        self.due = now + self.wait;
        Some(trial.before)
    }

    /// The path, the cell or the account has changed: rounds restart.
    pub(super) fn forget(&mut self) {
        self.open = None;
        self.waiting.clear();
        self.compared.clear();
        self.account.clear();
        (self.told, self.unlike, self.says_nothing) = ([None; 2], (0, 0), false);
    }

    /// Records a report of a grant, which implies the rate `whole` for the whole cell.
    pub(super) fn on_grant(&mut self, at: Time, whole: Rate) {
        let before = self.told;
        self.told = [Some((at, whole)), before[0]];
        let [Some((_, last)), Some((oldest, other))] = before else { return };
        if at.since(oldest) > COHERENT {
            return;
        }
        let is_unlike = |rate: Rate| rate.max(whole).as_f64() > LOW * rate.min(whole).as_f64();
        self.unlike.0 += 1;
        self.unlike.1 += u32::from(is_unlike(last) && is_unlike(other));
        if self.unlike.0 >= TOLD {
            self.says_nothing = self.unlike.1 > UNLIKE;
            self.share = Some(f64::from(self.unlike.1) / f64::from(self.unlike.0));
            self.unlike = (0, 0);
        }
    }

    /// Records a report measured at `at`: `granted` is the rate granted since the previous one. `base` is RTTmin.
    pub(super) fn on_report(&mut self, at: Time, granted: Rate, base: Span, stale_after: Span) {
        let Some(last) = self.account.back().copied() else {
            self.account.push_back(Point { at, bytes: 0.0, reports: 0 });
            return;
        };
        let since = at.since(last.at);
        if since > stale_after {
            self.account.clear();
            self.compared.clear();
            self.account.push_back(Point { at, bytes: 0.0, reports: 0 });
            return;
        }
        let point = Point {
            at,
            bytes: last.bytes + granted.as_f64() / 8.0 * since.as_secs_f64(),
            reports: last.reports.wrapping_add(1),
        };
        // Points are at least `apart` from each other: one that is closer to the last but one replaces the last.
        let apart = base.max(LEAST_ACCOUNT) / POINTS_PER_RTT;
        let before_last = self.account.len().checked_sub(2).and_then(|place| self.account.get(place));
        if before_last.is_some_and(|before| at.since(before.at) < apart) {
            self.account.pop_back();
        }
        if self.account.len() >= POINTS {
            self.account.pop_front();
        }
        self.account.push_back(point);
    }

    /// The account at a time; `Err` if the time is still to come or its points have been dropped.
    fn granted_by(&self, at: Time) -> Result<(f64, u32), Missing> {
        let later = self.account.partition_point(|point| point.at < at);
        match (later.checked_sub(1).and_then(|place| self.account.get(place)), self.account.get(later)) {
            (_, None) => Err(Missing::ToCome),
            (None, Some(first)) if first.at == at => Ok((first.bytes, first.reports)),
            (None, Some(_)) => Err(Missing::Forgotten),
            (Some(before), Some(after)) => {
                let share = at.since(before.at).ratio(after.at.since(before.at));
                Ok((before.bytes + share * (after.bytes - before.bytes), after.reports))
            }
        }
    }

    /// An RTT was measured.
    pub(super) fn on_rtt(&mut self, rtt: Span) {
        if let Some(open) = &mut self.open {
            open.rtt = open.rtt.min(rtt);
            open.most_rtt = open.most_rtt.max(rtt);
        }
    }

    /// Records acknowledged bytes; `base` is RTTmin.
    pub(super) fn on_ack(
        &mut self,
        cx: &Context,
        bytes: f64,
        base: Span,
        cwnd: f64,
        who: WindowOwner,
    ) -> Finding {
        let Some(open) = &mut self.open else {
            // The bytes of this acknowledgement were granted before the round.
            self.open = Some(Open::at(cx.now));
            return Finding::Nothing;
        };
        open.bytes += bytes;
        open.limited &= cx.cwnd_limited || self.trial.is_some() && !cx.app_limited;
        let Open { begin, bytes, limited, rtt, most_rtt } = *open;
        if cx.now.since(begin) < base.max(LEAST_ROUND) {
            return Finding::Nothing;
        }
        // Rounds are contiguous: data that arrive in a burst after a silence were granted during it.
        self.open = Some(Open::at(cx.now));
        if limited {
            if self.waiting.len() >= MOST_ROUNDS {
                self.waiting.pop_front();
            }
            // The trial's first round still delivers data sent before the trial.
            if self.trial.is_none_or(|trial| begin >= trial.since + base) {
                let held = (most_rtt - base).min(HELD);
                self.waiting.push_back(FinishedTrial { from: begin - base, to: cx.now - base, bytes, held });
            }
        } else {
            self.waiting.clear();
            self.compared.clear();
        }
        self.compare();
        let queue = rtt != Span::MAX && rtt >= base.mul_f64(QUEUE);
        self.judge(cx, base, cwnd, queue, who)
    }

    /// Compares waiting rounds, as far as reports have arrived.
    fn compare(&mut self) {
        while let Some(past) = self.waiting.front().copied() {
            let at = [past.from - past.held, past.from, past.to].map(|at| self.granted_by(at));
            match at {
                [Ok((before, _)), Ok((from, first)), Ok((to, last))] => {
                    if self.compared.len() >= MOST_ROUNDS {
                        self.compared.pop_front();
                    }
                    self.compared.push_back(Compared {
                        span: past.to.since(past.from),
                        delivered: past.bytes,
                        granted: to - from,
                        before: from - before,
                        reports: last.wrapping_sub(first),
                    });
                }
                at if at.contains(&Err(Missing::ToCome)) => return,
                _ => {}
            }
            self.waiting.pop_front();
        }
    }

    /// Sums over the newest rounds that suffice for a judgement.
    fn newest(&self) -> Option<Compared> {
        let (mut sum, mut rounds) = (Compared::ZERO, 0);
        for round in self.compared.iter().rev() {
            sum = sum.after(round);
            rounds += 1;
            if rounds >= ROUNDS && sum.span >= SPAN && sum.reports >= REPORTS {
                return Some(sum);
            }
        }
        None
    }

    fn judge(&mut self, cx: &Context, base: Span, cwnd: f64, queue: bool, who: WindowOwner) -> Finding {
        let newest = self.newest();
        // Reported once per batch: if grants are rare, no other batch may follow to revoke it.
        let says_nothing = core::mem::take(&mut self.says_nothing);
        if says_nothing || newest.is_some_and(|newest| newest.is_contradiction()) {
            self.compared.clear();
            if who != WindowOwner::Plain {
                // The hold does not double if SIGMA had the window for at least as long as the hold.
                self.hold = match self.contradictions {
                    0 => HOLD,
                    _ if cx.now.since(self.driven_since) >= self.hold => HOLD,
                    _ => (self.hold * 2).min(LONGEST_HOLD),
                };
                self.contradictions += 1;
            }
            self.hold_until = cx.now + self.hold;
            self.trial = None;
            return Finding::Contradicted { queue };
        }
        match self.trial {
            Some(trial) => {
                let all = self.compared.iter().rev().fold(Compared::ZERO, |sum, round| sum.after(round));
                let judged = newest.is_some();
                let cleared = queue && !all.is_contradiction();
                let long = cx.now.since(trial.since) >= LONGEST;
                match judged || cleared || long {
                    true => self.stop(cx.now).map_or(Finding::Nothing, Finding::End),
                    false => Finding::Nothing,
                }
            }
            None if who == WindowOwner::Ready && cx.now >= self.due && cx.cwnd_limited => match newest {
                Some(newest) => {
                    self.begin(cx, base, cwnd, &newest);
                    Finding::Begin
                }
                None => Finding::Nothing,
            },
            None => Finding::Nothing,
        }
    }

    fn begin(&mut self, cx: &Context, base: Span, cwnd: f64, newest: &Compared) {
        let in_rtt = |bytes: f64| {
            bytes * base.as_secs_f64() / newest.span.as_secs_f64().max(1e-6) / cx.mss.as_f64().max(1.0)
        };
        let delivered = in_rtt(newest.delivered);
        let window = GAIN * delivered.max(in_rtt(newest.granted));
        let window = window.min(MOST * delivered).max(LEAST);
        self.trial = Some(Trial { since: cx.now, window, before: cwnd });
        self.waiting.clear();
        self.compared.clear();
    }
}

/// Why the account has no value for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    ToCome,
    Forgotten,
}

impl Compared {
    const ZERO: Self = Self { span: Span::ZERO, delivered: 0.0, granted: 0.0, before: 0.0, reports: 0 };

    /// Sum with an earlier round.
    fn after(self, other: &Self) -> Self {
        Self {
            span: self.span + other.span,
            delivered: self.delivered + other.delivered,
            granted: self.granted + other.granted,
            before: other.before,
            reports: self.reports.saturating_add(other.reports),
        }
    }

    fn is_contradiction(&self) -> bool {
        self.delivered > LOW * (self.granted + self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::State;
    use crate::radio::sigma::tests::{MSS, connection};

    /// RTT without a queue.
    const BASE: Span = Span::from_millis(40);
    const STALE: Span = Span::from_millis(160);

    /// A link and its modem's reports: data in flight return after RTTmin or as fast as the link allows; the window is
    /// `window` segments except in trials, and a report each millisecond says what `tell` makes of the data sent.
    struct Line {
        trials: Trials,
        cx: Context,
        /// In segments.
        window: f64,
        late: Span,
        pending: VecDeque<(Time, Rate)>,
        findings: Vec<(f64, Finding)>,
        granted: VecDeque<f64>,
    }

    impl Line {
        fn new(window: f64, late_ms: u64) -> Self {
            let mut trials = Trials::new();
            trials.drive(Time::ZERO);
            Self {
                trials,
                cx: Context { cwnd_limited: true, state: State::Open, ..connection(Time::ZERO, 40) },
                window,
                late: Span::from_millis(late_ms),
                pending: VecDeque::new(),
                findings: Vec::new(),
                granted: VecDeque::from(vec![0.0; 40]),
            }
        }

        /// Runs until `until_ms`; the link carries `rate` segments per ms.
        fn play(&mut self, until_ms: u64, rate: f64, who: WindowOwner, tell: impl Fn(f64) -> f64) {
            while self.cx.now < Time::from_millis(until_ms) {
                self.cx.now += Span::from_millis(1);
                let now = self.cx.now;
                let window = self.trials.window().unwrap_or(0.0).max(self.window);
                let sent = rate.min(window / 40.0);
                self.granted.push_back(sent);
                let bits = |segments: f64| Rate::from_bits_per_s_f64(segments * MSS as f64 * 8e3);
                self.pending.push_back((now, bits(tell(sent))));
                while self.pending.front().is_some_and(|(at, _)| *at + self.late <= now) {
                    let (at, granted) = self.pending.pop_front().unwrap();
                    self.trials.on_report(at, granted, BASE, STALE);
                }
                // Data sent RTTmin ago are acknowledged; the window beyond the link's share is the queue.
                let acked = self.granted.pop_front().unwrap();
                self.trials.on_rtt(BASE.mul_f64((window / (40.0 * rate)).max(1.0)));
                let finding = self.trials.on_ack(&self.cx, acked * MSS as f64, BASE, window, who);
                if finding != Finding::Nothing {
                    self.findings.push((now.as_secs_f64(), finding));
                }
            }
        }

        fn trials(&self) -> usize {
            self.findings.iter().filter(|(_, finding)| *finding == Finding::Begin).count()
        }

        fn contradictions(&self) -> Vec<f64> {
            let of = |(at, finding): &(f64, Finding)| {
                matches!(finding, Finding::Contradicted { .. }).then_some(*at)
            };
            self.findings.iter().filter_map(of).collect()
        }
    }

    #[test]
    fn true_reports_are_tried_less_and_less_often_and_for_a_few_round_trips() {
        // Reports of the whole link, on time and late by more than an RTT.
        for late_ms in [0, 100] {
            let mut line = Line::new(80.0, late_ms);
            line.play(20_000, 2.0, WindowOwner::Ready, |sent| sent);
            let begins: Vec<f64> = line
                .findings
                .iter()
                .filter(|(_, finding)| *finding == Finding::Begin)
                .map(|(at, _)| *at)
                .collect();
            assert!((4..=6).contains(&begins.len()), "{begins:?}");
            for (begin, end) in line.findings.chunks(2).map(|pair| (pair[0].0, pair.last().unwrap().0)) {
                assert!(end - begin < 0.1, "a queue ends it: {begin} to {end}");
            }
            assert_eq!(line.contradictions(), [0.0; 0]);
        }
    }

    #[test]
    fn trial_detects_reports_of_a_tenth_but_not_of_three_quarters() {
        for (case, window, share, late_ms, found) in [
            ("a tenth of what there is, and followed", 8.0, 0.1, 0, true),
            ("the same, late", 8.0, 0.1, 100, true),
            ("one segment in four round trips", 2.0, 0.006, 0, true),
            ("three quarters", 60.0, 0.75, 0, false),
        ] {
            let mut line = Line::new(window, late_ms);
            line.play(7_000, 2.0, WindowOwner::Ready, |sent| sent.min(2.0 * share));
            let contradictions = line.contradictions();
            assert_eq!(!contradictions.is_empty(), found, "{case}: {:?}", line.findings);
            if found {
                assert!(contradictions[0] < 3.0, "{case}: the stated fallback time, {contradictions:?}");
                assert!(!line.trials.is_trusted(line.cx.now));
            }
        }
    }

    #[test]
    fn without_trials_low_reports_are_not_detected() {
        let mut line = Line::new(8.0, 0);
        line.play(20_000, 2.0, WindowOwner::Sigma, |sent| sent.min(0.2));
        assert_eq!((line.trials(), line.contradictions().len()), (0, 0));
    }

    #[test]
    fn trust_returns_after_a_hold_without_contradictions() {
        let mut line = Line::new(8.0, 0);
        let lie = |sent: f64| sent.min(0.2);
        line.play(1_600, 2.0, WindowOwner::Ready, lie);
        assert_eq!(line.contradictions().len(), 1);
        // CUBIC fills the link: the reports stay contradicted until they are true, and for 10 s more.
        line.window = 80.0;
        line.play(30_000, 2.0, WindowOwner::Plain, lie);
        assert!(!line.trials.is_trusted(line.cx.now));
        line.play(39_000, 2.0, WindowOwner::Plain, |sent| sent);
        assert!(!line.trials.is_trusted(line.cx.now));
        line.play(41_000, 2.0, WindowOwner::Plain, |sent| sent);
        assert!(line.trials.is_trusted(line.cx.now));
    }

    #[test]
    fn inconsistent_reports_are_detected_even_if_not_low() {
        // Rates of the cell in Mbit/s, in turn, and the interval in milliseconds; everything sent was granted.
        for (rates, apart_ms, found) in [
            (&[40.0, 10.0, 20.0][..], 1, true),
            (&[40.0, 10.0, 20.0], 10, true),
            (&[40.0, 10.0, 20.0], 11, false),
            (&[40.0, 28.0, 34.0], 1, false),
            // Two parts of the band in turn.
            (&[40.0, 10.0], 1, false),
        ] {
            let mut line = Line::new(80.0, 0);
            let case = format!("{rates:?}, each {apart_ms} ms");
            for (ms, mbit) in (apart_ms..4_000).step_by(apart_ms as usize).zip(rates.iter().cycle()) {
                line.trials.on_grant(Time::from_millis(ms), Rate::from_bits_per_s_f64(1e6 * mbit));
                // As soon as the contradiction is found, CUBIC controls the window.
                let who =
                    if line.contradictions().is_empty() { WindowOwner::Sigma } else { WindowOwner::Plain };
                line.play(ms, 2.0, who, |sent| sent);
            }
            assert_eq!(!line.contradictions().is_empty(), found, "{case}");
            assert_eq!(line.trials.is_trusted(line.cx.now), !found, "{case}");
            // Once the reports agree, they are trusted again after the hold.
            for ms in 4_000..40_000 {
                line.trials.on_grant(Time::from_millis(ms), Rate::from_mbit_per_s(40));
                line.play(ms, 2.0, WindowOwner::Plain, |sent| sent);
            }
            assert!(line.trials.is_trusted(line.cx.now), "{case}");
        }
    }

    #[test]
    fn rare_reports_are_no_contradiction() {
        // One report in 100 ms, from a device with a grant in every second millisecond: each report is all or nothing.
        let mut trials = Trials::new();
        let mut cx = Context { cwnd_limited: true, ..connection(Time::ZERO, 40) };
        trials.drive(cx.now);
        for ms in 1..60_000_u64 {
            cx.now = Time::from_millis(ms);
            if ms % 100 == 0 {
                let granted = if ms / 100 % 2 == 0 { 46.08 } else { 0.0 };
                trials.on_report(cx.now, Rate::from_bits_per_s_f64(1e6 * granted), BASE, STALE);
            }
            trials.on_rtt(BASE * 2);
            let finding = trials.on_ack(&cx, 2.0 * MSS as f64, BASE, 80.0, WindowOwner::Sigma);
            assert!(!matches!(finding, Finding::Contradicted { .. }), "{ms} ms: {:?}", trials.ratio());
        }
    }

    #[test]
    fn delayed_bursts_of_data_are_no_contradiction() {
        // Every half second the link is fast for a while, but nothing arrives before all of that has been granted; then it is
        // slow.
        for silence in [100, 60] {
            let mut trials = Trials::new();
            let mut cx = Context { cwnd_limited: true, ..connection(Time::ZERO, 40) };
            trials.drive(cx.now);
            for ms in 1..20_000_u64 {
                cx.now = Time::from_millis(ms);
                let granted = |ms: u64| if ms % 500 < silence { 4.0 } else { 0.2 };
                let rate = granted(ms) * MSS as f64 * 8e3;
                trials.on_report(cx.now, Rate::from_bits_per_s_f64(rate), BASE, STALE);
                let Some(left) = ms.checked_sub(40) else { continue };
                let arrived = match left % 500 {
                    at if at + 1 < silence => 0..0,
                    at if at + 1 == silence => left + 1 - silence..left + 1,
                    _ => left..left + 1,
                };
                for left in arrived {
                    trials.on_rtt(Span::from_millis(ms - left));
                    let bytes = granted(left) * MSS as f64;
                    let finding = trials.on_ack(&cx, bytes, BASE, 80.0, WindowOwner::Sigma);
                    assert!(
                        !matches!(finding, Finding::Contradicted { .. }),
                        "{ms} ms: {:?}",
                        trials.ratio()
                    );
                }
            }
            assert!(trials.ratio().is_some(), "it was judged");
        }
    }

    #[test]
    fn a_report_after_a_silence_begins_a_new_account() {
        let mut trials = Trials::new();
        let rate = Rate::from_mbit_per_s(8);
        for ms in [1, 2, 3] {
            trials.on_report(Time::from_millis(ms), rate, BASE, STALE);
        }
        let near = |at: Time| trials.granted_by(at).map(|(bytes, _)| bytes.round());
        assert_eq!(near(Time::from_millis(2)), Ok(1000.0));
        assert_eq!(near(Time::from_millis(4)), Err(Missing::ToCome));
        assert_eq!(near(Time::ZERO), Err(Missing::Forgotten));
        trials.on_report(Time::from_millis(200), rate, BASE, STALE);
        assert_eq!(trials.granted_by(Time::from_millis(2)), Err(Missing::Forgotten));
    }
}
