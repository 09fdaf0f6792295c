//! Decides what a loss is attributed to: the two thresholds, and the order in which they and the guards are checked.

use core::str::FromStr;

use ranpace_phy::{Cqi, Direction, LteMcs};
use ranpace_rnis::{RadioHint, Technology};
use ranpace_units::{Bytes, Span};

/// Decision about a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The control is not notified.
    Hide,
    /// The control is notified, for this reason.
    Notify(Reason),
}

/// Why the control is notified of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is an ECN mark, not a loss. Ours.
    Mark,
    /// A second timeout without any acknowledgement. Ours.
    TimeoutAgain,
    /// There is no information about the user, or no block was scheduled for it. Ours.
    Unknown,
    /// The information is too old. Ours.
    Stale,
    /// The packet would not fit into one round of HARQ: condition 4.1.
    SmallBlock,
    /// The queue exceeds what one round of HARQ sends: condition 4.2, MELD-ME only.
    LongQueue,
    /// The user is being handed over to another cell. A guard, ours.
    Handover,
    /// Too much was lost in the last RTT. A guard, ours.
    ManyLost,
    /// The queue is about to overflow. A guard, ours.
    NearOverflow,
}

impl Reason {
    /// All reasons, in the order in which they are checked.
    pub const ALL: [Self; 9] = [
        Self::Mark,
        Self::TimeoutAgain,
        Self::Unknown,
        Self::Stale,
        Self::SmallBlock,
        Self::LongQueue,
        Self::Handover,
        Self::ManyLost,
        Self::NearOverflow,
    ];

    /// The name of its counter.
    pub const fn counter(self) -> &'static str {
        match self {
            Self::Mark => "meld_notified_mark",
            Self::TimeoutAgain => "meld_notified_timeout_again",
            Self::Unknown => "meld_notified_unknown",
            Self::Stale => "meld_notified_stale",
            Self::SmallBlock => "meld_notified_small_block",
            Self::LongQueue => "meld_notified_long_queue",
            Self::Handover => "meld_notified_handover",
            Self::ManyLost => "meld_notified_many_lost",
            Self::NearOverflow => "meld_notified_near_overflow",
        }
    }
}

/// The two thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// S_TB: smallest block with which a packet fits into one round of HARQ; equation 4.1.
    pub block: Bytes,
    /// Q_th: shortest queue that indicates congestion; equation 4.2. `None`: the queue is not considered (MELD-DE).
    pub queue: Option<Bytes>,
}

impl Limits {
    /// Algorithm 2: a block equal to its limit passes, a queue equal to its limit does not.
    pub fn judge(&self, block: Bytes, queue: Bytes) -> Verdict {
        if block < self.block {
            Verdict::Notify(Reason::SmallBlock)
        } else if self.queue.is_some_and(|limit| queue >= limit) {
            Verdict::Notify(Reason::LongQueue)
        } else {
            Verdict::Hide
        }
    }
}

/// S_TB (equation 4.1): the share of the packet in each block of one round of HARQ.
pub fn block_limit(packet: Bytes, harq_processes: u64) -> Bytes {
    packet.div_ceil(harq_processes.max(1))
}

/// S_TBm (equation 4.2): the block that the user's PRBs would carry at the best channel quality.
///
/// CQI 15 is mapped to the highest MCS: in LTE 28, whose blocks are those of I_TBS 26 (Table II of the paper).
pub fn best_block(hint: &RadioHint) -> Bytes {
    let mcs = match hint.info.technology {
        Technology::Lte => LteMcs::MAX.get(),
        Technology::Nr { qam256: false } => 28, // the last of TS 38.214 Table 5.1.3.1-1
        Technology::Nr { qam256: true } => 27,  // the last of TS 38.214 Table 5.1.3.1-2
        Technology::Mmwave => Cqi::MAX.get(),   // its MCS are CQI
    };
    let prbs = f64::from(hint.most_granted);
    hint.info.block(Direction::Downlink, mcs, hint.layers, prbs).bytes()
}

/// Factor on the Q_th = S_TBm N_HARQ of equation 4.2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueFactor(pub f64);

impl QueueFactor {
    /// The equation unchanged.
    pub const FORMULA: Self = Self(1.0);
}

impl FromStr for QueueFactor {
    type Err = ();

    /// "formula", or "x" and a number from 0.01 to 1000.
    fn from_str(text: &str) -> Result<Self, ()> {
        if text == "formula" {
            return Ok(Self::FORMULA);
        }
        let factor: f64 = text.strip_prefix('x').ok_or(())?.parse().map_err(|_| ())?;
        if (0.01..=1000.0).contains(&factor) { Ok(Self(factor)) } else { Err(()) }
    }
}

/// Least value of the maximum age of a report. Ours.
const LEAST_MAX_AGE: Span = Span::from_millis(50);
/// Maximum age of a report in periods. Ours.
const PERIODS: u64 = 3;

/// Maximum age of a report, if one arrives every `period`.
pub fn max_age(period: Span) -> Span {
    (period * PERIODS).max(LEAST_MAX_AGE)
}

/// Returns whether more was lost in an RTT than the radio explains: above 5 % of the packets, and more packets than a single block
/// abandoned by HARQ can affect, which is each packet with a byte in it. Ours; without the second condition the first lost
/// block of any window below forty packets would count.
pub fn is_heavy(lost: u64, delivered: u64, block: Bytes, packet: Bytes) -> bool {
    const PERCENT: u64 = 5;
    let of_one_block = 1 + block.get().div_ceil(packet.get().max(1));
    lost * 100 > (lost + delivered) * PERCENT && lost > of_one_block
}

/// Returns whether the queue is at 90 % or more of the buffer's limit. Ours.
pub fn is_near_overflow(queue: Bytes, limit: Bytes) -> bool {
    queue >= limit.scale(9, 10)
}
