//! The receiver's decisions: which sender it accepts, what it answers, and the arrival times that it records.

use std::fmt;
use std::net::SocketAddr;

use ranpace_units::{Span, Time};

use crate::message::{Kind, LENGTH, Message};

/// Bytes of one opportunity: a packet of 1500 B with its IP header.
const OPPORTUNITY: u64 = 1500;
/// A sender silent for this long is gone. Ours: links of cars stall for more than a minute.
const SILENCE: Span = Span::from_secs(90);

/// The recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Milliseconds since the first packet with the number of opportunities in each, increasing.
    pub arrivals: Vec<(u64, u32)>,
    /// When the link began to have a standing queue without interruption, in milliseconds since the first packet; `None` if it
    /// never did: then the sender, not the link, was the bottleneck.
    pub saturated_from: Option<u64>,
    /// Packets that arrived.
    pub packets: u64,
    /// Packets that were sent and did not arrive, as far as known.
    pub lost: u64,
}

/// Computes the token of an address.
type MakeToken = Box<dyn Fn(SocketAddr) -> u64>;

/// The receiver. It accepts messages and returns the answers.
pub struct Receiver {
    token: MakeToken,
    length: Span,
    session: Option<Session>,
    recording: Recording,
    /// Bytes that are not yet a whole opportunity.
    rest: u64,
}

struct Session {
    from: SocketAddr,
    token: u64,
    began: Time,
    heard: Time,
    highest: u64,
    is_over: bool,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({} packets)", self.recording.packets)
    }
}

impl Receiver {
    /// Records for `length` from the first packet on. `token` maps an address to a number, always the same, that only a recipient
    /// of packets at that address can know.
    pub fn new(length: Span, token: impl Fn(SocketAddr) -> u64 + 'static) -> Self {
        Self { token: Box::new(token), length, session: None, recording: Recording::default(), rest: 0 }
    }

    /// A message arrived at `now`. Writes the answer to the same address, which is never longer than the message; `false` if there
    /// is none.
    pub fn on_message(&mut self, now: Time, from: SocketAddr, bytes: &[u8], answer: &mut Vec<u8>) -> bool {
        let Some(message) = Message::read(bytes) else { return false };
        let is_known = |session: &Session| session.from == from && session.token == message.token;
        match message.kind {
            // Another sender is served only if there is none.
            Kind::Hello if self.session.as_ref().is_none_or(|session| session.from == from) => {
                let token = (self.token)(from);
                let welcome =
                    Message { kind: Kind::Welcome, token, sequence: message.token, stamp: message.stamp };
                welcome.write(LENGTH, answer);
                true
            }
            Kind::Data | Kind::Saturating => {
                if self.session.is_none() && (self.token)(from) == message.token {
                    self.session = Some(Session {
                        from,
                        token: message.token,
                        began: now,
                        heard: now,
                        highest: 0,
                        is_over: false,
                    });
                }
                let length = self.length;
                let Some(session) = self.session.as_mut().filter(|session| is_known(session)) else {
                    return false;
                };
                if session.is_over || now.since(session.began) >= length {
                    session.is_over = true;
                    Message { kind: Kind::Bye, ..message }.write(LENGTH, answer);
                    return true;
                }
                session.heard = now;
                session.highest = session.highest.max(message.sequence.saturating_add(1));
                let ms = now.since(session.began).as_millis();
                let (highest, is_saturating) = (session.highest, message.kind == Kind::Saturating);
                self.note(ms, highest, is_saturating, from, bytes.len());
                Message { kind: Kind::Seen, ..message }.write(LENGTH, answer);
                true
            }
            Kind::Bye => {
                if let Some(session) = self.session.as_mut().filter(|session| is_known(session)) {
                    session.is_over = true;
                }
                false
            }
            _ => false,
        }
    }

    fn note(&mut self, ms: u64, highest: u64, is_saturating: bool, from: SocketAddr, payload: usize) {
        let header = if from.is_ipv4() { 28 } else { 48 };
        let recording = &mut self.recording;
        recording.packets += 1;
        recording.lost = highest.saturating_sub(recording.packets);
        if is_saturating {
            recording.saturated_from.get_or_insert(ms);
        }
        self.rest += payload as u64 + header;
        let count = (self.rest / OPPORTUNITY) as u32;
        self.rest %= OPPORTUNITY;
        match recording.arrivals.last_mut() {
            Some(last) if last.0 == ms => last.1 += count,
            _ if count == 0 => {}
            _ => recording.arrivals.push((ms, count)),
        }
    }

    /// Returns whether nothing more will come: its time is over, or the sender has finished or gone.
    pub fn is_done(&self, now: Time) -> bool {
        self.session.as_ref().is_some_and(|session| {
            session.is_over || now.since(session.began) >= self.length || now.since(session.heard) >= SILENCE
        })
    }

