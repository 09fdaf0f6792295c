//! Where lines come from.

use std::fmt;
use std::net::ToSocketAddrs as _;
use std::path::PathBuf;
use std::str::FromStr;

/// Where the lines of a source come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A Unix socket at which the other side listens.
    Unix(PathBuf),
    /// A Unix socket at which we listen.
    UnixListen(PathBuf),
    /// A host and port at which the other side listens.
    Tcp(String),
    /// An address and port at which we listen.
    TcpListen(String),
    /// A named pipe.
    Pipe(PathBuf),
    /// A file that grows.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

/// Not such an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no address; expected unix:PATH, unix-listen:PATH, tcp:HOST:PORT, tcp-listen:ADDRESS:PORT, pipe:PATH, file:PATH, or -"
)]
pub struct NotAnAddress(pub String);

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let wrong = || NotAnAddress(text.to_owned());
        if text == "-" {
            return Ok(Self::Stdin);
        }
        let (kind, rest) = text.split_once(':').filter(|(_, rest)| !rest.is_empty()).ok_or_else(wrong)?;
        let port = |rest: &str| {
            let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
            let is_right = !host.is_empty() && port.parse::<u16>().is_ok();
            if is_right { Ok(rest.to_owned()) } else { Err(wrong()) }
        };
        Ok(match kind {
            "unix" => Self::Unix(rest.into()),
            "unix-listen" => Self::UnixListen(rest.into()),
            "tcp" => Self::Tcp(port(rest)?),
            "tcp-listen" => {
                // No name: what we listen at must not depend on a resolver.
                let address: std::net::SocketAddr = rest.parse().map_err(|_| wrong())?;
                Self::TcpListen(address.to_string())
            }
            "pipe" => Self::Pipe(rest.into()),
            "file" => Self::File(rest.into()),
            _ => return Err(wrong()),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::UnixListen(path) => write!(f, "unix-listen:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::TcpListen(address) => write!(f, "tcp-listen:{address}"),
            Self::Pipe(path) => write!(f, "pipe:{}", path.display()),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Stdin => f.write_str("-"),
        }
    }
}

/// The socket addresses of a host and port.
pub(super) fn resolve(address: &str) -> std::io::Result<Vec<std::net::SocketAddr>> {
    Ok(address.to_socket_addrs()?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_prints_itself() {
        for text in [
            "unix:/run/cell.sock",
            "unix-listen:/run/cell.sock",
            "tcp:gnb.example:5000",
            "tcp:[::1]:5000",
            "tcp-listen:127.0.0.1:5000",
            "pipe:/tmp/p",
            "file:run.jsonl",
            "-",
        ] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "/tmp/x", "unix:", "tcp:host", "tcp::5", "tcp:host:70000", "tcp-listen:name:5", "udp:a:1"]
        {
            let error = text.parse::<Address>().expect_err(text);
            assert!(error.to_string().contains("expected unix:PATH"), "{error}");
        }
    }
}
