//! Tests of losses that the control hides by [`LossResponse::Ignore`]: the endpoint retransmits them and otherwise behaves as
//! if nothing had been lost. They follow section 8 of MELD's specification line by line.

use std::collections::BTreeSet;

use ranpace_cc::*;
use ranpace_units::Span;

use crate::testing::*;
use crate::{Config, EcnFeedback, Kind, Segment};

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn ignoring() -> (Box<Scripted>, Calls) {
    Scripted::new(|_, _| LossResponse::Ignore)
}

/// Ignores losses and the first of several timeouts, as MELD does.
fn first_timeout_ignored(event: &Congestion, w: &Window) -> LossResponse {
    match event.kind {
        Signal::Timeout { count } if count > 1 => halve(event, w),
        Signal::Ecn => halve(event, w),
        _ => LossResponse::Ignore,
    }
}

#[test]
fn lost_segments_leave_the_flight_and_are_retransmitted_at_once() {
    let (control, calls) = ignoring();
    let mut pipe = Pipe::new(&Config::default(), control, lose(&[15]));
    pipe.sender.write(segments(100));
    pipe.finish(Span::from_secs(10));
    let told = calls.all().iter().find(|(_, c, _)| matches!(c, Call::Congestion { .. })).unwrap().0;
    let again = pipe.retransmissions();
    assert_eq!(again, [(told, segments(15).get())]);
}

#[test]
fn growth_goes_on_while_a_hole_is_open() {
    let (control, calls) = ignoring();
    let mut pipe = Pipe::new(&Config::default(), control, lose(&[40]));
    pipe.sender.write(segments(300));
    pipe.finish(Span::from_secs(10));
    let calls = calls.all();
    let begun = calls.iter().position(|(_, c, _)| matches!(c, Call::Congestion { .. })).unwrap();
    let over = begun + calls[begun..].iter().position(|(_, c, _)| *c == Call::Recovered).unwrap();
    let mut grown = 0;
    for (_, call, _) in &calls[begun..over] {
        if let Call::Ack { acked, delivered, .. } = call {
            assert_eq!(acked, delivered);
            grown += acked;
        }
    }
    assert!(grown > 20, "{grown} segments of growth during recovery");
    // Each segment counts once: in slow start the window is its old value plus all segments acknowledged.
    let before_loss = calls[begun].2.cwnd;
    assert!(calls[over].2.cwnd <= before_loss + grown as f64);
}

#[test]
fn each_loss_is_judged_once_also_beyond_the_first_of_an_episode() {
    for places in [&[12, 35][..], &[12, 20, 30, 40, 50], &[12, 60], &[30, 31, 60, 61, 100]] {
        let (control, calls) = ignoring();
        let mut pipe = Pipe::new(&Config::default(), control, lose(places));
        pipe.sender.write(segments(400));
        pipe.finish(Span::from_secs(20));
        let told: Vec<u64> = calls.congestions().iter().map(|&(_, lost, _)| lost).collect();
        assert!(told.iter().all(|lost| *lost > 0), "{places:?}: {told:?}");
        assert_eq!(told.iter().sum::<u64>(), places.len() as u64, "{places:?}: {told:?}");
    }
}

/// Loses all data until there have been `times` retransmissions.
fn lost_until(times: u32) -> Script {
    let mut again = 0;
    Box::new(move |way, _, segment| {
        if way == Way::Back {
            return PipeAction::Pass;
        }
        again += u32::from(segment.retransmission);
        if again >= times { PipeAction::Pass } else { PipeAction::Drop }
    })
}

#[test]
fn a_first_timeout_keeps_the_threshold_and_slow_start_leads_back() {
    let (control, calls) = Scripted::new(first_timeout_ignored);
    let mut pipe = Pipe::new(&Config::default(), control, clean());
    pipe.sender.write(segments(3_000));
    pipe.run(ms(550));
    pipe.set_script(lost_until(1));
    let end = pipe.now + Span::from_secs(3);
    pipe.run_while(end, |pipe| pipe.sender.stats().timeouts == 0);
    let all = calls.all();
    let is_timeout = |call: &Call| matches!(call, Call::Congestion { kind: Signal::Timeout { .. }, .. });
    let (.., before) = *all.iter().find(|(_, call, _)| is_timeout(call)).unwrap();
    assert!(pipe.sender.window().cwnd < 3.0, "{:?}", pipe.sender.window());
    assert!(pipe.sender.window().ssthresh >= before.cwnd);
    pipe.finish(Span::from_secs(60));
    assert_eq!(calls.count(is_timeout), 1);
    assert!(pipe.sender.window().cwnd >= before.cwnd, "{:?}, before {before:?}", pipe.sender.window());
}

