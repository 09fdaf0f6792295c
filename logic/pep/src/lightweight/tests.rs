use proptest::prelude::*;
use ranpace_units::{Span, Time};

use super::digest::{POWERS, PowerSums, tag};
use super::keys::{Direction, Replay, SealingKey};
use super::message::{Buffer, CLOSING, HEADER, Header, Kind, ReportMessage, Resync, Subscribe, TCP, View};
use super::*;

const SECRET: &[u8] = b"a secret of the operator and the server";
const SERVER: [u8; 16] = [1; 16];

fn wanted() -> Subscribe {
    Subscribe::new([7; 32], [9; 16])
}

fn flow(port: u16) -> FlowId {
    FlowId { source: SERVER, destination: [2; 16], source_port: 443, destination_port: port, protocol: 6 }
}

fn at(us: u64) -> Time {
    Time::from_nanos(us * 1_000)
}

/// A PEP and an agent that trust each other.
struct Rig {
    pep: Pep,
    agent: Agent,
}

impl Rig {
    fn new(settings: PepSettings) -> Self {
        let mut pep = Pep::new(settings);
        pep.add_server(SERVER, SECRET, 5);
        let mut agent = Agent::new(SECRET, settings.id, 5, wanted());
        let mut asked = agent.poll(Time::ZERO).unwrap();
        pep.on_datagram(Time::ZERO, SERVER, asked.as_mut_slice());
        Self { pep, agent }
    }

    fn segment(&mut self, now: Time, port: u16, seq: u32, length: u32) {
        let syn = seq == 0 && length == 1;
        let packet = Packet {
            flow: flow(port),
            bytes: 1_480,
            marked: false,
            body: Body::Tcp { seq, length, syn, reset: false },
        };
        self.pep.on_packet(now, &packet);
    }

    fn reports(&mut self, now: Time) -> Vec<Verified> {
        let mut found = Vec::new();
        while let Some(mut datagram) = self.pep.poll(now) {
            assert_eq!(datagram.to, SERVER);
            found.push(self.agent.on_datagram(now, datagram.content.as_mut_slice()).unwrap());
        }
        found
    }
}

fn tcp(verified: &Verified) -> (u32, Vec<(u32, u32)>) {
    match &verified.report.view {
        View::Tcp(view) => (view.cumulative, view.ranges().to_vec()),
        View::Opaque(_) => panic!("{verified:?}"),
    }
}

#[test]
fn a_flows_first_packets_are_reported_by_twos_and_later_ones_by_eights() {
    let mut rig = Rig::new(PepSettings::default());
    rig.agent.register(flow(1), 11);
    let mut reports = 0;
    for packet in 0..64 {
        rig.segment(at(1_000 * packet), 1, packet as u32 * 1_448, 1_448);
        reports += rig.reports(at(1_000 * packet)).len();
    }
    assert_eq!(reports, 32);
    for packet in 64..64 + 80 {
        // 1448 bytes every 100 us: the 2 ms limit never applies.
        rig.segment(at(100_000 + 100 * packet), 1, packet as u32 * 1_448, 1_448);
        reports += rig.reports(at(100_000 + 100 * packet)).len();
    }
    assert_eq!(reports, 32 + 10);
    assert_eq!(rig.reports(at(150_000)).len(), 1, "the end of a burst");
    // 2 ms after the first unreported packet; once 20 ms after the last; then nothing.
    rig.segment(at(200_000), 1, 144 * 1_448, 1_448);
    assert_eq!(rig.pep.next_deadline(), at(202_000));
    assert_eq!(rig.reports(at(202_000)).len(), 1);
    assert_eq!(rig.pep.next_deadline(), at(220_000));
    let last = rig.reports(at(220_000));
    assert!(last[0].report.closing && last[0].report.hold == Span::from_millis(20));
    assert_eq!(rig.pep.next_deadline(), Time::MAX);
    assert_eq!(tcp(&last[0]), (145 * 1_448, Vec::new()));
    assert_eq!((last[0].flow, last[0].report.packets), (11, 145));
}

