//! Tests of PBE-CC's receiver and sender alone; `carriers/sim/tests/pbe.rs` plays both in a cell.

use proptest::prelude::*;
use ranpace_phy::{Both, LteBandwidth};
use ranpace_rnis::{CellGrant, CellInfo, SI_RNTI};
use ranpace_units::{Bytes, Rate, Span, Time};

use super::cell::CellWindow;
use super::client::{agreeing_packets, goodput};
use super::*;
use crate::client_driven::pbe_report::Report;
use crate::interface::{
    Ack, Congestion, CongestionControl, ControlChannel, LossResponse, Pacing, Packet, PacketOutcome,
    RadioHint, RateSample, Received, ReceiverReport, Sending, Signal, Window,
};
use crate::testing::testbed::context;

const OWN: u16 = 7;
/// Symbols of an LTE subframe, in which PRBs are counted here.
const SYMBOLS: u32 = 14;
const MS: Span = Span::from_millis(1);

/// An instant; all begins at one second, so that packets can have been sent before.
fn at(ms: u64) -> Time {
    Time::from_millis(1_000 + ms)
}

fn lte(cell: u16) -> CellInfo {
    CellInfo::lte(cell, LteBandwidth::Mhz20)
}

/// A grant of so many PRBs with 500 bits each.
fn grant(rnti: u16, prbs: u32) -> CellGrant {
    CellGrant { rnti, prb_symbols: prbs * SYMBOLS, bits: prbs * 500, again: false }
}

/// The slot of this millisecond in a cell of 100 PRBs.
fn slot<'a>(ms: u64, cell: &'a CellInfo, grants: &'a [CellGrant]) -> ControlChannel<'a> {
    ControlChannel { measured_at: at(ms), cell, own: Some(OWN), available: 100 * SYMBOLS, grants }
}

fn client(text: &str) -> PbeClient {
    let algorithm: crate::Algorithm = text.parse().unwrap();
    let mut options = algorithm.options();
    let errors = match options.value::<String>("tber", "", "measured".to_owned()).unwrap().parse() {
        Ok(p) => BlockErrors::Bits(p),
        Err(_) => BlockErrors::Measured,
    };
    PbeClient::new(OVERHEAD, errors, options.number("miss", 0.0, 1.0, 0.0).unwrap())
}

/// The specification's example: own 30 PRBs, another user's 40, of 100.
fn example() -> [CellGrant; 2] {
    [grant(OWN, 30), grant(8, 40)]
}

fn packet(ms: u64, delay_ms: u64) -> Received {
    let now = at(ms);
    Received {
        now,
        number: None,
        bytes: Bytes::new(1448),
        wire: Bytes::new(1500),
        sent_at: now - Span::from_millis(delay_ms),
        time_to_next: Span::ZERO,
        rtt: Some(Span::from_millis(40)),
    }
}

/// Plays the control channel of a time, and a packet in each millisecond with this one-way delay.
fn play(client: &mut PbeClient, from: u64, until: u64, grants: &[CellGrant], delay_ms: u64) {
    let cell = lte(0);
    for ms in from..until {
        client.on_cell(at(ms), &slot(ms, &cell, grants));
        client.on_data(&packet(ms, delay_ms));
    }
}

fn figure(client: &PbeClient, name: &str) -> f64 {
    let mut found = f64::NAN;
    client.inspect(&mut |key, value| {
        if key == name {
            found = value;
        }
    });
    found
}

fn reported(client: &mut PbeClient, ms: u64) -> Report {
    let report = client.report(at(ms));
    report.and_then(|report| Report::decode(&report)).expect("it has an estimate")
}

#[test]
fn capacity_is_that_of_the_worked_example() {
    let mut window = CellWindow::default();
    let cell = lte(0);
    for ms in 0..40 {
        window.push(&slot(ms, &cell, &example()), Span::from_millis(40), |_| true);
    }
    let capacity = window.capacity().unwrap();
    assert_eq!(capacity.users, 2);
    assert!((capacity.physical - 22.5e6).abs() < 1.0, "{capacity:?}");
    assert!((capacity.fair - 25.0e6).abs() < 1.0, "{capacity:?}");
    assert!((capacity.block - 22_500.0).abs() < 1e-6, "{capacity:?}");
}

