//! Ranpace's congestion controls for programs that speak QUIC by [quinn].
//!
//! A control is named as in `ranpace list cc`, with its decorators and options. Each connection that is made with the factory gets a
//! control of its own:
//!
//! ```
//! use std::sync::Arc;
//! use quinn::TransportConfig;
//! use ranpace_quinn::Controls;
//!
//! let mut transport = TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new("cubic+c2tcp:target=50ms".parse::<Controls>()?));
//! // ServerConfig::transport_config(Arc::new(transport)), or ClientConfig's; nothing else changes.
//! # Ok::<(), ranpace_quinn::AlgorithmError>(())
//! ```
//!
//! Controls hear radio information, reports of receivers and proxies through [`ConnectionControl`], as in `ranpace-noq`, with the same adapter
//! behind it (`ranpace-quic`). But quinn tells its controllers less, and asks them for less:
//!
//! * **The window is all that a control sets.** quinn paces by itself, at 1.25 windows per RTT. A control that sets a pace of its own (BBR,
//!   CDBE, CDBEv2, DCIC, RAPID, Vivace and others) only has its window obeyed, which such a control makes large: use `ranpace-noq` for it.
//! * **Lost packets are a number of bytes.** Which they are is derived: the oldest ones in flight.
//! * **Packets have no numbers.** They are told apart by their time of sending and their size.
//! * **A reduction is never undone**: quinn does not say that a packet which counted as lost has arrived.
//! * **A control starts at the first acknowledgement**, and RTT samples include the time for which the receiver holds an
//!   acknowledgement back; both as in `ranpace-noq`. Packets that hold nothing but acknowledgements count as in flight for a moment.
#![forbid(unsafe_code)]

use std::any::Any;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quinn::Connection;
use quinn::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;
pub use ranpace_cc::{
    Algorithm, AlgorithmError, Allocation, PepReport, RadioHint, ReceiverReport, bw_report,
};
pub use ranpace_quic::reports;
use ranpace_quic::{Clock, Control, Stats};
use ranpace_units::{Bytes, Time};

/// Makes a control for each connection: a factory for [`quinn::TransportConfig::congestion_controller_factory`].
#[derive(Debug)]
pub struct Controls {
    controls: ranpace_quic::Controls,
    /// Connections so far.
    count: AtomicU64,
}

impl Controls {
    /// Makes controls of this kind. Their clock begins now.
    pub fn new(algorithm: Algorithm) -> Self {
        let controls = ranpace_quic::Controls::new(algorithm, Clock::new(Instant::now()));
        Self { controls, count: AtomicU64::new(0) }
    }
}

/// What they are, and their clock, by which [`RadioHint::measured_at`] and the like count.
impl Deref for Controls {
    type Target = ranpace_quic::Controls;

    fn deref(&self) -> &Self::Target {
        &self.controls
    }
}

impl FromStr for Controls {
    type Err = AlgorithmError;

    /// Reads a name with its decorators and options, such as `newreno+meld-me`.
    ///
    /// # Errors
    ///
    /// If there is no such control, decorator or option, or a value is out of its range: the message says what was expected.
    fn from_str(name: &str) -> Result<Self, AlgorithmError> {
        name.parse().map(Self::new)
    }
}

impl ControllerFactory for Controls {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Adapter {
            control: self.control(self.count.fetch_add(1, Ordering::Relaxed), current_mtu),
            clock: self.clock(),
        })
    }
}

/// quinn's controller: forwards to the shared control.
#[derive(Clone, Debug)]
struct Adapter {
    control: Control,
    clock: Clock,
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.control.on_batch_sent(self.clock.time(now), bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, _: &RttEstimator) {
        self.control.on_batch_packet_acked(self.clock.time(now), self.clock.time(sent), bytes);
    }

    fn on_end_acks(&mut self, now: Instant, _in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.control.on_batch_acked(self.clock.time(now), app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now, sent) = (self.clock.time(now), self.clock.time(sent));
        if lost_bytes == 0 {
            self.control.on_batch_marked(now, sent);
        } else {
            self.control.on_batch_lost(now, sent, lost_bytes, is_persistent_congestion);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.control.on_packet_size(new_mtu);
    }

    fn window(&self) -> u64 {
        self.control.settled_window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.control.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The control of a connection, to give it information and to look at it.
#[derive(Clone, Debug)]
pub struct ConnectionControl {
    connection: Connection,
    controls: Arc<Controls>,
}

impl ConnectionControl {
    /// The control of `connection`, which was made with `controls`.
    pub fn new(connection: Connection, controls: Arc<Controls>) -> Self {
        Self { connection, controls }
    }

    /// Passes on what a cell reports of the user. Its age is judged by [`RadioHint::measured_at`], see [`ranpace_quic::Controls::time`].
    ///
    /// Returns false if nobody heard it: the connection has another controller.
    pub fn on_radio(&self, hint: &RadioHint) -> bool {
        self.with(|control, now| control.on_radio(now, hint))
    }

    /// Passes on what the peer's receiver half has measured ([`reports`] has a format for DATAGRAM frames): for the client-driven
    /// controls. Returns false if nobody heard it.
    pub fn on_report(&self, report: &ReceiverReport) -> bool {
        self.with(|control, now| control.on_report(now, report))
    }

    /// Passes on what a proxy on the path has seen. Returns false if nobody heard it.
    pub fn on_pep(&self, report: &PepReport) -> bool {
        self.with(|control, now| control.on_pep(now, report))
    }

    /// Passes on what a proxy allots to this connection, or that it no longer does. Returns false if nobody heard it.
    pub fn on_allocation(&self, allocation: Option<Allocation>) -> bool {
        self.with(|control, now| control.on_allocation(now, allocation))
    }

    /// Counters of what was sent, acknowledged and lost; `None` if the connection has another controller.
    pub fn stats(&self) -> Option<Stats> {
        self.control().map(|control| control.stats())
    }

    /// Bytes that may be in flight; `None` as for [`Self::stats`].
    pub fn window(&self) -> Option<Bytes> {
        self.control().map(|control| control.window_bytes())
    }

    /// The control of the present path: after a migration to another address quinn has made a new one.
    fn control(&self) -> Option<Control> {
        let controller = self.connection.congestion_state().into_any();
        controller.downcast::<Adapter>().ok().map(|adapter| adapter.control)
    }

    fn with(&self, tell: impl FnOnce(&Control, Time)) -> bool {
        let Some(control) = self.control() else { return false };
        tell(&control, self.controls.time(Instant::now()));
        true
    }
}
