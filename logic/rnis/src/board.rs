//! A board on which one writer keeps the latest of every user, for many readers who never wait for each other.
//!
//! It lies on borrowed 64-bit words, so that threads share it as it is and processes by mapping the same memory; who maps it is
//! a carrier. Neither side blocks: each cell and each user has a counter that is odd while its words change, and a reader
//! that finds it odd, or changed meanwhile, looks again ([`READS`] times at most, so that a writer that died in between stops
//! nobody). Two writers on one board do no harm to memory, but what is read then may be of both: the carrier sees to it that
//! there is one.
//!
//! # Layout
//!
//! In words; all numbers unsigned unless said otherwise. The version in word 0 changes with it.
//!
//! | from | what |
//! |---|---|
//! | 0 | [`MAGIC`], its lowest 16 bits the version |
//! | 1 | cells, in the upper 32 bits; users, in the lower |
//! | 2 | TTIs of the history H, a power of two |
//! | 3 | generation: rises whenever a writer begins anew |
//! | 4 | time of the last slot that was written, in ns; of any cell |
//! | 8 | cells, [`CELL_WORDS`] + H each: counter, what the cell is, its last slot, sums since the start, and its last H slots |
//! | behind | users, [`USER_WORDS`] + 2 H each: counter, identity and state, sums since the user came, and its last H slots downlink and uplink |
//!
//! What a record holds is in [`CellRecord`] and [`UserRecord`]; the order of its words in their `load`. A slot of the history
//! is one word: its number in the lowest 24 bits, so that one of H slots before is not taken for it.
//!
//! The queue is that of the user over all bearers. Means over longer windows than H follow from the sums: keep a record and
//! compare it with a later one ([`UserRecord::since`]).

use core::sync::atomic::{AtomicU64, Ordering, fence};

use ranpace_phy::{Both, Direction};
use ranpace_units::{Bytes, Span, Time};

use crate::activity::Activity;
use crate::{Aged, CellInfo, Event, EventKind, RadioHint, Report, Technology, UserReport};

#[cfg(test)]
mod tests;

/// "RANRNI" and the version of the layout.
pub const MAGIC: u64 = 0x5241_4e52_4e49_0001;
/// Words of a cell, without its history.
pub const CELL_WORDS: usize = 18;
/// Words of a user, without its history.
pub const USER_WORDS: usize = 16;
/// How often a reader looks at a record that changes meanwhile.
pub const READS: usize = 10_000;
const HEADER_WORDS: usize = 8;
const DIRECTIONS: [Direction; 2] = [Direction::Downlink, Direction::Uplink];
/// A slot's number in the history.
const SLOT_BITS: u32 = 24;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

/// How large a board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Cells; those with numbers from there on are not on it. At most 65 536.
    pub cells: u32,
    /// Users, likewise.
    pub users: u32,
    /// TTIs of history: a power of two, 8 to 1024.
    pub history: u32,
}

impl Size {
    /// Of one cell with so many users, and the last 16 TTIs.
    pub const fn one_cell(users: u32) -> Self {
        Self { cells: 1, users, history: 16 }
    }

    /// Words that it takes; `None` if it cannot be.
    pub fn words(self) -> Option<usize> {
        if !self.history.is_power_of_two() || !(8..=1024).contains(&self.history) || self.cells > 1 << 16 {
            return None;
        }
        let history = self.history as usize;
        let cells = (CELL_WORDS + history).checked_mul(self.cells as usize)?;
        let users = (USER_WORDS + 2 * history).checked_mul(self.users as usize)?;
        HEADER_WORDS.checked_add(cells)?.checked_add(users)
    }
}

/// Why there is no board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// The words do not begin as a board does, or as one of another version.
    #[error("expected a board that begins with {MAGIC:#018x}, found {found:#018x}")]
    NotABoard {
        /// The first word; 0 if there is none.
        found: u64,
    },
    /// There is no board of this size.
    #[error("expected a history of 8 to 1024 TTIs, a power of two, and at most 65536 cells, found {size:?}")]
    BadSize {
        /// The size.
        size: Size,
    },
    /// There are not enough words.
    #[error("expected {expected} words for it, found {found}")]
    TooShort {
        /// Words that it takes.
        expected: usize,
        /// Words that there are.
        found: usize,
    },
}

/// Where things lie.
#[derive(Clone, Copy, Debug)]
struct Layout {
    size: Size,
}

