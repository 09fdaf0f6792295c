//! The settings of a TCP connection, flat in `[[flow]]` or in its table `tcp`.

use core::ops::RangeInclusive;

use ranpace_tcp::{Config, ControlRtt, Growth, Opener, RtoRule, RttSample};
use ranpace_units::{Bytes, Span};

use crate::link::LEAST_SPAN;
use crate::reader::{Field, Section};

/// The keys of the settings; all but `mtu` are TCP's alone.
pub(crate) const KEYS: [&str; 25] = [
    "mtu",
    "initial_window",
    "timestamps",
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
    "gso",
    "pacing",
    "opener",
    "stack",
    "sack",
    "inflate_own",
    "rtt_sample",
    "timestamp_granularity",
    "rto",
    "control_rtt",
    "growth",
];

/// Smallest and largest IP packet: ours, and what its length field holds (RFC 791).
const MTU: RangeInclusive<Bytes> = Bytes::new(100)..=Bytes::new(65_535);
/// Shortest timeouts: a tick of Linux's clock at its fastest (HZ = 1000), which its TCP timers count in. Connections with shorter
/// ones would do little else than run out.
const LEAST_TIMEOUT: Span = Span::from_millis(1);
/// Largest window that TCP can announce (RFC 7323 section 2.3).
const MOST_WINDOW: Bytes = Bytes::new(1 << 30);

