//! Pipes for splice(2), which moves payload between sockets without a copy. A connection has one only while payload is stuck in it;
//! others wait here.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
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

/// Bytes that are copied at a time. Ours.
const COPIED: usize = 64 << 10;

/// Empty pipes, and a buffer for those who get none.
#[derive(Debug)]
pub struct Pipes {
    size: usize,
    free: Vec<Pipe>,
    /// Pipes that are in use, and their largest number.
    used: usize,
    most: usize,
    /// Where payload is copied through while all pipes are in use. Its content is nobody's.
    pub copy: Box<[u8]>,
}

impl Pipes {
    /// At most `most` pipes that take `size` bytes each.
    pub fn new(size: usize, most: usize) -> Self {
        Self { size, free: Vec::new(), used: 0, most, copy: vec![0; COPIED].into() }
    }

    /// Bytes that a pipe takes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// An empty pipe; `None` while too many are in use, or the system has none.
    ///
    /// # Errors
    ///
    /// The system refuses for another reason.
    pub fn take(&mut self) -> io::Result<Option<Pipe>> {
        if self.used >= self.most {
            return Ok(None);
        }
        let pipe = self.open()?;
        self.used += usize::from(pipe.is_some());
        Ok(pipe)
    }

    fn open(&mut self) -> io::Result<Option<Pipe>> {
        if let Some(pipe) = self.free.pop() {
            return Ok(Some(pipe));
        }
        let (out, into) = match pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC) {
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => return Ok(None),
            made => made?,
        };
        // Where the size is refused the pipe keeps the system's, and takes less at a time.
        let _ = fcntl_setpipe_size(&into, self.size);
        Ok(Some(Pipe { out, into }))
    }

    /// A pipe that was not empty was closed.
    pub fn forget(&mut self) {
        self.used -= 1;
    }

    /// Takes back an empty pipe.
    pub fn give_back(&mut self, pipe: Pipe) {
        self.used -= 1;
        if self.free.len() < MOST_FREE {
            self.free.push(pipe);
        }
    }
}
