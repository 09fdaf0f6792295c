//! A datagram transport with feedback for each packet, for Sprout and Verus. Nothing is retransmitted.
//!
//! Every packet carries its number, the sender's timestamp and the time until the next packet; the receiver answers each at
//! once with the number, the echo and its receiver half's report. A packet is lost when one sent three places later has been
//! acknowledged (RFC 9002, 6.1.1), or after a timeout of `srtt + max(4 * variance, 200 ms)` without feedback.

use std::collections::VecDeque;

use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, ControlChannel, Pacing, Packet, PacketOutcome, RadioHint,
    RateSample, Received, ReceiverHalf, Sample, Sending, Sent, Signal, State, Window,
};
use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::config::{Config, IP_HEADER, UDP_HEADER};
use crate::pacer::Pacer;
use crate::rtt::Rtt;
use crate::segment::{Kind, Segment};

/// A packet is declared lost when one sent this many places later has been acknowledged.
const REORDERING: u64 = 3;
/// Header of the transport: number and timestamp.
const HEADER: u64 = 16;

#[derive(Clone, Copy, Debug)]
struct InFlight {
    sent_at: Time,
    bytes: u32,
    acked: bool,
    /// The sender's counts and times when it was sent, from which a rate sample starts, as in TCP.
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    in_flight: u64,
    lost: u64,
    app_limited: bool,
}

impl InFlight {
    /// The state when it was sent, and what was lost since, when the connection has lost `lost` packets.
    fn sending(&self, lost: u64) -> Sending {
        Sending { in_flight: self.in_flight + 1, lost_since: lost - self.lost, app_limited: self.app_limited }
    }
}

