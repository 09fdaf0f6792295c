//! How to download.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ranpace_cc::Algorithm;

use crate::meters::Meters;
use crate::trust::Trust;

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Http {
    /// HTTP/3 over QUIC, for https.
    #[default]
    Three,
    /// HTTP/1.1 over TCP.
    One,
}

/// How to download.
#[derive(Clone, Debug)]
pub struct Options {
    /// The protocol; http without TLS is always HTTP/1.1.
    pub http: Http,
    /// The control of what this end sends: over QUIC any of `ranpace list cc`, over TCP one of the kernel's.
    pub cc: Option<String>,
    /// The client-driven control for which this end measures and reports, over QUIC.
    pub reports: Option<Algorithm>,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// Bytes that may be on their way, by QUIC's flow control. With more than 2,048 full packets behind a loss noq ends the
    /// connection: 2 MB are safe at any packet size.
    pub window: u64,
    /// The longest silence of the server.
    pub patience: Duration,
    /// Folder for the file; `None` discards the content.
    pub folder: Option<PathBuf>,
    /// Where the meters of this download are, for radio information.
    pub meters: Arc<Meters>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            http: Http::default(),
            cc: None,
            reports: None,
            trust: Trust::default(),
            window: 2_000_000,
            patience: Duration::from_secs(30),
            folder: None,
            meters: Arc::default(),
        }
    }
}
