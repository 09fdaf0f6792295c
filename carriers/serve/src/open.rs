//! QUIC connections that are open, for whoever asks the server what it does: `/show`, beside `/metrics`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noq::Connection;
use ranpace_noq::{ConnectionControl, Sample};
use serde::Serialize;
use tokio::time::Instant;

use crate::radio::Chooser;

/// Connections that are described in an answer, the oldest first. Ours: beyond that, an answer would take long.
const LISTED: usize = 1_000;

/// The connections that are open.
#[derive(Debug, Default)]
pub struct OpenConnections {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Number of the next one.
    next: u64,
    open: BTreeMap<u64, (Connection, Chooser, Instant)>,
}

/// A connection that is listed until this is dropped: noq closes a connection that nobody holds, so that the list must not hold it
/// longer than others do.
#[derive(Debug)]
pub struct Listed {
    all: Arc<OpenConnections>,
    number: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.all.lock().open.remove(&self.number);
    }
}

/// What `/show` says.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// Connections that are open, all of them.
    connections: usize,
    /// The first thousand of them.
    flows: Vec<Flow>,
}

/// An open connection.
#[derive(Debug, Serialize)]
struct Flow {
    /// Its number, since the server began.
    connection: u64,
    client: Option<SocketAddr>,
    /// Its congestion control.
    control: String,
    /// Time since its handshake.
    time_s: f64,
    #[serde(flatten)]
    sample: Option<Sample>,
}

impl OpenConnections {
    /// Lists a connection.
    pub fn enter(self: &Arc<Self>, connection: Connection, chooser: Chooser) -> Listed {
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        inner.open.insert(number, (connection, chooser, Instant::now()));
        Listed { all: Arc::clone(self), number }
    }

    /// What is open now.
    pub fn show(&self) -> Shown {
        // Samples take the connections' own locks: not under this one.
        let (connections, listed) = {
            let inner = self.lock();
            let listed = inner.open.iter().take(LISTED).map(|(number, of)| (*number, of.clone()));
            (inner.open.len(), listed.collect::<Vec<_>>())
        };
        let flows = listed.into_iter().map(|(number, (connection, chooser, begun))| {
            let controls = chooser.controls();
            Flow {
                connection: number,
                client: connection.path(noq::PathId::ZERO).and_then(|path| path.remote_address().ok()),
                control: controls.algorithm().as_str().to_owned(),
                time_s: begun.elapsed().as_secs_f64(),
                // A connection that is just being closed may have no path any more.
                sample: ConnectionControl::new(connection, Arc::clone(controls)).sample(),
            }
        });
        Shown { connections, flows: flows.collect() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Entries are whole after any panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
