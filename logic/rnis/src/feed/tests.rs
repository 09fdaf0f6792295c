//! A server's half and a subscriber's, one beside the other, without sockets and keys: what arrives, and what is refused.

use proptest::prelude::*;
use ranpace_phy::{Both, Cqi, Direction, LteBandwidth, TransportBlock};
use ranpace_units::{Bytes, Span, Time};

use super::entries::{Entry, MOST_ENTRY_BYTES};
use super::message::{Answer, Header, Hello, Kind, MessageError, Request};
use super::receiver::{Accepted, ClockQuality, Receiver, Refusal};
use super::sender::{FeedSubscribers, Filter};
use crate::shared_table::directory::{Address, AddressKind, Identity};
use crate::{CellInfo, Grant, LinkReport, SlotReport, StalenessLimit, UserReport};

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn row(user: u32, prbs: u16) -> UserReport {
    let block = TransportBlock::from_bytes(100 * u32::from(prbs));
    let grant = Grant { mcs: 20, prbs, symbols: 14, block, padding: Bytes::ZERO, process: 0, again: false };
    let link =
        LinkReport { grant: (prbs > 0).then_some(grant), queue: Bytes::new(1_600), ..LinkReport::default() };
    let up = LinkReport { queue: Bytes::new(320), grant: None, ..link };
    UserReport {
        user,
        rnti: 7,
        cqi: Cqi::MAX,
        cqi_time: Time::ZERO,
        capacity: 1.0,
        link: Both { downlink: link, uplink: up },
    }
}

fn report<'a>(cell: &'a CellInfo, slot: u64, users: &'a [UserReport]) -> SlotReport<'a> {
    let used: u16 = users.iter().filter_map(|row| Some(row.link.downlink.grant?.prbs)).sum();
    SlotReport {
        cell,
        slot,
        time: ms(slot),
        symbols: Both::of(|_| 14),
        used_prbs: Both { downlink: used.into(), uplink: 0.0 },
        active_users: Both::default(),
        users,
        bearers: &[],
        full: true,
    }
}

fn filter(period_ms: u64) -> Filter {
    Filter {
        users: None,
        cells: None,
        direction: Direction::Downlink,
        period: Span::from_millis(period_ms),
        delta: true,
    }
}

fn header(kind: Kind, epoch: u64, sequence: u64) -> Header {
    Header { kind, uplink: false, stream: 1, epoch, sequence }
}

fn lte(cell: u16) -> CellInfo {
    CellInfo::lte(cell, LteBandwidth::Mhz5)
}

/// A receiver that has had one exchange with a server in `epoch`, whose clock is `ahead` of its own; sequence 0 and 1 are used.
fn introduced(receiver: &mut Receiver, epoch: u64, now: Time, ahead: Span, round_trip: Span) {
    let mut body = Vec::new();
    Hello { cookie: 77, period: Span::from_millis(1) }.write(&mut body);
    assert_eq!(receiver.accept(&header(Kind::Hello, epoch, 0), &body, now), Ok(Accepted::Hello));
    let (_, request) = receiver.poll_request(now, 1).unwrap();
    assert_eq!((request.cookie, request.epoch), (77, epoch));
    let at = now + ahead + round_trip / 2;
    let mut body = Vec::new();
    Answer { requester: 5, sent: request.sent, received: at, answered: at, clock: [9; 8] }.write(&mut body);
    let arrived = now + round_trip;
    let answered = receiver.accept(&header(Kind::Answer, epoch, 1), &body, arrived);
    assert_eq!(answered, Ok(Accepted::Answer { restarted: true }));
    assert_eq!(receiver.accept(&header(Kind::Answer, epoch, 2), &body, arrived), Err(Refusal::NotRequested));
    let mut body = Vec::new();
    let address = Address { kind: AddressKind::Ipv4, bytes: [3; 16] };
    Entry::Cell { info: lte(0), identity: "cell".to_owned() }.write(&mut body);
    Entry::User { user: 1, identity: Identity { name: "phone".to_owned(), addresses: vec![address] } }
        .write(&mut body);
    assert_eq!(receiver.accept(&header(Kind::Directory, epoch, 3), &body, arrived), Ok(Accepted::Directory));
    // Of which the period is known by the next hello.
    let mut body = Vec::new();
    Hello { cookie: 78, period: Span::from_millis(1) }.write(&mut body);
    assert_eq!(receiver.accept(&header(Kind::Hello, epoch, 4), &body, arrived), Ok(Accepted::Hello));
}

