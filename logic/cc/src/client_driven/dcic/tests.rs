//! Tests of DCIC's client and server alone, and of both over a small model of a cell.

use std::collections::VecDeque;

use proptest::prelude::*;
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Rate, Span, Time};

use super::client::{DcicClient, Estimator, capacity};
use super::*;
use crate::client_driven::bw_report::Format;
use crate::interface::{Congestion, Pacing, RadioHint, Signal};
use crate::testing::testbed;

const ALL: [Estimator; 3] = [Estimator::PerDci, Estimator::Gap, Estimator::Window];
const MS: Span = Span::from_millis(1);

fn client(estimator: Estimator) -> DcicClient {
    let mut client = DcicClient::new(estimator, Reporter::new(&mut Options::default()).unwrap());
    client.on_start(Time::ZERO);
    client
}

fn mbit(client: &mut DcicClient, ms: u64) -> f64 {
    client.estimate(Time::from_millis(ms)).unwrap().as_f64() / 1e6
}

#[test]
fn the_initial_estimate_is_that_of_equation_5_9() {
    // cqic-dcic.md, section 3.2: 50 of 100 PRBs assumed, one layer; half of the time.
    for (cqi, expected) in [(1, 1.005), (7, 9.746), (10, 18.021), (15, 36.661), (0, 0.0)] {
        assert!((capacity(cqi, 50.0, 1) / 1e6 - expected).abs() < 0.0006, "CQI {cqi}");
        let mut client = client(Estimator::Window);
        client.observe_cqi(Time::ZERO, cqi, 100, 1);
        assert!((mbit(&mut client, 1) - expected / 2.0).abs() < 0.0006, "CQI {cqi}");
    }
}

#[test]
fn the_initial_estimate_is_a_running_mean_and_takes_the_prbs_of_the_last_grant() {
    let mut client = client(Estimator::Window);
    assert_eq!(client.estimate(Time::ZERO), None);
    client.observe_cqi(Time::ZERO, 15, 100, 1);
    client.observe_cqi(Time::from_millis(2), 7, 100, 1);
    assert!((mbit(&mut client, 3) - (18.331 + 4.873) / 2.0).abs() < 0.001);
    // 10 PRBs instead of 50, two layers instead of one: 2/5.
    client.observe_dci(Time::from_millis(4), 1000, 10.0, MS);
    client.observe_cqi(Time::from_millis(4), 15, 100, 2);
    assert!((mbit(&mut client, 5) - (18.331 + 4.873 + 0.4 * 18.331) / 3.0).abs() < 0.001);
}

#[test]
fn a_window_without_grants_reports_the_initial_estimate() {
    let mut client = client(Estimator::Window);
    client.observe_cqi(Time::ZERO, 15, 100, 1);
    for ms in 0..50 {
        client.observe_dci(Time::from_millis(ms), 20_000, 50.0, MS);
    }
    assert!((mbit(&mut client, 49) - 18.331).abs() < 0.001, "the window is not complete");
    assert!((mbit(&mut client, 50) - 20.0).abs() < 1e-6);
    assert!((mbit(&mut client, 99) - 20.0).abs() < 1e-6);
    assert!((mbit(&mut client, 100) - 18.331).abs() < 0.001);
    // As soon as there are grants again, their rate counts.
    client.observe_dci(Time::from_millis(120), 20_000, 50.0, MS);
    assert!((mbit(&mut client, 150) - 0.4).abs() < 1e-6);
    assert!((mbit(&mut client, 999) - 18.331).abs() < 0.001);
}

#[test]
fn with_a_grant_in_every_slot_the_estimators_agree() {
    for estimator in ALL {
        let mut client = client(estimator);
        for ms in 0..100 {
            client.observe_dci(Time::from_millis(ms), 30_000, 50.0, MS);
        }
        assert!((mbit(&mut client, 100) - 30.0).abs() < 30.0 / 50.0, "{estimator:?}");
    }
}

