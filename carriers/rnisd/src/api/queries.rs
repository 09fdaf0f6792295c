//! Queries: `rab_info`, `plmn_info`, `s1_bearer_info`, `layer2_meas`. MEC 012, 7.3 to 7.5 and 7.7.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use ranpace_rnis::etsi::bearers::PlmnInfo;
use ranpace_rnis::etsi::{L2Query, QueryError, RabQuery, S1Query};

use super::problem::Problem;
use super::{Api, json, pairs, parameters};
use crate::auth::Subject;

fn refused(error: QueryError) -> Problem {
    Problem::bad(error)
}

/// `GET /queries/rab_info`.
pub async fn rab_info(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = parameters(query.as_deref());
    let query = RabQuery::parse(pairs(&parameters)).map_err(refused)?;
    let app = query.app.clone().unwrap_or(subject.name);
    let now = api.core.now();
    let info = api.core.state().rab_info(&app, &query, &subject.viewer, now);
    Ok(json(&info))
}

/// `GET /queries/plmn_info`.
pub async fn plmn_info(State(api): State<Arc<Api>>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let mut apps: Vec<String> = Vec::new();
    for (name, value) in parameters(query.as_deref()) {
        if name != "app_ins_id" {
            return Err(Problem::bad(format!("expected the parameter app_ins_id, found {name:?}")));
        }
        apps.extend(value.split(',').map(str::trim).filter(|app| !app.is_empty()).map(str::to_owned));
    }
    if apps.is_empty() {
        return Err(Problem::bad("expected the parameter app_ins_id with at least one application"));
    }
    let at = api.core.time_stamp();
    let plmn = api.core.state().networks();
    let info = |app| PlmnInfo { app_instance_id: app, plmn: plmn.clone(), time_stamp: Some(at) };
    // An entry has at least one network.
    let infos: Vec<PlmnInfo> =
        if plmn.is_empty() { Vec::new() } else { apps.into_iter().map(info).collect() };
    Ok(json(&infos))
}

/// `GET /queries/s1_bearer_info`.
pub async fn s1_bearer_info(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = parameters(query.as_deref());
    let query = S1Query::parse(pairs(&parameters)).map_err(refused)?;
    let now = api.core.now();
    let all = api.core.state().s1_bearer_info(&subject.viewer, now);
    let none = || Problem::not_found("no bearer on S1 is known that the query selects");
    Ok(json(&query.select(&all).ok_or_else(none)?))
}

/// `GET /queries/layer2_meas`.
pub async fn layer2_meas(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = parameters(query.as_deref());
    let query = L2Query::parse(pairs(&parameters)).map_err(refused)?;
    let all = api.core.state().layer2(&subject.viewer);
    Ok(json(&query.select(&all)))
}
