//! Tests of whole connections over a small model of a path.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_cc::{
    Ack, Algorithm, Congestion, CongestionControl, Context, LossResponse, Pacing, Packet, PacketOutcome,
    Sample, Sent, Signal, State, Window,
};
use ranpace_units::{Bytes, Ecn, Rate, Span, Time};

use crate::{Clock, Config, Opener, Receiver, Sender};

/// The path's treatment of a packet: its extra delay, or `None` if it is lost. The arguments are the time of sending, the
/// packet's number in this direction, and whether it goes forwards.
type Trouble = Box<dyn FnMut(Time, u64, bool) -> Option<Span>>;

/// A path: a rate with a drop-tail queue in the forward direction, and delay in both directions.
struct Path {
    rate: Rate,
    delay: Span,
    trouble: Trouble,
    /// One in this many forward packets is marked; 0 for none.
    mark_every: u64,
    /// Whether code points are erased.
    erases: bool,
}

impl Path {
    fn new(mbit: u64, delay_ms: u64) -> Self {
        Self {
            rate: Rate::from_mbit_per_s(mbit),
            delay: Span::from_millis(delay_ms),
            trouble: Box::new(|_, _, _| Some(Span::ZERO)),
            mark_every: 0,
            erases: false,
        }
    }

    fn with(self, trouble: impl FnMut(Time, u64, bool) -> Option<Span> + 'static) -> Self {
        Self { trouble: Box::new(trouble), ..self }
    }

    fn losing(self, seed: u64, per_mille: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        self.with(move |_, _, _| (random.next_u64() % 1_000 >= per_mille).then_some(Span::ZERO))
    }
}

/// Longest wait in the queue.
const QUEUE: Span = Span::from_millis(100);

/// A datagram in flight.
struct Flying {
    forwards: bool,
    ecn: Ecn,
    content: Vec<u8>,
}

/// Two ends and the path between them.
struct World {
    sender: Sender,
    receiver: Receiver,
    path: Path,
    now: Time,
    wire: BTreeMap<(Time, u64), Flying>,
    count: [u64; 2],
    busy_until: Time,
    /// Every datagram: time, direction, size.
    log: Vec<(Time, bool, usize)>,
}

impl World {
    fn new(config: &Config, control: Box<dyn CongestionControl>, path: Path) -> Self {
        Self::since(Instant::now(), config, control, path)
    }

    fn since(base: Instant, config: &Config, control: Box<dyn CongestionControl>, path: Path) -> Self {
        let clock = Clock::new(base);
        Self {
            sender: Sender::new(config, control, clock, 1),
            receiver: Receiver::new(config, clock, 2).checked(),
            path,
            now: Time::ZERO,
            wire: BTreeMap::new(),
            count: [0; 2],
            busy_until: Time::ZERO,
            log: Vec::new(),
        }
    }

    fn of(algorithm: &str, path: Path) -> Self {
        let algorithm: Algorithm = algorithm.parse().unwrap();
        Self::new(&Config::default(), algorithm.build(1), path)
    }

    fn send(&mut self, forwards: bool, ecn: Ecn, content: Vec<u8>) {
        let count = &mut self.count[usize::from(forwards)];
        *count += 1;
        self.log.push((self.now, forwards, content.len()));
        let number = *count;
        let Some(extra) = (self.path.trouble)(self.now, number, forwards) else { return };
        let mut leaves = self.now;
        if forwards {
            let begins = self.busy_until.max(self.now);
            if begins - self.now > QUEUE {
                return;
            }
            leaves = begins + self.path.rate.time_for(Bytes::new(content.len() as u64 + 28));
            self.busy_until = leaves;
        }
        let marks = self.path.mark_every > 0 && number.is_multiple_of(self.path.mark_every);
        let ecn = match ecn {
            Ecn::NotEct => Ecn::NotEct,
            _ if self.path.erases => Ecn::NotEct,
            _ if marks => Ecn::Ce,
            _ => ecn,
        };
        let order = self.count[0] + self.count[1];
        self.wire.insert((leaves + self.path.delay + extra, order), Flying { forwards, ecn, content });
    }