/// Counters of a datagram sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramStats {
    /// Packets sent.
    pub sent: u64,
    /// Packets declared lost.
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
    /// Bytes that the application has written but the sender has not sent yet.
    waiting: u64,
    /// Packets from number `first` on, not yet settled.
    packets: VecDeque<InFlight>,
    first: u64,
    next: u64,
    in_flight: u64,
    highest_acked: Option<u64>,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Packets sent until this many are delivered were application-limited.
    app_limited_until: u64,
    lost: u64,
    rtt: Rtt,
    pacer: Pacer,
    paced_until: Option<Time>,
    timeout_at: Option<Time>,
    backoffs: u32,
    cwnd_limited: bool,
    /// Whether the connection has been opened.
    started: bool,
    sent_bytes: u64,
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
            first_sent_at: Time::ZERO,
            app_limited_until: 0,
            lost: 0,
            rtt: Rtt::new(&config),
            pacer: Pacer::default(),
            paced_until: None,
            timeout_at: None,
            backoffs: 0,
            cwnd_limited: false,
            started: false,
            sent_bytes: 0,
            acked_bytes: 0,
            stats: DatagramStats::default(),
        }
    }

    /// Opens the connection.
    pub fn open(&mut self, now: Time) {
        self.started = true;
        self.delivered_at = now;
        let cx = self.context(now);
        self.control.on_start(&cx, &mut self.window);
    }

    /// The application writes `bytes` more; [`Bytes::MAX`] for an unlimited amount.
    pub fn write(&mut self, bytes: Bytes) {
        self.waiting = self.waiting.saturating_add(bytes.get());
    }

    /// The application has no more data: unsent data are dropped.
    pub fn stop(&mut self) {
        self.waiting = 0;
    }

    /// The current window.
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

    /// Packets in the network, as far as is known.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Payload of a full packet.
    pub fn payload(&self) -> Bytes {
        Bytes::new(self.payload)
    }

    /// Payload sent.
    pub fn sent(&self) -> Bytes {
        Bytes::new(self.sent_bytes)
    }

    /// Payload acknowledged.
    pub fn acked(&self) -> Bytes {
        Bytes::new(self.acked_bytes)
    }

    /// Counters.
    pub fn stats(&self) -> &DatagramStats {
        &self.stats
    }

    /// Sets the target of a control that has one; returns false for others.
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
            departure: self.pacer.next(),
            paced: self.window.pacing != Pacing::Unlimited,
        }
    }

    /// Processes feedback. Returns its RTT sample.
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
        // A bare report repeats the last number: it acknowledges nothing new.
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
            sending: packet.sending(self.lost),
            fate: PacketOutcome::Acked { rtt, one_way },
        };
        let cx = self.context(now);
        self.control.on_packet(&cx, &mut self.window, &event);
        let sample =
            Sample { delivered: 1, bytes, rtt: Some(rtt), one_way, in_flight_at_send: packet.in_flight };
        self.control.on_sample(&cx, &mut self.window, &sample);
        self.highest_acked = self.highest_acked.max(Some(segment.ack));
        let lost = self.detect_losses(now);
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.first_sent_at = self.first_sent_at.max(packet.sent_at);
        let interval = (now - packet.delivered_at).max(packet.sent_at - packet.first_sent_at);
        let rate = RateSample {
            delivered: self.delivered - packet.delivered,
            interval: (!interval.is_zero()).then_some(interval),
            prior_delivered: packet.delivered,
            app_limited: packet.app_limited,
            lost,
            lost_since_send: self.lost - packet.lost,
            in_flight_at_send: packet.in_flight + 1,
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
            marked: 0,
            braked: 0,
        };
        let cx = self.context(now);
        self.control.on_ack(&cx, &mut self.window, &ack);
        self.timeout_at = (self.in_flight > 0).then(|| now + self.rtt.backed_off(0));
        Some(rtt)
    }

    /// Settles packets from the front: acknowledged ones, and those overtaken by three later ones.
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
        let before = self.lost;
        self.lost += count;
        self.stats.lost += count;
        let cx = self.context(now);
        let (mut largest, mut newest) = (0, Time::ZERO);
        for (place, &(number, packet)) in (1..).zip(lost) {
            let bytes = Bytes::new(u64::from(packet.bytes));
            let sending = packet.sending(before + place);
            let event = Packet { number, bytes, sent_at: packet.sent_at, sending, fate: PacketOutcome::Lost };
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
        // These controls set their window themselves; a threshold, if one is returned, becomes the window.
        if let ranpace_cc::LossResponse::ReduceTo(window) =
            self.control.on_congestion(&cx, &mut self.window, &event)
        {
            (self.window.cwnd, self.window.ssthresh) = (window, window);
        }
        count
    }

    /// When to call [`Self::on_deadline`] next; [`Time::MAX`] for never.
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

    /// Processes due deadlines; does nothing if none is due.
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
            if room {
                self.app_limited_until = (self.delivered + self.in_flight).max(1);
            }
            self.paced_until = None;
            self.pacer.on_idle();
            return None;
        }
        let pacing = self.window.pacing;
        if !self.pacer.may_send(now, pacing) {
            self.paced_until = Some(self.pacer.next());
            return None;
        }
        self.paced_until = None;
        if self.in_flight == 0 {
            (self.delivered_at, self.first_sent_at) = (now, now);
        }
        let length = self.waiting.min(self.payload);
        if self.waiting != u64::MAX {
            self.waiting -= length;
        }
        let mut segment = Segment::new(Kind::Datagram, now);
        segment.number = self.next;
        segment.length = length as u32;
        segment.measure(true);
        self.packets.push_back(InFlight {
            sent_at: now,
            bytes: length as u32,
            acked: false,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: self.in_flight,
            lost: self.lost,
            app_limited: self.app_limited_until > 0,
        });
        self.sent_bytes += length;
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
        // The last packet that may be sent now announces when to expect the next one.
        let more = self.waiting > 0 && self.in_flight < self.window.cwnd.max(0.0) as u64;
        if !more || matches!(pacing, Pacing::Rate(_)) {
            let at = if self.waiting == 0 { Time::MAX } else { self.next_send(now) };
            segment.time_to_next_us = u32::try_from((at - now).as_micros()).unwrap_or(u32::MAX);
        }
        Some(segment)
    }

    /// When the next packet will probably be sent, judging by the control's own deadline.
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
    /// Feedback waiting to be sent.
    pending: VecDeque<(u64, Time, bool)>,
    bare: bool,
}

impl DatagramReceiver {
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

    /// A receiver with the algorithm's receiver half, if it has one.
    pub fn new(half: Option<Box<dyn ReceiverHalf>>) -> Self {
        Self { half, delivered: 0, last: None, pending: VecDeque::new(), bare: false }
    }

