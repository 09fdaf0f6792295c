//! Maps a file, or an array of the kernel's, into memory as 64-bit words that processes (or eBPF programs) share.
//!
//! The words are atomic, because other processes read and write them at the same time; without locks, every access is defined then.
//! A mapping for reading is mapped read-only, so only relaxed loads of it are defined (`core::sync::atomic`, "Atomic accesses to
//! read-only memory"); [`Readable`] and [`Writable`] are types of their own for this reason.
//!
//! **What the caller has to ensure:** nobody makes the file shorter while it is mapped. An access beyond a file's end kills the
//! process (SIGBUS); no check here can prevent that. Map only files that nobody untrusted may write.
#![cfg(target_os = "linux")]
#![deny(missing_docs)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::time::TimeSpec;

/// Bytes of a word.
const WORD: usize = size_of::<AtomicU64>();

/// A shared mapping, which ends when it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    words: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; munmap may be called by any thread.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference there are only `AtomicU64`, which threads may share.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all whole words of a file.
    fn of(file: &File, protection: ProtFlags) -> io::Result<Self> {
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        Self::of_words(file, bytes / WORD, protection)
    }

    fn of_words(descriptor: impl AsFd, words: usize, protection: ProtFlags) -> io::Result<Self> {
        let Some(length) = words.checked_mul(WORD).and_then(NonZeroUsize::new) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "expected at least 8 bytes"));
        };
        // SAFETY: the address is the kernel's choice, so that no other mapping is replaced.
        let start = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, descriptor, 0) }?;
        Ok(Self { start, words })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` is the beginning of a mapping of `words` words, which lasts as long as `self`. It is aligned to a page,
        // any bytes are a valid `AtomicU64`, and all accesses of this process to it are atomic.
        unsafe { std::slice::from_raw_parts(self.start.cast().as_ptr(), self.words) }
    }
}

/// The half of a word that a futex compares: the lower one.
fn futex(word: &AtomicU64) -> *const u32 {
    let halves = std::ptr::from_ref(word).cast::<u32>();
    if cfg!(target_endian = "big") { halves.wrapping_add(1) } else { halves }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing borrows from it any more.
        let result = unsafe { munmap(self.start, self.words * WORD) };
        debug_assert!(result.is_ok(), "a mapping can be ended");
    }
}

/// A file that can be read. Its words must not be written, and only be loaded with `Ordering::Relaxed`.
#[derive(Debug)]
pub struct Readable(Mapping);

impl Readable {
    /// Maps the whole words of a file that is open for reading.
    ///
    /// # Errors
    ///
    /// It is empty, or cannot be mapped.
    pub fn of(file: &File) -> io::Result<Self> {
        Mapping::of(file, ProtFlags::PROT_READ).map(Self)
    }

    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }
}

impl Readable {
    /// Waits until the word at this place is woken ([`Writable::wake`]), but not at all if the lower half of its value is not that of
    /// `seen` any more, and not longer than `at_most`. Returns too early now and then: look at the words again.
    ///
    /// # Errors
    ///
    /// There is no such word, or the system cannot wait.
    pub fn wait(&self, place: usize, seen: u64, at_most: Duration) -> io::Result<()> {
        let word = self.words().get(place).ok_or(io::ErrorKind::InvalidInput)?;
        let time = *TimeSpec::from_duration(at_most).as_ref();
        // SAFETY: the kernel reads four bytes of a word that is mapped as long as `self`, and `time`, which outlives the call.
        let result = unsafe {
            nix::libc::syscall(
                nix::libc::SYS_futex,
                futex(word),
                nix::libc::FUTEX_WAIT,
                seen as u32,
                std::ptr::from_ref(&time),
            )
        };
        match Errno::result(result) {
            // Woken, changed before, interrupted, or nothing came.
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR | Errno::ETIMEDOUT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A file that can be read and written.
#[derive(Debug)]
pub struct Writable(Mapping);

impl Writable {
    /// Wakes all processes that wait for the word at this place. Change the word before.
    pub fn wake(&self, place: usize) {
        let Some(word) = self.words().get(place) else { return };
        // SAFETY: the kernel uses the address as a name alone; it is that of a word that is mapped as long as `self`.
        let result =
            unsafe { nix::libc::syscall(nix::libc::SYS_futex, futex(word), nix::libc::FUTEX_WAKE, i32::MAX) };
        debug_assert!(result >= 0, "a mapped word can be woken");
    }

    /// Maps the whole words of a file that is open for reading and writing.
    ///
    /// # Errors
    ///
    /// It is empty, or cannot be mapped.
    pub fn of(file: &File) -> io::Result<Self> {
        Mapping::of(file, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE).map(Self)
    }

    /// Maps so many words of what has no length of its own, such as an array of eBPF.
    ///
    /// # Errors
    ///
    /// It has fewer words, or cannot be mapped.
    pub fn of_words(descriptor: impl AsFd, words: usize) -> io::Result<Self> {
        Mapping::of_words(descriptor, words, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE).map(Self)
    }

    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_is_written_can_be_read_and_lasts() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("words");
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).expect("a file");
        assert!(Writable::of(&file).is_err(), "it is empty");
        file.set_len(8 * 600 + 7).expect("room");
        let writable = Writable::of(&file).expect("it can be mapped");
        let readable = Readable::of(&File::open(&path).expect("it is there")).expect("it can be mapped");
        assert_eq!((writable.words().len(), readable.words().len()), (600, 600));
        writable.words()[599].store(7, Relaxed);
        assert_eq!(readable.words()[599].load(Relaxed), 7);
        drop((writable, readable));
        assert_eq!(std::fs::read(&path).expect("it is there")[8 * 599], 7);
        assert!(Writable::of(&File::open(&path).expect("it is there")).is_err(), "open for reading alone");
    }

    #[test]
    fn a_reader_waits_until_it_is_woken_and_not_longer_than_it_wants() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("words");
        std::fs::write(&path, [0; 64]).expect("room");
        let file = File::options().read(true).write(true).open(&path).expect("it is there");
        let writable = Writable::of(&file).expect("it can be mapped");
        let readable = Readable::of(&File::open(&path).expect("it is there")).expect("it can be mapped");
        // It has changed already.
        writable.words()[4].store(7, Relaxed);
        readable.wait(4, 6, Duration::from_secs(600)).expect("it can wait");
        // Nothing comes.
        let begin = Instant::now();
        readable.wait(4, 7, Duration::from_millis(20)).expect("it can wait");
        assert!(begin.elapsed() >= Duration::from_millis(20));
        assert!(readable.wait(8, 0, Duration::ZERO).is_err(), "there is no such word");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                while readable.words()[4].load(Relaxed) == 7 {
                    readable.wait(4, 7, Duration::from_secs(600)).expect("it can wait");
                }
            });
            writable.words()[4].store(8, Relaxed);
            writable.wake(4);
            waiter.join().expect("it was woken");
        });
    }
}
