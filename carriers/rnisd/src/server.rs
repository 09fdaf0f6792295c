//! The server: its listener, its sources' threads, and its end.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::api::{Api, Peer};
use crate::auth::Authenticator;
use crate::config::Config;
use crate::core::Core;
use crate::feed_port::FeedPort;
use crate::metrics::SourceLabels;
use crate::slow::WriteTimeout;
use crate::source::Source;
use crate::subscriptions::Delivery;
use crate::{mp1, tls};

/// How often ends of subscriptions are looked for. Ours.
const EXPIRE: Duration = Duration::from_millis(100);
/// Time for a client to complete the handshake of TLS. Ours.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for requests to end when the server stops. Ours.
const GRACE: Duration = Duration::from_secs(3);

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

/// A source and its name.
pub struct NamedSource {
    /// Its name, in metrics and the log.
    pub name: String,
    /// The source.
    pub source: Box<dyn Source>,
}

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    core: Arc<Core>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
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
        let core = Core::new(config, feed).map_err(ServeError::Setup)?;
        let address = core.config.listen;
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .map_err(|error| ServeError::Listen { address, error })?;
        let address = listener.local_addr().map_err(|error| ServeError::Listen { address, error })?;
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        let root = core.config.api_root.as_ref().map(ToString::to_string);
        core.set_root(&root.unwrap_or_else(|| format!("{scheme}://{address}")));
        let (stop, stopping) = watch::channel(false);
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
            tokio::spawn(expire(Arc::clone(&core), stopping.clone()));
            if let Some(of) = core.config.mp1.clone() {
                tokio::spawn(mp1::run(Arc::clone(&core), of, stopping.clone()));
            }
            tokio::spawn(accept(listener, acceptor, router, Arc::clone(&core), stopping));
        }
        let mut threads = Vec::new();
        for (number, NamedSource { name, source }) in sources.into_iter().enumerate() {
            let (core, stopped) = (Arc::clone(&core), Arc::clone(&stopped));
            let thread = std::thread::Builder::new().name(format!("source {number}"));
            let thread = thread.spawn(move || run_source(&core, number, name, source, &stopped));
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
        Ok(Self { core, address, stop, stopped, threads, runtime: Some(runtime) })
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
        self.threads.iter().all(JoinHandle::is_finished)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody is left to hear it only if the runtime is gone.
        let _ = self.stop.send(true);
        self.stopped.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the server panicked");
            }
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(GRACE);
        }
        self.core.keep();
    }
}

fn run_source(core: &Core, number: usize, name: String, mut source: Box<dyn Source>, stopped: &AtomicBool) {
    let labels = SourceLabels { source: name };
    let counters = source.counters();
    let mut count = 0_u32;
    let outcome = source.run(
        &mut |update| {
            core.update(number, &labels, update);
            count = count.wrapping_add(1);
            if count % 1024 == 1 {
                core.metrics.left_out.get_or_create(&labels).set(counters.left_out() as i64);
                core.metrics.connected.get_or_create(&labels).set(counters.is_connected().into());
            }
        },
        stopped,
    );
    core.metrics.left_out.get_or_create(&labels).set(counters.left_out() as i64);
    core.metrics.connected.get_or_create(&labels).set(0);
    match outcome {
        Ok(()) => tracing::info!(source = labels.source, "a source has ended"),
        Err(error) => tracing::error!(source = labels.source, %error, "a source failed"),
    }
}

async fn expire(core: Arc<Core>, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(EXPIRE) => {}
            _ = stop.changed() => return,
        }
        let core = Arc::clone(&core);
        // The store may have to write.
        if tokio::task::spawn_blocking(move || core.expire()).await.is_err() {
            tracing::error!("looking for the ends of subscriptions failed");
        }
    }
}

/// Connections of each address.
#[derive(Default)]
struct PerAddress(Mutex<HashMap<IpAddr, usize>>);

impl PerAddress {
    /// Counts one more; `None` if there are too many. Of IPv6, all addresses of a host's network (64 bits) count as one.
    fn enter(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Inside> {
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

/// A counted connection.
struct Inside {
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

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    core: Arc<Core>,
    mut stop: watch::Receiver<bool>,
) {
    let limits = &core.config.limits;
    let all = Arc::new(Semaphore::new(limits.connections));
    let per_address = Arc::new(PerAddress::default());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
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
        tokio::spawn(async move {
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
    let router = router.layer(axum::Extension(peer));
    let outcome = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.header)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades()
        .await;
    if let Err(error) = outcome {
        if error.is_timeout() {
            core.metrics.cut_off.inc();
        }
        tracing::debug!(%error, "a connection ended");
    }
}
