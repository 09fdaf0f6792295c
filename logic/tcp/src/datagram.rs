//! A datagram transport with feedback for each packet: what Sprout and Verus run on. Nothing is sent again.
//!
//! Every packet carries its number, the sender's timestamp and the time until the next packet; the receiver answers each at
//! once with the number, the echo and its receiver half's report. A packet is lost when three later ones were acknowledged,
//! or after a timeout of `max(srtt + 4 * variance, 200 ms)` without feedback.

use std::collections::VecDeque;

use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, Fate, Pacing, Packet, RateSample, Received, ReceiverHalf,
    Sample, Sent, Signal, State, Window,
};
use ranpace_units::{Bytes, Span, Time};

use crate::config::{Config, IP_HEADER, UDP_HEADER};
use crate::pacer::Pacer;
use crate::rtt::Rtt;
use crate::segment::{Kind, Segment};

/// Later packets acknowledged before one is taken for lost.
const REORDERING: u64 = 3;
/// Header of the transport: number and timestamp.
const HEADER: u64 = 16;

#[derive(Clone, Copy, Debug)]
struct InFlight {
    sent_at: Time,
    bytes: u32,
    acked: bool,
    delivered: u64,
    delivered_at: Time,
}

/// Counters of a datagram sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramStats {
    /// Packets sent.
    pub sent: u64,
    /// Packets taken for lost.
    pub lost: u64,
    /// Timeouts without feedback.
    pub timeouts: u64,
}

/// The sender.
#[derive(Debug)]
pub struct DatagramSender {
    control: Box<dyn CongestionControl>,
    window: Window,
    wire: u64,
    payload: u64,
    /// Bytes that the application has written and that were not sent yet.
    waiting: u64,
    /// Packets from number `first` on, not yet settled.
    packets: VecDeque<InFlight>,
    first: u64,
    next: u64,
    in_flight: u64,
    highest_acked: Option<u64>,
    delivered: u64,
    delivered_at: Time,
    lost: u64,
    rtt: Rtt,
    pacer: Pacer,
    paced_until: Option<Time>,
    timeout_at: Option<Time>,
    backoffs: u32,
    cwnd_limited: bool,
    /// The receiver is told of the pause before the next packet in the last one of a burst.
    started: bool,
    acked_bytes: u64,
    stats: DatagramStats,
}

impl DatagramSender {
    /// A sender of packets of up to `mtu` bytes.
    pub fn new(mtu: Bytes, control: Box<dyn CongestionControl>) -> Self {
        let config = Config::default();
        Self {
            control,
            window: Window::new(f64::from(config.initial_window)),
            wire: mtu.get(),
            payload: mtu.get().saturating_sub(IP_HEADER + UDP_HEADER + HEADER).max(1),
            waiting: 0,
            packets: VecDeque::new(),
            first: 0,
            next: 0,
            in_flight: 0,
            highest_acked: None,
            delivered: 0,
            delivered_at: Time::ZERO,
            lost: 0,
            rtt: Rtt::new(&config),
            pacer: Pacer::default(),
            paced_until: None,
            timeout_at: None,
            backoffs: 0,
            cwnd_limited: false,
            started: false,
            acked_bytes: 0,
            stats: DatagramStats::default(),
        }
    }

    /// Begins.
    pub fn open(&mut self, now: Time) {
        self.started = true;
        self.delivered_at = now;
        let cx = self.context(now);
        self.control.on_start(&cx, &mut self.window);
    }

    /// The application writes `bytes` more; [`Bytes::MAX`] for as much as the network takes.
    pub fn write(&mut self, bytes: Bytes) {
        self.waiting = self.waiting.saturating_add(bytes.get());
    }

    /// The application has nothing more: what was not sent yet is dropped.
    pub fn stop(&mut self) {
        self.waiting = 0;
    }

    /// The window as it stands.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The control, for inspection.
    pub fn control(&self) -> &dyn CongestionControl {
        self.control.as_ref()
    }

    /// RTT estimates.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// Packets in the network as far as is known.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Payload of a full packet.
    pub fn payload(&self) -> Bytes {
        Bytes::new(self.payload)
    }

    /// Payload sent.
    pub fn sent(&self) -> Bytes {
        Bytes::new(self.next * self.payload)
    }

    /// Payload acknowledged.
    pub fn acked(&self) -> Bytes {
        Bytes::new(self.acked_bytes)
    }

    /// Counters.
    pub fn stats(&self) -> &DatagramStats {
        &self.stats
    }

    /// Sets the target of a control that has one; false if it has none.
    pub fn set_target(&mut self, target: Span) -> bool {
        self.control.set_target(target)
    }

    fn context(&self, now: Time) -> Context {
        Context {
            now,
            mss: Bytes::new(self.payload),
            wire: Bytes::new(self.wire),
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            in_flight: self.in_flight,
            delivered: self.delivered,
            lost: self.lost,
            next_packet: self.next,
            state: State::Open,
            cwnd_limited: self.cwnd_limited,
            app_limited: self.waiting == 0,
        }
    }

