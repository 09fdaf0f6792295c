//! Packets after HARQ gives a block up: test P-6.

use ranpace_radio::cell::CellConfig;
use ranpace_radio::rlc::Config;
use ranpace_units::{Bytes, Span, Time};

use super::cell::{DOWN, Rig, Unplayable, fixed, millis, or_why, standing, um};
use super::{Check, Row};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "lost blocks in unacknowledged mode", rows: || or_why(unacknowledged()) },
    Check { name: "lost blocks in acknowledged mode", rows: || or_why(acknowledged()) },
];

/// Size of a packet, in bytes.
const SIZE: u32 = 1460;

/// One block of 100 is lost: nothing retransmits it.
fn lossy() -> Result<CellConfig, Unplayable> {
    let mut config = fixed(0.01)?;
    config.harq.downlink.max_retransmissions = 0;
    Ok(config)
}

/// A saturated carrier loses some 5000 blocks.
fn unacknowledged() -> Result<Vec<Row>, Unplayable> {
    let mut rig = Rig::new(&lossy()?, &[standing(50.0, um())], 1)?;
    rig.saturate(&[0], SIZE, 500_000);
    let (lost, came) = (rig.log.dropped.len() as f64, rig.log.arrivals.len() as f64);
    // Packets with a byte in a lost block are dropped together. Isolated: no other block is lost within five slots, so that no
    // packet has bytes in both.
    let bursts: Vec<_> = rig.log.dropped.chunk_by(|one, next| one == next).collect();
    let apart = |one: &[_], next: &[_]| match (one.first(), next.first()) {
        (Some(one), Some(next)) => *next - *one > Span::from_millis(5),
        _ => false,
    };
    let isolated: Vec<f64> = bursts
        .windows(3)
        .filter(|three| apart(three[0], three[1]) && apart(three[1], three[2]))
        .map(|three| three[1].len() as f64)
        .collect();
    let mean = isolated.iter().sum::<f64>() / isolated.len() as f64;
    Ok(vec![
        Row::within_percent(
            "P-6: UM, lost packets where 1 % of the blocks is lost, %",
            1.64,
            100.0 * lost / (lost + came),
            5.0,
        ),
        Row::within_percent("P-6: UM, packets lost with a lone block", 2.57, mean, 10.0),
    ])
}

/// A packet in each slot, so that there is room for retransmissions, and only retransmissions cause delay.
fn acknowledged() -> Result<Vec<Row>, Unplayable> {
    const MILLIS: u64 = 60_000;
    let mut rig = Rig::new(&lossy()?, &[standing(50.0, Config::am(Bytes::new(1_000_000)))], 1)?;
    rig.subscribe();
    for _ in 0..MILLIS {
        rig.send(0, DOWN, SIZE);
        rig.play(1);
    }
    rig.play(1000);
    let log = &rig.log;
    // When a block is lost, the packets in transit arrive later: the largest delay among them. They arrive in order.
    let mut delays = Vec::new();
    let mut lost_at = Vec::new();
    for pair in log.slots.windows(2) {
        if pair[1].lost[0] > pair[0].lost[0] {
            lost_at.push(pair[1].time);
            let from = log.arrivals.partition_point(|arrival| arrival.at <= pair[1].time);
            let under_way = log.arrivals[from..].iter().take_while(|arrival| arrival.sent <= pair[1].time);
            delays.push(under_way.map(|arrival| millis(arrival.at - arrival.sent)).fold(0.0, f64::max));
        }
    }
    let short = delays.iter().filter(|delay| **delay < 16.0).count();
    // Isolated ones: nothing else is lost within 100 ms, so that the retransmission arrives.
    let apart = |one: Time, next: Time| next - one > Span::from_millis(100);
    let lone: Vec<f64> = lost_at
        .windows(3)
        .zip(&delays[1..])
        .filter(|(three, _)| apart(three[0], three[1]) && apart(three[1], three[2]))
        .map(|(_, delay)| *delay)
        .collect();
    let mean = lone.iter().sum::<f64>() / lone.len() as f64;
    Ok(vec![
        Row::exact("P-6: AM, packets lost, of 60000", 0.0, MILLIS as f64 - log.arrivals.len() as f64),
        Row::exact("P-6: AM, lost blocks after which no packet comes 16 ms late", 0.0, short as f64),
        // The next block reveals the gap 4 ms after the lost one was sent, t-Reordering takes 10 ms. Reports leave every 20 ms,
        // because they must be at least 10 ms apart and requests come every 10 ms: 0 to 19 ms, 9.5 on average. The report arrives
        // after 3 ms, and so does the retransmission. 16 ms are the minimum that 004 section 5.3.3 states for a retransmission of
        // RLC.
        Row::within_percent(
            "P-6: AM, mean delay after a lone lost block, ms",
            4.0 + 10.0 + 9.5 + 3.0 + 3.0,
            mean,
            5.0,
        ),
    ])
}
