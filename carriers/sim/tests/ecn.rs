//! Explicit congestion notification: marks instead of drops, and the response to them.

mod common;

use common::Path;
use ranpace_sim::RunResult;

fn over(queue: &str, cc: &str, ecn: bool) -> RunResult {
    let path =
        Path { rate: "20Mbit/s", queue, top: "duration = \"30s\"\nwarmup = \"5s\"", ..Path::default() };
    path.play(&[&format!("cc = \"{cc}\"\necn = {ecn}")])
}

#[test]
fn marks_take_the_place_of_drops() {
    for queue in ["codel", "fq_codel", "pie"] {
        for cc in ["newreno", "cubic"] {
            let queue = format!(r#"{{ kind = "{queue}", ecn = true }}"#);
            let result = over(&queue, cc, true);
            let (flow, link) = (&result.flows[0], &result.links[0]);
            assert!(flow.marked_packets > 0, "{cc} over {queue}");
            assert_eq!(flow.marked_packets, link.marked_packets, "{cc} over {queue}");
            assert_eq!((flow.dropped_packets, flow.retransmitted_packets), (0, 0), "{cc} over {queue}");
            assert!(link.utilisation.unwrap() > 0.80, "{cc} over {queue}: {:?}", link.utilisation);
        }
    }
}

#[test]
fn a_mark_is_answered_as_a_loss_would_be() {
    for cc in ["newreno", "cubic"] {
        let marked = over(r#"{ kind = "codel", ecn = true }"#, cc, true);
        let dropped = over(r#"{ kind = "codel", ecn = false }"#, cc, false);
        assert_eq!(dropped.flows[0].marked_packets, 0);
        assert!(dropped.flows[0].dropped_packets > 0);
        // The queue is as long either way, and the link as well used.
        let delay = |result: &RunResult| result.links[0].queueing_delay.mean.as_secs_f64();
        let ratio = delay(&marked) / delay(&dropped);
        assert!((0.8..1.35).contains(&ratio), "{cc}: {ratio}");
        let rate = marked.flows[0].goodput.ratio(dropped.flows[0].goodput);
        assert!((0.98..1.1).contains(&rate), "{cc}: {rate}");
    }
}

#[test]
fn flows_without_ecn_lose_packets_instead() {
    let result = over(r#"{ kind = "codel", ecn = true }"#, "cubic", false);
    assert_eq!(result.flows[0].marked_packets, 0);
    assert!(result.flows[0].dropped_packets > 0);
}

#[test]
fn a_threshold_keeps_the_queue_short() {
    // A mark is answered once per round trip; Reno's window swings between the pipe plus the marking threshold and half of that.
    let queue = r#"{ kind = "droptail", limit = "1000 packets", ecn = "100KB" }"#;
    let (marked, deaf) = (over(queue, "newreno", true), over(queue, "newreno", false));
    assert_eq!(marked.flows[0].dropped_packets, 0);
    let highest = |result: &RunResult| {
        let queued = result.links[0].series.get("queued_bytes").unwrap();
        queued[50..].iter().copied().fold(0.0, f64::max)
    };
    assert!((90_000.0..115_000.0).contains(&highest(&marked)), "{}", highest(&marked));
    assert!(highest(&deaf) > 500_000.0, "{}", highest(&deaf));
}

#[test]
fn one_mark_reduces_the_window_once() {
    // A burst of 60 segments in slow start over a threshold of 10: many marks, one reduction per round trip.
    let path = Path {
        queue: r#"{ kind = "droptail", limit = "1000 packets", ecn = "15KB" }"#,
        top: "duration = \"2s\"\nsample = \"10ms\"",
        ..Path::default()
    };
    let result = path.play(&["cc = \"newreno\"\necn = true"]);
    let flow = &result.flows[0];
    assert!(flow.marked_packets > 10, "{}", flow.marked_packets);
    let thresholds = flow.series.get("ssthresh_bytes").unwrap();
    let reductions =
        thresholds.windows(2).filter(|pair| pair[1] < pair[0] || (pair[0].is_nan() && !pair[1].is_nan()));
    // 40 ms and a queue: at most one in each of the 40 round trips or so.
    let reductions = reductions.count();
    assert!((2..40).contains(&reductions), "{reductions}");
    assert_eq!(flow.retransmitted_packets, 0);
}

/// Goodput in Mbit/s, and the 95th percentile of the time in the bottleneck in milliseconds.
fn figures(result: &RunResult, flow: usize) -> (f64, f64) {
    let flow = &result.flows[flow];
    (flow.goodput.as_f64() / 1e6, flow.queueing_delay.p95.as_secs_f64() * 1e3)
}

const L4S: Path<'_> = Path {
    rate: "50Mbit/s",
    rtt: "20ms",
    queue: r#"{ kind = "dualpi2" }"#,
    link: "",
    top: "duration = \"30s\"\nwarmup = \"10s\"",
};

#[test]
fn prague_fills_a_link_with_a_queue_of_milliseconds() {
    for (case, queue) in [
        ("dualpi2", r#"{ kind = "dualpi2" }"#),
        ("a threshold in CoDel", r#"{ kind = "codel", ecn = true, ce_threshold = "1ms" }"#),
        ("a threshold in FQ-CoDel", r#"{ kind = "fq_codel", ecn = true, ce_threshold = "1ms" }"#),
        ("a size", r#"{ kind = "droptail", limit = "1000 packets", ecn = "6250B" }"#),
    ] {
        let result = Path { queue, ..L4S }.play(&["cc = \"prague\""]);
        let (_, delay) = figures(&result, 0);
        let (flow, link) = (&result.flows[0], &result.links[0]);
        assert!(delay <= 3.0, "{case}: {delay} ms");
        assert!(link.utilisation.unwrap() >= 0.95, "{case}: {:?}", link.utilisation);
        assert_eq!(flow.dropped_packets, 0, "{case}");
        assert!(flow.marked_packets > 100 && flow.marked_packets == link.marked_packets, "{case}");
    }
}

#[test]
fn prague_and_cubic_share_a_dualpi2_link() {
    let result = Path { rtt: "30ms", top: "duration = \"60s\"\nwarmup = \"20s\"", ..L4S }
        .play(&["cc = \"prague\"", "cc = \"cubic\"\necn = true"]);
    let ((prague, short), (cubic, long)) = (figures(&result, 0), figures(&result, 1));
    // CUBIC's round trip is longer by the target of its queue.
    assert!((0.5..3.0).contains(&(prague / cubic)), "{prague} and {cubic} Mbit/s");
    assert!(short < long / 3.0, "{short} and {long} ms");
    assert!(result.links[0].utilisation.unwrap() > 0.95, "{:?}", result.links[0].utilisation);
}

#[test]
fn without_accurate_feedback_prague_is_a_newreno_flow() {
    let old = Path { queue: r#"{ kind = "codel", ecn = true }"#, ..L4S };
    let prague = old.play(&["cc = \"prague\"\necn = true"]);
    let newreno = old.play(&["cc = \"newreno\"\necn = true"]);
    assert_eq!(prague.flows[0].goodput, newreno.flows[0].goodput);
    assert_eq!(prague.flows[0].marked_packets, newreno.flows[0].marked_packets);
}

#[test]
fn quic_counts_marks_as_tcp_does() {
    for rtt in ["20ms", "50ms"] {
        let path = Path { rtt, ..L4S };
        let [tcp, quic] = ["", "transport = \"quic\""]
            .map(|keys| figures(&path.play(&[&format!("cc = \"prague\"\n{keys}")]), 0));
        assert!((quic.0 / tcp.0 - 1.0).abs() < 0.1, "{rtt}: {quic:?} and {tcp:?}");
        assert!(quic.1 < 6.0, "{rtt}: {quic:?}");
    }
}

/// A flow over a trace for a minute, of which the first ten seconds do not count. `trace` is the link's keys for it.
fn over_trace(trace: &str, queue: &str, cc: &str) -> RunResult {
    let path = Path { rate: "48Mbit/s", queue, top: "duration = \"60s\"\nwarmup = \"10s\"", ..L4S };
    let text = path.text(&[&format!("cc = \"{cc}\"")]);
    common::play(&text.replacen("rate = \"48Mbit/s\"", trace, 1))
}

#[test]
fn l4span_fills_a_steady_trace_with_a_short_queue() {
    let result = over_trace("trace = \"steady\"\nscale = 2.0", r#"{ kind = "l4span" }"#, "prague");
    let (goodput, delay) = figures(&result, 0);
    assert!(result.links[0].utilisation.unwrap() >= 0.98, "{:?}", result.links[0].utilisation);
    assert!(delay <= 13.0, "{delay} ms at {goodput} Mbit/s");
}

/// Measured: 0.77 of CUBIC's goodput (8.7 of 11.4 Mbit/s) with 1.6 % of its delay (28 of 1798 ms).
#[test]
fn l4span_keeps_the_queue_of_a_changing_link_short() {
    let figures = |queue, cc| figures(&over_trace("trace = \"cellular\"", queue, cc), 0);
    let prague = figures(r#"{ kind = "l4span" }"#, "prague");
    let cubic = figures(r#"{ kind = "droptail", limit = "1000 packets" }"#, "cubic");
    assert!(prague.0 >= 0.75 * cubic.0 && prague.1 <= 0.025 * cubic.1, "{prague:?} and {cubic:?}");
}

#[test]
fn marks_of_a_cells_queue_reach_the_sender_and_are_counted() {
    let cell = |aqm: &str, cc: &str| {
        common::play(&format!(
            "duration = \"8s\"\nwarmup = \"2s\"\n[[link]]\nname = \"wire\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"1Gbit/s\"\n\
             delay = \"5ms\"\nduplex = true\n[[cell]]\nname = \"cell\"\nhost = \"mast\"\npreset = \"lte\"\n{aqm}\n\
             [[user]]\nname = \"phone\"\nposition = [200, 0]\n[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"{cc}\"\n"
        ))
    };
    for aqm in ["l4span", "dualpi2"] {
        let marked = cell(&format!("aqm = \"{aqm}\""), "prague");
        let plain = cell("", "cubic");
        assert!(marked.flows[0].marked_packets > 10, "{aqm}: {}", marked.flows[0].marked_packets);
        assert_eq!(plain.flows[0].marked_packets, 0);
        let (short, long) = (figures(&marked, 0).1, figures(&plain, 0).1);
        assert!(short < long / 4.0, "{aqm}: {short} and {long} ms");
    }
}

#[test]
fn abc_follows_its_router() {
    // Equilibrium: x = 50 ms + 133 ms (0.98 - 1 + N / W). One flow leaves an empty queue, five hold 51.7 ms.
    let queue = r#"{ kind = "abc" }"#;
    let top = "duration = \"40s\"\nwarmup = \"15s\"";
    let path = Path { rate: "12Mbit/s", rtt: "100ms", queue, top, ..L4S };
    for (count, utilisation, delay) in [(1, 0.95, 0.0..30.0), (5, 0.97, 40.0..70.0)] {
        let flows = vec!["cc = \"abc\""; count];
        let result = path.play(&flows);
        let mean = result.flows[0].queueing_delay.mean.as_secs_f64() * 1e3;
        assert!(
            result.links[0].utilisation.unwrap() >= utilisation,
            "{count}: {:?}",
            result.links[0].utilisation
        );
        assert!(delay.contains(&mean), "{count} flows: {mean} ms");
        assert_eq!(result.flows[0].dropped_packets, 0);
    }
}

/// An LTE cell with downloads of one control to users that drive away, for 16 s of which the first four do not count. Returns the
/// goodput of all, and the largest p95 delay.
fn drive(users: usize, aqm: &str, cc: &str) -> (f64, f64) {
    let mut text = format!(
        "duration = \"16s\"\nwarmup = \"4s\"\n[[link]]\nname = \"wire\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"1Gbit/s\"\n\
         delay = \"20ms\"\nduplex = true\n[[cell]]\nname = \"cell\"\nhost = \"mast\"\npreset = \"lte\"\n{aqm}\n"
    );
    for user in 0..users {
        let distance = 400 + 120 * user;
        text += &format!(
            "[[user]]\nname = \"phone{user}\"\nwaypoints = {{ points = [[{distance}, 0], [1500, 0]], speed = \"10m/s\" }}\n\
             [[flow]]\nfrom = \"server\"\nto = \"phone{user}\"\ncc = \"{cc}\"\n"
        );
    }
    let result = common::play(&text);
    let all: Vec<(f64, f64)> = (0..users).map(|flow| figures(&result, flow)).collect();
    let goodput = all.iter().map(|(goodput, _)| goodput).sum();
    (goodput, all.iter().map(|(_, delay)| *delay).fold(0.0, f64::max))
}

#[test]
fn abc_in_a_cell_has_a_short_queue_at_most_of_cubics_goodput() {
    for users in [1, 3] {
        let cubic = drive(users, "", "cubic");
        // At RLC's buffer, and above it.
        for aqm in ["aqm = \"abc\"", "aqm = \"abc\"\nsdap = \"drql\""] {
            let abc = drive(users, aqm, "abc");
            let shown = format!("{users} users, {aqm}: {abc:.1?}, cubic {cubic:.1?}");
            assert!(abc.0 >= 0.9 * cubic.0 && abc.1 <= 0.2 * cubic.1, "{shown}");
        }
    }
    // It is the router's work: without it CUBIC's window rules.
    let (cubic, blind) = (drive(1, "", "cubic"), drive(1, "", "abc"));
    assert!(blind.1 > 0.5 * cubic.1, "{blind:.1?} and {cubic:.1?}");
}
