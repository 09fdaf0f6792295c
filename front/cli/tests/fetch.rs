//! `ranpace fetch` as its user meets it: files that are whole or not there, tables, reports and refusals.
#![cfg(all(target_os = "linux", feature = "fetch"))]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may

#[path = "../../../carriers/fetch/tests/rig/mod.rs"]
mod rig;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rig::{Server, content};

fn ranpace(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.arg("fetch").args(arguments);
    command
}

fn texts(output: &Output) -> (String, String) {
    (String::from_utf8(output.stdout.clone()).unwrap(), String::from_utf8(output.stderr.clone()).unwrap())
}

fn save<'a>(server: &'a Server, url: &'a str, folder: &'a Path) -> [&'a str; 5] {
    [url, "--pin", &server.fingerprint, "--save", folder.to_str().unwrap()]
}

#[test]
fn kill_9_at_any_moment_leaves_no_partial_file_under_the_whole_ones_name() {
    const SIZE: usize = 3_000_000;
    let server = Server::start("cubic");
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join(SIZE.to_string());
    for (http, pauses_ms) in [("3", [30, 60, 90, 120]), ("1.1", [20, 50, 80, 110])] {
        // 46 pieces: at least 230 ms for all.
        let url = server.url(&format!("/{SIZE}?slow=5&etag=v1&digest=right&http={http}"));
        let arguments = [&save(&server, &url, folder.path())[..], &["--http", http]].concat();
        for pause_ms in pauses_ms {
            let mut running: Child =
                ranpace(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            sleep(Duration::from_millis(pause_ms));
            running.kill().unwrap();
            running.wait().unwrap();
            if whole.exists() {
                assert!(
                    fs::read(&whole).unwrap() == content(SIZE),
                    "HTTP/{http}, killed after {pause_ms} ms"
                );
            }
        }
        let output = ranpace(&arguments).output().unwrap();
        assert!(output.status.success(), "{:?}", texts(&output));
        assert!(fs::read(&whole).unwrap() == content(SIZE), "HTTP/{http}: another content came");
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "parts are left over");
        fs::remove_file(&whole).unwrap();
    }
}

/// `ranpace serve` as a process, at a port, with a certificate that stays the same when it is started again.
#[cfg(feature = "serve")]
fn serve(folder: &Path, address: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.current_dir(folder).args(["serve", "files", "--listen", address]);
    command.args(["--certificate", "certificate.pem", "--key", "key.pem"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = std::time::Instant::now();
    while std::net::TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the server does not listen");
        sleep(Duration::from_millis(5));
    }
    child
}

/// A file as OpenSSL writes it.
#[cfg(feature = "serve")]
fn pem(label: &str, content: &[u8]) -> String {
    let content = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, content);
    format!("-----BEGIN {label}-----\n{content}\n-----END {label}-----\n")
}

#[test]
#[cfg(feature = "serve")]
fn kill_9_of_the_server_at_any_moment_leaves_no_partial_file_under_the_whole_ones_name() {
    const SIZE: usize = 60_000_000;
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("files")).unwrap();
    let whole = content(SIZE);
    fs::write(folder.path().join("files/file"), &whole).unwrap();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.path().join("certificate.pem"), pem("CERTIFICATE", own.cert.der())).unwrap();
    fs::write(folder.path().join("key.pem"), pem("PRIVATE KEY", &own.signing_key.serialize_der())).unwrap();
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (address, url) = (format!("127.0.0.1:{port}"), format!("https://localhost:{port}/file"));
    let mut broken_off = 0;
    for (http, pauses_ms) in [("3", [20, 60, 120, 250]), ("1.1", [10, 30, 60, 120])] {
        let saved = folder.path().join("saved");
        fs::create_dir(&saved).unwrap();
        let arguments = [&url, "--insecure", "--http", http, "--save", saved.to_str().unwrap()];
        for pause_ms in pauses_ms {
            let mut server = serve(folder.path(), &address);
            let mut command = ranpace(&arguments);
            command.args(["--timeout", "500ms"]).stdout(Stdio::null()).stderr(Stdio::piped());
            let running = command.spawn().unwrap();
            sleep(Duration::from_millis(pause_ms));
            server.kill().unwrap();
            server.wait().unwrap();
            let output = running.wait_with_output().unwrap();
            let is_whole = saved.join("file").exists();
            let part = fs::metadata(saved.join(".file.ranpace-part")).map_or(0, |part| part.len());
            broken_off += usize::from(part > 0);
            assert_eq!(
                output.status.success(),
                is_whole,
                "HTTP/{http}, after {pause_ms} ms: {:?}",
                texts(&output)
            );
            if is_whole {
                assert!(fs::read(saved.join("file")).unwrap() == whole, "HTTP/{http}, after {pause_ms} ms");
                // The next one downloads again.
                fs::remove_file(saved.join("file")).unwrap();
            }
        }
        let mut server = serve(folder.path(), &address);
        let output = ranpace(&arguments).output().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(output.status.success(), "{:?}", texts(&output));
        assert!(fs::read(saved.join("file")).unwrap() == whole, "HTTP/{http}: another content came");
        fs::remove_dir_all(&saved).unwrap();
    }
    assert!(broken_off > 0, "no download was broken off in the middle");
}

