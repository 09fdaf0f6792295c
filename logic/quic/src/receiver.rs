//! The end of a connection that receives data.

use core::fmt;

use noq_proto::{Dir, Side, StreamId};
use ranpace_units::{Bytes, Ecn, Time};

use crate::clock::Clock;
use crate::config::{Config, Opener};
use crate::host::{Host, HostEvent};
use crate::sender::{BLOCK, pattern};

/// Most bytes that noq leaves unused in a datagram while it has more to send: less than its largest frame here (an ACK of
/// many ranges, which it truncates to fit).
const MOST_ROOM: usize = 300;

/// The receiving end of a connection: reads everything at once, like an application that never falls behind.
pub struct Receiver {
    host: Host,
    opener: Opener,
    stream: Option<StreamId>,
    delivered: u64,
    payload: usize,
    /// Nothing was left to send when the last datagram was written, and nothing has happened since.
    quiet: bool,
    timer_fired: bool,
    /// The expected data, if they are checked.
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

    /// Compares all received data with the data sent.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.expected = Some(pattern());
        self
    }

    /// Begins the handshake, if this end does so.
    pub fn open(&mut self, now: Time) {
        if self.opener == Opener::Receiver {
            self.host.open(now);
        }
    }

    /// Processes a datagram.
    pub fn on_datagram(&mut self, now: Time, ecn: Ecn, content: &[u8]) {
        (self.quiet, self.timer_fired) = (false, false);
        self.host.on_datagram(now, ecn, content);
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
        // Any credit to announce appears in the next datagram requested.
        let _ = chunks.finalize();
    }

    /// Writes the next datagram to the buffer, which must be empty. Returns its ECN code point; `None` if there is
    /// nothing to send now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Ecn> {
        if self.quiet {
            return None;
        }
        let sent = self.host.poll_transmit(now, out);
        // A datagram that is not full contains everything there was to send; but the handshake sends several packets in one,
        // and probes come in pairs.
        self.quiet = self.stream.is_some() && !self.timer_fired && out.len() + MOST_ROOM < self.payload;
        sent
    }

    /// When to call [`Self::on_deadline`].
    pub fn next_deadline(&self) -> Time {
        self.host.next_deadline()
    }

    /// Processes due deadlines.
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

    /// Number of received bytes that differ from those sent; always zero unless [`Self::checked`].
    pub fn damaged(&self) -> u64 {
        self.damaged
    }
}
