//! Whatever is told, in whatever order: the window holds a segment and is not beyond its bound, and the pace is not zero.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_cc::{
    Ack, Allocation, Congestion, CongestionControl, Context, LossResponse, Pacing, PepReport, RadioHint,
    RateSample, ReceiverReport, Sample, Signal, State, Window,
};
use ranpace_kernel_arithmetic::flow::MOST_CWND;
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Rate, Span, Time};

/// A number of random size: small ones and extreme ones are as likely as those between.
fn wild(random: &mut Xoshiro256PlusPlus) -> u64 {
    let bits = random.next_u64() % 65;
    if bits == 0 { 0 } else { random.next_u64() >> (64 - bits) }
}

fn span(random: &mut Xoshiro256PlusPlus) -> Span {
    match random.next_u64() % 3 {
        0 => Span::from_nanos(wild(random)),
        _ => Span::from_micros(1 + random.next_u64() % 500_000),
    }
}

/// Tells a control so many random events. Events that its kernel does not have reach the parent alone, or nothing.
#[track_caller]
pub fn torture(control: &mut dyn CongestionControl, seed: u64, events: u64) {
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut w = Window::new(10.0);
    let mut now = 1;
    for number in 0..events {
        let step = if random.next_u64() % 64 == 0 {
            wild(random) % (1 << 44)
        } else {
            random.next_u64() % 2_000_000
        };
        now = (now + step).min(1 << 62);
        let cx = Context {
            now: Time::from_nanos(now),
            mss: Bytes::new([1_448, 1, 65_535, 536][(random.next_u64() % 4) as usize]),
            wire: Bytes::new(1_500),
            srtt: if random.next_u64() % 9 == 0 { Span::ZERO } else { span(random) },
            min_rtt: if random.next_u64() % 9 == 0 { Span::MAX } else { span(random) },
            in_flight: wild(random) % (1 << 33),
            delivered: wild(random),
            lost: wild(random),
            next_packet: number,
            state: [State::Open, State::Disorder, State::Cwr, State::Recovery, State::Loss]
                [(random.next_u64() % 5) as usize],
            cwnd_limited: random.next_u64() % 4 != 0,
            app_limited: random.next_u64() % 4 == 0,
            departure: Time::from_nanos(now),
            paced: false,
        };
        if number == 0 {
            control.on_start(&cx, &mut w);
        }
        let delivered = wild(random) % (1 << 34);
        let bytes = Bytes::new(delivered * 1_448);
        let rtt = (random.next_u64() % 8 != 0).then(|| span(random));
        match random.next_u64() % 16 {
            0..6 => {
                let one_way = (random.next_u64() % 2 == 0).then(|| span(random));
                let sample = Sample { delivered, bytes, rtt, one_way, in_flight_at_send: wild(random) };
                control.on_sample(&cx, &mut w, &sample);
            }
            6..11 => {
                let interval = (random.next_u64() % 4 != 0).then(|| span(random));
                let rate = RateSample {
                    delivered: wild(random),
                    interval,
                    prior_delivered: wild(random),
                    app_limited: random.next_u64() % 2 == 0,
                    lost: wild(random) % 1_000,
                    delayed: false,
                    ..RateSample::default()
                };
                // Growth by what nobody can send would be the parent's, not the arithmetic's.
                let acked = delivered % 64;
                let ack = Ack {
                    acked,
                    delivered,
                    bytes,
                    rtt,
                    rate,
                    prior_in_flight: wild(random),
                    ecn_echo: false,
                    marked: 0,
                    braked: 0,
                };
                control.on_ack(&cx, &mut w, &ack);
            }
            11 => {
                let kind = match random.next_u64() % 3 {
                    0 => Signal::Loss,
                    1 => Signal::Ecn,
                    _ => Signal::Timeout { count: 1 + random.next_u32() % 3 },
                };
                let event = Congestion {
                    kind,
                    lost: wild(random) % 10_000,
                    largest: Bytes::new(random.next_u64() % 9_000),
                    newest_sent_at: Time::from_nanos(random.next_u64() % now),
                    first: random.next_u64() % 3 != 0,
                };
                if let LossResponse::ReduceTo(ssthresh) = control.on_congestion(&cx, &mut w, &event) {
                    assert!(ssthresh >= 1.0, "seed {seed}, event {number}: {ssthresh}");
                    w.ssthresh = ssthresh;
                    w.cwnd = if matches!(kind, Signal::Timeout { .. }) { 1.0 } else { w.cwnd.min(ssthresh) };
                }
            }
            12 => {
                // The endpoint's own doing.
                w.cwnd = (1 + wild(random) % (u64::from(MOST_CWND) / 2)) as f64;
                control.on_recovered(&cx, &mut w);
            }
            13 => {
                let length = (random.next_u64() as usize) % (ReceiverReport::CAPACITY + 1);
                let mut content = vec![0; length];
                random.fill_bytes(&mut content);
                control.on_report(&cx, &mut w, &ReceiverReport::new(&content).unwrap());
            }
            14 => {
                let allocation = Allocation {
                    rate: Rate::from_bits_per_s(wild(random)),
                    window: Bytes::new(wild(random)),
                };
                control.on_allocation(&cx, &mut w, (random.next_u64() % 4 != 0).then_some(allocation));
            }
            15 if number % 2 == 0 => {
                let hint = RadioHint {
                    tbs_bits: (random.next_u64() % 4 != 0).then(|| wild(random) as u32),
                    most_granted: (random.next_u64() % 111) as u16,
                    queue: Bytes::new(wild(random)),
                    queue_limit: (random.next_u64() % 2 == 0).then(|| Bytes::new(wild(random))),
                    handover: random.next_u64() % 16 == 0,
                    ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz20), Time::from_nanos(wild(random)))
                };
                control.on_radio(&cx, &mut w, &hint);
            }
            _ => {
                let report = PepReport {
                    seen: Bytes::new(wild(random)),
                    rtt,
                    missing: wild(random),
                    marked: (random.next_u64() % 2 == 0).then(|| wild(random)),
                    new_epoch: random.next_u64() % 8 == 0,
                };
                control.on_pep(&cx, &mut w, &report);
            }
        }
        // A parent's own growth is not bounded here.
        w.cwnd = w.cwnd.min(f64::from(MOST_CWND) + 64.0);
        assert!(w.cwnd >= 1.0 && w.cwnd <= f64::from(MOST_CWND) + 64.0, "seed {seed}, event {number}: {w:?}");
        assert!(w.ssthresh >= 1.0, "seed {seed}, event {number}: {w:?}");
        assert!(w.pacing != Pacing::Rate(Rate::ZERO), "seed {seed}, event {number}: {w:?}");
    }
}
