//! Hints from a broker: what the server publishes by AMQP 0-9-1, as text or in the binary form.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::options::{BasicConsumeOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Connection, ConnectionProperties, ExchangeKind};
use ranpace_phy::Direction;
use ranpace_rnis::feed::receiver::{AgedHint, ClockQuality};
use ranpace_rnis::feed::view::FeedView;
use ranpace_rnis::shared_table::directory::Identity;
use ranpace_rnis::{RadioHint, TextReport, Timestamped};
use ranpace_units::{Bytes, Time};
use url::Url;

use super::ClientError;
use crate::clock::{self, TimeOfDay};
use crate::identity;

/// Exchange of the server, unless the address names one (`?exchange=NAME`).
const EXCHANGE: &str = "rnis";
/// Wait before a lost connection is tried again. Ours.
const RETRY: Duration = Duration::from_secs(1);

/// Messages that wait for a reader that is late; what comes then is left out. Ours.
const MOST_WAITING: usize = 1 << 16;

/// What the connection's thread passes on.
enum News {
    Message { key: String, is_text: bool, measured_ns: Option<i64>, body: Vec<u8> },
    Failed(String),
}

/// Reads what a broker delivers.
pub struct BrokerReader {
    news: Receiver<News>,
    view: FeedView,
    /// Time of the latest report of the binary form on the sender's clock, and on this host's.
    latest: Option<(Time, Time)>,
    /// Reports as text, by user, with their cells.
    text: HashMap<u16, (u16, Timestamped<TextReport>)>,
    reports: u64,
    complaint: Option<String>,
    last_complaint: Option<String>,
    /// Dropped first, which ends the thread.
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BrokerReader {
    pub fn open(address: &Url) -> Result<Self, ClientError> {
        clock::now().map_err(|error| ClientError::Setup(error.to_string()))?;
        let exchange = address.query_pairs().find(|(name, _)| name == "exchange");
        let exchange = exchange.map_or_else(|| EXCHANGE.to_owned(), |(_, value)| value.into_owned());
        let mut address = address.clone();
        address.set_query(None);
        let (sender, news) = sync_channel(MOST_WAITING);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = run(&address, &exchange, &sender) => {}
                    // Its sender is dropped, never used.
                    _ = stopped => {}
                }
            });
        };
        let thread = Some(std::thread::Builder::new().name("amqp".to_owned()).spawn(run)?);
        Ok(Self {
            news,
            view: FeedView::new(Direction::Downlink),
            latest: None,
            text: HashMap::new(),
            reports: 0,
            complaint: None,
            last_complaint: None,
            stop: Some(stop),
            thread,
        })
    }

    pub fn wait(&mut self, at_most: Duration) -> Result<bool, ClientError> {
        match self.news.recv_timeout(at_most) {
            Ok(News::Message { key, is_text, measured_ns, body }) => {
                Ok(self.take(&key, is_text, measured_ns, &body))
            }
            Ok(News::Failed(why)) => {
                if self.last_complaint.as_ref() != Some(&why) {
                    (self.complaint, self.last_complaint) = (Some(why.clone()), Some(why));
                }
                Ok(false)
            }
            Err(RecvTimeoutError::Timeout) => Ok(false),
            Err(RecvTimeoutError::Disconnected) => {
                Err(ClientError::Setup("the thread of the broker's connection has ended".to_owned()))
            }
        }
    }

    /// A message has come; whether it was of use.
    fn take(&mut self, key: &str, is_text: bool, measured_ns: Option<i64>, body: &[u8]) -> bool {
        self.last_complaint = None;
        let Ok(now) = clock::now() else { return false };
        // A time to come is one of another clock: no later than now.
        let measured = measured_ns.and_then(|ns| {
            let day = Duration::from_nanos(u64::try_from(ns).ok()?);
            Some(TimeOfDay::read().ok()?.monotonic(day).min(now))
        });
        let measured = measured.unwrap_or(now);
        if key == "rnis.directory" {
            return self.view.on_directory(body).is_ok();
        }
        if !is_text {
            let Ok(Some(report)) = self.view.on_report(body) else { return false };
            self.latest = Some((report.time, measured));
            self.reports += 1;
            return true;
        }
        let numbers: Vec<u16> = key.split('.').skip(1).filter_map(|part| part.parse().ok()).collect();
        let (&[cell, user], Ok(text)) = (&numbers[..], std::str::from_utf8(body)) else { return false };
        let Ok(report) = text.parse::<TextReport>() else { return false };
        self.text.insert(user, (cell, Timestamped::new(report, measured)));
        self.reports += 1;
        true
    }

    pub fn hint(&self, address: IpAddr) -> Option<AgedHint> {
        let user = self.view.user_at(&identity::bytes(address))?;
        let hint = match self.text.get(&user) {
            Some((cell, report)) => {
                let (info, _) = self.view.cells().find(|(info, _)| info.cell == *cell)?;
                let TextReport { cqi, queue, block, prbs } = report.value;
                let prbs = prbs.min(info.prbs);
                RadioHint {
                    cqi: (cqi > 0).then_some(cqi),
                    queue: Bytes::new(queue),
                    tbs_bits: (block > 0).then_some(8 * block), // at most u32::MAX: TextReport
                    granted: prbs.into(),
                    most_granted: prbs,
                    ..RadioHint::of(*info, report.measured_at)
                }
            }
            None => {
                let hint = self.view.hint(user)?;
                let (of_sender, here) = self.latest?;
                let behind = of_sender.checked_since(hint.measured_at).unwrap_or_default();
                RadioHint { measured_at: here - behind, ..hint }
            }
        };
        Some(AgedHint { hint: Timestamped::new(hint, hint.measured_at), clock: ClockQuality::Arrival })
    }

    pub fn users(&self) -> Vec<Identity> {
        self.view.users().map(|(_, of)| of.clone()).collect()
    }

    pub fn reports(&self) -> u64 {
        self.reports
    }

    pub fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }
}

