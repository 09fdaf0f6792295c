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

use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use noq::congestion::{Controller, ControllerFactory};
use noq::{Connection, PathId};
pub use ranpace_cc::{
    Algorithm, AlgorithmError, Allocation, PepReport, RadioHint, ReceiverReport, bw_report,
};
use ranpace_quic::{Adapter, Clock};
pub use ranpace_quic::{Control, Sample, Stats};
use ranpace_units::{Bytes, Time};

/// Makes a control for each connection: a factory for [`noq::TransportConfig::congestion_controller_factory`].
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
        self.control(self.count.fetch_add(1, Ordering::Relaxed), current_mtu).controller()
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

    /// Window, RTT, counters and the control's own values now, for a record over time; `None` as for [`Self::stats`].
    pub fn sample(&self) -> Option<Sample> {
        self.control().map(|control| Sample::of(&control))
    }

    /// The control of the present path: after a migration to another address noq has made a new one. `None` as for [`Self::stats`].
    pub fn control(&self) -> Option<Control> {
        let controller = self.connection.congestion_state(PathId::ZERO)?.into_any();
        controller.downcast::<Adapter>().ok().map(|adapter| adapter.control())
    }

    fn with(&self, tell: impl FnOnce(&Control, Time)) -> bool {
        let Some(control) = self.control() else { return false };
        tell(&control, self.controls.time(Instant::now()));
        true
    }
}
