//! Figures relative to CUBIC's, over several situations, and the Pareto front of throughput and delay.

use super::situations::Kind;
use super::{BASIS, Measure, Survey};
use crate::stats::{self, Estimate};

/// A candidate's throughput and delay over all situations of a kind, relative to CUBIC's.
#[derive(Clone, Debug)]
pub struct Relative {
    /// Its place among the candidates.
    pub who: usize,
    /// Goodput over CUBIC's, the geometric mean of the situations; over the seeds.
    pub goodput: Estimate,
    /// The same of the p95 delay.
    pub delay: Estimate,
    /// Whether no other has both more goodput and less delay.
    pub on_front: bool,
}

/// Geometric mean; `None` without values, or if one is not above zero.
fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|value| libm::log(*value)).collect();
    stats::mean(&logs).map(libm::exp).filter(|mean| mean.is_finite() && *mean > 0.0)
}

impl Survey {
    /// The candidates that have figures in all situations of a kind, relative to CUBIC's.
    pub(super) fn relative(&self, kind: Kind) -> Vec<Relative> {
        let situations: Vec<usize> =
            (0..self.situations.len()).filter(|at| self.situations[*at].kind == kind).collect();
        let Some(basis) = self.candidates.iter().position(|candidate| candidate.name == BASIS) else {
            return Vec::new();
        };
        let ratios = |who: usize, measure: Measure, seed: usize| {
            let value = |who: usize, at: usize| self.values.get(&(who, at, measure))?.get(seed).copied();
            let each: Option<Vec<f64>> =
                situations.iter().map(|at| Some(value(who, *at)? / value(basis, *at)?)).collect();
            geometric_mean(&each?)
        };
        let mut rows: Vec<Relative> = (0..self.candidates.len())
            .filter_map(|who| {
                let points: Vec<(f64, f64)> = (0..self.seeds as usize)
                    .filter_map(|seed| {
                        Some((ratios(who, Measure::Goodput, seed)?, ratios(who, Measure::DelayP95, seed)?))
                    })
                    .collect();
                let goodput = stats::estimate(points.iter().map(|point| point.0));
                let delay = stats::estimate(points.iter().map(|point| point.1));
                (!points.is_empty()).then_some(Relative { who, goodput, delay, on_front: false })
            })
            .collect();
        for index in 0..rows.len() {
            let this = (rows[index].goodput.mean, rows[index].delay.mean);
            rows[index].on_front = !rows.iter().any(|other| {
                let (goodput, delay) = (other.goodput.mean, other.delay.mean);
                goodput >= this.0 && delay <= this.1 && (goodput, delay) != this
            });
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::TraceLibrary;
    use crate::compare::all::candidates::CANDIDATES;
    use crate::compare::all::situations::situations;

    #[test]
    fn ratios_are_geometric_means_and_the_front_is_what_none_dominates() {
        let (all, _) = situations(&mut TraceLibrary::default()).unwrap();
        let links: Vec<usize> = (0..all.len()).filter(|at| all[*at].kind == Kind::CellUp).collect();
        let mut values = BTreeMap::new();
        // Two situations of four: CUBIC, one with half the delay, one with less of all, one with more of both.
        for (who, factors) in [[1.0, 1.0], [1.0, 0.5], [0.9, 0.6], [1.1, 2.0]].into_iter().enumerate() {
            for (number, at) in links.iter().enumerate() {
                let scale = (number + 1) as f64;
                // The second situation has four times, the first a fourth of the factor's goodput.
                let skew = [0.25, 4.0, 1.0, 1.0][number];
                values.insert((who, *at, Measure::Goodput), vec![1e6 * scale * factors[0] * skew; 2]);
                values.insert((who, *at, Measure::DelayP95), vec![0.1 * scale * factors[1]; 2]);
            }
        }
        let candidates = CANDIDATES.iter().take(4).collect();
        let survey =
            Survey { candidates, situations: all, missing: Vec::new(), seeds: 2, interrupted: false, values };
        let rows = survey.relative(Kind::CellUp);
        let found: Vec<(f64, f64, bool)> = rows
            .iter()
            .map(|row| ((row.goodput.mean * 100.0).round(), (row.delay.mean * 100.0).round(), row.on_front))
            .collect();
        assert_eq!(
            found,
            [(100.0, 100.0, false), (100.0, 50.0, true), (90.0, 60.0, false), (110.0, 200.0, true)]
        );
        assert!(survey.relative(Kind::Link).is_empty(), "no figures, no row");
        // A seed that is missing for one is left out for it, and shifts no other.
        let mut survey = survey;
        for values in survey.values.values_mut() {
            *values = vec![values[0], values[0] * 3.0];
        }
        survey.values.get_mut(&(1, links[0], Measure::Goodput)).unwrap()[0] = f64::NAN;
        let rows = survey.relative(Kind::CellUp);
        assert!((rows[1].goodput.mean - 1.0).abs() < 1e-9 && rows[1].goodput.count == 1, "{rows:?}");
    }
}
