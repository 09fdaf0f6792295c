//! HTTP/3 over QUIC.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::{HeaderValue, Method, Response, Version};
use noq::{Connecting, ConnectionError, Endpoint, PathId, ServerConfig, VarInt};
use ranpace_noq::{ConnectionControl, reports};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::content::PIECE;
use crate::control::Choice;
use crate::metrics::{Protocol, ProtocolLabels, Reason};
use crate::radio::Chooser;
use crate::shared::Shared;

/// Longest list of header fields, as RFC 9114, 4.2.2 counts it. Ours.
const FIELDS: u64 = 32 << 10;
/// Most bytes of any stream of a client: a request's fields and its frames; on its control stream, 20 bytes for each change of a request's
/// priority. Ours.
const STREAM: u64 = 1 << 20;
/// Bytes of a connection that are sent and not acknowledged, or wait to be: a quarter of a second at 130 Mbit/s. Ours.
pub const SEND_WINDOW: u64 = 4 << 20;
/// Handshakes at a time, as a multiple of those above which addresses are proven; more are refused. Ours.
const MOST_HANDSHAKES: usize = 8;

/// A counted handshake, until this is dropped.
struct Handshake(Arc<AtomicUsize>);

impl Handshake {
    fn begin(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(all))
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts connections until the server stops.
pub async fn accept(endpoint: Endpoint, config: ServerConfig, shared: Arc<Shared>) {
    let all = Arc::new(Semaphore::new(shared.limits.connections));
    let handshakes = Arc::new(AtomicUsize::new(0));
    let config = Arc::new(config);
    loop {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            () = shared.stop.cancelled() => break,
        };
        let Some(incoming) = incoming else { break };
        let under_way = handshakes.load(Ordering::Relaxed);
        if under_way >= shared.limits.handshakes && incoming.may_retry() {
            shared.metrics.retries.inc();
            // It fails only where the address is proven already.
            drop(incoming.retry());
            continue;
        }
        let permit = Arc::clone(&all).try_acquire_owned().ok();
        let Some(permit) =
            permit.filter(|_| under_way < shared.limits.handshakes.saturating_mul(MOST_HANDSHAKES))
        else {
            shared.metrics.cut_off(Protocol::Http3, Reason::Connections);
            incoming.refuse();
            continue;
        };
        let handshake = Handshake::begin(&handshakes);
        let (connecting, chooser) = match begin(incoming, &config, &shared) {
            Ok(begun) => begun,
            Err(error) => {
                tracing::debug!(%error, "no QUIC");
                continue;
            }
        };
        let of_connection = Arc::clone(&shared);
        shared.tasks.spawn(async move {
            let address = connecting.remote_address();
            if let Err(error) = serve(connecting, handshake, chooser, of_connection).await {
                tracing::debug!(%address, error, "a connection ended");
            }
            drop(permit);
        });
    }
    // Nobody is let in any more, and those who ask are told so, until the endpoint is closed. (An endpoint of noq 1.4 without settings
    // would do so by itself, but panics if it loses them while a client begins.)
    while let Some(incoming) = endpoint.accept().await {
        incoming.refuse();
    }
}

/// Accepts a connection, with a control of its own if its first request is to choose it.
fn begin(
    incoming: noq::Incoming,
    config: &Arc<ServerConfig>,
    shared: &Shared,
) -> Result<(Connecting, Chooser), ConnectionError> {
    let default = shared.quic_control.default();
    if shared.quic_control.is_uniform() {
        return Ok((incoming.accept()?, Chooser::Same(Arc::clone(default))));
    }
    let choice = Arc::new(Choice::new(Arc::clone(default)));
    let mut transport = (*shared.transport).clone();
    transport.congestion_controller_factory(Arc::clone(&choice) as Arc<_>);
    let mut own = (**config).clone();
    own.transport_config(Arc::new(transport));
    Ok((incoming.accept_with(Arc::new(own))?, Chooser::Own(choice)))
}

type Http = h3::server::Connection<h3_noq::Connection, Bytes>;