impl Drop for BrokerReader {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened; nothing is left to be done about it.
            let _ = thread.join();
        }
    }
}

/// Connects, again and again, and passes on what is delivered.
async fn run(address: &Url, exchange: &str, news: &SyncSender<News>) {
    loop {
        let Err(error) = consume(address, exchange, news).await else { return };
        let why = format!("{}: {error}", address.host_str().unwrap_or_default());
        if let Err(TrySendError::Disconnected(_)) = news.try_send(News::Failed(why)) {
            return;
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Ends without an error if nobody reads any more.
async fn consume(address: &Url, exchange: &str, news: &SyncSender<News>) -> Result<(), lapin::Error> {
    let connection = Connection::connect(address.as_str(), ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let none = FieldTable::default;
    let options = ExchangeDeclareOptions::default();
    channel.exchange_declare(exchange.into(), ExchangeKind::Topic, options, none()).await?;
    let queue =
        channel.queue_declare("".into(), QueueDeclareOptions::exclusive().auto_delete(), none()).await?;
    let name = queue.name().clone();
    channel
        .queue_bind(name.clone(), exchange.into(), "rnis.#".into(), QueueBindOptions::default(), none())
        .await?;
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let mut consumer = channel.basic_consume(name, "".into(), options, none()).await?;
    while let Some(delivery) = consumer.next().await {
        let delivery = delivery?;
        let properties = &delivery.properties;
        let measured = properties.headers().as_ref().and_then(|all| all.inner().get("measured_ns"));
        let measured_ns = match measured {
            Some(AMQPValue::LongLongInt(ns)) => Some(*ns),
            _ => None,
        };
        // The original publishers name no type.
        let is_text = properties.content_type().as_ref().is_none_or(|kind| kind.as_str() == "text/plain");
        let key = delivery.routing_key.as_str().to_owned();
        let message = News::Message { key, is_text, measured_ns, body: delivery.data };
        if let Err(TrySendError::Disconnected(_)) = news.try_send(message) {
            return Ok(());
        }
    }
    Ok(())
}
