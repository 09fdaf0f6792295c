//! What the proxy adds to the system, and removes: an nftables table of its own, and for IPv4 and IPv6 two routing rules with a
//! routing table each. Clients' packets take one of these ways:
//!
//! * A SYN for a configured server is marked *held*: the second routing rule sends it to the proxy's device `NAME-in`. The proxy
//!   writes it back to that device, whose SYNs the table gives to the listener (`tproxy`), or to the device `NAME-out`, from which
//!   the kernel forwards it as if there were no proxy.
//! * Other packets of connections that the proxy has a socket for are marked *delivered*: the first routing rule makes them local.
//! * All else is forwarded untouched: connections that are older than the proxy, other protocols, other networks.
//!
//! The kernel remembers a split connection for a minute (TIME-WAIT), on the side of the end that was the last to close. If its client
//! opens another one from the same port, and that passes, the socket that remembers would take the client's packets or the server's,
//! answer them in its own way, and never forget: a client would have a connection whose server waits for the end of the handshake, or a
//! server's answer would never arrive. So a SYN for which there is such a socket is noted, and if it is forwarded, so is all that the
//! client sends; likewise a server's answer (SYN and ACK) to which there is such a socket, and none that waits for it. Further SYNs of
//! these ends pass while the kernel remembers, and those of any connection that passes do for a moment: they may be repetitions.
//!
//! Nothing here depends on the proxy's being alive. Without its process there is no device, so the route of held SYNs does not exist,
//! and the next rule forwards them; and `tproxy` takes nothing for a listener that is not there. While the process hangs, the element
//! of the set `alive` expires, and SYNs are forwarded.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use ipnet::IpNet;

use crate::config::{Clients, Config, Handshake};
use crate::error::ProxyError;
use crate::system;

/// The set whose element says that the proxy works.
pub const ALIVE: &str = "alive";
/// The sets that count what passes to users that is not TCP, by address: IPv4 and IPv6.
pub const PASSING: [&str; 2] = ["passing4", "passing6"];
/// An address to which nothing has passed for this time is not counted any more, and most addresses. Ours.
const COUNTED: &str = "1m";
const MOST_COUNTED: u32 = 65_536;
/// The sets of new connections whose ends the kernel remembers, and of those among them that pass: IPv4 and IPv6.
const NOTED: [&str; 2] = ["noted4", "noted6"];
/// See [`NOTED`].
const UNSPLIT: [&str; 2] = ["unsplit4", "unsplit6"];
/// They stay there for this time: the kernel remembers a connection for 60 s, and its timers of that length are late by up to an eighth.
const NOTED_FOR: &str = "90s";
/// The sets of connections whose SYN has just passed, and the time in which a client repeats it three times (after 1, 3 and 7 s: RFC
/// 6298).
const PASSED: [&str; 2] = ["passed4", "passed6"];
/// See [`PASSED`].
const PASSED_FOR: &str = "10s";
/// Most of each, some 15 MB. Ours.
const MOST_NOTED: u32 = 65_536;
/// What nftables calls them, in addresses and as protocols.
const FAMILIES: [&str; 2] = ["ip", "ip6"];
/// See [`FAMILIES`].
const NFPROTOS: [&str; 2] = ["ipv4", "ipv6"];
/// A SYN that opens a connection.
const SYN: &str = "tcp flags & (fin|syn|rst|ack) == syn";
/// A server's answer to it.
const ANSWER: &str = "tcp flags & (fin|syn|rst|ack) == (syn|ack)";
const NO_SYN: &str = "tcp flags & (fin|syn|rst|ack) != syn";

/// Whether the kernel looks for the socket of a packet before it looks for its route. It does not forward a packet whose socket it has
/// found, so it would drop the SYN of a client that uses a port again while the proxy's socket towards it remembers the last
/// connection (TIME-WAIT), instead of giving the SYN to the device. It is off while SYNs are held.
const EARLY: &str = "net.ipv4.tcp_early_demux";
/// The table says so where it was on, for whoever removes what a killed process left.
const WAS_ON: &str = "net.ipv4.tcp_early_demux was on";

