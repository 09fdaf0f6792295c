//! Interactions between users, and the cost of silent ones.

use super::*;
use crate::channel::{DelayProfile, Disc, FadingSpeed, Spread, WalkRule};

/// Two users at fixed places; the second sends nothing.
fn with_and_without_a_silent_one(config: &CellConfig) {
    let play = |users: usize| {
        let place = |metres| standing(metres, of_nr(Config::am(Bytes::new(1_000_000))));
        let mut rig = Rig::new(config, &[place(150.0), place(100.0)][..users]);
        for ms in 1..=1000 {
            rig.send(0, DOWN, 1200);
            rig.send(0, UP, 200);
            rig.play_until(Time::from_millis(ms));
        }
        rig.play_until(Time::from_secs(3));
        rig.log.arrivals
    };
    let (alone, beside) = (play(1), play(2));
    assert!(alone.len() > 1500);
    assert_eq!(alone, beside);
}

#[test]
fn a_silent_user_changes_nothing_for_others() {
    for (_, mut config) in frames() {
        config.adaptation.errors = Errors::Fixed(0.2);
        with_and_without_a_silent_one(&config);
    }
    let mut config = lte(LteBandwidth::Mhz20);
    config.channel.fading = FadingConfig::Multipath(DelayProfile::Eva, FadingSpeed::KM_H_60);
    with_and_without_a_silent_one(&config);
}

#[test]
fn silent_users_sleep_and_a_cell_of_sleepers_does_nothing() {
    for (case, config) in frames() {
        let users: Vec<UserConfig> =
            (0..20).map(|_| standing(50.0, of_nr(Config::am(Bytes::new(1_000_000))))).collect();
        let mut rig = Rig::new(&config, &users);
        rig.play_until(Time::from_secs(1));
        let (played, _) = rig.cell.used_prbs();
        assert!(played <= 17 && rig.cell.awake.is_empty(), "{case}: {played} slots");
        assert_eq!(rig.cell.next_event(), Time::MAX, "{case}");
        // One user becomes active; the others stay asleep.
        rig.send(7, DOWN, 1000);
        assert_eq!(rig.cell.awake, [7], "{case}");
        rig.play_until(Time::from_secs(2));
        assert!(rig.cell.awake.is_empty(), "{case}");
        let (played, _) = rig.cell.used_prbs();
        // Polls and their answers take some 100 ms at most.
        assert!(played < 17 + 2000, "{case}: {played} slots");
    }
}

#[test]
fn an_idle_user_is_small() {
    let member = size_of::<UeContext<Datagram>>() as u64;
    // Its heap: HARQ processes, a ring of grants under way, a bearer.
    let processes = 2 * 16 * (size_of::<super::super::ue_context::Block>() as u64 + 40);
    let bearer = size_of::<crate::rlc::Bearer<Datagram>>() as u64;
    let rings = 16 * 48;
    let sum = member + processes + bearer + rings;
    // The limit is 20 KB.
    assert!(sum < 10_000, "{member} + {processes} + {bearer} + {rings} = {sum}");
}

/// Walkers under fading with a proportional fair scheduler; optionally the channel is probed between slots, reports are made,
/// or the cell is called late.
fn walkers(config: &CellConfig, look: bool, reports: bool, late: bool) -> Vec<(u32, Direction, Time, Span)> {
    let area = Disc { centre: Position::new(0.0, 0.0, 1.5), radius_m: 250.0, spread: Spread::Area };
    // Fast, so that the slow parts of the channel change as well.
    let rule = WalkRule { area, speed_m_s: [20.0, 30.0], leg: Span::from_millis(300) };
    let user = UserConfig {
        place: Place::Walk(rule, None),
        ..standing(0.0, of_nr(Config::am(Bytes::new(1_000_000))))
    };
    let mut rig = Rig::new(config, &[user.clone(), user.clone(), user]);
    if reports {
        rig.cell.subscribe(Time::ZERO, Some(CellSubscription { period: 1, full_every: 13 }));
    }
    for ms in 1..=1500 {
        for user in 0..3 {
            rig.send(user, DOWN, 1400);
            rig.send(user, UP, if ms % 4 == 0 { 300 } else { 60 });
        }
        let next = Time::from_millis(ms);
        if look {
            // A look into the future has no effect either.
            for ahead in [0, 3, 40] {
                rig.cell.probe(next + Span::from_millis(ahead), 1);
                rig.cell.snapshot(next + Span::from_millis(ahead), 2);
            }
        }
        if !late {
            rig.play_until(next);
        }
        rig.now = next;
    }
    rig.play_until(Time::from_secs(3));
    rig.log.arrivals
}

#[test]
fn looks_reports_and_late_calls_change_nothing_under_fading() {
    let pattern: ranpace_phy::TddPattern = "DDDSU".parse().unwrap();
    let multipath = FadingConfig::Multipath(DelayProfile::Eva, FadingSpeed::KM_H_60);
    let adaptive = |mut config: CellConfig| {
        config.channel.fading = multipath.clone();
        config.policy = Policy::PROPORTIONAL_FAIR;
        config.adaptation = AdaptationConfig {
            errors: Errors::Awgn,
            outer_loop: Some(OuterLoop::TEN_PERCENT),
            ..AdaptationConfig::LTE
        };
        config.power.most_dbm = 23.0;
        config
    };
    let ns3 = CellConfig {
        channel: ChannelConfig { fading: multipath.clone(), ..lte(LteBandwidth::Mhz20).channel },
        ..lte(LteBandwidth::Mhz20)
    };
    for (case, config) in [
        ("as ns-3", ns3),
        ("LTE", adaptive(lte(LteBandwidth::Mhz10))),
        ("TDD", adaptive(nr(Duplex::Tdd(pattern), Division::Frequency))),
        ("dynamic", adaptive(nr(Duplex::Dynamic, Division::Symbols))),
    ] {
        let plain = walkers(&config, false, false, false);
        assert!(plain.len() > 4000, "{case}: {}", plain.len());
        assert!(plain == walkers(&config, true, false, false), "{case}: looks");
        assert!(plain == walkers(&config, false, true, false), "{case}: reports");
        assert!(plain == walkers(&config, false, false, true), "{case}: late calls");
    }
}
