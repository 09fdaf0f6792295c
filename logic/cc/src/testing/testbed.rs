//! For tests of loss-based controls: one greedy flow over a FIFO of constant rate, with an ACK per packet.
//!
//! Lean, so that hundreds of runs of tens of seconds fit a test: no pacing, no reports, no timestamps. A lost packet is
//! detected when a later one is acknowledged; the window is then set to the control's response at once, and recovery ends
//! with the first packet sent after it. Nothing is retransmitted: data are infinite.

use std::collections::VecDeque;

use proptest::prelude::*;
use ranpace_units::{Bytes, Span, Time};

use crate::Algorithm;
use crate::interface::*;

pub(crate) const MSS: u64 = 1448;

/// Counts since [`Bed::forget`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) acked: u64,
    pub(crate) lost: u64,
    pub(crate) timeouts: u64,
    rtt_sum: f64,
    since: Time,
}

/// A flow and its path.
pub(crate) struct Bed {
    pub(crate) control: Box<dyn CongestionControl>,
    pub(crate) window: Window,
    pub(crate) cx: Context,
    pub(crate) figures: Figures,
    /// Transmission time of a packet at the bottleneck.
    packet_time: Span,
    rtt: Span,
    /// Packets that the FIFO holds, including the one being sent.
    pub(crate) buffer: u64,
    /// One in this many packets is lost; zero for none.
    pub(crate) lose_every: u64,
    free_at: Time,
    /// Acknowledgements in flight: arrival time, the packet's number, when it was sent.
    acks: VecDeque<(Time, u64, Time)>,
    /// Number of the next packet expected to be acknowledged.
    expected: u64,
    recovery_until: u64,
}

impl Bed {
    /// `name` over a link of `rate` packets per second with a round trip of `rtt_ms`.
    pub(crate) fn new(name: &str, rate: u64, rtt_ms: u64) -> Self {
        let algorithm: Algorithm = name.parse().unwrap();
        Self::with(algorithm.build(1), rate, rtt_ms)
    }

    pub(crate) fn with(control: Box<dyn CongestionControl>, rate: u64, rtt_ms: u64) -> Self {
        let mut bed = Self {
            control,
            window: Window::new(10.0),
            cx: context(Time::ZERO),
            figures: Figures::default(),
            packet_time: Span::SECOND / rate,
            rtt: Span::from_millis(rtt_ms),
            buffer: u64::MAX,
            lose_every: 0,
            free_at: Time::ZERO,
            acks: VecDeque::new(),
            expected: 0,
            recovery_until: 0,
        };
        bed.cx.srtt = bed.rtt;
        bed.control.on_start(&bed.cx, &mut bed.window);
        bed
    }

    /// RTT without a queue.
    pub(crate) fn min_rtt(&self) -> Span {
        self.rtt + self.packet_time
    }

    /// Packets waiting at the bottleneck now.
    pub(crate) fn queued(&self) -> f64 {
        self.free_at.since(self.cx.now).ratio(self.packet_time)
    }

    pub(crate) fn forget(&mut self) {
        self.figures = Figures { since: self.cx.now, ..Figures::default() };
    }

    /// Mean RTT of the packets since [`Self::forget`], in seconds.
    pub(crate) fn mean_rtt(&self) -> f64 {
        self.figures.rtt_sum / self.figures.acked as f64
    }

    /// Share of the link used since [`Self::forget`].
    pub(crate) fn utilisation(&self) -> f64 {
        let elapsed = self.cx.now.since(self.figures.since);
        self.figures.acked as f64 / elapsed.ratio(self.packet_time)
    }

    pub(crate) fn figure(&self, name: &str) -> f64 {
        let mut found = None;
        self.control.inspect(&mut |key, value| {
            if key == name {
                found = found.or(Some(value));
            }
        });
        found.unwrap_or_else(|| panic!("no figure {name}"))
    }

