//! The server: its listener, its sources' threads, and its end.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use ranpace_config::{Fault, Faults};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::api::{Api, Peer};
use crate::auth::Authenticator;
use crate::config::Config;
use crate::core::{Core, SourceStatus};
use crate::deliver::client::Client;
use crate::deliver::guard::Guard;
use crate::feed_port::FeedPort;
use crate::metrics::SourceLabels;
use crate::slow::WriteTimeout;
use crate::source::{NamedSource, Source};
use crate::subscriptions::Delivery;
use crate::{mp1, tls};

/// How often ends of subscriptions are looked for. Ours.
const EXPIRE: Duration = Duration::from_millis(100);
/// Time for a client to complete the handshake of TLS. Ours.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for requests to end when the server stops. Ours.
const GRACE: Duration = Duration::from_secs(3);
/// How often it is looked whether sources are connected. Ours.
const WATCH: Duration = Duration::from_millis(200);
/// A source that is not connected this long after the start is reported. Ours.
const PATIENCE: Duration = Duration::from_secs(1);
/// Messages of a source that cannot be read are reported at most this often. Ours.
const COMPLAIN: Duration = Duration::from_secs(10);

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        #[source]
        error: std::io::Error,
    },
    /// Files, the store or the clock.
    #[error("{0}")]
    Setup(String),
    /// A thread or the runtime.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// Checks the files that a configuration names: whether they are there, and are what they should be. Nothing is changed.
///
/// # Errors
///
/// If one is not.
pub fn check_files(config: &Config, name: &str) -> Result<(), Faults> {
    let mut faults = Vec::new();
    let mut add = |key: &str, reason: String| {
        faults.push(Fault { line: None, key: key.to_owned(), reason });
    };
    if let Some(tls) = &config.tls
        && let Err(reason) = tls::acceptor(tls)
    {
        add("tls", reason);
    }
    let ca = config.callbacks.ca.as_deref();
    if let Err(reason) = Client::new(Guard::default(), ca, config.callbacks.answer_time) {
        add("callbacks.ca", reason);
    } else if let Err(reason) = Authenticator::new(config) {
        add("auth.keys", reason);
    }
    for replay in config.source.iter().filter_map(|source| source.replay.as_deref()) {
        if let Err(error) = std::fs::File::open(replay) {
            add("source.replay", format!("{}: {error}", replay.display()));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Faults { file: name.to_owned(), faults }) }
}

