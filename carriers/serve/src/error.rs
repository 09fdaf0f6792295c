//! Why a server does not start.

use std::io;
use std::net::SocketAddr;

use ranpace_rnisd::client::ClientError;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The folder cannot be served, or what is recorded cannot be written.
    #[error("{}: {error}", folder.display())]
    Folder {
        /// The folder, or the file.
        folder: std::path::PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// Nobody can listen at an address.
    #[error("cannot listen at {address} ({what}): {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// For what.
        what: &'static str,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// The kernel does not have a control, or this process may not use it.
    #[error(
        "the kernel has no congestion control {name:?} for this process ({error}): /proc/sys/net/ipv4/tcp_available_congestion_control \
         lists those that there are, tcp_allowed_congestion_control those that need no root"
    )]
    Control {
        /// The control.
        name: String,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// A certificate, or a folder.
    #[error("{0}")]
    Setup(String),
    /// The feed.
    #[error("the feed: {0}")]
    Feed(#[from] ClientError),
    /// A thread, the runtime, or a socket.
    #[error("the system gives no thread or no socket: {0}")]
    Thread(#[source] io::Error),
}
