//! A proxy of the scenario for the TCP of real kernels. It answers each connection in the name of the other side, and moves the
//! payload between its two ends.
//!
//! The simulator's own TCP implements both ends ([`end::TcpEnd`]), and [`SplitProxy`] decides, as it does for the simulator's
//! proxy, which connections to split, what servers may send, and what RAPID allocates. Both peers see each other's addresses and
//! ports. The proxy answers a SYN when the other side has answered, so a refused or unreachable connection looks as it would
//! without a proxy; it repeats a SYN that was lost on the other side when the peer repeats its own. It passes connections whose SYN
//! it has not seen, and everything that is not TCP.
//!
//! The *user's* side is that of the cell's user, or else that of the client. The proxy sends to the user under its `ran_cc`, and to
//! the server under CUBIC.

mod buffer;
mod end;
mod wire;

use std::collections::{BTreeSet, HashMap, VecDeque};

use ranpace_cc::{Algorithm, Allocation, RadioHint};
use ranpace_network::random::mix;
use ranpace_network::{Distribution, Histogram, SplitResult};
use ranpace_pep::split::{Counts, SplitProxy};
use ranpace_scenario::{ProxyKind, ProxySpec};
use ranpace_tcp::Config;
use ranpace_units::{Bytes, Span, Time};

use crate::participant::{ArrivingPacket, Participant, Send, Verdict};
use buffer::StreamBuffer;
use end::{Hello, SegmentEffects, Setup, TcpEnd, time_of};
use wire::{Ends, WireSegment};

/// Most connections split at a time; others pass. Ours.
const MOST_CONNECTIONS: usize = 10_000;
/// Segments that a server may send before the proxy's first decision: its initial window (RFC 6928).
const FIRST_WINDOW: u64 = 10;
/// The largest window that TCP can announce (RFC 7323, 2.3).
const MOST_WINDOW: Bytes = Bytes::new(1 << 30);
/// A connection that does not open is forgotten after this time: Linux' connection timeout (`tcp_syn_retries`). Ours.
const OPENING: Span = Span::from_secs(130);
/// A closed connection is remembered this long, for late or repeated segments. Ours.
const LINGER: Span = Span::from_secs(2);

/// A side of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Server,
    User,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Server => Self::User,
            Self::User => Self::Server,
        }
    }
}

/// A split connection.
#[derive(Debug)]
struct Relay {
    account: usize,
    place: usize,
    /// The side that opened it, and its SYN.
    opener: Side,
    hello: Hello,
    /// The proxy's initial sequence number towards the other side, and when it sent its first SYN there.
    number: u32,
    asked: Time,
    /// Ends towards the server and towards the user.
    server: Option<TcpEnd>,
    user: Option<TcpEnd>,
    /// Payload to the user, and to the server.
    down: StreamBuffer,
    up: StreamBuffer,
    /// The routes from here to the server, and to the user.
    to_server: u32,
    to_user: u32,
    /// Addresses and ports of the opener's packets.
    ends: Ends,
    /// Arrival time of each part of the payload for the user, until it has left.
    waiting: VecDeque<(u64, Time)>,
    relayed: u64,
    /// Its next deadline.
    due: Time,
    /// When it is forgotten.
    forget_at: Time,
}

/// Connections and counters of a route.
#[derive(Debug, Default)]
struct Account {
    /// Places of its connections, and the free ones.
    places: Vec<usize>,
    free: Vec<usize>,
    wan_rtt: Histogram,
    ran_rtt: Histogram,
    delay: Histogram,
    largest: u64,
}

/// A proxy. See the module's head.
pub struct Proxy<'a> {
    spec: &'a ProxySpec,
    decides: SplitProxy,
    to_server: Algorithm,
    relays: Vec<Option<Relay>>,
    free: Vec<usize>,
    by_ends: HashMap<Ends, usize>,
    due: BTreeSet<(Time, usize)>,
    /// Connections that passed because there was no room, and until when they are remembered: repeated SYNs of theirs pass too.
    passed: HashMap<Ends, Time>,
    /// The relay of each place.
    of_place: Vec<usize>,
    accounts: Vec<Account>,
    of_way: HashMap<u32, usize>,
    seed: u64,
    opened: u64,
}

