//! The bytes of an answer, piece by piece.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// Most bytes of a piece. Ours: large enough that calls of the kernel cost little.
pub const PIECE: usize = 64 << 10;

/// A prime above 2^31: it spreads the number of a byte over the bits of its value.
const SPREAD: u32 = 0x9E37_79B1;

/// Repeated by generated content. Its bytes look random, so that nobody compresses them.
static BLOCK: LazyLock<Bytes> =
    LazyLock::new(|| (0..PIECE as u32).map(|place| (place.wrapping_mul(SPREAD) >> 24) as u8).collect());

/// Why content ends early. Its receiver must not take what it has for whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The file has got shorter since its length was told.
    #[error("the file has been cut to {found} bytes, at least {expected} were announced")]
    Shrunk {
        /// Bytes that it has now, or had a moment ago.
        found: u64,
        /// Bytes that were announced.
        expected: u64,
    },
    /// The disk or the system failed.
    #[error("reading the file: {0}")]
    Read(#[from] io::Error),
}

/// What content is taken from.
#[derive(Clone, Debug)]
enum Source {
    Memory(Bytes),
    File(Arc<File>),
    Generated,
}

/// Bytes that are still to be sent.
#[derive(Clone, Debug)]
pub struct Content {
    source: Source,
    rest: Range<u64>,
}

impl Content {
    /// A text in memory.
    pub fn of(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        Self { rest: 0..text.len() as u64, source: Source::Memory(text) }
    }

    /// A part of a file.
    pub fn file(file: Arc<File>, part: Range<u64>) -> Self {
        Self { source: Source::File(file), rest: part }
    }

    /// A part of bytes that are in no file. They are always the same.
    pub fn generated(part: Range<u64>) -> Self {
        Self { source: Source::Generated, rest: part }
    }

    /// Bytes that are still to come.
    pub fn length(&self) -> u64 {
        self.rest.end - self.rest.start
    }

    /// The next piece, of at most [`PIECE`] bytes; `None` when everything has come.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is shorter than it was.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ContentError> {
        let at = self.rest.start;
        let most = usize::try_from(self.length()).unwrap_or(PIECE).min(PIECE);
        if most == 0 {
            return Ok(None);
        }
        let piece = match &self.source {
            // Texts are short, and their places fit.
            Source::Memory(text) => text.slice(at as usize..at as usize + most),
            Source::Generated => {
                let begin = (at % PIECE as u64) as usize;
                BLOCK.slice(begin..(begin + most).min(PIECE))
            }
            Source::File(file) => {
                let mut buffer = BytesMut::zeroed(most);
                let read = match read_cached(file, &mut buffer, at) {
                    Ok(read) => read,
                    Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => {
                        let file = Arc::clone(file);
                        let waited = tokio::task::spawn_blocking(move || {
                            let read = read_waiting(&file, &mut buffer, at)?;
                            Ok::<_, io::Error>((buffer, read))
                        });
                        let (returned, read) = waited.await.map_err(io::Error::other)??;
                        buffer = returned;
                        read
                    }
                    Err(error) => return Err(io::Error::from(error).into()),
                };
                if read == 0 {
                    return Err(ContentError::Shrunk { found: at, expected: self.rest.end });
                }
                buffer.truncate(read);
                buffer.freeze()
            }
        };
        self.rest.start += piece.len() as u64;
        Ok(Some(piece))
    }
}

/// Reads what is in memory, without waiting for the disk.
fn read_cached(file: &File, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    preadv2(file, &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT)
}

fn read_waiting(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use std::io::Write as _;

    use super::*;

    async fn all(mut content: Content) -> Result<Vec<u8>, ContentError> {
        let mut all = Vec::new();
        while let Some(piece) = content.next().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn parts_of_content_are_parts_of_the_whole() {
        const LENGTH: u64 = 3 * PIECE as u64 + 17;
        let whole = all(Content::generated(0..LENGTH)).await.unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&whole).unwrap();
        let file = Arc::new(file);
        for part in [0..LENGTH, 0..1, 5..5, PIECE as u64 - 1..PIECE as u64 + 1, LENGTH - 1..LENGTH] {
            let expected = &whole[part.start as usize..part.end as usize];
            for content in [Content::generated(part.clone()), Content::file(Arc::clone(&file), part.clone())]
            {
                assert_eq!(content.length(), expected.len() as u64);
                assert!(all(content).await.unwrap() == expected, "{part:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_file_that_shrinks_is_an_error_and_never_a_short_content() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        file.set_len(3 * PIECE as u64).unwrap();
        let mut content = Content::file(Arc::clone(&file), 0..3 * PIECE as u64);
        content.next().await.unwrap();
        file.set_len(PIECE as u64 + 10).unwrap();
        assert_eq!(content.next().await.unwrap().map(|piece| piece.len()), Some(10));
        assert!(matches!(content.next().await, Err(ContentError::Shrunk { .. })));
    }

    #[tokio::test]
    async fn what_the_disk_refuses_is_an_error() {
        // A descriptor that cannot be read stands for a disk that fails.
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("file")).unwrap();
        let error = Content::file(Arc::new(file), 0..10).next().await.unwrap_err();
        assert!(matches!(error, ContentError::Read(_)), "{error}");
    }
}