#[test]
fn with_a_grant_in_every_kth_slot_per_dci_is_k_times_window() {
    for k in [2, 5, 10] {
        let [per_dci, gap, window] = ALL.map(|estimator| {
            let mut client = client(estimator);
            for ms in (0..100).filter(|ms| ms % k == 0) {
                client.observe_dci(Time::from_millis(ms), 30_000, 50.0, MS);
            }
            mbit(&mut client, 100)
        });
        assert!((per_dci - k as f64 * window).abs() < 1e-6, "{k}: {per_dci}, {window}");
        assert!((gap - window).abs() < 1e-6, "{k}: {gap}, {window}");
    }
}

#[test]
fn a_step_is_reported_within_a_window() {
    for estimator in ALL {
        let mut client = client(estimator);
        for ms in 0..330 {
            let bits = if ms < 220 { 10_000 } else { 40_000 };
            client.observe_dci(Time::from_millis(ms), bits, 50.0, MS);
            let expected = if ms < 250 { 10.0 } else { 40.0 };
            if !(250..300).contains(&ms) && ms >= 50 {
                assert!((mbit(&mut client, ms) - expected).abs() < 1e-6, "{estimator:?} at {ms}");
            }
        }
    }
}

#[test]
fn a_hint_may_have_both_a_grant_and_a_quality() {
    let mut half = "dcic".parse::<crate::Algorithm>().unwrap().receiver().unwrap();
    assert!(half.wants_radio() && half.wants_quality());
    half.on_start(Time::ZERO);
    assert_eq!(half.report(Time::ZERO), None, "nothing is known yet");
    let hint = RadioHint {
        tti: MS,
        tbs_bits: Some(75_376),
        granted: 100.0,
        cqi: Some(15),
        mcs: 28,
        ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz20), Time::from_millis(3))
    };
    half.on_radio(Time::from_millis(3), &hint);
    let decoded = |half: &mut Box<dyn ReceiverHalf>, ms| {
        Format::V1.decode(&half.report(Time::from_millis(ms)).unwrap()).unwrap().as_f64()
    };
    assert!((decoded(&mut half, 4) - 36_661_020.0).abs() < 1.0); // all 100 PRBs, half of the time
    assert!((decoded(&mut half, 50) - 75_376.0 * 20.0).abs() < 1.0);
}

proptest! {
    /// Times that go backwards, slots without length, odd PRBs: the estimate is a number, and at most what the slots held.
    #[test]
    fn any_hint_is_accepted_without_panic(hints in prop::collection::vec(
        (0..2_000_000u64, any::<u32>(), prop_oneof![Just(f64::NAN), -10.0..300.0f64], 0..3_000_000u64, any::<u8>()), 1..200,
    )) {
        for estimator in ALL {
            let mut client = client(estimator);
            for (us, bits, prbs, slot_ns, cqi) in &hints {
                let at = Time::from_nanos(us * 1000);
                client.observe_dci(at, *bits, *prbs, Span::from_nanos(*slot_ns));
                client.observe_cqi(at, *cqi, *bits as u16, *cqi);
                let rate = client.estimate(at).unwrap();
                prop_assert!(rate < Rate::from_bits_per_s(u64::MAX / 2), "{estimator:?}: {rate}");
            }
        }
    }
}

fn server() -> (Dcic, Context, Window) {
    let (mut server, mut w) = (Dcic::new(Format::V1), Window::new(10.0));
    let mut cx = testbed::context(Time::ZERO);
    cx.min_rtt = Span::from_millis(100);
    server.on_start(&cx, &mut w);
    (server, cx, w)
}

fn pace(w: &Window) -> Rate {
    match w.pacing {
        Pacing::Rate(rate) => rate,
        Pacing::Unlimited => panic!("no pace: {w:?}"),
    }
}

#[test]
fn a_report_sets_pace_and_window_at_once() {
    let (mut server, cx, mut w) = server();
    assert_eq!(pace(&w), Rate::from_mbit_per_s(8)); // 1 MB/s before any report
    for mbit in [1, 30, 5] {
        server.on_report(&cx, &mut w, &Format::V1.encode(Rate::from_mbit_per_s(mbit)));
        assert_eq!(pace(&w), Rate::from_mbit_per_s(mbit));
        assert!((w.cwnd - 2.0 * mbit as f64 * 1e5 / 8.0 / 1448.0).abs() < 1e-9, "{mbit}: {}", w.cwnd);
    }
    let before = w;
    for nothing in [ReceiverReport::new(&[0; 4]).unwrap(), ReceiverReport::new(&[1; 7]).unwrap()] {
        server.on_report(&cx, &mut w, &nothing);
        assert_eq!(w, before, "no estimate, and what is no report, change nothing");
    }
}

