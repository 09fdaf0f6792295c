//! Each workload does what `docs/scenarios.md` says, in the time that arithmetic predicts.

mod common;

use common::{Path, column, play, within};
use ranpace_units::{Bytes, Span, Time};

const MS: Span = Span::from_millis(1);

/// A path on which only round trips count.
fn fast(rtt: &str) -> Path<'_> {
    Path { rate: "100Gbit/s", rtt, top: "duration = \"10s\"\nsample = \"1s\"", ..Path::default() }
}

#[test]
fn a_short_transfer_takes_the_handshake_and_the_rounds_of_slow_start() {
    // Ten segments, then twice as many each round: 10, 30, 70, 150, 310 ... until the receive window's 65 536 B limit it, which
    // hold 45 segments and are doubled each round by autotuning.
    for (case, opener, window, segments, half_rounds) in [
        ("a push of one segment: SYN, SYN-ACK, data", "sender", 10, 1, 3),
        ("a push of the initial window", "sender", 10, 10, 3),
        ("one segment more is a round more", "sender", 10, 11, 5),
        ("two rounds", "sender", 10, 30, 5),
        ("three rounds", "sender", 10, 70, 7),
        ("four rounds", "sender", 10, 71, 9),
        ("a small initial window", "sender", 2, 10, 7),
        ("a fetch opens from the other side: SYN, SYN-ACK, request, data", "receiver", 10, 10, 4),
        ("a fetch of two rounds", "receiver", 10, 30, 6),
    ] {
        for cc in ["newreno", "cubic:hystart=off"] {
            let flow = format!(
                "cc = \"{cc}\"\nopener = \"{opener}\"\ninitial_window = {window}\nreceive_buffer = \"1MiB\"\n\
                 workload = {{ kind = \"fixed\", size = \"{}B\" }}",
                segments * 1_448
            );
            let result = fast("80ms").play(&[&flow]);
            let transfer = result.flows[0].transfers[0];
            let (took, expected) = (transfer.completion.unwrap(), MS * 40 * half_rounds);
            assert!(
                took >= expected && took - expected < Span::from_micros(200),
                "{case}, {cc}: {took}, not {expected}"
            );
            assert_eq!(result.flows[0].delivered, transfer.size, "{case}");
        }
    }
}

