//! The configuration files of the PEP and of a server's agent: TOML, in which an unknown key or a wrong value is an error that names
//! the file, the line and the key. All faults are told at once.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ranpace_config::{ConfigError, Configuration, Faults, Inconsistency, Log};
use ranpace_units::Span;
use serde::Deserialize;

/// UDP port of the PEP, and of agents, where none is given. Ours; in the range that IANA assigns to nobody.
pub const PORT: u16 = 49_460;
/// Fewest bytes of a secret: those of the AES-128 keys that are derived from it. Ours.
const LEAST_SECRET: usize = 16;
/// Most bytes of its file. Ours.
const MOST_SECRET: u64 = 4_096;
/// Most servers: the room of `servers` in `bpf/tap.bpf.c`.
const MOST_SERVERS: usize = 1_024;
/// Most flows: a gigabyte of them. Ours.
const MOST_FLOWS: usize = 1 << 20;

/// What is said of port 0.
const NO_PORT: &str = "expected a port from 1 to 65535, which the other side can name";

/// The file of `ranpace pep`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PepConfig {
    /// Devices at which packets of servers come in; at least one.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Number of the PEP, as its servers' agents know it.
    pub id: u32,
    /// Where servers reach it, and from where it reports.
    #[serde(default = "everywhere", deserialize_with = "ranpace_config::address")]
    pub listen: SocketAddr,
    /// Most flows that it tracks; beyond, the one with the longest silence is forgotten.
    #[serde(default = "flows")]
    pub flows: usize,
    /// Silence after which a flow is forgotten.
    #[serde(default = "idle", deserialize_with = "ranpace_config::time")]
    pub idle: Span,
    /// Whether it offers itself to servers that did not subscribe, every 10 s at most.
    #[serde(default)]
    pub offers: bool,
    /// Address of its metrics; without it there are none.
    #[serde(default, deserialize_with = "ranpace_config::optional_address")]
    pub metrics: Option<SocketAddr>,
    /// Servers that may subscribe; at least one.
    #[serde(default)]
    pub server: Vec<ServerConfig>,
    /// The log.
    #[serde(default)]
    pub log: Log,
}

/// A server that may subscribe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Address that its packets come from, and its agent's messages too.
    #[serde(deserialize_with = "ranpace_config::address")]
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
    #[serde(default = "everywhere", deserialize_with = "ranpace_config::address")]
    pub listen: SocketAddr,
    /// PEPs that it subscribes to; at least one.
    #[serde(default)]
    pub pep: Vec<PepOfAgent>,
}

/// A PEP that an agent subscribes to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PepOfAgent {
    /// Its address and port.
    #[serde(deserialize_with = "ranpace_config::address")]
    pub address: SocketAddr,
    /// Its number.
    pub id: u32,
    /// Number of the key, as in the PEP's file.
    pub key: u16,
    /// File of the secret that it shares with the PEP.
    pub secret: PathBuf,
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

impl PepConfig {
    /// Reads and checks a file; files that it names are relative to its folder.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or something in it is wrong.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        ranpace_config::read(file)
    }

    /// Parses the text of a file; `name` is the file's in errors.
    ///
    /// # Errors
    ///
    /// All that is wrong in it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Faults> {
        ranpace_config::parse(name, text)
    }
}

impl Configuration for PepConfig {
    fn relative_to(&mut self, folder: &Path) {
        self.server.iter_mut().for_each(|server| server.secret = folder.join(&server.secret));
    }

