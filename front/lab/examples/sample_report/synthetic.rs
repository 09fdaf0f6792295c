//! Made-up runs that look like real ones: a fluid model of flows that share one link of varying rate.
//!
//! For tests of output; nothing here is a result.

use ranpace_sim::{Column, Distribution, FlowResult, Ledger, LinkResult, RunResult, Series, Transfer};
use ranpace_units::{Bytes, Rate, Span, Time};

/// Round-trip time without a queue, in seconds.
const BASE_RTT: f64 = 0.040;
/// The queue's limit in bytes.
const LIMIT: f64 = 375_000.0;
/// Steps of the model per sample of the series.
const STEPS: usize = 10;
/// Samples of the series: a minute at 100 ms.
const SAMPLES: usize = 600;
const PACKET: f64 = 1_500.0;

/// One flow of algorithm `cc` alone on the link, for a minute.
pub fn run(cc: &str, seed: u64) -> RunResult {
    run_of(&[cc], seed)
}

/// One flow for each of `ccs`, sharing the link; each starts 4 s after the previous one.
pub fn run_of(ccs: &[&str], seed: u64) -> RunResult {
    let mut noise = Noise(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let eager = 1.0 + 0.2 * noise.next();
    let new = |(index, cc): (usize, &&str)| Flow::new(cc, index as f64 * 4.0, eager);
    let mut flows: Vec<Flow> = ccs.iter().enumerate().map(new).collect();
    let mut link = Recorder::default();
    let (mut queue, mut capacity, mut carried, mut dropped) = (0.0_f64, 24e6, 0.0, 0.0);
    let (mut link_delays, mut could) = (Vec::new(), 0.0);
    let dt = 0.1 / STEPS as f64;
    for sample in 0..SAMPLES {
        let now = (sample + 1) as f64 * 0.1;
        let (mut departed, mut lost, mut delays) = (0.0, 0.0, Vec::new());
        for _ in 0..STEPS {
            capacity = (capacity + noise.next() * 9e5 + (24e6 - capacity) * 0.006).clamp(3e6, 48e6);
            let delay = queue * 8.0 / capacity;
            let mut offered = 0.0;
            for flow in flows.iter_mut().filter(|flow| flow.starts < now) {
                offered += flow.step(dt, delay, capacity, &mut noise);
            }
            let served = (queue + offered).min(capacity / 8.0 * dt);
            let overflow = (queue + offered - served - LIMIT).max(0.0);
            for flow in &mut flows {
                let share = if offered > 0.0 { flow.offered / offered } else { 0.0 };
                flow.settle(now, served * share, overflow * share, delay);
            }
            queue = queue + offered - served - overflow;
            (departed, lost) = (departed + served, lost + overflow);
            delays.push((delay, served / PACKET));
        }
        (carried, dropped, could) = (carried + departed, dropped + lost, could + capacity / 80.0);
        for flow in &mut flows {
            flow.sample(now, &delays);
        }
        let mean = delays.iter().map(|sample| sample.0).sum::<f64>() / delays.len() as f64;
        link.push("time_s", now);
        link.push("queued_bytes", (queue / PACKET).round() * PACKET);
        link.push("capacity_bit_s", capacity.round());
        link.push("departed_bit_s", (departed * 80.0).round());
        link.push("dropped_packets", (lost / PACKET).round());
        link.push("queueing_delay_mean_s", nanos(mean));
        link_delays.extend(delays);
    }
    let (carried, dropped) = (carried as u64, dropped as u64);
    RunResult {
        seed,
        measured_from: Time::ZERO,
        end: Time::from_secs(60),
        interrupted: false,
        flows: flows.into_iter().enumerate().map(|(index, flow)| flow.finish(index)).collect(),
        links: vec![LinkResult {
            name: "cell".into(),
            departed: Bytes::new(carried),
            departed_packets: carried / 1_500,
            dropped_packets: dropped / 1_500,
            lost_packets: 0,
            marked_packets: 0,
            capacity: Some(Bytes::new(could as u64)),
            utilisation: Some(carried as f64 / could),
            queueing_delay: distribution(link_delays),
            series: link.series,
        }],
        cells: Vec::new(),
        users: Vec::new(),
        feed: None,
        peps: Vec::new(),
        ledger: Ledger {
            offered: Bytes::new(carried + dropped + queue as u64),
            delivered: Bytes::new(carried),
            dropped: Bytes::new(dropped),
            lost: Bytes::ZERO,
            in_network: Bytes::new(queue as u64),
        },
        events: 1_000_000,
    }
}

/// A flow of the model.
struct Flow {
    cc: String,
    starts: f64,
    /// The queue that it tolerates, relative to one.
    eager: f64,
    window: f64,
    pacing: f64,
    threshold: f64,
    best: f64,
    hold: f64,
    cycle: f64,
    offered: f64,
    sent: f64,
    delivered: f64,
    lost: f64,
    before: f64,
    rtt: f64,
    delays: Vec<(f64, f64)>,
    out: Recorder,
}

impl Flow {
    fn new(cc: &str, starts: f64, eager: f64) -> Self {
        Self {
            eager,
            cc: cc.to_owned(),
            starts,
            window: 15_000.0,
            pacing: f64::NAN,
            threshold: f64::NAN,
            best: 0.0,
            hold: 0.0,
            cycle: 0.0,
            offered: 0.0,
            sent: 0.0,
            delivered: 0.0,
            lost: 0.0,
            before: 0.0,
            rtt: BASE_RTT,
            delays: Vec::new(),
            out: Recorder::default(),
        }
    }

    /// Bytes it sends in `dt`.
    fn step(&mut self, dt: f64, delay: f64, capacity: f64, noise: &mut Noise) -> f64 {
        self.rtt = BASE_RTT + delay + noise.next().abs() * 1e-4;
        self.cycle += dt;
        let rtts = dt / self.rtt;
        match self.cc.as_str() {
            "bbr1" => {
                self.best = (self.best * (1.0 - dt / 8.0)).max(self.delivered_rate(capacity)).max(2e6);
                let probing = if self.cycle % 0.4 < 0.05 { 1.25 } else { 1.0 };
                self.pacing = (self.best * probing).round();
                self.window = (1.3 + 0.7 * self.eager) * self.best / 8.0 * BASE_RTT;
            }
            "vegas" | "copa" => {
                let target = if self.cc == "copa" { 0.012 } else { 0.005 };
                let way = if delay < target * self.eager { 1.0 } else { -1.0 };
                let fast = if self.sent < 400_000.0 { 8.0 } else { 1.0 };
                self.window = (self.window + way * fast * 2.0 * PACKET * rtts).max(4.0 * PACKET);
                self.pacing = (2.0 * self.window * 8.0 / self.rtt).round();
            }
            _ => {
                let growth = if self.threshold.is_nan() { self.window } else { 4.0 * PACKET };
                self.window += growth * rtts;
                self.pacing = (1.2 * self.window * 8.0 / self.rtt).round();
            }
        }
        self.offered = (self.window / self.rtt * dt * (1.0 + 0.02 * noise.next())).max(0.0);
        self.sent += self.offered;
        self.offered
    }

    fn delivered_rate(&self, capacity: f64) -> f64 {
        (self.window * 8.0 / self.rtt).min(capacity)
    }

    /// The fate of the bytes it sent.
    fn settle(&mut self, now: f64, served: f64, lost: f64, delay: f64) {
        self.delivered += served;
        self.lost += lost;
        if lost > 0.0 && now > self.hold && self.cc != "bbr1" {
            self.window = (self.window * 0.7 * self.eager.min(1.0)).max(4.0 * PACKET);
            self.threshold = self.window;
            self.hold = now + self.rtt;
        }
        if served > 0.0 {
            self.delays.push((delay, served / PACKET));
        }
    }

    /// A row of its series.
    fn sample(&mut self, now: f64, delays: &[(f64, f64)]) {
        let runs = self.starts < now;
        let or_nan = |value: f64| if runs { value } else { f64::NAN };
        let whole = |value: f64| (value / 1_448.0).floor() * 1_448.0;
        let mean = delays.iter().map(|sample| sample.0).sum::<f64>() / delays.len() as f64;
        let most = delays.iter().map(|sample| sample.0).fold(0.0, f64::max);
        let flight = whole(self.window * 0.97);
        let out = &mut self.out;
        out.push("time_s", now);
        out.push("delivered_bytes", whole(self.delivered));
        out.push("goodput_bit_s", ((self.delivered - self.before) * 80.0).round());
        out.push("sent_bytes", whole(self.delivered) + if runs { flight } else { 0.0 });
        out.push("acked_bytes", whole((self.delivered - 8_000.0).max(0.0)));
        out.push("retransmitted_packets", (self.lost / PACKET).round());
        out.push("cwnd_bytes", or_nan(whole(self.window)));
        out.push("ssthresh_bytes", or_nan(whole(self.threshold)));
        out.push("pacing_bit_s", or_nan(self.pacing));
        out.push("in_flight_bytes", or_nan(flight));
        out.push("srtt_s", or_nan(nanos(self.rtt * 0.98)));
        out.push("rtt_last_s", or_nan(nanos(self.rtt)));
        out.push("queueing_delay_mean_s", or_nan(nanos(mean)));
        out.push("queueing_delay_max_s", or_nan(nanos(most)));
        out.push("state_phase", or_nan((self.cycle / 0.4).floor() % 4.0));
        out.push("state_min_rtt_s", or_nan(BASE_RTT));
        self.before = self.delivered;
    }

    fn finish(self, index: usize) -> FlowResult {
        let measured = Span::from_secs_f64(60.0 - self.starts);
        let delivered = Bytes::new(self.delivered as u64);
        let (sent, lost) = ((self.sent / PACKET) as u64, (self.lost / PACKET) as u64);
        let rtts = self.delays.iter().map(|(delay, weight)| (delay + BASE_RTT, *weight)).collect();
        FlowResult {
            name: format!("{}-{}", self.cc, index + 1),
            cc: self.cc,
            bottleneck: Some(0),
            measured,
            delivered,
            goodput: Rate::of(delivered, measured),
            bottleneck_bytes: delivered.scale(1_500, 1_448),
            sent_packets: sent,
            retransmitted_packets: lost,
            dropped_packets: lost,
            loss_rate: lost as f64 / sent as f64,
            timeouts: 0,
            undone: 0,
            marked_packets: 0,
            rtt: distribution(rtts),
            jitter_ewma: Span::from_micros(310 + 7 * index as u64),
            jitter_mean_deviation: Span::from_micros(4_210),
            queueing_delay: distribution(self.delays),
            totals: ranpace_sim::FlowTotals::default(),
            lost: None,
            split: None,
            transfers: vec![
                Transfer {
                    start: Time::from_secs(1),
                    size: Bytes::new(1_000_000),
                    completion: Some(Span::from_millis(812)),
                    handed_over: None,
                },
                Transfer {
                    start: Time::from_secs(50),
                    size: Bytes::new(50_000_000),
                    completion: None,
                    handed_over: None,
                },
            ],
            series: self.out.series,
        }
    }
}

/// A distribution of weighted values in seconds.
fn distribution(mut samples: Vec<(f64, f64)>) -> Distribution {
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = samples.iter().map(|sample| sample.1).sum();
    let mean = samples.iter().map(|(value, weight)| value * weight).sum::<f64>() / total;
    let mut cdf: Vec<(Span, f64)> = Vec::new();
    let mut below = 0.0;
    for (value, weight) in &samples {
        below += weight;
        let point = (Span::from_secs_f64(*value), below / total);
        match cdf.last_mut() {
            Some(last) if last.0 == point.0 => *last = point,
            Some(last) if point.1 - last.1 < 0.005 && below < total * 0.9999 => {}
            _ => cdf.push(point),
        }
    }
    cdf.truncate(200);
    let quantile =
        |share: f64| cdf.iter().find(|point| point.1 >= share).or(cdf.last()).map_or(Span::ZERO, |p| p.0);
    Distribution {
        count: total as u64,
        mean: Span::from_secs_f64(mean),
        min: cdf.first().map_or(Span::ZERO, |point| point.0),
        max: cdf.last().map_or(Span::ZERO, |point| point.0),
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        cdf,
    }
}

/// A time as the simulator gives it: whole nanoseconds, in seconds.
fn nanos(seconds: f64) -> f64 {
    Span::from_secs_f64(seconds).as_secs_f64()
}

/// Columns that grow row by row.
#[derive(Default)]
struct Recorder {
    series: Series,
}

impl Recorder {
    fn push(&mut self, name: &str, value: f64) {
        match self.series.columns.iter_mut().find(|column| column.name == name) {
            Some(column) => column.values.push(value),
            None => self.series.columns.push(Column { name: name.to_owned(), values: vec![value] }),
        }
    }
}

/// Numbers from -1 to 1 (xorshift64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}
