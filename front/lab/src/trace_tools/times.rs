//! Times in logs: exact decimal numbers, and dates with a time of day.

/// A decimal number, exactly: digits before and after the point.
pub(super) struct Decimal {
    whole: u64,
    /// Billionths; smaller digits are truncated.
    billionths: u64,
}

impl Decimal {
    /// Converts to nanoseconds, with units of `size` nanoseconds; `None` if it overflows.
    pub(super) fn nanos(&self, size: u64) -> Option<u64> {
        let part = u128::from(self.billionths) * u128::from(size) / 1_000_000_000;
        self.whole.checked_mul(size)?.checked_add(u64::try_from(part).ok()?)
    }
}

/// A decimal number without a sign; `None` otherwise.
pub(super) fn number(text: &str) -> Option<Decimal> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let billionths = fraction.bytes().chain(core::iter::repeat(b'0')).take(9);
    let billionths = billionths.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    Some(Decimal { whole: whole.parse().ok()?, billionths })
}

/// Days of a month (from 1) of the Gregorian calendar.
fn days(year: u64, month: u64) -> u64 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Nanoseconds since 1970 of a date and time of day, with any separators; without time zone, or with Z.
pub(super) fn clock(text: &str) -> Option<u64> {
    let bytes = text.strip_suffix('Z').unwrap_or(text).as_bytes();
    let (head, tail) = bytes.split_at_checked(19)?;
    let digits = |range: core::ops::Range<usize>| {
        head[range]
            .iter()
            .try_fold(0u64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
    };
    let between = [4, 7, 10, 13, 16].iter().all(|at| !head[*at].is_ascii_alphanumeric() || head[*at] == b'T');
    let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    let (hour, minute, second) = (digits(11..13)?, digits(14..16)?, digits(17..19)?);
    let is_sane = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !between || !is_sane {
        return None;
    }
    let fraction = match tail {
        [] => 0,
        [b'.' | b',', digits @ ..] => {
            number(&format!("0.{}", core::str::from_utf8(digits).ok()?))?.billionths
        }
        _ => return None,
    };
    // Days since 1970, with years that begin in March so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468;
    Some(
        ((days * 24 + hour) * 60 + minute)
            .checked_mul(60)?
            .checked_add(second)?
            .checked_mul(1_000_000_000)?
            + fraction,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_whatever_their_form() {
        for (text, nanos) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-03-01 00:00:00", Some(951_868_800_000_000_000)),
            ("2024.02.29_12.30.15", Some(1_709_209_815_000_000_000)),
            ("2019-12-14 10:16:30.25", Some(1_576_318_590_250_000_000)),
            ("2000-02-29 00:00:00", Some(951_782_400_000_000_000)),
            ("2019-13-14 10:16:30", None),
            ("2019-02-30 10:16:30", None),
            ("2019-02-29 10:16:30", None),
            ("2100-02-29 10:16:30", None),
            ("2019-04-31 10:16:30", None),
            ("2019-12-00 10:16:30", None),
            ("2019-12-14 10:16:30+01:00", None),
            ("2019-12-14", None),
            ("0000-00-00 00:00:00", None),
        ] {
            assert_eq!(clock(text), nanos, "{text}");
        }
        assert_eq!(
            number("1552767958.123456789").unwrap().nanos(1_000_000_000),
            Some(1_552_767_958_123_456_789)
        );
        assert_eq!(number("0.3").unwrap().nanos(1_000_000), Some(300_000));
        assert!(number("-1").is_none() && number("1e3").is_none() && number("").is_none());
    }
}
