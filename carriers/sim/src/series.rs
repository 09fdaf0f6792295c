//! Rows of flows' series, from the state of both endpoints at a sampling instant.

use ranpace_cc::Pacing;
use ranpace_network::{FigureSource, FlowMeter, FlowRow, FlowRows};
use ranpace_units::{Span, Time};

use crate::flow::{Ends, Flow};

/// A row for the interval that ends at `now`. For a split flow, `leg` is the connection from the server: the sender's figures are
/// its, and RTTs are the sum of both connections' and of the waiting time of the payload that left the proxy last.
pub(crate) fn sample(
    rows: &mut FlowRows,
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
    let row = FlowRow { counts: account, window, pacing, in_flight, srtt, last_rtt: last };
    rows.sample(now, interval, &row, meter);
    if let Some(control) = control {
        control.inspect(&mut |name, value| rows.show(FigureSource::Control, name, value));
    }
    if let Ends::Quic(ends) = &flow.ends {
        ends.inspect(&mut |name, value| rows.show(FigureSource::Control, name, value));
    }
    if let Some(half) = flow.half() {
        half.inspect(&mut |name, value| rows.show(FigureSource::Receiver, name, value));
    }
}
