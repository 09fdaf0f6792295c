//! Where radio information comes from: a named pipe, a file that grows, or standard input. An RNIS server will be another one.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ranpace_emulator::LONGEST_HINT_LINE as LONGEST;

use crate::failure::Failure;

/// Longest wait for bytes: how soon it is seen that it is to end.
const WAIT_MS: u16 = 20;
/// Wait where nothing has been written yet, or nobody writes.
const NAP: Duration = Duration::from_millis(2);
/// Bytes read at once.
const CHUNK: usize = 1 << 16;

/// A stream of lines.
pub struct Source {
    file: File,
    kind: Kind,
    /// Somebody has written since the pipe was opened, or since it was said that nobody does.
    has_writer: bool,
    chunk: Vec<u8>,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    /// That line is too long, and left out.
    is_long: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    /// At this place.
    Growing(u64),
    /// It ends when its writer does.
    Stream,
}

/// What a look at the source had.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// Perhaps lines.
    Read,
    /// The writer of the pipe is gone; another may come.
    WriterGone,
    /// There will be no more.
    End,
}

impl Source {
    /// Opens what `--from` names; `-` is standard input.
    pub fn named(from: &Path) -> Result<Self, Failure> {
        if from.as_os_str() == "-" {
            let file = io::stdin().as_fd().try_clone_to_owned().map_err(Failure::ours)?;
            return Ok(Self::of(file.into(), Kind::Stream));
        }
        Self::file(from)
    }

    /// Opens a named pipe, or a file, of which what is there already is not read: it has been measured long ago.
    pub fn file(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: io::Error| {
            Failure::asked(format!(
                "cannot read radio information from {}: {error}; `mkfifo {0}` makes a named pipe, `ranpace emulate --hints {0}` \
                 writes to it",
                path.display()
            ))
        };
        // A pipe that nobody writes to yet does not keep us waiting.
        let mut file =
            File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).map_err(cannot)?;
        let what = file.metadata().map_err(cannot)?.file_type();
        let kind = if what.is_fifo() {
            Kind::Pipe
        } else if what.is_file() {
            Kind::Growing(file.seek(SeekFrom::End(0)).map_err(cannot)?)
        } else {
            return Err(cannot(io::Error::new(
                ErrorKind::InvalidInput,
                "it is neither a file nor a named pipe",
            )));
        };
        Ok(Self::of(file, kind))
    }

    fn of(file: File, kind: Kind) -> Self {
        let (chunk, partial) = (vec![0; CHUNK], Vec::new());
        Self { file, kind, has_writer: false, chunk, partial, is_long: false }
    }

    /// Waits a moment for lines, and shows each that is complete, without its end; `None` for one that is too long.
    pub fn look(&mut self, mut show: impl FnMut(Option<&[u8]>)) -> io::Result<Look> {
        let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::from(WAIT_MS)) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(Look::Read),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let read = match (&self.file).read(&mut self.chunk) {
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(Look::Read);
            }
            Err(error) => return Err(error),
        };
        if read == 0 {
            return self.at_end();
        }
        self.has_writer = true;
        if let Kind::Growing(place) = &mut self.kind {
            *place += read as u64;
        }
        let mut rest = &self.chunk[..read];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = (&rest[..end], &rest[end + 1..]);
            rest = behind;
            if self.is_long || self.partial.len() + line.len() > LONGEST {
                show(None);
            } else if self.partial.is_empty() {
                show(Some(line));
            } else {
                self.partial.extend_from_slice(line);
                show(Some(&self.partial));
            }
            self.partial.clear();
            self.is_long = false;
        }
        if self.partial.len() + rest.len() > LONGEST {
            self.is_long = true;
            self.partial.clear();
        }
        if !self.is_long {
            self.partial.extend_from_slice(rest);
        }
        Ok(Look::Read)
    }

    /// There is nothing more, for now or for ever.
    fn at_end(&mut self) -> io::Result<Look> {
        match &mut self.kind {
            Kind::Stream => return Ok(Look::End),
            Kind::Growing(place) => {
                // A new emulation begins the file anew.
                if self.file.metadata()?.len() < *place {
                    *place = 0;
                    (&self.file).seek(SeekFrom::Start(0))?;
                    self.partial.clear();
                    self.is_long = false;
                }
            }
            Kind::Pipe => {
                // What it left unfinished, nobody finishes.
                self.partial.clear();
                self.is_long = false;
                if std::mem::take(&mut self.has_writer) {
                    return Ok(Look::WriterGone);
                }
            }
        }
        thread::sleep(NAP);
        Ok(Look::Read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use nix::sys::stat::Mode;

    use super::*;

    fn lines(source: &mut Source) -> (Vec<Option<String>>, Look) {
        let mut all = Vec::new();
        let look = source.look(|line| all.push(line.map(|line| String::from_utf8_lossy(line).into_owned())));
        (all, look.expect("it can be read"))
    }

    #[test]
    fn a_pipe_gives_whole_lines_and_outlives_its_writers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).expect("a pipe");
        let mut source = Source::file(&path).expect("it is there");
        assert_eq!(lines(&mut source), (vec![], Look::Read), "nobody writes yet");
        for _ in 0..2 {
            let mut writer = File::options().write(true).open(&path).expect("somebody reads");
            writer.write_all(b"one\ntw").expect("room");
            assert_eq!(lines(&mut source).0, [Some("one".to_owned())]);
            writer.write_all(b"o\n\ncut o").expect("room");
            assert_eq!(lines(&mut source).0, [Some("two".to_owned()), Some(String::new())]);
            drop(writer);
            assert_eq!(lines(&mut source), (vec![], Look::WriterGone));
            assert_eq!(lines(&mut source), (vec![], Look::Read), "said once");
        }
    }

    #[test]
    fn a_file_is_followed_from_its_end_and_from_its_beginning_where_it_was_written_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "old\n").expect("room");
        let mut source = Source::file(&path).expect("it is there");
        assert_eq!(lines(&mut source).0, []);
        let mut file = File::options().append(true).open(&path).expect("it is there");
        file.write_all(&[b'x'; 3 * LONGEST]).expect("room");
        file.write_all(b"\nnew\n").expect("room");
        assert_eq!(lines(&mut source).0, [None, Some("new".to_owned())]);
        std::fs::write(&path, "anew\n").expect("room");
        let mut found = Vec::new();
        while found.is_empty() {
            found = lines(&mut source).0;
        }
        assert_eq!(found, [Some("anew".to_owned())]);
        assert!(Source::file(&folder.path().join("none")).is_err());
        assert!(Source::file(folder.path()).is_err());
    }
}
