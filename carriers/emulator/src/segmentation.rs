//! Makes a host's kernel segment the GSO packets that are written to its device before TCP receives them (generic segmentation
//! offload; Linux, Documentation/networking/segmentation-offloads.rst).
//!
//! Packets of a connection that are due together then cost one call and one copy, and the host's TCP still receives each of them
//! individually. A kernel segments what it sends, not what it receives. What comes from the device is therefore redirected to an
//! intermediate functional block device (ifb; tc-mirred(8)), which returns packets as if they came from their original device, and
//! which accepts no large GSO packets: the kernel segments those on the way to it, as a rule without copying payload.

use std::fs;
use std::io::{self, IoSlice};
use std::thread;

use netlink_packet_core::{DefaultNla, Emitable as _, NLA_F_NESTED, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::tc::{
    TcAction, TcActionAttribute, TcActionMirror, TcActionMirrorOption, TcActionOption, TcActionType,
    TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcMessage, TcMirror,
    TcMirrorActionType, TcOption,
};
use nix::sched::{CloneFlags, unshare};
use tun_rs::{VIRTIO_NET_HDR_GSO_TCPV4, VirtioNetHdr};

use crate::addresses;
use crate::devices::{self, Device};
use crate::gso::{NEEDS_SUM, OFFSET, TCP_SUM, sum_ipv4};
use crate::netlink;

/// GSO packets of at least this length, from the IP header on, are segmented: longer than any packet.
pub const FROM: usize = devices::MTU as usize + 1;
/// Name of the block device.
const NAME: &str = "ran0in";
/// Its queue length in packets, ours: more than the 90 that a GSO packet can have; the default is 32. A full queue loses packets.
const QUEUE: u32 = 1_000;
/// ETH_P_ALL.
const ALL: u16 = 3;
/// Attributes of a filter by BPF (uapi/linux/pkt_cls.h).
const TCA_BPF_ACT: u16 = 1;
/// See [`TCA_BPF_ACT`].
const TCA_BPF_OPS_LEN: u16 = 4;
/// See [`TCA_BPF_ACT`].
const TCA_BPF_OPS: u16 = 5;
/// The kernel is done with the packet (uapi/linux/pkt_cls.h).
const TC_ACT_STOLEN: u32 = 4;

/// From now on what is written to the device of the calling thread's namespace is segmented there.
pub fn set_up() -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.attributes = vec![
        LinkAttribute::IfName(NAME.to_owned()),
        LinkAttribute::TxQueueLen(QUEUE),
        LinkAttribute::GsoMaxSize(FROM as u32),
        LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Ifb)]),
    ];
    let create = |message| netlink::request(message, NLM_F_CREATE | NLM_F_EXCL);
    create(RouteNetlinkMessage::NewLink(link))?;
    let (device, block) = (devices::index(devices::NAME)?, devices::index(NAME)?);
    let kind = |kind: &str| TcAttribute::Kind(kind.to_owned());

    // The machine's default qdisc might drop or delay packets.
    let mut none = TcMessage::with_index(block as i32);
    none.header.parent = TcHandle::ROOT;
    none.attributes = vec![kind("noqueue")];
    create(RouteNetlinkMessage::NewQueueDiscipline(none))?;

    // No IPv6 address when it is up, so that the kernel sends nothing over it and programs do not take it for a route.
    let quiet = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
    let mut block_link = LinkMessage::default();
    block_link.header.index = block;
    block_link.attributes = vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![quiet])])];
    netlink::request(RouteNetlinkMessage::SetLink(block_link.clone()), 0)?;
    block_link.attributes.clear();
    (block_link.header.flags, block_link.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
    netlink::request(RouteNetlinkMessage::SetLink(block_link), 0)?;

    let mut ingress = TcMessage::with_index(device as i32);
    ingress.header.parent = TcHandle::INGRESS;
    ingress.header.handle = TcHandle { major: TcHandle::INGRESS.major, minor: 0 };
    ingress.attributes = vec![kind("ingress")];
    create(RouteNetlinkMessage::NewQueueDiscipline(ingress))?;

    // The next filter sends packets over the block device as copies of the GSO packet's descriptor. The memory of the original GSO
    // packet would be charged to the last packet segmented from it, and close the receiver's window.
    let mut redirect = TcMirror::default();
    (redirect.eaction, redirect.ifindex) = (TcMirrorActionType::EgressRedir, block);
    redirect.generic.action = TcActionType::Unspec;
    let mut action = TcAction::default();
    action.attributes = vec![
        TcActionAttribute::Kind(TcActionMirror::KIND.to_owned()),
        TcActionAttribute::Options(vec![TcActionOption::Mirror(TcActionMirrorOption::Parms(redirect))]),
    ];
    let actions = [action];
    let mut action = vec![0; actions.as_slice().buffer_len()];
    actions.as_slice().emit(&mut action);
    let act = TcFilterBpfOption::Other(DefaultNla::new(TCA_BPF_ACT | NLA_F_NESTED, action));
    add_filter(device, 1, u32::MAX, act)?;
    let direct = TcFilterBpfOption::Flags(TcBpfFlags::DirectAction);
    add_filter(device, 2, TC_ACT_STOLEN, direct)
}

