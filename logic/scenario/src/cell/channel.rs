//! The radio channel of `[[cell]]`.

use ranpace_phy::Both;
use ranpace_radio::cell::{Air, CellConfig, ChannelConfig, FadingConfig};
use ranpace_radio::channel::{
    Building, Carrier, DelayProfile, FadingSpeed, Flicker, Groups, NoiseSource, PathLoss, RecordedFading,
    STREET, Shadowing, Sight,
};
use ranpace_units::Span;

use super::keys::{self, LEVELS};
use crate::key::{In, Key, Kind as _};
use crate::limits::LEAST_SPAN;
use crate::link::Traces;
use crate::measure::{DISTANCE, GAIN, POWER};
use crate::reader::{Field, Section};

/// Distances in metres that are believed. Ours.
const DISTANCES: core::ops::RangeInclusive<f64> = 0.0..=1e6;
/// Most buildings. Ours.
const MOST_BUILDINGS: usize = 10_000;

/// Reads the keys of the channel into `config`.
pub(super) fn read(section: &mut Section<'_>, config: &mut CellConfig, files: &mut Traces<'_>) {
    let air = config.air;
    let shared = config.air.frame().is_ok_and(|frame| frame.is_shared());
    let channel = &mut config.channel;
    let height = channel.position.z;
    let position = section.raw(&keys::POSITION).and_then(|field| field.position(height));
    channel.position = position.unwrap_or(channel.position);
    read_carriers(section, channel, shared);
    if let Some(loss) = section.raw(&keys::PATH_LOSS).and_then(|field| read_path_loss(&field)) {
        channel.loss = loss;
    }
    if let Some(sight) = section.raw(&keys::SIGHT).and_then(|field| read_sight(&field)) {
        channel.sight = sight;
    }
    if let Some(shadowing) = section.raw(&keys::SHADOWING).and_then(|field| read_shadowing(&field)) {
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
        if let Some(source) = section.raw(key).and_then(|field| read_noise(&field)) {
            receiver.source = source;
        }
    }
}

/// Both carriers. Where the directions share one, there is one; elsewhere the uplink's stays as far from the downlink's
/// as it was.
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
            field.error("belongs to FDD: here both directions are on `carrier`");
        }
    } else if let Some(uplink) = carrier(section, &keys::CARRIER_UP) {
        channel.carrier.uplink = uplink;
    }
}

/// A word, or a table with `kind`.
fn kind_of<'t>(
    field: &Field<'t>,
    what: &'static str,
    words: &[&'static str],
) -> Option<(&'static str, Option<Section<'t>>)> {
    if !field.is_table() {
        return Some((field.word(words)?, None));
    }
    let mut section = field.section(what)?;
    Some((section.required("kind")?.word(words)?, Some(section)))
}

fn read_path_loss(field: &Field<'_>) -> Option<PathLoss> {
    const KINDS: [&str; 4] = ["friis", "log-distance", "cost231", "umi"];
    let (kind, mut section) = kind_of(field, "in path_loss of [[cell]]", &KINDS)?;
    let mut number = |key, measure, range| section.as_mut()?.measure(key, measure, range);
    let loss = match kind {
        "friis" => PathLoss::Friis,
        "log-distance" => {
            // ns-3's defaults.
            let at_1_m_db = number("at_1m", &GAIN, LEVELS).unwrap_or(46.6777);
            let exponent = section.as_mut().and_then(|s| s.number("exponent", 0.0..=20.0)).unwrap_or(3.0);
            PathLoss::LogDistance { exponent, at_1_m_db }
        }
        "cost231" => PathLoss::Cost231 {
            base_m: number("base_height", &DISTANCE, 1.0..=1_000.0).unwrap_or(30.0),
            user_m: number("user_height", &DISTANCE, 0.1..=100.0).unwrap_or(1.5),
            extra_db: number("extra", &GAIN, LEVELS).unwrap_or(0.0),
        },
        _ => PathLoss::UmiStreetCanyon,
    };
    if let Some(section) = section {
        section.finish();
    }
    Some(loss)
}

fn read_sight(field: &Field<'_>) -> Option<Sight> {
    const KINDS: [&str; 5] = ["clear", "blocked", "chance", "street", "buildings"];
    let (kind, section) = kind_of(field, "in sight of [[cell]]", &KINDS)?;
    let sight = match (kind, section) {
        ("buildings", Some(mut section)) => {
            let buildings = section.required("buildings").and_then(|field| read_buildings(&field));
            section.finish();
            return buildings.map(|buildings| Sight::Buildings(buildings.into()));
        }
        ("buildings", None) => {
            field.error("write { kind = \"buildings\", buildings = [...] }");
            return None;
        }
        ("clear", section) => (Sight::Clear, section),
        ("blocked", section) => (Sight::Blocked, section),
        ("chance", section) => (Sight::Chance, section),
        (_, section) => (Sight::Buildings(STREET.into()), section),
    };
    if let Some(section) = sight.1 {
        section.finish();
    }
    Some(sight.0)
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
            let mut section = element.section("in buildings of [[cell]]")?;
            let (x_m, y_m) = (read_side(&mut section, "x"), read_side(&mut section, "y"));
            let height_m = section.required("height").and_then(|f| f.measure(&DISTANCE, DISTANCES));
            section.finish();
            Some(Building { x_m: x_m?, y_m: y_m?, height_m: height_m? })
        })
        .collect()
}

