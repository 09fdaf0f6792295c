//! The end of a connection that sends data.

use core::fmt;

use bytes::Bytes as Content;
use noq_proto::{Dir, Side, StreamId, WriteError};
use ranpace_cc::{Allocation, CongestionControl, PepReport, RadioHint};
use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::adapter::{Control, PepView, Stats};
use crate::clock::Clock;
use crate::config::{Config, Opener};
use crate::handover::Handover;
use crate::host::{Host, HostEvent};
use crate::marks;

/// Length of the pattern, which is written at once into noq's buffer: a prime, so that a shift in the data shows.
pub(crate) const BLOCK: usize = 65_521;
/// Least number of packets written to noq together, absolute and as a share of the window: noq keeps what it gets in pieces,
/// and searches all of them for each packet.
const TOGETHER: (u64, u64) = (8, 8);
/// Multiples of that amount kept ready in noq beyond what the window allows. Ours: slow start sends two packets for each one
/// acknowledged, and the next are written when one such amount has been acknowledged.
const READY: u64 = 3;

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The ECN code point with which it is sent.
    pub ecn: Ecn,
    /// Whether it is a data packet: it elicits an acknowledgement, and the handshake is over.
    pub data: bool,
    /// If so, its number in the order of sending, counted from zero since the handshake.
    pub number: Option<u64>,
}

