//! A TCP flow of the scenario over kernel sockets: the application that writes at one end, and the one that reads at the other.
//!
//! It does what a flow of the simulator does (`carriers/sim/src/flow.rs`): the same workloads, at the same instants, with the same
//! transfers. Ours: a flow that stops resets its connection, so data still in the socket are not sent, as in the simulator; unlike
//! there, earlier losses are not repaired.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use ranpace_scenario::FlowSpec;
use ranpace_units::Time;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::addresses;
use crate::application::Application;
use crate::workloads::Settings;

/// Bytes per read or write call, and calls of an end before others get their turn.
pub const CHUNK: usize = 256 << 10;
const CALLS: usize = 4;
/// The data sent.
static PAYLOAD: [u8; CHUNK] = [0; CHUNK];

/// The event awaited on a socket of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Connections to accept.
    Listener,
    /// Room to write.
    Sender,
    /// Something to read.
    Receiver,
    /// Datagrams to read.
    Sink,
}

impl Role {
    const ALL: [Self; 4] = [Self::Listener, Self::Sender, Self::Receiver, Self::Sink];

    /// The token of a flow's socket.
    pub fn token(self, flow: usize) -> Token {
        Token(flow * Self::ALL.len() + self as usize)
    }

    /// The flow and the socket of a token.
    pub fn of(token: Token) -> (usize, Self) {
        (token.0 / Self::ALL.len(), Self::ALL[token.0 % Self::ALL.len()])
    }
}

/// The outcome of [`Stream::work`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// There is more to do at once.
    pub more: bool,
    /// The connection has served its purpose.
    pub is_over: bool,
    /// When the next one begins.
    pub next: Option<Time>,
}

/// An end of a connection.
#[derive(Debug)]
struct End {
    stream: TcpStream,
    connected: bool,
    /// There may be data to read, or room to write.
    ready: bool,
}

/// The flow.
#[derive(Debug)]
pub struct Stream<'a> {
    flow: usize,
    /// Places of its sender and of its receiver.
    from: usize,
    to: usize,
    port: u16,
    settings: &'a Settings,
    listener: Option<TcpListener>,
    sender: Option<End>,
    receiver: Option<End>,
    /// Bytes that the application still has for the sender.
    to_write: u64,
    /// Payload read, in total and on the current connection.
    pub delivered: u64,
    of_connection: u64,
    pub application: Application<'a>,
    pub first_sent: Option<Time>,
    pub last_received: Option<Time>,
}

impl<'a> Stream<'a> {
    /// A flow not started yet.
    pub fn new(
        spec: &'a FlowSpec,
        (flow, port): (usize, u16),
        (from, to): (usize, usize),
        settings: &'a Settings,
    ) -> Self {
        Self {
            flow,
            from,
            to,
            port,
            settings,
            listener: None,
            sender: None,
            receiver: None,
            to_write: 0,
            delivered: 0,
            of_connection: 0,
            application: Application::new(spec),
            first_sent: None,
            last_received: None,
        }
    }

    /// Name of the kernel's control.
    pub fn cc(&self) -> &str {
        &self.settings.cc
    }

    /// Place of the host that opens connections, and of the one that listens.
    pub fn places(&self) -> (usize, usize) {
        if self.settings.sender_opens { (self.from, self.to) } else { (self.to, self.from) }
    }

    /// Returns whether there is a connection.
    pub fn is_open(&self) -> bool {
        self.sender.is_some()
    }

