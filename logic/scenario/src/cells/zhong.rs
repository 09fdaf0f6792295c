//! The LTE cell of Zhong 2020 (004), simulated in ns-3 LENA: Tables 5.1 and 6.2.

use ranpace_phy::{Both, LteBandwidth};
use ranpace_radio::cell::{
    AdaptationConfig, Air, CellConfig, ChannelConfig, ControlChannels, FadingConfig, Place, UserConfig,
};
use ranpace_radio::channel::{
    Carrier, DelayProfile, Disc, FadingSpeed, PathLoss, Position, Receiver, Sight, WalkRule,
};
use ranpace_radio::harq::HarqConfig;
use ranpace_radio::rlc::{Format, Timers};
use ranpace_radio::scheduler::{Alloc, Policy};
use ranpace_radio::uplink::{AccessConfig, Power, PowerControl};
use ranpace_units::{Bytes, Span};

use super::{BASE, ComparisonSetup, GTP, Preset, Wired, am};

/// 10 Gbit/s (printed "GBps"): Tables 5.1 and 6.2.
const WIRED_RATE: &str = "10Gbit/s";

/// Links with this delay in ms from the server to the gateway; the gateway is at the base station, S1-U 0 ms (inferred).
const fn wired(ms: u64) -> [Wired; 2] {
    [
        Wired { to: "gateway", rate: WIRED_RATE, delay: Span::from_millis(ms), overhead: Bytes::ZERO },
        Wired { to: BASE, rate: WIRED_RATE, delay: Span::ZERO, overhead: GTP },
    ]
}

/// Segments with 1400 B of payload (inferred), plus the headers of IPv4 and TCP with timestamps; acknowledgements every two
/// segments or after 40 ms (section 6.5.1); a receive window that never limits (ours: TCP's largest).
const FLOW: &str = "mtu = \"1452B\"\nack_every = 2\nack_delay = \"40ms\"\nreceive_buffer_max = \"1GiB\"\n";

/// Five users (Tables 5.1 and 6.2) with one flow each.
const fn around(wired: &'static [Wired]) -> ComparisonSetup {
    ComparisonSetup { wired, users: 5, is_upload: false, flow: FLOW, more: "" }
}

pub(super) const CHAPTER_5: Preset = Preset {
    name: "zhong-lte-ch5",
    about: "20 MHz LTE cell of DCIC's ns-3 experiments: five pedestrians within 400 m, wired delay 30 ms",
    source: "Zhong 2020, Table 5.1",
    config,
    user,
    around: around(&wired(30)),
};

pub(super) const CHAPTER_6: Preset = Preset {
    name: "zhong-lte-ch6",
    about: "20 MHz LTE cell of CDBE's ns-3 experiments: five pedestrians within 400 m, wired delay 50 ms",
    source: "Zhong 2020, Table 6.2",
    config,
    user,
    around: around(&wired(50)),
};

/// The cell of the ns-3 LENA experiments; the one of 002 differs only in the channel.
pub(super) fn config() -> CellConfig {
    CellConfig {
        // 100 PRBs in each direction, FDD; one layer (ours: the source does not say).
        air: Air::Lte { band: LteBandwidth::Mhz20.prbs() },
        channel: ChannelConfig {
            // Antenna heights have no effect: LENA's path loss model has its own.
            position: Position::default(),
            // Tables 5.1 and 6.2.
            carrier: Both { downlink: Carrier::MHZ_2120, uplink: Carrier::MHZ_1930 },
            // COST231 as in ns-3.
            loss: PathLoss::COST231_NS3,
            sight: Sight::Clear,
            shadowing: None,
            // EPA (Table 6.2; "e-EPA" in Table 5.1); its trace in ns-3 is for 3 km/h.
            fading: FadingConfig::Multipath(DelayProfile::Epa, FadingSpeed::KM_H_3),
            // 46 dBm; noise figures 9 dB of users and 5 dB of the base station: Tables 5.1 and 6.2.
            base_power_dbm: 46.0,
            gain_db: 0.0,
            receiver: Both { downlink: Receiver::quiet(9.0), uplink: Receiver::quiet(5.0) },
        },
        // ns-3's error model and link adaptation: CQI each TTI, worst sub-band, control errors. A CQI can be used 8 ms later (000
        // section 4.2.1, TR 36.912), the base station's own measurement of the uplink 4 ms later (ours).
        adaptation: AdaptationConfig::NS3,
        // ns-3: three retransmissions.
        harq: Both {
            downlink: HarqConfig { max_retransmissions: 3, ..HarqConfig::LTE },
            uplink: HarqConfig { max_retransmissions: 3, ..HarqConfig::LTE_UPLINK },
        },
        // Tables 5.1 and 6.2; as in ns-3, including window and padding.
        policy: Policy::PROPORTIONAL_FAIR,
        alloc: Alloc::Full,
        usable_slots: 1.0,
        control: ControlChannels::Free,
        access: AccessConfig::LTE,
        // 24 dBm in Tables 5.1 and 6.2, which ns-3's power control limits to 23.
        power: Power { control: PowerControl::LENA, most_dbm: 24.0 },
    }
}

fn user() -> UserConfig {
    // A disc of 400 m (section 6.5.1; ours for chapter 5), a random walk at 1 to 5 m/s (Tables 5.1 and 6.2).
    let area =
        Disc { centre: Position::default(), radius_m: 400.0, spread: ranpace_radio::channel::Spread::Area };
    UserConfig {
        place: Place::Walk(WalkRule::pedestrian(area), None),
        recording: None,
        // AM; "1 Mb per flow" is 125 kB, in both directions (Tables 5.1 and 6.2, section 5.3.1).
        bearers: vec![am(125_000, 125_000, Timers::NS3, Format::Lte)],
    }
}
