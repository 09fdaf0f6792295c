//! Programs that nobody here wrote behind a trace and a cell: iperf3, curl and a browser. Where one is missing, its test says
//! so and ends; so do all where rights are missing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::fs;
use std::net::IpAddr;

use emulation::{CELL, Emulation, LINK, Server, content, folder_with, program, rights, v4, v6};
use serde_json::Value;

/// Both scenarios in which programs are tried, each with a name, the place of the user, and the most that can come through
/// downwards and upwards in bit/s.
fn scenarios() -> [(&'static str, Emulated, usize, [f64; 2]); 2] {
    // A trace of 20 Mbit/s in its first half second and 10 in its second. Each opportunity carries a packet of 1500 B.
    let fast = (1..=500).flat_map(|ms| std::iter::repeat_n(ms, 1 + usize::from(ms % 3 != 0)));
    let slow = (501..=1000).filter(|ms| ms % 6 != 0);
    let trace: Vec<String> = fast.chain(slow).map(|ms| ms.to_string()).collect();
    let most = trace.len() as f64 * 1500.0 * 8.0;
    let text = LINK.replace("rate = \"100Mbit/s\"", "trace = \"./lte.trace\"");
    let on_trace = Emulated { scenario: text, trace: Some(trace.join("\n") + "\n") };
    let in_cell = Emulated { scenario: CELL.to_owned(), trace: None };
    [
        ("trace", on_trace, 1, [most, most]),
        // The largest blocks of 100 PRBs, every millisecond (TS 36.213 Tables 7.1.7.2.1-1 and 7.1.7.2.2-1): two layers down, one up.
        ("cell", in_cell, 1, [2.0 * 75_376e3, 75_376e3]),
    ]
}

/// A scenario, and the trace that it needs.
struct Emulated {
    scenario: String,
    trace: Option<String>,
}

impl Emulated {
    fn start(&self, script: &str, more: &[&str]) -> Emulation {
        let folder = folder_with(&self.scenario);
        if let Some(trace) = &self.trace {
            fs::write(folder.path().join("lte.trace"), trace).unwrap();
        }
        Emulation::start_with(folder, script, more)
    }
}

#[test]
fn iperf3_runs_over_tcp_and_udp_both_ways_and_both_versions_of_ip() {
    let Some(_turn) = rights() else { return };
    if program(&["iperf3"]).is_none() {
        return;
    }
    for (case, emulated, _, most) in scenarios() {
        // Until the server listens, and has done with the run before: it resets who comes too early. The status of
        // `iperf3 -J` is 0 then, and its answer has the error.
        let mut script = String::from(
            "run() { for try in $(seq 50); do iperf3 -c server -J \"$@\" > answer; \
             grep -q '\"error\"' answer || break; sleep 0.2; done; mv answer $name.json; }\n",
        );
        let mut runs = Vec::new();
        for version in ["-4", "-6"] {
            for (way, reverse) in [("up", ""), ("down", "-R")] {
                for (kind, options) in [("tcp", "-t 2"), ("udp", "-u -b 2M -t 1 -l 1200")] {
                    let name = format!("{kind}{version}-{way}");
                    script += &format!("name={name}; run {version} {reverse} {options}\n");
                    runs.push((name, kind, usize::from(way == "up")));
                }
            }
        }
        let mut emulation = emulated.start(&script, &["--also", "server=iperf3 -s > served"]);
        let (status, summary, _) = emulation.end();
        assert!(matches!(status, Some(0 | 99)), "{case}: {status:?}");
        for (name, kind, way) in runs {
            let path = emulation.folder.path().join(format!("{name}.json"));
            let answer: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            let figure = |pointer: &str| {
                let found = answer.pointer(pointer).and_then(Value::as_f64);
                found.unwrap_or_else(|| panic!("{case}, {name}: {answer}"))
            };
            if kind == "tcp" {
                let rate = figure("/end/sum_received/bits_per_second");
                // It starts slowly, in 2 s; and nothing comes faster than the link carries it.
                assert!(rate > 2e6 && rate < most[way] * 1.02, "{case}, {name}: {rate} bit/s; {answer}");
            } else {
                let lost = figure("/end/sum/lost_percent");
                let packets = figure("/end/sum/packets");
                assert!(packets > 150.0 && lost < 2.0, "{case}, {name}: {lost} % of {packets}; {answer}");
            }
        }
        let carried = summary["flows"].as_array().unwrap();
        assert!(carried.len() >= 2, "{case}: both topology carried something: {carried:?}");
    }
}

#[test]
fn curl_gets_a_file_as_it_is_over_both_versions_of_ip() {
    let Some(_turn) = rights() else { return };
    if program(&["curl"]).is_none() {
        return;
    }
    let script =
        "curl -sS --fail -4 -o four http://server/file; curl -sS --fail -6 -o six http://server/file";
    for (case, emulated, place, _) in scenarios() {
        let file = content(1_500_001);
        let mut emulation = emulated.start(script, &[]);
        let server =
            Server::start(&emulation, "server", vec![("/file", "application/octet-stream", file.clone())]);
        let (status, ..) = emulation.end();
        assert!(matches!(status, Some(0 | 99)), "{case}: {status:?}");
        for name in ["four", "six"] {
            let got = fs::read(emulation.folder.path().join(name)).unwrap();
            assert!(got == file, "{case}, {name}: {} B of {}", got.len(), file.len());
        }
        let from: Vec<IpAddr> = server.asked().into_iter().map(|(from, _)| from).collect();
        assert_eq!(from, [v4(place), v6(place)], "{case}");
    }
}

/// A bitmap of 64 by 64 pixels, 24 bits each, in one colour for each quarter: 12 kB, several packets.
fn bitmap() -> Vec<u8> {
    const SIDE: u32 = 64;
    let (header, pixels) = (54, SIDE * SIDE * 3);
    let mut file = b"BM".to_vec();
    for number in [header + pixels, 0, header, 40, SIDE, SIDE, 1 | 24 << 16, 0, pixels, 2835, 2835, 0, 0] {
        file.extend(number.to_le_bytes());
    }
    for row in 0..SIDE {
        for column in 0..SIDE {
            file.extend([
                if row < SIDE / 2 { 200 } else { 40 },
                if column < SIDE / 2 { 200 } else { 40 },
                90,
            ]);
        }
    }
    file
}

const PAGE: &str = "<!doctype html><title>a page</title><h1>Behind the link</h1><img id=image src=picture.bmp>\
    <p id=word>no script ran</p><script src=script.js></script>";
const SCRIPT: &str = "addEventListener('load', () => { const image = document.getElementById('image'); \
    document.getElementById('word').textContent = \
    `the script ran, the image is ${image.naturalWidth} wide`; });";

#[test]
fn chromium_loads_a_page_with_an_image_and_a_script() {
    let Some(_turn) = rights() else { return };
    let Some(browser) = program(&["chromium", "chromium-browser", "google-chrome"]) else { return };
    // Chromium sends nothing of its own over the network, and no QUIC, which nobody would answer.
    let script = format!(
        "timeout 120 {} --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run \
         --disable-background-networking --disable-component-update --disable-sync --user-data-dir=$PWD/profile \
         --window-size=400,300 --screenshot=$PWD/page.png --dump-dom http://server/page.html > dom 2> said",
        browser.display()
    );
    for (case, emulated, place, _) in scenarios() {
        let mut emulation = emulated.start(&script, &[]);
        let files = vec![
            ("/page.html", "text/html", PAGE.into()),
            ("/picture.bmp", "image/bmp", bitmap()),
            ("/script.js", "text/javascript", SCRIPT.into()),
        ];
        let server = Server::start(&emulation, "server", files);
        let (status, ..) = emulation.end();
        let folder = emulation.folder.path();
        let read = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(matches!(status, Some(0 | 99)), "{case}: {status:?}; {}", read("said"));
        let dom = read("dom");
        assert!(dom.contains("the script ran, the image is 64 wide"), "{case}: {dom}; {}", read("said"));
        let asked = server.asked();
        for path in ["/page.html", "/picture.bmp", "/script.js"] {
            assert!(asked.iter().any(|(_, known)| known == path), "{case}: {path} of {asked:?}");
        }
        assert!(asked.iter().all(|(from, _)| [v4(place), v6(place)].contains(from)), "{case}: {asked:?}");
        let picture = fs::read(folder.join("page.png")).unwrap();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 2_000, "{case}: {} B", picture.len());
    }
}
