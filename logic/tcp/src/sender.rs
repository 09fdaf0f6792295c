//! The sending half of a TCP connection, sans-IO: segments and deadlines go in, segments come out.
//!
//! Source: the behaviour of Linux 6.x's `tcp_input.c`, `tcp_output.c`, `tcp_timer.c` and `tcp_rate.c`, with the RFCs they
//! implement: 9293, 5681, 6298, 6675, 6937 (PRR), 8985 (RACK-TLP), 5682 (F-RTO), 3522 (Eifel), 2883 (DSACK), 3168 (ECN), and
//! the intent of 7661. `docs/fidelity.md` lists the simplifications.
//!
//! Ownership of the window: the control sets it, through [`Window`], outside recovery and whenever it responds `Own`; PRR
//! during recovery and after ECN marks; after a timeout the control again, from one segment. Without SACK see [`newreno`].

mod newreno;
mod pep;
mod recovery;
mod sampling;
mod timers;
mod transmit;

use ranpace_cc::{
    Ack, Allocation, CongestionControl, Context, EcnUse, Pacing, PathMemory, PepReport, RadioHint,
    RateSample, Sample, State, Window,
};
use ranpace_units::{Bytes, Ecn, Span, Time};

use self::newreno::Duplicates;
use self::pep::PepState;
pub use self::pep::PepView;
use self::recovery::Undo;
use self::sampling::Progress;
use self::timers::TailProbe;
use self::timers::TimerKind;
use crate::config::{Config, ControlRtt, Growth, Opener, RttSample};
use crate::ecn::{EcnEchoes, EcnFeedback, Marks};
use crate::pacer::{self, Pacer};
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use crate::segment::{Kind, Segment};

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

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Data segments retransmitted.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail-loss probes.
    pub probes: u64,
    /// Recoveries entered.
    pub recoveries: u64,
    /// Reductions undone.
    pub undone: u64,
    /// Acknowledgements processed.
    pub acks: u64,
    /// ECN echoes that began a reduction.
    pub ecn_reductions: u64,
    /// Marked segments that accurate feedback has reported.
    pub marked: u64,
}

/// The sending half of a connection. See the module documentation.
#[derive(Debug)]
pub struct Sender {
    config: Config,
    /// State of recovery without SACK.
    plain: Duplicates,
    /// The outstanding loss probe.
    probe: Option<TailProbe>,
    window_probes: u32,
    probe_window: bool,
    /// The segment that a loss probe retransmits.
    probe_again: Option<u64>,

    undo: Option<Undo>,
    /// When the first of the outstanding retransmissions was sent; no loss probe counts (Linux `retrans_stamp`).
    retransmitting_since: Option<Time>,
    /// Reports of a proxy on the path.
    pep: Option<Box<PepState>>,
    /// Recovery ends when this byte is acknowledged.
    high: u64,
    /// Duplicates reported by the peer so far.
    duplicates: u64,
    stats: SenderStats,
    /// Lost segments so far.
    lost: u64,
    rack: Rack,
    rtt: Rtt,

    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    app_limited_until: u64,
    last_timestamp: Time,
    number: u64,
    last_sent_at: Time,
    prr: Option<Prr>,
    timer: Option<(TimerKind, Time)>,
    /// Pacing has delayed the last attempt to send until then.
    paced_until: Option<Time>,
    /// Doublings of the RTO until there is an RTT sample, consecutive timeouts without progress, and probes of a closed
    /// window.
    backoffs: u32,
    retransmits: u32,
    phase: Phase,
    most_out: u64,
    usage_end: u64,
    used: u64,
    used_at: Time,
    /// Congestion window validation.
    cwnd_limited: bool,
    wants_packets: bool,
    sack: bool,
    /// [`ControlRtt::Smoothed`].
    smoothed: bool,
    growth: Growth,
    state: State,
    /// The control responded `Ignore` to the episode: retransmit, but change nothing else.
    ignored: bool,
    /// F-RTO: whether it is waiting to see if the timeout was spurious, and whether to send new data rather than old.
    frto: bool,
    prefer_new: bool,
    /// Lost segments are not retransmitted before the next acknowledgement, because the original filled the hole.
    hold_back: bool,
    /// After a timeout: the first segment ignores window and pace.
    urgent: bool,
    /// New data have been sent since the sender last ran dry.
    fresh: bool,
    /// The ECN feedback agreed on, the code point of new segments, and whether the control counts marks itself.
    ecn: EcnFeedback,
    codepoint: Ecn,
    counts_marks: bool,
    ecn_echoes: EcnEchoes,
    /// Marks that the control has not been told yet.
    untold: Marks,
    /// CWR must be set on the next new segment.
    cwr: bool,
    /// A segment without payload waiting to be sent.
    pending: Option<Kind>,
    control: Box<dyn CongestionControl>,
    window: Window,
    pacer: Pacer,
    mss: u64,
    wire: u64,
    /// First unacknowledged byte, next byte to send, bytes that the application has written so far.
    una: u64,
    next: u64,
    written: u64,
    /// One past the last byte that the peer's window allows.
    edge: u64,
    board: Scoreboard,
}