#[test]
fn gap_is_reported_after_three_later_packets_and_a_millisecond() {
    let mut rig = Rig::new(PepSettings::default());
    rig.agent.register(flow(1), 0);
    let segment = |rig: &mut Rig, us, number: u32| rig.segment(at(us), 1, number * 1_000, 1_000);
    segment(&mut rig, 0, 0);
    segment(&mut rig, 10, 1);
    assert_eq!(rig.reports(at(10)).len(), 1);
    // 2 is missing; 3 and 4 came.
    segment(&mut rig, 20, 3);
    segment(&mut rig, 30, 4);
    assert_eq!(tcp(&rig.reports(at(30))[0]), (2_000, Vec::new()), "reordering, perhaps");
    segment(&mut rig, 40, 5);
    segment(&mut rig, 50, 6);
    assert_eq!(tcp(&rig.reports(at(50))[0]), (2_000, Vec::new()), "three later ones, but not yet 1 ms");
    assert_eq!(rig.pep.next_deadline(), at(1_020));
    assert_eq!(tcp(&rig.reports(at(1_020))[0]), (2_000, vec![(3_000, 7_000)]));
    // It comes after all.
    segment(&mut rig, 1_030, 2);
    segment(&mut rig, 1_040, 7);
    assert_eq!(tcp(&rig.reports(at(1_040))[0]), (8_000, Vec::new()));
    // A millisecond without later packets does not reveal a gap.
    segment(&mut rig, 2_000, 9);
    segment(&mut rig, 9_000, 10);
    assert_eq!(tcp(&rig.reports(at(9_000))[0]), (8_000, Vec::new()));
}

#[test]
fn more_gaps_than_a_report_holds_begin_a_new_epoch() {
    let mut rig = Rig::new(PepSettings::default());
    rig.agent.register(flow(1), 0);
    rig.segment(at(0), 1, 0, 1);
    for hole in 0..9u32 {
        rig.segment(at(1), 1, 2_000 * hole + 1_000, 1_000);
    }
    let last = rig.reports(at(5_000)).pop().unwrap();
    assert!(last.new_epoch && last.report.epoch == 1, "{last:?}");
    assert_eq!(tcp(&last), (18_000, Vec::new()));
}

#[test]
fn sequence_numbers_wrap_at_two_to_the_thirty_two() {
    let mut gaps = Gaps::default();
    let start = u32::MAX - 1_500;
    for (place, expected) in [(0, 1_000u32), (2, 1_000), (1, 3_000)] {
        let seq = start.wrapping_add(1_000 * place);
        assert!(gaps.on_segment(at(0), seq, 1_000));
        assert_eq!(gaps.view(at(0)).unwrap().cumulative, start.wrapping_add(expected));
    }
}

#[test]
fn unsubscribed_server_gets_only_offers() {
    let settings = PepSettings { offers: true, ..PepSettings::default() };
    let mut pep = Pep::new(settings);
    pep.add_server(SERVER, SECRET, 5);
    let mut offers = Vec::new();
    for packet in 0..200_000u64 {
        let now = at(100 * packet);
        let body = Body::Tcp { seq: packet as u32, length: 1, syn: false, reset: false };
        pep.on_packet(now, &Packet { flow: flow(1), bytes: 100, marked: false, body });
        while let Some(datagram) = pep.poll(now) {
            assert_eq!(datagram.content.as_slice().len(), 24);
            assert_eq!(Header::read(datagram.content.as_slice()).unwrap().kind, Kind::Hello);
            offers.push(packet);
        }
    }
    assert_eq!(offers, [63, 63 + 100_000], "after 64 packets, and every 10 s");
    assert_eq!(pep.len(), 0);
}

#[test]
fn reports_take_two_percent_of_the_flow_and_a_thousand_a_second() {
    let mut rig = Rig::new(PepSettings::default());
    rig.agent.register(flow(1), 0);
    // 1 Gbit/s for a second; and a flow of small packets.
    for (size, gap_us) in [(1_480u32, 12), (60, 12)] {
        let mut rig = Rig::new(PepSettings::default());
        rig.agent.register(flow(1), 0);
        let mut sent = 0u64;
        let mut seq = 0u32;
        for packet in 0..1_000_000 / gap_us {
            let now = at(gap_us * packet);
            let body = Body::Tcp { seq, length: size - 20, syn: false, reset: false };
            rig.pep.on_packet(now, &Packet { flow: flow(1), bytes: size, marked: false, body });
            seq = seq.wrapping_add(size - 20);
            sent += u64::from(size);
            while rig.pep.poll(now).is_some() {}
        }
        let PepStats { reports, report_bytes, .. } = *rig.pep.stats();
        assert!(reports <= 1_016, "{reports}");
        let beyond = report_bytes - 32 * 93;
        assert!(beyond <= sent / 50, "{beyond} of {sent}");
        assert!(reports > 100, "{reports}");
    }
}

