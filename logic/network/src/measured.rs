//! Turns what the meters counted into results.

use ranpace_scenario::{FlowSpec, Transport};
use ranpace_units::{Bytes, Rate, Span};

use crate::meter::{FlowMeter, LinkMeter};
use crate::results::{FlowCounts, FlowResult, FlowTotals, LinkResult, Series};
use crate::series::LinkRows;

impl FlowResult {
    /// The network's measurements of a flow, with its endpoints' counters from `before` to `after` in the measured part, `measured`
    /// long. Transfers and totals are left to the endpoints.
    pub fn of(
        spec: &FlowSpec,
        meter: &FlowMeter,
        [before, after]: [FlowCounts; 2],
        measured: Span,
        series: Series,
    ) -> Self {
        let delivered = Bytes::new(after.delivered - before.delivered);
        let sent = after.sent - before.sent;
        Self {
            name: spec.name.clone(),
            cc: match &spec.transport {
                Transport::Tcp { algorithm, .. }
                | Transport::Quic { algorithm, .. }
                | Transport::Datagram { algorithm, .. } => algorithm.to_string(),
                Transport::Udp { .. } => "udp".to_owned(),
            },
            bottleneck: meter.bottleneck.map(|link| link as usize),
            measured,
            delivered,
            goodput: if measured.is_zero() { Rate::ZERO } else { Rate::of(delivered, measured) },
            bottleneck_bytes: Bytes::new(meter.bottleneck_bytes),
            sent_packets: sent,
            retransmitted_packets: after.retransmitted - before.retransmitted,
            dropped_packets: meter.dropped,
            loss_rate: if sent == 0 { 0.0 } else { meter.dropped as f64 / sent as f64 },
            timeouts: after.timeouts - before.timeouts,
            undone: after.undone - before.undone,
            marked_packets: meter.marked,
            rtt: meter.rtt.distribution(),
            queueing_delay: meter.delay.distribution(),
            jitter_ewma: meter.jitter_ewma(),
            jitter_mean_deviation: meter.delay.mean_deviation(),
            totals: FlowTotals::default(),
            transfers: Vec::new(),
            lost: None,
            split: None,
            series,
        }
    }
}

impl LinkMeter {
    /// The result of a link of this name; `capacity` is what it could have carried.
    pub(crate) fn result(self, name: String, capacity: Option<Bytes>, rows: LinkRows) -> LinkResult {
        LinkResult {
            name,
            departed: Bytes::new(self.departed),
            departed_packets: self.departed_packets,
            dropped_packets: self.dropped,
            lost_packets: self.lost,
            marked_packets: self.marked,
            capacity,
            utilisation: capacity
                .filter(|capacity| !capacity.is_zero())
                .map(|capacity| self.departed as f64 / capacity.as_f64()),
            queueing_delay: self.delay.distribution(),
            series: rows.finish(),
        }
    }
}
