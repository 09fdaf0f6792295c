//! The configuration file: TOML, all faults of which are told at once, each with its line, its key and what was expected.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ipnet::IpNet;
use ranpace_config::{ConfigError, Configuration, Faults, Inconsistency, Log};
use ranpace_pep::rapid::{
    self, Accounting, Estimator, LateCapacity, Profile, RanRttMin, RttMargin, Settings, Slack, WindowRule,
};
use ranpace_rnisd::client::Origin;
use ranpace_units::{Bytes, Span};
use serde::{Deserialize, Deserializer, Serialize};

/// The longest name: with the endings of the devices it has to fit the 15 bytes of an interface's name.
const LONGEST_NAME: usize = 10;
/// The least buffer of a flow: a window below it would not hold the first data of a server (RFC 6928).
const LEAST_BUFFER: Bytes = Bytes::new(16 << 10);

/// What may wait of a connection before its rate is known: more than the sockets and a pipe hold at a time, or else a fast path is
/// throttled. Ours.
const OPEN_BUFFER: Bytes = Bytes::new(512 << 10);

/// Longer than Linux itself tries to connect with its default of `net.ipv4.tcp_syn_retries`, 6: 127 s at most.
const LINUX_CONNECT_TIMEOUT: Span = Span::from_secs(130);

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Names the nftables table and the devices; different for each proxy of a host.
    pub name: String,
    /// Port of the listener, which redirected connections reach. Different for each proxy of a host.
    pub port: u16,
    /// The marks, routing tables and priorities of routing rules are this number and the next one.
    pub number: u32,
    /// When a client's connection is accepted.
    pub handshake: Handshake,
    /// Whose connections are split; required.
    pub clients: Vec<Clients>,
    /// Networks of servers whose connections are never split.
    #[serde(deserialize_with = "ranpace_config::addresses")]
    pub except: Vec<IpNet>,
    /// Radio information.
    pub feed: Option<Feed>,
    /// Users with several addresses, or with another address than in the feed.
    pub user: Vec<User>,
    /// The allocation.
    pub rapid: Rapid,
    /// The sender towards users.
    pub sender: Sender,
    /// Bounds.
    pub limits: Limits,
    /// Where the proxy is asked how it does.
    pub control: Control,
    /// The log.
    pub log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "ranpace".to_owned(),
            port: 5250,
            number: 5250,
            handshake: Handshake::default(),
            clients: Vec::new(),
            except: Vec::new(),
            feed: None,
            user: Vec::new(),
            rapid: Rapid::default(),
            sender: Sender::default(),
            limits: Limits::default(),
            control: Control::default(),
            log: Log::default(),
        }
    }
}

/// When a client's connection is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handshake {
    /// When the server has accepted: a refused connection is refused, an unreachable one is unreachable.
    #[default]
    Exact,
    /// At once. If the server then refuses, the client's connection is reset.
    AcceptFirst,
}

/// Clients behind an interface.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// The interface on which their packets arrive.
    pub interface: String,
    /// Their networks.
    #[serde(deserialize_with = "ranpace_config::addresses")]
    pub networks: Vec<IpNet>,
    /// Ports of servers, such as `443` or `5000-5999`; all without it.
    #[serde(default)]
    pub ports: Vec<Ports>,
}

/// What [`Ports`] should be, in errors.
const PORTS: &str = "a port or a range of ports, such as \"443\" or \"5000-5999\"";

/// A range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The first one.
    pub first: u16,
    /// The last one.
    pub last: u16,
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(Self { first, last }),
            _ => Err(format!("expected {PORTS}, found {text:?}")),
        }
    }
}

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ranpace_config::parsed(deserializer, PORTS)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

/// Radio information of users.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// `rnis:http://HOST:PORT`, `table:PATH` or `amqp://...`.
    #[serde(deserialize_with = "origin")]
    pub origin: Origin,
    /// Interval of reports.
    #[serde(default = "eight_ms", deserialize_with = "ranpace_config::time")]
    pub period: Span,
    /// File with the server's bearer token.
    pub token: Option<PathBuf>,
    /// PEM file of the authority that signed the server's certificate.
    pub ca: Option<PathBuf>,
}

/// A user.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// All of its addresses.
    #[serde(deserialize_with = "ranpace_config::addresses")]
    pub addresses: Vec<IpAddr>,
    /// Its address in the feed; the first of `addresses` without it.
    #[serde(default, deserialize_with = "ranpace_config::optional_address")]
    pub feed_address: Option<IpAddr>,
}

