//! Tests of both endpoints over a pipe: Linux's behaviour point by point, and invariants under any network.

use proptest::collection::vec;
use proptest::prelude::*;
use ranpace_cc::*;
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::config::Opener;
use crate::testing::*;
use crate::{Config, EcnFeedback, Kind, Receiver, Segment};

const RTT: Span = Span::from_millis(100);

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

#[test]
fn data_arrive_whatever_the_control() {
    for name in ["newreno", "cubic", "bbr1", "vegas", "westwood"] {
        for places in [&[][..], &[0], &[9], &[50, 51, 52], &[20, 40, 60, 80, 99]] {
            let mut pipe = Pipe::named(&Config::default(), name, lose(places));
            pipe.sender.write(segments(100));
            pipe.finish(Span::from_secs(10));
            let again = pipe.retransmissions();
            assert_eq!(again.len(), places.len(), "{name} {places:?} {again:?} {:?}", pipe.sender.stats());
        }
    }
}

#[test]
fn initial_window_is_ten_segments() {
    let mut pipe = Pipe::named(&Config::default(), "newreno", clean());
    pipe.sender.write(Bytes::MAX);
    pipe.run(RTT + ms(20));
    assert_eq!(pipe.sent.len(), 10);
}

#[test]
fn first_sample_then_losses_then_growth() {
    // The order of the calls of one acknowledgement, as `ranpace_cc`'s interface documents it.
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(&Config::default(), control, lose(&[12]));
    pipe.sender.write(segments(60));
    pipe.finish(Span::from_secs(5));
    let calls = calls.all();
    let at = calls.iter().position(|(_, call, _)| matches!(call, Call::Congestion { .. })).unwrap();
    let now = calls[at].0;
    let kinds: Vec<_> = calls
        .iter()
        .filter(|(time, ..)| *time == now)
        .map(|(_, call, _)| match call {
            Call::Packet { fate: PacketOutcome::Lost, .. } => "lost",
            Call::Packet { .. } => "acked",
            Call::Sample { .. } => "sample",
            Call::Congestion { .. } => "congestion",
            Call::Ack { .. } => "ack",
            _ => "other",
        })
        .collect();
    let lost = kinds.iter().position(|&kind| kind == "lost").unwrap();
    assert_eq!(kinds[lost - 2..lost + 2], ["acked", "sample", "lost", "congestion"], "{kinds:?}");
    // PRR owns the window from then on: no growth until the end of recovery.
    let until = calls[at..].iter().position(|(_, call, _)| *call == Call::Recovered).unwrap();
    assert!(!calls[at..at + until].iter().any(|(_, call, _)| matches!(call, Call::Ack { .. })));
}

#[test]
fn a_loss_that_is_ignored_changes_nothing_but_the_retransmission() {
    let ignore: fn(&Congestion, &Window) -> LossResponse = |_, _| LossResponse::Ignore;
    for places in [&[15][..], &[12, 14, 16], &[30, 31, 60, 61]] {
        let (control, calls) = Scripted::new(ignore);
        let mut pipe = Pipe::new(&Config::default(), control, lose(places));
        pipe.sender.write(segments(200));
        pipe.finish(Span::from_secs(10));
        let window = pipe.sender.window();
        assert_eq!(window.ssthresh, f64::INFINITY, "slow start goes on: {places:?}");
        let windows: Vec<_> = calls.all().iter().map(|(.., w)| w.cwnd).collect();
        assert!(windows.is_sorted(), "{places:?}: {windows:?}");
        assert!(calls.congestions().iter().all(|&(_, _, first)| first));
        assert_eq!(pipe.sender.stats().retransmitted, places.len() as u64);
    }
}

#[test]
fn a_timeout_that_is_ignored_leads_back_to_the_window() {
    let (control, calls) = Scripted::new(|_, _| LossResponse::Ignore);
    // A whole flight is lost, together with the probes.
    let mut pipe = Pipe::new(
        &Config::default(),
        control,
        Box::new(|way, place, _| {
            if way == Way::Forth && (30..70).contains(&place) { PipeAction::Drop } else { PipeAction::Pass }
        }),
    );
    pipe.sender.write(segments(300));
    pipe.finish(Span::from_secs(60));
    assert!(pipe.sender.stats().timeouts > 0);
    let calls = calls.all();
    let (.., prior) = calls
        .iter()
        .find(|(_, c, _)| matches!(c, Call::Congestion { kind: Signal::Timeout { .. }, .. }))
        .unwrap();
    assert!(pipe.sender.window().ssthresh >= prior.cwnd);
    assert!(calls.iter().any(|(.., w)| w.cwnd == 1.0), "slow start begins from one segment");
}

