//! The Rust half of the Python package `ranpace`. What users import stands in `python/ranpace`, with its documentation; this crate gives
//! it runs, tables in Arrow's C interface, controls written in Python and links to step through.
//!
//! Without the feature `bindings` it is empty: the workspace builds without Python.
#![forbid(unsafe_code)]

#[cfg(feature = "bindings")]
mod control;
#[cfg(all(feature = "bindings", target_os = "linux"))]
mod emulate;
#[cfg(feature = "bindings")]
mod events;
#[cfg(feature = "bindings")]
mod failure;
#[cfg(feature = "bindings")]
mod link;
#[cfg(feature = "bindings")]
mod play;
#[cfg(feature = "bindings")]
mod results;
#[cfg(feature = "bindings")]
mod supervise;
#[cfg(feature = "bindings")]
mod table;
#[cfg(feature = "bindings")]
mod traces;
#[cfg(feature = "bindings")]
mod watch;

#[cfg(feature = "bindings")]
#[pyo3::pymodule]
mod _ranpace {
    #[pymodule_export]
    use crate::control::register;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::emulate::{Emulation, emulate, emulate_inside};
    #[pymodule_export]
    use crate::events::{Ack, Congestion, Context, Packet, PepReport, RadioHint, Sample, Sent, Window};
    #[pymodule_export]
    use crate::link::Link;
    #[pymodule_export]
    use crate::play::{
        Sweep, SweepPlan, compare, compare_all, experiments, list_cc, read, reproduce_, run, sweep_plan, vary,
    };
    #[pymodule_export]
    use crate::results::{Comparison, Reproduction, Run, Survey};
    #[pymodule_export]
    use crate::supervise::stop_runs;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::traces::{Trace, trace};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for a module's version")]
    const __version__: &str = ranpace_lab::VERSION;
}
