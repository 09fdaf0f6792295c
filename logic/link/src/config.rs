//! The configuration of a link: plain data, built from the scenario.

use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

use ranpace_units::{Bytes, Rate, Span};

use crate::{LightService, Trace};

/// A one-way link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// The server of the queue.
    pub service: Service,
    /// The queue. Unused with [`Service::Unlimited`], where no packet waits.
    pub queue: QueueConfig,
    /// Propagation delay, from the last byte leaving the server to arrival.
    pub delay: Span,
    /// Jitter added to the delay, drawn for each packet.
    pub jitter: Jitter,
    /// Loss before the queue.
    pub loss: Loss,
    /// Reordering: packets that may be overtaken.
    pub reorder: Option<Reorder>,
    /// What was recorded under light load, in front of the queue; for a trace that was recorded under heavy load.
    pub light: Option<LightService>,
}

impl LinkConfig {
    /// A link without jitter, loss and reordering.
    pub fn new(service: Service, queue: QueueConfig, delay: Span) -> Self {
        Self { service, queue, delay, jitter: Jitter::None, loss: Loss::None, reorder: None, light: None }
    }
}

/// How a link serves its queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// No waiting: the link has a delay and no bottleneck.
    Unlimited,
    /// One packet at a time, each taking its size divided by this rate.
    Fixed(Rate),
    /// At the delivery opportunities of a trace.
    Trace(TraceService),
}

/// A trace and how it is played. The trace starts at [`ranpace_units::Time::ZERO`].
#[derive(Clone, Debug, PartialEq)]
pub struct TraceService {
    /// The delivery opportunities.
    pub trace: Arc<Trace>,
    /// Whether the trace repeats; otherwise nothing leaves the queue after its end.
    pub repeat: bool,
    /// Capacity factor, dimensionless; 1 plays the trace unchanged. The number of opportunities up to any
    /// instant is that of the trace, times this, rounded down: fractions carry over, also from one
    /// repetition to the next. Stored as a multiple of 2^-32; negative values and NaN give no capacity.
    pub scale: f64,
    /// Bytes that one opportunity carries; 1504 B in mahimahi.
    pub opportunity: Bytes,
    /// Overhead of each packet; 4 B in mahimahi (the header of its TUN device).
    pub overhead: Bytes,
}

impl TraceService {
    /// Plays `trace` as mahimahi's `mm-link` does: repeating, 1504 B per opportunity, 4 B per packet.
    pub fn new(trace: Arc<Trace>) -> Self {
        Self { trace, repeat: true, scale: 1.0, opportunity: Bytes::new(1504), overhead: Bytes::new(4) }
    }
}

/// How the router knows that more could be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbcForm {
    /// By the link's capacity.
    #[default]
    Capacity,
    /// By unused opportunities, as in the authors' code.
    Authors,
}

/// A queue's kind and settings.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out; packets that do not fit are dropped.
    DropTail {
        /// Its limit.
        limit: Limit,
        /// ECN-capable packets that find more than this waiting are marked; `None` marks none.
        ecn: Option<Bytes>,
    },
    /// CoDel (RFC 8289).
    CoDel {
        /// Its limit.
        limit: Limit,
        /// Acceptable standing delay.
        target: Span,
        /// Sliding window of the minimum delay; on the order of a worst-case round trip.
        interval: Span,
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool,
        /// L4S packets that waited longer are marked too; see [`Self::codel`].
        ce_threshold: Option<Span>,
    },
    /// Flow queueing with CoDel in each queue (RFC 8290).
    FqCoDel {
        /// Limit over all flows.
        limit: Limit,
        /// Acceptable standing delay of a queue.
        target: Span,
        /// Sliding window of the minimum delay.
        interval: Span,
        /// Bytes that a queue may send per round; zero counts as 1 B.
        quantum: Bytes,
        /// Number of queues that flows are hashed to; zero counts as 1.
        flows: u32,
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool,
        /// L4S packets that waited longer are marked too; see [`Self::codel`].
        ce_threshold: Option<Span>,
    },
    /// PIE (RFC 8033).
    Pie {
        /// Its limit.
        limit: Limit,
        /// Reference delay.
        target: Span,
        /// Period of the drop probability's updates; less than 0.1 ms counts as 0.1 ms.
        update: Span,
        /// A burst of this length passes without drops.
        max_burst: Span,
        /// Whether ECN-capable packets are marked instead of dropped, while the probability is below 10 %.
        ecn: bool,
    },
    /// DualPI2 (RFC 9332).
    DualPi2 {
        /// Limit over both queues.
        limit: Limit,
        /// Reference delay of the classic queue.
        target: Span,
        /// Period of the probability's updates; less than 0.1 ms counts as 0.1 ms.
        update: Span,
        /// L4S packets that waited longer are marked.
        step: Span,
    },
    /// L4Span's marking at a base station.
    L4Span {
        /// Its limit.
        limit: Limit,
        /// Time within which what waits should leave.
        target: Span,
    },
    /// ABC's router.
    Abc {
        /// Its limit.
        limit: Limit,
        /// Waiting time above which the queue is drained.
        delay: Span,
        /// How it knows that more could be sent.
        form: AbcForm,
    },
}

