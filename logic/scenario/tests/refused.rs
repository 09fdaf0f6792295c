//! Refused input, with the exact messages.

use ranpace_scenario::parse;

/// A valid scenario, in which the cases replace lines.
const GOOD: &str = r#"duration = "10s"

[[link]]
name = "down"
from = "server"
to = "phone"
rate = "12Mbit/s"
delay = "20ms"
duplex = true

[[flow]]
name = "web"
from = "server"
to = "phone"
cc = "newreno"
"#;

/// The messages about `GOOD` with `old` replaced by `new`.
fn refused(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old), "{old}");
    let text = GOOD.replacen(old, new, 1);
    match parse(&text, "f.toml", &mut ()) {
        Ok(scenario) => panic!("{new}: {scenario:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_mistake_is_told_with_its_place() {
    assert!(parse(GOOD, "f.toml", &mut ()).is_ok());
    let mut seen = String::new();
    for (old, new, message) in CASES {
        let found = refused(old, new);
        let is_told = match message.strip_suffix("...") {
            Some(beginning) => found.starts_with(beginning),
            None => found == *message,
        };
        if !is_told {
            seen += &format!("        ({old:?}, {new:?},\n            {found:?}),\n");
        }
    }
    assert!(seen.is_empty(), "told otherwise:\n{seen}");
}

/// Text in `GOOD`, its replacement, and the expected message; "..." at the end stands for any text.
const CASES: &[(&str, &str, &str)] = &[
    (
        "cc = \"newreno\"",
        "transport = \"quic\"\ncc = \"cdbe\"\nmin_rto = \"1s\"",
        "f.toml:16:6: cc: cdbe needs acknowledgements that carry reports of the receiver, which those of QUIC cannot; use transport = \"tcp\"\nf.toml:17:11: min_rto: applies only to TCP, but this flow's transport is \"quic\"",
    ),
    (
        "cc = \"newreno\"",
        "transport = \"quic\"\ncc = \"sprout\"\nmtu = \"1000B\"",
        "f.toml:16:6: cc: sprout has its own transport and cannot be carried by QUIC\nf.toml:17:7: mtu: expected 1.228KB to 65.535KB, found \"1000B\"",
    ),
    (
        "cc = \"newreno\"",
        "transport = \"quic\"\nquic = { max_data = \"1KB\", nagle = true }",
        "f.toml:11:1: missing key \"cc\" in [[flow]]\nf.toml:16:21: max_data: expected 1.5KB to 1099.511627776GB, found \"1KB\"\nf.toml:16:28: unknown key \"nagle\" in quic of [[flow]]; expected one of mtu, initial_window, max_data, max_stream_data, ack_every, ack_delay, ecn, pacing, opener, certificates",
    ),
    (
        "rate = \"12Mbit/s\"\ndelay = \"20ms\"",
        "rate = \"unlimited\"\ndelay = \"1us\"",
        "f.toml:12:8: flow \"web\": no link of its path and back has a rate, and their delays sum to 2us; set a rate on one of them, or a delay of at least 10us",
    ),
    (
        "delay",
        "dealy",
        "f.toml:8:1: unknown key \"dealy\" in [[link]]; expected one of name, from, to, rate, trace, light, light_timer, repeat, scale, opportunity, overhead, delay, jitter, queue, loss, reorder, duplex, back; did you mean \"delay\"?",
    ),
    (
        "\"20ms\"",
        "20",
        "f.toml:8:9: delay: expected a time such as \"20ms\", found \"20\", which has no unit (one of s, ms, us, ns, min, h)",
    ),
    (
        "\"20ms\"",
        "\"20\"",
        "f.toml:8:9: delay: expected a time such as \"20ms\", found \"20\", which has no unit (one of s, ms, us, ns, min, h)",
    ),
    (
        "\"20ms\"",
        "\"20KB\"",
        "f.toml:8:9: delay: expected a time such as \"20ms\", found \"20KB\": unknown unit \"KB\" (one of s, ms, us, ns, min, h)",
    ),
    (
        "\"20ms\"",
        "\"-20ms\"",
        "f.toml:8:9: delay: expected a time such as \"20ms\", found \"-20ms\"; it cannot be negative",
    ),
    ("\"20ms\"", "\"3h\"", "f.toml:8:9: delay: expected 0s to 7200s, found \"3h\""),
    ("\"20ms\"", "true", "f.toml:8:9: delay: expected a time such as \"20ms\", found true"),
    ("\"20ms\"", "nan", "f.toml:8:9: delay: expected a time such as \"20ms\", found \"NaN\""),
    ("\"12Mbit/s\"", "\"0Mbit/s\"", "f.toml:7:8: rate: must be above zero, found \"0Mbit/s\""),
    (
        "\"12Mbit/s\"",
        "\"12\"",
        "f.toml:7:8: rate: expected a rate such as \"12Mbit/s\", found \"12\", which has no unit (one of Gbit/s, Mbit/s, kbit/s, bit/s, Gbps, Mbps, kbps, bps)",
    ),
    (
        "\"12Mbit/s\"",
        "\"12Tbit/s\"",
        "f.toml:7:8: rate: expected a rate such as \"12Mbit/s\", found \"12Tbit/s\": unknown unit \"Tbit/s\" (one of Gbit/s, Mbit/s, kbit/s, bit/s, Gbps, Mbps, kbps, bps)",
    ),
    (
        "\"12Mbit/s\"",
        "\"12Mbit/s\"\ntrace = \"x\"",
        "f.toml:8:9: trace: a link has a rate or a trace, not both",
    ),
    (
        "rate = \"12Mbit/s\"",
        "",
        "f.toml:3:1: missing key \"rate\" or \"trace\" in [[link]]; use `rate = \"unlimited\"` for neither",
    ),
    (
        "rate = \"12Mbit/s\"",
        "trace = \"Nowhere-LTE\"",
        "f.toml:7:9: trace: cannot load \"Nowhere-LTE\": no traces are available here",
    ),
    ("delay", "scale = 2.0\ndelay", "f.toml:8:9: scale: applies only to a trace, but this link has none"),
    (
        "duplex = true",
        "loss = 1.5",
        "f.toml:9:8: loss: expected a number from 0 to 1, found 1.5\nf.toml:14:6: to: no path for acknowledgements from \"phone\" to \"server\" with at most 64 links",
    ),
    (
        "duplex = true",
        "loss = -0.1",
        "f.toml:9:8: loss: expected a number from 0 to 1, found -0.1\nf.toml:14:6: to: no path for acknowledgements from \"phone\" to \"server\" with at most 64 links",
    ),
    (
        "duplex = true",
        "loss = nan",
        "f.toml:9:8: loss: expected a number from 0 to 1, found NaN\nf.toml:14:6: to: no path for acknowledgements from \"phone\" to \"server\" with at most 64 links",
    ),
    (
        "duplex = true",
        "duplex = \"yes\"",
        "f.toml:9:10: duplex: expected true or false, found \"yes\"\nf.toml:14:6: to: no path for acknowledgements from \"phone\" to \"server\" with at most 64 links",
    ),
    (
        "duplex = true",
        "",
        "f.toml:14:6: to: no path for acknowledgements from \"phone\" to \"server\" with at most 64 links",
    ),
    (
        "duplex = true",
        "duplex = false\nback = { delay = \"1ms\" }",
        "f.toml:9:10: duplex: is false, but `back` describes a link in the other direction",
    ),
    (
        "duplex = true",
        "queue = { kind = \"fifo\" }",
        "f.toml:9:18: kind: expected one of droptail, codel, fq_codel, pie, dualpi2, l4span, abc, found \"fifo\"\nf.toml:14:6: to: no path for acknowledgements from \"phone\" to \"server\" with at most 64 links",
    ),
    (
        "duplex = true",
        "duplex = true\nqueue = { kind = \"codel\", limit = \"0B\", quantum = \"1B\" }",
        "f.toml:10:35: limit: must be above zero: nothing would ever pass\nf.toml:10:41: unknown key \"quantum\" in queue of [[link]]; expected one of kind, limit, target, interval, ecn, ce_threshold",
    ),
    (
        "duplex = true",
        "duplex = true\nqueue = { kind = \"droptail\", limit = 100 }",
        "f.toml:10:38: limit: expected \"150KB\", \"100 packets\" or \"unlimited\", found 100",
    ),
    (
        "duplex = true",
        "duplex = true\nqueue = { kind = \"droptail\", limit = \"1.5 packets\" }",
        "f.toml:10:38: limit: expected \"150KB\", \"100 packets\" or \"unlimited\", found \"1.5 packets\"",
    ),
    (
        "duplex = true",
        "duplex = true\nqueue = { kind = \"droptail\", limit = \"150B\" }",
        "f.toml:13:8: flow \"web\": its packets of 1.5KB never fit into the queue of link \"down\", whose limit is 150B",
    ),
    (
        "duplex = true",
        "duplex = true\nqueue = { kind = \"droptail\", ecn = true }",
        "f.toml:10:36: ecn: for droptail, expected the size above which packets are marked, such as \"30KB\"",
    ),
    (
        "duplex = true",
        "duplex = true\nreorder = { probability = 0.1 }",
        "f.toml:10:11: missing key \"delay\" in reorder of [[link]]",
    ),
    (
        "duplex = true",
        "duplex = true\nloss = { kind = \"list\", packets = [1, -2] }",
        "f.toml:10:39: packets: expected a whole number from 0 to 9223372036854775807, found -2",
    ),
    (
        "\"down\"",
        "\"\"",
        "f.toml:4:8: name: expected a name of 1 to 200 bytes without control characters, found \"\"",
    ),
    ("to = \"phone\"\nrate", "to = \"server\"\nrate", "f.toml:6:6: to: both ends of the link are \"server\""),
    ("[[link]]", "[link]", "f.toml:3:1: link: expected [[link]] with two brackets, found [link]"),
    ("\"10s\"", "\"0s\"", "f.toml:1:12: duration: must be above zero, found \"0s\""),
    (
        "\"10s\"",
        "\"1001h\"\nsample = \"1us\"",
        "f.toml:2:10: sample: 3603600000000 samples of 1 flows, 2 links and 0 users would take 1037836.8 GB of memory, more than 2 GB; use at least 519ms, a shorter duration or fewer flows",
    ),
    ("\"10s\"", "\"24001h\"", "f.toml:1:12: duration: expected 1ns to 86400000s, found \"24001h\""),
    (
        "\"10s\"",
        "\"10s\"\nwarmup = \"10s\"",
        "f.toml:2:10: warmup: 10s is not before the scenario's end at 10s",
    ),
    (
        "\"10s\"",
        "\"10s\"\nseed = -1",
        "f.toml:2:8: seed: expected a whole number from 0 to 18446744073709551615, found -1",
    ),
    ("\"10s\"", "\"10s", "f.toml:1:16: this is not TOML: ..."),
    ("duration = \"10s\"\n", "", "f.toml:1:1: missing key \"duration\" at the top"),
    ("duration = \"10s\"\n", "duration = \"10s\"\nduration = \"10s\"\n", "f.toml:2:1: this is not TOML: ..."),
    (
        "[[flow]]\nname = \"web\"\nfrom = \"server\"\nto = \"phone\"\ncc = \"newreno\"\n",
        "",
        "f.toml:1:1: no [[flow]]: a scenario needs at least one",
    ),
    (
        "name = \"web\"\nfrom = \"server\"",
        "from = \"sever\"",
        "f.toml:12:8: from: unknown host \"sever\"; expected one of server, phone; did you mean \"server\"?",
    ),
    (
        "name = \"web\"\nfrom = \"server\"",
        "from = \"phone\"",
        "f.toml:13:6: to: \"phone\" is both the sender and the receiver of the flow",
    ),
    ("name = \"web\"\nfrom = \"server\"", "", "f.toml:11:1: missing key \"from\" in [[flow]]"),
    ("\"newreno\"", "\"newrno\"", "f.toml:15:6: cc: unknown algorithm \"newrno\"..."),
    ("\"newreno\"", "\"newreno:beta=2\"", "f.toml:15:6: cc: \"newreno:beta=2\": no option \"beta\"..."),
    (
        "cc = \"newreno\"",
        "",
        "f.toml:11:1: missing key \"cc\" in [[flow]]; a flow without congestion control has transport = \"udp\"",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\ntransport = \"udp\"",
        "f.toml:11:1: missing key \"workload\" in [[flow]]; transport \"udp\" carries cbr or ppbp\nf.toml:15:6: cc: applies only to TCP, but this flow's transport is \"udp\"",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\ntransport = \"datagram\"",
        "f.toml:16:13: transport: newreno is carried by \"tcp\", not by \"datagram\"; remove this key",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\npacket = \"1000B\"",
        "f.toml:16:10: packet: applies only to transport = \"udp\"; use `mtu` for other transports",
    ),
    (
        "cc = \"newreno\"",
        "transport = \"udp\"",
        "f.toml:11:1: missing key \"workload\" in [[flow]]; transport \"udp\" carries cbr or ppbp",
    ),
    (
        "cc = \"newreno\"",
        "transport = \"udp\"\nworkload = \"bulk\"",
        "f.toml:16:12: workload: \"bulk\" cannot be carried by UDP, which carries cbr, ppbp",
    ),
    (
        "cc = \"newreno\"",
        "transport = \"udp\"\nmtu = \"1400B\"\nworkload = { kind = \"cbr\", rate = \"0bit/s\" }",
        "f.toml:16:7: mtu: applies only to TCP, but this flow's transport is \"udp\"; the size of its packets is `packet`\nf.toml:17:35: rate: must be above zero, found \"0bit/s\"",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nworkload = { kind = \"cbr\", rate = \"1Mbit/s\" }",
        "f.toml:16:12: workload: \"cbr\" cannot be carried by TCP, which carries bulk, fixed, repeat, paced, web; it needs transport = \"udp\"",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nworkload = \"fixed\"",
        "f.toml:16:12: workload: \"fixed\" has settings: write workload = { kind = \"fixed\", ... }",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nworkload = { kind = \"fixed\", sice = \"1MB\" }",
        "f.toml:16:12: missing key \"size\" in workload of [[flow]]\nf.toml:16:30: unknown key \"sice\" in workload of [[flow]]; expected one of kind, size; did you mean \"size\"?",
    ),
    (
        "cc = \"newreno\"",
        "transport = \"udp\"\nworkload = { kind = \"ppbp\", rate = \"1Mbit/s\", hurst = 1.0, active_mean = 0 }",
        "f.toml:16:55: hurst: expected a number above 0.5 and below 1, found 1\nf.toml:16:74: active_mean: must be above zero",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nworkload = { kind = \"paced\", rate = \"1bit/s\" }",
        "f.toml:16:12: workload: 1bit/s is less than one byte per interval of 10ms",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nmtu = \"99B\"",
        "f.toml:16:7: mtu: expected 100B to 65.535KB, found \"99B\"",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nmtu = \"1000B\"\ntcp = { mtu = \"1000B\", inital_window = 3 }",
        "f.toml:16:7: mtu: is given twice, here and in `tcp`\nf.toml:17:24: unknown key \"inital_window\" in tcp of [[flow]]; expected one of mtu, initial_window, timestamps, ecn, ace, ecn_option, ack_every, ack_delay, quick_acks, min_rto, initial_rto, max_rto, receive_buffer, receive_buffer_max, send_buffer, slow_start_after_idle, gso, pacing, opener, stack, sack, inflate_own, rtt_sample, timestamp_granularity, rto, control_rtt, growth; did you mean \"initial_window\"?",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nmin_rto = \"200s\"",
        "f.toml:16:11: min_rto: max_rto, 120s, is less than min_rto, 200s",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nreceive_buffer_max = \"1KB\"",
        "f.toml:16:22: receive_buffer_max: 1KB is less than one packet (1.5KB): the flow would stall\nf.toml:16:22: receive_buffer_max: 1KB is less than receive_buffer, which is 65.536KB",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\ncount = 100001",
        "f.toml:16:9: count: expected a whole number from 1 to 100000, found 100001",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\ncount = 3\nstagger = \"5s\"",
        "f.toml:11:1: start: the flow would start at 10s, but the scenario ends at 10s",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nstagger = \"5s\"",
        "f.toml:16:11: stagger: is the time between the starts of `count` flows, but there is no `count`",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\nstart = \"5s\"\nstop = \"5s\"",
        "f.toml:17:8: stop: the flow would stop at 5s, but starts only at 5s",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\npath = [\"down.back\"]",
        "f.toml:16:9: path: the link \"down.back\" starts at \"phone\", but the path has reached \"server\"",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\npath = []",
        "f.toml:16:8: path: the path ends at \"server\", not at \"phone\"",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\npath = [\"dwon\"]",
        "f.toml:16:9: path: unknown link \"dwon\"; expected one of down, down.back; did you mean \"down\"?",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\n[[flow]]\nname = \"web\"\nfrom = \"phone\"\nto = \"server\"\ncc = \"newreno\"",
        "f.toml:17:8: there is another flow called \"web\"",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\n[[change]]\nat = \"10s\"\nlink = \"up\"\nrate = \"0bit/s\"",
        "f.toml:17:6: at: 10s is not before the scenario's end at 10s\nf.toml:18:8: link: unknown link \"up\"; expected one of down, down.back\nf.toml:19:8: rate: must be above zero, found \"0bit/s\"",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\n[[change]]\nat = \"1s\"\nflow = \"web\"\nrate = \"1bit/s\"",
        "f.toml:16:1: missing key \"target\" in [[change]] of a flow\nf.toml:19:8: rate: applies only to a link; a flow has `target`",
    ),
    (
        "cc = \"newreno\"",
        "cc = \"newreno\"\n[[change]]\nat = \"1s\"\ntarget = \"1s\"",
        "f.toml:16:1: missing key \"link\", \"flow\", \"user\" or \"feed\" in [[change]]",
    ),
];

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let text = "duraton = \"1s\"\nseed = 1.5\n[[link]]\nfrom = \"a\"\ndelay = 5\n[[flow]]\ncc = 5\n";
    let error = parse(text, "f.toml", &mut ()).unwrap_err();
    let lines: Vec<usize> = error.diagnostics.iter().map(|d| d.position.unwrap().line).collect();
    assert_eq!(lines, [1, 1, 2, 3, 3, 5, 6, 6, 7], "{error}");
}
