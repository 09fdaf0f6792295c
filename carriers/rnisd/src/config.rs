//! The configuration file: TOML, in which an unknown key or a wrong value is an error that names the file, the line and the key.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use ranpace_config::Log;
use ranpace_rnis::lines::{LineClock, Reader};
use ranpace_units::Span;
use serde::{Deserialize, Deserializer};
use url::Url;

use crate::feed::FeedConfig;
use crate::source::{Address, Lines, NamedSource, NotAnAddress, Replay, Srsran, SrsranCell, Update};

mod check;

/// A version of ETSI GS MEC 012.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, serde::Serialize)]
pub enum Version {
    /// V2.1.1.
    #[serde(rename = "2.1.1")]
    V211,
    /// V2.2.1.
    #[default]
    #[serde(rename = "2.2.1")]
    V221,
}

impl Version {
    /// As in the header `Version`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V211 => "2.1.1",
            Self::V221 => "2.2.1",
        }
    }

    /// From its name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::V211, Self::V221].into_iter().find(|version| version.name() == name)
    }
}

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address of the interface.
    #[serde(deserialize_with = "ranpace_config::address")]
    pub listen: SocketAddr,
    /// The root of all addresses in answers, as subscribers reach the server; from `listen` without it.
    pub api_root: Option<Url>,
    /// Version of the standard, unless a request names another.
    pub version: Version,
    /// Folder of what survives a restart; without it subscriptions are lost with the process.
    pub data: Option<PathBuf>,
    /// Bounds.
    pub limits: Limits,
    /// Encryption.
    pub tls: Option<Tls>,
    /// Who may ask.
    pub auth: Option<Auth>,
    /// What single clients may see and do.
    pub client: Vec<Client>,
    /// Where radio information comes from.
    pub source: Vec<SourceConfig>,
    /// Delivery of notifications.
    pub callbacks: Callbacks,
    /// Subscriptions.
    pub subscriptions: Subscriptions,
    /// Measures.
    pub measures: Measures,
    /// Registration at a MEC platform.
    pub mp1: Option<Mp1>,
    /// The feed of records.
    pub feed: FeedConfig,
    /// The log.
    pub log: Log,
    /// Whether browsers of other origins may read (`Access-Control-Allow-Origin`).
    pub allow_origin: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8012)),
            api_root: None,
            version: Version::default(),
            data: None,
            limits: Limits::default(),
            tls: None,
            auth: None,
            client: Vec::new(),
            source: Vec::new(),
            callbacks: Callbacks::default(),
            subscriptions: Subscriptions::default(),
            measures: Measures::default(),
            mp1: None,
            feed: FeedConfig::default(),
            log: Log::default(),
            allow_origin: None,
        }
    }
}

/// Bounds of requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest body of a request.
    #[serde(deserialize_with = "bytes")]
    pub body: usize,
    /// Largest head of a request: its line and header fields.
    #[serde(deserialize_with = "bytes")]
    pub header: usize,
    /// Longest address of a request; longer ones get 414.
    #[serde(deserialize_with = "bytes")]
    pub uri: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time from one address.
    pub connections_per_address: usize,
    /// Time for a client to send a whole head, also on an idle connection.
    #[serde(deserialize_with = "time")]
    pub head_time: Duration,
    /// Time for a client to send a body.
    #[serde(deserialize_with = "time")]
    pub body_time: Duration,
    /// Time in which a client has to take some of an answer.
    #[serde(deserialize_with = "time")]
    pub write_time: Duration,
    /// Requests per second of one client; more get 429. None: no bound.
    pub requests_per_second: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 << 10,
            header: 32 << 10,
            uri: 8 << 10,
            connections: 4096,
            connections_per_address: 1024,
            head_time: Duration::from_secs(30),
            body_time: Duration::from_secs(10),
            write_time: Duration::from_secs(10),
            requests_per_second: None,
        }
    }
}

/// Encryption.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// PEM file of the certificate and those that signed it.
    pub certificate: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
    /// PEM file of the authorities that clients' certificates are signed by.
    pub client_ca: Option<PathBuf>,
    /// Whether a client without a certificate is refused.
    #[serde(default)]
    pub require_client_certificate: bool,
}

