//! A server on loopback with a source of lines, a client that sends any bytes, and a receiver of callbacks.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(clippy::print_stdout, reason = "a test says what it skips")]

pub mod bed;
pub mod http;
pub mod namespace;
pub mod receiver;

use std::time::{Duration, Instant};

/// How long something may take that happens at once on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until there is a result.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
