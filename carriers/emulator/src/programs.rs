//! Programs behind hosts. Each gets a first process of ours in a process namespace of its own, which enters the host's network and
//! starts the program. When that first process ends, the kernel ends everything below it. It ends with the emulator, however that
//! ends, because it then reads the end of a pipe whose other end the emulator held.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, getpid, tcgetpgrp, tcsetpgrp};

use crate::addresses;
use crate::namespaces::{NamespaceError, Namespaces, is_too_many_files};
use crate::plan::{Plan, Program};
use crate::topology::Topology;

/// A running program. Dropping this ends it with everything that it started.
pub struct Running {
    child: Child,
    leash: Option<PipeWriter>,
    _other_end: PipeReader,
    has_terminal: bool,
}

impl Running {
    /// Starts a program in the namespace of this name. The plan's `inside` is the command that calls [`enter`] with the arguments
    /// after it: namespace, leash, hosts file, program. With `output` its output goes to that file, and its input is empty.
    pub fn start(
        program: &Program,
        namespace: &str,
        hosts: &Path,
        plan: &Plan,
        output: Option<&Path>,
    ) -> Result<Self, NamespaceError> {
        let failed = |source: io::Error| {
            let name = program.words.first().map(|word| Path::new(word).display().to_string());
            let what = format!("start {}", name.unwrap_or_default());
            if is_too_many_files(&source) {
                NamespaceError::TooManyFiles { what, source }
            } else {
                NamespaceError::System { what, source }
            }
        };
        let (other_end, leash) = io::pipe().map_err(failed)?;
        let mut command = Command::new(&plan.inside.0);
        if let Some(path) = output {
            let file = File::options().create(true).append(true).open(path).map_err(failed)?;
            let also = file.try_clone().map_err(failed)?;
            command.stdin(Stdio::null()).stdout(file).stderr(also);
        }
        command
            .args(&plan.inside.1)
            .arg(Namespaces::path_of(namespace))
            .arg(format!("/proc/{}/fd/{}", std::process::id(), other_end.as_raw_fd()))
            .arg(hosts)
            .args(&program.words)
            .env("RANPACE_HOST", &program.host);
        let has_terminal = is_shell(&program.words) && is_in_front();
        if has_terminal {
            // By which `enter` recognises it.
            command.process_group(0);
        }
        let child = thread::spawn(move || {
            // For the children of this thread: the first gets process id 1 there.
            unshare(CloneFlags::CLONE_NEWPID)?;
            command.spawn()
        });
        let child =
            child.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked"))).map_err(failed)?;
        Ok(Self { child, leash: Some(leash), _other_end: other_end, has_terminal })
    }

    /// Its exit status; `None` while it runs.
    pub fn ended(&mut self) -> io::Result<Option<i32>> {
        Ok(self.child.try_wait()?.map(code))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It ends at once, and so does everything that it started.
        drop(self.leash.take());
        let _ = self.child.wait();
        if self.has_terminal {
            come_to_front();
        }
    }
}

/// Returns whether it is an interactive shell, which takes no arguments. It controls jobs, so the terminal must belong to a process group
/// that it can see; ours is outside its process namespace. Ctrl-C then reaches its jobs alone.
fn is_shell(words: &[OsString]) -> bool {
    let name = words.first().and_then(|word| Path::new(word).file_name());
    words.len() == 1 && name.is_some_and(|name| name.as_encoded_bytes().ends_with(b"sh"))
}

