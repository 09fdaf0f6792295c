//! LTE cells of OpenAirInterface: MELD (Diarra 2022 section 4.3; 003) and RAPID (Diarra 2022 section 5.4).

use ranpace_phy::{Both, LteBandwidth, LteMcs, McsRule};
use ranpace_radio::cell::{
    AdaptationConfig, Air, CellConfig, ChannelConfig, ControlChannels, Errors, FadingConfig, Place,
    UserConfig,
};
use ranpace_radio::channel::{Carrier, PathLoss, Position, Receiver, Sight};
use ranpace_radio::harq::HarqConfig;
use ranpace_radio::rlc::{BearerConfig, Config, Format, Timers};
use ranpace_radio::scheduler::{Alloc, Policy};
use ranpace_radio::uplink::{AccessConfig, Power, PowerControl};
use ranpace_units::{Bytes, Span};

use super::{BASE, ComparisonSetup, GTP, Preset, Wired, am};

/// Ours: with 15 ms of radio (an immediate scheduling request, 8 ms to the PUSCH, decoding) the minimum round trip is the 55 ms
/// that 003 states.
const MELD_WIRED: [Wired; 2] = [
    Wired { to: "core", rate: "1Gbit/s", delay: Span::from_millis(20), overhead: Bytes::ZERO },
    Wired { to: BASE, rate: "1Gbit/s", delay: Span::ZERO, overhead: GTP },
];

/// 10 ms on the server's side and 4 ms before the base station, in each direction (the authors' deployment files), 1 Gbit/s;
/// together with the radio this gives the 50 ms of section 5.4.
const RAPID_WIRED: [Wired; 2] = [
    Wired { to: "core", rate: "1Gbit/s", delay: Span::from_millis(10), overhead: Bytes::ZERO },
    Wired { to: BASE, rate: "1Gbit/s", delay: Span::from_millis(4), overhead: GTP },
];

pub(super) const MELD: Preset = Preset {
    name: "meld-oai",
    about: "5 MHz LTE cell of MELD's testbed: one user, RLC UM, buffer 1 MB, 0.8 % residual block loss, RTT 55 ms",
    source: "Diarra 2022, Table 4.1 and section 4.3",
    config: meld,
    user: meld_user,
    // QUIC packets of 1440 B (Table 4.1), plus the headers of UDP and IPv4.
    around: ComparisonSetup {
        wired: &MELD_WIRED,
        users: 1,
        is_upload: false,
        flow: "mtu = \"1468B\"\n",
        more: "",
    },
};

pub(super) const RAPID: Preset = Preset {
    name: "rapid-oai",
    about: "5 MHz LTE cell of RAPID's testbed: one user, RLC AM, buffer 1 MB, 16 Mbit/s, RTT 50 ms",
    source: "Diarra 2022, section 5.4",
    config: rapid,
    user: rapid_user,
    around: ComparisonSetup { wired: &RAPID_WIRED, users: 1, is_upload: false, flow: "", more: "" },
};

/// A cell that uses one MCS for every grant regardless of the channel, as for a UE next to its base station.
fn testbed(usable_slots: f64, errors: Errors) -> CellConfig {
    CellConfig {
        // 25 PRBs; MCS 28, whose blocks have 2292 B (Table 4.1).
        air: Air::Lte { band: LteBandwidth::Mhz5.prbs() },
        channel: ChannelConfig {
            position: Position::default(),
            // Band 7, as in OpenAirInterface's configuration files; ours. The MCS is fixed, so it has no effect.
            carrier: Both {
                downlink: Carrier::BAND_7,
                uplink: Carrier::from_hz(2.54e9).unwrap_or(Carrier::BAND_7),
            },
            loss: PathLoss::Friis,
            sight: Sight::Clear,
            shadowing: None,
            fading: FadingConfig::Steady,
            base_power_dbm: 20.0,
            gain_db: 0.0,
            receiver: Both { downlink: Receiver::quiet(9.0), uplink: Receiver::quiet(5.0) },
        },
        // Reports every 8 ms (sections 4.2.1 and 5.4), MCS as in Table II of 003.
        adaptation: AdaptationConfig {
            rule: McsRule::Oai,
            fixed_mcs: Some(LteMcs::MAX),
            errors,
            ..AdaptationConfig::LTE
        },
        // 8 processes, at most 4 retransmissions: Table 4.1.
        harq: Both { downlink: HarqConfig::LTE, uplink: HarqConfig::LTE_UPLINK },
        // OpenAirInterface's own scheduler; with one user any policy gives the same.
        policy: Policy::PROPORTIONAL_FAIR,
        alloc: Alloc::Queue,
        usable_slots,
        control: ControlChannels::Free,
        access: AccessConfig::LTE,
        power: Power { control: PowerControl::THREE_GPP, most_dbm: 23.0 },
    }
}

/// Next to the base station: ours.
fn place() -> Place {
    Place::Static(Position::new(10.0, 0.0, 1.5))
}

fn meld() -> CellConfig {
    // A tenth of the first transmissions fails, the usual target of link adaptation. The base station reads a NACK as an ACK with
    // probability m, chosen such that 0.8 % of the blocks are lost, the loss of section 4.3: 0.1 m / (1 - 0.1 (1 - m)) = 0.008.
    // Both ours; 003 section I names such misread feedback. 0.85 of the 18.3 Mbit/s gives the 15 Mbit/s of Table 4.1.
    let mut config = testbed(0.85, Errors::Fixed(0.1));
    config.harq.downlink.misreading = 0.0726;
    // The experiments do not study the path of acknowledgements: the uplink loses nothing after HARQ (ours).
    config
}

fn meld_user() -> UserConfig {
    // UM, 1 MB: Table 4.1.
    let channel = Config { timers: Timers::UM, ..Config::um(Bytes::new(1_000_000)) };
    UserConfig { place: place(), recording: None, bearers: vec![BearerConfig::both(channel)] }
}

fn rapid() -> CellConfig {
    // 0.87 of the 18.3 Mbit/s gives the 16 Mbit/s of section 5.4. No errors: ours.
    testbed(0.87, Errors::Fixed(0.0))
}

fn rapid_user() -> UserConfig {
    // AM (section 5.4 has AM and UM), 1 MB; network timers, ours.
    let bearer = am(1_000_000, 1_000_000, Timers::TS36331, Format::Lte);
    UserConfig { place: place(), recording: None, bearers: vec![bearer] }
}
