//! Within a crate, files import each other without cycles; only a parent and its own child modules may.
//!
//! The files' imports are read from their text: paths that begin with `crate`, `self`, `super` or a child module. A name that a
//! module only re-exports counts as an import of the file that defines it. Tests are excluded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::DocumentMut;

/// A module's path in its crate: empty for the root.
type Module = Vec<String>;

/// The modules of a crate with their code, without comments and tests.
type Crate = BTreeMap<Module, String>;

#[test]
fn no_cycle_is_larger_than_a_parent_with_its_children() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace has a manifest");
    let manifest: DocumentMut = manifest.parse().expect("it is TOML");
    let members = manifest["workspace"]["members"].as_array().expect("the workspace lists its members");
    let mut wrong = Vec::new();
    for name in members.iter().filter_map(|member| member.as_str()) {
        let cycles = cycles(&modules_of(&root.join(name).join("src")));
        wrong.extend(cycles.iter().map(|cycle| format!("{name}: {cycle}")));
    }
    assert!(
        wrong.is_empty(),
        "files that import each other in a circle; put what they share into a file of its own:\n{}",
        wrong.join("\n")
    );
}

/// The cycles of a crate other than a parent with its children, as text.
fn cycles(modules: &Crate) -> Vec<String> {
    let imports: BTreeMap<&Module, BTreeSet<&Module>> =
        modules.keys().map(|module| (module, imports(modules, module))).collect();
    let mut found = Vec::new();
    for component in components(&imports) {
        let parent = component.iter().find(|parent| {
            // The root does not count as a parent here: it only lists the modules.
            !parent.is_empty()
                && component.iter().all(|other| {
                    other == *parent || other.split_last().is_some_and(|(_, p)| p == parent.as_slice())
                })
        });
        match parent {
            None => found.push(shown(&component, &imports)),
            Some(parent) => {
                let mut siblings = imports.clone();
                siblings.remove(parent);
                siblings.retain(|module, _| component.contains(module));
                found.extend(components(&siblings).iter().map(|component| shown(component, &siblings)));
            }
        }
    }
    found
}

/// A cycle's modules, with their imports from each other.
fn shown(component: &BTreeSet<&Module>, imports: &BTreeMap<&Module, BTreeSet<&Module>>) -> String {
    let name = |module: &Module| if module.is_empty() { "lib".to_owned() } else { module.join("/") };
    let edges = component.iter().map(|module| {
        let others: Vec<String> = imports[module].intersection(component).map(|other| name(other)).collect();
        format!("{} -> {}", name(module), others.join(" "))
    });
    edges.collect::<Vec<_>>().join(", ")
}

/// The strongly connected components with more than one module.
fn components<'a>(imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> Vec<BTreeSet<&'a Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = imports
        .keys()
        .map(|start| {
            let mut reached = BTreeSet::new();
            let mut open = vec![*start];
            while let Some(module) = open.pop() {
                for next in imports.get(module).into_iter().flatten() {
                    if reached.insert(*next) {
                        open.push(next);
                    }
                }
            }
            (*start, reached)
        })
        .collect();
    let mut found: Vec<BTreeSet<&Module>> = Vec::new();
    for (module, forward) in &reached {
        if found.iter().any(|component| component.contains(module)) {
            continue;
        }
        let back = |other: &&&Module| reached.get(**other).is_some_and(|theirs| theirs.contains(module));
        let mut component: BTreeSet<&Module> = forward.iter().filter(back).copied().collect();
        component.insert(module);
        if component.len() > 1 {
            found.push(component);
        }
    }
    found
}

/// The modules that one imports from.
fn imports<'a>(modules: &'a Crate, module: &'a Module) -> BTreeSet<&'a Module> {
    let paths = paths(&modules[module]);
    let found = paths.iter().filter_map(|path| resolve(modules, module, &path.segments, 0));
    found.filter(|found| *found != module).collect()
}

