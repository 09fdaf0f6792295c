//! All of document 001 in a quick look, with the recordings where they are there and without them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ranpace_lab::Report;
use ranpace_lab::reproduce::{self, How, Played, ReproduceError, Verdict};

/// The folder of recorded traces, where there is one: beside the workspace, or as the environment says.
fn traces() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let named = std::env::var_os("RANPACE_TRACES").map(PathBuf::from);
    named.or(Some(beside)).filter(|folder| folder.is_dir())
}

fn play(name: &str, folders: Vec<PathBuf>) -> Result<Vec<Played>, ReproduceError> {
    let mut recordings = reproduce::recordings(folders)?;
    let stop = AtomicBool::new(false);
    let how = How {
        threads: 0,
        stop: &stop,
        store: None,
        quick: true,
        sensitivity: false,
        models: reproduce::Models::NONE,
    };
    let experiments = reproduce::experiments()?;
    let chosen = experiments.iter().filter(|experiment| experiment.is_called(name));
    chosen.filter_map(|experiment| reproduce::play(experiment, &mut recordings, &how).transpose()).collect()
}

#[test]
fn all_of_001_can_be_played() {
    let Some(folder) = traces() else {
        // Written past the test runner, which hides what passing tests print.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs recorded traces; CONTRIBUTING.md says where they come from"
        );
        return;
    };
    let all = play("001", vec![folder]).unwrap();
    assert_eq!(all.len(), 8);
    for played in &all {
        assert!(played.missing.is_empty());
        for row in &played.rows {
            let expected =
                if played.experiment.pending.is_some() { Verdict::Pending } else { Verdict::Reported };
            assert_eq!(row.verdict, expected, "a quick look judges nothing: {row:?}");
        }
        let with_runs = played.cells.all().count();
        assert_eq!(with_runs == 0, played.experiment.pending.is_some(), "{}", played.experiment.id);
    }
    let chapters = all.iter().map(|played| reproduce::chapter(played).unwrap()).collect();
    let page = Report { chapters, ..Report::default() }.html().unwrap();
    assert!(page.contains("Table I") && !page.contains("NaN"));
}

#[test]
fn without_its_recording_a_row_is_skipped_and_the_recording_named() {
    let empty = tempfile::tempdir().unwrap();
    for played in play("001", vec![empty.path().to_owned()]).unwrap() {
        let needs_traces = !played.missing.is_empty();
        match played.experiment.id.as_str() {
            "001-a1-detector" | "001-a5-friendliness" | "001-a8-field" => assert!(!needs_traces),
            "001-a3-table1" => assert_eq!(played.missing.len(), 3, "those of a quick look"),
            _ => assert_eq!(played.missing.len(), 1),
        }
        for recording in &played.missing {
            assert!(
                recording.source.starts_with("https://")
                    || recording.source.starts_with("built from https://")
            );
            assert_eq!(recording.sha256.len(), 64);
        }
        for row in &played.rows {
            if needs_traces && !row.measured.contains("not played at") {
                assert_eq!(row.verdict, Verdict::Skipped, "{row:?}");
                assert!(row.measured.starts_with("needs "), "{row:?}");
            }
        }
        reproduce::chapter(&played).unwrap();
    }
}

#[test]
fn a_recording_with_another_content_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("TMobile-UMTS-driving.down"), "1\n2\n3\n").unwrap();
    let error = play("001-a2", vec![folder.path().to_owned()]).unwrap_err().to_string();
    for expected in
        ["is not the recording that was meant", "expected sha256 c97a74e7", "github.com/ravinet/mahimahi"]
    {
        assert!(error.contains(expected), "{error}");
    }
}
