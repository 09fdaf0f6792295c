//! Running scenarios: on all cores, with a progress bar, resumable, and interruptible without losing completed runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use ranpace_link::Service;
use ranpace_radio::cell::Air;
use ranpace_scenario::{Scenario, ScenarioError};
use ranpace_sim::{RunResult, Series, Simulation};

use crate::version::VERSION;
use crate::{Origin, Progress, Store, StoreError, TraceLibrary};

/// A scenario to be played.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name in tables, plots and progress.
    pub label: String,
    /// The scenario as text: it is stored with the result, and can be run again.
    pub text: String,
    /// The same, parsed.
    pub scenario: Scenario,
    /// Digests of the files that it uses: [`TraceLibrary::parse`].
    pub traces: Vec<String>,
}

impl Job {
    /// Parses a scenario. `file` is its name in errors.
    pub fn new(
        label: impl Into<String>,
        text: impl Into<String>,
        file: &str,
        traces: &mut TraceLibrary,
    ) -> Result<Self, ScenarioError> {
        let text = text.into();
        let (scenario, traces) = traces.parse(&text, file)?;
        Ok(Self { label: label.into(), text, scenario, traces })
    }

    /// The origin of its result.
    pub fn origin(&self) -> Origin {
        Origin {
            scenario: self.scenario.name.clone(),
            scenario_text: self.text.clone(),
            seed: self.scenario.seed,
            version: VERSION.to_owned(),
            traces: self.traces.clone(),
        }
    }

    /// Expected work, in bits that cross the links: the longest jobs start first.
    fn work(&self) -> f64 {
        // A user's slot costs about as much as eight packets, and its cell sends about four bits in each resource element, 168 of
        // which are in a PRB and slot of 1 ms (TS 36.211 Table 6.2.3-1). Ours: it only affects the order.
        const USER_SLOTS: f64 = 8.0 * 12_000.0 * 1_000.0;
        const PRB: f64 = 4.0 * 168.0 * 1_000.0;
        if !self.scenario.cells.is_empty() {
            // Wires are rarely the bottleneck then.
            let prbs = self.scenario.cells.iter().map(|cell| match &cell.config.air {
                Air::Lte { band } => f64::from(band.get()),
                Air::Nr { band, .. } => f64::from(band.get()),
                // As wide as this number of PRBs of 180 kHz: 200 MHz.
                Air::Mmwave => 1_100.0,
            });
            let users = self.scenario.users.len() as f64;
            return (PRB * prbs.sum::<f64>() + USER_SLOTS * users) * self.scenario.duration.as_secs_f64();
        }
        let rate: f64 = self
            .scenario
            .links
            .iter()
            .map(|link| match &link.config.service {
                Service::Unlimited => 0.0,
                Service::Fixed(rate) => rate.as_f64(),
                Service::Trace(play) => play.trace.mean_rate().as_f64() * play.scale,
            })
            .sum();
        rate * self.scenario.duration.as_secs_f64()
    }
}

/// How jobs are run.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// Threads; 0 for one per core.
    pub threads: usize,
    /// Set to stop: completed runs are kept and returned.
    pub stop: &'a AtomicBool,
    /// Completed results are stored here, and runs already here are skipped.
    pub store: Option<&'a Store>,
    /// The text of the progress bar.
    pub what: &'a str,
    /// Whether series over time are stored, and required of stored results.
    pub series: bool,
    /// Counts the virtual milliseconds that were played, for a caller that shows progress itself.
    pub played: Option<&'a AtomicU64>,
}

impl Runner<'_> {
    /// Runs the jobs; results are in the order of the jobs, whatever the order and number of threads of execution. `None` stands
    /// for a job that did not finish because [`Runner::stop`] was set; a run in progress is then abandoned.
    pub fn run(&self, jobs: &[Job]) -> Result<Vec<Option<RunResult>>, StoreError> {
        self.run_with(jobs, |_, result| result)
    }

    /// The same, keeping only what `take` returns for the result of each job, so that thousands of whole results need not be in
    /// memory at once.
    pub fn run_with<T: Send>(
        &self,
        jobs: &[Job],
        take: impl Fn(usize, RunResult) -> T + Sync,
    ) -> Result<Vec<Option<T>>, StoreError> {
        // Progress in virtual milliseconds, unweighted: the jobs of one call are all similar.
        let total = jobs.iter().map(|job| job.scenario.duration.as_millis()).sum();
        let progress = Progress::new(total, self.what);
        let own = AtomicU64::new(0);
        let done = self.played.unwrap_or(&own);
        let failure = Mutex::new(None);
        let failed = AtomicBool::new(false);
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by(|&a, &b| jobs[b].work().total_cmp(&jobs[a].work()).then(a.cmp(&b)));
        let play = |index: usize| -> Option<RunResult> {
            let job = &jobs[index];
            if self.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                return None;
            }
            let length = job.scenario.duration.as_millis();
            let origin = job.origin();
            if let Some(known) = self
                .store
                .and_then(|store| store.load(&origin))
                .filter(|known| !self.series || has_series(known))
            {
                progress.set(done.fetch_add(length, Ordering::Relaxed) + length);
                return Some(known);
            }
            progress.note(&job.label);
            let mut told = 0;
            let result = Simulation::new(&job.scenario).run_while(&mut |now| {
                let reached = now.as_millis();
                progress.set(done.fetch_add(reached - told, Ordering::Relaxed) + reached - told);
                told = reached;
                !self.stop.load(Ordering::Relaxed)
            });
            progress.set(done.fetch_add(length - told, Ordering::Relaxed) + length - told);
            if result.interrupted {
                return None;
            }
            let result = if self.series { result } else { without_series(result) };
            if let Some(store) = self.store
                && let Err(error) = store.save(&origin, &result)
            {
                failed.store(true, Ordering::Relaxed);
                if let Ok(mut failure) = failure.lock() {
                    failure.get_or_insert(error);
                }
            }
            Some(result)
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = if self.threads == 0 { cores } else { self.threads }.clamp(1, jobs.len().max(1));
        let (next, results) =
            (AtomicUsize::new(0), Mutex::new(jobs.iter().map(|_| None).collect::<Vec<_>>()));
        let work = || {
            while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                let result = play(index).map(|result| take(index, result));
                if let Ok(mut results) = results.lock() {
                    results[index] = result;
                }
            }
        };
        if threads == 1 {
            // On the caller's thread, which controls of its own may need.
            work();
        } else {
            thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        }
        if let Ok(Some(error)) = failure.into_inner() {
            return Err(error);
        }
        // A panic in a thread has already propagated out of the scope, so the lock cannot be poisoned.
        Ok(results.into_inner().unwrap_or_default())
    }
}

fn has_series(result: &RunResult) -> bool {
    // Links of users among them.
    result.links.iter().all(|link| !link.series.columns.is_empty())
}

fn without_series(mut result: RunResult) -> RunResult {
    result.flows.iter_mut().for_each(|flow| flow.series = Series::default());
    result.links.iter_mut().for_each(|link| link.series = Series::default());
    result.users.iter_mut().for_each(|user| user.series = Series::default());
    result
}
