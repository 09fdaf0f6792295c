//! Measurement reports of users (LTE and NR), timing advance, and changes of the carriers of a user.
//!
//! RSRP, RSRQ, SINR and timing advance are not in dBm, dB and seconds but in the steps of TS 36.133: [`rsrp`], [`rsrq`], [`sinr`]
//! and [`timing_advance`] convert them. NR's are those of TS 38.133.

use ranpace_units::Span;

use super::object::{number, object};
use super::{AssociateId, Ecgi, Plmn, TimeStamp};

/// RSRP of LTE in steps of 1 dB: 0 is below -140 dBm, 97 is -44 dBm and more; TS 36.133, table 9.1.4-1. NaN is 0.
pub fn rsrp(dbm: f64) -> i32 {
    steps(dbm + 141.0, 97)
}

/// RSRQ of LTE in steps of 0.5 dB: 0 is below -19.5 dB, 34 is -3 dB and more; TS 36.133, table 9.1.7-1. NaN is 0.
pub fn rsrq(db: f64) -> i32 {
    steps(2.0 * (db + 20.0), 34)
}

/// SINR in steps of 0.5 dB: 0 is below -23 dB, 127 is 40 dB and more; TS 36.133, 9.1.17 (RS-SINR), and TS 38.133,
/// table 10.1.16.1-1. NaN is 0.
pub fn sinr(db: f64) -> i32 {
    steps(2.0 * (db + 23.5), 127)
}

/// Timing advance in steps of 2 Ts, above 4096 Ts of 8 Ts, at most 7690; TS 36.133's mapping of T_ADV. Ts is 1 s / 30 720 000.
pub fn timing_advance(round_trip: Span) -> i32 {
    let units = u128::from(round_trip.as_nanos()) * 30_720_000 / 1_000_000_000;
    let steps = if units < 4_096 { units / 2 } else { 2_048 + (units - 4_096) / 8 };
    steps.min(7_690) as i32
}

fn steps(value: f64, most: i32) -> i32 {
    // A cast maps NaN to 0 and saturates.
    (libm::floor(value) as i32).clamp(0, most)
}

number! {
    /// Trigger of a report in LTE; TS 36.331. The standard assigns two numbers, 20 and 21, to two events each.
    Trigger, "a trigger of TS 36.331" {
        /// Not known.
        NotAvailable = 0,
        /// Periodically, the strongest cells.
        Periodical = 1,
        /// The same, for self-organising networks.
        PeriodicalForSon = 2,
        /// Periodically, a cell's global identity.
        PeriodicalCgi = 3,
        /// Periodically, the strongest cells of the same frequency.
        IntraPeriodical = 4,
        /// Periodically, the global identity of a cell of the same frequency.
        IntraPeriodicalCgi = 5,
        /// The serving cell is better than a threshold.
        A1 = 10,
        /// The serving cell is worse than a threshold.
        A2 = 11,
        /// A neighbour is better than the primary cell by an offset.
        A3 = 12,
        /// A neighbour is better than a threshold.
        A4 = 13,
        /// The primary cell is worse than a threshold and a neighbour better than another.
        A5 = 14,
        /// A neighbour is better than a secondary cell by an offset.
        A6 = 15,
        /// A cell of another technology is better than a threshold (B1, B1-NR).
        B1 = 20,
        /// The primary cell is worse than a threshold, one of another technology better than another (B2, B2-NR).
        B2 = 21,
        /// A CSI-RS resource is better than a threshold.
        C1 = 30,
        /// A CSI-RS resource is better than a reference by an offset.
        C2 = 31,
        /// A WLAN becomes better than a threshold.
        W1 = 40,
        /// All WLAN inside a set become worse than a threshold, and one outside better than another.
        W2 = 41,
        /// All WLAN inside a set become worse than a threshold.
        W3 = 42,
        /// The channel is busier than a threshold.
        V1 = 50,
        /// The channel is less busy than a threshold.
        V2 = 51,
        /// The user is higher than a threshold.
        H1 = 60,
        /// The user is lower than a threshold.
        H2 = 61,
    }
}

