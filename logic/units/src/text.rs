//! Numbers with a unit, as text: parsed and printed exactly, by integer arithmetic alone.

use core::fmt;

/// Why a number with a unit was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The text does not start with a number.
    #[error("expected {expected}, found {found:?}")]
    NotANumber {
        /// The form that is accepted.
        expected: &'static str,
        /// The text found.
        found: String,
    },
    /// The number has no unit; units are never guessed.
    #[error("expected {expected}, found {found:?}, which has no unit (one of {units})")]
    NoUnit {
        /// The form that is accepted.
        expected: &'static str,
        /// The text found.
        found: String,
        /// The known units.
        units: String,
    },
    /// The unit is unknown, or belongs to another quantity.
    #[error("expected {expected}, found {found:?}: unknown unit {unit:?} (one of {units})")]
    UnknownUnit {
        /// The form that is accepted.
        expected: &'static str,
        /// The text found.
        found: String,
        /// The unit found.
        unit: String,
        /// The known units.
        units: String,
    },
    /// The number has more decimals than the smallest unit can hold.
    #[error("{found:?} is finer than {smallest} can hold; write fewer decimals")]
    TooFine {
        /// The text found.
        found: String,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// The number exceeds 64 bits.
    #[error("{found:?} is too large")]
    TooLarge {
        /// The text found.
        found: String,
    },
}

/// A unit with its spellings and its size in the smallest unit.
pub(crate) struct Unit {
    pub names: &'static [&'static str],
    pub size: u64,
    /// Whether values are printed in it.
    pub printed: bool,
}

pub(crate) fn parse(text: &str, expected: &'static str, units: &[Unit]) -> Result<u64, ParseError> {
    let trimmed = text.trim();
    let found = || text.to_owned();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..end].replace('_', ""), trimmed[end..].trim_start());
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(ParseError::NotANumber { expected, found: found() });
    }
    let names = || units.iter().map(|u| u.names[0]).collect::<Vec<_>>().join(", ");
    if unit.is_empty() {
        return Err(ParseError::NoUnit { expected, found: found(), units: names() });
    }
    let size = units.iter().find(|u| u.names.contains(&unit)).map(|u| u.size).ok_or_else(|| {
        ParseError::UnknownUnit { expected, found: found(), unit: unit.to_owned(), units: names() }
    })?;
    let too_large = || ParseError::TooLarge { found: found() };
    let too_fine = || ParseError::TooFine { found: found(), smallest: smallest(units) };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
    let mut value = whole.checked_mul(size).ok_or_else(too_large)?;
    let (fraction, mut digit_size) = (fraction.trim_end_matches('0'), u128::from(size));
    // The fraction must be a whole number of the smallest unit (with 20 decimals it never is: sizes are below 2^64).
    let mut numerator: u128 = 0;
    let mut denominator: u128 = 1;
    for digit in fraction.bytes() {
        if denominator > 10u128.pow(19) {
            return Err(too_fine());
        }
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    digit_size *= numerator;
    if digit_size % denominator != 0 {
        return Err(too_fine());
    }
    let part = u64::try_from(digit_size / denominator).map_err(|_| too_large())?;
    value = value.checked_add(part).ok_or_else(too_large)?;
    Ok(value)
}

fn smallest(units: &[Unit]) -> &'static str {
    units.iter().min_by_key(|u| u.size).map_or("", |u| u.names[0])
}

/// Prints in the largest unit that does not exceed the value, with just the decimals needed.
pub(crate) fn print(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let printed = || units.iter().filter(|u| u.printed);
    let unit = match value {
        // Zero prints as "0s" rather than "0ns", but as "0B" rather than "0GB".
        0 if units[0].names[0] == "s" => printed().next(),
        _ => printed().find(|u| u.size <= value).or_else(|| printed().next_back()),
    };
    let Some(unit) = unit else { return write!(f, "{value}") };
    let (whole, rest) = (value / unit.size, value % unit.size);
    let text = if rest == 0 {
        format!("{whole}{}", unit.names[0])
    } else {
        let width = unit.size.ilog10() as usize;
        let decimals = format!("{rest:0width$}");
        format!("{whole}.{}{}", decimals.trim_end_matches('0'), unit.names[0])
    };
    f.pad(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Rate, Span};

    #[test]
    fn a_missing_or_wrong_unit_says_which_there_are() {
        let error = "20".parse::<Span>().unwrap_err();
        assert!(matches!(error, ParseError::NoUnit { .. }), "{error}");
        assert_eq!(
            "150KB".parse::<Rate>().unwrap_err().to_string(),
            "expected a rate such as \"12Mbit/s\", found \"150KB\": unknown unit \"KB\" \
             (one of Gbit/s, Mbit/s, kbit/s, bit/s, Gbps, Mbps, kbps, bps)"
        );
        assert!(matches!("fast".parse::<Rate>(), Err(ParseError::NotANumber { .. })));
        assert!(matches!("-1ms".parse::<Span>(), Err(ParseError::NotANumber { .. })));
        assert!(matches!("1.2.3ms".parse::<Span>(), Err(ParseError::NotANumber { .. })));
        assert!(matches!("".parse::<Bytes>(), Err(ParseError::NotANumber { .. })));
    }

    #[test]
    fn values_that_cannot_be_held_exactly_are_refused() {
        assert!(matches!("0.5ns".parse::<Span>(), Err(ParseError::TooFine { .. })));
        assert!(matches!("0.1B".parse::<Bytes>(), Err(ParseError::TooFine { .. })));
        assert!(matches!("99999999999999999999s".parse::<Span>(), Err(ParseError::TooLarge { .. })));
        assert!(matches!("18446744073710s".parse::<Span>(), Err(ParseError::TooLarge { .. })));
        assert!(matches!(
            "0.00000000000000000000000000000000000000000001s".parse::<Span>(),
            Err(ParseError::TooFine { .. })
        ));
    }
}
