//! `meld.h` around a parent, as a program has it around the kernel's CUBIC or Reno.

use ranpace_cc::meld::decision::best_block;
use ranpace_cc::meld::{Params, Variant};
use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, RadioHint, Sample, Signal, State,
    View, Window,
};
use ranpace_rnis::Technology;

use crate::engine::Engine;
use crate::flow::Flow;

mirror! {
    /// A report on the user's radio.
    pub struct Report[ranpace_meld_report_layout] {
        /// Nanoseconds; 0: no report.
        pub measured_at: u64,
        /// Largest block of its period, bytes.
        pub block: u32,
        /// The block that its PRBs would carry at CQI 15, bytes.
        pub best_block: u32,
        /// Bytes that wait.
        pub queue: u32,
        /// Bytes that may.
        pub queue_limit: u32,
        /// The cell and its technology.
        pub cell: u32,
        /// HARQ processes of the downlink.
        pub harq_processes: u8,
        /// Whether `block` is valid.
        pub has_block: u8,
        /// Whether `queue_limit` is valid.
        pub has_limit: u8,
        /// Whether the user is on its way to another cell.
        pub handover: u8,
    }
}

mirror! {
    /// What the options set.
    pub struct Settings[ranpace_meld_settings_layout] {
        /// Nanoseconds; 0: three periods, at least 50 ms.
        pub max_age: u64,
        /// In 2^-20.
        pub queue_factor: u64,
        /// Bytes; 0: the packet that was lost.
        pub packet: u32,
        /// MELD-ME.
        pub mixed: u8,
        /// 0: the cell's.
        pub harq_processes: u8,
        /// Whether an earlier block stands in for a missing one.
        pub hold_block: u8,
        /// Whether the window is back after a silent timeout.
        pub full_after_timeout: u8,
        /// Whether the guards are on.
        pub guards: u8,
        unused: [u8; 7],
    }
}

mirror! {
    /// Counts of a connection at some time.
    pub struct Mark[ranpace_meld_mark_layout] {
        at: u64,
        delivered: u32,
        lost: u32,
    }
}

mirror! {
    /// What is known of a user's radio.
    pub struct User[ranpace_meld_user_layout] {
        newest: Report,
        scheduled: Report,
        gap: u64,
        gap_before: u64,
        gaps: u32,
        unused: u32,
    }
}

mirror! {
    /// What is kept for a socket. `meld.h` says what each is.
    pub struct KernelState[ranpace_meld_state_layout] {
        round: Mark,
        before: Mark,
        paced_until: u64,
        own_pacing: u64,
        before_timeout: u32,
        restore: u32,
        saved_cwnd: u32,
        saved_ssthresh: u32,
        /// What the kernel's `ssthresh` was answered with.
        pub answered: u32,
        shown_cwnd: u32,
        silent_count: u32,
        silent_packets: u32,
        silent_timeouts: u32,
        notified: [u32; 10],
        begun: u8,
        silent: u8,
        ended: u8,
        unused: u8,
    }
}

mirror! {
    /// A sign of congestion.
    pub struct Loss[ranpace_meld_event_layout] {
        /// Loss, timeout or mark.
        pub kind: u32,
        /// Consecutive timeouts.
        pub count: u32,
        /// Segments newly taken for lost.
        pub lost: u32,
        /// IP packet of the largest, bytes.
        pub largest: u32,
        /// Whether it begins an episode.
        pub first: u32,
    }
}

mirror! {
    /// One event.
    pub struct Call[ranpace_meld_call_layout] {
        /// What the options set.
        pub settings: Settings,
        /// What is known of the user.
        pub user: User,
        /// What is kept for the socket.
        pub state: KernelState,
        /// The connection.
        pub flow: Flow,
        /// A report that came.
        pub report: Report,
        /// A loss.
        pub loss: Loss,
        /// What happened.
        pub event: u32,
        /// What was decided.
        pub verdict: u32,
        unused: u32,
    }
}

flat!(Call: Settings, User, KernelState, Report, Mark, Loss, Flow);

unsafe extern "C" {
    fn ranpace_meld_step(call: *mut Call);
}

/// The events of `meld.h`.
const ON_START: u32 = 0;
const ON_RADIO: u32 = 1;
const ON_SAMPLE: u32 = 2;
const ON_LOSS: u32 = 3;
const ON_RECOVERED: u32 = 4;
const ON_ACK: u32 = 5;
/// The kinds of a loss.
const LOSS: u32 = 0;
const TIMEOUT: u32 = 1;
const ECN: u32 = 2;
/// The verdict of a silent loss; the others say why the parent is notified.
const HIDE: u32 = 0;

