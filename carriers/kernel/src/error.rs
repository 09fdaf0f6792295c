//! Why something could not be done in the kernel.

use std::io;
use std::path::PathBuf;

/// What went wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The text of an algorithm cannot be read.
    #[error(transparent)]
    Algorithm(ranpace_cc::AlgorithmError),
    /// An option has a value that it cannot have.
    #[error(transparent)]
    Option(ranpace_cc::OptionError),
    /// The algorithm is none of the kernel's.
    #[error("{text:?}: the kernel has no such control; there are: {all}")]
    NotInKernel {
        /// What was asked for.
        text: String,
        /// The controls that there are.
        all: String,
    },
    /// The option exists, but not in the kernel.
    #[error("{text:?}: option {key} is not in the kernel: {why}")]
    OptionNotInKernel {
        /// What was asked for.
        text: String,
        /// The option.
        key: &'static str,
        /// Why.
        why: &'static str,
    },
    /// The text of the options does not fit.
    #[error("{text:?}: {length} bytes of options; the kernel's copy holds {most}")]
    TooLong {
        /// What was asked for.
        text: String,
        /// Its length.
        length: usize,
        /// The most there may be.
        most: usize,
    },
    /// The name of a control is not one that the kernel takes.
    #[error(
        "{0:?} cannot be the name of a control: 1 to 15 letters, digits, '_' and '.', as the kernel asks"
    )]
    BadName(String),
    /// There is one of this name.
    #[error(
        "a control {0:?} is loaded already; `ranpace kernel unload {0}` removes it, --name gives this one another name"
    )]
    Exists(String),
    /// There is none of this name.
    #[error("no control {name:?} was loaded by `ranpace kernel load`; loaded are: {all}")]
    NotLoaded {
        /// What was asked for.
        name: String,
        /// What there is.
        all: String,
    },
    /// The control does not take what it was to be given.
    #[error("control {name:?} takes no {what}")]
    TakesNone {
        /// The control.
        name: String,
        /// What it was to be given.
        what: &'static str,
    },
    /// The kernel has no memory left for something.
    #[error("the kernel has no memory for {0}")]
    NoRoom(&'static str),
    /// Another version loaded it.
    #[error(
        "control {0:?} was loaded by another version of ranpace, whose settings lie elsewhere; unload it and load it again"
    )]
    OtherVersion(String),
    /// It takes no radio information.
    #[error("control {0:?} takes no radio information; dcic and cqic-s do")]
    NoRadio(String),
    /// A prefix that cannot be read.
    #[error(
        "{0:?} is not a prefix; expected an address with the bits that count, such as 192.0.2.0/24 or 2001:db8::/32"
    )]
    BadPrefix(String),
    /// Rights are missing.
    #[error("{what} needs {needed}; run it as root, or give it these capabilities")]
    Rights {
        /// What was to be done.
        what: String,
        /// The capabilities.
        needed: &'static str,
    },
    /// No control-group file system of version 2.
    #[error(
        "no cgroup file system of version 2 is mounted; `mount -t cgroup2 none /sys/fs/cgroup` mounts it"
    )]
    NoCgroup2,
    /// The kernel refused.
    #[error("the kernel refused to {what}: {source}{hint}")]
    Bpf {
        /// What was to be done.
        what: String,
        /// What libbpf says.
        source: libbpf_rs::Error,
        /// What to do about it, or empty.
        hint: &'static str,
    },
    /// A file.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The program of the control does not have what the loader looks for. A mistake of ours.
    #[error("the programs have no {0}; this is a mistake in ranpace")]
    Missing(String),
}

/// Capabilities that programs of these kinds need (Linux 5.8 and later).
pub const CAPABILITIES: &str = "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN";

impl KernelError {
    /// What libbpf says about an attempt.
    pub(crate) fn bpf(what: impl Into<String>, source: libbpf_rs::Error) -> Self {
        let what = what.into();
        match source.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Self::Rights { what, needed: CAPABILITIES },
            _ => Self::refused(what, source),
        }
    }

    /// The same where rights are not the reason.
    pub(crate) fn refused(what: impl Into<String>, source: libbpf_rs::Error) -> Self {
        let hint = "; `ranpace kernel check` says what this kernel offers";
        Self::Bpf { what: what.into(), source, hint }
    }

    /// What the system says about the files of a loaded control, which are root's.
    pub(crate) fn pin(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Rights {
                what: format!("to {what} {}", path.display()),
                needed: "CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_DAC_OVERRIDE",
            },
            _ => Self::Io { what, path, source },
        }
    }

    /// What the system says about a file.
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
