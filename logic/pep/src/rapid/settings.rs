//! The settings for experimenters and operators.

use ranpace_rnis::{CellInfo, Technology};
use ranpace_units::{Bytes, Span};

/// Most reports that are averaged.
pub(super) const MOST_REPORTS: usize = 16;

/// All settings. Start from [`Settings::THESIS`] or [`Settings::FIELD`] and change individual fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How a flow that asks for less than its share is treated.
    pub profile: Profile,
    /// Estimate of the capacity that a user can expect of the cell.
    pub estimator: Estimator,
    /// How the share that a slow flow releases to others is measured.
    pub accounting: Accounting,
    /// Part of the estimated rate that is shared out, above 0 to 1: what remains after HARQ and layer 2 in a real cell.
    pub efficiency: f64,
    /// A flow below this part of the expected rate is slow (Diarra 2022, 5.2.3: 0.8).
    pub theta: f64,
    /// Weight of the previous mean in the mean arrival rate (Diarra 2022, equation 5.9: 1/8; the authors' code: 0.4).
    pub alpha: f64,
    /// The RTT that sets the window on the server's side, and the window on the user's side.
    pub window: WindowRule,
    /// Bound on a flow's bytes in flight from the server plus its backlog, as a multiple of its allocated window, with `spare`
    /// segments on top. Ours: servers send whole segments in bursts, and their data arrive an RTT after the capacity that they were
    /// meant for; without a reserve the radio now and then has nothing to send.
    pub headroom: f64,
    /// Segments on top of `headroom`.
    pub spare: u32,
    /// Time constant with which that bound follows a falling window; it follows a growing window at once. Ours: during fading a
    /// short dip must not stop a server whose data arrive after the dip.
    pub follow: Span,
    /// The part of its window that a server keeps until the backlog exceeds its limit by a window; see [`Settings::ticking`].
    pub least_open: f64,
    /// The least window on the server's side, in segments. Ours.
    pub floor: u32,
    /// Shorter RTTs to a server count as this long; see [`Settings::ticking`].
    pub wan_rtt_least: Span,
    /// Whether the measured rate of traffic that bypasses the proxy (UDP and QUIC) is subtracted from a user's capacity, up to half
    /// of it. Ours.
    pub account_udp: bool,
    /// How late packets may arrive at the end of a period.
    pub slack: Slack,
    /// Reports are averaged over this many TTIs. 1 uses each report as it is: those of this workspace's feed are already means over
    /// the reporting period of at least 8 TTIs. Reports of single TTIs would make `C` jump between zero and the whole cell.
    pub average: u8,
    /// Reporting interval. When the newest report is older than three of these, and than 100 ms, categorisation stops.
    pub period: Span,
    /// The capacity that is shared out while reports are late, but not lost.
    pub hold: LateCapacity,
    /// Whether the proxy occasionally probes above the reported rate, and passes a user through if that contradicts its reports.
    /// Ours.
    pub guard: bool,
    /// Definition of the smallest RTT between proxy and user.
    pub ran_rttmin: RanRttMin,
    /// Added to that RTT: two scheduling request periods.
    pub sr_allowance: RttMargin,
    /// The least window on the user's side, in segments.
    pub ran_floor: u32,
    /// Limits of the backlog in the proxy.
    pub caps: Caps,
}

/// Limits of the backlog in the proxy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caps {
    /// Per flow, unless its BDP term is larger.
    pub flow: Bytes,
    /// Per flow: this multiple of its BDP (the larger one of both sides). A window never exceeds what remains of it, so that if the
    /// user's side carries slightly less than the allocation, the backlog settles at about this multiple less one.
    pub bdps: f64,
    /// Per user: at this backlog all of its windows are closed.
    pub user: Bytes,
    /// In total: above it new flows are not admitted.
    pub total: Bytes,
    /// Number of flows; above it new ones are not admitted.
    pub flows: u32,
}

/// How a flow that asks for less than its share is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// As published: a slow flow's window equals its demand, and the flow is fast again as soon as it fills that window.
    Thesis,
    /// Ours: a slow flow gets 1.5 times its demand, becomes fast after filling that for two periods, and its window then doubles
    /// each period up to its share. A flow of constant rate stays slow, unless its rate is below four segments per RTT. The
    /// judgement allows for whole segments and delayed acknowledgements, and a flow is not called slow because the proxy closed its
    /// window.
    Field,
}

