//! The shared table in a file, which processes of this host map: one writer, any number of readers.
//!
//! The file has the words of [`shared_table`](ranpace_rnis::shared_table), and behind them those of its
//! [`directory`], in the byte order of the host. Place it in `/dev/shm` or `/run`, which are in
//! memory.
//!
//! - **One writer.** A writer locks `FILE.lock`, which nobody else can open: readers cannot keep it. The kernel releases the lock
//!   when the writer ends, however it ends.
//! - **After a crash** the file stays. A new writer of the same size continues in it under the next generation, and readers go on
//!   reading; of another size, it takes the mark off the old file and puts a new one in its place. Until then readers see the values
//!   age.
//! - **At its end** a writer takes the mark off and removes the file. Readers find that in [`TableReader::refresh`].
//! - **Who may write.** Readers refuse a file that is not root's or their own, or that others may write, because whoever can make it
//!   shorter can end its readers (SIGBUS).

use std::collections::HashMap;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use nix::fcntl::{FallocateFlags, Flock, FlockArg, OFlag, fallocate};
use nix::unistd::geteuid;
use ranpace_phy::Direction;
use ranpace_rnis::shared_table::directory::{self, Directory};
use ranpace_rnis::shared_table::{LAST_SLOT, SharedTable, SharedTableError, Size, Writer, WriterState};
use ranpace_rnis::{Event, RadioHint, SlotReport};
use ranpace_rnisd_mapping::{Readable, Writable};
use ranpace_units::Time;

use crate::identity;
use crate::source::{Update, User};

/// Most bytes of a file: half a million users with the longest history.
const MOST_BYTES: u64 = 1 << 33;

/// Why a table cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The system refused something.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// Another writer has it.
    #[error("{path}: another server writes this table; end it, or choose another file")]
    InUse {
        /// The file.
        path: String,
    },
    /// It must not be used.
    #[error("{path}: expected {expected}, found {found}; remove it, or choose another file")]
    Unsafe {
        /// The file.
        path: String,
        /// What a table's file is.
        expected: &'static str,
        /// What this one is.
        found: String,
    },
    /// It is no table, or one of another version.
    #[error("{path}: {error}")]
    Content {
        /// The file.
        path: String,
        /// What is wrong with it.
        #[source]
        error: SharedTableError,
    },
}

/// Names the file in an error.
struct At<'a>(&'a Path);

impl At<'_> {
    fn name(&self) -> String {
        self.0.display().to_string()
    }
    fn io(&self, error: impl Into<io::Error>) -> TableError {
        TableError::Io { path: self.name(), error: error.into() }
    }
    fn content(&self, error: SharedTableError) -> TableError {
        TableError::Content { path: self.name(), error }
    }
    fn not_safe(&self, expected: &'static str, found: impl ToString) -> TableError {
        TableError::Unsafe { path: self.name(), expected, found: found.to_string() }
    }
}

/// The words of a file with a table of this size.
fn words(size: Size) -> Result<(usize, usize), SharedTableError> {
    let bad = SharedTableError::BadSize { size };
    let of_table = size.words().ok_or(bad)?;
    let of_directory = directory::words(size.users).ok_or(bad)?;
    let all = of_table.checked_add(of_directory).filter(|all| (*all as u64) < MOST_BYTES / 8).ok_or(bad)?;
    Ok((of_table, all))
}

/// Writes a table into a file.
#[derive(Debug)]
pub struct TableWriter {
    path: PathBuf,
    mapping: Writable,
    /// Words of the table, without the directory.
    of_table: usize,
    size: Size,
    /// Always there, but while it writes.
    state: Option<WriterState>,
    /// Held until the end.
    _lock: Flock<File>,
}