/// Bearer tokens: JWT.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// File of public keys: a JSON Web Key Set, or PEM.
    pub keys: Option<PathBuf>,
    /// Address of a JSON Web Key Set.
    pub jwks: Option<Url>,
    /// The issuer that tokens must name.
    pub issuer: Option<String>,
    /// The audience that tokens must name.
    pub audience: Option<String>,
    /// Scope for queries; `rnis.queries` without it.
    pub scope_queries: Option<String>,
    /// Scope for subscriptions; `rnis.subscriptions` without it.
    pub scope_subscriptions: Option<String>,
    /// Scope for the extension; `rnis.vendor` without it.
    pub scope_vendor: Option<String>,
}

/// What a client may see. Without an entry its token's claims decide.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// `sub` (or `client_id`) of its token, or a DNS name of its certificate.
    pub id: String,
    /// Addresses of users that it may see; all without it.
    #[serde(default, deserialize_with = "maybe_networks")]
    pub users: Option<Vec<IpNet>>,
    /// Kinds of identifiers that it may see; all without it.
    pub identifiers: Option<Vec<IdKind>>,
}

/// Kinds of identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdKind {
    /// Type 1.
    UeIpv4,
    /// Type 2.
    UeIpv6,
    /// Type 3.
    NatedIp,
    /// Type 4.
    GtpTeid,
}

/// A source: `lines`, `replay` or `srsran`, one of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourceConfig {
    /// Its name, in metrics and the log; without it, what it reads.
    pub name: Option<String>,
    /// Lines of JSON from here: `unix:PATH`, `tcp:HOST:PORT`, `pipe:PATH`, ...
    pub lines: Option<String>,
    /// Whether lines are taken as measured when they arrive.
    pub by_arrival: bool,
    /// A recorded run.
    pub replay: Option<PathBuf>,
    /// Whether it is played again and again.
    #[serde(rename = "loop")]
    pub loops: bool,
    /// Metrics of srsRAN Project's gNB, from `ws://HOST:PORT` or as datagrams to `udp://ADDRESS:PORT`.
    pub srsran: Option<String>,
    /// Period of these metrics.
    #[serde(deserialize_with = "maybe_time")]
    pub period: Option<Duration>,
    /// Its cells.
    pub cell: Vec<SrsranCellConfig>,
}

/// A cell of srsRAN's gNB.
#[derive(Clone, Debug, Deserialize)]
pub struct SrsranCellConfig {
    /// Physical cell identity.
    pub pci: u16,
    /// The members of `cell` in a line of JSON.
    #[serde(flatten)]
    pub cell: serde_json::Map<String, serde_json::Value>,
}

impl SourceConfig {
    /// The source.
    ///
    /// # Errors
    ///
    /// If its keys do not fit together, or an address is none.
    pub fn open(&self) -> Result<NamedSource, String> {
        let own = |what: &str| self.name.clone().unwrap_or_else(|| what.to_owned());
        match (&self.lines, &self.replay, &self.srsran) {
            (Some(from), None, None) => {
                let address: Address = from.parse().map_err(|error: NotAnAddress| error.to_string())?;
                let lines = Lines::new(address);
                let source = if self.by_arrival { lines.by_arrival() } else { lines };
                Ok(NamedSource { name: own(from), source: Box::new(source) })
            }
            (None, Some(file), None) => {
                let source = if self.loops { Replay::looped(file) } else { Replay::once(file) };
                Ok(NamedSource { name: own(&file.display().to_string()), source: Box::new(source) })
            }
            (None, None, Some(from)) => {
                let cells: Result<Vec<SrsranCell>, String> =
                    self.cell.iter().map(SrsranCellConfig::cell).collect();
                let cells = cells?;
                if cells.is_empty() {
                    return Err(
                        "a source `srsran` expects a [[source.cell]] for each cell of the gNB".to_owned()
                    );
                }
                let mut source = if let Some(address) = from.strip_prefix("ws://") {
                    Srsran::web_socket(address.trim_end_matches('/'), cells)
                } else if let Some(address) = from.strip_prefix("udp://") {
                    Srsran::udp(address.trim_end_matches('/'), cells)
                } else {
                    return Err(format!(
                        "`srsran`: expected ws://HOST:PORT or udp://ADDRESS:PORT, found {from:?}"
                    ));
                };
                if let Some(period) = self.period {
                    let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
                    source = source.with_period(Span::from_nanos(nanos));
                }
                Ok(NamedSource { name: own(from), source: Box::new(source) })
            }
            _ => Err("expected one of `lines`, `replay` and `srsran`".to_owned()),
        }
    }
}

