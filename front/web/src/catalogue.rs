//! What a scenario can be made of: traces, cells, queues, workloads, examples, congestion controls.

use std::path::{Path, PathBuf};

use ranpace_cc::{Algorithm, AlgorithmError};
use ranpace_lab::{BUILTIN, Builtin};
use ranpace_link::TraceParser;
use ranpace_scenario::cells::PRESETS;
use ranpace_scenario::{Kind, QUEUES, WORKLOADS};

use crate::limits;
use crate::paths::Root;
use crate::problem::Refusal;
use crate::protocol::{CheckedControl, Controls, Example, Named, Sources};

/// The folder of uploaded recordings, below the server's.
pub const UPLOADED: &str = "recordings";
/// Most recordings that are listed.
const MOST_LISTED: usize = 1_000;
/// Longest name of an upload.
const LONGEST_NAME: usize = 100;

macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../examples/", $name, ".toml")))),*]
    };
}

/// The examples that a run in the browser can play: they name no other files.
const EXAMPLES: &[(&str, &str)] = examples![
    "block-losses",
    "c2tcp-target",
    "cell",
    "drive",
    "late-reports-meld",
    "middlebox",
    "page",
    "pep-mdcc",
    "proxy-rapid",
    "quic",
    "rnis",
    "shared-bottleneck",
    "tram",
    "upload-sigma",
];

/// All of it; `folders` are those of recordings.
pub fn sources(folders: &[PathBuf]) -> Sources {
    let kinds = |kinds: &[Kind]| {
        let named = |kind: &Kind| Named {
            name: kind.name.to_owned(),
            about: kind.about.to_owned(),
            written: kind.example.to_owned(),
        };
        kinds.iter().map(named).collect()
    };
    let builtin = |trace: &Builtin| {
        let name = format!("builtin:{}", trace.name);
        Named { written: format!("trace = \"{name}\""), about: trace.about.to_owned(), name }
    };
    let cell = |preset: &ranpace_scenario::cells::Preset| Named {
        name: preset.name.to_owned(),
        about: preset.about.to_owned(),
        written: format!("preset = \"{}\"", preset.name),
    };
    Sources {
        builtin: BUILTIN.iter().map(builtin).collect(),
        recordings: folders.iter().flat_map(|folder| recordings(folder)).take(MOST_LISTED).collect(),
        cells: PRESETS.iter().map(cell).collect(),
        queues: kinds(&QUEUES),
        workloads: kinds(&WORKLOADS),
        examples: EXAMPLES.iter().map(|(name, text)| example(name, text)).collect(),
    }
}

fn example(name: &str, text: &str) -> Example {
    let first = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    Example { name: name.to_owned(), about: first.to_owned(), text: text.to_owned() }
}

/// The recordings in a folder and its direct subfolders, by name. A folder that cannot be read has none.
fn recordings(folder: &Path) -> Vec<Named> {
    let files = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let mut all = files(folder);
    let below: Vec<PathBuf> = all.iter().filter(|path| path.is_dir()).flat_map(|path| files(path)).collect();
    all.extend(below);
    // Tables and notes lie beside recordings.
    let is_other = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("csv" | "json" | "md" | "toml" | "txt" | "html"))
    };
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        let bytes = path.metadata().ok().filter(|data| data.is_file())?.len();
        let is_shown = !name.starts_with('.') && !is_other(&path);
        let name = name.strip_suffix(".gz").unwrap_or(&name).to_owned();
        is_shown.then(|| Named {
            about: format!("{} KB", bytes.div_ceil(1_000)),
            written: format!("trace = {name:?}"),
            name,
        })
    };
    let mut found: Vec<Named> = all.into_iter().filter_map(named).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Keeps an uploaded recording.
