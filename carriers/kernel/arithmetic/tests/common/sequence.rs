//! A recorded run in the sequence space of TCP: the ledger of `logic/cc`, which knows each packet, beside the kernel's, which knows
//! sequence numbers and how many segments were acknowledged and lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use ranpace_cc::mdcc::{Domain, Ledger};
use ranpace_cc::{Algorithm, Context, PacketOutcome, PepReport, Sent, Signal, State};
use ranpace_kernel_arithmetic::ledger::{KernelLedger, Report};
use ranpace_kernel_arithmetic::mdcc::Event as Told;
use ranpace_kernel_arithmetic::record::{Event, Moment, Recorder};
use ranpace_scenario::{Scenario, Transport};
use ranpace_sim::Simulation;

use super::scenarios::{Files, Played};

/// Where the connections begin: sequence numbers wrap early.
const START: u32 = u32::MAX - 1_000_000;
/// Ranges of a report.
const RANGES: usize = 8;

/// What both ledgers have counted; of two numbers the first is that of `logic/cc`.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub acks: u64,
    pub reports: u64,
    /// Reports that the kernel's takes for impossible.
    pub refused: u64,
    /// Segments that the PEP has newly seen.
    pub seen: (u64, u64),
    /// Segments lost before the PEP, beyond it, and of which nobody knows.
    pub internet: (u64, u64),
    pub radio: (u64, u64),
    pub unknown: (u64, u64),
    /// Acknowledged segments that the PEP had not reported.
    pub unreported: (u64, u64),
    /// Segments on their way to the PEP after each acknowledgement, added up.
    pub unseen: (u64, u64),
    /// Of these, added up, how far apart the two are, without a sign.
    pub apart: u64,
}

impl Counted {
    pub fn join(&mut self, other: &Self) {
        let add = |sum: &mut (u64, u64), more: (u64, u64)| *sum = (sum.0 + more.0, sum.1 + more.1);
        self.acks += other.acks;
        self.reports += other.reports;
        self.refused += other.refused;
        self.apart += other.apart;
        add(&mut self.seen, other.seen);
        add(&mut self.internet, other.internet);
        add(&mut self.radio, other.radio);
        add(&mut self.unknown, other.unknown);
        add(&mut self.unreported, other.unreported);
        add(&mut self.unseen, other.unseen);
    }

    /// Mean distance of the segments on their way to the PEP.
    pub fn mean_apart(&self) -> f64 {
        self.apart as f64 / self.acks.max(1) as f64
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = |sum: u64| sum as f64 / self.acks.max(1) as f64;
        write!(
            f,
            "{} acks, {} reports ({} refused); seen {:?}, unreported {:?}, lost before {:?}, beyond {:?}, unknown {:?}; on the way {:.1} and {:.1}, {:.2} apart",
            self.acks,
            self.reports,
            self.refused,
            self.seen,
            self.unreported,
            self.internet,
            self.radio,
            self.unknown,
            mean(self.unseen.0),
            mean(self.unseen.1),
            self.mean_apart()
        )
    }
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    /// One past its last byte, since the connection began.
    end: u64,
    acked: bool,
    seen: bool,
}

/// A sender by sequence numbers, from the numbers of packets.
#[derive(Default)]
struct Sequence {
    segments: Vec<Segment>,
    /// The segment of each packet that the receiver was not heard to have.
    packets: BTreeMap<u64, usize>,
    /// Segments that are lost and were not sent again.
    lost: BTreeSet<usize>,
    /// The oldest that is not acknowledged.
    una: usize,
    /// The first that a PEP's counting has not seen; the newest that it has, and one more.
    cumulative: usize,
    highest: usize,
    newest_at: u64,
    /// Of the acknowledgement at hand.
    acked: u32,
    newly_lost: u32,
    logic: Ledger,
    kernel: KernelLedger,
    counted: Counted,
    sum: Arc<Mutex<Counted>>,
}

impl Drop for Sequence {
    fn drop(&mut self) {
        self.sum.lock().unwrap().join(&self.counted);
    }
}

impl Sequence {
    fn byte(&self, segment: usize) -> u32 {
        let before = segment.checked_sub(1).map_or(0, |before| self.segments[before].end);
        START.wrapping_add(before as u32)
    }

    fn sent(&mut self, cx: &Context, sent: &Sent) {
        self.logic.on_sent(sent.number, sent.retransmission);
        let segment = if sent.retransmission {
            // Linux sends lost segments in their order, and where none is lost the newest one (a probe).
            let again = self.lost.pop_first();
            again.unwrap_or_else(|| self.segments.len().saturating_sub(1))
        } else {
            let end = self.segments.last().map_or(0, |last| last.end) + sent.bytes.get();
            self.segments.push(Segment { end, acked: false, seen: false });
            self.segments.len() - 1
        };
        self.packets.insert(sent.number, segment);
        self.newest_at = cx.now.as_nanos();
    }

    /// The receiver has the segment of a packet, which may have been taken for lost.
    fn arrived(&mut self, number: u64) {
        if let Some(segment) = self.packets.remove(&number) {
            self.lost.remove(&segment);
            self.segments[segment].acked = true;
        }
        while self.segments.get(self.una).is_some_and(|segment| segment.acked) {
            self.una += 1;
        }
    }

