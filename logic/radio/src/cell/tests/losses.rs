//! Test P-6: how blocks that HARQ gives up affect packets.

use super::*;

fn cell() -> CellConfig {
    let mut config = lte(LteBandwidth::Mhz5);
    config.adaptation.fixed_mcs = Some(LteMcs::MAX);
    config.adaptation.errors = Errors::Fixed(0.01);
    config.harq.downlink.max_retransmissions = 0;
    config
}

#[test]
fn p_6_unacknowledged_mode_loses_packets_in_bursts() {
    let mut rig = Rig::new(&cell(), &[standing(50.0, um())]);
    // 4000 losses: their count has a standard deviation of 1.6 %.
    rig.saturate(&[0], DOWN, 1460, 400_000);
    let harq = rig.cell.harq(0, DOWN).unwrap();
    let failed = harq.lost as f64 / harq.blocks as f64;
    assert!((failed / 0.01 - 1.0).abs() < 0.05, "{harq:?}");
    let told = rig.log.arrivals.len() as f64 + rig.log.dropped as f64;
    let rate = rig.log.dropped as f64 / told;
    assert!((rate / 0.0164 - 1.0).abs() < 0.05, "{rate}");
    assert!((rate / failed / 1.637 - 1.0).abs() < 0.02, "{rate} of packets, {failed} of blocks");
    rig.log.lost.sort_unstable();
    let bursts = 1 + rig.log.lost.windows(2).filter(|pair| pair[1] > pair[0] + 1).count();
    let mean = rig.log.dropped as f64 / bursts as f64;
    assert!((mean / 2.57 - 1.0).abs() < 0.1, "{mean}");
}

#[test]
fn p_6_acknowledged_mode_loses_none_and_delays_some() {
    let mut rig = Rig::new(&cell(), &[standing(50.0, Config::am(Bytes::new(1_000_000)))]);
    let packets = 20_000;
    for ms in 1..=packets {
        rig.send(0, DOWN, 1460);
        rig.play_until(Time::from_millis(ms));
    }
    rig.play_until(Time::from_secs(30));
    assert_eq!((rig.log.arrivals.len() as u64, rig.log.dropped), (packets, 0));
    assert_eq!(rig.cell.next_event(), Time::MAX);
    let delays = || rig.log.arrivals.iter().map(|arrival| arrival.3);
    let least = delays().min().unwrap();
    assert_eq!(least, Span::from_millis(3));
    // From the loss to the status report: 10 ms of t-Reordering and a grant; then the retransmission.
    let spikes = delays().filter(|delay| *delay >= least + Span::from_millis(16)).count();
    assert!(spikes >= 100, "{spikes}");
}
