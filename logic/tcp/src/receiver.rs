//! The receiving half of a TCP connection, sans-IO.
//!
//! Source: Linux 6.x's `tcp_input.c`: delayed ACKs by count and timer with quick ACKs at the start and out of order (RFC
//! 5681), SACK with the most recent block first (RFC 2018), DSACK (RFC 2883), timestamps (RFC 7323), ECN echo (RFC 3168),
//! receive-window autotuning (`tcp_rcv_space_adjust`). The application reads at once.

use ranpace_cc::{ControlChannel, RadioHint, Received, ReceiverHalf, ReceiverReport};
use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::config::{Config, LINEAR_SYNS, Opener, SYN_OPTIONS, TIMESTAMPS};
use crate::ecn::{EcnArrivals, EcnFeedback, OPTION};
use crate::ranges::Ranges;
use crate::segment::{Kind, SackBlock, Segment};

/// Blocks remembered, most recent first: as many as an option can hold.
const BLOCKS: usize = 4;

/// The receiving half of a connection. See the module documentation.
#[derive(Debug)]
pub struct Receiver {
    config: Config,
    half: Option<Box<dyn ReceiverHalf>>,
    /// Next byte expected.
    next: u64,
    ranges: Ranges,
    /// Starting points of the most recently changed ranges, most recent first.
    recent: [Option<u64>; BLOCKS],
    duplicate: Option<u64>,
    /// Timestamp to echo, and the last acknowledgement sent (RFC 7323, 4.3).
    echo: Time,
    last_acked: u64,
    /// An acknowledgement is due now, or at this time.
    ack_now: bool,
    ack_at: Option<Time>,
    /// Number of further acknowledgements that are not delayed.
    quick: u32,
    data_at: Time,
    /// The ECN feedback agreed on, the classic echo, and what accurate feedback counts.
    ecn: EcnFeedback,
    ecn_echo: bool,
    ecn_arrivals: EcnArrivals,
    /// The window offered, its bounds, and the last right edge announced.
    window: u64,
    window_max: u64,
    clamp: u64,
    edge: u64,
    /// Autotuning: the round's beginning in time and bytes, and the bytes received in the previous round.
    round_at: Time,
    round_next: u64,
    space: u64,
    rtt: Span,
    rtt_mark: Time,
    pending: Option<Kind>,
    /// When the SYN, or the request carried by the handshake's last segment, is repeated, and how often it has been.
    open_at: Option<(Time, u32)>,
    request_at: Option<(Time, u32)>,
    opened_at: Time,
    rtt_at_opening: Span,
    established: bool,
    /// Whether the receiver half has been told that the connection begins.
    half_began: bool,
    peer_timestamp: Time,
    acks_sent: u64,
}

impl Receiver {
    /// A closed receiver; `half` is the algorithm's receiver half, if it has one.
    pub fn new(config: &Config, half: Option<Box<dyn ReceiverHalf>>) -> Self {
        let window = config.receive_buffer.get().min(config.receive_buffer_max.get());
        Self {
            half,
            next: 0,
            ranges: Ranges::default(),
            recent: [None; BLOCKS],
            duplicate: None,
            echo: Time::ZERO,
            last_acked: 0,
            ack_now: false,
            ack_at: None,
            quick: quick_acks(config, window),
            data_at: Time::MAX,
            ecn: EcnFeedback::Off,
            ecn_echo: false,
            ecn_arrivals: EcnArrivals::default(),
            window,
            window_max: config.receive_buffer_max.get(),
            clamp: u64::MAX,
            edge: window,
            round_at: Time::ZERO,
            round_next: 0,
            // Linux `tcp_init_buffer_space`: the initial window of a standard sender.
            space: window.min(10 * config.mss().get()),
            rtt: Span::ZERO,
            rtt_mark: Time::ZERO,
            pending: None,
            open_at: None,
            request_at: None,
            opened_at: Time::ZERO,
            rtt_at_opening: Span::ZERO,
            established: false,
            half_began: false,
            peer_timestamp: Time::ZERO,
            acks_sent: 0,
            config: config.clone(),
        }
    }

    /// Opens the connection with a SYN, if this side does; the handshake's last segment carries its request.
    pub fn open(&mut self, now: Time) {
        if self.config.opener == Opener::Receiver && self.open_at.is_none() && !self.established {
            self.pending = Some(Kind::Syn);
            self.open_at = Some((now + self.config.initial_rto, 0));
            self.opened_at = now;
        }
    }