impl<'a> Proxy<'a> {
    /// A proxy of a scenario with this many users.
    pub fn new(spec: &'a ProxySpec, users: usize, seed: u64) -> Self {
        let settings = match &spec.kind {
            ProxyKind::Split => None,
            ProxyKind::Rapid(settings) => Some(**settings),
        };
        let to_server = "cubic".parse().expect("it is an algorithm of the registry");
        Self {
            spec,
            decides: SplitProxy::new(spec.buffers, settings, users),
            to_server,
            relays: Vec::new(),
            free: Vec::new(),
            by_ends: HashMap::new(),
            due: BTreeSet::new(),
            passed: HashMap::new(),
            of_place: Vec::new(),
            accounts: Vec::new(),
            of_way: HashMap::new(),
            seed,
            opened: 0,
        }
    }

    /// Returns whether it needs radio information.
    pub fn is_rapid(&self) -> bool {
        self.decides.is_rapid()
    }

    /// Its results for the connections whose data go to users on this route; `None` if there were none.
    pub fn result(&self, route: u32) -> Option<SplitResult> {
        let account = &self.accounts[*self.of_way.get(&route)?];
        let mut sum = Counts::default();
        for counts in account.places.iter().map(|place| self.decides.counts(*place)) {
            sum.connections += counts.connections;
            sum.passed += counts.passed;
            sum.periods += counts.periods;
            sum.slow_periods += counts.slow_periods;
        }
        let figures = |of: &Histogram| Distribution { cdf: Vec::new(), ..of.distribution() };
        Some(SplitResult {
            proxy: self.spec.name.clone(),
            wan_rtt: figures(&account.wan_rtt),
            ran_rtt: figures(&account.ran_rtt),
            delay: figures(&account.delay),
            largest_backlog: Bytes::new(account.largest),
            passed_through: sum.passed,
            connections: sum.connections,
            ran_dropped_packets: 0, // known to the route after the proxy
            periods: sum.periods,
            slow_periods: sum.slow_periods,
        })
    }

