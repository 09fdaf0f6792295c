//! A table in which one writer keeps the latest values of every user, for many readers that never wait for each other.
//!
//! It consists of borrowed 64-bit words, so that threads share it directly and processes by mapping the same memory; a carrier does
//! the mapping. Neither side blocks: each cell and each user has a counter that is odd while its words change, and a reader that
//! finds it odd or changed retries (at most [`READS`] times, so that a writer that died halfway blocks nobody). Two writers on one
//! table do not corrupt memory, but reads may then mix their values: the carrier has to ensure that there is only one.
//!
//! # Layout
//!
//! Layout in words; all numbers are unsigned unless stated otherwise. Word 0 changes with the layout's version.
//!
//! | from | content |
//! |---|---|
//! | 0 | [`MAGIC`], its lowest 16 bits the version |
//! | 1 | cells, in the upper 32 bits; users, in the lower |
//! | 2 | TTIs of the history H, a power of two |
//! | 3 | generation: incremented by each new writer |
//! | 4 | time of the last slot written, of any cell, in ns |
//! | 8 | cells, [`CELL_WORDS`] + H each: counter, description, last slot, sums since the start, and the last H slots |
//! | next | users, [`USER_WORDS`] + 2 H each: counter, identity, state, sums since attaching, and the last H slots of each direction |
//!
//! [`CellRecord`] and [`UserRecord`] describe the content of a record, their `load` functions the order of its words. A slot of the
//! history is one word with the slot's number in its lowest 24 bits, so that the slot H before is not mistaken for it.
//!
//! Behind the table there may be a [`directory`] of its users' names and addresses.
//!
//! The queue is the user's, over all bearers. Means over windows longer than H follow from the sums: keep a record and compare it
//! with a later one ([`UserRecord::since`]).

use core::sync::atomic::{AtomicU64, Ordering, fence};

use ranpace_phy::{Both, Direction};
use ranpace_units::{Span, Time};

use self::record::{GONE, GRANTED, NOBODY, ON_ITS_WAY, PRESENT, STATE_MASK, encode};
use crate::activity::Activity;
use crate::{Event, EventKind, RadioHint, SlotReport, Timestamped, UserReport};

pub mod directory;
pub(crate) mod record;
#[cfg(test)]
mod tests;

pub use record::{CellRecord, Elapsed, UserRecord};

/// "RANRNI" and the version of the layout.
pub const MAGIC: u64 = 0x5241_4e52_4e49_0001;
/// Words of a cell, without its history.
pub const CELL_WORDS: usize = 18;
/// Words of a user, without its history.
pub const USER_WORDS: usize = 16;
/// The word with the time of the last slot: the last one that a slot changes, for a carrier whose readers wait for it.
pub const LAST_SLOT: usize = 4;
/// How often a reader retries a record that keeps changing.
pub const READS: usize = 10_000;
const HEADER_WORDS: usize = 8;
const DIRECTIONS: [Direction; 2] = [Direction::Downlink, Direction::Uplink];
/// Bits of the slot number in a history word.
const SLOT_BITS: u32 = 24;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

/// Capacity of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Cells; a cell with this number or a larger one is left out. At most 65 536.
    pub cells: u32,
    /// Users, likewise.
    pub users: u32,
    /// TTIs of history: a power of two, 8 to 1024.
    pub history: u32,
}

impl Size {
    /// One cell with this many users, and the last 16 TTIs.
    pub const fn one_cell(users: u32) -> Self {
        Self { cells: 1, users, history: 16 }
    }

    /// Size in words; `None` if the size is invalid.
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

/// Why a table was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SharedTableError {
    /// The first word is not that of a table, or of another version.
    #[error("expected a table that begins with {MAGIC:#018x}, found {found:#018x}")]
    NotATable {
        /// The first word; 0 if there is none.
        found: u64,
    },
    /// The first word is not that of a directory of users, or of another version.
    #[error("expected a directory of users that begins with {:#018x}, found {found:#018x}", directory::MAGIC)]
    NotADirectory {
        /// The first word; 0 if there is none.
        found: u64,
    },
    /// The size is invalid.
    #[error("expected a history of 8 to 1024 TTIs, a power of two, and at most 65536 cells, found {size:?}")]
    BadSize {
        /// The size.
        size: Size,
    },
    /// There are too few words.
    #[error("expected {expected} words for it, found {found}")]
    TooShort {
        /// Words needed.
        expected: usize,
        /// Words available.
        found: usize,
    },
}

