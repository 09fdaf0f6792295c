//! What a proxy does at a moment: for `ranpace proxy show`.

use std::net::{IpAddr, SocketAddr};

use ranpace_pep::rapid::{Category, Mode, ReportTrust};
use ranpace_units::Time;
use serde::{Deserialize, Serialize};

use crate::proxy::Proxy;

/// Most connections that a snapshot lists. Ours.
const MOST_LISTED: usize = 1000;

/// A proxy at a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Name of the proxy.
    pub name: String,
    /// Number of its process.
    pub process: u32,
    /// What sends to users: `kernel` or `pacing`.
    pub sender: String,
    /// It splits no further connections.
    pub draining: bool,
    /// Split connections.
    pub connections: usize,
    /// Most of them.
    pub most_connections: usize,
    /// Connections that wait for an answer.
    pub handshakes: usize,
    /// Payload for users that waits in the proxy.
    pub backlog_bytes: u64,
    /// Payload for servers that waits in the proxy.
    pub upload_backlog_bytes: u64,
    /// Why no radio information comes, if there should be some.
    pub feed_trouble: Option<String>,
    /// Users with connections, by address.
    pub users: Vec<User>,
    /// Connections, at most 1000.
    pub flows: Vec<Flow>,
}

/// A user with connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct User {
    /// Its address in the feed.
    pub address: IpAddr,
    /// Its connections.
    pub connections: usize,
    /// What is known of its radio: `current`, `late` or `unknown`.
    pub radio: String,
    /// Whether the reports are trusted: `trusted`, `probing` or `contradicted`.
    pub trust: String,
    /// The rate that is shared out, in bit/s; `None` while its radio is not known.
    pub capacity_bits_per_s: Option<u64>,
    /// The rate of what reaches the user past the proxy, in bit/s: zero without `rapid.account_udp`.
    pub passing_bits_per_s: u64,
    /// Age of the newest report, in milliseconds.
    pub age_ms: Option<u64>,
    /// Its active connections, and those that ask for less than their share.
    pub active: u32,
    /// See `active`.
    pub slow: u32,
}

/// A split connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// Who opened it.
    pub client: SocketAddr,
    /// Who answers.
    pub server: SocketAddr,
    /// Its age, in milliseconds.
    pub age_ms: u64,
    /// Payload that came from the server, and from the client.
    pub down_bytes: u64,
    /// See `down_bytes`.
    pub up_bytes: u64,
    /// How RAPID judges it: `new`, `fast` or `slow`; `idle` while it has no data.
    pub category: String,
    /// The window that the server may fill, in bytes.
    pub server_window_bytes: u32,
    /// The rate towards the user, in bit/s; `None` without radio information.
    pub user_rate_bits_per_s: Option<u64>,
    /// The window towards the user, in bytes.
    pub user_window_bytes: Option<u64>,
    /// Smoothed RTT to the server, in microseconds.
    pub server_rtt_us: u64,
    /// Smallest RTT to the user, in microseconds.
    pub user_rtt_us: Option<u64>,
    /// Payload that waits in the proxy.
    pub backlog_bytes: u64,
}

impl Snapshot {
    pub(crate) fn of(proxy: &Proxy, now: Time) -> Self {
        let mut users: Vec<User> = proxy
            .users
            .all()
            .map(|(number, address, connections)| user(proxy, now, number, address, connections))
            .collect();
        users.sort_by_key(|user| user.address);
        let flows = proxy.relays.iter().take(MOST_LISTED).filter_map(|(_, relay)| {
            let record = proxy.rapid.look(now, relay.counted.flow)?;
            let (down_bytes, up_bytes) = relay.read();
            let category = match record.category {
                _ if !record.active => "idle",
                Category::Init => "new",
                Category::Fast => "fast",
                Category::Slow => "slow",
            };
            Some(Flow {
                client: relay.ends.client,
                server: relay.ends.server,
                age_ms: now.since(relay.since).as_nanos() / 1_000_000,
                down_bytes,
                up_bytes,
                category: category.to_owned(),
                server_window_bytes: relay.counted.clamp,
                user_rate_bits_per_s: relay.counted.allocation.map(|(rate, _)| rate.bits_per_s()),
                user_window_bytes: relay.counted.allocation.map(|(_, window)| window.get()),
                server_rtt_us: relay.counted.server_rtt.as_micros(),
                user_rtt_us: record.ran_rtt_min.map(|rtt| rtt.as_micros()),
                backlog_bytes: record.backlog.get(),
            })
        });
        Self {
            name: proxy.config.name.clone(),
            process: std::process::id(),
            sender: proxy.sender().to_owned(),
            draining: proxy.is_draining(),
            connections: proxy.relays.len(),
            most_connections: proxy.most_connections(),
            handshakes: proxy.handshakes.len(),
            backlog_bytes: proxy.rapid.backlog().get(),
            upload_backlog_bytes: proxy.uploads.total().get(),
            feed_trouble: proxy.feed_trouble().map(str::to_owned),
            flows: flows.collect(),
            users,
        }
    }
}

fn user(proxy: &Proxy, now: Time, number: u32, address: IpAddr, connections: usize) -> User {
    let record = proxy.rapid.user(now, number);
    let known = record.filter(|record| record.mode != Mode::Open);
    let radio = match record.map(|record| record.mode) {
        Some(Mode::Normal) => "current",
        Some(Mode::Hold) => "late",
        Some(Mode::Open) | None => "unknown",
    };
    let trust = match record.map(|record| record.trust) {
        Some(ReportTrust::Trusted) | None => "trusted",
        Some(ReportTrust::Probing) => "probing",
        Some(ReportTrust::Contradicted) => "contradicted",
    };
    User {
        address,
        connections,
        radio: radio.to_owned(),
        trust: trust.to_owned(),
        capacity_bits_per_s: known.map(|record| record.capacity.bits_per_s()),
        passing_bits_per_s: record.map_or(0, |record| record.passing.bits_per_s()),
        age_ms: known.map(|record| record.age.as_nanos() / 1_000_000),
        active: record.map_or(0, |record| record.flows),
        slow: record.map_or(0, |record| record.slow),
    }
}
