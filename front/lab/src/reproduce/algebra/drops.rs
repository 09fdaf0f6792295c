//! Comparisons over drops: schemes run with the same seeds, and so at the same places and with the same fading.
//!
//! With `drops` in place of `runs`, the figures of a scheme are reduced to one over the drops of a group, and the comparison with
//! the second term has an interval: a percentile bootstrap over the drops (Efron and Tibshirani, An Introduction to the Bootstrap,
//! 1993, chapter 13), which resamples the drops of both schemes together, so that what both share, such as a lucky place, does not
//! widen it. Each pair of schemes in each group is a [`Part`] of its own; with `across = "mean"` their mean is the only one.

use super::super::measured::Measured;
use super::super::results::{Absent, PlayedRun, Results};
use super::{At, Compare, Expr, Op, Reduce};
use crate::figures::number;
use crate::stats;

/// Number of bootstrap samples.
const RESAMPLES: usize = 2_000;
/// Seed of the bootstrap, so that the same figures always have the same interval.
const SEED: u64 = 0x004_5eed;

/// How the drops are reduced.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drops {
    /// The figures of one scheme.
    pub reduce: Reduce,
    /// The group whose comparison divides the others (or is subtracted from them).
    pub against: Option<String>,
    /// Whether the mean over pairs and groups is compared with the bounds, instead of each of them.
    pub together: bool,
}

/// A value that is compared with the bounds, with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The value.
    pub value: f64,
    /// Ends of its 95 % interval; `None` if it is not estimated from drops.
    pub interval: Option<(f64, f64)>,
    /// The neutral value.
    pub neutral: f64,
}

impl Part {
    /// A value without an interval.
    pub fn plain(value: f64) -> Self {
        Self { value, interval: None, neutral: 1.0 }
    }

    /// Returns whether it is within the bounds, and its interval on the bounds' side of the neutral value. A bound on the other side of
    /// that, such as "at least 0.97 times", demands no direction, and so ignores the interval.
    pub fn holds(&self, at_least: Option<f64>, at_most: Option<f64>) -> bool {
        let ends = self.interval.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
        at_least.is_none_or(|least| self.value >= least && (least < self.neutral || ends.0 > self.neutral))
            && at_most.is_none_or(|most| self.value <= most && (most > self.neutral || ends.1 < self.neutral))
    }
}

/// A figure of a drop and its divisor, reduced over the drops; 1 without a divisor.
type Pair = [f64; 2];
/// Drops of a pair in a group (and in that of `against`): the figures of both schemes.
type Both = Vec<[Pair; 2]>;

/// The comparison of one term over the drops with the other.
struct Comparison<'a> {
    terms: [&'a Expr; 2],
    reduce: Reduce,
    op: Op,
    /// The neutral value of the comparison.
    neutral: f64,
}

impl Expr {
    /// The values over the drops, and the text shown.
    pub(super) fn over_drops(
        &self,
        drops: &Drops,
        compare: &Compare,
        results: &Results,
    ) -> Result<(Measured, Vec<Part>), Absent> {
        let neutral = if compare.op == Op::Over { 1.0 } else { 0.0 };
        let comparison =
            Comparison { terms: [self, &compare.to], reduce: drops.reduce, op: compare.op, neutral };
        let groups = self.drop_groups();
        let pairs = pairs(&self.of, &compare.to.of);
        let mut named = Vec::new();
        for (of, to) in &pairs {
            let is_unique = pairs.iter().filter(|(other, _)| other == of).count() == 1;
            let pair = if is_unique { (*of).to_owned() } else { format!("{of}/{to}") };
            for group in &groups {
                let name = match (pairs.len() > 1, groups.len() > 1) {
                    (false, false) => String::new(),
                    (true, false) => format!("{pair} "),
                    (false, true) => format!("{group} "),
                    (true, true) => format!("{pair} {group} "),
                };
                let own = comparison.drops(results, [of, to], group)?;
                let against = drops
                    .against
                    .as_ref()
                    .map(|group| comparison.drops(results, [of, to], group))
                    .transpose()?;
                named.push((name, (own, against)));
            }
        }
        let show = |value: f64| match compare.op {
            Op::Over => number(value),
            _ => self.quantity().show(value),
        };
        let text = |part: &Part| {
            let ends = part.interval.map(|(low, high)| format!(" [{}, {}]", show(low), show(high)));
            format!("{}{}", show(part.value), ends.unwrap_or_default())
        };
        let (names, each): (Vec<String>, Vec<(Both, Option<Both>)>) = named.into_iter().unzip();
        let parts: Vec<Part> = each.chunks(1).map(|one| comparison.part(one)).collect();
        let mut texts: Vec<String> =
            names.iter().zip(&parts).map(|(name, part)| format!("{name}{}", text(part))).collect();
        if !drops.together || parts.len() == 1 {
            // The bounds decide which of several parts is least favourable, so all of them are shown.
            let value = parts.first().map_or(f64::NAN, |part| part.value);
            let all_there = parts.iter().all(|part| part.value.is_finite());
            let measured =
                Measured { value: if all_there { value } else { f64::NAN }, text: texts.join(", ") };
            return Ok((measured, parts));
        }
        let mean = comparison.part(&each);
        texts.insert(0, format!("mean {}", text(&mean)));
        Ok((Measured { value: mean.value, text: texts.join(", ") }, vec![mean]))
    }