impl Layout {
    fn checked(size: Size, found: usize) -> Result<Self, BoardError> {
        let expected = size.words().ok_or(BoardError::BadSize { size })?;
        if found < expected { Err(BoardError::TooShort { expected, found }) } else { Ok(Self { size }) }
    }
    fn history(self) -> usize {
        self.size.history as usize
    }
    fn cell(self, cell: u16) -> Option<usize> {
        let index = u32::from(cell);
        (index < self.size.cells).then(|| HEADER_WORDS + usize::from(cell) * (CELL_WORDS + self.history()))
    }
    fn user(self, user: u32) -> Option<usize> {
        let cells = self.size.cells as usize * (CELL_WORDS + self.history());
        let at = |user: u32| HEADER_WORDS + cells + user as usize * (USER_WORDS + 2 * self.history());
        (user < self.size.users).then(|| at(user))
    }
    /// Place of a slot in a history that begins at `from`.
    fn slot(self, from: usize, slot: u64) -> usize {
        from + (slot as usize & (self.history() - 1))
    }
    /// Where the history of a user begins.
    fn user_history(self, at: usize, direction: Direction) -> usize {
        at + USER_WORDS + if direction == Direction::Uplink { self.history() } else { 0 }
    }
}

/// Writes a board.
#[derive(Debug)]
pub struct Writer<'a> {
    words: &'a [AtomicU64],
    layout: Layout,
    cells: Vec<CellSums>,
    on_its_way: Vec<bool>,
}

#[derive(Debug, Default)]
struct CellSums {
    active: Both<Activity>,
    used: Both<u64>,
    symbols: Both<u64>,
}

