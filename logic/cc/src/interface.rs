//! The interface of a congestion control, what it observes and what it sets: three traits and their events.
//!
//! * [`CongestionControl`]: every control of a sender.
//! * [`LossBased`]: what decorators (C2TCP, MELD) need of the control they wrap.
//! * [`ReceiverHalf`]: measures at the receiver and reports to the sender (Sprout's forecast, CDBE).
//!
//! Windows are in segments of [`Context::mss`] bytes, as floats, because the published algorithms are
//! defined that way; an endpoint sends while whole segments fit. Time is always an argument. `docs/cc-interface.md` has the
//! table of mechanisms and hooks.
//!
//! Order of the calls for one arriving acknowledgement (C2TCP's specification, section 7):
//! 1. the packets it covers are removed: [`CongestionControl::on_packet`] for each, if the control asks for it;
//! 2. [`CongestionControl::on_sample`], with the RTT, before anything is declared lost;
//! 3. losses are detected: [`CongestionControl::on_packet`] each, then [`CongestionControl::on_congestion`];
//! 4. [`CongestionControl::on_ack`], unless PRR owns the window ([`CongestionControl::owns_recovery`]);
//! 5. the endpoint sends what [`Window`] now allows.
//!
//! A report carried by an acknowledgement precedes all of these ([`CongestionControl::on_report`]); the end or the undoing of
//! a recovery comes between 2 and 3, an ECN mark's [`CongestionControl::on_congestion`] between 3 and 4.

mod control;
mod events;
mod receiver;
mod report;
mod window;

#[cfg(test)]
mod tests;

pub use ranpace_rnis::{ControlChannel, RadioHint};

pub use self::control::{CongestionControl, LossBased, View};
pub use self::events::{
    Ack, Allocation, Congestion, Context, EcnUse, LossResponse, Packet, PacketOutcome, PathMemory, PepReport,
    RateSample, Sample, Sending, Sent, Signal, State,
};
pub use self::receiver::{Received, ReceiverHalf};
pub use self::report::ReceiverReport;
pub use self::window::{Pacing, Window};
