//! Proxies that split TCP connections (Diarra 2022, section 5.2.1).
//!
//! A split flow has two connections. The flow itself continues as the connection from the proxy to the user (TCP_RAN), and a *leg*,
//! numbered after the scenario's flows, comes from the server to the proxy (TCP_WAN). To the rest of the simulator both are
//! ordinary flows; only packets that reach the proxy are treated differently. Bytes move from leg to flow as numbers, as in the
//! simulator's TCP.
//!
//! The handshake is transparent: the proxy answers each side when the other has answered (section 8 of the specification), and
//! holds what a side sent until then. Where the user fetches, its request rides on the handshake's last segment, and the proxy
//! holds the server's answer to its SYN until that segment has arrived; the server's first RTT sample therefore includes the user's
//! part, and no other sample does.
//!
//! [`SplitProxy`] decides which connections are split, what servers may send and, if it runs RAPID, what flows are allocated. It
//! reads hints about the downlink of each of its users from the edge's feed.

use std::collections::VecDeque;

use ranpace_cc::Allocation;
use ranpace_pep::rapid::{Category, Mode, ReportTrust};
use ranpace_pep::split::SplitProxy;
use ranpace_phy::Direction as Way;
use ranpace_rnis::RadioHint;
use ranpace_scenario::{FlowSpec, Hop, ProxyKind, ProxySpec, Scenario, Transport};
use ranpace_tcp::{Config, Kind, Receiver, Segment, Sender};
use ranpace_units::{Bytes, Span, Time};

use crate::flow::{Ends, Flow};
use ranpace_network::Histogram;
use ranpace_network::random::mix;
use ranpace_network::{Distribution, SplitResult};

/// Segments that a server may send before the proxy's first decision. Ours: its initial window (RFC 6928).
const FIRST_WINDOW: u64 = 10;
/// The largest window that TCP can announce (RFC 7323, 2.3).
const MOST_WINDOW: Bytes = Bytes::new(1 << 30);

/// The proxies of a scenario and the flows that they split.
#[derive(Debug)]
pub(crate) struct Splits<'a> {
    scenario: &'a Scenario,
    proxies: Vec<Proxy<'a>>,
    all: Vec<Split>,
    /// For each flow, and each leg after them, its split, if any.
    of: Vec<Option<u32>>,
}

/// A simulated proxy.
#[derive(Debug)]
struct Proxy<'a> {
    spec: &'a ProxySpec,
    decides: SplitProxy,
    /// The split of each of its places.
    splits: Vec<usize>,
}

/// A flow that is split.
#[derive(Debug)]
pub(crate) struct Split {
    /// Index of the flow, and of its leg to the server.
    pub flow: u32,
    pub leg: u32,
    /// Its proxy, and its place in [`SplitProxy`].
    proxy: usize,
    place: usize,
    /// The user that receives its data, if the receiver is one.
    user: Option<usize>,
    /// Whether the current connection is split, and not passed through.
    pub active: bool,
    /// The first handshake segment of one side, until the other has answered; and the server's answer.
    held: Option<Segment>,
    answer: Option<Segment>,
    /// When the proxy sent the segment that the server's next one answers.
    asked: Option<Time>,
    /// Payload moved from leg to flow, and the arrival time of the last byte of each part, until that part has left.
    relayed: u64,
    waiting: VecDeque<(u64, Time)>,
    /// Waiting time of the payload that left last.
    waited: Span,
    /// The last timestamp of the proxy echoed by the server.
    echo: Time,
    /// RTT of the connection to the server, as last measured by the server and by the proxy.
    wan_rtt: Option<Span>,
    proxy_rtt: Option<Span>,
    meter: SplitMeter,
}

/// Measurements that only split flows have.
#[derive(Debug, Default)]
struct SplitMeter {
    ran_rtt: Histogram,
    delay: Histogram,
    largest: u64,
}

/// The side of the proxy that a connection is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    User,
}

