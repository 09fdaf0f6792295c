//! Radio information for single connections, for controls whose receiver goes by what the modem is granted (DCIC, CQIC-S).

use std::net::{IpAddr, SocketAddr};

use libbpf_rs::ProgramInput;
use ranpace_cc::RadioHint;

use crate::error::KernelError;
use crate::loaded::{Loaded, program};

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
        let input = ProgramInput { data_in: Some(&message(local, remote, hint)), ..ProgramInput::default() };
        let output = program(self.object(), "hint")?.test_run(input);
        let output =
            output.map_err(|error| KernelError::bpf("tell a receiver what its modem was granted", error))?;
        match output.return_value {
            0 => Ok(Hinted::Taken),
            2 => Ok(Hinted::NoSocket),
            3 => Ok(Hinted::NotOurs),
            other => {
                Err(KernelError::Missing(format!("message of {MESSAGE} bytes (the program says {other})")))
            }
        }
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
