//! Effects of controls on whole connections that a test of one part does not show.

mod common;

use common::{Path, play};

/// Goodput in Mbit/s of a flow alone, without its first second.
fn goodput(rate: &str, rtt: &str, buffer: &str, seconds: u32, flow: &str) -> f64 {
    let queue = format!("{{ kind = \"droptail\", limit = \"{buffer}\" }}");
    let top = format!("duration = \"{seconds}s\"");
    let path = Path { rate, rtt, queue: &queue, top: &top, ..Path::default() };
    let result = play(&path.text(&[flow]));
    result.flows[0].delivered.as_f64() * 8.0 / f64::from(seconds) / 1e6
}

#[test]
fn slow_start_under_the_endpoints_pacing_goes_on_as_long_as_linux_lets_it() {
    // With half the threshold for a train of ACKs, as without pacing, slow start ended at 721 Mbit/s.
    let paced = goodput("1Gbit/s", "40ms", "5MB", 10, "cc = \"cubic\"\npacing = true");
    assert!(paced > 900.0, "{paced}");
}

#[test]
fn multi_domain_control_without_a_pep_has_cubics_goodput() {
    let [own, plain] =
        ["mdcc", "cubic"].map(|cc| goodput("1Gbit/s", "20ms", "625KB", 4, &format!("cc = \"{cc}\"")));
    assert_eq!(own, plain);
}

#[test]
fn vivace_has_an_acknowledgement_per_packet_unless_the_scenario_says_otherwise() {
    let of = |more: &str| goodput("20Mbit/s", "40ms", "200KB", 15, &format!("cc = \"vivace\"{more}"));
    assert!(of("") > 16.0, "{}", of(""));
    assert!(of("\ntransport = \"quic\"") > 15.0, "over QUIC: {}", of("\ntransport = \"quic\""));
    assert!(of("\nack_every = 2") < 2.0, "a receiver that delays: {}", of("\nack_every = 2"));
}

#[test]
fn c2tcp_keeps_going_with_a_target_below_the_smallest_rtt() {
    let of =
        |more: &str| goodput("100Mbit/s", "60ms", "1MB", 10, &format!("cc = \"c2tcp:target=50ms{more}\""));
    assert!(of("") > 50.0, "{}", of(""));
    assert!(of(":clock=ns") < 15.0, "by the nanosecond: {}", of(":clock=ns"));
}

#[test]
fn sprout_fills_long_paths() {
    for rtt in ["60ms", "100ms", "150ms"] {
        let goodput = goodput("8Mbit/s", rtt, "500KB", 10, "cc = \"sprout\"");
        assert!(goodput > 7.0, "{rtt}: {goodput}");
    }
}
