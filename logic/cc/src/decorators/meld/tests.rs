//! Worked examples of the sources, decisions at their edges, and the parent's view.

use proptest::prelude::*;
use ranpace_phy::{Both, Itbs, LteBandwidth, LtePrbs};
use ranpace_rnis::{CellInfo, Technology};

use super::*;
use crate::Algorithm;
use crate::classic::newreno::NewReno;
use crate::testing::testbed::{Bed, MSS, ack, context, loss, reduced_to, sample};

const MS: Span = Span::from_millis(1);

/// Payload of an IP packet of 1460 B, with the 52 B of headers of the test's connection.
const PAYLOAD: Bytes = Bytes::new(1460 - 52);

fn cell() -> CellInfo {
    CellInfo::lte(0, LteBandwidth::Mhz5)
}

/// A report of 25 PRBs, with a block and a queue in bytes.
fn hint(at: Time, block: Option<u32>, queue: u64) -> RadioHint {
    RadioHint {
        tbs_bits: block.map(|bytes| bytes * 8),
        most_granted: 25,
        granted: 25.0,
        queue: Bytes::new(queue),
        ..RadioHint::of(cell(), at)
    }
}

fn meld(params: Params) -> Meld {
    Meld::new(Box::new(NewReno), params)
}

fn plain(variant: Variant) -> Params {
    Params { guards: false, ..Params::new(variant) }
}

fn at(ms: u64) -> Context {
    Context { min_rtt: MS * 50, srtt: MS * 50, ..context(Time::from_millis(ms)) }
}

fn lost(bytes: Bytes) -> Congestion {
    Congestion { largest: bytes, ..loss() }
}

fn timeout(count: u32) -> Congestion {
    Congestion { kind: Signal::Timeout { count }, ..loss() }
}

fn figure(control: &dyn CongestionControl, name: &str) -> f64 {
    let mut found = f64::NAN;
    control.inspect(&mut |key, value| {
        if key == name {
            found = value;
        }
    });
    found
}

#[test]
fn m1_thresholds_are_those_of_the_tables() {
    // Specification, Test M-1: T_PDU 1460 B, 8 processes. Equation 4.1 gives 183 B.
    assert_eq!(block_limit(Bytes::new(1460), 8), Bytes::new(183));
    assert_eq!(block_limit(Bytes::new(1440), 8), Bytes::new(180));
    assert_eq!(block_limit(Bytes::new(1468), 8), Bytes::new(184));
    let limits = [(1, None, 712), (2, Some(26), 1480), (3, Some(21), 2216), (5, Some(15), 3752)];
    for (prbs, smallest, queue) in limits.into_iter().chain([(10, Some(9), 7480), (25, Some(4), 18_336)]) {
        let hint = RadioHint { most_granted: prbs, ..hint(Time::ZERO, Some(2292), 0) };
        assert_eq!(best_block(&hint) * 8, Bytes::new(queue), "Q_th of {prbs} PRBs");
        let prbs = LtePrbs::new(prbs as u8).unwrap();
        let passes = |itbs: &Itbs| itbs.transport_block(prbs).bytes() >= Bytes::new(183);
        let found = Itbs::all().find(passes).map(Itbs::get);
        assert_eq!(found, smallest, "smallest I_TBS on {prbs} PRBs");
    }
}

#[test]
fn m2_losses_are_hidden_if_blocks_are_large_and_for_me_the_queue_is_short() {
    // Specification, Test M-2: 25 PRBs, T_PDU 1460 B. DE, ME.
    use Verdict::{Hide, Notify};
    let (small, long) = (Notify(Reason::SmallBlock), Notify(Reason::LongQueue));
    let rows = [
        (Some(2292), 0, 0, Hide, Hide),
        (Some(2292), 18_335, 0, Hide, Hide),
        (Some(2292), 18_336, 0, Hide, long),
        (Some(183), 0, 0, Hide, Hide),
        (Some(182), 0, 0, small, small),
        (Some(177), 40_000, 0, small, small),
        (None, 0, 0, Notify(Reason::Unknown), Notify(Reason::Unknown)),
        (Some(2292), 0, 50, Hide, Hide),
        (Some(2292), 0, 60, Notify(Reason::Stale), Notify(Reason::Stale)),
    ];
    for (block, queue, age, de, me) in rows {
        for (variant, expected) in [(Variant::Download, de), (Variant::Mixed, me)] {
            let mut control = meld(Params { max_age: MS * 50, ..plain(variant) });
            let cx = at(1_000);
            control.on_radio(&at(1_000), &mut Window::new(10.0), &hint(cx.now - MS * age, block, queue));
            let found = control.judge(&cx, &lost(PAYLOAD));
            assert_eq!(found, expected, "{variant:?}, block {block:?}, queue {queue}, age {age} ms");
        }
    }
}

