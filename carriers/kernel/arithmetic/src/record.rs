//! What a control is told, event by event: recorded around the control of a run, and cut to the kernel's units.

use core::fmt;

use ranpace_cc::{
    Ack, Allocation, Congestion, CongestionControl, Context, LossResponse, Packet, PacketOutcome, PepReport,
    RadioHint, ReceiverReport, Sample, Sent, Window,
};
use ranpace_units::Span;

/// What happened; the hooks of [`CongestionControl`].
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The connection is established.
    Start,
    /// A packet left.
    Sent(Sent),
    /// An acknowledgement's measurements.
    Sample(Sample),
    /// An acknowledgement, after loss detection.
    Ack(Ack),
    /// Signs of congestion, and what the control of the recorded run made of them.
    Congestion(Congestion, LossResponse),
    /// The fate of a packet.
    Packet(Packet),
    /// Recovery is over.
    Recovered,
    /// A reduction was a mistake; the window before it.
    Spurious(Window),
    /// Sending starts again after so long.
    IdleRestart(Span),
    /// The path is another one.
    PathChange,
    /// A deadline of the control of the recorded run came.
    Deadline,
    /// A report of the peer.
    Report(ReceiverReport),
    /// Radio information.
    Radio(RadioHint),
    /// A proxy's report.
    Pep(PepReport),
    /// A proxy's share for the flow.
    Allocation(Option<Allocation>),
}

/// An event, the connection at that instant, and the window before and after the control was told.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The connection.
    pub cx: Context,
    /// As the endpoint lent it.
    pub before: Window,
    /// As the control left it.
    pub after: Window,
    /// What happened.
    pub event: Event,
}

impl Moment {
    /// The same as the kernel would have it: RTTs in whole microseconds and not 0, one-way times in whole milliseconds.
    #[must_use]
    pub fn in_kernel_units(mut self) -> Self {
        let whole = |span: Span| match span {
            Span::ZERO | Span::MAX => span,
            _ => Span::from_micros(span.as_micros().max(1)),
        };
        let measured = |span: Span| whole(span).max(Span::from_micros(1));
        self.cx.srtt = whole(self.cx.srtt);
        self.cx.min_rtt = whole(self.cx.min_rtt);
        match &mut self.event {
            Event::Sample(sample) => {
                sample.rtt = sample.rtt.map(measured);
                sample.one_way = sample.one_way.map(|span| Span::from_millis(span.as_millis()));
            }
            Event::Ack(ack) => {
                ack.rtt = ack.rtt.map(measured);
                ack.rate.interval = ack.rate.interval.map(measured);
            }
            Event::Packet(packet) => match &mut packet.fate {
                PacketOutcome::Acked { rtt, .. } | PacketOutcome::Seen { rtt } => *rtt = measured(*rtt),
                PacketOutcome::Missing | PacketOutcome::Lost | PacketOutcome::Spurious => {}
            },
            Event::Pep(report) => report.rtt = report.rtt.map(measured),
            _ => {}
        }
        self
    }
}

/// Takes what is recorded.
pub type Sink = Box<dyn FnMut(&Moment) + Send>;

/// A control that tells a [`Sink`] of everything that the one behind it is told. It changes nothing.
///
/// Targets and memories of paths, which come outside of events, are passed on and not recorded.
pub struct Recorder {
    inner: Box<dyn CongestionControl>,
    sink: Sink,
}

impl Recorder {
    /// Around `inner`.
    pub fn new(inner: Box<dyn CongestionControl>, sink: Sink) -> Self {
        Self { inner, sink }
    }

    fn tell(
        &mut self,
        cx: &Context,
        w: &mut Window,
        event: Event,
        hook: impl FnOnce(&mut dyn CongestionControl, &mut Window),
    ) {
        let before = *w;
        hook(self.inner.as_mut(), w);
        (self.sink)(&Moment { cx: *cx, before, after: *w, event });
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl CongestionControl for Recorder {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(self.inner.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(self.inner.as_mut())
    }

    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.tell(cx, w, Event::Start, |inner, w| inner.on_start(cx, w));
    }

    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        self.tell(cx, w, Event::Sent(*sent), |inner, w| inner.on_sent(cx, w, sent));
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.tell(cx, w, Event::Sample(*sample), |inner, w| inner.on_sample(cx, w, sample));
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let before = *w;
        let answer = self.inner.on_congestion(cx, w, event);
        (self.sink)(&Moment { cx: *cx, before, after: *w, event: Event::Congestion(*event, answer) });
        answer
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.tell(cx, w, Event::Ack(*ack), |inner, w| inner.on_ack(cx, w, ack));
    }

    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        self.tell(cx, w, Event::Packet(*packet), |inner, w| inner.on_packet(cx, w, packet));
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        self.tell(cx, w, Event::Recovered, |inner, w| inner.on_recovered(cx, w));
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        self.tell(cx, w, Event::Spurious(*prior), |inner, w| inner.on_spurious(cx, w, prior));
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        self.tell(cx, w, Event::IdleRestart(idle), |inner, w| inner.on_idle_restart(cx, w, idle));
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.tell(cx, w, Event::PathChange, |inner, w| inner.on_path_change(cx, w));
    }

    fn on_deadline(&mut self, cx: &Context, w: &mut Window) {
        self.tell(cx, w, Event::Deadline, |inner, w| inner.on_deadline(cx, w));
    }

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        self.tell(cx, w, Event::Report(*report), |inner, w| inner.on_report(cx, w, report));
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        self.tell(cx, w, Event::Radio(*hint), |inner, w| inner.on_radio(cx, w, hint));
    }

    fn on_pep(&mut self, cx: &Context, w: &mut Window, report: &PepReport) {
        self.tell(cx, w, Event::Pep(*report), |inner, w| inner.on_pep(cx, w, report));
    }

    fn on_allocation(&mut self, cx: &Context, w: &mut Window, allocation: Option<Allocation>) {
        self.tell(cx, w, Event::Allocation(allocation), |inner, w| inner.on_allocation(cx, w, allocation));
    }
}
