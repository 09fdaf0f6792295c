//! Hints from a server, by datagrams: the subscriber's half of the exchange of [`feed`](ranpace_rnis::feed).
//!
//! The datagrams of a report come in one piece where the system can join them again (UDP_GRO), so that a slot wakes a reader once.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use ranpace_phy::Direction;
use ranpace_rnis::RadioHint;
use ranpace_rnis::feed::KEY_BYTES;
use ranpace_rnis::feed::message::{CLOCK_BYTES, Header};
use ranpace_rnis::feed::receiver::{Accepted, AgedHint, Receiver};
use ranpace_rnis::feed::view::FeedView;
use ranpace_rnis::shared_table::directory::Identity;
use ranpace_units::Time;
use url::Url;

use super::subscription::{News, Subscription};
use super::{ClientError, Wanted};
use crate::seal::{Role, Seal, Secret, random};
use crate::{clock, identity};

/// Bytes that the system keeps for a reader that is late: what a second of a busy feed has.
const BUFFER: usize = 4 << 20;
/// Most bytes of datagrams that were joined: what one IP packet may have.
const MOST_AT_ONCE: usize = 1 << 16;
/// Longest wait before it is looked whether there is a subscription. Ours.
const LOOK: Duration = Duration::from_millis(20);

/// Reads datagrams.
pub struct DatagramReader {
    socket: UdpSocket,
    /// Always of [`MOST_AT_ONCE`] bytes between two calls.
    buffer: Vec<u8>,
    subscription: Subscription,
    clock: [u8; CLOCK_BYTES],
    feed: Option<Feed>,
    direction: Direction,
    /// The reports of which grants were told, by user.
    told: HashMap<IpAddr, Time>,
    reports: u64,
    complaint: Option<String>,
    last_complaint: Option<String>,
}

/// A feed that is subscribed to.
struct Feed {
    stream: u32,
    key: [u8; KEY_BYTES],
    secret: Secret,
    own: Seal,
    /// Key of the server's latest epoch.
    server: Option<(u64, Seal)>,
    receiver: Receiver,
    /// Where the server's datagrams come from.
    from: Option<SocketAddr>,
}

impl Feed {
    fn new(stream: u32, key: [u8; KEY_BYTES], clock: [u8; CLOCK_BYTES]) -> Option<Self> {
        let epoch = u64::from_le_bytes(random().ok()?);
        let secret = Secret::new(&key);
        let own = secret.seal(Role::Subscriber, stream, epoch)?;
        Some(Self {
            stream,
            key,
            secret,
            own,
            server: None,
            receiver: Receiver::new(epoch, clock),
            from: None,
        })
    }
}

impl DatagramReader {
    pub fn open(server: &Url, wanted: &Wanted) -> Result<Self, ClientError> {
        let clock = clock::identity()?;
        clock::now().map_err(|error| ClientError::Setup(error.to_string()))?;
        random::<8>().map_err(|error| ClientError::Setup(error.to_string()))?;
        // The own address by which the server is reached; nothing is sent.
        let found = server.socket_addrs(|| None)?;
        let address = found.first().ok_or_else(|| ClientError::Setup(format!("{server} has no address")))?;
        let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        let probe = UdpSocket::bind((any, 0))?;
        probe.connect(address)?;
        let socket = UdpSocket::bind((probe.local_addr()?.ip(), 0))?;
        socket.set_nonblocking(true)?;
        // The system's bound may be less than that, which is then what there is.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER);
        // A system that cannot join datagrams delivers each.
        let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        let callback = format!("udp://{}", socket.local_addr()?);
        let subscription = Subscription::new(server, wanted, callback)?;
        Ok(Self {
            socket,
            buffer: vec![0; MOST_AT_ONCE],
            subscription,
            clock,
            feed: None,
            direction: wanted.direction,
            told: HashMap::new(),
            reports: 0,
            complaint: None,
            last_complaint: None,
        })
    }

    fn hear_news(&mut self) {
        while let Ok(news) = self.subscription.news.try_recv() {
            match news {
                News::Subscribed { stream, key } => {
                    self.last_complaint = None;
                    let is_known = |feed: &Feed| feed.stream == stream && feed.key == key;
                    if !self.feed.as_ref().is_some_and(is_known) {
                        self.feed = Feed::new(stream, key, self.clock);
                    }
                }
                News::Failed(why) => {
                    if self.last_complaint.as_ref() != Some(&why) {
                        (self.complaint, self.last_complaint) = (Some(why.clone()), Some(why));
                    }
                }
            }
        }
    }