/// The allocation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rapid {
    /// Sets the defaults of the others.
    #[serde(deserialize_with = "word")]
    pub profile: Option<Profile>,
    /// Estimate of the capacity that a user can expect.
    #[serde(deserialize_with = "word")]
    pub estimator: Option<Estimator>,
    /// Part of the estimated rate that is shared out.
    pub efficiency: Option<f64>,
    /// A flow below this part of the expected rate is slow.
    pub theta: Option<f64>,
    /// Whether reports that under-report are detected.
    pub guard: Option<bool>,
    /// Whether what reaches users past the proxy, such as UDP and QUIC, is subtracted from the capacity that is shared out.
    pub account_udp: Option<bool>,
    /// The RTTs that windows are for.
    #[serde(deserialize_with = "word")]
    pub window: Option<WindowRule>,
    /// What a server has in flight and waiting, relative to its window.
    pub headroom: Option<f64>,
    /// Segments on top of that.
    pub spare: Option<u32>,
    /// How what slow flows leave to others is counted.
    #[serde(deserialize_with = "word")]
    pub accounting: Option<Accounting>,
    /// Weight of the previous value in the mean of arrival rates.
    pub alpha: Option<f64>,
    /// Least window towards a server, in segments.
    pub floor: Option<u32>,
    /// Least window towards a user, in segments.
    pub ran_floor: Option<u32>,
    /// How late packets may come at the end of a period.
    #[serde(deserialize_with = "word")]
    pub slack: Option<Slack>,
    /// Definition of the smallest RTT towards users.
    #[serde(deserialize_with = "word")]
    pub ran_rttmin: Option<RanRttMin>,
    /// What is added to that RTT.
    #[serde(deserialize_with = "word")]
    pub sr_allowance: Option<RttMargin>,
    /// What is shared out while reports are late.
    #[serde(deserialize_with = "word")]
    pub hold: Option<LateCapacity>,
}

/// The sender towards users.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sender {
    /// What imposes the allocation.
    pub control: SenderControl,
}

/// What imposes the allocation on the sender towards users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SenderControl {
    /// `kernel` where that can be loaded, else `pacing`.
    #[default]
    Auto,
    /// The kernel control `rapid`: exactly the allocated window.
    Kernel,
    /// The kernel's CUBIC, at most at the allocated rate.
    Pacing,
}

/// Bounds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at a time; what the limit of open files allows, if that is less. Further ones pass unsplit.
    pub connections: usize,
    /// Connections at a time of one user. Further ones pass unsplit.
    pub connections_per_user: usize,
    /// Connections that wait for a server's answer, of one client's address. Further ones pass unsplit.
    pub handshakes_per_client: usize,
    /// A client that was accepted first is reset when its server has not answered for this time. A SYN that is held passes when it comes
    /// again after this time, if not earlier.
    #[serde(deserialize_with = "ranpace_config::time")]
    pub connect_timeout: Span,
    /// Largest payload of one connection that waits in the proxy and is on its way from the server, in bytes.
    #[serde(deserialize_with = "ranpace_config::bytes")]
    pub flow_buffer: Bytes,
    /// Payload of one user that waits in the proxy: at more, servers are told to wait.
    #[serde(deserialize_with = "ranpace_config::bytes")]
    pub user_buffer: Bytes,
    /// Payload of all users that waits in the proxy: at more, further connections pass unsplit.
    #[serde(deserialize_with = "ranpace_config::bytes")]
    pub total_buffer: Bytes,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 100_000,
            connections_per_user: 4_000,
            handshakes_per_client: 256,
            connect_timeout: LINUX_CONNECT_TIMEOUT,
            flow_buffer: Bytes::new(4 << 20),
            user_buffer: Bytes::new(16 << 20),
            total_buffer: Bytes::new(1 << 30),
        }
    }
}

/// Where the proxy is asked how it does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Control {
    /// Unix socket of `ranpace proxy show` and `drain`, for this user alone.
    pub socket: PathBuf,
    /// Address of `/metrics` and `/health`; no such port without it.
    #[serde(deserialize_with = "ranpace_config::optional_address")]
    pub metrics: Option<SocketAddr>,
}

/// Where `ranpace proxy show` looks for a proxy.
pub const CONTROL_SOCKET: &str = "/run/ranpace-proxy.sock";

impl Default for Control {
    fn default() -> Self {
        Self { socket: CONTROL_SOCKET.into(), metrics: None }
    }
}

