//! ns-3's static LTE user over the distance, compared with a whole cell under ns-3's rules.

use ranpace_phy::LteBandwidth;
use ranpace_units::Time;

use super::cell::{Rig, Unplayable, lte, or_why, standing, um};
use super::{Check, NS3_RATE_DISTANCE, RateAtDistance, Row};

pub(super) const CHECKS: &[Check] =
    &[Check { name: "goodput over the distance", rows: || or_why(goodputs()) }];

/// Bytes of a packet, and its payload: ns-3's overhead fits 1400 B in packets of 1428 B.
const PACKET: u32 = 1428;
const COUNTED: f64 = 1400.0 / 1428.0;

/// Each distance is printed; the number that agree is judged.
fn goodputs() -> Result<Vec<Row>, Unplayable> {
    let (mut rows, mut equal) = (Vec::new(), 0);
    for ns3 in &NS3_RATE_DISTANCE {
        let (mcs, mbit_s) = measure(ns3)?;
        let near = (mbit_s / ns3.goodput_mbit_s - 1.0).abs() <= 0.03;
        equal += u32::from(near && mcs == ns3.mcs);
        rows.push(Row::printed(
            format!("ns-3: goodput at {} m, Mbit/s", ns3.metres),
            ns3.goodput_mbit_s,
            mbit_s,
        ));
    }
    let check = "ns-3: distances with its MCS and with its goodput within 3 %, of 17";
    rows.push(Row::within(check, 17.0, equal.into(), 2.0));
    Ok(rows)
}

/// MCS, and goodput in Mbit/s. Where control information is lost, the mean of four users, each for 30 s.
fn measure(ns3: &RateAtDistance) -> Result<(u8, f64), Unplayable> {
    let (seeds, seconds) = if ns3.sinr_db < -0.5 { (4, 30) } else { (1, 3) };
    let (mut mcs, mut sum) = (0, 0.0);
    for seed in 0..seeds {
        let mut rig = Rig::new(&lte(LteBandwidth::Mhz20)?, &[standing(ns3.metres, um())], seed)?;
        // ns-3 sends with MCS 0 at CQI 0; we do not send.
        mcs = rig.cell.probe(Time::ZERO, 0).and_then(|probe| probe.downlink.mcs).unwrap_or(0);
        rig.saturate(&[0], PACKET, 100);
        let since = rig.now;
        rig.saturate(&[0], PACKET, 1000 * seconds);
        sum += rig.mbit_s(since) * COUNTED;
    }
    Ok((mcs, sum / seeds as f64))
}
