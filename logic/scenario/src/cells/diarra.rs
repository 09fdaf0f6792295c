//! The millimetre-wave cells of Diarra 2022 in ns-3: SIGMA (section 3.2, Table 3.1) and RAPID (section 5.3, Table 5.1).

use std::sync::Arc;

use ranpace_phy::{Layers, Numerology, Prbs, QamTable};
use ranpace_radio::cell::{
    AdaptationConfig, Air, CellConfig, ChannelConfig, ControlChannels, Division, Duplex, FadingConfig, Place,
    UserConfig,
};
use ranpace_radio::channel::{
    Carrier, Flicker, PathLoss, Position, Receiver, STREET, STREET_BASE, STREET_IN_SIGHT,
    STREET_OUT_OF_SIGHT, Shadowing, Sight, Trajectory, Transmitter,
};
use ranpace_radio::harq::HarqConfig;
use ranpace_radio::rlc::{Format, Timers};
use ranpace_radio::scheduler::{Alloc, Policy};
use ranpace_radio::uplink::{AccessConfig, Power, PowerControl};
use ranpace_units::{Span, Time};

use super::{BASE, ComparisonSetup, GTP, Preset, Wired, am, both};

/// A link of 10 Gbit/s (Tables 3.1 and 5.1) with this delay.
const fn wired(delay: Span) -> [Wired; 1] {
    [Wired { to: BASE, rate: "10Gbit/s", delay, overhead: GTP }]
}

/// Segments of 1400 B (the authors' scripts; the tables say 1440 B), an acknowledgement for every three segments, buffers of 10 MiB.
const SIGMA_FLOW: &str =
    "mtu = \"1452B\"\nack_every = 3\nreceive_buffer_max = \"10MiB\"\nsend_buffer = \"10MiB\"\n";
/// The same with an acknowledgement for every two segments, ns-3's default.
const RAPID_FLOW: &str =
    "mtu = \"1452B\"\nack_every = 2\nreceive_buffer_max = \"10MiB\"\nsend_buffer = \"10MiB\"\n";

pub(super) const UPLINK: Preset = Preset {
    name: "diarra-mmwave-ul",
    about: "28 GHz cell of SIGMA's ns-3 experiments: one user in line of sight uploads, 900 Mbit/s, wired delay 10 ms",
    source: "Diarra 2022, Table 3.1 and section 3.2.5",
    config: sigma,
    user: || user(Place::Static(STREET_IN_SIGHT)),
    // The 10 ms of Table 3.1 are the wired delay (the authors' scripts): together with 0.5 ms of radio, 908.16 Mbit/s give the
    // 1.2 MB in flight of section 3.2.5.
    around: ComparisonSetup {
        wired: &wired(Span::from_millis(5)),
        users: 1,
        is_upload: true,
        flow: SIGMA_FLOW,
        more: "",
    },
};

pub(super) const IN_SIGHT: Preset = Preset {
    name: "diarra-mmwave-los",
    about: "28 GHz cell of RAPID's ns-3 experiments: one user in line of sight, 850 Mbit/s, wired round trip 1 ms",
    source: "Diarra 2022, Tables 5.1 and 5.2",
    config: rapid,
    user: || user(Place::Static(STREET_IN_SIGHT)),
    around: RAPID_AROUND,
};

pub(super) const OUT_OF_SIGHT: Preset = Preset {
    name: "diarra-mmwave-nlos",
    about: "28 GHz cell of RAPID's ns-3 experiments: one user walks behind buildings, wired round trip 1 ms",
    source: "Diarra 2022, Tables 5.1 and 5.3",
    config: rapid,
    user: || user(walk()),
    around: RAPID_AROUND,
};

/// The first of the server's round trips of 1, 2, 4 and 8 ms (section 5.3).
const RAPID_AROUND: ComparisonSetup = ComparisonSetup {
    wired: &wired(Span::from_micros(500)),
    users: 1,
    is_upload: false,
    flow: RAPID_FLOW,
    more: "",
};

