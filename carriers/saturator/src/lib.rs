//! Records the delivery opportunities of a real link by keeping it busy, as the Saturator of Winstein, Sivaraman and
//! Balakrishnan does ("Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013,
//! section 4.1).
//!
//! [`send`] keeps enough packets in flight for a round trip of more than 750 ms but less than 3 s: then the link has a standing
//! queue, and whenever it could deliver something, it does. [`receive`] records when packets arrive. The decisions are made in
//! [`Sender`], [`Receiver`] and [`Window`], which use neither sockets nor clocks.
//!
//! It cannot be abused against third parties: an address that has not answered with what only a receiver at that address can know
//! gets nothing but a few small greetings; the receiver never answers with more bytes than it got; the window, the time and the
//! tolerated silence are bounded.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod message;
mod receiver;
mod sender;
mod sockets;
mod window;

pub use message::{Kind, Message};
pub use receiver::{Receiver, Recording};
pub use sender::{Ended, Sender};
pub use sockets::{SaturatorError, Status, receive, send};
pub use window::Window;
