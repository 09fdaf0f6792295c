//! What the feed costs, and how long it takes, between processes of one host: datagrams and the shared table.
//!
//! `cargo run --release --package ranpace-rnisd --features server --example feed`
//!
//! A cell whose users all change in every TTI of a millisecond is played into a server; subscribers are processes of their own. Printed
//! are the bandwidth of a subscriber, the time from the moment in which a slot is passed to the server until the subscriber has the hint
//! (median and 99th percentile), and the processor time of the server, its sockets included.
#![allow(clippy::print_stdout)] // it is there to be read

use std::env;
use std::error::Error;
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use ranpace_phy::{Both, Cqi, LteBandwidth, TransportBlock};
use ranpace_rnis::etsi::{AssociateId, Ecgi, IdType, Plmn};
use ranpace_rnis::{CellInfo, Grant, LinkReport, UserReport};
use ranpace_rnisd::client::{HintReader, Origin, Wanted};
use ranpace_rnisd::clock;
use ranpace_rnisd::config::Config;
use ranpace_rnisd::feed::{DatagramsConfig, TableConfig, from_config};
use ranpace_rnisd::metrics::{FeedMetrics, SourceLabels};
use ranpace_rnisd::server::Server;
use ranpace_rnisd::source::{Cell, Slot, Update, User};
use ranpace_units::{Bytes, Time};

/// Seconds of each measurement.
const SECONDS: u64 = 10;
/// Headers of UDP and IPv4, bytes.
const HEADERS: u64 = 28;
/// TTI.
const TTI: Duration = Duration::from_millis(1);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The address of a user.
fn address(user: u32) -> IpAddr {
    [10, 78, (user >> 8) as u8, user as u8].into()
}

/// Rows in which everything changes from slot to slot.
fn rows(users: u32, slot: u64, time: Time) -> Vec<UserReport> {
    let link = |user: u32| {
        let stamp = slot * 31 + u64::from(user);
        let block = TransportBlock::from_bytes(100 + (stamp % 900) as u32);
        let (mcs, prbs) = ((stamp % 29) as u8, 1 + (stamp % 4) as u16);
        let grant = Grant { mcs, prbs, symbols: 14, block, padding: Bytes::ZERO, process: 0, again: false };
        LinkReport {
            grant: Some(grant),
            queue: Bytes::new(stamp * 100 % 1_000_000),
            blocks: stamp,
            scheduled_bits: stamp * 8_000,
            scheduled_prb_symbols: stamp * 14,
            ..LinkReport::default()
        }
    };
    let row = |user: u32| UserReport {
        user,
        rnti: user as u16,
        cqi: Cqi::MAX,
        cqi_time: time,
        capacity: 4.0,
        link: Both { downlink: link(user), uplink: link(user) },
    };
    (0..users).map(row).collect()
}

struct Bench {
    server: Server,
    feed: FeedMetrics,
    labels: SourceLabels,
    table: String,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn start(users: u32) -> Outcome<Self> {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let path = folder.path().join("table");
        let table = format!("table:{}", path.display());
        let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
        config.callbacks.allow = vec!["127.0.0.0/8".parse()?];
        config.feed.datagrams =
            Some(DatagramsConfig { listen: ([127, 0, 0, 1], 0).into(), most: 100, periods: 4 });
        config.feed.table = Some(TableConfig { path, cells: 1, users: 1024, history: 64, mode: 0o600 });
        let feed = from_config(&config.feed)?.ok_or("the configuration has a feed")?;
        let metrics = feed.metrics();
        let server = Server::start(config, Vec::new(), Some(feed))?;
        let labels = SourceLabels { source: "bench".to_owned() };
        let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
        let ecgi = Ecgi { cell_id: "0000001".to_owned(), plmn };
        let bench = Self { server, feed: metrics, labels, table, _folder: folder };
        bench.update(Update::Cell(Cell { info: CellInfo::lte(0, LteBandwidth::Mhz20), ecgi }));
        for user in 0..users {
            let ids = vec![AssociateId { id_type: IdType::UeIpv4, value: address(user).to_string() }];
            bench.update(Update::User(User { user, name: String::new(), ids }));
        }
        Ok(bench)
    }

    fn update(&self, update: Update) {
        self.server.core().update(0, &self.labels, update);
    }

