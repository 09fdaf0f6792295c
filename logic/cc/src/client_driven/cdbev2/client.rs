//! CDBEv2's receiver half: measures the arrival rate about every 10 ms.
//!
//! Source: Zhong 2020, section 7.2.1, Eq. 7.1. Payload counts, including retransmitted data; headers do not. A report never
//! triggers an acknowledgement: the latest value is sent once, with the next one.
//!
//! Ours: the packet that opens a window does not count in it and the one that closes it does (`est=boundary`). As printed
//! (`est=literal`), all packets of a window count over the time between the first and the last: `n` packets then measure
//! `n/(n-1)` of the rate, and with fewer than five packets per window DRAIN's gain of three quarters drains nothing. A
//! literal window of one packet lasts until the next one. A gap of more than [`IDLE`] is not measured: the next packet opens
//! a window.

use ranpace_units::{Bytes, Rate, Span, Time};

use crate::client_driven::bw_report::Format;
use crate::interface::{Received, ReceiverHalf, ReceiverReport};

/// Length of a window (section 7.2.1).
pub const TW: Span = Span::from_millis(10);
/// A longer gap discards the window open before it. Ours.
const IDLE: Span = Span::SECOND;

/// The packets of a window that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// The packets after the one that opens the window, up to and including the one that closes it.
    Boundary,
    /// All packets of the window, from the first to the last.
    Literal,
}

/// The receiver half.
#[derive(Clone, Debug)]
pub struct Client {
    format: Format,
    estimator: Estimator,
    tw: Span,
    /// One in this many measurements is reported.
    every: u32,
    measured: u32,
    /// Arrivals of the window's first packet and of the latest packet; `None` before the first.
    window: Option<(Time, Time)>,
    bytes: Bytes,
    latest: Option<Rate>,
}

impl Client {
    pub(super) fn new(format: Format, estimator: Estimator, tw: Span, every: u32) -> Self {
        Self { format, estimator, tw, every, measured: 0, window: None, bytes: Bytes::ZERO, latest: None }
    }

    /// Records a packet; returns the measurement if it ends a window (Eq. 7.1).
    #[inline]
    fn measure(&mut self, now: Time, payload: Bytes) -> Option<Rate> {
        let opening = match self.estimator {
            Estimator::Boundary => Bytes::ZERO,
            Estimator::Literal => payload,
        };
        let Some((start, last)) = self.window.filter(|(_, last)| now - *last <= IDLE) else {
            (self.window, self.bytes) = (Some((now, now)), opening);
            return None;
        };
        let over = now - start >= self.tw;
        if !over || self.estimator == Estimator::Boundary {
            self.bytes += payload;
        }
        if !over {
            self.window = Some((start, now));
            return None;
        }
        let time = match self.estimator {
            Estimator::Literal if last > start => last - start,
            Estimator::Literal | Estimator::Boundary => now - start,
        };
        let rate = Rate::of(self.bytes, time);
        (self.window, self.bytes) = (Some((now, now)), opening);
        Some(rate)
    }
}

impl ReceiverHalf for Client {
    fn on_data(&mut self, received: &Received) {
        if let Some(rate) = self.measure(received.now, received.bytes) {
            self.measured += 1;
            if self.measured >= self.every {
                (self.measured, self.latest) = (0, Some(rate));
            }
        }
    }

    fn report(&mut self, _: Time) -> Option<ReceiverReport> {
        self.latest.take().map(|rate| self.format.encode(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client(estimator: Estimator) -> Client {
        Client::new(Format::ThesisV2, estimator, TW, 1)
    }

    fn measured(client: &mut Client, arrivals: &[(u64, u64)]) -> Vec<f64> {
        let rates = arrivals.iter().filter_map(|(ms, bytes)| {
            client.measure(Time::ZERO + Span::from_millis(*ms), Bytes::new(*bytes))
        });
        rates.map(|rate| rate.as_f64() / 1e6).collect()
    }

    #[test]
    fn a_window_counts_what_came_after_its_first_packet() {
        // Specification, section 10.
        let dense: Vec<_> = (0..6).map(|i| (2 * i, 1000)).collect();
        assert_eq!(measured(&mut client(Estimator::Boundary), &dense), [4.0]);
        assert_eq!(measured(&mut client(Estimator::Literal), &dense), [5.0]);
        let sparse: Vec<_> = (0..5).map(|i| (37 * i, 1400)).collect();
        let rates = measured(&mut client(Estimator::Boundary), &sparse);
        assert_eq!(rates.len(), 4);
        assert!(rates.iter().all(|rate| (rate - 0.3027).abs() < 5e-5), "{rates:?}");
        // One packet per window: the literal window has no duration and uses that to the next packet.
        assert_eq!(measured(&mut client(Estimator::Literal), &sparse), rates);
    }

    #[test]
    fn an_idle_second_begins_anew() {
        for (gap_ms, reports) in [(1000, 1), (1001, 0)] {
            let arrivals = [(0, 1000), (gap_ms, 1000)];
            assert_eq!(measured(&mut client(Estimator::Boundary), &arrivals).len(), reports, "{gap_ms} ms");
        }
        // Bytes counted before the gap are discarded.
        let arrivals = [(0, 9000), (5, 9000), (3000, 1000), (3010, 1000)];
        assert_eq!(measured(&mut client(Estimator::Boundary), &arrivals), [0.8]);
    }

    fn received(ms: u64) -> Received {
        let now = Time::ZERO + Span::from_millis(ms);
        Received {
            now,
            number: None,
            bytes: Bytes::new(1250),
            wire: Bytes::new(1302),
            sent_at: now,
            time_to_next: Span::ZERO,
            rtt: None,
        }
    }

    #[test]
    fn the_latest_value_leaves_once() {
        let mut client = client(Estimator::Boundary);
        let ask = |client: &mut Client| {
            client.report(Time::ZERO).map(|report| Format::ThesisV2.decode(&report).unwrap())
        };
        client.on_data(&received(0));
        assert_eq!(ask(&mut client), None);
        client.on_data(&received(10)); // 1 Mbit/s
        client.on_data(&received(30)); // 0.5 Mbit/s, before an acknowledgement was sent
        assert_eq!(ask(&mut client), Some(Rate::from_bits_per_s(500_000)));
        assert_eq!(ask(&mut client), None);
    }

    #[test]
    fn fewer_reports_on_request() {
        let mut client = Client::new(Format::V1, Estimator::Boundary, TW, 3);
        let mut reports = 0;
        for i in 0..=30 {
            client.on_data(&received(10 * i));
            reports += u32::from(client.report(Time::ZERO).is_some());
        }
        assert_eq!(reports, 10);
    }

    proptest! {
        /// Windows are contiguous: their measurements sum up to the bytes received.
        #[test]
        fn no_byte_is_counted_twice(packets in prop::collection::vec((0..30_000u64, 1..1500u64), 2..200)) {
            let mut client = client(Estimator::Boundary);
            let (mut now, mut opened, mut came, mut sum) = (Time::ZERO, Time::ZERO, 0, 0.0);
            for (i, (us, bytes)) in packets.into_iter().enumerate() {
                now += Span::from_micros(us);
                came += if i == 0 { 0 } else { bytes };
                if i == 0 { opened = now; }
                if let Some(rate) = client.measure(now, Bytes::new(bytes)) {
                    sum += rate.as_f64() * (now - opened).as_secs_f64() / 8.0;
                    opened = now;
                    prop_assert!((sum - came as f64).abs() < 1.0 + 1e-6 * sum, "{sum} of {came}");
                }
            }
        }
    }
}
