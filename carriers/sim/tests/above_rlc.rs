//! Queues above RLC in a cell: a download and two streams of small datagrams on one bearer (Irazabal et al.).

mod common;

use common::play;
use ranpace_sim::RunResult;

const STREAM: &str = "transport = \"udp\"\npacket = \"200B\"\n";

/// An LTE cell of 25 PRBs with the stages in `bearer`, and further elements.
fn scenario(distance: u32, bearer: &str, more: &str) -> String {
    format!(
        r#"
duration = "22s"
warmup = "2s"

[[link]]
name = "wire"
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "5ms"
duplex = true

[[cell]]
name = "cell"
host = "mast"
preset = "lte"
bandwidth = "5MHz"
{bearer}

[[user]]
name = "phone"
cell = "cell"
position = [{distance}, 0]

[[flow]]
name = "download"
from = "server"
to = "phone"
cc = "cubic"

[[flow]]
name = "call"
from = "server"
to = "phone"
{STREAM}workload = {{ kind = "cbr", rate = "32kbit/s" }}

[[flow]]
name = "game"
from = "server"
to = "phone"
{STREAM}workload = {{ kind = "cbr", rate = "36kbit/s" }}
{more}
"#
    )
}

/// Mean one-way delay of the streams in milliseconds, and goodput of the download in Mbit/s.
fn figures(result: &RunResult) -> (f64, f64) {
    let flow =
        |name: &str| result.flows.iter().find(|flow| flow.name == name).unwrap_or_else(|| panic!("{name}"));
    let delay = |name| flow(name).totals.one_way_mean.as_secs_f64() * 1e3;
    ((delay("call") + delay("game")) / 2.0, flow("download").goodput.as_f64() / 1e6)
}

/// The specification's criterion. The wire's 10 ms are taken off the delays.
#[test]
fn datagrams_pass_a_download_and_the_cell_stays_busy() {
    let measure = |bearer: &str| {
        let (delay, goodput) = figures(&play(&scenario(1_200, bearer, "")));
        (delay - 5.0, goodput)
    };
    let (plain, full) = measure("buffer = \"45KB\"\naqm = \"droptail\"");
    let codel_drql = measure("buffer = \"45KB\"\naqm = \"codel\"\nsdap = \"drql\"");
    let codel_bdp = measure("buffer = \"45KB\"\naqm = \"codel\"\nsdap = \"5g-bdp\"");
    let usp_drql = measure("buffer = \"45KB\"\naqm = \"droptail\"\nsdap = \"drql\"\nupf_pacer = true");
    let usp_bdp = measure("buffer = \"45KB\"\naqm = \"droptail\"\nsdap = \"5g-bdp\"\nupf_pacer = true");
    let fixed = measure("buffer = \"45KB\"\naqm = \"codel\"\nsdap = \"10 packets\"");
    let dynamic = measure("buffer = \"45KB\"\naqm = \"codel\"\nsdap = \"dynrlc\"");
    let all = [codel_drql, codel_bdp, usp_drql, usp_bdp, fixed, dynamic];
    let shown = format!("plain {plain:.1} ms {full:.2} Mbit/s, then {all:.2?}");
    assert!(codel_drql.0 <= 0.5 * plain, "{shown}");
    assert!(usp_bdp.0 <= 0.3 * plain, "{shown}");
    assert!(all.iter().all(|(delay, _)| usp_bdp.0 <= *delay), "{shown}");
    assert!([usp_drql, usp_bdp].iter().all(|(_, goodput)| *goodput >= 0.95 * full), "{shown}");
    // CoDel's target is less than two packets at this rate, which costs a single CUBIC flow some goodput.
    assert!(all.iter().all(|(_, goodput)| *goodput >= 0.7 * full), "{shown}");
}

/// Users have stages of their own, a user out of reach gets nothing and blocks nobody, and bytes are accounted for over a
/// handover (`play` checks that).
#[test]
fn stages_are_each_users_own_and_survive_a_handover() {
    for forward in ["true", "false"] {
        let more = format!(
            r#"
[[cell]]
name = "other"
host = "mast"
preset = "lte"
bandwidth = "5MHz"
position = [400, 0]
sdap = "drql"

[[user]]
name = "far"
cell = "cell"
position = [90000, 0]

[[flow]]
name = "unreachable"
from = "server"
to = "far"
cc = "cubic"

[[change]]
at = "12s"
user = "phone"
to = "other"
forward = {forward}
"#
        );
        let result = play(&scenario(300, "sdap = \"5g-bdp\"\nupf_pacer = true\nqfi_per_flow = true", &more));
        let (delay, goodput) = figures(&result);
        assert!(goodput > 1.0 && delay < 100.0, "{forward}: {delay} ms, {goodput} Mbit/s");
    }
}
