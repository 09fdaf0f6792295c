//! The channel.

mod buildings;
mod decibel;
mod fading;
#[cfg(test)]
mod fading_statistics;
mod noise;
mod path_loss;
mod place;
mod profiles;
mod random;
mod rings;
mod shadowing;

pub use buildings::{
    Blockage, Building, STREET, STREET_BASE, STREET_IN_SIGHT, STREET_OUT_OF_SIGHT, STREET_WALK,
};
pub use decibel::{from_db, to_db};
pub use fading::{Fading, FadingSpeed, FadingUser, Groups};
pub use noise::{NoiseSource, Receiver, Transmitter};
pub use path_loss::{Carrier, NoSuchCarrier, Path, PathLoss, umi_breakpoint_m, umi_clear_probability};
pub use place::{Disc, Position};
pub use profiles::{DelayProfile, Tap};
pub use rings::Rings;
pub use shadowing::{Flicker, Shadowing};
