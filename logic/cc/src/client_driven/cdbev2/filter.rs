//! CDBEv2's arithmetic: the filter of reports and the amounts in flight at which DRAIN and GROW end.
//!
//! Sources: Zhong 2020, Eqs. 7.5 to 7.9 (filter), 7.23 (DRAIN), 7.24 and 7.25 (GROW). All functions are stateless, so that
//! analytic models share them with the control.

use ranpace_units::Span;

/// Remainder of a step after the filter's horizon (Eq. 7.8).
pub const THRES: f64 = 0.10;
/// DRAIN ends when at most this many segments more than the target are in flight (Eq. 7.23).
pub const DRAIN_SLACK_SEGMENTS: f64 = 2.0;
/// Share of the BDP left in flight by a deep DRAIN (Eq. 7.23).
pub const DEEP: f64 = 0.75;
/// Share of the BDP filled by GROW (Eq. 7.24).
pub const GROW: f64 = 1.25;
/// A flow's least growth, in bytes per second of RTT (Eq. 7.25).
const COMPENSATION: f64 = 50_000.0;
/// The RTT is capped at this value (Eq. 7.25).
const COMPENSATED: Span = Span::from_millis(300);

/// Weight beta of a new report, `1 - thres^(1/n)` with `n = k RTT_min / TW`, at least 1 (Eqs. 7.8 and 7.9): after `n` reports
/// all but `thres` of a step has been followed.
pub fn filter_weight(rtt_min: Span, tw: Span, k: f64, thres: f64) -> f64 {
    // A NaN ratio (a zero-length window) counts as one report.
    let reports = (k * rtt_min.ratio(tw)).max(1.0);
    1.0 - libm::pow(thres, 1.0 / reports)
}

/// `BW(t) = (1 - beta) BW(t-1) + beta rBW` (Eq. 7.5), in the unit of its arguments.
pub fn filtered(bw: f64, report: f64, beta: f64) -> f64 {
    (1.0 - beta) * bw + beta * report
}

/// Growth compensation C in bytes: 50 kB/s times the RTT, up to 300 ms (Eq. 7.25).
pub fn growth_compensation(rtt_min: Span) -> f64 {
    COMPENSATION * rtt_min.min(COMPENSATED).as_secs_f64()
}

/// Base to which growth compensation is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compensation {
    /// The data in flight when GROW began (Eq. 7.24 as read in its context).
    InFlight,
    /// The BDP.
    Bdp,
    /// No compensation: GROW fills 125 % of the BDP.
    Off,
}

impl Compensation {
    /// Bytes in flight above which GROW ends (Eq. 7.24); `at_entry` bytes were in flight when it began, `bw_max` is in bit/s.
    pub fn grow_limit(self, at_entry: f64, bw_max: f64, rtt_min: Span) -> f64 {
        let bdp = bdp(bw_max, rtt_min);
        let compensated = match self {
            Self::InFlight => at_entry + growth_compensation(rtt_min),
            Self::Bdp => bdp + growth_compensation(rtt_min),
            Self::Off => 0.0,
        };
        compensated.max(GROW * bdp)
    }
}

/// Bytes in flight at which DRAIN ends (Eq. 7.23), `bw_ref` in bit/s, `mss` in bytes.
pub fn drain_limit(deep: bool, bw_ref: f64, rtt_min: Span, mss: f64) -> f64 {
    let share = if deep { DEEP } else { 1.0 };
    share * bdp(bw_ref, rtt_min) + DRAIN_SLACK_SEGMENTS * mss
}

/// Bandwidth-delay product in bytes; `bw` in bit/s.
pub fn bdp(bw: f64, rtt: Span) -> f64 {
    bw * rtt.as_secs_f64() / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TW: Span = Span::from_millis(10);

    #[test]
    fn weights_are_the_published_ones() {
        // Specification, section 10; 0.684, 0.438 and 0.074 are in the thesis.
        for (k, row) in [
            (1.0, [(20, 0.6838), (24, 0.6169), (60, 0.3187), (120, 0.1746), (300, 0.0739)]),
            (2.0, [(20, 0.4377), (24, 0.3810), (60, 0.1746), (120, 0.0915), (300, 0.0376)]),
        ] {
            for (rtt_ms, expected) in row {
                let beta = filter_weight(Span::from_millis(rtt_ms), TW, k, THRES);
                assert!((beta - expected).abs() < 5e-5, "K {k}, {rtt_ms} ms: {beta}");
            }
        }
        assert_eq!(filter_weight(Span::from_millis(3), TW, 1.0, THRES), 0.9, "never more than one report's");
        assert_eq!(filter_weight(Span::ZERO, Span::ZERO, 1.0, THRES), 0.9);
    }

    #[test]
    fn two_reports_at_20_ms_follow_nine_tenths_of_a_step() {
        let beta = filter_weight(Span::from_millis(20), TW, 1.0, THRES);
        let bw = filtered(filtered(10e6, 20e6, beta), 20e6, beta);
        assert!((bw - 19e6).abs() < 1.0, "{bw}");
    }

    #[test]
    fn compensation_is_proportional_up_to_300_ms() {
        for (rtt_ms, bytes) in
            [(20, 1000.0), (24, 1200.0), (60, 3000.0), (120, 6000.0), (300, 15000.0), (400, 15000.0)]
        {
            let c = growth_compensation(Span::from_millis(rtt_ms));
            assert!((c - bytes).abs() < 1e-9, "{rtt_ms} ms: {c}");
        }
    }

    #[test]
    fn drain_ends_two_segments_above_its_target() {
        let rtt = Span::from_millis(60);
        assert_eq!(drain_limit(false, 20e6, rtt, 1400.0), 150_000.0 + 2800.0);
        assert_eq!(drain_limit(true, 20e6, rtt, 1400.0), 112_500.0 + 2800.0);
    }

    #[test]
    fn grow_ends_at_the_larger_of_its_limits() {
        let (ms60, ms24) = (Span::from_millis(60), Span::from_millis(24));
        for (case, compensation, at_entry, bw_max, rtt, expected) in [
            ("125 % of a BDP", Compensation::InFlight, 150_000.0, 20e6, ms60, 187_500.0),
            ("a starved flow still adds C", Compensation::InFlight, 2800.0, 0.4e6, ms24, 4000.0),
            ("C over the BDP", Compensation::Bdp, 2800.0, 0.4e6, ms24, 2400.0),
            ("no compensation", Compensation::Off, 2800.0, 0.4e6, ms24, 1500.0),
        ] {
            let limit = compensation.grow_limit(at_entry, bw_max, rtt);
            assert!((limit - expected).abs() < 1e-6, "{case}: {limit}");
        }
    }

    proptest! {
        /// Eq. 7.7: `n` reports follow 90 % of any step, and `n - 1` reports do not.
        #[test]
        fn nine_tenths_are_followed_within_the_stated_number_of_reports(
            rtt_ms in 1..1000u64, k in 1..3u32, from in 1e5..1e9f64, to in 1e5..1e9f64,
        ) {
            let rtt = Span::from_millis(rtt_ms);
            let beta = filter_weight(rtt, TW, f64::from(k), THRES);
            let reports = (f64::from(k) * rtt.ratio(TW)).max(1.0);
            let left = |count: u64| {
                let bw = (0..count).fold(from, |bw, _| filtered(bw, to, beta));
                ((bw - to) / (from - to)).abs()
            };
            prop_assume!((to - from).abs() > 1.0);
            prop_assert!(left(reports.ceil() as u64) <= THRES + 1e-6);
            prop_assert!(left((reports.ceil() - 1.0) as u64) > THRES - 1e-6);
        }
    }
}
