//! Whether the machine kept up: which events were late, by how much, and whether the run is valid.

use ranpace_network::{Distribution, Histogram};
use ranpace_units::Span;

/// Lateness from which a packet or a slot counts as late. Ours: a TTI of LTE, the step of a cell's deliveries.
pub const LATE: Span = Span::from_millis(1);
/// Share of late packets, or of late slots, from which a run is invalid. Ours: what p99 of the delay would show.
pub const LATE_SHARE: f64 = 0.01;
/// A packet this late makes a run invalid. Ours: the smallest RTO of Linux (TCP_RTO_MIN) would expire.
pub const STALL: Span = Span::from_millis(200);

/// A standstill of the loop longer than this makes a run invalid. Ours: the shortest RTT in the comparison with the kernel
/// (docs/validate.md). Packets released after it come in a burst that a queue of one bandwidth-delay product cannot hold. Linux
/// suspends real-time threads that fill a processor for up to 50 ms.
pub const STANDSTILL: Span = Span::from_millis(20);

/// Counts late events.
#[derive(Debug, Default)]
pub struct Watch {
    timers: Histogram,
    packets: Histogram,
    late_packets: u64,
    /// Packets for addresses that no host has, or between hosts without a route: mostly multicast of the kernels.
    pub strays: u64,
    /// Packets, or GSO packets, that a host's kernel refused, or dropped during segmentation.
    pub refused: u64,
    /// CPU time of the loop, including the kernel's work for it.
    pub busy: Span,
    /// Running time of the loop.
    pub elapsed: Span,
    /// Wakeups of the loop, by its timer or by packets from hosts.
    pub wakeups: u64,
    /// Wakeups that were polls, for all packets due since the previous poll.
    pub polls: u64,
    /// Bound on how late polls deliver packets, and on how early packets from hosts count.
    pub slack: Span,
    /// Pauses of the loop that left part of its processor to others.
    pub pauses: u64,
    standstills: u64,
    longest_standstill: Span,
}

impl Watch {
    /// The loop woke this much later than requested.
    #[inline]
    pub fn on_timer(&mut self, error: Span) {
        self.timers.record(error);
    }

    /// The loop continued this much later than planned.
    #[inline]
    pub fn on_gap(&mut self, gap: Span) {
        self.longest_standstill = self.longest_standstill.max(gap);
        self.standstills += u64::from(gap > STANDSTILL);
    }

    /// This many packets were handed over this late.
    #[inline]
    pub fn on_packets(&mut self, late: Span, count: u32) {
        self.packets.record_times(late, count);
        self.late_packets += if late > LATE { u64::from(count) } else { 0 };
    }

    /// Packets so far, and how many were more than [`LATE`] late.
    pub fn packets(&self) -> (u64, u64) {
        (self.packets.count(), self.late_packets)
    }

    /// The final report; `slots` are those of the cells, with the number that were more than one slot late.
    pub fn finish(&self, (slots, late_slots): (Distribution, u64), machine: Machine) -> Timeliness {
        Timeliness {
            machine,
            timers: self.timers.distribution(),
            packets: self.packets.distribution(),
            late_packets: self.late_packets,
            slots,
            late_slots,
            strays: self.strays,
            refused: self.refused,
            busy: self.busy,
            elapsed: self.elapsed,
            wakeups: self.wakeups,
            polls: self.polls,
            slack: self.slack,
            pauses: self.pauses,
            standstills: self.standstills,
            longest_standstill: self.longest_standstill,
        }
    }
}

/// The resources that the machine granted the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Real-time priority (SCHED_FIFO).
    pub real_time: bool,
    /// Whether processors are kept from sleeping.
    pub awake: bool,
    /// Whether kernels segment GSO packets ([`crate::Delivery::Gso`]); `None` if not requested.
    pub cuts: Option<bool>,
}

/// Measures of how well the machine kept up.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeliness {
    /// The resources that the loop got.
    pub machine: Machine,
    /// Lateness of the loop's wakeups.
    pub timers: Distribution,
    /// Lateness of delivered packets.
    pub packets: Distribution,
    /// Packets delivered more than [`LATE`] late.
    pub late_packets: u64,
    /// Lateness of slots of cells.
    pub slots: Distribution,
    /// Slots played more than a slot late.
    pub late_slots: u64,
    /// See [`Watch::strays`].
    pub strays: u64,
    /// See [`Watch::refused`].
    pub refused: u64,
    /// See [`Watch::busy`].
    pub busy: Span,
    /// See [`Watch::elapsed`].
    pub elapsed: Span,
    /// See [`Watch::wakeups`].
    pub wakeups: u64,
    /// See [`Watch::polls`].
    pub polls: u64,
    /// See [`Watch::slack`].
    pub slack: Span,
    /// See [`Watch::pauses`].
    pub pauses: u64,
    /// Number of standstills of the loop longer than [`STANDSTILL`].
    pub standstills: u64,
    /// The longest standstill: work between two checks for due events, or time in which the machine did not run the loop.
    pub longest_standstill: Span,
}