impl<'a> Writer<'a> {
    /// Makes a board of the words, whatever was on them; one that was there before begins a new generation.
    pub fn new(words: &'a [AtomicU64], size: Size) -> Result<Self, BoardError> {
        let layout = Layout::checked(size, words.len())?;
        let generation =
            if words[0].load(Ordering::Relaxed) == MAGIC { words[3].load(Ordering::Relaxed) } else { 0 };
        // Who opens it meanwhile finds none; who has it open finds nobody on it.
        words[0].store(0, Ordering::SeqCst);
        words[1..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        words[1].store(u64::from(size.cells) << 32 | u64::from(size.users), Ordering::Relaxed);
        words[2].store(size.history.into(), Ordering::Relaxed);
        words[3].store(generation.wrapping_add(1), Ordering::Relaxed);
        words[0].store(MAGIC, Ordering::Release);
        Ok(Self { words, layout, cells: Vec::new(), on_its_way: Vec::new() })
    }

    /// Changes a record: its words from the second on, by `store(place in the record, value)`.
    #[inline]
    fn change(words: &[AtomicU64], at: usize, change: impl FnOnce(&dyn Fn(usize, u64))) {
        let counter = words[at].load(Ordering::Relaxed);
        words[at].store(counter.wrapping_add(1) | 1, Ordering::Relaxed);
        fence(Ordering::Release);
        change(&|place, value| words[at + place].store(value, Ordering::Relaxed));
        words[at].store((counter | 1).wrapping_add(1), Ordering::Release);
    }

    /// A slot is over. Cells and users that have no place are left out.
    pub fn on_report(&mut self, report: &Report<'_>) {
        let Some(at) = self.layout.cell(report.cell.cell) else { return };
        let index = usize::from(report.cell.cell);
        if self.cells.len() <= index {
            self.cells.resize_with(index + 1, CellSums::default);
        }
        let Self { words, layout, cells, on_its_way } = self;
        let cell = &mut cells[index];
        for row in report.users {
            let Some(at) = layout.user(row.user) else { continue };
            if let Some(on_its_way) = on_its_way.get_mut(row.user as usize) {
                *on_its_way = false;
            }
            for direction in DIRECTIONS {
                if row.link[direction].grant.is_some() {
                    cell.active[direction].on_grant(report.time, row.user);
                }
            }
            Self::write_user(words, *layout, at, report, row);
        }
        for direction in DIRECTIONS {
            cell.active[direction].pass(report.time);
            let symbols = report.symbols[direction];
            // PRBs times symbols are whole.
            let used = libm::roundf(report.used_prbs[direction] * f32::from(symbols)) as u64;
            cell.used[direction] += used;
            cell.symbols[direction] += u64::from(symbols);
        }
        let used =
            Both::of(|way| libm::roundf(report.used_prbs[way] * f32::from(report.symbols[way])) as u64);
        let slot = layout.slot(at + CELL_WORDS, report.slot) - at;
        let info = encode(report.cell);
        Self::change(words, at, |store| {
            info.iter().enumerate().for_each(|(place, word)| store(1 + place, *word));
            store(10, report.time.as_nanos());
            store(11, report.slot);
            store(12, u64::from(cell.active.downlink.users()) << 16 | u64::from(cell.active.uplink.users()));
            store(13, cell.used.downlink);
            store(14, cell.used.uplink);
            store(15, cell.symbols.downlink);
            store(16, cell.symbols.uplink);
            let [down, up] =
                [report.symbols.downlink, report.symbols.uplink].map(|symbols| u64::from(symbols & 31));
            let used = Both::of(|way| used[way].min(0x1fff));
            let entry = used.downlink | used.uplink << 13 | down << 26 | up << 31;
            store(slot, entry << SLOT_BITS | report.slot & SLOT_MASK);
        });
        words[4].store(report.time.as_nanos(), Ordering::Release);
    }

    #[inline]
    fn write_user(words: &[AtomicU64], layout: Layout, at: usize, report: &Report<'_>, row: &UserReport) {
        let mcs = Both::of(|way| row.link[way].grant.map(|grant| grant.mcs));
        let old = words[at + 1].load(Ordering::Relaxed);
        let is_new = old & STATE_MASK != PRESENT || old >> 16 & 0xffff != u64::from(report.cell.cell);
        let old_mcs = if is_new { 0 } else { old >> 48 };
        let mcs_down = mcs.downlink.map_or(old_mcs & 0xff, u64::from);
        let mcs_up = mcs.uplink.map_or(old_mcs >> 8, u64::from);
        Self::change(words, at, |store| {
            let identity = u64::from(report.cell.cell) << 16 | u64::from(row.rnti) << 32;
            store(1, PRESENT | u64::from(row.cqi.get()) << 8 | identity | mcs_down << 48 | mcs_up << 56);
            store(2, report.time.as_nanos());
            store(3, row.cqi_time.as_nanos());
            let [down, up] = [&row.link.downlink, &row.link.uplink];
            store(4, down.queue.get());
            store(5, up.queue.get());
            let micros = |span: Span| span.as_micros().min(u32::MAX.into());
            store(6, micros(down.head_of_line) << 32 | micros(up.head_of_line));
            store(7, down.scheduled_bits);
            store(8, up.scheduled_bits);
            store(9, down.scheduled_prb_symbols);
            store(10, up.scheduled_prb_symbols);
            let blocks = |blocks: u64, again: u64| (blocks & 0xffff_ffff) << 32 | again & 0xffff_ffff;
            store(11, blocks(down.blocks, down.retransmissions));
            store(12, blocks(up.blocks, up.retransmissions));
            for (direction, link) in [(Direction::Downlink, down), (Direction::Uplink, up)] {
                let Some(grant) = link.grant else { continue };
                let slot = layout.slot(layout.user_history(at, direction), report.slot) - at;
                let prb_symbols = (u64::from(grant.prbs) * u64::from(grant.symbols)).min(0x3fff);
                let bytes = u64::from(grant.block.bits() / 8).min(0xf_ffff);
                let entry = GRANTED | bytes << 14 | prb_symbols;
                store(slot, entry << SLOT_BITS | report.slot & SLOT_MASK);
            }
        });
    }

    /// Something happened to a user: one that is on its way to another cell is shown as it was, as such.
    pub fn on_event(&mut self, event: &Event) {
        let Some(at) = self.layout.user(event.user) else { return };
        let index = event.user as usize;
        if self.on_its_way.len() <= index {
            self.on_its_way.resize(index + 1, false);
        }
        let old = self.words[at + 1].load(Ordering::Relaxed);
        let state = match event.kind {
            EventKind::Detached => {
                for cell in &mut self.cells {
                    DIRECTIONS.iter().for_each(|way| cell.active[*way].forget(event.user));
                }
                GONE
            }
            EventKind::HandoverBegun { .. } => {
                self.on_its_way[index] = true;
                ON_ITS_WAY
            }
            _ => return,
        };
        if old & STATE_MASK != NOBODY {
            Self::change(self.words, at, |store| store(1, old & !STATE_MASK | state));
        }
    }
}

/// The state of a user, in the lowest eight bits of its second word.
const STATE_MASK: u64 = 0xff;
const NOBODY: u64 = 0;
const PRESENT: u64 = 1;
const ON_ITS_WAY: u64 = 2;
const GONE: u64 = 3;
/// There was a grant.
const GRANTED: u64 = 1 << 34;

/// Reads a board.
#[derive(Clone, Copy, Debug)]
pub struct Board<'a> {
    words: &'a [AtomicU64],
    layout: Layout,
}

