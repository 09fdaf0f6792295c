//! The server: its sockets, and its end.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use h3::error::Code;
use noq::crypto::rustls::QuicServerConfig;
use noq::{Endpoint, EndpointConfig, Runtime as _, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use ranpace_noq::{Controls, reports};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::Answerer;
use crate::certificate::{self, Certificate};
use crate::config::{ByPrefix, Config};
use crate::error::ServeError;
use crate::files::Folder;
use crate::metrics::Metrics;
use crate::pep::{PepThread, Peps};
use crate::qlog::Logs;
use crate::radio::{FeedThread, Radio};
use crate::samples::Samples;
use crate::shared::Shared;
use crate::{http1, http3, status};

/// Time for the last packets to leave when the server stops. Ours.
const LAST: Duration = Duration::from_secs(1);
/// Streams that a client opens beside its requests: three in HTTP/3, and reserved ones (RFC 9114, 6.2). Ours.
const OTHER_STREAMS: u32 = 8;
/// Bytes that a client may send ahead on a stream, and on a connection. Ours: requests are short.
const RECEIVE_WINDOW: u32 = 64 << 10;
/// Bytes of the kernel's buffers of the QUIC socket, which is one for all connections. Ours: what a thousand clients send at once, each
/// its first packet or acknowledgements. The kernel's default, 208 KiB, holds 90 first packets; the others were lost, and clients whose
/// packet was lost three times in a row waited for 1 + 2 + 4 s.
const SOCKET_BUFFER: usize = 8 << 20;
/// Packets that wait for a handshake. Ours.
const MOST_INCOMING: usize = 4_096;

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    address: SocketAddr,
    plain: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
    fingerprint: String,
    grace: Duration,
    feed: Option<FeedThread>,
    peps: Option<PepThread>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Starts a server, and returns when it listens.
    ///
    /// # Errors
    ///
    /// If it cannot listen, or something that the configuration names cannot be used.
    pub fn start(config: Config) -> Result<Self, ServeError> {
        let Config { folder, limits, .. } = &config;
        let opened =
            Folder::open(folder).map_err(|error| ServeError::Folder { folder: folder.clone(), error })?;
        let certificate = Arc::new(Certificate::new(&config.identity).map_err(ServeError::Setup)?);
        if let Some(folder) = &config.qlog {
            // noq only warns, connection by connection.
            check_writable(folder).map_err(|error| ServeError::Folder { folder: folder.clone(), error })?;
        }
        let samples = config.samples.as_ref().map(|(file, interval)| {
            let opened = Samples::append(file, *interval);
            opened.map(Arc::new).map_err(|error| ServeError::Folder { folder: file.clone(), error })
        });
        let samples = samples.transpose()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("serve")
            .build()
            .map_err(ServeError::Thread)?;
        let inside = runtime.enter();
        let metrics = Arc::new(Metrics::default());
        let quic_control = config.quic_control.map(|control| Arc::new(Controls::new(control.clone())));
        let transport = Arc::new(transport(&config, quic_control.default()));
        let shared = Arc::new(Shared {
            limits: *limits,
            metrics: Arc::clone(&metrics),
            quic_control,
            tcp_control: config.tcp_control.clone(),
            transport: Arc::clone(&transport),
            radio: config.feed.as_ref().map(|_| Radio::default()),
            peps: config.pep.as_ref().map(Peps::open).transpose()?,
            samples,
            open: Arc::default(),
            quic_addresses: Arc::default(),
            tcp_addresses: Arc::default(),
            stop: CancellationToken::new(),
            cut: CancellationToken::new(),
            tasks: TaskTracker::new(),
            answerer: Arc::new(Answerer::new(opened, config.list_folders, config.generated)),
        });

        check_controls(&config.tcp_control)?;
        // TCP first: the port may be chosen by the system, and both have the same.
        let tcp = listen(config.listen, "HTTP/1.1", &config.tcp_control)?;
        let address = local(&tcp, config.listen)?;
        let endpoint = endpoint(address, quic_settings(&certificate, &transport)?, shared.peps.as_ref())?;
        let tls = certificate::settings(&certificate, "http/1.1").map_err(ServeError::Setup)?;
        let plain = config.plain.map(|of| listen(of, "plain HTTP/1.1", &config.tcp_control)).transpose()?;
        let plain_address = plain.as_ref().zip(config.plain).map(|(listener, of)| local(listener, of));
        let plain_address = plain_address.transpose()?;
        let metrics_address = config
            .metrics
            .map(|address| {
                let served =
                    runtime.block_on(status::serve(Arc::clone(&metrics), Arc::clone(&shared.open), address));
                served.map_err(|error| ServeError::Listen { address, what: "metrics", error })
            })
            .transpose()?;
        let feed = match (&config.feed, &shared.radio) {
            (Some(feed), Some(radio)) => Some(FeedThread::start(feed, radio.clone(), Arc::clone(&metrics))?),
            _ => None,
        };

        let peps = shared.peps.as_ref().map(|peps| peps.hear(Arc::clone(&metrics))).transpose()?;

        let acceptor = TlsAcceptor::from(Arc::new(tls));
        tokio::spawn(http1::accept(tcp, Some(acceptor), address.port(), Arc::clone(&shared)));
        if let Some(plain) = plain {
            tokio::spawn(http1::accept(plain, None, address.port(), Arc::clone(&shared)));
        }
        let quic = quic_settings(&certificate, &transport)?;
        tokio::spawn(http3::accept(endpoint.clone(), quic, Arc::clone(&shared)));
        let fingerprint = certificate.fingerprint();
        tokio::spawn(refresh(certificate, shared.stop.clone()));
        tracing::info!(%address, folder = %folder.display(), fingerprint, "listening");
        drop(inside);
        Ok(Self {
            shared,
            endpoint,
            address,
            plain: plain_address,
            metrics: metrics_address,
            fingerprint,
            grace: config.grace,
            feed,
            peps,
            runtime: Some(runtime),
        })
    }

    /// The address of HTTP/3 and of HTTP/1.1 with TLS.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of HTTP/1.1 without TLS.
    pub fn plain_address(&self) -> Option<SocketAddr> {
        self.plain
    }

    /// The address of `/metrics`.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// SHA-256 of the certificate, for clients to pin.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// What it counts.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }
}

