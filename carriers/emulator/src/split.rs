//! What a splitting proxy on a router does to a flow, as its sockets tell (`struct tcp_info`): the RTTs of both connections, what waits
//! between them, and for how long.
//!
//! A proxy has two sockets for each connection that it splits, both with the addresses and ports of the ends: one faces the sender, and
//! one the receiver. What the first has received and the second has not sent yet waits in the proxy.

use std::collections::VecDeque;

use ranpace_network::{Column, Distribution, Histogram, Series, SplitResult};
use ranpace_units::{Bytes, Span, Time};

use crate::record::SEGMENTS_PER_ACK;
use crate::tcp_info::TcpInfo;

/// Readings for which arrivals are remembered: payload that waits longer counts as if it had come with the oldest. Ours: ten seconds.
const MOST_ARRIVALS: usize = 1_000;

/// Columns of the series, as the simulator calls them for its proxies.
const COLUMNS: [&str; 6] = [
    "proxy_backlog_bytes",
    "proxy_delay_s",
    "proxy_ran_cwnd_bytes",
    "proxy_ran_in_flight_bytes",
    "proxy_ran_rtt_s",
    "proxy_wan_rtt_s",
];

/// A flow that a proxy splits.
#[derive(Debug, Default)]
pub struct Split {
    /// The socket that faces the sender at this reading, and the one that faces the receiver.
    from_sender: Option<TcpInfo>,
    to_receiver: Option<TcpInfo>,
    /// The socket that faces the receiver at the reading before.
    before: Option<TcpInfo>,
    connections: u64,
    /// Payload that had arrived in order at each reading.
    arrivals: VecDeque<(Time, u64)>,
    /// The latest values: the RTT of the sender, and the wait.
    wan: Option<Span>,
    wait: Span,
    backlog: u64,
    largest: u64,
    wan_rtt: Histogram,
    ran_rtt: Histogram,
    delay: Histogram,
    whole_rtt: Histogram,
    rows: Vec<[f64; COLUMNS.len()]>,
}

impl Split {
    /// A flow that begins after this many rows of the series.
    pub fn begin_at_row(rows: usize) -> Self {
        Self { rows: vec![[f64::NAN; COLUMNS.len()]; rows], ..Self::default() }
    }

    /// The socket that faces the sender.
    pub fn on_from_sender(&mut self, info: TcpInfo) {
        self.from_sender = Some(info);
    }

    /// The socket that faces the receiver.
    pub fn on_to_receiver(&mut self, info: TcpInfo) {
        self.to_receiver = Some(info);
    }

    /// Both have been read, if they are there. `wan` is the sender's smoothed RTT; where it is not known, that of the proxy's own
    /// socket stands for it. RTTs count from when the flow is `measured`.
    pub fn on_reading(&mut self, now: Time, wan: Option<Span>, measured: bool) {
        let (Some(from_sender), Some(to_receiver)) = (self.from_sender.take(), self.to_receiver.take())
        else {
            self.before = None;
            return;
        };
        let wan = wan.or(Some(from_sender.srtt).filter(|rtt| !rtt.is_zero()));
        let arrived = from_sender.bytes_received;
        let sent = to_receiver.bytes_sent.saturating_sub(to_receiver.bytes_retransmitted);
        let is_new = self.before.is_none_or(|before| before.bytes_sent > to_receiver.bytes_sent);
        if is_new {
            self.connections += 1;
            self.arrivals.clear();
        }
        self.arrivals.push_back((now, arrived));
        self.backlog = arrived.saturating_sub(sent);
        self.largest = self.largest.max(self.backlog);
        self.wait = self.wait_of(now, sent);
        self.wan = wan;
        let delivered = self.before.filter(|_| !is_new).map_or(0, |before| before.delivered);
        let acks = u64::from(to_receiver.delivered.saturating_sub(delivered)).div_ceil(SEGMENTS_PER_ACK);
        for _ in 0..acks {
            self.delay.record(self.wait);
            if to_receiver.srtt.is_zero() {
                continue;
            }
            self.ran_rtt.record(to_receiver.srtt);
            if let (true, Some(wan)) = (measured, wan) {
                self.wan_rtt.record(wan);
                self.whole_rtt.record(wan + self.wait + to_receiver.srtt);
            }
        }
        self.before = Some(to_receiver);
    }

