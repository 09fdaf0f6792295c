//! Averages a cell's slot reports and publishes them as [`RadioHint`]s: the edge's feed, or a device's own modem.
//!
//! Source: Diarra 2022, sections 3.1.3 and 4.2.4, for periods of one TTI and of 8 ms. The largest block and the most PRBs are those
//! of the period, or of 8 TTIs if that is longer; resources are means. Ours:
//!
//! - a mean is over the direction's own symbols, so that it is a part of the cell's PRBs in TDD, too;
//! - HARQ retransmissions count as blocks, and their resources as granted;
//! - a user is active for 100 ms after a grant.
//!
//! ```
//! # use ranpace_rnis::{Averaging, CellInfo, Publisher, SlotReport};
//! # use ranpace_phy::{Both, LteBandwidth};
//! # use ranpace_units::{Span, Time};
//! let mut publisher = Publisher::new(Span::from_millis(8), Averaging::Smooth);
//! # let cell = CellInfo::lte(0, LteBandwidth::Mhz5);
//! # let report = SlotReport { cell: &cell, slot: 0, time: Time::ZERO, symbols: Both::of(|_| 14), used_prbs: Both::default(),
//! #     active_users: Both::default(), users: &[], bearers: &[], full: true };
//! if publisher.on_report(&report) {
//!     for user in publisher.users(report.cell.cell) {
//!         // publisher.hint(*user, Direction::Downlink, None)
//!     }
//!     publisher.published(report.cell.cell);
//! }
//! ```

use ranpace_phy::{Both, Cqi, Direction};
use ranpace_units::{Bytes, Span, Time};

use crate::activity::Activity;
use crate::wire::{CellReport, Record};
use crate::{BearerReport, CellInfo, Event, EventKind, RadioHint, SlotReport};

/// Fewest TTIs over which the largest block is taken: HARQ's round trip in LTE (MELD's N_HARQ; Diarra 2022, 4.2.3).
const RECENT: usize = 8;
const DIRECTIONS: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

/// Averaging window of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Averaging {
    /// Over the period, or 8 TTIs if that is longer.
    Smooth,
    /// The period alone: with one TTI these are the grants themselves.
    Exact,
}

/// Accepts reports of cells, and derives hints about their users.
#[derive(Debug)]
pub struct Publisher {
    period: Span,
    averaging: Averaging,
    /// By number.
    cells: Vec<Option<CellState>>,
    users: Vec<UserState>,
}

/// Resources of a cell, in PRBs times symbols.
#[derive(Clone, Copy, Debug, Default)]
struct Resources {
    /// Symbols available.
    symbols: Both<u32>,
    used: Both<f64>,
}

#[derive(Debug)]
struct CellState {
    info: CellInfo,
    slot: u64,
    time: Time,
    /// Slots of a period.
    period: u64,
    /// The next slot to publish.
    next: u64,
    since: Resources,
    recent: [Resources; RECENT],
    active: Both<Activity>,
    users: Vec<u32>,
}

/// Grants of a user in one or several slots.
#[derive(Clone, Copy, Debug, Default)]
struct Granted {
    prb_symbols: u32,
    /// The most in one slot, as a part of the band, in PRBs.
    most: f32,
    /// The largest block in bits; 0 if there was none.
    block: u32,
}

/// Grants of a user, as hints and records have them.
struct Share {
    /// Bits of the largest block.
    tbs_bits: Option<u32>,
    /// PRBs in the mean.
    granted: f64,
    /// PRBs at most.
    most_granted: u16,
}

#[derive(Clone, Debug, Default)]
struct LinkState {
    mcs: u8,
    queue: Bytes,
    since: Granted,
    /// The last slots, each with its number.
    recent: [(u64, Granted); RECENT],
    /// First transmissions and retransmissions of blocks, now and at the beginning of the period.
    blocks: [(u64, u64); 2],
}

