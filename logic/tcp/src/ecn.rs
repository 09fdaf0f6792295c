//! ECN feedback: what the handshake agrees on, AccECN's counters at the receiver, and how the sender reads them.
//!
//! Source: RFC 3168 (classic feedback); RFC 9768 (AccECN): handshake in section 3.1, the ACE field in 3.2.2, its increments that may
//! hide a cycle in 3.2.2.5, the option in 3.2.3. Ours: segments carry the counters whole, so that a sender can read them exactly
//! ([`Ace::Exact`]); of the option only its longest form is sent, where it fits beside the selective acknowledgements.

use ranpace_units::Ecn;

/// ECN feedback of a receiver, in order of what it tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EcnFeedback {
    /// None: packets are not ECN-capable.
    #[default]
    Off,
    /// One bit, repeated until the sender confirms it (RFC 3168).
    Classic,
    /// The number of marks (AccECN, RFC 9768).
    Accurate,
}

/// How a sender reads the number of marks from accurate feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ace {
    /// All bits of the receiver's counters: no mark is ever misread.
    #[default]
    Exact,
    /// The three bits of the header, with RFC 9768's rule for acknowledgements that may hide a cycle, and the option where it came.
    Wire,
}

/// Counters by code point: segments modulo 2^32, or bytes of payload modulo 2^24 as the option has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// With Congestion Experienced.
    pub ce: u32,
    /// With ECT(1).
    pub ect1: u32,
    /// With ECT(0).
    pub ect0: u32,
}

impl EcnCounts {
    fn add(&mut self, ecn: Ecn, amount: u32) {
        let counter = match ecn {
            Ecn::NotEct => return,
            Ecn::Ce => &mut self.ce,
            Ecn::Ect1 => &mut self.ect1,
            Ecn::Ect0 => &mut self.ect0,
        };
        *counter = counter.wrapping_add(amount);
    }

    fn map(self, of: impl Fn(u32) -> u32) -> Self {
        Self { ce: of(self.ce), ect1: of(self.ect1), ect0: of(self.ect0) }
    }
}

/// The accurate feedback of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccurateEcho {
    /// Data segments that have arrived.
    pub segments: EcnCounts,
    /// Their payload, if the option is on this segment; counted on the wire.
    pub option: Option<EcnCounts>,
}

/// Initial value of the packet counters, so that zero is no plausible value (RFC 9768, 3.2.1).
const FIRST: u32 = 5;
/// Values of the ACE field.
const CYCLE: u64 = 8;
/// Values of the option's counters.
const OPTION_CYCLE: u32 = 1 << 24;
/// The option's length with its padding: kind, length, three counters of three bytes (RFC 9768, 3.2.3).
pub(crate) const OPTION: u64 = 12;

impl AccurateEcho {
    /// The ACE field: the lowest three bits of the number of marked packets.
    pub fn ace(&self) -> u8 {
        (self.segments.ce.wrapping_add(FIRST) % CYCLE as u32) as u8
    }
}

/// What a receiver has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnArrivals {
    segments: EcnCounts,
    bytes: EcnCounts,
    last_was_marked: bool,
    marked_since_ack: u32,
}

impl EcnArrivals {
    /// Most marks that wait for an acknowledgement (RFC 9768, 3.2.2.5.1: a receiver with data of its own outstanding could wait for a
    /// third).
    const MARKS_PER_ACK: u32 = 2;

    /// A data segment has arrived. Returns whether to acknowledge it at once (RFC 9768, 3.2.2.5.1): the first mark after unmarked
    /// segments, and enough marks since the last acknowledgement.
    pub fn on_data(&mut self, ecn: Ecn, length: u32) -> bool {
        self.segments.add(ecn, 1);
        self.bytes.add(ecn, length);
        let marked = ecn == Ecn::Ce;
        let changed = marked && !core::mem::replace(&mut self.last_was_marked, marked);
        self.last_was_marked = marked;
        self.marked_since_ack += u32::from(marked);
        changed || self.marked_since_ack >= Self::MARKS_PER_ACK
    }

