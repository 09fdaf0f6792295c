//! Converts the reports of our base station to the standard's objects.
//!
//! Its bearers have no class and no guaranteed rates, so they are reported as default bearers, QCI 9. It has no tunnels and no
//! carrier aggregation; for these, fill the objects of [`measured`](super::measured) and [`bearers`](super::bearers). Its
//! measurements are in `measures.rs`.

use super::bearers::{CellUserInfo, ErabInfo, ErabQosParameters, PlmnInfo, RabInfo, UeInfo};
use super::{AssociateId, Ecgi, HoStatus, Notification, TimeStamp};
use crate::{Event, EventKind, SlotReport};

/// External identifiers of cells and users.
pub trait Names {
    /// A cell, by its number.
    fn ecgi(&self, cell: u16) -> Ecgi;
    /// A user, by its number: usually its address; empty if it has no identifier.
    fn user(&self, user: u32) -> Vec<AssociateId>;
    /// The timestamp of a time of the simulation or base station.
    fn time(&self, time: ranpace_units::Time) -> TimeStamp {
        TimeStamp::of(time)
    }
}

/// The class of a default bearer; TS 23.203, table 6.1.7.
const DEFAULT_QCI: u8 = 9;
/// The number of a user's first bearer; TS 24.301, 9.3.2.
const FIRST_ERAB: u32 = 5;

fn erab_id(bearer: u8) -> u32 {
    FIRST_ERAB + u32::from(bearer)
}

fn qos() -> ErabQosParameters {
    ErabQosParameters { qci: DEFAULT_QCI, qos_information: None }
}

/// The answer to `rab_info` for the users in a cell's report.
pub fn rab_info(app: &str, request: &str, report: &SlotReport<'_>, names: &impl Names) -> RabInfo {
    let of_user = |user: u32| {
        let own = report.bearers.iter().filter(|bearer| bearer.user == user);
        let mut numbers: Vec<u8> = own.map(|bearer| bearer.bearer).collect();
        numbers.sort_unstable();
        numbers.dedup(); // once per direction
        let bearer = |number| ErabInfo { erab_id: Some(erab_id(number)), erab_qos_parameters: Some(qos()) };
        UeInfo { associate_id: names.user(user), erab_info: numbers.into_iter().map(bearer).collect() }
    };
    let ue_info: Vec<UeInfo> = report.users.iter().map(|row| of_user(row.user)).collect();
    let cell = CellUserInfo { ecgi: Some(names.ecgi(report.cell.cell)), ue_info };
    RabInfo {
        app_instance_id: app.to_owned(),
        request_id: request.to_owned(),
        time_stamp: Some(names.time(report.time)),
        cell_user_info: if cell.ue_info.is_empty() { Vec::new() } else { vec![cell] },
    }
}

/// An entry of the answer to `plmn_info`: the networks of the cells that an application's users are in.
pub fn plmn_info(app: &str, at: TimeStamp, cells: impl IntoIterator<Item = Ecgi>) -> PlmnInfo {
    let mut plmn = Vec::new();
    for cell in cells {
        if !plmn.contains(&cell.plmn) {
            plmn.push(cell.plmn);
        }
    }
    PlmnInfo { app_instance_id: app.to_owned(), plmn, time_stamp: Some(at) }
}

/// Converts an event to a notification: a bearer set up, a handover. `None` for events without counterpart in the standard:
/// attaching, detaching, and the radio failure of a bearer, which does not release it.
pub fn event(event: &Event, names: &impl Names) -> Option<Notification> {
    let associate_id = names.user(event.user);
    let ecgi = names.ecgi(event.cell);
    let time_stamp = Some(names.time(event.time));
    Some(match event.kind {
        EventKind::Attached | EventKind::Detached | EventKind::BearerFailed { .. } => return None,
        EventKind::BearerSetUp { bearer } => Notification::RabEst {
            associate_id,
            ecgi,
            erab_id: erab_id(bearer),
            erab_qos_parameters: Some(qos()),
            temp_ue_id: None,
            time_stamp,
        },
        EventKind::HandoverBegun { to } => Notification::CellChange {
            associate_id,
            ho_status: HoStatus::InExecution,
            src_ecgi: ecgi,
            temp_ue_id: None,
            time_stamp,
            trg_ecgi: vec![names.ecgi(to)],
        },
        EventKind::HandoverCompleted { from } => Notification::CellChange {
            associate_id,
            ho_status: HoStatus::Completed,
            src_ecgi: names.ecgi(from),
            temp_ue_id: None,
            time_stamp,
            trg_ecgi: vec![ecgi],
        },
    })
}
