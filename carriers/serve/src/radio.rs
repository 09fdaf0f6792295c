//! What an RNIS server reports of users, for the controls of their connections. A thread reads the feed, and tells each connection what is
//! new about the user at its address. A control judges by the age of what it was told, so a feed that is lost needs no word.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use noq::{Connection, PathId};
use ranpace_noq::{ConnectionControl, Controls};
use ranpace_rnis::RadioHint;
use ranpace_rnisd::client::{ClientError, HintReader};
use ranpace_rnisd::clock;
use ranpace_units::Time;

use crate::config::Feed;
use crate::control::Choice;
use crate::metrics::Metrics;

/// Longest wait for a report, after which it is looked whether to stop. Ours.
const WAIT: Duration = Duration::from_millis(50);
/// How often the addresses of connections are looked at, which change when clients move to another network. Ours.
const ADDRESSES: Duration = Duration::from_millis(500);
/// Wait after a failure of the socket. Ours.
const PAUSE: Duration = Duration::from_secs(1);

/// How a connection's control is found.
#[derive(Clone, Debug)]
pub enum Chooser {
    /// All connections have this one.
    Same(Arc<Controls>),
    /// Its first request has chosen.
    Own(Arc<Choice>),
}

impl Chooser {
    /// The factory of the connection's control.
    pub fn controls(&self) -> &Arc<Controls> {
        match self {
            Self::Same(controls) => controls,
            Self::Own(choice) => choice.controls(),
        }
    }
}

/// A connection that hears of its user.
#[derive(Debug)]
struct Listener {
    connection: Connection,
    chooser: Chooser,
}

impl Listener {
    fn tell(&self, hint: &RadioHint, age: Duration) -> bool {
        let controls = self.chooser.controls();
        let now = Instant::now();
        let measured_at = controls.time(now.checked_sub(age).unwrap_or(now));
        let control = ConnectionControl::new(self.connection.clone(), Arc::clone(controls));
        control.on_radio(&RadioHint { measured_at, ..*hint })
    }

    fn address(&self) -> Option<IpAddr> {
        Some(self.connection.path(PathId::ZERO)?.remote_address().ok()?.ip().to_canonical())
    }
}

/// Connections by the addresses of their clients.
#[derive(Debug, Default)]
struct Listeners {
    by_address: HashMap<IpAddr, Vec<Listener>>,
}

impl Listeners {
    fn add(&mut self, address: IpAddr, listener: Listener) {
        self.by_address.entry(address).or_default().push(listener);
    }

    fn remove(&mut self, is_it: impl Fn(&Listener) -> bool) {
        self.by_address.retain(|_, all| {
            all.retain(|listener| !is_it(listener));
            !all.is_empty()
        });
    }

    /// Finds those whose clients have another address now.
    fn refresh(&mut self) {
        let mut moved = Vec::new();
        for (address, all) in &mut self.by_address {
            for place in (0..all.len()).rev() {
                if let Some(now) = all[place].address().filter(|now| now != address) {
                    moved.push((now, all.swap_remove(place)));
                }
            }
        }
        for (address, listener) in moved {
            self.add(address, listener);
        }
    }
}

/// The connections that hear of their users.
#[derive(Clone, Debug, Default)]
pub struct Radio(Arc<Mutex<Listeners>>);

/// A connection among them, until this is dropped.
#[derive(Debug)]
pub struct Listening {
    radio: Radio,
    connection: Connection,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let number = self.connection.stable_id();
        self.radio.lock().remove(|listener| listener.connection.stable_id() == number);
    }
}

impl Radio {
    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection.
    pub fn listen(&self, address: IpAddr, connection: Connection, chooser: Chooser) -> Listening {
        let listener = Listener { connection: connection.clone(), chooser };
        self.lock().add(address.to_canonical(), listener);
        Listening { radio: self.clone(), connection }
    }
}

/// The thread that reads the feed; it ends when this is dropped.
#[derive(Debug)]
pub struct FeedThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FeedThread {
    /// Begins to read. Nothing is waited for.
    ///
    /// # Errors
    ///
    /// As of [`HintReader::open`]; or there is no thread.
    pub fn start(feed: &Feed, radio: Radio, metrics: Arc<Metrics>) -> Result<Self, ClientError> {
        let reader = HintReader::open(&feed.origin, &feed.wanted)?;
        let stop = Arc::new(AtomicBool::new(false));
        let pass = Pass { reader, radio, metrics, stop: Arc::clone(&stop), told: HashMap::new() };
        let thread = std::thread::Builder::new().name("feed".to_owned()).spawn(move || pass.run())?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for FeedThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the feed panicked");
        }
    }
}

struct Pass {
    reader: HintReader,
    radio: Radio,
    metrics: Arc<Metrics>,
    stop: Arc<AtomicBool>,
    /// When the last hint about each user was measured.
    told: HashMap<IpAddr, Time>,
}

impl Pass {
    fn run(mut self) {
        let mut looked = Instant::now();
        let mut is_silent = true;
        while !self.stop.load(Ordering::Relaxed) {
            match self.reader.wait(WAIT) {
                Ok(true) => {
                    if std::mem::take(&mut is_silent) {
                        tracing::info!("radio information comes");
                    }
                    self.pass_on();
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "the feed cannot be read; it is tried again");
                    std::thread::sleep(PAUSE);
                }
            }
            if let Some(reason) = self.reader.complaint() {
                is_silent = true;
                tracing::warn!(reason, "no radio information: controls that need it fall back by themselves");
            }
            if looked.elapsed() >= ADDRESSES {
                looked = Instant::now();
                self.radio.lock().refresh();
            }
        }
    }

    /// Tells connections what is new.
    fn pass_on(&mut self) {
        let Self { reader, radio, metrics, told, .. } = self;
        let listeners = radio.lock();
        told.retain(|address, _| listeners.by_address.contains_key(address));
        for (address, all) in &listeners.by_address {
            let Some(aged) = reader.hint(*address) else { continue };
            let at = aged.hint.measured_at;
            if told.insert(*address, at).is_some_and(|before| before >= at) {
                continue;
            }
            // The clock was read when the reader was opened, so that it is there.
            let age = clock::now().unwrap_or(at).since(at);
            let age = Duration::from_nanos(age.as_nanos());
            let taken = all.iter().filter(|listener| listener.tell(&aged.hint.value, age)).count();
            metrics.hints.inc_by(taken as u64);
        }
    }
}