    /// Listens for connections; call it in the namespace of the listening host.
    pub fn listen(&mut self, registry: &Registry) -> io::Result<()> {
        let socket = self.socket(!self.settings.sender_opens)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((addresses::v4(self.places().1), self.port)).into())?;
        socket.listen(1)?;
        let mut listener = TcpListener::from_std(socket.into());
        registry.register(&mut listener, Role::Listener.token(self.flow), Interest::READABLE)?;
        self.listener = Some(listener);
        Ok(())
    }

    /// A socket for one end, not connected yet.
    fn socket(&self, is_sender: bool) -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
        if let Some(mss) = self.settings.mss {
            socket.set_tcp_mss(mss)?;
        }
        if is_sender || self.settings.at_both_ends {
            socket.set_tcp_congestion(self.settings.cc.as_bytes())?;
        }
        if is_sender {
            socket.set_tcp_nodelay(true)?;
            // The kernel doubles it for its own overhead.
            if let Some(bytes) = self.settings.send_buffer {
                socket.set_send_buffer_size(bytes as usize)?;
            }
        } else if let Some(bytes) = self.settings.receive_buffer {
            socket.set_recv_buffer_size(bytes as usize)?;
        }
        Ok(socket)
    }

    /// Opens a connection, the first or a later one, and starts the application; call it in the namespace of the opening host.
    /// Returns when to ask the application again.
    pub fn begin(&mut self, now: Time, registry: &Registry) -> io::Result<Option<Time>> {
        if self.application.is_stopped() {
            return Ok(None);
        }
        (self.sender, self.receiver) = (None, None);
        (self.to_write, self.of_connection) = (0, 0);
        self.application.on_connection();
        let next = self.write(now);
        let socket = self.socket(self.settings.sender_opens)?;
        let (own, peer) = self.places();
        socket.bind(&SocketAddr::from((addresses::v4(own), 0)).into())?;
        match socket.connect(&SocketAddr::from((addresses::v4(peer), self.port)).into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::EINPROGRESS as i32) => {}
            Err(error) => return Err(error),
        }
        self.enter(TcpStream::from_std(socket.into()), self.settings.sender_opens, false, registry)?;
        Ok(next)
    }

    /// Adds an end of a connection.
    fn enter(
        &mut self,
        mut stream: TcpStream,
        is_sender: bool,
        connected: bool,
        registry: &Registry,
    ) -> io::Result<()> {
        let role = if is_sender { Role::Sender } else { Role::Receiver };
        registry.register(&mut stream, role.token(self.flow), Interest::READABLE | Interest::WRITABLE)?;
        let end = Some(End { stream, connected, ready: connected });
        if is_sender {
            self.sender = end
        } else {
            self.receiver = end
        }
        Ok(())
    }

    /// The application writes. Returns when to ask it again.
    pub fn write(&mut self, now: Time) -> Option<Time> {
        let (bytes, next) = self.application.write(now);
        self.to_write = self.to_write.saturating_add(bytes.get());
        next
    }

    /// A socket event. Returns whether there is work.
    pub fn on_event(&mut self, role: Role, registry: &Registry) -> io::Result<bool> {
        let end = match role {
            Role::Listener => {
                while let Some(stream) = self.accept()? {
                    self.enter(stream, !self.settings.sender_opens, true, registry)?;
                }
                return Ok(true);
            }
            Role::Sender => &mut self.sender,
            Role::Receiver => &mut self.receiver,
            Role::Sink => return Ok(false),
        };
        let Some(end) = end else { return Ok(false) };
        if !end.connected {
            if let Some(error) = end.stream.take_error()? {
                return Err(error);
            }
            end.connected = end.stream.peer_addr().is_ok();
        }
        end.ready = end.connected;
        Ok(end.ready)
    }

    /// Accepts a connection from the host that opens it; others are refused.
    fn accept(&mut self) -> io::Result<Option<TcpStream>> {
        let opener: Ipv4Addr = addresses::v4(self.places().0);
        let Some(listener) = &self.listener else { return Ok(None) };
        loop {
            match listener.accept() {
                Ok((stream, from)) if from.ip() == opener && !self.application.is_stopped() => {
                    if !self.settings.sender_opens {
                        stream.set_nodelay(true)?;
                    }
                    return Ok(Some(stream));
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It was gone before it was accepted.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes and reads as much as possible, up to a limit.
    pub fn work(&mut self, now: impl Fn() -> Time, buffer: &mut [u8]) -> io::Result<Work> {
        let mut more = false;
        if let Some(sender) = self.sender.as_mut().filter(|sender| sender.ready) {
            for _ in 0..CALLS {
                if self.to_write == 0 {
                    break;
                }
                let size = usize::try_from(self.to_write).unwrap_or(CHUNK).min(CHUNK);
                match sender.stream.write(&PAYLOAD[..size]) {
                    Ok(written) => {
                        self.first_sent.get_or_insert_with(&now);
                        if self.to_write < u64::MAX {
                            self.to_write -= written as u64;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        sender.ready = false;
                        break;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.sender = None;
                        return Err(error);
                    }
                }
            }
            more |= self.to_write > 0 && self.sender.as_ref().is_some_and(|sender| sender.ready);
        }
        if let Some(receiver) = self.receiver.as_mut().filter(|receiver| receiver.ready) {
            for _ in 0..CALLS {
                match receiver.stream.read(buffer) {
                    // The sender's end is closed.
                    Ok(0) => {
                        self.receiver = None;
                        break;
                    }
                    Ok(read) => {
                        self.delivered += read as u64;
                        self.of_connection += read as u64;
                        self.last_received = Some(now());
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        receiver.ready = false;
                        break;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.receiver = None;
                        // The reset was requested.
                        if self.application.is_stopped() && error.kind() == ErrorKind::ConnectionReset {
                            break;
                        }
                        return Err(error);
                    }
                }
            }
            more |= self.receiver.as_ref().is_some_and(|receiver| receiver.ready);
        }
        let (is_over, next) = match self.last_received {
            Some(at) => self.application.on_read(self.of_connection, at),
            None => (false, None),
        };
        Ok(Work { more, is_over, next })
    }

    /// Closes both ends; the kernel finishes sending.
    pub fn close(&mut self) {
        (self.sender, self.receiver) = (None, None);
    }

    /// The application stops: see the head of this file.
    pub fn stop(&mut self) {
        self.application.stop();
        self.to_write = 0;
        if let Some(sender) = self.sender.take() {
            // Closing it then resets the connection.
            let _ = SockRef::from(&sender.stream).set_linger(Some(Duration::ZERO));
        }
    }
}
