//! The registration at a MEC platform: ETSI GS MEC 011.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::bed::Bed;
use crate::support::eventually;
use crate::support::http::Connection;

/// A platform that refuses the first request, and what it was asked: request lines, tokens and bodies.
type Requests = Arc<Mutex<Vec<(String, Option<String>, Value)>>>;

fn platform() -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/platform", listener.local_addr().unwrap());
    let requests = Requests::default();
    let own = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut connection = Connection::of(stream.unwrap());
            while let Some((line, headers)) = connection.head() {
                let Some(body) = connection.body(&headers) else { break };
                let token =
                    headers.iter().find(|(name, _)| name == "authorization").map(|(_, value)| value.clone());
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let answer = match own.lock().unwrap().len() {
                    0 => "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n",
                    _ if line.starts_with("POST") => {
                        "HTTP/1.1 201 X\r\nLocation: /platform/services/rnis-1\r\nContent-Length: 2\r\n\r\n{}"
                    }
                    _ => "HTTP/1.1 204 X\r\n\r\n",
                };
                own.lock().unwrap().push((line, token, body));
                connection.send(answer);
            }
        }
    });
    (url, requests)
}

#[test]
fn the_service_is_registered_at_the_platform_and_removed_at_the_end() {
    let (url, requests) = platform();
    let mut bed = Bed::new(&format!("[mp1]\nurl = \"{url}\"\napplication = \"app-7\"\ntoken = \"t\"\n"));
    let count = |least| eventually("requests", || (requests.lock().unwrap().len() >= least).then_some(()));
    // The refused request is sent again.
    count(2);
    let root = bed.server().root();
    bed.stop();
    count(3);
    let requests = requests.lock().unwrap();
    let lines: Vec<&str> = requests.iter().map(|(line, ..)| line.as_str()).collect();
    let services = "/platform/mec_service_mgmt/v1/applications/app-7/services";
    let post = format!("POST {services} HTTP/1.1");
    assert_eq!(lines, [post.as_str(), &post, "DELETE /platform/services/rnis-1 HTTP/1.1"]);
    assert!(requests.iter().all(|(_, token, _)| token.as_deref() == Some("Bearer t")));
    let service = &requests[1].2;
    assert_eq!((&service["serCategory"]["id"], &service["state"]), (&"rni".into(), &"ACTIVE".into()));
    assert_eq!(service["transportInfo"]["endpoint"]["uris"][0], format!("{root}/rni/v2"));
}
