//! The state kept for a control, and the processing of noq's events. See the documentation of `adapter`.

use core::ops::Range;
use std::collections::VecDeque;

use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, EcnUse, LossResponse, Pacing, Packet, PacketOutcome,
    RateSample, Sample, Sent, Signal, State, Window,
};
use ranpace_units::{Bytes, Span, Time};

use super::Stats;
use super::records::{Record, Records};
use crate::clock::Clock;
use crate::config::{Config, HEADERS};

/// Smallest window, in packets (RFC 9002, section 7.2).
const LEAST_WINDOW: f64 = 2.0;
/// An acknowledged packet must be later by this many for another to be lost (RFC 9002, section 6.1.1, and noq).
const PACKET_THRESHOLD: u64 = 3;
/// The timeout count reported for persistent congestion: three unanswered probe timeouts include at least two consecutive
/// ones (RFC 9002, section 7.6.1).
const PERSISTENT: u32 = 2;

/// noq's reports of one acknowledgement, or of one loss detection.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Time of the reports; `None` if there are none.
    pub(super) at: Option<Time>,
    pub(super) prior_in_flight: u64,
    pub(super) delivered: u64,
    pub(super) bytes: u64,
    pub(super) newest: Option<Record>,
    /// Delivered packets that may grow the window.
    pub(super) growing: u64,
    /// Whether the largest acknowledged packet number has increased.
    pub(super) raised: bool,
    pub(super) app_limited: bool,
    pub(super) lost: u64,
    pub(super) largest_lost: u64,
    pub(super) newest_lost_at: Time,
    pub(super) losses: Option<Losses>,
    pub(super) marked_at: Option<Time>,
    pub(super) spurious: bool,
    /// Outcomes in order: acknowledged packets, then lost ones. Only for controls that want them.
    pub(super) packets: Vec<Packet>,
}

/// A call of `on_congestion_event` for losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) persistent: bool,
}

/// A recovery episode. It is kept after its end: packets sent before it began may still be declared lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    pub(super) began: Time,
    /// Whether the window was set to the threshold: acknowledgements of packets sent before do not grow it.
    pub(super) reduced: bool,
}

/// Packets that were sent and not taken ([`Control::take_sent`](super::Control::take_sent)): more than noq sends at once. Ours.
const MOST_UNTAKEN: usize = 256;

/// The control and the state kept for it.
pub(super) struct Core {
    pub(super) control: Box<dyn CongestionControl>,
    pub(super) wants_packets: bool,
    pub(super) window: Window,
    pub(super) clock: Clock,
    /// Bytes of a full packet.
    pub(super) payload: u64,
    pub(super) initial_window: u64,
    pub(super) paces: bool,
    pub(super) started: bool,
    /// Whether the control has no driver beside noq: see [`Control::driven_by_noq`](super::Control::driven_by_noq).
    pub(super) driven_by_noq: bool,
    /// Whether packets are sent ECN-capable, with code points that the control chooses; whether it counts marks itself, the marks
    /// that the peer has counted, and those that the control has not been told yet.
    pub(super) ecn: bool,
    pub(super) counts_marks: bool,
    pub(super) marked: u64,
    pub(super) untold_marks: u64,
    pub(super) now: Time,
    pub(super) records: Records,
    pub(super) batch: Batch,
    pub(super) state: State,
    pub(super) episode: Option<Episode>,
    pub(super) prior: Option<Window>,
    pub(super) smoothed: Span,
    pub(super) latest: Option<Span>,
    pub(super) min_rtt: Span,
    pub(super) delivered: u64,
    pub(super) delivered_at: Time,
    pub(super) first_sent_at: Time,
    pub(super) last_sent_at: Time,
    pub(super) app_limited: bool,
    pub(super) app_limited_until: u64,
    pub(super) lost: u64,
    pub(super) largest_acked: Option<u64>,
    pub(super) stats: Stats,
    /// Packets sent, each with its length, if they are recorded: those that nobody has taken yet.
    pub(super) sent: Option<VecDeque<(u64, u32)>>,
    /// Acknowledged packets, if they are recorded.
    pub(super) acked: Option<Vec<u64>>,
}

impl Core {
    pub(super) fn new(control: Box<dyn CongestionControl>, config: &Config, clock: Clock) -> Self {
        Self {
            wants_packets: control.wants_packets(),
            control,
            window: Window::new(f64::from(config.initial_window)),
            clock,
            payload: config.payload().get(),
            initial_window: u64::from(config.initial_window),
            paces: config.pacing,
            started: false,
            driven_by_noq: false,
            ecn: config.ecn,
            counts_marks: false,
            marked: 0,
            untold_marks: 0,
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
            sent: None,
            acked: None,
        }
    }

