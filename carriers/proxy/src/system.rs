//! Settings of the system: those that the proxy demands and does not change itself, and how it changes others.

use std::fs;
use std::io;

use ipnet::IpNet;

use crate::config::{Config, Handshake};
use crate::error::ProxyError;

/// Checks the rights of the process, forwarding, and the filters of the system.
///
/// # Errors
///
/// What has to be changed, and how.
pub fn check(config: &Config) -> Result<(), ProxyError> {
    if !nix::unistd::geteuid().is_root() {
        let what = "needs root: it adds rules to the system (nftables, routing), devices, and sockets with others' addresses";
        return Err(ProxyError::Setup(what.to_owned()));
    }
    let networks = || config.clients.iter().flat_map(|clients| &clients.networks);
    let mut wrong = Vec::new();
    let mut demand = |key: &str, is_right: fn(&str) -> bool, value: &str, why: &str| {
        let found = fs::read_to_string(format!("/proc/sys/{}", key.replace('.', "/"))).unwrap_or_default();
        if !is_right(found.trim()) {
            wrong.push(format!("{key} is {:?}: {why}; sysctl -w {key}={value}", found.trim()));
        }
    };
    if networks().any(|network| matches!(network, IpNet::V4(_))) {
        demand("net.ipv4.ip_forward", |value| value == "1", "1", "this host forwards nothing");
        if config.handshake == Handshake::Exact {
            let why = "the kernel would drop the SYNs that the proxy gives back, because their clients are reached by another device";
            demand("net.ipv4.conf.all.rp_filter", |value| value != "1", "2", why);
        }
    }
    if networks().any(|network| matches!(network, IpNet::V6(_))) {
        demand("net.ipv6.conf.all.forwarding", |value| value == "1", "1", "this host forwards no IPv6");
    }
    for clients in &config.clients {
        if nix::net::if_::if_nametoindex(clients.interface.as_str()).is_err() {
            tracing::warn!(
                interface = clients.interface,
                "there is no such interface yet; connections are split once it is there"
            );
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(ProxyError::Setup(wrong.join("\n"))) }
}

/// Sets a key of sysctl.
///
/// # Errors
///
/// The system refuses it.
pub fn set(key: &str, value: &str) -> Result<(), ProxyError> {
    match fs::write(format!("/proc/sys/{}", key.replace('.', "/")), value) {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound && key.starts_with("net.ipv6") => Ok(()),
        done => done.map_err(ProxyError::system(format!("set {key}={value}"))),
    }
}
