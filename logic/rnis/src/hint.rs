//! Radio information about the user behind a connection, as a mechanism receives it.

use ranpace_phy::{Direction, TransportBlock};
use ranpace_units::{Bytes, Rate, Span, Time};

use crate::CellInfo;

/// Radio information about the user behind a connection, in one direction: a hint that may be missing, stale or false.
///
/// Resources are counted in PRBs per TTI; where a cell allocates symbols, a grant of some of them counts in proportion, so that
/// `cell` is the total in every technology.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioHint {
    /// When it was measured, not when it arrived.
    pub measured_at: Time,
    /// The cell that serves the user.
    pub info: CellInfo,
    /// Scheduling interval.
    pub tti: Span,
    /// Largest transport block of the reporting period, in bits; `None` if none was scheduled in it.
    pub tbs_bits: Option<u32>,
    /// PRBs granted to the user per TTI, mean of the reporting period.
    pub granted: f64,
    /// Most PRBs granted to the user in one TTI of the reporting period.
    pub most_granted: u16,
    /// PRBs of the cell per TTI.
    pub cell: u16,
    /// Unused PRBs per TTI, mean of the reporting period.
    pub unused: f64,
    /// Users with a grant in the last 100 ms.
    pub active_users: u16,
    /// CQI, 0 to 15, if one was measured in the reporting period.
    pub cqi: Option<u8>,
    /// MCS index of the last grant, 0 before there was one; see [`Technology`](crate::Technology).
    pub mcs: u8,
    /// Spatial layers of a grant.
    pub layers: u8,
    /// RLC transmit queue of the flow's bearer; of the whole user if the flow's is not known; in the uplink as known to the base
    /// station, unless the device itself reports it.
    pub queue: Bytes,
    /// Limit of that queue, if known.
    pub queue_limit: Option<Bytes>,
    /// A handover of the user is in progress.
    pub handover: bool,
    /// Rate of the traffic that the device sends before this connection's data (real-time UDP), mean of a second; zero if there is
    /// none or it is unknown.
    pub ahead: Rate,
}

impl RadioHint {
    /// A hint about a user of which only the cell is known.
    pub fn of(info: CellInfo, measured_at: Time) -> Self {
        Self {
            measured_at,
            tti: info.slot,
            cell: info.prbs,
            tbs_bits: None,
            granted: 0.0,
            most_granted: 0,
            unused: 0.0,
            active_users: 0,
            cqi: None,
            mcs: 0,
            layers: info.layers,
            queue: Bytes::ZERO,
            queue_limit: None,
            handover: false,
            ahead: Rate::ZERO,
            info,
        }
    }

    /// The transport block of a grant of `units` PRBs (parts of the band, where symbols are allocated) in one full slot of this
    /// direction, with the MCS and layers of the last grant; see [`CellInfo::block`].
    pub fn block(&self, direction: Direction, units: f64) -> TransportBlock {
        self.info.block(direction, self.mcs, self.layers, units)
    }