/// The module that defines what a path in `from` names; `None` if it is outside of the crate.
fn resolve<'a>(modules: &'a Crate, from: &Module, path: &[String], depth: usize) -> Option<&'a Module> {
    let (mut at, mut rest) = match path.first()?.as_str() {
        "crate" => (Module::new(), &path[1..]),
        "self" => (from.clone(), &path[1..]),
        "super" => (from.split_last()?.1.to_vec(), &path[1..]),
        first if modules.contains_key(&child(from, first)) => (from.clone(), path),
        _ => return None,
    };
    while let Some((name, after)) = rest.split_first() {
        if name == "super" {
            at.pop();
        } else if modules.contains_key(&child(&at, name)) {
            at.push(name.clone());
        } else {
            break;
        }
        rest = after;
    }
    let (here, text) = modules.get_key_value(&at)?;
    let Some(name) = rest.first().filter(|name| *name != "*" && depth < 8) else { return Some(here) };
    let exported = || paths(text).into_iter().filter(|path| path.is_use);
    for path in exported().filter(|path| path.name() == Some(name.as_str())) {
        if let Some(found) = resolve(modules, &at, &path.segments, depth + 1) {
            return Some(found);
        }
    }
    if !defines(text, name) {
        for mut path in exported().filter(|path| path.segments.last().is_some_and(|last| last == "*")) {
            path.segments.pop();
            let target = resolve(modules, &at, &path.segments, depth + 1);
            if let Some(target) = target.filter(|target| *target != here) {
                path.segments.push(name.clone());
                let behind = resolve(modules, &at, &path.segments, depth + 1);
                if let Some(found) =
                    behind.filter(|found| *found != target || defines(&modules[target], name))
                {
                    return Some(found);
                }
            }
        }
    }
    Some(here)
}

fn child(module: &Module, name: &str) -> Module {
    let mut path = module.clone();
    path.push(name.to_owned());
    path
}

