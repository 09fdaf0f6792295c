//! HTTP/1.1 over the kernel's TCP, with TLS for https.

use std::io;
use std::net::{SocketAddr, TcpStream as StdStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http::response::Parts;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::addresses::first;
use crate::error::FetchError;
use crate::options::Options;
use crate::target::Target;

/// Most bytes of an answer's head.
const MOST_HEAD: usize = 64 << 10;

/// A connection.
pub(crate) struct Connection {
    requests: SendRequest<Empty<Bytes>>,
    driver: JoinHandle<()>,
    /// When the first packet left.
    pub began: Instant,
    /// Length of TCP's and TLS's handshakes.
    pub handshake: Duration,
}

/// A body that is coming.
pub(crate) struct Body {
    incoming: Incoming,
    driver: JoinHandle<()>,
}

impl Connection {
    /// Connects to the first address that answers.
    pub async fn open(
        target: &Target,
        addresses: &[SocketAddr],
        options: &Options,
    ) -> Result<Self, FetchError> {
        let tls = if target.is_https() { Some(Arc::new(options.trust.client(b"http/1.1")?)) } else { None };
        first(addresses, |address| Self::to(address, target, tls.clone(), options)).await
    }

    async fn to(
        address: SocketAddr,
        target: &Target,
        tls: Option<Arc<ClientConfig>>,
        options: &Options,
    ) -> Result<Self, FetchError> {
        let failed =
            |error: io::Error| FetchError::Connection { to: address.to_string(), why: error.to_string() };
        let socket = socket(address, options.cc.as_deref())?;
        let began = Instant::now();
        let stream = socket.connect(address).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let Some(tls) = tls else { return Self::over(stream, began).await };
        let name = ServerName::try_from(target.host())
            .map_err(|error| FetchError::Connection { to: target.host(), why: error.to_string() })?;
        Self::over(TlsConnector::from(tls).connect(name, stream).await.map_err(failed)?, began).await
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        began: Instant,
    ) -> Result<Self, FetchError> {
        let handshake = began.elapsed();
        let begun = Builder::new().max_buf_size(MOST_HEAD).handshake(TokioIo::new(stream)).await;
        let (requests, connection) = begun.map_err(|error| broken(&error))?;
        // Its errors are also those of the request and of the body.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { requests, driver, began, handshake })
    }

    /// Asks, and returns the answer's head and body.
    pub async fn ask(mut self, request: Request<()>) -> Result<(Parts, Body), FetchError> {
        let request = request.map(|()| Empty::new());
        let answer = self.requests.send_request(request).await.map_err(|error| broken(&error))?;
        let (head, incoming) = answer.into_parts();
        Ok((head, Body { incoming, driver: self.driver }))
    }
}

impl Body {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            match self.incoming.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(reasons(&error)),
                // Trailers say nothing that is needed here.
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A socket with this congestion control, or the system's.
fn socket(to: SocketAddr, control: Option<&str>) -> Result<TcpSocket, FetchError> {
    let failed = |error: io::Error| FetchError::Connection { to: to.to_string(), why: error.to_string() };
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP)).map_err(failed)?;
    if let Some(name) = control {
        socket
            .set_tcp_congestion(name.as_bytes())
            .map_err(|error| FetchError::KernelControl { name: name.to_owned(), error })?;
    }
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(TcpSocket::from_std_stream(StdStream::from(socket)))
}

fn broken(error: &hyper::Error) -> FetchError {
    FetchError::Broken { received: 0, why: reasons(error) }
}

/// An error with its causes.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
