//! The uplink of a cell: delay of scheduling requests, test P-8, and the range with `lena` power, test P-11.

use std::collections::BTreeMap;

use ranpace_phy::LteBandwidth;
use ranpace_units::{Span, Time};

use super::cell::{DOWN, Rig, UP, Unplayable, lte, or_why, standing, um};
use super::{Check, Row};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "lone pings", rows: || or_why(pings()) },
    Check { name: "uplinks over the distance", rows: || or_why(distance()) },
];

/// P-8: a ping every 101 ms; requests every 10 ms.
fn pings() -> Result<Vec<Row>, Unplayable> {
    const PINGS: u64 = 1000;
    let mut rig = Rig::new(&lte(LteBandwidth::Mhz20)?, &[standing(50.0, um())], 1)?;
    // Their durations in ms.
    let mut times = BTreeMap::new();
    for ping in 0..PINGS {
        rig.play_until(Time::from_millis(101 * ping));
        let sent = rig.now;
        rig.log.arrivals.clear();
        rig.send(0, UP, 84);
        // The answer leaves at the earliest opportunity.
        while rig.now < sent + Span::from_millis(60) {
            rig.play(1);
            if let [arrival] = rig.log.arrivals[..]
                && arrival.direction == UP
                && rig.cell.waiting(0, DOWN).is_zero()
            {
                rig.send(0, DOWN, 84);
            }
        }
        if let [_, back] = rig.log.arrivals[..] {
            *times.entry((back.at - sent).as_nanos()).or_insert(0_u64) += 1;
        }
    }
    let nanos = |nanos: Option<&u64>| nanos.map_or(f64::NAN, |nanos| *nanos as f64 / 1e6);
    let (least, most) = (nanos(times.keys().next()), nanos(times.keys().next_back()));
    let count = |count: Option<&u64>| count.map_or(f64::NAN, |count| *count as f64);
    Ok(vec![
        Row::within("P-8: spread of the times of lone pings, ms", 9.5, most - least, 0.5),
        Row::exact("P-8: different times of pings", 10.0, times.len() as f64),
        Row::exact("P-8: pings with the rarest time, of 1000", 100.0, count(times.values().min())),
        Row::exact("P-8: pings with the most frequent time, of 1000", 100.0, count(times.values().max())),
    ])
}

/// P-11: the grant at a distance, and whether packets arrive.
fn distance() -> Result<Vec<Row>, Unplayable> {
    let mut rows = Vec::new();
    for (metres, band, expected) in [
        (100.0, LteBandwidth::Mhz20, 14.0),
        (200.0, LteBandwidth::Mhz20, 4.0),
        (250.0, LteBandwidth::Mhz20, 2.0),
        (280.0, LteBandwidth::Mhz20, 0.0),
        (350.0, LteBandwidth::Mhz10, 0.0),
        (400.0, LteBandwidth::Mhz5, 0.0),
    ] {
        let mut rig = Rig::new(&lte(band)?, &[standing(metres, um())], 1)?;
        let mcs = rig.cell.probe(Time::ZERO, 0).and_then(|probe| probe.uplink.mcs);
        let prbs = band.prbs();
        let check = format!("P-11: uplink MCS at {metres} m, {prbs} PRBs");
        rows.push(Row::exact(check, expected, mcs.map_or(f64::NAN, f64::from)));
        let check = format!("P-11: uplink packets that come through at {metres} m, {prbs} PRBs, of 10");
        rows.push(Row::exact(check, 10.0, arrivals(metres, band)?));
    }
    let mut rig = Rig::new(&lte(LteBandwidth::Mhz20)?, &[standing(300.0, um())], 1)?;
    let grant = rig.cell.probe(Time::ZERO, 0).map_or(f64::NAN, |probe| f64::from(probe.uplink.mcs.is_some()));
    rows.push(Row::exact("P-11: uplink grants at 300 m, 100 PRBs", 0.0, grant));
    let none = arrivals(300.0, LteBandwidth::Mhz20)?;
    rows.push(Row::exact("P-11: uplink packets that come through at 300 m, 100 PRBs, of 10", 0.0, none));
    // The largest whole metre from which packets arrive.
    let (mut near, mut far) = (200, 400);
    while far - near > 1 {
        let middle = (near + far) / 2;
        if arrivals(middle.into(), LteBandwidth::Mhz20)? > 0.0 {
            near = middle;
        } else {
            far = middle;
        }
    }
    rows.push(Row::within("P-11: reach of the uplink, 100 PRBs, m", 290.0, near.into(), 10.0));
    Ok(rows)
}

/// Returns how many of ten packets arrive.
fn arrivals(metres: f64, band: LteBandwidth) -> Result<f64, Unplayable> {
    let mut rig = Rig::new(&lte(band)?, &[standing(metres, um())], 1)?;
    for _ in 0..10 {
        rig.send(0, UP, 60);
        rig.play(100);
    }
    rig.play(1000);
    Ok(rig.log.arrivals.len() as f64)
}
