//! The controls of `ranpace kernel` for one emulation: its process loads what its scenario's flows ask for, and feeds the one that
//! is told something (by a modem, the edge or a PEP) from the emulation's own radio information, or from a real PEP.
//!
//! The flows choose them by name, as any program may. Client-driven ones have an option on their segments, so the process is in a
//! control group that has it for those sockets which have chosen the control: a flow of the kernel's CUBIC beside them has none.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sys::stat::Mode;
use ranpace_emulator::addresses::v4;
use ranpace_emulator::{Outcome, Plan, Topology};
use ranpace_kernel::{Cgroup, Control, KernelError, Loaded, Radio};
use ranpace_scenario::{Scenario, Transport};

use crate::common;
use crate::failure::Failure;
use crate::hint_source::Source;
use crate::kernel::feed::{Asking, Hints, Listener, Origin, Told, Users};

/// Tries to load a control and to make a control group; fails if the kernel or the user's rights do not allow it.
pub fn check() -> Result<(), Failure> {
    let control = Control::parse("cdbev2")?;
    let loaded = Loaded::unnamed(&control).and_then(|_| Cgroup::new());
    loaded
        .map(drop)
        .map_err(|error| Failure::ours(format!("skipped: needs what `ranpace kernel` needs: {error}")))
}

/// Loads those controls of a scenario's flows that the kernel does not have, and returns them by their names in the scenario.
fn load(scenario: &Scenario) -> Result<Vec<(String, Arc<Loaded>)>, Failure> {
    let mut all: Vec<(String, Arc<Loaded>)> = Vec::new();
    for flow in &scenario.flows {
        let Transport::Tcp { algorithm, .. } = &flow.transport else { continue };
        if all.iter().any(|(text, _)| text == algorithm.as_str()) {
            continue;
        }
        match Control::parse(algorithm.as_str()) {
            Ok(control) => all.push((algorithm.as_str().to_owned(), Arc::new(Loaded::unnamed(&control)?))),
            Err(KernelError::NotInKernel { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

/// Emulates with the controls that the scenario asks for. With the file of an `agent`, a control that hears a PEP hears those that it
/// names, in place of the emulation's.
pub fn with(
    scenario: &Scenario,
    topology: &Topology,
    plan: &mut Plan,
    agent: Option<&Path>,
    emulate: impl FnOnce(&Plan, &mut dyn FnMut(&[String])) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let loaded = load(scenario)?;
    if loaded.is_empty() {
        return emulate(plan, &mut |_| {});
    }
    if let Some(workloads) = &mut plan.workloads {
        workloads.loaded =
            loaded.iter().map(|(text, control)| (text.clone(), control.name().to_owned())).collect();
    }
    let cgroup = Cgroup::new()?;
    let attached = loaded.iter().map(|(_, control)| control.attach_to_own(cgroup.path()));
    let attached = attached.collect::<Result<Vec<_>, _>>()?;
    cgroup.enter()?;
    let outcome = match fed(scenario, topology, &loaded, agent)? {
        Some(feed) => feed.emulate(plan, emulate),
        None => emulate(plan, &mut |_| {}),
    };
    drop(attached);
    outcome
}

/// Where a feed comes from.
enum Feed {
    /// A named pipe in this folder, which is made for it, and to which the emulation writes.
    Emulation(PathBuf),
    /// PEPs, by the file of their agent, which the emulation has.
    Peps(PathBuf),
}

/// A feed of radio information to a control.
struct Fed {
    origin: Feed,
    control: Arc<Loaded>,
    users: Users,
    /// Number, among the topology's hosts, of the one that has the connections.
    place: usize,
}

/// The feed of the first control that reads radio information, at that end of the first flow where the control runs; `None` if no
/// control reads any.
fn fed(
    scenario: &Scenario,
    topology: &Topology,
    loaded: &[(String, Arc<Loaded>)],
    agent: Option<&Path>,
) -> Result<Option<Fed>, Failure> {
    let told = loaded.iter().find_map(|(_, control)| Some((control, control.control().kind().radio()?)));
    let (Some((control, radio)), Some(user), Some(flow)) =
        (told, scenario.users.first(), scenario.flows.first())
    else {
        return Ok(None);
    };
    let place = |host: usize| topology.hosts.iter().position(|known| *known == host);
    let (Some(of_user), Some(of_sender)) = (place(user.host), place(flow.from)) else { return Ok(None) };
    let device = Users::from(user.name.clone());
    let (place, users) = match radio {
        Radio::Receivers | Radio::Senders => (of_user, device),
        Radio::Users => (of_sender, device.at(v4(of_user).into())),
        // A PEP's reports name the connections themselves.
        _ => (of_sender, device),
    };
    if let (Radio::Pep, Some(agent)) = (&radio, agent) {
        let origin = Feed::Peps(agent.to_owned());
        return Ok(Some(Fed { origin, control: Arc::clone(control), users, place }));
    }
    let folder = std::env::temp_dir().join(format!("ranpace-validate-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Failure::ours)?;
    Ok(Some(Fed { origin: Feed::Emulation(folder), control: Arc::clone(control), users, place }))
}

impl Fed {
    fn emulate(
        self,
        plan: &mut Plan,
        emulate: impl FnOnce(&Plan, &mut dyn FnMut(&[String])) -> Result<Outcome, Failure>,
    ) -> Result<Outcome, Failure> {
        let from = match &self.origin {
            Feed::Emulation(folder) => {
                let pipe = folder.join("hints");
                nix::unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).map_err(Failure::ours)?;
                plan.views.hints = Some(pipe.clone());
                Origin::Lines(pipe)
            }
            Feed::Peps(agent) => Origin::Peps(agent.clone()),
        };
        let over = Arc::new(AtomicBool::new(false));
        let listening = Mutex::new(None);
        let outcome = emulate(plan, &mut |names| {
            let Some(name) = names.get(self.place).cloned() else { return };
            let (control, users) = (Arc::clone(&self.control), self.users.clone());
            let (from, over) = (from.clone(), Arc::clone(&over));
            let thread = thread::spawn(move || {
                ranpace_emulator::within(&name, move || {
                    let mut listener = Listener::of(&control, users)?;
                    let mut hints = match &from {
                        Origin::Lines(pipe) => Hints::Lines(Source::file(pipe)?),
                        from => listener.hints(from, &Asking::default())?,
                    };
                    listener.follow(&mut hints, &over)
                })
            });
            if let Ok(mut listening) = listening.lock() {
                *listening = Some(thread);
            }
        });
        over.store(true, Ordering::Relaxed);
        let told = listening.into_inner().ok().flatten().map(thread::JoinHandle::join);
        if let Feed::Emulation(folder) = &self.origin {
            // Nothing else is in it; what cannot be removed lies where temporary files do.
            let _ = std::fs::remove_dir_all(folder);
        }
        let outcome = outcome?;
        let told: Told = match told {
            Some(Ok(told)) => told.map_err(Failure::ours)??,
            _ => return Err(Failure::ours("the feed of radio information ended early")),
        };
        if told.skipped > 0 || told.hints == 0 {
            return Err(Failure::ours(format!("the feed of radio information: {told}")));
        }
        common::say(&format!("radio information: {told}"));
        Ok(outcome)
    }
}
