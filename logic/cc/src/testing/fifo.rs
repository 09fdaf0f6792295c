//! For tests: one flow over a FIFO of constant (or stepwise changing) rate, with an acknowledgement per packet.
//!
//! The sender numbers packets, paces, samples the delivery rate and declares a packet lost when three later ones have
//! arrived, or after a timeout. No data are retransmitted: every packet is new, as on the datagram transport.

use std::collections::VecDeque;

use ranpace_units::{Bytes, Rate, Span, Time};

use crate::interface::*;

pub(crate) const MSS: u64 = 1448;
pub(crate) const WIRE: u64 = 1500;

/// The path.
pub(crate) struct Path {
    /// Rate from each instant on, in order; the first from zero.
    pub(crate) rates: Vec<(Time, Rate)>,
    /// RTT without queue or serialisation.
    pub(crate) rtt: Span,
    /// Packets that the queue holds.
    pub(crate) buffer: usize,
    /// One in this many packets is lost, at random places; zero for none.
    pub(crate) lose_every: u64,
}

impl Path {
    pub(crate) fn new(mbit_per_s: f64, rtt_ms: u64, buffer: usize) -> Self {
        Self {
            rates: vec![(Time::ZERO, Rate::from_bits_per_s_f64(mbit_per_s * 1e6))],
            rtt: Span::from_millis(rtt_ms),
            buffer,
            lose_every: 0,
        }
    }

    pub(crate) fn then(mut self, at_s: u64, mbit_per_s: f64) -> Self {
        self.rates.push((Time::from_secs(at_s), Rate::from_bits_per_s_f64(mbit_per_s * 1e6)));
        self
    }

    fn rate_at(&self, now: Time) -> Rate {
        self.rates.iter().rev().find(|(from, _)| *from <= now).unwrap().1
    }

    /// The bandwidth-delay product at the first rate, in packets.
    pub(crate) fn bdp(&self) -> f64 {
        self.rates[0].1.as_f64() * self.rtt.as_secs_f64() / (WIRE * 8) as f64
    }
}

#[derive(Clone, Copy, PartialEq)]
enum PacketFault {
    Flying,
    Acked,
    Lost,
}

#[derive(Clone, Copy)]
struct Record {
    number: u64,
    sent_at: Time,
    in_flight: u64,
    lost: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    fate: PacketFault,
}

impl Record {
    fn sending(&self, lost: u64) -> Sending {
        Sending { in_flight: self.in_flight + 1, lost_since: lost - self.lost, app_limited: false }
    }
}

/// Arrival at the sender, the packet acknowledged with its one-way delay, the report carried.
type Feedback = (Time, Option<(u64, Span)>, Option<ReceiverReport>);

/// The flow. Its public fields are for assertions.
pub(crate) struct Flow {
    pub(crate) path: Path,
    pub(crate) control: Box<dyn CongestionControl>,
    pub(crate) receiver: Option<Box<dyn ReceiverHalf>>,
    pub(crate) window: Window,
    pub(crate) now: Time,
    records: VecDeque<Record>,
    next: u64,
    pub(crate) in_flight: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    delivered_at: Time,
    first_sent_at: Time,
    srtt: Span,
    min_rtt: Span,
    state: State,
    recovery_until: u64,
    highest_acked: Option<u64>,
    pace_free: Time,
    last_progress: Time,
    timeouts: u32,
    /// Future departures from the FIFO.
    queue: VecDeque<Time>,
    line_free: Time,
    /// Arrivals at the receiver and at the sender.
    to_receiver: VecDeque<(Time, u64, Time, Span)>,
    to_sender: VecDeque<Feedback>,
    /// Time and queueing delay of each packet that passed the queue.
    pub(crate) delays: Vec<(Time, Span)>,
    pub(crate) max_in_flight: u64,
}

