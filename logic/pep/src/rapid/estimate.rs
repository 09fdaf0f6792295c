//! Estimates what a user can expect of its cell (Diarra 2022, 5.2.2), and how current the estimate is.

use ranpace_phy::{Cqi, Direction, LteMcs, McsRule, NrMcs, QamTable};
use ranpace_rnis::{RadioHint, Technology};
use ranpace_units::{Bytes, Span, Time};

use super::record::Mode;
use super::settings::{Estimator, LateCapacity, MOST_REPORTS, Settings};

/// Upper bound of a user's capacity: 1 Tbit/s, in bytes per second. Ours, against absurd reports.
const MOST: f64 = 125e9;
/// Reports are fresh up to this age, or up to three reporting periods if that is longer. A user's last grant determines its MCS up
/// to this age; the latter is ours.
const FRESH: Span = Span::from_millis(100);
/// Reporting periods for which a report is fresh.
const FRESH_PERIODS: u64 = 3;
/// A report older than this counts as none; also the time over which the least capacity is taken.
const KNOWN: Span = Span::SECOND;
/// Consecutive reports after which a lost feed counts again.
const BACK: u32 = 10;
/// Averaging time of the rate of bypassing traffic. Ours: long enough for the gaps of a video or a call, short enough for a control
/// that fills the radio.
const PASSING: Span = Span::from_millis(100);
/// Bypassing traffic reduces a user's capacity by at most this part (section 9 of the specification).
const MOST_PASSING: f64 = 0.5;
/// The last second is divided into parts of this length.
const PART: Span = Span::from_millis(100);
/// Parts in a second, plus the current one.
const PARTS: usize = 11;

/// A part of the last second: its number, its least capacity, and the sum and count of the capacities reported in it.
#[derive(Clone, Copy, Debug)]
struct Part {
    number: u64,
    least: f64,
    sum: f64,
    count: u32,
}

impl Part {
    const NONE: Self = Self { number: 0, least: f64::INFINITY, sum: 0.0, count: 0 };
}

/// Resources in one report.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    at: Time,
    granted: f64,
    unused: f64,
}

/// The estimate of a user's radio.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    /// The last reports, oldest first.
    reports: [Taken; MOST_REPORTS],
    count: usize,
    /// The newest report, and the time of the last one with a grant.
    newest: Option<RadioHint>,
    granted_at: Option<Time>,
    consecutive: u32,
    /// Capacities of the last second, in bytes per second.
    parts: [Part; PARTS],
    pub(crate) mode: Mode,
    /// The guard found the reports contradicted: they count as none.
    doubted: bool,
    /// When the mode last left normal.
    late_since: Time,
    /// `Pa`, `Pu`, `Pe` in PRBs per TTI.
    pub(super) granted: f64,
    pub(super) unused: f64,
    pub(super) expected: f64,
    /// MCS assumed for these, and bits of a TTI.
    pub(super) mcs: u8,
    pub(super) tbs_bits: u32,
    /// `C` according to the newest report, in bytes per second.
    latest: f64,
    /// Bypassing traffic: bytes since `passed_since`, and the rate until then, in bytes per second.
    passed: u64,
    passed_since: Option<Time>,
    pub(super) passing_rate: f64,
}

/// The changes that a report, or the passing of time, has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The mode has changed.
    pub(super) mode: bool,
    /// The feed is back after it was lost: all flows start afresh.
    pub(super) restart: bool,
}

impl Estimate {
    pub(crate) fn new() -> Self {
        Self {
            reports: [Taken::default(); MOST_REPORTS],
            count: 0,
            newest: None,
            granted_at: None,
            consecutive: 0,
            parts: [Part::NONE; PARTS],
            mode: Mode::Open,
            doubted: false,
            late_since: Time::ZERO,
            granted: 0.0,
            unused: 0.0,
            expected: 0.0,
            mcs: 0,
            tbs_bits: 0,
            latest: 0.0,
            passed: 0,
            passed_since: None,
            passing_rate: 0.0,
        }
    }

    /// A packet has bypassed the proxy.
    #[inline]
    pub(super) fn pass(&mut self, bytes: Bytes) {
        self.passed = self.passed.saturating_add(bytes.get());
    }

    /// Updates the rate of bypassing traffic.
    fn sum_up_passing(&mut self, now: Time) {
        let Some(since) = self.passed_since.replace(now) else {
            self.passed = 0;
            return;
        };
        let seconds = now.since(since).as_secs_f64();
        if seconds > 0.0 {
            let rate = core::mem::take(&mut self.passed) as f64 / seconds;
            self.passing_rate += (rate - self.passing_rate) * (seconds / (seconds + PASSING.as_secs_f64()));
        }
    }

