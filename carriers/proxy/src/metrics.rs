//! What the proxy counts, in Prometheus' text format.

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum End {
    /// Both ends have said all.
    Complete,
    /// One end was reset, or a socket failed.
    Reset,
}

/// Labels of connections that have ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct EndLabels {
    /// How.
    pub end: End,
}

/// Why a connection was not split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Passed {
    /// A limit of the configuration or of the system.
    Limit,
    /// The server refuses, or is not reached: the client is to see that itself.
    Refused,
    /// The server had not answered when the client had repeated its SYN for more than a second.
    Silent,
    /// It came back to the proxy.
    Loop,
    /// The proxy was asleep, so that it may have passed already.
    Late,
}

/// Labels of connections that were not split.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PassedLabels {
    /// Why.
    pub reason: Passed,
}

/// Direction of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Towards {
    /// To users.
    User,
    /// To servers.
    Server,
}

/// Labels of payload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PayloadLabels {
    /// Direction.
    pub towards: Towards,
}

/// All counters.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Split connections that are open.
    pub connections: Gauge,
    /// Connections that wait for an end's answer.
    pub handshakes: Gauge,
    /// Users with connections.
    pub users: Gauge,
    /// Users whose radio information is current.
    pub users_known: Gauge,
    /// Payload that waits in the proxy, in bytes.
    pub backlog: Gauge,
    /// Connections that were split.
    pub split: Counter,
    /// Connections that were not split.
    pub passed: Family<PassedLabels, Counter>,
    /// Connections that have ended.
    pub ended: Family<EndLabels, Counter>,
    /// Handshakes that nobody completed.
    pub expired: Counter,
    /// Connections to servers with another port than the client's.
    pub other_port: Counter,
    /// Payload of connections that have ended, in bytes.
    pub payload: Family<PayloadLabels, Counter>,
    /// What reached users past the proxy and was no TCP, in bytes of packets; counted with `rapid.account_udp`.
    pub passing: Counter,
    /// Hints about users.
    pub hints: Counter,
    /// Times that the sender or a clamp was refused.
    pub refused: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("proxy");
        macro_rules! metric {
            ($name:literal, $help:literal) => {
                metric!($name, $help, Default::default())
            };
            ($name:literal, $help:literal, $metric:expr) => {{
                let metric = $metric;
                registry.register($name, $help, Clone::clone(&metric));
                metric
            }};
        }
        Self {
            connections: metric!("connections", "Split connections that are open", Gauge::default()),
            handshakes: metric!("handshakes", "Connections that wait for an answer", Gauge::default()),
            users: metric!("users", "Users with connections", Gauge::default()),
            users_known: metric!("users_known", "Users whose radio information is current", Gauge::default()),
            backlog: metric!("backlog_bytes", "Payload that waits in the proxy", Gauge::default()),
            split: metric!("split", "Connections that were split", Counter::default()),
            passed: metric!(
                "passed",
                "Connections that were not split",
                Family::<PassedLabels, Counter>::default()
            ),
            ended: metric!("ended", "Connections that have ended", Family::<EndLabels, Counter>::default()),
            expired: metric!("expired", "Handshakes that nobody completed", Counter::default()),
            other_port: metric!(
                "other_port",
                "Connections to servers with another port than the client's",
                Counter::default()
            ),
            payload: metric!(
                "payload_bytes",
                "Payload of connections that have ended",
                Family::<PayloadLabels, Counter>::default()
            ),
            passing: metric!(
                "passing_bytes",
                "Packets that reached users past the proxy and were no TCP",
                Counter::default()
            ),
            hints: metric!("hints", "Radio hints about users", Counter::default()),
            refused: metric!("refused", "Windows and rates that the kernel refused", Counter::default()),
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

    /// Counts a connection that is not split.
    pub fn pass(&self, reason: Passed) {
        self.passed.get_or_create(&PassedLabels { reason }).inc();
    }

    /// Counts a connection that has ended, and its payload towards the user and the server.
    pub fn end(&self, end: End, (down, up): (u64, u64)) {
        self.ended.get_or_create(&EndLabels { end }).inc();
        for (towards, bytes) in [(Towards::User, down), (Towards::Server, up)] {
            self.payload.get_or_create(&PayloadLabels { towards }).inc_by(bytes);
        }
    }
}
