//! Ctrl-C (and termination). Within a second it ends the command, or the command prints why it goes on; a second Ctrl-C ends it at once.
//!
//! While nothing can be lost, before the work begins and after its results are on the disk, the first one ends the command. In between it
//! asks the work to stop and to keep its results so far.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::output;

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);
/// Stage of the command, which decides what Ctrl-C does.
static STAGE: AtomicU8 = AtomicU8::new(WORKING);
/// See [`at_exit`].
static LAST: OnceLock<fn()> = OnceLock::new();

/// Nothing has been measured yet.
const BEGINNING: u8 = 0;
/// There is something to lose.
const WORKING: u8 = 1;
/// Everything that was measured is on the disk.
const KEPT: u8 = 2;

/// Time after which the command prints that it is stopping.
const PATIENCE: Duration = Duration::from_millis(900);

/// Starts listening to Ctrl-C (and termination), and returns the flag it sets. Where the system has no such signals, the
/// flag stays down and Ctrl-C ends the process as usual.
pub fn flag() -> &'static AtomicBool {
    let listening = ctrlc::set_handler(|| {
        // The stage at the time of Ctrl-C: a command that was stopped in its work still writes its report.
        let stage = STAGE.load(Ordering::SeqCst);
        if STOP.swap(true, Ordering::SeqCst) || stage == BEGINNING {
            leave();
        }
        thread::spawn(move || {
            thread::sleep(PATIENCE);
            match stage {
                KEPT => leave(),
                // The live screen shows it itself.
                _ if LAST.get().is_some() => {}
                _ => output::say("stopping and keeping the results so far; Ctrl-C again ends it at once"),
            }
        });
    });
    // It can fail only if there is a handler already, or the system has none; Ctrl-C then ends the process as before.
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
        KEPT => output::say("ranpace: stopped; the results are kept, but the report is incomplete"),
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

/// Returns whether Ctrl-C was pressed.
#[cfg(target_os = "linux")]
pub fn is_set() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Registers a function that runs before the second Ctrl-C ends the process.
#[cfg(target_os = "linux")]
pub fn at_exit(last: fn()) {
    // The first one stays.
    let _ = LAST.set(last);
}