#[test]
fn a_second_timeout_that_is_told_begins_an_episode() {
    let (control, calls) = Scripted::new(first_timeout_ignored);
    let mut pipe = Pipe::new(&Config::default(), control, clean());
    pipe.sender.write(segments(3_000));
    pipe.run(ms(550));
    pipe.set_script(lost_until(2));
    let end = pipe.now + Span::from_secs(5);
    pipe.run_while(end, |pipe| pipe.sender.stats().timeouts < 2);
    let told: Vec<_> = calls.congestions().into_iter().filter(|(kind, ..)| *kind != Signal::Loss).collect();
    let expected = [(Signal::Timeout { count: 1 }, true), (Signal::Timeout { count: 2 }, true)];
    assert_eq!(told.iter().map(|&(kind, _, first)| (kind, first)).collect::<Vec<_>>(), expected);
    // Half of one segment, but at least two: MELD knows the window before, the script does not.
    assert_eq!(pipe.sender.window().ssthresh, 2.0, "the second one was acted on");
}

#[test]
fn a_timeout_that_was_a_mistake_gives_the_window_back() {
    let (control, calls) = Scripted::new(first_timeout_ignored);
    let mut pipe = Pipe::new(&Config::default(), control, clean());
    pipe.sender.write(segments(2_000));
    pipe.run(ms(550));
    let before = pipe.sender.window().cwnd;
    // Nothing is lost, but from now on data take 600 ms longer: the timer fires earlier.
    pipe.set_script(Box::new(
        |way, _, _| if way == Way::Forth { PipeAction::Late(ms(600)) } else { PipeAction::Pass },
    ));
    let end = pipe.now + Span::from_secs(5);
    pipe.run_while(end, |pipe| pipe.sender.stats().undone == 0);
    let stats = pipe.sender.stats();
    assert!(stats.timeouts >= 1 && stats.undone == 1, "{stats:?}");
    assert!(pipe.sender.window().cwnd >= before, "{:?}, before {before}", pipe.sender.window());
    let told = calls.congestions();
    assert!(told.iter().all(|(kind, ..)| *kind == Signal::Timeout { count: 1 }), "{told:?}");
    assert_eq!(calls.count(|call| matches!(call, Call::Spurious { .. })), 0, "the control knows of nothing");
}

#[test]
fn a_mark_during_an_ignored_episode_is_told_and_acted_on() {
    let config = Config { ecn: EcnFeedback::Classic, ..Config::default() };
    let (control, calls) = Scripted::new(first_timeout_ignored);
    let mut seen = BTreeSet::new();
    let mss = config.mss().get();
    let script = Box::new(move |way, _, segment: &Segment| {
        let place = segment.seq / mss;
        let is_data = way == Way::Forth && segment.kind == Kind::Data && segment.length > 0;
        match place {
            20 if is_data && seen.insert(place) => PipeAction::Drop,
            28 if is_data => PipeAction::Mark,
            _ => PipeAction::Pass,
        }
    });
    let mut pipe = Pipe::new(&config, control, script);
    pipe.sender.write(segments(200));
    pipe.finish(Span::from_secs(10));
    let told = calls.congestions();
    let kinds: Vec<Signal> = told.iter().map(|&(kind, ..)| kind).collect();
    assert_eq!(kinds, [Signal::Loss, Signal::Ecn], "{told:?}");
    assert!(told.iter().all(|&(.., first)| first));
    assert!(pipe.sender.window().ssthresh.is_finite());
    assert_eq!(pipe.sender.stats().ecn_reductions, 1);
}
