//! Reads radio information in a thread of its own, and passes on what is new about users that have connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ranpace_rnis::RadioHint;
use ranpace_rnisd::client::{HintReader, Wanted as WantedHints};
use ranpace_units::Time;

use crate::config;
use crate::error::ProxyError;
use crate::users::Wanted;

/// News that wait for a proxy that is late; what comes then is left out, and newer hints follow. Ours.
const MOST_WAITING: usize = 256;
/// Longest wait for news, after which it is looked whether to stop. Ours.
const LOOK: Duration = Duration::from_millis(50);
/// Interval at which the addresses of users are read. Ours.
const ADDRESSES: Duration = Duration::from_secs(1);

/// Part of the period for which the thread sleeps after a report: timers are late, and a report may be early. Ours.
const PAUSE: (u32, u32) = (3, 4);

/// What the feed says.
#[derive(Debug)]
pub enum News {
    /// Hints about users, by their numbers.
    Hints(Vec<(u32, RadioHint)>),
    /// The first address of the user of each other address.
    Addresses(HashMap<IpAddr, IpAddr>),
    /// Why nothing comes.
    Trouble(String),
}

/// The thread that reads the feed; it ends when this is dropped.
pub struct FeedThread {
    /// What it says.
    pub news: Receiver<News>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FeedThread {
    /// Begins to read. It writes to `wake`, an eventfd, whenever there is news.
    ///
    /// # Errors
    ///
    /// A file of the configuration cannot be read, or there is no thread.
    pub fn start(feed: &config::Feed, users: Wanted, wake: OwnedFd) -> Result<Self, ProxyError> {
        let token = feed.token.as_ref().map(|file| {
            let text = std::fs::read_to_string(file);
            text.map(|text| text.trim().to_owned())
                .map_err(ProxyError::system(format!("read {}", file.display())))
        });
        let wanted = WantedHints {
            period: feed.period,
            token: token.transpose()?,
            ca: feed.ca.clone(),
            ..WantedHints::default()
        };
        let reader = HintReader::open(&feed.origin, &wanted)
            .map_err(|error| ProxyError::Setup(format!("feed.origin: {error}")))?;
        let (sender, news) = sync_channel(MOST_WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let mut pass = Pass {
            reader,
            period: Duration::from_nanos(feed.period.as_nanos()),
            users,
            wake,
            sender,
            stop: Arc::clone(&stop),
            told: HashMap::new(),
            addresses: HashMap::new(),
        };
        let thread = std::thread::Builder::new().name("feed".to_owned()).spawn(move || pass.run());
        let thread = thread.map_err(ProxyError::system("start a thread"))?;
        Ok(Self { news, stop, thread: Some(thread) })
    }
}

impl Drop for FeedThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

struct Pass {
    reader: HintReader,
    /// Interval of reports. A shared table has a new one in each slot.
    period: Duration,
    users: Wanted,
    wake: OwnedFd,
    sender: SyncSender<News>,
    stop: Arc<AtomicBool>,
    /// When the last hint about each user was measured.
    told: HashMap<u32, Time>,
    addresses: HashMap<IpAddr, IpAddr>,
}

impl Pass {
    fn run(&mut self) {
        let mut look_at = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            match self.reader.wait(LOOK) {
                Ok(true) => {
                    self.pass_hints();
                    // What comes each period has not come yet; of what comes more often, the next one of use is as far away.
                    std::thread::sleep((self.period * PAUSE.0 / PAUSE.1).min(LOOK));
                }
                Ok(false) => {}
                Err(error) => {
                    self.tell(News::Trouble(error.to_string()));
                    std::thread::sleep(ADDRESSES);
                }
            }
            if let Some(why) = self.reader.complaint() {
                self.tell(News::Trouble(why));
            }
            if Instant::now() >= look_at {
                look_at = Instant::now() + ADDRESSES;
                self.pass_addresses();
            }
        }
    }

    fn pass_hints(&mut self) {
        let users: Vec<(u32, IpAddr)> = {
            let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
            self.told.retain(|number, _| users.contains_key(number));
            users.iter().map(|(number, address)| (*number, *address)).collect()
        };
        let mut hints = Vec::new();
        for (number, address) in users {
            let Some(aged) = self.reader.hint(address) else { continue };
            let at = aged.hint.measured_at;
            if self.told.insert(number, at).is_none_or(|before| before < at) {
                hints.push((number, RadioHint { measured_at: at, ..aged.hint.value }));
            }
        }
        if !hints.is_empty() {
            self.tell(News::Hints(hints));
        }
    }

    fn pass_addresses(&mut self) {
        let mut addresses = HashMap::new();
        for user in self.reader.users() {
            let mut own = user.addresses.iter().map(ranpace_rnisd::identity::ip);
            let Some(first) = own.next() else { continue };
            addresses.extend(own.map(|other| (other, first)));
        }
        // What a proxy that is late has not taken is told again.
        if addresses != self.addresses && self.tell(News::Addresses(addresses.clone())) {
            self.addresses = addresses;
        }
    }

    /// Tells the proxy; false if it has not taken earlier news yet.
    fn tell(&self, news: News) -> bool {
        match self.sender.try_send(news) {
            Ok(()) => {
                // The counter of an eventfd is never full here: it is read whenever it is not zero.
                let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
                true
            }
            // It was woken by what fills the queue.
            Err(TrySendError::Full(_)) => false,
            Err(TrySendError::Disconnected(_)) => {
                // The proxy ends.
                self.stop.store(true, Ordering::Relaxed);
                false
            }
        }
    }
}
