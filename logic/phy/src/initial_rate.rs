//! The rate that a UE may announce before its first grant.

use ranpace_units::Rate;

use crate::{Cqi, Layers, Prbs, QamTable};

/// Rate that an LTE UE may announce before its first grant.
///
/// Source: Zhong 2020, Eq. 5.9, and the activity of 50 % assumed below it. `prbs` is the scheduler's last grant, or
/// [half](Prbs::half) of the carrier if there was none. CQI 0 (out of range) gives [`Rate::ZERO`].
pub fn initial_rate(cqi: Cqi, prbs: Prbs, layers: Layers) -> Rate {
    capacity(cqi, prbs, layers) / 2
}

/// `eCapacity` of Eq. 5.9. SE is the efficiency printed in the table, with four decimals.
fn capacity(cqi: Cqi, prbs: Prbs, layers: Layers) -> Rate {
    const DATA_SYMBOLS: u64 = 14 - 3; // per subframe; three carry control (Eq. 5.9)
    const SUBCARRIERS: u64 = 12; // per PRB; TS 36.211 Table 6.2.3-1
    const SUBFRAMES: u64 = 1_000; // per second; TS 36.211 clause 4.1
    let elements = DATA_SYMBOLS * SUBCARRIERS * SUBFRAMES * u64::from(prbs.get()) * u64::from(layers.get());
    Rate::from_bits_per_s(elements).scale(cqi.efficiency(QamTable::Qam64).printed_x10000().into(), 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_equation_5_9() {
        // The specification's test vectors: 100 PRBs, no grant yet, one layer; in kbit/s.
        let prbs = Prbs::new(100).unwrap().half();
        for (cqi, all, half) in
            [(0, 0, 0), (1, 1_005, 503), (7, 9_746, 4_873), (10, 18_021, 9_011), (15, 36_661, 18_331)]
        {
            let cqi = Cqi::new(cqi).unwrap();
            let kbit = |rate: Rate| (rate.as_f64() / 1e3).round() as u64;
            assert_eq!(kbit(capacity(cqi, prbs, Layers::MIN)), all, "CQI {cqi}");
            assert_eq!(kbit(initial_rate(cqi, prbs, Layers::MIN)), half, "CQI {cqi}");
        }
    }

    #[test]
    fn layers_and_prbs_multiply() {
        let (one, two) = (Layers::MIN, Layers::new(2).unwrap());
        let rate = |prbs, layers| initial_rate(Cqi::MAX, Prbs::new(prbs).unwrap(), layers);
        assert_eq!(rate(50, two), rate(100, one));
        assert_eq!(initial_rate(Cqi::MIN, Prbs::MAX, Layers::MAX), Rate::ZERO);
    }
}