#[test]
fn without_radio_information_losses_are_notified() {
    let mut control = meld(plain(Variant::Download));
    assert_eq!(control.judge(&at(1_000), &lost(PAYLOAD)), Verdict::Notify(Reason::Unknown));
    assert_eq!(control.limits(&at(1_000), PAYLOAD), None);
}

#[test]
fn lost_packet_size_sets_the_block_limit() {
    for (params, payload, expected) in [
        (plain(Variant::Download), 1408, 183),
        (plain(Variant::Download), MSS, 188), // 1500 B
        (plain(Variant::Download), 48, 13),
        (Params { packet: Bytes::new(1440), ..plain(Variant::Download) }, MSS, 180),
        (Params { harq_processes: 16, ..plain(Variant::Download) }, MSS, 94),
    ] {
        let mut control = meld(params);
        control.on_radio(&at(1), &mut Window::new(10.0), &hint(Time::from_millis(1), Some(2292), 0));
        let limits = control.limits(&at(1), Bytes::new(payload)).unwrap();
        assert_eq!(limits.block, Bytes::new(expected), "{params:?}");
    }
}

#[test]
fn the_queue_limit_is_a_multiple_of_the_formulas() {
    for (text, expected) in [("formula", Some(1.0)), ("x8", Some(8.0)), ("x0.5", Some(0.5)), ("x", None)] {
        assert_eq!(text.parse().ok().map(|QueueFactor(factor)| factor), expected, "{text}");
    }
    for wrong in ["8", "x-1", "xNaN", "x0", "xinf", "twice", ""] {
        assert!(wrong.parse::<QueueFactor>().is_err(), "{wrong}");
    }
    let mut control = meld(Params { queue_factor: QueueFactor(8.0), ..plain(Variant::Mixed) });
    control.on_radio(&at(1), &mut Window::new(10.0), &hint(Time::from_millis(1), Some(2292), 0));
    assert_eq!(control.limits(&at(1), PAYLOAD).unwrap().queue, Some(Bytes::new(146_688)));
}

#[test]
fn a_report_is_used_for_three_periods_and_at_least_50_ms() {
    for (period, oldest) in [(1, 50), (8, 50), (16, 50), (20, 60), (100, 300)] {
        let mut control = meld(plain(Variant::Download));
        let mut now = Time::from_secs(1);
        for _ in 0..3 {
            now += MS * period;
            control.on_radio(&context(now), &mut Window::new(10.0), &hint(now, Some(2292), 0));
        }
        for (late, expected) in [(oldest, Verdict::Hide), (oldest + 1, Verdict::Notify(Reason::Stale))] {
            let cx = Context { now: now + MS * late, ..at(0) };
            assert_eq!(control.judge(&cx, &lost(PAYLOAD)), expected, "period {period} ms, {late} ms old");
        }
    }
}

#[test]
fn a_block_may_be_held_as_long_as_a_report_is_used() {
    for (hold, late, queue, expected) in [
        (false, 8, 0, Verdict::Notify(Reason::Unknown)),
        (true, 8, 0, Verdict::Hide),
        (true, 8, 18_336, Verdict::Notify(Reason::LongQueue)),
        (true, 48, 18_335, Verdict::Hide),
        (true, 56, 0, Verdict::Notify(Reason::Unknown)),
    ] {
        let params = Params { hold_block: hold, ..plain(Variant::Mixed) };
        let (mut control, mut w) = (meld(params), Window::new(10.0));
        control.on_radio(&at(100), &mut w, &hint(Time::from_millis(100), Some(2292), 0));
        for ms in (108..=100 + late).step_by(8) {
            let idle = RadioHint { most_granted: 0, ..hint(Time::from_millis(ms), None, queue) };
            control.on_radio(&at(ms), &mut w, &idle);
        }
        let found = control.judge(&at(100 + late), &lost(PAYLOAD));
        assert_eq!(found, expected, "hold {hold}, {late} ms later, queue {queue}");
    }
}

