//! Observing the packets of this host, and checking the files of the PEP and of its servers' agents.

use std::path::PathBuf;

use ranpace_config::LogFormat;
use ranpace_tap::config::{AgentConfig, PepConfig};
use ranpace_tap::daemon::Daemon;

use crate::failure::Failure;
use crate::{interrupt, log, output};

/// Check a configuration: every fault at once, with its remedy
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace pep check --config /etc/ranpace/pep.toml\n  \
    ranpace pep check --agent /etc/ranpace/agent.toml")]
pub struct Check {
    /// Configuration of the PEP
    #[arg(long, value_name = "FILE", required_unless_present = "agent")]
    config: Option<PathBuf>,
    /// Configuration of a server's agent
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
}

impl Check {
    /// Reads the files, and says that they have no faults.
    pub fn run(self) -> Result<(), Failure> {
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
pub fn run(config: &PepConfig) -> Result<(), Failure> {
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
