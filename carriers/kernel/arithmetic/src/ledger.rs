//! `mdcc_ledger.h`: what a PEP has seen, by TCP's sequence numbers.

use crate::driven::Words;
use crate::mdcc::Event;

mirror! {
    /// A report, verified.
    pub struct Report[ranpace_ledger_report_layout] {
        /// Nanoseconds.
        pub hold: u64,
        /// Marks counted.
        pub marked: u64,
        /// All below came by.
        pub cumulative: u32,
        /// Of ranges.
        pub count: u32,
        /// Whether `marked` is valid.
        pub has_marked: u32,
        /// Whether the PEP counts anew.
        pub new_epoch: u32,
        /// First and one past the last.
        pub ranges: [[u32; 2]; 8],
    }
}

mirror! {
    /// What a report has brought.
    pub struct News[ranpace_ledger_news_layout] {
        /// Segments newly seen.
        pub seen: u32,
        /// Of the newest of them.
        pub number: u32,
        /// Whether something is newly missing.
        pub has_gap: u32,
        /// The first of it.
        pub gap_number: u32,
    }
}

unsafe extern "C" {
    fn ranpace_ledger_size() -> usize;
    fn ranpace_ledger_mark(ledger: *mut State, una: u32, end: u32, number: u32, at: u64) -> i32;
    fn ranpace_ledger_report(
        ledger: *mut State,
        report: *const Report,
        event: *mut Event,
        news: *mut News,
        end: u32,
    ) -> i32;
    fn ranpace_ledger_acked(ledger: *mut State, event: *mut Event, una: u32, segments: u32) -> i32;
    fn ranpace_ledger_lost(ledger: *mut State, event: *mut Event, una: u32, segments: u32) -> i32;
    fn ranpace_ledger_unseen(ledger: *const State, una: u32, end: u32, mss: u32) -> u32;
}

/// `struct ledger`, which C alone reads.
type State = Words<134>;

/// The ledger.
#[derive(Debug, Default)]
pub struct KernelLedger(State);

impl KernelLedger {
    /// An empty one.
    ///
    /// # Panics
    ///
    /// C's is of another size.
    pub fn new() -> Self {
        // SAFETY: it returns a number.
        assert_eq!(unsafe { ranpace_ledger_size() }, size_of::<State>());
        Self::default()
    }

    /// What had left by an event: `number` segments, the newest at `at`.
    pub fn mark(&mut self, una: u32, end: u32, number: u32, at: u64) {
        // SAFETY: C reads and writes this state alone, whose size was compared.
        unsafe { ranpace_ledger_mark(&raw mut self.0, una, end, number, at) };
    }

    /// A report; `None` if it is impossible.
    pub fn report(&mut self, report: &Report, event: &mut Event, end: u32) -> Option<News> {
        let mut news = News::default();
        // SAFETY: as above; the layouts of the others are compared by tests.
        let possible =
            unsafe { ranpace_ledger_report(&raw mut self.0, report, &raw mut *event, &raw mut news, end) };
        (possible != 0).then_some(news)
    }

    /// An acknowledgement: fills in the event.
    pub fn acked(&mut self, event: &mut Event, una: u32, segments: u32) {
        // SAFETY: as above.
        unsafe { ranpace_ledger_acked(&raw mut self.0, &raw mut *event, una, segments) };
    }

    /// Losses: how many of them were lost before the PEP; the event has where the others were.
    pub fn lost(&mut self, event: &mut Event, una: u32, segments: u32) -> u32 {
        // SAFETY: as above.
        unsafe { ranpace_ledger_lost(&raw mut self.0, &raw mut *event, una, segments) as u32 }
    }

