//! Layer 2 measures (TS 36.314) of an interval, from the reports of its slots.
//!
//! - PRB usage (4.1.1): the share of the PRBs of the direction's symbols; a user whose bearers all have guaranteed rates counts as GBR.
//! - Active users (4.1.3): the mean number of users with data queued, rounded up.
//! - Throughput (4.1.6): bits of new transport blocks, per second of the interval, idle parts included; volume (4.1.8) likewise.
//! - Packet delay (4.1.4): the mean head-of-line delay of slots with a queue. This is the wait in RLC, without the transmissions of HARQ.
//!
//! Discarded packets and preambles are not in reports, so their measures are missing.

use ranpace_phy::{Both, Direction};
use ranpace_units::{Span, Time};

use super::{L2MeasCellInfo, L2MeasCellUEInfo};
use crate::SlotReport;

const DIRECTIONS: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

/// Sums of one cell.
#[derive(Debug, Default)]
pub struct Layer2Window {
    begun: Option<Time>,
    until: Time,
    slots: u64,
    prbs: u16,
    symbols: Both<u64>,
    used: Both<f64>,
    /// Granted to users of GBR, in PRBs times symbols.
    gbr: Both<f64>,
    /// Users with data queued, summed over the slots.
    active_gbr: Both<u64>,
    active_other: Both<u64>,
    users: Vec<UserSums>,
}

#[derive(Clone, Debug)]
struct UserSums {
    user: u32,
    gbr: bool,
    /// Bits scheduled in the interval, and the counter's last reading.
    bits: Both<(u64, u64)>,
    waited: Both<(Span, u32)>,
}

/// The measures of a cell and its users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer2 {
    /// The cell's.
    pub cell: L2MeasCellInfo,
    /// Its users', by number; without identifiers.
    pub users: Vec<(u32, L2MeasCellUEInfo)>,
    /// End of the interval.
    pub until: Time,
}

impl Layer2Window {
    /// Adds a slot. `is_gbr` says whether all bearers of a user have guaranteed rates.
    pub fn on_report(&mut self, report: &SlotReport<'_>, is_gbr: &dyn Fn(u32) -> bool) {
        self.begun.get_or_insert(report.time);
        self.until = report.time + report.cell.slot;
        self.slots += 1;
        self.prbs = report.cell.prbs;
        for way in DIRECTIONS {
            self.symbols[way] += u64::from(report.symbols[way]);
            self.used[way] += f64::from(report.used_prbs[way]) * f64::from(report.symbols[way]);
        }
        // Rows are by number in most reports, so that the next row's sums mostly come next.
        let mut place = 0;
        for row in report.users {
            if self.users.get(place).is_none_or(|sums| sums.user != row.user) {
                place = match self.users.binary_search_by_key(&row.user, |sums| sums.user) {
                    Ok(found) => found,
                    Err(gap) => {
                        let bits = Both::of(|way| {
                            let link = &row.link[way];
                            let own = link.grant.filter(|grant| !grant.again);
                            let now = own.map_or(0, |grant| u64::from(grant.block.bits()));
                            (0, link.scheduled_bits.saturating_sub(now))
                        });
                        let sums =
                            UserSums { user: row.user, gbr: is_gbr(row.user), bits, waited: Both::default() };
                        self.users.insert(gap, sums);
                        gap
                    }
                };
            }
            let sums = &mut self.users[place];
            place += 1;
            for way in DIRECTIONS {
                let link = &row.link[way];
                let (sum, last) = &mut sums.bits[way];
                // A smaller reading is that of a user that attached anew.
                *sum += link.scheduled_bits.checked_sub(*last).unwrap_or(link.scheduled_bits);
                *last = link.scheduled_bits;
                if link.queue.get() > 0 {
                    sums.waited[way].0 += link.head_of_line;
                    sums.waited[way].1 += 1;
                    let active = if sums.gbr { &mut self.active_gbr } else { &mut self.active_other };
                    active[way] += 1;
                }
                if let Some(grant) = link.grant.filter(|_| sums.gbr) {
                    self.gbr[way] += f64::from(grant.prbs) * f64::from(grant.symbols);
                }
            }
        }
    }

