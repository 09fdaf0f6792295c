//! Writes to standard output and standard error. An error of writing does not end a command, so its results are kept in any case.
//!
//! A closed pipe (`ranpace list cc | head -1`, `2>&1 | true`) is ignored. Other errors of standard output, such as a full disk, are
//! reported at the end of the command, after its results are on the disk.

use std::io::{self, ErrorKind, Write as _};
use std::sync::Mutex;

use crate::failure::Failure;
pub use crate::say::say;

/// The first error of writing to standard output.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes a text and a line's end to standard output.
pub fn line(text: impl AsRef<str>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if let Err(error) = writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush())
        && error.kind() != ErrorKind::BrokenPipe
        && let Ok(mut lost) = LOST.lock()
    {
        lost.get_or_insert(error);
    }
    Ok(())
}

/// Writes a value as one JSON document to standard output.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).map_err(Failure::ours)?)
}

/// Ends a successful command: an error if something could not be written to standard output.
pub fn end() -> Result<(), Failure> {
    match LOST.lock().ok().and_then(|mut lost| lost.take()) {
        Some(error) => Err(Failure::ours(format!(
            "cannot write to standard output: {error}; results and reports were written nevertheless"
        ))),
        None => Ok(()),
    }
}
