//! The settings of a TCP connection, flat in `[[flow]]` or in its table `tcp`.

use ranpace_tcp::{Config, Opener};
use ranpace_units::{Bytes, Span};

use crate::link::LEAST_SPAN;
use crate::reader::{Field, Section};

/// The keys of the settings; all but `mtu` are TCP's alone.
pub(crate) const KEYS: [&str; 17] = [
    "mtu",
    "initial_window",
    "timestamps",
    "sack",
    "ecn",
    "ack_every",
    "ack_delay",
    "quick_acks",
    "min_rto",
    "initial_rto",
    "max_rto",
    "receive_buffer",
    "receive_buffer_max",
    "send_buffer",
    "slow_start_after_idle",
    "pacing",
    "opener",
];

/// Smallest and largest IP packet: ours, and what its length field holds (RFC 791).
const MTU: core::ops::RangeInclusive<Bytes> = Bytes::new(100)..=Bytes::new(65_535);
/// Largest window that TCP can announce (RFC 7323 section 2.3).
const MOST_WINDOW: Bytes = Bytes::new(1 << 30);

/// Reads the settings of a flow.
pub(crate) fn read(flow: &mut Section<'_>) -> Config {
    let mut table = flow.field("tcp").and_then(|field| field.section("in tcp of [[flow]]"));
    let [
        mtu,
        initial_window,
        timestamps,
        sack,
        ecn,
        ack_every,
        ack_delay,
        quick_acks,
        min_rto,
        initial_rto,
        max_rto,
        receive_buffer,
        receive_buffer_max,
        send_buffer,
        slow_start_after_idle,
        pacing,
        opener,
    ] = KEYS.map(|key| {
        let (flat, inner) = (flow.field(key), table.as_mut().and_then(|table| table.field(key)));
        if let (Some(flat), Some(_)) = (&flat, &inner) {
            flat.error("is given twice, here and in `tcp`");
        }
        inner.or(flat)
    });
    if let Some(table) = table {
        table.finish();
    }
    let default = Config::default();
    let whole = |field: Option<Field<'_>>, most: u64, least: u64, default: u32| {
        // `most` is below 2^32.
        field.and_then(|f| f.whole(least..=most)).map_or(default, |number| number as u32)
    };
    let flag = |field: Option<Field<'_>>, default| field.and_then(|f| f.flag()).unwrap_or(default);
    let span = |field: &Option<Field<'_>>, least, default| {
        let read = field.as_ref().and_then(|f| f.quantity(least..=Span::from_secs(3_600)));
        read.unwrap_or(default)
    };
    let mtu = mtu.and_then(|f| f.quantity(MTU)).unwrap_or(default.mtu);
    let window = |field: &Option<Field<'_>>| {
        let field = field.as_ref()?;
        let size = field.quantity(Bytes::new(1)..=MOST_WINDOW)?;
        if size < mtu {
            field.error(format!("{size} is less than one packet ({mtu}): the flow would stall"));
        }
        Some(size)
    };
    let buffer = window(&receive_buffer).unwrap_or(default.receive_buffer);
    let buffer_max = window(&receive_buffer_max).unwrap_or(default.receive_buffer_max.max(buffer));
    if let (Some(field), true) = (&receive_buffer_max, buffer_max < buffer) {
        field.error(format!("{buffer_max} is less than receive_buffer, which is {buffer}"));
    }
    let unlimited = |f: &Field<'_>| f.is_text() && f.text("") == Some("unlimited");
    let send_buffer = match send_buffer {
        Some(field) if !unlimited(&field) => window(&Some(field)).unwrap_or(Bytes::MAX),
        _ => default.send_buffer,
    };
    let least_rto = span(&min_rto, LEAST_SPAN, default.min_rto);
    let most_rto = span(&max_rto, LEAST_SPAN, default.max_rto);
    if let (Some(field), true) = (max_rto.as_ref().or(min_rto.as_ref()), most_rto < least_rto) {
        field.error(format!("max_rto, {most_rto}, is less than min_rto, {least_rto}"));
    }
    Config {
        mtu,
        initial_window: whole(initial_window, 65_535, 1, default.initial_window),
        timestamps: flag(timestamps, default.timestamps),
        sack: flag(sack, default.sack),
        ecn: flag(ecn, default.ecn),
        ack_every: whole(ack_every, 1_000, 1, default.ack_every),
        ack_delay: span(&ack_delay, Span::ZERO, default.ack_delay),
        quick_acks: whole(quick_acks, 65_535, 0, default.quick_acks),
        min_rto: least_rto,
        initial_rto: span(&initial_rto, LEAST_SPAN, default.initial_rto),
        max_rto: most_rto,
        receive_buffer: buffer,
        receive_buffer_max: buffer_max,
        send_buffer,
        slow_start_after_idle: flag(slow_start_after_idle, default.slow_start_after_idle),
        pacing: flag(pacing, default.pacing),
        opener: match opener.and_then(|f| f.word(&["sender", "receiver"])) {
            Some("receiver") => Opener::Receiver,
            Some(_) => Opener::Sender,
            None => default.opener,
        },
    }
}
