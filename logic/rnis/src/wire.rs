//! The compact wire format of the feed: a datagram with the changes in a cell, and with all of its users every [`FULL_EVERY`].
//!
//! Ours; for comparison, Diarra 2022 has 250 bytes per user and report for FlexRAN (4.2.4) and 170 as text (5.3.4). A datagram
//! consists of a header of [`HEADER_BYTES`] and [`RECORD_BYTES`] for each user whose record changed. All numbers are little endian.
//!
//! Header:
//!
//! | byte | content |
//! |---|---|
//! | 0 | [`MAGIC`] |
//! | 1 | version in the upper four bits, flags in the lower: 1 full, 2 averaged, 4 sender's first, 8 report continues in the next |
//! | 2 | number of the cell |
//! | 4 | slot, modulo 2^24 |
//! | 7 | records that follow |
//! | 8 | time of the measurement, in ns |
//! | 16 | resources used downlink, and uplink: 12 bits each, low bits first; in the unit of the records |
//! | 19 | active users downlink, and uplink: 12 bits each; saturates at 4095 |
//! | 22 | sequence: datagrams of this cell so far, modulo 2^16 |
//!
//! Record:
//!
//! | byte | content |
//! |---|---|
//! | 0 | number of the user |
//! | 2 | CQI in the lower four bits, flags in the upper: 1 handover in progress, 2 there was a block, 4 the user left |
//! | 3, 4 | MCS downlink, uplink |
//! | 5, 7 | resources granted downlink, uplink: PRBs, or symbols where symbols are allocated; tenths if averaged |
//! | 9 | largest block downlink, in bits (24 bits) |
//! | 12 | queue downlink, in units of 16 bytes (24 bits), rounded up |
//! | 15 | share of retransmissions among downlink blocks, in 1/255 |
//! | 16 | reserved: zero, ignored by readers |
//!
//! Version 2 is the same with records of [`SHORT_RECORD_BYTES`], which the feed between hosts uses: in place of the reserved bytes
//! they have at byte 16 the most resources granted in one TTI, in whole PRBs. Block, queue, retransmissions and most resources of
//! version 2 are those of the subscription's direction.
//!
//! A lost datagram shows as a gap in the sequence: the users' values then keep their age until a record or a full report confirms
//! them. See [`Decoder`].

use std::collections::BTreeMap;

use ranpace_phy::Both;
use ranpace_units::{Bytes, Span, Time};

use crate::Timestamped;

#[cfg(test)]
mod tests;

/// "R".
pub const MAGIC: u8 = 0x52;
/// The version written here; others are refused.
pub const VERSION: u8 = 1;
/// Header of each datagram.
pub const HEADER_BYTES: usize = 24;
/// The version with short records.
pub const SHORT_VERSION: u8 = 2;
/// Record of each user in it.
pub const RECORD_BYTES: usize = 20;
/// The same in version 2.
pub const SHORT_RECORD_BYTES: usize = 18;
/// Headers of UDP and IPv4.
pub const UDP_IP_BYTES: usize = 28;
/// Largest datagram that Ethernet carries in one frame.
pub const MOST_BYTES: usize = 1500 - UDP_IP_BYTES;
/// Interval between two full reports.
pub const FULL_EVERY: Span = Span::from_millis(100);
/// Most cells that a [`Decoder`] keeps; one edge host never has more.
pub const MOST_CELLS: usize = 256;

const FULL: u8 = 1;
const AVERAGED: u8 = 2;
const FIRST: u8 = 4;
const MORE: u8 = 8;
const MOST_U12: u16 = 0xfff;
const MOST_U24: u32 = 0xff_ffff;

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// It is shorter than a header.
    #[error("expected a header of {HEADER_BYTES} bytes, found {found}")]
    Short {
        /// Bytes received.
        found: usize,
    },
    /// It is not one of our datagrams.
    #[error("expected a datagram that begins with {MAGIC:#04x}, found {found:#04x}")]
    NotOurs {
        /// The first byte.
        found: u8,
    },
    /// It is of another version.
    #[error("expected version {VERSION} or {SHORT_VERSION}, found {found}")]
    Version {
        /// Its version.
        found: u8,
    },
    /// Its length does not match its number of records.
    #[error("expected {expected} bytes for {records} records, found {found}")]
    Length {
        /// Records according to the header.
        records: u8,
        /// Bytes that these take.
        expected: usize,
        /// Bytes received.
        found: usize,
    },
}

/// The cell part of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellReport {
    /// Number of the cell.
    pub cell: u16,
    /// Number of the slot; its lowest 24 bits are sent.
    pub slot: u64,
    /// Time of the slot.
    pub time: Time,
    /// Resources used, in the unit of [`Record::granted`]; at most 4095 is sent.
    pub used: Both<u16>,
    /// Active users; at most 4095 is sent.
    pub active_users: Both<u16>,
    /// Resources are in tenths, as means over several slots.
    pub averaged: bool,
}

