//! TCP Prague: a window that yields in proportion to the share of marked segments, and grows while it does.
//!
//! Source: draft-briscoe-iccrg-prague-congestion-control-04, and the reference module of Linux (`tcp_prague`, 0.6 and 0.7), as
//! understood from their public text and code. State: the window `W` with its fraction, the smoothed share of marks `alpha`, and when
//! it was last updated and the window last cut. The numbers of the rules, per acknowledgement of `n` unmarked segments:
//!
//! 1. `vRTT = max(srtt, 25 ms)`; `f = (srtt / vRTT)^2` from the fourth round after slow start, before that 1.
//! 2. The first mark ever: `W /= 2`, slow start ends (0.7). With `first=alpha`: `alpha` becomes 1, then rule 3 (0.6 and draft).
//! 3. Any other mark, outside recovery, a round and a vRTT after the last cut: `W -= W alpha / 2`.
//! 4. Outside recovery, if the window was the limit: slow start `W += n`, then `W += n f / W`, marks or not.
//! 5. After a round and a vRTT: `alpha += (share of marks - alpha) / 16`.
//! 6. `cwnd` moves by at most one segment towards `W`, rounded up; pace `W / srtt`, twice that below half of `ssthresh`, in bursts of at
//!    most 250 us.
//! 7. Loss: `W /= 2` once per recovery, without growth in it. A timeout: as NewReno.
//!
//! Rule 4 is the difference to DCTCP. Left out: 0.7's rate mode below four segments, its smaller packets below 1 Mbit/s, its dither of
//! the pace, and the detection of classic ECN queues. Without accurate feedback the control is NewReno, and sends ECT(0).

use ranpace_units::{Rate, Span, Time};

use crate::classic::newreno::{BETA, MIN_SSTHRESH, grow};
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, EcnUse, LossResponse, Pacing, Signal, State, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "prague",
    about: "L4S: yields in proportion to the share of marks; as understood from its draft and Linux module",
    source: "draft-briscoe-iccrg-prague-congestion-control-04; Linux tcp_prague.c 0.7; RFC 9331; certainty: high",
    options: &[OptionInfo {
        key: "first",
        values: "halve, alpha (halve)",
        about: "at the first mark, halve the window (0.7), or set alpha to 1 (0.6 and the draft)",
    }],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: None,
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let first_alpha = options.choice("first", &[("halve", false), ("alpha", true)])?;
    Ok(Control::Other(Box::new(Prague { first_alpha, ..Prague::default() })))
}

/// Least RTT whose growth per round is that of NewReno: shorter ones grow as slowly per second.
const VIRTUAL_RTT: Span = Span::from_millis(25);
/// Rounds after slow start before growth is scaled (0.7; 500 in 0.6).
const SCALED_AFTER: u32 = 4;
/// Gain of `alpha`.
const GAIN: f64 = 1.0 / 16.0;
/// Longest burst.
const BURST: Span = Span::from_micros(250);
/// Share of the window in flight that counts as all of it. Ours: at the pace `W / srtt` the last segment rarely fits.
const USED: f64 = 0.9;
/// Smallest window.
const LEAST: f64 = 2.0;

/// The control.
#[derive(Clone, Debug, Default)]
struct Prague {
    first_alpha: bool,
    /// The window with its fraction, in segments.
    window: f64,
    alpha: f64,
    /// Whether a mark has ever been seen.
    marked: bool,
    /// Segments counted since `alpha` was updated.
    counted: Counts,
    /// When that was, and the last cut, in time and in segments delivered.
    updated: Mark,
    cut: Option<Mark>,
    /// The beginning of the current round, and the rounds since slow start, as far as they matter.
    round: u64,
    rounds: u32,
    /// The window before the last reduction for a loss.
    prior: f64,
    /// There is no accurate feedback.
    coarse: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    marked: u64,
    delivered: u64,
}

/// An instant, in time and in segments delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Time,
    delivered: u64,
}

