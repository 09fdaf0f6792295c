//! What every algorithm and decorator declares about itself: its name, source, options, and how it is built.

use std::sync::Arc;

use crate::interface::{CongestionControl, LossBased, ReceiverHalf};
use crate::options::{OptionError, OptionInfo, Options};

/// What an algorithm's name builds: a control that decorators may wrap, or one that they may not.
#[derive(Debug)]
pub enum Control {
    /// Loss-based: decorators may wrap it.
    LossBased(Box<dyn LossBased>),
    /// Its own master.
    Other(Box<dyn CongestionControl>),
}

/// What carries an algorithm's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP connection.
    Tcp,
    /// Datagrams with feedback for each packet (Sprout, Verus).
    Datagram,
}

/// Builds a receiver half from the options of its algorithm.
pub type BuildReceiver = fn(&mut Options) -> Result<Box<dyn ReceiverHalf>, OptionError>;

/// Wraps a control according to the options.
pub type Wrap = fn(Box<dyn LossBased>, &mut Options) -> Result<Box<dyn LossBased>, OptionError>;

/// Puts something around a control: it sees every event and every answer.
pub type ControlWrapper = Arc<dyn Fn(Box<dyn CongestionControl>) -> Box<dyn CongestionControl> + Send + Sync>;

/// The same for a receiver half.
pub type ReceiverWrapper = Arc<dyn Fn(Box<dyn ReceiverHalf>) -> Box<dyn ReceiverHalf> + Send + Sync>;

/// An algorithm as it is listed.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// What carries it.
    pub transport: Transport,
    /// Whether decorators may wrap it: `build` then gives [`Control::LossBased`].
    pub loss_based: bool,
    /// Builds it; the seed feeds its random choices.
    pub build: fn(&mut Options, u64) -> Result<Control, OptionError>,
    /// Its receiver half, where it has one.
    pub receiver: Option<BuildReceiver>,
}

/// A decorator as it is listed.
#[derive(Debug)]
pub struct Decorator {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Wraps a control.
    pub wrap: Wrap,
}
