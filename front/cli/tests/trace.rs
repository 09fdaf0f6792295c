//! `ranpace trace` as a user sees it.
#![allow(clippy::unwrap_used)] // a test may

use std::fs::{self, File};
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The output of a command.
struct Said {
    status: i32,
    out: String,
    error: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            error: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.current_dir(folder).env_remove("RANPACE_TRACES").args(arguments);
    command
}

/// Runs `ranpace trace` in a folder.
fn trace(folder: &Path, arguments: &[&str]) -> Said {
    command(folder, &[&["trace"], arguments].concat()).output().unwrap().into()
}

fn good(folder: &Path, arguments: &[&str]) -> String {
    let said = trace(folder, arguments);
    assert_eq!(said.status, 0, "{arguments:?}: {}", said.error);
    said.out
}

fn gzip(path: &Path, text: &[u8]) {
    // The command itself zips: the shortest way from here.
    let plain = path.with_extension("");
    fs::write(&plain, text).unwrap();
    let folder = path.parent().unwrap();
    good(folder, &["convert", plain.to_str().unwrap(), "--out", path.to_str().unwrap()]);
    fs::remove_file(plain).unwrap();
}

#[test]
fn bad_files_are_named_with_their_line_and_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (name, content, expected) in [
        (
            "word",
            &b"1\n2\nthree\n"[..],
            "word: line 3: expected a time in whole milliseconds and nothing else, found \"three\"",
        ),
        ("decreasing", b"5\n4\n", "decreasing: line 2: 4 ms after 5 ms; times must not decrease"),
        ("empty", b"", "empty: no opportunity after 0 ms"),
        ("zeros", b"0\n0\n", "zeros: no opportunity after 0 ms"),
        ("gap", b"1\n\n2\n", "gap: line 2: expected a time in whole milliseconds, found an empty line"),
        ("late", b"1\n99999999999\n", "late: line 2: 99999999999 ms is later than"),
        ("binary", b"\x7fELF\x02\x01\x01\x00\x00\n", "binary: line 1: expected a time in whole milliseconds"),
        ("zip", b"PK\x03\x04\n", "zip: line 1: expected a time in whole milliseconds"),
    ] {
        fs::write(here.join(name), content).unwrap();
        for arguments in [
            vec!["info", name],
            vec!["plot", name, "--out", "x.svg"],
            vec!["convert", name, "--format", "mahimahi", "--out", "x"],
        ] {
            let said = trace(here, &arguments);
            assert_eq!(said.status, 2, "{arguments:?}: {}", said.error);
            assert!(said.error.contains(expected), "{arguments:?}: {}", said.error);
            assert!(!said.error.contains("panicked"));
        }
    }
    assert!(!here.join("x.svg").exists() && !here.join("x").exists() && !here.join("x.part").exists());
}

#[test]
fn unreadable_or_unwritable_files_are_user_errors() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("folder")).unwrap();
    for (arguments, expected) in [
        (vec!["info", "missing"], "no trace \"missing\"; looked for it (and missing.gz) in"),
        (vec!["info", "builtin:let"], "no built-in trace \"let\"; there are: builtin:lte"),
        (vec!["info", "folder"], "cannot read folder: "),
        (vec!["convert", "folder", "--out", "x"], "cannot read folder: "),
        (vec!["generate", "--out", "none/x"], "cannot write none/x: "),
        (vec!["generate", "--out", "folder"], "cannot write folder: "),
        (vec!["plot", "builtin:lte", "--out", "none/x.svg"], "cannot write none/x.svg: "),
        (
            vec!["plot", "builtin:lte", "--out", "x.png"],
            "expected --out to end in .svg or .html, found x.png",
        ),
        (vec!["record", "receive", "--listen", "127.0.0.1:0", "--out", "none/x"], "cannot write none/x: "),
    ] {
        let said = trace(here, &arguments);
        assert_eq!(said.status, 2, "{arguments:?}: {}", said.error);
        assert!(said.error.contains(expected), "{arguments:?}: {}", said.error);
    }
}

