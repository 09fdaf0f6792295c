//! Measurements of our base station in the standard's terms: layer 2 measures from counters (TS 36.314), and measurement reports of
//! users.
//!
//! Counters are cumulative; a measure is the difference of two readings. All our traffic is without a guaranteed bit rate.

use ranpace_phy::Both;
use ranpace_units::Span;

use super::measured::{self, MeasRepUe, Trigger};
use super::{AssociateId, Ecgi, L2MeasCellInfo, L2MeasCellUEInfo, L2MeasCellUe, TimeStamp};
use crate::{ReferenceSignal, Traffic};

impl Traffic {
    /// Traffic since an earlier reading; zero if the counters restarted.
    fn since(self, before: Self) -> Self {
        Self {
            offered: self.offered.saturating_sub(before.offered),
            discarded: self.discarded.saturating_sub(before.discarded),
            delivered: self.delivered - before.delivered,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            discarded: self.discarded + other.discarded,
            delivered: self.delivered + other.delivered,
        }
    }

    /// In whole percent; TS 36.314, 4.1.5.1. `None` if nothing was offered.
    fn discarded_percent(self) -> Option<u32> {
        let share = 100.0 * self.discarded as f64 / self.offered as f64;
        (self.offered > 0).then(|| libm::round(share.min(100.0)) as u32)
    }

    fn kbit(self) -> u32 {
        u32::try_from(self.delivered.get() / 125).unwrap_or(u32::MAX)
    }
}

impl L2MeasCellInfo {
    /// Adds the share of packets discarded between two readings; each item holds a user's counters before and after.
    #[must_use]
    pub fn with_discards(self, users: impl IntoIterator<Item = (Both<Traffic>, Both<Traffic>)>) -> Self {
        let mut all = Both::<Traffic>::default();
        for (before, now) in users {
            all = Both {
                downlink: all.downlink.and(now.downlink.since(before.downlink)),
                uplink: all.uplink.and(now.uplink.since(before.uplink)),
            };
        }
        Self {
            dl_nongbr_pdr_cell: all.downlink.discarded_percent(),
            ul_nongbr_pdr_cell: all.uplink.discarded_percent(),
            ..self
        }
    }
}

impl L2MeasCellUe {
    /// A user's measures between two readings of its counters, `time` apart. Throughput is over the whole interval, idle parts
    /// included. Packet delay is not measured.
    pub fn of(
        associate_id: AssociateId,
        ecgi: Ecgi,
        apart: Span,
        before: Both<Traffic>,
        now: Both<Traffic>,
    ) -> Self {
        let (down, up) = (now.downlink.since(before.downlink), now.uplink.since(before.uplink));
        let seconds = apart.as_secs_f64();
        let kbit_s = |of: Traffic| (seconds > 0.0).then(|| (of.delivered.as_f64() * 8e-3 / seconds) as u32);
        let info = L2MeasCellUEInfo {
            ecgi: Some(ecgi),
            dl_nongbr_data_volume_ue: Some(down.kbit()),
            dl_nongbr_pdr_ue: down.discarded_percent(),
            dl_nongbr_throughput_ue: kbit_s(down),
            ul_nongbr_data_volume_ue: Some(up.kbit()),
            ul_nongbr_pdr_ue: up.discarded_percent(),
            ul_nongbr_throughput_ue: kbit_s(up),
            dl_gbr_data_volume_ue: Some(0),
            ul_gbr_data_volume_ue: Some(0),
            ..L2MeasCellUEInfo::default()
        };
        Self { associate_id, info }
    }
}

