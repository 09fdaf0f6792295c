//! What Lightweight PEPs report, for the connections of Multi-Domain control.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ranpace_kernel::{PepSeen, Reported};
use ranpace_pep::lightweight::Verified;
use ranpace_pep::lightweight::message::View;
use ranpace_tap::agent::{AgentError, Agents, Heard};
use ranpace_tap::config::AgentConfig;

use super::{Destination, Listener, Peps, REFRESH, Told};
use crate::failure::Failure;
use crate::output;

/// Longest wait for a report: how soon it is seen that it is to end. Ours.
const WAIT: Duration = Duration::from_millis(20);
/// How soon after one look another follows, where a report tells of a connection that was not listed: its first packets are what a PEP
/// can help most with. Ours.
const SOON: Duration = Duration::from_millis(2);

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Secret(_) => Self::asked(error),
            _ => Self::ours(error),
        }
    }
}

/// A report on a TCP connection, as the control is told of it; `None` for a flow of another transport.
fn seen(report: &Verified) -> Option<PepSeen> {
    let View::Tcp(view) = report.report.view else { return None };
    Some(PepSeen {
        cumulative: view.cumulative,
        ranges: view.ranges().to_vec(),
        hold: report.report.hold,
        marked: report.report.marked.map(u64::from),
        new_epoch: report.new_epoch,
    })
}

impl Listener<'_> {
    /// Begins to listen to the PEPs of a file.
    pub fn agents(&self, file: &Path) -> Result<Agents, Failure> {
        if !matches!(self.destination, Destination::Connections(_)) {
            return Err(Failure::asked(
                "this control does not go by what a PEP has seen; only mdcc does, and others take --from of lines or an RNIS server",
            ));
        }
        Ok(Agents::open(&AgentConfig::read(file)?)?)
    }

    /// Tells what PEPs report, until `stop` is set.
    pub fn follow_peps(&mut self, agents: &mut Agents, stop: &AtomicBool) -> Result<Told, Failure> {
        let mut look_at = Instant::now();
        let mut unreachable = HashSet::new();
        while !stop.load(Ordering::SeqCst) {
            if Instant::now() >= look_at {
                agents.set_connections(self.connections()?.into_iter());
                look_at = Instant::now() + REFRESH;
            }
            let heard =
                agents.hear(WAIT).map_err(|error| Failure::ours(format!("reading reports: {error}")))?;
            match heard {
                Some(Heard::Report { pep, local, remote, report }) => {
                    let (Some(seen), Destination::Connections(peps)) = (seen(&report), &self.destination)
                    else {
                        continue;
                    };
                    match peps.report(local, remote, &seen)? {
                        Reported::Taken => {
                            self.told.hints += 1;
                            self.told.taken += 1;
                        }
                        Reported::Impossible => agents.reject(pep),
                        Reported::NoSocket | Reported::NotOurs => self.told.others += 1,
                    }
                }
                Some(Heard::UnknownConnection) => look_at = look_at.min(Instant::now() + SOON),
                Some(Heard::Unreachable { address, error }) => {
                    if unreachable.insert(address) {
                        output::say(&format!("cannot reach the PEP {address}: {error}; it is asked again"));
                    }
                }
                Some(Heard::Refused(_) | Heard::Stranger) | None => {}
            }
        }
        let counted = agents.counted();
        self.told.others += counted.of_others;
        self.told.skipped += counted.refused + counted.strangers;
        let distrusted: u64 = agents.stats().map(|stats| stats.distrusted).sum();
        if distrusted > 0 {
            output::say(&format!(
                "PEPs reported what cannot be: {distrusted} times one was ignored for a minute"
            ));
        }
        Ok(self.told.clone())
    }

    /// The control's connections in this network namespace: its own end and the peer's.
    fn connections(&self) -> Result<Vec<(SocketAddr, SocketAddr)>, Failure> {
        let sockets = match &self.destination {
            Destination::Connections(Peps::Loaded(loaded)) => loaded.sockets()?,
            Destination::Connections(Peps::Pinned(_, name)) => ranpace_kernel::sockets(name)?,
            _ => Vec::new(),
        };
        let canonical = |text: &str| -> Option<SocketAddr> {
            let address: SocketAddr = text.parse().ok()?;
            Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
        };
        let ends =
            sockets.iter().filter_map(|socket| Some((canonical(&socket.local)?, canonical(&socket.peer)?)));
        Ok(ends.collect())
    }
}