impl Config {
    /// Reads and checks a file; files that it names are relative to its folder.
    ///
    /// # Errors
    ///
    /// It cannot be read, or something in it is wrong.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        ranpace_config::read(file)
    }

    /// Parses the text of a file; `name` is the file's in errors.
    ///
    /// # Errors
    ///
    /// All that is wrong in it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Faults> {
        ranpace_config::parse(name, text)
    }

    /// The allocator's settings.
    pub fn settings(&self) -> Settings {
        let Rapid {
            profile,
            estimator,
            efficiency,
            theta,
            guard,
            account_udp,
            window,
            headroom,
            spare,
            accounting,
            alpha,
            floor,
            ran_floor,
            slack,
            ran_rttmin,
            sr_allowance,
            hold,
        } = &self.rapid;
        let of = profile.map_or(Settings::FIELD, Settings::of);
        Settings {
            estimator: estimator.unwrap_or(of.estimator),
            efficiency: efficiency.unwrap_or(of.efficiency),
            theta: theta.unwrap_or(of.theta),
            guard: guard.unwrap_or(of.guard),
            account_udp: account_udp.unwrap_or(of.account_udp),
            window: window.unwrap_or(of.window),
            headroom: headroom.unwrap_or(of.headroom),
            spare: spare.unwrap_or(of.spare),
            accounting: accounting.unwrap_or(of.accounting),
            alpha: alpha.unwrap_or(of.alpha),
            floor: floor.unwrap_or(of.floor),
            ran_floor: ran_floor.unwrap_or(of.ran_floor),
            slack: slack.unwrap_or(of.slack),
            ran_rttmin: ran_rttmin.unwrap_or(of.ran_rttmin),
            sr_allowance: sr_allowance.unwrap_or(of.sr_allowance),
            hold: hold.unwrap_or(of.hold),
            period: self.feed.as_ref().map_or(of.period, |feed| feed.period),
            caps: rapid::Caps {
                flow: of.caps.flow.max(OPEN_BUFFER.min(self.limits.flow_buffer)),
                user: self.limits.user_buffer,
                total: self.limits.total_buffer,
                flows: self.limits.connections as u32, // checked
                ..of.caps
            },
            ..of
        }
    }
}

impl Configuration for Config {
    fn relative_to(&mut self, folder: &Path) {
        if let Some(feed) = &mut self.feed {
            for path in feed.token.iter_mut().chain(&mut feed.ca) {
                *path = folder.join(&path);
            }
        }
    }

    fn inconsistencies(&self) -> Vec<Inconsistency> {
        let mut found = Vec::new();
        let mut add = |key, reason: String| found.push(Inconsistency::at(key, reason));
        let is_plain = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if self.name.len() > LONGEST_NAME || !is_plain(&self.name) {
            let rest = LONGEST_NAME - 1;
            add(
                "name",
                format!("expected a letter and up to {rest} letters and digits, found {:?}", self.name),
            );
        }
        if self.port == 0 {
            add("port", "expected 1 to 65535".to_owned());
        }
        // Tables 253 to 255 are the system's; priorities from 32766 on come after its own rules.
        if !(1..32_765).contains(&self.number) || (252..=255).contains(&self.number) {
            add("number", format!("expected 1 to 251 or 256 to 32764, found {}", self.number));
        }
        if self.clients.is_empty() {
            let reason = "expected at least one [[clients]] with `interface` and `networks`: nobody's connections are split without it";
            add("clients", reason.to_owned());
        }
        let Limits {
            connections,
            connections_per_user,
            handshakes_per_client,
            connect_timeout,
            flow_buffer,
            user_buffer,
            total_buffer,
        } = &self.limits;
        for (key, value) in [
            ("limits.connections", *connections),
            ("limits.connections_per_user", *connections_per_user),
            ("limits.handshakes_per_client", *handshakes_per_client),
        ] {
            if value == 0 || u32::try_from(value).is_err() {
                add(key, format!("expected 1 to {}, found {value}", u32::MAX));
            }
        }
        for (key, value, least) in [
            ("limits.flow_buffer", *flow_buffer, LEAST_BUFFER),
            ("limits.user_buffer", *user_buffer, *flow_buffer),
            ("limits.total_buffer", *total_buffer, *user_buffer),
        ] {
            if value < least || value > Bytes::new(1 << 40) {
                add(key, format!("expected {least} to 1TiB, found {value}"));
            }
        }
        if *connect_timeout < Span::SECOND {
            let reason = format!(
                "expected at least 1s, after which a lost SYN is repeated for the first time, found {connect_timeout}"
            );
            add("limits.connect_timeout", reason);
        }
        if *flow_buffer > Bytes::new(512 << 20) {
            let reason =
                format!("expected at most 512MiB, half of the largest window of TCP, found {flow_buffer}");
            add("limits.flow_buffer", reason);
        }
        if self.feed.as_ref().is_some_and(|feed| feed.period.is_zero() || feed.period > Span::SECOND) {
            add("feed.period", "expected a time above zero, at most 1s".to_owned());
        }
        if let Err(error) = self.settings().check() {
            add("rapid", error.to_string());
        }
        if self.sender.control == SenderControl::Kernel && cfg!(not(feature = "kernel")) {
            let reason = "this ranpace was built without kernel controls; `make install` builds them where clang is, or write \"pacing\"";
            add("sender.control", reason.to_owned());
        }
        for (number, clients) in self.clients.iter().enumerate() {
            let mut add = |key, reason: String| found.push(Inconsistency::in_entry(key, number, reason));
            if clients.networks.is_empty() {
                let reason = "expected at least one network, such as \"10.45.0.0/16\"";
                add("clients.networks", reason.to_owned());
            }
            let is_name = !clients.interface.is_empty()
                && clients.interface.len() < 16
                && clients.interface.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\/".contains(&byte));
            if !is_name {
                let reason = format!("expected the name of an interface, found {:?}", clients.interface);
                add("clients.interface", reason);
            }
        }
        for (number, user) in self.user.iter().enumerate() {
            if user.addresses.is_empty() {
                let reason = "expected at least one address";
                found.push(Inconsistency::in_entry("user.addresses", number, reason));
            }
        }
        found
    }
}

