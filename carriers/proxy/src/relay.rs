//! A split connection: payload in both directions, half-closed ends, and resets.
//!
//! Readiness is edge-triggered: a leg counts as readable or writable until the kernel says that it is not.

use std::io;
use std::os::fd::OwnedFd;

use ranpace_pep::rapid::FlowId;
use ranpace_units::{Bytes, Rate, Span, Time};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send};
use rustix::pipe::{SpliceFlags, splice};

use crate::pipes::{Pipe, Pipes};
use crate::syn::Ends;

/// Bytes that one direction moves before others have their turn. Ours.
const TURN: u64 = 1 << 20;

/// A leg of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards the user, who is the client.
    User,
    /// Towards the server.
    Server,
}

/// A socket and its readiness.
#[derive(Debug)]
pub struct Leg {
    /// The socket.
    pub socket: OwnedFd,
    /// Something may wait to be read.
    pub readable: bool,
    /// There may be room to write.
    pub writable: bool,
}

impl Leg {
    /// A leg of which nothing is known yet.
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, readable: true, writable: true }
    }
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    pipe: Option<Pipe>,
    /// Bytes in the pipe.
    stuck: usize,
    /// Bytes read so far.
    read: u64,
    /// The sender has ended.
    ended: bool,
    /// The receiver knows.
    told: bool,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It waits for one of its ends.
    Waits,
    /// It has used its turn, and has more to do.
    Goes,
    /// Both ends have said all, and know it.
    Done,
}

/// What the allocator knows of a connection, as counters of its sockets.
#[derive(Debug)]
pub struct Counted {
    /// The allocator's name of it.
    pub flow: FlowId,
    /// Payload from the server, in bytes.
    pub received: u64,
    /// Payload that the server has acknowledged.
    pub server_acked: u64,
    /// Payload that the user has acknowledged.
    pub user_acked: u64,
    /// Smoothed RTT to the server.
    pub server_rtt: Span,
    /// Smallest RTT to the user of which the allocator knows, in microseconds.
    pub user_min_rtt: u32,
    /// Payload for the user that waits in the proxy, and payload for the server.
    pub backlog: u64,
    /// See `backlog`.
    pub uploaded: u64,
    /// When any of these counters was last seen to change.
    pub changed_at: Time,
    /// Largest payload of a segment, in bytes.
    pub mss: u32,
    /// Shift of the windows towards the server.
    pub scale: u8,
    /// The last clamp, in bytes.
    pub clamp: u32,
    /// The window towards the server has changed, and is set before the next payload is read.
    pub clamp_due: bool,
    /// The last clamp towards the user, in bytes; `u32::MAX` for none.
    pub user_clamp: u32,
    /// The last allocation towards the user: rate and window.
    pub allocation: Option<(Rate, Bytes)>,
    /// The sender towards the user has been told of an allocation.
    pub allocated: bool,
}

/// A split connection.
#[derive(Debug)]
pub struct Relay {
    /// Its ends.
    pub ends: Ends,
    /// Number of its user.
    pub user_number: u32,
    /// When it began.
    pub since: Time,
    /// The leg of the user.
    pub user: Leg,
    /// The leg of the server.
    pub server: Leg,
    down: Direction,
    up: Direction,
    /// See [`Counted`].
    pub counted: Counted,
    /// Its counters are read at the next tick.
    pub moved: bool,
    /// Its counters are read now and then, because they have not changed for a while.
    pub resting: bool,
    /// It goes on at once.
    pub queued: bool,
    /// So much comes from the server that each tick moves it, rather than each packet.
    pub is_bulk: bool,
    /// Half of what may wait of the user's uploads does, and this one's server takes no more: nothing is read from the user, whose window
    /// would open again.
    pub holds_upload: bool,
}

impl Relay {
    /// A connection whose legs are both established.
    pub fn new(ends: Ends, user_number: u32, since: Time, user: Leg, server: Leg, counted: Counted) -> Self {
        Self {
            ends,
            user_number,
            since,
            user,
            server,
            down: Direction::default(),
            up: Direction::default(),
            counted,
            moved: false,
            resting: false,
            queued: false,
            is_bulk: false,
            holds_upload: false,
        }
    }

    /// A leg.
    pub fn leg_mut(&mut self, side: Side) -> &mut Leg {
        match side {
            Side::User => &mut self.user,
            Side::Server => &mut self.server,
        }
    }

    /// Bytes read from the server, and from the user.
    pub fn read(&self) -> (u64, u64) {
        (self.down.read, self.up.read)
    }

