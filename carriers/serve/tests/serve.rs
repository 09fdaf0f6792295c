//! What clients get: the same files by both protocols, with the controls of the configuration, until the server stops.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod rig;

use std::fs;
use std::process::Command;
use std::time::Duration;

use bytes::Buf as _;
use rig::{Client, Rig, content, read, runtime};

#[test]
fn both_protocols_answer_with_the_same_files() {
    let rig = Rig::start(|_| {});
    runtime().block_on(async {
        let client = rig.client().await;
        for (path, range, status) in [
            ("/file", "", 200),
            ("/file", "bytes=100000-199999", 206),
            ("/file", "bytes=300000-", 416),
            ("/bytes/1000000", "", 200),
            ("/bytes/1000000", "bytes=999990-", 206),
            ("/nothing", "", 404),
        ] {
            let fields = if range.is_empty() { vec![] } else { vec![("range", range)] };
            let new = client.get(path, &fields).await.unwrap();
            let asked: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let old = rig.plain(&format!(
                "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{asked}\r\n"
            ));
            let end = old.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            let head = String::from_utf8(old[..end].to_vec()).unwrap().to_lowercase();
            assert_eq!(new.status, status, "{path} {range}");
            assert!(head.starts_with(&format!("http/1.1 {status} ")), "{head}");
            assert!(new.content == old[end + 4..], "{path} {range}");
            for (name, value) in &new.fields {
                let line = format!("{name}: {}", value.to_str().unwrap().to_lowercase());
                assert!(name == "date" || head.contains(&line), "{line} is not in {head}");
            }
            assert!(head.contains(&format!("alt-svc: h3=\":{}\"", rig.server.address().port())), "{head}");
        }
        let whole = client.get("/file", &[]).await.unwrap();
        assert!(whole.content == content(300_000));
        let head = read(client.request("HEAD", "/file", &[]).await.unwrap()).await.unwrap();
        assert_eq!(
            (head.status, &head.fields["content-length"], head.content.len()),
            (200, &"300000".parse().unwrap(), 0)
        );
        let post = read(client.request("POST", "/file", &[]).await.unwrap()).await.unwrap();
        assert_eq!((post.status, &post.fields["allow"]), (405, &"GET, HEAD".parse().unwrap()));
        let tag = whole.fields["etag"].to_str().unwrap();
        assert_eq!(client.get("/file", &[("if-none-match", tag)]).await.unwrap().status, 304);
    });
    let post = rig.plain(
        "POST /file HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\nconnection: close\r\n\r\nabcde",
    );
    assert!(post.starts_with(b"HTTP/1.1 405 "), "{}", String::from_utf8_lossy(&post));
    assert_eq!(rig.metric("serve_requests_total{protocol=\"Http3\",status=\"206\"}"), 2);
    assert_eq!(rig.metric("serve_requests_total{protocol=\"Http1\",status=\"405\"}"), 1);
}

#[test]
fn requests_of_a_connection_are_answered_side_by_side() {
    let rig = Rig::start(|_| {});
    runtime().block_on(async {
        let client = rig.client().await;
        let all: Vec<_> = (0..20)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.get("/file", &[]).await })
            })
            .collect();
        for answer in all {
            assert!(answer.await.unwrap().unwrap().content == content(300_000));
        }
    });
}

#[test]
fn the_first_request_chooses_the_kernels_control_of_a_connection() {
    let rig = Rig::start(|config| {
        config.tcp_control.add("cubic".parse().unwrap());
        config.tcp_control.add("/low=reno".parse().unwrap());
    });
    let control = |path: &str| {
        let mut stream = rig.plain_stream();
        let from = stream.local_addr().unwrap().port();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        std::io::Read::read_exact(&mut stream, &mut [0; 12]).unwrap();
        let shown = Command::new("ss").args(["-tin", &format!("dport = :{from}")]).output().unwrap();
        String::from_utf8(shown.stdout).unwrap()
    };
    if Command::new("ss").arg("-V").output().is_err() {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs ss of iproute2");
        eprintln!("skipped: needs ss of iproute2");
        return;
    }
    for (path, expected) in [("/file", " cubic "), ("/low/nothing", " reno "), ("/lower", " cubic ")] {
        let shown = control(path);
        assert!(shown.contains(expected), "{path}: {shown}");
    }
}