    fn inconsistencies(&self) -> Vec<Inconsistency> {
        let mut found = Vec::new();
        if self.devices.is_empty() {
            let reason = "expected the devices at which packets of servers come in, such as [\"eth0\"]";
            found.push(Inconsistency::at("devices", reason));
        }
        for (number, device) in self.devices.iter().enumerate() {
            if self.devices[..number].contains(device) {
                found.push(Inconsistency::at("devices", format!("{device:?} is there twice")));
            }
            if nix::net::if_::if_nametoindex(device.as_str()).is_err() {
                let reason =
                    format!("there is no device {device:?} in this network namespace; `ip link` lists them");
                found.push(Inconsistency::at("devices", reason));
            }
            if let Some(below) = self.devices.iter().find(|below| is_above(device, below)) {
                let reason = format!(
                    "packets that come in at {below:?} come in at {device:?} again, and would be counted twice; name one of them"
                );
                found.push(Inconsistency::at("devices", reason));
            }
        }
        if self.server.is_empty() || self.server.len() > MOST_SERVERS {
            let reason =
                format!("expected 1 to {MOST_SERVERS} tables [[server]], found {}", self.server.len());
            found.push(Inconsistency::at("server", reason));
        }
        if self.flows == 0 || self.flows > MOST_FLOWS {
            let reason = format!("expected 1 to {MOST_FLOWS}, found {}", self.flows);
            found.push(Inconsistency::at("flows", reason));
        }
        if self.idle < Span::SECOND {
            let reason = format!("expected at least 1s, found {}", self.idle);
            found.push(Inconsistency::at("idle", reason));
        }
        if self.listen.port() == 0 {
            found.push(Inconsistency::at("listen", NO_PORT));
        }
        let (mut addresses, mut keys) = (HashSet::new(), HashSet::new());
        for (number, ServerConfig { address, port, key, secret }) in self.server.iter().enumerate() {
            let mut add = |key, reason| found.push(Inconsistency::in_entry(key, number, reason));
            if !reaches(self.listen.ip(), *address) {
                let reason = format!(
                    "{address} cannot be reached from `listen`, {}; listen at 0.0.0.0:{PORT} for servers with IPv4 addresses, and at \
                     [::]:{PORT} for all",
                    self.listen
                );
                add("server.address", reason);
            }
            if *port == 0 {
                add("server.port", NO_PORT.to_owned());
            }
            if !addresses.insert(address.to_canonical()) {
                add("server.address", format!("{address} is there twice"));
            }
            if !keys.insert(key) {
                let reason = format!(
                    "{key} is there twice, which would use one key for two sequences of messages; give {address} another number"
                );
                add("server.key", reason);
            }
            if let Err(reason) = read_secret(secret) {
                add("server.secret", reason);
            }
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
        ranpace_config::read(file)
    }

    /// As [`PepConfig::parse`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn parse(name: &str, text: &str) -> Result<Self, Faults> {
        ranpace_config::parse(name, text)
    }
}

impl Configuration for AgentConfig {
    fn relative_to(&mut self, folder: &Path) {
        self.pep.iter_mut().for_each(|pep| pep.secret = folder.join(&pep.secret));
    }

    fn inconsistencies(&self) -> Vec<Inconsistency> {
        let mut found = Vec::new();
        if self.pep.is_empty() {
            found.push(Inconsistency::at("pep", "expected at least one table [[pep]]"));
        }
        if self.listen.port() == 0 {
            found.push(Inconsistency::at("listen", NO_PORT));
        }
        let (mut addresses, mut keys) = (HashSet::new(), HashSet::new());
        for (number, PepOfAgent { address, id, key, secret }) in self.pep.iter().enumerate() {
            let mut add = |key, reason| found.push(Inconsistency::in_entry(key, number, reason));
            if !addresses.insert(address) {
                add("pep.address", format!("{address} is there twice"));
            }
            if !keys.insert((id, key)) {
                let reason = format!("{key} of PEP {id} is there twice; give {address} another number");
                add("pep.key", reason);
            }
            if !reaches(self.listen.ip(), address.ip()) {
                let reason = format!(
                    "{address} cannot be reached from `listen`, {}; listen at 0.0.0.0:{PORT} for PEPs with IPv4 addresses, and at \
                     [::]:{PORT} for all",
                    self.listen
                );
                add("pep.address", reason);
            }
            if let Err(reason) = read_secret(secret) {
                add("pep.secret", reason);
            }
        }
        found
    }
}

/// Whether a socket at `own` sends to `other`: one at the unspecified address of IPv6 sends to IPv4 too.
fn reaches(own: IpAddr, other: IpAddr) -> bool {
    own == IpAddr::V6(Ipv6Addr::UNSPECIFIED) || own.to_canonical().is_ipv4() == other.to_canonical().is_ipv4()
}

