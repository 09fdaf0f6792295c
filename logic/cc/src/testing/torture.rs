//! Robustness tests: whatever happens to a control, in any order, its window holds a packet, its pace is not zero, and its
//! responses to losses agree with its ownership of the recovery.

use proptest::prelude::*;
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::client_driven::bw_report::Format;
use crate::interface::*;
use crate::testing::testbed::everything;

/// An event of a control.
#[derive(Clone, Debug)]
enum Event {
    Ack {
        delivered: u64,
        lost: u64,
        interval_us: u64,
        rtt_us: u64,
        in_flight: u64,
        state: u8,
        app: bool,
    },
    Sent {
        count: u64,
        again: bool,
    },
    Congestion {
        lost: u64,
        kind: u8,
        first: bool,
    },
    Recovered,
    Spurious,
    Idle,
    Path,
    Report {
        bytes: Vec<u8>,
    },
    Radio {
        tbs_bits: Option<u32>,
        granted: u16,
        unused: u16,
        users: u16,
        queue: u32,
        age_us: u32,
        handover: bool,
    },
    Pep {
        seen: u8,
        missing: u8,
        rtt_us: u32,
        marked: Option<u8>,
        new_epoch: bool,
    },
    Allocation {
        kbit_per_s: Option<u32>,
    },
    Target {
        ms: u16,
    },
    Deadline,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..50u64, 0..5u64, 0..10_000_000u64, 0..5_000_000u64, 0..500u64, 0..5u8, any::<bool>()).prop_map(
            |(delivered, lost, interval_us, rtt_us, in_flight, state, app)| Event::Ack {
                delivered, lost, interval_us, rtt_us, in_flight, state, app
            }
        ),
        8 => (1..30u64, any::<bool>()).prop_map(|(count, again)| Event::Sent { count, again }),
        2 => (0..5u64, 0..4u8, any::<bool>()).prop_map(|(lost, kind, first)| Event::Congestion { lost, kind, first }),
        1 => Just(Event::Recovered),
        1 => Just(Event::Spurious),
        1 => Just(Event::Idle),
        1 => Just(Event::Path),
        1 => proptest::collection::vec(any::<u8>(), 0..=ReceiverReport::CAPACITY).prop_map(|bytes| Event::Report { bytes }),
        3 => (
            proptest::option::of(0..200_000u32), 0..120u16, 0..120u16, 0..40u16, 0..3_000_000u32, 0..4_000_000u32,
            any::<bool>(),
        ).prop_map(|(tbs_bits, granted, unused, users, queue, age_us, handover)| Event::Radio {
            tbs_bits, granted, unused, users, queue, age_us, handover
        }),
        4 => (0..40u8, 0..4u8, 0..500_000u32, proptest::option::of(any::<u8>()), any::<bool>()).prop_map(
            |(seen, missing, rtt_us, marked, new_epoch)| Event::Pep { seen, missing, rtt_us, marked, new_epoch }
        ),
        1 => proptest::option::of(0..1_000_000u32).prop_map(|kbit_per_s| Event::Allocation { kbit_per_s }),
        1 => (0..1_000u16).prop_map(|ms| Event::Target { ms }),
        4 => Just(Event::Deadline),
    ]
}

/// A control, its connection, and the packets that it knows of.
struct Rig {
    name: String,
    control: Box<dyn CongestionControl>,
    cx: Context,
    w: Window,
    prior: Window,
    out: Vec<(u64, Time)>,
    /// PRR owns the window: the control is not asked to grow it.
    prr: bool,
}

