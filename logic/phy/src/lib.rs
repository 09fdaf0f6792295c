//! 3GPP's tables and types: the rate of a given grant.
//!
//! All tables are exact, and arithmetic on them uses integers. Types cannot hold values outside the standards:
//! a [`Cqi`] is 0 to 15, an [`LteMcs`] 0 to 28, an [`NrMcs`] an entry of a table.
//!
//! - LTE: [`LteGrant`] (TS 36.213), [`LteBandwidth`]; what is left to the implementation: [`CqiThresholds`], [`McsRule`];
//! - NR: [`NrGrant`] (TS 38.214 clause 5.1.3.2), [`Numerology`], [`nr_prbs`], [`TddPattern`];
//! - both: [`Frame`], [`TransportBlock`], [`BlerCurve`], [`initial_rate()`];
//! - the frame of published experiments on millimetre waves: [`Frame::MMWAVE`], [`MmwaveGrant`].
//!
//! ```
//! use ranpace_phy::{Direction, LteBandwidth, LteGrant, LteMcs};
//! use ranpace_units::Rate;
//!
//! let prbs = LteBandwidth::Mhz20.prbs();
//! let grant = LteGrant { direction: Direction::Downlink, mcs: LteMcs::MAX, prbs };
//! assert_eq!(grant.transport_block().bits(), 75_376);
//! assert_eq!(grant.rate(), "75.376Mbit/s".parse::<Rate>().unwrap());
//! ```
//!
//! # Where the figures come from
//!
//! The tables were typed or generated from CSV files, which agree with independent open implementations. A test compares
//! them entry by entry if those files are in `shared/data/3gpp` beside the checkout, and reports if they are
//! not. Each file has a comment line, a header line, and then rows; `tests/standards.rs` has the file names.
//!
//! # More than one codeword
//!
//! A grant is one codeword. Two codewords, as in LTE with two independent layers or in NR with more than four, are two
//! grants on the same PRBs, and their rates add.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod adaptation;
mod bler;
mod both;
mod bounded;
mod coding;
mod control_errors;
mod frame;
mod initial_rate;
mod lte;
mod lte_control;
mod lte_tbs;
mod mmwave;
mod nr;
mod nr_bandwidth;
mod ns3_bler;
mod ns3_cqi;
mod tdd;
mod transport_block;

pub use adaptation::{CqiThresholds, McsRule, awgn_cqi, awgn_threshold_db, lena_uplink_cqi};
pub use bler::{BlerCurve, ns3_measured_sinr_db};
pub use both::Both;
pub use bounded::{Cqi, Itbs, Layers, LteMcs, LtePrbs, OutOfRange, Prbs, Symbols};
pub use coding::{CodeRate, Efficiency, Modulation, QamTable};
pub use control_errors::lte_control_error_rate;
pub use frame::{Frame, Numerology, PatternDoesNotFit};
pub use initial_rate::initial_rate;
pub use lte::{Direction, LTE_TTI, LteBandwidth, LteGrant, NoSuchLteBandwidth};
pub use lte_control::{LTE_REFERENCE_ELEMENTS, LteControl, LteSubframe, lte_is_decodable};
pub use mmwave::MmwaveGrant;
pub use nr::{NR_SMALL_BLOCKS, NoSuchNrMcs, NrGrant, NrMcs};
pub use nr_bandwidth::{FrequencyRange, NoSuchNrBandwidth, nr_prbs};
pub use tdd::{SlotKind, SpecialSlot, TddError, TddPattern};
pub use transport_block::{NotWholeBytes, TransportBlock};