impl Drop for Server {
    /// Lets downloads end for the time of the configuration, and cuts off those that have not.
    fn drop(&mut self) {
        tracing::info!(grace = ?self.grace, connections = self.shared.tasks.len(), "stopping");
        self.shared.stop.cancel();
        self.shared.tasks.close();
        let Some(runtime) = self.runtime.take() else { return };
        runtime.block_on(async {
            let tasks = &self.shared.tasks;
            if tokio::time::timeout(self.grace, tasks.wait()).await.is_err() {
                tracing::warn!(after = ?self.grace, connections = tasks.len(), "downloads were cut off");
                self.shared.cut.cancel();
                // They have nothing left to wait for.
                let _ = tokio::time::timeout(LAST, tasks.wait()).await;
            }
            self.endpoint.close(http3::code(Code::H3_NO_ERROR), b"the server stops");
            // A client that does not answer is not waited for.
            let _ = tokio::time::timeout(LAST, self.endpoint.wait_idle()).await;
        });
        self.feed = None;
        self.peps = None;
        runtime.shutdown_timeout(LAST);
    }
}

/// Uses certificates that replace others.
async fn refresh(certificate: Arc<Certificate>, stop: CancellationToken) {
    let mut complained = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(certificate::LOOK) => {}
            () = stop.cancelled() => return,
        }
        let own = Arc::clone(&certificate);
        let Ok(refreshed) = tokio::task::spawn_blocking(move || own.refresh()).await else { continue };
        match refreshed {
            Ok(true) => {
                tracing::info!(fingerprint = certificate.fingerprint(), "a new certificate is used");
                complained = None;
            }
            Ok(false) => {}
            Err(reason) => {
                if complained.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "the new certificate cannot be used; the old one is kept");
                    complained = Some(reason);
                }
            }
        }
    }
}

fn check_writable(folder: &std::path::Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?;
    Ok(())
}

