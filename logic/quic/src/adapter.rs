//! A congestion control of ours as noq's controller.
//!
//! noq calls its controller in the middle of what it does with an acknowledgement; our interface is told of the whole of
//! it, in a fixed order (the head of `ranpace_cc::interface`). So the adapter notes what noq says, and tells the control
//! when noq is through: when it next asks for the window, or when its driver says so ([`Control::settle`]).
//!
//! Source of what happens to the window: RFC 9002, sections 7 and B, where PRR would act under TCP. On the first loss or
//! mark of an episode the control's answer becomes window and threshold at once (7.3.2); acknowledgements of what was
//! sent before do not grow the window (7.3.2, B.5); the episode ends with an acknowledgement of what was sent later. An
//! answer of `Ignore` changes nothing at all: no window, no threshold, no episode. Persistent congestion (7.6.2) is told as
//! a timeout that is not the first, and brings the window to two packets.
//!
//! Computed here, because noq does not tell it: packets in flight in order of their sending, delivery-rate samples
//! (draft-cheng-iccrg-delivery-rate-estimation) and the smallest RTT. The sample of the RTT is without the delay that the
//! receiver says its acknowledgement had (RFC 9002, 5.3), where the driver tells the smoothed RTT, from which it follows;
//! and with it otherwise.
//!
//! Ours: a packet is a segment of the interface, and its size that of a full QUIC packet, header and tag included, as
//! RFC 9002 counts. Packets of the handshake are not told, and the window does not move before it is complete.

mod events;
mod pep;
mod records;

use core::fmt;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use ranpace_cc::{
    Allocation, CongestionControl, Context, Pacing, PathMemory, PepReport, RadioHint, State, Window,
};
use ranpace_units::{Bytes, Span, Time};

use self::events::{Core, Losses};
pub use self::pep::PepView;
use crate::clock::Clock;
use crate::config::{Config, HEADERS};

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Ack-eliciting packets sent since the handshake.
    pub sent: u64,
    /// Their bytes, header and tag included.
    pub sent_bytes: Bytes,
    /// Of those, packets and bytes that the peer has.
    pub acked: u64,
    /// See `acked`.
    pub acked_bytes: Bytes,
    /// Of those, packets and bytes taken for lost; what they carried was sent again, if it still mattered.
    pub lost: u64,
    /// See `lost`.
    pub lost_bytes: Bytes,
    /// Episodes begun by losses.
    pub recoveries: u64,
    /// Reductions that marks began.
    pub ecn_reductions: u64,
    /// Reductions taken back.
    pub undone: u64,
    /// Persistent congestion found.
    pub persistent: u64,
}

/// A control of ours, shared with the noq connection that it controls.
#[derive(Clone)]
pub struct Control(Arc<Mutex<Core>>);

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.core();
        f.debug_struct("Control").field("control", &core.control).field("window", &core.window).finish()
    }
}

impl Control {
    /// Wraps a control for a connection with these settings.
    pub fn new(control: Box<dyn CongestionControl>, config: &Config, clock: Clock) -> Self {
        Self(Arc::new(Mutex::new(Core::new(control, config, clock))))
    }

    /// Nobody panics while holding it; and if somebody did, there would be nothing better to do than to go on.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What noq takes to make its controller.
    pub fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// The handshake is complete; from here on packets count. `smoothed` is its RTT, if it gave one.
    pub fn start(&self, now: Time, smoothed: Option<Span>) {
        let mut core = self.core();
        core.settle(None);
        core.started = true;
        core.now = now;
        if let Some(rtt) = smoothed {
            (core.smoothed, core.min_rtt, core.latest) = (rtt, rtt, Some(rtt));
        }
        (core.delivered_at, core.first_sent_at, core.last_sent_at) = (now, now, now);
        let cx = core.context(now);
        let core = &mut *core;
        core.control.on_start(&cx, &mut core.window);
    }

    /// noq is through with a datagram or a timer: tells the control what happened. `smoothed` is noq's estimate of the RTT
    /// now. Returns the sample of the RTT that there was.
    pub fn settle(&self, now: Time, smoothed: Option<Span>) -> Option<Span> {
        let mut core = self.core();
        core.now = now;
        core.settle(smoothed)
    }

    /// From here on it is noted which packets are acknowledged.
    pub(crate) fn log_acked(&self) {
        self.core().acked = Some(Vec::new());
    }

    /// The packets that were acknowledged since the last call, by their place in the order of sending.
    pub(crate) fn each_acked(&self, each: impl FnMut(u64)) {
        if let Some(acked) = &mut self.core().acked {
            acked.drain(..).for_each(each);
        }
    }

    /// The window as it stands.
    pub fn window(&self) -> Window {
        self.core().window
    }

    /// Bytes that may be in flight.
    pub fn window_bytes(&self) -> Bytes {
        Bytes::new(self.core().window_bytes())
    }

    /// Whether a full packet has no room in the window.
    pub fn is_full(&self) -> bool {
        let core = self.core();
        core.started && core.records.in_flight_bytes() + core.payload > core.window_bytes()
    }

