//! The agent of a QUIC server: hears PEPs, and says which of the datagrams that the server sent have passed them.
//!
//! The server registers its connections, shows each datagram that it sends ([`QuicAgents::on_sent`]), and calls [`QuicAgents::poll`] when
//! the socket (`AsFd`) is readable or [`QuicAgents::next_deadline`] has come. A [`QuicReport`] has what `ranpace_quic::PepView` needs. Reports
//! are hints: they retire no data and declare no loss.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use ranpace_pep::lightweight::{FlowId, Located, Watched, WatchedFlow};
use ranpace_units::{Span, Time};

use crate::agent::{AgentError, Agents, Counted, Heard};
use crate::clock;
use crate::config::AgentConfig;

/// Protocol number of IANA.
const UDP: u8 = 17;
/// Most datagrams that one call reads, so that a flood of them does not hold the server. Ours.
const MOST_DATAGRAMS: usize = 64;

/// A registered connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuicConnection(u32);

/// What a PEP reports on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicReport {
    /// The connection.
    pub connection: QuicConnection,
    /// The packets that the PEP has seen and missed, by their numbers in [`QuicAgents::on_sent`].
    pub located: Located,
    /// Time from the newest packet's arrival at the PEP to the report.
    pub hold: Span,
    /// Packets with an ECN mark that the PEP has counted.
    pub marked: Option<u64>,
}

/// The agents of a QUIC server.
#[derive(Debug)]
pub struct QuicAgents {
    agents: Agents,
    flows: HashMap<u32, (FlowId, WatchedFlow)>,
}

impl QuicAgents {
    /// Opens the socket. PEPs are asked for reports by [`Self::poll`].
    ///
    /// # Errors
    ///
    /// As of [`Agents::open`].
    pub fn open(config: &AgentConfig) -> Result<Self, AgentError> {
        Ok(Self { agents: Agents::open(config)?, flows: HashMap::new() })
    }

    /// A connection begins: the address that its datagrams leave from (no unspecified one), and the user's. It takes up to 128 KB, for the
    /// newest 4,096 packets on which no PEP has reported. After a migration [`Self::end`] it, and begin another one.
    pub fn begin(&mut self, local: SocketAddr, remote: SocketAddr) -> QuicConnection {
        let id = FlowId::new(local, remote, UDP);
        let number = self.agents.add(id, local, remote);
        self.flows.insert(number, (id, WatchedFlow::default()));
        QuicConnection(number)
    }

    /// The connection is over.
    pub fn end(&mut self, connection: QuicConnection) {
        if let Some((id, _)) = self.flows.remove(&connection.0) {
            self.agents.remove(&id);
        }
    }

    /// A datagram is sent: its payload, at a time of [`clock::now`]. Each datagram is shown in the order of sending, also those without
    /// a packet that the server wants to hear of (`number` is `None`), and each segment of a GSO batch by itself.
    pub fn on_sent(&mut self, now: Time, connection: QuicConnection, number: Option<u64>, datagram: &[u8]) {
        if let Some((_, flow)) = self.flows.get_mut(&connection.0) {
            flow.on_sent(now, number, self.agents.tag(datagram));
        }
    }

    /// When to call [`Self::poll`] although the socket is not readable.
    pub fn next_deadline(&self) -> Time {
        self.agents.next_deadline()
    }

    /// Asks PEPs where that is due, and reads until there is a report; `None` if none waits.
    ///
    /// # Errors
    ///
    /// If the socket fails.
    pub fn poll(&mut self) -> io::Result<Option<QuicReport>> {
        // A PEP that cannot be reached is asked again.
        while self.agents.ask(clock::now()).is_some() {}
        for _ in 0..MOST_DATAGRAMS {
            let Some(heard) = self.agents.receive()? else { break };
            let Heard::Report { pep, report, .. } = heard else { continue };
            let Some((id, flow)) = self.flows.get_mut(&report.flow) else { continue };
            match flow.on_report(clock::now(), pep, &report) {
                Watched::Located(located) => {
                    let connection = QuicConnection(report.flow);
                    let marked = report.report.marked.map(u64::from);
                    return Ok(Some(QuicReport { connection, located, hold: report.report.hold, marked }));
                }
                Watched::Ignored => {}
                Watched::Uninterpretable { impossible, ask } => {
                    if impossible {
                        self.agents.reject(pep);
                    }
                    if ask {
                        self.agents.ask_for_epoch(pep, id);
                    }
                }
            }
        }
        Ok(None)
    }

    /// What the agents have counted.
    pub fn counted(&self) -> Counted {
        self.agents.counted()
    }
}

impl AsFd for QuicAgents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.agents.as_fd()
    }
}
