//! HyStart: leaves slow start before packets are lost, when the path shows that it is full.
//!
//! Sources: Ha and Rhee, "Hybrid Slow Start for High-Bandwidth and Long-Distance Networks" (PFLDnet 2008), as
//! implemented in `net/ipv4/tcp_cubic.c` of Linux 6.x ([`Kind::Classic`]); RFC 9406, HyStart++ ([`Kind::PlusPlus`]).
//! Classic: armed until it has found an exit, and again after a timeout. `ssthresh` is set to the window when, within a
//! round, either a train of closely spaced ACKs lasts longer than the path's delay, or the smallest RTT is well above it.
//! HyStart++: in the first slow start only. When a round's smallest RTT exceeds the previous round's, conservative slow start
//! begins; it either ends slow start after five rounds or turns out to have been a mistake. Any control can use this module;
//! CUBIC does.

use ranpace_units::{Bytes, Span, Time};

use crate::interface::{Context, Pacing, Window};
use crate::round::Round;

/// Variants of HyStart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As in Linux.
    Classic,
    /// As in ns-3: like Linux's, but the train must be as long as the smallest RTT, paced or not, and the tolerated rise is
    /// all of that RTT, within 4 ms to 1 s (`TcpCubic::HystartUpdate`, `HystartDelayThresh`).
    Ns3,
    /// RFC 9406.
    PlusPlus,
    /// None: slow start ends by loss.
    Off,
}

/// Window in segments below which the classic form is inactive (Linux `hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// Longest gap between two ACKs of a train (Linux `hystart_ack_delta_us`).
const TRAIN_GAP: Span = Span::from_millis(2);
/// Largest allowance for ACKs held back by aggregation (Linux `hystart_ack_delay`).
const MAX_ACK_DELAY: Span = Span::from_millis(1);
/// Bytes whose transmission time is that allowance: four of the largest aggregates of 64 KiB (the same).
const ACK_DELAY_BYTES: u64 = 4 * 65_536;
/// Pacing rate over `cwnd / srtt` below half of `ssthresh`, and above (Linux `tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
const PACING: (f64, f64) = (2.0, 1.2);
/// RTT samples of a round before its smallest counts (Linux `HYSTART_MIN_SAMPLES`; RFC 9406 N_RTT_SAMPLE).
const SAMPLES: u32 = 8;
/// Bounds of the tolerated rise (Linux `HYSTART_DELAY_MIN` and `_MAX`; RFC 9406 MIN_ and MAX_RTT_THRESH).
const RISE: (Span, Span) = (Span::from_millis(4), Span::from_millis(16));
/// The tolerated rise within these bounds is the delay over this (Linux: shift by 3; RFC 9406 MIN_RTT_DIVISOR).
const RISE_DIVISOR: u64 = 8;
/// Bounds of the tolerated rise in ns-3 (`HyStartDelayMin`, `HyStartDelayMax`).
const NS_3_RISE: (Span, Span) = (Span::from_millis(4), Span::from_secs(1));
/// Conservative slow start grows this many times slower (RFC 9406 CSS_GROWTH_DIVISOR).
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// Rounds of conservative slow start (RFC 9406 CSS_ROUNDS).
const CSS_ROUNDS: u32 = 5;
/// Most segments that one ACK counts for if sending is not paced (RFC 9406 L).
const UNPACED_LIMIT: f64 = 8.0;

/// The detector.
#[derive(Clone, Debug)]
pub struct HyStart {
    kind: Kind,
    /// Classic: whether an exit has been found.
    found: bool,
    round: Round,
    round_start: Time,
    last_ack: Time,
    round_min: Span,
    samples: u32,
    /// HyStart++: smallest RTT of the previous round.
    last_round_min: Span,
    /// HyStart++: in conservative slow start, the smallest RTT at its beginning and the number of rounds so far.
    conservative: Option<(Span, u32)>,
}