/// Returns whether standard input is a terminal, and this process group is in its foreground.
fn is_in_front() -> bool {
    io::stdin().is_terminal() && tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Puts this process group in the foreground of the terminal.
fn come_to_front() {
    // Otherwise a background process would be stopped for that.
    let stop = SigSet::from(Signal::SIGTTOU);
    if stop.thread_block().is_ok() {
        // The terminal may be gone.
        let _ = tcsetpgrp(io::stdin(), getpgrp());
        let _ = stop.thread_unblock();
    }
}

/// Exit status as in shells: 128 plus the signal's number if a signal ended it.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Writes the names of all hosts, before those known to this machine.
pub fn write_hosts(topology: &Topology, path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    for place in 0..topology.hosts.len() {
        let name = topology.name(place);
        // Hosts whose names are not valid are reached by their addresses.
        if !name.contains(|letter: char| letter.is_whitespace() || letter == '#') {
            writeln!(file, "{}\t{name}\n{}\t{name}", addresses::v4(place), addresses::v6(place))?;
        }
    }
    file.write_all(&fs::read("/etc/hosts").unwrap_or_default())
}

/// The first process of a process namespace: enters the network namespace `netns`, starts the program, ends with it or with the
/// emulator, and returns the program's exit status. To be called by a process that does nothing else.
pub fn enter(netns: &Path, leash: &Path, hosts: &Path, words: &[OsString]) -> io::Result<i32> {
    let mut leash = File::open(leash)?;
    setns(File::open(netns)?, CloneFlags::CLONE_NEWNET)?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
    let hidden: Vec<(&str, File)> = ["/sys/fs/cgroup", "/sys/fs/bpf"]
        .iter()
        .filter_map(|path| Some((*path, File::open(path).ok()?)))
        .collect();
    // Where a container forbids these mounts, programs run without them.
    let mounted = [
        (
            "/etc/hosts",
            "do not know the hosts by their names",
            mount(Some(hosts), "/etc/hosts", none, MsFlags::MS_BIND, none),
        ),
        (
            "/proc",
            "see the processes and connections of the whole machine",
            mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none),
        ),
        (
            "/sys",
            "see the machine's network devices in /sys",
            mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none),
        ),
    ];
    // The new /sys hides the file systems mounted in it. This restores control groups and the BPF file system for programs.
    for (path, found) in &hidden {
        let source = format!("/proc/self/fd/{}", found.as_raw_fd());
        // Without them a program lacks features that few need, and its own error tells.
        let _ = mount(Some(source.as_str()), *path, none, MsFlags::MS_BIND | MsFlags::MS_REC, none);
    }
    let without: Vec<String> = mounted
        .iter()
        .filter_map(|(path, so, done)| Some(format!("{so} (mounting {path}: {})", done.err()?)))
        .collect();
    if !without.is_empty() && is_first_to_say(hosts) {
        let _ = writeln!(io::stderr(), "ranpace: note: programs {}", without.join(", and "));
    }
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program was named"));
    };
    if getpgrp() == getpid() {
        come_to_front();
    }
    // `--live` blocks these in the emulator, and children inherit the signal mask.
    [Signal::SIGQUIT, Signal::SIGTSTP].into_iter().collect::<SigSet>().thread_unblock()?;
    thread::spawn(move || {
        // Nothing is ever written: the read ends when the emulator does. Everything else here then ends with this process.
        let _ = leash.read(&mut [0]);
        std::process::exit(ENDED);
    });
    let child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            let name = Path::new(program).display();
            // As shells and `env` do.
            let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            let _ = writeln!(io::stderr(), "ranpace: cannot start {name}: {error}");
            return Ok(code);
        }
    };
    // This includes orphans, which are now children of this process.
    let program = Pid::from_raw(child.id().cast_signed());
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(child, code)) if child == program => return Ok(code),
            Ok(WaitStatus::Signaled(child, signal, _)) if child == program => return Ok(128 + signal as i32),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns whether no program of this emulation has yet printed what is missing; they share the folder of their hosts file.
fn is_first_to_say(hosts: &Path) -> bool {
    match File::create_new(hosts.with_file_name("said")) {
        Ok(_) => true,
        // Printing twice is better than not at all.
        Err(error) => error.kind() != io::ErrorKind::AlreadyExists,
    }
}

/// Exit status of a first process whose emulator is gone: that of a killed process.
const ENDED: i32 = 137;
