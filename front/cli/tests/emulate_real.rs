//! `ranpace emulate --real-proxy`: the proxy, its feed and the PEP as daemons on hosts whose kernels forward packets. Where rights are
//! missing these tests say so and end.
#![cfg(all(target_os = "linux", feature = "proxy"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::fs;
use std::path::Path;
use std::process::Command;

use emulation::{
    EDGE, Emulation, content, folder_with, output, program, rights, say_skipped, transferred, until, v4,
};

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
    if !cfg!(feature = "kernel") {
        return say_skipped(
            "the feature `kernel`: without its control `rapid` the proxy paces, which keeps the queue less short",
        );
    }
    let Some(_turn) = rights() else { return };
    if program(&["nft"]).is_none() {
        return;
    }
    let (plain, _) = {
        let folder = folder_with(EDGE);
        let (_, out, error) = output(folder.path(), &["scenario.toml", "--json"]);
        let parsed: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{error}"));
        (parsed["summary"].clone(), error)
    };
    let (summary, said) = played(&format!("{EDGE}{PROXY}"));
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
fn a_download_through_the_real_proxy_has_what_it_has_through_the_simulated_one() {
    if !cfg!(feature = "kernel") {
        return say_skipped(
            "the feature `kernel`: without its control `rapid` the proxy paces, which keeps the queue less short",
        );
    }
    let Some(_turn) = rights() else { return };
    if program(&["nft"]).is_none() {
        return;
    }
    // 50 Mbit/s, and one connection: whatever keeps its window shut for a moment leaves the radio idle.
    let (one, _) = EDGE.split_once("[[flow]]\nname = \"second\"").unwrap();
    let cell = "preset = \"lte\"\n\n[[user]]\nname = \"phone\"\nposition = [300, 0]";
    let one = one.replace("preset = \"rapid-oai\"\n\n[[user]]\nname = \"phone\"", cell);
    let folder = folder_with(&format!("{one}{PROXY}"));
    let simulated = Command::new(env!("CARGO_BIN_EXE_ranpace"))
        .args(["run", "scenario.toml", "--json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let goodput = |summary: &serde_json::Value| summary["flows"][0]["goodput_bit_s"].as_f64().unwrap();
    let simulated = goodput(&serde_json::from_slice(&simulated.stdout).unwrap());
    assert!(simulated > 40e6, "{simulated}");
    let (summary, said) = played(&format!("{one}{PROXY}"));
    let real = goodput(&summary);
    assert!(real > 0.9 * simulated, "{real} bit/s, {simulated} in the simulator\n{said}");
}

#[test]
fn programs_cross_the_proxy_and_nothing_is_left_of_it() {
    let Some(_turn) = rights() else { return };
    if program(&["nft"]).is_none() {
        return;
    }
    let mut emulation = Emulation::start_with(folder_with(&format!("{EDGE}{PROXY}")), ":", &["--real-proxy"]);
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
    let folder = folder_with(&format!("{EDGE}[rnis]\ndelay = \"20ms\"\n{PROXY}"));
    let (code, _, error) = output(folder.path(), &["scenario.toml", "--real-proxy"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("rnis.delay") && error.contains("without --real-proxy"), "{error}");
}

#[test]
#[cfg(feature = "kernel")]
fn real_pep_is_heard_by_the_kernels_mdcc() {
    let Some(_turn) = rights() else { return };
    let scenario =
        EDGE.replace("cc = \"cubic\"", "cc = \"mdcc\"").replace("duration = \"8s\"", "duration = \"5s\"");
    let (summary, said) = played(&format!("{scenario}[[pep]]\nhost = \"edge\"\n"));
    assert!(said.contains("radio information: ") && !said.contains("radio information: 0 hints"), "{said}");
    assert!(summary["flows"][0]["cc"].as_str().unwrap().contains("mdcc"), "{summary}");
    assert!(summary["flows"][0]["delivered_bytes"].as_u64().unwrap() > 2_000_000, "{summary}");
}

/// A page with twelve pictures of 30 kB, which says how long it took to load.
const PAGE: &str = "<!doctype html><title>a page</title><p id=word>not loaded</p><script>
    addEventListener('load', () => {
        const shown = [...document.images].filter(image => image.naturalWidth === 100).length;
        document.getElementById('word').textContent = `${shown} pictures in ${Math.round(performance.now())} ms`;
    });
    for (let number = 0; number < 12; number++) {
        document.write(`<img src=picture.bmp?${number}>`);
    }
</script>";

/// 100 by 100 pixels of 24 bits.
fn picture() -> Vec<u8> {
    const SIDE: u32 = 100;
    let size = 54 + SIDE * SIDE * 3;
    let mut file = b"BM".to_vec();
    for word in [size, 0, 54, 40, SIDE, SIDE, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    file.resize(size as usize, 90);
    file
}

#[test]
fn chromium_loads_a_page_beside_a_download_through_the_real_proxy_and_without_and_a_report_has_both() {
    let Some(_turn) = rights() else { return };
    let Some(browser) = program(&["chromium", "chromium-browser", "google-chrome"]) else { return };
    if ["nft", "python3"].iter().any(|name| program(&[name]).is_none()) {
        return;
    }
    let folder = folder_with(&EDGE.replace("duration = \"8s\"", "duration = \"60s\""));
    let write = |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
    write("page.html", PAGE.as_bytes());
    write("picture.bmp", &picture());
    let plain = fs::read_to_string(folder.path().join("scenario.toml")).unwrap();
    write("split.toml", format!("{plain}{PROXY}").as_bytes());
    // Chromium sends nothing of its own over the network. The download has begun when it starts.
    let script = format!(
        "sleep 3; exec timeout 60 {} --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run \
         --disable-background-networking --disable-component-update --disable-sync --user-data-dir=$PWD/$0 \
         --dump-dom http://server/page.html > $0.dom 2> $0.said",
        browser.display()
    );
    let serve = "server=python3 -m http.server 80 > served 2>&1";
    let mut proxied = Vec::new();
    for (case, more) in
        [("scenario", &[][..]), ("split", &["--real-proxy", "--against", "results/scenario.emulated/1"])]
    {
        let file = format!("{case}.toml");
        let arguments = [
            &[file.as_str(), "--workloads", "--json", "--also", serve],
            more,
            &["--", "sh", "-c", &script, case],
        ];
        let (code, out, error) = output(folder.path(), &arguments.concat());
        let read =
            |name: &str| fs::read_to_string(folder.path().join(format!("{case}.{name}"))).unwrap_or_default();
        assert!(matches!(code, Some(0 | 99)), "{case} {code:?}: {error}{}", read("said"));
        let dom = read("dom");
        assert!(dom.contains("12 pictures in "), "{case}: {dom}{}", read("said"));
        let parsed: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}"));
        let flow = &parsed["summary"]["flows"][0];
        assert!(flow["delivered_bytes"].as_u64().unwrap() > 1_000_000, "{case}: {flow}");
        proxied.push(flow["split"]["connections"].as_u64());
    }
    assert_eq!(proxied, [None, Some(1)], "what the proxy split");
    let report = fs::read_to_string(folder.path().join("results/split.emulated/1/report.html")).unwrap();
    assert!(report.contains("scenario.emulated/1: download") && report.contains("split: download"));
    let folder_of_nothing = ["scenario.toml", "--against", "results"];
    let (code, _, error) = output(folder.path(), &folder_of_nothing);
    assert!(code == Some(2) && error.contains("expected the folder that an emulation named"), "{error}");
}

#[test]
fn an_experiment_is_played_on_linux_in_its_quick_form() {
    let Some(_turn) = rights() else { return };
    if program(&["nft"]).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let play = || {
        let played = Command::new(env!("CARGO_BIN_EXE_ranpace"))
            .args(["reproduce", "000-o4", "--real", "--quick", "--json"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&played.stderr).into_owned();
        assert!(played.status.success(), "{said}");
        (serde_json::from_slice::<Vec<serde_json::Value>>(&played.stdout).unwrap(), said)
    };
    let is_busy = |rows: &[serde_json::Value]| {
        rows.iter().any(|row| row["measured"].as_str().is_some_and(|text| text.contains("could not keep up")))
    };
    let (mut rows, mut said) = play();
    if is_busy(&rows) {
        // What has a result is not played again.
        (rows, said) = play();
    }
    if is_busy(&rows) {
        // No failure even where nothing may be skipped: nothing is wrong with what was played.
        say_skipped("a machine that can keep up; it was too busy twice");
        return;
    }
    let measured = |experiment: &str, id: &str| {
        let row = rows.iter().find(|row| row["experiment"] == experiment && row["id"] == id);
        row.unwrap_or_else(|| panic!("{id} of {experiment}: {rows:?}"))["measured"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    // The delay of a call beside a download: through the proxy, simulated (114 ms) and real, and without the proxy.
    let delays = [("000-o4", "with"), ("000-o4-linux", "with"), ("000-o4-linux", "without")];
    let [simulated, with, without] = delays.map(|(experiment, id)| {
        let text = measured(experiment, id);
        let (millis, _) = text.split_once(" ms").unwrap_or_else(|| panic!("{text}: {said}"));
        millis.parse::<f64>().unwrap()
    });
    assert!((0.5..2.0).contains(&(with / simulated)), "{with} ms, simulated {simulated} ms: {said}");
    assert!(with < 0.7 * without, "{with} ms with the proxy, {without} ms without it: {said}");
    assert_eq!(measured("000-o4-linux", "loss"), "100.0 % (quick)");
}
