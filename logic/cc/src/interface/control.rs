//! The sender's traits: one for every control, one with what decorators need of the control they wrap.

use core::fmt::Debug;

use ranpace_rnis::RadioHint;
use ranpace_units::{Span, Time};

use super::events::{
    Ack, Allocation, Congestion, Context, EcnUse, LossResponse, Packet, PathMemory, PepReport, Sample, Sent,
};
use super::report::ReceiverReport;
use super::window::Window;

/// The inner control of a decorator and its view of an event; see [`CongestionControl::view`].
#[derive(Debug)]
pub struct View<'a> {
    /// The inner control.
    pub control: &'a mut dyn CongestionControl,
    /// The connection as the inner control sees it.
    pub cx: &'a Context,
    /// The window that the inner control sets.
    pub window: &'a mut Window,
}

/// Body of a hook that a control does not define: calls the inner control's hook in a decorator, and otherwise does nothing.
macro_rules! pass_on {
    ($self:ident.$hook:ident($cx:ident, $w:ident $(, $rest:expr)*)) => {
        if let Some(view) = $self.view($cx, $w) {
            view.control.$hook(view.cx, view.window $(, $rest)*);
        }
    };
}

/// A sender's congestion control. Every hook has a default, so that an implementation contains only what its algorithm uses.
///
/// A decorator returns its inner control ([`Self::inner`], [`Self::inner_mut`]): each hook that the decorator does not define
/// is forwarded to it, so that none can be forgotten.
pub trait CongestionControl: Debug + Send {
    /// The inner control, if this is a decorator.
    fn inner(&self) -> Option<&dyn CongestionControl> {
        None
    }

    /// The same, mutably.
    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        None
    }

    /// The inner control's view of an event, where it differs from this control's: MELD shows it another state, the guard a
    /// separate window.
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

    /// An acknowledgement delivered something: its measurements, before loss detection.
    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        pass_on!(self.on_sample(cx, w, sample));
    }

    /// Lost segments, a timeout or a mark; returns the response.
    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse;

    /// An acknowledgement that delivered something, after loss detection: the window grows here. Not called while
    /// PRR owns the window, unless [`Self::owns_recovery`].
    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack);

    /// Returns whether the control keeps setting the window during recovery (BBR). Otherwise PRR (RFC 6937) does, and sets it to
    /// `ssthresh` at the end. The answer may change, since some controls set the window only at times (with radio
    /// information, with an allocation), so the endpoint asks when an episode begins, after the response, and before it
    /// decays an idle window.
    fn owns_recovery(&self) -> bool {
        self.inner().is_some_and(|inner| inner.owns_recovery())
    }

    /// Segments after which the receiver should acknowledge at once; `None` for the receiver's default, every second one.
    /// Asked once, before the connection begins. A control whose measurements suffer from delayed acknowledgements returns 1
    /// (Vivace).
    fn ack_every(&self) -> Option<u32> {
        self.inner()?.ack_every()
    }

    /// How the control uses ECN, where the endpoint's ECN is on. Asked when the connection begins, and after
    /// [`Self::on_coarse_ecn`].
    fn ecn(&self) -> EcnUse {
        self.inner().map_or(EcnUse::Classic, |inner| inner.ecn())
    }

    /// The peer does not count marks, or the path erases code points: a control that relies on them falls back to another behaviour
    /// for good, and [`Self::ecn`] says which code points that one uses. Only called if [`EcnUse::counts_marks`].
    fn on_coarse_ecn(&mut self, cx: &Context, w: &mut Window) {
        pass_on!(self.on_coarse_ecn(cx, w));
    }

    /// Longest burst of the pacer, as time at the pacing rate; `None` for the endpoint's, about a millisecond.
    fn burst(&self) -> Option<Span> {
        self.inner()?.burst()
    }

    /// Returns whether to call [`Self::on_packet`]; other controls avoid its cost.
    fn wants_packets(&self) -> bool {
        self.inner().is_some_and(|inner| inner.wants_packets())
    }

    /// The outcome of one packet.
    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        pass_on!(self.on_packet(cx, w, packet));
    }

    /// Recovery is over: the state is `Open` again.
    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        pass_on!(self.on_recovered(cx, w));
    }

    /// The reduction was spurious: nothing was lost. `prior` is the window before it (Linux `undo_cwnd`).
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

    /// The path has changed (handover to another core, migration): old minima no longer apply.
    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        pass_on!(self.on_path_change(cx, w));
    }

    /// When to call [`Self::on_deadline`]; `None` for never.
    fn next_deadline(&self) -> Option<Time> {
        self.inner()?.next_deadline()
    }

    /// The deadline has come.
    fn on_deadline(&mut self, cx: &Context, w: &mut Window) {
        pass_on!(self.on_deadline(cx, w));
    }

    /// A report of the peer's receiver half. May open the window without an acknowledgement.
    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        pass_on!(self.on_report(cx, w, report));
    }

    /// Returns whether to call [`Self::on_radio`]; other controls avoid its cost.
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

    /// Packets that a proxy on the path reports missing are declared lost now if they were sent no later than this; `None` to
    /// rely on the receiver's evidence alone. Asked after [`Self::on_pep`]; a congestion event follows for newly lost
    /// packets.
    fn believes_gaps(&self, now: Time) -> Option<Time> {
        self.inner()?.believes_gaps(now)
    }

    /// A proxy's share of the radio bandwidth for this flow, set from outside (RAPID); `None` removes the bound, and the
    /// control alone decides. May precede [`Self::on_start`].
    fn on_allocation(&mut self, cx: &Context, w: &mut Window, allocation: Option<Allocation>) {
        pass_on!(self.on_allocation(cx, w, allocation));
    }

    /// Sets the target while the flow runs, for a control that has one; returns false for others.
    fn set_target(&mut self, target: Span) -> bool {
        self.inner_mut().is_some_and(|inner| inner.set_target(target))
    }

    /// Returns what this control has learned about the path, as a start for other connections of the host to the same destination;
    /// `None` if it keeps nothing. The carrier asks when the next connection begins.
    fn memory(&self) -> Option<PathMemory> {
        self.inner()?.memory()
    }

    /// Receives what other connections of this host have learned about the path, before [`Self::on_start`].
    fn recall(&mut self, memory: PathMemory) {
        if let Some(inner) = self.inner_mut() {
            inner.recall(memory);
        }
    }

    /// Shows named values of the state (gains, filters, thresholds) for series and debugging.
    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(inner) = self.inner() {
            inner.inspect(show);
        }
    }
}

/// The additional interface of a loss-based control, for the decorators that wrap it.
pub trait LossBased: CongestionControl {
    /// The `ssthresh` after congestion, in segments, at least 2; with the side effects that this has on the control's own
    /// state (CUBIC ends its epoch and sets `W_max`).
    fn recalc_ssthresh(&mut self, cx: &Context, w: &Window) -> f64;

    /// The inner control, if this is a decorator; as [`CongestionControl::inner`].
    fn parent(&self) -> Option<&dyn LossBased> {
        None
    }

    /// When the current growth epoch began, for controls that have one (CUBIC).
    fn epoch_start(&self) -> Option<Time> {
        self.parent()?.epoch_start()
    }
}
