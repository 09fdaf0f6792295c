//! The interface: MEC 012 under `/rni/v2`, our extension under `/rni/v2/vendor`, and for operators `/health`, `/ready` and `/metrics`.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode, header};
use serde::Serialize;

use self::problem::Problem;
use crate::auth::{Area, AuthError, Authenticator};
use crate::config::Version;
use crate::core::{Core, SourceStatus};
use crate::metrics::RequestLabels;

pub mod problem;
mod queries;
mod subscriptions;
pub mod vendor;

/// What requests share.
#[derive(Debug)]
pub struct Api {
    /// The server's inside.
    pub core: Arc<Core>,
    /// Who asks.
    pub auth: Authenticator,
    /// Requests of each client in the current second.
    rates: Mutex<(Option<Instant>, HashMap<String, u32>)>,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub address: std::net::SocketAddr,
    /// DNS names in its certificate.
    pub names: Arc<[String]>,
}

/// The part of an address that names a resource.
#[derive(Debug)]
pub struct Id(String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(error) => {
                Err(Problem::not_found(format!("there is nothing at this address: {}", error.body_text())))
            }
        }
    }
}

/// Parameters of an address, decoded, in order.
fn parameters(query: Option<&str>) -> Vec<(String, String)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

fn pairs(parameters: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

/// An answer of JSON.
fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let mut answer = Response::new(Body::from(body));
            let kind = header::HeaderValue::from_static("application/json");
            answer.headers_mut().insert(header::CONTENT_TYPE, kind);
            answer
        }
        Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error).into_response(),
    }
}

/// The version that a request names in its header field `Version`, or the configured one.
fn version(api: &Api, headers: &HeaderMap) -> Result<Version, Problem> {
    let Some(value) = headers.get("version") else { return Ok(api.core.config.version) };
    value.to_str().ok().and_then(Version::by_name).ok_or_else(|| {
        Problem::new(StatusCode::NOT_ACCEPTABLE, format!("Version: expected 2.1.1 or 2.2.1, found {value:?}"))
    })
}

impl Api {
    /// With no requests yet.
    pub fn new(core: Arc<Core>, auth: Authenticator) -> Arc<Self> {
        Arc::new(Self { core, auth, rates: Mutex::default() })
    }

    /// Whether a client may ask once more in this second.
    fn may_ask(&self, name: &str) -> bool {
        let Some(most) = self.core.config.limits.requests_per_second else { return true };
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, counts) = &mut *rates;
        if since.is_none_or(|since| since.elapsed().as_secs() >= 1) {
            *since = Some(Instant::now());
            counts.clear();
        }
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        *count <= most
    }

    /// All addresses.
    pub fn router(self: &Arc<Self>) -> Router {
        let area = |area: Area| {
            let api = Arc::clone(self);
            middleware::from_fn(move |request, next| authorise(Arc::clone(&api), area, request, next))
        };
        let queries = Router::new()
            .route("/rab_info", get(queries::rab_info))
            .route("/plmn_info", get(queries::plmn_info))
            .route("/s1_bearer_info", get(queries::s1_bearer_info))
            .route("/layer2_meas", get(queries::layer2_meas))
            .route_layer(area(Area::Queries));
        let subscriptions = Router::new()
            .route("/subscriptions", get(subscriptions::list).post(subscriptions::create))
            .route(
                "/subscriptions/{id}",
                get(subscriptions::read).put(subscriptions::update).delete(subscriptions::delete),
            )
            .route_layer(area(Area::Subscriptions));
        let vendor = Router::new()
            .route("/cell_config", get(vendor::cell_config))
            .route("/tti_meas", get(vendor::tti_meas))
            .route("/users", get(vendor::users))
            .route("/events", get(vendor::events))
            .route("/subscriptions/{id}/delivery", get(vendor::delivery))
            .route_layer(area(Area::Vendor))
            .route("/notifications/{secret}", get(vendor::notifications));
        let interface = Router::new().nest("/queries", queries).merge(subscriptions).nest("/vendor", vendor);
        let mut router = Router::new()
            .nest("/rni/v2", interface.clone())
            .route("/health", get(health))
            .route("/ready", get(ready))
            .route("/metrics", get(metrics));
        // A root with a path of its own: a proxy before the server may leave it in, or take it out.
        if let Some(path) = self.core.config.api_root.as_ref().map(|root| root.path().trim_end_matches('/'))
            && !path.is_empty()
        {
            router = router.nest(&format!("{path}/rni/v2"), interface);
        }
        let api = Arc::clone(self);
        router
            .fallback(async || Problem::not_found("there is nothing at this address"))
            .method_not_allowed_fallback(async || {
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "the address does not have this method")
            })
            .layer(middleware::from_fn(move |request, next| gate(Arc::clone(&api), request, next)))
            .with_state(Arc::clone(self))
    }
}

/// Whether a client takes one of our kinds of content.
fn takes(headers: &HeaderMap) -> bool {
    let mut accepts = headers.get_all(header::ACCEPT).iter().peekable();
    if accepts.peek().is_none() {
        return true;
    }
    let ours = ["*/*", "application/*", "application/json", "text/*", "text/event-stream", "text/plain"];
    accepts.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|kind| {
        let mut parts = kind.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let is_refused = parts
            .any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse::<f64>().is_ok_and(|q| q <= 0.0)));
        !is_refused && ours.iter().any(|own| own.eq_ignore_ascii_case(kind))
    })
}

