//! What a congestion control may know and what it may set: three traits and the events they get.
//!
//! * [`CongestionControl`]: every control of a sender.
//! * [`LossBased`]: what decorators (C2TCP, MELD) need of the control they wrap.
//! * [`ReceiverHalf`]: what is measured at the receiver and reported to the sender (Sprout's forecast, CDBE).
//!
//! Windows are in segments of [`Context::mss`] bytes, as floats, because the published algorithms are
//! written so; an endpoint sends while whole segments fit. Time is always an argument. `docs/cc-interface.md`
//! has the table of mechanism against hook.
//!
//! Order of the calls for one arriving acknowledgement (C2TCP's specification, section 7):
//! 1. the packets it covers are taken off: [`CongestionControl::on_packet`] each, for those that ask for it;
//! 2. [`CongestionControl::on_sample`], with the RTT, before anything is declared lost;
//! 3. losses are detected: [`CongestionControl::on_packet`] each, then [`CongestionControl::on_congestion`];
//! 4. [`CongestionControl::on_ack`], unless PRR owns the window ([`CongestionControl::owns_recovery`]);
//! 5. the endpoint sends what [`Window`] now allows.
//!
//! A report that an acknowledgement carries comes before all of these ([`CongestionControl::on_report`]), the end or the
//! undoing of a recovery between 2 and 3, an ECN mark's [`CongestionControl::on_congestion`] between 3 and 4.

use core::fmt::Debug;

use ranpace_units::{Bytes, Rate, Span, Time};

pub use ranpace_rnis::RadioHint;

/// What a control sets. The endpoint owns it and lends it with every event; PRR sets `cwnd` through it too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window in segments; whole segments count. Never below 1 when a packet is to be sent.
    pub cwnd: f64,
    /// Slow start threshold in segments; infinite until the first congestion.
    pub ssthresh: f64,
    /// How the segments that fit are spaced.
    pub pacing: Pacing,
}

impl Window {
    /// A fresh window of `initial` segments, unpaced.
    pub const fn new(initial: f64) -> Self {
        Self { cwnd: initial, ssthresh: f64::INFINITY, pacing: Pacing::Unlimited }
    }

    /// Whether the window is below the slow start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows by one per segment acknowledged, up to `ssthresh`; returns the segments that are left over for
    /// congestion avoidance (Linux `tcp_slow_start`; RFC 5681 with byte counting, RFC 3465).
    pub fn slow_start(&mut self, acked: f64) -> f64 {
        let grown = (self.cwnd + acked).min(self.ssthresh.max(self.cwnd));
        let used = grown - self.cwnd;
        self.cwnd = grown;
        acked - used
    }
}

/// How an endpoint spaces its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// As soon as the window allows.
    Unlimited,
    /// At a rate, counted in bytes on the wire, in bursts of about a millisecond as Linux does.
    Rate(Rate),
}

/// Loss recovery's state, as Linux names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum State {
    /// Nothing unusual.
    #[default]
    Open,
    /// Something was selectively acknowledged, nothing is lost yet.
    Disorder,
    /// The window is being reduced after an ECN mark.
    Cwr,
    /// Lost segments are being retransmitted.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The connection as it stands when an event is delivered.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The instant of the event.
    pub now: Time,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// A full segment on the wire, headers included; pacing counts in these.
    pub wire: Bytes,
    /// Smoothed RTT (RFC 6298); zero before the first sample.
    pub srtt: Span,
    /// Smallest RTT of the last 300 s, as Linux keeps it; [`Span::MAX`] before the first sample. A control that wants
    /// another window keeps its own from [`Sample::rtt`]. An endpoint that tells its controls the smoothed RTT in place of samples
    /// (ns-3.26) has the smallest smoothed one here, which is above the path's.
    pub min_rtt: Span,
    /// Segments sent and neither acknowledged nor taken for lost.
    pub in_flight: u64,
    /// Segments delivered since the connection began.
    pub delivered: u64,
    /// Segments lost since the connection began.
    pub lost: u64,
    /// Number that the next packet will carry: packets are numbered in the order they are sent.
    pub next_packet: u64,
    /// Loss recovery's state.
    pub state: State,
    /// Whether the window, not the application, held the sender back lately (Linux `tcp_is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether the application has nothing more to send at the moment.
    pub app_limited: bool,
    /// When pacing lets the next burst begin: at most the length of a burst ahead of `now`, or past (Linux `tcp_wstamp_ns`).
    pub departure: Time,
    /// Whether what is sent is spaced, by the control's own pace or, where it has none, by the endpoint's (Linux
    /// `sk_pacing_status`).
    pub paced: bool,
}

