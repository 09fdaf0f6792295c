//! Aggregates the kernel's figures of a flow: counters over all of its connections, RTTs, and a series over time in the simulator's
//! form.

use std::collections::BTreeMap;

use ranpace_network::{Column, Distribution, Histogram, Series, flow_columns};
use ranpace_units::{Span, Time};

use crate::tcp_info::TcpInfo;

/// Data segments per acknowledgement, where a kernel delays them (RFC 5681, section 4.2): the simulator has an RTT sample per
/// acknowledgement, so a smoothed RTT is counted as often.
pub const SEGMENTS_PER_ACK: u64 = 2;

/// Columns of the simulator's series that are taken from the kernel, and two that only kernels have.
const COLUMNS: [&str; 14] = flow_columns(["kernel_rwnd_limited_s", "kernel_sndbuf_limited_s"]);

/// Counters of a flow since its first connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    pub segments_sent: u64,
    pub segments_received: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    pub bytes_sent: u64,
    pub bytes_retransmitted: u64,
    pub bytes_acked: u64,
    pub delivered: u64,
    pub delivered_marked: u64,
    pub rwnd_limited: Span,
    pub sndbuf_limited: Span,
}

impl Account {
    /// Counters of one connection.
    fn of(info: &TcpInfo) -> Self {
        Self {
            segments_sent: info.segments_sent.into(),
            segments_received: info.segments_received.into(),
            retransmitted: info.retransmitted.into(),
            timeouts: info.timeouts.into(),
            bytes_sent: info.bytes_sent,
            bytes_retransmitted: info.bytes_retransmitted,
            // The opener's SYN counts as a byte.
            bytes_acked: info
                .bytes_acked
                .min(info.bytes_sent - info.bytes_retransmitted.min(info.bytes_sent)),
            delivered: info.delivered.into(),
            delivered_marked: info.delivered_marked.into(),
            rwnd_limited: info.limited.0,
            sndbuf_limited: info.limited.1,
        }
    }

    /// Combines each counter of both.
    fn with(self, other: Self, count: fn(u64, u64) -> u64, time: fn(Span, Span) -> Span) -> Self {
        Self {
            segments_sent: count(self.segments_sent, other.segments_sent),
            segments_received: count(self.segments_received, other.segments_received),
            retransmitted: count(self.retransmitted, other.retransmitted),
            timeouts: count(self.timeouts, other.timeouts),
            bytes_sent: count(self.bytes_sent, other.bytes_sent),
            bytes_retransmitted: count(self.bytes_retransmitted, other.bytes_retransmitted),
            bytes_acked: count(self.bytes_acked, other.bytes_acked),
            delivered: count(self.delivered, other.delivered),
            delivered_marked: count(self.delivered_marked, other.delivered_marked),
            rwnd_limited: time(self.rwnd_limited, other.rwnd_limited),
            sndbuf_limited: time(self.sndbuf_limited, other.sndbuf_limited),
        }
    }

    /// Counters since `before`.
    pub fn since(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub, |now, before| {
            Span::from_nanos(now.as_nanos().saturating_sub(before.as_nanos()))
        })
    }
}

/// The figures of a flow while it runs.
#[derive(Debug, Default)]
pub struct Record {
    /// Counters of closed connections.
    earlier: Account,
    /// The current connection, as last observed.
    current: Option<TcpInfo>,
    /// Counters at the beginning of the measured part.
    before: Option<Account>,
    rtt: Histogram,
    min_rtt: Option<Span>,
    /// The smallest RTT of the current connection before the measured part.
    min_before: Option<Span>,
    rows: Vec<Vec<f64>>,
    /// What the control shows of itself, by name: a QUIC sender's own.
    pub state: BTreeMap<String, f64>,
    /// The same in each row.
    states: BTreeMap<String, Vec<f64>>,
    last_delivered: u64,
}

