//! The end of slow start that a PEP's delays have brought about, until the receiver has confirmed or contradicted it.
//!
//! Source: none; the specification asks that a PEP cannot hold `W_i` low. Ours: a queue before the PEP delays what goes on to the
//! receiver by as much. So the packets that were under way when HyStart had seen enough must have had a longer RTT to the
//! receiver, too. Half of the rise that HyStart asks for is enough, because the smallest RTT to the receiver may have been
//! measured with a little more of the radio's delay than the smallest of these.

use ranpace_units::Span;

use super::{LinuxCubic, RISE, Window};

/// An end of slow start.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// What was before.
    pub cubic: LinuxCubic,
    pub ssthresh: f64,
    /// The packets that were under way to the receiver.
    from: u64,
    until: u64,
    /// Their smallest RTT.
    least: Option<Span>,
    /// The rise of the smallest RTT that confirms it.
    rise: Span,
}

/// What the receiver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its delays rose as well.
    Confirmed,
    /// They did not.
    Contradicted,
}

impl Claim {
    /// Slow start has ended, from `before` on, with the packets `under_way`. `base` is the smallest RTT to the PEP.
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

    /// The receiver has a packet, `rtt` after it was sent; `smallest` is the smallest RTT so far. A verdict when a later packet
    /// arrives than those that were under way.
    pub fn on_acked(&mut self, number: u64, rtt: Span, smallest: Span) -> Option<Verdict> {
        if number < self.from {
            return None;
        }
        if number < self.until {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            return None;
        }
        // Noise makes an RTT longer only: few samples may hide a contradiction, and invent none.
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
    fn the_receivers_smallest_rtt_of_what_was_under_way_decides() {
        let ms = Span::from_millis;
        // To the PEP 20 ms: HyStart asks for 4 ms more, and 2 ms confirm it; 100 ms: 12.5 and 6.25 ms.
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