number! {
    /// Trigger of a report in NR; TS 38.331.
    TriggerNr, "a trigger of TS 38.331" {
        /// Not known.
        NotAvailable = 0,
        /// Periodically.
        Periodical = 1,
        /// A cell's global identity.
        Cgi = 2,
        /// The serving cell is better than a threshold.
        A1 = 10,
        /// The serving cell is worse than a threshold.
        A2 = 11,
        /// A neighbour is better than the special cell by an offset.
        A3 = 12,
        /// A neighbour is better than a threshold.
        A4 = 13,
        /// The special cell is worse than a threshold and a neighbour better than another.
        A5 = 14,
        /// A neighbour is better than a secondary cell by an offset.
        A6 = 15,
        /// Periodically, of another technology.
        InterRatPeriodical = 20,
        /// Global identity of a cell of another technology.
        InterRatCgi = 21,
        /// A cell of another technology is better than a threshold.
        B1 = 30,
        /// The primary cell is worse than a threshold, one of another technology better than another.
        B2 = 31,
    }
}

object! {
    /// A carrier in carrier aggregation, and the best neighbour on it.
    CarrierAggregationMeasInfo {
        ;;
        /// Identity of the neighbour.
        cell_id_nei: String,
        /// Identity of the serving cell.
        cell_id_srv: String,
        /// RSRP of the neighbour.
        rsrp_nei: i32,
        /// The same over the extended range.
        rsrp_nei_ex: i32,
        /// RSRP of the serving cell.
        rsrp_srv: i32,
        /// The same over the extended range.
        rsrp_srv_ex: i32,
        /// RSRQ of the neighbour.
        rsrq_nei: i32,
        /// The same over the extended range.
        rsrq_nei_ex: i32,
        /// RSRQ of the serving cell.
        rsrq_srv: i32,
        /// The same over the extended range.
        rsrq_srv_ex: i32,
        /// SINR of the neighbour.
        sinr_nei: i32,
        /// SINR of the serving cell.
        sinr_srv: i32,
    }
}

object! {
    /// A neighbour in LTE.
    EutranNeighbourCellMeasInfo {
        ;;
        /// The cell.
        ecgi: Ecgi,
        /// RSRP.
        rsrp: i32,
        /// The same over the extended range.
        rsrp_ex: i32,
        /// RSRQ.
        rsrq: i32,
        /// The same over the extended range.
        rsrq_ex: i32,
        /// SINR.
        sinr: i32,
    }
}

object! {
    /// A secondary cell of NR.
    NrSCellInfo {
        ;;
        /// Its identity, 36 bits as text.
        nr_s_cell_g_id: String,
        []
        /// Its networks.
        nr_s_cell_plmn: Plmn,
    }
}

object! {
    /// Secondary cells of NR.
    NrSCs {
        /// The cells; at least one.
        nr_s_cell_info: Vec<NrSCellInfo>,
        ;;
        /// RSRP.
        nr_s_cell_rsrp: i32,
        /// RSRQ.
        nr_s_cell_rsrq: i32,
        /// SINR; the standard's name.
        nr_s_cell_rssi: i32,
    }
}

object! {
    /// The best neighbour of a secondary cell of NR.
    NrBNCellInfo {
        ;;
        /// Its identity, 36 bits as text.
        nr_b_n_cell_g_id: String,
        []
        /// Its networks.
        nr_b_n_cell_plmn: Plmn,
    }
}

object! {
    /// The best neighbours of the secondary cells of NR.
    NrBNCs {
        /// The cells; at least one.
        nr_b_n_cell_info: Vec<NrBNCellInfo>,
        ;;
        /// RSRP.
        nr_b_n_cell_rsrp: i32,
        /// RSRQ.
        nr_b_n_cell_rsrq: i32,
        /// SINR; the standard's name.
        nr_b_n_cell_rssi: i32,
    }
}

object! {
    /// A carrier of NR beside LTE.
    NewRadioMeasInfo {
        ;;
        /// Best neighbours.
        nr_b_n_cs: NrBNCs,
        /// Its frequency as ARFCN; TS 38.101.
        nr_carrier_freq: i32,
        /// Secondary cells.
        nr_s_cs: NrSCs,
    }
}

object! {
    /// A neighbour in NR.
    NrNCellInfo {
        ;;
        /// Its identity, 36 bits as text.
        nr_n_cell_g_id: String,
        []
        /// Its networks.
        nr_n_cell_plmn: Plmn,
    }
}

