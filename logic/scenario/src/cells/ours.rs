//! Ranpace's own cells, the basis of a `[[cell]]` without a preset. All values without a citation are ours.

use ranpace_phy::{Both, Layers, LteBandwidth, Numerology, Prbs, QamTable};
use ranpace_radio::cell::{
    AdaptationConfig, Air, CellConfig, ChannelConfig, ControlChannels, Division, Duplex, FadingConfig,
    OuterLoop, Place, UserConfig,
};
use ranpace_radio::channel::{
    Carrier, DelayProfile, FadingSpeed, PathLoss, Position, Receiver, Shadowing, Sight,
};
use ranpace_radio::harq::HarqConfig;
use ranpace_radio::rlc::{Format, Timers};
use ranpace_radio::scheduler::{Alloc, Policy};
use ranpace_radio::uplink::{AccessConfig, Power, PowerControl};
use ranpace_units::{Bytes, Span};

use super::{BASE, ComparisonSetup, GTP, Preset, Wired, am, both};

/// A server in the same country, and a gateway near the base station.
const WIRED: [Wired; 2] = [
    Wired { to: "gateway", rate: "10Gbit/s", delay: Span::from_millis(10), overhead: Bytes::ZERO },
    Wired { to: BASE, rate: "1Gbit/s", delay: Span::from_millis(1), overhead: GTP },
];

/// A second user, nearer to the base station, who loads web pages.
const BACKGROUND: &str = "
[[user]]
name = \"neighbour\"
cell = \"cell\"
position = [100, 50]

[[flow]]
name = \"pages\"
from = \"server\"
to = \"neighbour\"
cc = \"cubic\"
workload = { kind = \"web\", page = \"3MB\", interval = \"4s\" }
";

const AROUND: ComparisonSetup =
    ComparisonSetup { wired: &WIRED, users: 1, is_upload: false, flow: "", more: BACKGROUND };

pub(super) const LTE: Preset = Preset {
    name: "lte",
    about: "20 MHz LTE cell in a town: one user at 300 m (EPA channel), and a second user who loads web pages",
    source: "ours",
    config: lte,
    user: lte_user,
    around: AROUND,
};

pub(super) const NR: Preset = Preset {
    name: "nr",
    about: "100 MHz 5G TDD cell at 3.5 GHz in a street: one user at 150 m, and a second user who loads web pages",
    source: "ours",
    config: nr,
    user: nr_user,
    around: AROUND,
};

fn lte() -> CellConfig {
    CellConfig {
        air: Air::Lte { band: LteBandwidth::Mhz20.prbs() },
        channel: ChannelConfig {
            position: Position::new(0.0, 0.0, 30.0),
            // Centre frequencies of band 1; TS 36.101 Table 5.5-1.
            carrier: Both {
                downlink: Carrier::from_hz(2.14e9).unwrap_or(Carrier::MHZ_2120),
                uplink: Carrier::from_hz(1.95e9).unwrap_or(Carrier::MHZ_1930),
            },
            // Heights of TR 36.942's macro cells.
            loss: PathLoss::Cost231 { base_m: 30.0, user_m: 1.5, extra_db: 0.0 },
            sight: Sight::Clear,
            shadowing: None,
            fading: FadingConfig::Multipath(DelayProfile::Epa, FadingSpeed::KM_H_3),
            // 46 dBm, 15 dB of antenna gain, noise figures of 9 and 5 dB: TR 36.942's macro cells (from memory).
            base_power_dbm: 46.0,
            gain_db: 15.0,
            // Interference from neighbouring cells raises the noise floor, by 10 dB in the downlink, where all base stations transmit.
            receiver: Both {
                downlink: Receiver { noise_rise_db: 10.0, ..Receiver::quiet(9.0) },
                uplink: Receiver { noise_rise_db: 3.0, ..Receiver::quiet(5.0) },
            },
        },
        // A CQI report every 8 ms, which can be used 8 ms later (000 section 4.2.1, TR 36.912); an error target of 10 %, as in networks.
        adaptation: AdaptationConfig { outer_loop: Some(OuterLoop::TEN_PERCENT), ..AdaptationConfig::LTE },
        harq: Both { downlink: HarqConfig::LTE, uplink: HarqConfig::LTE_UPLINK },
        policy: Policy::PROPORTIONAL_FAIR,
        alloc: Alloc::Queue,
        usable_slots: 1.0,
        control: ControlChannels::Narrow,
        access: AccessConfig::LTE,
        // Power class 3; TS 36.101 Table 6.2.2-1.
        power: Power { control: PowerControl::THREE_GPP, most_dbm: 23.0 },
    }
}

fn lte_user() -> UserConfig {
    UserConfig {
        place: Place::Static(Position::new(300.0, 0.0, 1.5)),
        recording: None,
        // 2 to 6 MB per bearer in LTE (004 section 3.2.2).
        bearers: vec![am(3_000_000, 1_000_000, Timers::TS36331, Format::Lte)],
    }
}

fn nr() -> CellConfig {
    // The band of the first 5G networks: n78 (TS 38.101-1 Table 5.2-1).
    let carrier = Carrier::from_hz(3.5e9).unwrap_or(Carrier::BAND_7);
    CellConfig {
        air: Air::Nr {
            // 100 MHz at 30 kHz; TS 38.101-1 Table 5.3.2-1.
            band: Prbs::new(273).unwrap_or(Prbs::MAX),
            numerology: Numerology::Khz30,
            table: QamTable::Qam256,
            layers: Layers::new(2).unwrap_or(Layers::MIN),
            overhead: 12,
            duplex: "DDDSU".parse().map_or(Duplex::Fdd, Duplex::Tdd),
            division: Division::Frequency,
        },
        channel: ChannelConfig {
            // Height of TR 38.901 Table 7.2-1's street canyon.
            position: Position::new(0.0, 0.0, 10.0),
            carrier: both(carrier),
            loss: PathLoss::UmiStreetCanyon,
            sight: Sight::Chance,
            shadowing: Some(Shadowing::UMI),
            fading: FadingConfig::Multipath(DelayProfile::Epa, FadingSpeed::KM_H_3),
            base_power_dbm: 44.0,
            gain_db: 15.0,
            receiver: Both {
                downlink: Receiver { noise_rise_db: 10.0, ..Receiver::quiet(9.0) },
                uplink: Receiver { noise_rise_db: 3.0, ..Receiver::quiet(5.0) },
            },
        },
        // A CQI report every 5 ms, which can be used four slots later.
        adaptation: AdaptationConfig { period: 10, delay: both(4), ..lte().adaptation },
        harq: both(HarqConfig::NR),
        access: AccessConfig::nr(2),
        ..lte()
    }
}

fn nr_user() -> UserConfig {
    UserConfig {
        place: Place::Static(Position::new(150.0, 0.0, 1.5)),
        recording: None,
        // 100 ms at the cell's highest rate.
        bearers: vec![am(10_000_000, 3_000_000, Timers { window: 2_048, ..Timers::TS36331 }, Format::Nr)],
    }
}
