//! Pipes for splice(2), which moves payload between sockets without a copy. A connection has one only while payload is stuck in it;
//! others wait here.

use std::io;
use std::os::fd::OwnedFd;

use ranpace_units::Bytes;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// Bytes of a pipe. Linux gives users without rights few pipes of more than a megabyte. Ours.
pub const PIPE_BYTES: usize = 256 << 10;
/// Most pipes that wait. An empty pipe takes 5 kB of the kernel's memory. Ours.
const MOST_FREE: usize = 64;

/// A pipe.
#[derive(Debug)]
pub struct Pipe {
    /// Where payload leaves.
    pub out: OwnedFd,
    /// Where it enters.
    pub into: OwnedFd,
}

/// Empty pipes.
#[derive(Debug, Default)]
pub struct Pipes(Vec<Pipe>);

impl Pipes {
    /// An empty pipe.
    ///
    /// # Errors
    ///
    /// The process has too many open files.
    pub fn take(&mut self) -> io::Result<Pipe> {
        if let Some(pipe) = self.0.pop() {
            return Ok(pipe);
        }
        let (out, into) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        // Where the size is refused, the pipe has the system's, which is enough to go on.
        let _ = fcntl_setpipe_size(&into, PIPE_BYTES);
        Ok(Pipe { out, into })
    }

    /// Takes back an empty pipe.
    pub fn give_back(&mut self, pipe: Pipe) {
        if self.0.len() < MOST_FREE {
            self.0.push(pipe);
        }
    }
}

/// The part of a connection's buffer that waits in one place: in the socket towards the user, or in a pipe.
pub(crate) fn piece(flow_buffer: Bytes, at_most: usize) -> usize {
    usize::try_from(flow_buffer.get() / 4).map_or(at_most, |part| part.min(at_most))
}
