//! Tests P-9 and P-11: the shares of users according to the reports.

use super::*;

/// PRBs of each user, summed over slots as a reader of reports would.
#[derive(Default)]
struct Reader {
    slots: u64,
    prbs: [u64; 2],
    unused: f64,
    /// Most PRBs used in a slot.
    most: f32,
}

impl Listener<Datagram> for Reader {
    fn on_delivered(&mut self, _: Time, _: u32, _: Direction, _: Datagram) {}
    fn on_report(&mut self, report: &SlotReport<'_>) {
        self.slots += 1;
        let mut sum = 0;
        for user in report.users {
            let prbs = user.link.downlink.grant.map_or(0, |grant| grant.prbs);
            self.prbs[user.user as usize] += u64::from(prbs);
            sum += prbs;
        }
        assert!((report.used_prbs.downlink - f32::from(sum)).abs() < 1e-3, "grants make up what is used");
        self.unused += f64::from(f32::from(report.cell.prbs) - report.used_prbs.downlink);
        self.most = self.most.max(report.used_prbs.downlink);
    }
}

/// Users 0 and 1 with `bytes` each per millisecond, in a cell of 18.3 Mbit/s.
fn play(bytes: [u32; 2], millis: u64) -> Reader {
    let mut config = lte(LteBandwidth::Mhz5);
    config.policy = Policy::RoundRobin;
    let mut log = Reader::default();
    let mut cell = Cell::new(0, &config).unwrap();
    for id in 0..2 {
        cell.attach(Time::ZERO, Subscriber::new(id, &standing(50.0, um()), 1), &mut log);
    }
    cell.subscribe(Time::ZERO, Some(CellSubscription::EVERY_SLOT));
    for ms in 0..millis {
        let now = Time::from_millis(ms);
        for (user, bytes) in (0..).zip(bytes) {
            let mut left = bytes;
            while left > 0 {
                let size = left.min(1460);
                left -= size;
                cell.send(now, user, DOWN, 0, Datagram { id: 0, size, sent: now }, &mut log);
            }
        }
        cell.poll(now, &mut log);
    }
    log
}

#[test]
fn p_9_two_full_users_have_half_each_and_nothing_is_unused() {
    let log = play([2292, 2292], 2000);
    let all = 25.0 * log.slots as f64;
    for prbs in log.prbs {
        assert!((prbs as f64 / all - 0.5).abs() < 0.01, "{prbs} of {all}");
    }
    assert!(log.unused < 0.002 * all, "{}", log.unused);
    assert!(log.most <= 25.0);
}

#[test]
fn p_9_what_one_user_leaves_is_for_the_other() {
    // 1 Mbit/s beside 4 Mbit/s: something is unused, and all but the first user's share could be the second's.
    let log = play([125, 500], 2000);
    let slots = log.slots as f64;
    let (pu, pa) = (log.unused / slots, log.prbs.map(|prbs| prbs as f64 / slots));
    // 125 B and headers need two PRBs, one group; 500 B need six, or seven if the group of one PRB is among them.
    assert!((2.0..2.1).contains(&pa[0]) && (6.0..6.3).contains(&pa[1]), "{pa:?}");
    assert!(pu > 16.0 && (pa[1] + pu - (25.0 - pa[0])).abs() < 1e-6);
    // If the second user saturates the cell, it takes the rest.
    let log = play([125, 3000], 2000);
    let slots = log.slots as f64;
    let (pu, pa) = (log.unused / slots, log.prbs.map(|prbs| prbs as f64 / slots));
    assert!(pu < 0.05 && (pa[1] - (25.0 - pa[0])).abs() < 0.05 && pa[0] < 2.1, "{pa:?} {pu}");
}

#[test]
fn p_11_mcs_of_the_uplink_by_distance() {
    for (band, metres, mcs) in [
        (LteBandwidth::Mhz20, 100.0, Some(14)),
        (LteBandwidth::Mhz20, 200.0, Some(4)),
        (LteBandwidth::Mhz20, 250.0, Some(2)),
        (LteBandwidth::Mhz20, 280.0, Some(0)),
        (LteBandwidth::Mhz20, 300.0, None),
        (LteBandwidth::Mhz10, 350.0, Some(0)),
        (LteBandwidth::Mhz5, 400.0, Some(0)),
    ] {
        let mut rig = Rig::new(&lte(band), &[standing(metres, um())]);
        let probe = rig.cell.probe(Time::ZERO, 0).unwrap().uplink;
        assert_eq!(probe.mcs, mcs, "{band:?} at {metres} m: {probe:?}");
        // Every grant has that MCS, whatever its size.
        for _ in 0..20 {
            rig.send(0, UP, 1400);
        }
        rig.play_until(Time::from_millis(60));
        let granted = rig.cell.members[0].as_ref().unwrap().latest.uplink.map(|(_, grant)| grant.mcs);
        assert_eq!(granted, mcs, "{band:?} at {metres} m");
    }
}

#[test]
fn the_first_report_tells_of_its_slot_alone() {
    let mut rig = Rig::new(&lte(LteBandwidth::Mhz5), &[standing(50.0, um())]);
    rig.saturate(&[0], DOWN, 1460, 100);
    rig.cell.subscribe(rig.now, Some(CellSubscription { period: 10, full_every: 0 }));
    rig.saturate(&[0], DOWN, 1460, 21);
    assert_eq!(rig.log.reports, 3);
    assert!((rig.log.used.downlink - 3.0 * 25.0).abs() < 1e-3, "{:?}", rig.log.used);
}
