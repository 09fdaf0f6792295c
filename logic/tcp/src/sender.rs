//! The sending half of a TCP connection, sans-IO: segments and deadlines go in, segments come out.
//!
//! Source: Linux 6.x's `tcp_input.c`, `tcp_output.c`, `tcp_timer.c` and `tcp_rate.c` as behaviour, with the RFCs they
//! implement: 9293, 5681, 6298, 6675, 6937 (PRR), 8985 (RACK-TLP), 5682 (F-RTO), 3522 (Eifel), 2883 (DSACK), 3168 (ECN),
//! 7661 in spirit. What is simplified is listed in `docs/fidelity.md`.
//!
//! Who owns the window: the control, through [`Window`], outside recovery and wherever it answers `Own`; PRR during
//! recovery and after ECN marks; after a timeout the control again, from one segment.

use ranpace_cc::{
    Ack, Answer, Congestion, CongestionControl, Context, Fate, Pacing, Packet, PepReport, RadioHint,
    RateSample, Sample, Sent, Signal, State, Window,
};
use ranpace_units::{Bytes, Span, Time};

use crate::config::{Config, Opener};
use crate::pacer::{self, Pacer};
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rtt::Rtt;
use crate::scoreboard::{Flags, Record, Scoreboard};
use crate::segment::{Kind, Segment};

