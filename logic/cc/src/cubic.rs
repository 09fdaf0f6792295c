//! CUBIC: the window is a cubic function of the time since the last congestion.
//!
//! Sources: RFC 9438; Ha, Rhee and Xu, "CUBIC: A New TCP-Friendly High-Speed TCP Variant" (2008); and, which
//! decides here, `net/ipv4/tcp_cubic.c` of Linux 6.x. With the option `rfc9438` the RFC's formulas instead.
//!
//! State: `W_max`, the window at the last congestion; the epoch, which begins with the first ACK in congestion
//! avoidance after it; `K`, the time from there to `W_max`; `W_est`, the window of a Reno flow in our place.
//!
//! * `W(t) = C (t - K)^3 + W_max` (RFC 9438, equation 1), `K = cbrt((W_max - cwnd) / C)` (equation 2).
//! * On congestion `ssthresh = beta cwnd`; if the window had not got back to `W_max`, that becomes
//!   `cwnd (1 + beta) / 2` (fast convergence, section 4.7), otherwise `cwnd`.
//! * Linux: grows by a segment per `cnt` ACKed, `cnt = cwnd / (W(t + min RTT) - cwnd)` in whole segments, worked
//!   out again every 1/32 s or with the next window; never more than one per 2 ACKed; one per 100 windows beyond
//!   the curve; 5 % per window while there is no `W_max`. `W_est` gains one per `15/8` windows. RTT samples of
//!   an epoch's first second are not looked at. An idle time shifts the epoch, a timeout forgets everything.
//! * RFC: `cwnd += (target - cwnd) / cwnd` per segment ACKed, target `W(t + RTT)` within `[cwnd, 1.5 cwnd]`
//!   (section 4.2); `W_est` by section 4.3.
//!
//! Ours: `K` is exact where Linux has a table and one step of Newton's; times are nanoseconds, but `cnt` changes
//! once per millisecond, as with HZ = 1000.

use ranpace_units::{Span, Time};

use crate::hystart::{self, HyStart};
use crate::interface::{
    Ack, Answer, Congestion, CongestionControl, Context, LossBased, Sample, Signal, Window,
};
use crate::newreno::MIN_SSTHRESH;
use crate::options::{OptionError, OptionInfo, Options};
use crate::registry::{Control, Entry, Transport};

/// As `ranpace list cc` shows it.
pub const ENTRY: Entry = Entry {
    name: "cubic",
    about: "cubic growth towards the last maximum, as in Linux",
    source: "RFC 9438; Linux 6.x net/ipv4/tcp_cubic.c",
    options: &[
        OptionInfo { key: "rfc9438", values: "off, on", about: "the RFC's formulas instead of Linux's" },
        OptionInfo {
            key: "hystart",
            values: "classic, plusplus, ns-3, off",
            about: "how slow start ends without loss",
        },
        OptionInfo {
            key: "c",
            values: "0.001 to 100 (410/1024; RFC: 0.4)",
            about: "steepness in segments per s^3",
        },
        OptionInfo {
            key: "beta",
            values: "0.1 to 0.99 (717/1024; RFC: 0.7)",
            about: "window kept on congestion",
        },
        OptionInfo {
            key: "fast_convergence",
            values: "on, off",
            about: "give way if the last maximum was not reached",
        },
        OptionInfo { key: "friendliness", values: "on, off", about: "grow at least as a Reno flow would" },
    ],
    transport: Transport::Tcp,
    loss_based: true,
    build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let rfc9438 = options.flag("rfc9438", false)?;
    let kinds = [
        ("classic", hystart::Kind::Classic),
        ("plusplus", hystart::Kind::PlusPlus),
        ("ns-3", hystart::Kind::Ns3),
        ("off", hystart::Kind::Off),
    ];
    let hystart = options.choice("hystart", &kinds)?;
    let base = if rfc9438 { Params::RFC } else { Params::LINUX };
    let params = Params {
        c: options.number("c", 0.001, 100.0, base.c)?,
        beta: options.number("beta", 0.1, 0.99, base.beta)?,
        fast_convergence: options.flag("fast_convergence", base.fast_convergence)?,
        friendliness: options.flag("friendliness", base.friendliness)?,
        ..base
    };
    Ok(Control::LossBased(Box::new(Cubic::new(params, hystart))))
}

