//! What queries are answered with, as far as their reader may see it.

use ranpace_phy::{Both, Cqi};
use ranpace_rnis::RadioHint;
use ranpace_rnis::etsi::bearers::{CellUserInfo, ErabInfo, RabInfo, S1BearerInfo, S1UeInfo, UeInfo};
use ranpace_rnis::etsi::vendor::{CellConfig, TtiMeas};
use ranpace_rnis::etsi::{AssociateId, Ecgi, L2Meas, L2MeasCellUe, Plmn, RabQuery};
use ranpace_units::Time;

use super::{BearerState, CellState, FIRST_ERAB, State, UserState, hints_of};
use crate::viewer::Viewer;

/// A user as the extension lists it.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserEntry {
    /// Its number in the feed.
    pub user: u32,
    /// Its identifiers.
    pub associate_id: Vec<AssociateId>,
    /// Its cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecgi: Option<Ecgi>,
    /// Number of its cell in the feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<u16>,
}

impl State {
    /// The answer to `rab_info`.
    pub fn rab_info(&mut self, app: &str, query: &RabQuery, viewer: &Viewer, now: Time) -> RabInfo {
        self.requests += 1;
        let of_user = |number: &u32| {
            let user = self.users.get(*number as usize)?;
            let associate_id = viewer.visible(&user.ids)?;
            if !query.has_user(&associate_id) {
                return None;
            }
            let bearer = |(bearer, of): (&u8, &BearerState)| ErabInfo {
                erab_id: Some(FIRST_ERAB + u32::from(*bearer)),
                erab_qos_parameters: Some(of.parameters()),
            };
            let erab_info: Vec<ErabInfo> =
                user.bearers.iter().map(bearer).filter(|bearer| query.has_bearer(bearer)).collect();
            (!erab_info.is_empty()).then_some(UeInfo { associate_id, erab_info })
        };
        let of_cell = |cell: &CellState| {
            let ue_info: Vec<UeInfo> = cell.users.iter().filter_map(of_user).collect();
            let ecgi = Some(cell.cell.ecgi.clone());
            (!ue_info.is_empty() && query.has_cell(&cell.cell.ecgi)).then_some(CellUserInfo { ecgi, ue_info })
        };
        RabInfo {
            app_instance_id: app.to_owned(),
            request_id: self.requests.to_string(),
            time_stamp: Some(self.time_stamp(now)),
            cell_user_info: self.cells.iter().flatten().filter_map(of_cell).collect(),
        }
    }

    /// The networks of all cells.
    pub fn networks(&self) -> Vec<Plmn> {
        let mut networks = Vec::new();
        for cell in self.cells.iter().flatten() {
            if !networks.contains(&cell.cell.ecgi.plmn) {
                networks.push(cell.cell.ecgi.plmn.clone());
            }
        }
        networks
    }

    /// All bearers on S1 of users that may be seen.
    pub fn s1_bearer_info(&self, viewer: &Viewer, now: Time) -> S1BearerInfo {
        let of_user = |user: &UserState| {
            let associate_id = viewer.visible(&user.ids).filter(|_| viewer.sees_tunnels())?;
            let mut ecgi = Vec::new();
            for cell in user.s1.values().flat_map(|(cells, _)| cells) {
                if !ecgi.contains(cell) {
                    ecgi.push(cell.clone());
                }
            }
            let bearers: Vec<_> = user.s1.values().map(|(_, bearer)| bearer.clone()).collect();
            (!bearers.is_empty()).then_some(S1UeInfo {
                temp_ue_id: None,
                associate_id,
                ecgi,
                s1_bearer_info_detailed: bearers,
            })
        };
        S1BearerInfo {
            s1_ue_info: self.users.iter().filter_map(of_user).collect(),
            time_stamp: Some(self.time_stamp(now)),
        }
    }

    /// All layer 2 measures of the last complete interval, or of the running one in a cell that has no complete one yet. A user
    /// is listed once for each of its identifiers, so that any of them finds it.
    pub fn layer2(&self, viewer: &Viewer) -> L2Meas {
        let mut all = L2Meas { cell_info: Vec::new(), cell_ue_info: Vec::new(), time_stamp: None };
        let mut until = Time::ZERO;
        for cell in self.cells.iter().flatten() {
            let Some(measures) = &cell.measures else { continue };
            until = until.max(measures.until);
            let mut info = measures.cell.clone();
            info.ecgi = Some(cell.cell.ecgi.clone());
            all.cell_info.push(info);
            for (user, info) in &measures.users {
                let Some(ids) = viewer.visible(self.ids(*user)) else { continue };
                if !cell.users.contains(user) {
                    continue;
                }
                let mut info = info.clone();
                info.ecgi = Some(cell.cell.ecgi.clone());
                let entry = |associate_id| L2MeasCellUe { associate_id, info: info.clone() };
                all.cell_ue_info.extend(ids.into_iter().map(entry));
            }
        }
        all.time_stamp = (until > Time::ZERO).then(|| self.time_stamp(until));
        all
    }

    /// Descriptions of the cells.
    pub fn cell_configs(&self) -> Vec<CellConfig> {
        let config = |cell: &CellState| CellConfig::of(cell.cell.ecgi.clone(), &cell.cell.info);
        self.cells.iter().flatten().map(config).collect()
    }

    /// The users in cells, as far as they may be seen.
    pub fn user_entries(&self, viewer: &Viewer) -> Vec<UserEntry> {
        let mut entries = Vec::new();
        for (user, state) in (0_u32..).zip(&self.users) {
            if let Some(associate_id) = viewer.visible(&state.ids) {
                let (cell, ecgi) = (state.serving, state.serving.and_then(|cell| self.ecgi(cell)));
                entries.push(UserEntry { user, associate_id, ecgi, cell });
            }
        }
        entries
    }

    /// The latest records of users: those that `has` accepts by number, identifiers and cell. A user is recorded once, by the first
    /// identifier that may be seen.
    pub fn records(&self, viewer: &Viewer, has: &dyn Fn(&[AssociateId], &Ecgi) -> bool) -> Vec<TtiMeas> {
        let all = self.cells.iter().flatten();
        all.flat_map(|cell| {
            let cell = cell.cell.info.cell;
            self.records_of(&hints_of(&self.latest, cell), cell, viewer, has)
        })
        .collect()
    }

    /// Likewise, of the users of one cell with these hints.
    pub fn records_of(
        &self,
        hints: &[(u32, Both<RadioHint>)],
        cell: u16,
        viewer: &Viewer,
        has: &dyn Fn(&[AssociateId], &Ecgi) -> bool,
    ) -> Vec<TtiMeas> {
        let Some(ecgi) = self.ecgi(cell) else { return Vec::new() };
        let record = |(user, hints): &(u32, Both<RadioHint>)| {
            let ids = viewer.visible(self.ids(*user))?;
            if !has(&ids, &ecgi) {
                return None;
            }
            let mut record = TtiMeas::of(ids.into_iter().next()?, ecgi.clone(), hints);
            record.time_stamp = self.time_stamp(hints.downlink.measured_at);
            // Records go to people and to programs that have no other way to the latest one.
            record.cqi = record.cqi.or_else(|| self.latest.latest_cqi(*user).map(Cqi::get));
            Some(record)
        };
        hints.iter().filter_map(record).collect()
    }
}
