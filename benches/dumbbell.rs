//! A delivered segment with its acknowledgement: what a simulated transfer costs, in segments per second of real time.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ranpace_scenario::Scenario;
use ranpace_sim::Simulation;
use ranpace_units::Span;

fn dumbbell(cc: &str, rate: &str, rtt: &str, buffer: &str, duration: &str, flows: u32) -> Scenario {
    let half = rtt.parse::<Span>().unwrap() / 2;
    let text = format!(
        r#"
duration = "{duration}"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "{rate}"
delay = "{half}"
queue = {{ kind = "droptail", limit = "{buffer}" }}
[[link]]
name = "up"
from = "phone"
to = "server"
rate = "unlimited"
delay = "{half}"
[[flow]]
from = "server"
to = "phone"
cc = "{cc}"
count = {flows}
receive_buffer_max = "64MB"
"#
    );
    ranpace_scenario::parse(&text, "dumbbell.toml", &mut ()).unwrap()
}

fn segments(scenario: &Scenario) -> u64 {
    let result = Simulation::new(scenario).run();
    result.flows.iter().map(|flow| flow.delivered.get() / 1_448).sum()
}

/// One flow over 150 Mbit/s for 20 s with a drop-tail queue of 6 MB: ns-3's dumbbell.
fn dumbbell_segment(c: &mut Criterion) {
    let mut group = c.benchmark_group("dumbbell_segment");
    group.sample_size(10);
    for cc in ["cubic", "bbr1"] {
        for rtt in ["24ms", "300ms"] {
            let scenario = dumbbell(cc, "150Mbit/s", rtt, "6MB", "20s", 1);
            group.throughput(Throughput::Elements(segments(&scenario)));
            group.bench_with_input(BenchmarkId::new(cc, rtt), &scenario, |b, scenario| {
                b.iter(|| black_box(Simulation::new(scenario).run()).events);
            });
        }
    }
    group.finish();
}

/// A thousand flows over one link of 10 Gbit/s for 2 s, with a queue of a bandwidth-delay product.
fn thousand_flows(c: &mut Criterion) {
    let mut group = c.benchmark_group("thousand_flows");
    group.sample_size(10);
    for cc in ["cubic", "bbr1"] {
        let scenario = dumbbell(cc, "10Gbit/s", "24ms", "30MB", "2s", 1_000);
        group.throughput(Throughput::Elements(segments(&scenario)));
        group.bench_with_input(BenchmarkId::from_parameter(cc), &scenario, |b, scenario| {
            b.iter(|| black_box(Simulation::new(scenario).run()).events);
        });
    }
    group.finish();
}

criterion_group!(benches, dumbbell_segment, thousand_flows);
criterion_main!(benches);
