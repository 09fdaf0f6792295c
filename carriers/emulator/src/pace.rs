//! The loop by the real clock: one thread that moves packets between devices and the network when they are due.

use std::hint::black_box;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ranpace_sim::{Arrived, Cargo, Network, RunResult};
use ranpace_units::{Span, Time};

use crate::addresses::host_of;
use crate::alarm::Alarm;
use crate::awake::Awake;
use crate::devices::{Buffers, Device};
use crate::headers::{Headers, mark_ce};
use crate::honesty::{Honesty, Machine, Watch};
use crate::joined::Joiner;
use crate::live::Live;
use crate::pcap::Tap;
use crate::pieces::OFFSET;
use crate::processors::Processors;
use crate::ways::Ways;

/// Longest sleep: how soon it is seen that the loop is to end.
const NAP: Span = Span::from_millis(20);
/// Readings of a device between two looks at what is due.
const READINGS: usize = 16;
/// Waiting for an instant this far away or farther, it sleeps until a little before it ([`Lead`]) and then stays awake, so that
/// it is in time. A loop with something to do more often sleeps and is late, because it would stay awake all the time. Ours.
const DOZE_FROM: Span = Span::from_micros(350);
/// Packets that are handed over before it is looked for more. Ours: what a trace of 500 Mbit/s delivers in a millisecond.
const LOT: usize = 48;
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

/// What the loop does beside moving packets.
#[derive(Debug, Default)]
pub struct Beside {
    /// How packets are handed over.
    pub delivery: Delivery,
    /// Lets processors sleep.
    pub saves_power: bool,
    /// Which processor it keeps to.
    pub processors: Option<Processors>,
    /// Takes all packets.
    pub tap: Option<Tap>,
    /// Shows how it is.
    pub live: Option<Live>,
}

/// Plays a network until `stop` is set; the device at a place is that of the host there. `say` is told its beginning.
pub fn run(
    ways: &Ways,
    devices: &[Device],
    beside: Beside,
    stop: &AtomicBool,
    say: impl FnOnce(Instant),
) -> io::Result<Played> {
    let Beside { delivery, saves_power, processors, mut tap, mut live } = beside;
    let awake = if saves_power { None } else { Awake::ask().ok() };
    let machine = Machine { real_time: hurry(), awake: awake.is_some() };
    // Where that is forbidden it goes where there is room.
    let _ = processors.map(|processors| processors.keep());
    let mut network = Network::new(&ways.scenario);
    let mut buffers = Buffers::new();
    let mut exits = Exits {
        devices,
        ends: ways.ends(),
        lot: vec![Vec::new(); LOT],
        arrived: Vec::with_capacity(LOT),
        joiner: (delivery == Delivery::Joined).then(Joiner::default),
        watch: Watch::default(),
    };
    let mut alarm = Alarm::new(devices.iter().map(Device::as_fd))?;
    let mut lead = Lead::default();
    let (mut asleep_for, mut asleep_until, mut dozes) = (Time::ZERO, Time::ZERO, false);
    let (began, cpu) = (Instant::now(), cpu_time());
    if let Some(tap) = &mut tap {
        tap.begin();
    }
    say(began);
    let clock = || Time::ZERO + span(began);
    while !stop.load(Ordering::Relaxed) {
        network.advance(clock());
        exits.deliver(&mut network, tap.as_mut(), &clock);
        if let Some(tap) = &mut tap {
            tap.look(clock());
        }
        if let Some(live) = &mut live {
            live.look(clock(), &network, &exits.watch, || cpu_time() - cpu);
        }
        let next = network.next_event();
        let before = clock();
        let wait = next - before;
        // What was decided for an instant stays, also when packets end the sleep: the alarm need not be set again.
        if asleep_for != next || asleep_until <= before {
            dozes = wait >= DOZE_FROM;
            let doze = (if dozes { wait - lead.get() } else { wait }).min(NAP);
            (asleep_for, asleep_until) = (next, before + doze);
        }
        alarm.wait(before, asleep_until)?;
        let mut now = clock();
        if alarm.ready().is_empty() && dozes && asleep_until <= now {
            lead.learn(now - asleep_until);
        }
        while alarm.ready().is_empty() && now < next && next - now <= Lead::MOST {
            alarm.look()?;
            now = clock();
        }
        if alarm.ready().is_empty() && next > before && next <= now {
            exits.watch.on_timer(now - next);
        }
        for &from in alarm.ready() {
            let Some(device) = devices.get(from) else { continue };
            for _ in 0..READINGS {
                let now = clock();
                let watch = &mut exits.watch;
                let read = buffers.read(device, |buffer| {
                    let Some(cargo) = cargo_of(ways, from, &buffer[OFFSET..]) else {
                        watch.strays += 1;
                        return;
                    };
                    if let Some(tap) = &mut tap {
                        tap.note(now, from, false, buffer);
                    }
                    network.inject(now, cargo, buffer);
                });
                if !read? {
                    break;
                }
            }
        }
    }
    let left_out = tap.map_or(0, Tap::finish);
    exits.watch.busy = cpu_time() - cpu;
    exits.watch.elapsed = span(began);
    let slots = network.slots();
    let honesty = exits.watch.finish(slots, machine);
    Ok(Played { result: network.finish(clock()), honesty, left_out })
}