/// The sending end of a connection. See the crate documentation.
pub struct Sender {
    host: Host,
    control: Control,
    opener: Opener,
    stream: Option<StreamId>,
    /// Bytes that the application has written and noq has not taken yet; [`u64::MAX`] for unlimited data.
    waiting: u64,
    /// Bytes that noq has taken.
    taken: u64,
    block: Content,
    payload: u64,
    /// Set when noq may have room although nothing was acknowledged.
    asked_for: bool,
    credits: u64,
    /// Packets acknowledged or lost, and the window, when data were last written to noq.
    given_at: (u64, u64),
    stopped: bool,
    /// Probes sent so far.
    probes: u64,
    timer_fired: bool,
    /// Whether sending a data packet was the last event.
    sent: bool,
    /// Tracks which bytes are handed over, if enabled.
    handover: Option<Box<Handover>>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("control", &self.control)
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

/// The pattern of the data, by position.
pub(crate) fn pattern() -> Vec<u8> {
    (0..BLOCK as u32).map(|place| (place.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect()
}

impl Sender {
    /// A sender with this control. `seed` feeds noq's random choices: connection IDs and the packet numbers it skips.
    pub fn new(config: &Config, control: Box<dyn CongestionControl>, clock: Clock, seed: u64) -> Self {
        let control = Control::new(control, config, clock);
        let side = if config.opener == Opener::Sender { Side::Client } else { Side::Server };
        Self {
            host: Host::new(side, config, clock, seed, Some(control.factory())),
            control,
            opener: config.opener,
            stream: None,
            waiting: 0,
            taken: 0,
            block: Content::from(pattern()),
            payload: config.payload().get(),
            asked_for: false,
            credits: 0,
            given_at: (0, 0),
            stopped: false,
            probes: 0,
            timer_fired: false,
            sent: false,
            handover: None,
        }
    }

    /// Enables tracking of the bytes that are handed over. Must be called before anything is sent.
    pub fn track_handover(&mut self) {
        self.handover = Some(Box::default());
        self.control.log_acked();
    }

    /// Length of the stream's prefix that a proxy has seen pass or the receiver has acknowledged; zero unless
    /// [`Self::track_handover`].
    pub fn handed_over(&self) -> Bytes {
        Bytes::new(self.handover.as_ref().map_or(0, |handover| handover.bytes()))
    }

    /// Begins the handshake, if this end does so.
    pub fn open(&mut self, now: Time) {
        if self.opener == Opener::Sender {
            self.host.open(now);
        }
    }

    /// The application writes `bytes` more; [`Bytes::MAX`] for an unlimited amount.
    pub fn write(&mut self, bytes: Bytes) {
        if !self.stopped {
            self.waiting = self.waiting.saturating_add(bytes.get());
            self.asked_for = true;
        }
    }

    /// The application has no more data. Data that noq has taken are still sent: at most a window and a half.
    pub fn stop(&mut self) {
        (self.waiting, self.stopped) = (0, true);
    }

    /// Processes a datagram. Returns its RTT sample, if there was one.
    pub fn on_datagram(&mut self, now: Time, ecn: Ecn, content: &[u8]) -> Option<Span> {
        self.sent = false;
        if let Some(marked) = marks::counted(content) {
            self.control.on_marked(marked);
        }
        self.host.on_datagram(now, ecn, content);
        self.after(now)
    }

    fn after(&mut self, now: Time) -> Option<Span> {
        let smoothed = self.host.smoothed();
        while let Some(told) = self.host.poll() {
            match told {
                HostEvent::Connected => {
                    self.control.start(now, smoothed);
                    self.stream =
                        self.host.connection().and_then(|connection| connection.streams().open(Dir::Uni));
                    self.asked_for = true;
                }
                // Room made by acknowledgements is used later, flow-control credit from the receiver at once.
                HostEvent::Writable => {
                    let credits = self.host.credits();
                    self.asked_for |= credits > self.credits;
                    self.credits = credits;
                }
                HostEvent::Readable => {}
            }
        }
        if let Some(handover) = &mut self.handover {
            self.control.each_acked(|number| handover.on_there(number));
        }
        self.control.settle(now, smoothed)
    }

    /// Writes data to noq, no more than is about to be sent.
    fn fill(&mut self) {
        let Some((stream, connection)) = self.stream.zip(self.host.connection()) else { return };
        if self.waiting == 0 {
            return;
        }
        let stats = self.control.stats();
        let (settled, window) = (stats.acked + stats.lost, self.control.window_bytes().get());
        let together = (window / self.payload / TOGETHER.1).max(TOGETHER.0);
        let grown = window.saturating_sub(self.given_at.1) >= together * self.payload;
        let few = self.control.in_flight().get() < self.payload;
        if !self.asked_for && !grown && !few && settled - self.given_at.0 < together {
            return;
        }
        (self.asked_for, self.given_at) = (false, (settled, window));
        let room = self.control.in_flight().get().max(window);
        connection.set_send_window(room + READY * together * self.payload);
        while self.waiting > 0 {
            let from = (self.taken % BLOCK as u64) as usize;
            let length = (BLOCK - from).min(usize::try_from(self.waiting).unwrap_or(usize::MAX));
            let chunk = self.block.slice(from..from + length);
            match connection.send_stream(stream).write_chunks(&mut &mut [chunk][..]) {
                Ok(0) | Err(WriteError::Blocked | WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    return;
                }
                Ok(written) => {
                    self.taken += written as u64;
                    if self.waiting != u64::MAX {
                        self.waiting -= written as u64;
                    }
                }
            }
        }
    }

    /// Writes the next datagram to the buffer, which must be empty; `None` if there is nothing to send now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Departure> {
        // noq would report a full window: the previous packet took along everything that needs no room in it, and only a
        // timeout sends beyond it.
        if core::mem::take(&mut self.sent) && !self.timer_fired && self.control.is_full() {
            return None;
        }
        self.fill();
        let before = self.control.stats().sent;
        let ecn = self.host.poll_transmit(now, out);
        let after = self.control.stats().sent;
        let data = after > before;
        self.sent = data;
        if let Some(handover) = self.handover.as_mut().filter(|_| data) {
            handover.on_sent(after - 1, out);
        }
        if self.timer_fired {
            // Packets that the pacer holds back are sent when its own timer fires.
            self.probes = self.host.probes();
            self.timer_fired = ecn.is_some();
        }
        let ecn = match ecn? {
            Ecn::NotEct => {
                if data {
                    self.control.on_ecn_failed(now);
                }
                Ecn::NotEct
            }
            _ => self.control.codepoint(),
        };
        Some(Departure { ecn, data, number: data.then(|| after - 1) })
    }

    /// When to call [`Self::on_deadline`].
    pub fn next_deadline(&self) -> Time {
        self.host.next_deadline().min(self.control.next_deadline().unwrap_or(Time::MAX))
    }

    /// Processes due deadlines.
    pub fn on_deadline(&mut self, now: Time) {
        self.control.on_deadline(now);
        if self.host.on_deadline(now) {
            self.timer_fired = true;
            self.after(now);
        }
    }

    /// Radio information for the control.
    pub fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        self.control.on_radio(now, hint);
    }

    /// A proxy's report for the control.
    pub fn on_pep(&mut self, now: Time, report: &PepReport) {
        self.control.on_pep(now, report);
    }

    /// A proxy's view of which packets have passed it.
    pub fn on_pep_view(&mut self, now: Time, view: &PepView<'_>) {
        if let Some(handover) = &mut self.handover {
            view.seen.iter().for_each(|number| handover.on_there(*number));
        }
        self.control.on_pep_view(now, view);
    }

    /// A proxy's share of the radio bandwidth for this connection, or none.
    pub fn on_allocation(&mut self, now: Time, allocation: Option<Allocation>) {
        self.control.on_allocation(now, allocation);
    }

    /// Why the connection is lost, if it is: nothing more will be sent.
    pub fn lost(&self) -> Option<&str> {
        self.host.lost()
    }

    /// The control, with the connection state kept for it.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        self.control.stats()
    }

    /// Probe timeouts, as far as visible: each sends two probes if something is in flight (RFC 9002, 6.2.4).
    pub fn timeouts(&self) -> u64 {
        self.probes.div_ceil(2)
    }

    /// Size of a full packet, header and tag included: the unit of the window.
    pub fn payload(&self) -> Bytes {
        Bytes::new(self.payload)
    }

    /// Bytes of the stream that noq has taken.
    pub fn taken(&self) -> Bytes {
        Bytes::new(self.taken)
    }
}
