//! How connections begin: held SYNs, answers of servers, accepted clients.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use ranpace_proxy_options::TcpInfo;
use ranpace_units::{Bytes, Span, Time};
use rustix::event::epoll::{self, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use socket2::SockRef;

use crate::alive::CERTAIN;
use crate::config;
use crate::handshakes::{Handshake, State};
use crate::legs;
use crate::metrics::Passed;
use crate::proxy::{Proxy, Token};
use crate::relay::{Counted, Leg, Relay, Side};
use crate::syn::{Ends, Syn};

/// A SYN is held at least this long for a server that does not answer. Its first repetition, after a second (RFC 6298), changes
/// nothing: a server may be slow, and one SYN of the proxy may be lost. The next one passes: after 2 s for Linux' linear timeouts, or
/// 3 s. Ours.
const HOLD: Span = Span::from_millis(1_500);
/// Held SYNs and accepted connections that are taken at a time. Ours.
const AT_ONCE: usize = 256;
/// When the system has no descriptor for a connection that waits to be accepted, it is asked again after this time. Ours.
const ACCEPT_AGAIN: Span = Span::from_millis(100);
/// Room for a held packet.
const PACKET: usize = 2048;

impl Proxy {
    /// Held SYNs have come.
    pub(crate) fn on_held(&mut self, now: Time) -> io::Result<()> {
        let mut buffer = [0; PACKET];
        for _ in 0..AT_ONCE {
            let Some(length) = self.held(&mut buffer)? else { break };
            let packet = &buffer[..length];
            // What else comes are the kernel's own announcements, and SYNs that no receiver could read.
            if let Some(syn) = Syn::parse(packet) {
                self.on_syn(now, &syn, packet);
            }
        }
        Ok(())
    }

    fn held(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.devices.as_ref().map_or(Ok(None), |devices| devices.held(buffer))
    }

    /// SYNs that were held while the proxy was asleep pass.
    pub(crate) fn pass_held(&mut self, now: Time) -> io::Result<()> {
        let mut buffer = [0; PACKET];
        while let Some(length) = self.held(&mut buffer)? {
            let packet = &buffer[..length];
            if let Some(syn) = Syn::parse(packet) {
                self.pass_late(now, &syn, packet);
            }
        }
        Ok(())
    }

    /// Its repetition may have passed already. Connecting would then disturb that connection of the same ends, but the server
    /// takes one more SYN of the same number for a packet that was late on its way.
    fn pass_late(&mut self, now: Time, syn: &Syn, packet: &[u8]) {
        self.handshakes.mark_passing(syn.ends, now);
        self.pass(packet, Passed::Late);
    }

    fn on_syn(&mut self, now: Time, syn: &Syn, packet: &[u8]) {
        // A client uses its port again as soon as the kernel has seen the end of its connection, of which the proxy may not have heard
        // yet. The kernel would give this SYN to the listener, from which nothing is taken that was not held before.
        if let Some(place) = self.by_ends.get(&syn.ends).copied() {
            self.on_leg(now, place, Side::User, EventFlags::IN);
        }
        if let Some(place) = self.handshakes.find(&syn.ends) {
            self.on_repeated(now, place, syn, packet);
        } else if self.by_ends.contains_key(&syn.ends) {
            // The socket of the connection answers, as it would without a proxy.
            self.release(packet);
        } else if self.handshakes.is_passing(&syn.ends, now) {
            self.pass_unnoticed(packet);
        } else if self.accept_again_at.is_some() || self.is_full(syn.ends.client.ip()) {
            self.pass(packet, Passed::Limit);
        } else {
            match legs::connect(&syn.ends, Some(syn), &self.buffers, Some(self.renewed_at + CERTAIN)) {
                Ok(leg) => {
                    let state = State::Exact { syn: packet.into(), number: syn.number, released: false };
                    self.begin(now, syn.ends, leg, state);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => self.pass_late(now, syn, packet),
                Err(error) => {
                    tracing::debug!(server = %syn.ends.server, %error, "the server is not reached; the client may see for itself");
                    self.pass(packet, if is_limit(&error) { Passed::Limit } else { Passed::Refused });
                }
            }
        }
    }

    /// The SYN of a connection that waits has come again.
    fn on_repeated(&mut self, now: Time, place: usize, syn: &Syn, packet: &[u8]) {
        let Some(handshake) = self.handshakes.get_mut(place) else { return };
        match handshake.state {
            State::Exact { number, .. } if number != syn.number => {
                // Another attempt from the same port, or the proxy's own SYN: that would go round for ever.
                tracing::warn!(client = %syn.ends.client, server = %syn.ends.server, "a connection came back to the proxy; it passes from now on");
                self.handshakes.mark_passing(syn.ends, now);
                self.handshakes.remove(place);
                self.pass(packet, Passed::Loop);
            }
            State::Exact { released: true, .. } => self.release(packet),
            State::Exact { .. } if now < handshake.since + HOLD => {}
            State::Exact { .. } => {
                // Whether the server is very slow, silent, or not on its network (which the kernel tells the client, not the proxy):
                // the client is to see for itself.
                self.handshakes.mark_passing(syn.ends, now);
                self.handshakes.remove(place);
                self.pass(packet, Passed::Silent);
            }
            State::Accepted(_) => {}
        }
    }

    /// Whether a client's next connection is beyond a limit.
    fn is_full(&self, client: IpAddr) -> bool {
        let limits = &self.config.limits;
        self.is_draining()
            || self.relays.len() + self.handshakes.len() + self.closing.len() >= self.most
            || self.users.connections(client) >= limits.connections_per_user
            || self.handshakes.of_client(client) >= limits.handshakes_per_client
            || !self.rapid.admits()
            || self.rapid.backlog() + self.uploads.total() >= limits.total_buffer
    }

    fn pass(&self, syn: &[u8], why: Passed) {
        self.metrics.pass(why);
        self.pass_unnoticed(syn);
    }

    fn pass_unnoticed(&self, syn: &[u8]) {
        // What the device does not take is repeated by the client.
        let _ = self.devices.as_ref().map(|devices| devices.pass(syn));
    }

    fn release(&self, syn: &[u8]) {
        // What the device does not take is repeated by the client.
        let _ = self.devices.as_ref().map(|devices| devices.to_listener(syn));
    }

    /// Waits for the server's answer.
    fn begin(&mut self, now: Time, ends: Ends, leg: legs::ServerLeg, state: State) {
        if !leg.has_port {
            self.metrics.other_port.inc();
        }
        self.add_handshake(Handshake { ends, server: leg.socket, state, since: now });
    }

    /// Waits for what becomes of a handshake.
    pub(crate) fn add_handshake(&mut self, handshake: Handshake) {
        let place = self.handshakes.insert(handshake);
        let Some(handshake) = self.handshakes.get_mut(place) else { return };
        if epoll::add(&self.epoll, &handshake.server, Token::Handshake(place).data(), flags()).is_err() {
            // Without memory in the kernel; the client tries again.
            self.handshakes.remove(place);
        }
    }

    /// A server has answered, or will not.
    pub(crate) fn on_answer(&mut self, now: Time, place: usize, flags: EventFlags) {
        let Some(handshake) = self.handshakes.get_mut(place) else { return };
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            let error = legs::error(&handshake.server);
            self.fail(place, error.as_ref());
            return;
        }
        // An event may be that of an earlier connection in this place.
        if !matches!(rustix::net::getpeername(&handshake.server), Ok(Some(_))) {
            return;
        }
        match &mut handshake.state {
            State::Exact { released: true, .. } => {}
            State::Exact { released, syn, .. } => {
                *released = true;
                handshake.since = now;
                let syn = std::mem::take(syn);
                self.release(&syn);
            }
            State::Accepted(_) => {
                if let Some(Handshake { ends, server, state: State::Accepted(user), .. }) =
                    self.handshakes.remove(place)
                {
                    self.complete(now, ends, user, server);
                }
            }
        }
    }

    /// A server refuses or is not reached: the client's SYN passes, so that the client sees the same. One that was accepted is reset.
    fn fail(&mut self, place: usize, error: Option<&io::Error>) {
        let Some(handshake) = self.handshakes.remove(place) else { return };
        let is_silent = error.and_then(io::Error::raw_os_error) == Some(Errno::ETIMEDOUT as i32);
        if let State::Exact { syn, released: false, .. } = handshake.state
            && !is_silent
        {
            drop(handshake.server);
            self.pass(&syn, Passed::Refused);
        }
    }

    /// Clients have completed their handshakes.
    pub(crate) fn on_accept(&mut self, now: Time, listener: usize) {
        for _ in 0..AT_ONCE {
            let Some(socket) = self.listeners.get(listener) else { return };
            // Who is accepted first needs a descriptor for the server's leg, too: without one it would be reset.
            if self.config.handshake == config::Handshake::AcceptFirst && self.reserve.is_none() {
                // An open file of its own: a copy of another descriptor would not count for the limit of the whole system.
                match eventfd(0, EventfdFlags::CLOEXEC) {
                    Ok(reserve) => self.reserve = Some(reserve),
                    Err(error) => return self.accept_later(now, &error.into()),
                }
            }
            match legs::accept(socket) {
                Ok(Some((user, ends))) => self.on_accepted(now, user, ends),
                Ok(None) => return,
                Err(error) => return self.accept_later(now, &error),
            }
        }
    }

    /// The system has no descriptor for a connection that waits to be accepted.
    fn accept_later(&mut self, now: Time, error: &io::Error) {
        if self.accept_again_at.replace(now + ACCEPT_AGAIN).is_none() {
            tracing::warn!(%error, "cannot accept connections; new ones pass until it can");
            self.listen_for(EventFlags::empty());
            self.let_new_ones_pass();
        }
    }

    /// Tries to accept what has waited since the system had no descriptor for it.
    pub(crate) fn accept_again(&mut self, now: Time) {
        let failed = self.accept_again_at;
        for listener in 0..self.listeners.len() {
            self.on_accept(now, listener);
        }
        if self.accept_again_at == failed {
            self.accept_again_at = None;
            self.renew_at = now;
            self.listen_for(EventFlags::IN);
        }
    }

    /// Which events of the listeners are awaited.
    fn listen_for(&self, flags: EventFlags) {
        for (place, socket) in self.listeners.iter().enumerate() {
            // It changes what is there already, for which the kernel needs nothing.
            let _ = epoll::modify(&self.epoll, socket, Token::Listener(place).data(), flags);
        }
    }

    fn on_accepted(&mut self, now: Time, user: OwnedFd, ends: Ends) {
        if let Some(place) = self.handshakes.find(&ends) {
            let is_released =
                |handshake: &mut Handshake| matches!(handshake.state, State::Exact { released: true, .. });
            if self.handshakes.get_mut(place).is_some_and(is_released)
                && let Some(handshake) = self.handshakes.remove(place)
            {
                self.complete(now, ends, user, handshake.server);
            }
            // Otherwise it is reset when `user` is dropped.
            return;
        }
        // In an exact handshake only what was held is accepted. The port of the listener is no server, unless another host has it.
        let is_own = ends.server.port() == self.config.port && is_local(ends.server.ip());
        if self.config.handshake == config::Handshake::Exact || is_own || self.is_full(ends.client.ip()) {
            tracing::debug!(client = %ends.client, server = %ends.server, "a connection that is not the proxy's is reset");
            return;
        }
        let mut leg = legs::connect(&ends, None, &self.buffers, None);
        if leg.as_ref().is_err_and(is_limit) && self.reserve.take().is_some() {
            leg = legs::connect(&ends, None, &self.buffers, None);
        }
        match leg {
            Ok(leg) => self.begin(now, ends, leg, State::Accepted(user)),
            Err(error) => {
                tracing::debug!(server = %ends.server, %error, "the server is not reached; the client is reset")
            }
        }
    }

    /// Both legs are established.
    fn complete(&mut self, now: Time, ends: Ends, user: OwnedFd, server: OwnedFd) {
        let Ok(info) = TcpInfo::read(&server) else { return };
        // Both ends are reset where it fails.
        let Ok(()) = legs::limit(&server, &self.buffers) else { return };
        if now < self.inherited_until {
            // Listeners of another process gave it that one's control. Where it is refused, the kernel's own sends.
            let _ = SockRef::from(&user).set_tcp_congestion(self.sender.congestion().as_bytes());
        }
        let user_number = self.users.begin(ends.client.ip());
        let rtt = Span::from_micros(info.rtt.into());
        let flow = self.rapid.open(now, user_number, rtt, Bytes::new(info.send_mss.into()));
        let counted = Counted {
            flow,
            received: 0,
            server_acked: info.bytes_acked,
            user_acked: 0,
            server_rtt: rtt,
            user_min_rtt: u32::MAX,
            backlog: 0,
            uploaded: 0,
            changed_at: now,
            mss: info.send_mss,
            scale: info.receive_window_scale(),
            clamp: 0,
            clamp_due: false,
            user_clamp: u32::MAX,
            allocation: None,
            allocated: false,
        };
        let relay = Relay::new(ends, user_number, now, Leg::new(user), Leg::new(server), counted);
        let place = self.relays.insert(relay);
        self.by_ends.insert(ends, place);
        self.by_flow.resize(self.by_flow.len().max(flow.index() + 1), usize::MAX);
        self.by_flow[flow.index()] = place;
        self.metrics.split.inc();
        self.metrics.connections.inc();
        let relay = &self.relays[place];
        let waits = epoll::modify(
            &self.epoll,
            &relay.server.socket,
            Token::Relay(place, Side::Server).data(),
            flags(),
        )
        .or_else(|_| {
            epoll::add(&self.epoll, &relay.server.socket, Token::Relay(place, Side::Server).data(), flags())
        })
        .and_then(|()| {
            epoll::add(&self.epoll, &relay.user.socket, Token::Relay(place, Side::User).data(), flags())
        });
        if let Err(error) = waits {
            self.end_by_reset(now, place, &error.into());
            return;
        }
        self.apply_changes();
        self.go(now, place);
    }
}

/// Whether there are too many open files, of this process or of all.
fn is_limit(error: &io::Error) -> bool {
    let limits = [Errno::EMFILE, Errno::ENFILE].map(|limit| Some(limit as i32));
    limits.contains(&error.raw_os_error())
}

/// Everything that a leg may have to say, once each time.
fn flags() -> EventFlags {
    EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET
}

/// Whether an address is one of this host.
fn is_local(address: IpAddr) -> bool {
    let Ok(addresses) = nix::ifaddrs::getifaddrs() else { return true };
    let ip = |storage: &nix::sys::socket::SockaddrStorage| -> Option<IpAddr> {
        let v4 = storage.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    };
    addresses.filter_map(|interface| interface.address.as_ref().and_then(ip)).any(|own| own == address)
}
