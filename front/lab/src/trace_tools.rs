//! Tools for traces apart from running them: inspecting a file, drawing it, generating one from a model, from a log of rates or
//! from another one, and writing it.
//!
//! A trace is a list of delivery opportunities ([`Trace`]). Every conversion from rates to opportunities counts 1500 B (12 kbit)
//! for each, as is usual for these files.

mod edit;
mod figures;
mod inspect;
mod log_format;
mod logs;
mod made;
mod output;
mod picture;
mod rates;
mod times;

use std::io::ErrorKind;
use std::path::PathBuf;

use ranpace_link::{Trace, TraceError};

use crate::TraceLoadError;
use crate::plot::PlotError;

pub use edit::{cut, evened, scaled};
pub use figures::TraceFigures;
pub use inspect::{Packing, TraceFile, inspect, inspect_named};
pub use log_format::{Clock, LogError, LogFormat, RateUnit, TimeUnit};
pub use logs::{guess, read_log, read_log_text};
pub use made::constant;
pub use output::{OutputFile, write_mahimahi};
pub use picture::Picture;
pub use rates::{RateSeries, counts, write_csv};

/// Bits of one opportunity: a packet of 1500 B.
pub(crate) const BITS: u64 = 12_000;

/// Why work on a trace was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The gzipped file is truncated.
    #[error(
        "{path}: after line {line}: the gzip data is cut off or damaged ({source}); fetch the file again"
    )]
    Gzip {
        /// The file.
        path: PathBuf,
        /// Lines that could still be read.
        line: u64,
        /// The decoder's error.
        source: std::io::Error,
    },
    /// The file is not a trace.
    #[error("{path}: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The fault and its line.
        source: TraceError,
    },
    /// The file is not a log of rates.
    #[error("{path}: {source}")]
    Log {
        /// The file.
        path: PathBuf,
        /// The fault and its line.
        source: LogError,
    },
    /// The name of a trace means nothing.
    #[error(transparent)]
    Name(#[from] TraceLoadError),
    /// The requested edit leaves an empty trace.
    #[error("{0}")]
    Nothing(String),
    /// The file could not be written.
    #[error("cannot write {path}: {source}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A plot could not be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl ToolError {
    /// Returns whether it is a fault of the machine or of ours, rather than something that the user can correct in the command or in the
    /// file.
    pub fn is_ours(&self) -> bool {
        match self {
            Self::Unreadable { source, .. } | Self::Unwritable { source, .. } => !matches!(
                source.kind(),
                ErrorKind::NotFound
                    | ErrorKind::PermissionDenied
                    | ErrorKind::IsADirectory
                    | ErrorKind::NotADirectory
                    | ErrorKind::ReadOnlyFilesystem
                    | ErrorKind::InvalidInput
                    | ErrorKind::InvalidFilename
                    | ErrorKind::AlreadyExists
            ),
            Self::Plot(_) => true,
            _ => false,
        }
    }
}

/// A trace from its milliseconds and counts, for building it step by step.
fn collect(counts: impl IntoIterator<Item = (u64, u64)>) -> Result<Trace, TraceError> {
    // Counts that overflow exceed the limit of a trace, and are refused as such.
    Trace::from_counts(counts.into_iter().map(|(ms, count)| (ms, u32::try_from(count).unwrap_or(u32::MAX))))
}