    /// The feedback of an acknowledgement that is being sent, without the option.
    pub fn echo(&mut self) -> AccurateEcho {
        self.marked_since_ack = 0;
        AccurateEcho { segments: self.segments, option: None }
    }

    /// The option's counters.
    pub fn option(&self) -> EcnCounts {
        self.bytes.map(|count| count % OPTION_CYCLE)
    }
}

/// Segments that an acknowledgement newly reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// With Congestion Experienced.
    pub marked: u64,
    /// With ECT(0).
    pub braked: u64,
}

/// What a sender has read of its peer's counters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnEchoes {
    segments: EcnCounts,
    bytes: EcnCounts,
    /// Marks read from the ACE field so far.
    marked: u64,
    /// Segments delivered that were sent only ECN-capable, while no counter has moved.
    silent: u64,
}

impl EcnEchoes {
    /// Segments delivered without any counter moving after which the path is taken to erase code points. Ours: an initial window.
    const BLEACHED_AFTER: u64 = 10;

    /// Reads the feedback of an acknowledgement that newly delivered `delivered` segments of at most `mss` bytes.
    pub fn read(&mut self, echo: &AccurateEcho, ace: Ace, delivered: u64, mss: u64) -> Marks {
        match ace {
            Ace::Exact => self.read_exactly(&echo.segments),
            // Without progress it may be an old acknowledgement (RFC 9768, 3.2.2.5.2).
            Ace::Wire if delivered == 0 => Marks::default(),
            Ace::Wire => self.read_wire(echo, delivered, mss),
        }
    }

    fn read_exactly(&mut self, now: &EcnCounts) -> Marks {
        let newer = |now: u32, before: u32| now.wrapping_sub(before);
        let more = [
            newer(now.ce, self.segments.ce),
            newer(now.ect1, self.segments.ect1),
            newer(now.ect0, self.segments.ect0),
        ];
        // A counter that went back is that of an acknowledgement which was overtaken.
        if more.iter().any(|more| *more > u32::MAX / 2) {
            return Marks::default();
        }
        self.segments = *now;
        Marks { marked: u64::from(more[0]), braked: u64::from(more[2]) }
    }

    fn read_wire(&mut self, echo: &AccurateEcho, delivered: u64, mss: u64) -> Marks {
        let least = (u64::from(echo.ace()) + CYCLE - (self.marked + u64::from(FIRST)) % CYCLE) % CYCLE;
        let (mut marked, mut braked) = (hidden_cycle(least, delivered), 0);
        if let Some(bytes) = echo.option {
            let more = |now: u32, before: u32| {
                u64::from(now.wrapping_sub(before) % OPTION_CYCLE).div_ceil(mss.max(1))
            };
            marked = nearest(least, more(bytes.ce, self.bytes.ce));
            braked = more(bytes.ect0, self.bytes.ect0);
            self.bytes = bytes;
            self.segments = EcnCounts { ce: 0, ..bytes };
        }
        self.marked += marked;
        Marks { marked, braked }
    }

    /// Returns whether the path erases code points: `capable` further segments arrived of which each transmission was ECN-capable,
    /// and the peer has never counted one. The ACE field alone cannot tell.
    pub fn is_bleached(&mut self, ace: Ace, has_option: bool, capable: u64) -> bool {
        if self.segments != EcnCounts::default() || self.marked > 0 || (ace == Ace::Wire && !has_option) {
            return false;
        }
        self.silent += capable;
        self.silent >= Self::BLEACHED_AFTER
    }
}

/// The number of marks, of which the lowest bits are `least`, on an acknowledgement that covers `covered` segments: if a whole cycle
/// could hide in it, the largest possible number (RFC 9768, 3.2.2.5.2 and appendix A.2.1).
fn hidden_cycle(least: u64, covered: u64) -> u64 {
    if least + CYCLE <= covered { covered - (covered - least) % CYCLE } else { least }
}

