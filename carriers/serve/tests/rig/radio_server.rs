//! An RNIS server in this process, with its shared table, that reports what a test says.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::path::Path;

use ranpace_phy::{Both, Cqi, LteBandwidth};
use ranpace_rnis::{AssociateId, CellInfo, Ecgi, IdType, LinkReport, Plmn, UserReport};
use ranpace_rnisd::clock;
use ranpace_rnisd::feed::{TableConfig, from_config};
use ranpace_rnisd::metrics::SourceLabels;
use ranpace_rnisd::source::{Cell, Slot, Update, User};

/// A server whose cell has one user.
pub struct RadioServer {
    server: ranpace_rnisd::server::Server,
    info: CellInfo,
    slot: u64,
}

impl RadioServer {
    /// Starts it; `address` is the user's.
    pub fn start(table: &Path, address: &str) -> Self {
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

    /// What the cell reports of the user now.
    pub fn report(&mut self, downlink: LinkReport) {
        let time = clock::now().unwrap();
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