#[test]
fn the_block_is_held_unless_that_of_the_period_is_asked_for() {
    // A flow with a small window: its loss is detected when it has sent nothing for a report period.
    for (text, silent) in [
        ("newreno+meld-de", 1.0),
        ("newreno+meld-me", 1.0),
        ("newreno+meld-de:tbs=period", 0.0),
        ("newreno+meld-me:tbs=period", 0.0),
    ] {
        let mut control = text.parse::<Algorithm>().unwrap().build(1);
        let mut w = Window::new(10.0);
        control.on_start(&at(90), &mut w);
        control.on_radio(&at(100), &mut w, &hint(Time::from_millis(100), Some(2292), 0));
        control.on_radio(&at(108), &mut w, &hint(Time::from_millis(108), None, 0));
        control.on_congestion(&at(110), &mut w, &loss());
        assert_eq!(figure(&*control, "meld_silent"), silent, "{text}");
    }
}

/// A report of the same number of granted PRBs, measured in the cell `info`.
fn hint_of(info: CellInfo, at: Time, block: Option<u32>, queue: u64) -> RadioHint {
    RadioHint { info, tti: info.slot, cell: info.prbs, layers: info.layers, ..hint(at, block, queue) }
}

#[test]
fn the_queue_limit_is_that_of_the_cell_which_serves_now() {
    // 25 PRBs and one layer: in LTE with the blocks of I_TBS 26; in an NR cell with TS 38.214's at MCS 28 and the cell's
    // number of processes; and in the first cell again.
    let nr = CellInfo {
        technology: Technology::Nr { qam256: false },
        overhead: 18,
        data_symbols: Both { downlink: 12, uplink: 12 },
        ..cell()
    };
    let wide = CellInfo { cell: 1, overhead: 12, data_symbols: Both { downlink: 13, uplink: 13 }, ..nr };
    let mut control = meld(plain(Variant::Mixed));
    let mut found = Vec::new();
    for (ms, info) in [(100, cell()), (108, nr), (116, wide), (124, cell())] {
        let report = hint_of(info, Time::from_millis(ms), Some(2292), 0);
        control.on_radio(&at(ms), &mut Window::new(10.0), &report);
        let limit = control.limits(&at(ms), PAYLOAD).unwrap().queue.unwrap();
        assert_eq!(limit, best_block(&report) * u64::from(info.harq_processes.downlink), "at {ms} ms");
        found.push(limit);
    }
    assert_eq!(found[0], Bytes::new(18_336));
    assert_eq!(found[0], found[3]);
    assert!(found[0] != found[1] && found[1] != found[2], "{found:?}");
}

#[test]
fn no_block_is_held_from_the_cell_before() {
    let second = CellInfo { cell: 1, ..cell() };
    for (case, next, expected) in [
        ("same cell", cell(), Verdict::Hide),
        ("another cell", second, Verdict::Notify(Reason::Unknown)),
        (
            "another technology",
            CellInfo { technology: Technology::Mmwave, ..cell() },
            Verdict::Notify(Reason::Unknown),
        ),
    ] {
        for variant in [Variant::Download, Variant::Mixed] {
            let (mut control, mut w) = (meld(plain(variant)), Window::new(10.0));
            control.on_radio(&at(100), &mut w, &hint(Time::from_millis(100), Some(2292), 0));
            let idle = RadioHint { most_granted: 0, ..hint_of(next, Time::from_millis(108), None, 0) };
            control.on_radio(&at(108), &mut w, &idle);
            assert_eq!(control.judge(&at(110), &lost(PAYLOAD)), expected, "{case}, {variant:?}");
            // The flow has a block in the new cell again.
            control.on_radio(&at(116), &mut w, &hint_of(next, Time::from_millis(116), Some(2292), 0));
            assert_eq!(control.judge(&at(118), &lost(PAYLOAD)), Verdict::Hide, "{case}, {variant:?}, served");
        }
    }
}