impl Sender {
    /// A closed sender.
    pub fn new(config: &Config, control: Box<dyn CongestionControl>) -> Self {
        Self {
            wants_packets: control.wants_packets(),
            sack: config.sack,
            smoothed: config.control_rtt == ControlRtt::Smoothed,
            growth: config.growth,
            plain: Duplicates::default(),
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
            retransmitting_since: None,
            pep: None,
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
            retransmits: 0,
            window_probes: 0,
            duplicates: 0,
            hold_back: false,
            urgent: false,
            fresh: false,
            probe: None,
            last_sent_at: Time::ZERO,
            cwnd_limited: false,
            most_out: 0,
            usage_end: 0,
            used: 0,
            used_at: Time::ZERO,
            ecn: EcnFeedback::Off,
            codepoint: Ecn::NotEct,
            counts_marks: false,
            ecn_echoes: EcnEchoes::default(),
            untold: Marks::default(),
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

    /// Opens the connection with a SYN. Does nothing if the receiver opens it.
    pub fn open(&mut self, now: Time) {
        if self.config.opener == Opener::Sender && self.phase == Phase::Closed {
            self.phase = Phase::SynSent { at: now };
            self.pending = Some(Kind::Syn);
            self.arm(TimerKind::Retransmission, now + self.config.initial_rto);
        }
    }

    /// The application writes `bytes` more; [`Bytes::MAX`] for an unlimited amount.
    pub fn write(&mut self, bytes: Bytes) {
        self.written = self.written.saturating_add(bytes.get());
    }

    /// The application has no more data: unsent data are dropped.
    pub fn stop(&mut self) {
        self.written = self.next;
    }

    /// Returns whether everything written has been acknowledged.
    pub fn is_done(&self) -> bool {
        self.una >= self.written
    }

    /// Returns whether the handshake is over.
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    /// Bytes acknowledged, in order.
    pub fn acked(&self) -> Bytes {
        Bytes::new(self.una)
    }

    /// Bytes sent at least once.
    pub fn sent(&self) -> Bytes {
        Bytes::new(self.next)
    }

    /// Bytes written but not sent yet.
    pub fn unsent(&self) -> Bytes {
        Bytes::new(self.written - self.next)
    }

    /// The current window.
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

    /// Segments in the network, as far as is known.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        if self.sack { self.board.in_flight() } else { self.plain_in_flight() }
    }

    /// The pacing rate, if segments are paced.
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

    /// Sets the target of a control that has one; returns false for others.
    pub fn set_target(&mut self, target: Span) -> bool {
        self.control.set_target(target)
    }

    /// Passes on what other connections of this host have learned about the path, before this one is established.
    pub fn recall(&mut self, memory: PathMemory) {
        self.control.recall(memory);
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

    /// A proxy's share of the radio bandwidth for this connection, or none.
    pub fn on_allocation(&mut self, now: Time, allocation: Option<Allocation>) {
        let cx = self.context(now);
        self.control.on_allocation(&cx, &mut self.window, allocation);
    }

    /// The path has changed.
    pub fn on_path_change(&mut self, now: Time) {
        let cx = self.context(now);
        self.control.on_path_change(&cx, &mut self.window);
    }

    /// Reads fields all over the sender, so that its cache lines are fetched; see [`crate::prefetch`].
    #[inline]
    pub(crate) fn read_state(&self) -> u64 {
        self.high
            ^ self.stats.sent
            ^ self.lost
            ^ self.rack.rtt.as_nanos()
            ^ self.rtt.read_state()
            ^ self.board.read_state()
            ^ self.config.send_buffer.get()
            ^ u64::from(self.probe_window)
            ^ self.rtt.smoothed().as_nanos()
            ^ self.delivered
            ^ self.number
            ^ u64::from(self.backoffs)
            ^ self.usage_end
            ^ u64::from(self.pending.is_some())
            ^ self.window.cwnd.to_bits()
            ^ self.pacer.read_state()
            ^ self.una
            ^ self.edge
            ^ self.board.in_flight()
    }

    /// The scoreboard.
    #[inline]
    pub(crate) fn board(&self) -> &Scoreboard {
        &self.board
    }

    #[inline]
    fn context(&self, now: Time) -> Context {
        Context {
            now,
            mss: Bytes::new(self.mss),
            wire: Bytes::new(self.wire),
            srtt: self.rtt.smoothed(),
            min_rtt: if self.smoothed { self.rtt.min_smoothed() } else { self.rtt.min() },
            in_flight: self.in_flight(),
            delivered: self.delivered,
            lost: self.lost,
            next_packet: self.number,
            state: self.state,
            cwnd_limited: self.is_cwnd_limited(),
            app_limited: self.app_limited_until > 0,
            departure: self.pacer.next(),
            paced: self.config.pacing || self.window.pacing != Pacing::Unlimited,
        }
    }

    /// The RTT that the control receives for an acknowledgement with this sample.
    #[inline]
    fn told_rtt(&self, sample: Option<Span>) -> Option<Span> {
        if !self.smoothed {
            return sample;
        }
        let smoothed = self.rtt.smoothed();
        (!smoothed.is_zero()).then_some(smoothed)
    }

    /// Number of segments by which the control may grow the window.
    #[inline]
    fn growth(&self, acked: u64) -> u64 {
        match self.growth {
            Growth::Acks => acked.min(1),
            Growth::SlowStartAcks if self.window.in_slow_start() => acked.min(1),
            Growth::SlowStartAcks | Growth::Segments => acked,
        }
    }

    /// Linux `tcp_is_cwnd_limited`.
    #[inline]
    fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited || (self.window.in_slow_start() && self.window.cwnd < (2 * self.most_out) as f64)
    }

    /// Processes a segment from the peer. Returns the RTT sample, if there was one.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> Option<Span> {
        match (self.phase, segment.kind) {
            (Phase::SynSent { at }, Kind::SynAck) => {
                self.ecn = segment.ecn_feedback().min(self.config.ecn_feedback());
                self.establish(now, at, segment);
                None
            }
            (Phase::Closed | Phase::Answered { .. }, Kind::Syn) => {
                self.phase = Phase::Answered { at: now };
                self.ecn = segment.ecn_feedback().min(self.config.ecn_feedback());
                self.last_timestamp = segment.timestamp;
                self.pending = Some(Kind::SynAck);
                self.arm(TimerKind::Retransmission, now + self.config.initial_rto);
                None
            }
            (Phase::Answered { at }, Kind::Ack) => {
                self.establish(now, at, segment);
                None
            }
            (Phase::Established, Kind::Ack) => self.on_ack(now, segment),
            (Phase::Established, Kind::SynAck) => {
                // Our last segment of the handshake was lost; data would serve as well.
                if self.board.is_empty() {
                    self.pending = Some(Kind::Ack);
                }
                None
            }
            _ => None,
        }
    }

