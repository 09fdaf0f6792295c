//! The measurements that criteria are made of: each gives one number, which a criterion compares with its bounds.
//!
//! Most are said in the algebra (`algebra`). Those with a `kind` compare schemes over the points of an experiment; what is
//! an algorithm of its own is a named function (`function.rs`).

use serde::{Deserialize, Deserializer};

use super::algebra::Expr;
use super::cells::{Absent, Cell, Cells};
use super::function::Function;
use super::measured::Measured;
use super::paired::{Compare, Paired, Part};
use super::points::{
    Mean, Over, deviation, greatest, least, least_step, lowest, named, ratio, ratios, value, values,
};
use crate::figure::Figure;
use crate::figures::number;

/// What is measured. `of` and `to` are labels of schemes, `points` labels of points (all if there are none).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Measure {
    /// `metric` of one scheme over that of another, over the points.
    Ratio {
        /// Which figure.
        metric: Figure,
        /// The scheme above.
        of: String,
        /// The scheme below.
        to: String,
        /// Where.
        #[serde(default)]
        points: Vec<String>,
        /// How the points become one.
        #[serde(default)]
        mean: Mean,
    },
    /// The smallest of the ratios (means over the points) of several schemes to one.
    LeastRatio {
        /// Which figure.
        metric: Figure,
        /// The schemes above.
        of: Vec<String>,
        /// The scheme below.
        to: String,
        /// Where.
        #[serde(default)]
        points: Vec<String>,
    },
    /// The number of points at which one scheme has the lowest figure of all.
    Lowest {
        /// Which figure.
        metric: Figure,
        /// The scheme.
        of: String,
        /// The others.
        among: Vec<String>,
        /// Where.
        #[serde(default)]
        points: Vec<String>,
    },
    /// A figure itself.
    Value {
        /// Which figure.
        metric: Figure,
        /// Whose.
        of: String,
        /// Where.
        #[serde(default)]
        points: Vec<String>,
        /// Where, as a group of drops.
        #[serde(default)]
        at: String,
        /// What several points become.
        #[serde(default)]
        over: Over,
    },
    /// How much each of these schemes has more than the one before, at least: the smallest ratio of neighbours, each
    /// being the mean over the points of the ratios to the first.
    Order {
        /// Which figure.
        metric: Figure,
        /// From the lowest to the highest.
        of: Vec<String>,
        /// Where.
        #[serde(default)]
        points: Vec<String>,
    },
    /// The same for single runs, written "scheme@point".
    Chain {
        /// Which figure.
        metric: Figure,
        /// From the lowest to the highest.
        of: Vec<String>,
    },
    /// The smallest ratio of a point's figure to that of the point before.
    Monotonic {
        /// Which figure.
        metric: Figure,
        /// Whose.
        of: String,
        /// Where.
        #[serde(default)]
        points: Vec<String>,
    },
    /// The largest figure over the smallest, less one.
    Spread {
        /// Which figure.
        metric: Figure,
        /// Whose.
        of: String,
        /// Where.
        #[serde(default)]
        points: Vec<String>,
    },
    /// The largest distance of a figure from a value of its point, relative to that.
    Deviation {
        /// Which figure.
        metric: Figure,
        /// Whose.
        of: String,
        /// Name of the value.
        from: String,
        /// Where.
        #[serde(default)]
        points: Vec<String>,
    },
    /// The number of points at which all of these figures are below those of a single run.
    Below {
        /// Which figures.
        metrics: Vec<Figure>,
        /// Whose.
        of: String,
        /// The single run.
        than: String,
    },
    /// The quotient of figures on the same drops, with its interval.
    PairedRatio(Paired),
    /// The difference of figures on the same drops, with its interval.
    PairedDifference(Paired),
    /// A function that is written for this purpose.
    Function {
        /// Which one.
        name: Function,
        /// Whose runs it looks at, if any.
        #[serde(default)]
        of: Vec<String>,
    },
    /// An expression of the algebra: what has no `kind`.
    #[serde(skip)]
    Expr(Box<Expr>),
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = serde_json::Map::deserialize(deserializer)?;
        if table.contains_key("kind") {
            return Self::deserialize(serde_json::Value::Object(table)).map_err(serde::de::Error::custom);
        }
        Expr::parse(table).map(|expr| Self::Expr(Box::new(expr))).map_err(serde::de::Error::custom)
    }
}

