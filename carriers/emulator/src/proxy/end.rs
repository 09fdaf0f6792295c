//! The proxy's end of one TCP connection with a kernel: the simulator's sending and receiving half ([`Sender`], [`Receiver`]), and,
//! between them and the wire, 32-bit sequence numbers, scaled windows, timestamps and FIN.
//!
//! Both halves count payload from zero: a stream position is the sequence number less that of the SYN, less one. FIN comes after
//! the payload, is sent once all of that has been sent, and retransmitted by its own timer.

use ranpace_cc::CongestionControl;
use ranpace_tcp::{Config, EcnFeedback, Kind, Opener, Receiver, SackBlock, Segment, Sender};
use ranpace_units::{Bytes, Span, Time};

use super::buffer::StreamBuffer;
use super::wire::{Ends, WireSegment};

/// Scale of the windows that the proxy advertises: up to 64 MB (RFC 7323 section 2.3) in steps of 1 KB. Ours.
const SCALE: u8 = 10;
/// Timestamp tick in nanoseconds, as a power of two: 16 us. Timestamps wrap after 19 h. Ours.
const TICK: u32 = 14;
/// Largest maximum segment size, for packets of 1500 B.
const MOST_MSS: u16 = 1460;
/// The default maximum segment size of a peer that does not send the option (RFC 9293 section 3.7.1).
const MSS_UNSAID: u16 = 536;
/// FINs sent before the connection is given up (Linux `tcp_orphan_retries`).
const FINS: u32 = 8;

/// A peer's SYN.
#[derive(Clone, Debug)]
pub struct Hello {
    /// The segment.
    pub segment: WireSegment,
}

impl Hello {
    /// Largest payload that the peer accepts, without options.
    pub fn mss(&self) -> u16 {
        self.segment.mss.unwrap_or(MSS_UNSAID).clamp(64, MOST_MSS)
    }

    fn window(&self) -> u32 {
        self.segment.window.into()
    }
}

/// Settings of one end of the proxy.
pub struct Setup {
    /// Settings of both halves.
    pub config: Config,
    /// The control for sending to the peer.
    pub control: Box<dyn CongestionControl>,
    /// The initial receive window.
    pub first: Bytes,
    /// The proxy's initial sequence number.
    pub number: u32,
}

/// The effects of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentEffects {
    /// A sample of the RTT to the peer.
    pub rtt: Option<Span>,
    /// Newly acknowledged payload.
    pub acked: Bytes,
    /// New in-order payload.
    pub payload: Bytes,
    /// The newest of the proxy's timestamps echoed for the first time, on data.
    pub echo: Option<Time>,
}

/// One end. See the module's head.
#[derive(Debug)]
pub struct TcpEnd {
    sender: Sender,
    receiver: Receiver,
    /// Addresses and ports of the proxy's packets.
    ends: Ends,
    /// Sequence numbers of both SYNs.
    own: u32,
    peer: u32,
    /// Scales of both windows: zero if the peer does not scale.
    own_scale: u8,
    peer_scale: u8,
    timestamps: bool,
    sack: bool,
    mss: u16,
    /// The peer's newest timestamp, extended by its wraps.
    peer_clock: u64,
    /// The newest echoed timestamp of the proxy.
    echo: Time,
    /// Stream position at which the peer's payload ends.
    peer_end: Option<u64>,
    /// The proxy's own FIN.
    fin: Fin,
    /// IPv4 identification of the next packet.
    identification: u16,
}

/// The proxy's FIN to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fin {
    #[default]
    None,
    /// To be sent after the payload.
    Wanted,
    /// Sent this many times, and again at this instant.
    Sent {
        times: u32,
        again: Time,
    },
    Acked,
}

impl TcpEnd {
    /// The end of a connection that the peer opens: `hello` is its SYN, which the next [`Self::transmit`] answers.
    pub fn answer(hello: &Hello, setup: Setup, now: Time) -> Self {
        let mut end = Self::new(hello, setup, Opener::Receiver);
        let syn = end.incoming(now, &hello.segment, Kind::Syn);
        end.sender.on_segment(now, &syn);
        end
    }

