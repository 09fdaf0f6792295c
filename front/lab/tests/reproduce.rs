//! Published experiments in a quick look: document 001 with and without its recordings, SIGMA's experiments (000), document 004,
//! and resuming a stopped run.
#![allow(clippy::unwrap_used)] // a test may

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ranpace_lab::reproduce::{self, Experiment, How, Played, ReproduceError, Verdict};
use ranpace_lab::{Report, Store};

/// The folder of recorded traces, if any: beside the workspace, or from the environment.
fn traces() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let named = std::env::var_os("RANPACE_TRACES").map(PathBuf::from);
    named.or(Some(beside)).filter(|folder| folder.is_dir())
}

fn experiments(names: &[&str]) -> Vec<Experiment> {
    let all = reproduce::experiments().unwrap();
    all.into_iter().filter(|experiment| names.iter().any(|name| experiment.is_called(name))).collect()
}

fn how<'a>(stop: &'a AtomicBool, store: Option<&'a Store>, sensitivity: bool) -> How<'a> {
    How { threads: 0, stop, store, quick: true, sensitivity, models: reproduce::Models::NONE }
}

fn play(names: &[&str], folders: Vec<PathBuf>, sensitivity: bool) -> Result<Vec<Played>, ReproduceError> {
    let mut recordings = reproduce::recordings(folders)?;
    let stop = AtomicBool::new(false);
    let how = how(&stop, None, sensitivity);
    let chosen = experiments(names);
    chosen.iter().filter_map(|chosen| reproduce::play(chosen, &mut recordings, &how).transpose()).collect()
}

/// The report of experiments in a quick look, which judges nothing.
fn page(all: &[Played]) -> String {
    for played in all {
        let expected = if played.experiment.pending.is_some() { Verdict::Pending } else { Verdict::Reported };
        for row in &played.rows {
            assert_eq!(row.verdict, expected, "a quick look judges nothing: {row:?}");
        }
    }
    let chapters = all.iter().map(|played| reproduce::chapter(played).unwrap()).collect();
    let page = Report { chapters, ..Report::default() }.html().unwrap();
    assert!(!page.contains("NaN"));
    page
}

/// Everything at the points of a quick look is measured.
fn assert_measured(all: &[Played]) {
    for played in all {
        let measured = played.rows.iter().filter(|row| row.measured.ends_with("(quick)")).count();
        assert!(measured >= 1, "{}: {:?}", played.experiment.id, played.rows);
    }
}

#[test]
fn all_of_001_can_be_played() {
    let Some(folder) = traces() else {
        // Bypasses the test runner, which hides the output of passing tests.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs recorded traces; CONTRIBUTING.md says where they come from"
        );
        return;
    };
    let all = play(&["001"], vec![folder], false).unwrap();
    assert_eq!(all.len(), 8);
    for played in &all {
        assert!(played.missing.is_empty());
        let with_runs = played.results.all().count();
        assert_eq!(with_runs == 0, played.experiment.pending.is_some(), "{}", played.experiment.id);
    }
    assert!(page(&all).contains("Table I"));
}

#[test]
fn without_its_recording_a_row_is_skipped_and_the_recording_named() {
    let empty = tempfile::tempdir().unwrap();
    for played in play(&["001"], vec![empty.path().to_owned()], false).unwrap() {
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
    let error = play(&["001-a2"], vec![folder.path().to_owned()], false).unwrap_err().to_string();
    for expected in
        ["is not the recording that was meant", "expected sha256 c97a74e7", "github.com/ravinet/mahimahi"]
    {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn sigmas_uploads_can_be_played() {
    let all = play(&["000-s1", "000-s2", "000-s3", "000-s4"], Vec::new(), false).unwrap();
    assert_eq!(all.len(), 4);
    assert_measured(&all);
    assert!(page(&all).contains("Inside the control"));
}

#[test]
fn chapters_4_to_6_can_be_played() {
    let all = play(&["004-4", "004-5", "004-6"], Vec::new(), false).unwrap();
    assert_eq!(all.len(), 9);
    assert!(all.iter().all(|played| played.missing.is_empty()));
    assert!(page(&all).contains("Table 6.3"));
}

#[test]
fn chapter_7_can_be_played() {
    let all = play(&["004-7"], Vec::new(), false).unwrap();
    assert_eq!(all.len(), 7);
    assert_measured(&all);
    let page = page(&all);
    assert!(page.contains("Inside the control") && page.contains("drain target"));
}

#[test]
fn every_drain_reference_is_tried_on_request() {
    let played = &play(&["004-7-states"], Vec::new(), true).unwrap()[0];
    let table = played.tables.iter().find(|table| table.title.contains("other variants")).unwrap();
    // `pre` is the judged scheme, and `live` is run anyway.
    for label in ["live", "drain-ref=filt", "drain-ref=past", "drain-ref=robust"] {
        assert!(table.rows.iter().any(|row| row[0] == label && row[3] == "startup"), "{label}: {table:?}");
    }
}

#[test]
fn readings_are_played_where_they_differ_and_the_nearest_is_named() {
    let played = &play(&["004-6-fit"], Vec::new(), true).unwrap()[0];
    let last = played.rows.last().unwrap();
    assert_eq!(last.criterion, "which of 18 choices is nearest to the published figures");
    assert!(last.measured.contains("buffer=") && last.measured.contains("window="), "{last:?}");
    // Every combination has BBR alone, under a label of its own; that of the experiment itself also exists by its name. Two points
    // each.
    let labels: Vec<&str> = played.results.all().map(|(scheme, ..)| scheme).collect();
    let extra = labels.iter().filter(|label| label.contains('[')).count();
    assert_eq!((labels.len(), extra), (2 * 19, 2 * 18));
}

#[test]
fn complete_runs_are_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), "reproduce").unwrap();
    let mut recordings = reproduce::recordings(Vec::new()).unwrap();
    let experiment = &experiments(&["004-6-table"])[0];
    let stop = AtomicBool::new(false);
    let how = How { threads: 1, ..how(&stop, Some(&store), false) };
    let first = reproduce::play(experiment, &mut recordings, &how).unwrap().unwrap();
    // With the flag set nothing more is run: all results come from the store.
    stop.store(true, Ordering::Relaxed);
    assert!(reproduce::play(experiment, &mut recordings, &how).unwrap().is_none());
    stop.store(false, Ordering::Relaxed);
    let files = || std::fs::read_dir(store.folder()).unwrap().count();
    let kept = files();
    let second = reproduce::play(experiment, &mut recordings, &how).unwrap().unwrap();
    assert_eq!((first.rows, files()), (second.rows, kept));
}
