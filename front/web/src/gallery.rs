//! Published experiments with what was measured when they were last recorded: `reproductions/NAME/verdicts.json`.

use ranpace_lab::reproduce::{Record, experiments};

use crate::problem::Refusal;
use crate::protocol::{ReproducedFigure, Reproduction};

macro_rules! records {
    ($($folder:literal),* $(,)?) => {
        &[$(($folder, include_str!(concat!("../../../reproductions/", $folder, "/verdicts.json")))),*]
    };
}

/// Records by the names of experiments.
#[rustfmt::skip] // a line for each family
const RECORDS: &[(&str, &str)] = records![
    "000-s1", "000-s2", "000-s3", "000-s4",
    "000-r1", "000-r2", "000-r3", "000-r4", "000-r5", "000-r6", "000-r7",
    "000-o1", "000-o2", "000-o3", "000-o4", "000-o5", "000-o6",
    "001-a1-detector", "001-a2-umts", "001-a3-table1", "001-a4-edge", "001-a5-friendliness",
    "001-a6-target", "001-a7-buffer", "001-a8-field",
    "002-b0-fit", "002-b1-fillup", "002-b2-short", "002-b3-bursty", "002-b4-checks",
    "003-m1-m4-download", "003-m-control", "003-m-rfc9002", "003-m5-loss", "003-m6-feed",
    "004-4-reno-cubic", "004-5-tracking", "004-5-dcic", "004-5-fit", "004-6-fit",
    "004-6-estimator-wired", "004-6-estimator-lte", "004-6-run", "004-6-table", "004-models",
    "004-7-states", "004-7-bandwidth", "004-7-ddl-gc", "004-7-fqm-dual", "004-7-matrix", "004-7-lte",
    "004-7-drops",
    "edge-together", "edge-sigma", "edge-meld", "edge-rapid",
    "peers-dualpi2", "peers-l4span", "peers-abc", "peers-lda", "peers-xtcp", "peers-natcp",
    "peers-guidance", "peers-milliproxy",
    "peers-bbr3", "peers-copa", "peers-pbe", "peers-rlc",
];

/// All experiments, in the order in which `ranpace reproduce --list` has them.
pub fn reproductions() -> Result<Vec<Reproduction>, Refusal> {
    let experiments = experiments().map_err(Refusal::ours)?;
    let of = |experiment: ranpace_lab::reproduce::Experiment| {
        let text = RECORDS.iter().find(|(name, _)| *name == experiment.id).map_or("", |(_, text)| text);
        let record: Record = serde_json::from_str(text).map_err(Refusal::ours)?;
        let figures = record.rows.into_iter().map(|row| ReproducedFigure {
            name: row.criterion,
            published: row.published,
            bounds: row.bounds,
            measured: row.measured,
            verdict: row.verdict.as_str().to_owned(),
        });
        Ok(Reproduction {
            name: experiment.id,
            title: experiment.title,
            source: experiment.source,
            about: if experiment.claim.is_empty() { experiment.says } else { experiment.claim },
            figures: figures.collect(),
        })
    };
    experiments.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_its_record() {
        let all = reproductions().unwrap();
        assert_eq!(all.len(), RECORDS.len());
        let table = all.iter().find(|experiment| experiment.name == "001-a3-table1").unwrap();
        let ratio = table.figures.iter().find(|figure| figure.published == "8.95").unwrap();
        assert_eq!(ratio.measured, "9.697", "CUBIC's mean delay over C2TCP's");
        assert!(all.iter().all(|experiment| !experiment.figures.is_empty()));
    }
}