    fn pump(&mut self) {
        loop {
            let mut out = Vec::new();
            let Some(departure) = self.sender.poll_transmit(self.now, &mut out) else { break };
            self.send(true, departure.ecn, out);
        }
        loop {
            let mut out = Vec::new();
            let Some(ecn) = self.receiver.poll_transmit(self.now, &mut out) else { break };
            self.send(false, ecn, out);
        }
    }

    fn run(&mut self, until: Time, done: impl Fn(&Self) -> bool) {
        if self.log.is_empty() {
            self.sender.open(self.now);
            self.receiver.open(self.now);
        }
        self.pump();
        let mut steps = 0;
        while !done(self) {
            let arrival = self.wire.first_key_value().map_or(Time::MAX, |((at, _), _)| *at);
            let deadline = self.sender.next_deadline().min(self.receiver.next_deadline());
            let next = arrival.min(deadline);
            if next > until {
                self.now = until;
                return;
            }
            steps += 1;
            assert!(steps < 3_000_000, "time does not pass at {}", self.now);
            self.now = next.max(self.now);
            if arrival <= self.now {
                let (_, flying) = self.wire.pop_first().unwrap();
                if flying.forwards {
                    self.receiver.on_datagram(self.now, flying.ecn, &flying.content);
                } else {
                    self.sender.on_datagram(self.now, flying.ecn, &flying.content);
                }
            } else {
                self.sender.on_deadline(self.now);
                self.receiver.on_deadline(self.now);
            }
            self.pump();
        }
    }

    fn run_for(&mut self, span: Span) {
        self.run(self.now + span, |_| false);
    }

    /// Transfers `bytes` and returns when they have arrived.
    fn carry(&mut self, bytes: u64) -> Time {
        self.sender.write(Bytes::new(bytes));
        self.run(Time::from_secs(3_600), |world| world.receiver.delivered().get() >= bytes);
        assert_eq!(self.receiver.delivered(), Bytes::new(bytes), "at {}", self.now);
        assert_eq!(self.receiver.damaged(), 0);
        self.now
    }
}

/// A call to a control.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Started { srtt: Span },
    Sent,
    Acked(u64, Time),
    Sampled { rtt: Option<Span> },
    Lost(u64),
    Congested(Event, Window),
    Recovered,
    Spurious { prior: f64 },
    Grows { acked: u64, cwnd: f64, interval: Option<Span> },
    Deadline,
}

/// A congestion event as the control saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    at: Time,
    kind: Signal,
    lost: u64,
    first: bool,
}

/// A control that records its calls, grows by a packet for each packet acknowledged, and responds as configured.
#[derive(Debug)]
struct Spy {
    log: Arc<Mutex<Vec<Call>>>,
    answer: LossResponse,
    rate: Option<Rate>,
    grows: bool,
    deadline: Option<Time>,
}

impl Spy {
    fn new(answer: LossResponse) -> (Box<Self>, Arc<Mutex<Vec<Call>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        (Box::new(Self { log: log.clone(), answer, rate: None, grows: true, deadline: None }), log)
    }

    fn note(&self, told: Call) {
        self.log.lock().unwrap().push(told);
    }
}

impl CongestionControl for Spy {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        if let Some(rate) = self.rate {
            w.pacing = Pacing::Rate(rate);
        }
        self.note(Call::Started { srtt: cx.srtt });
    }
    fn on_sent(&mut self, _: &Context, _: &mut Window, _: &Sent) {
        self.note(Call::Sent);
    }
    fn on_sample(&mut self, _: &Context, _: &mut Window, sample: &Sample) {
        self.note(Call::Sampled { rtt: sample.rtt });
    }
    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let told = Event { at: cx.now, kind: event.kind, lost: event.lost, first: event.first };
        self.note(Call::Congested(told, *w));
        // A control that hides losses does not hide timeouts.
        if matches!(event.kind, Signal::Timeout { .. }) { LossResponse::ReduceTo(5.0) } else { self.answer }
    }
    fn on_ack(&mut self, _: &Context, w: &mut Window, ack: &Ack) {
        if self.grows {
            w.cwnd += ack.acked as f64;
        }
        self.note(Call::Grows { acked: ack.acked, cwnd: w.cwnd, interval: ack.rate.interval });
    }
    fn wants_packets(&self) -> bool {
        true
    }
    fn on_packet(&mut self, _: &Context, _: &mut Window, packet: &Packet) {
        self.note(match packet.fate {
            PacketOutcome::Acked { .. } => Call::Acked(packet.number, packet.sent_at),
            _ => Call::Lost(packet.number),
        });
    }
    fn on_recovered(&mut self, _: &Context, _: &mut Window) {
        self.note(Call::Recovered);
    }
    fn on_spurious(&mut self, _: &Context, w: &mut Window, prior: &Window) {
        *w = *prior;
        self.note(Call::Spurious { prior: prior.cwnd });
    }
    fn next_deadline(&self) -> Option<Time> {
        self.deadline
    }
    fn on_deadline(&mut self, _: &Context, _: &mut Window) {
        self.deadline = None;
        self.note(Call::Deadline);
    }
}

