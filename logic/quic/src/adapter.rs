//! A congestion control of ours as noq's controller.
//!
//! noq calls its controller in the middle of what it does with an acknowledgement; our interface is told of the whole of
//! it, in a fixed order (the head of `ranpace_cc::interface`). So the adapter notes what noq says, and tells the control
//! when noq is through: when it next asks for the window, or when its driver says so ([`Control::settle`]).
//!
//! Source of what happens to the window: RFC 9002, sections 7 and B, where PRR would act under TCP. On the first loss or
//! mark of an episode the control's answer becomes window and threshold at once (7.3.2); acknowledgements of what was
//! sent before do not grow the window (7.3.2, B.5); the episode ends with an acknowledgement of what was sent later. An
//! answer of `Ignore` changes nothing at all: no window, no threshold, no episode. Persistent congestion (7.6.2) is told as
//! a timeout that is not the first, and brings the window to two packets.
//!
//! Computed here, because noq does not tell it: packets in flight in order of their sending, delivery-rate samples
//! (draft-cheng-iccrg-delivery-rate-estimation) and the smallest RTT. The sample of the RTT is without the delay that the
//! receiver says its acknowledgement had (RFC 9002, 5.3), where the driver tells the smoothed RTT, from which it follows;
//! and with it otherwise.
//!
//! Ours: a packet is a segment of the interface, and its size that of a full QUIC packet, header and tag included, as
//! RFC 9002 counts. Packets of the handshake are not told, and the window does not move before it is complete.

mod records;

use core::fmt;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use ranpace_cc::{
    Ack, Answer, Congestion, CongestionControl, Context, Fate, Pacing, Packet, PepReport, RadioHint,
    RateSample, Sample, Sent, Signal, State, Window,
};
use ranpace_units::{Bytes, Rate, Span, Time};

use self::records::{Record, Records};
use crate::clock::Clock;
use crate::config::{Config, HEADERS};

/// Smallest window, in packets (RFC 9002, section 7.2).
const LEAST_WINDOW: f64 = 2.0;
/// Packets by which an acknowledged one must be later for another to be lost (RFC 9002, section 6.1.1, and noq).
const PACKET_THRESHOLD: u64 = 3;
/// The timeout that persistent congestion stands for: three probe timeouts without an answer are at least two that followed
/// each other (RFC 9002, section 7.6.1).
const PERSISTENT: u32 = 2;

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Ack-eliciting packets sent since the handshake.
    pub sent: u64,
    /// Their bytes, header and tag included.
    pub sent_bytes: Bytes,
    /// Of those, packets and bytes that the peer has.
    pub acked: u64,
    /// See `acked`.
    pub acked_bytes: Bytes,
    /// Of those, packets and bytes taken for lost; what they carried was sent again, if it still mattered.
    pub lost: u64,
    /// See `lost`.
    pub lost_bytes: Bytes,
    /// Episodes begun by losses.
    pub recoveries: u64,
    /// Reductions that marks began.
    pub ecn_reductions: u64,
    /// Reductions taken back.
    pub undone: u64,
    /// Persistent congestion found.
    pub persistent: u64,
}

/// What noq has said of one acknowledgement, or of one look at what is lost.
#[derive(Debug, Default)]
struct Batch {
    /// When; `None` if nothing was said.
    at: Option<Time>,
    prior_in_flight: u64,
    delivered: u64,
    bytes: u64,
    newest: Option<Record>,
    /// Of those delivered, the ones that may grow the window.
    growing: u64,
    /// The packet numbers acknowledged so far have a new largest one.
    raised: bool,
    app_limited: bool,
    lost: u64,
    largest_lost: u64,
    newest_lost_at: Time,
    losses: Option<Losses>,
    marked_at: Option<Time>,
    spurious: bool,
    /// Fates in order: acknowledged, then lost ones. Only for controls that want them.
    packets: Vec<Packet>,
}

/// A call of `on_congestion_event` for losses.
#[derive(Clone, Copy, Debug)]
struct Losses {
    persistent: bool,
}

