//! `ranpace trace info`.

use ranpace_lab::table::TextTable;
use ranpace_lab::trace_tools::TraceFigures;

use super::{Folder, read};
use crate::common::say;
use crate::failure::Failure;
use crate::output;

/// Show what traces contain: length, rates, stalls, hash
///
/// A rate counts 1500 B (12 kbit) for each opportunity. The worst and the best second are taken among whole seconds. A stall is a
/// gap of more than 1 s between two opportunities. The hash is that of the uncompressed bytes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace trace info builtin:lte builtin:umts builtin:nr\n  \
    ranpace trace info --json builtin:lte")]
pub struct Info {
    /// Files of delivery opportunities, plain or gzipped, or names of built-in traces
    #[arg(value_name = "FILE|builtin:NAME", required = true)]
    files: Vec<String>,
    /// Print JSON, with the values in bit/s and seconds
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: Folder,
}

/// A row of the table.
fn cells(row: &TraceFigures) -> Vec<String> {
    let mbit = |rate: u64| format!("{:.3}", rate as f64 / 1e6);
    vec![
        row.file.clone(),
        format!("{:.3}", row.duration_s),
        mbit(row.mean_bit_s),
        mbit(row.min_second_bit_s),
        mbit(row.max_second_bit_s),
        row.stalls.to_string(),
        format!("{:.3}", row.longest_gap_s),
        format!("{:.1}", row.stalled_s),
        format!("{:.1}", row.busy * 100.0),
        row.max_per_ms.to_string(),
        row.opportunities.to_string(),
        row.format.clone(),
    ]
}

const HEAD: [(&str, &str); 12] = [
    ("", ""),
    ("length", "s"),
    ("mean", "Mbit/s"),
    ("worst second", "Mbit/s"),
    ("best second", "Mbit/s"),
    ("stalls", ""),
    ("longest gap", "s"),
    ("stalled", "s"),
    ("busy", "% of ms"),
    ("most in 1 ms", ""),
    ("opportunities", ""),
    ("format", ""),
];

impl Info {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let mut library = self.folder.traces();
        let (mut rows, mut failure) = (Vec::new(), None);
        // A file that cannot be read does not hide the rows of the others.
        for name in &self.files {
            match read(name, &mut library) {
                Ok(found) => rows.push(TraceFigures::of(name, &found)),
                Err(other) => {
                    if let Some(Failure::Asked(text) | Failure::Ours(text)) = failure.replace(other) {
                        say(&format!("ranpace: {text}"));
                    }
                }
            }
        }
        if !rows.is_empty() {
            if self.json {
                output::json(&rows)?;
            } else {
                let mut table = TextTable::new(HEAD.map(|(title, unit)| (title.to_owned(), unit.to_owned())));
                rows.iter().for_each(|row| table.push(cells(row)));
                output::line(table.to_string())?;
                // In the format that `sha256sum --check` reads.
                output::line("SHA-256 of the uncompressed bytes:")?;
                rows.iter().try_for_each(|row| output::line(format!("{}  {}", row.sha256, row.file)))?;
            }
        }
        failure.map_or(Ok(()), Err)
    }
}
