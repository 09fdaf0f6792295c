//! ABC: the window follows the "accelerate" and "brake" of the routers, beside a CUBIC window for losses and legacy marks.
//!
//! Source: Goyal et al., "ABC: A Simple Explicit Congestion Controller for Wireless Networks" (NSDI 2020), as understood from its
//! abstract and its authors' code. Packets leave as "accelerate", ECT(1); the routers (queues of the kind `abc`) turn some into "brake", ECT(0).
//! State: the window `w` of ABC, and CUBIC with a window of its own.
//!
//! Per acknowledged segment `w += 1 / w`, then `w += 1` if it accelerates, or `w -= 1` if it brakes and `w > 6`. Both windows are at most
//! `2 flight + 5`. `cwnd` is the smaller one, the pace `2 cwnd / RTT`. Losses and CE marks act on CUBIC's window only; a timeout sets `w` to
//! one segment. Ours: a marked segment neither accelerates nor brakes; a round has at most one reduction for marks.
//!
//! Without feedback that tells the code points apart the control is CUBIC, and sends ECT(0).

use ranpace_units::{Bytes, Rate};

use crate::classic::cubic::{LinuxCubic, Params};
use crate::classic::hystart;
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, EcnUse, LossResponse, Pacing, Signal, State, View, Window,
};
use crate::options::{OptionError, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "abc",
    about: "follows the accelerate and brake of ABC routers; as understood from its authors' code",
    source: "Goyal et al., ABC (NSDI 2020), abstract; the authors' code; certainty: high for marks and windows, low for ECN codes",
    options: &[],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(_: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::Other(Box::new(Abc {
        window: 0.0,
        cubic: LinuxCubic::new(Params::LINUX, hystart::Kind::Classic),
        cubic_window: Window::new(0.0),
        reduced: 0,
        coarse: false,
    })))
}

/// A brake takes nothing from a window up to this.
const LEAST_BRAKED: f64 = 6.0;
/// Segments beyond twice the flight that a window may have.
const BEYOND: f64 = 5.0;

/// The control.
#[derive(Clone, Debug)]
struct Abc {
    window: f64,
    cubic: LinuxCubic,
    cubic_window: Window,
    /// Segments delivered when marks last reduced CUBIC's window: packets sent before belong to that reduction.
    reduced: u64,
    /// There is no feedback that tells the code points apart.
    coarse: bool,
}

/// The window after `accelerated` and then `braked` segments.
fn follow(mut window: f64, accelerated: u64, braked: u64) -> f64 {
    for _ in 0..accelerated {
        window += 1.0 / window + 1.0;
    }
    for _ in 0..braked {
        window += 1.0 / window;
        if window > LEAST_BRAKED {
            window -= 1.0;
        }
    }
    window
}

impl Abc {
    /// CUBIC's answer to a congestion signal becomes its window at once.
    fn reduce(&mut self, cx: &Context, event: &Congestion) {
        let answer = self.cubic.on_congestion(cx, &mut self.cubic_window, event);
        if let (true, LossResponse::ReduceTo(ssthresh)) = (event.first, answer) {
            let timeout = matches!(event.kind, Signal::Timeout { .. });
            self.cubic_window.ssthresh = ssthresh;
            self.cubic_window.cwnd = if timeout { 1.0 } else { ssthresh };
        }
    }

    fn show(&self, cx: &Context, w: &mut Window) {
        w.cwnd = self.window.min(self.cubic_window.cwnd).max(1.0);
        w.ssthresh = self.cubic_window.ssthresh;
        if !cx.srtt.is_zero() {
            let rate = 2.0 * w.cwnd * cx.wire.as_f64() * 8.0 / cx.srtt.as_secs_f64();
            w.pacing = Pacing::Rate(Rate::from_bits_per_s_f64(rate.max(1.0)));
        }
    }
}