/// The user part of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Number of the user.
    pub user: u16,
    /// CQI, 0 to 15.
    pub cqi: u8,
    /// A handover is in progress.
    pub handover: bool,
    /// MCS of the last grants.
    pub mcs: Both<u8>,
    /// PRBs, or symbols in a cell that allocates symbols; tenths if averaged.
    pub granted: Both<u16>,
    /// Largest block downlink in bits, at most 2^24 - 1; `None` if there was none.
    pub tbs_bits: Option<u32>,
    /// Downlink queue; encoded in steps of 16 bytes, rounded up, at most 268 MB.
    pub queue: Bytes,
    /// Downlink retransmissions, in 1/255 of all blocks sent.
    pub again: u8,
    /// Most PRBs granted in one TTI. Only version 2 carries it; read from version 1 it is 0.
    pub most_granted: u16,
}

impl Record {
    /// The record after encoding and decoding in version 1.
    pub fn rounded(self) -> Self {
        Self { most_granted: 0, ..self.rounded_short() }
    }

    /// The same in version 2.
    pub fn rounded_short(self) -> Self {
        Self::read(&self.written(false)).0
    }

    fn written(&self, left: bool) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        let [user0, user1] = self.user.to_le_bytes();
        let flags = u8::from(self.handover) | u8::from(self.tbs_bits.is_some()) << 1 | u8::from(left) << 2;
        out[..5].copy_from_slice(&[
            user0,
            user1,
            self.cqi & 15 | flags << 4,
            self.mcs.downlink,
            self.mcs.uplink,
        ]);
        out[5..7].copy_from_slice(&self.granted.downlink.to_le_bytes());
        out[7..9].copy_from_slice(&self.granted.uplink.to_le_bytes());
        let tbs = self.tbs_bits.unwrap_or(0).min(MOST_U24);
        out[9..12].copy_from_slice(&tbs.to_le_bytes()[..3]);
        let queue = self.queue.get().div_ceil(16).min(MOST_U24.into()) as u32;
        out[12..15].copy_from_slice(&queue.to_le_bytes()[..3]);
        out[15] = self.again;
        out[16..18].copy_from_slice(&self.most_granted.to_le_bytes());
        out
    }

    /// The record, and whether the user left.
    fn read(bytes: &[u8; RECORD_BYTES]) -> (Self, bool) {
        let two = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let three = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0]);
        let flags = bytes[2] >> 4;
        let record = Self {
            user: two(0),
            cqi: bytes[2] & 15,
            handover: flags & 1 != 0,
            mcs: Both { downlink: bytes[3], uplink: bytes[4] },
            granted: Both { downlink: two(5), uplink: two(7) },
            tbs_bits: (flags & 2 != 0).then_some(three(9)),
            queue: Bytes::new(16 * u64::from(three(12))),
            again: bytes[15],
            most_granted: two(16),
        };
        (record, flags & 4 != 0)
    }
}

/// A validated datagram: its lengths are consistent, and all of its content is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The cell's part. Its slot has only the bits that were sent.
    pub report: CellReport,
    /// All users of the cell are in this report.
    pub full: bool,
    /// The sender has restarted: its earlier values are void.
    pub first: bool,
    /// The report continues in the next datagram.
    pub more: bool,
    /// Sequence number.
    pub sequence: u16,
    records: &'a [u8],
    record_bytes: usize,
}

impl<'a> Datagram<'a> {
    /// Validates a datagram.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let found = bytes.len();
        let Some((header, records)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(WireError::Short { found });
        };
        if header[0] != MAGIC {
            return Err(WireError::NotOurs { found: header[0] });
        }
        let record_bytes = match header[1] >> 4 {
            VERSION => RECORD_BYTES,
            SHORT_VERSION => SHORT_RECORD_BYTES,
            found => return Err(WireError::Version { found }),
        };
        let count = header[7];
        let expected = HEADER_BYTES + usize::from(count) * record_bytes;
        if expected != found {
            return Err(WireError::Length { records: count, expected, found });
        }
        let flag = |flag: u8| header[1] & flag != 0;
        let two = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let twelve = |at: usize| Both {
            downlink: two(at) & MOST_U12,
            uplink: u16::from(header[at + 1] >> 4) | u16::from(header[at + 2]) << 4,
        };
        let time = core::array::from_fn(|at| header[8 + at]);
        let report = CellReport {
            cell: two(2),
            slot: u32::from_le_bytes([header[4], header[5], header[6], 0]).into(),
            time: Time::from_nanos(u64::from_le_bytes(time)),
            used: twelve(16),
            active_users: twelve(19),
            averaged: flag(AVERAGED),
        };
        let (full, first, more) = (flag(FULL), flag(FIRST), flag(MORE));
        Ok(Self { report, full, first, more, sequence: two(22), records, record_bytes })
    }

    /// Its records, each with whether the user left.
    pub fn records(&self) -> impl ExactSizeIterator<Item = (Record, bool)> + use<'a> {
        let record_bytes = self.record_bytes;
        self.records.chunks_exact(record_bytes).map(move |record| {
            let mut bytes = [0; RECORD_BYTES];
            bytes[..record_bytes].copy_from_slice(record);
            let (record, left) = Record::read(&bytes);
            // Version 1 has these bytes reserved.
            let most_granted = if record_bytes == RECORD_BYTES { 0 } else { record.most_granted };
            (Record { most_granted, ..record }, left)
        })
    }
}

