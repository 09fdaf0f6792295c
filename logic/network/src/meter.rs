//! Meters of flows and links. They count from the end of the warm-up.

use ranpace_link::{DropCause, Observer};
use ranpace_units::{Bytes, Span, Time};

use crate::histogram::Histogram;
use crate::packet::{Direction, PacketHandle, PacketPool};
use crate::results::Ledger;
use crate::tap::{Tap, TapEvent};

/// Weight of a new difference in jitter J1 (RFC 3550, 6.4.1).
const JITTER_WEIGHT: f64 = 1.0 / 16.0;

/// Figures of one flow's packets in the network.
#[derive(Clone, Debug, Default)]
pub struct FlowMeter {
    /// Since the last row of the series.
    row_delay_sum: f64,
    row_delay_max: f64,
    row_delay_count: u64,
    /// The slowest place on its path, as an index into [`crate::RunResult::links`].
    pub bottleneck: Option<u32>,
    /// Bytes that left the bottleneck.
    pub bottleneck_bytes: u64,
    last_delay: Option<f64>,
    jitter: f64,
    jitter_sum: f64,
    jitter_count: u64,
    /// Time of each packet in the bottleneck.
    pub delay: Histogram,
    /// Samples of the RTT.
    pub rtt: Histogram,
    /// Data packets dropped on the way.
    pub dropped: u64,
    /// Data packets marked on the way.
    pub marked: u64,
}

impl FlowMeter {
    /// A meter of a flow with this bottleneck.
    pub(crate) fn at(bottleneck: Option<u32>) -> Self {
        Self { bottleneck, ..Self::default() }
    }

    #[inline]
    fn on_departed(&mut self, wire: u32, waited: Span, measuring: bool) {
        let delay = waited.as_nanos() as f64;
        self.row_delay_sum += delay;
        self.row_delay_max = self.row_delay_max.max(delay);
        self.row_delay_count += 1;
        if !measuring {
            return;
        }
        self.bottleneck_bytes += u64::from(wire);
        self.delay.record(waited);
        if let Some(last) = self.last_delay {
            let difference = (delay - last).abs();
            self.jitter += (difference - self.jitter) * JITTER_WEIGHT;
            self.jitter_sum += self.jitter;
            self.jitter_count += 1;
        }
        self.last_delay = Some(delay);
    }

    /// Takes over what `other` measured for the current row of the series.
    pub fn take_row(&mut self, other: &mut Self) {
        self.row_delay_sum += core::mem::take(&mut other.row_delay_sum);
        self.row_delay_max = self.row_delay_max.max(core::mem::take(&mut other.row_delay_max));
        self.row_delay_count += core::mem::take(&mut other.row_delay_count);
    }

    /// Mean and largest delay of the current row, in seconds, NaN without a packet; begins the next row.
    pub(crate) fn take_row_delay(&mut self) -> [f64; 2] {
        let [mut mean, mut max] = [f64::NAN; 2];
        if self.row_delay_count > 0 {
            mean = self.row_delay_sum / self.row_delay_count as f64 / 1e9;
            max = self.row_delay_max / 1e9;
        }
        (self.row_delay_sum, self.row_delay_max, self.row_delay_count) = (0.0, 0.0, 0);
        [mean, max]
    }

    /// Jitter J1: mean of the smoothed difference between successive delays.
    pub fn jitter_ewma(&self) -> Span {
        if self.jitter_count == 0 {
            return Span::ZERO;
        }
        Span::from_nanos((self.jitter_sum / self.jitter_count as f64 + 0.5) as u64)
    }
}

/// Figures of one link.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkMeter {
    pub limited: bool,
    pub departed: u64,
    pub departed_packets: u64,
    pub dropped: u64,
    pub lost: u64,
    pub marked: u64,
    pub delay: Histogram,
    pub row_departed: u64,
    pub row_dropped: u64,
    pub row_delay_sum: f64,
    pub row_packets: u64,
}

/// A measurement not yet entered in its flow's meter.
#[derive(Clone, Copy, Debug)]
struct Note {
    flow: u32,
    what: NoteKind,
    time: Span,
}

#[derive(Clone, Copy, Debug)]
enum NoteKind {
    /// A packet of `wire` bytes left the queue of a limited link after this delay.
    Departed { link: u32, wire: u32 },
    /// An RTT sample.
    Rtt,
}

/// Notes that are entered together: as many as fit the first-level cache.
const NOTES: usize = 256;