/// Shortest time of a loss probe and of RACK's timer beyond the RTT (Linux `TCP_TIMEOUT_MIN`, two jiffies of a
/// millisecond).
const TIMEOUT_MIN: Span = Span::from_millis(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    SynSent {
        at: Time,
    },
    /// The SYN-ACK was sent.
    Answered {
        at: Time,
    },
    Established,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerKind {
    Retransmission,
    Probe,
    Reordering,
    Persist,
}

/// What is needed to take a reduction back.
#[derive(Clone, Copy, Debug)]
struct Undo {
    prior: Window,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    outstanding: Option<u64>,
    /// When the first retransmission of the episode left.
    first_retransmission: Option<Time>,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Data segments sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail-loss probes.
    pub probes: u64,
    /// Recoveries entered.
    pub recoveries: u64,
    /// Reductions taken back.
    pub undone: u64,
    /// Acknowledgements processed.
    pub acks: u64,
    /// ECN echoes that began a reduction.
    pub ecn_reductions: u64,
}

/// The sending half of a connection. See the module's head.
#[derive(Debug)]
pub struct Sender {
    config: Config,
    control: Box<dyn CongestionControl>,
    wants_packets: bool,
    owns_recovery: bool,
    window: Window,
    phase: Phase,
    mss: u64,
    wire: u64,
    /// First byte not acknowledged, next byte to send, bytes that the application has written so far.
    una: u64,
    next: u64,
    written: u64,
    /// One past the last byte that the peer's window allows.
    edge: u64,
    board: Scoreboard,
    rtt: Rtt,
    rack: Rack,
    pacer: Pacer,
    state: State,
    prr: Option<Prr>,
    /// The episode was answered `Ignore`: retransmit, change nothing.
    ignored: bool,
    /// Recovery ends when this is acknowledged.
    high: u64,
    undo: Option<Undo>,
    /// F-RTO: waiting to see whether the timeout was spurious; and send new data rather than old.
    frto: bool,
    prefer_new: bool,
    /// Delivered and lost segments so far, and the rate sampler's marks.
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    app_limited_until: u64,
    lost: u64,
    number: u64,
    timer: Option<(TimerKind, Time)>,
    backoffs: u32,
    /// A loss probe is out: its end and whether it was a retransmission.
    probe: Option<(u64, bool)>,
    last_sent_at: Time,
    /// Congestion window validation.
    cwnd_limited: bool,
    most_out: u64,
    usage_end: u64,
    used: u64,
    used_at: Time,
    /// CWR is to be said on the next new segment.
    cwr: bool,
    /// A segment without payload that waits to be sent.
    pending: Option<Kind>,
    probe_window: bool,
    /// The segment that a loss probe is to send again.
    probe_again: Option<u64>,
    last_timestamp: Time,
    /// Pacing held the last attempt to send back until then.
    paced_until: Option<Time>,
    stats: SenderStats,
}

impl Sender {
    /// A closed sender.
    pub fn new(config: &Config, control: Box<dyn CongestionControl>) -> Self {
        Self {
            wants_packets: control.wants_packets(),
            owns_recovery: control.owns_recovery(),
            control,
            window: Window::new(f64::from(config.initial_window)),
            phase: Phase::Closed,
            mss: config.mss().get().max(1),
            wire: config.mtu.get(),
            una: 0,
            next: 0,
            written: 0,
            edge: config.receive_buffer.get(),
            board: Scoreboard::default(),
            rtt: Rtt::new(config),
            rack: Rack::new(),
            pacer: Pacer::default(),
            state: State::Open,
            prr: None,
            ignored: false,
            high: 0,
            undo: None,
            frto: false,
            prefer_new: false,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            app_limited_until: 0,
            lost: 0,
            number: 0,
            timer: None,
            backoffs: 0,
            probe: None,
            last_sent_at: Time::ZERO,
            cwnd_limited: false,
            most_out: 0,
            usage_end: 0,
            used: 0,
            used_at: Time::ZERO,
            cwr: false,
            pending: None,
            probe_window: false,
            probe_again: None,
            last_timestamp: Time::ZERO,
            paced_until: None,
            stats: SenderStats::default(),
            config: config.clone(),
        }
    }

    /// Opens the connection with a SYN. Where the receiver opens it, there is nothing to do here.
    pub fn open(&mut self, now: Time) {
        if self.config.opener == Opener::Sender && self.phase == Phase::Closed {
            self.phase = Phase::SynSent { at: now };
            self.pending = Some(Kind::Syn);
            self.arm(TimerKind::Retransmission, now + self.config.initial_rto);
        }
    }

    /// The application writes `bytes` more; [`Bytes::MAX`] for as much as the network takes.
    pub fn write(&mut self, bytes: Bytes) {
        self.written = self.written.saturating_add(bytes.get());
    }

    /// The application has nothing more: what was not sent yet is dropped.
    pub fn stop(&mut self) {
        self.written = self.next;
    }

    /// Whether all that was written has been acknowledged.
    pub fn is_done(&self) -> bool {
        self.una >= self.written
    }

    /// Bytes acknowledged, in order.
    pub fn acked(&self) -> Bytes {
        Bytes::new(self.una)
    }

    /// Bytes sent at least once.
    pub fn sent(&self) -> Bytes {
        Bytes::new(self.next)
    }

    /// The window as it stands.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Loss recovery's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The control, for inspection.
    pub fn control(&self) -> &dyn CongestionControl {
        self.control.as_ref()
    }

    /// RTT estimates.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// Payload of a full segment.
    pub fn mss(&self) -> Bytes {
        Bytes::new(self.mss)
    }

    /// Segments in the network as far as is known.
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// The rate at which segments leave, if they are paced.
    pub fn pacing(&self) -> Pacing {
        match self.window.pacing {
            Pacing::Unlimited if self.config.pacing => {
                pacer::default_rate(self.window.cwnd, self.window.ssthresh, self.rtt.smoothed(), self.wire)
            }
            own => own,
        }
    }

    /// Counters.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// Sets the target of a control that has one; false if it has none.
    pub fn set_target(&mut self, target: Span) -> bool {
        self.control.set_target(target)
    }

    /// Radio information for the control.
    pub fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        let cx = self.context(now);
        self.control.on_radio(&cx, &mut self.window, hint);
    }

    /// A proxy's report for the control.
    pub fn on_pep(&mut self, now: Time, report: &PepReport) {
        let cx = self.context(now);
        self.control.on_pep(&cx, &mut self.window, report);
    }

    /// The path is another one.
    pub fn on_path_change(&mut self, now: Time) {
        let cx = self.context(now);
        self.control.on_path_change(&cx, &mut self.window);
    }

    #[inline]
    fn context(&self, now: Time) -> Context {
        Context {
            now,
            mss: Bytes::new(self.mss),
            wire: Bytes::new(self.wire),
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            in_flight: self.board.in_flight(),
            delivered: self.delivered,
            lost: self.lost,
            next_packet: self.number,
            state: self.state,
            cwnd_limited: self.is_cwnd_limited(),
            app_limited: self.app_limited_until > 0,
        }
    }

    /// Linux `tcp_is_cwnd_limited`.
    #[inline]
    fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited || (self.window.in_slow_start() && self.window.cwnd < (2 * self.most_out) as f64)
    }

    /// A segment came from the peer. Returns the RTT sample it gave, if any.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> Option<Span> {
        match (self.phase, segment.kind) {
            (Phase::SynSent { at }, Kind::SynAck) => {
                self.edge = u64::from(segment.window);
                self.last_timestamp = segment.timestamp;
                self.establish(now, now - at);
                None
            }
            (Phase::Closed | Phase::Answered { .. }, Kind::Syn) => {
                self.phase = Phase::Answered { at: now };
                self.last_timestamp = segment.timestamp;
                self.pending = Some(Kind::SynAck);
                self.arm(TimerKind::Retransmission, now + self.config.initial_rto);
                None
            }
            (Phase::Answered { at }, Kind::Ack) => {
                self.edge = u64::from(segment.window);
                self.last_timestamp = segment.timestamp;
                self.establish(now, now - at);
                None
            }
            (Phase::Established, Kind::Ack) => self.on_ack(now, segment),
            (Phase::Established, Kind::SynAck) => {
                // Our last segment of the handshake was lost; data say the same.
                if self.board.is_empty() {
                    self.pending = Some(Kind::Ack);
                }
                None
            }
            _ => None,
        }
    }

    fn establish(&mut self, now: Time, rtt: Span) {
        self.phase = Phase::Established;
        self.timer = None;
        // After a lost SYN the window begins at one segment (RFC 6298, 5.7) and the sample is ambiguous (Karn).
        if self.backoffs > 0 {
            self.window.cwnd = 1.0;
        } else {
            self.rtt.note(now, rtt);
            self.rtt.on_sample(rtt, self.una, self.next);
        }
        self.backoffs = 0;
        self.used_at = now;
        self.last_sent_at = now;
        (self.delivered_at, self.first_sent_at) = (now, now);
        let cx = self.context(now);
        self.control.on_start(&cx, &mut self.window);
        if self.config.opener == Opener::Sender && self.written == self.next {
            self.pending = Some(Kind::Ack);
        }
    }

    fn on_ack(&mut self, now: Time, segment: &Segment) -> Option<Span> {
        self.stats.acks += 1;
        if segment.ack > self.next {
            return None; // acknowledges what was never sent
        }
        self.last_timestamp = self.last_timestamp.max(segment.timestamp);
        self.edge = self.edge.max(segment.ack + u64::from(segment.window));
        if let Some(report) = &segment.report {
            let cx = self.context(now);
            self.control.on_report(&cx, &mut self.window, report);
        }
        let mut progress = Progress::new(self.board.in_flight());
        self.take_acked(now, segment.ack, &mut progress);
        self.take_sacked(now, segment, &mut progress);
        if let Some(below) = segment.duplicate {
            self.rack.on_duplicate(segment.ack.saturating_sub(u64::from(below)), self.next);
            if let Some(undo) = &mut self.undo {
                undo.outstanding = undo.outstanding.map(|count| count.saturating_sub(1));
            }
        }
        // Limits of the application end when what was in flight then is delivered.
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if progress.advanced {
            self.backoffs = 0;
            if self.timer.is_some_and(|(kind, _)| kind == TimerKind::Persist) || self.board.is_empty() {
                self.timer = None;
            }
        }
        let rate = self.rate_sample(now, &progress);
        let rtt = self.sample_rtt(now, segment, &progress);
        if progress.delivered > 0 {
            let sample = Sample {
                delivered: progress.delivered,
                bytes: Bytes::new(progress.bytes),
                rtt,
                one_way: self.config.timestamps.then(|| segment.timestamp - segment.echo),
                in_flight_at_send: u64::from(progress.newest.map_or(0, |newest| newest.in_flight)),
            };
            let cx = self.context(now);
            self.control.on_sample(&cx, &mut self.window, &sample);
        }
        if segment.ecn_echo {
            self.on_ecn(now);
        }
        let lost = self.detect_losses(now);
        self.check_probe(now, segment, &progress);
        self.advance_state(now, segment, &progress);
        self.control_window(now, segment, &progress, rate, rtt, lost);
        self.rearm(now, progress.advanced);
        rtt
    }

    /// Takes off what is acknowledged cumulatively.
    fn take_acked(&mut self, now: Time, ack: u64, progress: &mut Progress) {
        if ack > self.una {
            progress.advanced = true;
            self.una = ack;
        }
        while let Some(record) = self.board.pop_acked(ack) {
            progress.acked += 1;
            if !record.flags.has(Flags::SACKED) {
                // Delivered out of order and never sent again: the network reorders.
                if record.end() < self.board.highest_sacked && !record.flags.has(Flags::EVER_RETRANSMITTED) {
                    self.rack.reordering_seen = true;
                }
                if !record.flags.has(Flags::EVER_RETRANSMITTED) {
                    progress.first_acked.get_or_insert(record.sent_at);
                    progress.last_acked = Some(record.sent_at);
                }
                self.deliver(now, &record, progress);
            }
        }
    }

    /// Marks what is acknowledged selectively.
    fn take_sacked(&mut self, now: Time, segment: &Segment, progress: &mut Progress) {
        if segment.sack.as_slice().is_empty() {
            return;
        }
        let mut board = core::mem::take(&mut self.board);
        let highest = board.highest_sacked;
        board.mark_sacked(segment.ack, &segment.sack, |record| {
            if !record.flags.has(Flags::EVER_RETRANSMITTED) {
                if record.end() < highest {
                    self.rack.reordering_seen = true;
                }
                progress.first_sacked.get_or_insert(record.sent_at);
                progress.last_sacked = Some(record.sent_at);
            }
            progress.sacked = true;
            self.deliver(now, record, progress);
        });
        self.board = board;
    }

    /// One segment is at the receiver for the first time (`record` as it was).
    #[inline]
    fn deliver(&mut self, now: Time, record: &Record, progress: &mut Progress) {
        self.delivered += 1;
        self.delivered_at = now;
        progress.delivered += 1;
        progress.bytes += u64::from(record.length);
        progress.original |= !record.flags.has(Flags::EVER_RETRANSMITTED);
        self.rack.on_delivered(record, now, self.rtt.min());
        // The most recently sent one makes the rate sample.
        if progress.newest.is_none_or(|newest| (record.sent_at, record.seq) >= (newest.sent_at, newest.seq)) {
            progress.newest = Some(*record);
            self.first_sent_at = record.sent_at;
        }
        if self.wants_packets {
            let rtt = now - record.sent_at;
            let fate = Fate::Acked { rtt, one_way: None };
            let packet = Packet {
                number: record.number,
                bytes: Bytes::new(u64::from(record.length)),
                sent_at: record.sent_at,
                fate,
            };
            let cx = self.context(now);
            self.control.on_packet(&cx, &mut self.window, &packet);
        }
    }

    /// Linux `tcp_rate_gen`; `lost` is filled in once it is known.
    fn rate_sample(&self, now: Time, progress: &Progress) -> RateSample {
        let Some(newest) = &progress.newest else { return RateSample::default() };
        let sending = newest.sent_at - newest.first_sent_at;
        let acking = now - newest.delivered_at;
        let interval = sending.max(acking);
        // Shorter than the smallest RTT: acknowledgements were bunched, the sample means nothing.
        let valid = !interval.is_zero() && interval >= self.rtt.min().min(now - newest.sent_at);
        RateSample {
            delivered: self.delivered - newest.delivered,
            interval: valid.then_some(interval),
            prior_delivered: newest.delivered,
            app_limited: newest.app_limited,
            lost: 0,
            delayed: newest.delivered + 1 == self.delivered && progress.prior_in_flight == 1,
        }
    }

    /// The RTT sample of the newest packet, which also feeds the estimator (Linux `tcp_ack_update_rtt`).
    fn sample_rtt(&mut self, now: Time, segment: &Segment, progress: &Progress) -> Option<Span> {
        let oldest = progress.first_acked.or(progress.first_sacked);
        let newest = progress.last_acked.or(progress.last_sacked);
        let (oldest, newest) = match (oldest, newest) {
            (Some(oldest), Some(newest)) => (now - oldest, now - newest),
            _ if self.config.timestamps && progress.advanced && segment.echo > Time::ZERO => {
                (now - segment.echo, now - segment.echo)
            }
            _ => return None,
        };
        self.rtt.note(now, newest);
        self.rtt.on_sample(oldest, self.una, self.next);
        Some(newest)
    }

    fn on_ecn(&mut self, now: Time) {
        if !self.config.ecn || !matches!(self.state, State::Open | State::Disorder) {
            return;
        }
        let event =
            Congestion { kind: Signal::Ecn, lost: 0, largest: Bytes::ZERO, newest_sent_at: now, first: true };
        let cx = self.context(now);
        let prior = self.window;
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        self.cwr = true;
        self.stats.ecn_reductions += 1;
        self.high = self.next;
        self.state = State::Cwr;
        self.undo = None;
        self.begin_reduction(answer, prior);
    }

    /// What the answer to a sign of congestion means for the window.
    fn begin_reduction(&mut self, answer: Answer, prior: Window) {
        self.ignored = answer == Answer::Ignore;
        self.prr = None;
        if let Answer::ReduceTo(ssthresh) = answer {
            self.window.ssthresh = ssthresh;
            if !self.owns_recovery {
                self.prr = Some(Prr::new(prior.cwnd));
            }
        }
    }

    /// RACK's look at what is outstanding; begins recovery if something is newly lost. Returns how many are.
    fn detect_losses(&mut self, now: Time) -> u64 {
        if !self.rack.take_advanced() || self.board.is_empty() {
            return 0;
        }
        self.sweep(now)
    }

    fn sweep(&mut self, now: Time) -> u64 {
        let repairing = matches!(self.state, State::Recovery | State::Loss);
        let window = self.rack.reordering_window(
            repairing,
            self.board.sacked_out,
            self.rtt.min(),
            self.rtt.smoothed(),
        );
        let mut tally = Tally { collect: self.wants_packets, ..Tally::default() };
        let rack = &self.rack;
        self.board.sweep(|record| rack.verdict(record, now, window), |record| tally.add(record));
        if self.board.in_flight() > 0 && !window.is_zero() {
            // Someone sent earlier than the newest delivered one still has time: look again then.
            let settled = self.rack.settled_at(window);
            if settled > now && self.board.sacked_out > 0 {
                self.arm(TimerKind::Reordering, settled + TIMEOUT_MIN);
            }
        }
        self.on_lost(now, &tally);
        tally.count
    }

    /// Segments were found lost (by RACK or a probe).
    fn on_lost(&mut self, now: Time, tally: &Tally) {
        if tally.count == 0 {
            return;
        }
        self.lost += tally.count;
        self.tell_lost(now, tally);
        let first = !matches!(self.state, State::Recovery | State::Loss);
        let event = Congestion {
            kind: Signal::Loss,
            lost: tally.count,
            largest: Bytes::new(u64::from(tally.largest)),
            newest_sent_at: tally.newest_sent_at,
            first,
        };
        let cx = self.context(now);
        let prior = self.window;
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        if !first {
            return;
        }
        // A reduction after an ECN mark is under way: recovery goes on with it.
        let reducing = self.state == State::Cwr && self.prr.is_some();
        self.stats.recoveries += 1;
        self.state = State::Recovery;
        self.high = self.next;
        self.undo = Some(Undo { prior, outstanding: None, first_retransmission: None });
        if !reducing {
            self.begin_reduction(answer, prior);
        }
    }

    fn tell_lost(&mut self, now: Time, tally: &Tally) {
        if !self.wants_packets {
            return;
        }
        let cx = self.context(now);
        for packet in &tally.packets {
            self.control.on_packet(&cx, &mut self.window, packet);
        }
    }

    /// The answer to a loss probe (RFC 8985, 7.4; Linux `tcp_process_tlp_ack`).
    fn check_probe(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        let Some((end, retransmitted)) = self.probe else { return };
        if segment.ack < end {
            return;
        }
        if !retransmitted || segment.duplicate.is_some() {
            self.probe = None; // new data, or both copies arrived: nothing was lost
        } else if segment.ack > end || (progress.advanced && !progress.sacked) {
            self.probe = None;
            // The probe repaired a loss that nobody would have noticed: the window answers for it.
            if matches!(self.state, State::Open | State::Disorder) {
                let event = Congestion {
                    kind: Signal::Loss,
                    lost: 1,
                    largest: Bytes::new(self.mss),
                    newest_sent_at: self.last_sent_at,
                    first: true,
                };
                let cx = self.context(now);
                let prior = self.window;
                let answer = self.control.on_congestion(&cx, &mut self.window, &event);
                self.lost += 1;
                self.state = State::Cwr;
                self.high = self.next;
                self.undo = None;
                self.begin_reduction(answer, prior);
            }
        }
    }

    /// The end of recovery, spurious ones included.
    fn advance_state(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        match self.state {
            State::Open | State::Disorder => {
                self.state = if self.board.sacked_out > 0 { State::Disorder } else { State::Open };
            }
            State::Cwr => {
                if self.una >= self.high {
                    self.finish_recovery(now);
                }
            }
            State::Recovery => {
                if self.may_undo(segment, progress) {
                    self.undo(now);
                } else if self.una >= self.high {
                    self.finish_recovery(now);
                }
            }
            State::Loss => {
                if self.frto && progress.original && progress.delivered > 0 && self.undo.is_some() {
                    // F-RTO: something that was never sent again arrived after the timeout.
                    self.frto = false;
                    self.undo(now);
                    return;
                }
                if self.may_undo(segment, progress) {
                    self.frto = false;
                    self.undo(now);
                    return;
                }
                if self.una >= self.high {
                    self.frto = false;
                    self.finish_recovery(now);
                } else if self.frto {
                    if progress.advanced && self.next <= self.high {
                        // RFC 5682, step 2b: new data tell whether the timeout was needed.
                        self.prefer_new = true;
                        self.high = self.next;
                    } else if progress.sacked || !progress.advanced {
                        self.frto = false;
                        self.prefer_new = false;
                    }
                }
            }
        }
    }

    /// Eifel (the echo is older than the retransmission) or every retransmission reported as a duplicate.
    fn may_undo(&self, segment: &Segment, progress: &Progress) -> bool {
        let Some(undo) = &self.undo else { return false };
        let eifel = self.config.timestamps
            && progress.advanced
            && segment.echo > Time::ZERO
            && undo.first_retransmission.is_some_and(|at| segment.echo < at);
        eifel || undo.outstanding == Some(0)
    }

    fn undo(&mut self, now: Time) {
        let Some(undo) = self.undo.take() else { return };
        self.stats.undone += 1;
        self.board.unmark_lost();
        self.state = if self.board.sacked_out > 0 { State::Disorder } else { State::Open };
        self.prr = None;
        self.prefer_new = false;
        let cx = self.context(now);
        if self.ignored {
            self.ignored = false;
        } else {
            self.control.on_spurious(&cx, &mut self.window, &undo.prior);
        }
        self.control.on_recovered(&cx, &mut self.window);
    }

    fn finish_recovery(&mut self, now: Time) {
        let ended = self.state;
        self.state = if self.board.sacked_out > 0 { State::Disorder } else { State::Open };
        if self.prr.take().is_some() && ended != State::Loss {
            self.window.cwnd = self.window.ssthresh.max(1.0);
        }
        self.ignored = false;
        self.undo = None;
        self.prefer_new = false;
        if ended != State::Cwr {
            self.rack.on_recovered();
        }
        let cx = self.context(now);
        self.control.on_recovered(&cx, &mut self.window);
    }

    fn control_window(
        &mut self,
        now: Time,
        segment: &Segment,
        progress: &Progress,
        mut rate: RateSample,
        rtt: Option<Span>,
        lost: u64,
    ) {
        if let Some(prr) = &mut self.prr
            && matches!(self.state, State::Recovery | State::Cwr)
        {
            if progress.delivered > 0 || lost > 0 {
                self.window.cwnd = prr.window(
                    self.window.ssthresh,
                    self.board.in_flight(),
                    progress.delivered,
                    progress.advanced,
                    lost > 0,
                );
            }
            if !self.owns_recovery {
                return;
            }
        }
        if progress.delivered == 0 && lost == 0 {
            return;
        }
        rate.lost = lost;
        let ack = Ack {
            acked: progress.acked,
            delivered: progress.delivered,
            bytes: Bytes::new(progress.bytes),
            rtt,
            rate,
            prior_in_flight: progress.prior_in_flight,
            ecn_echo: segment.ecn_echo,
        };
        let cx = self.context(now);
        self.control.on_ack(&cx, &mut self.window, &ack);
    }

    fn arm(&mut self, kind: TimerKind, at: Time) {
        self.timer = Some((kind, at));
    }

    /// Sets the timer after an acknowledgement or a transmission: a loss probe where one may help, else the RTO.
    fn rearm(&mut self, now: Time, advanced: bool) {
        if self.board.is_empty() {
            if self.timer.is_some_and(|(kind, _)| kind != TimerKind::Persist) {
                self.timer = None;
            }
            return;
        }
        let reordering = self.timer.is_some_and(|(kind, at)| kind == TimerKind::Reordering && at > now);
        if reordering || (!advanced && self.timer.is_some()) {
            return;
        }
        let rto_at = now + self.rtt.backed_off(self.backoffs);
        if self.state == State::Open && self.probe.is_none() && !self.rtt.smoothed().is_zero() {
            let mut wait = self.rtt.smoothed() * 2;
            wait += if self.board.packets_out() == 1 { self.config.min_rto } else { TIMEOUT_MIN };
            let at = now + wait;
            if at < rto_at {
                self.arm(TimerKind::Probe, at);
                return;
            }
        }
        self.arm(TimerKind::Retransmission, rto_at);
    }

    /// When [`Self::on_deadline`] is to be called next; [`Time::MAX`] for never.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        let mut at = self.timer.map_or(Time::MAX, |(_, at)| at);
        if let Some(paced) = self.paced_until {
            at = at.min(paced);
        }
        if self.phase == Phase::Established
            && let Some(own) = self.control.next_deadline()
        {
            at = at.min(own);
        }
        at
    }

    /// A deadline has come (or not: then nothing happens). Call [`Self::poll_transmit`] afterwards.
    pub fn on_deadline(&mut self, now: Time) {
        if self.paced_until.is_some_and(|at| at <= now) {
            self.paced_until = None;
        }
        if self.phase == Phase::Established && self.control.next_deadline().is_some_and(|at| at <= now) {
            let cx = self.context(now);
            self.control.on_deadline(&cx, &mut self.window);
        }
        let Some((kind, at)) = self.timer else { return };
        if at > now {
            return;
        }
        self.timer = None;
        match (self.phase, kind) {
            (Phase::SynSent { .. }, _) => self.repeat(now, Kind::Syn),
            (Phase::Answered { .. }, _) => self.repeat(now, Kind::SynAck),
            (_, TimerKind::Retransmission) => self.on_timeout(now),
            (_, TimerKind::Probe) => self.on_probe(now),
            (_, TimerKind::Reordering) => {
                let lost = self.sweep(now);
                if lost > 0
                    && let Some(prr) = &mut self.prr
                {
                    self.window.cwnd =
                        prr.window(self.window.ssthresh, self.board.in_flight(), 1, false, true);
                }
                self.rearm(now, true);
            }
            (_, TimerKind::Persist) => {
                self.probe_window = true;
                self.backoffs += 1;
            }
        }
    }

    fn repeat(&mut self, now: Time, kind: Kind) {
        self.backoffs += 1;
        self.pending = Some(kind);
        self.arm(TimerKind::Retransmission, now + self.rtt.backed_off(self.backoffs));
    }

    /// Linux `tcp_enter_loss`, with F-RTO.
    fn on_timeout(&mut self, now: Time) {
        if self.board.is_empty() {
            return;
        }
        self.stats.timeouts += 1;
        self.backoffs += 1;
        let fresh = !matches!(self.state, State::Recovery | State::Loss) || self.una >= self.high;
        let (rack_rtt, head) = (self.rack.rtt, self.board.first_id());
        let mut tally = Tally { collect: self.wants_packets, ..Tally::default() };
        self.board.mark_all_lost(
            |id, record| id == head || rack_rtt.is_zero() || now - record.sent_at >= rack_rtt,
            |record| tally.add(record),
        );
        self.lost += tally.count;
        self.tell_lost(now, &tally);
        let event = Congestion {
            kind: Signal::Timeout { count: self.backoffs },
            lost: tally.count,
            largest: Bytes::new(u64::from(tally.largest)),
            newest_sent_at: tally.newest_sent_at,
            first: fresh || self.state != State::Loss,
        };
        let cx = self.context(now);
        let prior = self.window;
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        // A second timeout in a row reduces again only where the first made progress.
        if let Answer::ReduceTo(ssthresh) = answer
            && event.first
        {
            self.window.ssthresh = ssthresh;
        }
        if event.first {
            self.undo = Some(Undo { prior, outstanding: None, first_retransmission: None });
        }
        self.ignored = answer == Answer::Ignore;
        if !self.owns_recovery || answer != Answer::Own {
            self.window.cwnd = (self.board.in_flight() + 1) as f64;
        }
        self.prr = None;
        self.probe = None;
        self.frto = fresh;
        self.prefer_new = false;
        self.state = State::Loss;
        self.high = self.next;
        self.arm(TimerKind::Retransmission, now + self.rtt.backed_off(self.backoffs));
    }

    /// RFC 8985, 7.3: new data if there are any, else the last segment again.
    fn on_probe(&mut self, now: Time) {
        let Some(last) = self.board.last_id() else { return };
        self.stats.probes += 1;
        let may_send_new =
            self.next < self.written && self.next + self.mss.min(self.written - self.next) <= self.edge;
        self.probe = Some((self.next, !may_send_new));
        if may_send_new {
            self.pending = Some(Kind::Data);
        } else {
            self.probe_again = Some(last);
        }
        self.arm(TimerKind::Retransmission, now + self.rtt.backed_off(self.backoffs));
    }

    /// The next segment to send now, if the window, the pace and the application allow one. Call until `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        match self.pending {
            None => {}
            Some(Kind::Data) => {
                self.pending = None;
                if let Some(length) = self.new_data() {
                    return Some(self.send_new(now, length));
                }
            }
            Some(kind) => {
                self.pending = None;
                return Some(self.bare(now, kind));
            }
        }
        if self.phase != Phase::Established {
            return None;
        }
        if let Some(id) = self.probe_again.take()
            && self.board.get(id).is_some_and(|record| !record.flags.has(Flags::SACKED))
        {
            return Some(self.send_again(now, id, true));
        }
        if core::mem::take(&mut self.probe_window) {
            self.arm(TimerKind::Persist, now + self.rtt.backed_off(self.backoffs));
            return Some(self.bare(now, Kind::Data));
        }
        let in_flight = self.board.in_flight();
        let cwnd = self.window.cwnd.max(1.0) as u64;
        let new = self.new_data();
        let again = match self.state {
            State::Recovery | State::Loss if !(self.prefer_new && new.is_some()) => self.board.next_lost(),
            _ => None,
        };
        let limited = in_flight >= cwnd;
        if limited || (again.is_none() && new.is_none()) {
            self.end_batch(now, in_flight, limited);
            return None;
        }
        let pacing = self.pacing();
        if !self.pacer.may_send(now, pacing) {
            self.paced_until = Some(self.pacer.next());
            self.end_batch(now, in_flight, false);
            return None;
        }
        self.paced_until = None;
        let segment = match (again, new) {
            (Some(id), _) => self.send_again(now, id, false),
            (None, Some(length)) => self.send_new(now, length),
            (None, None) => return None,
        };
        self.pacer.on_sent(now, pacing, u64::from(segment.wire), self.wire);
        Some(segment)
    }

    /// Payload of the next new segment, if the application and the peer's window have room for one.
    #[inline]
    fn new_data(&self) -> Option<u32> {
        let written = self.written - self.next;
        let buffered = self.next - self.una;
        if written == 0 || buffered >= self.config.send_buffer.get() {
            return None;
        }
        let length = written.min(self.mss);
        let room = self.edge.saturating_sub(self.next);
        // A full segment, or the last piece; a smaller one only if nothing is in flight (silly window syndrome).
        if room >= length {
            Some(length as u32)
        } else if room > 0 && self.board.is_empty() {
            Some(room as u32)
        } else {
            None
        }
    }

    /// A segment without payload: of the handshake, or a window probe.
    fn bare(&mut self, now: Time, kind: Kind) -> Segment {
        let mut segment = Segment::new(kind, now);
        segment.seq = self.next;
        segment.number = self.number;
        segment.window = 65_535;
        segment.echo = self.last_timestamp;
        segment.measured(self.config.timestamps)
    }

    fn data(&self, now: Time, seq: u64, length: u32) -> Segment {
        let mut segment = Segment::new(Kind::Data, now);
        segment.seq = seq;
        segment.length = length;
        segment.number = self.number;
        segment.echo = self.last_timestamp;
        segment.window = 65_535;
        segment.ect = self.config.ecn;
        segment.measured(self.config.timestamps)
    }

    #[inline]
    fn send_new(&mut self, now: Time, length: u32) -> Segment {
        if self.board.is_empty() {
            self.restart(now);
        }
        let mut segment = self.data(now, self.next, length);
        segment.cwr = core::mem::take(&mut self.cwr);
        self.next += u64::from(length);
        self.board.push(Record {
            seq: segment.seq,
            length,
            flags: Flags::default(),
            number: self.number,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: self.board.in_flight() as u32,
            app_limited: self.app_limited_until > 0,
        });
        if self.timer.is_none() {
            self.rearm(now, true);
        }
        self.after_sending(now, length, false);
        segment
    }

    /// Sends a segment again, because it is lost or as a probe of the tail.
    fn send_again(&mut self, now: Time, id: u64, probing: bool) -> Segment {
        let (number, delivered, delivered_at, first) =
            (self.number, self.delivered, self.delivered_at, self.first_sent_at);
        let (in_flight, app_limited) = (self.board.in_flight() as u32, self.app_limited_until > 0);
        let (mut seq, mut length) = (self.una, 0);
        if let Some(record) = self.board.get_mut(id) {
            (seq, length) = (record.seq, record.length);
            (record.number, record.sent_at) = (number, now);
            (record.delivered, record.delivered_at, record.first_sent_at) = (delivered, delivered_at, first);
            (record.in_flight, record.app_limited) = (in_flight, app_limited);
            record.flags.set(Flags::EVER_RETRANSMITTED);
        }
        let mut segment = self.data(now, seq, length);
        segment.retransmission = true;
        segment.ect = false; // RFC 3168, 6.1.5
        self.board.on_retransmitted(id, number);
        self.stats.retransmitted += 1;
        if let Some(undo) = &mut self.undo
            && !probing
        {
            undo.first_retransmission.get_or_insert(now);
            undo.outstanding = Some(undo.outstanding.unwrap_or(0) + 1);
        }
        if self.timer.is_none() {
            self.rearm(now, true);
        }
        self.after_sending(now, length, true);
        segment
    }

    #[inline]
    fn after_sending(&mut self, now: Time, length: u32, retransmission: bool) {
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
        let sent = Sent { number: self.number, bytes: Bytes::new(u64::from(length)), retransmission };
        self.number += 1;
        self.stats.sent += 1;
        self.last_sent_at = now;
        let cx = self.context(now);
        self.control.on_sent(&cx, &mut self.window, &sent);
    }

    /// Nothing is in flight and a segment is about to leave: the rate sampler starts afresh, and after idle time the window
    /// decays (Linux `tcp_cwnd_restart`), unless the control is its own master.
    fn restart(&mut self, now: Time) {
        (self.first_sent_at, self.delivered_at) = (now, now);
        let idle = now - self.last_sent_at;
        if self.delivered == 0 || idle.is_zero() {
            return;
        }
        let rto = self.rtt.rto();
        if self.config.slow_start_after_idle && !self.owns_recovery && idle > rto && self.state == State::Open
        {
            self.window.ssthresh = self.current_ssthresh();
            let least = f64::from(self.config.initial_window).min(self.window.cwnd);
            let mut left = idle;
            while left > rto && self.window.cwnd > least {
                self.window.cwnd /= 2.0;
                left -= rto;
            }
            self.window.cwnd = self.window.cwnd.max(least);
            self.used_at = now;
            self.used = 0;
        }
        let cx = self.context(now);
        self.control.on_idle_restart(&cx, &mut self.window, idle);
    }

    /// Linux `tcp_current_ssthresh`: never forgets more than a quarter of the window.
    fn current_ssthresh(&self) -> f64 {
        if matches!(self.state, State::Cwr | State::Recovery) {
            self.window.ssthresh
        } else {
            self.window.ssthresh.max(0.75 * self.window.cwnd)
        }
    }

    /// Everything that may be sent has been: notes what held the sender back (Linux `tcp_cwnd_validate`).
    fn end_batch(&mut self, now: Time, in_flight: u64, limited: bool) {
        let out = self.board.packets_out();
        if self.una >= self.usage_end || limited || (!self.cwnd_limited && out > self.most_out) {
            self.cwnd_limited = limited;
            self.most_out = out;
            self.usage_end = self.next;
        }
        if self.is_cwnd_limited() {
            self.used = 0;
            self.used_at = now;
        } else {
            self.used = self.used.max(out);
            if self.config.slow_start_after_idle
                && !self.owns_recovery
                && now - self.used_at >= self.rtt.rto()
                && self.state == State::Open
            {
                // Linux `tcp_cwnd_application_limited`.
                let used = (self.used as f64).max(f64::from(self.config.initial_window));
                if used < self.window.cwnd {
                    self.window.ssthresh = self.current_ssthresh();
                    self.window.cwnd = (self.window.cwnd + used) / 2.0;
                }
                self.used = 0;
                self.used_at = now;
            }
        }
        if !limited && self.next >= self.written && self.board.lost_out <= self.board.retransmitted_out {
            self.app_limited_until = (self.delivered + in_flight).max(1);
            self.pacer.on_idle();
        }
        // The peer's window is shut and nothing is in flight: probe it.
        if self.board.is_empty() && self.written > self.next && self.edge <= self.next && self.timer.is_none()
        {
            self.arm(TimerKind::Persist, now + self.rtt.backed_off(self.backoffs));
        }
    }
}