/// Time for which `cnt` stands while the window does (Linux: HZ / 32, in whole milliseconds).
const UPDATE_MS: u64 = 31;
/// Fewest segments ACKed per segment of growth (Linux).
const MIN_CNT: u64 = 2;
/// Windows per segment of growth beyond the curve (Linux).
const IDLE_WINDOWS: u64 = 100;
/// Segments ACKed per segment of growth while no maximum is known (Linux): 5 % per RTT.
const UNKNOWN_CNT: u64 = 20;
/// RTT samples of this long after an epoch's beginning are not looked at (Linux).
const RECOVERING: Span = Span::SECOND;
/// Largest target over the window (RFC 9438, section 4.2).
const MAX_TARGET: f64 = 1.5;

/// What an experimenter may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The RFC's formulas instead of Linux's.
    pub rfc9438: bool,
    /// `C`, in segments per cubic second.
    pub c: f64,
    /// `beta_cubic`.
    pub beta: f64,
    /// Fast convergence.
    pub fast_convergence: bool,
    /// The Reno-friendly region.
    pub friendliness: bool,
}

impl Params {
    /// As Linux is shipped: `bic_scale` 41, `beta` 717.
    pub const LINUX: Self = Self {
        rfc9438: false,
        c: 410.0 / 1024.0,
        beta: 717.0 / 1024.0,
        fast_convergence: true,
        friendliness: true,
    };
    /// RFC 9438, sections 4.6 and 5.
    pub const RFC: Self = Self { rfc9438: true, c: 0.4, beta: 0.7, ..Self::LINUX };
}

/// The control.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: Params,
    hystart: HyStart,
    /// `W_max` in segments; zero for none.
    w_max: f64,
    /// Window at the last congestion (RFC 9438 `cwnd_prior`); zero for none.
    prior: f64,
    /// Smallest RTT outside an epoch's first second; zero for none.
    min_delay: Span,
    epoch: Option<Time>,
    /// `K` in seconds.
    k: f64,
    /// What the curve is centred on.
    origin: f64,
    /// Window of a Reno flow in our place.
    w_est: f64,
    /// Segments ACKed for `w_est`.
    est_acked: u64,
    /// Segments ACKed per segment of growth.
    cnt: u64,
    /// Window and millisecond at which `cnt` was worked out.
    last: (u64, u64),
    /// Segments ACKed since the last segment of growth (Linux `snd_cwnd_cnt`).
    counter: u64,
    /// ACKed windows per segment of `w_est`, in eighths (Linux `beta_scale`).
    beta_scale: u64,
}

impl Cubic {
    /// A fresh control.
    pub fn new(params: Params, hystart: hystart::Kind) -> Self {
        // (1 + beta) / (1 - beta) / 3 windows are ACKed per segment that a Reno flow with our beta gains
        // (RFC 9438, section 4.3); 15 eighths for beta = 717/1024.
        let beta_scale = (8.0 * (1.0 + params.beta) / 3.0 / (1.0 - params.beta)) as u64;
        Self {
            params,
            hystart: HyStart::new(hystart),
            w_max: 0.0,
            prior: 0.0,
            min_delay: Span::ZERO,
            epoch: None,
            k: 0.0,
            origin: 0.0,
            w_est: 0.0,
            est_acked: 0,
            cnt: MIN_CNT,
            last: (0, 0),
            counter: 0,
            beta_scale: beta_scale.max(1),
        }
    }

    /// Slow start ends in this way from now on.
    pub(crate) fn use_hystart(&mut self, cx: &Context, kind: hystart::Kind) {
        if self.hystart.kind() != kind {
            self.hystart = HyStart::new(kind);
            self.hystart.reset(cx);
        }
    }

