//! The members of lines, as `docs/rnis-sources.md` describes them; their values are not checked here.

use core::fmt;

use ranpace_phy::Direction;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

#[cfg(feature = "etsi")]
use crate::etsi::Notification;
use crate::identity::{AssociateId, Ecgi};

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Stream,
    Cell,
    User,
    Slot,
    Event,
    Bearer,
    Signal,
    TimingAdvance,
    #[cfg(feature = "etsi")]
    Notification,
    Missed,
    #[serde(other)]
    Other,
}

pub(super) enum Line {
    Stream(StreamLine),
    Cell(Box<CellLine>),
    User(UserLine),
    Slot(SlotLine),
    Event(EventLine),
    Bearer(BearerLine),
    Signal(Box<SignalLine>),
    TimingAdvance(AdvanceLine),
    #[cfg(feature = "etsi")]
    Notification(Box<Notification>),
    Missed(MissedLine),
    Other,
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named;
        impl<'de> Visitor<'de> for Named {
            type Value = Line;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object such as {\"slot\":{...}}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
                use serde::de::Error as _;
                let Some(name) = map.next_key::<Name>()? else {
                    return Err(A::Error::custom("an empty object; expected one such as {\"slot\":{...}}"));
                };
                let line = match name {
                    Name::Stream => Line::Stream(map.next_value()?),
                    Name::Cell => Line::Cell(map.next_value()?),
                    Name::User => Line::User(map.next_value()?),
                    Name::Slot => Line::Slot(map.next_value()?),
                    Name::Event => Line::Event(map.next_value()?),
                    Name::Bearer => Line::Bearer(map.next_value()?),
                    Name::Signal => Line::Signal(map.next_value()?),
                    Name::TimingAdvance => Line::TimingAdvance(map.next_value()?),
                    #[cfg(feature = "etsi")]
                    Name::Notification => Line::Notification(map.next_value()?),
                    Name::Missed => Line::Missed(map.next_value()?),
                    Name::Other => {
                        map.next_value::<IgnoredAny>()?;
                        Line::Other
                    }
                };
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(line)
            }
        }
        deserializer.deserialize_map(Named)
    }
}

