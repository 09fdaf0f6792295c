//! Remarks on a run that its readers have to know beside the figures.

use std::collections::HashSet;

use ranpace_sim::{FlowResult, RunResult};

use crate::radio;

/// Lost connections listed by name; the others are only counted.
const SHOWN: usize = 5;
/// Most notes on several runs that are shown.
const MOST: usize = 100;

/// Lost connections, and users out of service at the end, each with the reason.
pub fn of_run(run: &RunResult) -> Vec<String> {
    let note = |flow: &FlowResult| {
        let lost = flow.lost.as_ref()?;
        Some(format!(
            "the connection of flow {:?} was lost at {:.3} s, and the flow ended there ({})",
            flow.name,
            lost.at.as_secs_f64(),
            lost.reason
        ))
    };
    let mut notes: Vec<String> = run.flows.iter().filter_map(note).collect();
    if notes.len() > SHOWN {
        let more = notes.len() - SHOWN;
        notes.truncate(SHOWN);
        notes.push(format!("{more} more flows lost their connections"));
    }
    notes.extend(radio::notes(run));
    notes
}

/// For several runs, each note once; preceded by the seed if `with_seed`.
pub fn of_runs<'r>(runs: impl IntoIterator<Item = &'r RunResult>, with_seed: bool) -> Vec<String> {
    let (mut notes, mut known, mut more) = (Vec::new(), HashSet::new(), 0);
    for run in runs {
        for note in of_run(run) {
            let note = if with_seed { format!("seed {}: {note}", run.seed) } else { note };
            if known.insert(note.clone()) {
                if notes.len() < MOST { notes.push(note) } else { more += 1 }
            }
        }
    }
    if more > 0 {
        notes.push(format!("and {more} more notes of this kind"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use ranpace_sim::LostConnection;
    use ranpace_units::Time;

    use super::*;
    use crate::synthetic;

    #[test]
    fn notes_beyond_a_hundred_are_counted() {
        let mut runs: Vec<RunResult> = (0..200).map(|seed| synthetic::run("cubic", seed)).collect();
        for run in &mut runs {
            run.flows[0].lost = Some(LostConnection { at: Time::ZERO, reason: "gone".to_owned() });
        }
        assert_eq!(of_runs(&runs, false).len(), 1, "each once");
        let notes = of_runs(&runs, true);
        assert_eq!((notes.len(), notes[100].as_str()), (101, "and 100 more notes of this kind"));
    }

    #[test]
    fn a_lost_connection_is_named_with_its_reason() {
        let mut run = synthetic::run("cubic", 1);
        assert!(of_run(&run).is_empty());
        let reason = "the receiver gave it up".to_owned();
        run.flows[0].lost = Some(LostConnection { at: Time::from_millis(1_250), reason });
        let notes = of_run(&run);
        assert_eq!(notes.len(), 1);
        let name = &run.flows[0].name;
        assert_eq!(
            notes[0],
            format!(
                "the connection of flow {name:?} was lost at 1.250 s, and the flow ended there (the receiver gave it up)"
            )
        );
    }
}
