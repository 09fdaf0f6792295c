//! Reports of a proxy on the path (a Lightweight PEP) about which segments of this connection have passed it. The control is
//! told about each segment. A report removes nothing from the scoreboard, stops no timer, declares no loss and causes no
//! retransmission; but a control may choose to treat gaps there as losses before the receiver's evidence arrives
//! (`believes_gaps`).

use ranpace_cc::{Packet, PacketOutcome, PepReport, State};
use ranpace_units::{Bytes, Span, Time};

use super::Sender;
use super::recovery::Tally;
use crate::scoreboard::{Flags, Record};

/// A proxy's view of the connection, in bytes of the stream.
#[derive(Clone, Copy, Debug)]
pub struct PepView<'a> {
    /// Everything below has passed; with `new_epoch`, nothing is known about lower bytes.
    pub cumulative: u64,
    /// Ranges above that have passed: first byte and one past the last, in order. Bytes in between are missing.
    pub ranges: &'a [(u64, u64)],
    /// Time from the newest packet's arrival at the proxy to the report.
    pub hold: Span,
    /// ECN-marked packets that the proxy has counted.
    pub marked: Option<u64>,
    /// The proxy has restarted its counting.
    pub new_epoch: bool,
}

/// The ranges that the proxy's reports have covered.
#[derive(Debug, Default)]
pub(super) struct PepState {
    /// Everything below has been reported to the control.
    cumulative: u64,
    packets: Vec<Packet>,
}

impl Sender {
    /// Processes a proxy's view. Returns false if it covers data that were never sent.
    pub fn on_pep_view(&mut self, now: Time, view: &PepView<'_>) -> bool {
        let highest = view.ranges.last().map_or(view.cumulative, |range| range.1);
        if view.cumulative.max(highest) > self.next {
            return false;
        }
        let mut state = self.pep.take().unwrap_or_default();
        state.packets.clear();
        if view.new_epoch {
            state.cumulative = view.cumulative;
        }
        let from = state.cumulative;
        state.cumulative = from.max(view.cumulative);
        let mut newest: Option<Record> = None;
        let packets = &mut state.packets;
        let lost = self.lost;
        let mut seen = 0;
        let mut came = |record: &Record| {
            let fate = PacketOutcome::Seen { rtt: now - record.sent_at };
            packets.push(packet(record, lost, fate));
            seen += u64::from(record.length);
            if newest.is_none_or(|newest| record.number > newest.number) {
                newest = Some(*record);
            }
        };
        self.board.mark_at_proxy(from, view.cumulative, Flags::PEP_SEEN, Flags::PEP_SEEN, &mut came);
        for &(start, end) in view.ranges {
            self.board.mark_at_proxy(start, end, Flags::PEP_SEEN, Flags::PEP_SEEN, &mut came);
        }
        let mut missing = 0;
        let mut end = view.cumulative;
        for &(start, next) in view.ranges {
            // A retransmission may be missing because the proxy cannot tell it from the original.
            let known = Flags::PEP_SEEN | Flags::PEP_MISSING | Flags::SACKED | Flags::EVER_RETRANSMITTED;
            self.board.mark_at_proxy(end, start, Flags::PEP_MISSING, known, &mut |record| {
                state.packets.push(packet(record, lost, PacketOutcome::Missing));
                missing += 1;
            });
            end = next;
        }
        let cx = self.context(now);
        if self.wants_packets {
            for packet in &state.packets {
                self.control.on_packet(&cx, &mut self.window, packet);
            }
        }
        // Karn: for a segment sent twice it is unknown which copy passed.
        let newest = newest.filter(|newest| !newest.flags.has(Flags::EVER_RETRANSMITTED));
        let rtt = newest.map(|newest| now - newest.sent_at - view.hold);
        let report = PepReport {
            seen: Bytes::new(seen),
            rtt: rtt.filter(|rtt| !rtt.is_zero()),
            missing,
            marked: view.marked,
            new_epoch: view.new_epoch,
        };
        self.control.on_pep(&cx, &mut self.window, &report);
        self.pep = Some(state);
        if self.sack
            && !view.ranges.is_empty()
            && let Some(until) = self.control.believes_gaps(now)
        {
            self.repair_gaps(now, until);
        }
        true
    }

