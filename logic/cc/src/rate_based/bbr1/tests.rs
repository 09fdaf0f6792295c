use super::*;
use crate::testing::fifo::{Flow, Path, WIRE};

const STARTUP: f64 = 0.0;
const DRAIN: f64 = 1.0;
const PROBE_BW: f64 = 2.0;
const PROBE_RTT: f64 = 3.0;

#[test]
fn constants_are_those_of_linux() {
    // specs: 739/256, 88/256, 2, 10 rounds, 10 s, 200 ms, 4, 1.25 over 3 rounds, 1 %, 5 rounds, 100 ms;
    // policer 4 rounds, 50/256, 1/8 or 4 kbit/s, 48 rounds.
    assert_eq!((HIGH_GAIN, DRAIN_GAIN, CWND_GAIN), (739, 88, 512));
    assert_eq!(CYCLE, [320, 192, 256, 256, 256, 256, 256, 256]);
    assert_eq!((BANDWIDTH_ROUNDS, MIN_RTT_WINDOW), (10, Span::from_secs(10)));
    assert_eq!((PROBE_RTT_TIME, MIN_CWND), (Span::from_millis(200), 4));
    assert_eq!((FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS, PACED_PERCENT), (320, 3, 99));
    assert_eq!((AGGREGATION_ROUNDS, AGGREGATION_MAX), (5, Span::from_millis(100)));
    assert_eq!((POLICER_ROUNDS, POLICER_LOSS, POLICER_RATIO, POLICED_ROUNDS), (4, 50, 32, 48));
    assert_eq!(POLICER_DIFFERENCE, Rate::from_bits_per_s(4_000));
}

#[test]
fn a_burst_is_a_millisecond_within_its_limits() {
    let flow = Flow::new(Path::new(10.0, 20, 100), "bbr1", 1);
    for (case, rate, expected) in [
        ("below 1.2 Mbit/s", 1_199_999, 1),
        ("at 1.2 Mbit/s", 1_200_000, 2),
        ("still two at 24 Mbit/s", 24_000_000, 2),
        ("100 Mbit/s", 100_000_000, 8), // 12 207 bytes
        ("capped at 64 KB", 10_000_000_000, 45),
    ] {
        let mut w = Window::new(10.0);
        w.pacing = Pacing::Rate(Rate::from_bits_per_s(rate));
        assert_eq!(Bbr1::burst(&flow.context(), &w), expected, "{case}");
    }
}

#[test]
fn the_first_phase_is_any_but_the_draining_one() {
    let mut seen = [0; 8];
    for seed in 0..700 {
        let switches = Switches { probe_rtt: true, policer: true, aggregation: true, departure: false };
        let mut control = Bbr1::new(seed, switches);
        control.enter_probe_bw(Time::ZERO);
        seen[control.phase] += 1;
    }
    assert_eq!(seen[1], 0);
    assert!(seen.iter().enumerate().all(|(phase, n)| phase == 1 || *n > 60), "{seen:?}");
}

#[test]
fn startup_ends_after_three_rounds_without_growth_and_drain_empties_the_queue() {
    let mut flow = Flow::new(Path::new(20.0, 40, 10_000), "bbr1", 3);
    let bdp = flow.path.bdp();
    let (mut last_growth, mut best, mut drain_from) = (0.0, 0.0f64, None);
    let mut queue_after = f64::NAN;
    flow.run_with(Time::from_secs(3), &mut |flow| {
        let (mode, round, bw) =
            (flow.figure("state"), flow.figure("rounds"), flow.figure("bw_segments_per_s"));
        if mode == STARTUP && bw >= best * 1.25 {
            (best, last_growth) = (bw, round);
        } else if mode == DRAIN && drain_from.is_none() {
            drain_from = Some(round);
        } else if mode == PROBE_BW && queue_after.is_nan() {
            queue_after = flow.in_flight as f64 - bdp;
        }
    });
    let rounds = drain_from.unwrap() - last_growth;
    assert!((3.0..=4.0).contains(&rounds), "left STARTUP {rounds} rounds after growth ended");
    assert!(queue_after <= 8.0, "{queue_after} packets queued when DRAIN ended");
}

