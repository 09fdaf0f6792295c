//! The feed by a broker: AMQP 0-9-1, as RabbitMQ speaks it, to a topic exchange.
//!
//! Routing keys are `rnis.CELL.USER` for text, one message for each user, `rnis.CELL` for the binary form, one for each datagram of
//! [`wire`](ranpace_rnis::wire), and `rnis.directory` for the [entries](ranpace_rnis::feed::entries) of all cells and users, once a
//! second. Text is `CQI,TxQueue,TBS,PRB`, as in the original experiments (Diarra 2022, 4.2.3). Each message has the header `measured_ns`: the
//! time of day of the measurement.
//!
//! A source's thread encodes, and a thread of this file publishes. Between them waits at most a second of messages; the oldest are left out
//! for newer ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ExchangeDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Connection, ConnectionProperties, ExchangeKind};
use ranpace_phy::Direction;
use ranpace_rnis::feed::MOST_BODY_BYTES;
use ranpace_rnis::feed::entries::Entry;
use ranpace_rnis::feed::sender::{FeedSubscribers, Filter};
use ranpace_rnis::{Averaging, Publisher, TextReport};
use ranpace_units::Time;
use tokio::sync::Notify;

use super::{AmqpConfig, AmqpEncoding};
use crate::clock::TimeOfDay;
use crate::identity;
use crate::metrics::FeedMetrics;
use crate::source::{Cell, Slot, Update, User};

/// Messages that wait: a second of 1,000 users at 8 ms.
const MOST_WAITING: usize = 125_000;
/// Between two directories.
const DIRECTORY: Duration = Duration::from_secs(1);
/// Wait before a lost connection is tried again, and the longest.
const RETRY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// A message.
struct Message {
    key: String,
    measured: Time,
    body: Vec<u8>,
}

struct Shared {
    waiting: Mutex<VecDeque<Message>>,
    news: Notify,
    known: Mutex<Known>,
    config: AmqpConfig,
    metrics: FeedMetrics,
}

#[derive(Default)]
struct Known {
    cells: BTreeMap<u16, Cell>,
    users: BTreeMap<u32, User>,
}

/// What encodes reports.
enum Encoding {
    Text(Publisher),
    Binary(FeedSubscribers),
}

/// Publishes to a broker.
pub struct Amqp {
    shared: Arc<Shared>,
    encoding: Encoding,
    /// Dropped first, which ends the thread.
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a thread that panicked left is consistent: every change is made of complete steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Amqp {
    /// Begins to publish. The broker need not be there yet.
    pub fn open(config: &AmqpConfig, metrics: FeedMetrics) -> Result<Self, String> {
        let period = config.period;
        let encoding = match config.encoding {
            AmqpEncoding::Text => Encoding::Text(Publisher::new(period, Averaging::Smooth)),
            AmqpEncoding::Binary => {
                let mut all = FeedSubscribers::new();
                let direction = Direction::Downlink;
                all.subscribe(
                    Filter { users: None, cells: None, direction, period, delta: false },
                    Time::MAX,
                );
                Encoding::Binary(all)
            }
        };
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            news: Notify::new(),
            known: Mutex::default(),
            config: config.clone(),
            metrics,
        });
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let of_thread = Arc::clone(&shared);
        let run = move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = run(&of_thread) => {}
                    // Its sender is dropped, never used.
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("amqp".to_owned()).spawn(run);
        let thread = Some(thread.map_err(|error| error.to_string())?);
        Ok(Self { shared, encoding, stop: Some(stop), thread })
    }

    /// News of a source.
    pub fn on_update(&mut self, update: &Update) {
        match update {
            Update::Cell(cell) => {
                lock(&self.shared.known).cells.insert(cell.info.cell, cell.clone());
            }
            Update::User(user) => {
                lock(&self.shared.known).users.insert(user.user, user.clone());
            }
            Update::Event(event) => match &mut self.encoding {
                Encoding::Text(publisher) => publisher.on_event(event),
                Encoding::Binary(all) => all.on_event(event),
            },
            Update::Slot(slot) => self.on_slot(slot),
            _ => {}
        }
    }

    fn on_slot(&mut self, slot: &Slot) {
        let report = slot.report();
        let (cell, measured) = (report.cell.cell, report.time);
        let mut messages = Vec::new();
        match &mut self.encoding {
            Encoding::Text(publisher) => {
                if publisher.on_report(&report) {
                    for user in publisher.users(cell) {
                        let Some(hint) = publisher.hint(*user, Direction::Downlink, None) else { continue };
                        let body = TextReport::of(&hint).to_string().into_bytes();
                        messages.push(Message { key: format!("rnis.{cell}.{user}"), measured, body });
                    }
                    publisher.published(cell);
                }
            }
            Encoding::Binary(all) => all.on_report(&report, MOST_BODY_BYTES, &mut |outgoing| {
                let body = outgoing.bytes.to_vec();
                messages.push(Message { key: format!("rnis.{cell}"), measured, body });
            }),
        }
        if messages.is_empty() {
            return;
        }
        let mut waiting = lock(&self.shared.waiting);
        waiting.extend(messages);
        let excess = waiting.len().saturating_sub(MOST_WAITING);
        waiting.drain(..excess);
        drop(waiting);
        self.shared.metrics.unpublished.inc_by(excess as u64);
        self.shared.news.notify_one();
    }
}

