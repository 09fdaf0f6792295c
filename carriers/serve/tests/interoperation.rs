//! HTTP/3 clients of others: aioquic, and Chromium loading a page.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails where it cannot go on, and says what it skips"
)]

mod rig;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ranpace_serve::config::Identity;
use rcgen::PublicKeyData as _;
use rig::{Rig, content};
use ring::digest::{SHA256, digest};

/// A program, if there is one of these names.
fn program(names: &[&str]) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let all = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    all.into_iter().find(|path| path.exists())
}

fn skip(needs: &str) {
    assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs {needs}");
    eprintln!("skipped: needs {needs}");
}

/// A file as OpenSSL writes it.
fn pem(label: &str, content: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(content))
}

#[test]
fn aioquic_gets_files_and_parts_of_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = folder.join("../../target/interop/bin/python");
    if !python.exists() {
        return skip(
            "target/interop: python3 -m venv target/interop, and its pip install -r tools/interop-requirements.txt",
        );
    }
    let rig = Rig::start(|_| {});
    let port = rig.server.address().port().to_string();
    let output = Command::new(python).arg(folder.join("tests/aioquic_client.py")).arg(port).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let answers: Vec<serde_json::Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let hex = |bytes: &[u8]| {
        digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let file = content(300_000);
    for (number, (status, length, of)) in [
        (200, 300_000, Some(&file[..])),
        (206, 100_000, Some(&file[100_000..200_000])),
        (405, 21, None),
        (404, 10, None),
        (200, 3_000_000, None),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = &answers[number];
        assert_eq!(
            (&answer["status"], &answer["length"], &answer["end"]),
            (&status.into(), &length.into(), &"whole".into()),
            "{answer}"
        );
        if let Some(of) = of {
            assert_eq!(answer["sha256"], hex(of), "{answer}");
        }
    }
}

#[test]
fn chromium_loads_a_page_with_a_script_and_an_image_by_http3() {
    let Some(browser) = program(&["chromium", "chromium-browser", "google-chrome"]) else {
        return skip("chromium");
    };
    let keys = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (keys.path().join("certificate.pem"), keys.path().join("key.pem"));
    fs::write(&certificate, pem("CERTIFICATE", own.cert.der())).unwrap();
    fs::write(&key, pem("PRIVATE KEY", &own.signing_key.serialize_der())).unwrap();
    let pin = BASE64_STANDARD.encode(digest(&SHA256, &own.signing_key.subject_public_key_info()));
    let rig = Rig::start(|config| config.identity = Identity::Files { certificate, key });
    fs::create_dir(rig.path("page")).unwrap();
    let page = "<!doctype html><title>a page</title><p id=word>no script ran</p>\
        <img id=image src=image.svg><script src=script.js></script>";
    let script = "addEventListener('load', () => { document.getElementById('word').textContent = \
        `the script ran, the image is ${document.getElementById('image').naturalWidth} wide, by ${performance.getEntriesByType('navigation')[0].nextHopProtocol}`; });";
    let image = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"64\" height=\"64\"/>";
    for (name, text) in [("index.html", page), ("script.js", script), ("image.svg", image)] {
        fs::write(rig.path("page").join(name), text).unwrap();
    }
    let origin = rig.server.address();
    let output = Command::new("timeout")
        .arg("90")
        .arg(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-quic",
        ])
        .arg(format!("--user-data-dir={}", keys.path().join("profile").display()))
        .arg(format!("--origin-to-force-quic-on={origin}"))
        .arg(format!("--ignore-certificate-errors-spki-list={pin}"))
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("https://{origin}/page/"))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        dom.contains("the script ran, the image is 64 wide, by h3"),
        "{dom}\n{said}\n{}",
        rig.server.metrics().text()
    );
    assert!(rig.metric("serve_requests_total{protocol=\"Http3\",status=\"200\"}") >= 3);
}
