//! What Lightweight PEPs on the path have seen of this server's QUIC packets, for connections whose control goes by it (Multi-Domain
//! control). Only this process knows which packets it sent, so its socket shows each datagram to the agent, and a thread of its own hears
//! the PEPs and tells the controls.
//!
//! noq sends while it holds a connection's lock, so nothing here may call noq while it holds a lock of its own.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Connection, UdpSender};
use ranpace_noq::ConnectionControl;
use ranpace_quic::{Control, PepView};
use ranpace_tap::clock;
use ranpace_tap::config::AgentConfig;
use ranpace_tap::quic::{QuicAgents, QuicConnection, QuicReport};
use ranpace_units::Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::ServeError;
use crate::metrics::Metrics;
use crate::radio::Chooser;

/// Longest wait for a report, after which it is looked whether to stop. Ours.
const WAIT: Duration = Duration::from_millis(20);
/// How often it is looked whether connections have other controls or addresses. Ours.
const LOOK: Duration = Duration::from_millis(100);

/// A connection, on which PEPs report if its control goes by them.
#[derive(Debug)]
struct Watched {
    connection: Connection,
    chooser: Chooser,
    /// The control, if it goes by what PEPs have seen.
    control: Option<Control>,
    /// Its number at the agent, once the server's own address is known by a datagram.
    number: Option<QuicConnection>,
}

struct State {
    agents: QuicAgents,
    /// By the addresses of their clients. A datagram does not show which of several connections at an address it belongs to, so PEPs report
    /// on none of those.
    watched: HashMap<SocketAddr, Vec<Watched>>,
}

impl State {
    /// A datagram leaves.
    fn on_sent(&mut self, local: SocketAddr, remote: SocketAddr, datagram: &[u8]) {
        let Some([watched]) = self.watched.get_mut(&remote).map(Vec::as_mut_slice) else { return };
        let Some(control) = &watched.control else { return };
        let agents = &mut self.agents;
        let number = *watched.number.get_or_insert_with(|| agents.begin(local, remote));
        let packet = control.take_sent(datagram.len() as u64);
        agents.on_sent(clock::now(), number, packet, datagram);
    }

    fn add(&mut self, address: SocketAddr, watched: Watched) {
        self.watched.entry(address).or_default().push(watched);
        self.begin_anew(address);
    }

    /// Removes a connection. The caller drops it without the lock, because the last one who drops a connection closes it.
    #[must_use]
    fn remove(&mut self, number: usize) -> Option<Watched> {
        let place = |all: &[Watched]| all.iter().position(|one| one.connection.stable_id() == number);
        let (address, place) =
            self.watched.iter().find_map(|(address, all)| Some((*address, place(all)?)))?;
        let all = self.watched.get_mut(&address)?;
        let removed = all.swap_remove(place);
        if let Some(number) = removed.number {
            self.agents.end(number);
        }
        if all.is_empty() {
            self.watched.remove(&address);
        }
        self.begin_anew(address);
        Some(removed)
    }

    /// Other connections are at an address now: what was noted of packets to it is void.
    fn begin_anew(&mut self, address: SocketAddr) {
        for watched in self.watched.get_mut(&address).into_iter().flatten() {
            if let Some(number) = watched.number.take() {
                self.agents.end(number);
            }
            // Before any of its next datagrams is shown, which needs the lock.
            if let Some(control) = &watched.control {
                control.log_sent();
            }
        }
    }

    /// The next report, with the control that it is for.
    fn heard(&mut self) -> io::Result<Option<(Control, Chooser, QuicReport)>> {
        while let Some(report) = self.agents.poll()? {
            let mut all = self.watched.values().flatten();
            let of_report = all.find(|watched| watched.number == Some(report.connection));
            if let Some(Watched { control: Some(control), chooser, .. }) = of_report {
                return Ok(Some((control.clone(), chooser.clone(), report)));
            }
        }
        Ok(None)
    }
}

/// The agent of the server, and the connections that it has.
#[derive(Clone)]
pub struct Peps(Arc<Mutex<State>>);

impl std::fmt::Debug for Peps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peps").finish_non_exhaustive()
    }
}

/// A connection among them, until this is dropped.
#[derive(Debug)]
pub struct Watching {
    peps: Peps,
    connection: Connection,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _dropped_without_the_lock = self.peps.lock().remove(self.connection.stable_id());
    }
}