/// Estimate of the capacity that a user can expect of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Its own grants plus the unused PRBs; Diarra 2022, equation 5.2.
    AllocPlusUnused,
    /// An equal part of the cell plus the unused PRBs, at most the cell; Diarra 2022, equation 3.7 (proposed in 6.2).
    FairShare,
    /// The larger of the two. Ours: the first never finds a user's part of a busy cell, the second ignores what others leave to it.
    Larger,
}

/// How the share that a slow flow releases to others is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// As a rate, against the current share.
    Rate,
    /// In bytes, against the current share. For study: with unequal RTTs the rates do not add up to C.
    ShareBytes,
    /// In bytes, against the previous window: Diarra 2022, equations 5.11 to 5.13 as printed. For study: earlier releases are
    /// forgotten.
    Literal,
}

/// How late packets may arrive at the end of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slack {
    /// A fixed time.
    Fixed(Span),
    /// Half of the smoothed RTT to the server, as in the authors' LTE setup.
    HalfRtt,
}

/// Definition of the smallest RTT between proxy and user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanRttMin {
    /// Moves by an eighth towards the smallest smoothed RTT of each period (Diarra 2022, 5.4.3; formula from the authors' code).
    Smoothed,
    /// The same, but at most 1.5 times the smallest RTT ever measured. Ours: the published minimum follows a queue that persists
    /// for whole periods, and lets it grow.
    Bounded,
    /// The smallest RTT ever measured.
    Plain,
}

/// The RTT that sets the window on the server's side, and the window on the user's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// The text (Diarra 2022, 5.2.3): the smallest RTT to the server; on the user's side, the same rate times the smallest RTT to
    /// the user.
    Wired,
    /// The authors' ns-3 code: the sum of both RTTs, at least 1 ms to the user and 2 ms to the server; the user's side has the same
    /// window. The window is recomputed only when data arrive from the server, so that a flow whose server has sent everything
    /// keeps it until the backlog is gone. The window field counts in units of 16 KiB: the server gets whole multiples, rounded
    /// down, at least one.
    Whole,
    /// The authors' Linux module, which shifts where the text divides: each of N flows gets 1/1, 1/2, 1/4 (of 3 to 7), 1/8 ... of
    /// `C`; the user's side gets `RW 2^(1 + floor(log2 RTTmin_RAN) - floor(log2 RTTmin_WAN))` (times in microseconds, including the
    /// margin on RTTmin_RAN), counted in segments of 1024 B. Ours: `floor` bounds the server's window; the module uses 2000 B,
    /// which lacks the second full segment that triggers an acknowledgement.
    Module,
}

/// Margin added to the smallest RTT towards the user. An acknowledgement waits for the device's next scheduling request, but the
/// smallest RTT is that of one that did not wait (Diarra 2022, 5.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttMargin {
    /// A fixed time.
    Fixed(Span),
    /// Two scheduling request periods of the user's technology.
    Technology,
}

impl RttMargin {
    /// Slots of two scheduling request periods: 16 of 1 ms on LTE, as in the authors' LTE setup; as many of its slots on NR (ours);
    /// on the experiments' millimetre waves every slot has a request (Diarra 2022, Table 3.1).
    const fn slots(technology: Technology) -> u64 {
        match technology {
            Technology::Lte | Technology::Nr { .. } => 16,
            Technology::Mmwave => 2,
        }
    }

    /// The margin for a cell; zero while the cell is not known.
    pub(super) fn of(self, cell: Option<&CellInfo>) -> Span {
        match self {
            Self::Fixed(allowance) => allowance,
            Self::Technology => cell.map_or(Span::ZERO, |cell| cell.slot * Self::slots(cell.technology)),
        }
    }
}

/// The capacity that is shared out while reports are late, but not lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateCapacity {
    /// The least capacity of the last second (section 11 of the specification).
    Least,
    /// The mean of the capacities reported in the last second. Ours: in a fading cell the least is far below the mean.
    Mean,
}

