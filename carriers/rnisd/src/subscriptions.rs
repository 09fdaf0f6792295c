//! Subscriptions: who gets which notification, where, and until when.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use ranpace_phy::Both;
use ranpace_rnis::etsi::vendor::{Transport, TtiMeas, TtiMeasSubscription};
use ranpace_rnis::etsi::{
    AssociateId, Ecgi, ExpiryLinks, ExpiryNotification, Notification, Occurrence, Subscription, TimeStamp,
};
use ranpace_rnis::{Averaging, Event, Publisher, RadioHint};
use ranpace_units::{Span, Time};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::{Host, Url};

use crate::clock::TimeOfDay;
use crate::config::Version;
use crate::feed_port::{FeedScope, FeedSubscription};
use crate::queue::{Change, Queue};
use crate::source::Slot;
use crate::state::{Happened, State, hints_of};
use crate::store::Kept;
use crate::viewer::Viewer;

/// Views of one notification that are looked through for one that is made already. Ours.
const MOST_VIEWS: usize = 16;

/// Where notifications go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// They are posted to this address.
    Callback(Url),
    /// They go over a web socket whose address contains this secret.
    WebSocket(String),
    /// Records go by the feed.
    Feed,
}

/// A subscription.
#[derive(Debug)]
pub struct Entry {
    /// Its number.
    pub id: u64,
    /// Who made it.
    pub owner: String,
    /// What its owner may see.
    pub viewer: Viewer,
    /// Version of the standard.
    pub version: Version,
    /// What it is about.
    pub subscription: Subscription,
    /// Its representation, without `_links`.
    pub body: Value,
    /// Where its notifications go.
    pub delivery: Delivery,
    /// Its end, since the Unix epoch.
    pub deadline: Option<TimeStamp>,
    /// Changes: its ETag.
    pub revision: u64,
    /// What the feed returned.
    pub feed: Option<Map<String, Value>>,
    /// What waits, which all revisions of a subscription share.
    pub queue: Arc<Queue>,
    /// Whether its end was announced.
    pub noticed: AtomicBool,
    /// The queue's reader when this revision began: a web socket of the revision before goes on as this one.
    first_reader: AtomicU64,
    /// The records that were sent last, for subscriptions to changes.
    sent: Mutex<HashMap<(u8, String), TtiMeas>>,
}

/// The members that all subscriptions have.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Common {
    #[serde(default)]
    callback_reference: Option<String>,
    #[serde(default)]
    expiry_deadline: Option<TimeStamp>,
    #[serde(default)]
    websock_notif_config: Option<WebsockNotifConfig>,
    #[serde(default)]
    request_test_notification: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WebsockNotifConfig {
    #[serde(default)]
    request_websocket_uri: Option<bool>,
}

/// A request for a subscription, parsed.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What it is about, with defaults.
    pub subscription: Subscription,
    /// The representation, without `_links` and `websocketUri`.
    pub body: Value,
    /// Address of callbacks, if any.
    pub callback: Option<Url>,
    /// Whether a web socket is wanted.
    pub websocket: bool,
    /// Whether a test notification is wanted.
    pub test: bool,
    /// Its end.
    pub deadline: Option<TimeStamp>,
}

/// Why a request for a subscription was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WantedError {
    /// It is no subscription: 400.
    #[error("{0}")]
    Malformed(String),
    /// Its members contradict each other, or what there is: 422.
    #[error("{0}")]
    Impossible(String),
}

