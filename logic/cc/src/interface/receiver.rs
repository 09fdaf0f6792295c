//! The receiver's side: what it sees of a data packet, and the trait of what it measures and reports.

use core::fmt::Debug;

use ranpace_rnis::RadioHint;
use ranpace_units::{Bytes, Span, Time};

use super::report::ReceiverReport;

/// A data packet as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// When it arrived.
    pub now: Time,
    /// Its place in the order of sending (datagram transport; TCP has none and gives `None`).
    pub number: Option<u64>,
    /// Payload.
    pub bytes: Bytes,
    /// Packet on the wire, headers included.
    pub wire: Bytes,
    /// The sender's timestamp.
    pub sent_at: Time,
    /// How long the sender says that it will be before the next packet; zero if more is queued (Sprout).
    pub time_to_next: Span,
    /// RTT as the receiver can tell it from echoed timestamps.
    pub rtt: Option<Span>,
}

/// The receiver's half of an algorithm: measures, and says what is to be reported.
pub trait ReceiverHalf: Debug + Send {
    /// The connection begins.
    fn on_start(&mut self, now: Time) {
        let _ = now;
    }

    /// Data arrived.
    fn on_data(&mut self, received: &Received);

    /// Whether [`Self::on_radio`] is wanted; the others do not pay for it.
    fn wants_radio(&self) -> bool {
        false
    }

    /// Whether [`Self::on_radio`] is wanted for qualities too: a CQI every 2 ms, measured whether or not something is granted.
    fn wants_quality(&self) -> bool {
        false
    }

    /// The device's own modem: once for each downlink grant (`tbs_bits` is its block, `granted` its PRBs, `tti` its slot;
    /// what HARQ sends again counts too) and each CQI that was measured (`cqi`); both may come in one call.
    fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        let _ = (now, hint);
    }

    /// When [`Self::on_deadline`] is to be called; `None` for never.
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// The deadline has come; true if a report is to be sent at once, without waiting for an acknowledgement.
    fn on_deadline(&mut self, now: Time) -> bool {
        let _ = now;
        false
    }

    /// What the acknowledgement that is about to leave carries.
    fn report(&mut self, now: Time) -> Option<ReceiverReport>;

    /// Shows named figures of the state for series and debugging.
    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let _ = show;
    }
}
