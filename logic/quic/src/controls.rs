//! What the factories of both QUIC libraries have in common: a control for each connection, by one clock.

use std::time::Instant;

use ranpace_cc::Algorithm;
use ranpace_units::{Bytes, Time};

use crate::adapter::Control;
use crate::clock::Clock;

/// Makes controls of one kind.
#[derive(Debug)]
pub struct Controls {
    algorithm: Algorithm,
    clock: Clock,
}

impl Controls {
    /// Makes controls of this kind, whose time counts by this clock.
    pub fn new(algorithm: Algorithm, clock: Clock) -> Self {
        Self { algorithm, clock }
    }

    /// What they are, with decorators and options.
    pub fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// The time of `instant` on the clock of these controls, by which [`ranpace_cc::RadioHint::measured_at`] and the like count.
    /// Instants before the clock's beginning are [`Time::ZERO`].
    pub fn time(&self, instant: Instant) -> Time {
        self.clock.time(instant)
    }

    /// Their clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The control of a connection, whose full packets have this size at its beginning.
    ///
    /// Random choices (which few controls make) follow from the connection's number, so that they are the same in every process that makes its
    /// connections in the same order.
    pub fn control(&self, number: u64, packet: u16) -> Control {
        let control = self.algorithm.build(number);
        Control::driven_by_noq(control, Bytes::new(packet.into()), self.clock)
    }
}
