//! The worked examples of the specification, and the handling of the feed.

use ranpace_phy::LteBandwidth;
use ranpace_rnis::{CellInfo, Technology};

use super::*;

pub(super) const MSS: Bytes = Bytes::new(1_440);
pub(super) const RTT: Span = Span::from_millis(20);

pub(super) fn at(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

/// 25 PRBs, own 20, unused 5, MCS 28: C = 18 336 bits per ms.
pub(super) fn report(now: Time) -> RadioHint {
    let hint = RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz5), now);
    RadioHint { granted: 20.0, unused: 5.0, mcs: 28, tbs_bits: Some(14_688), active_users: 1, ..hint }
}

/// A user whose flows receive scripted data, with a report each ms.
pub(super) struct Rig {
    pub(super) rapid: Rapid<Vec<FlowRecord>>,
    pub(super) now: Time,
    pub(super) reports: bool,
}

impl Observer for Vec<FlowRecord> {
    fn on_period(&mut self, record: &FlowRecord) {
        self.push(*record);
    }
}

impl Rig {
    pub(super) fn new(settings: Settings) -> Self {
        let mut rig = Self { rapid: Rapid::observed(settings, Vec::new()), now: Time::ZERO, reports: true };
        rig.report();
        rig
    }

    pub(super) fn report(&mut self) {
        self.rapid.on_radio(self.now, 1, &report(self.now));
    }

    pub(super) fn open(&mut self, rtt: Span) -> FlowId {
        self.rapid.open(self.now, 1, rtt, MSS)
    }

    /// Advances to `until`; each ms each flow gets its rate in bytes/s, limited to its window per RTT.
    pub(super) fn play(&mut self, until: Time, flows: &[(FlowId, f64)]) {
        let ms = Span::from_millis(1);
        while self.now + ms <= until {
            self.now += ms;
            while let Some(due) = self.rapid.next_deadline().filter(|due| *due <= self.now) {
                self.rapid.on_deadline(due);
            }
            if self.reports {
                self.report();
            }
            for &(flow, rate) in flows {
                let Some(known) = self.rapid.flow(flow) else { continue };
                let rate = rate.min(known.window() / known.wan.smoothed.as_secs_f64());
                // Whole bytes; the cumulative count keeps the remainder.
                let up_to = |ms: u64| (rate * ms as f64 / 1e3 + 1e-6) as u64;
                let bytes = up_to(self.now.as_millis()) - up_to(self.now.as_millis() - 1);
                if bytes > 0 {
                    self.rapid.on_wan_data(self.now, flow, Bytes::new(bytes));
                }
            }
        }
    }

    pub(super) fn window(&self, flow: FlowId) -> f64 {
        self.rapid.flow(flow).unwrap().window()
    }

    pub(super) fn categories(&self, flow: FlowId) -> Vec<Category> {
        let periods = self.rapid.observer().iter().filter(|record| record.flow == flow);
        periods.map(|record| record.category).collect()
    }

    /// The first period of test R-1: `a` gets 1440, 2880, 4000, 4000, 4000 bytes, the others fill their windows.
    fn first_period(settings: Settings) -> (Self, [FlowId; 3]) {
        let mut rig = Self::new(settings);
        let flows @ [a, b, c] = [RTT; 3].map(|rtt| rig.open(rtt));
        for flow in flows {
            rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(30));
        }
        for (round, bytes) in [1_440, 2_880, 4_000, 4_000, 4_000].into_iter().enumerate() {
            let middle = at(1_500 + 10_000 + 20_000 * round as u64);
            rig.play_reports(middle);
            rig.rapid.on_wan_data(middle, a, Bytes::new(bytes));
            for flow in [b, c] {
                rig.rapid.on_wan_data(middle, flow, Bytes::new(15_280));
            }
        }
        rig.play_reports(at(101_500));
        (rig, flows)
    }

    /// Reports and deadlines up to a time.
    pub(super) fn play_reports(&mut self, until: Time) {
        self.play(until, &[]);
        while let Some(due) = self.rapid.next_deadline().filter(|due| *due <= until) {
            self.rapid.on_deadline(due);
        }
        self.now = until;
    }
}

/// The specification's figures are rounded to a tenth, some less.
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.06, "{found}, expected {expected}");
}

#[test]
fn the_first_period_is_that_of_test_r_1() {
    let (rig, [a, b, c]) = Rig::first_period(Settings::THESIS);
    let user = rig.rapid.user(rig.now, 1).unwrap();
    assert_eq!((user.granted, user.unused, user.expected, user.tbs_bits), (20.0, 5.0, 25.0, 18_336));
    assert_eq!(user.capacity, Rate::from_bits_per_s(18_336_000));
    assert_eq!((user.flows, user.slow, user.mode), (3, 1, Mode::Normal));
    near(user.released / 8.0, 564_127.0);
    let flow = |id| rig.rapid.flow(id).unwrap();
    near(flow(a).rate, 200_000.0);
    near(flow(a).demand, 199_873.047);
    near(flow(a).expected, 764_000.0);
    near(flow(a).share, 15_280.0);
    near(flow(a).window(), 3_997.461);
    for fast in [b, c] {
        assert_eq!(flow(fast).category, Category::Fast);
        near(flow(fast).window(), 20_921.270);
        near(flow(fast).allocation(&Settings::THESIS), 1_046_063.5);
        near(flow(fast).ran_bdp(rig.rapid.settings()), 31_381.9);
    }
    near([a, b, c].iter().map(|id| flow(*id).window()).sum(), 45_840.0);
    near(flow(a).ran_bdp(rig.rapid.settings()), 5_996.2);
    assert_eq!(rig.rapid.ran_window(a), Some(MSS * 10));
    assert_eq!(rig.rapid.ran_window(b), Some(Bytes::new(31_381)));
    // Three periods of five RTTs and the slack.
    let ends: Vec<Time> = rig.rapid.observer().iter().map(|record| record.time).collect();
    assert_eq!(ends, [at(101_500); 3]);
}