#[test]
fn the_table_is_bounded_and_forgets_the_oldest() {
    let mut rig = Rig::new(PepSettings { flows: 4, ..PepSettings::default() });
    for port in 0..100 {
        rig.segment(at(u64::from(port)), port, 0, 1_000);
        rig.segment(at(u64::from(port)), 0, 0, 1_000);
        assert!(rig.pep.len() <= 4);
    }
    assert!(rig.pep.stats().evicted >= 95);
    rig.segment(Time::from_secs(31), 200, 0, 1_000);
    assert_eq!(rig.pep.len(), 1, "the others were silent for 30 s");
    assert!(Pep::bytes_per_flow() < 1_000, "{}", Pep::bytes_per_flow());
}

#[test]
fn forged_replayed_flooded_and_unknown_messages_are_refused() {
    let mut rig = Rig::new(PepSettings::default());
    rig.agent.register(flow(1), 0);
    rig.segment(at(0), 1, 0, 1_000);
    rig.segment(at(0), 1, 1_000, 1_000);
    let genuine = rig.pep.poll(at(0)).unwrap().content;
    let mut take = |bytes: &[u8], now| rig.agent.on_datagram(now, &mut bytes.to_vec());
    for place in 0..genuine.as_slice().len() {
        let mut forged = genuine.as_slice().to_vec();
        forged[place] ^= 1;
        assert!(take(&forged, at(1 + place as u64 * 1_000)).is_err(), "byte {place}");
    }
    let mut other = Buffer::default();
    let header = Header { kind: Kind::Report, flags: TCP, key: 5, pep: 1, sequence: 9 };
    SealingKey::derive(b"another secret", 1, 5, Direction::ToServer)
        .seal(&header, &mut other, |out| out.put(&[0; 33]));
    assert_eq!(take(other.as_slice(), at(900_000)), Err(Refusal::Forged));
    assert!(take(genuine.as_slice(), at(900_001)).is_ok());
    assert_eq!(take(genuine.as_slice(), at(900_002)), Err(Refusal::Replayed(0)));
    // A flood: before anything is opened.
    let flood = (0..10_000).filter(|_| take(&[0; 65], at(900_003)) == Err(Refusal::TooMany)).count();
    assert!(flood >= 9_700, "{flood}");
    // About a flow that the server does not have.
    rig.segment(at(2_000_000), 2, 0, 1_000);
    rig.segment(at(2_000_000), 2, 1_000, 1_000);
    let mut told = None;
    while let Some(mut stray) = rig.pep.poll(at(2_000_000)) {
        told = Some(rig.agent.on_datagram(at(2_000_000), stray.content.as_mut_slice()));
        if told.is_some_and(|told| told.is_err()) {
            break;
        }
    }
    let told = told.unwrap();
    assert!(matches!(told, Err(Refusal::UnknownFlow(_))), "{told:?}");
}

#[test]
fn pep_with_impossible_reports_is_ignored_for_a_minute() {
    let mut agent = Agent::new(SECRET, 1, 5, wanted());
    for n in 0..9 {
        assert_eq!(
            agent.on_datagram(at(n), &mut [0; 64]),
            Err(Refusal::NoMessage(message::MessageError::Version(0)))
        );
        agent.reject(at(n));
    }
    assert_eq!(agent.on_datagram(at(10), &mut [0; 64]), Err(Refusal::Distrusted));
    assert_ne!(agent.on_datagram(Time::from_secs(61), &mut [0; 64]), Err(Refusal::Distrusted));
}