impl HyStart {
    /// A detector of this kind.
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            found: false,
            round: Round::new(),
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_min: Span::MAX,
            samples: 0,
            last_round_min: Span::MAX,
            conservative: None,
        }
    }

    /// The variant.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether an exit has been found since the last reset.
    pub fn has_found(&self) -> bool {
        self.found
    }

    /// Returns whether slow start is the conservative one of HyStart++.
    pub fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    /// Resets the detector: at the start, after a timeout, on a path change.
    pub fn reset(&mut self, cx: &Context) {
        *self = Self::new(self.kind);
        self.begin_round(cx);
    }

    fn begin_round(&mut self, cx: &Context) {
        self.round.restart(cx);
        self.round_start = cx.now;
        self.last_ack = cx.now;
        self.round_min = Span::MAX;
        self.samples = 0;
    }

    /// Processes an RTT sample; `path` is the smallest RTT known to the control. Sets `ssthresh` when slow start should end.
    pub fn on_sample(&mut self, cx: &Context, w: &mut Window, rtt: Span, path: Span) {
        if !w.in_slow_start() {
            return;
        }
        match self.kind {
            Kind::Off => {}
            Kind::Classic | Kind::Ns3 if self.found => {}
            Kind::Classic | Kind::Ns3 => self.classic(cx, w, rtt, path),
            // RFC 9406, section 4.3: in the initial slow start only.
            Kind::PlusPlus if w.ssthresh.is_finite() => self.conservative = None,
            Kind::PlusPlus => self.plus_plus(cx, w, rtt),
        }
    }

    fn classic(&mut self, cx: &Context, w: &mut Window, rtt: Span, path: Span) {
        if self.round.is_over(cx) {
            self.begin_round(cx);
        }
        if w.cwnd < LOW_WINDOW {
            return;
        }
        if cx.now.since(self.last_ack) <= TRAIN_GAP {
            self.last_ack = cx.now;
            let is_ns_3 = self.kind == Kind::Ns3;
            let mut threshold = if is_ns_3 { path } else { path + ack_delay(cx, w) };
            if !cx.paced && !is_ns_3 {
                // Pacing itself, by the endpoint or the control, stretches a train to half an RTT; without it half the delay
                // suffices (Linux checks for `SK_PACING_NONE`).
                threshold = threshold / 2;
            }
            self.found |= cx.now.since(self.round_start) > threshold;
        }
        self.round_min = self.round_min.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            let rise = match self.kind {
                Kind::Ns3 => path.clamp(NS_3_RISE.0, NS_3_RISE.1),
                _ => tolerated(path),
            };
            self.found |= self.round_min > path + rise;
        }
        if self.found {
            w.ssthresh = w.cwnd;
        }
    }

    fn plus_plus(&mut self, cx: &Context, w: &mut Window, rtt: Span) {
        if self.round.is_over(cx) {
            self.last_round_min = self.round_min;
            self.begin_round(cx);
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                if *rounds >= CSS_ROUNDS {
                    self.conservative = None;
                    self.found = true;
                    w.ssthresh = w.cwnd;
                    return;
                }
            }
        }
        self.round_min = self.round_min.min(rtt);
        self.samples += 1;
        if self.samples < SAMPLES {
            return;
        }
        match self.conservative {
            None => {
                let last = self.last_round_min;
                if last != Span::MAX && self.round_min >= last + tolerated(last) {
                    self.conservative = Some((self.round_min, 0));
                }
            }
            // The rise was jitter: slow start continues.
            Some((baseline, _)) if self.round_min < baseline => self.conservative = None,
            Some(_) => {}
        }
    }

    /// Growth of slow start, replaces [`Window::slow_start`]; returns the segments left over for congestion avoidance.
    pub fn slow_start(&self, cx: &Context, w: &mut Window, acked: f64) -> f64 {
        if self.kind != Kind::PlusPlus || w.ssthresh.is_finite() {
            return w.slow_start(acked);
        }
        let limit = if cx.paced { f64::INFINITY } else { UNPACED_LIMIT };
        let divisor = if self.is_conservative() { CSS_GROWTH_DIVISOR } else { 1.0 };
        w.slow_start(acked.min(limit) / divisor)
    }
}

/// The rise of the RTT up to which there is no queue.
fn tolerated(delay: Span) -> Span {
    (delay / RISE_DIVISOR).clamp(RISE.0, RISE.1)
}