#[derive(Clone, Debug, Default)]
struct UserState {
    /// The cell that serves it, or that served it last.
    cell: Option<u16>,
    is_served: bool,
    on_its_way: bool,
    cqi: Option<(Time, Cqi)>,
    link: Both<LinkState>,
    bearers: Vec<BearerReport>,
}

impl Granted {
    fn add(&mut self, other: Self) {
        self.prb_symbols += other.prb_symbols;
        self.most = self.most.max(other.most);
        self.block = self.block.max(other.block);
    }
}

impl Resources {
    fn add(&mut self, other: Self) {
        for direction in DIRECTIONS {
            self.symbols[direction] += other.symbols[direction];
            self.used[direction] += other.used[direction];
        }
    }
}

impl CellState {
    /// Resources of the slots since the last publication, or of the last eight.
    fn resources(&self, recent: bool) -> Resources {
        if !recent {
            return self.since;
        }
        let mut sum = Resources::default();
        self.recent.iter().for_each(|slot| sum.add(*slot));
        sum
    }
}

impl LinkState {
    /// Share of the period's blocks that were retransmissions, in 1/255.
    fn again(&self) -> u8 {
        let [(blocks, again), (blocks_now, again_now)] = self.blocks;
        let (blocks, again) = (blocks_now.saturating_sub(blocks), again_now.saturating_sub(again));
        (255 * again).checked_div(blocks + again).unwrap_or(0) as u8 // at most 255
    }

    fn granted(&self, slot: u64, recent: bool) -> Granted {
        if !recent {
            return self.since;
        }
        let mut sum = Granted::default();
        let oldest = (slot + 1).saturating_sub(RECENT as u64);
        self.recent
            .iter()
            .filter(|(at, _)| *at >= oldest && *at <= slot)
            .for_each(|(_, slot)| sum.add(*slot));
        sum
    }
}

impl Publisher {
    /// Publishes once per period; a period of zero means one TTI.
    pub fn new(period: Span, averaging: Averaging) -> Self {
        Self { period, averaging, cells: Vec::new(), users: Vec::new() }
    }

    /// Accepts the report of a slot; every slot of a cell has to be reported. Returns whether to publish now: at the first report
    /// of a cell, and once per period from there.
    pub fn on_report(&mut self, report: &SlotReport<'_>) -> bool {
        let number = report.cell.cell;
        let index = usize::from(number);
        if self.cells.len() <= index {
            self.cells.resize_with(index + 1, || None);
        }
        let period = self.period.as_nanos() / report.cell.slot.as_nanos().max(1);
        let cell = self.cells[index].get_or_insert_with(|| CellState {
            info: *report.cell,
            slot: report.slot,
            time: report.time,
            period: period.max(1),
            next: report.slot,
            since: Resources::default(),
            recent: [Resources::default(); RECENT],
            active: Both::default(),
            users: Vec::new(),
        });
        (cell.info, cell.slot, cell.time) = (*report.cell, report.slot, report.time);
        let resources = Resources {
            symbols: report.symbols.map(u32::from),
            used: Both::of(|way| f64::from(report.used_prbs[way]) * f64::from(report.symbols[way])),
        };
        cell.since.add(resources);
        cell.recent[report.slot as usize % RECENT] = resources;
        let mut bearers = report.bearers;
        for row in report.users {
            let place = row.user as usize;
            if self.users.len() <= place {
                self.users.resize_with(place + 1, UserState::default);
            }
            let user = &mut self.users[place];
            if user.cell != Some(number) || !user.is_served {
                *user = UserState { cell: Some(number), is_served: true, ..UserState::default() };
                cell.users.push(row.user);
            }
            user.on_its_way = false;
            user.cqi = Some((row.cqi_time, row.cqi));
            let own = bearers.iter().take_while(|bearer| bearer.user == row.user).count();
            let (own, rest) = bearers.split_at(own);
            bearers = rest;
            user.bearers.clear();
            user.bearers.extend_from_slice(own);
            for direction in DIRECTIONS {
                let (link, row) = (&mut user.link[direction], &row.link[direction]);
                link.queue = row.queue;
                link.blocks[1] = (row.blocks, row.retransmissions);
                let Some(grant) = row.grant else { continue };
                let symbols = report.symbols[direction].max(1);
                let prb_symbols = u32::from(grant.prbs) * u32::from(grant.symbols);
                let granted = Granted {
                    prb_symbols,
                    most: prb_symbols as f32 / f32::from(symbols),
                    block: grant.block.bits(),
                };
                link.mcs = grant.mcs;
                link.since.add(granted);
                link.recent[report.slot as usize % RECENT] = (report.slot, granted);
                cell.active[direction].on_grant(report.time, place as u32);
            }
        }
        DIRECTIONS.iter().for_each(|way| cell.active[*way].pass(report.time));
        cell.slot >= cell.next
    }