#[test]
fn demand_is_weighted_as_in_test_r_1() {
    let mut rig = Rig::new(Settings::THESIS);
    let a = rig.open(RTT);
    rig.open(RTT);
    rig.open(RTT);
    let mut found = Vec::new();
    for (round, bytes) in [1_440, 2_880, 4_000, 4_000, 4_000].into_iter().enumerate() {
        rig.play_reports(at(5_000 + 20_000 * round as u64));
        rig.rapid.on_wan_data(rig.now, a, Bytes::new(bytes));
        rig.play_reports(at(1_500 + 20_000 * (round as u64 + 1)));
        found.push(rig.rapid.flow(a).unwrap().demand);
    }
    let expected = [72_000.0, 135_000.0, 191_875.0, 198_984.375, 199_873.047];
    for (found, expected) in found.into_iter().zip(expected) {
        near(found, expected);
    }
}

#[test]
fn released_rate_is_kept_in_the_second_slow_period() {
    for (accounting, fast, sum) in [
        (Accounting::Rate, 21_420.0, 45_840.0),
        (Accounting::ShareBytes, 21_420.0, 45_840.0),
        (Accounting::Literal, 15_778.73, 34_557.46),
    ] {
        let (mut rig, [a, b, c]) = Rig::first_period(Settings { accounting, ..Settings::THESIS });
        // 150 000 B/s for three RTTs (K of 3 997 B); the others fill their windows.
        for round in 0..3 {
            rig.play_reports(at(103_000 + 20_000 * round + 10_000));
            rig.rapid.on_wan_data(rig.now, a, Bytes::new(3_000));
        }
        rig.play_reports(at(163_000));
        assert_eq!(rig.categories(a), [Category::Slow; 2], "{accounting:?}");
        near(rig.window(a), 3_000.0);
        near(rig.window(b), fast);
        near(rig.window(a) + rig.window(b) + rig.window(c), sum);
    }
}

#[test]
fn rates_sum_up_with_unequal_rtts_only_where_rates_are_counted() {
    for (accounting, released, b_rate, c_rate, total) in [
        (Accounting::Rate, 0.0, 1_046_063.5, 1_046_063.5, 1.0),
        (Accounting::Literal, 11_282.539, 1_046_063.5, 834_515.9, 0.908),
    ] {
        let mut rig = Rig::new(Settings { accounting, ..Settings::THESIS });
        let [a, b, c] = [20, 20, 80].map(|ms| rig.open(Span::from_millis(ms)));
        for (id, category, limit) in
            [(a, Category::Slow, Some(3_997.461)), (b, Category::Fast, None), (c, Category::Fast, None)]
        {
            let flow = rig.rapid.flow_mut(id).unwrap();
            (flow.category, flow.limit, flow.released) = (category, limit, released);
        }
        rig.rapid.stale(1);
        rig.rapid.share_out(rig.now);
        let rate = |id| rig.rapid.flow(id).unwrap().allocation(rig.rapid.settings());
        near(rate(b) / 1e3, b_rate / 1e3);
        near(rate(c) / 1e3, c_rate / 1e3);
        assert!(((rate(a) + rate(b) + rate(c)) / 2_292_000.0 - total).abs() < 5e-4, "{accounting:?}");
    }
}

#[test]
fn a_flow_of_constant_rate_alternates_as_published_and_stays_slow_in_the_field() {
    use Category::{Fast, Slow};
    let play = |settings| {
        let (mut rig, flows @ [a, b, c]) = Rig::first_period(settings);
        let first = rig.window(a);
        let mut rates = [(a, 200_000.0), (b, 1e9), (c, 1e9)];
        rig.now = at(101_000); // on the grid of ms again
        for ms in 102..1_500 {
            rig.play(at(1_000 * ms), &rates);
            rates[0].1 = 200_000.0;
        }
        (rig.categories(a), first, rig.window(a), flows.len())
    };
    let (categories, first, ..) = play(Settings::THESIS);
    near(first, 3_997.461);
    assert!(categories.len() > 10, "{categories:?}");
    for (period, category) in categories.into_iter().enumerate() {
        assert_eq!(category, if period % 2 == 0 { Slow } else { Fast }, "period {period}");
    }
    let (categories, first, then, _) = play(Settings::FIELD);
    near(first, 5_996.2);
    near(then, 6_000.0);
    assert!(categories.len() > 10 && categories.iter().all(|category| *category == Slow), "{categories:?}");
}

#[test]
fn the_edges_of_test_r_4() {
    // All are slow: no flow to give anything to.
    let mut rig = Rig::new(Settings::THESIS);
    let flows = [RTT; 3].map(|rtt| rig.open(rtt));
    rig.play(at(150_000), &flows.map(|flow| (flow, 50_000.0)));
    let user = rig.rapid.user(rig.now, 1).unwrap();
    assert_eq!((user.flows, user.slow), (3, 3));
    for flow in flows {
        // A second period at the floor (K = 2) is not filled either.
        assert_eq!(rig.categories(flow), [Category::Slow; 2]);
        assert_eq!(rig.window(flow), 2_880.0, "the floor: the demand is 1 000 B");
    }
    // Alone: all of it.
    let mut rig = Rig::new(Settings::THESIS);
    let flow = rig.open(RTT);
    near(rig.window(flow), 45_840.0);
    // 1 ms to the server: a share below a segment.
    let mut rig = Rig::new(Settings::THESIS);
    let flows = [1; 4].map(|ms| rig.open(Span::from_millis(ms)));
    near(rig.rapid.flow(flows[0]).unwrap().share, 573.0);
    assert_eq!(rig.window(flows[0]), 2_880.0);
}

