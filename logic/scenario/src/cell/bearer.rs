//! The settings of bearers: in `[[cell]]` for all its users, in `[[user]]`, and in each table of `bearers`.

use ranpace_link::{AbcForm, Limit, QueueConfig};
use ranpace_phy::Direction;
use ranpace_radio::above_rlc::{Room, StagesConfig};
use ranpace_radio::rlc::{BearerConfig, Config, Timers};

use super::keys;
use super::keys::nested::rlc_timers;
use crate::key::{Group, Kind as _};
use crate::link::{read_limit, read_queue_of};
use crate::reader::{Field, Section};

/// Most bearers of a user: maxDRB of TS 36.331 clause 6.4.
pub(crate) const MOST_BEARERS: usize = 11;

/// The keys of a table of `bearers`.
const GROUPS: &[Group] = &[keys::BEARER];

/// Reads the keys of a bearer into `bearer`; `table` is the name of their table in messages.
pub(super) fn read(section: &mut Section<'_>, table: &str, bearer: &mut BearerConfig) {
    let mode = section.get(&keys::RLC);
    let timers = section.find(&keys::RLC_TIMERS);
    let timers =
        timers.and_then(|f| read_timers(&f, &format!("in rlc_timers of {table}"), bearer.downlink.timers));
    let (format, discard) = (section.get(&keys::RLC_FORMAT), section.get(&keys::DISCARD));
    for direction in [&mut bearer.downlink, &mut bearer.uplink] {
        direction.mode = mode.unwrap_or(direction.mode);
        direction.timers = timers.unwrap_or(direction.timers);
        direction.format = format.unwrap_or(direction.format);
        direction.discard = discard.unwrap_or(direction.discard);
    }
    let above = &mut bearer.downlink.above;
    if let Some(room) = section.find(&keys::SDAP).and_then(|field| read_room(&field)) {
        *above = room.map(|room| StagesConfig { room, ..above.unwrap_or(PLAIN) });
    }
    for key in [&keys::QFI_PER_FLOW, &keys::UPF] {
        let Some(field) = section.find(key) else { continue };
        let Some(above) = above.as_mut() else {
            field.error("has no effect without `sdap`");
            continue;
        };
        let place = if key.name == keys::UPF.name { &mut above.upf } else { &mut above.qfi_per_flow };
        *place = field.flag().unwrap_or(*place);
    }
    let limit = section.find(&keys::BUFFER).and_then(|field| read_limit(&field));
    let limit_up = section.find(&keys::BUFFER_UP).and_then(|field| read_limit(&field)).or(limit);
    for (key, limit, direction, side) in [
        (&keys::AQM, limit, Direction::Downlink, &mut bearer.downlink),
        (&keys::AQM_UP, limit_up, Direction::Uplink, &mut bearer.uplink),
    ] {
        let field = section.find(key);
        read_buffer(field.as_ref(), &format!("in {} of {table}", key.name), limit, (direction, side));
    }
}

/// Stages that only limit RLC.
const PLAIN: StagesConfig = StagesConfig { room: Room::Drql, qfi_per_flow: false, upf: false };

/// Reads `sdap`; `Some(None)` for no stages.
fn read_room(field: &Field<'_>) -> Option<Option<Room>> {
    const EXPECTED: &str =
        "\"drql\", \"5g-bdp\", \"dynrlc\", a number of packets such as \"20 packets\", or \"off\"";
    let text = field.text(EXPECTED)?;
    let room = match text {
        "off" => return Some(None),
        "drql" => Room::Drql,
        "5g-bdp" => Room::Bdp,
        "dynrlc" => Room::Dynamic,
        _ => match text.parse() {
            Ok(Limit::Packets(packets)) => Room::Packets(packets),
            _ => {
                field.error(format!("expected {EXPECTED}, found {text:?}"));
                return None;
            }
        },
    };
    Some(Some(room))
}