    /// The end of a connection that the proxy opened with a SYN at `asked`, and that `hello` answered.
    pub fn open(hello: &Hello, setup: Setup, asked: Time, now: Time) -> Self {
        let mut end = Self::new(hello, setup, Opener::Sender);
        end.sender.open(asked);
        // The SYN has been sent.
        end.sender.poll_transmit(asked);
        let answer = Segment { window: hello.window(), ..end.incoming(now, &hello.segment, Kind::SynAck) };
        end.sender.on_segment(now, &answer);
        end.receiver.on_segment(now, &Segment { kind: Kind::Ack, ..answer });
        end
    }

    fn new(hello: &Hello, setup: Setup, opener: Opener) -> Self {
        let Setup { config, control, first, number } = setup;
        let said = &hello.segment;
        let (timestamps, sack) = (said.timestamps.is_some(), said.sack_permitted);
        let scales = said.scale.is_some();
        // The settings count an IPv4 header; the maximum segment size has to come out right.
        let mtu = Bytes::new(40 + u64::from(hello.mss()));
        let most = Bytes::new(if scales { 1 << (16 + SCALE) } else { 1 << 16 } - 1);
        let config = Config {
            mtu,
            timestamps,
            sack,
            ecn: EcnFeedback::Off,
            opener,
            receive_buffer_max: config.receive_buffer_max.min(most),
            receive_buffer: config.receive_buffer.min(most),
            send_buffer: Bytes::MAX,
            ..config
        };
        let mut receiver = Receiver::new(&config, None);
        receiver.set_window_limit(first);
        let sender = Sender::new(&config, control);
        Self {
            sender,
            receiver,
            ends: said.ends.reversed(),
            own: number,
            peer: said.seq,
            own_scale: if scales { SCALE } else { 0 },
            peer_scale: said.scale.unwrap_or(0).min(14),
            timestamps,
            sack,
            mss: hello.mss(),
            // So that an earlier wrap is possible.
            peer_clock: (1 << 32) | u64::from(said.timestamps.unwrap_or_default().0),
            echo: Time::ZERO,
            peer_end: None,
            fin: Fin::None,
            identification: number as u16,
        }
    }

    /// The SYN that the proxy sends to the other side for a peer's: with the same ends, and only options that both understand.
    pub fn syn(hello: &Hello, number: u32, now: Time) -> WireSegment {
        let said = &hello.segment;
        WireSegment {
            syn: true,
            window: u16::MAX,
            mss: Some(hello.mss()),
            scale: said.scale.map(|_| SCALE),
            sack_permitted: said.sack_permitted,
            timestamps: said.timestamps.map(|_| (ticks(now), 0)),
            ..WireSegment::new(said.ends, number)
        }
    }

    /// Converts a segment of the peer for the halves, with sequence numbers as stream positions.
    fn incoming(&mut self, now: Time, wire: &WireSegment, kind: Kind) -> Segment {
        let mut segment = Segment::new(kind, now);
        segment.timestamp = Time::ZERO;
        if let Some((own, echo)) = wire.timestamps.filter(|_| self.timestamps) {
            // The peer's ticks stand for nanoseconds: they are only compared and echoed.
            let clock = unwrap(own, self.peer_clock).unwrap_or(self.peer_clock);
            self.peer_clock = self.peer_clock.max(clock);
            (segment.timestamp, segment.echo) = (Time::from_nanos(clock), time_of(echo, now));
        }
        segment
    }

