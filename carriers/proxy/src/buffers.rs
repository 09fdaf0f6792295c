//! How the payload that one direction of a connection may leave in the proxy (`limits.flow_buffer`) is divided among the places
//! where it waits: the socket that receives, a pipe, and the socket that sends.

use ranpace_units::Bytes;

/// Most bytes of a pipe. Linux gives users without rights few pipes of more than a megabyte. Ours.
const PIPE: u64 = 256 << 10;
/// Most unsent payload of the sending socket at which it still takes more. Ours.
const UNSENT: u64 = 128 << 10;
/// Payload that a sending socket may take beyond that limit: the kernel fills the packet that it has begun (`GSO_LEGACY_MAX_SIZE`).
const BEYOND: u64 = 64 << 10;
/// Least receive buffer: the first ten segments of a server (RFC 6928), with the kernel's overhead. Ours.
const LEAST_RECEIVE: u64 = 32 << 10;

/// The parts of a connection's buffer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Receive buffer of a socket, with the kernel's overhead. It limits the payload before any window is set, and whatever the
    /// kernel makes of the window later.
    pub receive: usize,
    /// Payload in a pipe.
    pub pipe: usize,
    /// Unsent payload at which the sending socket takes no more (`TCP_NOTSENT_LOWAT`).
    pub unsent: usize,
}

impl Buffers {
    /// The parts add up to `flow_buffer` where that is 256 KiB or more; smaller ones are exceeded by up to 84 KiB.
    pub fn of(flow_buffer: Bytes) -> Self {
        let all = flow_buffer.get();
        let (pipe, unsent) = ((all / 8).min(PIPE), (all / 8).min(UNSENT));
        let receive = all.saturating_sub(pipe + unsent + BEYOND).max(all / 2).max(LEAST_RECEIVE);
        // `flow_buffer` is at most 512 MiB.
        Self { receive: receive as usize, pipe: pipe as usize, unsent: unsent as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_buffer_of_256_kib_or_more_add_up_to_it() {
        for kib in [16, 64, 255, 256, 257, 1_000, 2_048, 4_096, 512 << 10] {
            let flow_buffer = kib << 10;
            let Buffers { receive, pipe, unsent } = Buffers::of(Bytes::new(flow_buffer));
            let all = (receive + pipe + unsent) as u64 + BEYOND;
            let allowed = if kib < 256 { flow_buffer + (84 << 10) } else { flow_buffer };
            assert!(all <= allowed, "{kib} KiB: {all} bytes");
            assert!(receive as u64 >= flow_buffer / 2 && pipe > 0 && unsent > 0, "{kib} KiB");
        }
    }
}
