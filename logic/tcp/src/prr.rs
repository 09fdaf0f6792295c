//! Proportional rate reduction: the window while losses are repaired.
//!
//! Source: RFC 6937 as in Linux (`tcp_cwnd_reduction`, with the slow-start reduction bound unless losses continue).

/// State of one reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Prr {
    prior_cwnd: f64,
    delivered: f64,
    out: f64,
}

impl Prr {
    pub fn new(prior_cwnd: f64) -> Self {
        Self { prior_cwnd: prior_cwnd.max(1.0), delivered: 0.0, out: 0.0 }
    }

    /// A segment was sent during the reduction.
    pub fn on_sent(&mut self) {
        self.out += 1.0;
    }

    /// The window after an acknowledgement that delivered `delivered` segments.
    pub fn window(
        &mut self,
        ssthresh: f64,
        in_flight: u64,
        delivered: u64,
        advanced: bool,
        newly_lost: bool,
    ) -> f64 {
        debug_assert!(delivered > 0);
        let (in_flight, newly) = (in_flight as f64, delivered as f64);
        self.delivered += newly;
        let delta = ssthresh - in_flight;
        let mut count = if delta < 0.0 {
            (ssthresh * self.delivered / self.prior_cwnd).ceil() - self.out
        } else {
            let mut count = (self.delivered - self.out).max(newly);
            if advanced && !newly_lost {
                count += 1.0;
            }
            count.min(delta)
        };
        // At least one segment is retransmitted at once.
        count = count.max(if self.out > 0.0 { 0.0 } else { 1.0 });
        in_flight + count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_in_proportion_to_what_was_delivered() {
        // 100 segments, one lost, threshold 70: 7 segments are sent for 10 delivered.
        let mut prr = Prr::new(100.0);
        let (mut in_flight, mut sent) = (99_u64, 0);
        for _ in 0..90 {
            in_flight -= 1;
            let cwnd = prr.window(70.0, in_flight, 1, false, false);
            while (in_flight as f64) + 1.0 <= cwnd {
                prr.on_sent();
                in_flight += 1;
                sent += 1;
            }
        }
        assert!((61..=65).contains(&sent), "{sent}");
        assert!(in_flight <= 72, "{in_flight}");
    }
}
