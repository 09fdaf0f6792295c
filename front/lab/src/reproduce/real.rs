//! Experiments on Linux: the same runs in real time, over the kernels' TCP, with real proxies and PEPs (`ranpace reproduce --real`).

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use ranpace_sim::RunResult;
use ranpace_units::Span;

use super::experiment::{Criterion, Experiment, Real};
use super::measure::Measure;
use super::places::fill_text;
use super::recordings::Recordings;
use super::results::Absent;
use super::runs::{Point, Runs};
use super::{How, ReproduceError, job, plan};
use crate::validate::tcp::{Attempt, Kernel, REPEATS};
use crate::{Job, Origin, Progress, Store, VERSION};

/// What is added to the name of an experiment.
pub const LINUX: &str = "-linux";
/// Name of the patch of `[real]` among those of an experiment.
pub const PATCH: &str = "real";
/// What an emulation takes beside its duration: namespaces and daemons. Ours, measured.
const OVERHEAD: Span = Span::from_millis(1_500);

impl Experiment {
    /// The experiment whose runs are those of its part on Linux, if it has one.
    pub fn on_linux(&self) -> Option<Self> {
        let real = self.real.clone()?;
        let mut experiment = self.clone();
        experiment.real = None;
        experiment.id.push_str(LINUX);
        experiment.title.push_str(", on Linux");
        experiment.says = format!("{}\n{}", real.says, self.says);
        experiment.shorter.clone_from(&real.set);
        experiment.patches.insert(PATCH.to_owned(), real.patch.clone());
        experiment.uses.push(PATCH.to_owned());
        let is_played = |scheme: &String| real.schemes.contains(scheme);
        experiment.runs = self.runs.iter().filter_map(|runs| self.kept(runs, &real)).collect();
        experiment.criteria.retain(|criterion| match real.criteria.is_empty() {
            true => criterion.measure.as_ref().is_some_and(|measure| measure.schemes().iter().all(is_played)),
            false => real.criteria.contains(&criterion.id),
        });
        let (criteria, not_played) = (&experiment.criteria, &mut experiment.not_played);
        experiment.readings.retain_mut(|reading| {
            // A criterion keeps the reading if all runs that replace its own are played.
            let is_complete = |criterion: &&Criterion| {
                let schemes = criterion.measure.iter().flat_map(Measure::schemes);
                schemes.filter_map(|scheme| reading.instead.get(&scheme)).all(&is_played)
            };
            let about = criteria.iter().filter(|criterion| reading.is_about(criterion));
            let (kept, dropped): (Vec<_>, Vec<_>) = about.partition(is_complete);
            for criterion in dropped {
                not_played.entry(criterion.id.clone()).or_default().push(reading.name.clone());
            }
            reading.criteria = kept.into_iter().map(|criterion| criterion.id.clone()).collect();
            reading.instead.retain(|_, other| is_played(other));
            // One that is left without criteria would be about all.
            let replaces = !reading.instead.is_empty() || !reading.figures.is_empty();
            replaces && !reading.criteria.is_empty()
        });
        experiment.plots.clear();
        experiment.pictures.clear();
        (experiment.sensitivity, experiment.variation, experiment.show) = (None, None, None);
        Some(experiment)
    }

    /// Those of these runs that are played on Linux.
    fn kept(&self, runs: &Runs, real: &Real) -> Option<Runs> {
        let is_played = |scheme: &&String| runs.schemes.is_empty() || runs.schemes.contains(scheme);
        let schemes: Vec<String> = real.schemes.iter().filter(is_played).cloned().collect();
        let is_meant = |point: &Point| {
            let mut places = self.set.clone();
            places.extend(point.set.clone());
            let label = fill_text(&runs.point, &places).unwrap_or_default();
            let begins = |name: &String| {
                label.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            real.at.is_empty() || real.at.iter().any(begins)
        };
        let each: Vec<Point> = runs.points().into_iter().filter(is_meant).collect();
        let is_empty = schemes.is_empty() || each.is_empty();
        (!is_empty).then(|| Runs {
            schemes,
            each,
            drops: None,
            grid: Default::default(),
            point: runs.point.clone(),
        })
    }
}

/// The number of emulations of an experiment, and the time that they take.
pub fn time_needed(
    experiment: &Experiment,
    recordings: &mut Recordings,
    quick: bool,
) -> Result<(usize, Span), ReproduceError> {
    let planned = plan(experiment, quick)?;
    let jobs = planned.iter().map(|run| job(experiment, run, recordings)).collect::<Result<Vec<_>, _>>()?;
    let jobs: Vec<Job> = jobs.into_iter().flatten().collect();
    let firsts = firsts(&jobs);
    let own = firsts.iter().enumerate().filter(|(place, first)| place == *first);
    let spans: Vec<Span> = own.map(|(place, _)| jobs[place].scenario.duration + OVERHEAD).collect();
    Ok((spans.len(), spans.into_iter().sum()))
}

/// For each job the first one with the same scenario, whose name aside.
fn firsts<'a>(jobs: &'a [Job]) -> Vec<usize> {
    let mut known = HashMap::new();
    // Its name comes first.
    let scenario = |job: &'a Job| match job.text.split_once('\n') {
        Some((name, rest)) if name.starts_with("name = ") => rest,
        _ => job.text.as_str(),
    };
    (0..jobs.len()).map(|place| *known.entry(scenario(&jobs[place])).or_insert(place)).collect()
}

