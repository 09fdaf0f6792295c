//! Figures of schemes compared over the points of an experiment.

use serde::Deserialize;

use super::results::{Absent, Results};
use crate::figure::Figure;

/// How ratios over several points are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mean {
    /// The mean of the points' ratios.
    #[default]
    OfRatios,
    /// The ratio of the means over the points.
    RatioOfMeans,
}

/// A figure of one scheme over that of another, at these points.
pub fn ratio(
    results: &Results,
    metric: Figure,
    of: &str,
    to: &str,
    points: &[String],
    mean: Mean,
) -> Result<f64, Absent> {
    let figures =
        |point: &String| Ok((results.at(of, point)?.get(metric), results.at(to, point)?.get(metric)));
    let pairs: Vec<(f64, f64)> = points.iter().map(figures).collect::<Result<_, Absent>>()?;
    Ok(match mean {
        Mean::OfRatios => pairs.iter().map(|(above, below)| above / below).sum::<f64>() / pairs.len() as f64,
        Mean::RatioOfMeans => {
            // As in comparisons over drops, a drop without the figure does not count.
            let both = pairs.iter().filter(|(above, below)| above.is_finite() && below.is_finite());
            let (above, below) = both.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
            above / below
        }
    })
}
