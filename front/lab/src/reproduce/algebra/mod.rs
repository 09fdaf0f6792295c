//! The algebra of criteria: what is measured of an experiment's runs, expressed in the experiment's own file.
//!
//! A measure is a **term**, or two terms compared, and yields one number and a text:
//!
//! ```toml
//! measure = { figure = "completion", flow = "short", of = "none", over = { of = "rapid" } }
//! ```
//!
//! A term selects **samples** and reduces them, in this order:
//!
//! 1. *Runs* (`select.rs`): those of the schemes `of`, at the group of points `at = "EVA 100m"`, at several groups, or where places
//!    have values (`at = { rtt = "1ms" }`); at all points if `at` is omitted.
//! 2. *Within a run*: a `figure` of the table (`crate::figure`), a `column` of the first flow's series, the `place` of the run as a
//!    number, or a constant `value`. A figure covers all flows, the one `flow` with a name (`""` means all again), or a group of
//!    `flows`; and the whole run or a window (`from`, `until`, `last`, `after_join`, `while_all`). `take` reduces the several
//!    numbers of a column, or of a figure of flows, transfers or rows, to one; without it each is a sample.
//! 3. *Groups*: `each` separates samples by a place, by `"point"`, `"scheme"`, `"group"` (scheme and first word of the point),
//!    `"at"`, or `"part"` (the number of the sample in its run). Each group yields one number, and `across` combines several
//!    groups.
//! 4. *One number per group* (`reduce.rs`): `runs = "mean"`, `"max"` and so on reduces the samples. `sparse` ignores those without
//!    the figure; where as many runs of two terms are reduced, those that lack it in either.
//!
//! One of the keys `over` (a/b), `less` (a-b), `excess` (a/b-1), `reduction` (1-a/b), `distance` (|a-b|) and `differs` (1 where the
//! bits differ) compares with a second term. It inherits the keys of the first term that it does not set, except `across`, `show`,
//! `with` and `scale`. With `runs`, both terms are reduced and then compared. With `pairs = "mean"`, they are compared sample by
//! sample and the results are reduced. With neither, they are compared sample by sample, the mean counts, and a ratio whose 95 %
//! interval contains 1 claims no direction: it counts as 1, unless its mean is on the worse side of 1, which `across` determines.
//! With `drops = "mean"` both terms are reduced over the drops of each group of `at` for each of the schemes, and the comparison
//! has an interval that must lie on the bound's side (`drops.rs`). A second term of one scheme is compared with each scheme of the
//! first. A whole measure may be a `term` of another one.
//!
//! `scale` multiplies the result. `show` is the text of a group (`show.rs`), with further terms in `with`; texts of groups are
//! joined by `join` and inserted into the `{}` of `around`.

mod drops;
mod parse;
mod reduce;
mod select;
mod show;

use std::collections::BTreeMap;
use std::iter;

use super::measured::Measured;
use super::results::{Absent, Results};
use crate::figure::{Figure, Flows, Window};
use crate::stats;

use drops::Drops;
pub use drops::Part;
pub use reduce::Reduce;
use select::{At, Sample};
use show::Show;

/// A term, or two terms compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    source: Source,
    of: Vec<String>,
    at: At,
    flows: Flows,
    window: Window,
    take: Option<Take>,
    each: Option<String>,
    across: Across,
    runs: Option<Reduce>,
    drops: Option<Drops>,
    /// Over drops, the divisor of the figure: each is reduced over the drops first, because a share of all bytes is not the mean of
    /// the drops' shares.
    per: Option<Figure>,
    sparse: bool,
    scale: f64,
    compare: Option<Compare>,
    show: Show,
    with: BTreeMap<String, Expr>,
}

/// The source of a run's numbers.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Figure(Figure),
    Column(String),
    Place(String),
    Value(f64),
    Term(Box<Expr>),
}

/// How the several numbers of a run are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Take {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The mean.
    Mean,
    /// The last known one, up to `until`; zero if none is known by then.
    Last,
    /// The difference of the last one from that at `from`.
    Growth,
}

/// How several groups are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Across {
    /// Their mean.
    #[default]
    Mean,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The first.
    First,
    /// The smallest difference between one and its predecessor.
    LeastRise,
    /// The smallest ratio of one to its predecessor.
    LeastGrowth,
    /// The smallest ratio of one to its successor.
    LeastFall,
    /// The one farthest from zero, as an absolute value.
    Size,
}

/// A comparison with a second term.
#[derive(Clone, Debug, PartialEq)]
struct Compare {
    op: Op,
    to: Box<Expr>,
    pairs: Option<Reduce>,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Over,
    Less,
    Excess,
    Reduction,
    Distance,
    Differs,
}

