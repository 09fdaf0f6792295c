//! Subscriptions: MEC 012, 7.6 and 7.8.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use hyper::{HeaderMap, StatusCode, header};
use ranpace_rnis::etsi::vendor::Transport;
use ranpace_rnis::etsi::{LinkType, SubscriptionLink, SubscriptionLinkList, SubscriptionLinks, TimeStamp};
use ring::rand::{SecureRandom as _, SystemRandom};
use url::Url;

use super::problem::Problem;
use super::{Api, Id, body, json, parameters, vendor};
use crate::auth::Subject;
use crate::config::Version;
use crate::core::{Asked, PutError, Revision};
use crate::deliver::callback;
use crate::deliver::guard::GuardError;
use crate::subscriptions::{Delivery, Entry, Wanted, WantedError, nanos};

/// How long a callback's name may take to be resolved when the subscription is made. Ours.
const RESOLVE: Duration = Duration::from_secs(2);
/// Names of the kinds in the query of the list; V2.1.1, table 7.6.3.1-1. The last one is ours.
const KINDS: [&str; 10] = [
    "cell_change",
    "rab_est",
    "rab_mod",
    "rab_rel",
    "meas_rep_ue",
    "nr_meas_rep_ue",
    "timing_advance_ue",
    "ca_reconf",
    "s1_bearer",
    "vendor_tti_meas",
];

fn refused(error: WantedError) -> Problem {
    match error {
        WantedError::Malformed(_) => Problem::bad(error),
        WantedError::Impossible(_) => Problem::impossible(error),
    }
}

/// The subscription of this number, if it is the subject's. Others' are hidden.
fn find(api: &Api, subject: &Subject, id: &str) -> Result<Arc<Entry>, Problem> {
    let found = id.parse().ok().and_then(|id| api.core.subscriptions.get(id));
    found
        .filter(|entry| entry.owner == subject.name)
        .ok_or_else(|| Problem::not_found(format!("there is no subscription {id:?}")))
}

