//! Both ends over real UDP sockets: they pass messages and time, and decide nothing.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ranpace_units::{Span, Time};

use crate::receiver::{Receiver, Recording};
use crate::sender::{Ended, Sender};

/// The interval at which the caller is asked whether to continue.
const BEAT: Duration = Duration::from_millis(100);
/// IP and UDP headers, for IPv4 and IPv6.
const HEADERS: [u64; 2] = [28, 48];

/// Why a link was not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaturatorError {
    /// The socket could not be opened.
    #[error("cannot use the UDP address {address}: {source}")]
    Socket {
        /// Its address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Packets of this size cannot be sent from here.
    #[error(
        "packets of {packet} B do not fit the first link to {address}; ask for smaller ones with --packet"
    )]
    TooLong {
        /// Destination.
        address: SocketAddr,
        /// Bytes with all headers.
        packet: u64,
    },
    /// The network failed.
    #[error("the network failed at {address}: {source}")]
    Network {
        /// Destination or origin.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// Progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Time since both sides found each other; `None` until then.
    pub elapsed: Option<Span>,
    /// Packets sent, or received.
    pub packets: u64,
    /// The last round trip; zero at the receiver.
    pub rtt: Span,
}

/// Listens on `address` until a sender comes, and then records for `length`. Stops early when `go_on`, called ten times a second,
/// says so; what was recorded until then is returned.
pub fn receive(
    address: SocketAddr,
    length: Span,
    go_on: &mut dyn FnMut(Status) -> bool,
) -> Result<Recording, SaturatorError> {
    let broken = |source| SaturatorError::Socket { address, source };
    let socket = UdpSocket::bind(address).map_err(broken)?;
    socket.set_read_timeout(Some(BEAT)).map_err(broken)?;
    let secret = RandomState::new();
    let mut receiver = Receiver::new(length, move |from| secret.hash_one(from));
    let (began, mut told) = (Instant::now(), Instant::now());
    let (mut buffer, mut answer) = (vec![0; 1 << 16], Vec::new());
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                let now = time_since(began);
                if receiver.on_message(now, from, &buffer[..length], &mut answer) {
                    // An acknowledgement that cannot be sent counts as lost.
                    let _ = socket.send_to(&answer, from);
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(source) => return Err(SaturatorError::Network { address, source }),
        }
        if told.elapsed() >= BEAT {
            told = Instant::now();
            let now = time_since(began);
            let packets = receiver.recording().packets;
            let status = Status { elapsed: receiver.elapsed(now), packets, rtt: Span::ZERO };
            if receiver.is_done(now) || !go_on(status) {
                return Ok(receiver.finish());
            }
        }
    }
}

/// Keeps the link to the receiver at `address` busy for `length`, with packets of `packet` bytes (IP header included) of which at
/// most `most` are in flight. Stops early when `go_on`, called ten times a second, says so.
pub fn send(
    address: SocketAddr,
    length: Span,
    packet: u64,
    most: u64,
    go_on: &mut dyn FnMut(Status) -> bool,
) -> Result<Ended, SaturatorError> {
    let broken = |source| SaturatorError::Socket { address, source };
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).map_err(broken)?;
    // Only messages from there are accepted.
    socket.connect(address).map_err(broken)?;
    socket.set_read_timeout(Some(BEAT)).map_err(broken)?;
    let payload = packet.saturating_sub(HEADERS[usize::from(address.is_ipv6())]) as usize;
    let began = Instant::now();
    let number = RandomState::new().hash_one(address);
    let shared = Shared {
        sender: Mutex::new(Sender::new(Time::ZERO, number, length, payload, most)),
        news: Condvar::new(),
    };
    thread::scope(|scope| {
        scope.spawn(|| listen(&socket, &shared, began));
        let sent = pump(&socket, &shared, began, go_on);
        let mut sender = shared.lock();
        if sent.is_err() && sender.ended().is_none() {
            // Lets the other thread end.
            *sender = Sender::new(Time::ZERO, 0, Span::ZERO, 0, 0);
            sender.stop();
        }
        sent.map_err(|source| match source.raw_os_error() {
            Some(TOO_LONG) => SaturatorError::TooLong { address, packet },
            _ => SaturatorError::Network { address, source },
        })
    })
}

/// EMSGSIZE of Linux; elsewhere the system's own message is shown.
const TOO_LONG: i32 = 90;

/// The sender, with the means to wake those who wait for it.
struct Shared {
    sender: Mutex<Sender>,
    news: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Sender> {
        // A thread that panicked left a sender that is at worst one message behind.
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles the receiver's messages until the sender has ended.
fn listen(socket: &UdpSocket, shared: &Shared, began: Instant) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let heard = socket.recv(&mut buffer);
        let mut sender = shared.lock();
        if let Ok(length) = heard {
            sender.on_message(time_since(began), &buffer[..length]);
            shared.news.notify_one();
        }
        if sender.ended().is_some() {
            return;
        }
    }
}

/// Sends due messages until the sender has ended.
fn pump(
    socket: &UdpSocket,
    shared: &Shared,
    began: Instant,
    go_on: &mut dyn FnMut(Status) -> bool,
) -> io::Result<Ended> {
    let mut message = Vec::new();
    let (mut told, mut welcome_at) = (Instant::now(), None);
    loop {
        let mut sender = shared.lock();
        let has_message = sender.poll(time_since(began), &mut message);
        if told.elapsed() >= BEAT {
            told = Instant::now();
            if sender.is_welcome() {
                welcome_at.get_or_insert(told);
            }
            let elapsed = welcome_at.map(|at| span(told - at));
            let (packets, rtt) = sender.progress();
            drop(sender);
            let is_wanted = go_on(Status { elapsed, packets, rtt });
            sender = shared.lock();
            if !is_wanted {
                sender.stop();
            }
        }
        if has_message {
            drop(sender);
            match socket.send(&message) {
                Ok(_) => {}
                // This machine's buffers are full: what is not sent is lost, as on any link.
                Err(error) if is_passing(&error) => thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error),
            }
            continue;
        }
        if let Some(why) = sender.ended() {
            return Ok(why);
        }
        let wait = sender.next_deadline().since(time_since(began));
        let wait = Duration::from_nanos(wait.as_nanos()).clamp(Duration::from_micros(50), BEAT);
        drop(shared.news.wait_timeout(sender, wait).unwrap_or_else(PoisonError::into_inner));
    }
}

/// A timeout, or a temporary error: a full buffer, or a receiver that is not there yet.
fn is_passing(error: &io::Error) -> bool {
    // ENOBUFS, which has no `ErrorKind`.
    const NO_BUFFERS: i32 = 105;
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    ) || error.raw_os_error() == Some(NO_BUFFERS)
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

fn time_since(began: Instant) -> Time {
    Time::ZERO + span(began.elapsed())
}
