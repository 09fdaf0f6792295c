//! Parses the text of a scenario into a [`Scenario`].

use ranpace_units::Span;
use toml_edit::Document;

use crate::error::{Diagnostics, ScenarioError};
use crate::flow::Flows;
use crate::key::{ANY_TIME, Duration, Group, Is, Key, Kind as _, Name, Open, Required, Whole, Within};
use crate::link::{TraceSource, Traces};
use crate::model::Scenario;
use crate::network::Network;
use crate::reader::{Field, Section};
use crate::{cell, change, limits, middlebox, pep, proxy, rewriter, rnis};

/// Longest run: 1000 days. Ours.
const MOST_DURATION: Span = Span::from_secs(1_000 * 86_400);
const NAME: Key<Name> = Key { name: "name", kind: Name("text"), default: Open("the file's name"), about: "" };
const DURATION: Key<Duration, Required> = Key {
    name: "duration",
    kind: Within(limits::LEAST_SPAN..=MOST_DURATION),
    default: Required,
    about: "length of the run",
};
const WARMUP: Key<Duration, Is<Span>> = Key {
    name: "warmup",
    kind: ANY_TIME,
    default: Is(Span::ZERO),
    about: "results count from this time on; less than `duration`",
};
const SEED: Key<Whole<u64>, Is<u64>> = Key {
    name: "seed",
    kind: Whole::new(0..=u64::MAX),
    default: Is(1),
    about: "seed of all random choices; numbers above 2^63 must be quoted",
};
const SAMPLE: Key<Duration, Is<Span>> = Key {
    name: "sample",
    kind: Within(limits::LEAST_SPAN..=MOST_DURATION),
    default: Is(Span::from_millis(100)),
    about: "sampling interval of the series; all series of a run together take at most 2 GB, which is 7 million samples of \
            one flow over a link there and back, or 70 000 of a hundred flows (longer runs have a longer default)",
};

/// The keys at the top of a scenario.
pub(crate) const KEYS: Group = &[&NAME, &DURATION, &WARMUP, &SEED, &SAMPLE];

/// Most memory for the series of a run: 2 GB. Ours.
const MOST_MEMORY: u64 = 2_000_000_000;
/// Memory per sample, 8 B per column: of a flow (14 columns, and about ten that its control shows), of a link (6), of a
/// user of a cell that has flows (19, and those of its two directions).
const FLOW: u64 = 24 * 8;
const LINK: u64 = 6 * 8;
const USER: u64 = (19 + 2 * 6) * 8;

/// Reads and checks a scenario. `file` is its name in messages (and the default name of the scenario); `traces`
/// finds the traces that it names. All problems are reported at once.
pub fn parse(text: &str, file: &str, traces: &mut dyn TraceSource) -> Result<Scenario, ScenarioError> {
    let mut report = Diagnostics::new(text);
    report.controls = traces.controls();
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            report.add(at, format!("this is not TOML: {}", error.message().replace('\n', " ")));
            report.finish(file)?;
            // Unreachable, since a problem was just reported.
            return Err(ScenarioError::without_place(error.to_string()));
        }
    };
    let scenario = read(Section::new(document.as_table(), "at the top", 0, &report), file, traces);
    report.finish(file)?;
    scenario.ok_or_else(|| ScenarioError::without_place("no scenario".to_owned()))
}

/// Returns `None` only if a problem was reported.
fn read(mut root: Section<'_>, file: &str, traces: &mut dyn TraceSource) -> Option<Scenario> {
    let name = root.get(&NAME).unwrap_or_else(|| stem(file));
    let duration = root.get(&DURATION);
    let warmup_field = root.find(&WARMUP);
    let warmup = warmup_field.as_ref().and_then(|f| WARMUP.kind.read(f)).unwrap_or(WARMUP.default.0);
    if let (Some(field), Some(duration)) = (warmup_field, duration.filter(|duration| warmup >= *duration)) {
        field.error(format!("{warmup} is not before the scenario's end at {duration}"));
    }
    let seed = root.get(&SEED);
    let sample = root.find(&SAMPLE);
    let files = &mut Traces::new(traces);
    let mut network = Network::read(&mut root, files);
    cell::read(&mut root, &mut network, files);
    let (rnis, modem, feed_tables) = rnis::read(&mut root);
    let flows = Flows::read(&mut root, &network, duration);
    let proxies = proxy::read(&mut root, &network, &flows, &rnis);
    let peps = pep::read(&mut root, &network, &flows);
    let rewriters = rewriter::read(&mut root, &network, &flows, &proxies, &rnis);
    let middleboxes = middlebox::read(&mut root, &network, &flows);
    let changes = change::read(&mut root, &mut network, &flows, duration);
    let sample = read_sample(sample, duration, &network, &flows);
    root.finish();
    let Network { hosts, links, cells, users, .. } = network;
    Some(Scenario {
        name,
        duration: duration?,
        warmup,
        seed,
        sample,
        hosts,
        links,
        cells,
        users,
        rnis,
        modem,
        feed_tables,
        flows: flows.all,
        proxies,
        peps,
        rewriters,
        middleboxes,
        changes,
    })
}

/// The sampling interval of series: 100 ms by default.
fn read_sample(field: Option<Field<'_>>, duration: Option<Span>, network: &Network, flows: &Flows) -> Span {
    let read = field.as_ref().and_then(|f| SAMPLE.kind.read(f));
    let sample = read.unwrap_or(SAMPLE.default.0);
    let Some(duration) = duration else { return sample };
    let mut has_flows = vec![false; network.users.len()];
    for user in
        flows.all.iter().flat_map(|flow| flow.path.iter().chain(&flow.back)).filter_map(|hop| hop.user())
    {
        has_flows[user] = true;
    }
    let users = has_flows.iter().filter(|has| **has).count();
    let sizes = [(flows.all.len(), FLOW), (network.links.len(), LINK), (users, USER)];
    let memory: u64 = sizes.into_iter().map(|(count, size)| count as u64 * size).sum();
    let most = (MOST_MEMORY / memory.max(1)).max(1);
    let samples = duration.as_nanos() / sample.as_nanos();
    if samples <= most {
        return sample;
    }
    // A long run without a written `sample` gets a longer interval instead of an error.
    let least = duration.as_nanos().div_ceil(most);
    // Rounded up to three digits, for readability.
    let step = 10_u64.pow(least.checked_ilog10().unwrap_or(0).saturating_sub(2));
    let longer = Span::from_nanos(least.next_multiple_of(step));
    if let (Some(field), Some(_)) = (field, read) {
        field.error(format!(
            "{samples} samples of {} flows, {} links and {users} users would take {:.1} GB of memory, more than {:.0} GB; use at \
             least {longer}, a shorter duration or fewer flows",
            flows.all.len(),
            network.links.len(),
            samples as f64 * memory as f64 / 1e9,
            MOST_MEMORY as f64 / 1e9,
        ));
    }
    longer
}

/// A file's name without folders and `.toml`.
fn stem(file: &str) -> String {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = base.strip_suffix(".toml").unwrap_or(base);
    if stem.is_empty() { "scenario".to_owned() } else { stem.to_owned() }
}
