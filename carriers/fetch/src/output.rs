//! Where a content goes: to a file, or nowhere.
//!
//! A file that is being downloaded is named `.NAME.ranpace-part`, beside its place, and is renamed to `NAME` when it is whole and on the
//! disk. So whatever happens, a file named `NAME` is whole. `.NAME.ranpace-part.json` says what the part is the beginning of, so that
//! a later download goes on where it stopped.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::answer::Beginning;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// Why a content cannot be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// There is no room.
    #[error("no room for {}: {error}; what has come is in {}, and the same command goes on from there", whole.display(), part.display())]
    DiskFull {
        /// The file that was to be written.
        whole: PathBuf,
        /// The file with its beginning.
        part: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file cannot be used.
    #[error("cannot {doing} {}: {error}", path.display())]
    File {
        /// What was tried, such as "write".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Another process downloads the same file.
    #[error("{} is being downloaded by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// What the part is the beginning of.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    url: String,
    etag: String,
}

/// A file that is being downloaded.
#[derive(Debug)]
pub struct PartialFile {
    whole: PathBuf,
    part: PathBuf,
    origin: PathBuf,
    file: BufWriter<File>,
    url: String,
    /// What is there already, if it can be gone on from.
    beginning: Option<Beginning>,
}

impl PartialFile {
    /// The file `name` in `folder`, with the content of `url`. What an earlier download of the same URL has left is kept.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written, or another process downloads the same file.
    pub fn open(folder: &Path, name: &str, url: &str) -> Result<Self, OutputError> {
        let whole = folder.join(name);
        let part = folder.join(format!(".{name}.ranpace-part"));
        let origin = folder.join(format!(".{name}.ranpace-part.json"));
        let fault = |doing, path: &Path| {
            let path = path.to_owned();
            move |error| OutputError::File { doing, path, error }
        };
        let file = loop {
            let file = File::options().read(true).write(true).create(true).truncate(false).open(&part);
            let file = file.map_err(fault("write", &part))?;
            file.try_lock().map_err(|error| match error {
                fs::TryLockError::WouldBlock => OutputError::InUse { path: whole.clone() },
                fs::TryLockError::Error(error) => {
                    OutputError::File { doing: "lock", path: part.clone(), error }
                }
            })?;
            // Another process may have finished it in between: then this is its whole file, which must not be touched.
            let ours = file.metadata().map_err(fault("read", &part))?;
            if fs::metadata(&part).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
                break file;
            }
        };
        let bytes = file.metadata().map_err(fault("read", &part))?.len();
        // An origin that is missing, or of something else, means to begin anew.
        let known = fs::read(&origin).ok().and_then(|text| serde_json::from_slice::<Origin>(&text).ok());
        let beginning = known
            .filter(|known| known.url == url && bytes > 0)
            .map(|known| Beginning { bytes, etag: known.etag });
        let url = url.to_owned();
        Ok(Self { whole, part, origin, file: BufWriter::with_capacity(BUFFER, file), url, beginning })
    }

    /// What is there already, to go on behind it.
    pub fn beginning(&self) -> Option<&Beginning> {
        self.beginning.as_ref()
    }

    /// Goes on behind the beginning: gives it to `read`, and appends from now on.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn go_on(&mut self, mut read: impl FnMut(&[u8])) -> Result<(), OutputError> {
        let mut piece = vec![0; BUFFER];
        let part = self.part.clone();
        let fault = |error| OutputError::File { doing: "read", path: part.clone(), error };
        let file = self.file.get_mut();
        file.rewind().map_err(fault)?;
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => read(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(fault(error)),
            }
        }
    }

    /// Begins anew, with a content of this version; without a strong tag it cannot be gone on with later.
    ///
    /// # Errors
    ///
    /// If the files cannot be written.
    pub fn begin(&mut self, etag: Option<&str>) -> Result<(), OutputError> {
        // In this order: a part never belongs to the origin of another.
        self.forget_origin()?;
        self.beginning = None;
        let file = self.file.get_mut();
        let emptied = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| self.fault("write", error))?;
        if let Some(etag) = etag {
            let origin = Origin { url: self.url.clone(), etag: etag.to_owned() };
            let text = serde_json::to_vec(&origin).unwrap_or_default(); // two strings
            fs::write(&self.origin, text).map_err(|error| self.fault("write", error))?;
        }
        Ok(())
    }

    /// Appends a piece.
    ///
    /// # Errors
    ///
    /// If it cannot be written, such as for want of room.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), OutputError> {
        self.file.write_all(piece).map_err(|error| self.fault("write", error))
    }

    /// The content is whole: gives it its name, when it is on the disk.
    ///
    /// # Errors
    ///
    /// If it cannot be written or renamed. The part stays.
    pub fn finish(mut self) -> Result<PathBuf, OutputError> {
        self.file.flush().map_err(|error| self.fault("write", error))?;
        self.file.get_ref().sync_all().map_err(|error| self.fault("write", error))?;
        fs::rename(&self.part, &self.whole).map_err(|error| OutputError::File {
            doing: "rename the part to",
            path: self.whole.clone(),
            error,
        })?;
        self.forget_origin()?;
        Ok(self.whole)
    }

    fn forget_origin(&self) -> Result<(), OutputError> {
        match fs::remove_file(&self.origin) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(OutputError::File { doing: "remove", path: self.origin.clone(), error })
            }
            _ => Ok(()),
        }
    }

    /// The content is damaged: removes what is there, so that nothing goes on behind it.
    ///
    /// # Errors
    ///
    /// If the part cannot be emptied.
    pub fn discard(mut self) -> Result<(), OutputError> {
        self.begin(None)?;
        fs::remove_file(&self.part).map_err(|error| OutputError::File {
            doing: "remove",
            path: self.part.clone(),
            error,
        })
    }

    fn fault(&self, doing: &'static str, error: io::Error) -> OutputError {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                OutputError::DiskFull { whole: self.whole.clone(), part: self.part.clone(), error }
            }
            _ => OutputError::File { doing, path: self.part.clone(), error },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://host/file";

    fn open(folder: &Path) -> PartialFile {
        PartialFile::open(folder, "file", URL).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(folder.path());
        file.begin(Some("\"v1\"")).unwrap();
        file.write(b"abc").unwrap();
        assert_eq!(names(folder.path()), [".file.ranpace-part", ".file.ranpace-part.json"]);
        file.finish().unwrap();
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"abc");
    }

    #[test]
    fn a_part_is_gone_on_with_if_it_is_of_the_same_url() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(folder.path());
        file.begin(Some("\"v1\"")).unwrap();
        file.write(b"abc").unwrap();
        drop(file);
        let other = PartialFile::open(folder.path(), "file", "https://other/file").unwrap();
        assert_eq!(other.beginning(), None);
        drop(other);
        let mut file = open(folder.path());
        assert_eq!(file.beginning(), Some(&Beginning { bytes: 3, etag: "\"v1\"".to_owned() }));
        let mut there = Vec::new();
        file.go_on(|piece| there.extend_from_slice(piece)).unwrap();
        file.write(b"def").unwrap();
        file.finish().unwrap();
        assert_eq!(
            (there.as_slice(), fs::read(folder.path().join("file")).unwrap().as_slice()),
            (&b"abc"[..], &b"abcdef"[..])
        );
    }

    #[test]
    fn a_part_without_a_strong_tag_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(folder.path());
        file.begin(None).unwrap();
        file.write(b"abc").unwrap();
        drop(file);
        assert_eq!(open(folder.path()).beginning(), None);
    }

    #[test]
    fn two_downloads_of_a_file_do_not_write_the_same_part() {
        let folder = tempfile::tempdir().unwrap();
        let file = open(folder.path());
        let refused = PartialFile::open(folder.path(), "file", URL).unwrap_err().to_string();
        assert!(refused.contains("is being downloaded by another process"), "{refused}");
        file.discard().unwrap();
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let refused = PartialFile::open(Path::new("/nowhere"), "file", URL).unwrap_err().to_string();
        assert!(refused.contains("cannot write /nowhere/.file.ranpace-part"), "{refused}");
    }
}
