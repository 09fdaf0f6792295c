//! The downlink control channel of a cell, as a device decodes it that reads the messages to all users and not only its own.
//!
//! Source: Xie, Yi, Jamieson, "PBE-CC: Congestion Control via Endpoint-Centric, Physical-Layer Bandwidth Measurements", SIGCOMM 2020. LTE's
//! messages are not encrypted; their checksum is masked with the C-RNTI of the user that they are for (TS 36.212 clause 5.3.3.2), so that each
//! can be told from the others, and nobody can be told from the number.

use ranpace_units::Time;

use crate::CellInfo;

/// RNTI of the messages about system information; TS 36.321 clause 7.1.
pub const SI_RNTI: u16 = 0xFFFF;

/// A message of the control channel: a downlink grant in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellGrant {
    /// The user, or [`SI_RNTI`].
    pub rnti: u16,
    /// PRBs times symbols.
    pub prb_symbols: u32,
    /// Size of the transport block.
    pub bits: u32,
    /// Whether it is a HARQ retransmission.
    pub again: bool,
}

/// The messages of one slot.
#[derive(Clone, Copy, Debug)]
pub struct ControlChannel<'a> {
    /// When the slot began, not when this arrived.
    pub measured_at: Time,
    /// The cell that serves the device.
    pub cell: &'a CellInfo,
    /// The device's C-RNTI there; `None` if it is not known yet.
    pub own: Option<u16>,
    /// PRBs times symbols that this slot has for downlink data; none in a slot of the uplink.
    pub available: u32,
    /// The messages, in any order.
    pub grants: &'a [CellGrant],
}