impl TableWriter {
    /// Creates the file, or continues in it. `mode` is its permission, such as 0o640: only the owner may write.
    ///
    /// # Errors
    ///
    /// Another writer has it, it is a file of somebody else, there is no memory, or the size is invalid.
    pub fn create(path: &Path, size: Size, mode: u32) -> Result<Self, TableError> {
        let at = At(path);
        if mode & !0o644 != 0 || mode & 0o600 != 0o600 {
            return Err(at.not_safe(
                "permissions within 0644 that let the owner read and write",
                format!("{mode:04o}"),
            ));
        }
        let (of_table, all) = words(size).map_err(|error| at.content(error))?;
        let lock = lock(path)?;
        let bytes = all as u64 * 8;
        let old = owned(path)?;
        let (file, replaced) = match old {
            Some(file) if file.metadata().map_err(|error| at.io(error))?.len() == bytes => (file, None),
            other => (new_file(path, bytes)?, other),
        };
        let mapping = Writable::of(&file).map_err(|error| at.io(error))?;
        if let Some(old) = &replaced {
            succeed(old, mapping.words());
        }
        let (table, rest) = mapping.words().split_at(of_table);
        let state = Writer::new(table, size).map_err(|error| at.content(error))?.into_state();
        directory::Writer::new(rest, size.users).map_err(|error| at.content(error))?;
        file.set_permissions(Permissions::from_mode(mode)).map_err(|error| at.io(error))?;
        if mapping_is_new(path, &file).map_err(|error| at.io(error))? {
            fs::rename(beside(path, "new"), path).map_err(|error| at.io(error))?;
        }
        if let Some(old) = replaced.and_then(|old| Writable::of(&old).ok()) {
            Writer::retire(old.words());
        }
        Ok(Self { path: path.to_owned(), mapping, of_table, size, state: Some(state), _lock: lock })
    }

    /// Its capacity.
    pub fn size(&self) -> Size {
        self.size
    }

    fn write(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let table = &self.mapping.words()[..self.of_table];
        // Both are always there: a writer's state fits the words that it was created with.
        if let Some(mut writer) = self.state.take().and_then(|state| Writer::resume(table, state).ok()) {
            write(&mut writer);
            self.state = Some(writer.into_state());
        }
    }

    /// A slot has ended. Cells and users outside the table's size are left out. Readers that wait are woken.
    pub fn on_report(&mut self, report: &SlotReport<'_>) {
        self.write(|writer| writer.on_report(report));
        self.mapping.wake(LAST_SLOT);
    }

    /// Something happened to a user.
    pub fn on_event(&mut self, event: &Event) {
        self.write(|writer| writer.on_event(event));
    }

    /// A user's name and addresses. False if its number is outside the table.
    pub fn on_user(&mut self, user: &User) -> bool {
        let words = &self.mapping.words()[self.of_table..];
        directory::Writer::resume(words, self.size.users)
            .is_ok_and(|mut directory| directory.set(user.user, Some(&identity::of(user))))
    }

    /// News of a source, with the server's numbers. What the table does not hold is ignored.
    pub fn on_update(&mut self, update: &Update) {
        match update {
            Update::Slot(slot) => self.on_report(&slot.report()),
            Update::Event(event) => self.on_event(event),
            Update::User(user) => {
                self.on_user(user);
            }
            _ => {}
        }
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        Writer::retire(self.mapping.words());
        // What cannot be removed has no mark, so nobody reads it.
        let _ = fs::remove_file(&self.path);
    }
}

/// The path with something behind its name.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

/// Makes sure that there is no other writer.
fn lock(path: &Path) -> Result<Flock<File>, TableError> {
    let name = beside(path, "lock");
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(&name)
        .map_err(|error| At(&name).io(error))?;
    let metadata = file.metadata().map_err(|error| At(&name).io(error))?;
    if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        // Who can open it could hold the lock.
        let found = format!("owner {}, mode {:04o}", metadata.uid(), metadata.mode() & 0o7777);
        return Err(At(&name).not_safe("a lock of this user that nobody else can open", found));
    }
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        nix::errno::Errno::EWOULDBLOCK => TableError::InUse { path: path.display().to_string() },
        error => At(&name).io(error),
    })
}

/// The file that is there, if this user may continue in it.
fn owned(path: &Path) -> Result<Option<File>, TableError> {
    let at = At(path);
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = match File::options().read(true).write(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at.io(error)),
    };
    let metadata = file.metadata().map_err(|error| at.io(error))?;
    let found =
        || format!("owner {}, mode {:06o}, {} links", metadata.uid(), metadata.mode(), metadata.nlink());
    let is_ours =
        metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o022 == 0 && metadata.nlink() == 1;
    if !metadata.is_file() || !is_ours {
        return Err(at.not_safe("a file of this user alone", found()));
    }
    Ok(Some(file))
}

