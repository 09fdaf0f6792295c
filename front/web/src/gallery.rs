//! Published experiments with what was measured when they were last recorded.

use ranpace_lab::reproduce::{Experiment, Record, recorded};

use crate::problem::Refusal;
use crate::protocol::{ReproducedFigure, Reproduction};

/// All experiments, in the order in which `ranpace reproduce --list` has them.
pub fn reproductions() -> Result<Vec<Reproduction>, Refusal> {
    let of = |(experiment, record): (Experiment, Record)| {
        let figures = record.rows.into_iter().map(|row| ReproducedFigure {
            name: row.criterion,
            published: row.published,
            bounds: row.bounds,
            measured: row.measured,
            verdict: row.verdict.as_str().to_owned(),
        });
        Reproduction {
            name: experiment.id,
            title: experiment.title,
            source: experiment.source,
            about: if experiment.claim.is_empty() { experiment.says } else { experiment.claim },
            figures: figures.collect(),
        }
    };
    Ok(recorded().map_err(Refusal::ours)?.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_stand_beside_measured_ones() {
        let all = reproductions().unwrap();
        let table = all.iter().find(|experiment| experiment.name == "001-a3-table1").unwrap();
        let ratio = table.figures.iter().find(|figure| figure.published == "8.95").unwrap();
        assert_eq!(ratio.measured, "9.697", "CUBIC's mean delay over C2TCP's");
        assert!(all.iter().all(|experiment| !experiment.figures.is_empty()));
    }
}
