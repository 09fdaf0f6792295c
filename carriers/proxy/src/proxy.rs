//! The proxy: one thread that waits for its sockets (epoll), relays payload, and applies what RAPID decides.

pub mod snapshot;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender as CommandSender, channel};

use ranpace_pep::rapid::Rapid;
use ranpace_pep::uploads::Uploads;
use ranpace_rnisd::clock;
use ranpace_units::{Bytes, Span, Time};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slab::Slab;
use socket2::Socket;

use crate::alive::{Alive, CERTAIN, RENEWED};
use crate::buffers::Buffers;
use crate::client;
use crate::config::{Config, Handshake};
use crate::devices::Devices;
use crate::error::ProxyError;
use crate::feed::{FeedThread, News};
use crate::handover::{Estate, Inheritance};
use crate::handshakes::Handshakes;
use crate::legs;
use crate::metrics::{End, Metrics};
use crate::passing::{self, Passing};
use crate::pipes::Pipes;
use crate::relay::{Progress, Relay, Side};
use crate::rights;
use crate::rules::Rules;
use crate::sender::Sender;
use crate::syn::Ends;
use crate::users::Users;
use snapshot::Snapshot;

/// Events taken at a time. Ours.
const EVENTS: usize = 512;
/// Interval of ticks, at which counters are read and windows are set. Ours.
pub(crate) const TICK: Span = Span::from_millis(1);
/// Descriptors for all that is no connection. Ours.
const RESERVED: u64 = 256;
/// Of these parts of the descriptors, two are for legs of connections; what remains is for pipes. Ours.
const PARTS: (u64, u64) = (15, 32);
/// A connection whose SYN another process has given to the listener is accepted within this time. Ours: longer than a client may take
/// to complete its handshake.
const INHERITED: Span = Span::from_secs(20);
/// Interval of what is done now and then: handshakes that nobody completes, gauges. Ours.
const HOUSEKEEPING: Span = Span::SECOND;
/// Interval at which sockets that have ended are asked whether their peers have acknowledged all. Ours.
const CLOSING: Span = Span::from_millis(100);
/// Most of them; what the kernel has left to send for others is lost if the proxy is drained meanwhile. Ours.
const MOST_CLOSING: usize = 4096;

/// What an event is about, in the 64 bits that the kernel keeps for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Wake,
    DeviceIn,
    DeviceOut,
    Listener(usize),
    Handshake(usize),
    Relay(usize, Side),
}

impl Token {
    pub(crate) fn data(self) -> epoll::EventData {
        let (kind, place) = match self {
            Self::Wake => (0, 0),
            Self::DeviceIn => (1, 0),
            Self::DeviceOut => (2, 0),
            Self::Listener(place) => (3, place),
            Self::Handshake(place) => (4, place),
            Self::Relay(place, Side::User) => (5, place),
            Self::Relay(place, Side::Server) => (6, place),
        };
        epoll::EventData::new_u64((place as u64) << 3 | kind)
    }

    fn of(data: u64) -> Self {
        let place = (data >> 3) as usize;
        match data & 7 {
            0 => Self::Wake,
            1 => Self::DeviceIn,
            2 => Self::DeviceOut,
            3 => Self::Listener(place),
            4 => Self::Handshake(place),
            5 => Self::Relay(place, Side::User),
            _ => Self::Relay(place, Side::Server),
        }
    }
}

/// What others ask of the proxy's thread.
#[derive(Debug)]
pub enum Command {
    /// What it does.
    Show(tokio::sync::oneshot::Sender<Snapshot>),
    /// That it works.
    Answer(tokio::sync::oneshot::Sender<()>),
    /// Split no further connections, and end when those that are open have ended.
    Drain,
    /// Let another process go on, which listens for that. Answers why not.
    HandOver(tokio::sync::oneshot::Sender<Result<(), String>>),
}