/// Allows as many open files as the system lets this process have: each connection is one, and each callback that is under way.
pub fn allow_files(connections: usize) {
    let allowed = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most).map(|()| most));
    match allowed {
        Ok(most) if most < connections as u64 => tracing::warn!(
            most,
            connections,
            "fewer files may be open than `limits.connections`: raise the limit (LimitNOFILE= of systemd, ulimit -Hn)"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "the number of open files could not be raised to its limit"),
    }
}

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    core: Arc<Core>,
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    /// Starts a server, and returns when it listens.
    ///
    /// # Errors
    ///
    /// If it cannot listen, or something that the configuration names cannot be used.
    pub fn start(
        config: Config,
        sources: Vec<NamedSource>,
        feed: Option<Box<dyn FeedPort>>,
    ) -> Result<Self, ServeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("rnis")
            .build()
            .map_err(ServeError::Thread)?;
        let acceptor = config.tls.as_ref().map(tls::acceptor).transpose().map_err(ServeError::Setup)?;
        let auth = Authenticator::new(&config).map_err(ServeError::Setup)?;
        let status = |named: &NamedSource| SourceStatus {
            labels: SourceLabels { source: named.name.clone() },
            counters: named.source.counters(),
            ended: AtomicBool::new(false),
        };
        let statuses = sources.iter().map(status).collect();
        let core = Core::new(config, statuses, feed).map_err(ServeError::Setup)?;
        let address = core.config.listen;
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .map_err(|error| ServeError::Listen { address, error })?;
        let address = listener.local_addr().map_err(|error| ServeError::Listen { address, error })?;
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        let root = core.config.api_root.as_ref().map(ToString::to_string);
        core.set_root(&root.unwrap_or_else(|| format!("{scheme}://{address}")));
        let stopped = Arc::new(AtomicBool::new(false));
        let api = Api::new(Arc::clone(&core), auth);
        let router = api.router();
        {
            let _inside = runtime.enter();
            for entry in core.subscriptions.list() {
                if let Delivery::Callback(url) = &entry.delivery {
                    let (core, reader) = (Arc::clone(&core), entry.queue.begin_reading());
                    tokio::spawn(crate::deliver::callback::run(
                        core,
                        Arc::clone(&entry),
                        url.clone(),
                        reader,
                    ));
                }
            }
            tokio::spawn(expire(Arc::clone(&core)));
            tokio::spawn(watch_sources(Arc::clone(&core)));
            if let Some(of) = core.config.mp1.clone() {
                core.tasks.spawn(mp1::run(Arc::clone(&core), of));
            }
            tokio::spawn(accept(listener, acceptor, router, Arc::clone(&core)));
        }
        let mut threads = Vec::new();
        for (number, NamedSource { source, .. }) in sources.into_iter().enumerate() {
            let (core, stopped) = (Arc::clone(&core), Arc::clone(&stopped));
            let thread = std::thread::Builder::new().name(format!("source {number}"));
            let thread = thread.spawn(move || run_source(&core, number, source, &stopped));
            threads.push(thread.map_err(ServeError::Thread)?);
        }
        if core.store.is_some() {
            let (core, stopped) = (Arc::clone(&core), Arc::clone(&stopped));
            let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    std::thread::sleep(Core::keep_interval());
                    core.keep();
                }
            });
            threads.push(thread.map_err(ServeError::Thread)?);
        }
        tracing::info!(%address, root = core.root(), "listening");
        Ok(Self { core, address, stopped, threads, runtime: Some(runtime) })
    }

    /// The address of the interface.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The root of addresses in answers.
    pub fn root(&self) -> String {
        self.core.root()
    }

    /// The server's inside, for sources in the same process.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Whether all sources have ended by themselves.
    pub fn has_ended(&self) -> bool {
        self.core.sources.iter().all(|source| source.ended.load(Ordering::Relaxed))
    }
}

impl Drop for Server {
    /// Lets requests end, removes the registration at a platform, and keeps what waits.
    fn drop(&mut self) {
        tracing::info!("stopping");
        self.core.stop.cancel();
        self.core.tasks.close();
        self.stopped.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the server panicked");
            }
        }
        if let Some(runtime) = self.runtime.take() {
            let ended = runtime.block_on(async { tokio::time::timeout(GRACE, self.core.tasks.wait()).await });
            if ended.is_err() {
                tracing::warn!(after = ?GRACE, connections = self.core.tasks.len(), "connections were cut off");
            }
            runtime.shutdown_timeout(GRACE);
        }
        self.core.keep();
    }
}

fn run_source(core: &Core, number: usize, mut source: Box<dyn Source>, stopped: &AtomicBool) {
    let status = &core.sources[number];
    let labels = &status.labels;
    let outcome = source.run(&mut |update| core.update(number, labels, update), stopped);
    status.ended.store(true, Ordering::Relaxed);
    match outcome {
        Ok(()) => tracing::info!(source = labels.source, "a source has ended"),
        Err(error) => tracing::error!(source = labels.source, %error, "a source failed"),
    }
}

