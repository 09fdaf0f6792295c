//! Files below a folder. The kernel resolves each path beneath the folder (`RESOLVE_BENEATH` of openat2), so that neither `..` nor a
//! symbolic link nor a change between two looks leads out of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use percent_encoding::percent_decode_str;
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Most entries of a list of a folder. Ours.
const MOST_LISTED: usize = 10_000;

/// What a path is.
#[derive(Debug)]
pub enum Found {
    /// A file.
    File(Opened),
    /// A folder.
    Folder(OwnedFd),
}

/// An open file, as it was when it was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The file.
    pub file: Arc<File>,
    /// Bytes.
    pub length: u64,
    /// When it was last changed.
    pub modified: SystemTime,
}

/// Why a path is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is nothing, or it leads out of the folder, or it is no file and no folder.
    #[error("not found")]
    NotFound,
    /// This process may not read it.
    #[error("permission denied")]
    Forbidden,
    /// Too many files are open.
    #[error("too many files are open")]
    Busy,
    /// The disk or the system failed.
    #[error("{0}")]
    Failed(io::Error),
}

impl From<Errno> for FileError {
    fn from(error: Errno) -> Self {
        match error {
            // XDEV: it leads out of the folder.
            Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP | Errno::NAMETOOLONG | Errno::NXIO => {
                Self::NotFound
            }
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::MFILE | Errno::NFILE => Self::Busy,
            other => Self::Failed(other.into()),
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Errno::from_io_error(&error).map_or_else(|| Self::Failed(error), Self::from)
    }
}

/// A folder whose files are served.
#[derive(Debug)]
pub struct Folder {
    folder: OwnedFd,
}

impl Folder {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// If it is no folder that can be read, or the kernel cannot resolve paths beneath one (before Linux 5.6).
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        let folder = Self { folder };
        folder.open_beneath(Path::new("."))?;
        Ok(folder)
    }

    fn open_beneath(&self, path: &Path) -> Result<OwnedFd, Errno> {
        // NONBLOCK: opening a named pipe must not wait for its other end.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(&self.folder, path, flags, Mode::empty(), resolve) {
                // Something was renamed meanwhile, and the kernel could not tell where the path leads.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
    }

    /// What is at a relative path. This may wait for the disk.
    ///
    /// # Errors
    ///
    /// If it is not served.
    pub fn find(&self, path: &Path) -> Result<Found, FileError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let opened = self.open_beneath(path)?;
        let file = File::from(opened);
        let about = file.metadata()?;
        if about.is_dir() {
            return Ok(Found::Folder(file.into()));
        }
        if !about.is_file() {
            return Err(FileError::NotFound);
        }
        let modified = about.modified()?;
        Ok(Found::File(Opened { file: Arc::new(file), length: about.len(), modified }))
    }
}

/// The path below the folder that a URL's path means: percent-encoding is decoded, once. `None` if it cannot be a file's name.
pub fn relative(path: &str) -> Option<PathBuf> {
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    if decoded.contains(&0) {
        return None;
    }
    let begin = decoded.iter().position(|byte| *byte != b'/').unwrap_or(decoded.len());
    Some(OsStr::from_bytes(&decoded[begin..]).into())
}

/// Names of what is in a folder, in order; those of folders end in `/`. What a name links to is not looked at.
///
/// # Errors
///
/// If it cannot be read.
pub fn names(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, FileError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let mut name = entry.file_name().to_bytes().to_vec();
        if name == b"." || name == b".." {
            continue;
        }
        if entry.file_type() == FileType::Directory {
            name.push(b'/');
        }
        names.push(name);
        if names.len() >= MOST_LISTED {
            break;
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_and_links_that_lead_out_of_the_folder_are_not_found() {
        let all = tempfile::tempdir().unwrap();
        let (inside, outside) = (all.path().join("inside"), all.path().join("outside"));
        fs::create_dir_all(inside.join("below")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(inside.join("file"), "in").unwrap();
        fs::write(outside.join("secret"), "out").unwrap();
        symlink("../outside/secret", inside.join("link out")).unwrap();
        symlink(outside.join("secret"), inside.join("absolute link out")).unwrap();
        symlink("../outside", inside.join("folder out")).unwrap();
        symlink("/proc/self/root", inside.join("magic")).unwrap();
        symlink("loop", inside.join("loop")).unwrap();
        symlink("../file", inside.join("below/link in")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, inside.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let folder = Folder::open(&inside).unwrap();
        for (path, expected) in [
            ("/file", true),
            ("//file", true),
            ("/%66ile", true),
            ("/below/../file", true),
            ("/below/link%20in", true),
            ("/../outside/secret", false),
            ("/%2e%2e/outside/secret", false),
            ("/..%2foutside%2fsecret", false),
            ("/below/../../outside/secret", false),
            ("/link%20out", false),
            ("/absolute%20link%20out", false),
            ("/folder%20out/secret", false),
            ("/magic/etc/passwd", false),
            ("/loop", false),
            ("/pipe", false),
            ("/file/", false),
            ("/etc/passwd", false),
            ("//etc/passwd", false),
            ("/nothing", false),
            ("/%252e%252e/outside/secret", false),
        ] {
            let found = folder.find(&relative(path).unwrap());
            match found {
                Ok(Found::File(_)) => assert!(expected, "{path}"),
                Err(FileError::NotFound) => assert!(!expected, "{path}"),
                other => panic!("{path}: {other:?}"),
            }
        }
        assert_eq!(relative("/a%00b"), None);
        assert!(matches!(folder.find(Path::new("")), Ok(Found::Folder(_))));
        let long = "x".repeat(5_000);
        assert!(matches!(folder.find(Path::new(&long)), Err(FileError::NotFound)));
    }

    #[test]
    fn names_of_a_folder_are_in_order() {
        let all = tempfile::tempdir().unwrap();
        fs::create_dir(all.path().join("b")).unwrap();
        fs::write(all.path().join("c"), "").unwrap();
        fs::write(all.path().join("a"), "").unwrap();
        let Found::Folder(folder) = Folder::open(all.path()).unwrap().find(Path::new("")).unwrap() else {
            panic!("expected a folder");
        };
        assert_eq!(names(&folder).unwrap(), [b"a".to_vec(), b"b/".to_vec(), b"c".to_vec()]);
    }
}