    /// Accepts an event of a user: during a handover no cell reports it.
    pub fn on_event(&mut self, event: &Event) {
        let Some(user) = self.users.get_mut(event.user as usize) else { return };
        match event.kind {
            EventKind::Detached => {
                if let Some(cell) = user.cell.and_then(|cell| self.cells.get_mut(usize::from(cell))?.as_mut())
                {
                    cell.users.retain(|other| *other != event.user);
                    DIRECTIONS.iter().for_each(|way| cell.active[*way].forget(event.user));
                }
                user.is_served = false;
            }
            EventKind::HandoverBegun { .. } => user.on_its_way = true,
            EventKind::HandoverCompleted { .. } => user.on_its_way = false,
            _ => {}
        }
    }

    /// Users reported by a cell, in the order in which they came.
    pub fn users(&self, cell: u16) -> &[u32] {
        self.cells.get(usize::from(cell)).and_then(Option::as_ref).map_or(&[], |cell| &cell.users)
    }

    /// The latest CQI of a user, however old; a hint has it only while it counts as measured.
    pub fn latest_cqi(&self, user: u32) -> Option<Cqi> {
        self.users.get(user as usize)?.cqi.map(|(_, cqi)| cqi)
    }

    /// Whether the user's cell had symbols in this direction since the last publication.
    pub fn had_symbols(&self, user: u32, direction: Direction) -> bool {
        self.state(user).is_some_and(|(_, cell)| cell.since.symbols[direction] > 0)
    }

    fn state(&self, user: u32) -> Option<(&UserState, &CellState)> {
        let user = self.users.get(user as usize)?;
        if !(user.is_served || user.on_its_way) {
            return None;
        }
        Some((user, self.cells.get(usize::from(user.cell?))?.as_ref()?))
    }

    /// The hint about a user, or its last one before a handover; `None` if no cell serves it. The queue is that of `bearer` (in the
    /// uplink on the device), or, without one, of all bearers as known to the base station.
    pub fn hint(&self, user: u32, direction: Direction, bearer: Option<u8>) -> Option<RadioHint> {
        let (user, cell) = self.state(user)?;
        let link = &user.link[direction];
        let resources = cell.resources(self.is_smooth(cell));
        let share = self.share(link, cell, resources.symbols[direction]);
        let per_symbol = |prb_symbols: f64| prb_symbols / f64::from(resources.symbols[direction].max(1));
        let prbs = f64::from(cell.info.prbs);
        let used = if cell.info.shared {
            resources.used.downlink + resources.used.uplink
        } else {
            resources.used[direction]
        };
        let is_its = |row: &&BearerReport| Some(row.bearer) == bearer && row.direction == direction;
        let row = user.bearers.iter().find(is_its);
        let unused = if resources.symbols[direction] == 0 { 0.0 } else { (prbs - per_symbol(used)).max(0.0) };
        let measured = user.cqi.filter(|(at, _)| {
            let window = cell.info.slot * cell.period.max(RECENT as u64);
            cell.time <= *at + window
        });
        Some(RadioHint {
            tbs_bits: share.tbs_bits,
            granted: share.granted,
            most_granted: share.most_granted,
            unused,
            active_users: cell.active[direction].users(),
            cqi: measured.map(|(_, cqi)| cqi.get()),
            mcs: link.mcs,
            queue: row.map_or(link.queue, |row| row.queue),
            queue_limit: row.and_then(|row| row.buffer),
            handover: user.on_its_way,
            ..RadioHint::of(cell.info, cell.time)
        })
    }