impl Record {
    /// Records the kernel's figures of the current connection.
    pub fn observe(&mut self, info: TcpInfo) {
        if self.before.is_some() && !info.srtt.is_zero() {
            let earlier = self.current.map_or(0, |current| current.delivered);
            let acks = u64::from(info.delivered.saturating_sub(earlier)).div_ceil(SEGMENTS_PER_ACK);
            (0..acks).for_each(|_| self.rtt.record(info.srtt));
            // The kernel's minimum covers the connection's life; it belongs to the measured part if it was reached there.
            let is_new = self.min_before.is_none_or(|before| info.min_rtt < Some(before));
            self.min_rtt = self.min_rtt.into_iter().chain(info.min_rtt.filter(|_| is_new)).min();
        }
        self.current = Some(info);
    }

    /// The smoothed RTT of the current connection, if it has one.
    pub fn srtt(&self) -> Option<Span> {
        self.current.map(|current| current.srtt).filter(|srtt| !srtt.is_zero())
    }

    /// The current connection is closed.
    pub fn close(&mut self) {
        self.earlier = self.total();
        (self.current, self.min_before) = (None, None);
    }

    /// The measured part begins.
    pub fn measure(&mut self) {
        self.before = Some(self.total());
        self.min_before = self.current.and_then(|current| current.min_rtt);
    }

    /// All counters since the first connection.
    pub fn total(&self) -> Account {
        let current = self.current.as_ref().map(Account::of).unwrap_or_default();
        self.earlier.with(current, |a, b| a + b, |a, b| a + b)
    }

    /// The counters of the measured part.
    pub fn measured(&self) -> Account {
        self.total().since(self.before.unwrap_or_default())
    }

    /// RTTs of the measured part.
    pub fn rtt(&self) -> Distribution {
        let mut rtt = self.rtt.distribution();
        // The smoothed RTT never gets as low as the minimum.
        if let Some(min) = self.min_rtt.filter(|_| rtt.count > 0) {
            rtt.min = rtt.min.min(min);
        }
        rtt
    }

    /// A row for the interval that ends at `now`; `delivered` is the payload that the receiver has read.
    pub fn sample(&mut self, now: Time, interval: Span, delivered: u64) {
        let total = self.total();
        let goodput = delivered.saturating_sub(self.last_delivered) as f64 * 8.0 / interval.as_secs_f64();
        self.last_delivered = delivered;
        let shown = self.current.as_ref();
        let of = |value: fn(&TcpInfo) -> Option<f64>| shown.and_then(value).unwrap_or(f64::NAN);
        self.rows.push(vec![
            now.as_secs_f64(),
            delivered as f64,
            goodput,
            (total.bytes_sent - total.bytes_retransmitted.min(total.bytes_sent)) as f64,
            total.bytes_acked as f64,
            total.retransmitted as f64,
            of(|info| Some(f64::from(info.cwnd) * f64::from(info.mss))),
            of(|info| Some(f64::from(info.ssthresh?) * f64::from(info.mss))),
            of(|info| Some(info.pacing? as f64 * 8.0)),
            of(|info| Some(f64::from(info.in_flight()) * f64::from(info.mss))),
            of(|info| (!info.srtt.is_zero()).then(|| info.srtt.as_secs_f64())),
            // The kernel does not report the latest sample.
            f64::NAN,
            total.rwnd_limited.as_secs_f64(),
            total.sndbuf_limited.as_secs_f64(),
        ]);
        for (name, value) in &self.state {
            let values = self.states.entry(format!("state_{name}")).or_default();
            values.resize(self.rows.len() - 1, f64::NAN);
            values.push(*value);
        }
    }

    /// The last row, by the columns' names, without its time.
    pub fn last_row(&self) -> BTreeMap<String, f64> {
        let row = self.rows.last().into_iter().flatten();
        let own = COLUMNS.iter().zip(row).skip(1).map(|(name, value)| ((*name).to_owned(), *value));
        let states = self.state.iter().map(|(name, value)| (format!("state_{name}"), *value));
        own.chain(states).collect()
    }

