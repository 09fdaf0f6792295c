//! The radio channel of `[[cell]]`.

use ranpace_phy::Both;
use ranpace_radio::cell::{Air, CellConfig, ChannelConfig, FadingConfig};
use ranpace_radio::channel::{
    Building, Carrier, DelayProfile, FadingSpeed, Flicker, Groups, NoiseSource, PathLoss, RecordedFading,
    STREET, Shadowing, Sight,
};
use ranpace_units::Span;

use super::keys::nested::fading::{self, FadingWord};
use super::keys::nested::path_loss::{self, LossWord};
use super::keys::nested::sight::{self, SightWord};
use super::keys::nested::{building, noise, shadowing};
use super::keys::{self, LEVELS};
use crate::key::{Group, In, Is, Key, Kind as _, Required, Words};
use crate::link::Traces;
use crate::measure::POWER;
use crate::reader::{Field, Section};

/// Most buildings. Ours.
const MOST_BUILDINGS: usize = 10_000;

/// Reads the keys of the channel into `config`.
pub(super) fn read(section: &mut Section<'_>, config: &mut CellConfig, files: &mut Traces<'_>) {
    let air = config.air;
    let shared = config.air.frame().is_ok_and(|frame| frame.is_shared());
    let channel = &mut config.channel;
    let height = channel.position.z;
    let position = section.find(&keys::POSITION).and_then(|field| field.position(height));
    channel.position = position.unwrap_or(channel.position);
    read_carriers(section, channel, shared);
    if let Some(loss) = section.find(&keys::PATH_LOSS).and_then(|field| read_path_loss(&field)) {
        channel.loss = loss;
    }
    if let Some(sight) = section.find(&keys::SIGHT).and_then(|field| read_sight(&field)) {
        channel.sight = sight;
    }
    if let Some(shadowing) = section.find(&keys::SHADOWING).and_then(|field| read_shadowing(&field)) {
        channel.shadowing = shadowing;
    }
    read_fading(section, channel, air, files);
    section.set(&mut channel.base_power_dbm, &keys::POWER);
    section.set(&mut channel.gain_db, &keys::GAIN);
    let Both { downlink, uplink } = &mut channel.receiver;
    section.set(&mut downlink.noise_figure_db, &keys::NOISE_FIGURE);
    section.set(&mut uplink.noise_figure_db, &keys::NOISE_FIGURE_UP);
    section.set(&mut downlink.noise_rise_db, &keys::INTERFERENCE);
    section.set(&mut uplink.noise_rise_db, &keys::INTERFERENCE_UP);
    for (key, receiver) in [(&keys::NOISE, downlink), (&keys::NOISE_UP, uplink)] {
        if let Some(source) = section.find(key).and_then(|field| read_noise(&field)) {
            receiver.source = source;
        }
    }
}

/// Reads both carriers. If the directions share one, it applies to both; otherwise the uplink keeps its distance from the
/// downlink.
fn read_carriers(section: &mut Section<'_>, channel: &mut ChannelConfig, shared: bool) {
    let carrier = |section: &mut Section<'_>, key: &Key<In>| {
        let field = section.find(key)?;
        let hz = key.kind.read(&field)?;
        Carrier::from_hz(hz).map_err(|error| field.error(error.to_string())).ok()
    };
    let distance_hz = channel.carrier.downlink.hz() - channel.carrier.uplink.hz();
    if let Some(downlink) = carrier(section, &keys::CARRIER) {
        let uplink = Carrier::from_hz(downlink.hz() - distance_hz);
        channel.carrier = Both { downlink, uplink: uplink.unwrap_or(downlink) };
    }
    if shared {
        channel.carrier.uplink = channel.carrier.downlink;
        if let Some(field) = section.find(&keys::CARRIER_UP) {
            field.error("applies only to FDD; here both directions use `carrier`");
        }
    } else if let Some(uplink) = carrier(section, &keys::CARRIER_UP) {
        channel.carrier.uplink = uplink;
    }
}

