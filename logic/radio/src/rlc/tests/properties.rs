//! Any sequence of steps: every byte is accounted for, deliveries are in order, buffers stay within their limits.

use proptest::prelude::*;
use ranpace_link::{Limit, QueueConfig};
use ranpace_units::{Bytes, Span, Time};

use crate::rlc::testing::{Cell, Log, TestPacket};
use crate::rlc::{Channel, Config, DropCause, Format, Mode, Pdu, Timers};

#[derive(Clone, Debug)]
enum Step {
    Offer(u64),
    Wait(u64),
    Build(u64),
    /// A PDU under way, given by index, is received or lost.
    Receive(usize),
    Lose(usize),
    StatusPdu(u64),
    /// A report under way is received or lost.
    Hear(usize, bool),
    Restart(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop_oneof![Just(0u64), 1..200u64, 1000..1500u64, Just(65_536u64)].prop_map(Step::Offer),
        4 => (0..30_000u64).prop_map(Step::Wait),
        8 => prop_oneof![0..10u64, 10..400u64, 400..20_000u64].prop_map(Step::Build),
        6 => (0..6usize).prop_map(Step::Receive),
        2 => (0..6usize).prop_map(Step::Lose),
        3 => (0..40u64).prop_map(Step::StatusPdu),
        3 => (0..3usize, any::<bool>()).prop_map(|(n, comes)| Step::Hear(n, comes)),
        1 => any::<bool>().prop_map(Step::Restart),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let timers = (0..40u64, 0..20u64, 1..50u64, 0..5u8, 0..5u32, 1..40u32).prop_map(|t| Timers {
        reordering: Span::from_millis(t.0),
        status_prohibit: Span::from_millis(t.1),
        poll_retransmit: Span::from_millis(t.2),
        max_retransmissions: t.3.checked_sub(1),
        poll_pdus: t.4,
        poll_bytes: Bytes::new(5000),
        window: t.5,
        unacknowledged_report: Span::from_millis(t.2 % 3),
        poll_sends_all: t.2 % 2 == 0,
    });
    let limit =
        prop_oneof![Just(Limit::Unlimited), (0..100_000u64).prop_map(|b| Limit::Bytes(Bytes::new(b)))];
    let buffer = (limit, 0..3usize).prop_map(|(limit, kind)| {
        [QueueConfig::drop_tail, QueueConfig::codel, QueueConfig::abc][kind](limit)
    });
    let discard = prop::option::of((0..100u64).prop_map(Span::from_millis));
    let mode = prop_oneof![Just(Mode::Acknowledged), Just(Mode::Unacknowledged)];
    let format = prop_oneof![Just(Format::Lte), Just(Format::Nr)];
    (mode, buffer, discard, format, timers).prop_map(|(mode, buffer, discard, format, timers)| Config {
        mode,
        buffer,
        above: None,
        discard,
        format,
        timers,
    })
}

/// Runs the steps and checks after each.
fn play(config: &Config, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut channel = Channel::new(config, 3);
    let (mut log, mut now, mut offered) = (Log::default(), Time::ZERO, (Bytes::ZERO, 0));
    let mut air: Vec<Pdu> = Vec::new();
    let mut reports: Vec<Pdu> = Vec::new();
    for step in steps {
        match step {
            Step::Offer(size) => {
                offered = (offered.0 + Bytes::new(size), offered.1 + 1);
                channel.enqueue(now, TestPacket { id: offered.1, size }, &mut log);
            }
            Step::Wait(us) => {
                now += Span::from_micros(us);
                if us % 7 != 0 && channel.next_deadline() <= now {
                    channel.on_deadline(now, &mut log);
                    prop_assert!(channel.next_deadline() > now);
                }
            }
            Step::Build(grant) => {
                if let Some(pdu) = channel.build(now, Bytes::new(grant), &mut log) {
                    prop_assert!(pdu.size() <= Bytes::new(grant) && pdu.payload() > Bytes::ZERO);
                    air.push(pdu);
                    channel.on_slot(now, Span::from_millis(1), Bytes::new(grant));
                }
            }
            Step::Receive(n) if n < air.len() => channel.on_received(now, air.remove(n), &mut log),
            Step::Lose(n) if n < air.len() => channel.on_lost(now, air.remove(n), &mut log),
            Step::StatusPdu(grant) => reports.extend(channel.build_status(now, Bytes::new(grant))),
            Step::Hear(n, true) if n < reports.len() => channel.on_status(now, reports.remove(n)),
            Step::Hear(n, false) if n < reports.len() => channel.on_status_lost(reports.remove(n)),
            Step::Restart(keep) => channel.restart(now, keep, &mut log),
            _ => {}
        }
        let counters = channel.counters();
        prop_assert_eq!(offered.0, log.bytes() + channel.waiting());
        prop_assert_eq!((counters.offered.bytes, counters.offered.number), offered);
        prop_assert_eq!(counters.delivered.number, log.delivered.len() as u64);
        prop_assert_eq!(counters.all_dropped().number, log.dropped.len() as u64);
        prop_assert_eq!(counters.delivered.bytes + counters.all_dropped().bytes, log.bytes());
        if let QueueConfig::DropTail { limit, .. } | QueueConfig::CoDel { limit, .. } = &config.buffer {
            prop_assert!(limit.holds(channel.buffered(), 0));
        }
    }
    // After a grant of `wanted`, nothing is left that could be sent at once.
    let wanted = channel.wanted();
    let mut left = wanted;
    while let Some(pdu) = channel.build(now, left, &mut log) {
        left -= pdu.size();
        air.push(pdu);
    }
    prop_assert!(config.mode == Mode::Acknowledged || channel.wanted().is_zero());
    prop_assert!(log.dropped_for(DropCause::Radio).is_empty() || config.mode == Mode::Unacknowledged);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_byte_is_unaccounted(config in config(), steps in prop::collection::vec(step(), 0..300)) {
        play(&config, steps)?;
    }

    /// Acknowledged mode delivers everything that the buffer accepted, whatever the grants and losses, unless the bearer fails.
    #[test]
    fn acknowledged_mode_delivers_everything(
        seed in any::<u64>(),
        loss in 0.0..0.5f64,
        format in prop_oneof![Just(Format::Lte), Just(Format::Nr)],
        timers in prop_oneof![Just(Timers::NS3), Just(Timers::TS36331), Just(Timers::MMWAVE)],
        window in 1..100u32,
        // Not 0: nothing waits for an empty packet, so `drain` would not deliver it.
        steps in prop::collection::vec((prop::option::of(1..3000u64), prop_oneof![0..20u64, 0..3000u64]), 0..300),
    ) {
        let timers = Timers { window, max_retransmissions: None, ..timers };
        let mut cell = Cell::new(&Config { format, timers, ..Config::am(Bytes::new(50_000)) }, seed);
        for (packet, grant) in steps {
            if let Some(size) = packet {
                cell.offer(size);
            }
            cell.tti(grant, loss);
        }
        cell.drain();
        let refused = cell.log.dropped_for(DropCause::Overflow).len();
        prop_assert_eq!(refused, cell.log.dropped.len());
        prop_assert_eq!((cell.log.delivered.len() + refused) as u64, cell.offered());
        // Then nothing is left to do.
        (0..100).for_each(|_| cell.tti(1000, 0.0));
        prop_assert_eq!(cell.channel.next_deadline(), Time::MAX);
        prop_assert!(cell.channel.to_be_sent().is_zero());
    }

    /// Unacknowledged mode delivers what was not lost, and recovers from any outage.
    #[test]
    fn unacknowledged_mode_delivers_the_rest(
        seed in any::<u64>(),
        loss in 0.0..1.0f64,
        steps in prop::collection::vec((prop::option::of(0..3000u64), 0..3000u64), 0..300),
    ) {
        let mut cell = Cell::new(&Config::um(Bytes::new(50_000)), seed);
        for (packet, grant) in steps {
            if let Some(size) = packet {
                cell.offer(size);
            }
            cell.tti(grant, loss);
        }
        cell.offer(10);
        cell.drain();
        prop_assert_eq!((cell.log.delivered.len() + cell.log.dropped.len()) as u64, cell.offered());
        prop_assert_eq!(cell.log.delivered.last().map(|d| d.1.id), Some(cell.offered() - 1));
    }
}
