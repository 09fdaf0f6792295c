use std::sync::Arc;

use proptest::prelude::*;
use ranpace_units::{Bytes, Rate, Span, Time};

use super::Link;
use crate::testing::{Log, TestPacket, every_queue, loopback};
use crate::{DropCause, Jitter, Limit, LinkConfig, Loss, QueueConfig, Reorder, Service, Trace, TraceService};

const MS: Span = Span::from_millis(1);

fn plain(service: Service) -> LinkConfig {
    LinkConfig::new(service, QueueConfig::drop_tail(Limit::Unlimited), MS * 10)
}

fn traced(millis: &[u64]) -> Service {
    Service::Trace(TraceService::new(Arc::new(Trace::from_millis(millis.iter().copied()).unwrap())))
}

/// Departures (ms, flow) of packets given as (us, flow, size).
fn departures(service: Service, packets: &[(u64, u32, u64)]) -> Vec<(u64, u32)> {
    let packets = packets.iter().map(|&(us, flow, size)| (us, TestPacket::new(flow, size)));
    loopback(&plain(service), packets).departed.iter().map(|d| (d.0.as_millis(), d.2.flow)).collect()
}

#[test]
fn a_fixed_rate_serialises_and_delays() {
    let config = plain(Service::Fixed(Rate::from_mbit_per_s(12)));
    let log = loopback(&config, (0..3).map(|n| (0, TestPacket::new(n, 1500))));
    let times: Vec<u64> = log.arrived.iter().map(|a| a.0.as_millis()).collect();
    assert_eq!(times, [11, 12, 13]);
    let waits: Vec<Span> = log.departed.iter().map(|d| d.1).collect();
    assert_eq!(waits, [MS, MS * 2, MS * 3]);
}

#[test]
fn the_packet_in_service_has_left_the_queue() {
    let mut config = plain(Service::Fixed(Rate::from_mbit_per_s(12)));
    config.queue = QueueConfig::drop_tail(Limit::Packets(1));
    let log = loopback(&config, [0, 0, 0, 1000].map(|us| (us, TestPacket::new(us as u32, 1500))).into_iter());
    assert_eq!(log.dropped.len(), 1, "one served, one waiting, one too many; at 1 ms there is room again");
    assert_eq!(log.arrived.len(), 3);
}

