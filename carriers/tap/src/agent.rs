//! The server's end of the channel on a UDP socket: one `ranpace_pep::lightweight::Agent` for each PEP. It subscribes, and returns what
//! genuine messages say of the connections that it was given. [`crate::quic`] interprets them for QUIC.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use ranpace_pep::lightweight::digest::tag;
use ranpace_pep::lightweight::message::{LARGEST, Subscribe};
use ranpace_pep::lightweight::{Agent, AgentStats, FlowId, Refusal, Verified};
use ranpace_units::{Span, Time};

use crate::clock;
use crate::config::{AgentConfig, read_secret};

/// Protocol number of IANA.
const TCP: u8 = 6;
/// Duration of a subscription, which is renewed after half of it: so soon a PEP that has started again, or that did not get the message,
/// reports. Ours.
const LIFETIME: Span = Span::from_secs(4);
/// Flows of others (of other controls, or closed) whose reports are known to be none of ours; they are forgotten this often, because
/// a connection may be new. Ours.
const STRANGERS_FORGOTTEN: Duration = Duration::from_secs(1);
/// Most of them, of eight bytes each. Ours.
const MOST_STRANGERS: usize = 4_096;

/// Why an agent cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Nobody can listen there.
    #[error("cannot listen at {address} (`listen`): {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// A secret cannot be read any more.
    #[error("{0}")]
    Secret(String),
    /// The system has no random numbers for keys.
    #[error("/dev/urandom: {0}")]
    Random(io::Error),
}

/// A datagram that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A genuine report on a connection.
    Report {
        /// The PEP, by its place in the configuration.
        pep: usize,
        /// The server's end of the connection.
        local: SocketAddr,
        /// The user's.
        remote: SocketAddr,
        /// What it says.
        report: Verified,
    },
    /// A genuine report on a connection that it was not given, for the first time: it may be new.
    UnknownConnection,
    /// Something that was refused.
    Refused(Refusal),
    /// A datagram from an address that is no PEP's.
    Stranger,
    /// Nothing came: a request could not be sent to this PEP. It is asked again.
    Unreachable {
        /// Its address.
        address: SocketAddr,
        /// The system's reason.
        error: io::ErrorKind,
    },
}

/// What the agents have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Reports accepted.
    pub verified: u64,
    /// Reports on connections that are not ours.
    pub of_others: u64,
    /// Messages refused: forged, repeated, too many, or older than what is known.
    pub refused: u64,
    /// Datagrams from addresses that are no PEP's.
    pub strangers: u64,
}

/// The agents of a server.
#[derive(Debug)]
pub struct Agents {
    socket: UdpSocket,
    peps: Vec<(SocketAddr, Agent)>,
    /// Of the tags of encrypted packets. All PEPs have the same, so that a packet is hashed once.
    tag_key: [u8; 16],
    /// Connections by their numbers.
    connections: HashMap<u32, (SocketAddr, SocketAddr)>,
    numbers: HashMap<FlowId, u32>,
    next: u32,
    strangers: HashSet<u64>,
    strangers_since: Instant,
    counted: Counted,
}

impl Agents {
    /// Opens the socket. PEPs are asked for reports by [`Self::hear`].
    ///
    /// # Errors
    ///
    /// If the address is in use, or a secret cannot be read.
    pub fn open(config: &AgentConfig) -> Result<Self, AgentError> {
        let address = config.listen;
        let listen = |error| AgentError::Listen { address, error };
        let socket = UdpSocket::bind(address).map_err(listen)?;
        socket.set_nonblocking(true).map_err(listen)?;
        let first_sequence = clock::first_sequence();
        let tag_key = random()?;
        let mut peps = Vec::new();
        for pep in &config.pep {
            let secret = read_secret(&pep.secret).map_err(AgentError::Secret)?;
            let wanted = Subscribe { lifetime: LIFETIME, ..Subscribe::new(random()?, tag_key) };
            let address = SocketAddr::new(pep.address.ip().to_canonical(), pep.address.port());
            peps.push((address, Agent::new(&secret, pep.id, pep.key, wanted).starting_at(first_sequence)));
        }
        Ok(Self {
            socket,
            peps,
            tag_key,
            connections: HashMap::new(),
            numbers: HashMap::new(),
            next: 0,
            strangers: HashSet::new(),
            strangers_since: Instant::now(),
            counted: Counted::default(),
        })
    }

    /// Its own address.
    ///
    /// # Errors
    ///
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What the agents have counted.
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// What the agent of a PEP has counted.
    pub fn stats(&self) -> impl Iterator<Item = &AgentStats> {
        self.peps.iter().map(|(_, agent)| agent.stats())
    }

    /// The TCP connections of this server: its own end and the user's. Those that are not named any more are over.
    pub fn set_connections(&mut self, connections: impl Iterator<Item = (SocketAddr, SocketAddr)>) {
        let mut gone: HashSet<FlowId> = self.numbers.keys().copied().collect();
        for (local, remote) in connections {
            let id = FlowId::new(local, remote, TCP);
            if !gone.remove(&id) {
                self.add(id, local, remote);
            }
        }
        for id in gone {
            self.remove(&id);
        }
    }

