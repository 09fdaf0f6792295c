//! `ranpace pep`: the Lightweight PEP on the packets that pass this host.

use std::path::PathBuf;

use ranpace_tap::config::{AgentConfig, PepConfig};

use crate::failure::Failure;
use crate::output;

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
    It needs root, or CAP_NET_RAW and CAP_BPF.\n\
    Exit status: 0 stopped by Ctrl-C or SIGTERM, 2 a fault in the configuration, 1 anything else, such as a port in use.")]
pub struct Pep {
    #[command(subcommand)]
    command: Option<Command>,
    /// Configuration, a TOML file
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Command {
    Check(Check),
}

/// Check a configuration: every fault at once, with its remedy
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace pep check --config /etc/ranpace/pep.toml\n  \
    ranpace pep check --agent /etc/ranpace/agent.toml")]
struct Check {
    /// Configuration of the PEP
    #[arg(long, value_name = "FILE", required_unless_present = "agent")]
    config: Option<PathBuf>,
    /// Configuration of a server's agent
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
}

impl Pep {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match (self.command, self.config) {
            (Some(Command::Check(command)), _) => command.run(),
            (None, Some(file)) => run(&PepConfig::read(&file)?),
            // The parser asks for one of both.
            (None, None) => Err(Failure::asked("which configuration? --config FILE says it")),
        }
    }
}

impl Check {
    fn run(self) -> Result<(), Failure> {
        if let Some(file) = &self.config {
            let PepConfig { devices, listen, server, .. } = PepConfig::read(file)?;
            let (devices, servers) = (devices.join(", "), plural(server.len(), "server"));
            let file = file.display();
            output::line(format!(
                "{file} has no faults: it observes {devices} for {servers}, and listens at {listen}"
            ))?;
        }
        if let Some(file) = &self.agent {
            let AgentConfig { listen, pep } = AgentConfig::read(file)?;
            let peps = plural(pep.len(), "PEP");
            output::line(format!("{} has no faults: it subscribes to {peps} from {listen}", file.display()))?;
        }
        Ok(())
    }
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("one {what}") } else { format!("{count} {what}s") }
}

/// Observes, until Ctrl-C.
#[cfg(feature = "kernel")]
fn run(config: &PepConfig) -> Result<(), Failure> {
    use ranpace_config::LogFormat;
    use ranpace_tap::daemon::Daemon;

    use crate::{interrupt, log};

    let stop = interrupt::flag();
    // What is to be said when it stops, the log says.
    interrupt::at_exit(|| {});
    log::to_standard_error(&config.log);
    let daemon = Daemon::open(config).map_err(Failure::ours)?;
    if config.log.format == LogFormat::Text {
        output::say(&format!(
            "observing {} for {}; servers reach it at {}. Ctrl-C stops it",
            config.devices.join(", "),
            plural(config.server.len(), "server"),
            config.listen,
        ));
    }
    daemon.run(stop).map_err(Failure::ours)
}

/// Says why nothing can be observed.
#[cfg(not(feature = "kernel"))]
fn run(_: &PepConfig) -> Result<(), Failure> {
    Err(crate::kernel::not_built())
}