#[test]
fn a_pause_of_the_feed_is_no_period_and_overtaken_reports_do_not_count() {
    let (mut control, mut w) = (meld(plain(Variant::Download)), Window::new(10.0));
    for ms in [8, 16, 24, 2_024] {
        control.on_radio(&at(ms), &mut w, &hint(Time::from_millis(ms), Some(2292), 0));
    }
    assert_eq!(control.radio.period(), MS * 8);
    // Measured before the newest: reordered. Measured in the future: by another clock, so its age counts from the arrival.
    control.on_radio(&at(2_025), &mut w, &hint(Time::from_millis(2_000), Some(100), 0));
    assert_eq!(control.judge(&at(2_025), &lost(PAYLOAD)), Verdict::Hide);
    control.on_radio(&at(2_030), &mut w, &hint(Time::from_secs(900), Some(2292), 0));
    assert_eq!(control.judge(&at(2_130), &lost(PAYLOAD)), Verdict::Notify(Reason::Stale));
}

#[test]
fn radio_at_loss_uses_the_report_at_loss_time() {
    let params = Params { radio_at_loss: true, ..plain(Variant::Download) };
    let (mut control, mut w) = (meld(params), Window::new(10.0));
    for (ms, block) in [(100, 2292), (108, 2292), (116, 100), (124, 2292), (132, 2292)] {
        control.on_radio(&at(ms), &mut w, &hint(Time::from_millis(ms), Some(block), 0));
    }
    // The loss is assumed half an RTT of 50 ms after sending: the report of 116 ms is nearest from 113 to 120 ms.
    for (sent, expected) in [(84, 2292), (88, 100), (95, 100), (96, 2292)] {
        let event = Congestion { newest_sent_at: Time::from_millis(sent), ..lost(PAYLOAD) };
        let is_hidden = control.judge(&at(140), &event) == Verdict::Hide;
        assert_eq!(is_hidden, expected == 2292, "sent at {sent} ms");
    }
    // Older than all reports by more than is allowed.
    let old = Congestion { newest_sent_at: Time::from_millis(20), ..lost(PAYLOAD) };
    assert_eq!(control.judge(&at(140), &old), Verdict::Notify(Reason::Stale));
    // A loss reported earlier: its send time is unknown.
    let again = Congestion { newest_sent_at: Time::ZERO, lost: 0, ..lost(PAYLOAD) };
    assert_eq!(control.judge(&at(140), &again), Verdict::Hide);
}

#[test]
fn marks_and_a_second_timeout_are_never_hidden() {
    let (mut control, mut w) = (meld(plain(Variant::Download)), Window::new(20.0));
    control.on_radio(&at(100), &mut w, &hint(Time::from_millis(100), Some(2292), 0));
    let mark = Congestion { kind: Signal::Ecn, lost: 0, ..loss() };
    assert_eq!(reduced_to(control.on_congestion(&at(101), &mut w, &mark)), 10.0);
    assert_eq!(control.on_congestion(&at(102), &mut w, &timeout(1)), LossResponse::Ignore);
    // The endpoint has cut the window to one segment; the parent halves the window before that.
    w.cwnd = 1.0;
    assert_eq!(reduced_to(control.on_congestion(&at(103), &mut w, &timeout(2))), 10.0);
    assert_eq!(figure(&control, "meld_silent"), 1.0);
    assert_eq!(figure(&control, "meld_silent_timeouts"), 1.0);
    assert_eq!(figure(&control, "meld_notified"), 2.0);
    assert_eq!(figure(&control, "meld_notified_mark"), 1.0);
    assert_eq!(figure(&control, "meld_notified_timeout_again"), 1.0);
}

#[test]
fn guards_notify_in_handovers_next_to_overflow_and_when_much_is_lost() {
    let ask = |params: Params, report: RadioHint, lost_before: u64| {
        let (mut control, mut w) = (meld(params), Window::new(10.0));
        control.on_start(&at(0), &mut w);
        control.on_radio(&at(100), &mut w, &report);
        let cx = Context { lost: lost_before, delivered: 100 - lost_before, ..at(100) };
        control.judge(&cx, &lost(PAYLOAD))
    };
    let (on, off) = (Params::new(Variant::Download), plain(Variant::Download));
    let calm = hint(Time::from_millis(100), Some(2292), 0);
    let moving = RadioHint { handover: true, ..calm };
    let full =
        |queue| RadioHint { queue: Bytes::new(queue), queue_limit: Some(Bytes::new(1_000_000)), ..calm };
    for (case, report, lost_before, expected) in [
        ("nothing unusual", calm, 1, None),
        ("handover", moving, 1, Some(Reason::Handover)),
        ("at 90 % of the buffer", full(900_000), 1, Some(Reason::NearOverflow)),
        ("below 90 % of the buffer", full(899_999), 1, None),
        ("5 of 100 lost", calm, 5, None),
        ("6 of 100 lost", calm, 6, Some(Reason::ManyLost)),
    ] {
        let expected = expected.map_or(Verdict::Hide, Verdict::Notify);
        assert_eq!(ask(on, report, lost_before), expected, "{case}");
        assert_eq!(ask(off, report, lost_before), Verdict::Hide, "{case}, guards off");
    }
}

