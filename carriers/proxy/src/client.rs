//! Questions and orders to a running proxy, from another process: by HTTP at its Unix socket. What answers is in `control.rs`.

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

use crate::error::ProxyError;

/// A proxy that does not answer for this time hangs. Ours.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tells the proxy at this socket to split no further connections, and to end when those that are open have ended.
///
/// # Errors
///
/// None is there, or it does not answer within five seconds.
pub fn ask_drain(socket: &Path) -> Result<(), ProxyError> {
    ask(socket, Method::POST, "/drain").map(drop)
}

/// Asks the proxy at this socket to hand over to this process, and returns when it has.
pub(crate) fn ask_hand_over(socket: &Path) -> Result<(), ProxyError> {
    ask(socket, Method::POST, "/hand-over").map(drop)
}

/// Waits until a proxy that has handed over has left its control socket, but not for ever.
pub(crate) fn wait_until_left(socket: &Path) {
    let until = std::time::Instant::now() + PATIENCE;
    while std::os::unix::net::UnixStream::connect(socket).is_ok() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a request, and returns the body of its answer.
pub(crate) fn ask(socket: &Path, method: Method, path: &str) -> Result<Bytes, ProxyError> {
    let failed = |reason: String| ProxyError::Command {
        command: format!("{method} {path} at {}", socket.display()),
        reason,
    };
    let answer = async {
        let stream = UnixStream::connect(socket).await;
        let stream = stream.map_err(|error| ProxyError::NotRunning { socket: socket.to_owned(), error })?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| failed(error.to_string()))?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header("Host", "proxy")
            .body(Empty::<Bytes>::new());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let answer = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| failed(error.to_string()))?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        Err(failed(format!("the proxy answered {status}: {}", String::from_utf8_lossy(&body))))
    };
    runtime()?.block_on(async {
        let is_late = |_| failed(format!("no answer for {} s: the proxy hangs", PATIENCE.as_secs()));
        tokio::time::timeout(PATIENCE, answer).await.map_err(is_late)?
    })
}

pub(crate) fn runtime() -> Result<Runtime, ProxyError> {
    Builder::new_current_thread().enable_all().build().map_err(ProxyError::system("start a runtime"))
}
