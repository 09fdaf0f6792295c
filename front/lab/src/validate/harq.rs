//! Capacity and delay of blocks: tests P-3 and P-5.

use ranpace_phy::{BlerCurve, LteBandwidth, LteMcs};
use ranpace_radio::cell::CellConfig;
use ranpace_units::Time;

use super::cell::{DOWN, Rig, Unplayable, fixed, lte, millis, or_why, standing, um};
use super::{Check, Row};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "bursts under HARQ", rows: || or_why(bursts()) },
    Check { name: "a full carrier of 25 PRBs", rows: || or_why(full_carrier()) },
];

/// Headers of RLC and MAC in a block with a part of one packet, and of PDCP in a packet; bytes.
const BLOCK_HEADERS: u64 = 5;
const PACKET_HEADER: u64 = 2;

/// P-3: packets of so many blocks that one or two go in a round of the eight processes.
fn bursts() -> Result<Vec<Row>, Unplayable> {
    let mut rows = Vec::new();
    for (packets, again, expected) in [(1, 0, 80.0), (1, 2, 240.0), (2, 0, 40.0), (2, 2, 120.0)] {
        let check = format!("P-3: ten packets, {packets} a round, blocks sent again {again} times, ms");
        rows.push(Row::exact(check, expected, ten_packets(packets, again)?));
    }
    Ok(rows)
}

/// From the arrival of the first packet to that of the eleventh, in ms.
fn ten_packets(packets_a_round: u64, again: u32) -> Result<f64, Unplayable> {
    let (mcs, prbs) = (LteMcs::MIN, LteBandwidth::Mhz10.prbs());
    let mut config = lte(LteBandwidth::Mhz10)?;
    config.adaptation.fixed_mcs = Some(mcs);
    config.adaptation.control_errors = false;
    let users = [standing(50.0, um())];
    let Some(probe) = Rig::new(&config, &users, 1)?.cell.probe(Time::ZERO, 0) else { return Ok(f64::NAN) };
    // The SINRs of all attempts add up. The SINR at which half of the blocks is lost lies in the middle, in dB, between `again` and
    // one more attempts: 0.9 dB from both for two, six times the width of the curve.
    let sum_db = if again == 0 { -3.0 } else { f64::midpoint(attempts_db(again), attempts_db(again + 1)) };
    let sinr_db = BlerCurve::ns3(mcs, prbs).centre_db() - sum_db;
    config.channel.base_power_dbm += sinr_db - probe.downlink.sinr_db;
    let mut rig = Rig::new(&config, &users, 1)?;
    let room = probe.downlink.block.bytes().get() - BLOCK_HEADERS;
    let size = 8 / packets_a_round * room - PACKET_HEADER;
    for _ in 0..30 {
        rig.send(0, DOWN, size as u32); // below 1400
    }
    rig.play(1000);
    let arrivals = &rig.log.arrivals;
    let ends = arrivals.first().zip(arrivals.get(10));
    Ok(ends.map_or(f64::NAN, |(first, last)| millis(last.at - first.at)))
}

/// The gain of this many attempts over one, in dB.
fn attempts_db(attempts: u32) -> f64 {
    10.0 * libm::log10(attempts.into())
}

/// P-5: a saturated carrier of 25 PRBs at MCS 28 without errors, and one that uses 85 % of its slots.
fn full_carrier() -> Result<Vec<Row>, Unplayable> {
    const MILLIS: u64 = 10_000;
    let mut rows = Vec::new();
    for (usable_slots, name, mbit_s) in [(1.0, "all slots", 18.336), (0.85, "85 % of the slots", 15.5856)] {
        let mut rig = Rig::new(&CellConfig { usable_slots, ..fixed(0.0)? }, &[standing(50.0, um())], 1)?;
        rig.saturate(&[0], 1460, MILLIS);
        let bits = rig.cell.scheduled_bits(0, DOWN) as f64;
        rows.push(Row::exact(format!("P-5: MAC, {name}, Mbit/s"), mbit_s, bits / (MILLIS as f64 * 1e3)));
        let goodput = rig.mbit_s(Time::ZERO);
        rows.push(Row::within_percent(format!("P-5: IP, {name}, Mbit/s"), mbit_s, goodput, 3.0));
    }
    Ok(rows)
}
