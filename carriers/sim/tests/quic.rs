//! Flows over QUIC: real datagrams of noq over simulated links, beside TCP.

mod common;

use common::{column, play, within};
use proptest::prelude::*;
use ranpace_sim::{FlowResult, RunResult};

/// A link from "a" to "b", and an unlimited return path.
fn path(rate: &str, rtt_ms: u32, link: &str) -> String {
    let half = rtt_ms / 2;
    format!(
        "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = {rate:?}\ndelay = \"{half}ms\"\n{link}\n\
         [[link]]\nfrom = \"b\"\nto = \"a\"\nrate = \"unlimited\"\ndelay = \"{half}ms\"\n"
    )
}

fn flow(transport: &str, cc: &str, keys: &str) -> String {
    format!("[[flow]]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport:?}\ncc = {cc:?}\n{keys}\n")
}

fn run(seconds: u32, network: &str, flows: &str) -> RunResult {
    play(&format!("duration = \"{seconds}s\"\n{network}{flows}"))
}

fn mbit(flow: &FlowResult) -> f64 {
    flow.goodput.as_f64() / 1e6
}

#[test]
fn a_bulk_flow_fills_a_clean_link_as_over_tcp() {
    // A queue of two bandwidth-delay products.
    let network = path("20Mbit/s", 40, "queue = { kind = \"droptail\", limit = \"200KB\" }");
    for cc in ["newreno", "cubic", "vegas", "westwood", "bbr1"] {
        let [tcp, quic] =
            ["tcp", "quic"].map(|transport| mbit(&run(30, &network, &flow(transport, cc, "")).flows[0]));
        assert!(within(quic, tcp, 0.03), "{cc}: {quic} Mbit/s over QUIC, {tcp} over TCP");
    }
}

#[test]
fn every_workload_that_tcp_carries_is_carried() {
    let network = path("10Mbit/s", 60, "");
    let workload = |workload: &str| {
        let keys = format!("workload = {{ {workload} }}\nopener = \"receiver\"");
        run(10, &network, &flow("quic", "cubic", &keys)).flows.remove(0)
    };
    // 800 ms of data, and a few round trips: the handshake, and slow start from ten packets.
    let fixed = workload("kind = \"fixed\", size = \"1MB\"");
    let completion = fixed.transfers[0].completion.unwrap().as_secs_f64();
    assert!((1.0..1.5).contains(&completion), "{completion}");
    assert_eq!(fixed.delivered.get(), 1_000_000);

    let repeat = workload("kind = \"repeat\", size = \"100KB\", pause = \"100ms\", count = 5");
    assert_eq!(repeat.transfers.len(), 5);
    assert!(repeat.transfers.iter().all(|transfer| transfer.completion.is_some()));
    assert_eq!(repeat.delivered.get(), 500_000);

    let paced = workload("kind = \"paced\", rate = \"2Mbit/s\"");
    assert!(within(mbit(&paced), 2.0, 0.02), "{}", mbit(&paced));

    let web = workload("kind = \"web\", page = \"200KB\", interval = \"1s\"");
    assert!(web.transfers.len() >= 10);
    // The last one begins when the run ends.
    assert!(web.transfers[..9].iter().all(|transfer| transfer.completion.is_some()));
}

#[test]
fn the_same_text_gives_the_same_result() {
    let network = path("8Mbit/s", 50, "loss = 0.01\njitter = \"2ms\"");
    let flows = flow("quic", "cubic", "count = 3") + &flow("tcp", "cubic", "");
    let [first, second] = [(); 2].map(|()| format!("{:?}", run(5, &network, &flows)));
    assert!(first == second);
}

#[test]
fn the_receive_window_limits_as_flow_control_says() {
    // 100 kB per round trip of 100 ms are 8 Mbit/s.
    let network = path("100Mbit/s", 100, "");
    for keys in ["max_data = \"100KB\"", "quic = { max_stream_data = \"100KB\" }"] {
        let result = run(20, &network, &flow("quic", "cubic", keys));
        let found = mbit(&result.flows[0]);
        assert!(found > 6.0 && found < 8.1, "{keys}: {found} Mbit/s");
    }
}

#[test]
fn marks_reach_the_control_and_nothing_is_lost() {
    let network = path("10Mbit/s", 40, "queue = { kind = \"codel\", ecn = true }");
    let [marked, dropped] =
        ["ecn = true", ""].map(|keys| run(30, &network, &flow("quic", "cubic", keys)).flows.remove(0));
    assert!(marked.marked_packets > 0 && marked.retransmitted_packets == 0, "{}", marked.marked_packets);
    assert!(dropped.marked_packets == 0 && dropped.retransmitted_packets > 0);
    let tcp = run(30, &network, &flow("tcp", "cubic", "ecn = true")).flows.remove(0);
    assert!(within(mbit(&marked), mbit(&tcp), 0.03), "{} Mbit/s, {} over TCP", mbit(&marked), mbit(&tcp));
}

#[test]
fn acknowledgements_are_as_frequent_as_is_asked_for() {
    let network = path("10Mbit/s", 40, "");
    let acks = |keys| {
        let result = run(10, &network, &flow("quic", "newreno", keys));
        let flow = &result.flows[0];
        flow.totals.received_packets as f64 / flow.totals.acks as f64
    };
    assert!(within(acks(""), 2.0, 0.1), "{}", acks(""));
    assert!(within(acks("ack_every = 10"), 10.0, 0.15), "{}", acks("ack_every = 10"));
    assert!(within(acks("ack_every = 1"), 1.0, 0.1), "{}", acks("ack_every = 1"));
}

