//! `[[user]]`: one user of a cell, or `count` of them.

mod keys;

use std::sync::Arc;

use ranpace_radio::cell::{Place, UserConfig};
use ranpace_radio::channel::{Disc, Position, Recording, Trajectory, WalkRule};
use ranpace_units::{Span, Time};

use self::keys::recording::RecordingWord;
use self::keys::*;
pub(crate) use self::keys::{KEYS, disc, recording, walk, waypoints};
use super::{Defaults, bearer};
use crate::link::Traces;
use crate::model::UserSpec;
use crate::network::Network;
use crate::reader::{Field, Section};

/// Most users in a scenario. Ours.
const MOST_USERS: usize = 100_000;
/// Most points in a path. Ours.
const MOST_POINTS: usize = 100_000;

/// The height of a place in metres, the default for positions without one.
pub(crate) fn height_m(place: &Place) -> f64 {
    match place {
        Place::Static(position) | Place::Walk(_, Some(position)) => position.z,
        Place::Drop(area) | Place::Walk(WalkRule { area, .. }, None) => area.centre.z,
        // Users carry their phones at 1.5 m (TR 38.901 Table 7.2-1).
        Place::Path(_) => 1.5,
        Place::Moved(first, _) => height_m(first),
    }
}

/// Sets the height of a place in metres; a path keeps its own.
pub(super) fn lift(place: &mut Place, height_m: f64) {
    match place {
        Place::Static(position) => position.z = height_m,
        Place::Drop(area) => area.centre.z = height_m,
        Place::Walk(rule, from) => {
            rule.area.centre.z = height_m;
            if let Some(from) = from {
                from.z = height_m;
            }
        }
        Place::Path(_) => {}
        Place::Moved(first, moves) => {
            lift(first, height_m);
            moves.iter_mut().for_each(|next| next.to.z = height_m);
        }
    }
}

/// Reads all `[[user]]`; `defaults` are those of the cells.
pub(super) fn read(field: &Field<'_>, network: &mut Network, defaults: &[Defaults], files: &mut Traces<'_>) {
    for (index, section) in field.tables().into_iter().enumerate() {
        if read_entry(section, index + 1, network, defaults, files).is_none() {
            network.incomplete = true;
        }
    }
}

/// Reads entry number `number`, from 1, and adds its users; `None` if there are none.
fn read_entry(
    section: Section<'_>,
    number: usize,
    network: &mut Network,
    defaults: &[Defaults],
    files: &mut Traces<'_>,
) -> Option<()> {
    let mut section = section.of(super::USER_GROUPS);
    let report = section.report;
    let name_field = section.find(&NAME);
    let name =
        name_field.as_ref().and_then(Field::name).map_or_else(|| format!("user{number}"), str::to_owned);
    let at = name_field.map_or(section.at, |field| field.at);
    let cell_field = section.find(&CELL);
    let cell = match &cell_field {
        Some(field) => network.cell_of(field),
        None if network.cells.len() == 1 => Some(0),
        None if network.cells.is_empty() => {
            if !network.incomplete {
                section.error("there is no [[cell]] for this user");
            }
            None
        }
        None => {
            section.error("missing key \"cell\" in [[user]]: there are several cells");
            None
        }
    };
    let count: Option<usize> = section.get(&COUNT);
    let is_replicated = section.has(COUNT.name);
    let host_field = section.find(&HOST);
    if let (Some(field), true) = (&host_field, is_replicated) {
        field.error("users with `count` cannot share a host; each gets a host with its own name");
    }
    let host = host_field.and_then(|field| field.name());
    // A user without a valid cell is read all the same, so that its errors are reported.
    let own;
    let defaults = match cell.and_then(|cell| defaults.get(cell)) {
        Some(defaults) => defaults,
        None => {
            let (_, user) = crate::cells::of_radio("lte");
            own = Defaults { height_m: height_m(&user.place), base: Position::default(), user };
            &own
        }
    };
    let mut config = defaults.user.clone();
    if let Some(place) = read_place(&mut section, defaults, files) {
        config.place = place;
    }
    let (recording, stagger) = match section.find(&RECORDING) {
        Some(field) => read_recording(&field, files).unzip(),
        None => (None, None),
    };
    if let Some(recording) = recording {
        config.recording = Some(recording);
    }
    read_bearers(&mut section, &mut config);
    let real_time_first = section.get(&REAL_TIME_FIRST);
    section.finish();
    let cell = cell?;
    let first = network.users.len();
    if first + count.unwrap_or(1) > MOST_USERS {
        report.add(at, format!("more than {MOST_USERS} users"));
        return None;
    }
    for replicate in 0..count.unwrap_or(1) {
        let own_name = if is_replicated { format!("{name}.{}", replicate + 1) } else { name.clone() };
        if network.has_link(&own_name) {
            report.add(at, format!("there is already a link called {own_name:?}"));
        }
        let host = network.host(host.unwrap_or(&own_name));
        if host == network.cells[cell].host {
            report.add(at, format!("user {own_name:?} is at the host of its own cell"));
            return None;
        }
        let mut config = config.clone();
        if let (Some((_, from)), Some(stagger)) = (&mut config.recording, stagger) {
            *from += stagger * replicate as u64;
        }
        if !network.add_user(UserSpec { name: own_name.clone(), host, cell, config, real_time_first }) {
            report.add(at, format!("there is another user called {own_name:?}"));
        }
    }
    if is_replicated && !network.name_users(&name, first..network.users.len()) {
        report.add(at, format!("there is another user called {name:?}"));
    }
    Some(())
}