/// An episode of recovery. It is kept when it is over: what was sent before it began may still be taken for lost.
#[derive(Clone, Copy, Debug)]
struct Episode {
    began: Time,
    /// The window was set to the threshold: what was sent before does not grow it.
    reduced: bool,
}

/// The control and all that is kept for it.
struct Core {
    control: Box<dyn CongestionControl>,
    wants_packets: bool,
    owns_recovery: bool,
    window: Window,
    clock: Clock,
    /// Bytes of a full packet.
    payload: u64,
    initial_window: u64,
    paces: bool,
    started: bool,
    now: Time,
    records: Records,
    batch: Batch,
    state: State,
    episode: Option<Episode>,
    prior: Option<Window>,
    smoothed: Span,
    latest: Option<Span>,
    min_rtt: Span,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    last_sent_at: Time,
    app_limited: bool,
    app_limited_until: u64,
    lost: u64,
    largest_acked: Option<u64>,
    stats: Stats,
}

impl Core {
    fn context(&self, now: Time) -> Context {
        Context {
            now,
            mss: Bytes::new(self.payload),
            wire: Bytes::new(self.payload + HEADERS),
            srtt: self.smoothed,
            min_rtt: self.min_rtt,
            in_flight: self.records.in_flight(),
            delivered: self.delivered,
            lost: self.lost,
            next_packet: self.records.next_number(),
            state: self.state,
            cwnd_limited: !self.app_limited,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// Whole packets that the window allows, in bytes.
    fn window_bytes(&self) -> u64 {
        (self.window.cwnd as u64).max(1) * self.payload
    }

    fn on_sent(&mut self, now: Time, number: u64, bytes: u64) {
        self.settle(None);
        self.now = now;
        if !self.started {
            return;
        }
        if self.records.in_flight() == 0 {
            let idle = now - self.last_sent_at;
            // draft-cheng-iccrg-delivery-rate-estimation, 3.2: the sampler starts afresh.
            (self.first_sent_at, self.delivered_at) = (now, now);
            if self.delivered > 0 && !idle.is_zero() {
                let cx = self.context(now);
                self.control.on_idle_restart(&cx, &mut self.window, idle);
            }
        }
        self.last_sent_at = now;
        self.stats.sent += 1;
        self.stats.sent_bytes += Bytes::new(bytes);
        let own = self.records.push(Record {
            number: 0,
            packet: number,
            bytes: bytes as u32,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: self.records.in_flight() + 1,
            app_limited: self.app_limited_until > 0,
            open: true,
        });
        let cx = self.context(now);
        let sent = Sent { number: own, bytes: Bytes::new(bytes), retransmission: false };
        self.control.on_sent(&cx, &mut self.window, &sent);
    }

    /// Whatever is noted belongs to one instant.
    fn begin(&mut self, now: Time) {
        if self.batch.at.is_some_and(|at| at != now) {
            self.settle(None);
        }
        self.now = now;
        if self.batch.at.is_none() {
            self.batch.at = Some(now);
            self.batch.prior_in_flight = self.records.in_flight();
        }
    }

    fn on_acked(&mut self, now: Time, sent_at: Time, number: u64) {
        self.begin(now);
        let Some(record) = self.records.take_acked(sent_at, number) else { return };
        self.delivered += 1;
        self.delivered_at = now;
        self.stats.acked += 1;
        self.stats.acked_bytes += Bytes::new(u64::from(record.bytes));
        let batch = &mut self.batch;
        batch.delivered += 1;
        batch.bytes += u64::from(record.bytes);
        let before = self.episode.is_some_and(|episode| episode.reduced && record.sent_at <= episode.began);
        batch.growing += u64::from(!before);
        if batch.newest.is_none_or(|newest| record.number >= newest.number) {
            batch.newest = Some(record);
            self.first_sent_at = record.sent_at;
        }
        if self.wants_packets {
            batch.packets.push(Packet {
                number: record.number,
                bytes: Bytes::new(u64::from(record.bytes)),
                sent_at: record.sent_at,
                fate: Fate::Acked { rtt: now - record.sent_at, one_way: None },
            });
        }
    }

    fn on_end_acks(&mut self, now: Time, app_limited: bool, largest: Option<u64>) {
        self.begin(now);
        // A number from before the first packet of ours is one of the handshake's.
        if self.batch.newest.is_some_and(|newest| Some(newest.packet) == largest)
            && largest > self.largest_acked
        {
            self.largest_acked = largest;
            self.batch.raised = true;
        }
        self.batch.app_limited = app_limited;
    }

    fn on_lost(&mut self, now: Time, number: u64) {
        self.begin(now);
        let Some(record) = self.records.take_lost(number) else { return };
        let bytes = u64::from(record.bytes);
        self.lost += 1;
        self.stats.lost += 1;
        self.stats.lost_bytes += Bytes::new(bytes);
        let batch = &mut self.batch;
        batch.lost += 1;
        batch.largest_lost = batch.largest_lost.max(bytes);
        batch.newest_lost_at = batch.newest_lost_at.max(record.sent_at);
        if self.wants_packets {
            batch.packets.push(Packet {
                number: record.number,
                bytes: Bytes::new(bytes),
                sent_at: record.sent_at,
                fate: Fate::Lost,
            });
        }
    }

    /// Tells the control what was noted, in the interface's order. Returns the RTT sample, if there was one.
    fn settle(&mut self, smoothed: Option<Span>) -> Option<Span> {
        let now = match self.batch.at.take() {
            Some(at) => at,
            // The acknowledgement that showed the mistake covered nothing else.
            None if self.batch.spurious => self.now,
            None => return None,
        };
        let rtt = self.measure(now, smoothed);
        if !self.started {
            self.forget();
            return None;
        }
        let lost_first =
            self.batch.packets.len() - if self.wants_packets { self.batch.lost as usize } else { 0 };
        self.tell_packets(now, 0..lost_first);
        let mut rate = RateSample::default();
        if let Some(newest) = self.batch.newest {
            rate = self.rate_sample(now, &newest);
            let sample = Sample {
                delivered: self.batch.delivered,
                bytes: Bytes::new(self.batch.bytes),
                rtt,
                one_way: None,
                in_flight_at_send: newest.in_flight,
            };
            self.limit();
            let cx = self.context(now);
            self.control.on_sample(&cx, &mut self.window, &sample);
            self.end_episode(now, &newest);
        }
        if self.batch.spurious {
            self.undo(now);
        }
        self.tell_packets(now, lost_first..self.batch.packets.len());
        self.answer_losses(now);
        self.answer_mark(now);
        self.grow(now, rate, rtt);
        self.records
            .drop_left_behind(self.largest_acked.map(|largest| largest.saturating_sub(PACKET_THRESHOLD)));
        self.forget();
        rtt
    }

    fn forget(&mut self) {
        let mut packets = core::mem::take(&mut self.batch.packets);
        packets.clear();
        self.batch = Batch { packets, ..Batch::default() };
    }

    /// The RTT that was measured. noq updates its estimate when the largest number acknowledged grows (RFC 9002, 5.1), by
    /// `smoothed = (7 smoothed + sample) / 8` (5.3), rounded down: so the sample is `8 new - 7 old`, up to 7 ns.
    fn measure(&mut self, now: Time, smoothed: Option<Span>) -> Option<Span> {
        let before = self.smoothed;
        self.smoothed = smoothed.unwrap_or(before);
        let newest = self.batch.newest.filter(|_| self.batch.raised)?;
        let plain = now - newest.sent_at;
        self.min_rtt = self.min_rtt.min(plain); // not adjusted (RFC 9002, 5.2)
        let sample = match smoothed {
            Some(after) if !before.is_zero() => {
                let least = (after.as_nanos() * 8).saturating_sub(before.as_nanos() * 7);
                plain.min(Span::from_nanos(least.saturating_add(7)))
            }
            Some(_) => plain,
            None => {
                // The estimate as noq makes it, without the delay that only noq knows.
                self.smoothed = if before.is_zero() { plain } else { (before * 7 + plain) / 8 };
                plain
            }
        };
        self.latest = Some(sample);
        Some(sample)
    }

    /// Limits of the application end when what was in flight then is delivered.
    fn limit(&mut self) {
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.app_limited = self.batch.app_limited;
        if self.app_limited {
            self.app_limited_until = (self.delivered + self.records.in_flight()).max(1);
        }
    }

    fn tell_packets(&mut self, now: Time, range: core::ops::Range<usize>) {
        if range.is_empty() {
            return;
        }
        let cx = self.context(now);
        for packet in &self.batch.packets[range] {
            self.control.on_packet(&cx, &mut self.window, packet);
        }
    }

    /// draft-cheng-iccrg-delivery-rate-estimation, 3.3; as Linux, without samples shorter than the smallest RTT.
    fn rate_sample(&self, now: Time, newest: &Record) -> RateSample {
        let sending = newest.sent_at - newest.first_sent_at;
        let acking = now - newest.delivered_at;
        let interval = sending.max(acking);
        let valid = !interval.is_zero() && interval >= self.min_rtt;
        RateSample {
            delivered: self.delivered - newest.delivered,
            interval: valid.then_some(interval),
            prior_delivered: newest.delivered,
            app_limited: newest.app_limited,
            lost: 0,
            delayed: false,
        }
    }

    fn end_episode(&mut self, now: Time, newest: &Record) {
        let over = self.episode.is_some_and(|episode| newest.sent_at > episode.began);
        if over && self.state != State::Open {
            self.state = State::Open;
            let cx = self.context(now);
            self.control.on_recovered(&cx, &mut self.window);
        }
    }

    fn undo(&mut self, now: Time) {
        let Some(prior) = self.prior.take() else { return };
        self.episode = None;
        self.state = State::Open;
        self.stats.undone += 1;
        let cx = self.context(now);
        self.control.on_spurious(&cx, &mut self.window, &prior);
    }

    fn answer_losses(&mut self, now: Time) {
        let (Some(losses), true) = (self.batch.losses, self.batch.lost > 0) else { return };
        let newest_sent_at = self.batch.newest_lost_at;
        let kind = if losses.persistent { Signal::Timeout { count: PERSISTENT } } else { Signal::Loss };
        self.stats.persistent += u64::from(losses.persistent);
        let state = if losses.persistent { State::Loss } else { State::Recovery };
        let event = Congestion {
            kind,
            lost: self.batch.lost,
            largest: Bytes::new(self.batch.largest_lost),
            newest_sent_at,
            first: losses.persistent || self.begins_episode(newest_sent_at),
        };
        if self.answer(now, &event, state) {
            self.stats.recoveries += 1;
        }
    }

    fn answer_mark(&mut self, now: Time) {
        let Some(newest_sent_at) = self.batch.marked_at else { return };
        let event = Congestion {
            kind: Signal::Ecn,
            lost: 0,
            largest: Bytes::ZERO,
            newest_sent_at,
            first: self.begins_episode(newest_sent_at),
        };
        if self.answer(now, &event, State::Cwr) {
            self.stats.ecn_reductions += 1;
            self.prior = None; // the network says that there is congestion
        }
    }

    /// RFC 9002, B.6: what was sent before an episode began belongs to it.
    fn begins_episode(&self, newest_sent_at: Time) -> bool {
        self.episode.is_none_or(|episode| newest_sent_at > episode.began)
    }

    /// Asks the control, and does as it says; true if that began an episode.
    fn answer(&mut self, now: Time, event: &Congestion, state: State) -> bool {
        let cx = self.context(now);
        let prior = self.window;
        let answer = self.control.on_congestion(&cx, &mut self.window, event);
        if !event.first || answer == Answer::Ignore {
            return false;
        }
        let mut reduced = false;
        if let Answer::ReduceTo(ssthresh) = answer {
            self.window.ssthresh = ssthresh.max(LEAST_WINDOW);
            if !self.owns_recovery {
                reduced = state != State::Loss;
                self.window.cwnd = if reduced { self.window.ssthresh } else { LEAST_WINDOW };
                // What this acknowledgement covers was sent before (RFC 9002, A.7: losses come first).
                self.batch.growing = 0;
            }
        }
        self.prior = Some(prior);
        self.episode = Some(Episode { began: now, reduced });
        self.state = state;
        true
    }

    fn grow(&mut self, now: Time, mut rate: RateSample, rtt: Option<Span>) {
        if self.batch.delivered == 0 {
            return;
        }
        // Where PRR would own the window under TCP, noq's controllers look at each packet.
        let acked = if self.owns_recovery { self.batch.delivered } else { self.batch.growing };
        if acked == 0 {
            return;
        }
        rate.lost = self.batch.lost;
        let ack = Ack {
            acked,
            delivered: self.batch.delivered,
            bytes: Bytes::new(self.batch.bytes),
            rtt,
            rate,
            prior_in_flight: self.batch.prior_in_flight,
            ecn_echo: self.batch.marked_at.is_some(),
        };
        let cx = self.context(now);
        self.control.on_ack(&cx, &mut self.window, &ack);
    }
}

/// A control of ours, shared with the noq connection that it controls.
#[derive(Clone)]
pub struct Control(Arc<Mutex<Core>>);

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.core();
        f.debug_struct("Control").field("control", &core.control).field("window", &core.window).finish()
    }
}

