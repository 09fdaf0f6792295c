//! Errors of LTE's control channels.

/// Rate at which PCFICH and PDCCH together are not decoded, at -10 dB and every 0.2 dB up to -1 dB; 3GPP R4-081920, "LTE
/// PDCCH/PCFICH demodulation performance results with implementation margin", in ns-3's form.
const RATES: [f64; 46] = [
    0.922602, 0.871559, 0.82334, 0.777789, 0.734758, 0.694107, 0.655706, 0.619429, 0.585159, 0.552785,
    0.520927, 0.479229, 0.440869, 0.405579, 0.373114, 0.343104, 0.309947, 0.279994, 0.252936, 0.228492,
    0.206048, 0.181449, 0.159787, 0.140711, 0.123912, 0.109119, 0.0916184, 0.0769244, 0.0645871, 0.0542285,
    0.0454971, 0.037584, 0.0310472, 0.0256473, 0.0211866, 0.0175023, 0.0144636, 0.0119524, 0.00987724,
    0.00816236, 0.00673821, 0.00532283, 0.00420476, 0.00332154, 0.00262385, 0.0020727,
];

/// Share of subframes in which a UE does not decode the control channels (PCFICH and PDCCH), and so misses a block sent to it as
/// well as a grant, at this effective SINR of the whole band in dB. Linear interpolation of the values
/// of 3GPP R4-081920; 1 below -10 dB and 0 above -1 dB: ours. (ns-3 uses the value of the next higher SINR, and 0.92 below
/// all of them.)
pub fn lte_control_error_rate(sinr_db: f64) -> f64 {
    let place = (sinr_db + 10.0) / 0.2;
    if place >= (RATES.len() - 1) as f64 {
        return if place == (RATES.len() - 1) as f64 { RATES[RATES.len() - 1] } else { 0.0 };
    }
    // NaN also counts as below.
    if place.is_nan() || place < 0.0 {
        return 1.0;
    }
    let (below, share) = (place as usize, place - libm::floor(place));
    RATES[below] + share * (RATES[below + 1] - RATES[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fall_from_all_to_none() {
        let at = |db: f64| lte_control_error_rate(db);
        assert_eq!((at(-10.1), at(-0.9), at(f64::NAN)), (1.0, 0.0, 1.0));
        assert!((at(-5.0) - 0.109119).abs() < 1e-6 && (at(-4.9) - 0.100369).abs() < 1e-5);
        assert!((-120..0).map(|db| at(f64::from(db) / 10.0)).is_sorted_by(|a, b| a >= b));
    }
}
