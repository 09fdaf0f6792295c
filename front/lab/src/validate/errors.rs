//! The SINR at which a tenth of the blocks is lost: as in ns-3 with `cqi_table = ns3`, and the difference from it with `awgn`.

use ranpace_phy::{
    BlerCurve, Cqi, CqiThresholds, LteBandwidth, LteMcs, LtePrbs, McsRule, ns3_measured_sinr_db,
};

use super::{Check, Row};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "block errors with cqi_table = ns3", rows: as_ns3 },
    Check { name: "block errors with cqi_table = awgn", rows: white_noise },
];

/// SINR in dB at which a tenth of the blocks is lost, by bisecting -50 to 50 dB.
fn tenth_db(curve: BlerCurve) -> f64 {
    let (mut low, mut high) = (-50.0, 50.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if curve.bler(middle) > 0.1 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Returns the SNR measured with ns-3 3.37.
fn measured_db(mcs: LteMcs, prbs: LtePrbs) -> f64 {
    ns3_measured_sinr_db(mcs, prbs).map_or(f64::NAN, |[_, tenth, _]| tenth)
}

/// All MCS on each bandwidth; the reference values were measured to thousandths of a dB.
fn as_ns3() -> Vec<Row> {
    let row = |bandwidth: LteBandwidth| {
        let prbs = bandwidth.prbs();
        let equal =
            |mcs: &LteMcs| (tenth_db(BlerCurve::ns3(*mcs, prbs)) - measured_db(*mcs, prbs)).abs() <= 0.001;
        let check = format!("ns3, {prbs} PRBs: MCS with 10 % block errors at ns-3's SINR, of 29");
        Row::exact(check, 29.0, LteMcs::all().filter(equal).count() as f64)
    };
    LteBandwidth::ALL.map(row).into()
}

/// With `awgn` the SINR of 10 % block errors of a CQI's MCS is the threshold of the CQI, and is therefore compared with the SINR
/// from which ns-3's user reports the CQI. ns-3's error model is better than ns-3's reports: at CQI 3, 5, 8, 9, 10, 13 and 14 a
/// report begins where the odd MCS above, on 6 PRBs, loses 10 %, and the base station then sends with the even one on many PRBs.
/// The SINR required by that one is printed.
fn white_noise() -> Vec<Row> {
    let prbs = LteBandwidth::Mhz20.prbs();
    let (mut thresholds, mut blocks) = (Vec::new(), Vec::new());
    for (cqi, threshold) in Cqi::all().skip(1).zip(CqiThresholds::Ns3.sinr_db()) {
        let Some(mcs) = McsRule::Lena.mcs(cqi) else { continue };
        let found = tenth_db(BlerCurve::awgn_lte(mcs));
        let check = format!("awgn, CQI {cqi}: 10 % block errors, beside ns-3's CQI threshold, dB");
        thresholds.push(match cqi.get() {
            3..=12 => Row::within(check, *threshold, found, 0.9),
            _ => Row::printed(check, *threshold, found),
        });
        let check = format!("awgn, MCS {mcs}: 10 % block errors, beside ns-3's on {prbs} PRBs, dB");
        blocks.push(Row::printed(check, measured_db(mcs, prbs), found));
    }
    thresholds.into_iter().chain(blocks).collect()
}
