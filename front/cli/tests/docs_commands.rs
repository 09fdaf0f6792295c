//! The commands that the pages show work: every `sh` block with a call of `ranpace` is run, block after block, in a temporary
//! folder per page that holds the scenarios of `examples/`, and in `traces/` stand-ins for the recordings that pages name.
//!
//! So that this takes seconds, comparisons last 2 s, sweeps have at most two seeds, and reproductions are played with `--quick`.
//! What else a block needs to be quick, or why it is not run, its page says in a comment on the line above it:
//!
//! ```text
//! <!-- test: s/duration = "20s"/duration = "2s"/ -->     one text in place of another; several are separated by spaces
//! <!-- test: not run: WHY -->
//! ```
//!
//! Blocks with `sudo` are run where this test is root and has /dev/net/tun; those that call a program which is not installed are
//! skipped, unless `RANPACE_NO_SKIP` is set.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Exit status of an emulation that the machine could not keep up with.
const INVALID: i32 = 99;
/// Programs besides `ranpace` that blocks call.
const PROGRAMS: [&str; 6] = ["iperf3", "curl", "python3", "tcpdump", "tshark", "ping"];
/// Recordings that pages name. They are not part of the repository; a generated trace stands in for each.
const RECORDINGS: [&str; 2] = ["Verizon-LTE-short.down", "Verizon-LTE-short.up"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A block of shell commands of a page.
#[derive(Debug, PartialEq)]
struct Block {
    /// Line of its first command.
    line: usize,
    commands: String,
    /// The text of the comment above it, after `test: `.
    marker: String,
}

/// The `sh` blocks of a page.
fn blocks(page: &str) -> Vec<Block> {
    let (mut found, mut above) = (Vec::new(), "");
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            if language == "sh" {
                let marker = above.strip_prefix("<!-- test: ").and_then(|rest| rest.strip_suffix(" -->"));
                found.push(Block {
                    line: number + 2,
                    commands: text.join("\n"),
                    marker: marker.unwrap_or_default().to_owned(),
                });
            }
        }
        above = line;
    }
    found
}

impl Block {
    fn calls(&self, program: &str) -> bool {
        self.commands.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == program)
    }

    /// Returns whether a line begins with a call of `ranpace`.
    fn is_ours(&self) -> bool {
        self.commands.lines().any(|line| {
            let line = line.strip_prefix("sudo ").unwrap_or(line);
            line.starts_with("ranpace ")
        })
    }

    /// The commands as the test runs them.
    fn quick(&self) -> String {
        let mut text = self.commands.clone();
        for rule in self.marker.split(" s/").filter(|rule| !rule.is_empty()) {
            let rule = rule.strip_prefix("s/").unwrap_or(rule);
            let [from, to, ""] = rule.split('/').collect::<Vec<_>>()[..] else {
                panic!("line {}: expected s/FROM/TO/, found {rule:?}", self.line);
            };
            assert!(text.contains(from), "line {}: the block has no {from:?} to replace", self.line);
            text = text.replace(from, to);
        }
        text.lines().map(quick_line).collect::<Vec<_>>().join("\n")
    }
}

/// A command with less to do.
fn quick_line(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    for index in 1..words.len() {
        match (words[index - 1], words[index].parse()) {
            ("--seeds", Ok(2u32..)) => words[index] = "2",
            ("--time", _) if line.starts_with("ranpace compare") => words[index] = "2s",
            _ => {}
        }
    }
    let line = words.join(" ");
    match line.strip_prefix("ranpace ") {
        Some(rest) if rest.starts_with("compare") && !rest.contains("--time ") => {
            line.replacen("compare", "compare --time 2s", 1)
        }
        Some(rest) if rest.starts_with("reproduce ") && !rest.contains("--list") => {
            line.replacen("reproduce", "reproduce --quick", 1)
        }
        _ => line,
    }
}

