//! In any run, every lost byte is counted, and the same text gives the same result.

mod common;

use common::{Path, column, play};
use proptest::prelude::*;
use ranpace_sim::RunResult;

fn service() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (500..40_000_u64).prop_map(|rate| format!("rate = \"{rate}kbit/s\"")),
        1 => Just("rate = \"unlimited\"".to_owned()),
        1 => Just("trace = \"steady\"".to_owned()),
        1 => (any::<bool>(), 1..30_u32)
            .prop_map(|(repeat, scale)| format!("trace = \"bursty\"\nrepeat = {repeat}\nscale = {}.5", scale / 10)),
    ]
}

fn queue() -> impl Strategy<Value = String> {
    let limit = prop_oneof![
        (2..200_u32).prop_map(|packets| format!("{packets} packets")),
        (3_000..200_000_u32).prop_map(|bytes| format!("{bytes}B")),
        Just("unlimited".to_owned()),
    ];
    (0..7_usize, limit, any::<bool>()).prop_map(|(kind, limit, ecn)| {
        let kind = ["droptail", "codel", "fq_codel", "pie", "dualpi2", "l4span", "abc"][kind];
        // A drop-tail queue marks from a certain size on; limits are at least 3000 B, two packets of 1500 B.
        let ecn = if kind == "droptail" && ecn { "\"3000B\"".to_owned() } else { ecn.to_string() };
        let ecn = if matches!(kind, "dualpi2" | "l4span" | "abc") {
            String::new()
        } else {
            format!(", ecn = {ecn}")
        };
        format!("queue = {{ kind = \"{kind}\", limit = \"{limit}\"{ecn} }}")
    })
}

fn loss() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(String::new()),
        1 => (1..50_u32).prop_map(|p| format!("loss = 0.{p:03}")),
        1 => (1..20_u32, 1..9_u32).prop_map(|(p, r)| format!("loss = {{ kind = \"gilbert_elliott\", p = 0.{p:03}, r = 0.{r} }}")),
        1 => prop::collection::btree_set(0..300_u32, 1..8)
            .prop_map(|packets| format!("loss = {{ kind = \"list\", packets = {:?} }}", Vec::from_iter(packets))),
    ]
}

fn trouble() -> impl Strategy<Value = String> {
    let jitter = prop_oneof![
        3 => Just(""),
        1 => Just("jitter = \"3ms\""),
        1 => Just("jitter = { kind = \"normal\", mean = \"4ms\", deviation = \"2ms\" }"),
    ];
    let reorder = prop_oneof![3 => Just(""), 1 => Just("reorder = { probability = 0.02, delay = \"6ms\" }")];
    (loss(), jitter, reorder).prop_map(|(loss, jitter, reorder)| format!("{loss}\n{jitter}\n{reorder}"))
}

/// Only links before the last one may be unlimited: every flow crosses the last one, which limits it.
fn link(index: usize, last: bool) -> impl Strategy<Value = String> {
    let limited = |service: String| {
        if service.contains("unlimited") { "rate = \"9Mbit/s\"".to_owned() } else { service }
    };
    let service = service().prop_map(move |service| if last { limited(service) } else { service });
    (service, queue(), trouble(), 0..60_u32).prop_map(move |(service, queue, trouble, delay)| {
        let queue = if service.contains("unlimited") { String::new() } else { queue };
        format!(
            "[[link]]\nname = \"l{index}\"\nfrom = \"h{index}\"\nto = \"h{}\"\n{service}\n{queue}\n{trouble}\ndelay = \"{delay}ms\"\nduplex = true\n",
            index + 1
        )
    })
}

const CONTROLS: [&str; 28] = [
    "prague",
    "abc",
    "newreno",
    "cubic",
    "cubic:rfc9438",
    "cubic:hystart=plusplus",
    "bbr1",
    "bbr-zhong",
    "bbr3",
    "vegas",
    "veno",
    "westwood",
    "yeah",
    "scalable",
    "c2tcp",
    "cubic+c2tcp:target=50ms",
    "newreno+c2tcp",
    "vivace",
    "sprout",
    "verus",
    "copa",
    "copa:mode=default",
    "newreno+lda",
    "cubic+lda:rule=eq",
    "natcp",
    "xtcp",
    "pbe",
    "pbe:guard=off",
];

