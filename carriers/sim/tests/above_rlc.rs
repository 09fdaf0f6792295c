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

/// Delays without the wire's 5 ms. Aimed at: with CoDel and DRQL at most half of the plain buffer's delay, with USP and 5G-BDP at most
/// 0.3 of it and the least of all, and in each mode 0.95 of its goodput. CoDel misses the latter (0.73 to 0.91): its target of 5 ms is
/// less than two packets at this rate, which costs a single CUBIC flow some goodput. The bounds are 3 % from what was measured.
#[test]
fn datagrams_pass_a_download_and_the_cell_stays_busy() {
    let measure = |bearer: &str| {
        let (delay, goodput) = figures(&play(&scenario(1_200, &format!("buffer = \"45KB\"\n{bearer}"), "")));
        (delay - 5.0, goodput)
    };
    let (plain, full) = measure("aqm = \"droptail\"");
    let modes = [
        ("aqm = \"codel\"\nsdap = \"drql\"", 22.96, 0.757),
        ("aqm = \"codel\"\nsdap = \"5g-bdp\"", 22.17, 0.735),
        ("aqm = \"codel\"\nsdap = \"10 packets\"", 32.50, 0.908),
        ("aqm = \"codel\"\nsdap = \"dynrlc\"", 28.98, 0.855),
        ("aqm = \"droptail\"\nsdap = \"drql\"\nupf_pacer = true", 15.25, 1.014),
        ("aqm = \"droptail\"\nsdap = \"5g-bdp\"\nupf_pacer = true", 12.80, 1.006),
    ];
    let mut delays = Vec::new();
    for (mode, expected, share) in modes {
        let (delay, goodput) = measure(mode);
        let shown =
            format!("{mode}: {delay:.2} ms, {goodput:.2} Mbit/s; plain {plain:.2} ms, {full:.2} Mbit/s");
        assert!((delay / expected - 1.0).abs() < 0.03, "{shown}");
        assert!((goodput / full / share - 1.0).abs() < 0.03, "{shown}");
        delays.push(delay);
    }
    let (codel_drql, usp_bdp) = (delays[0], delays[5]);
    assert!(codel_drql <= 0.5 * plain && usp_bdp <= 0.3 * plain, "{delays:.1?} and {plain:.1} ms");
    assert!(delays.iter().all(|delay| usp_bdp <= *delay), "{delays:.1?}");
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