fn spied(answer: LossResponse, config: &Config, path: Path) -> (World, Arc<Mutex<Vec<Call>>>) {
    let (spy, log) = Spy::new(answer);
    (World::new(config, spy, path), log)
}

fn congestions(log: &Mutex<Vec<Call>>) -> Vec<(Event, Window)> {
    let log = log.lock().unwrap();
    log.iter()
        .filter_map(|told| if let Call::Congested(event, w) = told { Some((*event, *w)) } else { None })
        .collect()
}

#[test]
fn a_transfer_arrives_whole_for_either_opener_and_any_mtu() {
    for (opener, mtu) in [
        (Opener::Sender, 1_500),
        (Opener::Receiver, 1_500),
        (Opener::Sender, 1_228),
        (Opener::Receiver, 1_400),
    ] {
        let config = Config { opener, mtu: Bytes::new(mtu), ..Config::default() };
        let algorithm: Algorithm = "newreno".parse().unwrap();
        let mut world = World::new(&config, algorithm.build(1), Path::new(20, 20));
        let done = world.carry(1_000_000);
        // 400 ms of data, three round trips of slow start and one of the handshake.
        assert!(done > Time::from_millis(400) && done < Time::from_millis(900), "{opener:?} {mtu}: {done}");
        let largest = world.log.iter().map(|(_, _, bytes)| *bytes).max();
        assert_eq!(largest, Some(mtu as usize - 28), "IPv4 and UDP headers");
    }
}

#[test]
fn the_handshake_has_the_flights_of_tls() {
    let mut world = World::of("newreno", Path::new(1_000, 20));
    world.sender.write(Bytes::new(1));
    world.run(Time::from_secs(1), |world| world.receiver.delivered() == Bytes::new(1));
    let (forth, back): (Vec<(Time, bool, usize)>, Vec<_>) =
        world.log.iter().partition(|(_, forwards, _)| *forwards);
    // A padded Initial; certificates in two datagrams, within three times the bytes received, the second one paced as if the
    // RTT were 333 ms; Finished together with the data.
    assert_eq!(forth[0].2, 1_200);
    let flight: usize =
        back.iter().filter(|(at, ..)| *at < Time::from_millis(60)).map(|(_, _, bytes)| bytes).sum();
    assert!((2_200..3_600).contains(&flight), "{flight}");
    assert!(world.now > Time::from_millis(60) && world.now < Time::from_millis(100), "{}", world.now);
}

#[test]
fn the_clock_may_begin_at_any_time_and_runs_repeat() {
    let runs = [0, 12_345_678_901].map(|later| {
        let base = Instant::now() + Duration::from_nanos(later);
        let algorithm: Algorithm = "cubic".parse().unwrap();
        let mut world =
            World::since(base, &Config::default(), algorithm.build(1), Path::new(20, 20).losing(7, 10));
        world.carry(2_000_000);
        (world.now, world.log, world.sender.stats())
    });
    assert!(runs[0] == runs[1]);
    assert!(runs[0].2.lost > 5);
}

