//! Checks that the pages of `docs/` agree with the code: a page per algorithm with each of its options and their values, and
//! the worked example of `docs/cc-interface.md` is the one compiled here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ranpace_cc::{ALL, DECORATORS, OptionInfo};

#[path = "../examples/minimal.rs"]
#[allow(dead_code, reason = "an example has no users")]
mod minimal;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn page(name: &str) -> String {
    let path = docs().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Everything that `ranpace list cc` lists: name, source, options.
fn listed() -> Vec<(&'static str, &'static str, &'static [OptionInfo])> {
    let algorithms = ALL.iter().map(|entry| (entry.name, entry.source, entry.options));
    algorithms.chain(DECORATORS.iter().map(|entry| (entry.name, entry.source, entry.options))).collect()
}

/// The first words of a table's row: the key between backquotes.
fn rows(page: &str) -> Vec<(&str, &str)> {
    page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |")).collect()
}

#[test]
fn each_algorithm_has_a_page_with_all_its_options() {
    for (name, _, options) in listed() {
        let page = page(&format!("algorithms/{name}.md"));
        assert!(page.starts_with(&format!("# {name}: ")), "{name}: the title is its name and what it is");
        assert!(page.contains("--cc "), "{name}: an example command");
        let rows = rows(&page);
        for OptionInfo { key, values, .. } in options {
            let row = rows.iter().find(|(found, _)| found == key);
            let (_, rest) = row.unwrap_or_else(|| panic!("{name}: option {key} has no row"));
            assert!(rest.contains(values), "{name}: the row of {key} says {rest:?}, the code {values:?}");
        }
        // An option that no longer exists must not be documented.
        let known: Vec<&str> = options.iter().map(|option| option.key).collect();
        let section = page.split("\n## Options\n").nth(1).unwrap_or_default();
        let section = section.split("\n## ").next().unwrap_or_default();
        for (key, _) in self::rows(section) {
            assert!(known.contains(&key), "{name}: there is no option {key}");
        }
        assert!(options.is_empty() || !known.is_empty() && !section.is_empty(), "{name}: \"## Options\"");
    }
}

#[test]
fn each_page_belongs_to_an_algorithm_and_the_index_has_it() {
    let names: BTreeSet<&str> = listed().iter().map(|listed| listed.0).collect();
    let index = page("index.md");
    let folder = docs().join("algorithms");
    for entry in fs::read_dir(&folder).unwrap().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let name = file.strip_suffix(".md").unwrap_or_else(|| panic!("algorithms/{file} is no page"));
        assert!(names.contains(name), "algorithms/{file}: there is no such algorithm or decorator");
        assert!(index.contains(&format!("(algorithms/{file})")), "index.md does not have algorithms/{file}");
    }
}

#[test]
fn algorithms_asked_for_in_examples_exist() {
    let mut files = vec!["compare.md".to_owned(), "sweep.md".to_owned(), "run.md".to_owned()];
    files.extend(listed().iter().map(|listed| format!("algorithms/{}.md", listed.0)));
    for file in files {
        let page = page(&file);
        let asked = page.lines().filter(|line| line.trim_start().starts_with("ranpace "));
        for list in asked.filter_map(|line| line.split("--cc ").nth(1)?.split_whitespace().next()) {
            for name in list.trim_matches('\'').split(',') {
                name.parse::<ranpace_cc::Algorithm>().unwrap_or_else(|error| panic!("{file}: {error}"));
            }
        }
    }
}

#[test]
fn each_hook_and_each_mechanism_is_on_the_page_of_the_interface() {
    let page = page("cc-interface.md");
    let source =
        concat!(include_str!("../src/interface/control.rs"), include_str!("../src/interface/receiver.rs"),);
    let hooks = source.lines().filter_map(|line| line.strip_prefix("    fn ")?.split(['(', '<']).next());
    for hook in hooks.filter(|name| !name.starts_with("fmt")) {
        assert!(page.contains(&format!("`{hook}`")), "{hook} is not on the page");
    }
    for (name, ..) in listed() {
        assert!(page.contains(name), "{name} is not on the page");
    }
}

#[test]
fn the_worked_example_is_the_one_that_is_compiled() {
    minimal::main();
    let page = page("cc-interface.md");
    let example = include_str!("../examples/minimal.rs");
    let shown = page.split("```rust\n").find(|text| text.starts_with("//! A congestion control")).unwrap();
    let shown = shown.split("\n```").next().unwrap();
    assert!(example.starts_with(shown), "docs/cc-interface.md shows another text than examples/minimal.rs");
}