fn flow(hosts: usize) -> impl Strategy<Value = String> {
    let workload = prop_oneof![
        4 => Just("\"bulk\"".to_owned()),
        1 => (1..3_000_u32).prop_map(|kb| format!("{{ kind = \"fixed\", size = \"{kb}KB\" }}")),
        1 => (1..200_u32, 0..300_u32)
            .prop_map(|(kb, pause)| format!("{{ kind = \"repeat\", size = \"{kb}KB\", pause = \"{pause}ms\" }}")),
        1 => (50..5_000_u32).prop_map(|rate| format!("{{ kind = \"paced\", rate = \"{rate}kbit/s\" }}")),
        1 => (1..300_u32).prop_map(|kb| format!("{{ kind = \"web\", page = \"{kb}KB\", interval = \"700ms\" }}")),
    ];
    let tcp = prop_oneof![
        4 => Just(""),
        1 => Just("timestamps = false"),
        1 => Just("ecn = true"),
        1 => Just("ecn = \"accurate\"\nace = \"wire\"\necn_option = true"),
        1 => Just("ack_every = 1\npacing = true"),
        1 => Just("opener = \"receiver\"\nmtu = \"576B\""),
        1 => Just("sack = false"),
        1 => Just("stack = \"ns-3.26\"\ninflate_own = true"),
        1 => Just("receive_buffer = \"20KB\"\nreceive_buffer_max = \"60KB\"\nsend_buffer = \"40KB\""),
    ];
    let tcp_flow = (0..CONTROLS.len(), workload, tcp).prop_map(|(cc, workload, tcp)| {
        let cc = CONTROLS[cc];
        let datagrams = matches!(cc, "sprout" | "verus");
        let workload = if datagrams { "\"bulk\"".to_owned() } else { workload };
        format!("cc = \"{cc}\"\nworkload = {workload}\n{tcp}")
    });
    let udp = (100..10_000_u32, 60..1_500_u32, any::<bool>()).prop_map(|(rate, packet, bursts)| {
        let kind = if bursts { "ppbp" } else { "cbr" };
        format!("transport = \"udp\"\npacket = \"{packet}B\"\nworkload = {{ kind = \"{kind}\", rate = \"{rate}kbit/s\" }}")
    });
    (
        prop_oneof![4 => tcp_flow, 1 => udp],
        0..hosts - 1,
        any::<bool>(),
        0..1_000_u32,
        prop::option::of(1_200..1_900_u32),
    )
        .prop_map(move |(what, first, backwards, start, stop)| {
            let (from, to) = if backwards { (hosts - 1, first) } else { (first, hosts - 1) };
            let stop = stop.map_or(String::new(), |stop| format!("stop = \"{stop}ms\"\n"));
            format!("[[flow]]\nfrom = \"h{from}\"\nto = \"h{to}\"\n{what}\nstart = \"{start}ms\"\n{stop}")
        })
}

/// A chain of links, flows over all or the last of them in both directions, and changes.
fn scenario() -> impl Strategy<Value = String> {
    (1..=4_usize).prop_flat_map(|links| {
        let chain: Vec<_> = (0..links).map(|index| link(index, index + 1 == links)).collect();
        let flows = prop::collection::vec(flow(links + 1), 1..5);
        // A link without a rate keeps its delay, which alone limits what a flow can send.
        let change = (100..1_900_u32, 0..links, 200..30_000_u32, prop::option::of(1..80_u32)).prop_map(
            |(at, link, rate, delay)| {
                let what = match delay {
                    Some(delay) => format!("delay = \"{delay}ms\""),
                    None => format!("rate = \"{rate}kbit/s\""),
                };
                format!("[[change]]\nat = \"{at}ms\"\nlink = \"l{link}\"\n{what}\n")
            },
        );
        (chain, flows, prop::collection::vec(change, 0..3), any::<u32>(), 0..1_500_u32).prop_map(
            |(chain, flows, changes, seed, warmup)| {
                format!(
                    "duration = \"2s\"\nwarmup = \"{warmup}ms\"\nsample = \"20ms\"\nseed = {seed}\n{}{}{}",
                    chain.concat(),
                    flows.concat(),
                    changes.concat()
                )
            },
        )
    })
}