#[test]
fn the_series_show_window_and_round_trips() {
    let network = path("10Mbit/s", 40, "queue = { kind = \"droptail\", limit = \"50KB\" }");
    let result = run(10, &network, &flow("quic", "cubic", ""));
    let flow = &result.flows[0];
    let windows = column(flow, "cwnd_bytes");
    let most = windows.iter().copied().fold(0.0, f64::max);
    // 50 kB in flight, 50 queued; slow start exceeds that.
    assert!(most > 90_000.0 && most < 250_000.0, "{most}");
    for (name, least, most) in [("srtt_s", 0.039, 0.09), ("rtt_last_s", 0.039, 0.09)] {
        let values = column(flow, name).iter().copied().filter(|value| !value.is_nan());
        let (low, high) =
            values.fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        assert!(low > least && high < most, "{name}: {low} to {high}");
    }
    assert!(flow.rtt.count > 1_000 && flow.totals.recoveries > 0 && flow.totals.acks > 1_000);
    assert!(flow.retransmitted_packets >= flow.dropped_packets && flow.dropped_packets > 0);
}

/// An LTE cell of 25 PRBs that carries about 18 Mbit/s, behind a wired link that loses packets at random.
const CELL: &str = r#"
duration = "10s"
[[link]]
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "20ms"
loss = 0.002
back = { loss = 0.0 }
[[cell]]
host = "mast"
radio = "lte"
bandwidth = "5MHz"
fixed_mcs = 26
block_errors = 0.0
buffer = "500KB"
[[user]]
name = "phone"
position = [50, 0]
[[flow]]
from = "server"
to = "phone"
"#;

#[test]
fn radio_information_reaches_a_control_over_quic() {
    let flow = |keys: &str| play(&format!("{CELL}{keys}")).flows.remove(0);
    let plain = flow("transport = \"quic\"\ncc = \"newreno\"");
    let hidden = flow("transport = \"quic\"\ncc = \"newreno+meld-de\"");
    let silent = column(&hidden, "state_meld_silent").iter().copied().fold(0.0, f64::max);
    assert!(silent > 10.0, "{silent}");
    assert!(mbit(&hidden) > 1.3 * mbit(&plain), "{} Mbit/s, {} without MELD", mbit(&hidden), mbit(&plain));
    assert!(hidden.totals.recoveries < plain.totals.recoveries / 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the network does, a transfer arrives complete, and every byte in the network is accounted for.
    #[test]
    fn a_transfer_completes_over_any_link(
        rate in 500..50_000_u32,
        rtt in 2..300_u32,
        loss in 0..200_u32,
        limit in 5..200_u32,
        trouble in prop::sample::select(vec!["", "jitter = \"20ms\"", "reorder = { probability = 0.05, delay = \"9ms\" }"]),
        cc in prop::sample::select(vec!["newreno", "cubic", "bbr1", "vegas", "veno"]),
        keys in prop::sample::select(vec!["", "opener = \"receiver\"", "mtu = \"1280B\"", "pacing = false", "ecn = true"]),
        seed in 0..1_000_u32,
    ) {
        let link = format!("loss = 0.{loss:03}\nqueue = {{ kind = \"droptail\", limit = \"{limit} packets\" }}\n{trouble}");
        let network = path(&format!("{rate}kbit/s"), rtt, &link);
        let keys = format!("{keys}\nworkload = {{ kind = \"fixed\", size = \"100KB\" }}");
        let result = play(&format!("seed = {seed}\nduration = \"600s\"\n{network}{}", flow("quic", cc, &keys)));
        let flow = &result.flows[0];
        prop_assert!(flow.transfers[0].completion.is_some(), "{} of 100000 B", flow.delivered);
        prop_assert_eq!(flow.delivered.get(), 100_000);
    }
}

/// An endless slow start into a queue of 8 MB: megabytes wait behind the first loss.
fn burst_of_losses(keys: &str) -> FlowResult {
    let network = path("100Mbit/s", 60, "queue = { kind = \"droptail\", limit = \"8MB\" }");
    run(20, &network, &flow("quic", "newreno", keys)).flows.remove(0)
}

#[test]
fn a_connection_that_noq_gives_up_is_not_silent() {
    let flow = burst_of_losses("max_data = \"32MiB\"");
    let lost = flow.lost.as_ref().expect("more than 2,048 packets wait behind a gap");
    assert!(lost.reason.starts_with("the receiver gave it up: "), "{}", lost.reason);
    assert!(lost.reason.ends_with("too many gaps in stream buffer"), "{}", lost.reason);
    // Bytes that arrived until then count, later ones do not.
    let at = lost.at.as_secs_f64();
    assert!((0.5..5.0).contains(&at), "{at}");
    let rows = column(&flow, "time_s").iter().zip(column(&flow, "goodput_bit_s"));
    assert!(rows.filter(|(time, _)| **time > at + 0.2).all(|(_, rate)| *rate == 0.0));
    assert!(flow.measured.as_secs_f64() > 19.9, "goodput is over the time that it should have had");
}

#[test]
fn by_default_no_burst_of_losses_ends_a_connection() {
    let own = burst_of_losses("");
    assert_eq!(own.lost, None);
    // 2 MB in 60 ms exceed the link's rate.
    assert!(mbit(&own) > 90.0, "{}", mbit(&own));
    // A queue smaller than the window, random losses, and the smallest packets.
    for (limit, loss, keys) in
        [("500KB", "", ""), ("1500KB", "loss = 0.01", ""), ("1500KB", "loss = 0.01", "mtu = \"1228B\"")]
    {
        let queue = format!("queue = {{ kind = \"droptail\", limit = {limit:?} }}\n{loss}");
        let network = path("100Mbit/s", 60, &queue);
        let own = run(20, &network, &flow("quic", "scalable:a=0.1", keys)).flows.remove(0);
        assert_eq!(own.lost, None, "{limit} {loss} {keys}");
    }
}
