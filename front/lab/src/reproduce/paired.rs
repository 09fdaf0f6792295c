//! Schemes compared on the same drops: the same seeds, and so the same places and the same fading for all.
//!
//! Drops are the points of a group; the points "1MB drop 1" and "1MB drop 2" are of the group "1MB". A figure of a scheme is
//! its mean over the drops (or median, or smallest), the comparison is that of two such figures, and its 95 % interval comes
//! from drawing whole drops, with what all schemes had in them (percentile bootstrap; Efron and Tibshirani, "An Introduction
//! to the Bootstrap", 1993, chapter 13).

use serde::Deserialize;

use super::algebra::Reduce;
use super::cells::{Absent, Cell, Cells};
use super::measured::Measured;
use crate::figure::Figure;
use crate::figures::number;
use crate::stats;

/// How often drops are drawn.
const RESAMPLES: usize = 2_000;
/// Seed of these draws, so that the same figures always have the same interval.
const SEED: u64 = 0x004_5eed;

/// Figures of several pairs of schemes in several groups.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paired {
    /// Which figure.
    pub metric: Figure,
    /// The figure of a scheme is a quotient: `metric` over this one, each of which becomes one over the drops before it is
    /// divided. A share of all bytes is not the mean of the drops' shares.
    pub per: Option<Figure>,
    /// Another figure for the schemes below.
    pub to_metric: Option<Figure>,
    /// The schemes above.
    pub of: Vec<String>,
    /// For each of these the one below.
    pub to: Vec<String>,
    /// The groups; all points are one if there are none.
    #[serde(default)]
    pub at: Vec<String>,
    /// The group of the schemes below, if it is another one.
    pub to_at: Option<String>,
    /// The group by whose comparison the others are divided (or that is subtracted).
    pub against: Option<String>,
    /// What the drops become.
    #[serde(default)]
    pub drops: Reduce,
    /// Whether the mean over pairs and groups is compared with the bounds, in place of each of them.
    #[serde(default)]
    pub together: bool,
}

/// How two figures are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Their quotient; one says nothing.
    Ratio,
    /// Their difference; zero says nothing.
    Difference,
}

/// A value that is compared with the bounds, and the interval that it lies in.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The value.
    pub value: f64,
    /// Ends of its 95 % interval; `None` for what is not estimated from drops.
    pub interval: Option<(f64, f64)>,
    /// The value that says nothing.
    pub neutral: f64,
}

impl Part {
    /// A value without an interval.
    pub fn plain(value: f64) -> Self {
        Self { value, interval: None, neutral: 1.0 }
    }

    /// Whether it is within the bounds, and its interval on their side of what says nothing. A bound on the other side of
    /// that, such as "at least 0.97 times", asks for no direction, and so nothing of the interval.
    pub fn holds(&self, at_least: Option<f64>, at_most: Option<f64>) -> bool {
        let ends = self.interval.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
        at_least.is_none_or(|least| self.value >= least && (least < self.neutral || ends.0 > self.neutral))
            && at_most.is_none_or(|most| self.value <= most && (most > self.neutral || ends.1 < self.neutral))
    }
}

/// A figure of a drop and what it is divided by over the drops, one if nothing.
type Pair = [f64; 2];
/// Drops of a pair in a group (and in that of `against`): the figures of both schemes.
type Drops = Vec<[Pair; 2]>;

impl Paired {
    /// Whether every scheme has its counterpart.
    pub fn is_paired(&self) -> bool {
        self.of.len() == self.to.len() && !self.of.is_empty()
    }

    /// The values and what is shown of them.
    pub fn find(&self, compare: Compare, cells: &Cells) -> Result<(Measured, Vec<Part>), Absent> {
        let whole = [String::new()];
        let groups = if self.at.is_empty() { &whole[..] } else { &self.at[..] };
        let mut named = Vec::new();
        for (of, to) in self.of.iter().zip(&self.to) {
            let is_unique = self.of.iter().filter(|other| *other == of).count() == 1;
            let pair = if is_unique { of.clone() } else { format!("{of}/{to}") };
            for group in groups {
                let name = match (self.of.len() > 1, groups.len() > 1) {
                    (false, false) => String::new(),
                    (true, false) => format!("{pair} "),
                    (false, true) => format!("{group} "),
                    (true, true) => format!("{pair} {group} "),
                };
                let drops = self.drops(cells, of, to, group)?;
                let against = self.against.as_ref().map(|group| self.drops(cells, of, to, group));
                named.push((name, drops, against.transpose()?));
            }
        }
        let each: Vec<(Drops, Option<Drops>)> =
            named.iter().map(|(_, drops, against)| (drops.clone(), against.clone())).collect();
        let neutral = if compare == Compare::Ratio { 1.0 } else { 0.0 };
        let show = |value: f64| match compare {
            Compare::Ratio => number(value),
            Compare::Difference => self.metric.show(value),
        };
        let text = |part: &Part| {
            let ends = part.interval.map(|(low, high)| format!(" [{}, {}]", show(low), show(high)));
            format!("{}{}", show(part.value), ends.unwrap_or_default())
        };
        let parts: Vec<Part> = each.chunks(1).map(|one| self.part(compare, one, neutral)).collect();
        let mut texts: Vec<String> =
            named.iter().zip(&parts).map(|((name, ..), part)| format!("{name}{}", text(part))).collect();
        if !self.together || parts.len() == 1 {
            // Of several, the one that is judged first is the least favourable only if one knows the bounds; shown is all.
            let value = parts.first().map_or(f64::NAN, |part| part.value);
            let all_there = parts.iter().all(|part| part.value.is_finite());
            let measured =
                Measured { value: if all_there { value } else { f64::NAN }, text: texts.join(", ") };
            return Ok((measured, parts));
        }
        let mean = self.part(compare, &each, neutral);
        texts.insert(0, format!("mean {}", text(&mean)));
        Ok((Measured { value: mean.value, text: texts.join(", ") }, vec![mean]))
    }

