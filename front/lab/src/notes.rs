//! What must be known of a run beside its figures.

use ranpace_sim::{FlowResult, RunResult};

use crate::radio;

/// Lost connections that are named; of the others it is said how many there are.
const SHOWN: usize = 5;

/// Whose connection was lost, and who is out of service at the end; each with the reason.
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

#[cfg(test)]
mod tests {
    use ranpace_sim::LostConnection;
    use ranpace_units::Time;

    use super::*;
    use crate::synthetic;

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
