//! Network namespaces of an emulation, and the removal of those that killed emulations left behind.
//!
//! A namespace has a name in /run/netns, as `ip netns` gives it, so `ip netns exec` and `ip netns list` work with it; the name
//! contains the process id. The process holds a lock on a file in /run/ranpace while it lives. If the next emulation can take that
//! lock, it removes everything of the process that held it, even if another process has the same id by now. Devices and routes are
//! removed with their namespace.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::devices::Device;
use crate::{router, segmentation};

/// The folder in which `ip netns` keeps names.
const NETNS: &str = "/run/netns";
/// The folder of emulations' locks and files.
const OWN: &str = "/run/ranpace";
/// Size of the connection table that a namespace created from here gets of its own (Linux, Documentation/networking/ip-sysctl.rst).
const CHILD_TABLE: &str = "/proc/sys/net/ipv4/tcp_child_ehash_entries";
/// How often a closed connection sends again what is not acknowledged; 0 stands for 8 (the same source).
const ORPHAN_RETRIES: &str = "/proc/sys/net/ipv4/tcp_orphan_retries";
/// Buckets of a namespace's table of connections; ours. A query for a namespace's connections makes the kernel walk through its table
/// without a pause. The machine's table, which namespaces share by default, has 262,144 buckets on a machine of 24 GB; four readings
/// of it took 2 ms and evicted the caches.
const CONNECTIONS: u32 = 1024;
/// Prefix of the namespaces' names.
const PREFIX: &str = "ranpace-";

/// Why a namespace could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// Permissions are missing.
    #[error(
        "cannot {what}: {source}; it needs root (or CAP_SYS_ADMIN and CAP_NET_ADMIN), or a kernel that allows unprivileged user \
         namespaces"
    )]
    Rights {
        /// The operation that failed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The process has too many open files.
    #[error(
        "cannot {what}: too many open files; an emulation has one for each host and several for each flow: `ulimit -n` shows how many \
         there may be, `ulimit -n 65536` raises it"
    )]
    TooManyFiles {
        /// The operation that failed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// There are no TUN devices.
    #[error(
        "cannot make a TUN device: {0}; is the kernel's `tun` module there, and /dev/net/tun readable and writable?"
    )]
    Tun(io::Error),
    /// Something else.
    #[error("cannot {what}: {source}")]
    System {
        /// The operation that failed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl NamespaceError {
    fn of(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (what, source) = (what.into(), source.into());
        match source.kind() {
            _ if is_too_many_files(&source) => Self::TooManyFiles { what, source },
            io::ErrorKind::PermissionDenied => Self::Rights { what, source },
            _ => Self::System { what, source },
        }
    }
}

/// Returns whether the process, or the machine, has reached its limit of open files.
pub(crate) fn is_too_many_files(error: &io::Error) -> bool {
    [nix::errno::Errno::EMFILE, nix::errno::Errno::ENFILE]
        .iter()
        .any(|number| error.raw_os_error() == Some(*number as i32))
}

/// Moves a user who is not root into a user namespace with its own /run. Call it while there is only one thread. Does nothing for
/// root.
pub fn become_root() -> Result<(), NamespaceError> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if user.is_root() {
        return Ok(());
    }
    let flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
    unshare(flags).map_err(|source| NamespaceError::Rights {
        what: "make a user namespace".to_owned(),
        source: source.into(),
    })?;
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|source| NamespaceError::of(format!("write {file}"), source))
    };
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("0 {user} 1"))?;
    write("/proc/self/gid_map", format!("0 {group} 1"))?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .and_then(|()| mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none))
        .map_err(|source| NamespaceError::of("mount a /run of its own", source))
}

/// Checks whether namespaces can be created here; otherwise returns what is missing.
pub fn check() -> Result<(), NamespaceError> {
    let tried = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join();
    let made = tried.unwrap_or(Err(nix::errno::Errno::EAGAIN));
    made.map_err(|source| NamespaceError::of("make a network namespace", source))?;
    File::options().read(true).write(true).open("/dev/net/tun").map(|_| ()).map_err(NamespaceError::Tun)
}