    /// Figures of both schemes in the drops that have both.
    fn drops(&self, cells: &Cells, of: &str, to: &str, group: &str) -> Result<Drops, Absent> {
        let points = cells.group(of, group);
        if points.is_empty() {
            return Err(Absent::Nothing(format!("{of} is not played at {group}")));
        }
        let below = self.to_metric.unwrap_or(self.metric);
        let others = self.to_at.as_ref().map_or_else(|| points.clone(), |group| cells.group(to, group));
        let pairs = points.iter().zip(others);
        pairs
            .map(|(of_at, to_at)| {
                let figure =
                    |cell: &Cell, metric| [cell.get(metric), self.per.map_or(1.0, |per| cell.get(per))];
                Ok([figure(cells.at(of, of_at)?, self.metric), figure(cells.at(to, to_at)?, below)])
            })
            .collect()
    }

    /// The mean over these comparisons, with its interval.
    fn part(&self, compare: Compare, each: &[(Drops, Option<Drops>)], neutral: f64) -> Part {
        let whole = |pick: &dyn Fn(usize) -> usize| {
            let values: Vec<f64> = each
                .iter()
                .map(|(drops, against)| {
                    let own = self.compared(compare, drops, pick);
                    match (against, compare) {
                        (None, _) => own,
                        (Some(other), Compare::Ratio) => own / self.compared(compare, other, pick),
                        (Some(other), Compare::Difference) => own - self.compared(compare, other, pick),
                    }
                })
                .collect();
            stats::mean(&values).unwrap_or(f64::NAN)
        };
        let value = whole(&|drop| drop);
        let count = each.iter().map(|(drops, _)| drops.len()).max().unwrap_or(0);
        let mut draws = Draws(SEED);
        let mut picked = vec![0; count];
        let mut found: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                picked.fill_with(|| draws.below(count));
                whole(&|drop| picked[drop])
            })
            .filter(|value| value.is_finite())
            .collect();
        found.sort_by(f64::total_cmp);
        let at = |share: f64| found.get(((found.len() as f64 - 1.0) * share).round() as usize).copied();
        Part { value, interval: at(0.025).zip(at(0.975)), neutral }
    }

    /// What the figures of the drops become.
    fn one(&self, figures: &[Pair]) -> f64 {
        let of = |part: usize| self.drops.of(&figures.iter().map(|figure| figure[part]).collect::<Vec<_>>());
        if self.per.is_some() { of(0) / of(1) } else { of(0) }
    }

    /// The comparison over the drops that are picked.
    fn compared(&self, compare: Compare, drops: &Drops, pick: &dyn Fn(usize) -> usize) -> f64 {
        // Groups of one experiment have as many drops each; if not, the shorter one is gone through again.
        let chosen = (0..drops.len()).map(|drop| drops[pick(drop) % drops.len()]);
        let both = chosen.filter(|figures| figures.as_flattened().iter().all(|figure| figure.is_finite()));
        let (of, to): (Vec<Pair>, Vec<Pair>) = both.map(|[of, to]| (of, to)).unzip();
        let (of, to) = (self.one(&of), self.one(&to));
        match compare {
            Compare::Ratio => of / to,
            Compare::Difference => of - to,
        }
    }
}

