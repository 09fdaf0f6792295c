//! The real-time loop. One thread moves packets between devices and the network when they are due.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ranpace_network::{PacketInfo, RunResult, SplitResult, Transit};
use ranpace_units::{Ecn, Span, Time};

use crate::addresses::host_of;
use crate::awake::Awake;
use crate::budget::Budget;
use crate::delivery::Delivery;
use crate::devices::Device;
use crate::gro::{Coalescer, PacketBatch};
use crate::gso::OFFSET;
use crate::headers::{Headers, Transport};
use crate::hints::HintLines;
use crate::live::Live;
use crate::merge::add_parts;
use crate::packet_buffer::{PacketBuffer, Part};
use crate::participant::Verdict;
use crate::participants::Participants;
use crate::pcap::Tap;
use crate::poller::Poller;
use crate::processor::Processor;
use crate::rnis::{self, RadioPublisher};
use crate::segmentation;
use crate::slack::{Slack, Wakeup};
use crate::status::Gatherer;
use crate::timeliness::{Machine, Timeliness, Watch};
use crate::topology::Topology;

/// Longest sleep, which bounds the reaction to a stop.
const NAP: Span = Span::from_millis(20);
/// Reads of a device between two checks for due events.
const READINGS: usize = 16;
/// If the next instant is at least this far away, the loop (delivering packet by packet) sleeps until shortly before it
/// ([`WakeupLead`]) and then stays awake, so that it is on time. A loop with more frequent events sleeps and is late, because it
/// would otherwise stay awake all the time. Ours.
const DOZE_FROM: Span = Span::from_micros(350);
/// An instant closer than this is awaited without sleeping, because going to sleep and waking takes as long. GSO packets on links
/// do not wait for it at all; slots of cells are never played early. Ours; see docs/performance.md.
const NEAR: Span = Span::from_micros(15);
/// What a host sends within this time after a delivery counts from the delivery. Ours: half of the accuracy required of the base
/// RTT.
const ANSWER: Span = Span::from_micros(100);
/// Shortest interval between calls of participants: a deadline that does not advance cannot stop the loop, and packets for them are
/// late by at most this. Ours.
const TURN: Span = Span::from_micros(1);
/// Priority of the loop among real-time threads, 1 to 99: above ordinary programs, below the kernel's watchdogs and interrupt
/// threads (50). Ours.
const PRIORITY: u8 = 40;

/// Options of the loop.
#[derive(Default)]
pub struct SideTasks<'a> {
    /// How packets are delivered.
    pub delivery: Delivery,
    /// Whether the hosts' kernels segment GSO packets before they receive them ([`segmentation`]); `None` if not requested.
    pub cuts: Option<bool>,
    /// Lets processors sleep between packets.
    pub saves_power: bool,
    /// The processor to which it is pinned.
    pub processor: Option<Processor>,
    /// Captures all packets.
    pub tap: Option<Tap>,
    /// Shows its status.
    pub live: Option<Live>,
    /// Gathers what others are told.
    pub status: Option<Gatherer<'a>>,
    /// Records radio information.
    pub hints: Option<HintLines>,
    /// Publishes what cells say.
    pub rnis: Option<RadioPublisher>,
}

