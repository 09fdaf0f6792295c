//! Tests of guarantees of both modes, and the worked examples of the model.

mod acknowledged;
mod properties;
mod unacknowledged;
mod users;

use ranpace_units::Bytes;

use super::testing::Cell;
use super::{Config, DropCause};

/// Block of LTE at 25 PRBs and the highest MCS, in bytes; from published experiments.
const BLOCK: u64 = 2292;

/// Sends packets of 1460 B in blocks of 2292 B without a pause.
fn saturate(cell: &mut Cell, ttis: u64, loss: f64) {
    for _ in 0..ttis {
        while cell.channel.buffered() < Bytes::new(8 * 1460) {
            cell.offer(1460);
        }
        cell.tti(BLOCK, loss);
    }
}

#[test]
fn losses_of_um_come_in_bursts_and_am_loses_nothing() {
    // Test P-6: 1 % of blocks lost. UM: a packet has bytes in 1 + 1460/2292 blocks, a block in 1 + 2292/1460 packets.
    let mut cell = Cell::new(&Config::um(Bytes::new(1_000_000)), 1);
    saturate(&mut cell, 1_000_000, 0.01);
    let lost = cell.log.dropped_for(DropCause::Radio);
    assert_eq!(lost.len(), cell.log.dropped.len());
    let rate = lost.len() as f64 / (lost.len() + cell.log.delivered.len()) as f64;
    assert!((rate / 0.0164 - 1.0).abs() < 0.05, "{rate}");
    // Two consecutive lost blocks make one burst; compared with isolated failures, one in a hundred merges.
    let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let mean = lost.len() as f64 / bursts as f64;
    assert!((mean / 2.57 - 1.0).abs() < 0.10, "{mean}");

    let mut cell = Cell::new(&Config::am(Bytes::new(1_000_000)), 1);
    saturate(&mut cell, 100_000, 0.01);
    cell.drain();
    assert_eq!(cell.log.dropped, []);
    assert_eq!(cell.log.delivered_ids(), (0..cell.offered()).collect::<Vec<_>>());
}

#[test]
fn a_retransmission_of_am_is_a_pause_of_16_ms_or_more() {
    // Test P-6, with every hundredth block lost, so that no two losses share a pause.
    let mut cell = Cell::new(&Config::am(Bytes::new(1_000_000)), 1);
    for tti in 0..10_000 {
        while cell.channel.buffered() < Bytes::new(8 * 1460) {
            cell.offer(1460);
        }
        cell.tti_with(BLOCK, tti % 100 == 50, 0.0);
    }
    let gaps = cell.log.delivered.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_millis());
    let pauses: Vec<u64> = gaps.filter(|&gap| gap > 3).collect();
    assert_eq!(pauses.len(), 100);
    assert!(pauses.iter().all(|gap| (16..=30).contains(gap)), "{pauses:?}");
}

#[test]
fn headers_take_what_the_model_says_of_the_rate() {
    // Blocks of 2292 B: 3 B of MAC, 2 B of RLC and 1.5 B for each part but the first; 2 B of PDCP per packet.
    let mut cell = Cell::new(&Config::um(Bytes::new(1_000_000)), 1);
    saturate(&mut cell, 10_000, 0.0);
    let goodput = cell.log.delivered.len() as f64 * 1460.0 / (BLOCK as f64 * 10_000.0);
    assert!((0.994..0.997).contains(&goodput), "{goodput}");
}
