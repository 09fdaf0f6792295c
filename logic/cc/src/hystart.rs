//! HyStart: leaves slow start before packets are lost, because the path shows that it is full.
//!
//! Sources: Ha and Rhee, "Hybrid Slow Start for High-Bandwidth and Long-Distance Networks" (PFLDnet 2008), as
//! `net/ipv4/tcp_cubic.c` of Linux 6.x has it ([`Kind::Classic`]); RFC 9406, HyStart++ ([`Kind::PlusPlus`]).
//! Classic: armed until it has found an exit, and again after a timeout. In a round, either a train of closely
//! spaced ACKs longer than the path's delay, or a smallest RTT well above it, sets `ssthresh` to the window.
//! HyStart++: in the first slow start only. A round's smallest RTT above the last round's leads to conservative
//! slow start, which either ends after five rounds or turns out to have been a mistake.
//! Any control can use it; CUBIC does.

use ranpace_units::{Bytes, Span, Time};

use crate::interface::{Context, Pacing, Window};
use crate::round::Round;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As in Linux.
    Classic,
    /// RFC 9406.
    PlusPlus,
    /// Neither: slow start ends by loss.
    Off,
}

/// Window in segments below which the classic form does not look (Linux `hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// Longest distance of two ACKs of one train (Linux `hystart_ack_delta_us`).
const TRAIN_GAP: Span = Span::from_millis(2);
/// Largest allowance for ACKs held back by aggregation (Linux `hystart_ack_delay`).
const MAX_ACK_DELAY: Span = Span::from_millis(1);
/// Bytes whose sending time is that allowance: four of the largest aggregates of 64 KiB (the same).
const ACK_DELAY_BYTES: u64 = 4 * 65_536;
/// Pacing rate over `cwnd / srtt` in slow start (Linux `tcp_pacing_ss_ratio`).
const SLOW_START_PACING: f64 = 2.0;
/// RTT samples of a round before its smallest counts (Linux `HYSTART_MIN_SAMPLES`; RFC 9406 N_RTT_SAMPLE).
const SAMPLES: u32 = 8;
/// Bounds of the tolerated rise (Linux `HYSTART_DELAY_MIN` and `_MAX`; RFC 9406 MIN_ and MAX_RTT_THRESH).
const RISE: (Span, Span) = (Span::from_millis(4), Span::from_millis(16));
/// The rise tolerated between them is the delay over this (Linux: shift by 3; RFC 9406 MIN_RTT_DIVISOR).
const RISE_DIVISOR: u64 = 8;
/// Conservative slow start grows this many times slower (RFC 9406 CSS_GROWTH_DIVISOR).
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// Rounds of conservative slow start (RFC 9406 CSS_ROUNDS).
const CSS_ROUNDS: u32 = 5;
/// Segments that one ACK may count for where sending is not paced (RFC 9406 L).
const UNPACED_LIMIT: f64 = 8.0;

/// The detector.
#[derive(Clone, Debug)]
pub struct HyStart {
    kind: Kind,
    /// Classic: an exit was found.
    found: bool,
    round: Round,
    round_start: Time,
    last_ack: Time,
    round_min: Span,
    samples: u32,
    /// HyStart++: smallest RTT of the round before.
    last_round_min: Span,
    /// HyStart++: in conservative slow start, the smallest RTT at its beginning and the rounds it has lasted.
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

    /// Whether an exit was found and not forgotten since.
    pub fn has_found(&self) -> bool {
        self.found
    }

    /// Whether slow start is the conservative one of HyStart++.
    pub fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    /// Forgets everything: at the start, after a timeout, on another path.
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

    /// An RTT sample; `path` is the smallest RTT that the control knows of. Sets `ssthresh` where slow start is to
    /// end.
    pub fn on_sample(&mut self, cx: &Context, w: &mut Window, rtt: Span, path: Span) {
        if !w.in_slow_start() {
            return;
        }
        match self.kind {
            Kind::Off => {}
            Kind::Classic if self.found => {}
            Kind::Classic => self.classic(cx, w, rtt, path),
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
            let mut threshold = path + ack_delay(cx, w);
            if w.pacing == Pacing::Unlimited {
                // Pacing may itself stretch a train to half an RTT; without it half the delay is enough.
                threshold = threshold / 2;
            }
            self.found |= cx.now.since(self.round_start) > threshold;
        }
        self.round_min = self.round_min.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            self.found |= self.round_min > path + tolerated(path);
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
            // The rise was jitter: slow start goes on.
            Some((baseline, _)) if self.round_min < baseline => self.conservative = None,
            Some(_) => {}
        }
    }

    /// Slow start's growth, to be used in place of [`Window::slow_start`]; returns the segments left over for
    /// congestion avoidance.
    pub fn slow_start(&self, w: &mut Window, acked: f64) -> f64 {
        if self.kind != Kind::PlusPlus || w.ssthresh.is_finite() {
            return w.slow_start(acked);
        }
        let limit = if w.pacing == Pacing::Unlimited { UNPACED_LIMIT } else { f64::INFINITY };
        let divisor = if self.is_conservative() { CSS_GROWTH_DIVISOR } else { 1.0 };
        w.slow_start(acked.min(limit) / divisor)
    }
}

/// The rise of the RTT that is not yet a queue.
fn tolerated(delay: Span) -> Span {
    (delay / RISE_DIVISOR).clamp(RISE.0, RISE.1)
}

/// Linux `hystart_ack_delay`: what aggregation may add to a train, at the rate of slow start.
fn ack_delay(cx: &Context, w: &Window) -> Span {
    let delay = match w.pacing {
        Pacing::Rate(rate) if rate.is_zero() => Span::ZERO,
        Pacing::Rate(rate) => rate.time_for(Bytes::new(ACK_DELAY_BYTES)),
        Pacing::Unlimited => {
            cx.srtt.mul_f64(ACK_DELAY_BYTES as f64 / (SLOW_START_PACING * w.cwnd * cx.mss.as_f64()))
        }
    };
    delay.min(MAX_ACK_DELAY)
}
