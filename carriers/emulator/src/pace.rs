//! The loop by the real clock: one thread that moves packets between devices and the network when they are due.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use ranpace_sim::{Cargo, Network, RunResult};
use ranpace_units::{Span, Time};

use crate::addresses::host_of;
use crate::devices::{Buffers, Device, OFFSET};
use crate::headers::{Headers, mark_ce};
use crate::honesty::{Honesty, Watch};
use crate::ways::Ways;

/// Longest sleep: how soon it is seen that the loop is to end.
const NAP: Span = Span::from_millis(20);
/// Readings of a device between two looks at what is due.
const READINGS: usize = 16;
/// Waiting for an instant this far away or farther, it sleeps until [`WAKEFUL`] before it, and then stays awake, so that it is
/// in time: sleeping alone, it wakes 20 to 70 us late. A loop with something to do more often sleeps and is late so far,
/// because it would stay awake all the time. Ours: less than a fifth of a core, a fourteenth at a TTI of 1 ms.
const DOZE_FROM: Span = Span::from_micros(350);
/// See [`DOZE_FROM`].
const WAKEFUL: Span = Span::from_micros(70);
/// Priority of the loop among real-time threads, 1 to 99: above what ordinary programs have, below the kernel's own watchdogs
/// and interrupt threads (50). Ours.
const PRIORITY: u8 = 40;

/// Plays a network until `stop` is set; the device at a place is that of the host there.
pub fn run(ways: &Ways, devices: &[Device], stop: &AtomicBool) -> io::Result<(RunResult, Honesty)> {
    let real_time = hurry();
    let mut network = Network::new(&ways.scenario);
    let ends = ways.ends();
    let (mut buffers, mut watch) = (Buffers::new(), Watch::default());
    let mut packet = Vec::new();
    let mut fds: Vec<PollFd<'_>> =
        devices.iter().map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN)).collect();
    let began = Instant::now();
    let clock = || Time::ZERO + span(began);
    while !stop.load(Ordering::Relaxed) {
        network.advance(clock());
        deliver(&mut network, devices, &ends, &mut packet, &mut watch, &clock);
        let next = network.next_event();
        let before = clock();
        let wait = next - before;
        let doze = if wait >= DOZE_FROM { wait - WAKEFUL } else { wait };
        let mut woken = wait_for(&mut fds, doze.min(NAP))?;
        let mut now = clock();
        while !woken && now < next && next - now <= WAKEFUL {
            woken = wait_for(&mut fds, Span::ZERO)?;
            now = clock();
        }
        if !woken && next > before && next <= now {
            watch.on_timer(now - next);
        }
        if !woken {
            continue;
        }
        for (from, (device, fd)) in devices.iter().zip(&fds).enumerate() {
            if !fd.any().unwrap_or(false) {
                continue;
            }
            for _ in 0..READINGS {
                let now = clock();
                let read = buffers.read(device, |buffer| {
                    let Some(cargo) = cargo_of(ways, from, &buffer[OFFSET..]) else {
                        watch.strays += 1;
                        return;
                    };
                    network.inject(now, cargo, buffer);
                });
                if !read? {
                    break;
                }
            }
        }
    }
    let slots = network.slots();
    Ok((network.finish(clock()), watch.finish(slots, real_time)))
}

/// What the network is told of a packet; `None` if it goes nowhere.
#[inline]
fn cargo_of(ways: &Ways, from: usize, packet: &[u8]) -> Option<Cargo> {
    let headers = Headers::read(packet)?;
    let flow = ways.between(from, host_of(headers.destination)?)?;
    let wire = packet.len() as u32;
    Some(Cargo { flow, stream: headers.stream, wire, payload: headers.payload, ect: headers.ect })
}

/// Hands over what has arrived.
#[inline]
fn deliver(
    network: &mut Network<'_>,
    devices: &[Device],
    ends: &[usize],
    packet: &mut Vec<u8>,
    watch: &mut Watch,
    clock: &impl Fn() -> Time,
) {
    while let Some(arrived) = network.take(packet) {
        let Some(device) = ends.get(arrived.flow as usize).and_then(|end| devices.get(*end)) else {
            continue;
        };
        if arrived.marked {
            mark_ce(&mut packet[OFFSET..]);
        }
        watch.on_packet(clock() - arrived.due);
        if device.send(packet).is_err() {
            watch.refused += 1;
        }
    }
}

/// Waits until a device has something, which is noted in `fds`; `false` if none had anything.
fn wait_for(fds: &mut [PollFd<'_>], wait: Span) -> io::Result<bool> {
    let nanos = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
    let timeout = TimeSpec::new(nanos / 1_000_000_000, nanos % 1_000_000_000);
    match ppoll(fds, Some(timeout), None) {
        Ok(count) => Ok(count > 0),
        Err(nix::errno::Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Asks for what keeps this thread in time: real-time priority, timers to the nanosecond, memory that is there. Returns whether
/// it got the first; without it, the loop runs like any other program.
fn hurry() -> bool {
    use thread_priority::unix::{RealtimeThreadSchedulePolicy, ThreadSchedulePolicy};
    // Threads without real-time priority are woken up to 50 us late otherwise.
    let _ = nix::sys::prctl::set_timerslack(1);
    let _ = nix::sys::mman::mlockall(nix::sys::mman::MlockAllFlags::MCL_CURRENT);
    let Ok(priority) = PRIORITY.try_into() else { return false };
    thread_priority::unix::set_thread_priority_and_policy(
        thread_priority::unix::thread_native_id(),
        thread_priority::ThreadPriority::Crossplatform(priority),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .is_ok()
}

fn span(began: Instant) -> Span {
    Span::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
