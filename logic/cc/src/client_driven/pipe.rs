//! The path as the sender of a client-driven control (DCIC, CQIC-S, CDBE) sees it: the reported bandwidth and the
//! smallest RTT, and the pace and window that follow from them.
//!
//! Source: Zhong 2020. Pacing interval `PktSize / (G rBW)` (equations 5.5 and 6.6), window `G rBW RTT_min` (5.6 and 6.7).
//! Initial rate: section 6.3.1. The rest is ours: the window never falls below [`MIN_CWND`], the rate in the pacing
//! interval is at least one segment per RTT_min, and RTT_min is the smallest of the connection, or of the path since it
//! changed.
//!
//! TCP's window counts payload, so equations 5.6 and 6.7 are divided by the payload of a segment. `PktSize` counts in the
//! client's unit ([`Unit`]): otherwise a sender with gain 1 would lose or gain the share of the headers with each report.

use ranpace_units::{Rate, Span};

use crate::client_driven::bw_report::Format;
use crate::interface::{Congestion, Context, Pacing, ReceiverReport, Sample, Signal, Window};
use crate::options::{OptionError, OptionInfo, Options};

/// Smallest window in segments. Ours.
pub(crate) const MIN_CWND: f64 = 4.0;
/// 1 MB/s: the rate before the first report (section 6.3.1).
pub(crate) const INITIAL_RATE: Rate = Rate::from_mbit_per_s(8);

/// Unit that a client counts in, which determines `PktSize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Payload of TCP.
    Payload,
    /// Packets with their headers, as blocks of the radio link contain them.
    Wire,
}

/// The option for `PktSize` if reports count packets with their headers.
pub(crate) const PKT: OptionInfo = OptionInfo {
    key: "pkt",
    values: "headers, segment",
    about: "what a packet counts in the pacing interval: its headers too, or a segment's payload alone (as published)",
};

/// Reads the unit from [`PKT`].
pub(crate) fn unit(options: &mut Options) -> Result<Unit, OptionError> {
    options.choice(PKT.key, &[("headers", Unit::Wire), ("segment", Unit::Payload)])
}

/// The path as the sender sees it: the bandwidth in use and the smallest RTT.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    format: Format,
    unit: Unit,
    /// Bandwidth in use, rBW.
    pub(crate) bandwidth: Rate,
    /// The last report.
    pub(crate) reported: Option<Rate>,
    /// [`Span::MAX`] before the first sample.
    pub(crate) min_rtt: Span,
    /// After a timeout, until the next report.
    collapsed: bool,
}

impl Pipe {
    pub(crate) fn new(format: Format, unit: Unit) -> Self {
        Self { format, unit, bandwidth: INITIAL_RATE, reported: None, min_rtt: Span::MAX, collapsed: false }
    }

    pub(crate) fn on_start(&mut self, cx: &Context) {
        self.sample_rtt(cx.min_rtt);
        if !cx.srtt.is_zero() {
            self.sample_rtt(cx.srtt);
        }
    }

