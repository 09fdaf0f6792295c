//! A flow at its two ends: endpoints of its transport, and the application that feeds them.

use std::hint::black_box;

use ranpace_scenario::{FlowSpec, Transport, Workload};
use ranpace_tcp::{DatagramReceiver, DatagramSender, Receiver, Segment, Sender};
use ranpace_units::{Bytes, Span, Time};

use crate::packet::Direction;
use crate::random::mix;
use crate::results::Transfer;
use crate::udp::UdpSource;

/// The two ends of a flow.
#[derive(Debug)]
pub(crate) enum Ends {
    Tcp(Box<Sender>, Box<Receiver>),
    Datagram(Box<DatagramSender>, Box<DatagramReceiver>),
    Udp(Box<UdpSource>, Bytes),
    /// Not begun.
    None,
}

/// What earlier connections of a flow, or a phase before the measured part, have to their account.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub delivered: u64,
    pub sent: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    pub undone: u64,
    pub sent_bytes: u64,
    pub acked_bytes: u64,
}

/// A flow while it is played.
#[derive(Debug)]
pub(crate) struct Flow {
    pub ends: Ends,
    /// Number of the current connection.
    pub connection: u32,
    pub transfers: Vec<Transfer>,
    /// Payload that the transfers begun so far hold on the current connection, and those that are complete.
    asked: u64,
    complete: usize,
    /// Of the connections before the current one.
    earlier: Account,
    /// When the flow had delivered all it will ever have.
    pub finished: Option<Time>,
    pub stopped: bool,
    seed: u64,
}

impl Flow {
    pub fn new(seed: u64) -> Self {
        Self {
            ends: Ends::None,
            connection: 0,
            transfers: Vec::new(),
            asked: 0,
            complete: 0,
            earlier: Account::default(),
            finished: None,
            stopped: false,
            seed,
        }
    }

    /// Opens a connection, the first or another one, and begins what the application does first. Returns when the
    /// application is to be asked again.
    pub fn begin(&mut self, spec: &FlowSpec, now: Time) -> Option<Time> {
        if !matches!(self.ends, Ends::None) {
            self.earlier = self.account();
            self.connection += 1;
        }
        (self.asked, self.complete) = (0, self.transfers.len());
        let seed = mix(self.seed, u64::from(self.connection));
        self.ends = match &spec.transport {
            Transport::Tcp { algorithm, config } => {
                let mut sender = Box::new(Sender::new(config, algorithm.build(seed)));
                let mut receiver = Box::new(Receiver::new(config, algorithm.receiver()));
                sender.open(now);
                receiver.open(now);
                Ends::Tcp(sender, receiver)
            }
            Transport::Datagram { algorithm, mtu } => {
                let mut sender = Box::new(DatagramSender::new(*mtu, algorithm.build(seed)));
                sender.open(now);
                Ends::Datagram(sender, Box::new(DatagramReceiver::new(algorithm.receiver())))
            }
            Transport::Udp { packet } => {
                Ends::Udp(Box::new(UdpSource::new(&spec.workload, *packet, now, seed)), Bytes::ZERO)
            }
        };
        self.write(&spec.workload, now)
    }

