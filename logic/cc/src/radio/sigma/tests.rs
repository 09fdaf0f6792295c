use proptest::prelude::*;
use ranpace_phy::{Direction, LteBandwidth};
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Rate, Span, Time};

use super::*;
use crate::testing::testbed::{ack, context, loss, sample};

pub(in crate::radio) const MSS: u64 = 1440;

/// 100 PRBs of LTE, MCS 23, as in Test S-2.
fn lte(at: Time, users: u16, own: f64, unused: f64) -> RadioHint {
    RadioHint {
        granted: own,
        unused,
        active_users: users,
        mcs: 23,
        ..RadioHint::of(CellInfo::lte(1, LteBandwidth::Mhz20), at)
    }
}

fn build(text: &str) -> Box<dyn CongestionControl> {
    text.parse::<crate::Algorithm>().unwrap().build(1)
}

/// A connection with segments of 1440 B.
pub(super) fn connection(now: Time, rtt_ms: u64) -> Context {
    Context { mss: Bytes::new(MSS), wire: Bytes::new(1492), srtt: Span::from_millis(rtt_ms), ..context(now) }
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

/// A connection of this RTT that has had hints in every TTI for 100 ms until now, and has left Max Start.
struct Rig {
    control: Box<dyn CongestionControl>,
    cx: Context,
    w: Window,
}

impl Rig {
    fn new(text: &str, rtt_ms: u64, hint: impl Fn(Time) -> RadioHint) -> Self {
        let mut rig = Self::unstarted(text, rtt_ms);
        rig.hints(100, &hint);
        rig.control.on_start(&rig.cx, &mut rig.w);
        rig
    }

    fn unstarted(text: &str, rtt_ms: u64) -> Self {
        Self { control: build(text), cx: connection(Time::ZERO, rtt_ms), w: Window::new(10.0) }
    }

    /// Sends `count` hints, a TTI apart.
    fn hints(&mut self, count: u64, hint: &impl Fn(Time) -> RadioHint) {
        for _ in 0..count {
            let hint = hint(self.cx.now);
            self.control.on_radio(&self.cx, &mut self.w, &hint);
            self.cx.now += hint.tti;
        }
    }

    fn ack(&mut self, segments: u64, rtt_us: u64) {
        let rtt = Span::from_micros(rtt_us);
        let bytes = Bytes::new(MSS) * segments;
        self.cx.delivered += segments;
        let sample = Sample { delivered: segments, bytes, ..sample(rtt) };
        self.control.on_sample(&self.cx, &mut self.w, &sample);
        self.control.on_ack(&self.cx, &mut self.w, &Ack { bytes, ..ack(segments, rtt) });
    }

    /// Acknowledges everything sent in Max Start.
    fn leave_start(&mut self, rtt_us: u64) {
        let segments = self.w.cwnd as u64 + 1;
        self.ack(segments, rtt_us);
        assert_eq!(self.w.pacing, Pacing::Unlimited);
    }

    fn cwnd_bytes(&self) -> f64 {
        self.w.cwnd * MSS as f64
    }

    fn state(&self) -> f64 {
        figure(self.control.as_ref(), "state")
    }
}

#[test]
fn test_s_2_worked_example_of_lte() {
    for mode in ["reachable", "eq37", "own_plus_unused"] {
        let mut rig = Rig::new(&format!("sigma:p_max={mode}"), 40, |at| lte(at, 2, 50.0, 20.0));
        assert_eq!(figure(rig.control.as_ref(), "p_max_prbs"), 70.0, "{mode}");
        assert_eq!(figure(rig.control.as_ref(), "c_max_bit_s"), 31_704_000.0, "64 PRBs");
        assert!((rig.cwnd_bytes() - 158_520.0).abs() < 1e-6, "Max Start: {}", rig.cwnd_bytes());
        assert!((figure(rig.control.as_ref(), "utz") - 0.714_286).abs() < 1e-6);
        let Pacing::Rate(pace) = rig.w.pacing else { panic!("unpaced") };
        // C_max of payload: 1492 on the wire for 1440.
        assert!((pace.as_f64() - 31_704_000.0 * 1492.0 / 1440.0).abs() < 2.0);
        rig.leave_start(80_000);
        assert_eq!(rig.state(), 2.0);
        for (rtt_us, bytes) in [(80_000, 79_260.0), (100_000, 63_408.0), (160_000, 39_630.0)] {
            rig.ack(1, rtt_us);
            assert!((rig.cwnd_bytes() - bytes).abs() < 1e-6, "{rtt_us} us: {}", rig.cwnd_bytes());
        }
        let before = rig.cwnd_bytes();
        rig.ack(1, 79_900);
        assert_eq!(rig.state(), 3.0);
        assert!((rig.cwnd_bytes() - before - 411.428_571).abs() < 1e-4, "{}", rig.cwnd_bytes() - before);
    }
    // Without the standard's uplink sizes, 70 PRBs would be 35 160 bits.
    let info = CellInfo::lte(1, LteBandwidth::Mhz20);
    assert_eq!(info.block(Direction::Downlink, 23, 1, 70.0).bits(), 35_160);
}

#[test]
fn test_s_3_modes_differ_where_a_fair_share_is_unused() {
    use PMaxRule::{Eq37, OwnPlusUnused, Reachable};
    for (case, users, own, unused, eq37, own_plus_unused, reachable) in [
        ("both have some, some is left", 2, 10.0, 15.0, 40.0, 25.0, 25.0),
        ("the other has the rest", 2, 10.0, 0.0, 25.0, 10.0, 25.0),
        ("alone", 1, 40.0, 10.0, 50.0, 50.0, 50.0),
    ] {
        for (mode, expected) in [(Eq37, eq37), (OwnPlusUnused, own_plus_unused), (Reachable, reachable)] {
            assert_eq!(mode.p_max(50.0, users, own, unused), expected, "{case}, {mode:?}");
        }
    }
    assert_eq!(Eq37.p_max(100.0, 2, 50.0, 20.0), 70.0);
}

#[test]
fn test_s_4_millimetre_waves_of_table_3_1() {
    let at = Time::from_millis(1);
    let rate = mmwave().rate(Direction::Uplink, 15, 1, f64::from(mmwave().prbs));
    assert_eq!(rate, Rate::from_bits_per_s(908_160_000));
    let mut rig = Rig::unstarted("sigma", 10);
    rig.cx.now = at;
    rig.hints(100, &|at| millimetre(at, f64::from(mmwave().prbs), 0.0));
    rig.control.on_start(&rig.cx, &mut rig.w);
    assert!((rig.cwnd_bytes() - 1_135_200.0).abs() < 1.0, "{}", rig.cwnd_bytes());
    assert!((rig.w.cwnd - 788.333).abs() < 1e-3);
    let Pacing::Rate(pace) = rig.w.pacing else { panic!("unpaced") };
    let gap = pace.time_for(rig.cx.wire).as_nanos();
    assert!((12_684..=12_686).contains(&gap), "{gap} ns"); // 12.685 us per 1440 B of payload
}

/// The cell of Table 3.1.
pub(in crate::radio) fn mmwave() -> CellInfo {
    use ranpace_phy::Both;
    use ranpace_rnis::Technology;
    CellInfo {
        technology: Technology::Mmwave,
        slot: Span::from_micros(100),
        symbols: 24,
        fdd: false,
        share: Both::of(|_| 23.0 / 24.0),
        data_symbols: Both::of(|_| 23),
        shared: true,
        by_symbols: true,
        ..CellInfo::lte(2, LteBandwidth::Mhz20)
    }
}

pub(super) fn millimetre(at: Time, own: f64, unused: f64) -> RadioHint {
    RadioHint { granted: own, unused, active_users: 1, mcs: 15, ..RadioHint::of(mmwave(), at) }
}

#[test]
fn test_s_5_released_capacity_is_taken_in_two_round_trips() {
    // The law alone: Utz is computed from the window, without delay.
    let mut rig = Rig::new("sigma:avg=last_tti", 40, |at| lte(at, 1, 100.0, 0.0));
    rig.leave_start(40_000);
    let w_max = figure(rig.control.as_ref(), "w_max_bytes");
    rig.w.cwnd = w_max / 2.0 / MSS as f64;
    for expected in [0.75, 0.9375, 0.996_09] {
        let share = rig.cwnd_bytes() / w_max;
        rig.hints(1, &|at| lte(at, 1, 100.0 * share, 100.0 * (1.0 - share)));
        let whole = rig.w.cwnd as u64;
        // The window's fraction of a segment is acknowledged, too.
        let fraction = rig.w.cwnd - whole as f64;
        rig.ack(whole, 40_000);
        rig.w.cwnd += fraction * (1.0 - share);
        assert!((rig.cwnd_bytes() / w_max - expected).abs() < 2e-4, "{}", rig.cwnd_bytes() / w_max);
    }
}

#[test]
fn test_s_6_nothing_grows_where_the_cell_is_used_up() {
    let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 100.0, 0.0));
    rig.leave_start(40_000);
    let window = rig.w.cwnd;
    for _ in 0..10_000 {
        rig.ack(3, 60_000);
    }
    assert_eq!((rig.w.cwnd, rig.state()), (window, 3.0));
    // With the option a utilisation of 0.95 counts as full, without it does not.
    for (text, grows) in [("sigma", false), ("sigma:profile=thesis", true), ("sigma:u_full=0.97", true)] {
        let mut rig = Rig::new(text, 40, |at| lte(at, 1, 96.0, 4.0));
        rig.leave_start(40_000);
        let window = rig.w.cwnd;
        rig.ack(100, 60_000);
        assert_eq!(rig.w.cwnd > window, grows, "{text}");
    }
}

