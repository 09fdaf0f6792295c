//! The PEP on real packets: reads copies, lets `ranpace_pep::lightweight::Pep` count them, and sends its reports.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ranpace_pep::lightweight::message::LARGEST;
use ranpace_pep::lightweight::{Packet, Pep, PepSettings, address_bytes};
use ranpace_units::Time;

use crate::clock;
use crate::config::{PepConfig, read_secret};
use crate::metrics::Metrics;
use crate::packet::{self, Uncounted};
use crate::tap::{Change, Tap, TapError};

/// Pause after packets: those of a pause are read at once, which costs a fraction of being woken by each. Reports say how long ago the
/// newest packet passed, so that a server's measurements do not contain it. Ours: a quarter of the interval of reports.
const PAUSE: Duration = Duration::from_micros(500);
/// Longest wait without packets, after which messages of servers are read. Ours.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Interval of looking whether devices are gone or back, and who is subscribed. Ours.
const REFRESH: Duration = Duration::from_secs(1);
/// Most messages that are read in a row, so that a flood of them delays no report. Ours.
const MOST_MESSAGES: usize = 64;
/// Protocol number of IANA.
const UDP: u8 = 17;

/// Why the PEP cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// Its packets cannot be observed.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// Nobody can listen at an address of the configuration.
    #[error("cannot listen at {address} (`{key}`): {error}")]
    Listen {
        /// The key.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// A secret cannot be read any more.
    #[error("{0}")]
    Secret(String),
}

/// What counts the packets.
struct Observer {
    pep: Pep,
    metrics: Metrics,
    /// Ports of this PEP's own channel, whose messages are no flow: its own, and those of agents.
    own_port: u16,
    agents: HashMap<[u8; 16], SocketAddr>,
    /// Copies since this was last looked at.
    copies: u64,
}

impl Observer {
    fn on_copy(&mut self, copy: &[u8]) {
        self.copies += 1;
        let Self { pep, own_port, agents, .. } = self;
        let read = packet::read(copy, |at, packet| {
            if !is_own(packet, *own_port, agents) {
                pep.on_packet(at, packet);
            }
        });
        match read {
            Ok(()) => {}
            Err(Uncounted::Fragment) => drop(self.metrics.fragments.inc()),
            Err(Uncounted::OtherProtocol) => drop(self.metrics.others.inc()),
            Err(Uncounted::Malformed) => drop(self.metrics.malformed.inc()),
        }
    }
}

/// Whether it is a message of an agent to this PEP.
fn is_own(packet: &Packet<'_>, own_port: u16, agents: &HashMap<[u8; 16], SocketAddr>) -> bool {
    let flow = &packet.flow;
    flow.protocol == UDP
        && flow.destination_port == own_port
        && agents.get(&flow.source).is_some_and(|agent| agent.port() == flow.source_port)
}

/// The PEP, ready to run.
pub struct Daemon {
    tap: Tap,
    socket: UdpSocket,
    observer: RefCell<Observer>,
    /// Servers, and whether each is subscribed.
    servers: Vec<(SocketAddr, bool)>,
    missed: u64,
}

impl Daemon {
    /// Opens what the configuration names. Metrics are served from here on.
    ///
    /// # Errors
    ///
    /// If a right, a device or a secret is missing, or an address is in use.
    pub fn open(config: &PepConfig) -> Result<Self, DaemonError> {
        let listen = |key, address| move |error| DaemonError::Listen { key, address, error };
        let socket = UdpSocket::bind(config.listen).map_err(listen("listen", config.listen))?;
        socket.set_nonblocking(true).map_err(listen("listen", config.listen))?;
        let PepConfig { id, flows, idle, offers, .. } = *config;
        let first_sequence = clock::first_sequence();
        let mut pep = Pep::new(PepSettings { id, flows, idle, offers, first_sequence });
        let (mut servers, mut agents) = (Vec::new(), HashMap::new());
        for server in &config.server {
            let secret = read_secret(&server.secret).map_err(DaemonError::Secret)?;
            let address = server.address.to_canonical();
            pep.add_server(address_bytes(address), &secret, server.key);
            servers.push((SocketAddr::new(address, server.port), false));
            agents.insert(address_bytes(address), SocketAddr::new(address, server.port));
        }
        let tap = Tap::open(&config.devices, servers.iter().map(|(server, _)| server.ip()))?;
        let metrics = Metrics::default();
        if let Some(address) = config.metrics {
            metrics.serve(address).map_err(listen("metrics", address))?;
        }
        let own_port = config.listen.port();
        let observer = RefCell::new(Observer { pep, metrics, own_port, agents, copies: 0 });
        Ok(Self { tap, socket, observer, servers, missed: 0 })
    }

