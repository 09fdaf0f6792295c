//! Radio information for connections, for controls whose receiver (DCIC, CQIC-S) or sender (SIGMA) goes by what the modem is granted.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use libbpf_rs::{Object, ProgramInput};
use ranpace_cc::RadioHint;
use ranpace_phy::Direction;
use ranpace_units::Rate;

use crate::control::Kind;
use crate::error::KernelError;
use crate::loaded::{Loaded, program};
use crate::{pins, sockets::Socket};

/// Radio information that a control takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Radio {
    /// Grants and qualities of a device's modem, for its connections that receive: [`DeviceConnections`].
    Receivers,
    /// What a device's modem knows of its uplink, for its connections that send: [`DeviceConnections`].
    Senders,
    /// Reports on the downlink of users, by their addresses: [`RadioFeed`](crate::RadioFeed).
    Users,
    /// What a PEP has seen of single connections: [`PepFeed`](crate::PepFeed).
    Pep,
}

impl Kind {
    /// The radio information that it takes; `None` if it takes none.
    pub fn radio(&self) -> Option<Radio> {
        match self.name {
            "dcic" | "cqic-s" => Some(Radio::Receivers),
            "sigma" => Some(Radio::Senders),
            "mdcc" => Some(Radio::Pep),
            name if name.contains("+meld-") => Some(Radio::Users),
            _ => None,
        }
    }
}

/// What became of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hinted {
    /// The connection's receiver or sender has it.
    Taken,
    /// There is no such connection in this network namespace.
    NoSocket,
    /// The connection has not this control.
    NotOurs,
}

/// Families as Linux numbers them.
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// `struct message` of `bpf/message.h`.
const MESSAGE: usize = 88;
/// `struct sigma_hint` of `bpf/arithmetic/sigma.h`, behind it where the control is SIGMA: 40 bytes, and rates of 0 to 275 resources.
const UPLINK: usize = 40 + 4 * RATES;
const RATES: usize = 276;

impl Loaded {
    /// Tells the end of the connection at `local`, its own address, with the peer `remote`, what its modem was granted and what quality it
    /// measured: of the downlink for a receiver, of the uplink for SIGMA. `hint.measured_at` is on the kernel's monotonic clock; what
    /// is not known of the hint is left out as in `RadioHint`.
    ///
    /// SIGMA keeps what was said last for connections that begin later, whether there is a connection of these addresses or not.
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
        run(self.object(), self.control().kind(), local, remote, hint)
    }

    /// Its connections in this network namespace, to be told what the device's modem is granted.
    ///
    /// # Errors
    ///
    /// The control takes no such information.
    pub fn device_connections(&self) -> Result<DeviceConnections<'_>, KernelError> {
        takes_hints(self.control().kind())?;
        Ok(DeviceConnections { of: Of::Loaded(self), connections: Vec::new() })
    }
}

/// The connections of a control in a network namespace, which is that of a device with a modem.
pub struct DeviceConnections<'a> {
    of: Of<'a>,
    /// Own address and peer, as they were listed last.
    connections: Vec<(SocketAddr, SocketAddr)>,
}

enum Of<'a> {
    Loaded(&'a Loaded),
    Pinned(Box<PinnedControl>),
}

struct PinnedControl {
    name: String,
    kind: &'static Kind,
    /// Its program `hint`, loaded a second time on the same maps.
    object: Object,
}

