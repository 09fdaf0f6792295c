//! Clients that are hostile, broken or slow, and files that fail.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod rig;

use std::fs;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rig::{Client, PATIENCE, Rig, content, endpoint, runtime, with_window};

/// A cut-off that a client causes on purpose comes so soon.
const SOON: Duration = Duration::from_millis(300);

fn cut_off(protocol: &str, reason: &str) -> String {
    format!("serve_cut_off_total{{protocol=\"{protocol}\",reason=\"{reason}\"}}")
}

#[test]
fn headers_without_end_are_refused_before_they_take_memory() {
    let rig = Rig::start(|_| {});
    runtime().block_on(async {
        let connection = rig.connect().await;
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        // HEADERS (RFC 9114, 7.2.2) of a gigabyte.
        send.write_all(&[0x01, 0x80 | 0x3f, 0xff, 0xff, 0xff]).await.unwrap();
        let mut sent = 0;
        while send.write_all(&[b'x'; 10_000]).await.is_ok() {
            sent += 10_000;
            assert!(sent < 10 << 20, "the server takes them");
        }
        assert!(recv.read_to_end(1_000).await.is_err());
        // Fields that are whole, and more than the server wants (RFC 9114, 4.2.2).
        let client = rig.client().await;
        let long = "x".repeat(60_000);
        // The client refuses to send them if it has read the server's settings; otherwise the server gives the request up.
        let answer = client.get("/file", &[("x-long", &long)]).await;
        assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 431), "the fields were taken");
        assert!(rig.client().await.get("/file", &[]).await.is_ok());
    });
    let mut stream = rig.plain_stream();
    stream.write_all(b"GET /file HTTP/1.1\r\n").unwrap();
    let mut sent = 0;
    while stream.write_all(b"x: 0123456789012345678901234567890123456789\r\n").is_ok() {
        sent += 45;
        assert!(sent < 10 << 20, "the server takes them");
    }
    rig.wait_for(&cut_off("Http1", "Size"), 1);
}

