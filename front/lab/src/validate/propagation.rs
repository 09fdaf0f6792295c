//! The signal at a distance: test P-4, and ns-3's SINR and MCS over the distance.

use ranpace_phy::{CqiThresholds, McsRule};
use ranpace_radio::channel::{
    Average, Carrier, Fast, Mobility, PathLoss, Position, RadioPath, Receiver, Sight, Site, Transmitter,
    to_db,
};
use ranpace_units::Time;

use super::{Check, NS3_RATE_DISTANCE, Row};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "path loss at 28 GHz", rows: street_canyon },
    Check { name: "SINR over the distance", rows: downlink },
];

/// Twelve sub-carriers of 15 kHz.
const PRB_HZ: f64 = 180e3;

/// A site without fading, whose base station is this high above the origin.
fn site(carrier: Carrier, height_m: f64, transmitter: Transmitter, figure_db: f64, loss: PathLoss) -> Site {
    Site {
        position: Position::new(0.0, 0.0, height_m),
        carrier,
        transmitter,
        receiver: Receiver::quiet(figure_db),
        prb_hz: PRB_HZ,
        average: Average::Distance { loss, sight: Sight::Clear, shadowing: None },
        fast: Fast::Steady,
    }
}

/// Loss in dB and SINR as a ratio at a distance on the ground.
fn look(site: &Site, metres: f64, height_m: f64) -> (f64, f64) {
    let mut user = Mobility::Static(Position::new(metres, 0.0, height_m));
    let found = RadioPath::new(1, 0, 0).look(site, &mut user, Time::ZERO, &mut []);
    (found.loss_db, found.average_sinr)
}

/// P-4: 35 dBm over 200 MHz, noise figure 9 dB, no beam, as one block of 200 MHz; heights 10 and 1.5 m.
fn street_canyon() -> Vec<Row> {
    let sender = Transmitter { power_dbm: 35.0, gain_db: 0.0, prbs: 1 };
    let mut rows = Vec::new();
    for (metres, clear, loss_db, snr_db) in
        [(10.0, true, 84.8, 32.2), (100.0, true, 103.4, 13.6), (100.0, false, 123.9, -6.9)]
    {
        let (sight, name) = if clear { (Sight::Clear, "LOS") } else { (Sight::Blocked, "NLOS") };
        let loss = PathLoss::UmiStreetCanyon;
        let site = Site {
            prb_hz: 200e6,
            average: Average::Distance { loss, sight, shadowing: None },
            ..site(Carrier::GHZ_28, 10.0, sender, 9.0, loss)
        };
        let (loss, sinr) = look(&site, metres, 1.5);
        rows.push(Row::within(format!("P-4: path loss at {metres} m, {name}, dB"), loss_db, loss, 0.05));
        rows.push(Row::within(format!("P-4: SNR at {metres} m, {name}, dB"), snr_db, to_db(sinr), 0.05));
    }
    rows
}

/// ns-3's static user at its 17 distances.
fn downlink() -> Vec<Row> {
    let sender = Transmitter { power_dbm: 46.0, gain_db: 0.0, prbs: 100 };
    let site = site(Carrier::MHZ_2120, 0.0, sender, 9.0, PathLoss::COST231_NS3);
    let mut rows = Vec::new();
    let mut equal = 0;
    for ns3 in NS3_RATE_DISTANCE {
        let sinr_db = to_db(look(&site, ns3.metres, 0.0).1);
        rows.push(Row::within(format!("ns-3: SINR at {} m, dB", ns3.metres), ns3.sinr_db, sinr_db, 0.2));
        // ns-3 sends with MCS 0 at CQI 0; we do not send.
        let mcs = McsRule::Lena.mcs(CqiThresholds::Ns3.cqi(sinr_db)).map_or(0, |mcs| mcs.get());
        equal += u32::from(mcs == ns3.mcs);
    }
    rows.push(Row::within("ns-3: distances with its MCS, of 17", 17.0, equal.into(), 2.0));
    rows
}