    /// Returns the fault of it as a comparison over drops, if it has one.
    pub(super) fn wrong_drops(&self) -> Option<String> {
        let Some(compare) = &self.compare else { return Some("`drops` needs a comparison".to_owned()) };
        let counts = (self.of.len(), compare.to.of.len());
        if !matches!(compare.op, Op::Over | Op::Less) || compare.pairs.is_some() || self.runs.is_some() {
            return Some("`drops` goes with `over` or `less`, without `runs` and `pairs`".to_owned());
        }
        if counts.0.min(counts.1) == 0 || (counts.0 != counts.1 && counts.0.min(counts.1) != 1) {
            return Some("`drops` needs one scheme of the second term for each of the first".to_owned());
        }
        let at_groups = |term: &Self| matches!(term.at, At::Groups(_));
        (!at_groups(self) || !at_groups(&compare.to)).then(|| "`drops` needs groups of points".to_owned())
    }

    fn drop_groups(&self) -> Vec<String> {
        match &self.at {
            At::Groups(groups) if !groups.is_empty() => groups.clone(),
            _ => vec![String::new()],
        }
    }

    /// Its figure of a drop; NaN if there is none.
    fn of_drop(&self, run: &PlayedRun) -> Pair {
        let figure = match self.values(run).as_deref() {
            Ok([one]) => *one,
            _ => f64::NAN,
        };
        [figure, self.per.map_or(1.0, |per| run.get(per))]
    }
}

/// The compared schemes; a single one with each of the others.
fn pairs<'a>(of: &'a [String], to: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let count = of.len().max(to.len());
    (0..count).map(|index| (of[index % of.len()].as_str(), to[index % to.len()].as_str())).collect()
}

