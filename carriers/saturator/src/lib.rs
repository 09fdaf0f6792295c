//! Records the delivery opportunities of a real link by keeping it busy, as the Saturator of Winstein, Sivaraman and
//! Balakrishnan does ("Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013,
//! section 4.1).
//!
//! [`send`] keeps so many packets under way that their round trip takes more than 750 ms but less than 3 s: then a queue
//! stands before the link, and whenever the link could deliver something, it does. [`receive`] notes when packets arrive.
//! What is decided is in [`Sender`], [`Receiver`] and [`Window`], which know neither sockets nor clocks.
//!
//! It cannot be turned against others: nothing but greetings, a few and small, goes to an address that has not answered
//! them with what only a receiver of that address can know; the receiver answers nothing with more bytes than it got; the
//! window, the time and the silence that is borne are bounded.
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
