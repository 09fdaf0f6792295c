//! RAPID's sender towards the user: its window is the one that the proxy allocates. Without an allocation it runs CUBIC.
//!
//! Source: Diarra 2022, 5.2.1 ("always sets its congestion window to the estimated flow BDP") and 5.3.3 (no response to
//! random losses). `ranpace_pep::rapid`, on the proxy where this sender runs, makes the allocations: it computes the rate,
//! the smallest RTT to the user (5.4.3) and the window from both.
//!
//! Two states, `driven` in `inspect`:
//!
//! * 1: the window is the allocated one, updated with each allocation. Losses and marks change nothing.
//! * 0: no allocation (radio information is missing, or the flow is not bounded): CUBIC as in Linux.
//!
//! Ours, where the source is silent: after a timeout the window is one segment until the next acknowledgement; a first
//! allocation that arrives during a CUBIC loss episode takes effect at its end; when the allocation is withdrawn, a fresh
//! CUBIC continues from the current window, in slow start with HyStart. Pacing is off as in the source; with `pacing=on` the
//! payload is sent at the allocated rate.

use ranpace_units::{Rate, Span};

use crate::classic::cubic::{LinuxCubic, Params};
use crate::classic::hystart;
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Allocation, Congestion, CongestionControl, Context, LossResponse, Pacing, Sample, Signal, State,
    Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "rapid",
    about: "on a RAPID proxy, towards the user: the window that the proxy allocates; CUBIC without an allocation",
    source: "Diarra 2022, sections 5.2.1 and 5.3.3",
    options: &[OptionInfo { key: "pacing", values: "off, on", about: "pace at the allocated rate" }],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let params = Settings { pacing: options.flag("pacing", false)? };
    Ok(Control::Other(Box::new(Rapid::new(params))))
}

/// User-configurable parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Pace at the allocated rate.
    pub pacing: bool,
}

/// The control.
#[derive(Clone, Debug)]
pub struct Rapid {
    settings: Settings,
    cubic: LinuxCubic,
    allocation: Option<Allocation>,
    driven: bool,
    /// Nothing has been acknowledged since a timeout.
    collapsed: bool,
}

impl Rapid {
    /// Creates a control.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            cubic: LinuxCubic::new(Params::LINUX, hystart::Kind::Classic),
            allocation: None,
            driven: false,
            collapsed: false,
        }
    }

    /// Applies the allocation's window and pace.
    fn apply(&mut self, cx: &Context, w: &mut Window) {
        let Some(Allocation { rate, window }) = self.allocation else { return };
        if !self.driven {
            // PRR controls the window until CUBIC's loss episode is over.
            if !matches!(cx.state, State::Open | State::Disorder) {
                return;
            }
            self.driven = true;
        }
        let mss = cx.mss.as_f64().max(1.0);
        w.cwnd = if self.collapsed { 1.0 } else { (window.as_f64() / mss).max(1.0) };
        w.pacing = if self.settings.pacing {
            // The endpoint's pace counts bytes on the wire. A segment per RTT keeps the pace above zero.
            let srtt = if cx.srtt.is_zero() { Span::SECOND } else { cx.srtt };
            let least = 8.0 * mss / srtt.as_secs_f64();
            Pacing::Rate(Rate::from_bits_per_s_f64(rate.as_f64().max(least) * cx.wire.as_f64() / mss))
        } else {
            Pacing::Unlimited
        };
    }

    /// CUBIC continues from the current window.
    fn release(&mut self, cx: &Context, w: &mut Window) {
        if !self.driven {
            return;
        }
        (self.driven, self.collapsed) = (false, false);
        self.cubic = LinuxCubic::new(Params::LINUX, hystart::Kind::Classic);
        w.ssthresh = f64::INFINITY;
        w.pacing = Pacing::Unlimited;
        self.cubic.on_start(cx, w);
    }
}

