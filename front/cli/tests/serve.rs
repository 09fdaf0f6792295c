//! `ranpace serve` as a process: what it says, what curl gets from it, how it ends, and how it refuses options.
#![cfg(all(target_os = "linux", feature = "serve"))]
#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn ranpace(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranpace"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

#[test]
fn it_serves_until_it_is_terminated_and_logs_each_request() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("files")).unwrap();
    fs::write(folder.path().join("files/word"), "served").unwrap();
    // The port of plain HTTP is not told where the system chooses it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let plain = format!("127.0.0.1:{port}");
    let options =
        ["serve", "files", "--listen", "127.0.0.1:0", "--plain", &plain, "--cc", "bbr1", "--grace", "1s"];
    let arguments = [&options[..], &["--log", "json", "--log-level", "debug", "--qlog", "logs"]].concat();
    let mut child = ranpace(folder.path(), &arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut next = |message: &str| -> Value {
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["message"] == message {
                return line;
            }
        }
    };
    let listening = next("listening");
    assert_eq!(listening["fingerprint"].as_str().unwrap().len(), 64, "{listening}");
    let mut stream = TcpStream::connect(&plain).unwrap();
    stream.write_all(b"GET /word HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nserved"), "{answer}");
    let answered = next("answered by HTTP/1.1");
    assert_eq!((&answered["path"], &answered["status"]), (&"/word".into(), &200.into()), "{answered}");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    next("stopping");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn options_that_cannot_be_used_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for (arguments, expected) in [
        (&["nowhere"][..], "nowhere: No such file or directory"),
        (&["file"], "file: Not a directory"),
        (&[".", "--cc", "cubik"], "cubic"),
        (&[".", "--cc", "/low=cubic+nothing"], "nothing"),
        (&[".", "--tcp-cc", "nonesuch"], "tcp_available_congestion_control"),
        (&[".", "--feed", "http://localhost"], "expected rnis:http://HOST:PORT"),
        (&[".", "--certificate", "c.pem"], "--key"),
        (&[".", "--certificate", "c.pem", "--key", "k.pem"], "c.pem: No such file"),
        (&[".", "--grace", "5"], "such as \"20ms\""),
        (&[".", "--name", "grösse"], "grösse"),
    ] {
        let arguments = [&["serve", "--listen", "127.0.0.1:0"], arguments].concat();
        let Output { status, stderr, .. } = ranpace(folder.path(), &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
