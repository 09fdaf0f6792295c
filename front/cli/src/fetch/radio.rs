//! What this device's modem says, for the meters of the downloads that are under way.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ranpace_emulator::{HintLine, LONGEST_HINT_LINE};
use ranpace_fetch::Meters;

use crate::failure::Failure;
use crate::hint_source::{Look, Source};
use crate::output;

/// Most lines that cannot be read and are shown; further ones are counted.
const SHOWN: u64 = 3;

/// A feed of lines, for the meters.
pub struct Radio {
    source: Source,
    user: Option<String>,
    meters: Arc<Meters>,
}

/// A thread that reads the feed until this is dropped.
pub struct Listening {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Radio {
    /// Opens the feed.
    pub fn open(from: &Path, user: Option<String>, meters: Arc<Meters>) -> Result<Self, Failure> {
        Ok(Self { source: Source::named(from)?, user, meters })
    }

    /// Reads it on a thread.
    pub fn listen(mut self) -> Listening {
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let thread = thread::spawn(move || {
            let mut skipped = 0;
            while !ends.load(Ordering::Relaxed) {
                let (user, meters) = (self.user.as_deref(), &self.meters);
                match self.source.look(|line| take(line, user, meters, &mut skipped)) {
                    Ok(Look::Read | Look::WriterGone) => {}
                    Ok(Look::End) => break,
                    Err(error) => {
                        output::say(&format!("radio information has ended: {error}"));
                        break;
                    }
                }
            }
            if skipped > SHOWN {
                output::say(&format!("{skipped} lines of radio information could not be read"));
            }
        });
        Listening { over, thread: Some(thread) }
    }
}

fn take(line: Option<&[u8]>, user: Option<&str>, meters: &Meters, skipped: &mut u64) {
    let came = Instant::now();
    let read =
        line.ok_or_else(|| format!("expected at most {LONGEST_HINT_LINE} bytes")).and_then(HintLine::parse);
    match read {
        Ok(HintLine::Radio(line)) if user.is_none_or(|user| user == line.user) => meters.each(|meter| {
            if let Some(hint) = line.for_receivers(meter.time(came) - line.age) {
                meter.on_radio(&hint);
            }
        }),
        Ok(HintLine::Radio(_) | HintLine::Pep(_)) => {}
        Err(why) => {
            *skipped += 1;
            if *skipped <= SHOWN {
                output::say(&format!("a line of radio information is skipped: {why}"));
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }
}