/// An answer with a subscription.
fn answer(api: &Api, entry: &Entry, status: StatusCode) -> Response {
    let href = format!("{}/{}", api.core.subscriptions_href(), entry.id);
    let mut answer = json(&entry.representation(&href, &api.core.sockets_href()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    if let Ok(value) = header::HeaderValue::try_from(entry.etag()) {
        headers.insert(header::ETAG, value);
    }
    if let (StatusCode::CREATED, Ok(value)) = (status, header::HeaderValue::try_from(href)) {
        headers.insert(header::LOCATION, value);
    }
    answer
}

/// `GET /subscriptions`.
pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut kind = None;
    for (name, value) in parameters(query.as_deref()) {
        if name != "subscription_type" {
            let detail = format!("expected the parameter subscription_type, found {name:?}");
            return Err(Problem::bad(detail));
        }
        if !KINDS.contains(&value.as_str()) {
            let kinds = KINDS.join(", ");
            let detail = format!("subscription_type: expected one of {kinds}; found {value:?}");
            return Err(Problem::bad(detail));
        }
        kind = Some(value);
    }
    let list = api.core.subscriptions_href();
    let own = api.core.subscriptions.list().into_iter().filter(|entry| {
        entry.owner == subject.name && kind.as_ref().is_none_or(|kind| entry.subscription.kind().1 == kind)
    });
    let link = |entry: Arc<Entry>| SubscriptionLink {
        href: format!("{list}/{}", entry.id),
        subscription_type: entry.subscription.kind().0.to_owned(),
    };
    let subscription = own.map(link).collect();
    let itself = LinkType { href: list.clone() };
    Ok(json(&SubscriptionLinkList { links: SubscriptionLinks { itself, subscription } }))
}

/// The end of a subscription, as the configuration allows it; an error if that is over.
fn deadline(api: &Api, wanted: &mut Wanted) -> Result<(), Problem> {
    let now = nanos(api.core.time_stamp());
    if let Some(longest) = api.core.config.subscriptions.longest {
        let last = now.saturating_add(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
        if wanted.deadline.is_none_or(|deadline| nanos(deadline) > last) {
            wanted.deadline = Some(TimeStamp::of(ranpace_units::Time::from_nanos(last)));
        }
    }
    if let Some(deadline) = wanted.deadline {
        if nanos(deadline) <= now {
            return Err(Problem::impossible(
                "expiryDeadline: expected a time in the future, found one that is over",
            ));
        }
        wanted.body["expiryDeadline"] =
            serde_json::to_value(deadline).map_err(|error| Problem::bad(error.to_string()))?;
    }
    Ok(())
}

/// Whether callbacks may go there, as far as that can be said now.
async fn check_callback(api: &Api, url: &Url) -> Result<(), Problem> {
    let refuse = |error: GuardError| Problem::impossible(format!("callbackReference: {error}"));
    api.core.guard.check(url).map_err(refuse)?;
    match tokio::time::timeout(RESOLVE, api.core.guard.resolve(url)).await {
        Ok(Err(error @ GuardError::Forbidden(_))) => Err(refuse(error)),
        // A name that is not known yet may be later; each delivery checks again.
        _ => Ok(()),
    }
}

/// 128 random bits as text.
fn secret() -> Result<String, Problem> {
    let mut bytes = [0; 16];
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the system has no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Revisions that a request names in `If-Match`; `None` if any will do.
struct Precondition(Option<header::HeaderValue>);

impl Precondition {
    fn of(headers: &HeaderMap) -> Self {
        Self(headers.get(header::IF_MATCH).cloned())
    }

    fn has(&self, etag: &str) -> bool {
        let Some(wanted) = &self.0 else { return true };
        let is = |one: &str| one.trim() == "*" || one.trim() == etag;
        wanted.to_str().is_ok_and(|list| list.split(',').any(is))
    }
}

/// What waits for the disk is not done on the threads that answer requests.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PutError> + Send + 'static,
) -> Result<T, Problem> {
    let failed = |error: tokio::task::JoinError| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    tokio::task::spawn_blocking(work).await.map_err(failed)?.map_err(|error| match error {
        PutError::Gone(_) => Problem::not_found(error),
        PutError::Changed(etag) => Problem::new(
            StatusCode::PRECONDITION_FAILED,
            format!("If-Match: expected {etag}, the present revision"),
        ),
        PutError::TooMany { .. } => Problem::new(StatusCode::TOO_MANY_REQUESTS, error),
        PutError::Wanted(error) => refused(error),
        PutError::Periods(_) | PutError::Feed(_) => Problem::impossible(error),
        PutError::Store(_) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error),
    })
}

/// Checks what needs neither the disk nor the other subscriptions, and asks for the subscription.
async fn make(
    api: &Arc<Api>,
    subject: Subject,
    version: Version,
    mut wanted: Wanted,
    change: Option<(u64, Precondition)>,
) -> Result<Arc<Entry>, Problem> {
    deadline(api, &mut wanted)?;
    let mut destination = None;
    if let Some(records) = wanted.feed() {
        if records.transport == Transport::UdpBinary {
            destination = Some(vendor::destination(api, &records.callback_reference).await?);
        }
    } else if let Some(url) = wanted.callback.as_ref().filter(|_| !wanted.websocket) {
        check_callback(api, url).await?;
    }
    let secret = if wanted.websocket { Some(secret()?) } else { None };
    let Subject { name: owner, viewer, .. } = subject;
    let asked = Asked { owner, viewer, version, wanted, destination, secret };
    let core = Arc::clone(&api.core);
    let (entry, reader) = blocking(move || match change {
        Some((id, precondition)) => {
            let is_right = |present: &Entry| precondition.has(&present.etag());
            core.put(asked, Some(Revision { id, is_right: &is_right }))
        }
        None => core.put(asked, None),
    })
    .await?;
    if let Delivery::Callback(url) = &entry.delivery {
        tokio::spawn(callback::run(Arc::clone(&api.core), Arc::clone(&entry), url.clone(), reader));
    }
    Ok(entry)
}

/// `POST /subscriptions`.
pub async fn create(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    Extension(version): Extension<Version>,
    headers: HeaderMap,
    content: Body,
) -> Result<Response, Problem> {
    let bytes = body(&api, &headers, content).await?;
    let wanted = Wanted::parse(&bytes, version).map_err(refused)?;
    let entry = make(&api, subject, version, wanted, None).await?;
    tracing::info!(subscription = entry.id, owner = ?entry.owner, kind = entry.subscription.kind().0, "subscribed");
    Ok(answer(&api, &entry, StatusCode::CREATED))
}

/// `GET /subscriptions/{id}`.
pub async fn read(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let entry = find(&api, &subject, &id)?;
    Ok(answer(&api, &entry, StatusCode::OK))
}

/// `PUT /subscriptions/{id}`.
pub async fn update(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    Extension(version): Extension<Version>,
    Id(id): Id,
    headers: HeaderMap,
    content: Body,
) -> Result<Response, Problem> {
    let entry = find(&api, &subject, &id)?;
    let bytes = body(&api, &headers, content).await?;
    let wanted = Wanted::parse(&bytes, version).map_err(refused)?;
    let (is, was) = (wanted.subscription.kind().0, entry.subscription.kind().0);
    if is != was {
        return Err(Problem::impossible(format!("subscriptionType: expected {was}, found {is}")));
    }
    let change = (entry.id, Precondition::of(&headers));
    let entry = make(&api, subject, version, wanted, Some(change)).await?;
    Ok(answer(&api, &entry, StatusCode::OK))
}

/// `DELETE /subscriptions/{id}`.
pub async fn delete(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    Id(id): Id,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let entry = find(&api, &subject, &id)?;
    let (core, precondition) = (Arc::clone(&api.core), Precondition::of(&headers));
    blocking(move || core.delete(entry.id, &|present| precondition.has(&present.etag()))).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
