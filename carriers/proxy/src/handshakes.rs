//! Connections that wait for the server's answer, and for the client's.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use ranpace_units::{Span, Time};
use slab::Slab;

use crate::syn::Ends;

/// A server that does not answer a held SYN is forgotten after this time. A client that still waits has repeated its SYN by then, also
/// if one repetition was lost (after 1, 3 and 7 s: RFC 6298), and repetitions pass; so this one has given up, or is a flood. Ours.
const HELD: Span = Span::from_secs(8);
/// A client that does not complete its handshake is forgotten after this time. Ours.
const ANSWERING: Span = Span::from_secs(15);
/// After a SYN of a connection has passed, further ones of it pass for this time. Ours.
const PASSING: Span = Span::from_secs(60);
/// Most connections that are remembered as passing: some 2 MB. Ours.
const MOST_PASSING: usize = 16_384;

/// What a handshake waits for.
#[derive(Debug)]
pub enum State {
    /// The server, and then the client: its SYN is held.
    Exact {
        /// The SYN.
        syn: Box<[u8]>,
        /// Its sequence number.
        number: u32,
        /// The server has answered, and the SYN was given to the listener.
        released: bool,
    },
    /// The server: the client was accepted at once, on this socket.
    Accepted(OwnedFd),
}

/// A connection that is not complete.
#[derive(Debug)]
pub struct Handshake {
    /// Its ends.
    pub ends: Ends,
    /// The leg of the server.
    pub server: OwnedFd,
    /// What it waits for.
    pub state: State,
    /// When it began, and when the server has answered.
    pub since: Time,
}

impl Handshake {
    fn is_over(&self, now: Time, connect_timeout: Span) -> bool {
        let limit = match self.state {
            State::Exact { released: true, .. } => ANSWERING,
            State::Exact { .. } => HELD.min(connect_timeout),
            State::Accepted(_) => connect_timeout,
        };
        now > self.since + limit
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Handshakes {
    entries: Slab<Handshake>,
    by_ends: HashMap<Ends, usize>,
    of_client: HashMap<IpAddr, usize>,
    passing: HashMap<Ends, Time>,
}

impl Handshakes {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many there are of a client's address.
    pub fn of_client(&self, client: IpAddr) -> usize {
        self.of_client.get(&client).copied().unwrap_or(0)
    }

    /// Whether a SYN of this connection has passed lately.
    pub fn is_passing(&self, ends: &Ends, now: Time) -> bool {
        self.passing.get(ends).is_some_and(|until| *until > now)
    }

    /// Further SYNs of this connection pass, unless too many connections are remembered already: [`Self::expire`] makes room.
    pub fn mark_passing(&mut self, ends: Ends, now: Time) {
        if self.passing.len() < MOST_PASSING {
            self.passing.insert(ends, now + PASSING);
        }
    }

    /// Connections whose SYNs pass, and until when.
    pub fn passing(&self) -> impl Iterator<Item = (Ends, Time)> + '_ {
        self.passing.iter().map(|(ends, until)| (*ends, *until))
    }

    /// Adds those of another process.
    pub fn extend_passing(&mut self, passing: Vec<(Ends, Time)>) {
        self.passing.extend(passing);
    }

    /// All that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &Handshake> {
        self.entries.iter().map(|(_, handshake)| handshake)
    }

    /// Adds one, and returns its place.
    pub fn insert(&mut self, handshake: Handshake) -> usize {
        let ends = handshake.ends;
        *self.of_client.entry(ends.client.ip()).or_default() += 1;
        let place = self.entries.insert(handshake);
        self.by_ends.insert(ends, place);
        place
    }

    /// The place of a connection.
    pub fn find(&self, ends: &Ends) -> Option<usize> {
        self.by_ends.get(ends).copied()
    }

