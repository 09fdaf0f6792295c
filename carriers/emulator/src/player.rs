//! One thread that runs the scenario's workloads and observes the kernel's TCP connections, including those of programs.
//!
//! The thread enters the network namespaces of the hosts one after another, opens their sockets there, and uses all sockets from
//! then on. It reads TCP_INFO every [`LOOK`] where connections are known, and everywhere at the sampling instants.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::sched::{CloneFlags, setns};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use ranpace_scenario::Transport;
use ranpace_units::{Span, Time};

use crate::addresses::{self, host_of};
use crate::datagrams::Datagrams;
use crate::followed::Followed;
use crate::namespaces::Namespaces;
use crate::quic::QuicStream;
use crate::record::Record;
use crate::routes::set_initial_window;
use crate::split::Split;
use crate::status::{FlowLine, Status};
use crate::stream::{CHUNK, Role, Stream};
use crate::tcp_info::{Connection, Observer, TcpInfo};
use crate::topology::Topology;
use crate::workloads::{Settings, host_settings, initial_windows};

/// Interval at which TCP_INFO is read where there are connections: a hundred times a second, which costs about 1 % of a core for a
/// few connections. Ours.
const LOOK: Span = Span::from_millis(10);
/// Priority among real-time threads: below the loop that moves the packets, above ordinary programs. Ours.
const PRIORITY: u8 = 20;
/// Longest sleep, which bounds the reaction to a stop.
const NAP: Duration = Duration::from_millis(20);
/// Most connections of programs that are listed as flows in the results. Ours.
const MOST_CONNECTIONS: usize = 100;
/// Most notes about problems. Ours.
const MOST_NOTES: usize = 100;
/// Longest datagram (RFC 768).
const DATAGRAM: usize = 1 << 16;
/// Token of the timer.
const TIMER: Token = Token(usize::MAX);

/// An event of the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PlayerEvent {
    Begin,
    Write,
    Send,
    Stop,
    Measure,
    Look,
}

/// A flow of the scenario.
pub enum Ends<'a> {
    Tcp(Box<Stream<'a>>),
    Udp(Box<Datagrams<'a>>),
    Quic(Box<QuicStream<'a>>),
    Programs(Followed),
}

/// A flow of the scenario and its state.
pub struct Played<'a> {
    pub ends: Ends<'a>,
    pub record: Record,
    /// What the sockets of a proxy on a router tell.
    pub split: Split,
    /// Payload read before the measured part.
    pub delivered_before: u64,
}

impl Played<'_> {
    /// Payload read.
    pub fn delivered(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(stream) => stream.delivered,
            Ends::Udp(datagrams) => datagrams.delivered,
            Ends::Quic(quic) => quic.delivered(),
            Ends::Programs(followed) => followed.acked,
        }
    }

    /// Its congestion control.
    pub fn cc(&self) -> String {
        match &self.ends {
            Ends::Tcp(stream) => format!("kernel {}", stream.cc()),
            Ends::Quic(quic) => quic.cc().to_owned(),
            Ends::Programs(followed) => followed.cc.clone(),
            Ends::Udp(_) => "udp".to_owned(),
        }
    }
}

/// A connection of a program.
pub struct Seen {
    /// Its figures as last observed.
    pub connection: Connection,
    pub record: Record,
    /// Places of its own host and of its peer.
    pub ends: (usize, usize),
    /// What a proxy on a router does to it.
    pub split: Option<Split>,
    /// When it was first and last observed.
    pub first: Time,
    pub last: Time,
    pub acked_before: u64,
}

impl Seen {
    /// Its name in the results.
    pub fn name(&self, topology: &Topology) -> String {
        let end = |place: usize, port: u16| format!("{}:{port}", topology.name(place));
        let (from, to) = self.ends;
        format!("{} to {}", end(from, self.connection.local.1), end(to, self.connection.remote.1))
    }
}

/// The results of the player.
pub struct WorkloadReport<'a> {
    /// In the scenario's order; empty without workloads.
    pub flows: Vec<Played<'a>>,
    /// In the order in which they appeared.
    pub connections: Vec<Seen>,
    pub notes: Vec<String>,
    /// Beginning and end of the measured part.
    pub measured_from: Time,
    pub end: Time,
}

struct Host {
    namespace: File,
    observer: Observer,
    /// A program's connection was observed at the last reading.
    is_busy: bool,
}