/// A new file beside it, which nobody else can open yet.
fn new_file(path: &Path, bytes: u64) -> Result<File, TableError> {
    let name = beside(path, "new");
    let at = At(&name);
    match fs::remove_file(&name) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(at.io(error)),
        _ => {}
    }
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&name)
        .map_err(|error| at.io(error))?;
    // Without memory behind it, writing to the mapping would end the process.
    let length = i64::try_from(bytes).map_err(|error| at.io(io::Error::other(error)))?;
    fallocate(&file, FallocateFlags::empty(), 0, length).map_err(|error| {
        // It was created here.
        let _ = fs::remove_file(&name);
        at.io(error)
    })?;
    Ok(file)
}

/// Whether this file is not yet the one at `path`.
fn mapping_is_new(path: &Path, file: &File) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) != (own.dev(), own.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Has a new table continue the generations of an old one.
fn succeed(old: &File, words: &[AtomicU64]) {
    use std::sync::atomic::Ordering::Relaxed;
    let Ok(old) = Readable::of(old) else { return };
    for place in [0, 3] {
        if let (Some(from), Some(to)) = (old.words().get(place), words.get(place)) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
}

/// Reads the table of a file.
#[derive(Debug)]
pub struct TableReader {
    path: PathBuf,
    mapping: Readable,
    of_table: usize,
    changes: Option<u64>,
    by_address: HashMap<IpAddr, u32>,
    by_name: HashMap<String, u32>,
}

impl TableReader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// There is none, it is not safe to read, or it is no table.
    pub fn open(path: &Path) -> Result<Self, TableError> {
        let at = At(path);
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let file = File::options().read(true).custom_flags(flags).open(path).map_err(|error| at.io(error))?;
        let metadata = file.metadata().map_err(|error| at.io(error))?;
        if !metadata.is_file() {
            return Err(at.not_safe("a file", format!("mode {:06o}", metadata.mode())));
        }
        if ![0, geteuid().as_raw()].contains(&metadata.uid()) || metadata.mode() & 0o022 != 0 {
            let found = format!("owner {}, mode {:04o}", metadata.uid(), metadata.mode() & 0o7777);
            return Err(at.not_safe("a file of root's or of this user's that nobody else may write", found));
        }
        if metadata.len() > MOST_BYTES {
            return Err(at.not_safe("at most 8 GiB", format!("{} bytes", metadata.len())));
        }
        let mapping = Readable::of(&file).map_err(|error| at.io(error))?;
        let table = SharedTable::open(mapping.words()).map_err(|error| at.content(error))?;
        let of_table = words(table.size()).map_err(|error| at.content(error))?.0;
        Directory::open(&mapping.words()[of_table..]).map_err(|error| at.content(error))?;
        let (by_address, by_name) = (HashMap::new(), HashMap::new());
        Ok(Self { path: path.to_owned(), mapping, of_table, changes: None, by_address, by_name })
    }

    /// Opens the file again, if its writer has ended or replaced it. Returns whether it did.
    ///
    /// # Errors
    ///
    /// As [`Self::open`]: perhaps there is no writer yet. The values read until then stay as they are.
    pub fn refresh(&mut self) -> Result<bool, TableError> {
        if self.table().is_some_and(|table| table.is_current()) {
            return Ok(false);
        }
        *self = Self::open(&self.path)?;
        Ok(true)
    }

    /// Waits for a slot later than the one at `seen` ([`SharedTable::last_slot_at`]), but not longer than `at_most`. It may return too
    /// early.
    ///
    /// # Errors
    ///
    /// The system cannot wait.
    pub fn wait(&self, seen: Time, at_most: Duration) -> Result<(), TableError> {
        self.mapping.wait(LAST_SLOT, seen.as_nanos(), at_most).map_err(|error| At(&self.path).io(error))
    }

    /// The table; `None` once its writer has ended or replaced it: [`Self::refresh`].
    pub fn table(&self) -> Option<SharedTable<'_>> {
        SharedTable::open(&self.mapping.words()[..self.of_table]).ok()
    }

    /// The directory of its users; `None` while a new writer creates it.
    pub fn directory(&self) -> Option<Directory<'_>> {
        Directory::open(&self.mapping.words()[self.of_table..]).ok()
    }

    /// Reads the directory again, if it has changed.
    fn look_up(&mut self) {
        let Some(changes) = self.directory().map(|directory| directory.changes()) else { return };
        if self.changes == Some(changes) {
            return;
        }
        let (mut by_address, mut by_name) = (HashMap::new(), HashMap::new());
        for (user, of) in self.directory().iter().flat_map(Directory::users) {
            by_address.extend(of.addresses.iter().map(|address| (identity::ip(address), user)));
            by_name.insert(of.name, user);
        }
        (self.by_address, self.by_name, self.changes) = (by_address, by_name, Some(changes));
    }

    /// The number of the user with this address.
    pub fn user_at(&mut self, address: IpAddr) -> Option<u32> {
        self.look_up();
        self.by_address.get(&address.to_canonical()).copied()
    }

    /// The number of the user of this name.
    pub fn user_named(&mut self, name: &str) -> Option<u32> {
        self.look_up();
        self.by_name.get(name).copied()
    }

    /// The hint about a user, as [`SharedTable::hint`]; `None` also if its cell is described as none can be.
    pub fn hint(&self, user: u32, direction: Direction, ttis: u64) -> Option<RadioHint> {
        self.table()?.hint(user, direction, ttis).filter(|hint| hint.info.is_plausible())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use ranpace_phy::{Both, Cqi, LteBandwidth};
    use ranpace_rnis::etsi::{AssociateId, IdType};
    use ranpace_rnis::{CellInfo, LinkReport, UserReport};
    use ranpace_units::Bytes;

    use super::*;

    const SIZE: Size = Size { cells: 2, users: 8, history: 16 };

    fn slot(writer: &mut TableWriter, slot: u64, user: u32, queue: u64) {
        let cell = CellInfo::lte(1, LteBandwidth::Mhz10);
        let link = LinkReport { queue: Bytes::new(queue), ..LinkReport::default() };
        let link = Both { downlink: link, uplink: link };
        let row = UserReport { user, rnti: 1, cqi: Cqi::MAX, cqi_time: Time::ZERO, capacity: 1.0, link };
        writer.on_report(&SlotReport {
            cell: &cell,
            slot,
            time: Time::from_millis(slot),
            symbols: Both::of(|_| 14),
            used_prbs: Both::default(),
            active_users: Both::default(),
            users: &[row],
            bearers: &[],
            full: true,
        });
    }

    fn user(number: u32, name: &str, address: &str) -> User {
        let ids = vec![AssociateId { id_type: IdType::UeIpv4, value: address.to_owned() }];
        User { user: number, name: name.to_owned(), ids }
    }

    fn queue(reader: &TableReader, user: u32) -> Option<u64> {
        Some(reader.hint(user, Direction::Downlink, 8)?.queue.get())
    }

    #[test]
    fn users_are_found_by_address_and_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table");
        let mut writer = TableWriter::create(&path, SIZE, 0o640).expect("a table");
        let mut reader = TableReader::open(&path).expect("it is there");
        assert!(
            writer.on_user(&user(3, "phone", "10.77.0.2")) && !writer.on_user(&user(8, "car", "10.77.0.3"))
        );
        slot(&mut writer, 5, 3, 700);
        let phone = reader.user_named("phone").expect("it is listed");
        assert_eq!(
            (phone, reader.user_at([10, 77, 0, 2].into()), reader.user_at([10, 77, 0, 3].into())),
            (3, Some(3), None)
        );
        assert_eq!(queue(&reader, phone), Some(700));
        writer.on_update(&Update::User(user(3, "phone", "10.77.0.9")));
        assert_eq!(
            (reader.user_at([10, 77, 0, 2].into()), reader.user_at([10, 77, 0, 9].into())),
            (None, Some(3))
        );
        let mode = fs::metadata(&path).expect("it is there").mode() & 0o777;
        assert_eq!(mode, 0o640);
        // The end of the writer shows, and a new one is found.
        drop(writer);
        assert!(reader.table().is_none() && reader.refresh().is_err() && !path.exists());
        let _writer = TableWriter::create(&path, SIZE, 0o600).expect("a table");
        assert!(reader.refresh().expect("it is there") && !reader.refresh().expect("it is there"));
    }

    #[test]
    fn there_is_one_writer() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table");
        let writer = TableWriter::create(&path, SIZE, 0o600).expect("a table");
        assert!(matches!(TableWriter::create(&path, SIZE, 0o600), Err(TableError::InUse { .. })));
        drop(writer);
        drop(TableWriter::create(&path, SIZE, 0o600).expect("the first is gone"));
    }

    #[test]
    fn a_new_writer_continues_after_a_crash() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table");
        let mut crashed = TableWriter::create(&path, SIZE, 0o600).expect("a table");
        slot(&mut crashed, 1, 3, 700);
        crashed.on_user(&user(3, "phone", "10.77.0.2"));
        let mut reader = TableReader::open(&path).expect("it is there");
        assert_eq!(reader.user_named("phone"), Some(3));
        let generation = reader.table().expect("a table").generation();
        // Its end without `drop`: the system closes its files.
        let kept = beside(&path, "kept");
        fs::hard_link(&path, &kept).expect("the same file system");
        let bytes = fs::read(&path).expect("it can be read");
        drop(crashed);
        fs::remove_file(&kept).expect("it is there");
        fs::write(&path, bytes).expect("as the crash left it");
        let mut reader = TableReader::open(&path).expect("what was there can be read");
        assert_eq!((queue(&reader, 3), reader.user_named("phone")), (Some(700), Some(3)));
        // The same size: readers go on, and see that it is another generation without users.
        let mut second = TableWriter::create(&path, SIZE, 0o600).expect("nobody writes it");
        assert_eq!(reader.table().expect("the same file").generation(), generation + 1);
        assert_eq!((queue(&reader, 3), reader.user_named("phone")), (None, None));
        slot(&mut second, 2, 3, 9);
        assert_eq!(queue(&reader, 3), Some(9));
        // Another size: the old file loses its mark.
        let bytes = fs::read(&path).expect("it can be read");
        drop(second);
        fs::write(&path, bytes).expect("as the crash left it");
        let mut reader = TableReader::open(&path).expect("what was there can be read");
        let larger = Size { users: 20, ..SIZE };
        let _third = TableWriter::create(&path, larger, 0o600).expect("nobody writes it");
        assert!(reader.table().is_none());
        assert!(reader.refresh().expect("it is there"));
        let table = reader.table().expect("the new one");
        assert_eq!((table.generation(), table.size()), (generation + 2, larger));
    }

    #[test]
    fn what_is_not_safe_or_no_table_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table");
        for mode in [0o666, 0o620, 0o400, 0o755, 0o4644] {
            assert!(
                matches!(TableWriter::create(&path, SIZE, mode), Err(TableError::Unsafe { .. })),
                "{mode:o}"
            );
        }
        let writer = TableWriter::create(&path, SIZE, 0o600).expect("a table");
        let good = fs::read(&path).expect("it can be read");
        drop(writer);
        let read = |what: &str, bytes: &[u8]| {
            fs::write(&path, bytes).expect("room");
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
            match TableReader::open(&path) {
                Ok(_) => panic!("{what}"),
                Err(error) => error.to_string(),
            }
        };
        assert!(read("nothing", &[]).contains("at least 8 bytes"));
        assert!(read("a word", b"#!/bin/sh").contains("begins with"));
        for length in [8, 64, good.len() / 2, good.len() - 8] {
            let error = read("cut off", &good[..length]);
            assert!(error.contains("words for it") || error.contains("begins with"), "{length}: {error}");
        }
        let mut larger = good.clone();
        larger[8..16].fill(0xff);
        assert!(read("as large as can be", &larger).contains("expected"));
        fs::write(&path, &good).expect("room");
        fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("it is ours");
        assert!(matches!(TableReader::open(&path), Err(TableError::Unsafe { .. })), "others may write it");
        assert!(matches!(TableWriter::create(&path, SIZE, 0o600), Err(TableError::Unsafe { .. })));
        // Links, folders and pipes.
        let link = folder.path().join("link");
        symlink(&path, &link).expect("room");
        assert!(TableReader::open(&link).is_err() && TableWriter::create(&link, SIZE, 0o600).is_err());
        assert!(TableReader::open(folder.path()).is_err());
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("room");
        assert!(TableReader::open(&pipe).is_err() && TableWriter::create(&pipe, SIZE, 0o600).is_err());
        // A lock that others can open.
        let other = folder.path().join("other");
        File::create(beside(&other, "lock")).and_then(|mut file| file.write_all(b"x")).expect("room");
        fs::set_permissions(beside(&other, "lock"), Permissions::from_mode(0o644)).expect("it is ours");
        assert!(matches!(TableWriter::create(&other, SIZE, 0o600), Err(TableError::Unsafe { .. })));
    }
}
