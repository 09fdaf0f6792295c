//! Counters of a channel.

use ranpace_units::Bytes;

use super::DropCause;

/// Counts of a channel since its start. Packets count with the size that they had when offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets offered to the buffer.
    pub offered: Amount,
    /// Packets delivered in order.
    pub delivered: Amount,
    /// Packets dropped, by [`DropCause`]: see [`Counters::dropped`].
    dropped: [Amount; 6],
    /// PDUs built from new data, and their payload.
    pub sent: Amount,
    /// Retransmitted PDUs, or parts of PDUs, and their payload.
    pub sent_again: Amount,
    /// PDUs that arrived too late or twice.
    pub useless: u64,
    /// Status reports that the receiver sent.
    pub statuses: u64,
    /// Number of failures of the bearer.
    pub failures: u64,
}

/// A count and its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The count.
    pub number: u64,
    /// Total bytes.
    pub bytes: Bytes,
}

impl Amount {
    #[inline]
    pub(crate) fn add(&mut self, bytes: Bytes) {
        self.number += 1;
        self.bytes += bytes;
    }
}

impl Counters {
    /// Packets dropped for this cause.
    pub fn dropped(&self, cause: DropCause) -> Amount {
        self.dropped[cause as usize]
    }
    /// Packets dropped for any cause.
    pub fn all_dropped(&self) -> Amount {
        self.dropped.iter().fold(Amount::default(), |all, one| Amount {
            number: all.number + one.number,
            bytes: all.bytes + one.bytes,
        })
    }
    pub(crate) fn on_dropped(&mut self, cause: DropCause, bytes: Bytes) {
        self.dropped[cause as usize].add(bytes);
    }
}
