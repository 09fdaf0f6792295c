//! `ranpace proxy show` and `ranpace proxy drain`: questions to a running proxy.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ranpace_proxy::ProxyError;
use ranpace_proxy::client::ask_drain;
use ranpace_proxy::config::CONTROL_SOCKET;
use ranpace_proxy::control::ask_snapshot;
use ranpace_proxy::snapshot::{Flow, Snapshot, User};

use crate::failure::Failure;
use crate::{interrupt, output};

/// Between two pictures.
const LIVE: Duration = Duration::from_millis(500);
/// Between two looks while it drains.
const LOOK: Duration = Duration::from_millis(200);

/// Show users and connections of the running proxy
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  ranpace proxy show --live\n  ranpace proxy show --json | jq '.users'")]
pub struct Show {
    /// Twice a second, until Ctrl-C
    #[arg(long)]
    live: bool,
    /// As JSON
    #[arg(long, conflicts_with = "live")]
    json: bool,
    /// Control socket of the proxy
    #[arg(long, value_name = "PATH", default_value = CONTROL_SOCKET)]
    socket: PathBuf,
}

/// Let new connections pass, and end the proxy when the open ones have ended
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ranpace proxy drain --wait")]
pub struct Drain {
    /// Return when the proxy has ended
    #[arg(long)]
    wait: bool,
    /// Control socket of the proxy
    #[arg(long, value_name = "PATH", default_value = CONTROL_SOCKET)]
    socket: PathBuf,
}

impl Show {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let first = ask_snapshot(&self.socket)?;
        if self.json {
            return output::line(serde_json::to_string_pretty(&first).map_err(Failure::ours)?);
        }
        output::line(picture(&first))?;
        if !self.live {
            return Ok(());
        }
        interrupt::flag();
        interrupt::at_exit(|| {});
        let clear = if stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
        while !interrupt::is_set() {
            thread::sleep(LIVE);
            output::line(format!("{clear}{}", picture(&ask_snapshot(&self.socket)?)))?;
        }
        Ok(())
    }
}

impl Drain {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        ask_drain(&self.socket)?;
        if !self.wait {
            return output::line("new connections pass; the proxy ends when the open ones have ended");
        }
        loop {
            match ask_snapshot(&self.socket) {
                // Its socket goes last.
                Err(ProxyError::NotRunning { .. }) => return output::line("the proxy has ended"),
                // While it ends, it has no answer.
                Ok(_) | Err(ProxyError::Command { .. }) => thread::sleep(LOOK),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn picture(of: &Snapshot) -> String {
    let mut text = format!(
        "{}: {} of {} connections, {} handshakes, {} waiting{}\n",
        of.name,
        of.connections,
        of.most_connections,
        of.handshakes,
        size(of.backlog_bytes),
        if of.draining { ", draining" } else { "" },
    );
    let mut line = |line: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    };
    if let Some(why) = &of.feed_trouble {
        line(format!("no radio information: {why}"));
    }
    line(format!(
        "\n{:<28} {:>5} {:>9} {:>12} {:>12} {:>12} {:>7} {:>6} {:>5}",
        "user", "conn.", "radio", "reports", "capacity", "passing", "age", "active", "slow"
    ));
    for user in &of.users {
        let User { address, connections, radio, trust, capacity_bits_per_s, active, slow, .. } = user;
        let passing = rate(user.passing_bits_per_s);
        let age_ms = user.age_ms;
        let capacity = capacity_bits_per_s.map_or("-".to_owned(), rate);
        let age = age_ms.map_or("-".to_owned(), |age| format!("{age} ms"));
        line(format!(
            "{address:<28} {connections:>5} {radio:>9} {trust:>12} {capacity:>12} {passing:>12} {age:>7} {active:>6} {slow:>5}"
        ));
    }
    line(format!(
        "\n{:<24} {:<24} {:>5} {:>9} {:>10} {:>12} {:>10} {:>9} {:>9}",
        "client", "server", "", "received", "window", "rate", "window", "RTTs", "waiting"
    ));
    for flow in &of.flows {
        line(row(flow));
    }
    text
}

fn row(flow: &Flow) -> String {
    let user_rtt = flow.user_rtt_us.map_or("-".to_owned(), |rtt| format!("{:.0}", rtt as f64 / 1e3));
    format!(
        "{:<24} {:<24} {:>5} {:>9} {:>10} {:>12} {:>10} {:>9} {:>9}",
        flow.client.to_string(),
        flow.server.to_string(),
        flow.category,
        size(flow.down_bytes),
        size(flow.server_window_bytes.into()),
        flow.user_rate_bits_per_s.map_or("-".to_owned(), rate),
        flow.user_window_bytes.map_or("-".to_owned(), size),
        format!("{:.0}+{user_rtt} ms", flow.server_rtt_us as f64 / 1e3),
        size(flow.backlog_bytes),
    )
}

fn rate(bits_per_s: u64) -> String {
    format!("{:.2} Mbit/s", bits_per_s as f64 / 1e6)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
