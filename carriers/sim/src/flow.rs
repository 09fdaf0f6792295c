//! A flow with both of its endpoints and the application that feeds them.

use std::hint::black_box;

use ranpace_cc::{Algorithm, ControlChannel, RadioHint, Received, ReceiverHalf};
use ranpace_scenario::{FlowSpec, Transport, Workload};
use ranpace_tcp::{DatagramReceiver, DatagramSender, Kind, Receiver, Segment, Sender, prefetch};
use ranpace_units::{Bytes, Span, Time};

use crate::quic::QuicEnds;
use ranpace_network::Direction;
use ranpace_network::random::mix;
use ranpace_network::{FlowCounts, LostConnection, Transfer, UdpSource};

/// The two endpoints of a flow.
#[derive(Debug)]
pub(crate) enum Ends {
    Tcp(Box<Sender>, Box<Receiver>),
    Quic(Box<QuicEnds>),
    Datagram(Box<DatagramSender>, Box<DatagramReceiver>),
    Udp(Box<UdpSource>, UdpSink),
    /// Not started.
    None,
}

/// The receiver of datagrams without feedback.
#[derive(Debug, Default)]
pub(crate) struct UdpSink {
    delivered: Bytes,
    /// The receiver half of the algorithm; its output appears only in the series.
    pub estimator: Option<Box<dyn ReceiverHalf>>,
}

impl UdpSink {
    fn on_data(&mut self, now: Time, segment: &Segment) {
        let bytes = Bytes::new(u64::from(segment.length));
        self.delivered += bytes;
        if let Some(estimator) = &mut self.estimator {
            estimator.on_data(&Received {
                now,
                number: Some(segment.number),
                bytes,
                wire: segment.wire_size(),
                sent_at: segment.timestamp,
                time_to_next: segment.time_to_next(),
                rtt: None,
            });
        }
    }
}

/// Totals of a flow since its first packet, over all its connections, including the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub sent: u64,
    pub first_sent: Option<Time>,
    pub last_received: Option<Time>,
    pub last_acked: Option<Time>,
    pub received_packets: u64,
    pub one_way_sum: u64,
    pub acks: u64,
    pub feedback_one_way_sum: u64,
}

/// A simulated flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub ends: Ends,
    pub totals: Totals,
    /// Number of the current connection.
    pub connection: u32,
    pub transfers: Vec<Transfer>,
    /// Payload of the transfers begun so far on the current connection, and number of complete transfers.
    asked: u64,
    complete: usize,
    /// The same for transfers that were handed over.
    handed_bytes: u64,
    handed: usize,
    /// Counters of earlier connections.
    earlier: FlowCounts,
    /// When the flow had delivered everything it will deliver.
    pub finished: Option<Time>,
    pub stopped: bool,
    /// Set if its connection was lost, which ends the flow.
    pub lost: Option<Box<LostConnection>>,
    /// Behind a proxy: what the application wrote, until the server's endpoint takes it.
    pub diverted: Option<Bytes>,
    seed: u64,
}

impl Flow {
    pub fn new(seed: u64) -> Self {
        Self {
            ends: Ends::None,
            totals: Totals::default(),
            connection: 0,
            transfers: Vec::new(),
            asked: 0,
            complete: 0,
            handed_bytes: 0,
            handed: 0,
            earlier: FlowCounts::default(),
            finished: None,
            stopped: false,
            lost: None,
            diverted: None,
            seed,
        }
    }

