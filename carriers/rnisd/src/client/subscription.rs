//! The subscription behind a feed of datagrams: a thread creates, renews and deletes it at the server. When, [`Lease`] decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use ranpace_rnis::etsi::ProblemDetails;
use ranpace_rnis::etsi::vendor::FeedDirection;
use ranpace_rnis::feed::KEY_BYTES;
use ranpace_rnis::feed::lease::{Lease, LeaseRequest};
use ranpace_units::{Span, Time};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use url::Url;

use super::{ClientError, Wanted};
use crate::clock::{self, TimeOfDay};
use crate::deliver::client::{Answer, Client, Connection};
use crate::deliver::guard::Guard;
use crate::seal::key_of;

/// Life of a subscription; it is renewed after half of it. Ours.
const LIFETIME: Span = Span::from_secs(60);
/// Time for an answer: that of [`Lease`].
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait before the end is noticed, or a silent feed. Ours.
const LOOK: Duration = Duration::from_millis(100);

/// What the thread reports.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// There is a subscription, with this number and key.
    Subscribed { stream: u32, key: [u8; KEY_BYTES] },
    /// There is none now, and why.
    Failed(String),
}

/// A subscription that is kept alive until this is dropped.
pub struct Subscription {
    /// What has happened.
    pub news: Receiver<News>,
    /// When the last datagram came, in nanoseconds of the monotonic clock.
    pub last_datagram: Arc<AtomicU64>,
    /// Dropped first, which ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The thread's part.
struct Keeper {
    client: Client,
    runtime: Runtime,
    connection: Option<Connection>,
    /// The address of subscriptions.
    list: Url,
    token: Option<String>,
    body: Value,
    /// The subscription's own address.
    own: Option<Url>,
    news: Sender<News>,
}

impl Subscription {
    /// Begins to subscribe at a server, with datagrams to `callback`.
    pub fn new(server: &Url, wanted: &Wanted, callback: String) -> Result<Self, ClientError> {
        let root = server.as_str().trim_end_matches('/');
        let root = root.strip_suffix("/rni/v2").unwrap_or(root);
        let list = format!("{root}/rni/v2/subscriptions").parse();
        let list = list.map_err(|error: url::ParseError| ClientError::Setup(error.to_string()))?;
        let client = Client::new(Guard::everywhere(), wanted.ca.as_deref(), PATIENCE);
        let client = client.map_err(ClientError::Setup)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let users = wanted.users.iter().map(|user| {
            let user = user.to_canonical();
            json!({ "type": if user.is_ipv4() { 1 } else { 2 }, "value": user.to_string() })
        });
        let mut body = json!({
            "subscriptionType": "VendorTtiMeasSubscription",
            "callbackReference": callback,
            "period_us": wanted.period.as_micros(),
            "transport": "udp-binary",
            "direction": FeedDirection::from(wanted.direction),
            "delta": true,
        });
        if !wanted.users.is_empty() {
            body["associateId"] = users.collect();
        }
        let (news, receiver) = channel();
        let (stop, stopped) = channel();
        let last_datagram = Arc::new(AtomicU64::new(0));
        let keeper = Keeper {
            client,
            runtime,
            connection: None,
            list,
            token: wanted.token.clone(),
            body,
            own: None,
            news,
        };
        let last = Arc::clone(&last_datagram);
        let thread = std::thread::Builder::new().name("subscription".to_owned());
        let thread = Some(thread.spawn(move || keeper.run(&stopped, &last))?);
        Ok(Self { news: receiver, last_datagram, stop: Some(stop), thread })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened; nothing is left to be done about it.
            let _ = thread.join();
        }
    }
}

