//! The receiver's side: a data packet as it sees it, and the trait of the half that measures and reports.

use core::fmt::Debug;

use ranpace_rnis::{ControlChannel, RadioHint};
use ranpace_units::{Bytes, Span, Time};

use super::report::ReceiverReport;

/// A data packet as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// When it arrived.
    pub now: Time,
    /// Its number in the order of sending (datagram transport; `None` for TCP, which has none).
    pub number: Option<u64>,
    /// Payload.
    pub bytes: Bytes,
    /// Packet on the wire, headers included.
    pub wire: Bytes,
    /// The sender's timestamp.
    pub sent_at: Time,
    /// The sender's announcement of the time until its next packet; zero if more is queued (Sprout).
    pub time_to_next: Span,
    /// RTT measured by the receiver from echoed timestamps.
    pub rtt: Option<Span>,
}

/// The receiver's half of an algorithm: measures, and produces the reports.
pub trait ReceiverHalf: Debug + Send {
    /// The connection begins.
    fn on_start(&mut self, now: Time) {
        let _ = now;
    }

    /// Data arrived.
    fn on_data(&mut self, received: &Received);

    /// Returns whether to call [`Self::on_radio`]; other halves avoid its cost.
    fn wants_radio(&self) -> bool {
        false
    }

    /// Returns whether to call [`Self::on_radio`] for channel quality too: a CQI every 2 ms, whether or not there is a grant.
    fn wants_quality(&self) -> bool {
        false
    }

    /// A report of the device's own modem: one per downlink grant (`tbs_bits` is its block, `granted` its PRBs, `tti` its
    /// slot; HARQ retransmissions count too) and per measured CQI (`cqi`); one call may carry both.
    fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        let _ = (now, hint);
    }

    /// Returns whether to call [`Self::on_cell`]: whether the half needs the messages of the serving cell's control channel to all
    /// users, which takes a decoder that ordinary devices lack.
    fn wants_cell(&self) -> bool {
        false
    }

    /// The downlink control channel of one slot of the serving cell, for every slot, whether or not anybody has a grant.
    fn on_cell(&mut self, now: Time, channel: &ControlChannel<'_>) {
        let _ = (now, channel);
    }

    /// When to call [`Self::on_deadline`]; `None` for never.
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// The deadline has come; returns true if a report must be sent at once, without waiting for an acknowledgement.
    fn on_deadline(&mut self, now: Time) -> bool {
        let _ = now;
        false
    }

    /// The report that the next acknowledgement carries.
    fn report(&mut self, now: Time) -> Option<ReceiverReport>;

    /// Shows named values of the state for series and debugging.
    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let _ = show;
    }
}
