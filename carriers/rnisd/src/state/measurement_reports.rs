//! Measurement reports: what a user has measured of its cell and of others, as notifications.

use ranpace_rnis::Technology;
use ranpace_rnis::etsi::measured::{
    self, EutraNeighCellMeasInfo, EutranNeighbourCellMeasInfo, MeasQuantityResultsNr, MeasRepUe, NRcgi,
    NewRadioMeasNeiInfo, NrCellMeas, NrMeasRepUe, NrNCellInfo, NrNeighCellMeasInfo, NrNeighbour,
    ServCellMeasInfo, Trigger, TriggerNr,
};
use ranpace_rnis::etsi::{AssociateId, Ecgi, Notification, Occurrence, TimeStamp};

use super::{Happened, State};
use crate::source::{Signal, Strength};

impl State {
    pub(super) fn on_signal(&mut self, signal: &Signal, happened: &mut Vec<Happened>) {
        let Some(cell) = self.cell(signal.cell) else { return };
        let is_lte = cell.cell.info.technology == Technology::Lte;
        let ecgi = cell.cell.ecgi.clone();
        let time_stamp = Some(self.time_stamp(signal.time));
        let associate_id = self.ids(signal.user).to_vec();
        // A neighbour that no source has described is taken for one of the serving cell's kind.
        let (lte, nr): (Vec<_>, Vec<_>) =
            signal.neighbours.iter().partition(|(neighbour, _)| self.is_lte(neighbour).unwrap_or(is_lte));
        let notification = if is_lte {
            of_lte(ecgi, &signal.serving, &lte, &nr, associate_id, time_stamp)
        } else {
            of_nr(ecgi, &signal.serving, &lte, &nr, associate_id, time_stamp)
        };
        happened.push(Happened { user: signal.user, occurrence: Occurrence::of(notification) });
    }

    /// Whether a cell is one of LTE; `None` if nobody has described it.
    fn is_lte(&self, ecgi: &Ecgi) -> Option<bool> {
        let known = self.cells.iter().flatten().find(|of| of.cell.ecgi == *ecgi)?;
        Some(known.cell.info.technology == Technology::Lte)
    }
}

/// Neighbours with what was measured of them.
type Neighbours<'a> = [&'a (Ecgi, Strength)];

fn of_lte(
    ecgi: Ecgi,
    serving: &Strength,
    lte: &Neighbours<'_>,
    nr: &Neighbours<'_>,
    associate_id: Vec<AssociateId>,
    time_stamp: Option<TimeStamp>,
) -> Notification {
    let in_lte = |(ecgi, of): &&(Ecgi, Strength)| EutranNeighbourCellMeasInfo {
        ecgi: Some(ecgi.clone()),
        rsrp: Some(measured::rsrp(of.rsrp_dbm)),
        rsrp_ex: None,
        rsrq: Some(measured::rsrq(of.rsrq_db)),
        rsrq_ex: None,
        sinr: of.sinr_db.map(measured::sinr),
    };
    let in_nr = |(ecgi, of): &&(Ecgi, Strength)| {
        let MeasQuantityResultsNr { rsrp, rsrq, sinr } = by_ssb(of);
        let name = NrNCellInfo {
            nr_n_cell_g_id: Some(ecgi.cell_id.clone()),
            nr_n_cell_plmn: vec![ecgi.plmn.clone()],
        };
        NewRadioMeasNeiInfo {
            nr_n_cell_rsrp: rsrp,
            nr_n_cell_rsrq: rsrq,
            nr_n_cell_rssi: sinr,
            rs_index_results: None,
            nr_n_cell_info: vec![name],
        }
    };
    Notification::MeasRepUe(Box::new(MeasRepUe {
        ecgi,
        rsrp: measured::rsrp(serving.rsrp_dbm),
        rsrq: measured::rsrq(serving.rsrq_db),
        trigger: Trigger::Periodical,
        height_ue: None,
        rsrp_ex: None,
        rsrq_ex: None,
        sinr: serving.sinr_db.map(measured::sinr),
        time_stamp,
        associate_id,
        carrier_aggregation_meas_info: Vec::new(),
        eutran_neighbour_cell_meas_info: lte.iter().map(in_lte).collect(),
        new_radio_meas_info: Vec::new(),
        new_radio_meas_nei_info: nr.iter().map(in_nr).collect(),
    }))
}

fn of_nr(
    ecgi: Ecgi,
    serving: &Strength,
    lte: &Neighbours<'_>,
    nr: &Neighbours<'_>,
    associate_id: Vec<AssociateId>,
    time_stamp: Option<TimeStamp>,
) -> Notification {
    let global = |of: &Ecgi| NRcgi { nrcell_id: of.cell_id.clone(), plmn: of.plmn.clone() };
    let in_nr = |(ecgi, of): &&(Ecgi, Strength)| NrNeighCellMeasInfo {
        meas_quantity_results_csi_rs_cell: None,
        meas_quantity_results_ssb_cell: Some(by_ssb(of)),
        nrcgi: Some(NrNeighbour::Global(global(ecgi))),
        rs_index_results: None,
    };
    let in_lte = |(ecgi, of): &&(Ecgi, Strength)| EutraNeighCellMeasInfo {
        ecgi: Some(ecgi.clone()),
        rsrp: Some(measured::rsrp(of.rsrp_dbm)),
        rsrq: Some(measured::rsrq(of.rsrq_db)),
        sinr: of.sinr_db.map(measured::sinr),
    };
    // A report has neighbours of one kind, see the members of `NrMeasRepUe`.
    let lte = if nr.is_empty() { lte } else { &[] };
    Notification::NrMeasRepUe(NrMeasRepUe {
        trigger_nr: TriggerNr::Periodical,
        time_stamp,
        associate_id,
        eutra_neigh_cell_meas_info: lte.iter().map(in_lte).collect(),
        nr_neigh_cell_meas_info: nr.iter().map(in_nr).collect(),
        serv_cell_meas_info: vec![ServCellMeasInfo {
            n_cell: None,
            nrcgi: Some(global(&ecgi)),
            s_cell: Some(NrCellMeas {
                meas_quantity_results_csi_rs_cell: None,
                meas_quantity_results_ssb_cell: Some(by_ssb(serving)),
                rs_index_results: None,
            }),
        }],
    })
}

/// What was measured by SSB; TS 38.133's steps: RSRP of 1 dB from -157 dBm, RSRQ of half a dB from -43.5 dB.
fn by_ssb(of: &Strength) -> MeasQuantityResultsNr {
    let steps = |value: f64, most: i32| (value.floor() as i32).clamp(0, most);
    MeasQuantityResultsNr {
        rsrp: Some(steps(of.rsrp_dbm + 157.0, 127)),
        rsrq: Some(steps(2.0 * (of.rsrq_db + 43.5), 127)),
        sinr: of.sinr_db.map(measured::sinr),
    }
}