async fn serve(
    connecting: Connecting,
    handshake: Handshake,
    chooser: Chooser,
    shared: Arc<Shared>,
) -> Result<(), String> {
    let connection = match timeout(shared.limits.head_time, connecting).await {
        Ok(connection) => connection.map_err(|error| error.to_string())?,
        Err(_) => {
            shared.metrics.cut_off(Protocol::Http3, Reason::Time);
            return Err("the handshake took too long".to_owned());
        }
    };
    drop(handshake);
    let address = remote_ip(&connection).ok_or("the path is gone")?;
    // After the handshake, which proves the address: nobody fills another one's places.
    let most = shared.limits.connections_per_address;
    let Some(_inside) = shared.quic_addresses.enter(address, most) else {
        shared.metrics.cut_off(Protocol::Http3, Reason::Address);
        connection.close(code(Code::H3_EXCESSIVE_LOAD), b"too many connections from this address");
        return Err("too many connections from its address".to_owned());
    };
    let _open = shared.metrics.enter(Protocol::Http3);
    let _listening =
        shared.radio.as_ref().map(|radio| radio.listen(address, connection.clone(), chooser.clone()));
    let _watching = shared.peps.as_ref().map(|peps| peps.watch(connection.clone(), chooser.clone()));
    let _listed = shared.open.enter(connection.clone(), chooser.clone());
    let over = CancellationToken::new();
    if let Some(samples) = shared.samples.clone() {
        let (connection, chooser, over) = (connection.clone(), chooser.clone(), over.clone());
        tokio::spawn(async move { samples.record(connection, chooser, over).await });
    }
    let _over = over.drop_guard();
    let transport =
        h3_noq::Connection::new(connection.clone()).receive_at_most(STREAM).finish_when_acknowledged();
    let http = h3::server::builder().max_field_section_size(FIELDS).send_grease(false).build(transport).await;
    let client = Arc::new(Client {
        address,
        connection: connection.clone(),
        chooser,
        reports: AtomicBool::new(false),
        shared: Arc::clone(&shared),
    });
    let outcome = match http {
        Ok(http) => client.answer_requests(http).await,
        Err(error) => Err(error.to_string()),
    };
    if let Some(stats) = connection.path_stats(PathId::ZERO) {
        shared.metrics.packets.inc_by(stats.udp_tx.datagrams);
        shared.metrics.lost_packets.inc_by(stats.lost_packets);
    }
    outcome
}

type Resolver = RequestResolver<h3_noq::Connection, Bytes>;
type Outgoing = RequestStream<h3_noq::SendStream<Bytes>, Bytes>;
type Incoming = RequestStream<h3_noq::RecvStream, Bytes>;

/// A connection, as its requests see it.
struct Client {
    address: IpAddr,
    connection: noq::Connection,
    chooser: Chooser,
    /// Whether the client's reports are listened to.
    reports: AtomicBool,
    shared: Arc<Shared>,
}