#[test]
fn goodput_is_that_of_the_worked_example() {
    // C_t at p = 0, 1e-6 and 3e-6.
    for (p, expected) in [(0.0, 20.97), (1e-6, 20.51), (3e-6, 19.69)] {
        let mut client = client(&format!("pbe:tber={p}"));
        play(&mut client, 0, 200, &example(), 20);
        let errors = figure(&client, "block_errors");
        let found = goodput(22.5, OVERHEAD, errors);
        assert!((found - expected).abs() < 0.005, "p = {p}: {found}, TBER {errors}");
        if p == 1e-6 {
            assert!((errors - 0.02225).abs() < 5e-6, "{errors}");
            // To subtract the errors, as the paper may do, would make a difference of 0.2 %.
            let subtracted = 22.5 * (1.0 - OVERHEAD - errors);
            assert!((found / subtracted - 1.002).abs() < 5e-4, "{found} and {subtracted}");
            // 585 us between packets, and ten packets of six subframes.
            assert_eq!(&reported(&mut client, 200).rate_and_state(), &(585, false));
            assert_eq!(agreeing_packets(found * 1e6), 10);
        }
    }
}

impl Report {
    /// As transmitted: the interval in microseconds, and the bit.
    fn rate_and_state(self) -> (u32, bool) {
        let report = self.encode();
        let bytes = report.as_bytes();
        (u32::from_be_bytes(bytes[..4].try_into().unwrap()), bytes[4] == 1)
    }
}

#[test]
fn measured_block_errors_are_the_share_of_retransmissions() {
    let mut client = client("pbe");
    let cell = lte(0);
    for ms in 0..40 {
        let own = CellGrant { again: ms % 10 == 0, ..grant(OWN, 30) };
        client.on_cell(at(ms), &slot(ms, &cell, &[own]));
    }
    assert_eq!(figure(&client, "block_errors"), 0.1);
}

#[test]
fn ramp_reaches_the_fair_share_within_three_rtts() {
    // C_f's goodput is 23.30 Mbit/s: 7.77, 15.53, 23.30 after 1, 2, 3 RTT of 40 ms.
    let mut client = client("pbe:tber=0");
    assert_eq!(client.report(at(0)), None, "nothing is known yet");
    for (rtts, expected) in [(1, 7.77), (2, 15.53), (3, 23.30)] {
        play(&mut client, 40 * (rtts - 1), 40 * rtts, &example(), 20);
        let found = reported(&mut client, 40 * rtts).rate.as_f64() / 1e6;
        // The report has whole microseconds between packets: 0.1 % at 1545 us, 0.1 % at 515 us.
        assert!((found - expected).abs() < 0.003 * expected, "after {rtts} RTT: {found}");
        assert_eq!(figure(&client, "pbe_state"), 0.0);
    }
    reported(&mut client, 121);
    assert_eq!(figure(&client, "pbe_state"), 1.0, "then it is wireless");
}

#[test]
fn users_that_fetch_control_information_do_not_count() {
    // (TTIs, PRB): (1, 50), (9, 4), (2, 5): only the third counts.
    let mut window = CellWindow::default();
    let cell = lte(0);
    for ms in 0..40_u64 {
        let mut grants = vec![grant(OWN, 10), grant(SI_RNTI, 8)];
        grants.extend((ms == 0).then(|| grant(20, 50)));
        grants.extend((ms < 9).then(|| grant(21, 4)));
        grants.extend((ms < 2).then(|| grant(22, 5)));
        window.push(&slot(ms, &cell, &grants), Span::from_millis(40), |_| true);
    }
    assert_eq!(window.capacity().unwrap().users, 2);
    // When they have left the window, nobody is left but this one.
    for ms in 40..60 {
        window.push(&slot(ms, &cell, &[grant(OWN, 10)]), Span::from_millis(40), |_| true);
    }
    assert_eq!(window.capacity().unwrap().users, 1);
}

