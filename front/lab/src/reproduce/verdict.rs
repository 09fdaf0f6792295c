//! Judges criteria.

use core::borrow::Borrow;

use serde::{Deserialize, Serialize};

use super::algebra::Part;
use super::experiment::{Criterion, Experiment};
use super::results::{Absent, Results};
use crate::figures::number;

/// One row of the table of verdicts; the JSON form is an array of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The experiment's name.
    pub experiment: String,
    /// The criterion's name within the experiment; empty for a row that is not a criterion.
    pub id: String,
    /// The condition, or the reported figure, in words.
    pub criterion: String,
    /// Whether it should hold in any faithful model, and so is judged.
    pub robust: bool,
    /// The source's figure or statement.
    pub published: String,
    /// The bounds: "at least 0.98"; empty without.
    pub bounds: String,
    /// The measured value, as text.
    pub measured: String,
    /// The measured value in the unit of the bounds; `None` if nothing was measured, and for rows read from a file.
    #[serde(skip)]
    pub value: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict on a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A robust criterion holds.
    Reproduced,
    /// One admissible reading of the source meets a robust criterion, another misses it.
    Depends,
    /// A robust criterion does not hold.
    Missed,
    /// A robust criterion does not hold in any admissible reading: a second reader, given source and code, has tried them.
    Finding,
    /// It depends on details that the source does not give: shown, not judged.
    Reported,
    /// It needs something that is not built yet.
    Pending,
    /// It needs missing data.
    Skipped,
}

impl Verdict {
    /// All of them, in display order.
    pub const ALL: [Self; 7] = [
        Self::Reproduced,
        Self::Depends,
        Self::Missed,
        Self::Finding,
        Self::Reported,
        Self::Pending,
        Self::Skipped,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Depends => "depends",
            Self::Missed => "missed",
            Self::Finding => "finding",
            Self::Reported => "reported",
            Self::Pending => "pending",
            Self::Skipped => "skipped",
        }
    }
}

/// Number of rows with each verdict, in words.
pub fn verdict_counts<R: Borrow<Row>>(rows: &[R]) -> String {
    let count = |verdict| rows.iter().filter(|row| (*row).borrow().verdict == verdict).count();
    let parts =
        Verdict::ALL.into_iter().map(|verdict| (verdict, count(verdict))).filter(|(_, count)| *count > 0);
    parts.map(|(verdict, count)| format!("{count} {}", verdict.as_str())).collect::<Vec<_>>().join(", ")
}

/// Judges all criteria. In a quick look nothing is judged.
pub fn judge(experiment: &Experiment, results: &Results, quick: bool) -> Vec<Row> {
    experiment.criteria.iter().map(|criterion| row(experiment, criterion, results, quick)).collect()
}

fn row(experiment: &Experiment, criterion: &Criterion, results: &Results, quick: bool) -> Row {
    let missed = if criterion.finding { Verdict::Finding } else { Verdict::Missed };
    let mut value = None;
    let (measured, verdict) = match (&criterion.measure, &experiment.pending) {
        (_, Some(why)) => (why.clone(), Verdict::Pending),
        // Parsing refuses a criterion without a measure in an experiment that is not pending.
        (None, None) => ("nothing to measure".to_owned(), Verdict::Pending),
        (Some(measure), None) => {
            match measure.find(results).inspect(|(found, _)| value = Some(found.value)) {
                Ok((measured, _)) if quick => (format!("{} (quick)", measured.text), Verdict::Reported),
                Ok((measured, parts)) if criterion.robust => {
                    by_readings(experiment, criterion, measured.text, holds(criterion, &parts), results)
                }
                Ok((measured, parts)) => {
                    let text = match (criterion.at_least.or(criterion.at_most), holds(criterion, &parts)) {
                        (None, _) => measured.text,
                        (_, true) => format!("{} (holds)", measured.text),
                        (_, false) => format!("{} (does not hold)", measured.text),
                    };
                    (text, Verdict::Reported)
                }
                Err(Absent::Trace(traces)) => (format!("needs {}", traces.join(", ")), Verdict::Skipped),
                Err(Absent::Run) => ("not finished".to_owned(), Verdict::Skipped),
                Err(Absent::Machine(why)) => (not_kept_up(&why), Verdict::Skipped),
                Err(Absent::Nothing(why)) if quick || !criterion.robust => (why, Verdict::Reported),
                Err(Absent::Nothing(why)) => (why, missed),
            }
        }
    };
    Row {
        experiment: experiment.id.clone(),
        id: criterion.id.clone(),
        criterion: criterion.text.clone(),
        robust: criterion.robust,
        published: criterion.published.clone(),
        bounds: criterion.bounds(),
        measured,
        value,
        verdict,
    }
}