    /// Gives up the pipes that payload is stuck in: the connection has ended early.
    pub fn give_up(&self, pipes: &mut Pipes) {
        [&self.down, &self.up]
            .iter()
            .filter(|direction| direction.pipe.is_some())
            .for_each(|_| pipes.forget());
    }

    /// Bytes for the user that are in a pipe, and bytes for the server.
    pub fn stuck(&self) -> (usize, usize) {
        (self.down.stuck, self.up.stuck)
    }

    /// Moves what can be moved, at most a pipe's content at a time.
    ///
    /// # Errors
    ///
    /// A leg was reset, or has failed; the other one is to be reset.
    pub fn go(&mut self, pipes: &mut Pipes) -> io::Result<Progress> {
        let down = self.down.go(&mut self.server, &mut self.user, true, pipes)?;
        let up = self.up.go(&mut self.user, &mut self.server, !self.holds_upload, pipes)?;
        Ok(match (down, up) {
            (Progress::Done, Progress::Done) => Progress::Done,
            (Progress::Goes, _) | (_, Progress::Goes) => Progress::Goes,
            _ => Progress::Waits,
        })
    }
}

impl Direction {
    fn go(&mut self, from: &mut Leg, to: &mut Leg, reads: bool, pipes: &mut Pipes) -> io::Result<Progress> {
        if self.told {
            return Ok(Progress::Done);
        }
        let until = self.read + TURN;
        let progress = loop {
            if self.stuck > 0 {
                if !self.drain(to)? {
                    break Progress::Waits;
                }
            } else if self.ended {
                match rustix::net::shutdown(&to.socket, Shutdown::Write) {
                    // A peer that has closed both ways has no use for the end.
                    Ok(()) | Err(Errno::NOTCONN) => {}
                    Err(error) => return Err(error.into()),
                }
                self.told = true;
                break Progress::Done;
            } else if !reads || !from.readable || !to.writable {
                // What nobody takes stays in the sender's socket, whose window then closes.
                break Progress::Waits;
            } else if self.read >= until {
                break Progress::Goes;
            } else if !self.fill(from, pipes)? {
                // Connections whose readers stall may have all the pipes.
                self.copy(from, to, &mut pipes.copy)?;
            }
        };
        // Only payload that is stuck keeps a pipe.
        if self.stuck == 0
            && let Some(pipe) = self.pipe.take()
        {
            pipes.give_back(pipe);
        }
        Ok(progress)
    }

    /// Reads into the pipe, which is empty; false if there is no pipe.
    fn fill(&mut self, from: &mut Leg, pipes: &mut Pipes) -> io::Result<bool> {
        let pipe = match &mut self.pipe {
            Some(pipe) => pipe,
            none => match pipes.take()? {
                Some(pipe) => none.insert(pipe),
                None => return Ok(false),
            },
        };
        match splice(
            &from.socket,
            None,
            &pipe.into,
            None,
            pipes.size(),
            SpliceFlags::MOVE | SpliceFlags::NONBLOCK,
        ) {
            Ok(0) => self.ended = true,
            Ok(bytes) => {
                self.stuck = bytes;
                self.read += bytes as u64;
            }
            Err(Errno::AGAIN) => from.readable = false,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Moves payload without a pipe. What the receiver does not take stays in the sender's socket, so that nothing is stuck.
    fn copy(&mut self, from: &mut Leg, to: &mut Leg, buffer: &mut [u8]) -> io::Result<()> {
        let there = match recv(&from.socket, &mut *buffer, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, bytes)) => bytes,
            Err(Errno::AGAIN) => {
                from.readable = false;
                return Ok(());
            }
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if there == 0 {
            self.ended = true;
            return Ok(());
        }
        let mut taken = match send(&to.socket, &buffer[..there], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(bytes) => bytes,
            Err(Errno::AGAIN) => {
                to.writable = false;
                return Ok(());
            }
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.read += taken as u64;
        // TCP drops what it is asked for with this flag, instead of copying it once more.
        while taken > 0 {
            match recv(&from.socket, &mut buffer[..taken], RecvFlags::TRUNC | RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((_, bytes)) => taken -= bytes,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes from the pipe; false if the receiver takes no more.
    fn drain(&mut self, to: &mut Leg) -> io::Result<bool> {
        let Some(pipe) = self.pipe.as_ref().filter(|_| to.writable) else { return Ok(false) };
        match splice(&pipe.out, None, &to.socket, None, self.stuck, SpliceFlags::MOVE | SpliceFlags::NONBLOCK)
        {
            // A pipe with content has no end.
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => self.stuck -= bytes,
            Err(Errno::AGAIN) => to.writable = false,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(to.writable)
    }
}