/// What every request passes.
async fn gate(api: Arc<Api>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let limits = &api.core.config.limits;
    let uri_len = request.uri().path().len() + request.uri().query().map_or(0, str::len);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut answer = match version(&api, request.headers()) {
        _ if uri_len > limits.uri => {
            let most = limits.uri;
            Problem::new(StatusCode::URI_TOO_LONG, format!("expected at most {most} bytes, found {uri_len}"))
                .into_response()
        }
        Err(problem) => problem.into_response(),
        Ok(_) if !takes(request.headers()) => {
            Problem::new(StatusCode::NOT_ACCEPTABLE, "this server answers in application/json")
                .into_response()
        }
        Ok(version) => {
            let mut request = request;
            request.extensions_mut().insert(version);
            let mut answer = next.run(request).await;
            answer.headers_mut().entry("Version").or_insert(header::HeaderValue::from_static(version.name()));
            answer
        }
    };
    if let Some(origin) = &api.core.config.allow_origin
        && let Ok(origin) = header::HeaderValue::try_from(origin)
    {
        answer.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    let status = answer.status().as_u16();
    api.core.metrics.requests.get_or_create(&RequestLabels { status }).inc();
    api.core.metrics.request_seconds.observe(begun.elapsed().as_secs_f64());
    tracing::debug!(%method, %path, status, micros = begun.elapsed().as_micros() as u64, "request");
    answer
}

/// What every request of the interface passes.
async fn authorise(api: Arc<Api>, area: Area, mut request: Request, next: Next) -> Response {
    let names = request.extensions().get::<Peer>().map(|peer| Arc::clone(&peer.names)).unwrap_or_default();
    // Browsers cannot set header fields for server-sent events; RFC 6750, 2.3. The path is relative to the area's.
    let token = (area == Area::Vendor && request.uri().path() == "/events")
        .then(|| parameters(request.uri().query()))
        .and_then(|all| all.into_iter().find(|(name, _)| name == "access_token"))
        .map(|(_, token)| token);
    let subject = api.auth.subject(request.headers(), token.as_deref(), &names, area).await;
    match subject {
        Ok(subject) if api.may_ask(&subject.name) => {
            request.extensions_mut().insert(subject);
            next.run(request).await
        }
        Ok(_) => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many requests in one second").into_response()
        }
        Err(error) => {
            let challenge = match &error {
                AuthError::Missing => "Bearer".to_owned(),
                AuthError::Invalid(_) => "Bearer error=\"invalid_token\"".to_owned(),
                AuthError::Scope(scope) => {
                    format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"")
                }
            };
            let status = match &error {
                AuthError::Scope(_) => StatusCode::FORBIDDEN,
                _ => StatusCode::UNAUTHORIZED,
            };
            Problem::new(status, error).authenticate(challenge).into_response()
        }
    }
}

/// The body of a request: of JSON, whole, in time and within its bound.
async fn body(api: &Api, headers: &HeaderMap, body: Body) -> Result<bytes::Bytes, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let detail = format!("Content-Type: expected application/json, found {kind:?}");
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let limits = &api.core.config.limits;
    let too_large = || {
        let detail = format!("expected a body of at most {} bytes", limits.body);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    // Without waiting for it, if its length is announced.
    if hyper::body::Body::size_hint(&body).lower() > limits.body as u64 {
        return Err(too_large());
    }
    let body = Limited::new(body, limits.body);
    match tokio::time::timeout(limits.body_time, body.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Problem::bad(format!("expected a whole body: {error}"))),
        Err(_) => {
            api.core.metrics.cut_off.inc();
            let detail = format!("expected the body within {:?}", limits.body_time);
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail))
        }
    }
}

/// `GET /health`: whether the server answers, and what it has heard.
async fn health(State(api): State<Arc<Api>>) -> Response {
    let (cells, users, _) = api.core.state().counts();
    let silence = api.core.silence().map(|silence| silence.as_secs_f64());
    let source = |of: &SourceStatus| {
        let SourceStatus { labels, counters, ended } = of;
        serde_json::json!({
            "name": labels.source,
            "connected": counters.is_connected(),
            "ended": ended.load(Ordering::Relaxed),
            "leftOut": counters.left_out(),
        })
    };
    let sources: Vec<_> = api.core.sources.iter().map(source).collect();
    json(&serde_json::json!({
        "status": "ok",
        "cells": cells,
        "users": users,
        "lastUpdateSeconds": silence,
        "sources": sources,
    }))
}

/// `GET /ready`: whether a source has said something in the last ten seconds.
async fn ready(State(api): State<Arc<Api>>) -> Response {
    match api.core.silence() {
        Some(silence) if silence.as_secs_f64() < 10.0 => json(&serde_json::json!({ "status": "ready" })),
        _ => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no source has reported in the last ten seconds")
            .into_response(),
    }
}

/// `GET /metrics`.
async fn metrics(State(api): State<Arc<Api>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], api.core.metrics.text()).into_response()
}