/// What a cell is, and what it did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellRecord {
    /// What it is.
    pub info: CellInfo,
    /// Its last slot.
    pub slot: u64,
    /// Users with a grant in the last 100 ms.
    pub active_users: Both<u16>,
    /// PRBs times symbols that were used, since the start.
    pub used_prb_symbols: Both<u64>,
    /// Symbols that could carry data, since the start.
    pub symbols: Both<u64>,
}

/// The latest of a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserRecord {
    /// Number of its cell.
    pub cell: u16,
    /// C-RNTI.
    pub rnti: u16,
    /// It is on its way to another cell: the rest is of before.
    pub handover: bool,
    /// Wideband CQI.
    pub cqi: u8,
    /// When that was measured.
    pub cqi_time: Time,
    /// MCS of the last grants.
    pub mcs: Both<u8>,
    /// What waits, over all bearers; in the uplink as the base station knows it.
    pub queue: Both<Bytes>,
    /// The longest wait at the head of a bearer, in whole microseconds.
    pub head_of_line: Both<Span>,
    /// Bits of new data scheduled since the user came.
    pub scheduled_bits: Both<u64>,
    /// PRBs times symbols granted since the user came.
    pub prb_symbols: Both<u64>,
    /// Blocks sent for the first time since the user came, modulo 2^32.
    pub blocks: Both<u32>,
    /// Blocks sent again, likewise.
    pub retransmissions: Both<u32>,
}

/// What happened between two looks at a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// How long.
    pub time: Span,
    /// Bits of new data per second.
    pub bit_s: f64,
    /// PRBs times symbols per second.
    pub prb_symbols_s: f64,
    /// Share of blocks sent that were sent again.
    pub again: f64,
}

impl<'a> Board<'a> {
    /// The board on these words.
    pub fn open(words: &'a [AtomicU64]) -> Result<Self, BoardError> {
        let found = words.first().map_or(0, |word| word.load(Ordering::Acquire));
        if found != MAGIC || words.len() < HEADER_WORDS {
            return Err(BoardError::NotABoard { found });
        }
        let counts = words[1].load(Ordering::Relaxed);
        let history = u32::try_from(words[2].load(Ordering::Relaxed)).unwrap_or(0);
        let size = Size { cells: (counts >> 32) as u32, users: counts as u32, history };
        Ok(Self { words, layout: Layout::checked(size, words.len())? })
    }

    /// How large it is.
    pub fn size(&self) -> Size {
        self.layout.size
    }

    /// Which writer's it is: another number is of one that began anew, and knows only what it saw since.
    pub fn generation(&self) -> u64 {
        self.words[3].load(Ordering::Acquire)
    }

    /// When the last slot was written, of any cell.
    pub fn last_slot_at(&self) -> Time {
        Time::from_nanos(self.words[4].load(Ordering::Acquire))
    }

    /// Copies the words of a record while nobody changes them; `None` if somebody always does.
    #[inline]
    fn copy<T>(&self, at: usize, copy: impl Fn(&dyn Fn(usize) -> u64) -> T) -> Option<T> {
        for _ in 0..READS {
            let before = self.words[at].load(Ordering::Acquire);
            if before & 1 == 0 {
                let copied = copy(&|place| self.words[at + place].load(Ordering::Relaxed));
                fence(Ordering::Acquire);
                if self.words[at].load(Ordering::Relaxed) == before {
                    return Some(copied);
                }
            }
            core::hint::spin_loop();
        }
        None
    }

    /// A cell; `None` if nothing was heard of it.
    pub fn cell(&self, cell: u16) -> Option<Aged<CellRecord>> {
        let at = self.layout.cell(cell)?;
        self.copy(at, |load| {
            let info = decode(&core::array::from_fn(|place| load(1 + place)))?;
            let [both, active] = [10, 12].map(load);
            let active_users = Both { downlink: (active >> 16) as u16, uplink: active as u16 };
            let record = CellRecord {
                info,
                slot: load(11),
                active_users,
                used_prb_symbols: Both { downlink: load(13), uplink: load(14) },
                symbols: Both { downlink: load(15), uplink: load(16) },
            };
            Some(Aged::new(record, Time::from_nanos(both)))
        })?
    }

