//! Why a proxy cannot work.

use std::io;
use std::path::PathBuf;

/// Why a proxy cannot be started, or has stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The configuration or the system has to be changed.
    #[error("{0}")]
    Setup(String),
    /// Another proxy has the devices of this name.
    #[error(
        "a proxy of the name {name:?} runs already in this network namespace; `name`, `number` and `port` of another must differ"
    )]
    Running {
        /// The name.
        name: String,
    },
    /// A program of the system failed.
    #[error("`{command}` failed: {reason}")]
    Command {
        /// The program with its arguments.
        command: String,
        /// What it said.
        reason: String,
    },
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was attempted.
        what: String,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// No proxy answers at a control socket.
    #[error("no proxy answers at {}: {error}; is `ranpace proxy` running, and is this the `socket` of its [control]?", socket.display())]
    NotRunning {
        /// The socket.
        socket: PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
}

impl ProxyError {
    /// For `map_err`: the system refused `what`.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |error| Self::System { what, error: error.into() }
    }
}
