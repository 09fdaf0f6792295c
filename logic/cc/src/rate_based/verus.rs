//! Verus: learns which window causes which delay, and moves along that profile towards an acceptable delay.
//!
//! Source: Zaki et al., "Adaptive Congestion Control for Unpredictable Cellular Networks", SIGCOMM 2015; constants and
//! the order of the rules as in the published code (`yzaki/verus`).
//!
//! States: *slow start* (one more packet per acknowledgement; ends with a loss or a delay above [`SLOW_START_DELAY`]);
//! *normal* (every [`EPOCH`]: delay estimate, target delay, window from the profile, packets to send); *loss* (the window is
//! cut to [`DECREASE`] of its value when the lost packet was sent, then grows by one packet per window acknowledged, with the
//! profile frozen, until a packet sent with no larger a window is acknowledged). A timeout restarts slow start.
//!
//! The delay profile has a point per window, an average of the delays of packets sent with it; every second a curve is fitted
//! through the points, and inverted to obtain windows from delays.
//!
//! Ours, where sources are silent or the code relies on a library: the curve is the natural cubic spline through the means of
//! groups of neighbouring windows (as many groups as the code's penalised fit has base functions), made monotone by its
//! running maximum, and extended beyond the largest window, with the slope between its ends, to twice that window; the target
//! delay is limited to that range; if no window satisfies the target, the window is 1 instead of a restart; in the loss state
//! the window bounds the flight as in TCP; at least one packet may be in flight; delays are round trips, as in the code.

use std::collections::VecDeque;

use ranpace_units::{Span, Time};

use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, Packet, PacketOutcome, Sent, Signal,
    Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "verus",
    about: "learns the delay that each window causes, and aims at one",
    source: "Zaki et al., SIGCOMM 2015",
    options: &[OptionInfo {
        key: "r",
        values: "1.1 to 20 [6]",
        about: "largest delay over the smallest; more gives throughput for delay",
    }],
    transport: Transport::Datagram,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    Ok(Control::Other(Box::new(Verus::new(options.number("r", 1.1, 20.0, 6.0)?))))
}

/// Length of an epoch (paper: epsilon).
const EPOCH: Span = Span::from_millis(5);
/// Time between two fits of the profile (paper).
const REFIT: Span = Span::from_secs(1);
/// Decrease of the target delay when the delay grows, in ms (paper: delta 1).
const DELTA_1: f64 = 1.0;
/// Increase otherwise, and decrease when the delay is too large, in ms (paper: delta 2).
const DELTA_2: f64 = 2.0;
/// Window after a loss over that at the sending of the packet lost (code; paper: M).
const DECREASE: f64 = 0.7;
/// Delay that ends slow start, in ms (code).
const SLOW_START_DELAY: f64 = 500.0;
/// Share of `R D_min` that is the first target delay (code).
const FIRST_TARGET: f64 = 0.75;
/// Weight of the past in the averages of the profile's points and of the delay (code).
const POINT_WEIGHT: f64 = 0.875;
/// Weight of the past in the average of the largest delays of epochs (code).
const MAX_WEIGHT: f64 = 0.2;
/// Change of the delay that counts as growth, in ms (code).
const GROWTH: f64 = 0.0001;
/// Raise of the smallest delay if the flight is minimal at it, in ms (code).
const MIN_RAISE: f64 = 10.0;
/// Windows per group of the profile's fit, and the fewest groups (code: at most 15 per base function, at least 5).
const GROUP: usize = 15;
/// See [`GROUP`].
const FEWEST_GROUPS: usize = 5;
/// Most groups. Ours, so that a fit stays short.
const MOST_GROUPS: usize = 64;
/// Windows that the profile distinguishes (code: 40 000). Ours is smaller: 16 384 packets are 200 Mbit/s for a second.
const LARGEST_WINDOW: usize = 16_384;

