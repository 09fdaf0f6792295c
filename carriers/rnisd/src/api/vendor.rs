//! The extension: descriptions of cells, records of users, web sockets and server-sent events. Ours.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{RawQuery, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use ranpace_rnis::etsi::{AssociateId, Ecgi, RabQuery};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior};
use url::Url;

use super::problem::Problem;
use super::{Api, Id, json as answer_json, pairs, parameters};
use crate::auth::Subject;
use crate::metrics::Outcome;
use crate::queue::Next;
use crate::subscriptions::Entry;

/// The subprotocol in which each notification has its number, and is acknowledged.
pub const NUMBERED: &str = "ranpace.numbered.v1";
/// Shortest interval of records in server-sent events, in ms. Ours: they are for browsers.
const LEAST_MS: u64 = 20;

/// `GET /vendor/cell_config`.
pub async fn cell_config(State(api): State<Arc<Api>>) -> Response {
    answer_json(&api.core.state().cell_configs())
}

/// Users and cells of a query: the parameters of `rab_info` that name them.
fn selection(query: &[(String, String)]) -> Result<RabQuery, Problem> {
    let named = query.iter().find(|(name, _)| {
        !matches!(
            name.as_str(),
            "cell_id" | "ue_ipv4_address" | "ue_ipv6_address" | "nated_ip_address" | "gtp_teid"
        )
    });
    if let Some((name, _)) = named {
        return Err(Problem::bad(format!(
            "expected cell_id, ue_ipv4_address or another identifier, found {name:?}"
        )));
    }
    RabQuery::parse(pairs(query)).map_err(Problem::bad)
}

/// `GET /vendor/tti_meas`.
pub async fn tti_meas(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query = selection(&parameters(query.as_deref()))?;
    let has = |ids: &[AssociateId], cell: &Ecgi| query.has_user(ids) && query.has_cell(cell);
    let records = api.core.state().records(&subject.viewer, &has);
    Ok(answer_json(&records))
}

/// `GET /vendor/users`.
pub async fn users(State(api): State<Arc<Api>>, Extension(subject): Extension<Subject>) -> Response {
    let users = api.core.state().user_entries(&subject.viewer);
    answer_json(&users)
}

/// `GET /vendor/subscriptions/{id}/delivery`.
pub async fn delivery(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let found = id.parse().ok().and_then(|id| api.core.subscriptions.get(id));
    let entry = found
        .filter(|entry| entry.owner == subject.name)
        .ok_or_else(|| Problem::not_found(format!("there is no subscription {id:?}")))?;
    Ok(answer_json(&entry.queue.counts()))
}

/// Where datagrams go: a host and port that the guard permits.
pub(super) async fn destination(api: &Api, text: &str) -> Result<SocketAddr, Problem> {
    let expected = || Problem::bad(format!("callbackReference: expected udp://HOST:PORT, found {text:?}"));
    let url = Url::parse(text).map_err(|_| expected())?;
    let (host, port) = (url.host_str().ok_or_else(expected)?, url.port().ok_or_else(expected)?);
    if url.scheme() != "udp" {
        return Err(expected());
    }
    let host = host.trim_matches(['[', ']']).to_owned();
    let all = tokio::net::lookup_host((host, port)).await;
    let all: Vec<SocketAddr> = all.map_err(|error| Problem::impossible(error.to_string()))?.collect();
    let permitted = all.iter().find(|address| api.core.guard.permits(address.ip()));
    permitted.copied().ok_or_else(|| {
        Problem::impossible(format!(
            "callbackReference: {text} is neither public nor in `callbacks.allow` of the server's configuration"
        ))
    })
}

/// `GET /vendor/notifications/{secret}`: the web socket of a subscription, which the secret in its address opens.
pub async fn notifications(
    State(api): State<Arc<Api>>,
    Id(secret): Id,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let entry = api
        .core
        .subscriptions
        .by_secret(&secret)
        .ok_or_else(|| Problem::not_found("there is no web socket at this address"))?;
    let upgrade = upgrade.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    // An older connection of the same subscription is closed.
    let reader = entry.queue.begin_reading();
    let upgrade = upgrade.max_message_size(4 << 10).max_frame_size(4 << 10).protocols([NUMBERED]);
    // The server waits for it when it stops.
    let token = api.core.tasks.token();
    Ok(upgrade.on_upgrade(async move |socket| {
        serve_socket(api, entry, reader, socket).await;
        drop(token);
    }))
}

/// A reader's acknowledgement: all notifications up to this number have arrived.
#[derive(Deserialize)]
struct Acknowledged {
    ack: u64,
}