    /// A segment of the peer; its payload goes to `incoming`, and what it acknowledges is discarded from `outgoing`.
    pub fn on_segment(
        &mut self,
        now: Time,
        wire: &WireSegment,
        payload: &[u8],
        incoming: &mut StreamBuffer,
        outgoing: &mut StreamBuffer,
    ) -> SegmentEffects {
        let mut effects = SegmentEffects::default();
        if wire.syn {
            // The peer has not received the answer to its SYN.
            let kind = if wire.ack.is_some() { Kind::SynAck } else { Kind::Syn };
            let again = self.incoming(now, wire, kind);
            self.sender.on_segment(now, &again);
            return effects;
        }
        if let Some(ack) = wire.ack {
            self.on_ack(now, wire, ack, payload.is_empty(), &mut effects);
            outgoing.discard(self.sender.acked().get());
        }
        let next = self.receiver.delivered().get();
        let at = unwrap(wire.seq.wrapping_sub(self.peer).wrapping_sub(1), next);
        let is_old = at.is_none_or(|at| at < next);
        if payload.is_empty() && !wire.fin && !is_old {
            return effects;
        }
        // Data before the stream are acknowledged again, and so are data beyond the buffer, which are not kept.
        let (at, payload, fin) = match at {
            Some(at) if incoming.put(at, payload) => (at, payload, wire.fin),
            _ => (next, &[][..], false),
        };
        let mut data = self.incoming(now, wire, Kind::Data);
        (data.seq, data.length) = (at, payload.len() as u32);
        data.wire = (payload.len() + 40) as u32;
        if self.timestamps && data.echo > self.echo {
            self.echo = data.echo;
            effects.echo = Some(data.echo);
        }
        self.receiver.on_segment(now, &data);
        if fin {
            self.peer_end.get_or_insert(at + payload.len() as u64);
            // A segment without payload is acknowledged at once.
            self.receiver.on_segment(now, &Segment { length: 0, ..data });
        }
        effects.payload = Bytes::new(self.receiver.delivered().get() - next);
        effects
    }

    fn on_ack(
        &mut self,
        now: Time,
        wire: &WireSegment,
        number: u32,
        is_pure: bool,
        effects: &mut SegmentEffects,
    ) {
        let (acked, sent) = (self.sender.acked().get(), self.sender.sent().get());
        let Some(place) = unwrap(number.wrapping_sub(self.own).wrapping_sub(1), acked) else { return };
        // The FIN takes a sequence number too.
        if place == sent + 1 && matches!(self.fin, Fin::Sent { .. }) {
            self.fin = Fin::Acked;
        }
        let mut ack = self.incoming(now, wire, Kind::Ack);
        ack.ack = place.min(sent);
        ack.window = u32::from(wire.window) << self.peer_scale;
        for (index, &(from, to)) in wire.sack.iter().enumerate() {
            let own = self.own;
            let place_of = |number: u32| unwrap(number.wrapping_sub(own).wrapping_sub(1), place);
            let (Some(from), Some(to)) = (place_of(from), place_of(to)) else { continue };
            let to = to.min(sent);
            if index == 0 && from < place {
                ack.duplicate = u32::try_from(place - from).ok();
            } else if from >= ack.ack && from < to {
                let distance = |place: u64| u32::try_from(place - ack.ack).ok();
                if let (Some(from), Some(to)) = (distance(from), distance(to)) {
                    ack.sack.push(SackBlock { from, to });
                }
            }
        }
        let was_open = self.sender.is_established();
        // Data that acknowledge nothing new are not a duplicate acknowledgement (RFC 5681 section 2).
        if is_pure || ack.ack > acked || !was_open || self.sack {
            effects.rtt = self.sender.on_segment(now, &ack);
        }
        if !was_open && self.sender.is_established() {
            self.receiver.on_segment(now, &Segment { kind: Kind::Ack, ..ack });
        }
        effects.acked = self.sender.acked() - Bytes::new(acked);
    }

    /// Adds bytes to be sent to the peer.
    pub fn write(&mut self, bytes: Bytes) {
        self.sender.write(bytes);
    }

    /// No more will be written.
    pub fn close(&mut self) {
        if self.fin == Fin::None {
            self.fin = Fin::Wanted;
        }
    }