/// The common part of both channels: 28 GHz (Tables 3.1 and 5.1).
fn channel(sight: Sight) -> ChannelConfig {
    ChannelConfig {
        // Position of the base station in the street (the authors' scripts).
        position: STREET_BASE,
        carrier: both(Carrier::GHZ_28),
        loss: PathLoss::UmiStreetCanyon,
        sight,
        // TR 38.901 Table 7.4.1-1; the transition over 10 m and the 2 dB per millisecond are ours.
        shadowing: Some(Shadowing::UMI),
        fading: FadingConfig::Flicker(Flicker::MMWAVE),
        // 35 dBm and a noise figure of 9 dB at both ends (the authors' scripts); the 64 by 16 antenna elements are a constant gain (inferred).
        base_power_dbm: 35.0,
        gain_db: Transmitter::MMWAVE_BEAM_DB,
        receiver: both(Receiver::quiet(9.0)),
    }
}

/// CQI reports every 500 us, which is `period` slots (ns-3's module); a report can be used four slots later (ours).
fn adaptation(period: u64) -> AdaptationConfig {
    AdaptationConfig { period, delay: both(4), ..AdaptationConfig::LTE }
}

/// SIGMA's cell: 200 MHz, 24 symbols per 100 us, dynamic TDD by symbols, round robin (Table 3.1).
fn sigma() -> CellConfig {
    CellConfig {
        air: Air::Mmwave,
        channel: channel(Sight::Clear),
        adaptation: adaptation(5),
        harq: both(HarqConfig::MMWAVE),
        policy: Policy::RoundRobin,
        alloc: Alloc::Queue,
        usable_slots: 1.0,
        control: ControlChannels::Free,
        // A scheduling request every 100 us (Table 3.1).
        access: AccessConfig::MMWAVE,
        power: Power { control: PowerControl::Fixed, most_dbm: 35.0 },
    }
}

/// RAPID's cell: 200 MHz at 120 kHz, 132 PRBs (the authors' scripts), 14 symbols per 125 us, of which the 13 data symbols carry
/// 852.6 Mbit/s, the 850 of Table 5.1.
fn rapid() -> CellConfig {
    CellConfig {
        air: Air::Nr {
            band: Prbs::new(132).unwrap_or(Prbs::MAX),
            numerology: Numerology::Khz120,
            table: QamTable::Qam64,
            layers: Layers::MIN,
            // DMRS of 12 elements (the authors' scripts).
            overhead: 12,
            duplex: Duplex::Dynamic,
            division: Division::Symbols,
        },
        channel: channel(Sight::Buildings(STREET.into())),
        adaptation: adaptation(4),
        harq: both(HarqConfig::MMWAVE),
        policy: Policy::RoundRobin,
        alloc: Alloc::Queue,
        usable_slots: 1.0,
        control: ControlChannels::Free,
        // SIGMA's experiments use the same ns-3 module, so its access times apply here, rounded to slots: a scheduling request and a
        // buffer status report in each slot, one slot to the grant and one to the PUSCH. The radio adds 0.6 ms to a round trip
        // without queueing, as it does there.
        access: AccessConfig {
            sr_period: AccessConfig::MMWAVE.sr_period,
            sr_prohibit: AccessConfig::MMWAVE.sr_prohibit,
            sr_to_grant: AccessConfig::MMWAVE.sr_to_grant,
            grant_to_pusch: AccessConfig::MMWAVE.grant_to_pusch,
            bsr_period: AccessConfig::MMWAVE.bsr_period,
            ..AccessConfig::nr(8)
        },
        power: Power { control: PowerControl::Fixed, most_dbm: 35.0 },
    }
}

/// AM with 10 MB (Tables 3.1 and 5.1; RAPID's scripts switch AM off), timers of the authors' scripts, headers of
/// LTE's RLC, which ns-3's module uses.
fn user(place: Place) -> UserConfig {
    let bearer = am(10_000_000, 10_000_000, Timers::MMWAVE, Format::Lte);
    UserConfig { place, recording: None, bearers: vec![bearer] }
}

/// Walks towards +y at 1 m/s (the authors' scripts) to a point that no run reaches.
fn walk() -> Place {
    let Position { x, y, z } = STREET_OUT_OF_SIGHT;
    let far = Position::new(x, y + 100_000.0, z);
    match Trajectory::waypoints(Time::ZERO, 1.0, &[STREET_OUT_OF_SIGHT, far]) {
        Ok(path) => Place::Path(Arc::new(path)),
        Err(_) => Place::Static(STREET_OUT_OF_SIGHT), // unreachable: the points are finite and the speed is above zero
    }
}