/// All meters.
pub struct Meters<'a> {
    /// A meter of each flow, then of the connections to servers of split flows.
    pub flows: Vec<FlowMeter>,
    pub(crate) links: Vec<LinkMeter>,
    pub(crate) ledger: Ledger,
    /// The measured part has begun.
    pub(crate) measuring: bool,
    /// The packets to which links hold handles.
    pub packets: PacketPool,
    /// Observes packets.
    pub tap: Option<&'a mut dyn Tap>,
    notes: Vec<Note>,
}

impl<'a> Meters<'a> {
    pub(crate) fn new(flows: Vec<FlowMeter>, links: Vec<LinkMeter>) -> Self {
        Self {
            flows,
            links,
            ledger: Ledger::default(),
            measuring: false,
            packets: PacketPool::default(),
            tap: None,
            notes: Vec::with_capacity(NOTES),
        }
    }

    /// A flow's RTT was sampled.
    #[inline]
    pub fn on_rtt(&mut self, flow: u32, rtt: Span) {
        if self.measuring {
            self.note(Note { flow, what: NoteKind::Rtt, time: rtt });
        }
    }

    /// A participant dropped a passing packet.
    pub(crate) fn on_dropped_by_participant(&mut self, packet: PacketHandle) {
        self.ledger.dropped += Bytes::new(u64::from(packet.wire()));
        if self.measuring && packet.direction() == Direction::Forward {
            self.flows[packet.flow() as usize].dropped += 1;
        }
        self.packets.release(packet);
    }

    #[inline]
    fn note(&mut self, note: Note) {
        self.notes.push(note);
        if self.notes.len() == NOTES {
            self.settle();
        }
    }

    /// Enters the notes, in order. Call it before reading flows' meters, and before changing `measuring`.
    pub(crate) fn settle(&mut self) {
        let mut notes = core::mem::take(&mut self.notes);
        for &Note { flow, what, time } in &notes {
            let flow = &mut self.flows[flow as usize];
            match what {
                NoteKind::Departed { link, wire } if flow.bottleneck == Some(link) => {
                    flow.on_departed(wire, time, self.measuring);
                }
                NoteKind::Departed { .. } => {}
                NoteKind::Rtt => flow.rtt.record(time),
            }
        }
        notes.clear();
        self.notes = notes;
    }

    #[inline]
    pub(crate) fn at<'b>(&'b mut self, link: u32) -> AtLink<'a, 'b> {
        AtLink { meters: self, link }
    }
}

/// The meters, as seen by a link.
pub(crate) struct AtLink<'a, 'b> {
    meters: &'b mut Meters<'a>,
    link: u32,
}

impl Observer<PacketHandle> for AtLink<'_, '_> {
    fn on_dropped(&mut self, now: Time, packet: &PacketHandle, cause: DropCause) {
        let meters = &mut *self.meters;
        let (link, size) = (&mut meters.links[self.link as usize], Bytes::new(u64::from(packet.wire())));
        link.row_dropped += 1;
        let by_queue = matches!(cause, DropCause::Overflow | DropCause::Aqm);
        if by_queue {
            meters.ledger.dropped += size;
        } else {
            meters.ledger.lost += size;
        }
        if meters.measuring {
            if by_queue {
                link.dropped += 1;
            } else {
                link.lost += 1;
            }
            if packet.direction() == Direction::Forward {
                meters.flows[packet.flow() as usize].dropped += 1;
            }
        }
        if let Some(tap) = &mut meters.tap {
            tap.on_packet(now, self.link as usize, meters.packets.at(*packet), TapEvent::Dropped);
        }
        meters.packets.release(*packet);
    }

    #[inline]
    fn on_departed(&mut self, now: Time, packet: &PacketHandle, waited: Span, marked: bool) {
        let meters = &mut *self.meters;
        let link = &mut meters.links[self.link as usize];
        link.row_departed += u64::from(packet.wire());
        if meters.measuring {
            link.departed += u64::from(packet.wire());
            link.departed_packets += 1;
            link.marked += u64::from(marked);
        }
        let forward = packet.direction() == Direction::Forward;
        if link.limited {
            link.row_delay_sum += waited.as_nanos() as f64;
            link.row_packets += 1;
            if meters.measuring {
                link.delay.record(waited);
            }
            if forward {
                let what = NoteKind::Departed { link: self.link, wire: packet.wire() };
                meters.note(Note { flow: packet.flow(), what, time: waited });
            }
        }
        if marked && meters.measuring && forward {
            meters.flows[packet.flow() as usize].marked += 1;
        }
        if let Some(tap) = &mut meters.tap {
            tap.on_packet(now, self.link as usize, meters.packets.at(*packet), TapEvent::Departed);
        }
    }
}
