//! The server's view of one encrypted flow: the tags of the packets that it sent, and which PEP reports on them.
//!
//! Ours: if several PEPs see a flow, the server follows the one that it heard first, and another one once that is silent, because
//! each PEP counts by itself.

use ranpace_units::{Span, Time};

use super::agent::Verified;
use super::message::View;
use super::sent::{Located, SentTags, Unlocated};

/// Silence of the followed PEP after which another one is followed. Ours: ten times as long as a flow's closing report takes, with the
/// RTT of a far server.
const GONE: Span = Span::SECOND;
/// Interval between two requests for a new epoch: the longest silence of a PEP. Meanwhile only the requested epoch is interpreted, since an
/// attempt takes up to a millisecond. Ours.
const ASK_AGAIN: Span = Span::from_millis(200);

/// What a report brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The packets that the PEP has seen and missed.
    Located(Located),
    /// Nothing: it is of another PEP than the followed one, or of an epoch that was given up.
    Ignored,
    /// It cannot be interpreted.
    Uninterpretable {
        /// It reports what was never sent: no loss of messages explains it.
        impossible: bool,
        /// A new epoch is to be requested from the PEP.
        ask: bool,
    },
}

/// One flow.
#[derive(Clone, Debug, Default)]
pub struct WatchedFlow {
    tags: SentTags,
    /// The followed PEP, and when its last report came.
    pep: Option<(usize, Time)>,
    /// The epoch that was requested, and when.
    asked: Option<(u16, Time)>,
}

impl WatchedFlow {
    /// A datagram with this tag is sent. `number` is the caller's; a datagram without one is counted, but not reported.
    pub fn on_sent(&mut self, now: Time, number: Option<u64>, tag: u32) {
        self.tags.on_sent(now, number, tag);
    }

    /// PEP number `pep` reports.
    pub fn on_report(&mut self, now: Time, pep: usize, verified: &Verified) -> Watched {
        let report = &verified.report;
        // Sequence numbers of a flow that has none.
        let View::Opaque(view) = &report.view else {
            return Watched::Uninterpretable { impossible: true, ask: false };
        };
        if let Some((followed, at)) = self.pep
            && followed != pep
        {
            if now.since(at) < GONE {
                return Watched::Ignored;
            }
            self.tags.restart();
            self.asked = None;
        }
        self.pep = Some((pep, now));
        let asked = self.asked.filter(|(_, at)| now.since(*at) < ASK_AGAIN);
        if asked.is_some_and(|(epoch, _)| report.epoch != epoch) {
            return Watched::Ignored;
        }
        match self.tags.locate(report.epoch, report.packets, view) {
            Ok(located) => {
                self.asked = None;
                Watched::Located(located)
            }
            Err(Unlocated::GivenUp) if asked.is_some() => Watched::Ignored,
            Err(error) => {
                if asked.is_none() {
                    // The one that `Agent::resync` requests.
                    self.asked = Some((report.epoch.wrapping_add(1), now));
                }
                Watched::Uninterpretable { impossible: error == Unlocated::Impossible, ask: asked.is_none() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::digest::PowerSums;
    use super::super::message::{OpaqueView, ReportMessage, TcpView};
    use super::*;

    /// A server's flow, and what its PEPs have counted.
    #[derive(Default)]
    struct Rig {
        flow: WatchedFlow,
        sums: PowerSums,
        packets: u32,
        newest: u32,
        next: u64,
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    impl Rig {
        /// Sends packets, which pass the PEP if `seen`.
        fn send(&mut self, count: u64, seen: bool) {
            for number in self.next..self.next + count {
                let tag = (number as u32 + 1).wrapping_mul(0x9E37_79B1) % 0xFFFF_FFF0 + 1;
                self.flow.on_sent(at(number), Some(number), tag);
                if seen {
                    self.newest = tag;
                    self.sums.insert(tag);
                    self.packets += 1;
                }
            }
            self.next += count;
        }

        fn restart(&mut self) {
            (self.sums, self.packets, self.newest) = (PowerSums::default(), 0, 0);
        }

        fn report(&mut self, now: Time, pep: usize, epoch: u16) -> Watched {
            let view = View::Opaque(OpaqueView { newest: self.newest, sums: self.sums });
            self.report_view(now, pep, epoch, view)
        }

        fn report_view(&mut self, now: Time, pep: usize, epoch: u16, view: View) -> Watched {
            let report = ReportMessage {
                reference: 1,
                epoch,
                packets: self.packets,
                bytes: 0,
                hold: Span::ZERO,
                clock: 0,
                marked: None,
                closing: false,
                view,
            };
            self.flow.on_report(now, pep, &Verified { flow: 1, report, new_epoch: false })
        }

        fn seen(&mut self, now: Time, pep: usize, epoch: u16) -> Vec<u64> {
            match self.report(now, pep, epoch) {
                Watched::Located(located) => located.seen,
                other => panic!("{other:?}"),
            }
        }
    }

    const ASKS: Watched = Watched::Uninterpretable { impossible: false, ask: true };

    #[test]
    fn a_new_epoch_is_requested_every_200_ms_until_one_can_be_interpreted() {
        let mut rig = Rig::default();
        rig.send(10, true);
        assert_eq!(rig.seen(at(20), 0, 4).len(), 10);
        rig.send(40, false);
        rig.send(10, true);
        assert_eq!(rig.report(at(100), 0, 4), ASKS, "more are missing than can be told");
        // The request was lost: the PEP goes on as it did.
        for (ms, expected) in
            [(150, Watched::Ignored), (299, Watched::Ignored), (300, ASKS), (310, Watched::Ignored)]
        {
            assert_eq!(rig.report(at(ms), 0, 4), expected, "at {ms} ms");
        }
        rig.restart();
        rig.send(10, true);
        assert_eq!(rig.report(at(320), 0, 7), Watched::Ignored, "nobody asked for this one");
        assert_eq!(rig.seen(at(330), 0, 5), (60..70).collect::<Vec<_>>());
    }

    #[test]
    fn packets_that_were_never_sent_are_impossible() {
        let mut rig = Rig::default();
        rig.send(10, true);
        rig.sums.insert(77);
        assert_eq!(rig.report(at(20), 0, 4), Watched::Uninterpretable { impossible: true, ask: true });
        let told = rig.report_view(at(900), 0, 4, View::Tcp(TcpView::new(9)));
        assert_eq!(
            told,
            Watched::Uninterpretable { impossible: true, ask: false },
            "sequence numbers of TCP"
        );
    }

    #[test]
    fn another_pep_is_followed_once_the_first_is_silent_for_a_second() {
        let mut rig = Rig::default();
        rig.send(10, true);
        assert_eq!(rig.seen(at(20), 0, 4).len(), 10);
        rig.send(5, true);
        assert_eq!(rig.report(at(1_019), 1, 9), Watched::Ignored);
        // The other one has counted since later.
        rig.restart();
        rig.send(5, true);
        match rig.report(at(1_020), 1, 4) {
            Watched::Located(located) => {
                assert_eq!((located.seen, located.new_epoch), ((15..20).collect(), true))
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(rig.report(at(1_030), 0, 4), Watched::Ignored, "now the first one is the other one");
    }
}