#[test]
fn an_application_that_does_not_fill_the_window_does_not_widen_it() {
    for (text, grows) in [("sigma", false), ("sigma:guards=off", true)] {
        let mut rig = Rig::new(text, 40, |at| lte(at, 1, 10.0, 90.0));
        rig.leave_start(40_000);
        rig.cx.cwnd_limited = false;
        let window = rig.w.cwnd;
        rig.ack(10, 40_000);
        assert_eq!(rig.w.cwnd > window, grows, "{text}");
    }
}

#[test]
fn max_start_keeps_its_window_until_all_of_it_is_acknowledged() {
    let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 50.0, 50.0));
    let initial = rig.w.cwnd;
    let whole = initial as u64;
    for _ in 0..whole / 2 {
        rig.ack(1, 40_000);
    }
    assert_eq!((rig.w.cwnd, rig.state()), (initial, 1.0));
    // The pace follows C_max, the window does not.
    rig.hints(40, &|at| lte(at, 2, 20.0, 0.0));
    let Pacing::Rate(pace) = rig.w.pacing else { panic!("unpaced") };
    assert_eq!(rig.w.cwnd, initial);
    let c_max = figure(rig.control.as_ref(), "c_max_bit_s");
    assert!((pace.as_f64() * 1440.0 / 1492.0 / c_max - 1.0).abs() < 1e-6);
    rig.ack(initial as u64 - whole / 2 + 1, 40_000);
    assert_eq!((rig.w.pacing, rig.state()), (Pacing::Unlimited, 3.0));
}

