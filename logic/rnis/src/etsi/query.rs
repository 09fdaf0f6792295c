//! The query `layer2_meas`: which users, cells and measures.

use super::{IdType, L2Meas, L2MeasCellInfo, L2MeasCellUEInfo, L2MeasCellUe};

/// Why a query was refused: HTTP status 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a parameter of layer2_meas, such as ue_ipv4_address or dl_total_prb_usage_cell, found {name:?}"
)]
pub struct QueryError {
    /// The invalid parameter.
    pub name: String,
}

/// A query. Without users and cells it selects all of them, without measures all measures.
///
/// Ours, where the standard leaves it open: a query that names users also returns the cells that they are in; an object is returned
/// if it has one of the requested measures, with the identifiers of its cell and user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct L2Query {
    cells: Vec<String>,
    users: Vec<(IdType, String)>,
    measures: Vec<&'static str>,
}

impl L2Query {
    /// From decoded parameters in the order of the request. Users and cells may be comma-separated lists, and parameters may
    /// repeat; the value of a measure is ignored, unless it is `false` or `0`.
    pub fn parse<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, QueryError> {
        let mut query = Self::default();
        for (name, value) in parameters {
            let values =
                || value.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned);
            let id_type = match name {
                "app_ins_id" => continue,
                "cell_id" => {
                    query.cells.extend(values());
                    continue;
                }
                "ue_ipv4_address" => Some(IdType::UeIpv4),
                "ue_ipv6_address" => Some(IdType::UeIpv6),
                "nated_ip_address" => Some(IdType::NatedIp),
                "gtp_teid" => Some(IdType::GtpTeid),
                _ => None,
            };
            if let Some(id_type) = id_type {
                query.users.extend(values().map(|value| (id_type, value)));
                continue;
            }
            let mut known = L2MeasCellInfo::MEASURES.iter().chain(L2MeasCellUEInfo::MEASURES);
            match known.find(|known| **known == name) {
                Some(known) if !["false", "0"].contains(&value) => query.measures.push(known),
                Some(_) => {}
                None => return Err(QueryError { name: name.to_owned() }),
            }
        }
        Ok(query)
    }

    /// Selects the query's part of all measures.
    pub fn select(&self, all: &L2Meas) -> L2Meas {
        let names =
            |own: &'static [&'static str]| if self.measures.is_empty() { own } else { &self.measures };
        let has_cell = |id: Option<&str>| {
            self.cells.is_empty() || id.is_some_and(|id| self.cells.iter().any(|cell| cell == id))
        };
        let has_user = |user: &L2MeasCellUe| {
            let id = &user.associate_id;
            self.users.is_empty()
                || self.users.iter().any(|(kind, value)| (*kind, value) == (id.id_type, &id.value))
        };
        let users: Vec<&L2MeasCellUe> = all
            .cell_ue_info
            .iter()
            .filter(|user| {
                has_user(user) && has_cell(user.info.ecgi.as_ref().map(|ecgi| ecgi.cell_id.as_str()))
            })
            .collect();
        let is_theirs = |cell: &&L2MeasCellInfo| {
            self.users.is_empty() || users.iter().any(|user| user.info.ecgi == cell.ecgi)
        };
        let cells = all
            .cell_info
            .iter()
            .filter(|cell| has_cell(cell.ecgi.as_ref().map(|ecgi| ecgi.cell_id.as_str())))
            .filter(is_theirs)
            .map(|cell| cell.with_only(names(L2MeasCellInfo::MEASURES)))
            .filter(L2MeasCellInfo::has_measures)
            .collect();
        let own = names(L2MeasCellUEInfo::MEASURES);
        let users = users
            .into_iter()
            .map(|user| L2MeasCellUe {
                info: user.info.with_only(own),
                associate_id: user.associate_id.clone(),
            })
            .filter(|user| user.info.has_measures())
            .collect();
        L2Meas { cell_info: cells, cell_ue_info: users, time_stamp: all.time_stamp }
    }
}