impl Control {
    /// Wraps a control for a connection with these settings.
    pub fn new(control: Box<dyn CongestionControl>, config: &Config, clock: Clock) -> Self {
        Self(Arc::new(Mutex::new(Core {
            wants_packets: control.wants_packets(),
            owns_recovery: control.owns_recovery(),
            control,
            window: Window::new(f64::from(config.initial_window)),
            clock,
            payload: config.payload().get(),
            initial_window: u64::from(config.initial_window),
            paces: config.pacing,
            started: false,
            now: Time::ZERO,
            records: Records::default(),
            batch: Batch::default(),
            state: State::Open,
            episode: None,
            prior: None,
            smoothed: Span::ZERO,
            latest: None,
            min_rtt: Span::MAX,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            last_sent_at: Time::ZERO,
            app_limited: false,
            app_limited_until: 0,
            lost: 0,
            largest_acked: None,
            stats: Stats::default(),
        })))
    }

    /// Nobody panics while holding it; and if somebody did, there would be nothing better to do than to go on.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What noq takes to make its controller.
    pub fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// The handshake is complete; from here on packets count. `smoothed` is its RTT, if it gave one.
    pub fn start(&self, now: Time, smoothed: Option<Span>) {
        let mut core = self.core();
        core.settle(None);
        core.started = true;
        core.now = now;
        if let Some(rtt) = smoothed {
            (core.smoothed, core.min_rtt, core.latest) = (rtt, rtt, Some(rtt));
        }
        (core.delivered_at, core.first_sent_at, core.last_sent_at) = (now, now, now);
        let cx = core.context(now);
        let core = &mut *core;
        core.control.on_start(&cx, &mut core.window);
    }