impl Wanted {
    /// Parses the body of a request.
    ///
    /// # Errors
    ///
    /// If it is no subscription.
    pub fn parse(body: &[u8], version: Version) -> Result<Self, WantedError> {
        let malformed = |error: serde_json::Error| WantedError::Malformed(error.to_string());
        let mut value: Value = serde_json::from_slice(body).map_err(malformed)?;
        let Some(object) = value.as_object_mut() else {
            return Err(WantedError::Malformed("expected an object, found another value".to_owned()));
        };
        object.remove("_links");
        if version == Version::V211 {
            // V2.1.1 has neither.
            object.remove("websockNotifConfig");
            object.remove("requestTestNotification");
        }
        let common: Common = serde_json::from_value(value.clone()).map_err(malformed)?;
        let websocket = common
            .websock_notif_config
            .as_ref()
            .and_then(|config| config.request_websocket_uri)
            .unwrap_or(false);
        // Without a callback there is no place for its address; the objects have one.
        if let Some(object) = value.as_object_mut()
            && websocket
        {
            object.entry("callbackReference").or_insert_with(|| json!(""));
        }
        let mut subscription: Subscription = serde_json::from_value(value).map_err(malformed)?;
        if let Some(reason) = subscription.lacks() {
            return Err(WantedError::Malformed(reason.to_owned()));
        }
        if common.expiry_deadline.is_some_and(|deadline| deadline.nano_seconds >= 1_000_000_000) {
            return Err(WantedError::Malformed(
                "expiryDeadline: expected nanoSeconds below 1000000000".to_owned(),
            ));
        }
        subscription.complete();
        let callback = match common.callback_reference.as_deref() {
            None | Some("") => None,
            Some(text) => Some(Url::parse(text).map_err(|error| {
                WantedError::Malformed(format!("callbackReference: expected a URI, found {text:?}: {error}"))
            })?),
        };
        let records = match &subscription {
            Subscription::VendorTtiMeas(records) => Some(records.transport),
            _ => None,
        };
        let websocket = websocket || records == Some(Transport::Websocket);
        if callback.is_none() && !websocket && records != Some(Transport::SharedMemory) {
            return Err(WantedError::Malformed(
                "expected callbackReference, or websockNotifConfig with requestWebsocketUri".to_owned(),
            ));
        }
        let mut body = serde_json::to_value(&subscription).map_err(malformed)?;
        if let Some(object) = body.as_object_mut() {
            if object.get("callbackReference") == Some(&json!("")) {
                object.remove("callbackReference");
            }
            if websocket {
                object.insert("websockNotifConfig".to_owned(), json!({ "requestWebsocketUri": true }));
            }
            if let Some(test) = common.request_test_notification {
                object.insert("requestTestNotification".to_owned(), json!(test));
            }
            object.remove("_links");
        }
        Ok(Self {
            subscription,
            body,
            callback,
            websocket,
            test: common.request_test_notification.unwrap_or(false),
            deadline: common.expiry_deadline,
        })
    }

    /// Whether records are wanted by the feed.
    pub fn feed(&self) -> Option<&TtiMeasSubscription> {
        match &self.subscription {
            Subscription::VendorTtiMeas(records)
                if matches!(records.transport, Transport::UdpBinary | Transport::SharedMemory) =>
            {
                Some(records)
            }
            _ => None,
        }
    }
}

/// A time as nanoseconds since the Unix epoch.
pub fn nanos(of: TimeStamp) -> u64 {
    of.time().as_nanos()
}

impl Entry {
    /// Itself as the feed hears it; `None` if it is no subscription to the feed.
    pub fn feed_subscription(
        &self,
        destination: Option<SocketAddr>,
        clock: TimeOfDay,
    ) -> Option<FeedSubscription> {
        let records = self.records()?;
        let literal = || {
            let url = Url::parse(&records.callback_reference).ok()?;
            let address = match url.host()? {
                Host::Ipv4(address) => IpAddr::V4(address),
                Host::Ipv6(address) => IpAddr::V6(address),
                Host::Domain(name) => name.parse().ok()?,
            };
            Some(SocketAddr::from((address, url.port()?)))
        };
        let expires = self.deadline.map_or(Time::MAX, |deadline| {
            clock.monotonic(Duration::new(deadline.seconds.into(), deadline.nano_seconds))
        });
        Some(FeedSubscription {
            id: self.id,
            transport: records.transport,
            // Users are added when they are known.
            scope: FeedScope { cells: None, users: Some(Vec::new()) },
            viewer: self.viewer.clone(),
            direction: records.direction.into(),
            period: Span::from_micros(records.period_us),
            delta: records.delta,
            expires,
            destination: destination.or_else(literal),
        })
    }

