//! Verdicts recorded beside the experiments: `reproductions/NAME/verdicts.json`, and the part of `README.md` between [`BEGIN`] and
//! [`END`] that is generated from it.
//!
//! `ranpace reproduce NAME --record` writes both, so that no figure of that part is typed by hand; a test compares them with each
//! other and with `experiment.toml`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::real::LINUX;
use super::{Experiment, FigureTable, Played, Row, Verdict};

/// Marks the beginning of the recorded part of a page.
pub const BEGIN: &str = "<!-- verdicts -->";
/// Marks its end.
pub const END: &str = "<!-- /verdicts -->";
/// Marks the beginning of what was recorded on Linux.
pub const LINUX_BEGIN: &str = "<!-- linux -->";
/// Marks its end.
pub const LINUX_END: &str = "<!-- /linux -->";
/// A wider table is recorded without its figures: a page shows the choice, the report its reasons.
const MOST_COLUMNS: usize = 20;
/// The columns kept then: the row's name and its distance.
const FIRST_COLUMNS: usize = 2;

/// The findings of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// A row per criterion, in the order of the experiment.
    pub rows: Vec<Row>,
    /// The tables that the terminal shows.
    pub tables: Vec<RecordedTable>,
}

/// A table as the terminal shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTable {
    /// Its heading.
    pub title: String,
    /// Its lines.
    pub text: String,
}

impl RecordedTable {
    fn of(table: &FigureTable) -> Self {
        if table.head.len() <= MOST_COLUMNS {
            return Self { title: table.title.clone(), text: table.text().to_string() };
        }
        let first = |row: &Vec<String>| row.iter().take(FIRST_COLUMNS).cloned().collect();
        let short = FigureTable {
            title: format!("{} (all figures are in the report)", table.title),
            head: table.head.iter().take(FIRST_COLUMNS).cloned().collect(),
            rows: table.rows.iter().map(first).collect(),
            report_only: false,
        };
        Self { text: short.text().to_string(), title: short.title }
    }
}

/// Why verdicts were not recorded, or a record is unreliable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A row has no figures.
    #[error("{experiment}: {criterion:?} is {verdict}, and only what was played is recorded: {measured}")]
    NotPlayed {
        /// The experiment.
        experiment: String,
        /// The row.
        criterion: String,
        /// Its verdict.
        verdict: &'static str,
        /// The text in place of its figures.
        measured: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}; give the checkout's folder of experiments: --record=DIR", path = path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A page has no place for the record.
    #[error("{path}: expected one line {} and after it one line {}, where the verdicts are to stand", marks.0, marks.1, path = path.display())]
    NoPlace {
        /// The path of the file.
        path: PathBuf,
        /// The lines.
        marks: (&'static str, &'static str),
    },
    /// A record is malformed.
    #[error("{path}: {source}; write it anew by `ranpace reproduce NAME --record`", path = path.display())]
    Malformed {
        /// The path of the file.
        path: PathBuf,
        /// The fault.
        source: serde_json::Error,
    },
    /// A record belongs to another state of the experiment.
    #[error("{experiment}: {what}; write the record anew by `ranpace reproduce {experiment} --record`")]
    Outdated {
        /// The experiment.
        experiment: String,
        /// The difference.
        what: String,
    },
}

impl Record {
    /// The record of an experiment that was run in full. A row that could not be judged because recordings are missing is an error.
    pub fn of(played: &Played) -> Result<Self, RecordError> {
        let lacking = |row: &&Row| row.verdict == Verdict::Skipped;
        if let Some(row) = played.rows.iter().find(lacking) {
            return Err(RecordError::NotPlayed {
                experiment: row.experiment.clone(),
                criterion: row.criterion.clone(),
                verdict: row.verdict.as_str(),
                measured: row.measured.clone(),
            });
        }
        let shown = played.tables.iter().filter(|table| !table.report_only);
        Ok(Self { rows: played.rows.clone(), tables: shown.map(RecordedTable::of).collect() })
    }

    /// Reads the record of an experiment below the folder of all experiments; `None` if there is none.
    pub fn read(folder: &Path, id: &str) -> Result<Option<Self>, RecordError> {
        Self::read_file(folder.join(id).join("verdicts.json"))
    }

