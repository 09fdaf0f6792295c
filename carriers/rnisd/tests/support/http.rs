//! HTTP/1.1 as bytes: a client that can also send what no client should.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// Checks the status, and that errors say what went wrong in the standard's object.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        let text = String::from_utf8_lossy(&self.body).into_owned();
        assert_eq!(self.status, status, "{text}");
        if status >= 400 {
            assert_eq!(self.header("content-type"), Some("application/problem+json"), "{text}");
            let problem = self.json();
            assert_eq!(problem["status"], status, "{text}");
            assert!(!problem["detail"].as_str().unwrap().is_empty(), "{text}");
        }
        self
    }
}

/// A connection.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub fn to(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).unwrap())
    }

    pub fn of(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends bytes; false if the other side has closed.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> bool {
        let mut chunk = [0; 1 << 14];
        match self.stream.read(&mut chunk) {
            Ok(0) => false,
            Ok(length) => {
                self.buffer.extend_from_slice(&chunk[..length]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => false,
            Err(error) => panic!("no answer and no end of the connection: {error}"),
        }
    }

    /// Up to a separator, without it; `None` at the end of the connection.
    fn until(&mut self, separator: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(separator.len()).position(|window| window == separator) {
                let mut part: Vec<u8> = self.buffer.drain(..at + separator.len()).collect();
                part.truncate(at);
                return Some(part);
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// The next bytes; `None` at the end of the connection.
    pub fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < length {
            if !self.fill() {
                return None;
            }
        }
        Some(self.buffer.drain(..length).collect())
    }

    /// The first line and the header fields of a message.
    pub fn head(&mut self) -> Option<(String, Vec<(String, String)>)> {
        let head = String::from_utf8(self.until(b"\r\n\r\n")?).unwrap();
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap().to_owned();
        let field = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Some((first, lines.map(field).collect()))
    }

    /// The body after a head.
    pub fn body(&mut self, headers: &[(String, String)]) -> Option<Vec<u8>> {
        let header =
            |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        if header("transfer-encoding") == Some("chunked") {
            let mut body = Vec::new();
            loop {
                let line = String::from_utf8(self.until(b"\r\n")?).unwrap();
                let length = usize::from_str_radix(line.trim(), 16).unwrap();
                body.extend(self.exactly(length)?);
                self.exactly(2)?;
                if length == 0 {
                    return Some(body);
                }
            }
        }
        self.exactly(header("content-length").map_or(0, |length| length.parse().unwrap()))
    }

    /// The next answer; `None` if the connection ends before it.
    pub fn reply(&mut self) -> Option<Reply> {
        let (line, headers) = self.head()?;
        let status: u16 = line.split(' ').nth(1).unwrap().parse().unwrap();
        if status == 100 {
            return self.reply();
        }
        let body = if status == 204 || status == 101 { Vec::new() } else { self.body(&headers)? };
        Some(Reply { status, headers, body })
    }

    /// Whether the other side closes, without saying anything more.
    pub fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill()
    }

    /// Sends a request, and returns the answer.
    pub fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Reply {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: server\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = body {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                text += "Content-Type: application/json\r\n";
            }
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        self.send(bytes);
        self.reply().unwrap_or_else(|| panic!("{method} {path}: the connection ended without an answer"))
    }
}
