//! Lines of JSON from a socket, a pipe, a file or standard input: `docs/rnis-sources.md` describes them.
//!
//! What ends a connection is tried again until the source is stopped; a line that is too long is skipped without being kept. One
//! base station writes to one source: a listener takes the next connection when the one before has ended.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ranpace_rnis::lines::{LONGEST, LineClock, Reader};

use super::address::resolve;
use super::times::Times;
use super::{Address, Counters, PAUSE, RETRY, Source, SourceError, Update, wait};

/// Bytes read at once.
const CHUNK: usize = 1 << 16;
/// A growing file is looked at this often. Ours.
const GROWTH: Duration = Duration::from_millis(1);
/// While nobody has a pipe open for writing, it is looked at this often. Ours.
const WRITER: Duration = Duration::from_millis(5);
/// Longest time until a connection stands.
const CONNECT: Duration = Duration::from_millis(90);

/// A source of lines.
#[derive(Debug)]
pub struct Lines {
    address: Address,
    by_arrival: bool,
    counters: Arc<Counters>,
}

impl Lines {
    /// Lines from this address, with the times that they contain.
    pub fn new(address: Address) -> Self {
        Self { address, by_arrival: false, counters: Arc::default() }
    }

    /// Every line counts as measured when it arrives, whatever time it contains: for a base station whose clock is not set.
    #[must_use]
    pub fn by_arrival(mut self) -> Self {
        self.by_arrival = true;
        self
    }

    fn failed(&self, error: io::Error) -> SourceError {
        SourceError::Io { name: self.address.to_string(), error }
    }
}

/// What arrives, and what can be waited for.
trait Input: Read + AsFd {}

impl<T: Read + AsFd> Input for T {}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Stopped,
    Closed,
}

/// Splits what comes into lines and passes on what they say.
pub(super) struct LineReader<'a> {
    reader: Reader,
    times: Times,
    by_arrival: bool,
    counters: &'a Counters,
    /// A line's beginning.
    rest: Vec<u8>,
    /// Whether the rest of a line that is too long is skipped.
    skips: bool,
}

impl<'a> LineReader<'a> {
    pub fn new(by_arrival: bool, counters: &'a Counters) -> Result<Self, SourceError> {
        let (reader, times, rest) = (Reader::default(), Times::new()?, Vec::new());
        Ok(Self { reader, times, by_arrival, counters, rest, skips: false })
    }

    /// A new connection: what was begun is not continued.
    fn restart(&mut self) {
        self.reader.restart();
        self.times.restart();
        self.rest.clear();
        self.skips = false;
    }