#[test]
fn a_narrow_cell_still_starts_with_ten_segments() {
    let rig = Rig::new("sigma", 10, |at| RadioHint { mcs: 0, ..lte(at, 20, 1.0, 0.0) });
    assert_eq!(rig.w.cwnd, 10.0);
}

#[test]
fn without_hints_there_is_cubic_and_ten_hints_end_it() {
    let mut rig = Rig::unstarted("sigma", 40);
    rig.control.on_start(&rig.cx, &mut rig.w);
    assert_eq!((rig.state(), rig.w.cwnd, rig.w.pacing), (0.0, 10.0, Pacing::Unlimited));
    rig.ack(10, 40_000);
    assert_eq!(rig.w.cwnd, 20.0, "slow start");
    rig.hints(9, &|at| lte(at, 1, 50.0, 50.0));
    assert_eq!(rig.state(), 0.0);
    rig.hints(1, &|at| lte(at, 1, 50.0, 50.0));
    assert_eq!((rig.state(), rig.w.cwnd), (3.0, 20.0));
}

#[test]
fn stale_information_holds_the_window_and_then_hands_it_to_cubic_and_back() {
    let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 50.0, 50.0));
    rig.leave_start(40_000);
    rig.ack(10, 40_000);
    let window = rig.w.cwnd;
    rig.cx.now += Span::from_millis(155); // 4 RTTmin are 160 ms; the last hint is a TTI old
    rig.ack(10, 40_000);
    assert!(rig.w.cwnd > window, "still fresh");
    let window = rig.w.cwnd;
    rig.cx.now += Span::from_millis(5);
    rig.ack(10, 40_000);
    assert_eq!((rig.state(), rig.w.cwnd), (4.0, window));
    rig.cx.now += Span::from_millis(998);
    rig.ack(10, 40_000);
    assert_eq!((rig.state(), rig.w.cwnd), (4.0, window));
    rig.cx.now += Span::from_millis(2);
    rig.ack(10, 40_000);
    let w_max = figure(rig.control.as_ref(), "w_max_bytes") / MSS as f64;
    assert_eq!(rig.state(), 0.0);
    // CUBIC starts from W_max in slow start, up to SIGMA's own bound.
    assert!((rig.w.ssthresh - 2.0 * w_max).abs() < 1e-9, "{:?}", rig.w);
    assert!(rig.w.cwnd >= w_max && rig.w.cwnd <= w_max + 10.0, "{:?}", rig.w);
    // CUBIC answers a loss.
    let answer = rig.control.on_congestion(&rig.cx, &mut rig.w, &loss());
    assert!(matches!(answer, LossResponse::ReduceTo(_)), "{answer:?}");
    rig.hints(9, &|at| lte(at, 1, 50.0, 50.0));
    assert_eq!(rig.state(), 0.0);
    rig.hints(1, &|at| lte(at, 1, 50.0, 50.0));
    assert_eq!(rig.state(), 3.0);
    // One hint per second is never fresh for long.
    for state in [4.0, 0.0, 0.0] {
        rig.cx.now += Span::from_millis(999);
        rig.hints(1, &|at| lte(at, 1, 50.0, 50.0));
        assert_eq!(rig.state(), state);
    }
}

