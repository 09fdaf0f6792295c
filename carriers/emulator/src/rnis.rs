//! Publishes the cells that are played, live, as the lines of `ranpace_rnis::lines` on a Unix socket: for `ranpace rnis serve`, and for
//! any other reader.
//!
//! The loop passes updates through a bounded queue to a thread, which writes a line to every reader. Neither the thread nor a slow
//! reader delays the loop: what does not fit is left out, counted, and the reader is told so (`missed`). Slots are left out first;
//! the rest of the queue is kept for what is rare. A reader that comes later is told of cells, users and where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use ranpace_network::{Transit, Updates};
use ranpace_rnis::lines::{LineClock, Writer};
use ranpace_rnis::update::Update;
use ranpace_rnis::{AssociateId, Event, EventKind, IdType};

use crate::addresses::{v4, v6};
use crate::topology::Topology;

/// Updates that wait for the thread: two seconds of two cells. Ours.
const WAITING: usize = 1 << 12;
/// Slots take at most this many of these.
const SLOTS: usize = WAITING - 512;
/// Bytes that wait for a reader; beyond that, slots are left out for it. Ours: half a second of a cell with 100 users.
const BEHIND: usize = 1 << 22;
/// A reader that does not even read what is rare is dropped at twice as much.
const DEAD: usize = 2 * BEHIND;
/// Most readers at a time. Ours.
const READERS: usize = 16;
/// New readers are looked for this often. Ours.
const LOOK: Duration = Duration::from_millis(10);

/// Publishes the lines of an emulation to readers of a Unix socket.
pub struct RadioPublisher {
    updates: SyncSender<Update>,
    slots: Arc<AtomicUsize>,
    left_out: u64,
    began: Arc<AtomicU64>,
}

/// The thread that writes.
pub struct RadioServer {
    thread: JoinHandle<u64>,
    path: PathBuf,
}

/// Listens at a path. A socket that a dead emulation has left there is replaced.
pub fn publish_at(path: &Path) -> io::Result<(RadioPublisher, RadioServer)> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    let (sender, updates) = mpsc::sync_channel(WAITING);
    let (slots, began) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
    let (taken, origin) = (Arc::clone(&slots), Arc::clone(&began));
    let thread = thread::spawn(move || serve(&listener, &updates, &taken, &origin));
    let publisher = RadioPublisher { updates: sender, slots, left_out: 0, began };
    Ok((publisher, RadioServer { thread, path: path.to_owned() }))
}

impl RadioPublisher {
    /// Describes cells and users. Call before the first update.
    pub fn describe<C: Copy + Default>(&mut self, topology: &Topology, network: &Transit<'_, C>) {
        let ids = |user: u32| {
            let host = topology.scenario.users.get(user as usize).map(|user| user.host);
            let Some(place) = topology.hosts.iter().position(|at| Some(*at) == host) else {
                return Vec::new();
            };
            let id = |id_type, value: String| AssociateId { id_type, value };
            vec![id(IdType::UeIpv4, v4(place).to_string()), id(IdType::UeIpv6, v6(place).to_string())]
        };
        network.describe(&ids).into_iter().for_each(|update| self.send(update));
    }

    /// Sets time zero.
    pub fn origin(&self) -> Origin {
        Origin(Arc::clone(&self.began))
    }

