//! HTTP/1.1 over the kernel's TCP, with TLS or without.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http::header::ALT_SVC;
use http::{HeaderValue, Request, Response, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ranpace_rnisd::slow::WriteTimeout;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::answer::Answer;
use crate::content::{Content, ContentError};
use crate::metrics::{Protocol, ProtocolLabels, Reason};
use crate::shared::Shared;

/// Longest head of a request. Ours.
const HEAD: usize = 32 << 10;
/// How long browsers may remember that there is HTTP/3, in seconds. Ours.
const ALTERNATIVE_LIFE: u32 = 86_400;

type Body = UnsyncBoxBody<Bytes, ContentError>;

/// Accepts connections until the server stops. `http3` is the port at which the same files are by HTTP/3.
pub async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, http3: u16, shared: Arc<Shared>) {
    let alternative = format!("h3=\":{http3}\"; ma={ALTERNATIVE_LIFE}");
    // A number is always a field's value.
    let alternative = HeaderValue::from_str(&alternative).ok();
    let all = Arc::new(Semaphore::new(shared.limits.connections));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shared.stop.cancelled() => return,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            // A client that is gone already concerns nobody else.
            Err(error)
                if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) =>
            {
                continue;
            }
            Err(error) => {
                // Out of files, mostly: others close theirs.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&all).try_acquire_owned() else {
            shared.metrics.cut_off(Protocol::Http1, Reason::Connections);
            continue;
        };
        let most = shared.limits.connections_per_address;
        let Some(inside) = shared.tcp_addresses.enter(address.ip(), most) else {
            shared.metrics.cut_off(Protocol::Http1, Reason::Address);
            continue;
        };
        let (of_connection, tls, alternative) = (Arc::clone(&shared), tls.clone(), alternative.clone());
        shared.tasks.spawn(async move {
            let open = of_connection.metrics.enter(Protocol::Http1);
            if let Err(error) = serve(stream, address, tls, alternative, &of_connection).await {
                tracing::debug!(%address, %error, "a connection ended");
            }
            drop((open, permit, inside));
        });
    }
}

async fn serve(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    alternative: Option<HeaderValue>,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    // Without it the end of an answer may wait for an acknowledgement.
    stream.set_nodelay(true)?;
    // Kept only where a request may choose: it is one more file.
    let socket =
        if shared.tcp_control.is_uniform() { None } else { Some(stream.as_fd().try_clone_to_owned()?) };
    let connection = Connection {
        shared: Arc::clone(shared),
        address,
        alternative,
        socket,
        is_chosen: AtomicBool::new(false),
    };
    let stream = WriteTimeout::new(stream, shared.limits.write_time);
    match tls {
        None => connection.serve(stream).await,
        Some(tls) => match tokio::time::timeout(shared.limits.head_time, tls.accept(stream)).await {
            Ok(stream) => connection.serve(stream?).await,
            Err(_) => {
                shared.metrics.cut_off(Protocol::Http1, Reason::Time);
                Ok(())
            }
        },
    }
}

/// A connection, as its requests see it.
struct Connection {
    shared: Arc<Shared>,
    address: SocketAddr,
    alternative: Option<HeaderValue>,
    socket: Option<OwnedFd>,
    /// Whether a request has chosen the connection's control.
    is_chosen: AtomicBool,
}

impl Connection {
    async fn serve<S>(self, stream: S) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let connection = Arc::new(self);
        let service = service_fn(move |request| {
            let connection = Arc::clone(&connection);
            async move { Ok::<_, Infallible>(connection.answer(request).await) }
        });
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(shared.limits.head_time)
            .max_buf_size(HEAD)
            .serve_connection(TokioIo::new(stream), service);
        let mut served = std::pin::pin!(served);
        let outcome = tokio::select! {
            outcome = served.as_mut() => outcome,
            () = shared.stop.cancelled() => {
                served.as_mut().graceful_shutdown();
                tokio::select! {
                    outcome = served => outcome,
                    () = shared.cut.cancelled() => {
                        shared.metrics.cut_off(Protocol::Http1, Reason::Stop);
                        return Ok(());
                    }
                }
            }
        };
        outcome.map_err(|error| {
            let reason = if error.is_timeout() {
                Some(Reason::Time)
            } else {
                error.is_parse_too_large().then_some(Reason::Size)
            };
            if let Some(reason) = reason {
                shared.metrics.cut_off(Protocol::Http1, reason);
            }
            io::Error::other(error)
        })
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let begun = Instant::now();
        // What a client sends with its request is not read; hyper closes the connection after the answer.
        let (head, _) = request.into_parts();
        let path = head.uri.path().to_owned();
        self.choose(&path);
        let method = head.method.clone();
        let Answer { head, content } = self.shared.answer(head.method, head.uri, head.headers).await;
        let status = head.status().as_u16();
        self.shared.count(Protocol::Http1, status);
        tracing::debug!(address = %self.address, %method, path, status, "answered by HTTP/1.1");
        let mut response = head.map(|()| match content {
            None => Empty::new().map_err(|never| match never {}).boxed_unsync(),
            Some(content) => self.body(content, path, begun),
        });
        *response.version_mut() = Version::HTTP_11;
        if let Some(alternative) = &self.alternative {
            response.headers_mut().insert(ALT_SVC, alternative.clone());
        }
        response
    }

    /// The kernel's control of the first request's path, as over QUIC.
    fn choose(&self, path: &str) {
        let Some(socket) = &self.socket else { return };
        if self.is_chosen.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(name) = self.shared.tcp_control.of(path)
            && let Err(error) = SockRef::from(socket).set_tcp_congestion(name.as_bytes())
        {
            tracing::warn!(control = name, %error, "the kernel does not give a connection its control");
        }
    }

    /// The content, which hyper asks for piece by piece. An error cuts the connection off, so that the client sees that bytes are missing.
    fn body(&self, content: Content, path: String, begun: Instant) -> Body {
        let bytes =
            self.shared.metrics.bytes.get_or_create_owned(&ProtocolLabels { protocol: Protocol::Http1 });
        let shared = Arc::clone(&self.shared);
        let pieces = stream::try_unfold(content, move |mut content| {
            let (bytes, shared, path) = (bytes.clone(), Arc::clone(&shared), path.clone());
            async move {
                match content.next().await {
                    Ok(Some(piece)) => {
                        bytes.inc_by(piece.len() as u64);
                        if content.length() == 0 {
                            shared.observe(Protocol::Http1, begun.elapsed());
                        }
                        Ok(Some((Frame::data(piece), content)))
                    }
                    Ok(None) => Ok(None),
                    Err(error) => {
                        shared.fail(Protocol::Http1, &path, &error);
                        Err(error)
                    }
                }
            }
        });
        StreamBody::new(pieces).boxed_unsync()
    }
}