    /// The mean rate of such grants in every slot of this direction; see [`CellInfo::rate`].
    pub fn rate(&self, direction: Direction, units: f64) -> Rate {
        self.info.rate(direction, self.mcs, self.layers, units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Technology;
    use ranpace_phy::{Both, LteBandwidth};
    use ranpace_units::Span;

    fn hint(info: CellInfo, mcs: u8) -> RadioHint {
        RadioHint { mcs, ..RadioHint::of(info, Time::ZERO) }
    }

    const fn bit_s(rate: u64) -> Rate {
        Rate::from_bits_per_s(rate)
    }

    /// A cell that allocates 23 symbols of its one wide PRB, as in the millimetre-wave experiments.
    fn mmwave() -> CellInfo {
        CellInfo {
            technology: Technology::Mmwave,
            prbs: 1,
            slot: Span::from_micros(100),
            symbols: 24,
            fdd: false,
            share: Both::of(|_| 23.0 / 24.0),
            data_symbols: Both::of(|_| 23),
            shared: true,
            by_symbols: true,
            ..CellInfo::lte(0, LteBandwidth::Mhz5)
        }
    }

    #[test]
    fn an_uplink_grant_of_lte_has_a_legal_size() {
        // The worked example of SIGMA's specification: MCS 23 on 70 PRBs of 100, of which 64 can be granted.
        let hint = hint(CellInfo::lte(0, LteBandwidth::Mhz20), 23);
        assert_eq!(hint.block(Direction::Uplink, 70.0).bits(), 31_704);
        assert_eq!(hint.rate(Direction::Uplink, 70.0), bit_s(31_704_000));
        // In the downlink any number can be granted; MCS 28 on all of them is 75.376 Mbit/s (TS 36.213).
        let best = RadioHint { mcs: 28, ..hint };
        assert_eq!(best.rate(Direction::Downlink, 100.0), bit_s(75_376_000));
        assert_eq!(best.rate(Direction::Downlink, 1e9), bit_s(75_376_000), "not more than there are");
        let two = RadioHint { layers: 2, ..best };
        assert_eq!(two.rate(Direction::Downlink, 100.0), bit_s(2 * 75_376_000));
    }

    #[test]
    fn the_share_of_slots_counts() {
        let lte = CellInfo::lte(0, LteBandwidth::Mhz20);
        // RAPID's testbed: 18.336 Mbit/s by Eq. 5.3, whatever the network delivers of it (16 Mbit/s, Table 5.3).
        let usable =
            CellInfo { usable: Both { downlink: 0.87, uplink: 1.0 }, ..CellInfo::lte(0, LteBandwidth::Mhz5) };
        assert_eq!(hint(usable, 28).rate(Direction::Downlink, 25.0), bit_s(18_336_000));
        // One slot in five is the uplink's.
        let tdd = CellInfo { fdd: false, share: Both { downlink: 0.75, uplink: 0.25 }, ..lte };
        assert_eq!(hint(tdd, 23).rate(Direction::Uplink, 64.0), bit_s(31_704_000 / 4));
    }

    #[test]
    fn rates_of_whole_counts_are_those_of_as_many_resources() {
        let lte = CellInfo::lte(0, LteBandwidth::Mhz20);
        for (info, mcs, of_one) in [(lte, 23, 1.0), (mmwave(), 15, 1.0 / 23.0)] {
            let rates: Vec<Rate> = info.rates(Direction::Uplink, mcs, 1).collect();
            assert_eq!(rates.len(), if info.by_symbols { 24 } else { 101 });
            for (count, rate) in (0..).zip(rates) {
                assert_eq!(rate, info.rate(Direction::Uplink, mcs, 1, f64::from(count) * of_one), "{count}");
            }
        }
    }

    #[test]
    fn millimetre_waves_have_their_rate_and_parts_of_it() {
        // 11 352 bytes in 100 us with all symbols at the best CQI: 908.16 Mbit/s.
        let hint = hint(mmwave(), 15);
        assert_eq!(hint.block(Direction::Uplink, 1.0).bytes(), Bytes::new(11_352));
        assert_eq!(hint.rate(Direction::Uplink, 1.0), bit_s(908_160_000));
        let of = |symbols: f64| hint.rate(Direction::Downlink, symbols / 23.0).as_f64();
        let half = (of(6.0) + of(7.0)) / 2.0;
        assert!((of(6.5) - half).abs() < 2.0, "between whole symbols it rises evenly");
        assert_eq!(hint.block(Direction::Downlink, 0.9 / 23.0).bits(), 0);
    }

    #[test]
    fn what_makes_no_sense_carries_nothing() {
        for info in [CellInfo::lte(0, LteBandwidth::Mhz5), mmwave()] {
            for units in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
                assert_eq!(hint(info, 5).rate(Direction::Downlink, units), Rate::ZERO, "{units}");
            }
        }
        assert_eq!(hint(CellInfo::lte(0, LteBandwidth::Mhz5), 31).block(Direction::Downlink, 9.0).bits(), 0);
        let empty = CellInfo { slot: Span::ZERO, share: Both::of(|_| f64::NAN), prbs: 0, ..mmwave() };
        hint(empty, 5).rate(Direction::Uplink, 5.0);
    }
}