#[test]
fn losses_within_one_block_are_not_heavy() {
    // A block of 2292 B contains bytes of at most three packets of 1460 B.
    let (block, packet) = (Bytes::new(2292), Bytes::new(1460));
    for (lost, delivered, expected) in
        [(1, 0, false), (3, 0, false), (4, 0, true), (4, 76, false), (4, 75, true), (0, 0, false)]
    {
        assert_eq!(is_heavy(lost, delivered, block, packet), expected, "{lost} lost, {delivered} delivered");
    }
}

#[test]
fn a_silent_episode_leaves_window_threshold_and_parent_alone() {
    let text = "cubic+meld-de:guard=off";
    let mut control = text.parse::<Algorithm>().unwrap().build(1);
    let mut twin = "cubic".parse::<Algorithm>().unwrap().build(1);
    let (mut w, mut other) = (Window::new(40.0), Window::new(40.0));
    w.ssthresh = 30.0;
    other.ssthresh = 30.0;
    let mut cx = at(1_000);
    control.on_start(&cx, &mut w);
    twin.on_start(&cx, &mut other);
    for step in 0..200_u64 {
        cx.now += MS;
        cx.delivered += 1;
        control.on_radio(&cx, &mut w, &hint(cx.now, Some(2292), 0));
        // An episode begins at every 40th segment and ends 20 segments later. The parent must not see one.
        if step % 40 == 10 {
            assert_eq!(control.on_congestion(&cx, &mut w, &loss()), LossResponse::Ignore);
        }
        let state = if (10..30).contains(&(step % 40)) { State::Recovery } else { State::Open };
        if step % 40 == 30 {
            control.on_recovered(&cx, &mut w);
        }
        let own = Context { state, ..cx };
        control.on_sample(&own, &mut w, &sample(MS * 50));
        control.on_ack(&own, &mut w, &ack(1, MS * 50));
        twin.on_sample(&cx, &mut other, &sample(MS * 50));
        twin.on_ack(&cx, &mut other, &ack(1, MS * 50));
        assert_eq!(w, other, "at segment {step}");
    }
    assert!(w.cwnd > 40.0);
    assert_eq!(figure(control.as_ref(), "meld_silent"), 5.0);
}