/// The system's part of a proxy.
#[derive(Clone, Debug)]
pub struct Rules {
    name: String,
    number: u32,
    /// Those of all clients.
    networks: Vec<IpNet>,
    table: String,
    /// See [`WAS_ON`].
    early_was_on: bool,
}

impl Rules {
    /// For this configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            name: config.name.clone(),
            number: config.number,
            networks: config.clients.iter().flat_map(|clients| clients.networks.clone()).collect(),
            table: table(config),
            early_was_on: false,
        }
    }

    /// The text of the nftables table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Adds all; devices have to be there. What an earlier process left is replaced.
    ///
    /// # Errors
    ///
    /// A program of the system is not there, or refuses.
    pub fn install(&mut self, handshake: Handshake) -> Result<(), ProxyError> {
        self.remove()?;
        if handshake == Handshake::Exact {
            let early = std::fs::read_to_string(format!("/proc/sys/{}", EARLY.replace('.', "/")));
            let early = early.map_err(ProxyError::system(format!("read {EARLY}")))?;
            self.early_was_on |= early.trim() != "0";
        }
        let (deliver, hold) = (self.number, self.number + 1);
        for family in ["-4", "-6"] {
            let everything = if family == "-4" { "0.0.0.0/0" } else { "::/0" };
            ip(&format!("{family} route replace local {everything} dev lo table {deliver}"))?;
            ip(&format!("{family} rule add priority {deliver} fwmark {deliver} lookup {deliver}"))?;
            if handshake == Handshake::Exact {
                let device = device_in(&self.name);
                ip(&format!("{family} route replace {everything} dev {device} table {hold}"))?;
                ip(&format!("{family} rule add priority {hold} fwmark {hold} lookup {hold}"))?;
            }
        }
        nft(&self.noted_table())?;
        if self.early_was_on { system::set(EARLY, "0") } else { Ok(()) }
    }

    /// The text of the table with the note on what is to be set again.
    fn noted_table(&self) -> String {
        let note = if self.early_was_on { format!("{{\n comment \"{WAS_ON}\"\n") } else { "{\n".to_owned() };
        self.table.replacen("{\n", &note, 1)
    }

    /// Whether the table in the system has the note.
    fn is_noted(&self) -> bool {
        // There may be no table.
        let listed =
            run("nft", &["list", "table", "inet", &nft_name(&self.name)], "", "nftables").unwrap_or_default();
        listed.contains(WAS_ON)
    }

    /// Goes on with what a running process has added, whose table has the text `theirs`: replaces the table alone, at once, as that of a
    /// proxy that works, if it is another one.
    ///
    /// # Errors
    ///
    /// `nft` is not there, or refuses.
    pub fn take_over(&mut self, theirs: &str) -> Result<(), ProxyError> {
        self.early_was_on = self.is_noted();
        if theirs == self.table {
            return Ok(());
        }
        let name = nft_name(&self.name);
        let works = format!("add element inet {name} {ALIVE} {{ tcp timeout 1s expires 1s }}");
        nft(&format!("table inet {name}\ndelete table inet {name}\n{}{works}\n", self.noted_table()))?;
        forget_ended(&self.networks);
        Ok(())
    }

    /// Removes all that is there, which may be what a process left that was killed.
    ///
    /// # Errors
    ///
    /// A program of the system is not there, or refuses.
    pub fn remove(&self) -> Result<(), ProxyError> {
        let name = nft_name(&self.name);
        forget_ended(&self.networks);
        if self.early_was_on || self.is_noted() {
            system::set(EARLY, "1")?;
        }
        // The table is added first, so that it is there to be deleted.
        nft(&format!("table inet {name}\ndelete table inet {name}\n"))?;
        for family in ["-4", "-6"] {
            for number in [self.number, self.number + 1] {
                let rules = ip(&format!("{family} rule show priority {number}"))?;
                for _ in rules.lines().filter(|rule| rule.contains(&format!("lookup {number}"))) {
                    ip(&format!("{family} rule delete priority {number} lookup {number}"))?;
                }
                // A table that has never had a route does not exist, which is as good.
                let routes = ip(&format!("{family} route show table {number}")).unwrap_or_default();
                if !routes.trim().is_empty() {
                    ip(&format!("{family} route flush table {number}"))?;
                }
            }
        }
        Ok(())
    }
}