#[test]
fn an_acknowledgement_is_told_in_the_order_of_the_interface() {
    // The 30th packet is lost.
    let path =
        Path::new(50, 20).with(|_, number, forwards| (!forwards || number != 30).then_some(Span::ZERO));
    let config = Config { pacing: false, ..Config::default() };
    let (mut world, log) = spied(LossResponse::ReduceTo(6.0), &config, path);
    world.carry(200_000);
    let log = log.lock().unwrap();
    let place = log.iter().position(|told| matches!(told, Call::Congested(..))).unwrap();
    let before: Vec<_> = log[..place].iter().rev().take_while(|told| !matches!(told, Call::Sent)).collect();
    assert!(matches!(before[0], Call::Lost(_)), "{before:?}");
    assert!(matches!(before[1], Call::Sampled { rtt: Some(_) }));
    assert!(matches!(before[2], Call::Acked(..)));
    assert!(!matches!(log[place + 1], Call::Grows { .. }), "what was sent before does not grow the window");
    assert!(matches!(log[0], Call::Started { srtt } if srtt >= Span::from_millis(40)), "{:?}", log[0]);
    assert!(log.iter().any(|told| matches!(told, Call::Recovered)));
    assert!(log.iter().filter(|told| matches!(told, Call::Congested(..))).count() == 1);
    // Delivery rates: from the second round on, intervals are at least a round trip.
    let intervals =
        log.iter().filter_map(|told| if let Call::Grows { interval, .. } = told { *interval } else { None });
    assert!(intervals.clone().count() > 20 && intervals.min() >= Some(Span::from_millis(40)));
}

#[test]
fn a_reduction_is_window_and_threshold_at_once_and_holds_for_a_round_trip() {
    let path =
        Path::new(50, 20).with(|_, number, forwards| (!forwards || number != 60).then_some(Span::ZERO));
    let (mut world, log) = spied(LossResponse::ReduceTo(6.0), &Config::default(), path);
    world.sender.write(Bytes::MAX);
    world.run(Time::from_secs(9), |_| !congestions(&log).is_empty());
    let at = congestions(&log)[0].0.at;
    assert_eq!((world.sender.control().window().cwnd, world.sender.control().window().ssthresh), (6.0, 6.0));
    assert_eq!(world.sender.control().state(), State::Recovery);
    world.run(at + Span::from_millis(35), |_| false);
    assert_eq!(world.sender.control().window().cwnd, 6.0, "nothing sent since has been acknowledged");
    world.run(at + Span::from_millis(300), |_| false);
    assert!(world.sender.control().window().cwnd > 6.0);
    assert_eq!(world.sender.control().state(), State::Open);
    assert_eq!(world.sender.stats().recoveries, 1);
}

/// Halves its window on the first loss and, with `takes_over`, sets it itself from then on: like a control that receives
/// radio information in the middle of a recovery.
#[derive(Debug)]
struct Successor {
    takes_over: bool,
    owns: bool,
    /// Acknowledgements reported to it during a recovery.
    told: Arc<Mutex<u64>>,
}

impl CongestionControl for Successor {
    fn on_congestion(&mut self, _: &Context, w: &mut Window, _: &Congestion) -> LossResponse {
        if self.owns { LossResponse::Own } else { LossResponse::ReduceTo(w.cwnd / 2.0) }
    }
    fn on_sample(&mut self, cx: &Context, _: &mut Window, _: &Sample) {
        self.owns |= self.takes_over && cx.state == State::Recovery;
    }
    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        *self.told.lock().unwrap() += u64::from(cx.state == State::Recovery);
        w.cwnd += ack.acked as f64;
    }
    fn owns_recovery(&self) -> bool {
        self.owns
    }
}

#[test]
fn controls_that_own_the_window_hear_of_acknowledgements_in_recovery() {
    for takes_over in [false, true] {
        let path =
            Path::new(50, 20).with(|_, number, forwards| (!forwards || number != 60).then_some(Span::ZERO));
        let told = Arc::new(Mutex::new(0));
        let control = Box::new(Successor { takes_over, owns: false, told: told.clone() });
        let mut world = World::new(&Config::default(), control, path);
        world.carry(300_000);
        assert_eq!(world.sender.stats().recoveries, 1);
        assert_eq!(*told.lock().unwrap() > 0, takes_over, "takes over: {takes_over}");
    }
}

#[test]
fn a_control_that_judges_every_packet_learns_although_the_handshakes_are_forgotten() {
    let config = Config { ack_every: Some(1), ..Config::default() };
    let algorithm: Algorithm = "vivace".parse().unwrap();
    let mut world = World::new(&config, algorithm.build(1), Path::new(20, 20));
    world.sender.write(Bytes::MAX);
    world.run(Time::from_secs(8), |_| false);
    let delivered = world.receiver.delivered().get();
    assert!(delivered > 14_000_000, "{delivered} of 20 MB in 8 s");
}