    /// From what is kept.
    ///
    /// # Errors
    ///
    /// If it is not a subscription, because another version of the program wrote it.
    pub fn of(kept: Kept, queue: Arc<Queue>) -> Result<Self, WantedError> {
        let bytes = kept.body.to_string();
        let wanted = Wanted::parse(bytes.as_bytes(), Version::V221)?;
        let delivery = match (&kept.secret, &wanted.callback) {
            _ if wanted.feed().is_some() => Delivery::Feed,
            (Some(secret), _) => Delivery::WebSocket(secret.clone()),
            (None, Some(url)) => Delivery::Callback(url.clone()),
            (None, None) => return Err(WantedError::Malformed("it has no way of delivery".to_owned())),
        };
        Ok(Self {
            id: kept.id,
            owner: kept.owner,
            viewer: kept.viewer,
            version: kept.version,
            subscription: wanted.subscription,
            body: kept.body,
            delivery,
            deadline: wanted.deadline,
            revision: kept.revision,
            feed: kept.feed,
            queue,
            noticed: AtomicBool::new(false),
            first_reader: AtomicU64::new(0),
            sent: Mutex::default(),
        })
    }

    /// What to keep of it.
    pub fn kept(&self) -> Kept {
        Kept {
            id: self.id,
            owner: self.owner.clone(),
            viewer: self.viewer.clone(),
            version: self.version,
            body: self.body.clone(),
            secret: match &self.delivery {
                Delivery::WebSocket(secret) => Some(secret.clone()),
                _ => None,
            },
            feed: self.feed.clone(),
            revision: self.revision,
        }
    }

    /// Its representation: `href` is its own address, `socket` the root of web sockets' addresses.
    pub fn representation(&self, href: &str, socket: &str) -> Value {
        let mut body = self.body.clone();
        if let Some(object) = body.as_object_mut() {
            object.insert("_links".to_owned(), json!({ "self": { "href": href } }));
            if let Delivery::WebSocket(secret) = &self.delivery {
                let config =
                    json!({ "requestWebsocketUri": true, "websocketUri": format!("{socket}/{secret}") });
                object.insert("websockNotifConfig".to_owned(), config);
            }
            if let Some(feed) = &self.feed {
                object.insert("vendorFeed".to_owned(), Value::Object(feed.clone()));
            }
        }
        body
    }

    /// Its ETag.
    pub fn etag(&self) -> String {
        format!("\"{}-{}\"", self.id, self.revision)
    }

    /// The records that it is about, if it is about records.
    pub fn records(&self) -> Option<&TtiMeasSubscription> {
        match &self.subscription {
            Subscription::VendorTtiMeas(records) => Some(records),
            _ => None,
        }
    }

    /// Whether the filter has a user in a cell.
    pub fn has(&self, ids: &[AssociateId], cell: &Ecgi) -> bool {
        self.records().is_some_and(|of| {
            (of.associate_id.is_empty() || of.associate_id.iter().any(|id| ids.contains(id)))
                && (of.ecgi.is_empty() || of.ecgi.contains(cell))
        })
    }

    /// Leaves out the records that have not changed since they were sent, if only changes are wanted.
    pub fn only_changes(&self, records: &mut Vec<TtiMeas>) {
        if !self.records().is_some_and(|of| of.delta) {
            return;
        }
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        records.retain(|record| {
            let key = (record.associate_id.id_type as u8, record.associate_id.value.clone());
            let plain = TtiMeas { time_stamp: TimeStamp::default(), ..record.clone() };
            sent.insert(key, plain.clone()).as_ref() != Some(&plain)
        });
    }

    /// A notification as JSON, in the form of the subscription's version.
    pub fn render(&self, notification: &Notification, href: &str) -> Bytes {
        let mut value = serde_json::to_value(notification).unwrap_or_default();
        if let (Some(object), Version::V221) = (value.as_object_mut(), self.version) {
            object.insert("_links".to_owned(), json!({ "subscription": { "href": href } }));
        }
        Bytes::from(value.to_string())
    }

