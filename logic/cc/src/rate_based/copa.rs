//! Copa: steers the window towards a rate that falls with the queueing delay, `1 / (delta dq)`.
//!
//! Source: Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018; law and constants checked
//! with the authors' code. Certainty: high.
//!
//! `standing` is the least RTT of half a smoothed RTT, `RTTmin` that of [`MIN_RTT_WINDOW`], and `dq` their difference. With each
//! acknowledged segment the window moves by `v / (delta cwnd)`: up while `cwnd / standing` is at most the target rate, down otherwise.
//! The velocity `v` doubles once per RTT after three RTTs in the same direction. Slow start adds each acknowledged segment until the
//! first step down.
//!
//! With `mode=auto`, as published, a queue that does not empty within five RTTs counts as the work of a flow that fills buffers: then
//! `1/delta` grows by one per RTT without loss and is halved by loss. Advice: `mode=default` on cells, whose delay varies by
//! itself: there the test errs, and on paths with a BDP of few packets it does most of the time.
//!
//! Ours: a flow that does not use its window does not grow it, but shrinks it. An RTT that never varies counts as an empty queue. The
//! minima and maxima are kept by three samples, as in BBR, and may be a quarter of their window late. Left out: the authors'
//! reaction to 30 % loss.

use ranpace_units::{Rate, Span, Time};

use crate::entry::{Control, Entry, Transport};
use crate::filter::MaxFilter;
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, EcnUse, LossResponse, Pacing, Sample, Signal, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "copa",
    about: "Copa: a rate that falls with the queueing delay",
    source: "Arun and Balakrishnan, NSDI 2018, and the authors' code; certainty: high",
    options: &[
        OptionInfo {
            key: "delta",
            values: "0.01 to 1 (0.5)",
            about: "how short the queue is kept: at most about 2.5/delta packets",
        },
        OptionInfo {
            key: "mode",
            values: "auto or default [auto]",
            about: "whether it competes with flows that fill buffers (auto), or never",
        },
        OptionInfo {
            key: "window",
            values: "1 to 100 (5)",
            about: "RTTs within which the queue must empty, for auto",
        },
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _seed: u64) -> Result<Control, OptionError> {
    let settings = Settings {
        delta: options.number("delta", 0.01, 1.0, DELTA)?,
        competes: options.choice("mode", &[("auto", true), ("default", false)])?,
        window: options.number("window", 1.0, 100.0, 5.0)?,
    };
    Ok(Control::Other(Box::new(Copa::new(settings))))
}

/// delta of the default mode; section 2.
const DELTA: f64 = 0.5;
/// Window of RTTmin.
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
/// RTTs of which the largest is taken for the mode.
const MAX_RTTS: f64 = 4.0;
/// The queue is nearly empty below this share of its largest delay.
const NEARLY_EMPTY: f64 = 0.1;
/// RTTs in the same direction until the velocity doubles.
const SAME_DIRECTION: u32 = 3;
/// Smallest window in segments.
const MIN_CWND: f64 = 2.0;
/// Least 1/delta while competing.
const LEAST_INVERSE: f64 = 2.0;
/// Pace over cwnd / standing.
const PACING_GAIN: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
struct Settings {
    delta: f64,
    competes: bool,
    window: f64,
}

/// A least or largest RTT of a window of time.
#[derive(Clone, Debug, Default)]
struct Least(MaxFilter);

impl Least {
    fn update(&mut self, window: Span, now: Time, rtt: Span) {
        self.0.update(window.as_nanos(), now.as_nanos(), u64::MAX - rtt.as_nanos());
    }

    /// `None` before the first RTT.
    fn get(&self) -> Option<Span> {
        let kept = self.0.get();
        (kept > 0).then(|| Span::from_nanos(u64::MAX - kept))
    }
}

/// The control.
#[derive(Clone, Debug)]
pub struct Copa {
    settings: Settings,
    standing: Least,
    min_rtt: Least,
    /// For the mode: least RTT of `window` RTTs, largest of four.
    recent: Least,
    largest: MaxFilter,
    slow_start: bool,
    competing: bool,
    /// 1/delta in use.
    inverse: f64,
    velocity: f64,
    /// Direction of the last RTT, how many RTTs it has lasted, and the window when it was looked at.
    upwards: bool,
    same: u32,
    cwnd_then: f64,
    next_look: Time,
    lost: bool,
}