#[test]
fn loss_changes_nothing_and_a_timeout_lasts_until_the_next_report() {
    let (mut server, cx, mut w) = server();
    let report = Format::V1.encode(Rate::from_mbit_per_s(30));
    server.on_report(&cx, &mut w, &report);
    let before = w;
    assert!(server.owns_recovery());
    assert_eq!(server.on_congestion(&cx, &mut w, &testbed::loss()), LossResponse::Own);
    assert_eq!(w, before);
    let timeout = Congestion { kind: Signal::Timeout { count: 1 }, ..testbed::loss() };
    assert_eq!(server.on_congestion(&cx, &mut w, &timeout), LossResponse::Own);
    assert_eq!(w.cwnd, 1.0);
    server.on_ack(&cx, &mut w, &testbed::ack(1, Span::from_millis(100)));
    assert_eq!(w.cwnd, 1.0);
    server.on_report(&cx, &mut w, &report);
    assert_eq!(w, before);
}

#[test]
fn the_smallest_rtt_does_not_expire() {
    let (mut server, mut cx, mut w) = server();
    let report = Format::V1.encode(Rate::from_mbit_per_s(30));
    server.on_sample(&cx, &mut w, &testbed::sample(Span::from_millis(50)));
    cx.now = Time::from_secs(1000);
    server.on_sample(&cx, &mut w, &testbed::sample(Span::from_millis(80)));
    server.on_report(&cx, &mut w, &report);
    assert!((w.cwnd - 2.0 * 30e6 * 0.05 / 8.0 / 1448.0).abs() < 1e-9);
    // A new path has a new RTT.
    server.on_path_change(&cx, &mut w);
    server.on_sample(&cx, &mut w, &testbed::sample(Span::from_millis(80)));
    server.on_report(&cx, &mut w, &report);
    assert!((w.cwnd - 2.0 * 30e6 * 0.08 / 8.0 / 1448.0).abs() < 1e-9);
}

/// Content of a grant.
#[derive(Clone, Copy, PartialEq)]
enum Alloc {
    /// The whole slot, whatever is queued (ns-3).
    Full,
    /// As many of 25 groups of PRBs as the queue needs.
    Queue,
}

const PACKET: u64 = 1400;
const RBGS: u64 = 25;

/// A user of the model: a DCIC flow through a wired link and the cell's queue.
struct User {
    control: Dcic,
    client: DcicClient,
    w: Window,
    cx: Context,
    /// Bits per slot if the whole slot is this user's.
    peak: u64,
    /// Capacity of the queue in bytes.
    buffer: u64,
    credit: f64,
    /// Rate of the wired link before the cell, and when it is free.
    wire: Option<(Rate, Time)>,
    to_cell: VecDeque<(Time, Time)>,
    /// Sending and arrival times of queued packets, and the bits of the first one that have been sent.
    queue: VecDeque<(Time, Time)>,
    part: u64,
    /// Arrival at the sender, sending time (`None` if the packet was lost), report.
    to_sender: VecDeque<(Time, Option<Time>, Option<Rate>)>,
    served: f64,
    sent: u64,
    dropped: u64,
    delay: f64,
    delivered: u64,
}

impl User {
    fn new(estimator: Estimator, peak_mbit: u64, start_mbit: f64, buffer: u64) -> Self {
        let (mut control, mut w) = (Dcic::new(Format::V1), Window::new(10.0));
        let mut cx = testbed::context(Time::ZERO);
        (cx.mss, cx.wire, cx.min_rtt) = (Bytes::new(PACKET), Bytes::new(PACKET), WIRED * 2);
        control.on_start(&cx, &mut w);
        let start = Rate::from_bits_per_s_f64(start_mbit * 1e6);
        control.on_report(&cx, &mut w, &Format::V1.encode(start));
        Self {
            control,
            client: client(estimator),
            w,
            cx,
            peak: peak_mbit * 1000,
            buffer,
            credit: 0.0,
            wire: None,
            to_cell: VecDeque::new(),
            queue: VecDeque::new(),
            part: 0,
            to_sender: VecDeque::new(),
            served: 1.0,
            sent: 0,
            dropped: 0,
            delay: 0.0,
            delivered: 0,
        }
    }