    /// Returns the time since recording began; `None` before the first packet.
    pub fn elapsed(&self, now: Time) -> Option<Span> {
        self.session.as_ref().map(|session| now.since(session.began).min(self.length))
    }

    /// The recording so far.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The finished recording.
    pub fn finish(self) -> Recording {
        self.recording
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4000);
    const THERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4001);

    fn receiver() -> Receiver {
        Receiver::new(Span::from_secs(10), |from| u64::from(from.port()) * 1000)
    }

    fn bytes(kind: Kind, token: u64, sequence: u64, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        Message { kind, token, sequence, stamp: 9 }.write(length, &mut bytes);
        bytes
    }

    /// Returns the answer.
    fn tell(receiver: &mut Receiver, ms: u64, from: SocketAddr, bytes: &[u8]) -> Option<Message> {
        let mut answer = Vec::new();
        let is_answered = receiver.on_message(Time::from_millis(ms), from, bytes, &mut answer);
        assert!(answer.len() <= bytes.len(), "no more than came in");
        is_answered.then(|| Message::read(&answer).unwrap())
    }

    #[test]
    fn packets_become_opportunities_by_their_bytes() {
        let mut receiver = receiver();
        let welcome = tell(&mut receiver, 0, HERE, &bytes(Kind::Hello, 42, 0, 0)).unwrap();
        assert_eq!((welcome.kind, welcome.token, welcome.sequence), (Kind::Welcome, 4_000_000, 42));
        for (ms, sequence, kind, length) in [
            (100, 0, Kind::Data, 1472),
            (100, 1, Kind::Data, 1472),
            (150, 3, Kind::Saturating, 722),
            (160, 2, Kind::Saturating, 722), // the previous one is as long
        ] {
            let seen = tell(&mut receiver, ms, HERE, &bytes(kind, 4_000_000, sequence, length)).unwrap();
            assert_eq!((seen.kind, seen.sequence, seen.stamp), (Kind::Seen, sequence, 9));
        }
        assert_eq!(receiver.elapsed(Time::from_millis(170)), Some(Span::from_millis(70)));
        let expected =
            Recording { arrivals: vec![(0, 2), (60, 1)], saturated_from: Some(50), packets: 4, lost: 0 };
        assert_eq!(receiver.finish(), expected);
    }

    #[test]
    fn nobody_without_the_token_is_recorded_or_answered() {
        let mut receiver = receiver();
        for (case, from, packet) in [
            ("no token", HERE, bytes(Kind::Data, 0, 0, 1472)),
            ("that of another address", THERE, bytes(Kind::Data, 4_000_000, 0, 1472)),
            ("no message", HERE, vec![0; 1472]),
            ("a receiver", HERE, bytes(Kind::Welcome, 4_000_000, 0, 1472)),
            ("a receiver too", HERE, bytes(Kind::Seen, 4_000_000, 0, 1472)),
        ] {
            assert_eq!(tell(&mut receiver, 0, from, &packet), None, "{case}");
        }
        assert_eq!(receiver.elapsed(Time::ZERO), None);
        tell(&mut receiver, 5, HERE, &bytes(Kind::Data, 4_000_000, 0, 1472)).unwrap();
        // Now there is a sender, and others are ignored.
        assert_eq!(tell(&mut receiver, 6, THERE, &bytes(Kind::Hello, 1, 0, 0)), None);
        assert_eq!(tell(&mut receiver, 6, THERE, &bytes(Kind::Data, 4_001_000, 0, 1472)), None);
        assert_eq!(receiver.recording().packets, 1);
    }

    #[test]
    fn it_ends_with_its_time_the_sender_or_a_long_silence() {
        let data = bytes(Kind::Data, 4_000_000, 0, 1472);
        let ends = |ms: u64, packet: &[u8], asked: u64| {
            let mut receiver = receiver();
            tell(&mut receiver, 0, HERE, &data);
            let answer = tell(&mut receiver, ms, HERE, packet).map(|message| message.kind);
            (answer, receiver.is_done(Time::from_millis(asked)))
        };
        assert_eq!(ends(1, &data, 9_999), (Some(Kind::Seen), false));
        assert_eq!(ends(1, &data, 10_000), (Some(Kind::Seen), true));
        assert_eq!(ends(10_000, &data, 10_000), (Some(Kind::Bye), true));
        assert_eq!(ends(1, &bytes(Kind::Bye, 4_000_000, 1, 0), 1), (None, true));
        assert_eq!(ends(1, &bytes(Kind::Bye, 1, 1, 0), 1), (None, false));
        assert!(!receiver().is_done(Time::from_secs(1_000)));
    }
}