    /// `at` is when the handshake's last segment was sent.
    fn establish(&mut self, now: Time, at: Time, segment: &Segment) {
        self.phase = Phase::Established;
        self.timer = None;
        self.edge = u64::from(segment.window);
        self.last_timestamp = segment.timestamp;
        // If it was repeated, only timestamps tell which copy was answered (Karn).
        let sample = match (self.retransmits, self.config.timestamps) {
            (0, _) => Some(self.elapsed(at, now)),
            (_, true) if segment.echo > Time::ZERO => Some(self.elapsed(segment.echo, now)),
            _ => None,
        };
        match sample {
            Some(rtt) => {
                self.rtt.note(now, rtt, false);
                self.rtt.on_sample(rtt, self.una, self.next);
            }
            None => self.rtt.on_ambiguous_handshake(),
        }
        // After more than one lost SYN the window begins at one segment (RFC 5681, 3.1; Linux tolerates one).
        if self.config.opener == Opener::Sender && self.retransmits > 1 {
            self.window.cwnd = 1.0;
        }
        (self.backoffs, self.retransmits) = (0, 0);
        self.used_at = now;
        self.last_sent_at = now;
        (self.delivered_at, self.first_sent_at) = (now, now);
        let cx = self.context(now);
        self.control.on_start(&cx, &mut self.window);
        if self.control.ecn().counts_marks() && self.ecn != EcnFeedback::Accurate {
            self.control.on_coarse_ecn(&cx, &mut self.window);
        }
        self.use_ecn();
        self.pacer.set_burst(self.control.burst());
        if let Some(report) = &segment.report {
            self.control.on_report(&cx, &mut self.window, report);
        }
        // Data acknowledge the handshake or carry the request; an ACK does so if there are none yet.
        if self.written == self.next {
            self.pending = Some(Kind::Ack);
        }
    }

