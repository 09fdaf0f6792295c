//! A QUIC flow of the scenario over kernel sockets: its two endpoints, which are the simulator's (`ranpace_quic`: noq with our controls),
//! and the kernel's UDP between them. As there, packets are not encrypted.
//!
//! It does what a flow of the simulator does (`carriers/sim/src/flow.rs`): the same workloads, at the same instants, with the same
//! transfers.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::UdpSocket;
use mio::{Interest, Registry};
use ranpace_cc::Algorithm;
use ranpace_network::random::mix;
use ranpace_quic::{Clock, Config, Opener, Receiver, Sample, Sender};
use ranpace_scenario::FlowSpec;
use ranpace_units::{Ecn, Time};
use socket2::{Domain, Protocol, Socket, Type};

use crate::addresses;
use crate::application::Application;
use crate::stream::Role;
use crate::tcp_info::TcpInfo;

/// Buffers of a socket in the kernel's accounting: its defaults hold about a hundred datagrams. Ours.
const BUFFER: usize = 4 << 20;
/// Datagrams that an end reads or sends before others get their turn.
const CALLS: usize = 64;

/// The outcome of [`QuicStream::work`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// When to call it again, if nothing arrives.
    pub again: Option<Time>,
    /// The connection has served its purpose.
    pub is_over: bool,
    /// When the next one begins.
    pub next: Option<Time>,
}

/// Both ends of a connection, each with its socket.
struct Connection {
    sender: Sender,
    receiver: Receiver,
}

/// The flow.
pub struct QuicStream<'a> {
    algorithm: &'a Algorithm,
    config: &'a Config,
    flow: usize,
    port: u16,
    /// Places of its sender and of its receiver.
    ends: (usize, usize),
    seed: u64,
    connections: u64,
    connection: Option<Connection>,
    /// The socket of the end that opens connections, and that of the other one with the address of the first.
    client: Option<UdpSocket>,
    server: Option<UdpSocket>,
    client_at: Option<SocketAddr>,
    /// The call that is due next, of those that were announced.
    again: Option<Time>,
    out: Vec<u8>,
    /// Payload read on earlier connections.
    earlier: u64,
    pub application: Application<'a>,
    pub first_sent: Option<Time>,
    pub last_received: Option<Time>,
}

impl<'a> QuicStream<'a> {
    /// A flow not started yet; `seed` is that of the scenario.
    pub fn new(
        spec: &'a FlowSpec,
        (algorithm, config): (&'a Algorithm, &'a Config),
        (flow, port): (usize, u16),
        ends: (usize, usize),
        seed: u64,
    ) -> Self {
        Self {
            algorithm,
            config,
            flow,
            port,
            ends,
            seed: mix(seed, flow as u64),
            connections: 0,
            connection: None,
            client: None,
            server: None,
            client_at: None,
            again: None,
            out: Vec::new(),
            earlier: 0,
            application: Application::new(spec),
            first_sent: None,
            last_received: None,
        }
    }

    /// Its control, as in the scenario.
    pub fn cc(&self) -> &str {
        self.algorithm.as_str()
    }

    fn sender_opens(&self) -> bool {
        self.config.opener == Opener::Sender
    }

    /// Place of the host that opens connections, and of the one that waits for them.
    pub fn places(&self) -> (usize, usize) {
        if self.sender_opens() { self.ends } else { (self.ends.1, self.ends.0) }
    }

    /// Payload that was read.
    pub fn delivered(&self) -> u64 {
        self.earlier + self.of_connection()
    }

    fn of_connection(&self) -> u64 {
        self.connection.as_ref().map_or(0, |connection| connection.receiver.delivered().get())
    }

    fn socket(address: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
        // As much as is allowed without root.
        let _ = (socket.set_recv_buffer_size(BUFFER), socket.set_send_buffer_size(BUFFER));
        socket.bind(&address.into())?;
        Ok(socket)
    }

    /// Waits for connections; call it in the namespace of the host that does.
    pub fn listen(&mut self, registry: &Registry) -> io::Result<()> {
        let address = SocketAddr::from((addresses::v4(self.places().1), self.port));
        let mut server = UdpSocket::from_std(Self::socket(address)?.into());
        registry.register(&mut server, Role::Sink.token(self.flow), Interest::READABLE)?;
        self.server = Some(server);
        Ok(())
    }

