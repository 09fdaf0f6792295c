//! The sender's decisions: it sends greetings until a receiver answers, then keeps the window full, and stops when answers cease.

use ranpace_units::{Span, Time};

use crate::message::{Kind, LENGTH, Message};
use crate::window::Window;

/// Interval between two greetings.
const GREETING: Span = Span::from_millis(500);
/// Greetings without an answer after which the sender gives up.
const GREETINGS: u32 = 20;
/// After this long without feedback only probes are sent. Ours: slightly more than the longest targeted round trip.
const QUIET: Span = Span::from_millis(3_500);
/// Interval between two probes while the link is silent: 240 kbit/s.
const PROBE: Span = Span::from_millis(50);
/// After this long without feedback sending stops.
const SILENCE: Span = Span::from_secs(30);
/// Copies of the final message; messages get lost.
const BYES: u32 = 3;

/// Why a sender stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over, or it was asked to stop.
    Done,
    /// Nobody answered the greetings.
    Nobody,
    /// The receiver fell silent for half a minute.
    Silence,
    /// The receiver said that it has enough.
    Dismissed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting { next: Time, left: u32 },
    Sending { token: u64, until: Time, heard: Time, next_probe: Time },
    Leaving { token: u64, left: u32 },
    Ended(Ended),
}

/// The sender. The caller sends what [`Self::poll`] returns until it returns nothing, and calls again at [`Self::next_deadline`] or
/// when a message has arrived.
#[derive(Clone, Debug)]
pub struct Sender {
    state: State,
    /// The sender's number, known only to those who receive its messages.
    number: u64,
    length: Span,
    packet: usize,
    window: Window,
    /// Number of the next packet, and one more than the highest seen by the receiver.
    next: u64,
    seen: u64,
    last_rtt: Span,
    told_to_leave: Ended,
}

impl Sender {
    /// Sends packets of `packet` bytes (UDP payload) for `length` with at most `most` in flight. `number` must not be guessable.
    pub fn new(now: Time, number: u64, length: Span, packet: usize, most: u64) -> Self {
        Self {
            state: State::Greeting { next: now, left: GREETINGS },
            number,
            length,
            packet,
            window: Window::new(most),
            next: 0,
            seen: 0,
            last_rtt: Span::ZERO,
            told_to_leave: Ended::Done,
        }
    }

    /// A message came from the receiver's address.
    pub fn on_message(&mut self, now: Time, bytes: &[u8]) {
        let Some(message) = Message::read(bytes) else { return };
        match (&mut self.state, message.kind) {
            (State::Greeting { .. }, Kind::Welcome) if message.sequence == self.number => {
                let until = now + self.length;
                self.state = State::Sending { token: message.token, until, heard: now, next_probe: now };
            }
            // Packets that were not sent cannot have been seen.
            (State::Sending { token, heard, .. }, Kind::Seen)
                if message.token == *token && message.sequence < self.next =>
            {
                *heard = now;
                self.seen = self.seen.max(message.sequence + 1);
                // The stamp is the sender's own clock, echoed; a wrong one gives a round trip of zero or a long one.
                self.last_rtt = now.since(Time::from_nanos(message.stamp));
                self.window.on_round_trip(now, self.last_rtt);
            }
            (State::Sending { token, .. }, Kind::Bye) if message.token == *token => {
                self.state = State::Ended(Ended::Dismissed);
            }
            _ => {}
        }
    }

