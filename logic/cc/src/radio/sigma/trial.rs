//! Whether more goes through than the modem says: SIGMA's guard against information that is too low.
//!
//! Ours, all of it. A flow that follows a false small capacity makes it true, and nothing that it measures contradicts it: only
//! trying for more can. What can be held against the information is one sentence of each report: so many resources were
//! **granted** to this device. What is acknowledged was granted before, so over any time long enough for single blocks not to
//! matter, a true report is never below what is delivered. (C_max is no such sentence: it is what could be, and a connection
//! that is alone may well be below it. Nor is a report of more than is delivered one: the device has other connections.)
//!
//! * **Account.** Resources granted, as parts of the cell, times the rate of the whole cell with the reported MCS, summed over
//!   the times at which they were measured. Beside it what is acknowledged, by rounds of RTTmin: a round from `a` to `b`
//!   is held against what was granted from `a - RTTmin` to `b - RTTmin` (what has left the queue needs no longer), as soon as
//!   reports of that time have come. Rounds follow each other without a gap: what comes at once after a silence was granted in the
//!   silence. Rounds in which the window was not the limit are not counted.
//! * **Held back.** A block that RLC sends again holds back all behind it, which then comes at once. So what was granted
//!   before the first round of those that are judged together counts too, for as long as the largest RTT of that round is beyond RTTmin, at most [`HELD`].
//! * **Contradiction by what is delivered.** Over the newest rounds that make [`ROUNDS`], [`SPAN`] and [`REPORTS`] reports, more than [`LOW`] times
//!   what was granted is delivered.
//! * **Contradiction by each other.** A report is followed until the next one comes, so the rate that it gives the whole cell has to
//!   hold for so long. It can differ from the one before where a device has one part of the band and another in turn;
//!   but if of [`TOLD`] reports of a grant more than [`UNLIKE`] differ by more than [`LOW`] times from both before them, which are at
//!   most [`COHERENT`] old, they say nothing. No sum shows this, since such reports are not low on the whole.
//! * **Trial.** [`FIRST`] after SIGMA got the window, then after twice as long each time up to [`LONGEST_WAIT`], the window
//!   becomes [`GAIN`] times the larger of what was delivered and what was granted in the newest rounds, times RTTmin, at least
//!   [`LEAST`] segments and at most [`MOST`] times what was delivered; paced at [`PACE`] of that per RTTmin. It is over when there is a queue (the
//!   smallest RTT of a round is [`QUEUE`] RTTmin) and what the trial's rounds have delivered does not exceed what was granted
//!   by [`LOW`], when they are enough to be judged, when something is lost, or after [`LONGEST`].
//! * After a contradiction CUBIC has the window, in slow start if there was no queue, until no rounds have contradicted the
//!   reports for a hold of [`HOLD`], which doubles each time up to [`LONGEST_HOLD`].
//!
//! Each connection judges alone: where several share a modem that lies, one finds out if it alone can bring in more than
//! [`LOW`] times what is said of all.

use std::collections::VecDeque;

use ranpace_units::{Rate, Span, Time};

use crate::interface::Context;

/// Delivered over granted that is a contradiction: reports that are wrong by 30 % and blocks that come late stay below.
const LOW: f64 = 1.5;
/// Rounds, time and reports that are judged together: a HARQ process that fails and what RLC sends again take a tenth of a
/// second; and where few reports come each is a sample of what is all or nothing in a TTI. With 16 of them true reports, one of a
/// hundred TTIs, were contradicted; too few to be judged are those that come less often than each 40 ms or so.
const ROUNDS: u32 = 4;
const SPAN: Span = Span::from_millis(400);
const REPORTS: u32 = 64;
/// Reports that are held against those before them, and how many may be like neither. Of true ones up to 18 % are in 256, far from
/// the mast, and 10 % near it, from standing to 120 km/h; of random MCS 44 % and more (LTE, 20 MHz, EPA and ETU).
const TOLD: u32 = 256;
const UNLIKE: u32 = TOLD / 3;
/// Time for which a radio's rate holds: a device at 3 km/h moves an eighth of a wavelength (2 GHz) in 22 ms. A faster one does so
/// sooner, but its MCS follows measurements that come some milliseconds apart, so that most reports are still like one before.
const COHERENT: Span = Span::from_millis(20);
/// Longest time for which something granted is held back by what RLC sends again: half of [`SPAN`]. A tenth of a second is
/// usual.
const HELD: Span = Span::from_millis(200);
/// First trial after SIGMA got the window, and the longest time from one to the next.
const FIRST: Span = Span::SECOND;
const LONGEST_WAIT: Span = Span::from_secs(5);
/// Window of a trial over what is delivered or granted in RTTmin: more than [`LOW`], and no more than SIGMA's own bound.
const GAIN: f64 = 2.0;
/// Smallest window of a trial in segments: an initial window (RFC 6928).
const LEAST: f64 = 10.0;
/// Pace of a trial over its window per RTTmin: the window, not the pace, is the limit.
const PACE: f64 = 1.25;
/// Largest window of a trial over what is delivered in RTTmin.
const MOST: f64 = 4.0;
/// Smallest RTT of a round over RTTmin that is a queue: a window of two bandwidth-delay products makes 2 of it.
const QUEUE: f64 = 1.5;
/// A trial that finds nothing is over after this.
const LONGEST: Span = Span::from_secs(2);
/// Time without a contradiction after which SIGMA has the window again, and the longest.
const HOLD: Span = Span::from_secs(10);
const LONGEST_HOLD: Span = Span::from_secs(60);
/// A round is this long at least.
const LEAST_ROUND: Span = Span::from_millis(20);
/// Points of the account that are kept, and rounds that are judged or wait for it.
const POINTS: usize = 256;
const MOST_ROUNDS: usize = 64;
/// Points of the account per RTTmin at most, of an RTTmin of [`LEAST_ACCOUNT`] at least: so that it goes back for 16 times that.
const POINTS_PER_RTT: u64 = 16;
const LEAST_ACCOUNT: Span = Span::from_millis(40);

