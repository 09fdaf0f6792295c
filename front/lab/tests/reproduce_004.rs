//! Chapters 4 to 6 of document 004 in a quick look, and going on where it was stopped.
#![allow(clippy::unwrap_used)] // a test may

use std::sync::atomic::{AtomicBool, Ordering};

use ranpace_lab::reproduce::{self, Experiment, How, Verdict};
use ranpace_lab::{Report, Store};

fn experiments(names: &[&str]) -> Vec<Experiment> {
    let all = reproduce::experiments().unwrap();
    all.into_iter().filter(|experiment| names.iter().any(|name| experiment.is_called(name))).collect()
}

#[test]
fn chapters_4_to_6_can_be_played() {
    let mut recordings = reproduce::recordings(Vec::new()).unwrap();
    let stop = AtomicBool::new(false);
    let how = How {
        threads: 0,
        stop: &stop,
        store: None,
        quick: true,
        sensitivity: false,
        models: reproduce::Models::NONE,
    };
    let chosen = experiments(&["004-4", "004-5", "004-6"]);
    assert_eq!(chosen.len(), 9);
    let mut all = Vec::new();
    for experiment in &chosen {
        let played = reproduce::play(experiment, &mut recordings, &how).unwrap().unwrap();
        assert!(played.missing.is_empty());
        for row in &played.rows {
            assert_eq!(row.verdict, Verdict::Reported, "a quick look judges nothing: {row:?}");
        }
        all.push(played);
    }
    let chapters = all.iter().map(|played| reproduce::chapter(played).unwrap()).collect();
    let page = Report { chapters, ..Report::default() }.html().unwrap();
    assert!(page.contains("Table 6.3") && !page.contains("NaN"));
}

#[test]
fn readings_are_played_where_they_differ_and_the_nearest_is_named() {
    let mut recordings = reproduce::recordings(Vec::new()).unwrap();
    let stop = AtomicBool::new(false);
    let how = How {
        threads: 0,
        stop: &stop,
        store: None,
        quick: true,
        sensitivity: true,
        models: reproduce::Models::NONE,
    };
    let experiment = &experiments(&["004-6-fit"])[0];
    let played = reproduce::play(experiment, &mut recordings, &how).unwrap().unwrap();
    let last = played.rows.last().unwrap();
    assert_eq!(last.criterion, "which of 18 choices is nearest to the published figures");
    assert!(last.measured.contains("buffer=") && last.measured.contains("window="), "{last:?}");
    // Every combination has BBR alone, under a label of its own; that of the experiment itself is there by its name too. Two points each.
    let labels: Vec<&str> = played.cells.all().map(|(scheme, ..)| scheme).collect();
    let extra = labels.iter().filter(|label| label.contains('[')).count();
    assert_eq!((labels.len(), extra), (2 * 19, 2 * 18));
}

#[test]
fn what_was_complete_is_not_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), "reproduce").unwrap();
    let mut recordings = reproduce::recordings(Vec::new()).unwrap();
    let experiment = &experiments(&["004-6-table"])[0];
    let stop = AtomicBool::new(false);
    let how = How {
        threads: 1,
        stop: &stop,
        store: Some(&store),
        quick: true,
        sensitivity: false,
        models: reproduce::Models::NONE,
    };
    let first = reproduce::play(experiment, &mut recordings, &how).unwrap().unwrap();
    // With the flag set nothing is played any more: what comes back was kept.
    stop.store(true, Ordering::Relaxed);
    assert!(reproduce::play(experiment, &mut recordings, &how).unwrap().is_none());
    stop.store(false, Ordering::Relaxed);
    let files = || std::fs::read_dir(store.folder()).unwrap().count();
    let kept = files();
    let second = reproduce::play(experiment, &mut recordings, &how).unwrap().unwrap();
    assert_eq!((first.rows, files()), (second.rows, kept));
}