    /// Takes what has arrived.
    fn take(&mut self, mut bytes: &[u8], updates: &mut dyn FnMut(Update)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, after) = bytes.split_at(end);
            bytes = &after[1..];
            if self.skips {
                self.skips = false;
            } else if self.rest.is_empty() {
                self.line(line, updates);
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole, updates);
                whole.clear();
                self.rest = whole;
            }
        }
        if !self.skips {
            self.rest.extend_from_slice(bytes);
        }
        if self.rest.len() > LONGEST {
            self.counters.count_read();
            self.counters.leave_out(&format!("a line of more than {LONGEST} bytes"));
            self.rest = Vec::new();
            self.skips = true;
        }
    }

    fn line(&mut self, line: &[u8], updates: &mut dyn FnMut(Update)) {
        let Self { reader, times, by_arrival, counters, .. } = self;
        counters.count_read();
        let before = reader.missed();
        let mut clock = |clock, ns| times.convert(if *by_arrival { LineClock::Arrival } else { clock }, ns);
        if let Err(error) = reader.read(line, &mut clock, updates) {
            counters.leave_out(&error);
        }
        if reader.missed() != before {
            counters.set_missed(reader.missed());
        }
    }

    /// Reads until the other side closes, or `stop` is set.
    fn follow(
        &mut self,
        input: &mut dyn Input,
        updates: &mut dyn FnMut(Update),
        stop: &AtomicBool,
    ) -> io::Result<End> {
        let mut chunk = vec![0; CHUNK];
        while !stop.load(Ordering::Relaxed) {
            if !is_readable(input.as_fd())? {
                continue;
            }
            match input.read(&mut chunk) {
                Ok(0) => return Ok(End::Closed),
                Ok(length) => self.take(&chunk[..length], updates),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(End::Stopped)
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Waits a moment for something to read.
fn is_readable(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::try_from(PAUSE).unwrap_or(PollTimeout::ZERO)) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::Error::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Source for Lines {
    fn run(&mut self, updates: &mut dyn FnMut(Update), stop: &AtomicBool) -> Result<(), SourceError> {
        let counters = Arc::clone(&self.counters);
        let mut lines = LineReader::new(self.by_arrival, &counters)?;
        let ended = match &self.address {
            Address::Unix(path) => again(&mut lines, updates, stop, || connect_unix(path)),
            Address::Tcp(address) => again(&mut lines, updates, stop, || connect_tcp(address)),
            Address::UnixListen(path) => listen_unix(path).and_then(|listener| {
                accept(&mut lines, updates, stop, &listener, || Ok(listener.accept()?.0))
            }),
            Address::TcpListen(address) => TcpListener::bind(address).and_then(|listener| {
                listener.set_nonblocking(true)?;
                accept(&mut lines, updates, stop, &listener, || Ok(listener.accept()?.0))
            }),
            Address::Pipe(path) => follow_pipe(&mut lines, updates, stop, path),
            Address::File(path) => follow_file(&mut lines, updates, stop, path),
            Address::Stdin => {
                counters.set_connected(true);
                lines.follow(&mut io::stdin().lock(), updates, stop).map(drop)
            }
        };
        counters.set_connected(false);
        if let Address::UnixListen(path) = &self.address {
            // It may be gone already.
            let _ = std::fs::remove_file(path);
        }
        ended.map_err(|error| self.failed(error))
    }

    fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }
}

/// Follows one connection after the other. An address that cannot be reached is tried again: the base station may come later.
fn again<T: Input>(
    lines: &mut LineReader<'_>,
    updates: &mut dyn FnMut(Update),
    stop: &AtomicBool,
    mut connect: impl FnMut() -> io::Result<T>,
) -> io::Result<()> {
    loop {
        let ended = connect().and_then(|mut input| {
            lines.restart();
            lines.counters.set_connected(true);
            lines.follow(&mut input, updates, stop)
        });
        lines.counters.set_connected(false);
        match ended {
            Ok(End::Stopped) => return Ok(()),
            Ok(End::Closed) => lines.counters.complain(&"the other side closed the connection"),
            Err(error) => lines.counters.complain(&error),
        }
        if wait(RETRY, stop) {
            return Ok(());
        }
    }
}

fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn connect_tcp(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in resolve(address)? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                stream.set_nonblocking(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Listens, in place of a socket that an earlier listener has left.
fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Follows one connection after the other that comes in.
fn accept<T: Input>(
    lines: &mut LineReader<'_>,
    updates: &mut dyn FnMut(Update),
    stop: &AtomicBool,
    listener: &impl AsFd,
    mut accept: impl FnMut() -> io::Result<T>,
) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        if !is_readable(listener.as_fd())? {
            continue;
        }
        let ended = accept().and_then(|mut input| {
            lines.restart();
            lines.counters.set_connected(true);
            lines.follow(&mut input, updates, stop)
        });
        lines.counters.set_connected(false);
        if let Err(error) = ended
            && !is_passing(&error)
        {
            lines.counters.complain(&error);
            if wait(RETRY, stop) {
                break;
            }
        }
    }
    Ok(())
}

/// Follows a named pipe; while nobody writes, it waits for the next writer.
fn follow_pipe(
    lines: &mut LineReader<'_>,
    updates: &mut dyn FnMut(Update),
    stop: &AtomicBool,
    path: &Path,
) -> io::Result<()> {
    // Without this flag it would wait here for a writer.
    let flags = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let mut pipe = File::options().read(true).custom_flags(flags).open(path)?;
    if !pipe.metadata()?.file_type().is_fifo() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a named pipe; `mkfifo` makes one"));
    }
    lines.counters.set_connected(true);
    loop {
        // It stays open: closing it would discard what the next writer has written already.
        lines.restart();
        if lines.follow(&mut pipe, updates, stop)? == End::Stopped || wait(WRITER, stop) {
            return Ok(());
        }
    }
}

/// Follows a file that grows, from its beginning. If another file takes its place, or it becomes shorter, that is read from its
/// beginning.
fn follow_file(
    lines: &mut LineReader<'_>,
    updates: &mut dyn FnMut(Update),
    stop: &AtomicBool,
    path: &Path,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut file = File::open(path)?;
    lines.counters.set_connected(true);
    let mut read = 0;
    while !stop.load(Ordering::Relaxed) {
        match file.read(&mut chunk) {
            Ok(0) => {
                let old = file.metadata()?;
                // For a moment there may be none.
                let new = std::fs::metadata(path).ok();
                let is_other =
                    new.as_ref().is_some_and(|new| (new.dev(), new.ino()) != (old.dev(), old.ino()));
                if is_other || old.len() < read {
                    if is_other {
                        file = File::open(path)?;
                    } else {
                        file.seek(SeekFrom::Start(0))?;
                    }
                    lines.restart();
                    read = 0;
                } else {
                    std::thread::sleep(GROWTH);
                }
            }
            Ok(length) => {
                read += length as u64;
                lines.take(&chunk[..length], updates);
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
