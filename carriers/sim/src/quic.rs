//! A flow over QUIC: its two endpoints, and their datagrams as packets of the network.
//!
//! The content of a datagram is stored beside its packet, in a buffer of the packet's slot. Links and cells see only the packet,
//! which has the datagram's size.

use std::time::Instant;

use ranpace_cc::{Algorithm, Pacing, PathMemory, RadioHint};
use ranpace_network::PEP_TAG_KEY;
use ranpace_pep::lightweight::digest::tag;
use ranpace_pep::lightweight::{Verified, Watched, WatchedFlow};
use ranpace_quic::{Clock, Config, PepView, Receiver, Sender};
use ranpace_tcp::{Kind, Segment};
use ranpace_units::{Bytes, Span, Time};

use ranpace_network::Direction;
use ranpace_network::FlowCounts;
use ranpace_network::random::mix;

use crate::pep_outcome::PepOutcome;

/// Headers of IPv4 and UDP around a datagram.
const HEADERS: u32 = 20 + 8;

/// Both endpoints of a flow over QUIC.
#[derive(Debug)]
pub(crate) struct QuicEnds {
    sender: Sender,
    receiver: Receiver,
    /// Number of datagrams sent forward.
    number: u64,
    /// RTT sample of the last datagram that reached the sender.
    rtt: Option<Span>,
    /// The sent packets, if a Lightweight PEP reports on them.
    watched: Option<Box<WatchedFlow>>,
}

/// Inputs of a row of the series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuicRow {
    /// Window and threshold, in bytes.
    pub window: [f64; 2],
    pub pacing: Pacing,
    pub in_flight: Bytes,
    pub smoothed: Span,
    pub latest: Option<Span>,
}

impl QuicEnds {
    /// Begins a connection.
    pub fn new(algorithm: &Algorithm, config: &Config, seed: u64, now: Time) -> Self {
        // The origin of noq's clock does not matter: noq only uses differences.
        let clock = Clock::new(Instant::now());
        let mut sender = Sender::new(config, algorithm.build(seed), clock, mix(seed, 1));
        let mut receiver = Receiver::new(config, clock, mix(seed, 2));
        sender.open(now);
        receiver.open(now);
        Self { sender, receiver, number: 0, rtt: None, watched: None }
    }

    /// Records tags of sent packets from now on, as a PEP will compute them.
    pub fn remember_tags(&mut self) {
        self.watched = Some(Box::default());
        self.sender.track_handover();
    }

    /// Payload from the first byte on that a PEP has seen or the receiver acknowledged, if tags are recorded.
    pub fn handed_over(&self) -> Bytes {
        self.sender.handed_over()
    }

    /// PEP number `pep` reports on the packets that passed it.
    pub fn on_pep_report(&mut self, now: Time, pep: usize, verified: &Verified) -> PepOutcome {
        let Some(watched) = &mut self.watched else { return PepOutcome::Ignored };
        let located = match watched.on_report(now, pep, verified) {
            Watched::Located(located) => located,
            Watched::Ignored => return PepOutcome::Ignored,
            Watched::Uninterpretable { impossible, ask } => return PepOutcome::Rejected { impossible, ask },
        };
        let report = &verified.report;
        let view = PepView {
            seen: &located.seen,
            missing: &located.missing,
            newest_sent_at: located.newest_sent_at,
            hold: report.hold,
            marked: report.marked.map(u64::from),
            new_epoch: located.new_epoch,
        };
        self.sender.on_pep_view(now, &view);
        PepOutcome::Used
    }

    pub fn write(&mut self, bytes: Bytes) {
        self.sender.write(bytes);
    }

    pub fn stop(&mut self) {
        self.sender.stop();
    }

    /// A datagram has arrived.
    pub fn arrive(&mut self, direction: Direction, now: Time, segment: &Segment, content: &[u8]) {
        match direction {
            Direction::Forward => self.receiver.on_datagram(now, segment.ecn, content),
            Direction::Back => self.rtt = self.sender.on_datagram(now, segment.ecn, content),
        }
    }