#[test]
fn sizes_are_the_specifications() {
    let mut rig = Rig::new(PepSettings::default());
    rig.segment(at(0), 1, 0, 1_000);
    rig.segment(at(0), 1, 1_000, 1_000);
    // Header 16, body 28 + 5, seal 16.
    assert_eq!(rig.pep.poll(at(0)).unwrap().content.as_slice().len(), 65);
    let payload = [3; 64];
    let id = FlowId { protocol: 17, ..flow(7) };
    for _ in 0..2 {
        let body = Body::Opaque { payload: &payload, length: 1_200 };
        rig.pep.on_packet(at(1), &Packet { flow: id, bytes: 1_208, marked: false, body });
    }
    let opaque = rig.pep.poll(at(1)).unwrap().content.as_slice().len();
    assert_eq!(opaque, 16 + 28 + 5 + 64 + 16);
    // With the headers of IPv4 and UDP 157 bytes: 1.3 % of eight full-size packets.
    assert_eq!(opaque + 20 + 8, 157);
    assert!((157.0f64 / (8.0 * 1_500.0) - 0.013).abs() < 0.0005);
}

#[test]
fn evicted_flow_returns_in_a_later_epoch() {
    let mut rig = Rig::new(PepSettings::default());
    rig.agent.register(flow(1), 0);
    for round in 0..3 {
        let now = Time::from_secs(60 * round);
        rig.segment(now, 1, 1_000_000 * round as u32, 1_000);
        rig.segment(now, 1, 1_000_000 * round as u32 + 1_000, 1_000);
        let reports = rig.reports(now);
        // Its beginning was never seen.
        assert_eq!((reports[0].report.epoch, reports[0].new_epoch), (1 + round as u16, true));
        rig.pep.age(now + Span::from_secs(31));
        assert!(rig.pep.is_empty());
    }
}

#[test]
fn an_encrypted_flow_is_reported_by_its_tags() {
    let mut rig = Rig::new(PepSettings::default());
    let id = FlowId { protocol: 17, ..flow(7) };
    rig.agent.register(id, 0);
    let mut sent = SentTags::default();
    let (mut seen, mut missing) = (Vec::new(), Vec::new());
    for number in 0..500u64 {
        let payload = number.to_be_bytes();
        let now = at(number * 100);
        sent.on_sent(now, Some(number), tag(&wanted().tag_key, &payload, 1_200));
        if number % 50 == 7 {
            continue; // lost before the PEP
        }
        let body = Body::Opaque { payload: &payload, length: 1_200 };
        rig.pep.on_packet(now, &Packet { flow: id, bytes: 1_208, marked: false, body });
        while let Some(mut datagram) = rig.pep.poll(now) {
            // Every third report is lost on the channel: sums are cumulative.
            if datagram.content.as_slice()[15] % 3 == 1 {
                continue;
            }
            let verified = rig.agent.on_datagram(now, datagram.content.as_mut_slice()).unwrap();
            let View::Opaque(view) = verified.report.view else { panic!() };
            let located = sent.locate(verified.report.epoch, verified.report.packets, &view).unwrap();
            seen.extend(located.seen);
            missing.extend(located.missing);
        }
    }
    assert_eq!(missing, (0..10).map(|n| 50 * n + 7).collect::<Vec<_>>());
    assert!(seen.len() > 460 && seen.iter().all(|number| number % 50 != 7), "{}", seen.len());
}

#[test]
fn an_epoch_that_the_server_asks_for_counts_from_zero() {
    let mut rig = Rig::new(PepSettings::default());
    rig.agent.register(flow(1), 0);
    rig.segment(at(0), 1, 0, 1_000);
    rig.segment(at(0), 1, 1_000, 1_000);
    assert_eq!(rig.reports(at(0)).len(), 1);
    let mut asked = rig.agent.resync(&flow(1)).unwrap();
    rig.pep.on_datagram(at(1), SERVER, asked.as_mut_slice());
    rig.segment(at(2), 1, 2_000, 1_000);
    rig.segment(at(3), 1, 3_000, 1_000);
    let verified = rig.reports(at(3)).pop().unwrap();
    assert!(verified.new_epoch && verified.report.packets == 2);
}

#[test]
fn packets_that_were_not_observed_are_unknown_and_not_missing() {
    let mut rig = Rig::new(PepSettings::default());
    rig.agent.register(flow(1), 0);
    rig.segment(at(0), 1, 0, 1_000);
    rig.segment(at(1), 1, 1_000, 1_000);
    assert_eq!(tcp(&rig.reports(at(1))[0]), (2_000, Vec::new()));
    // 2 to 4 pass unobserved.
    rig.pep.lose_sight();
    for number in 5..9 {
        rig.segment(at(10), 1, 1_000 * number, 1_000);
    }
    let last = rig.reports(at(5_000)).pop().unwrap();
    assert!(last.new_epoch, "{last:?}");
    assert_eq!(tcp(&last), (9_000, Vec::new()));
}

