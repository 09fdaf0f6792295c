//! Pipes for splice(2), which moves payload between sockets without a copy. A connection has one only while payload is stuck in it;
//! others wait here.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

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
#[derive(Debug)]
pub struct Pipes {
    size: usize,
    free: Vec<Pipe>,
}

impl Pipes {
    /// Pipes that take `size` bytes.
    pub fn new(size: usize) -> Self {
        Self { size, free: Vec::new() }
    }

    /// Bytes that a pipe takes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// An empty pipe.
    ///
    /// # Errors
    ///
    /// The process has too many open files.
    pub fn take(&mut self) -> io::Result<Pipe> {
        if let Some(pipe) = self.free.pop() {
            return Ok(pipe);
        }
        let (out, into) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        // Where the size is refused the pipe keeps the system's, and takes less at a time.
        let _ = fcntl_setpipe_size(&into, self.size);
        Ok(Pipe { out, into })
    }

    /// Takes back an empty pipe.
    pub fn give_back(&mut self, pipe: Pipe) {
        if self.free.len() < MOST_FREE {
            self.free.push(pipe);
        }
    }
}
