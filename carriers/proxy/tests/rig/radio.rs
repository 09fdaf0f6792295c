//! A server of radio information whose cell is played by a test: its users have all of it, in equal parts.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ranpace_phy::{Both, Cqi, LteBandwidth, TransportBlock};
use ranpace_rnis::etsi::{AssociateId, Ecgi, IdType, Plmn};
use ranpace_rnis::{CellInfo, Grant, LinkReport, Technology, UserReport};
use ranpace_rnisd::clock;
use ranpace_rnisd::config::Config;
use ranpace_rnisd::feed::{TableConfig, from_config};
use ranpace_rnisd::metrics::SourceLabels;
use ranpace_rnisd::server::Server;
use ranpace_rnisd::source::{Cell, Slot, Update, User};
use ranpace_units::{Bytes, Span};

use super::CLIENT;

/// PRBs of the LTE cell and the MCS of its grants.
const LTE_PRBS: u16 = 50;
const LTE_MCS: u8 = 10;
/// The rate of that cell: bits of a TTI by TS 36.213, Table 7.1.7.2.1-1, I_TBS 9 (of MCS 10), 50 PRBs.
pub const LTE_CAPACITY: u64 = 7_992_000;

/// What is played.
#[derive(Clone, Debug)]
pub struct Radio {
    pub info: CellInfo,
    pub mcs: u8,
    /// The addresses of each user.
    pub users: Vec<Vec<IpAddr>>,
    /// Every other slot has fewer PRBs, so that the windows of all connections change with each report.
    pub moves: bool,
}

impl Radio {
    /// LTE of 10 MHz, which the client has for itself.
    pub fn lte() -> Self {
        let info = CellInfo::lte(0, LteBandwidth::Mhz10);
        Self { info, mcs: LTE_MCS, users: vec![CLIENT.to_vec()], moves: false }
    }

    /// NR of 100 MHz with four layers, some 2 Gbit/s.
    pub fn nr(users: Vec<Vec<IpAddr>>) -> Self {
        let info = CellInfo {
            technology: Technology::Nr { qam256: true },
            prbs: 273,
            spacing_hz: 30_000,
            bandwidth_hz: 98_280_000,
            slot: Span::from_micros(500),
            data_symbols: Both::of(|_| 12),
            layers: 4,
            ..CellInfo::lte(0, LteBandwidth::Mhz20)
        };
        Self { info, mcs: 27, users, moves: false }
    }
}

/// The server, with a thread that plays the cell.
pub struct PlayedCell {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PlayedCell {
    /// Writes the shared table at this path.
    pub fn start(table: &Path, radio: Radio) -> Self {
        assert_eq!(Radio::lte().info.prbs, LTE_PRBS);
        let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
        let users = radio.users.len().next_multiple_of(8) as u32;
        config.feed.table =
            Some(TableConfig { path: table.to_owned(), cells: 4, users, history: 64, mode: 0o600 });
        let feed = from_config(&config.feed).unwrap();
        let server = Server::start(config, Vec::new(), feed).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || play(&server, &radio, &stopped));
        Self { stop, thread: Some(thread) }
    }

    /// No more reports come, but the server stays.
    pub fn pause(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for PlayedCell {
    fn drop(&mut self) {
        self.pause();
    }
}

fn play(server: &Server, radio: &Radio, stop: &AtomicBool) {
    let update = |update| server.core().update(0, &SourceLabels { source: "test".to_owned() }, update);
    let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
    let Radio { info, mcs, users, moves } = radio;
    update(Update::Cell(Cell { info: *info, ecgi: Ecgi { cell_id: "0000001".to_owned(), plmn } }));
    for (user, addresses) in (0..).zip(users) {
        let id = |address: &IpAddr| {
            let id_type = if address.is_ipv4() { IdType::UeIpv4 } else { IdType::UeIpv6 };
            AssociateId { id_type, value: address.to_string() }
        };
        let ids = addresses.iter().map(id).collect();
        update(Update::User(User { user, name: format!("phone {user}"), ids }));
    }
    let count = users.len() as u16;
    let mut slot = 0;
    while !stop.load(Ordering::Relaxed) {
        let own = info.prbs / count;
        let prbs = if *moves && slot % 2 == 1 { (own * 3 / 4).max(1) } else { own };
        let block = info.block(ranpace_phy::Direction::Downlink, *mcs, info.layers, prbs.into());
        let grant = Grant {
            mcs: *mcs,
            prbs,
            symbols: info.data_symbols.downlink,
            block: TransportBlock::from_bytes(block.bits() / 8),
            padding: Bytes::ZERO,
            process: 0,
            again: false,
        };
        let downlink =
            LinkReport { grant: Some(grant), queue: Bytes::new(1_000_000), ..LinkReport::default() };
        let time = clock::now().unwrap();
        let link = Both { downlink, uplink: LinkReport::default() };
        let report = |user: u32| UserReport {
            user,
            rnti: 7 + user as u16,
            cqi: Cqi::MAX,
            cqi_time: time,
            capacity: 1.0,
            link,
        };
        update(Update::Slot(Slot {
            cell: *info,
            slot,
            time,
            symbols: Both::of(|_| info.data_symbols.downlink),
            used_prbs: Both { downlink: f32::from(prbs * count), uplink: 0.0 },
            active_users: Both { downlink: count, uplink: 0 },
            users: (0..u32::from(count)).map(report).collect(),
            bearers: Vec::new(),
            full: true,
        }));
        slot += 1;
        thread::sleep(Duration::from_millis(1));
    }
}
