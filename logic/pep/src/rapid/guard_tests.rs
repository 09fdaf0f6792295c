//! Tests of the guard's verdict on correct reports, on reports that are too low, and on reports that become correct again.

use proptest::prelude::*;
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;

use super::tests::{MSS, at, report};
use super::*;

/// `C` of [`report`], in bytes per second.
const CAPACITY: f64 = 2_292_000.0;
const WAN_RTT: u64 = 20;
const RAN_RTT: u64 = 30;

/// The report of a cell that has nothing left but one PRB.
fn full(now: Time) -> RadioHint {
    let hint = RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz5), now);
    RadioHint { granted: 1.0, unused: 0.0, mcs: 28, active_users: 100, ..hint }
}

/// One user behind a link of a given rate, and servers that send as much as the windows allow, to the proxy and from it to the
/// user. Time advances in milliseconds.
struct World {
    rapid: Rapid,
    flows: Vec<FlowId>,
    ms: u64,
    /// True rate in bytes per second.
    carries: f64,
    /// Backlog in the proxy, and queue for the radio.
    backlog: f64,
    queue: f64,
    acked: f64,
    told: u64,
    trying: u64,
    /// Largest RTT to the user so far.
    most_rtt: Span,
}

impl World {
    fn new(settings: Settings, flows: usize, carries: f64, first: &RadioHint) -> Self {
        let mut rapid = Rapid::new(settings);
        rapid.on_radio(at(0), 1, first);
        let open = |rapid: &mut Rapid| {
            let id = rapid.open(at(0), 1, Span::from_millis(WAN_RTT), MSS);
            rapid.on_ran_rtt(at(0), id, Span::from_millis(RAN_RTT));
            id
        };
        let flows = (0..flows).map(|_| open(&mut rapid)).collect();
        Self {
            rapid,
            flows,
            ms: 0,
            carries,
            backlog: 0.0,
            queue: 0.0,
            acked: 0.0,
            told: 0,
            trying: 0,
            most_rtt: Span::ZERO,
        }
    }

    /// Plays this many ms with these reports, one per ms.
    fn play(&mut self, ms: u64, hint: impl Fn(Time) -> RadioHint) {
        for _ in 0..ms {
            self.ms += 1;
            let now = at(1_000 * self.ms);
            while let Some(due) = self.rapid.next_deadline().filter(|due| *due <= now) {
                self.rapid.on_deadline(due);
            }
            self.rapid.on_radio(now, 1, &hint(now));
            // The windows are in flight; the part beyond what the radio carries in an RTT is queued.
            let allowed = |id: &FlowId| {
                let window = self.rapid.window(*id);
                window.map_or(self.carries, |window| window.as_f64() * 1e3 / WAN_RTT as f64)
            };
            let rates: Vec<f64> = self.flows.iter().map(allowed).collect();
            let wanted = rates.iter().sum::<f64>() / 1e3;
            // Windows towards the user bound the queue for the radio; without them its buffer does.
            let windows: Option<Bytes> = self.flows.iter().map(|id| self.rapid.ran_window(*id)).sum();
            let bdp = self.carries * RAN_RTT as f64 / 1e3;
            let room = windows.map_or(20_000.0, |windows| (windows.as_f64() - bdp).max(0.0));
            let waits = self.backlog + wanted;
            let sent = waits.min((self.carries / 1e3 + room - self.queue).max(0.0));
            // A server that is passed through is bounded only by the room, which it fills.
            self.backlog = if windows.is_some() { waits - sent } else { 0.0 };
            self.queue += sent;
            let left = self.queue.min(self.carries / 1e3);
            self.queue -= left;
            let rtt = Span::from_millis(RAN_RTT) + Span::from_secs_f64(self.queue / self.carries);
            self.most_rtt = self.most_rtt.max(rtt);
            self.acked += left;
            let each = (self.acked as u64 - self.told) / self.flows.len() as u64;
            self.told += each * self.flows.len() as u64;
            for (id, rate) in self.flows.clone().into_iter().zip(rates) {
                self.rapid.on_wan_data(now, id, Bytes::new(((rate / 1e3) as u64).max(1)));
                let backlog = self.backlog / self.flows.len() as f64;
                self.rapid.on_backlog(now, id, Bytes::new(backlog as u64));
                self.rapid.on_ran_acked(id, Bytes::new(each));
                self.rapid.on_ran_rtt(now, id, rtt);
            }
            self.trying += u64::from(self.trust() == ReportTrust::Probing);
        }
    }

    fn trust(&self) -> ReportTrust {
        self.rapid.user(at(1_000 * self.ms), 1).unwrap().trust
    }

    fn mode(&self) -> Mode {
        self.rapid.user(at(1_000 * self.ms), 1).unwrap().mode
    }
}

#[test]
fn falsely_full_cell_is_detected_within_the_stated_time() {
    for flows in [1, 2, 8] {
        let mut world = World::new(Settings::FIELD, flows, CAPACITY, &full(at(0)));
        world.play(5_000, full);
        assert_eq!((world.trust(), world.mode()), (ReportTrust::Contradicted, Mode::Open), "{flows} flows");
        assert!(
            world.rapid.window(world.flows[0]).is_none() && world.rapid.allocation(world.flows[0]).is_none()
        );
        // While the report stays the same, nothing changes.
        world.play(60_000, full);
        assert_eq!(world.mode(), Mode::Open);
        // The feed is repaired: the longest time for which reports have to agree is 3 s here.
        world.play(6_001, report);
        assert_eq!((world.trust(), world.mode()), (ReportTrust::Trusted, Mode::Normal), "{flows} flows");
        assert!(world.rapid.window(world.flows[0]).is_some());
    }
}

