//! The traits of the sender's side: every control, and what decorators need of the one that they wrap.

use core::fmt::Debug;

use ranpace_rnis::RadioHint;
use ranpace_units::{Span, Time};

use super::events::{
    Ack, Allocation, Congestion, Context, LossResponse, Packet, PathMemory, PepReport, Sample, Sent,
};
use super::report::ReceiverReport;
use super::window::Window;

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
    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse;

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
    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
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