/// Runs a network until `stop` is set; the device at a place is that of its host. `say` receives the start time.
pub fn run(
    topology: &Topology,
    devices: &[Device],
    beside: SideTasks<'_>,
    stop: &AtomicBool,
    say: impl FnOnce(Instant),
) -> io::Result<Played> {
    let SideTasks { delivery, cuts, saves_power, processor, mut tap, mut live, mut status, hints, mut rnis } =
        beside;
    let awake = if saves_power { None } else { Awake::ask().ok() };
    let machine = Machine { real_time: hurry(), awake: awake.is_some(), cuts };
    // If pinning is forbidden, the scheduler chooses the processor.
    let _ = processor.as_ref().map(Processor::keep);
    let mut reader = None;
    let mut network = Transit::new(&topology.scenario);
    if let Some(status) = &status {
        status.describe(&topology.scenario, &network);
    }
    if let Some(hints) = &hints {
        hints.subscribe(&topology.scenario, &mut network);
    }
    let origin = rnis.as_mut().map(|publisher| {
        publisher.describe(topology, &network);
        publisher.origin()
    });
    if let Some(publisher) = &mut rnis {
        network.subscribe_reports(reader.insert(rnis::reader(publisher)));
    }
    let coalescer = match delivery {
        Delivery::Gro => Some(Coalescer::default()),
        _ if cuts == Some(true) => Some(Coalescer::from_length(segmentation::FROM)),
        _ => None,
    };
    let mut gateway = Gateway {
        devices,
        ends: topology.ends(),
        packet_buffer: PacketBuffer::default(),
        coalescer,
        watch: Watch::default(),
        handed: vec![Time::ZERO; devices.len()],
        latest: Time::ZERO,
        participants: Participants::new(topology, &mut network),
        hints,
        passing: Vec::new(),
    };
    let mut lead = WakeupLead::default();
    let (mut asleep_for, mut asleep_until, mut dozes) = (Time::ZERO, Time::ZERO, false);
    let (began, cpu) = (Instant::now(), cpu_time());
    if let Some(origin) = &origin {
        origin.begin();
    }
    if let Some(tap) = &mut tap {
        tap.begin();
    }
    let mut poller = Poller::new(devices.iter().map(Device::as_fd), network.slot(), began)?;
    say(began);
    let clock = || Time::ZERO + span(began);
    let is_early = delivery == Delivery::Gro && topology.scenario.cells.is_empty();
    let early = if is_early { NEAR } else { Span::ZERO };
    // A cell's slots keep their instants, and most packets come out at these.
    let has_cells = !topology.scenario.cells.is_empty();
    // Participants, and what runs on routers, act at their own instants too.
    let mut slack = if has_cells || topology.cuts().next().is_some() {
        Slack::none()
    } else {
        Slack::for_rtt(topology.base_rtt(), delivery)
    };
    gateway.watch.slack = slack.span();
    let mut budget = Budget::new(clock());
    // When the loop has to continue at the latest; whether it polls; whether devices have unread packets.
    let (mut expected, mut polls, mut has_more) = (clock(), false, false);
    while !stop.load(Ordering::Relaxed) {
        let mut now = clock();
        gateway.watch.on_gap(now - expected);
        if machine.real_time && budget.is_used(now) {
            thread::sleep(Duration::from_nanos(Budget::PAUSE.as_nanos()));
            let woken = clock();
            budget.on_sleep(now, woken);
            gateway.watch.on_gap(woken - now - Budget::PAUSE);
            gateway.watch.pauses += 1;
            now = woken;
        }
        expected = now;
        // The instant up to which to play, from which packets of hosts count until the next poll.
        let instant = if polls { slack.last_poll(now) } else { now + early };
        let is_due = gateway.next_event(&network) <= instant;
        gateway.advance(&mut network, topology, instant);
        let instants = gateway.deliver(&mut network, tap.as_mut(), polls.then_some(instant), &clock);
        let handed_over = instants > 0;
        slack.book(now, instants.max(is_due.into()));
        if let Some(tap) = &mut tap {
            tap.look(clock());
        }
        if let Some(live) = &mut live {
            live.look(clock(), &network, &gateway.watch, || cpu_time() - cpu);
        }
        if let Some(status) = &mut status {
            status.look(clock(), &network, &gateway.watch, || cpu_time() - cpu);
        }
        let wakeup = slack.wakeup(gateway.next_event(&network));
        let before = clock();
        polls = matches!(wakeup, Wakeup::Poll(_));
        match wakeup {
            Wakeup::Poll(at) => {
                if !has_more && at > before {
                    gateway.watch.on_gap(before - expected);
                    let mut now = before;
                    while at - now >= NEAR {
                        poller.sleep(at, slack.span())?;
                        let woken = clock();
                        budget.on_sleep(now, woken);
                        gateway.watch.wakeups += 1;
                        now = woken;
                    }
                    gateway.watch.polls += u64::from(now > before);
                    while now < at {
                        std::hint::spin_loop();
                        now = clock();
                    }
                    gateway.watch.on_timer(now - at);
                    expected = at;
                }
                poller.look()?;
            }
            Wakeup::At(next) => {
                let sleeps = next > before + early;
                // If nothing was delivered there are no answers, and anything else ends the sleep at once.
                if handed_over || !sleeps {
                    poller.look()?;
                } else {
                    poller.forget();
                }
                if poller.ready().is_empty() && sleeps {
                    let wait = next - before;
                    // The decision for an instant stands even if packets end the sleep, so that the poller need not be set again.
                    if asleep_for != next || asleep_until <= before {
                        dozes = delivery != Delivery::Gro && wait >= DOZE_FROM;
                        let doze = (if dozes { wait - lead.get() } else { wait }).min(NAP);
                        (asleep_for, asleep_until) = (next, poller.close_to(before + doze));
                    }
                    let mut now = before;
                    if wait >= NEAR {
                        gateway.watch.on_gap(before - expected);
                        poller.wait(before, asleep_until)?;
                        now = clock();
                        budget.on_sleep(before, now);
                        gateway.watch.wakeups += 1;
                        gateway.watch.on_gap(now - asleep_until);
                        expected = now;
                    }
                    if poller.ready().is_empty() && dozes && asleep_until <= now {
                        lead.learn(now - asleep_until);
                    }
                    // Without a doze, events are frequent: sleep once more unless the instant is near.
                    let awake_for = if dozes { WakeupLead::MOST } else { NEAR };
                    while poller.ready().is_empty() && now < next && next - now <= awake_for {
                        poller.look()?;
                        now = clock();
                    }
                    if poller.ready().is_empty() && next <= now {
                        gateway.watch.on_timer(now - next);
                    }
                }
            }
        }
        has_more = poller.is_full();
        for &from in poller.ready() {
            let Some(device) = devices.get(from) else { continue };
            let mut readings = 0;
            while readings < READINGS
                && let Some(length) = device.receive(gateway.packet_buffer.buffer())?
            {
                let now = clock();
                // At most a slack too early, also if the poll is late.
                let since = if polls { instant.max(slack.last_poll(now) - slack.span()) } else { now };
                gateway.admit(&mut network, topology, (from, length), tap.as_mut(), since);
                readings += 1;
            }
            has_more |= readings == READINGS;
        }
    }
    gateway.watch.on_gap(clock() - expected);
    let left_out = tap.map_or(0, Tap::finish);
    gateway.watch.busy = cpu_time() - cpu;
    gateway.watch.elapsed = span(began);
    let slots = network.slots();
    let timeliness = gateway.watch.finish(slots, machine);
    let end = clock();
    gateway.advance(&mut network, topology, end);
    let mut result = network.finish(end);
    if let Some(participants) = gateway.participants {
        result.peps = participants.peps();
        add_parts(topology, &mut result, |route| participants.split(route));
    } else if topology.cuts().next().is_some() {
        // What a proxy did there, its sockets tell.
        let is_own = |route: u32| (route as usize) < topology.own().len();
        add_parts(topology, &mut result, |route| is_own(route).then(SplitResult::default));
    }
    let hints_left_out = gateway.hints.map_or(0, |hints| hints.left_out());
    drop(reader);
    let rnis_left_out = rnis.map_or(0, |publisher| publisher.left_out());
    Ok(Played { result, timeliness, left_out, hints_left_out, rnis_left_out })
}