    /// Opens a connection, the first or a later one, and starts the application; call it in the namespace of the opening host.
    /// Returns when to ask the application again.
    pub fn begin(&mut self, now: Time, registry: &Registry) -> io::Result<Option<Time>> {
        if self.application.is_stopped() {
            return Ok(None);
        }
        self.earlier = self.delivered();
        self.application.on_connection();
        self.client_at = None;
        let (own, peer) = self.places();
        let socket = Self::socket((addresses::v4(own), 0).into())?;
        socket.connect(&SocketAddr::from((addresses::v4(peer), self.port)).into())?;
        let mut client = UdpSocket::from_std(socket.into());
        registry.register(&mut client, Role::Sender.token(self.flow), Interest::READABLE)?;
        self.client = Some(client);
        // Where noq's clock begins makes no difference.
        let clock = Clock::new(Instant::now());
        let seed = mix(self.seed, self.connections);
        self.connections += 1;
        let mut sender = Sender::new(self.config, self.algorithm.build(seed), clock, mix(seed, 1));
        let mut receiver = Receiver::new(self.config, clock, mix(seed, 2));
        sender.open(now);
        receiver.open(now);
        self.connection = Some(Connection { sender, receiver });
        Ok(self.write(now))
    }

    /// The application writes. Returns when to ask it again.
    pub fn write(&mut self, now: Time) -> Option<Time> {
        let (bytes, next) = self.application.write(now);
        if let Some(connection) = &mut self.connection {
            connection.sender.write(bytes);
        }
        next
    }

    /// Returns whether a call that was announced for this time is the one that is due, or one before it was.
    pub fn is_due(&mut self, at: Time) -> bool {
        self.again.take_if(|again| *again <= at).is_some()
    }

    /// Reads what has arrived, acts on timers, and sends what is due.
    pub fn work(&mut self, now: Time, buffer: &mut [u8]) -> io::Result<Work> {
        let sender_opens = self.sender_opens();
        let Some(connection) = &mut self.connection else { return Ok(Work::default()) };
        let Connection { sender, receiver } = connection;
        let before = receiver.delivered();
        let mut more = false;
        for is_client in [true, false] {
            let socket = if is_client { &self.client } else { &self.server };
            let Some(socket) = socket else { continue };
            for call in 0.. {
                if call == CALLS {
                    more = true;
                    break;
                }
                match socket.recv_from(buffer) {
                    Ok((length, from)) => {
                        if !is_client {
                            let own = self.client.as_ref().and_then(|client| client.local_addr().ok());
                            // Datagrams of an earlier connection may still arrive.
                            if Some(from) != own {
                                continue;
                            }
                            self.client_at = Some(from);
                        }
                        let content = &buffer[..length];
                        if is_client == sender_opens {
                            sender.on_datagram(now, Ecn::NotEct, content);
                        } else {
                            receiver.on_datagram(now, Ecn::NotEct, content);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // An ICMP error: QUIC repeats what was lost.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if sender.next_deadline() <= now {
            sender.on_deadline(now);
        }
        if receiver.next_deadline() <= now {
            receiver.on_deadline(now);
        }
        for is_sender in [true, false] {
            let (socket, to) = match (is_sender == sender_opens, self.client_at) {
                (true, _) => (&self.client, None),
                (false, Some(to)) => (&self.server, Some(to)),
                // It has heard nothing yet.
                (false, None) => continue,
            };
            let Some(socket) = socket else { continue };
            for call in 0.. {
                if call == CALLS {
                    more = true;
                    break;
                }
                self.out.clear();
                let sent = match is_sender {
                    true => sender.poll_transmit(now, &mut self.out).map(|departure| departure.data),
                    false => receiver.poll_transmit(now, &mut self.out).map(|_| false),
                };
                let Some(is_data) = sent else { break };
                if is_data {
                    self.first_sent.get_or_insert(now);
                }
                // What the kernel does not take is lost, as on a full link.
                let _ = match to {
                    Some(to) => socket.send_to(&self.out, to),
                    None => socket.send(&self.out),
                };
            }
        }
        if let Some(why) = sender.lost().or(receiver.lost()) {
            return Err(io::Error::other(why.to_owned()));
        }
        let due = sender.next_deadline().min(receiver.next_deadline());
        let due = if more { now } else { due };
        if receiver.delivered() > before {
            self.last_received = Some(now);
        }
        let announced = self.again.filter(|again| *again <= due);
        let again = (announced.is_none() && due < Time::MAX).then_some(due);
        self.again = announced.or(again);
        let read = self.of_connection();
        let (is_over, next) = self.application.on_read(read, now);
        Ok(Work { again, is_over, next })
    }

    /// The application stops: what is on its way still arrives.
    pub fn stop(&mut self) {
        self.application.stop();
        if let Some(connection) = &mut self.connection {
            connection.sender.stop();
        }
    }

    /// The sender's figures, in the form of the kernel's for TCP; `None` while there is no connection. A lost packet counts as
    /// retransmitted.
    pub fn info(&self) -> Option<TcpInfo> {
        let sender = &self.connection.as_ref()?.sender;
        let timeouts = u16::try_from(sender.timeouts()).unwrap_or(u16::MAX);
        Some(TcpInfo { timeouts, ..TcpInfo::from(&Sample::of(sender.control())) })
    }
}