    pub(crate) fn run(&mut self, seconds: u64) {
        self.run_with(seconds, &mut |_| {});
    }

    /// Runs for `seconds` and shows the flow after each acknowledgement, before it sends.
    pub(crate) fn run_with(&mut self, seconds: u64, look: &mut dyn FnMut(&mut Self)) {
        let until = self.cx.now + Span::from_secs(seconds);
        loop {
            self.send();
            match self.acks.front().copied() {
                Some((at, number, sent_at)) if at < until => {
                    self.acks.pop_front();
                    self.cx.now = at;
                    self.acknowledge(number, sent_at);
                }
                None if self.cx.now + Span::SECOND < until => {
                    // Everything in flight was lost.
                    self.cx.now += Span::SECOND;
                    self.time_out();
                }
                _ => {
                    self.cx.now = until;
                    return;
                }
            }
            assert!(self.window.cwnd >= 1.0 && self.window.cwnd.is_finite(), "{:?}", self.window);
            look(self);
        }
    }

    fn send(&mut self) {
        while (self.cx.in_flight as f64) < self.window.cwnd.floor() {
            let number = self.cx.next_packet;
            let unlucky = self.lose_every > 0 && number % self.lose_every == self.lose_every - 1;
            let waiting = self.free_at.since(self.cx.now).as_nanos() / self.packet_time.as_nanos();
            if waiting < self.buffer && !unlucky {
                self.free_at = self.free_at.max(self.cx.now) + self.packet_time;
                self.acks.push_back((self.free_at + self.rtt, number, self.cx.now));
            }
            self.cx.next_packet += 1;
            self.cx.in_flight += 1;
        }
    }

    fn acknowledge(&mut self, number: u64, sent_at: Time) {
        let prior_in_flight = self.cx.in_flight;
        let rtt = self.cx.now - sent_at;
        let lost = number - self.expected;
        self.expected = number + 1;
        self.cx.in_flight -= 1;
        self.cx.delivered += 1;
        self.cx.min_rtt = self.cx.min_rtt.min(rtt);
        self.cx.srtt = (self.cx.srtt * 7 + rtt) / 8;
        self.figures.acked += 1;
        self.figures.rtt_sum += rtt.as_secs_f64();
        self.control.on_sample(&self.cx, &mut self.window, &sample(rtt));
        if lost > 0 {
            self.cx.in_flight -= lost;
            self.cx.lost += lost;
            self.figures.lost += lost;
            self.lose(lost);
        } else if self.cx.state != State::Open && number >= self.recovery_until {
            self.cx.state = State::Open;
            self.control.on_recovered(&self.cx, &mut self.window);
        }
        if self.cx.state != State::Recovery {
            let ack = Ack { prior_in_flight, ..ack(1, rtt) };
            self.control.on_ack(&self.cx, &mut self.window, &ack);
        }
    }

    fn lose(&mut self, lost: u64) {
        let first = self.cx.state == State::Open;
        let event = Congestion {
            kind: Signal::Loss,
            lost,
            largest: Bytes::new(MSS),
            newest_sent_at: self.cx.now,
            first,
        };
        let answer = self.control.on_congestion(&self.cx, &mut self.window, &event);
        if let (true, LossResponse::ReduceTo(ssthresh)) = (first, answer) {
            self.window.ssthresh = ssthresh;
            self.window.cwnd = ssthresh;
            self.cx.state = State::Recovery;
            self.recovery_until = self.cx.next_packet;
        }
    }

    fn time_out(&mut self) {
        self.figures.timeouts += 1;
        let lost = self.cx.in_flight;
        self.expected = self.cx.next_packet;
        self.cx.in_flight = 0;
        self.cx.lost += lost;
        let event = Congestion {
            kind: Signal::Timeout { count: 1 },
            lost,
            largest: Bytes::new(MSS),
            newest_sent_at: self.cx.now,
            first: true,
        };
        if let LossResponse::ReduceTo(ssthresh) =
            self.control.on_congestion(&self.cx, &mut self.window, &event)
        {
            self.window.ssthresh = ssthresh;
            self.window.cwnd = 1.0;
            self.cx.state = State::Loss;
            self.recovery_until = self.cx.next_packet;
        }
    }
}