impl ReferenceSignal {
    /// The periodic report of an LTE user.
    pub fn report(&self, associate_id: Vec<AssociateId>, ecgi: Ecgi, used: f64, at: TimeStamp) -> MeasRepUe {
        MeasRepUe {
            ecgi,
            rsrp: measured::rsrp(self.rsrp_dbm),
            rsrq: measured::rsrq(self.rsrq_db(used)),
            trigger: Trigger::Periodical,
            height_ue: None,
            rsrp_ex: None,
            rsrq_ex: None,
            sinr: Some(measured::sinr(self.sinr_db())),
            time_stamp: Some(at),
            associate_id,
            carrier_aggregation_meas_info: Vec::new(),
            eutran_neighbour_cell_meas_info: Vec::new(),
            new_radio_meas_info: Vec::new(),
            new_radio_meas_nei_info: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use ranpace_units::Bytes;
    use serde_json::json;

    use super::super::{IdType, L2Meas, Notification, Plmn};
    use super::*;

    fn ecgi() -> Ecgi {
        Ecgi { cell_id: "0000001".to_owned(), plmn: Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() } }
    }

    fn phone() -> AssociateId {
        AssociateId { id_type: IdType::UeIpv4, value: "10.0.0.1".to_owned() }
    }

    fn traffic(offered: u64, discarded: u64, bytes: u64) -> Traffic {
        Traffic { offered, discarded, delivered: Bytes::new(bytes) }
    }

    #[test]
    fn measures_are_of_the_time_between_two_looks() {
        let before = Both { downlink: traffic(100, 10, 1_000_000), uplink: traffic(50, 0, 2_000) };
        let now = Both { downlink: traffic(300, 15, 2_250_000), uplink: traffic(50, 0, 2_000) };
        let user = L2MeasCellUe::of(phone(), ecgi(), Span::from_secs(2), before, now);
        let used = Both { downlink: 20.0, uplink: 0.2 };
        let cell = L2MeasCellInfo::of(ecgi(), 25, used, Both { downlink: 1, uplink: 1 })
            .with_discards([(before, now)]);
        let all = L2Meas {
            cell_info: vec![cell],
            cell_ue_info: vec![user],
            time_stamp: Some(TimeStamp { seconds: 1, nano_seconds: 0 }),
        };
        let cell_is = json!({ "cellId": "0000001", "plmn": { "mcc": "001", "mnc": "01" } });
        // 1.25 MB in 2 s; 5 of 200 packets.
        let expected = json!({
            "cellInfo": [{
                "ecgi": cell_is,
                "dl_gbr_prb_usage_cell": 0, "ul_gbr_prb_usage_cell": 0,
                "dl_nongbr_prb_usage_cell": 80, "ul_nongbr_prb_usage_cell": 1,
                "dl_total_prb_usage_cell": 80, "ul_total_prb_usage_cell": 1,
                "number_of_active_ue_dl_gbr_cell": 0, "number_of_active_ue_ul_gbr_cell": 0,
                "number_of_active_ue_dl_nongbr_cell": 1, "number_of_active_ue_ul_nongbr_cell": 1,
                "dl_nongbr_pdr_cell": 3,
            }],
            "cellUEInfo": [{
                "associateId": { "type": 1, "value": "10.0.0.1" },
                "ecgi": cell_is,
                "dl_gbr_data_volume_ue": 0, "ul_gbr_data_volume_ue": 0,
                "dl_nongbr_data_volume_ue": 10_000, "ul_nongbr_data_volume_ue": 0,
                "dl_nongbr_pdr_ue": 3,
                "dl_nongbr_throughput_ue": 5_000, "ul_nongbr_throughput_ue": 0,
            }],
            "timeStamp": { "seconds": 1, "nanoSeconds": 0 },
        });
        assert_eq!(serde_json::to_value(&all).unwrap(), expected);
        // Counters that restarted measure nothing, and an empty interval has no throughput.
        let anew = L2MeasCellUe::of(phone(), ecgi(), Span::ZERO, now, before);
        assert_eq!((anew.info.dl_nongbr_data_volume_ue, anew.info.dl_nongbr_throughput_ue), (Some(0), None));
    }

    #[test]
    fn a_report_is_in_the_steps_of_the_standard() {
        let signal = ReferenceSignal { rsrp_dbm: -95.5, noise_dbm: -115.5 };
        let at = TimeStamp { seconds: 5, nano_seconds: 0 };
        let report = Notification::MeasRepUe(Box::new(signal.report(vec![phone()], ecgi(), 1.0, at)));
        let expected = json!({
            "notificationType": "MeasRepUeNotification",
            "ecgi": { "cellId": "0000001", "plmn": { "mcc": "001", "mnc": "01" } },
            "associateId": [{ "type": 1, "value": "10.0.0.1" }],
            // -96 to -95 dBm; -11 to -10.5 dB; 20 dB.
            "rsrp": 45, "rsrq": 18, "sinr": 87, "trigger": 1,
            "timeStamp": { "seconds": 5, "nanoSeconds": 0 },
        });
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Notification>(expected).unwrap(), report);
    }
}
