//! The queries `layer2_meas`, `rab_info` and `s1_bearer_info`: which users, cells, bearers and measures.

use super::bearers::{ErabInfo, S1BearerInfo, S1UeInfo};
use super::{AssociateId, Ecgi, IdType, L2Meas, L2MeasCellInfo, L2MeasCellUEInfo, L2MeasCellUe};

/// Why a query was refused: HTTP status 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The query has no such parameter.
    #[error("expected a parameter of {query}, such as {such_as}, found {name:?}")]
    Unknown {
        /// The query.
        query: &'static str,
        /// Some of its parameters.
        such_as: &'static str,
        /// The invalid parameter.
        name: String,
    },
    /// Its value is not one.
    #[error("{name}: expected {expected}, found {value:?}")]
    Value {
        /// The parameter.
        name: String,
        /// What it takes.
        expected: &'static str,
        /// The invalid value.
        value: String,
    },
}

/// Entries of a comma-separated list.
fn list(value: &str) -> impl Iterator<Item = String> {
    value.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}

fn number(name: &str, value: &str) -> Result<u64, QueryError> {
    let wrong =
        || QueryError::Value { name: name.to_owned(), expected: "a whole number", value: value.to_owned() };
    value.parse().map_err(|_| wrong())
}

/// The users of a query, by their identifiers. None are all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Users(Vec<(IdType, String)>);

impl Users {
    /// Whether the parameter names users.
    fn take(&mut self, name: &str, value: &str) -> bool {
        let kind = match name {
            "ue_ipv4_address" => IdType::UeIpv4,
            "ue_ipv6_address" => IdType::UeIpv6,
            "nated_ip_address" => IdType::NatedIp,
            "gtp_teid" => IdType::GtpTeid,
            _ => return false,
        };
        self.0.extend(list(value).map(|value| (kind, value)));
        true
    }

    fn has(&self, ids: &[AssociateId]) -> bool {
        let is =
            |(kind, value): &(IdType, String)| ids.iter().any(|id| id.id_type == *kind && id.value == *value);
        self.0.is_empty() || self.0.iter().any(is)
    }
}

/// The query `rab_info`: which users, cells and bearers. Numbers select bearers that have exactly these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RabQuery {
    /// The application, as it names itself.
    pub app: Option<String>,
    cells: Vec<String>,
    users: Users,
    erab_id: Option<u64>,
    qci: Option<u64>,
    /// Maximum downlink, uplink; guaranteed downlink, uplink.
    rates: [Option<u64>; 4],
}

impl RabQuery {
    /// From decoded parameters in the order of the request.
    ///
    /// # Errors
    ///
    /// If there is no such parameter, or a number is none.
    pub fn parse<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, QueryError> {
        let mut query = Self::default();
        for (name, value) in parameters {
            match name {
                "app_ins_id" => query.app = Some(value.to_owned()),
                "cell_id" => query.cells.extend(list(value)),
                "erab_id" => query.erab_id = Some(number(name, value)?),
                "qci" => query.qci = Some(number(name, value)?),
                "erab_mbr_dl" => query.rates[0] = Some(number(name, value)?),
                "erab_mbr_ul" => query.rates[1] = Some(number(name, value)?),
                "erab_gbr_dl" => query.rates[2] = Some(number(name, value)?),
                "erab_gbr_ul" => query.rates[3] = Some(number(name, value)?),
                _ if query.users.take(name, value) => {}
                _ => {
                    let such_as = "ue_ipv4_address or qci";
                    return Err(QueryError::Unknown { query: "rab_info", such_as, name: name.to_owned() });
                }
            }
        }
        Ok(query)
    }

    /// Whether the query is about a cell.
    pub fn has_cell(&self, cell: &Ecgi) -> bool {
        self.cells.is_empty() || self.cells.contains(&cell.cell_id)
    }

    /// Whether the query is about a user with these identifiers.
    pub fn has_user(&self, ids: &[AssociateId]) -> bool {
        self.users.has(ids)
    }

    /// Whether the query is about a bearer.
    pub fn has_bearer(&self, bearer: &ErabInfo) -> bool {
        let qos = bearer.erab_qos_parameters.as_ref();
        let is = |wanted: Option<u64>, found: Option<u64>| wanted.is_none_or(|wanted| found == Some(wanted));
        let rates = qos.and_then(|qos| qos.qos_information.as_ref());
        let found = rates.map(|of| [of.erab_mbr_dl, of.erab_mbr_ul, of.erab_gbr_dl, of.erab_gbr_ul]);
        is(self.erab_id, bearer.erab_id.map(u64::from))
            && is(self.qci, qos.map(|qos| qos.qci.into()))
            && (0..4).all(|which| is(self.rates[which], found.map(|rates| rates[which])))
    }
}

