//! CDBE's client: estimates the bandwidth from the arrivals of data.
//!
//! Source: Zhong 2020, section 6.3, equations 6.1 to 6.5. The arrivals of `W_s = W_l / 5` form a sample, bytes over time; the
//! samples of `W_l`, one RTT, are averaged and smoothed with the previous report, whose weight shrinks with the pause before
//! them.
//!
//! Ours, where the thesis is silent: bytes are TCP's payload, including retransmitted data; `W_l` is the receiver's RTT,
//! smoothed by an eighth, at least 10 ms, [`FIRST_RTT`] before the RTT is known, and fixed for the duration of a long window;
//! the duration of a sample is at least [`MIN_TIME`] in the last row of equation 6.3 too; the pause in equation 6.5 is
//! counted in `W_s` (`gap_unit`); after a pause of four `W_l` the open windows are discarded; a sample ends with the arrival
//! that closes it (`fence=next_arrival`), whereas in the thesis it ends with its own last packet (`literal`).

use ranpace_units::{Rate, Span, Time};

use crate::client_driven::pipe::INITIAL_RATE;
use crate::client_driven::reporter::Reporter;
use crate::interface::{Received, ReceiverHalf, ReceiverReport};

/// Samples per long window (section 6.3.1).
const SAMPLES: u32 = 5;
/// Floor of the divisor, dt_min (equation 6.3).
const MIN_TIME: Span = Span::from_millis(2);
/// Weight of the previous report, beta_f (equation 6.5).
const OLD_WEIGHT: f64 = 0.4;
/// Smallest `W_l`. Ours.
const MIN_RTT: Span = Span::from_millis(10);
/// `W_l` before there is an RTT. Ours.
const FIRST_RTT: Span = Span::from_millis(100);
/// Pause, in `W_l`, after which the open windows are discarded. Ours.
const IDLE: u64 = 4;

/// When a sample ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleEnd {
    /// With the arrival that closes it: n packets in n gaps.
    NextArrival,
    /// With its own last arrival (as printed): n packets in n - 1 gaps.
    Literal,
}

/// Unit of the pause in equation 6.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapUnit {
    /// Sample windows.
    SampleWindows,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// Weight of the previous report after a pause of `gap` (equation 6.5).
pub fn old_weight(gap: Span, sample_window: Span, unit: GapUnit) -> f64 {
    if gap <= sample_window {
        return OLD_WEIGHT;
    }
    let pause = match unit {
        GapUnit::SampleWindows => gap.ratio(sample_window),
        GapUnit::Seconds => gap.as_secs_f64(),
        GapUnit::Milliseconds => gap.as_secs_f64() * 1e3,
    };
    OLD_WEIGHT / (OLD_WEIGHT + pause)
}

/// The current sample's arrivals.
#[derive(Clone, Copy, Debug)]
pub struct SampleWindow {
    /// First and last arrival.
    pub arrivals: (Time, Time),
    /// Timestamps of the first and of the last packet.
    pub stamps: (Time, Time),
    /// Payload.
    pub bytes: u64,
}

impl SampleWindow {
    /// Bandwidth of the sample in bit/s (equations 6.2 and 6.3); `next` is the arrival that closes it.
    pub fn bandwidth(&self, next: Time, sample_window: Span, fence: SampleEnd) -> f64 {
        let last = match fence {
            SampleEnd::NextArrival => next,
            SampleEnd::Literal => self.arrivals.1,
        };
        let time = last.since(self.arrivals.0).max(MIN_TIME);
        // The data were sent over a much longer time than they took to arrive: they had been held up.
        let stalled = self.stamps.1.since(self.stamps.0) >= time * 2;
        let time = if stalled { sample_window } else { time };
        (self.bytes * 8) as f64 / time.as_secs_f64()
    }
}

