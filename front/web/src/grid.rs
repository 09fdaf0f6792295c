//! The resource grid of a run: which user got which share of the PRBs, in bins of time.

use std::cell::RefCell;
use std::rc::Rc;

use ranpace_network::RadioReader;
use ranpace_phy::Direction;
use ranpace_rnis::SlotReport;
use ranpace_scenario::Scenario;
use ranpace_units::{Span, Time};

use crate::protocol::{GridAbout, GridLane};

/// The shortest bin: as long as a frame of LTE and NR (TS 36.211 clause 4, TS 38.211 clause 4.3.1).
const SHORTEST: Span = Span::from_millis(10);
/// Most bins of a run. Ours: several for each pixel of a wide screen.
const MOST_BINS: u64 = 12_000;
/// Most users that have lanes. Ours.
const MOST_USERS: usize = 64;
const BOTH: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

/// Means of the PRBs per slot that users got.
#[derive(Debug)]
pub struct Grid {
    bin: Span,
    users: Vec<String>,
    /// For each lane, a value for each bin that was begun.
    lanes: Vec<Vec<f64>>,
    /// The counters of PRBs times symbols of each lane at the report before.
    before: Vec<u64>,
}

impl Grid {
    /// An empty one, of all users up to a number.
    pub fn new(scenario: &Scenario) -> Self {
        let least = scenario.duration.as_nanos().div_ceil(MOST_BINS);
        let bin = Span::from_nanos(least.next_multiple_of(SHORTEST.as_nanos()).max(SHORTEST.as_nanos()));
        let users: Vec<String> =
            scenario.users.iter().take(MOST_USERS).map(|user| user.name.clone()).collect();
        let lanes = vec![Vec::new(); 2 * users.len()];
        Self { bin, before: vec![0; lanes.len()], users, lanes }
    }

    /// Its description: a user's downlink, and its uplink.
    pub fn about(&self) -> GridAbout {
        let lanes = (0..).zip(&self.users).flat_map(|(number, user)| {
            [false, true].map(|uplink| GridLane { user: user.clone(), number, uplink })
        });
        GridAbout { bin_s: self.bin.as_secs_f64(), lanes: lanes.collect() }
    }

    /// Bins that are complete at this time.
    pub fn complete(&self, now: Time) -> usize {
        (now.since(Time::ZERO).as_nanos() / self.bin.as_nanos()) as usize
    }

    /// The beginnings of the bins `from` up to `to`, and each lane in them.
    pub fn rows(&self, from: usize, to: usize) -> (Vec<f64>, Vec<Vec<f64>>) {
        let times = (from..to).map(|bin| (self.bin * bin as u64).as_secs_f64()).collect();
        let of = |lane: &Vec<f64>| (from..to).map(|bin| lane.get(bin).copied().unwrap_or(0.0)).collect();
        (times, self.lanes.iter().map(of).collect())
    }

    fn on_report(&mut self, report: &SlotReport<'_>) {
        let bin = (report.time.since(Time::ZERO).as_nanos() / self.bin.as_nanos()) as usize;
        // The share of a bin that a slot is, over the symbols of one PRB.
        let share = report.cell.slot.ratio(self.bin) / f64::from(report.cell.symbols.max(1));
        for user in report.users.iter().filter(|user| (user.user as usize) < self.users.len()) {
            for (direction, lane) in BOTH.into_iter().zip((2 * user.user as usize)..) {
                let counter = user.link[direction].scheduled_prb_symbols;
                // Counters begin anew in another cell.
                let more = counter.checked_sub(self.before[lane]).unwrap_or(counter);
                self.before[lane] = counter;
                let values = &mut self.lanes[lane];
                if more > 0 {
                    values.resize(values.len().max(bin + 1), 0.0);
                    values[bin] += more as f64 * share;
                }
            }
        }
    }
}

/// Fills a grid that is read between two steps of the simulation.
#[derive(Debug)]
pub struct GridReader(pub Rc<RefCell<Grid>>);

impl RadioReader for GridReader {
    fn on_report(&mut self, report: &SlotReport<'_>) {
        self.0.borrow_mut().on_report(report);
    }
}