    /// Declares lost the segments that the proxy missed and that were sent by `until`. Retransmissions are excluded: the
    /// proxy may miss them because it cannot tell them from the original.
    fn repair_gaps(&mut self, now: Time, until: Time) {
        let mut tally = Tally::new(self.wants_packets, self.lost);
        let known = Flags::PEP_SEEN | Flags::LOST | Flags::EVER_RETRANSMITTED;
        self.board.mark_all_lost(
            |_, record| {
                record.flags.has(Flags::PEP_MISSING) && !record.flags.has(known) && record.sent_at <= until
            },
            |record| tally.add(record),
        );
        if tally.count > 0 {
            let repairing = matches!(self.state, State::Recovery | State::Loss);
            self.on_losses(now, &tally);
            if let (false, Some(undo), Some(lowest)) = (repairing, &mut self.undo, tally.lowest) {
                // Segments before it may still be in flight.
                undo.marker = undo.marker.max(lowest);
            }
        }
    }

    /// One past the last byte that a proxy has seen in order.
    pub fn seen_by_pep(&self) -> Bytes {
        Bytes::new(self.pep.as_ref().map_or(0, |state| state.cumulative))
    }
}

fn packet(record: &Record, lost: u64, fate: PacketOutcome) -> Packet {
    Packet {
        number: record.number,
        bytes: Bytes::new(u64::from(record.length)),
        sent_at: record.sent_at,
        sending: record.sending(lost),
        fate,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may

    use std::sync::{Arc, Mutex};

    use ranpace_cc::{Ack, Congestion, CongestionControl, Context, LossResponse, Window};

    use super::*;
    use crate::{Config, Kind, Segment};

    /// Records its calls.
    #[derive(Debug, Default)]
    struct Listener(Arc<Mutex<Vec<String>>>, bool);

    impl CongestionControl for Listener {
        fn on_congestion(&mut self, _: &Context, _: &mut Window, _: &Congestion) -> LossResponse {
            LossResponse::Own
        }
        fn on_ack(&mut self, _: &Context, _: &mut Window, _: &Ack) {}
        fn wants_packets(&self) -> bool {
            true
        }
        fn on_packet(&mut self, _: &Context, _: &mut Window, packet: &Packet) {
            let text = match packet.fate {
                PacketOutcome::Seen { rtt } => format!("{} seen {}", packet.number, rtt.as_millis()),
                fate => format!("{} {fate:?}", packet.number),
            };
            self.0.lock().unwrap().push(text);
        }
        fn believes_gaps(&self, now: Time) -> Option<Time> {
            self.1.then(|| now - Span::from_millis(15))
        }
        fn on_pep(&mut self, _: &Context, _: &mut Window, report: &PepReport) {
            let rtt = report.rtt.map(|rtt| rtt.as_millis());
            let text = format!("report {} B, {rtt:?} ms, {} missing", report.seen.get(), report.missing);
            self.0.lock().unwrap().push(text);
        }
    }

    /// A sender that has sent its ten segments at 20 ms.
    fn sending(listener: Listener) -> Sender {
        let mut sender = Sender::new(&Config::default(), Box::new(listener));
        sender.open(Time::ZERO);
        assert_eq!(sender.poll_transmit(Time::ZERO).unwrap().kind, Kind::Syn);
        let mut answer = Segment::new(Kind::SynAck, Time::from_millis(10));
        answer.window = 1 << 20;
        sender.on_segment(Time::from_millis(20), &answer);
        sender.write(Bytes::MAX);
        let sent = core::iter::from_fn(|| sender.poll_transmit(Time::from_millis(20)));
        assert_eq!(sent.filter(|segment| segment.length > 0).count(), 10);
        sender
    }

    #[test]
    fn a_gap_is_repaired_early_only_where_the_control_wants_it_and_only_after_its_delay() {
        for (believes, ms, lost) in [(false, 60, 0), (true, 34, 0), (true, 35, 1)] {
            let mut sender = sending(Listener(Arc::default(), believes));
            let mss = sender.mss().get();
            let view = |cumulative: u64, ranges: &[(u64, u64)], at, sender: &mut Sender| {
                let ranges: Vec<_> = ranges.iter().map(|(a, b)| (a * mss, b * mss)).collect();
                let view = PepView {
                    cumulative: cumulative * mss,
                    ranges: &ranges,
                    hold: Span::ZERO,
                    marked: None,
                    new_epoch: false,
                };
                assert!(sender.on_pep_view(Time::from_millis(at), &view));
            };
            view(2, &[(3, 6)], ms, &mut sender);
            view(2, &[(3, 7)], ms, &mut sender);
            assert_eq!(sender.in_flight(), 10 - lost, "{believes} at {ms}");
            let again = sender.poll_transmit(Time::from_millis(ms)).map(|segment| segment.seq);
            assert_eq!(again == Some(2 * mss), lost > 0, "{again:?}: the missing one, once");
            view(2, &[(3, 8)], ms + 20, &mut sender);
            assert_eq!(sender.stats().retransmitted, lost);
        }
    }

    #[test]
    fn acknowledgements_before_a_gap_do_not_undo_its_early_repair() {
        let mut sender = sending(Listener(Arc::default(), true));
        let mss = sender.mss().get();
        let view = PepView {
            cumulative: 2 * mss,
            ranges: &[(3 * mss, 10 * mss)],
            hold: Span::ZERO,
            marked: None,
            new_epoch: false,
        };
        assert!(sender.on_pep_view(Time::from_millis(35), &view));
        assert_eq!(sender.poll_transmit(Time::from_millis(35)).map(|segment| segment.seq), Some(2 * mss));
        // Two segments before the gap arrive: their echoes predate the repair and say nothing about it.
        let mut ack = Segment::new(Kind::Ack, Time::from_millis(50));
        (ack.ack, ack.window, ack.echo) = (2 * mss, 1 << 20, Time::from_millis(20));
        sender.on_segment(Time::from_millis(60), &ack);
        assert_eq!(sender.stats().undone, 0);
        // Only the delayed original itself shows the mistake.
        ack.ack = 10 * mss;
        sender.on_segment(Time::from_millis(61), &ack);
        assert_eq!(sender.stats().undone, 1);
    }

    #[test]
    fn each_segment_is_told_once_and_before_the_report_and_nothing_is_taken_off() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut sender = sending(Listener(told.clone(), false));
        let deadline = sender.next_deadline();
        let mss = sender.mss().get();
        let mut view = |ms, cumulative: u64, ranges: &[(u64, u64)], new_epoch| {
            let view = PepView {
                cumulative: cumulative * mss,
                ranges: &ranges.iter().map(|(a, b)| (a * mss, b * mss)).collect::<Vec<_>>(),
                hold: Span::from_millis(1),
                marked: None,
                new_epoch,
            };
            let possible = sender.on_pep_view(Time::from_millis(ms), &view);
            (possible, core::mem::take(&mut *told.lock().unwrap()))
        };
        assert_eq!(
            view(30, 1, &[], false),
            (true, vec!["0 seen 10".into(), format!("report {mss} B, Some(9) ms, 0 missing")])
        );
        let (possible, news) = view(31, 2, &[(3, 5)], false);
        assert!(possible);
        assert_eq!(news[..4], ["1 seen 11", "3 seen 11", "4 seen 11", "2 Missing"]);
        assert_eq!(view(32, 2, &[(3, 5)], false).1, ["report 0 B, None ms, 0 missing"]);
        assert_eq!(view(33, 11, &[], false), (false, Vec::new()), "never sent");
        assert_eq!(view(33, 5, &[(6, 12)], false), (false, Vec::new()), "never sent");
        // From the middle of the connection: nothing is known about lower bytes.
        let (_, news) = view(34, 7, &[(8, 9)], true);
        assert_eq!(news[..2], ["8 seen 14", "7 Missing"]);
        assert_eq!(sender.acked(), Bytes::ZERO);
        assert_eq!(sender.in_flight(), 10);
        assert_eq!(sender.next_deadline(), deadline);
        assert_eq!(sender.stats().retransmitted, 0);
    }
}
