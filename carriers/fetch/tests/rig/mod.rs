//! A server of HTTP/3 and HTTP/1.1 on one port, with the faults that a test asks for in the URL.
//!
//! `/N` has N bytes, the beginning of one fixed content. Its query:
//!
//! | | |
//! |---|---|
//! | `etag=TAG` | has this strong tag, and ranges of it |
//! | `cut=K` | breaks off after K bytes, the first time that the URL is asked for |
//! | `digest=right`, `wrong` | announces its SHA-256, or another one |
//! | `says=L` | announces L bytes |
//! | `slow=MS` | waits so long before each 64 kB |
//! | `status=S` | answers S |

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use noq::crypto::rustls::QuicServerConfig;
use ranpace_noq::{ConnectionControl, Controls, reports};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

/// Bytes that are sent at once.
const PIECE: usize = 64 << 10;

/// The first `length` bytes of the content.
pub fn content(length: usize) -> Vec<u8> {
    (0..length as u32).map(|place| (place.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect()
}

/// A running server; it ends with the test.
pub struct Server {
    /// Its port on 127.0.0.1, of UDP and of TCP with TLS.
    pub port: u16,
    /// Its port of TCP without TLS.
    pub plain: u16,
    /// SHA-256 of its certificate, in hexadecimal digits.
    pub fingerprint: String,
    /// A file with its certificate.
    pub certificate: PathBuf,
    /// What was asked: the protocol, path and range.
    pub asked: Arc<Mutex<Vec<String>>>,
    /// Reports of receivers that came.
    pub reports: Arc<Mutex<usize>>,
    _folder: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

/// What the connections share.
#[derive(Clone)]
struct Site {
    controls: Arc<Controls>,
    cut: Arc<Mutex<HashSet<String>>>,
    asked: Arc<Mutex<Vec<String>>>,
    reports: Arc<Mutex<usize>>,
}

/// An answer: its head, its body, and after how many bytes it breaks off.
struct Answer {
    head: Response<()>,
    body: Bytes,
    cut: Option<usize>,
    slow: Duration,
}

impl Server {
    /// A server whose QUIC connections have this control.
    pub fn start(control: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let _in_runtime = runtime.enter();
        let folder = tempfile::tempdir().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let own = rcgen::generate_simple_self_signed(names).unwrap();
        let certificate = folder.path().join("certificate.pem");
        let lines = STANDARD.encode(own.cert.der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n");
        std::fs::write(&certificate, pem).unwrap();
        let chain: Vec<CertificateDer<'static>> = vec![own.cert.der().clone()];
        let digest = ring::digest::digest(&ring::digest::SHA256, &chain[0]);
        let fingerprint: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let tls = |protocol: &[u8]| {
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = rustls::ServerConfig::builder_with_provider(provider);
            let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
            let mut config = builder.with_single_cert(chain.clone(), key).unwrap();
            config.alpn_protocols = vec![protocol.to_vec()];
            config
        };
        let site = Site {
            controls: Arc::new(control.parse().unwrap()),
            cut: Arc::default(),
            asked: Arc::default(),
            reports: Arc::default(),
        };

        let mut config =
            noq::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls(b"h3")).unwrap()));
        let mut transport = noq::TransportConfig::default();
        transport
            .congestion_controller_factory(site.controls.clone())
            .datagram_receive_buffer_size(Some(reports::RECEIVE_BUFFER));
        config.transport_config(Arc::new(transport));
        // The port of UDP may be in use over TCP.
        let (endpoint, encrypted) = (0..100)
            .find_map(|_| {
                let tcp = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
                let endpoint = noq::Endpoint::server(config.clone(), tcp.local_addr().ok()?).ok()?;
                Some((endpoint, tcp))
            })
            .unwrap();
        let port = encrypted.local_addr().unwrap().port();
        let plain = std::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let plain_port = plain.local_addr().unwrap().port();
        let acceptor = TlsAcceptor::from(Arc::new(tls(b"http/1.1")));
        runtime.spawn(accept_quic(endpoint, site.clone()));
        runtime.spawn(accept_tcp(encrypted, site.clone(), Some(acceptor)));
        runtime.spawn(accept_tcp(plain, site.clone(), None));
        Self {
            port,
            plain: plain_port,
            fingerprint,
            certificate,
            asked: site.asked,
            reports: site.reports,
            _folder: folder,
            _runtime: runtime,
        }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }
}

impl Site {
    fn answer(&self, protocol: &str, uri: &str, fields: &HeaderMap) -> Answer {
        let field = |name: &str| fields.get(name).and_then(|value| value.to_str().ok());
        let range = field("range");
        self.asked.lock().unwrap().push(format!("{protocol} {uri} {}", range.unwrap_or("-")));
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let option = |name: &str| {
            query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
        };
        let whole = content(path.trim_start_matches('/').parse().unwrap_or(0));
        let tag = option("etag").map(|tag| format!("\"{tag}\""));
        let from = match (range, &tag) {
            (Some(range), Some(tag)) if field("if-range") == Some(tag.as_str()) => {
                range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap()
            }
            _ => 0,
        };
        let status: u16 =
            option("status").map_or(if from > 0 { 206 } else { 200 }, |text| text.parse().unwrap());
        let mut head = Response::builder().status(StatusCode::from_u16(status).unwrap());
        let length = option("says").map_or(whole.len() - from, |text| text.parse().unwrap());
        head = head.header("content-length", length);
        if from > 0 {
            head = head.header("content-range", format!("bytes {from}-{}/{}", whole.len() - 1, whole.len()));
        }
        if let Some(tag) = &tag {
            head = head.header("etag", tag);
        }
        if let Some(kind) = option("digest") {
            let digest =
                ring::digest::digest(&ring::digest::SHA256, if kind == "right" { &whole } else { b"other" });
            let text = STANDARD.encode(digest);
            head = head.header("repr-digest", format!("sha-256=:{text}:"));
        }
        if let Some(offer) = field(reports::HEADER)
            && reports::accepts(offer, &self.controls).is_ok()
        {
            head = head.header(reports::HEADER, reports::ACCEPTED);
        }
        let first = self.cut.lock().unwrap().insert(uri.to_owned());
        Answer {
            head: head.body(()).unwrap(),
            body: Bytes::from(whole).slice(from..),
            cut: option("cut").filter(|_| first).map(|text| text.parse().unwrap()),
            slow: Duration::from_millis(option("slow").map_or(0, |text| text.parse().unwrap())),
        }
    }
}

impl Answer {
    /// The body's pieces, up to where it breaks off.
    fn pieces(&self) -> impl Iterator<Item = Bytes> + '_ {
        let end = self.cut.unwrap_or(self.body.len()).min(self.body.len());
        (0..end).step_by(PIECE).map(move |from| self.body.slice(from..end.min(from + PIECE)))
    }
}

