//! Adapts one of our congestion controls to noq's controller interface.
//!
//! noq calls its controller while it is processing an acknowledgement; our interface reports the whole acknowledgement, in a
//! fixed order (see the documentation of `ranpace_cc::interface`). The adapter therefore records noq's calls and passes them
//! to the control once noq has finished: when noq next asks for the window, or when its driver says so ([`Control::settle`]).
//!
//! Source of the window's behaviour: RFC 9002, sections 7 and B, where TCP would use PRR. On the first loss or mark of an
//! episode the control's response becomes window and threshold at once (7.3.2); acknowledgements of packets sent before do
//! not grow the window (7.3.2, B.5); the episode ends when a packet sent later is acknowledged. A response of `Ignore`
//! changes nothing: no window, no threshold, no episode. Persistent congestion (7.6.2) is reported as a repeated timeout, and
//! reduces the window to two packets.
//!
//! Computed here, because noq does not report it: packets in flight in order of sending, delivery-rate samples
//! (draft-cheng-iccrg-delivery-rate-estimation) and the smallest RTT. If the driver supplies the smoothed RTT, the RTT sample
//! is derived from it and excludes the acknowledgement delay that the receiver reports (RFC 9002, 5.3); otherwise it includes
//! the delay.
//!
//! Ours: a packet is a segment of the interface, with the size of a full QUIC packet, header and tag included, as RFC 9002
//! counts. Packets of the handshake are not reported, and the window stays constant until it is complete.

mod batches;
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
    Allocation, CongestionControl, Context, EcnUse, Pacing, PathMemory, PepReport, RadioHint, ReceiverReport,
    State, Window,
};
use ranpace_units::{Bytes, Ecn, Span, Time};

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
    /// Packets and bytes of those that the peer has received.
    pub acked: u64,
    /// See `acked`.
    pub acked_bytes: Bytes,
    /// Packets and bytes of those declared lost; their content was retransmitted if it still mattered.
    pub lost: u64,
    /// See `lost`.
    pub lost_bytes: Bytes,
    /// Episodes begun by losses.
    pub recoveries: u64,
    /// Reductions caused by marks.
    pub ecn_reductions: u64,
    /// Reductions undone.
    pub undone: u64,
    /// Occurrences of persistent congestion.
    pub persistent: u64,
}