/// What has been granted up to a time.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Time,
    bytes: f64,
    reports: u32,
}

/// A round that is not over yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    begin: Time,
    bytes: f64,
    limited: bool,
    /// Smallest and largest.
    rtt: Span,
    most_rtt: Span,
}

impl Open {
    const fn at(begin: Time) -> Self {
        Self { begin, bytes: 0.0, limited: true, rtt: Span::MAX, most_rtt: Span::ZERO }
    }
}

/// One that is over; its times are those at which what it delivered was granted.
#[derive(Clone, Copy, Debug)]
struct FinishedTrial {
    from: Time,
    to: Time,
    bytes: f64,
    /// How long before `from` some of it may have been granted.
    held: Span,
}

/// One that has been compared, or several: bytes delivered and granted.
#[derive(Clone, Copy, Debug)]
struct Compared {
    span: Span,
    delivered: f64,
    granted: f64,
    /// Granted before it, while something may have been held back.
    before: f64,
    reports: u32,
}

/// The trial that is under way.
#[derive(Clone, Copy, Debug)]
struct Trial {
    since: Time,
    /// Window in segments.
    window: f64,
    /// What the window was before.
    before: f64,
}

/// Who has the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowOwner {
    /// CUBIC.
    Plain,
    /// SIGMA, at a time that is not one for a trial.
    Sigma,
    /// SIGMA, and nothing speaks against a trial.
    Ready,
}

/// What a round's end has brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finding {
    /// Nothing.
    Nothing,
    /// A trial begins.
    Begin,
    /// The trial is over, and the window is this again.
    End(f64),
    /// The reports are contradicted; whether there is a queue.
    Contradicted { queue: bool },
}

/// The guard.
#[derive(Debug)]
pub(super) struct Trials {
    account: VecDeque<Point>,
    /// The last two reports of a grant: when, and the whole cell's rate. Reports that were held against them, those that were like
    /// neither, and whether these were too many the last time.
    told: [Option<(Time, Rate)>; 2],
    unlike: (u32, u32),
    says_nothing: bool,
    /// Part of the last [`TOLD`] that was like neither, to be shown.
    share: Option<f64>,
    open: Option<Open>,
    waiting: VecDeque<FinishedTrial>,
    compared: VecDeque<Compared>,
    trial: Option<Trial>,
    due: Time,
    wait: Span,
    /// SIGMA does not have the window again before; and since when it has it.
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

    /// SIGMA has the window from now on.
    pub(super) fn drive(&mut self, now: Time) {
        (self.wait, self.driven_since) = (FIRST, now);
        self.due = now + FIRST;
        self.trial = None;
    }

    /// Whether the reports may be followed again.
    pub(super) fn is_trusted(&self, now: Time) -> bool {
        now >= self.hold_until
    }

    /// Window of the trial that is under way, in segments.
    pub(super) fn window(&self) -> Option<f64> {
        self.trial.map(|trial| trial.window)
    }

    /// Its pace in segments per RTTmin.
    pub(super) fn pace(&self) -> Option<f64> {
        self.window().map(|window| PACE * window)
    }

    /// Part of the last [`TOLD`] reports of grants that was like neither of the two before.
    pub(super) fn unlike(&self) -> Option<f64> {
        self.share
    }

    /// Contradictions so far.
    pub(super) const fn contradictions(&self) -> u32 {
        self.contradictions
    }

    /// Delivered over granted of the newest rounds; `None` without enough of them.
    pub(super) fn ratio(&self) -> Option<f64> {
        let newest = self.newest()?;
        let granted = newest.granted + newest.before;
        (granted > 0.0).then(|| newest.delivered / granted)
    }

    /// The trial is over, whatever it found; the window that there was.
    pub(super) fn stop(&mut self, now: Time) -> Option<f64> {
        let trial = self.trial.take()?;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        self.due = now + self.wait;
        Some(trial.before)
    }

    /// The path, the cell or the account are others: rounds begin anew.
    pub(super) fn forget(&mut self) {
        self.open = None;
        self.waiting.clear();
        self.compared.clear();
        self.account.clear();
        (self.told, self.unlike, self.says_nothing) = ([None; 2], (0, 0), false);
    }

    /// A report of a grant gives the whole cell this rate.
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

