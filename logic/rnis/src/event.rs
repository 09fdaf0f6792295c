//! Rare events of a cell.

use ranpace_phy::Direction;
use ranpace_units::Time;

/// An event in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event.
    pub time: Time,
    /// Number of the cell.
    pub cell: u16,
    /// Number of the user.
    pub user: u32,
    /// Kind of event.
    pub kind: EventKind,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The cell serves the user from now on.
    Attached,
    /// The cell no longer serves the user.
    Detached,
    /// A bearer was set up.
    BearerSetUp {
        /// Its number.
        bearer: u8,
    },
    /// A bearer's RLC reached its limit of retransmissions of a PDU; TS 36.322 clause 5.2.1.
    BearerFailed {
        /// Its number.
        bearer: u8,
        /// Direction.
        direction: Direction,
    },
    /// The user has left for another cell; no cell serves it.
    HandoverBegun {
        /// Number of the other cell.
        to: u16,
    },
    /// The user came from another cell.
    HandoverCompleted {
        /// Number of the other cell.
        from: u16,
    },
}