impl Comparison<'_> {
    /// Figures of both schemes in their common drops, for this group of the first term; the second term uses the same group unless
    /// it has its own.
    fn drops(&self, results: &Results, schemes: [&str; 2], group: &str) -> Result<Both, Absent> {
        let [own, other] = self.terms;
        let points = results.group(schemes[0], group);
        if points.is_empty() {
            return Err(Absent::Nothing(format!("{} is not played at {group}", schemes[0])));
        }
        let others = match &other.at {
            At::Groups(groups) if other.at != own.at && groups.len() == 1 => {
                results.group(schemes[1], &groups[0])
            }
            _ => points.clone(),
        };
        points
            .iter()
            .zip(others)
            .map(|(of, to)| {
                Ok([own.of_drop(results.at(schemes[0], of)?), other.of_drop(results.at(schemes[1], to)?)])
            })
            .collect()
    }

    /// The mean over these comparisons, with its interval.
    fn part(&self, each: &[(Both, Option<Both>)]) -> Part {
        let whole = |pick: &dyn Fn(usize) -> usize| {
            let values: Vec<f64> = each
                .iter()
                .map(|(drops, against)| {
                    let own = self.compared(drops, pick);
                    against.as_ref().map_or(own, |other| self.op.of(own, self.compared(other, pick)))
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
        Part { value, interval: at(0.025).zip(at(0.975)), neutral: self.neutral }
    }

    /// Reduces the figures of the drops.
    fn one(&self, figures: &[Pair], term: &Expr) -> f64 {
        let of = |part: usize| self.reduce.of(&figures.iter().map(|figure| figure[part]).collect::<Vec<_>>());
        if term.per.is_some() { of(0) / of(1) } else { of(0) }
    }

    /// The comparison over the resampled drops.
    fn compared(&self, drops: &Both, pick: &dyn Fn(usize) -> usize) -> f64 {
        // Groups of one experiment have the same number of drops; if not, the shorter one is cycled.
        let chosen = (0..drops.len()).map(|drop| drops[pick(drop) % drops.len()]);
        let both = chosen.filter(|figures| figures.as_flattened().iter().all(|figure| figure.is_finite()));
        let (of, to): (Vec<Pair>, Vec<Pair>) = both.map(|[of, to]| (of, to)).unzip();
        self.op.of(self.one(&of, self.terms[0]), self.one(&to, self.terms[1]))
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
        // Scales a number below 2^64 to one below `count`.
        ((u128::from(mixed) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::*;
    use crate::figure::Values;
    use crate::synthetic;

    /// In the small group scheme b has twice the figure of a, in the other the same, except for noise that both share.
    fn results() -> Results {
        let mut results = Results::default();
        let run = synthetic::run("cubic", 1);
        for group in ["1MB", "10MB"] {
            for drop in 1..=40 {
                let luck = 1.0 + f64::from(drop % 7) * 0.3;
                let own = f64::from(drop % 3) * 0.02;
                let factor = if group == "1MB" { 2.0 } else { 1.0 };
                for (scheme, value) in [("a", luck), ("b", luck * (factor + own - 0.02))] {
                    let run = PlayedRun::new(Values::new(), run.clone()).with("throughput", value);
                    results.enter(scheme, &format!("{group} drop {drop}"), Ok(run));
                }
            }
        }
        results
    }

    fn found(keys: &str, results: &Results) -> Result<(Measured, Vec<Part>), Absent> {
        parse(&format!("figure = 'throughput', of = 'b', drops = 'mean', {keys}")).unwrap().find(results)
    }

    #[test]
    fn paired_runs_do_not_widen_the_interval() {
        let keys = "at = '1MB', over = { of = 'a' }";
        let (measured, parts) = found(keys, &results()).unwrap();
        let (low, high) = parts[0].interval.unwrap();
        assert!((measured.value - 2.0).abs() < 0.01, "{measured:?}");
        assert!(low > 1.99 && high < 2.01 && low < measured.value && measured.value < high, "{low} {high}");
        assert!(measured.text.starts_with("2.0") || measured.text.starts_with("1.99"), "{}", measured.text);
        // The same samples each time.
        assert_eq!(found(keys, &results()).unwrap().1, parts);
    }

    #[test]
    fn groups_are_compared_each_together_or_with_each_other() {
        let results = results();
        let each = found("at = ['1MB', '10MB'], over = { of = 'a' }", &results).unwrap();
        assert_eq!(each.1.len(), 2);
        assert!(each.0.text.starts_with("1MB ") && each.0.text.contains(", 10MB "), "{}", each.0.text);
        let mean = found("at = ['1MB', '10MB'], across = 'mean', over = { of = 'a' }", &results).unwrap();
        assert_eq!(mean.1.len(), 1);
        assert!((mean.0.value - 1.5).abs() < 0.01, "{:?}", mean.0);
        let gain = found("at = '1MB', against = '10MB', over = { of = 'a' }", &results).unwrap();
        assert!((gain.0.value - 2.0).abs() < 0.01, "{:?}", gain.0);
        let more = found("at = '1MB', less = { of = 'a' }", &results).unwrap();
        assert!((more.0.value - 1.9).abs() < 0.1 && more.1[0].neutral == 0.0, "{:?}", more.0);
        let own = found("at = '1MB', over = { of = 'a', at = '10MB' }", &results).unwrap();
        assert!((own.0.value - 2.0).abs() < 0.01, "{:?}", own.0);
        let several = found("at = '1MB', over = { of = ['a', 'b'] }", &results).unwrap();
        assert!(
            several.0.text.starts_with("b/a ") && several.0.text.contains(", b/b 1.000"),
            "{:?}",
            several.0
        );
        assert!(matches!(found("at = '2MB', over = { of = 'a' }", &results), Err(Absent::Nothing(_))));
    }

    #[test]
    fn a_share_of_all_bytes_is_not_the_mean_of_shares() {
        let mut results = Results::default();
        let run = synthetic::run("cubic", 1);
        // Retransmitted: 1 of 10 and 0 of 990 bytes; 5 of 500 in both drops of the other.
        for (scheme, drops) in [("a", [(1.0, 10.0), (0.0, 990.0)]), ("b", [(5.0, 500.0); 2])] {
            for (drop, (again, sent)) in drops.into_iter().enumerate() {
                let run = PlayedRun::new(Values::new(), run.clone())
                    .with("sent_again", again)
                    .with("sent", sent)
                    .with("retransmitted_share", again / sent);
                results.enter(scheme, &format!("1MB drop {drop}"), Ok(run));
            }
        }
        let found = |keys: &str| {
            parse(&format!("{keys}, of = 'a', drops = 'mean', over = {{ of = 'b' }}"))
                .unwrap()
                .of(&results)
                .unwrap()
                .value
        };
        assert!((found("figure = 'retransmitted_share'") - 5.0).abs() < 1e-9);
        assert!((found("figure = 'sent_again', per = 'sent'") - 0.1).abs() < 1e-9);
    }

    #[test]
    fn interval_must_lie_on_the_claimed_side() {
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
