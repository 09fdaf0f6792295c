//! Prefetching: brings the state of a connection into the processor's cache before a packet for it is handled.
//!
//! With a thousand flows nearly every packet finds its connection's state outside the cache. The simulator therefore calls
//! these functions for the next packets of a link before it handles the first of them: each reads one field of each cache
//! line, and a processor overlaps many such reads. A step needs the results of the previous one, so each step is run for all
//! packets before the next begins. No result depends on these reads.
//!
//! Without prefetching, a thousand BBR flows over one link take 10 % more CPU time: the median of 21 pairs of runs, on one
//! kind of machine (`docs/performance.md`). Prefetching for deadlines of senders, for meters and in the emulator gained less
//! than 5 %, and was removed.

use std::hint::black_box;

use crate::receiver::Receiver;
use crate::sender::Sender;

/// Number of steps of [`sender`]; a [`receiver`] has only step 0.
pub const STEPS: usize = 3;

/// Runs a step for the state that an acknowledgement needs.
#[inline]
pub fn sender(sender: &Sender, step: usize) {
    black_box(match step {
        0 => sender.read_state(),
        1 => sender.board().read_records(),
        _ => sender.board().read_retransmission(),
    });
}

/// Runs a step for the state that a data segment needs.
#[inline]
pub fn receiver(receiver: &Receiver, step: usize) {
    if step == 0 {
        black_box(receiver.read_state());
    }
}