#[test]
fn without_capacity_windows_are_minimal_and_no_flow_is_classified() {
    let (mut rig, [a, b, _]) = Rig::first_period(Settings::THESIS);
    rig.reports = false;
    rig.rapid.observer_mut().clear();
    for ms in 102..400 {
        rig.now = at(1_000 * ms);
        let blocked = RadioHint { granted: 0.0, unused: 0.0, tbs_bits: None, ..report(rig.now) };
        rig.rapid.on_radio(rig.now, 1, &blocked);
        rig.rapid.on_deadline(rig.now);
    }
    assert_eq!((rig.window(a), rig.window(b)), (2_880.0, 2_880.0));
    assert!(!rig.categories(a).is_empty());
    assert!(rig.categories(a).iter().all(|category| *category == Category::Slow));
    assert!(rig.categories(b).iter().all(|category| *category == Category::Fast));
    rig.now = at(400_000);
    rig.report();
    near(rig.window(a), 3_997.461);
    near(rig.window(b), 20_921.270);
}

#[test]
fn a_flow_that_comes_or_goes_changes_all_shares_at_once() {
    let mut rig = Rig::new(Settings::THESIS);
    let a = rig.open(RTT);
    near(rig.window(a), 45_840.0);
    let b = rig.open(Span::from_millis(40));
    near(rig.window(a), 22_920.0);
    near(rig.window(b), 45_840.0);
    rig.rapid.close(rig.now, b);
    near(rig.window(a), 45_840.0);
    assert_eq!(rig.rapid.window(b), None);
    // Its slot is reused; the old id is invalid.
    let c = rig.open(RTT);
    assert_eq!(c.index(), b.index());
    rig.rapid.close(rig.now, b);
    rig.rapid.on_wan_data(rig.now, b, MSS);
    rig.rapid.on_backlog(rig.now, b, MSS);
    assert_eq!((rig.rapid.open_flows(), rig.rapid.backlog()), (2, Bytes::ZERO));
}

#[test]
fn a_smaller_rtt_to_the_server_is_a_smaller_window() {
    let mut rig = Rig::new(Settings::THESIS);
    let a = rig.open(RTT);
    rig.rapid.on_wan_rtt(rig.now, a, Span::from_millis(10));
    near(rig.window(a), 22_920.0);
    assert_eq!(rig.rapid.look(rig.now, a).unwrap().wan_rtt, Span::from_micros(18_750));
    rig.rapid.on_wan_rtt(rig.now, a, Span::from_millis(30));
    near(rig.window(a), 22_920.0);
}

#[test]
fn silent_flows_are_not_counted_and_begin_anew() {
    let mut rig = Rig::new(Settings::THESIS);
    let [a, b] = [RTT; 2].map(|rtt| rig.open(rtt));
    rig.play(at(1_100_000), &[(a, 1e9)]);
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().flows, 1);
    near(rig.window(a), 45_840.0);
    assert_eq!(rig.window(b), 14_400.0, "10 MSS");
    assert!(!rig.rapid.look(rig.now, b).unwrap().active);
    rig.rapid.on_wan_data(rig.now, b, MSS);
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().flows, 2);
    near(rig.window(a), 22_920.0);
    near(rig.window(b), 22_920.0);
    // A backlog in the proxy keeps a flow active.
    rig.rapid.on_backlog(rig.now, b, MSS);
    rig.play(at(3_000_000), &[(a, 1e9)]);
    assert!(rig.rapid.look(rig.now, b).unwrap().active);
    rig.rapid.on_backlog(rig.now, b, Bytes::ZERO);
    rig.play(at(3_900_000), &[(a, 1e9)]);
    assert!(rig.rapid.look(rig.now, b).unwrap().active, "for a second after that");
    rig.play(at(4_100_000), &[(a, 1e9)]);
    assert!(!rig.rapid.look(rig.now, b).unwrap().active);
}

#[test]
fn a_window_that_grows_makes_the_period_longer() {
    let mut rig = Rig::new(Settings::THESIS);
    let a = rig.open(RTT);
    let others = [RTT; 9].map(|rtt| rig.open(rtt));
    // S = 4 584 B: K = 3. The others close after one RTT, which makes the window ten times as large: 4 RTTs more.
    rig.play_reports(at(21_500));
    for other in others {
        rig.rapid.close(rig.now, other);
    }
    near(rig.window(a), 45_840.0);
    rig.play_reports(at(300_000));
    let ends: Vec<Time> = rig.rapid.observer().iter().map(|record| record.time).collect();
    assert_eq!(ends[0], at(1_500 + 20_000 * 7));
}

#[test]
fn late_feed_holds_windows_and_lost_feed_passes_through() {
    let (mut rig, flows @ [a, ..]) = Rig::first_period(Settings::THESIS);
    // The newest report is 500 us old. A little before it there was less.
    let less = RadioHint { granted: 10.0, ..report(rig.now) };
    rig.now = at(102_000);
    rig.rapid.on_radio(rig.now, 1, &RadioHint { measured_at: rig.now, ..less });
    rig.now = at(103_000);
    rig.report();
    rig.reports = false;
    let mode = |rig: &Rig| rig.rapid.user(rig.now, 1).unwrap().mode;
    rig.play_reports(at(203_000));
    assert_eq!(mode(&rig), Mode::Normal, "100 ms");
    while rig.rapid.next_change().is_some() {}
    rig.play_reports(at(203_001));
    assert_eq!(mode(&rig), Mode::Hold);
    assert!(rig.rapid.next_change().is_some());
    // 15 PRBs at MCS 28: 11 064 bits.
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().capacity, Rate::from_bits_per_s(11_064_000));
    assert!(rig.rapid.window(a).is_some() && rig.rapid.allocation(a).is_some());
    rig.rapid.observer_mut().clear();
    rig.play_reports(at(1_000_000));
    assert!(rig.categories(a).iter().all(|category| *category == Category::Slow), "it is not judged");
    rig.play_reports(at(1_103_000));
    assert_eq!(mode(&rig), Mode::Hold);
    rig.play_reports(at(1_103_001));
    assert_eq!(mode(&rig), Mode::Open);
    assert_eq!((rig.rapid.window(a), rig.rapid.allocation(a), rig.rapid.ran_window(a)), (None, None, None));
    for flow in flows {
        rig.rapid.on_wan_data(rig.now, flow, MSS); // they were idle
    }
    // Back after ten.
    for ms in 1_200..1_209 {
        rig.now = at(1_000 * ms);
        rig.report();
        assert_eq!(mode(&rig), Mode::Open);
    }
    rig.now = at(1_209_000);
    rig.report();
    assert_eq!(mode(&rig), Mode::Normal);
    near(rig.window(a), 15_280.0);
    assert_eq!(rig.rapid.look(rig.now, a).unwrap().category, Category::Init);
}

