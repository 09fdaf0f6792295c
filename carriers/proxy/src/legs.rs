//! The sockets of the proxy: listeners, the connection to a server in the client's name, and how either of them ends.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use listenfd::ListenFd;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use ranpace_rnisd::clock;
use ranpace_units::Time;
use rustix::net::{SocketFlags, acceptfrom_with, getsockname};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::buffers::Buffers;
use crate::config::Config;
use crate::error::ProxyError;
use crate::syn::{Ends, Syn};

/// Connections that wait to be accepted; the system may allow fewer (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;
/// The largest buffer for which the kernel scales windows unless told otherwise (the default of `net.ipv4.tcp_rmem`).
const KERNELS_BUFFER: usize = 6 << 20;
/// A silent peer is asked for a sign of life after this time, so that connections of devices that have vanished end. Ours.
const KEEPALIVE: Duration = Duration::from_secs(600);

/// Both listeners, for IPv4 and IPv6, the latter only where the kernel has it; or those that a service manager has opened.
pub fn listeners(config: &Config, buffers: &Buffers, congestion: &str) -> Result<Vec<Socket>, ProxyError> {
    let given = given(config, buffers, congestion)?;
    if !given.is_empty() {
        return Ok(given);
    }
    let listener = |address: IpAddr| {
        let what = format!("listen on port {} for redirected connections", config.port);
        listen(SocketAddr::new(address, config.port), buffers, congestion).map_err(ProxyError::system(what))
    };
    let mut found = vec![listener(Ipv4Addr::UNSPECIFIED.into())?];
    match listener(Ipv6Addr::UNSPECIFIED.into()) {
        Err(ProxyError::System { error, .. }) if error.raw_os_error() == Some(Errno::EAFNOSUPPORT as i32) => {
        }
        other => found.push(other?),
    }
    Ok(found)
}

/// Listeners that a service manager has opened (`LISTEN_FDS`, see systemd.socket(5)); none if it has not.
///
/// # Errors
///
/// What it has opened does not listen on the proxy's port.
fn given(config: &Config, buffers: &Buffers, congestion: &str) -> Result<Vec<Socket>, ProxyError> {
    let mut given = ListenFd::from_env();
    let mut found = Vec::new();
    for place in 0..given.len() {
        let listener =
            given.take_tcp_listener(place).map_err(ProxyError::system("take over a given socket"))?;
        let Some(socket) = listener.map(Socket::from) else { continue };
        adopt(&socket, buffers, congestion).map_err(ProxyError::system("set up a given socket"))?;
        let address =
            socket.local_addr().map_err(ProxyError::system("read the address of a given socket"))?;
        if address.as_socket().is_none_or(|address| address.port() != config.port) {
            return Err(ProxyError::Setup(format!(
                "expected a socket that listens on port {}, as `port` says, found one at {:?}; `ListenStream=` of the socket unit has to be this port",
                config.port,
                address.as_socket()
            )));
        }
        found.push(socket);
    }
    Ok(found)
}

/// Sets up a listener that somebody else has opened as [`listeners`] are. Sockets that it accepts inherit its options.
///
/// # Errors
///
/// The system refuses it.
pub fn adopt(socket: &Socket, buffers: &Buffers, congestion: &str) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let is_v4 = socket.domain()? == Domain::IPV4;
    set_up(socket, is_v4, buffers)?;
    limit(socket, buffers)?;
    socket.set_tcp_congestion(congestion.as_bytes())
}

fn listen(address: SocketAddr, buffers: &Buffers, congestion: &str) -> io::Result<Socket> {
    let socket = transparent(address.ip(), buffers)?;
    limit(&socket, buffers)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_tcp_congestion(congestion.as_bytes())?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

fn transparent(family: IpAddr, buffers: &Buffers) -> io::Result<Socket> {
    let domain = if family.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    set_up(&socket, family.is_ipv4(), buffers)?;
    Ok(socket)
}

/// The socket may have any address as its own, a killed process resets it, and it holds no more than its buffers.
fn set_up(socket: &Socket, is_v4: bool, buffers: &Buffers) -> io::Result<()> {
    match is_v4 {
        true => socket.set_ip_transparent_v4(true)?,
        false => socket.set_ip_transparent_v6(true)?,
    }
    socket.set_reuse_address(true)?;
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(buffers.unsent as u32)?; // at most 128 KiB
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))
}