impl Flow {
    pub(crate) fn new(path: Path, name: &str, seed: u64) -> Self {
        let algorithm: crate::Algorithm = name.parse().unwrap();
        let mut flow = Self {
            control: algorithm.build(seed),
            receiver: algorithm.receiver(),
            window: Window::new(10.0),
            now: Time::ZERO,
            records: VecDeque::new(),
            next: 0,
            in_flight: 0,
            delivered: 0,
            lost: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            srtt: path.rtt,
            min_rtt: path.rtt,
            state: State::Open,
            recovery_until: 0,
            highest_acked: None,
            pace_free: Time::ZERO,
            last_progress: Time::ZERO,
            timeouts: 0,
            queue: VecDeque::new(),
            line_free: Time::ZERO,
            to_receiver: VecDeque::new(),
            to_sender: VecDeque::new(),
            delays: Vec::new(),
            max_in_flight: 0,
            path,
        };
        let cx = flow.context();
        flow.control.on_start(&cx, &mut flow.window);
        flow
    }

    pub(crate) fn context(&self) -> Context {
        Context {
            now: self.now,
            mss: Bytes::new(MSS),
            wire: Bytes::new(WIRE),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            in_flight: self.in_flight,
            delivered: self.delivered,
            lost: self.lost,
            next_packet: self.next,
            state: self.state,
            cwnd_limited: true,
            app_limited: false,
            departure: self.pace_free,
            paced: self.window.pacing != Pacing::Unlimited,
        }
    }

    pub(crate) fn min_rtt(&self) -> Span {
        self.min_rtt
    }