object! {
    /// What was measured of neighbours in NR.
    NewRadioMeasNeiInfo {
        ;;
        /// RSRP.
        nr_n_cell_rsrp: i32,
        /// RSRQ.
        nr_n_cell_rsrq: i32,
        /// SINR; the standard's name.
        nr_n_cell_rssi: i32,
        /// Beam by beam.
        rs_index_results: RsIndexResults,
        []
        /// The cells.
        nr_n_cell_info: NrNCellInfo,
    }
}

object! {
    /// Quantities of NR; TS 38.331.
    MeasQuantityResultsNr {
        ;;
        /// RSRP.
        rsrp: i32,
        /// RSRQ.
        rsrq: i32,
        /// SINR.
        sinr: i32,
    }
}

object! {
    /// One CSI-RS.
    ResultsPerCsiRsIndex {
        /// Its index.
        csi_rs_index: i32,
        ;;
        /// The measurement.
        csi_rs_results: MeasQuantityResultsNr,
    }
}

object! {
    /// CSI-RS, one by one.
    ResultsPerCsiRsIndexList {
        []
        /// The measurements.
        results_per_csi_rs_index: ResultsPerCsiRsIndex,
    }
}

object! {
    /// One SSB.
    ResultsPerSsbIndex {
        /// Its index.
        ssb_index: i32,
        ;;
        /// The measurement.
        ssb_results: MeasQuantityResultsNr,
    }
}

object! {
    /// SSB, one by one.
    ResultsPerSsbIndexList {
        []
        /// The measurements.
        results_per_ssb_index: ResultsPerSsbIndex,
    }
}

object! {
    /// Beam by beam.
    RsIndexResults {
        /// CSI-RS.
        results_csi_rs_indexes: ResultsPerCsiRsIndexList,
        /// SSB.
        results_ssb_indexes: ResultsPerSsbIndexList,
    }
}

object! {
    /// A measurement report of a user in LTE.
    MeasRepUe {
        /// Its cell.
        ecgi: Ecgi,
        /// RSRP, encoded by [`rsrp`].
        rsrp: i32,
        /// RSRQ, encoded by [`rsrq`].
        rsrq: i32,
        /// The trigger of the report.
        trigger: Trigger,
        ;;
        /// Its height in metres above sea level.
        height_ue: i32,
        /// RSRP over the extended range.
        rsrp_ex: i32,
        /// RSRQ over the extended range.
        rsrq_ex: i32,
        /// SINR, encoded by [`sinr`].
        sinr: i32,
        /// Timestamp.
        time_stamp: TimeStamp,
        []
        /// The user.
        associate_id: AssociateId,
        /// Its carriers, if it has several.
        carrier_aggregation_meas_info: CarrierAggregationMeasInfo,
        /// Neighbours.
        eutran_neighbour_cell_meas_info: EutranNeighbourCellMeasInfo,
        /// Serving carriers of NR beside LTE.
        new_radio_meas_info: NewRadioMeasInfo,
        /// Neighbours in NR.
        new_radio_meas_nei_info: NewRadioMeasNeiInfo,
    }
}

object! {
    /// A cell of NR: its global identifier.
    NRcgi {
        /// Its identity, 36 bits as text.
        nrcell_id: String,
        /// Its network.
        plmn: Plmn,
    }
}

/// The name of a neighbour in NR. The form is that of the version: see [`NrMeasRepUe::in_v2_1_1`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum NrNeighbour {
    /// Its identity, 36 bits as text, without its network: V2.1.1.
    Identity(String),
    /// Its global identifier: V2.2.1.
    Global(NRcgi),
}

object! {
    /// What was measured of a cell of NR.
    NrCellMeas {
        ;;
        /// By CSI-RS.
        meas_quantity_results_csi_rs_cell: MeasQuantityResultsNr,
        /// By SSB.
        meas_quantity_results_ssb_cell: MeasQuantityResultsNr,
        /// Beam by beam.
        rs_index_results: RsIndexResults,
    }
}

