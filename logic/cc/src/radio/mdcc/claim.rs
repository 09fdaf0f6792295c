//! An end of slow start caused by the PEP's delays, until the receiver has confirmed or contradicted it.
//!
//! Source: none; the specification asks that a PEP cannot hold `W_i` low. Ours: a queue before the PEP delays the packets to
//! the receiver by as much, so those in flight when HyStart triggered must show a longer RTT to the receiver, too. Half of
//! the rise that HyStart requires is enough, because the smallest RTT to the receiver may include slightly more radio delay
//! than the smallest RTT of these packets.

use ranpace_units::Span;

use super::{LinuxCubic, RISE, Window};

/// An end of slow start.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// State before the end of slow start.
    pub cubic: LinuxCubic,
    pub ssthresh: f64,
    /// The packets that were in flight to the receiver.
    from: u64,
    until: u64,
    /// Their smallest RTT.
    least: Option<Span>,
    /// Rise of the smallest RTT that confirms the claim.
    rise: Span,
}

/// The receiver's evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its delays rose as well.
    Confirmed,
    /// They did not.
    Contradicted,
}

impl Claim {
    /// Slow start has just ended; `before` is the state until then, `under_way` are the packets in flight. `base` is the
    /// smallest RTT to the PEP.
    pub fn new(before: (LinuxCubic, Window), under_way: core::ops::Range<u64>, base: Span) -> Self {
        Self {
            cubic: before.0,
            ssthresh: before.1.ssthresh,
            from: under_way.start,
            until: under_way.end,
            least: None,
            rise: (base / 8).clamp(RISE.0, RISE.1) / 2,
        }
    }

    /// The receiver acknowledged a packet `rtt` after it was sent; `smallest` is the smallest RTT so far. The verdict is
    /// returned when a packet beyond those in flight arrives.
    pub fn on_acked(&mut self, number: u64, rtt: Span, smallest: Span) -> Option<Verdict> {
        if number < self.from {
            return None;
        }
        if number < self.until {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            return None;
        }
        // Noise only lengthens an RTT, so a small sample may hide a contradiction but cannot invent one.
        let least = self.least?;
        Some(if least < smallest + self.rise { Verdict::Contradicted } else { Verdict::Confirmed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::cubic::Params;
    use crate::classic::hystart;

    #[test]
    fn receivers_min_rtt_of_packets_in_flight_decides() {
        let ms = Span::from_millis;
        // RTT to the PEP of 20 ms: HyStart requires a rise of 4 ms, and 2 ms confirm it. 100 ms: 12.5 and 6.25 ms.
        for (base, rtts, verdict) in [
            (20, &[41, 70, 80], Verdict::Contradicted),
            (20, &[42, 70, 80], Verdict::Confirmed),
            (20, &[90, 41, 90], Verdict::Contradicted),
            (100, &[46, 47, 48], Verdict::Contradicted),
            (100, &[47, 47, 48], Verdict::Confirmed),
        ] {
            let cubic = LinuxCubic::new(Params::LINUX, hystart::Kind::PlusPlus);
            let mut claim = Claim::new((cubic, Window::new(20.0)), 10..13, ms(base));
            assert_eq!(claim.on_acked(9, ms(40), ms(40)), None);
            for (number, rtt) in (10..).zip(rtts) {
                assert_eq!(claim.on_acked(number, ms(*rtt), ms(40)), None);
            }
            assert_eq!(claim.on_acked(13, ms(40), ms(40)), Some(verdict), "{base} {rtts:?}");
        }
    }
}
