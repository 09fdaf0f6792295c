//! Loss recovery end to end: which mechanism repairs which loss, and what it costs.

mod common;

use common::{Path, column, play, within};
use ranpace_sim::FlowResult;
use ranpace_units::Span;

const MS: Span = Span::from_millis(1);

/// A transfer of 200 segments over 10 Mbit/s and 40 ms with these packets lost (0 is the SYN, 1 the first data segment).
fn transfer(lost: &[u32], more: &str) -> FlowResult {
    let loss = format!("loss = {{ kind = \"list\", packets = {lost:?} }}");
    let path = Path { link: &loss, top: "duration = \"20s\"\nsample = \"10ms\"", ..Path::default() };
    let flow = format!(
        "cc = \"newreno\"\nreceive_buffer = \"1MiB\"\nworkload = {{ kind = \"fixed\", size = \"{}B\" }}\n{more}",
        200 * if more == "timestamps = false" { 1_460 } else { 1_448 }
    );
    let result = path.play(&[&flow]);
    let flow = result.flows[0].clone();
    assert_eq!(flow.dropped_packets, lost.len() as u64, "{lost:?}");
    assert!(flow.transfers[0].completion.is_some(), "{lost:?}");
    flow
}

fn took(flow: &FlowResult) -> Span {
    flow.transfers[0].completion.unwrap_or(Span::MAX)
}

#[test]
fn lost_segments_are_retransmitted_once_and_in_time() {
    let clean = took(&transfer(&[], ""));
    // (case, lost, retransmitted, timeouts, extra time at most)
    for (case, lost, again, timeouts, extra) in [
        ("one in the middle: fast recovery", &[60][..], 1, 0, 150),
        ("three of one window: one recovery", &[60, 63, 66][..], 3, 0, 200),
        ("ten in a row", &[60, 61, 62, 63, 64, 65, 66, 67, 68, 69][..], 10, 0, 250),
        ("every second one of ten", &[60, 62, 64, 66, 68, 70, 72, 74, 76, 78][..], 10, 0, 250),
        ("the first data segment: half of the initial window from then on", &[1][..], 1, 0, 500),
        // A probe after two round trips (of 190 ms, with the queue) repairs the last segment, and the window is reduced.
        ("the last one: a tail-loss probe", &[200][..], 1, 0, 450),
        // The probe resends the last one; its acknowledgement shows that the others are missing.
        ("the last three: a probe, then fast recovery", &[198, 199, 200][..], 3, 0, 550),
    ] {
        for more in ["", "timestamps = false", "ack_every = 1"] {
            let flow = transfer(lost, more);
            let late = took(&flow) - clean;
            assert_eq!(
                (flow.retransmitted_packets, flow.timeouts, flow.undone),
                (again, timeouts, 0),
                "{case}, {more}"
            );
            assert!(late < MS * extra, "{case}, {more}: {late} later");
        }
    }
}

#[test]
fn without_sack_holes_take_round_trips_and_the_tail_a_timeout() {
    let stack = "stack = \"ns-3.26\"\ninitial_window = 10";
    let clean = took(&transfer(&[], stack));
    // (case, lost, timeouts, minimum and maximum extra time): the queue keeps the link busy while holes are filled.
    for (case, lost, timeouts, least, most) in [
        ("one in the middle", &[60][..], 0, 0, 250),
        ("three of one window", &[60, 63, 66][..], 0, 0, 600),
        ("five of one window", &[60, 62, 64, 66, 68][..], 0, 0, 900),
        // Limited transmit and three duplicates need four segments after the hole.
        ("the last one, after a second", &[200][..], 1, 900, 1_300),
        ("the last three, after a second", &[198, 199, 200][..], 1, 900, 1_500),
    ] {
        let flow = transfer(lost, stack);
        let late = took(&flow) - clean;
        assert_eq!(flow.timeouts, timeouts, "{case}");
        assert!(flow.retransmitted_packets >= lost.len() as u64, "{case}");
        assert!((MS * least..=MS * most).contains(&late), "{case}: {late} later");
    }
}

