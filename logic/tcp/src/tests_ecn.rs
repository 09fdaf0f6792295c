//! Accurate ECN between two endpoints: negotiation, counts, fallback, and Prague's law.

use proptest::collection::vec;
use proptest::prelude::*;
use ranpace_cc::*;
use ranpace_units::{Ecn, Span};

use crate::testing::*;
use crate::{Ace, Config, EcnFeedback, Kind, Opener, Segment};

fn accurate() -> Config {
    Config { ecn: EcnFeedback::Accurate, ..Config::default() }
}

/// Marks these data segments, counted from the handshake's first segment on.
fn mark(marked: impl Fn(u64) -> bool + 'static) -> Script {
    Box::new(move |way, place, segment| {
        let marks = way == Way::Forth && segment.kind == Kind::Data && marked(place);
        if marks { PipeAction::Mark } else { PipeAction::Pass }
    })
}

fn play(config: &Config, cc: &str, script: Script, count: u64) -> Pipe {
    let mut pipe = Pipe::named(config, cc, script);
    pipe.sender.write(segments(count));
    pipe.finish(Span::from_secs(60));
    pipe
}

#[test]
fn feedback_is_the_most_informative_that_both_ends_have() {
    use EcnFeedback::{Accurate, Classic, Off};
    for opener in [Opener::Sender, Opener::Receiver] {
        for (sender, receiver, cc, expected) in [
            (Accurate, Accurate, "prague", Ecn::Ect1),
            (Accurate, Classic, "prague", Ecn::Ect0),
            (Accurate, Off, "prague", Ecn::NotEct),
            (Off, Accurate, "prague", Ecn::NotEct),
            (Classic, Accurate, "prague", Ecn::Ect0),
            (Accurate, Accurate, "cubic", Ecn::Ect0),
            (Classic, Classic, "cubic", Ecn::Ect0),
            (Accurate, Off, "cubic", Ecn::NotEct),
        ] {
            let config = |ecn| Config { ecn, opener, ..Config::default() };
            let algorithm: Algorithm = cc.parse().unwrap();
            let pass: Script = Box::new(|_, _, _| PipeAction::Pass);
            let mut pipe = Pipe::between(&config(sender), &config(receiver), algorithm.build(1), pass);
            pipe.sender.write(segments(50));
            pipe.finish(Span::from_secs(10));
            assert!(
                pipe.sent.iter().filter(|(_, sent)| sent.length > 0).all(|(_, sent)| sent.ecn == expected),
                "{cc} opened by the {opener:?}: {sender:?} and {receiver:?}, not {expected:?}",
            );
        }
    }
}

#[test]
fn a_classic_control_answers_counted_marks_once_a_round_without_cwr() {
    let (control, calls) = Scripted::new(halve);
    let mut pipe = Pipe::new(&accurate(), control, mark(|place| (40..45).contains(&place)));
    pipe.sender.write(segments(400));
    pipe.finish(Span::from_secs(10));
    assert_eq!(calls.congestions(), [(Signal::Ecn, 0, true)]);
    assert!(!pipe.sent.iter().any(|(_, segment)| segment.cwr));
    assert!(!pipe.acks.iter().any(|(_, ack)| ack.ecn_echo));
    assert_eq!(pipe.sender.stats().marked, 5);
}

#[test]
fn the_option_is_counted_on_the_wire_where_it_fits() {
    let with = Config { ecn_option: true, ..accurate() };
    let pipe = play(&with, "prague", mark(|place| place == 30), 100);
    let plain = play(&accurate(), "prague", mark(|place| place == 30), 100);
    let lengths = |pipe: &Pipe| pipe.acks.last().map(|(_, ack)| ack.wire);
    assert_eq!(lengths(&plain), Some(52));
    assert_eq!(lengths(&pipe), Some(64));
    // TCP's header has 60 bytes at most, IP's 20: the option gives way to selective acknowledgements.
    let lossy = play(&with, "prague", lose(&[30, 32, 34, 36, 38]), 100);
    assert!(lossy.acks.iter().all(|(_, ack)| ack.wire <= 80));
    let most = |ack: &Segment| {
        ack.sack.as_slice().len() == 3 && ack.accurate.is_some_and(|echo| echo.option.is_none())
    };
    assert!(lossy.acks.iter().any(|(_, ack)| most(ack)));
}