impl<'a> Splits<'a> {
    /// The proxies of a scenario; `None` if nothing is split.
    pub fn new(scenario: &'a Scenario) -> Option<Box<Self>> {
        let proxy = |spec: &'a ProxySpec| {
            let settings = match &spec.kind {
                ProxyKind::Split => None,
                ProxyKind::Rapid(settings) => Some(**settings),
            };
            let decides = SplitProxy::new(spec.buffers, settings, scenario.users.len());
            Proxy { spec, decides, splits: Vec::new() }
        };
        let mut proxies: Vec<Proxy<'a>> = scenario.proxies.iter().map(proxy).collect();
        let mut of = vec![None; scenario.flows.len()];
        let mut all = Vec::new();
        for (leg, (proxy, split)) in (scenario.flows.len() as u32..).zip(ranpace_network::splits(scenario)) {
            of[split.flow] = Some(all.len() as u32);
            let user = user_of(&scenario.flows[split.flow]);
            let place = proxies[proxy].decides.add_place(user.unwrap_or(usize::MAX));
            proxies[proxy].splits.push(all.len());
            all.push(Split {
                flow: split.flow as u32,
                leg,
                proxy,
                place,
                user,
                active: false,
                held: None,
                answer: None,
                asked: None,
                relayed: 0,
                waiting: VecDeque::new(),
                waited: Span::ZERO,
                echo: Time::ZERO,
                wan_rtt: None,
                proxy_rtt: None,
                meter: SplitMeter::default(),
            });
        }
        of.extend((0..all.len() as u32).map(Some));
        (!all.is_empty()).then(|| Box::new(Self { scenario, proxies, all, of }))
    }

    /// Subscriptions of the proxies: the proxy, the user, and the bearer of one of its flows.
    pub fn readers(&self) -> Vec<(u32, u32, u8)> {
        let wants = |split: &&Split| self.proxies[split.proxy].decides.is_rapid();
        let reader = |split: &Split| {
            let bearer = self.scenario.flows[split.flow as usize].bearer;
            Some((split.proxy as u32, split.user? as u32, bearer))
        };
        let mut readers: Vec<(u32, u32, u8)> = self.all.iter().filter(wants).filter_map(reader).collect();
        readers.sort_unstable();
        readers.dedup_by_key(|(proxy, user, _)| (*proxy, *user));
        readers
    }

    /// A packet to a user passes a proxy that counts it.
    #[inline]
    pub fn on_passing(&mut self, proxy: usize, user: u32, wire: u32) {
        self.proxies[proxy].decides.on_passing(user, Bytes::new(wire.into()));
    }

    /// Number of proxies.
    pub fn proxies(&self) -> usize {
        self.proxies.len()
    }

    /// The proxy of a split.
    pub fn proxy_of(&self, split: usize) -> usize {
        self.all[split].proxy
    }

    /// Radio information about a user has reached a proxy.
    pub fn on_hint(&mut self, now: Time, proxy: usize, user: u32, hint: &RadioHint) {
        self.proxies[proxy].decides.on_radio(now, user, hint);
    }

    /// When a proxy's deadline comes.
    pub fn next_deadline(&self, proxy: usize) -> Time {
        self.proxies[proxy].decides.next_deadline()
    }

    /// The proxy's deadline has come.
    pub fn on_deadline(&mut self, now: Time, proxy: usize) {
        self.proxies[proxy].decides.on_deadline(now);
    }

    /// The next split of a proxy with a changed decision; its allocation has been passed to its sender.
    pub fn next_change(&mut self, proxy: usize, flows: &mut [Flow], now: Time) -> Option<usize> {
        let proxy = &mut self.proxies[proxy];
        let (place, is_reallocated) = proxy.decides.next_change()?;
        let split = proxy.splits[place];
        let to_user = flows.get_mut(self.all[split].flow as usize).map(|flow| &mut flow.ends);
        if let (true, Some(Ends::Tcp(to_user, _))) = (is_reallocated, to_user) {
            let allocation = proxy.decides.allocation(place);
            to_user
                .on_allocation(now, allocation.map(|own| Allocation { rate: own.rate, window: own.window }));
        }
        Some(split)
    }

    /// Number of legs.
    pub fn legs(&self) -> usize {
        self.all.len()
    }

    /// The split of a flow or leg, and its side; `None` for flows without a split.
    #[inline]
    pub fn of(&self, flow: u32) -> Option<(usize, Side)> {
        let split = (*self.of.get(flow as usize)?)? as usize;
        let side = if (flow as usize) < self.scenario.flows.len() { Side::User } else { Side::Server };
        self.all.get(split).filter(|split| split.active).map(|_| (split, side))
    }

    /// The split of a flow, whether or not its current connection is split.
    pub fn of_flow(&self, flow: u32) -> Option<usize> {
        (*self.of.get(flow as usize)?).map(|split| split as usize)
    }

    /// The flow or leg that has the server's sender.
    pub fn server_end(&self, flow: usize) -> usize {
        self.of(flow as u32).map_or(flow, |(split, _)| self.all[split].leg as usize)
    }

    /// The leg of a flow that is currently split, and the waiting time of the payload that left the proxy last.
    pub fn leg_of(&self, flow: usize) -> Option<(usize, Span)> {
        let (split, side) = self.of(flow as u32)?;
        let one = &self.all[split];
        (side == Side::User).then_some((one.leg as usize, one.waited))
    }

    pub fn at(&self, split: usize) -> &Split {
        &self.all[split]
    }

    /// A connection begins. Returns whether it is split, which is refused while the committed buffers exceed the total.
    pub fn admit(&mut self, split: usize, now: Time) -> bool {
        let one = &mut self.all[split];
        let proxy = &mut self.proxies[one.proxy];
        // A server has its first window from its own settings; `begin` passes the same to its peer.
        let first = match &self.scenario.flows[one.flow as usize].transport {
            Transport::Tcp { config, .. } => first_window(config, &proxy.spec.kind),
            _ => Bytes::ZERO,
        };
        one.active = proxy.decides.admit(now, one.place, first);
        one.active
    }

    /// A connection is over: its committed buffer is released.
    pub fn release(&mut self, split: usize, now: Time) {
        let one = &self.all[split];
        self.proxies[one.proxy].decides.release(now, one.place);
    }

    /// Opens both connections of a split flow. Returns when to ask the application again.
    pub fn begin(&mut self, split: usize, flows: &mut [Flow], now: Time) -> Option<Time> {
        let one = &mut self.all[split];
        let spec = &self.scenario.flows[one.flow as usize];
        let proxy = self.proxies[one.proxy].spec;
        // Only flows of TCP are split.
        let Transport::Tcp { algorithm, config, ack_every } = &spec.transport else { return None };
        (one.held, one.answer, one.asked, one.relayed) = (None, None, None, 0);
        one.waiting.clear();
        one.waited = Span::ZERO;
        (one.echo, one.wan_rtt, one.proxy_rtt) = (Time::ZERO, None, None);

        let leg = flows.get_mut(one.leg as usize)?;
        let seed = leg.renew();
        let platform = Config::default();
        let (receive_buffer, receive_buffer_max) = receive_buffers(&proxy.kind);
        let at_proxy = Config { receive_buffer, receive_buffer_max, ..config.clone() };
        let mut sender = Box::new(Sender::new(config, algorithm.build(seed)));
        sender.open(now);
        let mut receiver = Box::new(Receiver::new(&at_proxy, algorithm.receiver()));
        receiver.set_window_limit(first_window(config, &proxy.kind));
        leg.ends = Ends::Tcp(sender, receiver);

        let flow = flows.get_mut(one.flow as usize)?;
        let seed = flow.renew();
        let to_user = Config { send_buffer: Bytes::MAX, ..config.clone() };
        // Unless the scenario sets it, the acknowledgement ratio of the user is that of the control sending to it.
        let ack_every = ack_every.or_else(|| proxy.ran_cc.ack_every()).unwrap_or(platform.ack_every);
        let at_user = Config { ack_every, ..config.clone() };
        let mut receiver = Box::new(Receiver::new(&at_user, proxy.ran_cc.receiver()));
        receiver.open(now);
        let sender = Box::new(Sender::new(&to_user, proxy.ran_cc.build(mix(seed, 1))));
        flow.ends = Ends::Tcp(sender, receiver);
        flow.diverted = Some(Bytes::ZERO);
        let next = flow.write(&spec.workload, now);
        self.supply(split, flows);
        next
    }

    /// Passes the application's data to the server's endpoint.
    pub fn supply(&mut self, split: usize, flows: &mut [Flow]) {
        let one = &self.all[split];
        let bytes = flows.get_mut(one.flow as usize).and_then(|flow| flow.diverted.as_mut());
        let bytes = bytes.map_or(Bytes::ZERO, core::mem::take);
        if let Some(leg) = flows.get_mut(one.leg as usize) {
            leg.supply(bytes);
        }
    }

    /// A segment from the server reached the proxy.
    pub fn on_server_segment(&mut self, split: usize, flows: &mut [Flow], now: Time, segment: &Segment) {
        let one = &mut self.all[split];
        let decides = &mut self.proxies[one.proxy].decides;
        let [Some(flow), Some(leg)] = pair(flows, one) else { return };
        let Ends::Tcp(to_user, _) = &mut flow.ends else { return };
        match segment.kind {
            // The user is asked first; once it has answered, a repeated SYN is answered at once.
            Kind::Syn if !to_user.is_established() => {
                one.held = Some(*segment);
                to_user.open(now);
                return;
            }
            // The user's SYN is answered now, the server when the user's request has arrived.
            Kind::SynAck if !to_user.is_established() => {
                one.learn_rtt(decides, to_user, now);
                one.answer = Some(*segment);
                if let Some(held) = one.held.take() {
                    to_user.on_segment(now, &held);
                }
                return;
            }
            Kind::Syn | Kind::SynAck => {}
            _ => {
                one.learn_rtt(decides, to_user, now);
                if segment.echo > one.echo {
                    one.echo = segment.echo;
                    one.proxy_rtt = Some(now - segment.echo);
                    decides.on_wan_rtt(now, one.place, now - segment.echo);
                }
            }
        }
        let Ends::Tcp(_, receiver) = &mut leg.ends else { return };
        receiver.on_segment(now, segment);
        if segment.length > 0 {
            leg.totals.received_packets += 1;
            leg.totals.one_way_sum += (now - segment.timestamp).as_nanos();
        }
        let came = receiver.delivered().get();
        if came > one.relayed {
            let bytes = Bytes::new(came - one.relayed);
            to_user.write(bytes);
            decides.on_wan_data(now, one.place, bytes);
            one.relayed = came;
            one.waiting.push_back((came, now));
        }
    }

    /// A segment from the user reached the proxy. Returns the RTT sample that it gave.
    pub fn on_user_segment(
        &mut self,
        split: usize,
        flows: &mut [Flow],
        now: Time,
        segment: &Segment,
    ) -> Option<Span> {
        let one = &mut self.all[split];
        let [Some(flow), Some(leg)] = pair(flows, one) else { return None };
        let Ends::Tcp(_, from_server) = &mut leg.ends else { return None };
        let is_open = matches!(&flow.ends, Ends::Tcp(to_user, _) if to_user.is_established());
        if segment.kind == Kind::Syn && one.answer.is_none() && !is_open {
            let is_first = one.held.replace(*segment).is_none();
            if is_first {
                from_server.open(now);
                one.asked = Some(now);
            }
            return None;
        }
        let before = acked(flow);
        let rtt = flow.on_feedback(now, segment);
        let newly = acked(flow) - before;
        let decides = &mut self.proxies[one.proxy].decides;
        if !newly.is_zero() {
            decides.on_ran_acked(one.place, newly);
        }
        // The user has answered, so the proxy answers the server.
        if let Ends::Tcp(to_user, _) = &flow.ends
            && to_user.is_established()
        {
            if let Some(answer) = one.answer.take() {
                from_server.on_segment(now, &answer);
            }
            if let Some(held) = one.held.take() {
                from_server.on_segment(now, &held);
                one.asked = Some(now);
            }
        }
        if let Some(rtt) = rtt {
            one.meter.ran_rtt.record(rtt);
            decides.on_ran_rtt(now, one.place, rtt);
        }
        rtt
    }

    /// The RTT between server and user for an RTT sample of the connection to the user: adds the RTT of the other connection and
    /// the last payload's waiting time in the proxy.
    pub fn whole_rtt(&self, split: usize, rtt: Span) -> Option<Span> {
        let one = &self.all[split];
        one.wan_rtt.or(one.proxy_rtt).map(|wan| wan + one.waited + rtt)
    }

    /// The server measured its RTT to the proxy. If nothing more is in flight, the handshake's RTT is used for its part of the
    /// whole RTT instead: the last sample may have waited for a delayed acknowledgement, and would persist while the proxy sends
    /// the rest.
    pub fn on_wan_rtt(&mut self, split: usize, rtt: Span, is_quiet: bool) {
        let one = &mut self.all[split];
        one.wan_rtt = if is_quiet { one.proxy_rtt.or(Some(rtt)) } else { Some(rtt) };
    }

    /// Payload that left for the user makes room for payload from the server.
    pub fn settle(&mut self, split: usize, flows: &mut [Flow], now: Time) {
        let one = &mut self.all[split];
        let [Some(flow), Some(leg)] = pair(flows, one) else { return };
        let (Ends::Tcp(to_user, _), Ends::Tcp(_, from_server)) = (&flow.ends, &mut leg.ends) else { return };
        let sent = to_user.sent().get();
        while let Some(&(last, came)) = one.waiting.front()
            && last <= sent
        {
            one.waited = now - came;
            one.meter.delay.record(one.waited);
            one.waiting.pop_front();
        }
        let backlog = one.relayed - sent;
        one.meter.largest = one.meter.largest.max(backlog);
        let decides = &mut self.proxies[one.proxy].decides;
        // Set it even if unchanged: arrived data have used up a part of the announced window.
        from_server.set_window_limit(decides.window(now, one.place, Bytes::new(backlog)));
        // No more data will come.
        let is_over = flow.stopped && decides.is_open(one.place);
        if is_over && to_user.is_done() && matches!(&leg.ends, Ends::Tcp(server, _) if server.is_done()) {
            self.release(split, now);
        }
    }

    /// Shows the proxy's figures of a flow, for a row of its series.
    pub fn inspect(&self, split: usize, flows: &[Flow], now: Time, show: &mut dyn FnMut(&'static str, f64)) {
        let one = &self.all[split];
        let decides = &self.proxies[one.proxy].decides;
        let flow = flows.get(one.flow as usize).map(|flow| &flow.ends);
        let Some(Ends::Tcp(to_user, _)) = flow else { return };
        let mss = to_user.mss().as_f64();
        show("backlog_bytes", one.backlog(to_user) as f64);
        show("delay_s", one.waiting.front().map_or(0.0, |(_, came)| (now - *came).as_secs_f64()));
        show("window_bytes", decides.limit(one.place).as_f64());
        show("ran_cwnd_bytes", to_user.window().cwnd * mss);
        show("ran_in_flight_bytes", to_user.in_flight() as f64 * mss);
        if let Some(rtt) = to_user.rtt().latest() {
            show("ran_rtt_s", rtt.as_secs_f64());
        }
        if let Some(rtt) = one.wan_rtt {
            show("wan_rtt_s", rtt.as_secs_f64());
        }
        if let Some((user, record)) = decides.look(now, one.place) {
            let rate = decides.allocation(one.place).map(|allocation| allocation.rate.as_f64());
            show("allocation_bit_s", rate.unwrap_or(f64::NAN));
            show("share_bytes", record.share.as_f64());
            show("demand_bit_s", record.demand.as_f64());
            let category = match record.category {
                Category::Init => 0.0,
                Category::Fast => 1.0,
                Category::Slow => 2.0,
            };
            show("category", category);
            let mode = match user.mode {
                Mode::Normal => 0.0,
                Mode::Hold => 1.0,
                Mode::Open => 2.0,
            };
            show("mode", mode);
            let guard = match user.trust {
                ReportTrust::Trusted => 0.0,
                ReportTrust::Probing => 1.0,
                ReportTrust::Contradicted => 2.0,
            };
            show("guard", guard);
            show("capacity_bit_s", user.capacity.as_f64());
            show("flows", f64::from(user.flows));
            show("slow_flows", f64::from(user.slow));
        }
    }

    /// The result of a flow at the end.
    pub fn result(&self, split: usize, wan_rtt: &Histogram) -> SplitResult {
        let one = &self.all[split];
        let counts = self.proxies[one.proxy].decides.counts(one.place);
        let figures = |of: &Histogram| Distribution { cdf: Vec::new(), ..of.distribution() };
        SplitResult {
            proxy: self.proxies[one.proxy].spec.name.clone(),
            wan_rtt: figures(wan_rtt),
            ran_rtt: figures(&one.meter.ran_rtt),
            delay: figures(&one.meter.delay),
            largest_backlog: Bytes::new(one.meter.largest),
            passed_through: counts.passed,
            connections: counts.connections,
            ran_dropped_packets: 0, // filled in from the flow
            periods: counts.periods,
            slow_periods: counts.slow_periods,
        }
    }
}