/// A window-limited connection before its first sample.
pub(crate) fn context(now: Time) -> Context {
    Context {
        now,
        mss: Bytes::new(MSS),
        wire: Bytes::new(1500),
        srtt: Span::ZERO,
        min_rtt: Span::MAX,
        in_flight: 0,
        delivered: 0,
        lost: 0,
        next_packet: 0,
        state: State::Open,
        cwnd_limited: true,
        app_limited: false,
        departure: Time::ZERO,
        paced: false,
    }
}

/// A sample of one segment with RTT `rtt`.
pub(crate) fn sample(rtt: Span) -> Sample {
    Sample { delivered: 1, bytes: Bytes::new(MSS), rtt: Some(rtt), one_way: None, in_flight_at_send: 0 }
}

/// An acknowledgement of `acked` segments.
pub(crate) fn ack(acked: u64, rtt: Span) -> Ack {
    Ack {
        acked,
        delivered: acked,
        bytes: Bytes::new(MSS) * acked,
        rtt: Some(rtt),
        rate: RateSample::default(),
        prior_in_flight: acked,
        ecn_echo: false,
        marked: 0,
        braked: 0,
    }
}

/// A loss that begins an episode.
pub(crate) fn loss() -> Congestion {
    Congestion {
        kind: Signal::Loss,
        lost: 1,
        largest: Bytes::new(MSS),
        newest_sent_at: Time::ZERO,
        first: true,
    }
}

/// The threshold in a response.
pub(crate) fn reduced_to(answer: LossResponse) -> f64 {
    match answer {
        LossResponse::ReduceTo(ssthresh) => ssthresh,
        other => panic!("{other:?} where a reduction was expected"),
    }
}

/// Acknowledges a window's worth of segments one by one, `rtt` after they were sent.
pub(crate) fn round(control: &mut dyn CongestionControl, cx: &mut Context, w: &mut Window, rtt: Span) {
    let segments = w.cwnd as u64;
    cx.srtt = rtt;
    cx.min_rtt = cx.min_rtt.min(rtt);
    cx.in_flight = segments;
    cx.next_packet = cx.delivered + segments;
    for _ in 0..segments {
        cx.now += rtt / segments;
        cx.in_flight -= 1;
        cx.delivered += 1;
        control.on_sample(cx, w, &sample(rtt));
        control.on_ack(cx, w, &ack(1, rtt));
        let room = (w.cwnd as u64).saturating_sub(cx.in_flight);
        cx.in_flight += room;
        cx.next_packet += room;
    }
}

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
enum Step {
    Acked { us: u32, segments: u8, idle_us: u32, limited: bool },
    Lost { segments: u8, first: bool },
    Timeout,
    Ecn,
    Recovered,
    Spurious,
    Idle { ms: u16 },
    Moved,
    Deadline,
    Retarget { ms: u16 },
}

fn step() -> impl Strategy<Value = Step> {
    let acked = (0..2_000_000u32, 0..40u8, 0..300_000u32, any::<bool>())
        .prop_map(|(us, segments, idle_us, limited)| Step::Acked { us, segments, idle_us, limited });
    let short = (1_000..60_000u32, 1..3u8, 0..5_000u32).prop_map(|(us, segments, idle_us)| Step::Acked {
        us,
        segments,
        idle_us,
        limited: true,
    });
    prop_oneof![
        8 => short,
        6 => acked,
        2 => (0..50u8, any::<bool>()).prop_map(|(segments, first)| Step::Lost { segments, first }),
        1 => Just(Step::Timeout),
        1 => Just(Step::Ecn),
        1 => Just(Step::Recovered),
        1 => Just(Step::Spurious),
        1 => (0..5000u16).prop_map(|ms| Step::Idle { ms }),
        1 => Just(Step::Moved),
        1 => Just(Step::Deadline),
        1 => (0..1000u16).prop_map(|ms| Step::Retarget { ms }),
    ]
}

