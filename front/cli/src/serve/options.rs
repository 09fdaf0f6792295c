//! The options of `ranpace serve`, and its run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use ranpace_cc::Algorithm;
use ranpace_config::{Log, LogFormat, LogLevel};
use ranpace_rnisd::client::Origin;
use ranpace_rnisd::server::allow_files;
use ranpace_serve::config::{AgentConfig, Config, Feed, Identity, Rule};
use ranpace_serve::{ServeError, Server};
use ranpace_units::{Bytes, Span};

use crate::failure::Failure;
use crate::{interrupt, log, output};

/// How often it is looked whether the server is to stop.
const LOOK: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub struct Options {
    /// The folder
    folder: PathBuf,
    /// Address and port of HTTP/3 (UDP), and of HTTP/1.1 with TLS (TCP)
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4433")]
    listen: SocketAddr,
    /// Address and port of HTTP/1.1 without TLS
    #[arg(long, value_name = "ADDRESS:PORT")]
    plain: Option<SocketAddr>,
    /// PEM file of the certificate and its chain; one that replaces it is used within seconds [default: one that is made at the start]
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// PEM file of the certificate's key
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Name or address in the certificate that is made at the start; repeat for several [default: localhost and the address of --listen]
    #[arg(long, value_name = "NAME", conflicts_with = "certificate")]
    name: Vec<String>,
    /// Congestion control of QUIC connections, or of those whose first request's path begins with PREFIX; repeat for several
    /// [default: cubic]
    #[arg(long = "cc", value_name = "[/PREFIX=]CONTROL", value_parser = quic_rule)]
    quic_control: Vec<Rule<Algorithm>>,
    /// The kernel's congestion control of TCP connections, likewise, such as one that `ranpace kernel load` has loaded
    /// [default: the system's]
    #[arg(long = "tcp-cc", value_name = "[/PREFIX=]CONTROL")]
    tcp_control: Vec<Rule<Option<String>>>,
    /// Radio information for controls that need it: rnis:http://HOST:PORT, an RNIS server by datagrams, or table:PATH, its shared table
    #[arg(long, value_name = "WHERE")]
    feed: Option<Origin>,
    /// Interval between two reports of the feed [default: 8ms]
    #[arg(long, value_name = "TIME", requires = "feed")]
    feed_period: Option<Span>,
    /// File with the bearer token for the RNIS server
    #[arg(long, value_name = "FILE", requires = "feed")]
    feed_token: Option<PathBuf>,
    /// PEM file of the authority that signed the RNIS server's certificate, if that is no public one
    #[arg(long, value_name = "FILE", requires = "feed")]
    feed_ca: Option<PathBuf>,
    /// File of the agent that hears Lightweight PEPs, for connections over QUIC whose control goes by them (mdcc)
    #[arg(long, value_name = "FILE")]
    pep: Option<PathBuf>,
    /// Answer folders without an index.html with a list of their files
    #[arg(long)]
    list: bool,
    /// Answer each path that ends in /bytes/N with N bytes that are in no file, if N is not more than this
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Bytes>,
    /// Folder for a log of each QUIC connection (qlog)
    #[arg(long, value_name = "FOLDER")]
    qlog: Option<PathBuf>,
    /// File for samples of the congestion controls: a line of JSON for each QUIC connection at each interval
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Interval of the samples, at least 1ms
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "samples", value_parser = interval)]
    samples_period: Span,
    /// Size of all QUIC packets, the UDP payload, 1200B to 65527B, which the path must carry [default: what the path carries, up to 1452B]
    #[arg(long, value_name = "SIZE", value_parser = packet)]
    packet: Option<u16>,
    /// Hand datagrams to the kernel one by one, each at the time that the control's pace has for it [default: up to ten at once (GSO), which takes less CPU and makes bursts]
    #[arg(long)]
    no_gso: bool,
    /// Address and port of /metrics (Prometheus)
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Time for open downloads to end after Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s")]
    grace: Span,
    /// Most connections at a time, of each protocol
    #[arg(long, value_name = "N", default_value_t = 4_096)]
    connections: usize,
    /// Most of them of one address
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    connections_per_address: usize,
    /// QUIC handshakes at a time above which clients have to prove their addresses (Retry)
    #[arg(long, value_name = "N", default_value_t = 256)]
    handshakes: usize,
    /// Form of the log, on standard error
    #[arg(long, value_name = "FORM", default_value = "text")]
    log: Form,
    /// Least important messages of the log; debug has each request
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: Level,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    Text,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

