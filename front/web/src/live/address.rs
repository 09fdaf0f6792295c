//! Addresses of running commands, and which of them the page may watch.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::problem::Refusal;

/// Where a proxy answers unless it is told otherwise (`control.socket`).
pub const PROXY: &str = "/run/ranpace-proxy.sock";
/// Where an RNIS server answers unless it is told otherwise (`listen`).
pub const RNIS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8012);
/// Where the examples of docs/serve.md have a server's metrics (`--metrics`, which has no default).
pub const SERVE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9106);
/// Where each emulation has a folder, which is called as its process.
pub const EMULATIONS: &str = "/run/ranpace";
/// Its own socket in that folder.
pub const STATUS: &str = "status.sock";
/// The socket of its proxy, if it has a real one.
pub const REAL_PROXY: &str = "proxy.sock";

/// Where a running command answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// By HTTP over TCP.
    Tcp(SocketAddr),
    /// At a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected an address and a port such as {RNIS}, or unix:/PATH of a socket, found {text:?}"
            )
        };
        if let Some(path) = text.strip_prefix("unix:") {
            let is_whole = path.starts_with('/') && !path.contains('\0') && !path.contains("/../");
            return if is_whole { Ok(Self::Unix(path.into())) } else { Err(expected()) };
        }
        // A name may lead anywhere, but this one does not.
        let local = text.strip_prefix("localhost:").map(|port| format!("{}:{port}", Ipv4Addr::LOCALHOST));
        local.as_deref().unwrap_or(text).parse().map(Self::Tcp).map_err(|_| expected())
    }
}

impl Address {
    /// The address that a page names, if it may be read: what the user of the command allows, and the usual sockets; and any port of this
    /// machine if the page is for this machine alone (`is_local`). The lab is no way into other machines, nor for them into this one.
    pub fn permitted(text: &str, allowed: &[Self], is_local: bool) -> Result<Self, Refusal> {
        let address: Self = text.parse().map_err(Refusal::impossible)?;
        let is_usual = match &address {
            Self::Tcp(of) => [RNIS, SERVE].contains(of) || is_local && of.ip().to_canonical().is_loopback(),
            Self::Unix(path) => path == Path::new(PROXY) || Self::of_emulation(path).is_some(),
        };
        if is_usual || allowed.contains(&address) {
            return Ok(address);
        }
        Err(Refusal::forbidden(format!(
            "{address} is not an address that this page may watch: `ranpace lab --attach {address}` allows it"
        )))
    }

    /// The name of a socket in the folder of an emulation.
    pub fn of_emulation(path: &Path) -> Option<&'static str> {
        let rest = path.strip_prefix(EMULATIONS).ok().and_then(Path::to_str)?;
        let (process, name) = rest.split_once('/')?;
        let is_process = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        [STATUS, REAL_PROXY].into_iter().find(|known| is_process && name == *known)
    }

    /// The usual addresses, and what answers there.
    pub fn usual() -> Vec<(Self, String)> {
        let mut all = Vec::new();
        for folder in std::fs::read_dir(EMULATIONS).into_iter().flatten().flatten() {
            let process = folder.file_name().to_string_lossy().into_owned();
            for (socket, what) in [(STATUS, "emulation"), (REAL_PROXY, "proxy of the emulation")] {
                let path = folder.path().join(socket);
                if path.exists() && Self::of_emulation(&path).is_some() {
                    all.push((Self::Unix(path), format!("{what} {process}")));
                }
            }
        }
        all.sort();
        all.push((Self::Unix(PROXY.into()), "a proxy".to_owned()));
        all.push((Self::Tcp(RNIS), "an RNIS server".to_owned()));
        all.push((Self::Tcp(SERVE), "a server".to_owned()));
        all
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;

    #[test]
    fn only_this_machine_and_what_is_allowed_is_read() {
        let allowed = ["192.0.2.1:80".parse().unwrap(), "unix:/tmp/a.sock".parse().unwrap()];
        let (forbidden, wrong) = (Some(StatusCode::FORBIDDEN), Some(StatusCode::UNPROCESSABLE_ENTITY));
        for (text, here, elsewhere) in [
            ("127.0.0.1:8012", None, None),
            ("127.0.0.1:9106", None, None),
            ("127.0.0.1:9000", None, forbidden),
            ("localhost:9000", None, forbidden),
            ("[::1]:8012", None, forbidden),
            ("[::ffff:127.0.0.1]:1", None, forbidden),
            ("unix:/run/ranpace-proxy.sock", None, None),
            ("unix:/run/ranpace/17/status.sock", None, None),
            ("unix:/run/ranpace/17/proxy.sock", None, None),
            ("192.0.2.1:80", None, None),
            ("unix:/tmp/a.sock", None, None),
            ("192.0.2.1:81", forbidden, forbidden),
            ("0.0.0.0:80", forbidden, forbidden),
            ("unix:/run/docker.sock", forbidden, forbidden),
            ("unix:/run/ranpace/17/other.sock", forbidden, forbidden),
            ("unix:/run/ranpace/x/status.sock", forbidden, forbidden),
            ("unix:/run/ranpace/1/2/status.sock", forbidden, forbidden),
            ("unix:/run/ranpace/../docker/status.sock", wrong, wrong),
            ("unix:relative", wrong, wrong),
            ("example.org:80", wrong, wrong),
            ("", wrong, wrong),
        ] {
            for (is_local, status) in [(true, here), (false, elsewhere)] {
                let found = Address::permitted(text, &allowed, is_local).err().map(|refusal| refusal.status);
                assert_eq!(found, status, "{text} {is_local}");
            }
        }
    }
}
