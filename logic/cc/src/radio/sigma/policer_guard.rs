//! SIGMA's response where the radio is not the bottleneck but a policer or a shallow buffer of a wired link.
//!
//! Ours, all of it. The model never asks why segments are lost and would keep losing them. If more than 2 % are lost in each
//! of two consecutive RTTs without a queue, the window is bounded to [`CUT`] of what it was; the bound rises by a segment per
//! RTT, and is removed after [`QUIET`] RTTs without such losses.

use crate::interface::Context;
use crate::round::Round;

/// Share of the window that is kept.
const CUT: f64 = 0.7;
/// Consecutive RTTs with such losses that set the bound.
const BAD: u32 = 2;
/// Consecutive RTTs without such losses that remove the bound.
const QUIET: u32 = 10;

/// Loss statistics and the bound.
#[derive(Clone, Debug)]
pub(super) struct PolicerGuard {
    round: Round,
    lost: u64,
    delivered: u64,
    bad: u32,
    quiet: u32,
    /// In segments.
    cap: Option<f64>,
}

impl PolicerGuard {
    pub(super) const fn new() -> Self {
        Self { round: Round::new(), lost: 0, delivered: 0, bad: 0, quiet: 0, cap: None }
    }

    pub(super) fn on_lost(&mut self, segments: u64) {
        self.lost += segments;
    }

    /// `queue` says whether the last RTT shows a queue; `cwnd` is the window in segments.
    pub(super) fn on_ack(&mut self, cx: &Context, delivered: u64, queue: bool, cwnd: f64) {
        self.delivered += delivered;
        if !self.round.is_over(cx) {
            return;
        }
        self.round.restart(cx);
        let (lost, delivered) = (core::mem::take(&mut self.lost), core::mem::take(&mut self.delivered));
        let is_bad = !queue && lost as f64 > super::POLICED * (lost + delivered) as f64;
        (self.bad, self.quiet) = if is_bad { (self.bad + 1, 0) } else { (0, self.quiet + 1) };
        if self.bad >= BAD {
            self.bad = 0;
            self.cap = Some((CUT * cwnd).max(super::MIN_CWND));
        } else if self.quiet >= QUIET {
            self.cap = None;
        } else if let Some(cap) = &mut self.cap {
            *cap += 1.0;
        }
    }

    /// Limits a window to the bound.
    pub(super) fn bound(&self, segments: f64) -> f64 {
        self.cap.map_or(segments, |cap| segments.min(cap))
    }

    pub(super) const fn cap(&self) -> Option<f64> {
        self.cap
    }
}
