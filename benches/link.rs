//! A packet's cost in a link: each kind of queue, a recorded link, and reading a recording.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ranpace_link::{
    CellularModel, Limit, Link, LinkConfig, Packet, QueueConfig, Service, Trace, TraceParser, TraceService,
};
use ranpace_units::{Bytes, Rate, Span, Time};

const PACKETS: u64 = 20_000;

/// As large as a packet of the simulator.
struct Datagram {
    flow: u32,
    _content: [u64; 16],
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes::new(1_500)
    }
    fn flow(&self) -> u32 {
        self.flow
    }
}

/// Offers packets a tenth faster than the link serves them, from seven flows.
fn cross(config: &LinkConfig, gap: Span) -> u64 {
    let mut link = Link::new(config, 1);
    let (mut now, mut arrived) = (Time::ZERO, 0);
    for number in 0..PACKETS {
        now += gap;
        while link.poll(now, &mut ()).is_some() {
            arrived += 1;
        }
        link.send(now, Datagram { flow: (number % 7) as u32, _content: [number; 16] }, &mut ());
    }
    arrived
}

fn queues() -> [(&'static str, QueueConfig); 4] {
    let limit = Limit::Packets(100);
    [
        ("droptail", QueueConfig::DropTail { limit, ecn: None }),
        ("codel", QueueConfig::codel(limit)),
        ("fq_codel", QueueConfig::fq_codel(limit)),
        ("pie", QueueConfig::pie(limit)),
    ]
}

fn queue_packet(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue_packet");
    group.throughput(Throughput::Elements(PACKETS)).sample_size(20);
    for (name, queue) in queues() {
        let config = LinkConfig::new(Service::Fixed(Rate::from_mbit_per_s(12)), queue, Span::from_millis(20));
        group.bench_with_input(BenchmarkId::from_parameter(name), &config, |b, config| {
            b.iter(|| black_box(cross(config, Span::from_micros(900))));
        });
    }
    group.finish();
}

fn trace() -> Trace {
    CellularModel::lte().generate(Span::from_secs(60), 1).unwrap()
}

fn trace_packet(c: &mut Criterion) {
    let trace = Arc::new(trace());
    let gap = trace.mean_rate().time_for(Bytes::new(1_500)).mul_f64(0.9);
    let mut group = c.benchmark_group("trace_packet");
    group.throughput(Throughput::Elements(PACKETS)).sample_size(20);
    for (name, queue) in queues() {
        let service = Service::Trace(TraceService::new(trace.clone()));
        let config = LinkConfig::new(service, queue, Span::from_millis(20));
        group.bench_with_input(BenchmarkId::from_parameter(name), &config, |b, config| {
            b.iter(|| black_box(cross(config, gap)));
        });
    }
    group.finish();
}

/// A line of a recording.
fn parse_line(c: &mut Criterion) {
    let (mut text, mut lines) = (String::new(), 0);
    for (ms, count) in trace().iter() {
        for _ in 0..count {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{ms}");
            lines += 1;
        }
    }
    let mut group = c.benchmark_group("parse_line");
    group.throughput(Throughput::Elements(lines));
    group.bench_function("mahimahi", |b| {
        b.iter(|| {
            let mut parser = TraceParser::new();
            for part in text.as_bytes().chunks(65_536) {
                parser.push(part).unwrap();
            }
            black_box(parser.finish().unwrap())
        });
    });
    group.finish();
}

criterion_group!(benches, queue_packet, trace_packet, parse_line);
criterion_main!(benches);