    /// Accepts a report; `None` if it is not newer than the last one.
    pub(crate) fn take(&mut self, settings: &Settings, now: Time, hint: &RadioHint) -> Option<Change> {
        // A report from a clock that runs ahead must not make all later ones look old.
        let at = hint.measured_at.min(now);
        if let Some(newest) = &self.newest {
            if at <= newest.measured_at {
                return None;
            }
            if at.since(newest.measured_at) > fresh(settings) {
                self.consecutive = 0;
            }
            if newest.info.cell != hint.info.cell || hint.handover {
                self.forget_cell();
            }
        }
        if settings.account_udp {
            self.sum_up_passing(now);
        }
        let first = self.newest.is_none();
        self.consecutive = self.consecutive.saturating_add(1);
        self.newest = Some(RadioHint { measured_at: at, ..*hint });
        if hint.granted > 0.0 || hint.tbs_bits.is_some_and(|bits| bits > 0) {
            self.granted_at = Some(at);
        }
        if hint.handover {
            // No cell serves the user.
            (self.granted, self.unused, self.expected, self.tbs_bits, self.latest) = (0.0, 0.0, 0.0, 0, 0.0);
        } else {
            self.keep(settings, at, hint);
            self.work_out(settings, at, hint);
        }
        let number = at.as_nanos() / PART.as_nanos();
        let part = &mut self.parts[(number % PARTS as u64) as usize];
        if part.number != number {
            *part = Part { number, ..Part::NONE };
        }
        part.least = part.least.min(self.latest);
        (part.sum, part.count) = (part.sum + self.latest, part.count + 1);
        let was = self.mode;
        let by_age = self.mode_at(settings, now);
        if !self.doubted && (was != Mode::Open || first || self.consecutive >= BACK) {
            self.set_mode(now, by_age);
        }
        Some(Change { mode: self.mode != was, restart: was == Mode::Open && self.mode != Mode::Open })
    }

