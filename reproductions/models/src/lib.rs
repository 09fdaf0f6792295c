//! The analytic models of Zhong's thesis (2020): the choice of CDBEv2's constants, and why senders pace; and of Diarra's (2022):
//! how much time SIGMA's Max Start saves an upload ([`Upload`]).
//!
//! [`Filter`] is the weight of its low-pass filter (section 7.2.2), [`Startup`] the queue that a single flow leaves behind when it
//! finds the bottleneck (7.10 to 7.14, Table 7.1), [`Newcomer`] a flow that joins an established one (7.15 to 7.22), [`PacingCost`]
//! the cost of idling and queueing by kind of traffic (4.11 to 4.18). These are formulas without simulation, in bit/s, bits and
//! seconds. Amounts are counted as in the thesis: 1 Mb is 10^6 bit.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod drawing;
mod filter;
mod newcomer;
mod pacing_cost;
mod plots;
mod startup;
mod statements;
mod surface;
mod table_7_1;
mod upload;
mod values;

pub(crate) use newcomer::boundary;

pub use filter::{Filter, FilterRow, FilterView, reports_per_horizon};
pub use newcomer::{
    Case, Crossing, Exit, FIGURE_BOTTLENECKS, FIGURE_THRESHOLDS, Newcomer, NewcomerView, Rule, Threshold,
};
pub use pacing_cost::{Costs, PacingCost, PacingCostView};
pub use startup::{
    Outcome, Pair, PairOutcomes, Path, RangeSummary, SMALL_TO, Startup, StartupView, TABLE_PAIRS, loss_ranges,
};
pub use surface::{LossSpan, Surface, SurfaceCell, SurfaceView};
pub use table_7_1::{Entry, TABLE_7_1, ThesisTable};
pub use upload::{Form, Start, UPLOAD_SIZES, Upload, UploadPath, UploadRow, UploadView, upload_time};
pub use values::{Bits, BitsError};

pub use plots::plots;
pub use statements::statement;

/// The models that reproductions use.
pub const MODELS: ranpace_lab::reproduce::Models = ranpace_lab::reproduce::Models { statement, plots };
