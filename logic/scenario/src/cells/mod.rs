//! Cells by name: Ranpace's own, and those of the published experiments.
//!
//! A preset is the radio side, which [`Preset::config`] and [`Preset::user`] give as values, and what stands around it in
//! `compare --cell`: wired links, users, settings of TCP and other traffic. A scenario names it by `preset = "..."` and
//! changes what it likes. Each value cites where it comes from: "004" and its like are the documents that Ranpace
//! implements, "scripts" their authors' public simulation scripts, "ns-3" what ns-3 does unless told otherwise, and "ours"
//! what no source says.

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
    /// As a scenario writes it.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Where its values come from.
    pub source: &'static str,
    config: fn() -> CellConfig,
    user: fn() -> UserConfig,
    /// What stands around the cell when algorithms are compared in it.
    pub around: ComparisonSetup,
}

/// What stands around a cell when algorithms are compared in it.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonSetup {
    /// Wired links from the server to the base station, in order; each duplex.
    pub wired: &'static [Wired],
    /// How many users carry the flows that are compared.
    pub users: u32,
    /// Whether they send (upload) or receive.
    pub is_upload: bool,
    /// Settings of the flows that are compared, as lines of `[[flow]]`.
    pub flow: &'static str,
    /// More users and flows, as text of a scenario: background traffic.
    pub more: &'static str,
}

/// A wired link.
#[derive(Clone, Copy, Debug)]
pub struct Wired {
    /// Name of the host at its end; "mast" for the base station.
    pub to: &'static str,
    /// Rate, as a scenario writes it.
    pub rate: &'static str,
    /// One-way delay.
    pub delay: Span,
    /// What a tunnel adds to each packet.
    pub overhead: Bytes,
}

/// Name of the base station's host.
pub const BASE: &str = "mast";

/// GTP-U: IPv4, UDP and GTP-U's shortest header; RFC 791, RFC 768, TS 29.281 clause 5.1. Up to 8 B more with extensions.
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

/// The preset of this name.
pub fn by_name(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// What a cell and its users are that name a radio (`lte`, `nr`, `mmwave`) and no preset.
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
    /// A user of the cell that says nothing of itself.
    pub fn user(&self) -> UserConfig {
        (self.user)()
    }
}

/// The same for both directions.
const fn both<T: Copy>(value: T) -> Both<T> {
    Both { downlink: value, uplink: value }
}

/// A bearer with acknowledged mode and drop-tail buffers of so many bytes down and up.
fn am(downlink: u64, uplink: u64, timers: Timers, format: Format) -> BearerConfig {
    let channel = |buffer| Config { timers, format, ..Config::am(Bytes::new(buffer)) };
    BearerConfig { downlink: channel(downlink), uplink: channel(uplink) }
}

/// CoDel in place of drop-tail, with the same limit.
fn codel(target: Span, bytes: u64) -> QueueConfig {
    match QueueConfig::codel(Limit::Bytes(Bytes::new(bytes))) {
        QueueConfig::CoDel { limit, interval, ecn, .. } => {
            QueueConfig::CoDel { limit, target, interval, ecn }
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
