//! Plays a scenario in virtual time.

use ranpace_network::{Drive, Event, RadioReader, Reader, RunResult, Series, Source, Tap, Updates};
use ranpace_phy::Direction as Way;
use ranpace_radio::cell::CellSubscription;
use ranpace_rnis::update::Update;
use ranpace_rnis::{AssociateId, RadioHint};
use ranpace_scenario::Scenario;
use ranpace_units::Time;

mod endpoints;
mod finish;
mod splitting;

use endpoints::{Due, Endpoints};

use crate::passing::participants;

/// Events between two calls of `go_on`; an event usually takes some hundred nanoseconds.
const CHECK_EVERY: u64 = 1 << 14;

/// Number of flows from which prefetching pays; see [`ranpace_tcp::prefetch`].
const CROWD: usize = 64;

/// Observes hints: their arrival time, user and content.
pub type HintObserver<'a> = &'a mut dyn FnMut(Time, u32, &RadioHint);

/// A network with the hosts of a simulation.
type Network<'a> = ranpace_network::Network<'a, Due>;

/// Series of a run that is not over, in the order of [`RunResult::flows`], `links` and `users`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SeriesSoFar {
    /// Of each flow.
    pub flows: Vec<Series>,
    /// Of each of [`link_names`](crate::link_names).
    pub links: Vec<Series>,
    /// Of each user of cells; empty for users without flows.
    pub users: Vec<Series>,
}

/// A scenario ready to run. The same scenario and seed give the same result on any machine.
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

    /// Passes every packet that leaves a link, or is dropped there, to `tap`.
    #[must_use]
    pub fn with_tap(mut self, tap: &'a mut dyn Tap) -> Self {
        self.network.meters.tap = Some(tap);
        self
    }

    /// Passes the cells' reports to `reader`, and what else they say. Without this call reports cost nothing; with it no result
    /// changes.
    #[must_use]
    pub fn with_reports(mut self, subscription: CellSubscription, reader: &'a mut dyn RadioReader) -> Self {
        self.network.subscribe_reports(subscription, reader);
        self
    }

    /// Passes cells, users, and what cells say in every slot to `sink`, as a source of radio information does; `ids` are the
    /// identifiers of the user with this number.
    #[must_use]
    pub fn with_updates<F: FnMut(Update)>(
        self,
        ids: &dyn Fn(u32) -> Vec<AssociateId>,
        sink: &'a mut Updates<F>,
    ) -> Self {
        self.network.describe(ids).into_iter().for_each(&mut sink.0);
        self.with_reports(CellSubscription::EVERY_SLOT, sink)
    }

    /// Passes the hints about some users in one direction to `observer` when they arrive, with the number of the user: the hints
    /// that a mechanism would get, of bearer 0. The feed between the cells and the edge then counts in the results.
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

    /// Runs to the end.
    pub fn run(self) -> RunResult {
        self.run_while(&mut |_| true)
    }

    /// Handles everything that happens up to `until`, or to the scenario's end if that comes first; returns the time reached. Between
    /// two calls nothing happens: who asks a control about its flow, or sets what it does next, does it then.
    pub fn advance(&mut self, until: Time) -> Time {
        let until = until.min(Time::ZERO + self.scenario.duration);
        while let Some((at, event)) = self.network.queue.next(until) {
            self.network.set_now(at);
            self.events += 1;
            self.network.handle(event, &mut self.endpoints);
        }
        self.network.set_now(until);
        until
    }

    /// The series so far, from row number `from` on, as the result will have them.
    pub fn series_since(&self, from: usize) -> SeriesSoFar {
        SeriesSoFar {
            flows: self.endpoints.rows.iter().map(|rows| rows.since(from)).collect(),
            links: self.network.link_rows().iter().map(|rows| rows.since(from)).collect(),
            users: self.network.user_series_since(from),
        }
    }

    /// Runs to the end, or until `go_on`, called regularly with the virtual time, returns false. What was measured until then is
    /// valid.
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