#[test]
fn a_feed_that_is_always_late_leaves_equal_shares() {
    let (mut rig, [a, b, _]) = Rig::first_period(Settings::THESIS);
    rig.reports = false;
    for ms in 102..1_500 {
        rig.now = at(1_000 * ms);
        rig.rapid.on_deadline(rig.now);
        // 200 ms old.
        rig.rapid.on_radio(rig.now, 1, &report(at(1_000 * ms - 200_000.min(1_000 * ms))));
        if ms > 310 {
            for flow in [a, b] {
                rig.rapid.on_wan_data(rig.now, flow, Bytes::new(700));
            }
        }
        let user = rig.rapid.user(rig.now, 1).unwrap();
        if ms > 310 {
            assert_eq!(user.mode, Mode::Hold);
        }
        // A second after the hold began, and its period.
        let category = rig.rapid.look(rig.now, a).unwrap().category;
        match ms {
            ..1_200 => assert_eq!(category, Category::Slow, "{ms}"),
            1_400.. => assert_eq!((category, user.slow), (Category::Init, 0), "{ms}"),
            _ => {}
        }
    }
}

#[test]
fn the_smallest_rtt_to_the_user_is_smoothed_bounded_or_plain() {
    for (ran_rttmin, ms) in [(RanRttMin::Smoothed, 44), (RanRttMin::Bounded, 30), (RanRttMin::Plain, 20)] {
        let mut rig = Rig::new(Settings { ran_rttmin, ..Settings::THESIS });
        let flow = rig.open(RTT);
        assert_eq!(rig.rapid.look(rig.now, flow).unwrap().ran_rtt_min, None);
        rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(20));
        // 44 ms for twenty and more periods, without a smaller one.
        for ms in 0..8_000 {
            rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(44));
            rig.play(at(1_000 * ms), &[(flow, 1e9)]);
        }
        let found = rig.rapid.look(rig.now, flow).unwrap().ran_rtt_min.unwrap();
        assert!(found.abs_diff(Span::from_millis(ms)) < Span::from_millis(1), "{ran_rttmin:?}: {found}");
    }
}

#[test]
fn reports_with_gaps_do_not_bring_a_lost_feed_back() {
    let (mut rig, _) = Rig::first_period(Settings::THESIS);
    rig.reports = false;
    rig.play_reports(at(2_000_000));
    for report in 0..30 {
        rig.now = at(2_000_000 + 150_000 * report);
        rig.report();
        rig.play_reports(at(2_000_000 + 150_000 * report + 1_000));
        assert_eq!(rig.rapid.user(rig.now, 1).unwrap().mode, Mode::Open);
    }
}

#[test]
fn user_without_reports_is_unbounded() {
    let mut rapid = Rapid::new(Settings::THESIS);
    let flow = rapid.open(at(0), 1, RTT, MSS);
    assert_eq!((rapid.window(flow), rapid.allocation(flow)), (None, None));
    while rapid.next_change().is_some() {}
    rapid.on_radio(at(5_000), 1, &report(at(5_000)));
    assert_eq!(rapid.next_change(), Some(flow));
    assert_eq!(rapid.window(flow), Some(Bytes::new(45_840)));
}

#[test]
fn stale_repeated_and_future_reports_are_ignored() {
    let mut rapid = Rapid::new(Settings::THESIS);
    let capacity = |rapid: &Rapid, now| rapid.user(now, 1).unwrap().capacity.bits_per_s();
    // A report from the future counts as of now, so that the next one is newer.
    rapid.on_radio(at(1_000), 1, &report(Time::from_secs(1_000)));
    assert_eq!(capacity(&rapid, at(1_000)), 18_336_000);
    rapid.on_radio(at(2_000), 1, &RadioHint { granted: 10.0, ..report(at(2_000)) });
    assert_eq!(capacity(&rapid, at(2_000)), 11_064_000);
    for old in [0, 1_000, 2_000] {
        rapid.on_radio(at(3_000), 1, &report(at(old)));
        assert_eq!(capacity(&rapid, at(3_000)), 11_064_000);
    }
}

#[test]
fn handover_discards_state_of_the_old_cell() {
    let mut rig = Rig::new(Settings::THESIS);
    let flow = rig.open(RTT);
    rig.now = at(1_000);
    rig.rapid.on_radio(rig.now, 1, &RadioHint { handover: true, ..report(rig.now) });
    assert_eq!(rig.window(flow), 2_880.0);
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().mode, Mode::Normal);
    rig.now = at(2_000);
    let info = CellInfo::lte(1, LteBandwidth::Mhz10);
    // Nothing was granted there yet: the CQI decides.
    let there = RadioHint {
        granted: 0.0,
        unused: 50.0,
        tbs_bits: None,
        mcs: 0,
        cqi: Some(15),
        ..RadioHint { cell: 50, info, ..report(rig.now) }
    };
    rig.rapid.on_radio(rig.now, 1, &there);
    assert_eq!(rig.rapid.user(rig.now, 1).unwrap().capacity, Rate::from_bits_per_s(36_696_000));
}

