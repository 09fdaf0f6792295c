//! `ranpace validate`.

use clap::ValueEnum;
use ranpace_lab::validate::{self, Row};

use crate::failure::Failure;
use crate::{interrupt, output};

/// Compare models with standards, theory, another simulator and the kernel
///
/// Each row shows the expected value, the measured one, and by how much they may differ. Rows without a tolerance are printed
/// and not judged. For `radio` the exit status is 0 if all judged rows are ok, and 1 otherwise. For `tcp` it is 0 if at least
/// 90 % of them are ok, 1 if fewer are, and 99 if the machine did not keep up in more than a fifth of the emulations.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace validate radio\n  \
    ranpace validate radio --json\n  \
    ranpace validate tcp --quick          12 rows, about 3 minutes; needs root\n  \
    ranpace validate tcp                  all rows, about 40 minutes\n\n\
    docs/validate.md says what is compared, and docs/fidelity.md what was found.")]
pub struct Validate {
    /// What to compare
    #[arg(value_enum)]
    what: What,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
    /// With `tcp`: play only some of the rows, once each
    #[arg(long)]
    quick: bool,
    /// With `tcp`: folder that keeps the runs; the same command resumes from it
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: std::path::PathBuf,
    /// Threads [default: one per core]; with `tcp`, emulations side by side [default: one more than cores, at most 3]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Folder of recorded traces, for `tcp` [env: RANPACE_TRACES] [default: traces]
    #[arg(long, value_name = "DIR")]
    traces: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The radio access network: block sizes, path loss, fading, block errors
    Radio,
    /// TCP beside the kernel's reno, cubic and bbr, in real time
    Tcp,
}

impl Validate {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Radio if self.quick => Err(Failure::asked("--quick goes with `ranpace validate tcp`")),
            What::Radio => self.radio(),
            #[cfg(target_os = "linux")]
            What::Tcp => tcp::run(&self),
            #[cfg(not(target_os = "linux"))]
            What::Tcp => Err(Failure::ours("skipped: needs Linux")),
        }
    }

    fn radio(&self) -> Result<(), Failure> {
        let checks = validate::radio();
        let found = validate::run(&checks, self.threads, interrupt::flag());
        self.print(&found.rows)?;
        if found.left > 0 {
            let (left, all) = (found.left, checks.len());
            return Err(Failure::Interrupted(format!(
                "stopped; {left} of {all} checks were not made, and the rows are those of the others"
            )));
        }
        let judged = found.rows.iter().filter(|row| row.ok.is_some()).count();
        match found.rows.iter().filter(|row| row.ok == Some(false)).count() {
            0 => Ok(()),
            failed => Err(Failure::ours(format!("{failed} of {judged} judged rows are not ok"))),
        }
    }

    fn print(&self, rows: &[Row]) -> Result<(), Failure> {
        if self.json {
            output::json(&rows)?;
        } else if !rows.is_empty() {
            output::line(format!("{}\n{}", validate::table(rows), validate::counts(rows)))?;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
pub use tcp::Inside;

#[cfg(target_os = "linux")]
mod tcp {
    //! Each emulation is a process of its own: `ranpace validate-kernel`, which ends when its standard input does.

    use std::io::{self, Read as _};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Duration;

    use ranpace_emulator::{Delivery, Plan, Topology, Views, Workloads};
    use ranpace_lab::validate::tcp::{self, Attempt, Found, How, Kernel, RECORDING};
    use ranpace_lab::{Job, Origin, Store};

    use super::Validate;
    use crate::emulate::INVALID;
    use crate::failure::Failure;
    use crate::{common, interrupt};

    /// Name of the folder of results.
    const FOLDER: &str = "validate-tcp";
    /// How often it is looked whether an emulation is to be stopped.
    const BEAT: Duration = Duration::from_millis(50);

    pub fn run(options: &Validate) -> Result<(), Failure> {
        ranpace_emulator::become_root().and_then(|()| ranpace_emulator::check()).map_err(|error| {
            Failure::ours(format!("skipped: needs root, or what else `ranpace emulate` needs: {error}"))
        })?;
        let common = common::Common { out: options.out.clone(), threads: 0, traces: options.traces.clone() };
        let store = common.store(FOLDER)?;
        let kernel = Processes { out: &options.out, store: &store, traces: options.traces.as_deref() };
        let how = How {
            quick: options.quick,
            side_by_side: options.threads,
            store: &store,
            stop: interrupt::flag(),
            kernel: &kernel,
        };
        let found = tcp::play(&how, &mut common.traces()).map_err(Failure::ours)?;
        options.print(&found.rows)?;
        conclude(&found, &store)
    }

    /// What else there is to say, and the exit status.
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
    struct Processes<'a> {
        out: &'a Path,
        store: &'a Store,
        traces: Option<&'a Path>,
    }

    impl Kernel for Processes<'_> {
        fn play(&self, job: &Job, origin: &Origin) -> Attempt {
            self.try_play(job, origin).unwrap_or_else(|error| Attempt::Failed(error.to_string()))
        }

        fn release(&self) -> String {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
            release.trim().to_owned()
        }
    }

    impl Processes<'_> {
        fn try_play(&self, job: &Job, origin: &Origin) -> io::Result<Attempt> {
            let file = format!("{}.{}.toml", common::folder_name(&job.label), job.scenario.seed);
            let file = self.store.write(&file, job.text.as_bytes()).map_err(io::Error::other)?;
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("validate-kernel").arg(&file).arg("--version").arg(&origin.version);
            command.arg("--out").arg(self.out);
            if let Some(traces) = self.traces {
                command.arg("--traces").arg(traces);
            }
            let mut child =
                command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
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

    /// One emulation of `ranpace validate tcp`, which calls it; it ends early when its standard input does
    #[derive(clap::Args)]
    #[command(hide = true)]
    pub struct Inside {
        /// Scenario file
        scenario: PathBuf,
        /// What the result is kept as, beside the scenario and what it plays
        #[arg(long)]
        version: String,
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
            let ways = Topology::new(&job.scenario).map_err(Failure::asked)?;
            ranpace_emulator::become_root().map_err(Failure::ours)?;
            let store = self.common.store(FOLDER)?;
            let stop = interrupt::flag();
            thread::spawn(move || {
                // Nothing is ever written.
                let _ = io::stdin().read(&mut [0]);
                stop.store(true, Ordering::Relaxed);
            });
            let inside = (std::env::current_exe().map_err(Failure::ours)?, vec!["emulate-inside".into()]);
            let plan = Plan {
                main: None,
                beside: Vec::new(),
                limit: Some(job.scenario.duration),
                workloads: Some(Workloads::default()),
                delivery: Delivery::Gso,
                saves_power: false,
                views: Views::default(),
                inside,
            };
            let outcome = ranpace_emulator::emulate(&ways, &plan, stop, |_| {}).map_err(Failure::ours)?;
            if outcome.interrupted {
                return Err(Failure::Interrupted("stopped".to_owned()));
            }
            if let Some(why) = outcome.timeliness.invalid() {
                return Err(Failure::Status(INVALID, Some(why)));
            }
            let folder = store.save(&origin, &outcome.result)?;
            ranpace_lab::put(&folder.join("machine.txt"), outcome.timeliness.line().as_bytes())?;
            Ok(())
        }
    }
}