/// One delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Segments delivered over `interval`.
    pub delivered: u64,
    /// The longer of the sending and the acknowledging interval; `None` where no valid sample exists.
    pub interval: Option<Span>,
    /// [`Context::delivered`] when the newest acknowledged packet was sent; ends packet-timed rounds.
    pub prior_delivered: u64,
    /// Whether the sample was limited by the application and may be too low.
    pub app_limited: bool,
    /// Segments newly declared lost on this acknowledgement.
    pub lost: u64,
    /// Whether the acknowledgement may have been held back by the receiver's delayed-ACK timer.
    pub delayed: bool,
}

/// What one acknowledgement measured, before losses are looked for (Linux `pkts_acked`).
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Segments newly delivered (cumulatively or selectively).
    pub delivered: u64,
    /// Bytes newly delivered.
    pub bytes: Bytes,
    /// RTT of the newest packet covered; `None` where only retransmissions without timestamps were.
    pub rtt: Option<Span>,
    /// Time from sender to receiver of the packet that triggered the acknowledgement, by timestamps and so up to a
    /// constant offset between the clocks; `None` without timestamps.
    pub one_way: Option<Span>,
    /// Segments in flight when the newest packet covered was sent.
    pub in_flight_at_send: u64,
}

/// One acknowledgement, after loss detection (Linux `cong_avoid` and `cong_control`).
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Segments to grow the window by: those newly delivered, on acknowledgements that advance; as in Linux, what was
    /// acknowledged selectively before does not count again.
    pub acked: u64,
    /// Segments newly delivered, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes newly delivered.
    pub bytes: Bytes,
    /// RTT of the newest packet covered, if it has one.
    pub rtt: Option<Span>,
    /// The delivery-rate sample.
    pub rate: RateSample,
    /// Segments in flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// Whether it echoes an ECN mark.
    pub ecn_echo: bool,
}

/// A packet left. Numbers are never used twice: a retransmission has a new one.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its place in the order of sending.
    pub number: u64,
    /// Payload.
    pub bytes: Bytes,
    /// Whether its data were sent before.
    pub retransmission: bool,
}

/// What became of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its place in the order of sending.
    pub number: u64,
    /// Payload.
    pub bytes: Bytes,
    /// When it was sent.
    pub sent_at: Time,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The receiver has it.
    Acked {
        /// From its sending to its acknowledgement.
        rtt: Span,
        /// From sender to receiver, up to a constant offset; `None` without timestamps.
        one_way: Option<Span>,
    },
    /// A proxy on the path has seen it; told before [`CongestionControl::on_pep`].
    Seen {
        /// From its sending to the proxy's report.
        rtt: Span,
    },
    /// A proxy on the path has missed it: it was lost before the proxy.
    Missing,
    /// It is taken for lost.
    Lost,
    /// It had been taken for lost and was not.
    Spurious,
}

impl Fate {
    /// Whether it tells where a proxy stands, and not yet what became of the packet.
    pub fn is_at_proxy(self) -> bool {
        matches!(self, Self::Seen { .. } | Self::Missing)
    }
}

/// Signs of congestion, to be answered before recovery acts on them.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// How it was noticed.
    pub kind: Signal,
    /// Segments newly taken for lost (zero for ECN).
    pub lost: u64,
    /// Payload of the largest of them.
    pub largest: Bytes,
    /// When the newest of them was sent.
    pub newest_sent_at: Time,
    /// Whether this begins an episode. Within one, `ReduceTo` is not acted on again.
    pub first: bool,
}

/// How congestion was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// RACK, duplicate acknowledgements or a tail probe found lost segments.
    Loss,
    /// The retransmission timer fired.
    Timeout {
        /// Consecutive timeouts without progress, counting this one.
        count: u32,
    },
    /// The receiver echoes a mark of the network.
    Ecn,
}