    /// The latest of a user; `None` if nothing was heard of it, or it left.
    pub fn user(&self, user: u32) -> Option<Aged<UserRecord>> {
        let at = self.layout.user(user)?;
        self.copy(at, UserRecord::load)?
    }

    /// What a mechanism is told of a user: resources as means over the last `ttis` TTIs (8 to the board's history; others count
    /// as the nearest), blocks and most PRBs over the last 8 or these if they are more. It was measured when the cell's
    /// last slot was, though the user may have been asleep then.
    pub fn hint(&self, user: u32, direction: Direction, ttis: u64) -> Option<RadioHint> {
        /// MELD's N_HARQ.
        const RECENT: u64 = 8;
        let at = self.layout.user(user)?;
        let (record, granted) = {
            let number = self.copy(at, |load| (load(1) >> 16) as u16)?;
            let cell = self.cell(number)?;
            let window = ttis.clamp(1, self.layout.size.history.into());
            let recent = window.max(RECENT);
            let slots = |count: u64| (0..count).filter_map(move |back| cell.value.slot.checked_sub(back));
            let history = self.layout.user_history(at, direction) - at;
            let record = self.copy(at, |load| {
                let record = UserRecord::load(load)?;
                let (mut sum, mut most, mut block) = (0_u64, 0_u64, 0_u64);
                for (place, slot) in slots(recent).enumerate() {
                    let entry = load(self.layout.slot(history, slot));
                    if entry & SLOT_MASK != slot & SLOT_MASK || entry >> SLOT_BITS & GRANTED == 0 {
                        continue;
                    }
                    let entry = entry >> SLOT_BITS;
                    let (prb_symbols, bytes) = (entry & 0x3fff, entry >> 14 & 0xf_ffff);
                    sum += if (place as u64) < window { prb_symbols } else { 0 };
                    most = most.max(prb_symbols);
                    block = block.max(bytes);
                }
                Some((record, sum, most, block))
            })??;
            let cell_at = self.layout.cell(number)?;
            let resources = self.copy(cell_at, |load| {
                let (mut used, mut symbols) = (0_u64, 0_u64);
                for slot in slots(window) {
                    let entry = load(self.layout.slot(CELL_WORDS, slot));
                    if entry & SLOT_MASK != slot & SLOT_MASK {
                        continue;
                    }
                    let entry = entry >> SLOT_BITS;
                    let of = Both { downlink: entry & 0x1fff, uplink: entry >> 13 & 0x1fff };
                    let shared = cell.value.info.shared;
                    used += if shared { of.downlink + of.uplink } else { of[direction] };
                    let count = Both { downlink: entry >> 26 & 31, uplink: entry >> 31 & 31 };
                    symbols += count[direction];
                }
                (used, symbols)
            })?;
            ((cell, record), resources)
        };
        let ((cell, (record, sum, most, block)), (used, symbols)) = (record, granted);
        let (info, prbs) = (cell.value.info, f64::from(cell.value.info.prbs));
        let per_symbol = |prb_symbols: u64| prb_symbols as f64 / symbols.max(1) as f64;
        let most = most as f64 / f64::from(info.data_symbols[direction].max(1));
        let since_cqi = cell.measured_at.checked_since(record.value.cqi_time).unwrap_or(Span::ZERO);
        let is_recent = since_cqi <= info.slot * ttis.max(RECENT);
        let user = record.value;
        Some(RadioHint {
            tbs_bits: (block > 0).then_some(8 * block as u32), // at most 2^20 bytes
            granted: per_symbol(sum).min(prbs),
            most_granted: libm::ceil(most).min(prbs) as u16,
            unused: if symbols == 0 { 0.0 } else { (prbs - per_symbol(used)).max(0.0) },
            active_users: cell.value.active_users[direction],
            cqi: is_recent.then_some(user.cqi),
            mcs: user.mcs[direction],
            queue: user.queue[direction],
            handover: user.handover,
            ..RadioHint::of(info, cell.measured_at)
        })
    }
}

