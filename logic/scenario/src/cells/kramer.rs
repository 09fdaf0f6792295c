//! The LTE cell of Kraemer et al. (002), "On the Benefits of Multi-Domain Congestion Control", section III: ns-3 LENA.

use ranpace_phy::Both;
use ranpace_radio::cell::{CellConfig, ChannelConfig, FadingConfig, Place, UserConfig};
use ranpace_radio::channel::{Carrier, DelayProfile, FadingSpeed, PathLoss, Position, Receiver, Sight};
use ranpace_radio::rlc::{Format, Timers};
use ranpace_radio::uplink::{AccessConfig, Power, PowerControl};
use ranpace_units::{Bytes, Span};

use super::{BASE, ComparisonSetup, GTP, Preset, Wired, am, codel, zhong};

/// Server to PEP 10 ms (inferred from the completion times of its 500 kB flows), PEP to base station 1 ms (section III). The source
/// gives no rates; these are ours.
const WIRED: [Wired; 2] = [
    Wired { to: "pep", rate: "10Gbit/s", delay: Span::from_millis(10), overhead: Bytes::ZERO },
    Wired { to: BASE, rate: "10Gbit/s", delay: Span::from_millis(1), overhead: GTP },
];

/// The bursty background of section IV: three PPBP sources, 15 Mbit/s, bursts of 100 ms, three at a time, H 0.7; on other
/// users at the same distance (both ours: the source does not say).
const BACKGROUND: &str = "
[[user]]
name = \"other\"
cell = \"cell\"
count = 3

[[flow]]
name = \"background\"
from = \"server\"
to = \"other\"
transport = \"udp\"
workload = { kind = \"ppbp\", rate = \"15Mbit/s\", burst_mean = \"100ms\", active_mean = 3.0, hurst = 0.7 }
";

pub(super) const LTE: Preset = Preset {
    name: "kramer-lte",
    about: "20 MHz LTE cell of Multi-Domain's ns-3 experiments: EVA channel at 300 m, CoDel, bursty background traffic",
    source: "Kraemer et al., Table I and section IV",
    config,
    user,
    around: ComparisonSetup { wired: &WIRED, users: 1, is_upload: false, flow: "", more: BACKGROUND },
};

fn config() -> CellConfig {
    let lena = zhong::config();
    CellConfig {
        channel: ChannelConfig {
            // Band 7 (Table I); the uplink is 120 MHz below (TS 36.101 Table 5.7.4-1).
            carrier: Both {
                downlink: Carrier::BAND_7,
                uplink: Carrier::from_hz(2.54e9).unwrap_or(Carrier::BAND_7),
            },
            loss: PathLoss::Friis,
            sight: Sight::Clear,
            // EVA at 60 km/h; the other channel is EPA at 3 km/h.
            fading: FadingConfig::Multipath(DelayProfile::Eva, FadingSpeed::KM_H_60),
            // 30 dBm; noise 7 and 5 "dBm", read as noise figures (Table I).
            base_power_dbm: 30.0,
            receiver: Both { downlink: Receiver::quiet(7.0), uplink: Receiver::quiet(5.0) },
            ..lena.channel
        },
        // 10 dBm (Table I), the initial value of ns-3's power control.
        power: Power { control: PowerControl::LENA, most_dbm: 10.0 },
        // ns-3's UEs send no scheduling requests, and the source gives no period for this cell.
        access: AccessConfig { ideal_reports: true, ..lena.access },
        ..lena
    }
}

/// The limit under CoDel in bytes: ours, chosen such that it is never reached.
const LIMIT: u64 = 10_000_000;

fn user() -> UserConfig {
    let mut bearer = am(LIMIT, LIMIT, Timers::NS3, Format::Lte);
    // "CoDel in the RLC", with its target raised to 20 ms.
    bearer.downlink.buffer = codel(Span::from_millis(20), LIMIT);
    UserConfig {
        // 100, 200 and 300 m (Tables II and III); the long flows of section IV are at 300 m.
        place: Place::Static(Position::new(300.0, 0.0, 0.0)),
        recording: None,
        bearers: vec![bearer],
    }
}
