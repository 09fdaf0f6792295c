//! The text of a measure.
//!
//! `show` has fields in braces: `{value}` of the group, `{of}` and `{to}` (both terms, reduced), of the samples `{least}`,
//! `{most}`, `{mean}`, `{sum}`, `{deviation}`, `{ci95}` and `{half90}` (half of a 95 and 90 % interval of the mean), `{count}`
//! (those that have the figure), `{all}`, `{without}`, `{values}`, `{histogram}` (how many are 1, 2, ...), `{first}`, `{last}`,
//! `{point}` and `{where}` (the point, and the run, that gave the value), `{group}`, `{scheme}`, and the names of `with`. A colon
//! introduces the format of a number: `int`, `unit` (with the figure's unit), `bare` (in the unit that fits the value, without its
//! name), `%`, `k`, `M`, `m` (divided by 0.01, 10^3, 10^6, 10^-3), `+%` (in percent with a sign and one decimal); the default is
//! four digits.
//!
//! `around` has the texts of all groups in `{}`, and the same fields for the combination of the groups.
//!
//! Without `show`, a term is shown with its unit and its range, a comparison with its interval.

use super::select::Sample;
use super::{Absent, Expr, Group, Results, Source};
use crate::figures::{Quantity, Unit, number};
use crate::stats;

/// The templates of a measure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Show {
    /// The template of a group.
    pub group: Option<String>,
    /// Between groups.
    pub join: Option<String>,
    /// Around all groups.
    pub around: Option<String>,
}

/// A term of `with`: the numbers of its groups.
type Side = (String, Vec<f64>);

impl Expr {
    /// The text of all groups.
    pub(super) fn text(&self, groups: &[Group<'_>], value: f64, results: &Results) -> Result<String, Absent> {
        let sides = self.with.iter().map(|(name, term)| {
            let values = term.groups(results)?.iter().map(|group| group.value).collect();
            Ok((name.clone(), values))
        });
        let sides: Vec<Side> = sides.collect::<Result<_, Absent>>()?;
        let texts = groups.iter().enumerate().map(|(index, group)| match &self.show.group {
            Some(template) => self.filled(template, group, index, &sides),
            None => Ok(self.plain(group)),
        });
        let texts: Vec<String> = texts.collect::<Result<_, String>>().map_err(Absent::Nothing)?;
        let text = texts.join(self.show.join.as_deref().unwrap_or("; "));
        let Some(around) = &self.show.around else { return Ok(text) };
        let sample = |group: &Group<'_>| Sample {
            scheme: "",
            point: "",
            group: group.name.clone(),
            value: group.value,
            sides: None,
        };
        let all = Group::plain(String::new(), value, groups.iter().map(sample).collect());
        let ends = around.splitn(2, "{}").map(|end| self.filled(end, &all, 0, &sides));
        let ends: Vec<String> = ends.collect::<Result<_, String>>().map_err(Absent::Nothing)?;
        Ok(ends.join(&text))
    }

    pub(super) fn quantity(&self) -> Quantity {
        match &self.source {
            Source::Figure(figure) => figure.quantity(),
            Source::Term(term) => term.quantity(),
            _ => Quantity::Plain,
        }
    }

    /// The text of a group without a template.
    fn plain(&self, group: &Group<'_>) -> String {
        let is_named = self.each.as_ref().is_some_and(|each| each != "part");
        let name = if is_named { format!("{}: ", group.name) } else { String::new() };
        let text = match (&self.compare, group.both) {
            (Some(compare), Some(both)) if compare.pairs.is_some() => self.of_pairs(group, both),
            (Some(compare), _) if self.runs.is_some() => {
                format!("{} over {}", self.range(&group.values()), compare.to.range(&group.other))
            }
            (Some(_), _) => {
                let note = if group.straddles { ", on both sides of 1" } else { "" };
                let mean = number(stats::mean(&group.values()).unwrap_or(f64::NAN));
                match group.half {
                    Some(half) => format!("{mean} ± {}{note}", number(half)),
                    None => mean,
                }
            }
            (None, _) => self.range(&group.values()),
        };
        format!("{name}{text}")
    }

