//! To be written.

use crate::failure::Failure;

/// To be written
#[derive(clap::Args)]
pub struct Run {}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        Err(Failure::ours("not built yet"))
    }
}
