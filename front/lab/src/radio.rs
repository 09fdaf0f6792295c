//! Results of cells and their users, in words and tables: for the terminal and for the report.

#[cfg(test)]
pub(crate) mod sample;

use std::collections::{HashMap, HashSet};

use ranpace_sim::{CellResult, LinkResult, RadioLinkResult, RunResult, UserResult};

use crate::figures::number;
use crate::stats;
use crate::table::TextTable;

/// Most users of a run in tables and notes; more would hide the rest.
const SHOWN: usize = 10;

/// A table before it is drawn: titles with their units, then rows of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub head: Vec<(&'static str, &'static str)>,
    pub rows: Vec<Vec<String>>,
}

impl Rows {
    /// As text for the terminal.
    pub(crate) fn text(self) -> String {
        let head = self.head.into_iter().map(|(title, unit)| (title.to_owned(), unit.to_owned()));
        let mut table = TextTable::new(head);
        self.rows.into_iter().for_each(|row| table.push(row));
        table.to_string()
    }
}

/// The link that represents one direction of a user; only users with flows have one.
pub(crate) fn link_of<'r>(run: &'r RunResult, user: &UserResult, way: &str) -> Option<&'r LinkResult> {
    let is_it = |link: &&LinkResult| {
        link.name.strip_suffix(way).and_then(|name| name.strip_suffix('.')) == Some(user.name.as_str())
    };
    // They follow the wired ones, and names of links and users differ.
    run.links.iter().rev().find(is_it)
}

/// The users that flows lead over.
pub(crate) fn users(run: &RunResult) -> impl Iterator<Item = &UserResult> {
    let names: HashSet<&str> = run.links.iter().filter_map(|link| link.name.strip_suffix(".down")).collect();
    run.users.iter().filter(move |user| names.contains(user.name.as_str()))
}

/// The users of a run by name, for looking up many links.
#[derive(Default)]
pub(crate) struct Users<'r>(HashMap<&'r str, &'r UserResult>);

impl<'r> Users<'r> {
    pub(crate) fn of(run: &'r RunResult) -> Self {
        Self(run.users.iter().map(|user| (user.name.as_str(), user)).collect())
    }

    /// As [`user_of`].
    pub(crate) fn of_link(&self, link: &LinkResult) -> Option<(&'r UserResult, &'static str)> {
        let (name, way) = name_of(link)?;
        Some((self.0.get(name).copied()?, way))
    }
}

/// For a link that represents one direction of a user: the user's name, and the direction.
fn name_of(link: &LinkResult) -> Option<(&str, &'static str)> {
    let (name, way) = link.name.rsplit_once('.')?;
    Some((name, ["down", "up"].into_iter().find(|known| *known == way)?))
}

/// The user and direction, "down" or "up", of a link; `None` for a wired one.
pub(crate) fn user_of<'r>(run: &'r RunResult, link: &LinkResult) -> Option<(&'r UserResult, &'static str)> {
    if run.users.is_empty() {
        return None;
    }
    let (name, way) = name_of(link)?;
    Some((run.users.iter().find(|user| user.name == name)?, way))
}

/// Users out of service at the end of a run, with the reason: nothing can be sent to or by them.
pub fn notes(run: &RunResult) -> Vec<String> {
    let out = |user: &UserResult| Some((user.name.clone(), user.out_of_service.clone()?));
    let out: Vec<(String, String)> = run.users.iter().filter_map(out).collect();
    let named = out.iter().take(SHOWN);
    let mut notes: Vec<String> =
        named.map(|(name, why)| format!("user {name:?} is out of service at the end: {why}")).collect();
    if out.len() > SHOWN {
        notes.push(format!("{} more users are out of service at the end", out.len() - SHOWN));
    }
    notes
}

/// Cells and users as text; `None` for runs without cells. Each run has a label, which is empty if there is only one.
pub fn tables(runs: &[(&str, &RunResult)]) -> Option<String> {
    let cells = cells(runs);
    if cells.rows.is_empty() {
        return None;
    }
    let users = of_users(runs);
    let mut parts = vec![cells.text()];
    if !users.rows.is_empty() {
        parts.push(users.text());
    }
    parts.extend(left_out(runs));
    Some(parts.join("\n"))
}

