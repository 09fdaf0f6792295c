//! A congestion control in its smallest form, explained in `docs/cc-interface.md`: it keeps a fixed number of segments in flight.
//!
//! Source: none; it is an example. State: none. It reacts only to timeouts, so do not use it on a network that you share.

use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, Control, Entry, LossResponse, OptionError, OptionInfo,
    Options, Pacing, RateSample, Signal, State, Transport, Window,
};
use ranpace_units::{Bytes, Rate, Span, Time};

/// The description of a control that `ranpace list cc` shows. In the library, `ALL` in `registry.rs` lists the entries of all controls.
pub const ENTRY: Entry = Entry {
    name: "constant",
    about: "a fixed number of segments, paced",
    source: "docs/cc-interface.md",
    options: &[OptionInfo { key: "window", values: "1 to 100000 (20)", about: "segments in flight" }],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _seed: u64) -> Result<Control, OptionError> {
    let window = options.number("window", 1.0, 100_000.0, 20.0)?;
    Ok(Control::Other(Box::new(Constant { window })))
}

/// State of the control: only its option.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Segments that it keeps in flight.
    window: f64,
}

impl Constant {
    fn apply(&self, cx: &Context, w: &mut Window) {
        w.cwnd = self.window;
        if !cx.srtt.is_zero() {
            w.pacing = Pacing::Rate(Rate::of(cx.wire.mul_f64(self.window), cx.srtt));
        }
    }
}

impl CongestionControl for Constant {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.apply(cx, w);
    }

    /// Ignores losses and marks. After a timeout it sends one segment to probe the path, and the next ACK restores the window.
    fn on_congestion(&mut self, _: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        if let Signal::Timeout { .. } = event.kind {
            w.cwnd = 1.0;
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, _: &Ack) {
        self.apply(cx, w);
    }

    /// A control that answers [`LossResponse::Own`] also sets the window during recovery, in place of PRR.
    fn owns_recovery(&self) -> bool {
        true
    }
}

pub(crate) fn main() {
    let mut options = Options::default();
    let Ok(Control::Other(mut control)) = (ENTRY.build)(&mut options, 1) else {
        unreachable!("an empty list of options is valid")
    };
    let (cx, mut w) = (context(), Window::new(10.0));
    control.on_start(&cx, &mut w);
    assert_eq!(w.cwnd, 20.0);
    // 20 packets of 1500 bytes in 50 ms.
    assert_eq!(w.pacing, Pacing::Rate(Rate::from_bits_per_s(4_800_000)));
    assert_eq!(control.on_congestion(&cx, &mut w, &timeout()), LossResponse::Own);
    assert_eq!(w.cwnd, 1.0);
    control.on_ack(&cx, &mut w, &ack());
    assert_eq!(w.cwnd, 20.0);
}

/// A connection whose smoothed RTT is 50 ms.
fn context() -> Context {
    Context {
        now: Time::from_secs(1),
        mss: Bytes::new(1448),
        wire: Bytes::new(1500),
        srtt: Span::from_millis(50),
        min_rtt: Span::from_millis(50),
        in_flight: 0,
        delivered: 0,
        lost: 0,
        next_packet: 0,
        state: State::Open,
        cwnd_limited: true,
        app_limited: false,
        departure: Time::ZERO,
        paced: false,
    }
}

/// The first retransmission timeout, for 20 segments.
fn timeout() -> Congestion {
    Congestion {
        kind: Signal::Timeout { count: 1 },
        lost: 20,
        largest: Bytes::new(1448),
        newest_sent_at: Time::from_secs(1),
        first: true,
    }
}

/// An acknowledgement of one segment.
fn ack() -> Ack {
    Ack {
        acked: 1,
        delivered: 1,
        bytes: Bytes::new(1448),
        rtt: Some(Span::from_millis(50)),
        rate: RateSample::default(),
        prior_in_flight: 1,
        ecn_echo: false,
        marked: 0,
        braked: 0,
    }
}
