//! Where radio information comes from: the emulator, a recorded run, lines of JSON, a base station.
//!
//! A source runs on a thread of its own and passes [`Update`]s to the server. Numbers of cells and users are the source's own; the
//! server gives each source numbers of its own in what it publishes, and identifies users across sources by their addresses.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use ranpace_rnis::update::{Bearer, BearerRates, Cell, Signal, Slot, Strength, Update, User};

mod address;
pub mod lines;
pub mod replay;
pub mod srsran;
#[cfg(test)]
mod tests;
mod times;

pub use address::{Address, NotAnAddress};
pub use lines::Lines;
pub use replay::Replay;
pub use srsran::{Srsran, SrsranCell};

/// Longest wait before `stop` is looked at.
const PAUSE: Duration = Duration::from_millis(50);
/// Time before a lost connection is tried again. Ours.
const RETRY: Duration = Duration::from_millis(500);

/// A source of radio information.
pub trait Source: Send {
    /// Passes what comes to `updates`, until `stop` is set or the source ends. Waits are short enough that `stop` is obeyed within a
    /// tenth of a second.
    ///
    /// # Errors
    ///
    /// If the source cannot be opened, or fails for good. A bad message is counted and left out, it ends nothing.
    fn run(&mut self, updates: &mut dyn FnMut(Update), stop: &AtomicBool) -> Result<(), SourceError>;

    /// What it counts, for another thread to read while it runs.
    fn counters(&self) -> Arc<Counters>;

    /// Messages that were left out because they could not be read.
    fn left_out(&self) -> u64 {
        self.counters().left_out()
    }
}

/// A source and its name.
pub struct NamedSource {
    /// Its name, in metrics and the log.
    pub name: String,
    /// The source.
    pub source: Box<dyn Source>,
}

/// Counters of a source.
#[derive(Debug, Default)]
pub struct Counters {
    read: AtomicU64,
    left_out: AtomicU64,
    missed: AtomicU64,
    connected: AtomicBool,
    complaint: Mutex<String>,
}

impl Counters {
    /// Messages read, those that were left out included.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Messages that were left out because they could not be read.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Messages that the other side left out because we were too slow, as far as it says so.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Whether the source is connected, or its file open.
    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// The latest reason why a message was left out or a connection ended; empty if there was none.
    pub fn complaint(&self) -> String {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count_read(&self) {
        self.read.fetch_add(1, Ordering::Relaxed);
    }

    fn leave_out(&self, why: &impl ToString) {
        self.left_out.fetch_add(1, Ordering::Relaxed);
        self.complain(why);
    }

    fn complain(&self, why: &impl ToString) {
        *self.complaint.lock().unwrap_or_else(PoisonError::into_inner) = why.to_string();
    }

    fn set_missed(&self, missed: u64) {
        self.missed.store(missed, Ordering::Relaxed);
    }

    fn set_connected(&self, is: bool) {
        self.connected.store(is, Ordering::Relaxed);
    }
}

/// Waits, but not longer than until `stop` is set; returns whether it is.
fn wait(time: Duration, stop: &AtomicBool) -> bool {
    let until = Instant::now() + time;
    loop {
        if stop.load(Ordering::Relaxed) {
            return true;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(left.min(PAUSE));
    }
}

/// Why a source ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// It could not be read.
    #[error("{name}: {error}")]
    Io {
        /// The file or address.
        name: String,
        /// The system's reason.
        #[source]
        error: std::io::Error,
    },
    /// The system has no monotonic clock.
    #[error("the monotonic clock: {0}")]
    Clock(#[from] nix::Error),
    /// A recording from which nothing can be played.
    #[error("{name}: {why}")]
    Recording {
        /// The file.
        name: String,
        /// What is wrong, and what was expected.
        why: String,
    },
}