    /// Runs the sender for a millisecond, and the arrivals at the cell.
    fn send(&mut self, now: Time) {
        self.cx.now = now;
        while self.to_sender.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, sent_at, report) = self.to_sender.pop_front().expect("the condition of the loop");
            self.cx.in_flight -= 1;
            if let Some(report) = report {
                self.control.on_report(&self.cx, &mut self.w, &Format::V1.encode(report));
            }
            if let Some(sent_at) = sent_at {
                self.control.on_sample(&self.cx, &mut self.w, &testbed::sample(now - sent_at));
            }
        }
        self.credit += pace(&self.w).as_f64() / 8000.0;
        while self.credit >= PACKET as f64 && (self.cx.in_flight as f64) < self.w.cwnd.floor() {
            self.credit -= PACKET as f64;
            self.cx.in_flight += 1;
            self.sent += 1;
            let mut leaves = now;
            if let Some((rate, free)) = &mut self.wire {
                let waits = free.since(now);
                if rate.bytes_in(waits).get() > self.buffer {
                    self.dropped += 1;
                    self.to_sender.push_back((now + WIRED * 2, None, None));
                    continue;
                }
                *free = (*free).max(now) + rate.time_for(Bytes::new(PACKET));
                leaves = *free;
            }
            self.to_cell.push_back((leaves + WIRED, now));
        }
        self.credit = self.credit.min(2.0 * PACKET as f64 + pace(&self.w).as_f64() / 8000.0);
        while self.to_cell.front().is_some_and(|(at, _)| *at <= now) {
            let (at, sent_at) = self.to_cell.pop_front().expect("the condition of the loop");
            if (self.queue.len() as u64 + 1) * PACKET > self.buffer {
                // A loss is detected when the packets queued before it have passed.
                self.dropped += 1;
                let waits = self.queue.front().map_or(Span::ZERO, |(_, first)| now - *first);
                self.to_sender.push_back((now + waits + WIRED * 2, None, None));
            } else {
                self.queue.push_back((sent_at, at));
            }
        }
        self.to_sender.make_contiguous().sort_by_key(|(at, ..)| *at);
    }

    /// Runs a slot of the cell for this user.
    fn serve(&mut self, now: Time, alloc: Alloc) -> u64 {
        let waiting = self.queue.len() as u64 * PACKET * 8 - self.part;
        let group = self.peak / RBGS;
        let block = match alloc {
            Alloc::Full => self.peak,
            Alloc::Queue => (waiting.div_ceil(group) * group).min(self.peak),
        };
        self.client.observe_dci(now, block as u32, 50.0, MS);
        self.part += block.min(waiting);
        while self.part >= PACKET * 8 {
            self.part -= PACKET * 8;
            let (sent_at, arrived) = self.queue.pop_front().unwrap();
            self.delay += (now - arrived).as_secs_f64();
            self.delivered += 1;
            let report = self.client.estimate(now + MS);
            self.to_sender.push_back((now + MS + WIRED, Some(sent_at), report));
        }
        block.min(waiting)
    }

    fn reported(&self) -> f64 {
        self.control.pipe.bandwidth.as_f64() / 1e6
    }
}

/// One-way delay between the sender and the cell.
const WIRED: Span = Span::from_millis(31);

/// Users share a cell by proportional fairness in whole slots.
fn play(users: &mut [User], alloc: Alloc, from: u64, until: u64) {
    for ms in from..until {
        let now = Time::from_millis(ms);
        users.iter_mut().for_each(|user| user.send(now));
        let metric = |user: &User| user.peak as f64 / user.served;
        let next = (0..users.len())
            .filter(|place| !users[*place].queue.is_empty())
            .max_by(|a, b| metric(&users[*a]).total_cmp(&metric(&users[*b])));
        for (place, user) in users.iter_mut().enumerate() {
            let bits = if Some(place) == next { user.serve(now, alloc) } else { 0 };
            user.served = 0.99 * user.served + 0.01 * (bits as f64).max(1.0);
        }
    }
}

