//! Reports of a proxy on the path (a Lightweight PEP's digests) about which packets of this connection have passed it,
//! forwarded to the control one by one. As over TCP, a report removes nothing, stops no timer, declares no loss and
//! retransmits nothing: noq is not involved. QUIC never reuses a packet number, so the RTT of a packet is always unambiguous.

use ranpace_cc::{Packet, PacketOutcome, PepReport};
use ranpace_units::{Bytes, Span, Time};

use super::Control;

/// A proxy's view of the connection, by the order of sending that [`crate::Departure::number`] counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct PepView<'a> {
    /// Packets that the proxy has newly seen.
    pub seen: &'a [u64],
    /// Packets lost before the proxy.
    pub missing: &'a [u64],
    /// When the newest packet seen was sent, if it is newly seen.
    pub newest_sent_at: Option<Time>,
    /// Time from the newest packet's arrival at the proxy to the report.
    pub hold: Span,
    /// ECN-marked packets that the proxy has counted.
    pub marked: Option<u64>,
    /// The proxy has restarted its counting.
    pub new_epoch: bool,
}

impl Control {
    /// Processes a proxy's view. Settled packets are not reported again.
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
                let sending = record.sending(core.lost);
                let packet = Packet { number, bytes, sent_at: record.sent_at, sending, fate };
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
