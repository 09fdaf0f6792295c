//! Network devices of hosts: TUN devices with virtio headers, so that the kernel hands over what TCP sends in one piece, to be
//! cut here as a network card would. What is handed back goes packet by packet.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netconfig_rs::Interface;
use netconfig_rs::sys::InterfaceExt as _;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::addresses;
use crate::pieces::{OFFSET, cut};

/// Name of the device in every namespace.
pub const NAME: &str = "ran0";
/// Largest IP packet.
pub const MTU: u16 = 1500;
/// Packets that wait in the kernel until they are read; more than a window of any TCP, so that none is lost before the links
/// that are to lose it. Ours.
const QUEUE: u32 = 20_000;

/// A device, in a namespace.
pub struct Device {
    tun: SyncDevice,
}

impl Device {
    /// Makes the device of the host at this place, in the calling thread's namespace, and sets up the loopback device.
    pub fn create(place: usize) -> io::Result<Self> {
        let other = |error: netconfig_rs::Error| io::Error::other(error.to_string());
        Interface::try_from_name("lo").and_then(|loopback| loopback.set_up(true)).map_err(other)?;
        let tun = DeviceBuilder::new()
            .name(NAME)
            .mtu(MTU)
            .ipv4(addresses::v4(place), addresses::PREFIX_V4, None)
            .ipv6(addresses::v6(place), addresses::PREFIX_V6)
            .offload(true)
            .build_sync()?;
        // The kernel allows it to root alone; the 500 packets of a new device hold 500 pieces, each of many packets.
        let _ = tun.set_tx_queue_len(QUEUE);
        tun.set_nonblocking(true)?;
        Ok(Self { tun })
    }

    /// Hands a packet to the host, or several in one piece: the virtio header at the beginning of the buffer says which.
    #[inline]
    pub fn send(&self, buffer: &[u8]) -> io::Result<()> {
        self.tun.send(buffer).map(|_| ())
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

/// Buffers for reading, and for a packet under way.
pub struct Buffers {
    whole: Vec<u8>,
    piece: Vec<u8>,
}

impl Buffers {
    /// As large as one reading needs.
    pub fn new() -> Self {
        Self { whole: vec![0; OFFSET + usize::from(u16::MAX)], piece: Vec::new() }
    }

    /// Reads what waits in a device, once, and shows each packet to `take`: its bytes lie from [`OFFSET`] to the end, before
    /// them the virtio header with which it is handed over. `take` may keep the buffer and leave another. `Ok(false)` if
    /// nothing waits.
    pub fn read(&mut self, device: &Device, take: impl FnMut(&mut Vec<u8>)) -> io::Result<bool> {
        match device.tun.recv(&mut self.whole) {
            Ok(length) => {
                cut(&mut self.whole[..length], &mut self.piece, take);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}