#[test]
fn pep_that_starts_again_is_heard_after_a_second() {
    let mut rig = Rig::new(PepSettings::default());
    rig.agent.register(flow(1), 0);
    // It has counted anew twice, so the flow's epoch is 2.
    for number in 0..6 {
        if number % 2 == 0 {
            rig.pep.lose_sight();
        }
        rig.segment(at(number), 1, 1_000 * number as u32 + 1, 1_000);
    }
    assert!(rig.reports(at(10)).pop().unwrap().report.epoch >= 2);
    let mut again = Pep::new(PepSettings { first_sequence: 1 << 40, ..PepSettings::default() });
    again.add_server(SERVER, SECRET, 5);
    let mut asked = rig.agent.poll(Time::from_secs(1_800)).unwrap();
    again.on_datagram(at(20), SERVER, asked.as_mut_slice());
    let mut told = |rig: &mut Rig, now: Time, seq: u32| {
        for seq in [seq, seq + 1_000] {
            let body = Body::Tcp { seq, length: 1_000, syn: false, reset: false };
            again.on_packet(now, &Packet { flow: flow(1), bytes: 1_020, marked: false, body });
        }
        let mut datagram = again.poll(now).unwrap();
        rig.agent.on_datagram(now, datagram.content.as_mut_slice())
    };
    assert_eq!(told(&mut rig, at(30), 6_001), Err(Refusal::Outdated));
    let heard = told(&mut rig, at(1_100_000), 8_001).unwrap();
    assert!(heard.new_epoch && tcp(&heard) == (10_001, Vec::new()), "{heard:?}");
}

