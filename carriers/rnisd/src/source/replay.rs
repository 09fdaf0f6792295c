//! A recorded run, played by the clock: a file of lines (`ranpace run --rnis-record FILE`, or what a base station wrote), whose
//! first time is the beginning. Each line is passed on when its time has come, as measured then.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ranpace_rnis::lines::{LONGEST, Reader};
use ranpace_rnis::{Event, EventKind};
use ranpace_units::{Span, Time};

use super::{Counters, PAUSE, Source, SourceError, Update, wait};
use crate::clock::now;

/// Plays a recording.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    loops: bool,
    counters: Arc<Counters>,
}

impl Replay {
    /// Plays this file once.
    pub fn once(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), loops: false, counters: Arc::default() }
    }

    /// Plays it again and again. Between two rounds all users detach.
    pub fn looped(path: impl Into<PathBuf>) -> Self {
        Self { loops: true, ..Self::once(path) }
    }

    fn failed(&self, error: std::io::Error) -> SourceError {
        SourceError::Io { name: self.path.display().to_string(), error }
    }
}

/// One round of a recording.
struct Round {
    /// The recording's time at the beginning, and the server's.
    began: Option<(u64, Time)>,
    /// The cells that users are in.
    served: std::collections::BTreeMap<u32, u16>,
    used: u64,
}

impl Round {
    /// Waits until the time of a line has come, and returns it.
    fn time(&mut self, ns: Option<u64>, stop: &AtomicBool) -> Time {
        // The source has read the clock before.
        let arrived = now().unwrap_or(Time::ZERO);
        let Some(ns) = ns else { return arrived };
        let (first, began) = *self.began.get_or_insert((ns, arrived));
        let due = began + Span::from_nanos(ns.saturating_sub(first));
        let wanted = Duration::from_nanos(due.since(arrived).as_nanos());
        if !wanted.is_zero() {
            wait(wanted, stop);
        }
        due
    }

    fn note(&mut self, update: &Update) {
        self.used += 1;
        if let Update::Event(Event { cell, user, kind, .. }) = update {
            match kind {
                EventKind::Attached => drop(self.served.insert(*user, *cell)),
                EventKind::Detached => drop(self.served.remove(user)),
                _ => {}
            }
        }
    }
}

impl Source for Replay {
    fn run(&mut self, updates: &mut dyn FnMut(Update), stop: &AtomicBool) -> Result<(), SourceError> {
        let counters = Arc::clone(&self.counters);
        let mut reader = Reader::default();
        now()?;
        while !stop.load(Ordering::Relaxed) {
            let file = File::open(&self.path).map_err(|error| self.failed(error))?;
            counters.set_connected(true);
            let round =
                play(file, &mut reader, &counters, updates, stop).map_err(|error| self.failed(error))?;
            if round.used == 0 && !stop.load(Ordering::Relaxed) {
                counters.set_connected(false);
                return Err(nothing(&self.path, &counters));
            }
            let time = now()?;
            for (user, cell) in round.served {
                updates(Update::Event(Event { time, cell, user, kind: EventKind::Detached }));
            }
            // A recording of a moment must not be played without a pause.
            if !self.loops || wait(PAUSE, stop) {
                break;
            }
        }
        counters.set_connected(false);
        Ok(())
    }

    fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }
}

fn nothing(path: &Path, counters: &Counters) -> SourceError {
    let why = match counters.complaint() {
        complaint if complaint.is_empty() => {
            "no lines; expected those of `ranpace run --rnis-record`".to_owned()
        }
        complaint => format!("no line can be used: {complaint}"),
    };
    SourceError::Recording { name: path.display().to_string(), why }
}

/// Plays the file from its beginning to its end.
fn play(
    file: File,
    reader: &mut Reader,
    counters: &Counters,
    updates: &mut dyn FnMut(Update),
    stop: &AtomicBool,
) -> std::io::Result<Round> {
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut round = Round { began: None, served: std::collections::BTreeMap::new(), used: 0 };
    let mut line = Vec::new();
    reader.restart();
    while !stop.load(Ordering::Relaxed) {
        line.clear();
        if file.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        counters.count_read();
        if line.len() > LONGEST {
            counters.leave_out(&format!("a line of more than {LONGEST} bytes"));
            file.skip_until(b'\n')?;
            continue;
        }
        let mut said = Vec::new();
        let read = reader.read(&line, &mut |_, ns| round.time(ns, stop), &mut |update| said.push(update));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        for update in said {
            round.note(&update);
            updates(update);
        }
        match read {
            Ok(()) => counters.set_missed(reader.missed()),
            Err(error) => counters.leave_out(&error),
        }
    }
    Ok(round)
}