    /// Queues an update, if there is room.
    pub fn send(&mut self, update: Update) {
        let is_slot = matches!(update, Update::Slot(_));
        if is_slot && self.slots.load(Ordering::Relaxed) >= SLOTS {
            self.left_out += 1;
            return;
        }
        if is_slot {
            self.slots.fetch_add(1, Ordering::Relaxed);
        }
        if self.updates.try_send(update).is_err() {
            self.left_out += 1;
            if is_slot {
                self.slots.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Updates that were left out because the thread was too slow.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Time zero of an emulation.
pub struct Origin(Arc<AtomicU64>);

impl Origin {
    /// It is now.
    pub fn begin(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        self.0.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }
}

/// The reader of the network's reports.
pub fn reader(publisher: &mut RadioPublisher) -> Updates<impl FnMut(Update)> {
    Updates(move |update| publisher.send(update))
}

impl RadioServer {
    /// Waits until what is queued is written, and removes the socket. Returns the lines that were left out for slow readers. The
    /// publisher must have been dropped.
    pub fn finish(self) -> u64 {
        let left_out = self.thread.join().unwrap_or_default();
        // Somebody else may have removed it.
        let _ = fs::remove_file(&self.path);
        left_out
    }
}

/// A connected reader.
struct Client {
    stream: UnixStream,
    waiting: Vec<u8>,
    /// Lines left out since it was told last.
    missed: u64,
}

impl Client {
    /// Adds a line; false for a reader that is dead.
    fn add(&mut self, line: &[u8], is_slot: bool, left_out: &mut u64) -> bool {
        if is_slot && self.waiting.len() + line.len() > BEHIND {
            self.missed += 1;
            *left_out += 1;
            return true;
        }
        if self.missed > 0 && self.waiting.len() < BEHIND / 2 {
            Writer::default().missed(std::mem::take(&mut self.missed), &mut self.waiting);
        }
        self.waiting.extend_from_slice(line);
        self.waiting.len() <= DEAD
    }

    /// Writes what the socket takes; false if the reader has gone.
    fn flush(&mut self) -> bool {
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return false,
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// The state that a later reader must be told first.
#[derive(Default)]
struct Known {
    /// Cells and users, in the order in which they were described.
    described: Vec<Update>,
    /// The cell of each user, since when, and its bearers.
    served: BTreeMap<u32, (Event, BTreeSet<u8>)>,
}

impl Known {
    fn note(&mut self, update: &Update) {
        match update {
            Update::Cell(_) | Update::User(_) => self.described.push(update.clone()),
            Update::Event(event) => match event.kind {
                EventKind::Attached => drop(self.served.insert(event.user, (*event, BTreeSet::new()))),
                EventKind::Detached => drop(self.served.remove(&event.user)),
                EventKind::BearerSetUp { bearer } => {
                    if let Some((_, bearers)) = self.served.get_mut(&event.user) {
                        bearers.insert(bearer);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn write(&self, writer: &Writer, into: &mut Vec<u8>) {
        writer.stream(LineClock::Monotonic, into);
        self.described.iter().for_each(|update| writer.update(update, into));
        for (attached, bearers) in self.served.values() {
            writer.update(&Update::Event(*attached), into);
            for bearer in bearers {
                let kind = EventKind::BearerSetUp { bearer: *bearer };
                writer.update(&Update::Event(Event { kind, ..*attached }), into);
            }
        }
    }
}

/// Writes until the publisher is dropped; returns the lines left out for slow readers.
fn serve(listener: &UnixListener, updates: &Receiver<Update>, slots: &AtomicUsize, began: &AtomicU64) -> u64 {
    let (mut known, mut clients, mut left_out) = (Known::default(), Vec::<Client>::new(), 0);
    let mut line = Vec::new();
    let mut looked = std::time::Instant::now();
    loop {
        let next = match updates.recv_timeout(LOOK) {
            Ok(update) => Some(update),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let writer = Writer::new(began.load(Ordering::Acquire));
        for update in next.into_iter().chain(updates.try_iter().take(64)) {
            let is_slot = matches!(update, Update::Slot(_));
            if is_slot {
                slots.fetch_sub(1, Ordering::Relaxed);
            }
            known.note(&update);
            if clients.is_empty() {
                continue;
            }
            line.clear();
            writer.update(&update, &mut line);
            clients.retain_mut(|client| client.add(&line, is_slot, &mut left_out));
        }
        clients.retain_mut(Client::flush);
        // Times are known once the emulation has begun.
        if looked.elapsed() >= LOOK && began.load(Ordering::Acquire) > 0 {
            looked = std::time::Instant::now();
            while clients.len() < READERS
                && let Ok((stream, _)) = listener.accept()
            {
                if stream.set_nonblocking(true).is_ok() {
                    let mut client = Client { stream, waiting: Vec::new(), missed: 0 };
                    known.write(&writer, &mut client.waiting);
                    clients.push(client);
                }
            }
        }
    }
    clients.retain_mut(Client::flush);
    left_out
}