    /// Forgets everything (Linux `bictcp_reset`).
    fn reset(&mut self, cx: &Context) {
        self.hystart.reset(cx);
        self.w_max = 0.0;
        self.prior = 0.0;
        self.min_delay = Span::ZERO;
        self.epoch = None;
        self.last = (0, 0);
        self.counter = 0;
    }

    fn begin_epoch(&mut self, now: Time, cwnd: f64) -> Time {
        self.epoch = Some(now);
        self.w_est = cwnd;
        if self.w_max <= cwnd {
            self.k = 0.0;
            self.origin = cwnd;
        } else {
            self.k = libm::cbrt((self.w_max - cwnd) / self.params.c);
            self.origin = self.w_max;
        }
        now
    }

    /// `C (t - K)^3`: how far the curve is from its centre, `t` seconds into the epoch.
    fn offset(&self, t: f64) -> f64 {
        let d = t - self.k;
        self.params.c * d * d * d
    }

    /// Linux `bictcp_update`.
    fn update(&mut self, now: Time, cwnd: u64, acked: u64) {
        self.est_acked += acked;
        let ms = now.as_millis();
        if self.last.0 == cwnd && ms - self.last.1.min(ms) <= UPDATE_MS {
            return;
        }
        if self.epoch.is_none() || ms != self.last.1 {
            self.last = (cwnd, ms);
            let epoch = match self.epoch {
                Some(epoch) => epoch,
                None => {
                    self.est_acked = acked;
                    self.begin_epoch(now, cwnd as f64)
                }
            };
            // Casts of a float cut off its fraction: below the centre the curve is rounded up, above down.
            let offset = self.offset((now.since(epoch) + self.min_delay).as_secs_f64());
            let origin = self.origin as u64;
            let target = if offset < 0.0 {
                origin.saturating_sub((-offset) as u64)
            } else {
                origin.saturating_add(offset as u64)
            };
            self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { IDLE_WINDOWS * cwnd };
            if self.w_max == 0.0 {
                self.cnt = self.cnt.min(UNKNOWN_CNT);
            }
        }
        if self.params.friendliness {
            let per_segment = (cwnd * self.beta_scale / 8).max(1);
            if self.est_acked > per_segment {
                let gained = (self.est_acked - 1) / per_segment;
                self.est_acked -= gained * per_segment;
                self.w_est += gained as f64;
            }
            let est = self.w_est as u64;
            if est > cwnd {
                self.cnt = self.cnt.min(cwnd / (est - cwnd));
            }
        }
        self.cnt = self.cnt.max(MIN_CNT);
    }

    /// One segment per `cnt` ACKed (Linux `tcp_cong_avoid_ai`).
    fn grow(&mut self, w: &mut Window, acked: u64) {
        if self.counter >= self.cnt {
            self.counter = 0;
            w.cwnd += 1.0;
        }
        self.counter += acked;
        if self.counter >= self.cnt {
            w.cwnd += (self.counter / self.cnt) as f64;
            self.counter %= self.cnt;
        }
    }

    /// RFC 9438, sections 4.2 to 4.5.
    fn grow_by_rfc(&mut self, cx: &Context, w: &mut Window, acked: f64) {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(cx.now, w.cwnd),
        };
        let t = cx.now.since(epoch).as_secs_f64();
        let target = self.origin + self.offset(t + cx.srtt.as_secs_f64());
        let target = target.clamp(w.cwnd, MAX_TARGET * w.cwnd);
        let beta = self.params.beta;
        let alpha = if self.w_est >= self.prior { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        self.w_est += alpha * acked / w.cwnd;
        if self.params.friendliness && self.origin + self.offset(t) < self.w_est {
            w.cwnd = w.cwnd.max(self.w_est);
        } else {
            w.cwnd += (target - w.cwnd) / w.cwnd * acked;
        }
    }
}

