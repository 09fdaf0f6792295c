//! Network devices of hosts: TUN devices with virtio headers, so that the kernel hands over what TCP sends in one piece, to be
//! cut here as a network card would. What is handed back goes packet by packet.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netconfig_rs::Interface;
use netconfig_rs::sys::InterfaceExt as _;
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN};

use crate::addresses;

/// Name of the device in every namespace.
pub const NAME: &str = "ran0";
/// Largest IP packet.
pub const MTU: u16 = 1500;
/// Packets that wait in the kernel until they are read; more than a window of any TCP, so that none is lost before the links
/// that are to lose it. Ours.
const QUEUE: u32 = 20_000;
/// Most packets that one piece is cut into: 65 535 B by the smallest MSS that Linux uses, less headers (tcp_min_snd_mss, 48).
const PIECES: usize = 2_048;

/// Where a packet's bytes begin in its buffer: behind the virtio header with which it is handed back.
pub const OFFSET: usize = VIRTIO_NET_HDR_LEN;

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

    /// Hands a packet to the host; `buffer` has room for a header before [`OFFSET`], which is overwritten.
    #[inline]
    pub fn send(&self, buffer: &mut [u8]) -> io::Result<()> {
        // No offload is asked for.
        if let Some(header) = buffer.first_chunk_mut::<OFFSET>() {
            *header = [0; OFFSET];
        }
        self.tun.send(buffer).map(|_| ())
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

/// Buffers for reading, and for packets under way.
pub struct Buffers {
    whole: Vec<u8>,
    pieces: Vec<Vec<u8>>,
    sizes: Vec<usize>,
}

impl Buffers {
    /// As many as one reading needs.
    pub fn new() -> Self {
        Self {
            whole: vec![0; OFFSET + usize::from(u16::MAX)],
            pieces: (0..PIECES).map(|_| vec![0; OFFSET + usize::from(MTU)]).collect(),
            sizes: vec![0; PIECES],
        }
    }

    /// Reads what waits in a device, once, and shows each packet to `take`: its bytes lie from [`OFFSET`] to the end.
    /// `take` may keep the buffer and leave another. `Ok(false)` if nothing waits.
    pub fn read(&mut self, device: &Device, mut take: impl FnMut(&mut Vec<u8>)) -> io::Result<bool> {
        let read = device.tun.recv_multiple(&mut self.whole, &mut self.pieces, &mut self.sizes, OFFSET);
        let count = match read {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // Something that the kernel should not send: it is dropped like noise.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) =>
            {
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        for (piece, size) in self.pieces.iter_mut().zip(&self.sizes).take(count) {
            piece.truncate(OFFSET + size);
            take(piece);
            piece.resize(OFFSET + usize::from(MTU), 0);
        }
        Ok(true)
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}