/// The parent did not see the hidden losses, so it continues from its current window, which may be many times that of a
/// parent that did; from then on it takes the same steps down.
#[test]
fn stale_reports_leave_the_parent_with_the_current_window() {
    for meld in ["cubic+meld-de", "cubic+meld-me", "newreno+meld-me"] {
        let parent = meld.split('+').next().unwrap();
        let mut control = meld.parse::<Algorithm>().unwrap().build(1);
        let mut twin = parent.parse::<Algorithm>().unwrap().build(1);
        let (mut w, mut other) = (Window::new(1_000.0), Window::new(1_000.0));
        (w.ssthresh, other.ssthresh) = (100.0, 100.0);
        let mut cx = at(1_000);
        control.on_start(&cx, &mut w);
        twin.on_start(&cx, &mut other);
        let (mut hidden, mut told) = (0, 0);
        for step in 0..3_000_u64 {
            cx.now += MS;
            cx.delivered += 1;
            let reports_stop = step >= 1_000;
            if !reports_stop {
                control.on_radio(&cx, &mut w, &hint(cx.now, Some(2292), 0));
            }
            // The newest report is of step 999 and may be 50 ms old, so the loss at step 1000 is left out.
            let is_lost = step % 100 == 0;
            if is_lost && !reports_stop {
                assert_eq!(
                    control.on_congestion(&cx, &mut w, &loss()),
                    LossResponse::Ignore,
                    "{meld}, {step}"
                );
                control.on_recovered(&cx, &mut w);
                hidden += 1;
            } else if is_lost && step > 1_000 {
                // A simplified endpoint: the window becomes the threshold, and the episode is over.
                let answer = twin.on_congestion(&cx, &mut other, &loss());
                assert_eq!(control.on_congestion(&cx, &mut w, &loss()), answer, "{meld}, {step}");
                for (control, w) in [(&mut control, &mut w), (&mut twin, &mut other)] {
                    w.ssthresh = reduced_to(answer);
                    w.cwnd = w.ssthresh;
                    control.on_recovered(&cx, w);
                }
                told += 1;
            }
            for (control, w) in [(&mut control, &mut w), (&mut twin, &mut other)] {
                control.on_sample(&cx, w, &sample(MS * 50));
                control.on_ack(&cx, w, &ack(1, MS * 50));
            }
            assert_eq!(w, other, "{meld}, step {step}");
        }
        assert_eq!((hidden, told), (10, 19), "{meld}");
        assert_eq!(figure(control.as_ref(), "meld_silent"), 10.0, "{meld}");
        assert_eq!(figure(control.as_ref(), "meld_notified_stale"), 19.0, "{meld}: all of them");
        assert!(w.cwnd < 100.0, "{meld}: {} segments after 19 losses", w.cwnd);
    }
}

#[test]
fn a_second_pass_of_a_silent_episode_is_judged_by_itself() {
    let (mut control, mut w) = (meld(plain(Variant::Mixed)), Window::new(20.0));
    control.on_radio(&at(100), &mut w, &hint(Time::from_millis(100), Some(2292), 0));
    assert_eq!(control.on_congestion(&at(100), &mut w, &loss()), LossResponse::Ignore);
    assert!(control.episode.is_hidden());
    control.on_radio(&at(108), &mut w, &hint(Time::from_millis(108), Some(2292), 20_000));
    assert_eq!(reduced_to(control.on_congestion(&at(108), &mut w, &loss())), 10.0);
    assert!(!control.episode.is_hidden(), "the parent's own episode now");
}

#[test]
fn within_an_episode_of_the_parent_hidden_losses_change_nothing() {
    let (mut control, mut w) = (meld(plain(Variant::Mixed)), Window::new(20.0));
    control.on_radio(&at(100), &mut w, &hint(Time::from_millis(100), Some(2292), 20_000));
    assert_eq!(reduced_to(control.on_congestion(&at(100), &mut w, &loss())), 10.0);
    control.on_radio(&at(108), &mut w, &hint(Time::from_millis(108), Some(2292), 0));
    let again = Congestion { first: false, ..loss() };
    assert_eq!(control.on_congestion(&at(108), &mut w, &again), LossResponse::Ignore);
    assert!(!control.episode.is_hidden(), "recovery's end is the parent's to hear of");
}

#[test]
fn rto_full_brings_the_window_back_with_the_first_ack_paced_over_an_rtt() {
    let params = Params { full_after_timeout: true, ..plain(Variant::Download) };
    let (mut control, mut w) = (meld(params), Window::new(40.0));
    w.ssthresh = 30.0;
    control.on_radio(&at(100), &mut w, &hint(Time::from_millis(100), Some(2292), 0));
    assert_eq!(control.on_congestion(&at(100), &mut w, &timeout(1)), LossResponse::Ignore);
    // A simplified endpoint.
    (w.cwnd, w.ssthresh) = (1.0, 40.0);
    let lossy = |ms| Context { state: State::Loss, ..at(ms) };
    control.on_ack(&lossy(150), &mut w, &ack(1, MS * 50));
    assert_eq!(w.cwnd, 40.0);
    let expected = Rate::of(Bytes::new(1500) * 40, MS * 50);
    assert_eq!(w.pacing, Pacing::Rate(expected));
    control.on_ack(&lossy(199), &mut w, &ack(1, MS * 50));
    assert_eq!(w.pacing, Pacing::Rate(expected));
    control.on_ack(&lossy(200), &mut w, &ack(1, MS * 50));
    assert_eq!(w.pacing, Pacing::Unlimited);
}

