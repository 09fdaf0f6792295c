//! Runs of the simulator whose arrivals and radio hints are told to the receiver of `logic/cc` and to the kernel's.

use std::sync::{Arc, Mutex};

use ranpace_cc::bw_report::Format;
use ranpace_cc::{Algorithm, RadioHint, Received, ReceiverHalf, ReceiverReport};
use ranpace_scenario::{Scenario, Transport};
use ranpace_sim::Simulation;
use ranpace_units::{Bytes, Rate, Span, Time};

use super::scenarios::{Files, Played};

/// Builds a fresh receiver of the kernel's.
pub type BuildReceiver = Arc<dyn Fn() -> Box<dyn ReceiverHalf> + Send + Sync>;

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// Packets with data, hints, and reports of both.
    pub arrivals: u64,
    pub hints: u64,
    pub reports: u64,
    /// Largest difference of two reports as a share.
    pub worst: f64,
    /// Of each receiver: number, sum and sum of squares of its reports in bit/s.
    pub logic: (f64, f64, f64),
    pub kernel: (f64, f64, f64),
    /// Reports more than 1 % apart, or of one alone; the first.
    pub too_far: u64,
    pub first: Option<String>,
}

fn add((number, sum, squares): &mut (f64, f64, f64), rate: Rate) {
    *number += 1.0;
    *sum += rate.as_f64();
    *squares += rate.as_f64() * rate.as_f64();
}

/// Mean and standard deviation.
pub fn moments((number, sum, squares): (f64, f64, f64)) -> (f64, f64) {
    let mean = sum / number;
    (mean, (squares / number - mean * mean).max(0.0).sqrt())
}

/// The run's own receiver, and two that are compared.
#[derive(Debug)]
struct Halves {
    own: Box<dyn ReceiverHalf>,
    logic: Box<dyn ReceiverHalf>,
    kernel: Box<dyn ReceiverHalf>,
    /// Packets that the kernel's sees as one, at the time of the last, as GRO merges them; and those that wait.
    merge: u64,
    waiting: Option<(Received, u64)>,
    found: Arc<Mutex<Reports>>,
}

/// GRO holds a packet no longer than the packets come in one poll of the device. Ours: packets less than this apart.
const POLL: Span = Span::from_micros(300);

impl Halves {
    fn flush(&mut self) {
        if let Some((packet, _)) = self.waiting.take() {
            self.kernel.on_data(&packet);
        }
    }

    fn merge(&mut self, received: Received) {
        let (packet, count) = match self.waiting.take() {
            Some((packet, count)) if count < self.merge && received.now - packet.now < POLL => {
                (Received { bytes: packet.bytes + received.bytes, ..received }, count + 1)
            }
            other => {
                self.waiting = other;
                self.flush();
                (received, 1)
            }
        };
        self.waiting = Some((packet, count));
        if count >= self.merge {
            self.flush();
        }
    }
}

impl ReceiverHalf for Halves {
    fn on_start(&mut self, now: Time) {
        self.own.on_start(now);
        self.logic.on_start(now);
        self.kernel.on_start(now);
    }

    fn on_data(&mut self, received: &Received) {
        self.own.on_data(received);
        // What the kernel has: RTTs in whole microseconds.
        let cut = Received {
            rtt: received.rtt.map(|rtt| Span::from_micros(rtt.as_micros().max(1))),
            wire: Bytes::ZERO,
            ..*received
        };
        self.logic.on_data(&cut);
        self.merge(cut);
        self.found.lock().unwrap().arrivals += 1;
    }

    fn wants_radio(&self) -> bool {
        self.own.wants_radio()
    }

    fn wants_quality(&self) -> bool {
        self.own.wants_quality()
    }

    fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        self.own.on_radio(now, hint);
        self.logic.on_radio(now, hint);
        self.kernel.on_radio(now, hint);
        self.found.lock().unwrap().hints += 1;
    }

    fn report(&mut self, now: Time) -> Option<ReceiverReport> {
        let own = self.own.report(now);
        if self.waiting.as_ref().is_some_and(|(packet, _)| self.merge > 1 && now - packet.now >= POLL) {
            self.flush();
        }
        let (logic, kernel) = (self.logic.report(now), self.kernel.report(now));
        let read =
            |report: Option<ReceiverReport>| report.and_then(|report| Format::Experiment.decode(&report));
        let mut found = self.found.lock().unwrap();
        if let Some(rate) = read(logic) {
            add(&mut found.logic, rate);
        }
        if let Some(rate) = read(kernel) {
            add(&mut found.kernel, rate);
        }
        match (read(logic), read(kernel)) {
            (None, None) => {}
            (Some(logic), Some(kernel)) => {
                // Beyond its bound a report counts as that.
                let logic = logic.min(Rate::from_bits_per_s(100_000_000_000)).as_f64();
                // Both are whole kbit/s.
                let apart = (kernel.as_f64() - logic) / logic.max(100e3);
                found.reports += 1;
                found.worst = found.worst.max(apart.abs());
                if apart.abs() > 0.01 {
                    found.too_far += 1;
                    found.first.get_or_insert_with(|| format!("{now:?}: {logic}, {kernel:?}"));
                }
            }
            (logic, kernel) => {
                found.too_far += 1;
                found.first.get_or_insert_with(|| format!("{now:?}: {logic:?}, {kernel:?}"));
            }
        }
        own
    }
}

/// Plays a scenario; what its receivers see is told to fresh ones, the kernel's with so many packets merged at most.
pub fn play_receivers(played: &Played, algorithm: &Algorithm, kernel: &BuildReceiver, merge: u64) -> Reports {
    let text = played.text.replace("CONTROL", algorithm.as_str());
    let mut scenario: Scenario = ranpace_scenario::parse(&text, &played.name, &mut Files)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let found = Arc::new(Mutex::new(Reports::default()));
    for flow in &mut scenario.flows {
        if let Transport::Tcp { algorithm: of_flow, .. } = &mut flow.transport
            && of_flow == algorithm
        {
            let (plain, kernel, found) = (algorithm.clone(), Arc::clone(kernel), Arc::clone(&found));
            *of_flow = algorithm.clone().with_around_receiver(Arc::new(move |own| {
                let logic = plain.receiver().unwrap();
                let found = Arc::clone(&found);
                Box::new(Halves { own, logic, kernel: kernel(), merge, waiting: None, found })
            }));
        }
    }
    drop(Simulation::new(&scenario).run());
    drop(scenario);
    found.lock().unwrap().clone()
}
