//! The feed's datagrams: each subscriber has its own users, period and key.
//!
//! A source's thread averages, encodes, seals and sends reports; a thread of this file has the rest of the exchange: hellos, requests, answers
//! and directories. They share a lock for each subscriber, which is held for the sealing of one message. The reports of a cell to one
//! subscriber go out with one call, cut into datagrams by the system (UDP_SEGMENT), where the system can do that.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use ranpace_rnis::feed::entries::Entry;
use ranpace_rnis::feed::message::{CLOCK_BYTES, Header, Kind};
use ranpace_rnis::feed::sender::{FeedSubscribers, Filter};
use ranpace_rnis::feed::session::{Due, Session};
use ranpace_rnis::feed::{KEY_BYTES, MOST_BODY_BYTES, MOST_BYTES};
use ranpace_rnis::shared_table::directory::Identity;
use ranpace_rnis::subscription::SubscriptionId;
use ranpace_units::Time;
use serde_json::{Map, Value, json};

use super::DatagramsConfig;
use crate::feed_port::{FeedRefused, FeedScope, FeedSubscription};
use crate::metrics::FeedMetrics;
use crate::seal::{Role, Seal, Secret, key_of, random, text_of};
use crate::source::{Cell, Update, User};
use crate::viewer::Viewer;
use crate::{clock, identity};

/// Longest wait of the thread for datagrams: how soon it sends what has become due.
const WAIT_MS: u64 = 20;
/// Most datagrams in one call, and most bytes: UDP_MAX_SEGMENTS of older kernels, and what fits one IP packet.
const MOST_SEGMENTS: usize = 64;
const MOST_AT_ONCE: usize = 65_000;
/// Directories in which a user that is not covered any more is said to be gone.
const FAREWELLS: u8 = 3;
/// Most subscriptions to one address that has not answered the invitation to any of them: anybody may name any address. Ours.
const MOST_UNANSWERED: usize = 32;
/// Bytes of the system's buffers: what a second of a busy feed has.
const BUFFER: usize = 4 << 20;

/// A subscription.
struct Stream {
    id: SubscriptionId,
    number: u32,
    key: [u8; KEY_BYTES],
    secret: Secret,
    seal: Seal,
    state: Mutex<StreamState>,
}

struct StreamState {
    session: Session,
    destination: SocketAddr,
    viewer: Viewer,
    scope: FeedScope,
    /// Key of the subscriber's present epoch.
    requester: Option<(u64, Seal)>,
    /// Users that are not covered any more, and how often that will be said.
    gone: BTreeMap<u16, u8>,
    /// Reports begin with full ones.
    begins: bool,
}

/// What the source's threads and the other one share.
struct Shared {
    socket: UdpSocket,
    address: SocketAddr,
    clock: [u8; CLOCK_BYTES],
    /// By number.
    streams: Mutex<HashMap<u32, Arc<Stream>>>,
    /// Cells and users, for directories.
    known: Mutex<Known>,
    /// The system cuts datagrams.
    segments: AtomicBool,
    metrics: FeedMetrics,
    stop: AtomicBool,
}

#[derive(Default)]
struct Known {
    cells: BTreeMap<u16, Cell>,
    users: BTreeMap<u32, User>,
}

/// A batch of sealed datagrams of one subscriber, all of one size but the last.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Bytes of each.
    size: usize,
    count: usize,
}

