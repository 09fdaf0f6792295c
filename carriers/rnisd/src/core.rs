//! What updates change, and who has to be notified: between the sources' threads and the requests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use ranpace_rnis::etsi::vendor::Transport;
use ranpace_rnis::etsi::{Notification, Subscription, TimeStamp};
use ranpace_units::{Span, Time};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{self, TimeOfDay};
use crate::config::{Config, Version};
use crate::deliver::client::Client;
use crate::deliver::guard::Guard;
use crate::feed_port::{FeedPort, FeedRefused, FeedScope};
use crate::metrics::{Metrics, Outcome, SourceLabels};
use crate::queue::{Change, Queue};
use crate::registry::Registry;
use crate::source::{Counters, Update};
use crate::state::{Happened, State};
use crate::store::{Kept, Loaded, Store, StoreError};
use crate::subscriptions::{Delivery, Entry, Subscriptions, Wanted, WantedError};
use crate::viewer::Viewer;

/// Occurrences that wait for a slow reader of server-sent events before it misses some.
const EVENTS: usize = 1024;
/// How often what waits is kept. What came since then, and was not delivered, is lost with a crash: its numbers are left out.
const KEEP: Duration = Duration::from_millis(50);
/// Numbers left out after a restart: the gap tells a subscriber that it may have missed something, and no number that was
/// delivered but not yet kept is used again. At a notification each millisecond they last 17 minutes. Ours.
const LEFT_OUT: u64 = 1 << 20;

/// Longest body of an endpoint's answer to a notification, in bytes: it should be empty. Ours.
const LONGEST_ANSWER: usize = 4 << 10;

/// A subscription that is asked for.
#[derive(Debug)]
pub struct Asked {
    /// Who asks.
    pub owner: String,
    /// What it may see.
    pub viewer: Viewer,
    /// Version of the standard.
    pub version: Version,
    /// What it asks for.
    pub wanted: Wanted,
    /// Where datagrams go, if they do.
    pub destination: Option<SocketAddr>,
    /// The secret of a web socket's address, should it need a new one.
    pub secret: Option<String>,
}

/// The subscription that shall be changed.
pub struct Revision<'a> {
    /// Its number.
    pub id: u64,
    /// Whether the present revision is the one that the change is meant for.
    pub is_right: &'a dyn Fn(&Entry) -> bool,
}

