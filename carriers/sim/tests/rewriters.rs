//! Header rewriters in simulated connections: what they change reaches the sender, and connections end whole whatever they do.

mod common;

use common::play;
use proptest::prelude::*;
use ranpace_network::{Direction, Packet, Tap, TapEvent};
use ranpace_sim::{FlowResult, Simulation};
use ranpace_tcp::Kind;
use ranpace_units::{Bytes, Span, Time};

fn scenario(duration: &str, loss: &str, rewriters: &str, flows: &str) -> String {
    format!(
        r#"
        duration = "{duration}"
        seed = 5
        [[link]]
        from = "server"
        to = "edge"
        rate = "1Gbit/s"
        delay = "8ms"
        {loss}
        duplex = true
        [[link]]
        from = "edge"
        to = "mast"
        rate = "1Gbit/s"
        delay = "1ms"
        duplex = true
        [[cell]]
        host = "mast"
        preset = "lte"
        [[user]]
        name = "phone"
        position = [150, 0]
        {rewriters}
        {flows}
        "#
    )
}

fn rewriter(kind: &str) -> String {
    format!("[[rewriter]]\nhost = \"edge\"\nkind = \"{kind}\"\n")
}

fn download(cc: &str) -> String {
    format!("[[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"{cc}\"\n")
}

fn delay(flow: &FlowResult) -> Span {
    flow.queueing_delay.p95
}

#[test]
fn milliproxy_keeps_the_queue_short_and_the_cell_busy() {
    let plain = play(&scenario("8s", "", "", &download("cubic")));
    // An acknowledgement waits for the next scheduling request, every 8 ms.
    let milliproxy = format!("{}allowance = \"16ms\"\n", rewriter("milliproxy"));
    let held = play(&scenario("8s", "", &milliproxy, &download("cubic")));
    let (plain, held) = (&plain.flows[0], &held.flows[0]);
    assert!(held.goodput.as_f64() >= 0.8 * plain.goodput.as_f64(), "{} of {}", held.goodput, plain.goodput);
    assert!(delay(held) * 5 <= delay(plain), "{} of {}", delay(held), delay(plain));
    assert_eq!(held.dropped_packets, 0);
}

#[test]
fn counted_downloads_share_the_window_that_each_has_as_published() {
    let four = format!("{}count = 4\n", download("cubic"));
    let with = |flows: &str| {
        let rewriter = format!("{}policy = \"bdp\"\nflows = \"{flows}\"\n", rewriter("milliproxy"));
        play(&scenario("6s", "", &rewriter, &four))
    };
    let (one, count) = (with("one"), with("count"));
    for (one, count) in one.flows.iter().zip(&count.flows) {
        assert!(delay(count) * 2 <= delay(one), "{} of {}", delay(count), delay(one));
    }
}

/// Sizes of the acknowledgements that leave for the server, and when.
#[derive(Default)]
struct Acks(Vec<(Time, u32)>);

impl Tap for Acks {
    fn on_packet(&mut self, now: Time, link: usize, packet: &Packet, event: TapEvent) {
        let is_ack = packet.direction == Direction::Back && packet.segment.kind == Kind::Ack;
        if link == 1 && is_ack && event == TapEvent::Departed {
            self.0.push((now, packet.segment.wire));
        }
    }
}