/// The loop's results.
pub struct Played {
    /// Results of links, cells and routes.
    pub result: RunResult,
    /// Whether the machine kept up.
    pub timeliness: Timeliness,
    /// Packets omitted by the tap.
    pub left_out: u64,
    /// Hints not recorded because the queue was full.
    pub hints_left_out: u64,
    /// Updates of cells that were not published because the queue was full.
    pub rnis_left_out: u64,
}

/// How long before an instant a sleep should end. A sleep ends late by the time that the machine takes to wake a thread (20 to 70
/// us were observed). The lead is learned as the third quartile of recent lateness: at three of four instants the loop is awake,
/// and it was not awake for long. It moves in steps, as in Robbins and Monro's approximation of a quantile (1951).
#[derive(Debug)]
struct WakeupLead(Span);

impl WakeupLead {
    /// Longest lead. Ours: a machine that is later than this has other work, and staying awake gains nothing.
    const MOST: Span = Span::from_micros(70);
    /// Steps up and down, three quarters and one quarter of 2 us: a hundred sleeps move it across the whole range. Ours.
    const UP: Span = Span::from_nanos(1_500);
    /// See [`Self::UP`].
    const DOWN: Span = Span::from_nanos(500);

    fn get(&self) -> Span {
        self.0
    }

    /// A sleep ended this much later than requested.
    fn learn(&mut self, late: Span) {
        self.0 = if late > self.0 { (self.0 + Self::UP).min(Self::MOST) } else { self.0 - Self::DOWN };
    }
}