#[test]
fn a_path_that_erases_code_points_ends_their_use() {
    for (cc, config) in [("prague", accurate()), ("cubic", accurate())] {
        let erase: Script = Box::new(|_, _, _| PipeAction::Bleach);
        let pipe = play(&config, cc, erase, 200);
        let capable: Vec<bool> = pipe.sent.iter().map(|(_, sent)| sent.ecn.is_capable()).collect();
        assert!(capable[0] && !capable[199], "{cc}");
        assert_eq!(pipe.sender.control().ecn(), EcnUse::Classic, "{cc}");
    }
}

/// An initial window and its successors are lost, and repaired by retransmissions, which are never ECN-capable.
#[test]
fn repaired_losses_are_no_sign_of_erased_code_points() {
    let lose: Script = Box::new(|way, place, segment| {
        let first = way == Way::Forth && segment.kind == Kind::Data && segment.ecn.is_capable() && place < 12;
        if first { PipeAction::Drop } else { PipeAction::Pass }
    });
    let pipe = play(&accurate(), "prague", lose, 200);
    assert!(pipe.sender.stats().retransmitted >= 10, "{}", pipe.sender.stats().retransmitted);
    assert_eq!(pipe.sender.control().ecn(), EcnUse::Scalable);
    assert!(pipe.sent.last().unwrap().1.ecn.is_capable());
}

/// Whether a segment is among the one of `every` that are marked at random (SplitMix64). Evenly spaced marks and the round trip
/// would lock into a common period.
fn chosen(place: u64, every: u64) -> bool {
    let mut mix = (place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mix = (mix ^ (mix >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mix = (mix ^ (mix >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mix ^ (mix >> 31)).is_multiple_of(every)
}

/// Prague's rate at a share `1 / every` of random marks, over `1 / p - 1` Mbit/s.
fn law(every: u64, rtt: Span, config: &Config) -> f64 {
    let mut pipe = Pipe::named(config, "prague", mark(move |place| chosen(place, every)));
    pipe.delay = rtt / 2;
    pipe.sender.write(ranpace_units::Bytes::MAX);
    pipe.run(Span::from_secs(15));
    let before = pipe.sender.stats().sent;
    pipe.run(Span::from_secs(12));
    let rate = (pipe.sender.stats().sent - before) as f64 * 12_000.0 / 12e6;
    rate / (every as f64 - 1.0)
}

#[test]
fn prague_has_its_law() {
    // Random marks give about 1.3 times (1 / p - 1) Mbit/s; the same within 10 % at 10 and 25 ms.
    for every in [100, 20, 10] {
        let [short, long] = [10, 25].map(|ms| law(every, Span::from_millis(ms), &accurate()));
        for found in [short, long] {
            assert!((1.1..1.5).contains(&found), "1 of {every}: {short} at 10 ms, {long} at 25 ms");
        }
        assert!((short / long - 1.0).abs() < 0.1, "1 of {every}: {short} and {long}");
    }
    // Three bits of the header are enough for it.
    let wire = Config { ace: Ace::Wire, ..accurate() };
    let found = law(20, Span::from_millis(25), &wire);
    assert!((1.1..1.5).contains(&found), "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is marked and lost, the transfer ends, exact counts are those of the receiver, and no mark is read twice.
    #[test]
    fn every_mark_that_arrives_is_read_once(
        marks in vec(0..400_u64, 0..60),
        losses in vec(0..400_u64, 0..20),
        ace in prop::sample::select(vec![Ace::Exact, Ace::Wire]),
        option in any::<bool>(),
        ack_every in 1..4_u32,
        cc in prop::sample::select(vec!["prague", "cubic", "prague:first=alpha"]),
    ) {
        let config = Config { ace, ecn_option: option, ack_every, ..accurate() };
        let script: Script = Box::new(move |way, place, segment| match (way, segment.kind) {
            (Way::Forth, Kind::Data) if losses.contains(&place) => PipeAction::Drop,
            (Way::Forth, Kind::Data) if marks.contains(&place) => PipeAction::Mark,
            _ => PipeAction::Pass,
        });
        let mut pipe = play(&config, cc, script, 300);
        pipe.run(Span::SECOND); // the last acknowledgements
        prop_assert!(pipe.sender.is_done());
        if ace == Ace::Exact {
            let arrived = pipe.acks.last().and_then(|(_, ack)| ack.accurate).map_or(0, |echo| echo.segments.ce);
            prop_assert_eq!(pipe.sender.stats().marked, u64::from(arrived));
        }
    }
}