/// Returns whether a file defines an item of this name.
fn defines(text: &str, name: &str) -> bool {
    const KINDS: &[&str] =
        &["struct", "enum", "trait", "fn", "const", "static", "type", "union", "macro_rules!"];
    KINDS.iter().any(|kind| {
        let begin = format!("{kind} {name}");
        text.match_indices(&begin).any(|(at, _)| {
            !text[at + begin.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
        })
    })
}

/// A path in a file, by segments, and its local name.
struct Named {
    segments: Vec<String>,
    alias: Option<String>,
    is_use: bool,
}

impl Named {
    fn name(&self) -> Option<&str> {
        self.alias.as_deref().or_else(|| self.segments.last().map(String::as_str))
    }
}

/// The paths in a file: those of its `use` statements, and those that begin with `crate`, `self` or `super` in its code.
fn paths(text: &str) -> Vec<Named> {
    let mut found = Vec::new();
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = next_use(rest) {
        code.push_str(&rest[..at]);
        let statement = &rest[at + "use ".len()..];
        let end = statement.find(';').unwrap_or(statement.len());
        expand(&[], &statement[..end].split_whitespace().collect::<Vec<_>>().join(" "), &mut found);
        rest = &statement[end..];
    }
    code.push_str(rest);
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for word in code.split(|c: char| !is_path(c)) {
        if let Some((first, _)) = word.split_once("::")
            && ["crate", "self", "super"].contains(&first)
        {
            let segments =
                word.split("::").filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
            found.push(Named { segments, alias: None, is_use: false });
        }
    }
    found
}

/// The position of the next `use` statement.
fn next_use(text: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find("use ") {
        let at = from + at;
        let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
        if line.trim().is_empty() || line.trim_start().starts_with("pub") {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// Expands a `use` tree: `a::{b, c::{d, self}}`.
fn expand(prefix: &[String], tree: &str, found: &mut Vec<Named>) {
    let tree = tree.trim();
    if let Some(inner) = tree.strip_prefix('{').and_then(|tree| tree.strip_suffix('}')) {
        let (mut depth, mut begin) = (0, 0);
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(prefix, &inner[begin..at], found);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        return expand(prefix, &inner[begin..], found);
    }
    let mut prefix = prefix.to_vec();
    match tree.split_once("::") {
        Some((first, rest)) => {
            prefix.push(first.trim().to_owned());
            expand(&prefix, rest, found);
        }
        None if tree.is_empty() => {}
        None => {
            let (name, alias) =
                tree.split_once(" as ").map_or((tree, None), |(name, alias)| (name, Some(alias)));
            if name != "self" || prefix.is_empty() {
                prefix.push(name.trim().to_owned());
            }
            found.push(Named { segments: prefix, alias: alias.map(str::to_owned), is_use: true });
        }
    }
}

/// The modules of a crate, without those of tests.
fn modules_of(source: &Path) -> Crate {
    let mut files = Vec::new();
    collect(source, &mut files);
    let mut modules = Crate::new();
    let mut tests: Vec<Module> = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a listed file can be read");
        let inside = file.strip_prefix(source).expect("it was found there").with_extension("");
        let mut module: Module = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
            module.pop();
        }
        tests.extend(modules_of_tests(&text).map(|name| child(&module, name)));
        modules.insert(module, code(&text));
    }
    modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    modules
}

/// The modules that a file declares for tests only.
fn modules_of_tests(text: &str) -> impl Iterator<Item = &str> {
    let pairs = text.lines().zip(text.lines().skip(1));
    pairs.filter(|(mark, _)| mark.trim().starts_with("#[cfg(test)]")).filter_map(|(_, line)| {
        let line = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        line.strip_prefix("mod ")?.strip_suffix(';')
    })
}

/// A file without its comments, its tests, and imports used only in its documentation.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let text = text
        .replace("#[cfg(doc)]\nuse ", "#[cfg(doc)] // ")
        .replace("#[cfg(test)]\nuse ", "#[cfg(test)] // ");
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn a_cycle_is_found_through_re_exports_and_a_family_is_not_one() {
    let of = |files: &[(&str, &str)]| -> Crate {
        let module =
            |name: &str| name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        files.iter().map(|(name, text)| (module(name), code(text))).collect()
    };
    for (case, files, expected) in [
        ("none", vec![("", "mod a;\nmod b;"), ("a", "use crate::b::B;"), ("b", "pub struct B;")], vec![]),
        ("two files", vec![("a", "use crate::b::B;"), ("b", "use crate::a::A;")], vec!["a -> b, b -> a"]),
        (
            "by the root's name for it",
            vec![("", "pub use a::A;"), ("a", "use crate::{b::{self, B}};"), ("b", "fn f(_: crate::A) {}")],
            vec!["a -> b, b -> a"],
        ),
        (
            "by a glob",
            vec![
                ("", "pub use self::a::*;"),
                ("a", "use super::b;\npub struct A;"),
                ("b", "use crate::A as C;"),
            ],
            vec!["a -> b, b -> a"],
        ),
        (
            "a family",
            vec![("a", "use b::B;"), ("a/b", "use super::{A, c::C};"), ("a/c", "use super::A;")],
            vec![],
        ),
        (
            "siblings",
            vec![("a", "use b::B;"), ("a/b", "use super::c::C;"), ("a/c", "use super::{A, b::B};")],
            vec!["a/b -> a/c, a/c -> a/b"],
        ),
        (
            "the root",
            vec![("", "use a::A;\nstruct Shared;"), ("a", "use crate::Shared;")],
            vec!["lib -> a, a -> lib"],
        ),
        (
            "an aunt",
            vec![("a", "use b::B;"), ("a/b", "use crate::c::C;"), ("c", "use crate::a::A;")],
            vec!["a -> a/b, a/b -> c, c -> a"],
        ),
        ("comments", vec![("a", "// use crate::b::B;"), ("b", "use crate::a::A;")], vec![]),
    ] {
        assert_eq!(cycles(&of(&files)), expected, "{case}");
    }
}
