//! `ranpace rnis`: radio network information by ETSI GS MEC 012, served and asked for.

#[cfg(feature = "rnis")]
mod ask;
#[cfg(feature = "rnis")]
mod get;
#[cfg(feature = "rnis")]
mod serve;
#[cfg(feature = "rnis")]
mod subscribe;
#[cfg(feature = "rnis")]
mod watch;

use crate::failure::Failure;

/// Radio network information (ETSI MEC 012): serve what cells say, ask a server, subscribe, watch users
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    ranpace rnis serve --source lines=unix:/run/cell.sock         what an emulation or a base station says\n  \
    ranpace rnis serve rnis.toml\n  \
    ranpace rnis check rnis.toml\n  \
    ranpace rnis get layer2_meas --ue-ipv4-address 10.77.0.2\n  \
    ranpace rnis subscribe cell_change\n  \
    ranpace rnis watch\n\n\
    docs/rnis-server.md says more.")]
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
    Serve(serve::Serve),
    Check(serve::Check),
    Get(get::Get),
    Subscribe(subscribe::Subscribe),
    Watch(watch::Watch),
}

impl Rnis {
    /// Runs the command.
    #[cfg(feature = "rnis")]
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Serve(command) => command.run(),
            Command::Check(command) => command.run(),
            Command::Get(command) => command.run(),
            Command::Subscribe(command) => command.run(),
            Command::Watch(command) => command.run(),
        }
    }

    /// Says how to get the commands.
    #[cfg(not(feature = "rnis"))]
    pub fn run(self) -> Result<(), Failure> {
        drop(self.words);
        Err(Failure::asked(
            "this ranpace was built without `ranpace rnis`, so that its first build is short; `make install` builds it whole",
        ))
    }
}