#[test]
fn guidance_lengthens_an_acknowledgement_in_each_period_and_drives_the_sender() {
    let text = scenario("3s", "", &rewriter("guidance"), &download("natcp:feed=guidance"));
    let read = ranpace_scenario::parse(&text, "test.toml", &mut ()).unwrap();
    let mut acks = Acks::default();
    let result = Simulation::new(&read).with_tap(&mut acks).run();
    assert!(result.ledger.balances(), "{:?}", result.ledger);
    // Link 1 is the way from the edge to the server: 20 B each of IPv4 and TCP, 12 of timestamps, and 12 of guidance.
    let guided: Vec<Time> = acks.0.iter().filter(|(_, wire)| *wire == 64).map(|(at, _)| *at).collect();
    assert!(acks.0.iter().filter(|(_, wire)| *wire == 52).count() > 100 * guided.len() / 10);
    assert!((28..=30).contains(&guided.len()), "{} in 3 s", guided.len());
    assert!(guided.windows(2).all(|pair| pair[1] - pair[0] >= Span::from_millis(99)), "{guided:?}");
    let plain = play(&scenario("3s", "", &rewriter("guidance"), &download("cubic")));
    let (driven, plain) = (&result.flows[0], &plain.flows[0]);
    assert!(driven.goodput.as_f64() >= 0.75 * plain.goodput.as_f64());
    assert!(delay(driven) * 4 <= delay(plain), "{} of {}", delay(driven), delay(plain));
    // Without a provider the control is CUBIC.
    let alone = play(&scenario("3s", "", "", &download("natcp:feed=guidance")));
    let cubic = play(&scenario("3s", "", "", &download("cubic")));
    assert_eq!(alone.flows[0].delivered, cubic.flows[0].delivered);
}

#[test]
fn uploads_and_quic_are_the_same_with_and_without_a_rewriter() {
    for flow in [
        "[[flow]]\nfrom = \"phone\"\nto = \"server\"\ncc = \"cubic\"\n",
        "[[flow]]\nfrom = \"server\"\nto = \"phone\"\ntransport = \"quic\"\ncc = \"cubic\"\n",
    ] {
        let plain = play(&scenario("2s", "", "", flow));
        let both = format!("{}{}", rewriter("milliproxy"), rewriter("guidance"));
        let with = play(&scenario("2s", "", &both, flow));
        assert_eq!(plain.flows[0].delivered, with.flows[0].delivered, "{flow}");
        assert_eq!(plain.flows[0].sent_packets, with.flows[0].sent_packets, "{flow}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever the rewriters, every file arrives whole, every byte is counted, and the same scenario gives the same result.
    #[test]
    fn connections_end_whole(
        policy in prop::sample::select(vec!["bdp", "literal", "bdp_buffer"]),
        flows in prop::sample::select(vec!["one", "count"]),
        cc in prop::sample::select(vec!["cubic", "natcp:feed=guidance", "natcp:keep=cubic:feed=guidance", "bbr1"]),
        opener in prop::sample::select(vec!["sender", "receiver"]),
        order in any::<bool>(),
        lost in 0..30_u32,
        kilobytes in 1..3_000_u32,
        timestamps in any::<bool>(),
        content in prop::sample::select(vec!["measured", "full", "empty", "random"]),
    ) {
        let milliproxy = format!("{}policy = \"{policy}\"\nflows = \"{flows}\"\n", rewriter("milliproxy"));
        let both = [milliproxy, rewriter("guidance")];
        let both = if order { both.concat() } else { format!("{}{}", both[1], both[0]) };
        let feed = format!("[rnis]\nperiod = \"5ms\"\nstop = \"2s\"\ncontent = \"{content}\"\n");
        let flow = format!(
            "{}opener = \"{opener}\"\ncount = 2\nworkload = {{ kind = \"fixed\", size = \"{kilobytes}KB\" }}\n\
             tcp = {{ timestamps = {timestamps} }}\n",
            download(cc),
        );
        let loss = if lost == 0 { String::new() } else { format!("loss = 0.0{lost:02}") };
        let text = scenario("40s", &loss, &(both + &feed), &flow);
        let result = play(&text);
        for flow in &result.flows {
            prop_assert_eq!(flow.delivered, Bytes::new(u64::from(kilobytes) * 1_000), "{}", text);
        }
        // Series have gaps, which are NaN.
        prop_assert_eq!(format!("{:?}", result.flows), format!("{:?}", play(&text).flows));
    }
}
