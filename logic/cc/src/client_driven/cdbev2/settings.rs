//! CDBEv2's options and their parsing.

use core::num::NonZeroU32;

use ranpace_units::Span;

use super::client::TW;
use super::filter::Compensation;
use super::machine::DrainDepth;
use crate::client_driven::bw_report::Format;
use crate::client_driven::guard::GUARD;
use crate::options::{OptionError, OptionInfo, Options};

/// The options in `ranpace list cc`.
pub(super) const OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        key: "dd",
        values: "dual, single or off [dual]",
        about: "deep DRAINs, two with a pause or one, after 2.5 s without a minimal RTT",
    },
    OptionInfo {
        key: "ndd",
        values: "a whole number from 1 [5]",
        about: "GROWs without a minimal RTT after which a deep DRAIN is due",
    },
    OptionInfo { key: "fqm", values: "on or off [on]", about: "five minimal RTTs end a deep DRAIN" },
    OptionInfo {
        key: "gc",
        values: "bif, bdp or off [bif]",
        about: "least growth in GROW: above what is in flight, above the BDP, or none",
    },
    OptionInfo {
        key: "drain-ref",
        values: "robust, live, pre, filt or past [robust]",
        about: "bandwidth of DRAIN's target: live or pre as there is a queue; largest report since its beginning, filtered one before GROW, filtered one, largest of the past cycle",
    },
    OptionInfo {
        key: "recovery",
        values: "running, assigned or last [running]",
        about: "bandwidth in loss recovery: largest report of the cycle, the same assigned to the filter (Algorithm 7.1 as printed), or that of the last cycle",
    },
    OptionInfo {
        key: "thres1",
        values: "dsdl or rtt [dsdl]",
        about: "delay that ends STARTUP: twice the smallest one-way delay, or RTT",
    },
    OptionInfo {
        key: "dsdl",
        values: "pinned or true [pinned]",
        about: "smallest one-way delay: half of the smallest RTT, or as the timestamps say (clocks that agree)",
    },
    OptionInfo { key: "k", values: "0.5 to 8 [1]", about: "smallest RTTs that the filter takes for 90 %" },
    OptionInfo { key: "tw", values: "1ms to 1s [10ms]", about: "time that a measurement takes" },
    OptionInfo {
        key: "est",
        values: "boundary or literal [boundary]",
        about: "whether the packet that opens a window counts in it",
    },
    OptionInfo {
        key: "report",
        values: "thesis-v2, exp, v1 or bare [thesis-v2]",
        about: "how a report is written",
    },
    OptionInfo {
        key: "report-every",
        values: "a whole number from 1 [1]",
        about: "measurements for a report",
    },
    GUARD,
];

/// GROWs without a minimal RTT after which a deep DRAIN is due (section 7.2.3).
const DEEP_AFTER: u32 = 5;
/// Reference of DRAIN's target. The thesis says "the maximum real-time BDP level for the past cycle" (Eq. 7.23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainReference {
    /// The largest report since DRAIN began, and the filtered bandwidth at its beginning. Keeps part of what a probe gained
    /// in a queue shared with others, but copes with an RTT that jitter keeps above its minimum.
    Live,
    /// The filtered bandwidth from before the probe: a probe gains nothing in a shared queue, nor under jitter.
    Pre,
    /// The current filtered bandwidth.
    Filtered,
    /// The largest report of the ending cycle.
    Past,
    /// As `Live` while there is no queue, as `Pre` while there is one: see [`floor`](super::floor). Ours.
    Robust,
}

/// The bandwidth in use during loss recovery. Section 7.2.2: "the BW_max in last Cycle also takes effect"; Algorithm 7.1
/// assigns BW_max, which is reset at the beginning of each cycle, to BW(t).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The larger of the running cycle's largest report and the filtered one; the filter continues.
    Running,
    /// Algorithm 7.1 as printed: each report sets the filter to the largest one of the running cycle.
    Assigned,
    /// The larger of the previous cycle's largest report and the filtered one; the filter continues.
    Last,
}

/// Source of the smallest one-way delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneWay {
    /// Half of the smallest RTT: timestamps of two clocks only yield differences.
    Pinned,
    /// The timestamps.
    True,
}

/// The options of the sender.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of deep DRAINs in a row.
    pub deep: DrainDepth,
    /// GROWs without a minimal RTT after which a deep DRAIN is due.
    pub deep_after: u32,
    /// Whether five minimal RTTs end a deep DRAIN.
    pub fair_quit: bool,
    /// Base to which growth compensation is added.
    pub compensation: Compensation,
    /// Reference of DRAIN's target.
    pub reference: DrainReference,
    /// The bandwidth in use during loss recovery.
    pub recovery: Recovery,
    /// Whether Thres1 is twice the smallest RTT instead of the smallest one-way delay.
    pub thres1_rtt: bool,
    /// Source of the smallest one-way delay.
    pub one_way: OneWay,
    /// Time for the filter to reach 90 %, in smallest RTTs.
    pub k: f64,
    /// Time between reports.
    pub interval: Span,
    /// Format of the reports.
    pub format: Format,
}

impl Settings {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Fails if an option has an invalid value.
    pub fn parse(options: &mut Options) -> Result<Self, OptionError> {
        Ok(Self {
            deep: options.choice(
                "dd",
                &[("dual", DrainDepth::Dual), ("single", DrainDepth::Single), ("off", DrainDepth::Off)],
            )?,
            deep_after: whole(options, "ndd", DEEP_AFTER)?,
            fair_quit: options.flag("fqm", true)?,
            compensation: options.choice(
                "gc",
                &[("bif", Compensation::InFlight), ("bdp", Compensation::Bdp), ("off", Compensation::Off)],
            )?,
            reference: options.choice(
                "drain-ref",
                &[
                    ("robust", DrainReference::Robust),
                    ("live", DrainReference::Live),
                    ("pre", DrainReference::Pre),
                    ("filt", DrainReference::Filtered),
                    ("past", DrainReference::Past),
                ],
            )?,
            recovery: options.choice(
                "recovery",
                &[("running", Recovery::Running), ("assigned", Recovery::Assigned), ("last", Recovery::Last)],
            )?,
            thres1_rtt: options.choice("thres1", &[("dsdl", false), ("rtt", true)])?,
            one_way: options.choice("dsdl", &[("pinned", OneWay::Pinned), ("true", OneWay::True)])?,
            k: options.number("k", 0.5, 8.0, 1.0)?,
            interval: window(options)? * u64::from(every(options)?),
            format: format(options)?,
        })
    }
}

pub(super) fn format(options: &mut Options) -> Result<Format, OptionError> {
    options.value("report", Format::NAMES, Format::ThesisV2)
}

fn whole(options: &mut Options, key: &'static str, default: u32) -> Result<u32, OptionError> {
    let default = NonZeroU32::new(default).unwrap_or(NonZeroU32::MIN);
    Ok(options.value(key, "a whole number from 1", default)?.get())
}

pub(super) fn every(options: &mut Options) -> Result<u32, OptionError> {
    whole(options, "report-every", 1)
}

pub(super) fn window(options: &mut Options) -> Result<Span, OptionError> {
    let tw = options.span("tw", TW)?;
    if tw >= Span::from_millis(1) && tw <= Span::SECOND {
        return Ok(tw);
    }
    Err(OptionError { key: "tw", expected: "a time from 1ms to 1s".to_owned(), found: tw.to_string() })
}
