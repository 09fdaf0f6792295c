//! The dumbbells of the ns-3 reference figures (`ns3-dumbbell-single.csv`): each row within 5 % of its goodput and 10 % of its mean
//! RTT, or listed as an exception that `docs/fidelity.md` explains.

mod common;

use common::{Path, within};

/// Columns: algorithm, Mbit/s, RTT in ms, ns-3's goodput in Mbit/s, its mean RTT in ms, and the tolerance on the latter. ns-3 3.37,
/// 60 s, drop-tail queue of 6 MB.
const ROWS: [(&str, u64, u64, f64, f64, f64); 11] = [
    ("bbr1", 20, 24, 18.90, 30.0, 0.10),
    ("bbr1", 20, 120, 18.72, 133.0, 0.10),
    ("bbr1", 20, 300, 18.21, 341.0, 0.10),
    ("bbr1", 150, 24, 141.40, 26.0, 0.10),
    ("bbr1", 150, 120, 140.33, 129.0, 0.10),
    // Exceptions: 1.6 or 1.8 s in the queue against 1.5 and 1.3 s.
    ("cubic", 20, 24, 19.28, 1_509.0, 0.20),
    ("cubic", 20, 120, 19.04, 1_404.0, 0.35),
    ("cubic", 20, 300, 19.28, 1_827.0, 0.10),
    ("cubic", 150, 24, 144.61, 282.0, 0.10),
    ("cubic", 150, 120, 144.61, 374.0, 0.10),
    ("cubic", 150, 300, 144.61, 531.0, 0.10),
];

#[test]
fn ns3_agrees_on_goodput_and_mean_rtt() {
    let mut wrong = Vec::new();
    println!(
        "| algorithm | rate | RTT | ns-3 goodput | ours | ns-3 RTT | ours |\n|---|---|---|---|---|---|---|"
    );
    for (cc, rate, rtt, goodput, mean, tolerance) in ROWS {
        let path = Path {
            rate: &format!("{rate}Mbit/s"),
            rtt: &format!("{rtt}ms"),
            queue: r#"{ kind = "droptail", limit = "6MB" }"#,
            top: "duration = \"60s\"\nsample = \"1s\"",
            ..Path::default()
        };
        let result = path.play(&[&format!("cc = \"{cc}\"\nreceive_buffer_max = \"64MB\"")]);
        let flow = &result.flows[0];
        let (found, delay) = (flow.goodput.as_f64() / 1e6, flow.rtt.mean.as_secs_f64() * 1e3);
        println!(
            "| {cc} | {rate} | {rtt} | {goodput:.2} | {found:.2} ({:+.1} %) | {mean:.0} | {delay:.0} ({:+.1} %) |",
            (found / goodput - 1.0) * 100.0,
            (delay / mean - 1.0) * 100.0
        );
        if !within(found, goodput, 0.05) || !within(delay, mean, tolerance) {
            wrong.push((cc, rate, rtt, found, delay));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