#[test]
fn a_hint_comes_through_as_the_cell_reported_it() {
    for (direction, block, granted, queue) in
        [(Direction::Downlink, Some(4_000), 5.0, 1_600), (Direction::Uplink, None, 0.0, 320)]
    {
        let mut subscribers = FeedSubscribers::new();
        let id = subscribers.subscribe(Filter { direction, ..filter(0) }, Time::MAX);
        let mut receiver = Receiver::new(5, [1; 8]);
        introduced(&mut receiver, 10, ms(0), Span::ZERO, Span::from_micros(100));
        let mut sequence = 10;
        for slot in 1..20 {
            subscribers.on_report(&report(&lte(0), slot, &[row(1, 5), row(2, 3)]), 1_412, &mut |outgoing| {
                assert_eq!((outgoing.to, outgoing.direction), ([id].as_slice(), direction));
                let uplink = direction == Direction::Uplink;
                let header = Header { uplink, ..header(Kind::Report, 10, sequence) };
                sequence += 1;
                let accepted = receiver.accept(&header, outgoing.bytes, ms(slot));
                assert_eq!(accepted, Ok(Accepted::Report { cell: 0, time: ms(slot) }));
            });
        }
        let view = receiver.view().unwrap();
        let user = view.user_named("phone").unwrap();
        assert_eq!((user, view.user_at(&[3; 16]), view.user_at(&[0; 16])), (1, Some(1), None));
        let aged = receiver.hint(user, ms(20)).unwrap();
        let hint = aged.hint.value;
        assert_eq!((hint.tbs_bits, hint.granted, hint.queue.get()), (block, granted, queue));
        assert_eq!((hint.info, hint.cell, hint.measured_at), (lte(0), 25, ms(19)));
        let most = if direction == Direction::Downlink { (5, 17.0, 20) } else { (0, 25.0, 0) };
        assert_eq!((hint.most_granted, hint.unused, hint.mcs), most);
        assert_eq!(aged.clock, ClockQuality::Estimated(Span::from_nanos(50_000 + 1_990)));
        assert!(aged.fresh(ms(69), StalenessLimit::Meld, Span::from_millis(1)).is_some());
        assert!(aged.fresh(ms(70), StalenessLimit::Meld, Span::from_millis(1)).is_none());
        assert_eq!(receiver.hint(9, ms(20)), None);
    }
}

#[test]
fn times_are_converted_by_the_best_clock_there_is() {
    let at = |ahead: Span, round_trip: Span, own_clock: [u8; 8]| {
        let mut receiver = Receiver::new(5, own_clock);
        introduced(&mut receiver, 10, ms(100), ahead, round_trip);
        let mut subscribers = FeedSubscribers::new();
        subscribers.subscribe(filter(1), Time::MAX);
        subscribers.on_report(&report(&lte(0), 5_200, &[row(1, 5)]), 1_412, &mut |outgoing| {
            receiver.accept(&header(Kind::Report, 10, 9), outgoing.bytes, ms(210)).unwrap();
        });
        let aged = receiver.hint(1, ms(211)).unwrap();
        (aged.hint.measured_at, aged.clock)
    };
    // The server's clock is 5 s ahead.
    let five = Span::from_secs(5);
    assert_eq!(at(five, Span::from_micros(100), [9; 8]), (ms(5_200), ClockQuality::Same));
    let (measured_at, clock) = at(five, Span::from_micros(100), [1; 8]);
    assert_eq!(measured_at, ms(200));
    assert!(matches!(clock, ClockQuality::Estimated(uncertainty) if uncertainty < Span::from_micros(70)));
    // 20 ms of round trip are too uncertain for a period of 1 ms: as old as its arrival, and 10 ms.
    assert_eq!(at(five, Span::from_millis(20), [1; 8]), (ms(200), ClockQuality::Arrival));
}