impl Rig {
    fn new(name: &str, start: bool) -> Self {
        let mut rig = Self {
            name: name.to_owned(),
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
                paced: false,
            },
            w: Window::new(10.0),
            prior: Window::new(10.0),
            out: Vec::new(),
            prr: false,
        };
        if start {
            rig.control.on_start(&rig.cx, &mut rig.w);
        }
        rig
    }

    /// Plays a second of full windows with truthful reports, ending CUBIC's slow start: afterwards a guarded control has the
    /// window.
    fn settle_in(&mut self) {
        let (rtt, window) = (Span::from_millis(20), 10);
        let rate = Rate::of(self.cx.mss * window, rtt);
        for round in 0..50 {
            self.play(&Event::Sent { count: window, again: false });
            self.cx.now += rtt;
            for format in [Format::V1, Format::ThesisV2] {
                self.control.on_report(&self.cx, &mut self.w, &format.encode(rate));
            }
            let (interval_us, rtt_us) = (20_000, 20_000);
            let (delivered, lost, in_flight, state, app) = (window, 0, window, 0, false);
            self.play(&Event::Ack { delivered, lost, interval_us, rtt_us, in_flight, state, app });
            if round == 10 {
                self.play(&Event::Congestion { lost: 1, kind: 2, first: true });
                self.play(&Event::Recovered);
            }
        }
    }

    fn tell(&mut self, number: u64, sent_at: Time, fate: PacketOutcome) {
        if self.control.wants_packets() {
            let sending = self.sending(number);
            let packet = Packet { number, bytes: self.cx.mss, sent_at, sending, fate };
            self.control.on_packet(&self.cx, &mut self.w, &packet);
        }
    }

    /// Any state that a sender might report: it depends on the packet's number alone.
    fn sending(&self, number: u64) -> Sending {
        let lost_since = number % 13;
        Sending { in_flight: number % 97 + 1, lost_since, app_limited: number.is_multiple_of(5) }
    }

    fn settle(&mut self, packets: u64, fate: PacketOutcome) {
        for _ in 0..packets {
            let Some((number, sent_at)) = self.out.pop() else { return };
            self.tell(number, sent_at, fate);
        }
    }

    fn play(&mut self, event: &Event) {
        match *event {
            Event::Ack { delivered, lost, interval_us, rtt_us, in_flight, state, app } => {
                let rtt = (rtt_us > 0).then(|| Span::from_micros(rtt_us));
                let prior = self.cx.delivered.saturating_sub(in_flight);
                self.cx.delivered += delivered;
                self.cx.lost += lost;
                self.cx.in_flight = in_flight.min(self.cx.next_packet);
                self.cx.cwnd_limited = !app;
                if let Some(rtt) = rtt {
                    self.cx.srtt = (self.cx.srtt * 7 + rtt) / 8;
                    self.cx.min_rtt = self.cx.min_rtt.min(rtt);
                }
                let states = [State::Open, State::Disorder, State::Cwr, State::Recovery, State::Loss];
                // If the endpoint reduces the window, it repairs losses only after a reduction.
                let reduces = !self.control.owns_recovery() && self.w.ssthresh.is_infinite();
                self.cx.state = match states[usize::from(state)] {
                    _ if self.prr => State::Recovery,
                    State::Cwr | State::Recovery | State::Loss if reduces => State::Disorder,
                    state => state,
                };
                self.settle(
                    delivered,
                    PacketOutcome::Acked { rtt: rtt.unwrap_or_default(), one_way: rtt.map(|rtt| rtt / 2) },
                );
                let bytes = Bytes::new(delivered * 1448);
                let sample = Sample { delivered, bytes, rtt, one_way: None, in_flight_at_send: in_flight };
                self.control.on_sample(&self.cx, &mut self.w, &sample);
                self.settle(lost, PacketOutcome::Lost);
                if self.prr {
                    self.w.cwnd = self.w.ssthresh.max(1.0);
                    return;
                }
                let rate = RateSample {
                    delivered: self.cx.delivered - prior,
                    interval: (interval_us > 0).then(|| Span::from_micros(interval_us)),
                    prior_delivered: prior,
                    app_limited: app,
                    lost,
                    lost_since_send: lost,
                    in_flight_at_send: in_flight,
                    delayed: false,
                };
                let ack = Ack {
                    acked: delivered,
                    delivered,
                    bytes,
                    rtt,
                    rate,
                    prior_in_flight: in_flight + delivered,
                    ecn_echo: false,
                    // Any share of the segments, and at times more than there are.
                    marked: interval_us % 5 * delivered / 4,
                    braked: rtt_us % 5 * delivered / 4,
                };
                self.control.on_ack(&self.cx, &mut self.w, &ack);
            }
            Event::Sent { count, again } => {
                for _ in 0..count {
                    let sent =
                        Sent { number: self.cx.next_packet, bytes: self.cx.mss, retransmission: again };
                    self.out.push((sent.number, self.cx.now));
                    self.cx.next_packet += 1;
                    self.cx.in_flight += 1;
                    self.control.on_sent(&self.cx, &mut self.w, &sent);
                }
            }
            Event::Congestion { lost, kind, first } => self.congest(lost, kind, first),
            Event::Recovered => {
                if core::mem::take(&mut self.prr) {
                    self.w.cwnd = self.w.ssthresh.max(1.0);
                }
                self.cx.state = State::Open;
                self.control.on_recovered(&self.cx, &mut self.w);
            }
            Event::Spurious => {
                self.prr = false;
                self.cx.state = State::Open;
                let prior = self.prior;
                self.control.on_spurious(&self.cx, &mut self.w, &prior);
            }
            Event::Idle => self.control.on_idle_restart(&self.cx, &mut self.w, Span::SECOND),
            Event::Path => self.control.on_path_change(&self.cx, &mut self.w),
            Event::Report { ref bytes } => {
                if let Some(report) = ReceiverReport::new(bytes) {
                    self.control.on_report(&self.cx, &mut self.w, &report);
                }
            }
            Event::Radio { tbs_bits, granted, unused, users, queue, age_us, handover } => {
                let measured_at = self.cx.now - Span::from_micros(u64::from(age_us));
                let hint = RadioHint {
                    tbs_bits,
                    granted: f64::from(granted),
                    most_granted: granted,
                    unused: f64::from(unused),
                    active_users: users,
                    queue: Bytes::new(u64::from(queue)),
                    queue_limit: (queue % 3 == 0).then(|| Bytes::new(u64::from(queue))),
                    cqi: (queue % 2 == 0).then_some((queue % 16) as u8),
                    mcs: (queue % 29) as u8,
                    handover,
                    ..RadioHint::of(CellInfo::lte((users % 2) + 1, LteBandwidth::Mhz20), measured_at)
                };
                self.control.on_radio(&self.cx, &mut self.w, &hint);
            }
            Event::Pep { seen, missing, rtt_us, marked, new_epoch } => {
                let rtt = Span::from_micros(u64::from(rtt_us));
                let mut newest = self.out.iter().rev().copied().collect::<Vec<_>>().into_iter();
                for (number, sent_at) in newest.by_ref().take(usize::from(missing)) {
                    self.tell(number, sent_at, PacketOutcome::Missing);
                }
                for (number, sent_at) in newest.take(usize::from(seen)) {
                    self.tell(number, sent_at, PacketOutcome::Seen { rtt });
                }
                let report = PepReport {
                    seen: self.cx.mss * u64::from(seen),
                    rtt: (rtt_us > 0).then_some(rtt),
                    missing: u64::from(missing),
                    marked: marked.map(u64::from),
                    new_epoch,
                };
                self.control.on_pep(&self.cx, &mut self.w, &report);
                if let Some(until) = self.control.believes_gaps(self.cx.now) {
                    assert!(until <= self.cx.now, "{}: gaps of the future", self.name);
                }
            }
            Event::Allocation { kbit_per_s } => {
                let allocation = kbit_per_s.map(|kbit| {
                    let rate = Rate::from_bits_per_s(u64::from(kbit) * 1_000);
                    Allocation { rate, window: rate.bytes_in(Span::from_millis(20)) }
                });
                self.control.on_allocation(&self.cx, &mut self.w, allocation);
            }
            Event::Target { ms } => {
                self.control.set_target(Span::from_millis(u64::from(ms)));
            }
            Event::Deadline => {
                if let Some(at) = self.control.next_deadline() {
                    self.cx.now = self.cx.now.max(at);
                    self.control.on_deadline(&self.cx, &mut self.w);
                    let next = self.control.next_deadline();
                    assert!(
                        next.is_none_or(|next| next > self.cx.now),
                        "{}: deadline {next:?} does not move on",
                        self.name
                    );
                }
            }
        }
    }

    /// Losses, a timeout or a mark, and the endpoint's handling of the response.
    fn congest(&mut self, lost: u64, kind: u8, first: bool) {
        // An episode in progress is finished first; a timeout ends it.
        let first = first && (!self.prr || kind == 0);
        self.settle(lost, PacketOutcome::Lost);
        self.cx.lost += lost;
        let (kind, lost) = match kind {
            0 => (Signal::Timeout { count: 1 + u32::from(!first) }, lost),
            1 => (Signal::Ecn, 0),
            _ => (Signal::Loss, lost),
        };
        let newest_sent_at = self.cx.now;
        let event = Congestion { kind, lost, largest: self.cx.mss, newest_sent_at, first };
        let prior = self.w;
        let answer = self.control.on_congestion(&self.cx, &mut self.w, &event);
        let owns = self.control.owns_recovery();
        let fits = match answer {
            LossResponse::ReduceTo(_) => !owns,
            LossResponse::Own => owns,
            LossResponse::Ignore => true,
        };
        assert!(fits, "{}: {answer:?} of a control that owns the recovery: {owns}", self.name);
        if !first {
            return;
        }
        self.prior = prior;
        self.prr = false;
        if let LossResponse::ReduceTo(ssthresh) = answer {
            assert!(ssthresh >= 2.0 && ssthresh.is_finite(), "{}: {ssthresh}", self.name);
            let timeout = matches!(kind, Signal::Timeout { .. });
            self.w.ssthresh = ssthresh;
            self.w.cwnd = if timeout { 1.0 } else { ssthresh };
            self.prr = !timeout;
            self.cx.state = if timeout { State::Loss } else { State::Recovery };
        }
    }
}