    /// Opens a connection, the first or a later one, and starts the application. Returns when to ask the application again.
    pub fn begin(&mut self, spec: &FlowSpec, now: Time) -> Option<Time> {
        let seed = self.renew();
        self.diverted = None;
        self.ends = match &spec.transport {
            Transport::Tcp { algorithm, config, .. } => {
                let mut sender = Box::new(Sender::new(config, algorithm.build(seed)));
                let mut receiver = Box::new(Receiver::new(config, algorithm.receiver()));
                sender.open(now);
                receiver.open(now);
                Ends::Tcp(sender, receiver)
            }
            Transport::Quic { algorithm, config } => {
                Ends::Quic(Box::new(QuicEnds::new(algorithm, config, seed, now)))
            }
            Transport::Datagram { algorithm, mtu } => {
                let mut sender = Box::new(DatagramSender::new(*mtu, algorithm.build(seed)));
                sender.open(now);
                Ends::Datagram(sender, Box::new(DatagramReceiver::new(algorithm.receiver())))
            }
            Transport::Udp { packet, estimator } => {
                let mut estimator = estimator.as_ref().and_then(Algorithm::receiver);
                if let Some(estimator) = &mut estimator {
                    estimator.on_start(now);
                }
                let sink = UdpSink { delivered: Bytes::ZERO, estimator };
                Ends::Udp(Box::new(UdpSource::new(&spec.workload, *packet, now, seed)), sink)
            }
        };
        self.write(&spec.workload, now)
    }

    /// Has tags of sent packets recorded, where a Lightweight PEP cannot read sequence numbers.
    pub fn remember_tags(&mut self) {
        if let Ends::Quic(ends) = &mut self.ends {
            ends.remember_tags();
        }
    }

    /// Adds up the previous connection, if there was one. Returns the seed of the next.
    pub fn renew(&mut self) -> u64 {
        if !matches!(self.ends, Ends::None) {
            self.earlier = self.account();
            self.connection += 1;
        }
        self.ends = Ends::None;
        (self.asked, self.complete) = (0, self.transfers.len());
        (self.handed_bytes, self.handed) = (0, self.transfers.len());
        mix(self.seed, u64::from(self.connection))
    }

    /// The application writes. Returns when to ask it again.
    pub fn write(&mut self, workload: &Workload, now: Time) -> Option<Time> {
        if self.stopped {
            return None;
        }
        match *workload {
            Workload::Bulk => {
                self.supply(Bytes::MAX);
                None
            }
            Workload::Fixed { size } | Workload::Repeat { size, .. } => {
                self.transfer(size, now);
                None
            }
            Workload::Paced { rate, interval } => {
                self.supply(rate.bytes_in(interval));
                Some(now + interval)
            }
            Workload::Web { page, interval } => {
                self.transfer(page, now);
                Some(now + interval)
            }
            Workload::Cbr { .. } | Workload::Ppbp { .. } => None,
        }
    }

    fn transfer(&mut self, size: Bytes, now: Time) {
        self.transfers.push(Transfer { start: now, size, completion: None, handed_over: None });
        self.supply(size);
    }

    /// Passes the application's bytes to the sender.
    pub fn supply(&mut self, bytes: Bytes) {
        if let Some(diverted) = &mut self.diverted {
            *diverted += bytes;
            return;
        }
        match &mut self.ends {
            Ends::Tcp(sender, _) => sender.write(bytes),
            Ends::Quic(ends) => ends.write(bytes),
            Ends::Datagram(sender, _) => sender.write(bytes),
            Ends::Udp(..) | Ends::None => {}
        }
    }

    /// The application stops: data in flight still arrive.
    pub fn stop(&mut self) {
        self.stopped = true;
        if self.diverted.is_some() {
            return; // what the proxy holds still goes to the user
        }
        match &mut self.ends {
            Ends::Tcp(sender, _) => sender.stop(),
            Ends::Quic(ends) => ends.stop(),
            Ends::Datagram(sender, _) => sender.stop(),
            Ends::Udp(source, _) => source.stop(),
            Ends::None => {}
        }
    }

    /// A segment reached the receiver. Returns when the next connection begins, if the workload has one.
    #[inline]
    pub fn on_data(&mut self, workload: &Workload, now: Time, segment: &Segment) -> Option<Time> {
        if segment.length > 0 {
            let totals = &mut self.totals;
            totals.received_packets += 1;
            totals.one_way_sum += (now - segment.timestamp).as_nanos();
            totals.last_received = Some(now);
        }
        match &mut self.ends {
            Ends::Tcp(_, receiver) => {
                receiver.on_segment(now, segment);
                if self.complete < self.transfers.len() {
                    return self.check_transfers(workload, now);
                }
                None
            }
            // The content has been read by now: see `arrive`.
            Ends::Quic(_) if self.complete < self.transfers.len() => self.check_transfers(workload, now),
            Ends::Quic(_) => None,
            Ends::Datagram(_, receiver) => {
                receiver.on_segment(now, segment);
                None
            }
            Ends::Udp(_, sink) => {
                sink.on_data(now, segment);
                None
            }
            Ends::None => None,
        }
    }

