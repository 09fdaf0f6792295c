//! The server: its listener, its connections, and its end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::{Lab, workers};
use crate::catalogue::UPLOADED;
use crate::gate::Gate;
use crate::limits;
use crate::live::address::Address;
use crate::paths::Root;
use crate::sessions::Sessions;

/// Time for a client to send the head of a request. Ours.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Longest head of a request. Ours.
const HEAD: usize = 64 << 10;
/// Time for requests to end when the server stops. Ours.
const GRACE: Duration = Duration::from_secs(2);

/// What a server is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens; port 0 for a free one.
    pub listen: SocketAddr,
    /// The folder of results, which is made if it is missing.
    pub folder: PathBuf,
    /// Folders of recordings, besides the uploaded ones.
    pub traces: Vec<PathBuf>,
    /// The token that every request needs; required beyond loopback.
    pub token: Option<String>,
    /// Addresses of running commands that may be watched, besides those of this machine.
    pub attach: Vec<Address>,
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The folder.
    #[error("{folder}: expected a folder of results that can be read: {error}", folder = folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        #[source]
        error: std::io::Error,
    },
    /// The address.
    #[error("cannot listen at {address}: {error}; choose another port with --listen, or 0 for a free one")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        #[source]
        error: std::io::Error,
    },
    /// An address that others reach, without a token.
    #[error("{0} can be reached from other machines: expected a token of 16 characters or more")]
    NoToken(SocketAddr),
    /// The runtime.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// A running server. It stops when this is dropped, and its runs with it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    token: Option<String>,
    sessions: Arc<Sessions>,
    stop: CancellationToken,
    tasks: TaskTracker,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    /// Starts a server, and returns when it listens.
    ///
    /// # Errors
    ///
    /// If it cannot listen, or the folder cannot be read, or it would be open to other machines.
    pub fn start(options: Options) -> Result<Self, LabError> {
        let Options { listen, folder, mut traces, token, attach } = options;
        if !listen.ip().is_loopback() && token.as_ref().is_none_or(|token| token.len() < 16) {
            return Err(LabError::NoToken(listen));
        }
        let failed = |error| LabError::Folder { folder: folder.clone(), error };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let root = Root::new(&folder).map_err(failed)?;
        std::fs::read_dir(root.path()).map_err(failed)?;
        traces.insert(0, root.path().join(UPLOADED));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .thread_name("lab")
            .build()
            .map_err(LabError::Thread)?;
        let refused = |error| LabError::Listen { address: listen, error };
        let listener = runtime.block_on(TcpListener::bind(listen)).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let sessions = Arc::new(Sessions::default());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let lab = Arc::new(Lab {
            gate: Gate::new(address, token.clone()),
            root,
            shown: folder.display().to_string(),
            traces,
            attach,
            sessions: Arc::clone(&sessions),
            workers: workers(),
            tasks: tasks.clone(),
        });
        runtime.spawn(accept(listener, lab.router(), stop.clone(), tasks.clone()));
        Ok(Self { address, token, sessions, stop, tasks, runtime: Some(runtime) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The page's address, with the token if one is needed. Of a server at all addresses, one of this machine's.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(outgoing(address.ip()));
        }
        match &self.token {
            None => format!("http://{address}/"),
            Some(token) => format!("http://{address}/?token={token}"),
        }
    }
}

/// The address of this machine towards others; that of loopback if it has none. Nothing is sent.
fn outgoing(all: IpAddr) -> IpAddr {
    // Of a documentation's network (RFC 5737, RFC 3849), to which only the default route leads.
    let (other, own): (IpAddr, IpAddr) = match all {
        IpAddr::V4(_) => (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(_) => (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(), Ipv6Addr::LOCALHOST.into()),
    };
    let socket = UdpSocket::bind((all, 0)).and_then(|socket| {
        socket.connect((other, 9))?;
        socket.local_addr()
    });
    socket.map_or(own, |address| address.ip())
}

impl Drop for Server {
    fn drop(&mut self) {
        self.sessions.end();
        self.stop.cancel();
        self.tasks.close();
        if let Some(runtime) = self.runtime.take() {
            // Connections that do not end by then are cut off.
            let _ = runtime.block_on(async { tokio::time::timeout(GRACE, self.tasks.wait()).await });
            runtime.shutdown_timeout(GRACE);
        }
    }
}

async fn accept(listener: TcpListener, router: Router, stop: CancellationToken, tasks: TaskTracker) {
    let all = Arc::new(Semaphore::new(limits::CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else {
            // Out of files, mostly: others close theirs.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&all).try_acquire_owned() else { continue };
        let (router, stop) = (router.clone(), stop.clone());
        tasks.spawn(async move {
            serve(stream, router, &stop).await;
            drop(permit);
        });
    }
}

async fn serve(stream: TcpStream, router: Router, stop: &CancellationToken) {
    // Without it small messages wait for acknowledgements; it cannot fail on a connected socket that matters.
    let _ = stream.set_nodelay(true);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // A connection that ends with an error ends: its client knows.
    let _ = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}
