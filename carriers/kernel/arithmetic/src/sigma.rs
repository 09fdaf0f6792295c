//! `sigma.h` with its guards around the kernel's CUBIC.

use ranpace_cc::sigma::{Average, PMaxRule, Params};
use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, RadioHint, Sample, Sent, Signal,
    Window,
};
use ranpace_phy::Direction;
use ranpace_rnis::CellInfo;
use ranpace_units::Span;

use crate::driven::Words;
use crate::engine::Engine;
use crate::flow::{self, Flow};
use crate::parent;

/// Rates of a row: `SIGMA_UNITS + 1`.
const RATES: usize = 276;

/// Rates by number of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Rates(pub [u32; RATES]);

impl Default for Rates {
    fn default() -> Self {
        Self([0; RATES])
    }
}

mirror! {
    /// What the options set.
    pub struct Settings[ranpace_sigma_settings_layout] {
        /// Factor of C_max, in 2^-32.
        pub efficiency: u64,
        /// Utilisation that counts as 1, in 2^-32, rounded down.
        pub full: u64,
        /// Added to RTTmin.
        pub sr_offset_us: u32,
        /// RTTmin that the device knows already; 0: none.
        pub known_rtt_us: u32,
        /// Number of the [`PMaxRule`].
        pub reach: u8,
        /// The last hint, not a mean.
        pub last_tti: u8,
        /// RTT_last is the smallest of the last four.
        pub least_of_four: u8,
        /// Connections to a destination share RTTmin.
        pub memory: u8,
        /// The window is at most 2 W_max.
        pub cap: u8,
        /// Losses, marks, idle times, limits of the application.
        pub guards: u8,
        /// Tries whether more goes through than is told.
        pub trials: u8,
        unused: u8,
    }
}

mirror! {
    /// How much so many resources carry with one MCS.
    pub struct Row[ranpace_sigma_row_layout] {
        /// Of the cell.
        pub prbs: u16,
        /// Last index of `rates` that counts.
        pub steps: u16,
        /// Whether steps are symbols.
        pub by_symbols: u8,
        unused: [u8; 3],
        /// Bytes a second.
        pub rates: Rates,
    }
}

mirror! {
    /// A hint of the modem.
    pub struct Hint[ranpace_sigma_hint_layout] {
        /// Nanoseconds, when it was measured.
        pub at: u64,
        /// Resources granted to the device, in 2^-16.
        pub own: u32,
        /// Granted to nobody, in 2^-16.
        pub unused: u32,
        /// Bytes a second that go first.
        pub ahead: u32,
        /// Nanoseconds.
        pub tti: u32,
        /// Resources in all; 0: of no use.
        pub cell: u16,
        /// Of the cell.
        pub number: u16,
        /// Active users.
        pub users: u16,
        /// Whether the device was granted something.
        pub granted: u8,
        /// Whether the device is on its way to another cell.
        pub handover: u8,
        /// Of the MCS of the last grant.
        pub row: Row,
    }
}

mirror! {
    /// One event.
    pub struct Event[ranpace_sigma_event_layout] {
        /// The connection.
        pub flow: Flow,
        /// An acknowledgement, or its sample.
        pub ack: flow::Ack,
        /// What happened.
        pub kind: u32,
        /// Nanoseconds without anything sent.
        pub idle: u64,
        /// Window before a reduction that was a mistake, segments.
        pub prior: u32,
        /// Segments newly taken for lost.
        pub lost: u32,
        /// Whether a loss begins an episode.
        pub first: u32,
        /// Written: what the parent is to do.
        pub parent: u32,
    }
}

mirror! {
    /// One event, with what is kept for the socket.
    pub struct Call[ranpace_sigma_call_layout] {
        /// What the options set.
        pub settings: Settings,
        state: Words<2554>,
        /// The event.
        pub event: Event,
        /// Radio information that came.
        pub hint: Hint,
    }
}

flat!(Call: Settings, Event, Hint, Row, Flow, flow::Ack);

unsafe extern "C" {
    fn ranpace_sigma_step(call: *mut Call);
    fn ranpace_sigma_mode(call: *const Call) -> u32;
    fn ranpace_sigma_contradictions(call: *const Call) -> u32;
}

/// The events of `sigma.h`.
const START: u32 = 0;
const SAMPLE: u32 = 1;
const LOSS: u32 = 2;
const TIMEOUT: u32 = 3;
const MARK: u32 = 4;
const ACK: u32 = 5;
const RECOVERED: u32 = 6;
const SPURIOUS: u32 = 7;
const IDLE: u32 = 8;
const HINT: u32 = 9;
/// What the parent is to do.
const PARENT_ANSWERS: u32 = 1;
const PARENT_BEGINS: u32 = 2;
const PARENT_HAS: u32 = 4;
const PARENT_WAITS: u32 = 8;

