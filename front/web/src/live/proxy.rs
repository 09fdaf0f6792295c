//! `ranpace proxy`: `GET /show` at its control socket. docs/proxy-server.md describes the answer.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use serde::Deserialize;

use crate::live::reading::{Counters, MOST, Reading};
use crate::protocol::{Subject, UserAbout};

/// The part of the answer that is drawn.
#[derive(Deserialize)]
pub struct Proxy {
    name: String,
    users: Vec<User>,
    flows: Vec<Flow>,
}

#[derive(Deserialize)]
struct User {
    address: IpAddr,
    capacity_bits_per_s: Option<u64>,
    passing_bits_per_s: u64,
}

#[derive(Deserialize)]
struct Flow {
    client: SocketAddr,
    server: SocketAddr,
    down_bytes: u64,
    category: String,
    server_window_bytes: u32,
    user_rate_bits_per_s: Option<u64>,
    user_window_bytes: Option<u64>,
    server_rtt_us: u64,
    user_rtt_us: Option<u64>,
    backlog_bytes: u64,
}

/// What a proxy says. The RTT to the user is the smallest one of lately, which its decisions follow from.
pub fn reading(proxy: Proxy, counters: &mut Counters, now: Instant) -> Reading {
    let mut reading = Reading { name: format!("proxy {}", proxy.name), ..Reading::default() };
    let mut waiting = BTreeMap::<IpAddr, u64>::new();
    for flow in &proxy.flows {
        *waiting.entry(flow.client.ip()).or_default() += flow.backlog_bytes;
    }
    for flow in proxy.flows.iter().take(MOST) {
        let name = format!("{} to {}", flow.server, flow.client);
        let category = match flow.category.as_str() {
            "fast" => 1.0,
            "slow" => 2.0,
            _ => 0.0,
        };
        let seconds = |micros: u64| micros as f64 / 1e6;
        for (column, value) in [
            ("goodput_bit_s", counters.rate(&name, flow.down_bytes, now)),
            ("pacing_bit_s", flow.user_rate_bits_per_s.map(|rate| rate as f64)),
            ("cwnd_bytes", flow.user_window_bytes.map(|window| window as f64)),
            ("proxy_user_rtt_min_s", flow.user_rtt_us.map(seconds)),
            ("proxy_server_rtt_s", Some(seconds(flow.server_rtt_us))),
            ("proxy_server_window_bytes", Some(flow.server_window_bytes.into())),
            ("proxy_backlog_bytes", Some(flow.backlog_bytes as f64)),
            ("proxy_category", Some(category)),
        ] {
            reading.push(Subject::Flow, &name, column, value);
        }
        let ends = [flow.server.ip().to_string(), flow.client.ip().to_string()];
        reading.push_flow(&name, ends, "rapid", "a split connection");
    }
    counters.end();
    for user in proxy.users.iter().take(MOST) {
        let name = user.address.to_string();
        let down = format!("{name}.down");
        let capacity = user.capacity_bits_per_s.map(|rate| rate as f64);
        reading.push(Subject::Link, &down, "capacity_bit_s", capacity);
        reading.push(Subject::Link, &down, "departed_bit_s", Some(user.passing_bits_per_s as f64));
        let queue = waiting.get(&user.address).copied().unwrap_or_default();
        reading.push(Subject::User, &name, "queue_bytes", Some(queue as f64));
        reading.users.push(UserAbout { name, cell: 0, position_m: None, can_move: false });
    }
    reading
}
