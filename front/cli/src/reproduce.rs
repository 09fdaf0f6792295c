//! To be written.

use crate::failure::Failure;

/// To be written
#[derive(clap::Args)]
pub struct Reproduce {}

impl Reproduce {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        Err(Failure::ours("not built yet"))
    }
}
