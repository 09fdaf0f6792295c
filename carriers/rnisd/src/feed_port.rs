//! Where the server hands the feed of records over: every update in the server's own numbers, and the subscriptions whose
//! `transport` is `udp-binary` or `shared-memory`.
//!
//! The server calls [`FeedPort::on_update`] on the source's thread before it does anything else with the update, so that the feed does
//! not wait for queries or callbacks.

use std::net::SocketAddr;

use ranpace_phy::Direction;
use ranpace_rnis::etsi::vendor::Transport;
use ranpace_units::{Span, Time};
use serde_json::{Map, Value};

use crate::metrics::FeedMetrics;
use crate::source::Update;
use crate::viewer::Viewer;

/// The feed, as the server calls it.
pub trait FeedPort: Send {
    /// An update. Numbers of cells and users are the server's: a user keeps its number when it moves to a cell of another source.
    /// Must not block.
    fn on_update(&mut self, update: &Update);

    /// Opens a subscription, changes one that is open, or opens it again after a restart of the server: then `previous` is what this
    /// returned the first time, and keys and numbers in it stay valid.
    ///
    /// Returns the members of `vendorFeed` in the subscription's representation: what the subscriber needs to receive the records,
    /// such as a key, a stream's number or a path.
    ///
    /// # Errors
    ///
    /// If the feed does not offer this transport, or cannot take another subscription. A subscription that was open stays as it was.
    fn open(
        &mut self,
        subscription: &FeedSubscription,
        previous: Option<&Map<String, Value>>,
    ) -> Result<Map<String, Value>, FeedRefused>;

    /// The users that a subscription covers have changed: one attached, moved, or changed its identity.
    fn rescope(&mut self, id: u64, scope: &FeedScope);

    /// Closes a subscription: it was deleted or has expired.
    fn close(&mut self, id: u64);

    /// Its counters, which the server publishes with its own.
    fn metrics(&self) -> FeedMetrics;
}

/// A subscription to the feed.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedSubscription {
    /// Number of the subscription; never reused.
    pub id: u64,
    /// [`Transport::UdpBinary`] or [`Transport::SharedMemory`].
    pub transport: Transport,
    /// Which users and cells.
    pub scope: FeedScope,
    /// What the subscriber may see of them.
    pub viewer: Viewer,
    /// Direction of blocks, queues and retransmissions in datagrams.
    pub direction: Direction,
    /// Interval between two records; less than a TTI means every TTI.
    pub period: Span,
    /// Whether only changed records are sent.
    pub delta: bool,
    /// Expiry; [`Time::MAX`] for never. The server also calls [`FeedPort::close`].
    pub expires: Time,
    /// Where datagrams go: the callback's host and port, which the configuration allows.
    pub destination: Option<SocketAddr>,
}

/// What a subscription covers, in the server's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedScope {
    /// Cells; `None` for all.
    pub cells: Option<Vec<u16>>,
    /// Users, ascending; `None` for all. The subscriber may see all of them.
    pub users: Option<Vec<u32>>,
}

impl FeedScope {
    /// Whether the scope covers a user in a cell.
    pub fn covers(&self, cell: u16, user: u32) -> bool {
        let has_cell = self.cells.as_ref().is_none_or(|cells| cells.contains(&cell));
        has_cell && self.users.as_ref().is_none_or(|users| users.binary_search(&user).is_ok())
    }
}

/// Why the feed refused a subscription.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedRefused {
    /// The configuration or this build has no such transport.
    #[error("this server does not offer the transport {0}")]
    NoSuchTransport(&'static str),
    /// Too many subscriptions.
    #[error("expected at most {0} subscriptions of this transport")]
    TooMany(usize),
    /// Too many periods.
    #[error("expected one of the {0} periods in use: this server takes no more different ones")]
    TooManyPeriods(usize),
    /// The table shows all users.
    #[error(
        "expected a client that may see all users under all identifiers, because the shared table has them; \"udp-binary\" has a client's own"
    )]
    Restricted,
    /// Datagrams cannot be sent there.
    #[error("datagrams are sent from {from}, which cannot reach {to}")]
    Unreachable {
        /// The feed's address.
        from: SocketAddr,
        /// The subscriber's.
        to: SocketAddr,
    },
    /// Nobody answers there.
    #[error("{to} has not answered the invitations to {most} subscriptions: does a subscriber listen there?")]
    Unanswered {
        /// The subscriber's address.
        to: SocketAddr,
        /// Subscriptions to one address that may be unanswered.
        most: usize,
    },
    /// Datagrams need a destination.
    #[error("expected a callbackReference with a host and a port, such as udp://192.0.2.1:5000")]
    NoDestination,
    /// The system refused, such as a table that cannot be mapped.
    #[error("the feed failed: {0}")]
    System(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_covers_its_users_in_its_cells() {
        let all = FeedScope::default();
        assert!(all.covers(3, 99));
        let some = FeedScope { cells: Some(vec![1]), users: Some(vec![2, 5]) };
        assert!(some.covers(1, 5) && !some.covers(0, 5) && !some.covers(1, 3));
        let none = FeedScope { cells: None, users: Some(Vec::new()) };
        assert!(!none.covers(0, 0));
    }
}