#[test]
fn the_first_request_chooses_the_control_of_a_quic_connection() {
    // A connection takes reports of receivers only if its control goes by them.
    let rig = Rig::start(|config| {
        config.quic_control.add("newreno".parse().unwrap());
        config.quic_control.add("/low=cdbev2".parse().unwrap());
    });
    runtime().block_on(async {
        let offer = [(ranpace_noq::reports::HEADER, "1 cdbev2")];
        let takes = async |client: &Client, path: &str| {
            let answer = client.get(path, &offer).await.unwrap();
            answer.fields.contains_key(ranpace_noq::reports::HEADER)
        };
        let (low, other) = (rig.client().await, rig.client().await);
        for (client, paths, expected) in
            [(&low, ["/low/nothing", "/file"], true), (&other, ["/lower", "/low/nothing"], false)]
        {
            for path in paths {
                assert_eq!(takes(client, path).await, expected, "{path}");
            }
        }
        // The new control sends on.
        for client in [low, other] {
            let answer = client.get("/bytes/3000000", &[]).await.unwrap();
            assert_eq!(answer.content.len(), 3_000_000);
        }
    });
}

#[test]
fn a_control_that_the_kernel_does_not_have_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = ranpace_serve::Config::new(folder.path().to_owned());
    config.listen.set_port(0);
    config.tcp_control.add("/low=nonesuch".parse().unwrap());
    let error = ranpace_serve::Server::start(config).unwrap_err().to_string();
    assert!(error.contains("\"nonesuch\"") && error.contains("tcp_available_congestion_control"), "{error}");
}

#[test]
fn downloads_end_when_the_server_stops_and_new_connections_are_refused() {
    let rig = Rig::start(|config| config.grace = 3 * rig::PATIENCE);
    let runtime = runtime();
    // More than the client takes ahead of what it has read, so that it waits for the end of the server.
    let length = 10 << 20;
    let (client, mut stream, address) = runtime.block_on(async {
        let client = rig.client().await;
        let mut stream = client.request("GET", &format!("/bytes/{length}"), &[]).await.unwrap();
        stream.recv_response().await.unwrap();
        (client, stream, rig.server.address())
    });
    let Rig { server, .. } = rig;
    let stopping = std::thread::spawn(move || drop(server));
    runtime.block_on(async {
        // Until it has stopped to accept.
        let begun = std::time::Instant::now();
        let endpoint = rig::endpoint(noq::TransportConfig::default());
        while let Ok(Ok(connection)) =
            tokio::time::timeout(Duration::from_secs(1), endpoint.connect(address, "localhost").unwrap())
                .await
        {
            drop(connection);
            assert!(begun.elapsed() < rig::PATIENCE, "connections are still accepted");
        }
        let mut received = 0;
        while let Some(piece) = stream.recv_data().await.unwrap() {
            received += piece.remaining();
        }
        assert_eq!(received, length);
        // GOAWAY: further requests are for another server.
        assert!(client.get("/file", &[]).await.is_err());
    });
    stopping.join().unwrap();
}

#[test]
fn a_download_that_is_cut_off_at_the_end_of_the_grace_is_an_error() {
    let rig = Rig::start(|_| {});
    let runtime = runtime();
    let mut old = rig.plain_stream();
    std::io::Write::write_all(&mut old, b"GET /bytes/100000000 HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut stream = runtime.block_on(async {
        let endpoint = rig::endpoint(rig::with_window(100_000));
        let client = Client::new(rig.connect_from(&endpoint).await).await;
        let mut stream = client.request("GET", "/bytes/100000000", &[]).await.unwrap();
        stream.recv_response().await.unwrap();
        stream
    });
    drop(rig);
    let outcome = runtime.block_on(async {
        loop {
            match stream.recv_data().await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    });
    assert!(outcome.is_err(), "a part was taken for whole");
    let mut received = Vec::new();
    let _ = std::io::Read::read_to_end(&mut old, &mut received);
    assert!(received.len() < 100_000_000);
}