/// The query `s1_bearer_info`: which users, cells and bearers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct S1Query {
    /// Temporary identifiers of users: MMEC and M-TMSI, as two entries of the list or joined in one.
    temporary: Vec<String>,
    cells: Vec<String>,
    users: Users,
    erab_ids: Vec<u64>,
}

impl S1Query {
    /// From decoded parameters in the order of the request.
    ///
    /// # Errors
    ///
    /// If there is no such parameter, or a number is none.
    pub fn parse<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, QueryError> {
        let mut query = Self::default();
        for (name, value) in parameters {
            match name {
                "temp_ue_id" => query.temporary.extend(list(value)),
                "cell_id" => query.cells.extend(list(value)),
                "erab_id" => {
                    for one in list(value) {
                        query.erab_ids.push(number(name, &one)?);
                    }
                }
                _ if query.users.take(name, value) => {}
                _ => {
                    let (query, such_as) = ("s1_bearer_info", "ue_ipv4_address or erab_id");
                    return Err(QueryError::Unknown { query, such_as, name: name.to_owned() });
                }
            }
        }
        Ok(query)
    }

    /// Selects the query's part of all bearers; `None` if nothing is left, because the answer has at least one user.
    pub fn select(&self, all: &S1BearerInfo) -> Option<S1BearerInfo> {
        let has_user = |user: &&S1UeInfo| {
            let is = |temporary: &super::TempUeId| {
                let joined = format!("{}{}", temporary.mmec, temporary.mtmsi);
                self.temporary.contains(&joined)
                    || (self.temporary.contains(&temporary.mmec) && self.temporary.contains(&temporary.mtmsi))
            };
            let in_cell = |cell: &Ecgi| self.cells.contains(&cell.cell_id);
            self.users.has(&user.associate_id)
                && (self.temporary.is_empty() || user.temp_ue_id.as_ref().is_some_and(is))
                && (self.cells.is_empty() || user.ecgi.iter().any(in_cell))
        };
        let part = |user: &S1UeInfo| {
            let mut user = user.clone();
            if !self.erab_ids.is_empty() {
                let has = |id: Option<u32>| id.is_some_and(|id| self.erab_ids.contains(&id.into()));
                user.s1_bearer_info_detailed.retain(|bearer| has(bearer.erab_id));
            }
            (!user.s1_bearer_info_detailed.is_empty()).then_some(user)
        };
        let s1_ue_info: Vec<S1UeInfo> = all.s1_ue_info.iter().filter(has_user).filter_map(part).collect();
        (!s1_ue_info.is_empty()).then_some(S1BearerInfo { s1_ue_info, time_stamp: all.time_stamp })
    }
}

/// A query. Without users and cells it selects all of them, without measures all measures.
///
/// Ours, where the standard leaves it open: a query that names users also returns the cells that they are in; an object is returned
/// if it has one of the requested measures, with the identifiers of its cell and user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct L2Query {
    cells: Vec<String>,
    users: Users,
    measures: Vec<&'static str>,
}

