//! Devices that send real-time UDP first: which bearer a packet takes there.
//!
//! The bands of [`RealTimeFirst`] are bearers. Such a device has one bearer more, before its others, because a modem serves bearers in
//! order of priority. Only real-time packets of the uplink take it; the bearers of flows are numbered one higher. The additional bearer
//! is configured as the first of the others, but unacknowledged (as for voice; TS 23.107 clause 6.4.4.1).

use std::borrow::Cow;

use ranpace_phy::Direction;
use ranpace_radio::cell::UserConfig;
use ranpace_radio::rlc::Mode;
use ranpace_radio::uplink::{Band, RealTimeFirst, UplinkPacket};
use ranpace_scenario::{Scenario, Transport, UserSpec};
use ranpace_units::{Rate, Span, Time};

use crate::packet::PacketHandle;

/// The modem's rate is valid for this long. Ours: one or two CQI periods.
const KNOWN_FOR: Span = Span::from_millis(10);

/// The bands of one device.
#[derive(Debug)]
pub(crate) struct Device {
    bands: RealTimeFirst,
    /// When the modem was last asked for its rate.
    asked: Option<Time>,
}

/// The cell's configuration of a user: the scenario's, plus one bearer if it has bands.
pub(crate) fn with_bearer(user: &UserSpec) -> Cow<'_, UserConfig> {
    if !user.real_time_first {
        return Cow::Borrowed(&user.config);
    }
    let mut config = user.config.clone();
    if let Some(mut bearer) = config.bearers.first().cloned() {
        (bearer.downlink.mode, bearer.uplink.mode) = (Mode::Unacknowledged, Mode::Unacknowledged);
        config.bearers.insert(0, bearer);
    }
    Cow::Owned(config)
}

impl Device {
    /// The bands of each user that has them.
    pub fn all(scenario: &Scenario) -> Vec<Option<Self>> {
        let new = || Self { bands: RealTimeFirst::new(), asked: None };
        scenario.users.iter().map(|user| user.real_time_first.then(new)).collect()
    }

    /// The bearer of a packet whose flow has `bearer`; `capacity` asks the modem what it could send.
    pub fn bearer(
        &mut self,
        now: Time,
        scenario: &Scenario,
        (direction, bearer, packet): (Direction, u8, PacketHandle),
        capacity: impl FnOnce() -> Rate,
    ) -> u8 {
        let transport = scenario.flows.get(packet.flow() as usize).map(|flow| &flow.transport);
        let is_udp = match transport {
            Some(Transport::Udp { .. } | Transport::Datagram { .. }) => true,
            // QUIC is identified by its header.
            _ => false,
        };
        if direction == Direction::Downlink || !is_udp {
            return bearer.saturating_add(1);
        }
        if self.asked.is_none_or(|at| now.since(at) >= KNOWN_FOR) {
            self.asked = Some(now);
            self.bands.set_capacity(now, capacity());
        }
        let bytes = ranpace_units::Bytes::new(packet.wire().into());
        let offered = UplinkPacket { flow: packet.flow(), bytes, dscp: 0, is_udp, is_quic: false };
        match self.bands.choose(now, &offered) {
            Band::RealTime => 0,
            Band::Rest => bearer.saturating_add(1),
        }
    }

    /// Rate of the prioritised traffic.
    pub fn rate(&mut self, now: Time) -> Rate {
        self.bands.rate(now)
    }
}