impl Keeper {
    fn run(mut self, stopped: &Receiver<()>, last: &AtomicU64) {
        let mut lease = Lease::default();
        // The clock was read when the reader was opened, so that it is there.
        let now = || clock::now().unwrap_or(Time::ZERO);
        loop {
            lease.on_silence(now(), Time::from_nanos(last.load(Ordering::Relaxed)));
            match lease.poll_request(now()) {
                Some(LeaseRequest::Create) => match self.create() {
                    Ok(()) => lease.on_accepted(now(), LIFETIME),
                    Err(why) => self.fail(&mut lease, now(), why),
                },
                Some(LeaseRequest::Renew) => match self.renew() {
                    Ok(true) => lease.on_accepted(now(), LIFETIME),
                    Ok(false) => lease.on_lost(now()),
                    Err(why) => self.fail(&mut lease, now(), why),
                },
                None => {}
            }
            let left = lease.next_deadline().checked_since(now()).unwrap_or(Span::ZERO);
            match stopped.recv_timeout(Duration::from_nanos(left.as_nanos()).min(LOOK)) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => break,
            }
        }
        if let Some(own) = self.own.take() {
            // It would expire by itself.
            let _ = self.ask(Method::DELETE, &own, false);
        }
    }

    fn fail(&self, lease: &mut Lease, now: Time, why: String) {
        lease.on_failed(now);
        // The reader may be gone.
        let _ = self.news.send(News::Failed(why));
    }

    /// A request with the subscription, that is to end one life from now.
    fn ask(&mut self, method: Method, url: &Url, with_body: bool) -> Result<Answer, String> {
        let mut headers = vec![("Accept", "application/json".to_owned())];
        if let Some(token) = &self.token {
            headers.push(("Authorization", format!("Bearer {token}")));
        }
        let body = if with_body {
            let time = TimeOfDay::read().map_err(|error| error.to_string())?;
            let now = clock::now().map_err(|error| error.to_string())?;
            let deadline = time.since_epoch(now + LIFETIME);
            self.body["expiryDeadline"] = json!({ "seconds": deadline.as_secs(), "nanoSeconds": 0 });
            Bytes::from(self.body.to_string())
        } else {
            Bytes::new()
        };
        let mut is_used = self.connection.is_some();
        loop {
            let asked =
                self.client.request(&mut self.connection, method.clone(), url, &headers, body.clone());
            match self.runtime.block_on(asked) {
                Ok(answer) => return Ok(answer),
                // The server may have closed it, or have been restarted, while nothing was asked.
                Err(_) if std::mem::take(&mut is_used) && method.is_idempotent() => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn create(&mut self) -> Result<(), String> {
        let list = self.list.clone();
        let answer = self.ask(Method::POST, &list, true)?;
        if answer.status != StatusCode::CREATED {
            return Err(refusal(&list, &answer));
        }
        let location = answer.headers.get("Location").and_then(|value| value.to_str().ok());
        // The server may be known under another name here than it calls itself.
        let number = location.and_then(|address| address.rsplit('/').next());
        let number = number.ok_or("the server's answer does not say where the subscription is")?;
        self.own =
            Some(format!("{list}/{number}").parse().map_err(|error| format!("{list}/{number}: {error}"))?);
        self.subscribed(&answer)
    }

    /// False if the server does not know it any more.
    fn renew(&mut self) -> Result<bool, String> {
        let Some(own) = self.own.clone() else { return Ok(false) };
        let answer = self.ask(Method::PUT, &own, true)?;
        match answer.status {
            StatusCode::OK => self.subscribed(&answer).map(|()| true),
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(refusal(&own, &answer)),
        }
    }

    fn subscribed(&self, answer: &Answer) -> Result<(), String> {
        let read = || {
            let body: Value = serde_json::from_slice(&answer.body).ok()?;
            let feed = body.get("vendorFeed")?;
            let stream = u32::try_from(feed.get("stream")?.as_u64()?).ok()?;
            Some(News::Subscribed { stream, key: key_of(feed.get("key")?.as_str()?)? })
        };
        let news = read().ok_or(
            "the server's answer has no vendorFeed with a stream and a key: it has no feed of datagrams",
        )?;
        // The reader may be gone.
        let _ = self.news.send(news);
        Ok(())
    }
}

/// What a refusal says.
fn refusal(url: &Url, answer: &Answer) -> String {
    let detail = match serde_json::from_slice::<ProblemDetails>(&answer.body) {
        Ok(ProblemDetails { detail: Some(detail), .. }) => detail,
        _ => String::from_utf8_lossy(&answer.body).chars().take(200).collect(),
    };
    format!("{url}: the server answered {}: {detail}", answer.status)
}