    /// The application writes. Returns when it is to be asked again.
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
        self.transfers.push(Transfer { start: now, size, completion: None });
        self.supply(size);
    }

    fn supply(&mut self, bytes: Bytes) {
        match &mut self.ends {
            Ends::Tcp(sender, _) => sender.write(bytes),
            Ends::Datagram(sender, _) => sender.write(bytes),
            Ends::Udp(..) | Ends::None => {}
        }
    }

    /// The application stops: what is in flight still arrives.
    pub fn stop(&mut self) {
        self.stopped = true;
        match &mut self.ends {
            Ends::Tcp(sender, _) => sender.stop(),
            Ends::Datagram(sender, _) => sender.stop(),
            Ends::Udp(source, _) => source.stop(),
            Ends::None => {}
        }
    }

    /// A segment reached the receiving end. Returns when the next connection is to begin, where the workload has one.
    #[inline]
    pub fn on_data(&mut self, workload: &Workload, now: Time, segment: &Segment) -> Option<Time> {
        match &mut self.ends {
            Ends::Tcp(_, receiver) => {
                receiver.on_segment(now, segment);
                if self.complete < self.transfers.len() {
                    return self.check_transfers(workload, now);
                }
                None
            }
            Ends::Datagram(_, receiver) => {
                receiver.on_segment(now, segment);
                None
            }
            Ends::Udp(_, delivered) => {
                *delivered += Bytes::new(u64::from(segment.length));
                None
            }
            Ends::None => None,
        }
    }

    fn check_transfers(&mut self, workload: &Workload, now: Time) -> Option<Time> {
        let Ends::Tcp(_, receiver) = &self.ends else { return None };
        let delivered = receiver.delivered().get();
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

    /// Brings what a packet in this direction will need into the processor's cache.
    #[inline]
    pub fn warm(&self, direction: Direction) {
        if let Ends::Tcp(sender, receiver) = &self.ends {
            black_box(match direction {
                Direction::Forward => receiver.warm(),
                Direction::Back => sender.warm(),
            });
        }
    }

    /// A segment reached the sending end. Returns the RTT sample it gave.
    #[inline]
    pub fn on_feedback(&mut self, now: Time, segment: &Segment) -> Option<Span> {
        match &mut self.ends {
            Ends::Tcp(sender, _) => sender.on_segment(now, segment),
            Ends::Datagram(sender, _) => sender.on_segment(now, segment),
            Ends::Udp(..) | Ends::None => None,
        }
    }

    /// Writes the next segment of the end that sends in this direction; false if there is none.
    #[inline]
    pub fn transmit(&mut self, direction: Direction, now: Time, out: &mut Segment) -> bool {
        let segment = match (&mut self.ends, direction) {
            (Ends::Tcp(sender, _), Direction::Forward) => return sender.transmit(now, out),
            (Ends::Tcp(_, receiver), Direction::Back) => return receiver.transmit(now, out),
            (Ends::Datagram(sender, _), Direction::Forward) => sender.poll_transmit(now),
            (Ends::Datagram(_, receiver), Direction::Back) => receiver.poll_transmit(now),
            (Ends::Udp(source, _), Direction::Forward) => source.poll_transmit(now),
            (Ends::Udp(..), Direction::Back) | (Ends::None, _) => None,
        };
        segment.inspect(|segment| *out = *segment).is_some()
    }

    #[inline]
    pub fn sender_deadline(&self) -> Time {
        match &self.ends {
            Ends::Tcp(sender, _) => sender.next_deadline(),
            Ends::Datagram(sender, _) => sender.next_deadline(),
            Ends::Udp(source, _) => source.next_deadline(),
            Ends::None => Time::MAX,
        }
    }

    #[inline]
    pub fn receiver_deadline(&self) -> Time {
        match &self.ends {
            Ends::Tcp(_, receiver) => receiver.next_deadline(),
            Ends::Datagram(_, receiver) => receiver.next_deadline(),
            Ends::Udp(..) | Ends::None => Time::MAX,
        }
    }

    pub fn on_sender_deadline(&mut self, now: Time) {
        match &mut self.ends {
            Ends::Tcp(sender, _) => sender.on_deadline(now),
            Ends::Datagram(sender, _) => sender.on_deadline(now),
            Ends::Udp(..) | Ends::None => {}
        }
    }

    pub fn on_receiver_deadline(&mut self, now: Time) {
        match &mut self.ends {
            Ends::Tcp(_, receiver) => receiver.on_deadline(now),
            Ends::Datagram(_, receiver) => receiver.on_deadline(now),
            Ends::Udp(..) | Ends::None => {}
        }
    }

    /// All connections so far.
    pub fn account(&self) -> Account {
        let mut account = self.earlier;
        match &self.ends {
            Ends::Tcp(sender, receiver) => {
                let stats = sender.stats();
                account.delivered += receiver.delivered().get();
                account.sent += stats.sent;
                account.retransmitted += stats.retransmitted;
                account.timeouts += stats.timeouts;
                account.undone += stats.undone;
                account.sent_bytes += sender.sent().get();
                account.acked_bytes += sender.acked().get();
            }
            Ends::Datagram(sender, receiver) => {
                account.delivered += receiver.delivered().get();
                account.sent += sender.stats().sent;
                account.timeouts += sender.stats().timeouts;
                account.sent_bytes += sender.sent().get();
                account.acked_bytes += sender.acked().get();
            }
            Ends::Udp(source, delivered) => {
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