/// Asks the proxy's thread.
#[derive(Clone, Debug)]
pub struct Asker {
    commands: CommandSender<Command>,
    wake: Arc<OwnedFd>,
}

impl Asker {
    /// Passes a command on; false if the proxy has ended.
    pub fn ask(&self, command: Command) -> bool {
        let passed = self.commands.send(command).is_ok();
        // The counter of an eventfd is never full here: it is read whenever it is not zero.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        passed
    }
}

/// A proxy. Dropping it resets what is open, and removes its rules.
pub struct Proxy {
    pub(crate) config: Config,
    pub(crate) buffers: Buffers,
    /// Of an exact handshake.
    pub(crate) devices: Option<Devices>,
    pub(crate) listeners: Vec<Socket>,
    rules: Rules,
    alive: Alive,
    pub(crate) epoll: OwnedFd,
    pub(crate) wake: Arc<OwnedFd>,
    commands: (CommandSender<Command>, Receiver<Command>),
    /// With `rapid.account_udp`, and when it is read next.
    passing: Option<Passing>,
    passing_at: Time,
    feed: Option<FeedThread>,
    feed_trouble: Option<String>,
    pub(crate) handshakes: Handshakes,
    pub(crate) relays: Slab<Relay>,
    pub(crate) by_ends: HashMap<Ends, usize>,
    /// The connection of each of the allocator's flows, by its index.
    pub(crate) by_flow: Vec<usize>,
    pub(crate) users: Users,
    pub(crate) rapid: Rapid,
    pub(crate) uploads: Uploads,
    pub(crate) sender: Sender,
    pub(crate) metrics: Arc<Metrics>,
    pipes: Pipes,
    /// Most connections.
    pub(crate) most: usize,
    /// Connections that go on at once.
    pub(crate) queue: Vec<usize>,
    /// Connections whose counters are read at the next tick.
    pub(crate) moved: Vec<usize>,
    /// Connections whose counters have not changed for a while: they are read at `rest_until`.
    pub(crate) resting: Vec<usize>,
    pub(crate) rest_until: Time,
    /// Empty: the memory of the list that `queue` or `moved` becomes next.
    pub(crate) spare: Vec<usize>,
    pub(crate) tick_at: Time,
    /// There is so much to read that ticks come less often than each [`TICK`].
    pub(crate) ticks_are_late: bool,
    pub(crate) renew_at: Time,
    pub(crate) renewed_at: Time,
    housekeeping_at: Time,
    /// The system has no descriptor for a connection that waits to be accepted; until then none is accepted.
    pub(crate) accept_again_at: Option<Time>,
    /// An open file that is given up for the server's leg of a client that was accepted first, where there is no other.
    pub(crate) reserve: Option<OwnedFd>,
    /// Until then connections may come that listeners accepted while they were another process's.
    pub(crate) inherited_until: Time,
    /// The rules are this process's to remove.
    has_rules: bool,
    /// It splits no further connections.
    draining: bool,
    /// Sockets whose connections have ended, until their peers have acknowledged all. Without the rules, which a drained proxy removes,
    /// the kernel could not finish them.
    pub(crate) closing: Vec<OwnedFd>,
    closing_at: Time,
}

impl Proxy {
    /// Prepares the system and listens; nothing is split before [`Self::run`].
    ///
    /// # Errors
    ///
    /// A right is missing, the system is not set up for forwarding, or another proxy has the same name or port.
    pub fn start(config: Config) -> Result<Self, ProxyError> {
        Self::prepare(config, false)
    }

    /// The same in place of a running proxy of the same name, number, port and handshake, which keeps what it has split until that
    /// has ended; no connection is lost. Where none runs, as [`Self::start`].
    ///
    /// # Errors
    ///
    /// As of [`Self::start`], or the running proxy does not hand over; it goes on then.
    pub fn take_over(config: Config) -> Result<Self, ProxyError> {
        Self::prepare(config, true)
    }