    /// Returns whether all transfers begun so far are complete.
    pub fn is_complete(&self) -> bool {
        self.complete == self.transfers.len()
    }

    /// Records as handed over what a proxy on the path has seen, or the receiver has acknowledged.
    pub fn note_handover(&mut self, now: Time) {
        let seen = match &self.ends {
            Ends::Tcp(sender, _) => sender.seen_by_pep().max(sender.acked()).get(),
            Ends::Quic(ends) => ends.handed_over().get(),
            Ends::Datagram(..) | Ends::Udp(..) | Ends::None => return,
        };
        while let Some(transfer) = self.transfers.get_mut(self.handed) {
            let end = self.handed_bytes.saturating_add(transfer.size.get());
            if seen < end {
                return;
            }
            transfer.handed_over = Some(now - transfer.start);
            (self.handed_bytes, self.handed) = (end, self.handed + 1);
        }
    }

    fn check_transfers(&mut self, workload: &Workload, now: Time) -> Option<Time> {
        let delivered = match &self.ends {
            Ends::Tcp(_, receiver) => receiver.delivered().get(),
            Ends::Quic(ends) => ends.delivered().get(),
            Ends::Datagram(..) | Ends::Udp(..) | Ends::None => return None,
        };
        while let Some(transfer) = self.transfers.get_mut(self.complete) {
            if delivered < self.asked + transfer.size.get() {
                return None;
            }
            self.asked += transfer.size.get();
            transfer.completion = Some(now - transfer.start);
            self.complete += 1;
        }
        match *workload {
            Workload::Fixed { .. } => {
                self.finished = Some(now);
                None
            }
            Workload::Repeat { pause, count, .. } => {
                if count.is_some_and(|count| self.transfers.len() >= count as usize) {
                    self.finished = Some(now);
                    return None;
                }
                (!self.stopped).then(|| now + pause)
            }
            _ => None,
        }
    }

    /// Step `step`, from 0 to [`Self::PREFETCH_STEPS`], of prefetching the state that a packet in this direction needs; see
    /// [`ranpace_tcp::prefetch`].
    #[inline]
    pub fn prefetch(&self, direction: Direction, step: usize) {
        let Ends::Tcp(sender, receiver) = &self.ends else { return };
        match (step.checked_sub(1), direction) {
            (None, _) => {
                let Totals { acks, received_packets, .. } = &self.totals;
                black_box(acks ^ received_packets ^ self.complete as u64 ^ u64::from(self.connection));
            }
            (Some(step), Direction::Forward) => prefetch::receiver(receiver, step),
            (Some(step), Direction::Back) => prefetch::sender(sender, step),
        }
    }

    /// Number of steps of [`Self::prefetch`].
    pub const PREFETCH_STEPS: usize = 1 + prefetch::STEPS;

    /// A segment reached the sender. Returns the RTT sample it gave.
    #[inline]
    pub fn on_feedback(&mut self, now: Time, segment: &Segment) -> Option<Span> {
        if matches!(segment.kind, Kind::Ack | Kind::Feedback) {
            let totals = &mut self.totals;
            totals.acks += 1;
            totals.feedback_one_way_sum += (now - segment.timestamp).as_nanos();
            totals.last_acked = Some(now);
        }
        match &mut self.ends {
            Ends::Tcp(sender, _) => sender.on_segment(now, segment),
            Ends::Quic(ends) => ends.take_rtt(),
            Ends::Datagram(sender, _) => sender.on_segment(now, segment),
            Ends::Udp(..) | Ends::None => None,
        }
    }

