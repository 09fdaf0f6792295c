//! A progress bar on stderr, only on a terminal and for work that takes over a second.

use std::sync::Once;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes longer than this is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Progress of work in steps; may be shared between threads. Dropping it clears the bar.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    shown: Once,
}

impl Progress {
    /// `total` steps of `what`, such as "runs".
    pub fn new(total: u64, what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        // An invalid template would only affect the appearance.
        let style = ProgressStyle::with_template("{bar:32} {pos}/{len} {prefix}, {eta} left  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸ "));
        bar.set_prefix(what.to_owned());
        Self { bar, since: Instant::now(), shown: Once::new() }
    }

    /// `steps` more are done.
    pub fn advance(&self, steps: u64) {
        self.show();
        self.bar.inc(steps);
    }

    /// Sets the number of completed steps, if they are not counted one by one.
    pub fn set(&self, done: u64) {
        self.show();
        self.bar.set_position(done);
    }

    /// The current activity.
    pub fn note(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }

    /// Prints a line above the bar (to stderr), such as a warning.
    pub fn line(&self, text: &str) {
        self.bar.suspend(|| {
            use std::io::Write as _;
            // If stderr is closed, nobody can be notified.
            let _ = writeln!(std::io::stderr(), "{text}");
        });
    }

    /// Steps done so far.
    pub fn done(&self) -> u64 {
        self.bar.position()
    }

    /// Starts drawing if the work has taken long enough. The bar itself draws nothing unless stderr is a terminal.
    fn show(&self) {
        if self.since.elapsed() >= PATIENCE {
            self.shown.call_once(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_work_shows_no_progress_bar() {
        let progress = Progress::new(3, "runs");
        progress.advance(2);
        progress.note("cubic");
        assert!(!progress.shown.is_completed());
        assert_eq!(progress.done(), 2);
        progress.set(3);
        assert_eq!(progress.done(), 3);
    }
}
