//! An acknowledgement's cost in the congestion control alone, for every algorithm there is.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ranpace_cc::{ALL, Ack, Algorithm, Context, Fate, Packet, RateSample, Sample, Sent, State, Window};
use ranpace_units::{Bytes, Span, Time};

const ACKS: u64 = 10_000;

/// 120 Mbit/s and 20 ms: a segment every 100 us, the RTT swings by 4 ms; two segments an acknowledgement.
fn acknowledge(algorithm: &Algorithm) -> f64 {
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
    };
    control.on_start(&cx, &mut w);
    let wants_packets = control.wants_packets();
    for round in 0..ACKS {
        cx.now += Span::from_micros(200);
        cx.delivered += 2;
        let rtt = Span::from_micros(20_000 + (round % 400).abs_diff(200) * 20);
        cx.srtt = (cx.srtt * 7 + rtt) / 8;
        if wants_packets {
            for number in 0..2 {
                let packet = Packet {
                    number: cx.next_packet - 200 + number,
                    bytes: cx.mss,
                    sent_at: Time::ZERO + (cx.now - Time::ZERO - rtt),
                    fate: Fate::Acked { rtt, one_way: None },
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
            b.iter(|| black_box(acknowledge(algorithm)));
        });
    }
    group.finish();
}

criterion_group!(benches, acknowledgement);
criterion_main!(benches);
