//! Tables for the terminal: a name, then columns of figures, each in one unit and aligned at its "±".

use core::fmt;

use crate::row::{COLUMNS, Column, CompareRow};

/// A table of text. The first column and text columns are aligned to the left, figures to the right, or at their "±".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTable {
    head: Vec<[String; 2]>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// With titles and units of its columns; a unit may be empty.
    pub fn new(head: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { head: head.into_iter().map(|(title, unit)| [title, unit]).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn push(&mut self, mut cells: Vec<String>) {
        cells.resize(self.head.len(), String::new());
        self.rows.push(cells);
    }

    /// Pads the values and the intervals of a column so that they line up.
    fn align(column: &mut [&mut String]) {
        let split =
            |cell: &str| cell.split_once(" ± ").map(|(value, half)| (value.to_owned(), half.to_owned()));
        let width = column.iter().filter_map(|cell| split(cell)).map(|(_, half)| half.chars().count()).max();
        let Some(width) = width else { return };
        for cell in column {
            match split(cell) {
                Some((value, half)) => {
                    let pad = " ".repeat(width - half.chars().count());
                    **cell = format!("{value} ± {half}{pad}");
                }
                None => cell.push_str(&" ".repeat(width + 3)),
            }
        }
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = self.rows.clone();
        for index in 1..self.head.len() {
            Self::align(&mut rows.iter_mut().map(|row| &mut row[index]).collect::<Vec<_>>());
        }
        let heads = self.head.iter().flatten();
        let lines = [0, 1].map(|line| self.head.iter().map(|head| head[line].clone()).collect::<Vec<_>>());
        let units = heads.skip(1).step_by(2).any(|unit| !unit.is_empty());
        let width = |index: usize| {
            let cells = rows.iter().chain(&lines).map(|row| row[index].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        // A text column has a cell that does not begin like a figure.
        let begins_as_figure = |cell: &String| {
            cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "-+.–".contains(c))
        };
        let words: Vec<bool> = (0..self.head.len())
            .map(|index| index == 0 || !self.rows.iter().all(|row| begins_as_figure(&row[index])))
            .collect();
        let line = |f: &mut fmt::Formatter<'_>, row: &[String]| {
            let mut text = String::new();
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                text.push_str(if index == 0 { "" } else { "  " });
                // `format!` refuses widths above 65 535.
                let pad = " ".repeat(width - cell.chars().count());
                let (before, after) = if words[index] { ("", pad.as_str()) } else { (pad.as_str(), "") };
                text.extend([before, cell, after]);
            }
            writeln!(f, "{}", text.trim_end())
        };
        line(f, &lines[0])?;
        if units {
            line(f, &lines[1])?;
        }
        writeln!(f, "{}", "─".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)))?;
        rows.iter().try_for_each(|row| line(f, row))
    }
}

/// The main figures of a comparison; columns without values are left out.
pub fn comparison(rows: &[CompareRow]) -> TextTable {
    const LEFT_OUT: [&str; 5] = ["delay p50", "delay p99", "RTT p95", "jitter J2", "retransmitted"];
    let has = |figure: &&Column| {
        !LEFT_OUT.contains(&figure.title) && rows.iter().any(|row| figure.of(row).0.is_finite())
    };
    let figures: Vec<&Column> = COLUMNS.iter().filter(has).collect();
    let units: Vec<_> = figures
        .iter()
        .map(|figure| figure.quantity().unit(rows.iter().map(|row| figure.of(row).0)))
        .collect();
    let several = rows.iter().any(|row| row.seeds > 1);
    let mut head = vec![(String::new(), String::new())];
    head.extend(
        figures.iter().zip(&units).map(|(figure, unit)| (figure.title.to_owned(), unit.name.to_owned())),
    );
    if several {
        head.push(("seeds".to_owned(), String::new()));
    }
    let mut table = TextTable::new(head);
    for row in rows {
        let mut cells = vec![row.cc.clone()];
        cells.extend(figures.iter().zip(&units).map(|(figure, unit)| {
            let (value, ci95) = figure.of(row);
            unit.show_with(value, ci95)
        }));
        if several {
            cells.push(row.seeds.to_string());
        }
        table.push(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn columns_stand_under_each_other() {
        let mut table = TextTable::new(
            [("", ""), ("goodput", "Mbit/s"), ("loss", "%")].map(|(a, b)| (a.into(), b.into())),
        );
        table.push(["cubic", "10.53 ± 0.21", "1.20"].map(String::from).into());
        table.push(["bbr1", "9.1 ± 1.4", "–"].map(String::from).into());
        table.push(["copa", "8.25"].map(String::from).into());
        let expected = "            goodput  loss
             Mbit/s     %
─────────────────────────
cubic  10.53 ± 0.21  1.20
bbr1     9.1 ± 1.4      –
copa    8.25
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn a_name_of_any_length_has_its_column() {
        let long = "c".repeat(70_000);
        let mut table = TextTable::new([("".to_owned(), "".to_owned()), ("loss".to_owned(), "%".to_owned())]);
        table.push(vec![long.clone(), "1.2 ± 0.1".to_owned()]);
        assert!(table.to_string().contains(&long));
    }

    #[test]
    fn figures_missing_in_all_rows_have_no_column() {
        let mut run = synthetic::run("cubic", 1);
        run.flows[0].transfers.clear();
        let text = comparison(&[CompareRow::of("cubic", &[&run])]).to_string();
        assert!(text.contains("goodput") && !text.contains("completion") && !text.contains("Jain"));
        assert!(!text.contains("seeds") && !text.contains('±'));
        assert!(!text.contains("jitter J2"));
    }
}