    /// Writes the next segment of the endpoint that sends in this direction; false if there is none.
    #[inline]
    pub fn transmit(&mut self, direction: Direction, now: Time, out: &mut Segment) -> bool {
        let segment = match (&mut self.ends, direction) {
            (Ends::Tcp(sender, _), Direction::Forward) => {
                let sends = sender.transmit(now, out);
                if sends && out.length > 0 {
                    self.totals.sent += u64::from(out.length);
                    self.totals.first_sent.get_or_insert(now);
                }
                return sends;
            }
            (Ends::Tcp(_, receiver), Direction::Back) => return receiver.transmit(now, out),
            (Ends::Datagram(sender, _), Direction::Forward) => sender.poll_transmit(now),
            (Ends::Datagram(_, receiver), Direction::Back) => receiver.poll_transmit(now),
            (Ends::Udp(source, _), Direction::Forward) => source.poll_transmit(now),
            (Ends::Udp(..), Direction::Back) | (Ends::Quic(_) | Ends::None, _) => None,
        };
        let Some(segment) = segment else { return false };
        *out = segment;
        if direction == Direction::Forward && out.length > 0 {
            self.totals.sent += u64::from(out.length);
            self.totals.first_sent.get_or_insert(now);
        }
        true
    }

    /// Returns whether its packets have content beside their segments: see [`Self::transmit_content`].
    #[inline]
    pub fn has_content(&self) -> bool {
        matches!(self.ends, Ends::Quic(_))
    }

    /// [`Self::transmit`] for a flow whose packets have content.
    pub fn transmit_content(
        &mut self,
        direction: Direction,
        now: Time,
        out: &mut Segment,
        content: &mut Vec<u8>,
    ) -> bool {
        let Ends::Quic(ends) = &mut self.ends else { return false };
        let sends = ends.transmit(direction, now, out, content);
        if sends && out.length > 0 {
            self.totals.sent += u64::from(out.length);
            self.totals.first_sent.get_or_insert(now);
        }
        sends
    }

    /// The content of a packet has arrived; its segment follows.
    pub fn arrive(&mut self, direction: Direction, now: Time, segment: &Segment, content: &[u8]) {
        if let Ends::Quic(ends) = &mut self.ends {
            ends.arrive(direction, now, segment, content);
            self.check_connection(now);
        }
    }

    /// Ends the flow if its connection is lost: outstanding requests will never be answered.
    fn check_connection(&mut self, now: Time) {
        let Ends::Quic(ends) = &self.ends else { return };
        if self.lost.is_none()
            && let Some(reason) = ends.lost()
        {
            self.lost = Some(Box::new(LostConnection { at: now, reason }));
            self.stop();
        }
    }

    /// Returns whether the sender's control wants radio information.
    pub fn sender_wants_radio(&self) -> bool {
        match &self.ends {
            Ends::Tcp(sender, _) => sender.control().wants_radio(),
            Ends::Quic(ends) => ends.wants_radio(),
            Ends::Datagram(..) | Ends::Udp(..) | Ends::None => false,
        }
    }

    /// Radio information for the sender's control.
    pub fn on_hint(&mut self, now: Time, hint: &RadioHint) {
        match &mut self.ends {
            Ends::Tcp(sender, _) => sender.on_radio(now, hint),
            Ends::Quic(ends) => ends.on_radio(now, hint),
            Ends::Datagram(..) | Ends::Udp(..) | Ends::None => {}
        }
    }

    /// Returns whether the receiver half of its algorithm wants grants, and CQI, from the device's modem.
    pub fn wants_radio(&self) -> (bool, bool) {
        self.half().map_or((false, false), |half| (half.wants_radio(), half.wants_quality()))
    }

    /// The receiver half of its algorithm, if it has one.
    pub fn half(&self) -> Option<&dyn ReceiverHalf> {
        match &self.ends {
            Ends::Tcp(_, receiver) => receiver.half(),
            Ends::Datagram(_, receiver) => receiver.half(),
            Ends::Udp(_, sink) => sink.estimator.as_deref(),
            Ends::Quic(_) | Ends::None => None,
        }
    }