#[test]
fn losses_of_one_round_trip_are_one_episode() {
    // A burst of losses, spread over more than one acknowledgement.
    let lost = |number: u64| (60..90).contains(&number) && number.is_multiple_of(3);
    let path =
        Path::new(50, 20).with(move |_, number, forwards| (!forwards || !lost(number)).then_some(Span::ZERO));
    let (mut world, log) = spied(LossResponse::ReduceTo(10.0), &Config::default(), path);
    world.carry(300_000);
    let events = congestions(&log);
    assert!(events.len() > 2);
    assert_eq!(events.iter().filter(|(event, _)| event.first).count(), 1, "{events:?}");
    assert_eq!(events.iter().map(|(event, _)| event.lost).sum::<u64>(), 10);
}

#[test]
fn an_ignored_loss_changes_nothing_and_the_next_is_another_decision() {
    let lost = [60, 120];
    let path = Path::new(50, 20)
        .with(move |_, number, forwards| (!forwards || !lost.contains(&number)).then_some(Span::ZERO));
    let (mut world, log) = spied(LossResponse::Ignore, &Config::default(), path);
    world.carry(600_000);
    let events = congestions(&log);
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|(event, _)| event.first && event.kind == Signal::Loss && event.lost == 1));
    let control = world.sender.control();
    assert_eq!((control.state(), control.window().ssthresh), (State::Open, f64::INFINITY));
    assert_eq!((world.sender.stats().recoveries, world.sender.stats().lost), (0, 2));
    // Every acknowledgement grew the window, including those of packets sent before the losses.
    let log = log.lock().unwrap();
    let grown: u64 =
        log.iter().map(|told| if let Call::Grows { acked, .. } = told { *acked } else { 0 }).sum();
    let acked = log.iter().filter(|told| matches!(told, Call::Acked(..))).count() as u64;
    assert_eq!(grown, acked);
    assert_eq!(control.window().cwnd, 10.0 + acked as f64);
    assert!(!log.iter().any(|told| matches!(told, Call::Recovered)));
}

#[test]
fn a_probe_timeout_is_not_told_and_touches_no_window() {
    // The tail of the transfer is lost, and the first two packets after it.
    let path = Path::new(50, 20).with(|at, _, forwards| {
        let lost = forwards && (Time::from_millis(1_000)..Time::from_millis(1_150)).contains(&at);
        (!lost).then_some(Span::ZERO)
    });
    let (mut world, log) = spied(LossResponse::Ignore, &Config::default(), path);
    world.sender.write(Bytes::new(100_000));
    world.run(Time::from_secs(1), |_| false);
    let window = world.sender.control().window();
    world.sender.write(Bytes::new(5_000));
    world.run(Time::from_millis(1_150), |_| false);
    // The timeout is some 60 ms, and doubles: at about 1.06 and 1.18 s.
    assert_eq!(world.sender.timeouts(), 1);
    assert!(congestions(&log).is_empty());
    assert_eq!(world.sender.control().window(), window);
    world.run(Time::from_secs(3), |world| world.receiver.delivered() == Bytes::new(105_000));
    assert_eq!(world.receiver.delivered(), Bytes::new(105_000));
    // The probe's acknowledgement reveals the losses: these are reported.
    assert!(congestions(&log).iter().all(|(event, _)| event.kind == Signal::Loss));
    assert!(!congestions(&log).is_empty());
}

#[test]
fn persistent_congestion_is_a_second_timeout_and_leaves_two_packets() {
    let path = Path::new(50, 20).with(|at, _, _| {
        let dark = (Time::from_secs(1)..Time::from_secs(6)).contains(&at);
        (!dark).then_some(Span::ZERO)
    });
    let (mut world, log) = spied(LossResponse::Ignore, &Config::default(), path);
    let mut seen = None;
    world.sender.write(Bytes::MAX);
    world.run(Time::from_secs(20), |_| congestions(&log).iter().any(|(event, _)| event.kind != Signal::Loss));
    if let Some((event, _)) = congestions(&log).last() {
        seen = Some((event.kind, event.first));
    }
    assert_eq!(seen, Some((Signal::Timeout { count: 2 }, true)));
    let window = world.sender.control().window();
    assert_eq!((window.cwnd, window.ssthresh), (2.0, 5.0));
    assert_eq!(world.sender.stats().persistent, 1);
    world.run_for(Span::from_secs(2));
    assert!(world.sender.control().window().cwnd > 10.0, "it grows again");
}