    /// Calls `send` with each encoded segment to be sent now; payload is taken from `outgoing`.
    pub fn transmit(&mut self, now: Time, outgoing: &StreamBuffer, send: &mut dyn FnMut(&[u8])) {
        let mut packet = Vec::with_capacity(2048);
        let mut payload = Vec::with_capacity(2048);
        while let Some(segment) = self.sender.poll_transmit(now) {
            let mut wire = self.outgoing(&segment, now);
            payload.clear();
            match segment.kind {
                Kind::Syn => continue,
                Kind::SynAck => {
                    wire = WireSegment { syn: true, seq: self.own, ..wire };
                    (wire.mss, wire.sack_permitted) = (Some(self.mss), self.sack);
                    wire.scale = (self.own_scale > 0).then_some(self.own_scale);
                    // Windows of SYNs are not scaled.
                    wire.window = self.window(0);
                }
                Kind::Data if segment.length > 0 => {
                    outgoing.copy(segment.seq, segment.length as usize, &mut payload);
                    wire.push = segment.seq + u64::from(segment.length) == self.sender.sent().get();
                }
                // A zero-window probe: a sequence number already acknowledged makes the peer answer (Linux `tcp_xmit_probe_skb`).
                Kind::Data => wire.seq = wire.seq.wrapping_sub(1),
                _ => {}
            }
            self.emit(&wire, &payload, &mut packet, send);
        }
        while let Some(segment) = self.receiver.poll_transmit(now) {
            let mut wire = self.outgoing(&Segment { seq: self.sender.sent().get(), ..segment }, now);
            let next = segment.ack;
            let number = |place: u64| self.peer.wrapping_add(1).wrapping_add(place as u32);
            if let Some(below) = segment.duplicate {
                // Linux reports the whole segment; only its beginning is used.
                let from = next - u64::from(below).min(next);
                wire.sack.push((number(from), number(next.min(from + 1))));
            }
            let blocks = segment.sack.as_slice().iter();
            wire.sack.extend(
                blocks
                    .map(|block| (number(next + u64::from(block.from)), number(next + u64::from(block.to)))),
            );
            self.emit(&wire, &[], &mut packet, send);
        }
        if self.wants_fin(now) {
            let times = if let Fin::Sent { times, .. } = self.fin { times + 1 } else { 1 };
            let wait = self.sender.rtt().smoothed() * 2 + Span::from_millis(200);
            self.fin = Fin::Sent { times, again: now + wait * (1 << times.min(6)) / 2 };
            let last = Segment::new(Kind::Ack, now);
            let wire = WireSegment {
                fin: true,
                seq: self.number(self.sender.sent().get()),
                ..self.outgoing(&last, now)
            };
            self.emit(&wire, &[], &mut packet, send);
        }
    }

    /// The sequence number of a position in the sent stream.
    fn number(&self, place: u64) -> u32 {
        self.own.wrapping_add(1).wrapping_add(place as u32)
    }

    fn wants_fin(&self, now: Time) -> bool {
        match self.fin {
            // All that was written has been sent.
            Fin::Wanted => self.sender.is_established() && self.sender.unsent().is_zero(),
            Fin::Sent { again, .. } => again <= now,
            Fin::None | Fin::Acked => false,
        }
    }

    fn emit(
        &mut self,
        wire: &WireSegment,
        payload: &[u8],
        packet: &mut Vec<u8>,
        send: &mut dyn FnMut(&[u8]),
    ) {
        wire.write(self.identification, payload, packet);
        self.identification = self.identification.wrapping_add(1);
        send(packet);
    }

