//! The figures on the pages of the experiments are the recorded ones, and the records match the current experiments.

use std::path::{Path, PathBuf};

use ranpace_lab::reproduce::{self, Record, Verdict};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reproductions")
}

#[test]
fn every_experiment_has_a_record_of_its_present_criteria_and_its_page_shows_it() {
    let mut wrong = Vec::new();
    for experiment in reproduce::experiments().unwrap() {
        let id = &experiment.id;
        let Some(record) = Record::read(&folder(), id).unwrap() else {
            wrong.push(format!("{id}: no verdicts.json; write it by `ranpace reproduce {id} --record`"));
            continue;
        };
        if let Err(error) = record.matches(&experiment) {
            wrong.push(error.to_string());
        }
        let page = std::fs::read_to_string(folder().join(id).join("README.md")).unwrap();
        if reproduce::part(&page) != Some(record.section(id).as_str()) {
            wrong.push(format!(
                "{id}: README.md does not show verdicts.json; `ranpace reproduce {id} --record`"
            ));
        }
        let linux = Record::read_linux(&folder(), id).unwrap();
        match (experiment.on_linux(), &linux) {
            (Some(part), Some(linux)) => {
                if let Err(error) = linux.matches(&part) {
                    wrong.push(error.to_string());
                }
                if reproduce::linux_part(&page) != Some(linux.linux_section(id).as_str()) {
                    wrong.push(format!(
                        "{id}: README.md does not show linux.json; `ranpace reproduce {id} --real --record`"
                    ));
                }
            }
            // It was not played yet.
            (Some(_), None) if reproduce::linux_part(&page) == Some("") => {}
            (Some(_), None) => wrong.push(format!("{id}: README.md shows what linux.json does not have")),
            (None, Some(_)) => wrong.push(format!("{id}: linux.json, and no [real] in experiment.toml")),
            (None, None) => {}
        }
        if page.matches("| verdict |").count() > 1 + usize::from(linux.is_some()) {
            wrong.push(format!("{id}: README.md has a second table of verdicts, typed by hand"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_overview_counts_what_is_recorded() {
    let experiments = reproduce::experiments().unwrap();
    let page = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let expected = reproduce::overview(&folder(), &experiments).unwrap();
    assert_eq!(
        reproduce::part(&page),
        Some(expected.as_str()),
        "write it anew: `ranpace reproduce NAME --record`"
    );
}

#[test]
fn a_finding_has_a_second_reading_on_its_page_and_every_reading_says_what_admits_it() {
    for experiment in reproduce::experiments().unwrap() {
        for reading in &experiment.readings {
            let (id, name, why) = (&experiment.id, reading.name.trim(), reading.why.trim());
            assert!(why.split_whitespace().count() > 1 && why != name, "{id}: {name}: why: {why:?}");
        }
        let Some(record) = Record::read(&folder(), &experiment.id).unwrap() else { continue };
        if record.rows.iter().any(|row| row.verdict == Verdict::Finding) {
            let page = std::fs::read_to_string(folder().join(&experiment.id).join("README.md")).unwrap();
            assert!(
                page.contains("## Second reading"),
                "{}: a finding without a second reading",
                experiment.id
            );
        }
    }
}