    /// Payload handed to the application, in order.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.next)
    }

    /// Acknowledgements sent.
    pub fn acks_sent(&self) -> u64 {
        self.acks_sent
    }

    /// The window offered.
    pub fn window(&self) -> Bytes {
        Bytes::new(self.window.min(self.clamp))
    }

    /// Bounds the window from outside, as a proxy's buffer fills and drains; the right edge never moves back. The next
    /// acknowledgement announces it, and one is triggered only if it at least doubles what the peer may send (Linux
    /// `tcp_cleanup_rbuf`; silly window avoidance of RFC 9293, 3.8.6.2.2).
    ///
    /// Before anything has been announced to the peer, the limit applies from the first segment on.
    pub fn set_window_limit(&mut self, limit: Bytes) {
        self.clamp = limit.get();
        if !self.established && self.pending.is_none() && self.open_at.is_none() {
            self.edge = self.next + self.window.min(self.clamp);
        }
        let (room, offered) = (self.window.min(self.clamp), self.edge - self.next.min(self.edge));
        let segment = self.config.mss().get().min(self.window / 2);
        self.ack_now |= self.established && room >= segment && room >= 2 * offered;
    }

    /// Reads one field of each part of the state; see [`crate::prefetch`].
    #[inline]
    pub(crate) fn read_state(&self) -> u64 {
        u64::from(self.recent[0].is_some())
            ^ u64::from(self.ack_at.is_some())
            ^ u64::from(self.ranges.is_empty())
            ^ self.config.ack_delay.as_nanos()
            ^ self.next
            ^ self.edge
            ^ self.acks_sent
    }

    /// The algorithm's receiver half, for series; `None` if it has none.
    pub fn half(&self) -> Option<&dyn ReceiverHalf> {
        self.half.as_deref()
    }

    /// A slot of the serving cell's control channel, for the receiver half.
    pub fn on_cell(&mut self, now: Time, channel: &ControlChannel<'_>) {
        if let Some(half) = &mut self.half {
            half.on_cell(now, channel);
        }
    }

    /// Radio information of the device's own modem, for the receiver half.
    pub fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        if let Some(half) = &mut self.half {
            half.on_radio(now, hint);
        }
    }

    /// Processes a segment from the peer.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        match segment.kind {
            Kind::Syn => {
                self.pending = Some(Kind::SynAck);
                self.ecn = segment.ecn_feedback().min(self.config.ecn_feedback());
                self.echo = segment.timestamp;
                self.begin_half(now);
            }
            Kind::SynAck => {
                // Establishes the connection, or repeats a lost segment: the ACK with the request answers it either way.
                self.echo = segment.timestamp;
                self.ecn = segment.ecn_feedback().min(self.config.ecn_feedback());
                self.establish(now);
                self.pending = Some(Kind::Ack);
                if let Some((_, repeats)) = self.open_at.take() {
                    let rtt = if repeats == 0 { now - self.opened_at } else { self.config.initial_rto };
                    self.rtt_at_opening = rtt;
                    self.request_at = Some((now + self.timeout(rtt), 0));
                }
            }
            Kind::Ack => {
                self.establish(now);
                self.request_at = None;
            }
            Kind::Data => self.on_data(now, segment),
            Kind::Datagram | Kind::Feedback => {}
        }
    }

    fn establish(&mut self, now: Time) {
        if !core::mem::replace(&mut self.established, true) {
            self.begin_half(now);
        }
    }

    /// Starts the receiver half at the peer's first segment, since the response may already carry a report.
    fn begin_half(&mut self, now: Time) {
        if !core::mem::replace(&mut self.half_began, true)
            && let Some(half) = &mut self.half
        {
            half.on_start(now);
        }
    }

    fn on_data(&mut self, now: Time, segment: &Segment) {
        self.establish(now);
        self.request_at = None;
        // After a pause longer than a timeout the sender may have restarted: acknowledgements are not delayed for a while.
        if now - self.data_at
            > self.timeout(if self.rtt.is_zero() { self.config.initial_rto } else { self.rtt })
        {
            self.hurry(self.config.quick_acks);
        }
        self.data_at = now;
        if let Some(half) = &mut self.half
            && segment.length > 0
        {
            half.on_data(&Received {
                now,
                number: None,
                bytes: Bytes::new(u64::from(segment.length)),
                wire: segment.wire_size(),
                sent_at: segment.timestamp,
                time_to_next: Span::ZERO,
                rtt: (!self.rtt.is_zero()).then_some(self.rtt),
            });
        }
        match self.ecn {
            EcnFeedback::Off => {}
            // The sender's window may be very small now (Linux `tcp_ecn_accept_cwr`, `tcp_ecn_check_ce`).
            EcnFeedback::Classic => {
                if segment.cwr {
                    self.ecn_echo = false;
                    self.ack_now = true;
                }
                if segment.ecn == Ecn::Ce && !self.ecn_echo {
                    self.ecn_echo = true;
                    self.hurry(2);
                }
            }
            EcnFeedback::Accurate => {
                self.ack_now |= self.ecn_arrivals.on_data(segment.ecn, segment.length);
            }
        }
        self.measure_rtt(now, segment);
        let (from, to) = (segment.seq, segment.seq + u64::from(segment.length));
        // RFC 7323, 4.3: echo the segment that advanced the last acknowledgement.
        if segment.timestamp >= self.peer_timestamp && from <= self.last_acked {
            self.peer_timestamp = segment.timestamp;
            self.echo = segment.timestamp;
        }
        if segment.length == 0 {
            self.ack_now = true; // a window probe
        } else if to <= self.next {
            self.duplicate = Some(from);
            self.ack_now = true;
            self.hurry(self.config.quick_acks);
        } else if from <= self.next {
            let had_holes = !self.ranges.is_empty();
            self.next = if had_holes { self.ranges.advance(to) } else { to };
            if had_holes {
                self.ack_now = true;
                for slot in &mut self.recent {
                    *slot = slot.filter(|&seq| seq >= self.next);
                }
            }
            self.adjust_window(now);
            // More than one full segment, by default (Linux `__tcp_ack_snd_check`).
            let least = u64::from(self.config.ack_every.saturating_sub(1)) * self.config.mss().get();
            let pushed = self.config.gso && segment.push;
            if self.quick > 0 || pushed || self.next - self.last_acked > least {
                self.ack_now = true;
            } else if self.ack_at.is_none() {
                self.ack_at = Some(now + self.config.ack_delay);
            }
        } else {
            let (range, new) = self.ranges.insert(from, to);
            if !new {
                self.duplicate = Some(from);
            }
            self.remember(range.0);
            self.ack_now = true;
        }
    }

    /// Sends at least `count` acknowledgements without delay.
    fn hurry(&mut self, count: u32) {
        self.quick = self.quick.max(count.min(quick_acks(&self.config, self.window.min(self.clamp))));
    }

    /// An estimate of this side's retransmission timeout at this RTT.
    fn timeout(&self, rtt: Span) -> Span {
        rtt + (rtt * 2).max(self.config.min_rto)
    }

    /// Moves a range to the front of those to report.
    fn remember(&mut self, start: u64) {
        // Merged ranges leave one entry.
        let mut kept = [Some(start), None, None, None];
        let others = self.recent.iter().flatten().filter(|&&seq| {
            seq != start && self.ranges.containing(seq).is_some_and(|(first, _)| first != start)
        });
        for (slot, &seq) in kept.iter_mut().skip(1).zip(others) {
            *slot = Some(seq);
        }
        self.recent = kept;
    }

    /// Receiver-side RTT by echoed timestamps; the sender's echo advances once a round trip.
    fn measure_rtt(&mut self, now: Time, segment: &Segment) {
        if segment.echo > self.rtt_mark {
            let sample = now - segment.echo;
            self.rtt = if self.rtt.is_zero() { sample } else { (self.rtt * 7 + sample) / 8 };
            self.rtt_mark = segment.echo;
        }
    }

    /// Linux `tcp_rcv_space_adjust`: twice the bytes of the last round trip, and more while they increase.
    fn adjust_window(&mut self, now: Time) {
        if self.rtt.is_zero() || now - self.round_at < self.rtt {
            return;
        }
        let came = self.next - self.round_next;
        if came > self.space {
            let mut window = came * 2 + 16 * self.config.mss().get();
            let growth = window.saturating_mul(came - self.space) / self.space.max(1);
            window = window.saturating_add(growth.saturating_mul(2));
            self.window = self.window.max(window).min(self.window_max);
            self.space = came;
        }
        self.round_at = now;
        self.round_next = self.next;
    }

    /// When to call [`Self::on_deadline`] next; [`Time::MAX`] for never.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        let mut at = self.ack_at.unwrap_or(Time::MAX);
        for (again, _) in [self.open_at, self.request_at].into_iter().flatten() {
            at = at.min(again);
        }
        if let Some(own) = self.half.as_ref().and_then(|half| half.next_deadline()) {
            at = at.min(own);
        }
        at
    }

    /// Processes due deadlines; does nothing if none is due.
    pub fn on_deadline(&mut self, now: Time) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_now = true;
        }
        if let Some((at, repeats)) = self.open_at
            && at <= now
        {
            self.pending = Some(Kind::Syn);
            let doublings = (repeats + 1).saturating_sub(LINEAR_SYNS).min(6);
            self.open_at = Some((now + self.config.initial_rto * (1 << doublings), repeats + 1));
        }
        if let Some((at, repeats)) = self.request_at
            && at <= now
        {
            self.pending = Some(Kind::Ack);
            let wait = self.timeout(self.rtt_at_opening) * (2 << repeats);
            self.request_at = (repeats < REQUESTS).then(|| (now + wait, repeats + 1));
        }
        if let Some(half) = &mut self.half
            && half.next_deadline().is_some_and(|at| at <= now)
        {
            self.ack_now |= half.on_deadline(now) && self.established;
        }
    }

    /// The next segment to send now. Call until `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let mut segment = Segment::new(Kind::Ack, now);
        self.transmit(now, &mut segment).then_some(segment)
    }

    /// Like [`Self::poll_transmit`], but writes the segment in place; see [`crate::Sender::transmit`].
    pub fn transmit(&mut self, now: Time, out: &mut Segment) -> bool {
        if let Some(kind) = self.pending.take() {
            *out = Segment::new(kind, now);
            out.ack = self.next;
            out.window = self.offer();
            out.echo = self.echo;
            // The options of a SYN-ACK take 20 of 40 bytes.
            let free =
                if kind == Kind::SynAck { OPTIONS - SYN_OPTIONS as usize } else { self.free_options() };
            if let Some(half) = &mut self.half
                && kind != Kind::Syn
            {
                out.report = half.report(now).filter(|report| report.option_length() <= free);
            }
            match kind {
                Kind::Syn => out.offer_ecn(self.config.ecn_feedback()),
                Kind::SynAck => out.accept_ecn(self.ecn),
                _ => {}
            }
            out.measure(self.config.timestamps);
            if kind == Kind::Ack && self.config.opener == Opener::Receiver {
                out.wire += REQUEST;
            }
            return true;
        }
        if !core::mem::take(&mut self.ack_now) {
            return false;
        }
        *out = Segment::new(Kind::Ack, now);
        let ack = out;
        ack.ack = self.next;
        ack.echo = self.echo;
        ack.ecn_echo = self.ecn_echo;
        ack.accurate = (self.ecn == EcnFeedback::Accurate).then(|| self.ecn_arrivals.echo());
        ack.window = self.offer();
        let mut room = if self.config.timestamps { 3 } else { 4 };
        let free = self.free_options();
        if let Some(half) = &mut self.half {
            // Options take at most 40 bytes: a report displaces blocks; a report that does not fit is not sent.
            ack.report = half.report(now).filter(|report| report.option_length() <= free);
            let taken = ack.report.as_ref().map_or(0, ReceiverReport::option_length);
            room = room.min(free.saturating_sub(taken + 4) / 8);
        }
        if let Some(from) = self.duplicate.take()
            && self.config.sack
        {
            ack.duplicate = u32::try_from(self.next.saturating_sub(from)).ok();
            room -= usize::from(ack.duplicate.is_some()).min(room);
        }
        if !self.ranges.is_empty() && self.config.sack {
            for seq in self.recent.iter().flatten() {
                if room == 0 {
                    break;
                }
                if let Some((from, to)) = self.ranges.containing(*seq)
                    && let (Ok(from), Ok(to)) =
                        (u32::try_from(from - self.next), u32::try_from(to - self.next))
                    && !ack.sack.as_slice().contains(&SackBlock { from, to })
                {
                    ack.sack.push(SackBlock { from, to });
                    room -= 1;
                }
            }
        }
        // Selective acknowledgements come first (RFC 9768, 3.2.3.3).
        if self.config.ecn_option
            && let Some(accurate) = &mut ack.accurate
            && 8 * room as u64 >= OPTION
        {
            accurate.option = Some(self.ecn_arrivals.option());
        }
        self.last_acked = self.next;
        self.quick = self.quick.saturating_sub(1);
        self.ack_at = None;
        self.acks_sent += 1;
        ack.measure(self.config.timestamps);
        true
    }

    /// Bytes left for options beside the timestamps.
    fn free_options(&self) -> usize {
        if self.config.timestamps { OPTIONS - TIMESTAMPS as usize } else { OPTIONS }
    }

    /// The window announced by a segment sent now; the right edge never moves left.
    pub fn offer(&mut self) -> u32 {
        self.edge = self.edge.max(self.next + self.window.min(self.clamp));
        u32::try_from(self.edge - self.next).unwrap_or(u32::MAX)
    }
}

/// Bytes of the request that a fetch sends with the handshake's last segment.
const REQUEST: u32 = 100;
/// Most repetitions of the request if there is no response.
const REQUESTS: u32 = 6;
/// Most bytes of TCP options.
const OPTIONS: usize = 40;

/// Initial acknowledgements that are not delayed: fewer if the window is small (Linux `tcp_incr_quickack`).
fn quick_acks(config: &Config, window: u64) -> u32 {
    let segments = window / (2 * config.mss().get()).max(1);
    config.quick_acks.min(u32::try_from(segments).unwrap_or(u32::MAX).max(2))
}
