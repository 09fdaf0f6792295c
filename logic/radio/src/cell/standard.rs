//! Measurements of a user for the standard's interface: reference signals and traffic counters.

use ranpace_link::Packet;
use ranpace_phy::{Both, Direction};
use ranpace_rnis::{ReferenceSignal, Traffic};
use ranpace_units::Time;

use super::Cell;
use crate::channel::Average;

/// Resource elements of a PRB in one symbol, in dB: 10 log10(12).
fn elements_db() -> f64 {
    10.0 * libm::log10(12.0)
}

impl<P: Packet> Cell<P> {
    /// The cell's reference signals as a user receives them now, from path loss, shadowing and buildings, and the noise and
    /// interference at its receiver. `None` for a user with recorded conditions, and if there is no such user. The look has no side
    /// effects.
    pub fn reference_signal(&mut self, now: Time, user: u32) -> Option<ReferenceSignal> {
        let member = self.members.get_mut(user as usize).and_then(Option::as_mut)?;
        let channel = &mut member.channel.downlink;
        let site = &channel.site;
        if !matches!(site.average, Average::Distance { .. }) {
            return None;
        }
        let look = channel.path.look(site, &mut member.mobility, now, &mut []);
        let rsrp_dbm = site.transmitter.rsrp_dbm(look.loss_db);
        let noise_dbm = channel.path.noise_dbm(site, now) - elements_db();
        Some(ReferenceSignal { rsrp_dbm, noise_dbm })
    }

    /// Traffic through a user's bearers since it attached; `None` if there is no such user.
    pub fn traffic(&self, user: u32) -> Option<Both<Traffic>> {
        let rlc = self.rlc(user)?;
        Some(Both::of(|direction: Direction| {
            let mut all = Traffic::default();
            for bearer in rlc.bearers() {
                let counters = bearer.channel(direction).counters();
                all.offered += counters.offered.number;
                all.discarded += counters.all_dropped().number;
                all.delivered += counters.delivered.bytes;
            }
            all
        }))
    }
}

#[cfg(test)]
mod tests {
    use ranpace_phy::LteBandwidth;
    use ranpace_units::Bytes;

    use super::super::tests::{Datagram, Log, lte, standing, um};
    use super::super::{CellSubscription, Subscriber};
    use super::*;

    fn cell(metres: f64) -> Cell<Datagram> {
        let mut cell = Cell::new(0, &lte(LteBandwidth::Mhz5)).expect("the cell of the tests");
        cell.attach(Time::ZERO, Subscriber::new(0, &standing(metres, um()), 1), &mut Log::default());
        cell
    }

    #[test]
    fn reference_signals_follow_from_power_path_loss_and_noise() {
        for metres in [50.0, 400.0, 1_500.0] {
            let mut cell = cell(metres);
            let probe = cell.probe(Time::ZERO, 0).expect("it is there").downlink;
            let signal = cell.reference_signal(Time::ZERO, 0).expect("it is there");
            // 46 dBm over 25 PRBs of twelve sub-carriers: 21.23 dBm on each.
            let expected = 46.0 - 10.0 * 300_f64.log10() - probe.loss_db;
            assert!((signal.rsrp_dbm - expected).abs() < 1e-9, "{metres} m: {signal:?}");
            // -174 dBm/Hz and 9 dB over 15 kHz.
            assert!((signal.noise_dbm + 123.24).abs() < 0.01, "{signal:?}");
            // Data have the power of reference signals, and there is no fading.
            assert!((signal.sinr_db() - probe.sinr_db).abs() < 0.01, "{metres} m: {signal:?}, {probe:?}");
        }
        assert!(cell(50.0).reference_signal(Time::ZERO, 7).is_none());
    }

    #[test]
    fn traffic_is_that_of_the_bearers() {
        let (mut cell, mut log) = (cell(50.0), Log::default());
        cell.subscribe(Time::ZERO, Some(CellSubscription::EVERY_SLOT));
        // 24 Mbit/s into a cell of 18.3 Mbit/s with a buffer of 1 MB: some is discarded in the end.
        for ms in 0..3_000 {
            let now = Time::from_millis(ms);
            for _ in 0..2 {
                let packet = Datagram { id: ms, size: 1_500, sent: now };
                cell.send(now, 0, Direction::Downlink, 0, packet, &mut log);
            }
            cell.poll(now, &mut log);
        }
        let traffic = cell.traffic(0).expect("it is there");
        assert_eq!(traffic.downlink.offered, 6_000);
        assert!(traffic.downlink.discarded > 0);
        assert_eq!(traffic.downlink.discarded, log.dropped);
        assert_eq!(traffic.downlink.delivered, Bytes::new(log.bytes[0][0]));
        assert_eq!(traffic.uplink, Traffic::default());
        assert_eq!(cell.traffic(1), None);
    }
}