    /// Whether grants are means over the last slots rather than over a period that is shorter.
    fn is_smooth(&self, cell: &CellState) -> bool {
        cell.period < RECENT as u64 && self.averaging == Averaging::Smooth
    }

    /// What a user of the cell was granted in a direction with so many symbols.
    fn share(&self, link: &LinkState, cell: &CellState, symbols: u32) -> Share {
        let (short, smooth) = (cell.period < RECENT as u64, self.is_smooth(cell));
        let largest = link.granted(cell.slot, short);
        let granted = if smooth == short { largest } else { link.granted(cell.slot, smooth) };
        let prbs = cell.info.prbs;
        Share {
            tbs_bits: (largest.block > 0).then_some(largest.block),
            granted: (f64::from(granted.prb_symbols) / f64::from(symbols.max(1))).min(f64::from(prbs)),
            most_granted: libm::ceilf(largest.most).min(f32::from(prbs)) as u16,
        }
    }

    /// The same in the form of the feed's datagrams: the cell, and each of its users whose number fits. Block, queue and
    /// retransmissions are those of the downlink.
    pub fn report(&self, cell: u16, users: &mut Vec<Record>) -> Option<CellReport> {
        self.report_of(cell, Direction::Downlink, &mut |_| true, users)
    }

    /// The same for the users that `is_meant`, with block, queue and retransmissions of a direction.
    pub fn report_of(
        &self,
        cell: u16,
        direction: Direction,
        is_meant: &mut dyn FnMut(u32) -> bool,
        users: &mut Vec<Record>,
    ) -> Option<CellReport> {
        users.clear();
        let state = self.cells.get(usize::from(cell))?.as_ref()?;
        let info = &state.info;
        let smooth = self.is_smooth(state);
        let resources = state.resources(smooth);
        let averaged = smooth || state.period > 1;
        // In tenths; symbols where these are allocated.
        let number = |prbs: f64, direction: Direction| {
            let unit = if info.by_symbols {
                f64::from(info.data_symbols[direction]) / f64::from(info.prbs.max(1))
            } else {
                1.0
            };
            libm::round(prbs * unit * if averaged { 10.0 } else { 1.0 }) as u16
        };
        for &user in &state.users {
            let Ok(index) = u16::try_from(user) else { continue };
            if !is_meant(user) {
                continue;
            }
            let Some((of_user, of_cell)) = self.state(user) else { continue };
            // A user on its way may have another cell already.
            let symbols = if std::ptr::eq(of_cell, state) {
                resources.symbols
            } else {
                of_cell.resources(self.is_smooth(of_cell)).symbols
            };
            let shares = Both::of(|way| self.share(&of_user.link[way], of_cell, symbols[way]));
            let link = &of_user.link[direction];
            users.push(Record {
                user: index,
                cqi: of_user.cqi.map_or(0, |(_, cqi)| cqi.get()),
                handover: of_user.on_its_way,
                mcs: Both::of(|way| of_user.link[way].mcs),
                granted: Both::of(|way| number(shares[way].granted, way)),
                tbs_bits: shares[direction].tbs_bits,
                queue: link.queue,
                again: link.again(),
                most_granted: shares[direction].most_granted,
            });
        }
        let used =
            Both::of(|way| number(resources.used[way] / f64::from(resources.symbols[way].max(1)), way));
        let active_users = Both::of(|way| state.active[way].users());
        Some(CellReport { cell, slot: state.slot, time: state.time, used, active_users, averaged })
    }