#[test]
fn an_ignored_episode_gives_way_to_one_that_is_not() {
    let (control, calls) = Scripted::new(|event, w| {
        if event.newest_sent_at < Time::ZERO + ms(250) { LossResponse::Ignore } else { halve(event, w) }
    });
    let mut pipe = Pipe::new(&Config::default(), control, lose(&[12, 35]));
    pipe.sender.write(segments(200));
    pipe.finish(Span::from_secs(10));
    assert_eq!(calls.congestions(), [(Signal::Loss, 1, true), (Signal::Loss, 1, true)]);
    assert!(pipe.sender.window().ssthresh.is_finite());
}

#[test]
fn own_leaves_the_window_to_the_control() {
    let (control, calls) = Scripted::new(|_, _| LossResponse::Own);
    let mut pipe = Pipe::new(&Config::default(), control, lose(&[12, 13]));
    pipe.sender.write(segments(100));
    pipe.finish(Span::from_secs(10));
    assert!(calls.all().iter().map(|(.., w)| w.cwnd).is_sorted());
    assert_eq!(pipe.sender.window().ssthresh, f64::INFINITY);
}

#[test]
fn losses_beyond_an_episode_begin_another_one() {
    // The second loss is of data sent after the first was detected.
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(&Config::default(), control, lose(&[30, 33, 50, 52, 55]));
    pipe.sender.write(segments(300));
    pipe.finish(Span::from_secs(10));
    assert_eq!(pipe.sender.stats().timeouts, 0);
    assert_eq!(pipe.sender.stats().retransmitted, 5);
    let firsts = calls.congestions().iter().filter(|(_, _, first)| *first).count();
    assert!((1..=2).contains(&firsts), "{:?}", calls.congestions());
}

#[test]
fn prr_comes_down_to_the_threshold() {
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(&Config::default(), control, lose(&[100]));
    pipe.sender.write(segments(400));
    pipe.finish(Span::from_secs(10));
    let calls = calls.all();
    let prior = calls.iter().find(|(_, c, _)| matches!(c, Call::Congestion { .. })).unwrap().2;
    let after = calls.iter().find(|(_, c, _)| *c == Call::Recovered).unwrap().2;
    assert_eq!(after.cwnd, (prior.cwnd / 2.0).max(2.0));
    assert_eq!(after.cwnd, after.ssthresh);
}

#[test]
fn tail_loss_is_repaired_by_a_probe_and_answered() {
    // The last segment is lost without any acknowledgement; a probe reveals it, and the window is reduced once more is
    // acknowledged.
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(&Config::default(), control, lose(&[9]));
    pipe.sender.write(segments(10));
    pipe.finish(Span::from_secs(5));
    let stats = *pipe.sender.stats();
    assert_eq!((stats.probes, stats.timeouts, stats.retransmitted), (1, 0, 1));
    assert_eq!(calls.congestions(), [], "an ACK at the probe's end does not tell which copy came");
    pipe.sender.write(segments(1));
    pipe.finish(Span::from_secs(6));
    assert_eq!(calls.congestions(), [(Signal::Loss, 1, true)]);
    assert_eq!(pipe.sender.window().cwnd, pipe.sender.window().ssthresh);
    assert_eq!(pipe.sender.state(), State::Open);
}

#[test]
fn a_probe_whose_copies_both_arrive_costs_nothing() {
    // The acknowledgements of the last flight are late, not lost.
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(
        &Config::default(),
        control,
        Box::new(|way, place, _| {
            if way == Way::Back && (1..30).contains(&place) {
                PipeAction::Late(ms(170))
            } else {
                PipeAction::Pass
            }
        }),
    );
    pipe.sender.write(segments(10));
    pipe.run(Span::from_secs(2));
    assert_eq!(pipe.sender.stats().probes, 1);
    pipe.sender.write(segments(10));
    pipe.finish(Span::from_secs(5));
    assert_eq!(calls.congestions(), []);
}

#[test]
fn the_probe_comes_at_the_timeout_where_two_rtts_are_longer() {
    // RTT 300 ms: 2 SRTT is 602 ms, RTO is near 500 ms after some samples. Linux probes then.
    let mut pipe = Pipe::named(
        &Config::default(),
        "newreno",
        Box::new(|way, _, segment| match way {
            Way::Back => PipeAction::Late(ms(200)),
            Way::Forth if segment.seq >= 400 * 1448 && !segment.retransmission => PipeAction::Drop,
            Way::Forth => PipeAction::Pass,
        }),
    );
    pipe.sender.write(segments(401));
    pipe.finish(Span::from_secs(20));
    assert_eq!((pipe.sender.stats().probes, pipe.sender.stats().timeouts), (1, 0));
}