/// Window against delay.
#[derive(Clone, Debug)]
struct Profile {
    /// Average delay by window, in ms; negative where there is none.
    points: Vec<f64>,
    largest: usize,
    /// The fitted curve by window, non-decreasing; empty before the first fit.
    curve: Vec<f64>,
    /// Slope per packet beyond the curve.
    slope: f64,
    /// Buffer for the fit.
    knots: Vec<(f64, f64)>,
}

impl Profile {
    fn new() -> Self {
        Self { points: Vec::new(), largest: 0, curve: Vec::new(), slope: 0.0, knots: Vec::new() }
    }

    fn add(&mut self, window: usize, delay: f64) {
        let window = window.clamp(1, LARGEST_WINDOW);
        if window >= self.points.len() {
            self.points.resize((window + 1).next_power_of_two(), -1.0);
        }
        self.largest = self.largest.max(window);
        let point = &mut self.points[window];
        *point = if *point < 0.0 { delay } else { POINT_WEIGHT * *point + (1.0 - POINT_WEIGHT) * delay };
    }

    /// Fits the curve to the points; returns false if there are none.
    fn fit(&mut self) -> bool {
        let groups = (self.largest / GROUP).clamp(FEWEST_GROUPS, MOST_GROUPS);
        self.knots.clear();
        for group in 0..groups {
            let bound = |group: usize| 1 + self.largest * group / groups;
            let (mut n, mut window, mut delay) = (0.0, 0.0, 0.0);
            for w in bound(group)..bound(group + 1) {
                if self.points[w] >= 0.0 {
                    n += 1.0;
                    window += w as f64;
                    delay += self.points[w];
                }
            }
            if n > 0.0 {
                self.knots.push((window / n, delay / n));
            }
        }
        let (Some(first), Some(last)) = (self.knots.first(), self.knots.last()) else { return false };
        let spline = Spline::new(&self.knots);
        let mut highest = 0.0f64;
        self.curve.clear();
        for w in 0..=self.largest {
            // Beyond the outer knots the spline is linear.
            highest = highest.max(spline.at(&self.knots, w as f64));
            self.curve.push(highest);
        }
        // At least the slope of a line through the outer knots, and never flat: every window must cost something.
        let across = (last.1 - first.1) / (last.0 - first.0).max(1.0);
        self.slope = across.max(first.1 / (4.0 * self.largest as f64)).max(1e-3);
        true
    }

    /// The largest window whose delay does not exceed `delay` (code: the one before the first that exceeds it).
    fn window_at(&self, delay: f64) -> f64 {
        let below = self.curve.partition_point(|d| *d <= delay);
        if below < self.curve.len() {
            return below.saturating_sub(1).max(1) as f64;
        }
        let Some(last) = self.curve.last() else { return 1.0 };
        let beyond = (delay - last) / self.slope;
        let largest = self.largest as f64;
        (largest + beyond).min(2.0 * largest).min(LARGEST_WINDOW as f64).max(1.0)
    }

    /// The delay at the largest window that [`Self::window_at`] gives.
    fn highest_delay(&self) -> f64 {
        self.delay_at(2.0 * self.largest as f64).unwrap_or(f64::INFINITY)
    }

    /// The delay of a window, if there is a curve.
    fn delay_at(&self, window: f64) -> Option<f64> {
        let last = *self.curve.last()?;
        let place = window.max(0.0) as usize;
        Some(self.curve.get(place).copied().unwrap_or(last + (window - self.largest as f64) * self.slope))
    }
}

/// A natural cubic spline: the second derivatives at its knots.
struct Spline {
    second: Vec<f64>,
}

impl Spline {
    /// Solves the tridiagonal system; knots have increasing abscissae.
    fn new(knots: &[(f64, f64)]) -> Self {
        let n = knots.len();
        let (mut second, mut upper) = (vec![0.0; n], vec![0.0; n]);
        for i in 1..n.saturating_sub(1) {
            let ((x0, y0), (x1, y1), (x2, y2)) = (knots[i - 1], knots[i], knots[i + 1]);
            let share = (x1 - x0) / (x2 - x0);
            let pivot = share * upper[i - 1] + 2.0;
            upper[i] = (share - 1.0) / pivot;
            let bend = 6.0 * ((y2 - y1) / (x2 - x1) - (y1 - y0) / (x1 - x0)) / (x2 - x0);
            second[i] = (bend - share * second[i - 1]) / pivot;
        }
        for i in (1..n.saturating_sub(1)).rev() {
            second[i] += upper[i] * second[i + 1];
        }
        Self { second }
    }