pub fn upload(root: &Root, name: &str, content: &[u8]) -> Result<Named, Refusal> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(Refusal::impossible(format!(
            "name: expected 1 to {LONGEST_NAME} letters, digits, '.', '_' and '-', the first no '.', found {name:?}"
        )));
    }
    let mut parser = TraceParser::new();
    let trace = parser.push(content).and_then(|()| parser.finish());
    let trace = trace.map_err(|error| {
        Refusal::impossible(format!(
            "{name}: {error}; expected a recording of mahimahi's, a time in milliseconds on each line"
        ))
    })?;
    let folder = root.path().join(UPLOADED);
    let failed = |error: std::io::Error| Refusal::ours(format!("cannot write {UPLOADED}/{name}: {error}"));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    // It may have been a link to elsewhere.
    let folder = root.find(UPLOADED)?;
    let file = folder.join(name);
    let used: u64 = std::fs::read_dir(&folder)
        .map_err(failed)?
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|data| data.len())
        .sum();
    if used + content.len() as u64 > limits::UPLOADS {
        return Err(Refusal::too_large(format!(
            "{UPLOADED} has {} MB, and may have {} MB; delete recordings there",
            used >> 20,
            limits::UPLOADS >> 20
        )));
    }
    match std::fs::symlink_metadata(&file) {
        Ok(_) if std::fs::read(&file).is_ok_and(|known| known == content) => {}
        Ok(_) => {
            return Err(Refusal::conflict(format!(
                "there is another recording called {name:?}; choose another name"
            )));
        }
        Err(_) => {
            ranpace_lab::put(&file, content).map_err(Refusal::ours)?;
        }
    }
    let about = format!("{} KB, {} on average", content.len().div_ceil(1_000), trace.mean_rate());
    Ok(Named { name: name.to_owned(), about, written: format!("trace = {name:?}") })
}

/// The list of congestion controls.
pub fn controls() -> Result<Controls, Refusal> {
    // The types have the same fields: a test compares them.
    let list = serde_json::to_value(ranpace_lab::controls(&[]));
    list.and_then(serde_json::from_value).map_err(Refusal::ours)
}

/// Whether a control can be used as it is written.
pub fn check_control(cc: &str) -> CheckedControl {
    match cc.parse::<Algorithm>() {
        Ok(_) => CheckedControl { problem: String::new(), option: None },
        // The page shows it at the option's field.
        Err(AlgorithmError::BadOption { error, .. }) => CheckedControl {
            problem: format!("expected {}, found {:?}", error.expected, error.found),
            option: Some(error.key.to_owned()),
        },
        Err(error) => CheckedControl { problem: error.to_string(), option: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_controls_have_their_texts() {
        let (found, listed) = (controls().unwrap(), ranpace_lab::controls(&[]));
        assert_eq!(serde_json::to_value(&found).unwrap(), serde_json::to_value(&listed).unwrap());
        assert!(found.algorithms.len() > 20 && !found.decorators.is_empty());
    }

    #[test]
    fn a_control_that_cannot_be_used_names_the_option_at_fault() {
        for (cc, option, problem) in [
            ("cubic+c2tcp:target=50ms", None, ""),
            ("vegas:alpha=2000", Some("alpha"), "expected a number from 0 to 1000, found \"2000\""),
            ("c2tcp:target=soon", Some("target"), "expected a time such as 50ms, found \"soon\""),
        ] {
            let checked = check_control(cc);
            assert_eq!((checked.option.as_deref(), checked.problem.as_str()), (option, problem), "{cc}");
        }
        assert!(check_control("cubik").problem.contains("nearest: cubic"));
    }

    #[test]
    fn all_examples_but_those_of_other_files_can_be_played() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let names = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
        let names = names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        let mut left_out: Vec<String> =
            names.filter(|name| !EXAMPLES.iter().any(|(own, _)| own == name)).collect();
        left_out.sort();
        assert_eq!(left_out, ["recorded-link"]);
        let mut library = ranpace_lab::TraceLibrary::new([]).confined();
        for (name, text) in EXAMPLES {
            let prepared = crate::session::prepare((*text).to_owned(), &mut library);
            assert!(prepared.is_ok(), "{name}: {:?}", prepared.err());
        }
    }

    #[test]
    fn uploads_are_recordings_with_plain_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path()).unwrap();
        assert_eq!(upload(&root, "mine.down", b"1\n2\n").unwrap().name, "mine.down");
        assert_eq!(upload(&root, "mine.down", b"1\n2\n").unwrap().name, "mine.down", "once more");
        for (name, content, status) in [
            ("mine.down", "1\n3\n", 409),
            ("", "1\n", 422),
            ("../x", "1\n", 422),
            (".x", "1\n", 422),
            ("x", "one\n", 422),
            ("x", "", 422),
        ] {
            let refusal = upload(&root, name, content.as_bytes()).unwrap_err();
            assert_eq!(refusal.status.as_u16(), status, "{name}: {}", refusal.problem.detail);
        }
        let found = sources(&[folder.path().join(UPLOADED)]).recordings;
        assert_eq!(found.iter().map(|named| named.name.as_str()).collect::<Vec<_>>(), ["mine.down"]);
    }
}
