//! `ranpace rnis serve` and `ranpace rnis check`: the server, and its configuration.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use ranpace_config::{ConfigError, LogFormat, LogLevel};
use ranpace_rnisd::config::{Config, SourceConfig};
use ranpace_rnisd::feed;
use ranpace_rnisd::ipnet::IpNet;
use ranpace_rnisd::server::{ServeError, Server, allow_files, check_files};
use ranpace_rnisd::source::NamedSource;

use crate::failure::Failure;
use crate::{interrupt, log, output};

/// What faults of options are told under, where a file's name stands otherwise.
const OPTIONS: &str = "the options";
/// How often it is looked whether the server is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Serve radio network information by ETSI MEC 012, until Ctrl-C
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace rnis serve --source lines=unix:/run/cell.sock\n  \
    ranpace rnis serve --source replay=run.jsonl --listen 127.0.0.1:9012\n  \
    ranpace rnis serve /etc/ranpace/rnis.toml --log json\n\n\
    docs/rnis-server.md lists all keys of the configuration. Options come before what the file says.\n\
    Exit status: 0 stopped by Ctrl-C or SIGTERM, 2 a fault in the configuration, 1 anything else, such as a port in use.")]
pub struct Serve {
    /// Configuration, a TOML file [default: listen at 127.0.0.1:8012, keep nothing on the disk]
    config: Option<PathBuf>,
    /// Where radio information comes from, beside the file's sources; repeat for several. KIND=WHERE: lines=ADDRESS (unix:PATH,
    /// tcp:HOST:PORT, pipe:PATH, file:PATH, - and others), replay=FILE, loop=FILE (played again and again)
    #[arg(long, value_name = "KIND=WHERE", value_parser = source)]
    source: Vec<SourceConfig>,
    /// Address and port of the interface
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Folder in which subscriptions survive a restart
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Loopback or private network to which callbacks may go, such as 127.0.0.0/8; repeat for several
    #[arg(long, value_name = "NETWORK")]
    allow_callbacks: Vec<IpNet>,
    /// Form of the log, on standard error
    #[arg(long, value_name = "FORM")]
    log: Option<Log>,
    /// Least important messages of the log
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Level>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Log {
    Text,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Check a configuration of `ranpace rnis serve`: every fault with its line, key and remedy
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ranpace rnis check /etc/ranpace/rnis.toml")]
pub struct Check {
    /// Configuration, a TOML file
    config: PathBuf,
}

/// A source as an option names it.
fn source(text: &str) -> Result<SourceConfig, String> {
    let (kind, place) = text.split_once('=').unwrap_or((text, ""));
    let place = Some(place.to_owned()).filter(|place| !place.is_empty());
    let mut source = SourceConfig::default();
    match (kind, place) {
        ("lines", Some(place)) => source.lines = Some(place),
        ("replay", Some(place)) => source.replay = Some(place.into()),
        ("loop", Some(place)) => (source.replay, source.loops) = (Some(place.into()), true),
        ("srsran", _) => {
            return Err(
                "srsRAN's cells need a description: write a [[source]] with its [[source.cell]] in a file \
                        (docs/rnis-sources.md)"
                    .to_owned(),
            );
        }
        _ => return Err("expected lines=ADDRESS, replay=FILE or loop=FILE".to_owned()),
    }
    source.open().map(|_| source)
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Setup(_) => Self::asked(error),
            _ => Self::ours(error),
        }
    }
}

impl Serve {
    /// The file with the options.
    fn config(&self) -> Result<Config, ConfigError> {
        let mut config = match &self.config {
            Some(file) => Config::read(file)?,
            None => Config::default(),
        };
        config.source.extend(self.source.iter().cloned());
        config.callbacks.allow.extend(&self.allow_callbacks);
        if let Some(listen) = self.listen {
            config.listen = listen;
        }
        if self.data.is_some() {
            config.data.clone_from(&self.data);
        }
        if let Some(form) = self.log {
            config.log.format = match form {
                Log::Text => LogFormat::Text,
                Log::Json => LogFormat::Json,
            };
        }
        if let Some(level) = self.log_level {
            config.log.level = match level {
                Level::Error => LogLevel::Error,
                Level::Warn => LogLevel::Warn,
                Level::Info => LogLevel::Info,
                Level::Debug => LogLevel::Debug,
            };
        }
        config.check(OPTIONS)?;
        Ok(config)
    }

    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let config = self.config()?;
        // Before there is anything that a signal could interrupt. What is to be said when it stops, the log says.
        interrupt::flag();
        interrupt::at_exit(|| {});
        log::to_standard_error(&config.log);
        let sources: Result<Vec<NamedSource>, String> =
            config.source.iter().map(SourceConfig::open).collect();
        let sources = sources.map_err(Failure::asked)?;
        let (for_people, count, keeps) =
            (config.log.format == LogFormat::Text, sources.len(), config.data.is_some());
        allow_files(config.limits.connections);
        let feed = feed::from_config(&config.feed).map_err(Failure::asked)?;
        let server = Server::start(config, sources, feed)?;
        if for_people {
            let sources = match count {
                0 => "no source: add --source lines=unix:PATH".to_owned(),
                1 => "one source".to_owned(),
                count => format!("{count} sources"),
            };
            let kept =
                if keeps { "" } else { "; subscriptions end with the server (keep them: --data FOLDER)" };
            output::say(&format!(
                "listening at {}/rni/v2 with {sources}{kept}; /health and /metrics are there too. Ctrl-C stops it",
                server.root()
            ));
        }
        while !interrupt::is_set() {
            thread::sleep(LOOK);
        }
        drop(server);
        Ok(())
    }
}

impl Check {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let config = Config::read(&self.config)?;
        let name = self.config.display().to_string();
        check_files(&config, &name).map_err(ConfigError::from)?;
        output::line(format!(
            "{name} has no faults: it listens at {}, {}, {}, with {} source{}",
            config.listen,
            if config.tls.is_some() { "encrypted" } else { "not encrypted" },
            if config.auth.is_some() { "for clients with a token" } else { "for everybody on this host" },
            config.source.len(),
            if config.source.len() == 1 { "" } else { "s" },
        ))
    }
}