/// Random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        // The share of 2^64 as a share of `count`.
        ((u128::from(mixed) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Values;
    use crate::synthetic;

    /// Scheme b has twice what a has in the small group and as much in the large one, but for noise that both share.
    fn cells() -> Cells {
        let mut cells = Cells::default();
        let run = synthetic::run("cubic", 1);
        for group in ["1MB", "10MB"] {
            for drop in 1..=40 {
                let luck = 1.0 + f64::from(drop % 7) * 0.3;
                let own = f64::from(drop % 3) * 0.02;
                let factor = if group == "1MB" { 2.0 } else { 1.0 };
                for (scheme, value) in [("a", luck), ("b", luck * (factor + own - 0.02))] {
                    let cell = Cell::new(Values::new(), run.clone()).with("throughput", value);
                    cells.enter(scheme, &format!("{group} drop {drop}"), Ok(cell));
                }
            }
        }
        cells
    }

    fn paired(more: &str) -> Paired {
        let text = format!("metric = \"throughput\"\nof = [\"b\"]\nto = [\"a\"]\n{more}");
        toml_edit::de::from_str(&text).unwrap()
    }

    #[test]
    fn luck_that_both_share_does_not_widen_the_interval() {
        let (measured, parts) = paired("at = [\"1MB\"]").find(Compare::Ratio, &cells()).unwrap();
        let (low, high) = parts[0].interval.unwrap();
        assert!((measured.value - 2.0).abs() < 0.01, "{measured:?}");
        assert!(low > 1.99 && high < 2.01 && low < measured.value && measured.value < high, "{low} {high}");
        assert!(measured.text.starts_with("2.0") || measured.text.starts_with("1.99"), "{}", measured.text);
        // The same draws each time.
        assert_eq!(paired("at = [\"1MB\"]").find(Compare::Ratio, &cells()).unwrap().1, parts);
    }

    #[test]
    fn groups_are_compared_each_together_or_with_each_other() {
        let cells = cells();
        let each = paired("at = [\"1MB\", \"10MB\"]").find(Compare::Ratio, &cells).unwrap();
        assert_eq!(each.1.len(), 2);
        assert!(each.0.text.starts_with("1MB ") && each.0.text.contains(", 10MB "), "{}", each.0.text);
        let mean = paired("at = [\"1MB\", \"10MB\"]\ntogether = true").find(Compare::Ratio, &cells).unwrap();
        assert_eq!(mean.1.len(), 1);
        assert!((mean.0.value - 1.5).abs() < 0.01, "{:?}", mean.0);
        let gain = paired("at = [\"1MB\"]\nagainst = \"10MB\"").find(Compare::Ratio, &cells).unwrap();
        assert!((gain.0.value - 2.0).abs() < 0.01, "{:?}", gain.0);
        let more = paired("at = [\"1MB\"]").find(Compare::Difference, &cells).unwrap();
        assert!((more.0.value - 1.9).abs() < 0.1 && more.1[0].neutral == 0.0, "{:?}", more.0);
        let own = paired("at = [\"1MB\"]\nto_at = \"10MB\"").find(Compare::Ratio, &cells).unwrap();
        assert!((own.0.value - 2.0).abs() < 0.01, "{:?}", own.0);
        assert!(matches!(paired("at = [\"2MB\"]").find(Compare::Ratio, &cells), Err(Absent::Nothing(_))));
    }

    #[test]
    fn a_share_of_all_bytes_is_not_the_mean_of_shares() {
        let mut cells = Cells::default();
        let run = synthetic::run("cubic", 1);
        // Sent again: 1 of 10 and 0 of 990 bytes; 5 of 500 in both drops of the other.
        for (scheme, drops) in [("a", [(1.0, 10.0), (0.0, 990.0)]), ("b", [(5.0, 500.0); 2])] {
            for (drop, (again, sent)) in drops.into_iter().enumerate() {
                let cell = Cell::new(Values::new(), run.clone())
                    .with("sent_again", again)
                    .with("sent", sent)
                    .with("retransmitted_share", again / sent);
                cells.enter(scheme, &format!("1MB drop {drop}"), Ok(cell));
            }
        }
        let paired = |metric: &str| -> Paired {
            let text = format!("metric = {metric}\nof = [\"a\"]\nto = [\"b\"]");
            toml_edit::de::from_str(&text).unwrap()
        };
        let found = |metric| paired(metric).find(Compare::Ratio, &cells).unwrap().0.value;
        assert!((found("\"retransmitted_share\"") - 5.0).abs() < 1e-9);
        assert!((found("\"sent_again\"\nper = \"sent\"") - 0.1).abs() < 1e-9);
    }

    #[test]
    fn the_interval_must_lie_on_the_side_that_is_claimed() {
        let part = |value, low, high| Part { value, interval: Some((low, high)), neutral: 1.0 };
        for (name, part, bounds, expected) in [
            ("beyond, and sure", part(1.3, 1.1, 1.5), (Some(1.2), None), true),
            ("beyond, but not sure", part(1.3, 0.9, 1.7), (Some(1.2), None), false),
            ("not beyond", part(1.1, 1.05, 1.2), (Some(1.2), None), false),
            ("no direction asked", part(0.99, 0.9, 1.1), (Some(0.97), None), true),
            ("lower", part(0.8, 0.7, 0.9), (None, Some(0.85)), true),
            ("lower, but not sure", part(0.8, 0.6, 1.02), (None, Some(0.85)), false),
            ("a range from one on", part(1.2, 1.1, 1.3), (Some(1.0), Some(1.35)), true),
            ("no interval", Part::plain(1.3), (Some(1.2), None), true),
            ("no interval, not beyond", Part::plain(1.1), (Some(1.2), None), false),
        ] {
            assert_eq!(part.holds(bounds.0, bounds.1), expected, "{name}");
        }
    }
}