/// Writes the datagrams of a cell.
#[derive(Clone, Debug)]
pub struct Encoder {
    /// Only what changed, between full reports.
    delta: bool,
    record_bytes: usize,
    most_records: usize,
    sequence: u16,
    is_first: bool,
    next_full: Time,
    reports: u64,
    /// By user: the record sent last, and the report in which the user was seen last.
    sent: Vec<Option<(Record, u64)>>,
    buffer: Vec<u8>,
}

impl Encoder {
    /// An encoder for a cell; with `delta`, only changes are sent between two full reports.
    pub fn new(delta: bool) -> Self {
        Self {
            delta,
            record_bytes: RECORD_BYTES,
            most_records: (MOST_BYTES - HEADER_BYTES) / RECORD_BYTES,
            sequence: 0,
            is_first: true,
            next_full: Time::ZERO,
            reports: 0,
            sent: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// An encoder of version 2.
    pub fn short(delta: bool) -> Self {
        Self { record_bytes: SHORT_RECORD_BYTES, ..Self::new(delta) }.with_datagrams_of(MOST_BYTES)
    }

    /// Limits datagrams to this many bytes, without UDP and IP headers, but to no less than one record.
    #[must_use]
    pub fn with_datagrams_of(mut self, bytes: usize) -> Self {
        // The count is one byte.
        self.most_records = (bytes.saturating_sub(HEADER_BYTES) / self.record_bytes).clamp(1, 255);
        self
    }

    /// Makes the next report a full one, for a reader that joins.
    pub fn request_full(&mut self) {
        self.next_full = Time::ZERO;
    }

    /// Encodes a report with all users of the cell, and passes its datagrams to `send`: at least one, so that the reader knows that
    /// nothing else has changed. Returns the number of records in them.
    pub fn encode(&mut self, report: &CellReport, users: &[Record], send: &mut dyn FnMut(&[u8])) -> usize {
        self.reports += 1;
        let full = !self.delta || report.time >= self.next_full;
        if full {
            self.next_full = report.time + FULL_EVERY;
        }
        let mut records = 0;
        self.begin();
        for record in users {
            let record =
                if self.record_bytes == RECORD_BYTES { record.rounded() } else { record.rounded_short() };
            let index = usize::from(record.user);
            if self.sent.len() <= index {
                self.sent.resize(index + 1, None);
            }
            let is_known = self.sent[index].is_some_and(|(known, _)| known == record);
            self.sent[index] = Some((record, self.reports));
            if full || !is_known {
                self.append(&record.written(false), (report, full), send);
                records += 1;
            }
        }
        for index in 0..self.sent.len() {
            let Some((record, seen)) = self.sent[index] else { continue };
            if seen != self.reports {
                self.sent[index] = None;
                self.append(&record.written(true), (report, full), send);
                records += 1;
            }
        }
        self.finish(report, full, false, send);
        self.is_first = false;
        records
    }

    fn begin(&mut self) {
        self.buffer.clear();
        self.buffer.resize(HEADER_BYTES, 0);
    }

    fn append(
        &mut self,
        record: &[u8; RECORD_BYTES],
        (report, full): (&CellReport, bool),
        send: &mut dyn FnMut(&[u8]),
    ) {
        if self.buffer.len() >= HEADER_BYTES + self.most_records * self.record_bytes {
            self.finish(report, full, true, send);
            self.begin();
        }
        self.buffer.extend_from_slice(&record[..self.record_bytes]);
    }

    fn finish(&mut self, report: &CellReport, full: bool, more: bool, send: &mut dyn FnMut(&[u8])) {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = flag(full, FULL)
            | flag(report.averaged, AVERAGED)
            | flag(self.is_first, FIRST)
            | flag(more, MORE);
        let count = (self.buffer.len() - HEADER_BYTES) / self.record_bytes;
        let header = &mut self.buffer[..HEADER_BYTES];
        header[0] = MAGIC;
        header[1] = if self.record_bytes == RECORD_BYTES { VERSION } else { SHORT_VERSION } << 4 | flags;
        header[2..4].copy_from_slice(&report.cell.to_le_bytes());
        header[4..7].copy_from_slice(&report.slot.to_le_bytes()[..3]);
        header[7] = count as u8; // at most 255: see `with_datagrams_of`
        header[8..16].copy_from_slice(&report.time.as_nanos().to_le_bytes());
        let twelve = |both: Both<u16>| {
            let [down, up] = [both.downlink, both.uplink].map(|value| u32::from(value.min(MOST_U12)));
            (down | up << 12).to_le_bytes()
        };
        header[16..19].copy_from_slice(&twelve(report.used)[..3]);
        header[19..22].copy_from_slice(&twelve(report.active_users)[..3]);
        header[22..24].copy_from_slice(&self.sequence.to_le_bytes());
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.buffer);
    }
}

/// Assembles datagrams: the latest record of each user, and its age.
///
/// A user missing from a delta has not changed, so that a record is as fresh as the last datagram of its cell, unless one was
/// missed. After a gap each record keeps the time of the last datagram before it until it is confirmed. A restarted sender voids
/// all records of its cell. Reordered datagrams are dropped. A full report that is newer than all before it is accepted whatever its
/// number, so that a reader can be moved from one encoder to another.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    cells: BTreeMap<u16, CellView>,
}