/// Whether `device` stands above another one: a VLAN, a bridge or a bond of it, whose packets come in at both.
fn is_above(device: &str, below: &str) -> bool {
    // A name with a path in it is none.
    !device.contains('/')
        && !below.contains('/')
        && Path::new("/sys/class/net").join(device).join(format!("lower_{below}")).exists()
}

/// Reads the secret of a file: all of it but blanks at its ends.
///
/// # Errors
///
/// If it cannot be read, others can read it, or it is too short or too long.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.display();
    let unreadable = |error: std::io::Error| format!("{name}: {error}");
    let about = std::fs::metadata(path).map_err(unreadable)?;
    // A named pipe would have to be waited for.
    if !about.is_file() {
        return Err(format!("{name} is no file"));
    }
    if about.permissions().mode() & 0o007 != 0 {
        return Err(format!("{name} is open to everybody on this host; chmod 600 {name}"));
    }
    let mut content = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST_SECRET + 1).read_to_end(&mut content).map_err(unreadable)?;
    let secret = content.trim_ascii();
    if secret.len() < LEAST_SECRET || content.len() as u64 > MOST_SECRET {
        return Err(format!(
            "{name} has {} bytes, expected {LEAST_SECRET} to {MOST_SECRET}; openssl rand -hex 32 > {name}",
            if content.len() as u64 > MOST_SECRET { about.len() } else { secret.len() as u64 }
        ));
    }
    Ok(secret.to_vec())
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
            "pep.toml, line 1: `devices`: there is no device \"no-such-device\"",
            "pep.toml, line 3: `flow`: unknown key; did you mean `flows`?",
            "pep.toml, line 4: `idle`: ",
            "pep.toml, line 8: `server.secret`: ",
            "chmod 600",
            "pep.toml, line 10: `server.address`: 192.0.2.1 is there twice",
            "pep.toml, line 11: `server.key`: 1 is there twice",
            "pep.toml, line 12: `server.secret`: ",
            "has 3 bytes, expected 16 to 4096",
        ] {
            assert!(told.contains(expected), "{expected}: {told}");
        }
        let told = pep("id = 7").unwrap_err().to_string();
        assert!(
            told.contains("`devices`: expected the devices") && told.contains("`server`: expected 1"),
            "{told}"
        );
        let told = pep("devices = [\"lo\"]").unwrap_err().to_string();
        assert!(told.ends_with("pep.toml: missing key `id`"), "{told}");
        let text = "devices = [\"lo\", \"lo\"]\nid = 7\nlisten = \"0.0.0.0:0\"\n[[server]]\naddress = \"2001:db8::1\"\nport = 0\n\
                    key = 1\nsecret = \"good\"";
        let told = pep(text).unwrap_err().to_string();
        for expected in [
            "line 1: `devices`: \"lo\" is there twice",
            "line 3: `listen`: expected a port",
            "line 5: `server.address`: 2001:db8::1 cannot be reached from `listen`",
            "line 6: `server.port`: expected a port",
        ] {
            assert!(told.contains(expected), "{expected}: {told}");
        }
    }

    #[test]
    fn an_agent_needs_a_pep() {
        let folder = folder();
        let file = folder.path().join("agent.toml");
        fs::write(&file, "pep = []").unwrap();
        assert!(AgentConfig::read(&file).unwrap_err().to_string().contains("[[pep]]"));
        for (listen, pep, is_reached) in [
            ("0.0.0.0:1", "192.0.2.1:1", true),
            ("0.0.0.0:1", "[2001:db8::1]:1", false),
            ("[::]:1", "192.0.2.1:1", true),
            ("[::]:1", "[2001:db8::1]:1", true),
            ("[::1]:1", "192.0.2.1:1", false),
            ("127.0.0.1:1", "[::ffff:192.0.2.1]:1", true),
        ] {
            let key = "id = 1\nkey = 1\nsecret = \"good\"";
            fs::write(&file, format!("listen = \"{listen}\"\n[[pep]]\naddress = \"{pep}\"\n{key}")).unwrap();
            let told = AgentConfig::read(&file).err().map(|error| error.to_string());
            assert_eq!(told.is_none(), is_reached, "{listen} {pep}: {told:?}");
            assert!(
                told.is_none_or(|told| told.contains("line 3: `pep.address`") && told.contains("[::]:49460"))
            );
        }
    }
}