    /// A report was measured at `at`: so much was granted since the one before. `base` is RTTmin.
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
        // Points lie as far apart as they need to: one that is nearer to the one before the last takes its place.
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

    /// The account at a time; `Err` if that is still to come, or has been forgotten.
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

    /// Bytes were acknowledged; `base` is RTTmin.
    pub(super) fn on_ack(
        &mut self,
        cx: &Context,
        bytes: f64,
        base: Span,
        cwnd: f64,
        who: WindowOwner,
    ) -> Finding {
        let Some(open) = &mut self.open else {
            // What this brings was granted before the round.
            self.open = Some(Open::at(cx.now));
            return Finding::Nothing;
        };
        open.bytes += bytes;
        open.limited &= cx.cwnd_limited || self.trial.is_some() && !cx.app_limited;
        let Open { begin, bytes, limited, rtt, most_rtt } = *open;
        if cx.now.since(begin) < base.max(LEAST_ROUND) {
            return Finding::Nothing;
        }
        // Rounds follow each other without a gap: what comes at once after a silence was granted in the silence.
        self.open = Some(Open::at(cx.now));
        if limited {
            if self.waiting.len() >= MOST_ROUNDS {
                self.waiting.pop_front();
            }
            // The trial's first round still brings in what left before.
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

    /// Rounds that wait are compared, as far as reports have come.
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

    /// Sums over the newest rounds that are enough to be judged.
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
        // Said once for each batch: where grants are rare no other one comes to take it back.
        let says_nothing = core::mem::take(&mut self.says_nothing);
        if says_nothing || newest.is_some_and(|newest| newest.is_contradiction()) {
            self.compared.clear();
            if who != WindowOwner::Plain {
                // Not doubled after a time of SIGMA's that was as long as the hold.
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

/// Why the account has nothing to say of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    ToCome,
    Forgotten,
}

impl Compared {
    const ZERO: Self = Self { span: Span::ZERO, delivered: 0.0, granted: 0.0, before: 0.0, reports: 0 };

    /// Together with one that came before.
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

    /// A line and what a modem says of it: what is in flight comes back after RTTmin or as the line lets it; the window is
    /// `window` segments but in trials, and reports in each millisecond say what `tell` makes of what was sent.
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

        /// Plays until `until_ms`; the line carries `rate` segments per ms.
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
                // What was sent RTTmin ago is acknowledged; a queue is what the window holds beyond the line's.
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
        // Of the whole line, and late by more than an RTT.
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
    fn reports_that_say_a_tenth_are_found_out_by_a_trial_and_those_that_are_a_quarter_too_low_are_not() {
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
    fn without_a_trial_nothing_contradicts_what_is_followed() {
        let mut line = Line::new(8.0, 0);
        line.play(20_000, 2.0, WindowOwner::Sigma, |sent| sent.min(0.2));
        assert_eq!((line.trials(), line.contradictions().len()), (0, 0));
    }

    #[test]
    fn what_was_contradicted_is_trusted_again_after_a_hold_without_contradictions() {
        let mut line = Line::new(8.0, 0);
        let lie = |sent: f64| sent.min(0.2);
        line.play(1_600, 2.0, WindowOwner::Ready, lie);
        assert_eq!(line.contradictions().len(), 1);
        // CUBIC fills the line: the reports are contradicted until they are true, and for 10 s more.
        line.window = 80.0;
        line.play(30_000, 2.0, WindowOwner::Plain, lie);
        assert!(!line.trials.is_trusted(line.cx.now));
        line.play(39_000, 2.0, WindowOwner::Plain, |sent| sent);
        assert!(!line.trials.is_trusted(line.cx.now));
        line.play(41_000, 2.0, WindowOwner::Plain, |sent| sent);
        assert!(line.trials.is_trusted(line.cx.now));
    }

    #[test]
    fn reports_that_contradict_each_other_are_found_out_though_they_are_not_low() {
        // Rates of the cell in Mbit/s, in turn, so many milliseconds apart; all that is sent was granted.
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
                // As soon as that is found, CUBIC has the window.
                let who =
                    if line.contradictions().is_empty() { WindowOwner::Sigma } else { WindowOwner::Plain };
                line.play(ms, 2.0, who, |sent| sent);
            }
            assert_eq!(!line.contradictions().is_empty(), found, "{case}");
            assert_eq!(line.trials.is_trusted(line.cx.now), !found, "{case}");
            // As soon as they agree for a time they are believed again, after the hold.
            for ms in 4_000..40_000 {
                line.trials.on_grant(Time::from_millis(ms), Rate::from_mbit_per_s(40));
                line.play(ms, 2.0, WindowOwner::Plain, |sent| sent);
            }
            assert!(line.trials.is_trusted(line.cx.now), "{case}");
        }
    }

    #[test]
    fn rare_reports_are_no_contradiction() {
        // One in 100 ms, of a device that is granted something in every second millisecond: each is all or nothing.
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
    fn what_was_held_back_and_comes_at_once_is_no_contradiction() {
        // Each half a second the line is fast for a while, and nothing of that comes before all of it has been granted; then it is slow.
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
