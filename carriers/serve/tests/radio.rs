//! Radio information of an RNIS server for the controls of connections.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod rig;

use std::path::Path;
use std::time::{Duration, Instant};

use ranpace_phy::{Both, Cqi, LteBandwidth};
use ranpace_rnis::{AssociateId, CellInfo, Ecgi, IdType, LinkReport, Plmn, UserReport};
use ranpace_rnisd::clock;
use ranpace_rnisd::feed::{TableConfig, from_config};
use ranpace_rnisd::metrics::SourceLabels;
use ranpace_rnisd::source::{Cell, Slot, Update, User};
use ranpace_serve::config::Feed;
use ranpace_units::Bytes;
use rig::{PATIENCE, Rig, runtime};

/// A cell with one user.
struct RadioServer {
    server: ranpace_rnisd::server::Server,
    info: CellInfo,
    slot: u64,
}

impl RadioServer {
    fn start(table: &Path, address: &str) -> Self {
        let mut config =
            ranpace_rnisd::config::Config { listen: ([127, 0, 0, 1], 0).into(), ..Default::default() };
        config.feed.table =
            Some(TableConfig { path: table.to_owned(), cells: 4, users: 8, history: 64, mode: 0o600 });
        let feed = from_config(&config.feed).unwrap();
        let server = ranpace_rnisd::server::Server::start(config, Vec::new(), feed).unwrap();
        let all = Self { server, info: CellInfo::lte(0, LteBandwidth::Mhz10), slot: 0 };
        let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
        all.update(Update::Cell(Cell { info: all.info, ecgi: Ecgi { cell_id: "0000001".to_owned(), plmn } }));
        let id = AssociateId { id_type: IdType::UeIpv4, value: address.to_owned() };
        all.update(Update::User(User { user: 0, name: "phone".to_owned(), ids: vec![id] }));
        all
    }

    fn update(&self, update: Update) {
        self.server.core().update(0, &SourceLabels { source: "test".to_owned() }, update);
    }

    fn report(&mut self) {
        let time = clock::now().unwrap();
        let downlink = LinkReport { queue: Bytes::new(1_000_000), ..LinkReport::default() };
        let link = Both { downlink, uplink: LinkReport::default() };
        let user = UserReport { user: 0, rnti: 7, cqi: Cqi::MAX, cqi_time: time, capacity: 1.0, link };
        self.update(Update::Slot(Slot {
            cell: self.info,
            slot: self.slot,
            time,
            symbols: Both::of(|_| self.info.data_symbols.downlink),
            used_prbs: Both { downlink: 0.0, uplink: 0.0 },
            active_users: Both { downlink: 1, uplink: 0 },
            users: vec![user],
            bearers: Vec::new(),
            full: true,
        }));
        self.slot += 1;
    }
}

/// Reports until a hint has come to a connection.
async fn report_until_heard(radio: &mut RadioServer, rig: &Rig) {
    let (before, begun) = (rig.metric("serve_hints_total"), Instant::now());
    while rig.metric("serve_hints_total") < before + 5 {
        assert!(begun.elapsed() < PATIENCE, "no hint came to the connection");
        radio.report();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn with_radio(table: &Path) -> Rig {
    let origin = format!("table:{}", table.display()).parse().unwrap();
    Rig::start(|config| {
        config.quic_control.add("newreno+meld-me".parse().unwrap());
        config.quic_control.add("/low=cubic".parse().unwrap());
        config.feed = Some(Feed::new(origin));
    })
}

#[test]
fn a_connection_hears_of_its_user_and_goes_on_when_the_feed_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let mut radio = RadioServer::start(&table, "127.0.0.1");
    let rig = with_radio(&table);
    runtime().block_on(async {
        let client = rig.client().await;
        client.get("/file", &[]).await.unwrap();
        report_until_heard(&mut radio, &rig).await;
        // The server of radio information is gone.
        tokio::task::spawn_blocking(move || drop(radio)).await.unwrap();
        assert_eq!(client.get("/bytes/3000000", &[]).await.unwrap().content.len(), 3_000_000);
    });
}

#[test]
fn a_client_that_moves_is_the_user_at_its_new_address() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let mut radio = RadioServer::start(&table, "127.0.0.2");
    let rig = with_radio(&table);
    runtime().block_on(async {
        let endpoint = rig::endpoint(noq::TransportConfig::default());
        let client = rig::Client::new(rig.connect_from(&endpoint).await).await;
        client.get("/low/nothing", &[]).await.unwrap();
        for _ in 0..20 {
            radio.report();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(rig.metric("serve_hints_total"), 0);
        endpoint.rebind(std::net::UdpSocket::bind("127.0.0.2:0").unwrap()).unwrap();
        assert_eq!(client.get("/bytes/3000000", &[]).await.unwrap().content.len(), 3_000_000);
        report_until_heard(&mut radio, &rig).await;
    });
    drop(radio);
}
