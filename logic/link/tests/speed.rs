//! What a packet costs. Not a test of right or wrong: `cargo test --release -p ranpace-link --test speed --
//! --ignored --nocapture` prints it.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use ranpace_link::{CellularModel, Limit, Link, LinkConfig, Packet, QueueConfig, Service, TraceService};
use ranpace_units::{Bytes, Rate, Span, Time};

/// As large as a packet of the simulator is likely to be.
struct Datagram {
    size: u32,
    flow: u32,
    is_marked: bool,
    _content: [u64; 10],
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    fn flow(&self) -> u32 {
        self.flow
    }
    fn is_ect(&self) -> bool {
        true
    }
    fn mark_ce(&mut self) {
        self.is_marked = true;
    }
}

#[test]
#[ignore = "prints times"]
fn nanoseconds_per_packet() {
    let trace = Arc::new(CellularModel::lte().generate(Span::from_secs(60), 1).unwrap());
    let fixed = || Service::Fixed(Rate::from_mbit_per_s(12));
    let limit = Limit::Packets(100);
    for (name, service, queue) in [
        ("unlimited", Service::Unlimited, QueueConfig::drop_tail(limit)),
        ("fixed, drop-tail", fixed(), QueueConfig::drop_tail(limit)),
        ("fixed, CoDel", fixed(), QueueConfig::codel(limit)),
        ("fixed, FQ-CoDel", fixed(), QueueConfig::fq_codel(limit)),
        ("fixed, PIE", fixed(), QueueConfig::pie(limit)),
        ("trace, drop-tail", Service::Trace(TraceService::new(trace)), QueueConfig::drop_tail(limit)),
    ] {
        let mut link = Link::new(&LinkConfig::new(service, queue, Span::from_millis(20)), 1);
        let packets = 2_000_000u64;
        let begin = Instant::now();
        let mut arrived = 0u64;
        for n in 0..packets {
            // 11 Mbit/s on average, in pairs.
            let now = Time::from_nanos((n & !1) * 1_090_909);
            while link.next_event() <= now {
                arrived += u64::from(link.poll(link.next_event(), &mut ()).is_some());
            }
            link.send(
                now,
                Datagram { size: 1500, flow: n as u32 & 7, is_marked: false, _content: [n; 10] },
                &mut (),
            );
        }
        let each = begin.elapsed().as_nanos() as f64 / packets as f64;
        println!("{name}: {each:.0} ns a packet, {} arrived", black_box(arrived));
    }
}
