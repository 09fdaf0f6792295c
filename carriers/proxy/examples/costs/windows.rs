//! Decisions and windows for 1,000 connections of 100 users, with a report of each user in each millisecond.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use ranpace_cc::Allocation;
use ranpace_kernel::{Allocations, Control, Loaded};
use ranpace_pep::rapid::{FlowId, Rapid, Settings};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::{CellInfo, RadioHint};
use ranpace_units::{Bytes, Span, Time};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

const USERS: u32 = 100;
const FLOWS: usize = 1_000;
/// Reports of each user, one a millisecond.
const REPORTS: u64 = 2_000;

/// Measures the part of a core that it takes, per millisecond of reports.
pub fn measure() -> Value {
    println!("{FLOWS} connections of {USERS} users, a report of each user in each ms: part of a core");
    let loaded = Loaded::unnamed(&Control::parse("rapid").unwrap()).unwrap();
    let allocations = Allocations::of(&loaded).unwrap();
    let sockets: Vec<OwnedFd> =
        (0..FLOWS).map(|_| Socket::new(Domain::IPV4, Type::STREAM, None).unwrap().into()).collect();
    for (place, socket) in sockets.iter().enumerate() {
        allocations.assign(socket, place).unwrap();
    }
    let rows = [
        ("decisions alone", play(|_, _| ())),
        (
            "with windows towards users, in the mapped array",
            play(|place, allocation| allocations.write(place, Some(allocation))),
        ),
        (
            "with a system call for each window instead",
            play(|place, allocation| {
                let rate = allocation.rate.bits_per_s() / 8;
                ranpace_proxy_options::set_max_pacing_rate(&sockets[place], Some(rate)).unwrap();
            }),
        ),
    ];
    let rows = rows.into_iter().map(|(what, (part, changes))| {
        println!("  {what:<50} {part:>7.3}   ({changes:.0} changes a ms)");
        json!({"what": what, "core": part, "changes_per_ms": changes})
    });
    rows.collect()
}

/// The time of this thread on a processor, over the time that is played; and how many allocations change in each millisecond.
fn play(mut apply: impl FnMut(usize, Allocation)) -> (f64, f64) {
    let mut rapid = Rapid::new(Settings::FIELD.ticking(Span::from_millis(1)));
    let hint = |now: Time| {
        let hint = RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz20), now);
        let granted = 20.0 + (now.as_millis() % 7) as f64;
        RadioHint { granted, unused: 5.0, mcs: 28, active_users: 10, ..hint }
    };
    let begin = Time::from_millis(1);
    let flows: Vec<FlowId> = (0..FLOWS)
        .map(|flow| {
            rapid.open(
                begin,
                flow as u32 % USERS,
                Span::from_millis(10 + flow as u64 % 40),
                Bytes::new(1_448),
            )
        })
        .collect();
    let (mut changes, mut used) = (0_u64, Duration::ZERO);
    let begun = Instant::now();
    for ms in 0..REPORTS {
        let now = begin + Span::from_millis(1 + ms);
        // Data keeps them active; in this benchmark a tenth of them has a segment in each millisecond, 115 Mbit/s.
        let on_processor = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        for flow in flows.iter().skip(ms as usize % 10).step_by(10) {
            rapid.on_wan_data(now, *flow, Bytes::new(1_448));
        }
        for user in 0..USERS {
            rapid.on_radio(now, user, &hint(now));
        }
        rapid.on_deadline(now);
        while let Some(flow) = rapid.next_change() {
            if let Some((rate, window)) = rapid.allocation(flow).zip(rapid.ran_window(flow)) {
                changes += 1;
                apply(flow.index(), Allocation { rate, window });
            }
        }
        let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        used += Duration::from(now) - Duration::from(on_processor);
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
    (used.as_secs_f64() * 1e3 / REPORTS as f64, changes as f64 / REPORTS as f64)
}