    /// Converts a segment to the peer, with this stream position as its number.
    fn outgoing(&mut self, segment: &Segment, now: Time) -> WireSegment {
        let echo = if segment.echo > Time::ZERO { segment.echo.as_nanos() as u32 } else { 0 };
        let next = self.receiver.delivered().get();
        let fin = u64::from(self.peer_end.is_some_and(|end| end <= next));
        let ack = self.peer.wrapping_add(1).wrapping_add((next + fin) as u32);
        // After the FIN, acknowledgements carry the number following it.
        let is_behind = segment.kind == Kind::Ack && matches!(self.fin, Fin::Sent { .. } | Fin::Acked);
        WireSegment {
            ack: Some(ack),
            window: self.window(self.own_scale),
            timestamps: self.timestamps.then(|| (ticks(now), echo)),
            ..WireSegment::new(self.ends, self.number(segment.seq + u64::from(is_behind)))
        }
    }

    /// The window field: rounded up, as in Linux.
    fn window(&mut self, scale: u8) -> u16 {
        let window = self.receiver.offer();
        u16::try_from(window.div_ceil(1 << scale)).unwrap_or(u16::MAX)
    }

    /// Resets the connection.
    pub fn reset(&mut self, now: Time, send: &mut dyn FnMut(&[u8])) {
        let last = Segment { seq: self.sender.sent().get(), ..Segment::new(Kind::Ack, now) };
        let wire = WireSegment { rst: true, ..self.outgoing(&last, now) };
        self.emit(&wire, &[], &mut Vec::new(), send);
    }

    /// When to call [`Self::on_deadline`]; [`Time::MAX`] for never.
    pub fn next_deadline(&self) -> Time {
        let fin = if let Fin::Sent { again, .. } = self.fin { again } else { Time::MAX };
        self.sender.next_deadline().min(self.receiver.next_deadline()).min(fin)
    }

    /// A deadline has come; call [`Self::transmit`] next. False if the peer has been silent for so long that it counts as gone.
    pub fn on_deadline(&mut self, now: Time) -> bool {
        if self.sender.next_deadline() <= now {
            self.sender.on_deadline(now);
        }
        if self.receiver.next_deadline() <= now {
            self.receiver.on_deadline(now);
        }
        !matches!(self.fin, Fin::Sent { times, again } if times >= FINS && again <= now)
    }

    /// The sending half.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The sending half, mutable.
    pub fn sender_mut(&mut self) -> &mut Sender {
        &mut self.sender
    }

    /// Limits what the peer may send.
    pub fn set_window_limit(&mut self, limit: Bytes) {
        // A peer that has closed may be gone: it would answer a window update with a reset.
        if self.peer_end.is_none() {
            self.receiver.set_window_limit(limit);
        }
    }

    /// In-order payload of the peer.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered().get()
    }

    /// Returns whether the peer sends nothing more, and all that it sent has arrived.
    pub fn has_ended(&self) -> bool {
        self.peer_end.is_some_and(|end| end <= self.delivered())
    }

    /// Returns whether the peer knows that nothing more comes.
    pub fn is_closed(&self) -> bool {
        self.fin == Fin::Acked
    }

    /// Returns whether the connection is over in both directions.
    pub fn is_over(&self) -> bool {
        self.is_closed() && self.has_ended()
    }

    /// Largest payload of a segment to the peer.
    pub fn mss(&self) -> Bytes {
        self.sender.mss()
    }
}

/// The timestamp of a time; never zero.
pub fn ticks(now: Time) -> u32 {
    ((now.as_nanos() >> TICK) as u32).wrapping_add(1)
}

/// The latest time not after `now` with this timestamp.
pub fn time_of(ticks: u32, now: Time) -> Time {
    let tick = (now.as_nanos() >> TICK) + 1;
    let back = u64::from((tick as u32).wrapping_sub(ticks));
    Time::from_nanos(tick.saturating_sub(back + 1) << TICK)
}

