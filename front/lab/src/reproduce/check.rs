//! Consistency of an experiment: unknown or duplicate names, criteria that cannot be judged.

use super::experiment::Experiment;
use super::measure::Measure;
use super::picture_spec::PictureSpec;
use super::real;

impl Experiment {
    /// Returns the first contradiction in it, if there is one.
    pub(super) fn contradiction(&self) -> Option<String> {
        let known = |label: &str| self.scheme(label).is_some();
        let mut schemes: Vec<&String> = self.runs.iter().flat_map(|runs| &runs.schemes).collect();
        schemes.extend(self.tables.iter().flat_map(|table| table.schemes.iter().chain(&table.to)));
        schemes.extend(self.tables.iter().flat_map(|table| table.published.keys()));
        schemes.extend(self.tables.iter().filter_map(|table| Some(&table.faults.as_ref()?.plain)));
        schemes.extend(self.plots.iter().flat_map(|plot| &plot.schemes));
        schemes.extend(self.schemes.iter().flat_map(|scheme| scheme.variant_of.iter().chain(&scheme.like)));
        schemes.extend(
            self.readings.iter().flat_map(|reading| reading.instead.iter().flat_map(|(old, new)| [old, new])),
        );
        schemes.extend(self.sensitivity.iter().flat_map(|sensitivity| &sensitivity.schemes));
        let measures = self.criteria.iter().filter_map(|criterion| criterion.measure.as_ref());
        let measured: Vec<String> = measures.flat_map(Measure::schemes).collect();
        schemes.extend(&measured);
        if let Some(label) = schemes.into_iter().find(|label| !known(label)) {
            return Some(format!("there is no scheme {label:?}"));
        }
        if self.real.is_some() && self.patches.contains_key(real::PATCH) {
            return Some(format!(
                "a patch has the name {:?}, which is that of the patch of [real]; give it another one",
                real::PATCH
            ));
        }
        let mut labels: Vec<&str> = self.schemes.iter().map(|scheme| scheme.label.as_str()).collect();
        labels.sort_unstable();
        if let Some(twice) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("the scheme {:?} is there twice", twice[0]));
        }
        let mut ids: Vec<&str> = self.criteria.iter().map(|criterion| criterion.id.as_str()).collect();
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("the criterion {:?} is there twice", twice[0]));
        }
        for criterion in &self.criteria {
            let id = &criterion.id;
            match &criterion.measure {
                None if self.pending.is_none() => {
                    return Some(format!(
                        "the criterion {id:?} has no measure, and the experiment is not pending"
                    ));
                }
                _ if criterion.finding && !criterion.robust => {
                    return Some(format!(
                        "the criterion {id:?} is a finding but not robust: only what is judged can be missed"
                    ));
                }
                Some(_) if criterion.robust && criterion.at_least.or(criterion.at_most).is_none() => {
                    return Some(format!(
                        "the criterion {id:?} is robust but has neither at_least nor at_most"
                    ));
                }
                _ => {}
            }
        }
        for reading in &self.readings {
            let name = &reading.name;
            if reading.why.trim().is_empty() || (reading.instead.is_empty() && reading.figures.is_empty()) {
                return Some(format!(
                    "the reading {name:?} must say why it is admissible, and what it replaces"
                ));
            }
            let judged =
                |id: &&String| self.criteria.iter().any(|criterion| criterion.id == **id && criterion.robust);
            if let Some(id) = reading.criteria.iter().find(|id| !judged(id)) {
                return Some(format!("the reading {name:?}: there is no robust criterion {id:?}"));
            }
        }
        for table in &self.tables {
            let width = table.metrics.len();
            if let Some((scheme, _)) = table.published.iter().find(|(_, values)| values.len() != width) {
                return Some(format!(
                    "table {:?}: {scheme} does not have {width} published values",
                    table.id
                ));
            }
        }
        let schemes: Vec<&str> = self.schemes.iter().map(|scheme| scheme.label.as_str()).collect();
        let criteria: Vec<&str> = self.criteria.iter().map(|criterion| criterion.id.as_str()).collect();
        let wrong = |picture: &PictureSpec| picture.contradiction(&schemes, &criteria);
        if let Some(wrong) = self.pictures.iter().find_map(wrong) {
            return Some(wrong);
        }
        let varied = self.variation.iter().flat_map(|variation| &variation.criteria);
        for id in varied {
            let own = self.criteria.iter().find(|criterion| criterion.id == *id);
            if own.is_none_or(|criterion| criterion.figure.is_none_or(|figure| figure <= 0.0)) {
                return Some(format!("the variation needs a criterion {id:?} with a figure above zero"));
            }
        }
        let tables = self.variation.iter().flat_map(|variation| &variation.tables);
        let table = self.sensitivity.iter().filter_map(|sensitivity| sensitivity.table.as_ref());
        tables
            .chain(table)
            .find(|id| !self.tables.iter().any(|table| table.id == **id))
            .map(|id| format!("there is no table {id:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::experiment::SMALL;
    use super::*;

    #[test]
    fn contradictory_settings_are_refused() {
        for (case, from, to, expected) in [
            ("unknown key", "title = \"t\"", "titel = \"t\"", "titel"),
            ("unknown key of a measure", "of = \"x\"", "of = \"x\", off = \"x\"", "off"),
            ("unknown metric", "rtt_mean", "rtt_men", "rtt_men"),
            (
                "unknown key of a function",
                "figure = \"rtt_mean\", of = \"x\"",
                "function = \"f\", runs = 1",
                "runs",
            ),
            ("unknown scheme", "of = \"x\"", "of = \"y\"", "no scheme \"y\""),
            ("nothing to compare with", "at_most = 1.0", "", "neither at_least nor at_most"),
            ("nothing measured", "measure =", "#", "has no measure"),
            (
                "a patch with the name of that of [real]",
                "[[scheme]]",
                "[patch.real]\nseed = 2\n[real]\nsays = \"s\"\nschemes = [\"x\"]\n[[scheme]]",
                "give it another one",
            ),
            (
                "a choice without a figure",
                "[[scheme]]",
                "[variation]\ncriteria = [\"c\"]\nset = { x = [\"1\"] }\n[[scheme]]",
                "a criterion \"c\" with a figure",
            ),
            (
                "a choice by no table",
                "[[scheme]]",
                "[variation]\ntables = [\"t\"]\nset = { x = [\"1\"] }\n[[scheme]]",
                "no table \"t\"",
            ),
        ] {
            let text = SMALL.replace(from, to);
            assert_ne!(text, SMALL, "{case}");
            let error = Experiment::parse(&text, "small").unwrap_err().to_string();
            assert!(error.contains(expected), "{case}: {error}");
        }
    }
}
