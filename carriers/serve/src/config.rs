//! What a server serves, where, and with which congestion controls.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ranpace_cc::{Algorithm, AlgorithmError};
use ranpace_rnisd::client::{Origin, Wanted};
pub use ranpace_tap::config::AgentConfig;
use ranpace_units::Span;

/// A server's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder whose files are served.
    pub folder: PathBuf,
    /// Address of HTTP/3 over UDP, and of HTTP/1.1 with TLS over TCP.
    pub listen: SocketAddr,
    /// Address of HTTP/1.1 without TLS.
    pub plain: Option<SocketAddr>,
    /// Where the certificate is from.
    pub identity: Identity,
    /// The control of QUIC connections.
    pub quic_control: ByPrefix<Algorithm>,
    /// The kernel's control of TCP connections; the system's default where there is none.
    pub tcp_control: ByPrefix<Option<String>>,
    /// Radio information.
    pub feed: Option<Feed>,
    /// Lightweight PEPs, for Multi-Domain control over QUIC.
    pub pep: Option<AgentConfig>,
    /// Folders without an `index.html` are answered with a list of their files.
    pub list_folders: bool,
    /// Most bytes of a path that ends in `/bytes/N`, which is answered with N bytes that are in no file; without it there are no such paths.
    pub generated: Option<u64>,
    /// Folder of the logs of QUIC connections.
    pub qlog: Option<PathBuf>,
    /// File that takes samples of the controls of QUIC connections, and the interval.
    pub samples: Option<(PathBuf, Duration)>,
    /// Size of all QUIC packets, the UDP payload, which the path must carry; without it, noq finds the largest that it does.
    pub packet: Option<u16>,
    /// Whether the kernel is given up to ten datagrams at once to segment (GSO), which costs it less; they then leave as one burst, whatever the
    /// control's pace.
    pub gso: bool,
    /// Address of `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// Time for open downloads to end when the server stops.
    pub grace: Duration,
    /// What clients may take.
    pub limits: Limits,
}

impl Config {
    /// Serves a folder to this host alone, with defaults for everything else.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 4433)),
            plain: None,
            identity: Identity::SelfSigned(vec!["localhost".to_owned()]),
            quic_control: ByPrefix::new("cubic".parse().expect("CUBIC is always there")),
            tcp_control: ByPrefix::new(None),
            feed: None,
            pep: None,
            list_folders: false,
            generated: None,
            qlog: None,
            samples: None,
            packet: None,
            gso: true,
            metrics: None,
            grace: Duration::from_secs(30),
            limits: Limits::default(),
        }
    }
}

/// Where a server's certificate is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// It is made at the start, for these names and addresses.
    SelfSigned(Vec<String>),
    /// PEM files. Others that replace them are used for later connections.
    Files {
        /// The certificate, and those that lead to an authority.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
}

/// Radio information.
#[derive(Clone, Debug)]
pub struct Feed {
    /// Where it comes from.
    pub origin: Origin,
    /// How it is asked for.
    pub wanted: Wanted,
}

impl Feed {
    /// The downlink of all users that the origin tells of, each 8 ms: the interval of MELD's source (Diarra 2022, 4.2.4).
    pub fn new(origin: Origin) -> Self {
        Self { origin, wanted: Wanted { period: Span::from_millis(8), ..Wanted::default() } }
    }
}

/// Bounds of what clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time, of each protocol.
    pub connections: usize,
    /// Of one IPv4 address or one IPv6 network of 64 bits, of each protocol.
    pub connections_per_address: usize,
    /// QUIC handshakes at a time above which a client has to prove its address first, which costs it a round trip (Retry).
    pub handshakes: usize,
    /// Requests of one QUIC connection at a time.
    pub requests: u32,
    /// Time for a client to complete a handshake, and to send the head of a request.
    pub head_time: Duration,
    /// Time for a client to take 64 KiB of an answer.
    pub write_time: Duration,
}

impl Default for Limits {
    /// Ours.
    fn default() -> Self {
        Self {
            connections: 4_096,
            connections_per_address: 1_024,
            handshakes: 256,
            requests: 64,
            head_time: Duration::from_secs(10),
            write_time: Duration::from_secs(30),
        }
    }
}

/// A value for each path: that of the longest prefix that fits, or the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByPrefix<T> {
    default: T,
    /// Prefixes, the longest first.
    rules: Vec<(String, T)>,
}