#[test]
fn clients_that_send_or_read_too_slowly_are_cut_off() {
    let rig = Rig::start(|config| {
        config.limits.head_time = SOON;
        config.limits.write_time = SOON;
    });
    // A head that does not end, and an answer that nobody takes.
    let mut slow = rig.plain_stream();
    slow.write_all(b"GET /fi").unwrap();
    let mut idle = rig.plain_stream();
    idle.write_all(b"GET /bytes/1000000000 HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let begun = Instant::now();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    assert!(begun.elapsed() < PATIENCE, "the head may take forever");
    runtime().block_on(async {
        let endpoint = endpoint(with_window(100_000));
        let connection = rig.connect_from(&endpoint).await;
        let client = Client::new(connection.clone()).await;
        let mut stream = client.request("GET", "/bytes/1000000000", &[]).await.unwrap();
        stream.recv_response().await.unwrap();
        let (mut send, _recv) = connection.open_bi().await.unwrap();
        send.write_all(&[0x01]).await.unwrap();
        // The server gives both up, and says so.
        let stopped = tokio::time::timeout(PATIENCE, send.stopped()).await.unwrap();
        assert!(matches!(stopped, Ok(Some(_))), "{stopped:?}");
        tokio::task::block_in_place(|| rig.wait_for(&cut_off("Http3", "Time"), 2));
        let outcome = loop {
            match stream.recv_data().await {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        assert!(outcome.is_err(), "a part was taken for whole");
    });
    rig.wait_for("serve_connections{protocol=\"Http1\"}", 0);
    let begun = Instant::now();
    while rig.metric("serve_connections{protocol=\"Http1\"}") > 0 {
        assert!(begun.elapsed() < PATIENCE, "a connection of a slow client stays");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn connections_are_bounded_and_above_a_number_of_handshakes_addresses_are_proven() {
    let rig = Rig::start(|config| {
        config.limits.connections = 3;
        config.limits.connections_per_address = 2;
        config.limits.handshakes = 1;
    });
    runtime().block_on(async {
        let (one, two) = (rig.client().await, rig.client().await);
        // The third one is let in, and sent away when it is known who it is.
        let third = rig.connect().await;
        tokio::time::timeout(PATIENCE, third.closed()).await.unwrap();
        assert!(one.get("/file", &[]).await.is_ok() && two.get("/file", &[]).await.is_ok());
    });
    rig.wait_for(&cut_off("Http3", "Address"), 1);
    let streams: Vec<_> = (0..3).map(|_| rig.plain_stream()).collect();
    rig.wait_for(&cut_off("Http1", "Address"), 1);
    drop(streams);

    let rig = Rig::start(|config| config.limits.handshakes = 0);
    runtime().block_on(async {
        // With Retry a client sends its first packet twice, and is answered as usual; without room for handshakes it is refused.
        let endpoint = endpoint(noq::TransportConfig::default());
        let refused = endpoint.connect(rig.server.address(), "localhost").unwrap().await;
        assert!(refused.is_err());
    });
    assert!(rig.metric("serve_retries_total") > 0);
}

#[test]
fn a_flood_of_handshakes_is_answered_with_retry_and_real_clients_get_through() {
    let rig = Rig::start(|config| config.limits.handshakes = 1);
    runtime().block_on(async {
        let endpoint = endpoint(noq::TransportConfig::default());
        let all: Vec<_> =
            (0..40).map(|_| endpoint.connect(rig.server.address(), "localhost").unwrap()).collect();
        let mut through = 0;
        for connecting in all {
            through += u32::from(connecting.await.is_ok());
        }
        assert!(through > 0);
        assert!(rig.client().await.get("/file", &[]).await.is_ok());
    });
    assert!(rig.metric("serve_retries_total") > 0);
}

#[test]
fn requests_of_a_connection_are_bounded() {
    let rig = Rig::start(|config| config.limits.requests = 2);
    runtime().block_on(async {
        let connection = rig.connect().await;
        let (_one, _two) = (connection.open_bi().await.unwrap(), connection.open_bi().await.unwrap());
        assert!(tokio::time::timeout(SOON, connection.open_bi()).await.is_err());
    });
}

#[test]
fn a_request_that_ends_after_its_answer_is_no_error() {
    let rig = Rig::start(|_| {});
    runtime().block_on(async {
        let client = rig.client().await;
        let mut stream = client.begin("GET", "/bytes/10", &[]).await.unwrap();
        stream.recv_response().await.unwrap();
        tokio::time::sleep(SOON).await;
        stream.finish().await.unwrap();
    });
}

#[test]
fn datagrams_that_are_no_reports_are_counted_and_change_nothing() {
    let rig = Rig::start(|config| config.quic_control.add("cdbev2".parse().unwrap()));
    runtime().block_on(async {
        let client = rig.client().await;
        let offer = [(ranpace_noq::reports::HEADER, "1 cdbev2")];
        let answer = client.get("/file", &offer).await.unwrap();
        assert_eq!(answer.fields[ranpace_noq::reports::HEADER], "1");
        for length in [0, 1, 5, 17, 64, 1_000] {
            client.connection.send_datagram(Bytes::from(content(length))).unwrap();
        }
        tokio::task::block_in_place(|| rig.wait_for("serve_refused_reports_total", 1));
        assert!(client.get("/file", &[]).await.unwrap().content == content(300_000));
        // Another control's reports, and what is no offer.
        for offer in ["1 cdbe", "1", "2 cdbev2", "", "\u{ff}"] {
            let offer = [(ranpace_noq::reports::HEADER, offer)];
            let answer = rig.client().await.get("/file", &offer).await.unwrap();
            assert!(!answer.fields.contains_key(ranpace_noq::reports::HEADER), "{offer:?}");
        }
    });
    assert_eq!(rig.metric("serve_reports_total"), 0);
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_is_an_error_by_both_protocols() {
    const LENGTH: u64 = 200 << 20;
    let rig = Rig::start(|_| {});
    let file = fs::File::create(rig.path("large")).unwrap();
    file.set_len(LENGTH).unwrap();
    let mut old = rig.plain_stream();
    old.write_all(b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    old.read_exact(&mut [0; 1_000]).unwrap();
    runtime().block_on(async {
        let endpoint = endpoint(with_window(100_000));
        let client = Client::new(rig.connect_from(&endpoint).await).await;
        let mut stream = client.request("GET", "/large", &[]).await.unwrap();
        stream.recv_response().await.unwrap();
        file.set_len(1_000).unwrap();
        let outcome = loop {
            match stream.recv_data().await {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.to_string()),
            }
        };
        assert!(outcome.unwrap_err().contains("H3_INTERNAL_ERROR"));
        assert!(client.get("/file", &[]).await.is_ok());
    });
    let mut received = Vec::new();
    let _ = old.read_to_end(&mut received);
    assert!((received.len() as u64) < LENGTH, "zeros were sent for what is gone");
    rig.wait_for(&cut_off("Http1", "File"), 1);
    rig.wait_for(&cut_off("Http3", "File"), 1);
}

#[test]
fn what_is_no_http_ends_a_connection_and_nothing_else() {
    let rig = Rig::start(|_| {});
    for request in [
        "",
        "\r\n\r\n",
        "GET\r\n\r\n",
        "\u{0}\u{1}\u{2}",
        "GET /file HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = rig.plain_stream();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    runtime().block_on(async {
        for frame in [
            &[0x00, 0x01, 0x00][..],
            &[0x01, 0x02, 0xff, 0xff],
            &[0x07, 0x01, 0x00],
            &[0x01, 0x00],
            &[0x41, 0x00],
        ] {
            let connection = rig.connect().await;
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            let _ = send.write_all(frame).await;
            let _ = send.finish();
            let _ = tokio::time::timeout(PATIENCE, recv.read_to_end(10_000)).await.unwrap();
        }
        // A stream of control that is closed, or of a type twice, or of settings twice (RFC 9114, 6.2.1).
        for stream in [&[0x00][..], &[0x00, 0x04, 0x00, 0x04, 0x00], &[0x00, 0x00, 0x00]] {
            let connection = rig.connect().await;
            let mut send = connection.open_uni().await.unwrap();
            let _ = send.write_all(stream).await;
            let _ = send.finish();
            tokio::time::timeout(PATIENCE, connection.closed()).await.unwrap();
        }
        assert!(rig.client().await.get("/file", &[]).await.is_ok());
    });
}