    fn prepare(config: Config, takes_over: bool) -> Result<Self, ProxyError> {
        crate::system::check(&config)?;
        let (sender, complaint) = Sender::new(config.sender.control)?;
        if let Some(why) = complaint {
            tracing::warn!(%why, "the kernel control is not used; CUBIC with a limit of its pace sends to users");
        }
        let (connections, pipes) = descriptors()?;
        let buffers = Buffers::of(config.limits.flow_buffer);
        // From here on another process waits for this one.
        let mut inheritance = if takes_over { Inheritance::ask(&config)? } else { None };
        let now = now()?;
        let devices = match (&mut inheritance, config.handshake) {
            (Some(inheritance), _) => inheritance.devices.take(),
            (None, Handshake::Exact) => Some(Devices::create(&config.name)?),
            (None, Handshake::AcceptFirst) => None,
        };
        let listeners = match &mut inheritance {
            Some(inheritance) => {
                let listeners = std::mem::take(&mut inheritance.listeners);
                for listener in &listeners {
                    legs::adopt(listener, &buffers, sender.congestion())
                        .map_err(ProxyError::system("set up a listener of the running proxy"))?;
                }
                listeners
            }
            None => legs::listeners(&config, &buffers, sender.congestion())?,
        };
        let rules = Rules::new(&config);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(ProxyError::system("create an epoll instance"))?;
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(ProxyError::system("create an eventfd"))?;
        let users = Users::new(&config.user);
        let passing = config.settings().account_udp.then(|| Passing::new(&config.name));
        let alive = Alive::new(&config.name).map_err(ProxyError::system("open a socket of nfnetlink"))?;
        let mut proxy = Self {
            rapid: Rapid::new(config.settings().ticking(TICK)),
            uploads: Uploads::new(config.limits.user_buffer),
            most: config.limits.connections.min(connections),
            devices,
            listeners,
            rules,
            alive,
            epoll,
            wake: Arc::new(wake),
            commands: channel(),
            passing: passing.transpose().map_err(ProxyError::system("open a socket of nfnetlink"))?,
            passing_at: now,
            feed: None,
            feed_trouble: None,
            handshakes: Handshakes::default(),
            relays: Slab::new(),
            by_ends: HashMap::new(),
            by_flow: Vec::new(),
            users,
            sender,
            metrics: Arc::default(),
            buffers,
            pipes: Pipes::new(buffers.pipe, pipes),
            queue: Vec::new(),
            moved: Vec::new(),
            resting: Vec::new(),
            rest_until: now,
            spare: Vec::new(),
            tick_at: now,
            ticks_are_late: false,
            renew_at: now,
            renewed_at: now,
            housekeeping_at: now,
            accept_again_at: None,
            reserve: None,
            inherited_until: now,
            has_rules: false,
            draining: false,
            closing: Vec::new(),
            closing_at: now,
            config,
        };
        proxy.listen()?;
        match inheritance {
            None => proxy.rules.install(proxy.config.handshake)?,
            Some(inheritance) => proxy.inherit(now, inheritance)?,
        }
        proxy.has_rules = true;
        rights::keep_what_is_needed()?;
        // Its thread has the rights of this one.
        if let Some(feed) = &proxy.config.feed {
            let wake = proxy.wake.try_clone().map_err(ProxyError::system("copy an eventfd"))?;
            proxy.feed = Some(FeedThread::start(feed, proxy.users.wanted(), wake)?);
        }
        Ok(proxy)
    }

    /// Goes on with what another process has handed over.
    fn inherit(&mut self, now: Time, inheritance: Inheritance) -> Result<(), ProxyError> {
        self.rules.take_over(&inheritance.rules)?;
        inheritance.accept()?;
        self.inherited_until = now + INHERITED;
        self.handshakes.extend_passing(inheritance.passing);
        for handshake in inheritance.handshakes {
            self.add_handshake(handshake);
        }
        client::wait_until_left(&self.config.control.socket);
        Ok(())
    }