    /// A SYN of an unknown connection. Returns whether it is split.
    fn begin(
        &mut self,
        now: Time,
        segment: WireSegment,
        passing: &ArrivingPacket<'_>,
        send: Send<'_>,
    ) -> bool {
        let Some(backward) = passing.backward else { return false };
        if self.passed.get(&segment.ends).is_some_and(|until| *until > now) {
            return false;
        }
        if self.relays.len() - self.free.len() >= MOST_CONNECTIONS {
            return false;
        }
        // If neither end is a user, the opener is the user's side.
        let opener = if passing.to_user.is_some() { Side::Server } else { Side::User };
        let (user, route, to_server, to_user) = match opener {
            Side::Server => (passing.to_user, Some(passing.route), backward, passing.onward),
            Side::User => (passing.from_user, passing.answers, passing.onward, backward),
        };
        let route = route.unwrap_or(passing.route);
        let account = *self.of_way.entry(route).or_insert_with(|| {
            self.accounts.push(Account::default());
            self.accounts.len() - 1
        });
        let own = &mut self.accounts[account];
        let place = own.free.pop().unwrap_or_else(|| {
            let place = self.decides.add_place(user.map_or(usize::MAX, |user| user as usize));
            own.places.push(place);
            self.of_place.push(usize::MAX);
            place
        });
        let hello = Hello { segment };
        let first = Bytes::new(u64::from(hello.mss()) * FIRST_WINDOW);
        if !self.decides.admit(now, place, first) {
            self.accounts[account].free.push(place);
            self.passed.retain(|_, until| *until > now);
            self.passed.insert(hello.segment.ends, now + OPENING);
            return false;
        }
        self.opened += 1;
        let number = mix(self.seed, self.opened) as u32;
        let ends = hello.segment.ends;
        let relay = Relay {
            account,
            place,
            opener,
            hello,
            number,
            asked: now,
            server: None,
            user: None,
            down: StreamBuffer::default(),
            up: StreamBuffer::default(),
            to_server,
            to_user,
            ends,
            waiting: VecDeque::new(),
            relayed: 0,
            due: Time::MAX,
            forget_at: now + OPENING,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.relays.push(None);
            self.relays.len() - 1
        });
        self.relays[slot] = Some(relay);
        self.of_place[place] = slot;
        self.by_ends.insert(ends, slot);
        self.by_ends.insert(ends.reversed(), slot);
        self.ask(now, slot, send);
        true
    }

    /// Sends the proxy's SYN to the side that did not open the connection.
    fn ask(&mut self, now: Time, slot: usize, send: Send<'_>) {
        let Some(relay) = &self.relays[slot] else { return };
        let mut packet = Vec::new();
        TcpEnd::syn(&relay.hello, relay.number, now).write(0, &[], &mut packet);
        send(relay.way_to(relay.opener.other()), &packet);
        self.schedule(slot);
    }

    fn on_segment(
        &mut self,
        now: Time,
        slot: usize,
        (segment, payload): (WireSegment, &[u8]),
        send: Send<'_>,
    ) -> Verdict {
        let Some(relay) = &mut self.relays[slot] else { return Verdict::Pass };
        let from_opener = segment.ends == relay.ends;
        let side = if from_opener { relay.opener } else { relay.opener.other() };
        if segment.rst && relay.end(side).is_some_and(TcpEnd::is_over) {
            return Verdict::Take;
        }
        if segment.rst {
            let other = side.other();
            let route = relay.way_to(other);
            if let Some(end) = relay.slot_mut(other) {
                // The other side is reset in the proxy's own sequence numbers.
                end.reset(now, &mut |packet| send(route, packet));
            } else if !from_opener {
                // Refuses a SYN by acknowledging the opener's number.
                let mut packet = Vec::new();
                let ack = Some(relay.hello.segment.seq.wrapping_add(1));
                let refused = WireSegment { rst: true, ack, ..WireSegment::new(relay.ends.reversed(), 0) };
                refused.write(0, &[], &mut packet);
                send(route, &packet);
            }
            self.forget(now, slot);
            return Verdict::Take;
        }
        if segment.syn && from_opener && relay.end(side).is_none() {
            // Not answered yet: the other side is asked again.
            relay.hello = Hello { segment };
            self.ask(now, slot, send);
            return Verdict::Take;
        }
        if segment.syn && from_opener && segment.seq != relay.hello.segment.seq {
            // Another connection between the same ports: the first one is over.
            self.forget(now, slot);
            return Verdict::Pass;
        }
        if segment.syn && !from_opener && relay.end(side).is_none() {
            if segment.ack != Some(relay.number.wrapping_add(1)) {
                return Verdict::Take;
            }
            self.open(now, slot, side, segment);
        } else {
            self.hear(now, slot, side, &segment, payload);
        }
        self.pump(now, slot, send);
        Verdict::Take
    }

    /// The other side has answered: both ends exist from now on.
    fn open(&mut self, now: Time, slot: usize, side: Side, segment: WireSegment) {
        let config = Config::default();
        let rapid = self.decides.is_rapid();
        let seed = mix(self.seed, self.opened);
        let Some(relay) = &mut self.relays[slot] else { return };
        // If only one SYN was sent, it is known which one was answered; with timestamps always.
        let asked = match segment.timestamps {
            Some((_, echo)) => time_of(echo, now),
            None => relay.asked,
        };
        let hello = Hello { segment };
        let first = self.decides.limit(relay.place);
        let setup = |of: Side, number: u32| match of {
            Side::Server if rapid => Setup {
                // Only RAPID's window limits it.
                config: Config {
                    receive_buffer: MOST_WINDOW,
                    receive_buffer_max: MOST_WINDOW,
                    ..config.clone()
                },
                control: self.to_server.build(mix(seed, 2)),
                first,
                number,
            },
            Side::Server => {
                Setup { config: config.clone(), control: self.to_server.build(mix(seed, 2)), first, number }
            }
            Side::User => {
                let first = config.receive_buffer;
                Setup { config: config.clone(), control: self.spec.ran_cc.build(mix(seed, 1)), first, number }
            }
        };
        let asking = TcpEnd::open(&hello, setup(side, relay.number), asked, now);
        let own = mix(seed, 3) as u32;
        let answering = TcpEnd::answer(&relay.hello, setup(side.other(), own), now);
        let mss = asking.mss().min(answering.mss());
        let rtt = (now - asked).max(Span::from_nanos(1));
        *relay.slot_mut(side) = Some(asking);
        *relay.slot_mut(side.other()) = Some(answering);
        relay.forget_at = Time::MAX;
        match side {
            Side::Server => {
                self.accounts[relay.account].wan_rtt.record(rtt);
                self.decides.on_handshake(now, relay.place, rtt, mss, None);
            }
            Side::User => {
                self.accounts[relay.account].ran_rtt.record(rtt);
                // The server opened this connection: its part of the handshake is not over. The user's RTT substitutes for it until
                // the first sample.
                self.decides.on_handshake(now, relay.place, rtt, mss, Some(rtt));
            }
        }
    }

    /// Handles a segment of one side, and passes its effects to the other.
    fn hear(&mut self, now: Time, slot: usize, side: Side, segment: &WireSegment, payload: &[u8]) {
        let Some(relay) = &mut self.relays[slot] else { return };
        let Relay { server, user, down, up, .. } = relay;
        let ((end, incoming, outgoing), other) = match side {
            Side::Server => ((server, down, up), user),
            Side::User => ((user, up, down), server),
        };
        let (Some(end), Some(other)) = (end, other) else { return };
        let effects = end.on_segment(now, segment, payload, incoming, outgoing);
        other.write(effects.payload);
        if end.has_ended() {
            other.close();
        }
        self.account(now, slot, side, effects);
    }

    /// Counts the effects of a segment, and passes them to the deciding half.
    fn account(&mut self, now: Time, slot: usize, side: Side, effects: SegmentEffects) {
        let Some(relay) = &mut self.relays[slot] else { return };
        let account = &mut self.accounts[relay.account];
        match side {
            Side::Server => {
                if let Some(echo) = effects.echo {
                    account.wan_rtt.record(now - echo);
                    self.decides.on_wan_rtt(now, relay.place, now - echo);
                }
                if !effects.payload.is_zero() {
                    self.decides.on_wan_data(now, relay.place, effects.payload);
                    relay.relayed += effects.payload.get();
                    relay.waiting.push_back((relay.relayed, now));
                }
            }
            Side::User => {
                if !effects.acked.is_zero() {
                    self.decides.on_ran_acked(relay.place, effects.acked);
                }
                if let Some(rtt) = effects.rtt {
                    account.ran_rtt.record(rtt);
                    self.decides.on_ran_rtt(now, relay.place, rtt);
                }
            }
        }
    }

    /// Lets both ends of a connection send what they can, and those with changed decisions too.
    fn pump(&mut self, now: Time, slot: usize, send: Send<'_>) {
        self.pump_one(now, slot, send);
        while let Some((place, is_reallocated)) = self.decides.next_change() {
            let slot = self.of_place[place];
            let allocation = self.decides.allocation(place);
            let end =
                self.relays.get_mut(slot).and_then(Option::as_mut).and_then(|relay| relay.user.as_mut());
            if let (true, Some(end)) = (is_reallocated, end) {
                let allocation = allocation.map(|own| Allocation { rate: own.rate, window: own.window });
                end.sender_mut().on_allocation(now, allocation);
            }
            self.pump_one(now, slot, send);
        }
    }

    fn pump_one(&mut self, now: Time, slot: usize, send: Send<'_>) {
        let Some(relay) = self.relays.get_mut(slot).and_then(Option::as_mut) else { return };
        let (to_user, to_server) = (relay.to_user, relay.to_server);
        if let Some(end) = &mut relay.user {
            end.transmit(now, &relay.down, &mut |packet| send(to_user, packet));
            let sent = end.sender().sent().get();
            let account = &mut self.accounts[relay.account];
            while let Some(&(last, came)) = relay.waiting.front()
                && last <= sent
            {
                account.delay.record(now - came);
                relay.waiting.pop_front();
            }
            let backlog = relay.relayed - sent.min(relay.relayed);
            account.largest = account.largest.max(backlog);
            let window = self.decides.window(now, relay.place, Bytes::new(backlog));
            if let Some(server) = &mut relay.server {
                server.set_window_limit(window);
                // The backlog for the server bounds what the user may send, as a host's own buffers would.
                let waits = end.delivered() - server.sender().sent().get().min(end.delivered());
                end.set_window_limit(Config::default().receive_buffer_max - Bytes::new(waits));
            }
        }
        if let Some(end) = &mut relay.server {
            end.transmit(now, &relay.up, &mut |packet| send(to_server, packet));
        }
        // The acknowledgements to the user may have changed.
        if let Some(end) = &mut relay.user {
            end.transmit(now, &relay.down, &mut |packet| send(to_user, packet));
        }
        let is_over = |end: &Option<TcpEnd>| end.as_ref().is_some_and(TcpEnd::is_over);
        if is_over(&relay.user) && is_over(&relay.server) && relay.forget_at == Time::MAX {
            relay.forget_at = now + LINGER;
            self.decides.release(now, relay.place);
        }
        self.schedule(slot);
    }

    fn schedule(&mut self, slot: usize) {
        let Some(relay) = &mut self.relays[slot] else { return };
        let ends = [&relay.user, &relay.server].into_iter().flatten().map(TcpEnd::next_deadline);
        let due = ends.fold(relay.forget_at, Time::min);
        if due != relay.due {
            self.due.remove(&(relay.due, slot));
            if due < Time::MAX {
                self.due.insert((due, slot));
            }
            relay.due = due;
        }
    }

    fn forget(&mut self, now: Time, slot: usize) {
        let Some(relay) = self.relays[slot].take() else { return };
        self.due.remove(&(relay.due, slot));
        self.by_ends.remove(&relay.ends);
        self.by_ends.remove(&relay.ends.reversed());
        self.decides.release(now, relay.place);
        self.of_place[relay.place] = usize::MAX;
        self.accounts[relay.account].free.push(relay.place);
        self.free.push(slot);
    }

    fn on_due(&mut self, now: Time, slot: usize, send: Send<'_>) {
        let Some(relay) = &mut self.relays[slot] else { return };
        let mut is_lost = relay.forget_at <= now;
        for end in [&mut relay.user, &mut relay.server].into_iter().flatten() {
            is_lost |= !end.on_deadline(now);
        }
        if is_lost {
            self.forget(now, slot);
        }
        self.pump(now, slot, send);
    }
}

