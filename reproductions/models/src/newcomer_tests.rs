use super::*;

fn asked() -> Newcomer {
    Newcomer {
        gain: 2.175,
        initial: Rate::from_mbit_per_s(1),
        gamma: 1.0,
        queue_threshold: Bits::new(1_000_000),
        buffer: Bits::new(48_000_000),
        bottlenecks: FIGURE_BOTTLENECKS.to_vec(),
        rtt_mins: vec![Span::from_millis(20)],
    }
}

const SMALL_QUEUE: Threshold = Threshold::Queue(Bits::new(300_000));
const LARGE_QUEUE: Threshold = Threshold::Queue(Bits::new(1_000_000));

fn case(mbit: u64) -> Case {
    asked().case(Rate::from_mbit_per_s(mbit), Span::from_millis(20))
}

/// In smallest RTTs, with the precision of the specification.
fn times(mbit: u64, threshold: Threshold) -> [String; 2] {
    let crossing = case(mbit).crossing(threshold);
    [crossing.time_s, crossing.seen_s].map(|time| format!("{:.1}", time / 0.020))
}

/// `cdbev2.md`, section 10.
#[test]
fn closed_forms_are_those_of_the_specification() {
    let crossing = case(20).crossing(Threshold::Rtt(1.0));
    assert!((crossing.rounds - 3.86).abs() < 5e-3, "{crossing:?}");
    let crossing = case(150).crossing(LARGE_QUEUE);
    assert!(
        (crossing.share_ratio - 0.768).abs() < 5e-4 && (crossing.rounds - 6.11).abs() < 5e-3,
        "{crossing:?}"
    );
    // Thres1 is first below 0.75 Mb for gamma 2 and 2 Mb for gamma 1.
    assert_eq!(boundary(2.0, Bits::new(1_000_000)), 0.75e6);
    assert_eq!(boundary(1.0, Bits::new(1_000_000)), 2e6);
}

/// `cdbev2.md`, section 7.2, rows 6 to 15.
#[test]
fn thresholds_are_crossed_where_the_specification_has_them() {
    let rtt = Threshold::Rtt;
    for (mbit, threshold, time, seen, ratio) in [
        (1, rtt(1.0), None, Some("2.0"), "1.00"),
        (1, rtt(3.0), None, None, "3.00"),
        (5, rtt(1.0), Some("2.8"), Some("4.8"), "1.00"),
        (5, rtt(2.0), Some("4.5"), Some("7.5"), "2.00"),
        (5, rtt(3.0), None, None, "3.00"),
        (5, SMALL_QUEUE, None, None, "3.79"),
        (20, rtt(1.0), None, Some("6.7"), "1.00"),
        (20, rtt(2.0), None, Some("9.6"), "2.00"),
        (20, SMALL_QUEUE, None, None, "1.32"),
        (20, LARGE_QUEUE, None, None, "3.27"),
        (150, LARGE_QUEUE, None, None, "0.77"),
        (500, SMALL_QUEUE, Some("6.0"), Some("7.2"), "0.19"),
        // 7.05; the specification rounds it to 7.1.
        (500, LARGE_QUEUE, Some("7.0"), Some("8.4"), "0.37"),
    ] {
        let found = times(mbit, threshold);
        let name = format!("{mbit} Mbit/s, {}", threshold.name());
        assert!(time.is_none_or(|time| found[0] == time), "{name}: {found:?}");
        assert!(seen.is_none_or(|seen| found[1] == seen), "{name}: {found:?}");
        assert_eq!(format!("{:.2}", case(mbit).crossing(threshold).share_ratio), ratio, "{name}");
    }
    assert_eq!(format!("{:.1}", case(150).crossing(LARGE_QUEUE).queue_bits / 1e6), "2.3");
}

/// Row 14: at 20 ms Thres1 is first below 37.5 (gamma 2) or 100 Mbit/s (gamma 1), so never from 150 Mbit/s on.
#[test]
fn thres1_is_first_below_the_boundary_only() {
    for (gamma, boundary) in [(1.0, 100), (2.0, 37)] {
        for mbit in [1, 5, 20, 36, 37, 38, 99, 100, 101, 150, 300, 500] {
            let exit = case(mbit).exit(gamma, Bits::new(1_000_000), asked().buffer);
            let expected = if mbit <= boundary { Rule::Thres1 } else { Rule::Thres2 };
            assert_eq!(exit.rule, expected, "gamma {gamma}, {mbit} Mbit/s");
        }
    }
}

