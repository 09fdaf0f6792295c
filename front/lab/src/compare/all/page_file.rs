//! A page of documentation between whose marks the tables are written, with the plots beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Survey;
use crate::plot::PlotError;

/// The lines of a page between which the tables stand.
const MARKS: [&str; 2] = ["<!-- compare --all -->", "<!-- end -->"];

/// Why the tables cannot be written into a page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SurveyPageError {
    /// There is no such page, or it is no text.
    #[error("cannot read the page {}: {error}", path.display())]
    Read {
        /// The page.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It has no place for the tables.
    #[error(
        "expected a line {} and below it a line {} in {}, found none; the tables are written between them",
        MARKS[0], MARKS[1], path.display()
    )]
    Marks {
        /// The page.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A plot cannot be drawn.
    #[error("a plot cannot be drawn: {0}")]
    Plot(#[from] PlotError),
}

/// The text before and after the tables of a page, with the marks.
fn around(page: &Path) -> Result<(String, String), SurveyPageError> {
    let text =
        fs::read_to_string(page).map_err(|error| SurveyPageError::Read { path: page.to_owned(), error })?;
    let [begin, end] = MARKS;
    let found = text.find(begin).and_then(|at| {
        let after = at + begin.len();
        let until = text[after..].find(end)?;
        Some((text[..after].to_owned(), text[after + until..].to_owned()))
    });
    found.ok_or_else(|| SurveyPageError::Marks { path: page.to_owned() })
}

impl Survey {
    /// Checks that the tables can be written into a page, before what is to be written has been played.
    ///
    /// # Errors
    ///
    /// If the page cannot be read, or has no place for them.
    pub fn check_page(page: &Path) -> Result<(), SurveyPageError> {
        around(page).map(drop)
    }

    /// Writes the tables into a page, between its lines `<!-- compare --all -->` and `<!-- end -->`, and the plots beside it.
    ///
    /// # Errors
    ///
    /// If the page cannot be read or has no place for them, or if a file cannot be written.
    pub fn write_page(&self, page: &Path) -> Result<(), SurveyPageError> {
        let (before, after) = around(page)?;
        let write = |path: PathBuf, text: &str| {
            fs::write(&path, text).map_err(|error| SurveyPageError::Write { path, error })
        };
        let stem = page.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let mut pictures = Vec::new();
        for (name, svg) in self.plots()? {
            let file = format!("{stem}-{name}.svg");
            write(page.with_file_name(&file), &svg)?;
            pictures.push((name, file));
        }
        write(page.to_owned(), &format!("{before}\n{}{after}", self.markdown(&pictures)))
    }
}
