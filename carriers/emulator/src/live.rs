//! The status that the loop shows while it runs.

use std::sync::mpsc::SyncSender;

use ranpace_network::{Moment, Transit};
use ranpace_units::{Span, Time};

use crate::packet_buffer::Part;
use crate::timeliness::Watch;

/// Interval of the status. Ours: faster than anybody reads, and negligible beside the packets.
pub const EVERY: Span = Span::from_millis(100);

/// Figures of the time between two snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Time since the beginning.
    pub at: Time,
    /// For each link, in the order of [`ranpace_network::link_names`], what its series show since the previous snapshot. Empty if
    /// there are no new rows, because the scenario's `sample` is longer.
    pub links: Vec<Moment>,
    /// Packets delivered since the beginning.
    pub packets: u64,
    /// Packets of these that were more than [`crate::LATE`] late.
    pub late_packets: u64,
    /// Share of a core that the loop used since the previous snapshot.
    pub share: f64,
}

/// Sends snapshots regularly, without ever waiting for the receiver.
#[derive(Debug)]
pub struct Live {
    to: SyncSender<Snapshot>,
    next: Time,
    last: (Time, Span),
    rows: usize,
}

impl Live {
    /// Nothing has been shown.
    pub fn new(to: SyncSender<Snapshot>) -> Self {
        Self { to, next: Time::ZERO + EVERY, last: (Time::ZERO, Span::ZERO), rows: 0 }
    }

    /// Sends a snapshot if it is due; `busy` is the loop's CPU time so far.
    #[inline]
    pub fn look(
        &mut self,
        now: Time,
        network: &Transit<'_, Part>,
        watch: &Watch,
        busy: impl FnOnce() -> Span,
    ) {
        if now >= self.next {
            self.show(now, network, watch, busy());
        }
    }

    #[cold]
    fn show(&mut self, now: Time, network: &Transit<'_, Part>, watch: &Watch, busy: Span) {
        let (at, before) = self.last;
        let rows = network.rows();
        let links = if rows > self.rows { network.lately(self.rows).collect() } else { Vec::new() };
        let (packets, late_packets) = watch.packets();
        let share = (busy - before).as_secs_f64() / (now - at).as_secs_f64().max(1e-9);
        // A slow receiver gets the next one.
        if self.to.try_send(Snapshot { at: now, links, packets, late_packets, share }).is_ok() {
            (self.last, self.rows) = ((now, busy), rows);
        }
        self.next = now + EVERY;
    }
}
