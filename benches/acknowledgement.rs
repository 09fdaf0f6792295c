//! An acknowledgement's cost in the congestion control alone, for every algorithm there is; and a packet's cost in the
//! receiver half, for those that have one.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ranpace_cc::{
    ALL, Ack, Algorithm, Context, ControlChannel, Packet, PacketOutcome, RadioHint, RateSample, Received,
    ReceiverHalf, ReceiverReport, Sample, Sending, Sent, State, Transport, Window,
};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::{CellGrant, CellInfo};
use ranpace_units::{Bytes, Span, Time};

const ACKS: u64 = 10_000;

/// What the radio tells in a TTI: a block that holds ten packets.
fn hint(now: Time) -> RadioHint {
    RadioHint {
        tbs_bits: Some(120_000),
        granted: 100.0,
        most_granted: 100,
        active_users: 1,
        cqi: Some(15),
        mcs: 28,
        layers: 2,
        ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz20), now)
    }
}

/// The control channel of a TTI: a grant of half of the cell for this user, and four for others.
fn decode(half: &mut dyn ReceiverHalf, now: Time) {
    let grants: [CellGrant; 5] = core::array::from_fn(|place| CellGrant {
        rnti: place as u16 + 1,
        prb_symbols: 14 * if place == 0 { 50 } else { 12 },
        bits: if place == 0 { 120_000 } else { 9_000 },
        again: false,
    });
    let cell = CellInfo::lte(0, LteBandwidth::Mhz20);
    half.on_cell(
        now,
        &ControlChannel { measured_at: now, cell: &cell, own: Some(1), available: 14 * 100, grants: &grants },
    );
}

/// The packet `number` of 10,000 a second arrives, and every tenth time the modem hears of a block that holds ten of them.
fn arrive(half: &mut dyn ReceiverHalf, number: u64) {
    let now = Time::from_secs(1) + Span::from_micros(100) * number;
    if half.wants_radio() && number.is_multiple_of(10) {
        half.on_radio(now, &hint(now));
    }
    if half.wants_cell() && number.is_multiple_of(10) {
        decode(half, now);
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
    let (wants_packets, wants_radio) = (control.wants_packets(), control.wants_radio());
    for round in 0..ACKS {
        cx.now += Span::from_micros(200);
        // A millisecond is five acknowledgements.
        if wants_radio && round % 5 == 0 {
            control.on_radio(&cx, &mut w, &hint(cx.now));
        }
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
    // Of the decorators, those whose rule looks at every sample.
    let decorated = ["newreno+lda", "newreno+lda:rule=eq"];
    for name in ALL.iter().map(|entry| entry.name).chain(decorated) {
        let algorithm: Algorithm = name.parse().unwrap();
        group.bench_with_input(BenchmarkId::from_parameter(name), &algorithm, |b, algorithm| {
            let is_tcp = algorithm.transport() == Transport::Tcp;
            let reports = if is_tcp { reports(algorithm) } else { Vec::new() };
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
