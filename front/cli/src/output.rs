//! Standard output that does not panic when its reader has gone (`ranpace list cc | head -1`).

use std::io::{self, ErrorKind, Write as _};

use crate::failure::Failure;

/// Writes a text and a line's end.
pub fn line(text: impl AsRef<str>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::ours(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a value as one JSON document.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).map_err(Failure::ours)?)
}
