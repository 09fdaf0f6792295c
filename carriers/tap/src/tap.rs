//! Copies of the packets that come in at devices: a packet socket whose filter (`bpf/tap.bpf.c`) copies the headers of packets of servers
//! into a ring buffer, and keeps nothing for the socket. A filter can neither change a packet nor hold it, and the kernel
//! removes it with the socket, also when the process is killed.

use std::collections::HashSet;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use libbpf_rs::{
    MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, PrintLevel, RingBuffer, RingBufferBuilder,
};
use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt};
use nix::{setsockopt_impl, sockopt_impl};
use ranpace_pep::lightweight::address_bytes;

/// The program of eBPF, aligned for the reader of ELF files.
const PROGRAM: &[u8] = {
    #[repr(C, align(8))]
    struct Aligned<T: ?Sized>(T);
    const OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/tap.bpf.o")));
    &OBJECT.0
};

/// SOL_PACKET and PACKET_IGNORE_OUTGOING of `linux/if_packet.h`.
const SOL_PACKET: libc::c_int = 263;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

sockopt_impl!(
    /// Makes a program the filter of a socket.
    AttachProgram, SetOnly, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, libc::c_int
);
sockopt_impl!(
    /// Leaves packets alone that go out of a device.
    IgnoreOutgoing, SetOnly, SOL_PACKET, PACKET_IGNORE_OUTGOING, libc::c_int
);

/// Why packets cannot be observed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TapError {
    /// A right is missing.
    #[error("{what}: not permitted; it needs root, or CAP_NET_RAW, CAP_BPF and CAP_PERFMON")]
    NotPermitted {
        /// What was tried.
        what: String,
    },
    /// There is no such device.
    #[error("there is no device {0:?} in this network namespace; `ip link` lists them")]
    NoDevice(String),
    /// The kernel refused.
    #[error("{what}: {reason}")]
    Refused {
        /// What was tried.
        what: String,
        /// What the kernel or libbpf said.
        reason: String,
    },
}

impl TapError {
    fn bpf(what: &str, error: &libbpf_rs::Error) -> Self {
        let what = what.to_owned();
        if error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
            return Self::NotPermitted { what };
        }
        Self::Refused { what, reason: error.to_string() }
    }

    fn system(what: String, error: Errno) -> Self {
        match error {
            Errno::EPERM | Errno::EACCES => Self::NotPermitted { what },
            error => Self::Refused { what, reason: error.desc().to_owned() },
        }
    }
}

/// A device, and its number while there is one.
#[derive(Debug)]
struct Device {
    name: String,
    index: Option<u32>,
}

/// What happened to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is gone.
    Gone(String),
    /// It is there again, and observed.
    Back(String),
}

/// The observed devices.
pub struct Tap {
    copies: MapHandle,
    counters: MapHandle,
    indices: MapHandle,
    devices: Vec<Device>,
    /// Holds the program, which ends with it. The maps and the program live as long as something refers to them.
    _socket: OwnedFd,
}

impl Tap {
    /// Begins to observe devices of this network namespace: packets that come in there from these addresses.
    ///
    /// # Errors
    ///
    /// If a right or a device is missing, or the kernel is too old.
    pub fn open(devices: &[String], servers: impl Iterator<Item = IpAddr>) -> Result<Self, TapError> {
        // What libbpf has to say is in the errors.
        libbpf_rs::set_print(None::<(PrintLevel, fn(PrintLevel, String))>);
        let load = || ObjectBuilder::default().name("ranpace_tap")?.open_memory(PROGRAM)?.load();
        let object = load().map_err(|error| TapError::bpf("load the program that copies headers", &error))?;
        let map = |wanted: &str| {
            let map = object.maps().find(|map| map.name().to_string_lossy().ends_with(wanted));
            let map = map.ok_or_else(|| TapError::Refused {
                what: format!("find the map {wanted}"),
                reason: "the program has none".to_owned(),
            })?;
            MapHandle::try_from(&map)
                .map_err(|error| TapError::bpf(&format!("open the map {wanted}"), &error))
        };
        let table = map("servers")?;
        for server in servers {
            let added = table.update(&address_bytes(server), &[1], MapFlags::ANY);
            added.map_err(|error| TapError::bpf(&format!("add the server {server}"), &error))?;
        }
        let (copies, counters, indices) = (map("copies")?, map(".bss")?, map("devices")?);
        let devices = devices.iter().map(|name| Device { name: name.clone(), index: None }).collect();
        let mut tap = Self { copies, counters, indices, devices, _socket: observe(&object)? };
        tap.refresh()?;
        match tap.devices.iter().find(|device| device.index.is_none()) {
            Some(device) => Err(TapError::NoDevice(device.name.clone())),
            None => Ok(tap),
        }
    }