/// Equations 7.17 to 7.22 round by round, against the closed forms.
#[test]
fn exits_follow_the_equations() {
    for (mbit, rtt_ms) in [(1, 20), (5, 20), (20, 20), (150, 20), (500, 20), (50, 300), (500, 300)] {
        let (capacity, rtt_min) = (mbit as f64 * 1e6, rtt_ms as f64 / 1e3);
        let case = asked().case(Rate::from_mbit_per_s(mbit), Span::from_millis(rtt_ms));
        let exit = case.exit(1.0, Bits::new(1_000_000), asked().buffer);
        let (mut power, mut time, mut round) = (1e6, 0.0, 0);
        let (ratio, rtt) = loop {
            let sum = power + capacity;
            let (newcomer, established) = (power / sum * capacity, capacity / sum * capacity);
            let rtt = sum / capacity * rtt_min;
            if rtt - rtt_min > rtt_min * (1.0 + 1e-12) || rtt - rtt_min > 1e6 / newcomer {
                break (newcomer / established, rtt);
            }
            (power, time, round) = (power * 2.175, time + rtt, round + 1);
        };
        assert_eq!(exit.round, round, "{mbit} Mbit/s, {rtt_ms} ms");
        for (found, expected) in [
            (exit.share_ratio, ratio),
            (exit.rtt_s, rtt),
            (exit.time_s, time),
            (exit.seen_s, time + rtt),
            (exit.queue_bits, (rtt - rtt_min) * capacity),
        ] {
            assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found} {expected}");
        }
        // The whole round is the first one past the crossing.
        let lower = case.crossing(Threshold::Rtt(1.0)).rounds.min(case.crossing(LARGE_QUEUE).rounds);
        assert!(f64::from(exit.round) >= lower && f64::from(exit.round) - lower <= 1.0, "{exit:?} {lower}");
    }
}

#[test]
fn a_newcomer_that_begins_above_a_threshold_is_stopped_at_once() {
    let mut asked = asked();
    asked.initial = Rate::from_mbit_per_s(50);
    let case = asked.case(Rate::from_mbit_per_s(5), Span::from_millis(20));
    let exit = case.exit(1.0, Bits::new(1_000_000), Bits::new(500_000));
    assert_eq!((exit.round, exit.share_ratio, exit.lost), (0, 10.0, true));
    let crossing = case.crossing(Threshold::Rtt(1.0));
    assert_eq!((crossing.rounds, crossing.time_s, crossing.share_ratio), (0.0, 0.0, 10.0));
}

#[test]
fn texts_programs_and_plots_show_the_same() {
    let view = asked().view().unwrap();
    let (text, json) = (view.text(), view.json());
    assert!(text.contains("below 2 Mb") && text.contains("Q_T = 300kb"), "{text}");
    assert_eq!(json["cases"].as_array().unwrap().len(), 5);
    assert_eq!(json["cases"][3]["exit"]["rule"], "thres2");
    assert_eq!(json["cases"][0]["thresholds"].as_array().unwrap().len(), 5);
    assert_eq!(view.pictures().unwrap().svg().matches("<svg").count(), 11);
    // Thresholds from the input are shown beside those of the figures.
    let view = Newcomer { gamma: 1.5, ..asked() }.view().unwrap();
    assert!(view.text().contains("gamma = 1.5"));
}

#[test]
fn nonsensical_inputs_are_refused() {
    let with = |change: &dyn Fn(&mut Newcomer)| {
        let mut asked = asked();
        change(&mut asked);
        asked.view().unwrap_err().to_string()
    };
    for (error, expected) in [
        (with(&|asked| asked.gain = 1.0), "--gain: expected 1.01 to 100, found 1"),
        (with(&|asked| asked.initial = Rate::ZERO), "--initial: expected 1kbit/s"),
        (with(&|asked| asked.gamma = 0.0), "--gamma: expected 0.01 to 100, found 0"),
        (with(&|asked| asked.queue_threshold = Bits::new(0)), "--queue-threshold: expected 1b"),
        (with(&|asked| asked.buffer = Bits::new(0)), "--buffer: expected 1b"),
        (with(&|asked| asked.bottlenecks[2] = Rate::ZERO), "--bottleneck: expected 1kbit/s"),
        (with(&|asked| asked.rtt_mins[0] = Span::ZERO), "--rtt-min: expected 1us"),
        (
            with(&|asked| asked.rtt_mins = vec![Span::SECOND; 21]),
            "--bottleneck: expected at most 100 combinations",
        ),
        (with(&|asked| asked.bottlenecks.clear()), "--bottleneck: expected at most 100 combinations"),
    ] {
        assert!(error.starts_with(expected), "{error}");
    }
}
