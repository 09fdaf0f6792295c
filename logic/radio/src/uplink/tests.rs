//! A device and a base station, slot by slot.

use proptest::prelude::*;

use super::*;

/// A block in the air: its first slot, when its fate is known, and whether it is decoded.
#[derive(Clone, Copy, Debug)]
struct Flight {
    sent: u64,
    ends: u64,
    decoded: bool,
    report: Option<u32>,
}

/// One user in a cell that grants what is wanted, within limits.
struct Link {
    access: Access,
    backlog: u32,
    /// Slots and sizes of granted blocks.
    grants: Vec<(u64, u32)>,
    flights: Vec<Flight>,
    /// The slots of scheduling requests, and of blocks.
    requests: Vec<u64>,
    blocks: Vec<u64>,
    grant_to_pusch: u64,
    /// Whether decoded blocks are identified by slot, or by report only.
    by_slot: bool,
}

/// Fate of a block: its HARQ retransmissions, and whether it is decoded in the end.
type BlockOutcome = (u64, bool);

impl Link {
    fn new(config: AccessConfig, user: u32) -> Self {
        Self {
            access: Access::new(&config, user),
            backlog: 0,
            grants: Vec::new(),
            flights: Vec::new(),
            requests: Vec::new(),
            blocks: Vec::new(),
            grant_to_pusch: config.grant_to_pusch,
            by_slot: true,
        }
    }

    /// `room` is the largest grant in this slot; a block that is not `usable` is never sent.
    fn slot(&mut self, tti: u64, arrival: u32, room: u32, usable: bool, fate: BlockOutcome) {
        self.backlog += arrival;
        let next = self.access.next_slot(tti, self.backlog);
        if self.access.on_slot(tti, self.backlog) {
            assert_eq!(next, tti, "a request was not announced");
            self.requests.push(tti);
        }
        let access = &mut self.access;
        let by_slot = self.by_slot;
        self.flights.retain(|flight| {
            match (flight.ends == tti, flight.decoded) {
                (false, _) => return true,
                (true, true) if by_slot => access.on_block_decoded(flight.sent),
                (true, true) => access.on_decoded(tti, flight.report),
                (true, false) if by_slot => access.on_block_lost(flight.sent),
                (true, false) => access.on_lost(tti),
            }
            false
        });
        let wanted = self.access.wanted(tti).min(room);
        if wanted > 0 {
            self.access.on_grant(tti, wanted);
            self.grants.push((tti + self.grant_to_pusch, wanted));
        }
        let Some(at) = self.grants.iter().position(|grant| grant.0 == tti) else { return };
        // Without a delay between grant and PUSCH, a block decoded in this slot may be the reason.
        assert!(next == tti || self.grant_to_pusch == 0, "a block was not announced: {next}");
        let (_, bytes) = self.grants.remove(at);
        if !usable {
            return;
        }
        let due = self.access.is_report_due(tti, self.backlog.saturating_sub(bytes));
        let room = if due { bytes.saturating_sub(BSR_BYTES) } else { bytes };
        let carried = room.min(self.backlog);
        self.backlog -= carried;
        let aboard = self.access.on_pusch(tti, self.backlog, !due && room - carried >= BSR_BYTES);
        assert!(aboard || !due, "what was said to be due is aboard");
        self.blocks.push(tti);
        let report = aboard.then_some(self.backlog);
        let (retransmissions, decoded) = fate;
        self.flights.push(Flight { sent: tti, ends: tti + 3 + 8 * retransmissions, decoded, report });
    }
}

const FINE: BlockOutcome = (0, true);

#[test]
fn a_lone_small_packet_waits_over_ten_phases_and_8_ms_of_test_p_8() {
    let mut link = Link::new(AccessConfig::LTE, 3);
    let mut waits = Vec::new();
    for tti in 0..101 * 20 {
        let arrives = tti % 101 == 0;
        link.slot(tti, if arrives { 92 } else { 0 }, u32::MAX, true, FINE);
        if link.blocks.last() == Some(&tti) {
            assert_eq!(link.backlog, 0, "all of it");
            waits.push(tti % 101);
        }
    }
    // Each packet comes 1 ms later in the period; opportunities are at 3, 13, 23...
    let expected: Vec<u64> = (0..20).map(|n| (23 - n) % 10 + 8).collect();
    assert_eq!(waits, expected);
    assert_eq!(link.requests.len(), 20, "one request each");
}

