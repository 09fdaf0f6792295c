//! The loop by the real clock: one thread that moves packets between devices and the network when they are due.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use ranpace_sim::{Cargo, Network, RunResult};
use ranpace_units::{Span, Time};

use crate::addresses::host_of;
use crate::devices::{Buffers, Device};
use crate::headers::{Headers, mark_ce};
use crate::honesty::{Honesty, Watch};
use crate::joined::Joiner;
use crate::pieces::OFFSET;
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

/// How packets are handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// One by one, as they arrive.
    #[default]
    Each,
    /// Packets of one connection that are due at one awakening in one piece ([`Joiner`]).
    Joined,
}

/// Plays a network until `stop` is set; the device at a place is that of the host there. `say` is told its beginning.
pub fn run(
    ways: &Ways,
    devices: &[Device],
    delivery: Delivery,
    stop: &AtomicBool,
    say: impl FnOnce(Instant),
) -> io::Result<(RunResult, Honesty)> {
    let real_time = hurry();
    let mut network = Network::new(&ways.scenario);
    let mut buffers = Buffers::new();
    let mut exits = Exits {
        devices,
        ends: ways.ends(),
        packet: Vec::new(),
        joiner: (delivery == Delivery::Joined).then(Joiner::default),
        watch: Watch::default(),
    };
    let mut fds: Vec<PollFd<'_>> =
        devices.iter().map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN)).collect();
    let (began, cpu) = (Instant::now(), cpu_time());
    say(began);
    let clock = || Time::ZERO + span(began);
    while !stop.load(Ordering::Relaxed) {
        network.advance(clock());
        exits.deliver(&mut network, &clock);
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
            exits.watch.on_timer(now - next);
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
                let watch = &mut exits.watch;
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
    exits.watch.busy = cpu_time() - cpu;
    exits.watch.elapsed = span(began);
    let slots = network.slots();
    Ok((network.finish(clock()), exits.watch.finish(slots, real_time)))
}

/// What the network is told of a packet; `None` if it goes nowhere.
#[inline]
fn cargo_of(ways: &Ways, from: usize, packet: &[u8]) -> Option<Cargo> {
    let headers = Headers::read(packet)?;
    let flow = ways.way_of(from, host_of(headers.destination)?, packet)?;
    let wire = packet.len() as u32;
    Some(Cargo { flow, stream: headers.stream, wire, payload: headers.payload, ect: headers.ect })
}

/// Where packets leave.
struct Exits<'a> {
    devices: &'a [Device],
    /// The place of the host at which each flow ends.
    ends: Vec<usize>,
    packet: Vec<u8>,
    joiner: Option<Joiner>,
    watch: Watch,
}

impl Exits<'_> {
    /// Hands over what has arrived.
    #[inline]
    fn deliver(&mut self, network: &mut Network<'_>, clock: &impl Fn() -> Time) {
        let Self { devices, ends, packet, joiner, watch } = self;
        let mut refused = 0;
        let mut write = |device: usize, buffer: &[u8]| {
            refused += u64::from(devices.get(device).is_none_or(|device| device.send(buffer).is_err()));
        };
        while let Some(arrived) = network.take(packet) {
            let Some(device) = ends.get(arrived.flow as usize) else { continue };
            if arrived.marked {
                mark_ce(&mut packet[OFFSET..]);
            }
            watch.on_packet(clock() - arrived.due);
            match joiner {
                Some(joiner) => joiner.add(*device, packet, &mut write),
                None => write(*device, packet),
            }
        }
        if let Some(joiner) = joiner {
            joiner.flush(&mut write);
        }
        watch.refused += refused;
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

/// What this thread has taken of a processor, the kernel's work for it included.
fn cpu_time() -> Span {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    let time = time.map(Duration::from).unwrap_or_default();
    Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn span(began: Instant) -> Span {
    Span::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
