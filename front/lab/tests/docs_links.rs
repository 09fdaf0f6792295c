//! Every link from one page of this repository to another leads somewhere, including its heading.
#![allow(clippy::unwrap_used)] // a test may

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All pages of this project below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_ours = !name.starts_with("target") && name != "node_modules";
        if path.is_dir() && is_ours && (!name.starts_with('.') || name == ".github") {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// Lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Targets of the links of a line: the text between `](` and `)`, outside code.
fn links(line: &str) -> Vec<&str> {
    let outside: Vec<&str> = line.split('`').step_by(2).collect();
    let parts = outside.into_iter().flat_map(|text| text.split("](").skip(1));
    parts.filter_map(|rest| rest.split(')').next()).collect()
}

/// The anchor that a forge makes of a heading: small letters, digits, hyphens for spaces.
fn anchor(heading: &str) -> String {
    let text: String = heading.trim_start_matches('#').trim().to_lowercase();
    let keep = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    text.chars().filter(|c| keep(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let (mut seen, mut counts) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    for line in prose(text).filter(|line| line.starts_with('#')) {
        // For a heading that is a link, its text.
        let plain = line.split("](").next().unwrap_or(line).replace('[', "");
        let name = anchor(&plain);
        let count = counts.entry(name.clone()).or_default();
        seen.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    seen
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut sum, part| {
        match part {
            Component::ParentDir => {
                sum.pop();
            }
            Component::CurDir => {}
            other => sum.push(other),
        }
        sum
    })
}

#[test]
fn links_between_pages_have_targets() {
    let root = root();
    let mut all = Vec::new();
    pages(&root, &mut all);
    assert!(all.len() > 100, "{} pages", all.len());
    let (mut checked, mut broken) = (0, Vec::new());
    for page in &all {
        let text = fs::read_to_string(page).unwrap();
        for target in prose(&text).flat_map(links) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path =
                if file.is_empty() { page.clone() } else { normal(&page.parent().unwrap().join(file)) };
            let problem = if !path.starts_with(&root) || !path.exists() {
                Some("no such file")
            } else if !heading.is_empty() && !anchors(&fs::read_to_string(&path).unwrap()).contains(heading) {
                Some("no such heading")
            } else {
                None
            };
            if let Some(problem) = problem {
                broken.push(format!("{}: {target}: {problem}", page.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(checked > 300, "{checked} links");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The pages that `make guide` makes chapters of.
#[test]
fn the_guide_has_every_page() {
    let root = root();
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    let chapters: BTreeSet<PathBuf> =
        summary.lines().flat_map(links).map(|target| normal(&root.join("docs").join(target))).collect();
    let mut all = Vec::new();
    for folder in ["docs", "examples", "reproductions"] {
        pages(&root.join(folder), &mut all);
    }
    all.push(root.join("README.md"));
    let missing: Vec<_> = all
        .iter()
        .filter(|page| !page.ends_with("docs/SUMMARY.md") && !chapters.contains(*page))
        .map(|page| page.strip_prefix(&root).unwrap().display().to_string())
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {}", missing.join(", "));
}

#[test]
fn headings_have_the_anchors_of_a_forge() {
    for (heading, expected) in [
        ("## When a report is not believed", "when-a-report-is-not-believed"),
        ("# `[[pep]]`: what it *does*, and how", "pep-what-it-does-and-how"),
        ("## In 10 ms", "in-10-ms"),
    ] {
        assert_eq!(anchor(heading), expected);
    }
    assert_eq!(links("see [a](b.md#c), `[x](y)` and [d](e.md)"), ["b.md#c", "e.md"]);
}