    /// noq is through with a datagram or a timer: tells the control what happened. `smoothed` is noq's estimate of the RTT
    /// now. Returns the sample of the RTT that there was.
    pub fn settle(&self, now: Time, smoothed: Option<Span>) -> Option<Span> {
        let mut core = self.core();
        core.now = now;
        core.settle(smoothed)
    }

    /// The window as it stands.
    pub fn window(&self) -> Window {
        self.core().window
    }

    /// Bytes that may be in flight.
    pub fn window_bytes(&self) -> Bytes {
        Bytes::new(self.core().window_bytes())
    }

    /// Whether a full packet has no room in the window.
    pub fn is_full(&self) -> bool {
        let core = self.core();
        core.started && core.records.in_flight_bytes() + core.payload > core.window_bytes()
    }

    /// Bytes in the network as far as is known.
    pub fn in_flight(&self) -> Bytes {
        Bytes::new(self.core().records.in_flight_bytes())
    }

    /// The rate that the control sets, if it sets one.
    pub fn pacing(&self) -> Pacing {
        self.core().window.pacing
    }

    /// The smoothed RTT; zero before the first sample.
    pub fn smoothed(&self) -> Span {
        self.core().smoothed
    }

    /// The newest RTT sample.
    pub fn latest(&self) -> Option<Span> {
        self.core().latest
    }

