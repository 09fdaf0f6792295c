//! The feed of records, one each TTI if a subscriber wants it: in the shared table, as datagrams, and by a broker.
//!
//! Sources' threads call it with every update, before anything else is done with it. Nothing here waits: what a subscriber, the system or the
//! broker does not take at once is left out, because the next record is newer.

#[cfg(feature = "amqp")]
mod amqp;
mod datagrams;
mod shared_memory;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ranpace_rnis::etsi::vendor::Transport;
use ranpace_rnis::shared_table::Size;
use ranpace_units::Span;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use self::datagrams::Datagrams;
use self::shared_memory::SharedMemory;
use crate::feed_port::{FeedPort, FeedRefused, FeedScope, FeedSubscription};
use crate::metrics::FeedMetrics;
use crate::source::Update;

/// `[feed]` of the configuration. Without it the server offers no feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedConfig {
    /// The shared table.
    pub table: Option<TableConfig>,
    /// Datagrams.
    pub datagrams: Option<DatagramsConfig>,
    /// A broker.
    pub amqp: Option<AmqpConfig>,
}

/// A broker of AMQP 0-9-1, such as RabbitMQ, in a build with the feature `amqp`. Whoever may read its exchange sees all users.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AmqpConfig {
    /// Its address, such as `amqp://guest:guest@127.0.0.1:5672/%2f`.
    pub address: String,
    /// Topic exchange, which is declared.
    #[serde(default = "exchange")]
    pub exchange: String,
    /// Form of the messages.
    #[serde(default)]
    pub encoding: AmqpEncoding,
    /// Interval between two messages about a user.
    #[serde(default = "amqp_period", deserialize_with = "ranpace_config::time")]
    pub period: Span,
}

/// Form of messages to a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AmqpEncoding {
    /// A line for each user, as in the original experiments.
    #[default]
    Text,
    /// A datagram for each cell.
    Binary,
}

fn exchange() -> String {
    "rnis".to_owned()
}
fn amqp_period() -> Span {
    Span::from_millis(8)
}

/// The shared table in a file, for programs of the same host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    /// The file; in `/dev/shm` or `/run`, which are in memory.
    pub path: PathBuf,
    /// Cells that there is room for.
    #[serde(default = "cells")]
    pub cells: u32,
    /// Users that there is room for.
    #[serde(default = "users")]
    pub users: u32,
    /// TTIs that are kept, a power of two.
    #[serde(default = "history")]
    pub history: u32,
    /// Permissions of the file: whoever may read it sees all users.
    #[serde(default = "mode", deserialize_with = "octal")]
    pub mode: u32,
}

/// Datagrams to subscribers, also of other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramsConfig {
    /// Address that they come from and that requests go to. Port 0 is any.
    #[serde(deserialize_with = "ranpace_config::address")]
    pub listen: SocketAddr,
    /// Subscriptions at a time.
    #[serde(default = "most")]
    pub most: usize,
    /// Different periods at a time: each costs an average of all users.
    #[serde(default = "periods")]
    pub periods: usize,
}

fn cells() -> u32 {
    16
}
fn users() -> u32 {
    1024
}
fn history() -> u32 {
    64
}
fn mode() -> u32 {
    0o600
}
fn most() -> usize {
    1000
}
fn periods() -> usize {
    16
}

/// Permissions, as in "0640".
fn octal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let text = String::deserialize(deserializer)?;
    let expected =
        || serde::de::Error::custom(format!("expected permissions such as \"0640\", found {text:?}"));
    u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777).ok_or_else(expected)
}

impl TableConfig {
    /// Capacity.
    pub fn size(&self) -> Size {
        Size { cells: self.cells, users: self.users, history: self.history }
    }
}

impl FeedConfig {
    /// Values that are out of bounds: each with its key, and what was expected.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if let Some(table) = &self.table {
            let size = table.size();
            let is_size =
                size.words().is_some() && table.cells > 0 && table.users > 0 && table.users <= 1 << 16;
            if !is_size {
                let reason = "expected 1 to 65536 cells and users, and a history of 8 to 1024 TTIs that is a power of two";
                faults.push(("feed.table", format!("{reason}, found {size:?}")));
            }
            if table.mode & !0o644 != 0 || table.mode & 0o600 != 0o600 {
                let reason =
                    "expected \"0600\", \"0640\" or \"0644\", because the server alone writes, found";
                faults.push(("feed.table.mode", format!("{reason} \"{:04o}\"", table.mode)));
            }
        }
        if let Some(DatagramsConfig { most, periods, .. }) = self.datagrams {
            for (key, number) in [("feed.datagrams.most", most), ("feed.datagrams.periods", periods)] {
                if number == 0 {
                    faults.push((key, "expected at least 1, found 0".to_owned()));
                }
            }
        }
        if let Some(amqp) = &self.amqp {
            if !amqp.address.starts_with("amqp://") {
                let reason = "expected an address such as amqp://guest:guest@127.0.0.1:5672/%2f";
                faults.push(("feed.amqp.address", reason.to_owned()));
            } else if cfg!(not(feature = "amqp")) {
                let reason = "this ranpace was built without brokers; cargo install --features amqp has them";
                faults.push(("feed.amqp", reason.to_owned()));
            }
        }
        faults
    }

    /// Files are named relative to the configuration's folder.
    pub fn relative_to(&mut self, folder: &Path) {
        if let Some(table) = &mut self.table {
            table.path = folder.join(&table.path);
        }
    }
}

