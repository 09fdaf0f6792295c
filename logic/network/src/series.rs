//! Series over time of flows, links and users of cells, with a row per sampling instant.

use ranpace_phy::{Both, Direction};
use ranpace_radio::cell::Probe;
use ranpace_rnis::{LinkReport, UserReport};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::meter::{FlowMeter, LinkMeter};
use crate::results::{Column, FlowCounts, Moment, Series};

/// Columns of a flow's series that its endpoints know, followed by two others.
pub const fn flow_columns(others: [&'static str; 2]) -> [&'static str; 14] {
    [
        "time_s",
        "delivered_bytes",
        "goodput_bit_s",
        "sent_bytes",
        "acked_bytes",
        "retransmitted_packets",
        "cwnd_bytes",
        "ssthresh_bytes",
        "pacing_bit_s",
        "in_flight_bytes",
        "srtt_s",
        "rtt_last_s",
        others[0],
        others[1],
    ]
}

const FLOW_COLUMNS: [&str; 14] = flow_columns(["queueing_delay_mean_s", "queueing_delay_max_s"]);

const LINK_COLUMNS: [&str; 6] = [
    "time_s",
    "queued_bytes",
    "capacity_bit_s",
    "departed_bit_s",
    "dropped_packets",
    "queueing_delay_mean_s",
];

/// The endpoints' part of a flow's row. Unknown values are NaN or `None`.
#[derive(Clone, Copy, Debug)]
pub struct FlowRow {
    /// Counters since the start.
    pub counts: FlowCounts,
    /// Window and threshold in bytes; the threshold is infinite if not known.
    pub window: [f64; 2],
    /// Bits per second.
    pub pacing: f64,
    /// Bytes.
    pub in_flight: f64,
    /// The smoothed RTT.
    pub srtt: Option<Span>,
    /// The last sample of the RTT.
    pub last_rtt: Option<Span>,
}

impl FlowRow {
    /// A row of a flow of which only the counters are known.
    pub fn of_counts(counts: FlowCounts) -> Self {
        let nothing = f64::NAN;
        Self { counts, window: [nothing; 2], pacing: nothing, in_flight: nothing, srtt: None, last_rtt: None }
    }
}

/// The source of an additional figure in the series of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureSource {
    /// The control at the sender.
    Control,
    /// The receiver half of its algorithm.
    Receiver,
    /// A proxy that splits the flow.
    Proxy,
}

/// Column prefixes, in the order of [`FigureSource`].
const PREFIXES: [&str; 3] = ["state", "receiver", "proxy"];

/// Rows of one flow.
#[derive(Debug, Default)]
pub struct FlowRows {
    columns: Vec<Vec<f64>>,
    /// In the order of [`FigureSource`].
    shown: [Vec<Shown>; 3],
    rows: usize,
    last_delivered: u64,
}