/// A figure that a reading takes in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherFigure {
    /// The criterion's figure.
    pub of: Figure,
    /// The one in its place.
    pub metric: Figure,
    /// What that is divided by, each over the drops first.
    pub per: Option<Figure>,
}

impl Measure {
    /// The schemes whose runs it needs.
    pub fn schemes(&self) -> Vec<String> {
        let of_cell =
            |name: &String| name.split_once('@').map_or(name.as_str(), |(scheme, _)| scheme).to_owned();
        match self {
            Self::Ratio { of, to, .. } => vec![of.clone(), to.clone()],
            Self::LeastRatio { of, to, .. } => of.iter().chain([to]).cloned().collect(),
            Self::Lowest { of, among, .. } => among.iter().chain([of]).cloned().collect(),
            Self::Value { of, .. }
            | Self::Monotonic { of, .. }
            | Self::Spread { of, .. }
            | Self::Deviation { of, .. } => vec![of.clone()],
            Self::Order { of, .. } | Self::Function { of, .. } => of.clone(),
            Self::Chain { of, .. } => of.iter().map(of_cell).collect(),
            Self::Below { of, than, .. } => vec![of.clone(), of_cell(than)],
            Self::Expr(expr) => expr.schemes(),
            Self::PairedRatio(paired) | Self::PairedDifference(paired) => {
                paired.of.iter().chain(&paired.to).cloned().collect()
            }
        }
    }

    /// The same for another scheme instead of this one.
    pub fn instead(&self, old: &str, new: &str) -> Self {
        let mut other = self.clone();
        let one = |name: &mut String| {
            let point = name.strip_prefix(old).filter(|rest| rest.is_empty() || rest.starts_with('@'));
            if let Some(point) = point {
                *name = format!("{new}{point}");
            }
        };
        match &mut other {
            Self::Ratio { of, to, .. } => [of, to].into_iter().for_each(one),
            Self::LeastRatio { of, to, .. } => of.iter_mut().chain([to]).for_each(one),
            Self::Lowest { of, among, .. } => among.iter_mut().chain([of]).for_each(one),
            Self::Value { of, .. }
            | Self::Monotonic { of, .. }
            | Self::Spread { of, .. }
            | Self::Deviation { of, .. } => one(of),
            Self::Order { of, .. } | Self::Function { of, .. } | Self::Chain { of, .. } => {
                of.iter_mut().for_each(one);
            }
            Self::Below { of, than, .. } => [of, than].into_iter().for_each(one),
            Self::Expr(expr) => expr.instead(old, new),
            Self::PairedRatio(paired) | Self::PairedDifference(paired) => {
                paired.of.iter_mut().chain(&mut paired.to).for_each(one);
            }
        }
        other
    }

    /// The same with other figures, where schemes are compared on the same drops.
    pub fn with_figures(&self, figures: &[OtherFigure]) -> Self {
        let mut other = self.clone();
        if let Self::PairedRatio(paired) | Self::PairedDifference(paired) = &mut other
            && let Some(figure) = figures.iter().find(|figure| figure.of == paired.metric)
        {
            (paired.metric, paired.per) = (figure.metric, figure.per);
        }
        other
    }

    /// Its value.
    pub fn of(&self, cells: &Cells) -> Result<Measured, Absent> {
        Ok(self.find(cells)?.0)
    }

