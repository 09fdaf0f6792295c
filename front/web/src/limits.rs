//! What runs and uploads may take. All are ours: enough for a laptop and a classroom, and too little to fill a machine's memory.

use ranpace_link::Service;
use ranpace_scenario::Scenario;
use ranpace_units::Span;

use crate::problem::Refusal;
use crate::protocol::Limits;

/// Runs at a time.
pub const SESSIONS: usize = 16;
/// Viewers of all runs together.
pub const VIEWERS: usize = 256;
/// Connections.
pub const CONNECTIONS: usize = 512;
/// Length of a scenario.
pub const DURATION: Span = Span::from_secs(3_600);
/// Bytes of a scenario's text.
pub const SCENARIO: usize = 256 << 10;
/// Bytes of a run's series: the page has to hold them too.
pub const SERIES: u64 = 64 << 20;
/// Users of a run's cells, and its flows.
pub const USERS: usize = 500;
/// See [`USERS`].
pub const FLOWS: usize = 500;
/// Bytes of an uploaded recording, and of all of them.
pub const UPLOAD: usize = 16 << 20;
/// See [`UPLOAD`].
pub const UPLOADS: u64 = 256 << 20;
/// Packets of a run if all its links are full, in units of 1500 bytes; a slot of a user counts as eight.
const WORK: f64 = 5e8;
/// Bytes of a file of results that is sent.
pub const FILE: u64 = 256 << 20;
/// Entries of a folder that are listed, and runs whose figures are read.
pub const ENTRIES: usize = 2_000;
/// Bytes of a table of rows (`compare.json`) that is read.
pub const TABLE: u64 = 16 << 20;

/// Memory per row, 8 B per column, as a scenario counts it: of a flow, of a link, of a user of a cell with its two directions.
const FLOW_ROW: u64 = 24 * 8;
const LINK_ROW: u64 = 6 * 8;
const USER_ROW: u64 = (19 + 2 * 6) * 8;

/// The limits, for the page.
pub fn all() -> Limits {
    Limits {
        sessions: SESSIONS as u32,
        viewers: VIEWERS as u32,
        duration_s: DURATION.as_secs_f64(),
        scenario_bytes: SCENARIO as u32,
        series_bytes: SERIES as u32,
        users: USERS as u32,
        flows: FLOWS as u32,
        upload_bytes: UPLOAD as u32,
        uploads_bytes: UPLOADS as u32,
    }
}

/// Bytes that the series of a scenario take.
pub fn series_bytes(scenario: &Scenario) -> u64 {
    let rows = scenario.duration.as_nanos() / scenario.sample.as_nanos().max(1);
    let columns = scenario.flows.len() as u64 * FLOW_ROW
        + scenario.links.len() as u64 * LINK_ROW
        + scenario.users.len() as u64 * USER_ROW;
    rows.saturating_mul(columns)
}

/// An upper bound on the packets of a run, for the cost of playing it.
fn work(scenario: &Scenario) -> f64 {
    const PACKET_BITS: f64 = 12_000.0;
    /// Of a link without a rate: as fast as flows send in practice. Ours.
    const UNLIMITED: f64 = 1e9;
    /// A user's slot costs about as much as this number of packets, and slots are 1 ms or less.
    const USER_SLOTS: f64 = 8.0 * 2_000.0;
    let seconds = scenario.duration.as_secs_f64();
    let rate = |service: &Service| match service {
        Service::Unlimited => UNLIMITED,
        Service::Fixed(rate) => rate.as_f64(),
        Service::Trace(play) => play.trace.mean_rate().as_f64() * play.scale,
    };
    // No more crosses any link than the flows' slowest links let through: the slowest bounds what each flow costs.
    let slowest = |hops: &[ranpace_scenario::Hop]| {
        let rates = hops.iter().filter_map(|hop| hop.link()).map(|link| &scenario.links[link].config.service);
        let least = rates.map(rate).fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { UNLIMITED }
    };
    let packets: f64 = scenario.flows.iter().map(|flow| slowest(&flow.path) * seconds / PACKET_BITS).sum();
    packets + scenario.users.len() as f64 * USER_SLOTS * seconds
}

/// Refuses a scenario that is too much for a run in the browser, before it starts.
pub fn check(scenario: &Scenario) -> Result<(), Refusal> {
    let remedy = "play it with `ranpace run`";
    if scenario.duration > DURATION {
        return Err(Refusal::too_large(format!(
            "the run takes {}, expected at most {DURATION}; shorten `duration`, or {remedy}",
            scenario.duration
        )));
    }
    let (users, flows) = (scenario.users.len(), scenario.flows.len());
    if users > USERS || flows > FLOWS {
        return Err(Refusal::too_large(format!(
            "expected at most {USERS} users and {FLOWS} flows, found {users} and {flows}; {remedy}"
        )));
    }
    let bytes = series_bytes(scenario);
    if bytes > SERIES {
        return Err(Refusal::too_large(format!(
            "its series take {} MB, expected at most {} MB; use a longer `sample` than {}, or {remedy}",
            bytes >> 20,
            SERIES >> 20,
            scenario.sample
        )));
    }
    let packets = work(scenario);
    if packets > WORK {
        return Err(Refusal::too_large(format!(
            "it is the work of up to {packets:.1e} packets, expected at most {WORK:.0e}: shorten `duration`, or {remedy}"
        )));
    }
    Ok(())
}