    /// Feedback came. Returns the RTT sample it gave.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> Option<Span> {
        if segment.kind != Kind::Feedback || !self.started {
            return None;
        }
        if let Some(report) = &segment.report {
            let cx = self.context(now);
            self.control.on_report(&cx, &mut self.window, report);
        }
        let index = usize::try_from(segment.ack.checked_sub(self.first)?).ok()?;
        let packet = *self.packets.get(index)?;
        // A bare report repeats the last number: it acknowledges nothing anew.
        if packet.acked {
            return None;
        }
        self.packets[index].acked = true;
        let prior_in_flight = self.in_flight;
        self.in_flight -= 1;
        self.backoffs = 0;
        self.delivered += 1;
        self.acked_bytes += u64::from(packet.bytes);
        let rtt = now - packet.sent_at;
        self.rtt.note(now, rtt, false);
        self.rtt.on_sample(rtt, segment.ack, self.next);
        let one_way = Some(segment.timestamp - segment.echo);
        let bytes = Bytes::new(u64::from(packet.bytes));
        let event = Packet {
            number: segment.ack,
            bytes,
            sent_at: packet.sent_at,
            fate: Fate::Acked { rtt, one_way },
        };
        let cx = self.context(now);
        self.control.on_packet(&cx, &mut self.window, &event);
        let sample =
            Sample { delivered: 1, bytes, rtt: Some(rtt), one_way, in_flight_at_send: prior_in_flight };
        self.control.on_sample(&cx, &mut self.window, &sample);
        self.highest_acked = self.highest_acked.max(Some(segment.ack));
        let lost = self.detect_losses(now);
        let interval = now - packet.delivered_at;
        let rate = RateSample {
            delivered: self.delivered - packet.delivered,
            interval: (!interval.is_zero()).then_some(interval),
            prior_delivered: packet.delivered,
            app_limited: self.waiting == 0,
            lost,
            delayed: false,
        };
        self.delivered_at = now;
        let ack = Ack {
            acked: 1,
            delivered: 1,
            bytes,
            rtt: Some(rtt),
            rate,
            prior_in_flight,
            ecn_echo: segment.ecn_echo,
        };
        let cx = self.context(now);
        self.control.on_ack(&cx, &mut self.window, &ack);
        self.timeout_at = (self.in_flight > 0).then(|| now + self.rtt.backed_off(0));
        Some(rtt)
    }

    /// Settles packets from the front: acknowledged ones, and those that three later ones overtook.
    fn detect_losses(&mut self, now: Time) -> u64 {
        let mut lost = Vec::new();
        while let Some(&packet) = self.packets.front() {
            if !packet.acked {
                if self.highest_acked.is_none_or(|highest| highest < self.first + REORDERING) {
                    break;
                }
                lost.push((self.first, packet));
            }
            self.packets.pop_front();
            self.first += 1;
        }
        self.on_lost(now, &lost, Signal::Loss)
    }

    fn on_lost(&mut self, now: Time, lost: &[(u64, InFlight)], kind: Signal) -> u64 {
        let count = lost.len() as u64;
        if count == 0 {
            return 0;
        }
        self.in_flight -= count;
        self.lost += count;
        self.stats.lost += count;
        let cx = self.context(now);
        let (mut largest, mut newest) = (0, Time::ZERO);
        for &(number, packet) in lost {
            let bytes = Bytes::new(u64::from(packet.bytes));
            let event = Packet { number, bytes, sent_at: packet.sent_at, fate: Fate::Lost };
            self.control.on_packet(&cx, &mut self.window, &event);
            (largest, newest) = (packet.bytes.max(largest), newest.max(packet.sent_at));
        }
        let event = Congestion {
            kind,
            lost: count,
            largest: Bytes::new(u64::from(largest)),
            newest_sent_at: newest,
            first: true,
        };
        // These controls answer for themselves; a threshold, where one is given, is the new window.
        if let ranpace_cc::Answer::ReduceTo(window) =
            self.control.on_congestion(&cx, &mut self.window, &event)
        {
            (self.window.cwnd, self.window.ssthresh) = (window, window);
        }
        count
    }

    /// When [`Self::on_deadline`] is to be called next; [`Time::MAX`] for never.
    pub fn next_deadline(&self) -> Time {
        let mut at = self.timeout_at.unwrap_or(Time::MAX);
        if let Some(paced) = self.paced_until {
            at = at.min(paced);
        }
        if self.started
            && let Some(own) = self.control.next_deadline()
        {
            at = at.min(own);
        }
        at
    }

    /// A deadline has come (or not: then nothing happens).
    pub fn on_deadline(&mut self, now: Time) {
        if self.paced_until.is_some_and(|at| at <= now) {
            self.paced_until = None;
        }
        if self.started && self.control.next_deadline().is_some_and(|at| at <= now) {
            let cx = self.context(now);
            self.control.on_deadline(&cx, &mut self.window);
        }
        if self.timeout_at.is_some_and(|at| at <= now) {
            self.backoffs += 1;
            self.stats.timeouts += 1;
            let mut lost = Vec::new();
            while let Some(packet) = self.packets.pop_front() {
                if !packet.acked {
                    lost.push((self.first, packet));
                }
                self.first += 1;
            }
            self.on_lost(now, &lost, Signal::Timeout { count: self.backoffs });
            self.timeout_at = None;
        }
    }

    /// The next packet to send now. Call until `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if !self.started {
            return None;
        }
        let room = self.in_flight < self.window.cwnd.max(0.0) as u64;
        self.cwnd_limited = !room;
        if !room || self.waiting == 0 {
            return None;
        }
        let pacing = self.window.pacing;
        if !self.pacer.may_send(now, pacing) {
            self.paced_until = Some(self.pacer.next());
            return None;
        }
        let length = self.waiting.min(self.payload);
        if self.waiting != u64::MAX {
            self.waiting -= length;
        }
        let mut segment = Segment::new(Kind::Datagram, now);
        segment.number = self.next;
        segment.length = length as u32;
        let segment = &mut segment.measured(true);
        self.packets.push_back(InFlight {
            sent_at: now,
            bytes: length as u32,
            acked: false,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
        });
        self.next += 1;
        self.in_flight += 1;
        self.stats.sent += 1;
        if self.timeout_at.is_none() {
            self.timeout_at = Some(now + self.rtt.backed_off(self.backoffs));
        }
        let sent = Sent { number: segment.number, bytes: Bytes::new(length), retransmission: false };
        let cx = self.context(now);
        self.control.on_sent(&cx, &mut self.window, &sent);
        self.pacer.on_sent(now, pacing, u64::from(segment.wire), self.wire);
        // The last packet that may leave now says when the next one is to be expected.
        let more = self.waiting > 0 && self.in_flight < self.window.cwnd.max(0.0) as u64;
        if !more || matches!(pacing, Pacing::Rate(_)) {
            let at = if self.waiting == 0 { Time::MAX } else { self.next_send(now) };
            segment.time_to_next_us = u32::try_from((at - now).as_micros()).unwrap_or(u32::MAX);
        }
        Some(*segment)
    }

    /// When the next packet will probably leave, as far as the control's own clock tells.
    fn next_send(&self, now: Time) -> Time {
        let paced = self.pacer.next();
        let own = self.control.next_deadline().unwrap_or(now);
        if self.in_flight < self.window.cwnd.max(0.0) as u64 { paced.max(now) } else { own.max(now) }
    }
}