fn quic_rule(text: &str) -> Result<Rule<Algorithm>, String> {
    text.parse().map_err(|error: ranpace_cc::AlgorithmError| error.to_string())
}

fn interval(text: &str) -> Result<Span, String> {
    let span = text.parse::<Span>().map_err(|error| error.to_string())?;
    (span >= Span::from_millis(1)).then_some(span).ok_or_else(|| "expected at least 1ms".to_owned())
}

/// RFC 9000, section 14, and the longest datagram of UDP over IPv4.
fn packet(text: &str) -> Result<u16, String> {
    let size = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    let size = u16::try_from(size.get()).ok().filter(|size| (1_200..=65_527).contains(size));
    size.ok_or_else(|| "expected 1200B to 65527B".to_owned())
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Folder { .. } | ServeError::Control { .. } | ServeError::Setup(_) => {
                Self::asked(error)
            }
            _ => Self::ours(error),
        }
    }
}

impl Options {
    /// What the options say.
    fn config(&self) -> Result<Config, Failure> {
        let mut config = Config::new(self.folder.clone());
        config.listen = self.listen;
        config.plain = self.plain;
        config.identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                Identity::Files { certificate: certificate.clone(), key: key.clone() }
            }
            _ => Identity::SelfSigned(self.names()),
        };
        self.quic_control.iter().for_each(|rule| config.quic_control.add(rule.clone()));
        self.tcp_control.iter().for_each(|rule| config.tcp_control.add(rule.clone()));
        config.feed = self.feed.clone().map(Feed::new);
        if let Some(feed) = &mut config.feed {
            feed.wanted.period = self.feed_period.unwrap_or(feed.wanted.period);
            feed.wanted.ca.clone_from(&self.feed_ca);
            if let Some(file) = &self.feed_token {
                let read = std::fs::read_to_string(file);
                let text = read
                    .map_err(|error| Failure::asked(format!("--feed-token {}: {error}", file.display())))?;
                feed.wanted.token = Some(text.trim().to_owned());
            }
        }
        if let Some(file) = &self.pep {
            config.pep = Some(AgentConfig::read(file).map_err(Failure::asked)?);
        }
        config.list_folders = self.list;
        config.generated = self.bytes.map(Bytes::get);
        config.qlog.clone_from(&self.qlog);
        config.samples = self.samples.clone().map(|file| (file, duration(self.samples_period)));
        config.packet = self.packet;
        config.gso = !self.no_gso;
        config.metrics = self.metrics;
        config.grace = duration(self.grace);
        config.limits.connections = self.connections;
        config.limits.connections_per_address = self.connections_per_address;
        config.limits.handshakes = self.handshakes;
        Ok(config)
    }

    /// Names of the certificate that is made at the start.
    fn names(&self) -> Vec<String> {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let address = self.listen.ip();
        let own = (!address.is_unspecified()).then(|| address.to_string());
        std::iter::once("localhost".to_owned()).chain(own).collect()
    }

    fn log(&self) -> Log {
        Log {
            format: match self.log {
                Form::Text => LogFormat::Text,
                Form::Json => LogFormat::Json,
            },
            level: match self.log_level {
                Level::Error => LogLevel::Error,
                Level::Warn => LogLevel::Warn,
                Level::Info => LogLevel::Info,
                Level::Debug => LogLevel::Debug,
            },
        }
    }

    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let config = self.config()?;
        // Before there is anything that a signal could interrupt. What is to be said when it stops, the log says.
        interrupt::flag();
        interrupt::at_exit(|| {});
        let to = self.log();
        log::to_standard_error(&to);
        // A connection over TCP is a file, and each request of any connection has one.
        allow_files(config.limits.connections.saturating_mul(2));
        let is_own = matches!(config.identity, Identity::SelfSigned(_));
        let server = Server::start(config)?;
        if to.format == LogFormat::Text {
            let pin = if is_own {
                format!("; the certificate's SHA-256, for clients to pin, is {}", server.fingerprint())
            } else {
                String::new()
            };
            output::say(&format!(
                "serving {} at https://{} by HTTP/3 and HTTP/1.1{pin}. Ctrl-C stops it",
                self.folder.display(),
                server.address()
            ));
        }
        while !interrupt::is_set() {
            thread::sleep(LOOK);
        }
        drop(server);
        Ok(())
    }
}
