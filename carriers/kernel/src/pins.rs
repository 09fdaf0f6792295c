//! Controls that outlive their loader: what is pinned in the BPF file system, a folder for each.
//!
//! | file | what |
//! |---|---|
//! | `control` | the registration; the control is there as long as this is |
//! | `settings`, `choice` | maps: what options set, and which sockets are meant |
//! | `users`, `allocations`, `device` | maps of MELD, `rapid` and SIGMA: users' radio, what a proxy allocates, what the modem said last |
//! | `state` | map: what the control knows of each socket |
//! | `show` | the iterator: `cat` prints the sockets of the reader's network namespace |
//! | `cgroup-N-PROGRAM` | the attachment of a program to the control group of number N |

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::choice::{CHOICE, Prefix};
use crate::control::{Control, Kind, SETTINGS};
use crate::error::{CAPABILITIES, KernelError};
use crate::layout::Layout;
use crate::loaded::{Loaded, USERS, check_name, names, write};
use crate::sockets::{self, Socket};

/// How long `unload` waits for the name to become free. Ours; on an idle machine it takes milliseconds.
const REMOVAL: Duration = Duration::from_secs(2);
/// Where the BPF file system is.
pub(crate) const BPFFS: &str = "/sys/fs/bpf";
/// Our folder in it.
const FOLDER: &str = "/sys/fs/bpf/ranpace";

/// Maps that are pinned, by the names that programs give them, and their files.
const PINNED_MAPS: [(&str, &str); 3] = [(SETTINGS, "settings"), (CHOICE, "choice"), ("state", "state")];
/// Maps that some controls have, pinned under their names: of MELD, and of SIGMA: what its device said last, RTTmin of destinations.
const MAPS_OF_SOME: [&str; 3] = [USERS, "device", "destinations"];

/// A pinned control.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// The name under which the kernel has it.
    pub name: String,
    /// Its text form with options; `None` if another version loaded it.
    pub text: Option<String>,
    /// Control groups whose sockets take it, by the numbers of their folders.
    pub cgroups: Vec<u64>,
}

impl Loaded {
    /// Pins it, so that it outlives this process.
    pub fn pin(&mut self) -> Result<(), KernelError> {
        mount_bpffs()?;
        let folder = folder(self.name());
        if folder.is_dir() {
            // Of a loader that was killed: a control that is pinned would have this name, and this one could not have it.
            remove(&folder).map_err(KernelError::io("remove what was left in", &folder))?;
        }
        fs::create_dir_all(&folder).map_err(KernelError::pin("make", &folder))?;
        let pinned = self.pin_all(&folder);
        if pinned.is_err() {
            // Half of it would be worse than nothing; what cannot be removed is named by the error that is returned.
            let _ = remove(&folder);
        }
        pinned
    }

    fn pin_all(&mut self, folder: &Path) -> Result<(), KernelError> {
        for (section, file) in PINNED_MAPS {
            let mut map = self.map(section)?;
            map.pin(folder.join(file)).map_err(|error| KernelError::bpf(format!("pin {file}"), error))?;
        }
        for file in MAPS_OF_SOME {
            match self.shared_map(file, "") {
                Ok(mut map) => {
                    map.pin(folder.join(file))
                        .map_err(|error| KernelError::bpf(format!("pin {file}"), error))?;
                }
                Err(KernelError::TakesNone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        for (file, link) in self.links() {
            let link = link.as_mut().ok_or_else(|| KernelError::Missing(file.to_owned()))?;
            link.pin(folder.join(file)).map_err(|error| KernelError::bpf(format!("pin {file}"), error))?;
        }
        Ok(())
    }

    /// Attaches a pinned control to a control group; the attachment is pinned too.
    pub fn pin_to(&self, cgroup: &Path, to: Option<Prefix>) -> Result<(), KernelError> {
        let number = fs::metadata(cgroup).map_err(KernelError::io("open", cgroup))?.ino();
        for (program, mut link) in self.attach(cgroup, to)?.0 {
            link.pin(folder(self.name()).join(format!("cgroup-{number}-{program}")))
                .map_err(|error| KernelError::bpf("pin the attachment to the control group", error))?;
        }
        Ok(())
    }
}

/// A map of a pinned control that others write, and not every control has; `what` is what it takes.
pub(crate) fn shared_map(name: &str, file: &str, what: &'static str) -> Result<MapHandle, KernelError> {
    let folder = existing(name)?;
    let path = folder.join(file);
    if !path.exists() {
        return Err(KernelError::TakesNone { name: name.to_owned(), what });
    }
    MapHandle::from_pinned_path(&path)
        .map_err(|error| KernelError::bpf(format!("open {}", path.display()), error))
}

/// The pinned controls, by name.
pub fn list() -> Result<Vec<Pinned>, KernelError> {
    let entries = match fs::read_dir(FOLDER) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(KernelError::Rights { what: format!("reading {FOLDER}"), needed: CAPABILITIES });
        }
        Err(error) => return Err(KernelError::io("read", FOLDER)(error)),
    };
    let mut pinned = Vec::new();
    for entry in entries {
        let folder = entry.map_err(KernelError::io("read", FOLDER))?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let files = fs::read_dir(&folder).map_err(KernelError::io("read", &folder))?;
        let mut cgroups: Vec<u64> = files
            .filter_map(|file| {
                let name = file.ok()?.file_name();
                name.to_str()?.strip_prefix("cgroup-")?.split('-').next()?.parse().ok()
            })
            .collect();
        cgroups.sort_unstable();
        cgroups.dedup();
        let text = settings(&name)?.and_then(|(_, bytes)| text(&bytes));
        pinned.push(Pinned { name, text, cgroups });
    }
    pinned.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pinned)
}