/// Reads the settings of a flow, and `ack_every` as it is written; without it the receiver acknowledges as the algorithm wants it,
/// if it wants something.
pub(crate) fn read(flow: &mut Section<'_>, wanted: Option<u32>) -> (Config, Option<u32>) {
    let mut table = flow.field("tcp").and_then(|field| field.section("in tcp of [[flow]]"));
    let [
        mtu,
        initial_window,
        timestamps,
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
        gso,
        pacing,
        opener,
        stack,
        sack,
        inflate_own,
        rtt_sample,
        timestamp_granularity,
        rto,
        control_rtt,
        growth,
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
    let mtu = mtu.and_then(|f| f.quantity(MTU)).unwrap_or(Config::default().mtu);
    let mut config = match stack.and_then(|f| f.word(&["linux", "ns-3.26"])) {
        Some("ns-3.26") => Config { mtu, ..Config::ns_3_26() },
        _ => Config { mtu, ..Config::default() },
    };

    whole(&mut config.initial_window, initial_window, 1..=65_535);
    let ack_every = ack_every.and_then(|f| f.whole(1..=1_000)).and_then(|number| u32::try_from(number).ok());
    config.ack_every = ack_every.or(wanted).unwrap_or(config.ack_every);
    whole(&mut config.quick_acks, quick_acks, 0..=65_535);
    flag(&mut config.timestamps, timestamps);
    flag(&mut config.ecn, ecn);
    flag(&mut config.slow_start_after_idle, slow_start_after_idle);
    flag(&mut config.gso, gso);
    flag(&mut config.pacing, pacing);
    flag(&mut config.sack, sack);
    flag(&mut config.inflate_own, inflate_own);
    span(&mut config.ack_delay, &ack_delay, Span::ZERO);
    span(&mut config.initial_rto, &initial_rto, LEAST_TIMEOUT);
    span(&mut config.min_rto, &min_rto, LEAST_TIMEOUT);
    span(&mut config.max_rto, &max_rto, LEAST_TIMEOUT);
    match rto.and_then(|f| f.word(&["linux", "rfc6298"])) {
        Some("rfc6298") => config.rto = RtoRule::Rfc6298,
        Some(_) => config.rto = RtoRule::Linux,
        None => {}
    }
    match rtt_sample.and_then(|f| f.word(&["newest", "oldest"])) {
        Some("oldest") => config.rtt_sample = RttSample::Oldest,
        Some(_) => config.rtt_sample = RttSample::Newest,
        None => {}
    }
    match control_rtt.and_then(|f| f.word(&["sample", "smoothed"])) {
        Some("smoothed") => config.control_rtt = ControlRtt::Smoothed,
        Some(_) => config.control_rtt = ControlRtt::Sample,
        None => {}
    }
    match growth.and_then(|f| f.word(&["segments", "acks", "slow_start_acks"])) {
        Some("acks") => config.growth = Growth::Acks,
        Some("slow_start_acks") => config.growth = Growth::SlowStartAcks,
        Some(_) => config.growth = Growth::Segments,
        None => {}
    }
    match timestamp_granularity {
        Some(field) if field.is_text() && field.text("") == Some("exact") => {
            config.timestamp_granularity = Span::ZERO;
        }
        field => span(&mut config.timestamp_granularity, &field, LEAST_SPAN),
    }
    if let (Some(field), true) = (max_rto.or(min_rto), config.max_rto < config.min_rto) {
        field.error(format!("max_rto, {}, is less than min_rto, {}", config.max_rto, config.min_rto));
    }

    window(&mut config.receive_buffer, &receive_buffer, mtu);
    // A larger buffer than autotuning would ever reach is not made smaller by it.
    config.receive_buffer_max = config.receive_buffer_max.max(config.receive_buffer);
    window(&mut config.receive_buffer_max, &receive_buffer_max, mtu);
    if let (Some(field), true) = (receive_buffer_max, config.receive_buffer_max < config.receive_buffer) {
        let (most, first) = (config.receive_buffer_max, config.receive_buffer);
        field.error(format!("{most} is less than receive_buffer, which is {first}"));
    }
    match send_buffer {
        Some(field) if field.is_text() && field.text("") == Some("unlimited") => {
            config.send_buffer = Bytes::MAX;
        }
        field => window(&mut config.send_buffer, &field, mtu),
    }

    match opener.and_then(|f| f.word(&["sender", "receiver"])) {
        Some("receiver") => config.opener = Opener::Receiver,
        Some(_) => config.opener = Opener::Sender,
        None => {}
    }
    (config, ack_every)
}

fn whole(place: &mut u32, field: Option<Field<'_>>, range: RangeInclusive<u64>) {
    let read = field.and_then(|f| f.whole(range)).and_then(|number| u32::try_from(number).ok());
    *place = read.unwrap_or(*place);
}

fn flag(place: &mut bool, field: Option<Field<'_>>) {
    *place = field.and_then(|f| f.flag()).unwrap_or(*place);
}

fn span(place: &mut Span, field: &Option<Field<'_>>, least: Span) {
    let read = field.as_ref().and_then(|f| f.quantity(least..=Span::from_secs(3_600)));
    *place = read.unwrap_or(*place);
}

/// A buffer that holds at least a packet.
fn window(place: &mut Bytes, field: &Option<Field<'_>>, mtu: Bytes) {
    let Some(field) = field else { return };
    let Some(size) = field.quantity(Bytes::new(1)..=MOST_WINDOW) else { return };
    if size < mtu {
        field.error(format!("{size} is less than one packet ({mtu}): the flow would stall"));
    }
    *place = size;
}

#[cfg(test)]
mod tests {
    use super::*;

    struct None;

    impl crate::TraceSource for None {
        fn load(&mut self, name: &str) -> Result<std::sync::Arc<ranpace_link::Trace>, String> {
            Err(format!("no trace {name}"))
        }
    }

    /// The settings of a flow with these keys.
    fn config(keys: &str) -> Config {
        let text = format!(
            "duration = \"1s\"\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\nduplex = true\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"newreno\"\n{keys}\n"
        );
        let scenario = crate::parse(&text, "test.toml", &mut None).unwrap_or_else(|error| panic!("{error}"));
        let crate::Transport::Tcp { config, .. } = &scenario.flows[0].transport else { panic!("no TCP") };
        config.clone()
    }

    #[test]
    fn an_algorithm_that_wants_every_packet_acknowledged_has_it_unless_the_scenario_says_otherwise() {
        let flow = |keys: &str| {
            let text = format!(
                "duration = \"1s\"\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\n\
                 delay = \"1ms\"\nduplex = true\n[[flow]]\nfrom = \"a\"\nto = \"b\"\n{keys}\n"
            );
            let scenario =
                crate::parse(&text, "test.toml", &mut None).unwrap_or_else(|error| panic!("{error}"));
            match &scenario.flows[0].transport {
                crate::Transport::Tcp { config, .. } => Some(config.ack_every),
                crate::Transport::Quic { config, .. } => config.ack_every,
                other => panic!("{other:?}"),
            }
        };
        for (keys, expected) in [
            ("cc = \"cubic\"", Some(2)),
            ("cc = \"vivace\"", Some(1)),
            ("cc = \"vivace\"\nack_every = 2", Some(2)),
            ("cc = \"vivace\"\ntcp = { ack_every = 3 }", Some(3)),
            ("cc = \"cubic\"\ntransport = \"quic\"", Option::None),
            ("cc = \"vivace\"\ntransport = \"quic\"", Some(1)),
            ("cc = \"vivace\"\ntransport = \"quic\"\nquic = { ack_every = 4 }", Some(4)),
        ] {
            assert_eq!(flow(keys), expected, "{keys}");
        }
    }

    #[test]
    fn what_is_given_overrides_the_stack() {
        let ns_3 = Config::ns_3_26();
        for (keys, expected) in [
            ("stack = \"linux\"", Config::default()),
            ("stack = \"ns-3.26\"", ns_3.clone()),
            (
                "stack = \"ns-3.26\"\nack_delay = \"40ms\"\nmtu = \"1452B\"\ninitial_window = 1",
                Config {
                    ack_delay: Span::from_millis(40),
                    mtu: Bytes::new(1_452),
                    initial_window: 1,
                    ..ns_3.clone()
                },
            ),
            (
                "tcp = { stack = \"ns-3.26\", sack = true, timestamp_granularity = \"exact\", rto = \"linux\", \
                 rtt_sample = \"newest\", control_rtt = \"sample\", growth = \"segments\" }",
                Config {
                    sack: true,
                    timestamp_granularity: Span::ZERO,
                    rto: RtoRule::Linux,
                    rtt_sample: RttSample::Newest,
                    control_rtt: ControlRtt::Sample,
                    growth: Growth::Segments,
                    ..ns_3
                },
            ),
            (
                "sack = false\ninflate_own = true\ntimestamp_granularity = \"4ms\"\nrtt_sample = \"oldest\"\n\
                 rto = \"rfc6298\"\ncontrol_rtt = \"smoothed\"\ngrowth = \"acks\"",
                Config {
                    sack: false,
                    inflate_own: true,
                    timestamp_granularity: Span::from_millis(4),
                    rtt_sample: RttSample::Oldest,
                    rto: RtoRule::Rfc6298,
                    control_rtt: ControlRtt::Smoothed,
                    growth: Growth::Acks,
                    ..Config::default()
                },
            ),
        ] {
            assert_eq!(config(keys), expected, "{keys}");
        }
    }
}
