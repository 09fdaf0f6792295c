//! Rates and delays in every kind of frame.

use super::*;

fn user() -> UserConfig {
    standing(50.0, of_nr(Config::um(Bytes::new(10_000_000))))
}

fn rig(config: &CellConfig, users: usize) -> Rig {
    let users: Vec<UserConfig> = (0..users).map(|_| user()).collect();
    let mut rig = Rig::new(config, &users);
    rig.fill = 1_000_000;
    rig
}

/// Mbit/s of blocks of the highest MCS in all data symbols of a direction.
fn block_rate(config: &CellConfig, direction: Direction) -> f64 {
    let layout = Layout::new(config).unwrap();
    let slots = 20_000_000 / layout.frame.slot().as_nanos();
    let mcs = layout.mcs_of(ranpace_phy::Cqi::MAX, 0.0).unwrap();
    let bits = |slot| match layout.frame.data_symbols(slot, direction) {
        0 => 0,
        symbols => u64::from(layout.block(direction, mcs, layout.prbs, symbols).bits()),
    };
    (0..slots).map(bits).sum::<u64>() as f64 / 20e3
}

/// Share of the rate that is left when `users` users divide the symbols of a slot, each with its own DMRS.
fn with_pilots(config: &CellConfig, users: u32) -> f64 {
    let layout = Layout::new(config).unwrap();
    match config.air {
        Air::Nr { .. } if layout.by_symbols => {
            let symbols = (0..20).map(|slot| layout.frame.data_symbols(slot, DOWN)).max().unwrap();
            f64::from(u32::from(symbols) - users) / f64::from(symbols - 1)
        }
        _ => 1.0,
    }
}

#[test]
fn a_full_direction_has_the_rate_of_its_blocks() {
    for (case, config) in frames() {
        for direction in [DOWN, UP] {
            let mut rig = rig(&config, 1);
            rig.warm_up(&[0], direction, 1460);
            rig.saturate(&[0], direction, 1460, 500);
            let (rate, blocks) = (rig.rate(0, direction, 500), block_rate(&config, direction));
            assert!((rate / blocks - 1.0).abs() < 0.03, "{case}, {direction:?}: {rate} of {blocks} Mbit/s");
        }
    }
    // Test P-2, and the 908 Mbit/s of the experiments.
    assert!((block_rate(&nr(Duplex::Dynamic, Division::Symbols), DOWN) - 852.6).abs() < 0.1);
    assert!((block_rate(&mmwave(), UP) - 908.16).abs() < 0.01);
}

#[test]
fn rates_of_tdd_are_by_the_share_of_symbols() {
    let config = nr(Duplex::Tdd("DDDSU".parse().unwrap()), Division::Frequency);
    let info = Cell::<Datagram>::new(0, &config).unwrap();
    assert!((info.info().share.downlink - 52.0 / 70.0).abs() < 1e-12);
    assert!((info.info().share.uplink - 16.0 / 70.0).abs() < 1e-12);
    let full = block_rate(&nr(Duplex::Fdd, Division::Frequency), DOWN);
    let part = block_rate(&config, DOWN) / full;
    assert!((part / (52.0 / 70.0) - 1.0).abs() < 0.03, "{part}");
}

#[test]
fn both_directions_share_what_there_is() {
    for (case, config) in frames() {
        let mut rig = rig(&config, 1);
        rig.warm_up(&[0], UP, 1460);
        for _ in 0..300 {
            while rig.cell.queued(0, UP) < Bytes::new(rig.fill) {
                rig.send(0, UP, 1460);
            }
            rig.saturate(&[0], DOWN, 1460, 1);
        }
        let rates = [DOWN, UP].map(|direction| rig.rate(0, direction, 300));
        let blocks = [DOWN, UP].map(|direction| block_rate(&config, direction));
        let parts = [rates[0] / blocks[0], rates[1] / blocks[1]];
        let of_each =
            if config.air.frame().unwrap().is_shared() { 0.5 * with_pilots(&config, 2) } else { 1.0 };
        assert!(parts.iter().all(|part| (part / of_each - 1.0).abs() < 0.03), "{case}: {parts:?}");
    }
}