/// Plays jobs one after the other; of those with the same scenario only the first. What is in the store is not repeated, and an
/// emulation with which the machine could not keep up is, a few times.
pub fn emulate(
    jobs: &[Job],
    how: &How<'_>,
    kernel: &dyn Kernel,
    what: &str,
) -> Result<Vec<Result<RunResult, Absent>>, ReproduceError> {
    let store = how.store.ok_or_else(|| ReproduceError::Emulation {
        run: what.to_owned(),
        why: "its result has no place".to_owned(),
    })?;
    let total = jobs.iter().map(|job| job.scenario.duration.as_millis()).sum();
    let progress = Progress::new(total, what);
    let firsts = firsts(jobs);
    let mut played: Vec<Result<RunResult, Absent>> = Vec::new();
    let mut done = 0;
    for (place, job) in jobs.iter().enumerate() {
        let run = match played.get(firsts[place]) {
            Some(same) => same.clone(),
            None => {
                progress.note(&job.label);
                let origin = Origin { version: format!("{VERSION} on {}", kernel.release()), ..job.origin() };
                emulate_one(job, &origin, how, (kernel, store), &progress)?
            }
        };
        played.push(run);
        done += job.scenario.duration.as_millis();
        progress.set(done);
    }
    Ok(played)
}

/// Plays a job, or takes its result from the store.
fn emulate_one(
    job: &Job,
    origin: &Origin,
    how: &How<'_>,
    (kernel, store): (&dyn Kernel, &Store),
    progress: &Progress,
) -> Result<Result<RunResult, Absent>, ReproduceError> {
    let mut repeats = 0;
    loop {
        if let Some(known) = store.load(origin) {
            return Ok(Ok(own(job, known)));
        }
        if how.stop.load(Ordering::Relaxed) {
            return Ok(Err(Absent::Run));
        }
        match kernel.play(job, origin) {
            Attempt::Kept => {
                let kept = store.load(origin);
                return kept.map(|kept| Ok(own(job, kept))).ok_or_else(|| ReproduceError::Emulation {
                    run: job.label.clone(),
                    why: "its result cannot be read".to_owned(),
                });
            }
            Attempt::Stopped => return Ok(Err(Absent::Run)),
            Attempt::Invalid(why) if repeats == REPEATS => return Ok(Err(Absent::Machine(why))),
            Attempt::Invalid(why) => {
                progress.line(&format!("{}: to be played again: {why}", job.label));
                repeats += 1;
            }
            Attempt::Failed(why) => {
                return Err(ReproduceError::Emulation { run: job.label.clone(), why });
            }
        }
    }
}

/// The result without the ways and the connections of programs, which come after the scenario's flows: no simulation has them.
fn own(job: &Job, mut result: RunResult) -> RunResult {
    result.flows.truncate(job.scenario.flows.len());
    result
}

#[cfg(test)]
mod tests {
    use super::super::experiments;
    use super::*;

    #[test]
    fn part_on_linux_names_schemes_points_and_criteria_that_there_are() {
        let mut count = 0;
        for experiment in experiments().unwrap() {
            let Some(real) = &experiment.real else { continue };
            let id = &experiment.id;
            count += 1;
            for scheme in &real.schemes {
                assert!(experiment.scheme(scheme).is_some(), "{id}: {scheme}");
            }
            let linux = experiment.on_linux().unwrap();
            assert_eq!(linux.id, format!("{id}-linux"));
            for criterion in &real.criteria {
                assert!(linux.criteria.iter().any(|known| known.id == *criterion), "{id}: {criterion}");
            }
            assert!(linux.criteria.iter().any(|criterion| criterion.robust), "{id}: nothing is judged");
            let planned = plan(&linux, false).unwrap();
            for scheme in &real.schemes {
                assert!(planned.iter().any(|run| run.scheme == *scheme), "{id}: {scheme} is not played");
            }
            for point in &real.at {
                assert!(
                    planned.iter().any(|run| run.point.starts_with(point)),
                    "{id}: {point} is not played"
                );
            }
        }
        assert!(count > 0);
    }

    #[test]
    fn a_reading_stays_for_criteria_whose_other_runs_are_played_on_linux() {
        let all = experiments().unwrap();
        let linux = all.iter().find(|one| one.id == "000-o4").unwrap().on_linux().unwrap();
        let plain = linux.readings.iter().find(|reading| reading.name == "plain").unwrap();
        // The reading has other runs of BBR, too, which are not played.
        assert_eq!(plain.instead.len(), 1, "{plain:?}");
        assert!(plain.criteria.iter().any(|id| id == "delay"), "{plain:?}");
        assert!(linux.readings.iter().all(|reading| reading.name != "text"), "its runs are not played");
        assert!(linux.not_played.values().flatten().any(|name| name == "text"), "{:?}", linux.not_played);
    }
}