#[test]
fn repeated_and_earlier_epochs_have_no_effect() {
    let mut subscribers = FeedSubscribers::new();
    subscribers.subscribe(filter(0), Time::MAX);
    let mut datagrams = Vec::new();
    for slot in 1..4 {
        subscribers.on_report(&report(&lte(0), slot, &[row(1, 5)]), 1_412, &mut |outgoing| {
            datagrams.push(outgoing.bytes.to_vec());
        });
    }
    let mut receiver = Receiver::new(5, [1; 8]);
    let of = |sequence: u64| header(Kind::Report, 10, sequence);
    assert_eq!(receiver.accept(&of(9), &datagrams[0], ms(1)), Err(Refusal::OtherEpoch), "not proved yet");
    introduced(&mut receiver, 10, ms(0), Span::ZERO, Span::ZERO);
    assert!(receiver.accept(&of(9), &datagrams[0], ms(1)).is_ok());
    assert_eq!(receiver.accept(&of(9), &datagrams[0], ms(1)), Err(Refusal::Repeated));
    assert!(receiver.accept(&of(11), &datagrams[2], ms(3)).is_ok());
    assert_eq!(receiver.accept(&of(10), &datagrams[1], ms(4)), Err(Refusal::Overtaken));
    assert_eq!(receiver.accept(&header(Kind::Request, 10, 40), &[], ms(4)), Err(Refusal::ForServers));
    let half = WireErrorOf::short(&datagrams[2][..20]);
    assert_eq!(receiver.accept(&of(12), &datagrams[2][..20], ms(4)), Err(half));
    // The server restarts. What it says is useless until it has answered; then what was known is void.
    let mut body = Vec::new();
    Hello { cookie: 3, period: Span::ZERO }.write(&mut body);
    assert_eq!(receiver.accept(&header(Kind::Hello, 11, 0), &body, ms(500)), Ok(Accepted::Hello));
    assert_eq!(
        receiver.accept(&header(Kind::Report, 11, 1), &datagrams[2], ms(500)),
        Err(Refusal::OtherEpoch)
    );
    assert!(receiver.hint(1, ms(500)).is_some());
    introduced(&mut receiver, 12, ms(600), Span::ZERO, Span::ZERO);
    assert_eq!((receiver.epoch(), receiver.hint(1, ms(600))), (Some(12), None));
    assert_eq!(receiver.accept(&of(13), &datagrams[2], ms(700)), Err(Refusal::OtherEpoch), "recorded before");
}

/// What the wire's parser says of cut bytes.
struct WireErrorOf;

impl WireErrorOf {
    fn short(bytes: &[u8]) -> Refusal {
        Refusal::Wire(crate::wire::Datagram::parse(bytes).unwrap_err())
    }
}

#[test]
fn requests_become_rare_once_the_clocks_are_known() {
    let mut receiver = Receiver::new(5, [1; 8]);
    assert_eq!((receiver.poll_request(ms(0), 1), receiver.next_deadline()), (None, Time::MAX));
    introduced(&mut receiver, 10, ms(0), Span::ZERO, Span::ZERO);
    let mut times = Vec::new();
    for now in 1..4_000 {
        if let Some((header, request)) = receiver.poll_request(ms(now), 1) {
            assert_eq!((request.cookie, header.kind), (78, Kind::Request));
            times.push(now);
            let mut body = Vec::new();
            let (sent, received) = (request.sent, request.sent);
            Answer { requester: 5, sent, received, answered: received, clock: [9; 8] }.write(&mut body);
            let of = Header { sequence: 100 + now, ..super::tests::header(Kind::Answer, 10, 0) };
            assert_eq!(receiver.accept(&of, &body, ms(now)), Ok(Accepted::Answer { restarted: false }));
        }
    }
    assert_eq!(times, [1, 101, 201, 301, 1_301, 2_301, 3_301]);
}

#[test]
fn each_subscription_gets_its_users_cells_and_period() {
    let mut subscribers = FeedSubscribers::new();
    let all = subscribers.subscribe(filter(0), Time::MAX);
    let twin = subscribers.subscribe(filter(0), ms(10));
    let one = subscribers.subscribe(Filter { users: Some(vec![2]), ..filter(1) }, Time::MAX);
    let slow = subscribers.subscribe(Filter { cells: Some(vec![1]), ..filter(8) }, Time::MAX);
    let nobody = subscribers.subscribe(Filter { users: Some(vec![]), ..filter(1) }, Time::MAX);
    let mut count = std::collections::BTreeMap::new();
    let mut expired = Vec::new();
    for slot in 0..16 {
        subscribers.expire(ms(slot), &mut |id| expired.push((slot, id)));
        for (cell, users) in [(0, [row(1, 5), row(2, 3)]), (1, [row(3, 5), row(4, 3)])] {
            subscribers.on_report(&report(&lte(cell), slot, &users), 1_412, &mut |outgoing| {
                let datagram = crate::wire::Datagram::parse(outgoing.bytes).unwrap();
                for id in outgoing.to {
                    let (datagrams, users) = count.entry((*id, cell)).or_insert((0, 0));
                    *datagrams += 1;
                    *users = datagram.records().len().max(*users);
                }
            });
        }
    }
    assert_eq!(expired, [(10, twin)]);
    let expected = [
        ((all, 0), (16, 2)),
        ((all, 1), (16, 2)),
        ((twin, 0), (10, 2)),
        ((twin, 1), (10, 2)),
        ((one, 0), (16, 1)),
        ((slow, 1), (2, 2)),
    ];
    assert_eq!(count.into_iter().collect::<Vec<_>>(), expected, "and nothing to {nobody:?}");
    // A user that is of no interest any more is reported as gone, once; then its cell is silent.
    assert!(
        subscribers.set_scope(one, Some(vec![9]), None) && !subscribers.set_scope(one, Some(vec![9]), None)
    );
    assert!(subscribers.replace(one, filter(8), Time::MAX) && subscribers.periods(Span::from_millis(8)).0);
    assert!(subscribers.cancel(all) && !subscribers.cancel(all) && subscribers.len() == 3);
    assert!(!subscribers.renew(all, Time::MAX) && !subscribers.set_scope(all, None, None));
}

