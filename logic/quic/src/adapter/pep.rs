//! What a proxy on the path says of this connection (the Lightweight PEP's digests): which packets came by there, told to the
//! control one by one. As over TCP it takes nothing off, stops no timer, declares no loss and sends nothing again: noq does not
//! even hear of it. A packet of QUIC is never sent twice under one number, so that its RTT is always known.

use ranpace_cc::{Packet, PacketOutcome, PepReport};
use ranpace_units::{Bytes, Span, Time};

use super::Control;

/// A proxy's view of the connection, in the order of sending as [`crate::Departure::number`] counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct PepView<'a> {
    /// Packets that it has newly seen.
    pub seen: &'a [u64],
    /// Packets that were lost before it.
    pub missing: &'a [u64],
    /// When the newest one seen was sent, if it is new.
    pub newest_sent_at: Option<Time>,
    /// From the newest packet's arrival at the proxy to the report.
    pub hold: Span,
    /// Packets with an ECN mark that it counted.
    pub marked: Option<u64>,
    /// Its counting began anew.
    pub new_epoch: bool,
}

impl Control {
    /// A proxy's view. Packets that are settled are not told again.
    pub fn on_pep_view(&self, now: Time, view: &PepView<'_>) {
        let mut core = self.core();
        let core = &mut *core;
        core.settle(None);
        if !core.started {
            return;
        }
        core.now = now;
        let cx = core.context(now);
        let (mut seen, mut missing) = (0, 0);
        let came = view.seen.iter().map(|number| (*number, true));
        let fates = came.chain(view.missing.iter().map(|number| (*number, false)));
        for (number, came) in fates {
            let Some(record) = core.records.open(number) else { continue };
            let fate =
                if came { PacketOutcome::Seen { rtt: now - record.sent_at } } else { PacketOutcome::Missing };
            seen += if came { u64::from(record.bytes) } else { 0 };
            missing += u64::from(!came);
            if core.wants_packets {
                let bytes = Bytes::new(u64::from(record.bytes));
                let packet = Packet { number, bytes, sent_at: record.sent_at, fate };
                core.control.on_packet(&cx, &mut core.window, &packet);
            }
        }
        let rtt = view.newest_sent_at.map(|sent_at| now - sent_at - view.hold);
        let report = PepReport {
            seen: Bytes::new(seen),
            rtt: rtt.filter(|rtt| !rtt.is_zero()),
            missing,
            marked: view.marked,
            new_epoch: view.new_epoch,
        };
        core.control.on_pep(&cx, &mut core.window, &report);
    }
}