    /// The series: the network's, with the kernel's values replacing its columns row by row.
    pub fn series(&self, network: &Series) -> Series {
        let rows = network.columns.first().map_or(self.rows.len(), |column| column.values.len());
        // Rows before the first observation are missing at the beginning.
        let missing = |index: usize| self.rows.get(index);
        let own =
            |place: usize| (0..rows).map(|row| missing(row).map_or(f64::NAN, |row| row[place])).collect();
        let mut series = network.clone();
        for (place, name) in COLUMNS.iter().enumerate() {
            match series.columns.iter_mut().find(|column| column.name == *name) {
                Some(column) if place == 0 && !column.values.is_empty() => {}
                Some(column) => column.values = own(place),
                None => series.columns.push(Column { name: (*name).to_owned(), values: own(place) }),
            }
        }
        for (name, values) in &self.states {
            let mut values = values.clone();
            values.resize(rows, f64::NAN);
            series.columns.push(Column { name: name.clone(), values });
        }
        series
    }

    /// Fills the rows before the first observation with no values.
    pub fn begin_at_row(&mut self, rows: usize) {
        self.rows.resize_with(rows, || vec![f64::NAN; COLUMNS.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(bytes: u64, delivered: u32, srtt: u64) -> TcpInfo {
        TcpInfo {
            mss: 1000,
            cwnd: 10,
            unacked: 4,
            sacked: 1,
            bytes_sent: bytes,
            bytes_acked: bytes + 1,
            segments_sent: delivered,
            delivered,
            srtt: Span::from_millis(srtt),
            min_rtt: Some(Span::from_millis(20)),
            ..TcpInfo::default()
        }
    }

    #[test]
    fn connections_add_up_and_the_warm_up_is_taken_off() {
        let mut record = Record::default();
        record.observe(info(10_000, 10, 30));
        record.measure();
        record.observe(info(30_000, 30, 40));
        record.close();
        assert_eq!(record.total().bytes_sent, 30_000);
        record.observe(info(5_000, 5, 50));
        let (total, measured) = (record.total(), record.measured());
        assert_eq!((total.bytes_sent, total.segments_sent), (35_000, 35));
        assert_eq!((total.bytes_acked, measured.bytes_sent, measured.segments_sent), (35_000, 25_000, 25));
        // 20 segments are 10 acknowledgements at 40 ms, 5 are 3 at 50 ms; 30 ms were before.
        let rtt = record.rtt();
        assert_eq!((rtt.count, rtt.min, rtt.max), (13, Span::from_millis(20), Span::from_millis(50)));
    }

    #[test]
    fn the_smallest_rtt_is_one_of_the_measured_part() {
        let mut record = Record::default();
        record.observe(info(10_000, 10, 30));
        record.measure();
        record.observe(info(30_000, 30, 40));
        assert_eq!(record.rtt().min, Span::from_millis(40), "20 ms were before");
        record.observe(TcpInfo { min_rtt: Some(Span::from_millis(15)), ..info(40_000, 40, 40) });
        assert_eq!(record.rtt().min, Span::from_millis(15));
    }

    #[test]
    fn the_kernels_figures_stand_in_the_rows_of_the_network() {
        let mut record = Record::default();
        record.observe(info(10_000, 10, 30));
        record.sample(Time::from_millis(100), Span::from_millis(100), 1_000);
        record.sample(Time::from_millis(200), Span::from_millis(100), 3_000);
        let column = |name: &str, values: &[f64]| Column { name: name.to_owned(), values: values.to_vec() };
        let network = Series {
            columns: vec![
                column("time_s", &[0.1, 0.2, 0.3]),
                column("cwnd_bytes", &[f64::NAN; 3]),
                column("queueing_delay_mean_s", &[0.01, 0.02, 0.03]),
            ],
        };
        let series = record.series(&network);
        assert_eq!(series.get("time_s"), Some(&[0.1, 0.2, 0.3][..]));
        assert_eq!(series.get("queueing_delay_mean_s"), Some(&[0.01, 0.02, 0.03][..]));
        assert_eq!(series.get("cwnd_bytes").map(|values| &values[..2]), Some(&[10_000.0, 10_000.0][..]));
        assert!(series.get("cwnd_bytes").is_some_and(|values| values[2].is_nan()), "it had ended");
        assert_eq!(series.get("in_flight_bytes").map(|values| values[0]), Some(3_000.0));
        assert_eq!(series.get("goodput_bit_s").map(|values| values[1]), Some(160_000.0));
        let lengths: Vec<usize> = series.columns.iter().map(|column| column.values.len()).collect();
        assert!(lengths.iter().all(|length| *length == 3), "{lengths:?}");
    }
}