#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    // RACK: a segment sent after the retransmission has arrived. The retransmission of packet 60 is the first packet after the
    // window in flight; its number is found by trying: the run with one more retransmission.
    let once = transfer(&[60], "");
    assert_eq!(once.retransmitted_packets, 1);
    let found = (61..200).find_map(|second| {
        let flow = transfer(&[60, second], "");
        let series = column(&flow, "retransmitted_packets");
        let first = series.iter().position(|count| *count >= 1.0).unwrap_or(usize::MAX);
        let again = series.iter().position(|count| *count >= 2.0).unwrap_or(usize::MAX);
        // A second recovery for another packet would begin right after the first, or not delay delivery so long.
        let delivered = column(&flow, "delivered_bytes");
        let held = again < delivered.len() && delivered[again] == 59.0 * 1_448.0 && again > first + 3;
        held.then_some(flow)
    });
    let flow = found.expect("one of them is the retransmission");
    assert_eq!((flow.retransmitted_packets, flow.timeouts), (2, 0));
}

#[test]
fn a_lost_syn_costs_the_initial_timeout_and_two_the_initial_window() {
    let (clean, lost, twice) = (transfer(&[], ""), transfer(&[0], ""), transfer(&[0, 1], ""));
    let late = took(&lost) - took(&clean);
    assert!((Span::SECOND..Span::SECOND + MS * 60).contains(&late), "{late}");
    // As in Linux: SYNs are a second apart, and the window begins at one segment after the second loss.
    assert_eq!(column(&lost, "cwnd_bytes")[104], 14_480.0);
    assert_eq!(column(&twice, "cwnd_bytes")[204], 1_448.0);
    let late = took(&twice) - took(&clean);
    assert!((Span::SECOND * 2 + MS * 80..Span::SECOND * 2 + MS * 250).contains(&late), "{late}");
}

#[test]
fn a_timeout_repairs_a_whole_window_and_starts_slowly() {
    // All of the third round and the probe are lost: only the timer is left.
    let lost: Vec<u32> = (31..=71).collect();
    let flow = transfer(&lost, "");
    assert!(flow.timeouts >= 1, "{}", flow.timeouts);
    assert_eq!(flow.undone, 0);
    let least = column(&flow, "cwnd_bytes").iter().skip(10).copied().fold(f64::MAX, f64::min);
    assert!(least <= 2.0 * 1_448.0, "{least}");
    assert_eq!(flow.delivered.get(), 200 * 1_448);
}

#[test]
fn timeouts_back_off() {
    // All of the second round, the probe, and five retransmissions are lost: each waits twice as long as the one before.
    let lost: Vec<u32> = (11..=36).collect();
    let flow = transfer(&lost, "");
    let counts = column(&flow, "retransmitted_packets");
    let times = column(&flow, "time_s");
    let at: Vec<f64> =
        counts.windows(2).zip(times).filter(|(pair, _)| pair[1] > pair[0]).map(|(_, time)| *time).collect();
    let gaps: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(flow.timeouts >= 4, "{}", flow.timeouts);
    let doubled = gaps.windows(2).filter(|pair| within(pair[1], 2.0 * pair[0], 0.1)).count();
    assert!(doubled >= 2, "{gaps:?}");
}

/// A bulk flow over a path whose delay increases for a while: nothing is lost.
fn step(delay: &str, more: &str) -> FlowResult {
    let path = Path {
        rate: "20Mbit/s",
        top: "duration = \"12s\"\nsample = \"10ms\"",
        queue: r#"{ kind = "droptail", limit = "unlimited" }"#,
        ..Path::default()
    };
    let flow =
        format!("cc = \"newreno\"\nreceive_buffer = \"64KiB\"\nreceive_buffer_max = \"64KiB\"\n{more}");
    let text =
        format!("{}\n[[change]]\nat = \"5s\"\nlink = \"up\"\ndelay = \"{delay}\"\n", path.text(&[&flow]));
    let flow = play(&text).flows[0].clone();
    assert_eq!(flow.dropped_packets, 0);
    flow
}

#[test]
fn a_spurious_timeout_is_taken_back() {
    for (case, more) in [("Eifel by timestamps", ""), ("F-RTO or DSACK without", "timestamps = false")] {
        let flow = step("700ms", more);
        assert!(flow.timeouts >= 1, "{case}");
        assert!(flow.undone >= 1, "{case}: {} timeouts", flow.timeouts);
        // The window is what it was before: Reno had no reason to reduce it permanently.
        let windows = column(&flow, "cwnd_bytes");
        let (before, after) = (windows[490], windows[1_150]);
        assert!(after >= 0.9 * before, "{case}: {before} before, {after} after");
    }
}

