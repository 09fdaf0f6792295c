//! Why results were not written or read.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::columnar::ColumnarError;

/// Why results were not written or read. Completed results are still there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not allowed.
    #[error(
        "no permission to {what} {path}; change its owner or mode, or choose another folder for the results"
    )]
    Permission {
        /// "create", "write" or "read".
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No space left, or the user's quota is exceeded.
    #[error(
        "disk full while writing {path}; results written before are complete and kept: free some space and run the same command again to go on"
    )]
    DiskFull {
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Something is in the way.
    #[error(
        "cannot create the folder {path}: a file of that name, or of one of its parents, is in the way; move it or choose another folder for the results"
    )]
    InTheWay {
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The process has too many open files.
    #[error(
        "cannot {what} {path}: too many open files; `ulimit -n` shows how many there may be, `ulimit -n 65536` raises it"
    )]
    TooManyFiles {
        /// "create", "write" or "read".
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file system is read-only.
    #[error("cannot write {path}: the file system is read-only; choose another folder for the results")]
    ReadOnly {
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot {what} {path}: {source}; results written before are complete and kept")]
    Io {
        /// "create", "write" or "read".
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A table could not be made or read.
    #[error("{path}: {source}")]
    Columnar {
        /// Where.
        path: PathBuf,
        /// The fault.
        source: ColumnarError,
    },
    /// A summary could not be made.
    #[error("{path}: {source}; this is a bug, please report it")]
    Json {
        /// Where.
        path: PathBuf,
        /// The library's error.
        source: serde_json::Error,
    },
    /// A name that would leave the results folder.
    #[error("{name:?} cannot name a folder of results: expected a name without \"/\", such as \"drive\"")]
    Name {
        /// The name.
        name: String,
    },
}

/// Returns whether a process, or the machine, has reached its limit of open files.
pub(crate) fn is_too_many_files(error: &io::Error) -> bool {
    // EMFILE and ENFILE, which have no `ErrorKind`; the same numbers on all Unix systems.
    cfg!(unix) && matches!(error.raw_os_error(), Some(24 | 23))
}

impl StoreError {
    pub(super) fn of(what: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            _ if is_too_many_files(&source) => Self::TooManyFiles { what, path, source },
            ErrorKind::PermissionDenied => Self::Permission { what, path, source },
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull { path, source },
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path, source },
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists if what == "create" => {
                Self::InTheWay { path, source }
            }
            _ => Self::Io { what, path, source },
        }
    }
}