#[test]
fn resources_that_others_release_are_used_within_a_window() {
    let mut client = client("pbe:tber=0");
    play(&mut client, 0, 200, &example(), 20);
    let before = reported(&mut client, 200).rate.as_f64();
    // The other user leaves: the whole cell is this one's, by its own 30 and 70 idle PRBs.
    play(&mut client, 200, 240, &[grant(OWN, 30)], 20);
    let after = reported(&mut client, 240).rate.as_f64();
    assert!((before / 1e6 - 20.97).abs() < 0.05 && (after / 1e6 - 46.6).abs() < 0.1, "{before} {after}");
}

#[test]
fn bits_of_a_prb_are_the_last_known_ones_without_an_own_grant() {
    let cell = lte(0);
    let other = CellGrant { bits: 40 * 200, ..grant(8, 40) };
    let mut client = client("pbe:tber=0");
    for ms in 0..300 {
        client.on_cell(at(ms), &slot(ms, &cell, &[other]));
    }
    assert!((figure(&client, "fair_bit_s") - 10e6).abs() < 1.0, "before any own grant those of the others");
    for ms in 300..310 {
        client.on_cell(at(ms), &slot(ms, &cell, &[grant(OWN, 30), other]));
    }
    for ms in 310..600 {
        client.on_cell(at(ms), &slot(ms, &cell, &[other]));
    }
    assert!((figure(&client, "fair_bit_s") - 25e6).abs() < 1.0, "then those of the last own one");
    for ms in 600..700 {
        client.on_cell(at(ms), &slot(ms, &cell, &[]));
    }
    assert_eq!(figure(&client, "users"), 1.0, "this one always counts");
    assert!((figure(&client, "fair_bit_s") - 50e6).abs() < 1.0);
}

#[test]
fn delay_threshold_allows_for_three_harq_rounds_and_jitter() {
    let mut client = client("pbe");
    play(&mut client, 0, 10, &example(), 30);
    assert_eq!(client.threshold(), Some(Span::from_millis(57)));
}

#[test]
fn a_bottleneck_elsewhere_is_noticed_after_so_many_packets_and_left_when_the_cell_is_the_bottleneck_again() {
    let mut client = client("pbe:tber=0");
    play(&mut client, 0, 200, &example(), 30);
    reported(&mut client, 200);
    // 57 ms are tolerated for any time.
    play(&mut client, 200, 300, &example(), 57);
    assert_eq!(figure(&client, "pbe_state"), 1.0);
    // N_pkt is ten at 20.97 Mbit/s; a shorter row counts for nothing.
    play(&mut client, 300, 309, &example(), 58);
    play(&mut client, 309, 310, &example(), 57);
    play(&mut client, 310, 319, &example(), 58);
    assert_eq!(figure(&client, "pbe_state"), 1.0);
    play(&mut client, 319, 320, &example(), 58);
    assert_eq!(figure(&client, "pbe_state"), 2.0);
    let report = reported(&mut client, 320);
    assert!(report.internet && (report.rate.as_f64() / 1e6 - 25.0).abs() < 0.05, "{report:?}");
    // One packet in a millisecond is 12 Mbit/s, below C_t: however short the delay, the bottleneck is elsewhere.
    play(&mut client, 320, 500, &example(), 30);
    assert_eq!(figure(&client, "pbe_state"), 2.0);
    // With 12 PRBs in all, C_t is below what arrives.
    play(&mut client, 500, 600, &[grant(OWN, 12), grant(8, 88)], 30);
    assert_eq!(figure(&client, "pbe_state"), 1.0);
}

