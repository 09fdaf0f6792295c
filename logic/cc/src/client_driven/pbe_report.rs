//! PBE-CC's report: the time between packets of 1500 bytes in microseconds, and the receiver's state in a bit.
//!
//! As understood, 32 bits and one bit. Ours: the bit has a byte of its own, so a report has five bytes; it is big endian; an interval of
//! zero means that there is no estimate, and the fastest rate that can be written is a packet in a microsecond.

use ranpace_units::{Bytes, Rate};

use crate::interface::ReceiverReport;

/// The packet that the interval counts in.
pub(crate) const PACKET: Bytes = Bytes::new(1500);

/// A report's content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Report {
    /// The rate of packets of 1500 bytes on the wire.
    pub(crate) rate: Rate,
    /// Whether the bottleneck is elsewhere than in the cell: then the rate is a bound.
    pub(crate) internet: bool,
}

impl Report {
    /// A rate of zero is no estimate.
    pub(crate) fn encode(self) -> ReceiverReport {
        let bits = PACKET.as_f64() * 8.0;
        let interval = if self.rate.is_zero() {
            0
        } else {
            libm::round(bits * 1e6 / self.rate.as_f64()).clamp(1.0, f64::from(u32::MAX)) as u32
        };
        let [a, b, c, d] = interval.to_be_bytes();
        ReceiverReport::new(&[a, b, c, d, u8::from(self.internet)]).expect("five bytes fit a report")
    }

    /// `None` if it says that there is no estimate, or is no report of this kind.
    pub(crate) fn decode(report: &ReceiverReport) -> Option<Self> {
        let &[a, b, c, d, state] = report.as_bytes() else { return None };
        let interval = u32::from_be_bytes([a, b, c, d]);
        if interval == 0 || state > 1 {
            return None;
        }
        let rate = PACKET.as_f64() * 8.0 * 1e6 / f64::from(interval);
        Some(Self { rate: Rate::from_bits_per_s_f64(rate), internet: state == 1 })
    }
}