#[test]
fn alone_in_a_cell_that_grants_whole_slots_it_finds_the_peak() {
    // cqic-dcic.md, section 8, 5: 75 Mbit/s, 62 ms, started with rBW_0 of CQI 15.
    for estimator in ALL {
        let mut user = [User::new(estimator, 75, 18.331, 1_000_000)];
        play(&mut user, Alloc::Full, 0, 500);
        assert!((user[0].reported() - 75.0).abs() < 1.0, "{estimator:?}: {}", user[0].reported());
    }
}

#[test]
fn alone_in_a_cell_that_grants_what_is_queued_it_creeps() {
    // The same: per_dci is at 34 Mbit/s after 1 s, 50 after 4 s, 75 after 8 s.
    let mut user = [User::new(Estimator::PerDci, 75, 18.331, 1_000_000)];
    let mut last = 0;
    for (ms, low, high) in [(1000, 20.0, 50.0), (4000, 35.0, 70.0), (12_000, 70.0, 75.1)] {
        play(&mut user, Alloc::Queue, last, ms);
        last = ms;
        assert!((low..high).contains(&user[0].reported()), "{ms} ms: {}", user[0].reported());
    }
    // window, started at 0.5 Mbit/s, is at 1.9 after 2 s.
    let mut user = [User::new(Estimator::Window, 75, 0.5, 1_000_000)];
    play(&mut user, Alloc::Queue, 0, 2000);
    assert!((0.5..6.0).contains(&user[0].reported()), "{}", user[0].reported());
}

#[test]
fn a_bottleneck_before_the_cell_is_not_noticed_where_whole_slots_are_granted() {
    // cqic-dcic.md, section 8, 4; a wired link of 20 Mbit/s before a cell of 75.
    for estimator in ALL {
        let mut user = [User::new(estimator, 75, 18.331, 100_000)];
        user[0].wire = Some((Rate::from_mbit_per_s(20), Time::ZERO));
        play(&mut user, Alloc::Full, 0, 3000);
        assert!(user[0].reported() > 60.0, "{estimator:?}: {}", user[0].reported());
        let lost = user[0].dropped as f64 / user[0].sent as f64;
        assert!(lost > 0.5, "{estimator:?}: {lost}");
    }
    // With grants for queued data only, it is noticed: a packet or two, rounded up to groups of 3000 bits.
    let mut user = [User::new(Estimator::PerDci, 75, 18.331, 100_000)];
    user[0].wire = Some((Rate::from_mbit_per_s(20), Time::ZERO));
    play(&mut user, Alloc::Queue, 0, 3000);
    assert!((15.0..30.0).contains(&user[0].reported()), "{}", user[0].reported());
}

#[test]
fn five_users_are_told_their_peak_by_per_dci_and_their_share_by_the_others() {
    // cqic-dcic.md, section 8, 6: about 60 % dropped and 99 ms of queue; none, 60 ms and 12 ms. In this model 71 % and 98 ms;
    // below 1 %, at the beginning, and 26 ms. The shares depend on when losses are detected.
    for (estimator, lost, queue) in [
        (Estimator::PerDci, 0.5..0.8, 0.090..0.110),
        (Estimator::Gap, 0.0..0.01, 0.0..0.070),
        (Estimator::Window, 0.0..0.01, 0.0..0.040),
    ] {
        let mut users = [75, 75, 38, 30, 30].map(|peak| User::new(estimator, peak, 5.0, 125_000));
        play(&mut users, Alloc::Full, 0, 10_000);
        let sum = |figure: fn(&User) -> f64| users.iter().map(figure).sum::<f64>();
        let dropped = sum(|user| user.dropped as f64) / sum(|user| user.sent as f64);
        let delay = sum(|user| user.delay) / sum(|user| user.delivered as f64);
        assert!(
            lost.contains(&dropped) && queue.contains(&delay),
            "{estimator:?}: {dropped} lost, {delay} s"
        );
        if estimator == Estimator::PerDci {
            for user in &users {
                assert!((user.reported() - user.peak as f64 / 1000.0).abs() < 0.5, "{}", user.reported());
            }
        }
    }
}