impl CongestionControl for Abc {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(&self.cubic)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(&mut self.cubic)
    }

    fn view<'a>(&'a mut self, cx: &'a Context, w: &'a mut Window) -> Option<View<'a>> {
        let window = if self.coarse { w } else { &mut self.cubic_window };
        Some(View { control: &mut self.cubic, cx, window })
    }

    fn ecn(&self) -> EcnUse {
        if self.coarse { EcnUse::Classic } else { EcnUse::Abc }
    }

    fn on_coarse_ecn(&mut self, _: &Context, w: &mut Window) {
        if !self.coarse {
            // CUBIC has begun with the window as it is.
            self.coarse = true;
            w.pacing = Pacing::Unlimited;
        }
    }

    fn owns_recovery(&self) -> bool {
        !self.coarse
    }

    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.window = w.cwnd;
        self.cubic_window = *w;
        self.cubic.on_start(cx, &mut self.cubic_window);
        self.show(cx, w);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        if self.coarse {
            return self.cubic.on_congestion(cx, w, event);
        }
        self.reduce(cx, event);
        if event.first && matches!(event.kind, Signal::Timeout { .. }) {
            self.window = 1.0;
        }
        self.show(cx, w);
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if self.coarse {
            return self.cubic.on_ack(cx, w, ack);
        }
        let marked = ack.marked.min(ack.delivered);
        let braked = ack.braked.min(ack.delivered - marked);
        let most = 2.0 * ack.prior_in_flight as f64 + BEYOND;
        self.window = follow(self.window, ack.delivered - marked - braked, braked).min(most).max(1.0);
        if marked > 0 && ack.rate.prior_delivered >= self.reduced {
            self.reduced = cx.delivered;
            let event = Congestion {
                kind: Signal::Ecn,
                lost: 0,
                largest: Bytes::ZERO,
                newest_sent_at: cx.now,
                first: true,
            };
            self.reduce(cx, &event);
        } else if cx.state != State::Recovery {
            self.cubic.on_ack(cx, &mut self.cubic_window, ack);
            self.cubic_window.cwnd = self.cubic_window.cwnd.min(most);
        }
        self.show(cx, w);
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        if self.coarse {
            return self.cubic.on_spurious(cx, w, prior);
        }
        self.cubic.on_spurious(cx, &mut self.cubic_window, prior);
        self.show(cx, w);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("abc_window", self.window);
        show("cubic_window", self.cubic_window.cwnd);
    }
}

#[cfg(test)]
mod tests {
    use ranpace_units::{Span, Time};

    use super::*;
    use crate::testing::testbed::{ack, context, loss};

    const RTT: Span = Span::from_millis(100);

    fn begun(window: f64) -> (Box<dyn CongestionControl>, Window, Context) {
        let Ok(Control::Other(mut control)) = build(&mut Options::default(), 1) else { panic!("no control") };
        let (mut w, cx) = (Window::new(window), Context { srtt: RTT, ..context(Time::from_millis(1)) });
        control.on_start(&cx, &mut w);
        (control, w, cx)
    }

    #[test]
    fn the_window_moves_by_a_segment_per_segment() {
        for (case, accelerated, braked, expected) in
            [("accelerate", 20, 0, 40.698), ("brake", 0, 20, 5.098), ("ten of each", 10, 10, 20.799)]
        {
            let found = follow(20.0, accelerated, braked);
            assert!((found - expected).abs() < 5e-4, "{case}: {found}");
        }
    }

    #[test]
    fn losses_and_marks_act_on_cubic_only_and_a_timeout_on_both() {
        let (mut control, mut w, mut cx) = begun(100.0);
        assert_eq!(control.on_congestion(&cx, &mut w, &loss()), LossResponse::Own);
        assert!((w.cwnd - 70.0).abs() < 0.5, "{w:?}: 0.7 of 100");
        let mut values = Vec::new();
        control.inspect(&mut |name, value| values.push((name, value)));
        assert_eq!(values[0], ("abc_window", 100.0));
        cx.delivered = 200;
        let marked = Ack { marked: 1, prior_in_flight: 100, ..ack(2, RTT) };
        control.on_ack(&cx, &mut w, &marked);
        assert!((w.cwnd - 49.0).abs() < 1.0, "{w:?}");
        let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
        control.on_congestion(&cx, &mut w, &timeout);
        assert_eq!(w.cwnd, 1.0);
    }

    #[test]
    fn the_window_is_at_most_twice_the_flight_and_paced_at_twice_its_rate() {
        let (mut control, mut w, cx) = begun(100.0);
        control.on_ack(&cx, &mut w, &Ack { prior_in_flight: 10, ..ack(2, RTT) });
        assert_eq!(w.cwnd, 25.0);
        assert_eq!(w.pacing, Pacing::Rate(Rate::from_bits_per_s(2 * 25 * 12_000 * 10)));
    }

    #[test]
    fn without_counted_code_points_it_is_cubic() {
        let (mut control, mut w, cx) = begun(100.0);
        control.on_coarse_ecn(&cx, &mut w);
        assert_eq!((control.ecn(), control.owns_recovery()), (EcnUse::Classic, false));
        let LossResponse::ReduceTo(threshold) = control.on_congestion(&cx, &mut w, &loss()) else {
            panic!("it owns nothing");
        };
        assert!((threshold - 70.0).abs() < 0.5, "{threshold}");
        assert_eq!(w.cwnd, 100.0);
    }
}
