//! PBE-CC's sender: follows the report where the cell is the bottleneck, and probes like BBRv1 below the report where it is not.
//!
//! Source: Xie et al. 2020, as understood; the specification of comparators, section 3.
//!
//! | state (`inspect`) | pace | window |
//! |---|---|---|
//! | 0 no report yet | [`INITIAL_WINDOW`] segments per RTT | as it is |
//! | 1 the receiver's ramp, or wireless | the report | report (RTprop + [`TOLERATED`]) |
//! | 2 Internet, draining | 0.5 BtlBw for an RTprop | 2 BDP |
//! | 3 Internet, cycle | [`CYCLE`] times BtlBw, an RTprop each; the first phase at most `C_f` | 2 BDP |
//! | 4 Internet, PROBE_RTT | BtlBw | 4 segments for 200 ms and a round |
//!
//! BtlBw and RTprop are those of [`crate::rate_based::bbr1`]: the largest delivery rate of 10 rounds, the smallest RTT of 10 s. Losses are
//! retransmitted and change nothing; after a timeout the window is one segment until the next report.
//!
//! Ours, where the source is silent: the window in the wireless state has room for the delay that the receiver tolerates, since one BDP
//! would stall during HARQ's retransmissions; it never falls below [`MIN_CWND`] segments, nor the pace below these per RTprop; RTprop is
//! probed in Internet alone, as elsewhere there is no standing queue.

use ranpace_units::{Rate, Span, Time};

use crate::client_driven::pbe_report::Report;
use crate::filter::{MaxFilter, Rounds};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, ReceiverReport, Signal, Window,
};
use crate::rate_based::bbr1::{
    BANDWIDTH_ROUNDS, Bandwidth, INITIAL_WINDOW, MIN_CWND, MIN_RTT_WINDOW, PROBE_RTT_TIME,
};

/// Delay beyond RTprop that the receiver tolerates: three HARQ rounds of 8 ms and 3 ms of jitter.
const TOLERATED: Span = Span::from_millis(3 * 8 + 3);
/// Pacing gain of the first RTprop in Internet, which drains what was queued.
const DRAIN_GAIN: f64 = 0.5;
/// Pacing gains of BBRv1's PROBE_BW, a phase per RTprop.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Window over BDP in Internet (BBRv1).
const CWND_GAIN: f64 = 2.0;

/// The state of the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Start,
    Wireless,
    /// Since an instant.
    Draining(Time),
    /// In a phase of [`CYCLE`] since an instant.
    Cycle(usize, Time),
    /// Until an instant and the end of a round, once the flight is small.
    ProbeRtt(Option<Time>),
}

impl Mode {
    fn number(self) -> u8 {
        match self {
            Self::Start => 0,
            Self::Wireless => 1,
            Self::Draining(_) => 2,
            Self::Cycle(..) => 3,
            Self::ProbeRtt(_) => 4,
        }
    }
}

/// The sender.
#[derive(Clone, Debug)]
pub(super) struct PbeServer {
    mode: Mode,
    /// The rate of the last report, `C_f` in Internet.
    reported: Rate,
    rounds: Rounds,
    bandwidth: MaxFilter,
    /// RTprop; [`Span::MAX`] before the first sample.
    min_rtt: Span,
    min_rtt_at: Time,
    /// The next RTT replaces RTprop (path change).
    min_rtt_void: bool,
    /// Whether a round has ended in PROBE_RTT.
    round_over: bool,
    /// After a timeout, until the next report.
    collapsed: bool,
}

impl PbeServer {
    pub(super) fn new() -> Self {
        Self {
            mode: Mode::Start,
            reported: Rate::ZERO,
            rounds: Rounds::default(),
            bandwidth: MaxFilter::default(),
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            min_rtt_void: false,
            round_over: false,
            collapsed: false,
        }
    }

    /// BtlBw.
    fn bandwidth(&self) -> Bandwidth {
        Bandwidth(self.bandwidth.get())
    }

    /// RTprop, or a second while it is unknown.
    fn propagation(&self) -> Span {
        if self.min_rtt == Span::MAX { Span::SECOND } else { self.min_rtt }
    }

    /// Segments at a rate on the wire in a time, at least the smallest window.
    fn segments(cx: &Context, rate: Rate, time: Span) -> f64 {
        let segments = rate.as_f64() / 8.0 * time.as_secs_f64() / cx.wire.as_f64().max(1.0);
        segments.max(MIN_CWND as f64)
    }

