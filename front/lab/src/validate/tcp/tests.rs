use std::collections::BTreeMap;

use ranpace_sim::Simulation;
use ranpace_units::Bytes;

use super::*;

/// A kernel that is the simulator, and a machine that is too slow for the first attempts of each run.
struct Fake<'a> {
    store: &'a Store,
    slow: u32,
    /// Its excess of goodput over the simulator's, %.
    more: u64,
    played: Mutex<BTreeMap<String, u32>>,
}

impl Kernel for Fake<'_> {
    fn play(&self, job: &Job, origin: &Origin) -> Attempt {
        let mut played = self.played.lock().unwrap();
        let times = played.entry(job.text.clone()).or_default();
        *times += 1;
        if *times <= self.slow {
            return Attempt::Invalid("slow".to_owned());
        }
        let mut result = Simulation::new(&job.scenario).run();
        for flow in &mut result.flows {
            flow.delivered = Bytes::new(flow.delivered.get() * (100 + self.more) / 100);
        }
        self.store.save(origin, &result).unwrap();
        Attempt::Kept
    }

    fn release(&self) -> String {
        "test".to_owned()
    }
}

fn found(store: &Store, slow: u32, more: u64) -> (Found, u32) {
    let kernel = Fake { store, slow, more, played: Mutex::default() };
    let stop = AtomicBool::new(false);
    let how = How {
        grid: Grid::Plain,
        quick: true,
        only: &[],
        side_by_side: 2,
        store,
        stop: &stop,
        kernel: &kernel,
    };
    let found = play(&how, &mut TraceLibrary::default()).unwrap();
    let times = kernel.played.lock().unwrap().values().sum();
    (found, times)
}

#[test]
fn rows_are_compared_once_they_are_valid_and_are_not_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), "tcp").unwrap();
    let (found_first, played) = found(&store, 1, 4);
    assert_eq!((found_first.valid, found_first.repeated, played), (12, 12, 24));
    // 4 % more is within 5 % of it.
    assert_eq!(found_first.agreeing(), (22, 22), "{:?}", found_first.rows);
    assert!(found_first.is_enough() && found_first.agrees());
    let names: Vec<&str> = found_first.rows.iter().map(|row| row.check.as_str()).collect();
    assert_eq!(
        names[..2],
        ["reno 5 Mbit/s 20 ms 0.5 BDP: goodput, Mbit/s", "reno 5 Mbit/s 20 ms 0.5 BDP: mean RTT, ms"]
    );
    let (found_again, played) = found(&store, 9, 9);
    assert_eq!(played, 0, "all are kept");
    assert_eq!(found_again.rows, found_first.rows);
}

#[test]
fn slow_machine_gives_no_rows_and_disagreement_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), "tcp").unwrap();
    let (slow, played) = found(&store, 99, 0);
    assert_eq!((slow.valid, slow.invalid.len(), played), (0, 12, 12 * (1 + REPEATS)));
    assert!(slow.rows.is_empty() && !slow.is_enough());
    let (different, _) = found(&store, 0, 10);
    assert!(different.is_enough() && !different.agrees(), "{:?}", different.agreeing());
}

#[test]
fn rows_are_chosen_by_words_of_their_names_and_an_unknown_word_says_which_there_are() {
    let names = |only: &[&str]| {
        let only: Vec<String> = only.iter().map(|&word| word.to_owned()).collect();
        Grid::Controls.rows(false, &only).map(|rows| rows.into_iter().map(|row| row.name).collect::<Vec<_>>())
    };
    assert_eq!(
        names(&["cdbe recorded", "dcic LTE"]).unwrap(),
        ["cdbe recorded LTE", "dcic LTE cell"],
        "in the order of the grid"
    );
    let error = names(&["cdbe recorder"]).unwrap_err().to_string();
    assert!(error.contains("cdbe recorder") && error.contains("\n  cdbev2 recorded LTE"), "{error}");
}
