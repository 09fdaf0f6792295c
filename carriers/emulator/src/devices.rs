//! Network devices of hosts: TUN devices with virtio headers. The kernel hands over what TCP sends as one GSO packet, and the
//! emulator segments it as a network card would.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use nix::net::if_::if_nametoindex;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::addresses;
use crate::netlink;

/// Name of the device in every namespace.
pub const NAME: &str = "ran0";
/// Largest IP packet.
pub const MTU: u16 = 1500;
/// Packets queued in the kernel until they are read; more than any TCP window, so that none is lost before the emulated links.
/// Ours.
const QUEUE: u32 = 20_000;

/// A device in a namespace.
pub struct Device {
    tun: SyncDevice,
}

impl Device {
    /// Creates the device of the host at this place in the calling thread's namespace, and brings up the loopback device.
    pub fn create(place: usize) -> io::Result<Self> {
        let mut loopback = LinkMessage::default();
        loopback.header.index = index("lo")?;
        loopback.header.flags = LinkFlags::Up;
        loopback.header.change_mask = LinkFlags::Up;
        netlink::request(RouteNetlinkMessage::SetLink(loopback), 0)?;
        let tun = DeviceBuilder::new()
            .name(NAME)
            .mtu(MTU)
            .ipv4(addresses::v4(place), addresses::PREFIX_V4, None)
            .ipv6(addresses::v6(place), addresses::PREFIX_V6)
            .offload(true)
            .build_sync()?;
        let mut queue = LinkMessage::default();
        queue.header.index = index(NAME)?;
        queue.attributes = vec![LinkAttribute::TxQueueLen(QUEUE)];
        netlink::request(RouteNetlinkMessage::SetLink(queue), 0)?;
        tun.set_nonblocking(true)?;
        Ok(Self { tun })
    }

    /// Writes a packet, or a GSO packet, to the host; the virtio header at the beginning says which.
    #[inline]
    pub fn send(&self, bytes: &[IoSlice<'_>]) -> io::Result<()> {
        self.tun.send_vectored(bytes).map(|_| ())
    }

    /// Reads a packet or GSO packet with its virtio header, and returns its length; `None` if nothing waits.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.tun.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The index of the device of this name in the calling thread's namespace.
pub fn index(name: &str) -> io::Result<u32> {
    Ok(if_nametoindex(name)?)
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