    /// Why the connection is lost, in the words of the endpoint that gave it up; `None` while it is not.
    pub fn lost(&self) -> Option<String> {
        // The endpoint that gives up knows first; it is asked before the other one has been notified.
        let ends = [("the receiver", self.receiver.lost()), ("the sender", self.sender.lost())];
        ends.into_iter().find_map(|(end, reason)| Some(format!("{end} gave it up: {}", reason?)))
    }

    /// The RTT sample that the last datagram gave.
    pub fn take_rtt(&mut self) -> Option<Span> {
        self.rtt.take()
    }

    /// Writes the next datagram of an endpoint; false if there is none.
    pub fn transmit(
        &mut self,
        direction: Direction,
        now: Time,
        out: &mut Segment,
        content: &mut Vec<u8>,
    ) -> bool {
        content.clear();
        let (kind, ecn, data) = match direction {
            Direction::Forward => match self.sender.poll_transmit(now, content) {
                Some(departure) => {
                    if let Some(watched) = &mut self.watched {
                        let tag = tag(&PEP_TAG_KEY, content, content.len() as u32);
                        watched.on_sent(now, departure.number, tag);
                    }
                    (Kind::Datagram, departure.ecn, departure.data)
                }
                None => return false,
            },
            Direction::Back => match self.receiver.poll_transmit(now, content) {
                Some(ecn) => (Kind::Feedback, ecn, false),
                None => return false,
            },
        };
        *out = Segment::new(kind, now);
        let length = content.len() as u32;
        (out.wire, out.ecn) = (length + HEADERS, ecn);
        if data {
            out.length = length;
            out.number = self.number;
            self.number += 1;
        }
        true
    }

    pub fn sender_deadline(&self) -> Time {
        self.sender.next_deadline()
    }

    pub fn receiver_deadline(&self) -> Time {
        self.receiver.next_deadline()
    }

    pub fn on_sender_deadline(&mut self, now: Time) {
        self.sender.on_deadline(now);
    }

    pub fn on_receiver_deadline(&mut self, now: Time) {
        self.receiver.on_deadline(now);
    }

    pub fn wants_radio(&self) -> bool {
        self.sender.control().wants_radio()
    }

    pub fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        self.sender.on_radio(now, hint);
    }

    pub fn set_target(&mut self, target: Span) -> bool {
        self.sender.control().set_target(target)
    }

    /// Passes in what the host's other connections know about the path.
    pub fn recall(&mut self, memory: PathMemory) {
        self.sender.control().recall(memory);
    }

    /// Returns what this connection has learned about the path, for others.
    pub fn memory(&self) -> Option<PathMemory> {
        self.sender.control().memory()
    }

    /// Payload delivered in order to the receiving application.
    pub fn delivered(&self) -> Bytes {
        self.receiver.delivered()
    }

    /// Adds this connection's counters.
    pub fn add_to(&self, account: &mut FlowCounts) {
        let stats = self.sender.stats();
        account.delivered += self.receiver.delivered().get();
        account.sent += stats.sent;
        account.retransmitted += stats.lost;
        account.timeouts += self.sender.timeouts();
        account.undone += stats.undone;
        account.recoveries += stats.recoveries;
        // Lost data are retransmitted.
        account.sent_bytes += (stats.sent_bytes - stats.lost_bytes).get();
        account.acked_bytes += stats.acked_bytes.get();
    }

    pub fn row(&self) -> QuicRow {
        let (control, payload) = (self.sender.control(), self.sender.payload().as_f64());
        let window = control.window();
        QuicRow {
            window: [window.cwnd * payload, window.ssthresh * payload],
            pacing: window.pacing,
            in_flight: control.in_flight(),
            smoothed: control.smoothed(),
            latest: control.latest(),
        }
    }

    /// Shows the control's internal figures.
    pub fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.sender.control().inspect(show);
    }
}