    /// Hands over to the process that waits for it.
    fn hand_over(&mut self) -> Result<(), String> {
        if self.draining {
            return Err("it drains already".to_owned());
        }
        let estate = Estate {
            config: &self.config,
            devices: self.devices.as_ref(),
            listeners: &self.listeners,
            rules: self.rules.table(),
        };
        estate
            .hand_over(self.handshakes.waiting(), self.handshakes.passing())
            .map_err(|error| error.to_string())?;
        // The kernel would go on telling of sockets that another process has, too. What is there can be deleted.
        let devices = self.devices.take();
        let devices = devices.iter().map(Devices::descriptors).flat_map(|(held, passed)| [held, passed]);
        let sockets = self.listeners.iter().map(AsFd::as_fd);
        let legs = self.handshakes.waiting().map(|handshake| handshake.server.as_fd());
        for descriptor in devices.chain(sockets).chain(legs) {
            let _ = epoll::delete(&self.epoll, descriptor);
        }
        self.listeners.clear();
        self.handshakes = Handshakes::default();
        self.accept_again_at = None;
        (self.draining, self.has_rules) = (true, false);
        tracing::info!(
            connections = self.relays.len(),
            "handed over; this process ends with its connections"
        );
        Ok(())
    }

    fn listen(&self) -> Result<(), ProxyError> {
        let wake = [(self.wake.as_fd(), Token::Wake)].into_iter();
        let devices = self.devices.iter().map(Devices::descriptors);
        let devices =
            devices.flat_map(|(held, passed)| [(held, Token::DeviceIn), (passed, Token::DeviceOut)]);
        let listeners =
            self.listeners.iter().enumerate().map(|(place, socket)| (socket.as_fd(), Token::Listener(place)));
        for (source, token) in wake.chain(devices).chain(listeners) {
            epoll::add(&self.epoll, source, token.data(), epoll::EventFlags::IN)
                .map_err(ProxyError::system("wait for a descriptor"))?;
        }
        Ok(())
    }

    /// Asks this proxy from other threads.
    pub fn asker(&self) -> Asker {
        Asker { commands: self.commands.0.clone(), wake: Arc::clone(&self.wake) }
    }