/// From and to where a building stands, in metres.
fn read_side(section: &mut Section<'_>, key: &'static str) -> Option<[f64; 2]> {
    let field = section.required(key)?;
    let numbers = field.list("two coordinates in metres such as [20, 63]")?;
    let metres: Option<Vec<f64>> = numbers.iter().map(|field| field.number(-1e6..=1e6)).collect();
    match metres?[..] {
        [from, to] if from <= to => Some([from, to]),
        _ => {
            field.error("expected two coordinates in metres, the smaller one first, such as [20, 63]");
            None
        }
    }
}

fn read_shadowing(field: &Field<'_>) -> Option<Option<Shadowing>> {
    if !field.is_table() {
        return Some((field.word(&["none", "umi"])? == "umi").then_some(Shadowing::UMI));
    }
    let mut section = field.section("in shadowing of [[cell]]")?;
    let deviation =
        |section: &mut Section<'_>, key, usual| section.measure(key, &GAIN, 0.0..=100.0).unwrap_or(usual);
    let shadowing = Shadowing {
        clear_db: deviation(&mut section, "clear", Shadowing::UMI.clear_db),
        blocked_db: deviation(&mut section, "blocked", Shadowing::UMI.blocked_db),
        stretch_m: section.measure("stretch", &DISTANCE, 0.1..=1e6).unwrap_or(Shadowing::UMI.stretch_m),
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
    let fading_field = section.raw(&keys::FADING);
    if let Some(fading) = fading_field.and_then(|field| read_fading_kind(&field, own_speed, air, files)) {
        channel.fading = fading;
    }
    match (&mut channel.fading, speed_field) {
        (FadingConfig::Multipath(_, place), _) => *place = speed.unwrap_or(*place),
        (_, Some(field)) => field.error("belongs to fading of several paths: flat, epa, eva or etu"),
        _ => {}
    }
}

fn read_fading_kind(
    field: &Field<'_>,
    speed: FadingSpeed,
    air: Air,
    files: &mut Traces<'_>,
) -> Option<FadingConfig> {
    const KINDS: [&str; 7] = ["none", "flat", "epa", "eva", "etu", "mmwave", "recorded"];
    let (kind, mut section) = kind_of(field, "in fading of [[cell]]", &KINDS)?;
    let every = section.as_mut().filter(|_| ["mmwave", "recorded"].contains(&kind));
    let every = every.and_then(|s| s.quantity("every", LEAST_SPAN..=Span::from_secs(60)));
    let fading = match kind {
        "none" => Some(FadingConfig::Steady),
        "flat" => Some(FadingConfig::Multipath(DelayProfile::Flat, speed)),
        "epa" => Some(FadingConfig::Multipath(DelayProfile::Epa, speed)),
        "eva" => Some(FadingConfig::Multipath(DelayProfile::Eva, speed)),
        "etu" => Some(FadingConfig::Multipath(DelayProfile::Etu, speed)),
        "mmwave" => {
            let deviation = section.as_mut().and_then(|s| s.measure("deviation", &GAIN, 0.0..=100.0));
            Some(FadingConfig::Flicker(Flicker {
                deviation_db: deviation.unwrap_or(Flicker::MMWAVE.deviation_db),
                every: every.unwrap_or(Flicker::MMWAVE.every),
            }))
        }
        _ => match &mut section {
            Some(section) => {
                let file = section.required("file");
                // ns-3's traces have a sample each millisecond.
                let every = every.unwrap_or(Span::from_millis(1));
                file.and_then(|file| read_recorded(&file, every, air, files))
            }
            None => {
                field.error("write { kind = \"recorded\", file = \"...\" }");
                None
            }
        },
    };
    if let Some(section) = section {
        section.finish();
    }
    fading
}

fn read_recorded(file: &Field<'_>, every: Span, air: Air, files: &mut Traces<'_>) -> Option<FadingConfig> {
    let Air::Lte { band } = air else {
        file.error("recorded fading has a line for each PRB of LTE; other radios have none");
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

/// `noise = "none"`, `noise = "-90dBm"`, or a table.
fn read_noise(field: &Field<'_>) -> Option<Option<NoiseSource>> {
    if field.is_text() && field.text("") == Some("none") {
        return Some(None);
    }
    if !field.is_table() {
        return field.measure(&POWER, LEVELS).map(|dbm| Some(NoiseSource::steady(dbm)));
    }
    let mut section = field.section("in noise of [[cell]]")?;
    let prb_dbm = section.required("prb").and_then(|f| f.measure(&POWER, LEVELS));
    let most = Span::from_secs(86_400);
    let on = section.quantity("on", Span::ZERO..=most);
    let period = section.quantity("period", LEAST_SPAN..=most);
    let random = section.flag("random").unwrap_or(false);
    if random && on.is_none() {
        section.error("noise that comes and goes has `on` and `period`, steady noise neither");
    }
    if on.is_some() != period.is_some() {
        section.error("noise that comes and goes has `on` and `period`, steady noise neither");
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