fn check(result: &RunResult) -> Result<(), TestCaseError> {
    prop_assert!(result.ledger.balances(), "{:?}", result.ledger);
    for flow in &result.flows {
        let times = column(flow, "time_s");
        prop_assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        let (delivered, sent) = (column(flow, "delivered_bytes"), column(flow, "sent_bytes"));
        let acked = column(flow, "acked_bytes");
        for row in 0..times.len() {
            prop_assert!(delivered[row] <= sent[row], "{}: {} of {}", flow.cc, delivered[row], sent[row]);
            prop_assert!(acked[row] <= delivered[row], "{}: {} of {}", flow.cc, acked[row], delivered[row]);
        }
        prop_assert!(delivered.windows(2).all(|pair| pair[0] <= pair[1]), "{}", flow.cc);
        prop_assert!(column(flow, "goodput_bit_s").iter().all(|rate| rate.is_finite() && *rate >= 0.0));
        prop_assert!(
            column(flow, "cwnd_bytes").iter().all(|window| window.is_nan() || *window >= 400.0),
            "{}",
            flow.cc
        );
        prop_assert!(flow.series.columns.iter().all(|column| column.values.len() == times.len()));
        prop_assert!(flow.retransmitted_packets <= flow.sent_packets);
        prop_assert!(flow.loss_rate.is_finite() && flow.jitter_ewma <= flow.queueing_delay.max);
        for delays in [&flow.rtt, &flow.queueing_delay] {
            prop_assert!(delays.min <= delays.p50 && delays.p50 <= delays.p95 && delays.p95 <= delays.p99);
            prop_assert!(delays.p99 <= delays.max && delays.min <= delays.mean && delays.mean <= delays.max);
        }
    }
    for link in &result.links {
        // A link can seem too fast by at most the packet that was in service when the measured part began.
        if let Some(capacity) = link.capacity {
            prop_assert!(
                link.departed.get() <= capacity.get() + 3_008,
                "{}: {} of {capacity}",
                link.name,
                link.departed
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_is_delivered_dropped_or_under_way(text in scenario()) {
        let result = play(&text);
        check(&result).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// NaN is unequal to itself, so results are compared as text, which shows every bit that matters.
    #[test]
    fn the_same_text_gives_the_same_result(text in scenario()) {
        prop_assert_eq!(format!("{:?}", play(&text)), format!("{:?}", play(&text)));
    }

    #[test]
    fn nothing_is_sent_again_where_nothing_is_lost(
        cc in prop::sample::select(&CONTROLS[..15]),
        rate in 2..50_u32,
        rtt in 2..200_u32,
        jitter in prop::sample::select(&["", "jitter = \"2ms\""][..]),
        workload in prop::sample::select(
            &["\"bulk\"", "{ kind = \"web\", page = \"150KB\", interval = \"400ms\" }", "{ kind = \"paced\", rate = \"1Mbit/s\" }"][..]
        ),
    ) {
        let path = Path {
            rate: &format!("{rate}Mbit/s"),
            rtt: &format!("{rtt}ms"),
            queue: r#"{ kind = "droptail", limit = "unlimited" }"#,
            link: jitter,
            top: "duration = \"4s\"",
        };
        let result = path.play(&[&format!("cc = \"{cc}\"\nworkload = {workload}")]);
        let flow = &result.flows[0];
        prop_assert_eq!((flow.dropped_packets, flow.retransmitted_packets, flow.timeouts), (0, 0, 0));
        prop_assert_eq!(result.ledger.offered, result.ledger.delivered + result.ledger.in_network);
    }
}

#[test]
fn a_middlebox_drops_every_nth_packet_of_each_flow_and_they_are_counted() {
    let text = |middlebox: &str| {
        format!(
            r#"
            duration = "10s"
            [[link]]
            from = "server"
            to = "edge"
            rate = "100Mbit/s"
            delay = "10ms"
            duplex = true
            [[link]]
            from = "edge"
            to = "phone"
            rate = "100Mbit/s"
            delay = "1ms"
            duplex = true
            [[flow]]
            from = "server"
            to = "phone"
            transport = "udp"
            packet = "1500B"
            workload = {{ kind = "cbr", rate = "12Mbit/s" }}
            [[flow]]
            from = "phone"
            to = "server"
            cc = "cubic"
            workload = {{ kind = "fixed", size = "1MB" }}
            {middlebox}
            "#
        )
    };
    let play = |middlebox: &str| {
        let scenario = ranpace_scenario::parse(&text(middlebox), "test.toml", &mut ()).expect("it is right");
        ranpace_sim::Simulation::new(&scenario).run()
    };
    let plain = play("");
    let with = play("[[middlebox]]\nhost = \"edge\"\nkind = \"drop_every\"\npackets = 50");
    assert!(with.ledger.balances(), "{:?}", with.ledger);
    assert_eq!(plain.flows[0].dropped_packets, 0);
    // 1000 packets a second from 0 to 10 s.
    assert_eq!(with.flows[0].sent_packets, 10_001);
    assert!((199..=200).contains(&with.flows[0].dropped_packets), "{}", with.flows[0].dropped_packets);
    // 691 segments of 1448 B, and the retransmissions.
    assert!((13..=15).contains(&with.flows[1].dropped_packets), "{}", with.flows[1].dropped_packets);
    assert_eq!(with.flows[1].delivered, ranpace_units::Bytes::new(1_000_000), "lost packets are sent again");
}