/// The name of the nftables table of a proxy.
pub fn nft_name(name: &str) -> String {
    format!("{name}_proxy")
}

/// The device that gives SYNs to the proxy, and takes those for the listener.
pub fn device_in(name: &str) -> String {
    format!("{name}-in")
}

/// The device that takes SYNs that pass.
pub fn device_out(name: &str) -> String {
    format!("{name}-out")
}

fn table(config: &Config) -> String {
    let (deliver, hold, port) = (config.number, config.number + 1, config.port);
    let mut text = format!("table inet {} {{\n", nft_name(&config.name));
    let is_exact = config.handshake == Handshake::Exact;
    let mut line = |line: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    };
    line(&format!(" set {ALIVE} {{\n  type inet_proto\n  flags timeout\n }}"));
    let families = [0, 1].map(|v6| (FAMILIES[v6], NFPROTOS[v6], NOTED[v6], UNSPLIT[v6], PASSED[v6]));
    let ends = |family: &str| format!("{family} saddr . tcp sport . {family} daddr . tcp dport");
    let back = |family: &str| format!("{family} daddr . tcp dport . {family} saddr . tcp sport");
    for (_, address, noted, unsplit, passed) in families {
        let kind = format!("{address}_addr . inet_service . {address}_addr . inet_service");
        for (set, time) in [(noted, NOTED_FOR), (unsplit, NOTED_FOR), (passed, PASSED_FOR)] {
            line(&format!(
                " set {set} {{\n  type {kind}\n  size {MOST_NOTED}\n  flags dynamic,timeout\n  timeout {time}\n }}"
            ));
        }
    }
    line(" chain delivered {");
    for (family, _, _, unsplit, _) in families {
        line(&format!("  {} @{unsplit} accept", ends(family)));
    }
    line(&format!("  meta mark set {deliver} accept\n }}"));
    // A socket that remembers, or one of a client's handshake, has no such property.
    line(&format!(" chain answered {{\n  socket wildcard 0 meta mark set {deliver} accept"));
    for (family, _, _, unsplit, _) in families {
        let both = [ends(family), back(family)].map(|ends| format!("update @{unsplit} {{ {ends} }}"));
        line(&format!("  {} accept", both.join(" ")));
    }
    line(" }");
    line(" chain opening {");
    for (family, _, noted, unsplit, passed) in families {
        line(&format!("  {} @{unsplit} accept", ends(family)));
        line(&format!("  {} @{passed} accept", ends(family)));
        line(&format!("  socket transparent 1 update @{noted} {{ {} }}", ends(family)));
    }
    line(&format!("  meta l4proto != @{ALIVE} accept"));
    match config.handshake {
        Handshake::Exact => line(&format!("  meta mark set {hold} accept")),
        Handshake::AcceptFirst => {
            for (family, nfproto, ..) in families {
                let taken = format!("tproxy {family} to :{port} meta mark set {deliver} accept");
                line(&format!("  meta nfproto {nfproto} meta l4proto tcp {taken}"));
            }
        }
    }
    line(" }");
    line(" chain prerouting {");
    line("  type filter hook prerouting priority mangle; policy accept;");
    // Routers' errors about packets of the proxy's own are for its sockets: unreachable servers, and smaller packets on the path.
    line(&format!("  meta l4proto {{ icmp, icmpv6 }} socket transparent 1 meta mark set {deliver} accept"));
    line("  meta l4proto != tcp accept");
    if is_exact {
        let device = device_in(&config.name);
        line(&format!("  iifname \"{device}\" {SYN} tproxy to :{port} meta mark set {deliver} accept"));
    }
    line(&format!("  {ANSWER} socket transparent 1 goto answered"));
    line(&format!("  {NO_SYN} socket transparent 1 goto delivered"));
    line(&format!("  {NO_SYN} accept"));
    line("  fib daddr type local accept");
    for network in &config.except {
        line(&format!("  {} daddr {network} accept", family(network)));
    }
    for Clients { interface, networks, ports } in &config.clients {
        let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
        let ports = if ports.is_empty() {
            "meta l4proto tcp".to_owned()
        } else {
            format!("tcp dport {{ {} }}", ports.join(", "))
        };
        for network in networks {
            let family = family(network);
            line(&format!("  iifname \"{interface}\" {family} saddr {network} {ports} goto opening"));
        }
    }
    line(" }");
    line(" chain passed {");
    line("  type filter hook forward priority mangle; policy accept;");
    line("  meta l4proto != tcp accept");
    line(&format!("  {NO_SYN} accept"));
    if is_exact {
        line(&format!("  oifname \"{}\" accept", device_in(&config.name)));
    }
    for (family, _, noted, unsplit, _) in families {
        line(&format!("  {0} @{noted} update @{unsplit} {{ {0} }} accept", ends(family)));
    }
    for Clients { networks, .. } in &config.clients {
        for network in networks {
            let family = family(network);
            let passed = PASSED[usize::from(family == "ip6")];
            line(&format!("  {family} saddr {network} update @{passed} {{ {} }}", ends(family)));
        }
    }
    line(" }");
    if config.settings().account_udp {
        for (set, kind) in PASSING.into_iter().zip(["ipv4_addr", "ipv6_addr"]) {
            line(&format!(
                " set {set} {{\n  type {kind}\n  size {MOST_COUNTED}\n  flags dynamic,timeout\n  timeout {COUNTED}\n  counter\n }}"
            ));
        }
        line(" chain forward {");
        line("  type filter hook forward priority mangle; policy accept;");
        line("  meta l4proto tcp accept");
        for Clients { interface, networks, .. } in &config.clients {
            for network in networks {
                let family = family(network);
                let set = PASSING[usize::from(family == "ip6")];
                line(&format!(
                    "  oifname \"{interface}\" {family} daddr {network} update @{set} {{ {family} daddr }}"
                ));
            }
        }
        line(" }");
    }
    line("}");
    text
}

