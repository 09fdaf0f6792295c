//! Nothing is left of an emulation, however it ended: no process, no namespace, no name of one, no interface, no route.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use emulation::{CELL, LINK, command, folder_with, output, rights, until};

/// All numbers of processes.
fn processes() -> impl Iterator<Item = (u32, PathBuf)> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        Some((number, entry.path()))
    })
}

/// Numbers of the processes whose command line begins so.
fn running(beginning: &str) -> Vec<u32> {
    let line = |path: &Path| {
        let words = fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ")
    };
    processes().filter(|(_, path)| line(path).starts_with(beginning)).map(|(number, _)| number).collect()
}

/// Names of namespaces of a process.
fn names_of(process: u32) -> Vec<PathBuf> {
    let mark = format!("ranpace-{process}-");
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = names.filter(|entry| entry.file_name().to_string_lossy().starts_with(&mark));
    names.map(|entry| entry.path()).collect()
}

/// The network namespace that a file or a link is.
fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

/// Lists what looks like ours outside of the emulation: interfaces, addresses and routes of any kind.
fn outside() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for file in ["dev", "route", "ipv6_route", "if_inet6", "fib_trie"] {
        let text = fs::read_to_string(Path::new("/proc/self/net").join(file)).unwrap_or_default();
        let ours = text.lines().filter(|line| {
            ["ran0", "10.77.", "fd72616e706163"].iter().any(|word| line.contains(word))
                // 10.77.0.0, as /proc writes it.
                || file == "route" && line.contains("00004D0A")
        });
        lines.extend(ours.map(|line| format!("{file}: {}", line.trim())));
    }
    lines
}

/// An emulation under watch.
struct Watched {
    child: Child,
    /// Inodes of its network namespaces.
    namespaces: BTreeSet<u64>,
}

impl Watched {
    /// Starts one, whose program makes the file `ready` when it runs.
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let _ = fs::remove_file(folder.join("ready"));
        let child = command(folder, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the program runs", || folder.join("ready").exists());
        let namespaces = names_of(child.id()).iter().filter_map(|path| inode(path)).collect();
        Self { child, namespaces }
    }

    /// Describes what is left of it.
    fn left(&self) -> Vec<String> {
        let process = self.child.id();
        let mut left: Vec<String> = names_of(process).iter().map(|path| path.display().to_string()).collect();
        let folder = format!("/run/ranpace/{process}");
        if Path::new(&folder).exists() {
            left.push(folder);
        }
        let mark = format!("/ranpace-{process}-");
        for (number, path) in processes() {
            // One that is ending has none.
            if inode(&path.join("ns/net")).is_some_and(|inode| self.namespaces.contains(&inode)) {
                left.push(format!("process {number} in a namespace"));
            }
            let mounts = fs::read_to_string(path.join("mountinfo")).unwrap_or_default();
            left.extend(mounts.lines().find(|line| line.contains(&mark)).map(str::to_owned));
        }
        left
    }
}

fn kill(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

#[test]
fn killed_emulation_leaves_no_processes_or_namespaces() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(LINK);
    let here = folder.path();
    let before = outside();
    // A number that no other process has.
    let mark = format!("10{}.25", std::process::id());
    let sleep = format!("sleep {mark}");
    // In the background, in a session of its own, and a grandchild whose parent is gone.
    let program = format!("{sleep} & setsid {sleep} & (setsid {sleep} &); touch ready; wait");
    let also = format!("server=trap '' TERM HUP INT; {sleep}");
    for (case, victims, status) in [
        ("emulator", &["emulator"][..], None),
        ("program", &["program"], Some(137)),
        ("the first process of its namespace", &["first"], Some(137)),
        ("both", &["program", "emulator"], None),
        ("both, the other way round", &["emulator", "program"], None),
    ] {
        let mut watched =
            Watched::start(here, &["scenario.toml", "--also", &also, "--", "sh", "-c", &program]);
        assert_eq!(watched.namespaces.len(), 2, "{case}");
        until("the programs run", || running(&sleep).len() >= 4);
        // Before anything is killed: its end changes what is there.
        let found: Vec<u32> = victims
            .iter()
            .flat_map(|victim| match *victim {
                "emulator" => vec![watched.child.id()],
                "program" => running(&format!("sh -c {sleep}")),
                _ => processes()
                    .filter(|(_, path)| {
                        let words = fs::read(path.join("cmdline")).unwrap_or_default();
                        let words = String::from_utf8_lossy(&words).replace('\0', " ");
                        words.contains(" emulate-inside ") && words.contains(&format!("sh -c {sleep}"))
                    })
                    .map(|(number, _)| number)
                    .collect(),
            })
            .collect();
        assert_eq!(found.len(), victims.len(), "{case}: {found:?}");
        for victim in found {
            // The second may be gone already.
            let _ = Command::new("kill").args(["-9", &victim.to_string()]).stderr(Stdio::null()).status();
        }
        let ended = watched.child.wait().unwrap().code();
        assert!(ended == status || status.is_some() && ended == Some(99), "{case}: {ended:?}");
        until("its programs are gone", || running(&sleep).is_empty());
        let (cleaned, _, error) = output(here, &["--clean"]);
        assert_eq!(cleaned, Some(0), "{error}");
        assert_eq!(watched.left(), Vec::<String>::new(), "{case} killed; {error}");
    }
    assert_eq!(outside(), before);
}

