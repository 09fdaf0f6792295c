use super::*;
use crate::ThesisTable;

const SELECTED: Pair = TABLE_PAIRS[2];

fn path(rtt_ms: u64, queue_threshold: u64) -> Path {
    Path {
        rtt: Span::from_millis(rtt_ms),
        queue_threshold: Bits::new(queue_threshold),
        buffer: Bits::new(48_000_000),
    }
}

fn asked(pairs: Vec<Pair>, path: Path, step: Rate) -> Startup {
    Startup { pairs, path, step, ..ThesisTable::parameters() }
}

fn of_gain(gain: f64) -> Pair {
    Pair { gain, initial: Rate::from_mbit_per_s(1) }
}

fn mbit(rate: u64) -> Rate {
    Rate::from_mbit_per_s(rate)
}

/// The last three test vectors of `cdbev2.md`, section 10.
#[test]
fn single_bottlenecks_are_those_of_the_specification() {
    for (bottleneck, rounds, queue_mb, lost) in
        [(500, 8, 0.678, false), (231, 8, 81.38, true), (230, 7, 0.512, false)]
    {
        let outcome = SELECTED.over(mbit(bottleneck), &path(300, 200_000));
        assert_eq!((outcome.rounds, outcome.lost), (rounds, lost), "{bottleneck}");
        let places = if queue_mb < 10.0 { 5e-4 } else { 5e-3 };
        assert!((outcome.queue_bits / 1e6 - queue_mb).abs() < places, "{bottleneck}: {outcome:?}");
        assert!((outcome.delay_s * bottleneck as f64 * 1e6 - outcome.queue_bits).abs() < 1e-3);
    }
}

/// B = BW(t_0) needs one round, B below it none.
#[test]
fn rounds_begin_at_the_initial_bandwidth() {
    let rounds = |bottleneck| SELECTED.over(Rate::from_bits_per_s(bottleneck), &path(300, 0)).rounds;
    assert_eq!([999_999, 1_000_000, 2_174_999, 2_175_000].map(rounds), [0, 1, 1, 2]);
    // Powers of two are reached exactly, and have to be exceeded.
    assert_eq!(of_gain(2.0).over(mbit(256), &path(300, 0)).rounds, 9);
    // Matches a single logarithm, except at the steps.
    for bottleneck in [3, 77, 230, 231, 499] {
        let found = SELECTED.over(mbit(bottleneck), &path(300, 0)).rounds;
        let expected = libm::floor(libm::log(bottleneck as f64) / libm::log(2.175)) + 1.0;
        assert_eq!(f64::from(found), expected, "{bottleneck}");
    }
}

/// The second table of `cdbev2.md`, section 7.1: the selected pair under other assumptions.
#[test]
fn other_assumptions_give_other_means() {
    for (case, path, step, small, large, loss) in [
        ("as the text says", path(300, 1_000_000), 1_000_000, "15.54", "36.19", "33.62"),
        ("without a threshold", path(300, 0), 1_000_000, "13.36", "34.01", "31.34"),
        ("a finer grid", path(300, 200_000), 100_000, "13.71", "34.56", "31.99"),
        ("middle of the range", path(160, 1_000_000), 1_000_000, "9.30", "20.32", "0.00"),
        ("shortest RTT", path(20, 1_000_000), 1_000_000, "3.07", "4.44", "0.00"),
    ] {
        let view = asked(vec![SELECTED], path, Rate::from_bits_per_s(step)).view().unwrap();
        let ranges = view.pairs[0].ranges();
        let two = |value: f64| format!("{value:.2}");
        let found = (
            two(ranges[0].mean_queue_bits / 1e6),
            two(ranges[1].mean_queue_bits / 1e6),
            two(ranges[1].loss * 100.0),
        );
        assert_eq!(found, (small.to_owned(), large.to_owned(), loss.to_owned()), "{case}");
        if path.rtt == Span::from_millis(160) {
            assert_eq!(format!("{:.1}", ranges[1].max_queue_bits / 1e6), "45.3", "largest queue at 160 ms");
        }
    }
}

