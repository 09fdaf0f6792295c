//! The feed, from a server to its readers: datagrams and the shared table, over real sockets and files.
#![allow(clippy::unwrap_used)] // a test may

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ranpace_phy::{Both, Cqi, Direction, LteBandwidth, TransportBlock};
use ranpace_rnis::etsi::{AssociateId, Ecgi, IdType, Plmn};
use ranpace_rnis::feed::receiver::ClockQuality;
use ranpace_rnis::{CellInfo, Grant, LinkReport, StalenessLimit, UserReport};
use ranpace_rnisd::client::{HintReader, Origin, Wanted};
use ranpace_rnisd::clock;
use ranpace_rnisd::config::Config;
use ranpace_rnisd::feed::{DatagramsConfig, TableConfig, from_config};
use ranpace_rnisd::metrics::SourceLabels;
use ranpace_rnisd::server::Server;
use ranpace_rnisd::source::{Cell, Slot, Update, User};
use ranpace_units::{Bytes, Span};

/// Longest wait for what must come, on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn phone() -> IpAddr {
    [10, 77, 0, 2].into()
}

fn config(folder: &Path) -> Config {
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
    config.callbacks.allow = vec!["127.0.0.0/8".parse().unwrap()];
    config.data = Some(folder.join("data"));
    config.feed.datagrams =
        Some(DatagramsConfig { listen: ([127, 0, 0, 1], 0).into(), most: 100, periods: 4 });
    config.feed.table =
        Some(TableConfig { path: table(folder), cells: 4, users: 8, history: 64, mode: 0o600 });
    config
}

fn table(folder: &Path) -> PathBuf {
    folder.join("table")
}

/// A server whose cell is played by the test.
struct Played {
    server: Server,
    slot: u64,
}

impl Played {
    fn start(config: Config) -> Self {
        let feed = from_config(&config.feed).unwrap();
        let played = Self { server: Server::start(config, Vec::new(), feed).unwrap(), slot: 0 };
        let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
        let ecgi = Ecgi { cell_id: "0000001".to_owned(), plmn };
        played.update(Update::Cell(Cell { info: CellInfo::lte(0, LteBandwidth::Mhz10), ecgi }));
        for (user, name, address) in [(0, "phone", "10.77.0.2"), (1, "car", "10.77.0.3")] {
            let ids = vec![AssociateId { id_type: IdType::UeIpv4, value: address.to_owned() }];
            played.update(Update::User(User { user, name: name.to_owned(), ids }));
        }
        played
    }

    fn update(&self, update: Update) {
        self.server.core().update(0, &SourceLabels { source: "test".to_owned() }, update);
    }

    /// A slot in which the phone gets 10 PRBs down, and both have a queue of 1000 bytes down and 320 up.
    fn slot(&mut self) {
        let block = TransportBlock::from_bytes(500);
        let grant =
            Grant { mcs: 20, prbs: 10, symbols: 14, block, padding: Bytes::ZERO, process: 0, again: false };
        let link = |grant, queue| LinkReport { grant, queue: Bytes::new(queue), ..LinkReport::default() };
        let time = clock::now().unwrap();
        let row = |user: u32| UserReport {
            user,
            rnti: 7,
            cqi: Cqi::MAX,
            cqi_time: time,
            capacity: 1.0,
            link: Both { downlink: link((user == 0).then_some(grant), 1_000), uplink: link(None, 320) },
        };
        self.update(Update::Slot(Slot {
            cell: CellInfo::lte(0, LteBandwidth::Mhz10),
            slot: self.slot,
            time,
            symbols: Both::of(|_| 14),
            used_prbs: Both { downlink: 10.0, uplink: 0.0 },
            active_users: Both::default(),
            users: vec![row(0), row(1)],
            bearers: Vec::new(),
            full: true,
        }));
        self.slot += 1;
    }

    fn origin(&self) -> Origin {
        format!("rnis:http://{}", self.server.address()).parse().unwrap()
    }