    /// See [`Control::start`](super::Control::start).
    pub(super) fn start(&mut self, now: Time, smoothed: Option<Span>) {
        self.settle(None);
        self.started = true;
        if let Some(rtt) = smoothed {
            (self.smoothed, self.min_rtt, self.latest) = (rtt, rtt, Some(rtt));
        }
        (self.delivered_at, self.first_sent_at, self.last_sent_at) = (now, now, now);
        self.with(now, |control, cx, window| control.on_start(cx, window));
        // noq itself sends only ECT(0), and its acknowledgements do not tell ECT(0) from ECT(1).
        let counted = self.ecn && !self.driven_by_noq && self.control.ecn() == EcnUse::Scalable;
        if self.control.ecn().counts_marks() && !counted {
            self.with(now, |control, cx, window| control.on_coarse_ecn(cx, window));
        }
        self.counts_marks = counted;
    }

    /// See [`Control::on_ecn_failed`](super::Control::on_ecn_failed).
    pub(super) fn on_ecn_failed(&mut self, now: Time) {
        if core::mem::take(&mut self.counts_marks) {
            self.with(now, |control, cx, window| control.on_coarse_ecn(cx, window));
        }
    }

    /// Passes on what noq has reported, and then something else.
    pub(super) fn with(
        &mut self,
        now: Time,
        tell: impl FnOnce(&mut dyn CongestionControl, &Context, &mut Window),
    ) {
        self.settle(None);
        self.now = now;
        let cx = self.context(now);
        tell(self.control.as_mut(), &cx, &mut self.window);
    }

    /// Runs the control's deadline if it is due.
    pub(super) fn on_deadline(&mut self, now: Time) {
        if self.control.next_deadline().is_some_and(|at| at <= now) {
            self.with(now, |control, cx, window| control.on_deadline(cx, window));
        }
    }