/// `cdbev2.md`, section 7.2, rows 1 and 2 (Fig. 7.3).
#[test]
fn loss_begins_at_another_bottleneck_for_each_gain_and_never_below_150() {
    let all = |gain, threshold| {
        let view = asked(vec![of_gain(gain)], path(300, threshold), mbit(1)).view().unwrap();
        loss_ranges(&view.pairs[0].outcomes)
            .into_iter()
            .map(|(from, to)| (from.bits_per_s() / 1_000_000, to.bits_per_s() / 1_000_000))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(2.0, 200_000), [(256, 353)]);
    assert_eq!(all(2.175, 200_000), [(231, 342)]);
    assert_eq!(all(2.77, 200_000), [(164, 293), (452, 500)]);
    assert_eq!(all(2.88, 200_000), [(199, 412)]);
    for gain in [2.0, 2.77, 2.88] {
        assert!(all(gain, 1_000_000).iter().all(|(from, _)| *from > 150), "{gain}");
    }
}

/// Row 5: the longest delay without a loss, 48 Mb at 1 Mbit/s.
#[test]
fn a_full_buffer_takes_48_s_at_1_mbit_s() {
    assert_eq!(path(300, 0).buffer.as_f64() / mbit(1).as_f64(), 48.0);
}

#[test]
fn ranges_are_two_only_if_both_have_bottlenecks_of_their_own() {
    let ranges = |from, to| {
        let asked = Startup { from: mbit(from), to: mbit(to), ..ThesisTable::parameters() };
        let ranges = asked.view().unwrap().pairs[0].ranges();
        ranges.iter().map(|range| range.bottlenecks).collect::<Vec<_>>()
    };
    assert_eq!(ranges(1, 500), [150, 351]);
    assert_eq!(ranges(1, 150), [150]);
    assert_eq!(ranges(150, 500), [351]);
    assert_eq!(ranges(231, 231), [1]);
    assert_eq!(ranges(149, 151), [2, 2]);
}

#[test]
fn texts_programs_and_plots_show_the_same() {
    let mut asked = asked(vec![SELECTED], path(300, 1_000_000), mbit(1));
    asked.each = true;
    let view = asked.view().unwrap();
    let (text, json) = (view.text(), view.json());
    assert!(text.contains("15.54") && text.contains("33.62") && text.contains("lost at (Mbit/s)"), "{text}");
    assert_eq!(json["pairs"][0]["rows"].as_array().unwrap().len(), 500);
    assert_eq!(json["pairs"][0]["lost_bit_s"][0], serde_json::json!([231_000_000, 348_000_000]));
    assert_eq!(text.lines().filter(|line| line.ends_with("yes")).count(), 118);
    let pictures = view.pictures().unwrap();
    assert_eq!(pictures.svg().matches("<svg").count(), 5);
    assert_eq!(shown_ranges(&[]), "none");
}

#[test]
fn nonsensical_inputs_are_refused() {
    let good = asked(vec![SELECTED], path(300, 0), mbit(1));
    let with = |change: &dyn Fn(&mut Startup)| {
        let mut asked = good.clone();
        change(&mut asked);
        asked.view().unwrap_err().to_string()
    };
    for (error, expected) in [
        (with(&|asked| asked.from = Rate::ZERO), "--from: expected 1kbit/s to 1000Gbit/s, found 0bit/s"),
        (with(&|asked| asked.to = mbit(0)), "--to: expected 1kbit/s to 1000Gbit/s, found 0bit/s"),
        (with(&|asked| asked.from = mbit(501)), "--to: expected --from (501Mbit/s) or more, found 500Mbit/s"),
        (with(&|asked| asked.step = Rate::ZERO), "--step: expected more than zero"),
        (
            with(&|asked| asked.step = Rate::from_bits_per_s(1)),
            "--step: expected a step that gives at most 10000 rows",
        ),
        (with(&|asked| asked.pairs = vec![of_gain(1.0)]), "--gain: expected 1.01 to 100, found 1"),
        (with(&|asked| asked.pairs = vec![of_gain(f64::NAN)]), "--gain: expected 1.01 to 100, found NaN"),
        (with(&|asked| asked.pairs = vec![SELECTED; 13]), "--gain: expected at most 12 pairs"),
        (with(&|asked| asked.pairs[0].initial = Rate::ZERO), "--initial: expected 1kbit/s"),
        (with(&|asked| asked.path.rtt = Span::ZERO), "--rtt: expected 1us to 100s, found 0s"),
        (with(&|asked| asked.path.buffer = Bits::new(0)), "--buffer: expected 1b to 1000Gb, found 0b"),
        (
            with(&|asked| asked.path.queue_threshold = Bits::new(u64::MAX)),
            "--queue-threshold: expected 0b to 1000Gb",
        ),
    ] {
        assert!(error.starts_with(expected), "{error}");
    }
}
