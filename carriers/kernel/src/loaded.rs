//! A control in the kernel.

use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{Iter, Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, PrintLevel};

use crate::choice::{CHOICE, Choice, Prefix};
use crate::control::{Control, SETTINGS};
use crate::error::KernelError;
use crate::sockets::{self, Socket};

/// The map of MELD that has what is known of users.
pub(crate) const USERS: &str = "users";
/// The maps of `rapid` that have what is allocated, and the places of connections there.
pub(crate) const ALLOCATIONS: &str = "allocations";
pub(crate) const PLACES: &str = "places";
/// The longest name of a control, and the byte that ends it (TCP_CA_NAME_MAX).
const NAME_ROOM: usize = 16;

/// A control that the kernel has, until this is dropped; connections that use it keep it until they end.
pub struct Loaded {
    name: String,
    control: Control,
    object: Object,
    /// The registration of the control, and the iterator that prints its sockets.
    registration: Option<Link>,
    show: Option<Link>,
}

/// What makes the sockets of a control group take a control: programs by their names. It ends when this is dropped.
pub struct Attachment(pub(crate) Vec<(String, Link)>);

impl Loaded {
    /// Loads a control and registers it as `name`.
    pub fn new(control: &Control, name: &str) -> Result<Self, KernelError> {
        check_name(name)?;
        if names()?.iter().any(|taken| taken == name) {
            return Err(KernelError::Exists(name.to_owned()));
        }
        let object = load(control, name)?;
        let mut loaded =
            Self { name: name.to_owned(), control: control.clone(), object, registration: None, show: None };
        write(&loaded.map(SETTINGS)?, &control.section()?, "write the settings")?;
        loaded.registration = Some(loaded.register()?);
        let show = program(&loaded.object, "show")?.attach();
        loaded.show = Some(show.map_err(|error| KernelError::bpf("attach the iterator of sockets", error))?);
        Ok(loaded)
    }

    /// The same with the first free name of the control's own, `c2tcp_1` and so on: several processes may each have their own.
    pub fn unnamed(control: &Control) -> Result<Self, KernelError> {
        let mut name = String::new();
        for number in 1..=9999 {
            let suffix = format!("_{number}");
            name = control.default_name();
            name.truncate(NAME_ROOM - 1 - suffix.len());
            name.push_str(&suffix);
            match Self::new(control, &name) {
                Err(KernelError::Exists(_)) => {}
                done => return done,
            }
        }
        Err(KernelError::Exists(name))
    }

    fn register(&mut self) -> Result<Link, KernelError> {
        let map = self.object.maps_mut().find(|map| map.name() == "control");
        let link = map.ok_or_else(|| KernelError::Missing("map control".to_owned()))?.attach_struct_ops();
        link.map_err(|error| match error.kind() {
            libbpf_rs::ErrorKind::AlreadyExists => KernelError::Exists(self.name.clone()),
            _ => KernelError::bpf(format!("register the control {:?}", self.name), error),
        })
    }

    /// The name under which the kernel has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The control.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Its sockets in this network namespace.
    pub fn sockets(&self) -> Result<Vec<Socket>, KernelError> {
        let link = self.show.as_ref().ok_or_else(|| KernelError::Missing("iterator".to_owned()))?;
        let mut iterator = Iter::new(link).map_err(|error| KernelError::bpf("list sockets", error))?;
        sockets::read(&mut iterator, &self.name)
    }

    /// Sockets of the control group take this control from now on, for as long as the attachment is kept.
    pub fn attach(&self, cgroup: &Path, to: Option<Prefix>) -> Result<Attachment, KernelError> {
        self.attach_by(cgroup, &Choice { name: self.name.clone(), to, own: false })
    }

    /// Sockets of the control group whose program has chosen this control itself (TCP_CONGESTION, before the connection begins) have
    /// its option on their segments too, from now on and for as long as the attachment is kept; others are left alone.
    pub fn attach_to_own(&self, cgroup: &Path) -> Result<Attachment, KernelError> {
        self.attach_by(cgroup, &Choice { name: self.name.clone(), to: None, own: true })
    }

    fn attach_by(&self, cgroup: &Path, choice: &Choice) -> Result<Attachment, KernelError> {
        let bytes = choice.section(self.control.kind().object)?;
        write(&self.map(CHOICE)?, &bytes, "write which sockets are meant")?;
        let folder = std::fs::File::open(cgroup).map_err(KernelError::io("open", cgroup))?;
        let links = self.object.progs_mut().filter(|program| {
            let section = program.section().to_string_lossy();
            section == "sockops" || section.starts_with("cgroup_skb/")
        });
        let links = links.map(|program| {
            let link = program.attach_cgroup(folder.as_raw_fd()).map_err(|error| {
                KernelError::bpf(format!("attach to the control group {}", cgroup.display()), error)
            })?;
            Ok((program.name().to_string_lossy().into_owned(), link))
        });
        links.collect::<Result<_, _>>().map(Attachment)
    }

