//! Plays a scenario in virtual time.

use ranpace_network::{Drive, Event, Reader, RunResult, Source, Tap};
use ranpace_phy::Direction as Way;
use ranpace_radio::cell::CellSubscription;
use ranpace_rnis::{RadioHint, SlotReport};
use ranpace_scenario::Scenario;
use ranpace_units::Time;

mod endpoints;
mod finish;
mod splitting;

use endpoints::{Due, Endpoints};

use crate::passing::participants;

/// Work between two looks at whether to go on, in events; they take some hundred nanoseconds each, mostly.
const CHECK_EVERY: u64 = 1 << 14;

/// Flows from which on it pays to prefetch; see [`ranpace_tcp::prefetch`].
const CROWD: usize = 64;

/// Observes hints: when they come, and of which user.
pub type HintObserver<'a> = &'a mut dyn FnMut(Time, u32, &RadioHint);

/// A network whose hosts are those of a simulation.
type Network<'a> = ranpace_network::Network<'a, Due>;

/// A scenario about to be played. The same scenario and seed give the same result on any machine.
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    network: Network<'a>,
    endpoints: Endpoints<'a>,
    events: u64,
}

impl<'a> Simulation<'a> {
    /// Prepares a scenario.
    pub fn new(scenario: &'a Scenario) -> Self {
        let drive = Drive { prefetches: scenario.flows.len() >= CROWD, arrivals_only: false };
        let (on_path, stops) = participants(scenario);
        let mut network = Network::new(scenario, drive, &stops);
        let endpoints = Endpoints::new(scenario, &mut network, on_path);
        network.start();
        Self { scenario, network, endpoints, events: 0 }
    }

    /// Shows every packet that leaves a link, or is dropped there, to `tap`.
    #[must_use]
    pub fn with_tap(mut self, tap: &'a mut dyn Tap) -> Self {
        self.network.meters.tap = Some(tap);
        self
    }

    /// Shows the cells' reports to `reader`. Without this call reports cost nothing; with it no result changes.
    #[must_use]
    pub fn with_reports(
        mut self,
        subscription: CellSubscription,
        reader: &'a mut dyn FnMut(&SlotReport<'_>),
    ) -> Self {
        self.network.subscribe_reports(subscription, reader);
        self
    }

    /// Has the hints of some users in one direction shown to `observer` when they come, with the number of the user: what a
    /// mechanism would be told, of bearer 0. What comes between the cells and the edge then counts in the results.
    #[must_use]
    pub fn with_hints(
        mut self,
        source: Source,
        users: &[u32],
        direction: Way,
        observer: HintObserver<'a>,
    ) -> Self {
        for user in users {
            self.network.subscribe_hints(source, Reader::Observer, *user, direction, 0);
        }
        self.network.arm_radio();
        self.endpoints.observe_hints(observer);
        self
    }

    /// Plays to the end.
    pub fn run(self) -> RunResult {
        self.run_while(&mut |_| true)
    }

    /// Plays to the end, or until `go_on`, which is asked every now and then with the virtual time, says no. What was
    /// measured until then is valid.
    pub fn run_while(mut self, go_on: &mut dyn FnMut(Time) -> bool) -> RunResult {
        let end = Time::ZERO + self.scenario.duration;
        let mut interrupted = false;
        // A slot is work for each user of its cell, a row of the series for each flow and link.
        let users = 1 + self.scenario.users.len() as u64;
        let rows = users + (self.scenario.flows.len() + self.scenario.links.len()) as u64;
        let mut work = 0;
        while let Some((at, event)) = self.network.queue.next(end) {
            self.network.set_now(at);
            self.events += 1;
            work += match event {
                Event::Radio | Event::Feed => users,
                Event::Sample | Event::Measure => rows,
                _ => 1,
            };
            self.network.handle(event, &mut self.endpoints);
            if work >= CHECK_EVERY {
                work = 0;
                if !go_on(at) {
                    interrupted = true;
                    break;
                }
            }
        }
        if !interrupted {
            self.network.set_now(end);
        }
        self.finish(interrupted)
    }
}