/// Adds a filter to the ingress of a device, whose program returns `verdict` for GSO packets.
fn add_filter(device: u32, priority: u32, verdict: u32, what: TcFilterBpfOption) -> io::Result<()> {
    // Classic BPF: opcode, jump if true, jump if false, value (Linux, Documentation/networking/filter.rst). The filter ignores
    // packets that are not GSO packets, so that a single packet does not take the way over the block device.
    let program = [
        // ld len; jge #FROM; ret #verdict, ret #0
        (0x80, 0, 0, 0),
        (0x35, 0, 1, FROM as u32),
        (0x06, 0, 0, verdict),
        (0x06, 0, 0, 0),
    ];
    let other = |kind, value| TcFilterBpfOption::Other(DefaultNla::new(kind, value));
    let options = [
        other(TCA_BPF_OPS_LEN, (program.len() as u16).to_ne_bytes().to_vec()),
        other(TCA_BPF_OPS, program.into_iter().flat_map(instruction).collect()),
        what,
    ];
    let mut filter = TcMessage::with_index(device as i32);
    filter.header.parent = TcHandle { major: TcHandle::INGRESS.major, minor: 0 };
    filter.header.info = priority << 16 | u32::from(ALL.to_be());
    filter.attributes = vec![
        TcAttribute::Kind(TcFilterBpf::KIND.to_owned()),
        TcAttribute::Options(options.map(TcOption::Bpf).into()),
    ];
    netlink::request(RouteNetlinkMessage::NewTrafficFilter(filter), NLM_F_CREATE | NLM_F_EXCL)
}

/// An instruction of classic BPF in the kernel's layout (struct sock_filter).
fn instruction((code, yes, no, value): (u16, u8, u8, u32)) -> [u8; 8] {
    let ([code, more], [a, b, c, d]) = (code.to_ne_bytes(), value.to_ne_bytes());
    [code, more, yes, no, a, b, c, d]
}

/// Tests whether this kernel can do it, in a temporary namespace, or returns why not: a kernel may lack these devices, and older
/// ones ignore their limit.
pub fn check() -> io::Result<()> {
    const PACKETS: usize = 40;
    let tried = thread::Builder::new().name("segmentation".to_owned()).spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let device = Device::create(0)?;
        set_up()?;
        device.send(&[IoSlice::new(&gso_packet(PACKETS))])?;
        let packets = Counted::read()?.packets;
        if packets == PACKETS as u64 {
            return Ok(());
        }
        Err(io::Error::other(format!("a piece of {PACKETS} packets was received as {packets}")))
    })?;
    tried.join().unwrap_or_else(|_| Err(io::Error::other("the thread that tried it panicked")))
}

/// Packets, or GSO packets, lost in the block device of the calling thread's namespace.
pub fn dropped() -> io::Result<u64> {
    Counted::read().map(|counted| counted.dropped)
}

/// Counters of the block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    /// Packets that it sent.
    packets: u64,
    /// Packets dropped by it, or before it.
    dropped: u64,
}

impl Counted {
    /// Reads the counters in the calling thread's namespace (proc_pid_net(5), /proc/pid/net/dev).
    fn read() -> io::Result<Self> {
        const FILE: &str = "/proc/thread-self/net/dev";
        Self::of(&fs::read_to_string(FILE)?)
            .ok_or_else(|| io::Error::other(format!("{FILE} does not have the counters of {NAME}")))
    }

    fn of(devices: &str) -> Option<Self> {
        let mut lines = devices.lines().filter_map(|line| line.trim_start().split_once(':'));
        let (_, columns) = lines.find(|(name, _)| *name == NAME)?;
        let columns: Vec<u64> = columns.split_whitespace().map_while(|column| column.parse().ok()).collect();
        // Received, then sent: bytes, packets, errors, drops and four more.
        Some(Self { packets: *columns.get(1)?, dropped: columns.get(3)? + columns.get(11)? })
    }
}