/// The control of a connection, if it goes by what a PEP has seen.
fn control_of(connection: &Connection, chooser: &Chooser) -> Option<Control> {
    let control = ConnectionControl::new(connection.clone(), Arc::clone(chooser.controls())).control()?;
    control.wants_packets().then_some(control)
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn remote(connection: &Connection) -> Option<SocketAddr> {
    Some(canonical(connection.path(noq::PathId::ZERO)?.remote_address().ok()?))
}

impl Peps {
    /// Opens the socket at which PEPs report.
    ///
    /// # Errors
    ///
    /// If nobody can listen there, or a secret cannot be read.
    pub fn open(config: &AgentConfig) -> Result<Self, ServeError> {
        let agents = QuicAgents::open(config).map_err(|error| ServeError::Setup(error.to_string()))?;
        Ok(Self(Arc::new(Mutex::new(State { agents, watched: HashMap::new() }))))
    }

    /// No code panics while it holds the lock; even if some did, going on would be the best option.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. While its control is not one that goes by PEPs, nothing is reported to it.
    pub fn watch(&self, connection: Connection, chooser: Chooser) -> Watching {
        let control = control_of(&connection, &chooser);
        if let Some(address) = remote(&connection) {
            let watched = Watched { connection: connection.clone(), chooser, control, number: None };
            self.lock().add(address, watched);
        }
        Watching { peps: self.clone(), connection }
    }

    /// Finds connections whose first request has chosen a control, and those whose clients have moved: noq has made a new control, whose
    /// packets count from its beginning.
    fn refresh(&self) {
        let listed = |address: &SocketAddr, of: &Watched| {
            (*address, of.connection.clone(), of.chooser.clone(), of.control.clone())
        };
        let all: Vec<(SocketAddr, Connection, Chooser, Option<Control>)> = self
            .lock()
            .watched
            .iter()
            .flat_map(|(address, all)| all.iter().map(move |of| listed(address, of)))
            .collect();
        let mut changed = Vec::new();
        for (address, connection, chooser, control) in &all {
            let (now, at) = (control_of(connection, chooser), remote(connection).unwrap_or(*address));
            let is_same = match (&now, control) {
                (Some(now), Some(before)) => now.is(before),
                (now, before) => now.is_none() && before.is_none(),
            };
            if at != *address || !is_same {
                changed.push((connection.stable_id(), at, now));
            }
        }
        let mut state = self.lock();
        for (number, address, control) in changed {
            // One that has ended meanwhile stays away.
            if let Some(before) = state.remove(number) {
                state.add(address, Watched { control, number: None, ..before });
            }
        }
        drop(state);
        // May have the last reference of a connection.
        drop(all);
    }

    /// A socket that shows what leaves the given one.
    ///
    /// # Errors
    ///
    /// If the socket has no address.
    pub fn socket(&self, socket: Box<dyn AsyncUdpSocket>) -> io::Result<Box<dyn AsyncUdpSocket>> {
        let local = canonical(socket.local_addr()?);
        Ok(Box::new(ShownSocket { socket, peps: self.clone(), local }))
    }

    /// Hears PEPs in a thread, until the result is dropped.
    ///
    /// # Errors
    ///
    /// If there is no thread.
    pub fn hear(&self, metrics: Arc<Metrics>) -> Result<PepThread, ServeError> {
        let socket = self.lock().agents.as_fd().try_clone_to_owned().map_err(ServeError::Thread)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (peps, is_over) = (self.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("pep".to_owned())
            .spawn(move || peps.run(&socket, &metrics, &is_over))
            .map_err(ServeError::Thread)?;
        Ok(PepThread { stop, thread: Some(thread) })
    }

    fn run(&self, socket: &OwnedFd, metrics: &Metrics, stop: &AtomicBool) {
        let mut looked = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            loop {
                let heard = self.lock().heard();
                match heard {
                    Ok(Some((control, chooser, report))) => {
                        tell(&control, &chooser, &report);
                        metrics.pep_reports.inc();
                    }
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(%error, "PEPs cannot be heard; it is tried again");
                        std::thread::sleep(LOOK);
                        break;
                    }
                }
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.refresh();
            }
            let until = self.lock().agents.next_deadline().since(clock::now());
            let wait = WAIT.min(Duration::from_nanos(until.as_nanos()));
            let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
            // A signal ends the wait early, which does no harm.
            let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&wait));
        }
    }
}

/// Tells a control what a PEP has seen. The agent's clock is another one than the control's.
fn tell(control: &Control, chooser: &Chooser, report: &QuicReport) {
    let now = chooser.controls().time(Instant::now());
    let located = &report.located;
    let since = |sent| clock::now().since(sent);
    let newest_sent_at = located.newest_sent_at.map(|sent| {
        let age: Span = since(sent);
        now - age
    });
    control.on_pep_view(
        now,
        &PepView {
            seen: &located.seen,
            missing: &located.missing,
            newest_sent_at,
            hold: report.hold,
            marked: report.marked,
            new_epoch: located.new_epoch,
        },
    );
}

/// The thread that hears PEPs; it ends when this is dropped.
#[derive(Debug)]
pub struct PepThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for PepThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that hears PEPs panicked");
        }
    }
}

/// A socket whose datagrams are shown to the agent.
#[derive(Debug)]
struct ShownSocket {
    socket: Box<dyn AsyncUdpSocket>,
    peps: Peps,
    local: SocketAddr,
}

impl AsyncUdpSocket for ShownSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(ShownSender {
            sender: self.socket.create_sender(),
            peps: self.peps.clone(),
            local: self.local,
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [io::IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_recv(cx, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

#[derive(Debug)]
struct ShownSender {
    sender: Pin<Box<dyn UdpSender>>,
    peps: Peps,
    local: SocketAddr,
}

impl UdpSender for ShownSender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let sent = ready!(self.sender.as_mut().poll_send(transmit, cx));
        if sent.is_ok() {
            let own: IpAddr = transmit.src_ip.unwrap_or(self.local.ip());
            // The tags of a PEP are kept by both addresses.
            if !own.is_unspecified() {
                let local = canonical(SocketAddr::new(own, self.local.port()));
                let remote = canonical(transmit.destination);
                let mut state = self.peps.lock();
                for datagram in transmit.contents.chunks(transmit.segment_size.unwrap_or(usize::MAX).max(1)) {
                    state.on_sent(local, remote, datagram);
                }
            }
        }
        Poll::Ready(sent)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.sender.max_transmit_segments()
    }
}