    /// Writes the next message to be sent now; `false` if there is none.
    pub fn poll(&mut self, now: Time, to: &mut Vec<u8>) -> bool {
        let number = self.number;
        match &mut self.state {
            State::Greeting { next, .. } if now < *next => false,
            State::Greeting { left: 0, .. } => {
                self.state = State::Ended(Ended::Nobody);
                false
            }
            State::Greeting { next, left } => {
                (*next, *left) = (now + GREETING, *left - 1);
                // As long as the answer, so that nobody can be sent more than was sent in their name.
                let hello = Message { kind: Kind::Hello, token: number, sequence: 0, stamp: now.as_nanos() };
                hello.write(LENGTH, to);
                true
            }
            State::Sending { token, until, heard, next_probe } => {
                let silent = now.since(*heard);
                if now >= *until || silent >= SILENCE {
                    self.told_to_leave = if now >= *until { Ended::Done } else { Ended::Silence };
                    self.state = State::Leaving { token: *token, left: BYES };
                    return self.poll(now, to);
                }
                let is_due = if silent >= QUIET {
                    now >= *next_probe
                } else {
                    self.next - self.seen < self.window.packets()
                };
                if !is_due {
                    return false;
                }
                *next_probe = now + PROBE;
                let kind = if self.last_rtt >= Window::LOWER { Kind::Saturating } else { Kind::Data };
                let message = Message { kind, token: *token, sequence: self.next, stamp: now.as_nanos() };
                self.next += 1;
                message.write(self.packet, to);
                true
            }
            State::Leaving { left: 0, .. } => {
                self.state = State::Ended(self.told_to_leave);
                false
            }
            State::Leaving { token, left } => {
                *left -= 1;
                let bye =
                    Message { kind: Kind::Bye, token: *token, sequence: self.next, stamp: now.as_nanos() };
                bye.write(LENGTH, to);
                true
            }
            State::Ended(_) => false,
        }
    }

    /// When [`Self::poll`] may have something although no message has arrived.
    pub fn next_deadline(&self) -> Time {
        match self.state {
            State::Greeting { next, .. } => next,
            State::Sending { until, heard, next_probe, .. } => until.min(next_probe.max(heard + QUIET)),
            State::Leaving { .. } => Time::ZERO,
            State::Ended(_) => Time::MAX,
        }
    }

    /// Stops it early.
    pub fn stop(&mut self) {
        match self.state {
            State::Sending { token, .. } => self.state = State::Leaving { token, left: BYES },
            State::Greeting { .. } => self.state = State::Ended(Ended::Done),
            State::Leaving { .. } | State::Ended(_) => {}
        }
    }

    /// Why it stopped, if it did.
    pub fn ended(&self) -> Option<Ended> {
        match self.state {
            State::Ended(why) => Some(why),
            _ => None,
        }
    }

    /// Returns whether a receiver has answered.
    pub fn is_welcome(&self) -> bool {
        matches!(self.state, State::Sending { .. })
    }

    /// Packets sent so far, and the last measured round trip.
    pub fn progress(&self) -> (u64, Span) {
        (self.next, self.last_rtt)
    }