#[test]
fn another_cell_means_a_new_delay_and_a_ramp_from_half_of_the_rate() {
    let mut client = client("pbe:tber=0");
    play(&mut client, 0, 200, &example(), 30);
    reported(&mut client, 200);
    let other = lte(1);
    client.on_cell(at(200), &slot(200, &other, &example()));
    assert_eq!((figure(&client, "pbe_state"), client.threshold()), (0.0, None));
    let rate = reported(&mut client, 200).rate.as_f64() / 1e6;
    assert!((rate - 20.97 / 2.0).abs() < 0.02, "{rate}");
}

#[test]
fn a_silent_control_channel_yields_no_reports() {
    let mut client = client("pbe");
    play(&mut client, 0, 200, &example(), 30);
    assert!(client.report(at(299)).is_some());
    assert_eq!(client.report(at(300)), None);
}

#[test]
fn messages_that_are_not_decoded_make_the_cell_look_idle() {
    let capacity = |miss: &str| {
        let mut client = client(&format!("pbe:miss={miss}"));
        play(&mut client, 0, 1_000, &example(), 30);
        figure(&client, "physical_bit_s") / 1e6
    };
    let [all, half, none] = ["0", "0.5", "1"].map(capacity);
    assert!((all - 22.5).abs() < 1e-6 && (none - 50.0).abs() < 1e-6, "{all} {none}");
    assert!(half > all && half < none, "{half}");
}

fn server(srtt: Span) -> (PbeServer, crate::interface::Context, Window) {
    let mut cx = context(Time::ZERO);
    (cx.mss, cx.wire, cx.srtt, cx.min_rtt) = (Bytes::new(1448), Bytes::new(1500), srtt, srtt);
    let (mut server, mut w) = (PbeServer::new(), Window::new(10.0));
    server.on_start(&cx, &mut w);
    (server, cx, w)
}

fn state(server: &PbeServer) -> f64 {
    let mut found = f64::NAN;
    server.inspect(&mut |key, value| {
        if key == "state" {
            found = value;
        }
    });
    found
}

fn report(mbit_per_s: u64, internet: bool) -> ReceiverReport {
    Report { rate: Rate::from_mbit_per_s(mbit_per_s), internet }.encode()
}

fn pace(w: &Window) -> f64 {
    match w.pacing {
        Pacing::Rate(rate) => rate.as_f64() / 1e6,
        Pacing::Unlimited => f64::INFINITY,
    }
}

#[test]
fn wireless_pace_is_the_report_and_the_window_tolerates_harq() {
    let (mut server, cx, mut w) = server(Span::from_millis(40));
    server.on_report(&cx, &mut w, &report(12, false));
    assert_eq!(pace(&w), 12.0);
    // A packet per millisecond, 40 + 27 ms.
    assert!((w.cwnd - 67.0).abs() < 1e-9, "{}", w.cwnd);
}

/// Acknowledges packets at a rate for a time; the RTT stays.
fn acknowledge(
    server: &mut PbeServer,
    cx: &mut crate::interface::Context,
    w: &mut Window,
    per_ms: u64,
    ms: u64,
) {
    for _ in 0..ms {
        cx.now += MS;
        let prior_delivered = cx.delivered.saturating_sub(40 * per_ms);
        cx.delivered += per_ms;
        let rate = RateSample {
            delivered: 40 * per_ms,
            interval: Some(MS * 40),
            prior_delivered,
            ..RateSample::default()
        };
        let ack = Ack {
            acked: per_ms,
            delivered: per_ms,
            bytes: cx.mss * per_ms,
            rtt: Some(cx.min_rtt),
            rate,
            prior_in_flight: cx.in_flight,
            ecn_echo: false,
            marked: 0,
            braked: 0,
        };
        server.on_ack(cx, w, &ack);
    }
}