impl L2Query {
    /// From decoded parameters in the order of the request. Users and cells may be comma-separated lists, and parameters may
    /// repeat. The value of a measure may be a number, `true`, `false` or empty; it is ignored, unless it is `false` or `0`.
    ///
    /// # Errors
    ///
    /// If there is no such parameter, or it takes no such value.
    pub fn parse<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, QueryError> {
        let mut query = Self::default();
        for (name, value) in parameters {
            match name {
                "app_ins_id" => {}
                "cell_id" => query.cells.extend(list(value)),
                _ if query.users.take(name, value) => {}
                _ => {
                    let mut known = L2MeasCellInfo::MEASURES.iter().chain(L2MeasCellUEInfo::MEASURES);
                    let such_as = "ue_ipv4_address or dl_total_prb_usage_cell";
                    let unknown =
                        || QueryError::Unknown { query: "layer2_meas", such_as, name: name.to_owned() };
                    let known = known.find(|known| **known == name).ok_or_else(unknown)?;
                    match value {
                        "false" | "0" => {}
                        "" | "true" => query.measures.push(known),
                        _ if value.parse::<i64>().is_ok() => query.measures.push(known),
                        _ => {
                            let expected = "a whole number, true, false or nothing";
                            let (name, value) = (name.to_owned(), value.to_owned());
                            return Err(QueryError::Value { name, expected, value });
                        }
                    }
                }
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
        let has_user = |user: &L2MeasCellUe| self.users.has(core::slice::from_ref(&user.associate_id));
        let users: Vec<&L2MeasCellUe> = all
            .cell_ue_info
            .iter()
            .filter(|user| {
                has_user(user) && has_cell(user.info.ecgi.as_ref().map(|ecgi| ecgi.cell_id.as_str()))
            })
            .collect();
        let is_theirs = |cell: &&L2MeasCellInfo| {
            self.users.0.is_empty() || users.iter().any(|user| user.info.ecgi == cell.ecgi)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::bearers::RabInfo;
    use super::*;

    #[test]
    fn each_parameter_of_rab_info_selects() {
        let info: RabInfo = serde_json::from_value(json!({ "appInstanceId": "a", "requestId": "1", "cellUserInfo": [{
            "ecgi": { "cellId": "A", "plmn": { "mcc": "001", "mnc": "01" } },
            "ueInfo": [{ "associateId": [{ "type": 3, "value": "192.0.2.1" }], "erabInfo": [{ "erabId": 5, "erabQosParameters": {
                "qci": 1, "qosInformation": { "erabGbrDl": 1, "erabGbrUl": 2, "erabMbrDl": 3, "erabMbrUl": 4 } } }] }],
        }] }))
        .unwrap();
        let cell = &info.cell_user_info[0];
        let has = |name: &str, value: &str| {
            let query = RabQuery::parse([(name, value)]).unwrap();
            let user = &cell.ue_info[0];
            query.has_cell(cell.ecgi.as_ref().unwrap())
                && query.has_user(&user.associate_id)
                && query.has_bearer(&user.erab_info[0])
        };
        for (name, value, other) in [
            ("cell_id", "A", "B"),
            ("nated_ip_address", "192.0.2.1", "192.0.2.2"),
            ("erab_id", "5", "6"),
            ("qci", "1", "9"),
            ("erab_gbr_dl", "1", "2"),
            ("erab_gbr_ul", "2", "1"),
            ("erab_mbr_dl", "3", "4"),
            ("erab_mbr_ul", "4", "3"),
        ] {
            assert!(has(name, value) && !has(name, other), "{name}");
        }
        assert!(has("cell_id", "B,A") && has("app_ins_id", "x") && !has("ue_ipv4_address", "192.0.2.1"));
        for (name, value) in [("c_id", "A"), ("qci", "nine"), ("erab_id", "-1"), ("erab_id", "")] {
            assert!(RabQuery::parse([(name, value)]).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn each_parameter_of_s1_bearer_info_selects() {
        let end = json!({ "ipAddress": "192.0.2.1", "tunnelId": "1" });
        let all: S1BearerInfo = serde_json::from_value(json!({ "s1UeInfo": [{
            "tempUeId": { "mmec": "7", "mtmsi": "99" }, "associateId": [{ "type": 1, "value": "10.0.0.1" }],
            "ecgi": [{ "cellId": "A", "plmn": { "mcc": "001", "mnc": "01" } }],
            "s1BearerInfoDetailed": [{ "erabId": 5, "enbInfo": end }, { "erabId": 6, "enbInfo": end }],
        }] }))
        .unwrap();
        let count = |name: &str, value: &str| {
            let found = S1Query::parse([(name, value)]).unwrap().select(&all);
            found.map_or(0, |found| found.s1_ue_info[0].s1_bearer_info_detailed.len())
        };
        assert_eq!(S1Query::default().select(&all).as_ref(), Some(&all));
        for (name, value, expected) in [
            ("temp_ue_id", "799", 2),
            ("temp_ue_id", "7,99", 2),
            ("temp_ue_id", "7", 0),
            ("ue_ipv4_address", "10.0.0.1", 2),
            ("ue_ipv4_address", "10.0.0.2", 0),
            ("cell_id", "A", 2),
            ("cell_id", "B", 0),
            ("erab_id", "6", 1),
            ("erab_id", "7", 0),
        ] {
            assert_eq!(count(name, value), expected, "{name}={value}");
        }
        assert!(S1Query::parse([("erab_id", "x")]).is_err() && S1Query::parse([("qci", "1")]).is_err());
    }
}
