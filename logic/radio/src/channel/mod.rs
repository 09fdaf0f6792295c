//! The channel: what reaches a receiver, and how well it could be used.
//!
//! [`RadioPath::look`] is the whole of it: from where a user is ([`Mobility`]) and what all users of a carrier share
//! ([`Site`]) to the SINR of each group of resource blocks at an instant; [`CqiScale`] and [`effective_sinr`] go from there
//! to a CQI. The error rate of a block at its SINR is [`ranpace_phy::BlerCurve`]'s, and the delay of reports is the cell's.
//! The parts stand alone too:
//!
//! - path loss: [`PathLoss`] (Friis, log-distance, COST 231 Hata, UMi street canyon), [`Shadowing`], [`Blockage`] by
//!   buildings, the [`STREET`] of the experiments;
//! - fading: [`Fading`] under the profiles of TS 36.104 ([`DelayProfile`]), its [`statistics`], [`Flicker`] of millimetre
//!   waves;
//! - noise: [`Receiver`], with interference as a rise of its noise or as a [`NoiseSource`]; [`Transmitter`];
//! - recorded: [`Recording`] of SINR, CQI, RSRP and gain (also from the logs of a 5G phone), [`RecordedFading`] of each PRB;
//! - mobility: standing, on a [`Trajectory`], or on a [`RandomWalk`].
//!
//! Everything is a function of time, or of the way gone, and of a seed: nothing happens between looks, and whoever is not
//! looked at costs nothing. A look costs about 0.1 us for 25 groups under EVA, fading included; in each
//! [`GRAIN`] of 10 ms the first costs some 0.1 us more, for what is slow.
//!
//! Ratios of powers are called so; what is in dB, dBm, Hz, metres or m/s has it in its name. Positions are in metres. Any
//! input gives a number, if an absurd one: distances count from one metre on, and ratios end at 300 dB.

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
pub use mobility::{Mobility, Trajectory, TrajectoryError};
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
