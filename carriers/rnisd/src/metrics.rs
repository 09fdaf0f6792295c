//! What the server counts, in Prometheus' text format.

use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// An answered request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// Status.
    pub status: u16,
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Outcome {
    /// It arrived.
    Delivered,
    /// It is tried again.
    Retried,
    /// It was given up.
    GivenUp,
    /// It was dropped because too many waited, or replaced by a newer one.
    Dropped,
}

/// Labels of deliveries.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DeliveryLabels {
    /// How it ended.
    pub outcome: Outcome,
}

/// Labels of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SourceLabels {
    /// Its name.
    pub source: String,
}

/// What the feed of records counts.
#[derive(Clone, Debug, Default)]
pub struct FeedMetrics {
    /// Subscriptions by datagram.
    pub subscriptions: Gauge,
    /// Those whose subscribers listen.
    pub served: Gauge,
    /// Datagrams sent.
    pub datagrams: Counter,
    /// Their bytes, without UDP and IP headers.
    pub bytes: Counter,
    /// Datagrams that the system did not take.
    pub unsent: Counter,
    /// Datagrams that came and were no requests of a subscriber: forged, repeated, cut off, or too late.
    pub refused: Counter,
    /// Users and cells that the table has no place for.
    pub beyond_table: Counter,
    /// Messages published to the broker.
    pub published: Counter,
    /// Reports that the broker was too slow for.
    pub unpublished: Counter,
}

impl FeedMetrics {
    fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("feed");
        let gauges = [
            ("subscriptions", "Subscriptions to datagrams", &self.subscriptions),
            ("served", "Subscriptions to datagrams whose subscribers listen", &self.served),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        let counters = [
            ("datagrams", "Datagrams sent", &self.datagrams),
            ("bytes", "Bytes of datagrams sent, without UDP and IP headers", &self.bytes),
            ("unsent", "Datagrams that the system did not take", &self.unsent),
            ("refused", "Datagrams received that were no requests of subscribers", &self.refused),
            ("beyond_table", "Users and cells that the shared table has no place for", &self.beyond_table),
            ("published", "Messages published to the broker", &self.published),
            ("unpublished", "Reports that the broker was too slow for", &self.unpublished),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
    }
}

/// All counters.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Answered requests.
    pub requests: Family<RequestLabels, Counter>,
    /// Time to answer a request.
    pub request_seconds: Histogram,
    /// Connections.
    pub connections: Gauge<i64, AtomicI64>,
    /// Connections that were refused or cut off.
    pub cut_off: Counter<u64, AtomicU64>,
    /// Updates of sources.
    pub updates: Family<SourceLabels, Counter>,
    /// Updates about cells that were not described, or beyond the most cells and users.
    pub refused_updates: Family<SourceLabels, Counter>,
    /// Messages of sources that could not be read.
    pub left_out: Family<SourceLabels, Gauge>,
    /// Whether the source is connected.
    pub connected: Family<SourceLabels, Gauge>,
    /// Notifications that began to wait.
    pub notifications: Counter<u64, AtomicU64>,
    /// How deliveries ended.
    pub deliveries: Family<DeliveryLabels, Counter>,
    /// From the beginning of the measurement to the delivery of a record.
    pub record_seconds: Histogram,
    /// Subscriptions.
    pub subscriptions: Gauge<i64, AtomicI64>,
    /// Cells.
    pub cells: Gauge<i64, AtomicI64>,
    /// Users in cells.
    pub users: Gauge<i64, AtomicI64>,
    /// Bearers.
    pub bearers: Gauge<i64, AtomicI64>,
    /// Failures to keep what must survive a restart.
    pub store_failures: Counter<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("rnis");
        macro_rules! metric {
            ($name:literal, $help:literal, $metric:expr) => {{
                let metric = $metric;
                registry.register($name, $help, metric.clone());
                metric
            }};
        }
        let buckets = || Histogram::new(exponential_buckets(50e-6, 2.0, 18));
        Self {
            requests: metric!("requests", "Answered requests", Family::default()),
            request_seconds: metric!("request_seconds", "Time to answer a request", buckets()),
            connections: metric!("connections", "Open connections", Gauge::default()),
            cut_off: metric!("cut_off", "Connections refused or cut off", Counter::default()),
            updates: metric!("updates", "Updates of sources", Family::default()),
            refused_updates: metric!(
                "refused_updates",
                "Updates about unknown cells, or beyond the most cells and users",
                Family::default()
            ),
            left_out: metric!(
                "source_left_out",
                "Messages of sources that could not be read",
                Family::default()
            ),
            connected: metric!("source_connected", "Whether the source is connected", Family::default()),
            notifications: metric!("notifications", "Notifications that began to wait", Counter::default()),
            deliveries: metric!("deliveries", "How deliveries ended", Family::default()),
            record_seconds: metric!("record_seconds", "From measurement to delivery of a record", buckets()),
            subscriptions: metric!("subscriptions", "Subscriptions", Gauge::default()),
            cells: metric!("cells", "Cells", Gauge::default()),
            users: metric!("users", "Users in cells", Gauge::default()),
            bearers: metric!("bearers", "Bearers", Gauge::default()),
            store_failures: metric!("store_failures", "Failures of the store", Counter::default()),
            registry,
        }
    }
}

impl Metrics {
    /// Publishes the feed's counters, too.
    pub fn add_feed(&mut self, feed: &FeedMetrics) {
        feed.register(&mut self.registry);
    }

    /// The text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Counts deliveries.
    pub fn deliver(&self, outcome: Outcome, count: u64) {
        if count > 0 {
            self.deliveries.get_or_create(&DeliveryLabels { outcome }).inc_by(count);
        }
    }
}