    /// "1.12 ± 0.03 (79.66 over 71.15 ms)".
    fn of_pairs(&self, group: &Group<'_>, (own, other): (f64, f64)) -> String {
        let half =
            stats::ci95(&group.values()).map_or_else(String::new, |half| format!(" ± {}", number(half)));
        let unit = self.quantity().unit([own, other]);
        let name = spaced(unit);
        format!("{}{half} ({} over {}{name})", number(group.value), unit.show(own), unit.show(other))
    }

    /// A value with its unit, and the range of the samples if they differ.
    fn range(&self, values: &[f64]) -> String {
        let show = |value: f64| self.quantity().show(value);
        let (least, most) = ends(values);
        let value = self.scale * self.reduced_values(values);
        match (self.runs, values.len()) {
            (_, 1) => show(value),
            (None, _) if show(least) == show(most) => show(value),
            (Some(_), _) if least == most => format!("{} in all", show(value)),
            (None | Some(super::Reduce::Mean), _) => {
                format!("{} ({} to {})", show(value), show(least), show(most))
            }
            (Some(_), _) => format!("{} to {}", show(least), show(most)),
        }
    }

    /// A template with its fields replaced.
    fn filled(
        &self,
        template: &str,
        group: &Group<'_>,
        index: usize,
        sides: &[Side],
    ) -> Result<String, String> {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (field, after) =
                after.split_once('}').ok_or_else(|| format!("show = {template:?}: a brace is open"))?;
            let (name, format) = field.split_once(':').unwrap_or((field, ""));
            text.push_str(before);
            text.push_str(&match group.words(name) {
                Some(words) => words,
                None => {
                    let side = sides.iter().find(|(own, _)| own == name).map(|(_, values)| values);
                    let side = side.and_then(|values| values.get(index).or(values.first()).copied());
                    let value = side.or_else(|| group.number(name));
                    let value = value.ok_or_else(|| format!("show = {template:?}: no field {name:?}"))?;
                    self.formatted(value, format, group)
                        .ok_or_else(|| format!("show = {template:?}: no format {format:?}"))?
                }
            });
            rest = after;
        }
        text.push_str(rest);
        Ok(text)
    }

    fn formatted(&self, value: f64, format: &str, group: &Group<'_>) -> Option<String> {
        Some(match format {
            "" => number(value),
            "int" => format!("{value:.0}"),
            "unit" => self.quantity().show(value),
            "bare" => self.quantity().unit([group.value]).show(value),
            "%" => number(100.0 * value),
            "+%" => format!("{:+.1}", 100.0 * value),
            "k" => number(value / 1e3),
            "M" => number(value / 1e6),
            "m" => number(1e3 * value),
            _ => return None,
        })
    }

    /// The fields that a template may have, for checking an experiment when it is parsed.
    pub(super) fn unknown_field(&self) -> Option<String> {
        let group = Group { both: Some((0.0, 0.0)), ..Group::plain(String::new(), 0.0, Vec::new()) };
        let sides: Vec<Side> = self.with.keys().map(|name| (name.clone(), vec![0.0])).collect();
        let around = self.show.around.iter().flat_map(|around| around.splitn(2, "{}"));
        let mut templates = around.chain(self.show.group.as_deref());
        templates.find_map(|template| self.filled(template, &group, 0, &sides).err())
    }
}

/// " Mbit/s", or nothing.
fn spaced(unit: Unit) -> String {
    if unit.name.is_empty() { String::new() } else { format!(" {}", unit.name) }
}

