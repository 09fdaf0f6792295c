//! Series over time: a row per flow and link at every sampling instant.

use ranpace_cc::Pacing;
use ranpace_phy::{Both, Direction};
use ranpace_radio::cell::Probe;
use ranpace_rnis::{LinkReport, UserReport};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::flow::{Ends, Flow};
use crate::meter::{FlowMeter, LinkMeter};
use crate::results::{Column, Moment, Series};

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
    /// What the control and the receiver half show.
    states: Vec<Shown>,
    half: Vec<Shown>,
    /// What a proxy that splits the flow shows.
    proxy: Vec<Shown>,
    rows: usize,
    last_delivered: u64,
}

/// A named figure, and its values so far.
type Shown = (&'static str, Vec<f64>);

/// Enters the value of the row `rows`; rows without one are NaN.
fn enter(shown: &mut Vec<Shown>, rows: usize, name: &'static str, value: f64) {
    let place = shown.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
        shown.push((name, Vec::new()));
        shown.len() - 1
    });
    let column = &mut shown[place].1;
    column.resize(rows - 1, f64::NAN);
    column.push(value);
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
    /// A row for the interval that ends at `now`. Of a flow that is split, `leg` comes from the server: what is shown of a
    /// sender is its, and RTTs are those of both and what the payload that left the proxy last had waited there.
    pub fn sample(
        &mut self,
        now: Time,
        interval: Span,
        flow: &Flow,
        leg: Option<(&Flow, Span)>,
        meter: &mut FlowMeter,
    ) {
        let (leg, waited) = leg.unzip();
        let mut account = flow.account();
        if let Some(leg) = leg {
            let server = leg.account();
            (account.sent_bytes, account.acked_bytes) = (server.sent_bytes, server.acked_bytes);
            account.retransmitted += server.retransmitted;
        }
        let goodput = (account.delivered - self.last_delivered) as f64 * 8.0 / interval.as_secs_f64();
        self.last_delivered = account.delivered;
        let (mut window, mut pacing, mut in_flight) = ([f64::NAN; 2], f64::NAN, f64::NAN);
        let (mut srtt, mut last, mut control) = (None, None, None);
        match &leg.unwrap_or(flow).ends {
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
            Ends::Quic(ends) => {
                let row = ends.row();
                window = row.window;
                if let Pacing::Rate(rate) = row.pacing {
                    pacing = rate.as_f64();
                }
                in_flight = row.in_flight.as_f64();
                (srtt, last) = (Some(row.smoothed), row.latest);
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
        if let (Some(_), Ends::Tcp(sender, _)) = (leg, &flow.ends) {
            let waited = waited.unwrap_or_default();
            srtt = srtt.map(|srtt| srtt + waited + sender.rtt().smoothed());
            last = last.zip(sender.rtt().latest()).map(|(wan, ran)| wan + waited + ran);
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
        let rows = self.rows;
        if let Some(control) = control {
            control.inspect(&mut |name, value| enter(&mut self.states, rows, name, value));
        }
        if let Ends::Quic(ends) = &flow.ends {
            ends.inspect(&mut |name, value| enter(&mut self.states, rows, name, value));
        }
        if let Some(half) = flow.half() {
            half.inspect(&mut |name, value| enter(&mut self.half, rows, name, value));
        }
    }

    /// What a proxy shows, for the row that is sampled next.
    pub fn show_proxy(&mut self, name: &'static str, value: f64) {
        enter(&mut self.proxy, self.rows + 1, name, value);
    }

    pub fn finish(self) -> Series {
        let rows = self.rows;
        let mut series = named(&FLOW_COLUMNS, self.columns);
        for (prefix, shown) in [("state", self.states), ("receiver", self.half), ("proxy", self.proxy)] {
            series.columns.extend(shown.into_iter().map(|(name, mut values)| {
                values.resize(rows, f64::NAN);
                Column { name: format!("{prefix}_{name}"), values }
            }));
        }
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

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// What the rows from this one on say together; those of one interval each.
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

    pub fn finish(self) -> Series {
        named(&LINK_COLUMNS, self.columns)
    }
}

/// What a user's row is made from.
pub(crate) struct RadioRow {
    pub now: Time,
    pub interval: Span,
    /// Index of the cell that serves it.
    pub serving: Option<usize>,
    /// What that cell says of it: report, channel, symbols of a slot, and its length.
    pub seen: Option<(UserReport, Both<Probe>, u8, Span)>,
    /// The report of the row before.
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
    /// A row for the interval that ends now. MCS are those of the last grants, PRBs a mean over the slots of the interval.
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
                // Another cell counts from the beginning.
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
        push(&mut self.columns, &values);
    }

    pub fn finish(self) -> Series {
        named(&RADIO_COLUMNS, self.columns)
    }
}