    fn at(&self, knots: &[(f64, f64)], x: f64) -> f64 {
        let n = knots.len();
        if n < 2 {
            return knots.first().map_or(0.0, |knot| knot.1);
        }
        let right = knots.partition_point(|knot| knot.0 < x).clamp(1, n - 1);
        let ((x0, y0), (x1, y1)) = (knots[right - 1], knots[right]);
        let (m0, m1) = (self.second[right - 1], self.second[right]);
        let h = x1 - x0;
        let chord = (y1 - y0) / h;
        if x < x0 {
            return y0 + (x - x0) * (chord - h * (2.0 * m0 + m1) / 6.0);
        }
        if x > x1 {
            return y1 + (x - x1) * (chord + h * (m0 + 2.0 * m1) / 6.0);
        }
        let (a, b) = ((x1 - x) / h, (x - x0) / h);
        a * y0 + b * y1 + ((a * a * a - a) * m0 + (b * b * b - b) * m1) * h * h / 6.0
    }
}

/// The state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    SlowStart,
    Normal,
    Loss,
}

/// The control. Delays are in ms.
#[derive(Clone, Debug)]
pub struct Verus {
    /// Largest delay over smallest (paper: R).
    ratio: f64,
    mode: Mode,
    profile: Profile,
    /// Target window (W).
    window: f64,
    /// Target delay (D_est).
    target: f64,
    min_delay: f64,
    /// Average delay.
    delay: f64,
    /// Largest delay of the epoch; negative without one.
    epoch_max: f64,
    /// Average of the largest delays (D_max); negative before the first epoch.
    max_delay: f64,
    last_ack: Time,
    /// Windows at the sending of the packets from number `first_sent` on; 0 for settled packets.
    sent: VecDeque<u32>,
    first_sent: u64,
    /// Packets that may still be sent in this epoch.
    credit: u64,
    epoch_ends: Option<Time>,
    refit_at: Time,
}

impl Verus {
    fn new(ratio: f64) -> Self {
        Self {
            ratio,
            mode: Mode::SlowStart,
            profile: Profile::new(),
            window: 1.0,
            target: 0.0,
            min_delay: f64::INFINITY,
            delay: 0.0,
            epoch_max: -1.0,
            max_delay: -1.0,
            last_ack: Time::ZERO,
            sent: VecDeque::new(),
            first_sent: 0,
            credit: 0,
            epoch_ends: None,
            refit_at: Time::ZERO,
        }
    }

    fn restart(&mut self, cx: &Context) {
        let fresh = Self::new(self.ratio);
        let (sent, first_sent) = (core::mem::take(&mut self.sent), self.first_sent);
        *self = Self { last_ack: cx.now, sent, first_sent, ..fresh };
    }

    /// Publishes the window: flight plus the epoch's credit, or without epochs the window itself.
    fn update(&self, cx: &Context, w: &mut Window) {
        w.cwnd = match self.mode {
            Mode::SlowStart | Mode::Loss => self.window.max(1.0),
            Mode::Normal => (cx.in_flight as f64 + self.credit as f64).max(1.0),
        };
    }

    /// Cuts the window after a loss, or to end slow start.
    fn decrease(&mut self, cx: &Context, window: f64) {
        if self.mode == Mode::SlowStart {
            self.refit_at = cx.now + REFIT;
            if !self.profile.fit() {
                return; // nothing is known about the path yet
            }
            self.target = FIRST_TARGET * self.min_delay * self.ratio;
            self.epoch_ends = Some(cx.now + EPOCH);
        }
        self.window = (DECREASE * window).max(1.0);
        self.mode = Mode::Loss;
        self.credit = 0;
    }