/// What a host's kernel does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKernel {
    /// It receives them as they are written.
    Plain,
    /// It segments GSO packets before it receives them ([`segmentation`]).
    Segments,
    /// It receives them as they are written, and forwards those of others ([`router`]).
    Forwards,
}

/// The folder of this process, for files of its emulation: there while its namespaces are.
pub fn own_folder() -> PathBuf {
    Path::new(OWN).join(std::process::id().to_string())
}

/// The namespaces of this process. They are removed when it is dropped.
pub struct Namespaces {
    folder: PathBuf,
    lock: Option<File>,
    names: Vec<String>,
}

impl Namespaces {
    /// Begins without any, and removes what dead processes left behind.
    pub fn new() -> Result<Self, NamespaceError> {
        clean()?;
        let folder = own_folder();
        let failed = |source| NamespaceError::of(format!("write to {}", folder.display()), source);
        fs::create_dir_all(&folder).map_err(failed)?;
        // It is locked before anyone can find it.
        let hidden = folder.join("lock.new");
        let lock = File::create(&hidden).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        fs::rename(hidden, folder.join("lock")).map_err(failed)?;
        Ok(Self { folder, lock: Some(lock), names: Vec::new() })
    }

    /// A folder for files of this emulation.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the namespace of the host at `place`, with its device, and has its kernel treat packets as `kernel` says.
    pub fn add(&mut self, place: usize, host: &str, kernel: HostKernel) -> Result<Device, NamespaceError> {
        share_names()?;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        let host: String = host.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
        let mut name = format!("{PREFIX}{}-{host}", std::process::id());
        if self.names.contains(&name) {
            name = format!("{name}-{place}");
        }
        let path = Path::new(NETNS).join(&name);
        File::create(&path)
            .map_err(|source| NamespaceError::of(format!("write {}", path.display()), source))?;
        self.names.push(name);
        let made = thread::Builder::new().name("namespace".to_owned()).spawn(move || {
            // A namespace of this thread alone; the thread ends here.
            let leave = || {
                unshare(CloneFlags::CLONE_NEWNET)
                    .map_err(|source| NamespaceError::of("make a network namespace", source))
            };
            leave()?;
            // Namespaces created from here get this table size. Linux before 6.1 cannot do this, and walks a large table.
            if fs::write(CHILD_TABLE, CONNECTIONS.to_string()).is_ok() {
                leave()?;
            }
            let none = None::<&str>;
            mount(Some("/proc/thread-self/ns/net"), &path, none, MsFlags::MS_BIND, none)
                .map_err(|source| NamespaceError::of(format!("mount {}", path.display()), source))?;
            let device = Device::create(place).map_err(|source| {
                let of = || "make a TUN device".to_owned();
                if is_too_many_files(&source) {
                    NamespaceError::TooManyFiles { what: of(), source }
                } else {
                    NamespaceError::Tun(source)
                }
            })?;
            match kernel {
                HostKernel::Plain => {}
                HostKernel::Segments => segmentation::set_up()
                    .map_err(|source| NamespaceError::of("have a kernel cut what it receives", source))?,
                HostKernel::Forwards => router::set_up()
                    .map_err(|source| NamespaceError::of("have a kernel forward packets", source))?,
            }
            Ok(device)
        });
        let made = made.map_err(|source| NamespaceError::of("start a thread", source))?;
        made.join().unwrap_or_else(|_| {
            Err(NamespaceError::System {
                what: "make a device".to_owned(),
                source: io::Error::other("the thread that made it panicked"),
            })
        })
    }

    /// Names of the namespaces, in the order in which they were made.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The file for entering the namespace of this name.
    pub fn path_of(name: &str) -> PathBuf {
        Path::new(NETNS).join(name)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            // A connection that is closed with unsent data sends them again for minutes, into a network that is gone, and keeps the
            // namespace and its congestion control that long. Without the right to set this, it does.
            let _ = within(name, || fs::write(ORPHAN_RETRIES, "1"));
            remove_name(name);
        }
        let _ = fs::remove_dir_all(&self.folder);
        // Last: while it is held, nobody else removes anything.
        drop(self.lock.take());
    }
}

