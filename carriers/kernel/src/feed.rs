//! Radio information for single connections, for controls whose receiver (DCIC, CQIC-S) or sender (SIGMA) goes by what the modem is
//! granted.

use std::net::{IpAddr, SocketAddr};

use libbpf_rs::ProgramInput;
use ranpace_cc::RadioHint;
use ranpace_phy::Direction;
use ranpace_units::Rate;

use crate::error::KernelError;
use crate::loaded::{Loaded, program};

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
        let mut message = message(local, remote, hint).to_vec();
        if self.control().kind().name == "sigma" {
            message.extend(uplink(hint));
        }
        let input = ProgramInput { data_in: Some(&message), ..ProgramInput::default() };
        let output = program(self.object(), "hint")?.test_run(input);
        let output =
            output.map_err(|error| KernelError::bpf("tell a receiver what its modem was granted", error))?;
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