#[test]
fn spurious_losses_are_taken_back() {
    // One packet takes 30 ms longer than the others: more than three overtake it.
    let path = Path::new(50, 20)
        .with(|_, number, forwards| Some(Span::from_millis(if forwards && number == 60 { 30 } else { 0 })));
    let (mut world, log) = spied(LossResponse::ReduceTo(6.0), &Config::default(), path);
    world.carry(600_000);
    let prior = congestions(&log)[0].1.cwnd;
    assert!(log.lock().unwrap().contains(&Call::Spurious { prior }));
    assert_eq!(world.sender.stats().undone, 1);
    // A hidden reduction needs no undo.
    let path = Path::new(50, 20)
        .with(|_, number, forwards| Some(Span::from_millis(if forwards && number == 60 { 30 } else { 0 })));
    let (mut world, log) = spied(LossResponse::Ignore, &Config::default(), path);
    world.carry(600_000);
    assert_eq!(congestions(&log).len(), 1);
    assert!(!log.lock().unwrap().iter().any(|told| matches!(told, Call::Spurious { .. })));
}

#[test]
fn marks_are_told_once_an_episode() {
    let config = Config { ecn: true, ..Config::default() };
    let path = Path { mark_every: 50, ..Path::new(50, 20) };
    let (mut world, log) = spied(LossResponse::ReduceTo(10.0), &config, path);
    world.carry(1_000_000);
    let events = congestions(&log);
    assert!(
        events.len() >= 5 && events.iter().all(|(event, _)| event.kind == Signal::Ecn && event.lost == 0)
    );
    assert_eq!(
        world.sender.stats().ecn_reductions,
        events.iter().filter(|(event, _)| event.first).count() as u64
    );
    assert_eq!(world.sender.stats().lost, 0);
}

#[test]
fn prague_falls_back_where_the_path_erases_code_points() {
    for (erases, expected) in [(false, Ecn::Ect1), (true, Ecn::Ect0)] {
        let config = Config { ecn: true, ..Config::default() };
        let prague: Algorithm = "prague".parse().unwrap();
        let mut world = World::new(&config, prague.build(1), Path { erases, ..Path::new(50, 20) });
        world.carry(1_000_000);
        assert_eq!(world.sender.control().codepoint(), expected, "erases: {erases}");
    }
}

#[test]
fn the_rtt_is_without_the_delay_of_its_acknowledgement() {
    // One packet at a time: the receiver waits 25 ms for a second one, and reports this delay. After the first second the
    // path is a millisecond longer: a smallest RTT that is too long prevents the subtraction of the delay (RFC 9002, 5.3).
    let path = Path::new(1_000, 20)
        .with(|at, _, forwards| Some(Span::from_millis(u64::from(forwards && at > Time::from_secs(1)))));
    let (mut world, log) = spied(LossResponse::Ignore, &Config::default(), path);
    world.sender.write(Bytes::new(100));
    for _ in 0..50 {
        world.run_for(Span::from_millis(200));
        world.sender.write(Bytes::new(100));
    }
    let log = log.lock().unwrap();
    let samples: Vec<Span> =
        log.iter().filter_map(|told| if let Call::Sampled { rtt } = told { *rtt } else { None }).collect();
    assert!(samples.len() > 40);
    for sample in &samples[10..] {
        // Delays travel in units of 8 us (RFC 9000, 18.2: an exponent of 3).
        assert!((41_000_000..41_020_000).contains(&sample.as_nanos()), "{sample}");
    }
}

#[test]
fn a_rate_of_the_control_is_the_rate_on_the_wire() {
    for (mbit, pacing) in [(5, true), (40, true), (5, false)] {
        let (mut spy, _) = Spy::new(LossResponse::Ignore);
        spy.rate = Some(Rate::from_mbit_per_s(mbit));
        let config = Config { pacing, ..Config::default() };
        let mut world = World::new(&config, spy, Path::new(100, 20));
        world.sender.write(Bytes::MAX);
        world.run(Time::from_secs(2), |_| false);
        let before = world.log.len();
        world.run(Time::from_secs(6), |_| false);
        let sent = world.log[before..].iter().filter(|(_, forwards, _)| *forwards);
        let bits: usize = sent.map(|(_, _, bytes)| 8 * (bytes + 28)).sum();
        let rate = bits as f64 / 4e6;
        assert!((rate / mbit as f64 - 1.0).abs() < 0.01, "{rate} of {mbit} Mbit/s");
    }
}