#[test]
fn cqi_gives_the_rate_after_a_pause() {
    let mut rapid = Rapid::new(Settings::THESIS);
    let silent = RadioHint { granted: 0.0, unused: 25.0, tbs_bits: None, ..report(at(0)) };
    let mcs = |rapid: &Rapid, now| rapid.user(now, 1).unwrap().mcs;
    for (ms, hint, expected) in [
        (0, RadioHint { cqi: Some(15), ..report(at(0)) }, 28),
        // It moved away, and has requested nothing since.
        (50, RadioHint { cqi: Some(5), ..silent }, 28),
        (150, RadioHint { cqi: Some(5), ..silent }, 8),
        (160, RadioHint { cqi: None, ..silent }, 28),
        (170, RadioHint { mcs: 31, ..report(at(0)) }, 28),
    ] {
        rapid.on_radio(at(1_000 * ms), 1, &RadioHint { measured_at: at(1_000 * ms), ..hint });
        assert_eq!(mcs(&rapid, at(1_000 * ms)), expected, "{ms} ms");
    }
    rapid.on_radio(at(180_000), 1, &RadioHint { cqi: Some(0), ..report(at(180_000)) });
    assert_eq!(rapid.user(at(180_000), 1).unwrap().capacity, Rate::ZERO);
}

#[test]
fn estimators_differ_where_others_are_busy() {
    // 25 PRBs; it has 2, others 20 (three users in all), 3 are free.
    for (estimator, expected) in [
        (Estimator::AllocPlusUnused, 5.0),
        (Estimator::FairShare, 34.0 / 3.0),
        (Estimator::Larger, 34.0 / 3.0),
    ] {
        let mut rapid = Rapid::new(Settings { estimator, ..Settings::THESIS });
        let hint = RadioHint { granted: 2.0, unused: 3.0, active_users: 3, ..report(at(0)) };
        rapid.on_radio(at(0), 1, &hint);
        near(rapid.user(at(0), 1).unwrap().expected, expected);
        // It has 20, the one other 5: half of the cell would be less.
        let hint = RadioHint { granted: 20.0, unused: 0.0, active_users: 2, ..report(at(1_000)) };
        rapid.on_radio(at(1_000), 1, &hint);
        let expected = if estimator == Estimator::FairShare { 12.5 } else { 20.0 };
        near(rapid.user(at(1_000), 1).unwrap().expected, expected);
    }
}

#[test]
fn per_tti_reports_are_averaged_on_request() {
    let mut rapid = Rapid::new(Settings { average: 8, ..Settings::THESIS });
    // All of the cell in every eighth TTI.
    for ms in 0..40 {
        let granted = if ms % 8 == 0 { 25.0 } else { 0.0 };
        rapid.on_radio(at(1_000 * ms), 1, &RadioHint { granted, unused: 0.0, ..report(at(1_000 * ms)) });
        if ms >= 8 {
            near(rapid.user(at(1_000 * ms), 1).unwrap().expected, 25.0 / 8.0);
        }
    }
}

#[test]
fn proxy_backlog_closes_server_windows() {
    let mut rig = Rig::new(Settings::THESIS);
    let [a, b] = [RTT; 2].map(|rtt| rig.open(rtt));
    while rig.rapid.next_change().is_some() {}
    let kib = |count: u64| Bytes::new(count << 10);
    for (waiting, window, told) in
        [(20, 22_920, false), (50, (64 - 50) << 10, true), (64, 0, true), (100, 0, true), (10, 22_920, true)]
    {
        rig.rapid.on_backlog(rig.now, a, kib(waiting));
        assert_eq!(rig.rapid.window(a), Some(Bytes::new(window)), "{waiting} KiB");
        assert_eq!(rig.rapid.next_change(), told.then_some(a), "{waiting} KiB");
    }
    assert_eq!(rig.rapid.window(b), Some(Bytes::new(22_920)));
    assert_eq!(rig.rapid.allocation(a), rig.rapid.allocation(b), "what waits has to be sent");
    // At its cap all of a user's windows close; they reopen at three quarters of it.
    for (waiting, open) in [(4_095, true), (4_096, false), (3_500, false), (3_072, true)] {
        rig.rapid.on_backlog(rig.now, a, kib(waiting));
        assert_eq!(rig.rapid.window(b).unwrap() > Bytes::ZERO, open, "{waiting} KiB");
    }
    rig.rapid.close(rig.now, a);
    assert_eq!(rig.rapid.backlog(), Bytes::ZERO);
}

#[test]
fn flow_limited_by_the_user_side_is_not_slow() {
    for settings in [Settings::THESIS, Settings::FIELD] {
        let mut rig = Rig::new(settings);
        let flow = rig.open(RTT);
        // The backlog leaves 20 000 of the 45 840 B.
        let cap = |rig: &Rig| {
            let known = rig.rapid.flow(flow).unwrap();
            match settings.profile {
                Profile::Thesis => known.cap(&settings),
                Profile::Field => Bytes::new(known.wanted(&settings) as u64),
            }
        };
        let waits = cap(&rig) - Bytes::new(20_000);
        rig.rapid.on_backlog(rig.now, flow, waits);
        assert_eq!(rig.rapid.window(flow), Some(Bytes::new(20_000)));
        rig.play(at(400_000), &[(flow, 1e6)]); // 20 000 B an RTT
        assert_eq!(rig.categories(flow)[0], Category::Fast);
        // Closed for whole RTTs: nothing can arrive, and that says nothing about the server.
        let waits = cap(&rig) + Bytes::new(1);
        rig.rapid.on_backlog(rig.now, flow, waits);
        assert_eq!(rig.rapid.window(flow), Some(Bytes::ZERO));
        rig.play(at(1_200_000), &[]);
        assert!(rig.categories(flow).iter().all(|category| *category == Category::Fast));
    }
}

#[test]
fn without_information_backlog_is_bounded_by_arrivals() {
    let mut rapid = Rapid::new(Settings::THESIS);
    let flow = rapid.open(at(0), 1, Span::from_millis(100), MSS);
    assert_eq!((rapid.window(flow), rapid.room(flow)), (None, Bytes::new(64 << 10)));
    rapid.on_backlog(at(0), flow, Bytes::new(60 << 10));
    assert_eq!(rapid.room(flow), Bytes::new(4 << 10));
    // 1 MB/s: two BDPs of 100 kB.
    for ms in 0..500 {
        rapid.on_wan_data(at(1_000 * ms), flow, Bytes::new(1_000));
        rapid.on_deadline(at(1_000 * ms));
    }
    rapid.on_backlog(at(500_000), flow, Bytes::new(90_000));
    assert!(rapid.room(flow).get().abs_diff(110_000) < 3_000, "{}", rapid.room(flow));
    // The rate decays slowly in a pause, and the minimum remains.
    for ms in 500..900 {
        rapid.on_deadline(at(1_000 * ms));
    }
    assert!(rapid.room(flow) > Bytes::new(10_000), "{}", rapid.room(flow));
    rapid.on_backlog(at(900_000), flow, Bytes::new(300_000));
    assert_eq!(rapid.room(flow), Bytes::ZERO);
    rapid.close(at(900_000), flow);
    assert_eq!(rapid.room(flow), Bytes::ZERO);
}