proptest! {
    /// Any up to 16 of up to 4096 that are missing are found, in whatever order the rest came.
    #[test]
    fn up_to_sixteen_missing_packets_are_identified(
        count in 1..600usize,
        missing in prop::collection::btree_set(0..600usize, 0..=POWERS),
        reversed in any::<bool>(),
        key in any::<[u8; 16]>(),
    ) {
        let tags: Vec<u32> = (0..count).map(|n| tag(&key, &n.to_be_bytes(), 1_200)).collect();
        let missing: Vec<usize> = missing.into_iter().filter(|&n| n < count).collect();
        let (mut sent, mut came) = (PowerSums::default(), PowerSums::default());
        let mut order: Vec<usize> = (0..count).collect();
        if reversed {
            order.reverse();
        }
        for n in order {
            if missing.binary_search(&n).is_err() {
                came.insert(tags[n]);
            }
        }
        tags.iter().for_each(|&tag| sent.insert(tag));
        prop_assert_eq!(sent.missing(&came, missing.len(), &tags), Some(missing.clone()));
        // A wrong number explains nothing.
        prop_assert_eq!(sent.missing(&came, missing.len() + 1, &tags), None);
        let mut back = sent;
        missing.iter().for_each(|&n| back.remove(tags[n]));
        prop_assert_eq!(back, came);
    }

    /// Each number is accepted once, in any order, and nothing older than 1024.
    #[test]
    fn replay_window_accepts_no_message_twice(numbers in prop::collection::vec(0..4_000u64, 0..2_000)) {
        let mut replay = Replay::default();
        let mut seen = std::collections::BTreeSet::new();
        for number in numbers {
            let highest = seen.last().copied().unwrap_or(0);
            let expected = !seen.contains(&number) && (seen.is_empty() || number + 1_024 > highest);
            prop_assert_eq!(replay.is_fresh(number), expected, "{} after {}", number, highest);
            if expected {
                replay.note(number);
                seen.insert(number);
            }
        }
    }

    /// A view lists what came, and reports nothing as missing that came.
    #[test]
    fn gaps_are_the_missing_ranges(segments in prop::collection::vec((0..40u32, 1..4u32), 1..80)) {
        let mut gaps = Gaps::default();
        let mut came = [false; 64];
        prop_assert!(gaps.on_segment(at(0), 0, 0));
        for (step, (from, length)) in segments.into_iter().enumerate() {
            let now = at(step as u64 * 700);
            let room = gaps.on_segment(now, from * 10, length * 10);
            if !room {
                return Ok(());
            }
            (from..from + length).for_each(|block| came[block as usize] = true);
            let view = gaps.view(now).unwrap();
            let missing = came.iter().position(|came| !came).unwrap() as u32;
            prop_assert_eq!(view.cumulative, missing * 10);
            for &(start, end) in view.ranges() {
                for block in start / 10..end / 10 {
                    prop_assert!(came[block as usize], "{} is in a range", block);
                }
                prop_assert!(!came[(start / 10 - 1) as usize], "there is a gap below {}", start);
            }
        }
    }

    /// However packets of several flows mix: each flow's first unreported packet is reported within 2 ms, and there is one closing
    /// report 20 ms after its last packet, provided that the PEP is polled at its deadlines.
    #[test]
    fn every_flow_is_reported_in_time_and_closed_once(
        packets in prop::collection::vec((0..5u16, 300..9_000u64, 0..25u64), 1..50),
    ) {
        let mut rig = Rig::new(PepSettings::default());
        (0..5).for_each(|port| rig.agent.register(flow(port), port.into()));
        let mut clock = 0;
        let (mut seqs, mut last) = ([0; 5], [None; 5]);
        let mut waiting: [Option<Time>; 5] = [None; 5];
        let mut closed = [0; 5];
        let mut check = |rig: &mut Rig, now: Time, waiting: &mut [Option<Time>; 5], last: &[Option<Time>; 5]| {
            for verified in rig.reports(now) {
                let place = verified.flow as usize;
                if verified.report.closing {
                    closed[place] += 1;
                    assert_eq!(Some(now), last[place].map(|last| last + Span::from_millis(20)));
                }
                waiting[place] = None;
            }
        };
        let mut expected = [0; 5];
        for (port, gap, pause) in packets {
            let until = at(clock + gap + if pause == 0 { 30_000 } else { 0 });
            while rig.pep.next_deadline() < until {
                let now = rig.pep.next_deadline();
                check(&mut rig, now, &mut waiting, &last);
            }
            clock = until.as_nanos() / 1_000;
            for (place, since) in waiting.iter().enumerate() {
                let late = since.is_some_and(|since| until.since(since) > Span::from_millis(2));
                prop_assert!(!late, "flow {place} waits since {since:?} at {until}");
            }
            let place = usize::from(port);
            // Whether the flow's last pause was long enough to be its end, for a while.
            let ended = last[place].is_some_and(|last| until > last + Span::from_millis(20));
            expected[place] += u32::from(ended);
            rig.segment(until, port, seqs[place] * 1_448, 1_448);
            seqs[place] += 1;
            waiting[place] = waiting[place].or(Some(until));
            last[place] = Some(until);
            check(&mut rig, until, &mut waiting, &last);
        }
        while rig.pep.next_deadline() < Time::MAX {
            let now = rig.pep.next_deadline();
            check(&mut rig, now, &mut waiting, &last);
        }
        for place in 0..5 {
            prop_assert_eq!(closed[place], expected[place] + u32::from(last[place].is_some()));
        }
    }

    /// Any input is a message or an error, and a message is read back as it was written.
    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), flags in 0..16u8) {
        let _ = Header::read(&bytes);
        for flags in [flags, TCP, TCP | CLOSING, message::OPAQUE] {
            if let Ok(report) = ReportMessage::read(flags, &bytes) {
                let mut out = Buffer::default();
                report.write(&mut out);
                prop_assert_eq!(out.as_slice(), &bytes[..]);
            }
        }
        let _ = Subscribe::read(&bytes);
        let _ = Resync::read(&bytes);
        let mut agent = Agent::new(SECRET, 1, 5, wanted());
        let mut datagram = bytes.clone();
        prop_assert!(agent.on_datagram(at(0), &mut datagram).is_err());
        let mut pep = Pep::new(PepSettings::default());
        pep.add_server(SERVER, SECRET, 5);
        pep.on_datagram(at(0), SERVER, &mut datagram);
        prop_assert_eq!(pep.stats().refused, 1);
    }
}

#[test]
fn a_message_without_a_seal_has_no_room_for_a_header() {
    assert!(keys::header_of(&[0x12, TCP, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert_eq!(HEADER, 16);
}
