//! What updates change, and who has to be notified: between the sources' threads and the requests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use ranpace_rnis::etsi::{Notification, TimeStamp};
use ranpace_units::{Span, Time};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{self, TimeOfDay};
use crate::config::Config;
use crate::deliver::client::Client;
use crate::deliver::guard::Guard;
use crate::feed_port::{FeedPort, FeedScope};
use crate::metrics::{Metrics, Outcome, SourceLabels};
use crate::source::{Counters, Update};
use crate::state::{Happened, Registry, State};
use crate::store::Store;
use crate::subscriptions::{Delivery, Entry, Subscriptions};

/// Occurrences that wait for a slow reader of server-sent events before it misses some.
const EVENTS: usize = 1024;
/// How often what waits is kept. What came since then, and was not delivered, is lost with a crash: its numbers are left out.
const KEEP: Duration = Duration::from_millis(50);
/// Numbers left out after a crash, for the notifications that may have been lost with it.
pub(crate) const LEFT_OUT: u64 = 1_000;

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
            Client::new(guard.clone(), config.callbacks.ca.as_deref(), config.callbacks.answer_time)?;
        let store = config.data.as_deref().map(Store::open).transpose().map_err(|error| error.to_string())?;
        let (loaded, next) = match &store {
            Some(store) => store.load().map_err(|error| error.to_string())?,
            None => (Vec::new(), 1),
        };
        let subscriptions = Subscriptions::new(next);
        for (mut kept, items) in loaded {
            let id = kept.id;
            kept.number += LEFT_OUT;
            match Entry::of(kept, config.callbacks.queue, items) {
                Ok(mut entry) => {
                    if entry.delivery == Delivery::Feed
                        && let Some(feed) = &mut feed
                        && let Some(asked) = crate::api::vendor::feed_subscription(&entry, None, clock)
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
        if let Some(feed) = self.feed().as_mut() {
            feed.on_update(&update);
        }
        let mut happened = Vec::new();
        self.state().on_update(source, &update, &mut happened);
        match &update {
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

    /// Something that updates cannot say: a change of carriers, a bearer on S1, other stages of a handover, as its notification. Its user
    /// is found by an identifier; false if there is none.
    pub fn publish(&self, notification: Notification) -> bool {
        let happened = self.state().on_notification(notification);
        let is_known = happened.is_some();
        if let Some(happened) = happened {
            self.notify(happened);
        }
        is_known
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
        let (users, cells) = self.state().scope(&entry.viewer, &of.associate_id, &of.ecgi);
        FeedScope { users: Some(users), cells: (!of.ecgi.is_empty()).then_some(cells) }
    }

    /// Subscriptions that are about to end are told so, and those whose end has come end; once in a while.
    pub fn expire(&self) {
        let Ok(clock) = TimeOfDay::read() else { return };
        self.state().set_clock(clock);
        let now = self.time_stamp();
        let now_ns = crate::subscriptions::nanos(now);
        let notice = u64::try_from(self.config.subscriptions.expiry_notice.as_nanos()).unwrap_or(u64::MAX);
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
                self.end(entry.id);
            }
        }
        let (cells, users, bearers) = self.state().counts();
        self.metrics.cells.set(cells as i64);
        self.metrics.users.set(users as i64);
        self.metrics.bearers.set(bearers as i64);
        self.metrics.subscriptions.set(self.subscriptions.counts("").0 as i64);
    }

    /// Ends a subscription; false if there is none. Returns before the store has forgotten it only if there is no store.
    pub fn end(&self, id: u64) -> bool {
        let Some(entry) = self.subscriptions.remove(id) else { return false };
        if entry.delivery == Delivery::Feed
            && let Some(feed) = self.feed().as_mut()
        {
            feed.close(id);
        }
        if let Some(store) = &self.store
            && let Err(error) = store.remove(id)
        {
            self.metrics.store_failures.inc();
            tracing::error!(subscription = id, %error, "a subscription could not be removed from the disk");
        }
        true
    }

    /// Keeps what has changed; called again and again by a thread of its own, and once at the end.
    pub fn keep(&self) {
        let Some(store) = &self.store else { return };
        let change = |entry: &Arc<Entry>| {
            let (items, counts) = entry.queue.changes()?;
            Some((entry.id, items, counts.number, counts.missed))
        };
        let changes: Vec<_> = self.subscriptions.list().iter().filter_map(change).collect();
        if changes.is_empty() {
            return;
        }
        if let Err(error) = store.keep_waiting(&changes) {
            self.metrics.store_failures.inc();
            tracing::error!(%error, "what waits could not be kept");
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
