//! The members of the lines that `ranpace emulate --hints` writes (`hints.rs`) and other programs read (`hint_line.rs`). A member that is
//! not in a line has the value that says least.

use std::borrow::Cow;
use std::net::SocketAddr;

use ranpace_phy::Direction;
use ranpace_rnis::Technology;
use serde::{Deserialize, Serialize};

/// Radio information on a user.
#[derive(Debug, Deserialize, Serialize)]
pub struct RadioJson<'a> {
    /// Time of arrival and of measurement, in seconds since the beginning.
    pub at_s: f64,
    pub measured_at_s: f64,
    pub source: Origin,
    pub user: Cow<'a, str>,
    /// Grants and the edge's reports are of the downlink unless they say otherwise, what modems know is of the uplink.
    pub direction: Option<Way>,
    pub cqi: Option<u8>,
    #[serde(default)]
    pub mcs: u8,
    pub layers: u8,
    /// Largest transport block of the reporting period; the block of a grant.
    pub tbs_bits: Option<u32>,
    /// Length of a TTI; 1 ms without it.
    pub tti_s: Option<f64>,
    /// PRBs per TTI: granted to the user, unused, all of the cell.
    pub granted_prbs: f64,
    /// Most that the user was granted in one TTI.
    #[serde(default)]
    pub most_granted_prbs: u16,
    #[serde(default)]
    pub unused_prbs: f64,
    pub cell_prbs: u16,
    #[serde(default)]
    pub active_users: u16,
    #[serde(default)]
    pub queue_bytes: u64,
    pub queue_limit_bytes: Option<u64>,
    #[serde(default)]
    pub handover: bool,
    pub cell: Option<CellJson>,
}

/// The source of radio information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The edge's feed.
    Rnis,
    /// The device's modem, of its uplink and its channel.
    Modem,
    /// A downlink grant that the device's modem has decoded.
    Dci,
}

/// A direction of the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// To the device.
    Downlink,
    /// From the device.
    Uplink,
}

impl From<Direction> for Way {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Downlink => Self::Downlink,
            Direction::Uplink => Self::Uplink,
        }
    }
}

/// The cell: what is needed to work out the block of a grant. Pairs are of the downlink and the uplink.
#[derive(Debug, Deserialize, Serialize)]
pub struct CellJson {
    pub number: u16,
    pub technology: CellTechnology,
    /// Symbols of a slot.
    pub symbols: u8,
    pub fdd: bool,
    /// Mean share of a slot's symbols that can carry data.
    pub share: (f64, f64),
    pub data_symbols: (u8, u8),
    pub shared: bool,
    pub by_symbols: bool,
    /// Resource elements of a PRB that an NR grant loses.
    pub overhead: u8,
    pub harq_processes: (u8, u8),
}

/// The technology of a cell.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CellTechnology {
    Lte,
    Nr,
    /// NR with 256-QAM.
    Nr256,
    Mmwave,
}

impl From<Technology> for CellTechnology {
    fn from(technology: Technology) -> Self {
        match technology {
            Technology::Lte => Self::Lte,
            Technology::Nr { qam256: false } => Self::Nr,
            Technology::Nr { qam256: true } => Self::Nr256,
            Technology::Mmwave => Self::Mmwave,
        }
    }
}

impl From<CellTechnology> for Technology {
    fn from(technology: CellTechnology) -> Self {
        match technology {
            CellTechnology::Lte => Self::Lte,
            CellTechnology::Nr => Self::Nr { qam256: false },
            CellTechnology::Nr256 => Self::Nr { qam256: true },
            CellTechnology::Mmwave => Self::Mmwave,
        }
    }
}

/// The `source` of a line of a PEP.
pub const PEP: &str = "pep";

/// A verified report of a PEP on a TCP connection: sequence numbers as they are on the wire.
#[derive(Debug, Deserialize, Serialize)]
pub struct PepJson<'a> {
    #[serde(default)]
    pub at_s: f64,
    /// [`PEP`].
    pub source: Cow<'a, str>,
    /// Name of the PEP.
    #[serde(default)]
    pub pep: Cow<'a, str>,
    /// The ends of the connection.
    pub server: SocketAddr,
    pub user: SocketAddr,
    /// All below has passed; in a new epoch what is below is unknown.
    pub cumulative: u32,
    /// The ranges that have passed above: first sequence number, and one past the last; at most eight.
    pub ranges: Cow<'a, [(u32, u32)]>,
    /// From the newest packet's arrival at the PEP to the report.
    pub hold_s: f64,
    /// Packets with a congestion mark.
    pub marked: Option<u32>,
    pub new_epoch: bool,
}