#[test]
fn a_full_disk_is_told_and_the_download_goes_on_when_there_is_room() {
    if !nix::unistd::geteuid().is_root() {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs root, to mount a small file system");
        eprintln!("skipped: needs root, to mount a small file system");
        return;
    }
    const SIZE: usize = 2_000_000;
    let server = Server::start("cubic");
    let folder = tempfile::tempdir().unwrap();
    let url = server.url(&format!("/{SIZE}?etag=v1"));
    // In a namespace of its own the mount ends with the shell.
    let script = "set -u
        mount -t tmpfs -o size=1m none \"$2\" || exit 90
        \"$1\" fetch \"$3\" --pin \"$4\" --save \"$2\"
        echo \"first: $?\"
        mount -o remount,size=8m \"$2\" || exit 91
        \"$1\" fetch \"$3\" --pin \"$4\" --save \"$2\" --json
        echo \"second: $?\"
        wc -c < \"$2/2000000\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_ranpace")])
        .arg(folder.path())
        .args([&url, &server.fingerprint])
        .output()
        .unwrap();
    let (out, err) = texts(&output);
    assert!(err.contains("no room for") && err.contains("the same command goes on from there"), "{out}{err}");
    assert!(
        out.contains("first: 1") && out.contains("second: 0") && out.trim_end().ends_with("2000000"),
        "{out}{err}"
    );
    let resumed = server.asked.lock().unwrap().iter().filter(|asked| asked.contains("bytes=")).count();
    assert_eq!(resumed, 1, "{:?}", server.asked.lock().unwrap());
    assert!(out.contains("\"resumed_from_bytes\": "), "{out}");
}

#[test]
fn servers_side_by_side_are_a_table_a_document_and_a_report() {
    let (ours, other) = (Server::start("cubic"), Server::start("newreno+meld-me"));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let urls = [ours.url("/200000"), other.url("/200000"), format!("http://127.0.0.1:{}/200000", ours.plain)];
    let mut arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
    arguments.extend(["--label", "CUBIC", "--label", "MELD", "--label", "kernel", "--insecure"]);
    arguments.extend(["--repeat", "3", "--parallel", "2", "--out", out.to_str().unwrap()]);
    let output = ranpace(&arguments).output().unwrap();
    let (table, err) = texts(&output);
    assert!(output.status.success(), "{table}{err}");
    for text in ["CUBIC", "MELD", "kernel", "handshake", "first byte", "completion", "goodput", "±"] {
        assert!(table.contains(text), "no {text:?} in\n{table}");
    }
    let rows: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("fetch/fetch.json")).unwrap()).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 3);
    for row in rows.as_array().unwrap() {
        assert_eq!(row["downloads"], 6, "{row}");
        let [handshake, first, completion] = ["handshake_s", "first_byte_s", "completion_s"].map(|name| {
            let mean = row[name]["mean"].as_f64().unwrap();
            assert!(row[name]["ci95"].is_f64(), "{row}");
            mean
        });
        assert!(0.0 < handshake && handshake <= first && first <= completion, "{row}");
        assert!(row["each"].as_array().unwrap().iter().all(|one| one["bytes"] == 200_000), "{row}");
    }
    assert_eq!([0, 2].map(|place| rows[place]["each"][0]["http"].clone()), ["3", "1.1"]);
    let report = fs::read_to_string(out.join("fetch/report.html")).unwrap();
    assert_eq!(report.matches("<svg").count(), 2, "rates and the distribution of completion times");
    assert!(report.contains("MELD") && report.contains("--repeat 3"));
    // The URLs take turns.
    let asked = ours.asked.lock().unwrap().clone();
    let asked: Vec<&str> = asked.iter().map(|asked| asked.split(' ').next().unwrap()).collect();
    assert_eq!(asked, ["3", "3", "1.1", "1.1"].repeat(3));
}