async fn accept_quic(endpoint: noq::Endpoint, site: Site) {
    while let Some(incoming) = endpoint.accept().await {
        let site = site.clone();
        tokio::spawn(async move {
            let Ok(quic) = incoming.await else { return };
            let transport = h3_noq::Connection::new(quic.clone());
            let mut http = h3::server::Connection::<_, Bytes>::new(transport).await.unwrap();
            let listening = {
                let (control, reports) =
                    (ConnectionControl::new(quic, site.controls.clone()), site.reports.clone());
                tokio::spawn(async move {
                    reports::listen(&control, |report| {
                        *reports.lock().unwrap() += usize::from(report.is_ok())
                    })
                    .await
                })
            };
            while let Ok(Some(request)) = http.accept().await {
                let site = site.clone();
                tokio::spawn(async move {
                    let Ok((request, mut stream)) = request.resolve_request().await else { return };
                    let uri = request.uri().path_and_query().unwrap().to_string();
                    let answer = site.answer("3", &uri, request.headers());
                    if stream.send_response(answer.head.clone()).await.is_err() {
                        return;
                    }
                    for piece in answer.pieces() {
                        tokio::time::sleep(answer.slow).await;
                        if stream.send_data(piece).await.is_err() {
                            return;
                        }
                    }
                    if answer.cut.is_some() {
                        // What was sent is to arrive before the reset.
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        stream.stop_stream(h3::error::Code::H3_INTERNAL_ERROR);
                    } else {
                        let _ = stream.finish().await;
                    }
                });
            }
            listening.abort();
        });
    }
}

async fn accept_tcp(listener: std::net::TcpListener, site: Site, tls: Option<TlsAcceptor>) {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let (site, tls) = (site.clone(), tls.clone());
        tokio::spawn(async move {
            match tls {
                None => speak_http1(stream, &site).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        speak_http1(stream, &site).await;
                    }
                }
            }
        });
    }
}

/// One request and its answer. Errors are the client's, which has gone.
async fn speak_http1(mut stream: impl AsyncRead + AsyncWrite + Unpin, site: &Site) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let uri = head.split(' ').nth(1).unwrap().to_owned();
    let mut fields = HeaderMap::new();
    for (name, value) in head.lines().skip(1).filter_map(|line| line.split_once(": ")) {
        fields.insert(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    let answer = site.answer("1.1", &uri, &fields);
    let mut text = format!("HTTP/1.1 {}\r\n", answer.head.status());
    for (name, value) in answer.head.headers() {
        text += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    text += "\r\n";
    if stream.write_all(text.as_bytes()).await.is_err() {
        return;
    }
    for piece in answer.pieces() {
        tokio::time::sleep(answer.slow).await;
        if stream.write_all(&piece).await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}