#[test]
fn new_flows_bypass_the_proxy_when_it_is_full() {
    let caps = Caps { total: Bytes::new(100_000), flows: 2, ..Settings::THESIS.caps };
    let mut rig = Rig::new(Settings { caps, ..Settings::THESIS });
    let a = rig.open(RTT);
    rig.rapid.on_backlog(rig.now, a, Bytes::new(100_000));
    assert!(!rig.rapid.admits());
    rig.rapid.on_backlog(rig.now, a, Bytes::new(99_999));
    assert!(rig.rapid.admits());
    rig.open(RTT);
    assert!(!rig.rapid.admits());
}

#[test]
fn impossible_settings_are_refused_by_name() {
    assert_eq!(Settings::THESIS.check(), Ok(()));
    assert_eq!(Settings::of(Profile::Field).check(), Ok(()));
    for (settings, name) in [
        (Settings { efficiency: f64::NAN, ..Settings::THESIS }, "efficiency"),
        (Settings { theta: 1.5, ..Settings::THESIS }, "theta"),
        (Settings { average: 17, ..Settings::THESIS }, "average"),
        (Settings { floor: 0, ..Settings::THESIS }, "floor"),
        (Settings { period: Span::ZERO, ..Settings::THESIS }, "period"),
    ] {
        assert_eq!(settings.check().unwrap_err().name, name);
    }
}

/// A server with enough data, as the proxy sees it: in the middle of each RTT it delivers the whole segments of the window, except
/// the last one, which waits for a delayed acknowledgement.
fn play_segments(rig: &mut Rig, flow: FlowId, rounds: u64) {
    for _ in 0..rounds {
        let begin = rig.now;
        rig.play_reports(begin + RTT / 2);
        let segments = (rig.window(flow) / MSS.as_f64()) as u64;
        rig.rapid.on_wan_data(rig.now, flow, MSS * segments.saturating_sub(1).max(1));
        rig.play_reports(begin + RTT);
    }
}

#[test]
fn a_flow_at_its_floor_gets_its_share_again_in_the_field() {
    let mut rig = Rig::new(Settings::FIELD);
    let [a, b] = [RTT; 2].map(|_| rig.open(RTT));
    // Hardly anything arrives in the RTT at the end of a period.
    rig.play(at(400_000), &[(a, 20_000.0), (b, 1e9)]);
    assert_eq!(rig.window(a), 2_880.0, "two segments: the floor");
    assert_eq!(*rig.categories(a).last().unwrap(), Category::Slow);
    // Windows of 2, 2, 4, 8 and 11 segments (S) have periods of 2, 2, 3, 4 and 5 RTTs, and one is under way.
    play_segments(&mut rig, a, 24);
    let flow = rig.rapid.flow(a).unwrap();
    assert_eq!((flow.category, flow.limit), (Category::Fast, None));
    near(flow.share, 22_920.0);
    assert!(flow.window() >= flow.share);
}

#[test]
fn a_flow_of_a_few_segments_leaves_its_share_to_others_in_the_field() {
    // 1, 2, 3, 5 and 10 segments an RTT, each at its own time.
    for segments in [1, 2, 3, 5, 10] {
        let mut rig =
            Rig::new(Settings { estimator: Estimator::AllocPlusUnused, guard: false, ..Settings::FIELD });
        let [a, b] = [RTT; 2].map(|_| rig.open(RTT));
        let demand = segments as f64 * 1_440.0 / 0.02;
        rig.play(at(500_000), &[(a, demand), (b, 1e9)]);
        for ms in 500..1_500 {
            rig.play(at(1_000 * ms), &[(a, demand), (b, 1e9)]);
            let (own, all) = (rig.window(a), 45_840.0);
            assert!(own <= 3.0 * 1.01 * (segments.max(2) * 1_440) as f64, "{segments}: {own}");
            near(own + rig.window(b), all);
        }
    }
}

#[test]
fn field_profile_ignores_slowness_caused_by_a_closed_window() {
    for (profile, expected) in [(Profile::Thesis, Category::Slow), (Profile::Field, Category::Fast)] {
        let settings = Settings { estimator: Estimator::AllocPlusUnused, ..Settings::of(profile) };
        // Its own buffer, or its user's, is full for an RTT before the end of a period.
        for by_user in [false, true] {
            let caps = Caps { user: Bytes::new(if by_user { 10_000 } else { 1 << 30 }), ..settings.caps };
            let mut rig = Rig::new(Settings { caps, ..settings });
            let [a, b] = [RTT; 2].map(|_| rig.open(RTT));
            rig.play(at(300_000), &[(a, 1e9), (b, 1e9)]);
            assert_eq!(*rig.categories(a).last().unwrap(), Category::Fast);
            let before = rig.categories(a).len();
            while rig.categories(a).len() == before {
                rig.play(rig.now + Span::from_millis(1), &[(a, 1e9), (b, 1e9)]);
            }
            let periods = rig.categories(a).len();
            let full = if by_user {
                (b, Bytes::new(10_000))
            } else {
                (a, rig.rapid.flow(a).unwrap().cap(&settings))
            };
            while rig.categories(a).len() == periods {
                // It is closed and reopened again and again, so that what arrives never matches what was offered.
                let step = rig.now + Span::from_millis(6);
                rig.rapid.on_backlog(rig.now, full.0, full.1);
                rig.play(step, &[(b, 1e9)]);
                rig.rapid.on_backlog(rig.now, full.0, Bytes::ZERO);
                rig.play(step + Span::from_millis(6), &[(b, 1e9)]);
            }
            assert_eq!(rig.categories(a)[periods], expected, "{profile:?}, by the user's cap: {by_user}");
        }
    }
}

