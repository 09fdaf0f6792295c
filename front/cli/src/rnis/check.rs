//! `ranpace rnis check`: is a configuration right?

use std::path::PathBuf;

use ranpace_rnisd::config::Config;

use crate::failure::Failure;
use crate::output;

/// Check a server's configuration
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ranpace rnis check rnis.toml")]
pub struct Check {
    /// Configuration file
    config: PathBuf,
}

impl Check {
    pub fn run(self) -> Result<(), Failure> {
        let config = Config::read(&self.config).map_err(Failure::asked)?;
        output::line(format!(
            "{}: right; the server would listen on {}",
            self.config.display(),
            config.listen
        ))
    }
}
