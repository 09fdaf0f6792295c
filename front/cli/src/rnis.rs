//! `ranpace rnis`: the Radio Network Information Service of ETSI GS MEC 012.

#[cfg(feature = "rnis")]
mod check;

use crate::failure::Failure;

/// Radio information as a service (ETSI MEC 012): serve it, read it, watch it
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Rnis {
    #[cfg(feature = "rnis")]
    #[command(subcommand)]
    command: Command,
    /// What would be done
    #[cfg(not(feature = "rnis"))]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

#[cfg(feature = "rnis")]
#[derive(clap::Subcommand)]
enum Command {
    Check(check::Check),
}

impl Rnis {
    /// Runs the command.
    #[cfg(feature = "rnis")]
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Check(command) => command.run(),
        }
    }

    /// Says how to get the command.
    #[cfg(not(feature = "rnis"))]
    pub fn run(self) -> Result<(), Failure> {
        drop(self.words);
        Err(Failure::asked(
            "this ranpace was built without the RNIS server, which takes a few minutes more to build. \
             Build it again with it: make install (or cargo build --release --features ranpace/rnis)",
        ))
    }
}