impl QueueConfig {
    /// Its limit.
    pub const fn limit(&self) -> Limit {
        match self {
            Self::DropTail { limit, .. }
            | Self::CoDel { limit, .. }
            | Self::FqCoDel { limit, .. }
            | Self::Pie { limit, .. }
            | Self::DualPi2 { limit, .. }
            | Self::L4Span { limit, .. }
            | Self::Abc { limit, .. } => *limit,
        }
    }
    /// Drop-tail without ECN.
    pub fn drop_tail(limit: Limit) -> Self {
        Self::DropTail { limit, ecn: None }
    }
    /// CoDel with 5 ms and 100 ms (RFC 8289 sections 4.4 and 4.3), without ECN.
    ///
    /// With a `ce_threshold`, packets with ECT(1) are marked as soon as they waited longer, as their senders expect (RFC 9331);
    /// Linux's `ce_threshold` with `ce_threshold_selector` for ECT(1).
    pub fn codel(limit: Limit) -> Self {
        let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
        Self::CoDel { limit, target, interval, ecn: false, ce_threshold: None }
    }
    /// FQ-CoDel with 5 ms, 100 ms, 1514 B and 1024 queues (RFC 8290 sections 5.2.1 to 5.2.5), without ECN.
    pub fn fq_codel(limit: Limit) -> Self {
        Self::FqCoDel {
            limit,
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            quantum: Bytes::new(1514),
            flows: 1024,
            ecn: false,
            ce_threshold: None,
        }
    }
    /// DualPI2 with a target of 15 ms, updates each 16 ms and a step of 1 ms (Linux `sch_dualpi2`; RFC 9332 section 4.1 and appendix A).
    pub fn dual_pi2(limit: Limit) -> Self {
        let (target, update, step) = (Span::from_millis(15), Span::from_millis(16), Span::from_millis(1));
        Self::DualPi2 { limit, target, update, step }
    }
    /// ABC's router with 50 ms, by the link's capacity.
    pub fn abc(limit: Limit) -> Self {
        Self::Abc { limit, delay: Span::from_millis(50), form: AbcForm::Capacity }
    }
    /// L4Span with a target of 10 ms.
    pub fn l4span(limit: Limit) -> Self {
        Self::L4Span { limit, target: Span::from_millis(10) }
    }
    /// PIE with 15 ms, 15 ms and 150 ms (RFC 8033 sections 4.2 and 4.4), without ECN.
    pub fn pie(limit: Limit) -> Self {
        Self::Pie {
            limit,
            target: Span::from_millis(15),
            update: Span::from_millis(15),
            max_burst: Span::from_millis(150),
            ecn: false,
        }
    }
}

/// Limit of a queue. A packet in service has left the queue and does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    Unlimited,
    /// A number of bytes, as counted by [`crate::Packet::size`].
    Bytes(Bytes),
    /// A number of packets.
    Packets(u32),
}

impl Limit {
    /// Returns whether `packets` packets with `bytes` bytes in total fit.
    #[inline]
    pub fn holds(self, bytes: Bytes, packets: usize) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Bytes(limit) => bytes <= limit,
            Self::Packets(limit) => packets <= limit as usize,
        }
    }
}

/// Why the text of a limit was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// Neither a size, nor a number of packets, nor "unlimited".
    #[error("expected \"150KB\", \"100 packets\" or \"unlimited\", found {found:?}{}", why.as_ref().map_or(String::new(), |why| format!(" ({why})")))]
    NotALimit {
        /// The text found.
        found: String,
        /// Why it is not a size, if it looks like one.
        why: Option<ranpace_units::ParseError>,
    },
    /// The limit is zero, so nothing would ever pass.
    #[error("must be above zero: nothing would ever pass")]
    Zero,
}

impl FromStr for Limit {
    type Err = LimitError;
    /// Reads "150KB", "100 packets" and "unlimited".
    fn from_str(text: &str) -> Result<Self, LimitError> {
        let text = text.trim();
        let refused = |why| LimitError::NotALimit { found: text.to_owned(), why };
        let limit = if text == "unlimited" {
            Self::Unlimited
        } else if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            Self::Packets(number.trim_end().replace('_', "").parse().map_err(|_| refused(None))?)
        } else {
            Self::Bytes(text.parse().map_err(|error| refused(Some(error)))?)
        };
        if matches!(limit, Self::Bytes(Bytes::ZERO) | Self::Packets(0)) {
            Err(LimitError::Zero)
        } else {
            Ok(limit)
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Bytes(limit) => limit.fmt(f),
            Self::Packets(limit) => write!(f, "{limit} packets"),
        }
    }
}

/// Extra delay of each packet, drawn independently. Packets stay in order: one that would overtake arrives
/// together with the one before it. So on a busy link the delay is close to the largest recent draw.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// No jitter.
    None,
    /// Uniform from zero to this.
    Uniform(Span),
    /// Normal, with negative values clamped to zero.
    Normal {
        /// Mean.
        mean: Span,
        /// Standard deviation.
        deviation: Span,
    },
}

/// Loss before the queue. Probabilities are from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// No loss.
    None,
    /// Independent loss of each packet.
    Random {
        /// Probability of losing a packet.
        probability: f64,
    },
    /// Loss in bursts: a chain of two states that takes a step after each packet and starts in the good one
    /// (Gilbert 1960, Elliott 1963). The share of packets in the bad state is `p / (p + r)`, and the
    /// chain stays there for `1 / r` packets on average.
    GilbertElliott {
        /// Probability of moving from the good state to the bad one.
        p: f64,
        /// Probability of moving from the bad state to the good one.
        r: f64,
        /// Probability of losing a packet in the good state; 0 in Gilbert's model.
        good: f64,
        /// Probability of losing a packet in the bad state; 1 for bursts without gaps.
        bad: f64,
    },
    /// Loss of exactly these packets.
    List {
        /// Numbers of offered packets, counted from 0, sorted.
        numbers: Arc<[u64]>,
        /// Packets with fewer bytes on the wire are neither counted nor lost, so that a list can refer to data packets only, however
        /// many acknowledgements and empty segments there are.
        smallest: Bytes,
    },
}

/// Some packets are held back after the propagation delay, and may be overtaken by later ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability of holding a packet back, from 0 to 1.
    pub probability: f64,
    /// The time for which it is held back.
    pub extra: Span,
}