/// A row per cell of each run.
pub(crate) fn cells(runs: &[(&str, &RunResult)]) -> Rows {
    let row = |label: &str, cell: &CellResult| {
        let shares = [cell.downlink_prb_share, cell.uplink_prb_share].map(|share| number(share * 100.0));
        let mut row = vec![cell.name.clone(), cell.users.to_string(), cell.prbs.to_string()];
        row.extend(shares);
        with_label(label, row)
    };
    let head = [("cell", ""), ("users", ""), ("PRBs", ""), ("used down", "%"), ("used up", "%")];
    table(runs, head, |run, label| run.cells.iter().map(|cell| row(label, cell)).collect())
}

/// A row per user with flows, up to the limit.
pub(crate) fn of_users(runs: &[(&str, &RunResult)]) -> Rows {
    let direction = |link: &RadioLinkResult| {
        let again = stats::ratio(link.retransmissions as f64, link.blocks as f64).unwrap_or(f64::NAN);
        let counts = [link.blocks, link.lost_blocks, link.bearer_failures].map(|count| count.to_string());
        let [blocks, lost, failures] = counts;
        [blocks, number(again * 100.0), lost, failures]
    };
    let row = |label: &str, user: &UserResult| {
        let mut row = vec![user.name.clone(), user.cell.clone().unwrap_or_else(|| "none".to_owned())];
        row.extend(direction(&user.downlink));
        row.extend(direction(&user.uplink));
        row.push(user.handovers.to_string());
        with_label(label, row)
    };
    let head = [
        ("user", ""),
        ("cell", ""),
        ("blocks", "down"),
        ("again", "%"),
        ("lost", ""),
        ("failures", ""),
        ("blocks", "up"),
        ("again", "%"),
        ("lost", ""),
        ("failures", ""),
        ("handovers", ""),
    ];
    table(runs, head, |run, label| users(run).take(SHOWN).map(|user| row(label, user)).collect())
}

/// Returns a note on the users that are not in the table.
pub(crate) fn left_out(runs: &[(&str, &RunResult)]) -> Option<String> {
    let (_, run) = runs.first()?;
    let with_flows = users(run).count();
    let (more, without) = (with_flows.saturating_sub(SHOWN), run.users.len() - with_flows);
    let mut parts = Vec::new();
    if more > 0 {
        parts.push(format!("{more} more with flows"));
    }
    if without > 0 {
        parts.push(format!("{without} without flows"));
    }
    (!parts.is_empty()).then(|| format!("Users that are not shown: {}.", parts.join(", ")))
}

pub(crate) fn with_label(label: &str, mut row: Vec<String>) -> Vec<String> {
    if !label.is_empty() {
        row.insert(0, label.to_owned());
    }
    row
}

pub(crate) fn table<'r, const N: usize>(
    runs: &[(&str, &'r RunResult)],
    head: [(&'static str, &'static str); N],
    rows: impl Fn(&'r RunResult, &str) -> Vec<Vec<String>>,
) -> Rows {
    let labelled = runs.iter().any(|(label, _)| !label.is_empty());
    let first = labelled.then_some(("algorithm", ""));
    Rows {
        head: first.into_iter().chain(head).collect(),
        rows: runs.iter().flat_map(|(label, run)| rows(run, label)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn runs_without_cells_have_no_notes() {
        let run = synthetic::run("cubic", 1);
        assert_eq!((tables(&[("", &run)]), notes(&run).len()), (None, 0));
        assert!(user_of(&run, &run.links[0]).is_none());
    }

    #[test]
    fn first_users_out_of_service_are_named_and_others_counted() {
        let run = sample::run(12);
        let notes = notes(&run);
        assert_eq!(notes.len(), SHOWN + 1);
        assert_eq!(notes[0], "user \"user.1\" is out of service at the end: out of reach");
        assert_eq!(notes[SHOWN], "2 more users are out of service at the end");
    }

    #[test]
    fn users_with_flows_are_in_the_table_and_the_others_are_counted() {
        let run = sample::run(12);
        let text = tables(&[("", &run)]).unwrap();
        for expected in ["user.10", "Users that are not shown: 2 more with flows, 1 without flows."] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!text.contains("user.11"), "{text}");
        let text = tables(&[("cubic", &run), ("bbr1", &run)]).unwrap();
        assert!(text.starts_with("algorithm") && text.matches("user.10").count() == 2, "{text}");
        assert_eq!(
            user_of(&run, &run.links[1]).map(|(user, way)| (user.name.as_str(), way)),
            Some(("user.1", "down"))
        );
    }
}