    /// A notification in the form of the subscription's version; `text` is it as JSON, in V2.2.1's form without links.
    fn addressed(&self, notification: &Notification, text: &str, href: &str) -> Bytes {
        match (self.version, notification, text.strip_suffix('}')) {
            (Version::V221, _, Some(members)) => {
                let links = json!({ "subscription": { "href": href } });
                Bytes::from(format!("{members},\"_links\":{links}}}"))
            }
            (Version::V211, Notification::NrMeasRepUe(report), _) => {
                self.render(&Notification::NrMeasRepUe(report.clone().in_v2_1_1()), href)
            }
            _ => Bytes::copy_from_slice(text.as_bytes()),
        }
    }

    /// The notice that it is about to end.
    pub fn expiry(&self, href: &str, now: TimeStamp) -> Notification {
        Notification::Expiry(ExpiryNotification {
            links: ExpiryLinks { itself: href.to_owned() },
            expiry_deadline: self.deadline.unwrap_or_default(),
            time_stamp: Some(now),
        })
    }
}

/// Records of one period.
#[derive(Debug)]
struct Pace {
    period: Span,
    publisher: Publisher,
    /// What was published last, by cell. The publisher itself is in the next period already.
    latest: HashMap<u16, Vec<(u32, Both<RadioHint>)>>,
    readers: Vec<Arc<Entry>>,
}

/// All subscriptions.
#[derive(Debug, Default)]
pub struct Subscriptions {
    all: RwLock<HashMap<u64, Arc<Entry>>>,
    paces: Mutex<Vec<Pace>>,
    next: AtomicU64,
}

impl Subscriptions {
    /// None yet; the next one has this number.
    pub fn new(next: u64) -> Self {
        Self { next: AtomicU64::new(next), ..Self::default() }
    }

    /// A number for a new one.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn paces(&self) -> MutexGuard<'_, Vec<Pace>> {
        self.paces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one, or puts it in the place of its older revision, whose delivery ends; returns the number of its queue's next reader.
    pub fn insert(&self, entry: Arc<Entry>) -> u64 {
        self.forget_pace(entry.id);
        if let Some(records) = entry.records().filter(|_| entry.delivery != Delivery::Feed) {
            let period = Span::from_micros(records.period_us);
            let mut paces = self.paces();
            match paces.iter_mut().find(|pace| pace.period == period) {
                Some(pace) => pace.readers.push(Arc::clone(&entry)),
                None => paces.push(Pace {
                    period,
                    publisher: Publisher::new(period, Averaging::Smooth),
                    latest: HashMap::new(),
                    readers: vec![Arc::clone(&entry)],
                }),
            }
        }
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let reader = entry.queue.begin_reading();
        entry.first_reader.store(reader, Ordering::SeqCst);
        all.insert(entry.id, entry);
        reader
    }

    /// The revision after this one, and its reader: for a web socket that nobody has replaced since.
    pub fn next_revision(&self, entry: &Entry) -> Option<(Arc<Entry>, u64)> {
        let next = self.get(entry.id)?;
        let reader = next.first_reader.load(Ordering::SeqCst);
        let goes_on = next.revision > entry.revision && next.delivery == entry.delivery;
        (goes_on && next.queue.is_read_by(reader)).then_some((next, reader))
    }

    /// Removes one; `None` if there is none.
    pub fn remove(&self, id: u64) -> Option<Arc<Entry>> {
        let entry = self.all.write().unwrap_or_else(PoisonError::into_inner).remove(&id)?;
        entry.queue.close();
        self.forget_pace(id);
        Some(entry)
    }

    /// Records are no longer averaged for this one.
    fn forget_pace(&self, id: u64) {
        self.paces().retain_mut(|pace| {
            pace.readers.retain(|reader| reader.id != id);
            !pace.readers.is_empty()
        });
    }

