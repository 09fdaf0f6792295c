//! Who may ask, and for how much.
#![allow(clippy::unwrap_used)] // allowed in tests

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use ranpace_web::{LabError, Options, Server};
use serde_json::json;
use support::{Lab, Watched, request};

const LINK: &str = "duration = \"60s\"\n[[link]]\nfrom = \"server\"\nto = \"phone\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\n\
                    duplex = true\n[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\n";

#[test]
fn pages_of_other_sites_get_nothing() {
    let lab = Lab::new();
    let port = lab.address().port();
    let begin = json!({ "text": LINK }).to_string();
    let json_type = ("content-type", "application/json");
    let foreign = format!("evil.example:{port}");
    for (case, method, path, fields, status) in [
        ("a name that leads here", "GET", "/api/server", vec![("host", foreign.as_str())], 403),
        ("the same for the page", "GET", "/", vec![("host", foreign.as_str())], 403),
        (
            "a script elsewhere",
            "POST",
            "/api/sessions",
            vec![("origin", "http://evil.example"), json_type],
            403,
        ),
        ("a sandboxed page", "POST", "/api/sessions", vec![("origin", "null"), json_type], 403),
        ("a form elsewhere", "POST", "/api/sessions", vec![("content-type", "text/plain")], 415),
        ("a form of an old browser", "POST", "/api/sessions", vec![], 415),
        ("an image elsewhere", "GET", "/api/server", vec![("sec-fetch-site", "cross-site")], 403),
        (
            "a stream elsewhere",
            "GET",
            "/api/sessions/1/stream",
            vec![("origin", "http://evil.example"), ("upgrade", "websocket")],
            403,
        ),
    ] {
        let answer = lab.send(method, path, &fields, if method == "POST" { begin.as_bytes() } else { b"" });
        assert_eq!(answer.status, status, "{case}: {}", answer.text());
    }
    assert_eq!(lab.get("/api/sessions").json(), json!([]), "nothing has begun");
    let page = lab.get("/");
    let policy = page.field("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'self'"), "{policy}");
    assert_eq!(page.field("x-content-type-options").unwrap(), "nosniff");
}

#[test]
fn beyond_loopback_a_token_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let token = "0123456789abcdef0123456789abcdef";
    let options = |listen: &str, token: Option<&str>| Options {
        listen: listen.parse().unwrap(),
        folder: folder.path().to_owned(),
        traces: Vec::new(),
        token: token.map(str::to_owned),
        attach: Vec::new(),
    };
    for token in [None, Some("short")] {
        assert!(matches!(Server::start(options("0.0.0.0:0", token)), Err(LabError::NoToken(_))));
    }
    // On loopback, with a token all the same.
    let server = Server::start(options("127.0.0.1:0", Some(token))).unwrap();
    let address = server.address();
    assert_eq!(server.url(), format!("http://{address}/?token={token}"));
    let get = |path: &str, fields: &[(&str, &str)]| request(address, "GET", path, fields, b"");
    assert_eq!(get("/api/server", &[]).status, 401);
    assert_eq!(get("/", &[]).status, 401);
    assert_eq!(get("/?token=0123456789abcdef0123456789abcdee", &[]).status, 401);
    assert_eq!(get(&format!("/api/server?token={token}"), &[]).status, 401, "only the page's address has it");
    let welcome = get(&format!("/?token={token}"), &[]);
    assert_eq!((welcome.status, welcome.field("location").unwrap().as_str()), (303, "/"));
    let cookie = welcome.field("set-cookie").unwrap();
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(get("/api/server", &[("cookie", cookie)]).status, 200);
    assert_eq!(get("/api/server", &[("authorization", &format!("Bearer {token}"))]).status, 200);
}

