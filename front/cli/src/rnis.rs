//! `ranpace rnis`: the Radio Network Information Service of ETSI GS MEC 012.

#[cfg(feature = "rnis")]
mod check;
#[cfg(feature = "rnis")]
mod get;
#[cfg(feature = "rnis")]
mod http;
#[cfg(feature = "rnis")]
mod serve;
#[cfg(feature = "rnis")]
mod subscribe;
#[cfg(feature = "rnis")]
mod watch;

use crate::failure::Failure;

/// Radio information as a service (ETSI MEC 012): serve it, read it, watch it
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    ranpace rnis serve --from unix:/run/cell.sock                 radio information of an emulation, over HTTP\n  \
    ranpace rnis get http://127.0.0.1:8012 rab_info\n  \
    ranpace rnis subscribe http://127.0.0.1:8012 cell_change\n  \
    ranpace rnis watch http://127.0.0.1:8012\n\n\
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
    Check(check::Check),
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
