//! `ranpace proxy`: RAPID as a transparent proxy on real sockets.

#[cfg(feature = "proxy")]
mod serve;
#[cfg(feature = "proxy")]
mod show;

use crate::failure::Failure;

/// Split users' TCP connections beside the base station, and share their radio by demand (RAPID)
#[derive(clap::Args)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  \
    ranpace proxy check proxy.toml\n  \
    ranpace proxy --config proxy.toml               until Ctrl-C; open connections are then reset\n  \
    ranpace proxy show --live\n  \
    ranpace proxy --config proxy.toml --take-over   an update: the running one ends with its connections, none is lost\n  \
    ranpace proxy drain                             new connections pass, and it ends when the open ones have\n  \
    ranpace proxy --config proxy.toml --clean       remove what a killed proxy left\n\n\
    docs/proxy-server.md says more.")]
pub struct Proxy {
    #[cfg(feature = "proxy")]
    #[command(subcommand)]
    command: Option<Command>,
    #[cfg(feature = "proxy")]
    #[command(flatten)]
    serve: serve::Serve,
    /// What would be done
    #[cfg(not(feature = "proxy"))]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

#[cfg(feature = "proxy")]
#[derive(clap::Subcommand)]
enum Command {
    Check(serve::Check),
    Show(show::Show),
    Drain(show::Drain),
}

impl Proxy {
    /// Runs the command.
    #[cfg(feature = "proxy")]
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            None => self.serve.run(),
            Some(Command::Check(command)) => command.run(),
            Some(Command::Show(command)) => command.run(),
            Some(Command::Drain(command)) => command.run(),
        }
    }

    /// Says how to get the commands.
    #[cfg(not(feature = "proxy"))]
    pub fn run(self) -> Result<(), Failure> {
        drop(self.words);
        Err(Failure::asked(
            "this ranpace was built without `ranpace proxy`, so that its first build is short; `make install` builds it whole",
        ))
    }
}
