//! Notifications by HTTP: posted to the callback's address, one after the other, each until it is answered or given up.
//!
//! Beside the standard's object, whose members are the standard's alone, two header fields say what its reader needs to find gaps:
//! [`NUMBER`], the number of the notification, and [`MISSED`], how many notifications and records it has missed so far.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use url::Url;

use super::client::Connection;
use crate::core::Core;
use crate::metrics::Outcome;
use crate::queue::Next;
use crate::subscriptions::Entry;

/// Header field with a notification's number.
pub const NUMBER: &str = "Ranpace-Notification";
/// Header field with the count of what was missed.
pub const MISSED: &str = "Ranpace-Missed";
/// How often a notification is sent at most, if an endpoint answers with an error or not at all. Ours.
const ATTEMPTS: u32 = 12;
/// How long after its end a subscription's last notifications are still tried. Ours.
const LAST: Duration = Duration::from_secs(5);

/// Delivers as this reader of the queue, until the subscription ends or has another revision.
pub async fn run(core: Arc<Core>, entry: Arc<Entry>, url: Url, reader: u64) {
    let mut connection = None;
    let mut failures = 0_u32;
    let mut ends = None;
    while entry.queue.is_read_by(reader) {
        if entry.queue.is_closed() {
            let ends = *ends.get_or_insert_with(|| Instant::now() + LAST);
            if Instant::now() > ends {
                return;
            }
        }
        let Some(next) = entry.queue.next() else {
            if entry.queue.is_closed() {
                return;
            }
            entry.queue.wait().await;
            continue;
        };
        let (number, body, is_item) = match next {
            Next::Item(item) => (item.number, item.body, true),
            Next::Records(cells) => {
                let now = core.now();
                let Some(records) = core.subscriptions.due(&entry, cells, &core.state, now) else { continue };
                let href = format!("{}/{}", core.subscriptions_href(), entry.id);
                (entry.queue.number_record(), entry.render(&records, &href), false)
            }
        };
        let outcome = post(&core, &entry, &mut connection, &url, number, body).await;
        match outcome {
            Ok(()) => {
                failures = 0;
                core.metrics.deliver(Outcome::Delivered, 1);
                if is_item {
                    entry.queue.delivered(number);
                } else {
                    entry.queue.delivered_records();
                }
            }
            Err(reason) => {
                connection = None;
                failures += 1;
                tracing::debug!(subscription = entry.id, number, %reason, failures, "a callback failed");
                if !is_item {
                    entry.queue.lost_records();
                    core.metrics.deliver(Outcome::GivenUp, 1);
                } else if failures >= ATTEMPTS {
                    tracing::warn!(subscription = entry.id, number, %reason, "a notification was given up");
                    entry.queue.give_up(number);
                    core.metrics.deliver(Outcome::GivenUp, 1);
                    failures = 0;
                } else {
                    core.metrics.deliver(Outcome::Retried, 1);
                }
                let callbacks = &core.config.callbacks;
                let factor = 1_u32 << failures.saturating_sub(1).min(20);
                let pause = callbacks.retry.saturating_mul(factor).min(callbacks.retry_at_most);
                let was_closed = entry.queue.is_closed();
                let over = tokio::time::sleep(pause);
                tokio::pin!(over);
                // The end of the subscription, or of this revision, ends the pause.
                while entry.queue.is_read_by(reader) && entry.queue.is_closed() == was_closed {
                    tokio::select! {
                        () = &mut over => break,
                        () = entry.queue.wait() => {}
                    }
                }
            }
        }
    }
}

/// Posts one notification.
async fn post(
    core: &Core,
    entry: &Entry,
    connection: &mut Option<Connection>,
    url: &Url,
    number: u64,
    body: Bytes,
) -> Result<(), String> {
    let headers = [
        (NUMBER, number.to_string()),
        (MISSED, entry.queue.counts().missed.to_string()),
        ("Version", entry.version.name().to_owned()),
    ];
    let answer = core.client.request(connection, Method::POST, url, &headers, body).await;
    match answer {
        Ok(answer) if answer.status.is_success() => Ok(()),
        Ok(answer) => Err(format!("the endpoint answered {}", answer.status)),
        Err(error) => Err(error.to_string()),
    }
}
