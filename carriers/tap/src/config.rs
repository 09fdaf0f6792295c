//! The configuration files of the PEP and of a server's agent: TOML, in which an unknown key or a wrong value is an error that names
//! the file, the line and the key. All faults are told at once.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ranpace_units::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// UDP port of the PEP, and of agents, where none is given. Ours; in the range that IANA assigns to nobody.
pub const PORT: u16 = 49_460;
/// Fewest bytes of a secret: those of the keys that are derived from it.
const LEAST_SECRET: usize = 16;
/// Most servers: the room of the program's table.
const MOST_SERVERS: usize = 1_024;
/// Most flows: a gigabyte of them.
const MOST_FLOWS: usize = 1 << 20;
/// Most faults that one reading reports.
const MOST_FAULTS: usize = 50;

/// The file of `ranpace pep`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PepConfig {
    /// Devices at which packets of servers come in.
    pub devices: Vec<String>,
    /// Number of the PEP, as its servers' agents know it.
    pub id: u32,
    /// Where servers reach it, and from where it reports.
    #[serde(default = "everywhere")]
    pub listen: SocketAddr,
    /// Most flows that it tracks; beyond, the one with the longest silence is forgotten.
    #[serde(default = "flows")]
    pub flows: usize,
    /// Silence after which a flow is forgotten.
    #[serde(default = "idle", deserialize_with = "time")]
    pub idle: Span,
    /// Whether it offers itself to servers that did not subscribe, every 10 s at most.
    #[serde(default)]
    pub offers: bool,
    /// Address of its metrics; without it there are none.
    pub metrics: Option<SocketAddr>,
    /// Servers that may subscribe.
    pub server: Vec<ServerConfig>,
    /// The log.
    #[serde(default)]
    pub log: LogConfig,
}

/// A server that may subscribe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Address that its packets come from, and its agent's messages too.
    pub address: IpAddr,
    /// UDP port of its agent.
    #[serde(default = "port")]
    pub port: u16,
    /// Number of the key: another one for each server.
    pub key: u16,
    /// File of the secret that the PEP shares with it.
    pub secret: PathBuf,
}

/// The file of a server's agent, `ranpace kernel feed --from pep:FILE`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// Where reports come in.
    #[serde(default = "everywhere")]
    pub listen: SocketAddr,
    /// PEPs that it subscribes to.
    pub pep: Vec<PepOfAgent>,
}

/// A PEP that an agent subscribes to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PepOfAgent {
    /// Its address and port.
    pub address: SocketAddr,
    /// Its number.
    pub id: u32,
    /// Number of the key, as in the PEP's file.
    pub key: u16,
    /// File of the secret that it shares with the PEP.
    pub secret: PathBuf,
}

/// The log.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// Form.
    pub format: LogFormat,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

fn everywhere() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT)
}

fn port() -> u16 {
    PORT
}

fn flows() -> usize {
    65_536
}

fn idle() -> Span {
    Span::from_secs(30)
}

/// A time with its unit.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{file}: {error}")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's reason.
        #[source]
        error: std::io::Error,
    },
    /// What is in it is wrong.
    #[error(transparent)]
    Faults(#[from] Faults),
}

/// All faults of a configuration, by line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults {
    /// The file.
    pub file: String,
    /// At least one.
    pub faults: Vec<Fault>,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1, if it has one.
    pub line: Option<usize>,
    /// What was expected, what was found, and what to do.
    pub reason: String,
}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Fault { line, reason }) in self.faults.iter().enumerate() {
            let separator = if number > 0 { "\n" } else { "" };
            match line {
                Some(line) => write!(formatter, "{separator}{}, line {line}: {reason}", self.file)?,
                None => write!(formatter, "{separator}{}: {reason}", self.file)?,
            }
        }
        Ok(())
    }
}