impl DeviceConnections<'_> {
    /// Those of a control that `ranpace kernel load` has loaded.
    ///
    /// # Errors
    ///
    /// There is none of this name, another version loaded it, or it takes no such information.
    pub fn pinned(name: &str) -> Result<Self, KernelError> {
        let control = pins::control(name)?;
        takes_hints(control.kind())?;
        let object = pins::load_again(name, control.kind(), "hint")?;
        let pinned = PinnedControl { name: name.to_owned(), kind: control.kind(), object };
        Ok(Self { of: Of::Pinned(Box::new(pinned)), connections: Vec::new() })
    }

    /// Looks again which connections there are in the network namespace of the calling thread; returns how many.
    ///
    /// # Errors
    ///
    /// The control is gone, or the kernel does not list them.
    pub fn refresh(&mut self) -> Result<usize, KernelError> {
        let sockets = match &self.of {
            Of::Loaded(loaded) => loaded.sockets()?,
            Of::Pinned(pinned) => pins::sockets(&pinned.name)?,
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
        let (object, kind) = match &self.of {
            Of::Loaded(loaded) => (loaded.object(), loaded.control().kind()),
            Of::Pinned(pinned) => (&pinned.object, pinned.kind),
        };
        let (mut taken, mut failed) = (0, None);
        if kind.radio() == Some(Radio::Senders) && self.connections.is_empty() {
            // SIGMA keeps what is said last for the next connection.
            let nobody = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
            run(object, kind, nobody, nobody, hint)?;
        }
        self.connections.retain(|&(local, remote)| {
            if failed.is_some() || address.is_some_and(|address| address != local.ip().to_canonical()) {
                return true;
            }
            match run(object, kind, local, remote, hint) {
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
        Some(Radio::Receivers | Radio::Senders) => Ok(()),
        Some(Radio::Users | Radio::Pep) | None => Err(KernelError::NoRadio(kind.name.to_owned())),
    }
}

fn run(
    object: &Object,
    kind: &Kind,
    local: SocketAddr,
    remote: SocketAddr,
    hint: &RadioHint,
) -> Result<Hinted, KernelError> {
    let mut message = message(local, remote, hint).to_vec();
    if kind.radio() == Some(Radio::Senders) {
        message.extend(uplink(hint));
    }
    let input = ProgramInput { data_in: Some(&message), ..ProgramInput::default() };
    let output = program(object, "hint")?.test_run(input);
    let output =
        output.map_err(|error| KernelError::bpf("tell a connection what its modem was granted", error))?;
    match output.return_value {
        0 => Ok(Hinted::Taken),
        2 => Ok(Hinted::NoSocket),
        3 => Ok(Hinted::NotOurs),
        other => {
            let length = message.len();
            Err(KernelError::Missing(format!("message of {length} bytes (the program says {other})")))
        }
    }
}

/// The head of the message that a program reads: who is meant.
pub(crate) fn addresses(local: SocketAddr, remote: SocketAddr) -> [u8; MESSAGE] {
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
    bytes
}

/// The message that the program reads: `struct message` of `bpf/message.h`, with `struct dcic_hint` of `bpf/arithmetic` at its end.
fn message(local: SocketAddr, remote: SocketAddr, hint: &RadioHint) -> [u8; MESSAGE] {
    let mut bytes = addresses(local, remote);
    let mut put = |place: usize, content: &[u8]| bytes[place..place + content.len()].copy_from_slice(content);
    put(56, &hint.measured_at.as_nanos().to_ne_bytes());
    put(64, &hint.tbs_bits.unwrap_or(0).to_ne_bytes());
    put(68, &u32::try_from(hint.tti.as_nanos()).unwrap_or(u32::MAX).to_ne_bytes());
    // In 2^-8; a float-to-integer cast saturates and maps NaN to zero, which says that it is not known.
    put(72, &((hint.granted * 256.0) as u32).to_ne_bytes());
    put(76, &hint.cell.to_ne_bytes());
    put(78, &[hint.cqi.unwrap_or(0), hint.layers, hint.tbs_bits.is_some().into(), hint.cqi.is_some().into()]);
    bytes
}

/// What SIGMA is told besides: `struct sigma_hint`.
fn uplink(hint: &RadioHint) -> [u8; UPLINK] {
    let mut bytes = [0; UPLINK];
    let mut put = |place: usize, content: &[u8]| bytes[place..place + content.len()].copy_from_slice(content);
    let bytes_per_s = |rate: Rate| u32::try_from(rate.bits_per_s() / 8).unwrap_or(u32::MAX).to_ne_bytes();
    // In 2^-16. NaN becomes zero.
    let parts = |units: f64| (units.clamp(0.0, f64::from(hint.cell)) * 65_536.0) as u32;
    let own = parts(hint.granted);
    let granted = own > 0 || hint.tbs_bits.is_some();
    let info = &hint.info;
    // A cell for whose resources there is no room is one of which nothing is known.
    let fits = info.by_symbols || usize::from(info.prbs) < RATES;
    put(0, &hint.measured_at.as_nanos().to_ne_bytes());
    put(8, &own.to_ne_bytes());
    put(12, &parts(hint.unused).to_ne_bytes());
    put(16, &bytes_per_s(hint.ahead));
    put(20, &u32::try_from(hint.tti.as_nanos()).unwrap_or(u32::MAX).to_ne_bytes());
    put(24, &if fits { hint.cell } else { 0 }.to_ne_bytes());
    put(26, &info.cell.to_ne_bytes());
    put(28, &hint.active_users.to_ne_bytes());
    put(30, &[granted.into(), hint.handover.into()]);
    put(32, &info.prbs.to_ne_bytes());
    put(36, &[info.by_symbols.into()]);
    if granted {
        let mut last = 0;
        for (index, rate) in (0_u16..).zip(info.rates(Direction::Uplink, hint.mcs, hint.layers).take(RATES)) {
            put(40 + 4 * usize::from(index), &bytes_per_s(rate));
            last = index;
        }
        put(34, &last.to_ne_bytes());
    }
    bytes
}
