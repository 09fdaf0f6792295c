//! What a base station of ours can say in the standard's words, from what it reports.
//!
//! Its bearers have no class and no guaranteed rates: they are told as default bearers, QCI 9. It knows no tunnels, and no user of
//! ours has several carriers. Who knows these has the objects in [`measured`](super::measured) and [`bearers`](super::bearers).
//! What it measures is in `measures.rs`.

use super::bearers::{CellUserInfo, ErabInfo, ErabQosParameters, PlmnInfo, RabInfo, UeInfo};
use super::{AssociateId, Ecgi, HoStatus, Notification, TimeStamp};
use crate::{Event, EventKind, SlotReport};

/// How cells and users are called outside.
pub trait Names {
    /// A cell, by its number.
    fn ecgi(&self, cell: u16) -> Ecgi;
    /// A user, by its number: mostly by its address; empty if it has no name.
    fn user(&self, user: u32) -> Vec<AssociateId>;
    /// What the time is called that the simulation or the base station counts.
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

/// The answer to `rab_info` for those users of a cell that a report tells of.
pub fn rab_info(app: &str, request: &str, report: &SlotReport<'_>, names: &impl Names) -> RabInfo {
    let of_user = |user: u32| {
        let own = report.bearers.iter().filter(|bearer| bearer.user == user);
        let mut numbers: Vec<u8> = own.map(|bearer| bearer.bearer).collect();
        numbers.sort_unstable();
        numbers.dedup(); // it has two directions
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

/// What an event is in the standard: a bearer that is set up, a handover. `None` for those that are nothing there: that a user is
/// served or no more, or that the radio of a bearer failed, which does not release it.
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
