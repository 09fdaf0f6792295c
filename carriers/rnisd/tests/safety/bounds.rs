//! What hostile and slow clients cannot do.

use std::io::Write as _;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::bed::{Bed, cell_change};
use crate::support::eventually;
use crate::support::http::Connection;

const PUBLIC: &str = "http://9.9.9.9:9/a";

/// The server still answers.
fn is_well(bed: &Bed) {
    bed.get("/queries/rab_info").expect(200);
}

#[test]
fn long_requests_are_refused() {
    let bed = Bed::new("[limits]\nbody = \"2KB\"\nheader = \"8192B\"\nuri = \"300B\"\nbody_time = \"10s\"\n");
    let subscriptions =
        "POST /rni/v2/subscriptions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    // Refused without waiting for the body that was announced.
    for length in ["2001", "1000000000", "9223372036854775807"] {
        let mut connection = bed.connect();
        connection.send(format!("{subscriptions}Content-Length: {length}\r\n\r\n"));
        assert_eq!(connection.reply().unwrap().expect(413).status, 413, "{length}");
    }
    let mut connection = bed.connect();
    connection.send(format!("{subscriptions}Transfer-Encoding: chunked\r\n\r\n"));
    for _ in 0..3 {
        connection.send(format!("3e8\r\n{}\r\n", " ".repeat(1000)));
    }
    connection.reply().unwrap().expect(413);
    bed.get(&format!("/queries/rab_info?cell_id={}", "1".repeat(400))).expect(414);
    bed.get(&format!("/{}", "a".repeat(400))).expect(414);
    for head in [
        format!("GET /health HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "a".repeat(10_000)),
        format!("GET /health HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(500)),
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(100_000)),
    ] {
        let mut connection = bed.connect();
        connection.send(head);
        // Bytes that were not read may end the connection before the answer is read.
        if let Some(reply) = connection.reply() {
            assert!(matches!(reply.status, 414 | 431), "{}", reply.status);
        }
    }
    is_well(&bed);
}

#[test]
fn slow_requests_are_cut_off() {
    let bed = Bed::new("[limits]\nhead_time = \"500ms\"\nbody_time = \"500ms\"\n");
    let begun = Instant::now();
    // Nothing, half a head, and a head that comes byte by byte.
    let mut silent = bed.connect();
    let mut half = bed.connect();
    half.send("GET /rni/v2/queries/rab_info HTTP/1.1\r\nHost:");
    let mut drip = bed.connect();
    let mut is_open = true;
    for byte in
        b"GET /rni/v2/queries/rab_info HTTP/1.1\r\nHost: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".iter().cycle()
    {
        std::thread::sleep(Duration::from_millis(20));
        if !drip.send([*byte]) {
            is_open = false;
            break;
        }
        if begun.elapsed() > Duration::from_secs(20) {
            break;
        }
    }
    assert!(!is_open, "a head that comes byte by byte is cut off");
    assert!(silent.is_closed());
    // Half a head may be answered with an error before the end.
    while half.reply().is_some() {}
    // An idle connection after an answer.
    let mut idle = bed.connect();
    assert_eq!(idle.ask("GET", "/health", &[], None).status, 200);
    assert!(idle.is_closed());
    // Half a body.
    let mut body = bed.connect();
    body.send("POST /rni/v2/subscriptions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
    body.reply().unwrap().expect(408);
    assert!(body.is_closed());
    eventually("all are counted as gone", || (bed.metric("rnis_connections") == 1.0).then_some(()));
    assert!(bed.metric("rnis_cut_off_total") >= 4.0);
    is_well(&bed);
}

#[test]
fn readers_that_take_nothing_are_cut_off() {
    let bed = Bed::new("[limits]\nwrite_time = \"500ms\"\n");
    let mut connection = bed.connect();
    let requests = "GET /rni/v2/queries/rab_info HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100);
    let begun = Instant::now();
    // The answers fill all buffers, then the server stops reading, then it closes.
    while connection.send(&requests) {
        assert!(begun.elapsed() < Duration::from_secs(40), "the connection stays open");
    }
    eventually("it is counted as gone", || (bed.metric("rnis_connections") == 1.0).then_some(()));
    is_well(&bed);
}

#[test]
fn connections_are_bounded_in_all_and_for_each_address() {
    for limits in ["connections = 6\n", "connections_per_address = 6\n"] {
        let bed = Bed::new(&format!("[limits]\n{limits}"));
        // Earlier requests of the bed itself may not have ended yet.
        let open = || {
            let mut connection = bed.connect();
            connection.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
            connection.reply().map(|reply| (reply.status, connection))
        };
        let mut all = Vec::new();
        let refused = eventually("a connection is refused", || match open() {
            Some(connection) => {
                all.push(connection);
                (all.len() > 6).then_some(false)
            }
            None => Some(true),
        });
        assert!(refused, "{limits}: {} connections at a time", all.len());
        all.pop();
        eventually("one that has ended makes room", open);
    }
}

#[test]
fn subscriptions_are_bounded_also_if_many_ask_at_once() {
    for limits in ["most_per_client = 3", "most = 3"] {
        let bed = Bed::new(&format!("[subscriptions]\n{limits}\n"));
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let ask = || bed.ask("POST", "/subscriptions", Some(&cell_change(PUBLIC))).status;
            let all: Vec<_> = (0..12).map(|_| scope.spawn(ask)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let count = |status| statuses.iter().filter(|own| **own == status).count();
        assert_eq!((count(201), count(429)), (3, 9), "{limits}: {statuses:?}");
        let list = bed.get("/subscriptions").expect(200).json();
        let href = list["_links"]["subscription"][0]["href"].as_str().unwrap();
        let path = href.split_once("/rni/v2").unwrap().1;
        bed.ask("DELETE", path, None).expect(204);
        bed.subscribe(PUBLIC);
        bed.ask("POST", "/subscriptions", Some(&cell_change(PUBLIC))).expect(429);
    }
}

#[test]
fn requests_per_second_are_bounded() {
    let bed = Bed::new("[limits]\nrequests_per_second = 5\n");
    let mut connection = bed.connect();
    let mut ask = || connection.ask("GET", "/rni/v2/queries/rab_info", &[], None).status;
    let statuses: Vec<u16> = (0..30).map(|_| ask()).collect();
    assert!(statuses.contains(&429) && statuses.contains(&200), "{statuses:?}");
    eventually("the next second allows more", || (ask() == 200).then_some(()));
}

#[test]
fn bodies_that_are_no_subscription_are_refused() {
    let bed = Bed::new("");
    let post = |body: &[u8]| {
        bed.connect().ask(
            "POST",
            "/rni/v2/subscriptions",
            &[("Content-Type", "application/json")],
            Some(body),
        )
    };
    let good = cell_change(PUBLIC).to_string();
    let long = |text: &str| cell_change(PUBLIC).to_string().replace("9.9.9.9", text);
    let with = |name: &str, value: Value| {
        let mut body = cell_change(PUBLIC);
        body[name] = value;
        body.to_string()
    };
    for (case, body) in [
        ("nothing", String::new()),
        ("a text", "\"a\"".to_owned()),
        ("half", good[..good.len() / 2].to_owned()),
        ("two", format!("{good}{good}")),
        ("deep arrays", "[".repeat(15_000)),
        ("deep objects", "{\"a\":".repeat(3_000)),
        ("deep in a member", format!("{{\"callbackReference\":{}", "[".repeat(15_000))),
        ("a large number", "{\"subscriptionType\":1e999}".to_owned()),
        ("half a surrogate", "{\"subscriptionType\":\"\\ud800\"}".to_owned()),
        ("a long host", long(&"a".repeat(10_000))),
        ("no filter", good.replace("filterCriteriaAssocHo", "other")),
        ("an unknown type", good.replace("CellChange", "CellChanged")),
        ("a time before now", with("expiryDeadline", json!({ "seconds": 1, "nanoSeconds": 0 }))),
        ("a negative time", with("expiryDeadline", json!({ "seconds": -1, "nanoSeconds": 0 }))),
        (
            "too many nanoseconds",
            with("expiryDeadline", json!({ "seconds": 4_000_000_000_u32, "nanoSeconds": 4_000_000_000_u32 })),
        ),
        (
            "an identifier of no kind",
            with("filterCriteriaAssocHo", json!({ "associateId": [{ "type": 9, "value": "a" }] })),
        ),
        ("a list in the place of an object", with("filterCriteriaAssocHo", json!([1]))),
    ] {
        let reply = post(body.as_bytes());
        assert!(matches!(reply.status, 400 | 422), "{case}: {}", reply.status);
        let status = reply.status;
        reply.expect(status);
    }
    post(b"{\"subscriptionType\":\"\xff\xfe\"}").expect(400);
    post(b"\xef\xbb\xbf{}").expect(400);
    post(&[0; 100]).expect(400);
    for kind in ["text/plain", "application/xml", "", "application/json/x"] {
        let headers = [("Content-Type", kind)];
        bed.connect().ask("POST", "/rni/v2/subscriptions", &headers, Some(good.as_bytes())).expect(415);
    }
    assert_eq!(bed.get("/subscriptions").expect(200).json()["_links"].get("subscription"), None);
    post(good.as_bytes()).expect(201);
}

#[test]
fn addresses_of_any_bytes_are_answered() {
    let bed = Bed::new("");
    for (path, status) in [
        ("/rni/v2/subscriptions/%ff", 404),
        ("/rni/v2/subscriptions/%00", 404),
        ("/rni/v2/subscriptions/-1", 404),
        ("/rni/v2/subscriptions/18446744073709551616", 404),
        ("/rni/v2/subscriptions/1%2f..", 404),
        ("/rni/v2/subscriptions/", 404),
        ("/rni/v2//subscriptions", 404),
        ("/rni/v2/../../etc/passwd", 404),
        ("/rni/v2/vendor/notifications/%ff", 404),
        ("/rni/v2/vendor/notifications/x", 404),
        ("/rni/v2/vendor/subscriptions/%ff/delivery", 404),
        ("/rni/v2/queries/rab_info?%ff=%ff", 400),
        ("/rni/v2/queries/rab_info?cell_id=%ff%00", 200),
        ("/rni/v2/queries/rab_info?qci=99999999999999999999", 400),
        ("/rni/v2/queries/rab_info?&&&=", 400),
        ("/rni/v2/queries/plmn_info?app_ins_id=%f0%9f%93%b6", 200),
        ("/rni/v2/queries/layer2_meas?cell_id=,,,,", 200),
        ("/rni/v2/subscriptions?subscription_type=cell_change&subscription_type=", 400),
        ("/rni/v2/vendor/events?period_ms=0", 400),
        ("*", 404),
    ] {
        let reply = bed.connect().ask("GET", path, &[], None);
        assert_eq!(reply.status, status, "{path}: {}", String::from_utf8_lossy(&reply.body));
        reply.expect(status);
    }
    for (method, status) in [("DELETE", 405), ("PATCH", 405), ("OPTIONS", 405), ("BREW", 405)] {
        let reply = bed.connect().ask(method, "/rni/v2/queries/rab_info", &[], None).expect(status);
        assert!(reply.header("allow").unwrap().contains("GET"), "{method}");
    }
    for (name, value, status) in [
        ("Accept", "text/html", 406),
        ("Accept", "application/json;q=0", 406),
        ("Accept", "text/html, application/*;q=0.1", 200),
        ("Accept", ",,;;q=x", 406),
        ("Version", "3.0.0", 406),
        ("Version", "2.1.1", 200),
        ("Authorization", "Bearer \u{ff}", 200),
    ] {
        let reply = bed.connect().ask("GET", "/rni/v2/queries/rab_info", &[(name, value)], None);
        assert_eq!(reply.status, status, "{name}: {value}");
    }
}

#[test]
fn chunks_and_requests_in_one_write_are_understood() {
    let bed = Bed::new("");
    let mut connection = bed.connect();
    connection.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50));
    for _ in 0..50 {
        assert_eq!(connection.reply().unwrap().status, 200);
    }
    let post = "POST /rni/v2/subscriptions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    let body = cell_change(PUBLIC).to_string();
    let (first, second) = body.split_at(40);
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    connection.send(format!(
        "{post}Transfer-Encoding: chunked\r\n\r\n{}{}0\r\n\r\n",
        chunk(first),
        chunk(second)
    ));
    connection.reply().unwrap().expect(201);
    for framing in [
        "Content-Length: 10\r\nContent-Length: 20\r\n\r\n0123456789",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: 18446744073709551615\r\n\r\n",
        "Content-Length: 99999999999999999999\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "Transfer-Encoding: gzip\r\n\r\n",
    ] {
        let mut connection = bed.connect();
        connection.send(format!("{post}{framing}"));
        let reply = connection.reply();
        assert!(reply.is_none_or(|reply| matches!(reply.status, 400 | 413 | 431)), "{framing:?}");
    }
    // A body that ends before its length.
    let mut connection = bed.connect();
    connection.send(format!("{post}Content-Length: 100\r\n\r\n{{}}"));
    connection.stream().shutdown(Shutdown::Write).unwrap();
    assert!(connection.reply().is_none_or(|reply| reply.status == 400));
    is_well(&bed);
}

#[test]
fn bytes_of_other_protocols_end_the_connection_only() {
    let bed = Bed::new("");
    let random: Vec<u8> = (0..4000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for bytes in [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        b"GET /\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\r\n\r\n\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
        &random,
    ] {
        let mut connection = bed.connect();
        connection.send(bytes);
        connection.stream().shutdown(Shutdown::Write).ok();
        while let Some(reply) = connection.reply() {
            assert!(reply.status >= 400 && reply.status < 500, "{}", reply.status);
        }
    }
    is_well(&bed);
}

/// Opens the web socket of a new subscription.
fn open_socket(bed: &Bed) -> Connection {
    let mut body = cell_change("");
    body["websockNotifConfig"] = json!({ "requestWebsocketUri": true });
    let made = bed.ask("POST", "/subscriptions", Some(&body)).expect(201).json();
    let uri = made["websockNotifConfig"]["websocketUri"].as_str().unwrap();
    let path = uri.strip_prefix(&format!("ws://{}", bed.address())).unwrap();
    let mut connection = bed.connect();
    connection.send(format!(
        "GET {path} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ));
    assert_eq!(connection.reply().unwrap().status, 101);
    connection
}

#[test]
fn frames_that_no_client_may_send_end_the_socket_only() {
    let bed = Bed::new("");
    let mask = [0; 4];
    let frame = |first: u8, length: &[u8], payload: &[u8]| [&[first], length, &mask, payload].concat();
    for (case, bytes) in [
        ("a frame of 2^63 bytes", frame(0x81, &[0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], b"a")),
        ("a frame of 16 MB", frame(0x82, &[0xff, 0, 0, 0, 0, 1, 0, 0, 0], b"a")),
        ("a frame above the bound", frame(0x82, &[0xfe, 0x10, 0x01], &[0; 4097])),
        ("no mask", b"\x81\x02hi".to_vec()),
        ("no UTF-8", frame(0x81, &[0x82], b"\xff\xfe")),
        ("a ping of 126 bytes", frame(0x89, &[0xfe, 0, 126], &[0; 126])),
        ("a part of a ping", frame(0x09, &[0x81], b"a")),
        ("a continuation of nothing", frame(0x80, &[0x81], b"a")),
        ("an unknown kind", frame(0x83, &[0x81], b"a")),
        ("reserved bits", frame(0xf1, &[0x81], b"a")),
        ("an endless message", frame(0x01, &[0xfe, 0x0f, 0xff], &[b'a'; 4095]).repeat(3)),
    ] {
        let mut socket = open_socket(&bed);
        socket.send(&bytes);
        let begun = Instant::now();
        let mut end = Vec::new();
        // A reset is an end, too.
        let _ = std::io::Read::read_to_end(&mut socket.stream(), &mut end);
        assert!(begun.elapsed() < Duration::from_secs(15), "{case}: the socket stays open");
    }
    // Texts that are no acknowledgement change nothing.
    let mut socket = open_socket(&bed);
    for text in ["{\"ack\":-1}", "{\"ack\":1e300}", "[]", "{\"ack\":18446744073709551615}"] {
        assert!(socket.send(frame(0x81, &[0x80 | text.len() as u8], text.as_bytes())));
    }
    socket.stream().flush().unwrap();
    assert!(socket.send(frame(0x89, &[0x80], b"")));
    let pong = std::io::Read::read(&mut socket.stream(), &mut [0; 64]).unwrap();
    assert!(pong >= 2, "the socket still answers a ping");
    is_well(&bed);
}

#[test]
fn readers_of_web_sockets_that_do_not_answer_a_ping_are_cut_off() {
    let bed = Bed::new("[limits]\nwrite_time = \"500ms\"\n");
    let mut socket = open_socket(&bed);
    // As long as it answers, it stays.
    for _ in 0..4 {
        assert_eq!(socket.exactly(2).unwrap(), b"\x89\x00", "a ping");
        socket.send(b"\x8a\x80\0\0\0\0");
    }
    assert_eq!(bed.metric("rnis_cut_off_total"), 0.0);
    assert_eq!(socket.exactly(2).unwrap(), b"\x89\x00", "a ping");
    assert!(socket.is_closed());
    eventually("it is counted", || (bed.metric("rnis_cut_off_total") == 1.0).then_some(()));
    is_well(&bed);
}

#[test]
fn an_upgrade_without_its_header_fields_is_refused() {
    let bed = Bed::new("");
    let mut body = cell_change("");
    body["websockNotifConfig"] = json!({ "requestWebsocketUri": true });
    let made = bed.ask("POST", "/subscriptions", Some(&body)).expect(201).json();
    let uri = made["websockNotifConfig"]["websocketUri"].as_str().unwrap();
    let path = uri.split_once("/rni/v2").unwrap().1;
    let reply = bed.get(path);
    assert!(matches!(reply.status, 400 | 426), "{}", reply.status);
    let status = reply.status;
    reply.expect(status);
}
