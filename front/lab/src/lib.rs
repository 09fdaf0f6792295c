//! Experiments: the results that runs leave behind, and their presentation.
//!
//! [`Store`] keeps runs as Parquet and JSON, [`CompareRow`] summarises them over flows and seeds, [`table`] prints them and
//! [`Progress`] shows the progress of work.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod capture;
pub mod cell_view;
pub mod columnar;
mod compare;
pub mod figure;
mod figures;
pub mod frames;
mod listing;
pub mod notes;
pub mod peps;
mod pictures;
pub mod plot;
mod progress;
pub mod proxies;
pub mod radio;
mod report;
pub mod reproduce;
mod row;
mod run;
mod single;
pub mod stats;
mod store;
mod summary;
mod sweep;
pub mod table;
pub mod trace_tools;
mod traces;
pub mod validate;
pub mod version;

#[cfg(test)]
#[path = "../examples/sample_report/synthetic.rs"]
mod synthetic;

pub use capture::{Capture, CaptureError};
pub use compare::{
    CandidateFilterError, CellCompareSpec, CompareError, CompareOptions, ComparePlan, CompareSpec, Compared,
    Measure, SetByTheCell, SituationError, Survey, SurveyError, SurveyPageError, SurveyPlan, SurveySpec,
    SurveyValue, SurveyWriteError, UnknownCell,
};
pub use figures::{Quantity, Unit, number};
pub use listing::{ControlList, ListedControl, ListedOption, controls};
pub use pictures::page;
pub use plot::PlotError;
pub use progress::Progress;
pub use report::{CaptionedPlot, Chapter, Comparison, Report};
pub use row::{COLUMNS, Column, CompareRow};
pub use run::{Job, Runner};
pub use single::{flow_rows, run_report};
pub use store::{Store, StoreError, folder_name, key, put, read_run, read_run_with_origin, read_summary};
pub use summary::{FileSummary, FlowSummary, Origin, RunSummary, SCHEMA, TransferSummary};
pub use sweep::{SweepError, SweepSpec, Variation};
pub use traces::{
    BUILTIN, BUILTIN_LENGTH, Builtin, TraceLibrary, TraceLoadError, open as open_file, read as read_trace,
    trace_folders,
};
pub use version::VERSION;