/// The receiver: answers each packet at once.
#[derive(Debug)]
pub struct DatagramReceiver {
    half: Option<Box<dyn ReceiverHalf>>,
    delivered: u64,
    last: Option<(u64, Time)>,
    /// Feedback that waits to be sent.
    pending: VecDeque<(u64, Time, bool)>,
    bare: bool,
}

impl DatagramReceiver {
    /// A receiver with the algorithm's receiver half, where it has one.
    pub fn new(half: Option<Box<dyn ReceiverHalf>>) -> Self {
        Self { half, delivered: 0, last: None, pending: VecDeque::new(), bare: false }
    }

    /// Payload received.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.delivered)
    }

    /// A packet came.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        if segment.kind != Kind::Datagram {
            return;
        }
        self.delivered += u64::from(segment.length);
        self.last = Some((segment.number, segment.timestamp));
        if let Some(half) = &mut self.half {
            half.on_data(&Received {
                now,
                number: Some(segment.number),
                bytes: Bytes::new(u64::from(segment.length)),
                wire: segment.wire_size(),
                sent_at: segment.timestamp,
                time_to_next: segment.time_to_next(),
                rtt: None,
            });
        }
        self.pending.push_back((segment.number, segment.timestamp, segment.ce));
    }

    /// When [`Self::on_deadline`] is to be called next; [`Time::MAX`] for never.
    pub fn next_deadline(&self) -> Time {
        self.half.as_ref().and_then(|half| half.next_deadline()).unwrap_or(Time::MAX)
    }

    /// A deadline has come (or not: then nothing happens).
    pub fn on_deadline(&mut self, now: Time) {
        if let Some(half) = &mut self.half
            && half.next_deadline().is_some_and(|at| at <= now)
        {
            self.bare |= half.on_deadline(now);
        }
    }

    /// The next feedback to send now. Call until `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let (number, echo, ce) = match self.pending.pop_front() {
            Some(packet) => packet,
            None if core::mem::take(&mut self.bare) => {
                let (number, echo) = self.last?;
                (number, echo, false)
            }
            None => return None,
        };
        let mut segment = Segment::new(Kind::Feedback, now);
        segment.ack = number;
        segment.echo = echo;
        segment.ecn_echo = ce;
        segment.report = self.half.as_mut().and_then(|half| half.report(now));
        Some(segment.measured(true))
    }
}