    /// The same for its part on Linux.
    pub fn read_linux(folder: &Path, id: &str) -> Result<Option<Self>, RecordError> {
        Self::read_file(folder.join(id).join("linux.json"))
    }

    fn read_file(path: PathBuf) -> Result<Option<Self>, RecordError> {
        if !path.exists() {
            return Ok(None);
        }
        let text = read(&path)?;
        serde_json::from_str(&text).map(Some).map_err(|source| RecordError::Malformed { path, source })
    }

    /// Returns whether an experiment's page has a place for the record, or that of its part on Linux: to be asked before hours of playing.
    pub fn check_place(folder: &Path, id: &str, linux: bool) -> Result<(), RecordError> {
        let page = folder.join(id).join("README.md");
        let marks = if linux { (LINUX_BEGIN, LINUX_END) } else { (BEGIN, END) };
        let has_place = put(&read(&page)?, marks, "").is_some();
        if has_place { Ok(()) } else { Err(RecordError::NoPlace { path: page, marks }) }
    }

    /// Writes `verdicts.json` and the recorded part of `README.md` of an experiment.
    pub fn write(&self, folder: &Path, id: &str) -> Result<(), RecordError> {
        self.write_file(folder, id, "verdicts.json", (BEGIN, END), &self.section(id))
    }

    /// The same for its part on Linux: `linux.json`, and the part of `README.md` between [`LINUX_BEGIN`] and [`LINUX_END`].
    pub fn write_linux(&self, folder: &Path, id: &str) -> Result<(), RecordError> {
        self.write_file(folder, id, "linux.json", (LINUX_BEGIN, LINUX_END), &self.linux_section(id))
    }

    fn write_file(
        &self,
        folder: &Path,
        id: &str,
        file: &str,
        marks: (&'static str, &'static str),
        section: &str,
    ) -> Result<(), RecordError> {
        let page = folder.join(id).join("README.md");
        let text =
            put(&read(&page)?, marks, section).ok_or(RecordError::NoPlace { path: page.clone(), marks })?;
        let path = folder.join(id).join(file);
        let json = serde_json::to_string_pretty(self)
            .map_err(|source| RecordError::Malformed { path: path.clone(), source })?;
        write(&path, &format!("{json}\n"))?;
        write(&page, &text)
    }

    /// The recorded part of an experiment's page, without its markers.
    pub fn section(&self, id: &str) -> String {
        self.section_of(&format!("{id} --record"))
    }

    /// The same of its part on Linux.
    pub fn linux_section(&self, id: &str) -> String {
        self.section_of(&format!("{id} --real --record"))
    }

    fn section_of(&self, arguments: &str) -> String {
        let mut text = format!("Written by `ranpace reproduce {arguments}`.\n\n");
        text.push_str(
            "| verdict | | criterion | bounds | published | measured |\n|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let verdict = match row.verdict {
                Verdict::Missed | Verdict::Finding | Verdict::Depends => {
                    format!("**{}**", row.verdict.as_str())
                }
                other => other.as_str().to_owned(),
            };
            let robust = if row.robust { "R" } else { "" };
            let cells = [&verdict, robust, &row.criterion, &row.bounds, &row.published, &row.measured];
            let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
            // Writing to a string does not fail.
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        for table in &self.tables {
            let _ = write!(text, "\n{}:\n\n```text\n{}\n```\n", table.title, table.text.trim_end());
        }
        text
    }

