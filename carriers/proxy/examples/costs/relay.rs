//! What the proxy is compared with: HAProxy, and the least that a transparent relay can do, with splice(2) and with copies.

use std::collections::HashMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, acceptfrom_with, getsockname, recv, send};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Port of the listener that redirected connections reach.
pub const LISTENER: u16 = 5250;
/// Bytes that are moved at a time: the best of 64 KiB to 1 MiB here.
const PIPE: usize = 1 << 20;
const COPY: usize = 256 << 10;

/// Redirects connections of clients to the listener, as these relays need it. The proxy has rules of its own.
pub const RULES: &str = "table inet relay {
 chain pre {
  type filter hook prerouting priority mangle;
  tcp flags & (fin|syn|rst|ack) != syn socket transparent 1 meta mark set 1 accept
  iifname \"users\" tcp dport 5000-5999 tcp flags & (fin|syn|rst|ack) == syn tproxy ip to :5250 meta mark set 1 accept
 }
}
";

/// HAProxy's configuration: one thread as the proxy has, pipes where they help, and both addresses and the port kept.
pub fn haproxy(file: &Path) {
    let text = "global\n nbthread 1\n maxconn 9500\n maxpipes 400\n tune.pipesize 1048576\n\
                defaults\n mode tcp\n option splice-auto\n option tcp-smart-accept\n option tcp-smart-connect\n\
                \x20timeout connect 10s\n timeout client 600s\n timeout server 600s\n\
                listen relay\n bind 0.0.0.0:5250 transparent backlog 4096\n source 0.0.0.0 usesrc client\n server any 0.0.0.0:0\n";
    fs::write(file, text).unwrap();
}

/// How payload is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Splice,
    Copy,
}

struct Leg {
    socket: OwnedFd,
    readable: bool,
    writable: bool,
}

#[derive(Default)]
struct Direction {
    pipe: Option<(OwnedFd, OwnedFd)>,
    stuck: usize,
    ended: bool,
    told: bool,
}

struct Connection {
    legs: [Leg; 2],
    ways: [Direction; 2],
}

/// Relays until it is killed, in the namespace where it is started.
pub fn run(way: Way) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP)).unwrap();
    listener.set_ip_transparent_v4(true).unwrap();
    listener.set_reuse_address(true).unwrap();
    listener.set_tcp_nodelay(true).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, LISTENER)).into()).unwrap();
    listener.listen(4096).unwrap();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(0), epoll::EventFlags::IN).unwrap();
    let (mut connections, mut next): (HashMap<u64, Connection>, u64) = (HashMap::new(), 1);
    let mut events = Vec::with_capacity(512);
    let mut buffer = vec![0; COPY];
    loop {
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("{error}"),
        }
        for event in events.drain(..) {
            let data = event.data.u64();
            if data == 0 {
                while let Ok((client, Some(peer))) =
                    acceptfrom_with(&listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
                {
                    let from = SocketAddr::try_from(peer).unwrap();
                    let to = SocketAddr::try_from(getsockname(&client).unwrap()).unwrap();
                    let legs = [client, connect(from, to)].map(|socket| Leg {
                        socket,
                        readable: true,
                        writable: false,
                    });
                    for (side, leg) in legs.iter().enumerate() {
                        let flags = epoll::EventFlags::IN
                            | epoll::EventFlags::OUT
                            | epoll::EventFlags::RDHUP
                            | epoll::EventFlags::ET;
                        let data = epoll::EventData::new_u64(next << 1 | side as u64);
                        epoll::add(&epoll, &leg.socket, data, flags).unwrap();
                    }
                    connections.insert(next, Connection { legs, ways: Default::default() });
                    next += 1;
                }
                continue;
            }
            let number = data >> 1;
            let Some(connection) = connections.get_mut(&number) else { continue };
            let leg = &mut connection.legs[(data & 1) as usize];
            let flags = event.flags;
            leg.readable |=
                flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::HUP);
            leg.writable |= flags.intersects(epoll::EventFlags::OUT | epoll::EventFlags::HUP);
            let is_over = flags.contains(epoll::EventFlags::ERR) || connection.go(way, &mut buffer);
            if is_over {
                connections.remove(&number);
            }
        }
    }
}

fn connect(from: SocketAddr, to: SocketAddr) -> OwnedFd {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP)).unwrap();
    socket.set_ip_transparent_v4(true).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_tcp_nodelay(true).unwrap();
    socket.bind(&from.into()).unwrap();
    // It is under way; what becomes of it an event says.
    let _ = socket.connect(&to.into());
    socket.into()
}

impl Connection {
    /// Moves what can be moved; true when the connection is over.
    fn go(&mut self, way: Way, buffer: &mut [u8]) -> bool {
        let [user, server] = &mut self.legs;
        let [up, down] = &mut self.ways;
        let moved = up.go(user, server, way, buffer).and_then(|()| down.go(server, user, way, buffer));
        moved.is_err() || self.ways.iter().all(|way| way.told)
    }
}

impl Direction {
    fn go(&mut self, from: &mut Leg, to: &mut Leg, way: Way, buffer: &mut [u8]) -> Result<(), Errno> {
        while !self.told {
            if self.stuck > 0 {
                if !to.writable {
                    return Ok(());
                }
                let (out, _) = self.pipe.as_ref().unwrap();
                match splice(
                    out,
                    None,
                    &to.socket,
                    None,
                    self.stuck,
                    SpliceFlags::MOVE | SpliceFlags::NONBLOCK,
                ) {
                    Ok(bytes) => self.stuck -= bytes,
                    Err(Errno::AGAIN) => to.writable = false,
                    Err(error) => return Err(error),
                }
            } else if self.ended {
                SockRef::from(&to.socket.as_fd()).set_linger(None).map_err(|_| Errno::IO)?;
                rustix::net::shutdown(&to.socket, Shutdown::Write)?;
                self.told = true;
            } else if !from.readable || !to.writable {
                return Ok(());
            } else {
                let read = match way {
                    Way::Splice => self.fill(from),
                    Way::Copy => copy(from, to, buffer),
                };
                match read {
                    Ok(true) => {}
                    Ok(false) => self.ended = true,
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// False at the end.
    fn fill(&mut self, from: &mut Leg) -> Result<bool, Errno> {
        let (_, into) = self.pipe.get_or_insert_with(|| {
            let (out, into) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
            fcntl_setpipe_size(&into, PIPE).unwrap();
            (out, into)
        });
        match splice(&from.socket, None, into, None, PIPE, SpliceFlags::MOVE | SpliceFlags::NONBLOCK) {
            Ok(bytes) => {
                self.stuck = bytes;
                Ok(bytes > 0)
            }
            Err(error) => {
                from.readable = false;
                Err(error)
            }
        }
    }
}

/// Copies as much as the receiver takes; false at the end.
fn copy(from: &mut Leg, to: &mut Leg, buffer: &mut [u8]) -> Result<bool, Errno> {
    let (_, bytes) =
        recv(&from.socket, &mut *buffer, RecvFlags::DONTWAIT).inspect_err(|_| from.readable = false)?;
    let mut sent = 0;
    while sent < bytes {
        match send(&to.socket, &buffer[sent..bytes], SendFlags::NOSIGNAL) {
            Ok(taken) => sent += taken,
            // The least that a relay can do: it waits for its one connection. Benchmarks have readers that read.
            Err(Errno::AGAIN) => {
                let mut waits = [rustix::event::PollFd::new(&to.socket, rustix::event::PollFlags::OUT)];
                rustix::event::poll(&mut waits, None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(bytes > 0)
}
