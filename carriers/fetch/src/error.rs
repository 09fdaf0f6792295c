//! Why a download failed.

use std::io;
use std::time::Duration;

use ranpace_cc::AlgorithmError;
use ranpace_noq::reports::Unreported;

use crate::answer::AnswerError;
use crate::output::OutputError;
use crate::trust::TrustError;

/// Why a download failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The host has no address.
    #[error("no address of {host}: {error}")]
    Address {
        /// The host.
        host: String,
        /// The resolver's error.
        error: io::Error,
    },
    /// No connection.
    #[error("no connection to {to}: {why}")]
    Connection {
        /// Address and port.
        to: String,
        /// The fault.
        why: String,
    },
    /// Nothing came for too long.
    #[error("nothing came from the server for {} s", .0.as_secs_f64())]
    Silence(Duration),
    /// The connection broke, or the server broke the rules of HTTP.
    #[error("the download broke off after {received} bytes: {why}")]
    Broken {
        /// Bytes of the body that had come.
        received: u64,
        /// The fault.
        why: String,
    },
    /// The server's answer is of no use.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The body has another length than was announced.
    #[error("the server announced {announced} bytes and sent {received}")]
    Length {
        /// What it announced.
        announced: u64,
        /// What came.
        received: u64,
    },
    /// Nothing tells where the body ends.
    #[error(
        "the server announces no length, and the connection's end may be anything: a file would not be known to be whole"
    )]
    NoLength,
    /// The content is not what the server has the digest of.
    #[error("the content's SHA-256 is {found}, but the server announced {announced}; what came is removed")]
    Digest {
        /// What the server announced.
        announced: String,
        /// What came.
        found: String,
    },
    /// The server keeps refusing the range that it said it would give.
    #[error("the server answers neither with the rest of the file nor with all of it")]
    NoRest,
    /// The content cannot be kept.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Certificates cannot be checked as asked.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// There is no such control.
    #[error(transparent)]
    Control(#[from] AlgorithmError),
    /// The control's receiver measures nothing.
    #[error(transparent)]
    Unreported(#[from] Unreported),
    /// The kernel has no such congestion control for this user.
    #[error(
        "the kernel refuses the congestion control {name}: {error}; /proc/sys/net/ipv4/tcp_available_congestion_control lists those that it has, \
         tcp_allowed_congestion_control those that everybody may use"
    )]
    KernelControl {
        /// Its name.
        name: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// The options do not fit the URL.
    #[error("{0}")]
    Options(String),
}