    /// Plays the cell for so long, a slot each millisecond.
    fn play(&self, users: u32, from: u64, slots: u64) -> Outcome<()> {
        let begin = Instant::now();
        for slot in 0..slots {
            let due = begin + TTI * u32::try_from(slot)?;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let number = from + slot;
            let mut of_slot = Slot {
                cell: CellInfo::lte(0, LteBandwidth::Mhz20),
                slot: number,
                time: Time::ZERO,
                symbols: Both::of(|_| 14),
                used_prbs: Both::of(|_| 100.0),
                active_users: Both::default(),
                users: rows(users, number, clock::now()?),
                bearers: Vec::new(),
                full: true,
            };
            of_slot.time = clock::now()?;
            self.update(Update::Slot(of_slot));
        }
        Ok(())
    }

    fn subscriber(&self, origin: &str) -> Outcome<Child> {
        let child = Command::new(env::current_exe()?).arg(origin).stdout(Stdio::piped()).spawn()?;
        Ok(child)
    }
}

/// A subscriber: the ages of the hints of one user.
fn subscribe(origin: &str) -> Outcome<()> {
    let mut reader = HintReader::open(&origin.parse::<Origin>()?, &Wanted::default())?;
    let mut ages = Vec::new();
    let mut last = Time::ZERO;
    let mut until = None;
    while until.is_none_or(|until| Instant::now() < until) {
        if !reader.wait(Duration::from_millis(100))? {
            continue;
        }
        let Some(aged) = reader.hint(address(0)) else { continue };
        let at = aged.hint.measured_at;
        if at > last {
            last = at;
            ages.push((clock::now()? - at).as_nanos() as f64 / 1e3);
            until.get_or_insert_with(|| Instant::now() + Duration::from_secs(SECONDS - 3));
        }
    }
    ages.sort_by(f64::total_cmp);
    let quantile = |of: f64| ages.get((ages.len() as f64 * of) as usize).copied().unwrap_or(f64::NAN);
    println!(
        "{} hints, median {:.0} us, 99th percentile {:.0} us",
        ages.len(),
        quantile(0.5),
        quantile(0.99)
    );
    Ok(())
}

/// Processor seconds of this process.
fn processor() -> Outcome<f64> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?).as_secs_f64())
}

fn measure(what: &str, users: u32, origins: &[String], bench: &Bench) -> Outcome<()> {
    let children: Outcome<Vec<Child>> = origins.iter().map(|origin| bench.subscriber(origin)).collect();
    let children = children?;
    // Until all have subscribed.
    bench.play(users, 0, 1_500)?;
    let (cpu, bytes, datagrams) = (processor()?, bench.feed.bytes.get(), bench.feed.datagrams.get());
    let begin = Instant::now();
    bench.play(users, 1_500, 1_000 * (SECONDS - 3))?;
    let seconds = begin.elapsed().as_secs_f64();
    let cpu = (processor()? - cpu) / seconds;
    let bytes = bench.feed.bytes.get() - bytes + HEADERS * (bench.feed.datagrams.get() - datagrams);
    let rate = bytes as f64 * 8.0 / seconds / 1e6 / origins.len() as f64;
    println!(
        "{what}: {rate:.2} Mbit/s a subscriber, {:.3} of a core, {} unsent",
        cpu,
        bench.feed.unsent.get()
    );
    // Subscribers measure as long as something comes.
    bench.play(users, 1_500 + 1_000 * (SECONDS - 3), 2_000)?;
    for child in children {
        let output = child.wait_with_output()?;
        print!("  {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

fn main() -> Outcome<()> {
    if let Some(origin) = env::args().nth(1) {
        return subscribe(&origin);
    }
    for (what, users, subscribers, by_table) in [
        ("50 users by datagram", 50, 1, false),
        ("50 users by table", 50, 1, true),
        ("1000 users by datagram to 10 subscribers", 1_000, 10, false),
        ("1000 users without a subscriber", 1_000, 0, false),
    ] {
        let bench = Bench::start(users)?;
        let server = format!("rnis:http://{}", bench.server.address());
        let origin = if by_table { bench.table.clone() } else { server };
        measure(what, users, &vec![origin; subscribers], &bench)?;
    }
    Ok(())
}