/// Sends datagrams.
pub struct Datagrams {
    shared: Arc<Shared>,
    subscribers: FeedSubscribers,
    /// In the order of `SubscriptionId`, with what is to be sent to each.
    batches: BTreeMap<SubscriptionId, (Arc<Stream>, Batch)>,
    most: usize,
    periods: usize,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a thread that panicked left is consistent: every change is made of complete steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time now. The clock was read when the feed was opened, so that it is there.
fn now() -> Time {
    clock::now().unwrap_or(Time::ZERO)
}

impl Datagrams {
    /// Opens the socket, and begins to answer.
    pub fn open(config: DatagramsConfig, metrics: FeedMetrics) -> Result<Self, String> {
        let DatagramsConfig { listen, most, periods } = config;
        let failed = |error: io::Error| format!("{listen}: {error}");
        clock::now().map_err(|error| error.to_string())?;
        let socket = UdpSocket::bind(listen).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        // The system's bound may be less than that, which is then what there is.
        let _ = nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::SndBuf, &BUFFER);
        let clock = clock::identity().map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared {
            socket,
            address,
            clock,
            streams: Mutex::default(),
            known: Mutex::default(),
            segments: AtomicBool::new(true),
            metrics,
            stop: AtomicBool::new(false),
        });
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("feed".to_owned()).spawn(move || shared.run())
        };
        let thread = Some(thread.map_err(failed)?);
        tracing::info!(%address, "the feed sends datagrams");
        let subscribers = FeedSubscribers::new();
        Ok(Self { shared, subscribers, batches: BTreeMap::new(), most, periods, thread })
    }

    /// The subscription of this number.
    fn stream(&self, id: u64) -> Option<Arc<Stream>> {
        lock(&self.shared.streams).get(&u32::try_from(id).ok()?).cloned()
    }

    /// Opens a subscription, or changes it.
    pub fn subscribe(
        &mut self,
        of: &FeedSubscription,
        previous: Option<&Map<String, Value>>,
    ) -> Result<Map<String, Value>, FeedRefused> {
        let destination = self.shared.reachable(of.destination.ok_or(FeedRefused::NoDestination)?)?;
        let (is_there, count) = self.subscribers.periods(of.period);
        let known = self.stream(of.id);
        if !is_there && count >= self.periods {
            return Err(FeedRefused::TooManyPeriods(self.periods));
        }
        if known.is_none() && self.batches.len() >= self.most {
            return Err(FeedRefused::TooMany(self.most));
        }
        // After a restart of the server nobody has answered yet.
        if previous.is_none() || known.is_some() {
            let unanswered = self.batches.values().filter(|(stream, _)| {
                let state = lock(&stream.state);
                u64::from(stream.number) != of.id
                    && state.destination.ip() == destination.ip()
                    && !state.session.is_answered()
            });
            if unanswered.count() >= MOST_UNANSWERED {
                return Err(FeedRefused::Unanswered { to: destination, most: MOST_UNANSWERED });
            }
        }
        let cookie = random_number()?;
        let filter = Filter {
            users: of.scope.users.clone(),
            cells: sorted(of.scope.cells.clone()),
            direction: of.direction,
            period: of.period,
            delta: of.delta,
        };
        let now = now();
        let (number, key) = match known {
            Some(known) => {
                self.subscribers.replace(known.id, filter, of.expires);
                let mut state = lock(&known.state);
                state.session.set_period(of.period);
                if state.destination == destination {
                    state.session.invite(now);
                } else {
                    state.session.readdress(now, cookie);
                }
                (state.destination, state.viewer) = (destination, of.viewer.clone());
                state.cover(&of.scope, now);
                (known.number, known.key)
            }
            None => {
                let system = |error: &dyn std::fmt::Display| FeedRefused::System(error.to_string());
                let number = u32::try_from(of.id).map_err(|error| system(&error))?;
                let before = previous.and_then(|all| key_of(all.get("key")?.as_str()?));
                let key = before.map_or_else(random, Ok).map_err(|error| system(&error))?;
                let epoch = random_number()?;
                let secret = Secret::new(&key);
                let seal = secret.seal(Role::Server, number, epoch);
                let seal = seal.ok_or_else(|| system(&"a key could not be derived"))?;
                let id = self.subscribers.subscribe(filter, of.expires);
                let state = StreamState {
                    session: Session::new(epoch, number, of.period, now, cookie),
                    destination,
                    viewer: of.viewer.clone(),
                    scope: of.scope.clone(),
                    requester: None,
                    gone: BTreeMap::new(),
                    begins: false,
                };
                let state = Mutex::new(state);
                let stream = Arc::new(Stream { id, number, key, secret, seal, state });
                lock(&self.shared.streams).insert(number, Arc::clone(&stream));
                self.batches.insert(id, (stream, Batch::default()));
                self.shared.metrics.subscriptions.inc();
                (number, key)
            }
        };
        Ok(Map::from_iter([
            ("transport".to_owned(), json!("udp-binary")),
            ("stream".to_owned(), json!(number)),
            ("key".to_owned(), json!(text_of(&key))),
            ("from".to_owned(), json!(self.shared.address.to_string())),
        ]))
    }

    /// The users or cells of a subscription have changed.
    pub fn rescope(&mut self, id: u64, scope: &FeedScope) {
        let Some(stream) = self.stream(id) else { return };
        let cells = sorted(scope.cells.clone());
        if self.subscribers.set_scope(stream.id, scope.users.clone(), cells) {
            lock(&stream.state).cover(scope, now());
        }
    }

    /// A subscription has ended.
    pub fn close(&mut self, id: u64) {
        let Ok(number) = u32::try_from(id) else { return };
        let Some(stream) = lock(&self.shared.streams).remove(&number) else { return };
        self.subscribers.cancel(stream.id);
        self.batches.remove(&stream.id);
        self.shared.metrics.subscriptions.dec();
    }

    /// News of a source.
    pub fn on_update(&mut self, update: &Update) {
        match update {
            Update::Cell(cell) => {
                lock(&self.shared.known).cells.insert(cell.info.cell, cell.clone());
                self.changed();
            }
            Update::User(user) => {
                lock(&self.shared.known).users.insert(user.user, user.clone());
                self.changed();
            }
            Update::Event(event) => self.subscribers.on_event(event),
            Update::Slot(slot) => {
                let now = now();
                let Self { subscribers, batches, shared, .. } = self;
                for (stream, _) in batches.values() {
                    if std::mem::take(&mut lock(&stream.state).begins) {
                        subscribers.request_full(stream.id);
                    }
                }
                subscribers.on_report(&slot.report(), MOST_BODY_BYTES, &mut |outgoing| {
                    let uplink = outgoing.direction == ranpace_phy::Direction::Uplink;
                    for id in outgoing.to {
                        let Some((stream, batch)) = batches.get_mut(id) else { continue };
                        let mut state = lock(&stream.state);
                        if state.session.is_served(now) {
                            let header = state.session.next_header(Kind::Report, uplink);
                            drop(state);
                            let before = batch.bytes.len();
                            stream.seal.close(&header, outgoing.bytes, &mut batch.bytes);
                            batch.size = batch.size.max(batch.bytes.len() - before);
                            batch.count += 1;
                        }
                    }
                });
                for (stream, batch) in batches.values_mut().filter(|(_, batch)| batch.count > 0) {
                    let to = lock(&stream.state).destination;
                    shared.send(batch, to);
                }
            }
            _ => {}
        }
    }

    /// What directories contain has changed.
    fn changed(&self) {
        let now = now();
        for (stream, _) in self.batches.values() {
            lock(&stream.state).session.request_directory(now);
        }
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the feed panicked");
        }
    }
}