/// A control's answer to [`Congestion`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// A new `ssthresh`, in segments; PRR brings the window down to it (a timeout: slow start from one segment).
    ReduceTo(f64),
    /// Retransmit, and leave window, threshold and growth as if nothing had been lost (MELD).
    Ignore,
    /// The control has set the window itself, or does so on later events (BBR).
    Own,
}

/// Acknowledgement or gap report of a proxy on the path (Lightweight PEP). It never retires data.
#[derive(Clone, Copy, Debug)]
pub struct PepReport {
    /// Payload that the proxy has newly seen.
    pub seen: Bytes,
    /// RTT between sender and proxy, by the newest packet covered.
    pub rtt: Option<Span>,
    /// Packets found missing at the proxy.
    pub missing: u64,
    /// Packets with an ECN mark that it saw, since the flow began; `None` where it does not count them.
    pub marked: Option<u64>,
    /// The proxy's counting began anew: what was outstanding is unknown to it.
    pub new_epoch: bool,
}

/// A report of the peer's receiver half, as it travels: at most [`Report::CAPACITY`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Report {
    length: u8,
    bare: bool,
    bytes: [u8; Self::CAPACITY],
}

impl Report {
    /// As much as fits the TCP option space beside timestamps.
    pub const CAPACITY: usize = 28;

    /// A report of these bytes; `None` if there are too many.
    pub fn new(content: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::CAPACITY];
        bytes.get_mut(..content.len())?.copy_from_slice(content);
        Some(Self { length: content.len() as u8, bare: false, bytes })
    }

    /// A report that stands behind the TCP header without kind and length, as Zhong (2020) counted it. No TCP stack could
    /// tell it from payload: for simulations only.
    pub fn bare(content: &[u8]) -> Option<Self> {
        Self::new(content).map(|report| Self { bare: true, ..report })
    }

    /// The bytes that travel.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Bytes that it takes among TCP's options: kind and length before it, padded to four.
    pub fn option_length(&self) -> usize {
        let head = if self.bare { 0 } else { 2 };
        (head + usize::from(self.length)).next_multiple_of(4)
    }
}

impl Debug for Report {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Report").field(&self.as_bytes()).finish()
    }
}

/// What one connection of a host has learned of the path to a destination, for the next ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMemory {
    /// Smallest RTT.
    pub min_rtt: Span,
    /// Number of the cell in which it was measured, if that is known: over another one it says nothing.
    pub cell: Option<u16>,
    /// Since when it is that of the path there is now; zero if the path never was another one.
    pub since: Time,
}

impl PathMemory {
    /// What is known of a path by both: of the newer path, or the smaller RTT of the same one.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match self.since.cmp(&other.since) {
            core::cmp::Ordering::Less => other,
            core::cmp::Ordering::Greater => self,
            core::cmp::Ordering::Equal if other.min_rtt < self.min_rtt => other,
            core::cmp::Ordering::Equal => self,
        }
    }
}

/// What a proxy allocates to a flow on its user's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The rate.
    pub rate: Rate,
    /// The congestion window for that rate, in bytes of payload. The proxy works it out, since it knows the smallest RTT to the user.
    pub window: Bytes,
}

/// A control behind another one, and what it is to see of an event; see [`CongestionControl::view`].
#[derive(Debug)]
pub struct View<'a> {
    /// The control behind.
    pub control: &'a mut dyn CongestionControl,
    /// The connection, as it is to see it.
    pub cx: &'a Context,
    /// The window that it sets.
    pub window: &'a mut Window,
}

/// What a hook does that a control does not define: nothing, or, in a decorator, what the control behind it does.
macro_rules! pass_on {
    ($self:ident.$hook:ident($cx:ident, $w:ident $(, $rest:expr)*)) => {
        if let Some(view) = $self.view($cx, $w) {
            view.control.$hook(view.cx, view.window $(, $rest)*);
        }
    };
}

