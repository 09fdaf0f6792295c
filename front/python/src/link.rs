//! A scenario that is played step by step, with one flow whose window a caller sets between two steps: what the environments for
//! learning stand on.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use ranpace_cc::{Ack, Congestion, CongestionControl, Context, LossResponse, Pacing, Sample, Window};
use ranpace_lab::Job;
use ranpace_rnis::RadioHint;
use ranpace_scenario::{Scenario, Transport};
use ranpace_sim::Simulation;
use ranpace_units::{Rate, Span, Time};
use self_cell::self_cell;

use crate::failure::{asked, or_raise};
use crate::play::library;

self_cell!(
    /// A scenario and the simulation that borrows it.
    struct Running {
        owner: Scenario,
        #[not_covariant]
        dependent: Simulation,
    }
);

/// What the agent's control and the environment share.
#[derive(Debug, Default)]
struct Shared {
    /// The window that the agent chose, in segments; 0 before it has chosen one.
    cwnd: f64,
    /// The pace that the agent chose.
    pacing: Option<Rate>,
    /// What has been measured since the last step.
    seen: Seen,
    /// The connection at its last event.
    cx: Option<Context>,
    radio: Option<RadioHint>,
}

/// Measurements of one step.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    acked_bytes: u64,
    acked: u64,
    lost: u64,
    rtt_sum: f64,
    rtt_count: f64,
    rtt_min: f64,
    /// Sums for the slope of the RTT over time.
    time_sum: f64,
    time_rtt_sum: f64,
    time_square_sum: f64,
}

impl Seen {
    fn rtt(&mut self, at: f64, rtt: f64) {
        self.rtt_min = if self.rtt_count == 0.0 { rtt } else { self.rtt_min.min(rtt) };
        self.rtt_count += 1.0;
        self.rtt_sum += rtt;
        self.time_sum += at;
        self.time_rtt_sum += at * rtt;
        self.time_square_sum += at * at;
    }

    fn mean_rtt(&self) -> f64 {
        if self.rtt_count > 0.0 { self.rtt_sum / self.rtt_count } else { f64::NAN }
    }

    /// Slope of a least-squares line through the RTTs; 0 for fewer than two, or all at one instant.
    fn gradient(&self) -> f64 {
        let n = self.rtt_count;
        let spread = n * self.time_square_sum - self.time_sum * self.time_sum;
        if n < 2.0 || spread <= 1e-12 {
            return 0.0;
        }
        (n * self.time_rtt_sum - self.time_sum * self.rtt_sum) / spread
    }
}

/// The control of the agent's flow: it keeps the window that was chosen, and notes what it sees.
#[derive(Debug)]
struct Agent {
    shared: Arc<Mutex<Shared>>,
    wants_radio: bool,
    /// Time since which the slope is counted, so that its sums stay small.
    origin: Time,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // A panic while it was locked would have ended the simulation.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agent {
    fn apply(&self, cx: &Context, w: &mut Window, note: impl FnOnce(&mut Shared)) {
        let mut shared = lock(&self.shared);
        note(&mut shared);
        shared.cx = Some(*cx);
        if shared.cwnd > 0.0 {
            w.cwnd = shared.cwnd;
            w.pacing = shared.pacing.map_or(Pacing::Unlimited, Pacing::Rate);
        } else {
            shared.cwnd = w.cwnd;
        }
    }
}

impl CongestionControl for Agent {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.origin = cx.now;
        self.apply(cx, w, |_| {});
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        let at = cx.now.since(self.origin).as_secs_f64();
        self.apply(cx, w, |shared| {
            shared.seen.acked_bytes += sample.bytes.get();
            shared.seen.acked += sample.delivered;
            if let Some(rtt) = sample.rtt {
                shared.seen.rtt(at, rtt.as_secs_f64());
            }
        });
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.apply(cx, w, |shared| shared.seen.lost += event.lost);
        LossResponse::Own
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, _: &Ack) {
        self.apply(cx, w, |_| {});
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn wants_radio(&self) -> bool {
        self.wants_radio
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        self.apply(cx, w, |shared| shared.radio = Some(*hint));
    }
}

/// A scenario that is played step by step.
#[pyclass(unsendable, module = "ranpace._ranpace")]
pub struct Link {
    running: Running,
    shared: Arc<Mutex<Shared>>,
    now: Time,
    end: Time,
}