#[test]
fn nothing_is_left_of_emulations_that_are_killed_while_they_begin_or_end() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(CELL);
    let before = outside();
    let mut killed = Vec::new();
    // It takes some 50 ms to begin and as long to end; longer on a busy machine, which moves the instants and no more.
    for step in 0..12 {
        let arguments = ["scenario.toml", "--", "sh", "-c", "sleep 0.02"];
        let mut command = command(folder.path(), &arguments);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(10) * step);
        let namespaces = names_of(child.id()).iter().filter_map(|path| inode(path)).collect();
        let mut watched = Watched { child, namespaces };
        let _ = watched.child.kill();
        watched.child.wait().unwrap();
        killed.push(watched);
    }
    // The one that was killed between making its folder and the lock in it, which a few microseconds part.
    fs::create_dir_all("/run/ranpace/4194305/").unwrap(); // no process has this number: Linux, PID_MAX_LIMIT
    fs::write("/run/ranpace/4194305/lock.new", "").unwrap();
    until("their programs are gone", || {
        killed.iter().all(|watched| !watched.left().iter().any(|left| left.starts_with("process")))
    });
    let (cleaned, _, error) = output(folder.path(), &["--clean"]);
    assert_eq!(cleaned, Some(0), "{error}");
    for watched in &killed {
        assert_eq!(watched.left(), Vec::<String>::new());
    }
    assert!(!Path::new("/run/ranpace/4194305").exists());
    assert_eq!(outside(), before);
}

#[test]
fn nothing_is_left_after_ctrl_c_and_after_termination() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(LINK);
    let before = outside();
    for signal in ["-INT", "-TERM"] {
        // The program does not listen.
        let program = "trap '' INT TERM; touch ready; while :; do sleep 0.1; done";
        let mut watched = Watched::start(folder.path(), &["scenario.toml", "--", "sh", "-c", program]);
        kill(signal, watched.child.id());
        let ended = watched.child.wait().unwrap().code();
        assert!(matches!(ended, Some(130 | 99)), "{signal}: {ended:?}");
        assert_eq!(watched.left(), Vec::<String>::new(), "{signal}");
    }
    assert_eq!(outside(), before);
}

#[test]
fn nothing_is_left_of_twenty_emulations_in_a_row_and_of_four_side_by_side() {
    let Some(_turn) = rights() else { return };
    let folder = folder_with(LINK);
    let before = outside();
    for _ in 0..20 {
        let arguments = ["scenario.toml", "--", "touch", "ready"];
        let mut watched = Watched::start(folder.path(), &arguments);
        let ended = watched.child.wait().unwrap().code();
        assert!(matches!(ended, Some(0 | 99)), "{ended:?}");
        assert_eq!(watched.left(), Vec::<String>::new());
    }
    // Each with its own hosts of the same names: none hears the other.
    let folders: Vec<_> = (0..4).map(|_| folder_with(LINK)).collect();
    let listen = "touch ready; while [ ! -e done ]; do sleep 0.05; done";
    let start = |folder: &tempfile::TempDir| {
        Watched::start(folder.path(), &["scenario.toml", "--", "sh", "-c", listen])
    };
    let mut all: Vec<Watched> = folders.iter().map(start).collect();
    let namespaces: BTreeSet<u64> = all.iter().flat_map(|watched| &watched.namespaces).copied().collect();
    assert_eq!(namespaces.len(), 8);
    // One of them is killed: the others go on, though somebody cleans.
    all[1].child.kill().unwrap();
    all[1].child.wait().unwrap();
    let (_, _, error) = output(folder.path(), &["--clean"]);
    assert_eq!(all[1].left(), Vec::<String>::new(), "{error}");
    for (watched, folder) in all.iter_mut().zip(&folders) {
        fs::write(folder.path().join("done"), "").unwrap();
        let ended = watched.child.wait().unwrap().code();
        assert!(matches!(ended, None | Some(0 | 99)), "{ended:?}");
        assert_eq!(watched.left(), Vec::<String>::new());
    }
    assert_eq!(outside(), before);
}

#[test]
fn nothing_is_left_of_an_ordinary_users_emulation_that_was_killed() {
    let Some(_turn) = rights() else { return };
    let folder = emulation::folder_of_nobody(LINK);
    let mark = format!("20{}.25", std::process::id());
    let program = format!("touch ready; sleep {mark} & setsid sleep {mark} & wait");
    let mut command = Command::new(folder.path().join("ranpace"));
    command.current_dir(folder.path()).uid(emulation::NOBODY).gid(emulation::NOBODY);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.args(["emulate", "scenario.toml", "--", "sh", "-c", &program]).spawn();
    let mut child = child.unwrap();
    let mut refused = false;
    until("the program runs", || {
        refused = child.try_wait().unwrap().is_some();
        refused || running(&format!("sleep {mark}")).len() >= 2
    });
    if refused {
        assert_eq!(child.wait().unwrap().code(), Some(1));
        return emulation::skip("a kernel that allows unprivileged user namespaces");
    }
    // Its names are in a /run of its own; its programs are not.
    let namespaces = running(&format!("sleep {mark}"))
        .into_iter()
        .filter_map(|number| inode(Path::new(&format!("/proc/{number}/ns/net"))))
        .collect();
    let mut watched = Watched { child, namespaces };
    assert_eq!(watched.namespaces.len(), 1);
    watched.child.kill().unwrap();
    watched.child.wait().unwrap();
    until("its programs are gone", || running(&format!("sleep {mark}")).is_empty());
    assert_eq!(watched.left(), Vec::<String>::new());
}