impl Copa {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            standing: Least::default(),
            min_rtt: Least::default(),
            recent: Least::default(),
            largest: MaxFilter::default(),
            slow_start: true,
            competing: false,
            inverse: 1.0 / settings.delta,
            velocity: 1.0,
            upwards: true,
            same: 0,
            cwnd_then: 0.0,
            next_look: Time::ZERO,
            lost: false,
        }
    }

    /// Queueing delay in seconds.
    fn queueing(&self) -> f64 {
        match (self.standing.get(), self.min_rtt.get()) {
            (Some(standing), Some(least)) => standing.as_secs_f64() - least.as_secs_f64(),
            _ => 0.0,
        }
    }

    /// Target rate in segments per second; infinite with an empty queue.
    fn target(&self) -> f64 {
        let queueing = self.queueing();
        if queueing <= 0.0 { f64::INFINITY } else { self.inverse / queueing }
    }

    fn is_below_target(&self, w: &Window) -> bool {
        let standing = self.standing.get().map_or(0.0, Span::as_secs_f64);
        standing <= 0.0 || w.cwnd / standing <= self.target()
    }

    /// Whether the queue has been nearly empty within the last RTTs.
    fn empties(&self) -> bool {
        let (Some(least), Some(recent)) = (self.min_rtt.get(), self.recent.get()) else { return true };
        let (least, recent) = (least.as_secs_f64(), recent.as_secs_f64());
        let largest = Span::from_nanos(self.largest.get()).as_secs_f64();
        largest <= least || recent < least + NEARLY_EMPTY * (largest - least)
    }

    /// Once per RTT: velocity, mode and delta.
    fn look(&mut self, cx: &Context, w: &Window) {
        self.next_look = cx.now + cx.srtt;
        let upwards = w.cwnd > self.cwnd_then;
        self.same = if upwards == self.upwards { self.same + 1 } else { 0 };
        (self.upwards, self.cwnd_then) = (upwards, w.cwnd);
        self.velocity = if self.same >= SAME_DIRECTION { self.velocity * 2.0 } else { 1.0 };
        self.velocity = self.velocity.min((w.cwnd / self.inverse).max(1.0));
        let competing = self.settings.competes && !self.empties();
        if !competing {
            self.inverse = 1.0 / self.settings.delta;
        } else if self.lost {
            self.inverse = (self.inverse / 2.0).max(LEAST_INVERSE);
        } else if self.competing {
            self.inverse += 1.0;
        }
        (self.competing, self.lost) = (competing, false);
    }

    fn set_pace(&self, cx: &Context, w: &mut Window) {
        let Some(standing) = self.standing.get().filter(|standing| !standing.is_zero()) else { return };
        w.pacing = Pacing::Rate(Rate::of(cx.wire.mul_f64(PACING_GAIN * w.cwnd), standing));
    }
}

