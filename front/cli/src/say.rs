//! Messages on standard error.

use std::io::{self, Write as _};

/// Prints a message to standard error. Errors of writing are ignored, because there is no other place to report them.
pub fn say(text: &str) {
    // In one piece, so that lines of several processes do not mix.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}
