//! `ranpace kernel exec`: a program and its children use a control without knowing.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ranpace_kernel::{Cgroup, Control, Loaded, Prefix};

use super::feed::{Asking, Listener, Origin, Users};
use super::manage::prefix;
use crate::failure::Failure;
use crate::{interrupt, output};

/// How often it is looked whether something has ended.
const EVERY: Duration = Duration::from_millis(20);

/// Run a program whose TCP connections, and those of its children, use a control without knowing
///
/// The control is removed when the program and everything that it left in the background have ended. Connections that are open
/// then keep it until they are closed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace kernel exec --cc c2tcp:target=50ms -- nginx -g 'daemon off;'\n  \
    ranpace kernel exec --cc c2tcp:target=50ms --to 192.0.2.0/24 -- iperf3 -s\n  \
    ranpace kernel exec --cc dcic --feed hints.pipe --user phone -- curl http://server/file    both ends need dcic\n  \
    ranpace kernel exec --cc cubic+meld-me --feed rnis:http://127.0.0.1:8012 -- nginx -g 'daemon off;'\n  \
    ranpace kernel exec --cc c2tcp --cgroup /sys/fs/cgroup/system.slice/nginx.service    a running service, until Ctrl-C")]
pub struct Exec {
    /// The control, as in a scenario
    #[arg(long, value_name = "CONTROL")]
    cc: String,
    /// Only connections to and from these addresses
    #[arg(long, value_name = "PREFIX")]
    to: Option<String>,
    /// Control group of a running service, in place of a program
    #[arg(long, value_name = "PATH", conflicts_with = "program")]
    cgroup: Option<PathBuf>,
    /// Radio information for it, from where `ranpace kernel feed --from` has it
    #[arg(long, value_name = "WHERE", value_parser = Origin::parse)]
    feed: Option<Origin>,
    #[command(flatten)]
    asking: Asking,
    #[command(flatten)]
    users: Users,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "cgroup")]
    program: Vec<OsString>,
}

impl Exec {
    /// Runs the command; its exit status is the program's.
    pub fn run(self) -> Result<(), Failure> {
        let control = Control::parse(&self.cc)?;
        let to = prefix(self.to.as_deref())?;
        let stop = interrupt::flag();
        // Several may run at once, with different options.
        let loaded = Loaded::unnamed(&control)?;
        let mut feed = match &self.feed {
            Some(from) => {
                let listener = Listener::of(&loaded, self.users.of(from))?;
                let hints = listener.hints(from, &self.asking)?;
                Some((listener, hints))
            }
            None => None,
        };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _over = SetAtEnd(&over);
            if let Some((listener, hints)) = &mut feed {
                scope.spawn(|| match listener.follow(hints, &over) {
                    Ok(told) => output::say(&told.to_string()),
                    // The program goes on: its control is CUBIC then.
                    Err(failure) => drop(failure.report()),
                });
            }
            run(&loaded, to, self.cgroup.as_deref(), &self.program, stop)
        })
    }
}

/// Runs the program, or waits for Ctrl-C.
fn run(
    loaded: &Loaded,
    to: Option<Prefix>,
    path: Option<&Path>,
    program: &[OsString],
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let Some((program, arguments)) = program.split_first() else {
        let path = path.unwrap_or_else(|| Path::new(""));
        let link = loaded.attach(path, to)?;
        output::say(&format!(
            "new connections of {} use {}; Ctrl-C ends that",
            path.display(),
            loaded.control().as_str()
        ));
        wait_until(|| stop.load(Ordering::SeqCst));
        drop(link);
        return Ok(());
    };
    let cgroup = Cgroup::new()?;
    let link = loaded.attach(cgroup.path(), to)?;
    cgroup.enter()?;
    let started = Command::new(program).args(arguments).spawn();
    cgroup.leave()?;
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            // As shells and `env` do.
            let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
            let name = program.to_string_lossy();
            return Err(Failure::Status(code, Some(format!("cannot start {name}: {error}"))));
        }
    };
    let mut told = false;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => thread::sleep(EVERY),
            Err(error) => return Err(Failure::ours(format!("waiting for the program: {error}"))),
        }
        if stop.load(Ordering::SeqCst) && !told {
            told = true;
            // The terminal's Ctrl-C has reached it too; a signal to this process alone has not. It may have ended by now.
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
        }
    };
    wait_for_the_rest(&cgroup, stop);
    drop(link);
    ended(status)
}

/// Sets a flag when it is dropped.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits for what the program left in the background, as daemons do.
fn wait_for_the_rest(cgroup: &Cgroup, stop: &AtomicBool) {
    if cgroup.is_populated() && !stop.load(Ordering::SeqCst) {
        output::say(
            "the program has left processes in the background, which use the control; Ctrl-C leaves them without it",
        );
        wait_until(|| stop.load(Ordering::SeqCst) || !cgroup.is_populated());
    }
}

fn wait_until(mut done: impl FnMut() -> bool) {
    while !done() {
        thread::sleep(EVERY);
    }
}

/// The exit status as shells have it: 128 and the signal's number for what a signal ended.
fn ended(status: ExitStatus) -> Result<(), Failure> {
    match status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) {
        0 => Ok(()),
        code => Err(Failure::Status(u8::try_from(code).unwrap_or(1), None)),
    }
}