/// The thread's state.
pub struct Player<'a> {
    topology: &'a Topology,
    hosts: Vec<Host>,
    /// The host in whose namespace this thread is.
    inside: usize,
    flows: Vec<Played<'a>>,
    seen: BTreeMap<(usize, [u8; 8]), Seen>,
    /// Connections of programs that proxies on routers split, by their sender's address and their receiver's.
    splits: BTreeMap<[(IpAddr, u16); 2], Split>,
    order: Vec<(usize, [u8; 8])>,
    unseen: u64,
    poll: Poll,
    timer: TimerFd,
    schedule: BinaryHeap<Reverse<(Time, PlayerEvent, usize)>>,
    /// Flows with immediate work.
    ready: Vec<usize>,
    notes: Vec<String>,
    began: Instant,
    rows: usize,
    measuring: bool,
    status: &'a Status,
    /// Room for a datagram.
    datagram: Vec<u8>,
}

impl<'a> Player<'a> {
    /// Configures hosts and sockets, in the thread that will run; `names` are the namespaces, and `settings` those of the flows,
    /// empty without workloads.
    pub fn new(
        topology: &'a Topology,
        names: &[String],
        settings: &'a [Option<Settings>],
        followed: &BTreeMap<usize, PathBuf>,
        status: &'a Status,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        poll.registry().register(&mut SourceFd(&timer.as_fd().as_raw_fd()), TIMER, Interest::READABLE)?;
        let (mut hosts, mut notes) = (Vec::new(), Vec::new());
        for (place, name) in names.iter().enumerate() {
            let namespace = File::open(Namespaces::path_of(name))?;
            setns(&namespace, CloneFlags::CLONE_NEWNET)?;
            // A proxy has to do with what its kernel has.
            if !settings.is_empty() && !topology.is_router(place) {
                for (key, value) in host_settings(topology, place).0 {
                    if let Err(error) = fs::write(Path::new("/proc/sys/net/ipv4").join(key), value) {
                        notes.push(format!("{}: {key} could not be set: {error}", topology.name(place)));
                    }
                }
            }
            if !settings.is_empty() {
                for (to, window) in initial_windows(topology, place) {
                    if let Err(error) = set_initial_window(addresses::v4(to), window) {
                        notes.push(format!(
                            "{}: the initial window could not be set: {error}",
                            topology.name(place)
                        ));
                    }
                }
            }
            hosts.push(Host { namespace, observer: Observer::new()?, is_busy: false });
        }
        let inside = hosts.len().saturating_sub(1);
        let flows = topology.flows().iter().zip(settings).zip(topology.own()).enumerate().map(
            |(flow, ((spec, settings), ends))| {
                let number = (flow, Topology::port(flow));
                let ends = match (&spec.transport, settings, followed.get(&flow)) {
                    (Transport::Quic { algorithm, .. }, _, Some(path)) => {
                        Ends::Programs(Followed::new(path.clone(), algorithm.as_str()))
                    }
                    (Transport::Quic { algorithm, config }, ..) => {
                        let seed = topology.scenario.seed;
                        Ends::Quic(Box::new(QuicStream::new(spec, (algorithm, config), number, *ends, seed)))
                    }
                    (_, Some(settings), _) => Ends::Tcp(Box::new(Stream::new(spec, number, *ends, settings))),
                    (_, None, _) => {
                        Ends::Udp(Box::new(Datagrams::new(spec, number, *ends, topology.scenario.seed)))
                    }
                };
                Played { ends, record: Record::default(), split: Split::default(), delivered_before: 0 }
            },
        );
        let mut player = Self {
            topology,
            hosts,
            inside,
            flows: flows.collect(),
            seen: BTreeMap::new(),
            splits: BTreeMap::new(),
            order: Vec::new(),
            unseen: 0,
            poll,
            timer,
            schedule: BinaryHeap::new(),
            ready: Vec::new(),
            notes,
            began: Instant::now(),
            rows: 0,
            measuring: false,
            status,
            datagram: vec![0; DATAGRAM],
        };
        player.listen()?;
        hurry();
        Ok(player)
    }