#[test]
fn timeouts_back_off_and_reduce_once() {
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(
        &Config::default(),
        control,
        Box::new(|way, _, segment| {
            let dead = (Time::ZERO + ms(250)..Time::ZERO + Span::from_secs(5)).contains(&segment.timestamp);
            if way == Way::Forth && dead { PipeAction::Drop } else { PipeAction::Pass }
        }),
    );
    pipe.sender.write(segments(100));
    pipe.finish(Span::from_secs(60));
    let timeouts: Vec<_> = calls
        .all()
        .into_iter()
        .filter_map(|(at, call, _)| match call {
            Call::Congestion { kind: Signal::Timeout { count }, first, .. } => Some((at, count, first)),
            _ => None,
        })
        .collect();
    assert!(timeouts.len() >= 4, "{timeouts:?}");
    for (index, &(_, count, first)) in timeouts.iter().enumerate() {
        assert_eq!((count, first), (index as u32 + 1, index == 0), "{timeouts:?}");
    }
    let gaps: Vec<_> = timeouts.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    for pair in gaps.windows(2) {
        assert_eq!(pair[1], pair[0] * 2, "{gaps:?}");
    }
    // The first segment is sent at once, alone.
    for &(at, ..) in &timeouts {
        let una = pipe.retransmissions().iter().filter(|(sent, _)| *sent == at).count();
        assert_eq!(una, 1, "{at:?}");
    }
}

#[test]
fn a_delay_spike_is_recognised_as_no_loss() {
    // F-RTO and Eifel: everything is delayed for a second; the timeout is undone and the window restored.
    for timestamps in [true, false] {
        let config = Config { timestamps, ..Config::default() };
        let (control, calls) = Scripted::new(halve);
        let mut held = Time::ZERO;
        let mut pipe = Pipe::new(
            &config,
            control,
            Box::new(move |way, place, segment| {
                if way == Way::Forth && place == 40 {
                    held = segment.timestamp + ms(1_200);
                }
                if way == Way::Forth && place >= 40 && segment.timestamp < held {
                    PipeAction::Late(held - segment.timestamp)
                } else {
                    PipeAction::Pass
                }
            }),
        );
        pipe.sender.write(segments(150));
        pipe.finish(Span::from_secs(10));
        assert!(pipe.sender.stats().timeouts > 0);
        assert!(pipe.sender.stats().undone > 0, "timestamps {timestamps}");
        let prior = calls.count(|call| matches!(call, Call::Spurious { .. }));
        assert!(prior > 0);
        assert_eq!(pipe.sender.window().ssthresh, f64::INFINITY, "timestamps {timestamps}");
        let spurious = calls.count(|call| matches!(call, Call::Packet { fate: PacketOutcome::Spurious, .. }));
        let lost = calls.count(|call| matches!(call, Call::Packet { fate: PacketOutcome::Lost, .. }));
        assert!(spurious > 0 && spurious <= lost, "{spurious} of {lost}");
    }
}

#[test]
fn a_real_timeout_is_not_undone() {
    for timestamps in [true, false] {
        let config = Config { timestamps, ..Config::default() };
        let mut pipe = Pipe::named(
            &config,
            "newreno",
            Box::new(|way, _, segment| {
                let dead = (Time::ZERO + ms(250)..Time::ZERO + ms(1_500)).contains(&segment.timestamp);
                if way == Way::Forth && dead { PipeAction::Drop } else { PipeAction::Pass }
            }),
        );
        pipe.sender.write(segments(150));
        pipe.finish(Span::from_secs(60));
        assert!(pipe.sender.stats().timeouts > 0);
        assert_eq!(pipe.sender.stats().undone, 0, "timestamps {timestamps}");
    }
}

