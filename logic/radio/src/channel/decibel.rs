//! Decibels and power ratios.

/// Limit in dB: far beyond any receiver or transmitter, and products of ratios stay finite.
const MOST_DB: f64 = 300.0;

/// The power ratio for a value in dB, clamped at 300 dB either way. NaN gives 0.
pub fn from_db(db: f64) -> f64 {
    if db.is_nan() { 0.0 } else { libm::exp(db.clamp(-MOST_DB, MOST_DB) * (core::f64::consts::LN_10 / 10.0)) }
}

/// Decibels of a power ratio, clamped to -300 and 300 dB; ratios not above 0, and NaN, give -300 dB.
pub fn to_db(ratio: f64) -> f64 {
    if ratio > 0.0 { (10.0 * libm::log10(ratio)).clamp(-MOST_DB, MOST_DB) } else { -MOST_DB }
}

/// The largest ratio, 300 dB.
pub(crate) const MOST: f64 = 1e30;

/// Clamps a ratio to 0 to [`MOST`]; NaN gives 0.
pub(crate) fn counted(ratio: f64) -> f64 {
    if ratio > 0.0 { ratio.min(MOST) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decibels_and_ratios_are_inverse_and_never_infinite() {
        for db in [-299.0, -10.0, 0.0, 3.0103, 120.0] {
            assert!((to_db(from_db(db)) - db).abs() < 1e-9);
        }
        assert_eq!(from_db(0.0), 1.0);
        for (db, kept) in [(f64::INFINITY, 300.0), (f64::NEG_INFINITY, -300.0), (f64::NAN, -300.0)] {
            assert!((to_db(from_db(db)) - kept).abs() < 1e-9, "{db}");
        }
    }
}