fn not_kept_up(why: &str) -> String {
    format!("the machine could not keep up: {why}")
}

/// The verdict on a robust criterion: the experiment's own reading gave `text`, and every other reading is evaluated beside it.
fn by_readings(
    experiment: &Experiment,
    criterion: &Criterion,
    own: String,
    holds_here: bool,
    results: &Results,
) -> (String, Verdict) {
    let (mut met, mut failed) = (u32::from(holds_here), u32::from(!holds_here));
    let mut text = own.clone();
    for reading in experiment.readings.iter().filter(|reading| reading.is_about(criterion)) {
        let Some(measure) = &criterion.measure else { continue };
        let measure = measure.with_figures(&reading.figures);
        let (figure, holds) = match measure.find(&results.instead(&reading.instead)) {
            // A reading that replaces nothing used by this criterion says nothing about it.
            Ok((measured, parts)) if measured.text == own && self::holds(criterion, &parts) == holds_here => {
                continue;
            }
            Ok((measured, parts)) => (measured.text, holds(criterion, &parts)),
            Err(Absent::Trace(traces)) => return (format!("needs {}", traces.join(", ")), Verdict::Skipped),
            Err(Absent::Run) => return ("not finished".to_owned(), Verdict::Skipped),
            Err(Absent::Machine(why)) => return (not_kept_up(&why), Verdict::Skipped),
            Err(Absent::Nothing(why)) => (why, false),
        };
        *if holds { &mut met } else { &mut failed } += 1;
        text.push_str(&format!("; {}: {figure}", reading.name));
    }
    for name in experiment.not_played.get(&criterion.id).into_iter().flatten() {
        text.push_str(&format!("; {name}: not played on Linux"));
    }
    let verdict = match (met, failed) {
        (_, 0) => Verdict::Reproduced,
        (0, _) if criterion.finding => Verdict::Finding,
        (0, _) => Verdict::Missed,
        _ => Verdict::Depends,
    };
    (text, verdict)
}

/// The result of a criterion for a variant: the value, and whether it holds; empty if it does not involve the varied scheme, `None`
/// if there are no such runs.
pub fn for_variant(criterion: &Criterion, scheme: &str, variant: &str, results: &Results) -> Option<String> {
    let measure = criterion.measure.as_ref()?;
    let other = measure.instead(scheme, variant);
    if other == *measure {
        return None;
    }
    let (measured, parts) = other.find(results).ok()?;
    let holds = if holds(criterion, &parts) { "holds" } else { "misses" };
    let value = if parts.len() == 1 { number(measured.value) } else { measured.text };
    Some(format!("{value} {holds}"))
}

fn holds(criterion: &Criterion, parts: &[Part]) -> bool {
    parts.iter().all(|part| part.holds(criterion.at_least, criterion.at_most))
}

#[cfg(test)]
mod tests {
    use super::super::results::PlayedRun;
    use super::*;
    use crate::figure::Values;
    use crate::synthetic;

    fn verdict(change: &str, results: &Results, quick: bool) -> (Verdict, String) {
        let text = format!(
            "id = \"0\"\ntitle = \"\"\nsource = \"\"\nsays = \"\"\n[[scheme]]\nlabel = \"x\"\nset = {{}}\n\
             [[criterion]]\nid = \"c\"\ntext = \"\"\npublished = \"\"\n\
             measure = {{ figure = \"share\", of = \"x\" }}\n{change}\n"
        );
        let rows = judge(&Experiment::parse(&text, "test").unwrap(), results, quick);
        (rows[0].verdict, rows[0].measured.clone())
    }

