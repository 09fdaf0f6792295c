//! Why a scenario was refused: all problems, each with its position in the file.

use core::fmt;

/// Most problems that are printed; a file with more of them is probably not a scenario.
const MOST_PRINTED: usize = 20;

/// Why a scenario was refused. Printed as one line per problem: `drive.toml:12:8: unknown key ...`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    /// The file's name as the caller gave it; may be empty.
    pub file: String,
    /// The problems, in the order of the file; never empty.
    pub diagnostics: Vec<Diagnostic>,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its position; `None` if it is not in the file (a key to vary, for example).
    pub position: Option<Position>,
    /// The message: what was expected and what was found.
    pub message: String,
}

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl ScenarioError {
    /// A single problem without a position.
    pub(crate) fn without_place(message: String) -> Self {
        Self { file: String::new(), diagnostics: vec![Diagnostic { position: None, message }] }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, diagnostic) in self.diagnostics.iter().take(MOST_PRINTED).enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            match diagnostic.position {
                Some(Position { line, column }) if self.file.is_empty() => {
                    write!(f, "line {line}, column {column}: ")?;
                }
                Some(Position { line, column }) => write!(f, "{}:{line}:{column}: ", self.file)?,
                None if self.file.is_empty() => {}
                None => write!(f, "{}: ", self.file)?,
            }
            f.write_str(&diagnostic.message)?;
        }
        match self.diagnostics.len().saturating_sub(MOST_PRINTED) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// Collects problems by byte offset.
pub(crate) struct Diagnostics<'t> {
    text: &'t str,
    found: std::cell::RefCell<Vec<(usize, String)>>,
    /// Controls of the caller's own that a value may name; they stand here because every value reaches this.
    pub(crate) controls: Vec<&'static ranpace_cc::Entry>,
}

impl<'t> Diagnostics<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new().into(), controls: Vec::new() }
    }

    /// Adds a problem at byte `at` of the text.
    pub fn add(&self, at: usize, message: impl Into<String>) {
        self.found.borrow_mut().push((at, message.into()));
    }

    /// `Err` if anything was found.
    pub fn finish(self, file: &str) -> Result<(), ScenarioError> {
        let mut found = self.found.into_inner();
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|(at, _)| *at);
        let starts: Vec<usize> =
            core::iter::once(0).chain(self.text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let diagnostics = found.into_iter().map(|(at, message)| {
            let at = at.min(self.text.len());
            // The first start is 0, so there is always one at or before `at`.
            let line = starts.partition_point(|&start| start <= at);
            let begin = starts[line.saturating_sub(1)];
            // An offset within a character counts as that character's.
            let column =
                self.text[begin..].char_indices().take_while(|(i, c)| begin + i + c.len_utf8() <= at);
            Diagnostic { position: Some(Position { line, column: column.count() + 1 }), message }
        });
        Err(ScenarioError { file: file.to_owned(), diagnostics: diagnostics.collect() })
    }
}

/// `; did you mean "delay"?`, or nothing if no known word is similar.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    // Ours: below this similarity (dimensionless, 1 for equal words) a suggestion confuses more than it helps.
    const NEAR: f64 = 0.75;
    let near = known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(known, word), known))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match near {
        Some((similarity, known)) if similarity >= NEAR => format!("; did you mean {known:?}?"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_characters_from_one() {
        let text = "é = 1\nb\r\nc";
        for (at, line, column) in
            [(0, 1, 1), (1, 1, 1), (2, 1, 2), (7, 2, 1), (10, 3, 1), (11, 3, 2), (99, 3, 2)]
        {
            let report = Diagnostics::new(text);
            report.add(at, "x");
            let error = report.finish("f.toml").unwrap_err();
            assert_eq!(error.diagnostics[0].position, Some(Position { line, column }), "{at}");
            assert_eq!(error.to_string(), format!("f.toml:{line}:{column}: x"));
        }
    }

    #[test]
    fn problems_come_in_the_order_of_the_file_and_the_rest_is_counted() {
        let report = Diagnostics::new("a\nb");
        for at in (0..3).rev().chain(core::iter::repeat_n(3, 30)) {
            report.add(at, "x");
        }
        let text = report.finish("").unwrap_err().to_string();
        assert!(text.starts_with("line 1, column 1: x\nline 1, column 2: x\nline 2, column 1: x"), "{text}");
        assert!(text.ends_with("\nand 13 more"), "{text}");
    }

    #[test]
    fn only_a_near_word_is_suggested() {
        assert_eq!(did_you_mean("dealy", ["delay", "rate"]), "; did you mean \"delay\"?");
        assert_eq!(did_you_mean("zzz", ["delay", "rate"]), "");
        assert_eq!(did_you_mean("zzz", []), "");
    }
}