/// One of our controls, shared with the noq connection that it controls.
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

    /// Wraps a control for a connection that noq's own endpoint drives by the real clock, so that nobody calls [`Self::start`],
    /// [`Self::settle`] or [`Self::on_deadline`]. `packet` is the size of a full QUIC packet at the beginning.
    ///
    /// The control starts when noq reports the first acknowledgement. Its deadlines run when noq next reports a packet.
    pub fn driven_by_noq(control: Box<dyn CongestionControl>, packet: Bytes, clock: Clock) -> Self {
        let config = Config { mtu: packet + Bytes::new(HEADERS), ..Config::default() };
        let mut core = Core::new(control, &config, clock);
        core.driven_by_noq = true;
        Self(Arc::new(Mutex::new(core)))
    }

    /// No code panics while holding the lock; even if some did, continuing would be the best option.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The factory from which noq creates its controller.
    pub fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// A controller of noq that asks this control.
    pub fn controller(self) -> Box<dyn Controller> {
        Box::new(Adapter(self))
    }

    /// The handshake is complete; packets count from here on. `smoothed` is its RTT, if it gave one.
    pub fn start(&self, now: Time, smoothed: Option<Span>) {
        self.core().start(now, smoothed);
    }

    /// noq has finished with a datagram or a timer: passes the recorded events to the control. `smoothed` is noq's current
    /// estimate of the RTT. Returns the RTT sample, if there was one.
    pub fn settle(&self, now: Time, smoothed: Option<Span>) -> Option<Span> {
        let mut core = self.core();
        core.now = now;
        core.settle(smoothed)
    }

    /// The peer has counted this many marked packets so far, in a packet that noq is about to process.
    pub(crate) fn on_marked(&self, marked: u64) {
        let mut core = self.core();
        // Counts of an acknowledgement that was overtaken are lower.
        let more = marked.saturating_sub(core.marked);
        core.marked += more;
        core.untold_marks += more;
    }

    /// The code point of packets that noq sends ECN-capable.
    pub(crate) fn codepoint(&self) -> Ecn {
        match self.core().control.ecn() {
            EcnUse::NotEct => Ecn::NotEct,
            // ABC's brakes are not counted, so that its code point would be a false promise to L4S queues.
            EcnUse::Classic | EcnUse::Abc => Ecn::Ect0,
            EcnUse::Scalable => Ecn::Ect1,
        }
    }

    /// noq has stopped to send ECN-capable: the path failed its validation (RFC 9000, section 13.4.2). A control that relied on counted
    /// marks is told once.
    pub(crate) fn on_ecn_failed(&self, now: Time) {
        self.core().on_ecn_failed(now);
    }

    /// Starts recording which packets are acknowledged.
    pub(crate) fn log_acked(&self) {
        self.core().acked = Some(Vec::new());
    }

    /// Starts recording which packets are sent, for [`Self::take_sent`]; what was recorded before is forgotten.
    pub fn log_sent(&self) {
        self.core().sent = Some(Default::default());
    }

    /// The number, in the order of sending, of the packet in a datagram of this length: that which was sent first of those that were
    /// not taken yet. `None` if that has another length, so that the datagram has no packet that counts, such as an acknowledgement
    /// alone. To be called for each datagram in the order of sending.
    pub fn take_sent(&self, length: u64) -> Option<u64> {
        let mut core = self.core();
        let sent = core.sent.as_mut()?;
        let (number, _) = *sent.front().filter(|(_, bytes)| u64::from(*bytes) == length)?;
        sent.pop_front();
        Some(number)
    }

    /// Returns whether this is the same control.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns whether the control wants to hear of each packet, as those do that go by what a proxy has seen.
    pub fn wants_packets(&self) -> bool {
        self.core().wants_packets
    }

    /// Passes on the packets acknowledged since the last call, by their number in the order of sending.
    pub(crate) fn each_acked(&self, each: impl FnMut(u64)) {
        if let Some(acked) = &mut self.core().acked {
            acked.drain(..).for_each(each);
        }
    }

    /// The current window.
    pub fn window(&self) -> Window {
        self.core().window
    }

    /// Bytes that may be in flight.
    pub fn window_bytes(&self) -> Bytes {
        Bytes::new(self.core().window_bytes())
    }

    /// Size of a full packet, header and tag included.
    pub fn packet(&self) -> Bytes {
        Bytes::new(self.core().payload)
    }

    /// Returns whether the window has no room for a full packet.
    pub fn is_full(&self) -> bool {
        let core = self.core();
        core.started && core.records.in_flight_bytes() + core.payload > core.window_bytes()
    }

    /// Bytes in the network, as far as is known.
    pub fn in_flight(&self) -> Bytes {
        Bytes::new(self.core().records.in_flight_bytes())
    }

    /// The control's pace, if it sets one.
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

    /// Returns whether the control wants radio information.
    pub fn wants_radio(&self) -> bool {
        self.core().control.wants_radio()
    }

    /// Radio information for the control.
    pub fn on_radio(&self, now: Time, hint: &RadioHint) {
        self.with(now, |control, cx, window| control.on_radio(cx, window, hint));
    }

    /// What the peer's receiver half has measured, for the control.
    pub fn on_report(&self, now: Time, report: &ReceiverReport) {
        self.with(now, |control, cx, window| control.on_report(cx, window, report));
    }

    /// A proxy's report for the control.
    pub fn on_pep(&self, now: Time, report: &PepReport) {
        self.with(now, |control, cx, window| control.on_pep(cx, window, report));
    }

    /// A proxy's share of the radio bandwidth for this connection, or none.
    pub fn on_allocation(&self, now: Time, allocation: Option<Allocation>) {
        self.with(now, |control, cx, window| control.on_allocation(cx, window, allocation));
    }

    /// The path has changed.
    pub fn on_path_change(&self, now: Time) {
        self.with(now, |control, cx, window| control.on_path_change(cx, window));
    }

    /// When to call [`Self::on_deadline`].
    pub fn next_deadline(&self) -> Option<Time> {
        self.core().control.next_deadline()
    }

    /// Runs the control's deadline if it is due.
    pub fn on_deadline(&self, now: Time) {
        self.core().on_deadline(now);
    }

    /// Sets the target of a control that has one; returns false for others.
    pub fn set_target(&self, target: Span) -> bool {
        self.core().control.set_target(target)
    }

    /// Passes on what other connections of this host have learned about the path, before this one is established.
    pub fn recall(&self, memory: PathMemory) {
        self.core().control.recall(memory);
    }

    /// Returns what the control has learned about the path, for other connections of this host.
    pub fn memory(&self) -> Option<PathMemory> {
        self.core().control.memory()
    }

    /// Shows the control's values.
    pub fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.core().control.inspect(show);
    }

    fn with(&self, now: Time, tell: impl FnOnce(&mut dyn CongestionControl, &Context, &mut Window)) {
        self.core().with(now, tell);
    }
}

struct Factory(Control);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        self.0.clone().controller()
    }
}

/// noq's controller: forwards to the shared control.
#[derive(Clone, Debug)]
pub struct Adapter(Control);

impl Adapter {
    /// The control behind it.
    pub fn control(&self) -> Control {
        self.0.clone()
    }
}

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
        if core.driven_by_noq && !core.started {
            // noq updates its estimate only after it has reported the acknowledgement.
            core.start(now, Some(now - sent));
        }
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
        // noq calls this before it reports the packets of the acknowledgement that shows the mistake, and without a time.
        let mut core = self.0.core();
        core.settle(None);
        core.batch.spurious = true;
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.on_packet_size(new_mtu);
    }

    fn window(&self) -> u64 {
        self.0.settled_window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut core = self.0.core();
        core.settle(None);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = core.window_bytes();
        match core.window.pacing {
            // The rate counts bytes on the wire; noq counts QUIC packets.
            Pacing::Rate(rate) => {
                let bytes = rate.bits_per_s() / 8;
                let wire = core.payload + HEADERS;
                metrics.pacing_rate =
                    Some((u128::from(bytes) * u128::from(core.payload) / u128::from(wire)) as u64);
            }
            Pacing::Unlimited if core.paces => {}
            // noq does not pace windows of more than four gigabytes; the limit on its data in flight is `window`.
            Pacing::Unlimited => metrics.congestion_window = u64::MAX,
        }
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.0.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