    /// Adds a connection, unless it is known; the number that reports on it have.
    pub(crate) fn add(&mut self, id: FlowId, local: SocketAddr, remote: SocketAddr) -> u32 {
        if let Some(number) = self.numbers.get(&id) {
            return *number;
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.numbers.insert(id, number);
        self.connections.insert(number, (local, remote));
        self.peps.iter_mut().for_each(|(_, agent)| agent.register(id, number));
        number
    }

    /// A connection is over.
    pub(crate) fn remove(&mut self, id: &FlowId) {
        if let Some(number) = self.numbers.remove(id) {
            self.connections.remove(&number);
        }
        self.peps.iter_mut().for_each(|(_, agent)| agent.release(id));
    }

    /// The tag of a datagram, as the PEPs compute it.
    pub(crate) fn tag(&self, datagram: &[u8]) -> u32 {
        tag(&self.tag_key, datagram, datagram.len() as u32)
    }

    /// Requests a new epoch of a connection from a PEP. A request that is lost is repeated by whoever still needs it.
    pub(crate) fn ask_for_epoch(&mut self, pep: usize, id: &FlowId) {
        if let Some((address, agent)) = self.peps.get_mut(pep)
            && let Some(message) = agent.resync(id)
        {
            let _ = self.socket.send_to(message.as_slice(), *address);
        }
    }

    /// When [`Self::ask`] has something to do.
    pub fn next_deadline(&self) -> Time {
        self.peps.iter().map(|(_, agent)| agent.next_deadline()).min().unwrap_or(Time::MAX)
    }

    /// Asks those PEPs for reports that are due to be asked. Returns the first one that cannot be reached; call again for the others.
    pub fn ask(&mut self, now: Time) -> Option<Heard> {
        for (address, agent) in &mut self.peps {
            while let Some(message) = agent.poll(now) {
                if let Err(error) = self.socket.send_to(message.as_slice(), *address) {
                    return Some(Heard::Unreachable { address: *address, error: error.kind() });
                }
            }
        }
        None
    }

    /// A datagram that has come; `None` if none waits.
    ///
    /// # Errors
    ///
    /// If the socket fails.
    pub fn receive(&mut self) -> io::Result<Option<Heard>> {
        // One more than the longest message: longer ones are refused.
        let mut buffer = [0; LARGEST + 1];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    return Ok(Some(self.on_datagram(clock::now(), from, &mut buffer[..length])));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    // A PEP that is gone (ICMP), once for each message to it.
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Asks PEPs where that is due, and waits for a datagram, `longest` at most; `None` if none came.
    ///
    /// # Errors
    ///
    /// If the socket fails.
    pub fn hear(&mut self, longest: Duration) -> io::Result<Option<Heard>> {
        let now = clock::now();
        if let Some(unreachable) = self.ask(now) {
            return Ok(Some(unreachable));
        }
        if let Some(heard) = self.receive()? {
            return Ok(Some(heard));
        }
        let wait = Duration::from_nanos(self.next_deadline().since(now).as_nanos()).min(longest);
        let mut readable = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut readable, Some(TimeSpec::from_duration(wait)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => self.receive(),
            Err(error) => Err(error.into()),
        }
    }

    fn on_datagram(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Heard {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let Some(pep) = self.peps.iter().position(|(address, _)| *address == from) else {
            self.counted.strangers += 1;
            return Heard::Stranger;
        };
        match self.peps[pep].1.on_datagram(now, datagram) {
            Ok(report) => match self.connections.get(&report.flow) {
                Some(&(local, remote)) => {
                    self.counted.verified += 1;
                    Heard::Report { pep, local, remote, report }
                }
                // Flows that are over are released.
                None => Heard::Refused(Refusal::UnknownFlow(report.report.reference)),
            },
            Err(Refusal::UnknownFlow(reference)) => {
                self.counted.of_others += 1;
                if self.strangers_since.elapsed() >= STRANGERS_FORGOTTEN {
                    self.strangers.clear();
                    self.strangers_since = Instant::now();
                }
                let is_new = self.strangers.len() < MOST_STRANGERS && self.strangers.insert(reference);
                if is_new {
                    Heard::UnknownConnection
                } else {
                    Heard::Refused(Refusal::UnknownFlow(reference))
                }
            }
            Err(refusal) => {
                self.counted.refused += 1;
                Heard::Refused(refusal)
            }
        }
    }

    /// The sender found a report of this PEP to be impossible.
    pub fn reject(&mut self, pep: usize) {
        if let Some((_, agent)) = self.peps.get_mut(pep) {
            agent.reject(clock::now());
        }
    }
}

impl AsFd for Agents {
    /// The socket: readable when [`Agents::receive`] has something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Random bytes for a key.
fn random<const N: usize>() -> Result<[u8; N], AgentError> {
    let mut bytes = [0; N];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(AgentError::Random).map(|()| bytes)
}