impl Default for WakeupLead {
    fn default() -> Self {
        Self(Self::MOST)
    }
}

/// The network's description of a packet, or of a GSO packet before segmentation; `None` if it has no route.
#[inline]
fn info_of(topology: &Topology, from: usize, packet: &[u8]) -> Option<PacketInfo> {
    let headers = Headers::read(packet)?;
    let source = || Transport::read(packet).and_then(|(source, ..)| host_of(source));
    let flow = topology.route_from(from, source, host_of(headers.destination)?, packet)?;
    let wire = packet.len() as u32;
    Some(PacketInfo { flow, stream: headers.stream, wire, payload: headers.payload, ecn: headers.ecn })
}

/// The network's description of a packet that continues, or begins, at participants.
fn info_on(flow: u32, packet: &[u8]) -> Option<PacketInfo> {
    let headers = Headers::read(packet)?;
    let (wire, payload) = (packet.len() as u32, headers.payload);
    Some(PacketInfo { flow, stream: headers.stream, wire, payload, ecn: headers.ecn })
}

/// Sends a packet on a route, a virtio header first.
fn inject_bytes(
    packet_buffer: &mut PacketBuffer,
    network: &mut Transit<'_, Part>,
    now: Time,
    route: u32,
    packet: &[u8],
) {
    let Some(into) = packet_buffer.buffer().get_mut(..packet.len()) else { return };
    into.copy_from_slice(packet);
    let info = info_on(route, packet.get(OFFSET..).unwrap_or_default());
    for part in packet_buffer.take_in(packet.len()) {
        let lost = info.map_or(part, |info| network.inject(now, info, part));
        packet_buffer.release(lost.gso_packet(), 1);
    }
}

/// The devices at which packets enter and leave.
struct Gateway<'a> {
    devices: &'a [Device],
    /// The host at the end of each flow, by place.
    ends: Vec<usize>,
    packet_buffer: PacketBuffer,
    coalescer: Option<Coalescer>,
    watch: Watch,
    /// When each host last received a packet.
    handed: Vec<Time>,
    /// When a packet last entered or left the network.
    latest: Time,
    /// The participants on the paths, if any, and the bytes of the passing packet.
    participants: Option<Participants<'a>>,
    /// The writer of radio information.
    hints: Option<HintLines>,
    passing: Vec<u8>,
}