    /// Removes and returns the window with which a packet was sent.
    fn settle(&mut self, number: u64) -> Option<f64> {
        let place = usize::try_from(number.checked_sub(self.first_sent)?).ok()?;
        let window = core::mem::take(self.sent.get_mut(place)?);
        while self.sent.front() == Some(&0) {
            self.sent.pop_front();
            self.first_sent += 1;
        }
        (window > 0).then_some(f64::from(window))
    }

    fn acked(&mut self, cx: &Context, window: f64, rtt: Span) {
        let delay = rtt.as_secs_f64() * 1e3;
        self.last_ack = cx.now;
        self.min_delay = self.min_delay.min(delay.max(1e-3));
        self.delay =
            if self.delay == 0.0 { delay } else { POINT_WEIGHT * self.delay + (1.0 - POINT_WEIGHT) * delay };
        if self.mode == Mode::SlowStart && delay > SLOW_START_DELAY {
            self.profile.add(window as usize, delay);
            self.decrease(cx, window);
            return;
        }
        if self.mode == Mode::Loss && window <= self.window {
            self.mode = Mode::Normal;
            self.epoch_max = -1.0;
            self.credit = 0;
        }
        self.epoch_max = self.epoch_max.max(delay);
        match self.mode {
            Mode::SlowStart => {
                self.profile.add(window as usize, delay);
                self.window += 1.0;
            }
            Mode::Normal => self.profile.add(window as usize, delay),
            Mode::Loss => {
                self.window += 1.0 / self.window;
                if let Some(at_window) = self.profile.delay_at(self.window) {
                    self.target = self.target.min(at_window);
                }
            }
        }
    }

    /// One epoch of the normal state: updates delay, target, window and packets to send.
    fn epoch(&mut self, cx: &Context) {
        let silence = (cx.now - self.last_ack).as_secs_f64() * 1e3;
        let largest = if self.epoch_max >= 0.0 { self.epoch_max } else { self.max_delay.max(silence) };
        self.epoch_max = -1.0;
        if self.max_delay < 0.0 {
            self.max_delay = largest;
        }
        let change = largest - self.max_delay;
        let mut hold = false;
        if self.max_delay / self.min_delay > self.ratio {
            self.target = (self.target - DELTA_2).max(self.min_delay);
            if self.target == self.min_delay {
                if cx.in_flight < 2 {
                    self.min_delay += MIN_RAISE;
                } else {
                    hold = true;
                }
            }
        } else if change > GROWTH {
            self.target = (self.target - DELTA_1).max(self.min_delay);
        } else {
            self.target += DELTA_2;
        }
        // Ours: a target beyond the curve's largest delay would take long to decrease again.
        self.target = self.target.min(self.profile.highest_delay().max(self.min_delay));
        self.window = self.profile.window_at(self.target);
        self.max_delay = MAX_WEIGHT * self.max_delay + (1.0 - MAX_WEIGHT) * largest;
        self.credit = if hold { 0 } else { self.packets(cx.in_flight as f64) };
    }

    /// `S = max(0, W + W_now (2 - n)/(n - 1))` with `n` epochs per round trip.
    fn packets(&self, in_flight: f64) -> u64 {
        let epochs = libm::ceil(self.delay / (EPOCH.as_secs_f64() * 1e3));
        let share = if epochs > 1.0 { (2.0 - epochs) / (epochs - 1.0) } else { -1.0 };
        (self.window + in_flight * share).max(0.0) as u64
    }
}

