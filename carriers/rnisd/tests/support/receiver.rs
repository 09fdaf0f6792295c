//! An endpoint of callbacks, which behaves as it is told.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;

use super::eventually;
use super::http::Connection;

/// What the endpoint does with a request.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// It answers with this status.
    Status(u16),
    /// It answers 307 to this address.
    Redirect(String),
    /// It closes the connection instead.
    HangUp,
    /// It reads, and never answers.
    Silent,
}

/// What arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
    pub at: Instant,
}

impl Arrival {
    /// The number of the notification.
    pub fn number(&self) -> u64 {
        self.header("ranpace-notification").unwrap().parse().unwrap()
    }

    /// How many were missed before.
    pub fn missed(&self) -> u64 {
        self.header("ranpace-missed").unwrap().parse().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn kind(&self) -> &str {
        self.body["notificationType"].as_str().unwrap_or_default()
    }
}

/// The endpoint; its threads end with the process.
#[derive(Clone)]
pub struct Receiver {
    address: SocketAddr,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    connections: Arc<AtomicUsize>,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl Receiver {
    pub fn new() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap())
    }

    pub fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            arrivals: Arc::default(),
            connections: Arc::default(),
            behaviour: Arc::new(Mutex::new(Behaviour::Status(204))),
        };
        let own = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (own, stream) = (own.clone(), stream.unwrap());
                own.connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || own.serve(Connection::of(stream)));
            }
        });
        receiver
    }

    fn serve(&self, mut connection: Connection) {
        while let Some((line, headers)) = connection.head() {
            let Some(body) = connection.body(&headers) else { return };
            let path = line.split(' ').nth(1).unwrap().to_owned();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            self.arrivals.lock().unwrap().push(Arrival { path, headers, body, at: Instant::now() });
            let answer = match self.behaviour.lock().unwrap().clone() {
                Behaviour::Status(status) => format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"),
                Behaviour::Redirect(to) => {
                    format!("HTTP/1.1 307 X\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
                }
                Behaviour::Silent => continue,
                Behaviour::HangUp => return,
            };
            if !connection.send(answer) {
                return;
            }
        }
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    /// The address of a callback to this endpoint.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has arrived at a path.
    pub fn arrivals(&self, path: &str) -> Vec<Arrival> {
        let path = format!("/{path}");
        self.arrivals.lock().unwrap().iter().filter(|arrival| arrival.path == path).cloned().collect()
    }

    /// Waits until this many have arrived at a path.
    #[track_caller]
    pub fn wait(&self, path: &str, count: usize) -> Vec<Arrival> {
        eventually(&format!("{count} notifications at {path}"), || {
            Some(self.arrivals(path)).filter(|arrivals| arrivals.len() >= count)
        })
    }

    /// Connections that were made, whatever came over them.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}