    pub(super) fn context(&self, now: Time) -> Context {
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
            // The pacer is quiche's, which does not report it.
            departure: now,
            paced: self.paces || self.window.pacing != Pacing::Unlimited,
        }
    }

    /// The window in bytes, in whole packets.
    pub(super) fn window_bytes(&self) -> u64 {
        (self.window.cwnd as u64).max(1) * self.payload
    }

    pub(super) fn on_sent(&mut self, now: Time, number: u64, bytes: u64) {
        self.settle(None);
        self.now = now;
        if !self.started {
            return;
        }
        if self.driven_by_noq {
            self.on_deadline(now);
        }
        if self.records.in_flight() == 0 {
            let idle = now - self.last_sent_at;
            // draft-cheng-iccrg-delivery-rate-estimation, 3.2: the sampler restarts.
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
            lost: self.lost,
            app_limited: self.app_limited_until > 0,
            open: true,
        });
        if let Some(sent) = &mut self.sent {
            if sent.len() == MOST_UNTAKEN {
                // Whoever takes them has lost count.
                sent.clear();
            }
            sent.push_back((own, bytes as u32));
        }
        let cx = self.context(now);
        let sent = Sent { number: own, bytes: Bytes::new(bytes), retransmission: false };
        self.control.on_sent(&cx, &mut self.window, &sent);
    }

    /// All events of a batch belong to one instant.
    pub(super) fn begin(&mut self, now: Time) {
        if self.batch.at.is_some_and(|at| at != now) {
            self.settle(None);
        }
        self.now = now;
        if self.batch.at.is_none() {
            self.batch.at = Some(now);
            self.batch.prior_in_flight = self.records.in_flight();
        }
    }

    pub(super) fn on_acked(&mut self, now: Time, sent_at: Time, number: u64) {
        self.begin(now);
        if let Some(record) = self.records.take_acked(sent_at, number) {
            self.count_acked(now, record);
        }
    }

    /// Records that the peer has received a packet.
    pub(super) fn count_acked(&mut self, now: Time, record: Record) {
        if let Some(acked) = &mut self.acked {
            acked.push(record.number);
        }
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
                sending: record.sending(self.lost),
                fate: PacketOutcome::Acked { rtt: now - record.sent_at, one_way: None },
            });
        }
    }

    pub(super) fn on_end_acks(&mut self, now: Time, app_limited: bool, largest: Option<u64>) {
        self.begin(now);
        // A number from before our first packet belongs to the handshake.
        if self.batch.newest.is_some_and(|newest| Some(newest.packet) == largest)
            && largest > self.largest_acked
        {
            self.largest_acked = largest;
            self.batch.raised = true;
        }
        self.batch.app_limited = app_limited;
    }

    pub(super) fn on_lost(&mut self, now: Time, number: u64) {
        self.begin(now);
        if let Some(record) = self.records.take_lost(number) {
            self.count_lost(record);
        }
    }

    /// Records that a packet is lost.
    pub(super) fn count_lost(&mut self, record: Record) {
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
                sending: record.sending(self.lost),
                fate: PacketOutcome::Lost,
            });
        }
    }

    /// Passes the recorded events to the control, in the interface's order. Returns the RTT sample, if there was one.
    pub(super) fn settle(&mut self, smoothed: Option<Span>) -> Option<Span> {
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
        if self.driven_by_noq {
            self.on_deadline(now);
        }
        rtt
    }

    pub(super) fn forget(&mut self) {
        let mut packets = core::mem::take(&mut self.batch.packets);
        packets.clear();
        self.batch = Batch { packets, ..Batch::default() };
    }

    /// The measured RTT. noq updates its estimate when the largest acknowledged number increases (RFC 9002, 5.1), by
    /// `smoothed = (7 smoothed + sample) / 8` (5.3), rounded down: so the sample is `8 new - 7 old`, up to 7 ns.
    pub(super) fn measure(&mut self, now: Time, smoothed: Option<Span>) -> Option<Span> {
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
                // noq's estimate, without the delay that only noq knows.
                self.smoothed = if before.is_zero() { plain } else { (before * 7 + plain) / 8 };
                plain
            }
        };
        self.latest = Some(sample);
        Some(sample)
    }

    /// The application limit ends when the data then in flight are delivered.
    pub(super) fn limit(&mut self) {
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.app_limited = self.batch.app_limited;
        if self.app_limited {
            self.app_limited_until = (self.delivered + self.records.in_flight()).max(1);
        }
    }

    pub(super) fn tell_packets(&mut self, now: Time, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let cx = self.context(now);
        for packet in &self.batch.packets[range] {
            self.control.on_packet(&cx, &mut self.window, packet);
        }
    }

    /// draft-cheng-iccrg-delivery-rate-estimation, 3.3; as in Linux, without samples shorter than the smallest RTT.
    pub(super) fn rate_sample(&self, now: Time, newest: &Record) -> RateSample {
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
            lost_since_send: self.lost - newest.lost,
            in_flight_at_send: newest.in_flight,
            delayed: false,
        }
    }

    pub(super) fn end_episode(&mut self, now: Time, newest: &Record) {
        let over = self.episode.is_some_and(|episode| newest.sent_at > episode.began);
        if over && self.state != State::Open {
            self.state = State::Open;
            let cx = self.context(now);
            self.control.on_recovered(&cx, &mut self.window);
        }
    }

    pub(super) fn undo(&mut self, now: Time) {
        let Some(prior) = self.prior.take() else { return };
        self.episode = None;
        self.state = State::Open;
        self.stats.undone += 1;
        let cx = self.context(now);
        self.control.on_spurious(&cx, &mut self.window, &prior);
    }

    pub(super) fn answer_losses(&mut self, now: Time) {
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

    pub(super) fn answer_mark(&mut self, now: Time) {
        let Some(newest_sent_at) = self.batch.marked_at.filter(|_| !self.counts_marks) else { return };
        let event = Congestion {
            kind: Signal::Ecn,
            lost: 0,
            largest: Bytes::ZERO,
            newest_sent_at,
            first: self.begins_episode(newest_sent_at),
        };
        if self.answer(now, &event, State::Cwr) {
            self.stats.ecn_reductions += 1;
            self.prior = None; // a mark confirms the congestion
        }
    }

    /// RFC 9002, B.6: packets sent before an episode began belong to it.
    pub(super) fn begins_episode(&self, newest_sent_at: Time) -> bool {
        self.episode.is_none_or(|episode| newest_sent_at > episode.began)
    }

    /// Asks the control and applies its response; returns true if that began an episode.
    pub(super) fn answer(&mut self, now: Time, event: &Congestion, state: State) -> bool {
        let cx = self.context(now);
        let prior = self.window;
        let answer = self.control.on_congestion(&cx, &mut self.window, event);
        if !event.first || answer == LossResponse::Ignore {
            return false;
        }
        let mut reduced = false;
        if let LossResponse::ReduceTo(ssthresh) = answer {
            self.window.ssthresh = ssthresh.max(LEAST_WINDOW);
            if !self.control.owns_recovery() {
                reduced = state != State::Loss;
                self.window.cwnd = if reduced { self.window.ssthresh } else { LEAST_WINDOW };
                // This acknowledgement covers packets sent before the reduction (RFC 9002, A.7: losses are processed first).
                self.batch.growing = 0;
            }
        }
        self.prior = Some(prior);
        self.episode = Some(Episode { began: now, reduced });
        self.state = state;
        true
    }

    pub(super) fn grow(&mut self, now: Time, mut rate: RateSample, rtt: Option<Span>) {
        if self.batch.delivered == 0 {
            return;
        }
        // Where PRR would own the window under TCP, noq's controllers decide for each packet.
        let acked = if self.control.owns_recovery() { self.batch.delivered } else { self.batch.growing };
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
            marked: core::mem::take(&mut self.untold_marks),
            braked: 0,
        };
        let cx = self.context(now);
        self.control.on_ack(&cx, &mut self.window, &ack);
    }
}
