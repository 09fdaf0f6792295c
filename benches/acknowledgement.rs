//! An acknowledgement's cost in the congestion control alone, for every algorithm there is; and a packet's cost in the
//! receiver half, for those that have one.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ranpace_cc::{
    ALL, Ack, Algorithm, Context, Packet, PacketOutcome, RadioHint, RateSample, Received, ReceiverHalf,
    ReceiverReport, Sample, Sending, Sent, State, Transport, Window,
};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Span, Time};

const ACKS: u64 = 10_000;

/// The packet `number` of 10,000 a second arrives, and every tenth time the modem hears of a block that holds ten of them.
fn arrive(half: &mut dyn ReceiverHalf, number: u64) {
    let now = Time::from_secs(1) + Span::from_micros(100) * number;
    if half.wants_radio() && number.is_multiple_of(10) {
        half.on_radio(
            now,
            &RadioHint {
                tbs_bits: Some(120_000),
                granted: 100.0,
                most_granted: 100,
                active_users: 1,
                mcs: 28,
                layers: 2,
                ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz20), now)
            },
        );
    }
    half.on_data(&Received {
        now,
        number: Some(number),
        bytes: Bytes::new(1_448),
        wire: Bytes::new(1_500),
        sent_at: now - Span::from_millis(10),
        time_to_next: Span::ZERO,
        rtt: Some(Span::from_millis(20)),
    });
    if half.next_deadline().is_some_and(|at| at <= now) {
        half.on_deadline(now);
    }
}

/// Reports on the acknowledgements of every second packet.
fn reports(algorithm: &Algorithm) -> Vec<Option<ReceiverReport>> {
    let Some(mut half) = algorithm.receiver() else { return Vec::new() };
    half.on_start(Time::from_secs(1));
    (0..ACKS)
        .map(|ack| {
            arrive(half.as_mut(), 2 * ack);
            arrive(half.as_mut(), 2 * ack + 1);
            half.report(Time::from_secs(1) + Span::from_micros(200) * ack)
        })
        .collect()
}

/// Packets at a receiver half, with a report for every second one.
fn receive(algorithm: &Algorithm) -> Option<ReceiverReport> {
    let mut half = algorithm.receiver()?;
    half.on_start(Time::from_secs(1));
    let mut last = None;
    for number in 0..ACKS {
        arrive(half.as_mut(), number);
        if number % 2 == 1 {
            last = half.report(Time::from_secs(1) + Span::from_micros(100) * number);
        }
    }
    last
}

/// 120 Mbit/s and 20 ms: a segment every 100 us, the RTT swings by 4 ms; two segments an acknowledgement.
fn acknowledge(algorithm: &Algorithm, reports: &[Option<ReceiverReport>]) -> f64 {
    let mut control = algorithm.build(1);
    let mut w = Window::new(10.0);
    let mut cx = Context {
        now: Time::from_secs(1),
        mss: Bytes::new(1_448),
        wire: Bytes::new(1_500),
        srtt: Span::from_millis(20),
        min_rtt: Span::from_millis(20),
        in_flight: 200,
        delivered: 0,
        lost: 0,
        next_packet: 200,
        state: State::Open,
        cwnd_limited: true,
        app_limited: false,
        departure: Time::ZERO,
        paced: false,
    };
    control.on_start(&cx, &mut w);
    let wants_packets = control.wants_packets();
    for round in 0..ACKS {
        cx.now += Span::from_micros(200);
        if let Some(Some(report)) = reports.get(round as usize) {
            control.on_report(&cx, &mut w, report);
        }
        cx.delivered += 2;
        let rtt = Span::from_micros(20_000 + (round % 400).abs_diff(200) * 20);
        cx.srtt = (cx.srtt * 7 + rtt) / 8;
        if wants_packets {
            for number in 0..2 {
                let packet = Packet {
                    number: cx.next_packet - 200 + number,
                    bytes: cx.mss,
                    sent_at: Time::ZERO + (cx.now - Time::ZERO - rtt),
                    sending: Sending { in_flight: 200, ..Sending::default() },
                    fate: PacketOutcome::Acked { rtt, one_way: None },
                };
                control.on_packet(&cx, &mut w, &packet);
            }
        }
        let sample = Sample {
            delivered: 2,
            bytes: Bytes::new(2_896),
            rtt: Some(rtt),
            one_way: Some(rtt / 2),
            in_flight_at_send: 200,
        };
        control.on_sample(&cx, &mut w, &sample);
        let rate = RateSample {
            delivered: 200,
            interval: Some(rtt),
            prior_delivered: cx.delivered.saturating_sub(200),
            in_flight_at_send: 200,
            ..RateSample::default()
        };
        let ack = Ack {
            acked: 2,
            delivered: 2,
            bytes: Bytes::new(2_896),
            rtt: Some(rtt),
            rate,
            prior_in_flight: 200,
            ecn_echo: false,
            // One of 16 segments is marked, one of four braked, for controls that count them.
            marked: u64::from(round % 8 == 0),
            braked: u64::from(round % 2 == 1),
        };
        control.on_ack(&cx, &mut w, &ack);
        for _ in 0..2 {
            let sent = Sent { number: cx.next_packet, bytes: cx.mss, retransmission: false };
            control.on_sent(&cx, &mut w, &sent);
            cx.next_packet += 1;
        }
        if control.next_deadline().is_some_and(|at| at <= cx.now) {
            control.on_deadline(&cx, &mut w);
        }
    }
    w.cwnd
}

fn acknowledgement(c: &mut Criterion) {
    let mut group = c.benchmark_group("acknowledgement");
    group.throughput(Throughput::Elements(ACKS)).sample_size(10);
    for entry in ALL {
        let algorithm: Algorithm = entry.name.parse().unwrap();
        group.bench_with_input(BenchmarkId::from_parameter(entry.name), &algorithm, |b, algorithm| {
            let reports = if entry.transport == Transport::Tcp { reports(algorithm) } else { Vec::new() };
            b.iter(|| black_box(acknowledge(algorithm, &reports)));
        });
    }
    group.finish();
}

fn receiver(c: &mut Criterion) {
    let mut group = c.benchmark_group("receiver");
    group.throughput(Throughput::Elements(ACKS)).sample_size(10);
    for entry in ALL.iter().filter(|entry| entry.receiver.is_some()) {
        let algorithm: Algorithm = entry.name.parse().unwrap();
        group.bench_with_input(BenchmarkId::from_parameter(entry.name), &algorithm, |b, algorithm| {
            b.iter(|| black_box(receive(algorithm)));
        });
    }
    group.finish();
}

criterion_group!(benches, acknowledgement, receiver);
criterion_main!(benches);
