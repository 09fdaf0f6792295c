//! The end to which data are sent.

use core::fmt;

use noq_proto::{Dir, Side, StreamId};
use ranpace_units::{Bytes, Time};

use crate::clock::Clock;
use crate::config::{Config, Opener};
use crate::host::{Host, HostEvent};
use crate::sender::{BLOCK, pattern};

/// What noq leaves empty in a datagram though it has more to say, at most: less than its largest frame here (an ACK of many
/// ranges, which it cuts to what fits).
const MOST_ROOM: usize = 300;

/// The receiving end of a connection: reads everything at once, as an application that is never behind.
pub struct Receiver {
    host: Host,
    opener: Opener,
    stream: Option<StreamId>,
    delivered: u64,
    payload: usize,
    /// Nothing was left to say when the last datagram was written, and nothing has happened since.
    quiet: bool,
    timer_fired: bool,
    /// What the data should be, where somebody wants to know whether they are.
    expected: Option<Vec<u8>>,
    damaged: u64,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("delivered", &self.delivered).finish_non_exhaustive()
    }
}

impl Receiver {
    /// A receiver; `seed` feeds noq's random choices.
    pub fn new(config: &Config, clock: Clock, seed: u64) -> Self {
        let side = if config.opener == Opener::Sender { Side::Server } else { Side::Client };
        Self {
            host: Host::new(side, config, clock, seed, None),
            opener: config.opener,
            stream: None,
            delivered: 0,
            payload: config.payload().get() as usize,
            quiet: false,
            timer_fired: false,
            expected: None,
            damaged: 0,
        }
    }

    /// Compares all that arrives with what was sent.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.expected = Some(pattern());
        self
    }

    /// Begins the handshake, if it is this end's to begin.
    pub fn open(&mut self, now: Time) {
        if self.opener == Opener::Receiver {
            self.host.open(now);
        }
    }

    /// A datagram arrived.
    pub fn on_datagram(&mut self, now: Time, ce: bool, content: &[u8]) {
        (self.quiet, self.timer_fired) = (false, false);
        self.host.on_datagram(now, ce, content);
        self.after();
    }

    fn after(&mut self) {
        let mut readable = false;
        while let Some(told) = self.host.poll() {
            readable |= matches!(told, HostEvent::Readable);
        }
        if readable {
            self.read();
        }
    }

    fn read(&mut self) {
        let Some(connection) = self.host.connection() else { return };
        if self.stream.is_none() {
            self.stream = connection.streams().accept(Dir::Uni);
        }
        let Some(stream) = self.stream else { return };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            if let Some(expected) = &self.expected {
                let from = (self.delivered % BLOCK as u64) as usize;
                let places = expected.iter().cycle().skip(from);
                self.damaged +=
                    chunk.bytes.iter().zip(places).filter(|(is, should)| is != should).count() as u64;
            }
            self.delivered += chunk.bytes.len() as u64;
        }
        // Whether there is credit to announce shows when it is next asked for a datagram.
        let _ = chunks.finalize();
    }

    /// Writes the next datagram to the buffer, which must be empty. Returns whether it is ECN-capable; `None` if nothing is
    /// to be sent now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<bool> {
        if self.quiet {
            return None;
        }
        let sent = self.host.poll_transmit(now, out);
        // Whatever was to be said fitted into a datagram that is not full; but the handshake has several packets in one, and
        // probes come in pairs.
        self.quiet = self.stream.is_some() && !self.timer_fired && out.len() + MOST_ROOM < self.payload;
        sent
    }

    /// When [`Self::on_deadline`] is to be called.
    pub fn next_deadline(&self) -> Time {
        self.host.next_deadline()
    }

    /// A deadline has come.
    pub fn on_deadline(&mut self, now: Time) {
        if self.host.on_deadline(now) {
            (self.quiet, self.timer_fired) = (false, true);
            self.after();
        }
    }

    /// Why the connection is lost, if it is: nothing more will arrive.
    pub fn lost(&self) -> Option<&str> {
        self.host.lost()
    }

    /// Payload handed to the application, in order.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.delivered)
    }

    /// Bytes that were not as they had been sent; always zero unless [`Self::checked`].
    pub fn damaged(&self) -> u64 {
        self.damaged
    }
}