impl SrsranCellConfig {
    /// Reads the cell as a line of JSON.
    fn cell(&self) -> Result<SrsranCell, String> {
        let line = serde_json::json!({ "cell": self.cell }).to_string();
        let wrong = |reason: String| format!("[[source.cell]] with pci {}: {reason}", self.pci);
        let mut found = None;
        let mut take = |update| {
            if let Update::Cell(cell) = update {
                found = Some(cell);
            }
        };
        let mut time = |_: LineClock, _: Option<u64>| ranpace_units::Time::ZERO;
        Reader::default()
            .read(line.as_bytes(), &mut time, &mut take)
            .map_err(|error| wrong(error.to_string()))?;
        let cell = found.ok_or_else(|| wrong("expected the members of a cell".to_owned()))?;
        Ok(SrsranCell { pci: self.pci, cell })
    }
}

/// Delivery of notifications.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Callbacks {
    /// Networks among the loopback, link-local and private ones (and others that no public address is in) to which callbacks may go.
    #[serde(deserialize_with = "ranpace_config::addresses")]
    pub allow: Vec<IpNet>,
    /// PEM file of authorities for callbacks by https, beside the public ones.
    pub ca: Option<PathBuf>,
    /// Time for an endpoint to answer.
    #[serde(deserialize_with = "time")]
    pub answer_time: Duration,
    /// Wait before the first retry; it doubles with each one.
    #[serde(deserialize_with = "time")]
    pub retry: Duration,
    /// Longest wait before a retry.
    #[serde(deserialize_with = "time")]
    pub retry_at_most: Duration,
    /// Notifications that wait for one endpoint; the oldest are dropped and counted.
    pub queue: usize,
}

impl Default for Callbacks {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            ca: None,
            answer_time: Duration::from_secs(5),
            retry: Duration::from_millis(500),
            retry_at_most: Duration::from_secs(60),
            queue: 1000,
        }
    }
}

/// Subscriptions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Subscriptions {
    /// At most this many.
    pub most: usize,
    /// At most this many of one client.
    pub most_per_client: usize,
    /// Longest life; a subscription with a later deadline, or with none, gets this one.
    #[serde(deserialize_with = "maybe_time")]
    pub longest: Option<Duration>,
    /// How long before its end a subscriber is notified.
    #[serde(deserialize_with = "time")]
    pub expiry_notice: Duration,
    /// Different periods of records in use at a time.
    pub periods: usize,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self {
            most: 10_000,
            most_per_client: 2_000,
            longest: None,
            expiry_notice: Duration::from_secs(30),
            periods: 16,
        }
    }
}

/// Measures of layer 2, and how long users count as present.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Measures {
    /// Interval over which they are averaged.
    #[serde(deserialize_with = "time")]
    pub period: Duration,
    /// The users of a cell have left after so long in which nothing came of it: its source is not connected, or its slots have
    /// stopped.
    #[serde(deserialize_with = "time")]
    pub silence: Duration,
}

impl Default for Measures {
    fn default() -> Self {
        Self { period: Duration::from_secs(1), silence: Duration::from_secs(10) }
    }
}

/// Registration at a MEC platform; ETSI GS MEC 011.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mp1 {
    /// Root of the platform's interface, before `/mec_service_mgmt/v1`.
    pub url: Url,
    /// The application instance that this server is.
    pub application: String,
    /// A bearer token for the platform.
    pub token: Option<String>,
}

/// A time with its unit.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Ok(Duration::from_nanos(ranpace_config::time(deserializer)?.as_nanos()))
}

fn maybe_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    time(deserializer).map(Some)
}

fn maybe_networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<IpNet>>, D::Error> {
    ranpace_config::addresses(deserializer).map(Some)
}

/// A size with its unit.
fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    usize::try_from(ranpace_config::bytes(deserializer)?.get()).map_err(serde::de::Error::custom)
}