/// Limits what a socket receives and nobody has read.
///
/// # Errors
///
/// The system refuses it.
pub fn limit(socket: &impl AsFd, buffers: &Buffers) -> io::Result<()> {
    // The kernel doubles the value for its overhead.
    Ok(setsockopt(socket, sockopt::RcvBufForce, &(buffers.receive / 2))?)
}

/// Lets a socket receive no more than it has, until [`limit`].
///
/// # Errors
///
/// The system refuses it.
pub fn shut(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::RcvBufForce, &0)?)
}

/// The next accepted connection, with its ends; `None` if none waits.
pub fn accept(listener: impl AsFd) -> io::Result<Option<(OwnedFd, Ends)>> {
    loop {
        match acceptfrom_with(&listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok((socket, peer)) => {
                let server = SocketAddr::try_from(getsockname(&socket)?)?;
                // A connection that was reset meanwhile has no peer.
                let Some(Ok(client)) = peer.map(SocketAddr::try_from) else { continue };
                return Ok(Some((socket, Ends { client, server })));
            }
            Err(rustix::io::Errno::AGAIN) => return Ok(None),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A connection to a server that has begun.
pub struct ServerLeg {
    /// The socket.
    pub socket: OwnedFd,
    /// Whether it has the client's port; otherwise another one, because the client's was in use.
    pub has_port: bool,
}

/// Begins to connect to the server in the client's name, at the latest at `until`.
///
/// # Errors
///
/// The system refuses at once: no route, or too many open files. [`io::ErrorKind::TimedOut`]: it is later than `until`.
pub fn connect(
    ends: &Ends,
    syn: Option<&Syn>,
    buffers: &Buffers,
    until: Option<Time>,
) -> io::Result<ServerLeg> {
    match connect_from(ends, ends.client.port(), syn, buffers, until) {
        Err(error)
            if [Errno::EADDRINUSE, Errno::EADDRNOTAVAIL]
                .map(|code| Some(code as i32))
                .contains(&error.raw_os_error()) =>
        {
            let socket = connect_from(ends, 0, syn, buffers, until)?;
            Ok(ServerLeg { socket, has_port: false })
        }
        socket => Ok(ServerLeg { socket: socket?, has_port: true }),
    }
}

fn connect_from(
    ends: &Ends,
    port: u16,
    syn: Option<&Syn>,
    buffers: &Buffers,
    until: Option<Time>,
) -> io::Result<OwnedFd> {
    let socket = transparent(ends.client.ip(), buffers)?;
    // The scale of windows follows from a limit that is set before the SYN, but so does the window: all of it is announced at once, and
    // a server 20 ms away has filled it before its phone has answered. Without one the kernel announces 64 KiB until somebody reads.
    if buffers.receive > KERNELS_BUFFER {
        limit(&socket, buffers)?;
    }
    if let Some(mss) = syn.and_then(|syn| syn.mss) {
        // The client's path may take less than the proxy's own devices. What the kernel does not accept is unusual, and not copied.
        let _ = socket.set_tcp_mss(mss.into());
    }
    socket.bind(&SocketAddr::new(ends.client.ip(), port).into())?;
    // Looked at last: a process that was stopped before this line may be late by any time.
    if let Some(until) = until
        && clock::now()? > until
    {
        return Err(io::ErrorKind::TimedOut.into());
    }
    match socket.connect(&ends.server.into()) {
        Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => Ok(socket.into()),
        done => done.map(|()| socket.into()),
    }
}

/// Closes a socket whose payload was handed over whole: the kernel sends what remains, and the end.
pub fn close(socket: OwnedFd) {
    // Where it fails the peer is reset, as it would be by a failing system.
    let _ = SockRef::from(&socket).set_linger(None);
}

/// Closes a socket so that its peer is reset.
pub fn reset(socket: OwnedFd) {
    // It has had the option since it was made, and what is dropped is closed.
    drop(socket);
}

/// The error that a socket waits to tell.
pub fn error(socket: &OwnedFd) -> Option<io::Error> {
    SockRef::from(socket).take_error().unwrap_or_else(Some)
}