    #[test]
    fn only_robust_criteria_are_judged() {
        let mut results = Results::default();
        let run = PlayedRun::new(Values::new(), synthetic::run("cubic", 1)).with("share", 0.5);
        results.enter("x", "p", Ok(run));
        for (change, quick, expected, text) in [
            ("robust = true\nat_least = 0.5", false, Verdict::Reproduced, "50.00 %"),
            ("robust = true\nat_least = 0.6", false, Verdict::Missed, "50.00 %"),
            ("robust = true\nat_least = 0.4\nat_most = 0.45", false, Verdict::Missed, "50.00 %"),
            ("robust = true\nat_least = 0.6", true, Verdict::Reported, "50.00 % (quick)"),
            ("robust = true\nfinding = true\nat_least = 0.5", false, Verdict::Reproduced, "50.00 %"),
            ("robust = true\nfinding = true\nat_least = 0.6", false, Verdict::Finding, "50.00 %"),
            ("at_least = 0.6", false, Verdict::Reported, "50.00 % (does not hold)"),
            ("at_most = 0.6", false, Verdict::Reported, "50.00 % (holds)"),
            ("", false, Verdict::Reported, "50.00 %"),
        ] {
            assert_eq!(verdict(change, &results, quick), (expected, text.to_owned()), "{change}");
        }
    }

    #[test]
    fn row_met_by_only_some_readings_depends() {
        let mut results = Results::default();
        for (scheme, share) in [("x", 0.5), ("y", 0.7)] {
            let run = PlayedRun::new(Values::new(), synthetic::run("cubic", 1)).with("share", share);
            results.enter(scheme, "p", Ok(run));
        }
        let readings = "[[scheme]]\nlabel = \"y\"\nset = {}\n\
            [[reading]]\nname = \"other\"\nwhy = \"its table 2\"\ninstead = { x = \"y\" }\n";
        let both = "50.00 %; other: 70.00 %";
        for (bound, expected, text) in [
            ("robust = true\nat_least = 0.5", Verdict::Reproduced, both),
            ("robust = true\nat_least = 0.6", Verdict::Depends, both),
            ("robust = true\nat_most = 0.6", Verdict::Depends, both),
            ("robust = true\nat_least = 0.8", Verdict::Missed, both),
            ("robust = true\nfinding = true\nat_least = 0.8", Verdict::Finding, both),
            ("at_least = 0.6", Verdict::Reported, "50.00 % (does not hold)"),
        ] {
            let change = format!("{bound}\n{readings}");
            assert_eq!(verdict(&change, &results, false), (expected, text.to_owned()), "{bound}");
        }
        let elsewhere = readings.replace("x = \"y\"", "y = \"x\"");
        let change = format!("robust = true\nat_least = 0.6\n{elsewhere}");
        assert_eq!(verdict(&change, &results, false), (Verdict::Missed, "50.00 %".to_owned()));
    }

    #[test]
    fn a_reading_may_take_a_figure_in_another_way() {
        let mut results = Results::default();
        for (scheme, share, sum, count) in [("x", 0.5, 4.0, 2.0), ("y", 0.7, 3.0, 3.0)] {
            for drop in 1..=3 {
                let run = PlayedRun::new(Values::new(), synthetic::run("cubic", 1))
                    .with("share", share)
                    .with("rtt_sum", sum)
                    .with("rtt_samples", count);
                results.enter(scheme, &format!("1MB drop {drop}"), Ok(run));
            }
        }
        let text = "id = \"0\"\ntitle = \"\"\nsource = \"\"\nsays = \"\"\n\
            [[scheme]]\nlabel = \"x\"\nset = {}\n[[scheme]]\nlabel = \"y\"\nset = {}\n\
            [[reading]]\nname = \"other\"\nwhy = \"its table 2\"\n\
            figures = [{ of = \"share\", metric = \"rtt_sum\", per = \"rtt_samples\" }]\n\
            [[criterion]]\nid = \"c\"\ntext = \"\"\npublished = \"\"\nrobust = true\nat_least = 1.5\n\
            measure = { figure = \"share\", of = \"x\", drops = \"mean\", over = { of = \"y\" } }\n";
        let rows = judge(&Experiment::parse(text, "test").unwrap(), &results, false);
        let expected = "0.7143 [0.7143, 0.7143]; other: 2.000 [2.000, 2.000]";
        assert_eq!((rows[0].verdict, rows[0].measured.as_str()), (Verdict::Depends, expected));
    }

    #[test]
    fn without_data_there_is_no_verdict() {
        let mut results = Results::default();
        results.enter("x", "p", Err(Absent::Trace(vec!["lost.down".to_owned()])));
        let robust = "robust = true\nat_least = 0.5";
        assert_eq!(verdict(robust, &results, false), (Verdict::Skipped, "needs lost.down".to_owned()));
        assert_eq!(verdict(robust, &Results::default(), false).0, Verdict::Missed);
        assert_eq!(verdict("", &Results::default(), false).0, Verdict::Reported);
    }
}
