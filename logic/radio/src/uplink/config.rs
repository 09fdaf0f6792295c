//! Times of uplink access, and the levels of buffer status reports.

/// Size of a short buffer status report in a block, in bytes: a subheader and a byte; TS 36.321 clauses
/// 6.1.2 and 6.1.3.1, TS 38.321 likewise. All bearers form one logical channel group (ours).
pub const BSR_BYTES: u32 = 2;

/// Times of uplink access, in TTIs, and sizes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccessConfig {
    /// Period of a user's opportunities for scheduling requests; LTE: 1 to 80 ms (TS 36.213 Table 10.1.5-1). 0
    /// counts as 1.
    pub sr_period: u64,
    /// Minimum time between scheduling requests without a grant: sr-ProhibitTimer, TS 36.321 clause
    /// 5.4.4. A user that gets no grant keeps requesting; the fallback to random access is not modelled.
    pub sr_prohibit: u64,
    /// From a scheduling request to the grant that answers it.
    pub sr_to_grant: u64,
    /// From a grant to its PUSCH; NR's K2.
    pub grant_to_pusch: u64,
    /// Period of buffer status reports: periodicBSR-Timer, TS 36.321 clause 5.4.5.
    pub bsr_period: u64,
    /// Time without a grant after which a device that reported its data sends a request: retxBSR-Timer, TS 36.321 clause
    /// 5.4.5.
    pub bsr_retransmission: u64,
    /// Bytes granted for a scheduling request if nothing is known of the buffer.
    pub first_grant: u32,
    /// Levels of buffer status reports.
    pub levels: ReportLevels,
    /// Whether the buffer is reported outside of blocks and without requests, in each slot in which data was added; each report
    /// replaces the last one, whatever was granted meanwhile. ns-3's UE does so every millisecond
    /// (`LteUeMac`, "ideal behavior"); it has no scheduling requests.
    pub ideal_reports: bool,
}

impl AccessConfig {
    /// LTE: an opportunity every 10 ms, 4 ms to the grant and 4 ms to the PUSCH, reports every 5 ms. Ours: no second
    /// request for two periods; 320 ms until a device requests again, the shortest value in TS 36.331; 125 bytes for the
    /// first grant, enough for an acknowledgement or a ping with headers.
    pub const LTE: Self = Self {
        sr_period: 10,
        sr_prohibit: 20,
        sr_to_grant: 4,
        grant_to_pusch: 4,
        bsr_period: 5,
        bsr_retransmission: 320,
        first_grant: 125,
        levels: ReportLevels::Lte,
        ideal_reports: false,
    };

    /// NR with this many slots per millisecond: an opportunity every 10 slots, 4 slots to the grant and K2 of 4 slots (ours),
    /// reports every 5 ms; 80 ms until a device requests again (TS 38.331's default configuration, from memory). 0 counts
    /// as 1.
    pub const fn nr(slots_per_ms: u64) -> Self {
        let slots = if slots_per_ms == 0 { 1 } else { slots_per_ms };
        Self {
            bsr_period: slots.saturating_mul(5),
            bsr_retransmission: slots.saturating_mul(80),
            levels: ReportLevels::Nr,
            ..Self::LTE
        }
    }

    /// The experiments on millimetre waves, TTIs of 100 us: an opportunity in each TTI (SIGMA, Table 3.1), one TTI to the
    /// grant and one to the PUSCH (ns-3's module), a report in each TTI (the authors' buffer status timer). Ours: a new
    /// request after 10 ms, NR's shortest value; the first grant is what one symbol carries at the peak, 11 352 B / 23.
    pub const MMWAVE: Self = Self {
        sr_period: 1,
        sr_prohibit: 4,
        sr_to_grant: 1,
        grant_to_pusch: 1,
        bsr_period: 1,
        bsr_retransmission: 100,
        first_grant: 493,
        levels: ReportLevels::Nr,
        ideal_reports: false,
    };
}

impl Default for AccessConfig {
    /// [`AccessConfig::LTE`].
    fn default() -> Self {
        Self::LTE
    }
}

/// Levels of buffer status reports. Sizes are rounded up, which spares the end of a burst another round of grants if its
/// headers were larger than expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReportLevels {
    /// Any number: no device does so; for tests and comparisons.
    Exact,
    /// 62 levels from 10 to 150 000 bytes, in equal steps of 17 %; TS 36.321 Table 6.1.3.1-1. The last entry of the table,
    /// "more", is read as 150 000, as in ns-3.
    Lte,
    /// 254 levels from 10 to 81 338 368 bytes, in equal steps of 6.5 %; TS 38.321 Table 6.1.3.1-2. The formula misses the
    /// table's smallest levels by a byte or two.
    Nr,
}

impl ReportLevels {
    /// Returns the amount that the base station reads when this many bytes are reported: the smallest level that is not less, or
    /// the largest level if there is none, and 0 for 0.
    pub fn read(self, bytes: u32) -> u32 {
        const LEAST: u32 = 10;
        let (most, steps) = match self {
            Self::Exact => return bytes,
            Self::Lte => (150_000, 61.0),
            Self::Nr => (81_338_368, 253.0),
        };
        match bytes {
            0 => 0,
            1..=LEAST => LEAST,
            _ if bytes >= most => most,
            _ => {
                // Levels are 10 q^k, rounded up; the exponential is accurate to 1 in 10^12. They are less than
                // `most`, so the cast does not saturate.
                let step = libm::log(f64::from(most) / f64::from(LEAST)) / steps;
                let level =
                    |k: f64| libm::ceil(f64::from(LEAST) * libm::exp(k * step) * (1.0 - 1e-12)) as u32;
                let below = libm::floor(libm::log(f64::from(bytes) / f64::from(LEAST)) / step);
                // Since levels are rounded up, the one below may suffice.
                let lower = level(below);
                if lower >= bytes { lower } else { level(below + 1.0).clamp(bytes, most) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn levels_of_lte_are_those_of_the_standard() {
        // TS 36.321 Table 6.1.3.1-1.
        let table = [
            10, 12, 14, 17, 19, 22, 26, 31, 36, 42, 49, 57, 67, 78, 91, 107, 125, 146, 171, 200, 234, 274,
            321, 376, 440, 515, 603, 706, 826, 967, 1132, 1326, 1552, 1817, 2127, 2490, 2915, 3413, 3995,
            4677, 5476, 6411, 7505, 8787, 10287, 12043, 14099, 16507, 19325, 22624, 26487, 31009, 36304,
            42502, 49759, 58255, 68201, 79846, 93479, 109_439, 128_125, 150_000,
        ];
        let mut below = 0;
        for level in table {
            assert_eq!(ReportLevels::Lte.read(level), level, "itself");
            assert_eq!(ReportLevels::Lte.read(below + 1), level, "just above {below}");
            below = level;
        }
        assert_eq!(ReportLevels::Lte.read(u32::MAX), 150_000);
        assert_eq!(ReportLevels::Lte.read(0), 0);
    }

    proptest! {
        #[test]
        fn a_report_never_says_less_and_little_more(bytes in 10..81_000_000u32) {
            let read = ReportLevels::Nr.read(bytes);
            prop_assert!(read >= bytes && f64::from(read) <= f64::from(bytes) * 1.065 + 1.0);
            prop_assert_eq!(ReportLevels::Nr.read(read), read);
            prop_assert_eq!(ReportLevels::Exact.read(bytes), bytes);
            if bytes <= 150_000 {
                let read = ReportLevels::Lte.read(bytes);
                prop_assert!(read >= bytes && f64::from(read) <= f64::from(bytes) * 1.171 + 1.0);
            }
        }
    }
}
