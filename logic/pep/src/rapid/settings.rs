//! The settings for experimenters and operators.

use ranpace_rnis::{CellInfo, Technology};
use ranpace_units::{Bytes, Span};

/// Reports that are averaged at most.
pub(super) const MOST_REPORTS: usize = 16;

/// Everything that may be set. Start from [`Settings::THESIS`] or [`Settings::FIELD`] and change what is to be other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How a flow that asks for less than its share is treated.
    pub profile: Profile,
    /// What a user can expect of the cell.
    pub estimator: Estimator,
    /// What is counted when a slow flow leaves a part of its share to others.
    pub accounting: Accounting,
    /// Share of the estimated rate that is given out, above 0 to 1: what HARQ and layer 2 leave of a real cell.
    pub efficiency: f64,
    /// Share of the expected rate under which a flow is slow (Diarra 2022, 5.2.3: 0.8).
    pub theta: f64,
    /// Weight of what was known in the mean of arrival rates (Diarra 2022, equation 5.9: 1/8; the authors' code: 0.4).
    pub alpha: f64,
    /// Which RTT a window on the server's side is for, and what the window on the user's side is.
    pub window: WindowRule,
    /// What a server may have on its way and waiting in the proxy together, over the window of its flow's allocation, and segments
    /// on top. Ours: servers send whole segments, in bursts, and what a server sends comes an RTT after the capacity that it
    /// was meant for; without something in hand the radio has nothing to send now and then.
    pub headroom: f64,
    /// Segments on top of that.
    pub spare: u32,
    /// Time over which that follows a window that falls; a window that grows counts at once. Ours: in fading a short dip must not
    /// stop a server whose data come when the dip is over.
    pub follow: Span,
    /// The least window on the server's side, in segments. Ours.
    pub floor: u32,
    /// Whether the measured rate of what passes by the proxy (UDP and QUIC) is taken off what a user's flows are given, at most
    /// half of that. Ours.
    pub account_udp: bool,
    /// What packets may come late by at the end of a period.
    pub slack: Slack,
    /// Reports are averaged over so many TTIs. 1 takes each as it comes: those of this workspace's feed are means over the
    /// reporting period and at least 8 TTIs already. Single values would make `C` jump between nothing and all of the cell.
    pub average: u8,
    /// How often reports come. Older ones than three of these, at least 100 ms, stop the categorisation.
    pub period: Span,
    /// What is given out while reports are late, but not lost.
    pub hold: LateCapacity,
    /// Whether now and then more is tried than was reported, and a user whose reports are contradicted by that is passed through. Ours.
    pub guard: bool,
    /// What the smallest RTT between proxy and user is.
    pub ran_rttmin: RanRttMin,
    /// Added to that: two periods of scheduling requests.
    pub sr_allowance: RttMargin,
    /// The least window on the user's side, in segments.
    pub ran_floor: u32,
    /// Whether an advertised window may take back what was advertised before; see [`RightEdge`](crate::RightEdge).
    pub shrink: bool,
    /// What may wait in the proxy, at most.
    pub caps: Caps,
}

/// What may wait in the proxy, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caps {
    /// Of a flow, unless its BDP is more.
    pub flow: Bytes,
    /// Its BDP, the larger one of both sides, times this. A window is never more than what is left of that, so that where the
    /// user's side carries a little less than its allocation about the BDP times this, less one, waits.
    pub bdps: f64,
    /// Of a user: above it none of its windows is open.
    pub user: Bytes,
    /// Of all: above it new flows are not admitted.
    pub total: Bytes,
    /// Flows; above it new ones are not admitted.
    pub flows: u32,
}

/// How a flow that asks for less than its share is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// As published: a slow flow's window is its demand, and it is fast again as soon as it fills that.
    Thesis,
    /// Ours: a slow flow has half as much again as its demand, is fast after two periods of filling that, and its window then
    /// doubles with every period up to its share. A flow of constant rate stays slow, unless it is of less than four segments an RTT.
    /// Judged is what whole segments and delayed acknowledgements let through, and nobody is slow because the proxy kept its
    /// window shut.
    Field,
}

/// What a user can expect of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// What it has and what nobody uses; Diarra 2022, equation 5.2.
    AllocPlusUnused,
    /// An equal part of the cell and what nobody uses, at most the cell; Diarra 2022, equation 3.7 (proposed in 6.2).
    FairShare,
    /// The larger of the two. Ours: the first never finds its part of a busy cell, the second gives away what others leave.
    Larger,
}

