//! Controls that are in the kernel without being pinned: those of `ranpace kernel exec`, and removed ones that connections still use.
//!
//! The kernel itself is asked, so that nothing is to be kept: the map of a registration (`struct_ops`) has the control's name and the
//! numbers of its programs, these have the numbers of their maps, and the maps have its options and the states of its sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Composite, MemberAttr, Struct};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{Iter, MapCore as _, MapFlags, MapHandle, MapType, ProgramType};

use crate::cgroup;
use crate::choice::CHOICE;
use crate::control::{Control, SETTINGS};
use crate::error::KernelError;
use crate::layout::Layout;
use crate::loaded::{names, program};
use crate::pins::{self, Source};
use crate::sockets::{self, Socket};

/// The map of a registration, as the programs name it.
const REGISTRATION: &str = "control";
/// What each socket's state is in.
const STATE: &str = "state";
/// Operations of which each of our controls has some: their programs lead to the maps.
const OPERATIONS: [&str; 5] = ["init", "ssthresh", "cong_avoid", "cong_control", "pkts_acked"];

/// A control that is in the kernel and is not pinned.
#[derive(Clone, Debug)]
pub struct Running {
    /// The name under which the kernel has it, or had it.
    pub name: String,
    /// Its text form with options; `None` if another version loaded it.
    pub text: Option<String>,
    /// New connections can take it. If not, it was removed, and connections that it had may be left.
    pub registered: bool,
    /// Control groups whose sockets take it, by the numbers of their folders.
    pub cgroups: Vec<u64>,
    /// Its maps by their names.
    maps: BTreeMap<String, u32>,
}

impl Running {
    /// Its sockets in this network namespace. None are listed of a control that another version loaded, whose states lie elsewhere.
    ///
    /// # Errors
    ///
    /// The kernel refused the program that lists them.
    pub fn sockets(&self) -> Result<Vec<Socket>, KernelError> {
        let Some(text) = &self.text else { return Ok(Vec::new()) };
        let control = Control::parse(text)?;
        let object = pins::load_program(&self.name, control.kind(), "show", |map| {
            Ok(match self.maps.get(map) {
                Some(&id) => Source::Map(open(id)?),
                None => Source::New,
            })
        })?;
        let failed = |error| KernelError::bpf("list sockets", error);
        let link = program(&object, "show")?.attach().map_err(failed)?;
        sockets::read(&mut Iter::new(&link).map_err(failed)?, &self.name)
    }
}