impl PepConfig {
    /// Reads and checks a file; files that it names are relative to its folder.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or something in it is wrong.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        read(file, |config: &mut Self, folder| {
            config.server.iter_mut().for_each(|server| server.secret = folder.join(&server.secret));
            config.faults()
        })
    }

    /// Keys that do not fit together, and secrets that cannot be used.
    fn faults(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.devices.is_empty() {
            found.push(
                "`devices`: expected the devices at which packets of servers come in, such as [\"eth0\"]"
                    .to_owned(),
            );
        }
        for device in &self.devices {
            if nix::net::if_::if_nametoindex(device.as_str()).is_err() {
                found.push(format!(
                    "`devices`: there is no device {device:?} in this network namespace; `ip link` lists them"
                ));
            }
        }
        if self.server.is_empty() || self.server.len() > MOST_SERVERS {
            let count = self.server.len();
            found.push(format!("`server`: expected 1 to {MOST_SERVERS} tables [[server]], found {count}"));
        }
        if self.flows == 0 || self.flows > MOST_FLOWS {
            found.push(format!("`flows`: expected 1 to {MOST_FLOWS}, found {}", self.flows));
        }
        if self.idle < Span::SECOND {
            found.push(format!("`idle`: expected at least 1s, found {}", self.idle));
        }
        let (mut addresses, mut keys) = (HashSet::new(), HashSet::new());
        for ServerConfig { address, key, secret, .. } in &self.server {
            if !addresses.insert(address.to_canonical()) {
                found.push(format!("`server.address`: {address} is there twice"));
            }
            if !keys.insert(key) {
                found.push(format!(
                    "`server.key`: {key} is there twice, which would use one key for two sequences of messages; give {address} another \
                     number"
                ));
            }
            found.extend(read_secret(secret).err().map(|reason| format!("`server.secret`: {reason}")));
        }
        found
    }
}

impl AgentConfig {
    /// As [`PepConfig::read`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        read(file, |config: &mut Self, folder| {
            config.pep.iter_mut().for_each(|pep| pep.secret = folder.join(&pep.secret));
            config.faults()
        })
    }

    fn faults(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.pep.is_empty() {
            found.push("`pep`: expected at least one table [[pep]]".to_owned());
        }
        let (mut addresses, mut keys) = (HashSet::new(), HashSet::new());
        for PepOfAgent { address, id, key, secret } in &self.pep {
            if !addresses.insert(address) {
                found.push(format!("`pep.address`: {address} is there twice"));
            }
            if !keys.insert((id, key)) {
                found.push(format!(
                    "`pep.key`: {key} of PEP {id} is there twice; give {address} another number"
                ));
            }
            if address.is_ipv4() != self.listen.is_ipv4() {
                found.push(format!(
                    "`pep.address`: {address} cannot be reached from `listen`, {}",
                    self.listen
                ));
            }
            found.extend(read_secret(secret).err().map(|reason| format!("`pep.secret`: {reason}")));
        }
        found
    }
}

/// Reads the secret of a file: all of it but blanks at its ends.
///
/// # Errors
///
/// If it cannot be read, others can read it, or it is too short.
pub fn read_secret(file: &Path) -> Result<Vec<u8>, String> {
    let name = file.display();
    let unreadable = |error: std::io::Error| format!("{name}: {error}");
    let mode = std::fs::metadata(file).map_err(unreadable)?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(format!("{name} is open to everybody on this host; chmod 600 {name}"));
    }
    let content = std::fs::read(file).map_err(unreadable)?;
    let secret = content.trim_ascii();
    if secret.len() < LEAST_SECRET {
        return Err(format!(
            "{name} has {} bytes, expected at least {LEAST_SECRET}; openssl rand -hex 32 > {name}",
            secret.len()
        ));
    }
    Ok(secret.to_vec())
}

