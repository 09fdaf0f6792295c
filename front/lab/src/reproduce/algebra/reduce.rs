//! Several numbers reduced to one.

use serde::Deserialize;

use crate::stats;

/// How several numbers are reduced. NaN if one of them is, or if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduce {
    /// Their mean.
    #[default]
    Mean,
    /// Their median.
    Median,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The one farthest from zero.
    Farthest,
    /// Their sum.
    Sum,
    /// The interquartile range.
    Iqr,
    /// Number of values above a number.
    Above(f64),
    /// Number of values that are at least a number.
    AtLeast(f64),
    /// Share of values below a number.
    ShareBelow(f64),
}

impl Reduce {
    /// The values reduced.
    pub fn of(self, values: &[f64]) -> f64 {
        let count = |holds: &dyn Fn(f64) -> bool| values.iter().filter(|value| holds(**value)).count() as f64;
        match self {
            Self::Mean => stats::mean(values).unwrap_or(f64::NAN),
            Self::Median => median(values),
            Self::Min | Self::Max | Self::Farthest if values.iter().any(|value| value.is_nan()) => f64::NAN,
            Self::Min => values.iter().copied().reduce(f64::min).unwrap_or(f64::NAN),
            Self::Max => values.iter().copied().reduce(f64::max).unwrap_or(f64::NAN),
            Self::Farthest => {
                let farther = |most: f64, value: f64| if value.abs() >= most.abs() { value } else { most };
                values.iter().copied().reduce(farther).unwrap_or(f64::NAN)
            }
            Self::Sum => values.iter().sum(),
            Self::Iqr => quantile(values, 0.75) - quantile(values, 0.25),
            Self::Above(limit) => count(&|value| value > limit),
            Self::AtLeast(limit) => count(&|value| value >= limit),
            Self::ShareBelow(limit) => {
                stats::ratio(count(&|value| value < limit), values.len() as f64).unwrap_or(f64::NAN)
            }
        }
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

fn median(values: &[f64]) -> f64 {
    let (values, count) = (sorted(values), values.len());
    let middle = values.get(count.saturating_sub(1) / 2..(count / 2 + 1).min(count));
    middle.and_then(stats::mean).unwrap_or(f64::NAN)
}

/// Interpolated between the two nearest values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let values = sorted(values);
    let place = share * (values.len() as f64 - 1.0).max(0.0);
    let at = |index: usize| values.get(index).or(values.last()).copied().unwrap_or(f64::NAN);
    let low = at(place as usize);
    low + (at(place as usize + 1) - low) * (place - place.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_turn_several_numbers_into_one() {
        for (reduce, expected) in [
            (Reduce::Mean, 2.5),
            (Reduce::Median, 2.0),
            (Reduce::Min, 1.0),
            (Reduce::Max, 5.0),
            (Reduce::Farthest, 5.0),
            (Reduce::Sum, 10.0),
            // Quartiles are interpolated: 1.75 and 2.75.
            (Reduce::Iqr, 1.0),
            (Reduce::Above(2.0), 1.0),
            (Reduce::AtLeast(2.0), 3.0),
            (Reduce::ShareBelow(2.0), 0.25),
        ] {
            assert_eq!(reduce.of(&[5.0, 1.0, 2.0, 2.0]), expected, "{reduce:?}");
        }
        assert_eq!(Reduce::Farthest.of(&[3.0, -4.0, 2.0]), -4.0);
        assert_eq!(Reduce::Median.of(&[3.0, 1.0, 2.0]), 2.0);
        for reduce in [Reduce::Mean, Reduce::Median, Reduce::Min, Reduce::Max, Reduce::Farthest, Reduce::Iqr]
        {
            assert!(reduce.of(&[]).is_nan() && reduce.of(&[1.0, f64::NAN]).is_nan(), "{reduce:?}");
        }
    }
}
