//! `ranpace proxy --config` and `ranpace proxy check`: the proxy, and its configuration.

use std::path::PathBuf;

use ranpace_config::LogFormat;
use ranpace_proxy::control::ControlServer;
use ranpace_proxy::{Config, Proxy, ProxyError, Rules};

use crate::failure::Failure;
use crate::{interrupt, log, output};

/// Runs a proxy, or removes what one left.
#[derive(clap::Args)]
pub struct Serve {
    /// Configuration, a TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Remove the rules that a killed proxy of this configuration left, and end
    #[arg(long)]
    clean: bool,
    /// Take the place of the running proxy of this configuration: no connection is lost
    #[arg(long, conflicts_with = "clean")]
    take_over: bool,
}

/// Check a configuration of `ranpace proxy`: every fault with its line, key and remedy
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ranpace proxy check /etc/ranpace/proxy.toml\n  ranpace proxy check proxy.toml --rules"
)]
pub struct Check {
    /// Configuration, a TOML file
    config: PathBuf,
    /// Print the nftables table that the proxy would add
    #[arg(long)]
    rules: bool,
}

impl From<ProxyError> for Failure {
    fn from(error: ProxyError) -> Self {
        match error {
            ProxyError::Setup(_) | ProxyError::Running { .. } | ProxyError::NotRunning { .. } => {
                Self::asked(error)
            }
            _ => Self::ours(error),
        }
    }
}

impl Serve {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let Some(file) = self.config else {
            return Err(Failure::asked("expected --config FILE; docs/proxy-server.md has one to begin with"));
        };
        let config = Config::read(&file)?;
        if self.clean {
            Rules::new(&config).remove()?;
            return output::line(format!("nothing of the proxy {:?} is left in this system", config.name));
        }
        // Before there is anything that a signal could interrupt. What is to be said when it stops, the log says.
        let stop = interrupt::flag();
        interrupt::at_exit(|| {});
        log::to_standard_error(&config.log);
        let (control, is_for_people) = (config.control.clone(), config.log.format == LogFormat::Text);
        let mut proxy = if self.take_over { Proxy::take_over(config)? } else { Proxy::start(config)? };
        let server = ControlServer::start(&control, proxy.asker(), proxy.metrics())?;
        if is_for_people {
            output::say(&format!(
                "splitting up to {} connections; the sender towards users: {}. `ranpace proxy show --live` shows them; Ctrl-C stops it",
                proxy.most_connections(),
                proxy.sender(),
            ));
        }
        let outcome = proxy.run(stop);
        // The control socket goes last: `ranpace proxy drain --wait` waits for that, and another proxy may then start.
        drop(proxy);
        drop(server);
        Ok(outcome?)
    }
}

impl Check {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let config = Config::read(&self.config)?;
        if self.rules {
            return output::line(Rules::new(&config).table().trim_end());
        }
        let networks: Vec<String> = config
            .clients
            .iter()
            .flat_map(|clients| {
                clients.networks.iter().map(move |network| format!("{network} behind {}", clients.interface))
            })
            .collect();
        output::line(format!(
            "{} has no faults: it splits connections of {}, {}",
            self.config.display(),
            networks.join(", "),
            if config.feed.is_some() {
                "with radio information"
            } else {
                "without radio information (no [feed])"
            },
        ))
    }
}