    /// The one at this place.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut Handshake> {
        self.entries.get_mut(place)
    }

    /// Removes one.
    pub fn remove(&mut self, place: usize) -> Option<Handshake> {
        let handshake = self.entries.try_remove(place)?;
        self.by_ends.remove(&handshake.ends);
        let client = handshake.ends.client.ip();
        if let Some(count) = self.of_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.of_client.remove(&client);
            }
        }
        Some(handshake)
    }

    /// Removes those that have waited too long, and returns how many; both legs are reset. A server has `connect_timeout` to answer. After
    /// that a client that was accepted first is reset, and the next SYN of one whose SYN is held passes.
    pub fn expire(&mut self, now: Time, connect_timeout: Span) -> usize {
        self.passing.retain(|_, until| *until > now);
        let is_over = |one: &Handshake| one.is_over(now, connect_timeout);
        let over: Vec<usize> =
            self.entries.iter().filter(|(_, one)| is_over(one)).map(|(place, _)| place).collect();
        let over: Vec<Handshake> = over.into_iter().filter_map(|place| self.remove(place)).collect();
        for handshake in &over {
            // A client that has not given up by then repeats its SYN. Later ones have, and floods are not to fill what is remembered.
            if let State::Exact { released: false, .. } = handshake.state
                && connect_timeout < HELD
            {
                self.mark_passing(handshake.ends, now);
            }
        }
        over.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;

    #[test]
    fn handshakes_that_nobody_goes_on_with_are_forgotten_each_in_its_time() {
        let descriptor = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let held = |released| State::Exact { syn: Box::default(), number: 1, released };
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        for (state, seconds) in [(held(false), 8), (held(true), 15), (State::Accepted(descriptor()), 20)] {
            let ends =
                Ends { client: "10.0.0.2:4000".parse().unwrap(), server: "192.0.2.1:443".parse().unwrap() };
            let mut handshakes = Handshakes::default();
            handshakes.insert(Handshake { ends, server: descriptor(), state, since: at(0) });
            let mut expire = |seconds| {
                let expired = handshakes.expire(at(seconds), Span::from_secs(20));
                (expired, handshakes.of_client(ends.client.ip()))
            };
            assert_eq!(expire(seconds), (0, 1));
            assert_eq!(expire(seconds + 1), (1, 0));
            assert_eq!((handshakes.find(&ends), handshakes.len()), (None, 0), "{seconds} s");
        }
    }

    #[test]
    fn a_held_syn_whose_server_had_its_time_passes_when_it_comes_again() {
        for (connect_timeout, passes) in [(2, true), (20, false)] {
            let at = |seconds| Time::ZERO + Span::from_secs(seconds);
            let ends =
                Ends { client: "10.0.0.2:4000".parse().unwrap(), server: "192.0.2.1:443".parse().unwrap() };
            let mut handshakes = Handshakes::default();
            let state = State::Exact { syn: Box::default(), number: 1, released: false };
            let server = std::fs::File::open("/dev/null").unwrap().into();
            handshakes.insert(Handshake { ends, server, state, since: at(0) });
            assert_eq!(handshakes.expire(at(2), Span::from_secs(connect_timeout)), 0);
            assert_eq!(handshakes.expire(at(3), Span::from_secs(connect_timeout)), usize::from(passes));
            assert_eq!(handshakes.is_passing(&ends, at(4)), passes);
        }
    }

    #[test]
    fn connections_that_pass_are_remembered_for_a_minute_and_not_without_end() {
        let ends = |port| Ends { client: ([10, 0, 0, 2], port).into(), server: ([192, 0, 2, 1], 443).into() };
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let mut handshakes = Handshakes::default();
        for port in 0..=u16::MAX {
            handshakes.mark_passing(ends(port), at(0));
        }
        assert!(handshakes.is_passing(&ends(0), at(59)) && !handshakes.is_passing(&ends(0), at(60)));
        assert!(!handshakes.is_passing(&ends(u16::MAX), at(0)), "there was no more room");
        handshakes.expire(at(60), Span::SECOND);
        handshakes.mark_passing(ends(u16::MAX), at(60));
        assert!(handshakes.is_passing(&ends(u16::MAX), at(61)));
    }
}