#[test]
fn bypassing_traffic_is_deducted_from_the_capacity() {
    // 18.336 Mbit/s; UDP of 4, then of 40 Mbit/s, then none.
    for (account_udp, expected) in [(false, [18.336; 3]), (true, [14.336, 9.168, 18.336])] {
        let mut rig = Rig::new(Settings { account_udp, ..Settings::THESIS });
        let flow = rig.open(RTT);
        for (part, (rate, expected)) in
            [(4, expected[0]), (40, expected[1]), (0, expected[2])].into_iter().enumerate()
        {
            let until = at(2_000_000 * (part as u64 + 1));
            while rig.now < until {
                rig.rapid.on_passing(1, Bytes::new(rate * 125));
                rig.rapid.on_passing(9, Bytes::new(1_500)); // of an unknown user
                let next = rig.now + Span::from_millis(1);
                rig.play(next, &[(flow, 1e9)]);
            }
            let user = rig.rapid.user(rig.now, 1).unwrap();
            let found = user.capacity.as_f64() / 1e6;
            assert!((found - expected).abs() < 1e-3, "{rate} Mbit/s pass: {found}");
            near(rig.window(flow), user.capacity.as_f64() / 8.0 * 0.02);
            let counted = if account_udp { rate as f64 * 1e6 } else { 0.0 };
            assert!((user.passing.as_f64() - counted).abs() < 1e3);
        }
        assert!(rig.rapid.user(rig.now, 9).is_none());
    }
}

/// One flow alone of a user of some radio technology.
fn alone(settings: Settings, info: CellInfo) -> (Rapid, FlowId) {
    let mut rapid = Rapid::new(settings);
    let hint =
        RadioHint { granted: f64::from(info.prbs), mcs: 15, active_users: 1, ..RadioHint::of(info, at(0)) };
    let flow = rapid.open(at(0), 1, RTT, MSS);
    rapid.on_radio(at(0), 1, &hint);
    rapid.on_ran_rtt(at(0), flow, Span::from_millis(2));
    (rapid, flow)
}

#[test]
fn the_allowance_for_scheduling_requests_is_that_of_the_technology() {
    let lte = CellInfo::lte(0, LteBandwidth::Mhz5);
    let mmwave = CellInfo { technology: Technology::Mmwave, slot: Span::from_micros(125), ..lte };
    let nr = CellInfo { technology: Technology::Nr { qam256: true }, slot: Span::from_micros(500), ..lte };
    // Two periods: 16 ms on LTE, as in the authors' setup; two slots where every slot has a request.
    for (info, us) in [(lte, 18_000), (nr, 10_000), (mmwave, 2_250)] {
        let (rapid, flow) = alone(Settings::FIELD, info);
        assert_eq!(rapid.look(at(0), flow).unwrap().ran_rtt_min, Some(Span::from_micros(us)), "{info:?}");
        let (rapid, flow) = alone(Settings::THESIS, info);
        assert_eq!(rapid.look(at(0), flow).unwrap().ran_rtt_min, Some(Span::from_millis(2)));
    }
    // A handover to a cell of another technology.
    let (mut rapid, flow) = alone(Settings::FIELD, lte);
    rapid.on_radio(at(1_000), 1, &RadioHint::of(CellInfo { cell: 7, ..mmwave }, at(1_000)));
    assert_eq!(rapid.look(at(1_000), flow).unwrap().ran_rtt_min, None, "the RTT was the old cell's");
    rapid.on_ran_rtt(at(1_000), flow, Span::from_millis(2));
    assert_eq!(rapid.look(at(1_000), flow).unwrap().ran_rtt_min, Some(Span::from_micros(2_250)));
}

#[test]
fn in_the_authors_code_both_windows_are_one_for_both_rtts_in_whole_milliseconds() {
    let settings = Settings { window: WindowRule::Whole, ran_rttmin: RanRttMin::Plain, ..Settings::THESIS };
    for (wan, ran, ms) in [(1_000, 500, 3), (500, 800, 3), (8_000, 500, 9), (2_000, 4_000, 6)] {
        let mut rig = Rig::new(settings);
        let flows = [(); 2].map(|()| rig.open(Span::from_micros(wan)));
        for flow in flows {
            rig.rapid.on_ran_rtt(rig.now, flow, Span::from_micros(ran));
        }
        // Half of 2 292 000 B/s each, for that long.
        let expected = (1_146 * ms).max(2 * MSS.get());
        for flow in flows {
            near(rig.window(flow), expected as f64);
            let least = 10 * MSS.get();
            assert_eq!(rig.rapid.ran_window(flow).unwrap().get(), expected.max(least), "{wan}, {ran}");
        }
    }
    // The server has sent everything, and payload waits: the window stays until the backlog is gone.
    let mut rig = Rig::new(Settings { ran_floor: 1, ..settings });
    let flow = rig.open(RTT);
    rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(30));
    rig.play(at(500_000), &[(flow, 1e9)]);
    rig.rapid.on_backlog(rig.now, flow, Bytes::new(10_000));
    let before = rig.window(flow);
    rig.play(at(1_500_000), &[]);
    assert_eq!((rig.window(flow), rig.rapid.ran_window(flow)), (before, Some(Bytes::new(before as u64))));
    rig.rapid.on_backlog(rig.now, flow, Bytes::ZERO);
    rig.play(at(2_200_000), &[]);
    assert!(rig.window(flow) < before, "nothing waits any more");
}