#[test]
fn acknowledgements_downlink_take_a_symbol_and_no_more() {
    for config in [mmwave(), nr(Duplex::Dynamic, Division::Symbols)] {
        let slot = config.air.frame().unwrap().slot();
        let layout = Layout::new(&config).unwrap();
        // In NR the first symbol of a grant carries DMRS.
        let (all, few) =
            (layout.frame.data_symbols(0, DOWN), if matches!(config.air, Air::Mmwave) { 1 } else { 2 });
        let bits = |symbols| f64::from(layout.block(UP, layout.most, layout.prbs, symbols).bits());
        let mut rig = rig(&config, 1);
        rig.warm_up(&[0], UP, 1460);
        let begin = rig.now;
        for _ in 0..3000 {
            while rig.cell.queued(0, UP) < Bytes::new(rig.fill) {
                rig.send(0, UP, 1460);
            }
            rig.send(0, DOWN, 60);
            rig.send(0, DOWN, 60);
            let next = rig.now + slot;
            rig.play_until(next);
        }
        let part = rig.rate(0, UP, (rig.now - begin).as_millis()) / block_rate(&config, UP);
        assert!((part / (bits(all - few) / bits(all)) - 1.0).abs() < 0.03, "{part}");
        let downs = rig.log.arrivals.iter().filter(|arrival| arrival.1 == DOWN);
        assert!(downs.map(|arrival| arrival.3).max().unwrap() <= slot * 8);
    }
}

#[test]
fn users_of_a_direction_share_it() {
    for (case, config) in frames() {
        for direction in [DOWN, UP] {
            let mut rig = rig(&config, 3);
            rig.warm_up(&[0, 1, 2], direction, 1460);
            rig.saturate(&[0, 1, 2], direction, 1460, 300);
            let rates = [0, 1, 2].map(|user| rig.rate(user, direction, 300));
            let (sum, blocks) = (rates.iter().sum::<f64>(), block_rate(&config, direction));
            let most = blocks * with_pilots(&config, 3);
            assert!(sum > 0.93 * most && sum <= blocks, "{case}, {direction:?}: {rates:?} of {blocks}");
            assert!(rates.iter().all(|rate| (rate / sum * 3.0 - 1.0).abs() < 0.05), "{case}: {rates:?}");
        }
    }
}

#[test]
fn nobody_is_left_out_by_a_pattern() {
    // One slot in twenty is downlink, and has room for seven of sixty users.
    let pattern: ranpace_phy::TddPattern = "DUUUUUUUUUUUUUUUUUUU".parse().unwrap();
    let mut rig = rig(&nr(Duplex::Tdd(pattern), Division::Symbols), 60);
    rig.fill = 20_000;
    rig.saturate(&(0..60).collect::<Vec<u32>>(), DOWN, 1460, 500);
    let served: Vec<f64> = (0..60).map(|user| rig.rate(user, DOWN, 500)).collect();
    let mean = served.iter().sum::<f64>() / 60.0;
    assert!(served.iter().all(|rate| (0.7..1.3).contains(&(rate / mean))), "{served:?}");
}

#[test]
fn many_users_get_more_than_pilots() {
    for (case, config) in frames() {
        for direction in [DOWN, UP] {
            let all: Vec<u32> = (0..30).collect();
            let mut rig = rig(&config, 30);
            rig.fill = 100_000;
            rig.warm_up(&all, direction, 1460);
            rig.saturate(&all, direction, 1460, 300);
            let rates: Vec<f64> = all.iter().map(|user| rig.rate(*user, direction, 300)).collect();
            let (sum, blocks) = (rates.iter().sum::<f64>(), block_rate(&config, direction));
            let least = rates.iter().copied().fold(f64::MAX, f64::min);
            // One of two symbols carries DMRS.
            assert!(
                sum > 0.45 * blocks && least > 0.7 * sum / 30.0,
                "{case}, {direction:?}: {rates:?} of {blocks}"
            );
        }
    }
}

#[test]
fn a_lone_packet_waits_for_little() {
    for (case, config) in frames() {
        let frame = config.air.frame().unwrap();
        let slot = frame.slot();
        let (harq, access) = (config.harq.downlink, config.access);
        let mut rig = rig(&config, 1);
        for ping in 0..200_u64 {
            // At any phase of slots and patterns.
            rig.play_until(Time::from_nanos(30_123_457 * ping));
            rig.send(0, DOWN, 84);
            rig.send(0, UP, 84);
        }
        rig.play_until(rig.now + Span::from_millis(100));
        assert_eq!(rig.log.arrivals.len(), 400, "{case}");
        // In TDD the next slot of a direction may be a whole pattern away.
        let pattern = frame.pattern().map_or(0, |pattern| u64::from(pattern.slots()));
        let down = harq.decode + 1 + pattern;
        let up = access.sr_period
            + access.sr_to_grant
            + access.grant_to_pusch
            + config.harq.uplink.decode
            + 1
            + pattern;
        for (_, direction, _, waited) in &rig.log.arrivals {
            let most = if *direction == DOWN { down } else { up };
            assert!(*waited <= slot * most, "{case}, {direction:?}: {waited:?}");
        }
    }
}