/// The client.
#[derive(Clone, Debug)]
pub struct CdbeClient {
    fence: SampleEnd,
    gap_unit: GapUnit,
    granularity: Span,
    reporter: Reporter,
    /// `W_l`, if fixed instead of the RTT.
    window: Option<Span>,
    /// Smoothed RTT.
    rtt: Option<Span>,
    sample: Option<SampleWindow>,
    /// Start of the long window, with its `W_l` and `W_s`.
    long_begin: Time,
    long: Span,
    short: Span,
    /// Sum and number of the long window's samples.
    sum: f64,
    samples: u32,
    /// Last arrival of the previous long window.
    previous_end: Option<Time>,
    /// rBW in bit/s.
    bandwidth: f64,
}

impl CdbeClient {
    pub(crate) fn new(fence: SampleEnd, gap_unit: GapUnit, granularity: Span, reporter: Reporter) -> Self {
        Self {
            fence,
            gap_unit,
            granularity,
            reporter,
            window: None,
            rtt: None,
            sample: None,
            long_begin: Time::ZERO,
            long: FIRST_RTT,
            short: FIRST_RTT / u64::from(SAMPLES),
            sum: 0.0,
            samples: 0,
            previous_end: None,
            bandwidth: INITIAL_RATE.as_f64(),
        }
    }

    /// Fixes `W_l` to this length, whatever the RTT.
    pub(crate) fn with_window(self, window: Span) -> Self {
        Self { window: Some(window), ..self }
    }

    /// The reported bandwidth, rBW.
    pub fn estimate(&self) -> Rate {
        Rate::from_bits_per_s_f64(self.bandwidth)
    }

    fn stamp(&self, sent_at: Time) -> Time {
        let tick = self.granularity.as_nanos();
        sent_at.as_nanos().checked_div(tick).map_or(sent_at, |ticks| Time::from_nanos(ticks * tick))
    }

    fn open_long(&mut self, now: Time) {
        self.long_begin = now;
        self.long = self.window.or(self.rtt).unwrap_or(FIRST_RTT).max(MIN_RTT);
        self.short = self.long / u64::from(SAMPLES);
        (self.sum, self.samples) = (0.0, 0);
    }

    /// Closes the long window (equation 6.4).
    fn close_long(&mut self, last: Time) {
        let gap = self.previous_end.map_or(Span::ZERO, |end| self.long_begin.since(end));
        let old = old_weight(gap, self.short, self.gap_unit);
        let mean = self.sum / f64::from(self.samples);
        self.bandwidth = old * self.bandwidth + (1.0 - old) * mean;
        self.previous_end = Some(last);
    }
}

impl ReceiverHalf for CdbeClient {
    fn on_data(&mut self, received: &Received) {
        let now = received.now;
        if let Some(rtt) = received.rtt {
            self.rtt = Some(self.rtt.map_or(rtt, |smoothed| (smoothed * 7 + rtt) / 8));
        }
        let (stamp, bytes) = (self.stamp(received.sent_at), received.bytes.get());
        let fresh = SampleWindow { arrivals: (now, now), stamps: (stamp, stamp), bytes };
        let idle = self.sample.is_some_and(|sample| now.since(sample.arrivals.1) > self.long * IDLE);
        let (false, Some(sample)) = (idle, &mut self.sample) else {
            self.sample = Some(fresh);
            self.open_long(now);
            return;
        };
        if now.since(sample.arrivals.0) < self.short {
            sample.bytes += bytes;
            (sample.arrivals.1, sample.stamps.1) = (now, stamp);
            return;
        }
        let closed = *sample;
        self.sum += closed.bandwidth(now, self.short, self.fence);
        self.samples += 1;
        if self.samples == SAMPLES || now.since(self.long_begin) >= self.long {
            self.close_long(closed.arrivals.1);
            self.open_long(now);
        }
        self.sample = Some(fresh);
    }

    fn report(&mut self, _: Time) -> Option<ReceiverReport> {
        let estimate = self.estimate();
        self.reporter.report(Some(estimate))
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("estimate_bit_s", self.bandwidth);
        show("long_window_s", self.long.as_secs_f64());
    }
}