/// A named figure, and its values so far.
type Shown = (&'static str, Vec<f64>);

/// Seconds; NaN for `None`.
fn seconds(span: Option<Span>) -> f64 {
    span.filter(|span| !span.is_zero()).map_or(f64::NAN, Span::as_secs_f64)
}

impl FlowRows {
    /// A row for the interval that ends at `now`.
    pub fn sample(&mut self, now: Time, interval: Span, row: &FlowRow, meter: &mut FlowMeter) {
        let counts = &row.counts;
        let goodput = (counts.delivered - self.last_delivered) as f64 * 8.0 / interval.as_secs_f64();
        self.last_delivered = counts.delivered;
        let [cwnd, ssthresh] = row.window;
        let [mean, max] = meter.take_row_delay();
        push_row(
            &mut self.columns,
            &[
                now.as_secs_f64(),
                counts.delivered as f64,
                goodput,
                counts.sent_bytes as f64,
                counts.acked_bytes as f64,
                counts.retransmitted as f64,
                cwnd,
                if ssthresh.is_infinite() { f64::NAN } else { ssthresh },
                row.pacing,
                row.in_flight,
                seconds(row.srtt),
                seconds(row.last_rtt),
                mean,
                max,
            ],
        );
        self.rows += 1;
    }

    /// Adds a figure to the last sampled row; rows without one have NaN.
    pub fn show(&mut self, who: FigureSource, name: &'static str, value: f64) {
        self.enter(who, self.rows, name, value);
    }

    /// Adds a figure to the next sampled row.
    pub fn show_next(&mut self, who: FigureSource, name: &'static str, value: f64) {
        self.enter(who, self.rows + 1, name, value);
    }

    fn enter(&mut self, who: FigureSource, rows: usize, name: &'static str, value: f64) {
        let shown = &mut self.shown[who as usize];
        let place = shown.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            shown.push((name, Vec::new()));
            shown.len() - 1
        });
        let column = &mut shown[place].1;
        column.resize(rows - 1, f64::NAN);
        column.push(value);
    }

    /// The rows from number `from` on, while more are to come.
    pub fn since(&self, from: usize) -> Series {
        let mut series = named_since(&FLOW_COLUMNS, &self.columns, from);
        for (prefix, shown) in PREFIXES.into_iter().zip(&self.shown) {
            series.columns.extend(shown.iter().map(|(name, values)| {
                let mut values = values.get(from..).unwrap_or_default().to_vec();
                values.resize(self.rows.saturating_sub(from), f64::NAN);
                Column { name: format!("{prefix}_{name}"), values }
            }));
        }
        series
    }

    /// All rows.
    pub fn finish(self) -> Series {
        let rows = self.rows;
        let mut series = named_columns(&FLOW_COLUMNS, self.columns);
        for (prefix, shown) in PREFIXES.into_iter().zip(self.shown) {
            series.columns.extend(shown.into_iter().map(|(name, mut values)| {
                values.resize(rows, f64::NAN);
                Column { name: format!("{prefix}_{name}"), values }
            }));
        }
        series
    }
}

/// Rows of one link.
#[derive(Debug, Default)]
pub struct LinkRows {
    columns: Vec<Vec<f64>>,
}

/// Adds a row to columns; the first row creates them.
fn push_row(columns: &mut Vec<Vec<f64>>, row: &[f64]) {
    columns.resize_with(row.len(), Vec::new);
    for (column, value) in columns.iter_mut().zip(row) {
        column.push(*value);
    }
}

/// Names the columns.
fn named_columns(names: &[&str], columns: Vec<Vec<f64>>) -> Series {
    let columns = names.iter().zip(columns).map(|(name, mut values)| {
        values.shrink_to_fit();
        Column { name: (*name).to_owned(), values }
    });
    Series { columns: columns.collect() }
}

/// The same of the rows from number `from` on.
fn named_since(names: &[&str], columns: &[Vec<f64>], from: usize) -> Series {
    let columns = names.iter().zip(columns).map(|(name, values)| Column {
        name: (*name).to_owned(),
        values: values.get(from..).unwrap_or_default().to_vec(),
    });
    Series { columns: columns.collect() }
}

impl LinkRows {
    /// A row for the interval that ends at `now`.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        interval: Span,
        queued: Bytes,
        capacity: Option<Bytes>,
        meter: &mut LinkMeter,
    ) {
        let per_second = 8.0 / interval.as_secs_f64();
        let mean = if meter.row_packets > 0 {
            meter.row_delay_sum / meter.row_packets as f64 / 1e9
        } else {
            f64::NAN
        };
        push_row(
            &mut self.columns,
            &[
                now.as_secs_f64(),
                queued.as_f64(),
                capacity.map_or(f64::NAN, |bytes| bytes.as_f64() * per_second),
                meter.row_departed as f64 * per_second,
                meter.row_dropped as f64,
                mean,
            ],
        );
        (meter.row_departed, meter.row_dropped, meter.row_delay_sum, meter.row_packets) = (0, 0, 0.0, 0);
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Summarises the rows from this one on, each of `interval` length.
    pub fn lately(&self, from: usize) -> Moment {
        let of =
            |column: usize| self.columns.get(column).and_then(|rows| rows.get(from..)).unwrap_or_default();
        let mean = |column: usize| {
            let known = || of(column).iter().filter(|value| !value.is_nan());
            (known().count() > 0).then(|| known().sum::<f64>() / known().count() as f64)
        };
        let rate = |value: f64| Rate::from_bits_per_s(value as u64);
        Moment {
            queued: Bytes::new(of(1).last().map_or(0, |bytes| *bytes as u64)),
            capacity: mean(2).map(rate),
            departed: mean(3).map_or(Rate::ZERO, rate),
            dropped_packets: of(4).iter().sum::<f64>() as u64,
            delay: mean(5).map(Span::from_secs_f64),
        }
    }

    /// The rows from number `from` on, while more are to come.
    pub fn since(&self, from: usize) -> Series {
        named_since(&LINK_COLUMNS, &self.columns, from)
    }

    pub(crate) fn finish(self) -> Series {
        named_columns(&LINK_COLUMNS, self.columns)
    }
}