/// Reports sources that are connected and lost, and messages that cannot be read.
async fn watch_sources(core: Arc<Core>) {
    /// What was reported of a source.
    struct Reported {
        is_connected: Option<bool>,
        left_out: u64,
        complained: Option<Instant>,
    }
    let none = |_: &SourceStatus| Reported { is_connected: None, left_out: 0, complained: None };
    let mut reported: Vec<Reported> = core.sources.iter().map(none).collect();
    let begun = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep(WATCH) => {}
            () = core.stop.cancelled() => return,
        }
        for (status, reported) in core.sources.iter().zip(&mut reported) {
            let SourceStatus { labels, counters, ended } = status;
            let (is_connected, left_out) = (counters.is_connected(), counters.left_out());
            core.metrics.connected.get_or_create(labels).set(is_connected.into());
            core.metrics.left_out.get_or_create(labels).set(left_out as i64);
            let (source, reason) = (&labels.source, counters.complaint());
            match (reported.is_connected, is_connected) {
                (Some(true), true) | (Some(false), false) => {}
                (_, true) => {
                    tracing::info!(source, "a source is connected");
                    reported.is_connected = Some(true);
                }
                (before, false) if before.is_some() || begun.elapsed() >= PATIENCE => {
                    if !ended.load(Ordering::Relaxed) {
                        let was = if before.is_some() { "lost" } else { "not there yet" };
                        tracing::warn!(source, reason, "a source is {was}; it is tried again");
                    }
                    reported.is_connected = Some(false);
                }
                (_, false) => {}
            }
            let is_quiet = reported.complained.is_none_or(|at| at.elapsed() >= COMPLAIN);
            if left_out > reported.left_out && is_quiet {
                let messages = left_out - reported.left_out;
                tracing::warn!(source, messages, reason, "messages of a source could not be read");
                (reported.left_out, reported.complained) = (left_out, Some(Instant::now()));
            }
        }
    }
}

async fn expire(core: Arc<Core>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(EXPIRE) => {}
            () = core.stop.cancelled() => return,
        }
        let core = Arc::clone(&core);
        // The store may have to write.
        if tokio::task::spawn_blocking(move || core.expire()).await.is_err() {
            tracing::error!("looking for the ends of subscriptions failed");
        }
    }
}

/// Connections of each address.
#[derive(Debug, Default)]
pub struct PerAddress(Mutex<HashMap<IpAddr, usize>>);

impl PerAddress {
    /// Counts one more; `None` if there are too many. Of IPv6, all addresses of a host's network (64 bits) count as one.
    pub fn enter(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Inside> {
        let address = match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
            address => address,
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Inside { all: Arc::clone(self), address })
    }
}

/// A counted connection, until this is dropped.
#[derive(Debug)]
pub struct Inside {
    all: Arc<PerAddress>,
    address: IpAddr,
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut counts = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, router: Router, core: Arc<Core>) {
    let limits = &core.config.limits;
    let all = Arc::new(Semaphore::new(limits.connections));
    let per_address = Arc::new(PerAddress::default());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = core.stop.cancelled() => return,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of files, mostly: others close theirs.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let permit = Arc::clone(&all).try_acquire_owned().ok();
        let inside = per_address.enter(address.ip(), limits.connections_per_address);
        let (Some(permit), Some(inside)) = (permit, inside) else {
            core.metrics.cut_off.inc();
            continue;
        };
        let (core, router, acceptor) = (Arc::clone(&core), router.clone(), acceptor.clone());
        let tasks = core.tasks.clone();
        tasks.spawn(async move {
            core.metrics.connections.inc();
            serve(stream, address, acceptor, router, &core).await;
            core.metrics.connections.dec();
            drop((permit, inside));
        });
    }
}

async fn serve(
    stream: TcpStream,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    core: &Core,
) {
    // Without it small answers wait for acknowledgements; it cannot fail on a connected socket that matters.
    let _ = stream.set_nodelay(true);
    let stream = WriteTimeout::new(stream, core.config.limits.write_time);
    match acceptor {
        None => serve_http(stream, Peer { address, names: Arc::from([]) }, router, core).await,
        Some(acceptor) => match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => {
                let certificate = stream.get_ref().1.peer_certificates().and_then(|all| all.first());
                let names = certificate.map(tls::names).unwrap_or_default();
                serve_http(stream, Peer { address, names: names.into() }, router, core).await;
            }
            Ok(Err(error)) => tracing::debug!(%address, %error, "no TLS"),
            Err(_) => {
                core.metrics.cut_off.inc();
            }
        },
    }
}

async fn serve_http<S>(stream: S, peer: Peer, router: Router, core: &Core)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let limits = &core.config.limits;
    let router = TowerToHyperService::new(router);
    // A layer of the router would copy all its routes for each connection.
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        router.call(request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        // Names of header fields have no case (RFC 9110, 5.1), but clients of tests look for `Location`.
        .title_case_headers(true)
        .max_buf_size(limits.header)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = core.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        if error.is_timeout() {
            core.metrics.cut_off.inc();
        }
        tracing::debug!(%error, "a connection ended");
    }
}