impl std::fmt::Debug for Revision<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Revision").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why a subscription was not added, changed or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// There is none: 404.
    #[error("there is no subscription {0}")]
    Gone(u64),
    /// It has another revision: 412.
    #[error("its ETag is {0}")]
    Changed(String),
    /// A bound is reached: 429.
    #[error("expected at most {most_own} subscriptions of a client and {most} of all, found {own} and {all}")]
    TooMany {
        /// Of this client.
        own: usize,
        /// The bound of a client.
        most_own: usize,
        /// Of all.
        all: usize,
        /// The bound of all.
        most: usize,
    },
    /// Too many different periods: 422.
    #[error("period_us: expected one of the {0} periods in use, or fewer periods")]
    Periods(usize),
    /// It is no subscription.
    #[error(transparent)]
    Wanted(#[from] WantedError),
    /// The feed refused: 422.
    #[error(transparent)]
    Feed(#[from] FeedRefused),
    /// The disk: 500.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A source, as others see it.
#[derive(Debug)]
pub struct SourceStatus {
    /// Its name, in metrics and the log.
    pub labels: SourceLabels,
    /// What it counts.
    pub counters: Arc<Counters>,
    /// Whether it has ended for good: a recording that was played, or a failure.
    pub ended: AtomicBool,
}

/// The server's inside.
pub struct Core {
    /// The configuration.
    pub config: Config,
    registry: Mutex<Registry>,
    feed: Mutex<Option<Box<dyn FeedPort>>>,
    /// What is known.
    pub state: Mutex<State>,
    /// Subscriptions.
    pub subscriptions: Subscriptions,
    /// Held while one is added, changed or ended, so that bounds and revisions are those of one moment, in memory and on the disk.
    changing: Mutex<()>,
    /// Counters.
    pub metrics: Metrics,
    /// Requests to others.
    pub client: Client,
    /// Where callbacks may go.
    pub guard: Guard,
    /// What survives.
    pub store: Option<Arc<Store>>,
    /// Root of addresses in answers: `http://HOST:PORT`, without a slash at its end.
    root: RwLock<String>,
    /// What happens, for readers of server-sent events.
    pub events: broadcast::Sender<Arc<Happened>>,
    /// When the sources last said something.
    last_update: AtomicU64,
    /// The sources.
    pub sources: Vec<SourceStatus>,
    /// Cancelled when the server stops.
    pub stop: CancellationToken,
    /// What is waited for when the server stops: connections, and the registration at a platform.
    pub tasks: TaskTracker,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Core").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a thread that panicked left is consistent: every change is made of complete steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    /// With nothing known.
    ///
    /// # Errors
    ///
    /// If the store, the certificates of callbacks or the clock cannot be read.
    pub fn new(
        config: Config,
        sources: Vec<SourceStatus>,
        mut feed: Option<Box<dyn FeedPort>>,
    ) -> Result<Arc<Self>, String> {
        let clock = TimeOfDay::read().map_err(|error| error.to_string())?;
        let guard = Guard::new(config.callbacks.allow.clone());
        let client =
            Client::new(guard.clone(), config.callbacks.ca.as_deref(), config.callbacks.answer_time)?
                .with_longest(LONGEST_ANSWER);
        let store = config.data.as_deref().map(Store::open).transpose().map_err(|error| error.to_string())?;
        let (mut loaded, next) = match &store {
            Some(store) => store.load().map_err(|error| error.to_string())?,
            None => (Vec::new(), 1),
        };
        let subscriptions = Subscriptions::new(next);
        for one in &mut loaded {
            one.number += LEFT_OUT;
        }
        if let Some(store) = &store {
            // Before any of these numbers is used: a second crash must not bring them again.
            let kept = |one: &Loaded| {
                let Loaded { ref items, number, missed, .. } = *one;
                let first = items.first().map_or(number + 1, |item| item.number);
                (one.kept.id, Change { first, added: Vec::new(), number, missed })
            };
            let kept: Vec<(u64, Change)> = loaded.iter().map(kept).collect();
            store.keep(kept.iter().map(|(id, change)| (*id, change))).map_err(|error| error.to_string())?;
        }
        for Loaded { mut kept, items, number, missed } in loaded {
            let id = kept.id;
            // What the configuration says of its owner may have changed.
            if let Some(viewer) = config.viewer(&kept.owner) {
                kept.viewer = viewer;
            }
            let queue = Arc::new(Queue::new(config.callbacks.queue, number, missed, items));
            match Entry::of(kept, queue) {
                Ok(mut entry) => {
                    if entry.delivery == Delivery::Feed
                        && let Some(feed) = &mut feed
                        && let Some(asked) = entry.feed_subscription(None, clock)
                    {
                        match feed.open(&asked, entry.feed.as_ref()) {
                            Ok(answer) => entry.feed = Some(answer),
                            Err(error) => {
                                tracing::warn!(subscription = id, %error, "a subscription to the feed could not be opened again");
                            }
                        }
                    }
                    subscriptions.insert(Arc::new(entry));
                }
                Err(error) => tracing::warn!(subscription = id, %error, "a kept subscription cannot be read"),
            }
        }
        let period = Span::from_nanos(u64::try_from(config.measures.period.as_nanos()).unwrap_or(u64::MAX));
        let mut metrics = Metrics::default();
        if let Some(feed) = &feed {
            metrics.add_feed(&feed.metrics());
        }
        let core = Self {
            registry: Mutex::default(),
            feed: Mutex::new(feed),
            state: Mutex::new(State::new(period, clock)),
            subscriptions,
            changing: Mutex::default(),
            metrics,
            client,
            guard,
            store: store.map(Arc::new),
            root: RwLock::new(String::new()),
            events: broadcast::channel(EVENTS).0,
            last_update: AtomicU64::new(0),
            sources,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            config,
        };
        Ok(Arc::new(core))
    }

    /// The root of addresses in answers.
    pub fn root(&self) -> String {
        self.root.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the root, when the address of the listener is known.
    pub fn set_root(&self, root: &str) {
        let root = root.trim_end_matches('/').to_owned();
        *self.root.write().unwrap_or_else(PoisonError::into_inner) = root;
    }

    /// The address of the subscriptions.
    pub fn subscriptions_href(&self) -> String {
        format!("{}/rni/v2/subscriptions", self.root())
    }

    /// The root of web sockets' addresses.
    pub fn sockets_href(&self) -> String {
        let root = self.root();
        let root = root.strip_prefix("http").map_or_else(|| root.clone(), |rest| format!("ws{rest}"));
        format!("{root}/rni/v2/vendor/notifications")
    }

    /// What is known, locked.
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The feed, locked.
    pub fn feed(&self) -> MutexGuard<'_, Option<Box<dyn FeedPort>>> {
        lock(&self.feed)
    }

    /// The time now, of the clock of all updates.
    pub fn now(&self) -> Time {
        // The clock was read when the server started, so that it is there.
        clock::now().unwrap_or(Time::ZERO)
    }

    /// The time now, as the standard writes it.
    pub fn time_stamp(&self) -> TimeStamp {
        self.state().time_stamp(self.now())
    }

    /// An update of a source, on the source's thread.
    pub fn update(&self, source: usize, name: &SourceLabels, update: Update) {
        self.last_update.store(self.now().as_nanos(), Ordering::Relaxed);
        let Some(update) = lock(&self.registry).translate(source, update) else {
            self.metrics.refused_updates.get_or_create(name).inc();
            return;
        };
        self.metrics.updates.get_or_create(name).inc();
        self.apply(source, &update);
    }

    /// An update in the server's numbers.
    fn apply(&self, source: usize, update: &Update) {
        if let Some(feed) = self.feed().as_mut() {
            feed.on_update(update);
        }
        let mut happened = Vec::new();
        self.state().on_update(source, update, self.now(), &mut happened);
        match update {
            Update::Slot(slot) => {
                let late = self.subscriptions.on_slot(slot);
                self.metrics.deliver(Outcome::Dropped, late);
            }
            Update::Event(event) => self.subscriptions.on_event(event),
            _ => {}
        }
        happened.into_iter().for_each(|one| self.notify(one));
        if matches!(update, Update::Cell(_) | Update::User(_)) {
            self.rescope();
        }
    }

    fn notify(&self, happened: Happened) {
        let (notified, dropped) = self.subscriptions.notify(&happened, &self.subscriptions_href());
        self.metrics.notifications.inc_by(notified);
        self.metrics.deliver(Outcome::Dropped, dropped);
        // Nobody may be listening.
        let _ = self.events.send(Arc::new(happened));
    }

    /// Users that the feed's subscriptions cover may have changed.
    fn rescope(&self) {
        let mut feed = self.feed();
        let Some(feed) = feed.as_mut() else { return };
        for entry in self.subscriptions.list() {
            if entry.delivery == Delivery::Feed {
                feed.rescope(entry.id, &self.scope(&entry));
            }
        }
    }

    /// What a subscription to the feed covers.
    pub fn scope(&self, entry: &Entry) -> FeedScope {
        let Some(of) = entry.records() else { return FeedScope::default() };
        // Nothing depends on the users that are known, and no record has to be looked for among them.
        if of.associate_id.is_empty() && of.ecgi.is_empty() && entry.viewer == Viewer::default() {
            return FeedScope::default();
        }
        let (users, cells) = self.state().scope(&entry.viewer, &of.associate_id, &of.ecgi);
        FeedScope { users: Some(users), cells: (!of.ecgi.is_empty()).then_some(cells) }
    }

    /// Subscriptions that are about to end are told so, and those whose end has come end; once in a while.
    pub fn expire(&self) {
        let Ok(clock) = TimeOfDay::read() else { return };
        self.state().set_clock(clock);
        self.end_silence();
        let mut happened = Vec::new();
        self.state().settle(self.now(), &mut happened);
        happened.into_iter().for_each(|one| self.notify(one));
        let now = self.time_stamp();
        let now_ns = crate::subscriptions::nanos(now);
        let notice = u64::try_from(self.config.subscriptions.expiry_notice.as_nanos()).unwrap_or(u64::MAX);
        // A change that is under way may move an end.
        let _alone = lock(&self.changing);
        let mut over = Vec::new();
        for entry in self.subscriptions.list() {
            let Some(deadline) = entry.deadline.map(crate::subscriptions::nanos) else { continue };
            if now_ns.saturating_add(notice) >= deadline && !entry.noticed.swap(true, Ordering::Relaxed) {
                let href = format!("{}/{}", self.subscriptions_href(), entry.id);
                let notification = entry.expiry(&href, now);
                self.metrics.notifications.inc();
                entry.queue.push(entry.render(&notification, &href));
            }
            if now_ns >= deadline {
                tracing::info!(subscription = entry.id, "a subscription has expired");
                over.push(entry.id);
            }
        }
        self.end(&over);
        let (cells, users, bearers) = self.state().counts();
        self.metrics.cells.set(cells as i64);
        self.metrics.users.set(users as i64);
        self.metrics.bearers.set(bearers as i64);
        self.metrics.subscriptions.set(self.subscriptions.counts("").0 as i64);
    }

    /// Users of cells of which nothing comes any more leave them.
    fn end_silence(&self) {
        let silence =
            Span::from_nanos(u64::try_from(self.config.measures.silence.as_nanos()).unwrap_or(u64::MAX));
        let is_connected =
            |source: usize| self.sources.get(source).is_none_or(|source| source.counters.is_connected());
        let departures = self.state().departures(silence, self.now(), &is_connected);
        if departures.is_empty() {
            return;
        }
        tracing::warn!(
            users = departures.len(),
            ?silence,
            "users are gone: nothing comes from their cells any more"
        );
        for event in departures {
            let source = self.state().source(event.cell);
            self.apply(source, &Update::Event(event));
        }
    }

    /// Adds a subscription, or changes one, and returns it when it is on the disk, with the number of the reader that shall deliver it.
    ///
    /// # Errors
    ///
    /// If a bound is reached, the present revision is not the right one, or the feed or the store refuses.
    pub fn put(&self, asked: Asked, change: Option<Revision<'_>>) -> Result<(Arc<Entry>, u64), PutError> {
        let _alone = lock(&self.changing);
        let Asked { owner, viewer, version, wanted, destination, secret } = asked;
        let limits = &self.config.subscriptions;
        let before = match change {
            Some(Revision { id, is_right }) => {
                let before = self.subscriptions.get(id).ok_or(PutError::Gone(id))?;
                if !is_right(&before) {
                    return Err(PutError::Changed(before.etag()));
                }
                Some(before)
            }
            None => {
                let (all, own) = self.subscriptions.counts(&owner);
                if all >= limits.most || own >= limits.most_per_client {
                    let (most, most_own) = (limits.most, limits.most_per_client);
                    return Err(PutError::TooMany { own, most_own, all, most });
                }
                None
            }
        };
        if let Subscription::VendorTtiMeas(records) = &wanted.subscription
            && wanted.feed().is_none()
        {
            let (is_there, count) = self.subscriptions.periods(Span::from_micros(records.period_us));
            if !is_there && count >= limits.periods {
                return Err(PutError::Periods(limits.periods));
            }
        }
        let secret = match before.as_ref().map(|before| &before.delivery) {
            Some(Delivery::WebSocket(known)) if wanted.websocket => Some(known.clone()),
            _ => secret.filter(|_| wanted.websocket),
        };
        let test = wanted.test;
        let kept = Kept {
            id: before.as_ref().map_or_else(|| self.subscriptions.number(), |before| before.id),
            owner,
            viewer,
            version,
            body: wanted.body,
            secret,
            feed: before.as_ref().and_then(|before| before.feed.clone()),
            revision: before.as_ref().map_or(1, |before| before.revision + 1),
        };
        let queue = match &before {
            Some(before) => Arc::clone(&before.queue),
            None => Arc::new(Queue::new(self.config.callbacks.queue, 0, 0, [])),
        };
        let mut entry = Entry::of(kept, queue)?;
        if entry.delivery == Delivery::Feed {
            self.open_feed(&mut entry, destination)?;
        } else if let Some(before) = before.filter(|before| before.delivery == Delivery::Feed)
            && let Some(feed) = self.feed().as_mut()
        {
            feed.close(before.id);
        }
        if let Some(store) = &self.store
            && let Err(error) = store.put(&entry.kept())
        {
            self.metrics.store_failures.inc();
            if entry.delivery == Delivery::Feed
                && let Some(feed) = self.feed().as_mut()
            {
                feed.close(entry.id);
            }
            return Err(PutError::Store(error));
        }
        let entry = Arc::new(entry);
        if test {
            let href = format!("{}/{}", self.subscriptions_href(), entry.id);
            entry.queue.push(entry.render(&Notification::Test(Default::default()), &href));
        }
        let reader = self.subscriptions.insert(Arc::clone(&entry));
        Ok((entry, reader))
    }

    /// Opens a subscription to the feed, or changes it.
    fn open_feed(&self, entry: &mut Entry, destination: Option<SocketAddr>) -> Result<(), PutError> {
        let clock = TimeOfDay::read().map_err(|error| FeedRefused::System(error.to_string()))?;
        let Some(mut asked) = entry.feed_subscription(destination, clock) else {
            return Ok(());
        };
        asked.scope = self.scope(entry);
        let mut feed = self.feed();
        let Some(feed) = feed.as_mut() else {
            let name =
                if asked.transport == Transport::SharedMemory { "shared-memory" } else { "udp-binary" };
            return Err(FeedRefused::NoSuchTransport(name).into());
        };
        entry.feed = Some(feed.open(&asked, entry.feed.as_ref())?);
        Ok(())
    }

    /// Ends a subscription if `is_right` says so of its present revision; what waits is not delivered. Returns when the store has
    /// forgotten it.
    ///
    /// # Errors
    ///
    /// If there is none, or it has another revision.
    pub fn delete(&self, id: u64, is_right: &dyn Fn(&Entry) -> bool) -> Result<(), PutError> {
        let _alone = lock(&self.changing);
        let entry = self.subscriptions.get(id).ok_or(PutError::Gone(id))?;
        if !is_right(&entry) {
            return Err(PutError::Changed(entry.etag()));
        }
        entry.queue.clear();
        self.end(&[id]);
        Ok(())
    }

    /// Ends subscriptions, in memory and on the disk.
    fn end(&self, ids: &[u64]) {
        let ended: Vec<u64> = ids
            .iter()
            .filter_map(|id| self.subscriptions.remove(*id))
            .map(|entry| {
                if entry.delivery == Delivery::Feed
                    && let Some(feed) = self.feed().as_mut()
                {
                    feed.close(entry.id);
                }
                entry.id
            })
            .collect();
        if let Some(store) = &self.store
            && !ended.is_empty()
            && let Err(error) = store.remove(&ended)
        {
            self.metrics.store_failures.inc();
            tracing::error!(subscriptions = ?ended, %error, "ended subscriptions could not be removed from the disk");
        }
    }

    /// Keeps what has changed; called again and again by a thread of its own, and once at the end.
    pub fn keep(&self) {
        let Some(store) = &self.store else { return };
        let changes = self.subscriptions.changes();
        if changes.is_empty() {
            return;
        }
        match store.keep(changes.iter().map(|(entry, change)| (entry.id, change))) {
            Ok(()) => changes.iter().for_each(|(entry, change)| entry.queue.was_kept(change)),
            Err(error) => {
                self.metrics.store_failures.inc();
                tracing::error!(%error, "what waits could not be kept");
            }
        }
    }

    /// The interval between calls of [`Self::keep`].
    pub const fn keep_interval() -> Duration {
        KEEP
    }

    /// Time since the last update; `None` if there was none.
    pub fn silence(&self) -> Option<Span> {
        let last = self.last_update.load(Ordering::Relaxed);
        (last > 0).then(|| self.now().since(Time::from_nanos(last)))
    }
}