impl UserRecord {
    fn load(load: &dyn Fn(usize) -> u64) -> Option<Aged<Self>> {
        let words: [u64; 13] = core::array::from_fn(load);
        let identity = words[1];
        let state = identity & STATE_MASK;
        if state != PRESENT && state != ON_ITS_WAY {
            return None;
        }
        let pair = |at: usize| Both { downlink: words[at], uplink: words[at + 1] };
        let blocks = pair(11);
        let record = Self {
            cell: (identity >> 16) as u16,
            rnti: (identity >> 32) as u16,
            handover: state == ON_ITS_WAY,
            cqi: (identity >> 8) as u8,
            cqi_time: Time::from_nanos(words[3]),
            mcs: Both { downlink: (identity >> 48) as u8, uplink: (identity >> 56) as u8 },
            queue: pair(4).map(Bytes::new),
            head_of_line: Both { downlink: words[6] >> 32, uplink: words[6] & 0xffff_ffff }
                .map(Span::from_micros),
            scheduled_bits: pair(7),
            prb_symbols: pair(9),
            blocks: blocks.map(|word| (word >> 32) as u32),
            retransmissions: blocks.map(|word| word as u32),
        };
        Some(Aged::new(record, Time::from_nanos(words[2])))
    }

    /// What happened one way since an earlier look; `None` if the user came anew or no time passed.
    pub fn since(now: &Aged<Self>, before: &Aged<Self>, direction: Direction) -> Option<Elapsed> {
        let time = now.measured_at.checked_since(before.measured_at).filter(|time| !time.is_zero())?;
        let (now, before) = (&now.value, &before.value);
        let bits = now.scheduled_bits[direction].checked_sub(before.scheduled_bits[direction])?;
        let prb_symbols = now.prb_symbols[direction].checked_sub(before.prb_symbols[direction])?;
        let blocks = now.blocks[direction].wrapping_sub(before.blocks[direction]);
        let again = now.retransmissions[direction].wrapping_sub(before.retransmissions[direction]);
        let all = f64::from(blocks) + f64::from(again);
        let seconds = time.as_secs_f64();
        Some(Elapsed {
            time,
            bit_s: bits as f64 / seconds,
            prb_symbols_s: prb_symbols as f64 / seconds,
            again: if all > 0.0 { f64::from(again) / all } else { 0.0 },
        })
    }
}

/// What a cell is, in nine words; never all zero.
fn encode(info: &CellInfo) -> [u64; 9] {
    let technology: u64 = match info.technology {
        Technology::Lte => 1,
        Technology::Nr { qam256: false } => 2,
        Technology::Nr { qam256: true } => 3,
        Technology::Mmwave => 4,
    };
    let flags = u64::from(info.fdd) | u64::from(info.shared) << 1 | u64::from(info.by_symbols) << 2;
    let Both { downlink, uplink } = info.data_symbols.map(u64::from);
    let harq = info.harq_processes.map(u64::from);
    [
        technology
            | flags << 8
            | u64::from(info.cell) << 16
            | u64::from(info.prbs) << 32
            | u64::from(info.symbols) << 48
            | u64::from(info.layers) << 56,
        u64::from(info.spacing_hz) | u64::from(info.overhead) << 32 | downlink << 40 | uplink << 48,
        info.bandwidth_hz,
        info.slot.as_nanos(),
        info.share.downlink.to_bits(),
        info.share.uplink.to_bits(),
        info.usable.downlink.to_bits(),
        info.usable.uplink.to_bits(),
        harq.downlink | harq.uplink << 8,
    ]
}

/// `None` if there is none, or of a kind that this version does not know.
fn decode(words: &[u64; 9]) -> Option<CellInfo> {
    let technology = match words[0] & 0xff {
        1 => Technology::Lte,
        2 => Technology::Nr { qam256: false },
        3 => Technology::Nr { qam256: true },
        4 => Technology::Mmwave,
        _ => return None,
    };
    let flag = |bit: u32| words[0] >> (8 + bit) & 1 == 1;
    let pair =
        |at: usize| Both { downlink: f64::from_bits(words[at]), uplink: f64::from_bits(words[at + 1]) };
    Some(CellInfo {
        cell: (words[0] >> 16) as u16,
        technology,
        prbs: (words[0] >> 32) as u16,
        spacing_hz: words[1] as u32,
        bandwidth_hz: words[2],
        slot: Span::from_nanos(words[3]),
        symbols: (words[0] >> 48) as u8,
        fdd: flag(0),
        share: pair(4),
        data_symbols: Both { downlink: (words[1] >> 40) as u8, uplink: (words[1] >> 48) as u8 },
        shared: flag(1),
        by_symbols: flag(2),
        usable: pair(6),
        overhead: (words[1] >> 32) as u8,
        layers: (words[0] >> 56) as u8,
        harq_processes: Both { downlink: words[8] as u8, uplink: (words[8] >> 8) as u8 },
    })
}