impl Client {
    /// Answers requests until the client closes the connection; when the server stops, until those that came before have been answered.
    async fn answer_requests(self: &Arc<Self>, mut http: Http) -> Result<(), String> {
        let shared = &self.shared;
        let mut requests = JoinSet::new();
        let mut is_stopping = false;
        loop {
            tokio::select! {
                accepted = http.accept() => match accepted {
                    Ok(Some(resolver)) => drop(requests.spawn(Arc::clone(self).answer(resolver))),
                    Ok(None) => return Ok(()),
                    Err(error) if error.is_h3_no_error() => return Ok(()),
                    Err(error) => return Err(error.to_string()),
                },
                Some(ended) = requests.join_next() => {
                    if let Err(error) = ended && error.is_panic() {
                        tracing::error!(%error, "answering a request failed");
                    }
                }
                () = shared.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    // GOAWAY names the first request that is not answered (RFC 9114, 5.2), which is the one after the last that h3 has.
                    http.shutdown(1).await.map_err(|error| error.to_string())?;
                }
                () = shared.cut.cancelled() => {
                    shared.metrics.cut_off(Protocol::Http3, Reason::Stop);
                    return Err("the server stopped before its answers had ended".to_owned());
                }
            }
            if is_stopping && requests.is_empty() {
                return Ok(());
            }
        }
    }

    async fn answer(self: Arc<Self>, resolver: Resolver) {
        let Self { address, shared, .. } = &*self;
        let begun = Instant::now();
        let resolved = timeout(shared.limits.head_time, resolver.resolve_request()).await;
        let (request, (mut stream, incoming)) = match resolved {
            Ok(Ok((request, stream))) => (request, stream.split()),
            Ok(Err(error)) => {
                if let StreamError::HeaderTooBig { .. } = error {
                    shared.metrics.cut_off(Protocol::Http3, Reason::Size);
                }
                tracing::debug!(%address, %error, "no request");
                return;
            }
            // What is dropped here is reset.
            Err(_) => {
                shared.metrics.cut_off(Protocol::Http3, Reason::Time);
                return;
            }
        };
        let (head, ()) = request.into_parts();
        let (method, path) = (head.method.clone(), head.uri.path().to_owned());
        if let Chooser::Own(choice) = &self.chooser {
            choice.choose(shared.quic_control.of(&path));
        }
        let offer = head.headers.get(reports::HEADER).cloned();
        let mut answer = shared.answer(head.method, head.uri, head.headers).await;
        if let Some(offer) = offer {
            self.consider(&offer, &mut answer.head);
        }
        let status = answer.head.status().as_u16();
        shared.count(Protocol::Http3, status);
        let has_body = !matches!(method, Method::GET | Method::HEAD);
        let (outcome, ()) = tokio::join!(
            send(&mut stream, answer, &path, shared),
            read_to_end(incoming, has_body, shared.limits.head_time)
        );
        match outcome {
            Ok(()) => shared.observe(Protocol::Http3, begun.elapsed()),
            // Its receiver must not take what it has for whole.
            Err(code) => stream.stop_stream(code),
        }
        tracing::debug!(%address, %method, path, status, whole = outcome.is_ok(), "answered by HTTP/3");
    }

    /// Listens to the reports that a request offers, if the connection's control can use them, and says so in the answer.
    fn consider(&self, offer: &HeaderValue, answer: &mut Response<()>) {
        let controls = self.chooser.controls();
        let offer = offer.to_str().unwrap_or_default();
        if let Err(error) = reports::accepts(offer, controls) {
            tracing::debug!(address = %self.address, %error, "no reports of the receiver");
            return;
        }
        answer.headers_mut().insert(reports::HEADER, HeaderValue::from_static(reports::ACCEPTED));
        if self.reports.swap(true, Ordering::Relaxed) {
            return;
        }
        let control = ConnectionControl::new(self.connection.clone(), Arc::clone(controls));
        let metrics = Arc::clone(&self.shared.metrics);
        // It ends with the connection.
        tokio::spawn(async move {
            let count = |heard: Result<&_, _>| {
                let counter = if heard.is_ok() { &metrics.reports } else { &metrics.refused_reports };
                counter.inc();
            };
            reports::listen(&control, count).await
        });
    }
}

/// Reads to the end of a request, so that a client that has not ended it when it is answered can do so. A body is not read, because the answer
/// does not depend on it (RFC 9114, 4.1.1).
async fn read_to_end(mut request: Incoming, has_body: bool, time: Duration) {
    if !has_body {
        let ended = timeout(time, async { while let Ok(Some(_)) = request.recv_data().await {} }).await;
        if ended.is_ok() {
            return;
        }
    }
    request.stop_sending(Code::H3_NO_ERROR);
}

/// Sends an answer, and waits until the client has it.
async fn send(stream: &mut Outgoing, answer: Answer, path: &str, shared: &Shared) -> Result<(), Code> {
    let write_time = shared.limits.write_time;
    let bytes = shared.metrics.bytes.get_or_create_owned(&ProtocolLabels { protocol: Protocol::Http3 });
    let failed = |error: StreamError| {
        tracing::debug!(path, %error, "an answer was not taken");
        Code::H3_REQUEST_CANCELLED
    };
    let late = |_| {
        shared.metrics.cut_off(Protocol::Http3, Reason::Time);
        Code::H3_REQUEST_CANCELLED
    };
    let Answer { mut head, content } = answer;
    *head.version_mut() = Version::HTTP_3;
    timeout(write_time, stream.send_response(head)).await.map_err(late)?.map_err(failed)?;
    if let Some(mut content) = content {
        loop {
            let piece = content.next().await.map_err(|error| {
                shared.fail(Protocol::Http3, path, &error);
                Code::H3_INTERNAL_ERROR
            })?;
            let Some(piece) = piece else { break };
            let length = piece.len() as u64;
            timeout(write_time, stream.send_data(piece)).await.map_err(late)?.map_err(failed)?;
            bytes.inc_by(length);
        }
    }
    // As long as the slowest client that is let go on takes for what waits.
    let pieces = SEND_WINDOW.div_ceil(PIECE as u64) as u32;
    timeout(write_time * pieces, stream.finish()).await.map_err(late)?.map_err(failed)
}

fn remote_ip(connection: &noq::Connection) -> Option<IpAddr> {
    Some(connection.path(PathId::ZERO)?.remote_address().ok()?.ip().to_canonical())
}

/// Codes of HTTP/3 are small (RFC 9114, 8.1).
pub fn code(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}