    /// Sets the code point of new segments as the control and the handshake want it.
    fn use_ecn(&mut self) {
        let wanted = self.control.ecn();
        self.counts_marks = wanted.counts_marks() && self.ecn == EcnFeedback::Accurate;
        self.codepoint = match (self.ecn, wanted) {
            (EcnFeedback::Off, _) | (_, EcnUse::NotEct) => Ecn::NotEct,
            (EcnFeedback::Accurate, EcnUse::Scalable | EcnUse::Abc) => Ecn::Ect1,
            (_, EcnUse::Classic) => Ecn::Ect0,
            // A control that did not fall back although it was told to.
            (EcnFeedback::Classic, EcnUse::Scalable | EcnUse::Abc) => Ecn::NotEct,
        };
    }

    /// Reads the accurate feedback of an acknowledgement.
    fn read_accurate(&mut self, now: Time, segment: &Segment, progress: &mut Progress) {
        let Some(echo) = &segment.accurate else { return };
        let Marks { marked, braked } =
            self.ecn_echoes.read(echo, self.config.ace, progress.delivered, self.mss);
        self.stats.marked += marked;
        self.untold.marked += marked;
        self.untold.braked += braked;
        progress.marked = marked > 0 && !self.counts_marks;
        if self.codepoint.is_capable()
            && self.ecn_echoes.is_bleached(self.config.ace, echo.option.is_some(), progress.sent_once)
        {
            if self.counts_marks {
                let cx = self.context(now);
                self.control.on_coarse_ecn(&cx, &mut self.window);
            }
            (self.codepoint, self.counts_marks) = (Ecn::NotEct, false);
        }
    }

