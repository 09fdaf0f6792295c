//! A server of radio information whose cell is played by a test: the client has all of it, and nobody else anything.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ranpace_phy::{Both, Cqi, LteBandwidth, TransportBlock};
use ranpace_rnis::etsi::{AssociateId, Ecgi, IdType, Plmn};
use ranpace_rnis::{CellInfo, Grant, LinkReport, UserReport};
use ranpace_rnisd::clock;
use ranpace_rnisd::config::Config;
use ranpace_rnisd::feed::{TableConfig, from_config};
use ranpace_rnisd::metrics::SourceLabels;
use ranpace_rnisd::server::Server;
use ranpace_rnisd::source::{Cell, Slot, Update, User};
use ranpace_units::Bytes;

use super::CLIENT;

/// PRBs of the cell, of which the client has all, and the MCS of its grants.
const PRBS: u16 = 50;
const MCS: u8 = 10;
/// Bits of a TTI with these: TS 36.213, Table 7.1.7.2.1-1, I_TBS 9 (of MCS 10), 50 PRBs.
const BLOCK_BITS: u32 = 7_992;
/// The client's rate.
pub const CAPACITY: u64 = BLOCK_BITS as u64 * 1000;

/// The server, with a thread that plays the cell.
pub struct PlayedCell {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PlayedCell {
    /// Writes the shared table at this path.
    pub fn start(table: &Path) -> Self {
        let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
        config.feed.table =
            Some(TableConfig { path: table.to_owned(), cells: 4, users: 8, history: 64, mode: 0o600 });
        let feed = from_config(&config.feed).unwrap();
        let server = Server::start(config, Vec::new(), feed).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || play(&server, &stopped));
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

fn play(server: &Server, stop: &AtomicBool) {
    let update = |update| server.core().update(0, &SourceLabels { source: "test".to_owned() }, update);
    let plmn = Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() };
    let info = CellInfo::lte(0, LteBandwidth::Mhz10);
    update(Update::Cell(Cell { info, ecgi: Ecgi { cell_id: "0000001".to_owned(), plmn } }));
    let ids = [IdType::UeIpv4, IdType::UeIpv6].into_iter().zip(CLIENT);
    let ids = ids.map(|(id_type, address)| AssociateId { id_type, value: address.to_string() }).collect();
    update(Update::User(User { user: 0, name: "phone".to_owned(), ids }));
    let mut slot = 0;
    while !stop.load(Ordering::Relaxed) {
        let block = TransportBlock::from_bytes(BLOCK_BITS / 8);
        let grant = Grant {
            mcs: MCS,
            prbs: PRBS,
            symbols: 14,
            block,
            padding: Bytes::ZERO,
            process: 0,
            again: false,
        };
        let downlink =
            LinkReport { grant: Some(grant), queue: Bytes::new(1_000_000), ..LinkReport::default() };
        let time = clock::now().unwrap();
        let link = Both { downlink, uplink: LinkReport::default() };
        update(Update::Slot(Slot {
            cell: info,
            slot,
            time,
            symbols: Both::of(|_| 14),
            used_prbs: Both { downlink: f32::from(PRBS), uplink: 0.0 },
            active_users: Both { downlink: 1, uplink: 0 },
            users: vec![UserReport { user: 0, rnti: 7, cqi: Cqi::MAX, cqi_time: time, capacity: 1.0, link }],
            bearers: Vec::new(),
            full: true,
        }));
        slot += 1;
        thread::sleep(Duration::from_millis(1));
    }
}