#[test]
fn old_and_repeated_hints_are_not_taken() {
    let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 50.0, 50.0));
    let utz = figure(rig.control.as_ref(), "utz");
    let old = lte(Time::from_millis(20), 1, 100.0, 0.0);
    for _ in 0..200 {
        rig.control.on_radio(&rig.cx, &mut rig.w, &old);
    }
    assert_eq!(figure(rig.control.as_ref(), "utz"), utz);
}

#[test]
fn a_lost_segment_costs_nothing_without_a_queue() {
    let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 100.0, 0.0));
    rig.leave_start(40_000);
    let window = rig.w.cwnd;
    rig.cx.in_flight = window as u64 - 1;
    assert_eq!(rig.control.on_congestion(&rig.cx, &mut rig.w, &loss()), LossResponse::Own);
    rig.cx.state = State::Recovery;
    for _ in 0..100 {
        rig.ack(1, 40_000);
        assert!(rig.w.cwnd <= rig.cx.in_flight as f64 + 1.0, "as much leaves as has arrived");
    }
    rig.cx.state = State::Open;
    rig.control.on_recovered(&rig.cx, &mut rig.w);
    assert_eq!(rig.w.cwnd, window);
    // With a queue the window is reduced to drain it.
    rig.ack(1, 60_000);
    rig.control.on_congestion(&rig.cx, &mut rig.w, &loss());
    rig.control.on_recovered(&rig.cx, &mut rig.w);
    let w_max = figure(rig.control.as_ref(), "w_max_bytes") / MSS as f64;
    assert!((rig.w.cwnd - w_max * 40.0 / 60.0).abs() < 1e-9);
}