object! {
    /// A serving cell of NR and its best neighbour.
    ServCellMeasInfo {
        ;;
        /// The best neighbour.
        n_cell: NrCellMeas,
        /// The serving cell's name.
        nrcgi: NRcgi,
        /// The serving cell.
        s_cell: NrCellMeas,
    }
}

object! {
    /// A neighbour in NR.
    NrNeighCellMeasInfo {
        ;;
        /// By CSI-RS.
        meas_quantity_results_csi_rs_cell: MeasQuantityResultsNr,
        /// By SSB.
        meas_quantity_results_ssb_cell: MeasQuantityResultsNr,
        /// The cell.
        nrcgi: NrNeighbour,
        /// Beam by beam.
        rs_index_results: RsIndexResults,
    }
}

object! {
    /// A neighbour in LTE of a user in NR.
    EutraNeighCellMeasInfo {
        ;;
        /// The cell.
        ecgi: Ecgi,
        /// RSRP.
        rsrp: i32,
        /// RSRQ.
        rsrq: i32,
        /// SINR.
        sinr: i32,
    }
}

object! {
    /// A measurement report of a user in NR.
    NrMeasRepUe {
        /// The trigger of the report.
        trigger_nr: TriggerNr,
        ;;
        /// Timestamp.
        time_stamp: TimeStamp,
        []
        /// The user.
        associate_id: AssociateId,
        /// Neighbours in LTE; empty if there are some in NR.
        eutra_neigh_cell_meas_info: EutraNeighCellMeasInfo,
        /// Neighbours in NR; empty if there are some in LTE.
        nr_neigh_cell_meas_info: NrNeighCellMeasInfo,
        /// Serving cells.
        serv_cell_meas_info: ServCellMeasInfo,
    }
}

impl NrMeasRepUe {
    /// The report as V2.1.1 has it, which names neighbours by their identity alone.
    #[must_use]
    pub fn in_v2_1_1(mut self) -> Self {
        for neighbour in &mut self.nr_neigh_cell_meas_info {
            if let Some(NrNeighbour::Global(NRcgi { nrcell_id, .. })) = &neighbour.nrcgi {
                neighbour.nrcgi = Some(NrNeighbour::Identity(nrcell_id.clone()));
            }
        }
        self
    }
}

object! {
    /// A user's timing advance.
    MeasTa {
        /// Its cell.
        ecgi: Ecgi,
        /// The timing advance, encoded by [`timing_advance`].
        timing_advance: i32,
        ;;
        /// Timestamp.
        time_stamp: TimeStamp,
        []
        /// The user.
        associate_id: AssociateId,
    }
}

object! {
    /// A cell that is added to or removed from a user's carriers.
    SecondaryCell {
        ;;
        /// The cell.
        ecgi: Ecgi,
    }
}

object! {
    /// Carriers of a user have changed.
    CaReconf {
        /// Its cell.
        ecgi: Ecgi,
        ;;
        /// Timestamp.
        time_stamp: TimeStamp,
        []
        /// The user.
        associate_id: AssociateId,
        /// Its carriers.
        carrier_aggregation_meas_info: CarrierAggregationMeasInfo,
        /// Cells that were added.
        secondary_cell_add: SecondaryCell,
        /// Cells that were removed.
        secondary_cell_remove: SecondaryCell,
    }
}

object! {
    /// Selects users and cells.
    FilterCriteriaAssoc {
        ;;
        /// The application.
        app_instance_id: String,
        []
        /// Users; none are all.
        associate_id: AssociateId,
        /// Cells; none are all.
        ecgi: Ecgi,
    }
}

object! {
    /// Selects measurement reports in LTE.
    FilterCriteriaAssocTri {
        ;;
        /// The application.
        app_instance_id: String,
        []
        /// Users; none are all.
        associate_id: AssociateId,
        /// Cells; none are all.
        ecgi: Ecgi,
        /// Triggers; none are all.
        trigger: Trigger,
    }
}

object! {
    /// Selects measurement reports in NR.
    FilterCriteriaNrMrs {
        ;;
        /// The application.
        app_instance_id: String,
        []
        /// Users; none are all.
        associate_id: AssociateId,
        /// Cells; none are all.
        nrcgi: NRcgi,
        /// Triggers; none are all.
        trigger_nr: TriggerNr,
    }
}
