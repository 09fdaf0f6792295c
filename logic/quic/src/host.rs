//! One end of a connection: noq's endpoint and connection, and the exchange between them.

use core::net::{Ipv4Addr, SocketAddr};
use core::num::NonZeroUsize;
use std::sync::Arc;

use bytes::BytesMut;
use noq_proto::congestion::{ControllerFactory, NewRenoConfig};
use noq_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator,
    DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, Event, FourTuple, NoneTokenStore, PathId,
    ServerConfig, Side, StreamEvent, Transmit, TransportConfig, VarInt,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_units::{Bytes, Ecn, Span, Time};

use crate::cipher::{NoSecret, no_cipher};
use crate::clock::{Clock, duration, span};
use crate::config::Config;

/// Length of our connection IDs, in bytes: noq's default, and common for servers.
pub(crate) const CID: usize = 8;
/// Length of the initial destination ID chosen by a client (RFC 9000, section 7.2: at least 8 bytes).
const FIRST_CID: usize = 20;
/// Size of the buffer into which datagrams are copied; it is reused once all of its pieces have been read.
const BUFFER: usize = 64 << 10;

/// A code point as noq counts it. noq's sender expects ECT(0) to be counted, whichever of the two it was sent with.
fn to_noq(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 | Ecn::Ect1 => Some(EcnCodepoint::Ect0),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

/// Generates connection IDs from a seed.
struct Ids {
    random: Xoshiro256PlusPlus,
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.random.next_u64().to_le_bytes()[..CID])
    }

    fn cid_len(&self) -> usize {
        CID
    }

    fn cid_lifetime(&self) -> Option<core::time::Duration> {
        None
    }
}

/// One end.
pub(crate) struct Host {
    clock: Clock,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Why the connection is lost, or was never made.
    lost: Option<String>,
    /// The client's configuration until the handshake begins.
    client: Option<ClientConfig>,
    peer: SocketAddr,
    incoming: BytesMut,
    /// noq's responses outside of a connection, which have no recipient here.
    scratch: Vec<u8>,
    ecn: bool,
    /// When timers were last handled: timers due again at that time are delayed by a nanosecond.
    handled: Option<Time>,
}

/// An event of noq for the application.
pub(crate) enum HostEvent {
    /// The handshake is complete.
    Connected,
    /// A stream may have something to read.
    Readable,
    /// A stream may be written to again.
    Writable,
}

impl Host {
    pub fn new(
        side: Side,
        config: &Config,
        clock: Clock,
        seed: u64,
        control: Option<Arc<dyn ControllerFactory + Send + Sync>>,
    ) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut rng_seed = [0; 32];
        random.fill_bytes(&mut rng_seed);
        let ids = random.next_u64();
        let mut first = [0; FIRST_CID];
        random.fill_bytes(&mut first);
        let payload = config.payload().get().min(u64::from(u16::MAX)) as u16;

