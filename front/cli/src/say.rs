//! What is said on standard error.

use std::io::{self, Write as _};

/// Says something to the user that is not the result: on standard error. If that cannot be written, there is nobody to tell.
pub fn say(text: &str) {
    // In one piece, so that lines of several processes do not mix.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}
