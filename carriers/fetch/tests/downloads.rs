//! Downloads over loopback, from a server that has the faults that a test asks for.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod rig;

use std::fs;
use std::path::Path;
use std::time::Duration;

use ranpace_fetch::target::Target;
use ranpace_fetch::trust::Trust;
use ranpace_fetch::{FetchError, Http, Measured, Options, fetch};
use rig::{Server, content};

/// More than the windows of the beginning.
const SIZE: usize = 1_500_000;

/// Downloads a URL; the runtime is the client's own.
fn get(url: &str, options: &Options) -> Result<Measured, FetchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let target: Target = url.parse().unwrap();
    runtime.block_on(fetch(&target, options, &|_| {}))
}

fn trusting(server: &Server) -> Options {
    Options { trust: Trust::Pinned(server.fingerprint.parse().unwrap()), ..Options::default() }
}

fn names(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn a_file_comes_whole_over_both_protocols() {
    let server = Server::start("cubic");
    let plain = format!("http://localhost:{}/{SIZE}", server.plain);
    for (url, http) in [
        (server.url(&format!("/{SIZE}")), Http::Three),
        (server.url(&format!("/{SIZE}")), Http::One),
        (plain, Http::One),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { http, folder: Some(folder.path().to_owned()), ..trusting(&server) };
        let measured = get(&url, &options).unwrap();
        assert_eq!((measured.http, measured.bytes, measured.resumed_from), (http, SIZE as u64, 0));
        assert!(
            measured.handshake <= measured.first_byte && measured.first_byte <= measured.end,
            "{measured:?}"
        );
        assert_eq!(measured.rates.points().last().map(|last| last.1), Some(SIZE as u64));
        let name = SIZE.to_string();
        assert_eq!(names(folder.path()), [name.as_str()]);
        assert!(fs::read(folder.path().join(name)).unwrap() == content(SIZE), "{url}: another content came");
    }
}

#[test]
fn a_broken_download_goes_on_where_it_stopped() {
    let server = Server::start("cubic");
    for (case, http, etag) in
        [("h3", Http::Three, "&etag=v1"), ("h1", Http::One, "&etag=v1"), ("no-tag", Http::Three, "")]
    {
        let url = server.url(&format!("/{SIZE}?cut=900000&digest=right&case={case}{etag}"));
        let folder = tempfile::tempdir().unwrap();
        let options = Options { http, folder: Some(folder.path().to_owned()), ..trusting(&server) };
        let broken = get(&url, &options).unwrap_err();
        assert!(matches!(broken, FetchError::Broken { received: 1.., .. }), "{case}: {broken}");
        let name = SIZE.to_string();
        assert!(!folder.path().join(&name).exists(), "{case}: a partial file has the whole one's name");
        let measured = get(&url, &options).unwrap();
        assert_eq!(measured.resumed_from > 0, !etag.is_empty(), "{case}: {measured:?}");
        assert_eq!(measured.resumed_from + measured.bytes, SIZE as u64, "{case}");
        assert!(measured.digest_compared, "{case}");
        assert_eq!(names(folder.path()), [name.as_str()]);
        assert!(fs::read(folder.path().join(name)).unwrap() == content(SIZE), "{case}: another content came");
    }
}

#[test]
fn a_part_of_another_version_is_begun_anew() {
    let server = Server::start("cubic");
    let url = server.url(&format!("/{SIZE}?etag=v2"));
    let folder = tempfile::tempdir().unwrap();
    let name = SIZE.to_string();
    // What a download of version 1 left.
    fs::write(folder.path().join(format!(".{name}.ranpace-part")), vec![0; 1_000]).unwrap();
    let origin = format!("{{\"url\":\"{url}\",\"etag\":\"\\\"v1\\\"\"}}");
    fs::write(folder.path().join(format!(".{name}.ranpace-part.json")), origin).unwrap();
    let options = Options { folder: Some(folder.path().to_owned()), ..trusting(&server) };
    let measured = get(&url, &options).unwrap();
    assert_eq!(measured.resumed_from, 0);
    assert!(fs::read(folder.path().join(&name)).unwrap() == content(SIZE));
    let asked = server.asked.lock().unwrap().clone();
    assert_eq!(asked, [format!("3 /{SIZE}?etag=v2 bytes=1000-")], "one request is enough");
}

#[test]
fn wrong_lengths_and_digests_leave_no_file() {
    let server = Server::start("cubic");
    for (query, http, expected) in [
        ("says=70000", Http::Three, "announced 70000 bytes and sent 60000"),
        ("says=50000", Http::Three, "announced 50000 bytes and sent"),
        ("says=70000", Http::One, "broke off after 60000 bytes"),
        ("digest=wrong", Http::Three, "but the server announced"),
        ("status=404", Http::Three, "the server answered 404"),
        ("status=302", Http::One, "the server answered 302"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { http, folder: Some(folder.path().to_owned()), ..trusting(&server) };
        let error = get(&server.url(&format!("/60000?{query}")), &options).unwrap_err().to_string();
        assert!(error.contains(expected), "{query}: {error}");
        assert!(!names(folder.path()).contains(&"60000".to_owned()), "{query}: {:?}", names(folder.path()));
    }
}

#[test]
fn only_certificates_that_are_believed_are_accepted() {
    let server = Server::start("cubic");
    let url = server.url("/1000");
    for http in [Http::Three, Http::One] {
        for (case, trust, expected) in [
            ("pinned", Trust::Pinned(server.fingerprint.parse().unwrap()), None),
            ("in the file", Trust::File(server.certificate.clone()), None),
            ("anybody", Trust::Anyone, None),
            ("another pin", Trust::Pinned("00".repeat(32).parse().unwrap()), Some("is not the pinned one")),
            ("public authorities", Trust::Public, Some("")),
        ] {
            let options = Options { http, trust, ..Options::default() };
            let error = get(&url, &options).err().map(|error| error.to_string());
            match (expected, &error) {
                (None, None) => {}
                (Some(text), Some(error))
                    if error.contains(text) && error.contains("no connection to 127.0.0.1") => {}
                _ => panic!("{case} over {http:?}: {error:?}"),
            }
        }
    }
}

#[test]
fn a_receiver_reports_if_the_server_has_its_control() {
    let server = Server::start("cdbev2");
    // 1.5 MB in pieces of 64 kB, one every 10 ms.
    let url = server.url(&format!("/{SIZE}?slow=10"));
    for (control, wanted) in [("cdbev2", true), ("cdbe", false)] {
        *server.reports.lock().unwrap() = 0;
        let options = Options { reports: Some(control.parse().unwrap()), ..trusting(&server) };
        let measured = get(&url, &options).unwrap();
        assert_eq!(measured.reports.is_some(), wanted, "{control}");
        let heard = *server.reports.lock().unwrap();
        assert_eq!(heard > 0, wanted, "{control}: {heard} reports");
        assert!(heard as u64 <= measured.reports.unwrap_or(0), "{heard} came of {:?}", measured.reports);
    }
}

#[test]
fn faults_of_the_network_and_of_options_are_told() {
    // Bound and never read: nobody answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://127.0.0.1:{}/", silent.local_addr().unwrap().port());
    // Bound and closed again: nobody listens.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed = format!("http://127.0.0.1:{closed}/");
    let patience = Duration::from_millis(300);
    let plain = Options { patience, ..Options::default() };
    let kernel = Options { cc: Some("nonsense".into()), ..plain.clone() };
    let ours = Options { cc: Some("cubik".into()), ..plain.clone() };
    let reports = Options { reports: Some("cubic".parse().unwrap()), ..plain.clone() };
    for (url, options, expected) in [
        (&silent, &plain, "nothing came from the server for 0.3 s"),
        (&closed, &plain, "no connection to 127.0.0.1"),
        (&"http://name.invalid/".to_owned(), &plain, "no address of name.invalid"),
        (&closed, &kernel, "the kernel refuses the congestion control nonsense"),
        (&silent, &ours, "nearest: cubic"),
        (&silent, &reports, "the receiver of cubic reports nothing"),
        (&closed, &reports, "need HTTP/3"),
    ] {
        let error = get(url, options).unwrap_err().to_string();
        assert!(
            error.contains(expected) || (url == &silent && error.contains("timed out")),
            "{url}: {error}"
        );
    }
}
