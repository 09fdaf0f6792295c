//! PRBs of an NR carrier, by its bandwidth and sub-carrier spacing.

use core::fmt;

use crate::{Numerology, Prbs};

/// Frequency range; TS 38.101-1 and -2 clause 5.1. At 60 kHz, the PRBs of a bandwidth differ between the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrequencyRange {
    /// 410 to 7125 MHz.
    Fr1,
    /// 24.25 to 52.6 GHz: millimetre waves.
    Fr2,
}

impl fmt::Display for FrequencyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fr1 => "FR1",
            Self::Fr2 => "FR2",
        })
    }
}

/// NR has no carrier of this bandwidth with this sub-carrier spacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a bandwidth of {range} with {numerology} sub-carriers, one of {}; found {mhz} MHz",
    Listed(*range, *numerology)
)]
pub struct NoSuchNrBandwidth {
    /// Frequency range.
    pub range: FrequencyRange,
    /// Sub-carrier spacing.
    pub numerology: Numerology,
    /// The value asked for.
    pub mhz: u16,
}

/// The existing bandwidths, for the text of an error.
struct Listed(FrequencyRange, Numerology);

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = rows(self.0, self.1);
        if rows.is_empty() {
            return f.write_str("none: the range does not have this spacing");
        }
        for (i, (mhz, _)) in rows.iter().enumerate() {
            write!(f, "{}{mhz}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str(" MHz")
    }
}

/// N_RB: PRBs of a carrier of `mhz` MHz; TS 38.101-1 Table 5.3.2-1 (FR1) and TS 38.101-2 Table 5.3.2-1 (FR2).
pub fn nr_prbs(range: FrequencyRange, numerology: Numerology, mhz: u16) -> Result<Prbs, NoSuchNrBandwidth> {
    let row = rows(range, numerology).iter().find(|row| row.0 == mhz);
    row.and_then(|row| Prbs::new(row.1)).ok_or(NoSuchNrBandwidth { range, numerology, mhz })
}

/// MHz and PRBs.
#[rustfmt::skip]
const fn rows(range: FrequencyRange, numerology: Numerology) -> &'static [(u16, u16)] {
    use {FrequencyRange::{Fr1, Fr2}, Numerology::{Khz15, Khz30, Khz60, Khz120}};
    match (range, numerology) {
        (Fr1, Khz15) => &[
            (5, 25), (10, 52), (15, 79), (20, 106), (25, 133), (30, 160), (35, 188), (40, 216), (45, 242), (50, 270),
        ],
        (Fr1, Khz30) => &[
            (5, 11), (10, 24), (15, 38), (20, 51), (25, 65), (30, 78), (35, 92), (40, 106), (45, 119), (50, 133),
            (60, 162), (70, 189), (80, 217), (90, 245), (100, 273),
        ],
        (Fr1, Khz60) => &[
            (10, 11), (15, 18), (20, 24), (25, 31), (30, 38), (35, 44), (40, 51), (45, 58), (50, 65), (60, 79),
            (70, 93), (80, 107), (90, 121), (100, 135),
        ],
        (Fr2, Khz60) => &[(50, 66), (100, 132), (200, 264)],
        (Fr2, Khz120) => &[(50, 32), (100, 66), (200, 132), (400, 264)],
        (Fr1, Khz120) | (Fr2, Khz15 | Khz30) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_of_the_experiments_and_at_the_edges() {
        use {FrequencyRange::*, Numerology::*};
        for (range, numerology, mhz, prbs) in [
            (Fr2, Khz120, 200, 132), // RAPID and SIGMA
            (Fr1, Khz30, 100, 273),
            (Fr1, Khz15, 20, 106),
            (Fr1, Khz60, 100, 135),
            (Fr2, Khz60, 100, 132),
        ] {
            assert_eq!(
                nr_prbs(range, numerology, mhz).map(Prbs::get),
                Ok(prbs),
                "{range} {numerology} {mhz} MHz"
            );
        }
        assert_eq!(
            nr_prbs(Fr2, Khz120, 20).unwrap_err().to_string(),
            "expected a bandwidth of FR2 with 120 kHz sub-carriers, one of 50, 100, 200, 400 MHz; found 20 MHz"
        );
        assert!(nr_prbs(Fr2, Khz15, 50).is_err());
    }

    #[test]
    fn prbs_fill_the_carrier_and_fit_into_it() {
        for range in [FrequencyRange::Fr1, FrequencyRange::Fr2] {
            for numerology in Numerology::ALL {
                for &(mhz, prbs) in rows(range, numerology) {
                    let khz = u32::from(prbs) * 12 * numerology.spacing_khz();
                    let used = f64::from(khz) / (1e3 * f64::from(mhz));
                    assert!((0.79..0.99).contains(&used), "{range} {numerology} {mhz} MHz: {used}");
                }
            }
        }
    }
}