impl Mark {
    fn now(cx: &Context) -> Self {
        Self { at: cx.now, delivered: cx.delivered }
    }

    /// Returns whether a round and a virtual RTT have passed since: a segment sent later is acknowledged.
    fn is_past(&self, cx: &Context, ack: &Ack) -> bool {
        ack.rate.prior_delivered >= self.delivered && cx.now.since(self.at) >= virtual_rtt(cx.srtt)
    }
}

fn virtual_rtt(srtt: Span) -> Span {
    srtt.max(VIRTUAL_RTT)
}

/// Rule 1: the growth of a round relative to NewReno's.
fn scale(srtt: Span) -> f64 {
    let ratio = srtt.as_secs_f64() / virtual_rtt(srtt).as_secs_f64();
    ratio * ratio
}

impl Prague {
    fn count_rounds(&mut self, cx: &Context, w: &Window, ack: &Ack) {
        if ack.rate.prior_delivered < self.round {
            return;
        }
        self.round = cx.delivered;
        self.rounds = if self.window < w.ssthresh { 0 } else { self.rounds.saturating_add(1) };
    }

    /// Rules 2 and 3.
    fn yield_to_marks(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if ack.marked == 0 {
            return;
        }
        if !self.marked {
            self.marked = true;
            self.updated = Mark::now(cx);
            self.counted = Counts::default();
            if self.first_alpha {
                self.alpha = 1.0;
            } else {
                self.reduce(cx, w, 0.5);
                return;
            }
        }
        if cx.state != State::Recovery && self.cut.is_none_or(|cut| cut.is_past(cx, ack)) {
            self.reduce(cx, w, self.alpha / 2.0);
        }
    }

    fn reduce(&mut self, cx: &Context, w: &mut Window, share: f64) {
        self.window = (self.window - self.window * share).max(LEAST);
        w.ssthresh = self.window;
        self.cut = Some(Mark::now(cx));
    }

    /// Rule 4.
    fn grow(&mut self, cx: &Context, w: &Window, ack: &Ack) {
        let unmarked = ack.acked.saturating_sub(ack.marked);
        let used = cx.cwnd_limited || ack.prior_in_flight as f64 >= self.window * USED;
        if unmarked == 0 || cx.state == State::Recovery || !used {
            return;
        }
        let unmarked = unmarked as f64;
        if self.window < w.ssthresh {
            self.window = (self.window + unmarked).min(w.ssthresh.max(self.window));
        } else {
            let factor = if self.rounds >= SCALED_AFTER { scale(cx.srtt) } else { 1.0 };
            self.window += unmarked * factor / self.window;
        }
    }

    /// Rule 5.
    fn update_alpha(&mut self, cx: &Context, ack: &Ack) {
        self.counted.marked += ack.marked;
        self.counted.delivered += ack.delivered;
        if !self.marked || self.counted.delivered == 0 || !self.updated.is_past(cx, ack) {
            return;
        }
        // A peer that lies cannot report more marks than segments.
        let share = (self.counted.marked as f64 / self.counted.delivered as f64).min(1.0);
        self.alpha += (share - self.alpha) * GAIN;
        (self.updated, self.counted) = (Mark::now(cx), Counts::default());
    }

    /// Rule 6.
    fn show(&self, cx: &Context, w: &mut Window) {
        let goal = libm::ceil(self.window).max(LEAST);
        w.cwnd = if w.cwnd < goal { (w.cwnd + 1.0).min(goal) } else { (w.cwnd - 1.0).max(goal) };
        if cx.srtt.is_zero() {
            return;
        }
        let faster = if self.window < w.ssthresh / 2.0 { 2.0 } else { 1.0 };
        let rate = faster * self.window * cx.wire.as_f64() * 8.0 / cx.srtt.as_secs_f64();
        w.pacing = Pacing::Rate(Rate::from_bits_per_s_f64(rate.max(1.0)));
    }
}

impl CongestionControl for Prague {
    fn ecn(&self) -> EcnUse {
        if self.coarse { EcnUse::Classic } else { EcnUse::Scalable }
    }

