//! The settings of a TCP connection, flat in `[[flow]]` or in its table `tcp`.

mod keys;

use ranpace_cc::Algorithm;
use ranpace_tcp::{Config, EcnFeedback};
use ranpace_units::{Bytes, Span};

use self::keys::*;
pub(crate) use self::keys::{KEYS, MTU};
use crate::flow::keys as flow;
use crate::key::{Key, Kind as _, Size};
use crate::reader::{Field, Section};
use crate::settings::Settings;

/// Reads the settings of a flow, and `ack_every` if it is written; otherwise the algorithm's preference for the receiver applies,
/// if it has one, as it does for `ecn`.
pub(crate) fn read(section: &mut Section<'_>, algorithm: Option<&Algorithm>) -> (Config, Option<u32>) {
    let wanted = algorithm.and_then(Algorithm::ack_every);
    let mut settings = Settings::open(section, &flow::TCP, &[KEYS]);
    let mtu = settings.get(&MTU).unwrap_or(Config::default().mtu);
    let mut config = match settings.get(&STACK) {
        Stack::Ns3 => Config { mtu, ..Config::ns_3_26() },
        Stack::Linux => Config { mtu, ..Config::default() },
    };
    settings.set(&mut config.initial_window, &INITIAL_WINDOW);
    let ack_every = settings.get(&ACK_EVERY);
    config.ack_every = ack_every.or(wanted).unwrap_or(config.ack_every);
    settings.set(&mut config.quick_acks, &QUICK_ACKS);
    settings.set(&mut config.timestamps, &TIMESTAMPS);
    let counts_marks = algorithm.is_some_and(|algorithm| algorithm.ecn().counts_marks());
    config.ecn = match settings.get(&ECN) {
        Some(ecn) => ecn.unwrap_or(EcnFeedback::Accurate),
        None if counts_marks => EcnFeedback::Accurate,
        None => EcnFeedback::Off,
    };
    settings.set(&mut config.ace, &ACE);
    settings.set(&mut config.ecn_option, &ECN_OPTION);
    settings.set(&mut config.slow_start_after_idle, &SLOW_START_AFTER_IDLE);
    settings.set(&mut config.gso, &GSO);
    settings.set(&mut config.pacing, &PACING);
    settings.set(&mut config.sack, &SACK);
    settings.set(&mut config.inflate_own, &INFLATE_OWN);
    settings.set(&mut config.ack_delay, &ACK_DELAY);
    settings.set(&mut config.rto, &RTO);
    settings.set(&mut config.rtt_sample, &RTT_SAMPLE);
    settings.set(&mut config.control_rtt, &CONTROL_RTT);
    settings.set(&mut config.growth, &GROWTH);
    settings.set(&mut config.opener, &OPENER);
    if let Some(granularity) = settings.get(&TIMESTAMP_GRANULARITY) {
        config.timestamp_granularity = granularity.unwrap_or(Span::ZERO);
    }
    read_timeouts(&mut settings, &mut config);
    read_buffers(&mut settings, &mut config);
    settings.finish();
    (config, ack_every)
}

fn read_timeouts(settings: &mut Settings<'_, '_>, config: &mut Config) {
    settings.set(&mut config.initial_rto, &INITIAL_RTO);
    let (least, most) = (settings.find(&MIN_RTO), settings.find(&MAX_RTO));
    for (field, key, place) in
        [(&least, &MIN_RTO, &mut config.min_rto), (&most, &MAX_RTO, &mut config.max_rto)]
    {
        *place = field.as_ref().and_then(|field| key.kind.read(field)).unwrap_or(*place);
    }
    if let (Some(field), true) = (most.or(least), config.max_rto < config.min_rto) {
        field.error(format!("max_rto, {}, is less than min_rto, {}", config.max_rto, config.min_rto));
    }
}

fn read_buffers(settings: &mut Settings<'_, '_>, config: &mut Config) {
    let mtu = config.mtu;
    if let Some(field) = settings.find(&RECEIVE_BUFFER) {
        config.receive_buffer = window(&RECEIVE_BUFFER, &field, mtu).unwrap_or(config.receive_buffer);
    }
    // Autotuning must not reduce a buffer that is larger than its maximum.
    config.receive_buffer_max = config.receive_buffer_max.max(config.receive_buffer);
    if let Some(field) = settings.find(&RECEIVE_BUFFER_MAX) {
        let most = window(&RECEIVE_BUFFER_MAX, &field, mtu).unwrap_or(config.receive_buffer_max);
        config.receive_buffer_max = most;
        if most < config.receive_buffer {
            field.error(format!("{most} is less than receive_buffer, which is {}", config.receive_buffer));
        }
    }
    if let Some(field) = settings.find(&SEND_BUFFER) {
        let size = SEND_BUFFER.kind.read(&field);
        if let Some(Some(size)) = size {
            holds_a_packet(&field, size, mtu);
        }
        config.send_buffer = size.map_or(config.send_buffer, |size| size.unwrap_or(Bytes::MAX));
    }
}

/// A buffer that holds at least one packet.
fn window(key: &Key<Size>, field: &Field<'_>, mtu: Bytes) -> Option<Bytes> {
    let size = key.kind.read(field)?;
    holds_a_packet(field, size, mtu);
    Some(size)
}

fn holds_a_packet(field: &Field<'_>, size: Bytes, mtu: Bytes) {
    if size < mtu {
        field.error(format!("{size} is less than one packet ({mtu}): the flow would stall"));
    }
}

#[cfg(test)]
mod tests {
    use ranpace_tcp::{ControlRtt, Growth, RtoRule, RttSample};

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
    fn given_keys_override_the_stack() {
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
