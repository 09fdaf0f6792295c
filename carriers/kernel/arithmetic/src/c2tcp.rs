//! `c2tcp.h` around a parent, as the kernel's program has it around its CUBIC or Reno.

use ranpace_cc::c2tcp::{Params, Tuner};
use ranpace_cc::{Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, Window};

use crate::engine::Engine;
use crate::flow::{self, Flow};

mirror! {
    /// What the options set.
    pub struct Settings[ranpace_c2tcp_settings_layout] {
        /// First `alpha`, in 2^-32.
        pub alpha: u64,
        /// Smallest `alpha` that is tuned to, in 2^-32.
        pub min_alpha: u64,
        /// Largest `alpha` that is tuned to, in 2^-32.
        pub max_alpha: u64,
        /// Nanoseconds between two tunings.
        pub cycle: u64,
        /// Nanoseconds after which MINRTT is measured anew; 0: never.
        pub min_rtt_expiry: u64,
        /// Mean RTT to be met; 0: twice the smallest.
        pub target_us: u32,
        /// Number of the [`Tuner`].
        pub tuner: u8,
        /// Whether the parent goes on in congestion avoidance after a Bad.
        pub avoidance_after_bad: u8,
        /// Whether Good counts in whole segments.
        pub integer_boost: u8,
        /// Whether an RTT equal to the setpoint is not Good.
        pub strict: u8,
        /// Whether RTTs are compared in whole milliseconds.
        pub whole_ms: u8,
        /// As the authors' code.
        pub kernel_compat: u8,
        /// Whether to pace.
        pub pace: u8,
        unused: [u8; 5],
    }
}

mirror! {
    /// What is kept for a socket. `c2tcp.h` says what each is.
    pub struct KernelState[ranpace_c2tcp_state_layout] {
        alpha: u64,
        setpoint: u64,
        interval: u64,
        next_time: u64,
        min_rtt_at: u64,
        due: u64,
        rtt_sum_us: u64,
        fraction: u64,
        samples: u32,
        app_limited: u32,
        min_rtt_us: u32,
        own_target_us: u32,
        n: u32,
        boost: u32,
        cwnd: u32,
        bads: u32,
        condition: u32,
        ssthresh: u32,
    }
}

mirror! {
    /// One event.
    pub struct Call[ranpace_c2tcp_call_layout] {
        /// What the options set.
        pub settings: Settings,
        /// What is kept for the socket.
        pub state: KernelState,
        /// The connection.
        pub flow: Flow,
        /// The acknowledgement, of a sample.
        pub ack: flow::Ack,
        /// What happened.
        pub event: u32,
        /// Of a cut: the parent's answer.
        pub parents_ssthresh: u32,
        /// Of a sample, written: what the glue is to do.
        pub verdict: u32,
        unused: [u32; 2],
    }
}

flat!(Call: Settings, KernelState, Flow, flow::Ack);

unsafe extern "C" {
    fn ranpace_c2tcp_step(call: *mut Call);
}

/// The events of `c2tcp.h`.
const ON_SAMPLE: u32 = 0;
const ON_CUT: u32 = 1;
const ON_ACK: u32 = 2;
/// Its verdict after which the glue asks the parent and cuts.
const CUT: u32 = 2;

impl From<&Params> for Settings {
    /// `deaf` is not in the kernel: its CUBIC does not show portably when its epoch began.
    fn from(params: &Params) -> Self {
        let q32 = |alpha: f64| (alpha * (1u64 << 32) as f64) as u64;
        Self {
            alpha: q32(params.alpha),
            min_alpha: q32(params.min_alpha),
            max_alpha: q32(params.max_alpha),
            cycle: params.cycle.as_nanos(),
            min_rtt_expiry: params.min_rtt_expiry.as_nanos(),
            target_us: u32::try_from(params.target.as_micros()).unwrap_or(u32::MAX),
            tuner: match params.tuner {
                Tuner::Algorithm3 => 0,
                Tuner::Equation16 => 1,
                Tuner::Memoryless => 2,
                Tuner::Off => 3,
            },
            avoidance_after_bad: params.avoidance_after_bad.into(),
            integer_boost: params.integer_boost.into(),
            strict: params.strict.into(),
            whole_ms: params.whole_ms.into(),
            kernel_compat: params.kernel_compat.into(),
            pace: params.pace.into(),
            unused: [0; 5],
        }
    }
}

/// The kernel's C2TCP over a parent of `logic/cc`.
#[derive(Debug)]
pub struct KernelC2tcp {
    parent: Box<dyn LossBased>,
    call: Call,
    engine: Engine<Call>,
}

impl KernelC2tcp {
    /// A fresh one, worked out natively.
    pub fn new(parent: Box<dyn LossBased>, settings: Settings) -> Self {
        // SAFETY: C reads and writes this structure alone, whose layout a test compares.
        Self::with_engine(parent, settings, Engine::new(|call| unsafe { ranpace_c2tcp_step(call) }))
    }

    /// A fresh one, worked out by `engine`.
    pub fn with_engine(parent: Box<dyn LossBased>, settings: Settings, engine: Engine<Call>) -> Self {
        Self { parent, call: Call { settings, ..Call::default() }, engine }
    }

    fn step(&mut self, cx: &Context, w: &mut Window, event: u32) {
        self.call.flow.load(cx, w);
        self.call.event = event;
        let loaded = self.call.flow;
        self.engine.step(&mut self.call);
        self.call.flow.store(&loaded, cx, w);
    }
}

impl CongestionControl for KernelC2tcp {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(self.parent.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(self.parent.as_mut())
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.parent.on_sample(cx, w, sample);
        self.call.ack = sample.into();
        self.step(cx, w, ON_SAMPLE);
        if self.call.verdict == CUT {
            self.call.parents_ssthresh = self.parent.recalc_ssthresh(cx, w) as u32;
            w.cwnd = w.cwnd.floor(); // snd_cwnd_cnt = 0
            self.step(cx, w, ON_CUT);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.parent.on_congestion(cx, w, event)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.parent.on_ack(cx, w, ack);
        self.step(cx, w, ON_ACK);
    }
}
