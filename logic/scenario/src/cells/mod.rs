//! Cells by name: Ranpace's own, and those of the published experiments.
//!
//! A preset consists of the radio side, which [`Preset::config`] and [`Preset::user`] return as values, and the surroundings for
//! `compare --cell`: wired links, users, settings of TCP and other traffic. A scenario selects it by `preset = "..."` and may
//! change any value. Each value cites its source: "004" and the like are the documents that Ranpace
//! implements, "scripts" their authors' public simulation scripts, "ns-3" ns-3's default behaviour, and "ours" marks
//! values without a source.

mod diarra;
mod kramer;
mod openair;
mod ours;
mod zhong;

use ranpace_link::{Limit, QueueConfig};
use ranpace_phy::Both;
use ranpace_radio::cell::{CellConfig, UserConfig};
use ranpace_radio::rlc::{BearerConfig, Config, Format, Timers};
use ranpace_units::{Bytes, Span};

/// A cell with a name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// As written in a scenario.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// Source of its values.
    pub source: &'static str,
    config: fn() -> CellConfig,
    user: fn() -> UserConfig,
    /// Surroundings of the cell when algorithms are compared in it.
    pub around: ComparisonSetup,
}

/// Surroundings of a cell when algorithms are compared in it.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonSetup {
    /// Wired links from the server to the base station, in order; each duplex.
    pub wired: &'static [Wired],
    /// Number of users with compared flows.
    pub users: u32,
    /// Whether they send (upload) or receive.
    pub is_upload: bool,
    /// Settings of the compared flows, as lines of `[[flow]]`.
    pub flow: &'static str,
    /// Background traffic: more users and flows, as text of a scenario.
    pub more: &'static str,
}

/// A wired link.
#[derive(Clone, Copy, Debug)]
pub struct Wired {
    /// Name of the host at its end; "mast" for the base station.
    pub to: &'static str,
    /// Rate, as written in a scenario.
    pub rate: &'static str,
    /// One-way delay.
    pub delay: Span,
    /// Bytes that a tunnel adds to each packet.
    pub overhead: Bytes,
}

/// Name of the base station's host.
pub const BASE: &str = "mast";

/// Header of GTP-U tunnels: IPv4, UDP and GTP-U's shortest header; RFC 791, RFC 768, TS 29.281 clause 5.1. Up to 8 B more with extensions.
pub const GTP: Bytes = Bytes::new(36);

/// All presets, in the order in which they are listed. `lte` and `nr` are Ranpace's own.
pub const PRESETS: [Preset; 10] = [
    ours::LTE,
    ours::NR,
    zhong::CHAPTER_5,
    zhong::CHAPTER_6,
    kramer::LTE,
    openair::MELD,
    openair::RAPID,
    diarra::UPLINK,
    diarra::IN_SIGHT,
    diarra::OUT_OF_SIGHT,
];

/// The preset with this name.
pub fn by_name(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Defaults of a cell and its users for a radio (`lte`, `nr`, `mmwave`) without a preset.
pub(crate) fn of_radio(radio: &str) -> (CellConfig, UserConfig) {
    let preset = match radio {
        "nr" => &ours::NR,
        "mmwave" => &diarra::UPLINK,
        _ => &ours::LTE,
    };
    (preset.config(), preset.user())
}

impl Preset {
    /// The cell.
    pub fn config(&self) -> CellConfig {
        (self.config)()
    }
    /// A user of the cell with all defaults.
    pub fn user(&self) -> UserConfig {
        (self.user)()
    }
}

/// The same value for both directions.
const fn both<T: Copy>(value: T) -> Both<T> {
    Both { downlink: value, uplink: value }
}

/// A bearer in acknowledged mode with drop-tail buffers of these sizes in bytes.
fn am(downlink: u64, uplink: u64, timers: Timers, format: Format) -> BearerConfig {
    let channel = |buffer| Config { timers, format, ..Config::am(Bytes::new(buffer)) };
    BearerConfig { downlink: channel(downlink), uplink: channel(uplink) }
}

/// CoDel in place of drop-tail, with the same limit.
fn codel(target: Span, bytes: u64) -> QueueConfig {
    match QueueConfig::codel(Limit::Bytes(Bytes::new(bytes))) {
        QueueConfig::CoDel { limit, interval, ecn, ce_threshold, .. } => {
            QueueConfig::CoDel { limit, target, interval, ecn, ce_threshold }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_played_and_is_found_by_its_name() {
        for preset in &PRESETS {
            assert_eq!(preset.config().check(preset.around.users as usize), Ok(()), "{}", preset.name);
            assert!(!preset.user().bearers.is_empty(), "{}", preset.name);
            assert_eq!(by_name(preset.name).map(|found| found.about), Some(preset.about));
            assert_eq!(preset.around.wired.last().map(|wired| wired.to), Some(BASE), "{}", preset.name);
        }
        assert!(by_name("lt").is_none());
    }
}