#[test]
fn truncated_gzip_file_is_reported_as_truncated() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let text: String = (1..50_000).map(|ms| format!("{ms}\n")).collect();
    let (whole, cut) = (here.join("whole.gz"), here.join("cut.gz"));
    gzip(&whole, text.as_bytes());
    let bytes = fs::read(&whole).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 100]).unwrap();
    let said = trace(here, &["info", "cut.gz"]);
    assert_eq!(said.status, 2);
    assert!(
        said.error.contains("cut.gz: after line ") && said.error.contains("cut off or damaged"),
        "{}",
        said.error
    );
    // Valid files are described all the same.
    let said = trace(here, &["info", "whole.gz", "cut.gz"]);
    assert!(
        said.status == 2 && said.out.contains("whole.gz") && said.out.contains("gzipped"),
        "{}",
        said.out
    );
}

#[test]
fn ten_gigabyte_sparse_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    File::create(here.join("huge")).unwrap().set_len(10_000_000_000).unwrap();
    let began = Instant::now();
    for (arguments, expected) in [
        (vec!["info", "huge"], "huge: line 1: expected a time in whole milliseconds"),
        (vec!["convert", "huge", "--out", "x"], "huge: line 1: expected a time in whole milliseconds"),
        (
            vec!["convert", "huge", "--format", "ucc-5g", "--out", "x"],
            "huge: line 1: expected a line of at most",
        ),
    ] {
        let said = trace(here, &arguments);
        assert_eq!(said.status, 2, "{}", said.error);
        assert!(said.error.contains(expected), "{}", said.error);
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn generated_traces_are_reproducible_and_info_shows_their_figures() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let make = |out: &str, more: &[&str]| {
        good(here, &[&["generate", "--duration", "20s", "--out", out], more].concat());
        fs::read(here.join(out)).unwrap()
    };
    let first = make("a", &["--model", "lte", "--seed", "5"]);
    assert_eq!(first, make("b", &["--seed", "5"]));
    assert_ne!(first, make("c", &["--seed", "6"]));
    make("a.gz", &["--seed", "5"]);
    let said = good(here, &["info", "--json", "a", "a.gz"]);
    let rows: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(rows[0]["sha256"], rows[1]["sha256"]);
    assert_eq!(
        (rows[0]["format"].as_str(), rows[1]["format"].as_str()),
        (Some("mahimahi"), Some("mahimahi, gzipped"))
    );
    assert_eq!(rows[0]["duration_s"].as_f64(), Some(20.0));
    let constant = make("wired48", &["--model", "constant", "--rate", "48Mbit/s"]);
    assert!(constant.starts_with(b"1\n1\n1\n1\n2\n") && constant.ends_with(b"20000\n"));
    assert!(good(here, &["info", "wired48"]).contains("48.000"));
}

