//! Transport block sizes and rates fixed by the standards: tests P-1 and P-2, and the peak rate of LTE.

use ranpace_phy::{
    Direction, Itbs, Layers, LteBandwidth, LteGrant, LteMcs, LtePrbs, NrGrant, NrMcs, Numerology, Prbs,
    QamTable, Symbols,
};

use super::{Check, Row};

pub(super) const CHECKS: &[Check] =
    &[Check { name: "LTE's block sizes", rows: lte }, Check { name: "NR's block sizes", rows: nr }];

/// TS 36.213 Table 7.1.7.2.1-1, 25 PRBs, TBS index 0 to 26, in bytes.
const ON_25_PRBS: [u32; 27] = [
    85, 113, 137, 177, 225, 277, 325, 389, 437, 501, 549, 621, 717, 807, 903, 967, 999, 1143, 1239, 1335,
    1431, 1572, 1692, 1764, 1908, 1980, 2292,
];

fn lte() -> Vec<Row> {
    let size = |index: Itbs, prbs: LtePrbs| index.transport_block(prbs).bits();
    let prbs = LteBandwidth::Mhz5.prbs();
    let equal = Itbs::all().zip(ON_25_PRBS).filter(|(index, bytes)| size(*index, prbs) == 8 * bytes).count();
    let mut rows = vec![Row::exact(
        "P-1: LTE block sizes on 25 PRBs as in TS 36.213, of 27",
        ON_25_PRBS.len() as f64,
        equal as f64,
    )];
    for (number, bits) in [(100, 75_376.0), (50, 36_696.0), (20, 14_688.0), (1, 712.0)] {
        let measured = LtePrbs::new(number).map_or(f64::NAN, |prbs| size(Itbs::MAX, prbs).into());
        rows.push(Row::exact(format!("P-1: block of TBS index 26, PRBs: {number}, bit"), bits, measured));
    }
    let peak =
        LteGrant { direction: Direction::Downlink, mcs: LteMcs::MAX, prbs: LteBandwidth::Mhz20.prbs() };
    rows.push(Row::exact("peak rate of 20 MHz at MCS 28, Mbit/s", 75.376, peak.rate().as_f64() / 1e6));
    rows
}

fn nr() -> Vec<Row> {
    let (Some(full), Some(shorter), Some(longer)) = (grant(28, 13), grant(28, 12), grant(27, 14)) else {
        return vec![Row::exact("P-2: NR grants that exist, of 3", 3.0, f64::NAN)];
    };
    let bits = |grant: NrGrant| f64::from(grant.transport_block().bits());
    vec![
        Row::exact("P-2: N_info, MCS 28, 13 symbols, bit", 105_583.5, full.info_bits()),
        Row::exact("P-2: code blocks, MCS 28, 13 symbols", 13.0, full.code_blocks() as f64),
        Row::exact("P-2: NR block, MCS 28, 13 symbols, bit", 106_576.0, bits(full)),
        Row::within(
            "P-2: its rate at 120 kHz, Mbit/s",
            852.6,
            full.rate(Numerology::Khz120).as_f64() / 1e6,
            0.05,
        ),
        Row::exact("P-2: NR block, MCS 28, 12 symbols, bit", 96_264.0, bits(shorter)),
        Row::exact("P-2: NR block, MCS 27, 14 symbols, bit", 110_632.0, bits(longer)),
    ]
}

/// 132 PRBs, MCS table 1, one layer, 12 resource elements of reference signals in each PRB.
fn grant(mcs: u8, symbols: u8) -> Option<NrGrant> {
    Some(NrGrant {
        mcs: NrMcs::new(QamTable::Qam64, mcs).ok()?,
        prbs: Prbs::new(132)?,
        symbols: Symbols::new(symbols)?,
        overhead: 12,
        layers: Layers::MIN,
    })
}
