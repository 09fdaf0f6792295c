//! What a comparison's options mean: its defaults, its title and its folder.

use ranpace_cc::Algorithm;
use ranpace_link::Limit;
use ranpace_scenario::cells::Preset;
use ranpace_scenario::presets::{Access, QueueKind};
use ranpace_sim::RunResult;
use ranpace_units::{Bytes, Rate, Span};

use super::{CellCompareSpec, CompareError, CompareSpec, Compared};
use crate::{Job, TraceLibrary};

/// The options of a comparison; what is `None` has the default of the link or of the cell.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// A cell instead of a link.
    pub cell: Option<&'static Preset>,
    /// Trace of the link down; `builtin:lte` by default.
    pub trace: Option<String>,
    /// Trace of the link up.
    pub trace_up: Option<String>,
    /// What was recorded under light load, down and up, in front of the traces.
    pub light: [Option<String>; 2],
    /// Capacity factor of the traces.
    pub scale: Option<f64>,
    /// Rate of a fixed link instead of a trace.
    pub rate: Option<Rate>,
    /// The algorithms, in the order of the table.
    pub cc: Vec<Algorithm>,
    /// Round-trip time of the empty path, 20 ms by default; in a cell of the wire alone.
    pub rtt: Option<Span>,
    /// Limit of the bottleneck's queue; 150 KB by default.
    pub buffer: Option<Limit>,
    /// The bottleneck's queue; drop-tail by default.
    pub queue: Option<QueueKind>,
    /// Probability of random loss on the way down.
    pub loss: Option<f64>,
    /// Duration of each run.
    pub time: Span,
    /// Start of the measured part.
    pub warmup: Span,
    /// Concurrent flows, all of the same algorithm; in a cell, of each user.
    pub flows: u32,
    /// Runs of each algorithm.
    pub seeds: u32,
}

/// A comparison to play.
#[derive(Clone, Debug)]
pub struct ComparePlan {
    /// Its title.
    pub title: String,
    /// Name of the folder of its results.
    pub folder: String,
    spec: Spec,
}

#[derive(Clone, Debug)]
enum Spec {
    Link(CompareSpec),
    Cell(CellCompareSpec),
}

/// Options that a cell sets itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--cell cannot be combined with {given}: the preset {preset:?} sets buffer, queue and losses. To change them, write a scenario with a [[cell]]; see docs/cells.md"
)]
pub struct SetByTheCell {
    /// The options, as the command names them.
    pub given: String,
    /// The preset.
    pub preset: &'static str,
}

/// The buffer over a link.
const BUFFER: Limit = Limit::Bytes(Bytes::new(150_000));
/// The round-trip time over a link.
const RTT: Span = Span::from_millis(20);

impl CompareOptions {
    /// The comparison that the options describe.
    ///
    /// # Errors
    ///
    /// If options of links are given for a cell.
    pub fn plan(self) -> Result<ComparePlan, SetByTheCell> {
        if let Some(preset) = self.cell {
            self.refuse_options_of_links(preset)?;
            return Ok(ComparePlan {
                title: format!("Comparison in the cell {}", preset.name),
                folder: format!("compare-{}", preset.name),
                spec: Spec::Cell(CellCompareSpec {
                    preset,
                    algorithms: self.cc,
                    rtt: self.rtt,
                    time: self.time,
                    warmup: self.warmup,
                    flows: self.flows,
                    seeds: self.seeds,
                }),
            });
        }
        let access = match self.rate {
            Some(rate) => Access::Rate(rate),
            None => Access::Trace {
                down: self.trace.unwrap_or_else(|| "builtin:lte".to_owned()),
                up: self.trace_up,
                repeat: true,
                scale: self.scale.unwrap_or(1.0),
            },
        };
        let title = match &access {
            Access::Rate(rate) => format!("Comparison at {rate}"),
            Access::Trace { down, .. } => format!("Comparison over {down}"),
        };
        let spec = Spec::Link(CompareSpec {
            access,
            algorithms: self.cc,
            light: self.light,
            rtt: self.rtt.unwrap_or(RTT),
            buffer: self.buffer.unwrap_or(BUFFER),
            queue: self.queue.unwrap_or_default(),
            loss: self.loss.unwrap_or(0.0),
            reverse: None,
            time: self.time,
            warmup: self.warmup,
            flows: self.flows,
            seeds: self.seeds,
        });
        Ok(ComparePlan { title, folder: "compare".to_owned(), spec })
    }

    /// A cell has its own buffer, queue and losses.
    fn refuse_options_of_links(&self, preset: &'static Preset) -> Result<(), SetByTheCell> {
        let given = [
            ("--buffer", self.buffer.is_some()),
            ("--queue", self.queue.is_some()),
            ("--loss", self.loss.is_some()),
            ("--scale", self.scale.is_some()),
        ];
        let given: Vec<&str> =
            given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
        if given.is_empty() {
            return Ok(());
        }
        Err(SetByTheCell { given: given.join(", "), preset: preset.name })
    }
}

impl ComparePlan {
    /// The runs, all seeds of an algorithm together.
    ///
    /// # Errors
    ///
    /// If a trace cannot be loaded, or a setting is out of range.
    pub fn jobs(&self, traces: &mut TraceLibrary) -> Result<Vec<Job>, CompareError> {
        match &self.spec {
            Spec::Link(spec) => spec.jobs(traces),
            Spec::Cell(spec) => spec.jobs(traces),
        }
    }

    /// Groups the results of [`Self::jobs`] by algorithm.
    pub fn collect(&self, results: Vec<Option<RunResult>>) -> Compared {
        match &self.spec {
            Spec::Link(spec) => spec.collect(results),
            Spec::Cell(spec) => spec.collect(results),
        }
    }
}
