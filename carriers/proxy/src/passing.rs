//! What reaches users without passing through the proxy's sockets: UDP, QUIC and all else that is not TCP. The nftables table counts
//! it for each address ([`crate::rules`]); it is read here and told to RAPID (`rapid.account_udp`).

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_sys::Socket;
use ranpace_units::{Bytes, Span, Time};

use crate::netlink;
use crate::rules::{PASSING, nft_name};

/// Interval of readings: short beside the 100 ms over which RAPID averages. Ours.
pub const READ: Span = Span::from_millis(20);
/// After a longer pause, in which nobody had a connection, what was counted meanwhile says nothing about now. Ours.
const PAUSE: Span = Span::from_millis(200);

/// Reads the counters.
pub struct Passing {
    socket: Socket,
    table: String,
    /// What was counted before, and when that was.
    seen: HashMap<IpAddr, u64>,
    seen_at: Time,
}

impl Passing {
    /// For the proxy of this name, in this network namespace.
    ///
    /// # Errors
    ///
    /// The system has no such socket.
    pub fn new(name: &str) -> io::Result<Self> {
        Ok(Self {
            socket: netlink::socket()?,
            table: nft_name(name),
            seen: HashMap::new(),
            seen_at: Time::ZERO,
        })
    }

    /// Addresses to which something has passed since the last reading, and how many bytes of packets.
    ///
    /// # Errors
    ///
    /// The kernel refuses it: somebody has removed the table.
    pub fn read(&mut self, now: Time) -> io::Result<Vec<(IpAddr, Bytes)>> {
        let (mut counted, mut passed) = (HashMap::new(), Vec::new());
        for set in PASSING {
            for (key, bytes) in netlink::counters(&mut self.socket, &self.table, set)? {
                let Some(address) = address(&key) else { continue };
                counted.insert(address, bytes);
                // A counter that has become smaller is a new one.
                let before = self.seen.get(&address).copied().filter(|before| *before <= bytes).unwrap_or(0);
                if bytes > before {
                    passed.push((address, Bytes::new(bytes - before)));
                }
            }
        }
        self.seen = counted;
        if now > std::mem::replace(&mut self.seen_at, now) + PAUSE {
            passed.clear();
        }
        Ok(passed)
    }
}

fn address(key: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(key).map(|key| Ipv4Addr::from(key).into());
    v4.or_else(|_| <[u8; 16]>::try_from(key).map(|key| Ipv6Addr::from(key).into())).ok()
}