/// Reads a file, and lets `check` find what does not fit together.
fn read<T: DeserializeOwned>(
    file: &Path,
    check: impl FnOnce(&mut T, &Path) -> Vec<String>,
) -> Result<T, ConfigError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError::Unreadable { file: name.clone(), error })?;
    let (config, mut faults) = parse::<T>(&text);
    let Some(mut config) = config else { return Err(Faults { file: name, faults }.into()) };
    let inconsistent = check(&mut config, file.parent().unwrap_or(Path::new("")));
    faults.extend(inconsistent.into_iter().map(|reason| Fault { line: None, reason }));
    if faults.is_empty() { Ok(config) } else { Err(Faults { file: name, faults }.into()) }
}

/// What can be read, and what cannot: the line of each fault is left out, and the rest read again.
fn parse<T: DeserializeOwned>(text: &str) -> (Option<T>, Vec<Fault>) {
    let (mut rest, mut faults) = (text.to_owned(), Vec::new());
    loop {
        let error = match toml_edit::de::from_str::<T>(&rest) {
            Ok(config) => return (Some(config), faults),
            Err(error) => error,
        };
        let reason = error.message().trim_end().to_owned();
        let at = error.span().map(|span| span.start.min(rest.len()));
        let line = at.map(|at| rest.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count());
        faults.push(Fault { line: line.map(|line| line + 1), reason: reason.clone() });
        // Nothing can be left out of what is missing.
        let Some(line) = line.filter(|_| !reason.starts_with("missing field") && faults.len() < MOST_FAULTS)
        else {
            return (None, faults);
        };
        let left: Vec<&str> =
            rest.lines().enumerate().map(|(number, text)| if number == line { "" } else { text }).collect();
        let left = left.join("\n");
        if left == rest {
            return (None, faults);
        }
        rest = left;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder with a good secret and one that everybody can read.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content, mode) in [
            ("good", "0123456789abcdef0123\n", 0o600),
            ("open", "0123456789abcdef", 0o644),
            ("short", "abc", 0o600),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        folder
    }

    fn pep(text: &str) -> Result<PepConfig, ConfigError> {
        let folder = folder();
        let file = folder.path().join("pep.toml");
        fs::write(&file, text).unwrap();
        PepConfig::read(&file)
    }

    #[test]
    fn a_short_file_is_enough() {
        let text =
            "devices = [\"lo\"]\nid = 7\n[[server]]\naddress = \"192.0.2.1\"\nkey = 1\nsecret = \"good\"\n";
        let config = pep(text).unwrap();
        assert_eq!((config.flows, config.listen.port(), config.server[0].port), (65_536, PORT, PORT));
        assert_eq!(read_secret(&folder().path().join("good")).unwrap(), b"0123456789abcdef0123");
    }

    #[test]
    fn every_fault_is_told_at_once_with_its_remedy() {
        let text = "devices = [\"no-such-device\"]\nid = 7\nflow = 3\nidle = \"1\"\n[[server]]\naddress = \"192.0.2.1\"\nkey = 1\n\
                    secret = \"open\"\n[[server]]\naddress = \"192.0.2.1\"\nkey = 1\nsecret = \"short\"\n";
        let told = pep(text).unwrap_err().to_string();
        for expected in [
            "pep.toml, line 3: unknown field `flow`",
            "pep.toml, line 4: ",
            "no device \"no-such-device\"",
            "`server.address`: 192.0.2.1 is there twice",
            "`server.key`: 1 is there twice",
            "chmod 600",
            "has 3 bytes, expected at least 16",
        ] {
            assert!(told.contains(expected), "{expected}: {told}");
        }
        let told = pep("id = 7").unwrap_err().to_string();
        assert!(told.contains("missing field `devices`"), "{told}");
    }

    #[test]
    fn an_agent_needs_a_pep() {
        let folder = folder();
        let file = folder.path().join("agent.toml");
        fs::write(&file, "pep = []").unwrap();
        assert!(AgentConfig::read(&file).unwrap_err().to_string().contains("[[pep]]"));
        fs::write(&file, "[[pep]]\naddress = \"[::1]:1\"\nid = 1\nkey = 1\nsecret = \"good\"").unwrap();
        assert!(AgentConfig::read(&file).unwrap_err().to_string().contains("cannot be reached"));
    }
}