#[test]
fn messages_are_read_as_they_were_written_and_others_are_refused() {
    let header =
        Header { kind: Kind::Answer, uplink: true, stream: 0x0102_0304, epoch: u64::MAX - 1, sequence: 7 };
    let mut bytes = header.bytes().to_vec();
    assert_eq!(bytes[..8], [0x46, 0x15, 1, 0, 4, 3, 2, 1]);
    assert!(matches!(Header::parse(&bytes), Err(MessageError::Length { expected: 40, found: 24 })));
    bytes.extend([0; 16]);
    assert_eq!(Header::parse(&bytes), Ok(header));
    for (at, to) in [(0, 0x52), (1, 0x25), (1, 0x10), (1, 0x16)] {
        let mut wrong = bytes.clone();
        wrong[at] = to;
        assert!(Header::parse(&wrong).is_err(), "{at}: {to}");
    }
    let request = Request { cookie: 1, epoch: 2, sent: ms(3) };
    let mut body = Vec::new();
    request.write(&mut body);
    assert_eq!(Request::parse(&body), Ok(request));
    assert!(
        Request::parse(&body[1..]).is_err() && Hello::parse(&body).is_err() && Answer::parse(&body).is_err()
    );
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let address = (0..3u8, any::<[u8; 16]>()).prop_map(|(kind, bytes)| Address {
        kind: [AddressKind::Ipv4, AddressKind::Ipv6, AddressKind::Nated][usize::from(kind)],
        bytes,
    });
    let user = (any::<u16>(), ".{0,16}", proptest::collection::vec(address, 0..9));
    prop_oneof![
        user.prop_map(|(user, name, addresses)| Entry::User { user, identity: Identity { name, addresses } }),
        (any::<u16>(), ".{0,16}").prop_map(|(cell, identity)| Entry::Cell { info: lte(cell), identity }),
    ]
}

proptest! {
    #[test]
    fn entries_are_read_as_they_were_written(entries in proptest::collection::vec(any_entry(), 0..10), cut in any::<usize>()) {
        let mut body = Vec::new();
        for entry in &entries {
            let before = body.len();
            entry.write(&mut body);
            prop_assert!(body.len() - before <= MOST_ENTRY_BYTES);
        }
        let mut read = Vec::new();
        prop_assert!(Entry::parse_all(&body, &mut |entry| read.push(entry)).is_ok());
        prop_assert_eq!(&read, &entries);
        body.truncate(cut % (body.len() + 1));
        let mut fewer = Vec::new();
        let whole = Entry::parse_all(&body, &mut |entry| fewer.push(entry)).is_ok();
        prop_assert!(entries.starts_with(&fewer) && (!whole || fewer.len() <= entries.len()));
    }

    /// Whatever genuine messages say, a receiver survives it, and knows nothing of the future.
    #[test]
    fn any_body_is_read_or_refused(bodies in proptest::collection::vec((0..5u8, proptest::collection::vec(any::<u8>(), 0..200)), 0..20)) {
        let mut receiver = Receiver::new(5, [1; 8]);
        introduced(&mut receiver, 10, ms(0), Span::ZERO, Span::ZERO);
        for (sequence, (kind, body)) in (10..).zip(bodies) {
            let kind = [Kind::Report, Kind::Directory, Kind::Hello, Kind::Request, Kind::Answer][usize::from(kind)];
            receiver.accept(&header(kind, 10, sequence), &body, ms(sequence)).ok();
            for user in 0..10 {
                receiver.hint(user, ms(sequence));
            }
            receiver.poll_request(ms(sequence), 1);
        }
    }
}