impl Op {
    /// All, by their keys.
    const KEYS: [(&'static str, Self); 6] = [
        ("over", Self::Over),
        ("less", Self::Less),
        ("excess", Self::Excess),
        ("reduction", Self::Reduction),
        ("distance", Self::Distance),
        ("differs", Self::Differs),
    ];

    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Over => a / b,
            Self::Less => a - b,
            Self::Excess => a / b - 1.0,
            Self::Reduction => 1.0 - a / b,
            Self::Distance => (a - b).abs(),
            Self::Differs => f64::from(u8::from(a.to_bits() != b.to_bits())),
        }
    }
}

/// A figure that a reading replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherFigure {
    /// The criterion's figure.
    pub of: Figure,
    /// The figure in its place.
    pub metric: Figure,
    /// The divisor of that, each reduced over the drops first.
    pub per: Option<Figure>,
}

/// The number of a group, and its inputs.
#[derive(Clone, Debug)]
struct Group<'a> {
    name: String,
    value: f64,
    /// The reduced values: of the term, or of the comparison of pairs.
    samples: Vec<Sample<'a>>,
    /// The values that the second term was reduced from, with `runs`.
    other: Vec<f64>,
    /// Both terms reduced, if they are compared.
    both: Option<(f64, f64)>,
    /// Half of the 95 % interval of a mean of ratios that claims a direction.
    half: Option<f64>,
    straddles: bool,
}

impl Expr {
    /// Its value and text.
    pub fn of(&self, results: &Results) -> Result<Measured, Absent> {
        Ok(self.find(results)?.0)
    }

    /// The same, and what is compared with the bounds: the value alone, except for comparisons over drops.
    pub fn find(&self, results: &Results) -> Result<(Measured, Vec<Part>), Absent> {
        if let (Some(drops), Some(compare)) = (&self.drops, &self.compare) {
            return self.over_drops(drops, compare, results);
        }
        let groups = self.groups(results)?;
        let values: Vec<f64> = groups.iter().map(|group| group.value).collect();
        let value = self.across.of(&values);
        let text = self.text(&groups, value, results)?;
        Ok((Measured { value, text }, vec![Part::plain(value)]))
    }

    /// The schemes whose runs it needs.
    pub fn schemes(&self) -> Vec<String> {
        let parts = self.parts().flat_map(Self::schemes);
        self.of.iter().cloned().chain(parts).collect()
    }

    /// The same with this scheme replaced by another.
    pub fn instead(&mut self, old: &str, new: &str) {
        for scheme in self.of.iter_mut().filter(|scheme| *scheme == old) {
            new.clone_into(scheme);
        }
        let compared = self.compare.iter_mut().map(|compare| &mut *compare.to);
        let term = match &mut self.source {
            Source::Term(term) => Some(&mut **term),
            _ => None,
        };
        for part in compared.chain(term).chain(self.with.values_mut()) {
            part.instead(old, new);
        }
    }

    /// The same with other figures, where schemes are compared over drops.
    pub fn with_figures(&mut self, figures: &[OtherFigure]) {
        let Some(compare) = self.compare.as_mut().filter(|_| self.drops.is_some()) else { return };
        for (source, per) in
            [(&mut self.source, &mut self.per), (&mut compare.to.source, &mut compare.to.per)]
        {
            let other = figures.iter().find(|other| *source == Source::Figure(other.of));
            if let Some(other) = other {
                (*source, *per) = (Source::Figure(other.metric), other.per);
            }
        }
    }

    fn parts(&self) -> impl Iterator<Item = &Self> {
        let term = match &self.source {
            Source::Term(term) => Some(&**term),
            _ => None,
        };
        self.compare.iter().map(|compare| &*compare.to).chain(term).chain(self.with.values())
    }

