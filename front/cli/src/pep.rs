//! `ranpace pep`: the Lightweight PEP on the packets that pass this host.

#[cfg(feature = "kernel")]
mod observe;

use crate::failure::Failure;

/// Report to servers which of their packets pass this host (Lightweight PEP), until Ctrl-C
///
/// It observes packets, and alters, delays and holds none. Only servers that subscribe get reports, sealed by a key that they share
/// with it. On a server, `ranpace kernel feed mdcc --from pep:agent.toml` subscribes and tells Multi-Domain control.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
#[command(after_help = "Examples:\n  \
    ranpace pep check --config /etc/ranpace/pep.toml\n  \
    ranpace pep --config /etc/ranpace/pep.toml\n  \
    ranpace pep check --agent /etc/ranpace/agent.toml             the file of a server\n\n\
    docs/lightweight-pep.md lists all keys of both files, and has a unit for systemd.\n\
    It needs root, or CAP_NET_RAW, CAP_BPF and CAP_PERFMON.\n\
    Exit status: 0 stopped by Ctrl-C or SIGTERM, 2 a fault in the configuration, 1 anything else, such as a port in use.")]
pub struct Pep {
    #[cfg(feature = "kernel")]
    #[command(subcommand)]
    command: Option<Command>,
    /// Configuration, a TOML file
    #[cfg(feature = "kernel")]
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<std::path::PathBuf>,
    /// What would be done
    #[cfg(not(feature = "kernel"))]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

#[cfg(feature = "kernel")]
#[derive(clap::Subcommand)]
enum Command {
    Check(observe::Check),
}

impl Pep {
    /// Runs the command.
    #[cfg(feature = "kernel")]
    pub fn run(self) -> Result<(), Failure> {
        match (self.command, self.config) {
            (Some(Command::Check(command)), _) => command.run(),
            (None, Some(file)) => observe::run(&ranpace_tap::config::PepConfig::read(&file)?),
            // The parser asks for one of both.
            (None, None) => Err(Failure::asked("which configuration? --config FILE says it")),
        }
    }

    /// Says why nothing can be observed.
    #[cfg(not(feature = "kernel"))]
    pub fn run(self) -> Result<(), Failure> {
        drop(self.words);
        Err(crate::kernel::not_built())
    }
}
