//! Cost of RAPID's decisions: a packet, the end of a round, a report; over the number of flows.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ranpace_pep::rapid::{FlowId, Rapid, Settings};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::{CellInfo, RadioHint};
use ranpace_units::{Bytes, Span, Time};

const MSS: Bytes = Bytes::new(1_448);
/// Flows of a user.
const PER_USER: usize = 10;

fn hint(now: Time) -> RadioHint {
    let hint = RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz20), now);
    // The capacity is another with each report, so that each sets windows.
    let granted = 20.0 + (now.as_millis() % 7) as f64;
    RadioHint { granted, unused: 5.0, mcs: 28, active_users: 10, ..hint }
}

/// So many flows, ten a user, with RTTs of 10 to 49 ms.
fn proxy(flows: usize) -> (Rapid, Vec<FlowId>) {
    let mut rapid = Rapid::new(Settings::THESIS);
    let ids = (0..flows).map(|flow| {
        let user = (flow / PER_USER) as u32;
        if flow % PER_USER == 0 {
            rapid.on_radio(Time::ZERO, user, &hint(Time::ZERO));
        }
        rapid.open(Time::ZERO, user, Span::from_millis(10 + flow as u64 % 40), MSS)
    });
    let ids = ids.collect();
    read_changes(&mut rapid);
    (rapid, ids)
}

fn read_changes(rapid: &mut Rapid) {
    while let Some(flow) = rapid.next_change() {
        black_box((rapid.window(flow), rapid.allocation(flow)));
    }
}

/// A packet from the server and what it does to the backlog twice; RTTs of both sides.
fn packet(c: &mut Criterion) {
    let mut group = c.benchmark_group("rapid_packet");
    for flows in [10, 1_000, 10_000] {
        let (mut rapid, ids) = proxy(flows);
        group.throughput(Throughput::Elements(ids.len() as u64));
        group.bench_function(BenchmarkId::new("flows", flows), |b| {
            b.iter(|| {
                let now = Time::from_millis(50);
                for &flow in &ids {
                    rapid.on_wan_data(now, flow, MSS);
                    rapid.on_backlog(now, flow, MSS);
                    rapid.on_ran_rtt(now, flow, Span::from_millis(30));
                    rapid.on_backlog(now, flow, Bytes::ZERO);
                    black_box(rapid.window(flow));
                }
            });
        });
    }
    group.finish();
}

/// 90 ms of all flows' rounds and periods without packets, per round.
fn round(c: &mut Criterion) {
    let mut group = c.benchmark_group("rapid_round");
    for flows in [10, 1_000, 10_000] {
        let mean_rtt_ms = 10.0 + (flows.min(40) - 1) as f64 / 2.0;
        group.throughput(Throughput::Elements((flows as f64 * 90.0 / mean_rtt_ms) as u64));
        group.sample_size(20);
        group.bench_function(BenchmarkId::new("flows", flows), |b| {
            b.iter_batched(
                || proxy(flows).0,
                |mut rapid| {
                    let until = Time::from_millis(90); // reports of the beginning still hold
                    while let Some(due) = rapid.next_deadline().filter(|due| *due <= until) {
                        rapid.on_deadline(due);
                        read_changes(&mut rapid);
                    }
                    rapid
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

/// A report of each user, with all windows that it sets; per flow.
fn report(c: &mut Criterion) {
    let mut group = c.benchmark_group("rapid_report");
    for flows in [10, 1_000, 10_000] {
        let (mut rapid, _) = proxy(flows);
        let mut now = Time::ZERO;
        group.throughput(Throughput::Elements(flows as u64));
        group.bench_function(BenchmarkId::new("flows", flows), |b| {
            b.iter(|| {
                now += Span::from_millis(1);
                for user in 0..flows.div_ceil(PER_USER) {
                    rapid.on_radio(now, user as u32, &hint(now));
                }
                read_changes(&mut rapid);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, packet, round, report);
criterion_main!(benches);
