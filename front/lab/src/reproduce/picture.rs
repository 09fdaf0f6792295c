//! Pictures of an experiment, drawn from its runs and the published values; [`super::picture_spec`] says what they show.
//!
//! `values` takes the numbers from the runs, `drawing` turns them into marks, `finish` adds axes, caption and table.

mod drawing;
mod finish;
mod values;

pub use drawing::{Picture, pictures};

#[cfg(test)]
#[path = "picture_tests.rs"]
mod tests;