    fn on_ack(&mut self, now: Time, segment: &Segment) -> Option<Span> {
        self.stats.acks += 1;
        if segment.ack > self.next {
            return None; // acknowledges data that were never sent
        }
        self.last_timestamp = self.last_timestamp.max(segment.timestamp);
        let edge = self.edge;
        self.edge = self.edge.max(segment.ack + u64::from(segment.window));
        if self.edge > self.next && self.is_armed(TimerKind::Persist) {
            self.timer = None;
        }
        if let Some(report) = &segment.report {
            let cx = self.context(now);
            self.control.on_report(&cx, &mut self.window, report);
        }
        if !self.sack {
            return self.on_plain_ack(now, segment, self.edge > edge);
        }
        let mut progress = Progress {
            prior_in_flight: self.board.in_flight(),
            prior_highest: self.board.highest_sacked,
            ..Progress::default()
        };
        if self.config.rtt_sample == RttSample::Oldest {
            progress.oldest = self.oldest_to_sample(segment);
        }
        self.take_sacked(now, segment, &mut progress);
        self.take_acked(now, segment, &mut progress);
        match self.ecn {
            EcnFeedback::Off => {}
            EcnFeedback::Classic => progress.marked = segment.ecn_echo,
            EcnFeedback::Accurate => self.read_accurate(now, segment, &mut progress),
        }
        let of_probe = self.on_duplicate(segment);
        // The application limit ends when the data then in flight are delivered.
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if progress.advanced {
            self.retransmits = 0;
        }
        let rtt = self.sample_rtt(now, segment, &mut progress);
        let rate = self.rate_sample(now, &progress);
        if progress.delivered > 0 {
            self.tell_sample(now, segment, &progress, rtt);
        }
        self.check_probe(now, segment, &progress, of_probe);
        let found = self.react(now, segment, &progress);
        self.control_window(now, &progress, rate, rtt, found.lost);
        // The timer restarts on progress, and on selective acknowledgements of segments sent before the first one.
        let older = progress.first_sacked.zip(self.board.first());
        if !found.waiting
            && (progress.acked > 0 || older.is_some_and(|(sacked, first)| sacked < first.sent_at))
        {
            self.rearm(now);
        }
        rtt
    }

    /// Passes the measurements of an acknowledgement that delivered something to the control.
    #[inline(always)]
    fn tell_sample(&mut self, now: Time, segment: &Segment, progress: &Progress, rtt: Option<Span>) {
        let sample = Sample {
            delivered: progress.delivered,
            bytes: Bytes::new(progress.bytes),
            rtt: self.told_rtt(rtt),
            one_way: self.config.timestamps.then(|| self.elapsed(segment.echo, segment.timestamp)),
            in_flight_at_send: u64::from(progress.newest.map_or(0, |newest| newest.in_flight)),
        };
        let cx = self.context(now);
        self.control.on_sample(&cx, &mut self.window, &sample);
    }

    /// Sets the window after an acknowledgement: PRR during a reduction, otherwise the control (Linux `tcp_cong_control`).
    fn control_window(
        &mut self,
        now: Time,
        progress: &Progress,
        mut rate: RateSample,
        rtt: Option<Span>,
        lost: u64,
    ) {
        if let Some(prr) = &mut self.prr
            && matches!(self.state, State::Recovery | State::Cwr)
        {
            if progress.delivered > 0 {
                self.window.cwnd = prr.window(
                    self.window.ssthresh,
                    self.board.in_flight(),
                    progress.delivered,
                    progress.advanced,
                    lost > 0,
                );
            }
            return;
        }
        if progress.delivered == 0 && lost == 0 {
            return;
        }
        rate.lost = lost;
        rate.lost_since_send += lost;
        let untold = core::mem::take(&mut self.untold);
        let delivered = if progress.acked > 0 || self.ignored { progress.delivered } else { 0 };
        let ack = Ack {
            // Growth counts delivered segments, on acknowledgements that advance: segments that were selectively acknowledged
            // before a hole was filled do not count again (Linux `tcp_may_raise_cwnd`). During the repair of an ignored
            // episode growth continues.
            acked: self.growth(delivered),
            delivered: progress.delivered,
            bytes: Bytes::new(progress.bytes),
            rtt: self.told_rtt(rtt),
            rate,
            prior_in_flight: progress.prior_in_flight,
            ecn_echo: progress.marked,
            marked: untold.marked,
            braked: untold.braked,
        };
        let cx = self.context(now);
        self.control.on_ack(&cx, &mut self.window, &ack);
    }
}
