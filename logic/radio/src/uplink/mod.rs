//! The uplink: how a device obtains grants, the power it sends with, and how users share the band.
//!
//! Source: TS 36.321 clauses 5.4.4 (scheduling requests) and 5.4.5 (buffer status reports) for LTE, the same clauses of
//! TS 38.321 for NR; TS 36.213 clause 5.1.1 for power; "ns-3" marks what was read in ns-3 as the authors of the
//! experiments used it. Times are whole TTIs (slots).
//!
//! - [`Access`], one for each user: a device with new data sends a scheduling request at its next opportunity, the base
//!   station answers with a small grant, and buffer status reports in the following blocks tell it the backlog. A lone
//!   small packet waits for the opportunity and, in LTE, a fixed 8 ms more.
//! - [`Power`], one for each user: the power of a PRB at a path loss, from which the caller gets SINR, CQI and MCS.
//! - [`Shares`], one for each cell: divides the PRBs of one TTI among the users that want to send.
//! - [`pusch_prbs`]: the legal sizes of LTE's uplink allocations.
//! - [`RealTimeFirst`], optional on a device: the priority of its own packets.
//!
//! ```
//! use ranpace_radio::uplink::{Access, AccessConfig};
//!
//! let mut access = Access::new(&AccessConfig::LTE, 0);
//! // 60 bytes wait from slot 3 on; user 0 may ask in slots 0, 10, 20...
//! assert_eq!(access.next_slot(3, 60), 10);
//! assert!(access.on_slot(10, 60), "asks");
//! assert_eq!(access.wanted(13), 0);
//! let bytes = access.wanted(14);
//! access.on_grant(14, bytes);
//! // The block has room for all of it, and for a report that says so.
//! assert!(access.on_pusch(18, 0, true));
//! access.on_block_decoded(18);
//! assert_eq!(access.next_slot(21, 0), u64::MAX);
//! ```

mod access;
mod config;
mod power;
mod prbs;
mod real_time;
mod shares;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use config::{AccessConfig, BSR_BYTES, ReportLevels};
pub use power::{LENA_CAP_DBM, LENA_P0_DBM, Power, PowerControl, THREE_GPP_ALPHA, THREE_GPP_P0_DBM};
pub use prbs::pusch_prbs;
pub use real_time::{Band, MOST_RATE, RealTimeFirst, SHARE, UplinkPacket, is_real_time_mark};
pub use shares::{Share, Shares};