/// A path that keeps the order makes no retransmission spurious, so an undo would be a mistake. Episodes that begin while
/// retransmissions of the last one are outstanding are the hard case: the acknowledgements of those echo times before the first
/// retransmission of the new episode.
#[test]
fn reductions_for_real_losses_are_not_undone() {
    for (seed, name) in (0..40u64).zip(["newreno", "cubic"].into_iter().cycle()) {
        let lost = move |place: u64| {
            let mixed = (place ^ seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 58 == 0 // one in 64
        };
        let drop =
            Box::new(
                move |way, place: u64, _: &Segment| {
                    if way == Way::Forth && lost(place) { PipeAction::Drop } else { PipeAction::Pass }
                },
            );
        let mut pipe = Pipe::named(&Config::default(), name, drop);
        pipe.sender.write(segments(5_000));
        pipe.finish(Span::from_secs(300));
        let stats = pipe.sender.stats();
        assert!(stats.recoveries > 20, "{name}, seed {seed}: {stats:?}");
        assert_eq!(stats.undone, 0, "{name}, seed {seed}: {stats:?}");
    }
}

#[test]
fn reordering_is_undone_and_then_tolerated() {
    for timestamps in [true, false] {
        let config = Config { timestamps, ..Config::default() };
        let (control, calls) = Scripted::new(halve);
        let mut pipe = Pipe::new(
            &config,
            control,
            Box::new(|way, place, segment| {
                let late = way == Way::Forth && place % 40 == 21 && !segment.retransmission;
                if late { PipeAction::Late(ms(12)) } else { PipeAction::Pass }
            }),
        );
        pipe.sender.write(segments(2_000));
        pipe.finish(Span::from_secs(20));
        assert_eq!(pipe.sender.stats().timeouts, 0);
        let recoveries = pipe.sender.stats().recoveries;
        // Without timestamps nothing shows, as in Linux, that the original arrived late.
        assert!(recoveries <= 3 || !timestamps, "{recoveries} recoveries");
        // Duplicates may be reported after the next episode has begun.
        let undone = pipe.sender.stats().undone;
        assert!(undone >= recoveries - recoveries / 10, "{undone} of {recoveries}, timestamps {timestamps}");
        assert_eq!(calls.count(|call| matches!(call, Call::Spurious { .. })) as u64, undone);
    }
}

#[test]
fn handshakes_survive_losses() {
    // Linux repeats SYNs five times at intervals of a second before it backs off; SYN-ACKs back off at once.
    for (opener, lost, expected) in [
        (Opener::Sender, [(Way::Forth, 0)].as_slice(), 1_000),
        // After the second lost SYN the window begins at one segment: three more round trips.
        (Opener::Sender, &[(Way::Forth, 0), (Way::Forth, 1)], 2_300),
        (Opener::Sender, &[(Way::Back, 0)], 1_000),
        (Opener::Receiver, &[(Way::Back, 0)], 1_000),
        (Opener::Receiver, &[(Way::Back, 0), (Way::Back, 1)], 2_000),
        (Opener::Receiver, &[(Way::Forth, 0)], 1_000),
        // The request is repeated after the timeout for the first RTT: 3 RTT here.
        (Opener::Receiver, &[(Way::Back, 1)], 300),
    ] {
        let config = Config { opener, ..Config::default() };
        let whole = |script| {
            let mut pipe = Pipe::named(&config, "newreno", script);
            pipe.sender.write(segments(10));
            pipe.finish(Span::from_secs(30));
            (pipe.now, pipe.sender.window().cwnd)
        };
        let (clean, _) = whole(clean());
        let (late, cwnd) =
            whole(Box::new(
                move |way, place, _| {
                    if lost.contains(&(way, place)) { PipeAction::Drop } else { PipeAction::Pass }
                },
            ));
        assert_eq!((late - clean).as_millis(), expected, "{opener:?} {lost:?}");
        assert!(cwnd >= 10.0 || lost.len() > 1, "{opener:?} {lost:?} {cwnd}");
    }
}

#[test]
fn a_shut_window_is_probed_until_it_opens() {
    let config = Config {
        receive_buffer: Bytes::new(65_536),
        receive_buffer_max: Bytes::new(65_536),
        ..Config::default()
    };
    // The peer's window is closed for a while, and the update that reopens it is lost.
    let mut pipe = Pipe::named(&config, "cubic", clean());
    pipe.sender.write(segments(400));
    pipe.run(ms(250));
    pipe.receiver.set_window_limit(Bytes::ZERO);
    pipe.run(Span::from_secs(20));
    let stalled = pipe.receiver.delivered();
    assert!(!pipe.sender.is_done());
    assert_eq!(pipe.sender.stats().timeouts, 0, "probes are no timeouts");
    pipe.run(Span::from_secs(20));
    assert_eq!(pipe.receiver.delivered(), stalled);
    let mut lost = 0;
    pipe.set_script(Box::new(move |way, _, _| {
        lost += u32::from(way == Way::Back);
        if way == Way::Back && lost <= 1 { PipeAction::Drop } else { PipeAction::Pass }
    }));
    pipe.receiver.set_window_limit(Bytes::MAX);
    pipe.finish(Span::from_secs(400));
}

#[test]
fn losing_all_that_a_reopened_window_let_through_is_no_deadlock() {
    let mut pipe = Pipe::named(&Config::default(), "cubic", clean());
    pipe.sender.write(segments(400));
    pipe.run(ms(250));
    pipe.receiver.set_window_limit(Bytes::ZERO);
    pipe.run(Span::from_secs(20));
    let mut lost = 0;
    pipe.set_script(Box::new(move |way, _, segment| {
        let data = way == Way::Forth && segment.length > 0;
        lost += u32::from(data);
        if data && lost <= 14 { PipeAction::Drop } else { PipeAction::Pass }
    }));
    pipe.receiver.set_window_limit(Bytes::MAX);
    pipe.finish(Span::from_secs(2_000));
}

#[test]
fn the_right_edge_never_moves_left() {
    let mut pipe = Pipe::named(&Config::default(), "cubic", clean());
    pipe.sender.write(segments(3_000));
    for (at, clamp) in [(300, 200_000), (500, 20_000), (900, 1_000_000), (1_300, 5_000), (1_500, u64::MAX)] {
        let end = Time::ZERO + ms(at);
        pipe.run(end - pipe.now);
        pipe.receiver.set_window_limit(Bytes::new(clamp));
    }
    pipe.finish(Span::from_secs(60));
    let edges: Vec<_> = pipe.acks.iter().map(|(_, ack)| ack.ack + u64::from(ack.window)).collect();
    assert!(edges.is_sorted());
}

#[test]
fn a_window_limit_is_announced_when_it_doubles_what_may_be_sent_and_else_with_the_next_acknowledgement() {
    let mut receiver = Receiver::new(&Config { ack_every: 1_000, quick_acks: 0, ..Config::default() }, None);
    let now = Time::from_millis(1);
    let mut syn = Segment::new(Kind::Syn, now);
    syn.timestamp = now;
    receiver.on_segment(now, &syn);
    receiver.set_window_limit(Bytes::new(10_000));
    assert_eq!(receiver.poll_transmit(now).map(|answer| answer.window), Some(65_536), "said before");
    let mut data = Segment::new(Kind::Data, now);
    data.length = 1_448;
    let mut next = |receiver: &mut Receiver, count: u64| {
        for _ in 0..count {
            receiver.on_segment(now, &data);
            data.seq += 1_448;
        }
        while receiver.poll_transmit(now).is_some() {}
    };
    // All but 10 000 B of the initially announced window is received.
    next(&mut receiver, 38);
    let edge = 65_536;
    for (limit, expected) in
        [(12_000, None), (19_000, None), (30_000, Some(30_000)), (59_000, None), (60_000, Some(60_000))]
    {
        receiver.set_window_limit(Bytes::new(limit));
        let said = receiver.poll_transmit(now).map(|ack| ack.window);
        assert_eq!(said, expected, "{limit} B, with an edge of {edge} before");
    }
    // A reduction takes effect only as the announced window is used up.
    receiver.set_window_limit(Bytes::ZERO);
    assert_eq!(receiver.poll_transmit(now), None);
}

#[test]
fn a_window_limit_set_before_the_handshake_holds_from_its_first_segment_on() {
    let mut receiver = Receiver::new(&Config { opener: Opener::Receiver, ..Config::default() }, None);
    receiver.set_window_limit(Bytes::new(9_000));
    receiver.open(Time::from_millis(1));
    assert_eq!(receiver.poll_transmit(Time::from_millis(1)).map(|syn| syn.window), Some(9_000));
}

#[test]
fn the_send_buffer_bounds_what_is_outstanding() {
    let config = Config { send_buffer: segments(20), ..Config::default() };
    let mut pipe = Pipe::named(&config, "cubic", clean());
    pipe.sender.write(Bytes::MAX);
    pipe.run(Span::from_secs(3));
    assert_eq!(pipe.most_in_flight, 20);
    assert!(pipe.sender.window().cwnd <= 41.0, "no growth that is not used: {}", pipe.sender.window().cwnd);
}

#[test]
fn an_application_that_pauses_is_marked_and_its_window_decays() {
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(&Config::default(), control, clean());
    pipe.sender.write(segments(300));
    pipe.finish(Span::from_secs(5));
    let before = pipe.sender.window().cwnd;
    assert!(before > 60.0);
    pipe.run(Span::from_secs(2));
    let mark = calls.all().len();
    pipe.sender.write(segments(5));
    let end = pipe.now + Span::from_secs(1);
    pipe.finish(end - Time::ZERO);
    // The RTO is at most 300 ms: at least six halvings in two seconds, down to the initial window.
    assert_eq!(pipe.sender.window().cwnd, 10.0);
    assert!(calls.all()[mark..].iter().any(|(_, call, _)| *call == Call::Idle));
    let limited = |(_, call, _): &(Time, Call, Window)| matches!(call, Call::Ack { app_limited: true, .. });
    assert!(calls.all()[mark..].iter().any(limited));
    // The first transfer was limited by its window until its end.
    let first = calls.all()[..mark].iter().filter(|call| limited(call)).count();
    assert_eq!(first, 0);
}

#[test]
fn marks_reduce_once_a_round_and_are_echoed_until_cwr() {
    let config = Config { ecn: EcnFeedback::Classic, ..Config::default() };
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(
        &config,
        control,
        Box::new(|way, place, _| {
            if way == Way::Forth && (40..45).contains(&place) { PipeAction::Mark } else { PipeAction::Pass }
        }),
    );
    pipe.sender.write(segments(400));
    pipe.finish(Span::from_secs(10));
    assert_eq!(calls.congestions(), [(Signal::Ecn, 0, true)]);
    assert_eq!(pipe.sent.iter().filter(|(_, segment)| segment.cwr).count(), 1);
    let echoes = pipe.acks.iter().filter(|(_, ack)| ack.ecn_echo).count();
    assert!(echoes > 5, "{echoes}");
    assert!(!pipe.acks.last().unwrap().1.ecn_echo);
    assert_eq!(pipe.sender.stats().retransmitted, 0);
    assert_eq!(pipe.sender.state(), State::Open);
}

#[test]
fn retransmissions_are_not_ecn_capable() {
    let config = Config { ecn: EcnFeedback::Classic, ..Config::default() };
    let mut pipe = Pipe::named(&config, "cubic", lose(&[12, 30]));
    pipe.sender.write(segments(100));
    pipe.finish(Span::from_secs(10));
    assert!(pipe.sent.iter().all(|(_, segment)| segment.ecn.is_capable() != segment.retransmission));
    assert!(pipe.sent.iter().any(|(_, segment)| segment.cwr), "a loss is answered with CWR too");
}

#[test]
fn acknowledgements_may_be_lost_late_or_old() {
    for (case, deed, every) in [
        ("half are lost", PipeAction::Drop, 2),
        ("most are lost", PipeAction::Drop, 1),
        ("some are late", PipeAction::Late(ms(30)), 3),
        ("some come twice", PipeAction::Twice, 3),
    ] {
        let (control, calls) = Scripted::new(halve);
        let mut pipe = Pipe::new(
            &Config::default(),
            control,
            Box::new(move |way, place, _| {
                let hit = if every == 1 { place % 8 != 0 } else { place % every == 0 };
                if way == Way::Back && place > 2 && hit { deed } else { PipeAction::Pass }
            }),
        );
        pipe.sender.write(segments(500));
        pipe.finish(Span::from_secs(30));
        assert!(
            calls.congestions().iter().all(|(_, lost, _)| *lost == 0 || case == "most are lost"),
            "{case}"
        );
    }
}

#[test]
fn delayed_acknowledgements_follow_count_and_timer() {
    for (every, quick, delay) in [(1, 0, 40), (2, 0, 40), (2, 0, 25), (4, 0, 40), (2, 16, 40)] {
        let config =
            Config { ack_every: every, quick_acks: quick, ack_delay: ms(delay), ..Config::default() };
        let mut pipe = Pipe::named(&config, "newreno", clean());
        // Odd, so that the last segment waits for the timer.
        pipe.sender.write(segments(201));
        pipe.finish(Span::from_secs(20));
        let acks = pipe.acks.len() as u64;
        let quick = u64::from(quick.max(2));
        let least = quick + (201 - quick) / u64::from(every);
        assert!(
            (least.saturating_sub(1)..=least + 16).contains(&acks),
            "{every} {quick}: {acks}, not {least}"
        );
    }
}

/// Returns the segments sent at one instant, with a mark at those that have PSH.
fn pushes(pipe: &Pipe) -> Vec<String> {
    let instants = pipe.sent.chunk_by(|one, other| one.0 == other.0);
    let mark = |(_, segment): &(Time, Segment)| if segment.push { 'P' } else { '.' };
    instants.map(|segments| segments.iter().map(mark).collect()).collect()
}

#[test]
fn pieces_end_with_psh_and_are_acknowledged_at_once() {
    let config = Config { gso: true, quick_acks: 0, ..Config::default() };
    // 10 segments in 100 ms are paced at less than two per ms, the least size of a piece.
    let mut pipe = Pipe::named(&config, "newreno", clean());
    pipe.sender.write(segments(13));
    pipe.finish(Span::from_secs(5));
    let first: String = pushes(&pipe).concat();
    assert_eq!(&first[..10], ".P.P.P.P.P");
    assert_eq!(pushes(&pipe)[1], ".PP", "a piece, and the end of what was written");
    let acked: Vec<u64> = pipe.acks.iter().map(|(_, ack)| ack.ack / config.mss().get()).collect();
    assert_eq!(acked, [2, 4, 6, 8, 10, 12, 13]);

    // When the window grows by one, three segments are sent: a piece, and a single one, as captured from Linux 6.18.
    let mut pipe = Pipe::named(&config, "newreno", lose(&[5]));
    pipe.sender.write(segments(300));
    pipe.finish(Span::from_secs(20));
    assert!(pushes(&pipe).iter().any(|instant| instant == ".P."), "{:?}", pushes(&pipe));

    let mut pipe = Pipe::named(&config, "newreno", clean());
    pipe.sender.write(segments(300));
    pipe.finish(Span::from_secs(20));
    let pushed = pipe.sent.iter().filter(|(_, segment)| segment.push);
    let ends: Vec<u64> = pushed.map(|(_, segment)| segment.seq + u64::from(segment.length)).collect();
    assert!(ends.len() > 50, "{}", ends.len());
    assert!(ends.iter().all(|end| pipe.acks.iter().any(|(_, ack)| ack.ack == *end)));

    // Without `gso` there is no PSH, and receivers work with either kind of sender.
    let mut plain = Pipe::named(&Config { gso: false, ..config }, "newreno", lose(&[20]));
    plain.sender.write(segments(50));
    plain.finish(Span::from_secs(5));
    assert!(plain.sent.iter().all(|(_, segment)| !segment.push));
}

#[test]
fn a_paced_burst_is_a_piece_and_what_is_sent_again_is_none() {
    let config = Config { gso: true, ..Config::default() };
    let mut pipe = Pipe::named(&config, "bbr1", lose(&[40, 41, 42, 43]));
    pipe.sender.write(segments(400));
    pipe.finish(Span::from_secs(20));
    let (again, new): (Vec<&Segment>, Vec<&Segment>) =
        pipe.sent.iter().map(|(_, segment)| segment).partition(|segment| segment.retransmission);
    assert!(again.len() >= 4 && again.iter().all(|segment| !segment.push));
    // Bursts of two at this rate; the window cuts some, and their rest begins the next burst.
    let pushed = new.iter().filter(|segment| segment.push).count();
    assert!((120..=200).contains(&pushed), "{pushed} of {}", new.len());
}

#[test]
fn samples_of_retransmitted_data_are_ambiguous_without_timestamps() {
    let config = Config { timestamps: false, ..Config::default() };
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(&config, control, lose(&[5]));
    pipe.sender.write(segments(10));
    pipe.finish(Span::from_secs(5));
    for (at, call, _) in calls.all() {
        if let Call::Sample { rtt: Some(rtt) } = call {
            assert!(rtt >= RTT && rtt < RTT + ms(50), "{at:?} {rtt:?}");
        }
    }
}

#[test]
fn an_acknowledgement_costs_what_is_new_in_it() {
    // A window of thousands, with a hole at every eighth position, a lost first segment, and lost retransmissions.
    let mut again = 0;
    let mut pipe = Pipe::named(
        &Config {
            receive_buffer: Bytes::new(64 << 20),
            receive_buffer_max: Bytes::new(64 << 20),
            initial_window: 4_000,
            ..Config::default()
        },
        "newreno",
        Box::new(move |way, place, segment| {
            if way == Way::Back || segment.length == 0 {
                return PipeAction::Pass;
            }
            again += u32::from(segment.retransmission);
            let hole = if segment.retransmission { again < 3 } else { place < 4_000 && place % 8 == 1 };
            if hole { PipeAction::Drop } else { PipeAction::Pass }
        }),
    );
    pipe.sender.write(segments(8_000));
    pipe.finish(Span::from_secs(60));
    let visited = pipe.sender.board().visited.get();
    let (sent, acks) = (pipe.sender.stats().sent, pipe.sender.stats().acks);
    assert!(visited < 4 * (sent + 4 * acks), "{visited} records for {sent} segments and {acks} ACKs");
}

#[test]
fn sizes_saturate() {
    let mut pipe = Pipe::named(&Config::default(), "cubic", clean());
    pipe.sender.write(Bytes::MAX);
    pipe.sender.write(Bytes::MAX);
    pipe.run(Span::from_secs(1));
    assert!(pipe.receiver.delivered() > segments(100));
    pipe.sender.stop();
    pipe.sender.write(segments(3));
    pipe.finish(Span::from_secs(10));
}

#[derive(Clone, Debug)]
struct Conditions {
    forth: Vec<u8>,
    back: Vec<u8>,
}

fn weather() -> impl Strategy<Value = Conditions> {
    (vec(0..14_u8, 0..120), vec(0..14_u8, 0..120)).prop_map(|(forth, back)| Conditions { forth, back })
}

impl Conditions {
    fn deed(&self, way: Way, place: u64) -> PipeAction {
        let deeds = if way == Way::Forth { &self.forth } else { &self.back };
        match deeds.get(place as usize) {
            Some(0..=2) => PipeAction::Drop,
            Some(3) => PipeAction::Twice,
            Some(4) => PipeAction::Late(ms(3)),
            Some(5) => PipeAction::Late(ms(70)),
            Some(6) => PipeAction::Late(ms(700)),
            Some(7) => PipeAction::Mark,
            _ => PipeAction::Pass,
        }
    }
}

/// Owns its window while it has an allocation, like `rapid`, or like the guard while reports are reliable.
#[derive(Debug)]
struct AtTimes {
    owns: bool,
    /// Recorded values of `cx.paced`.
    paced: std::sync::Arc<std::sync::Mutex<Vec<bool>>>,
}

impl CongestionControl for AtTimes {
    fn on_congestion(&mut self, _: &Context, w: &mut Window, _: &Congestion) -> LossResponse {
        if self.owns { LossResponse::Own } else { LossResponse::ReduceTo(w.cwnd / 2.0) }
    }
    fn on_ack(&mut self, cx: &Context, _: &mut Window, _: &Ack) {
        self.paced.lock().unwrap().push(cx.paced);
    }
    fn owns_recovery(&self) -> bool {
        self.owns
    }
    fn on_allocation(&mut self, _: &Context, w: &mut Window, allocation: Option<Allocation>) {
        self.owns = allocation.is_some();
        w.cwnd = 40.0;
        w.pacing = allocation.map_or(Pacing::Unlimited, |allocation| Pacing::Rate(allocation.rate));
    }
}

#[test]
fn the_owner_of_the_window_is_asked_when_it_matters() {
    // Neither owns it when the connection is established. The endpoint must not decay the window of the one that does later.
    let allocated = Allocation { rate: Rate::from_mbit_per_s(50), window: segments(40) };
    for (allocation, after_idle) in [(None, 10.0), (Some(allocated), 40.0)] {
        let control = AtTimes { owns: false, paced: Default::default() };
        let mut pipe = Pipe::new(&Config::default(), Box::new(control), clean());
        pipe.sender.write(segments(20));
        pipe.finish(Span::from_secs(5));
        pipe.sender.on_allocation(pipe.now, allocation);
        assert_eq!(pipe.sender.window().cwnd, 40.0);
        pipe.run(Span::from_secs(5));
        pipe.sender.write(segments(1));
        pipe.run(ms(1));
        assert_eq!(pipe.sender.window().cwnd, after_idle, "{allocation:?}");
    }
}

#[test]
fn a_control_is_told_whether_what_it_sends_is_paced_by_itself_or_by_the_endpoint() {
    let allocated = Allocation { rate: Rate::from_mbit_per_s(50), window: segments(40) };
    for (pacing, allocation, expected) in [
        (false, None, false),
        (true, None, true),
        (false, Some(allocated), true),
        (true, Some(allocated), true),
    ] {
        let control = AtTimes { owns: false, paced: Default::default() };
        let paced = control.paced.clone();
        let config = Config { pacing, ..Config::default() };
        let mut pipe = Pipe::new(&config, Box::new(control), clean());
        pipe.sender.on_allocation(pipe.now, allocation);
        pipe.sender.write(segments(20));
        pipe.finish(Span::from_secs(5));
        let paced = paced.lock().unwrap();
        assert!(
            !paced.is_empty() && paced.iter().all(|&is| is == expected),
            "{pacing} {allocation:?}: {paced:?}"
        );
    }
}

#[test]
fn multi_domain_control_without_a_pep_is_cubic_segment_by_segment() {
    // Single losses, a burst, a whole flight with the probes after it, marks and a pause: PRR, timeouts, HyStart and pace are
    // CUBIC's.
    for (pacing, ecn) in [(false, false), (true, false), (false, true)] {
        let sent = ["mdcc", "cubic"].map(|name| {
            let feedback = if ecn { EcnFeedback::Classic } else { EcnFeedback::Off };
            let config = Config { pacing, ecn: feedback, ..Config::default() };
            let mut random = 1_u64;
            let script = move |way: Way, place: u64, _: &Segment| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                match (way, place) {
                    (Way::Forth, 900..=905 | 2_000..=2_120) => PipeAction::Drop,
                    (Way::Forth, _) if random >> 33 < (1 << 31) / 700 => PipeAction::Drop,
                    (Way::Forth, _) if place % 1_500 == 1_499 => PipeAction::Mark,
                    _ => PipeAction::Pass,
                }
            };
            let mut pipe = Pipe::named(&config, name, Box::new(script));
            pipe.sender.write(segments(4_000));
            pipe.finish(Span::from_secs(600));
            pipe.run(Span::from_secs(3));
            pipe.sender.write(segments(2_000));
            pipe.finish(Span::from_secs(600));
            let stats = *pipe.sender.stats();
            assert!(stats.recoveries > 3 && (!ecn || stats.ecn_reductions > 0), "{stats:?}");
            let sent: Vec<_> = pipe.sent.iter().map(|(at, segment)| (*at, segment.seq)).collect();
            (sent, stats)
        });
        let [own, plain] = &sent;
        let first = own.0.iter().zip(&plain.0).position(|(own, plain)| own != plain);
        assert!(
            own == plain,
            "paced {pacing}, ECN {ecn}: the {first:?}. segment differs; {:?}, {:?}",
            own.1,
            plain.1
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// All bytes arrive in order, whatever is lost, duplicated or late; nothing stalls once the losses end.
    #[test]
    fn all_bytes_arrive(
        weather in weather(),
        bytes in 1..400_000_u64,
        name in prop_oneof![Just("newreno"), Just("cubic"), Just("bbr1"), Just("c2tcp"), Just("")],
        timestamps in any::<bool>(),
        ecn in prop::sample::select(vec![EcnFeedback::Off, EcnFeedback::Classic, EcnFeedback::Accurate]),
        pacing in any::<bool>(),
        fetch in any::<bool>(),
        small in any::<bool>(),
    ) {
        let mut config = Config { timestamps, ecn, pacing, ..Config::default() };
        if fetch {
            config.opener = Opener::Receiver;
        }
        if small {
            (config.receive_buffer, config.receive_buffer_max) = (Bytes::new(8_000), Bytes::new(8_000));
        }
        let script = Box::new(move |way: Way, place: u64, _: &Segment| weather.deed(way, place));
        let mut pipe = if name.is_empty() {
            let (control, _) = Scripted::new(|event, w| match event.lost % 3 {
                0 => LossResponse::Own,
                1 => LossResponse::Ignore,
                _ => halve(event, w),
            });
            Pipe::new(&config, control, script)
        } else {
            Pipe::named(&config, name, script)
        };
        pipe.sender.write(Bytes::new(bytes));
        pipe.finish(Span::from_secs(3_600));
        prop_assert_eq!(pipe.receiver.delivered(), Bytes::new(bytes));
        prop_assert!(pipe.sent.iter().all(|(_, s)| s.kind == Kind::Data && s.seq + u64::from(s.length) <= bytes));
    }
}