impl CongestionControl for Cubic {
    fn on_start(&mut self, cx: &Context, _: &mut Window) {
        self.hystart.reset(cx);
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        let Some(rtt) = sample.rtt else { return };
        if self.epoch.is_some_and(|epoch| cx.now.since(epoch) < RECOVERING) {
            return;
        }
        let rtt = rtt.max(Span::from_micros(1));
        if self.min_delay.is_zero() || rtt < self.min_delay {
            self.min_delay = rtt;
        }
        self.hystart.on_sample(cx, w, rtt, self.min_delay);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> Answer {
        let ssthresh = if event.first { self.recalc_ssthresh(cx, w) } else { w.ssthresh.max(MIN_SSTHRESH) };
        if let Signal::Timeout { .. } = event.kind {
            self.reset(cx);
        }
        Answer::ReduceTo(ssthresh)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if !cx.cwnd_limited {
            return;
        }
        let mut acked = ack.acked as f64;
        if w.in_slow_start() {
            acked = self.hystart.slow_start(cx, w, acked);
        }
        if self.params.rfc9438 {
            if acked > 0.0 {
                self.grow_by_rfc(cx, w, acked);
            }
        } else if acked >= 1.0 {
            // Segments, so that a decorator's fraction of a window or of an ACK has to wait until it is whole.
            self.update(cx.now, w.cwnd as u64, acked as u64);
            self.grow(w, acked as u64);
        }
    }

    /// Linux on `CA_EVENT_TX_START`; RFC 9438, section 5.8: the time without growth is not on the curve.
    fn on_idle_restart(&mut self, cx: &Context, _: &mut Window, idle: Span) {
        self.epoch = self.epoch.map(|epoch| (epoch + idle).min(cx.now));
    }

    fn on_path_change(&mut self, cx: &Context, _: &mut Window) {
        self.min_delay = Span::ZERO;
        self.hystart.reset(cx);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("w_max", self.w_max);
        show("k", self.k);
        show("w_est", self.w_est);
        show("cnt", self.cnt as f64);
        show("epoch_start", self.epoch.map_or(f64::NAN, Time::as_secs_f64));
        show("min_delay", self.min_delay.as_secs_f64());
        show("hystart_found", f64::from(u8::from(self.hystart.has_found())));
    }
}

impl LossBased for Cubic {
    /// Ends the epoch and sets `W_max` (RFC 9438, sections 4.6 and 4.7).
    fn recalc_ssthresh(&mut self, _: &Context, w: &Window) -> f64 {
        let Params { rfc9438, beta, fast_convergence, .. } = self.params;
        let whole = |segments: f64| if rfc9438 { segments } else { segments as u64 as f64 };
        let cwnd = whole(w.cwnd);
        self.epoch = None;
        self.counter = 0;
        self.prior = cwnd;
        self.w_max =
            if cwnd < self.w_max && fast_convergence { whole(cwnd * (1.0 + beta) / 2.0) } else { cwnd };
        whole(cwnd * beta).max(MIN_SSTHRESH)
    }

