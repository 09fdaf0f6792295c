//! `mdcc.h`, with the ledger of `logic/cc` for what the PEP has seen.

use ranpace_cc::mdcc::{Count, Domain, Ledger, Settings as Params, Start};
use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Packet, PacketOutcome, PepReport, Sample,
    Sent, Signal, State, Window,
};
use ranpace_units::Span;

use crate::cubic::{FixedWindow, ONE, Path, SlowStart};
use crate::driven::Words;
use crate::engine::Engine;

mirror! {
    /// What the options set.
    pub struct Settings[ranpace_mdcc_settings_layout] {
        /// Of the radio's window before its first loss, bytes.
        pub bound: u64,
        /// Its gain, in 2^-32.
        pub a: u64,
        /// Its loss, in 2^-32.
        pub b: u64,
        /// Nanoseconds.
        pub silence: u64,
        /// In 2^-16; 0: none.
        pub start_cap: u32,
        /// In 2^-16.
        pub growth_cap: u32,
        /// Number of the [`Start`].
        pub start: u8,
        /// Whether an ACK brings the gain, not a segment.
        pub count_acks: u8,
        /// Number of the [`SlowStart`].
        pub hystart: u8,
        /// Whether the PEP is listened to.
        pub listens: u8,
        unused: [u8; 4],
    }
}

mirror! {
    /// One event.
    pub struct Event[ranpace_mdcc_event_layout] {
        /// The connection.
        pub path: Path,
        /// The endpoint's window.
        pub window: FixedWindow,
        /// Nanoseconds without anything sent.
        pub idle: u64,
        /// When a segment left that the PEP had not seen, nanoseconds.
        pub sent_at: u64,
        /// Marks that the PEP counted.
        pub marked: u64,
        /// Written: the threshold.
        pub answer: u64,
        /// What happened.
        pub kind: u32,
        /// Of the newest segment.
        pub number: u32,
        /// Segments up to it.
        pub segments: u32,
        /// Segments of which nothing is known.
        pub unseen: u32,
        /// 0: none.
        pub rtt_us: u32,
        /// Smallest RTT to the receiver; 0: none.
        pub min_rtt_us: u32,
        /// Segments newly taken for lost.
        pub lost: u32,
        /// Of the segments, those that the PEP had not seen.
        pub unreported: u32,
        /// Where they were lost.
        pub domain: u8,
        /// Whether a loss begins an episode.
        pub first: u8,
        /// Whether the ledger did not have them settled.
        pub known: u8,
        /// Whether the PEP had called the newest missing.
        pub called_missing: u8,
        /// Whether `marked` is valid.
        pub has_marked: u8,
        /// Whether the PEP counts anew.
        pub new_epoch: u8,
        /// Whether the state is Open or Disorder.
        pub open: u8,
        /// Written: the endpoint is to reduce.
        pub answers: u8,
    }
}

mirror! {
    /// One event, with what is kept for the socket.
    pub struct Call[ranpace_mdcc_call_layout] {
        /// What the options set.
        pub settings: Settings,
        state: Words<78>,
        /// The event.
        pub event: Event,
    }
}

flat!(Call: Settings, Event, Path, FixedWindow);

unsafe extern "C" {
    fn ranpace_mdcc_step(call: *mut Call);
    fn ranpace_mdcc_mode(call: *const Call) -> u32;
    fn ranpace_mdcc_fallbacks(call: *const Call) -> u32;
    fn ranpace_mdcc_distrusted_until(call: *const Call) -> u64;
}

/// The events of `mdcc.h`.
const START: u32 = 0;
const SAMPLE: u32 = 1;
const ACKED: u32 = 2;
const SEEN: u32 = 3;
const MISSING: u32 = 4;
const LOST: u32 = 5;
const LOSS: u32 = 6;
const TIMEOUT: u32 = 7;
const MARK: u32 = 8;
const ACK: u32 = 9;
const REPORT: u32 = 10;
const RECOVERED: u32 = 11;
const SPURIOUS: u32 = 12;
const IDLE: u32 = 13;
/// `MDCC_BOTH`.
const BOTH: u32 = 1;