    fn metric(&self, name: &str) -> f64 {
        let text = self.server.core().metrics.text();
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Plays a slot each millisecond, until what is awaited has happened.
    fn until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let begin = Instant::now();
        while !done(self) {
            assert!(begin.elapsed() < LONG, "{what}");
            self.slot();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn hints_come_by_datagram_and_by_table_with_the_users_addresses_and_ages() {
    let folder = tempfile::tempdir().unwrap();
    let mut played = Played::start(config(folder.path()));
    let open = |origin: &Origin, direction| {
        HintReader::open(origin, &Wanted { direction, ..Wanted::default() }).unwrap()
    };
    let by_table: Origin = format!("table:{}", table(folder.path()).display()).parse().unwrap();
    for (origin, direction, expected) in [
        (played.origin(), Direction::Downlink, (Some(4_000), 10.0, 1_000)),
        (played.origin(), Direction::Uplink, (None, 0.0, 320)),
        (by_table.clone(), Direction::Downlink, (Some(4_000), 10.0, 1_000)),
        (by_table, Direction::Uplink, (None, 0.0, 320)),
    ] {
        let mut reader = open(&origin, direction);
        let mut hint = None;
        played.until("a hint", |_| {
            reader.wait(Duration::ZERO).unwrap();
            // A mean is complete after eight slots.
            hint = reader.hint(phone()).filter(|aged| {
                direction == Direction::Uplink || (aged.hint.value.granted - 10.0).abs() < 1e-6
            });
            hint.is_some()
        });
        let aged = hint.unwrap();
        let hint = aged.hint.value;
        // Datagrams have queues in units of 16 bytes.
        let (bits, granted, queue) = expected;
        assert_eq!((hint.tbs_bits, hint.granted), (bits, granted), "{origin:?}");
        assert_eq!(hint.queue.get().div_ceil(16), u64::div_ceil(queue, 16), "{origin:?}");
        assert_eq!((aged.clock, hint.info.prbs), (ClockQuality::Same, 50), "{origin:?}");
        let now = clock::now().unwrap();
        assert!(aged.fresh(now, StalenessLimit::RapidOpen, Span::ZERO).is_some());
        let names: Vec<String> = reader.users().into_iter().map(|of| of.name).collect();
        assert_eq!(names, ["phone", "car"]);
        assert_eq!(reader.hint([10, 77, 0, 9].into()), None);
        if direction == Direction::Downlink {
            let (mut grants, mut bits) = (0, 0);
            played.until("grants", |_| {
                if reader.wait(Duration::ZERO).unwrap() {
                    reader.grants(phone(), &mut |grant| {
                        grants += 1;
                        bits = grant.tbs_bits.unwrap();
                    });
                }
                grants > 20
            });
            // 10 PRBs with MCS 20: TS 36.213 table 7.1.7.2.1-1 has 4008 bits; the table has the block that was given.
            assert!((3_900..4_100).contains(&bits), "{bits}");
        }
    }
}

#[test]
fn a_server_that_was_restarted_goes_on_and_one_that_forgot_is_subscribed_to_again() {
    for keeps in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        config.feed.table = None;
        if !keeps {
            config.data = None;
        }
        let mut played = Played::start(config.clone());
        let origin = played.origin();
        let mut reader = HintReader::open(&origin, &Wanted::default()).unwrap();
        let mut hears = |played: &mut Played| {
            let mut news = |_: &Played| {
                reader.wait(Duration::ZERO).unwrap();
                let fresh = reader.hint(phone()).map(|aged| aged.hint.measured_at);
                fresh.filter(|at| clock::now().unwrap() - *at < Span::from_millis(200)).is_some()
            };
            played.until("a fresh hint", &mut news);
        };
        hears(&mut played);
        config.listen = played.server.address();
        drop(played);
        std::thread::sleep(Duration::from_millis(300));
        let mut played = Played::start(config);
        hears(&mut played);
        assert_eq!(played.metric("rnis_feed_subscriptions"), 1.0, "keeps: {keeps}");
        drop(reader);
        played.until("the end of the subscription", |played| played.metric("rnis_feed_subscriptions") == 0.0);
    }
}

#[test]
fn strangers_datagrams_are_refused_and_counted_and_nobody_is_served_who_does_not_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut played = Played::start(config(folder.path()));
    let mut reader = HintReader::open(&played.origin(), &Wanted::default()).unwrap();
    played.until("a report", |_| {
        reader.wait(Duration::ZERO).unwrap();
        reader.hint(phone()).is_some()
    });
    assert_eq!(
        (played.metric("rnis_feed_refused_total"), played.metric("rnis_feed_unsent_total")),
        (0.0, 0.0)
    );
    // Nothing, noise, and a request of this stream that nobody sealed.
    let feed = feed_address(&played);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut forged = vec![0x46, 0x14, 0, 0, 1, 0, 0, 0];
    forged.resize(64, 9);
    for datagram in [&[][..], &[0xff; 300], &forged] {
        stranger.send_to(datagram, feed).unwrap();
    }
    played.until("the count", |played| played.metric("rnis_feed_refused_total") == 3.0);
    reader.wait(LONG).unwrap();
    // A subscriber that says nothing gets no reports, only small hellos.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let callback = format!("udp://{}", silent.local_addr().unwrap());
    subscribe(played.server.address(), &callback, "udp-binary");
    silent.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2_000];
    let mut hellos = 0;
    played.until("hellos", |_| {
        while let Ok(length) = silent.recv(&mut buffer) {
            assert_eq!((buffer[0], buffer[1], length), (0x46, 0x13, 24 + 16 + 16), "a hello");
            hellos += 1;
        }
        hellos >= 5
    });
    assert_eq!(played.metric("rnis_feed_subscriptions"), 3.0);
}

/// The address of datagrams, as a subscription says it.
fn feed_address(played: &Played) -> SocketAddr {
    let answer = subscribe(played.server.address(), "udp://127.0.0.1:9", "udp-binary");
    answer["vendorFeed"]["from"].as_str().unwrap().parse().unwrap()
}

/// A subscription by an HTTP client that knows nothing.
fn subscribe(server: SocketAddr, callback: &str, transport: &str) -> serde_json::Value {
    use std::io::{Read as _, Write as _};
    let body = serde_json::json!({
        "subscriptionType": "VendorTtiMeasSubscription", "callbackReference": callback, "period_us": 1_000,
        "transport": transport,
    })
    .to_string();
    let mut stream = std::net::TcpStream::connect(server).unwrap();
    let head = format!(
        "POST /rni/v2/subscriptions HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, json) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn a_table_is_named_to_its_subscriber_and_a_slow_or_absent_reader_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut played = Played::start(config(folder.path()));
    let answer = subscribe(played.server.address(), "", "shared-memory");
    let path = answer["vendorFeed"]["path"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(Path::new(path), table(folder.path()));
    // Readers that wait are woken, long before their time is over.
    let mut reader = HintReader::open(&format!("table:{path}").parse().unwrap(), &Wanted::default()).unwrap();
    reader.wait(Duration::ZERO).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            for _ in 0..20 {
                assert!(reader.wait(LONG).unwrap());
            }
            over.store(true, Ordering::SeqCst);
        });
        played.until("twenty wakes", |_| over.load(Ordering::SeqCst));
        waiter.join().unwrap();
    });
    assert!(reader.reports() >= 20 && reader.hint(phone()).is_some());
}
