//! What happens now and then.

use ranpace_phy::Direction;
use ranpace_units::Time;

/// Something that happened in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: Time,
    /// Number of the cell.
    pub cell: u16,
    /// Number of the user.
    pub user: u32,
    /// What.
    pub kind: EventKind,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The user is served by the cell from now on.
    Attached,
    /// The user is served by it no more.
    Detached,
    /// A bearer was set up.
    BearerSetUp {
        /// Its number.
        bearer: u8,
    },
    /// A bearer's RLC sent a PDU again as often as is allowed; TS 36.322 clause 5.2.1.
    BearerFailed {
        /// Its number.
        bearer: u8,
        /// Which way.
        direction: Direction,
    },
    /// The user is on its way to another cell: nobody serves it.
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
