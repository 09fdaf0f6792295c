//! The analytic figures of Zhong 2020, which need no runs: each model draws itself, with the thesis's parameters.

use ranpace_units::{Rate, Span};
use serde::Deserialize;

use crate::cell_view::{View, ViewError};
use crate::model::{
    Bits, FIGURE_BOTTLENECKS, Filter, Newcomer, PacingCost, Pair, Startup, TABLE_PAIRS, ThesisTable,
};
use crate::plot::PlotError;

/// A model whose plots are a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// The weight of a report, over the smallest RTT (7.8 to 7.9).
    Filter,
    /// The queue that a single flow leaves behind when it finds the bottleneck (7.10 to 7.14).
    Startup,
    /// A flow that joins an established one (7.15 to 7.22).
    Newcomer,
    /// The cost of idling and queueing by kind of traffic (4.11 to 4.18).
    PacingCost,
}

impl Model {
    /// Its plots, each with what it shows. None if the parameters were out of range.
    pub fn plots(self) -> Result<Vec<(String, String)>, PlotError> {
        match self.view() {
            Ok(view) => Ok(view.pictures()?.plots().to_vec()),
            Err(_) => Ok(Vec::new()),
        }
    }

    fn view(self) -> Result<Box<dyn View>, ViewError> {
        let thesis = ThesisTable::parameters();
        Ok(match self {
            Self::Filter => {
                let [from, to, step, tw] = [20, 300, 20, 10].map(Span::from_millis);
                Box::new(Filter { from, to, step, tw, k: vec![1, 2] }.view()?)
            }
            Self::Startup => {
                let pair = |gain| Pair { gain, initial: Rate::from_mbit_per_s(1) };
                Box::new(Startup { pairs: [2.0, 2.77, 2.88].map(pair).to_vec(), ..thesis }.view()?)
            }
            Self::Newcomer => {
                let Pair { gain, initial } = TABLE_PAIRS[2];
                // The smallest RTT that fits the sentences about the figures; the thesis does not name it.
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
            Self::PacingCost => Box::new(PacingCost { capacity: 100.0, step: 1.0 }.view()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_draws_itself() {
        for model in [Model::Filter, Model::Startup, Model::Newcomer, Model::PacingCost] {
            let plots = model.plots().unwrap();
            assert!(!plots.is_empty(), "{model:?}");
            assert!(plots.iter().all(|(svg, caption)| svg.contains("<svg") && !caption.is_empty()));
        }
    }
}