    fn epoch_start(&self) -> Option<Time> {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{Bed, ack, context, loss, reduced_to, round, sample};

    const RTT: Span = Span::from_millis(50);

    fn control(params: Params) -> Cubic {
        Cubic::new(params, hystart::Kind::Off)
    }

    /// A control that has just come down from `w_max`, its window and context.
    fn reduced(params: Params, w_max: f64) -> (Cubic, Context, Window) {
        let mut control = control(params);
        let mut w = Window::new(w_max);
        let cx = context(Time::from_secs(1));
        w.ssthresh = reduced_to(control.on_congestion(&cx, &mut w, &loss()));
        w.cwnd = w.ssthresh;
        (control, cx, w)
    }

    #[test]
    fn the_window_follows_the_curve() {
        // RFC 9438, equation 1. Ahead by the RTT, as both forms aim at the window of an RTT later.
        for params in [Params::LINUX, Params::RFC] {
            for w_max in [200.0, 1_000.0, 5_000.0] {
                let params = Params { friendliness: false, ..params };
                let (mut control, mut cx, mut w) = reduced(params, w_max);
                let k = libm::cbrt((w_max - w.cwnd) / params.c);
                let begin = cx.now;
                round(&mut control, &mut cx, &mut w, RTT);
                assert!((control.k / k - 1.0).abs() < 1e-9, "K {} for {k}", control.k);
                while cx.now < begin + Span::from_secs_f64(1.5 * k) {
                    round(&mut control, &mut cx, &mut w, RTT);
                    let t = (cx.now - begin).as_secs_f64();
                    let curve = params.c * (t - k) * (t - k) * (t - k) + w_max;
                    let error = w.cwnd / curve - 1.0;
                    assert!(error.abs() < 0.02, "{} for {curve} at {t} s, {params:?}", w.cwnd);
                }
            }
        }
    }

    #[test]
    fn k_of_a_hundred_segments_is_4_2_seconds() {
        // RFC 9438, equation 2: cbrt(100 * 0.3 / 0.4) = 4.217 s.
        let (mut control, mut cx, mut w) = reduced(Params::RFC, 100.0);
        assert_eq!(w.cwnd, 70.0);
        round(&mut control, &mut cx, &mut w, RTT);
        assert!((control.k - 4.217).abs() < 0.001, "{}", control.k);
        // Linux: 717/1024 and 410/1024 of whole segments: cbrt(30 / 0.4004).
        let (mut control, mut cx, mut w) = reduced(Params::LINUX, 100.0);
        assert_eq!(w.cwnd, 70.0);
        round(&mut control, &mut cx, &mut w, RTT);
        assert!((control.k - 4.216).abs() < 0.001, "{}", control.k);
    }

    #[test]
    fn a_maximum_that_was_not_reached_is_lowered() {
        for (params, cwnd, w_max, ssthresh) in [
            (Params::LINUX, 80.0, 68.0, 56.0), // 80 * 1741 / 2048, 80 * 717 / 1024, cut off
            (Params::RFC, 80.0, 68.0, 56.0),   // 80 * 1.7 / 2, 80 * 0.7
            (Params::LINUX, 120.0, 120.0, 84.0),
            (Params::LINUX, 1.0, 0.0, 2.0), // 1 * 1741 / 2048, cut off
            (Params { fast_convergence: false, ..Params::LINUX }, 80.0, 80.0, 56.0),
        ] {
            let (mut control, cx, mut w) = reduced(params, 100.0);
            w.cwnd = cwnd;
            assert_eq!(control.recalc_ssthresh(&cx, &w), ssthresh, "of {cwnd}");
            assert_eq!(control.w_max, w_max, "of {cwnd}");
            assert_eq!(control.epoch_start(), None);
        }
    }

    #[test]
    fn growth_is_bounded_from_both_sides() {
        let mut cx = context(Time::from_secs(1));
        let acked = |control: &mut Cubic, segments: u64, w: &mut Window| {
            for _ in 0..segments {
                control.on_ack(&cx, w, &ack(1, RTT));
            }
        };
        let plain = Params { friendliness: false, ..Params::LINUX };
        // On the curve's plateau: one per 100 windows.
        let mut control = self::control(plain);
        control.w_max = 100.0;
        let mut w = Window { ssthresh: 100.0, ..Window::new(100.0) };
        acked(&mut control, 9_999, &mut w);
        assert_eq!(w.cwnd, 100.0);
        acked(&mut control, 1, &mut w);
        assert_eq!(w.cwnd, 101.0);
        // No maximum known: 5 %.
        let mut control = self::control(plain);
        let mut w = Window { ssthresh: 100.0, ..Window::new(100.0) };
        acked(&mut control, 100, &mut w);
        assert_eq!(w.cwnd, 105.0);
        // Far below the curve: one segment per two ACKed.
        let (mut control, _, _) = reduced(plain, 10_000.0);
        let mut w = Window { ssthresh: 100.0, ..Window::new(100.0) };
        control.on_ack(&cx, &mut w, &ack(1, RTT));
        cx.now += Span::from_secs(20);
        for _ in 0..20 {
            control.on_ack(&cx, &mut w, &ack(1, RTT));
        }
        assert_eq!(w.cwnd, 110.0);
    }

    #[test]
    fn it_is_no_slower_than_reno_with_the_same_beta() {
        // W_est gains a segment per 15/8 windows; RFC 9438, section 4.3: 3 (1 - 0.7) / (1 + 0.7) = 0.529 per window.
        assert_eq!(control(Params::LINUX).beta_scale, 15);
        for (params, prior, per_round) in
            [(Params::LINUX, 400.0, 8.0 / 15.0), (Params::RFC, 400.0, 0.529), (Params::RFC, 280.0, 1.0)]
        {
            let (mut control, mut cx, mut w) = reduced(params, 400.0);
            // From cwnd_prior on, a segment per window (RFC 9438, section 4.3).
            control.prior = prior;
            // 64 rounds of 5 ms, in which the curve gains 17. Linux is late by up to 1/32 s.
            for _ in 0..64 {
                round(&mut control, &mut cx, &mut w, Span::from_millis(5));
            }
            let gained = w.cwnd - 280.0;
            assert!((gained - 64.0 * per_round).abs() <= 4.0, "{gained} by {params:?}");
        }
    }

    #[test]
    fn the_rate_of_growth_stands_for_a_thirty_second_of_a_second() {
        let (mut control, cx, mut w) = reduced(Params { friendliness: false, ..Params::LINUX }, 1_000.0);
        let mut at = |ms: u64, control: &mut Cubic| {
            let cx = Context { now: cx.now + Span::from_millis(ms), ..cx };
            control.on_ack(&cx, &mut w, &ack(1, RTT));
            control.cnt
        };
        assert_eq!(at(0, &mut control), 700, "the curve is at 700 and rising");
        assert_eq!(at(31, &mut control), 700);
        // At 32 ms: 1000 - 0.4004 (9.083 - 0.032)^3, cut off, is 704, and 700 / 4 is 175.
        assert_eq!(at(32, &mut control), 175);
    }

    #[test]
    fn a_timeout_forgets_what_a_loss_remembers() {
        let (mut control, cx, mut w) = reduced(Params::LINUX, 100.0);
        control.on_sample(&cx, &mut w, &sample(RTT));
        let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
        assert_eq!(reduced_to(control.on_congestion(&cx, &mut w, &timeout)), 49.0);
        assert_eq!((control.w_max, control.min_delay), (0.0, Span::ZERO));
    }

    #[test]
    fn only_the_first_loss_of_an_episode_counts() {
        let (mut control, cx, mut w) = reduced(Params::LINUX, 100.0);
        let again = Congestion { first: false, ..loss() };
        assert_eq!(reduced_to(control.on_congestion(&cx, &mut w, &again)), 70.0);
        assert_eq!(control.w_max, 100.0);
    }

    #[test]
    fn rtts_of_an_epochs_first_second_are_not_looked_at() {
        let (mut control, mut cx, mut w) = reduced(Params::LINUX, 100.0);
        control.on_sample(&cx, &mut w, &sample(RTT));
        control.on_ack(&cx, &mut w, &ack(1, RTT));
        for (ms, expected) in [(0, 50), (999, 50), (1_000, 30)] {
            let cx = Context { now: cx.now + Span::from_millis(ms), ..cx };
            control.on_sample(&cx, &mut w, &sample(Span::from_millis(30)));
            assert_eq!(control.min_delay, Span::from_millis(expected), "after {ms} ms");
        }
        cx.now += Span::from_secs(5);
        control.on_idle_restart(&cx, &mut w, Span::from_secs(4));
        assert_eq!(control.epoch_start(), Some(Time::from_secs(5)), "an idle time shifts the epoch");
        control.on_idle_restart(&cx, &mut w, Span::from_secs(4));
        assert_eq!(control.epoch_start(), Some(cx.now), "but not beyond now");
    }

    #[test]
    fn a_pipe_with_a_buffer_of_its_size_stays_full() {
        for name in ["cubic", "cubic:rfc9438", "cubic:hystart=plusplus", "cubic:hystart=off"] {
            let mut bed = Bed::new(name, 2_000, 40);
            bed.buffer = 80;
            bed.run(20);
            bed.forget();
            bed.run(40);
            assert!(bed.utilisation() > 0.97, "{name}: {}", bed.utilisation());
            assert!(bed.figures.lost > 0, "{name}");
        }
    }
}
