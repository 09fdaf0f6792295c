//! Amounts in bits, and what the models accept of their options.

use core::fmt;
use core::str::FromStr;

use ranpace_lab::cell_view::ViewError;
use ranpace_units::{Bytes, Rate, Span};

/// An amount of data in bits, the thesis's unit of queues and buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits(u64);

/// A text that is not an amount of data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an amount such as \"1Mb\" (b, kb, Mb, Gb are bits) or \"125KB\" (bytes), found {0:?}")]
pub struct BitsError(String);

impl Bits {
    /// An amount of `bits` bits.
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }
    /// The number of bits.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The number of bits as a float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl FromStr for Bits {
    type Err = BitsError;

    /// Parses "1Mb", "300 kbit", "0.2Mb" as bits, and "125KB", "6MB" as bytes.
    fn from_str(text: &str) -> Result<Self, BitsError> {
        let wrong = || BitsError(text.to_owned());
        let trimmed = text.trim();
        let unit_at = trimmed.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
        let (number, unit) = trimmed.split_at(unit_at);
        let per_second = match unit {
            "b" | "bit" => "bit/s",
            "kb" | "kbit" => "kbit/s",
            "Mb" | "Mbit" => "Mbit/s",
            "Gb" | "Gbit" => "Gbit/s",
            _ => {
                let bytes: Bytes = trimmed.parse().map_err(|_| wrong())?;
                return bytes.get().checked_mul(8).map(Self).ok_or_else(wrong);
            }
        };
        // Exact, because rates are.
        let rate: Rate = format!("{number}{per_second}").parse().map_err(|_| wrong())?;
        Ok(Self(rate.bits_per_s()))
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Rate::from_bits_per_s(self.0).to_string().replace("bit/s", "b"))
    }
}

/// Most rows of a table, and points of a curve; ours, more than a page can show.
pub(crate) const MOST_ROWS: u64 = 10_000;
/// Most curves of a plot; ours, as many as can be told apart.
pub(crate) const MOST_CURVES: usize = 12;

/// From the first to the last value; the last one is included only if the step divides the range.
pub(crate) fn points(
    from: u64,
    to: u64,
    step: u64,
    shown: impl Fn(u64) -> String,
) -> Result<Vec<u64>, ViewError> {
    if to < from {
        return Err(ViewError::value("--to", format!("--from ({}) or more", shown(from)), shown(to)));
    }
    if step == 0 {
        return Err(ViewError::value("--step", "more than zero", shown(step)));
    }
    let last = (to - from) / step;
    if last >= MOST_ROWS {
        let found = format!("{}, which gives {}", shown(step), last.saturating_add(1));
        return Err(ViewError::value("--step", format!("a step that gives at most {MOST_ROWS} rows"), found));
    }
    Ok((0..=last).map(|index| from + index * step).collect())
}

/// Returns whether the value of this option is in its valid range.
pub(crate) fn within(
    what: &'static str,
    inside: bool,
    expected: &str,
    found: impl fmt::Display,
) -> Result<(), ViewError> {
    if inside { Ok(()) } else { Err(ViewError::value(what, expected, found.to_string())) }
}

/// Smallest and largest gain of STARTUP. Ours: at 1.01, twelve hundred rounds lead from 1 Mbit/s to 100 Gbit/s.
const GAINS: core::ops::RangeInclusive<f64> = 1.01..=100.0;
/// Smallest and largest rate. Ours: from below any cell to above any link.
const RATES: core::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Smallest and largest RTT in nanoseconds: 1 us to 100 s. Ours.
const RTTS: core::ops::RangeInclusive<u64> = 1_000..=100_000_000_000;

pub(crate) fn check_gain(gain: f64) -> Result<(), ViewError> {
    within("--gain", GAINS.contains(&gain), "1.01 to 100", gain)
}

pub(crate) fn check_rate(what: &'static str, rate: Rate) -> Result<(), ViewError> {
    within(what, RATES.contains(&rate.bits_per_s()), "1kbit/s to 1000Gbit/s", rate)
}

pub(crate) fn check_rtt(what: &'static str, rtt: Span) -> Result<(), ViewError> {
    within(what, RTTS.contains(&rtt.as_nanos()), "1us to 100s", rtt)
}

/// Megabits of bits; megabits per second of bits per second.
pub(crate) fn mega(value: f64) -> f64 {
    value / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_bits_or_bytes_by_the_case_of_their_letter() {
        for (text, bits, printed) in [
            ("1Mb", 1_000_000, "1Mb"),
            ("0.2Mb", 200_000, "200kb"),
            ("300 kbit", 300_000, "300kb"),
            ("6MB", 48_000_000, "48Mb"),
            ("125KB", 1_000_000, "1Mb"),
            ("7b", 7, "7b"),
            ("1.5Gb", 1_500_000_000, "1.5Gb"),
        ] {
            let amount: Bits = text.parse().unwrap();
            assert_eq!((amount, amount.to_string().as_str()), (Bits::new(bits), printed), "{text}");
        }
        for text in ["", "1", "Mb", "-1Mb", "1mb", "1Mbit/s", "0.5b", "99999999999Gb", "9999999999GB"] {
            let error = text.parse::<Bits>().unwrap_err().to_string();
            assert!(
                error.starts_with("expected an amount") && error.contains(&format!("{text:?}")),
                "{error}"
            );
        }
    }

    #[test]
    fn points_begin_at_the_first_and_never_pass_the_last() {
        let of = |from, to, step| points(from, to, step, |value| value.to_string());
        assert_eq!(of(1, 10, 3).unwrap(), [1, 4, 7, 10]);
        assert_eq!(of(1, 9, 3).unwrap(), [1, 4, 7]);
        assert_eq!(of(5, 5, 1).unwrap(), [5]);
        assert_eq!(of(0, 9_999, 1).unwrap().len(), 10_000);
        for (from, to, step, expected) in [
            (5, 4, 1, "--to: expected --from (5) or more, found 4"),
            (1, 4, 0, "--step: expected more than zero, found 0"),
            (
                0,
                10_000,
                1,
                "--step: expected a step that gives at most 10000 rows, found 1, which gives 10001",
            ),
            (0, u64::MAX, 1, "--step: expected a step that gives at most 10000 rows, found 1, which gives"),
        ] {
            let error = of(from, to, step).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
