//! What the tests of several controls share: a lean bottleneck for loss-based controls ([`testbed`]), one with pacing and
//! reports ([`fifo`]), and arbitrary sequences of events that no control may break on ([`torture`]).

pub(crate) mod fifo;
pub(crate) mod testbed;
mod torture;