#[test]
fn losses_without_a_queue_in_two_round_trips_bound_the_window() {
    let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 50.0, 50.0));
    rig.leave_start(40_000);
    let round = |rig: &mut Rig, lost: u64| {
        (rig.cx.in_flight, rig.cx.next_packet) = (100, rig.cx.next_packet + 200);
        if lost > 0 {
            rig.control.on_congestion(&rig.cx, &mut rig.w, &Congestion { lost, ..loss() });
            rig.control.on_recovered(&rig.cx, &mut rig.w);
        }
        rig.hints(40, &|at| lte(at, 1, 50.0, 50.0));
        rig.ack(100, 40_000);
    };
    round(&mut rig, 0);
    round(&mut rig, 2); // 2 of 102 are below 2 %
    round(&mut rig, 3);
    assert!(figure(rig.control.as_ref(), "cap_segments").is_nan(), "one bad round alone");
    let before = rig.w.cwnd;
    round(&mut rig, 3);
    let cap = figure(rig.control.as_ref(), "cap_segments");
    assert!(cap < 0.71 * before.max(rig.w.cwnd) && rig.w.cwnd <= cap, "{cap} of {before}");
    for rounds in 1..10 {
        round(&mut rig, 0);
        let now = figure(rig.control.as_ref(), "cap_segments");
        assert_eq!((now, rig.w.cwnd <= now), (cap + f64::from(rounds), true));
    }
    round(&mut rig, 0);
    assert!(figure(rig.control.as_ref(), "cap_segments").is_nan(), "it has gone");
}

#[test]
fn after_a_timeout_max_start_comes_again_or_slow_start_up_to_half() {
    let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
    for (fresh, state) in [(true, 1.0), (false, 0.0)] {
        let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 100.0, 0.0));
        rig.leave_start(40_000);
        let w_max = figure(rig.control.as_ref(), "w_max_bytes") / MSS as f64;
        assert_eq!(rig.control.on_congestion(&rig.cx, &mut rig.w, &timeout), LossResponse::Own);
        assert_eq!(rig.w.cwnd, 1.0);
        if !fresh {
            rig.cx.now += Span::from_millis(300);
        }
        rig.ack(1, 40_000);
        assert_eq!(rig.state(), state);
        if fresh {
            assert!((rig.w.cwnd - w_max).abs() < 1e-9);
        } else {
            assert!((rig.w.ssthresh - w_max / 2.0).abs() < 1e-9 && rig.w.cwnd < 3.0, "{:?}", rig.w);
        }
    }
}

#[test]
fn a_mark_is_a_step_of_proportional_adjustment() {
    let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 100.0, 0.0));
    rig.leave_start(40_000);
    let w_max = figure(rig.control.as_ref(), "w_max_bytes") / MSS as f64;
    let mark = Congestion { kind: Signal::Ecn, lost: 0, ..loss() };
    rig.control.on_congestion(&rig.cx, &mut rig.w, &mark);
    assert!((rig.w.cwnd - w_max / 2.0).abs() < 1e-9, "{}", rig.w.cwnd);
}

#[test]
fn the_smallest_rtt_begins_anew_where_the_path_is_another_one() {
    let new = || {
        let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 100.0, 0.0));
        rig.leave_start(40_000);
        rig
    };
    let min_ms = |rig: &Rig| 1e3 * figure(rig.control.as_ref(), "min_rtt_s");
    let mut rig = new();
    rig.ack(1, 70_000);
    assert_eq!(min_ms(&rig), 40.0, "for life");
    rig.control.on_path_change(&rig.cx, &mut rig.w);
    rig.ack(1, 70_000);
    assert_eq!(min_ms(&rig), 70.0);
    let mut rig = new();
    rig.hints(1, &|at| RadioHint { info: CellInfo::lte(9, LteBandwidth::Mhz20), ..lte(at, 1, 100.0, 0.0) });
    rig.ack(1, 55_000);
    assert_eq!(min_ms(&rig), 55.0, "another cell");
    for (wait_ms, rtt_us, expected) in [(500, 60_000, 60.0), (500, 59_000, 40.0), (30, 60_000, 40.0)] {
        let mut rig = new();
        let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
        rig.control.on_congestion(&rig.cx, &mut rig.w, &timeout);
        rig.cx.now += Span::from_millis(wait_ms);
        rig.ack(1, rtt_us);
        assert_eq!(min_ms(&rig), expected, "{rtt_us} us {wait_ms} ms after a timeout");
    }
    let known = Rig::new("sigma:rtt_min=30ms:sr_offset=100us", 40, |at| lte(at, 1, 100.0, 0.0));
    assert!((min_ms(&known) - 30.1).abs() < 1e-9, "another flow has seen less");
}