impl Drop for Amqp {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the broker panicked");
        }
    }
}

/// Publishes, and connects again when the connection is lost.
async fn run(shared: &Shared) {
    let mut wait = RETRY[0];
    loop {
        let begun = std::time::Instant::now();
        if let Err(error) = publish(shared).await {
            tracing::warn!(%error, "no connection to the broker; what is measured until there is one is left out");
        }
        // A connection that held for a while is not one that was refused.
        wait = if begun.elapsed() > RETRY[1] { RETRY[0] } else { (wait * 2).min(RETRY[1]) };
        tokio::time::sleep(wait).await;
        let left_out = std::mem::take(&mut *lock(&shared.waiting)).len();
        shared.metrics.unpublished.inc_by(left_out as u64);
    }
}

async fn publish(shared: &Shared) -> Result<(), lapin::Error> {
    let AmqpConfig { address, exchange, encoding, .. } = &shared.config;
    let connection = Connection::connect(address, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let none = FieldTable::default;
    channel
        .exchange_declare(
            exchange.as_str().into(),
            ExchangeKind::Topic,
            ExchangeDeclareOptions::default(),
            none(),
        )
        .await?;
    tracing::info!(exchange, "publishing to the broker");
    let text = if *encoding == AmqpEncoding::Text { "text/plain" } else { "application/octet-stream" };
    let mut directory = tokio::time::interval(DIRECTORY);
    let mut clock = TimeOfDay::read();
    loop {
        let messages = tokio::select! {
            () = shared.news.notified() => std::mem::take(&mut *lock(&shared.waiting)),
            _ = directory.tick() => {
                // The time of day is adjusted now and then.
                clock = TimeOfDay::read();
                shared.directory()
            }
        };
        for Message { key, measured, body } in messages {
            let mut headers = none();
            if let Ok(clock) = clock {
                let day = clock.since_epoch(measured).as_nanos();
                let day = i64::try_from(day).unwrap_or(i64::MAX);
                headers.insert("measured_ns".into(), AMQPValue::LongLongInt(day));
            }
            let kind = if key == DIRECTORY_KEY { "application/octet-stream" } else { text };
            let properties = BasicProperties::default().with_headers(headers).with_content_type(kind.into());
            let options = BasicPublishOptions::default();
            // A lost message is followed by a newer one, so that no confirmation is asked for.
            let sent = channel
                .basic_publish(exchange.as_str().into(), key.into(), options, &body, properties)
                .await?;
            drop(sent);
            shared.metrics.published.inc();
        }
    }
}

/// Routing key of directories.
const DIRECTORY_KEY: &str = "rnis.directory";

impl Shared {
    /// Messages with all cells and users.
    fn directory(&self) -> VecDeque<Message> {
        let (mut messages, mut body) = (VecDeque::new(), Vec::new());
        let measured = crate::clock::now().unwrap_or(Time::ZERO);
        let known = lock(&self.known);
        let cells = known.cells.values().map(|cell| {
            let plmn = &cell.ecgi.plmn;
            let identity = format!("{}-{}-{}", plmn.mcc, plmn.mnc, cell.ecgi.cell_id);
            Entry::Cell { info: cell.info, identity }
        });
        let users = known.users.values().filter_map(|user| {
            let number = u16::try_from(user.user).ok()?;
            Some(Entry::User { user: number, identity: identity::of(user) })
        });
        for entry in cells.chain(users) {
            entry.write(&mut body);
            if body.len() > MOST_BODY_BYTES {
                let key = DIRECTORY_KEY.to_owned();
                messages.push_back(Message { key, measured, body: std::mem::take(&mut body) });
            }
        }
        if !body.is_empty() {
            messages.push_back(Message { key: DIRECTORY_KEY.to_owned(), measured, body });
        }
        messages
    }
}
