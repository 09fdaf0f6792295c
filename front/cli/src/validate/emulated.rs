//! `ranpace validate tcp` and `kernel`: what the simulator plays, over the running kernel too.
//!
//! Each emulation is a process of its own: `ranpace validate-kernel`, which ends when its standard input does. It loads the controls
//! that its scenario asks for, where they are not the kernel's own ([`controls`]). `ranpace reproduce --real` emulates in the same way.

#[cfg(feature = "kernel")]
pub mod controls;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use ranpace_emulator::{Delivery, Plan, Topology, Views, Workloads, own_folder};
use ranpace_lab::validate::tcp::{self, Attempt, Found, Grid, How, Kernel, RECORDING, TcpError};
use ranpace_lab::{Job, Origin, Store};

use super::Validate;
use crate::emulate::INVALID;
use crate::emulate::download::Download;
use crate::emulate::real::Daemons;
use crate::failure::Failure;
use crate::{common, interrupt};

/// Name of the folder of results.
const fn folder(grid: Grid) -> &'static str {
    match grid {
        Grid::Plain => "validate-tcp",
        Grid::Controls => "validate-kernel",
    }
}

/// The interval of checks for a request to stop the emulation.
const BEAT: Duration = Duration::from_millis(50);

/// Runs the command.
pub fn run(options: &Validate, grid: Grid) -> Result<(), Failure> {
    ranpace_emulator::become_root().and_then(|()| ranpace_emulator::check()).map_err(|error| {
        Failure::ours(format!("skipped: needs root, or what else `ranpace emulate` needs: {error}"))
    })?;
    #[cfg(feature = "kernel")]
    if grid == Grid::Controls {
        controls::check()?;
    }
    let common = options.common();
    let store = common.store(folder(grid))?;
    let kernel = Processes {
        folder: folder(grid),
        release: release(grid),
        daemons: false,
        out: &options.out,
        store: &store,
        traces: options.traces.as_deref(),
    };
    let how = How {
        grid,
        quick: options.quick,
        only: &options.only,
        side_by_side: options.threads,
        store: &store,
        stop: interrupt::flag(),
        kernel: &kernel,
    };
    let found = tcp::play(&how, &mut common.traces()).map_err(|error| match error {
        TcpError::NoRow { .. } => Failure::asked(error),
        error => Failure::ours(error),
    })?;
    options.print(&found.rows)?;
    conclude(&found, &store)
}

/// Prints skipped and invalid rows and the verdict, and returns the exit status.
fn conclude(found: &Found, store: &Store) -> Result<(), Failure> {
    if !found.skipped.is_empty() {
        common::say(&format!(
            "skipped: needs the recording {RECORDING} (--traces DIR; CONTRIBUTING.md says where it comes from): {}",
            found.skipped.join("; ")
        ));
    }
    for (row, why) in &found.invalid {
        common::say(&format!("invalid: {row}: {why}"));
    }
    store.write_json("rows.json", &found.rows)?;
    let (ok, judged) = found.agreeing();
    let (valid, all) = (found.valid, found.valid + found.invalid.len());
    common::say(&format!(
        "{ok} of {judged} judged figures agree; {valid} of {all} rows are valid, {} emulations were repeated",
        found.repeated
    ));
    if found.left > 0 {
        return Err(Failure::Interrupted(format!(
            "stopped; {} rows are not complete; the same command resumes with them",
            found.left
        )));
    }
    if !found.is_enough() {
        let why = format!("only {valid} of {all} rows are valid: the machine could not keep up");
        return Err(Failure::Status(INVALID, Some(why)));
    }
    match found.agrees() {
        true => Ok(()),
        false => Err(Failure::ours(format!("{} of {judged} judged figures do not agree", judged - ok))),
    }
}

/// Emulations by processes of this program.
pub struct Processes<'a> {
    /// Folder that keeps the results, below `out`: that of `store`.
    pub folder: &'a str,
    /// What runs there: results of others are not used.
    pub release: String,
    /// Proxies and PEPs are daemons, and not modelled.
    pub daemons: bool,
    /// Folder of results.
    pub out: &'a Path,
    /// See `folder`.
    pub store: &'a Store,
    /// Folder of recorded traces.
    pub traces: Option<&'a Path>,
}

/// The kernel's version, and what was loaded into it.
pub fn release(grid: Grid) -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    match grid {
        Grid::Plain => release.to_owned(),
        #[cfg(feature = "kernel")]
        Grid::Controls => format!("{release}, programs {:016x}", ranpace_kernel::fingerprint()),
        #[cfg(not(feature = "kernel"))]
        Grid::Controls => release.to_owned(),
    }
}

impl Kernel for Processes<'_> {
    fn play(&self, job: &Job, origin: &Origin) -> Attempt {
        self.try_play(job, origin).unwrap_or_else(|error| Attempt::Failed(error.to_string()))
    }

    fn release(&self) -> String {
        self.release.clone()
    }
}

