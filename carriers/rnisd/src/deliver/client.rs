//! Requests to others: callbacks, a MEC platform, key sets. HTTP/1.1, with TLS by rustls. Redirections are not followed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

use super::guard::{Guard, GuardError};

/// Longest head of an answer. Ours.
const LONGEST_HEAD: usize = 64 << 10;
/// Longest body of an answer, unless [`Client::with_longest`] says otherwise. Ours.
const LONGEST: usize = 1 << 20;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The address is not permitted, or has no host.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// No connection.
    #[error("no connection to {url}: {reason}")]
    Connect {
        /// Where to.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The other side broke the protocol, or the connection.
    #[error("{0}")]
    Http(String),
    /// The other side did not answer in time.
    #[error("no answer within {0:?}")]
    Time(Duration),
}

/// A stream of either kind.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Makes connections.
#[derive(Clone)]
pub struct Client {
    guard: Guard,
    tls: TlsConnector,
    /// Time for an answer, the connection included.
    time: Duration,
    /// Longest body of an answer, in bytes.
    longest: usize,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").field("guard", &self.guard).finish_non_exhaustive()
    }
}

/// A connection that requests go over, one after the other.
pub struct Connection(SendRequest<Full<Bytes>>);

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Header fields.
    pub headers: hyper::HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl Client {
    /// Trusts the public authorities, and those of a PEM file.
    ///
    /// # Errors
    ///
    /// If the file holds no certificates.
    pub fn new(guard: Guard, ca: Option<&std::path::Path>, time: Duration) -> Result<Self, String> {
        let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(file) = ca {
            let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
            let all =
                rustls::pki_types::CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
            for one in all {
                roots.add(one.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { guard, tls: TlsConnector::from(Arc::new(config)), time, longest: LONGEST })
    }

    /// Longer bodies than this, in bytes, are errors.
    #[must_use]
    pub fn with_longest(mut self, longest: usize) -> Self {
        self.longest = longest;
        self
    }

    /// A stream to the address's host, encrypted if it says so.
    ///
    /// # Errors
    ///
    /// If the address is not permitted, or there is no connection.
    pub async fn stream(&self, url: &Url) -> Result<Box<dyn Stream>, RequestError> {
        let failed = |reason: String| RequestError::Connect { url: url.to_string(), reason };
        let addresses = self.guard.resolve(url).await?;
        let stream = TcpStream::connect(&addresses[..]).await.map_err(|error| failed(error.to_string()))?;
        stream.set_nodelay(true).map_err(|error| failed(error.to_string()))?;
        if url.scheme() == "http" {
            return Ok(Box::new(stream));
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|error| failed(error.to_string()))?;
        let stream = self.tls.connect(name, stream).await.map_err(|error| failed(error.to_string()))?;
        Ok(Box::new(stream))
    }

    /// A connection to the address's host.
    ///
    /// # Errors
    ///
    /// As [`Self::stream`].
    pub async fn connect(&self, url: &Url) -> Result<Connection, RequestError> {
        let stream = self.stream(url).await?;
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(LONGEST_HEAD)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| RequestError::Http(error.to_string()))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to another server ended");
            }
        });
        Ok(Connection(sender))
    }

    /// Sends a request over a connection that is kept in `connection` while it is good, and returns the answer. If a kept connection
    /// turns out to be closed, the request is sent once more over a new one.
    ///
    /// # Errors
    ///
    /// If there is none in time.
    pub async fn request(
        &self,
        connection: &mut Option<Connection>,
        method: Method,
        url: &Url,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Answer, RequestError> {
        let ask = async {
            if let Some(used) = connection.take().filter(|used| !used.0.is_closed())
                && let Ok(answered) = used.ask(method.clone(), url, headers, body.clone(), self.longest).await
            {
                return Ok(answered);
            }
            self.connect(url).await?.ask(method, url, headers, body, self.longest).await
        };
        let (used, answer) =
            tokio::time::timeout(self.time, ask).await.map_err(|_| RequestError::Time(self.time))??;
        *connection = Some(used);
        Ok(answer)
    }

    /// Sends a request over a connection of its own and returns the beginning of the answer, whose body the caller reads as it comes.
    ///
    /// # Errors
    ///
    /// If it does not begin in time.
    pub async fn open(
        &self,
        method: Method,
        url: &Url,
        headers: &[(&str, String)],
    ) -> Result<Response<Incoming>, RequestError> {
        let ask = async { self.connect(url).await?.send(method, url, headers, Bytes::new()).await };
        tokio::time::timeout(self.time, ask).await.map_err(|_| RequestError::Time(self.time))?
    }
}

impl Connection {
    /// Sends a request, and returns the answer and the connection, which is good for another.
    async fn ask(
        mut self,
        method: Method,
        url: &Url,
        headers: &[(&str, String)],
        body: Bytes,
        longest: usize,
    ) -> Result<(Self, Answer), RequestError> {
        let wrong = |error: &dyn std::fmt::Display| RequestError::Http(error.to_string());
        self.0.ready().await.map_err(|error| wrong(&error))?;
        let (parts, body) = self.send(method, url, headers, body).await?.into_parts();
        let body = Limited::new(body, longest).collect().await;
        let body = body.map_err(|error| wrong(&*error))?.to_bytes();
        Ok((self, Answer { status: parts.status, headers: parts.headers, body }))
    }

    async fn send(
        &mut self,
        method: Method,
        url: &Url,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Response<Incoming>, RequestError> {
        let mut path = url.path().to_owned();
        if let Some(query) = url.query() {
            path = format!("{path}?{query}");
        }
        let mut host = url.host_str().unwrap_or_default().to_owned();
        if let Some(port) = url.port() {
            host = format!("{host}:{port}");
        }
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, host)
            .header(header::USER_AGENT, concat!("ranpace-rnis/", env!("CARGO_PKG_VERSION")));
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let wrong = |error: &dyn std::fmt::Display| RequestError::Http(error.to_string());
        let request = request.body(Full::new(body)).map_err(|error| wrong(&error))?;
        self.0.send_request(request).await.map_err(|error| wrong(&error))
    }
}