#[test]
fn a_small_step_of_delay_is_no_timeout() {
    // The RTO is the smoothed RTT and at least 200 ms more.
    let flow = step("150ms", "");
    assert_eq!(flow.timeouts, 0);
    assert_eq!(flow.undone, flow.undone.min(1));
}

#[test]
fn reordering_does_not_make_the_window_collapse() {
    let play = |link: &str| {
        let path = Path { link, rtt: "60ms", top: "duration = \"20s\"\nwarmup = \"5s\"", ..Path::default() };
        // A window of two pipes: the queue never overflows.
        path.play(&["cc = \"cubic\"\nreceive_buffer_max = \"150KB\""]).flows[0].clone()
    };
    let clean = play("").goodput.as_f64();
    for (case, link, least) in [
        (
            "held back by 5 ms, a twelfth of the RTT",
            "reorder = { probability = 0.01, delay = \"5ms\" }",
            0.97,
        ),
        (
            "held back by 14 ms, just below a quarter of the RTT",
            "reorder = { probability = 0.01, delay = \"14ms\" }",
            0.95,
        ),
        ("held back by half of the RTT", "reorder = { probability = 0.01, delay = \"30ms\" }", 0.90),
    ] {
        let flow = play(link);
        assert_eq!((flow.dropped_packets, flow.timeouts), (0, 0), "{case}");
        assert!(flow.goodput.as_f64() > least * clean, "{case}: {} of {clean}", flow.goodput);
        let spurious = flow.retransmitted_packets as f64 / flow.sent_packets as f64;
        assert!(spurious < 0.002, "{case}: {spurious} sent again for nothing");
    }
}

#[test]
fn jitter_keeps_the_order_and_costs_nothing() {
    let path =
        Path { link: "jitter = \"15ms\"", top: "duration = \"10s\"\nwarmup = \"2s\"", ..Path::default() };
    let flow = path.play(&["cc = \"cubic\""]).flows[0].clone();
    assert_eq!((flow.retransmitted_packets, flow.timeouts), (0, 0));
    assert!(flow.goodput.as_f64() > 0.99 * 10e6 * 1_448.0 / 1_500.0, "{}", flow.goodput);
}

#[test]
fn the_receive_window_bounds_what_is_in_flight() {
    for window in [10_000.0, 50_000.0, 200_000.0] {
        let path = Path {
            rate: "1Gbit/s",
            rtt: "100ms",
            top: "duration = \"5s\"\nsample = \"10ms\"",
            ..Path::default()
        };
        let flow =
            format!("cc = \"cubic\"\nreceive_buffer = \"{window}B\"\nreceive_buffer_max = \"{window}B\"");
        let result = path.play(&[&flow]);
        let flow = &result.flows[0];
        let most = column(flow, "in_flight_bytes")
            .iter()
            .copied()
            .filter(|bytes| !bytes.is_nan())
            .fold(0.0, f64::max);
        assert!(most <= window && most > window - 1_448.0, "{window}: {most}");
        assert!(within(flow.goodput.as_f64(), window * 8.0 / 0.100, 0.15), "{window}: {}", flow.goodput);
        // Validation keeps the window from growing far beyond its use.
        let widest = column(flow, "cwnd_bytes").iter().copied().fold(0.0, f64::max);
        assert!(widest <= 2.0 * window + 20.0 * 1_448.0, "{window}: {widest}");
    }
}

#[test]
fn a_gone_link_is_waited_for_and_used_when_it_is_back() {
    // 3 s with hardly any rate.
    let path = Path {
        rate: "10Mbit/s",
        top: "duration = \"15s\"\nsample = \"100ms\"",
        queue: r#"{ kind = "droptail", limit = "100KB" }"#,
        ..Path::default()
    };
    let text = path.text(&["cc = \"cubic\""])
        + "[[change]]\nat = \"5s\"\nlink = \"down\"\nrate = \"1bit/s\"\n[[change]]\nat = \"8s\"\nlink = \"down\"\nrate = \"10Mbit/s\"\n";
    let result = play(&text);
    let goodput = column(&result.flows[0], "goodput_bit_s");
    assert!(goodput[52..80].iter().all(|rate| *rate == 0.0));
    // Queued packets arrive at once; a second later the link is full again.
    let after = goodput[90..149].iter().sum::<f64>() / 59.0;
    assert!(after > 0.93 * 10e6 * 1_448.0 / 1_500.0, "{after}");
}
