//! The SYN of a held connection, as far as the proxy needs it.

use std::net::{IpAddr, SocketAddr};

use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};
use serde::{Deserialize, Serialize};

/// The two ends of a connection. The proxy uses both addresses and ports on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ends {
    /// Who opened it.
    pub client: SocketAddr,
    /// Who answers.
    pub server: SocketAddr,
}

/// What a SYN says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syn {
    /// Its connection.
    pub ends: Ends,
    /// Its sequence number: a repeated SYN has the same.
    pub number: u32,
    /// Largest segment that the client takes; `None` if it does not say.
    pub mss: Option<u16>,
}

impl Syn {
    /// Reads an IP packet; `None` if it is no SYN of TCP.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let packet = SlicedPacket::from_ip(packet).ok()?;
        let (source, destination): (IpAddr, IpAddr) = match packet.net? {
            NetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            NetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            NetSlice::Arp(_) => return None,
        };
        let Some(TransportSlice::Tcp(tcp)) = packet.transport else { return None };
        if !tcp.syn() || tcp.ack() || tcp.rst() || tcp.fin() {
            return None;
        }
        let mss = tcp.options_iterator().flatten().find_map(|option| match option {
            TcpOptionElement::MaximumSegmentSize(mss) => Some(mss),
            _ => None,
        });
        Some(Self {
            ends: Ends {
                client: SocketAddr::new(source, tcp.source_port()),
                server: SocketAddr::new(destination, tcp.destination_port()),
            },
            number: tcp.sequence_number(),
            mss,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;
    use etherparse::PacketBuilder;

    #[test]
    fn only_a_syn_opens_a_connection() {
        let build = |change: fn(&mut etherparse::TcpHeader)| {
            let mut header = etherparse::TcpHeader::new(4000, 443, 77, 65_535);
            header.set_options(&[TcpOptionElement::MaximumSegmentSize(1360)]).unwrap();
            change(&mut header);
            let mut packet = Vec::new();
            PacketBuilder::ipv4([10, 0, 0, 2], [192, 0, 2, 1], 64)
                .tcp_header(header)
                .write(&mut packet, &[])
                .unwrap();
            packet
        };
        let syn = Syn::parse(&build(|header| header.syn = true)).unwrap();
        assert_eq!(
            (syn.ends.client, syn.ends.server),
            ("10.0.0.2:4000".parse().unwrap(), "192.0.2.1:443".parse().unwrap())
        );
        assert_eq!((syn.number, syn.mss), (77, Some(1360)));
        assert_eq!(Syn::parse(&build(|header| header.ack = true)), None);
        assert_eq!(Syn::parse(&build(|header| (header.syn, header.ack) = (true, true))), None);
        let packet = build(|header| header.syn = true);
        for length in 0..packet.len() {
            assert_eq!(Syn::parse(&packet[..length]), None, "cut at {length}");
        }
    }

    #[test]
    fn extension_headers_of_ipv6_are_skipped_and_fragments_are_no_syns() {
        let mut tcp = etherparse::TcpHeader::new(4000, 443, 77, 65_535);
        tcp.syn = true;
        // Padding, in a header of eight bytes; hop-by-hop options, and then destination options.
        let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
        let fragment = [6, 0, 0, 1, 0, 0, 0, 7];
        let packet = |first: u8, extensions: &[u8]| {
            let mut packet = vec![0x60, 0, 0, 0, 0, 20 + extensions.len() as u8, first, 64];
            packet.extend([0xfd; 16]);
            packet.extend([0x20; 16]);
            packet.extend(extensions);
            packet.extend(tcp.to_bytes());
            packet
        };
        let syn = Syn::parse(&packet(0, &[options(60), options(6)].concat())).unwrap();
        assert_eq!((syn.ends.server.port(), syn.number, syn.mss), (443, 77, None));
        assert_eq!(Syn::parse(&packet(44, &fragment)), None);
        // A header that says it is longer than its packet.
        assert_eq!(Syn::parse(&packet(0, &[6, 255, 1, 4, 0, 0, 0, 0])), None);
    }
}
