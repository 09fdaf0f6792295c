//! `rapid.h` around a parent, as a program has it around the kernel's CUBIC.

use ranpace_cc::{
    Ack, Allocation, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, Signal, Window,
};
use ranpace_units::Span;

use crate::engine::Engine;
use crate::flow::{self, Flow};
use crate::parent;

mirror! {
    /// What the options set.
    pub struct Settings[ranpace_rapid_settings_layout] {
        /// Whether to pace at the allocated rate.
        pub pacing: u32,
    }
}

mirror! {
    /// What the proxy writes.
    pub struct KernelAllocation[ranpace_rapid_allocation_layout] {
        /// Bytes of payload a second.
        pub rate: u64,
        /// Bytes of payload.
        pub window: u64,
        /// 0: withdrawn.
        pub valid: u32,
        unused: u32,
    }
}

mirror! {
    /// What is kept for a socket.
    pub struct KernelState[ranpace_rapid_state_layout] {
        allocation: KernelAllocation,
        driven: u32,
        collapsed: u32,
    }
}

mirror! {
    /// One event.
    pub struct Call[ranpace_rapid_call_layout] {
        /// What the options set.
        pub settings: Settings,
        /// What happened.
        pub event: u32,
        /// What is kept for the socket.
        pub state: KernelState,
        /// The connection.
        pub flow: Flow,
        /// An allocation that came.
        pub allocation: KernelAllocation,
        /// An acknowledgement.
        pub ack: flow::Ack,
        /// Whether the parent is to answer, or to begin afresh.
        pub verdict: u32,
    }
}

flat!(Call: Settings, KernelState, KernelAllocation, Flow, flow::Ack);

unsafe extern "C" {
    fn ranpace_rapid_step(call: *mut Call);
}

/// The events of `rapid.h`.
const ON_ALLOCATION: u32 = 0;
const ON_LOSS: u32 = 1;
const ON_TIMEOUT: u32 = 2;
const ON_ACK: u32 = 3;
const ON_SPURIOUS: u32 = 4;
const ON_OTHER: u32 = 5;

impl From<Option<Allocation>> for KernelAllocation {
    fn from(allocation: Option<Allocation>) -> Self {
        allocation.map_or_else(Self::default, |allocation| Self {
            rate: allocation.rate.bits_per_s() / 8,
            window: allocation.window.get(),
            valid: 1,
            unused: 0,
        })
    }
}

/// The kernel's RAPID sender with CUBIC of `logic/cc` for the kernel's.
#[derive(Debug)]
pub struct KernelRapid {
    cubic: Box<dyn LossBased>,
    call: Call,
    engine: Engine<Call>,
}

impl KernelRapid {
    /// A fresh one, worked out natively.
    pub fn new(settings: Settings) -> Self {
        // SAFETY: C reads and writes this structure alone, whose layout a test compares.
        Self::with_engine(settings, Engine::new(|call| unsafe { ranpace_rapid_step(call) }))
    }

    /// A fresh one, worked out by `engine`.
    pub fn with_engine(settings: Settings, engine: Engine<Call>) -> Self {
        Self { cubic: parent("cubic"), call: Call { settings, ..Call::default() }, engine }
    }

    fn step(&mut self, cx: &Context, w: &mut Window, event: u32) -> bool {
        self.call.flow.load(cx, w);
        self.call.event = event;
        let loaded = self.call.flow;
        self.engine.step(&mut self.call);
        self.call.flow.store(&loaded, cx, w);
        self.call.verdict != 0
    }

    fn is_driven(&self) -> bool {
        self.call.state.driven != 0
    }
}

impl CongestionControl for KernelRapid {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(self.cubic.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(self.cubic.as_mut())
    }

    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.cubic.on_start(cx, w);
        self.step(cx, w, ON_OTHER);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        if !self.is_driven() {
            self.cubic.on_sample(cx, w, sample);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let kind = if matches!(event.kind, Signal::Timeout { .. }) { ON_TIMEOUT } else { ON_LOSS };
        if self.step(cx, w, kind) { self.cubic.on_congestion(cx, w, event) } else { LossResponse::Own }
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if !self.is_driven() {
            self.cubic.on_ack(cx, w, ack);
        }
        self.call.ack = ack.into();
        self.step(cx, w, ON_ACK);
    }

    fn owns_recovery(&self) -> bool {
        self.is_driven()
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        if !self.is_driven() {
            self.cubic.on_recovered(cx, w);
        }
        self.step(cx, w, ON_OTHER);
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        if self.step(cx, w, ON_SPURIOUS) {
            self.cubic.on_spurious(cx, w, prior);
        }
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        if self.is_driven() {
            self.step(cx, w, ON_OTHER);
        } else {
            self.cubic.on_idle_restart(cx, w, idle);
        }
    }

    fn on_allocation(&mut self, cx: &Context, w: &mut Window, allocation: Option<Allocation>) {
        self.call.allocation = allocation.into();
        if self.step(cx, w, ON_ALLOCATION) {
            self.cubic = parent("cubic");
            self.cubic.on_start(cx, w);
        }
    }
}
