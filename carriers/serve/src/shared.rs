//! What all connections of a server share.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Uri};
use noq::TransportConfig;
use ranpace_noq::Controls;
use ranpace_rnisd::server::PerAddress;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::{Answer, Answerer};
use crate::config::{ByPrefix, Limits};
use crate::content::ContentError;
use crate::metrics::{Metrics, Protocol, ProtocolLabels, Reason, RequestLabels};
use crate::open::OpenConnections;
use crate::pep::Peps;
use crate::radio::Radio;
use crate::samples::Samples;

/// What all connections share.
#[derive(Debug)]
pub struct Shared {
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) quic_control: ByPrefix<Arc<Controls>>,
    pub(crate) tcp_control: ByPrefix<Option<String>>,
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) radio: Option<Radio>,
    pub(crate) peps: Option<Peps>,
    pub(crate) samples: Option<Arc<Samples>>,
    pub(crate) open: Arc<OpenConnections>,
    pub(crate) quic_addresses: Arc<PerAddress>,
    pub(crate) tcp_addresses: Arc<PerAddress>,
    /// No new connection and no new request.
    pub(crate) stop: CancellationToken,
    /// The time for answers to end is over.
    pub(crate) cut: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) answerer: Arc<Answerer>,
}

impl Shared {
    /// The answer to a request.
    pub(crate) async fn answer(&self, method: Method, uri: Uri, fields: HeaderMap) -> Answer {
        let answerer = Arc::clone(&self.answerer);
        // The disk may be slow.
        let answer = tokio::task::spawn_blocking(move || answerer.answer(&method, uri.path(), &fields));
        answer.await.unwrap_or_else(|error| {
            tracing::error!(%error, "answering a request failed");
            Answer::failed()
        })
    }

    pub(crate) fn count(&self, protocol: Protocol, status: u16) {
        self.metrics.requests.get_or_create(&RequestLabels { protocol, status }).inc();
    }

    pub(crate) fn observe(&self, protocol: Protocol, time: Duration) {
        self.metrics.request_seconds.get_or_create(&ProtocolLabels { protocol }).observe(time.as_secs_f64());
    }

    /// A file could not be read to its end.
    pub(crate) fn fail(&self, protocol: Protocol, path: &str, error: &ContentError) {
        self.metrics.cut_off(protocol, Reason::File);
        tracing::warn!(path, %error, "an answer was cut off");
    }
}