fn saturate(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl From<&Params> for Settings {
    fn from(params: &Params) -> Self {
        // Rounded down: what is exactly as much counts as full.
        let q32 = |ratio: f64| (ratio * (1u64 << 32) as f64) as u64;
        let micros = |span: Span| saturate(span.as_micros());
        Self {
            efficiency: q32(params.efficiency),
            full: q32(params.full),
            sr_offset_us: micros(params.sr_offset),
            known_rtt_us: params.known_rtt_min.map_or(0, |rtt| micros(rtt).max(1)),
            reach: match params.reach {
                PMaxRule::Reachable => 0,
                PMaxRule::Eq37 => 1,
                PMaxRule::OwnPlusUnused => 2,
            },
            last_tti: (params.average == Average::LastTti).into(),
            least_of_four: params.least_of_four.into(),
            memory: params.memory.into(),
            cap: params.cap.into(),
            guards: params.guards.into(),
            trials: params.trials.into(),
            unused: 0,
        }
    }
}

impl Row {
    fn of(info: &CellInfo, mcs: u8, layers: u8) -> Self {
        let mut row = Self { prbs: info.prbs, by_symbols: info.by_symbols.into(), ..Self::default() };
        let rates = info.rates(Direction::Uplink, mcs, layers);
        for (index, (place, rate)) in (0..).zip(row.rates.0.iter_mut().zip(rates)) {
            *place = saturate(rate.bits_per_s() / 8);
            row.steps = index;
        }
        row
    }
}

impl From<&RadioHint> for Hint {
    /// As the feed fills it.
    fn from(hint: &RadioHint) -> Self {
        // NaN becomes zero.
        let parts = |units: f64| (units.clamp(0.0, f64::from(hint.cell)) * 65_536.0) as u32;
        let own = parts(hint.granted);
        let granted = own > 0 || hint.tbs_bits.is_some();
        let fits = hint.info.by_symbols || usize::from(hint.info.prbs) < RATES;
        Self {
            at: hint.measured_at.as_nanos(),
            own,
            unused: parts(hint.unused),
            ahead: saturate(hint.ahead.bits_per_s() / 8),
            tti: saturate(hint.tti.as_nanos()),
            cell: if fits { hint.cell } else { 0 },
            number: hint.info.cell,
            users: hint.active_users,
            granted: granted.into(),
            handover: hint.handover.into(),
            row: if granted {
                Row::of(&hint.info, hint.mcs, hint.layers)
            } else {
                Row { prbs: hint.info.prbs, ..Row::default() }
            },
        }
    }
}

/// The kernel's SIGMA with CUBIC of `logic/cc` for the kernel's.
#[derive(Debug)]
pub struct KernelSigma {
    cubic: Box<dyn LossBased>,
    call: Call,
    engine: Engine<Call>,
    /// What the parent was to do after the last event.
    parent: u32,
}

impl KernelSigma {
    /// A fresh one, worked out natively.
    pub fn new(settings: Settings) -> Self {
        // SAFETY: C reads and writes this structure alone, whose layout a test compares.
        Self::with_engine(settings, Engine::new(|call| unsafe { ranpace_sigma_step(call) }))
    }

    /// A fresh one, worked out by `engine`.
    pub fn with_engine(settings: Settings, engine: Engine<Call>) -> Self {
        let call = Call { settings, ..Call::default() };
        Self { cubic: parent("cubic"), call, engine, parent: PARENT_HAS }
    }

    /// Who has the window, as `sigma.h` numbers it.
    pub fn mode(&self) -> u32 {
        // SAFETY: C reads this structure alone.
        unsafe { ranpace_sigma_mode(&raw const self.call) }
    }

    /// How often the hints were contradicted.
    pub fn contradictions(&self) -> u32 {
        // SAFETY: as above.
        unsafe { ranpace_sigma_contradictions(&raw const self.call) }
    }

    fn step(&mut self, cx: &Context, w: &mut Window, kind: u32) {
        let event = &mut self.call.event;
        event.flow.load(cx, w);
        event.kind = kind;
        let loaded = event.flow;
        self.engine.step(&mut self.call);
        self.call.event.flow.store(&loaded, cx, w);
        self.parent = self.call.event.parent;
        if self.parent & PARENT_BEGINS != 0 {
            self.cubic = parent("cubic");
            self.cubic.on_start(cx, w);
        }
    }

    fn is_plain(&self) -> bool {
        self.parent & PARENT_HAS != 0
    }
}

impl CongestionControl for KernelSigma {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.step(cx, w, START);
        if self.is_plain() {
            self.cubic.on_start(cx, w);
        }
    }

    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        if self.is_plain() {
            self.cubic.on_sent(cx, w, sent);
        }
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.call.event.ack = sample.into();
        self.step(cx, w, SAMPLE);
        if self.is_plain() {
            self.cubic.on_sample(cx, w, sample);
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
        if self.parent & PARENT_ANSWERS != 0 {
            self.cubic.on_congestion(cx, w, event)
        } else {
            LossResponse::Own
        }
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.call.event.ack = ack.into();
        self.step(cx, w, ACK);
        if self.is_plain() && self.parent & PARENT_WAITS == 0 {
            self.cubic.on_ack(cx, w, ack);
        }
    }

    fn owns_recovery(&self) -> bool {
        !self.is_plain()
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        self.step(cx, w, RECOVERED);
        if self.is_plain() {
            self.cubic.on_recovered(cx, w);
        }
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        self.call.event.prior = prior.cwnd as u32;
        self.step(cx, w, SPURIOUS);
        if self.is_plain() {
            self.cubic.on_spurious(cx, w, prior);
        }
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        self.call.event.idle = idle.as_nanos();
        self.step(cx, w, IDLE);
        if self.is_plain() {
            self.cubic.on_idle_restart(cx, w, idle);
        }
    }

    fn wants_radio(&self) -> bool {
        true
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        self.call.hint = hint.into();
        self.step(cx, w, HINT);
    }
}
