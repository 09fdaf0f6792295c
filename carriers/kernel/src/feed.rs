//! Radio information for connections, for controls whose receiver goes by what the modem is granted (DCIC, CQIC-S).

use std::net::{IpAddr, SocketAddr};

use libbpf_rs::{Object, ProgramInput};
use ranpace_cc::RadioHint;

use crate::control::Kind;
use crate::error::KernelError;
use crate::loaded::{Loaded, program};
use crate::{pins, sockets::Socket};

/// Radio information that a control takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Radio {
    /// Grants and qualities of a device's modem, for its connections that receive: [`Receivers`].
    Receivers,
}

impl Kind {
    /// The radio information that it takes; `None` if it takes none.
    pub fn radio(&self) -> Option<Radio> {
        matches!(self.name, "dcic" | "cqic-s").then_some(Radio::Receivers)
    }
}

/// What became of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hinted {
    /// The receiver has it.
    Taken,
    /// There is no such connection in this network namespace.
    NoSocket,
    /// The connection is no receiver of this control.
    NotOurs,
}

/// Families as Linux numbers them.
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// `struct message` of `bpf/feed.h`.
const MESSAGE: usize = 88;

impl Loaded {
    /// Tells the receiver of the connection from `local`, its own address, to `remote` what its modem was granted and what quality it
    /// measured. `hint.measured_at` is on the kernel's monotonic clock; what is not known of the hint is left out as in `RadioHint`.
    ///
    /// # Errors
    ///
    /// The control takes no hints, or the kernel refused to run the program.
    pub fn hint(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        hint: &RadioHint,
    ) -> Result<Hinted, KernelError> {
        run(self.object(), local, remote, hint)
    }

    /// Its connections in this network namespace, to be told what the device's modem is granted.
    ///
    /// # Errors
    ///
    /// The control takes no such information.
    pub fn receivers(&self) -> Result<Receivers<'_>, KernelError> {
        takes_hints(self.control().kind())?;
        Ok(Receivers { of: Of::Loaded(self), connections: Vec::new() })
    }
}

/// The connections of a control in a network namespace, which is that of a device with a modem.
pub struct Receivers<'a> {
    of: Of<'a>,
    /// Own address and peer, as they were listed last.
    connections: Vec<(SocketAddr, SocketAddr)>,
}

enum Of<'a> {
    Loaded(&'a Loaded),
    /// Its name, and its program `hint`, loaded a second time on the same maps.
    Pinned(String, Box<Object>),
}

impl Receivers<'_> {
    /// Those of a control that `ranpace kernel load` has loaded.
    ///
    /// # Errors
    ///
    /// There is none of this name, another version loaded it, or it takes no such information.
    pub fn pinned(name: &str) -> Result<Self, KernelError> {
        let control = pins::control(name)?;
        takes_hints(control.kind())?;
        let object = pins::load_again(name, control.kind(), "hint")?;
        Ok(Self { of: Of::Pinned(name.to_owned(), Box::new(object)), connections: Vec::new() })
    }

    /// Looks again which connections there are in the network namespace of the calling thread; returns how many.
    ///
    /// # Errors
    ///
    /// The control is gone, or the kernel does not list them.
    pub fn refresh(&mut self) -> Result<usize, KernelError> {
        let sockets = match &self.of {
            Of::Loaded(loaded) => loaded.sockets()?,
            Of::Pinned(name, _) => pins::sockets(name)?,
        };
        let addresses = |socket: &Socket| Some((socket.local.parse().ok()?, socket.peer.parse().ok()?));
        self.connections = sockets.iter().filter_map(addresses).collect();
        Ok(self.connections.len())
    }

    /// Tells those that [`Self::refresh`] found, and whose own address is this one, or all, what their device's modem was granted;
    /// `hint` as in [`Loaded::hint`]. Returns how many took it; those that are closed are left out from now on.
    ///
    /// # Errors
    ///
    /// The kernel refused to run the program.
    pub fn hint(&mut self, address: Option<IpAddr>, hint: &RadioHint) -> Result<usize, KernelError> {
        let object = match &self.of {
            Of::Loaded(loaded) => loaded.object(),
            Of::Pinned(_, object) => object,
        };
        let (mut taken, mut failed) = (0, None);
        self.connections.retain(|&(local, remote)| {
            if failed.is_some() || address.is_some_and(|address| address != local.ip().to_canonical()) {
                return true;
            }
            match run(object, local, remote, hint) {
                Ok(Hinted::Taken) => taken += 1,
                Ok(Hinted::NoSocket | Hinted::NotOurs) => return false,
                Err(error) => failed = Some(error),
            }
            true
        });
        failed.map_or(Ok(taken), Err)
    }
}

fn takes_hints(kind: &Kind) -> Result<(), KernelError> {
    match kind.radio() {
        Some(Radio::Receivers) => Ok(()),
        None => Err(KernelError::NoRadio(kind.name.to_owned())),
    }
}

fn run(
    object: &Object,
    local: SocketAddr,
    remote: SocketAddr,
    hint: &RadioHint,
) -> Result<Hinted, KernelError> {
    let input = ProgramInput { data_in: Some(&message(local, remote, hint)), ..ProgramInput::default() };
    let output = program(object, "hint")?.test_run(input);
    let output =
        output.map_err(|error| KernelError::bpf("tell a receiver what its modem was granted", error))?;
    match output.return_value {
        0 => Ok(Hinted::Taken),
        2 => Ok(Hinted::NoSocket),
        3 => Ok(Hinted::NotOurs),
        other => Err(KernelError::Missing(format!("message of {MESSAGE} bytes (the program says {other})"))),
    }
}

/// The message that the program reads: `struct message` of `bpf/feed.h`, with `struct dcic_hint` of `bpf/arithmetic` at its end.
fn message(local: SocketAddr, remote: SocketAddr, hint: &RadioHint) -> [u8; MESSAGE] {
    let mut bytes = [0; MESSAGE];
    let mut put = |place: usize, content: &[u8]| bytes[place..place + content.len()].copy_from_slice(content);
    put(14, &local.port().to_be_bytes());
    put(16, &remote.port().to_be_bytes());
    let family = if local.is_ipv4() { AF_INET } else { AF_INET6 };
    put(18, &family.to_ne_bytes());
    for (place, address) in [(24, local.ip()), (40, remote.ip())] {
        match address {
            IpAddr::V4(address) => put(place, &address.octets()),
            IpAddr::V6(address) => put(place, &address.octets()),
        }
    }
    put(56, &hint.measured_at.as_nanos().to_ne_bytes());
    put(64, &hint.tbs_bits.unwrap_or(0).to_ne_bytes());
    put(68, &u32::try_from(hint.tti.as_nanos()).unwrap_or(u32::MAX).to_ne_bytes());
    // In 2^-8; a float-to-integer cast saturates and maps NaN to zero, which says that it is not known.
    put(72, &((hint.granted * 256.0) as u32).to_ne_bytes());
    put(76, &hint.cell.to_ne_bytes());
    put(78, &[hint.cqi.unwrap_or(0), hint.layers, hint.tbs_bits.is_some().into(), hint.cqi.is_some().into()]);
    bytes
}