/// Offsets in the table.
#[derive(Clone, Copy, Debug)]
struct Layout {
    size: Size,
}

impl Layout {
    fn checked(size: Size, found: usize) -> Result<Self, SharedTableError> {
        let expected = size.words().ok_or(SharedTableError::BadSize { size })?;
        if found < expected { Err(SharedTableError::TooShort { expected, found }) } else { Ok(Self { size }) }
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
    /// Word of a slot in a history that begins at `from`.
    fn slot(self, from: usize, slot: u64) -> usize {
        from + (slot as usize & (self.history() - 1))
    }
    /// First word of a user's history.
    fn user_history(self, at: usize, direction: Direction) -> usize {
        at + USER_WORDS + if direction == Direction::Uplink { self.history() } else { 0 }
    }
}

/// The first words of a record as a fixed-size array, so that accesses need no bounds check.
#[inline]
fn record<const N: usize>(words: &[AtomicU64], at: usize) -> Option<&[AtomicU64; N]> {
    words.get(at..)?.first_chunk()
}

/// A change of a record in progress.
struct Change<'a> {
    counter: &'a AtomicU64,
    value: u64,
}

impl<'a> Change<'a> {
    #[inline]
    fn begin(counter: &'a AtomicU64) -> Self {
        // The counter is odd already if a writer died: then take the next odd number, since the words may have changed.
        let value = (counter.load(Ordering::Relaxed).wrapping_add(1)) | 1;
        counter.store(value, Ordering::Relaxed);
        fence(Ordering::Release);
        Self { counter, value }
    }

    #[inline]
    fn end(self) {
        self.counter.store(self.value.wrapping_add(1), Ordering::Release);
    }
}

/// Loads a word, and all that was written before it. A reader's pages may be mapped read-only, on which Rust defines relaxed loads
/// alone; the fence makes one an acquiring load.
#[inline]
fn load(word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    value
}

/// Copies a record while it is stable; `None` if it keeps changing.
#[inline]
fn copy<T>(counter: &AtomicU64, copy: impl Fn() -> T) -> Option<T> {
    for _ in 0..READS {
        let before = load(counter);
        if before & 1 == 0 {
            let copied = copy();
            fence(Ordering::Acquire);
            if counter.load(Ordering::Relaxed) == before {
                return Some(copied);
            }
        }
        core::hint::spin_loop();
    }
    None
}

/// Writes a table.
#[derive(Debug)]
pub struct Writer<'a> {
    words: &'a [AtomicU64],
    layout: Layout,
    cells: Vec<CellSums>,
    on_its_way: Vec<bool>,
}