/// Reads the place of the user, which has at most one of these keys.
fn read_place(section: &mut Section<'_>, defaults: &Defaults, files: &mut Traces<'_>) -> Option<Place> {
    let height_m = defaults.height_m;
    let (position, drop) = (section.find(&POSITION), section.find(&DROP));
    let (walk, waypoints) = (section.find(&WALK), section.find(&WAYPOINTS));
    let trajectory = section.find(&TRAJECTORY);
    if let Some(second) = [&position, &drop, &walk, &waypoints, &trajectory].into_iter().flatten().nth(1) {
        second.error("a user has only one of position, drop, walk, waypoints and trajectory");
    }
    if let Some(field) = position {
        return field.position(height_m).map(Place::Static);
    }
    if let Some(field) = drop {
        let mut section = field.section("in drop of [[user]]")?.of(&[disc::KEYS]);
        let area = read_area(&mut section, defaults);
        section.finish();
        return area.map(Place::Drop);
    }
    if let Some(field) = walk {
        let mut section = field.section("in walk of [[user]]")?.of(&[disc::KEYS, walk::KEYS]);
        let area = read_area(&mut section, defaults);
        let (speed, leg) = (section.get(&walk::SPEEDS), section.get(&walk::LEG));
        let from = section.find(&walk::POSITION).and_then(|field| field.position(height_m));
        section.finish();
        let usual = WalkRule::pedestrian(area?);
        let rule =
            WalkRule { speed_m_s: speed.unwrap_or(usual.speed_m_s), leg: leg.unwrap_or(usual.leg), ..usual };
        return Some(Place::Walk(rule, from));
    }
    if let Some(field) = waypoints {
        return read_waypoints(&field, height_m);
    }
    let field = trajectory?;
    let text = files.text(&field)?;
    match Trajectory::parse(&text) {
        Ok(path) => Some(Place::Path(Arc::new(path))),
        Err(error) => {
            field.error_in_file(&error);
            None
        }
    }
}

/// Reads `radius`, `centre`, which defaults to the base station, and `spread`.
fn read_area(section: &mut Section<'_>, defaults: &Defaults) -> Option<Disc> {
    let radius = section.get(&disc::RADIUS);
    let centre = section.find(&disc::CENTRE).and_then(|f| f.position(defaults.height_m));
    let spread = section.get(&disc::SPREAD);
    let Position { x, y, .. } = defaults.base;
    let centre = centre.unwrap_or(Position::new(x, y, defaults.height_m));
    Some(Disc { centre, radius_m: radius?, spread })
}

fn read_waypoints(field: &Field<'_>, height_m: f64) -> Option<Place> {
    let mut section = field.section("in waypoints of [[user]]")?.of(&[waypoints::KEYS]);
    let points = section.find(&waypoints::POINTS).and_then(|field| {
        let elements = field.list("a list of positions such as [[50, 0], [400, 0]]")?;
        if elements.len() > MOST_POINTS {
            field.error(format!("expected at most {MOST_POINTS} points, found {}", elements.len()));
            return None;
        }
        elements.iter().map(|element| element.position(height_m)).collect::<Option<Vec<_>>>()
    });
    let (speed, start) = (section.get(&waypoints::SPEED), section.get(&waypoints::START));
    section.finish();
    match Trajectory::waypoints(Time::ZERO + start, speed?, &points?) {
        Ok(path) => Some(Place::Path(Arc::new(path))),
        Err(error) => {
            field.error(error.to_string());
            None
        }
    }
}

/// A recording, and the offset at which a user starts it.
type Played = (Arc<Recording>, Span);

/// Reads `recording = "file"` or a table; also returns how much later each further user of the entry starts in it.
fn read_recording(field: &Field<'_>, files: &mut Traces<'_>) -> Option<(Played, Span)> {
    let (text, kind, from, stagger, file) = if field.is_text() {
        (files.text(field), RecordingWord::Csv, Span::ZERO, Span::ZERO, field.clone())
    } else {
        let mut section = field.section("in recording of [[user]]")?.of(&[recording::KEYS]);
        let file = section.find(&recording::FILE);
        let text = file.as_ref().and_then(|file| files.text(file));
        let kind = section.get(&recording::KIND);
        let (from, stagger) = (section.get(&recording::FROM), section.get(&recording::STAGGER));
        section.finish();
        (text, kind, from, stagger, file?)
    };
    let text = text?;
    let read = match kind {
        RecordingWord::Csv => Recording::parse(&text),
        RecordingWord::PhoneLog => Recording::parse_5g_log(&text),
    };
    match read {
        Ok(recording) => Some(((Arc::new(recording), from), stagger)),
        Err(error) => {
            file.error_in_file(&error);
            None
        }
    }
}

/// Reads the keys of bearers, which apply to all of the user's, and then the list of bearers.
fn read_bearers(section: &mut Section<'_>, config: &mut UserConfig) {
    for bearer in &mut config.bearers {
        bearer::read(section, "[[user]]", bearer);
    }
    let list = section.find(&BEARERS);
    if let (Some(field), Some(base)) = (list, config.bearers.first())
        && let Some(bearers) = bearer::read_list(&field, base)
    {
        config.bearers = bearers;
    }
}