    fn packet(&mut self, number: u64, fate: PacketOutcome) {
        match fate {
            PacketOutcome::Acked { .. } => {
                if let Some((seen, _)) = self.logic.on_acked(number) {
                    self.counted.unreported.0 += u64::from(!seen);
                }
                self.arrived(number);
                self.acked += 1;
            }
            PacketOutcome::Spurious => self.arrived(number),
            PacketOutcome::Seen { .. } => {
                self.counted.seen.0 += u64::from(self.logic.on_seen(number));
                if let Some(&segment) = self.packets.get(&number) {
                    self.segments[segment].seen = true;
                    self.highest = self.highest.max(segment + 1);
                }
            }
            PacketOutcome::Missing => {
                self.logic.on_missing(number);
            }
            PacketOutcome::Lost => {
                let of = match self.logic.on_lost(number) {
                    Domain::Internet => &mut self.counted.internet,
                    Domain::Radio => &mut self.counted.radio,
                    Domain::Unknown => &mut self.counted.unknown,
                };
                of.0 += 1;
                if let Some(&segment) = self.packets.get(&number)
                    && !self.segments[segment].acked
                {
                    self.lost.insert(segment);
                }
                self.newly_lost += 1;
            }
        }
    }

    /// The event as the kernel's program fills it in.
    fn told(&self, cx: &Context) -> Told {
        let open = matches!(cx.state, State::Open | State::Disorder).into();
        Told { path: cx.into(), open, ..Told::default() }
    }

    fn mark(&mut self, cx: &Context) {
        let (una, end) = (self.byte(self.una), self.byte(self.segments.len()));
        self.kernel.mark(una, end, cx.next_packet as u32, self.newest_at);
    }

    fn ack(&mut self, cx: &Context) {
        self.mark(cx);
        let mut told = self.told(cx);
        let una = self.byte(self.una);
        if self.acked > 0 {
            self.kernel.acked(&mut told, una, self.acked);
            self.counted.unreported.1 += u64::from(told.unreported);
        }
        if self.newly_lost > 0 {
            let before = u64::from(self.kernel.lost(&mut told, una, self.newly_lost));
            self.counted.internet.1 += before;
            let others = u64::from(self.newly_lost) - before;
            let of = if told.domain == 1 { &mut self.counted.radio } else { &mut self.counted.unknown };
            of.1 += others;
        }
        (self.acked, self.newly_lost) = (0, 0);
        let end = self.byte(self.segments.len());
        let unseen = (self.logic.unseen(), u64::from(self.kernel.unseen(una, end, told.path.mss)));
        self.counted.acks += 1;
        self.counted.unseen = (self.counted.unseen.0 + unseen.0, self.counted.unseen.1 + unseen.1);
        self.counted.apart += unseen.0.abs_diff(unseen.1);
    }

    /// A report, as a PEP that has seen this would write it.
    fn report(&mut self, cx: &Context, report: &PepReport) {
        self.mark(cx);
        if report.new_epoch {
            self.logic.forget_order();
            self.cumulative = self.una;
            self.highest = self.highest.max(self.una);
        }
        let came_by = |segment: &Segment| segment.seen || segment.acked;
        while self.segments.get(self.cumulative).is_some_and(came_by) {
            self.cumulative += 1;
        }
        self.highest = self.highest.max(self.cumulative);
        let mut message = Report {
            cumulative: self.byte(self.cumulative),
            hold: 0,
            has_marked: report.marked.is_some().into(),
            marked: report.marked.unwrap_or(0),
            new_epoch: report.new_epoch.into(),
            ..Report::default()
        };
        let mut at = self.cumulative;
        while at < self.highest && (message.count as usize) < RANGES {
            let until = |from: usize, is: bool| {
                (from..self.highest).find(|&i| came_by(&self.segments[i]) == is).unwrap_or(self.highest)
            };
            let start = until(at, true);
            let end = until(start, false);
            if start < end {
                message.ranges[message.count as usize] = [self.byte(start), self.byte(end)];
                message.count += 1;
            }
            at = end;
        }
        let mut told = self.told(cx);
        let end = self.byte(self.segments.len());
        self.counted.reports += 1;
        match self.kernel.report(&message, &mut told, end) {
            Some(news) => self.counted.seen.1 += u64::from(news.seen),
            None => self.counted.refused += 1,
        }
    }

    fn play(&mut self, moment: &Moment) {
        match &moment.event {
            Event::Sent(sent) => self.sent(&moment.cx, sent),
            Event::Packet(packet) => self.packet(packet.number, packet.fate),
            Event::Congestion(congestion, _) if matches!(congestion.kind, Signal::Timeout { .. }) => {
                // Linux's controls are not told which segments a timeout takes for lost.
                self.newly_lost = 0;
            }
            Event::Ack(_) => self.ack(&moment.cx),
            Event::Pep(report) => self.report(&moment.cx, report),
            _ => {}
        }
    }
}

/// Plays a scenario with Multi-Domain control, and each of its connections in both ledgers.
pub fn play_ledgers(played: &Played) -> Counted {
    let algorithm: Algorithm = "mdcc".parse().unwrap();
    let text = played.text.replace("CONTROL", algorithm.as_str());
    let mut scenario: Scenario = ranpace_scenario::parse(&text, &played.name, &mut Files)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let sum = Arc::new(Mutex::new(Counted::default()));
    for flow in &mut scenario.flows {
        if let Transport::Tcp { algorithm: of_flow, .. } = &mut flow.transport
            && of_flow == &algorithm
        {
            let sum = Arc::clone(&sum);
            *of_flow = algorithm.clone().with_around(Arc::new(move |control| {
                let mut sequence = Sequence::default();
                sequence.sum = Arc::clone(&sum);
                Box::new(Recorder::new(control, Box::new(move |moment| sequence.play(moment))))
            }));
        }
    }
    drop(Simulation::new(&scenario).run());
    drop(scenario);
    let found = sum.lock().unwrap().clone();
    assert!(found.acks > 0, "{}: nothing was recorded", played.name);
    found
}