#[test]
fn what_a_modem_says_reaches_the_server_as_reports() {
    let server = Server::start("dcic");
    let folder = tempfile::tempdir().unwrap();
    let modem = folder.path().join("modem.jsonl");
    fs::write(&modem, "").unwrap();
    let url = server.url("/1000000?slow=30"); // 16 pieces: half a second
    let mut running = ranpace(&[&url, "--pin", &server.fingerprint, "--reports", "dcic", "--json"])
        .args(["--radio", modem.to_str().unwrap(), "--user", "phone"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A grant of 18336 bits in each millisecond, told every 10 ms.
    let grant = r#"{"at_s":1,"measured_at_s":1,"source":"dci","user":"phone","direction":"downlink","cqi":null,"mcs":28,"layers":1,"tbs_bits":18336,"tti_s":0.001,"granted_prbs":25.0,"unused_prbs":0.0,"cell_prbs":25,"active_users":1,"queue_bytes":30000,"handover":false}"#;
    while running.try_wait().unwrap().is_none() {
        let mut file = fs::File::options().append(true).open(&modem).unwrap();
        std::io::Write::write_all(&mut file, format!("{grant}\n").repeat(10).as_bytes()).unwrap();
        sleep(Duration::from_millis(10));
    }
    let output = running.wait_with_output().unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let sent = rows[0]["each"][0]["reports"].as_u64().unwrap();
    let heard = *server.reports.lock().unwrap();
    assert!(heard >= 3 && heard as u64 <= sent, "{heard} of {sent} reports came");
}

#[test]
fn what_cannot_be_done_is_told_before_anything_is_asked() {
    let https = "https://127.0.0.1:9/file";
    for (arguments, code, expected) in [
        (
            vec![https, "--label", "a", "--label", "b"],
            2,
            "expected --label once for each URL, 1 times; found it 2 times",
        ),
        (vec![https, "--save", ".", "--repeat", "2"], 2, "leave out --repeat and --parallel"),
        (vec![https, "https://127.0.0.1:8/file", "--save", "."], 2, "two URLs end in \"file\""),
        (vec!["http://127.0.0.1:9/", "--http", "3"], 2, "HTTP/3 is always encrypted"),
        (vec!["http://127.0.0.1:9/", "--reports", "cdbev2"], 2, "--reports needs HTTP/3"),
        (vec![https, "--http", "2"], 2, "expected 3 or 1.1"),
        (vec![https, "--pin", "abc"], 2, "64 hexadecimal digits"),
        (vec!["127.0.0.1:9/file"], 2, "expected a URL such as https://"),
        (vec![https, "--reports", "cdbe2"], 2, "nearest: cdbe"),
        (vec![https, "--reports", "cubic"], 2, "the receiver of cubic reports nothing; those of"),
        (vec![https, "--cc", "cubik"], 2, "nearest: cubic"),
        (vec![https, "--ca", "/nowhere/ca.pem"], 2, "cannot read certificates from /nowhere/ca.pem"),
        (vec!["http://127.0.0.1:9/"], 1, "no connection to 127.0.0.1:9"),
    ] {
        let output = ranpace(&arguments).output().unwrap();
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {err}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}