/// Changes options of a pinned control, `key=value:key=value`, also for connections that use it already; returns its new text.
pub fn set(name: &str, options: &str) -> Result<String, KernelError> {
    let (map, old) = with_settings(name)?;
    let new = old.with(options)?;
    write(&map, &new.section()?, "write the settings")?;
    Ok(new.as_str().to_owned())
}

/// A pinned control with its options.
pub(crate) fn control(name: &str) -> Result<Control, KernelError> {
    Ok(with_settings(name)?.1)
}

fn with_settings(name: &str) -> Result<(MapHandle, Control), KernelError> {
    check_name(name).map_err(|_| not_loaded(name))?;
    let (map, bytes) = settings(name)?.ok_or_else(|| not_loaded(name))?;
    // The text is found only where the layout of the settings is that of this version.
    let control = text(&bytes).and_then(|text| Control::parse(&text).ok());
    Ok((map, control.ok_or_else(|| KernelError::OtherVersion(name.to_owned()))?))
}

/// Loads one program of a pinned control a second time, on the maps of the pinned one: libbpf runs no program by its pin.
pub(crate) fn load_again(name: &str, kind: &Kind, program: &str) -> Result<Object, KernelError> {
    load_program(name, kind, program, |map| {
        let pinned = PINNED_MAPS.into_iter().find(|(known, _)| map == *known).map(|(_, file)| file);
        let file = pinned.or_else(|| MAPS_OF_SOME.into_iter().find(|known| map == *known));
        let Some(path) = file.map(|file| folder(name).join(file)) else { return Ok(Source::New) };
        // A version that did not pin it.
        if path.exists() { Ok(Source::Pin(path)) } else { Err(KernelError::OtherVersion(name.to_owned())) }
    })
}

/// Where a map of a program comes from that is loaded a second time.
pub(crate) enum Source {
    /// It is pinned there.
    Pin(PathBuf),
    /// It is this one.
    Map(MapHandle),
    /// It is made anew.
    New,
}

/// Loads one program of a control a second time, on the maps that `source` has for their names.
pub(crate) fn load_program(
    name: &str,
    kind: &Kind,
    program: &str,
    source: impl Fn(&str) -> Result<Source, KernelError>,
) -> Result<Object, KernelError> {
    let failed = |error| KernelError::bpf(format!("load the program {program} of {name}"), error);
    let mut open = ObjectBuilder::default()
        .name("ranpace")
        .and_then(|builder| builder.open_memory(kind.object))
        .map_err(failed)?;
    for mut other in open.progs_mut().filter(|other| other.name() != program) {
        other.set_autoload(false);
    }
    for mut map in open.maps_mut() {
        let known = map.name().to_string_lossy().into_owned();
        if known == "control" {
            map.set_autocreate(false).map_err(failed)?;
            continue;
        }
        match source(&known)? {
            Source::Pin(path) => map.reuse_pinned_map(path).map_err(failed)?,
            Source::Map(handle) => map.reuse_fd(handle.as_fd()).map_err(failed)?,
            Source::New => {}
        }
    }
    open.load().map_err(failed)
}