#[test]
fn wrong_parameters_are_refused_with_a_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["generate", "--out", "x", "--model", "lt"][..], "lte"),
        (&["generate", "--out", "x", "--duration", "120"], "has no unit"),
        (&["generate", "--out", "x", "--model", "constant"], "needs --rate"),
        (&["generate", "--out", "x", "--rate", "1Mbit/s"], "is for --model constant"),
        (
            &["generate", "--out", "x", "--model", "constant", "--rate", "1Mbit/s", "--fading", "1"],
            "--fading is for the cellular models",
        ),
        (
            &["generate", "--out", "x", "--peak", "1Mbit/s"],
            "--peak: expected at least the mean of 12Mbit/s, found 1Mbit/s",
        ),
        (
            &["generate", "--out", "x", "--scheduled", "2"],
            "--scheduled: expected a number from 0.001 to 1, found 2",
        ),
        (&["generate", "--out", "x", "--duration", "40h"], "do not fit into a trace"),
        (&["genrate"], "generate"),
        (&["convert", "builtin:lte", "--out", "x", "--scale", "0"], "--scale: expected a number above 0"),
        (
            &["convert", "builtin:lte", "--out", "x", "--from", "5s", "--until", "5s"],
            "--until: expected a time after --from 5s, found 5s",
        ),
        (
            &["convert", "builtin:lte", "--out", "x", "--from", "999s"],
            "nothing is left after 999s of a trace of 120s",
        ),
        (
            &["convert", "builtin:lte", "--out", "x", "--to", "csv", "--bin", "0.5ms"],
            "--bin: expected whole milliseconds",
        ),
        (
            &["record", "send", "--to", "127.0.0.1:9", "--time", "2h"],
            "--time: expected more than 0s and up to 3600s",
        ),
    ] {
        let said = trace(folder.path(), arguments);
        assert_eq!(said.status, 2, "{arguments:?}: {}", said.error);
        assert!(said.error.contains(expected), "{arguments:?}: {}", said.error);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn logs_become_traces_and_traces_become_rates() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(
        here.join("ucc.csv"),
        "Timestamp,CQI,DL_bitrate,UL_bitrate\n2020.01.01_00.00.00,9,24,12\n2020.01.01_00.00.02,9,48,0\n2020.01.01_00.00.02,9,24,0\n",
    )
    .unwrap();
    good(here, &["convert", "ucc.csv", "--out", "down"]);
    assert_eq!(fs::read_to_string(here.join("down")).unwrap(), "250\n750\n1250\n1750\n2166\n2500\n2833\n");
    good(here, &["convert", "ucc.csv", "--out", "up", "--up", "--format", "ucc-5g"]);
    assert_eq!(fs::read_to_string(here.join("up")).unwrap(), "500\n1500\n");
    good(here, &["convert", "down", "--out", "rates.csv", "--to", "csv", "--bin", "1s"]);
    let rates = "time_s,rate_bit_s,opportunities\n0.000,24000,2\n1.000,24000,2\n2.000,36000,3\n";
    assert_eq!(fs::read_to_string(here.join("rates.csv")).unwrap(), rates);
    let columns = ["--time-column", "time_s", "--rate-column", "rate_bit_s", "--rate-unit", "bit/s"];
    good(here, &[&["convert", "rates.csv", "--out", "again"][..], &columns].concat());
    assert_eq!(fs::read(here.join("again")).unwrap(), fs::read(here.join("down")).unwrap());
    good(here, &["convert", "down", "--out", "part", "--from", "1s", "--until", "2s", "--scale", "2"]);
    assert_eq!(fs::read_to_string(here.join("part")).unwrap(), "250\n250\n750\n750\n");
    fs::write(here.join("pairs.txt"), "0 0.024\n1 0.024\n2 0.036\n").unwrap();
    good(here, &["convert", "pairs.txt", "--out", "pairs", "--rate-unit", "Mbit/s"]);
    assert_eq!(fs::read(here.join("pairs")).unwrap(), fs::read(here.join("down")).unwrap());
    for (arguments, expected) in [
        (vec!["rates.csv"], "needs --rate-column"),
        (vec!["rates.csv", "--rate-column", "rate"], "needs --rate-unit"),
        (
            vec!["rates.csv", "--rate-column", "rate_bits", "--rate-unit", "bit/s"],
            "rates.csv: line 1: no column \"rate_bits\"; there are: time_s, rate_bit_s, opportunities; did you mean \"rate_bit_s\"?",
        ),
        (vec!["pairs.txt"], "needs --rate-unit"),
        (vec!["rates.csv", "--rate-column", "rate_bit_s", "--rate-unit", "Mbits"], "expected one of bit/s"),
    ] {
        let said = trace(here, &[&["convert", "--out", "x"], &arguments[..]].concat());
        assert_eq!(said.status, 2, "{arguments:?}: {}", said.error);
        assert!(said.error.contains(expected), "{arguments:?}: {}", said.error);
    }
}

#[test]
fn plots_are_self_contained_files() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    good(here, &["plot", "builtin:lte", "--out", "lte.svg"]);
    good(here, &["plot", "builtin:lte", "--out", "lte.html"]);
    let (svg, page) = ("lte.svg", "lte.html");
    let [svg, page] = [svg, page].map(|name| fs::read_to_string(here.join(name)).unwrap());
    assert!(svg.starts_with("<svg xmlns") && page.starts_with("<!DOCTYPE html>"));
    assert!(!page.contains("<script") && !page.contains("<link"));
    assert!(svg.len() < 300_000 && page.len() < 300_000, "{} {}", svg.len(), page.len());
}