        let mut endpoint = EndpointConfig::new(Arc::new(NoSecret));
        endpoint.rng_seed(Some(rng_seed)).cid_generator(Arc::new(move || {
            Box::new(Ids { random: Xoshiro256PlusPlus::seed_from_u64(ids) })
        }));
        // noq rejects less than 1,200 bytes and more than fit into an IP packet; no configuration has such values.
        let _ = endpoint.max_udp_payload_size(payload.min(65_527));
        let transport = Arc::new(transport(config, payload, control));
        let crypto = no_cipher(config.certificates.get() as usize);
        let (mut client, mut server) = (None, None);
        let address = |last| SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), 443));
        let peer = match side {
            Side::Client => {
                let mut config = ClientConfig::new(crypto);
                config
                    .transport_config(transport)
                    .token_store(Arc::new(NoneTokenStore))
                    .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first)));
                client = Some(config);
                address(1)
            }
            Side::Server => {
                let mut config = ServerConfig::new(crypto, Arc::new(NoSecret));
                config.transport_config(transport).migration(false);
                server = Some(Arc::new(config));
                address(2)
            }
        };
        Self {
            clock,
            endpoint: Endpoint::new(Arc::new(endpoint), server, false),
            connection: None,
            lost: None,
            client,
            peer,
            incoming: BytesMut::with_capacity(BUFFER),
            scratch: Vec::new(),
            ecn: config.ecn,
            handled: None,
        }
    }

    /// Begins the handshake on a client; does nothing on a server.
    pub fn open(&mut self, now: Time) {
        if let Some(config) = self.client.take() {
            let opened = self.endpoint.connect(self.clock.instant(now), config, self.peer, "ranpace");
            // This fails only for invalid addresses and versions, and ours are constants.
            self.connection = Some(opened.expect("a fixed address and version 1 are accepted"));
        }
    }

    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// noq's smoothed RTT.
    pub fn smoothed(&self) -> Option<Span> {
        let (_, connection) = self.connection.as_ref()?;
        connection.rtt(PathId::ZERO).map(span)
    }

    /// Processes a datagram, which arrived with this code point.
    pub fn on_datagram(&mut self, now: Time, ecn: Ecn, content: &[u8]) {
        let ecn = if self.ecn { to_noq(ecn) } else { None };
        if self.incoming.capacity() < content.len() {
            self.incoming.reserve(BUFFER);
        }
        self.incoming.extend_from_slice(content);
        let content = self.incoming.split();
        let at = self.clock.instant(now);
        self.scratch.clear();
        let event =
            self.endpoint.handle(at, FourTuple::from_remote(self.peer), ecn, content, &mut self.scratch);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((known, connection)) = &mut self.connection
                    && *known == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.scratch.clear();
                match self.endpoint.accept(incoming, at, &mut self.scratch, None) {
                    Ok(connection) => self.connection = Some(connection),
                    Err(refused) => self.lose(refused.cause.to_string()),
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.exchange();
    }

    /// Exchanges events between endpoint and connection.
    fn exchange(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
    }

    /// The next event for the application.
    pub fn poll(&mut self) -> Option<HostEvent> {
        let (_, connection) = self.connection.as_mut()?;
        loop {
            match connection.poll()? {
                Event::Connected => return Some(HostEvent::Connected),
                Event::Stream(StreamEvent::Writable { .. }) => return Some(HostEvent::Writable),
                Event::Stream(_) => return Some(HostEvent::Readable),
                Event::ConnectionLost { reason } => {
                    self.lost.get_or_insert_with(|| reason.to_string());
                }
                _ => {}
            }
        }
    }

    fn lose(&mut self, reason: String) {
        self.lost.get_or_insert(reason);
    }

    /// Why the connection is lost, in noq's words; `None` while it is not.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Writes the next datagram to the empty buffer. Returns its ECN code point; `None` if there is none.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Ecn> {
        let (_, connection) = self.connection.as_mut()?;
        let sent: Option<Transmit> =
            connection.poll_transmit(self.clock.instant(now), NonZeroUsize::MIN, out);
        self.exchange();
        sent.map(|sent| if self.ecn && sent.ecn.is_some() { Ecn::Ect0 } else { Ecn::NotEct })
    }

    pub fn next_deadline(&self) -> Time {
        let Some((_, connection)) = &self.connection else { return Time::MAX };
        let Some(at) = connection.poll_timeout() else { return Time::MAX };
        let at = self.clock.time(at);
        match self.handled {
            // A pacer waiting for less than a nanosecond would be called again and again at the same instant.
            Some(handled) if at <= handled => handled + Span::from_nanos(1),
            _ => at,
        }
    }

    /// Handles due timers; returns false if none is due.
    pub fn on_deadline(&mut self, now: Time) -> bool {
        let at = self.clock.instant(now);
        let Some((_, connection)) = &mut self.connection else { return false };
        if connection.poll_timeout().is_none_or(|due| due > at) {
            return false;
        }
        connection.handle_timeout(at);
        self.handled = Some(now);
        self.exchange();
        true
    }

    /// Number of flow-control credits received from the peer (RFC 9000, section 4.1).
    pub fn credits(&mut self) -> u64 {
        self.connection.as_mut().map_or(0, |(_, connection)| {
            let frames = connection.stats().frame_rx;
            frames.max_data + frames.max_stream_data
        })
    }

    /// Probes sent because of timeouts (RFC 9002, 6.2.4): noq requests an immediate acknowledgement in each.
    pub fn probes(&mut self) -> u64 {
        self.connection.as_mut().map_or(0, |(_, connection)| connection.stats().frame_tx.immediate_ack)
    }
}

/// Transport settings for noq.
fn transport(
    config: &Config,
    payload: u16,
    control: Option<Arc<dyn ControllerFactory + Send + Sync>>,
) -> TransportConfig {
    let limit = |bytes: Bytes| VarInt::from_u64(bytes.get()).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(None)
        .initial_mtu(payload)
        .min_mtu(payload)
        .mtu_discovery_config(None)
        .receive_window(limit(config.max_data))
        .stream_receive_window(limit(config.max_stream_data))
        .datagram_receive_buffer_size(None)
        .enable_segmentation_offload(false)
        .congestion_controller_factory(control.unwrap_or_else(|| Arc::new(NewRenoConfig::default())));
    if config.ack_every.is_some() || config.ack_delay.is_some() {
        let mut frequency = AckFrequencyConfig::default();
        // The threshold is the number of packets that may arrive without a response (draft-ietf-quic-ack-frequency,
        // section 4).
        let threshold = config.ack_every.unwrap_or(2).saturating_sub(1);
        frequency.ack_eliciting_threshold(threshold.into());
        frequency.max_ack_delay(config.ack_delay.map(duration));
        transport.ack_frequency_config(Some(frequency));
    }
    transport
}