    #[inline]
    pub(crate) fn on_sample(&mut self, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.sample_rtt(rtt);
        }
    }

    fn sample_rtt(&mut self, rtt: Span) {
        self.min_rtt = self.min_rtt.min(rtt.max(Span::from_micros(1)));
    }

    /// The RTT of a new path is still unknown.
    pub(crate) fn on_path_change(&mut self) {
        self.min_rtt = Span::MAX;
    }

    /// Processes a report; returns false if it carries no estimate. With `keep_higher`, a report below the bandwidth in use
    /// is ignored.
    #[inline]
    pub(crate) fn on_report(&mut self, report: &ReceiverReport, keep_higher: bool) -> bool {
        let Some(rate) = self.format.decode(report) else { return false };
        if !(keep_higher && self.reported.is_some() && rate < self.bandwidth) {
            self.bandwidth = rate;
        }
        self.reported = Some(rate);
        self.collapsed = false;
        true
    }

    /// These controls ignore losses; after a timeout the window is one segment until the next report.
    pub(crate) fn on_congestion(&mut self, w: &mut Window, event: &Congestion) {
        if let Signal::Timeout { .. } = event.kind {
            self.collapsed = true;
            w.cwnd = 1.0;
        }
    }

    /// `rBW RTT_min` in segments; zero while the RTT is unknown.
    pub(crate) fn bdp(&self, cx: &Context) -> f64 {
        if self.min_rtt == Span::MAX {
            return 0.0;
        }
        self.bandwidth.as_f64() / 8.0 * self.min_rtt.as_secs_f64() / cx.mss.as_f64().max(1.0)
    }

    /// Applies pace and window with these gains.
    #[inline]
    pub(crate) fn apply(&self, cx: &Context, w: &mut Window, pacing_gain: f64, cwnd_gain: f64) {
        let known = self.min_rtt != Span::MAX;
        // Before an RTT is known, a segment per second keeps the pace above zero.
        let rtt = if known { self.min_rtt.as_secs_f64() } else { 1.0 };
        let (unit, wire) = match self.unit {
            Unit::Payload => (cx.mss.as_f64().max(1.0), cx.wire.as_f64()),
            Unit::Wire => (cx.wire.as_f64(), cx.wire.as_f64()),
        };
        let rate = self.bandwidth.as_f64().max(8.0 * unit / rtt);
        // The endpoint's pace counts bytes on the wire.
        let pace = Rate::from_bits_per_s_f64(pacing_gain * rate * wire / unit);
        w.pacing = Pacing::Rate(pace.max(Rate::from_bits_per_s(1)));
        if self.collapsed {
            w.cwnd = 1.0;
        } else if known {
            w.cwnd = (cwnd_gain * self.bdp(cx)).max(MIN_CWND);
        }
    }

    /// Shows its values for [`crate::CongestionControl::inspect`].
    pub(crate) fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("bw_bit_s", self.bandwidth.as_f64());
        if let Some(reported) = self.reported {
            show("report_bit_s", reported.as_f64());
        }
        if self.min_rtt != Span::MAX {
            show("min_rtt_s", self.min_rtt.as_secs_f64());
            show("bdp_bytes", self.bandwidth.as_f64() / 8.0 * self.min_rtt.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::testbed::context;
    use ranpace_units::{Bytes, Time};

    fn pipe(unit: Unit, bits_per_s: u64, min_rtt_ms: u64) -> Pipe {
        Pipe {
            bandwidth: Rate::from_bits_per_s(bits_per_s),
            min_rtt: Span::from_millis(min_rtt_ms),
            ..Pipe::new(Format::V1, unit)
        }
    }

    #[test]
    fn pace_and_window_follow_equations_5_5_and_5_6() {
        let mut cx = context(Time::ZERO);
        (cx.mss, cx.wire) = (Bytes::new(1400), Bytes::new(1452));
        let mut w = Window::new(10.0);
        // 1452 B * 8 / 11.616 Mbit/s = 1 ms; 2 * 11.616 Mbit/s * 100 ms / 8 / 1400 B.
        pipe(Unit::Wire, 11_616_000, 100).apply(&cx, &mut w, 1.0, 2.0);
        let Pacing::Rate(pace) = w.pacing else { panic!("{w:?}") };
        assert_eq!(pace.time_for(cx.wire), Span::from_millis(1));
        assert!((w.cwnd - 207.428_571).abs() < 1e-5, "{}", w.cwnd);
        // Payload: a segment of 1400 B per 1 ms at 11.2 Mbit/s, whatever its headers.
        pipe(Unit::Payload, 11_200_000, 100).apply(&cx, &mut w, 1.0, 2.0);
        let Pacing::Rate(pace) = w.pacing else { panic!("{w:?}") };
        assert_eq!(pace.time_for(cx.wire), Span::from_millis(1));
    }

    #[test]
    fn a_packet_counts_with_its_headers_or_without() {
        let unit = |value: &str| unit(&mut Options::new([("pkt".to_owned(), Some(value.to_owned()))]));
        assert_eq!(unit("headers").unwrap(), Unit::Wire);
        assert_eq!(unit("segment").unwrap(), Unit::Payload);
        assert!(unit("frame").is_err());
        assert_eq!(super::unit(&mut Options::default()).unwrap(), Unit::Wire);
    }

    #[test]
    fn window_never_closes_for_any_report() {
        let cx = context(Time::ZERO);
        let mut w = Window::new(10.0);
        pipe(Unit::Wire, 1, 100).apply(&cx, &mut w, 1.0, 2.0);
        assert_eq!(w.cwnd, MIN_CWND);
        let Pacing::Rate(pace) = w.pacing else { panic!("{w:?}") };
        assert_eq!(pace.time_for(cx.wire), Span::from_millis(100));
        pipe(Unit::Wire, 1, 100).apply(&cx, &mut w, 0.75, 2.0);
        let Pacing::Rate(pace) = w.pacing else { panic!("{w:?}") };
        assert_eq!(pace, Rate::from_bits_per_s(90_000));
    }
}