/// A writer without its words, for a carrier that owns both.
#[derive(Debug)]
pub struct WriterState {
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
    /// Creates a table in these words, whatever they held; if they held a table, a new generation begins.
    pub fn new(words: &'a [AtomicU64], size: Size) -> Result<Self, SharedTableError> {
        let layout = Layout::checked(size, words.len())?;
        let generation =
            if words[0].load(Ordering::Relaxed) == MAGIC { words[3].load(Ordering::Relaxed) } else { 0 };
        // A reader that opens it now finds no table; one that has it open finds no users.
        words[0].store(0, Ordering::SeqCst);
        words[1..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        words[1].store(u64::from(size.cells) << 32 | u64::from(size.users), Ordering::Relaxed);
        words[2].store(size.history.into(), Ordering::Relaxed);
        words[3].store(generation.wrapping_add(1), Ordering::Relaxed);
        words[0].store(MAGIC, Ordering::Release);
        Ok(Self { words, layout, cells: Vec::new(), on_its_way: Vec::new() })
    }

    /// Leaves the words.
    pub fn into_state(self) -> WriterState {
        WriterState { layout: self.layout, cells: self.cells, on_its_way: self.on_its_way }
    }

    /// Continues to write the table in the same words.
    ///
    /// # Errors
    ///
    /// There are too few words.
    pub fn resume(words: &'a [AtomicU64], state: WriterState) -> Result<Self, SharedTableError> {
        let WriterState { layout, cells, on_its_way } = state;
        Layout::checked(layout.size, words.len())?;
        Ok(Self { words, layout, cells, on_its_way })
    }

    /// Takes the mark of a table away, so that its readers look for its successor: the writer ends, or replaces it.
    pub fn retire(words: &[AtomicU64]) {
        if let Some(mark) = words.first() {
            mark.store(0, Ordering::SeqCst);
        }
    }

    /// A slot has ended. Cells and users outside the table's size are left out.
    pub fn on_report(&mut self, report: &SlotReport<'_>) {
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
            // PRBs times symbols are integers.
            let used = libm::roundf(report.used_prbs[direction] * f32::from(symbols)) as u64;
            cell.used[direction] += used;
            cell.symbols[direction] += u64::from(symbols);
        }
        let used =
            Both::of(|way| libm::roundf(report.used_prbs[way] * f32::from(report.symbols[way])) as u64);
        let Some(record) = record::<CELL_WORDS>(words, at) else { return };
        let change = Change::begin(&record[0]);
        record[1..]
            .iter()
            .zip(encode(report.cell))
            .for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        let active = Both::of(|way| u64::from(cell.active[way].users()));
        for (place, word) in [
            (10, report.time.as_nanos()),
            (11, report.slot),
            (12, active.downlink << 16 | active.uplink),
            (13, cell.used.downlink),
            (14, cell.used.uplink),
            (15, cell.symbols.downlink),
            (16, cell.symbols.uplink),
        ] {
            record[place].store(word, Ordering::Relaxed);
        }
        let symbols = report.symbols.map(|symbols| u64::from(symbols & 31));
        let used = used.map(|used| used.min(0x1fff));
        let entry = used.downlink | used.uplink << 13 | symbols.downlink << 26 | symbols.uplink << 31;
        let entry = entry << SLOT_BITS | report.slot & SLOT_MASK;
        words[layout.slot(at + CELL_WORDS, report.slot)].store(entry, Ordering::Relaxed);
        change.end();
        words[LAST_SLOT].store(report.time.as_nanos(), Ordering::Release);
    }

    #[inline]
    fn write_user(words: &[AtomicU64], layout: Layout, at: usize, report: &SlotReport<'_>, row: &UserReport) {
        let Some(record) = record::<USER_WORDS>(words, at) else { return };
        let old = record[1].load(Ordering::Relaxed);
        let is_new = old & STATE_MASK != PRESENT || old >> 16 & 0xffff != u64::from(report.cell.cell);
        let old_mcs = if is_new { 0 } else { old >> 48 };
        let [down, up] = [&row.link.downlink, &row.link.uplink];
        let mcs_down = down.grant.map_or(old_mcs & 0xff, |grant| grant.mcs.into());
        let mcs_up = up.grant.map_or(old_mcs >> 8, |grant| grant.mcs.into());
        let identity = u64::from(report.cell.cell) << 16 | u64::from(row.rnti) << 32;
        let micros = |span: Span| span.as_micros().min(u32::MAX.into());
        let blocks = |blocks: u64, again: u64| (blocks & 0xffff_ffff) << 32 | again & 0xffff_ffff;
        let change = Change::begin(&record[0]);
        let state = [
            PRESENT | u64::from(row.cqi.get()) << 8 | identity | mcs_down << 48 | mcs_up << 56,
            report.time.as_nanos(),
            row.cqi_time.as_nanos(),
            down.queue.get(),
            up.queue.get(),
            micros(down.head_of_line) << 32 | micros(up.head_of_line),
            down.scheduled_bits,
            up.scheduled_bits,
            down.scheduled_prb_symbols,
            up.scheduled_prb_symbols,
            blocks(down.blocks, down.retransmissions),
            blocks(up.blocks, up.retransmissions),
        ];
        record[1..].iter().zip(state).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        for (direction, link) in [(Direction::Downlink, down), (Direction::Uplink, up)] {
            let Some(grant) = link.grant else { continue };
            let prb_symbols = (u64::from(grant.prbs) * u64::from(grant.symbols)).min(0x3fff);
            let bytes = u64::from(grant.block.bits() / 8).min(0xf_ffff);
            let entry = (GRANTED | bytes << 14 | prb_symbols) << SLOT_BITS | report.slot & SLOT_MASK;
            let slot = layout.slot(layout.user_history(at, direction), report.slot);
            words[slot].store(entry, Ordering::Relaxed);
        }
        change.end();
    }