impl Split {
    fn backlog(&self, to_user: &Sender) -> u64 {
        self.relayed.saturating_sub(to_user.sent().get())
    }

    /// The server answered the proxy's part of the handshake: RAPID knows the flow from now on.
    fn learn_rtt(&mut self, decides: &mut SplitProxy, to_user: &Sender, now: Time) {
        let Some(asked) = self.asked.take() else { return };
        let rtt = (now - asked).max(Span::from_nanos(1));
        self.proxy_rtt = Some(rtt);
        decides.on_handshake(now, self.place, rtt, to_user.mss(), to_user.rtt().latest());
    }
}

/// Receive buffer of the proxy's connection to a server, and its maximum.
fn receive_buffers(kind: &ProxyKind) -> (Bytes, Bytes) {
    let platform = Config::default();
    match kind {
        ProxyKind::Split => (platform.receive_buffer, platform.receive_buffer_max),
        // Only RAPID's window limits it.
        ProxyKind::Rapid(_) => (MOST_WINDOW, MOST_WINDOW),
    }
}

/// Returns the bytes that a server may send before the proxy's first decision.
fn first_window(config: &Config, kind: &ProxyKind) -> Bytes {
    (config.mss() * FIRST_WINDOW).min(receive_buffers(kind).0)
}

/// The user whose downlink is last on a flow's path.
fn user_of(flow: &FlowSpec) -> Option<usize> {
    flow.path.iter().rev().find_map(|hop| match *hop {
        Hop::Radio { user, direction: Way::Downlink } => Some(user as usize),
        _ => None,
    })
}

/// Payload that the user has acknowledged.
fn acked(flow: &Flow) -> Bytes {
    match &flow.ends {
        Ends::Tcp(to_user, _) => to_user.acked(),
        _ => Bytes::ZERO,
    }
}

/// The flow and the leg of a split.
fn pair<'f>(flows: &'f mut [Flow], one: &Split) -> [Option<&'f mut Flow>; 2] {
    match flows.get_disjoint_mut([one.flow as usize, one.leg as usize]) {
        Ok([flow, leg]) => [Some(flow), Some(leg)],
        Err(_) => [None, None],
    }
}
