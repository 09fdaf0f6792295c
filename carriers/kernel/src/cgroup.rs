//! A control group (version 2) for a program and its children.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use crate::error::KernelError;

/// A control group of our own, below the one that this process is in. It is removed when this is dropped, if it is empty.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    parent: PathBuf,
    /// Tells other processes that it is in use, though nobody may be in it yet or any more.
    _lock: Flock<File>,
}

impl Cgroup {
    /// Makes one, and removes those that earlier processes left behind empty.
    pub fn new() -> Result<Self, KernelError> {
        let parent = own()?;
        remove_empty(&parent);
        // Processes of other process namespaces have the same numbers as this one.
        for number in std::process::id().. {
            let path = parent.join(format!("{PREFIX}{number}"));
            match fs::create_dir(&path) {
                Ok(()) => {
                    if let Some(lock) = lock(&path) {
                        return Ok(Self { path, parent, _lock: lock });
                    }
                    // Somebody took it for one left behind before it was locked.
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(KernelError::Rights {
                        what: format!("making a control group in {}", parent.display()),
                        needed: "the right to write there (root, or a delegated control group)",
                    });
                }
                Err(error) => return Err(KernelError::io("make the control group", path)(error)),
            }
        }
        Err(KernelError::NoCgroup2)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// This process, and whatever it starts from now on, is in it.
    pub fn enter(&self) -> Result<(), KernelError> {
        enter(&self.path)
    }

    /// This process is again where it was; what it started stays.
    pub fn leave(&self) -> Result<(), KernelError> {
        enter(&self.parent)
    }

    /// Whether a process is in it.
    pub fn is_populated(&self) -> bool {
        fs::read_to_string(self.path.join("cgroup.procs")).is_ok_and(|processes| !processes.trim().is_empty())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Where processes are left in it, the next one of ours removes it when they are gone.
        let _ = self.leave();
        let _ = fs::remove_dir(&self.path);
    }
}

/// How the names of our control groups begin.
const PREFIX: &str = "ranpace-";

fn enter(path: &Path) -> Result<(), KernelError> {
    let processes = path.join("cgroup.procs");
    // Zero is the writer itself.
    fs::write(&processes, "0").map_err(KernelError::io("enter", processes))
}

/// The lock of a control group; `None` if another process has it or has removed the group.
fn lock(path: &Path) -> Option<Flock<File>> {
    let lock = Flock::lock(File::open(path).ok()?, FlockArg::LockExclusiveNonblock).ok()?;
    path.exists().then_some(lock)
}

fn remove_empty(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && let Some(_unused) = lock(&entry.path())
        {
            // Fails where processes are in it, which is the condition.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The folder of the control group that this process is in.
fn own() -> Result<PathBuf, KernelError> {
    let mount = mount_point()?;
    let text =
        fs::read_to_string("/proc/self/cgroup").map_err(KernelError::io("read", "/proc/self/cgroup"))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).ok_or(KernelError::NoCgroup2)?;
    let own = mount.join(path);
    // In a namespace of processes or control groups the path may not lead there.
    Ok(if own.is_dir() { own } else { mount })
}

/// Where control groups of version 2 are mounted.
pub(crate) fn mount_point() -> Result<PathBuf, KernelError> {
    let path = "/proc/self/mountinfo";
    let text = fs::read_to_string(path).map_err(KernelError::io("read", path))?;
    // `ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [FIELDS] - TYPE SOURCE OPTIONS`; a later one may hide an earlier one.
    text.lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let kind = after.split(' ').next()?;
            let point = Path::new(before.split(' ').nth(4)?);
            (kind == "cgroup2" && point.join("cgroup.procs").exists()).then(|| point.to_owned())
        })
        .next_back()
        .ok_or(KernelError::NoCgroup2)
}