#[test]
fn path_change_discards_reports() {
    let (mut control, mut w) = (meld(plain(Variant::Download)), Window::new(20.0));
    control.on_radio(&at(100), &mut w, &hint(Time::from_millis(100), Some(2292), 0));
    control.on_path_change(&at(101), &mut w);
    assert_eq!(control.judge(&at(101), &lost(PAYLOAD)), Verdict::Notify(Reason::Unknown));
}

#[test]
fn radio_information_is_wanted_also_below_another_decorator() {
    for text in ["newreno+meld-me", "cubic+meld-de+c2tcp", "c2tcp+meld-me"] {
        assert!(text.parse::<Algorithm>().unwrap().build(1).wants_radio(), "{text}");
    }
    assert!(!"cubic+c2tcp".parse::<Algorithm>().unwrap().build(1).wants_radio());
}

/// A flow over the test link, with reports if requested.
fn played(name: &str, lose_every: u64, seconds: u64) -> Vec<Window> {
    let mut bed = Bed::new(name, 1_250, 50);
    bed.buffer = 400;
    bed.lose_every = lose_every;
    let mut windows = Vec::new();
    bed.run_with(seconds, &mut |bed| windows.push(bed.window));
    windows
}

#[test]
fn without_losses_and_without_reports_it_is_the_parent_bit_for_bit() {
    for parent in ["newreno", "cubic", "westwood", "yeah", "cubic+c2tcp"] {
        for lose_every in [0, 300] {
            let expected = played(parent, lose_every, 20);
            for decorator in ["meld-de", "meld-me", "meld-me:guard=off"] {
                let found = played(&format!("{parent}+{decorator}"), lose_every, 20);
                assert!(found == expected, "{parent}+{decorator}, every {lose_every}th lost");
            }
        }
    }
}

proptest! {
    /// Whatever the reports: stale reports hide nothing.
    #[test]
    fn stale_information_hides_nothing(
        blocks in prop::collection::vec((prop::option::of(0..4_000_u32), 0..2_000_000_u64, 1..200_u64), 1..20),
        late in 1..10_000_u64,
        max_age in prop::sample::select(vec![0_u64, 20, 500]),
        hold_block in any::<bool>(),
        is_mixed in any::<bool>(),
        guards in any::<bool>(),
        payload in 1..1_448_u64,
    ) {
        let variant = if is_mixed { Variant::Mixed } else { Variant::Download };
        let params = Params { guards, hold_block, max_age: MS * max_age, ..Params::new(variant) };
        let (mut control, mut w) = (meld(params), Window::new(20.0));
        let mut now = Time::from_secs(1);
        for (block, queue, gap) in blocks {
            now += MS * gap;
            control.on_radio(&context(now), &mut w, &hint(now, block, queue));
        }
        let oldest = if max_age == 0 { decision::max_age(control.radio.period()) } else { MS * max_age };
        let cx = Context { now: now + oldest + MS * late, ..at(0) };
        let answer = control.on_congestion(&cx, &mut w, &lost(Bytes::new(payload)));
        prop_assert_eq!(answer, LossResponse::ReduceTo(10.0));
    }

    /// Whatever the reports, even impossible ones: ME hides no loss beside a queue at its limit, and none with a small block.
    #[test]
    fn absurd_reports_hide_no_more_than_the_thresholds_allow(
        bits in prop::option::of(any::<u32>()),
        most_granted in any::<u16>(),
        layers in any::<u8>(),
        queue in any::<u64>(),
        payload in 1..65_000_u64,
        is_mixed in any::<bool>(),
    ) {
        let variant = if is_mixed { Variant::Mixed } else { Variant::Download };
        let mut control = meld(plain(variant));
        let mut w = Window::new(20.0);
        let report =
            RadioHint { tbs_bits: bits, most_granted, layers, ..hint(Time::from_millis(100), None, queue) };
        control.on_radio(&at(100), &mut w, &report);
        let limits = control.limits(&at(100), Bytes::new(payload)).unwrap();
        let answer = control.on_congestion(&at(100), &mut w, &lost(Bytes::new(payload)));
        let hides = bits.is_some_and(|bits| Bytes::new(u64::from(bits / 8)) >= limits.block)
            && limits.queue.is_none_or(|limit| Bytes::new(queue) < limit);
        prop_assert_eq!(answer == LossResponse::Ignore, hides);
    }
}