impl Settings {
    /// As published (Diarra 2022, chapter 5); what the text leaves open is decided as the head of [`rapid`](crate::rapid) says.
    pub const THESIS: Self = Self {
        profile: Profile::Thesis,
        estimator: Estimator::AllocPlusUnused,
        accounting: Accounting::Rate,
        efficiency: 1.0,
        theta: 0.8,
        alpha: 1.0 / 8.0,
        window: WindowRule::Wired,
        headroom: 1.0,
        spare: 0,
        follow: Span::ZERO,
        least_open: 0.0,
        floor: 2,
        wan_rtt_least: Span::ZERO,
        account_udp: false,
        slack: Slack::Fixed(Span::from_micros(1_500)),
        average: 1,
        period: Span::from_millis(8),
        hold: LateCapacity::Least,
        guard: false,
        ran_rttmin: RanRttMin::Smoothed,
        sr_allowance: RttMargin::Fixed(Span::ZERO),
        ran_floor: 10,
        caps: Caps {
            flow: Bytes::new(64 << 10),
            bdps: 2.0,
            user: Bytes::new(4 << 20),
            total: Bytes::new(1 << 30),
            flows: 1 << 20,
        },
    };

    /// The default, for deployment: flows of constant rate stay slow, a newcomer finds its part of a busy cell, an overestimate
    /// costs at most half a BDP of queue on the user's side, a feed that under-reports is detected, and the backlog stays small.
    pub const FIELD: Self = Self {
        profile: Profile::Field,
        estimator: Estimator::Larger,
        hold: LateCapacity::Mean,
        guard: true,
        headroom: 1.25,
        spare: 2,
        follow: Span::from_millis(200),
        ran_rttmin: RanRttMin::Bounded,
        sr_allowance: RttMargin::Technology,
        caps: Caps { flow: Bytes::new(16 << 10), bdps: 1.25, ..Self::THESIS.caps },
        ..Self::THESIS
    };

    /// The settings of a profile.
    pub const fn of(profile: Profile) -> Self {
        match profile {
            Profile::Thesis => Self::THESIS,
            Profile::Field => Self::FIELD,
        }
    }

    /// These settings for a carrier that reads its counters and applies windows to a kernel's sockets once in a `tick`, rather than at
    /// each packet.
    ///
    /// RTTs to servers then count as at least ten ticks. Ours: the window of a shorter one would be below `floor` segments, whose
    /// rate is above the user's share, and the samples of a round would be a few ticks' worth of bursts. A server that is nearer
    /// sends its window earlier than it is meant to; that waits in the proxy, where it counts against the next window.
    ///
    /// A backlog closes windows only in part until it exceeds its limit by a window. Ours: a kernel closes a window at once, but opens it
    /// again as data arrive, by at most two bytes for each (Linux: `rcv_ssthresh`). From nothing that takes some six RTTs, in which the
    /// radio has nothing to send; from a fourth, the next RTT opens it, and the backlog lasts longer than that.
    pub fn ticking(self, tick: Span) -> Self {
        const TICKS: u64 = 10;
        const LEAST_OPEN: f64 = 1.0 / 4.0;
        Self { wan_rtt_least: tick * TICKS, least_open: LEAST_OPEN, ..self }
    }

    /// Rejects invalid settings: names the setting and what was expected.
    pub fn check(&self) -> Result<(), WrongSetting> {
        let wrong = |name, expected| Err(WrongSetting { name, expected });
        if !(self.efficiency > 0.0 && self.efficiency <= 1.0) {
            return wrong("efficiency", "a number above 0 to 1");
        }
        if !(self.theta > 0.0 && self.theta <= 1.0) {
            return wrong("theta", "a number above 0 to 1");
        }
        if !(self.alpha >= 0.0 && self.alpha < 1.0) {
            return wrong("alpha", "a number from 0 to below 1");
        }
        if !(self.headroom >= 1.0 && self.headroom <= 100.0) {
            return wrong("headroom", "a number from 1 to 100");
        }
        if !(self.least_open >= 0.0 && self.least_open <= 1.0) {
            return wrong("least_open", "a number from 0 to 1");
        }
        if self.floor == 0 || self.ran_floor == 0 {
            return wrong("floor", "at least one segment");
        }
        if !(1..=MOST_REPORTS as u8).contains(&self.average) {
            return wrong("average", "1 to 16 TTIs");
        }
        if !(self.caps.bdps > 1.0 && self.caps.bdps <= 100.0) {
            return wrong("caps.bdps", "a number above 1 to 100");
        }
        if self.period.is_zero() {
            return wrong("period", "a time above zero");
        }
        Ok(())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::FIELD
    }
}

/// A setting out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongSetting {
    /// Its name.
    pub name: &'static str,
    /// The form expected.
    pub expected: &'static str,
}

impl core::fmt::Display for WrongSetting {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: expected {}", self.name, self.expected)
    }
}

impl core::error::Error for WrongSetting {}