/// Sets the buffer of one direction: its size is kept if only its queue management is written, and vice versa.
fn read_buffer(
    aqm: Option<&Field<'_>>,
    what: &str,
    limit: Option<Limit>,
    (direction, side): (Direction, &mut Config),
) {
    let size = limit.unwrap_or(limit_of(&side.buffer));
    let aqm = aqm.and_then(|field| {
        let queue = read_queue_of(field, what, Some(size))?;
        match abc_is_refused(&queue, direction, side) {
            None => Some(queue),
            Some(reason) => {
                field.error(reason);
                None
            }
        }
    });
    match (aqm, &mut side.buffer) {
        (Some(queue), place) => *place = queue,
        (
            None,
            QueueConfig::DropTail { limit, .. }
            | QueueConfig::CoDel { limit, .. }
            | QueueConfig::FqCoDel { limit, .. }
            | QueueConfig::Pie { limit, .. }
            | QueueConfig::DualPi2 { limit, .. }
            | QueueConfig::L4Span { limit, .. }
            | QueueConfig::Abc { limit, .. },
        ) => *limit = size,
    }
}

/// Why a bearer cannot have this queue: ABC's router needs to know what the bearer's slots carry, for one queue.
fn abc_is_refused(queue: &QueueConfig, direction: Direction, side: &Config) -> Option<&'static str> {
    let QueueConfig::Abc { form, .. } = queue else { return None };
    if direction == Direction::Uplink {
        Some("abc needs to know what a slot can carry, which a phone does not; it is for the downlink")
    } else if *form == AbcForm::Authors {
        Some("form \"authors\" counts the opportunities of a trace; a bearer has \"capacity\"")
    } else if side.above.is_some_and(|above| above.qfi_per_flow) {
        Some("abc shares a bearer's capacity among no queues: give each flow a bearer, not a QFI")
    } else {
        None
    }
}

fn limit_of(queue: &QueueConfig) -> Limit {
    let (QueueConfig::DropTail { limit, .. }
    | QueueConfig::CoDel { limit, .. }
    | QueueConfig::FqCoDel { limit, .. }
    | QueueConfig::Pie { limit, .. }
    | QueueConfig::DualPi2 { limit, .. }
    | QueueConfig::L4Span { limit, .. }
    | QueueConfig::Abc { limit, .. }) = queue;
    *limit
}

/// Reads the name of a set of timers, or a table whose `kind` is one.
fn read_timers(field: &Field<'_>, what: &str, base: Timers) -> Option<Timers> {
    if field.is_text() {
        return rlc_timers::KIND.kind.read(field);
    }
    let mut section = field.section(what)?.of(&[rlc_timers::KEYS]);
    let mut timers = section.get(&rlc_timers::KIND).unwrap_or(base);
    section.set(&mut timers.reordering, &rlc_timers::REORDERING);
    section.set(&mut timers.status_prohibit, &rlc_timers::STATUS_PROHIBIT);
    section.set(&mut timers.poll_retransmit, &rlc_timers::POLL_RETRANSMIT);
    section.set(&mut timers.unacknowledged_report, &rlc_timers::UNACKNOWLEDGED_REPORT);
    section.set(&mut timers.max_retransmissions, &rlc_timers::MAX_RETRANSMISSIONS);
    section.set(&mut timers.poll_pdus, &rlc_timers::POLL_PDUS);
    section.set(&mut timers.poll_bytes, &rlc_timers::POLL_BYTES);
    section.set(&mut timers.window, &rlc_timers::WINDOW);
    section.set(&mut timers.poll_sends_all, &rlc_timers::POLL_SENDS_ALL);
    section.finish();
    Some(timers)
}

/// Reads `bearers` of `[[user]]`: a list of tables, each with its differences from `base`.
pub(super) fn read_list(field: &Field<'_>, base: &BearerConfig) -> Option<Vec<BearerConfig>> {
    let elements = field.list("a list of bearers such as [{ rlc = \"am\" }, { rlc = \"um\" }]")?;
    if elements.is_empty() || elements.len() > MOST_BEARERS {
        field.error(format!("expected 1 to {MOST_BEARERS} bearers, found {}", elements.len()));
        return None;
    }
    elements
        .iter()
        .map(|element| {
            let mut section = element.section("in bearers of [[user]]")?.of(GROUPS);
            let mut bearer = base.clone();
            read(&mut section, "bearers of [[user]]", &mut bearer);
            section.finish();
            Some(bearer)
        })
        .collect()
}
