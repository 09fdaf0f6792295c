//! `cubic.h`: CUBIC with HyStart or HyStart++, for controls that need one beside the kernel's own.

use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, Sample, Signal, Window,
};
use ranpace_units::Span;

use crate::driven::Words;
use crate::engine::Engine;

mirror! {
    /// The connection, or the part of the path that a window is for.
    pub struct Path[ranpace_cubic_path_layout] {
        /// Nanoseconds.
        pub now: u64,
        /// Payload of a segment, bytes.
        pub mss: u32,
        /// Smoothed RTT; 0: none.
        pub srtt_us: u32,
        /// Segments since the connection began; wraps.
        pub sent: u32,
        /// Of these.
        pub in_flight: u32,
        /// Whether the window was the limit.
        pub cwnd_limited: u32,
        /// Whether what is sent is spaced.
        pub paced: u32,
    }
}

mirror! {
    /// A window in 2^-32 segments.
    pub struct FixedWindow[ranpace_cubic_window_layout] {
        /// The window.
        pub cwnd: u64,
        /// The threshold; [`u64::MAX`]: none.
        pub ssthresh: u64,
    }
}

mirror! {
    /// One event.
    pub struct Call[ranpace_cubic_call_layout] {
        state: Words<15>,
        /// The connection.
        pub path: Path,
        /// Its window.
        pub window: FixedWindow,
        /// Nanoseconds without anything sent.
        pub idle: u64,
        /// Written: the threshold after a congestion.
        pub answer: u64,
        /// What happened.
        pub event: u32,
        /// Number of the [`SlowStart`], at the start.
        pub kind: u32,
        /// Segments to grow by.
        pub acked: u32,
        /// Of a sample.
        pub rtt_us: u32,
        /// Whether a loss begins an episode.
        pub first: u32,
        unused: u32,
    }
}

flat!(Call: Path, FixedWindow);

unsafe extern "C" {
    fn ranpace_cubic_step(call: *mut Call);
}

const START: u32 = 0;
const SAMPLE: u32 = 1;
const LOSS: u32 = 2;
const TIMEOUT: u32 = 3;
const ACK: u32 = 4;
const IDLE: u32 = 5;

/// How slow start ends without loss, as `cubic.h` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// HyStart as in Linux.
    Classic = 0,
    /// HyStart++.
    PlusPlus = 1,
    /// By loss alone.
    Off = 2,
}

/// Segments as 2^-32.
pub const ONE: f64 = 4_294_967_296.0;

impl From<&Window> for FixedWindow {
    fn from(w: &Window) -> Self {
        let fixed = |segments: f64| (segments.min(1_048_576.0) * ONE) as u64;
        Self {
            cwnd: fixed(w.cwnd),
            ssthresh: if w.ssthresh.is_finite() { fixed(w.ssthresh) } else { u64::MAX },
        }
    }
}

impl FixedWindow {
    /// Writes what has changed since it was `loaded`.
    pub fn store(&self, loaded: &Self, w: &mut Window) {
        if self.cwnd != loaded.cwnd {
            w.cwnd = self.cwnd as f64 / ONE;
        }
        if self.ssthresh != loaded.ssthresh {
            w.ssthresh = if self.ssthresh == u64::MAX { f64::INFINITY } else { self.ssthresh as f64 / ONE };
        }
    }
}

impl From<&Context> for Path {
    fn from(cx: &Context) -> Self {
        let saturate = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            now: cx.now.as_nanos(),
            mss: saturate(cx.mss.get()),
            srtt_us: saturate(cx.srtt.as_micros()),
            sent: cx.next_packet as u32, // wraps
            in_flight: saturate(cx.in_flight),
            cwnd_limited: cx.cwnd_limited.into(),
            paced: cx.paced.into(),
        }
    }
}

/// CUBIC by `cubic.h`.
#[derive(Debug)]
pub struct KernelCubic {
    call: Call,
    engine: Engine<Call>,
}

impl KernelCubic {
    /// A fresh one, worked out natively.
    pub fn new(kind: SlowStart) -> Self {
        // SAFETY: C reads and writes this structure alone, whose layout a test compares.
        Self::with_engine(kind, Engine::new(|call| unsafe { ranpace_cubic_step(call) }))
    }

    /// A fresh one, worked out by `engine`.
    pub fn with_engine(kind: SlowStart, engine: Engine<Call>) -> Self {
        Self { call: Call { kind: kind as u32, ..Call::default() }, engine }
    }

    fn step(&mut self, cx: &Context, w: &mut Window, event: u32) {
        self.call.path = cx.into();
        self.call.window = (&*w).into();
        self.call.event = event;
        let loaded = self.call.window;
        self.engine.step(&mut self.call);
        self.call.window.store(&loaded, w);
    }
}

impl CongestionControl for KernelCubic {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.step(cx, w, START);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.call.rtt_us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
            self.step(cx, w, SAMPLE);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.call.first = event.first.into();
        self.step(cx, w, if matches!(event.kind, Signal::Timeout { .. }) { TIMEOUT } else { LOSS });
        let known = self.call.answer != u64::MAX;
        LossResponse::ReduceTo(if known { self.call.answer as f64 / ONE } else { f64::INFINITY })
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.call.acked = u32::try_from(ack.acked).unwrap_or(u32::MAX);
        self.step(cx, w, ACK);
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        self.call.idle = idle.as_nanos();
        self.step(cx, w, IDLE);
    }
}

impl LossBased for KernelCubic {
    fn recalc_ssthresh(&mut self, cx: &Context, w: &Window) -> f64 {
        self.call.first = 1;
        self.step(cx, &mut w.clone(), LOSS);
        self.call.answer as f64 / ONE
    }
}

#[cfg(test)]
mod tests {
    unsafe extern "C" {
        fn ranpace_cubic_k(distance: u32) -> u64;
    }

    #[test]
    fn k_is_the_cube_root_of_the_distance_over_c() {
        for distance in (1..2_000).chain((1..524).map(|step| step * 2_000)) {
            let exact = (f64::from(distance) * 1024.0 / 410.0).cbrt();
            // SAFETY: it takes and returns a number.
            let k = unsafe { ranpace_cubic_k(distance) } as f64 / f64::from(1 << 20);
            assert!((k / exact - 1.0).abs() < 1.0 / 65_536.0, "{distance}: {k}, {exact}");
        }
    }
}