#[test]
fn in_the_authors_ns_3_code_a_server_is_told_whole_multiples_of_16_kib() {
    let settings = Settings { window: WindowRule::Whole, ran_rttmin: RanRttMin::Plain, ..Settings::THESIS };
    // 2 292 000 B/s for both RTTs: 9 ms are 20 628 B, 30 ms 68 760 B. The user's side has them as they are.
    for (wan, ran, told) in [(2, 1, 1), (8, 1, 1), (8, 22, 4)] {
        let mut rig = Rig::new(Settings { ran_floor: 1, ..settings });
        let flow = rig.open(Span::from_millis(wan));
        rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(ran));
        assert_eq!(rig.rapid.window(flow), Some(Bytes::new(told * 16_384)), "{wan}, {ran}");
        assert_eq!(rig.rapid.ran_window(flow), Some(Bytes::new(2_292 * (wan + ran))));
    }
}

#[test]
fn the_authors_linux_module_shifts_where_the_text_divides() {
    let allowance = RttMargin::Fixed(Span::from_millis(16));
    let settings = Settings {
        window: WindowRule::Module,
        ran_rttmin: RanRttMin::Plain,
        sr_allowance: allowance,
        ..Settings::THESIS
    };
    // 2 292 000 B/s for 20 ms. Towards the user 27 and 16 ms: log2 of 43 000 us is 15, of 20 000 us 14, so that the window is four
    // times that, counted in segments of 1024 B.
    for (flows, share, segments) in
        [(1, 45_840, 179), (2, 22_920, 89), (3, 11_460, 44), (4, 11_460, 44), (8, 5_730, 22)]
    {
        let mut rig = Rig::new(settings);
        let flows: Vec<FlowId> = (0..flows).map(|_| rig.open(RTT)).collect();
        for flow in &flows {
            rig.rapid.on_ran_rtt(rig.now, *flow, Span::from_millis(27));
            assert_eq!(rig.rapid.window(*flow), Some(Bytes::new(share)));
            assert_eq!(rig.rapid.ran_window(*flow), Some(MSS * segments));
        }
    }
    // At least two segments for the server, 2880 B; for the user 2^(1 + 14 - 9) times that, 180 segments: log2 of 17 000 us is 14,
    // too.
    let mut rig = Rig::new(settings);
    let flows = [(); 2].map(|()| rig.open(Span::from_millis(1)));
    rig.rapid.on_ran_rtt(rig.now, flows[0], Span::from_millis(1));
    assert_eq!(rig.rapid.window(flows[0]), Some(Bytes::new(2_880)));
    assert_eq!(rig.rapid.ran_window(flows[0]), Some(MSS * 180));
}

#[test]
fn a_server_has_headroom_that_what_waits_is_taken_off_and_a_short_dip_does_not_stop_it() {
    let mut rig = Rig::new(Settings::FIELD);
    let flow = rig.open(RTT);
    // 1.25 times 45 840 B plus two segments; the allocation does not include the headroom.
    let open = 1.25 * 45_840.0 + 2.0 * MSS.as_f64();
    near(rig.rapid.window(flow).unwrap().as_f64(), open);
    assert_eq!(rig.rapid.allocation(flow), Some(Rate::from_bits_per_s(18_336_000)));
    rig.rapid.on_backlog(rig.now, flow, Bytes::new(10_000));
    near(rig.rapid.window(flow).unwrap().as_f64(), open - 10_000.0);
    rig.rapid.on_backlog(rig.now, flow, Bytes::new(100_000));
    assert_eq!(rig.rapid.window(flow), Some(Bytes::ZERO));
    rig.rapid.on_backlog(rig.now, flow, Bytes::ZERO);
    // Half the cell for 20 ms: the rate falls at once, the server's bound on data in flight by less than a tenth of that.
    let half = |now| RadioHint { granted: 10.0, unused: 2.5, active_users: 3, ..report(now) };
    for ms in 1..=20 {
        rig.now = at(1_000 * ms);
        rig.rapid.on_radio(rig.now, 1, &half(rig.now));
    }
    assert!(rig.rapid.allocation(flow).unwrap().as_f64() < 0.55 * 18_336_000.0);
    let short = rig.rapid.window(flow).unwrap().as_f64();
    assert!((0.93 * open..0.97 * open).contains(&short), "{short} of {open}");
    for ms in 21..=2_000 {
        rig.now = at(1_000 * ms);
        while let Some(due) = rig.rapid.next_deadline().filter(|due| *due <= rig.now) {
            rig.rapid.on_deadline(due);
        }
        rig.rapid.on_radio(rig.now, 1, &half(rig.now));
        rig.rapid.on_wan_data(rig.now, flow, Bytes::new(1_100));
    }
    let long = rig.rapid.window(flow).unwrap().as_f64();
    assert!(long < 0.6 * open, "{long} of {open}");
}

/// A sender with the allocated window in front of a link that carries slightly less than allocated: how its queue develops. The
/// published minimum follows the queue that it creates; the plain one does not.
#[test]
fn overestimated_rate_grows_the_queue_unless_rtt_is_bounded() {
    let settle = |ran_rttmin| {
        let mut rig = Rig::new(Settings { ran_rttmin, ..Settings::THESIS });
        let flow = rig.open(RTT);
        let base = 40e-3;
        let carries = 2_292_000.0 / 1.15;
        let mut rtt = base;
        for ms in 1..60_000 {
            rig.rapid.on_ran_rtt(rig.now, flow, Span::from_secs_f64(rtt));
            rig.play(at(1_000 * ms), &[(flow, 1e9)]);
            // The window is in flight; the part beyond what the link carries in a base RTT is queued.
            rtt = (rig.rapid.ran_window(flow).unwrap().as_f64() / carries).max(base);
        }
        (rtt - base) / base
    };
    for (ran_rttmin, least, most) in [
        (RanRttMin::Smoothed, 1.5, f64::INFINITY),
        (RanRttMin::Bounded, 0.6, 0.8), // 1.5 * 1.15 - 1
        (RanRttMin::Plain, 0.1, 0.2),
    ] {
        let queue = settle(ran_rttmin);
        assert!((least..=most).contains(&queue), "{ran_rttmin:?}: {queue} of a base RTT waits");
    }
}
