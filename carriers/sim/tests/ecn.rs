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
