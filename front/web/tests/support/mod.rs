//! A server on a folder of its own, and a client.
#![allow(dead_code)] // each test uses a part of it

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use ranpace_web::protocol::{Message, PlayState, Session};
use ranpace_web::{Options, Server};
use serde_json::Value;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message as Packet, WebSocket};

/// Longest wait for an answer or a message: a busy machine keeps it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server; its folder goes with it.
pub struct Lab {
    pub server: Server,
    pub folder: tempfile::TempDir,
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
    pub fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap_or_default().to_owned()
    }
    pub fn field(&self, name: &str) -> Option<String> {
        let line =
            self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }
}

impl Lab {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = Options {
            listen,
            folder: folder.path().to_owned(),
            traces: Vec::new(),
            token: None,
            attach: Vec::new(),
        };
        Self { server: Server::start(options).unwrap(), folder }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    /// The answer of a request that must succeed.
    pub fn done(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
        answer.json()
    }

    pub fn send(&self, method: &str, path: &str, fields: &[(&str, &str)], body: &[u8]) -> Answer {
        request(self.address(), method, path, fields, body)
    }

    /// Begins a run, and watches it.
    pub fn watch(&self, text: &str, paused: bool) -> Watched {
        let begun = self
            .done("/api/sessions", &serde_json::json!({ "text": text, "speed": "most", "paused": paused }));
        Watched::new(self.address(), begun["id"].as_str().unwrap())
    }
}

pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    if !fields.iter().any(|(name, _)| *name == "host") {
        head += &format!("host: {address}\r\n");
    }
    fields.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses a body may answer before it has been sent.
    let _ = stream.write_all(b"\r\n").and_then(|()| stream.write_all(body));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("{method} {path}: no answer: {}", String::from_utf8_lossy(&answer)));
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: answer[end + 4..].to_vec() }
}

/// Rows of one kind of frame, as the page keeps them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    pub times: Vec<f64>,
    pub columns: Vec<Vec<f32>>,
}

impl Rows {
    /// Puts a frame of `n` rows in its place.
    fn put(&mut self, first: usize, frame: &[u8], n: usize, k: usize) {
        let number = |at: usize| f32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
        self.times.truncate(first);
        assert_eq!(self.times.len(), first, "no row is left out");
        self.times.extend(
            (0..n).map(|row| f64::from_le_bytes(frame[32 + 8 * row..40 + 8 * row].try_into().unwrap())),
        );
        for column in &mut self.columns {
            column.truncate(first);
        }
        self.columns.resize(k, vec![f32::NAN; first]);
        for (place, column) in self.columns.iter_mut().enumerate() {
            let begin = 32 + 8 * n + 4 * n * place;
            column.extend((0..n).map(|row| number(begin + 4 * row)));
        }
    }
}

/// A run that is watched as the page watches it.
pub struct Watched {
    pub id: String,
    pub session: Session,
    pub state: PlayState,
    pub rows: Rows,
    pub grid: Rows,
    /// Frames of rows that came.
    pub frames: usize,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
}

impl Watched {
    pub fn new(address: SocketAddr, id: &str) -> Self {
        let (mut socket, _) =
            tungstenite::connect(format!("ws://{address}/api/sessions/{id}/stream")).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_mut() {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        let Packet::Text(first) = socket.read().unwrap() else { panic!("expected a message first") };
        let Message::Session(session) = serde_json::from_str(&first).unwrap() else { panic!("{first}") };
        let (rows, grid) = (Rows::default(), Rows::default());
        Self {
            id: id.to_owned(),
            state: session.state.clone(),
            session: *session,
            rows,
            grid,
            frames: 0,
            socket,
        }
    }

    /// Takes the next message; `None` after the last.
    pub fn step(&mut self) -> Option<()> {
        match self.socket.read().unwrap() {
            Packet::Text(text) => match serde_json::from_str(&text).unwrap() {
                Message::Session(session) => {
                    if session.state.generation != self.state.generation {
                        (self.rows, self.grid) = (Rows::default(), Rows::default());
                    } else if session.columns != self.session.columns {
                        self.take_columns(&session);
                    }
                    self.state = session.state.clone();
                    self.session = *session;
                }
                Message::State(state) => {
                    // The rows of a new generation come behind its session.
                    if state.generation == self.session.state.generation {
                        self.state = state;
                    }
                }
                Message::Gone { .. } => return None,
            },
            Packet::Binary(frame) => {
                let word = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap()) as usize;
                assert_eq!(&frame[..4], b"RPL1");
                let (kind, generation, first, n, k) = (word(4), word(8), word(12), word(16), word(20));
                assert_eq!(frame.len(), 32 + n * (8 + 4 * k));
                if generation == self.session.state.generation as usize {
                    match kind {
                        1 => {
                            assert_eq!(k, self.session.columns.len());
                            self.rows.put(first, &frame, n, k);
                            self.frames += 1;
                        }
                        2 => self.grid.put(first, &frame, n, k),
                        other => panic!("kind {other}"),
                    }
                }
            }
            Packet::Close(_) => return None,
            _ => {}
        }
        Some(())
    }

    /// Rows that are held stay with their columns when there are others.
    fn take_columns(&mut self, session: &Session) {
        let rows = self.rows.times.len();
        let old = std::mem::take(&mut self.rows.columns);
        let place = |column| self.session.columns.iter().position(|own| own == column);
        let columns = session.columns.iter().map(|column| match place(column) {
            Some(place) => old[place].clone(),
            None => vec![f32::NAN; rows],
        });
        self.rows.columns = columns.collect();
    }

    /// Takes messages until the run is as expected.
    pub fn until(&mut self, is_there: impl Fn(&Self) -> bool) {
        let begun = std::time::Instant::now();
        while !is_there(self) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.state);
            assert!(self.step().is_some(), "the run went");
        }
    }

    /// The values of a column.
    pub fn column(&self, name: &str, column: &str) -> &[f32] {
        let place = self.session.columns.iter().position(|own| own.name == name && own.column == column);
        &self.rows.columns[place.unwrap_or_else(|| panic!("{name} {column}: {:?}", self.session.columns))]
    }
}