impl From<&Params> for Settings {
    /// `radio_at=loss` is not in the kernel.
    fn from(params: &Params) -> Self {
        Self {
            max_age: params.max_age.as_nanos(),
            queue_factor: (params.queue_factor.0 * f64::from(1 << 20)).round() as u64,
            packet: u32::try_from(params.packet.get()).unwrap_or(u32::MAX),
            mixed: (params.variant == Variant::Mixed).into(),
            harq_processes: params.harq_processes as u8, // at most 32
            hold_block: params.hold_block.into(),
            full_after_timeout: params.full_after_timeout.into(),
            guards: params.guards.into(),
            unused: [0; 7],
        }
    }
}

impl From<&RadioHint> for Report {
    /// As the feed fills it.
    fn from(hint: &RadioHint) -> Self {
        let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let technology = match hint.info.technology {
            Technology::Lte => 0,
            Technology::Nr { qam256: false } => 1,
            Technology::Nr { qam256: true } => 2,
            Technology::Mmwave => 3,
        };
        Self {
            measured_at: hint.measured_at.as_nanos(),
            block: hint.tbs_bits.unwrap_or(0) / 8,
            best_block: bytes(best_block(hint).get()),
            queue: bytes(hint.queue.get()),
            queue_limit: bytes(hint.queue_limit.map_or(0, |limit| limit.get())),
            cell: technology << 16 | u32::from(hint.info.cell),
            harq_processes: hint.info.harq_processes.downlink,
            has_block: hint.tbs_bits.is_some().into(),
            has_limit: hint.queue_limit.is_some().into(),
            handover: hint.handover.into(),
        }
    }
}

/// The kernel's MELD before a parent of `logic/cc`.
#[derive(Debug)]
pub struct KernelMeld {
    parent: Box<dyn LossBased>,
    /// The last event.
    pub call: Call,
    /// The connection as the parent saw it last in a silent episode.
    seen: Option<Context>,
    engine: Engine<Call>,
}

impl KernelMeld {
    /// A fresh one, worked out natively.
    pub fn new(parent: Box<dyn LossBased>, settings: Settings) -> Self {
        // SAFETY: C reads and writes this structure alone, whose layout a test compares.
        Self::with_engine(parent, settings, Engine::new(|call| unsafe { ranpace_meld_step(call) }))
    }

    /// A fresh one, worked out by `engine`.
    pub fn with_engine(parent: Box<dyn LossBased>, settings: Settings, engine: Engine<Call>) -> Self {
        Self { parent, call: Call { settings, ..Call::default() }, engine, seen: None }
    }

    fn step(&mut self, cx: &Context, w: &mut Window, event: u32) -> u32 {
        self.call.flow.load(cx, w);
        self.call.event = event;
        let loaded = self.call.flow;
        self.engine.step(&mut self.call);
        self.call.flow.store(&loaded, cx, w);
        self.call.verdict
    }

    fn is_silent(&self) -> bool {
        self.call.state.silent != 0
    }

    fn shown(&self, cx: &Context) -> Context {
        if self.is_silent() { Context { state: State::Open, ..*cx } } else { *cx }
    }
}

impl CongestionControl for KernelMeld {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(self.parent.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(self.parent.as_mut())
    }

    fn view<'a>(&'a mut self, cx: &'a Context, w: &'a mut Window) -> Option<View<'a>> {
        let cx = if self.is_silent() { &*self.seen.insert(self.shown(cx)) } else { cx };
        Some(View { control: self.parent.as_mut(), cx, window: w })
    }

    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.step(cx, w, ON_START);
        self.parent.on_start(cx, w);
    }

    fn wants_radio(&self) -> bool {
        true
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        self.call.report = hint.into();
        self.step(cx, w, ON_RADIO);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.step(cx, w, ON_SAMPLE);
        self.parent.on_sample(&self.shown(cx), w, sample);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let (kind, timeouts) = match event.kind {
            Signal::Loss => (LOSS, 0),
            Signal::Timeout { count } => (TIMEOUT, count),
            Signal::Ecn => (ECN, 0),
        };
        self.call.loss = Loss {
            kind,
            count: timeouts,
            lost: count(event.lost),
            largest: count((event.largest + (cx.wire - cx.mss)).get()),
            first: event.first.into(),
        };
        if self.step(cx, w, ON_LOSS) == HIDE {
            return LossResponse::Ignore;
        }
        let mut shown = Window { cwnd: w.cwnd.max(f64::from(self.call.state.shown_cwnd)), ..*w };
        self.parent.on_congestion(cx, &mut shown, event)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.parent.on_ack(&self.shown(cx), w, ack);
        self.step(cx, w, ON_ACK);
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        if self.step(cx, w, ON_RECOVERED) != 0 {
            self.parent.on_recovered(cx, w);
        }
    }
}
