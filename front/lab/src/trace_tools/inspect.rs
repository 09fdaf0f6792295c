//! Reads a trace with the properties of its file.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use ranpace_link::{Trace, TraceParser};
use sha2::{Digest as _, Sha256};

use super::{ToolError, write_mahimahi};
use crate::TraceLibrary;

/// The compression of a trace's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// As plain text.
    Plain,
    /// As gzipped text.
    Gzipped,
    /// Not stored: it was generated.
    Builtin,
    /// Made by a program.
    Made,
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Plain => "mahimahi",
            Self::Gzipped => "mahimahi, gzipped",
            Self::Builtin => "built in",
            Self::Made => "not from a file",
        })
    }
}

/// A trace and its file.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The compression of its file.
    pub packing: Packing,
    /// Digest of the uncompressed bytes in hexadecimal digits; for a built-in trace, that of the file that it would be.
    pub sha256: String,
}

impl TraceFile {
    /// A trace that no file holds yet; its digest is that of the file that it would be.
    pub fn made(trace: Arc<Trace>) -> Self {
        Self { sha256: digest_of(&trace), packing: Packing::Made, trace }
    }
}

fn digest_of(trace: &Trace) -> String {
    let mut hash = Hashing(Sha256::new());
    // Writing to a hash does not fail.
    let _ = write_mahimahi(trace, &mut hash);
    hex(hash.0)
}

/// Resolves a name: `builtin:NAME`, a path, or a file in one of the library's folders.
pub fn inspect_named(
    name: &str,
    library: &mut TraceLibrary,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<TraceFile, ToolError> {
    if name.starts_with("builtin:") {
        let trace = library.get(name)?;
        return Ok(TraceFile { sha256: digest_of(&trace), packing: Packing::Builtin, trace });
    }
    // A path that exists but cannot be read is reported as such, and not as missing.
    let path = Path::new(name);
    if path.exists() { inspect(path, watch) } else { inspect(&library.find(name)?, watch) }
}

/// Reads a file of delivery opportunities. `watch` is called regularly with the bytes read and the size of the file.
pub fn inspect(path: &Path, watch: &mut dyn FnMut(u64, u64)) -> Result<TraceFile, ToolError> {
    let mut source = Source::open(path)?;
    let malformed = |source| ToolError::Malformed { path: path.to_owned(), source };
    let (mut parser, mut hash, mut lines) = (TraceParser::new(), Sha256::new(), 0);
    let mut chunk = vec![0; 1 << 16];
    loop {
        let length = source.read(&mut chunk).map_err(|error| source.error(path, lines, error))?;
        if length == 0 {
            break;
        }
        let piece = &chunk[..length];
        parser.push(piece).map_err(malformed)?;
        hash.update(piece);
        lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        watch(source.done(), source.total);
    }
    let packing = if source.is_zipped { Packing::Gzipped } else { Packing::Plain };
    let trace = Arc::new(parser.finish().map_err(malformed)?);
    Ok(TraceFile { trace, packing, sha256: hex(hash) })
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes what is written to it.
struct Hashing(Sha256);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A file being read, decompressed if it is gzipped.
pub(super) struct Source {
    reader: Box<dyn Read>,
    done: Rc<Cell<u64>>,
    /// Size of the file as stored.
    pub total: u64,
    /// Detected by its first bytes, not by its name.
    pub is_zipped: bool,
}

impl Source {
    pub fn open(path: &Path) -> Result<Self, ToolError> {
        let unreadable = |source| ToolError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let total = file.metadata().map_err(unreadable)?.len();
        let done = Rc::new(Cell::new(0));
        let mut file = BufReader::with_capacity(1 << 16, Counted { file, done: Rc::clone(&done) });
        let is_zipped = file.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
        let reader: Box<dyn Read> =
            if is_zipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        Ok(Self { reader, done, total, is_zipped })
    }

    /// Bytes of the file that have been read.
    pub fn done(&self) -> u64 {
        self.done.get()
    }

    /// The meaning of a failed read; `lines` were read before.
    pub fn error(&self, path: &Path, lines: u64, source: std::io::Error) -> ToolError {
        let path = path.to_owned();
        // The system's own errors have a code; the decoder's have none.
        if self.is_zipped && source.raw_os_error().is_none() {
            return ToolError::Gzip { path, line: lines, source };
        }
        ToolError::Unreadable { path, source }
    }
}

impl Read for Source {
    fn read(&mut self, place: &mut [u8]) -> std::io::Result<usize> {
        self.reader.read(place)
    }
}

struct Counted {
    file: File,
    done: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, place: &mut [u8]) -> std::io::Result<usize> {
        let length = self.file.read(place)?;
        self.done.set(self.done.get() + length as u64);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(name: &str) -> Result<TraceFile, ToolError> {
        inspect_named(name, &mut TraceLibrary::default(), &mut |_, _| {})
    }

    #[test]
    fn the_hash_is_of_the_uncompressed_bytes_however_they_are_stored() {
        let folder = tempfile::tempdir().unwrap();
        let trace = Trace::from_millis([1, 2, 2, 9]).unwrap();
        let found = ["a", "a.gz"].map(|name| {
            let path = folder.path().join(name);
            crate::trace_tools::OutputFile::create(&path).unwrap().write_trace(&trace).unwrap();
            quiet(path.to_str().unwrap()).unwrap()
        });
        assert_eq!(found[0].sha256, found[1].sha256);
        assert_eq!([Packing::Plain, Packing::Gzipped], [found[0].packing, found[1].packing]);
        assert!(found.iter().all(|file| *file.trace == trace));
    }

    #[test]
    fn error_of_a_truncated_file_names_the_last_line_read() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, cut) = (folder.path().join("whole.gz"), folder.path().join("cut.gz"));
        let trace = Trace::from_millis(1..100_000).unwrap();
        crate::trace_tools::OutputFile::create(&whole).unwrap().write_trace(&trace).unwrap();
        let bytes = std::fs::read(&whole).unwrap();
        std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
        match quiet(cut.to_str().unwrap()).unwrap_err() {
            ToolError::Gzip { line, .. } => assert!(line > 1_000, "{line}"),
            other => panic!("{other}"),
        }
        assert!(matches!(quiet(folder.path().to_str().unwrap()), Err(ToolError::Unreadable { .. })));
        assert!(matches!(quiet("no such file"), Err(ToolError::Name(_))));
    }

    #[test]
    fn a_built_in_trace_has_a_hash_too() {
        let file = quiet("builtin:lte").unwrap();
        assert_eq!((file.packing, file.sha256.len()), (Packing::Builtin, 64));
        assert!(quiet("builtin:let").unwrap_err().to_string().contains("builtin:lte"));
    }
}
