//! Ctrl-C (and termination). Within a second it has ended the command, or is told why not yet; a second one ends it at once.
//!
//! Where nothing can be lost, before the work has begun and when its results are on the disk, the first one ends the command.
//! In between it asks the work to stop and to keep what it has.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::output;

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);
/// What Ctrl-C meets.
static STAGE: AtomicU8 = AtomicU8::new(WORKING);
/// See [`at_exit`].
static LAST: OnceLock<fn()> = OnceLock::new();

/// Nothing has been measured yet.
const BEGINNING: u8 = 0;
/// There is something to lose.
const WORKING: u8 = 1;
/// Everything that was measured is on the disk.
const KEPT: u8 = 2;

/// After this time it is said that it was heard.
const PATIENCE: Duration = Duration::from_millis(900);

/// Starts listening to Ctrl-C (and termination), and returns the flag it sets. Where the system has no such signals, the
/// flag stays down and Ctrl-C ends the process as usual.
pub fn flag() -> &'static AtomicBool {
    let listening = ctrlc::set_handler(|| {
        // As it was at Ctrl-C: what was stopped in its work has its report still written.
        let stage = STAGE.load(Ordering::SeqCst);
        if STOP.swap(true, Ordering::SeqCst) || stage == BEGINNING {
            leave();
        }
        thread::spawn(move || {
            thread::sleep(PATIENCE);
            match stage {
                KEPT => leave(),
                // What draws on the terminal says so itself.
                _ if LAST.get().is_some() => {}
                _ => output::say("stopping, and keeping what was measured; Ctrl-C again gives it up"),
            }
        });
    });
    // It can only fail if a handler is there already, or the system has none; both leave us as we were.
    drop(listening);
    &STOP
}

/// Ends the process.
fn leave() -> ! {
    if let Some(last) = LAST.get() {
        last();
    }
    match STAGE.load(Ordering::SeqCst) {
        BEGINNING => output::say("ranpace: stopped before anything was played"),
        KEPT => output::say("ranpace: stopped; what was measured is kept, the report is not complete"),
        _ => {}
    }
    std::process::exit(130)
}

/// As [`flag`], before there is anything to lose: until [`work`], Ctrl-C ends the command at once.
pub fn begin() -> &'static AtomicBool {
    STAGE.store(BEGINNING, Ordering::SeqCst);
    flag()
}

/// From here on there is something to lose.
pub fn work() {
    STAGE.store(WORKING, Ordering::SeqCst);
}

/// Everything that was measured is on the disk: what is still to be done can be done again.
pub fn kept() {
    STAGE.store(KEPT, Ordering::SeqCst);
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