    /// A number for each group.
    fn groups<'c>(&self, results: &'c Results) -> Result<Vec<Group<'c>>, Absent> {
        let own = self.samples(results)?;
        let Some(compare) = &self.compare else {
            let groups = by_group(own).into_iter().map(|(name, samples)| {
                let value = self.scale * self.reduced(&samples);
                Group::plain(name, value, samples)
            });
            return Ok(groups.collect());
        };
        let other = compare.to.samples(results)?;
        if self.runs.is_some() {
            return Ok(self.compared(compare, own, &other));
        }
        let schemes = if compare.to.of.len() == 1 { self.of.len().max(1) } else { 1 };
        let other: Vec<Sample<'_>> = iter::repeat_n(other, schemes).flatten().collect();
        if own.len() != other.len() && compare.op != Op::Differs {
            return Err(Absent::Nothing(format!("{} runs over {}", own.len(), other.len())));
        }
        Ok(self.paired(compare, &own, &other))
    }

    /// Reduces each group, then compares it with the group of the same name, or with all if there is none.
    fn compared<'c>(&self, compare: &Compare, own: Vec<Sample<'c>>, other: &[Sample<'c>]) -> Vec<Group<'c>> {
        let groups = by_group(own).into_iter().map(|(name, samples)| {
            let same: Vec<Sample<'c>> = other.iter().filter(|sample| sample.group == name).cloned().collect();
            let same = if same.is_empty() { other } else { &same };
            let (above, below) = if self.sparse && samples.len() == same.len() {
                // Means of other runs on both sides would compare these runs, not the schemes.
                let both = samples.iter().zip(same).filter(|(a, b)| !a.value.is_nan() && !b.value.is_nan());
                let (above, below): (Vec<f64>, Vec<f64>) = both.map(|(a, b)| (a.value, b.value)).unzip();
                (self.reduced_values(&above), compare.to.reduced_values(&below))
            } else {
                (self.reduced(&samples), compare.to.reduced(same))
            };
            let value = self.scale * compare.op.of(above, below);
            let other = same.iter().map(|sample| sample.value).collect();
            let both = Some((above, below));
            Group { name, value, samples, other, both, half: None, straddles: false }
        });
        groups.collect()
    }

    /// Compared sample by sample.
    fn paired<'c>(&self, compare: &Compare, own: &[Sample<'c>], other: &[Sample<'c>]) -> Vec<Group<'c>> {
        let pair = |index: usize| {
            let (a, b) = (own.get(index), other.get(index));
            let (value, sides) = match (a, b) {
                (Some(a), Some(b)) => (self.scale * compare.op.of(a.value, b.value), (a.value, b.value)),
                // A value missing on one side only counts as a difference.
                _ => (1.0, (f64::NAN, f64::NAN)),
            };
            a.or(b).map(|sample| Sample { value, sides: Some(sides), ..sample.clone() })
        };
        let pairs = (0..own.len().max(other.len())).filter_map(pair).collect();
        by_group(pairs)
            .into_iter()
            .map(|(name, samples)| self.group_of_pairs(compare, name, samples))
            .collect()
    }

    /// The pairs of a group reduced, or their mean if it claims a direction.
    fn group_of_pairs<'c>(&self, compare: &Compare, name: String, samples: Vec<Sample<'c>>) -> Group<'c> {
        let mean_of = |side: fn((f64, f64)) -> f64| {
            let values: Vec<f64> = samples.iter().filter_map(|sample| sample.sides).map(side).collect();
            stats::mean(&values).unwrap_or(f64::NAN)
        };
        let both = Some((mean_of(|sides| sides.0), mean_of(|sides| sides.1)));
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        let other = Vec::new();
        if let Some(reduce) = compare.pairs {
            let value = reduce.of(&values);
            return Group { name, value, samples, other, both, half: None, straddles: false };
        }
        let mean = stats::mean(&values).unwrap_or(f64::NAN);
        let half = stats::ci95(&values);
        let has_1 = |half| (mean - half < 1.0) != (mean + half < 1.0);
        let straddles = compare.op == Op::Over && half.is_some_and(has_1);
        let value = match (straddles, self.across) {
            (false, _) => mean,
            (true, Across::Max) => mean.max(1.0),
            (true, _) => mean.min(1.0),
        };
        Group { name, value, samples, other, both, half, straddles }
    }

    /// Samples reduced to one number.
    fn reduced(&self, samples: &[Sample<'_>]) -> f64 {
        self.reduced_values(&samples.iter().map(|sample| sample.value).collect::<Vec<_>>())
    }

    fn reduced_values(&self, values: &[f64]) -> f64 {
        let known = values.iter().copied().filter(|value| !self.sparse || !value.is_nan());
        self.runs.unwrap_or_default().of(&known.collect::<Vec<_>>())
    }
}

/// Samples by group, in the order in which groups first appear.
fn by_group(samples: Vec<Sample<'_>>) -> Vec<(String, Vec<Sample<'_>>)> {
    let mut groups: Vec<(String, Vec<Sample<'_>>)> = Vec::new();
    for sample in samples {
        match groups.iter_mut().rev().find(|(name, _)| *name == sample.group) {
            Some((_, samples)) => samples.push(sample),
            None => groups.push((sample.group.clone(), vec![sample])),
        }
    }
    groups
}

impl Across {
    fn of(self, values: &[f64]) -> f64 {
        let least = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min).unwrap_or(f64::NAN);
        match self {
            Self::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Self::Max => values.iter().copied().reduce(f64::max).unwrap_or(f64::NAN),
            Self::Min => least(&mut values.iter().copied()),
            Self::First => values.first().copied().unwrap_or(f64::NAN),
            Self::LeastRise => least(&mut values.windows(2).map(|pair| pair[1] - pair[0])),
            Self::LeastGrowth => least(&mut values.windows(2).map(|pair| pair[1] / pair[0])),
            Self::Size => Reduce::Farthest.of(values).abs(),
            Self::LeastFall => least(&mut values.windows(2).map(|pair| pair[0] / pair[1])),
        }
    }
}

#[cfg(test)]
pub mod tests;