    /// The hints of a cell's users were published: the next period begins.
    pub fn published(&mut self, cell: u16) {
        let Some(cell) = self.cells.get_mut(usize::from(cell)).and_then(Option::as_mut) else { return };
        cell.next = cell.slot + cell.period;
        cell.since = Resources::default();
        for user in &cell.users {
            let Some(user) = self.users.get_mut(*user as usize) else { continue };
            for direction in DIRECTIONS {
                let link = &mut user.link[direction];
                link.since = Granted::default();
                link.blocks[0] = link.blocks[1];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grant, LinkReport, UserReport};
    use ranpace_phy::{LteBandwidth, TransportBlock};

    fn at(slot: u64) -> Time {
        Time::ZERO + Span::from_millis(slot)
    }

    /// A user with this many PRBs of `symbols` symbols each way, 10 bytes a PRB.
    fn row(user: u32, prbs: Both<u16>, symbols: u8) -> UserReport {
        let link = prbs.map(|prbs| {
            let block = TransportBlock::from_bytes(10 * u32::from(prbs));
            let (padding, process, again) = (Bytes::ZERO, 0, false);
            let grant = Grant { mcs: prbs as u8, prbs, symbols, block, padding, process, again };
            LinkReport { grant: (prbs > 0).then_some(grant), queue: Bytes::new(7), ..LinkReport::default() }
        });
        UserReport { user, rnti: 1, cqi: Cqi::MAX, cqi_time: Time::ZERO, capacity: 1.0, link }
    }

    fn report<'a>(
        cell: &'a CellInfo,
        slot: u64,
        symbols: Both<u8>,
        used_prbs: Both<f32>,
        users: &'a [UserReport],
        bearers: &'a [BearerReport],
    ) -> SlotReport<'a> {
        let active_users = Both::default();
        SlotReport {
            cell,
            slot,
            time: at(slot),
            symbols,
            used_prbs,
            active_users,
            users,
            bearers,
            full: true,
        }
    }

    const ALL: Both<u8> = Both { downlink: 14, uplink: 14 };
    const NONE: Both<u16> = Both { downlink: 0, uplink: 0 };

    /// Plays slots in which a user has as many PRBs downlink as `prbs` says, and publishes when due: the times and hints.
    fn play(publisher: &mut Publisher, prbs: &[u16]) -> Vec<(u64, RadioHint)> {
        let cell = CellInfo::lte(0, LteBandwidth::Mhz5);
        let mut told = Vec::new();
        for (slot, &prbs) in (0..).zip(prbs) {
            let users = [row(3, Both { downlink: prbs, uplink: 0 }, 14)];
            let used = Both { downlink: f32::from(prbs), uplink: 0.0 };
            if publisher.on_report(&report(&cell, slot, ALL, used, &users, &[])) {
                assert_eq!(publisher.users(0), [3]);
                told.push((slot, publisher.hint(3, Direction::Downlink, None).unwrap()));
                publisher.published(0);
            }
        }
        told
    }

    #[test]
    fn a_smooth_report_of_each_tti_is_a_mean_of_8() {
        let prbs: Vec<u16> = (0..20).map(|slot| if slot == 2 { 24 } else { 8 * (slot % 2) }).collect();
        let told = play(&mut Publisher::new(Span::ZERO, Averaging::Smooth), &prbs);
        assert_eq!(told.len(), 20);
        for (slot, hint) in told {
            let window = &prbs[(slot as usize).saturating_sub(7)..=slot as usize];
            let mean = f64::from(window.iter().sum::<u16>()) / window.len() as f64;
            assert!((hint.granted - mean).abs() < 1e-9 && (hint.granted + hint.unused - 25.0).abs() < 1e-9);
            let most = window.iter().max().unwrap();
            assert_eq!(
                (hint.most_granted, hint.tbs_bits.unwrap_or(0)),
                (*most, 80 * u32::from(*most)),
                "{slot}"
            );
        }
    }