#[derive(Deserialize)]
pub(super) struct StreamLine {
    pub(super) version: u32,
    #[serde(default)]
    pub(super) clock: Option<String>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TechnologyName {
    Lte,
    Nr,
    Nr256,
    Mmwave,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DirectionName {
    Downlink,
    Uplink,
}

impl DirectionName {
    pub(super) const fn direction(self) -> Direction {
        match self {
            Self::Downlink => Direction::Downlink,
            Self::Uplink => Direction::Uplink,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct CellLine {
    pub(super) cell: u16,
    pub(super) ecgi: Ecgi,
    pub(super) technology: TechnologyName,
    pub(super) prbs: u16,
    pub(super) spacing_hz: Option<u32>,
    pub(super) bandwidth_hz: Option<u64>,
    pub(super) slot_ns: Option<u64>,
    pub(super) symbols: Option<u8>,
    pub(super) fdd: Option<bool>,
    pub(super) share: Option<(f64, f64)>,
    pub(super) data_symbols: Option<(u8, u8)>,
    pub(super) shared: Option<bool>,
    pub(super) by_symbols: Option<bool>,
    pub(super) usable: Option<(f64, f64)>,
    pub(super) overhead: Option<u8>,
    pub(super) layers: Option<u8>,
    pub(super) harq_processes: Option<(u8, u8)>,
}

#[derive(Deserialize)]
pub(super) struct UserLine {
    pub(super) user: u32,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) ids: Vec<AssociateId>,
}

/// An object, or an array in this order. See `docs/rnis-sources.md`.
#[derive(Deserialize)]
pub(super) struct GrantLine {
    pub(super) mcs: u8,
    pub(super) prbs: u16,
    pub(super) tbs_bits: u32,
    #[serde(default)]
    pub(super) symbols: Option<u8>,
    #[serde(default)]
    pub(super) process: u8,
    #[serde(default)]
    pub(super) retransmission: bool,
    #[serde(default)]
    pub(super) padding: u64,
}

#[derive(Default, Deserialize)]
pub(super) struct LinkLine {
    #[serde(default)]
    pub(super) queue: u64,
    #[serde(default)]
    pub(super) head_of_line_ns: u64,
    #[serde(default)]
    pub(super) grant: Option<GrantLine>,
    #[serde(default)]
    pub(super) blocks: Option<u64>,
    #[serde(default)]
    pub(super) retransmissions: Option<u64>,
    #[serde(default)]
    pub(super) lost: Option<u64>,
    #[serde(default)]
    pub(super) scheduled_bits: Option<u64>,
    #[serde(default)]
    pub(super) scheduled_prb_symbols: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct RowLine {
    pub(super) user: u32,
    #[serde(default)]
    pub(super) rnti: u16,
    #[serde(default)]
    pub(super) cqi: u8,
    #[serde(default)]
    pub(super) cqi_age_ns: u64,
    #[serde(default)]
    pub(super) capacity: Option<f32>,
    #[serde(default)]
    pub(super) downlink: LinkLine,
    #[serde(default)]
    pub(super) uplink: LinkLine,
}

#[derive(Deserialize)]
pub(super) struct BearerRow {
    pub(super) user: u32,
    pub(super) bearer: u8,
    pub(super) direction: DirectionName,
    #[serde(default)]
    pub(super) queue: u64,
    #[serde(default)]
    pub(super) head_of_line_ns: u64,
    #[serde(default)]
    pub(super) buffer: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct SlotLine {
    pub(super) cell: u16,
    pub(super) slot: u64,
    #[serde(default)]
    pub(super) time_ns: Option<u64>,
    #[serde(default)]
    pub(super) symbols: Option<(u8, u8)>,
    #[serde(default)]
    pub(super) used_prbs: Option<(f32, f32)>,
    #[serde(default)]
    pub(super) active_users: Option<(u16, u16)>,
    #[serde(default)]
    pub(super) full: bool,
    #[serde(default)]
    pub(super) users: Vec<RowLine>,
    #[serde(default)]
    pub(super) bearers: Vec<BearerRow>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KindName {
    Attached,
    Detached,
    BearerSetUp,
    BearerFailed,
    HandoverBegun,
    HandoverCompleted,
}

#[derive(Deserialize)]
pub(super) struct EventLine {
    pub(super) cell: u16,
    pub(super) user: u32,
    #[serde(default)]
    pub(super) time_ns: Option<u64>,
    pub(super) kind: KindName,
    #[serde(default)]
    pub(super) bearer: Option<u8>,
    #[serde(default)]
    pub(super) direction: Option<DirectionName>,
    #[serde(default)]
    pub(super) to: Option<u16>,
    #[serde(default)]
    pub(super) from: Option<u16>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
pub(super) struct BearerLine {
    pub(super) cell: u16,
    pub(super) user: u32,
    pub(super) bearer: u8,
    #[serde(default)]
    pub(super) time_ns: Option<u64>,
    pub(super) qci: u8,
    #[serde(default)]
    pub(super) guaranteed: Option<(u64, u64)>,
    #[serde(default)]
    pub(super) maximum: Option<(u64, u64)>,
    #[serde(default = "yes")]
    pub(super) present: bool,
}

#[derive(Deserialize)]
pub(super) struct NeighbourLine {
    pub(super) ecgi: Ecgi,
    pub(super) rsrp_dbm: f64,
    pub(super) rsrq_db: f64,
    #[serde(default)]
    pub(super) sinr_db: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct SignalLine {
    pub(super) cell: u16,
    pub(super) user: u32,
    #[serde(default)]
    pub(super) time_ns: Option<u64>,
    pub(super) rsrp_dbm: f64,
    pub(super) rsrq_db: f64,
    #[serde(default)]
    pub(super) sinr_db: Option<f64>,
    #[serde(default)]
    pub(super) neighbours: Vec<NeighbourLine>,
}

#[derive(Deserialize)]
pub(super) struct AdvanceLine {
    pub(super) cell: u16,
    pub(super) user: u32,
    #[serde(default)]
    pub(super) time_ns: Option<u64>,
    pub(super) round_trip_ns: u64,
}

#[derive(Deserialize)]
pub(super) struct MissedLine {
    pub(super) lines: u64,
}
