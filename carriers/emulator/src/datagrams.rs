//! A UDP flow of the scenario over kernel sockets. It sends at the same instants as the simulator's source with the same seed.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use mio::net::UdpSocket;
use mio::{Interest, Registry};
use ranpace_network::UdpSource;
use ranpace_scenario::{FlowSpec, Transport};
use ranpace_units::{Span, Time};
use socket2::{Domain, Protocol, Socket, Type};

use crate::addresses;
use crate::devices::MTU;
use crate::stream::Role;
use crate::workloads::UDP_HEADERS;

/// Receive buffer in the kernel's accounting: its default holds about a hundred datagrams. Ours.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The flow.
pub struct Datagrams<'a> {
    spec: &'a FlowSpec,
    flow: usize,
    /// Places of its sender and of its receiver.
    ends: (usize, usize),
    port: u16,
    seed: u64,
    payload: usize,
    source: Option<UdpSource>,
    sender: Option<UdpSocket>,
    sink: Option<UdpSocket>,
    /// Payload that was read.
    pub delivered: u64,
    /// Datagrams that the sending host's kernel refused.
    pub refused: u64,
    pub first_sent: Option<Time>,
    pub last_received: Option<Time>,
    /// Datagrams that were read, and the sum of their one-way delays: each has the time at which it was sent.
    received: u64,
    one_way: u128,
    /// The content of a datagram.
    content: [u8; MTU as usize],
}

impl<'a> Datagrams<'a> {
    /// A flow not started yet; `seed` is that of the scenario.
    pub fn new(spec: &'a FlowSpec, (flow, port): (usize, u16), ends: (usize, usize), seed: u64) -> Self {
        let payload = match spec.transport {
            Transport::Udp { packet, .. } => packet.get().saturating_sub(UDP_HEADERS) as usize,
            _ => 0,
        };
        Self {
            spec,
            flow,
            ends,
            port,
            seed,
            payload,
            source: None,
            sender: None,
            sink: None,
            delivered: 0,
            refused: 0,
            first_sent: None,
            last_received: None,
            received: 0,
            one_way: 0,
            content: [0; MTU as usize],
        }
    }

    fn socket() -> io::Result<Socket> {
        Socket::new(Domain::IPV4, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))
    }

    /// Opens the receiver's socket; call it in the receiver's namespace.
    pub fn listen(&mut self, registry: &Registry) -> io::Result<()> {
        let socket = Self::socket()?;
        // As much as is allowed without root.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        socket.bind(&SocketAddr::from((addresses::v4(self.ends.1), self.port)).into())?;
        let mut sink = UdpSocket::from_std(socket.into());
        registry.register(&mut sink, Role::Sink.token(self.flow), Interest::READABLE)?;
        self.sink = Some(sink);
        Ok(())
    }

    /// Opens the sender's socket; call it in the sender's namespace.
    pub fn open(&mut self) -> io::Result<()> {
        let socket = Self::socket()?;
        socket.bind(&SocketAddr::from((addresses::v4(self.ends.0), 0)).into())?;
        socket.connect(&SocketAddr::from((addresses::v4(self.ends.1), self.port)).into())?;
        self.sender = Some(UdpSocket::from_std(socket.into()));
        Ok(())
    }

    /// Starts sending. Returns when to call [`Self::send`].
    pub fn begin(&mut self) -> Time {
        self.source = UdpSource::of_flow(self.spec, self.seed, self.flow, self.spec.start);
        self.source.as_ref().map_or(Time::MAX, UdpSource::next_deadline)
    }

    /// Sends what is due. Returns when more is due.
    pub fn send(&mut self, now: Time) -> Time {
        let (Some(source), Some(sender)) = (&mut self.source, &self.sender) else { return Time::MAX };
        while source.poll_transmit(now).is_some() {
            self.first_sent.get_or_insert(now);
            let content = &mut self.content[..self.payload.min(MTU.into())];
            if let Some(at) = content.first_chunk_mut() {
                *at = now.as_nanos().to_be_bytes();
            }
            if sender.send(content).is_err() {
                self.refused += 1;
            }
        }
        source.next_deadline()
    }

    /// Reads what has arrived.
    pub fn read(&mut self, now: Time, buffer: &mut [u8]) -> io::Result<()> {
        let Some(sink) = &self.sink else { return Ok(()) };
        loop {
            match sink.recv(buffer) {
                Ok(read) => {
                    self.delivered += read as u64;
                    self.last_received = Some(now);
                    if let Some(sent) = buffer[..read].first_chunk() {
                        self.received += 1;
                        let sent = Time::ZERO + Span::from_nanos(u64::from_be_bytes(*sent));
                        self.one_way += u128::from((now - sent).as_nanos());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Datagrams that were read, and their mean one-way delay, from socket to socket.
    pub fn received(&self) -> (u64, Span) {
        let mean = self.one_way.checked_div(self.received.into()).unwrap_or_default();
        (self.received, Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// Stops sending.
    pub fn stop(&mut self) {
        self.source = None;
    }

    /// The part of its lifetime that was measured between `from` and `end`.
    pub fn measured(&self, from: Time, end: Time) -> Span {
        self.spec.stop.unwrap_or(Time::MAX).min(end) - from.max(self.spec.start)
    }
}