/// TCP packets between two hosts other than the device's, in one GSO packet.
fn gso_packet(packets: usize) -> Vec<u8> {
    const HEADERS: usize = 40;
    const PAYLOAD: usize = 1000;
    let mut gso_packet = vec![0; OFFSET + HEADERS + packets * PAYLOAD];
    let virtio = VirtioNetHdr {
        flags: NEEDS_SUM,
        gso_type: VIRTIO_NET_HDR_GSO_TCPV4,
        hdr_len: HEADERS as u16,
        gso_size: PAYLOAD as u16,
        csum_start: 20,
        csum_offset: TCP_SUM as u16,
    };
    // The buffer is large enough.
    let _ = virtio.encode(&mut gso_packet);
    let packet = &mut gso_packet[OFFSET..];
    let length = packet.len() as u16;
    // IPv4 without options, TCP (RFC 791 section 3.1); TCP without options (RFC 9293 section 3.1).
    (packet[0], packet[8], packet[9]) = (0x45, 64, 6);
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[12..16].copy_from_slice(&addresses::v4(1).octets());
    packet[16..20].copy_from_slice(&addresses::v4(2).octets());
    sum_ipv4(&mut packet[..20]);
    packet[32] = 0x50;
    gso_packet
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    use etherparse::PacketBuilder;
    use socket2::{Domain, Protocol, Socket, Type};
    use tun_rs::VIRTIO_NET_HDR_GSO_TCPV6;

    use super::*;
    use crate::gso::{addresses_sum, cut, pseudo_sum};

    /// TCP packets for the device, in one GSO packet as a kernel sends them.
    fn sent(v6: bool, payload: usize) -> Vec<u8> {
        let ip = if v6 {
            PacketBuilder::ipv6(addresses::v6(1).octets(), addresses::v6(0).octets(), 64)
        } else {
            PacketBuilder::ipv4(addresses::v4(1).octets(), addresses::v4(0).octets(), 64)
        };
        let payload: Vec<u8> = (0..payload).map(|at| (at / 7) as u8).collect();
        let mut gso_packet = vec![0; OFFSET];
        let stamp = etherparse::TcpOptionElement::Timestamp(7, 4);
        let tcp = ip.tcp(5000, 80, 4_294_960_000, 500).ack(9).psh().ece().options(&[stamp]).unwrap();
        tcp.write(&mut gso_packet, &payload).unwrap();
        let (network, kind) =
            if v6 { (40, VIRTIO_NET_HDR_GSO_TCPV6) } else { (20, VIRTIO_NET_HDR_GSO_TCPV4) };
        let virtio = VirtioNetHdr {
            flags: NEEDS_SUM,
            gso_type: kind,
            hdr_len: network + 32,
            gso_size: 1448,
            csum_start: network,
            csum_offset: TCP_SUM as u16,
        };
        virtio.encode(&mut gso_packet).unwrap();
        let packet = &mut gso_packet[OFFSET..];
        let network = usize::from(network);
        let sum = pseudo_sum(addresses_sum(packet, v6), true, (packet.len() - network) as u64);
        packet[network + TCP_SUM..][..2].copy_from_slice(&sum.to_be_bytes());
        gso_packet
    }

    #[test]
    fn a_host_gets_the_very_packets_of_a_piece_one_by_one() {
        if let Err(error) = check() {
            let needs = "root, TUN devices, ifb, act_mirred, cls_bpf, and a kernel that goes by gso_max_size";
            assert!(
                std::env::var_os("RANPACE_NO_SKIP").is_none(),
                "not to be skipped here: needs {needs}: {error}"
            );
            eprintln!("skipped: needs {needs}: {error}");
            return;
        }
        let seen = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let device = Device::create(0).unwrap();
            set_up().unwrap();
            // The kernel takes a moment until an IPv6 address is usable.
            let begun = Instant::now();
            while UdpSocket::bind((addresses::v6(0), 0)).is_err() {
                assert!(begun.elapsed() < Duration::from_secs(5), "no address of IPv6");
                thread::sleep(Duration::from_millis(1));
            }
            for v6 in [false, true] {
                let domain = if v6 { Domain::IPV6 } else { Domain::IPV4 };
                // Receives what TCP receives.
                let mut socket = Socket::new(domain, Type::RAW, Some(Protocol::TCP)).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                // Without the header of IPv6 (RFC 3542 section 3).
                let hidden = if v6 { 40 } else { 0 };
                // The kernel doubles it (socket(7)): enough for the packets, but not for GSO packets on top of them, which would
                // count if the last packet of each were charged for all of it.
                socket.set_recv_buffer_size(75_000).unwrap();
                let before = Counted::read().unwrap();
                let alone = [100; 10].map(|payload| sent(v6, payload));
                let long = [20 * 1448, 29 * 1448 + 1].map(|payload| sent(v6, payload));
                let short = [5 * 1448; 10].map(|payload| sent(v6, payload));
                for mut sent in [alone.to_vec(), long.to_vec(), short.to_vec()] {
                    sent.iter().for_each(|gso_packet| device.send(&[IoSlice::new(gso_packet)]).unwrap());
                    let expected = sent.iter_mut().flat_map(|gso_packet| cut(gso_packet));
                    for (place, expected) in expected.enumerate() {
                        let mut packet = [0; 2048];
                        let length = socket.read(&mut packet).unwrap();
                        assert_eq!(packet[..length], expected[OFFSET + hidden..], "{v6}, {place}");
                    }
                }
                let expected = Counted { packets: before.packets + 100, dropped: 0 };
                assert_eq!(Counted::read().unwrap(), expected, "a packet by itself takes the short way");
            }
        });
        seen.join().unwrap();
    }
}