#[test]
fn the_smallest_of_four_rtts_lets_a_delayed_acknowledgement_pass() {
    for (text, state) in [("sigma", 2.0), ("sigma:rtt_last=min4", 3.0)] {
        let mut rig = Rig::new(text, 40, |at| lte(at, 1, 100.0, 0.0));
        rig.leave_start(40_000);
        rig.ack(1, 41_000);
        rig.ack(1, 90_000);
        assert_eq!(rig.state(), state, "{text}");
    }
}

#[test]
fn after_a_pause_there_is_max_start_again() {
    let mut rig = Rig::new("sigma", 40, |at| lte(at, 1, 100.0, 0.0));
    rig.leave_start(40_000);
    rig.w.cwnd = 20.0;
    rig.control.on_idle_restart(&rig.cx, &mut rig.w, Span::from_millis(239));
    assert_eq!(rig.w.cwnd, 20.0);
    rig.control.on_idle_restart(&rig.cx, &mut rig.w, Span::from_millis(241));
    assert_eq!(rig.state(), 1.0);
    assert!(rig.w.cwnd > 100.0 && rig.w.pacing != Pacing::Unlimited);
}

#[test]
fn idle_user_counts_itself_as_active() {
    // Another user has all of it; the device's own last grant was 200 ms ago.
    let mut rig = Rig::unstarted("sigma", 300);
    rig.hints(1, &|at| lte(at, 1, 50.0, 50.0));
    rig.hints(200, &|at| lte(at, 1, 0.0, 0.0));
    assert_eq!(figure(rig.control.as_ref(), "p_max_prbs"), 50.0);
}

#[test]
fn reports_that_are_contradicted_leave_the_window_to_cubic_for_a_while() {
    // One PRB of 100 for this user, and nothing unused: 0.3 Mbit/s. 14 Mbit/s are acknowledged.
    let full = |at| lte(at, 100, 1.0, 0.0);
    for (text, plain) in [("sigma", true), ("sigma:trials=off", false), ("sigma:profile=thesis", false)] {
        let mut rig = Rig::new(text, 40, full);
        let mut left = None;
        for round in 0..30 {
            for _ in 0..40 {
                rig.hints(1, &full);
                rig.ack(1, 45_000);
            }
            if rig.state() == 0.0 {
                left.get_or_insert(round);
            }
        }
        assert_eq!(left.is_some(), plain, "{text}");
        if plain {
            assert!(left.unwrap() <= 15, "0.6 s");
            assert_eq!(figure(rig.control.as_ref(), "contradictions"), 1.0);
            assert_eq!(rig.w.ssthresh, f64::INFINITY, "slow start: there was no queue");
            // The reports are true again: as much is granted as is delivered. They are watched for 10 s.
            let granted = |at| lte(at, 1, 60.0, 40.0);
            for ms in 0..11_000 {
                rig.hints(1, &granted);
                rig.ack(1, 45_000);
                if ms < 9_000 {
                    assert_eq!(rig.state(), 0.0, "{ms} ms");
                }
            }
            assert!(rig.state() > 0.0, "trusted again");
        }
    }
}

