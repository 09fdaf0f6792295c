//! A plain UDP source: constant bit rate, or Poisson-Pareto bursts.
//!
//! Source of the latter: Zukerman et al. 2003 as used by seed 002 (its section VI): bursts arrive as a Poisson process, last a
//! Pareto-distributed time and send at a constant rate. The process starts in its steady state: a Poisson number of bursts with
//! residual lifetimes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_scenario::{FlowSpec, Transport, Workload};
use ranpace_tcp::Segment;
use ranpace_units::{Bytes, Span, Time};

use crate::random::{mix, part_seed, unit};

/// A burst (or the endless one of a constant bit rate): when its next packet is due, and when it ends.
type Burst = Reverse<(Time, u64, Time)>;

/// The source. It yields the same instants under any clock.
#[derive(Debug)]
pub struct UdpSource {
    packet: Bytes,
    /// Time between two packets of a burst.
    gap: Span,
    bursts: BinaryHeap<Burst>,
    arrivals: Option<Arrivals>,
    numbered: u64,
    sent: u64,
    stopped: bool,
}

/// Arrival process of bursts.
#[derive(Debug)]
struct Arrivals {
    next: Time,
    mean_gap: f64,
    shape: f64,
    shortest: f64,
    random: Xoshiro256PlusPlus,
}

impl Arrivals {
    fn draw(&mut self) -> f64 {
        unit(self.random.next_u64())
    }

    fn advance(&mut self) {
        let gap = -libm::log(self.draw()) * self.mean_gap;
        self.next += Span::from_secs_f64(gap);
    }

    /// Length of a burst: Pareto.
    fn length(&mut self) -> Span {
        let u = self.draw();
        Span::from_secs_f64(self.shortest * libm::pow(u, -1.0 / self.shape))
    }

    /// Residual length of a burst in progress: the equilibrium distribution of the Pareto law, which is uniform below the shortest
    /// length and Pareto of shape - 1 above.
    fn residual(&mut self) -> Span {
        let u = self.draw();
        let below = (self.shape - 1.0) / self.shape;
        let mean = self.shortest * self.shape / (self.shape - 1.0);
        let length = if u < below {
            u * mean
        } else {
            self.shortest * libm::pow((1.0 - u) * self.shape, -1.0 / (self.shape - 1.0))
        };
        Span::from_secs_f64(length)
    }

    /// A Poisson number, by Knuth's product of uniforms.
    fn poisson(&mut self, mean: f64) -> u64 {
        let limit = libm::exp(-mean);
        let (mut product, mut count) = (self.draw(), 0);
        while product > limit {
            product *= self.draw();
            count += 1;
        }
        count
    }
}

impl UdpSource {
    /// The source of a UDP flow that begins at `now`, as in the simulator: `seed` is the scenario's, and `flow` its number there.
    /// `None` for other flows.
    pub fn of_flow(spec: &FlowSpec, seed: u64, flow: usize, now: Time) -> Option<Self> {
        let Transport::Udp { packet, .. } = spec.transport else { return None };
        // Seed of the flow's first connection.
        let seed = mix(part_seed(seed, 1, flow), 0);
        Some(Self::new(&spec.workload, packet, now, seed))
    }

    /// A source for a workload with packets of this size; it sends nothing for workloads that are not UDP's.
    pub fn new(workload: &Workload, packet: Bytes, now: Time, seed: u64) -> Self {
        let mut source = Self {
            packet,
            gap: Span::MAX,
            bursts: BinaryHeap::new(),
            arrivals: None,
            numbered: 0,
            sent: 0,
            stopped: false,
        };
        match *workload {
            Workload::Cbr { rate } => {
                source.gap = rate.time_for(packet);
                source.add(now, Time::MAX);
            }
            Workload::Ppbp { rate, burst_mean, active_mean, hurst } => {
                source.gap = rate.time_for(packet);
                let shape = 3.0 - 2.0 * hurst;
                let mean = burst_mean.as_secs_f64();
                let mut arrivals = Arrivals {
                    next: now,
                    mean_gap: mean / active_mean,
                    shape,
                    shortest: mean * (shape - 1.0) / shape,
                    random: Xoshiro256PlusPlus::seed_from_u64(seed),
                };
                for _ in 0..arrivals.poisson(active_mean) {
                    let end = now + arrivals.residual();
                    // Its packets have a random phase.
                    let first = now + source.gap.mul_f64(arrivals.draw());
                    source.add(first, end);
                }
                arrivals.advance();
                source.arrivals = Some(arrivals);
            }
            // The scenario's parser allows no other workload with UDP.
            _ => {}
        }
        source
    }

    fn add(&mut self, first: Time, end: Time) {
        if first < end {
            self.numbered += 1;
            self.bursts.push(Reverse((first, self.numbered, end)));
        }
    }

    /// Stops sending.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Packets sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Their bytes, headers included.
    pub fn sent_bytes(&self) -> Bytes {
        self.packet * self.sent
    }

    /// When to call [`Self::poll_transmit`] next; [`Time::MAX`] for never.
    pub fn next_deadline(&self) -> Time {
        if self.stopped {
            return Time::MAX;
        }
        let arrival = self.arrivals.as_ref().map_or(Time::MAX, |arrivals| arrivals.next);
        self.bursts.peek().map_or(arrival, |Reverse((at, ..))| arrival.min(*at))
    }

    /// The next packet that is due by `now`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.stopped {
            return None;
        }
        while let Some(arrivals) = &mut self.arrivals
            && arrivals.next <= now
        {
            let (first, length) = (arrivals.next, arrivals.length());
            arrivals.advance();
            self.add(first, first + length);
        }
        let &Reverse((at, number, end)) = self.bursts.peek()?;
        if at > now {
            return None;
        }
        self.bursts.pop();
        if at + self.gap < end {
            self.bursts.push(Reverse((at + self.gap, number, end)));
        }
        self.sent += 1;
        Some(Segment::udp(now, self.sent - 1, self.packet.get() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ranpace_units::Rate;

    fn sent_in(workload: &Workload, seed: u64, seconds: u64) -> u64 {
        let mut source = UdpSource::new(workload, Bytes::new(1_500), Time::ZERO, seed);
        let mut now = Time::ZERO;
        while now < Time::from_secs(seconds) {
            while source.poll_transmit(now).is_some() {}
            now = source.next_deadline();
        }
        source.sent()
    }

    #[test]
    fn constant_bit_rate_is_exact() {
        assert_eq!(sent_in(&Workload::Cbr { rate: Rate::from_mbit_per_s(12) }, 1, 10), 10_000);
    }

    #[test]
    fn bursts_offer_their_mean_from_the_first_second_on() {
        // Three bursts of 15 Mbit/s on average: 45 Mbit/s, 3750 packets a second. H = 0.7 averages out slowly.
        let workload = Workload::Ppbp {
            rate: Rate::from_mbit_per_s(15),
            burst_mean: Span::from_millis(100),
            active_mean: 3.0,
            hurst: 0.7,
        };
        let mean = |seconds: u64| {
            (0..40).map(|seed| sent_in(&workload, seed, seconds)).sum::<u64>() as f64 / 40.0 / seconds as f64
        };
        assert!((mean(50) - 3_750.0).abs() < 300.0, "{}", mean(50));
        assert!((mean(1) - 3_750.0).abs() < 900.0, "{}", mean(1));
    }
}
