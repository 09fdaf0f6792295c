//! Daemons of hosts: programs that have to be ready before time zero, and to run until the end.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ranpace_units::Time;

use crate::namespaces::{NamespaceError, within};
use crate::plan::{Daemon, Plan, Program, Ready};
use crate::programs::Running;

/// Longest wait until a daemon is ready. Ours: loading programs into a kernel takes a second on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval of looking whether it is.
const BEAT: Duration = Duration::from_millis(10);
/// Bytes at the end of a daemon's log that an error has at most.
const LAST_WORDS: u64 = 2_000;

/// Why an emulation with daemons failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// It ended although it should run.
    #[error("{name} ended with status {code}; {} has: {last}", log.display())]
    Ended {
        /// Its name.
        name: String,
        /// Its exit status.
        code: i32,
        /// Its log.
        log: PathBuf,
        /// The last lines of that.
        last: String,
    },
    /// It is not ready.
    #[error("{name} was not ready after {} s; {} has: {last}", PATIENCE.as_secs(), log.display())]
    Late {
        /// Its name.
        name: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of that.
        last: String,
    },
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] NamespaceError),
    /// The system could not say whether it runs.
    #[error("cannot wait for {name}: {source}")]
    Wait {
        /// Its name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
}

/// The daemons of an emulation. They end when this is dropped.
pub struct Daemons<'a> {
    plan: &'a Plan,
    hosts: &'a Path,
    /// Each with the name of its namespace.
    all: Vec<(&'a Daemon, &'a str, Option<Running>)>,
}

impl<'a> Daemons<'a> {
    /// None has been started. `namespace` returns the namespace of a host.
    pub fn new<E>(
        plan: &'a Plan,
        hosts: &'a Path,
        namespace: impl Fn(&Program) -> Result<&'a str, E>,
    ) -> Result<Self, E> {
        let all = plan.daemons.iter().map(|daemon| Ok((daemon, namespace(&daemon.program)?, None)));
        Ok(Self { plan, hosts, all: all.collect::<Result<_, E>>()? })
    }

    /// Starts those that run from the beginning, one after the other, and waits until each is ready, or `stop` is set.
    pub fn begin(&mut self, stop: &AtomicBool) -> Result<(), DaemonError> {
        for (daemon, namespace, running) in &mut self.all {
            if daemon.from > Time::ZERO {
                continue;
            }
            *running = Some(start(daemon, namespace, self.hosts, self.plan)?);
            let begun = Instant::now();
            while !is_ready(&daemon.ready, namespace)? && !stop.load(Ordering::Relaxed) {
                look_after(daemon, running)?;
                if begun.elapsed() >= PATIENCE {
                    let (name, log) = (daemon.name.clone(), daemon.log.clone());
                    return Err(DaemonError::Late { name, last: last_words(&log), log });
                }
                thread::sleep(BEAT);
            }
        }
        Ok(())
    }

    /// Starts and ends those whose time has come, and fails if another one has ended.
    pub fn attend(&mut self, now: Time) -> Result<(), DaemonError> {
        for (daemon, namespace, running) in &mut self.all {
            let is_gone =
                |(until, again): (Time, Option<Time>)| until <= now && again.is_none_or(|again| now < again);
            let is_due = daemon.from <= now && !daemon.until.is_some_and(is_gone);
            match (is_due, running.is_some()) {
                (true, true) => look_after(daemon, running)?,
                (true, false) => *running = Some(start(daemon, namespace, self.hosts, self.plan)?),
                // Dropped, it is killed with all that it has started.
                (false, _) => *running = None,
            }
        }
        Ok(())
    }
}

fn start(daemon: &Daemon, namespace: &str, hosts: &Path, plan: &Plan) -> Result<Running, NamespaceError> {
    Running::start(&daemon.program, namespace, hosts, plan, Some(&daemon.log))
}

/// Fails if the daemon has ended.
fn look_after(daemon: &Daemon, running: &mut Option<Running>) -> Result<(), DaemonError> {
    let (name, log) = (daemon.name.clone(), daemon.log.clone());
    match running.as_mut().map(Running::ended) {
        Some(Ok(Some(code))) => Err(DaemonError::Ended { name, code, last: last_words(&log), log }),
        Some(Err(source)) => Err(DaemonError::Wait { name, source }),
        Some(Ok(None)) | None => Ok(()),
    }
}

fn is_ready(ready: &Ready, namespace: &str) -> Result<bool, NamespaceError> {
    match ready {
        Ready::Socket(path) => Ok(UnixStream::connect(path).is_ok()),
        Ready::Port(address) => {
            let address = *address;
            within(namespace, move || TcpStream::connect(address).is_ok())
        }
    }
}

/// The end of a log; nothing if it cannot be read.
fn last_words(log: &Path) -> String {
    let read = || {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        io::Result::Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "nothing".to_owned())
}