/// Linux `hystart_ack_delay`: what aggregation may add to a train, at the control's pace or, without one, at the pace that
/// Linux computes, whether or not it is applied.
fn ack_delay(cx: &Context, w: &Window) -> Span {
    let delay = match w.pacing {
        Pacing::Rate(rate) if rate.is_zero() => Span::ZERO,
        Pacing::Rate(rate) => rate.time_for(Bytes::new(ACK_DELAY_BYTES)),
        Pacing::Unlimited => {
            let ratio = if w.cwnd < w.ssthresh / 2.0 { PACING.0 } else { PACING.1 };
            cx.srtt.mul_f64(ACK_DELAY_BYTES as f64 / (ratio * w.cwnd * cx.mss.as_f64()))
        }
    };
    delay.min(MAX_ACK_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::testbed::{Bed, context};

    /// Plays a round of `acks`, given as gap and RTT in us, with the smallest RTT `path_ms`; returns where slow start ended.
    fn ended(
        hystart: &mut HyStart,
        w: &mut Window,
        cx: &mut Context,
        acks: &[(u64, u64)],
        path_ms: u64,
    ) -> Option<usize> {
        cx.next_packet += 1;
        acks.iter().position(|(gap_us, rtt_us)| {
            cx.now += Span::from_micros(*gap_us);
            hystart.on_sample(cx, w, Span::from_micros(*rtt_us), Span::from_millis(path_ms));
            w.ssthresh.is_finite()
        })
    }

    #[test]
    fn a_round_whose_smallest_rtt_is_an_eighth_up_ends_slow_start() {
        // Tolerated: an eighth of the path's delay, at least 4 ms and at most 16 ms.
        for (path_ms, rtt_us, ends) in [
            (20, 24_000, false),
            (20, 24_001, true),
            (80, 90_000, false),
            (80, 90_001, true),
            (200, 216_000, false),
            (200, 216_001, true),
        ] {
            let mut hystart = HyStart::new(Kind::Classic);
            let (mut w, mut cx) = (Window::new(100.0), context(Time::from_secs(1)));
            // The ACKs are too far apart for a train.
            let at = ended(&mut hystart, &mut w, &mut cx, &[(3_000, rtt_us); 20], path_ms);
            assert_eq!(at, ends.then_some(8), "after eight samples: {rtt_us} us for {path_ms} ms");
            assert_eq!(w.ssthresh, if ends { 100.0 } else { f64::INFINITY });
        }
    }

    #[test]
    fn a_train_of_half_the_path_ends_slow_start_and_a_whole_one_where_it_is_paced() {
        // ACKs 1 ms apart; twice 100 segments per 40 ms are 7.24 MB/s, at which 262 144 bytes take more than the largest
        // allowance, 1 ms.
        let own = Pacing::Rate(ranpace_units::Rate::from_mbit_per_s(60));
        for (pacing, paced, expected) in [
            (Pacing::Unlimited, false, 22), // over (40 + 1) / 2 ms after the first
            (own, true, 43),                // over 40 + 1 ms
            (Pacing::Unlimited, true, 43),  // the same if the endpoint paces, which the window does not show
        ] {
            let mut hystart = HyStart::new(Kind::Classic);
            let (mut w, mut cx) = (Window::new(100.0), context(Time::from_secs(1)));
            (w.pacing, cx.paced, cx.srtt) = (pacing, paced, Span::from_millis(40));
            hystart.reset(&cx);
            let at = ended(&mut hystart, &mut w, &mut cx, &[(1_000, 40_000); 60], 40);
            assert_eq!(at.map(|at| at + 1), Some(expected), "{pacing:?}, paced {paced}");
        }
        // A gap of more than 2 ms ends the train, though the round goes on.
        let mut hystart = HyStart::new(Kind::Classic);
        let (mut w, mut cx) = (Window::new(100.0), context(Time::from_secs(1)));
        hystart.reset(&cx);
        let mut acks = [(1_000, 40_000); 60];
        acks[5].0 = 2_001;
        assert_eq!(ended(&mut hystart, &mut w, &mut cx, &acks, 40), None);
    }

    #[test]
    fn ns_3_waits_for_all_of_the_smallest_rtt() {
        // ACKs 1 ms apart, not paced: over 40 ms after the first.
        let mut hystart = HyStart::new(Kind::Ns3);
        let (mut w, mut cx) = (Window::new(100.0), context(Time::from_secs(1)));
        hystart.reset(&cx);
        assert_eq!(ended(&mut hystart, &mut w, &mut cx, &[(1_000, 40_000); 60], 40), Some(41));
        // A rise by the whole RTT, at least 4 ms.
        for (path_ms, rtt_us, ends) in
            [(20, 40_000, false), (20, 40_001, true), (2, 6_000, false), (2, 6_001, true)]
        {
            let mut hystart = HyStart::new(Kind::Ns3);
            let (mut w, mut cx) = (Window::new(100.0), context(Time::from_secs(1)));
            let at = ended(&mut hystart, &mut w, &mut cx, &[(3_000, rtt_us); 20], path_ms);
            assert_eq!(at, ends.then_some(8), "{rtt_us} us for {path_ms} ms");
        }
    }

    #[test]
    fn small_windows_are_left_alone_and_what_was_found_stays_found() {
        let mut hystart = HyStart::new(Kind::Classic);
        let (mut w, mut cx) = (Window::new(15.0), context(Time::from_secs(1)));
        assert_eq!(ended(&mut hystart, &mut w, &mut cx, &[(3_000, 90_000); 20], 20), None);
        w.cwnd = 16.0;
        assert!(ended(&mut hystart, &mut w, &mut cx, &[(3_000, 90_000); 20], 20).is_some());
        w.ssthresh = f64::INFINITY;
        assert_eq!(ended(&mut hystart, &mut w, &mut cx, &[(3_000, 90_000); 20], 20), None);
        hystart.reset(&cx);
        assert!(ended(&mut hystart, &mut w, &mut cx, &[(3_000, 90_000); 20], 20).is_some());
    }

    /// Plays rounds of HyStart++, ten ACKs each, with these smallest RTTs in milliseconds.
    fn rounds(hystart: &mut HyStart, w: &mut Window, rtts_ms: &[u64]) {
        let mut cx = context(Time::from_secs(1));
        for rtt_ms in rtts_ms {
            // One packet beyond the round's end is no longer in flight.
            cx.next_packet += 10;
            for _ in 0..10 {
                hystart.on_sample(&cx, w, Span::from_millis(*rtt_ms), Span::ZERO);
            }
        }
    }

    #[test]
    fn plus_plus_grows_a_fourth_for_five_rounds_and_then_ends_slow_start() {
        // RFC 9406, section 4.2: 40 ms tolerate 5 ms.
        let mut w = Window::new(100.0);
        let mut hystart = HyStart::new(Kind::PlusPlus);
        rounds(&mut hystart, &mut w, &[40, 44]);
        assert!(!hystart.is_conservative());
        let mut hystart = HyStart::new(Kind::PlusPlus);
        rounds(&mut hystart, &mut w, &[40, 45]);
        assert!(hystart.is_conservative());
        let before = w.cwnd;
        assert_eq!(hystart.slow_start(&context(Time::ZERO), &mut w, 4.0), 0.0);
        assert_eq!(w.cwnd - before, 1.0);
        let mut hystart = HyStart::new(Kind::PlusPlus);
        rounds(&mut hystart, &mut w, &[40, 45, 45, 45, 45, 45]);
        assert!(w.ssthresh.is_infinite());
        let mut hystart = HyStart::new(Kind::PlusPlus);
        rounds(&mut hystart, &mut w, &[40, 45, 45, 45, 45, 45, 45]);
        assert_eq!(w.ssthresh, w.cwnd);
    }

    #[test]
    fn plus_plus_goes_on_if_the_rise_was_jitter() {
        let mut w = Window::new(100.0);
        let mut hystart = HyStart::new(Kind::PlusPlus);
        rounds(&mut hystart, &mut w, &[40, 45, 44, 44]);
        assert!(!hystart.is_conservative());
        // Unpaced, an ACK counts for at most eight segments; paced, for all.
        let mut cx = context(Time::ZERO);
        hystart.slow_start(&cx, &mut w, 20.0);
        assert_eq!(w.cwnd, 108.0);
        cx.paced = true;
        hystart.slow_start(&cx, &mut w, 20.0);
        assert_eq!(w.cwnd, 128.0);
        // Later slow starts are plain.
        w.ssthresh = 200.0;
        cx.paced = false;
        hystart.slow_start(&cx, &mut w, 20.0);
        assert_eq!(w.cwnd, 148.0);
    }

    #[test]
    fn slow_start_ends_before_a_packet_is_lost() {
        for (rate, rtt_ms) in [(1_000, 40), (4_000, 40), (2_000, 100)] {
            let pipe = rate * rtt_ms / 1_000;
            let run = |hystart: &str| {
                let mut bed = Bed::new(&format!("cubic:hystart={hystart}"), rate, rtt_ms);
                // A round's smallest RTT shows the queue of the previous round: HyStart++ detects it at four pipes, and needs
                // room for its five rounds from there, 1.25^5.
                bed.buffer = 16 * pipe;
                let mut left = None;
                bed.run_with(10, &mut |bed| {
                    if left.is_none() && bed.window.ssthresh.is_finite() {
                        left = Some((bed.window.cwnd, bed.figures.lost));
                    }
                });
                left.unwrap()
            };
            for kind in ["classic", "plusplus"] {
                let (cwnd, lost) = run(kind);
                assert_eq!(lost, 0, "{kind} at {rate}/s, {rtt_ms} ms");
                assert!(cwnd > 0.4 * pipe as f64, "{kind} at {rate}/s, {rtt_ms} ms: {cwnd}");
            }
            assert!(run("off").1 > 0);
        }
    }
}