    /// What it counts.
    pub fn metrics(&self) -> Metrics {
        self.observer.borrow().metrics.clone()
    }

    /// Runs until `stop` is set.
    ///
    /// # Errors
    ///
    /// If the kernel no longer lets it observe.
    pub fn run(mut self, stop: &AtomicBool) -> Result<(), DaemonError> {
        let Self { tap, socket, observer, servers, missed } = &mut self;
        let observer = &*observer;
        let copies = tap.copies(|copy| observer.borrow_mut().on_copy(copy))?;
        let mut refreshed: Option<Instant> = None;
        while !stop.load(Ordering::Relaxed) {
            let wait = wait_until(observer.borrow().pep.next_deadline());
            if let Err(error) = copies.poll(wait)
                && error.kind() != libbpf_rs::ErrorKind::Interrupted
            {
                return Err(
                    TapError::Refused { what: "read copies".to_owned(), reason: error.to_string() }.into()
                );
            }
            let mut all = observer.borrow_mut();
            let was_busy = core::mem::take(&mut all.copies) > 0;
            let now_missed = tap.missed()?;
            if now_missed != *missed {
                tracing::warn!(packets = now_missed - *missed, "packets came faster than they were read");
                all.metrics.missed.inc_by(now_missed - *missed);
                all.pep.lose_sight();
                *missed = now_missed;
            }
            hear(&mut all, socket, servers);
            report(&mut all, socket);
            if refreshed.is_none_or(|at| at.elapsed() >= REFRESH) {
                refreshed = Some(Instant::now());
                refresh(&mut all, tap, servers)?;
            }
            let Observer { pep, metrics, .. } = &mut *all;
            metrics.set(pep.stats(), pep.len());
            drop(all);
            if was_busy {
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

/// How long to wait for copies before something is due.
fn wait_until(deadline: Time) -> Duration {
    let wait = Duration::from_nanos(deadline.since(clock::now()).as_nanos());
    // The buffer waits for whole milliseconds.
    Duration::from_millis(wait.min(LONGEST_WAIT).as_micros().div_ceil(1_000) as u64)
}

/// Reads messages of servers.
fn hear(observer: &mut Observer, socket: &UdpSocket, servers: &[(SocketAddr, bool)]) {
    // One more than the longest message: longer ones are refused.
    let mut buffer = [0; LARGEST + 1];
    for _ in 0..MOST_MESSAGES {
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // An agent that is gone (ICMP) is no reason to stop hearing others.
            Err(error) => {
                tracing::debug!(%error, "reading messages");
                continue;
            }
        };
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        if servers.iter().any(|(server, _)| *server == from) {
            observer.pep.on_datagram(clock::now(), address_bytes(from.ip()), &mut buffer[..length]);
        } else {
            observer.metrics.strangers.inc();
        }
    }
}

/// Sends what is due.
fn report(observer: &mut Observer, socket: &UdpSocket) {
    while let Some(datagram) = observer.pep.poll(clock::now()) {
        let sent =
            observer.agents.get(&datagram.to).map(|to| socket.send_to(datagram.content.as_slice(), to));
        if !matches!(sent, Some(Ok(_))) {
            observer.metrics.unsent.inc();
        }
    }
}

/// Looks at devices and subscriptions.
fn refresh(
    observer: &mut Observer,
    tap: &mut Tap,
    servers: &mut [(SocketAddr, bool)],
) -> Result<(), DaemonError> {
    for change in tap.refresh()? {
        match change {
            Change::Gone(device) => {
                tracing::warn!(device, "the device is gone; it is observed again when it is back")
            }
            Change::Back(device) => {
                tracing::info!(device, "the device is observed again");
                observer.pep.lose_sight();
            }
        }
    }
    let now = clock::now();
    for (server, was) in servers.iter_mut() {
        let is = observer.pep.is_subscribed(now, address_bytes(server.ip()));
        if is != *was {
            let what = if is { "the server is subscribed" } else { "the server's subscription has ended" };
            tracing::info!(%server, "{what}");
            *was = is;
        }
    }
    observer.metrics.subscribed.set(servers.iter().filter(|(_, is)| *is).count() as u64);
    observer.metrics.devices.set(tap.observed() as u64);
    Ok(())
}
