//! Figures of schemes compared over the points of an experiment.

use serde::Deserialize;

use super::cells::{Absent, Cells};
use super::measured::Measured;
use crate::figure::Figure;
use crate::figures::number;
use crate::stats;

/// How ratios over several points become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mean {
    /// The mean of the points' ratios.
    #[default]
    OfRatios,
    /// The ratio of the means over the points.
    RatioOfMeans,
}

/// What several points become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Their mean.
    #[default]
    Mean,
    /// Their largest.
    Max,
    /// Their smallest.
    Min,
}

/// A figure of a scheme at each point.
pub(super) fn values<'a>(
    cells: &'a Cells,
    metric: Figure,
    of: &str,
    points: &[String],
) -> Result<Vec<(&'a str, f64)>, Absent> {
    Ok(cells.of(of, points)?.into_iter().map(|(point, cell)| (point, cell.get(metric))).collect())
}

/// A figure of one scheme over that of another.
pub fn ratio(
    cells: &Cells,
    metric: Figure,
    of: &str,
    to: &str,
    points: &[String],
    mean: Mean,
) -> Result<f64, Absent> {
    // Both must be whole, so that what is missing is named as a whole.
    let above = cells.of(of, points)?;
    cells.of(to, points)?;
    let pairs: Vec<(f64, f64)> = above
        .into_iter()
        .map(|(point, cell)| Ok((cell.get(metric), cells.at(to, point)?.get(metric))))
        .collect::<Result<_, Absent>>()?;
    let count = pairs.len() as f64;
    Ok(match mean {
        Mean::OfRatios => pairs.iter().map(|(above, below)| above / below).sum::<f64>() / count,
        Mean::RatioOfMeans => {
            // As for paired measures: a drop without the figure does not count.
            let both = pairs.iter().filter(|(above, below)| above.is_finite() && below.is_finite());
            let (above, below) = both.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
            above / below
        }
    })
}

pub(super) fn ratios(
    cells: &Cells,
    metric: Figure,
    of: &[String],
    to: &str,
    points: &[String],
) -> Result<Vec<(String, f64)>, Absent> {
    of.iter()
        .map(|scheme| Ok((scheme.clone(), ratio(cells, metric, scheme, to, points, Mean::OfRatios)?)))
        .collect()
}

pub(super) fn lowest(
    cells: &Cells,
    metric: Figure,
    of: &str,
    among: &[String],
    points: &[String],
) -> Result<Measured, Absent> {
    let own = values(cells, metric, of, points)?;
    for other in among {
        cells.of(other, points)?;
    }
    let mut lost = Vec::new();
    for (point, value) in &own {
        for other in among.iter().filter(|other| *other != of) {
            if cells.at(other, point)?.get(metric) <= *value {
                lost.push(format!("{point} ({other})"));
                break;
            }
        }
    }
    let won = own.len() - lost.len();
    let but = if lost.is_empty() { String::new() } else { format!("; not at {}", lost.join(", ")) };
    Ok(Measured { value: won as f64, text: format!("{won} of {}{but}", own.len()) })
}

/// Of several points, those without the figure do not count: a drop in which nobody has service has no delays.
pub(super) fn value(metric: Figure, values: &[(&str, f64)], over: Over) -> Measured {
    let each: Vec<f64> = values.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).collect();
    let (value, what) = match over {
        Over::Mean => (stats::mean(&each).unwrap_or(f64::NAN), "mean"),
        Over::Max => (greatest(each.iter().copied()), "largest"),
        Over::Min => (least(each.iter().copied()), "smallest"),
    };
    let at = values.iter().find(|(_, each)| *each == value && over != Over::Mean).map(|(point, _)| *point);
    let text = match at {
        _ if values.len() == 1 => metric.show(value),
        Some(point) => format!("{what} {}, at {point}", metric.show(value)),
        None => format!("{what} {}", metric.show(value)),
    };
    let text = if each.len() == values.len() || values.len() == 1 {
        text
    } else {
        format!("{text} ({} of {} points have it)", each.len(), values.len())
    };
    Measured { value, text }
}

pub(super) fn deviation(
    cells: &Cells,
    metric: Figure,
    of: &str,
    from: &str,
    points: &[String],
) -> Result<Measured, Absent> {
    let mut worst = (0.0, "");
    for (point, cell) in cells.of(of, points)? {
        let own = cell.get(metric) / cell.number(from)? - 1.0;
        if !own.is_finite() || f64::abs(own) >= f64::abs(worst.0) {
            worst = (own, point);
        }
    }
    let text = format!("largest {:+.1} %, at {}", worst.0 * 100.0, worst.1);
    Ok(Measured { value: worst.0.abs(), text })
}

pub(super) fn named(each: &[(String, f64)]) -> String {
    each.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect::<Vec<_>>().join(", ")
}

pub(super) fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, |least, value| if value < least || value.is_nan() { value } else { least })
}

pub(super) fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, |most, value| if value > most || value.is_nan() { value } else { most })
}

/// The smallest ratio of a value to the one before; one of a single value.
pub(super) fn least_step(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 1.0;
    }
    least(values.windows(2).map(|pair| pair[1] / pair[0]))
}
