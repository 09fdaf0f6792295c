//! For tests: a packet, a recording observer, and a source that reacts to congestion.

use ranpace_units::{Bytes, Ecn, Rate, Span, Time};

use crate::{DropCause, Limit, Link, LinkConfig, Observer, Packet, QueueConfig, Service};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestPacket {
    pub flow: u32,
    pub size: u64,
    pub ecn: Ecn,
}

impl TestPacket {
    pub fn new(flow: u32, size: u64) -> Self {
        Self { flow, size, ecn: Ecn::NotEct }
    }
    pub fn ect(flow: u32, size: u64) -> Self {
        Self { ecn: Ecn::Ect0, ..Self::new(flow, size) }
    }
}

impl Packet for TestPacket {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow(&self) -> u32 {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        assert!(self.ecn.is_capable() && ecn.is_capable(), "only capable packets may be marked");
        assert!(self.ecn != Ecn::Ce || ecn == Ecn::Ce, "a mark is never taken back");
        self.ecn = ecn;
    }
}

/// All calls of the observer, and the packets that arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Log {
    pub enqueued: usize,
    pub dropped: Vec<(Time, DropCause, TestPacket)>,
    pub departed: Vec<(Time, Span, TestPacket, bool)>,
    pub arrived: Vec<(Time, TestPacket)>,
}

impl Log {
    pub fn dropped_bytes(&self) -> Bytes {
        self.dropped.iter().map(|d| d.2.size()).sum()
    }
}

impl Observer<TestPacket> for Log {
    fn on_enqueued(&mut self, _: Time, _: &TestPacket, _: Bytes) {
        self.enqueued += 1;
    }
    fn on_dropped(&mut self, now: Time, packet: &TestPacket, cause: DropCause) {
        self.dropped.push((now, cause, packet.clone()));
    }
    fn on_departed(&mut self, now: Time, packet: &TestPacket, waited: Span, marked: bool) {
        self.departed.push((now, waited, packet.clone(), marked));
    }
}

/// Queues of every kind, with and without ECN.
pub(crate) fn every_queue(limit: Limit) -> Vec<QueueConfig> {
    let mut all = Vec::new();
    for ecn in [false, true] {
        let threshold = ecn.then_some(Bytes::new(3000));
        let (target, interval) = (Span::from_millis(5), Span::from_millis(20));
        all.extend([
            QueueConfig::DropTail { limit, ecn: threshold },
            QueueConfig::CoDel { limit, target, interval, ecn, ce_threshold: ecn.then_some(target / 5) },
            QueueConfig::FqCoDel {
                limit,
                target,
                interval,
                quantum: Bytes::new(300),
                flows: 3,
                ecn,
                ce_threshold: ecn.then_some(target / 5),
            },
            QueueConfig::Pie { limit, target, update: target, max_burst: interval, ecn },
        ]);
    }
    all.extend([QueueConfig::dual_pi2(limit), QueueConfig::l4span(limit), QueueConfig::abc(limit)]);
    all
}

/// Sends packets, given with their times in microseconds, through a link until all are done.
pub(crate) fn loopback(config: &LinkConfig, packets: impl Iterator<Item = (u64, TestPacket)>) -> Log {
    let mut packets: Vec<_> = packets.collect();
    packets.sort_by_key(|(us, _)| *us);
    let (mut link, mut log) = (Link::new(config, 1), Log::default());
    for (us, packet) in packets {
        let now = Time::from_nanos(us * 1000);
        run_until(&mut link, &mut log, now);
        link.send(now, packet, &mut log);
    }
    run_until(&mut link, &mut log, Time::from_secs(1 << 30));
    log
}

fn run_until(link: &mut Link<TestPacket>, log: &mut Log, now: Time) {
    while link.next_event() <= now {
        let at = link.next_event();
        if let Some(packet) = link.poll(at, log) {
            log.arrived.push((at, packet));
        }
    }
}

pub(crate) struct Outcome {
    pub mean_wait: Span,
    pub utilisation: f64,
}

/// Several window-based sources (one more packet per round trip, half on a loss, at most once per round trip) over
/// 24 Mbit/s and 60 ms. The first ten seconds are not counted.
pub(crate) fn closed_loop(queue: QueueConfig, sources: u32, seconds: u64) -> Outcome {
    let rate = Rate::from_mbit_per_s(24);
    let config = LinkConfig::new(Service::Fixed(rate), queue, Span::from_millis(60));
    let (mut link, mut log) = (Link::new(&config, 3), Log::default());
    let (start, end) = (Time::from_secs(10), Time::from_secs(seconds));
    let mut windows = vec![(10.0f64, 0usize, Time::ZERO); sources as usize];
    let (mut now, mut seen) = (Time::ZERO, 0);
    while now < end {
        // A source learns of a drop at once: the packet is no longer in flight.
        while let Some((at, _, packet)) = log.dropped.get(seen) {
            let (window, in_flight, quiet_until) = &mut windows[packet.flow as usize];
            *in_flight -= 1;
            if *at >= *quiet_until {
                *window = (*window / 2.0).max(2.0);
                *quiet_until = *at + Span::from_millis(60);
            }
            seen += 1;
        }
        for (flow, (window, in_flight, _)) in windows.iter_mut().enumerate() {
            // At most two per event, as acknowledgements would clock it.
            for _ in 0..2 {
                if (*in_flight as f64) < window.floor() {
                    link.send(now, TestPacket::new(flow as u32, 1500), &mut log);
                    *in_flight += 1;
                }
            }
        }
        now = link.next_event();
        while let Some(packet) = link.poll(now, &mut log) {
            let (window, in_flight, _) = &mut windows[packet.flow as usize];
            *in_flight -= 1;
            *window += 1.0 / *window;
        }
    }
    let counted: Vec<_> = log.departed.iter().filter(|d| d.0 > start).collect();
    let total: Span = counted.iter().map(|d| d.1).sum();
    let capacity = rate.bytes_in(end - start).as_f64();
    Outcome { mean_wait: total / counted.len() as u64, utilisation: 1500.0 * counted.len() as f64 / capacity }
}
