//! Measurements of a user beside its grants: reference signals, and counters of traffic.

use ranpace_units::Bytes;

/// Traffic of a user's bearers in one direction since it attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets offered.
    pub offered: u64,
    /// Packets of these that were discarded.
    pub discarded: u64,
    /// Bytes of these that arrived.
    pub delivered: Bytes,
}

/// Reference signal quality at a user without fast fading, because a report is a mean over it (TS 36.331, 5.5.3.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceSignal {
    /// RSRP in dBm: power of one resource element with a reference signal; TS 36.214, 5.1.1.
    pub rsrp_dbm: f64,
    /// Noise and interference in dBm on one resource element.
    pub noise_dbm: f64,
}

impl ReferenceSignal {
    /// RSRQ in dB, if the cell uses this share of its PRBs: N RSRP / RSSI over N PRBs, in symbols with reference signals of one
    /// port, which occupy two of a PRB's twelve elements; TS 36.214, 5.1.3. An empty cell without neighbours has -3 dB, a full one
    /// -10.8.
    pub fn rsrq_db(&self, used: f64) -> f64 {
        let noise_over_signal = libm::exp10((self.noise_dbm - self.rsrp_dbm) / 10.0);
        let data = if used > 0.0 { 10.0 * used.min(1.0) } else { 0.0 };
        -10.0 * libm::log10(2.0 + data + 12.0 * noise_over_signal)
    }

    /// RS-SINR in dB; TS 36.214, 5.1.13.
    pub fn sinr_db(&self) -> f64 {
        self.rsrp_dbm - self.noise_dbm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rsrq_falls_with_the_load_and_with_noise() {
        let near = ReferenceSignal { rsrp_dbm: -80.0, noise_dbm: -200.0 };
        for (used, expected) in [(0.0, -3.01), (0.5, -8.45), (1.0, -10.79), (f64::NAN, -3.01)] {
            let found = near.rsrq_db(used);
            assert!((found - expected).abs() < 0.01, "{used}: {found}");
        }
        // As much noise as signal: 12 more.
        let far = ReferenceSignal { rsrp_dbm: -120.0, noise_dbm: -120.0 };
        assert!((far.rsrq_db(1.0) + 10.0 * 24_f64.log10()).abs() < 1e-9);
        assert_eq!(far.sinr_db(), 0.0);
    }
}