#[test]
fn a_larger_packet_takes_a_second_round() {
    // Request at 0, grant at 4, block with a report at 8, decoded at 11; the grant for the rest is used at 15.
    let mut link = Link::new(AccessConfig::LTE, 0);
    for tti in 0..40 {
        link.slot(tti, if tti == 0 { 1400 } else { 0 }, u32::MAX, true, FINE);
    }
    assert_eq!((link.requests, link.blocks), (vec![0], vec![8, 15]));
}

#[test]
fn a_stream_needs_one_request_and_all_slots() {
    for config in [AccessConfig::LTE, AccessConfig::nr(2), AccessConfig::MMWAVE] {
        let mut link = Link::new(config, 0);
        link.backlog = 10_000;
        for tti in 0..1000 {
            link.slot(tti, 1000, 1500, true, FINE);
        }
        assert_eq!(link.requests, [0], "{config:?}");
        // With 1000 bytes per slot, the backlog is what arrives in a round trip, and the initial excess decreases.
        assert!(link.backlog < 20_000, "{}", link.backlog);
    }
}

#[test]
fn ideal_reports_need_no_request_and_a_stream_is_sent_in_every_slot() {
    let config = AccessConfig { ideal_reports: true, levels: ReportLevels::Exact, ..AccessConfig::LTE };
    let mut link = Link::new(config, 3);
    for tti in 0..200 {
        // A lone packet, which waits 4 ms for its grant and 4 ms for its slot; then 100 bytes in every slot.
        let arrival = if tti == 1 || (100..150).contains(&tti) { 100 } else { 0 };
        link.slot(tti, arrival, u32::MAX, true, FINE);
    }
    assert!(link.requests.is_empty());
    let lone: Vec<u64> = link.blocks.iter().copied().filter(|at| *at < 100).collect();
    assert_eq!(lone, [9]);
    let stream: Vec<u64> = link.blocks.iter().copied().filter(|at| *at >= 100).collect();
    assert_eq!(stream, (108..158).collect::<Vec<_>>(), "each packet's report has its grant");
    assert_eq!(link.backlog, 0);
    assert_eq!(link.access.next_slot(200, 0), u64::MAX, "nothing more is to come");
}

#[test]
fn with_ideal_reports_what_a_lost_block_carried_is_asked_for_again() {
    let config = AccessConfig { ideal_reports: true, ..AccessConfig::LTE };
    let mut link = Link::new(config, 0);
    for tti in 0..60 {
        link.slot(tti, if tti == 0 { 1000 } else { 0 }, u32::MAX, tti > 20, FINE);
    }
    assert_eq!(link.backlog, 0, "grants that were not heard are made again: {:?}", link.blocks);
}

#[test]
fn users_have_opportunities_of_their_own() {
    let config = AccessConfig::LTE;
    let at: Vec<u64> = (0..20).map(|user| Access::new(&config, user).next_slot(100, 1)).collect();
    let expected: Vec<u64> = (0..20).map(|user| 100 + user % 10).collect();
    assert_eq!(at, expected);
}

#[test]
fn a_request_that_is_not_answered_is_repeated_after_the_prohibit_time() {
    let mut link = Link::new(AccessConfig { sr_prohibit: 25, ..AccessConfig::LTE }, 0);
    link.backlog = 50;
    for tti in 0..100 {
        link.slot(tti, 0, 0, true, FINE);
    }
    assert_eq!(link.requests, [0, 30, 60, 90]);
    // Once it can be served, it is at once, since the base station remembers the request.
    link.slot(100, 0, 1000, true, FINE);
    assert_eq!(link.grants, [(104, 125)]);
}