    /// An event of a user: one in handover keeps its last values, marked as such.
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
            let change = Change::begin(&self.words[at]);
            self.words[at + 1].store(old & !STATE_MASK | state, Ordering::Relaxed);
            change.end();
        }
    }
}

/// Reads a table.
#[derive(Clone, Copy, Debug)]
pub struct SharedTable<'a> {
    words: &'a [AtomicU64],
    layout: Layout,
}

impl<'a> SharedTable<'a> {
    /// Opens the table in these words.
    pub fn open(words: &'a [AtomicU64]) -> Result<Self, SharedTableError> {
        let found = words.first().map_or(0, load);
        if found != MAGIC || words.len() < HEADER_WORDS {
            return Err(SharedTableError::NotATable { found });
        }
        let counts = words[1].load(Ordering::Relaxed);
        let history = u32::try_from(words[2].load(Ordering::Relaxed)).unwrap_or(0);
        let size = Size { cells: (counts >> 32) as u32, users: counts as u32, history };
        Ok(Self { words, layout: Layout::checked(size, words.len())? })
    }

    /// Its capacity.
    pub fn size(&self) -> Size {
        self.layout.size
    }

    /// Number of the writer: another number means that a new writer started, which knows only what it has seen since.
    pub fn generation(&self) -> u64 {
        load(&self.words[3])
    }

    /// When a slot was last written, of any cell.
    pub fn last_slot_at(&self) -> Time {
        Time::from_nanos(load(&self.words[LAST_SLOT]))
    }

    /// A cell; `None` if nothing was reported about it.
    pub fn cell(&self, cell: u16) -> Option<Timestamped<CellRecord>> {
        let words = record::<CELL_WORDS>(self.words, self.layout.cell(cell)?)?;
        copy(&words[0], || CellRecord::load(words))?
    }

    /// The latest values of a user; `None` if nothing was reported about it, or it left.
    pub fn user(&self, user: u32) -> Option<Timestamped<UserRecord>> {
        let words = record::<USER_WORDS>(self.words, self.layout.user(user)?)?;
        copy(&words[0], || UserRecord::load(words))?
    }

    /// The entry of a slot in a history that begins at `from`, if it is still there.
    #[inline]
    fn entry(&self, from: usize, slot: u64) -> Option<u64> {
        let entry = self.words[self.layout.slot(from, slot)].load(Ordering::Relaxed);
        (entry & SLOT_MASK == slot & SLOT_MASK).then_some(entry >> SLOT_BITS)
    }

    /// Whether the words still hold the table that was opened: a writer that ends, or makes a table of another size, takes its mark
    /// away.
    pub fn is_current(&self) -> bool {
        load(&self.words[0]) == MAGIC
    }

    /// The grants of a user in the slots after `after`, oldest first, each with its own block and resources; those older than the
    /// table's history are lost. Returns the cell's last slot, to be passed next time; `None` if the user is not there.
    pub fn grants_after(
        &self,
        user: u32,
        direction: Direction,
        after: Option<u64>,
        tell: &mut dyn FnMut(RadioHint),
    ) -> Option<u64> {
        let at = self.layout.user(user)?;
        let words = record::<USER_WORDS>(self.words, at)?;
        let (from, length) = (self.layout.user_history(at, direction), self.layout.history() as u64);
        let number = (load(&words[1]) >> 16) as u16;
        let cell = self.cell(number)?;
        let (info, last) = (cell.value.info, cell.value.slot);
        let oldest = last.saturating_sub(length - 1);
        let first = after.map_or(oldest, |after| oldest.max(after.saturating_add(1)));
        for slot in first..=last {
            let read = || Some((UserRecord::load(words)?.value, self.entry(from, slot)));
            let Some((record, entry)) = copy(&words[0], read)? else { return Some(last) };
            let Some(entry) = entry.filter(|entry| entry & GRANTED != 0) else { continue };
            let (prb_symbols, bytes) = (entry & 0x3fff, entry >> 14 & 0xf_ffff);
            let granted = prb_symbols as f64 / f64::from(info.data_symbols[direction].max(1));
            let granted = granted.min(info.prbs.into());
            let age = Span::from_nanos(info.slot.as_nanos().saturating_mul(last - slot));
            let measured_at = Time::from_nanos(cell.measured_at.as_nanos().saturating_sub(age.as_nanos()));
            tell(RadioHint {
                tbs_bits: (bytes > 0).then_some(8 * bytes as u32), // at most 2^20 bytes
                granted,
                most_granted: libm::ceil(granted) as u16,
                mcs: record.mcs[direction],
                active_users: cell.value.active_users[direction],
                ..RadioHint::of(info, measured_at)
            });
        }
        Some(last)
    }

