//! What a bearer is: in `[[cell]]` for all its users, in `[[user]]`, and in each table of `bearers`.

use ranpace_link::{Limit, QueueConfig};
use ranpace_radio::rlc::{BearerConfig, Config, NAMED_TIMERS, Timers};
use ranpace_units::{Bytes, Span};

use super::keys::{self, MOST_TIMER};
use crate::key::Group;
use crate::link::{read_limit, read_queue_of};
use crate::reader::{Field, Section};

/// Most bearers of a user: maxDRB of TS 36.331 clause 6.4.
pub(crate) const MOST_BEARERS: usize = 11;

/// The keys of a table of `bearers`.
const GROUPS: &[Group] = &[keys::BEARER];

/// Reads the keys of a bearer into `bearer`; `table` is how messages call where they stand.
pub(super) fn read(section: &mut Section<'_>, table: &str, bearer: &mut BearerConfig) {
    let mode = section.get(&keys::RLC);
    let timers = section.raw(&keys::RLC_TIMERS);
    let timers =
        timers.and_then(|f| read_timers(&f, &format!("in rlc_timers of {table}"), bearer.downlink.timers));
    let (format, discard) = (section.get(&keys::RLC_FORMAT), section.get(&keys::DISCARD));
    for direction in [&mut bearer.downlink, &mut bearer.uplink] {
        direction.mode = mode.unwrap_or(direction.mode);
        direction.timers = timers.unwrap_or(direction.timers);
        direction.format = format.unwrap_or(direction.format);
        direction.discard = discard.unwrap_or(direction.discard);
    }
    let limit = section.raw(&keys::BUFFER).and_then(|field| read_limit(&field));
    let limit_up = section.raw(&keys::BUFFER_UP).and_then(|field| read_limit(&field)).or(limit);
    for (key, what, limit, direction) in [
        (&keys::AQM, "in aqm of ", limit, &mut bearer.downlink),
        (&keys::AQM_UP, "in aqm_up of ", limit_up, &mut bearer.uplink),
    ] {
        let field = section.raw(key);
        read_buffer(field.as_ref(), &format!("{what}{table}"), limit, direction);
    }
}

/// The buffer of one direction: its size stays where only its management is said, and the other way round.
fn read_buffer(aqm: Option<&Field<'_>>, what: &str, limit: Option<Limit>, direction: &mut Config) {
    let size = limit.unwrap_or(limit_of(&direction.buffer));
    let aqm = aqm.and_then(|field| read_queue_of(field, what, Some(size)));
    match (aqm, &mut direction.buffer) {
        (Some(queue), place) => *place = queue,
        (
            None,
            QueueConfig::DropTail { limit, .. }
            | QueueConfig::CoDel { limit, .. }
            | QueueConfig::FqCoDel { limit, .. }
            | QueueConfig::Pie { limit, .. },
        ) => *limit = size,
    }
}

fn limit_of(queue: &QueueConfig) -> Limit {
    let (QueueConfig::DropTail { limit, .. }
    | QueueConfig::CoDel { limit, .. }
    | QueueConfig::FqCoDel { limit, .. }
    | QueueConfig::Pie { limit, .. }) = queue;
    *limit
}

/// The name of a set, or a table, whose `kind` is one.
fn read_timers(field: &Field<'_>, what: &str, base: Timers) -> Option<Timers> {
    let names: Vec<&'static str> = NAMED_TIMERS.iter().map(|(name, _)| *name).chain(["mmwave"]).collect();
    let named = |name: &str| {
        let found = NAMED_TIMERS.iter().find(|(known, _)| *known == name);
        found.map_or(Timers::MMWAVE, |(_, timers)| *timers)
    };
    if field.is_text() {
        return field.word(&names).map(named);
    }
    let mut section = field.section(what)?;
    let mut timers = section.field("kind").and_then(|f| f.word(&names)).map_or(base, named);
    for (key, place) in [
        ("reordering", &mut timers.reordering),
        ("status_prohibit", &mut timers.status_prohibit),
        ("poll_retransmit", &mut timers.poll_retransmit),
        ("unacknowledged_report", &mut timers.unacknowledged_report),
    ] {
        *place = section.quantity(key, Span::ZERO..=MOST_TIMER).unwrap_or(*place);
    }
    if let Some(field) = section.field("max_retransmissions") {
        let is_never = field.is_text() && field.text("") == Some("never");
        let most =
            if is_never { Some(None) } else { field.whole(0..=255).map(|most| u8::try_from(most).ok()) };
        timers.max_retransmissions = most.unwrap_or(timers.max_retransmissions);
    }
    timers.poll_pdus = section.whole("poll_pdus", 1..=1_000_000).unwrap_or(timers.poll_pdus);
    let bytes = section.quantity("poll_bytes", Bytes::new(1)..=Bytes::MAX);
    timers.poll_bytes = bytes.unwrap_or(timers.poll_bytes);
    timers.window = section.whole("window", 1..=131_072).unwrap_or(timers.window);
    timers.poll_sends_all = section.flag("poll_sends_all").unwrap_or(timers.poll_sends_all);
    section.finish();
    Some(timers)
}

/// `bearers` of `[[user]]`: a list of tables, each with what differs from `base`.
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
