//! HTTP/3 over QUIC by noq, with any of our congestion controls for what this end sends, and the receiver's half of a client-driven
//! one for what it receives.

use std::future::poll_fn;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use h3::client::RequestStream;
use h3_noq::BidiStream;
use http::Request;
use http::response::Parts;
use noq::crypto::rustls::QuicClientConfig;
use noq::{
    ClientConfig, Endpoint, EndpointConfig, IdleTimeout, PathId, Runtime as _, TokioRuntime, TransportConfig,
    VarInt,
};
use ranpace_noq::Controls;
use ranpace_noq::reports::{self, Meter};
use tokio::task::JoinHandle;

use crate::addresses::first;
use crate::error::FetchError;
use crate::options::Options;
use crate::target::Target;

/// Most bytes of an answer's fields.
const MOST_FIELDS: u64 = 64 << 10;
/// H3_NO_ERROR (RFC 9114, 8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// A connection.
pub(crate) struct Connection {
    endpoint: Endpoint,
    quic: noq::Connection,
    requests: h3::client::SendRequest<h3_noq::Opener, Bytes>,
    driver: JoinHandle<()>,
    pub meter: Option<Meter>,
    /// When the first packet left.
    pub began: Instant,
    pub handshake: Duration,
}

/// A body that is coming.
pub(crate) struct Body {
    stream: RequestStream<BidiStream<Bytes>, Bytes>,
    endpoint: Endpoint,
    quic: noq::Connection,
    driver: JoinHandle<()>,
    reporting: Option<JoinHandle<()>>,
    /// Keeps the connection open: h3 closes it when nobody can ask any more.
    _requests: h3::client::SendRequest<h3_noq::Opener, Bytes>,
}

impl Connection {
    /// Connects to the first address that answers.
    pub async fn open(
        target: &Target,
        addresses: &[SocketAddr],
        options: &Options,
    ) -> Result<Self, FetchError> {
        let config = config(options)?;
        first(addresses, |address| Self::to(address, target, config.clone(), options)).await
    }

    async fn to(
        address: SocketAddr,
        target: &Target,
        config: ClientConfig,
        options: &Options,
    ) -> Result<Self, FetchError> {
        let failed = |why: String| FetchError::Connection { to: address.to_string(), why };
        // It begins to measure with the connection's first packet.
        let meter = options.reports.as_ref().map(Meter::new).transpose()?;
        let endpoint = endpoint(address, meter.as_ref()).map_err(|error| failed(error.to_string()))?;
        let began = Instant::now();
        let connecting = endpoint.connect_with(config, address, &target.host());
        let connecting = connecting.map_err(|error| failed(error.to_string()))?;
        let quic = connecting.await.map_err(|error| failed(error.to_string()))?;
        let handshake = began.elapsed();
        let begun = h3::client::builder()
            .max_field_section_size(MOST_FIELDS)
            .build::<_, _, Bytes>(h3_noq::Connection::new(quic.clone()))
            .await;
        let (mut driver, requests) = begun.map_err(|error| failed(error.to_string()))?;
        // Its errors are also those of the request and of the body.
        let driver = tokio::spawn(async move { drop(poll_fn(|cx| driver.poll_close(cx)).await) });
        Ok(Self { endpoint, quic, requests, driver, meter, began, handshake })
    }

    /// Asks, and returns the answer's head and body. If the server wants the receiver's reports, they leave from now on.
    pub async fn ask(mut self, mut request: Request<()>) -> Result<(Parts, Body), FetchError> {
        let broken =
            |error: h3::error::StreamError| FetchError::Broken { received: 0, why: error.to_string() };
        if let Some(meter) = &self.meter {
            let offer = meter.offer().parse();
            let offer = offer.map_err(|_| {
                FetchError::Options("the control's name cannot be sent to the server".to_owned())
            })?;
            request.headers_mut().insert(reports::HEADER, offer);
        }
        let mut stream = self.requests.send_request(request).await.map_err(broken)?;
        stream.finish().await.map_err(broken)?;
        let (head, ()) = stream.recv_response().await.map_err(broken)?.into_parts();
        let wanted = head.headers.get(reports::HEADER).is_some_and(|value| value == reports::ACCEPTED);
        let reporting = self.meter.filter(|_| wanted).map(|meter| {
            let quic = self.quic.clone();
            // A server that takes no DATAGRAM frames after all hears nothing; the count of reports shows it.
            tokio::spawn(async move { drop(meter.report(&quic).await) })
        });
        let Self { endpoint, quic, requests, driver, .. } = self;
        Ok((head, Body { stream, endpoint, quic, driver, reporting, _requests: requests }))
    }
}

impl Body {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let piece = self.stream.recv_data().await.map_err(|error| error.to_string())?;
        Ok(piece.map(|mut piece| piece.copy_to_bytes(piece.remaining())))
    }

    /// Whether the server wanted the receiver's reports.
    pub fn reports_are_wanted(&self) -> bool {
        self.reporting.is_some()
    }

    /// Smoothed RTT, as this end has measured it.
    pub fn rtt(&self) -> Option<Duration> {
        self.quic.rtt(PathId::ZERO)
    }

    /// Ends the connection, and waits until the server has been told.
    pub async fn close(self) {
        self.quic.close(NO_ERROR, b"");
        self.endpoint.wait_all_draining().await;
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.driver.abort();
        if let Some(reporting) = &self.reporting {
            reporting.abort();
        }
    }
}

/// A socket of its own for each connection, so that a meter sees the packets of one.
fn endpoint(to: SocketAddr, meter: Option<&Meter>) -> std::io::Result<Endpoint> {
    let any: SocketAddr =
        if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = TokioRuntime.wrap_udp_socket(UdpSocket::bind(any)?)?;
    let socket = match meter {
        Some(meter) => meter.socket(socket),
        None => socket,
    };
    Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))
}

/// QUIC and TLS as the options want them.
pub(crate) fn config(options: &Options) -> Result<ClientConfig, FetchError> {
    let tls = options.trust.client(b"h3")?;
    let tls = QuicClientConfig::try_from(tls).map_err(|error| FetchError::Options(error.to_string()))?;
    let window = VarInt::from_u64(options.window).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(window)
        .receive_window(window)
        .max_idle_timeout(IdleTimeout::try_from(options.patience).ok())
        .datagram_send_buffer_size(reports::SEND_BUFFER);
    if let Some(name) = &options.cc {
        transport.congestion_controller_factory(Arc::new(name.parse::<Controls>()?));
    }
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    Ok(config)
}