impl Gateway<'_> {
    /// Injects the packets of a GSO packet read from a host, which sent it at `now` or later.
    #[inline]
    fn admit(
        &mut self,
        network: &mut Transit<'_, Part>,
        topology: &Topology,
        (from, length): (usize, usize),
        tap: Option<&mut Tap>,
        now: Time,
    ) {
        let sent = self.sent_at(from, now).max(network.now());
        let Self { packet_buffer, watch, latest, .. } = self;
        let parts = packet_buffer.take_in(length);
        let Some(first) = parts.clone().next() else { return };
        let whole = packet_buffer.whole(first);
        let Some(info) = info_of(topology, from, whole) else {
            let count = parts.count() as u32;
            watch.strays += u64::from(count);
            packet_buffer.release(first.gso_packet(), count);
            return;
        };
        // All packets have the same headers.
        let headers = (whole.len() as u32).saturating_sub(info.payload);
        *latest = sent;
        if let Some(tap) = tap {
            parts.clone().for_each(|part| {
                packet_buffer.show(part, info.ecn, |bytes| tap.note(sent, from, false, bytes))
            });
        }
        for part in parts {
            let wire = packet_buffer.length(part) as u32;
            let info = PacketInfo { wire, payload: wire.saturating_sub(headers), ..info };
            let lost = network.inject(sent, info, part);
            packet_buffer.release(lost.gso_packet(), 1);
        }
    }

    /// The effective sending time of what a host sent at `now` or later. An answer counts from the delivery that it answers, or
    /// from what was moved since: the loop's reading delay is not part of the network, and what is answered together travels
    /// together.
    #[inline]
    fn sent_at(&self, host: usize, now: Time) -> Time {
        let answers = self.handed.get(host).is_some_and(|handed| now - *handed <= ANSWER);
        if answers { self.latest } else { now.max(self.latest) }
    }

    /// When something is due in the network or at participants.
    #[inline]
    fn next_event(&self, network: &Transit<'_, Part>) -> Time {
        let participants = self.participants.as_ref().map_or(Time::MAX, Participants::next_deadline);
        network.next_event().min(participants)
    }

    /// Plays the network up to `instant`, and the participants at their own instants until then.
    #[inline]
    fn advance(&mut self, network: &mut Transit<'_, Part>, topology: &Topology, instant: Time) {
        if self.participants.is_none() {
            network.advance(instant);
            while let Some((at, told)) = network.take_hint() {
                self.hints.iter_mut().for_each(|hints| hints.take(at, &told));
            }
            self.take_grants(network);
            return;
        }
        let mut from = network.now();
        loop {
            let at = self.next_event(network).max(from).min(instant);
            network.advance(at);
            self.play_participants(network, topology, at);
            self.take_grants(network);
            if at >= instant {
                return;
            }
            // What participants do at an instant is played slightly later, so that each gets one turn.
            from = at + TURN;
        }
    }

    /// Writes down what modems have decoded.
    fn take_grants(&mut self, network: &mut Transit<'_, Part>) {
        if let Some(hints) = &mut self.hints {
            while let Some((at, user, grant)) = network.take_grant() {
                hints.take_grant(at, user, grant);
            }
        }
    }

    /// Shows participants the packets that have reached them by `now`, and sends their packets.
    fn play_participants(&mut self, network: &mut Transit<'_, Part>, topology: &Topology, now: Time) {
        let Self { packet_buffer, participants: Some(participants), passing, hints, .. } = self else {
            return;
        };
        while let Some((at, told)) = network.take_hint() {
            hints.iter_mut().for_each(|hints| hints.take(at, &told));
            participants.on_hint(at, &told);
        }
        while let Some((arrived, part)) = network.take_stopped() {
            let Some(cut) = topology.cut_of(arrived.flow) else { continue };
            passing.clear();
            packet_buffer.show(part, arrived.ecn, |bytes| {
                bytes.iter().for_each(|bytes| passing.extend_from_slice(bytes));
            });
            let verdict = participants.on_packet(now, cut, passing, arrived.ecn == Ecn::Ce);
            let onward = info_on(cut.onward, passing.get(OFFSET..).unwrap_or_default());
            let lost = match onward.filter(|_| verdict == Verdict::Pass) {
                Some(info) => network.inject(now, info, part),
                None => part,
            };
            packet_buffer.release(lost.gso_packet(), 1);
            if verdict == Verdict::Rewritten {
                inject_bytes(packet_buffer, network, now, cut.onward, passing);
            }
        }
        participants.on_deadline(now);
        while let Some(report) = participants.take_report() {
            hints.iter_mut().for_each(|hints| hints.take_report(now, &report));
        }
        while let Some((route, packet)) = participants.take() {
            inject_bytes(packet_buffer, network, now, route, &packet);
            participants.give_back(packet);
        }
    }

    /// Delivers what has arrived; returns the number of distinct instants. Answers count from now, or from that poll.
    #[inline]
    fn deliver(
        &mut self,
        network: &mut Transit<'_, Part>,
        mut tap: Option<&mut Tap>,
        poll: Option<Time>,
        clock: &impl Fn() -> Time,
    ) -> u64 {
        let Self { devices, ends, packet_buffer, coalescer, watch, handed, latest, .. } = self;
        // The network, and a recent send, may be slightly ahead.
        let now = Cell::new(clock().max(network.now()).max(*latest));
        let (mut instants, mut last) = (0, Time::MAX);
        let mut write = |batch: PacketBatch, bytes: &[IoSlice<'_>]| {
            watch.on_packets(now.get() - batch.due, batch.packets as u32);
            let failed = devices.get(batch.device).is_none_or(|device| device.send(bytes).is_err());
            watch.refused += u64::from(failed);
            now.set(now.get().max(clock()));
            // The host was busy until here, because it receives during the write.
            if let Some(handed) = handed.get_mut(batch.device) {
                *handed = now.get();
            }
        };
        while let Some((arrived, part)) = network.take() {
            let Some(&device) = ends.get(arrived.flow as usize) else {
                packet_buffer.release(part.gso_packet(), 1);
                continue;
            };
            *latest = poll.map_or(now.get(), |poll| poll.max(*latest));
            if let Some(tap) = &mut tap {
                packet_buffer.show(part, arrived.ecn, |bytes| tap.note(*latest, device, true, bytes));
            }
            let due = arrived.due;
            instants += u64::from(due != last);
            last = due;
            match coalescer {
                Some(coalescer) => coalescer.add((device, due), part, arrived.ecn, packet_buffer, &mut write),
                None => {
                    let batch = PacketBatch { device, due, packets: 1 };
                    packet_buffer.show(part, arrived.ecn, |bytes| write(batch, bytes));
                    packet_buffer.release(part.gso_packet(), 1);
                }
            }
        }
        if let Some(coalescer) = coalescer {
            coalescer.flush(packet_buffer, &mut write);
        }
        instants
    }
}