/// The position nearest to `near` with these low 32 bits; `None` if it is before the beginning.
fn unwrap(number: u32, near: u64) -> Option<u64> {
    let distance = number.wrapping_sub(near as u32) as i32;
    near.checked_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::gso::OFFSET;

    fn addresses() -> Ends {
        let at = |host, port| SocketAddr::new(crate::addresses::v4(host).into(), port);
        Ends { from: at(0, 443), to: at(1, 50_000) }
    }

    fn setup(number: u32) -> Setup {
        let control = "cubic".parse::<ranpace_cc::Algorithm>().expect("it is there").build(1);
        Setup { config: Config::default(), control, first: Bytes::new(5_000), number }
    }

    /// Two ends 10 ms apart, and the path between them.
    struct Pair {
        ends: [TcpEnd; 2],
        /// The bytes that each sends, and those that each has received.
        out: [StreamBuffer; 2],
        into: [StreamBuffer; 2],
        /// Packets in flight to each.
        wires: [VecDeque<(Time, Vec<u8>)>; 2],
        now: Time,
    }

    impl Pair {
        /// After the handshake; `numbers` are the initial sequence numbers.
        fn open(numbers: [u32; 2], options: (bool, bool, bool)) -> Self {
            let (timestamps, sack, scales) = options;
            let hello = Hello {
                segment: WireSegment {
                    sack_permitted: sack,
                    timestamps: timestamps.then_some((77, 0)),
                    scale: scales.then_some(7),
                    mss: Some(1400),
                    window: 60_000,
                    ..WireSegment::new(addresses(), 0)
                },
            };
            let now = Time::from_secs(3);
            // Each one's SYN is the other's hello.
            let syn = Hello { segment: TcpEnd::syn(&hello, numbers[0], now) };
            let mut answering = TcpEnd::answer(&syn, setup(numbers[1]), now);
            let mut answer = None;
            let none = StreamBuffer::default();
            answering.transmit(now, &none, &mut |packet| {
                answer = WireSegment::read(&packet[OFFSET..]).map(|(segment, _)| segment);
            });
            let answer = Hello { segment: answer.expect("a SYN is answered") };
            assert!(answer.segment.syn && answer.segment.ack == Some(numbers[0].wrapping_add(1)));
            let later = now + Span::from_millis(20);
            let asking = TcpEnd::open(&answer, setup(numbers[0]), now, later);
            Self {
                ends: [asking, answering],
                out: Default::default(),
                into: Default::default(),
                wires: Default::default(),
                now: later,
            }
        }

        fn write(&mut self, side: usize, at: u64, data: &[u8]) {
            self.out[side].put(at, data);
            self.ends[side].write(Bytes::new(data.len() as u64));
        }

        /// Runs until nothing is due or `end` has come; `fate` returns for each packet whether it is lost, and its extra delay.
        fn play(&mut self, end: Time, mut fate: impl FnMut() -> (bool, Span)) {
            loop {
                for side in 0..2 {
                    let (now, wire) = (self.now, &mut self.wires[1 - side]);
                    self.ends[side].transmit(now, &self.out[side], &mut |packet| {
                        let (is_lost, later) = fate();
                        if !is_lost {
                            let at = now + Span::from_millis(10) + later;
                            let place = wire.partition_point(|(other, _)| *other <= at);
                            wire.insert(place, (at, packet[OFFSET..].to_vec()));
                        }
                    });
                }
                let under_way = self.wires.iter().filter_map(|wire| Some(wire.front()?.0));
                let due = self.ends.iter().map(TcpEnd::next_deadline);
                let next = under_way.chain(due).fold(Time::MAX, Time::min).max(self.now);
                if next > end {
                    return;
                }
                self.now = next;
                for side in 0..2 {
                    self.ends[side].on_deadline(next);
                    while self.wires[side].front().is_some_and(|(at, _)| *at <= next) {
                        let Some((_, packet)) = self.wires[side].pop_front() else { break };
                        let (segment, payload) = WireSegment::read(&packet).expect("an end wrote it");
                        let (into, out) = (&mut self.into[side], &mut self.out[side]);
                        self.ends[side].on_segment(next, &segment, &packet[payload], into, out);
                    }
                }
            }
        }
    }

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 31 + at / 1000) as u8).collect()
    }

    #[test]
    fn a_sample_of_the_rtt_is_the_way_there_and_back_and_the_window_is_kept() {
        let mut pair = Pair::open([5, 9], (true, true, true));
        pair.write(0, 0, &content(200_000));
        pair.play(pair.now + Span::from_millis(15), || (false, Span::ZERO));
        assert_eq!(pair.ends[1].delivered(), 5_000 / 1388 * 1388, "no more than it was told");
        let rtt = pair.ends[0].sender().rtt().latest().expect("there are samples");
        assert_eq!(rtt, Span::from_millis(20));
        pair.ends[1].set_window_limit(Bytes::new(1 << 20));
        pair.play(Time::from_secs(9), || (false, Span::ZERO));
        assert_eq!(pair.ends[1].delivered(), 200_000);
        assert!(pair.ends.iter().all(|end| !end.is_over()), "nobody has closed");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Under any loss, delay, initial numbers and options, payload arrives unchanged and both ends close.
        #[test]
        fn payload_arrives_as_it_was_and_both_ends_close(
            numbers in prop::array::uniform2(prop_oneof![any::<u32>(), (0..50_000_u32).prop_map(|below| u32::MAX - below)]),
            lengths in prop::array::uniform2(0..120_000_usize),
            loss in 0..8_u64,
            jitter in 0..5_u64,
            seed in any::<u64>(),
            options in any::<(bool, bool, bool)>(),
        ) {
            let mut pair = Pair::open(numbers, options);
            for (side, length) in lengths.into_iter().enumerate() {
                pair.ends[side].set_window_limit(Bytes::new(1 << 20));
                pair.write(side, 0, &content(length));
                pair.ends[side].close();
            }
            let mut random = seed;
            pair.play(Time::from_secs(600), || {
                random = ranpace_network::random::mix(random, 1);
                (random % 100 < loss, Span::from_micros((random >> 32) % 1_000 * jitter))
            });
            for side in 0..2 {
                let got = &pair.ends[side];
                prop_assert!(got.has_ended() && got.delivered() == lengths[1 - side] as u64,
                    "{side}: {} of {}", got.delivered(), lengths[1 - side]);
                prop_assert!(got.is_over());
                let mut all = Vec::new();
                pair.into[side].copy(0, lengths[1 - side], &mut all);
                prop_assert_eq!(all, content(lengths[1 - side]));
            }
        }

        /// For any input of a peer nothing breaks, and no more than the limit is kept.
        #[test]
        fn nonsense_of_a_peer_breaks_nothing(
            segments in prop::collection::vec(
                (any::<(u32, Option<u32>, u16)>(), any::<[bool; 4]>(), any::<Option<(u32, u32)>>(),
                 prop::collection::vec(any::<(u32, u32)>(), 0..4), 0..1500_usize), 1..60),
            near in any::<bool>(),
        ) {
            let mut pair = Pair::open([1_000, 2_000], (true, true, true));
            pair.write(0, 0, &content(50_000));
            for ((seq, ack, window), [syn, fin, push, ours], timestamps, sack, length) in segments {
                // Near to valid values, or anywhere.
                let seq = if near { 2_001 + seq % 100_000 } else { seq };
                let ack = if ours { Some(1_001 + ack.unwrap_or(0) % 60_000) } else { ack };
                let segment = WireSegment {
                    ack, syn, fin, push, window, timestamps, sack,
                    ..WireSegment::new(addresses().reversed(), seq)
                };
                let now = pair.now + Span::from_millis(1);
                let (into, out) = (&mut pair.into[0], &mut pair.out[0]);
                pair.ends[0].on_segment(now, &segment, &content(length), into, out);
                pair.now = now;
                pair.ends[0].on_deadline(now);
                let mut sent = 0;
                pair.ends[0].transmit(now, &pair.out[0], &mut |_| sent += 1);
                prop_assert!(sent < 1_000);
            }
        }
    }
}