fn transport(config: &Config, control: &Arc<Controls>) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::clone(control) as Arc<_>)
        .max_concurrent_bidi_streams(config.limits.requests.into())
        .max_concurrent_uni_streams(OTHER_STREAMS.into())
        .stream_receive_window(RECEIVE_WINDOW.into())
        .receive_window(VarInt::from(RECEIVE_WINDOW * 4))
        .send_window(http3::SEND_WINDOW)
        .enable_segmentation_offload(config.gso)
        .datagram_receive_buffer_size(Some(reports::RECEIVE_BUFFER));
    if let Some(packet) = config.packet {
        transport.initial_mtu(packet).min_mtu(packet).mtu_discovery_config(None);
    }
    if let Some(folder) = &config.qlog {
        transport.qlog_factory(Arc::new(Logs::new(folder.clone())));
    }
    transport
}

fn quic_settings(
    certificate: &Arc<Certificate>,
    transport: &Arc<TransportConfig>,
) -> Result<ServerConfig, ServeError> {
    let tls = certificate::settings(certificate, "h3").map_err(ServeError::Setup)?;
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| ServeError::Setup(error.to_string()))?;
    let mut settings = ServerConfig::with_crypto(Arc::new(crypto));
    settings.transport_config(Arc::clone(transport)).max_incoming(MOST_INCOMING);
    Ok(settings)
}

fn endpoint(
    address: SocketAddr,
    settings: ServerConfig,
    peps: Option<&Peps>,
) -> Result<Endpoint, ServeError> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        widen(&socket)?;
        let socket = TokioRuntime.wrap_udp_socket(UdpSocket::from(socket))?;
        let socket = match peps {
            Some(peps) => peps.socket(socket)?,
            None => socket,
        };
        Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            Some(settings),
            socket,
            Arc::new(TokioRuntime),
        )
    };
    open().map_err(|error| ServeError::Listen { address, what: "HTTP/3", error })
}

/// Gives a socket buffers of [`SOCKET_BUFFER`], or of as much as the system grants without rights, which is no error there.
fn widen(socket: &Socket) -> io::Result<()> {
    if set_socket_recv_buffer_size_force(socket, SOCKET_BUFFER).is_err() {
        socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    }
    if set_socket_send_buffer_size_force(socket, SOCKET_BUFFER).is_err() {
        socket.set_send_buffer_size(SOCKET_BUFFER)?;
    }
    // Linux doubles what it is asked for, to have room for its own data (socket(7)).
    let bytes = socket.recv_buffer_size()? / 2;
    if bytes < SOCKET_BUFFER {
        tracing::warn!(
            bytes,
            expected = SOCKET_BUFFER,
            "the receive buffer of the QUIC socket is small: many clients at once lose packets; raise net.core.rmem_max, or run as root"
        );
    }
    Ok(())
}

/// Listens for TCP connections, whose kernel control is the default one of the configuration.
fn listen(
    address: SocketAddr,
    what: &'static str,
    control: &ByPrefix<Option<String>>,
) -> Result<TcpListener, ServeError> {
    let failed = |error| ServeError::Listen { address, what, error };
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        Ok(socket)
    };
    let socket = open().map_err(failed)?;
    // Connections inherit it.
    if let Some(name) = control.default() {
        set_control(&socket, name)?;
    }
    let begin = || {
        socket.listen(1_024)?;
        socket.set_nonblocking(true)?;
        TcpListener::from_std(socket.into())
    };
    begin().map_err(failed)
}

/// Whether the kernel gives this process the controls of the rules: what a request chooses is too late to refuse.
fn check_controls(control: &ByPrefix<Option<String>>) -> Result<(), ServeError> {
    for name in control.values().flatten() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).map_err(ServeError::Thread)?;
        set_control(&socket, name)?;
    }
    Ok(())
}

fn set_control(socket: &Socket, name: &str) -> Result<(), ServeError> {
    SockRef::from(socket)
        .set_tcp_congestion(name.as_bytes())
        .map_err(|error| ServeError::Control { name: name.to_owned(), error })
}

fn local(listener: &TcpListener, address: SocketAddr) -> Result<SocketAddr, ServeError> {
    listener.local_addr().map_err(|error| ServeError::Listen { address, what: "HTTP/1.1", error })
}
