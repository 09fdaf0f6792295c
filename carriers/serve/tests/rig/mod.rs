//! A server in this process, its folder, and clients of both protocols.
#![allow(dead_code, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::future::poll_fn;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use h3::error::StreamError;
use http::{HeaderMap, Request, Response};
use noq::crypto::rustls::QuicClientConfig;
use noq::{ClientConfig, Endpoint, TransportConfig, VarInt};
use ranpace_serve::{Config, Server};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

/// Longest wait of a test for something that has to come. Busy machines are slow.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server and its folder.
pub struct Rig {
    pub folder: tempfile::TempDir,
    pub server: Server,
}

impl Rig {
    /// Serves a file `file` of 300,000 bytes, beside what is in the configuration that `change` makes.
    pub fn start(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), content(300_000)).unwrap();
        let mut config = Config::new(folder.path().to_owned());
        config.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        config.plain = Some(config.listen);
        config.generated = Some(1 << 30);
        config.grace = Duration::from_millis(100);
        change(&mut config);
        Self { server: Server::start(config).unwrap(), folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The value of a counter or gauge, with its labels if it has some; 0 if there is none yet.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.server.metrics().text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse::<f64>().unwrap() as u64)
    }

    /// Waits until a counter is at least so much.
    pub fn wait_for(&self, name: &str, least: u64) {
        let begun = Instant::now();
        while self.metric(name) < least {
            assert!(begun.elapsed() < PATIENCE, "{name} < {least}: {}", self.server.metrics().text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends something to the port without TLS, and returns all that comes until the server closes.
    pub fn plain(&self, request: &str) -> Vec<u8> {
        let mut stream = self.plain_stream();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A connection that is reset has what came before.
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    pub fn plain_stream(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.plain_address().unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A connection by QUIC.
    pub async fn connect(&self) -> noq::Connection {
        self.connect_from(&endpoint(TransportConfig::default())).await
    }

    pub async fn connect_from(&self, endpoint: &Endpoint) -> noq::Connection {
        endpoint.connect(self.server.address(), "localhost").unwrap().await.unwrap()
    }

    /// A client of HTTP/3.
    pub async fn client(&self) -> Client {
        Client::new(self.connect().await).await
    }
}

/// Bytes that differ from place to place.
pub fn content(length: usize) -> Vec<u8> {
    (0..length as u32).map(|place| (place.wrapping_mul(0x9E37_79B9) >> 23) as u8).collect()
}

/// A client's endpoint.
pub fn endpoint(transport: TransportConfig) -> Endpoint {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody));
    let mut tls = tls.with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    endpoint.set_default_client_config(config);
    endpoint
}

/// A client that takes so little ahead of what it has read.
pub fn with_window(bytes: u32) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from(bytes));
    transport
}

/// An answer by HTTP/3.
pub struct Answer {
    pub status: u16,
    pub fields: HeaderMap,
    pub content: Vec<u8>,
}

/// A client of HTTP/3.
#[derive(Clone)]
pub struct Client {
    pub connection: noq::Connection,
    requests: h3::client::SendRequest<h3_noq::Opener, Bytes>,
}

pub type Stream = h3::client::RequestStream<h3_noq::BidiStream<Bytes>, Bytes>;

impl Client {
    pub async fn new(connection: noq::Connection) -> Self {
        let (mut driver, requests) =
            h3::client::new(h3_noq::Connection::new(connection.clone())).await.unwrap();
        tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
        Self { connection, requests }
    }

    /// Sends a request without a body.
    pub async fn request(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<Stream, StreamError> {
        let mut stream = self.begin(method, path, fields).await?;
        stream.finish().await?;
        Ok(stream)
    }

    /// Sends the head of a request.
    pub async fn begin(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<Stream, StreamError> {
        let mut request = Request::builder().method(method).uri(format!("https://localhost{path}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        self.requests.clone().send_request(request.body(()).unwrap()).await
    }

    pub async fn get(&self, path: &str, fields: &[(&str, &str)]) -> Result<Answer, StreamError> {
        read(self.request("GET", path, fields).await?).await
    }
}

pub async fn read(mut stream: Stream) -> Result<Answer, StreamError> {
    let answer: Response<()> = stream.recv_response().await?;
    let mut content = Vec::new();
    while let Some(piece) = stream.recv_data().await? {
        content.extend_from_slice(piece.chunk());
    }
    let (head, ()) = answer.into_parts();
    Ok(Answer { status: head.status.as_u16(), fields: head.headers, content })
}

/// A runtime for the clients of a test; the server has its own.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Believes everybody: the server is this process.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let supported = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &supported)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