    /// A value that the control shows.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        let mut found = f64::NAN;
        self.control.inspect(&mut |key, value| {
            if key == name {
                found = value;
            }
        });
        found
    }

    /// Packets delivered per second over the rate of the line, from now until `until`.
    pub(crate) fn utilisation_until(&mut self, until: Time) -> f64 {
        let (from, before) = (self.now, self.delivered);
        self.run(until);
        let seconds = (self.now - from).as_secs_f64();
        (self.delivered - before) as f64 * (WIRE * 8) as f64
            / seconds
            / self.path.rate_at(self.now - Span::from_nanos(1)).as_f64()
    }

    /// Mean queueing delay of the packets that passed the queue in a period, in seconds.
    pub(crate) fn mean_delay(&self, from: Time, until: Time) -> f64 {
        let some: Vec<f64> = self
            .delays
            .iter()
            .filter(|(at, _)| *at >= from && *at < until)
            .map(|(_, d)| d.as_secs_f64())
            .collect();
        some.iter().sum::<f64>() / some.len() as f64
    }

    pub(crate) fn run(&mut self, until: Time) {
        self.run_with(until, &mut |_| {});
    }

    /// Runs the flow, and shows it after each event.
    pub(crate) fn run_with(&mut self, until: Time, look: &mut dyn FnMut(&Self)) {
        loop {
            self.send();
            let fits = (self.in_flight as f64) < self.window.cwnd.floor();
            let timeout =
                self.last_progress + (self.srtt * 2 + Span::from_millis(200)) * (1 << self.timeouts.min(6));
            let next = [
                fits.then_some(self.pace_free),
                self.to_receiver.front().map(|(at, ..)| *at),
                self.to_sender.front().map(|(at, ..)| *at),
                self.control.next_deadline(),
                self.receiver.as_ref().and_then(|receiver| receiver.next_deadline()),
                (self.in_flight > 0).then_some(timeout),
            ]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Time::MAX);
            if next >= until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            self.step(timeout);
            assert!(self.window.cwnd >= 1.0, "window {:?} at {:?}", self.window, self.now);
            assert_ne!(self.window.pacing, Pacing::Rate(Rate::ZERO));
            look(self);
        }
    }

    fn step(&mut self, timeout: Time) {
        if self.control.next_deadline().is_some_and(|at| at <= self.now) {
            let cx = self.context();
            self.control.on_deadline(&cx, &mut self.window);
            assert!(self.control.next_deadline().is_none_or(|at| at > self.now), "a deadline must move on");
        }
        if let Some(receiver) = &mut self.receiver
            && receiver.next_deadline().is_some_and(|at| at <= self.now)
            && receiver.on_deadline(self.now)
        {
            let report = receiver.report(self.now);
            self.to_sender.push_back((self.now + self.path.rtt / 2, None, report));
        }
        while self.to_receiver.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (now, number, sent_at, time_to_next) = self.to_receiver.pop_front().unwrap();
            let mut report = None;
            if let Some(receiver) = &mut self.receiver {
                receiver.on_data(&Received {
                    now,
                    number: Some(number),
                    bytes: Bytes::new(MSS),
                    wire: Bytes::new(WIRE),
                    sent_at,
                    time_to_next,
                    rtt: Some(self.srtt),
                });
                report = receiver.report(now);
            }
            self.to_sender.push_back((now + self.path.rtt / 2, Some((number, now - sent_at)), report));
        }
        while self.to_sender.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, acked, report) = self.to_sender.pop_front().unwrap();
            if let Some((number, one_way)) = acked {
                self.acknowledge(number, one_way);
            }
            if let Some(report) = report {
                let cx = self.context();
                self.control.on_report(&cx, &mut self.window, &report);
            }
        }
        if self.in_flight > 0
            && timeout <= self.now
            && self.last_progress + Span::from_millis(200) <= self.now
        {
            self.time_out();
        }
    }

    fn send(&mut self) {
        while (self.in_flight as f64) < self.window.cwnd.floor() && self.pace_free <= self.now {
            if self.in_flight == 0 {
                (self.first_sent_at, self.delivered_at) = (self.now, self.now);
                self.last_progress = self.now;
            }
            self.records.push_back(Record {
                number: self.next,
                sent_at: self.now,
                in_flight: self.in_flight,
                lost: self.lost,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                first_sent_at: self.first_sent_at,
                fate: PacketFault::Flying,
            });
            if let Pacing::Rate(rate) = self.window.pacing {
                self.pace_free = self.now + rate.time_for(Bytes::new(WIRE));
            }
            self.in_flight += 1;
            // As in Sprout's sender: with a full window it may be long until the next packet.
            let more = (self.in_flight as f64) < self.window.cwnd.floor();
            self.cross(self.next, if more { Span::ZERO } else { Span::from_millis(50) });
            self.max_in_flight = self.max_in_flight.max(self.in_flight);
            self.next += 1;
            let sent = Sent { number: self.next - 1, bytes: Bytes::new(MSS), retransmission: false };
            let cx = self.context();
            self.control.on_sent(&cx, &mut self.window, &sent);
        }
    }

    fn cross(&mut self, number: u64, time_to_next: Span) {
        while self.queue.front().is_some_and(|at| *at <= self.now) {
            self.queue.pop_front();
        }
        // A fixed hash spreads the losses.
        let random = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let unlucky = self.path.lose_every > 0 && random.is_multiple_of(self.path.lose_every);
        if self.queue.len() >= self.path.buffer || unlucky {
            return;
        }
        let begin = self.line_free.max(self.now);
        self.line_free = begin + self.path.rate_at(begin).time_for(Bytes::new(WIRE));
        self.queue.push_back(self.line_free);
        self.delays.push((self.now, begin - self.now));
        self.to_receiver.push_back((self.line_free + self.path.rtt / 2, number, self.now, time_to_next));
    }

    fn acknowledge(&mut self, number: u64, one_way: Span) {
        let first = self.records.front().unwrap().number;
        let Some(place) = number.checked_sub(first) else { return };
        let record = &mut self.records[place as usize];
        if record.fate != PacketFault::Flying {
            return; // late, after a timeout: the model does not undo it
        }
        record.fate = PacketFault::Acked;
        let record = *record;
        let prior_in_flight = self.in_flight;
        (self.in_flight, self.delivered, self.delivered_at) =
            (self.in_flight - 1, self.delivered + 1, self.now);
        (self.last_progress, self.timeouts) = (self.now, 0);
        let rtt = self.now - record.sent_at;
        self.srtt = (self.srtt * 7 + rtt) / 8;
        self.min_rtt = self.min_rtt.min(rtt);
        let interval = (record.sent_at - record.first_sent_at).max(self.delivered_at - record.delivered_at);
        self.first_sent_at = record.sent_at;
        self.tell(&record, self.lost, PacketOutcome::Acked { rtt, one_way: Some(one_way) });
        let cx = self.context();
        self.control.on_sample(
            &cx,
            &mut self.window,
            &Sample {
                delivered: 1,
                bytes: Bytes::new(MSS),
                rtt: Some(rtt),
                one_way: Some(one_way),
                in_flight_at_send: record.in_flight,
            },
        );
        self.highest_acked = self.highest_acked.max(Some(number));
        let lost = self.find_losses();
        if self.state != State::Open && number >= self.recovery_until {
            self.state = State::Open;
            let cx = self.context();
            self.control.on_recovered(&cx, &mut self.window);
        }
        let cx = self.context();
        self.control.on_ack(
            &cx,
            &mut self.window,
            &Ack {
                acked: 1,
                delivered: 1,
                bytes: Bytes::new(MSS),
                rtt: Some(rtt),
                rate: RateSample {
                    delivered: self.delivered - record.delivered,
                    interval: (interval >= self.min_rtt).then_some(interval),
                    prior_delivered: record.delivered,
                    app_limited: false,
                    lost,
                    lost_since_send: self.lost - record.lost,
                    in_flight_at_send: record.in_flight + 1,
                    delayed: false,
                },
                prior_in_flight,
                ecn_echo: false,
                marked: 0,
                braked: 0,
            },
        );
        while self.records.len() > 1
            && self.records.front().is_some_and(|record| record.fate != PacketFault::Flying)
        {
            self.records.pop_front();
        }
    }

    fn tell(&mut self, record: &Record, lost: u64, fate: PacketOutcome) {
        if self.control.wants_packets() {
            let cx = self.context();
            let Record { number, sent_at, .. } = *record;
            let sending = record.sending(lost);
            let packet = Packet { number, bytes: Bytes::new(MSS), sent_at, sending, fate };
            self.control.on_packet(&cx, &mut self.window, &packet);
        }
    }

    fn find_losses(&mut self) -> u64 {
        let Some(highest) = self.highest_acked else { return 0 };
        let mut found = Vec::new();
        for record in &mut self.records {
            if record.number + 3 > highest {
                break;
            }
            if record.fate == PacketFault::Flying {
                record.fate = PacketFault::Lost;
                found.push(*record);
            }
        }
        self.give_up(&found, Signal::Loss);
        found.len() as u64
    }

    fn time_out(&mut self) {
        self.timeouts += 1;
        let mut found = Vec::new();
        for record in &mut self.records {
            if record.fate == PacketFault::Flying {
                record.fate = PacketFault::Lost;
                found.push(*record);
            }
        }
        self.last_progress = self.now;
        self.give_up(&found, Signal::Timeout { count: self.timeouts });
    }

    fn give_up(&mut self, found: &[Record], kind: Signal) {
        let Some(newest) = found.last() else { return };
        self.in_flight -= found.len() as u64;
        let before = self.lost;
        self.lost += found.len() as u64;
        for (place, record) in (1..).zip(found) {
            self.tell(record, before + place, PacketOutcome::Lost);
        }
        let first = self.state == State::Open;
        let event = Congestion {
            kind,
            lost: found.len() as u64,
            largest: Bytes::new(MSS),
            newest_sent_at: newest.sent_at,
            first,
        };
        let cx = self.context();
        let answer = self.control.on_congestion(&cx, &mut self.window, &event);
        if first {
            self.recovery_until = self.next;
        }
        self.state = if kind == Signal::Loss { State::Recovery } else { State::Loss };
        if let LossResponse::ReduceTo(ssthresh) = answer
            && first
        {
            self.window.ssthresh = ssthresh;
            self.window.cwnd = if kind == Signal::Loss { ssthresh.max(1.0) } else { 1.0 };
        }
    }
}
