//! Subscriptions: MEC 012, 7.6 and 7.8.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use hyper::{HeaderMap, StatusCode, header};
use ranpace_rnis::etsi::{
    LinkType, Notification, SubscriptionLink, SubscriptionLinkList, SubscriptionLinks, TimeStamp,
};
use ranpace_units::Span;
use ring::rand::{SecureRandom as _, SystemRandom};
use url::Url;

use super::problem::Problem;
use super::{Api, body, json, parameters, vendor};
use crate::auth::Subject;
use crate::config::Version;
use crate::deliver::callback;
use crate::deliver::guard::GuardError;
use crate::store::Kept;
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

/// Checks a request, and makes the subscription of it. `before` is its older revision.
async fn make(
    api: &Arc<Api>,
    subject: &Subject,
    version: Version,
    mut wanted: Wanted,
    before: Option<&Entry>,
) -> Result<Arc<Entry>, Problem> {
    deadline(api, &mut wanted)?;
    let is_feed = wanted.feed().is_some();
    if let Some(url) = wanted.callback.as_ref().filter(|_| !wanted.websocket && !is_feed) {
        check_callback(api, url).await?;
    }
    if let ranpace_rnis::etsi::Subscription::VendorTtiMeas(records) = &wanted.subscription
        && !is_feed
    {
        let most = api.core.config.subscriptions.periods;
        let (is_there, count) = api.core.subscriptions.periods(Span::from_micros(records.period_us));
        if !is_there && count >= most {
            let detail = format!("period_us: expected one of the {most} periods in use, or fewer periods");
            return Err(Problem::impossible(detail));
        }
    }
    let secret = match before.map(|before| &before.delivery) {
        Some(Delivery::WebSocket(known)) if wanted.websocket => Some(known.clone()),
        _ if wanted.websocket => Some(secret()?),
        _ => None,
    };
    let (items, counts) = before.map(|before| before.queue.take()).unwrap_or_default();
    let kept = Kept {
        id: before.map_or_else(|| api.core.subscriptions.number(), |before| before.id),
        owner: subject.name.clone(),
        viewer: subject.viewer.clone(),
        version,
        body: wanted.body,
        secret,
        feed: before.and_then(|before| before.feed.clone()),
        revision: before.map_or(1, |before| before.revision + 1),
        number: counts.number,
        missed: counts.missed,
    };
    let mut entry = Entry::of(kept, api.core.config.callbacks.queue, items).map_err(refused)?;
    if is_feed {
        vendor::open_feed(api, &mut entry).await?;
    }
    if let Some(store) = &api.core.store {
        let (store, kept) = (Arc::clone(store), entry.kept());
        let written = tokio::task::spawn_blocking(move || store.put(&kept)).await;
        let failed = |error: String| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error);
        written.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
    }
    let entry = Arc::new(entry);
    if wanted.test {
        let href = format!("{}/{}", api.core.subscriptions_href(), entry.id);
        entry.queue.push(entry.render(&Notification::Test(Default::default()), &href));
    }
    api.core.subscriptions.insert(Arc::clone(&entry));
    deliver(api, &entry);
    Ok(entry)
}

/// Begins the delivery of a subscription's notifications.
pub fn deliver(api: &Arc<Api>, entry: &Arc<Entry>) {
    if let Delivery::Callback(url) = &entry.delivery {
        tokio::spawn(callback::run(Arc::clone(&api.core), Arc::clone(entry), url.clone()));
    }
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
    let limits = &api.core.config.subscriptions;
    let (all, own) = api.core.subscriptions.counts(&subject.name);
    if all >= limits.most || own >= limits.most_per_client {
        let detail = format!(
            "expected at most {} subscriptions of a client and {} of all, found {own} and {all}",
            limits.most_per_client, limits.most
        );
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    }
    let entry = make(&api, &subject, version, wanted, None).await?;
    tracing::info!(subscription = entry.id, owner = %entry.owner, kind = entry.subscription.kind().0, "subscribed");
    Ok(answer(&api, &entry, StatusCode::CREATED))
}

/// `GET /subscriptions/{id}`.
pub async fn read(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let entry = find(&api, &subject, &id)?;
    Ok(answer(&api, &entry, StatusCode::OK))
}

/// Whether a request that names a revision names the present one.
fn check_revision(headers: &HeaderMap, entry: &Entry) -> Result<(), Problem> {
    let Some(wanted) = headers.get(header::IF_MATCH) else { return Ok(()) };
    let etag = entry.etag();
    let is = |one: &str| one.trim() == "*" || one.trim() == etag;
    if wanted.to_str().is_ok_and(|list| list.split(',').any(is)) {
        return Ok(());
    }
    let detail = format!("If-Match: expected {etag}, found {wanted:?}");
    Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail))
}

/// `PUT /subscriptions/{id}`.
pub async fn update(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    Extension(version): Extension<Version>,
    Path(id): Path<String>,
    headers: HeaderMap,
    content: Body,
) -> Result<Response, Problem> {
    let entry = find(&api, &subject, &id)?;
    let bytes = body(&api, &headers, content).await?;
    let wanted = Wanted::parse(&bytes, version).map_err(refused)?;
    check_revision(&headers, &entry)?;
    let (is, was) = (wanted.subscription.kind().0, entry.subscription.kind().0);
    if is != was {
        return Err(Problem::impossible(format!("subscriptionType: expected {was}, found {is}")));
    }
    let entry = make(&api, &subject, version, wanted, Some(&entry)).await?;
    Ok(answer(&api, &entry, StatusCode::OK))
}

/// `DELETE /subscriptions/{id}`.
pub async fn delete(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let entry = find(&api, &subject, &id)?;
    check_revision(&headers, &entry)?;
    // What waits is not delivered: nobody wants it any more.
    entry.queue.take();
    let core = Arc::clone(&api.core);
    let ended = tokio::task::spawn_blocking(move || core.end(entry.id)).await;
    match ended {
        Ok(true) => Ok(StatusCode::NO_CONTENT.into_response()),
        _ => Err(Problem::not_found(format!("there is no subscription {id:?}"))),
    }
}
