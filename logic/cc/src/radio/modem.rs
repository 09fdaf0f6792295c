//! What reports on a user say about one direction of its radio link: P_max, C_max and the utilisation (Diarra 2022, section 3.2.4,
//! equations 3.7, 3.8, 3.11, of a modem's uplink), and the rate granted.
//!
//! P_current and P_unused are the resources granted to this user and to nobody, P_cell all resources. N is the number of
//! users with a grant in the last 100 ms, including this one. In a cell that allocates symbols the unit differs, the formulas
//! do not.
//!
//! Ours: means over `max(8 TTI, RTTmin / 2)`, because a cell that serves two users in turn would otherwise appear fully used
//! and idle alternately (the author's code reads the last grant); P_max never exceeds P_cell; the MCS is that of the device's
//! last grant, and C_max is unknown before the first. Data that the device sends ahead of this connection (real-time UDP) are
//! subtracted from C_max. NaN and out-of-range inputs are clamped.

use std::collections::VecDeque;

use ranpace_phy::Direction;
use ranpace_units::{Rate, Span, Time};

use crate::interface::RadioHint;

/// How P_max is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PMaxRule {
    /// `max(P_cell / N, P_current + P_unused)`: what a fair scheduler gives a user with a backlog. Ours.
    Reachable,
    /// `P_cell / N + P_unused` (3.7), which counts the user's own fair share twice while it is unused.
    Eq37,
    /// `P_current + P_unused`, as the author's code computes.
    OwnPlusUnused,
}

impl PMaxRule {
    /// P_max, in the units of its arguments.
    pub fn p_max(self, cell: f64, users: u16, own: f64, unused: f64) -> f64 {
        let fair = cell / f64::from(users.max(1));
        let most = match self {
            Self::Reachable => fair.max(own + unused),
            Self::Eq37 => fair + unused,
            Self::OwnPlusUnused => own + unused,
        };
        most.min(cell)
    }
}

/// How P_current and P_unused are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// Means over `max(8 TTI, RTTmin / 2)`.
    Window,
    /// Values of the last TTI.
    LastTti,
}

/// Least TTIs of the mean.
const LEAST_TTIS: u64 = 8;
/// Most hints kept: 400 ms of the shortest TTI in use (100 us).
const MOST_HINTS: usize = 4_096;
/// A user without a grant for this long is not counted as active.
const ACTIVE: Span = Span::from_millis(100);
/// Subdivisions of a resource unit: integer sums do not drift.
const PARTS: f64 = 65_536.0;

/// A hint kept for the mean.
#[derive(Clone, Copy, Debug)]
struct TimedHint {
    at: Time,
    own: u64,
    unused: u64,
    /// Rate of the grants, in bit/s.
    rate: u64,
}

/// What a window of hints says, for rules other than [`PMaxRule`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Means {
    /// Resources granted to this user, and to nobody, of `cell`; means per TTI.
    pub(crate) own: f64,
    /// See `own`.
    pub(crate) unused: f64,
    /// Resources of the cell.
    pub(crate) cell: f64,
    /// Users with a grant in the last 100 ms, this one included.
    pub(crate) users: u16,
    /// Rate of the whole cell with the MCS and layers of this user's last grant.
    pub(crate) whole: Rate,
}

/// The radio as a control on the device sees it.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    direction: Direction,
    reach: PMaxRule,
    average: Average,
    /// Utilisation that counts as 1.
    full: f64,
    efficiency: f64,
    recent: VecDeque<TimedHint>,
    own: u64,
    unused: u64,
    rate: u64,
    /// When the last hint was measured, and the number of its cell.
    last: Option<(Time, u16)>,
    /// When the device's last grant was measured, with its MCS and layers.
    grant: Option<(Time, u8, u8)>,
    /// Consecutive hints, none of them late.
    run: u32,
    p_max: f64,
    utilisation: f64,
    capacity: Option<Rate>,
    means: Option<Means>,
    /// Rate granted according to the last hint, and the whole cell's rate at its MCS.
    granted: Rate,
    whole: Rate,
}

/// A resource count in [`PARTS`], clamped to the cell.
fn parts(resources: f64, cell: u16) -> u64 {
    // NaN becomes zero.
    (resources.clamp(0.0, f64::from(cell)) * PARTS) as u64
}

impl Inputs {
    pub(crate) fn new(
        direction: Direction,
        reach: PMaxRule,
        average: Average,
        full: f64,
        efficiency: f64,
    ) -> Self {
        Self {
            direction,
            reach,
            average,
            full,
            efficiency,
            recent: VecDeque::new(),
            own: 0,
            unused: 0,
            rate: 0,
            last: None,
            grant: None,
            run: 0,
            p_max: 0.0,
            utilisation: 1.0,
            capacity: None,
            means: None,
            granted: Rate::ZERO,
            whole: Rate::ZERO,
        }
    }

    /// The cell of the newest hint.
    pub(crate) fn cell(&self) -> Option<u16> {
        self.last.map(|(_, cell)| cell)
    }