/// The number closest to `estimate` whose lowest bits are `least`.
fn nearest(least: u64, estimate: u64) -> u64 {
    let below = estimate.saturating_sub(least) / CYCLE * CYCLE + least;
    if estimate > below && estimate - below > CYCLE / 2 { below + CYCLE } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn echo(ce: u32) -> AccurateEcho {
        AccurateEcho { segments: EcnCounts { ce, ..EcnCounts::default() }, option: None }
    }

    #[test]
    fn the_field_is_read_as_rfc_9768_says() {
        // The sender's counter is at 5; ACE 0 means three marks.
        assert_eq!(echo(3).ace(), 0);
        assert_eq!(EcnEchoes::default().read(&echo(3), Ace::Wire, 3, 1_448).marked, 3);
        // Nine marks among 20 segments: the field says 6, the difference is 1, and the safer reading 17.
        assert_eq!(echo(9).ace(), 6);
        assert_eq!(EcnEchoes::default().read(&echo(9), Ace::Wire, 20, 1_448).marked, 17);
        assert_eq!((hidden_cycle(1, 20), hidden_cycle(1, 8), hidden_cycle(1, 9)), (17, 1, 9));
        assert_eq!(EcnEchoes::default().read(&echo(9), Ace::Exact, 20, 1_448).marked, 9);
    }

    #[test]
    fn the_option_tells_how_many_cycles_were_hidden() {
        let option = EcnCounts { ce: 9 * 1_448, ect1: 11 * 1_448, ect0: 0 };
        let with = AccurateEcho { option: Some(option), ..echo(9) };
        assert_eq!(EcnEchoes::default().read(&with, Ace::Wire, 20, 1_448).marked, 9);
        assert_eq!((nearest(1, 9), nearest(1, 2), nearest(7, 0), nearest(1, 6)), (9, 1, 7, 9));
    }

    #[test]
    fn marks_are_acknowledged_at_once_when_they_begin_and_when_there_are_two() {
        let mut arrivals = EcnArrivals::default();
        for (ecn, at_once) in [
            (Ecn::Ect1, false),
            (Ecn::Ce, true),
            (Ecn::Ect1, false),
            (Ecn::Ect1, false),
            (Ecn::Ce, true),
            (Ecn::Ce, false), // the first since the acknowledgement
            (Ecn::Ce, true),
        ] {
            let now = arrivals.on_data(ecn, 100);
            assert_eq!(now, at_once, "{ecn:?}");
            if now {
                arrivals.echo();
            }
        }
        assert_eq!(arrivals.option(), EcnCounts { ce: 400, ect1: 300, ect0: 0 });
    }

    #[test]
    fn an_overtaken_acknowledgement_takes_no_mark_back() {
        let mut echoes = EcnEchoes::default();
        let marked: Vec<u64> =
            [4, 2, 5].into_iter().map(|ce| echoes.read(&echo(ce), Ace::Exact, 1, 1_448).marked).collect();
        assert_eq!(marked, [4, 0, 1]);
    }

    #[test]
    fn a_path_that_erases_code_points_is_noticed_after_an_initial_window() {
        let mut echoes = EcnEchoes::default();
        let silent: Vec<bool> =
            [4, 5, 1].into_iter().map(|count| echoes.is_bleached(Ace::Exact, false, count)).collect();
        assert_eq!(silent, [false, false, true]);
        assert!(!EcnEchoes::default().is_bleached(Ace::Wire, false, 100), "three bits cannot tell");
    }

    proptest! {
        /// Exactly read, the sum of all reports is the number of marks; through the field it is never less while acknowledgements
        /// cover fewer than eight segments, and never more than were delivered.
        #[test]
        fn no_mark_is_missed(acks in prop::collection::vec((1..8_u64, any::<u64>()), 1..200)) {
            let (mut exact, mut wire) = (EcnEchoes::default(), EcnEchoes::default());
            let (mut total, mut read) = (0, (0, 0));
            for (covered, bits) in acks {
                total += bits % (covered + 1);
                let echo = echo(total as u32);
                read.0 += exact.read(&echo, Ace::Exact, covered, 1_448).marked;
                read.1 += wire.read(&echo, Ace::Wire, covered, 1_448).marked;
                prop_assert_eq!(read, (total, total));
            }
        }
    }
}
