//! PBE-CC without a decoder: the sender has its capacity from the radio information of the edge (`source=edge`).
//!
//! Source: ours. The specification of comparators, section 3, names the edge's hints as another source of what equation (2) needs. Everything
//! that the device does is done at the sender: equations (1) to (3), the ramp, and the delay test. What it would report is handed to the sender's
//! half, behind the same guard, as if it had come with the acknowledgement.
//!
//! What the hints do not have, and what is used instead (ours):
//!
//! * *TBER*: they do not say which blocks are retransmissions, so that block errors are computed from a bit error rate; `tber=measured` is
//!   refused.
//! * *N*: they count everyone with a grant in the last 100 ms, and do not tell who had more than one TTI, or more than four PRBs. Users
//!   that fetch control information alone count, too, so that the fair share is smaller than the device's in a cell that has such users.
//! * *R_w* is the rate of the MCS of the user's last grant. Before its first one there is no capacity.
//! * The one-way delay is that of TCP's timestamps, which includes the receiver's delay of the acknowledgement; without them (QUIC) the RTT
//!   takes its place.
//! * A hint is used for three periods, at least 100 ms.

use ranpace_phy::Direction;
use ranpace_units::{Span, Time};

use super::cell::Capacity;
use super::client::{PbeClient, STALE};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, Packet, PacketOutcome, RadioHint, Received,
    ReceiverHalf as _, Window,
};
use crate::radio::modem::{Average, Inputs, Means, PMaxRule};

/// Longest period of hints: with rarer ones there is no capacity in between. Ours.
const LONGEST_PERIOD: Span = Span::from_secs(1);

/// The sender with what the device would measure, in front of the control that follows its reports.
#[derive(Debug)]
pub(super) struct EdgePbe {
    follower: Box<dyn CongestionControl>,
    estimator: PbeClient,
    inputs: Inputs,
    /// Interval between the last two hints.
    period: Span,
}

/// Equations (1) and (2): means per TTI of PRBs, as the edge's hints have them.
fn capacity(means: &Means, tti: Span) -> Capacity {
    let (whole, users) = (means.whole.as_f64(), f64::from(means.users.max(1)));
    let physical = whole * ((means.own + means.unused / users) / means.cell.max(1.0)).min(1.0);
    Capacity {
        fair: whole / users,
        physical,
        block: physical * tti.as_secs_f64(),
        again: 0.0,
        users: means.users.into(),
    }
}

impl EdgePbe {
    pub(super) fn new(follower: Box<dyn CongestionControl>, estimator: PbeClient) -> Self {
        Self {
            follower,
            estimator,
            inputs: Inputs::new(Direction::Downlink, PMaxRule::Reachable, Average::Window, 1.0, 1.0),
            period: Span::ZERO,
        }
    }

    fn stale(&self) -> Span {
        STALE.max(self.period * 3)
    }

    fn note_period(&mut self, before: Option<(Time, u16)>) {
        if let (Some((before, _)), Some((at, _))) = (before, self.inputs.last()) {
            let gap = at - before;
            // A pause of the feed is no period.
            if self.period.is_zero() || gap <= self.stale() {
                self.period = gap.min(LONGEST_PERIOD);
            }
        }
    }
}

impl CongestionControl for EdgePbe {
    fn inner(&self) -> Option<&dyn CongestionControl> {
        Some(self.follower.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        Some(self.follower.as_mut())
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        if let PacketOutcome::Acked { rtt, one_way } = packet.fate {
            self.estimator.on_data(&Received {
                now: cx.now,
                number: None,
                bytes: packet.bytes,
                wire: packet.bytes + (cx.wire - cx.mss),
                sent_at: cx.now - one_way.unwrap_or(rtt),
                time_to_next: Span::ZERO,
                rtt: Some(rtt),
            });
        }
        self.follower.on_packet(cx, w, packet);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.follower.on_congestion(cx, w, event)
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if let Some(report) = self.estimator.report(cx.now) {
            self.follower.on_report(cx, w, &report);
        }
        self.follower.on_ack(cx, w, ack);
    }

    fn wants_radio(&self) -> bool {
        true
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        let (before, stale) = (self.inputs.last(), self.stale());
        // Its mean is over half of what it takes for an RTT.
        let window = self.estimator.length() * 2;
        if let Some(moved) = self.inputs.on_hint(cx.now, hint, window, stale) {
            self.note_period(before);
            if moved {
                self.estimator.restart(cx.now);
            }
            let capacity = self.inputs.means().map(|means| capacity(&means, hint.tti));
            let measured_at = hint.measured_at.min(cx.now);
            self.estimator.on_capacity(cx.now, &hint.info, measured_at, self.stale(), capacity);
        }
        self.follower.on_radio(cx, w, hint);
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.estimator.restart(cx.now);
        self.follower.on_path_change(cx, w);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.follower.inspect(show);
        self.estimator.inspect(show);
    }
}
