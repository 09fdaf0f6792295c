//! Records of the table, and their layout in words.

use core::sync::atomic::{AtomicU64, Ordering};

use ranpace_phy::{Both, Direction};
use ranpace_units::{Bytes, Span, Time};

use super::{CELL_WORDS, USER_WORDS};
use crate::{CellInfo, Technology, Timestamped};

/// The state of a user, in the lowest eight bits of its second word.
pub(super) const STATE_MASK: u64 = 0xff;
pub(super) const NOBODY: u64 = 0;
pub(super) const PRESENT: u64 = 1;
pub(super) const ON_ITS_WAY: u64 = 2;
pub(super) const GONE: u64 = 3;
/// Flag: there was a grant.
pub(super) const GRANTED: u64 = 1 << 34;

/// Description and counters of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellRecord {
    /// The description of the cell.
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

/// The latest values of a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserRecord {
    /// Number of its cell.
    pub cell: u16,
    /// C-RNTI.
    pub rnti: u16,
    /// It is in handover; the other values are from before.
    pub handover: bool,
    /// Wideband CQI.
    pub cqi: u8,
    /// When that was measured.
    pub cqi_time: Time,
    /// MCS of the last grants.
    pub mcs: Both<u8>,
    /// Bytes queued over all bearers; in the uplink as known to the base station.
    pub queue: Both<Bytes>,
    /// The longest head-of-line delay of a bearer, in whole microseconds.
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

/// Changes of a user between two records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// Duration.
    pub time: Span,
    /// Bits of new data per second.
    pub bit_s: f64,
    /// PRBs times symbols per second.
    pub prb_symbols_s: f64,
    /// Share of transmitted blocks that were retransmissions.
    pub again: f64,
}

impl CellRecord {
    /// From its words.
    #[inline]
    pub(super) fn load(words: &[AtomicU64; CELL_WORDS]) -> Option<Timestamped<Self>> {
        let words: [u64; CELL_WORDS] = core::array::from_fn(|place| words[place].load(Ordering::Relaxed));
        let info = decode(&core::array::from_fn(|place| words[1 + place]))?;
        let pair = |at: usize| Both { downlink: words[at], uplink: words[at + 1] };
        let record = Self {
            info,
            slot: words[11],
            active_users: Both { downlink: (words[12] >> 16) as u16, uplink: words[12] as u16 },
            used_prb_symbols: pair(13),
            symbols: pair(15),
        };
        Some(Timestamped::new(record, Time::from_nanos(words[10])))
    }
}

impl UserRecord {
    /// From its words.
    #[inline]
    pub(super) fn load(words: &[AtomicU64; USER_WORDS]) -> Option<Timestamped<Self>> {
        let words: [u64; 13] = core::array::from_fn(|place| words[place].load(Ordering::Relaxed));
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
        Some(Timestamped::new(record, Time::from_nanos(words[2])))
    }

    /// Changes in one direction since an earlier record; `None` if the user was re-created or no time passed.
    pub fn since(
        now: &Timestamped<Self>,
        before: &Timestamped<Self>,
        direction: Direction,
    ) -> Option<Elapsed> {
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

/// Encodes the description of a cell in nine words, which are never all zero.
pub(crate) fn encode(info: &CellInfo) -> [u64; 9] {
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

/// `None` if there is no description, or of a technology unknown to this version.
pub(crate) fn decode(words: &[u64; 9]) -> Option<CellInfo> {
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