/// A sender's congestion control. Every hook has a default, so that a file shows only what its algorithm uses.
///
/// A decorator names the control behind it ([`Self::inner`], [`Self::inner_mut`]): each hook that it does not define goes there,
/// so that none can be forgotten.
pub trait CongestionControl: Debug + Send {
    /// The control behind this one, if this is a decorator.
    fn inner(&self) -> Option<&dyn CongestionControl> {
        None
    }

    /// The same, to be told something.
    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        None
    }

    /// What the control behind this one is to see of an event, where that is not what this one sees: MELD shows it another
    /// state, the guard a window of its own.
    fn view<'a>(&'a mut self, cx: &'a Context, w: &'a mut Window) -> Option<View<'a>> {
        self.inner_mut().map(|control| View { control, cx, window: w })
    }

    /// The connection is established; `cx.srtt` is the handshake's RTT. `w.cwnd` is the initial window.
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        pass_on!(self.on_start(cx, w));
    }

    /// A packet was sent.
    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        pass_on!(self.on_sent(cx, w, sent));
    }

    /// An acknowledgement delivered something: its measurements, before losses are looked for.
    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        pass_on!(self.on_sample(cx, w, sample));
    }

    /// Lost segments, a timeout or a mark: what is to be done about it.
    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> Answer;

    /// An acknowledgement that delivered something, after loss detection: the window grows here. Not called while
    /// PRR owns the window, unless [`Self::owns_recovery`].
    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack);

    /// Whether the control keeps setting the window during recovery (BBR). Otherwise PRR (RFC 6937) does, and
    /// sets it to `ssthresh` at the end. Asked whenever it matters, since some are masters of the window only at times (with radio
    /// information, with an allocation): when an episode begins, after the answer; and when a window that is idle is to decay.
    fn owns_recovery(&self) -> bool {
        self.inner().is_some_and(|inner| inner.owns_recovery())
    }

    /// Segments after which the receiver should acknowledge at once; `None`: as receivers do, which is every second one. Asked
    /// once, before the connection begins. A control whose measurements delayed acknowledgements spoil says 1 (Vivace).
    fn ack_every(&self) -> Option<u32> {
        self.inner()?.ack_every()
    }

    /// Whether [`Self::on_packet`] is wanted; the others do not pay for it.
    fn wants_packets(&self) -> bool {
        self.inner().is_some_and(|inner| inner.wants_packets())
    }

    /// The fate of one packet.
    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        pass_on!(self.on_packet(cx, w, packet));
    }

    /// Recovery is over: the state is `Open` again.
    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        pass_on!(self.on_recovered(cx, w));
    }

    /// The reduction was a mistake: nothing was lost. `prior` is the window before it (Linux `undo_cwnd`).
    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        if let Some(view) = self.view(cx, w) {
            return view.control.on_spurious(view.cx, view.window, prior);
        }
        w.cwnd = w.cwnd.max(prior.cwnd);
        w.ssthresh = w.ssthresh.max(prior.ssthresh);
    }

    /// Sending starts again after `idle` with nothing in flight.
    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        pass_on!(self.on_idle_restart(cx, w, idle));
    }

    /// The path is another one (handover to another core, migration): old minima mean nothing.
    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        pass_on!(self.on_path_change(cx, w));
    }

    /// When [`Self::on_deadline`] is to be called; `None` for never.
    fn next_deadline(&self) -> Option<Time> {
        self.inner()?.next_deadline()
    }

    /// The deadline has come.
    fn on_deadline(&mut self, cx: &Context, w: &mut Window) {
        pass_on!(self.on_deadline(cx, w));
    }

    /// A report of the peer's receiver half. May open the window without an acknowledgement.
    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &Report) {
        pass_on!(self.on_report(cx, w, report));
    }

    /// Whether [`Self::on_radio`] is wanted; the others do not pay for it.
    fn wants_radio(&self) -> bool {
        self.inner().is_some_and(|inner| inner.wants_radio())
    }

    /// Radio information. May open the window without an acknowledgement.
    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        pass_on!(self.on_radio(cx, w, hint));
    }

    /// A proxy's acknowledgement or gap report. May open the window without an acknowledgement of the peer.
    fn on_pep(&mut self, cx: &Context, w: &mut Window, report: &PepReport) {
        pass_on!(self.on_pep(cx, w, report));
    }

    /// What a proxy on the path misses is to be taken for lost now, if it was sent no later than this; `None`: on the receiver's
    /// evidence alone. Asked after [`Self::on_pep`]; a congestion follows for what is newly lost.
    fn believes_gaps(&self, now: Time) -> Option<Time> {
        self.inner()?.believes_gaps(now)
    }

    /// A proxy's share of the radio bandwidth for this flow, set from outside (RAPID); `None`: no bound, the control alone
    /// decides. May come before [`Self::on_start`].
    fn on_allocation(&mut self, cx: &Context, w: &mut Window, allocation: Option<Allocation>) {
        pass_on!(self.on_allocation(cx, w, allocation));
    }

    /// Sets the target of a control that has one while the flow runs; false if this one has none.
    fn set_target(&mut self, target: Span) -> bool {
        self.inner_mut().is_some_and(|inner| inner.set_target(target))
    }

    /// What this control has learned of the path and other connections of the same host to the same destination may begin with;
    /// `None` if it keeps nothing. The carrier asks when the next one begins.
    fn memory(&self) -> Option<PathMemory> {
        self.inner()?.memory()
    }

    /// What other connections of this host have learned of the path, before [`Self::on_start`].
    fn recall(&mut self, memory: PathMemory) {
        if let Some(inner) = self.inner_mut() {
            inner.recall(memory);
        }
    }

    /// Shows named figures of the state (gains, filters, thresholds) for series and debugging.
    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(inner) = self.inner() {
            inner.inspect(show);
        }
    }
}

