//! What a running command says at a moment.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::protocol::{CellAbout, ColumnAbout, FlowAbout, LinkAbout, Subject, UserAbout};

/// Flows and users that are shown. Ours: more lines cannot be told apart.
pub const MOST: usize = 32;

/// What a source says at a moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// What it is.
    pub name: String,
    /// Its cells.
    pub cells: Vec<CellAbout>,
    /// Its links.
    pub links: Vec<LinkAbout>,
    /// Its users.
    pub users: Vec<UserAbout>,
    /// Its flows.
    pub flows: Vec<FlowAbout>,
    /// Its figures, by the columns of a run's results; each column at most once.
    pub values: Vec<(ColumnAbout, f64)>,
    /// PRBs of each user, downlink and uplink, in the order of `users`; `None` if it does not know.
    pub prbs: Option<Vec<[f64; 2]>>,
}

impl Reading {
    /// Adds a figure; `None` where it is unknown.
    pub fn push(&mut self, of: Subject, name: &str, column: &str, value: Option<f64>) {
        let about = ColumnAbout { of, name: name.to_owned(), column: column.to_owned() };
        self.values.push((about, value.unwrap_or(f64::NAN)));
    }

    /// Adds a flow that is what it says; the rest is not known.
    pub fn push_flow(&mut self, name: &str, [from, to]: [String; 2], cc: &str, workload: &str) {
        self.flows.push(FlowAbout {
            entry: name.to_owned(),
            name: name.to_owned(),
            from,
            to,
            cc: cc.to_owned(),
            start_s: 0.0,
            stop_s: None,
            workload: workload.to_owned(),
        });
    }
}

/// Counters at the reading before, from which rates follow.
#[derive(Debug, Default)]
pub struct Counters {
    before: BTreeMap<String, (Instant, u64)>,
    now: BTreeMap<String, (Instant, u64)>,
}

impl Counters {
    /// Bits per second since the reading before, in which the counter of this name was read, too.
    pub fn rate(&mut self, name: &str, bytes: u64, now: Instant) -> Option<f64> {
        self.now.insert(name.to_owned(), (now, bytes));
        let (then, before) = self.before.get(name)?;
        let seconds = now.duration_since(*then).as_secs_f64();
        let more = bytes.checked_sub(*before)?;
        (seconds > 0.0).then(|| more as f64 * 8.0 / seconds)
    }

    /// The reading ends: counters that it did not name are forgotten.
    pub fn end(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}
