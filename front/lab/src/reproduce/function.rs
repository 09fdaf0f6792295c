//! Measures that are algorithms of their own, which the algebra cannot express.

use serde::Deserialize;

use super::c2tcp;
use super::faults::Faults;
use super::measured::Measured;
use super::results::{Absent, PlayedRun, Results};
use crate::figure::Figure;

/// The functions, by their names in experiments.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// C2TCP's conditions over a series of RTTs with the shape of its Fig. 2: 1 if they are as published.
    C2tcpConditions,
    /// Number of RTTs of that series that are Bad in one place and Normal in another.
    C2tcpHistory,
    /// Number of rows in which a mechanism at the edge violates the rule of faults.
    FaultsBroken(Faults),
    /// Number of points at which the first scheme has the lowest figure of all.
    Lowest(Figure),
    /// Number of points at which the first scheme has each of these figures below that of the second one's only run.
    Below(Vec<Figure>),
    /// A named statement from outside of the product; it has no runs.
    #[serde(untagged)]
    Named(String),
}

impl Function {
    /// Its value for these schemes.
    pub fn of(&self, schemes: &[String], results: &Results) -> Result<Measured, Absent> {
        match self {
            Self::C2tcpConditions => c2tcp::conditions(),
            Self::C2tcpHistory => c2tcp::history(),
            Self::FaultsBroken(faults) => faults.broken(schemes, results),
            Self::Lowest(figure) => lowest(*figure, schemes, results),
            Self::Below(figures) => below(figures, schemes, results),
            Self::Named(name) => match (results.models().statement)(name) {
                Some(measured) => measured.map_err(Absent::Nothing),
                None => Err(Absent::Nothing(format!("there is no function {name:?}"))),
            },
        }
    }
}

fn first(schemes: &[String]) -> Result<(&String, &[String]), Absent> {
    schemes.split_first().ok_or_else(|| Absent::Nothing("no scheme to compare".to_owned()))
}

fn lowest(figure: Figure, schemes: &[String], results: &Results) -> Result<Measured, Absent> {
    let (of, others) = first(schemes)?;
    let own = results.of(of)?;
    for other in others {
        results.of(other)?;
    }
    let mut lost = Vec::new();
    for (point, run) in &own {
        for other in others {
            if results.at(other, point)?.get(figure) <= run.get(figure) {
                lost.push(format!("{point} ({other})"));
                break;
            }
        }
    }
    let won = own.len() - lost.len();
    let but = if lost.is_empty() { String::new() } else { format!("; not at {}", lost.join(", ")) };
    Ok(Measured { value: won as f64, text: format!("{won} of {}{but}", own.len()) })
}

fn below(figures: &[Figure], schemes: &[String], results: &Results) -> Result<Measured, Absent> {
    let (of, others) = first(schemes)?;
    let limit = match (others, others.first().map(|other| results.of(other))) {
        ([_], Some(runs)) => match runs?[..] {
            [(_, run)] => run,
            _ => return Err(Absent::Nothing("the second scheme has several points".to_owned())),
        },
        _ => return Err(Absent::Nothing("two schemes are compared".to_owned())),
    };
    let is_below = |run: &PlayedRun| figures.iter().all(|figure| run.get(*figure) < limit.get(*figure));
    let runs = results.of(of)?;
    let found: Vec<&str> =
        runs.into_iter().filter(|(_, run)| is_below(run)).map(|(point, _)| point).collect();
    let text = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    Ok(Measured { value: found.len() as f64, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Values;
    use crate::synthetic;

    #[test]
    fn points_are_counted() {
        let mut results = Results::default();
        let runs = [
            ("a", "p", 10.0),
            ("a", "q", 20.0),
            ("a", "r", 30.0),
            ("b", "p", 20.0),
            ("b", "q", 20.0),
            ("b", "r", 90.0),
            ("single", "-", 25.0),
        ];
        for (scheme, point, delay) in runs {
            let run = PlayedRun::new(Values::new(), synthetic::run("cubic", 1))
                .with("delay_mean", delay)
                .with("throughput", 1.0 / delay);
            results.enter(scheme, point, Ok(run));
        }
        let figure = |name| Figure::named(name).unwrap();
        let of = |names: [&str; 2]| names.map(str::to_owned);
        let measured = |function: Function, names| function.of(&of(names), &results).unwrap();
        let lowest = measured(Function::Lowest(figure("delay_mean")), ["a", "b"]);
        assert_eq!((lowest.value, lowest.text.as_str()), (2.0, "2 of 3; not at q (b)"));
        let one = measured(Function::Below(vec![figure("delay_mean")]), ["a", "single"]);
        assert_eq!((one.value, one.text.as_str()), (2.0, "p, q"));
        let both = Function::Below(vec![figure("delay_mean"), figure("throughput")]);
        assert_eq!(measured(both.clone(), ["a", "single"]).text, "none");
        assert!(both.of(&of(["a", "b"]), &results).is_err());
    }
}