#[test]
fn an_unlimited_link_only_delays() {
    let log = loopback(&plain(Service::Unlimited), (0..9).map(|n| (5, TestPacket::new(n, 1500))));
    assert!(log.arrived.iter().all(|a| a.0 == Time::from_nanos(10_005_000)));
    assert_eq!(log.arrived.iter().map(|a| a.1.flow).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
    assert_eq!(Link::<TestPacket>::new(&plain(Service::Unlimited), 0).capacity(Time::ZERO, Time::MAX), None);
}

#[test]
fn opportunities_carry_1504_bytes() {
    for (case, trace, packets, expected) in [
        ("one each", vec![1, 2, 3], vec![(0, 1, 1500), (0, 2, 1500)], vec![(1, 1), (2, 2)]),
        (
            "small ones share",
            vec![1, 2],
            vec![(0, 1, 748), (0, 2, 748), (0, 3, 40)],
            vec![(1, 1), (1, 2), (2, 3)],
        ),
        ("one byte more straddles", vec![1, 5, 9], vec![(0, 1, 1501), (0, 2, 1499)], vec![(5, 1), (5, 2)]),
        ("a packet over three", vec![1, 5, 9], vec![(0, 1, 4000)], vec![(9, 1)]),
        ("unused bytes are lost", vec![1, 5, 5], vec![(0, 1, 40), (3_000, 2, 1501)], vec![(1, 1), (5, 2)]),
        (
            "same millisecond is too late",
            vec![5, 9],
            vec![(5_000, 1, 40), (9_999, 2, 40)],
            vec![(9, 1), (14, 2)],
        ),
        ("just before is not", vec![5, 9], vec![(4_999, 1, 40), (5_999, 2, 40)], vec![(5, 1), (9, 2)]),
        ("both ends of the trace", vec![0, 4], vec![(1, 1, 1500), (1, 2, 1500)], vec![(4, 1), (4, 2)]),
        ("long after", vec![0, 4, 7], vec![(70_001_000, 1, 40)], vec![(70_004, 1)]),
    ] {
        assert_eq!(departures(traced(&trace), &packets), expected, "{case}");
    }
}

#[test]
fn without_repetition_the_rest_stays() {
    let service =
        TraceService { repeat: false, ..TraceService::new(Arc::new(Trace::from_millis([1, 2]).unwrap())) };
    let mut link = Link::new(&plain(Service::Trace(service)), 0);
    (0..5).for_each(|n| link.send(Time::ZERO, TestPacket::new(n, 1500), &mut ()));
    let mut arrived = 0;
    while link.next_event() != Time::MAX {
        arrived += usize::from(link.poll(link.next_event(), &mut ()).is_some());
    }
    assert_eq!((arrived, link.queued_packets(), link.queued()), (2, 3, Bytes::new(4500)));
    assert!(link.poll(Time::MAX, &mut ()).is_none());
    assert_eq!(link.capacity(Time::ZERO, Time::MAX), Some(Bytes::new(3000)));
    assert_eq!(link.drain().map(|p| p.flow).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(link.queued_packets(), 0);
}

#[test]
fn a_saturated_trace_delivers_exactly_its_opportunities() {
    let trace = Arc::new(Trace::from_millis([1, 1, 4, 9, 9, 9, 20, 31]).unwrap());
    for (scale, each) in [(1.0, 8.0), (3.0, 24.0), (0.5, 4.0)] {
        let service = TraceService { scale, ..TraceService::new(trace.clone()) };
        let mut link = Link::new(&plain(Service::Trace(service)), 0);
        (0..4000).for_each(|n| link.send(Time::ZERO, TestPacket::new(n, 1500), &mut ()));
        let end = Time::from_millis(31 * 100) + MS * 10;
        let delivered = std::iter::from_fn(|| link.poll(end, &mut ())).count();
        assert_eq!(delivered as f64, each * 100.0);
        assert_eq!(link.capacity(Time::ZERO, end - MS * 10), Some(Bytes::new(1500 * delivered as u64)));
    }
}

#[test]
fn an_idle_link_sleeps() {
    for service in [traced(&[1, 2, 3]), Service::Fixed(Rate::from_mbit_per_s(1)), Service::Unlimited] {
        let mut link = Link::new(&plain(service), 0);
        assert_eq!(link.next_event(), Time::MAX);
        link.send(Time::from_secs(5), TestPacket::new(0, 40), &mut ());
        while link.next_event() != Time::MAX {
            link.poll(link.next_event(), &mut ());
        }
        assert_eq!((link.in_flight(), link.queued_packets()), (0, 0));
    }
}

#[test]
fn a_change_of_rate_reaches_the_packet_in_service() {
    let mut link = Link::new(&plain(Service::Fixed(Rate::from_mbit_per_s(12))), 0);
    let mut log = Log::default();
    (0..2).for_each(|n| link.send(Time::ZERO, TestPacket::new(n, 1500), &mut log));
    // Half of the first is sent at 12 Mbit/s; then nothing for 10 ms; then 6 Mbit/s: 1 ms + 2 ms.
    let at = |us: u64| Time::from_nanos(us * 1000);
    link.set_rate(at(500), Rate::ZERO);
    assert_eq!(link.next_event(), Time::MAX);
    link.set_rate(at(10_500), Rate::from_mbit_per_s(6));
    link.set_delay(MS);
    while link.next_event() != Time::MAX {
        if let Some(packet) = link.poll(link.next_event(), &mut log) {
            log.arrived.push((link.next_event(), packet));
        }
    }
    assert_eq!(log.departed.iter().map(|d| d.0).collect::<Vec<_>>(), [at(11_500), at(13_500)]);
    assert_eq!(link.capacity(Time::ZERO, at(13_500)), Some(Bytes::new(750 + 2250)));
    assert_eq!(link.capacity(at(250), at(10_000)), Some(Bytes::new(375)));
}

#[test]
fn a_trace_can_be_replaced_by_a_rate() {
    let mut link = Link::new(&plain(traced(&[1, 1000])), 0);
    let mut log = Log::default();
    (0..3).for_each(|n| link.send(Time::ZERO, TestPacket::new(n, 2252), &mut log));
    assert!(link.poll(Time::from_millis(1), &mut log).is_none());
    // 752 B of the first are left, TUN header included.
    link.set_rate(Time::from_millis(2), Rate::from_bits_per_s(752 * 8 * 1000));
    while link.next_event() != Time::MAX {
        link.poll(link.next_event(), &mut log);
    }
    assert_eq!(log.departed.iter().map(|d| d.0.as_millis()).collect::<Vec<_>>(), [3, 5, 8]);
}

#[test]
fn listed_packets_are_lost_before_the_queue() {
    let mut config = plain(Service::Unlimited);
    config.loss = Loss::List { numbers: [1, 4].into(), smallest: Bytes::ZERO };
    let log = loopback(&config, (0..6).map(|n| (0, TestPacket::new(n, 100))));
    assert_eq!(log.dropped.iter().map(|d| d.2.flow).collect::<Vec<_>>(), [1, 4]);
    assert!(log.dropped.iter().all(|d| d.1 == DropCause::Listed));
    assert_eq!(log.enqueued, 4);
}

#[test]
fn marks_are_reported_on_departure() {
    let mut config = plain(Service::Fixed(Rate::from_mbit_per_s(12)));
    config.queue = QueueConfig::DropTail { limit: Limit::Unlimited, ecn: Some(Bytes::ZERO) };
    let log = loopback(&config, (0..3).map(|n| (0, TestPacket::ect(n, 1500))));
    assert_eq!(log.departed.iter().map(|d| d.3).collect::<Vec<_>>(), [false, false, true]);
}

/// Departures (ms, flow) by a direct implementation of mahimahi's rules, one opportunity at a time.
fn one_by_one(trace: &[u64], packets: &[(u64, u32, u64)]) -> Vec<(u64, u32)> {
    let (length, mut departed, mut next, mut left) = (trace[trace.len() - 1], Vec::new(), 0, 0);
    for base in (0..).map(|pass| pass * length) {
        for at in trace.iter().map(|ms| base + ms) {
            let mut carries = 1504;
            while carries > 0 && next < packets.len() {
                let (us, flow, size) = packets[next];
                if left == 0 {
                    if us / 1000 >= at {
                        break;
                    }
                    left = size + 4;
                }
                let sent = carries.min(left);
                (carries, left) = (carries - sent, left - sent);
                if left == 0 {
                    departed.push((at, flow));
                    next += 1;
                }
            }
            if next == packets.len() {
                return departed;
            }
        }
    }
    departed
}

fn services() -> impl Strategy<Value = Service> {
    let trace = Arc::new(Trace::from_millis([0, 3, 3, 10, 11, 30]).unwrap());
    prop_oneof![
        Just(Service::Unlimited),
        (0..20u64).prop_map(|mbit| Service::Fixed(Rate::from_mbit_per_s(mbit))),
        (any::<bool>(), 0.0..3.0f64)
            .prop_map(move |(repeat, scale)| TraceService {
                repeat,
                scale,
                ..TraceService::new(trace.clone())
            })
            .prop_map(Service::Trace),
    ]
}

proptest! {
    #[test]
    fn traces_are_played_as_mahimahi_plays_them(
        trace in prop::collection::vec(0..40u64, 0..20),
        packets in prop::collection::vec((0..20_000u64, 1..4000u64), 1..60),
    ) {
        let (mut trace, mut now) = (trace, 0);
        trace.push(40);
        trace.sort_unstable();
        let packets: Vec<_> = (0..).zip(packets).map(|(flow, (wait, size))| {
            now += wait;
            (now, flow, size)
        }).collect();
        prop_assert_eq!(departures(traced(&trace), &packets), one_by_one(&trace, &packets));
    }

    /// Every packet has arrived, was dropped, waits or propagates, whatever the link; and the number of calls
    /// makes no difference.
    #[test]
    fn nothing_is_unaccounted(
        service in services(),
        kind in 0..every_queue(Limit::Unlimited).len(),
        limit in 1..40u32,
        loss in prop_oneof![
            Just(Loss::None),
            Just(Loss::Random { probability: 0.2 }),
            Just(Loss::GilbertElliott { p: 0.1, r: 0.3, good: 0.01, bad: 0.9 }),
            Just(Loss::List { numbers: [2, 3, 5, 7].into(), smallest: Bytes::new(300) }),
        ],
        jitter in prop_oneof![Just(Jitter::None), Just(Jitter::Uniform(MS * 3))],
        is_reordering in any::<bool>(),
        waits in prop::collection::vec((0..3_000_000u64, 40..1500u64, 0..4u32), 1..300),
    ) {
        let reorder = is_reordering.then_some(Reorder { probability: 0.1, extra: MS * 2 });
        let queue = every_queue(Limit::Packets(limit))[kind].clone();
        let config = LinkConfig { service, queue, delay: MS * 7, jitter, loss, reorder, light: None };
        let (mut eager, mut lazy) = (Link::new(&config, 9), Link::new(&config, 9));
        let (mut eager_log, mut lazy_log) = (Log::default(), Log::default());
        let (mut now, mut eager_arrived, mut lazy_arrived) = (Time::ZERO, Vec::new(), Vec::new());
        for (n, &(wait, size, flow)) in waits.iter().enumerate() {
            now += Span::from_nanos(wait);
            while eager.next_event() <= now {
                eager_arrived.extend(eager.poll(eager.next_event(), &mut eager_log));
            }
            let packet = if flow == 3 { TestPacket::ect(flow, size) } else { TestPacket::new(flow, size) };
            eager.send(now, packet.clone(), &mut eager_log);
            lazy.send(now, packet, &mut lazy_log);
            let under_way = eager.queued_packets() + eager.in_flight();
            prop_assert_eq!(n + 1, eager_arrived.len() + eager_log.dropped.len() + under_way);
        }
        now += MS * 50;
        while eager.next_event() <= now {
            eager_arrived.extend(eager.poll(eager.next_event(), &mut eager_log));
        }
        lazy_arrived.extend(std::iter::from_fn(|| lazy.poll(now, &mut lazy_log)));
        prop_assert_eq!(&eager_arrived, &lazy_arrived);
        prop_assert_eq!(eager_log, lazy_log.clone());
        prop_assert_eq!(waits.len(), lazy_arrived.len() + lazy_log.dropped.len() + lazy.drain().count());
        prop_assert_eq!((lazy.queued(), lazy.in_flight(), lazy.next_event()), (Bytes::ZERO, 0, Time::MAX));
    }
}
