//! `ranpace validate rnis`: what the feed costs and how old it is, in the simulator and by a real server.
//!
//! A cell of the published experiments 003-m6-feed, 000-r7 and 000-o6 is simulated, with its feed, and recorded. The recording is then
//! played by the clock into an RNIS server of this process, to which a subscriber listens over datagrams of this host. Rates are of UDP
//! and IP headers, too. Both feeds report the same changes, so that their rates differ by what the forms differ: the server's datagrams
//! have 40 bytes more for the seal and 18 bytes a user where the simulated ones have 20, and directories beside them.

use std::time::{Duration, Instant};

use ranpace_lab::Job;
use ranpace_lab::validate::Row;
use ranpace_rnisd::client::{HintReader, Origin, Wanted};
use ranpace_rnisd::clock;
use ranpace_rnisd::config::Config;
use ranpace_rnisd::feed::{DatagramsConfig, from_config};
use ranpace_rnisd::server::Server;
use ranpace_rnisd::source::{NamedSource, Replay};
use ranpace_units::Span;

use crate::failure::Failure;
use crate::{common, interrupt};

/// Headers of UDP and IPv4, bytes.
const HEADERS: u64 = 28;
/// Bytes of a datagram's seal: a header and a tag, which simulated datagrams do not have.
const SEAL: f64 = 40.0;
/// Bytes of a user in the server's datagrams over those in the simulated ones.
const RECORDS: f64 = 18.0 / 20.0;
/// Directories, kbit/s for each user: some 50 bytes once a second.
const DIRECTORY: f64 = 0.4;
/// What the clock adds: a recording that begins or ends 50 ms late in a measurement of four seconds.
const CLOCK: f64 = 0.05 / 4.0;
/// Longest wait for the first report.
const LONG: Duration = Duration::from_secs(60);
/// The published rate of a user among 50 at 8 ms is at most a tenth of 250 kbit/s: 003-m6-feed's criterion.
const MOST_OF_50: f64 = 25.0;

/// A cell that is played.
struct Case {
    /// Name, with the experiment.
    name: &'static str,
    /// The scenario without its duration and period.
    scenario: &'static str,
    users: u32,
    period: &'static str,
    /// The rate may be compared: there are as many users as the datagrams were made for.
    is_judged: bool,
    /// With `--quick`.
    is_quick: bool,
}

/// The cell of MELD's experiments: 003-oai.
const MELD: &str = r#"
[[cell]]
name = "cell"
host = "mast"
preset = "meld-oai"

[[flow]]
name = "download"
from = "server"
to = "phone"
cc = "cubic+meld-me:tbs=period"
"#;

/// The scenario of RAPID's experiments with millimetre waves: 000-mmwave.
const MMWAVE: &str = r#"
[[cell]]
name = "cell"
host = "mast"
preset = "diarra-mmwave-los"

[[proxy]]
name = "edge"
host = "mast"
kind = "rapid"
profile = "thesis"

[[flow]]
name = "download"
from = "server"
to = "phone"
cc = "cubic"
"#;

/// The scenario of RAPID's experiments in LTE: 000-lte.
const LTE: &str = r#"
[[cell]]
name = "cell"
host = "mast"
preset = "rapid-oai"

[[proxy]]
name = "edge"
host = "mast"
kind = "rapid"
profile = "thesis"
slack = "half_rtt"

[[flow]]
name = "a"
from = "server"
to = "phone"
cc = "cubic"

[[flow]]
name = "b"
from = "server"
to = "phone"
cc = "bbr1"
"#;

const CASES: [Case; 8] = {
    const fn case(name: &'static str, scenario: &'static str, users: u32, period: &'static str) -> Case {
        Case { name, scenario, users, period, is_judged: users > 1, is_quick: false }
    }
    [
        case("003-m6-feed, a single user at 8 ms", MELD, 1, "8ms"),
        case("003-m6-feed, a single user at 1 ms", MELD, 1, "1ms"),
        Case { is_quick: true, ..case("003-m6-feed, 50 users at 8 ms", MELD, 50, "8ms") },
        Case { is_quick: true, ..case("003-m6-feed, 50 users at 1 ms", MELD, 50, "1ms") },
        Case { is_quick: true, ..case("000-r7, one user at 1 ms", MMWAVE, 1, "1ms") },
        Case { is_quick: true, ..case("000-o6, one user at 1 ms", LTE, 1, "1ms") },
        case("000-o6, one user at 8 ms", LTE, 1, "8ms"),
        case("000-o6, one user at 100 ms", LTE, 1, "100ms"),
    ]
};

impl Case {
    fn text(&self, seconds: u64) -> String {
        let Self { scenario, users, period, .. } = self;
        format!(
            "name = {:?}\nduration = \"{seconds}s\"\nwarmup = \"0s\"\nseed = 1\n\n[rnis]\nperiod = \"{period}\"\ndelay = \"1ms\"\n\n\
             [[link]]\nname = \"wire\"\nfrom = \"server\"\nto = \"mast\"\nrate = \"1Gbit/s\"\ndelay = \"10ms\"\nduplex = true\n\n\
             [[user]]\nname = \"phone\"\ncount = {users}\n{scenario}",
            self.name
        )
    }
}

