//! Ranpace's congestion controls for programs that speak QUIC by [noq].
//!
//! A control is named as in `ranpace list cc`, with its decorators and options. Each connection that is made with the factory gets a
//! control of its own:
//!
//! ```
//! use std::sync::Arc;
//! use noq::TransportConfig;
//! use ranpace_noq::Controls;
//!
//! let mut transport = TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new("cubic+c2tcp:target=50ms".parse::<Controls>()?));
//! // ServerConfig::transport_config(Arc::new(transport)), or ClientConfig's; nothing else changes.
//! # Ok::<(), ranpace_noq::AlgorithmError>(())
//! ```
//!
//! That is all for a control that needs no information from outside. Others hear it through [`ConnectionControl`]: what a base
//! station reports of the user (MELD, SIGMA, DCIC), what a receiver measured (CDBE and its like), what a proxy on the path has seen
//! (Multi-Domain control), and what a proxy allots (RAPID). [`reports`] has both ends of what receivers measure.
//!
//! The adapter is the one of the simulator (`ranpace-quic`), so a control decides here as it decides there. Three things differ. The
//! control starts at the first acknowledgement instead of the end of the handshake. noq does not tell a controller its estimate of
//! the RTT before it has asked for the window, so RTT samples include the delay of the receiver's acknowledgements, 25 ms at most.
//! Deadlines of controls that have a clock of their own (Sprout, Verus, Vivace) run when noq next reports a packet.
#![forbid(unsafe_code)]

pub mod reports;

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use noq::congestion::{Controller, ControllerFactory};
use noq::{Connection, PathId};
pub use ranpace_cc::{
    Algorithm, AlgorithmError, Allocation, PepReport, RadioHint, ReceiverReport, bw_report,
};
use ranpace_quic::{Adapter, Clock, Control, Stats};
use ranpace_units::{Bytes, Time};

/// Makes a control for each connection: a factory for [`noq::TransportConfig::congestion_controller_factory`].
#[derive(Debug)]
pub struct Controls {
    algorithm: Algorithm,
    clock: Clock,
    /// Seed of the next control's random choices.
    seed: AtomicU64,
}

impl Controls {
    /// Makes controls of this kind.
    ///
    /// Random choices (which few controls make) are the same in every process that makes its connections in the same order.
    pub fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, clock: Clock::new(Instant::now()), seed: AtomicU64::new(0) }
    }

    /// The time of `instant` on the clock of these controls, which [`RadioHint::measured_at`] and the like count by. Instants
    /// before the factory was made are [`Time::ZERO`].
    pub fn time(&self, instant: Instant) -> Time {
        self.clock.time(instant)
    }
}

impl FromStr for Controls {
    type Err = AlgorithmError;

    /// Reads a name with its decorators and options, such as `newreno+meld-me` or `cdbev2:guard=on`.
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
        let control = self.algorithm.build(self.seed.fetch_add(1, Ordering::Relaxed));
        Control::driven_by_noq(control, Bytes::new(current_mtu.into()), self.clock).controller()
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

    /// Passes on what a cell reports of the user. Its age is judged by [`RadioHint::measured_at`], see [`Controls::time`].
    ///
    /// Returns false if nobody heard it: the connection has another controller, or its path is closed.
    pub fn on_radio(&self, hint: &RadioHint) -> bool {
        self.with(|control, now| control.on_radio(now, hint))
    }

    /// Passes on what the peer's receiver half has measured ([`ranpace_cc::bw_report`] encodes a rate), however it came here: for
    /// the client-driven controls. Returns false if nobody heard it.
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

    /// Counters of what was sent, acknowledged and lost; `None` if the connection has another controller, or its path is closed.
    pub fn stats(&self) -> Option<Stats> {
        self.control().map(|control| control.stats())
    }

    /// Bytes that may be in flight; `None` as for [`Self::stats`].
    pub fn window(&self) -> Option<Bytes> {
        self.control().map(|control| control.window_bytes())
    }

    /// The control of the present path: after a migration to another address noq has made a new one.
    fn control(&self) -> Option<Control> {
        let controller = self.connection.congestion_state(PathId::ZERO)?.into_any();
        controller.downcast::<Adapter>().ok().map(|adapter| adapter.control())
    }

    fn with(&self, tell: impl FnOnce(&Control, Time)) -> bool {
        let Some(control) = self.control() else { return false };
        tell(&control, self.controls.time(Instant::now()));
        true
    }
}
