//! The declaration of every algorithm and decorator: name, source, options, and how it is built.

use core::fmt;
use std::sync::Arc;

use crate::interface::{CongestionControl, LossBased, ReceiverHalf};
use crate::options::{OptionError, OptionInfo, Options};

/// Result of building an algorithm: a control that decorators may wrap, or one that they may not.
#[derive(Debug)]
pub enum Control {
    /// Loss-based: decorators may wrap it.
    LossBased(Box<dyn LossBased>),
    /// Any other control, which decorators may not wrap.
    Other(Box<dyn CongestionControl>),
}

/// Transport of an algorithm's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP connection.
    Tcp,
    /// Datagrams with feedback for each packet (Sprout, Verus).
    Datagram,
}

/// Builds a control from its options; the seed feeds its random choices. A control of a program that uses this library may carry
/// what it was made from.
pub type Build = dyn Fn(&mut Options, u64) -> Result<Control, OptionError> + Send + Sync;

/// Builds a receiver half from the options of its algorithm; `None` if it has none with these.
pub type BuildReceiver = fn(&mut Options) -> Result<Option<Box<dyn ReceiverHalf>>, OptionError>;

/// Wraps a control according to the options.
pub type Wrap = fn(Box<dyn LossBased>, &mut Options) -> Result<Box<dyn LossBased>, OptionError>;

/// Wraps a control in another one that sees every event and every response.
pub type ControlWrapper = Arc<dyn Fn(Box<dyn CongestionControl>) -> Box<dyn CongestionControl> + Send + Sync>;

/// The same for a receiver half.
pub type ReceiverWrapper = Arc<dyn Fn(Box<dyn ReceiverHalf>) -> Box<dyn ReceiverHalf> + Send + Sync>;

/// A listed algorithm.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// A description of one line.
    pub about: &'static str,
    /// The publication.
    pub source: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Its transport.
    pub transport: Transport,
    /// Whether decorators may wrap it: `build` then returns [`Control::LossBased`].
    pub loss_based: bool,
    /// Builds it; the seed feeds its random choices.
    pub build: &'static Build,
    /// Its receiver half, if it has one.
    pub receiver: Option<BuildReceiver>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({})", self.name)
    }
}

/// A listed decorator.
#[derive(Debug)]
pub struct Decorator {
    /// Its name.
    pub name: &'static str,
    /// A description of one line.
    pub about: &'static str,
    /// The publication.
    pub source: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Wraps a control.
    pub wrap: Wrap,
}