/// Requests what keeps this thread on time: real-time priority, timers of nanosecond resolution, locked memory. Returns whether it
/// got the first; without it, the loop runs like any other program.
fn hurry() -> bool {
    use thread_priority::unix::{RealtimeThreadSchedulePolicy, ThreadSchedulePolicy};
    // Otherwise threads without real-time priority are woken up to 50 us late.
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

/// CPU time of this thread, including the kernel's work for it.
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
        let mut lead = WakeupLead::default();
        // 20 to 59 us late, equally often, without a lasting pattern.
        let late = |step: u64| Span::from_micros(20 + step * 27 % 40);
        (0..1_000).for_each(|step| lead.learn(late(step)));
        let mean = (1_000..1_400).map(|step| {
            lead.learn(late(step));
            lead.get().as_nanos() as f64 / 400e3
        });
        let mean: f64 = mean.sum();
        assert!((47.0..53.0).contains(&mean), "{mean} us");
        // A machine that is always late does not push it beyond its maximum; one that is on time brings it to zero.
        (0..1_000).for_each(|_| lead.learn(Span::from_millis(3)));
        assert_eq!(lead.get(), WakeupLead::MOST);
        (0..1_000).for_each(|_| lead.learn(Span::ZERO));
        assert_eq!(lead.get(), Span::ZERO);
    }
}