    /// Processes a hint. Returns whether the cell has changed; `None` if the hint is unusable.
    pub(crate) fn on_hint(
        &mut self,
        now: Time,
        hint: &RadioHint,
        base_rtt: Span,
        stale_after: Span,
    ) -> Option<bool> {
        let at = hint.measured_at.min(now);
        let is_old = self.last.is_some_and(|(last, _)| at <= last) || now.since(at) > stale_after;
        if hint.cell == 0 || is_old {
            return None;
        }
        let moved = hint.handover || self.last.is_some_and(|(_, cell)| cell != hint.info.cell);
        let is_late = self.last.is_some_and(|(last, _)| at.since(last) > stale_after);
        if moved || is_late {
            self.recent.clear();
            (self.own, self.unused, self.rate, self.run) = (0, 0, 0, 0);
        }
        if moved {
            self.grant = None;
        }
        self.last = Some((at, hint.info.cell));
        self.run = self.run.saturating_add(1);
        let own = parts(hint.granted, hint.cell);
        if own > 0 || hint.tbs_bits.is_some() {
            self.grant = Some((at, hint.mcs, hint.layers));
        }
        // Proportional to the whole cell's rate, so that grants for which no block size exists are not rounded down.
        let whole = hint.info.rate(self.direction, hint.mcs, hint.layers, hint.cell.into());
        let share = own as f64 / PARTS / f64::from(hint.cell);
        self.granted = Rate::from_bits_per_s_f64(whole.as_f64() * share);
        self.whole = whole;
        let rate = self.granted.bits_per_s();
        let unused = parts(hint.unused, hint.cell);
        self.keep(TimedHint { at, own, unused, rate }, hint.tti, base_rtt);
        self.work_out(at, hint);
        Some(moved)
    }

    /// Adds a hint and drops those that have left the window of the mean.
    fn keep(&mut self, kept: TimedHint, tti: Span, base_rtt: Span) {
        let span = match self.average {
            Average::Window => (tti * LEAST_TTIS).max(base_rtt / 2),
            Average::LastTti => Span::ZERO,
        };
        let full = self.recent.len() >= MOST_HINTS;
        while let Some(oldest) = self.recent.front()
            && (kept.at.since(oldest.at) >= span || full && self.recent.len() >= MOST_HINTS)
        {
            self.own -= oldest.own;
            self.unused -= oldest.unused;
            self.rate -= oldest.rate;
            self.recent.pop_front();
        }
        self.own += kept.own;
        self.unused += kept.unused;
        self.rate += kept.rate;
        self.recent.push_back(kept);
    }

    fn work_out(&mut self, at: Time, hint: &RadioHint) {
        let count = self.recent.len().max(1) as f64 * PARTS;
        let (own, unused) = (self.own as f64 / count, self.unused as f64 / count);
        // An idle device is not among the active users, but will be.
        let is_counted = self.grant.is_some_and(|(granted, ..)| at.since(granted) <= ACTIVE);
        let users = hint.active_users.max(1).saturating_add(u16::from(!is_counted && hint.active_users > 0));
        self.p_max = self.reach.p_max(hint.cell.into(), users, own, unused);
        let utilisation = if self.p_max > 0.0 { own / self.p_max } else { 1.0 };
        self.utilisation = if utilisation >= self.full { 1.0 } else { utilisation };
        self.means = self.grant.and_then(|(_, mcs, layers)| {
            let whole = hint.info.rate(self.direction, mcs, layers, hint.cell.into());
            let users = users.max(1);
            (!whole.is_zero()).then_some(Means { own, unused, cell: hint.cell.into(), users, whole })
        });
        self.capacity = self.grant.and_then(|(_, mcs, layers)| {
            let rate = |units| hint.info.rate(self.direction, mcs, layers, units);
            let reachable = rate(self.p_max);
            // Even the whole cell has no block: the MCS is invalid.
            if reachable.is_zero() && rate(hint.cell.into()).is_zero() {
                return None;
            }
            // Data that the device sends first use capacity that this connection does not get.
            Some(Rate::from_bits_per_s_f64(reachable.as_f64() * self.efficiency) - hint.ahead)
        });
    }

    /// Age of the information; `None` if there has been none.
    pub(crate) fn age(&self, now: Time) -> Option<Span> {
        self.last.map(|(at, _)| now.since(at))
    }

    /// Measurement time and cell of the last hint.
    pub(crate) const fn last(&self) -> Option<(Time, u16)> {
        self.last
    }

    /// Rate of the resources granted to the device according to the last hint.
    pub(crate) const fn granted(&self) -> Rate {
        self.granted
    }

    /// Mean rate of the resources granted to the device; `None` before the first grant.
    pub(crate) fn mean_granted(&self) -> Option<Rate> {
        self.grant?;
        Some(Rate::from_bits_per_s(self.rate / self.recent.len().max(1) as u64))
    }

    /// Rate of the whole cell according to the last hint, if it reported a grant.
    pub(crate) fn whole(&self) -> Option<Rate> {
        (!self.granted.is_zero()).then_some(self.whole)
    }

    /// C_max (3.8).
    pub(crate) const fn capacity(&self) -> Option<Rate> {
        self.capacity
    }

    /// What the window says; `None` before the first grant.
    pub(crate) const fn means(&self) -> Option<Means> {
        self.means
    }

    /// P_max (3.7) in PRBs.
    pub(crate) const fn p_max(&self) -> f64 {
        self.p_max
    }

    /// Utz (3.11), 0 to 1; 1 before anything is known.
    pub(crate) const fn utilisation(&self) -> f64 {
        self.utilisation
    }

    /// Consecutive hints, none of them late.
    pub(crate) const fn run(&self) -> u32 {
        self.run
    }

    /// Restarts the count of consecutive hints.
    pub(crate) const fn begin_run(&mut self) {
        self.run = 0;
    }
}