    /// Returns whether the record matches the experiment: the same criteria with the same words and bounds.
    pub fn matches(&self, experiment: &Experiment) -> Result<(), RecordError> {
        // A part on Linux is written under the name of its whole.
        let id = experiment.id.strip_suffix(LINUX).map(|id| format!("{id} --real"));
        let id = id.unwrap_or_else(|| experiment.id.clone());
        let outdated = |what: String| RecordError::Outdated { experiment: id.clone(), what };
        // The row of a choice by published figures is not a criterion.
        let rows: Vec<&Row> = self.rows.iter().filter(|row| !row.id.is_empty()).collect();
        let (found, expected) = (rows.len(), experiment.criteria.len());
        if found != expected {
            return Err(outdated(format!("the record has {found} criteria, the experiment {expected}")));
        }
        for (row, criterion) in rows.into_iter().zip(&experiment.criteria) {
            let recorded = (&row.id, &row.criterion, row.robust, &row.published, &row.bounds);
            let own =
                (&criterion.id, &criterion.text, criterion.robust, &criterion.published, &criterion.bounds());
            if recorded != own {
                return Err(outdated(format!("the record has {recorded:?}, the experiment {own:?}")));
            }
            let excluded = if criterion.finding { Verdict::Missed } else { Verdict::Finding };
            if row.verdict == excluded {
                let says = if criterion.finding { "is" } else { "is not" };
                return Err(outdated(format!(
                    "{:?} is recorded as {}, but {says} marked as a finding",
                    row.id,
                    excluded.as_str()
                )));
            }
        }
        Ok(())
    }
}

/// Puts the overview of all recorded verdicts into `README.md` of the folder of all experiments.
pub fn write_overview(folder: &Path, experiments: &[Experiment]) -> Result<(), RecordError> {
    let page = folder.join("README.md");
    let section = overview(folder, experiments)?;
    let marks = (BEGIN, END);
    let text =
        put(&read(&page)?, marks, &section).ok_or(RecordError::NoPlace { path: page.clone(), marks })?;
    write(&page, &text)
}

/// Number of rows with each verdict, per experiment and in total.
pub fn overview(folder: &Path, experiments: &[Experiment]) -> Result<String, RecordError> {
    let count = |rows: &[Row], verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let shown = Verdict::ALL.into_iter().filter(|verdict| *verdict != Verdict::Skipped);
    let shown: Vec<Verdict> = shown.collect();
    let names: Vec<&str> = shown.iter().map(|verdict| verdict.as_str()).collect();
    let mut text = format!("| experiment | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    let mut totals = vec![0; shown.len()];
    for experiment in experiments {
        let Some(record) = Record::read(folder, &experiment.id)? else { continue };
        let counts: Vec<usize> = shown.iter().map(|verdict| count(&record.rows, *verdict)).collect();
        let cells: Vec<String> =
            counts.iter().map(|count| if *count == 0 { String::new() } else { count.to_string() }).collect();
        totals.iter_mut().zip(&counts).for_each(|(total, count)| *total += count);
        let id = &experiment.id;
        let _ = writeln!(text, "| [{id}]({id}/README.md) | {} |", cells.join(" | "));
        if let Some(record) = Record::read_linux(folder, id)? {
            // They are of the same claims, so they do not add to the totals.
            let cells = shown.iter().map(|verdict| match count(&record.rows, *verdict) {
                0 => String::new(),
                count => format!("*{count}*"),
            });
            let cells: Vec<String> = cells.collect();
            let _ = writeln!(text, "| *[on Linux]({id}/README.md)* | {} |", cells.join(" | "));
        }
    }
    let totals: Vec<String> = totals.iter().map(|total| format!("**{total}**")).collect();
    let _ = writeln!(text, "| all | {} |", totals.join(" | "));
    Ok(text)
}

/// The recorded part of a page, without its markers; `None` if the page has none.
pub fn part(page: &str) -> Option<&str> {
    between(page, (BEGIN, END))
}

/// The part of a page that was recorded on Linux, without its markers; `None` if the page has none.
pub fn linux_part(page: &str) -> Option<&str> {
    between(page, (LINUX_BEGIN, LINUX_END))
}

fn between<'a>(page: &'a str, (begin, end): (&str, &str)) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("{begin}\n"))?;
    let (part, after) = rest.split_once(end)?;
    (!after.contains(begin)).then_some(part)
}

/// The page with the recorded part replaced.
fn put(page: &str, marks: (&str, &str), section: &str) -> Option<String> {
    let old = between(page, marks)?;
    let begin = page.find(marks.0)? + marks.0.len() + 1;
    Some(format!("{}{section}{}", &page[..begin], &page[begin + old.len()..]))
}

fn read(path: &Path) -> Result<String, RecordError> {
    std::fs::read_to_string(path).map_err(|source| RecordError::File { path: path.to_owned(), source })
}