#[test]
fn elsewhere_it_drains_for_an_rtprop_and_then_probes_up_to_the_fair_share() {
    let (mut server, mut cx, mut w) = server(Span::from_millis(40));
    cx.in_flight = 40;
    server.on_report(&cx, &mut w, &report(24, false));
    acknowledge(&mut server, &mut cx, &mut w, 1, 200);
    assert_eq!(pace(&w), 24.0);
    // BtlBw is 12 Mbit/s.
    server.on_report(&cx, &mut w, &report(14, true));
    assert!((pace(&w) - 6.0).abs() < 0.01, "{}", pace(&w));
    let mut paces = Vec::new();
    for _ in 0..9 {
        acknowledge(&mut server, &mut cx, &mut w, 1, 40);
        paces.push((pace(&w) * 10.0).round() / 10.0);
    }
    // Up at C_f, which is below 1.25 BtlBw; down; six phases at BtlBw; up again.
    assert_eq!(paces, [14.0, 9.0, 12.0, 12.0, 12.0, 12.0, 12.0, 12.0, 14.0]);
    assert!((w.cwnd - 80.0).abs() < 0.5, "two BDP: {}", w.cwnd);
    server.on_report(&cx, &mut w, &report(100, true));
    assert!((pace(&w) - 15.0).abs() < 0.01, "1.25 BtlBw: {}", pace(&w));
    server.on_report(&cx, &mut w, &report(10, false));
    assert!((pace(&w) - 10.0).abs() < 0.01, "wireless again: {}", pace(&w));
}

#[test]
fn elsewhere_it_probes_the_rtt_every_ten_seconds() {
    let (mut server, mut cx, mut w) = server(Span::from_millis(40));
    cx.in_flight = 40;
    server.on_report(&cx, &mut w, &report(24, true));
    acknowledge(&mut server, &mut cx, &mut w, 1, 9_000);
    // A queue of 10 ms stays.
    let least = core::mem::replace(&mut cx.min_rtt, Span::from_millis(50));
    acknowledge(&mut server, &mut cx, &mut w, 1, 10_100);
    assert_eq!((w.cwnd, state(&server)), (4.0, 4.0));
    (cx.in_flight, cx.min_rtt) = (4, least);
    acknowledge(&mut server, &mut cx, &mut w, 1, 300);
    assert_eq!(state(&server), 3.0);
}

#[test]
fn losses_change_nothing_and_a_timeout_leaves_a_segment_until_the_next_report() {
    let (mut server, mut cx, mut w) = server(Span::from_millis(40));
    server.on_report(&cx, &mut w, &report(12, false));
    let before = w;
    let event = |kind| Congestion { kind, lost: 3, largest: cx.mss, newest_sent_at: cx.now, first: true };
    let (loss, timeout) = (event(Signal::Loss), event(Signal::Timeout { count: 1 }));
    assert_eq!(server.on_congestion(&cx, &mut w, &loss), LossResponse::Own);
    assert_eq!(w, before);
    server.on_congestion(&cx, &mut w, &timeout);
    acknowledge(&mut server, &mut cx, &mut w, 1, 5);
    assert_eq!(w.cwnd, 1.0);
    server.on_report(&cx, &mut w, &report(12, false));
    assert_eq!(w, before);
}

#[test]
fn options_outside_their_ranges_are_refused() {
    for text in
        ["pbe:tber=0.1", "pbe:gamma=1", "pbe:tber=many", "pbe:miss=2", "pbe:miss=NaN", "pbe:tber=-1e-6"]
    {
        let error = text.parse::<crate::Algorithm>().unwrap_err().to_string();
        assert!(error.contains("expected"), "{text}: {error}");
    }
    for text in ["pbe:tber=1e-6", "pbe:miss=0.1:tber=measured", "pbe:guard=off"] {
        assert!(text.parse::<crate::Algorithm>().unwrap().receiver().unwrap().wants_cell(), "{text}");
    }
}

/// A hint of the worked example: 100 PRBs of 500 bits (MCS 28 in part of the slots), 30 granted, 30 unused, two users.
fn edge_hint(ms: u64) -> RadioHint {
    let share = Both { downlink: 50e6 / 75.376e6, uplink: 0.5 };
    let info = CellInfo { fdd: false, share, ..lte(0) };
    RadioHint { granted: 30.0, unused: 30.0, mcs: 28, active_users: 2, ..RadioHint::of(info, at(ms)) }
}