/// What the configuration asks for.
struct Feed {
    table: Option<SharedMemory>,
    datagrams: Option<Datagrams>,
    #[cfg(feature = "amqp")]
    amqp: Option<amqp::Amqp>,
    metrics: FeedMetrics,
}

/// Opens the feed that a configuration asks for; `None` if it asks for none. The result goes to [`Server::start`](crate::server::Server::start).
///
/// # Errors
///
/// The table cannot be written, or the address of datagrams is not there.
pub fn from_config(config: &FeedConfig) -> Result<Option<Box<dyn FeedPort>>, String> {
    let FeedConfig { table, datagrams, amqp } = config;
    if table.is_none() && datagrams.is_none() && amqp.is_none() {
        return Ok(None);
    }
    let metrics = FeedMetrics::default();
    let table = table.as_ref().map(|of| SharedMemory::open(of, metrics.clone())).transpose();
    let table = table.map_err(|error| format!("[feed.table] {error}"))?;
    let datagrams = datagrams.as_ref().map(|of| Datagrams::open(*of, metrics.clone())).transpose();
    let datagrams = datagrams.map_err(|error| format!("[feed.datagrams] {error}"))?;
    #[cfg(feature = "amqp")]
    let amqp = amqp.as_ref().map(|of| amqp::Amqp::open(of, metrics.clone())).transpose();
    #[cfg(feature = "amqp")]
    let amqp = amqp.map_err(|error| format!("[feed.amqp] {error}"))?;
    Ok(Some(Box::new(Feed {
        table,
        datagrams,
        #[cfg(feature = "amqp")]
        amqp,
        metrics,
    })))
}

impl FeedPort for Feed {
    fn on_update(&mut self, update: &Update) {
        // The table first: its readers wait for microseconds.
        if let Some(table) = &mut self.table {
            table.on_update(update);
        }
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.on_update(update);
        }
        #[cfg(feature = "amqp")]
        if let Some(amqp) = &mut self.amqp {
            amqp.on_update(update);
        }
    }

    fn open(
        &mut self,
        subscription: &FeedSubscription,
        previous: Option<&Map<String, Value>>,
    ) -> Result<Map<String, Value>, FeedRefused> {
        match (subscription.transport, &mut self.table, &mut self.datagrams) {
            (Transport::SharedMemory, Some(table), datagrams) => {
                let answer = table.subscribe(subscription)?;
                // It may have had datagrams before.
                if let Some(datagrams) = datagrams {
                    datagrams.close(subscription.id);
                }
                Ok(answer)
            }
            (Transport::SharedMemory, None, _) => Err(FeedRefused::NoSuchTransport("shared-memory")),
            (_, _, Some(datagrams)) => datagrams.subscribe(subscription, previous),
            (_, _, None) => Err(FeedRefused::NoSuchTransport("udp-binary")),
        }
    }

    fn rescope(&mut self, id: u64, scope: &FeedScope) {
        // The table has all users.
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.rescope(id, scope);
        }
    }

    fn close(&mut self, id: u64) {
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.close(id);
        }
    }

    fn metrics(&self) -> FeedMetrics {
        self.metrics.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn keys_have_defaults_and_wrong_values_are_refused() {
        let parse = |text: &str| Config::parse("rnis.toml", text);
        assert_eq!(parse("").unwrap().feed, FeedConfig::default());
        let some =
            "[feed.table]\npath = \"/run/rnis\"\nmode = \"0640\"\n[feed.datagrams]\nlisten = \"127.0.0.1:0\"";
        let feed = parse(some).unwrap().feed;
        let table = feed.table.unwrap();
        assert_eq!((table.cells, table.users, table.history, table.mode), (16, 1024, 64, 0o640));
        assert_eq!(feed.datagrams.unwrap().most, 1000);
        for (text, expected) in [
            ("[feed.table]\ncells = 1", "path"),
            ("[feed.table]\npath = \"a\"\nmode = \"0666\"", "0640"),
            ("[feed.table]\npath = \"a\"\nmode = \"rw\"", "permissions such as"),
            ("[feed.table]\npath = \"a\"\nhistory = 9", "power of two"),
            ("[feed.table]\npath = \"a\"\nusers = 70000", "1 to 65536"),
            (
                "[feed.datagrams]\nlisten = \"host\"",
                "line 2: `feed.datagrams.listen`: expected an IP address and a port",
            ),
            ("[feed.datagrams]\nlisten = \"127.0.0.1:0\"\nmost = 0", "at least 1"),
            ("[feed.amqp]\naddress = \"rabbit\"", "amqp://"),
            ("[feed]\nudp = 1", "udp"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