    /// How long the payload waited that is sent now: since as much had arrived as has been sent.
    fn wait_of(&mut self, now: Time, sent: u64) -> Span {
        // The last reading at which no more had arrived, and those after it.
        while self.arrivals.len() > 1 && (self.arrivals[1].1 <= sent || self.arrivals.len() > MOST_ARRIVALS) {
            self.arrivals.pop_front();
        }
        let (Some((at, had)), next) = (self.arrivals.front(), self.arrivals.get(1)) else {
            return Span::ZERO;
        };
        let Some((then, has)) = next else {
            return if *had > sent { now - *at } else { Span::ZERO };
        };
        // Between two readings it is taken to have arrived evenly.
        let share = sent.saturating_sub(*had) as f64 / has.saturating_sub(*had).max(1) as f64;
        now - (*at + Span::from_secs_f64((*then - *at).as_secs_f64() * share))
    }

    /// A row for the interval that ends now.
    pub fn sample(&mut self) {
        let seconds = |span: Option<Span>| span.map_or(f64::NAN, |span| span.as_secs_f64());
        self.rows.push(self.before.map_or([f64::NAN; COLUMNS.len()], |info| {
            let mss = f64::from(info.mss);
            [
                self.backlog as f64,
                self.wait.as_secs_f64(),
                f64::from(info.cwnd) * mss,
                f64::from(info.in_flight()) * mss,
                seconds(Some(info.srtt).filter(|rtt| !rtt.is_zero())),
                seconds(self.wan),
            ]
        }));
    }

    /// The results; `None` if nothing was split. `series` gets its columns, and what is known of the flow's packets is kept.
    pub fn finish(
        &self,
        known: Option<SplitResult>,
        series: &mut Series,
    ) -> Option<(SplitResult, Distribution)> {
        if self.connections == 0 {
            return None;
        }
        let rows = series.columns.first().map_or(self.rows.len(), |column| column.values.len());
        for (place, name) in COLUMNS.iter().enumerate() {
            let value = |row: usize| self.rows.get(row).map_or(f64::NAN, |row| row[place]);
            let values = (0..rows).map(value).collect();
            series.columns.push(Column { name: (*name).to_owned(), values });
        }
        let figures = |of: &Histogram| Distribution { cdf: Vec::new(), ..of.distribution() };
        let result = SplitResult {
            wan_rtt: figures(&self.wan_rtt),
            ran_rtt: figures(&self.ran_rtt),
            delay: figures(&self.delay),
            largest_backlog: Bytes::new(self.largest),
            connections: self.connections,
            ..known.unwrap_or_default()
        };
        Some((result, self.whole_rtt.distribution()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_the_time_since_as_much_had_arrived_as_is_sent() {
        let mut split = Split::default();
        let mut read = |ms: u64, arrived: u64, sent: u64| {
            let info = TcpInfo { mss: 1_000, srtt: Span::from_millis(30), ..TcpInfo::default() };
            split.on_from_sender(TcpInfo { bytes_received: arrived, ..info });
            split.on_to_receiver(TcpInfo { bytes_sent: sent, delivered: (sent / 1_000) as u32, ..info });
            split.on_reading(Time::from_millis(ms), Some(Span::from_millis(20)), true);
            (split.backlog, split.wait)
        };
        assert_eq!(read(0, 0, 0), (0, Span::ZERO));
        // 10,000 B arrive in each 10 ms, and half of that leaves.
        assert_eq!(read(10, 10_000, 5_000), (5_000, Span::from_millis(5)));
        assert_eq!(read(20, 20_000, 10_000), (10_000, Span::from_millis(10)));
        assert_eq!(read(30, 30_000, 15_000), (15_000, Span::from_millis(15)));
        assert_eq!(read(40, 30_000, 30_000), (0, Span::ZERO), "nothing waits");
        let mut series = Series::default();
        let (result, whole) = split.finish(None, &mut series).expect("it was split");
        assert_eq!((result.connections, result.largest_backlog), (1, Bytes::new(15_000)));
        assert_eq!(result.ran_rtt.mean, Span::from_millis(30));
        assert_eq!(result.wan_rtt.mean, Span::from_millis(20));
        // Both RTTs, and a wait from nothing at the end to 15 ms.
        assert_eq!((whole.min, whole.max), (Span::from_millis(50), Span::from_millis(65)));
    }

    #[test]
    fn what_is_not_split_has_no_results() {
        let mut split = Split::default();
        split.on_from_sender(TcpInfo::default());
        split.on_reading(Time::ZERO, None, true);
        split.sample();
        assert_eq!(split.finish(None, &mut Series::default()), None);
    }
}
