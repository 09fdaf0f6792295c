//! `ranpace emulate --real-proxy`: the proxy, its feed and the PEP as daemons on hosts whose kernels forward packets. Where rights are
//! missing these tests say so and end.
#![cfg(all(target_os = "linux", feature = "proxy"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::fs;
use std::path::Path;
use std::process::Command;

use emulation::{Emulation, content, folder_with, output, program, rights, transferred, until, v4};

/// A server, an edge, and a phone in an LTE cell of 16 Mbit/s; the phone opens connections.
const SCENARIO: &str = r#"
duration = "8s"
sample = "100ms"

[[link]]
name = "core"
from = "server"
to = "edge"
rate = "1Gbit/s"
delay = "10ms"
duplex = true

[[link]]
name = "backhaul"
from = "edge"
to = "mast"
rate = "1Gbit/s"
delay = "4ms"
duplex = true

[[cell]]
host = "mast"
preset = "rapid-oai"

[[user]]
name = "phone"

[[flow]]
name = "download"
from = "server"
to = "phone"
cc = "cubic"
opener = "receiver"

[[flow]]
name = "second"
from = "server"
to = "phone"
cc = "cubic"
opener = "receiver"
start = "1s"
"#;

const PROXY: &str = "[[proxy]]\nname = \"p\"\nhost = \"edge\"\nkind = \"rapid\"\n";

/// Plays a scenario; returns its summary and what was said.
fn played(scenario: &str) -> (serde_json::Value, String) {
    let folder = folder_with(scenario);
    let (code, out, error) = output(folder.path(), &["scenario.toml", "--real-proxy", "--json"]);
    // 99: a busy machine.
    assert!(matches!(code, Some(0 | 99)), "{code:?}: {error}");
    let parsed: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}"));
    (parsed["summary"].clone(), error)
}

#[test]
fn real_proxy_shares_the_cell_by_radio_information_and_keeps_its_queue_short() {
    let Some(_turn) = rights() else { return };
    if program(&["nft"]).is_none() {
        return;
    }
    let (plain, _) = {
        let folder = folder_with(SCENARIO);
        let (_, out, error) = output(folder.path(), &["scenario.toml", "--json"]);
        let parsed: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{error}"));
        (parsed["summary"].clone(), error)
    };
    let (summary, said) = played(&format!("{SCENARIO}{PROXY}"));
    let flow = |summary: &serde_json::Value, place: usize, figure: &str| -> f64 {
        let value = &summary["flows"][place];
        figure
            .split('.')
            .fold(value, |value, name| &value[name])
            .as_f64()
            .unwrap_or_else(|| panic!("{figure}: {value}"))
    };
    for place in [0, 1] {
        assert_eq!(summary["flows"][place]["split"]["proxy"], "p", "{said}");
        assert_eq!(flow(&summary, place, "split.connections"), 1.0);
        let (ran, wan) =
            (flow(&summary, place, "split.ran_rtt.p50_s"), flow(&summary, place, "split.wan_rtt.p50_s"));
        assert!(wan > 0.019 && ran > 0.015, "{wan} and {ran}");
        assert!(flow(&summary, place, "rtt.p50_s") >= ran, "the whole RTT has both parts");
    }
    let total = |summary: &serde_json::Value| {
        flow(summary, 0, "delivered_bytes") + flow(summary, 1, "delivered_bytes")
    };
    assert!(total(&summary) > 0.85 * total(&plain), "{} of {}", total(&summary), total(&plain));
    let (with, without) = (flow(&summary, 0, "rtt.mean_s"), flow(&plain, 0, "rtt.mean_s"));
    assert!(with < 0.6 * without, "{with} s with the proxy, {without} s without");
}

#[test]
fn programs_cross_the_proxy_and_nothing_is_left_of_it() {
    let Some(_turn) = rights() else { return };
    if program(&["nft"]).is_none() {
        return;
    }
    let mut emulation =
        Emulation::start_with(folder_with(&format!("{SCENARIO}{PROXY}")), ":", &["--real-proxy"]);
    let process = emulation.process();
    let own = format!("/run/ranpace/{process}");
    until("the proxy answers", || Path::new(&own).join("proxy.sock").exists());
    let sent = content(300_000);
    // Whoever opens: the server's own connections pass.
    for (from, to) in [("phone", ("server", v4(0))), ("server", ("phone", v4(2)))] {
        assert!(transferred(&emulation, from, to, sent.clone()) == sent, "from {from}");
    }
    let (code, _, _) = emulation.end();
    assert!(matches!(code, Some(0 | 99)), "{code:?}");
    let daemons =
        Command::new("sh").args(["-c", &format!("grep -lsa {own}/ /proc/[0-9]*/cmdline")]).output().unwrap();
    let daemons = String::from_utf8_lossy(&daemons.stdout).into_owned();
    // The shell and grep themselves name it.
    let alive = daemons.lines().filter(|path| {
        fs::read(path).is_ok_and(|line| line.starts_with(env!("CARGO_BIN_EXE_ranpace").as_bytes()))
    });
    assert_eq!(alive.count(), 0, "{daemons}");
    assert!(!Path::new(&own).exists());
    let named = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let mark = format!("ranpace-{process}-");
    assert_eq!(named.filter(|entry| entry.file_name().to_string_lossy().starts_with(&mark)).count(), 0);
}

#[test]
fn what_a_daemon_cannot_do_is_an_error_that_names_the_key() {
    let folder = folder_with(&format!("{SCENARIO}[rnis]\ndelay = \"20ms\"\n{PROXY}"));
    let (code, _, error) = output(folder.path(), &["scenario.toml", "--real-proxy"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("rnis.delay") && error.contains("without --real-proxy"), "{error}");
}

#[test]
#[cfg(feature = "kernel")]
fn real_pep_is_heard_by_the_kernels_mdcc() {
    let Some(_turn) = rights() else { return };
    let scenario =
        SCENARIO.replace("cc = \"cubic\"", "cc = \"mdcc\"").replace("duration = \"8s\"", "duration = \"5s\"");
    let (summary, said) = played(&format!("{scenario}[[pep]]\nhost = \"edge\"\n"));
    assert!(said.contains("radio information: ") && !said.contains("radio information: 0 hints"), "{said}");
    assert!(summary["flows"][0]["cc"].as_str().unwrap().contains("mdcc"), "{summary}");
    assert!(summary["flows"][0]["delivered_bytes"].as_u64().unwrap() > 2_000_000, "{summary}");
}