    /// Segments that the PEP was not said to have seen.
    pub fn unseen(&self, una: u32, end: u32, mss: u32) -> u32 {
        // SAFETY: C reads this state alone.
        unsafe { ranpace_ledger_unseen(&raw const self.0, una, end, mss) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::Path;

    const MSS: u32 = 1_000;
    const MS: u64 = 1_000_000;
    /// Where the connection begins: sequence numbers wrap in these tests.
    const START: u32 = u32::MAX - 4_999;

    /// Byte `at` of the stream.
    fn byte(at: u32) -> u32 {
        START.wrapping_add(at)
    }

    /// So many segments have left, ten each millisecond.
    fn sent(segments: u32) -> (KernelLedger, Event) {
        let mut ledger = KernelLedger::new();
        ledger.mark(byte(0), byte(0), 0, 0);
        for ten in 1..=segments / 10 {
            ledger.mark(byte(0), byte(10 * ten * MSS), 10 * ten, u64::from(ten) * MS);
        }
        let path = Path { now: 100 * MS, mss: MSS, sent: segments, in_flight: segments, ..Path::default() };
        (ledger, Event { path, open: 1, ..Event::default() })
    }

    fn report(cumulative: u32, ranges: &[(u32, u32)]) -> Report {
        let mut report = Report { cumulative: byte(cumulative), hold: MS, ..Report::default() };
        for &(start, end) in ranges {
            report.ranges[report.count as usize] = [byte(start), byte(end)];
            report.count += 1;
        }
        report
    }

    #[test]
    fn whole_segments_are_news_once_and_the_newest_tells_the_rtt() {
        let (mut ledger, mut event) = sent(40);
        for (bytes, seen, number, rtt_us) in [
            (10_000, 10, 9, 98_000), // left at 1 ms, and was held for 1 ms before 100 ms
            (10_000, 0, 9, 0),
            (12_500, 2, 12, 97_000), // half a segment waits
            (15_000, 3, 14, 97_000),
            (9_000, 0, 14, 0), // an old report
            (40_000, 25, 39, 95_000),
        ] {
            let news = ledger.report(&report(bytes, &[]), &mut event, byte(40_000)).unwrap();
            assert_eq!((news.seen, news.number, news.has_gap), (seen, number, 0), "{bytes}");
            assert_eq!(event.rtt_us, rtt_us, "{bytes}");
        }
    }

    #[test]
    fn what_was_never_sent_or_is_in_disorder_is_impossible() {
        let (mut ledger, mut event) = sent(40);
        for impossible in [
            report(40_001, &[]),
            report(0, &[(1_000, 40_001)]),
            report(5_000, &[(4_000, 6_000)]),
            report(5_000, &[(8_000, 8_000)]),
            report(5_000, &[(8_000, 9_000), (9_000, 10_000)]),
        ] {
            assert!(ledger.report(&impossible, &mut event, byte(40_000)).is_none(), "{impossible:?}");
        }
        let news = ledger.report(&report(5_000, &[]), &mut event, byte(40_000)).unwrap();
        assert_eq!(news.seen, 5, "and they changed nothing");
    }

    #[test]
    fn as_many_losses_as_were_missed_are_the_wires() {
        let (mut ledger, mut event) = sent(40);
        // The sixth, and the eleventh and twelfth are missing.
        let gaps = [(6_000, 10_000), (12_000, 20_000)];
        let news = ledger.report(&report(5_000, &gaps), &mut event, byte(40_000)).unwrap();
        assert_eq!((news.seen, news.has_gap, news.gap_number), (17, 1, 5));
        let news = ledger.report(&report(5_000, &gaps), &mut event, byte(40_000)).unwrap();
        assert_eq!((news.seen, news.has_gap), (0, 0), "no news");
        assert_eq!(ledger.lost(&mut event, byte(5_000), 1), 1);
        assert_eq!(
            (ledger.lost(&mut event, byte(5_000), 4), event.domain),
            (2, 1),
            "the others are the radio's"
        );
        let (mut ledger, mut event) = sent(40);
        ledger.report(&report(7_000, &[]), &mut event, byte(40_000)).unwrap();
        for (una, domain) in [(4_000, 1), (4_001, 2), (7_000, 2)] {
            assert_eq!((ledger.lost(&mut event, byte(una), 1), event.domain), (0, domain), "{una}");
        }
    }

    #[test]
    fn what_the_receiver_has_was_seen_and_a_gap_that_it_has_was_none() {
        let (mut ledger, mut event) = sent(40);
        ledger.report(&report(5_000, &[(6_000, 10_000)]), &mut event, byte(40_000)).unwrap();
        event.path.in_flight = 35;
        ledger.acked(&mut event, byte(5_000), 5);
        assert_eq!((event.number, event.segments, event.unreported, event.called_missing), (4, 5, 0, 0));
        event.path.in_flight = 28;
        ledger.acked(&mut event, byte(12_000), 7);
        assert_eq!((event.number, event.unreported, event.called_missing), (5, 2, 1), "the sixth was no gap");
        assert_eq!(event.sent_at, 2 * MS, "of the eleventh");
        let news = ledger.report(&report(13_000, &[]), &mut event, byte(40_000)).unwrap();
        assert_eq!(news.seen, 1, "the others were acknowledged");
        // A new epoch: what is below is unknown.
        let anew = Report { new_epoch: 1, ..report(20_000, &[]) };
        assert_eq!(ledger.report(&anew, &mut event, byte(40_000)).unwrap().seen, 0);
        assert_eq!(ledger.report(&report(22_000, &[]), &mut event, byte(40_000)).unwrap().seen, 2);
    }
}
