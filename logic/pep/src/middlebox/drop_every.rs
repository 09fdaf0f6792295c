//! The smallest middlebox: it drops every n-th data packet of each flow. The losses hit all flows alike and at known places, for
//! tests of recovery. It is also the example of how to add a middlebox (`docs/middleboxes.md`).

use std::collections::BTreeMap;

use ranpace_units::Time;

use super::{Middlebox, MiddleboxPacket, Verdict};

/// The middlebox.
#[derive(Debug)]
pub struct DropEvery {
    packets: u64,
    /// Packets of each flow since the last drop.
    counts: BTreeMap<u32, u64>,
}

impl DropEvery {
    /// Drops every `packets`-th packet; with 0 none.
    pub fn new(packets: u64) -> Self {
        Self { packets, counts: BTreeMap::new() }
    }
}

impl Middlebox for DropEvery {
    fn on_packet(&mut self, _: Time, packet: &MiddleboxPacket) -> Verdict {
        if !packet.forward {
            return Verdict::Pass;
        }
        let count = self.counts.entry(packet.flow).or_default();
        *count += 1;
        if *count != self.packets {
            return Verdict::Pass;
        }
        *count = 0;
        Verdict::Drop
    }
}

#[cfg(test)]
mod tests {
    use ranpace_units::Bytes;

    use super::*;

    #[test]
    fn every_third_packet_of_each_flow_is_dropped_and_no_acknowledgement() {
        let mut middlebox = DropEvery::new(3);
        let mut dropped = |flow, forward| {
            let packet = MiddleboxPacket { flow, forward, wire: Bytes::new(1500) };
            middlebox.on_packet(Time::ZERO, &packet) == Verdict::Drop
        };
        let first: Vec<bool> = (0..6).map(|_| dropped(0, true)).collect();
        assert_eq!(first, [false, false, true, false, false, true]);
        assert!((0..9).all(|_| !dropped(0, false)));
        assert!(!dropped(1, true), "another flow has its own count");
    }
}
