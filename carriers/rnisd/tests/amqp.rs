//! The feed through a real broker: RabbitMQ, started for the test. Where there is none the test says so and ends.
#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use ranpace_phy::{Both, Cqi, LteBandwidth, TransportBlock};
use ranpace_rnis::etsi::{AssociateId, Ecgi, IdType, Plmn};
use ranpace_rnis::{CellInfo, Grant, LinkReport, UserReport};
use ranpace_rnisd::client::{HintReader, Origin, Wanted};
use ranpace_rnisd::clock;
use ranpace_rnisd::config::Config;
use ranpace_rnisd::feed::{AmqpConfig, AmqpEncoding, from_config};
use ranpace_rnisd::metrics::SourceLabels;
use ranpace_rnisd::server::Server;
use ranpace_rnisd::source::{Cell, Slot, Update, User};
use ranpace_units::{Bytes, Span};

/// The broker's program, without the script around it that changes the user.
const RABBITMQ: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// Longest wait for what must come, on a busy machine.
const LONG: Duration = Duration::from_secs(180);
/// Slots of a measurement.
const SLOTS: u64 = 2_000;

/// A broker, ended with this.
struct Broker {
    child: Child,
    port: u16,
    /// Port of its port mapper.
    mapper: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may have ended.
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGKILL);
        let _ = self.child.wait();
        // The port mapper has left the group.
        let mut mapper = Command::new("epmd");
        let mapper = mapper.arg("-kill").env("ERL_EPMD_PORT", self.mapper.to_string());
        let _ = mapper.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn broker() -> Option<Broker> {
    if !Path::new(RABBITMQ).exists() {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs rabbitmq-server");
        eprintln!("skipped: needs rabbitmq-server (apt install rabbitmq-server)");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let [port, distribution, mapper] = [(); 3].map(|()| free_port());
    let plugins = folder.path().join("plugins");
    fs::write(&plugins, "[].").unwrap();
    let child = Command::new(RABBITMQ)
        .env("RABBITMQ_NODENAME", format!("ranpace{port}@localhost"))
        .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODE_PORT", port.to_string())
        .env("RABBITMQ_DIST_PORT", distribution.to_string())
        .env("ERL_EPMD_PORT", mapper.to_string())
        .env("RABBITMQ_MNESIA_BASE", folder.path().join("data"))
        .env("RABBITMQ_LOG_BASE", folder.path().join("log"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", &plugins)
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let broker = Broker { child, port, mapper, _folder: folder };
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < LONG, "the broker does not listen");
        std::thread::sleep(Duration::from_millis(100));
    }
    Some(broker)
}

fn phone() -> IpAddr {
    [10, 77, 0, 2].into()
}

/// A server that publishes a cell with one user, in a slot each millisecond.
struct Played {
    server: Server,
    slot: u64,
}

impl Played {
    fn start(broker: &Broker, encoding: AmqpEncoding, exchange: &str) -> Self {
        let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
        config.feed.amqp = Some(AmqpConfig {
            address: format!("amqp://guest:guest@127.0.0.1:{}/%2f", broker.port),
            exchange: exchange.to_owned(),
            encoding,
            period: Span::from_millis(8),
        });
        let feed = from_config(&config.feed).unwrap();
        let played = Self { server: Server::start(config, Vec::new(), feed).unwrap(), slot: 0 };
        let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
        let ecgi = Ecgi { cell_id: "0000001".to_owned(), plmn };
        played.update(Update::Cell(Cell { info: CellInfo::lte(0, LteBandwidth::Mhz10), ecgi }));
        let ids = vec![AssociateId { id_type: IdType::UeIpv4, value: phone().to_string() }];
        played.update(Update::User(User { user: 0, name: "phone".to_owned(), ids }));
        played
    }

    fn update(&self, update: Update) {
        self.server.core().update(0, &SourceLabels { source: "test".to_owned() }, update);
    }

    fn slot(&mut self) {
        let block = TransportBlock::from_bytes(500);
        let grant =
            Grant { mcs: 20, prbs: 10, symbols: 14, block, padding: Bytes::ZERO, process: 0, again: false };
        let link = LinkReport { grant: Some(grant), queue: Bytes::new(1_600), ..LinkReport::default() };
        let time = clock::now().unwrap();
        let row = UserReport {
            user: 0,
            rnti: 7,
            cqi: Cqi::MAX,
            cqi_time: time,
            capacity: 1.0,
            link: Both { downlink: link, uplink: LinkReport::default() },
        };
        self.update(Update::Slot(Slot {
            cell: CellInfo::lte(0, LteBandwidth::Mhz10),
            slot: self.slot,
            time,
            symbols: Both::of(|_| 14),
            used_prbs: Both { downlink: 10.0, uplink: 0.0 },
            active_users: Both::default(),
            users: vec![row],
            bearers: Vec::new(),
            full: true,
        }));
        self.slot += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn hints_come_through_a_broker_as_text_and_in_the_binary_form() {
    let Some(broker) = broker() else { return };
    for (encoding, exchange) in [(AmqpEncoding::Text, "text"), (AmqpEncoding::Binary, "binary")] {
        let mut played = Played::start(&broker, encoding, exchange);
        let origin: Origin =
            format!("amqp://guest:guest@127.0.0.1:{}/%2f?exchange={exchange}", broker.port).parse().unwrap();
        let mut reader = HintReader::open(&origin, &Wanted::default()).unwrap();
        let begin = Instant::now();
        let mut hint = None;
        // A mean is complete after eight slots.
        while hint.is_none_or(|hint: ranpace_rnis::RadioHint| hint.granted < 9.9) {
            assert!(begin.elapsed() < LONG, "{encoding:?}: {:?}", reader.complaint());
            played.slot();
            while reader.wait(Duration::ZERO).unwrap() {}
            hint = reader.hint(phone()).map(|aged| aged.hint.value);
        }
        let hint = hint.unwrap();
        assert_eq!((hint.tbs_bits, hint.queue.get(), hint.most_granted), (Some(4_000), 1_600, 10));
        assert_eq!((hint.granted, hint.info.prbs, hint.cqi), (10.0, 50, Some(15)), "{encoding:?}");
        // How old they are: measured in the docs on an idle machine, here only printed.
        let mut ages = Vec::new();
        let mut last = hint.measured_at;
        for _ in 0..SLOTS {
            played.slot();
            while reader.wait(Duration::ZERO).unwrap() {}
            let Some(aged) = reader.hint(phone()).filter(|aged| aged.hint.measured_at > last) else {
                continue;
            };
            last = aged.hint.measured_at;
            ages.push((clock::now().unwrap() - last).as_micros());
        }
        assert!(ages.len() > 20, "{encoding:?}: {}", ages.len());
        ages.sort_unstable();
        let quantile = |of: usize| ages[(ages.len() - 1) * of / 100];
        eprintln!("{encoding:?}: median {} us, 99th percentile {} us", quantile(50), quantile(99));
    }
}