    /// Returns whether a report is of another cell than the newest one.
    pub(super) fn has_moved(&self, hint: &RadioHint) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.info.cell != hint.info.cell)
    }

    /// The margin added to the smallest RTT towards the user.
    pub(super) fn allowance(&self, settings: &Settings) -> Span {
        settings.sr_allowance.of(self.newest.as_ref().map(|newest| &newest.info))
    }

    /// Updates the mode after time has passed.
    pub(crate) fn grow_old(&mut self, settings: &Settings, now: Time) -> Change {
        let was = self.mode;
        let by_age = self.mode_at(settings, now);
        // The mode can only get worse as time passes.
        let mode = match (was, by_age) {
            (Mode::Open, _) | (_, Mode::Open) => Mode::Open,
            (Mode::Hold, _) | (_, Mode::Hold) => Mode::Hold,
            _ => Mode::Normal,
        };
        self.set_mode(now, mode);
        if self.mode == Mode::Open {
            self.consecutive = 0;
        }
        Change { mode: self.mode != was, restart: false }
    }

    /// When [`Self::grow_old`] would change something; `None` if never.
    pub(super) fn next_change(&self, settings: &Settings) -> Option<Time> {
        let newest = self.newest.as_ref()?.measured_at;
        let moment = Span::from_nanos(1);
        match self.mode {
            Mode::Normal => Some(newest + fresh(settings) + moment),
            Mode::Hold => Some(newest + known(settings) + moment),
            Mode::Open => None,
        }
    }

    /// `C`: the capacity that is shared out, in bytes per second.
    pub(crate) fn capacity(&self, settings: &Settings, now: Time) -> f64 {
        self.left(match self.mode {
            Mode::Normal => self.latest,
            Mode::Open => 0.0,
            Mode::Hold => self.held(settings, now),
        })
    }

    /// The reported capacity before `efficiency`, in bytes per second, whether or not it is used.
    pub(super) fn reported(&self, settings: &Settings, now: Time) -> f64 {
        let all = if self.mode == Mode::Hold { self.held(settings, now) } else { self.latest };
        self.left(all / settings.efficiency)
    }

    /// Returns the part of a capacity that bypassing traffic leaves.
    fn left(&self, all: f64) -> f64 {
        all - self.passing_rate.min(MOST_PASSING * all)
    }

    /// The value used for `C` while reports are late.
    fn held(&self, settings: &Settings, now: Time) -> f64 {
        let number = now.as_nanos() / PART.as_nanos();
        let recent = self.parts.iter().filter(|part| part.number + PARTS as u64 > number && part.count > 0);
        match settings.hold {
            LateCapacity::Least => recent.fold(self.latest, |least, part| least.min(part.least)),
            LateCapacity::Mean => {
                let (sum, count) =
                    recent.fold((0.0, 0), |(sum, count), part| (sum + part.sum, count + part.count));
                if count == 0 { self.latest } else { sum / f64::from(count) }
            }
        }
    }

    /// Enters or leaves the state in which reports are contradicted, and the radio counts as unknown.
    pub(super) fn doubt(&mut self, settings: &Settings, now: Time, doubted: bool) -> Change {
        let was = self.mode;
        self.doubted = doubted;
        if doubted {
            self.set_mode(now, Mode::Open);
        } else if self.consecutive >= BACK {
            let by_age = self.mode_at(settings, now);
            self.set_mode(now, by_age);
        }
        Change { mode: self.mode != was, restart: was == Mode::Open && self.mode != Mode::Open }
    }

    fn set_mode(&mut self, now: Time, mode: Mode) {
        if mode != Mode::Normal && mode != self.mode {
            self.late_since = now;
        }
        self.mode = mode;
    }

    /// Returns whether reports have been late, but not lost, for longer than a hold should last.
    pub(super) fn is_late(&self, now: Time) -> bool {
        self.mode == Mode::Hold && now.since(self.late_since) > KNOWN
    }

    /// Age of the newest report; [`Span::MAX`] without one.
    pub(crate) fn age(&self, now: Time) -> Span {
        self.newest.as_ref().map_or(Span::MAX, |newest| now.since(newest.measured_at))
    }

    fn mode_at(&self, settings: &Settings, now: Time) -> Mode {
        match self.age(now) {
            age if age <= fresh(settings) => Mode::Normal,
            age if age <= known(settings) => Mode::Hold,
            _ => Mode::Open,
        }
    }

    /// Discards the grants of the previous cell, which do not apply to the new one.
    fn forget_cell(&mut self) {
        self.count = 0;
        self.granted_at = None;
        self.parts = [Part::NONE; PARTS];
    }

    /// Adds a report to the averaging window, and drops those that are too old.
    fn keep(&mut self, settings: &Settings, at: Time, hint: &RadioHint) {
        let prbs = f64::from(hint.cell);
        let taken = Taken { at, granted: within(hint.granted, prbs), unused: within(hint.unused, prbs) };
        let window = hint.tti * u64::from(settings.average.saturating_sub(1));
        let from = self.reports[..self.count].iter().take_while(|old| at.since(old.at) > window).count();
        let from = from.max((self.count + 1).saturating_sub(MOST_REPORTS));
        self.reports.copy_within(from..self.count, 0);
        self.count -= from;
        self.reports[self.count] = taken;
        self.count += 1;
    }

    /// Equations 5.1 to 5.3.
    fn work_out(&mut self, settings: &Settings, at: Time, hint: &RadioHint) {
        let reports = &self.reports[..self.count];
        let mean = |of: fn(&Taken) -> f64| reports.iter().map(of).sum::<f64>() / reports.len().max(1) as f64;
        let prbs = f64::from(hint.cell);
        (self.granted, self.unused) = (mean(|taken| taken.granted), mean(|taken| taken.unused));
        let own = self.granted + self.unused; // (5.2)
        let fair = prbs / f64::from(hint.active_users.max(1)) + self.unused; // (3.7)
        self.expected = match settings.estimator {
            Estimator::AllocPlusUnused => own,
            Estimator::FairShare => fair,
            Estimator::Larger => own.max(fair),
        }
        .min(prbs);
        if hint.cqi == Some(0) {
            self.expected = 0.0; // out of range: no grant is possible
        }
        self.mcs = self.mcs_of(at, hint);
        let hint = RadioHint { mcs: self.mcs, ..*hint };
        self.tbs_bits = hint.block(Direction::Downlink, self.expected).bits();
        let rate = hint.rate(Direction::Downlink, self.expected).as_f64(); // (5.3)
        self.latest = (rate / 8.0 * settings.efficiency).min(MOST);
    }

    /// The MCS of the last grant or, for a user without a recent one, the MCS that its CQI implies.
    fn mcs_of(&self, at: Time, hint: &RadioHint) -> u8 {
        let lately = self.granted_at.is_some_and(|granted| at.since(granted) <= FRESH);
        let Some(cqi) = hint.cqi.and_then(Cqi::new).filter(|_| !lately) else {
            // LTE's 29 to 31 name a retransmission's modulation; the authors' publisher also maps them to 28.
            let most = if hint.info.technology == Technology::Lte { LteMcs::MAX.get() } else { u8::MAX };
            return hint.mcs.min(most);
        };
        match hint.info.technology {
            Technology::Lte => McsRule::Lena.mcs(cqi).map_or(0, |mcs| mcs.get()),
            Technology::Nr { qam256 } => {
                let table = if qam256 { QamTable::Qam256 } else { QamTable::Qam64 };
                NrMcs::for_cqi(table, cqi).map_or(0, |mcs| mcs.index())
            }
            Technology::Mmwave => cqi.get(),
        }
    }
}

/// Age up to which a report is fresh.
fn fresh(settings: &Settings) -> Span {
    FRESH.max(settings.period * FRESH_PERIODS)
}

/// Age up to which a report counts at all.
fn known(settings: &Settings) -> Span {
    KNOWN.max(fresh(settings))
}

/// Clamps a number of a report to 0 to `all`; NaN becomes 0.
fn within(number: f64, all: f64) -> f64 {
    // `max` returns the other operand if one is NaN.
    number.max(0.0).min(all)
}