impl<T> ByPrefix<T> {
    /// The same value for all paths.
    pub fn new(default: T) -> Self {
        Self { default, rules: Vec::new() }
    }

    /// The value of paths without a rule.
    pub fn default(&self) -> &T {
        &self.default
    }

    /// Whether all paths have the default.
    pub fn is_uniform(&self) -> bool {
        self.rules.is_empty()
    }

    /// All values, the default first.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.default).chain(self.rules.iter().map(|(_, value)| value))
    }

    /// Adds what an option says; a later one of the same prefix counts.
    pub fn add(&mut self, rule: Rule<T>) {
        match rule.prefix {
            None => self.default = rule.value,
            Some(prefix) => {
                self.rules.retain(|(other, _)| *other != prefix);
                self.rules.push((prefix, rule.value));
                self.rules.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
            }
        }
    }

    /// The value of a path. A prefix ends where a segment ends: `/low` is one of `/low/file`, not of `/lower`.
    pub fn of(&self, path: &str) -> &T {
        let fits = |prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.rules.iter().find(|(prefix, _)| fits(prefix)).map_or(&self.default, |(_, value)| value)
    }

    /// The same rules with other values.
    pub fn map<U>(&self, mut other: impl FnMut(&T) -> U) -> ByPrefix<U> {
        ByPrefix {
            default: other(&self.default),
            rules: self.rules.iter().map(|(prefix, value)| (prefix.clone(), other(value))).collect(),
        }
    }
}

/// What an option says: `VALUE` for all paths, or `/PREFIX=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule<T> {
    /// Without the `/` at its end; `None` for all paths.
    prefix: Option<String>,
    value: T,
}

impl<T> Rule<T> {
    fn read<E>(text: &str, value: impl FnOnce(&str) -> Result<T, E>) -> Result<Self, E> {
        let (prefix, rest) = match text.split_once('=') {
            Some((prefix, rest)) if prefix.starts_with('/') => (prefix.trim_end_matches('/'), rest),
            _ => ("", text),
        };
        let prefix = Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty());
        Ok(Self { prefix, value: value(rest)? })
    }
}

impl FromStr for Rule<Algorithm> {
    type Err = AlgorithmError;

    fn from_str(text: &str) -> Result<Self, AlgorithmError> {
        Self::read(text, str::parse)
    }
}

impl FromStr for Rule<Option<String>> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// `TCP_CA_NAME_MAX` of the kernel, with the zero at its end.
        const LONGEST: usize = 16;
        Self::read(text, |name| {
            let is_name = !name.is_empty() && name.len() < LONGEST && !name.contains(['/', '=']);
            let wrong =
                || format!("expected a congestion control of the kernel, such as cubic, found {name:?}");
            is_name.then(|| Some(name.to_owned())).ok_or_else(wrong)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;

    #[test]
    fn the_longest_prefix_decides_and_a_prefix_ends_with_a_segment() {
        let mut controls = ByPrefix::new(None);
        for rule in ["/low=bbr", "cubic", "/low/er=reno", "/low/=dctcp"] {
            controls.add(rule.parse::<Rule<Option<String>>>().unwrap());
        }
        for (path, expected) in [
            ("/", "cubic"),
            ("/low", "dctcp"),
            ("/low/file", "dctcp"),
            ("/lower", "cubic"),
            ("/low/er/file", "reno"),
            ("/LOW/file", "cubic"),
        ] {
            assert_eq!(controls.of(path).as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn options_of_a_control_are_no_prefix() {
        let rule: Rule<Algorithm> = "cubic+c2tcp:target=50ms".parse().unwrap();
        assert_eq!(rule.prefix, None);
        let rule: Rule<Algorithm> = "/low=cubic+c2tcp:target=50ms".parse().unwrap();
        assert_eq!(
            (rule.prefix.as_deref(), rule.value.to_string().as_str()),
            (Some("/low"), "cubic+c2tcp:target=50ms")
        );
        assert!("/low=nonsense".parse::<Rule<Algorithm>>().is_err());
        for wrong in ["", "/low=", "a-name-that-is-too-long", "/low=/bbr"] {
            assert!(wrong.parse::<Rule<Option<String>>>().is_err(), "{wrong}");
        }
    }
}
