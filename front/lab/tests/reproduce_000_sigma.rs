//! SIGMA's experiments (document 000) in a quick look.
#![allow(clippy::unwrap_used)] // a test may

use std::sync::atomic::AtomicBool;

use ranpace_lab::Report;
use ranpace_lab::reproduce::{self, Experiment, How, Played, Verdict};

fn play(name: &str) -> Vec<Played> {
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
    let all = reproduce::experiments().unwrap();
    let chosen = all.iter().filter(|experiment: &&Experiment| experiment.is_called(name));
    chosen.map(|experiment| reproduce::play(experiment, &mut recordings, &how).unwrap().unwrap()).collect()
}

#[test]
fn sigmas_uploads_can_be_played() {
    let all: Vec<Played> = ["000-s1", "000-s2", "000-s3", "000-s4"].into_iter().flat_map(play).collect();
    assert_eq!(all.len(), 4);
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
    assert!(page.contains("Inside the control") && !page.contains("NaN"));
}