fn write(path: &Path, text: &str) -> Result<(), RecordError> {
    std::fs::write(path, text).map_err(|source| RecordError::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let row = Row {
            experiment: "000-a".to_owned(),
            id: "c".to_owned(),
            criterion: "less | more".to_owned(),
            robust: true,
            published: "4".to_owned(),
            bounds: "at least 3".to_owned(),
            measured: "2".to_owned(),
            value: None,
            verdict: Verdict::Missed,
        };
        let table = RecordedTable { title: "all".to_owned(), text: "x  1\n".to_owned() };
        Record { rows: vec![row], tables: vec![table] }
    }

    const EXPERIMENT: &str = "id = \"000-a\"\ntitle = \"\"\nsource = \"\"\nsays = \"\"\n[[scheme]]\nlabel = \"x\"\nset = {}\n\
        [[criterion]]\nid = \"c\"\ntext = \"less | more\"\nrobust = true\npublished = \"4\"\n\
        measure = { figure = \"share\", of = \"x\" }\nat_least = 3\n";

    #[test]
    fn tables_of_a_page_fit_its_width() {
        for (columns, kept) in [(MOST_COLUMNS, MOST_COLUMNS), (MOST_COLUMNS + 1, FIRST_COLUMNS)] {
            let head = (0..columns).map(|column| (format!("c{column}."), String::new())).collect();
            let rows = vec![(0..columns).map(|column| format!("v{column}.")).collect()];
            let table = FigureTable { title: String::new(), head, rows, report_only: false };
            let recorded = RecordedTable::of(&table);
            for column in [kept - 1, kept] {
                assert_eq!(
                    recorded.text.contains(&format!("v{column}.")),
                    column < kept,
                    "{columns}: {column}"
                );
            }
            assert_eq!(recorded.title.contains("in the report"), kept < columns);
        }
    }

    #[test]
    fn a_record_replaces_the_recorded_part_of_a_page_and_nothing_else() {
        let page = format!("# 000-a\n\n{BEGIN}\nold\n{END}\n\nProse.\n");
        let written = put(&page, (BEGIN, END), &record().section("000-a")).unwrap();
        assert!(written.starts_with("# 000-a\n\n") && written.ends_with(&format!("{END}\n\nProse.\n")));
        assert!(written.contains("| **missed** | R | less \\| more | at least 3 | 4 | 2 |\n"), "{written}");
        assert!(written.contains("\nall:\n\n```text\nx  1\n```\n"), "{written}");
        assert_eq!(part(&written), Some(record().section("000-a").as_str()));
        assert_eq!(put("# no place\n", (BEGIN, END), "x"), None);
        assert_eq!(put(&format!("{page}{page}"), (BEGIN, END), "x"), None, "two places");
    }

    #[test]
    fn record_of_changed_experiment_is_outdated() {
        let matches = |text: &str| record().matches(&Experiment::parse(text, "test").unwrap());
        assert!(matches(EXPERIMENT).is_ok());
        for (from, to) in [
            ("at_least = 3", "at_least = 2"),
            ("less | more", "less"),
            ("published = \"4\"", "published = \"5\""),
            ("robust = true", "robust = true\nfinding = true"),
        ] {
            let error = matches(&EXPERIMENT.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains("ranpace reproduce 000-a --record"), "{error}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("000-a")).unwrap();
        assert_eq!(Record::read(folder.path(), "000-a").unwrap(), None);
        let page = folder.path().join("000-a/README.md");
        std::fs::write(&page, format!("{BEGIN}\n{END}\n")).unwrap();
        record().write(folder.path(), "000-a").unwrap();
        assert_eq!(Record::read(folder.path(), "000-a").unwrap(), Some(record()));
        let text = overview(folder.path(), &[Experiment::parse(EXPERIMENT, "test").unwrap()]).unwrap();
        assert!(
            text.contains("| [000-a](000-a/README.md) |  |  | 1 |  |  |  |\n| all | **0** | **0** | **1** |"),
            "{text}"
        );
        std::fs::write(folder.path().join("000-a/verdicts.json"), "{").unwrap();
        assert!(Record::read(folder.path(), "000-a").is_err());
    }
}
