//! The extension: the description of a cell, records of users TTI by TTI, and subscriptions to them. Ours.
//!
//! | | |
//! |---|---|
//! | `GET /rni/v2/vendor/cell_config` | [`CellConfig`], a list |
//! | `GET /rni/v2/vendor/tti_meas?ue_ipv4_address=...` | [`TtiMeas`], the latest |
//! | `POST /rni/v2/subscriptions` | [`TtiMeasSubscription`] |
//!
//! A server without the extension refuses such a subscription; the client then falls back to the standard. PRBs are per TTI,
//! fractional where they are means; blocks are in bits, queues in bytes.

use ranpace_phy::{Both, Direction};
use serde::{Deserialize, Serialize};

use super::{AssociateId, Ecgi, TimeStamp};
use crate::{CellInfo, RadioHint, Technology};

/// The description of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CellConfig {
    /// The cell.
    pub ecgi: Ecgi,
    /// "lte", "nr" or "mmwave".
    pub technology: String,
    /// The table of the MCS: "36.213", "38.214-1", "38.214-2" (up to 256QAM), or "cqi".
    pub mcs_table: String,
    /// PRBs of the band.
    pub prbs: u16,
    /// Sub-carrier spacing in Hz.
    pub spacing_hz: u32,
    /// TTI in nanoseconds.
    pub tti_ns: u64,
    /// Whether each direction has a carrier of its own.
    pub fdd: bool,
    /// Share of the symbols that can carry data downlink.
    pub share_dl: f64,
    /// Share of the symbols that can carry data uplink.
    pub share_ul: f64,
    /// Whether symbols are allocated instead of PRBs.
    pub by_symbols: bool,
    /// Spatial layers.
    pub layers: u8,
    /// HARQ processes of a user downlink.
    pub harq_processes_dl: u8,
    /// HARQ processes of a user uplink.
    pub harq_processes_ul: u8,
}

impl CellConfig {
    /// The description of a cell.
    pub fn of(ecgi: Ecgi, info: &CellInfo) -> Self {
        let (technology, mcs_table) = match info.technology {
            Technology::Lte => ("lte", "36.213"),
            Technology::Nr { qam256: false } => ("nr", "38.214-1"),
            Technology::Nr { qam256: true } => ("nr", "38.214-2"),
            Technology::Mmwave => ("mmwave", "cqi"),
        };
        Self {
            ecgi,
            technology: technology.to_owned(),
            mcs_table: mcs_table.to_owned(),
            prbs: info.prbs,
            spacing_hz: info.spacing_hz,
            tti_ns: info.slot.as_nanos(),
            fdd: info.fdd,
            share_dl: info.share.downlink,
            share_ul: info.share.uplink,
            by_symbols: info.by_symbols,
            layers: info.layers,
            harq_processes_dl: info.harq_processes.downlink,
            harq_processes_ul: info.harq_processes.uplink,
        }
    }
}

/// One direction of a user.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkMeas {
    /// PRBs granted per TTI, mean of the period.
    pub prbs: f64,
    /// Unused PRBs of the cell per TTI, mean of the period.
    pub unused_prbs: f64,
    /// MCS of the last grant.
    pub mcs: u8,
    /// Largest block of the period in bits, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tbs_bits: Option<u32>,
    /// Bytes queued.
    pub queue_bytes: u64,
    /// Users with a grant in the last 100 ms.
    pub active_users: u16,
}

/// The record of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TtiMeas {
    /// The user.
    pub associate_id: AssociateId,
    /// Its cell.
    pub ecgi: Ecgi,
    /// When it was measured.
    pub time_stamp: TimeStamp,
    /// CQI: the latest in what the server sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cqi: Option<u8>,
    /// Whether it is in handover.
    pub handover: bool,
    /// Downlink.
    pub dl: LinkMeas,
    /// Uplink.
    pub ul: LinkMeas,
}

impl TtiMeas {
    /// From a user's hints of the same period.
    pub fn of(associate_id: AssociateId, ecgi: Ecgi, hints: &Both<RadioHint>) -> Self {
        let link = |direction: Direction| {
            let hint = &hints[direction];
            LinkMeas {
                prbs: hint.granted,
                unused_prbs: hint.unused,
                mcs: hint.mcs,
                tbs_bits: hint.tbs_bits,
                queue_bytes: hint.queue.get(),
                active_users: hint.active_users,
            }
        };
        let down = &hints.downlink;
        Self {
            associate_id,
            ecgi,
            time_stamp: TimeStamp::of(down.measured_at),
            cqi: down.cqi,
            handover: down.handover,
            dl: link(Direction::Downlink),
            ul: link(Direction::Uplink),
        }
    }
}

/// How records are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Posted to the callback's address.
    #[default]
    Callback,
    /// Over a web socket.
    Websocket,
    /// As datagrams of [`wire`](crate::wire), to the callback's host and port.
    UdpBinary,
    /// In a mapped [`table`](crate::shared_table).
    SharedMemory,
}

/// Direction of the blocks, queues and retransmissions in records of the feed; resources are of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedDirection {
    /// To the users.
    #[default]
    Downlink,
    /// From the users.
    Uplink,
}

impl From<FeedDirection> for Direction {
    fn from(direction: FeedDirection) -> Self {
        match direction {
            FeedDirection::Downlink => Self::Downlink,
            FeedDirection::Uplink => Self::Uplink,
        }
    }
}

impl From<Direction> for FeedDirection {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Downlink => Self::Downlink,
            Direction::Uplink => Self::Uplink,
        }
    }
}

/// A subscription to records. Several users or cells mean any of them; none means all that the application may see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TtiMeasSubscription {
    /// Callback address; the shared table needs none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub callback_reference: String,
    /// Users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub associate_id: Vec<AssociateId>,
    /// Cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ecgi: Vec<Ecgi>,
    /// Interval between two records, in microseconds; less than a TTI means every TTI.
    #[serde(rename = "period_us")]
    pub period_us: u64,
    /// Delivery.
    #[serde(default)]
    pub transport: Transport,
    /// Direction, for datagrams; the other transports have both.
    #[serde(default)]
    pub direction: FeedDirection,
    /// Whether only changed records are sent.
    #[serde(default)]
    pub delta: bool,
    /// Expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry_deadline: Option<TimeStamp>,
}