    /// Bytes in the network as far as is known.
    pub fn in_flight(&self) -> Bytes {
        Bytes::new(self.core().records.in_flight_bytes())
    }

    /// The rate that the control sets, if it sets one.
    pub fn pacing(&self) -> Pacing {
        self.core().window.pacing
    }

    /// The smoothed RTT; zero before the first sample.
    pub fn smoothed(&self) -> Span {
        self.core().smoothed
    }

    /// The newest RTT sample.
    pub fn latest(&self) -> Option<Span> {
        self.core().latest
    }

    /// Recovery's state.
    pub fn state(&self) -> State {
        self.core().state
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        self.core().stats
    }

    /// Whether the control wants to know of the radio.
    pub fn wants_radio(&self) -> bool {
        self.core().control.wants_radio()
    }

    /// Radio information for the control.
    pub fn on_radio(&self, now: Time, hint: &RadioHint) {
        self.with(now, |control, cx, window| control.on_radio(cx, window, hint));
    }

    /// A proxy's report for the control.
    pub fn on_pep(&self, now: Time, report: &PepReport) {
        self.with(now, |control, cx, window| control.on_pep(cx, window, report));
    }

    /// A proxy's share of the radio bandwidth for this connection, or none.
    pub fn on_allocation(&self, now: Time, allocation: Option<Allocation>) {
        self.with(now, |control, cx, window| control.on_allocation(cx, window, allocation));
    }

    /// The path is another one.
    pub fn on_path_change(&self, now: Time) {
        self.with(now, |control, cx, window| control.on_path_change(cx, window));
    }

    /// When [`Self::on_deadline`] is to be called.
    pub fn next_deadline(&self) -> Option<Time> {
        self.core().control.next_deadline()
    }

    /// The control's deadline has come, if it has one that has.
    pub fn on_deadline(&self, now: Time) {
        if self.next_deadline().is_some_and(|at| at <= now) {
            self.with(now, |control, cx, window| control.on_deadline(cx, window));
        }
    }

    /// Sets the target of a control that has one; false if it has none.
    pub fn set_target(&self, target: Span) -> bool {
        self.core().control.set_target(target)
    }

    /// What other connections of this host have learned of the path, before this one is established.
    pub fn recall(&self, memory: PathMemory) {
        self.core().control.recall(memory);
    }

    /// Knowledge of the control about the path, for other connections of this host.
    pub fn memory(&self) -> Option<PathMemory> {
        self.core().control.memory()
    }

    /// Shows what the control shows.
    pub fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.core().control.inspect(show);
    }

    fn with(&self, now: Time, tell: impl FnOnce(&mut dyn CongestionControl, &Context, &mut Window)) {
        let mut core = self.core();
        let core = &mut *core;
        core.settle(None);
        core.now = now;
        let cx = core.context(now);
        tell(core.control.as_mut(), &cx, &mut core.window);
    }
}

struct Factory(Control);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Adapter(self.0.clone()))
    }
}

/// noq's controller: passes on to the control that it shares.
#[derive(Clone, Debug)]
pub struct Adapter(Control);

impl Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let mut core = self.0.core();
        let now = core.clock.time(now);
        core.on_sent(now, pn, bytes.into());
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        _bytes: u64,
        pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        let mut core = self.0.core();
        let (now, sent) = (core.clock.time(now), core.clock.time(sent));
        core.on_acked(now, sent, pn);
    }

    fn on_end_acks(&mut self, now: Instant, _in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let mut core = self.0.core();
        let now = core.clock.time(now);
        core.on_end_acks(now, app_limited, largest);
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, now: Instant) {
        let mut core = self.0.core();
        let now = core.clock.time(now);
        core.on_lost(now, pn);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let mut core = self.0.core();
        let (now, sent) = (core.clock.time(now), core.clock.time(sent));
        core.begin(now);
        if is_ecn {
            core.batch.marked_at = Some(sent);
        } else {
            core.batch.losses = Some(Losses { persistent: is_persistent_congestion });
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        // Comes before the packets of the acknowledgement that shows it, and does not say when.
        let mut core = self.0.core();
        core.settle(None);
        core.batch.spurious = true;
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let mut core = self.0.core();
        core.settle(None);
        core.payload = new_mtu.into();
    }

    fn window(&self) -> u64 {
        let mut core = self.0.core();
        core.settle(None);
        core.window_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut core = self.0.core();
        core.settle(None);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = core.window_bytes();
        match core.window.pacing {
            // The rate is of bytes on the wire; noq counts QUIC packets.
            Pacing::Rate(rate) => {
                let bytes = rate.bits_per_s() / 8;
                let wire = core.payload + HEADERS;
                metrics.pacing_rate =
                    Some((u128::from(bytes) * u128::from(core.payload) / u128::from(wire)) as u64);
            }
            Pacing::Unlimited if core.paces => {}
            // noq does not pace windows of more than four gigabytes; its limit on what is in flight is `window`.
            Pacing::Unlimited => metrics.congestion_window = u64::MAX,
        }
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        let core = self.0.core();
        core.initial_window * core.payload
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
