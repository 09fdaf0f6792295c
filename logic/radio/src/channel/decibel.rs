//! Decibels and ratios of powers.

/// Decibels beyond which a ratio is cut: far more than any receiver or transmitter has, and products stay finite.
const MOST_DB: f64 = 300.0;

/// The ratio of powers that is this many dB. Beyond 300 dB it is cut; what is not a number counts as nothing at all.
pub fn from_db(db: f64) -> f64 {
    if db.is_nan() { 0.0 } else { libm::exp(db.clamp(-MOST_DB, MOST_DB) * (core::f64::consts::LN_10 / 10.0)) }
}

/// Decibels of a ratio of powers, cut at -300 and 300 dB; nothing, and what is not a number, is -300 dB.
pub fn to_db(ratio: f64) -> f64 {
    if ratio > 0.0 { (10.0 * libm::log10(ratio)).clamp(-MOST_DB, MOST_DB) } else { -MOST_DB }
}

/// The largest ratio that counts, 300 dB.
pub(crate) const MOST: f64 = 1e30;

/// A ratio as it counts: from 0 to [`MOST`]; what is not a number is nothing.
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