    /// The measures since the last call, and begins the next interval; `None` if there was no slot.
    pub fn take(&mut self) -> Option<Layer2> {
        let begun = self.begun?;
        let seconds = (self.until - begun).as_secs_f64();
        let percent = |prb_symbols: f64, way: Direction| {
            let all = f64::from(self.prbs) * self.symbols[way] as f64;
            if all > 0.0 { libm::round((100.0 * prb_symbols / all).clamp(0.0, 100.0)) as u32 } else { 0 }
        };
        let total = Both::of(|way| percent(self.used[way], way));
        let gbr = Both::of(|way| percent(self.gbr[way].min(self.used[way]), way));
        let mean = |sum: u64| u32::try_from(sum.div_ceil(self.slots.max(1))).unwrap_or(u32::MAX);
        let cell = L2MeasCellInfo {
            dl_total_prb_usage_cell: Some(total.downlink),
            ul_total_prb_usage_cell: Some(total.uplink),
            dl_gbr_prb_usage_cell: Some(gbr.downlink),
            ul_gbr_prb_usage_cell: Some(gbr.uplink),
            dl_nongbr_prb_usage_cell: Some(total.downlink - gbr.downlink.min(total.downlink)),
            ul_nongbr_prb_usage_cell: Some(total.uplink - gbr.uplink.min(total.uplink)),
            number_of_active_ue_dl_gbr_cell: Some(mean(self.active_gbr.downlink)),
            number_of_active_ue_ul_gbr_cell: Some(mean(self.active_gbr.uplink)),
            number_of_active_ue_dl_nongbr_cell: Some(mean(self.active_other.downlink)),
            number_of_active_ue_ul_nongbr_cell: Some(mean(self.active_other.uplink)),
            ..L2MeasCellInfo::default()
        };
        let users = self.users.iter().map(|sums| (sums.user, sums.measures(seconds))).collect();
        let until = self.until;
        let old = std::mem::take(self);
        // The counters of users that stay continue.
        self.users = old.users;
        for sums in &mut self.users {
            sums.waited = Both::default();
            for way in DIRECTIONS {
                sums.bits[way].0 = 0;
            }
        }
        Some(Layer2 { cell, users, until })
    }

    /// When the interval began.
    pub fn begun(&self) -> Option<Time> {
        self.begun
    }

    /// A user has left the cell.
    pub fn forget(&mut self, user: u32) {
        self.users.retain(|sums| sums.user != user);
    }

    /// The bearers of a user have changed.
    pub fn set_gbr(&mut self, user: u32, gbr: bool) {
        self.users.iter_mut().filter(|sums| sums.user == user).for_each(|sums| sums.gbr = gbr);
    }
}