    /// Looks whether devices are gone or back. A device that was made again has another number.
    ///
    /// # Errors
    ///
    /// If the kernel does not let it observe one that is back.
    pub fn refresh(&mut self) -> Result<Vec<Change>, TapError> {
        let found: Vec<Option<u32>> =
            self.devices.iter().map(|device| if_nametoindex(device.name.as_str()).ok()).collect();
        // Devices may have changed names with each other: a number goes only if no name has it any more.
        let gone: HashSet<u32> = self
            .devices
            .iter()
            .filter_map(|device| device.index)
            .filter(|old| !found.contains(&Some(*old)))
            .collect();
        for old in gone {
            let removed = self.indices.delete(&old.to_ne_bytes());
            removed.map_err(|error| TapError::bpf(&format!("observe device {old} no longer"), &error))?;
        }
        let mut changes = Vec::new();
        for (Device { name, index }, found) in self.devices.iter_mut().zip(found) {
            if found == *index {
                continue;
            }
            if let Some(new) = found {
                let added = self.indices.update(&new.to_ne_bytes(), &[1], MapFlags::ANY);
                added.map_err(|error| TapError::bpf(&format!("observe {name}"), &error))?;
            }
            *index = found;
            changes.push(if found.is_some() {
                Change::Back(name.clone())
            } else {
                Change::Gone(name.clone())
            });
        }
        Ok(changes)
    }

    /// Devices that are observed now.
    pub fn observed(&self) -> usize {
        self.devices.iter().filter(|device| device.index.is_some()).count()
    }

    /// The copies: `each` is called with every one, in order, when the returned buffer is polled.
    ///
    /// # Errors
    ///
    /// If the buffer cannot be mapped.
    pub fn copies<'s, 'a: 's>(
        &'s self,
        mut each: impl FnMut(&[u8]) + 'a,
    ) -> Result<RingBuffer<'a>, TapError> {
        let failed = |error| TapError::bpf("read copies", &error);
        let mut builder = RingBufferBuilder::new();
        let each = move |copy: &[u8]| {
            each(copy);
            0
        };
        builder.add(&self.copies, each).map_err(failed)?;
        builder.build().map_err(failed)
    }

    /// Packets of servers that were not copied, because the ring buffer was full.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn missed(&self) -> Result<u64, TapError> {
        let read = self.counters.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let read = read.map_err(|error| TapError::bpf("read how many packets were missed", &error))?;
        let number = read.as_deref().and_then(<[u8]>::first_chunk).copied();
        Ok(number.map_or(0, u64::from_ne_bytes))
    }
}

/// A socket whose filter is the program. It is bound to no device: a device that has no hardware address, such as a tunnel or a modem, has
/// nothing to be bound to by; the program knows the devices.
fn observe(object: &Object) -> Result<OwnedFd, TapError> {
    let failed = |error| TapError::system("observe packets".to_owned(), error);
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket =
        socket(AddressFamily::Packet, SockType::Datagram, flags, SockProtocol::EthAll).map_err(failed)?;
    // Until the filter is there, packets wait in the socket: as few as possible.
    setsockopt(&socket, sockopt::RcvBuf, &0).map_err(failed)?;
    let program = object.progs().next().ok_or_else(|| failed(Errno::ENOENT))?;
    setsockopt(&socket, AttachProgram, &program.as_fd().as_raw_fd()).map_err(failed)?;
    setsockopt(&socket, IgnoreOutgoing, &1).map_err(failed)?;
    Ok(socket)
}