/// What is counted when a slow flow leaves a part of its share to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// A rate, against the current share.
    Rate,
    /// Bytes, against the current share. For study: with unequal RTTs the rates do not sum up.
    ShareBytes,
    /// Bytes, against the window before: Diarra 2022, equations 5.11 to 5.13 as printed. For study: what was released earlier is
    /// forgotten.
    Literal,
}

/// What packets may come late by at the end of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slack {
    /// A time.
    Fixed(Span),
    /// Half of the smoothed RTT to the server, as the authors have it on LTE.
    HalfRtt,
}

/// What the smallest RTT between proxy and user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanRttMin {
    /// Follows the smallest smoothed RTT of each period by an eighth (Diarra 2022, 5.4.3; the formula is that of the authors'
    /// code).
    Smoothed,
    /// The same, but at most 1.5 times the smallest that was ever measured. Ours: the published one follows a queue that stands for
    /// whole periods, and lets it grow.
    Bounded,
    /// The smallest that was ever measured.
    Plain,
}

/// Which RTT a window on the server's side is for, and what the window on the user's side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// The text (Diarra 2022, 5.2.3): the smallest RTT to the server; on the user's side the same rate for the smallest RTT to
    /// the user.
    Wired,
    /// The authors' ns-3 code: both RTTs together, in whole milliseconds at least one to the user and two to the server; on the user's
    /// side it is the same window. It is worked out only when data come from the server, so that a flow whose server has sent
    /// all keeps it until what waits has left. Its window field counts in 16 KiB: the server is told whole multiples, rounded down,
    /// one at least.
    Whole,
    /// The authors' Linux module, which has shifts where the text divides: N flows have 1/1, 1/2, 1/4 (of 3 to 7), 1/8 ... of `C`
    /// each; the user's side has `RW 2^(1 + floor(log2 RTTmin_RAN) - floor(log2 RTTmin_WAN))` (times in microseconds, what is
    /// added to the first included), counted in segments by 1024 B each. Ours: `floor` bounds the server's window, where the module
    /// has 2000 B, of which the second segment is missing that an acknowledgement waits for.
    Module,
}

/// What is added to the smallest RTT towards the user. An acknowledgement waits for the device's next scheduling request, but the
/// smallest RTT is that of one that did not wait (Diarra 2022, 5.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttMargin {
    /// A time.
    Fixed(Span),
    /// Two periods of scheduling requests of the user's technology.
    Technology,
}

impl RttMargin {
    /// Slots of two periods of scheduling requests: of LTE 16 of 1 ms, as the authors have it on LTE; of NR as many of its slots (ours);
    /// on the experiments' millimetre waves there is one in each slot (Diarra 2022, Table 3.1).
    const fn slots(technology: Technology) -> u64 {
        match technology {
            Technology::Lte | Technology::Nr { .. } => 16,
            Technology::Mmwave => 2,
        }
    }

    /// The time for a cell; nothing while it is not known.
    pub(super) fn of(self, cell: Option<&CellInfo>) -> Span {
        match self {
            Self::Fixed(allowance) => allowance,
            Self::Technology => cell.map_or(Span::ZERO, |cell| cell.slot * Self::slots(cell.technology)),
        }
    }
}

/// What is given out while reports are late, but not lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateCapacity {
    /// The least capacity of the last second (the specification's, its section 11).
    Least,
    /// The mean of what was reported of the last second. Ours: the least is far below it in a cell that fades.
    Mean,
}

impl Settings {
    /// As published (Diarra 2022, chapter 5), with what the text leaves open as the head of [`rapid`](crate::rapid) says.
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
        floor: 2,
        account_udp: false,
        slack: Slack::Fixed(Span::from_micros(1_500)),
        average: 1,
        period: Span::from_millis(8),
        hold: LateCapacity::Least,
        guard: false,
        ran_rttmin: RanRttMin::Smoothed,
        sr_allowance: RttMargin::Fixed(Span::ZERO),
        ran_floor: 10,
        shrink: false,
        caps: Caps {
            flow: Bytes::new(64 << 10),
            bdps: 2.0,
            user: Bytes::new(4 << 20),
            total: Bytes::new(1 << 30),
            flows: 1 << 20,
        },
    };

    /// For use, and the default: flows of constant rate stay slow, a newcomer finds its part of a busy cell, an estimate that is too
    /// high costs no more than half a BDP on the user's side, a feed that lies low is found out, and little waits in the proxy.
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

    /// What cannot be: the name of the setting and what was expected of it.
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

/// A setting that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongSetting {
    /// Its name.
    pub name: &'static str,
    /// What was expected.
    pub expected: &'static str,
}

impl core::fmt::Display for WrongSetting {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: expected {}", self.name, self.expected)
    }
}

impl core::error::Error for WrongSetting {}
