//! `[[cell]]` and `[[user]]`: cells and their users.

mod adaptation;
mod air;
mod bearer;
mod channel;
pub(crate) mod keys;
mod uplink;
pub(crate) mod user;

use ranpace_radio::cell::{Air, CellConfig, UserConfig};
use ranpace_radio::channel::Position;
use ranpace_units::Span;

use crate::cells;
use crate::key::{Group, Kind as _};
use crate::link::Traces;
use crate::model::CellSpec;
use crate::network::Network;
use crate::reader::{Field, Section};

pub(crate) use self::bearer::MOST_BEARERS;

/// Most cells in a scenario. Ours.
const MOST_CELLS: usize = 1_000;

/// The keys of `[[cell]]`.
pub(crate) const CELL_GROUPS: &[Group] =
    &[keys::CELL, keys::AIR, keys::CHANNEL, keys::ADAPTATION, keys::UPLINK, keys::BEARER];
/// The keys of `[[user]]`.
pub(crate) const USER_GROUPS: &[Group] = &[user::KEYS, keys::BEARER];

/// Defaults of a cell's users.
struct Defaults {
    user: UserConfig,
    /// Height in metres of a user whose position has none.
    height_m: f64,
    /// Position of the base station.
    base: Position,
}

/// Reads all `[[cell]]`, then all `[[user]]`.
pub(crate) fn read(root: &mut Section<'_>, network: &mut Network, files: &mut Traces<'_>) {
    let cells = root.field("cell");
    let users = root.field("user");
    let (mut defaults, mut places) = (Vec::new(), Vec::new());
    if let Some(field) = cells {
        let sections = field.tables();
        network.incomplete |= sections.is_empty() && !field.is_empty_list();
        for (index, section) in sections.into_iter().enumerate() {
            if index >= MOST_CELLS {
                section.error(format!("more than {MOST_CELLS} cells"));
                network.incomplete = true;
                break;
            }
            places.push((section.at, section.report));
            defaults.push(read_cell(section, index + 1, network, files));
        }
        if network.cells.is_empty() && network.links.is_empty() && !network.incomplete {
            field.error("a scenario needs at least one link or cell");
            network.incomplete = true;
        }
    }
    if let Some(field) = users {
        user::read(&field, network, &defaults, files);
    }
    for (index, (at, report)) in places.into_iter().enumerate() {
        let users = network.users.iter().filter(|user| user.cell == index).count();
        let cell = &network.cells[index];
        if let Err(error) = cell.config.check(users) {
            report.add(at, format!("cell {:?}: {error}", cell.name));
        }
    }
}

/// Reads entry number `number`, from 1, and adds it.
fn read_cell(section: Section<'_>, number: usize, network: &mut Network, files: &mut Traces<'_>) -> Defaults {
    let mut section = section.of(CELL_GROUPS);
    let name_field = section.find(&keys::NAME);
    let name =
        name_field.as_ref().and_then(Field::name).map_or_else(|| format!("cell{number}"), str::to_owned);
    let at = name_field.map_or(section.at, |field| field.at);
    let host = section.get(&keys::HOST);
    let host = network.host(host.as_ref().unwrap_or(&name));
    let (config, defaults) = read_config(&mut section, files);
    let report = section.report;
    section.finish();
    if !network.add_cell(CellSpec { name: name.clone(), host, config }) {
        report.add(at, format!("there is another cell called {name:?}"));
    }
    defaults
}

/// Reads the configuration of a cell: the preset, or Ranpace's own cell for that radio, and the differences.
fn read_config(section: &mut Section<'_>, files: &mut Traces<'_>) -> (CellConfig, Defaults) {
    let names: Vec<&str> = cells::PRESETS.iter().map(|preset| preset.name).collect();
    let preset = section.find(&keys::PRESET).and_then(|field| field.word(&names));
    let preset = preset.and_then(cells::by_name);
    let radio_field = section.find(&keys::RADIO);
    let radio = radio_field.as_ref().and_then(|field| keys::RADIO.kind.read(field));
    let (mut config, user) = match preset {
        Some(preset) => (preset.config(), preset.user()),
        None => cells::of_radio(radio.unwrap_or("lte")),
    };
    let own = match config.air {
        Air::Lte { .. } => "lte",
        Air::Nr { .. } => "nr",
        Air::Mmwave => "mmwave",
    };
    if let (Some(field), Some(radio), Some(preset)) = (radio_field, radio, preset)
        && radio != own
    {
        field.error(format!(
            "the preset {:?} has radio {own:?}, not {radio:?}; remove one of the two keys",
            preset.name
        ));
    }
    air::read(section, &mut config);
    // If the pattern does not fit, the check at the end reports it.
    let slot = config.air.frame().map_or(Span::from_millis(1), |frame| frame.slot());
    channel::read(section, &mut config, files);
    adaptation::read(section, &mut config, slot);
    uplink::read(section, &mut config, slot);
    let base = config.channel.position;
    let mut defaults = Defaults { height_m: user::height_m(&user.place), base, user };
    for bearer in &mut defaults.user.bearers {
        bearer::read(section, "[[cell]]", bearer);
    }
    if let Some(height) = section.get(&keys::USER_HEIGHT) {
        defaults.height_m = height;
        user::lift(&mut defaults.user.place, height);
    }
    (config, defaults)
}

/// A time as a whole number of slots, at least `least`.
fn slots(field: Option<Field<'_>>, slot: Span, least: u64) -> Option<u64> {
    /// One minute. Ours.
    const MOST: Span = Span::from_secs(60);
    let field = field?;
    let time = field.quantity(slot * least..=MOST)?;
    let count = time.as_nanos() / slot.as_nanos().max(1);
    if slot * count != time {
        field.error(format!("expected a whole number of slots of {slot}, found {time}"));
        return None;
    }
    Some(count)
}