    fn on_coarse_ecn(&mut self, _: &Context, w: &mut Window) {
        self.coarse = true;
        w.pacing = Pacing::Unlimited;
    }

    fn burst(&self) -> Option<Span> {
        Some(BURST)
    }

    fn owns_recovery(&self) -> bool {
        !self.coarse
    }

    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.window = w.cwnd;
        self.updated = Mark::now(cx);
        self.show(cx, w);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        if self.coarse {
            return LossResponse::ReduceTo((w.cwnd * BETA).max(MIN_SSTHRESH));
        }
        if !event.first {
            return LossResponse::Own;
        }
        self.prior = self.window;
        w.ssthresh = (self.window * BETA).max(MIN_SSTHRESH);
        if matches!(event.kind, Signal::Timeout { .. }) {
            self.window = (cx.in_flight + 1) as f64;
            w.cwnd = self.window;
        } else {
            self.window = w.ssthresh;
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if self.coarse {
            return grow(cx, w, ack.acked as f64);
        }
        self.count_rounds(cx, w, ack);
        self.yield_to_marks(cx, w, ack);
        self.grow(cx, w, ack);
        self.update_alpha(cx, ack);
        self.show(cx, w);
    }

    fn on_spurious(&mut self, _: &Context, w: &mut Window, prior: &Window) {
        self.window = self.window.max(self.prior);
        w.cwnd = w.cwnd.max(prior.cwnd);
        w.ssthresh = w.ssthresh.max(prior.ssthresh);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("alpha", self.alpha);
        show("window", self.window);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::testing::testbed::{ack, context, loss};

    const RTT: Span = Span::from_millis(25);

    /// A control in avoidance, with this window and `alpha`, after its first mark.
    fn settled(window: f64, alpha: f64) -> (Prague, Window) {
        let w = Window { ssthresh: window, ..Window::new(window) };
        (Prague { window, alpha, marked: true, rounds: 10, ..Prague::default() }, w)
    }

    fn at(ms: u64, delivered: u64) -> Context {
        Context { srtt: RTT, delivered, ..context(Time::from_millis(ms)) }
    }

    /// An acknowledgement of segments of which some are marked, all sent after `prior` had been delivered.
    fn marked(acked: u64, marked: u64, prior: u64) -> Ack {
        let mut ack = ack(acked, RTT);
        (ack.marked, ack.rate.prior_delivered) = (marked, prior);
        ack
    }

    #[test]
    fn alpha_follows_the_share_of_marks() {
        for (shares, expected) in [
            ([(4, 2), (4, 2), (4, 2)], [0.031_25, 0.060_547, 0.088_013]),
            ([(4, 2), (4, 2), (4, 1)], [0.031_25, 0.060_547, 0.072_388]),
        ] {
            let (mut control, _) = settled(40.0, 0.0);
            for (round, ((all, some), alpha)) in shares.into_iter().zip(expected).enumerate() {
                let round = round as u64 + 1;
                control.update_alpha(&at(30 * round, 4 * round), &marked(all, some, 4 * (round - 1)));
                assert!((control.alpha - alpha).abs() < 1e-6, "{} is not {alpha}", control.alpha);
            }
        }
    }

    #[test]
    fn a_mark_cuts_by_half_of_alpha_once_per_virtual_rtt() {
        for (window, alpha, expected) in [(100.0, 0.2, 90.0), (40.0, 0.072_388, 38.552_24)] {
            let (mut control, mut w) = settled(window, alpha);
            control.yield_to_marks(&at(100, 500), &mut w, &marked(2, 1, 400));
            assert!((control.window - expected).abs() < 1e-9, "{}", control.window);
            assert_eq!(w.ssthresh, control.window);
            for (case, ms, prior, cuts) in [
                ("within the round", 200, 499, false),
                ("within the virtual RTT", 124, 500, false),
                ("after both", 125, 500, true),
            ] {
                let (mut again, mut w) = (control.clone(), w);
                again.yield_to_marks(&at(ms, 600), &mut w, &marked(1, 1, prior));
                assert_eq!(again.window < control.window, cuts, "{case}");
            }
        }
    }

    #[test]
    fn the_first_mark_ends_slow_start() {
        for (first_alpha, alpha) in [(false, 0.0), (true, 1.0)] {
            let mut control = Prague { first_alpha, window: 80.0, ..Prague::default() };
            let mut w = Window::new(80.0);
            control.yield_to_marks(&at(100, 80), &mut w, &marked(1, 1, 0));
            assert_eq!((control.window, w.ssthresh, control.alpha), (40.0, 40.0, alpha));
        }
    }

    #[test]
    fn growth_is_scaled_below_25_ms_and_goes_on_under_marks() {
        for (ms, factor) in [(5, 0.04), (10, 0.16), (20, 0.64), (25, 1.0), (50, 1.0)] {
            assert!((scale(Span::from_millis(ms)) - factor).abs() < 1e-12, "{ms} ms");
        }
        for (ms, gain) in [(10, 0.004), (50, 0.025)] {
            let (mut control, w) = settled(40.0, 0.1);
            let cx = Context { srtt: Span::from_millis(ms), ..at(100, 500) };
            control.grow(&cx, &w, &ack(1, RTT));
            assert!((control.window - 40.0 - gain).abs() < 1e-12, "{ms} ms");
            control.rounds = 3;
            control.window = 40.0;
            control.grow(&cx, &w, &ack(1, RTT));
            assert_eq!(control.window, 40.025, "in the first rounds after slow start as NewReno");
        }
        let (mut control, mut w) = settled(40.0, 0.1);
        control.cut = Some(Mark { at: Time::from_millis(99), delivered: 499 });
        control.on_ack(&at(100, 500), &mut w, &marked(2, 1, 450));
        assert_eq!(control.window, 40.025, "one of two is unmarked");
    }

    #[test]
    fn growth_and_cut_of_a_virtual_rtt_balance_at_0_96_of_its_law() {
        // If there were a cut in each virtual RTT, 10 % of marks would mean 0.96 * (1 / 0.1 - 1) Mbit/s, whatever the RTT up to 25 ms.
        for ms in [10, 25] {
            let rtt = Span::from_millis(ms);
            let segments_per_s = 0.96 * 9.0 * 1e6 / 12_000.0;
            let window = segments_per_s * rtt.as_secs_f64();
            let (mut control, mut w) = settled(window, 0.1);
            control.grow(&Context { srtt: rtt, ..at(100, 500) }, &w, &ack(1, rtt));
            let growth = (control.window - window) * 0.9 * segments_per_s * VIRTUAL_RTT.as_secs_f64();
            control.window = window;
            control.yield_to_marks(&Context { srtt: rtt, ..at(100, 500) }, &mut w, &marked(1, 1, 400));
            let cut = window - control.window;
            assert!((growth - cut).abs() < 1e-9, "{ms} ms: {growth} and {cut}");
        }
    }

    #[test]
    fn the_window_that_is_shown_moves_by_a_segment() {
        let (mut control, mut w) = settled(40.0, 0.5);
        control.on_ack(&at(100, 500), &mut w, &marked(1, 1, 450));
        assert_eq!((control.window, w.cwnd), (30.0, 39.0));
        assert_eq!(w.pacing, Pacing::Rate(Rate::from_bits_per_s(30 * 12_000 * 40)));
    }

    #[test]
    fn a_loss_halves_once_and_can_be_undone() {
        let (mut control, mut w) = settled(40.0, 0.0);
        let prior = w;
        assert_eq!(control.on_congestion(&at(1, 1), &mut w, &loss()), LossResponse::Own);
        assert_eq!((control.window, w.ssthresh), (20.0, 20.0));
        control.on_congestion(&at(2, 2), &mut w, &Congestion { first: false, ..loss() });
        assert_eq!(control.window, 20.0);
        control.grow(&Context { state: State::Recovery, ..at(3, 3) }, &w, &ack(5, RTT));
        assert_eq!(control.window, 20.0, "it does not grow in recovery");
        control.on_spurious(&at(4, 4), &mut w, &prior);
        assert_eq!((control.window, w.cwnd), (40.0, 40.0));
        let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
        control.on_congestion(&Context { in_flight: 0, ..at(5, 5) }, &mut w, &timeout);
        assert_eq!((control.window, w.cwnd, w.ssthresh), (1.0, 1.0, 20.0));
    }

    /// The rate in Mbit/s, with packets of 1500 bytes, of a flow whose only limit is that each packet is marked with this probability.
    fn rate_under_marks(probability: f64, rtt: Span, seed: u64) -> f64 {
        let (warm_up, end) = (Time::from_secs(20), Time::from_secs(120));
        let (mut control, mut w) = (Prague::default(), Window::new(10.0));
        let mut cx = Context { srtt: rtt, min_rtt: rtt, ..context(Time::ZERO) };
        control.on_start(&cx, &mut w);
        let mut state = seed;
        let mut is_marked = || {
            // Marsaglia's xorshift.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64 <= probability
        };
        // When packets are acknowledged, and how many had been delivered when they were sent.
        let mut acks: VecDeque<(Time, u64)> = VecDeque::new();
        let (mut next_departure, mut counted) = (Time::ZERO, 0);
        while cx.now < end {
            let departure = next_departure.max(cx.now);
            match acks.front().copied() {
                Some((at, prior)) if acks.len() as f64 >= w.cwnd.floor() || at <= departure => {
                    cx.now = at;
                    cx.delivered += 1;
                    counted += u64::from(cx.now > warm_up);
                    let mut ack = Ack {
                        prior_in_flight: acks.len() as u64,
                        ..marked(1, u64::from(is_marked()), prior)
                    };
                    ack.rtt = Some(rtt);
                    acks.pop_front();
                    cx.in_flight = acks.len() as u64;
                    control.on_ack(&cx, &mut w, &ack);
                }
                _ => {
                    cx.now = departure;
                    next_departure = departure + rtt.mul_f64(1.0 / control.window);
                    acks.push_back((departure + rtt, cx.delivered));
                }
            }
        }
        counted as f64 * 12_000.0 / end.since(warm_up).as_secs_f64() / 1e6
    }

    /// The law of the reference module's header is 1/p - 1 Mbit/s. With the wait for a round and a virtual RTT behind a cut it is 1.18
    /// to 1.5 times that (comparators-end-host, 8).
    #[test]
    fn its_rate_under_random_marks_is_that_of_its_law_whatever_the_rtt() {
        for probability in [0.01, 0.05, 0.1] {
            let over_law = [10, 25].map(|ms| {
                let rates = [1, 2, 3]
                    .map(|seed| rate_under_marks(probability, Span::from_millis(ms), 0x9e37_79b9 * seed));
                let rate = rates.iter().sum::<f64>() / 3.0;
                rate / (1.0 / probability - 1.0)
            });
            assert!(over_law.iter().all(|ratio| (1.1..1.5).contains(ratio)), "p {probability}: {over_law:?}");
            assert!((over_law[0] / over_law[1] - 1.0).abs() < 0.1, "p {probability}: {over_law:?}");
        }
    }

    #[test]
    fn without_accurate_feedback_it_is_newreno_with_ect_0() {
        let (mut control, mut w) = settled(40.0, 0.3);
        control.on_coarse_ecn(&at(1, 1), &mut w);
        assert_eq!((control.ecn(), control.owns_recovery()), (EcnUse::Classic, false));
        let ecn = Congestion { kind: Signal::Ecn, lost: 0, ..loss() };
        assert_eq!(control.on_congestion(&at(1, 1), &mut w, &ecn), LossResponse::ReduceTo(20.0));
        control.on_ack(&at(2, 2), &mut w, &marked(40, 9, 0));
        assert_eq!((w.cwnd, w.pacing), (41.0, Pacing::Unlimited));
    }
}
