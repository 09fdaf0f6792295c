//! The cells of published experiments have the round trips stated in their sources.

use ranpace_scenario::parse;
use ranpace_sim::Simulation;

/// The shortest round trip of small packets in an otherwise idle network, in milliseconds.
fn shortest_ms(preset: &str, one_way: &str, from: &str, to: &str) -> f64 {
    let text = format!(
        r#"
duration = "2s"
seed = 1
[[link]]
from = "server"
to = "mast"
rate = "10Gbit/s"
delay = "{one_way}"
duplex = true
[[cell]]
host = "mast"
preset = "{preset}"
[[user]]
name = "phone"
[[flow]]
from = "{from}"
to = "{to}"
cc = "cubic"
workload = {{ kind = "paced", rate = "100kbit/s", interval = "17ms" }}
ack_every = 1
"#
    );
    let scenario = parse(&text, "cell.toml", &mut ()).unwrap_or_else(|error| panic!("{error}"));
    let result = Simulation::new(&scenario).run();
    result.flows[0].rtt.min.as_secs_f64() * 1e3
}

#[test]
fn sigma_s_bandwidth_delay_product_is_1_2_megabytes() {
    // Diarra 2022, section 3.2.5: 1.2 MB at its scripts' peak rate, 11 352 B in 100 us.
    let rtt = shortest_ms("diarra-mmwave-ul", "5ms", "phone", "server");
    let bytes = 11_352.0 / 0.1 * rtt;
    assert!((bytes / 1.2e6 - 1.0).abs() < 0.02, "{rtt} ms, {bytes} B");
}

#[test]
fn rapid_s_radio_is_as_quick_as_sigma_s() {
    // The same module of ns-3, where a server at 1 ms has a round trip of little more than 1 ms (Diarra 2022, section 5.3).
    for sight in ["los", "nlos"] {
        let rtt = shortest_ms(&format!("diarra-mmwave-{sight}"), "500us", "server", "phone");
        assert!((1.3..=1.8).contains(&rtt), "{sight}: {rtt} ms");
    }
}