/// A temporary folder in which the blocks of one page are run.
struct Bench {
    folder: tempfile::TempDir,
    path: String,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for below in ["bin", "traces", "examples"] {
            fs::create_dir(folder.path().join(below)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_ranpace"), folder.path().join("bin/ranpace")).unwrap();
        // Whoever is root needs no sudo, and a container may have none.
        let sudo = folder.path().join("bin/sudo");
        fs::write(&sudo, "#!/bin/sh\nexec \"$@\"\n").unwrap();
        fs::set_permissions(&sudo, fs::Permissions::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(root().join("examples")).unwrap() {
            let from = entry.unwrap();
            fs::copy(from.path(), folder.path().join(from.file_name())).unwrap();
            fs::copy(from.path(), folder.path().join("examples").join(from.file_name())).unwrap();
        }
        let path =
            format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let bench = Self { folder, path };
        for name in RECORDINGS {
            bench
                .run(&format!("ranpace trace generate --model lte --duration 20s --out traces/{name}"))
                .unwrap();
        }
        bench
    }

    /// Runs a block of commands; the error says what went wrong.
    fn run(&self, commands: &str) -> Result<(), String> {
        let output = Command::new("sh")
            .args(["-eu", "-c", commands])
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .env_remove("RANPACE_TRACES")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // An emulation that is invalid, because others used the machine, was still what the page shows.
        let invalid =
            output.status.code() == Some(INVALID) && text(&output.stderr).contains("could not keep up");
        if output.status.success() || invalid {
            return Ok(());
        }
        Err(format!("{}\n{commands}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)))
    }

    /// Why this block cannot be run here.
    fn missing(&self, block: &Block) -> Option<String> {
        if block.calls("sudo") && !(nix::unistd::geteuid().is_root() && Path::new("/dev/net/tun").exists()) {
            return Some("root and /dev/net/tun".to_owned());
        }
        if block.commands.contains("ranpace kernel") && !cfg!(feature = "kernel") {
            return Some("root, and a ranpace with its kernel commands".to_owned());
        }
        let has =
            |program: &str| std::env::split_paths(&self.path).any(|folder| folder.join(program).exists());
        PROGRAMS.into_iter().find(|name| block.calls(name) && !has(name)).map(str::to_owned)
    }
}

/// Runs the blocks of these pages; says how many were run.
fn run_pages(pages: &[PathBuf]) -> usize {
    let (mut ran, mut failures) = (0, Vec::new());
    for page in pages {
        let text = fs::read_to_string(page).unwrap();
        let blocks: Vec<Block> = blocks(&text).into_iter().filter(Block::is_ours).collect();
        if blocks.is_empty() {
            continue;
        }
        let bench = Bench::new();
        let page = page.strip_prefix(root()).unwrap().display();
        for block in blocks.iter().filter(|block| !block.marker.starts_with("not run: ")) {
            if let Some(what) = bench.missing(block) {
                assert!(
                    std::env::var_os("RANPACE_NO_SKIP").is_none() || what.starts_with("root"),
                    "{page}:{}: needs {what}",
                    block.line
                );
                eprintln!("skipped: {page}:{} needs {what}", block.line);
                continue;
            }
            if let Err(failure) = bench.run(&block.quick()) {
                failures.push(format!("{page}:{}: {failure}", block.line));
            }
            ran += 1;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    ran
}

/// The pages of a folder, in the order of names.
fn pages_of(folder: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == "md"));
    found.sort();
    found
}

#[test]
fn commands_of_the_readme_and_of_the_examples_work() {
    assert!(run_pages(&[root().join("README.md"), root().join("examples/README.md")]) >= 2);
}

#[test]
fn commands_of_the_guide_work() {
    assert!(run_pages(&pages_of("docs")) >= 20);
}

#[test]
fn commands_of_the_algorithms_work() {
    assert!(run_pages(&pages_of("docs/algorithms")) >= 20);
}

#[test]
fn tables_of_the_readme_are_those_that_make_run_prints() {
    let folder = tempfile::tempdir().unwrap();
    let pages = ["README.md", "docs/compare.md"].map(|page| fs::read_to_string(root().join(page)).unwrap());
    for (options, shown_on) in [(&["compare"][..], &pages[..1]), (&["compare", "--cell", "lte"], &pages[..])]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_ranpace"))
            .args(options)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let table = String::from_utf8(output.stdout).unwrap();
        for (number, page) in shown_on.iter().enumerate() {
            assert!(
                page.contains(table.trim_end()),
                "page {number} does not have what {options:?} prints:\n{table}"
            );
        }
    }
}

#[test]
fn doc_commands_are_shortened_by_rule_and_by_comment() {
    let page = "<!-- test: s/20s/2s/ s/-c 5/-c 1/ -->\n```sh\nranpace compare --cc cubic,bbr1 --seeds 5\nsleep 20s; ping -c 5\n```\n```text\nranpace\n```\n";
    let [block] = &blocks(page)[..] else { panic!() };
    assert_eq!((block.line, block.is_ours(), block.calls("ping")), (3, true, true));
    assert_eq!(block.quick(), "ranpace compare --time 2s --cc cubic,bbr1 --seeds 2\nsleep 2s; ping -c 1");
    assert_eq!(quick_line("ranpace compare --time 60s --seeds 1"), "ranpace compare --time 2s --seeds 1");
    assert_eq!(quick_line("ranpace reproduce 000-s1"), "ranpace reproduce --quick 000-s1");
}
