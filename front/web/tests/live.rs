//! Running commands that are watched. The answers are those of an RNIS server, at a port of the test: what a source says that hangs, ends
//! or answers nonsense cannot be had of a real one.
#![allow(clippy::unwrap_used)] // allowed in tests

mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use support::{Lab, Watched};

/// A source that answers until `good` requests have come, then with nonsense; and the requests so far.
fn source(good: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    // It ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            if head.starts_with("GET /show ") {
                // It is no server of pages.
                let _ = stream
                    .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                continue;
            }
            let ecgi = json!({ "cellId": "0x1", "plmn": { "mcc": "001", "mnc": "01" } });
            let link =
                json!({ "prbs": 12.5, "unusedPrbs": 3.0, "mcs": 9, "queueBytes": 1500, "activeUsers": 1 });
            let body = if counted.fetch_add(1, Ordering::Relaxed) >= good {
                "<html>".to_owned()
            } else if head.contains("cell_config") {
                json!([{ "ecgi": ecgi, "technology": "lte", "mcsTable": "36.213", "prbs": 50, "spacingHz": 15000, "ttiNs": 1_000_000,
                    "fdd": true, "shareDl": 1.0, "shareUl": 1.0, "bySymbols": false, "layers": 1, "harqProcessesDl": 8, "harqProcessesUl": 8 }])
                .to_string()
            } else {
                json!([{ "associateId": { "type": 1, "value": "10.0.0.2" }, "ecgi": ecgi, "timeStamp": { "seconds": 1, "nanoSeconds": 0 },
                    "cqi": 11, "handover": false, "dl": link, "ul": link }])
                .to_string()
            };
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (address, count)
}

#[test]
fn an_rnis_server_is_watched_by_many_and_asked_once() {
    let lab = Lab::new();
    let (address, count) = source(usize::MAX);
    let begun = lab.done("/api/live", &json!({ "address": address.to_string() }));
    assert_eq!(begun["about"]["cells"][0]["prbs"], 50, "{begun}");
    let id = begun["id"].as_str().unwrap();
    let mut watched: Vec<Watched> = (0..50).map(|_| Watched::new(lab.address(), id)).collect();
    let again = lab.done("/api/live", &json!({ "address": address.to_string() }));
    assert_eq!(again["id"], begun["id"], "the second one shares the first one's readings");
    let (asked, from) = (count.load(Ordering::Relaxed), Instant::now());
    for one in &mut watched {
        one.until(|one| one.rows.times.len() > 5);
        let place = one.session.columns.iter().position(|column| column.column == "cqi").unwrap();
        assert!(one.rows.columns[place].iter().all(|cqi| *cqi == 11.0));
        assert!(one.grid.columns[0].iter().all(|prbs| *prbs == 12.5));
    }
    // Ten readings of two requests a second, and one of each that had begun.
    let most = 20.0 * from.elapsed().as_secs_f64() + 4.0;
    let asked = (count.load(Ordering::Relaxed) - asked) as f64;
    assert!(asked <= most, "{asked} requests, expected at most {most}");
    let table = lab.get(&format!("/api/sessions/{id}/table?of=user&name=10.0.0.2&format=csv"));
    assert_eq!(table.status, 200, "{}", table.text());
    assert!(table.text().lines().next().unwrap().contains("uplink_mcs"), "{}", table.text());
    let refused = lab.post(&format!("/api/sessions/{id}/control"), &json!({ "action": "pause" }));
    assert_eq!(refused.status, 409, "{}", refused.text());
}

#[test]
fn a_source_that_answers_nonsense_is_said_and_asked_again() {
    let lab = Lab::new();
    let (address, count) = source(6);
    let begun = lab.done("/api/live", &json!({ "address": address.to_string() }));
    let mut watched = Watched::new(lab.address(), begun["id"].as_str().unwrap());
    watched.until(|one| !one.state.problem.is_empty());
    assert!(watched.state.problem.contains("expected what"), "{}", watched.state.problem);
    let (asked, begun) = (count.load(Ordering::Relaxed), Instant::now());
    while count.load(Ordering::Relaxed) == asked {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is tried again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_does_not_answer_or_may_not_be_asked_is_refused() {
    let lab = Lab::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (address, status, words) in [
        (closed.to_string(), 409, "does it run?"),
        ("192.0.2.1:80".to_owned(), 403, "--attach 192.0.2.1:80"),
        ("nonsense".to_owned(), 422, "expected an address"),
    ] {
        let answer = lab.post("/api/live", &json!({ "address": address }));
        assert_eq!((answer.status, answer.detail().contains(words)), (status, true), "{}", answer.text());
    }
    assert_eq!(lab.get("/api/live").status, 200);
}