/// What one acknowledgement did.
#[derive(Clone, Copy, Debug)]
struct Progress {
    prior_in_flight: u64,
    /// The cumulative acknowledgement moved.
    advanced: bool,
    /// Something was newly acknowledged selectively.
    sacked: bool,
    acked: u64,
    delivered: u64,
    bytes: u64,
    /// Something that was never sent again was delivered.
    original: bool,
    /// The most recently sent of what was delivered.
    newest: Option<Record>,
    first_acked: Option<Time>,
    last_acked: Option<Time>,
    first_sacked: Option<Time>,
    last_sacked: Option<Time>,
}

impl Progress {
    fn new(prior_in_flight: u64) -> Self {
        Self {
            prior_in_flight,
            advanced: false,
            sacked: false,
            acked: 0,
            delivered: 0,
            bytes: 0,
            original: false,
            newest: None,
            first_acked: None,
            last_acked: None,
            first_sacked: None,
            last_sacked: None,
        }
    }
}

/// Segments found lost in one pass.
#[derive(Clone, Debug, Default)]
struct Tally {
    count: u64,
    largest: u32,
    newest_sent_at: Time,
    /// Whether the control wants each of them.
    collect: bool,
    packets: Vec<Packet>,
}

impl Tally {
    fn add(&mut self, record: &Record) {
        self.count += 1;
        self.largest = self.largest.max(record.length);
        self.newest_sent_at = self.newest_sent_at.max(record.sent_at);
        if self.collect {
            self.packets.push(Packet {
                number: record.number,
                bytes: Bytes::new(u64::from(record.length)),
                sent_at: record.sent_at,
                fate: Fate::Lost,
            });
        }
    }
}
