//! For tests: whatever happens to a control that is not loss-based, in any order, its window holds a packet and its
//! pace is not zero.

use proptest::prelude::*;
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::{interface::*, registry::ALL};

/// What may happen to a control.
#[derive(Clone, Debug)]
enum Event {
    Ack { delivered: u64, lost: u64, interval_us: u64, rtt_us: u64, in_flight: u64, state: u8, app: bool },
    Sent { count: u64 },
    Congestion { lost: u64, timeout: bool, first: bool },
    Recovered,
    Spurious,
    Idle,
    Path,
    Report { bytes: Vec<u8> },
    Deadline,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..50u64, 0..5u64, 0..10_000_000u64, 0..5_000_000u64, 0..500u64, 0..5u8, any::<bool>()).prop_map(
            |(delivered, lost, interval_us, rtt_us, in_flight, state, app)| Event::Ack {
                delivered, lost, interval_us, rtt_us, in_flight, state, app
            }
        ),
        8 => (1..30u64).prop_map(|count| Event::Sent { count }),
        1 => (1..5u64, any::<bool>(), any::<bool>())
            .prop_map(|(lost, timeout, first)| Event::Congestion { lost, timeout, first }),
        1 => Just(Event::Recovered),
        1 => Just(Event::Spurious),
        1 => Just(Event::Idle),
        1 => Just(Event::Path),
        1 => proptest::collection::vec(any::<u8>(), 0..=Report::CAPACITY).prop_map(|bytes| Event::Report { bytes }),
        4 => Just(Event::Deadline),
    ]
}

/// A control, the connection around it, and the packets that it knows of.
struct Rig {
    control: Box<dyn CongestionControl>,
    cx: Context,
    w: Window,
    out: Vec<(u64, Time)>,
}

impl Rig {
    fn new(name: &str, start: bool) -> Self {
        let mut rig = Self {
            control: name.parse::<crate::Algorithm>().unwrap().build(1),
            cx: Context {
                now: Time::ZERO,
                mss: Bytes::new(1448),
                wire: Bytes::new(1500),
                srtt: Span::from_millis(20),
                min_rtt: Span::from_millis(20),
                in_flight: 0,
                delivered: 0,
                lost: 0,
                next_packet: 0,
                state: State::Open,
                cwnd_limited: true,
                app_limited: false,
                departure: Time::ZERO,
            },
            w: Window::new(10.0),
            out: Vec::new(),
        };
        if start {
            rig.control.on_start(&rig.cx, &mut rig.w);
        }
        rig
    }

    fn settle(&mut self, packets: u64, fate: Fate) {
        for _ in 0..packets {
            let Some((number, sent_at)) = self.out.pop() else { return };
            if self.control.wants_packets() {
                let packet = Packet { number, bytes: self.cx.mss, sent_at, fate };
                self.control.on_packet(&self.cx, &mut self.w, &packet);
            }
        }
    }

    fn play(&mut self, event: &Event) {
        match event {
            Event::Ack { delivered, lost, interval_us, rtt_us, in_flight, state, app } => {
                let rtt = (*rtt_us > 0).then(|| Span::from_micros(*rtt_us));
                let prior = self.cx.delivered.saturating_sub(*in_flight);
                self.cx.delivered += delivered;
                self.cx.lost += lost;
                self.cx.in_flight = *in_flight;
                if let Some(rtt) = rtt {
                    self.cx.srtt = (self.cx.srtt * 7 + rtt) / 8;
                    self.cx.min_rtt = self.cx.min_rtt.min(rtt);
                }
                self.cx.state = [State::Open, State::Disorder, State::Cwr, State::Recovery, State::Loss]
                    [usize::from(*state)];
                self.settle(
                    *delivered,
                    Fate::Acked { rtt: rtt.unwrap_or_default(), one_way: rtt.map(|rtt| rtt / 2) },
                );
                let bytes = Bytes::new(delivered * 1448);
                let sample = Sample {
                    delivered: *delivered,
                    bytes,
                    rtt,
                    one_way: None,
                    in_flight_at_send: *in_flight,
                };
                self.control.on_sample(&self.cx, &mut self.w, &sample);
                self.settle(*lost, Fate::Lost);
                let rate = RateSample {
                    delivered: self.cx.delivered - prior,
                    interval: (*interval_us > 0).then(|| Span::from_micros(*interval_us)),
                    prior_delivered: prior,
                    app_limited: *app,
                    lost: *lost,
                    delayed: false,
                };
                let ack = Ack {
                    acked: *delivered,
                    delivered: *delivered,
                    bytes,
                    rtt,
                    rate,
                    prior_in_flight: in_flight + delivered,
                    ecn_echo: false,
                };
                self.control.on_ack(&self.cx, &mut self.w, &ack);
            }
            Event::Sent { count } => {
                for _ in 0..*count {
                    let sent =
                        Sent { number: self.cx.next_packet, bytes: self.cx.mss, retransmission: false };
                    self.out.push((sent.number, self.cx.now));
                    self.cx.next_packet += 1;
                    self.cx.in_flight += 1;
                    self.control.on_sent(&self.cx, &mut self.w, &sent);
                }
            }
            Event::Congestion { lost, timeout, first } => {
                self.settle(*lost, Fate::Lost);
                let kind = if *timeout { Signal::Timeout { count: 1 } } else { Signal::Loss };
                let event = Congestion {
                    kind,
                    lost: *lost,
                    largest: self.cx.mss,
                    newest_sent_at: self.cx.now,
                    first: *first,
                };
                let answer = self.control.on_congestion(&self.cx, &mut self.w, &event);
                if let Answer::ReduceTo(ssthresh) = answer
                    && *first
                {
                    assert!(ssthresh >= 1.0 && ssthresh.is_finite(), "{:?}: {ssthresh}", self.control);
                    self.w.ssthresh = ssthresh;
                    self.w.cwnd = if *timeout { 1.0 } else { ssthresh };
                }
            }
            Event::Recovered => self.control.on_recovered(&self.cx, &mut self.w),
            Event::Spurious => self.control.on_spurious(&self.cx, &mut self.w, &Window::new(50.0)),
            Event::Idle => self.control.on_idle_restart(&self.cx, &mut self.w, Span::SECOND),
            Event::Path => self.control.on_path_change(&self.cx, &mut self.w),
            Event::Report { bytes } => {
                if let Some(report) = Report::new(bytes) {
                    self.control.on_report(&self.cx, &mut self.w, &report);
                }
            }
            Event::Deadline => {
                if let Some(at) = self.control.next_deadline() {
                    self.cx.now = self.cx.now.max(at);
                    self.control.on_deadline(&self.cx, &mut self.w);
                    let next = self.control.next_deadline();
                    assert!(next.is_none_or(|next| next > self.cx.now), "deadline {next:?} does not move on");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn the_window_holds_a_packet_and_the_pace_is_never_zero(
        start in any::<bool>(),
        events in proptest::collection::vec((event(), 0..2_000_000u64), 1..100),
    ) {
        for entry in ALL.iter().filter(|entry| !entry.loss_based) {
            let mut rig = Rig::new(entry.name, start);
            for (event, wait_us) in &events {
                rig.cx.now += Span::from_micros(*wait_us);
                rig.play(event);
                prop_assert!(rig.w.cwnd >= 1.0 && rig.w.cwnd.is_finite(), "{}: {:?}", entry.name, rig.w);
                prop_assert!(!rig.w.ssthresh.is_nan(), "{}: {:?}", entry.name, rig.w);
                prop_assert_ne!(rig.w.pacing, Pacing::Rate(Rate::ZERO), "{}", entry.name);
            }
        }
    }
}