fn saturate(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn micros(rtt: Option<Span>) -> u32 {
    rtt.map_or(0, |rtt| saturate(rtt.as_micros()).max(1))
}

impl From<&Params> for Settings {
    /// `early_retransmit` is not in the kernel.
    fn from(params: &Params) -> Self {
        use ranpace_cc::mdcc::SlowStartEnd;
        let q16 = |ratio: f64| (ratio * 65_536.0).round() as u32;
        let q32 = |ratio: f64| (ratio * ONE).round() as u64;
        Self {
            bound: params.bound.get(),
            a: q32(params.a),
            b: q32(params.b),
            silence: params.silence.as_nanos(),
            start_cap: q16(params.start_cap),
            growth_cap: q16(params.growth_cap),
            start: match params.start {
                Start::OpenRan => 0,
                Start::Literal => 1,
                Start::Coupled => 2,
            },
            count_acks: (params.count == Count::Acks).into(),
            hystart: match params.hystart {
                SlowStartEnd::PlusPlus => SlowStart::PlusPlus,
                SlowStartEnd::Off => SlowStart::Off,
                SlowStartEnd::Classic | SlowStartEnd::Ns3 => SlowStart::Classic,
            } as u8,
            listens: params.listens.into(),
            unused: [0; 4],
        }
    }
}

/// The kernel's Multi-Domain control.
#[derive(Debug)]
pub struct KernelMdcc {
    ledger: Ledger,
    call: Call,
    engine: Engine<Call>,
    started: bool,
}

impl KernelMdcc {
    /// A fresh one, worked out natively.
    pub fn new(settings: Settings) -> Self {
        // SAFETY: C reads and writes this structure alone, whose layout a test compares.
        Self::with_engine(settings, Engine::new(|call| unsafe { ranpace_mdcc_step(call) }))
    }

    /// A fresh one, worked out by `engine`.
    pub fn with_engine(settings: Settings, engine: Engine<Call>) -> Self {
        let call = Call { settings, ..Call::default() };
        Self { ledger: Ledger::default(), call, engine, started: false }
    }

    fn is_both(&self) -> bool {
        // SAFETY: C reads this structure alone.
        unsafe { ranpace_mdcc_mode(&raw const self.call) == BOTH }
    }

    /// How often the PEP was left alone.
    pub fn fallbacks(&self) -> u32 {
        // SAFETY: as above.
        unsafe { ranpace_mdcc_fallbacks(&raw const self.call) }
    }

    fn step(&mut self, cx: &Context, w: &mut Window, kind: u32) {
        let event = &mut self.call.event;
        event.path = cx.into();
        event.window = (&*w).into();
        event.unseen = saturate(self.ledger.unseen());
        event.min_rtt_us = micros((cx.min_rtt != Span::MAX).then_some(cx.min_rtt));
        event.open = matches!(cx.state, State::Open | State::Disorder).into();
        event.kind = kind;
        let loaded = event.window;
        self.engine.step(&mut self.call);
        self.call.event.window.store(&loaded, w);
    }
}

impl CongestionControl for KernelMdcc {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.started = true;
        self.step(cx, w, START);
    }

    fn on_sent(&mut self, _: &Context, _: &mut Window, sent: &Sent) {
        self.ledger.on_sent(sent.number, sent.retransmission);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.call.event.rtt_us = micros(sample.rtt);
        self.step(cx, w, SAMPLE);
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        let event = &mut self.call.event;
        event.number = packet.number as u32; // wraps
        event.segments = 1;
        match packet.fate {
            PacketOutcome::Acked { rtt, .. } => {
                let found = self.ledger.on_acked(packet.number);
                let (seen, called_missing) = found.unwrap_or_default();
                event.known = found.is_some().into();
                event.called_missing = called_missing.into();
                event.unreported = u32::from(!seen);
                event.sent_at = packet.sent_at.as_nanos();
                event.rtt_us = micros(Some(rtt));
                self.step(cx, w, ACKED);
            }
            PacketOutcome::Seen { .. } => {
                if self.ledger.on_seen(packet.number) {
                    self.step(cx, w, SEEN);
                }
            }
            PacketOutcome::Missing => {
                if self.ledger.on_missing(packet.number) {
                    self.step(cx, w, MISSING);
                }
            }
            PacketOutcome::Lost => {
                event.domain = match self.ledger.on_lost(packet.number) {
                    Domain::Internet => 0,
                    Domain::Radio => 1,
                    Domain::Unknown => 2,
                };
                self.step(cx, w, LOST);
            }
            PacketOutcome::Spurious => {}
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.call.event.lost = saturate(event.lost);
        self.call.event.first = event.first.into();
        let kind = match event.kind {
            Signal::Loss => LOSS,
            Signal::Timeout { .. } => TIMEOUT,
            Signal::Ecn => MARK,
        };
        self.step(cx, w, kind);
        if self.call.event.answers == 0 {
            return LossResponse::Own;
        }
        let answer = self.call.event.answer;
        LossResponse::ReduceTo(if answer == u64::MAX { f64::INFINITY } else { answer as f64 / ONE })
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.call.event.segments = saturate(ack.acked);
        self.step(cx, w, ACK);
    }

    fn owns_recovery(&self) -> bool {
        self.is_both()
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        self.step(cx, w, RECOVERED);
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        if self.is_both() {
            return self.step(cx, w, SPURIOUS);
        }
        w.cwnd = w.cwnd.max(prior.cwnd);
        w.ssthresh = w.ssthresh.max(prior.ssthresh);
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        self.call.event.idle = idle.as_nanos();
        self.step(cx, w, IDLE);
    }

    fn on_pep(&mut self, cx: &Context, w: &mut Window, report: &PepReport) {
        // SAFETY: C reads this structure alone.
        let distrusted = unsafe { ranpace_mdcc_distrusted_until(&raw const self.call) };
        let heard = self.started && self.call.settings.listens != 0 && cx.now.as_nanos() >= distrusted;
        if report.new_epoch && heard {
            self.ledger.forget_order();
        }
        let event = &mut self.call.event;
        event.rtt_us = micros(report.rtt);
        event.has_marked = report.marked.is_some().into();
        event.marked = report.marked.unwrap_or(0);
        event.new_epoch = report.new_epoch.into();
        self.step(cx, w, REPORT);
    }
}