fn family(network: &IpNet) -> &'static str {
    match network {
        IpNet::V4(_) => "ip",
        IpNet::V6(_) => "ip6",
    }
}

/// Makes the kernel forget the connections that it remembers (TIME-WAIT) for sockets with others' addresses: the sets of those that pass
/// are about to be lost, and without the rules the kernel drops what it has such a socket for, instead of forwarding it.
fn forget_ended(networks: &[IpNet]) {
    let interfaces =
        nix::ifaddrs::getifaddrs().map(|all| all.filter_map(|one| one.address).collect::<Vec<_>>());
    let forgotten = interfaces.map_err(|errno| format!("getifaddrs: {errno}")).and_then(|addresses| {
        let ips = addresses.iter().filter_map(|address| {
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        });
        let own: Vec<IpAddr> = ips.collect();
        let filter = ended(&own, networks).ok_or("this host has no address, or no client is configured")?;
        run("ss", &["-Htn", "-K", "state", "time-wait", &filter], "", "iproute2")
            .map_err(|error| error.to_string())
    });
    if let Err(error) = forgotten {
        tracing::warn!(%error, "connections from ports that had a split one within the last minute may hang");
    }
}

/// The filter of `ss` for sockets whose address is not this host's own and one of whose ends is a client; `None` without addresses or
/// networks, where it would be that of other sockets, too.
fn ended(own: &[IpAddr], networks: &[IpNet]) -> Option<String> {
    if own.is_empty() || networks.is_empty() {
        return None;
    }
    let not_own = own.iter().map(|address| match address {
        IpAddr::V4(address) => format!("not src {address}"),
        IpAddr::V6(address) => format!("not src [{address}]"),
    });
    let of_clients = networks.iter().map(|network| match network {
        IpNet::V4(network) => format!("src {network} or dst {network}"),
        IpNet::V6(network) => format!("src [{network}] or dst [{network}]"),
    });
    let (not_own, of_clients): (Vec<_>, Vec<_>) = (not_own.collect(), of_clients.collect());
    Some(format!("{} and ( {} )", not_own.join(" and "), of_clients.join(" or ")))
}