/// What the loop leaves.
pub struct Played {
    /// What links, cells and ways carried.
    pub result: RunResult,
    /// Whether the machine kept up.
    pub honesty: Honesty,
    /// Packets that the tap left out.
    pub left_out: u64,
}

/// How long before an instant a sleep is to end. A sleep ends late, by what the machine takes to wake a thread (20 to 70 us were
/// seen). That is learned: the third quartile of what was seen lately, so that of four instants three find the loop awake, and it
/// was not awake for long. By steps, as in Robbins and Monro's approximation of a quantile (1951).
#[derive(Debug)]
struct Lead(Span);

impl Lead {
    /// Longest. Ours: a machine that is later than this has other work, and nothing is won by staying awake.
    const MOST: Span = Span::from_micros(70);
    /// Three quarters and one quarter of 2 us: what is seen in a hundred sleeps moves it from one end to the other. Ours.
    const UP: Span = Span::from_nanos(1_500);
    /// See [`Self::UP`].
    const DOWN: Span = Span::from_nanos(500);

    fn get(&self) -> Span {
        self.0
    }

    /// A sleep ended so long after it was to end.
    fn learn(&mut self, late: Span) {
        self.0 = if late > self.0 { (self.0 + Self::UP).min(Self::MOST) } else { self.0 - Self::DOWN };
    }
}

impl Default for Lead {
    fn default() -> Self {
        Self(Self::MOST)
    }
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
    /// Buffers of the packets in `arrived`.
    lot: Vec<Vec<u8>>,
    arrived: Vec<Arrived>,
    joiner: Option<Joiner>,
    watch: Watch,
}

impl Exits<'_> {
    /// Hands over what has arrived.
    #[inline]
    fn deliver(&mut self, network: &mut Network<'_>, mut tap: Option<&mut Tap>, clock: &impl Fn() -> Time) {
        let Self { devices, ends, lot, arrived, joiner, watch } = self;
        let mut refused = 0;
        let mut write = |device: usize, buffer: &[u8]| {
            refused += u64::from(devices.get(device).is_none_or(|device| device.send(buffer).is_err()));
        };
        loop {
            arrived.clear();
            arrived.extend(lot.iter_mut().map_while(|buffer| network.take(buffer)));
            if arrived.is_empty() {
                break;
            }
            // Packets have been away for as long as the network takes: their headers are fetched all at a time.
            let warm = lot.iter().take(arrived.len()).map(|buffer| buffer.get(OFFSET).copied().unwrap_or(0));
            black_box(warm.fold(0, |all, first| all ^ first));
            for (arrived, packet) in arrived.iter().zip(lot.iter_mut()) {
                let Some(device) = ends.get(arrived.flow as usize) else { continue };
                if arrived.marked {
                    mark_ce(&mut packet[OFFSET..]);
                }
                let now = clock();
                watch.on_packet(now - arrived.due);
                if let Some(tap) = &mut tap {
                    tap.note(now, *device, true, packet);
                }
                match joiner {
                    Some(joiner) => joiner.add(*device, packet, &mut write),
                    None => write(*device, packet),
                }
            }
        }
        if let Some(joiner) = joiner {
            joiner.flush(&mut write);
        }
        watch.refused += refused;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_settles_where_three_of_four_sleeps_end_before_the_instant() {
        let mut lead = Lead::default();
        // 20 to 59 us late, each as often, in an order without a pattern that lasts.
        let late = |step: u64| Span::from_micros(20 + step * 27 % 40);
        (0..1_000).for_each(|step| lead.learn(late(step)));
        let mean = (1_000..1_400).map(|step| {
            lead.learn(late(step));
            lead.get().as_nanos() as f64 / 400e3
        });
        let mean: f64 = mean.sum();
        assert!((47.0..53.0).contains(&mean), "{mean} us");
        // A machine that is always late does not make it longer than it may be, one that is in time takes it to nothing.
        (0..1_000).for_each(|_| lead.learn(Span::from_millis(3)));
        assert_eq!(lead.get(), Lead::MOST);
        (0..1_000).for_each(|_| lead.learn(Span::ZERO));
        assert_eq!(lead.get(), Span::ZERO);
    }
}
