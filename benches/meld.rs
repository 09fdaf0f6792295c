//! Cost of MELD: a loss that it judges, and passes on or hides; and a report.
//!
//! `cargo bench -p ranpace-benches --bench meld`. A loss of plain NewReno stands beside them.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ranpace_cc::{Algorithm, Congestion, CongestionControl, Context, RadioHint, Signal, State, Window};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Span, Time};

const RTT: Span = Span::from_millis(50);

fn context(now: Time) -> Context {
    Context {
        now,
        mss: Bytes::new(1448),
        wire: Bytes::new(1500),
        srtt: RTT,
        min_rtt: RTT,
        in_flight: 20,
        delivered: 10_000,
        lost: 10,
        next_packet: 10_030,
        state: State::Open,
        cwnd_limited: true,
        app_limited: false,
        departure: Time::ZERO,
        paced: false,
    }
}

/// A user with 25 PRBs, and so many bytes in its queue.
fn report(at: Time, queue: u64) -> RadioHint {
    RadioHint {
        tbs_bits: Some(18_336),
        most_granted: 25,
        queue: Bytes::new(queue),
        queue_limit: Some(Bytes::new(1_000_000)),
        ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz5), at)
    }
}

fn control(text: &str, queue: u64) -> Box<dyn CongestionControl> {
    let mut control = text.parse::<Algorithm>().expect("it is in the list").build(1);
    let now = Time::from_secs(1);
    let mut window = Window::new(40.0);
    control.on_start(&context(now), &mut window);
    control.on_radio(&context(now), &mut window, &report(now, queue));
    control
}

fn meld(c: &mut Criterion) {
    let loss = Congestion {
        kind: Signal::Loss,
        lost: 2,
        largest: Bytes::new(1448),
        newest_sent_at: Time::from_secs(1),
        first: true,
    };
    let now = Time::from_secs(1) + Span::from_millis(5);
    let mut group = c.benchmark_group("meld");
    for (name, text, queue) in [
        ("plain", "newreno", 0),
        ("hidden", "newreno+meld-me", 0),
        ("told", "newreno+meld-me", 40_000),
        ("hidden, of the moment of the loss", "newreno+meld-me:radio_at=loss", 0),
    ] {
        let (mut control, cx, mut window) = (control(text, queue), context(now), Window::new(40.0));
        group.bench_function(name, |b| {
            b.iter(|| control.on_congestion(black_box(&cx), &mut window, black_box(&loss)));
        });
    }
    // One report in 256 has another number of PRBs, so that the threshold is worked out anew.
    let (mut control, mut window, mut ms) = (control("newreno+meld-me", 0), Window::new(40.0), 1_000);
    group.bench_function("report, then a loss", |b| {
        b.iter(|| {
            ms += 8;
            let now = Time::from_millis(ms);
            let mut hint = report(now, 0);
            hint.most_granted -= u16::from(ms % 2048 == 0);
            let cx = context(now);
            control.on_radio(&cx, &mut window, black_box(&hint));
            control.on_congestion(&cx, &mut window, black_box(&loss))
        });
    });
    group.finish();
}

criterion_group!(benches, meld);
criterion_main!(benches);