#[test]
fn without_pacing_a_window_leaves_at_once() {
    for (pacing, range) in [(true, 1..=12), (false, 80..=101)] {
        let (mut spy, _) = Spy::new(LossResponse::Ignore);
        spy.grows = false;
        let config = Config { pacing, initial_window: 100, ..Config::default() };
        let mut world = World::new(&config, spy, Path::new(1_000, 20));
        world.sender.write(Bytes::MAX);
        world.run(Time::from_millis(200), |_| false);
        let mut burst = 0;
        for (at, _, _) in world.log.iter().filter(|(_, forwards, _)| *forwards) {
            let together = world.log.iter().filter(|(other, forwards, _)| *forwards && other == at).count();
            burst = burst.max(together);
        }
        assert!(range.contains(&burst), "pacing {pacing}: {burst} at once");
    }
}

#[test]
fn the_controls_own_deadline_comes() {
    let (mut spy, log) = Spy::new(LossResponse::Ignore);
    spy.deadline = Some(Time::from_millis(777));
    let mut world = World::new(&Config::default(), spy, Path::new(50, 20));
    world.run(Time::from_millis(776), |_| false);
    assert!(!log.lock().unwrap().contains(&Call::Deadline));
    world.run(Time::from_millis(777), |_| false);
    assert!(log.lock().unwrap().contains(&Call::Deadline));
}

#[test]
fn little_is_left_when_the_application_stops() {
    let mut world = World::of("newreno", Path::new(20, 20));
    world.sender.write(Bytes::MAX);
    world.run(Time::from_secs(3), |_| false);
    world.sender.stop();
    let (taken, window) = (world.sender.taken(), world.sender.control().window_bytes());
    let left = taken - world.receiver.delivered();
    assert!(left <= window + window / 2 + Bytes::new(24 * 1_472), "{left} with a window of {window}");
    world.run(Time::from_secs(5), |_| false);
    assert_eq!(world.receiver.delivered(), taken, "all of it arrives");
    assert_eq!(world.sender.next_deadline(), Time::MAX, "and then there is nothing to wait for");
}

#[test]
fn packets_in_flight_are_counted_as_noq_counts_them() {
    let mut world = World::of("cubic", Path::new(20, 20).losing(3, 20));
    world.carry(3_000_000);
    world.run_for(Span::from_secs(5));
    assert_eq!(world.sender.control().in_flight(), Bytes::ZERO);
    let stats = world.sender.stats();
    // All but the client's Finished, whose keys are discarded before it is acknowledged.
    assert_eq!(stats.sent, stats.acked + stats.lost + 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is lost in either direction, all bytes arrive as sent, the window stays at least one packet, and the count of
    /// data in flight ends at zero.
    #[test]
    fn nothing_is_lost_for_good(
        per_mille in 0..250_u64,
        seed in any::<u64>(),
        mbit in 1..100_u64,
        delay in 1..150_u64,
        opener in prop::sample::select(vec![Opener::Sender, Opener::Receiver]),
        algorithm in prop::sample::select(vec!["newreno", "cubic", "bbr1", "vegas", "westwood", "c2tcp"]),
        ecn in any::<bool>(),
    ) {
        let config = Config { opener, ecn, ..Config::default() };
        let algorithm: Algorithm = algorithm.parse().unwrap();
        let path = Path { mark_every: 97, ..Path::new(mbit, delay).losing(seed, per_mille) };
        let mut world = World::new(&config, algorithm.build(seed), path);
        world.carry(120_000);
        let window = world.sender.control().window();
        prop_assert!(window.cwnd >= 1.0 && window.cwnd.is_finite());
        world.path.trouble = Box::new(|_, _, _| Some(Span::ZERO));
        world.run_for(Span::from_secs(200));
        prop_assert_eq!(world.sender.control().in_flight(), Bytes::ZERO);
    }
}