/// The numbers of the maps that hold the states of pinned controls' sockets.
pub(crate) fn states() -> Result<BTreeSet<u32>, KernelError> {
    let mut numbers = BTreeSet::new();
    for pinned in list()? {
        match shared_map(&pinned.name, "state", "states of sockets") {
            Ok(map) => {
                let info = map.info().map_err(|error| KernelError::bpf("read a map", error))?;
                numbers.insert(info.info.id);
            }
            // Of a loader that was killed.
            Err(KernelError::TakesNone { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(numbers)
}

/// The sockets of a pinned control in this network namespace.
pub fn sockets(name: &str) -> Result<Vec<Socket>, KernelError> {
    let path = folder(name).join("show");
    match fs::read_to_string(&path) {
        Ok(text) => Ok(sockets::parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_loaded(name)),
        Err(error) => Err(KernelError::pin("read", path)(error)),
    }
}

/// Removes a pinned control. Connections that use it keep it until they end; new ones do not get it.
pub fn unload(name: &str) -> Result<(), KernelError> {
    let folder = existing(name)?;
    remove(&folder).map_err(KernelError::pin("remove", folder))?;
    // The kernel removes the registration of a link some time after its last file: until then the name is taken.
    let begun = Instant::now();
    while names()?.iter().any(|taken| taken == name) && begun.elapsed() < REMOVAL {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn remove(folder: &Path) -> io::Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.filter_map(|file| Some(file.ok()?.path())).collect();
    // Attachments first: nothing is to choose a control that is gone.
    files.sort_by_key(|file| !file.file_name().unwrap_or_default().to_string_lossy().starts_with("cgroup-"));
    for file in files {
        fs::remove_file(file)?;
    }
    fs::remove_dir(folder)
}

fn folder(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// The folder of a pinned control.
fn existing(name: &str) -> Result<PathBuf, KernelError> {
    let folder = folder(name);
    // A name with a slash would lead elsewhere.
    let exists = !name.contains('/') && !name.starts_with('.') && folder.is_dir();
    if exists { Ok(folder) } else { Err(not_loaded(name)) }
}

fn not_loaded(name: &str) -> KernelError {
    let all: Vec<String> = list().unwrap_or_default().into_iter().map(|pinned| pinned.name).collect();
    let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    KernelError::NotLoaded { name: name.to_owned(), all }
}

/// The map of the settings and its content; `None` if there is none.
fn settings(name: &str) -> Result<Option<(MapHandle, Vec<u8>)>, KernelError> {
    let path = folder(name).join("settings");
    if !path.exists() {
        return Ok(None);
    }
    let map = MapHandle::from_pinned_path(&path)
        .map_err(|error| KernelError::bpf(format!("open {}", path.display()), error))?;
    let bytes = map
        .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| KernelError::bpf(format!("read {}", path.display()), error))?;
    Ok(bytes.map(|bytes| (map, bytes)))
}

/// The text of the options in the settings: they carry it behind a mark, wherever it lies.
pub(crate) fn text(bytes: &[u8]) -> Option<String> {
    crate::control::KINDS.iter().find_map(|kind| {
        let layout = Layout::of(kind.object, SETTINGS).ok()?;
        let mut bytes = bytes.to_vec();
        if layout.size() != bytes.len() || layout.read(&bytes, "layout").ok()? != layout.id() {
            return None;
        }
        let text = layout.bytes(&mut bytes, "options").ok()?;
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        String::from_utf8(text[..end].to_vec()).ok()
    })
}

/// Mounts the BPF file system where it is expected, unless it is there.
fn mount_bpffs() -> Result<(), KernelError> {
    if is_bpffs() {
        return Ok(());
    }
    mount(Some("bpf"), BPFFS, Some("bpf"), MsFlags::empty(), None::<&str>)
        .map_err(|error| KernelError::io("mount the BPF file system at", BPFFS)(error.into()))
}

pub(crate) fn is_bpffs() -> bool {
    statfs(BPFFS).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC)
}