/// Conversion of real logs, where they are at hand.
#[test]
fn recorded_5g_logs_convert_to_their_published_figures() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces/ucc-5g-2020");
    let folder = tempfile::tempdir().unwrap();
    // Rows, seconds and mean as the index of the data states; the mean there is of the rows, so it differs a little.
    for (name, seconds, mbit) in [
        ("driving-B_2019.12.14_10.16.30.csv", 1163.0, 10.2),
        ("driving-B_2020.02.14_12.58.17.csv", 997.0, 4.7),
        ("static-B_2020.02.14_13.21.26.csv", 1103.0, 128.9),
    ] {
        let path = data.join(name);
        if !path.exists() {
            // Written past the test runner, which hides what passing tests print.
            let word = "skipped: needs shared/data/traces beside the checkout; CONTRIBUTING.md says where they come from\n";
            std::io::Write::write_all(&mut std::io::stderr(), word.as_bytes()).unwrap();
            return;
        }
        good(folder.path(), &["convert", path.to_str().unwrap(), "--out", "down"]);
        let said = good(folder.path(), &["info", "--json", "down"]);
        let rows: serde_json::Value = serde_json::from_str(&said).unwrap();
        let (length, mean) =
            (rows[0]["duration_s"].as_f64().unwrap(), rows[0]["mean_bit_s"].as_f64().unwrap() / 1e6);
        assert!((length - seconds).abs() < 12.0, "{name}: {length} s");
        assert!((mean / mbit - 1.0).abs() < 0.1, "{name}: {mean} Mbit/s");
    }
}

#[test]
fn a_link_is_recorded_over_loopback_and_kept_on_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut receiver = command(
        here,
        &["trace", "record", "receive", "--listen", &address, "--out", "loop.down", "--time", "60s"],
    )
    .spawn()
    .unwrap();
    let sent = trace(here, &["record", "send", "--to", &address, "--time", "2s", "--window", "50"]);
    assert_eq!(sent.status, 0, "{}", sent.error);
    assert!(sent.out.contains("the link to 127.0.0.1"), "{}", sent.out);
    // The sender says when it ends.
    assert_eq!(receiver.wait().unwrap().code(), Some(0));
    assert!(good(here, &["info", "loop.down"]).contains("loop.down"));

    let mut receiver = command(
        here,
        &["trace", "record", "receive", "--listen", &address, "--out", "cut.down", "--time", "60s"],
    )
    .spawn()
    .unwrap();
    let mut sender =
        command(here, &["trace", "record", "send", "--to", &address, "--time", "60s", "--window", "50"])
            .spawn()
            .unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    for process in [&receiver, &sender] {
        let told = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
        assert!(told.success());
    }
    assert_eq!(receiver.wait().unwrap().code(), Some(130));
    assert_eq!(sender.wait().unwrap().code(), Some(130));
    assert!(good(here, &["info", "cut.down"]).contains("cut.down"));
}

#[test]
fn every_example_of_the_help_works() {
    let folder = tempfile::tempdir().unwrap();
    let here: PathBuf = folder.path().to_owned();
    let mut file = File::create(here.join("driving.csv")).unwrap();
    writeln!(file, "Timestamp,DL_bitrate\n2020.01.01_00.00.00,2400\n2020.01.01_00.00.01,1200").unwrap();
    fs::write(here.join("pairs.txt"), "0 1\n1 2\n").unwrap();
    let heavy: String = (1..=2_000).map(|ms| format!("{ms}\n")).collect();
    fs::write(here.join("down-pdo"), heavy).unwrap();
    fs::write(here.join("down-delay-light-pdo"), "0 20 0 2 4\n100 40 0 5 10\n200 20 0\n").unwrap();
    for of in [
        &["trace"][..],
        &["trace", "info"],
        &["trace", "plot"],
        &["trace", "generate"],
        &["trace", "convert"],
    ] {
        let help = command(&here, &[of, &["--help"]].concat()).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let examples: Vec<&str> = help
            .lines()
            .filter_map(|line| line.trim().strip_prefix("ranpace "))
            .filter(|l| l.starts_with("trace"))
            .collect();
        assert!(!examples.is_empty(), "{of:?}");
        for example in examples {
            let arguments: Vec<&str> = example.split_whitespace().collect();
            let said: Said = command(&here, &arguments).output().unwrap().into();
            assert_eq!(said.status, 0, "{example}: {}", said.error);
        }
    }
}