    #[test]
    fn an_exact_report_of_each_tti_is_its_grant_but_the_largest_block_is_of_8() {
        let told = play(&mut Publisher::new(Span::ZERO, Averaging::Exact), &[5, 20, 0, 0, 0, 0, 0, 0, 0, 0]);
        let granted: Vec<f64> = told.iter().map(|(_, hint)| hint.granted).collect();
        assert_eq!(granted, [5.0, 20.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let blocks: Vec<Option<u32>> = told.iter().map(|(_, hint)| hint.tbs_bits).collect();
        assert_eq!(blocks[..9], [[Some(400)].as_slice(), &[Some(1_600); 8]].concat());
        assert_eq!(blocks[9], None);
        assert_eq!(told[9].1.mcs, 20, "of the last grant, whenever that was");
    }

    #[test]
    fn a_longer_period_tells_of_itself_alone() {
        let prbs: Vec<u16> = (0..33).map(|slot| if slot == 16 { 25 } else { slot % 4 }).collect();
        let told = play(&mut Publisher::new(Span::from_millis(16), Averaging::Smooth), &prbs);
        let slots: Vec<u64> = told.iter().map(|(slot, _)| *slot).collect();
        assert_eq!(slots, [0, 16, 32]);
        let mean =
            |slots: core::ops::RangeInclusive<usize>| f64::from(prbs[slots].iter().sum::<u16>()) / 16.0;
        assert!((told[1].1.granted - mean(1..=16)).abs() < 1e-9);
        assert!((told[2].1.granted - mean(17..=32)).abs() < 1e-9);
        assert_eq!((told[1].1.most_granted, told[2].1.most_granted), (25, 3));
    }

    #[test]
    fn in_tdd_means_are_over_the_symbols_of_the_direction() {
        // Four slots down, one up, of which the user has 10 PRBs each time.
        let cell = CellInfo { fdd: false, ..CellInfo::lte(0, LteBandwidth::Mhz5) };
        let mut publisher = Publisher::new(Span::from_millis(10), Averaging::Smooth);
        let mut hints = None;
        for slot in 0..11 {
            let is_up = slot % 5 == 4;
            let [down, up] = [u8::from(!is_up), u8::from(is_up)];
            let symbols = Both { downlink: 14 * down, uplink: 14 * up };
            let prbs = Both { downlink: 10 * u16::from(down), uplink: 10 * u16::from(up) };
            let users = [row(0, prbs, 14)];
            let used = prbs.map(f32::from);
            if publisher.on_report(&report(&cell, slot, symbols, used, &users, &[])) {
                assert_eq!(publisher.had_symbols(0, Direction::Uplink), slot > 0);
                hints = Some(Both::of(|way| publisher.hint(0, way, None).unwrap()));
                publisher.published(0);
            }
        }
        let hints = hints.unwrap();
        for way in DIRECTIONS {
            assert_eq!((hints[way].granted, hints[way].unused), (10.0, 15.0), "{way:?}");
        }
    }

    #[test]
    fn where_directions_share_symbols_what_one_uses_the_other_does_not_have() {
        // 23 symbols of one wide PRB: 5 down, 6 up.
        let lte = CellInfo::lte(0, LteBandwidth::Mhz5);
        let symbols = Both { downlink: 23, uplink: 23 };
        let cell =
            CellInfo { prbs: 1, shared: true, by_symbols: true, fdd: false, data_symbols: symbols, ..lte };
        let mut publisher = Publisher::new(Span::ZERO, Averaging::Exact);
        let down = row(0, Both { downlink: 1, uplink: 0 }, 5);
        let up = row(1, Both { downlink: 0, uplink: 1 }, 6);
        let used = Both { downlink: 5.0 / 23.0, uplink: 6.0 / 23.0 };
        assert!(publisher.on_report(&report(&cell, 0, symbols, used, &[down, up], &[])));
        let hint = publisher.hint(0, Direction::Downlink, None).unwrap();
        assert!(
            (hint.granted - 5.0 / 23.0).abs() < 1e-6 && (hint.unused - 12.0 / 23.0).abs() < 1e-6,
            "{hint:?}"
        );
        assert_eq!(hint.most_granted, 1, "rounded up");
        let mut records = Vec::new();
        let told = publisher.report(0, &mut records).unwrap();
        assert_eq!((told.used, told.averaged), (Both { downlink: 5, uplink: 6 }, false), "symbols");
        assert_eq!((records[0].granted.downlink, records[1].granted.uplink), (5, 6));
    }

    #[test]
    fn the_queue_is_the_bearers_and_on_the_device() {
        let cell = CellInfo::lte(0, LteBandwidth::Mhz5);
        let bearer = |user, bearer, direction, queue| BearerReport {
            user,
            bearer,
            direction,
            queue: Bytes::new(queue),
            head_of_line: Span::ZERO,
            buffer: (bearer == 0).then_some(Bytes::new(9_000)),
        };
        let bearers = [
            bearer(1, 0, Direction::Downlink, 100),
            bearer(1, 1, Direction::Downlink, 200),
            bearer(1, 0, Direction::Uplink, 300),
            bearer(2, 0, Direction::Downlink, 400),
        ];
        let mut publisher = Publisher::new(Span::ZERO, Averaging::Smooth);
        publisher.on_report(&report(
            &cell,
            0,
            ALL,
            Both::default(),
            &[row(1, NONE, 14), row(2, NONE, 14)],
            &bearers,
        ));
        let of = |user, way, bearer| {
            let hint = publisher.hint(user, way, bearer).unwrap();
            (hint.queue.get(), hint.queue_limit.map(Bytes::get))
        };
        assert_eq!(of(1, Direction::Downlink, Some(0)), (100, Some(9_000)));
        assert_eq!(of(1, Direction::Downlink, Some(1)), (200, None));
        assert_eq!(of(1, Direction::Uplink, Some(0)), (300, Some(9_000)));
        assert_eq!(of(1, Direction::Uplink, None), (7, None), "as the base station knows it");
        assert_eq!(of(2, Direction::Downlink, Some(0)), (400, Some(9_000)));
        assert_eq!(of(2, Direction::Downlink, Some(5)), (7, None));
    }

    #[test]
    fn a_user_on_its_way_is_told_of_as_it_was_and_begins_anew() {
        let [home, other] = [0, 1].map(|number| CellInfo::lte(number, LteBandwidth::Mhz5));
        let mut publisher = Publisher::new(Span::ZERO, Averaging::Smooth);
        let event = |kind| Event { time: at(1), cell: 0, user: 0, kind };
        publisher.on_event(&event(EventKind::HandoverBegun { to: 1 }));
        assert_eq!(publisher.hint(0, Direction::Downlink, None), None, "never seen");
        let users = [row(0, Both { downlink: 9, uplink: 0 }, 14)];
        publisher.on_report(&report(&home, 0, ALL, Both::default(), &users, &[]));
        publisher.on_event(&event(EventKind::Detached));
        assert_eq!(publisher.hint(0, Direction::Downlink, None), None);
        publisher.on_event(&event(EventKind::HandoverBegun { to: 1 }));
        let hint = publisher.hint(0, Direction::Downlink, None).unwrap();
        assert_eq!(
            (hint.handover, hint.mcs, hint.info.cell, publisher.users(0)),
            (true, 9, 0, [].as_slice())
        );
        publisher.on_event(&event(EventKind::HandoverCompleted { from: 0 }));
        assert_eq!(publisher.hint(0, Direction::Downlink, None), None, "the new cell has not told of it yet");
        publisher.on_report(&report(&other, 30, ALL, Both::default(), &[row(0, NONE, 14)], &[]));
        let hint = publisher.hint(0, Direction::Downlink, None).unwrap();
        assert_eq!((hint.handover, hint.mcs, hint.info.cell, hint.tbs_bits), (false, 0, 1, None));
    }
}
