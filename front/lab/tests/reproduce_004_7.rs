//! Chapter 7 of document 004 in a quick look.
#![allow(clippy::unwrap_used)] // a test may

use std::sync::atomic::AtomicBool;

use ranpace_lab::Report;
use ranpace_lab::reproduce::{self, Experiment, How, Played, Verdict};

fn play(name: &str, sensitivity: bool) -> Vec<Played> {
    let mut recordings = reproduce::recordings(Vec::new()).unwrap();
    let stop = AtomicBool::new(false);
    let how = How {
        threads: 0,
        stop: &stop,
        store: None,
        quick: true,
        sensitivity,
        models: reproduce::Models::NONE,
    };
    let all = reproduce::experiments().unwrap();
    let chosen = all.iter().filter(|experiment: &&Experiment| experiment.is_called(name));
    chosen.map(|experiment| reproduce::play(experiment, &mut recordings, &how).unwrap().unwrap()).collect()
}

#[test]
fn chapter_7_can_be_played() {
    let all = play("004-7", false);
    assert_eq!(all.len(), 7);
    for played in &all {
        for row in &played.rows {
            assert_eq!(row.verdict, Verdict::Reported, "a quick look judges nothing: {row:?}");
        }
        // What is about the points of a quick look is measured.
        let measured = played.rows.iter().filter(|row| row.measured.ends_with("(quick)")).count();
        assert!(measured >= 1, "{}: {:?}", played.experiment.id, played.rows);
    }
    let chapters = all.iter().map(|played| reproduce::chapter(played).unwrap()).collect();
    let page = Report { chapters, ..Report::default() }.html().unwrap();
    assert!(page.contains("Inside the control") && page.contains("drain target") && !page.contains("NaN"));
}

#[test]
fn every_drain_reference_is_tried_on_request() {
    let played = &play("004-7-states", true)[0];
    let table = played.tables.iter().find(|table| table.title.contains("other variants")).unwrap();
    // `pre` is what is judged, and `live` is a scheme that is played anyway.
    for label in ["live", "drain-ref=filt", "drain-ref=past", "drain-ref=robust"] {
        assert!(table.rows.iter().any(|row| row[0] == label && row[3] == "startup"), "{label}: {table:?}");
    }
}
