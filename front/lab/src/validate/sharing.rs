//! Validates how users share a cell: test P-9, and proportional fair scheduling under fading.

use ranpace_phy::LteBandwidth;
use ranpace_radio::cell::{CellConfig, FadingConfig, UserConfig};
use ranpace_radio::channel::{DelayProfile, FadingSpeed};
use ranpace_radio::scheduler::{Alloc, Policy};

use super::cell::{DOWN, DownlinkSlot, Rig, Unplayable, lte, or_why, standing, um};
use super::{Check, Row};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "round robin", rows: || or_why(round_robin()) },
    Check { name: "proportional fair under fading", rows: || or_why(proportional_fair()) },
];

/// P-9, from the reports: PRBs of a user (Pa), unused ones (Pu), and what a user could have (Pe = Pa + Pu).
fn round_robin() -> Result<Vec<Row>, Unplayable> {
    const MILLIS: u64 = 1000;
    let all = f64::from(LteBandwidth::Mhz5.prbs().get());
    let config = CellConfig { policy: Policy::RoundRobin, alloc: Alloc::Queue, ..lte(LteBandwidth::Mhz5)? };
    let users = [standing(50.0, um()), standing(50.0, um())];
    let rig = || {
        let rig = Rig::new(&config, &users, 1);
        rig.map(|mut rig| {
            rig.subscribe();
            rig
        })
    };
    let of =
        |rig: &Rig, user: usize| rig.log.slots.iter().map(|slot| f64::from(slot.prbs[user])).sum::<f64>();
    let unused = |rig: &Rig| rig.log.slots.iter().map(|slot| all - slot.used).sum::<f64>();
    let mut full = rig()?;
    full.saturate(&[0, 1], 1460, MILLIS);
    // 1 Mbit/s beside 8 Mbit/s. 125 B fit in a group of two PRBs; the last group is one PRB, which takes another group.
    let mut small = rig()?;
    for _ in 0..MILLIS {
        small.send(0, DOWN, 125);
        small.send(1, DOWN, 1000);
        small.play(1);
    }
    let could_have = |slot: &&DownlinkSlot| {
        f64::from(slot.prbs[1]) + all - slot.used == all - f64::from(slot.prbs[0]) && slot.used < all
    };
    let slots = small.log.slots.iter().filter(could_have).count();
    let share = |rig: &Rig, user| 100.0 * of(rig, user) / (all * MILLIS as f64);
    Ok(vec![
        Row::within_percent("P-9: PRBs of the first of two full users, %", 50.0, share(&full, 0), 1.0),
        Row::within_percent("P-9: PRBs of the second, %", 50.0, share(&full, 1), 1.0),
        Row::exact("P-9: unused PRBs beside two full users", 0.0, unused(&full)),
        Row::within("P-9: mean PRBs of 1 Mbit/s, 2 or 3", 2.5, of(&small, 0) / MILLIS as f64, 0.5),
        Row::exact(
            "P-9: slots with unused PRBs where another user could have all but those of 1 Mbit/s, of 1000",
            MILLIS as f64,
            slots as f64,
        ),
    ])
}

/// Similar users get equal time, however their channels vary; PRBs times symbols.
fn proportional_fair() -> Result<Vec<Row>, Unplayable> {
    let mut config = lte(LteBandwidth::Mhz20)?;
    config.channel.fading = FadingConfig::Multipath(DelayProfile::Epa, FadingSpeed::KM_H_3);
    let users: Vec<UserConfig> = (0..5).map(|_| standing(300.0, um())).collect();
    let mut rig = Rig::new(&config, &users, 1)?;
    rig.saturate(&[0, 1, 2, 3, 4], 1460, 60_000);
    let now = rig.now;
    let time =
        |user| rig.cell.snapshot(now, user).map(|user| user.link.downlink.scheduled_prb_symbols as f64);
    let times: Vec<f64> = (0..5).filter_map(time).collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let row = |(user, time): (usize, &f64)| {
        let check = format!("proportional fair, EPA: PRB time of user {user} of 5, % of the mean");
        Row::within(check, 100.0, 100.0 * time / mean, 5.0)
    };
    Ok(times.iter().enumerate().map(row).collect())
}