impl UserSums {
    fn measures(&self, seconds: f64) -> L2MeasCellUEInfo {
        let bits = self.bits.map(|(sum, _)| sum);
        let kbit = |bits: u64| Some(u32::try_from(bits / 1000).unwrap_or(u32::MAX));
        let kbit_s = |bits: u64| (seconds > 0.0).then(|| (bits as f64 * 1e-3 / seconds) as u32);
        let ms = |(sum, count): (Span, u32)| {
            (count > 0).then(|| (sum.as_secs_f64() * 1e3 / f64::from(count)) as u32)
        };
        let mut info = L2MeasCellUEInfo {
            dl_gbr_data_volume_ue: Some(0),
            ul_gbr_data_volume_ue: Some(0),
            dl_gbr_throughput_ue: Some(0),
            ul_gbr_throughput_ue: Some(0),
            dl_nongbr_data_volume_ue: Some(0),
            ul_nongbr_data_volume_ue: Some(0),
            dl_nongbr_throughput_ue: Some(0),
            ul_nongbr_throughput_ue: Some(0),
            ..L2MeasCellUEInfo::default()
        };
        if self.gbr {
            (info.dl_gbr_data_volume_ue, info.ul_gbr_data_volume_ue) =
                (kbit(bits.downlink), kbit(bits.uplink));
            (info.dl_gbr_throughput_ue, info.ul_gbr_throughput_ue) =
                (kbit_s(bits.downlink), kbit_s(bits.uplink));
            (info.dl_gbr_delay_ue, info.ul_gbr_delay_ue) = (ms(self.waited.downlink), ms(self.waited.uplink));
        } else {
            (info.dl_nongbr_data_volume_ue, info.ul_nongbr_data_volume_ue) =
                (kbit(bits.downlink), kbit(bits.uplink));
            (info.dl_nongbr_throughput_ue, info.ul_nongbr_throughput_ue) =
                (kbit_s(bits.downlink), kbit_s(bits.uplink));
            (info.dl_nongbr_delay_ue, info.ul_nongbr_delay_ue) =
                (ms(self.waited.downlink), ms(self.waited.uplink));
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use ranpace_phy::{Cqi, LteBandwidth, TransportBlock};
    use ranpace_units::Bytes;

    use super::*;
    use crate::{CellInfo, Grant, LinkReport, UserReport};

    /// User 1 has a guaranteed rate. In each slot user 0 gets 10 PRBs and 8000 bits, user 1 5 PRBs and 1000 bits; user 2 is idle.
    fn play(window: &mut Layer2Window, slots: core::ops::Range<u64>) {
        let info = CellInfo::lte(0, LteBandwidth::Mhz5);
        for slot in slots {
            let row = |user: u32, prbs: u16, bytes: u32, queue: u64| {
                let grant = (prbs > 0).then(|| Grant {
                    mcs: 10,
                    prbs,
                    symbols: 14,
                    block: TransportBlock::from_bytes(bytes),
                    padding: Bytes::ZERO,
                    process: 0,
                    again: false,
                });
                let link = LinkReport {
                    grant,
                    queue: Bytes::new(queue),
                    head_of_line: Span::from_millis(20),
                    scheduled_bits: u64::from(bytes) * 8 * (slot + 1),
                    ..LinkReport::default()
                };
                UserReport {
                    user,
                    rnti: 1,
                    cqi: Cqi::MAX,
                    cqi_time: Time::ZERO,
                    capacity: 1.0,
                    link: Both { downlink: link, uplink: LinkReport::default() },
                }
            };
            let users = [row(0, 10, 1000, 500), row(1, 5, 125, 500), row(2, 0, 0, 0)];
            let report = SlotReport {
                cell: &info,
                slot,
                time: Time::ZERO + Span::from_millis(slot),
                symbols: Both::of(|_| 14),
                used_prbs: Both { downlink: 15.0, uplink: 0.0 },
                active_users: Both::default(),
                users: &users,
                bearers: &[],
                full: true,
            };
            window.on_report(&report, &|user| user == 1);
        }
    }

    #[test]
    fn measures_are_of_the_interval() {
        let mut window = Layer2Window::default();
        assert_eq!(window.take(), None);
        play(&mut window, 0..100);
        let first = window.take().unwrap();
        assert_eq!(first.until, Time::ZERO + Span::from_millis(100));
        // 15, 5 and 10 of 25 PRBs.
        let cell = &first.cell;
        assert_eq!(
            (cell.dl_total_prb_usage_cell, cell.dl_gbr_prb_usage_cell, cell.dl_nongbr_prb_usage_cell),
            (Some(60), Some(20), Some(40))
        );
        assert_eq!(
            (
                cell.number_of_active_ue_dl_gbr_cell,
                cell.number_of_active_ue_dl_nongbr_cell,
                cell.ul_total_prb_usage_cell
            ),
            (Some(1), Some(1), Some(0))
        );
        for _ in 0..2 {
            let measures = if window.begun().is_none() { first.clone() } else { window.take().unwrap() };
            let of = |user: usize| &measures.users[user].1;
            // 8000 and 1000 bits in each ms; all of it counts, from the first slot on.
            assert_eq!(
                (of(0).dl_nongbr_throughput_ue, of(0).dl_nongbr_data_volume_ue),
                (Some(8_000), Some(800))
            );
            assert_eq!((of(0).dl_nongbr_delay_ue, of(0).dl_gbr_delay_ue), (Some(20), None));
            assert_eq!((of(1).dl_gbr_throughput_ue, of(1).dl_nongbr_throughput_ue), (Some(1_000), Some(0)));
            assert_eq!((of(2).dl_nongbr_throughput_ue, of(2).dl_nongbr_delay_ue), (Some(0), None));
            play(&mut window, 100..200);
        }
    }

    #[test]
    fn a_user_that_attaches_anew_keeps_what_was_counted() {
        let mut window = Layer2Window::default();
        play(&mut window, 0..10);
        play(&mut window, 0..10);
        let measures = window.take().unwrap();
        assert_eq!(measures.users[0].1.dl_nongbr_data_volume_ue, Some(160));
        window.forget(0);
        play(&mut window, 10..11);
        assert_eq!(window.take().unwrap().users.len(), 3);
    }
}
