//! For tests: two endpoints over a pipe of fixed delay in each direction that loses, duplicates and delays packets by a
//! script, and a control that records its calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ranpace_cc::*;
use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::{Config, Kind, Receiver, Segment, Sender};

/// The pipe's treatment of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PipeAction {
    Pass,
    Drop,
    Twice,
    /// Delayed by this much.
    Late(Span),
    /// Marked by the network.
    Mark,
    /// Its ECN code point is erased.
    Bleach,
}

/// Direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the receiver.
    Forth,
    Back,
}

pub(crate) type Script = Box<dyn FnMut(Way, u64, &Segment) -> PipeAction>;

/// Two endpoints and the pipe between them.
pub(crate) struct Pipe {
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Time,
    pub delay: Span,
    script: Script,
    passed: [u64; 2],
    on_the_way: BTreeMap<(Time, u64), (Way, Segment)>,
    order: u64,
    /// Segments with the times at which they were sent; likewise acknowledgements.
    pub sent: Vec<(Time, Segment)>,
    pub acks: Vec<(Time, Segment)>,
    /// Checked after each step.
    pub most_in_flight: u64,
    steps: u64,
}

/// One-way delay of the pipe.
pub(crate) const DELAY: Span = Span::from_millis(50);

impl Pipe {
    pub fn new(config: &Config, control: Box<dyn CongestionControl>, script: Script) -> Self {
        Self::between(config, config, control, script)
    }

    /// Endpoints with different settings.
    pub fn between(
        sender: &Config,
        receiver: &Config,
        control: Box<dyn CongestionControl>,
        script: Script,
    ) -> Self {
        let mut pipe = Self {
            sender: Sender::new(sender, control),
            receiver: Receiver::new(receiver, None),
            now: Time::ZERO,
            delay: DELAY,
            script,
            passed: [0; 2],
            on_the_way: BTreeMap::new(),
            order: 0,
            sent: Vec::new(),
            acks: Vec::new(),
            most_in_flight: 0,
            steps: 0,
        };
        pipe.sender.open(pipe.now);
        pipe.receiver.open(pipe.now);
        pipe
    }

    /// A control by its name.
    pub fn named(config: &Config, name: &str, script: Script) -> Self {
        Self::new(config, name.parse::<Algorithm>().unwrap().build(1), script)
    }

    /// Replaces the script from now on.
    pub fn set_script(&mut self, script: Script) {
        self.script = script;
    }

    fn put(&mut self, way: Way, mut segment: Segment) {
        let count = &mut self.passed[way as usize];
        *count += 1;
        let deed = (self.script)(way, *count - 1, &segment);
        let mut at = self.now + self.delay;
        match deed {
            PipeAction::Drop => return,
            PipeAction::Late(by) => at += by,
            PipeAction::Mark if segment.ecn.is_capable() => segment.ecn = Ecn::Ce,
            PipeAction::Bleach => segment.ecn = Ecn::NotEct,
            _ => {}
        }
        for _ in 0..if deed == PipeAction::Twice { 2 } else { 1 } {
            self.order += 1;
            self.on_the_way.insert((at, self.order), (way, segment));
        }
    }

    fn flush(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            if segment.kind == Kind::Data {
                self.sent.push((self.now, segment));
            }
            self.put(Way::Forth, segment);
            self.check();
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            if segment.kind == Kind::Ack {
                self.acks.push((self.now, segment));
            }
            self.put(Way::Back, segment);
        }
    }

    fn check(&mut self) {
        self.steps += 1;
        if self.sender.board().packets_out() < 200 || self.steps.is_multiple_of(256) {
            self.sender.board().check();
        }
        let w = self.sender.window();
        assert!(w.cwnd.is_finite() && w.cwnd > 0.0, "{w:?}");
        assert!(w.ssthresh >= 1.0, "{w:?}");
        assert!(self.sender.in_flight() <= self.sender.stats().sent);
        assert!(self.receiver.delivered() <= self.sender.sent());
        assert!(self.sender.acked() <= self.receiver.delivered());
        self.most_in_flight = self.most_in_flight.max(self.sender.in_flight());
    }

    /// Runs for `span`, or until nothing more will happen.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        self.run_while(end, |_| true);
        self.now = self.now.max(end);
    }

    /// Runs until `end` at most, while `go` returns true.
    pub fn run_while(&mut self, end: Time, go: impl Fn(&Self) -> bool) {
        self.flush();
        let mut repeats = 0;
        while go(self) {
            let arrival = self.on_the_way.first_key_value().map_or(Time::MAX, |(&(at, _), _)| at);
            let at = arrival.min(self.sender.next_deadline()).min(self.receiver.next_deadline());
            if at > end || at == Time::MAX {
                return;
            }
            repeats = if at > self.now { 0 } else { repeats + 1 };
            assert!(repeats < 100_000, "time stands still at {:?}", self.now);
            self.now = self.now.max(at);
            if arrival <= self.now {
                let (_, (way, segment)) = self.on_the_way.pop_first().unwrap();
                match way {
                    Way::Forth => {
                        if matches!(segment.kind, Kind::Data | Kind::Syn | Kind::SynAck | Kind::Ack) {
                            self.receiver.on_segment(self.now, &segment);
                        }
                    }
                    Way::Back => {
                        self.sender.on_segment(self.now, &segment);
                    }
                }
            } else {
                self.sender.on_deadline(self.now);
                self.receiver.on_deadline(self.now);
            }
            self.check();
            self.flush();
        }
    }

    /// Runs until everything written has been acknowledged; panics if that takes longer than `limit`.
    pub fn finish(&mut self, limit: Span) {
        self.run_while(Time::ZERO + limit, |pipe| !pipe.sender.is_done());
        assert!(self.sender.is_done(), "not done at {:?}: {:?}", self.now, self.sender);
        assert_eq!(self.receiver.delivered(), self.sender.acked());
    }

    /// Retransmissions: send time and first byte.
    pub fn retransmissions(&self) -> Vec<(Time, u64)> {
        self.sent.iter().filter(|(_, s)| s.retransmission).map(|&(at, s)| (at, s.seq)).collect()
    }
}