#[test]
fn each_connection_has_a_log_of_qlog_0_3_as_qvis_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let rig = Rig::start(|config| config.qlog = Some(logs.clone()));
    runtime().block_on(async {
        for _ in 0..2 {
            let client = rig.client().await;
            client.get("/file", &[]).await.unwrap();
            client.connection.close(0_u32.into(), b"");
        }
    });
    drop(rig);
    let files: Vec<_> = fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2);
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        // RFC 7464: each record begins with RS.
        let records: Vec<serde_json::Value> =
            text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
        let of = |name: &str| records.iter().filter(|record| record["name"] == name).count();
        assert!(of("transport:packet_sent") > 100, "{}", of("transport:packet_sent"));
        assert!(of("recovery:metrics_updated") > 0);
        let is_file = records[0]["qlog_version"] == "0.3" && records[0]["qlog_format"] == "JSON-SEQ";
        assert!(is_file && records[0]["trace"]["vantage_point"]["type"] == "server", "{}", records[0]);
        assert_eq!(records[0]["trace"]["common_fields"]["time_format"], "relative");
        let mut sent = 0;
        for record in &records[1..] {
            // What qvis asks of each event: when, which, and what. It sorts those that threads have written out of their order.
            let at = record["time"].as_f64().unwrap();
            assert!(at >= 0.0, "{record}");
            let (category, _) = record["name"].as_str().unwrap().split_once(':').unwrap();
            let known = ["connectivity", "transport", "security", "recovery", "http", "qpack"];
            assert!(known.contains(&category), "{record}");
            assert!(record["data"].is_object(), "{record}");
            if record["name"] == "transport:packet_sent" {
                assert!(record["data"]["header"]["packet_type"].is_string(), "{record}");
                let frames = record["data"]["frames"].as_array().into_iter().flatten();
                let streams = frames.filter(|frame| frame["frame_type"] == "stream");
                sent += streams.map(|frame| frame["length"].as_u64().unwrap()).sum::<u64>();
            }
        }
        assert!(sent >= 300_000, "{sent} bytes in frames of streams");
    }
}

#[test]
fn metrics_are_served_in_the_text_format() {
    let rig = Rig::start(|config| config.metrics = Some(([127, 0, 0, 1], 0).into()));
    rig.plain("GET /file HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut stream = std::net::TcpStream::connect(rig.server.metrics_address().unwrap()).unwrap();
    std::io::Write::write_all(
        &mut stream,
        b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    )
    .unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    for line in
        ["serve_bytes_total{protocol=\"Http1\"} 300000", "# TYPE serve_request_seconds histogram", "# EOF"]
    {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn open_connections_are_shown_to_this_machine_until_they_end() {
    let rig = Rig::start(|config| config.metrics = Some(([127, 0, 0, 1], 0).into()));
    let show = || -> serde_json::Value {
        let mut stream = std::net::TcpStream::connect(rig.server.metrics_address().unwrap()).unwrap();
        let request = b"GET /show HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        std::io::Write::write_all(&mut stream, request).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    assert_eq!(show()["connections"], 0);
    runtime().block_on(async {
        let client = rig.client().await;
        let answer = client.get("/file", &[]).await.unwrap();
        assert_eq!(answer.content.len(), 300_000);
        let shown = show();
        assert_eq!(shown["connections"], 1, "{shown}");
        let flow = &shown["flows"][0];
        assert!(flow["acked_bytes"].as_u64().unwrap() > 250_000, "{flow}");
        assert!(flow["srtt_s"].as_f64().unwrap() > 0.0, "{flow}");
        assert!(flow["client"].as_str().unwrap().starts_with("127.0.0.1:"), "{flow}");
        client.connection.close(0_u32.into(), b"");
        let begun = std::time::Instant::now();
        // The client's end must run, or the server does not hear that it has closed.
        while show()["connections"] != 0 {
            assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{}", show());
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
}
