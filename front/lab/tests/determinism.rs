//! The same seeds yield the same result files, byte by byte, with any number of threads.

#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use ranpace_lab::{Job, Runner, Store, TraceLibrary};
use ranpace_scenario::presets::{CellRunSpec, cell};

/// Every file below a folder, by its path in it.
fn files(folder: &Path, below: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, below, found);
        } else {
            let name = path.strip_prefix(below).unwrap().to_str().unwrap().to_owned();
            found.insert(name, std::fs::read(&path).unwrap());
        }
    }
}

fn jobs() -> Vec<Job> {
    let mut traces = TraceLibrary::new([]);
    let mut jobs = Vec::new();
    for (cc, workload) in [
        ("cubic", "bulk"),
        ("bbr1", "bulk"),
        ("c2tcp", "bulk"),
        ("sprout", "bulk"),
        ("vivace", "bulk"),
        ("newreno", "web"),
    ] {
        for seed in 1..=3 {
            let workload = if workload == "web" {
                r#"{ kind = "web", page = "60KB" }"#.to_owned()
            } else {
                format!("{workload:?}")
            };
            let text = format!(
                r#"
name = "{cc}"
duration = "3s"
seed = {seed}
[[link]]
from = "server"
to = "phone"
trace = "builtin:lte"
delay = "15ms"
loss = 0.001
jitter = "2ms"
queue = {{ kind = "pie" }}
back = {{ loss = 0.0 }}
[[flow]]
from = "server"
to = "phone"
cc = "{cc}"
workload = {workload}
"#
            );
            jobs.push(Job::new(format!("{cc} {seed}"), text, "test.toml", &mut traces).unwrap());
        }
    }
    for preset in ["zhong-lte-ch6", "nr", "diarra-mmwave-nlos"] {
        let preset = ranpace_scenario::cells::by_name(preset).unwrap();
        let cubic = "cubic".parse().unwrap();
        for seed in 1..=2 {
            let mut spec = CellRunSpec::new(preset, &cubic);
            (spec.seed, spec.duration) = (seed, ranpace_units::Span::from_secs(2));
            let label = format!("{} {seed}", preset.name);
            jobs.push(Job::new(label, cell(&spec), "test.toml", &mut traces).unwrap());
        }
    }
    jobs
}

#[test]
fn result_files_do_not_depend_on_the_number_of_threads() {
    let (jobs, stop) = (jobs(), AtomicBool::new(false));
    let play = |threads: usize| {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "same").unwrap();
        let runner =
            Runner { threads, stop: &stop, store: Some(&store), what: "test", series: true, played: None };
        let results = runner.run(&jobs).unwrap();
        assert!(results.iter().all(Option::is_some));
        let mut found = BTreeMap::new();
        files(folder.path(), folder.path(), &mut found);
        found
    };
    let (one, two, again) = (play(1), play(2), play(2));
    assert!(one.len() >= jobs.len(), "{:?}", one.keys());
    for (case, other) in [("1 and 2 threads", &two), ("2 threads and 2 again", &again)] {
        assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{case}");
        let different: Vec<_> =
            one.iter().filter(|(name, bytes)| other[*name] != **bytes).map(|(name, _)| name).collect();
        assert!(different.is_empty(), "{case}: {different:?}");
    }
}