/// Reads a word, or a table of these keys with its `kind`.
fn kind_of<'t, T: Copy>(
    field: &Field<'t>,
    what: &'static str,
    kind: &Key<Words<T>, Required>,
    keys: &'static [Group],
) -> Option<(T, Option<Section<'t>>)> {
    if !field.is_table() {
        return Some((kind.kind.read(field)?, None));
    }
    let mut section = field.section(what)?.of(keys);
    Some((section.get(kind)?, Some(section)))
}

fn read_path_loss(field: &Field<'_>) -> Option<PathLoss> {
    let (kind, mut section) =
        kind_of(field, "in path_loss of [[cell]]", &path_loss::KIND, &[path_loss::KEYS])?;
    let mut number =
        |key: &Key<In, Is<f64>>| section.as_mut().map_or(key.default.0, |section| section.get(key));
    let loss = match kind {
        LossWord::Friis => PathLoss::Friis,
        LossWord::LogDistance => {
            let at_1_m_db = number(&path_loss::AT_1M);
            let exponent = &path_loss::EXPONENT;
            let exponent = section.as_mut().map_or(exponent.default.0, |section| section.get(exponent));
            PathLoss::LogDistance { exponent, at_1_m_db }
        }
        LossWord::Cost231 => PathLoss::Cost231 {
            base_m: number(&path_loss::BASE_HEIGHT),
            user_m: number(&path_loss::USER_HEIGHT),
            extra_db: number(&path_loss::EXTRA),
        },
        LossWord::Umi => PathLoss::UmiStreetCanyon,
    };
    if let Some(section) = section {
        section.finish();
    }
    Some(loss)
}

fn read_sight(field: &Field<'_>) -> Option<Sight> {
    let (kind, mut section) = kind_of(field, "in sight of [[cell]]", &sight::KIND, &[sight::KEYS])?;
    let sight = match (kind, &mut section) {
        (SightWord::Buildings, Some(section)) => {
            let buildings = section.find(&sight::BUILDINGS).and_then(|field| read_buildings(&field));
            buildings.map(|buildings| Sight::Buildings(buildings.into()))
        }
        (SightWord::Buildings, None) => {
            field.error("write { kind = \"buildings\", buildings = [...] }");
            None
        }
        (SightWord::Clear, _) => Some(Sight::Clear),
        (SightWord::Blocked, _) => Some(Sight::Blocked),
        (SightWord::Chance, _) => Some(Sight::Chance),
        (SightWord::Street, _) => Some(Sight::Buildings(STREET.into())),
    };
    if let Some(section) = section {
        section.finish();
    }
    sight
}

fn read_buildings(field: &Field<'_>) -> Option<Vec<Building>> {
    let elements =
        field.list("a list of buildings such as [{ x = [20, 63], y = [3, 58], height = \"28m\" }]")?;
    if elements.len() > MOST_BUILDINGS {
        field.error(format!("expected at most {MOST_BUILDINGS} buildings, found {}", elements.len()));
        return None;
    }
    elements
        .iter()
        .map(|element| {
            let mut section = element.section("in buildings of [[cell]]")?.of(&[building::KEYS]);
            let (x_m, y_m) = (section.get(&building::X), section.get(&building::Y));
            let height_m = section.get(&building::HEIGHT);
            section.finish();
            Some(Building { x_m: x_m?, y_m: y_m?, height_m: height_m? })
        })
        .collect()
}

fn read_shadowing(field: &Field<'_>) -> Option<Option<Shadowing>> {
    if !field.is_table() {
        return Some((field.word(&["none", "umi"])? == "umi").then_some(Shadowing::UMI));
    }
    let mut section = field.section("in shadowing of [[cell]]")?.of(&[shadowing::KEYS]);
    let shadowing = Shadowing {
        clear_db: section.get(&shadowing::CLEAR),
        blocked_db: section.get(&shadowing::BLOCKED),
        stretch_m: section.get(&shadowing::STRETCH),
    };
    section.finish();
    Some(Some(shadowing))
}