/// An arbitrary hint.
fn any_hint() -> impl Strategy<Value = RadioHint> {
    let number = prop_oneof![
        4 => 0.0..110.0_f64,
        1 => Just(0.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => -1e9..1e9_f64,
    ];
    let cell = (0..3u16, prop_oneof![3 => Just(100u16), 1 => any::<u16>()], any::<bool>(), any::<bool>());
    (number.clone(), number, any::<u16>(), any::<u8>(), any::<u8>(), cell, 0..2_000_000u64).prop_map(
        |(granted, unused, users, mcs, layers, (number, cell, waves, handover), tti_us)| {
            let info = if waves { mmwave() } else { CellInfo::lte(number, LteBandwidth::Mhz20) };
            RadioHint {
                granted,
                unused,
                active_users: users % 7,
                // Mostly an existing MCS.
                mcs: if mcs < 200 { mcs % 29 } else { mcs },
                layers,
                cell,
                handover: handover && mcs % 16 == 0,
                tti: Span::from_micros(tti_us),
                ..RadioHint::of(info, Time::ZERO)
            }
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Hint { hint: RadioHint, age_us: u64, again: u8 },
    Ack { segments: u64, rtt_us: u64, limited: bool },
    Lost { lost: u64, first: bool },
    Recovered,
    Timeout,
    Mark,
    Idle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any_hint(), 0..200_000u64, 1..20u8).prop_map(|(hint, age_us, again)| Step::Hint { hint, age_us, again }),
        6 => (1..60u64, 1..400_000u64, any::<bool>())
            .prop_map(|(segments, rtt_us, limited)| Step::Ack { segments, rtt_us, limited }),
        1 => (0..9u64, any::<bool>()).prop_map(|(lost, first)| Step::Lost { lost, first }),
        1 => Just(Step::Recovered),
        1 => Just(Step::Timeout),
        1 => Just(Step::Mark),
        1 => Just(Step::Idle),
    ]
}

proptest! {
    /// Whatever the radio reports: after an acknowledgement in PA or SI the window is between 2 segments and 2 W_max (or the
    /// 2 segments, or the window of a trial), in every state at least 1, and it does not grow while the cell has no unused
    /// resources.
    #[test]
    fn the_window_stays_in_its_bounds(
        early in proptest::collection::vec(any_hint(), 0..20),
        steps in proptest::collection::vec((step(), 0..300_000u64), 1..120),
    ) {
        for text in ["sigma", "sigma:p_max=eq37", "sigma:avg=last_tti:p_max=own_plus_unused"] {
            let mut rig = Rig::unstarted(text, 20);
            for hint in &early {
                rig.hints(1, &|at| RadioHint { measured_at: at, tti: Span::from_millis(1), ..*hint });
            }
            rig.control.on_start(&rig.cx, &mut rig.w);
            for (step, wait_us) in &steps {
                rig.cx.now += Span::from_micros(*wait_us);
                let before = (rig.w.cwnd, rig.state());
                match step {
                    Step::Hint { hint, age_us, again } => for _ in 0..*again {
                        rig.cx.now += Span::from_micros(100);
                        let now = Time::from_nanos(rig.cx.now.as_nanos().saturating_sub(1_000 * age_us));
                        let hint = RadioHint { measured_at: now, ..*hint };
                        rig.control.on_radio(&rig.cx, &mut rig.w, &hint);
                    }
                    Step::Ack { segments, rtt_us, limited } => {
                        rig.cx.cwnd_limited = *limited;
                        rig.ack(*segments, *rtt_us);
                        if [2.0, 3.0].contains(&rig.state()) && before.1 == rig.state() && rig.cx.state == State::Open {
                            let w_max = figure(rig.control.as_ref(), "w_max_bytes") / MSS as f64;
                            let trial = figure(rig.control.as_ref(), "trial_segments");
                            prop_assert!(rig.w.cwnd >= 2.0 && rig.w.cwnd <= (2.0 * w_max).max(2.0).max(trial) * (1.0 + 1e-9),
                                "{text}: {} of {w_max}", rig.w.cwnd);
                            let full = figure(rig.control.as_ref(), "utz") >= 1.0;
                            if full && rig.state() == 3.0 && trial <= 0.0 {
                                prop_assert!(rig.w.cwnd <= before.0.max(2.0), "{text}: grew at full use");
                            }
                        }
                    }
                    Step::Lost { lost, first } => {
                        let event = Congestion { lost: *lost, first: *first, ..loss() };
                        let answer = rig.control.on_congestion(&rig.cx, &mut rig.w, &event);
                        rig.cx.state = State::Recovery;
                        if let (LossResponse::ReduceTo(ssthresh), true) = (answer, *first) {
                            (rig.w.ssthresh, rig.w.cwnd) = (ssthresh, ssthresh);
                        }
                    }
                    Step::Recovered => {
                        rig.cx.state = State::Open;
                        rig.control.on_recovered(&rig.cx, &mut rig.w);
                    }
                    Step::Timeout => {
                        let event = Congestion { kind: Signal::Timeout { count: 1 }, ..loss() };
                        let answer = rig.control.on_congestion(&rig.cx, &mut rig.w, &event);
                        rig.cx.state = State::Loss;
                        if let LossResponse::ReduceTo(ssthresh) = answer {
                            (rig.w.ssthresh, rig.w.cwnd) = (ssthresh, 1.0);
                        }
                    }
                    Step::Mark => {
                        let event = Congestion { kind: Signal::Ecn, lost: 0, ..loss() };
                        if let LossResponse::ReduceTo(ssthresh) = rig.control.on_congestion(&rig.cx, &mut rig.w, &event) {
                            rig.w.cwnd = ssthresh;
                        }
                    }
                    Step::Idle => rig.control.on_idle_restart(&rig.cx, &mut rig.w, Span::SECOND),
                }
                prop_assert!(rig.w.cwnd >= 1.0 && rig.w.cwnd.is_finite(), "{text}: {:?}", rig.w);
                prop_assert_ne!(rig.w.pacing, Pacing::Rate(Rate::ZERO), "{}", text);
            }
        }
    }
}

#[test]
fn traffic_ahead_on_the_device_is_deducted_from_the_capacity() {
    let ahead = Rate::from_bits_per_s(1_704_000);
    let rig = Rig::new("sigma", 40, |at| RadioHint { ahead, ..lte(at, 2, 50.0, 20.0) });
    assert_eq!(figure(rig.control.as_ref(), "c_max_bit_s"), 30_000_000.0);
    assert!((rig.cwnd_bytes() - 150_000.0).abs() < 1e-6, "(31.704 - 1.704) Mbit/s x 40 ms / 8");
    // More than the capacity leaves the smallest window.
    let ahead = Rate::from_mbit_per_s(1_000);
    let mut rig = Rig::new("sigma", 40, |at| RadioHint { ahead, ..lte(at, 2, 50.0, 20.0) });
    rig.leave_start(40_000);
    assert_eq!(rig.w.cwnd, 2.0);
}

#[test]
fn new_flow_starts_with_the_hosts_memory() {
    // The RTT is 20 ms without a queue, and 60 ms when the later connection starts.
    let first = Rig::new("sigma", 20, |at| lte(at, 1, 100.0, 0.0));
    let memory = first.control.memory().unwrap();
    assert_eq!((memory.min_rtt, memory.cell, memory.since), (Span::from_millis(20), Some(1), Time::ZERO));
    let late = |text: &str, memory: PathMemory| {
        let mut rig = Rig::unstarted(text, 60);
        rig.control.recall(memory);
        rig.hints(100, &|at| lte(at, 2, 50.0, 0.0));
        rig.control.on_start(&rig.cx, &mut rig.w);
        (figure(&*rig.control, "min_rtt_s"), rig.control.memory())
    };
    let (rtt, kept) = late("sigma", memory);
    assert_eq!((rtt, kept), (0.02, Some(memory)));
    assert_eq!(late("sigma:memory=off", memory), (0.06, None));
    assert_eq!(late("sigma:profile=thesis", memory), (0.06, None), "the thesis has no table");
    // A value from another cell is not used, and the one measured now belongs to a newer path.
    let (rtt, kept) = late("sigma", PathMemory { cell: Some(7), ..memory });
    let kept = kept.unwrap();
    assert_eq!((rtt, kept.min_rtt, kept.cell), (0.06, Span::from_millis(60), Some(1)));
    assert!(kept.since > memory.since);
    assert_eq!(memory.join(kept), kept, "the newer path counts");
    let smaller = PathMemory { min_rtt: Span::from_millis(19), ..memory };
    assert_eq!((memory.join(smaller), smaller.join(memory)), (smaller, smaller));
}