    /// Payload received.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.delivered)
    }

    /// Processes a packet.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        if segment.kind != Kind::Datagram {
            return;
        }
        self.delivered += u64::from(segment.length);
        let first = self.last.replace((segment.number, segment.timestamp)).is_none();
        if let Some(half) = &mut self.half {
            if first {
                half.on_start(now);
            }
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
        self.pending.push_back((segment.number, segment.timestamp, segment.ecn == Ecn::Ce));
    }

    /// When to call [`Self::on_deadline`] next; [`Time::MAX`] for never.
    pub fn next_deadline(&self) -> Time {
        self.half.as_ref().and_then(|half| half.next_deadline()).unwrap_or(Time::MAX)
    }

    /// Processes due deadlines; does nothing if none is due.
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
            Some(packet) => {
                self.bare = false; // this one carries the report
                packet
            }
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
        segment.measure(true);
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::testing::{Call, Scripted};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use ranpace_cc::{LossResponse, ReceiverReport};

    const MTU: Bytes = Bytes::new(1_500);

    fn opened(answer: fn(&Congestion, &Window) -> LossResponse) -> (DatagramSender, crate::testing::Calls) {
        let (control, calls) = Scripted::new(answer);
        let mut sender = DatagramSender::new(MTU, control);
        sender.open(Time::ZERO);
        sender.write(Bytes::MAX);
        (sender, calls)
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn send_all(sender: &mut DatagramSender, now: Time) -> Vec<Segment> {
        core::iter::from_fn(|| sender.poll_transmit(now)).collect()
    }

    fn answer_to(receiver: &mut DatagramReceiver, now: Time, packet: &Segment) -> Segment {
        receiver.on_segment(now, packet);
        receiver.poll_transmit(now).unwrap()
    }

    #[test]
    fn a_packet_is_lost_when_one_three_places_later_is_acknowledged() {
        let (mut sender, calls) = opened(|_, _| LossResponse::Own);
        let mut receiver = DatagramReceiver::new(None);
        let packets = send_all(&mut sender, ms(0));
        assert_eq!(packets.len(), 10);
        for (number, lost) in [(1, 0), (2, 0), (4, 1), (3, 1), (5, 1)] {
            let feedback = answer_to(&mut receiver, ms(50), &packets[number]);
            assert_eq!(sender.on_segment(ms(100), &feedback), Some(Span::from_millis(100)));
            assert_eq!(sender.stats().lost, lost, "after {number}");
        }
        assert_eq!(calls.congestions(), [(Signal::Loss, 1, true)]);
        assert_eq!(sender.in_flight(), 4);
        // Feedback on a settled packet is ignored.
        let feedback = answer_to(&mut receiver, ms(60), &packets[0]);
        assert_eq!(sender.on_segment(ms(110), &feedback), None);
    }

    #[test]
    fn silence_ends_in_a_timeout_that_backs_off() {
        let (mut sender, calls) = opened(|_, _| LossResponse::ReduceTo(2.0));
        send_all(&mut sender, ms(0));
        let first = sender.next_deadline();
        assert_eq!(first, ms(1_000));
        sender.on_deadline(first);
        assert_eq!((sender.in_flight(), sender.stats().timeouts, sender.stats().lost), (0, 1, 10));
        assert_eq!(send_all(&mut sender, first).len(), 2);
        assert_eq!(sender.next_deadline(), first + Span::from_secs(2));
        assert_eq!(calls.congestions(), [(Signal::Timeout { count: 1 }, 10, true)]);
    }

    #[test]
    fn the_last_packet_of_a_burst_says_when_the_next_comes() {
        let (mut sender, _) = opened(|_, _| LossResponse::Own);
        let burst = send_all(&mut sender, ms(0));
        assert!(burst.iter().all(|packet| packet.time_to_next().is_zero()), "more is queued");
        let (control, _) = Scripted::new(|_, _| LossResponse::Own);
        let mut sender = DatagramSender::new(MTU, control);
        sender.open(Time::ZERO);
        sender.write(sender.payload() * 2 + Bytes::new(100));
        let burst = send_all(&mut sender, ms(0));
        let pauses: Vec<_> = burst.iter().map(|packet| packet.time_to_next_us).collect();
        assert_eq!(pauses, [0, 0, u32::MAX], "nothing more is known to come");
        assert_eq!(sender.sent(), sender.payload() * 2 + Bytes::new(100));
    }

    #[test]
    fn samples_say_what_the_application_limited() {
        let (control, calls) = Scripted::new(|_, _| LossResponse::Own);
        let mut sender = DatagramSender::new(MTU, control);
        let mut receiver = DatagramReceiver::new(None);
        sender.open(Time::ZERO);
        for (now, limited) in [(0, false), (500, true)] {
            sender.write(sender.payload());
            let packet = send_all(&mut sender, ms(now))[0];
            let feedback = answer_to(&mut receiver, ms(now + 50), &packet);
            sender.on_segment(ms(now + 100), &feedback);
            let (_, call, _) = *calls.all().last().unwrap();
            let rate = Some(Span::from_millis(100));
            assert_eq!(
                call,
                Call::Ack { acked: 1, delivered: 1, rate, app_limited: limited },
                "idle time is not counted"
            );
        }
    }

    #[derive(Debug)]
    struct Ticking(Arc<Mutex<Time>>);

    impl ReceiverHalf for Ticking {
        fn on_data(&mut self, _: &Received) {}
        fn next_deadline(&self) -> Option<Time> {
            Some(*self.0.lock().unwrap())
        }
        fn on_deadline(&mut self, now: Time) -> bool {
            *self.0.lock().unwrap() = now + Span::from_millis(20);
            true
        }
        fn report(&mut self, _: Time) -> Option<ReceiverReport> {
            ReceiverReport::new(&[7])
        }
    }

    #[test]
    fn bare_reports_carry_the_report_and_acknowledge_nothing_anew() {
        let (mut sender, calls) = opened(|_, _| LossResponse::Own);
        let mut receiver = DatagramReceiver::new(Some(Box::new(Ticking(Arc::new(Mutex::new(ms(20)))))));
        receiver.on_deadline(ms(20));
        assert_eq!(receiver.poll_transmit(ms(20)), None, "nobody is known to report to");
        let packet = send_all(&mut sender, ms(20))[0];
        let feedback = answer_to(&mut receiver, ms(30), &packet);
        assert!(sender.on_segment(ms(40), &feedback).is_some());
        receiver.on_deadline(ms(40));
        let bare = receiver.poll_transmit(ms(40)).unwrap();
        assert_eq!((bare.ack, bare.report), (0, ReceiverReport::new(&[7])));
        assert_eq!(receiver.poll_transmit(ms(40)), None);
        assert_eq!(sender.on_segment(ms(50), &bare), None);
        assert_eq!(calls.count(|call| matches!(call, Call::Ack { .. })), 1);
        // A deadline that coincides with a packet: one report is enough.
        receiver.on_segment(ms(60), &send_all(&mut sender, ms(60))[0]);
        receiver.on_deadline(ms(60));
        assert!(receiver.poll_transmit(ms(60)).is_some());
        assert_eq!(receiver.poll_transmit(ms(60)), None);
    }

    proptest! {
        /// Every packet is acknowledged or lost exactly once, whatever the order of feedback.
        #[test]
        fn packets_are_settled_once(steps in vec((0..40_usize, 0..6_u8), 0..200)) {
            let (mut sender, calls) = opened(|_, _| LossResponse::Own);
            let mut receiver = DatagramReceiver::new(None);
            let (mut out, mut now) = (Vec::new(), Time::ZERO);
            for (pick, step) in steps {
                now += Span::from_millis(7);
                match step {
                    0 if sender.next_deadline() < Time::MAX => {
                        now = now.max(sender.next_deadline());
                        sender.on_deadline(now);
                    }
                    1 if !out.is_empty() => drop(out.remove(pick % out.len())),
                    2..=4 if !out.is_empty() => {
                        let packet: Segment = out.remove(pick % out.len());
                        let feedback = answer_to(&mut receiver, now, &packet);
                        sender.on_segment(now, &feedback);
                        sender.on_segment(now, &feedback);
                    }
                    _ => out.extend(send_all(&mut sender, now)),
                }
                let acked = calls.count(|call| matches!(call, Call::Packet { fate: PacketOutcome::Acked { .. }, .. })) as u64;
                let stats = *sender.stats();
                prop_assert_eq!(stats.sent, acked + stats.lost + sender.in_flight());
            }
        }
    }
}
