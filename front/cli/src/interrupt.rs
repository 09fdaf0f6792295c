//! Ctrl-C: the first one asks the work to stop and keep what it has, the second one ends the process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);
/// See [`at_exit`].
static LAST: OnceLock<fn()> = OnceLock::new();

/// Starts listening to Ctrl-C (and termination), and returns the flag it sets. Where the system has no such signals, the
/// flag stays down and Ctrl-C ends the process as usual.
pub fn flag() -> &'static AtomicBool {
    let listening = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            if let Some(last) = LAST.get() {
                last();
            }
            std::process::exit(130);
        }
    });
    // It can only fail if a handler is there already, or the system has none; both leave us as we were.
    drop(listening);
    &STOP
}

/// Whether somebody wants it to stop.
#[cfg(target_os = "linux")]
pub fn is_set() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// This is done before the second Ctrl-C ends the process.
#[cfg(target_os = "linux")]
pub fn at_exit(last: fn()) {
    // The first one stays.
    let _ = LAST.set(last);
}