/// Nothing goes wrong.
pub(crate) fn clean() -> Script {
    Box::new(|_, _, _| PipeAction::Pass)
}

/// Loses the first transmission of the data segments at these positions (counted from zero by sequence).
pub(crate) fn lose(places: &'static [u64]) -> Script {
    let mut seen = std::collections::BTreeSet::new();
    Box::new(move |way, _, segment| {
        let place = segment.seq / Config::default().mss().get();
        let first = way == Way::Forth && segment.kind == Kind::Data && segment.length > 0;
        if first && places.contains(&place) && seen.insert(place) {
            PipeAction::Drop
        } else {
            PipeAction::Pass
        }
    })
}

/// One call of a control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Call {
    Start,
    Sample { rtt: Option<Span> },
    Congestion { kind: Signal, lost: u64, first: bool },
    Ack { acked: u64, delivered: u64, rate: Option<Span>, app_limited: bool },
    Packet { number: u64, fate: PacketOutcome },
    Recovered,
    Spurious { prior: f64 },
    Idle,
}

/// Grows like NewReno, responds as scripted, and records its calls.
#[derive(Debug)]
pub(crate) struct Scripted {
    pub calls: Calls,
    pub answer: fn(&Congestion, &Window) -> LossResponse,
    pub packets: bool,
}

/// The calls of a [`Scripted`], each with the window before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<(Time, Call, Window)>>>);

impl Calls {
    pub fn all(&self) -> Vec<(Time, Call, Window)> {
        self.0.lock().unwrap().clone()
    }

    pub fn congestions(&self) -> Vec<(Signal, u64, bool)> {
        let congestion = |(_, call, _)| match call {
            Call::Congestion { kind, lost, first } => Some((kind, lost, first)),
            _ => None,
        };
        self.all().into_iter().filter_map(congestion).collect()
    }

    pub fn count(&self, is: impl Fn(&Call) -> bool) -> usize {
        self.all().iter().filter(|(_, call, _)| is(call)).count()
    }
}

impl Scripted {
    pub fn new(answer: fn(&Congestion, &Window) -> LossResponse) -> (Box<Self>, Calls) {
        let calls = Calls::default();
        (Box::new(Self { calls: calls.clone(), answer, packets: true }), calls)
    }

    fn note(&self, cx: &Context, w: &Window, call: Call) {
        self.calls.0.lock().unwrap().push((cx.now, call, *w));
    }
}

impl CongestionControl for Scripted {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.note(cx, w, Call::Start);
    }
    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.note(cx, w, Call::Sample { rtt: sample.rtt });
    }
    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let Congestion { kind, lost, first, .. } = *event;
        self.note(cx, w, Call::Congestion { kind, lost, first });
        (self.answer)(event, w)
    }
    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let (rate, app_limited) = (ack.rate.interval, ack.rate.app_limited);
        self.note(cx, w, Call::Ack { acked: ack.acked, delivered: ack.delivered, rate, app_limited });
        if cx.cwnd_limited {
            let left = if w.in_slow_start() { w.slow_start(ack.acked as f64) } else { ack.acked as f64 };
            w.cwnd += left / w.cwnd;
        }
    }
    fn wants_packets(&self) -> bool {
        self.packets
    }
    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        self.note(cx, w, Call::Packet { number: packet.number, fate: packet.fate });
    }
    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        self.note(cx, w, Call::Recovered);
    }
    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        self.note(cx, w, Call::Spurious { prior: prior.cwnd });
        w.cwnd = w.cwnd.max(prior.cwnd);
        w.ssthresh = w.ssthresh.max(prior.ssthresh);
    }
    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, _: Span) {
        self.note(cx, w, Call::Idle);
    }
}

/// Halves the window.
pub(crate) fn halve(_: &Congestion, w: &Window) -> LossResponse {
    LossResponse::ReduceTo((w.cwnd / 2.0).max(2.0))
}

/// The bytes of `count` full segments.
pub(crate) fn segments(count: u64) -> Bytes {
    Config::default().mss() * count
}