fn read_fading(section: &mut Section<'_>, channel: &mut ChannelConfig, air: Air, files: &mut Traces<'_>) {
    let speed_field = section.find(&keys::FADING_SPEED);
    let speed = speed_field.as_ref().and_then(|field| keys::FADING_SPEED.kind.read(field));
    let speed = speed.map(|speed| speed.map_or(FadingSpeed::AsMoving, FadingSpeed::Fixed));
    let own_speed = match &channel.fading {
        FadingConfig::Multipath(_, speed) => *speed,
        _ => FadingSpeed::AsMoving,
    };
    let fading_field = section.find(&keys::FADING);
    if let Some(fading) = fading_field.and_then(|field| read_fading_kind(&field, own_speed, air, files)) {
        channel.fading = fading;
    }
    match (&mut channel.fading, speed_field) {
        (FadingConfig::Multipath(_, place), _) => *place = speed.unwrap_or(*place),
        (_, Some(field)) => field.error("applies only to multipath fading: flat, epa, eva or etu"),
        _ => {}
    }
}

fn read_fading_kind(
    field: &Field<'_>,
    speed: FadingSpeed,
    air: Air,
    files: &mut Traces<'_>,
) -> Option<FadingConfig> {
    let (kind, mut section) = kind_of(field, "in fading of [[cell]]", &fading::KIND, &[fading::KEYS])?;
    let mut every =
        || section.as_mut().map_or(fading::EVERY.default.0, |section| section.get(&fading::EVERY));
    let multipath = |profile| Some(FadingConfig::Multipath(profile, speed));
    let fading = match kind {
        FadingWord::None => Some(FadingConfig::Steady),
        FadingWord::Flat => multipath(DelayProfile::Flat),
        FadingWord::Epa => multipath(DelayProfile::Epa),
        FadingWord::Eva => multipath(DelayProfile::Eva),
        FadingWord::Etu => multipath(DelayProfile::Etu),
        FadingWord::Mmwave => {
            let every = every();
            let deviation = &fading::DEVIATION;
            let deviation_db = section.as_mut().map_or(deviation.default.0, |section| section.get(deviation));
            Some(FadingConfig::Flicker(Flicker { deviation_db, every }))
        }
        FadingWord::Recorded => {
            let every = every();
            match &mut section {
                Some(section) => {
                    let file = section.find(&fading::FILE);
                    file.and_then(|file| read_recorded(&file, every, air, files))
                }
                None => {
                    field.error("write { kind = \"recorded\", file = \"...\" }");
                    None
                }
            }
        }
    };
    if let Some(section) = section {
        section.finish();
    }
    fading
}

fn read_recorded(file: &Field<'_>, every: Span, air: Air, files: &mut Traces<'_>) -> Option<FadingConfig> {
    let Air::Lte { band } = air else {
        file.error("recorded fading is for LTE only: its file has a line for each PRB of LTE");
        return None;
    };
    let text = files.text(file)?;
    match RecordedFading::parse(&text, &Groups::lte(band), every) {
        Ok(recorded) => Some(FadingConfig::Recorded(recorded)),
        Err(error) => {
            file.error_in_file(&error);
            None
        }
    }
}

/// Reads `noise = "none"`, `noise = "-90dBm"`, or a table.
fn read_noise(field: &Field<'_>) -> Option<Option<NoiseSource>> {
    if field.is_text() && field.text("") == Some("none") {
        return Some(None);
    }
    if !field.is_table() {
        return field.measure(&POWER, LEVELS).map(|dbm| Some(NoiseSource::steady(dbm)));
    }
    let mut section = field.section("in noise of [[cell]]")?.of(&[noise::KEYS]);
    let prb_dbm = section.get(&noise::PRB);
    let (on, period, random) =
        (section.get(&noise::ON), section.get(&noise::PERIOD), section.get(&noise::RANDOM));
    if random && on.is_none() {
        section.error("pulsed noise needs both `on` and `period`, steady noise neither");
    }
    if on.is_some() != period.is_some() {
        section.error("pulsed noise needs both `on` and `period`, steady noise neither");
    }
    if let (Some(on), Some(period)) = (on, period)
        && on > period
    {
        section.error(format!("noise: expected `on` to be at most `period`, found {on} in {period}"));
    }
    section.finish();
    let steady = prb_dbm.map(NoiseSource::steady)?;
    let (on, period) = (on.unwrap_or(steady.on), period.unwrap_or(steady.period));
    Some(Some(NoiseSource { on, period, random, ..steady }))
}
