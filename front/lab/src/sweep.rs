//! A scenario over a grid of settings and seeds: resumable, and never repeating a run.

use ranpace_scenario::ScenarioError;
use ranpace_sim::RunResult;

use crate::plot::PlotError;
use crate::{CompareRow, Comparison, Job, Report, TraceLibrary};

/// Most runs of one sweep; more is probably a typing error.
const MOST_RUNS: u64 = 1_000_000;

/// One setting and its values, as typed: `flow.cc=cubic,c2tcp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variation {
    /// A key of the scenario, such as `link.down.rate`.
    pub key: String,
    /// The values, in order.
    pub values: Vec<String>,
}

/// The sweep.
#[derive(Clone, Debug)]
pub struct SweepSpec {
    /// The scenario's text.
    pub text: String,
    /// Its name in errors.
    pub file: String,
    /// The settings; every combination is run, the last one changing fastest.
    pub variations: Vec<Variation>,
    /// Seeds of each combination: the scenario's own, and the following ones.
    pub seeds: u32,
    /// Seeds before the first one, for a part of a sweep that is played elsewhere.
    pub skip: u32,
}

/// Why a sweep cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// Not of the form `key=value,value`.
    #[error("expected KEY=VALUE,VALUE such as flow.cc=cubic,c2tcp, found {found:?}")]
    NotAVariation {
        /// The text found.
        found: String,
    },
    /// The same key twice would be ambiguous.
    #[error("{key} is varied twice; give all its values at once, such as {key}=A,B,C")]
    Twice {
        /// The key.
        key: String,
    },
    /// More runs than anybody wants.
    #[error("{runs} runs are more than {MOST_RUNS}; vary less at a time")]
    TooMany {
        /// Number of runs.
        runs: u64,
    },
    /// A scenario that results from the settings is invalid.
    #[error("{point}{error}")]
    Scenario {
        /// The settings.
        point: String,
        /// Why.
        error: ScenarioError,
    },
}

impl std::str::FromStr for Variation {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let refused = || SweepError::NotAVariation { found: text.to_owned() };
        let (key, values) = text.split_once('=').ok_or_else(refused)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(refused());
        }
        Ok(Self { key: key.trim().to_owned(), values })
    }
}

impl SweepSpec {
    /// The combinations in order, each as pairs of key and value.
    pub fn points(&self) -> Vec<Vec<(&str, &str)>> {
        let mut points = vec![Vec::new()];
        for variation in &self.variations {
            points = points
                .into_iter()
                .flat_map(|point: Vec<(&str, &str)>| {
                    variation.values.iter().map(move |value| {
                        let mut point = point.clone();
                        point.push((variation.key.as_str(), value.as_str()));
                        point
                    })
                })
                .collect();
        }
        points
    }

    /// The runs, all seeds of a combination together.
    pub fn jobs(&self, traces: &mut TraceLibrary) -> Result<Vec<Job>, SweepError> {
        for (index, variation) in self.variations.iter().enumerate() {
            if self.variations[..index].iter().any(|other| other.key == variation.key) {
                return Err(SweepError::Twice { key: variation.key.clone() });
            }
        }
        let combinations =
            self.variations.iter().fold(1_u64, |product, v| product.saturating_mul(v.values.len() as u64));
        let runs = combinations.saturating_mul(u64::from(self.seeds));
        if runs > MOST_RUNS {
            return Err(SweepError::TooMany { runs });
        }
        let mut jobs = Vec::new();
        for point in self.points() {
            let label = label(&point);
            let refused = |error| SweepError::Scenario {
                point: if label.is_empty() { String::new() } else { format!("with {label}: ") },
                error,
            };
            let mut text = self.text.clone();
            for (key, value) in &point {
                text = ranpace_scenario::vary(&text, key, value).map_err(refused)?;
            }
            let (first, digests) = traces.parse(&text, &self.file).map_err(refused)?;
            for seed in 0..u64::from(self.seeds) {
                let seed = first.seed.saturating_add(u64::from(self.skip)).saturating_add(seed);
                let text = ranpace_scenario::vary(&text, "seed", &seed.to_string()).map_err(refused)?;
                let mut scenario = first.clone();
                scenario.seed = seed;
                jobs.push(Job { label: label.clone(), text, scenario, traces: digests.clone() });
            }
        }
        Ok(jobs)
    }