    pub fn wait(&mut self, at_most: Duration) -> Result<bool, ClientError> {
        let now = || clock::now().unwrap_or(Time::ZERO);
        let until =
            now() + ranpace_units::Span::from_nanos(u64::try_from(at_most.as_nanos()).unwrap_or(u64::MAX));
        loop {
            self.hear_news();
            self.request(now())?;
            match self.receive() {
                Ok((length, size, from)) => {
                    let mut buffer = std::mem::take(&mut self.buffer);
                    let mut is_report = false;
                    for datagram in buffer[..length].chunks_mut(size) {
                        is_report |= self.take(datagram, from, now());
                    }
                    self.buffer = buffer;
                    if is_report {
                        return Ok(true);
                    }
                    continue;
                }
                // Nothing has come, or a request was not taken by anybody.
                Err(Errno::EAGAIN | Errno::ECONNREFUSED | Errno::EINTR) => {}
                Err(error) => return Err(ClientError::Socket(error.into())),
            }
            let at = now();
            if at >= until {
                return Ok(false);
            }
            let due = self.feed.as_ref().map_or(Time::MAX, |feed| feed.receiver.next_deadline());
            let left = until.min(due).checked_since(at).unwrap_or_default();
            let left = Duration::from_nanos(left.as_nanos()).min(LOOK);
            let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            // Rounded up: it would be asked again and again for less than a millisecond.
            let wait = PollTimeout::from(left.as_micros().div_ceil(1000) as u16); // at most 20
            match poll(&mut fds, wait) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(ClientError::Socket(error.into())),
            }
        }
    }

    /// Receives a datagram, or several of one size of which the last may be shorter: the bytes, the size, and the sender.
    fn receive(&mut self) -> Result<(usize, usize, SocketAddr), Errno> {
        let mut space = nix::cmsg_space!(i32);
        let mut slices = [IoSliceMut::new(&mut self.buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message =
            recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut slices, Some(&mut space), flags)?;
        let mut size = message.bytes;
        for control in message.cmsgs()? {
            if let ControlMessageOwned::UdpGroSegments(segment) = control {
                size = usize::try_from(segment).unwrap_or(size);
            }
        }
        let from = message.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
        });
        // A datagram of an internet socket has a sender.
        Ok((message.bytes, size.max(1), from.ok_or(Errno::EAFNOSUPPORT)?))
    }

    /// Sends the request that is due.
    fn request(&mut self, now: Time) -> Result<(), ClientError> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        let Some(to) = feed.from else { return Ok(()) };
        while let Some((header, request)) = feed.receiver.poll_request(now, feed.stream) {
            let (mut body, mut message) = (Vec::new(), Vec::new());
            request.write(&mut body);
            feed.own.close(&header, &body, &mut message);
            match self.socket.send_to(&message, to) {
                // What is not sent is lost; the next request is due soon.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// A datagram has come; whether it was a report or a directory.
    fn take(&mut self, datagram: &mut [u8], from: SocketAddr, now: Time) -> bool {
        match self.open_and_accept(datagram, from, now) {
            Some(Accepted::Report { .. }) => {
                self.reports += 1;
                true
            }
            Some(Accepted::Directory) => true,
            // A hello, an answer, or what was repeated, forged or not for us.
            Some(_) | None => false,
        }
    }

    fn open_and_accept(&mut self, datagram: &mut [u8], from: SocketAddr, now: Time) -> Option<Accepted> {
        let header = Header::parse(datagram).ok()?;
        let feed = self.feed.as_mut().filter(|feed| feed.stream == header.stream)?;
        feed.receiver.admit(&header).ok()?;
        let known = feed.server.take().filter(|(epoch, _)| *epoch == header.epoch);
        let seal = match known {
            Some((_, seal)) => seal,
            None => feed.secret.seal(Role::Server, feed.stream, header.epoch)?,
        };
        let body = seal.open(&header, datagram)?;
        let accepted = feed.receiver.accept(&header, body, now);
        feed.server = Some((header.epoch, seal));
        let accepted = accepted.ok()?;
        feed.from = Some(from);
        self.subscription.last_datagram.store(now.as_nanos(), Ordering::Relaxed);
        Some(accepted)
    }

    fn view(&self) -> Option<&FeedView> {
        self.feed.as_ref()?.receiver.view()
    }

    pub fn hint(&self, user: IpAddr) -> Option<AgedHint> {
        let feed = self.feed.as_ref()?;
        let user = feed.receiver.view()?.user_at(&identity::bytes(user))?;
        feed.receiver.hint(user, clock::now().ok()?)
    }

    /// A block of the mean, once for each report.
    pub fn grants(&mut self, user: IpAddr, tell: &mut dyn FnMut(RadioHint)) {
        let Some(aged) = self.hint(user) else { return };
        let hint = aged.hint.value;
        if self.told.insert(user, hint.measured_at).is_some_and(|before| before >= hint.measured_at) {
            return;
        }
        let block = hint.block(self.direction, hint.granted);
        if block.bits() > 0 {
            tell(RadioHint { tbs_bits: Some(block.bits()), ..hint });
        }
    }

    pub fn users(&self) -> Vec<Identity> {
        let view = self.view();
        view.iter().flat_map(|view| view.users()).map(|(_, of)| of.clone()).collect()
    }

    pub fn reports(&self) -> u64 {
        self.reports
    }

    pub fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }
}
