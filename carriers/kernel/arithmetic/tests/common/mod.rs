//! Runs of the simulator whose events are played into the control of `logic/cc` and into the kernel's, and hostile events.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "each test file uses some of these; a panic is a failed test"
)]

mod halves;
mod scenarios;
mod sequence;
mod torture;

use std::sync::{Arc, Mutex};

use ranpace_cc::{Algorithm, CongestionControl};
use ranpace_kernel_arithmetic::record::Recorder;
use ranpace_kernel_arithmetic::replay::{Differences, Pair};
use ranpace_scenario::{ProxySpec, Scenario, Transport};
use ranpace_sim::Simulation;

pub use halves::{BuildReceiver, Reports, moments, play_receivers};
pub use scenarios::{
    Played, all, few, few_peps, few_proxies, few_uploads, peps, proxies, some, uneven, uploads,
};
pub use sequence::{Counted, play_ledgers};
pub use torture::torture;

/// Builds a fresh control of the kernel's.
pub type Build = Arc<dyn Fn() -> Box<dyn CongestionControl> + Send + Sync>;

/// Adds what a pair found to the sum when its connection is over.
struct Summed {
    pair: Pair,
    sum: Arc<Mutex<Differences>>,
}

impl Drop for Summed {
    fn drop(&mut self) {
        self.sum.lock().unwrap().join(&self.pair.differences);
    }
}

/// The algorithm, with a recorder around each control whose events go into a fresh one and the kernel's.
fn recorded(
    algorithm: &Algorithm,
    kernel: &Build,
    segments: f64,
    sum: &Arc<Mutex<Differences>>,
) -> Algorithm {
    let (plain, kernel, sum) = (algorithm.clone(), Arc::clone(kernel), Arc::clone(sum));
    algorithm.clone().with_around(Arc::new(move |control| {
        let mut summed =
            Summed { pair: Pair::new(plain.build(1), kernel(), segments), sum: Arc::clone(&sum) };
        Box::new(Recorder::new(control, Box::new(move |moment| summed.pair.play(moment))))
    }))
}

/// Plays a scenario; the controls of all its flows and proxies that are `algorithm` are compared with the kernel's.
pub fn play(played: &Played, algorithm: &Algorithm, kernel: &Build, segments: f64) -> Differences {
    let text = played.text.replace("CONTROL", algorithm.as_str());
    let mut scenario: Scenario = ranpace_scenario::parse(&text, &played.name, &mut scenarios::Files)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let sum = Arc::new(Mutex::new(Differences::default()));
    for flow in &mut scenario.flows {
        if let Transport::Tcp { algorithm: of_flow, .. } = &mut flow.transport
            && of_flow == algorithm
        {
            *of_flow = recorded(algorithm, kernel, segments, &sum);
        }
    }
    for ProxySpec { ran_cc, .. } in &mut scenario.proxies {
        if ran_cc == algorithm {
            *ran_cc = recorded(algorithm, kernel, segments, &sum);
        }
    }
    drop(Simulation::new(&scenario).run());
    drop(scenario);
    let found = sum.lock().unwrap().clone();
    assert!(found.acks > 0, "{}: nothing was recorded", played.name);
    found
}

/// Plays these, and fails if the two were ever further apart than one segment or 1 %. Returns what all had together.
#[track_caller]
pub fn compare(runs: &[Played], algorithm: &str, kernel: &Build) -> Differences {
    compare_within(runs, algorithm, kernel, 1.0)
}

/// The same with another number of segments.
#[track_caller]
pub fn compare_within(runs: &[Played], algorithm: &str, kernel: &Build, segments: f64) -> Differences {
    let algorithm: Algorithm = algorithm.parse().unwrap();
    let mut sum = Differences::default();
    let mut failed = String::new();
    for played in runs {
        let found = play(played, &algorithm, kernel, segments);
        eprintln!("{algorithm}, {}: {found}", played.name);
        if found.too_far > 0 {
            failed += &format!("\n{}: {found}", played.name);
        }
        sum.join(&found);
    }
    assert!(failed.is_empty(), "{algorithm}:{failed}");
    sum
}
