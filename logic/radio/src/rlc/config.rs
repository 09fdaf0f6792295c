//! The configuration of a channel, and the values that networks and experiments use.

use ranpace_link::{Limit, QueueConfig};
use ranpace_units::{Bytes, Span};

use crate::above_rlc::StagesConfig;

/// PDCP header of each packet in bytes: 12-bit numbers; TS 36.323 clause 6.2.3, TS 38.323 clause 6.2.2.
pub const PDCP_HEADER: u32 = 2;

/// Whether lost data is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Unacknowledged: it is not. A packet is lost if any byte of it is lost.
    Unacknowledged,
    /// Acknowledged: it is, so that packets are lost only under [`Timers::max_retransmissions`].
    Acknowledged,
}

/// One direction of a bearer.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Whether lost data is retransmitted.
    pub mode: Mode,
    /// The queue of packets before their first byte is sent, with its limit. Partly sent packets have left it
    /// and do not count against the limit, as in ns-3. Base stations use drop-tail and CoDel; with FQ-CoDel the reported
    /// waiting time and the discard timer are only approximate.
    pub buffer: QueueConfig,
    /// Stages above RLC, to the first of which the buffer moves; only in the downlink.
    pub above: Option<StagesConfig>,
    /// PDCP's discard timer: drops a packet of which no byte was sent for this long; TS 36.323 clause 5.4. `None`: never.
    pub discard: Option<Span>,
    /// Header sizes.
    pub format: Format,
    /// Timers and limits.
    pub timers: Timers,
}

impl Config {
    /// LTE's UM with a drop-tail buffer.
    pub fn um(buffer: Bytes) -> Self {
        Self {
            mode: Mode::Unacknowledged,
            buffer: QueueConfig::drop_tail(Limit::Bytes(buffer)),
            above: None,
            discard: None,
            format: Format::Lte,
            timers: Timers::UM,
        }
    }
    /// LTE's AM with a drop-tail buffer and [`Timers::NS3`].
    pub fn am(buffer: Bytes) -> Self {
        Self { mode: Mode::Acknowledged, timers: Timers::NS3, ..Self::um(buffer) }
    }
}

/// Timers and limits of RLC. UM uses only [`Self::reordering`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timers {
    /// t-Reordering: how long a receiver waits for a missing PDU (NR: PDCP's timer, with the same effect).
    pub reordering: Span,
    /// t-StatusProhibit: minimum time between two status reports.
    pub status_prohibit: Span,
    /// t-PollRetransmit: how long a transmitter waits for the report that it polled for.
    pub poll_retransmit: Span,
    /// maxRetxThreshold: number of retransmissions of a PDU after which the bearer fails; `None`: no limit.
    pub max_retransmissions: Option<u8>,
    /// pollPDU: number of new PDUs after which one polls for a report; 0 counts as 1.
    pub poll_pdus: u32,
    /// pollByte: number of new bytes after which a PDU polls.
    pub poll_bytes: Bytes,
    /// AM_Window_Size: how many PDUs may be unacknowledged; 0 counts as 1. 512 with LTE's 10-bit numbers (TS
    /// 36.322 clause 7.2), 2048 with NR's 12-bit numbers (TS 38.322 clause 7.2).
    pub window: u32,
    /// The scheduler counts unacknowledged data as waiting, as in ns-3, and buffer status reports are at most this far apart
    /// (`ReportBufferStatusTimer`: 20 ms). Users whose acknowledgements do not arrive then waste blocks. Zero: unacknowledged data
    /// does not count.
    pub unacknowledged_report: Span,
    /// Whether all unacknowledged PDUs are retransmitted when t-PollRetransmit expires and nothing else can carry the poll, as
    /// in ns-3 (`LteRlcAm::ExpirePollRetransmitTimer`); otherwise only the last one is.
    pub poll_sends_all: bool,
}

/// Named sets of timers (`rlc_timers = ...` in scenarios, which also accept [`Timers::MMWAVE`] as `mmwave`).
pub const NAMED_TIMERS: [(&str, Timers); 2] = [("ns3", Timers::NS3), ("36331", Timers::TS36331)];

impl Timers {
    /// Values of ns-3: poll retransmit 20 ms, reordering 10 ms, status prohibit 10 ms, a poll in every PDU. ns-3 counts
    /// retransmissions against a threshold of 5, but only logs that it is exceeded (`lte-rlc-am.cc`): a PDU is retransmitted
    /// until it arrives, and no bearer fails.
    pub const NS3: Self = Self {
        reordering: Span::from_millis(10),
        status_prohibit: Span::from_millis(10),
        poll_retransmit: Span::from_millis(20),
        max_retransmissions: None,
        poll_pdus: 1,
        poll_bytes: Bytes::new(50),
        window: 512,
        unacknowledged_report: Span::ZERO,
        poll_sends_all: false,
    };
    /// Values of the authors' scripts for millimetre waves: those of ns-3 with status prohibit 1 ms.
    pub const MMWAVE: Self = Self { status_prohibit: Span::from_millis(1), window: 2048, ..Self::NS3 };
    /// Default configuration of signalling bearers, TS 36.331 clause 9.2.1.1 (from memory): reordering 35 ms,
    /// poll retransmit 45 ms, status prohibit 0, 4 retransmissions. It polls only at the end of data; 32 PDUs and 125 kB
    /// are ours, typical of data bearers.
    pub const TS36331: Self = Self {
        reordering: Span::from_millis(35),
        status_prohibit: Span::ZERO,
        poll_retransmit: Span::from_millis(45),
        max_retransmissions: Some(4),
        poll_pdus: 32,
        poll_bytes: Bytes::new(125_000),
        window: 512,
        unacknowledged_report: Span::ZERO,
        poll_sends_all: false,
    };
    /// UM: reordering 35 ms. Our choice: TS 36.331's default for signalling (from memory); ns-3 has 100 ms.
    pub const UM: Self = Self::TS36331;
}