impl Relay {
    fn end(&self, side: Side) -> Option<&TcpEnd> {
        match side {
            Side::Server => self.server.as_ref(),
            Side::User => self.user.as_ref(),
        }
    }

    fn slot_mut(&mut self, side: Side) -> &mut Option<TcpEnd> {
        match side {
            Side::Server => &mut self.server,
            Side::User => &mut self.user,
        }
    }

    fn way_to(&self, side: Side) -> u32 {
        match side {
            Side::Server => self.to_server,
            Side::User => self.to_user,
        }
    }
}

impl Participant for Proxy<'_> {
    fn on_packet(&mut self, now: Time, passing: &ArrivingPacket<'_>, send: Send<'_>) -> Verdict {
        let Some((segment, payload)) = WireSegment::read(passing.packet) else {
            if let Some(user) = passing.to_user {
                self.decides.on_passing(user, Bytes::new(passing.packet.len() as u64));
            }
            return Verdict::Pass;
        };
        if let Some(&slot) = self.by_ends.get(&segment.ends) {
            let known = segment.clone();
            let verdict = self.on_segment(now, slot, (segment, &passing.packet[payload]), send);
            let is_new = verdict == Verdict::Pass && known.syn && known.ack.is_none();
            return if is_new && self.begin(now, known, passing, send) { Verdict::Take } else { verdict };
        }
        let is_first = segment.syn && segment.ack.is_none() && !segment.rst && !segment.fin;
        if is_first && self.begin(now, segment, passing, send) { Verdict::Take } else { Verdict::Pass }
    }

    fn on_hint(&mut self, now: Time, user: u32, hint: &RadioHint, send: Send<'_>) {
        self.decides.on_radio(now, user, hint);
        self.pump(now, usize::MAX, send);
    }

    fn next_deadline(&self) -> Time {
        let own = self.due.first().map_or(Time::MAX, |(at, _)| *at);
        own.min(self.decides.next_deadline())
    }

    fn on_deadline(&mut self, now: Time, send: Send<'_>) {
        if self.decides.next_deadline() <= now {
            self.decides.on_deadline(now);
            self.pump(now, usize::MAX, send);
        }
        while let Some(&(at, slot)) = self.due.first()
            && at <= now
        {
            self.on_due(now, slot, send);
            // What is still due at this instant waits for the next one, so that no connection blocks the others.
            if self.due.first() == Some(&(at, slot)) {
                break;
            }
        }
    }
}