fn sorted(cells: Option<Vec<u16>>) -> Option<Vec<u16>> {
    cells.map(|mut cells| {
        cells.sort_unstable();
        cells
    })
}

fn random_number() -> Result<u64, FeedRefused> {
    let bytes = random().map_err(|error| FeedRefused::System(error.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}

impl StreamState {
    /// Covers other users or cells than before.
    fn cover(&mut self, scope: &FeedScope, now: Time) {
        if self.scope == *scope {
            return;
        }
        let before = self.scope.users.take().unwrap_or_default();
        let has = |user: &u32| scope.users.as_ref().is_none_or(|users| users.binary_search(user).is_ok());
        let numbers = |user: u32| u16::try_from(user).ok();
        for user in before.into_iter().filter(|user| !has(user)).filter_map(numbers) {
            self.gone.insert(user, FAREWELLS);
        }
        self.gone.retain(|user, _| !has(&u32::from(*user)));
        self.scope = scope.clone();
        self.session.request_directory(now);
    }
}

impl Shared {
    /// An address as this socket writes it.
    fn reachable(&self, to: SocketAddr) -> Result<SocketAddr, FeedRefused> {
        match (self.address.ip(), to.ip()) {
            (IpAddr::V6(from), IpAddr::V4(ip)) if from.is_unspecified() => {
                Ok(SocketAddr::new(ip.to_ipv6_mapped().into(), to.port()))
            }
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => Ok(to),
            _ => Err(FeedRefused::Unreachable { from: self.address, to }),
        }
    }

    /// Sends a batch, and empties it.
    fn send(&self, batch: &mut Batch, to: SocketAddr) {
        let per_call = if self.segments.load(Ordering::Relaxed) {
            (MOST_AT_ONCE / batch.size.max(1)).clamp(1, MOST_SEGMENTS)
        } else {
            1
        };
        let mut rest = &batch.bytes[..];
        while !rest.is_empty() {
            let (now, behind) = rest.split_at(rest.len().min(per_call * batch.size));
            match self.send_at_once(now, batch.size, to) {
                Ok(()) => {
                    self.metrics.datagrams.inc_by(now.len().div_ceil(batch.size) as u64);
                    self.metrics.bytes.inc_by(now.len() as u64);
                }
                // The interface has no checksums to be left to it, or the kernel is older than 4.18: one by one.
                Err(Errno::EIO | Errno::EINVAL) if now.len() > batch.size => {
                    self.segments.store(false, Ordering::Relaxed);
                    for datagram in now.chunks(batch.size) {
                        self.send_one(datagram, to);
                    }
                }
                // The next report is newer.
                Err(_) => {
                    self.metrics.unsent.inc_by(now.len().div_ceil(batch.size) as u64);
                }
            }
            rest = behind;
        }
        batch.bytes.clear();
        (batch.size, batch.count) = (0, 0);
    }

    /// Sends datagrams of one size, of which the last may be shorter, with one call.
    fn send_at_once(&self, bytes: &[u8], size: usize, to: SocketAddr) -> Result<(), Errno> {
        let to = SockaddrStorage::from(to);
        let slices = [IoSlice::new(bytes)];
        // At most MOST_BYTES.
        let segment = size as u16;
        let segments = [ControlMessage::UdpGsoSegments(&segment)];
        let control: &[ControlMessage<'_>] = if bytes.len() > size { &segments } else { &[] };
        sendmsg(self.socket.as_raw_fd(), &slices, control, MsgFlags::MSG_DONTWAIT, Some(&to)).map(drop)
    }

    fn send_one(&self, datagram: &[u8], to: SocketAddr) {
        match self.send_at_once(datagram, datagram.len(), to) {
            Ok(()) => {
                self.metrics.datagrams.inc();
                self.metrics.bytes.inc_by(datagram.len() as u64);
            }
            Err(_) => drop(self.metrics.unsent.inc()),
        }
    }

    /// The thread: requests are answered, and what is due is sent.
    fn run(&self) {
        let mut buffer = [0; MOST_BYTES + 1];
        let mut next = Time::ZERO;
        while !self.stop.load(Ordering::Relaxed) {
            let now = now();
            let left = next.checked_since(now).map_or(0, |left| left.as_nanos().div_ceil(1_000_000));
            let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            let wait = PollTimeout::from(left.min(WAIT_MS) as u16);
            if let Err(error) = poll(&mut fds, wait)
                && error != Errno::EINTR
            {
                tracing::error!(%error, "the feed's socket failed: nobody's requests are answered any more");
                return;
            }
            while let Ok((length, _)) = self.socket.recv_from(&mut buffer) {
                if !self.on_datagram(&mut buffer[..length]) {
                    self.metrics.refused.inc();
                }
                // What is due is not kept waiting by a flood.
                if self::now() >= next {
                    break;
                }
            }
            next = self.send_due();
        }
    }

    /// A datagram has come; false if it is no request of a subscriber.
    fn on_datagram(&self, datagram: &mut [u8]) -> bool {
        let Ok(header) = Header::parse(datagram) else { return false };
        let Some(stream) = lock(&self.streams).get(&header.stream).cloned() else { return false };
        let mut state = lock(&stream.state);
        if state.session.admit(&header).is_err() {
            return false;
        }
        let known = state.requester.take().filter(|(epoch, _)| *epoch == header.epoch);
        let seal = match known {
            Some((_, seal)) => Some(seal),
            None => stream.secret.seal(Role::Subscriber, stream.number, header.epoch),
        };
        let Some(seal) = seal else { return false };
        let Some(body) = seal.open(&header, datagram) else { return false };
        let now = now();
        let Ok((mut answer, begins)) = state.session.on_request(&header, body, now, self.clock) else {
            return false;
        };
        state.requester = Some((header.epoch, seal));
        state.begins |= begins;
        let (header, to) = (state.session.next_header(Kind::Answer, false), state.destination);
        drop(state);
        answer.answered = self::now();
        let (mut body, mut message) = (Vec::new(), Vec::new());
        answer.write(&mut body);
        stream.seal.close(&header, &body, &mut message);
        self.send_one(&message, to);
        true
    }

    /// Sends hellos and directories that are due; when to look again.
    fn send_due(&self) -> Time {
        let now = now();
        let streams: Vec<Arc<Stream>> = lock(&self.streams).values().cloned().collect();
        let mut next = Time::MAX;
        let mut served = 0;
        for stream in streams {
            let mut state = lock(&stream.state);
            served += i64::from(state.session.is_served(now));
            let mut cookie = || random().ok().map(u64::from_le_bytes);
            while let Some(due) = state.session.poll(now, &mut cookie) {
                let bodies = match due {
                    Due::Hello(hello) => {
                        let mut body = Vec::new();
                        hello.write(&mut body);
                        vec![(Kind::Hello, body)]
                    }
                    Due::Directory => self.directory(&mut state),
                };
                for (kind, body) in bodies {
                    let header = state.session.next_header(kind, false);
                    let mut message = Vec::new();
                    stream.seal.close(&header, &body, &mut message);
                    self.send_one(&message, state.destination);
                }
            }
            next = next.min(state.session.next_deadline());
        }
        self.metrics.served.set(served);
        next
    }

    /// Bodies with all that a subscription covers.
    fn directory(&self, state: &mut StreamState) -> Vec<(Kind, Vec<u8>)> {
        let (mut bodies, mut body, mut entry) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |one: &Entry| {
            entry.clear();
            one.write(&mut entry);
            if body.len() + entry.len() > MOST_BODY_BYTES {
                bodies.push((Kind::Directory, std::mem::take(&mut body)));
            }
            body.extend_from_slice(&entry);
        };
        let known = lock(&self.known);
        let StreamState { scope, viewer, gone, .. } = state;
        for cell in known.cells.values() {
            if scope.cells.as_ref().is_none_or(|cells| cells.contains(&cell.info.cell)) {
                let plmn = &cell.ecgi.plmn;
                let identity = format!("{}-{}-{}", plmn.mcc, plmn.mnc, cell.ecgi.cell_id);
                add(&Entry::Cell { info: cell.info, identity });
            }
        }
        for user in known.users.values() {
            let is_covered = scope.users.as_ref().is_none_or(|users| users.binary_search(&user.user).is_ok());
            let (Ok(number), true) = (u16::try_from(user.user), is_covered) else { continue };
            let Some(ids) = viewer.visible(&user.ids) else { continue };
            let addresses = ids.iter().filter_map(identity::address).collect();
            // A name is for people; whoever may not see all identifiers of a user gets none.
            let name = if *viewer == Viewer::default() { user.name.clone() } else { String::new() };
            add(&Entry::User { user: number, identity: Identity { name, addresses } });
        }
        for user in gone.keys() {
            add(&Entry::User { user: *user, identity: Identity::default() });
        }
        gone.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
        if !body.is_empty() {
            bodies.push((Kind::Directory, body));
        }
        bodies
    }
}