/// An endpoint that keeps the interface's guarantees and nothing more.
struct Endpoint {
    control: Box<dyn CongestionControl>,
    cx: Context,
    w: Window,
    prior: Window,
    sent: VecDeque<(u64, Time)>,
}

impl Endpoint {
    fn fill(&mut self) {
        while self.cx.in_flight < self.w.cwnd.min(500.0) as u64 {
            let number = self.cx.next_packet;
            self.cx.next_packet += 1;
            self.cx.in_flight += 1;
            self.sent.push_back((number, self.cx.now));
            let sent = Sent { number, bytes: Bytes::new(MSS), retransmission: false };
            self.control.on_sent(&self.cx, &mut self.w, &sent);
        }
    }

    fn settle(&mut self, fate: PacketOutcome) {
        if let Some((number, sent_at)) = self.sent.pop_front()
            && self.control.wants_packets()
        {
            let sending = Sending::default();
            let packet = Packet { number, bytes: Bytes::new(MSS), sent_at, sending, fate };
            self.control.on_packet(&self.cx, &mut self.w, &packet);
        }
    }

    fn congest(&mut self, kind: Signal, lost: u64, first: bool) {
        let lost = lost.min(self.cx.in_flight);
        self.cx.in_flight -= lost;
        self.cx.lost += lost;
        for _ in 0..lost {
            self.settle(PacketOutcome::Lost);
        }
        let first = first || !matches!(self.cx.state, State::Recovery | State::Cwr);
        if first {
            self.prior = self.w;
        }
        let event = Congestion { kind, lost, largest: Bytes::new(MSS), newest_sent_at: self.cx.now, first };
        let answer = self.control.on_congestion(&self.cx, &mut self.w, &event);
        if let LossResponse::ReduceTo(ssthresh) = answer {
            assert!(ssthresh >= 2.0, "ssthresh {ssthresh}");
            if first {
                self.w.ssthresh = ssthresh;
                self.w.cwnd = if matches!(kind, Signal::Timeout { .. }) { 1.0 } else { ssthresh };
            }
            self.cx.state = match kind {
                Signal::Loss => State::Recovery,
                Signal::Timeout { .. } => State::Loss,
                Signal::Ecn => State::Cwr,
            };
        }
    }