#[test]
fn what_is_too_much_is_refused_before_it_starts() {
    let lab = Lab::new();
    let flows = |count: u32| LINK.replace("cc = ", &format!("count = {count}\ncc = "));
    for (case, text, status, word) in [
        ("too long", LINK.replace("60s", "2h"), 413, "ranpace run"),
        ("too many rows", format!("sample = \"10us\"\n{LINK}"), 413, "sample"),
        ("too many flows", flows(501), 413, "500 flows"),
        ("too much work", LINK.replace("8Mbit", "900Gbit").replace("60s", "600s"), 413, "packets"),
        ("no scenario", "duration".to_owned(), 422, "TOML"),
        (
            "a file of the machine",
            LINK.replace("rate = \"8Mbit/s\"", "trace = \"/etc/passwd\""),
            422,
            "no trace",
        ),
        ("too long a text", format!("{LINK}#{}", "x".repeat(300_000)), 413, "KiB"),
    ] {
        let answer = lab.post("/api/sessions", &json!({ "text": text }));
        assert_eq!(answer.status, status, "{case}: {}", answer.text());
        assert!(answer.detail().contains(word), "{case}: {}", answer.text());
    }
    let long = "x".repeat(2_000_000);
    assert_eq!(lab.post("/api/sessions", &json!({ "text": long })).status, 413);
    let upload = lab.send(
        "POST",
        "/api/recordings?name=big",
        &[("content-type", "application/octet-stream")],
        &vec![b'1'; 17 << 20],
    );
    assert_eq!(upload.status, 413);
    let deep = "[".repeat(100_000);
    assert_eq!(
        lab.send("POST", "/api/sessions", &[("content-type", "application/json")], deep.as_bytes()).status,
        400
    );
    let nested = format!("x = {}", "[".repeat(50_000));
    assert_eq!(lab.post("/api/scenarios/check", &json!({ "text": nested })).status, 422);
    assert_eq!(lab.get("/api/sessions").json(), json!([]));
}

#[test]
fn runs_are_few_and_a_deleted_one_is_gone() {
    let lab = Lab::new();
    let begin = || lab.post("/api/sessions", &json!({ "text": LINK, "paused": true }));
    for _ in 0..16 {
        assert_eq!(begin().status, 200);
    }
    let one_more = begin();
    assert_eq!(one_more.status, 429, "{}", one_more.text());
    let mut page = Watched::new(lab.address(), "3");
    assert_eq!(lab.send("DELETE", "/api/sessions/3", &[], b"").status, 204);
    while page.step().is_some() {}
    let begun = Instant::now();
    while lab.get("/api/sessions/3").status == 200 {
        assert!(begun.elapsed().as_secs() < 30);
    }
    assert_eq!(begin().status, 200);
    assert_eq!(lab.get("/api/sessions/3/stream").status, 404);
    assert_eq!(lab.get("/api/sessions/4/stream").status, 400, "no WebSocket");
}

#[test]
fn slow_clients_hold_up_nobody() {
    let lab = Lab::new();
    let mut idle: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(lab.address()).unwrap()).collect();
    idle.iter_mut().for_each(|stream| stream.write_all(b"GET /api/ser").unwrap());
    assert_eq!(lab.get("/api/server").status, 200);
    // The head of a request has ten seconds.
    let mut first = idle.remove(0);
    first.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    let mut rest = Vec::new();
    assert!(first.read_to_end(&mut rest).is_ok(), "it was closed");
}

#[test]
fn recordings_are_uploaded_and_played() {
    let lab = Lab::new();
    let upload = |name: &str, content: &str| {
        lab.send(
            "POST",
            &format!("/api/recordings?name={name}"),
            &[("content-type", "application/octet-stream")],
            content.as_bytes(),
        )
    };
    let recording: String = (1..=1_000).map(|ms| format!("{ms}\n")).collect();
    assert_eq!(upload("mine.down", &recording).status, 200);
    for (name, content, status) in
        [("..%2Fx", "1\n", 422), ("mine.down", "1\n", 409), ("words", "one\n", 422)]
    {
        assert_eq!(upload(name, content).status, status, "{name}");
    }
    assert_eq!(lab.get("/api/sources").json()["recordings"][0]["name"], "mine.down");
    let text = LINK.replace("rate = \"8Mbit/s\"", "trace = \"mine.down\"").replace("60s", "1s");
    let mut page = lab.watch(&text, false);
    page.until(|page| page.rows.times.len() == 10);
    let capacity = page.column("link1", "capacity_bit_s");
    assert!((capacity[4] - 12e6).abs() < 1e5, "1504 bytes each millisecond: {capacity:?}");
}

#[test]
fn a_server_that_stops_ends_its_runs_and_streams() {
    let lab = Lab::new();
    let mut page = lab.watch(LINK, true);
    let Lab { server, folder } = lab;
    let begun = Instant::now();
    drop(server);
    while page.step().is_some() {}
    assert!(begun.elapsed() < Duration::from_secs(30));
    drop(folder);
}
