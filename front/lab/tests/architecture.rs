//! The project's rules that a compiler does not check: which crate imports which, and what `logic` must not use.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, TableLike};

/// A package of the workspace.
struct Package {
    /// Its folder from the root: "logic/cc".
    folder: String,
    /// The workspace packages among its dependencies, dev-dependencies included, by folder.
    own: Vec<String>,
    /// External packages that it is built with, without dev-dependencies.
    foreign: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn toml(path: &Path) -> DocumentMut {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of the packages in the tables of this kind, including platform-specific ones.
fn dependencies(manifest: &DocumentMut, kind: &str) -> Vec<String> {
    let names = |table: Option<&Item>| -> Vec<String> {
        let table = table.and_then(Item::as_table_like);
        table.map_or(Vec::new(), |table| table.iter().map(|(name, _)| name.to_owned()).collect())
    };
    let mut found = names(manifest.get(kind));
    let targets = manifest.get("target").and_then(Item::as_table_like);
    for (_, target) in targets.into_iter().flat_map(TableLike::iter) {
        found.extend(names(target.get(kind)));
    }
    found
}

fn packages() -> Vec<Package> {
    let root = root();
    let workspace = toml(&root.join("Cargo.toml"));
    let members = workspace["workspace"]["members"].as_array().expect("the workspace lists its members");
    let folders: Vec<String> =
        members.iter().filter_map(|member| Some(member.as_str()?.to_owned())).collect();
    let manifests: Vec<DocumentMut> =
        folders.iter().map(|folder| toml(&root.join(folder).join("Cargo.toml"))).collect();
    let by_name: BTreeMap<&str, &String> = manifests
        .iter()
        .zip(&folders)
        .map(|(manifest, folder)| {
            (manifest["package"]["name"].as_str().expect("a package has a name"), folder)
        })
        .collect();
    manifests
        .iter()
        .zip(&folders)
        .map(|(manifest, folder)| {
            let built =
                [dependencies(manifest, "dependencies"), dependencies(manifest, "build-dependencies")];
            let tested = dependencies(manifest, "dev-dependencies");
            let own = |name: &String| by_name.get(name.as_str()).map(|folder| (*folder).clone());
            Package {
                folder: folder.clone(),
                own: built.iter().flatten().chain(&tested).filter_map(own).collect(),
                foreign: built.into_iter().flatten().filter(|name| own(name).is_none()).collect(),
            }
        })
        .collect()
}

#[test]
fn imports_run_downwards() {
    let rank = |folder: &str| match folder.split('/').next() {
        Some("logic") => 0,
        Some("carriers") => 1,
        // The models of reproductions are drawn by the laboratory, and shown by the command.
        Some("front" | "reproductions") => 2,
        _ => 3, // benches: they measure everything
    };
    for package in packages() {
        for other in &package.own {
            assert!(
                rank(other) <= rank(&package.folder),
                "{} imports {other}: imports run from front over carriers to logic",
                package.folder
            );
            assert_ne!(other, "front/cli", "{} imports the command", package.folder);
            if package.folder == "front/lab" {
                assert!(!other.starts_with("reproductions"), "the laboratory imports {other}");
            }
        }
    }
}

/// The imports that each crate of `logic` may have within `logic`.
const LOGIC: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("phy", &["units"]),
    ("rnis", &["units", "phy"]),
    ("link", &["units"]),
    ("cc", &["units", "phy", "rnis"]),
    ("pep", &["units", "phy", "rnis"]),
    ("radio", &["units", "phy", "rnis", "link"]),
    ("tcp", &["units", "phy", "rnis", "cc"]),
    ("quic", &["units", "phy", "rnis", "cc"]),
    ("scenario", &["units", "phy", "rnis", "link", "radio", "cc", "pep", "tcp", "quic"]),
    ("network", &["units", "phy", "rnis", "link", "radio", "cc", "pep", "tcp", "scenario"]),
];

#[test]
fn logic_crates_import_in_their_order() {
    for package in packages() {
        let Some(name) = package.folder.strip_prefix("logic/") else { continue };
        let allowed = LOGIC.iter().find(|(known, _)| *known == name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("logic/{name} has no place in the order yet"));
        for other in &package.own {
            let other = other.strip_prefix("logic/").unwrap_or(other);
            assert!(allowed.contains(&other), "logic/{name} imports {other}; it may import {allowed:?}");
        }
    }
}

/// External packages that only compute. Review a new one here: it must not read a clock, open a file or a socket, start a thread,
/// use the system's random numbers, or print.
const PURE: &[&str] = &[
    "aes-gcm",
    "bytes",
    "hdrhistogram",
    "hkdf",
    "libm",
    "noq-proto",
    "pulp",
    "rand_core",
    "rand_xoshiro",
    "serde",
    "serde_json",
    "sha2",
    "siphasher",
    "strsim",
    "thiserror",
    "toml_edit",
];

#[test]
fn logic_is_built_with_pure_packages_only() {
    for package in packages().iter().filter(|package| package.folder.starts_with("logic/")) {
        for name in &package.foreign {
            assert!(
                PURE.contains(&name.as_str()),
                "{} is built with {name}, which nobody has looked at",
                package.folder
            );
        }
    }
}

/// All Rust files below a folder, in order.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The modules that a file declares for tests only.
fn modules_of_tests(text: &str) -> impl Iterator<Item = &str> {
    let pairs = text.lines().zip(text.lines().skip(1));
    pairs.filter(|(mark, _)| mark.trim() == "#[cfg(test)]").filter_map(|(_, line)| {
        line.trim().trim_start_matches("pub(crate) ").strip_prefix("mod ")?.strip_suffix(';')
    })
}

/// Words that are allowed in a file: noq-proto's types require them. Its clock starts at a given time, and its lock belongs to one
/// connection.
const ASKED_FOR: &[(&str, &[&str])] = &[
    ("logic/quic/src/clock.rs", &["Instant"]),
    ("logic/quic/src/controls.rs", &["Instant"]),
    ("logic/quic/src/adapter.rs", &["Instant", "Mutex"]),
];

/// Reports lines of the packages in `parts`, without tests, that contain one of `words`.
fn never_mentioned(parts: &[&str], words: &[&str], why: &str) {
    never_mentioned_but_in(&[], parts, words, why);
}

/// The same, with exceptions for files whose caller lends them the memory.
fn never_mentioned_but_in(excepted: &[&str], parts: &[&str], words: &[&str], why: &str) {
    let root = root();
    for package in
        packages().iter().filter(|package| parts.iter().any(|part| package.folder.starts_with(part)))
    {
        let mut files = Vec::new();
        sources(&root.join(&package.folder).join("src"), &mut files);
        assert!(!files.is_empty(), "{} has no sources", package.folder);
        let read = |file: &PathBuf| fs::read_to_string(file).expect("a listed file can be read");
        let texts: Vec<String> = files.iter().map(read).collect();
        let tests: Vec<&str> = texts.iter().flat_map(|text| modules_of_tests(text)).collect();
        for (file, text) in files.iter().zip(&texts) {
            if file.file_stem().is_some_and(|name| tests.iter().any(|test| name == *test)) {
                continue;
            }
            if excepted.iter().any(|excepted| file.ends_with(excepted)) {
                continue;
            }
            let asked_for = ASKED_FOR.iter().find(|(name, _)| file.ends_with(name));
            let asked_for = asked_for.map_or([].as_slice(), |(_, words)| words);
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for (number, line) in code.lines().enumerate() {
                let line = line.split("//").next().unwrap_or_default();
                let reads_clock = !asked_for.is_empty() && line.contains("::now(");
                assert!(!reads_clock, "{}:{}: {why}", file.display(), number + 1);
                for word in words.iter().filter(|word| !asked_for.contains(word)) {
                    assert!(!line.contains(word), "{}:{}: {word}: {why}", file.display(), number + 1);
                }
            }
        }
    }
}

#[test]
fn logic_uses_no_clock_no_system_calls_and_no_output() {
    const WORDS: &[&str] = &[
        "std::net",
        "std::fs",
        "std::io",
        "std::thread",
        "std::process",
        "std::env",
        "Instant",
        "SystemTime",
        "println!",
        "print!",
        "eprint",
        "dbg!",
    ];
    never_mentioned(&["logic/"], WORDS, "logic gets time and data as arguments and gives values back");
}

#[test]
fn logic_has_no_global_state() {
    const WORDS: &[&str] =
        &["static mut", "thread_local!", "OnceLock", "LazyLock", "OnceCell", "Mutex", "RwLock"];
    const WHY: &str = "two runs in one process must not see each other";
    never_mentioned(&["logic/"], WORDS, WHY);
    // A table for many readers, in words that its caller lends it.
    const SHARED_TABLE: &[&str] = &[
        "rnis/src/shared_table.rs",
        "rnis/src/shared_table/record.rs",
        "rnis/src/shared_table/directory.rs",
    ];
    never_mentioned_but_in(SHARED_TABLE, &["logic/"], &["Atomic"], WHY);
}

#[test]
fn results_use_no_platform_dependent_float_functions() {
    const WORDS: &[&str] = &[
        ".exp(", ".exp2(", ".ln(", ".log2(", ".log10(", ".powf(", ".powi(", ".cbrt(", ".sin(", ".cos(",
        ".tan(", ".atan(", ".tanh(",
    ];
    never_mentioned(&["logic/", "carriers/sim"], WORDS, "use libm, which is the same everywhere");
}