    /// What it counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// What sends to users: "kernel" or "pacing".
    pub fn sender(&self) -> &'static str {
        self.sender.name()
    }

    /// The largest number of connections that it splits at a time.
    pub fn most_connections(&self) -> usize {
        self.most
    }

    /// Splits connections until it is told to stop, or has drained.
    ///
    /// # Errors
    ///
    /// The system fails in what the proxy cannot do without.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), ProxyError> {
        let mut events = Vec::with_capacity(EVENTS);
        while !stop.load(Ordering::Relaxed) {
            let timeout = self.timeout(now()?);
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(ProxyError::system("wait for events")(error)),
            }
            let now = now()?;
            if now > self.renewed_at + CERTAIN && !self.draining {
                self.pass_held(now).map_err(ProxyError::system("read held SYNs"))?;
            }
            for event in events.drain(..) {
                self.on_event(now, Token::of(event.data.u64()), event.flags)?;
            }
            self.take_turns(now);
            self.on_time(now)?;
            if self.draining
                && self.relays.is_empty()
                && self.handshakes.len() == 0
                && self.closing.is_empty()
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// How long to wait for events.
    fn timeout(&self, now: Time) -> Option<Timespec> {
        let mut until = self.housekeeping_at;
        if self.takes_new_ones() {
            until = until.min(self.renew_at);
        }
        if !self.queue.is_empty() {
            until = now;
        }
        if !self.moved.is_empty() {
            until = until.min(self.tick_at);
        }
        if !self.closing.is_empty() {
            until = until.min(self.closing_at);
        }
        if !self.resting.is_empty() {
            until = until.min(self.rest_until.max(self.tick_at));
        }
        if let Some(again) = self.accept_again_at {
            until = until.min(again);
        }
        if self.counts_passing() {
            until = until.min(self.passing_at);
        }
        if let Some(deadline) = self.rapid.next_deadline() {
            // Not more often than ticks: one wakes up for all that is due.
            until = until.min(deadline.max(self.tick_at));
        }
        let left = until.checked_since(now).unwrap_or_default().as_nanos();
        Some(Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as _ })
    }

    fn on_event(&mut self, now: Time, token: Token, flags: epoll::EventFlags) -> Result<(), ProxyError> {
        match token {
            Token::Wake => {
                let mut count = [0; 8];
                // It is not blocking: without a count there is nothing new.
                let _ = rustix::io::read(&*self.wake, &mut count);
                self.on_news(now);
                self.on_commands(now);
            }
            Token::DeviceIn => self.on_held(now).map_err(ProxyError::system("read held SYNs"))?,
            Token::DeviceOut => self.devices.iter().for_each(Devices::empty),
            Token::Listener(place) => self.on_accept(now, place),
            Token::Handshake(place) => self.on_answer(now, place, flags),
            Token::Relay(place, side) => self.on_leg(now, place, side, flags),
        }
        Ok(())
    }

    /// A leg has something to say.
    pub(crate) fn on_leg(&mut self, now: Time, place: usize, side: Side, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        let Some(relay) = self.relays.get_mut(place) else { return };
        let leg = relay.leg_mut(side);
        if flags.contains(Flags::ERR)
            && let Some(error) = legs::error(&leg.socket)
        {
            self.end_by_reset(now, place, &error);
            return;
        }
        leg.readable |= flags.intersects(Flags::IN | Flags::RDHUP | Flags::HUP);
        leg.writable |= flags.intersects(Flags::OUT | Flags::HUP);
        self.go(now, place);
    }

    /// Moves the payload of a connection, and ends it where it is over.
    pub(crate) fn go(&mut self, now: Time, place: usize) {
        let Some(relay) = self.relays.get(place) else { return };
        // Otherwise the next tick tells the server.
        if relay.counted.clamp_due && !relay.moved {
            self.set_server_window(place);
        }
        let Some(relay) = self.relays.get_mut(place) else { return };
        let progress = relay.go(&mut self.pipes);
        self.mark_moved(place);
        match progress {
            Ok(Progress::Waits) => {}
            Ok(Progress::Goes) => {
                if let Some(relay) = self.relays.get_mut(place).filter(|relay| !relay.queued) {
                    relay.queued = true;
                    self.queue.push(place);
                }
            }
            Ok(Progress::Done) => self.end_complete(now, place),
            Err(error) => self.end_by_reset(now, place, &error),
        }
    }

    fn take_turns(&mut self, now: Time) {
        let mut due = std::mem::replace(&mut self.queue, std::mem::take(&mut self.spare));
        for place in due.drain(..) {
            if let Some(relay) = self.relays.get_mut(place) {
                relay.queued = false;
                self.go(now, place);
            }
        }
        self.spare = due;
    }

    fn end_complete(&mut self, now: Time, place: usize) {
        let Some(relay) = self.forget(now, place) else { return };
        self.metrics.end(End::Complete, relay.read());
        if relay.counted.allocated && self.sender.take_back(&relay.user.socket).is_err() {
            self.metrics.refused.inc();
        }
        for socket in [relay.user.socket, relay.server.socket] {
            if self.closing.len() < MOST_CLOSING && !is_acknowledged(&socket) {
                self.closing.push(socket);
            } else {
                legs::close(socket);
            }
        }
    }

    /// A leg was reset or has failed: both are reset.
    pub(crate) fn end_by_reset(&mut self, now: Time, place: usize, error: &io::Error) {
        let Some(relay) = self.forget(now, place) else { return };
        tracing::debug!(client = %relay.ends.client, server = %relay.ends.server, %error, "reset");
        self.metrics.end(End::Reset, relay.read());
        legs::reset(relay.user.socket);
        legs::reset(relay.server.socket);
    }

    fn forget(&mut self, now: Time, place: usize) -> Option<Relay> {
        let relay = self.relays.try_remove(place)?;
        relay.give_up(&mut self.pipes);
        self.by_ends.remove(&relay.ends);
        self.rapid.close(now, relay.counted.flow);
        self.uploads.on_waiting(relay.user_number, Bytes::new(relay.counted.uploaded), Bytes::ZERO);
        self.users.end(relay.ends.client.ip());
        self.metrics.connections.dec();
        Some(relay)
    }

    fn on_time(&mut self, now: Time) -> Result<(), ProxyError> {
        if self.takes_new_ones() && now >= self.renew_at {
            self.renew()?;
            (self.renewed_at, self.renew_at) = (now, now + RENEWED);
        }
        let is_due = self.rapid.next_deadline().is_some_and(|deadline| deadline <= now);
        let rested = !self.resting.is_empty() && now >= self.rest_until;
        if now >= self.tick_at && (is_due || rested || !self.moved.is_empty()) {
            self.tick(now)?;
        }
        if self.counts_passing() && now >= self.passing_at {
            self.passing_at = now + passing::READ;
            self.count_passing(now);
        }
        if self.accept_again_at.is_some_and(|again| again <= now) {
            self.accept_again(now);
        }
        if now >= self.housekeeping_at {
            self.housekeeping_at = now + HOUSEKEEPING;
            self.keep_house(now);
        }
        if !self.closing.is_empty() && now >= self.closing_at {
            self.closing_at = now + CLOSING;
            for place in (0..self.closing.len()).rev() {
                if is_acknowledged(&self.closing[place]) {
                    legs::close(self.closing.swap_remove(place));
                }
            }
        }
        Ok(())
    }

    fn renew(&mut self) -> Result<(), ProxyError> {
        let Err(error) = self.alive.renew() else { return Ok(()) };
        // Whoever reloads a firewall may remove what is not its own.
        tracing::warn!(%error, "the rules of the proxy are gone; they are added again");
        self.rules.install(self.config.handshake)?;
        self.alive.renew().map_err(ProxyError::system("say to nftables that the proxy works"))
    }

    /// Whether there are users to whom something may pass that counts.
    fn counts_passing(&self) -> bool {
        self.passing.is_some() && !self.relays.is_empty()
    }

    fn count_passing(&mut self, now: Time) {
        // Without the table nothing is counted; the next renewal notices that it is gone, and adds it.
        let passed = self.passing.as_mut().and_then(|passing| passing.read(now).ok()).unwrap_or_default();
        for (address, bytes) in passed {
            self.metrics.passing.inc_by(bytes.get());
            if let Some(user) = self.users.number(address) {
                self.rapid.on_passing(user, bytes);
            }
        }
    }

    fn keep_house(&mut self, now: Time) {
        let expired = self.handshakes.expire(now, self.config.limits.connect_timeout);
        self.metrics.expired.inc_by(expired as u64);
        self.metrics.handshakes.set(self.handshakes.len() as i64);
        self.metrics.backlog.set(self.rapid.backlog().get() as i64);
        let (mut all, mut known) = (0, 0);
        for (number, ..) in self.users.all() {
            all += 1;
            known += i64::from(
                self.rapid
                    .user(now, number)
                    .is_some_and(|user| user.mode == ranpace_pep::rapid::Mode::Normal),
            );
        }
        self.metrics.users.set(all);
        self.metrics.users_known.set(known);
    }

    fn on_news(&mut self, now: Time) {
        while let Some(news) = self.feed.as_ref().and_then(|feed| feed.news.try_recv().ok()) {
            match news {
                News::Hints(hints) => {
                    if self.feed_trouble.take().is_some() {
                        tracing::info!("radio information comes again");
                    }
                    self.metrics.hints.inc_by(hints.len() as u64);
                    for (user, hint) in hints {
                        self.rapid.on_radio(now, user, &hint);
                    }
                    self.apply_changes();
                }
                News::Addresses(addresses) => self.regroup(now, addresses),
                News::Trouble(why) => {
                    tracing::warn!(%why, "no radio information: connections are split without an allocation");
                    self.feed_trouble = Some(why);
                }
            }
        }
    }

    fn on_commands(&mut self, now: Time) {
        while let Ok(command) = self.commands.1.try_recv() {
            match command {
                Command::Show(answer) => {
                    // What has grown old since the last tick is not shown as current.
                    self.rapid.on_deadline(now);
                    self.apply_changes();
                    // Who asked may have gone.
                    let _ = answer.send(Snapshot::of(self, now));
                }
                Command::Answer(answer) => {
                    // Who asked may have gone.
                    let _ = answer.send(());
                }
                Command::Drain => self.drain(),
                Command::HandOver(answer) => {
                    // Who asked may have gone.
                    let _ = answer.send(self.hand_over());
                }
            }
        }
    }

    fn drain(&mut self) {
        if self.draining {
            return;
        }
        self.draining = true;
        self.let_new_ones_pass();
        tracing::info!(connections = self.relays.len(), "draining: new connections pass");
    }

    /// Whether the system is to give it new connections. Those whose SYN is held can pass later, but what a listener has accepted cannot.
    fn takes_new_ones(&self) -> bool {
        let cannot_accept = self.accept_again_at.is_some() && self.config.handshake == Handshake::AcceptFirst;
        !self.draining && !cannot_accept
    }

    /// New connections pass from now on, unless the system is to give them to the proxy.
    pub(crate) fn let_new_ones_pass(&mut self) {
        if self.takes_new_ones() {
            return;
        }
        if let Err(error) = self.alive.end() {
            // It ends by itself, since it is not renewed any more.
            tracing::warn!(%error, "cannot tell nftables to let new connections pass; they will in a second");
        }
    }

    /// Whether it is draining.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Why no radio information comes.
    pub(crate) fn feed_trouble(&self) -> Option<&str> {
        self.feed_trouble.as_deref()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if !self.has_rules {
            return;
        }
        // While there are rules, new connections pass, because nobody listens any more.
        let ended = self.alive.end();
        self.listeners.clear();
        let removed = self.rules.remove();
        if let Err(error) = ended.map_err(ProxyError::system("let new connections pass")).and(removed) {
            tracing::error!(%error, "rules of the proxy are left; `ranpace proxy --clean` removes them");
        }
    }
}

/// Whether the peer of a socket has acknowledged all that it was sent, or cannot any more.
fn is_acknowledged(socket: &OwnedFd) -> bool {
    ranpace_proxy_options::TcpInfo::read(socket).map_or(true, |info| info.unacked == 0 && info.unsent == 0)
}

/// The clock of hints.
pub(crate) fn now() -> Result<Time, ProxyError> {
    clock::now().map_err(ProxyError::system("read the clock"))
}

/// Allows this process as many descriptors as the system lets it have, and returns how many connections and pipes these are for.
fn descriptors() -> Result<(usize, usize), ProxyError> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
            .map_err(ProxyError::system("raise the limit of open files"))?;
    }
    let open = maximum.unwrap_or(u64::from(u32::MAX)).saturating_sub(RESERVED);
    let connections = (open * PARTS.0 / PARTS.1).max(1);
    // Two descriptors each. A process with so few that this is zero still has the reserve.
    let pipes = (open.saturating_sub(2 * connections) / 2).max(2);
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX); // more than there can be
    Ok((count(connections), count(pipes)))
}