/// The smallest and the largest; NaN if one is.
fn ends(values: &[f64]) -> (f64, f64) {
    if values.iter().any(|value| value.is_nan()) {
        return (f64::NAN, f64::NAN);
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

impl<'a> Group<'a> {
    /// Over samples that were not compared.
    pub(super) fn plain(name: String, value: f64, samples: Vec<Sample<'a>>) -> Self {
        Self { name, value, samples, other: Vec::new(), both: None, half: None, straddles: false }
    }

    fn values(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.value).collect()
    }

    fn known(&self) -> Vec<f64> {
        self.values().into_iter().filter(|value| !value.is_nan()).collect()
    }

    /// A field that is not a number, or has only one format.
    fn words(&self, name: &str) -> Option<String> {
        let known = self.known();
        Some(match name {
            "group" => self.name.clone(),
            "scheme" => self.samples.first().map_or("", |sample| sample.scheme).to_owned(),
            "where" | "point" => {
                let found = self.samples.iter().find(|sample| sample.value == self.value);
                let shown = |sample: &Sample<'_>| match name {
                    "point" => sample.point.to_owned(),
                    _ => format!("{}, {}", sample.scheme, sample.point),
                };
                found.map_or_else(String::new, shown)
            }
            "count" => known.len().to_string(),
            "all" => self.samples.len().to_string(),
            "without" => (self.samples.len() - known.len()).to_string(),
            "values" => known.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", "),
            "histogram" => {
                let most = known.iter().copied().fold(0.0, f64::max) as usize;
                let of = |length| known.iter().filter(|value| **value as usize == length).count();
                let counts = (1..=most).map(|length| format!("{} of {length}", of(length)));
                counts.collect::<Vec<_>>().join(", ")
            }
            _ => return None,
        })
    }

    fn number(&self, name: &str) -> Option<f64> {
        let known = self.known();
        let mean = stats::mean(&known).unwrap_or(f64::NAN);
        Some(match name {
            "value" => self.value,
            "of" => self.both?.0,
            "to" => self.both?.1,
            "least" => ends(&known).0,
            "most" => ends(&known).1,
            "mean" => mean,
            "first" => known.first().copied().unwrap_or(f64::NAN),
            "last" => known.last().copied().unwrap_or(f64::NAN),
            "sum" => known.iter().sum(),
            // The deviation of a single value is zero here: nothing varies.
            "deviation" => {
                let squares: f64 = known.iter().map(|one| (one - mean) * (one - mean)).sum();
                (squares / (known.len().max(2) - 1) as f64).sqrt()
            }
            "ci95" => stats::ci95(&known).unwrap_or(f64::NAN),
            "half90" => half90(&known),
            _ => return None,
        })
    }
}

/// Half of the 90 % interval of the mean: the thesis of MELD shows 95 %, its paper 90 % intervals.
fn half90(values: &[f64]) -> f64 {
    let t = t90(values.len().saturating_sub(1));
    stats::deviation(values).map_or(f64::NAN, |deviation| t * deviation / (values.len() as f64).sqrt())
}

/// The 95th percentile of Student's t, so that 90 % are within, by degrees of freedom from 1 to 20.
const T90: [f64; 20] = [
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753,
    1.746, 1.740, 1.734, 1.729, 1.725,
];

/// The same for any degrees of freedom: beyond the table by the first two terms of Fisher and Cornish's expansion about the normal
/// distribution's 1.6449, which is exact to 0.001 there.
fn t90(freedom: usize) -> f64 {
    const Z: f64 = 1.6449;
    let expanded = |freedom: f64| {
        let (first, second) = (Z * (Z * Z + 1.0) / 4.0, Z * (5.0 * Z.powi(4) + 16.0 * Z * Z + 3.0) / 96.0);
        Z + first / freedom + second / (freedom * freedom)
    };
    let tabled = freedom.checked_sub(1).map(|at| T90.get(at).copied().unwrap_or(expanded(freedom as f64)));
    tabled.unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_90_percent_interval_is_known_for_any_number() {
        for (freedom, expected) in
            [(1, 6.314), (20, 1.725), (21, 1.721), (30, 1.697), (39, 1.685), (120, 1.658)]
        {
            assert!((t90(freedom) - expected).abs() < 1e-3, "{freedom}: {}", t90(freedom));
        }
        assert!(t90(0).is_nan());
    }
}
