//! Reference figures from ns-3 3.37.

/// Results of one static LTE user in ns-3 at a distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateAtDistance {
    /// Metres from the base station.
    pub metres: f64,
    /// SINR in dB.
    pub sinr_db: f64,
    /// The CQI that is reported.
    pub cqi: u8,
    /// The MCS used by the base station.
    pub mcs: u8,
    /// Goodput of a saturating UDP flow, in Mbit/s.
    pub goodput_mbit_s: f64,
}

const fn at(metres: f64, sinr_db: f64, cqi: u8, mcs: u8, goodput_mbit_s: f64) -> RateAtDistance {
    RateAtDistance { metres, sinr_db, cqi, mcs, goodput_mbit_s }
}

/// Measured with ns-3 3.37: downlink at 2120 MHz, 46 dBm over 100 PRBs, COST 231, noise figure 9 dB, RLC UM, no fading.
pub const NS3_RATE_DISTANCE: [RateAtDistance; 17] = [
    at(20.0, 54.79, 15, 28, 73.703),
    at(50.0, 41.38, 15, 28, 73.703),
    at(100.0, 31.22, 15, 28, 73.703),
    at(150.0, 25.28, 15, 28, 73.703),
    at(200.0, 21.06, 15, 28, 73.703),
    at(250.0, 17.78, 13, 24, 53.827),
    at(300.0, 15.11, 11, 20, 38.349),
    at(350.0, 12.85, 10, 18, 32.114),
    at(400.0, 10.89, 9, 16, 29.882),
    at(500.0, 7.62, 7, 12, 19.398),
    at(600.0, 4.94, 6, 10, 15.471),
    at(700.0, 2.68, 5, 8, 13.783),
    at(800.0, 0.72, 4, 6, 10.050),
    at(900.0, -1.00, 3, 4, 7.041),
    at(1000.0, -2.55, 2, 2, 4.174),
    at(1100.0, -3.95, 1, 0, 2.330),
    at(1200.0, -5.22, 0, 0, 0.007),
];
