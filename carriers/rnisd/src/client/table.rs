//! Hints from the shared table.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ranpace_phy::Direction;
use ranpace_rnis::feed::receiver::{AgedHint, ClockQuality};
use ranpace_rnis::shared_table::directory::{Directory, Identity};
use ranpace_rnis::{RadioHint, Timestamped};
use ranpace_units::{Span, Time};

use super::{ClientError, Wanted};
use crate::table::TableReader;

/// Between two looks for a table that is not there. Ours.
const RETRY: Duration = Duration::from_millis(100);

/// TTIs of the shortest mean, as in datagrams: [`Averaging::Smooth`](ranpace_rnis::Averaging::Smooth).
const SMOOTH: u64 = 8;

/// Reads a table, which may come and go.
pub struct TableHints {
    path: PathBuf,
    direction: Direction,
    period: Span,
    reader: Option<TableReader>,
    /// When to look for it again.
    retry: Instant,
    /// The last slot that was waited for.
    seen: Time,
    reports: u64,
    /// The slots up to which grants were told, by user, and the writer whose slots they are.
    told: HashMap<IpAddr, u64>,
    generation: u64,
    complaint: Option<String>,
    last_complaint: Option<String>,
}

impl TableHints {
    pub fn new(path: &Path, wanted: &Wanted) -> Self {
        Self {
            path: path.to_owned(),
            direction: wanted.direction,
            period: wanted.period,
            reader: None,
            retry: Instant::now(),
            seen: Time::ZERO,
            reports: 0,
            told: HashMap::new(),
            generation: 0,
            complaint: None,
            last_complaint: None,
        }
    }

    /// Opens the table, if it is time to look for it.
    fn refresh(&mut self) {
        let is_current =
            self.reader.as_ref().is_some_and(|reader| reader.table().is_some_and(|table| table.is_current()));
        if is_current || Instant::now() < self.retry {
            return;
        }
        self.retry = Instant::now() + RETRY;
        match TableReader::open(&self.path) {
            Ok(reader) => {
                (self.reader, self.seen, self.last_complaint) = (Some(reader), Time::ZERO, None);
                self.told.clear();
            }
            Err(error) => {
                self.reader = None;
                let why = error.to_string();
                if self.last_complaint.as_ref() != Some(&why) {
                    (self.complaint, self.last_complaint) = (Some(why.clone()), Some(why));
                }
            }
        }
    }

    pub fn wait(&mut self, at_most: Duration) -> Result<bool, ClientError> {
        let until = Instant::now() + at_most;
        loop {
            self.refresh();
            let left = until.saturating_duration_since(Instant::now());
            let last = |reader: &TableReader| reader.table().map(|table| table.last_slot_at());
            let Some((reader, last)) = self.reader.as_ref().and_then(|reader| Some((reader, last(reader)?)))
            else {
                if left.is_zero() {
                    return Ok(false);
                }
                std::thread::sleep(left.min(RETRY));
                continue;
            };
            if last != self.seen {
                self.seen = last;
                self.reports += 1;
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
            // A writer that ends wakes nobody.
            reader.wait(last, left.min(RETRY))?;
        }
    }

    pub fn hint(&mut self, user: IpAddr) -> Option<AgedHint> {
        let (direction, period) = (self.direction, self.period);
        let reader = self.reader.as_mut()?;
        let number = reader.user_at(user)?;
        let of = |ttis| reader.hint(number, direction, ttis);
        let mut hint = of(SMOOTH)?;
        let ttis = period.as_nanos() / hint.tti.as_nanos().max(1);
        if ttis > SMOOTH {
            hint = of(ttis)?;
        }
        Some(AgedHint { hint: Timestamped::new(hint, hint.measured_at), clock: ClockQuality::Same })
    }

    pub fn grants(&mut self, user: IpAddr, tell: &mut dyn FnMut(RadioHint)) {
        let Some(reader) = &mut self.reader else { return };
        let Some(number) = reader.user_at(user) else { return };
        let Some(table) = reader.table() else { return };
        let generation = table.generation();
        if self.generation != generation {
            // A writer after a crash: its slots may have begun anew.
            self.told.clear();
            self.generation = generation;
        }
        let after = self.told.get(&user).copied();
        let mut plausible = |hint: RadioHint| {
            if hint.info.is_plausible() {
                tell(hint);
            }
        };
        if let Some(last) = table.grants_after(number, self.direction, after, &mut plausible) {
            self.told.insert(user, last);
        }
    }

    pub fn users(&self) -> Vec<Identity> {
        let directory = self.reader.as_ref().and_then(TableReader::directory);
        directory.iter().flat_map(Directory::users).map(|(_, of)| of).collect()
    }

    pub fn reports(&self) -> u64 {
        self.reports
    }

    pub fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }
}