#[test]
fn feed_that_becomes_false_is_detected() {
    let mut world = World::new(Settings::FIELD, 2, CAPACITY, &report(at(0)));
    world.play(10_000, report);
    assert_eq!(world.mode(), Mode::Normal);
    world.play(5_000, full);
    assert_eq!(world.mode(), Mode::Open);
}

#[test]
fn thesis_profile_trusts_a_false_feed() {
    let mut world = World::new(Settings::THESIS, 2, CAPACITY, &full(at(0)));
    world.play(20_000, full);
    assert_eq!((world.trust(), world.mode(), world.trying), (ReportTrust::Trusted, Mode::Normal, 0));
}

/// The reports are correct, or slightly too low or too high.
#[test]
fn true_reports_are_never_contradicted_and_rarely_probed() {
    for share in [0.85, 1.0, 1.15] {
        let mut world = World::new(Settings::FIELD, 2, share * CAPACITY, &report(at(0)));
        world.play(60_000, report);
        assert_eq!(world.mode(), Mode::Normal, "{share}");
        // A probe ends before all of it is measured if the delay rises; then the excess is given back.
        assert!(world.trying <= 60_000 * 9 / 100, "{share}: {} ms", world.trying);
        assert!(world.trying > 0);
    }
}

#[test]
fn flows_below_their_allocation_are_not_probed() {
    let mut rapid = Rapid::new(Settings::FIELD);
    rapid.on_radio(at(0), 1, &report(at(0)));
    let flow = rapid.open(at(0), 1, Span::from_millis(WAN_RTT), MSS);
    for ms in 1..20_000 {
        let now = at(1_000 * ms);
        while let Some(due) = rapid.next_deadline().filter(|due| *due <= now) {
            rapid.on_deadline(due);
        }
        rapid.on_radio(now, 1, &report(now));
        rapid.on_wan_data(now, flow, Bytes::new(50)); // 400 kbit/s
        if ms > 900 {
            assert_eq!(rapid.user(now, 1).unwrap().trust, ReportTrust::Trusted, "{ms} ms");
        }
    }
}

/// With late reports it takes twice as many probes.
#[test]
fn delayed_false_feed_takes_longer_to_detect() {
    let late = |now: Time| full(at(now.as_millis().saturating_sub(200) * 1_000 + 1));
    let mut world = World::new(Settings::FIELD, 2, CAPACITY, &full(at(0)));
    world.play(3_000, late);
    assert_eq!(world.mode(), Mode::Hold);
    world.play(5_000, late);
    assert_eq!(world.mode(), Mode::Open);
}

/// A user that is passed through is remembered while it has no flow, provided that reports about it keep arriving.
#[test]
fn contradicted_reports_are_remembered_for_the_next_flow() {
    let mut world = World::new(Settings::FIELD, 1, CAPACITY, &full(at(0)));
    world.play(5_000, full);
    world.rapid.close(at(5_000_000), world.flows[0]);
    for ms in 5_001..12_000 {
        world.rapid.on_deadline(at(1_000 * ms));
        world.rapid.on_radio(at(1_000 * ms), 1, &full(at(1_000 * ms)));
    }
    assert_eq!(world.rapid.user(at(12_000_000), 1).unwrap().trust, ReportTrust::Contradicted);
    let next = world.rapid.open(at(12_000_000), 1, Span::from_millis(WAN_RTT), MSS);
    assert_eq!(world.rapid.window(next), None);
    world.rapid.close(at(12_000_000), next);
    world.rapid.on_deadline(at(120_000_000));
    assert!(world.rapid.user(at(120_000_000), 1).is_none(), "nothing is reported any more");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever is reported, probes take no more than a stated part of the time and exceed reports by no more than stated; and
    /// where reports are at most the true rate, a user that takes everything gets nine tenths of it in the long run.
    #[test]
    fn probes_are_bounded_and_underreported_users_get_their_rate(
        carries in 1e5..1e7,
        prbs in 0.0..25.0,
        flows in 1..4_usize,
    ) {
        let told = |now: Time| RadioHint { granted: prbs, unused: 0.0, active_users: 0, ..report(now) };
        let mut world = World::new(Settings::FIELD, flows, carries, &told(at(0)));
        let mut last = ReportTrust::Trusted;
        let mut begun = Vec::new();
        for _ in 0..20_000 {
            world.play(1, told);
            let trust = world.trust();
            if trust == ReportTrust::Probing && last != ReportTrust::Probing {
                begun.push(world.ms);
            }
            last = trust;
            let user = world.rapid.user(at(1_000 * world.ms), 1).unwrap();
            if user.mode != Mode::Open {
                let reported = world.rapid.users[&1].radio.reported(world.rapid.settings(), user.time);
                let most = (1.5 * reported).max(reported + 10.0 * MSS.as_f64() / 0.1);
                prop_assert!(user.capacity.as_f64() / 8.0 <= most * 1.001);
            }
        }
        // The first probe comes after a second, the next ones at least half a second apart; each takes an RTT and 200 ms, and as
        // long again to give back.
        prop_assert!(begun.first().is_none_or(|ms| *ms >= 1_000));
        prop_assert!(begun.windows(2).all(|two| two[1] - two[0] >= 500), "{begun:?}");
        let each = 2 * (WAN_RTT + world.most_rtt.as_millis() + 1 + 200);
        prop_assert!(world.trying <= each * begun.len() as u64, "{} of {each}", world.trying);
        // A report of two thirds or more may go undetected: a probe tries 1.5 times as much.
        let before = world.acked;
        world.play(5_000, told);
        let rate = (world.acked - before) / 5.0;
        prop_assert!(rate >= 0.65 * carries, "{rate} of {carries}, {:?}", world.mode());
    }
}