    /// The hint about a user: resources as means over the last `ttis` TTIs (clamped to 1 to the table's history), blocks and most
    /// PRBs over these or the last 8, whichever is longer. It is dated to the cell's last slot, although the user may have been
    /// asleep then.
    pub fn hint(&self, user: u32, direction: Direction, ttis: u64) -> Option<RadioHint> {
        /// MELD's N_HARQ.
        const RECENT: u64 = 8;
        let at = self.layout.user(user)?;
        let words = record::<USER_WORDS>(self.words, at)?;
        let number = (load(&words[1]) >> 16) as u16;
        let cell_at = self.layout.cell(number)?;
        let window = ttis.clamp(1, self.layout.size.history.into());
        let recent = window.max(RECENT);
        let load = |from: usize, slot: u64| self.entry(from, slot);
        let slots = |last: u64, count: u64| (0..count).filter_map(move |back| last.checked_sub(back));
        let cell_words = record::<CELL_WORDS>(self.words, cell_at)?;
        let (cell, used, symbols) = copy(&cell_words[0], || {
            let cell = CellRecord::load(cell_words)?;
            let (mut used, mut symbols) = (0_u64, 0_u64);
            for entry in slots(cell.value.slot, window).filter_map(|slot| load(cell_at + CELL_WORDS, slot)) {
                let of = Both { downlink: entry & 0x1fff, uplink: entry >> 13 & 0x1fff };
                used += if cell.value.info.shared { of.downlink + of.uplink } else { of[direction] };
                symbols += Both { downlink: entry >> 26 & 31, uplink: entry >> 31 & 31 }[direction];
            }
            Some((cell, used, symbols))
        })??;
        let history = self.layout.user_history(at, direction);
        let (user, sum, most, block) = copy(&words[0], || {
            let user = UserRecord::load(words)?;
            let (mut sum, mut most, mut block) = (0_u64, 0_u64, 0_u64);
            for (place, slot) in (0..).zip(slots(cell.value.slot, recent)) {
                let Some(entry) = load(history, slot).filter(|entry| entry & GRANTED != 0) else { continue };
                let (prb_symbols, bytes) = (entry & 0x3fff, entry >> 14 & 0xf_ffff);
                sum += if place < window { prb_symbols } else { 0 };
                most = most.max(prb_symbols);
                block = block.max(bytes);
            }
            Some((user.value, sum, most, block))
        })??;
        let (info, prbs) = (cell.value.info, f64::from(cell.value.info.prbs));
        let per_symbol = |prb_symbols: u64| prb_symbols as f64 / symbols.max(1) as f64;
        let most = most as f64 / f64::from(info.data_symbols[direction].max(1));
        let since_cqi = cell.measured_at.checked_since(user.cqi_time).unwrap_or(Span::ZERO);
        Some(RadioHint {
            tbs_bits: (block > 0).then_some(8 * block as u32), // at most 2^20 bytes
            granted: per_symbol(sum).min(prbs),
            most_granted: libm::ceil(most).min(prbs) as u16,
            unused: if symbols == 0 { 0.0 } else { (prbs - per_symbol(used)).max(0.0) },
            active_users: cell.value.active_users[direction],
            cqi: (since_cqi <= info.slot * recent).then_some(user.cqi),
            mcs: user.mcs[direction],
            queue: user.queue[direction],
            handover: user.handover,
            ..RadioHint::of(info, cell.measured_at)
        })
    }
}