fn origin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Origin, D::Error> {
    ranpace_config::parsed(
        deserializer,
        "where radio information comes from, such as \"rnis:http://127.0.0.1:8012\"",
    )
}

/// A setting that has words.
fn word<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    ranpace_config::parsed(deserializer, "a word in quotes").map(Some)
}

fn eight_ms() -> Span {
    Span::from_millis(8)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;

    const LEAST: &str = "[[clients]]\ninterface = \"ran0\"\nnetworks = [\"10.45.0.0/16\"]\n";

    #[test]
    fn clients_are_enough_and_all_else_has_defaults() {
        let config = Config::parse("proxy.toml", LEAST).unwrap();
        assert_eq!((config.port, config.handshake), (5250, Handshake::Exact));
        assert_eq!(config.settings().caps.user, Bytes::new(16 << 20));
        let more = format!(
            "handshake = \"accept-first\"\n{LEAST}ports = [\"443\", \"5000-5999\"]\n[feed]\norigin = \"table:/dev/shm/rnis\"\n[rapid]\nprofile = \"thesis\"\n"
        );
        let config = Config::parse("proxy.toml", &more).unwrap();
        assert_eq!(config.clients[0].ports[1], Ports { first: 5000, last: 5999 });
        assert_eq!((config.handshake, config.settings().guard), (Handshake::AcceptFirst, false));
    }

    #[test]
    fn allocation_is_set_as_in_a_scenario() {
        let text = format!(
            "{LEAST}[rapid]\nprofile = \"thesis\"\nwindow = \"module\"\nalpha = 0.40625\nslack = \"half_rtt\"\nsr_allowance = \"16ms\"\nran_rttmin = \"plain\"\nhold = \"mean\"\nran_floor = 4\n"
        );
        let of = Config::parse("proxy.toml", &text).unwrap().settings();
        assert_eq!((of.window, of.alpha, of.slack), (WindowRule::Module, 0.40625, Slack::HalfRtt));
        assert_eq!(
            (of.sr_allowance, of.ran_rttmin),
            (RttMargin::Fixed(Span::from_millis(16)), RanRttMin::Plain)
        );
        assert_eq!((of.hold, of.ran_floor, of.floor), (LateCapacity::Mean, 4, Settings::THESIS.floor));
        let wrong = Config::parse("proxy.toml", &text.replace("16ms", "16")).unwrap_err().to_string();
        assert!(wrong.contains("sr_allowance"), "{wrong}");
    }

    #[test]
    fn all_faults_are_told_at_once_with_their_lines() {
        let text = "nam = \"a\"\nport = 0\n[[clients]]\ninterface = \"a/b\"\nnetworks = []\nports = [\"9-1\"]\n[limits]\nconnections = 0\nflow_buffer = \"1KB\"\nconnect_timeout = \"900ms\"\n[feed]\norigin = \"http://x\"\n[log]\nlevel = \"loud\"\n";
        let faults = Config::parse("proxy.toml", text).unwrap_err();
        let told: Vec<(Option<usize>, &str)> =
            faults.faults.iter().map(|fault| (fault.line, fault.key.as_str())).collect();
        let expected = [
            (1, "nam"),
            (2, "port"),
            (6, "clients.ports"),
            (8, "limits.connections"),
            (9, "limits.flow_buffer"),
            (10, "limits.connect_timeout"),
            (12, "feed.origin"),
            (14, "log.level"),
        ];
        assert_eq!(told, expected.map(|(line, key)| (Some(line), key)), "{faults}");
        assert!(faults.to_string().contains("did you mean `name`?"), "{faults}");
        let none = Config::parse("proxy.toml", "").unwrap_err().to_string();
        assert!(none.contains("`clients`: expected at least one [[clients]]"), "{none}");
    }
}