#[test]
fn the_cycle_has_eight_phases_of_a_minimal_rtt() {
    let mut flow = Flow::new(Path::new(20.0, 40, 10_000), "bbr1", 3);
    flow.run(Time::from_secs(2));
    let mut phases: Vec<(f64, f64, Time)> = Vec::new();
    flow.run_with(Time::from_secs(4), &mut |flow| {
        let (phase, gain) = (flow.figure("phase"), flow.figure("pacing_gain"));
        if phases.last().is_none_or(|last| last.0 != phase) {
            phases.push((phase, gain, flow.now));
        }
    });
    for pair in phases[1..].windows(2) {
        let ((phase, gain, from), (next, _, to)) = (pair[0], pair[1]);
        assert_eq!(next, (phase + 1.0) % 8.0);
        assert_eq!(gain, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0][phase as usize]);
        let rtts = (to - from).ratio(flow.min_rtt());
        // The draining phase may end early; the probing phase lasts until the flight has grown.
        let expected = if phase == 1.0 {
            0.0..1.2
        } else if phase == 0.0 {
            1.0..2.2
        } else {
            1.0..1.2
        };
        assert!(expected.contains(&rtts), "phase {phase}: {rtts} RTT");
    }
    assert!(phases.len() > 30);
}

#[test]
fn full_and_with_less_than_two_bdp_in_flight() {
    for (rate, rtt) in [(1.0, 50), (5.0, 20), (24.0, 20), (24.0, 100), (100.0, 40), (300.0, 10)] {
        let mut flow = Flow::new(Path::new(rate, rtt, 100_000), "bbr1", 7);
        let bdp = flow.path.bdp();
        flow.run(Time::from_secs(4));
        flow.max_in_flight = 0;
        let utilisation = flow.utilisation_until(Time::from_secs(9));
        assert!(utilisation > 0.95, "{rate} Mbit/s, {rtt} ms: {utilisation}");
        // 2 BDP and the budget of three bursts, rounded to even, and 2 more; a BDP also holds the serialisation.
        let budget = 3.0 * (rate * 1e6 / 8.0 / 1024.0 / WIRE as f64).max(2.0) + 8.0;
        let limit = 2.0 * bdp + budget;
        assert!((flow.max_in_flight as f64) < limit, "{} in flight, limit {limit}", flow.max_in_flight);
    }
}

#[test]
fn a_doubled_rate_is_found_within_four_cycles() {
    // 1.25^3 < 2 < 1.25^4, one cycle of 8 RTT each; a fifth for the phase of the step. It is faster
    // if a probing phase is prolonged because the flight cannot reach 1.25 BDP and the budget at a higher rate.
    let mut flow = Flow::new(Path::new(10.0, 40, 10_000).then(4, 20.0), "bbr1", 5);
    flow.run(Time::from_secs(4));
    let mut found = None;
    flow.run_with(Time::from_secs(8), &mut |flow| {
        let mbit = flow.figure("bw_segments_per_s") * (WIRE * 8) as f64 / 1e6;
        if mbit > 19.0 && found.is_none() {
            found = Some(flow.now);
        }
    });
    let cycles = (found.unwrap() - Time::from_secs(4)).as_secs_f64() / (8.0 * 0.041);
    assert!((0.5..=5.0).contains(&cycles), "{cycles} cycles");
}

