//! A control, and what its connection has sent, at one instant: for records over time.

use std::collections::BTreeMap;

use ranpace_cc::{Pacing, Window};
use serde::{Deserialize, Serialize};

use crate::adapter::{Control, Stats};

/// A control at one instant. Bytes are those of QUIC packets, header and tag included; counters count from the end of the handshake.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Size of a full packet.
    pub packet_bytes: u64,
    /// Window.
    pub cwnd_bytes: f64,
    /// Threshold of slow start; `None` while it is infinite.
    pub ssthresh_bytes: Option<f64>,
    /// Pace; `None` without one.
    pub pacing_bit_s: Option<u64>,
    /// Bytes that are not acknowledged, and not taken for lost.
    pub in_flight_bytes: u64,
    /// Smoothed RTT; `None` before the first sample.
    pub srtt_s: Option<f64>,
    /// Packets sent.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that the peer has received.
    pub acked_packets: u64,
    /// Their bytes.
    pub acked_bytes: u64,
    /// Packets taken for lost, whose content was sent again if it still mattered.
    pub lost_packets: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Episodes of recovery that losses have begun.
    pub recoveries: u64,
    /// What the control shows of itself, by name. Values that are no number now are left out.
    pub state: BTreeMap<String, f64>,
}

impl Sample {
    /// The sample of a control now.
    pub fn of(control: &Control) -> Self {
        let packet = control.packet().get();
        let Window { cwnd, ssthresh, pacing, .. } = control.window();
        let stats: Stats = control.stats();
        let srtt = control.smoothed();
        let mut state = BTreeMap::new();
        control.inspect(&mut |name, value| {
            if value.is_finite() {
                state.insert(name.to_owned(), value);
            }
        });
        Self {
            packet_bytes: packet,
            cwnd_bytes: cwnd * packet as f64,
            ssthresh_bytes: (ssthresh.is_finite() && ssthresh < ENDLESS).then_some(ssthresh * packet as f64),
            pacing_bit_s: match pacing {
                Pacing::Rate(rate) => Some(rate.bits_per_s()),
                Pacing::Unlimited => None,
            },
            in_flight_bytes: control.in_flight().get(),
            srtt_s: (!srtt.is_zero()).then(|| srtt.as_secs_f64()),
            sent_packets: stats.sent,
            sent_bytes: stats.sent_bytes.get(),
            acked_packets: stats.acked,
            acked_bytes: stats.acked_bytes.get(),
            lost_packets: stats.lost,
            lost_bytes: stats.lost_bytes.get(),
            recoveries: stats.recoveries,
            state,
        }
    }
}

/// A threshold of so many packets is none. Ours.
const ENDLESS: f64 = 1e9;