/// What a decorator needs of the loss-based control that it wraps.
pub trait LossBased: CongestionControl {
    /// What `ssthresh` becomes on congestion, with the side effects that this has on the control's own state (CUBIC
    /// ends its epoch and sets `W_max`). In segments, at least 2.
    fn recalc_ssthresh(&mut self, cx: &Context, w: &Window) -> f64;

    /// The control behind this one, if this is a decorator; as [`CongestionControl::inner`].
    fn parent(&self) -> Option<&dyn LossBased> {
        None
    }

    /// When the current epoch of growth began, where the control has such a notion (CUBIC).
    fn epoch_start(&self) -> Option<Time> {
        self.parent()?.epoch_start()
    }
}

/// A data packet as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// When it arrived.
    pub now: Time,
    /// Its place in the order of sending (datagram transport; TCP has none and gives `None`).
    pub number: Option<u64>,
    /// Payload.
    pub bytes: Bytes,
    /// Packet on the wire, headers included.
    pub wire: Bytes,
    /// The sender's timestamp.
    pub sent_at: Time,
    /// How long the sender says that it will be before the next packet; zero if more is queued (Sprout).
    pub time_to_next: Span,
    /// RTT as the receiver can tell it from echoed timestamps.
    pub rtt: Option<Span>,
}

/// The receiver's half of an algorithm: measures, and says what is to be reported.
pub trait ReceiverHalf: Debug + Send {
    /// The connection begins.
    fn on_start(&mut self, now: Time) {
        let _ = now;
    }

    /// Data arrived.
    fn on_data(&mut self, received: &Received);

    /// Whether [`Self::on_radio`] is wanted; the others do not pay for it.
    fn wants_radio(&self) -> bool {
        false
    }

    /// Whether [`Self::on_radio`] is wanted for qualities too: a CQI every 2 ms, measured whether or not something is granted.
    fn wants_quality(&self) -> bool {
        false
    }

    /// The device's own modem: once for each downlink grant (`tbs_bits` is its block, `granted` its PRBs, `tti` its slot;
    /// what HARQ sends again counts too) and each CQI that was measured (`cqi`); both may come in one call.
    fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        let _ = (now, hint);
    }

    /// When [`Self::on_deadline`] is to be called; `None` for never.
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// The deadline has come; true if a report is to be sent at once, without waiting for an acknowledgement.
    fn on_deadline(&mut self, now: Time) -> bool {
        let _ = now;
        false
    }

    /// What the acknowledgement that is about to leave carries.
    fn report(&mut self, now: Time) -> Option<Report>;

    /// Shows named figures of the state for series and debugging.
    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let _ = show;
    }
}

#[cfg(test)]
mod tests;