/// What a step measured, in the order of `ranpace.gym.OBSERVED`: time (s), throughput (bit/s), mean, smallest and smoothed RTT (s), delay
/// gradient (s/s), acknowledged and lost segments, window and flight (segments), CQI, PRBs granted and of the cell, RLC queue (bytes).
type Step = [f64; 14];

#[pymethods]
impl Link {
    /// Prepares a scenario whose flow `flow` is the agent's.
    #[new]
    #[pyo3(signature = (text, file, *, flow, radio, traces))]
    fn new(
        py: Python<'_>,
        text: String,
        file: &str,
        flow: &str,
        radio: bool,
        traces: Option<PathBuf>,
    ) -> PyResult<Self> {
        let job = or_raise(py, Job::new("", text, file, &mut library(traces.as_ref())))?;
        let mut scenario = job.scenario;
        let names = scenario.flows.iter().map(|flow| flow.name.clone()).collect::<Vec<_>>().join(", ");
        let found = scenario.flows.iter_mut().find(|known| known.name == flow);
        let found = found
            .ok_or_else(|| asked(py, format!("flow: no flow is called {flow:?}; there are: {names}")))?;
        let Transport::Tcp { algorithm, .. } = &mut found.transport else {
            return Err(asked(
                py,
                format!("flow: {flow:?} is not carried by TCP, so no agent can set its window"),
            ));
        };
        let shared = Arc::new(Mutex::new(Shared::default()));
        let own = Arc::clone(&shared);
        *algorithm = algorithm.clone().with_around(Arc::new(move |_| {
            Box::new(Agent { shared: Arc::clone(&own), wants_radio: radio, origin: Time::ZERO })
        }));
        let end = Time::ZERO + scenario.duration;
        Ok(Self {
            running: Running::new(scenario, |scenario| Simulation::new(scenario)),
            shared,
            now: Time::ZERO,
            end,
        })
    }

    /// Sets window (segments) and pace (bit/s, or `None`) from the next acknowledgement on, plays `duration_s` seconds, and returns what
    /// was seen, and whether the scenario has ended.
    fn step(
        &mut self,
        py: Python<'_>,
        cwnd: Option<f64>,
        pacing_bit_s: Option<f64>,
        duration_s: f64,
    ) -> PyResult<(Step, bool)> {
        if !(duration_s > 0.0 && duration_s < 1e6) {
            return Err(PyValueError::new_err(format!("expected a step above 0 s, found {duration_s}")));
        }
        {
            let mut shared = lock(&self.shared);
            if let Some(cwnd) = cwnd {
                if !(1.0..=1e9).contains(&cwnd) {
                    return Err(PyValueError::new_err(format!(
                        "expected a window of 1 to 1e9 segments, found {cwnd}"
                    )));
                }
                shared.cwnd = cwnd;
            }
            shared.pacing = match pacing_bit_s {
                None => None,
                Some(rate) if (1.0..1e18).contains(&rate) => Some(Rate::from_bits_per_s(rate as u64)),
                Some(rate) => {
                    return Err(PyValueError::new_err(format!(
                        "expected a pace of 1 to 1e18 bit/s, found {rate}"
                    )));
                }
            };
            shared.seen = Seen::default();
        }
        let before = self.now;
        let until = before + Span::from_secs_f64(duration_s);
        self.now = self.running.with_dependent_mut(|_, simulation| simulation.advance(until));
        crate::failure::raised()?;
        // Long episodes hold Python's lock; Ctrl-C is noticed between two steps.
        py.check_signals()?;
        let shared = lock(&self.shared);
        let (seen, played) = (shared.seen, self.now.since(before).as_secs_f64());
        let (srtt, in_flight) =
            shared.cx.map_or((f64::NAN, 0.0), |cx| (cx.srtt.as_secs_f64(), cx.in_flight as f64));
        let radio = shared.radio.as_ref();
        let step = [
            self.now.as_secs_f64(),
            if played > 0.0 { seen.acked_bytes as f64 * 8.0 / played } else { 0.0 },
            seen.mean_rtt(),
            if seen.rtt_count > 0.0 { seen.rtt_min } else { f64::NAN },
            srtt,
            seen.gradient(),
            seen.acked as f64,
            seen.lost as f64,
            shared.cwnd,
            in_flight,
            radio.and_then(|hint| hint.cqi).map_or(f64::NAN, f64::from),
            radio.map_or(f64::NAN, |hint| hint.granted),
            radio.map_or(f64::NAN, |hint| f64::from(hint.cell)),
            radio.map_or(f64::NAN, |hint| hint.queue.get() as f64),
        ];
        Ok((step, self.now >= self.end))
    }
}
