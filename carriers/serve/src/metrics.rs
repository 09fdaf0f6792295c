//! What the server counts, in Prometheus' text format.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Protocol {
    /// HTTP/3 over QUIC.
    Http3,
    /// HTTP/1.1 over TCP, with TLS or without.
    Http1,
}

/// Labels of connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ProtocolLabels {
    /// Protocol.
    pub protocol: Protocol,
}

/// Labels of answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// Protocol.
    pub protocol: Protocol,
    /// Status.
    pub status: u16,
}

/// Why a connection or a request was refused or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Reason {
    /// There are too many connections.
    Connections,
    /// There are too many of this address.
    Address,
    /// The client took too long.
    Time,
    /// The client sent too much.
    Size,
    /// A file could not be read to its end.
    File,
    /// The server stopped.
    Stop,
}

/// Labels of what was cut off.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CutOffLabels {
    /// Protocol.
    pub protocol: Protocol,
    /// Why.
    pub reason: Reason,
}

/// All counters.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Open connections.
    pub connections: Family<ProtocolLabels, Gauge<i64, AtomicI64>>,
    /// Answered requests.
    pub requests: Family<RequestLabels, Counter>,
    /// Bytes of answers, without their heads.
    pub bytes: Family<ProtocolLabels, Counter>,
    /// Time from a request to the end of its answer.
    pub request_seconds: Family<ProtocolLabels, Histogram>,
    /// What was refused or cut off.
    pub cut_off: Family<CutOffLabels, Counter>,
    /// Clients that had to prove their addresses.
    pub retries: Counter,
    /// Hints that controls were told.
    pub hints: Counter,
    /// Reports of receivers that controls took.
    pub reports: Counter,
    /// Reports of Lightweight PEPs that controls were told.
    pub pep_reports: Counter,
    /// DATAGRAM frames of clients that were no reports, or old ones.
    pub refused_reports: Counter,
    /// QUIC packets sent, of connections that have ended.
    pub packets: Counter,
    /// Those of them that were lost.
    pub lost_packets: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("serve");
        macro_rules! metric {
            ($name:literal, $help:literal, $metric:expr) => {{
                let metric = $metric;
                registry.register($name, $help, metric.clone());
                metric
            }};
        }
        let seconds = || Histogram::new(exponential_buckets(1e-3, 2.0, 20));
        Self {
            connections: metric!("connections", "Open connections", Family::default()),
            requests: metric!("requests", "Answered requests", Family::default()),
            bytes: metric!("bytes", "Bytes of answers without their heads", Family::default()),
            request_seconds: metric!(
                "request_seconds",
                "Time from a request to the end of its answer",
                Family::<ProtocolLabels, Histogram>::new_with_constructor(seconds)
            ),
            cut_off: metric!("cut_off", "Connections and answers refused or cut off", Family::default()),
            retries: metric!("retries", "Clients that had to prove their addresses", Counter::default()),
            hints: metric!("hints", "Hints about users' radio that controls were told", Counter::default()),
            reports: metric!("reports", "Reports of receivers that controls took", Counter::default()),
            pep_reports: metric!(
                "pep_reports",
                "Reports of Lightweight PEPs that controls were told",
                Counter::default()
            ),
            refused_reports: metric!(
                "refused_reports",
                "DATAGRAM frames of clients that were no reports, or old ones",
                Counter::default()
            ),
            packets: metric!(
                "packets",
                "QUIC packets sent on connections that have ended",
                Counter::default()
            ),
            lost_packets: metric!("lost_packets", "Those of them that were lost", Counter::default()),
            registry,
        }
    }
}

impl Metrics {
    /// The text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Counts what was refused or cut off.
    pub fn cut_off(&self, protocol: Protocol, reason: Reason) {
        self.cut_off.get_or_create(&CutOffLabels { protocol, reason }).inc();
    }

    /// Counts an open connection until the result is dropped.
    pub fn enter(self: &Arc<Self>, protocol: Protocol) -> OpenConnection {
        self.connections.get_or_create(&ProtocolLabels { protocol }).inc();
        OpenConnection { metrics: Arc::clone(self), protocol }
    }
}

/// A counted connection.
#[derive(Debug)]
pub struct OpenConnection {
    metrics: Arc<Metrics>,
    protocol: Protocol,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.metrics.connections.get_or_create(&ProtocolLabels { protocol: self.protocol }).dec();
    }
}
