//! Series over time: a row per flow and link at every sampling instant.

use ranpace_cc::Pacing;
use ranpace_units::{Bytes, Span, Time};

use crate::flow::{Ends, Flow};
use crate::meter::{FlowMeter, LinkMeter};
use crate::results::{Column, Series};

const FLOW_COLUMNS: [&str; 14] = [
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
    "queueing_delay_mean_s",
    "queueing_delay_max_s",
];

const LINK_COLUMNS: [&str; 6] = [
    "time_s",
    "queued_bytes",
    "capacity_bit_s",
    "departed_bit_s",
    "dropped_packets",
    "queueing_delay_mean_s",
];

/// Rows of one flow.
#[derive(Debug, Default)]
pub(crate) struct FlowRows {
    columns: Vec<Vec<f64>>,
    states: Vec<(&'static str, Vec<f64>)>,
    rows: usize,
    last_delivered: u64,
}

/// Rows of one link.
#[derive(Debug, Default)]
pub(crate) struct LinkRows {
    columns: Vec<Vec<f64>>,
}

fn push(columns: &mut Vec<Vec<f64>>, row: &[f64]) {
    columns.resize_with(row.len(), Vec::new);
    for (column, value) in columns.iter_mut().zip(row) {
        column.push(*value);
    }
}

fn named(names: &[&str], columns: Vec<Vec<f64>>) -> Series {
    let columns = names.iter().zip(columns).map(|(name, mut values)| {
        values.shrink_to_fit();
        Column { name: (*name).to_owned(), values }
    });
    Series { columns: columns.collect() }
}

/// Seconds, NaN for none.
fn seconds(span: Option<Span>) -> f64 {
    span.filter(|span| !span.is_zero()).map_or(f64::NAN, Span::as_secs_f64)
}

impl FlowRows {
    /// A row for the interval that ends at `now`.
    pub fn sample(&mut self, now: Time, interval: Span, flow: &Flow, meter: &mut FlowMeter) {
        let account = flow.account();
        let goodput = (account.delivered - self.last_delivered) as f64 * 8.0 / interval.as_secs_f64();
        self.last_delivered = account.delivered;
        let (mut window, mut pacing, mut in_flight) = ([f64::NAN; 2], f64::NAN, f64::NAN);
        let (mut srtt, mut last, mut control) = (None, None, None);
        match &flow.ends {
            Ends::Tcp(sender, _) => {
                let mss = sender.mss().as_f64();
                window = [sender.window().cwnd * mss, sender.window().ssthresh * mss];
                if let Pacing::Rate(rate) = sender.pacing() {
                    pacing = rate.as_f64();
                }
                in_flight = sender.in_flight() as f64 * mss;
                (srtt, last) = (Some(sender.rtt().smoothed()), sender.rtt().latest());
                control = Some(sender.control());
            }
            Ends::Datagram(sender, _) => {
                let payload = sender.payload().as_f64();
                window = [sender.window().cwnd * payload, sender.window().ssthresh * payload];
                if let Pacing::Rate(rate) = sender.window().pacing {
                    pacing = rate.as_f64();
                }
                in_flight = sender.in_flight() as f64 * payload;
                (srtt, last) = (Some(sender.rtt().smoothed()), sender.rtt().latest());
                control = Some(sender.control());
            }
            Ends::Udp(..) | Ends::None => {}
        }
        if window[1].is_infinite() {
            window[1] = f64::NAN;
        }
        let (mut mean, mut max) = (f64::NAN, f64::NAN);
        if meter.row_delay_count > 0 {
            mean = meter.row_delay_sum / meter.row_delay_count as f64 / 1e9;
            max = meter.row_delay_max / 1e9;
        }
        (meter.row_delay_sum, meter.row_delay_max, meter.row_delay_count) = (0.0, 0.0, 0);
        push(
            &mut self.columns,
            &[
                now.as_secs_f64(),
                account.delivered as f64,
                goodput,
                account.sent_bytes as f64,
                account.acked_bytes as f64,
                account.retransmitted as f64,
                window[0],
                window[1],
                pacing,
                in_flight,
                seconds(srtt),
                seconds(last),
                mean,
                max,
            ],
        );
        self.rows += 1;
        if let Some(control) = control {
            let (states, rows) = (&mut self.states, self.rows);
            control.inspect(&mut |name, value| {
                let column = match states.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, column)) => column,
                    None => {
                        states.push((name, Vec::new()));
                        // Just pushed, so there is a last one.
                        match states.last_mut() {
                            Some((_, column)) => column,
                            None => return,
                        }
                    }
                };
                column.resize(rows - 1, f64::NAN);
                column.push(value);
            });
        }
    }

    pub fn finish(self) -> Series {
        let rows = self.rows;
        let mut series = named(&FLOW_COLUMNS, self.columns);
        series.columns.extend(self.states.into_iter().map(|(name, mut values)| {
            values.resize(rows, f64::NAN);
            Column { name: format!("state_{name}"), values }
        }));
        series
    }
}

impl LinkRows {
    /// A row for the interval that ends at `now`.
    pub fn sample(
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
        push(
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

    pub fn finish(self) -> Series {
        named(&LINK_COLUMNS, self.columns)
    }
}
