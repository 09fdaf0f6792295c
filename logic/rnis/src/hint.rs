//! What a mechanism is told of the user behind a connection.

use ranpace_phy::{Direction, TransportBlock};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::CellInfo;

/// Radio information about the user behind a connection, in one direction: a hint that may be missing, stale or false.
///
/// Resources are counted in PRBs per TTI; where a cell gives out symbols, a grant of some of them counts in proportion, so
/// that `cell` is all there is in every technology.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioHint {
    /// When it was measured, not when it came.
    pub measured_at: Time,
    /// The cell that serves the user.
    pub info: CellInfo,
    /// Scheduling interval.
    pub tti: Span,
    /// Largest transport block of the reporting period, in bits; `None` if none was scheduled in it.
    pub tbs_bits: Option<u32>,
    /// PRBs granted to the user per TTI, mean of the reporting period.
    pub granted: f64,
    /// Most PRBs granted to the user in one TTI of the reporting period.
    pub most_granted: u16,
    /// PRBs of the cell per TTI.
    pub cell: u16,
    /// PRBs that nobody used per TTI, mean of the reporting period.
    pub unused: f64,
    /// Users with a grant in the last 100 ms.
    pub active_users: u16,
    /// CQI, 0 to 15, where one was measured in the reporting period.
    pub cqi: Option<u8>,
    /// MCS index of the last grant, 0 before there was one; see [`Technology`](crate::Technology).
    pub mcs: u8,
    /// Spatial layers of a grant.
    pub layers: u8,
    /// RLC transmit queue of the flow's bearer; of the whole user where the flow's is not known, and in the uplink as the
    /// base station knows it, if it is not the device itself that tells.
    pub queue: Bytes,
    /// What that queue can hold, where it is known.
    pub queue_limit: Option<Bytes>,
    /// A handover of the user is in progress.
    pub handover: bool,
    /// Rate of what the device sends before this connection's data (real-time UDP), mean of a second; zero where nothing
    /// goes first, or nobody knows.
    pub ahead: Rate,
}

impl RadioHint {
    /// Of a user of whom nothing is known but the cell.
    pub fn of(info: CellInfo, measured_at: Time) -> Self {
        Self {
            measured_at,
            tti: info.slot,
            cell: info.prbs,
            tbs_bits: None,
            granted: 0.0,
            most_granted: 0,
            unused: 0.0,
            active_users: 0,
            cqi: None,
            mcs: 0,
            layers: info.layers,
            queue: Bytes::ZERO,
            queue_limit: None,
            handover: false,
            ahead: Rate::ZERO,
            info,
        }
    }

    /// What a grant of so many PRBs (parts of the band, where symbols are given out) would carry in one full slot of this
    /// direction, with the MCS and the layers of the last grant; see [`CellInfo::block`].
    pub fn block(&self, direction: Direction, units: f64) -> TransportBlock {
        self.info.block(direction, self.mcs, self.layers, units)
    }

    /// The rate of such grants in every slot that the direction has, on average; see [`CellInfo::rate`].
    pub fn rate(&self, direction: Direction, units: f64) -> Rate {
        self.info.rate(direction, self.mcs, self.layers, units)
    }
}
