//! A table of figures, for the terminal and the report.

use maud::html;

use crate::table::TextTable;

/// A table of figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureTable {
    /// Its heading.
    pub title: String,
    /// Title and unit of each column; a unit may be empty.
    pub head: Vec<(String, String)>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
    /// Whether it is too long for a terminal.
    pub report_only: bool,
}

impl FigureTable {
    /// For a terminal.
    pub fn text(&self) -> TextTable {
        let mut table = TextTable::new(self.head.clone());
        for row in &self.rows {
            table.push(row.clone());
        }
        table
    }

    /// For the report.
    pub(crate) fn html(&self) -> String {
        html! {
            div.wide {
                table {
                    thead { tr { @for (title, unit) in &self.head { th scope="col" { (title) small { " " (unit) } } } } }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for (index, cell) in row.iter().enumerate() {
                                    @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                                }
                            }
                        }
                    }
                }
            }
        }
        .into_string()
    }
}
