//! What the reports and directories of one sender contain: the latest hints about its users, with times of the sender's clock.

use std::collections::BTreeMap;

use ranpace_phy::{Both, Direction};

use super::entries::Entry;
use super::message::MessageError;
use crate::shared_table::directory::Identity;
use crate::wire::{CellReport, Datagram, Decoder, WireError};
use crate::{CellInfo, RadioHint};

/// Most cells and users whose descriptions are kept; numbers of users have 16 bits.
const MOST_CELLS: usize = crate::wire::MOST_CELLS;

/// The latest values of a sender.
#[derive(Clone, Debug)]
pub struct FeedView {
    decoder: Decoder,
    direction: Direction,
    cells: BTreeMap<u16, (CellInfo, String)>,
    users: BTreeMap<u16, Identity>,
    by_address: BTreeMap<[u8; 16], u16>,
}

impl FeedView {
    /// Empty; blocks and queues of the reports are those of `direction`.
    pub fn new(direction: Direction) -> Self {
        Self {
            decoder: Decoder::new(),
            direction,
            cells: BTreeMap::new(),
            users: BTreeMap::new(),
            by_address: BTreeMap::new(),
        }
    }

    /// Direction of blocks, queues and retransmissions.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Changes the direction, for a sender whose reports name theirs.
    pub fn set_direction(&mut self, direction: Direction) {
        self.direction = direction;
    }

    /// Accepts a report; returns its part about the cell, or `None` if a newer one came before or there are too many cells.
    ///
    /// # Errors
    ///
    /// It is no report.
    pub fn on_report(&mut self, report: &[u8]) -> Result<Option<CellReport>, WireError> {
        let is_new = self.decoder.on_datagram(report)?;
        Ok(if is_new { Some(Datagram::parse(report)?.report) } else { None })
    }

    /// Accepts entries of a directory.
    ///
    /// # Errors
    ///
    /// An entry is none. Those before it have been accepted.
    pub fn on_directory(&mut self, entries: &[u8]) -> Result<(), MessageError> {
        Entry::parse_all(entries, &mut |entry| self.learn(entry))
    }

    fn learn(&mut self, entry: Entry) {
        match entry {
            Entry::Cell { info, identity } => {
                if self.cells.len() < MOST_CELLS || self.cells.contains_key(&info.cell) {
                    self.cells.insert(info.cell, (info, identity));
                }
            }
            Entry::User { user, identity } => {
                if self.users.get(&user) == Some(&identity) {
                    return;
                }
                for address in self.users.remove(&user).unwrap_or_default().addresses {
                    if self.by_address.get(&address.bytes) == Some(&user) {
                        self.by_address.remove(&address.bytes);
                    }
                }
                if identity != Identity::default() {
                    self.by_address.extend(identity.addresses.iter().map(|one| (one.bytes, user)));
                    self.users.insert(user, identity);
                }
            }
        }
    }

    /// Cells, by number, with their identities.
    pub fn cells(&self) -> impl Iterator<Item = (&CellInfo, &str)> {
        self.cells.values().map(|(info, name)| (info, name.as_str()))
    }

    /// Users, by number.
    pub fn users(&self) -> impl Iterator<Item = (u16, &Identity)> {
        self.users.iter().map(|(user, identity)| (*user, identity))
    }

    /// The number of the user with this address (IPv4 is mapped).
    pub fn user_at(&self, address: &[u8; 16]) -> Option<u16> {
        self.by_address.get(address).copied()
    }

    /// The number of the user of this name.
    pub fn user_named(&self, name: &str) -> Option<u16> {
        self.users().find(|(_, of)| of.name == name).map(|(user, _)| user)
    }

    /// Users of a cell in its last reports, ascending.
    pub fn users_of(&self, cell: u16) -> impl Iterator<Item = u16> {
        self.decoder.users(cell)
    }

    /// The latest hint about a user, in the cell that reported it last; `None` if there is none, or its cell is not described yet.
    /// It has no queue limit, and `layers` are the cell's.
    pub fn hint(&self, user: u16) -> Option<RadioHint> {
        let of_cell = |cell: &u16| Some((*cell, self.decoder.user(*cell, user)?));
        let (cell, record) =
            self.cells.keys().filter_map(of_cell).max_by_key(|(_, record)| record.measured_at)?;
        let info = self.cells.get(&cell)?.0;
        let report = self.decoder.cell(cell)?.value;
        let direction = self.direction;
        // Back from the unit of the wire.
        let unit = if info.by_symbols {
            f64::from(info.prbs) / f64::from(info.data_symbols[direction].max(1))
        } else {
            1.0
        };
        let prbs = f64::from(info.prbs);
        let resources =
            |count: u16| (f64::from(count) * unit * if report.averaged { 0.1 } else { 1.0 }).min(prbs);
        let Both { downlink, uplink } = report.used;
        let used = if info.shared { downlink.saturating_add(uplink) } else { report.used[direction] };
        let measured_at = record.measured_at;
        let record = record.value;
        Some(RadioHint {
            tbs_bits: record.tbs_bits,
            granted: resources(record.granted[direction]),
            most_granted: record.most_granted.min(info.prbs),
            unused: prbs - resources(used),
            active_users: report.active_users[direction],
            cqi: (record.cqi > 0).then_some(record.cqi),
            mcs: record.mcs[direction],
            queue: record.queue,
            handover: record.handover,
            ..RadioHint::of(info, measured_at)
        })
    }
}