    /// Recovery's state.
    pub fn state(&self) -> State {
        self.core().state
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        self.core().stats
    }

    /// Whether the control wants to know of the radio.
    pub fn wants_radio(&self) -> bool {
        self.core().control.wants_radio()
    }

    /// Radio information for the control.
    pub fn on_radio(&self, now: Time, hint: &RadioHint) {
        self.with(now, |control, cx, window| control.on_radio(cx, window, hint));
    }

    /// A proxy's report for the control.
    pub fn on_pep(&self, now: Time, report: &PepReport) {
        self.with(now, |control, cx, window| control.on_pep(cx, window, report));
    }

    /// A proxy's share of the radio bandwidth for this connection, or none.
    pub fn on_allocation(&self, now: Time, allocation: Option<Rate>) {
        self.with(now, |control, cx, window| control.on_allocation(cx, window, allocation));
    }

    /// The path is another one.
    pub fn on_path_change(&self, now: Time) {
        self.with(now, |control, cx, window| control.on_path_change(cx, window));
    }

    /// When [`Self::on_deadline`] is to be called.
    pub fn next_deadline(&self) -> Option<Time> {
        self.core().control.next_deadline()
    }

    /// The control's deadline has come, if it has one that has.
    pub fn on_deadline(&self, now: Time) {
        if self.next_deadline().is_some_and(|at| at <= now) {
            self.with(now, |control, cx, window| control.on_deadline(cx, window));
        }
    }