#[test]
fn the_minimal_rtt_is_probed_every_ten_seconds() {
    let mut flow = Flow::new(Path::new(20.0, 40, 10_000), "bbr1", 3);
    let (mut dips, mut last): (Vec<(Time, Time)>, f64) = (Vec::new(), STARTUP);
    let mut least = u64::MAX;
    flow.run_with(Time::from_secs(35), &mut |flow| {
        let mode = flow.figure("state");
        if mode == PROBE_RTT {
            if last != PROBE_RTT {
                dips.push((flow.now, flow.now));
            }
            dips.last_mut().unwrap().1 = flow.now;
            least = least.min(flow.in_flight);
            assert!(flow.window.cwnd <= 4.0);
        }
        last = mode;
    });
    assert!(dips.len() >= 3, "{dips:?}");
    assert!(least <= 4);
    for pair in dips.windows(2) {
        let between = (pair[1].0 - pair[0].1).as_secs_f64();
        assert!((9.9..11.0).contains(&between), "{between} s between");
    }
    for (from, to) in dips {
        assert!((to - from) > PROBE_RTT_TIME && (to - from) < Span::from_millis(350));
    }
    let mut flow = Flow::new(Path::new(20.0, 40, 10_000), "bbr1:probe_rtt=off", 3);
    flow.run_with(Time::from_secs(25), &mut |flow| assert_ne!(flow.figure("state"), PROBE_RTT));
}

#[test]
fn random_loss_is_ridden_out() {
    let mut path = Path::new(20.0, 40, 10_000);
    path.lose_every = 100;
    let mut flow = Flow::new(path, "bbr1", 3);
    flow.run(Time::from_secs(3));
    let utilisation = flow.utilisation_until(Time::from_secs(13));
    assert!(utilisation > 0.88, "{utilisation} at 1 % loss");
    let delay = flow.mean_delay(Time::from_secs(3), Time::from_secs(13));
    assert!(delay < 0.04, "{delay} s of queue");
}

#[test]
fn two_lossy_intervals_of_one_rate_are_a_policer() {
    let flow = Flow::new(Path::new(20.0, 40, 10_000), "bbr1", 3);
    let mut cx = flow.context();
    let mut policer = Policer::default();
    let mut sampled = |rounds: u64, delivered: u64, lost: u64| {
        for round in 0..rounds {
            cx.now += Span::from_millis(100);
            cx.delivered += delivered;
            cx.lost += lost;
            policer.sample(&cx, true, lost > 0 && round + 1 >= rounds.min(4), false);
        }
        policer.policed
    };
    assert!(!sampled(4, 100, 30)); // its last loss begins the first interval
    assert!(!sampled(4, 100, 30));
    assert!(sampled(4, 105, 30));
}

#[test]
fn departure_option_deducts_packets_delivered_until_then() {
    // 20 Mbit/s are 1666 segments a second: in 3 ms 4.99 of them are delivered, which Linux truncates.
    for (option, gain, ahead_us, expected) in [
        ("off", 192, 3_000, 40),
        ("on", 192, 3_000, 36),
        ("on", 192, 0, 40),
        // A probing phase also counts the next burst: two segments at this rate.
        ("on", 320, 3_000, 38),
        ("on", 192, 60_000, 0),
    ] {
        let switches =
            Switches { probe_rtt: true, policer: true, aggregation: true, departure: option == "on" };
        let mut control = Bbr1::new(1, switches);
        control.bandwidth.update(BANDWIDTH_ROUNDS, 1, Bandwidth::of(5, Span::from_millis(3)).0);
        control.pacing_gain = gain;
        let mut cx = Flow::new(Path::new(20.0, 40, 100), "bbr1", 1).context();
        cx.now = Time::from_secs(1);
        cx.departure = cx.now + Span::from_micros(ahead_us);
        let mut w = Window::new(10.0);
        w.pacing = Pacing::Rate(Rate::from_mbit_per_s(20));
        assert_eq!(control.flight_at_departure(&cx, &w, 40), expected, "{option}, {gain}, {ahead_us} us");
        // A departure in the past subtracts nothing.
        cx.departure = Time::ZERO;
        let past = if gain > UNIT { 42 } else { 40 };
        assert_eq!(control.flight_at_departure(&cx, &w, 40), past);
    }
}
