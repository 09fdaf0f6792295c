//! A user report as a line of text, compatible with the original set-up of MELD: `CQI,TxQueue,TBS,PRB`.
//!
//! Source: the author's public publisher and reader (`madi223/MELD`), as evidence of what was sent; Diarra 2022, 4.2.3. Queue and
//! block are in bytes there, as in FlexRAN.

use core::fmt;
use core::str::FromStr;

use crate::RadioHint;

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextReport {
    /// CQI, 0 to 15.
    pub cqi: u8,
    /// RLC queue in bytes.
    pub queue: u64,
    /// Block in bytes.
    pub block: u32,
    /// PRBs granted.
    pub prbs: u16,
}

/// A line that is not a report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected CQI,TxQueue,TBS,PRB such as \"15,3000,2292,25\", found {found:?}")]
pub struct NotAReport {
    /// The line's first 100 characters.
    pub found: String,
}

impl TextReport {
    /// From a hint; a missing CQI or block becomes 0, as in the original.
    pub fn of(hint: &RadioHint) -> Self {
        Self {
            cqi: hint.cqi.unwrap_or(0),
            queue: hint.queue.get(),
            block: hint.tbs_bits.unwrap_or(0) / 8,
            prbs: hint.most_granted,
        }
    }
}

impl fmt::Display for TextReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{},{}", self.cqi, self.queue, self.block, self.prbs)
    }
}

impl FromStr for TextReport {
    type Err = NotAReport;
    fn from_str(line: &str) -> Result<Self, NotAReport> {
        let read = || {
            let mut fields = line.split(',').map(str::trim);
            let mut next = || fields.next();
            let report = Self {
                cqi: next()?.parse().ok().filter(|cqi| *cqi <= 15)?,
                queue: next()?.parse().ok()?,
                block: next()?.parse().ok().filter(|block| *block <= u32::MAX / 8)?,
                prbs: next()?.parse().ok()?,
            };
            next().is_none().then_some(report)
        };
        read().ok_or_else(|| NotAReport { found: line.chars().take(100).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        let report = TextReport { cqi: 15, queue: 3_000, block: 2_292, prbs: 25 };
        assert_eq!(report.to_string(), "15,3000,2292,25");
        assert_eq!(" 15, 3000,2292,25\n".parse(), Ok(report));
        for wrong in
            ["", "15,3000,2292", "16,0,0,0", "1,2,3,4,5", "1,-2,3,4", "1,2,3,70000", "1,2,4294967295,4"]
        {
            assert!(wrong.parse::<TextReport>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in ".{0,300}") {
            if let Ok(report) = line.parse::<TextReport>() {
                prop_assert_eq!(report.to_string().parse(), Ok(report));
            }
        }
    }
}
