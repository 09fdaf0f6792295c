//! `reduction.h`: the reduction of a parent's window in recovery.

mirror! {
    /// A reduction that goes on, or none.
    pub struct Reduction[ranpace_reduction_layout] {
        /// Segments, when it began; 0 where none goes on.
        pub prior_cwnd: u32,
        /// Segments since then.
        pub delivered: u32,
        /// What the kernel had counted as sent in this recovery.
        pub sent: u32,
    }
}

unsafe extern "C" {
    fn ranpace_reduction_window(
        r: *mut Reduction,
        cwnd: u32,
        ssthresh: u32,
        flight: u32,
        prr_out: u32,
        delivered: u32,
        advanced: core::ffi::c_int,
        lost: core::ffi::c_int,
    ) -> u32;
}

/// A socket in recovery, as the kernel has it when an acknowledgement came.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// Segments.
    pub cwnd: u32,
    /// Segments.
    pub ssthresh: u32,
    /// Segments.
    pub flight: u32,
    /// Segments that were sent in this recovery.
    pub prr_out: u32,
    /// Segments that the acknowledgement delivered.
    pub delivered: u32,
    /// It acknowledges new data.
    pub advanced: bool,
    /// Segments are newly taken for lost.
    pub lost: bool,
}

impl Reduction {
    /// The window after an acknowledgement, in segments.
    pub fn window(&mut self, at: &Recovery) -> u32 {
        let Recovery { cwnd, ssthresh, flight, prr_out, delivered, advanced, lost } = *at;
        // SAFETY: it reads and writes this structure, whose layout the test of `mirror!` compares, and takes numbers.
        unsafe {
            ranpace_reduction_window(
                self,
                cwnd,
                ssthresh,
                flight,
                prr_out,
                delivered,
                advanced.into(),
                lost.into(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 6937, section 3, as Linux has it: in floats.
    fn by_the_rfc(prior_cwnd: u32, delivered: f64, sent: f64, at: &Recovery) -> f64 {
        let (ssthresh, flight) = (f64::from(at.ssthresh), f64::from(at.flight));
        let send = if flight > ssthresh {
            (ssthresh * delivered / f64::from(prior_cwnd)).ceil() - sent
        } else {
            let bound = (delivered - sent).max(f64::from(at.delivered)) + f64::from(at.advanced && !at.lost);
            bound.min(ssthresh - flight)
        };
        flight + send.clamp(if sent > 0.0 { 0.0 } else { 1.0 }, f64::from(1 << 20))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_reduction_is_that_of_the_rfc(
            prior_cwnd in 1..10_000u32, ssthresh in 1..10_000u32, out_before in 0..1000u32,
            acks in prop::collection::vec((0..20_000u32, 1..100u32, 0..50u32, any::<(bool, bool)>()), 1..50),
        ) {
            let mut reduction = Reduction { prior_cwnd, delivered: 0, sent: out_before };
            let (mut prr_out, mut total) = (out_before, 0);
            for (flight, delivered, sent, (advanced, lost)) in acks {
                let at = Recovery { cwnd: 7, ssthresh, flight, prr_out, delivered, advanced, lost };
                total += delivered;
                let exact = by_the_rfc(prior_cwnd, total.into(), (prr_out - out_before).into(), &at);
                prop_assert_eq!(f64::from(reduction.window(&at)), exact, "{:?} {:?}", reduction, at);
                prr_out += sent;
            }
        }

        /// A parent that gets the window in the middle of a recovery, whose beginning it was not told of.
        #[test]
        fn without_a_reduction_the_window_stays(
            delivered_before: u32, sent_before: u32, cwnd: u32, ssthresh: u32, flight: u32, prr_out: u32, delivered: u32,
            advanced: bool, lost: bool,
        ) {
            let mut none = Reduction { prior_cwnd: 0, delivered: delivered_before, sent: sent_before };
            let before = none;
            let at = Recovery { cwnd, ssthresh, flight, prr_out, delivered, advanced, lost };
            prop_assert_eq!(none.window(&at), cwnd);
            prop_assert_eq!(none, before);
        }
    }
}