/// Runs `ip` and returns what it prints.
pub(crate) fn ip(arguments: &str) -> Result<String, ProxyError> {
    run("ip", &arguments.split(' ').collect::<Vec<_>>(), "", "iproute2")
}

/// Runs `nft` with this input.
fn nft(input: &str) -> Result<(), ProxyError> {
    run("nft", &["-f", "-"], input, "nftables").map(drop)
}

fn run(program: &str, arguments: &[&str], input: &str, package: &str) -> Result<String, ProxyError> {
    let command = format!("{program} {}", arguments.join(" "));
    let failed = |reason: String| ProxyError::Command { command: command.clone(), reason };
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => failed(format!("it is not installed (apt install {package})")),
        _ => failed(error.to_string()),
    })?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that ends early says why.
        let _ = pipe.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;

    #[test]
    fn without_addresses_or_clients_nothing_is_forgotten() {
        let own: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap(), "fe80::1".parse().unwrap()];
        let networks: Vec<IpNet> = vec!["10.45.0.0/16".parse().unwrap(), "fd45::/48".parse().unwrap()];
        assert_eq!(ended(&[], &networks), None);
        assert_eq!(ended(&own, &[]), None);
        assert_eq!(
            ended(&own, &networks).unwrap(),
            "not src 127.0.0.1 and not src [fe80::1] and ( src 10.45.0.0/16 or dst 10.45.0.0/16 or src [fd45::/48] or dst [fd45::/48] )"
        );
    }

    #[test]
    fn only_configured_networks_and_ports_are_taken() {
        let text = "except = [\"10.9.0.0/16\"]\n[[clients]]\ninterface = \"ran0\"\nnetworks = [\"10.45.0.0/16\", \"fd45::/48\"]\nports = [\"443\", \"5000-5999\"]\n[[clients]]\ninterface = \"ran1\"\nnetworks = [\"10.46.0.0/16\"]\n";
        let config = Config::parse("proxy.toml", text).unwrap();
        let rules = Rules::new(&config);
        let taking: Vec<&str> = rules.table().lines().filter(|line| line.contains("goto opening")).collect();
        assert_eq!(
            taking,
            [
                "  iifname \"ran0\" ip saddr 10.45.0.0/16 tcp dport { 443, 5000-5999 } goto opening",
                "  iifname \"ran0\" ip6 saddr fd45::/48 tcp dport { 443, 5000-5999 } goto opening",
                "  iifname \"ran1\" ip saddr 10.46.0.0/16 meta l4proto tcp goto opening",
            ]
        );
        let place = |what: &str| rules.table().find(what).unwrap();
        assert!(place("ip daddr 10.9.0.0/16 accept") < place(taking[0]));
        // A mark before `tproxy` would lead connections to a listener that is not there.
        for line in rules.table().lines().filter(|line| line.contains("tproxy")) {
            assert!(line.find("tproxy") < line.find("mark set"), "{line}");
        }
    }
}