    fn apply(&self, cx: &Context, w: &mut Window) {
        let least = Rate::of(cx.wire * MIN_CWND, self.propagation());
        let of_gain = |gain: f64| self.bandwidth().pace_f64(cx, gain);
        let (pace, cwnd) = match self.mode {
            Mode::Start => return,
            Mode::Wireless => {
                let window = self.propagation() + TOLERATED;
                (self.reported, Self::segments(cx, self.reported, window))
            }
            Mode::Draining(_) | Mode::Cycle(..) | Mode::ProbeRtt(_) => {
                let bdp = self.bandwidth().segments_per_s() * self.propagation().as_secs_f64();
                let cwnd = (CWND_GAIN * bdp).max(MIN_CWND as f64);
                match self.mode {
                    Mode::Draining(_) => (of_gain(DRAIN_GAIN), cwnd),
                    Mode::Cycle(0, _) => (of_gain(CYCLE[0]).min(self.reported), cwnd),
                    Mode::Cycle(phase, _) => (of_gain(CYCLE[phase]), cwnd),
                    _ => (of_gain(1.0), MIN_CWND as f64),
                }
            }
        };
        w.pacing = Pacing::Rate(pace.max(least).max(Rate::from_bits_per_s(1)));
        w.cwnd = if self.collapsed { 1.0 } else { cwnd };
    }

    fn update_model(&mut self, cx: &Context, ack: &Ack) {
        self.rounds.started = false;
        if let Some(sample) = Bandwidth::sample(&ack.rate) {
            self.rounds.update(ack.rate.prior_delivered, cx.delivered);
            // In PROBE_RTT the flight limits the rate.
            let is_limited = ack.rate.app_limited || matches!(self.mode, Mode::ProbeRtt(_));
            if !is_limited || sample >= self.bandwidth() {
                self.bandwidth.update(BANDWIDTH_ROUNDS, self.rounds.count, sample.0);
            }
        }
        let is_old = cx.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt.map(|rtt| rtt.max(Span::from_micros(1)))
            && (rtt <= self.min_rtt || self.min_rtt_void || (is_old && !ack.rate.delayed))
        {
            (self.min_rtt, self.min_rtt_at, self.min_rtt_void) = (rtt, cx.now, false);
        }
        if is_old && matches!(self.mode, Mode::Draining(_) | Mode::Cycle(..)) {
            (self.mode, self.round_over) = (Mode::ProbeRtt(None), false);
        }
    }

    fn advance(&mut self, cx: &Context) {
        let is_over = |since: Time| cx.now.since(since) >= self.propagation();
        match self.mode {
            Mode::Draining(since) if is_over(since) => self.mode = Mode::Cycle(0, cx.now),
            Mode::Cycle(phase, since) if is_over(since) => {
                self.mode = Mode::Cycle((phase + 1) % CYCLE.len(), cx.now);
            }
            Mode::ProbeRtt(None) if cx.in_flight <= MIN_CWND => {
                self.mode = Mode::ProbeRtt(Some(cx.now + PROBE_RTT_TIME));
                self.rounds.restart(cx.delivered);
            }
            Mode::ProbeRtt(Some(until)) => {
                self.round_over |= self.rounds.started;
                if self.round_over && cx.now > until {
                    (self.mode, self.min_rtt_at) = (Mode::Cycle(0, cx.now), cx.now);
                }
            }
            _ => {}
        }
    }
}

impl CongestionControl for PbeServer {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        (self.min_rtt, self.min_rtt_at) = (cx.min_rtt, cx.now);
        self.rounds.restart(cx.delivered);
        let bandwidth = Bandwidth::of(INITIAL_WINDOW, cx.srtt.max(Span::from_millis(1)));
        w.pacing = Pacing::Rate(bandwidth.pace_f64(cx, 1.0));
        self.apply(cx, w);
    }

    fn on_congestion(&mut self, _: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        if let Signal::Timeout { .. } = event.kind {
            self.collapsed = true;
            w.cwnd = 1.0;
        }
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.update_model(cx, ack);
        self.advance(cx);
        self.apply(cx, w);
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn on_spurious(&mut self, _: &Context, _: &mut Window, _: &Window) {}

    fn on_path_change(&mut self, cx: &Context, _: &mut Window) {
        (self.min_rtt_void, self.min_rtt_at) = (true, cx.now);
    }

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        let Some(report) = Report::decode(report) else { return };
        (self.reported, self.collapsed) = (report.rate, false);
        self.mode = match (report.internet, self.mode) {
            (false, _) => Mode::Wireless,
            (true, Mode::Start | Mode::Wireless) => Mode::Draining(cx.now),
            (true, same) => same,
        };
        self.apply(cx, w);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(self.mode.number()));
        show("report_bit_s", self.reported.as_f64());
        show("bw_segments_per_s", self.bandwidth().segments_per_s());
        if self.min_rtt != Span::MAX {
            show("min_rtt_s", self.min_rtt.as_secs_f64());
        }
    }
}