    /// Its value, and what is compared with the bounds: the value alone, but for comparisons on the same drops.
    pub fn find(&self, cells: &Cells) -> Result<(Measured, Vec<Part>), Absent> {
        let (measured, parts) = match self {
            Self::PairedRatio(paired) => paired.find(Compare::Ratio, cells)?,
            Self::PairedDifference(paired) => paired.find(Compare::Difference, cells)?,
            other => {
                let measured = other.single(cells)?;
                let part = Part::plain(measured.value);
                (measured, vec![part])
            }
        };
        if measured.value.is_finite() {
            Ok((measured, parts))
        } else {
            Err(Absent::Nothing("a run has no such figure".to_owned()))
        }
    }

    fn single(&self, cells: &Cells) -> Result<Measured, Absent> {
        Ok(match self {
            Self::Ratio { metric, of, to, points, mean } => {
                let value = ratio(cells, *metric, of, to, points, *mean)?;
                Measured { value, text: number(value) }
            }
            Self::LeastRatio { metric, of, to, points } => {
                let each = ratios(cells, *metric, of, to, points)?;
                Measured { value: least(each.iter().map(|(_, value)| *value)), text: named(&each) }
            }
            Self::Lowest { metric, of, among, points } => lowest(cells, *metric, of, among, points)?,
            Self::Value { metric, of, points, at, over } => {
                let group: Vec<String> = match at.as_str() {
                    "" => points.clone(),
                    at => cells.group(of, at).into_iter().map(str::to_owned).collect(),
                };
                let values = values(cells, *metric, of, &group)?;
                value(*metric, &values, *over)
            }
            Self::Order { metric, of, points } => {
                let first = of.first().map_or("", String::as_str);
                let each = ratios(cells, *metric, of, first, points)?;
                let text = each.iter().map(|(name, value)| format!("{name} {}", number(*value)));
                Measured {
                    value: least_step(&each.iter().map(|(_, value)| *value).collect::<Vec<_>>()),
                    text: text.collect::<Vec<_>>().join(", "),
                }
            }
            Self::Chain { metric, of } => {
                let each: Vec<f64> =
                    of.iter().map(|name| Ok(cells.named(name)?.get(*metric))).collect::<Result<_, _>>()?;
                let text =
                    of.iter().zip(&each).map(|(name, value)| format!("{name} {}", metric.show(*value)));
                Measured { value: least_step(&each), text: text.collect::<Vec<_>>().join(", ") }
            }
            Self::Monotonic { metric, of, points } => {
                let values = values(cells, *metric, of, points)?;
                let each: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
                let step = least_step(&each);
                let ends =
                    (each.first().copied().unwrap_or(f64::NAN), each.last().copied().unwrap_or(f64::NAN));
                let text = format!(
                    "smallest step x{}; {} to {}",
                    number(step),
                    metric.show(ends.0),
                    metric.show(ends.1)
                );
                Measured { value: step, text }
            }
            Self::Spread { metric, of, points } => {
                let values = values(cells, *metric, of, points)?;
                let each = values.iter().map(|(_, value)| *value);
                let value = greatest(each.clone()) / least(each) - 1.0;
                Measured { value, text: format!("{} %", number(value * 100.0)) }
            }
            Self::Deviation { metric, of, from, points } => deviation(cells, *metric, of, from, points)?,
            Self::Below { metrics, of, than } => {
                let limit = cells.named(than)?;
                let below = |cell: &Cell| metrics.iter().all(|metric| cell.get(*metric) < limit.get(*metric));
                let found: Vec<&str> = cells
                    .of(of, &[])?
                    .into_iter()
                    .filter(|(_, cell)| below(cell))
                    .map(|(point, _)| point)
                    .collect();
                let text = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
                Measured { value: found.len() as f64, text }
            }
            Self::Function { name, of } => name.of(of, cells)?,
            Self::Expr(expr) => expr.of(cells)?,
            Self::PairedRatio(paired) => paired.find(Compare::Ratio, cells)?.0,
            Self::PairedDifference(paired) => paired.find(Compare::Difference, cells)?.0,
        })
    }
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