#[test]
fn a_long_transfer_takes_its_bytes_over_the_rate() {
    for (rate, size) in [("8Mbit/s", 4_000_000_u64), ("80Mbit/s", 40_000_000)] {
        let path =
            Path { rate, rtt: "10ms", queue: r#"{ kind = "droptail", limit = "1MB" }"#, ..Path::default() };
        let result =
            path.play(&[&format!("cc = \"cubic\"\nworkload = {{ kind = \"fixed\", size = \"{size}B\" }}")]);
        let bits = size as f64 * 8.0 * 1_500.0 / 1_448.0;
        let rate: ranpace_units::Rate = rate.parse().unwrap();
        let (took, expected) =
            (result.flows[0].transfers[0].completion.unwrap(), bits / rate.as_f64() + 0.015);
        assert!(within(took.as_secs_f64(), expected, 0.02), "{took}, expected {expected}");
        // Goodput is counted until the transfer was complete, not until the scenario's end.
        assert!(within(result.flows[0].goodput.as_f64(), size as f64 * 8.0 / expected, 0.02));
    }
}

#[test]
fn an_unfinished_transfer_has_no_completion() {
    let path = Path { rate: "1Mbit/s", top: "duration = \"2s\"", ..Path::default() };
    let result = path.play(&["cc = \"cubic\"\nworkload = { kind = \"fixed\", size = \"10MB\" }"]);
    assert_eq!(result.flows[0].transfers.len(), 1);
    assert_eq!(result.flows[0].transfers[0].completion, None);
}

#[test]
fn transfers_repeat_on_new_connections_with_a_pause_between() {
    // 10 segments: 1.5 round trips each, regardless of history: a new connection starts from the initial window.
    let flow = |count: &str| {
        format!(
            "cc = \"cubic\"\nworkload = {{ kind = \"repeat\", size = \"14480B\", pause = \"50ms\"{count} }}"
        )
    };
    let result = fast("100ms").play(&[&flow(", count = 7")]);
    let transfers = &result.flows[0].transfers;
    assert_eq!(transfers.len(), 7);
    for (index, transfer) in transfers.iter().enumerate() {
        let took = transfer.completion.unwrap();
        assert!(took - MS * 150 < Span::from_micros(100), "{index}: {took}");
        if index > 0 {
            let before = transfers[index - 1].start + transfers[index - 1].completion.unwrap();
            assert_eq!(transfer.start - before, MS * 50, "{index}");
        }
    }
    assert_eq!(result.flows[0].delivered.get(), 7 * 14_480);
    // Without a count, until the end: one every 200 ms.
    let endless = fast("100ms").play(&[&flow("")]);
    assert_eq!(endless.flows[0].transfers.len(), 50);
    // ... or until the flow stops; the transfer in progress is cut off where its sender had got to.
    let stopped = fast("100ms").play(&[&format!("{}\nstop = \"1010ms\"", flow(""))]);
    assert_eq!(stopped.flows[0].transfers.len(), 6);
    assert_eq!(stopped.flows[0].transfers[5].completion, None);
}

#[test]
fn a_paced_application_gets_its_rate_where_the_link_has_it() {
    for (rate, interval, expected) in
        [("2Mbit/s", "10ms", 2e6), ("2Mbit/s", "100ms", 2e6), ("40Mbit/s", "10ms", 9.65e6)]
    {
        let path = Path { top: "duration = \"21s\"\nwarmup = \"1s\"", ..Path::default() };
        let flow = format!(
            "cc = \"cubic\"\nworkload = {{ kind = \"paced\", rate = \"{rate}\", interval = \"{interval}\" }}"
        );
        let result = path.play(&[&flow]);
        let found = result.flows[0].goodput.as_f64();
        assert!(within(found, expected, 0.02), "{rate} every {interval}: {found}");
    }
}

#[test]
fn pages_come_at_their_interval_on_one_connection() {
    let path =
        Path { rate: "100Mbit/s", top: "duration = \"20500ms\"\nsample = \"50ms\"", ..Path::default() };
    let flow = |more: &str| {
        format!(
            "cc = \"cubic\"\nworkload = {{ kind = \"web\", page = \"100KB\", interval = \"1s\" }}\n{more}"
        )
    };
    let result = path.play(&[&flow("")]);
    let transfers = &result.flows[0].transfers;
    assert_eq!(transfers.len(), 21);
    for (index, transfer) in transfers.iter().enumerate() {
        assert_eq!(transfer.start, Time::from_secs(index as u64));
    }
    // 70 segments: a handshake and 3 rounds at first. After idle time the window is back at its initial value: no handshake.
    let took = |index: usize| transfers[index].completion.unwrap();
    assert!((MS * 140..MS * 160).contains(&took(0)), "{}", took(0));
    assert!((1..21).all(|index| (MS * 100..MS * 120).contains(&took(index))), "{transfers:?}");
    // Without validation after idle time the window persists.
    let kept = path.play(&[&flow("slow_start_after_idle = false")]);
    assert!(kept.flows[0].transfers[20].completion.unwrap() < MS * 35, "{:?}", kept.flows[0].transfers[20]);
}

#[test]
fn constant_bit_rate_is_constant() {
    let path = Path { top: "duration = \"10s\"\nwarmup = \"1s\"\nsample = \"500ms\"", ..Path::default() };
    let flow = "transport = \"udp\"\npacket = \"1000B\"\nworkload = { kind = \"cbr\", rate = \"4Mbit/s\" }";
    let result = path.play(&[flow]);
    let udp = &result.flows[0];
    assert_eq!((udp.sent_packets, udp.dropped_packets, udp.retransmitted_packets), (4_500, 0, 0));
    // The rate counts headers; the payload is 972 B of 1000.
    assert!(within(udp.goodput.as_f64(), 4e6 * 0.972, 0.001), "{}", udp.goodput);
    assert_eq!(udp.queueing_delay.min, udp.queueing_delay.max);
    assert_eq!(udp.queueing_delay.mean, Span::from_micros(800));
    assert_eq!(udp.jitter_ewma, Span::ZERO);
    assert!(column(udp, "goodput_bit_s")[2..].iter().all(|rate| within(*rate, 4e6 * 0.972, 0.001)));
}

#[test]
fn bursts_have_their_mean_and_vary() {
    let path = Path {
        rate: "200Mbit/s",
        top: "duration = \"120s\"\nsample = \"100ms\"\nseed = 3",
        ..Path::default()
    };
    let flow = "transport = \"udp\"\nworkload = { kind = \"ppbp\", rate = \"2Mbit/s\", active_mean = 5.0 }";
    let result = path.play(&[flow]);
    let sent = result.flows[0].sent_packets as f64 * 12_000.0 / 120.0;
    assert!(within(sent, 10e6, 0.25), "{sent}"); // long-range dependence averages out slowly
    // The number of concurrent bursts is Poisson: its standard deviation is the root of its mean.
    let rates: Vec<f64> =
        column(&result.flows[0], "goodput_bit_s").iter().map(|rate| rate / 2e6 * 1_500.0 / 1_472.0).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
    assert!((0.5..1.2).contains(&(variance.sqrt() / 5.0_f64.sqrt())), "{mean} {variance}");
}

#[test]
fn flows_start_stop_and_stagger_when_they_are_told() {
    let path = Path { rate: "1Gbit/s", top: "duration = \"10s\"\nsample = \"100ms\"", ..Path::default() };
    let result = path.play(&[
        "receive_buffer_max = \"64KiB\"\nname = \"bulk\"\ncc = \"cubic\"\nstart = \"1s\"\nstop = \"4s\"\ncount = 3\nstagger = \"1s\"",
    ]);
    assert_eq!(result.flows.len(), 3);
    for (index, flow) in result.flows.iter().enumerate() {
        assert_eq!(flow.name, format!("bulk.{}", index + 1));
        let sent = column(flow, "sent_bytes");
        let first = sent.iter().position(|bytes| *bytes > 0.0).unwrap();
        // Samples are every 100 ms; the first data leave after the handshake.
        assert_eq!(first, 10 * (index + 1), "{}", flow.name);
        // Written data are not sent after the stop.
        assert_eq!(sent[39], sent[99], "{}", flow.name);
        assert_eq!(flow.measured, Span::from_secs(3 - index as u64));
    }
}

#[test]
fn figures_are_counted_from_the_end_of_the_warmup() {
    let run = |top: &str| Path { top, ..Path::default() }.play(&[r#"cc = "cubic""#]);
    let (all, part) = (run("duration = \"10s\""), run("duration = \"10s\"\nwarmup = \"4s\""));
    // The run is the same ...
    assert_eq!(format!("{:?}", all.flows[0].series), format!("{:?}", part.flows[0].series));
    // ... and the part equals the whole less the series' value at 4 s.
    let before = column(&all.flows[0], "delivered_bytes")[39];
    assert_eq!(part.flows[0].delivered + Bytes::new(before as u64), all.flows[0].delivered);
    assert_eq!((part.measured_from, part.flows[0].measured), (Time::from_secs(4), Span::from_secs(6)));
    assert_eq!(part.links[0].capacity.unwrap().get(), 10_000_000 / 8 * 6);
}

#[test]
fn changes_of_rate_and_delay_take_effect() {
    let path = Path { rtt: "20ms", top: "duration = \"9s\"\nsample = \"100ms\"", ..Path::default() };
    let mut text = path.text(&[
        "transport = \"udp\"\nworkload = { kind = \"cbr\", rate = \"50Mbit/s\" }",
        "cc = \"newreno\"\nworkload = { kind = \"paced\", rate = \"10kbit/s\" }",
    ]);
    text = text.replace(r#"{ kind = "droptail", limit = "1000 packets" }"#, r#"{ kind = "fq_codel" }"#);
    text += "[[change]]\nat = \"3s\"\nlink = \"down\"\nrate = \"40Mbit/s\"\n";
    text += "[[change]]\nat = \"6s\"\nlink = \"down\"\nrate = \"5Mbit/s\"\ndelay = \"100ms\"\n";
    let result = play(&text);
    let departed = result.links[0].series.get("departed_bit_s").unwrap();
    for (from, to, rate) in [(5, 30, 10e6), (32, 60, 40e6), (62, 90, 5e6)] {
        let mean = departed[from..to].iter().sum::<f64>() / (to - from) as f64;
        assert!(within(mean, rate, 0.01), "{mean} between {from} and {to}");
    }
    assert_eq!(
        result.links[0].capacity.unwrap().get(),
        (3 * 10_000_000 + 3 * 40_000_000 + 3 * 5_000_000) / 8
    );
    let rtt = column(&result.flows[1], "rtt_last_s");
    assert!(
        (0.020..0.030).contains(&rtt[55]) && (0.110..0.125).contains(&rtt[85]),
        "{} {}",
        rtt[55],
        rtt[85]
    );
}