/// Inputs of a user's row.
pub(crate) struct RadioRow {
    pub now: Time,
    pub interval: Span,
    /// Index of the cell that serves it.
    pub serving: Option<usize>,
    /// The cell's data about it: report, channel, symbols of a slot, and slot length.
    pub seen: Option<(UserReport, Both<Probe>, u8, Span)>,
    /// The report at the previous row.
    pub before: Both<LinkReport>,
}

const RADIO_COLUMNS: [&str; 19] = [
    "time_s",
    "cell",
    "x_m",
    "y_m",
    "sinr_db",
    "cqi",
    "mcs",
    "prbs",
    "scheduled_bit_s",
    "retransmissions",
    "queue_bytes",
    "head_of_line_s",
    "uplink_sinr_db",
    "uplink_mcs",
    "uplink_prbs",
    "uplink_scheduled_bit_s",
    "uplink_retransmissions",
    "uplink_queue_bytes",
    "uplink_head_of_line_s",
];

/// Rows of one user.
#[derive(Debug, Default)]
pub(crate) struct RadioRows {
    columns: Vec<Vec<f64>>,
}

impl RadioRows {
    /// A row for the interval that ends now. MCS are those of the last grants, PRBs means over the slots of the interval.
    pub fn sample(&mut self, row: &RadioRow) {
        let mut values = [f64::NAN; RADIO_COLUMNS.len()];
        values[0] = row.now.as_secs_f64();
        if let Some(cell) = row.serving {
            values[1] = cell as f64;
        }
        if let Some((report, probe, symbols, slot)) = &row.seen {
            let seconds = row.interval.as_secs_f64();
            let slots = seconds / slot.as_secs_f64();
            values[2] = probe.downlink.position.x;
            values[3] = probe.downlink.position.y;
            values[4] = report.sinr_db();
            values[5] = report.cqi.get().into();
            for (direction, at) in [(Direction::Downlink, 6), (Direction::Uplink, 13)] {
                let (link, before) = (&report.link[direction], &row.before[direction]);
                // The counters restart in another cell.
                let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now) as f64;
                if let Some(grant) = link.grant {
                    values[at] = grant.mcs.into();
                }
                let prb_symbols = since(link.scheduled_prb_symbols, before.scheduled_prb_symbols);
                values[at + 1] = prb_symbols / f64::from(*symbols) / slots;
                values[at + 2] = since(link.scheduled_bits, before.scheduled_bits) / seconds;
                values[at + 3] = since(link.retransmissions, before.retransmissions);
                values[at + 4] = link.queue.as_f64();
                values[at + 5] = link.head_of_line.as_secs_f64();
            }
            values[12] = probe.uplink.sinr_db;
        }
        push_row(&mut self.columns, &values);
    }

    /// The rows from number `from` on, while more are to come.
    pub fn since(&self, from: usize) -> Series {
        named_since(&RADIO_COLUMNS, &self.columns, from)
    }

    pub fn finish(self) -> Series {
        named_columns(&RADIO_COLUMNS, self.columns)
    }
}
