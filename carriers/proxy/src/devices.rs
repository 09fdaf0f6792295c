//! The two devices of an exact handshake: `NAME-in` gives the proxy the SYNs of new connections and takes those for its listener;
//! `NAME-out` takes those that pass. The kernel removes both with the last process that has them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tun_rs::DeviceBuilder;

use crate::error::ProxyError;
use crate::rules;
use crate::system;

/// Largest packet; a SYN is much smaller.
const MTU: u16 = 1500;
/// Time in which the kernel makes a device ready. Ours.
const STARTING: Duration = Duration::from_secs(3);

/// Both devices.
pub struct Devices {
    listening: OwnedFd,
    passing: OwnedFd,
}

impl Devices {
    /// Creates both in this network namespace.
    ///
    /// # Errors
    ///
    /// Another process has devices of these names, or the right to create them is missing.
    pub fn create(name: &str) -> Result<Self, ProxyError> {
        let listening = device(name, &rules::device_in(name))?;
        let passing = device(name, &rules::device_out(name))?;
        Ok(Self { listening, passing })
    }

    /// Both as another process has handed them over.
    pub fn of([listening, passing]: [OwnedFd; 2]) -> Self {
        Self { listening, passing }
    }

    /// Reads a held packet and returns its length; `None` if nothing waits.
    ///
    /// # Errors
    ///
    /// The device is gone.
    pub fn held(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.listening, buffer) {
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a held SYN to the listener.
    ///
    /// # Errors
    ///
    /// The device is gone.
    pub fn to_listener(&self, syn: &[u8]) -> io::Result<()> {
        Ok(rustix::io::write(&self.listening, syn).map(drop)?)
    }

    /// Lets a held SYN pass.
    ///
    /// # Errors
    ///
    /// The device is gone.
    pub fn pass(&self, syn: &[u8]) -> io::Result<()> {
        Ok(rustix::io::write(&self.passing, syn).map(drop)?)
    }

    /// Reads and drops what the kernel sends to the device of passing SYNs, such as its own announcements.
    pub fn empty(&self) {
        let mut buffer = [0; MTU as usize];
        while rustix::io::read(&self.passing, &mut buffer).is_ok() {}
    }

    /// Readable when there is something to read for [`Self::held`], and for [`Self::empty`].
    pub fn descriptors(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.listening.as_fd(), self.passing.as_fd())
    }
}

fn device(name: &str, device: &str) -> Result<OwnedFd, ProxyError> {
    let created = DeviceBuilder::new().name(device).mtu(MTU).enable(false).build_sync();
    let tun = created.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::BUSY.raw_os_error() => ProxyError::Running { name: name.to_owned() },
        _ => ProxyError::System {
            what: format!("create the device {device} (as root, with /dev/net/tun)"),
            error,
        },
    })?;
    // Clients' addresses are not reached by this device. It has no addresses of its own, and announces none.
    system::set(&format!("net.ipv4.conf.{device}.rp_filter"), "0")?;
    system::set(&format!("net.ipv6.conf.{device}.addr_gen_mode"), "1")?;
    tun.set_nonblocking(true).map_err(ProxyError::system(format!("open the device {device}")))?;
    rules::ip(&format!("link set dev {device} up"))?;
    let until = Instant::now() + STARTING;
    // Up to a second later the kernel gives it a queue; what it is sent before is lost.
    while rules::ip(&format!("link show dev {device}"))?.contains("qdisc noop") && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    tun.as_fd().try_clone_to_owned().map_err(ProxyError::system(format!("open the device {device}")))
}