#[test]
fn a_lost_report_does_not_stall() {
    // The answer to the request, with the report, is finally lost at 8 + 35; the base station grants again.
    let mut link = Link::new(AccessConfig::LTE, 0);
    for tti in 0..80 {
        let fate = if tti == 8 { (4, false) } else { FINE };
        link.slot(tti, if tti == 0 { 1400 } else { 0 }, u32::MAX, true, fate);
    }
    assert_eq!((link.backlog, &link.requests), (0, &vec![0]));
    assert_eq!(&link.blocks[..2], [8, 47]);

    // If the base station never learns of it, the device requests again, 320 ms after its grant or report.
    let mut access = Access::new(&AccessConfig::LTE, 0);
    assert!(access.on_slot(0, 1400));
    access.on_grant(4, 125);
    assert!(access.on_pusch(8, 1300, false));
    assert_eq!(access.next_slot(9, 1300), 330);
    assert!(!access.on_slot(320, 1300) && access.on_slot(330, 1300));
}

#[test]
fn reports_count_in_the_order_in_which_they_were_formed() {
    let config = AccessConfig { levels: ReportLevels::Exact, ..AccessConfig::LTE };
    let mut access = Access::new(&config, 0);
    access.on_slot(0, 5000);
    for tti in 4..8 {
        access.on_grant(tti, 100);
    }
    for (tti, left) in [(8, 4900), (9, 4800), (10, 4700)] {
        assert_eq!(access.on_pusch(tti, left, tti == 10), tti != 9, "{tti}");
    }
    // The report of slot 10 arrives first; it does not include one grant, for slot 11.
    access.on_block_decoded(10);
    assert_eq!(access.known_backlog(), 4600);
    // The report of slot 8 is older; it does not include three grants.
    access.on_block_decoded(8);
    assert_eq!(access.known_backlog(), 4600);
    access.on_block_lost(9);
    assert_eq!(access.known_backlog(), 4600, "known since");
    // The block of slot 11 is never sent.
    access.on_slot(12, 4700);
    assert_eq!(access.known_backlog(), 4700);
    assert_eq!(access.wanted(12), 4700 + BSR_BYTES);
}

#[test]
fn an_older_report_that_comes_late_counts_without_what_was_decoded_since() {
    let config = AccessConfig { levels: ReportLevels::Exact, bsr_period: 100, ..AccessConfig::LTE };
    let mut access = Access::new(&config, 0);
    access.on_slot(0, 5000);
    access.on_grant(4, 100);
    access.on_grant(5, 1000);
    access.on_grant(6, 10);
    assert!(access.on_pusch(8, 4900, false));
    assert!(!access.on_pusch(9, 3900, false));
    access.on_block_decoded(9);
    access.on_block_decoded(8);
    assert_eq!(access.known_backlog(), 4900 - 1000 - 10);
}

#[test]
fn restarting_forgets() {
    let mut access = Access::new(&AccessConfig::LTE, 4);
    access.on_slot(4, 5000);
    access.on_grant(8, 100);
    access.on_pusch(12, 4900, false);
    access.restart();
    access.on_block_decoded(12);
    access.on_decoded(13, Some(4900));
    access.on_lost(13);
    assert_eq!((access.wanted(20), access.next_slot(20, 0)), (0, u64::MAX));
    assert_eq!(access.next_slot(20, 4900), 24);
    assert!(access.on_slot(24, 4900));
}

fn config() -> impl Strategy<Value = AccessConfig> {
    let base = prop_oneof![Just(AccessConfig::LTE), Just(AccessConfig::nr(2)), Just(AccessConfig::MMWAVE)];
    (base, 0..30u64, 0..6u64, 0..6u64, 0..30u64, prop::bool::ANY, prop::bool::ANY).prop_map(
        |(base, sr_period, sr_to_grant, grant_to_pusch, bsr_period, exact, ideal_reports)| AccessConfig {
            sr_period,
            sr_to_grant,
            grant_to_pusch,
            bsr_period,
            levels: if exact { ReportLevels::Exact } else { base.levels },
            ideal_reports,
            ..base
        },
    )
}