impl Processes<'_> {
    fn try_play(&self, job: &Job, origin: &Origin) -> io::Result<Attempt> {
        let file = format!("{}.{}.toml", common::folder_name(&job.label), job.scenario.seed);
        let file = self.store.write(&file, job.text.as_bytes()).map_err(io::Error::other)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("validate-kernel").arg(&file).arg("--version").arg(&origin.version);
        command.arg("--out").arg(self.out).arg("--folder").arg(self.folder);
        if self.daemons {
            command.arg("--daemons");
        }
        if let Some(traces) = self.traces {
            command.arg("--traces").arg(traces);
        }
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let mut leash = child.stdin.take();
        let error = child.stderr.take();
        let said = thread::spawn(move || {
            let mut text = String::new();
            error.map(|mut error| error.read_to_string(&mut text)).transpose().map(|_| text)
        });
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if interrupt::is_set() {
                drop(leash.take());
            }
            thread::sleep(BEAT);
        };
        let said = said.join().ok().and_then(Result::ok).unwrap_or_default();
        let last = said.lines().last().unwrap_or("it said nothing");
        let last = last.strip_prefix("ranpace: ").unwrap_or(last).to_owned();
        Ok(match status.code() {
            Some(0) => Attempt::Kept,
            Some(code) if code == i32::from(INVALID) => Attempt::Invalid(last),
            Some(130) => Attempt::Stopped,
            _ if interrupt::is_set() => Attempt::Stopped,
            _ => Attempt::Failed(format!("{status}: {last}")),
        })
    }
}

/// One emulation of `ranpace validate tcp` or `kernel`, or of `ranpace reproduce --real`, which call it; it ends early when its standard input does
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Inside {
    /// Scenario file
    scenario: PathBuf,
    /// Version under which the result is kept, beside the scenario and its files
    #[arg(long)]
    version: String,
    /// Folder that keeps it, below --out
    #[arg(long)]
    folder: String,
    /// Proxies and PEPs of the scenario are daemons, and the ends of its only flow programs if it is over QUIC
    #[arg(long)]
    daemons: bool,
    #[command(flatten)]
    common: common::Common,
}

impl Inside {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let text = common::read_text(&self.scenario)?;
        let file = self.scenario.display().to_string();
        let job = Job::new("", text, &file, &mut self.common.traces())?;
        let origin = Origin { version: self.version, ..job.origin() };
        // A scheme that is compared with a proxy may have none.
        let has_daemons = self.daemons && !(job.scenario.proxies.is_empty() && job.scenario.peps.is_empty());
        let of = if has_daemons { Topology::with_routers } else { Topology::new };
        let ways = of(&job.scenario).map_err(Failure::asked)?;
        let daemons = has_daemons.then(|| Daemons::of(&job.scenario, &ways, None)).transpose()?;
        ranpace_emulator::become_root().map_err(Failure::ours)?;
        let store = self.common.store(&self.folder)?;
        let download = (self.daemons && !has_daemons).then(|| {
            let folder = store.folder().join("programs");
            Download::of(&job.scenario, &ways, &folder)
        });
        let download = download.transpose()?.flatten();
        let stop = interrupt::flag();
        thread::spawn(move || {
            // Nothing is ever written.
            let _ = io::stdin().read(&mut [0]);
            stop.store(true, Ordering::Relaxed);
        });
        let inside = (std::env::current_exe().map_err(Failure::ours)?, vec!["emulate-inside".into()]);
        let mut plan = Plan {
            main: None,
            beside: Vec::new(),
            limit: Some(job.scenario.duration),
            workloads: Some(Workloads::default()),
            delivery: Delivery::Gso,
            saves_power: false,
            views: Views::default(),
            inside,
            ..Plan::default()
        };
        let emulate = |plan: &Plan, ready: &mut dyn FnMut(&[String])| {
            ranpace_emulator::emulate(&ways, plan, stop, ready).map_err(Failure::ours)
        };
        if let Some(download) = &download {
            download.add_to(&mut plan);
        }
        let mut outcome = match daemons {
            Some(daemons) => {
                let ready = &mut |_: &[String], _: &[String]| {};
                daemons.emulate(&job.scenario, &ways, &mut plan, &own_folder(), stop, ready)?
            }
            #[cfg(feature = "kernel")]
            None => controls::with(&job.scenario, &ways, &mut plan, None, emulate)?,
            #[cfg(not(feature = "kernel"))]
            None => emulate(&plan, &mut |_| {})?,
        };
        if outcome.interrupted {
            return Err(Failure::Interrupted("stopped".to_owned()));
        }
        if let Some(why) = outcome.timeliness.invalid() {
            return Err(Failure::Status(INVALID, Some(why)));
        }
        if let Some(download) = &download {
            download.finish(&mut outcome)?;
        }
        let folder = store.save(&origin, &outcome.result)?;
        ranpace_lab::put(&folder.join("machine.txt"), outcome.timeliness.line().as_bytes())?;
        Ok(())
    }
}
