//! Our client with an HTTP/3 server of others: aioquic.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails where it cannot go on, and says what it skips"
)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ranpace_fetch::trust::Trust;
use ranpace_fetch::{FetchError, Options, fetch};

const SIZE: usize = 600_000;

/// Ends the server with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_download_from_aioquic_comes_whole_and_goes_on_after_a_reset() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../target/interop/bin/python");
    if !python.exists() {
        let needs = "needs target/interop: python3 -m venv target/interop, and its pip install -r tools/interop-requirements.txt";
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "{needs}");
        eprintln!("skipped: {needs}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
    let pem = |label: &str, der: &[u8]| {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
    };
    fs::write(&certificate, pem("CERTIFICATE", own.cert.der())).unwrap();
    fs::write(&key, pem("PRIVATE KEY", &own.signing_key.serialize_der())).unwrap();
    let script = here.join("tests/aioquic_server.py");
    let running = Command::new(python).arg(script).args([&certificate, &key]).stdout(Stdio::piped()).spawn();
    let mut server = Server(running.unwrap());
    let mut port = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options = Options {
        trust: Trust::File(certificate),
        folder: Some(folder.path().to_owned()),
        reports: Some("cdbev2".parse().unwrap()),
        ..Options::default()
    };
    let get = |query: &str| {
        let target = format!("https://127.0.0.1:{}/{SIZE}{query}", port.trim()).parse().unwrap();
        runtime.block_on(fetch(&target, &options, &|_| {}))
    };
    let expected: Vec<u8> =
        (0..SIZE as u32).map(|place| (place.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    let file = folder.path().join(SIZE.to_string());

    let measured = get("").unwrap();
    assert_eq!((measured.bytes, measured.digest_compared), (SIZE as u64, true));
    assert_eq!(measured.reports, None, "aioquic does not know what reports are");
    assert!(fs::read(&file).unwrap() == expected);

    fs::remove_file(&file).unwrap();
    let broken = get("?cut=200000").unwrap_err();
    assert!(matches!(broken, FetchError::Broken { .. }), "{broken}");
    assert!(!file.exists());
    let measured = get("?cut=200000").unwrap();
    assert!(measured.resumed_from > 0 && measured.digest_compared, "{measured:?}");
    assert!(fs::read(&file).unwrap() == expected);
}