/// The measured figures.
struct Measured {
    /// kbit/s for each user.
    rate: f64,
    /// Milliseconds, median and 99th percentile.
    ages: [f64; 2],
}

/// Plays all cases, or those of a quick look.
pub fn run(quick: bool, options: &common::Common) -> Result<Vec<Row>, Failure> {
    let seconds = if quick { 4 } else { 20 };
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| case.is_quick || !quick) {
        let folder = tempfile::tempdir().map_err(Failure::ours)?;
        let recording = folder.path().join("run.jsonl");
        let job = Job::new("", case.text(seconds), case.name, &mut options.traces())?;
        let result = crate::record::play(&job.scenario, &recording, &mut |_| !interrupt::is_set())?;
        if interrupt::is_set() {
            return Err(Failure::Interrupted("stopped; the rows are those of the cases before".to_owned()));
        }
        let users = f64::from(case.users);
        let simulated = result.feed.map_or(f64::NAN, |feed| feed.rate.as_f64() / users / 1e3);
        let real = play(case, recording)?;
        let what = |figure: &str| format!("{}: {figure}", case.name);
        let rate = what("rate of the feed for each user, kbit/s");
        rows.push(if case.is_judged {
            let least = RECORDS * simulated * (1.0 - CLOCK);
            let period: Span = case.period.parse().map_err(|error| Failure::ours(format!("{error}")))?;
            let seal = SEAL * 8.0 / 1e3 / period.as_secs_f64() / users;
            let most = (simulated + seal + DIRECTORY) * (1.0 + CLOCK);
            Row::within(rate, f64::midpoint(least, most), real.rate, (most - least) / 2.0)
        } else {
            Row::printed(rate, simulated, real.rate)
        });
        if case.is_judged && case.period == "8ms" {
            let half = MOST_OF_50 / 2.0;
            rows.push(Row::within(
                what("at most 25 kbit/s for each user, as published"),
                half,
                real.rate,
                half,
            ));
        }
        for (name, age) in ["median", "99th percentile"].into_iter().zip(real.ages) {
            rows.push(Row::printed(what(&format!("age at the subscriber, {name}, ms")), 1.0, age));
        }
    }
    Ok(rows)
}

/// Plays a recording by the clock into a server, and listens to it.
fn play(case: &Case, recording: std::path::PathBuf) -> Result<Measured, Failure> {
    let ours = |error: &dyn std::fmt::Display| Failure::ours(error.to_string());
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
    config.callbacks.allow = vec!["127.0.0.0/8".parse().map_err(|error| ours(&error))?];
    config.feed.datagrams = Some(DatagramsConfig { listen: ([127, 0, 0, 1], 0).into(), most: 1, periods: 1 });
    let feed = from_config(&config.feed).map_err(Failure::ours)?;
    let counters = feed.as_ref().map(|feed| feed.metrics()).unwrap_or_default();
    let source = NamedSource { name: "recording".to_owned(), source: Box::new(Replay::once(recording)) };
    let server = Server::start(config, vec![source], feed)?;
    let origin: Origin = format!("rnis:http://{}", server.address()).parse().map_err(|error| ours(&error))?;
    let period: Span = case.period.parse().map_err(|error| ours(&error))?;
    let mut reader =
        HintReader::open(&origin, &Wanted { period, ..Wanted::default() }).map_err(|error| ours(&error))?;
    let (asked, mut began, mut ages) = (Instant::now(), None, Vec::new());
    let wire = || counters.bytes.get() + HEADERS * counters.datagrams.get();
    let (mut last, mut end) = (None, (Instant::now(), 0));
    while !server.has_ended() && !interrupt::is_set() {
        if !reader.wait(Duration::from_millis(50)).map_err(|error| ours(&error))? {
            if began.is_none() && asked.elapsed() > LONG {
                let why = reader.complaint().unwrap_or_else(|| "nothing came".to_owned());
                return Err(Failure::ours(format!("{}: no report within a minute: {why}", case.name)));
            }
            continue;
        }
        let address = reader.users().first().and_then(|user| user.addresses.first().copied());
        let Some(address) = address else { continue };
        let Some(aged) = reader.hint(ranpace_rnisd::identity::ip(&address)) else { continue };
        began.get_or_insert_with(|| (Instant::now(), wire()));
        let at = aged.hint.measured_at;
        if last.replace(at) != Some(at) {
            let age = clock::now().map_err(|error| ours(&error))? - at;
            ages.push(age.as_secs_f64() * 1e3);
            end = (Instant::now(), wire());
        }
    }
    let Some((from, bytes)) = began else {
        let why = reader.complaint().unwrap_or_else(|| "nothing came".to_owned());
        return Err(Failure::ours(format!("{}: no report: {why}", case.name)));
    };
    ages.sort_by(f64::total_cmp);
    let quantile = |of: f64| ages.get((ages.len() as f64 * of) as usize).copied().unwrap_or(f64::NAN);
    let seconds = (end.0 - from).as_secs_f64();
    let rate = (end.1 - bytes) as f64 * 8.0 / seconds / f64::from(case.users) / 1e3;
    Ok(Measured { rate, ages: [quantile(0.5), quantile(0.99)] })
}
