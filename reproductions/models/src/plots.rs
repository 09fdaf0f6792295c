//! The analytic figures of Zhong 2020, which need no runs: each model draws itself, with the thesis's parameters.

use ranpace_lab::cell_view::{View, ViewError};
use ranpace_lab::reproduce::ModelPlots;
use ranpace_units::{Rate, Span};

use crate::{
    Bits, FIGURE_BOTTLENECKS, Filter, Newcomer, PacingCost, Pair, Startup, TABLE_PAIRS, ThesisTable,
};

/// The plots of a model; no plots if its parameters are out of range, `None` for an unknown name.
pub fn plots(name: &str) -> Option<ModelPlots> {
    let view = match view(name) {
        Ok(view) => view?,
        Err(_) => return Some(Ok(Vec::new())),
    };
    let owned = |(svg, caption): (&str, &str)| (svg.to_owned(), caption.to_owned());
    Some(view.pictures().map(|pictures| pictures.plots().map(owned).collect()))
}

fn view(name: &str) -> Result<Option<Box<dyn View>>, ViewError> {
    let thesis = ThesisTable::parameters();
    Ok(Some(match name {
        // The weight of a report, over the smallest RTT (7.8 to 7.9).
        "filter" => {
            let [from, to, step, tw] = [20, 300, 20, 10].map(Span::from_millis);
            Box::new(Filter { from, to, step, tw, k: vec![1, 2] }.view()?)
        }
        // The queue that a single flow leaves behind when it finds the bottleneck (7.10 to 7.14).
        "startup" => {
            let pair = |gain| Pair { gain, initial: Rate::from_mbit_per_s(1) };
            Box::new(Startup { pairs: [2.0, 2.77, 2.88].map(pair).to_vec(), ..thesis }.view()?)
        }
        // A flow that joins an established one (7.15 to 7.22).
        "newcomer" => {
            let Pair { gain, initial } = TABLE_PAIRS[2];
            // The smallest RTT that is consistent with the text about the figures; the thesis does not state it.
            let rtt_mins = vec![Span::from_millis(20)];
            let asked = Newcomer {
                gain,
                initial,
                gamma: 1.0,
                queue_threshold: Bits::new(1_000_000),
                buffer: thesis.path.buffer,
                bottlenecks: FIGURE_BOTTLENECKS.to_vec(),
                rtt_mins,
            };
            Box::new(asked.view()?)
        }
        // The cost of idling and queueing by kind of traffic (4.11 to 4.18).
        "pacing_cost" => Box::new(PacingCost { capacity: 100.0, step: 1.0 }.view()?),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_draws_itself() {
        for model in ["filter", "startup", "newcomer", "pacing_cost"] {
            let plots = plots(model).expect("it is there").expect("it draws");
            assert!(!plots.is_empty(), "{model}");
            assert!(plots.iter().all(|(svg, caption)| svg.contains("<svg") && !caption.is_empty()));
        }
        assert!(plots("other").is_none());
    }
}