/// A sender with this algorithm after so many milliseconds with a hint, and a packet of 20 ms one way and 40 ms in all, in each.
fn edge_sender(text: &str, times: core::ops::Range<u64>) -> (Box<dyn CongestionControl>, Window) {
    let mut control = text.parse::<crate::Algorithm>().unwrap().build(1);
    assert!(control.wants_radio() && control.wants_packets());
    let mut w = Window::new(10.0);
    let mut cx = context(at(0));
    (cx.mss, cx.wire, cx.srtt, cx.min_rtt) = (Bytes::new(1448), Bytes::new(1500), MS * 40, MS * 40);
    control.on_start(&cx, &mut w);
    for ms in times {
        cx.now = at(ms);
        control.on_radio(&cx, &mut w, &edge_hint(ms));
        edge_ack(control.as_mut(), &cx, &mut w, 20);
    }
    (control, w)
}

/// A packet with this one-way delay in milliseconds is acknowledged.
fn edge_ack(control: &mut dyn CongestionControl, cx: &crate::interface::Context, w: &mut Window, delay: u64) {
    let fate = PacketOutcome::Acked { rtt: MS * (delay + 20), one_way: Some(MS * delay) };
    let (sent_at, sending) = (cx.now - MS * (delay + 20), Sending::default());
    control.on_packet(cx, w, &Packet { number: 1, bytes: cx.mss, sent_at, sending, fate });
    control.on_ack(cx, w, &crate::testing::testbed::ack(1, MS * (delay + 20)));
}

fn shown(control: &dyn CongestionControl, name: &str) -> f64 {
    let mut found = f64::NAN;
    control.inspect(&mut |key, value| {
        if key == name {
            found = value;
        }
    });
    found
}

#[test]
fn with_the_edges_hints_the_sender_has_the_worked_example_without_a_receiver() {
    for (p, expected) in [("0", 20.97), ("0.000001", 20.51), ("0.000003", 19.69)] {
        let text = format!("pbe:source=edge:guard=off:tber={p}");
        assert!(text.parse::<crate::Algorithm>().unwrap().receiver().is_none());
        let (control, w) = edge_sender(&text, 0..200);
        for (name, value) in [("physical_bit_s", 22.5e6), ("fair_bit_s", 25.0e6), ("users", 2.0)] {
            let found = shown(control.as_ref(), name);
            assert!((found / value - 1.0).abs() < 1e-6, "{name}: {found}");
        }
        assert_eq!((shown(control.as_ref(), "pbe_state"), shown(control.as_ref(), "state")), (1.0, 1.0));
        // A report has whole microseconds between packets: within 0.1 %.
        assert!((pace(&w) / expected - 1.0).abs() < 2e-3, "p = {p}: {}", pace(&w));
    }
    let (_, w) = edge_sender("pbe:source=edge:guard=off", 0..200);
    assert!((pace(&w) / 20.51 - 1.0).abs() < 2e-3, "by default 1e-6: {}", pace(&w));
}

#[test]
fn with_the_edges_hints_the_sender_judges_the_delay_and_ignores_old_hints() {
    let (mut control, mut w) = edge_sender("pbe:source=edge:guard=off", 0..200);
    let mut cx = context(at(200));
    (cx.mss, cx.wire, cx.srtt, cx.min_rtt) = (Bytes::new(1448), Bytes::new(1500), MS * 40, MS * 40);
    // 47 ms are tolerated; N_pkt is ten.
    (0..20).for_each(|_| edge_ack(control.as_mut(), &cx, &mut w, 47));
    assert_eq!(shown(control.as_ref(), "pbe_state"), 1.0);
    (0..10).for_each(|_| edge_ack(control.as_mut(), &cx, &mut w, 48));
    assert_eq!(shown(control.as_ref(), "pbe_state"), 2.0);
    assert!(shown(control.as_ref(), "state") >= 2.0, "the sender probes");
    // Hints of 100 ms ago say nothing: no report restores the window after a timeout.
    let (mut control, mut w) = edge_sender("pbe:source=edge:guard=off", 0..200);
    let timeout = Congestion {
        kind: Signal::Timeout { count: 1 },
        lost: 3,
        largest: cx.mss,
        newest_sent_at: cx.now,
        first: true,
    };
    control.on_congestion(&cx, &mut w, &timeout);
    cx.now = at(300);
    edge_ack(control.as_mut(), &cx, &mut w, 20);
    assert_eq!(w.cwnd, 1.0, "101 ms old");
    control.on_radio(&cx, &mut w, &edge_hint(300));
    edge_ack(control.as_mut(), &cx, &mut w, 20);
    assert!(w.cwnd > 1.0, "{}", w.cwnd);
}