    /// A row per combination, over the completed seeds.
    pub fn rows(&self, results: &[Option<RunResult>]) -> Vec<CompareRow> {
        self.grouped(results).iter().map(|(label, runs)| CompareRow::of(label, runs)).collect()
    }

    fn grouped<'a>(&self, results: &'a [Option<RunResult>]) -> Vec<(String, Vec<&'a RunResult>)> {
        self.points()
            .iter()
            .zip(results.chunks(self.seeds as usize))
            .map(|(point, runs)| (label(point), runs.iter().flatten().collect::<Vec<_>>()))
            .filter(|(_, runs)| !runs.is_empty())
            .collect()
    }

    /// The report.
    pub fn report(
        &self,
        results: &[Option<RunResult>],
        title: &str,
        command: &str,
    ) -> Result<String, PlotError> {
        let complete = results.iter().flatten().count();
        let mut warnings = Vec::new();
        if complete < results.len() {
            warnings.push(format!("Interrupted: {complete} of {} runs are complete.", results.len()));
        }
        Report {
            title: title.to_owned(),
            command: command.to_owned(),
            intro: String::new(),
            groups: vec![Comparison::new(title, &self.text, self.grouped(results))],
            chapters: Vec::new(),
            warnings,
        }
        .html()
    }
}

/// Label of a combination's settings; if only one is varied, just its value.
fn label(point: &[(&str, &str)]) -> String {
    match point {
        [(_, value)] => (*value).to_owned(),
        point => point.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
        duration = "1s"
        [[link]]
        name = "down"
        from = "server"
        to = "phone"
        rate = "2Mbit/s"
        delay = "5ms"
        duplex = true
        [[flow]]
        from = "server"
        to = "phone"
        cc = "newreno"
    "#;

    fn spec(variations: &[&str], seeds: u32) -> SweepSpec {
        SweepSpec {
            text: SCENARIO.to_owned(),
            file: "sweep.toml".to_owned(),
            variations: variations.iter().map(|text| text.parse().unwrap()).collect(),
            seeds,
            skip: 0,
        }
    }

    #[test]
    fn every_combination_is_played_with_every_seed() {
        let jobs = spec(&["flow.cc=cubic,newreno", "link.down.rate=1Mbit/s,3Mbit/s"], 3)
            .jobs(&mut TraceLibrary::default());
        let jobs = jobs.unwrap();
        assert_eq!(jobs.len(), 12);
        assert_eq!(jobs[3].label, "flow.cc=cubic link.down.rate=3Mbit/s");
        assert_eq!(jobs[5].scenario.seed, 3);
        for job in jobs {
            let parsed = ranpace_scenario::parse(&job.text, "again", &mut ()).unwrap();
            assert_eq!((parsed.seed, parsed.flows), (job.scenario.seed, job.scenario.flows));
        }
    }

    #[test]
    fn settings_that_cannot_be_swept_are_refused() {
        assert!(matches!("flow.cc".parse::<Variation>(), Err(SweepError::NotAVariation { .. })));
        assert!(matches!("flow.cc=cubic,,c2tcp".parse::<Variation>(), Err(SweepError::NotAVariation { .. })));
        let refused =
            |variations: &[&str]| spec(variations, 1).jobs(&mut TraceLibrary::default()).unwrap_err();
        assert!(matches!(refused(&["flow.cc=cubic", "flow.cc=vegas"]), SweepError::Twice { .. }));
        let error = refused(&["flow.cc=cubik"]).to_string();
        assert!(error.contains("with cubik") && error.contains("cubic"), "{error}");
        assert!(refused(&["flow.ccc=cubic"]).to_string().contains("ccc"));
    }
}
