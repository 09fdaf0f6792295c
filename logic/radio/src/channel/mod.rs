//! The radio channel: the signal at a receiver, and its quality.
//!
//! [`RadioPath::look`] combines everything: from the position of a user ([`Mobility`]) and what all users of a carrier share
//! ([`Site`]) it computes the SINR of each group of resource blocks at an instant; [`CqiScale`] and [`effective_sinr`] turn
//! that into a CQI. [`ranpace_phy::BlerCurve`] gives the block error rate at an SINR; the cell models the delay of reports.
//! The parts can be used alone:
//!
//! - path loss: [`PathLoss`] (Friis, log-distance, COST 231 Hata, UMi street canyon), [`Shadowing`], [`Blockage`] by
//!   buildings, the [`STREET`] of the experiments;
//! - fading: [`Fading`] under the profiles of TS 36.104 ([`DelayProfile`]), its [`statistics`], [`Flicker`] of millimetre
//!   waves;
//! - noise: [`Receiver`], with interference as a rise of its noise or as a [`NoiseSource`]; [`Transmitter`];
//! - recordings: [`Recording`] of SINR, CQI, RSRP and gain (also from the logs of a 5G phone), [`RecordedFading`] of each PRB;
//! - mobility: static, on a [`Trajectory`], or on a [`RandomWalk`].
//!
//! Everything is a function of time or of the distance travelled, and of a seed: nothing happens between looks, and a user
//! that is not looked at costs nothing. A look costs about 0.1 us for 25 groups under EVA, fading included; the first one in
//! each [`GRAIN`] of 10 ms costs some 0.1 us more, for the slow parts.
//!
//! Power ratios are called ratios; names of quantities in dB, dBm, Hz, metres or m/s end in the unit. Positions are in metres.
//! Any input gives a finite result: distances are at least one metre, and ratios are clamped at 300 dB.

mod buildings;
mod decibel;
mod fading;
#[cfg(test)]
mod fading_statistics;
mod mobility;
mod noise;
mod path_loss;
mod phone_log;
mod place;
mod profiles;
mod quality;
mod radio_path;
mod random;
mod random_walk;
mod recorded_fading;
mod recording;
mod rings;
mod shadowing;
pub mod statistics;

pub use buildings::{
    Blockage, Building, STREET, STREET_BASE, STREET_IN_SIGHT, STREET_OUT_OF_SIGHT, STREET_WALK,
};
pub use decibel::{from_db, to_db};
pub use fading::{Fading, FadingSpeed, FadingUser, Groups};
pub use mobility::{Mobility, Move, Moved, Trajectory, TrajectoryError};
pub use noise::{NoiseSource, Receiver, Transmitter};
pub use path_loss::{Carrier, NoSuchCarrier, Path, PathLoss, umi_breakpoint_m, umi_clear_probability};
pub use place::{Disc, Motion, Position, Spread};
pub use profiles::{DelayProfile, Tap};
pub use quality::{CqiScale, effective_sinr};
pub use radio_path::{Average, Fast, GRAIN, Look, RadioPath, Sight, Site};
pub use random_walk::{RandomWalk, WalkRule};
pub use recorded_fading::RecordedFading;
pub use recording::{Conditions, Recording, RecordingError};
pub use rings::Rings;
pub use shadowing::{Flicker, Shadowing};