    fn take(&mut self, step: Step) {
        self.fill();
        match step {
            Step::Acked { us, segments, idle_us, limited } => {
                self.cx.now += Span::from_micros(u64::from(idle_us));
                let rtt = Span::from_micros(u64::from(us));
                let acked = u64::from(segments).min(self.cx.in_flight);
                let prior_in_flight = self.cx.in_flight;
                self.cx.in_flight -= acked;
                self.cx.delivered += acked;
                self.cx.cwnd_limited = limited;
                self.cx.app_limited = !limited;
                self.cx.min_rtt = self.cx.min_rtt.min(rtt);
                self.cx.srtt = if self.cx.srtt.is_zero() { rtt } else { (self.cx.srtt * 7 + rtt) / 8 };
                for _ in 0..acked {
                    self.settle(PacketOutcome::Acked { rtt, one_way: None });
                }
                let measured = (us % 7 != 0).then_some(rtt);
                let sample = Sample {
                    delivered: acked,
                    bytes: Bytes::new(MSS) * acked,
                    rtt: measured,
                    one_way: measured,
                    in_flight_at_send: prior_in_flight,
                };
                self.control.on_sample(&self.cx, &mut self.w, &sample);
                if self.cx.state != State::Recovery || self.control.owns_recovery() {
                    let rate = RateSample {
                        delivered: acked,
                        interval: measured,
                        prior_delivered: self.cx.delivered.saturating_sub(prior_in_flight),
                        ..RateSample::default()
                    };
                    let ack = Ack { rtt: measured, prior_in_flight, rate, ..ack(acked, rtt) };
                    self.control.on_ack(&self.cx, &mut self.w, &ack);
                }
            }
            Step::Lost { segments, first } => self.congest(Signal::Loss, u64::from(segments), first),
            Step::Timeout => self.congest(Signal::Timeout { count: 1 }, self.cx.in_flight, true),
            Step::Ecn => self.congest(Signal::Ecn, 0, false),
            Step::Recovered if self.cx.state != State::Open => {
                if self.cx.state != State::Loss && !self.control.owns_recovery() {
                    self.w.cwnd = self.w.ssthresh.max(1.0);
                }
                self.cx.state = State::Open;
                self.control.on_recovered(&self.cx, &mut self.w);
            }
            Step::Spurious if self.cx.state != State::Open => {
                self.cx.state = State::Open;
                let prior = self.prior;
                self.control.on_spurious(&self.cx, &mut self.w, &prior);
            }
            Step::Recovered | Step::Spurious => {}
            Step::Idle { ms } => {
                let idle = Span::from_millis(u64::from(ms));
                self.cx.now += idle;
                self.control.on_idle_restart(&self.cx, &mut self.w, idle);
            }
            Step::Moved => self.control.on_path_change(&self.cx, &mut self.w),
            Step::Deadline => {
                if let Some(at) = self.control.next_deadline() {
                    self.cx.now = self.cx.now.max(at.min(self.cx.now + Span::SECOND));
                    if at <= self.cx.now {
                        self.control.on_deadline(&self.cx, &mut self.w);
                    }
                }
            }
            Step::Retarget { ms } => {
                self.control.set_target(Span::from_millis(u64::from(ms)));
            }
        }
    }
}

/// Every algorithm, and every decorator over every control that it can wrap, with some options.
pub(crate) fn everything() -> Vec<String> {
    let mut names: Vec<String> = crate::ALL.iter().map(|entry| entry.name.to_owned()).collect();
    for entry in crate::ALL.iter().filter(|entry| entry.loss_based) {
        names.extend(crate::DECORATORS.iter().map(|d| format!("{}+{}", entry.name, d.name)));
    }
    names.extend(
        [
            "cubic:rfc9438:hystart=plusplus",
            "cubic:hystart=off:fast_convergence=off:friendliness=off",
            "cubic+c2tcp:tuner=eq16:boost=integer:deaf=1s:kernel_compat:pace",
            "cubic+c2tcp:tuner=memoryless:after_bad=avoidance:strict:minrtt_expiry=2s:target=0s",
            "newreno+c2tcp+c2tcp",
            "westwood:filter=none:sample=rtt",
        ]
        .map(str::to_owned),
    );
    names
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens, the window is a number and lets a packet be sent.
    #[test]
    fn no_sequence_of_events_closes_the_window(steps in prop::collection::vec(step(), 0..300)) {
        for name in everything() {
            let control = name.parse::<Algorithm>().unwrap().build(7);
            let mut endpoint = Endpoint {
                control,
                cx: context(Time::from_millis(1)),
                w: Window::new(10.0),
                prior: Window::new(10.0),
                sent: VecDeque::new(),
            };
            endpoint.control.on_start(&endpoint.cx, &mut endpoint.w);
            for step in &steps {
                endpoint.take(*step);
                let w = endpoint.w;
                prop_assert!(w.cwnd >= 1.0 && w.cwnd.is_finite(), "{}: {:?} after {:?}", name, w, step);
                prop_assert!(w.ssthresh >= 1.0, "{}: {:?} after {:?}", name, w, step);
                prop_assert!(
                    w.pacing != Pacing::Rate(ranpace_units::Rate::ZERO),
                    "{}: paced at zero after {:?}", name, step
                );
            }
        }
    }
}