    /// The window.
    pub fn window(&self) -> &Window {
        &self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NUMBER: u64 = 77;

    fn sender() -> Sender {
        Sender::new(Time::ZERO, NUMBER, Span::from_secs(100), 1472, 1000)
    }

    fn told(kind: Kind, token: u64, sequence: u64, stamp: Time) -> Vec<u8> {
        let mut bytes = Vec::new();
        Message { kind, token, sequence, stamp: stamp.as_nanos() }.write(0, &mut bytes);
        bytes
    }

    fn drain(sender: &mut Sender, now: Time) -> Vec<(Message, usize)> {
        let mut bytes = Vec::new();
        core::iter::from_fn(|| {
            sender.poll(now, &mut bytes).then(|| (Message::read(&bytes).unwrap(), bytes.len()))
        })
        .collect()
    }

    #[test]
    fn nothing_but_a_few_small_greetings_goes_to_a_stranger() {
        let mut sender = sender();
        let mut sent = Vec::new();
        for ms in 0..100_000 {
            let now = Time::from_millis(ms);
            sent.extend(drain(&mut sender, now));
            // Answers from someone who did not get the greeting.
            sender.on_message(now, &told(Kind::Welcome, 5, NUMBER + 1, now));
            sender.on_message(now, &told(Kind::Seen, 5, 0, now));
            sender.on_message(now, &told(Kind::Bye, 5, 0, now));
            sender.on_message(now, b"hello?");
        }
        assert!(sent.iter().all(|(message, length)| message.kind == Kind::Hello && *length == LENGTH));
        assert_eq!((sent.len(), sender.ended()), (GREETINGS as usize, Some(Ended::Nobody)));
    }

    #[test]
    fn the_window_is_kept_full_and_lost_packets_leave_it() {
        let mut sender = sender();
        drain(&mut sender, Time::ZERO);
        sender.on_message(Time::ZERO, &told(Kind::Welcome, 5, NUMBER, Time::ZERO));
        assert!(sender.is_welcome());
        let first = drain(&mut sender, Time::ZERO);
        assert_eq!(first.len() as u64, Window::LEAST);
        assert!(first.iter().all(|(message, length)| message.kind == Kind::Data && *length == 1472));
        // Only the last one arrives: all others are no longer in flight, and the window grows by one.
        let now = Time::from_millis(10);
        sender.on_message(now, &told(Kind::Seen, 5, Window::LEAST - 1, Time::ZERO));
        assert_eq!(drain(&mut sender, now).len() as u64, Window::LEAST + 1);
        // Feedback about packets never sent, or with another token, is ignored.
        sender.on_message(now, &told(Kind::Seen, 5, 1_000_000, Time::ZERO));
        sender.on_message(now, &told(Kind::Seen, 6, Window::LEAST, Time::ZERO));
        assert_eq!(drain(&mut sender, now).len(), 0);
        // Above the lower bound the packets are marked as saturating.
        let late = Time::from_millis(900);
        sender.on_message(late, &told(Kind::Seen, 5, Window::LEAST, Time::ZERO));
        assert!(drain(&mut sender, late).iter().all(|(message, _)| message.kind == Kind::Saturating));
    }

    #[test]
    fn a_silent_receiver_gets_probes_and_then_nothing() {
        let mut sender = sender();
        drain(&mut sender, Time::ZERO);
        sender.on_message(Time::ZERO, &told(Kind::Welcome, 5, NUMBER, Time::ZERO));
        let mut sent = Vec::new();
        for ms in 0..60_000 {
            sent.extend(drain(&mut sender, Time::from_millis(ms)));
        }
        let data = sent.iter().filter(|(message, _)| message.kind == Kind::Data).count() as u64;
        let probes = (SILENCE - QUIET).as_millis() / PROBE.as_millis();
        assert!(data <= Window::LEAST + probes + 1, "{data}");
        assert_eq!(sent.iter().filter(|(message, _)| message.kind == Kind::Bye).count(), BYES as usize);
        assert_eq!(sender.ended(), Some(Ended::Silence));
    }

    #[test]
    fn it_ends_in_time_or_when_told() {
        for (case, at, bye, stop, expected) in [
            ("its time", 100_000, false, false, Ended::Done),
            ("the receiver has enough", 10, true, false, Ended::Dismissed),
            ("Ctrl-C", 10, false, true, Ended::Done),
        ] {
            let mut sender = sender();
            drain(&mut sender, Time::ZERO);
            sender.on_message(Time::ZERO, &told(Kind::Welcome, 5, NUMBER, Time::ZERO));
            let now = Time::from_millis(at);
            if bye {
                sender.on_message(now, &told(Kind::Bye, 5, 0, now));
            }
            if stop {
                sender.stop();
            }
            drain(&mut sender, now);
            assert_eq!(sender.ended(), Some(expected), "{case}");
        }
    }

    proptest! {
        /// Whatever arrives, no more is in flight than the window allows, and it ends.
        #[test]
        fn it_stays_within_its_bounds(
            steps in prop::collection::vec((0..400u64, 0..6u8, 0..3u64, 0..3_000u64, 0..5_000u64), 0..300),
        ) {
            let mut sender = Sender::new(Time::ZERO, 1, Span::from_secs(30), 1472, 500);
            let kinds = [Kind::Hello, Kind::Welcome, Kind::Data, Kind::Saturating, Kind::Seen, Kind::Bye];
            let mut now = Time::ZERO;
            for (gap, kind, token, sequence, back) in steps {
                now += Span::from_millis(gap);
                let stamp = now - Span::from_millis(back);
                sender.on_message(now, &told(kinds[usize::from(kind)], token, sequence, stamp));
                prop_assert!(drain(&mut sender, now).len() <= 500 + 20);
                prop_assert!(sender.next - sender.seen <= 500 + 700);
            }
            drain(&mut sender, now + Span::from_secs(100));
            prop_assert!(sender.ended().is_some() || !sender.is_welcome());
        }
    }
}