    /// Information from the device's modem for the receiver half.
    pub fn on_modem(&mut self, now: Time, hint: &RadioHint) {
        match &mut self.ends {
            Ends::Tcp(_, receiver) => receiver.on_radio(now, hint),
            Ends::Datagram(_, receiver) => receiver.on_radio(now, hint),
            Ends::Udp(_, sink) => {
                if let Some(half) = &mut sink.estimator {
                    half.on_radio(now, hint);
                }
            }
            Ends::Quic(_) | Ends::None => {}
        }
    }

    /// A slot of its cell's control channel, for the receiver half.
    pub fn on_cell(&mut self, now: Time, channel: &ControlChannel<'_>) {
        match &mut self.ends {
            Ends::Tcp(_, receiver) => receiver.on_cell(now, channel),
            Ends::Datagram(_, receiver) => receiver.on_cell(now, channel),
            Ends::Udp(_, sink) => {
                if let Some(half) = &mut sink.estimator {
                    half.on_cell(now, channel);
                }
            }
            Ends::Quic(_) | Ends::None => {}
        }
    }

    #[inline]
    pub fn sender_deadline(&self) -> Time {
        match &self.ends {
            Ends::Tcp(sender, _) => sender.next_deadline(),
            Ends::Quic(ends) => ends.sender_deadline(),
            Ends::Datagram(sender, _) => sender.next_deadline(),
            Ends::Udp(source, _) => source.next_deadline(),
            Ends::None => Time::MAX,
        }
    }

    #[inline]
    pub fn receiver_deadline(&self) -> Time {
        match &self.ends {
            Ends::Tcp(_, receiver) => receiver.next_deadline(),
            Ends::Quic(ends) => ends.receiver_deadline(),
            Ends::Datagram(_, receiver) => receiver.next_deadline(),
            Ends::Udp(_, sink) => {
                sink.estimator.as_ref().and_then(|half| half.next_deadline()).unwrap_or(Time::MAX)
            }
            Ends::None => Time::MAX,
        }
    }

    pub fn on_sender_deadline(&mut self, now: Time) {
        match &mut self.ends {
            Ends::Tcp(sender, _) => sender.on_deadline(now),
            Ends::Quic(ends) => {
                ends.on_sender_deadline(now);
                self.check_connection(now);
            }
            Ends::Datagram(sender, _) => sender.on_deadline(now),
            Ends::Udp(..) | Ends::None => {}
        }
    }

    pub fn on_receiver_deadline(&mut self, now: Time) {
        match &mut self.ends {
            Ends::Tcp(_, receiver) => receiver.on_deadline(now),
            Ends::Quic(ends) => {
                ends.on_receiver_deadline(now);
                self.check_connection(now);
            }
            Ends::Datagram(_, receiver) => receiver.on_deadline(now),
            Ends::Udp(_, sink) => {
                if let Some(half) = &mut sink.estimator {
                    // No packet could carry a report.
                    let _wants_to_report = half.on_deadline(now);
                }
            }
            Ends::None => {}
        }
    }

    /// Counters of all connections so far.
    pub fn account(&self) -> FlowCounts {
        let mut account = self.earlier;
        match &self.ends {
            Ends::Tcp(sender, receiver) => {
                let stats = sender.stats();
                account.delivered += receiver.delivered().get();
                account.sent += stats.sent;
                account.retransmitted += stats.retransmitted;
                account.timeouts += stats.timeouts;
                account.undone += stats.undone;
                account.recoveries += stats.recoveries;
                account.sent_bytes += sender.sent().get();
                account.acked_bytes += sender.acked().get();
            }
            Ends::Quic(ends) => ends.add_to(&mut account),
            Ends::Datagram(sender, receiver) => {
                account.delivered += receiver.delivered().get();
                account.sent += sender.stats().sent;
                account.timeouts += sender.stats().timeouts;
                account.sent_bytes += sender.sent().get();
                account.acked_bytes += sender.acked().get();
            }
            Ends::Udp(source, UdpSink { delivered, .. }) => {
                account.delivered += delivered.get();
                account.sent += source.sent();
                account.sent_bytes += source.sent_bytes().get();
                account.acked_bytes += delivered.get();
            }
            Ends::None => {}
        }
        account
    }
}