#[derive(Clone, Debug)]
struct CellView {
    report: CellReport,
    sequence: u16,
    /// Incremented by each gap.
    era: u64,
    users: BTreeMap<u16, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    record: Record,
    era: u64,
    /// Time up to which the record is known to be valid, once its era is over.
    until: Time,
}

impl Decoder {
    /// An empty decoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts a datagram. `Ok(false)` if it was useless: reordered, or of a cell beyond the limit.
    pub fn on_datagram(&mut self, bytes: &[u8]) -> Result<bool, WireError> {
        let datagram = Datagram::parse(bytes)?;
        let report = datagram.report;
        let is_known = self.cells.contains_key(&report.cell);
        if !is_known && self.cells.len() >= MOST_CELLS {
            return Ok(false);
        }
        let view = self.cells.entry(report.cell).or_insert_with(|| CellView {
            report,
            sequence: datagram.sequence.wrapping_sub(1),
            era: 0,
            users: BTreeMap::new(),
        });
        let step = datagram.sequence.wrapping_sub(view.sequence);
        // A newer full report is useful whatever its number: that of another encoder's, to which the sender has moved the reader.
        let is_behind = step == 0 || step > u16::MAX / 2;
        let is_useless = is_behind && !(datagram.full && report.time > view.report.time);
        if datagram.first && (datagram.sequence == 0 || report.time < view.report.time) {
            // All datagrams of the first report have the flag; the first of them voids the records, or one with another clock.
            view.users.clear();
        } else if is_useless || report.time < view.report.time {
            return Ok(false);
        } else if step != 1 {
            // Changes in the gap are unknown.
            let (era, until) = (view.era, view.report.time);
            view.users.values_mut().filter(|user| user.era == era).for_each(|user| user.until = until);
            view.era += 1;
        }
        (view.report, view.sequence) = (report, datagram.sequence);
        for (record, left) in datagram.records() {
            if left {
                view.users.remove(&record.user);
            } else {
                view.users.insert(record.user, Known { record, era: view.era, until: report.time });
            }
        }
        if datagram.full && !datagram.more {
            // Users missing from a full report are gone.
            let oldest = report.time;
            view.users.retain(|_, user| user.era == view.era || oldest <= user.until + FULL_EVERY * 2);
        }
        Ok(true)
    }

    /// The last report of a cell.
    pub fn cell(&self, cell: u16) -> Option<Timestamped<CellReport>> {
        self.cells.get(&cell).map(|view| Timestamped::new(view.report, view.report.time))
    }

    /// The latest record of a user in a cell.
    pub fn user(&self, cell: u16, user: u16) -> Option<Timestamped<Record>> {
        let view = self.cells.get(&cell)?;
        let known = view.users.get(&user)?;
        let at = if known.era == view.era { view.report.time } else { known.until };
        Some(Timestamped::new(known.record, at))
    }

    /// Known users of a cell, in ascending order.
    pub fn users(&self, cell: u16) -> impl Iterator<Item = u16> {
        self.cells.get(&cell).into_iter().flat_map(|view| view.users.keys().copied())
    }
}