impl CongestionControl for Verus {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        w.pacing = Pacing::Unlimited;
        self.last_ack = cx.now;
        self.first_sent = cx.next_packet;
        self.update(cx, w);
    }

    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        if self.sent.is_empty() {
            self.first_sent = sent.number;
        }
        if sent.number == self.first_sent + self.sent.len() as u64 {
            self.sent.push_back((self.window.max(1.0) as u32).max(1));
        }
        self.credit = self.credit.saturating_sub(1);
        self.update(cx, w);
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_packet(&mut self, cx: &Context, _: &mut Window, packet: &Packet) {
        if packet.fate.is_at_proxy() {
            return;
        }
        let Some(window) = self.settle(packet.number) else { return };
        match packet.fate {
            PacketOutcome::Acked { rtt, .. } => self.acked(cx, window, rtt),
            // Within a loss episode further losses are of the window that has already been cut: no further cut.
            PacketOutcome::Lost if self.mode != Mode::Loss => self.decrease(cx, window),
            PacketOutcome::Lost
            | PacketOutcome::Spurious
            | PacketOutcome::Seen { .. }
            | PacketOutcome::Missing => {}
        }
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        if let Signal::Timeout { .. } = event.kind {
            self.restart(cx);
        }
        self.update(cx, w);
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, _: &Ack) {
        self.update(cx, w);
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn on_spurious(&mut self, _: &Context, _: &mut Window, _: &Window) {}

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.restart(cx);
        self.update(cx, w);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.epoch_ends
    }

    fn on_deadline(&mut self, cx: &Context, w: &mut Window) {
        if self.epoch_ends.is_none() {
            return;
        }
        self.epoch_ends = Some(cx.now + EPOCH);
        if self.mode == Mode::Normal {
            if cx.now >= self.refit_at {
                self.profile.fit();
                self.refit_at = cx.now + REFIT;
            }
            self.epoch(cx);
        }
        self.update(cx, w);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(self.mode as u8));
        show("window", self.window);
        show("target_ms", self.target);
        show("max_delay_ms", self.max_delay);
        if self.min_delay.is_finite() {
            show("min_delay_ms", self.min_delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fifo::{Flow, Path};

    #[test]
    fn constants_are_the_published_ones() {
        // 5 ms epochs, a second per fit, 1 ms and 2 ms, R = 6, 0.7, 500 ms.
        assert_eq!((EPOCH, REFIT), (Span::from_millis(5), Span::SECOND));
        assert_eq!((DELTA_1, DELTA_2, DECREASE, SLOW_START_DELAY), (1.0, 2.0, 0.7, 500.0));
        let algorithm: crate::Algorithm = "verus".parse().unwrap();
        assert_eq!(algorithm.transport(), Transport::Datagram);
    }

    #[test]
    fn the_spline_is_natural_and_goes_through_its_knots() {
        let knots = [(1.0, 20.0), (4.0, 22.0), (9.0, 40.0), (12.0, 90.0)];
        let spline = Spline::new(&knots);
        for (x, y) in knots {
            assert!((spline.at(&knots, x) - y).abs() < 1e-9);
        }
        assert_eq!((spline.second[0], spline.second[3]), (0.0, 0.0));
        // First and second derivatives are continuous at the inner knots.
        let slope = |x: f64| (spline.at(&knots, x + 1e-5) - spline.at(&knots, x - 1e-5)) / 2e-5;
        for x in [4.0, 9.0] {
            assert!((slope(x - 1e-4) - slope(x + 1e-4)).abs() < 1e-2);
        }
        // A line stays a line, also beyond its knots.
        let line = [(0.0, 1.0), (3.0, 7.0), (5.0, 11.0)];
        let spline = Spline::new(&line);
        for x in [-2.0, 1.5, 4.0, 9.0] {
            assert!((spline.at(&line, x) - (1.0 + 2.0 * x)).abs() < 1e-9);
        }
    }

    #[test]
    fn the_profile_is_read_backwards() {
        let mut profile = Profile::new();
        assert!(!profile.fit());
        assert_eq!(profile.window_at(50.0), 1.0);
        // 20 ms up to 20 packets, then a millisecond per packet.
        for window in 1..=100 {
            profile.add(window, 20.0 + (window as f64 - 20.0).max(0.0));
        }
        assert!(profile.fit());
        for (delay, low, high) in [(19.0, 1.0, 1.0), (40.0, 38.0, 42.0), (80.0, 78.0, 82.0)] {
            let window = profile.window_at(delay);
            assert!((low..=high).contains(&window), "{delay} ms: {window}");
            if delay > 20.0 {
                assert!((profile.delay_at(window).unwrap() - delay).abs() < 3.0);
            }
        }
        assert!((115.0..=140.0).contains(&profile.window_at(120.0)), "{}", profile.window_at(120.0));
        assert_eq!(profile.window_at(1e6), 200.0); // twice the largest window seen
    }

    #[test]
    fn an_epoch_s_packets_bring_the_flight_to_the_window() {
        let mut control = Verus::new(6.0);
        for (case, delay, window, in_flight, expected) in [
            ("n = 4: 12 - 12 * 2/3", 20.0, 12.0, 12.0, 4),
            ("n = 10: 20 - 9 * 8/9", 50.0, 20.0, 9.0, 12),
            ("too much in flight", 50.0, 5.0, 90.0, 0),
            ("n = 2: the window", 10.0, 7.0, 100.0, 7),
            ("n = 1: what is missing", 4.0, 7.0, 3.0, 4),
        ] {
            (control.delay, control.window) = (delay, window);
            assert_eq!(control.packets(in_flight), expected, "{case}");
        }
    }

    #[test]
    fn the_target_follows_the_rules() {
        let cx = Flow::new(Path::new(10.0, 20, 100), "newreno", 1).context();
        for (case, max_delay, epoch_max, target, expected) in [
            ("delay too large: down by 2", 130.0, 90.0, 60.0, 58.0),
            ("not below the smallest", 130.0, 90.0, 21.0, 20.0),
            ("delay grows: down by 1", 50.0, 51.0, 60.0, 59.0),
            ("delay does not grow: up by 2", 50.0, 50.0, 60.0, 62.0),
        ] {
            let mut control = Verus::new(6.0);
            (control.min_delay, control.max_delay) = (20.0, max_delay);
            (control.epoch_max, control.target) = (epoch_max, target);
            control.epoch(&Context { in_flight: 10, ..cx });
            assert_eq!(control.target, expected, "{case}");
        }
    }

    fn delay_and_utilisation(name: &str, path: Path) -> (f64, f64) {
        let mut flow = Flow::new(path, name, 1);
        flow.run(Time::from_secs(10));
        let utilisation = flow.utilisation_until(Time::from_secs(30));
        (flow.mean_delay(Time::from_secs(10), Time::from_secs(30)), utilisation)
    }

    #[test]
    fn delay_follows_r() {
        let mut last = 0.0;
        for r in [2, 4, 6] {
            let (delay, utilisation) =
                delay_and_utilisation(&format!("verus:r={r}"), Path::new(10.0, 40, 10_000));
            assert!(utilisation > 0.7, "R {r}: {utilisation}");
            assert!(delay > last && delay < 0.04 * f64::from(r), "R {r}: {delay} s after {last}");
            last = delay;
        }
    }

    #[test]
    fn short_buffers_and_other_rates() {
        for (rate, rtt, buffer) in [(1.0, 20, 100), (5.0, 20, 100), (24.0, 20, 40), (24.0, 50, 100)] {
            let (_, utilisation) = delay_and_utilisation("verus", Path::new(rate, rtt, buffer));
            assert!(utilisation > 0.6, "{rate} Mbit/s, {rtt} ms, {buffer}: {utilisation}");
        }
    }

    #[test]
    fn a_timeout_begins_slow_start_anew() {
        let mut flow = Flow::new(Path::new(10.0, 40, 10_000), "verus", 1);
        flow.run(Time::from_secs(10));
        assert_ne!(flow.figure("state"), 0.0);
        let (cx, mut w) = (flow.context(), flow.window);
        let event = Congestion {
            kind: Signal::Timeout { count: 1 },
            lost: 1,
            largest: cx.mss,
            newest_sent_at: cx.now,
            first: true,
        };
        flow.control.on_congestion(&cx, &mut w, &event);
        assert_eq!((flow.figure("state"), w.cwnd), (0.0, 1.0));
    }
}
