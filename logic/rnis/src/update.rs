//! Updates that a source of radio information passes on: cells, users, slots, and rarer events.
//!
//! Numbers of cells and users are those of the source. [`lines`](crate::lines) writes and reads updates as lines of JSON.

use ranpace_phy::Both;
use ranpace_units::{Span, Time};

#[cfg(feature = "etsi")]
use crate::etsi::Notification;
use crate::identity::{AssociateId, Ecgi};
use crate::{BearerReport, CellInfo, Event, SlotReport, UserReport};

/// News of a base station. Times are those of the clock that its reader uses.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A cell, before its first slot, and whenever its description changes.
    Cell(Cell),
    /// A user, before the first slot in which it appears, and whenever its identity changes.
    User(User),
    /// What happened in one slot.
    Slot(Slot),
    /// A rare event.
    Event(Event),
    /// The class and the rates of a bearer; without this, a bearer is reported as a default bearer (QCI 9).
    Bearer(Bearer),
    /// Strengths of signals that a user measured (layer 3).
    Signal(Signal),
    /// The round trip of a user's timing advance.
    TimingAdvance {
        /// Number of the user.
        user: u32,
        /// Number of its cell.
        cell: u16,
        /// When it was measured.
        time: Time,
        /// To the user and back.
        round_trip: Span,
    },
    /// What no other update says, as the standard's notification: a change of carriers, a bearer on S1, a handover that is prepared,
    /// refused or cancelled. It is about one user, whom its identifiers name.
    #[cfg(feature = "etsi")]
    Notification(Box<Notification>),
}

impl Update {
    /// The number of the cell that it is about, if it is about one.
    pub fn cell(&self) -> Option<u16> {
        match self {
            Self::Cell(cell) => Some(cell.info.cell),
            Self::Slot(slot) => Some(slot.cell.cell),
            Self::Event(event) => Some(event.cell),
            Self::Bearer(bearer) => Some(bearer.cell),
            Self::Signal(signal) => Some(signal.cell),
            Self::TimingAdvance { cell, .. } => Some(*cell),
            Self::User(_) => None,
            #[cfg(feature = "etsi")]
            Self::Notification(_) => None,
        }
    }
}

/// A cell and its identity.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Number, technology, PRBs, TTI.
    pub info: CellInfo,
    /// Its global identity.
    pub ecgi: Ecgi,
}

/// A user and its identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its number in reports.
    pub user: u32,
    /// Name, for people; may be empty.
    pub name: String,
    /// Addresses, tunnels.
    pub ids: Vec<AssociateId>,
}

/// A slot, as [`SlotReport`] describes it, with its own rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The cell.
    pub cell: CellInfo,
    /// Number of the slot, from the beginning.
    pub slot: u64,
    /// When the slot began.
    pub time: Time,
    /// Symbols that could carry data.
    pub symbols: Both<u8>,
    /// PRBs used.
    pub used_prbs: Both<f32>,
    /// Users with data to send.
    pub active_users: Both<u16>,
    /// Users, by number.
    pub users: Vec<UserReport>,
    /// Their bearers, in the same order.
    pub bearers: Vec<BearerReport>,
    /// Whether all users of the cell are included.
    pub full: bool,
}

impl Slot {
    /// Copies a report.
    pub fn of(report: &SlotReport<'_>) -> Self {
        Self {
            cell: *report.cell,
            slot: report.slot,
            time: report.time,
            symbols: report.symbols,
            used_prbs: report.used_prbs,
            active_users: report.active_users,
            users: report.users.to_vec(),
            bearers: report.bearers.to_vec(),
            full: report.full,
        }
    }

    /// The slot as a report.
    pub fn report(&self) -> SlotReport<'_> {
        SlotReport {
            cell: &self.cell,
            slot: self.slot,
            time: self.time,
            symbols: self.symbols,
            used_prbs: self.used_prbs,
            active_users: self.active_users,
            users: &self.users,
            bearers: &self.bearers,
            full: self.full,
        }
    }
}

/// A bearer's quality of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    /// Number of the user.
    pub user: u32,
    /// Number of its cell.
    pub cell: u16,
    /// Number of the bearer.
    pub bearer: u8,
    /// When this began or changed.
    pub time: Time,
    /// Class; TS 23.203, table 6.1.7.
    pub qci: u8,
    /// Guaranteed and maximum rates in bit/s, if it has any.
    pub rates: Option<BearerRates>,
    /// False if it was released.
    pub present: bool,
}

/// Rates of a bearer, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BearerRates {
    /// Guaranteed.
    pub guaranteed: Both<u64>,
    /// At most.
    pub maximum: Both<u64>,
}

/// Signals that a user measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// Number of the user.
    pub user: u32,
    /// Number of its serving cell.
    pub cell: u16,
    /// When they were measured.
    pub time: Time,
    /// The serving cell's.
    pub serving: Strength,
    /// Neighbours', by their identity.
    pub neighbours: Vec<(Ecgi, Strength)>,
}

/// Strength of a cell's reference signal at a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strength {
    /// RSRP in dBm.
    pub rsrp_dbm: f64,
    /// RSRQ in dB.
    pub rsrq_db: f64,
    /// SINR in dB, where it is known.
    pub sinr_db: Option<f64>,
}