#[test]
fn what_the_edges_hints_do_not_have_is_refused() {
    for (text, expected) in [
        ("pbe:source=edge:tber=measured", "do not say which blocks are sent again"),
        ("pbe:source=edge:miss=0.1", "decodes no messages"),
        ("pbe:source=modem", "expected one of device, edge"),
    ] {
        let error = text.parse::<crate::Algorithm>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!("pbe:source=device:tber=measured".parse::<crate::Algorithm>().unwrap().receiver().is_some());
}

proptest! {
    /// Whatever a control channel says, the sums of its window are those of its slots, and every report can be read.
    #[test]
    fn any_control_channel_yields_a_capacity_within_the_cells(
        slots in prop::collection::vec(
            (
                prop::collection::vec((0..30_u16, 0..200_u32, 0..3_000_u32, any::<bool>()), 0..8),
                0..2_000_u32,
                1..20_u64,
            ),
            1..200,
        ),
        miss in 0.0..1.0_f64,
    ) {
        let mut client = PbeClient::new(OVERHEAD, BlockErrors::Measured, miss);
        let cell = lte(0);
        let mut ms = 0;
        for (grants, available, pause) in slots {
            ms += pause;
            let grants: Vec<CellGrant> = grants
                .into_iter()
                .map(|(rnti, prbs, bits, again)| CellGrant { rnti, prb_symbols: prbs * SYMBOLS, bits, again })
                .collect();
            let channel = ControlChannel { available, ..slot(ms, &cell, &grants) };
            client.on_cell(at(ms), &channel);
            client.on_data(&packet(ms, ms % 90));
            if let Some(report) = client.report(at(ms)) {
                prop_assert_eq!(report.option_length(), 8);
            }
            let users = figure(&client, "users");
            prop_assert!(users.is_nan() || (1.0..=31.0).contains(&users));
            for name in ["fair_bit_s", "physical_bit_s"] {
                let rate = figure(&client, name);
                prop_assert!(rate.is_nan() || (rate.is_finite() && rate >= 0.0), "{}: {}", name, rate);
            }
        }
        // A window later nothing of it is left but the bits of a PRB.
        for _ in 0..500 {
            ms += 1;
            client.on_cell(at(ms), &slot(ms, &cell, &[]));
        }
        let users = figure(&client, "users");
        prop_assert!(users.is_nan() || users == 1.0);
        prop_assert_eq!(figure(&client, "fair_bit_s").to_bits(), figure(&client, "physical_bit_s").to_bits());
    }

    /// Any five bytes are a report or none; what is read is written as it was.
    #[test]
    fn any_bytes_are_read_as_a_report_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..9)) {
        let report = ReceiverReport::new(&bytes).unwrap();
        if let Some(read) = Report::decode(&report) {
            prop_assert_eq!(bytes.len(), 5);
            prop_assert!(!read.rate.is_zero());
            let again = Report::decode(&read.encode()).unwrap();
            prop_assert_eq!(again.internet, read.internet);
            prop_assert!((again.rate.as_f64() / read.rate.as_f64() - 1.0).abs() < 0.5);
        }
    }
}