impl CongestionControl for Rapid {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.cubic.on_start(cx, w);
        self.apply(cx, w);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        if !self.driven {
            self.cubic.on_sample(cx, w, sample);
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        if !self.driven {
            return self.cubic.on_congestion(cx, w, event);
        }
        if let Signal::Timeout { .. } = event.kind {
            self.collapsed = true;
            w.cwnd = 1.0;
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if !self.driven {
            self.cubic.on_ack(cx, w, ack);
        }
        self.collapsed &= ack.delivered == 0;
        self.apply(cx, w);
    }

    fn owns_recovery(&self) -> bool {
        self.driven
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        if !self.driven {
            self.cubic.on_recovered(cx, w);
        }
        self.apply(cx, w);
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        if self.driven {
            self.collapsed = false;
            self.apply(cx, w);
        } else {
            self.cubic.on_spurious(cx, w, prior);
        }
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        if self.driven {
            self.apply(cx, w);
        } else {
            self.cubic.on_idle_restart(cx, w, idle);
        }
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.cubic.on_path_change(cx, w);
    }

    fn on_allocation(&mut self, cx: &Context, w: &mut Window, allocation: Option<Allocation>) {
        self.allocation = allocation;
        match allocation {
            Some(_) => self.apply(cx, w),
            None => self.release(cx, w),
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("driven", f64::from(u8::from(self.driven)));
        if let Some(allocation) = self.allocation {
            show("allocation_bit_s", allocation.rate.as_f64());
            show("allocation_bytes", allocation.window.as_f64());
        }
        if !self.driven {
            self.cubic.inspect(show);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::testbed::{Bed, context};
    use proptest::prelude::*;
    use ranpace_units::{Bytes, Time};

    fn rapid(settings: Settings) -> (Rapid, Context, Window) {
        let mut cx = context(Time::from_secs(1));
        (cx.mss, cx.wire, cx.srtt) = (Bytes::new(1440), Bytes::new(1500), Span::from_millis(30));
        (Rapid::new(settings), cx, Window::new(10.0))
    }

    fn allocated(rate: u64, window: u64) -> Option<Allocation> {
        Some(Allocation { rate: Rate::from_bits_per_s(rate), window: Bytes::new(window) })
    }

    const TIMEOUT: Congestion = Congestion {
        kind: Signal::Timeout { count: 1 },
        lost: 5,
        largest: Bytes::new(1440),
        newest_sent_at: Time::ZERO,
        first: true,
    };
    const LOSS: Congestion = Congestion { kind: Signal::Loss, ..TIMEOUT };

    #[test]
    fn the_window_is_the_allocated_one() {
        let (mut control, cx, mut w) = rapid(Settings::default());
        // A proxy may allocate before the handshake is over. The windows are those of the specification's Test R-1.
        control.on_allocation(&cx, &mut w, allocated(8_368_508, 31_381));
        control.on_start(&cx, &mut w);
        assert!((w.cwnd * 1440.0 - 31_381.0).abs() < 0.1, "{}", w.cwnd);
        assert_eq!(w.pacing, Pacing::Unlimited);
        control.on_allocation(&cx, &mut w, allocated(1_598_984, 14_400));
        assert_eq!(w.cwnd, 10.0);
        control.on_allocation(&cx, &mut w, allocated(0, 0));
        assert_eq!(w.cwnd, 1.0, "it can always send");
    }

    #[test]
    fn pacing_lets_the_payload_leave_at_the_allocated_rate() {
        let (mut control, cx, mut w) = rapid(Settings { pacing: true });
        control.on_start(&cx, &mut w);
        control.on_allocation(&cx, &mut w, allocated(11_520_000, 43_200));
        let Pacing::Rate(pace) = w.pacing else { panic!("{w:?}") };
        assert_eq!(pace.time_for(cx.wire), Span::from_millis(1)); // 1440 B of payload
        control.on_allocation(&cx, &mut w, allocated(0, 14_400));
        let Pacing::Rate(pace) = w.pacing else { panic!("{w:?}") };
        assert_eq!(pace.time_for(cx.wire), Span::from_millis(30));
    }

    #[test]
    fn losses_change_nothing_and_a_timeout_costs_one_acknowledgement() {
        let (mut control, cx, mut w) = rapid(Settings::default());
        control.on_start(&cx, &mut w);
        control.on_allocation(&cx, &mut w, allocated(8_000_000, 30_000));
        let before = w;
        assert_eq!(control.on_congestion(&cx, &mut w, &LOSS), LossResponse::Own);
        assert_eq!(w, before);
        assert!(control.owns_recovery());
        assert_eq!(control.on_congestion(&cx, &mut w, &TIMEOUT), LossResponse::Own);
        assert_eq!(w.cwnd, 1.0);
        let cx = Context { state: State::Loss, ..cx };
        control.on_allocation(&cx, &mut w, allocated(8_000_000, 30_000));
        assert_eq!(w.cwnd, 1.0, "nothing has been acknowledged");
        let ack = Ack {
            acked: 1,
            delivered: 1,
            bytes: cx.mss,
            rtt: None,
            rate: crate::RateSample::default(),
            prior_in_flight: 1,
            ecn_echo: false,
            marked: 0,
            braked: 0,
        };
        control.on_ack(&cx, &mut w, &ack);
        assert_eq!(w, before);
    }

    #[test]
    fn an_allocation_waits_for_the_end_of_cubics_recovery() {
        let (mut control, cx, mut w) = rapid(Settings::default());
        control.on_start(&cx, &mut w);
        let LossResponse::ReduceTo(ssthresh) = control.on_congestion(&cx, &mut w, &LOSS) else {
            panic!("CUBIC without an allocation")
        };
        assert_eq!(ssthresh, 7.0);
        let repairing = Context { state: State::Recovery, ..cx };
        let before = w;
        control.on_allocation(&repairing, &mut w, allocated(80_000_000, 300_000));
        assert_eq!((w, control.owns_recovery()), (before, false));
        control.on_recovered(&cx, &mut w);
        assert!(control.owns_recovery());
        assert!((w.cwnd - 208.3).abs() < 0.1, "{}", w.cwnd);
    }

    #[test]
    fn without_an_allocation_it_is_cubic_and_takes_over_from_the_window() {
        for (rate, buffer) in [(1_000, 20), (500, 60)] {
            let run = |name: &str| {
                let mut bed = Bed::new(name, rate, 40);
                bed.buffer = buffer;
                bed.run(20);
                (bed.figures.acked, bed.figures.lost, bed.window.cwnd)
            };
            assert_eq!(run("rapid"), run("cubic"));
        }
        let mut bed = Bed::new("rapid", 1_000, 40);
        bed.buffer = 100;
        let allocation =
            Allocation { rate: Rate::from_bits_per_s(1_000 * 1_448 * 8), window: Bytes::new(40 * 1_448) };
        bed.control.on_allocation(&bed.cx, &mut bed.window, Some(allocation));
        bed.run(5);
        assert_eq!(bed.figures.lost, 0);
        // 40 of the 41 segments that fit, and one RTT before the first acknowledgement.
        assert!(bed.queued() < 2.0 && bed.utilisation() > 0.96, "{} {}", bed.queued(), bed.utilisation());
        bed.control.on_allocation(&bed.cx, &mut bed.window, None);
        bed.forget();
        bed.run(20);
        assert!(bed.utilisation() > 0.97, "{}", bed.utilisation());
        assert_eq!(bed.figure("driven"), 0.0);
        bed.control.on_allocation(&bed.cx, &mut bed.window, Some(allocation));
        bed.run(1);
        bed.forget();
        bed.run(5);
        assert_eq!((bed.figure("driven"), bed.figures.lost), (1.0, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// Whatever is allocated and whenever, a segment may be in flight and the pace is not zero.
        #[test]
        fn window_never_closes_for_any_allocation(
            pacing in any::<bool>(),
            started in any::<bool>(),
            events in proptest::collection::vec((0..7u8, any::<u64>(), 0..5_usize), 1..200),
        ) {
            let (mut control, mut cx, mut w) = rapid(Settings { pacing });
            if started {
                control.on_start(&cx, &mut w);
            }
            for (event, number, state) in events {
                cx.now += Span::from_micros(number % 100_000);
                cx.state = [State::Open, State::Disorder, State::Cwr, State::Recovery, State::Loss][state];
                let rate = crate::RateSample::default();
                let (acked, bytes) = (number % 3, cx.mss * (number % 3));
                match event {
                    0 => control.on_allocation(&cx, &mut w, allocated(number, number)),
                    1 => control.on_allocation(&cx, &mut w, allocated(number % 50_000_000, number % 1_000_000)),
                    2 => control.on_allocation(&cx, &mut w, None),
                    3 => {
                        cx.srtt = Span::from_nanos(number % 10_000_000_000);
                        control.on_recovered(&cx, &mut w);
                    }
                    4 => {
                        let before = w.cwnd;
                        let answer = control.on_congestion(&cx, &mut w, if acked == 0 { &TIMEOUT } else { &LOSS });
                        prop_assert_eq!(answer == LossResponse::Own, control.owns_recovery());
                        prop_assert!(w.cwnd <= before);
                    }
                    5 => control.on_path_change(&cx, &mut w),
                    _ => control.on_ack(
                        &cx,
                        &mut w,
                        &Ack { acked, delivered: acked, bytes, rtt: None, rate, prior_in_flight: 9, ecn_echo: false, marked: 0, braked: 0 },
                    ),
                }
                prop_assert!(w.cwnd >= 1.0 && w.cwnd.is_finite(), "{w:?}");
                prop_assert!(w.pacing != Pacing::Rate(Rate::ZERO));
                prop_assert!(pacing || w.pacing == Pacing::Unlimited);
            }
        }
    }

    #[test]
    fn options_are_checked() {
        let error = "rapid:sr_allowance=16ms".parse::<crate::Algorithm>().unwrap_err().to_string();
        assert!(error.contains("sr_allowance"), "{error}");
        "rapid:pacing".parse::<crate::Algorithm>().unwrap();
    }
}
