//! What the PEP counts, in Prometheus' text format, and the port that serves it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ranpace_pep::lightweight::PepStats;

/// The counters; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// What the PEP itself counts.
    packets: Counter,
    reports: Counter,
    report_bytes: Counter,
    flows_begun: Counter,
    flows_evicted: Counter,
    flows_aged: Counter,
    messages_refused: Counter,
    flows: Gauge<u64, AtomicU64>,
    /// Packets of servers that were not copied because too many waited.
    pub missed: Counter,
    /// Fragments.
    pub fragments: Counter,
    /// Packets of neither TCP nor UDP.
    pub others: Counter,
    /// Packets whose headers are cut off or contradict each other.
    pub malformed: Counter,
    /// Messages that came from nobody who may send some.
    pub strangers: Counter,
    /// Reports that the system did not take.
    pub unsent: Counter,
    /// Servers that are subscribed.
    pub subscribed: Gauge<u64, AtomicU64>,
    /// Devices that are observed.
    pub devices: Gauge<u64, AtomicU64>,
}

impl Metrics {
    /// Takes over what the PEP has counted, and the flows that it tracks.
    pub fn set(&self, stats: &PepStats, flows: usize) {
        for (counter, value) in [
            (&self.packets, stats.packets),
            (&self.reports, stats.reports),
            (&self.report_bytes, stats.report_bytes),
            (&self.flows_begun, stats.flows),
            (&self.flows_evicted, stats.evicted),
            (&self.flows_aged, stats.aged),
            (&self.messages_refused, stats.refused),
        ] {
            counter.inner().store(value, Ordering::Relaxed);
        }
        self.flows.set(flows as u64);
    }

    /// In OpenMetrics' text format.
    pub fn text(&self) -> String {
        let mut registry = Registry::with_prefix("pep");
        for (name, help, counter) in [
            ("packets", "Packets counted", &self.packets),
            ("missed_packets", "Packets that were not counted because too many waited", &self.missed),
            ("fragments", "Fragments of IP packets, which are not counted", &self.fragments),
            ("other_packets", "Packets of neither TCP nor UDP", &self.others),
            (
                "malformed_packets",
                "Packets whose headers are cut off or contradict each other",
                &self.malformed,
            ),
            ("reports", "Reports sent", &self.reports),
            ("report_bytes", "Bytes of reports with their IP and UDP headers", &self.report_bytes),
            ("unsent_reports", "Reports that the system did not take", &self.unsent),
            ("flows_begun", "Flows that began", &self.flows_begun),
            ("flows_evicted", "Flows forgotten in favour of others", &self.flows_evicted),
            ("flows_aged", "Flows forgotten after silence", &self.flows_aged),
            (
                "refused_messages",
                "Messages of servers' addresses that were forged, repeated or wrong",
                &self.messages_refused,
            ),
            ("stranger_messages", "Messages from nobody who may send some", &self.strangers),
        ] {
            registry.register(name, help, counter.clone());
        }
        for (name, help, gauge) in [
            ("flows", "Flows tracked", &self.flows),
            ("subscribed_servers", "Servers that are subscribed", &self.subscribed),
            ("observed_devices", "Devices that are observed", &self.devices),
        ] {
            registry.register(name, help, gauge.clone());
        }
        let mut text = String::new();
        // Fails only where the writer does, and a string does not.
        let _ = encode(&mut text, &registry);
        text
    }

    /// Serves them at `http://ADDRESS/metrics` from a thread of its own, as long as the process lives.
    ///
    /// # Errors
    ///
    /// If nobody can listen there.
    pub fn serve(&self, address: SocketAddr) -> io::Result<()> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let metrics = self.clone();
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let answer = move || {
            let text = metrics.text();
            async move { ([(CONTENT_TYPE, kind)], text) }
        };
        let routes = axum::Router::new().route("/metrics", get(answer));
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let served = runtime
                .block_on(async { axum::serve(tokio::net::TcpListener::from_std(listener)?, routes).await });
            if let Err(error) = served {
                tracing::error!(%error, "metrics are served no longer");
            }
        })?;
        Ok(())
    }
}