impl CongestionControl for Copa {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        if !cx.srtt.is_zero() {
            self.standing.update(cx.srtt / 2, cx.now, cx.srtt);
            self.min_rtt.update(MIN_RTT_WINDOW, cx.now, cx.srtt);
        }
        self.cwnd_then = w.cwnd;
        self.next_look = cx.now + cx.srtt;
        self.set_pace(cx, w);
    }

    fn on_sample(&mut self, cx: &Context, _: &mut Window, sample: &Sample) {
        let Some(rtt) = sample.rtt else { return };
        self.standing.update(cx.srtt / 2, cx.now, rtt);
        self.min_rtt.update(MIN_RTT_WINDOW, cx.now, rtt);
        if self.settings.competes {
            self.recent.update(cx.srtt.mul_f64(self.settings.window), cx.now, rtt);
            self.largest.update(cx.srtt.mul_f64(MAX_RTTS).as_nanos(), cx.now.as_nanos(), rtt.as_nanos());
        }
    }

    fn on_congestion(&mut self, _: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        match event.kind {
            Signal::Loss => self.lost = true,
            Signal::Timeout { .. } => {
                (w.cwnd, self.velocity, self.same, self.lost) = (MIN_CWND, 1.0, 0, true);
            }
            Signal::Ecn => {}
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        let acked = ack.delivered as f64;
        let up = self.is_below_target(w);
        self.slow_start &= up;
        if self.slow_start {
            if cx.cwnd_limited {
                w.cwnd += acked;
            }
        } else {
            if up != self.upwards && self.velocity > 1.0 {
                (self.velocity, self.same) = (1.0, 0);
            }
            let step = self.velocity * self.inverse * acked / w.cwnd.max(MIN_CWND);
            if !up {
                w.cwnd -= step;
            } else if cx.cwnd_limited {
                w.cwnd += step;
            }
        }
        w.cwnd = w.cwnd.max(MIN_CWND);
        if cx.now >= self.next_look {
            self.look(cx, w);
        }
        self.set_pace(cx, w);
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    /// It has no answer to marks.
    fn ecn(&self) -> EcnUse {
        EcnUse::NotEct
    }

    /// A loss has not changed the window.
    fn on_spurious(&mut self, _: &Context, w: &mut Window, prior: &Window) {
        w.cwnd = w.cwnd.max(prior.cwnd);
    }

    fn on_path_change(&mut self, _: &Context, _: &mut Window) {
        (self.standing, self.min_rtt) = (Least::default(), Least::default());
        (self.recent, self.largest) = (Least::default(), MaxFilter::default());
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("competing", f64::from(u8::from(self.competing)));
        show("delta", 1.0 / self.inverse);
        show("velocity", self.velocity);
        show("queueing_s", self.queueing());
        if let Some(standing) = self.standing.get() {
            show("standing_rtt_s", standing.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fifo::{Flow, Path, WIRE};
    use crate::testing::testbed::{ack, context, loss, sample};

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// A control past slow start with this RTTmin and standing RTT.
    fn settled(least: Span, standing: Span) -> (Copa, Context) {
        let mut control = Copa::new(Settings { delta: 0.5, competes: true, window: 5.0 });
        let cx = context(Time::from_secs(1));
        control.slow_start = false;
        control.min_rtt.update(MIN_RTT_WINDOW, cx.now, least);
        control.standing.update(ms(20), cx.now, standing);
        control.next_look = Time::MAX;
        (control, cx)
    }

    #[test]
    fn window_moves_towards_the_target_rate() {
        let (control, _) = settled(ms(40), ms(44));
        assert!((control.target() - 500.0).abs() < 1e-6);
        for (cwnd, up) in [(22.0, true), (23.0, false)] {
            assert_eq!(control.is_below_target(&Window::new(cwnd)), up, "{cwnd}");
        }
        let (mut control, cx) = settled(ms(40), ms(41));
        let mut w = Window::new(50.0);
        control.on_ack(&cx, &mut w, &ack(1, ms(41)));
        assert!((w.cwnd - 50.04).abs() < 1e-9, "{}: below the target of 2000 segments per second", w.cwnd);
        // Two per RTT is to first order: the step shrinks while the window grows. Exactly two, if one ACK covers the whole window.
        for (covered, gain) in [(50, 2.0), (1, 1.962)] {
            let mut w = Window::new(50.0);
            let (mut control, cx) = settled(ms(40), ms(40));
            (0..50 / covered).for_each(|_| control.on_ack(&cx, &mut w, &ack(covered, ms(40))));
            assert!((w.cwnd - 50.0 - gain).abs() < 5e-4, "ACKs of {covered}: {}", w.cwnd);
        }
        let (control, _) = settled(ms(40), ms(48));
        let mbit = control.target() * (WIRE * 8) as f64 / 1e6;
        assert!((mbit - 3.0).abs() < 1e-6, "{mbit}: a standing queue of 8 ms");
    }

    #[test]
    fn velocity_doubles_after_three_rtts_in_a_direction_and_is_one_after_a_reversal() {
        let (mut control, cx) = settled(ms(40), ms(40));
        let mut w = Window::new(100.0);
        control.cwnd_then = 99.0;
        let mut velocities = Vec::new();
        for _ in 0..6 {
            control.look(&cx, &w);
            velocities.push(control.velocity);
            w.cwnd += 1.0;
        }
        assert_eq!(velocities, [1.0, 1.0, 2.0, 4.0, 8.0, 16.0]);
        control.look(&cx, &Window::new(20.0));
        assert_eq!(control.velocity, 1.0);
        control.velocity = 8.0;
        control.upwards = false;
        control.on_ack(&cx, &mut w, &ack(1, ms(40)));
        assert_eq!(control.velocity, 1.0, "an empty queue asks for growth");
    }

    #[test]
    fn queue_that_does_not_empty_means_competition() {
        for (recent_us, empties) in [(41_900, true), (42_000, false)] {
            let (mut control, cx) = settled(ms(40), ms(42));
            control.recent.update(ms(200), cx.now, Span::from_micros(recent_us));
            control.largest.update(ms(160).as_nanos(), cx.now.as_nanos(), ms(60).as_nanos());
            assert_eq!(control.empties(), empties, "{recent_us}");
        }
        let (mut control, cx) = settled(ms(40), ms(50));
        control.recent.update(ms(200), cx.now, ms(50));
        control.largest.update(ms(160).as_nanos(), cx.now.as_nanos(), ms(60).as_nanos());
        let mut w = Window::new(50.0);
        let mut inverses = Vec::new();
        for lost in [false, false, false, true] {
            if lost {
                assert_eq!(control.on_congestion(&cx, &mut w, &loss()), LossResponse::Own);
            }
            control.look(&cx, &w);
            inverses.push(control.inverse);
        }
        assert_eq!(inverses, [2.0, 3.0, 4.0, 2.0]);
        assert_eq!(w.cwnd, 50.0, "loss does not change the window");
    }

    #[test]
    fn unused_window_does_not_grow() {
        let (mut control, cx) = settled(ms(40), ms(40));
        let cx = Context { cwnd_limited: false, ..cx };
        let mut w = Window::new(50.0);
        control.on_sample(&cx, &mut w, &sample(ms(40)));
        control.on_ack(&cx, &mut w, &ack(1, ms(40)));
        assert_eq!(w.cwnd, 50.0);
    }

    /// Share of the acknowledgements in competitive mode, and the mean and largest queue in packets, of a flow that is alone on a path.
    fn alone(name: &str, mbit_s: f64, rtt: u64) -> (f64, f64, f64) {
        let mut flow = Flow::new(Path::new(mbit_s, rtt, 10_000), name, 1);
        let (mut acks, mut competing) = (0.0, 0.0);
        flow.run(Time::from_secs(5));
        flow.run_with(Time::from_secs(40), &mut |flow| {
            acks += 1.0;
            competing += flow.figure("competing");
        });
        let settled = flow.delays.iter().filter(|(at, _)| *at >= Time::from_secs(5));
        let queues: Vec<f64> =
            settled.map(|(_, delay)| delay.as_secs_f64() * mbit_s * 1e6 / (WIRE * 8) as f64).collect();
        let mean = queues.iter().sum::<f64>() / queues.len() as f64;
        (competing / acks, mean, queues.into_iter().fold(0.0, f64::max))
    }

    /// The specification's check has a queue of 0 to 5 packets, 2.5 on average, in `default`; in `auto` 12 % of the acknowledgements in
    /// competitive mode at 1000 packets per second and 40 ms, and all with a BDP of 8 packets.
    #[test]
    fn alone_auto_takes_its_own_queue_for_competition_and_default_does_not() {
        for (rate, rtt) in [(12.0, 40), (2.4, 40)] {
            let (competing, mean, largest) = alone("copa:mode=default", rate, rtt);
            assert_eq!(competing, 0.0);
            assert!((2.0..3.0).contains(&mean) && largest <= 5.0, "{rate} Mbit/s: {mean}, {largest}");
        }
        let (competing, ..) = alone("copa", 12.0, 40);
        assert!((0.08..0.16).contains(&competing), "BDP of 40 packets: {competing}");
        for (rate, rtt) in [(2.4, 40), (12.0, 8)] {
            let (competing, mean, _) = alone("copa", rate, rtt);
            assert!(competing > 0.5 && mean > 25.0, "BDP of 8 packets in {rtt} ms: {competing}, {mean}");
        }
    }

    #[test]
    fn full_with_a_few_packets_in_the_queue() {
        for (rate, rtt) in [(5.0, 40), (12.0, 40), (24.0, 20), (50.0, 50)] {
            let mut flow = Flow::new(Path::new(rate, rtt, 10_000), "copa:mode=default", 1);
            flow.run(Time::from_secs(5));
            let utilisation = flow.utilisation_until(Time::from_secs(25));
            let mut queues: Vec<f64> = flow
                .delays
                .iter()
                .filter(|(at, _)| *at >= Time::from_secs(5))
                .map(|(_, delay)| delay.as_secs_f64() * rate * 1e6 / (WIRE * 8) as f64)
                .collect();
            queues.sort_by(f64::total_cmp);
            let p95 = queues[queues.len() * 95 / 100];
            assert!(utilisation >= 0.95, "{rate} Mbit/s, {rtt} ms: {utilisation}");
            assert!(p95 <= 6.0, "{rate} Mbit/s, {rtt} ms: p95 {p95} packets");
        }
    }
}
