//! Options and helpers that several commands share: where results go, where traces are, how many threads.

use std::path::{Path, PathBuf};

use ranpace_lab::{Store, StoreError, TraceLibrary};
pub use ranpace_lab::{folder_name, trace_folders};

use crate::failure::Failure;
pub use crate::output::say;

/// Options of every command that plays scenarios.
#[derive(clap::Args)]
pub struct Common {
    /// Folder for results and reports
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub threads: usize,
    /// Folder of recorded traces, searched after the working directory [env: RANPACE_TRACES] [default: traces]
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
}

impl Common {
    /// The results folder of this name. If it cannot be created or written, the user has to act, unless the disk is full.
    pub fn store(&self, name: &str) -> Result<Store, Failure> {
        Store::open(&self.out, name).map_err(|error| match error {
            StoreError::DiskFull { .. } => Failure::ours(error),
            _ => Failure::asked(error),
        })
    }

    /// The library that finds traces by name.
    pub fn traces(&self) -> TraceLibrary {
        TraceLibrary::new(trace_folders(self.traces.as_ref()))
    }
}

/// The command that was typed, as it can be pasted again.
pub fn command_line() -> String {
    let quoted = |argument: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    };
    let arguments =
        std::env::args_os().skip(1).map(|argument| quoted(argument.to_string_lossy().into_owned()));
    std::iter::once("ranpace".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Reads a scenario file.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::asked(format!(
            "cannot read the scenario {}: {error}; docs/scenarios.md shows how to write one",
            path.display()
        ))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        Failure::asked(format!(
            "{}:{line}: expected a scenario in UTF-8 text, found other bytes",
            path.display()
        ))
    })
}
