//! A running `ranpace lab`, and requests to it.
#![allow(dead_code)] // not every test needs all of it

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

pub fn ranpace(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

/// A running `ranpace lab`, and the address that it printed.
pub fn lab(folder: &Path, more: &[&str]) -> (Child, String) {
    let arguments = [&["lab", "--no-open"][..], more].concat();
    let mut child = ranpace(folder, &arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split(' ').find(|word| word.starts_with("http://")).unwrap_or_else(|| panic!("{line}"));
    (child, url.to_owned())
}

pub fn terminate(mut child: Child) {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Sends a request, and does not wait for its answer.
pub fn send(url: &str, method: &str, path: &str, body: &str) -> TcpStream {
    let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

/// The head and the body of an answer.
pub fn request(url: &str, method: &str, path: &str, body: &str) -> (String, String) {
    let mut stream = send(url, method, path, body);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

pub fn post(url: &str, path: &str, body: &Value) -> Value {
    let (head, body) = request(url, "POST", path, &body.to_string());
    assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}\n{body}");
    serde_json::from_str(&body).unwrap()
}