    /// The one with this number.
    pub fn get(&self, id: u64) -> Option<Arc<Entry>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// The one whose web socket has this secret.
    pub fn by_secret(&self, secret: &str) -> Option<Arc<Entry>> {
        // Every secret is compared in full, whether or not one was found.
        let mut found = None;
        for entry in self.all.read().unwrap_or_else(PoisonError::into_inner).values() {
            if let Delivery::WebSocket(own) = &entry.delivery
                && own.len() == secret.len()
                && own.bytes().zip(secret.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
            {
                found = Some(Arc::clone(entry));
            }
        }
        found
    }

    /// All, by number.
    pub fn list(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<Arc<Entry>> =
            self.all.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        all.sort_by_key(|entry| entry.id);
        all
    }

    /// Those of which a store lacks something, with what it lacks.
    pub fn changes(&self) -> Vec<(Arc<Entry>, Change)> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.values().filter_map(|entry| Some((Arc::clone(entry), entry.queue.change()?))).collect()
    }

    /// Number of all, and of those of an owner.
    pub fn counts(&self, owner: &str) -> (usize, usize) {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        (all.len(), all.values().filter(|entry| entry.owner == owner).count())
    }

    /// Whether records of this period are averaged, and how many periods are.
    pub fn periods(&self, period: Span) -> (bool, usize) {
        let paces = self.paces();
        (paces.iter().any(|pace| pace.period == period), paces.len())
    }

    /// Something happened: it waits for everybody whose filter selects it and who may see the user. `href` is the address of the
    /// subscriptions. Returns how many were notified, and how many older notifications were dropped for it.
    pub fn notify(&self, happened: &Happened, href: &str) -> (u64, u64) {
        let (mut notified, mut dropped) = (0, 0);
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        // What a viewer sees, and that as JSON. Most subscribers see the same, which is then made once.
        let mut views: Vec<(&Viewer, Option<(Occurrence, String)>)> = Vec::new();
        for entry in all.values() {
            let known = views.iter().position(|(viewer, _)| **viewer == entry.viewer);
            let at = known.unwrap_or_else(|| {
                // A filter by an identifier that its owner may not see must not reveal whose it is.
                let seen = entry.viewer.sees(&happened.occurrence.notification).map(|notification| {
                    let text = serde_json::to_string(&notification).unwrap_or_default();
                    (Occurrence { notification, qci: happened.occurrence.qci }, text)
                });
                views.truncate(MOST_VIEWS - 1);
                views.push((&entry.viewer, seen));
                views.len() - 1
            });
            let Some((seen, text)) = &views[at].1 else { continue };
            if !entry.subscription.selects(seen) {
                continue;
            }
            notified += 1;
            let href = format!("{href}/{}", entry.id);
            dropped += u64::from(entry.queue.push(entry.addressed(&seen.notification, text, &href)));
        }
        (notified, dropped)
    }

    /// A slot has ended: records that are due are announced to their readers. Returns how many were too slow for those before.
    pub fn on_slot(&self, slot: &Slot) -> u64 {
        let mut late = 0;
        let report = slot.report();
        for pace in self.paces().iter_mut() {
            if pace.publisher.on_report(&report) {
                pace.latest.insert(slot.cell.cell, hints_of(&pace.publisher, slot.cell.cell));
                late += pace.readers.iter().filter(|reader| reader.queue.due(slot.cell.cell)).count() as u64;
                pace.publisher.published(slot.cell.cell);
            }
        }
        late
    }

    /// Something happened to a user.
    pub fn on_event(&self, event: &Event) {
        self.paces().iter_mut().for_each(|pace| pace.publisher.on_event(event));
    }

    /// The records of cells that are due for a reader, as they are now; `None` if there are none.
    pub fn due(
        &self,
        entry: &Entry,
        cells: impl IntoIterator<Item = u16>,
        state: &Mutex<State>,
        now: Time,
    ) -> Option<Notification> {
        let period = Span::from_micros(entry.records()?.period_us);
        let paces = self.paces();
        let pace = paces.iter().find(|pace| pace.period == period)?;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |ids: &[AssociateId], cell: &Ecgi| entry.has(ids, cell);
        let mut meas = Vec::new();
        for cell in cells {
            let Some(hints) = pace.latest.get(&cell) else { continue };
            meas.extend(state.records_of(hints, cell, &entry.viewer, &has));
        }
        let time_stamp = Some(state.time_stamp(now));
        drop(state);
        drop(paces);
        entry.only_changes(&mut meas);
        (!meas.is_empty()).then_some(Notification::VendorTtiMeas { meas, time_stamp })
    }
}
