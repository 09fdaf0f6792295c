//! Rounds of HARQ.

use ranpace_phy::{BlerCurve, LtePrbs};

use super::*;

/// A cell of 25 PRBs with one HARQ process, which sends blocks of 2292 B.
fn one_process() -> CellConfig {
    let mut config = lte(LteBandwidth::Mhz5);
    config.adaptation.fixed_mcs = Some(LteMcs::MAX);
    config.adaptation.control_errors = false;
    config.harq.downlink.processes = 1;
    config.alloc = Alloc::Full;
    config
}

/// The distance at which the SINR is this many dB below the one at which half of the blocks fail.
fn short_by(db: f64) -> f64 {
    let wanted = BlerCurve::ns3(LteMcs::MAX, LtePrbs::new(25).unwrap()).centre_db() - db;
    let (mut near, mut far) = (20.0, 2000.0);
    for _ in 0..60 {
        let middle = (near + far) / 2.0;
        let mut rig = Rig::new(&one_process(), &[standing(middle, um())]);
        let sinr_db = rig.cell.probe(Time::ZERO, 0).unwrap().downlink.sinr_db;
        if sinr_db > wanted { near = middle } else { far = middle }
    }
    near
}

#[test]
fn p_3_a_burst_of_ten_packets_takes_as_many_rounds_as_its_blocks_and_their_retransmissions() {
    // With Chase combining the second attempt has 3 dB more and the third 4.8 dB: a user that lacks 3.9 dB needs three.
    for (case, metres, errors, size, rounds_ms) in [
        ("a packet a round", 50.0, Errors::Fixed(0.0), 2200, 80),
        ("two a round", 50.0, Errors::Fixed(0.0), 1135, 40),
        ("a packet, sent three times", short_by(3.9), Errors::Ns3, 2200, 240),
        ("two, sent three times", short_by(3.9), Errors::Ns3, 1135, 120),
    ] {
        let mut config = one_process();
        config.adaptation.errors = errors;
        let mut rig = Rig::new(&config, &[standing(metres, um())]);
        for _ in 0..10 {
            rig.send(0, DOWN, size);
        }
        rig.play_until(Time::from_secs(1));
        assert_eq!(rig.log.arrivals.len(), 10, "{case}");
        // The last block is decoded 3 ms after it was sent; its process is free after 8 ms.
        let last = rig.log.arrivals[9].2;
        assert_eq!(last + Span::from_millis(8 - 3), Time::from_millis(rounds_ms), "{case}");
        let retransmissions = if rounds_ms > 100 { 2 * rounds_ms / 24 } else { 0 };
        assert_eq!(rig.cell.harq(0, DOWN).unwrap().retransmissions, retransmissions, "{case}");
    }
}

#[test]
fn eight_processes_hide_the_rounds_and_a_lost_block_does_not_come() {
    let mut config = one_process();
    config.harq.downlink = HarqConfig { max_retransmissions: 2, ..HarqConfig::LTE };
    config.adaptation.errors = Errors::Fixed(1.0);
    let mut rig = Rig::new(&config, &[standing(50.0, um())]);
    for _ in 0..10 {
        rig.send(0, DOWN, 2200);
    }
    rig.play_until(Time::from_secs(1));
    let harq = rig.cell.harq(0, DOWN).unwrap();
    assert_eq!((harq.blocks, harq.retransmissions, harq.lost), (10, 20, 10));
    assert_eq!((rig.log.arrivals.len(), rig.log.dropped), (0, 10));
    assert_eq!(rig.cell.next_event(), Time::MAX);
}

#[test]
fn blocks_that_fail_take_no_more_than_what_it_takes_to_send_them_again() {
    // A tenth of the attempts fails: 1 / 0.9 attempts per block, in every frame and direction.
    for (case, mut config) in frames() {
        config.adaptation.errors = Errors::Fixed(0.1);
        for direction in [DOWN, UP] {
            let rlc = of_nr(Config::um(Bytes::new(10_000_000)));
            let mut rig = Rig::new(&config, &[standing(50.0, rlc)]);
            rig.fill = 1_000_000;
            rig.saturate(&[0], direction, 1460, 2000);
            let harq = rig.cell.harq(0, direction).unwrap();
            let rate = harq.retransmissions as f64 / harq.blocks as f64;
            assert!((rate / 0.111 - 1.0).abs() < 0.2, "{case}, {direction:?}: {harq:?}");
            let full = rig.cell.scheduled_bits(0, direction) as f64;
            let mut plain = Rig::new(
                &CellConfig {
                    adaptation: AdaptationConfig { errors: Errors::Fixed(0.0), ..config.adaptation },
                    ..config.clone()
                },
                &[standing(50.0, of_nr(Config::um(Bytes::new(10_000_000))))],
            );
            plain.fill = 1_000_000;
            plain.saturate(&[0], direction, 1460, 2000);
            let part = full / plain.cell.scheduled_bits(0, direction) as f64;
            assert!((part / 0.9 - 1.0).abs() < 0.03, "{case}, {direction:?}: {part}");
        }
    }
}

#[test]
fn the_outer_loop_finds_ten_percent_and_does_not_wind_up() {
    // The MCS is two steps too high for the channel.
    let mut config = lte(LteBandwidth::Mhz5);
    config.adaptation = AdaptationConfig {
        thresholds: ranpace_phy::CqiThresholds::Awgn,
        outer_loop: Some(OuterLoop::TEN_PERCENT),
        errors: Errors::Awgn,
        ..AdaptationConfig::LTE
    };
    let mut rig = Rig::new(&config, &[standing(400.0, um())]);
    rig.saturate(&[0], DOWN, 1460, 5000);
    let harq = rig.cell.harq(0, DOWN).unwrap();
    let failed = rig.cell.members[0].as_ref().unwrap().steps.downlink;
    assert!(harq.retransmissions as f64 / (harq.blocks as f64) < 0.15, "{harq:?} {failed}");
    // Near the base station nothing fails, and the loop does not move.
    let mut rig = Rig::new(&config, &[standing(20.0, um())]);
    rig.saturate(&[0], DOWN, 1460, 5000);
    assert_eq!(rig.cell.members[0].as_ref().unwrap().steps.downlink, 0.0);
    let mut wrong = config.clone();
    wrong.adaptation.outer_loop = Some(OuterLoop { target: 1.0, step: 0.5 });
    assert!(wrong.check(1).is_err());
}
