//! Reads the feed of records: hints about users' radio with their ages, from a server of this or another host, or from the shared
//! table of this host.
//!
//! A [`HintReader`] is used by one thread, which waits for news and then looks at the users that it is interested in. It keeps its subscription
//! alive; while the server is away hints grow old, and when it is back they go on.
//!
//! ```no_run
//! use std::net::IpAddr;
//! use std::time::Duration;
//!
//! use ranpace_rnis::StalenessLimit;
//! use ranpace_rnisd::client::{HintReader, Origin, Wanted};
//! use ranpace_units::Span;
//!
//! let origin: Origin = "rnis:http://127.0.0.1:8012".parse()?;
//! let wanted = Wanted { period: Span::from_millis(1), ..Wanted::default() };
//! let mut reader = HintReader::open(&origin, &wanted)?;
//! let phone: IpAddr = "10.77.0.2".parse()?;
//! loop {
//!     reader.wait(Duration::from_millis(100))?;
//!     let now = ranpace_rnisd::clock::now()?;
//!     if let Some(aged) = reader.hint(phone)
//!         && let Some(hint) = aged.fresh(now, StalenessLimit::Meld, wanted.period)
//!     {
//!         println!("{} PRBs, {} bytes wait", hint.granted, hint.queue);
//!     }
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod datagrams;
mod subscription;
mod table;

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ranpace_phy::Direction;
use ranpace_rnis::RadioHint;
use ranpace_rnis::feed::receiver::AgedHint;
use ranpace_rnis::shared_table::directory::Identity;
use ranpace_units::Span;
use url::Url;

use self::datagrams::DatagramReader;
use self::table::TableHints;
use crate::table::TableError;

/// Where hints come from, as text `rnis:http://HOST:PORT`, `rnis:https://HOST:PORT` or `table:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A server, by datagrams.
    Server(Url),
    /// The shared table in this file.
    Table(PathBuf),
}

/// A text that names no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected rnis:http://HOST:PORT, rnis:https://HOST:PORT or table:PATH, found {found:?}")]
pub struct NotAnOrigin {
    /// The text.
    pub found: String,
}

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let wrong = || NotAnOrigin { found: text.to_owned() };
        if let Some(path) = text.strip_prefix("table:").filter(|path| !path.is_empty()) {
            return Ok(Self::Table(path.into()));
        }
        let address = text.strip_prefix("rnis:").ok_or_else(wrong)?;
        let url: Url = address.parse().map_err(|_| wrong())?;
        let is_server = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
        if is_server { Ok(Self::Server(url)) } else { Err(wrong()) }
    }
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Direction of blocks, queues and rates.
    pub direction: Direction,
    /// Interval between two reports; less than a TTI means every TTI.
    pub period: Span,
    /// Addresses of users; empty for all that this application may see.
    pub users: Vec<IpAddr>,
    /// A server's bearer token.
    pub token: Option<String>,
    /// PEM file of the authority that signed the server's certificate, if that is no public one.
    pub ca: Option<PathBuf>,
}

impl Default for Wanted {
    /// All users, their downlink, in every TTI.
    fn default() -> Self {
        Self { direction: Direction::Downlink, period: Span::ZERO, users: Vec::new(), token: None, ca: None }
    }
}

/// Why hints cannot be read at all. What may pass, such as a server that does not answer, is no error: [`HintReader::complaint`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A file of certificates, a name, random numbers, or the clock.
    #[error("{0}")]
    Setup(String),
    /// The socket of datagrams.
    #[error("the socket for datagrams: {0}")]
    Socket(#[from] std::io::Error),
    /// The table.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Reads hints.
pub struct HintReader(Inner);

enum Inner {
    Datagrams(Box<DatagramReader>),
    Table(Box<TableHints>),
}

impl HintReader {
    /// Begins to read. Nothing is waited for: neither a server nor a table has to be there yet.
    ///
    /// # Errors
    ///
    /// There is no socket, no clock, or a file cannot be read.
    pub fn open(origin: &Origin, wanted: &Wanted) -> Result<Self, ClientError> {
        Ok(Self(match origin {
            Origin::Server(url) => Inner::Datagrams(Box::new(DatagramReader::open(url, wanted)?)),
            Origin::Table(path) => Inner::Table(Box::new(TableHints::new(path, wanted))),
        }))
    }

    /// Waits until something has come, but not longer than `at_most`; returns whether it has. Datagrams are taken one by one, so that no
    /// report is passed over.
    ///
    /// # Errors
    ///
    /// The socket failed, or the system cannot wait.
    pub fn wait(&mut self, at_most: Duration) -> Result<bool, ClientError> {
        match &mut self.0 {
            Inner::Datagrams(reader) => reader.wait(at_most),
            Inner::Table(reader) => reader.wait(at_most),
        }
    }

    /// The latest hint about the user with this address. Its time is of this host's monotonic clock ([`crate::clock::now`]).
    pub fn hint(&mut self, user: IpAddr) -> Option<AgedHint> {
        match &mut self.0 {
            Inner::Datagrams(reader) => reader.hint(user),
            Inner::Table(reader) => reader.hint(user),
        }
    }

    /// The grants of a user since the last call, each with its own block: from the table exactly those that were given; from datagrams, which
    /// have means, a block of the mean for each report.
    pub fn grants(&mut self, user: IpAddr, tell: &mut dyn FnMut(RadioHint)) {
        match &mut self.0 {
            Inner::Datagrams(reader) => reader.grants(user, tell),
            Inner::Table(reader) => reader.grants(user, tell),
        }
    }

    /// Users that are known, with their names and addresses.
    pub fn users(&self) -> Vec<Identity> {
        match &self.0 {
            Inner::Datagrams(reader) => reader.users(),
            Inner::Table(reader) => reader.users(),
        }
    }

    /// Reports that have come; slots, of the table.
    pub fn reports(&self) -> u64 {
        match &self.0 {
            Inner::Datagrams(reader) => reader.reports(),
            Inner::Table(reader) => reader.reports(),
        }
    }

    /// Why nothing comes, if the server or the table is not there; each reason once.
    pub fn complaint(&mut self) -> Option<String> {
        match &mut self.0 {
            Inner::Datagrams(reader) => reader.complaint(),
            Inner::Table(reader) => reader.complaint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_and_others_are_refused() {
        assert_eq!("table:/dev/shm/rnis".parse(), Ok(Origin::Table("/dev/shm/rnis".into())));
        let server: Origin = "rnis:https://edge.example:8012/".parse().unwrap();
        assert!(matches!(server, Origin::Server(url) if url.port() == Some(8012)));
        for wrong in ["", "table:", "rnis:", "rnis:edge", "rnis:ftp://edge", "http://edge", "hints.pipe"] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong}");
        }
    }
}