/// Sizes of the headers around parts of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One RLC header of 2 B for all parts (10-bit numbers), 12 bits more for each part but the last, 2 B more if
    /// re-segmented; TS 36.322 clauses 6.2.1.3 to 6.2.1.5. MAC: 2 B, or 3 B from 128 B on; TS 36.321 clause 6.2.1.
    Lte,
    /// An RLC and a MAC header for each part: 2 B in UM, 3 B in AM (18-bit numbers), 2 B more if the part does not begin the
    /// packet; TS 38.322 clause 6.2.2. MAC: 3 B (2 B below 256 B; counted as 3 B); TS 38.321 clause 6.1.2.
    Nr,
}

impl Format {
    /// Header bytes of another part in a PDU that already has `parts`, built for `grant`. `inside`: it does not begin its
    /// packet.
    #[inline]
    pub(crate) fn new_part(self, mode: Mode, parts: u32, inside: bool, grant: u32) -> u32 {
        match self {
            Self::Lte if parts == 0 => 2 + Self::lte_mac(grant),
            // 1.5 B for each part before this one; the sum over all parts is rounded up.
            Self::Lte => 1 + (parts & 1),
            Self::Nr => 3 + Self::nr_rlc(mode) + if inside { 2 } else { 0 },
        }
    }

    /// All headers of a retransmitted PDU with this many parts; `segment`: it is not the whole PDU.
    pub(crate) fn again(self, parts: u32, segment: bool, grant: u32) -> u32 {
        let offset = if segment { 2 } else { 0 };
        let parts = parts.max(1);
        match self {
            Self::Lte => {
                let lengths = (u64::from(parts - 1) * 3).div_ceil(2);
                Self::lte_mac(grant) + 2 + offset + u32::try_from(lengths).unwrap_or(u32::MAX / 2)
            }
            Self::Nr => parts.saturating_mul(3 + Self::nr_rlc(Mode::Acknowledged)).saturating_add(offset),
        }
    }

    /// A status report with its MAC header: 15 bits, 12 for each missing PDU, 30 more for a part of one; TS 36.322
    /// clause 6.2.1.6. NR: 3 B, then 3 B and 4 B with 18-bit numbers; TS 38.322 clause 6.2.2.5, without merging ranges.
    pub(crate) fn status(self, whole: u32, parts: u32) -> u32 {
        let (whole, parts) = (u64::from(whole), u64::from(parts));
        let bytes = match self {
            Self::Lte => 2 + (15 + 12 * whole + 42 * parts).div_ceil(8),
            Self::Nr => 2 + 3 + 3 * whole + 7 * parts,
        };
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Upper bound on the headers of `parts` parts that begin their packets, for a request of resources.
    pub(crate) fn upper_bound(self, mode: Mode, parts: u64) -> u64 {
        match self {
            Self::Lte => 5 + (parts.saturating_sub(1) * 3).div_ceil(2),
            Self::Nr => parts.saturating_mul(3 + u64::from(Self::nr_rlc(mode))).saturating_add(2),
        }
    }

    fn lte_mac(grant: u32) -> u32 {
        if grant < 130 { 2 } else { 3 }
    }

    fn nr_rlc(mode: Mode) -> u32 {
        match mode {
            Mode::Unacknowledged => 2,
            Mode::Acknowledged => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_lte_are_2_to_5_bytes_and_grow_by_12_bits() {
        let (mode, grant) = (Mode::Unacknowledged, 2292);
        let mut total = 0;
        for (parts, expected) in [(1, 2), (2, 4), (3, 5), (4, 7), (5, 8)] {
            total += Format::Lte.new_part(mode, parts - 1, true, grant);
            assert_eq!(total - 3, expected, "{parts} parts, without the MAC's 3 B");
            assert_eq!(Format::Lte.again(parts, false, grant), total);
        }
        assert_eq!(Format::Lte.again(1, true, 100), 2 + 2 + 2);
    }

    #[test]
    fn a_status_report_of_lte_has_15_bits_and_12_for_each_missing_pdu() {
        for (whole, parts, bytes) in [(0, 0, 2), (1, 0, 4), (2, 0, 5), (0, 1, 8)] {
            assert_eq!(Format::Lte.status(whole, parts) - 2, bytes, "{whole} {parts}");
        }
    }
}