/// All names of [`everything`], and variants that exercise more of the controls that use radio, PEP and reports.
fn names() -> Vec<String> {
    let more = [
        "quic-cqic:guard=off",
        "dcic:guard=off",
        "cqic-s:guard=off",
        "cdbe:guard=off",
        "cdbev2:guard=off",
        "pbe:guard=off",
        "mdcc:start=literal",
        "mdcc:start=coupled:early_retransmit:start_cap=2",
        "cubic+meld-me:rto=full:radio_at=loss",
        "cubic+meld-de:guard=off:tbs=period",
        "cubic+c2tcp+meld-me",
        "cubic+meld-de+c2tcp:pace",
        "bbr1:departure=on",
        "sprout:lead=tick",
        "vivace:pairs=2",
    ];
    everything().into_iter().chain(more.map(str::to_owned)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_window_holds_a_packet_and_the_pace_is_never_zero(
        start in any::<bool>(),
        settled in any::<bool>(),
        events in proptest::collection::vec((event(), 0..2_000_000u64), 1..100),
    ) {
        for name in names() {
            let mut rig = Rig::new(&name, start);
            if settled {
                rig.settle_in();
            }
            for (event, wait_us) in &events {
                rig.cx.now += Span::from_micros(*wait_us);
                rig.play(event);
                prop_assert!(rig.w.cwnd >= 1.0 && rig.w.cwnd.is_finite(), "{}: {:?}", name, rig.w);
                prop_assert!(!rig.w.ssthresh.is_nan(), "{}: {:?}", name, rig.w);
                prop_assert_ne!(rig.w.pacing, Pacing::Rate(Rate::ZERO), "{}", name);
            }
        }
    }
}