/// Arrivals, room, whether a block is sent at all, and its fate.
fn slots() -> impl Strategy<Value = Vec<(u32, u32, bool, BlockOutcome)>> {
    let arrival = prop_oneof![4 => Just(0u32), 1 => 1..5000u32];
    let room = prop_oneof![1 => Just(0u32), 3 => 1..3000u32];
    let fate = (0..5u64, prop::bool::weighted(0.7));
    prop::collection::vec((arrival, room, prop::bool::weighted(0.9), fate), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever happened, everything is served once conditions are good, and then requests and grants stop.
    #[test]
    fn never_stalls(config in config(), user: u32, slots in slots(), by_slot: bool) {
        let mut link = Link::new(config, user);
        link.by_slot = by_slot;
        let (mut tti, mut arrived) = (0, 0u64);
        for (arrival, room, usable, fate) in slots {
            link.slot(tti, arrival, room, usable, fate);
            arrived += u64::from(arrival);
            prop_assert!(u64::from(link.access.known_backlog()) <= 2 * arrived + 10, "{tti}");
            tti += 1;
        }
        // The longest idle time is until the device requests again; after that 2000 bytes per slot.
        let until = tti + config.bsr_retransmission + 3 * 60 + u64::from(link.backlog) / 1000;
        while tti < until && link.backlog > 0 {
            link.slot(tti, 0, 2000, true, FINE);
            tti += 1;
        }
        prop_assert_eq!(link.backlog, 0);
        // Blocks under way end and excess estimates are granted; then all is quiet.
        for _ in 0..300 {
            link.slot(tti, 0, 100_000, true, FINE);
            tti += 1;
        }
        prop_assert_eq!(link.access.known_backlog(), 0);
        prop_assert_eq!(link.access.next_slot(tti, 0), u64::MAX);
    }

    /// Without losses and outages the retransmission timer is never needed.
    #[test]
    fn is_served_in_a_few_rounds_if_all_goes_well(
        config in config(), user: u32, arrivals in prop::collection::vec(prop_oneof![3 => Just(0u32), 1 => 1..3000u32], 1..300)
    ) {
        let mut link = Link::new(AccessConfig { bsr_retransmission: u64::MAX, ..config }, user);
        let mut tti = 0;
        for arrival in arrivals {
            link.slot(tti, arrival, 4000, true, FINE);
            tti += 1;
        }
        let until = tti + 150 + u64::from(link.backlog) / 2000;
        while tti < until {
            link.slot(tti, 0, 4000, true, FINE);
            tti += 1;
        }
        prop_assert_eq!(link.backlog, 0);
    }

    /// Calls in any order do not overflow, and what is wanted stays within bounds.
    #[test]
    fn calls_without_sense_do_no_harm(
        config in config(), calls in prop::collection::vec((0..9u8, any::<u32>(), 0..10u64, any::<bool>()), 0..600)
    ) {
        let mut access = Access::new(&config, 0);
        let mut tti = 0u64;
        for (call, bytes, step, flag) in calls {
            tti += step;
            match call {
                0 => drop(access.on_slot(tti, bytes)),
                1 | 2 => access.on_grant(tti, bytes),
                3 => access.on_grant_for(tti, bytes, tti + step * 3),
                4 => drop(access.on_pusch(tti, bytes, flag)),
                5 => access.on_block_decoded(tti.saturating_sub(step)),
                6 => access.on_block_lost(tti.saturating_sub(step)),
                7 => access.on_decoded(tti, flag.then_some(bytes)),
                _ => access.on_lost(tti),
            }
            prop_assert!(access.next_slot(tti, bytes) >= tti);
            access.wanted(tti);
        }
        prop_assert!(access.next_slot(u64::MAX, 1) >= tti);
        access.restart();
        prop_assert_eq!(access.wanted(u64::MAX), 0);
    }
}