/// Sends notifications until the socket closes, the subscription ends, or another connection takes over. When the subscription is
/// changed, its notifications go on over the same socket.
async fn serve_socket(api: Arc<Api>, mut entry: Arc<Entry>, mut reader: u64, mut socket: WebSocket) {
    let is_numbered =
        socket.protocol().and_then(|name| name.to_str().ok()).is_some_and(|name| name == NUMBERED);
    let core = &api.core;
    let mut sent = 0;
    let most = core.config.limits.write_time;
    // A reader that says nothing is pinged, and one that does not answer is gone, whatever its host says.
    let mut silent_until = Instant::now() + most;
    let mut is_pinged = false;
    loop {
        if core.stop.is_cancelled() {
            break;
        }
        if !entry.queue.is_read_by(reader) {
            let Some(next) = core.subscriptions.next_revision(&entry) else { break };
            (entry, reader) = next;
        }
        // In the numbered form an item waits until it is acknowledged; otherwise until it is written.
        let next = match entry.queue.next() {
            Some(Next::Item(first)) => match entry.queue.after(sent.max(first.number - 1)) {
                Some(item) => Some((item.number, item.body, true)),
                None => None,
            },
            Some(Next::Records(cells)) => {
                let records = core.subscriptions.due(&entry, cells, &core.state, core.now());
                let href = format!("{}/{}", core.subscriptions_href(), entry.id);
                let Some(records) = records else { continue };
                Some((entry.queue.number_record(), entry.render(&records, &href), false))
            }
            None => None,
        };
        if let Some((number, body, is_item)) = next {
            let text = String::from_utf8_lossy(&body);
            let text = if is_numbered {
                let missed = entry.queue.counts().missed;
                format!("{{\"number\":{number},\"missed\":{missed},\"notification\":{text}}}")
            } else {
                text.into_owned()
            };
            match tokio::time::timeout(most, socket.send(Message::Text(text.into()))).await {
                Ok(Ok(())) => {}
                outcome => {
                    if outcome.is_err() {
                        core.metrics.cut_off.inc();
                    }
                    if !is_item {
                        entry.queue.lost_records();
                    }
                    core.metrics.deliver(Outcome::Retried, u64::from(is_item));
                    return;
                }
            }
            core.metrics.deliver(Outcome::Delivered, 1);
            match (is_item, is_numbered) {
                (true, true) => sent = number,
                (true, false) => entry.queue.delivered(number),
                (false, _) => entry.queue.delivered_records(),
            }
            continue;
        }
        if entry.queue.is_closed() && entry.queue.counts().waiting == 0 {
            break;
        }
        tokio::select! {
            () = entry.queue.wait() => {}
            message = socket.recv() => {
                (silent_until, is_pinged) = (Instant::now() + most, false);
                match message {
                    Some(Ok(Message::Text(text))) => {
                        if let Ok(Acknowledged { ack }) = serde_json::from_str(&text) {
                            entry.queue.delivered(ack.min(sent));
                        }
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(_)) => {}
                }
            }
            () = tokio::time::sleep_until(silent_until), if !entry.queue.is_closed() => {
                let ping = tokio::time::timeout(most, socket.send(Message::Ping(Default::default())));
                if is_pinged || !matches!(ping.await, Ok(Ok(()))) {
                    core.metrics.cut_off.inc();
                    return;
                }
                (silent_until, is_pinged) = (Instant::now() + most, true);
            }
            () = core.stop.cancelled() => break,
            // A subscription that has ended waits for the last acknowledgements only so long.
            () = tokio::time::sleep(Duration::from_secs(5)), if entry.queue.is_closed() => break,
        }
    }
    // The other side may be gone already.
    let _ = tokio::time::timeout(most, socket.send(Message::Close(None))).await;
}

/// `GET /vendor/events`: occurrences as they come, and records at an interval (`period_ms`), as server-sent events.
pub async fn events(
    State(api): State<Arc<Api>>,
    Extension(subject): Extension<Subject>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = parameters(query.as_deref());
    query.retain(|(name, _)| name != "access_token");
    let mut period = None;
    for (_, value) in query.iter().filter(|(name, _)| name == "period_ms") {
        let ms = value.parse::<u64>().ok().filter(|ms| (LEAST_MS..=3_600_000).contains(ms));
        let expected = || Problem::bad(format!("period_ms: expected {LEAST_MS} to 3600000, found {value:?}"));
        period = Some(Duration::from_millis(ms.ok_or_else(expected)?));
    }
    query.retain(|(name, _)| name != "period_ms");
    let query = selection(&query)?;
    let news = api.core.events.subscribe();
    let mut ticks = tokio::time::interval_at(Instant::now(), period.unwrap_or(Duration::from_secs(3600)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let until = subject.until;
    let stream = futures_util::stream::unfold((api, subject, query, news, ticks), move |state| async move {
        let (api, subject, query, mut news, mut ticks) = state;
        loop {
            let event = tokio::select! {
                () = api.core.stop.cancelled() => return None,
                one = news.recv() => match one {
                    Ok(happened) => {
                        let seen = subject.viewer.sees(&happened.occurrence.notification);
                        seen.filter(|seen| query.has_user(seen.user().unwrap_or_default())).map(|seen| {
                            let data = serde_json::to_string(&seen).unwrap_or_default();
                            Event::default().event("notification").data(data)
                        })
                    }
                    Err(RecvError::Lagged(missed)) => {
                        Some(Event::default().event("missed").data(json!({ "missed": missed }).to_string()))
                    }
                    Err(RecvError::Closed) => return None,
                },
                _ = ticks.tick(), if period.is_some() => {
                    let has = |ids: &[AssociateId], cell: &Ecgi| query.has_user(ids) && query.has_cell(cell);
                    let records = api.core.state().records(&subject.viewer, &has);
                    let data = serde_json::to_string(&records).unwrap_or_default();
                    Some(Event::default().event("records").data(data))
                }
            };
            if let Some(event) = event {
                return Some((Ok::<_, Infallible>(event), (api, subject, query, news, ticks)));
            }
        }
    });
    // The stream ends with the right to read it.
    let over = async move {
        match until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    };
    let stream = stream.take_until(Box::pin(over));
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}
