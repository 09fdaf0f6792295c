//! Ctrl-C: the first one asks the work to stop and keep what it has, the second one ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// Starts listening to Ctrl-C (and termination), and returns the flag it sets. Where the system has no such signals, the
/// flag stays down and Ctrl-C ends the process as usual.
pub fn flag() -> &'static AtomicBool {
    let listening = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    // It can only fail if a handler is there already, or the system has none; both leave us as we were.
    drop(listening);
    &STOP
}