/// Controls in the kernel that are not pinned, by name.
///
/// It takes CAP_SYS_ADMIN to ask the kernel for them; without it there are none.
///
/// # Errors
///
/// The kernel's own type information, or a map, cannot be read.
pub fn running() -> Result<Vec<Running>, KernelError> {
    let registrations: Vec<u32> = MapInfoIter::default()
        .filter(|map| map.ty == MapType::StructOps && map.name == REGISTRATION)
        .map(|map| map.id)
        .collect();
    if registrations.is_empty() {
        return Ok(Vec::new());
    }
    let operations = Operations::of_kernel()?;
    let programs = Programs::all();
    let (known, pinned) = (names()?, pins::states()?);
    let mut found = Vec::new();
    for id in registrations {
        let Some(bytes) = content(id)? else { continue };
        let name = operations.name(&bytes);
        let maps = programs.maps_of(operations.programs(&bytes));
        let Some(state) = maps.get(STATE) else { continue };
        if pinned.contains(state) {
            continue;
        }
        let settings = maps.get(SETTINGS).map(|&id| content(id)).transpose()?.flatten();
        let text = settings.and_then(|bytes| pins::text(&bytes));
        let cgroups = text.as_deref().map(|text| programs.cgroups_of(&name, text)).transpose()?;
        let registered = known.contains(&name);
        found.push(Running { name, text, registered, cgroups: cgroups.unwrap_or_default(), maps });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The folders of control groups of these numbers, with the names of the programs in each.
pub fn cgroup_folders(numbers: &[u64]) -> Vec<(PathBuf, Vec<String>)> {
    let Ok(mount) = cgroup::mount_point() else { return Vec::new() };
    let (mut found, mut folders) = (Vec::new(), vec![mount]);
    while let Some(folder) = folders.pop() {
        if fs::metadata(&folder).is_ok_and(|data| numbers.contains(&data.ino())) {
            found.push((folder.clone(), programs_in(&folder)));
        }
        // One that is gone by now has nobody in it.
        let inner = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    found
}

/// The programs of a control group's processes, each once.
fn programs_in(folder: &Path) -> Vec<String> {
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let names =
        processes.lines().filter_map(|process| fs::read_to_string(format!("/proc/{process}/comm")).ok());
    let names: BTreeSet<String> = names.map(|name| name.trim().to_owned()).collect();
    names.into_iter().collect()
}

fn open(id: u32) -> Result<MapHandle, KernelError> {
    MapHandle::from_map_id(id).map_err(|error| KernelError::bpf(format!("open map {id}"), error))
}

/// The only entry of a map; `None` if the map is gone by now.
fn content(id: u32) -> Result<Option<Vec<u8>>, KernelError> {
    let Ok(map) = MapHandle::from_map_id(id) else { return Ok(None) };
    map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| KernelError::bpf(format!("read map {id}"), error))
}

/// Where name and operations lie in the map of a registration, which is laid out as the running kernel's types are.
struct Operations {
    name: usize,
    places: Vec<usize>,
}

impl Operations {
    fn of_kernel() -> Result<Self, KernelError> {
        let btf = Btf::from_vmlinux().map_err(|error| KernelError::bpf("read the kernel's types", error))?;
        let place = |of: &str, member: &str| {
            let missing = || KernelError::Missing(format!("{member} of the kernel's {of}"));
            let composite: Struct<'_> = btf.type_by_name(of).ok_or_else(missing)?;
            let members = Composite::from(composite);
            let found = members.iter().find_map(|found| match found.attr {
                MemberAttr::Normal { offset } if found.name.is_some_and(|name| name == member) => {
                    Some(offset as usize / 8)
                }
                _ => None,
            });
            found.ok_or_else(missing)
        };
        let data = place("bpf_struct_ops_tcp_congestion_ops", "data")?;
        let within = |member| Ok(data + place("tcp_congestion_ops", member)?);
        Ok(Self {
            name: within("name")?,
            places: OPERATIONS.into_iter().map(within).collect::<Result<_, KernelError>>()?,
        })
    }

    fn name(&self, bytes: &[u8]) -> String {
        let name = bytes.get(self.name..).unwrap_or_default();
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..end]).into_owned()
    }

    /// The numbers of its programs: what the kernel shows in place of pointers.
    fn programs(&self, bytes: &[u8]) -> impl Iterator<Item = u32> {
        self.places.iter().filter_map(|&place| {
            let number = bytes.get(place..place + 8)?.try_into().ok()?;
            u32::try_from(u64::from_ne_bytes(number)).ok()
        })
    }
}

/// All programs of the kernel, by their numbers, with the numbers of their maps.
struct Programs {
    by_number: BTreeMap<u32, (ProgramType, Vec<u32>)>,
    /// The names of all maps.
    maps: BTreeMap<u32, String>,
}

impl Programs {
    fn all() -> Self {
        let programs = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true));
        Self {
            by_number: programs.map(|program| (program.id, (program.ty, program.map_ids))).collect(),
            maps: MapInfoIter::default()
                .map(|map| (map.id, map.name.to_string_lossy().into_owned()))
                .collect(),
        }
    }

    /// The maps of these programs, by their names.
    fn maps_of(&self, programs: impl Iterator<Item = u32>) -> BTreeMap<String, u32> {
        let of_one = |number: u32| {
            let program = self.by_number.get(&number).filter(|(ty, _)| *ty == ProgramType::StructOps);
            program.map(|(_, maps)| maps.as_slice()).unwrap_or_default()
        };
        let named = |&id: &u32| Some((self.maps.get(&id)?.clone(), id));
        programs.flat_map(of_one).filter_map(named).collect()
    }

    /// The control groups whose programs choose the control of this name.
    fn cgroups_of(&self, name: &str, text: &str) -> Result<Vec<u64>, KernelError> {
        let layout = Layout::of(Control::parse(text)?.kind().object, CHOICE)?;
        let mut found = BTreeSet::new();
        for link in LinkInfoIter::default() {
            let LinkTypeInfo::Cgroup(link_to) = link.info else { continue };
            let Some((_, maps)) = self.by_number.get(&link.prog_id) else { continue };
            for &map in maps.iter().filter(|map| self.maps.get(map).is_some_and(|name| name == CHOICE)) {
                let Some(mut bytes) = content(map)?.filter(|bytes| bytes.len() == layout.size()) else {
                    continue;
                };
                let chosen = layout.bytes(&mut bytes, "choice.name")?;
                if chosen.starts_with(name.as_bytes()) && chosen.get(name.len()).is_none_or(|&byte| byte == 0)
                {
                    found.insert(link_to.cgroup_id);
                }
            }
        }
        Ok(found.into_iter().collect())
    }
}