    /// Creates the listening sockets and the UDP senders.
    fn listen(&mut self) -> io::Result<()> {
        let Self { hosts, inside, flows, poll, topology, .. } = self;
        for (flow, (from, to)) in flows.iter_mut().zip(topology.own()) {
            match &mut flow.ends {
                Ends::Tcp(stream) => {
                    enter(hosts, inside, stream.places().1)?;
                    stream.listen(poll.registry())?;
                }
                Ends::Udp(datagrams) => {
                    enter(hosts, inside, *to)?;
                    datagrams.listen(poll.registry())?;
                    enter(hosts, inside, *from)?;
                    datagrams.open()?;
                }
                Ends::Quic(quic) => {
                    enter(hosts, inside, quic.places().1)?;
                    quic.listen(poll.registry())?;
                }
                Ends::Programs(_) => {}
            }
        }
        Ok(())
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Runs from `began` on until `stop` is set.
    pub fn run(mut self, began: Instant, stop: &AtomicBool) -> io::Result<WorkloadReport<'a>> {
        self.began = began;
        for (number, spec) in self.topology.flows().iter().enumerate().take(self.flows.len()) {
            self.schedule.push(Reverse((spec.start, PlayerEvent::Begin, number)));
            if let Some(stop) = spec.stop {
                self.schedule.push(Reverse((stop, PlayerEvent::Stop, number)));
            }
        }
        let scenario = &self.topology.scenario;
        let measured_from = Time::ZERO + scenario.warmup;
        self.schedule.push(Reverse((measured_from, PlayerEvent::Measure, 0)));
        // The sampling instants coincide with readings.
        let looks = scenario.sample.as_nanos().div_ceil(LOOK.as_nanos()).max(1);
        let look = Span::from_nanos((scenario.sample.as_nanos() / looks).max(1));
        let mut look_number = 1;
        self.schedule.push(Reverse((Time::ZERO + look, PlayerEvent::Look, 0)));
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; CHUNK];
        while !stop.load(Ordering::Relaxed) {
            let now = self.now();
            while let Some(&Reverse((at, what, number))) = self.schedule.peek()
                && at <= now
            {
                self.schedule.pop();
                if what == PlayerEvent::Look {
                    let is_row = look_number % looks == 0;
                    self.look(is_row)?;
                    if is_row {
                        self.sample(at);
                    }
                    look_number += 1;
                    self.schedule.push(Reverse((at + look, PlayerEvent::Look, 0)));
                } else {
                    self.on_due(now, what, number)?;
                }
            }
            self.work(&mut buffer)?;
            let wait = if self.ready.is_empty() { self.arm()? } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(wait)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            for event in &events {
                if event.token() != TIMER {
                    let (number, role) = Role::of(event.token());
                    self.on_event(number, role, &mut buffer)?;
                }
            }
        }
        self.look(true)?;
        Ok(self.finish(measured_from))
    }

    /// Sets the timer for the next event; returns the longest time to wait.
    fn arm(&self) -> io::Result<Duration> {
        let Some(Reverse((at, ..))) = self.schedule.peek() else { return Ok(NAP) };
        let wait = Duration::from_nanos((*at - self.now()).as_nanos());
        if wait.is_zero() {
            return Ok(wait);
        }
        // The timer has a resolution of a nanosecond, the wait itself of a millisecond.
        self.timer.set(Expiration::OneShot(TimeSpec::from_duration(wait)), TimerSetTimeFlags::empty())?;
        Ok(NAP)
    }

    fn on_due(&mut self, now: Time, what: PlayerEvent, number: usize) -> io::Result<()> {
        if what == PlayerEvent::Measure {
            self.look(true)?;
            self.measuring = true;
            for flow in &mut self.flows {
                flow.record.measure();
                flow.delivered_before = flow.delivered();
            }
            for seen in self.seen.values_mut() {
                seen.record.measure();
                seen.acked_before = seen.record.total().bytes_acked;
            }
            return Ok(());
        }
        if what == PlayerEvent::Stop {
            // Read its figures before it is gone.
            self.look_at_sender(number)?;
        }
        let Self { hosts, inside, flows, poll, schedule, ready, .. } = self;
        let Some(flow) = flows.get_mut(number) else { return Ok(()) };
        let mut enter_schedule = |at: Option<Time>, what| {
            if let Some(at) = at.filter(|at| *at < Time::MAX) {
                schedule.push(Reverse((at, what, number)));
            }
        };
        match (&mut flow.ends, what) {
            (Ends::Tcp(stream), PlayerEvent::Begin) => {
                enter(hosts, inside, stream.places().0)?;
                match stream.begin(now, poll.registry()) {
                    Ok(next) => enter_schedule(next, PlayerEvent::Write),
                    Err(error) => self.fail(number, &error),
                }
            }
            (Ends::Tcp(stream), PlayerEvent::Write) => {
                enter_schedule(stream.write(now), PlayerEvent::Write);
                ready.push(number);
            }
            (Ends::Tcp(stream), PlayerEvent::Stop) => {
                stream.stop();
                flow.record.close();
                ready.push(number);
            }
            (Ends::Udp(datagrams), PlayerEvent::Begin) => {
                enter_schedule(Some(datagrams.begin()), PlayerEvent::Send)
            }
            (Ends::Udp(datagrams), PlayerEvent::Send) => {
                enter_schedule(Some(datagrams.send(now)), PlayerEvent::Send)
            }
            (Ends::Udp(datagrams), PlayerEvent::Stop) => datagrams.stop(),
            (Ends::Quic(quic), what) => {
                let again = match what {
                    PlayerEvent::Begin => {
                        enter(hosts, inside, quic.places().0)?;
                        quic.begin(now, poll.registry())
                    }
                    PlayerEvent::Write => Ok(quic.write(now)),
                    PlayerEvent::Send if !quic.is_due(now) => return Ok(()),
                    PlayerEvent::Stop => {
                        quic.stop();
                        Ok(None)
                    }
                    _ => Ok(None),
                };
                match again {
                    Ok(again) => enter_schedule(again, PlayerEvent::Write),
                    Err(error) => self.fail(number, &error),
                }
                self.work_quic(number)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn on_event(&mut self, number: usize, role: Role, buffer: &mut [u8]) -> io::Result<()> {
        let now = self.now();
        let Self { flows, poll, ready, .. } = self;
        let Some(flow) = flows.get_mut(number) else { return Ok(()) };
        match &mut flow.ends {
            Ends::Tcp(stream) => match stream.on_event(role, poll.registry()) {
                Ok(true) => ready.push(number),
                Ok(false) => {}
                Err(error) => self.fail(number, &error),
            },
            Ends::Udp(datagrams) => datagrams.read(now, buffer)?,
            Ends::Quic(_) => self.work_quic(number)?,
            Ends::Programs(_) => {}
        }
        Ok(())
    }

    /// Reads and sends datagrams of a QUIC flow.
    fn work_quic(&mut self, number: usize) -> io::Result<()> {
        let now = self.now();
        let Self { flows, schedule, datagram, .. } = self;
        let Some(Played { ends: Ends::Quic(quic), record, .. }) = flows.get_mut(number) else {
            return Ok(());
        };
        match quic.work(now, datagram) {
            Ok(work) => {
                if let Some(again) = work.again {
                    schedule.push(Reverse((again, PlayerEvent::Send, number)));
                }
                if work.is_over {
                    quic.info().into_iter().for_each(|info| record.observe(info));
                    record.close();
                }
                if let Some(next) = work.next {
                    schedule.push(Reverse((next, PlayerEvent::Begin, number)));
                }
            }
            Err(error) => self.fail(number, &error),
        }
        Ok(())
    }

    /// Writes and reads; unfinished flows stay in the list.
    fn work(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut list = std::mem::take(&mut self.ready);
        list.sort_unstable();
        list.dedup();
        let began = self.began;
        let clock =
            || Time::ZERO + Span::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        for number in list {
            let Some(Played { ends: Ends::Tcp(stream), .. }) = self.flows.get_mut(number) else { continue };
            let work = match stream.work(clock, buffer) {
                Ok(work) => work,
                Err(error) => {
                    self.fail(number, &error);
                    continue;
                }
            };
            if work.is_over {
                self.look_at_sender(number)?;
                if let Some(Played { ends: Ends::Tcp(stream), record, .. }) = self.flows.get_mut(number) {
                    stream.close();
                    record.close();
                }
            } else if work.more {
                self.ready.push(number);
            }
            if let Some(next) = work.next {
                self.schedule.push(Reverse((next, PlayerEvent::Begin, number)));
            }
        }
        Ok(())
    }

    fn fail(&mut self, number: usize, error: &io::Error) {
        let name = self.topology.flows().get(number).map_or("", |flow| flow.name.as_str());
        if self.notes.len() >= MOST_NOTES {
            return;
        }
        self.notes.push(format!("flow {name:?}: its connection ended: {error}"));
    }

    fn look_at_sender(&mut self, number: usize) -> io::Result<()> {
        match self.topology.own().get(number) {
            Some((from, _)) => self.look_at(*from),
            None => Ok(()),
        }
    }

    /// Reads TCP_INFO everywhere, or only where connections are known.
    fn look(&mut self, everywhere: bool) -> io::Result<()> {
        let now = self.now();
        for Played { ends, record, .. } in &mut self.flows {
            match ends {
                Ends::Quic(quic) => quic.info().into_iter().for_each(|info| record.observe(info)),
                Ends::Programs(followed) => {
                    for sample in followed.read(now)? {
                        record.observe(TcpInfo::from(&sample));
                        record.state = sample.state;
                    }
                }
                Ends::Tcp(_) | Ends::Udp(_) => {}
            }
        }
        let mut places = vec![everywhere; self.hosts.len()];
        for (flow, (from, _)) in self.flows.iter().zip(self.topology.own()) {
            if matches!(&flow.ends, Ends::Tcp(stream) if stream.is_open()) {
                places[*from] = true;
            }
        }
        let mut has_router = false;
        for (place, is_known) in places.into_iter().enumerate() {
            if self.topology.is_router(place) {
                has_router = true;
                self.look_at_router(place)?;
            } else if is_known || self.hosts[place].is_busy {
                self.look_at(place)?;
            }
        }
        if has_router {
            let now = self.now();
            for flow in &mut self.flows {
                flow.split.on_reading(now, flow.record.srtt(), self.measuring);
            }
            self.splits.values_mut().for_each(|split| split.on_reading(now, None, self.measuring));
        }
        Ok(())
    }

    /// Reads the sockets of proxies on a router: each faces one end of a connection, with the address of the other end.
    fn look_at_router(&mut self, place: usize) -> io::Result<()> {
        let Self { topology, hosts, flows, splits, rows, .. } = self;
        let Some(host) = hosts.get_mut(place) else { return Ok(()) };
        let mut splits = |ends: [(IpAddr, u16); 2], take: fn(&mut Split, TcpInfo), info: TcpInfo| {
            if splits.len() < 2 * MOST_CONNECTIONS || splits.contains_key(&ends) {
                take(splits.entry(ends).or_insert_with(|| Split::begin_at_row(*rows)), info);
            }
        };
        let looked = host.observer.look(|connection| {
            let ends = host_of(connection.local.0).zip(host_of(connection.remote.0));
            let Some((local, remote)) = ends.filter(|_| connection.is_open) else { return };
            match topology.own_flow(local, remote, [connection.local.1, connection.remote.1]) {
                Some((flow, true)) => flows[flow].split.on_to_receiver(connection.info),
                Some((flow, false)) => flows[flow].split.on_from_sender(connection.info),
                None => {
                    let (local, remote, info) = (connection.local, connection.remote, connection.info);
                    splits([local, remote], Split::on_to_receiver, info);
                    splits([remote, local], Split::on_from_sender, info);
                }
            }
        });
        self.renew_observer(place, looked)
    }

    fn look_at(&mut self, place: usize) -> io::Result<()> {
        let now = self.now();
        let Self { topology, hosts, flows, seen, order, unseen, rows, measuring, .. } = self;
        let Some(host) = hosts.get_mut(place) else { return Ok(()) };
        let mut is_busy = false;
        let looked = host.observer.look(|connection| {
            let Some(peer) = host_of(connection.remote.0) else { return };
            match topology.own_flow(place, peer, [connection.local.1, connection.remote.1]) {
                Some((flow, true)) => {
                    let flow = flows.get_mut(flow).filter(|_| connection.is_open);
                    if let Some(Played { ends: Ends::Tcp(stream), record, .. }) = flow
                        && stream.is_open()
                    {
                        record.observe(connection.info);
                    }
                }
                // The receiver's socket.
                Some((_, false)) => {}
                None => {
                    is_busy = true;
                    if connection.info.bytes_sent == 0 {
                        return;
                    }
                    let key = (place, connection.cookie);
                    let known = match seen.entry(key) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(_) if order.len() >= MOST_CONNECTIONS => {
                            *unseen += 1;
                            return;
                        }
                        Entry::Vacant(empty) => {
                            let mut record = Record::default();
                            record.begin_at_row(*rows);
                            if *measuring {
                                record.measure();
                            }
                            order.push(key);
                            empty.insert(Seen {
                                connection: connection.clone(),
                                record,
                                split: None,
                                ends: (place, peer),
                                first: now,
                                last: now,
                                acked_before: 0,
                            })
                        }
                    };
                    known.record.observe(connection.info);
                    (known.connection, known.last) = (connection, now);
                }
            }
        });
        host.is_busy = is_busy;
        self.renew_observer(place, looked)
    }

    /// Replaces an observer whose query failed.
    fn renew_observer(&mut self, place: usize, looked: io::Result<()>) -> io::Result<()> {
        if let Err(error) = looked {
            // The rest of an aborted answer is not awaited.
            let Self { hosts, inside, notes, .. } = self;
            enter(hosts, inside, place)?;
            hosts[place].observer = Observer::new()?;
            if notes.len() < MOST_NOTES {
                notes.push(format!("{}: TCP_INFO was missed once: {error}", self.topology.name(place)));
            }
        }
        Ok(())
    }

    /// Adds a row to every series.
    fn sample(&mut self, at: Time) {
        let interval = self.topology.scenario.sample;
        self.rows += 1;
        for flow in &mut self.flows {
            let delivered = flow.delivered();
            flow.record.sample(at, interval, delivered);
            flow.split.sample();
        }
        self.splits.values_mut().for_each(Split::sample);
        for seen in self.seen.values_mut() {
            // A closed connection has no more rows.
            if at - seen.last <= interval {
                let acked = seen.record.total().bytes_acked;
                seen.record.sample(at, interval, acked);
            }
        }
        if self.status.is_wanted() {
            self.status.set_flows(self.flow_lines(at));
        }
    }

    /// Flows as others are told of them: the scenario's, and programs' connections that are open.
    fn flow_lines(&self, at: Time) -> Vec<FlowLine> {
        let topology = self.topology;
        let own = self.flows.iter().zip(topology.flows()).zip(topology.own());
        let own = own.map(|((flow, spec), (from, to))| FlowLine {
            name: spec.name.clone(),
            from: topology.name(*from).to_owned(),
            to: topology.name(*to).to_owned(),
            cc: flow.cc(),
            values: flow.record.last_row(),
        });
        let seen = self.order.iter().filter_map(|key| self.seen.get(key));
        let open = seen.filter(|seen| at - seen.last <= topology.scenario.sample);
        let connections = open.map(|seen| FlowLine {
            name: seen.name(topology),
            from: topology.name(seen.ends.0).to_owned(),
            to: topology.name(seen.ends.1).to_owned(),
            cc: format!("kernel {}", seen.connection.cc),
            values: seen.record.last_row(),
        });
        own.chain(connections).collect()
    }

    fn finish(mut self, measured_from: Time) -> WorkloadReport<'a> {
        let end = self.now();
        if self.unseen > 0 {
            self.notes.push(format!(
                "of the connections of programs the first {MOST_CONNECTIONS} have flows in the results"
            ));
        }
        let mut connections: Vec<Seen> = self.order.iter().filter_map(|key| self.seen.remove(key)).collect();
        for seen in &mut connections {
            seen.split = self.splits.remove(&[seen.connection.local, seen.connection.remote]);
        }
        WorkloadReport { flows: self.flows, connections, notes: self.notes, measured_from, end }
    }
}

/// Requests real-time priority and timers of nanosecond resolution; without them, the thread runs like any other.
fn hurry() {
    use thread_priority::unix as priority;
    let _ = nix::sys::prctl::set_timerslack(1);
    if let Ok(value) = PRIORITY.try_into() {
        let _ = priority::set_thread_priority_and_policy(
            priority::thread_native_id(),
            thread_priority::ThreadPriority::Crossplatform(value),
            priority::ThreadSchedulePolicy::Realtime(priority::RealtimeThreadSchedulePolicy::Fifo),
        );
    }
}

/// Has the thread enter the namespace of the host at a place.
fn enter(hosts: &[Host], inside: &mut usize, place: usize) -> io::Result<()> {
    if *inside != place
        && let Some(host) = hosts.get(place)
    {
        setns(&host.namespace, CloneFlags::CLONE_NEWNET)?;
        *inside = place;
    }
    Ok(())
}
