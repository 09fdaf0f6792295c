//! How long the same transfers took in virtual time and on Linux.

use super::Played;
use super::figure_table::FigureTable;
use crate::Quantity;
use crate::figure::Figure;

/// Completion times that differ by no more than this agree. Ours.
const NEAR: f64 = 0.1;

/// A table with the completion times of each run on Linux beside those of its simulation, and in its title how many agree; `None`
/// if the runs have no transfers.
pub fn completions(simulated: &Played, linux: &Played) -> Option<FigureTable> {
    let figure = Figure::named("completion_mean")?;
    let pairs: Vec<(String, f64, f64)> = linux
        .results
        .all()
        .filter_map(|(scheme, point, run)| {
            let here = run.get(figure);
            let there = simulated.results.at(scheme, point).ok()?.get(figure);
            (here.is_finite() && there.is_finite()).then(|| (format!("{scheme}, {point}"), there, here))
        })
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let difference = |(_, there, here): &(String, f64, f64)| here / there - 1.0;
    let near = pairs.iter().filter(|pair| difference(pair).abs() <= NEAR).count();
    let unit = Quantity::Time.unit(pairs.iter().flat_map(|(_, there, here)| [*there, *here]));
    let rows = pairs.iter().map(|pair| {
        let (name, there, here) = pair;
        vec![name.clone(), unit.show(*there), unit.show(*here), format!("{:+.1}", difference(pair) * 100.0)]
    });
    let head = [
        ("", String::new()),
        ("simulated", unit.name.to_owned()),
        ("on Linux", unit.name.to_owned()),
        ("difference", "%".to_owned()),
    ];
    Some(FigureTable {
        title: format!(
            "Completion times: {near} of {} valid runs ({:.0} %) are within {:.0} % of virtual time",
            pairs.len(),
            100.0 * near as f64 / pairs.len() as f64,
            100.0 * NEAR
        ),
        head: head.map(|(title, unit)| (title.to_owned(), unit)).to_vec(),
        rows: rows.collect(),
        report_only: false,
    })
}