    /// Its programs and maps.
    pub(crate) fn object(&self) -> &Object {
        &self.object
    }

    /// A map of its own, by the name that the programs give it.
    pub(crate) fn map(&self, name: &str) -> Result<MapHandle, KernelError> {
        let map = self.object.maps().find(|map| map.name() == name);
        let map = map.ok_or_else(|| KernelError::Missing(format!("map {name}")))?;
        MapHandle::try_from(&map).map_err(|error| KernelError::bpf(format!("open the map {name}"), error))
    }

    /// A map that others write, and not every control has; `what` is what it takes.
    pub(crate) fn shared_map(&self, name: &str, what: &'static str) -> Result<MapHandle, KernelError> {
        if self.object.maps().any(|map| map.name() == name) {
            self.map(name)
        } else {
            Err(KernelError::TakesNone { name: self.name.clone(), what })
        }
    }

    /// What keeps the programs in the kernel, by the names of the files that they are pinned as.
    pub(crate) fn links(&mut self) -> [(&'static str, &mut Option<Link>); 2] {
        [("control", &mut self.registration), ("show", &mut self.show)]
    }
}

/// Whether the kernel takes these programs: loads them, and nothing more.
pub(crate) fn try_load(control: &Control) -> Result<(), KernelError> {
    load(control, "ranpace-check").map(drop)
}

fn load(control: &Control, name: &str) -> Result<Object, KernelError> {
    let mut open = ObjectBuilder::default()
        .name("ranpace")
        .and_then(|builder| builder.open_memory(control.kind().object))
        .map_err(|error| KernelError::bpf(format!("read the programs of {}", control.kind().name), error))?;
    for mut map in open.maps_mut() {
        if map.name() == "control" {
            // The name is the first field of the structure; see bpf/kernel.h.
            let place = map.initial_value_mut().and_then(|bytes| bytes.get_mut(..NAME_ROOM));
            let place = place.ok_or_else(|| KernelError::Missing("name of the control".to_owned()))?;
            place.fill(0);
            place[..name.len()].copy_from_slice(name.as_bytes());
        }
    }
    // Where rights are missing libbpf warns of limits of memory, which only distracts; what the verifier says is worth its lines.
    libbpf_rs::set_print(Some((PrintLevel::Warn, collect_warning)));
    let loaded = open.load();
    let said = std::mem::take(&mut *WARNINGS.lock().unwrap_or_else(PoisonError::into_inner));
    loaded.map_err(|error| {
        let what = format!("load {}", control.kind().name);
        if said.contains("PROG LOAD LOG") {
            eprint!("{said}");
            // The verifier's refusal has the number of a missing right (EACCES).
            return KernelError::refused(what, error);
        }
        KernelError::bpf(what, error)
    })
}

/// What libbpf has warned of.
static WARNINGS: Mutex<String> = Mutex::new(String::new());

fn collect_warning(_level: PrintLevel, text: String) {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
}

/// The names that the kernel has already. It would refuse them too, but only what is loaded, and with a line in its log.
pub(crate) fn names() -> Result<Vec<String>, KernelError> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = std::fs::read_to_string(path).map_err(KernelError::io("read", path))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

pub(crate) fn check_name(name: &str) -> Result<(), KernelError> {
    let fits = (1..NAME_ROOM).contains(&name.len());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
    // "." and ".." are folders.
    if fits && plain && !name.starts_with('.') { Ok(()) } else { Err(KernelError::BadName(name.to_owned())) }
}

/// Writes the only entry of the map behind a section.
pub(crate) fn write(map: &impl libbpf_rs::MapCore, bytes: &[u8], what: &str) -> Result<(), KernelError> {
    map.update(&0_u32.to_ne_bytes(), bytes, MapFlags::ANY).map_err(|error| KernelError::bpf(what, error))
}

pub(crate) fn program<'a>(object: &'a Object, name: &str) -> Result<libbpf_rs::ProgramMut<'a>, KernelError> {
    object
        .progs_mut()
        .find(|program| program.name() == name)
        .ok_or_else(|| KernelError::Missing(format!("program {name}")))
}
