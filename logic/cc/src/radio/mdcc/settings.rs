//! Options of [`super::Mdcc`] and their parsing.

use ranpace_units::{Bytes, Span};

use super::Mdcc;
use crate::classic::hystart;
use crate::classic::scalable;
use crate::entry::{Control, Entry, Transport};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "mdcc",
    about: "CUBIC by a Lightweight PEP's acknowledgements, Scalable by the receiver's; the smaller window counts",
    source: "Krämer et al., On the Benefits of Multi-Domain Congestion Control in LTE Networks (2019)",
    options: &[
        OptionInfo {
            key: "start",
            values: "open_ran, literal, coupled",
            about: "the radio's window before the first loss",
        },
        OptionInfo { key: "bound", values: "15KB to 1GB (10MB)", about: "its size with open_ran" },
        OptionInfo {
            key: "start_cap",
            values: "0 to 1000 (0: none)",
            about: "with open_ran, at most so many times what the PEP passes in an RTT",
        },
        OptionInfo { key: "a", values: "0.001 to 1 (0.1)", about: "Scalable's gain, see count" },
        OptionInfo {
            key: "count",
            values: "segments, acks",
            about: "what brings the gain: a segment ACKed, or an ACK of any size as in Linux 4.7",
        },
        OptionInfo { key: "b", values: "0.01 to 0.9 (0.125)", about: "share of it given up on loss" },
        OptionInfo {
            key: "hystart",
            values: "plusplus, classic, off",
            about: "how CUBIC's slow start ends without loss where a PEP clocks it",
        },
        OptionInfo {
            key: "growth_cap",
            values: "1 to 1000 (2)",
            about: "no window grows beyond so many times the smaller one",
        },
        OptionInfo {
            key: "silence",
            values: "1ms to 1h (200ms)",
            about: "least silence of the PEP after which CUBIC is alone",
        },
        OptionInfo {
            key: "early_retransmit",
            values: "off, on",
            about: "whether what the PEP missed is sent again on its word (TCP)",
        },
        OptionInfo { key: "pep", values: "on, off", about: "whether the PEP is listened to" },
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::Other(Box::new(Mdcc::new(read_settings(options)?))))
}

/// Reads the settings from the options.
///
/// # Errors
///
/// An option with a value that it cannot have.
pub fn read_settings(options: &mut Options) -> Result<Settings, OptionError> {
    let starts = [("open_ran", Start::OpenRan), ("literal", Start::Literal), ("coupled", Start::Coupled)];
    let kinds = [
        ("plusplus", hystart::Kind::PlusPlus),
        ("classic", hystart::Kind::Classic),
        ("off", hystart::Kind::Off),
    ];
    Ok(Settings {
        start: options.choice("start", &starts)?,
        bound: within(options.bytes("bound", BOUND)?, LEAST_BOUND..=MOST_BOUND, "bound")?,
        start_cap: options.number("start_cap", 0.0, 1_000.0, 0.0)?,
        a: options.number("a", 0.001, 1.0, INCREASE)?,
        count: options.choice("count", &[("segments", Count::Segments), ("acks", Count::Acks)])?,
        b: options.number("b", 0.01, 0.9, scalable::DECREASE)?,
        hystart: options.choice("hystart", &kinds)?,
        growth_cap: options.number("growth_cap", 1.0, 1_000.0, GROWTH_CAP)?,
        silence: within(options.span("silence", SILENCE)?, LEAST_SILENCE..=MOST_SILENCE, "silence")?,
        early_retransmit: options.flag("early_retransmit", false)?,
        listens: options.flag("pep", true)?,
    })
}

fn within<T: PartialOrd + core::fmt::Display>(
    value: T,
    range: core::ops::RangeInclusive<T>,
    key: &'static str,
) -> Result<T, OptionError> {
    if range.contains(&value) {
        return Ok(value);
    }
    let expected = format!("{} to {}", range.start(), range.end());
    Err(OptionError { key, expected, found: value.to_string() })
}

/// `a` of the radio's window (section III).
const INCREASE: f64 = 0.1;
/// The radio's window before its first loss. Ours.
const BOUND: Bytes = Bytes::new(10_000_000);
const LEAST_BOUND: Bytes = Bytes::new(15_000);
const MOST_BOUND: Bytes = Bytes::new(1_000_000_000);
/// No window grows beyond this many times the smaller one. Ours.
const GROWTH_CAP: f64 = 2.0;
/// Silence of the PEP, while the receiver is heard, after which CUBIC runs alone. Ours.
const SILENCE: Span = Span::from_millis(200);
const LEAST_SILENCE: Span = Span::from_millis(1);
const MOST_SILENCE: Span = Span::from_secs(3_600);

/// User-configurable parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Initial behaviour of the radio's window.
    pub start: Start,
    /// Size of the radio's window with [`Start::OpenRan`].
    pub bound: Bytes,
    /// If nonzero, bounds that window to this many times what the PEP passes in an RTT.
    pub start_cap: f64,
    /// Gain of the radio's window.
    pub a: f64,
    /// The unit by which the gain is counted.
    pub count: Count,
    /// Fraction by which a loss reduces the radio's window.
    pub b: f64,
    /// How CUBIC's slow start ends without loss.
    pub hystart: hystart::Kind,
    /// No window grows beyond this many times the smaller one.
    pub growth_cap: f64,
    /// Least silence after which CUBIC runs alone.
    pub silence: Span,
    /// Whether packets that the PEP missed are retransmitted on its word.
    pub early_retransmit: bool,
    /// Whether the PEP's reports are used.
    pub listens: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            start: Start::OpenRan,
            bound: BOUND,
            start_cap: 0.0,
            a: INCREASE,
            count: Count::Segments,
            b: scalable::DECREASE,
            hystart: hystart::Kind::PlusPlus,
            growth_cap: GROWTH_CAP,
            silence: SILENCE,
            early_retransmit: false,
            listens: true,
        }
    }
}

/// Unit that Scalable's gain counts in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Acknowledged segments: `a` per segment, whatever the receiver's ACK policy (the specification's `W_r += a n`).
    Segments,
    /// Acknowledgements (section III: "after each received ACK"; Linux 4.7, which the authors ran).
    Acks,
}

/// Initial behaviour of the radio's window. The paper does not say, and its Fig. 6 needs a window that does not bind at
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The window is [`Settings::bound`] until the first loss.
    OpenRan,
    /// The window begins at the initial window, in slow start clocked by the receiver's acknowledgements.
    Literal,
    /// Until the first congestion, any acknowledgement of either kind grows both windows.
    Coupled,
}