impl Timeliness {
    /// Why the run is invalid; `None` if it is valid.
    pub fn invalid(&self) -> Option<String> {
        let share = |late: u64, all: u64| if all == 0 { 0.0 } else { late as f64 / all as f64 };
        let packets = share(self.late_packets, self.packets.count);
        let slots = share(self.late_slots, self.slots.count);
        if packets > LATE_SHARE {
            Some(format!(
                "{} of {} packets were more than {LATE} late (at most {:.0} % may be)",
                self.late_packets,
                self.packets.count,
                LATE_SHARE * 100.0
            ))
        } else if slots > LATE_SHARE {
            Some(format!(
                "{} of {} slots of the cells were played more than a slot late (at most {:.0} % may be)",
                self.late_slots,
                self.slots.count,
                LATE_SHARE * 100.0
            ))
        } else if self.packets.max > STALL {
            Some(format!("a packet was {} late (at most {STALL} may be)", self.packets.max))
        } else if self.standstills > 0 {
            Some(format!(
                "the loop stood still for more than {STANDSTILL}: {} times, for {:.1}ms at most",
                self.standstills,
                self.longest_standstill.as_secs_f64() * 1e3
            ))
        } else {
            None
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let micros = |span: Span| span.as_nanos() as f64 / 1e3;
        let mut line = format!(
            "timers late by {:.0}/{:.0}/{:.0} us (p50/p99/max), {} of {} packets more than {LATE} late",
            micros(self.timers.p50),
            micros(self.timers.p99),
            micros(self.timers.max),
            self.late_packets,
            self.packets.count,
        );
        if self.slots.count > 0 {
            line += &format!(", {} of {} slots late", self.late_slots, self.slots.count);
        }
        if !self.elapsed.is_zero() {
            let share = self.busy.as_secs_f64() / self.elapsed.as_secs_f64();
            line += &format!(", {:.1} % of a core", share * 100.0);
        }
        if self.polls > 0 {
            line += &format!(", a slack of {:.0} us", micros(self.slack));
        }
        if !self.machine.real_time {
            line += ", without real-time priority";
        }
        if !self.machine.awake {
            line += ", processors asleep between packets";
        }
        if self.machine.cuts == Some(false) {
            line += ", packets written one by one";
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeliness(packets: &[(u64, Span)], slots: (u64, u64)) -> Timeliness {
        let mut watch = Watch::default();
        for (count, late) in packets {
            watch.on_packets(*late, *count as u32);
        }
        let distribution = Distribution { count: slots.1, ..Distribution::default() };
        watch.finish((distribution, slots.0), Machine { real_time: true, awake: true, cuts: None })
    }

    #[test]
    fn an_invalid_run_says_how_much_was_late() {
        let late = timeliness(&[(98_999, Span::ZERO), (1_001, Span::from_millis(2))], (0, 0));
        let expected = "1001 of 100000 packets were more than 1ms late (at most 1 % may be)";
        assert_eq!(late.invalid().as_deref(), Some(expected));
        let late = timeliness(&[], (1_001, 100_000)).invalid();
        assert!(late.is_some_and(|why| why.starts_with("1001 of 100000 slots")));
    }

    #[test]
    fn a_run_is_invalid_if_more_than_a_hundredth_is_late_or_one_packet_by_an_rto() {
        let (soon, late) = (Span::from_micros(50), Span::from_millis(2));
        for (case, packets, slots, valid) in [
            ("nothing was sent", vec![], (0, 0), true),
            ("all in time", vec![(1000, soon)], (0, 1000), true),
            ("a hundredth late", vec![(990, soon), (10, late)], (0, 0), true),
            ("more than a hundredth late", vec![(989, soon), (11, late)], (0, 0), false),
            ("a hundredth of the slots late", vec![], (10, 1000), true),
            ("more slots late", vec![], (11, 1000), false),
            ("one stall", vec![(9999, soon), (1, Span::from_millis(201))], (0, 0), false),
        ] {
            assert_eq!(timeliness(&packets, slots).invalid().is_none(), valid, "{case}");
        }
    }

    #[test]
    fn a_run_is_invalid_if_the_loop_stood_still_even_if_hardly_a_packet_was_late() {
        let run = |gaps: &[Span]| {
            let mut watch = Watch::default();
            // Ten seconds at 1 Gbit/s; the packets of the standstill are half of one per cent.
            watch.on_packets(Span::from_micros(50), 829_500);
            watch.on_packets(Span::from_millis(30), 4_000);
            gaps.iter().for_each(|gap| watch.on_gap(*gap));
            watch.finish((Distribution::default(), 0), Machine { real_time: true, awake: true, cuts: None })
        };
        assert_eq!(run(&[Span::from_micros(300), STANDSTILL]).invalid(), None);
        let stood = run(&[Span::from_micros(300), Span::from_micros(46_700), Span::from_micros(20_001)]);
        assert_eq!((stood.standstills, stood.longest_standstill), (2, Span::from_micros(46_700)));
        let why = stood.invalid().expect("it stood still");
        assert_eq!(why, "the loop stood still for more than 20ms: 2 times, for 46.7ms at most");
    }
}
