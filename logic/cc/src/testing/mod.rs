//! Shared by the tests of several controls: a lean bottleneck for loss-based controls ([`testbed`]), one with pacing and
//! reports ([`fifo`]), and arbitrary sequences of events that must not break any control ([`torture`]).

pub(crate) mod fifo;
pub(crate) mod testbed;
mod torture;