/// Runs a function in the namespace of this name.
pub fn within<T: Send + 'static>(
    name: &str,
    what: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NamespaceError> {
    let path = Namespaces::path_of(name);
    let failed = move |source: io::Error| NamespaceError::of(format!("enter {}", path.display()), source);
    let file = File::open(Namespaces::path_of(name)).map_err(failed.clone())?;
    let ran = thread::spawn(move || {
        setns(&file, CloneFlags::CLONE_NEWNET)?;
        Ok::<T, nix::errno::Errno>(what())
    });
    match ran.join() {
        Ok(ran) => ran.map_err(|errno| failed(errno.into())),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Removes everything that belongs to dead processes; returns the names of the namespaces.
pub fn clean() -> Result<Vec<String>, NamespaceError> {
    let mut removed = Vec::new();
    let own = Path::new(OWN);
    let mut alive = Vec::new();
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let path = entry.path().join("lock");
        match File::open(&path) {
            Ok(lock) => match lock.try_lock() {
                // Locked until it is removed, so that two cleaning processes do not interfere; a new emulation creates a new file.
                Ok(()) => {
                    removed.extend(names_of(process).iter().filter(|name| remove_name(name)).cloned());
                    let _ = fs::remove_dir_all(entry.path());
                }
                Err(TryLockError::WouldBlock) => alive.push(process),
                Err(TryLockError::Error(source)) => {
                    return Err(NamespaceError::of(format!("lock {}", path.display()), source));
                }
            },
            // Its process was killed between making the folder and the lock, or between removing them.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_running(process) => {
                removed.extend(names_of(process).iter().filter(|name| remove_name(name)).cloned());
                let _ = fs::remove_dir_all(entry.path());
            }
            // It is just being created, or belongs to another user.
            Err(_) => alive.push(process),
        }
    }
    // Names without a folder: the folder was emptied.
    for name in all_names() {
        let is_dead = process_of(&name).is_some_and(|process| {
            !alive.contains(&process) && !own.join(process.to_string()).exists() && !is_running(process)
        });
        if is_dead && remove_name(&name) {
            removed.push(name);
        }
    }
    Ok(removed)
}

/// Whether there is a process of this id, ours or another.
fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Unmounts and removes a name; `false` if it is still there.
fn remove_name(name: &str) -> bool {
    let path = Path::new(NETNS).join(name);
    // It may not be mounted yet, or no longer.
    let _ = umount2(&path, MntFlags::MNT_DETACH);
    fs::remove_file(&path).is_ok()
}

fn all_names() -> Vec<String> {
    let entries = fs::read_dir(NETNS).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| process_of(name).is_some()).collect()
}

fn names_of(process: u32) -> Vec<String> {
    all_names().into_iter().filter(|name| process_of(name) == Some(process)).collect()
}

/// The process id in a name.
fn process_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// Makes names mountable where other mount namespaces see the mounts appear and disappear, as `ip netns` does.
fn share_names() -> Result<(), NamespaceError> {
    fs::create_dir_all(NETNS).map_err(|source| NamespaceError::of(format!("make {NETNS}"), source))?;
    let none = None::<&str>;
    let share = || mount(none, NETNS, none, MsFlags::MS_SHARED | MsFlags::MS_REC, none);
    if share().is_err() {
        mount(Some(NETNS), NETNS, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)
            .and_then(|()| share())
            .map_err(|source| NamespaceError::of(format!("share {NETNS}"), source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_carries_its_process() {
        assert_eq!(process_of("ranpace-123-ue1"), Some(123));
        assert_eq!(process_of("ranpace-123-a-b"), Some(123));
        for other in ["ranpace-ue1", "ranpace-", "other-123-ue1", ""] {
            assert_eq!(process_of(other), None, "{other}");
        }
    }
}
