//! SINR thresholds in dB from which a UE of ns-3's LTE module reports CQI 1 to 15.
//!
//! Not a table of 3GPP: measured by running ns-3 3.37, `LteAmc`, with the same SINR on all resource blocks. Its base
//! station then chooses the MCS by [`McsRule::Lena`](crate::McsRule::Lena).

/// With the error model (`MiErrorModel`, the default), 25 PRBs.
#[rustfmt::skip]
pub(crate) const ON_25_PRBS: [f64; 15] = [
    -4.425, -3.002, -1.349, 0.465, 2.033, 4.318, 6.013, 7.703, 10.228, 11.495, 13.564, 15.454, 16.936, 18.883, 19.804,
];

/// With the error model, 100 PRBs.
#[rustfmt::skip]
pub(crate) const ON_100_PRBS: [f64; 15] = [
    -4.425, -3.477, -1.643, 0.465, 2.033, 4.318, 6.013, 7.703, 10.228, 11.495, 13.564, 15.454, 16.936, 18.883, 19.804,
];

/// With the model `PiroEW2010`.
#[rustfmt::skip]
pub(crate) const PIRO: [f64; 15] = [
    -2.176, -0.197, 2.217, 4.551, 6.672, 8.450, 9.954, 11.833, 13.776, 14.935, 16.963, 18.866, 20.840, 22.713, 24.040,
];