    /// Sets the target of a control that has one; false if it has none.
    pub fn set_target(&self, target: Span) -> bool {
        self.core().control.set_target(target)
    }

    /// Shows what the control shows.
    pub fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.core().control.inspect(show);
    }

    fn with(&self, now: Time, tell: impl FnOnce(&mut dyn CongestionControl, &Context, &mut Window)) {
        let mut core = self.core();
        let core = &mut *core;
        core.settle(None);
        core.now = now;
        let cx = core.context(now);
        tell(core.control.as_mut(), &cx, &mut core.window);
    }
}

struct Factory(Control);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Adapter(self.0.clone()))
    }
}

/// noq's controller: passes on to the control that it shares.
#[derive(Clone, Debug)]
pub struct Adapter(Control);

impl Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let mut core = self.0.core();
        let now = core.clock.time(now);
        core.on_sent(now, pn, bytes.into());
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        _bytes: u64,
        pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        let mut core = self.0.core();
        let (now, sent) = (core.clock.time(now), core.clock.time(sent));
        core.on_acked(now, sent, pn);
    }

    fn on_end_acks(&mut self, now: Instant, _in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let mut core = self.0.core();
        let now = core.clock.time(now);
        core.on_end_acks(now, app_limited, largest);
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, now: Instant) {
        let mut core = self.0.core();
        let now = core.clock.time(now);
        core.on_lost(now, pn);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let mut core = self.0.core();
        let (now, sent) = (core.clock.time(now), core.clock.time(sent));
        core.begin(now);
        if is_ecn {
            core.batch.marked_at = Some(sent);
        } else {
            core.batch.losses = Some(Losses { persistent: is_persistent_congestion });
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        // Comes before the packets of the acknowledgement that shows it, and does not say when.
        let mut core = self.0.core();
        core.settle(None);
        core.batch.spurious = true;
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let mut core = self.0.core();
        core.settle(None);
        core.payload = new_mtu.into();
    }

    fn window(&self) -> u64 {
        let mut core = self.0.core();
        core.settle(None);
        core.window_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut core = self.0.core();
        core.settle(None);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = core.window_bytes();
        match core.window.pacing {
            // The rate is of bytes on the wire; noq counts QUIC packets.
            Pacing::Rate(rate) => {
                let bytes = rate.bits_per_s() / 8;
                let wire = core.payload + HEADERS;
                metrics.pacing_rate =
                    Some((u128::from(bytes) * u128::from(core.payload) / u128::from(wire)) as u64);
            }
            Pacing::Unlimited if core.paces => {}
            // noq does not pace windows of more than four gigabytes; its limit on what is in flight is `window`.
            Pacing::Unlimited => metrics.congestion_window = u64::MAX,
        }
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        let core = self.0.core();
        core.initial_window * core.payload
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
