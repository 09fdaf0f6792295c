//! RAPID: a proxy beside the base station that shares a user's radio bandwidth among its TCP connections by demand.
//!
//! Source: Diarra 2022, chapter 5; equations 5.1 to 5.13. Where the text is silent: the authors' published code, or else ours.
//!
//! The proxy splits each connection into a server side (WAN), where it is the receiver, and a user side (RAN), where it is the
//! sender. It limits the server through the advertised window, and sends to the user with a window of the same rate. This module
//! computes both windows; a carrier moves the bytes.
//!
//! Each flow is in a [`Category`]; each user's radio is in a [`Mode`].
//!
//! * Capacity of the user, updated with each report: `C = TBS(MCS, Pa + Pu) / TTI` (5.1 to 5.3).
//! * Share of each of N active flows: `S = C / 8N RTTmin_WAN` (5.4; the printed equation lacks the `/ 8`).
//! * A period lasts `K = ceil(log2(RW / MSS)) + 1` RTTs to the server (5.7). Each RTT yields an arrival rate `r` and updates its
//!   mean `r^ = r^ / 8 + 7 r / 8` (5.9), which restarts with each period.
//! * At the end of a period the flow is slow if `r < 0.8 R`, `R = RW / RTT_WAN` (5.8), with `r` and `RW` of the last RTT. A slow
//!   flow gets `RW = r^ / R RW` (5.10), at most S. What slow flows release goes to fast ones in equal parts (5.12, 5.13).
//! * On the user's side `cwnd = RW / RTTmin_WAN RTTmin_RAN`, at least 10 segments. [`WindowRule`] lists the rules of the authors'
//!   ns-3 code and of their Linux module.
//!
//! Ours, or our reading:
//!
//! * Equation 5.11 measures what a flow releases against its previous window; we measure it against its current share, as a rate.
//!   Earlier releases are thus not forgotten, and with unequal RTTs the rates add up to C. [`Accounting`] offers the alternatives,
//!   for study.
//! * Windows are recomputed whenever C, N, a category or a smallest RTT changes. Periods continue meanwhile; a period is extended
//!   by `ceil(log2 g)` RTTs if the mean window of a round is g > 2 times the one that the period was sized for.
//! * K follows from the mean window of the period's first RTT, R from that of its last. The first RTT begins after the slack, so
//!   that each sample covers exactly one RTT. Two flows judged at the same instant do not influence each other.
//! * A flow without data for max(1 s, 10 RTT) and with no backlog is idle: it does not count in N, and keeps `min(S, 10 MSS)`. It
//!   starts afresh with its next data.
//! * No window is below 2 MSS. The backlog in the proxy limits the window to max(64 KiB, 2 BDP) minus the backlog, see [`Caps`].
//! * Late reports: see [`Mode`]. If the feed stays late for more than a second without stopping, every flow gets its share again at
//!   the end of its period, since a flow that was slow once need not stay slow. A feed that was lost for more than a second counts
//!   again after ten reports, and all flows start afresh. The very first report counts at once. During a handover C is zero.
//! * UDP and QUIC bypass the proxy, and C is shared out as if they did not exist. With `account_udp` their rate is subtracted from
//!   C, up to half of it; the rate is a mean over about 100 ms, updated with each report.
//! * `profile = field` enables a guard against wrong reports: see `rapid/guard.rs`.
//! * `profile = field` allows for whole segments and delayed acknowledgements when it judges a flow, and does not call a flow slow
//!   while the backlog in the proxy kept its window closed.
//! * While C is zero no flow is judged. CQI 0 means zero capacity; a user without a grant for 100 ms gets the MCS that its CQI
//!   implies.
//!
//! The carrier calls, with the time: [`Rapid::on_radio`] for each report of a user's downlink; [`Rapid::open`] when the server has
//! answered (and [`Rapid::admits`] before that); [`Rapid::on_wan_data`] for payload from the server (without duplicates),
//! [`Rapid::on_passing`] for each packet to a user that is not TCP, [`Rapid::on_wan_rtt`] and [`Rapid::on_ran_rtt`] for raw RTT
//! samples of either side, [`Rapid::on_ran_acked`] for payload that the user has acknowledged, [`Rapid::on_backlog`] when the
//! backlog changes; [`Rapid::on_deadline`] when [`Rapid::next_deadline`] has come; [`Rapid::assign`] when a flow turns out to be of
//! another user; [`Rapid::close`]. After any of these it calls
//! [`Rapid::next_change`] until that returns `None`. For each flow returned, these may have changed: [`Rapid::window`] (to be
//! advertised to the server; `None`: the platform's own window, but at most [`Rapid::room`], to be queried whenever the backlog
//! changes), [`Rapid::allocation`] and [`Rapid::ran_window`] (for the control `rapid` on the user's side; `None`: an ordinary
//! control).
//!
//! ```
//! use ranpace_pep::rapid::{Rapid, Settings};
//! use ranpace_phy::LteBandwidth;
//! use ranpace_rnis::{CellInfo, RadioHint};
//! use ranpace_units::{Bytes, Rate, Span, Time};
//!
//! let mut rapid = Rapid::new(Settings::THESIS);
//! let hint = RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz5), Time::ZERO);
//! rapid.on_radio(Time::ZERO, 7, &RadioHint { granted: 20.0, unused: 5.0, mcs: 28, ..hint });
//! let flow = rapid.open(Time::ZERO, 7, Span::from_millis(20), Bytes::new(1_440));
//! assert_eq!(rapid.next_change(), Some(flow));
//! // 18 336 bits per ms, for 20 ms.
//! assert_eq!(rapid.window(flow), Some(Bytes::new(45_840)));
//! assert_eq!(rapid.allocation(flow), Some(Rate::from_bits_per_s(18_336_000)));
//! ```

pub(crate) mod estimate;
mod flow;
mod guard;
#[cfg(test)]
mod guard_tests;
#[cfg(test)]
mod properties;
mod record;
mod settings;
mod share;
#[cfg(test)]
mod tests;
mod words;

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use ranpace_rnis::RadioHint;
use ranpace_units::{Bytes, Rate, Span, Time};

use estimate::{Change, Estimate};
use flow::{Flow, Owner, Round};
use guard::{Guard, Known, Outcome};
use share::Shared;

pub use record::{Category, FlowRecord, Mode, Observer, ReportTrust, UserRecord};
pub use settings::{
    Accounting, Caps, Estimator, LateCapacity, Profile, RanRttMin, RttMargin, Settings, Slack, WindowRule,
    WrongSetting,
};
pub use words::UnknownWord;

/// Identifies an open flow. The id of a closed flow stays invalid even if its slot is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    slot: u32,
    generation: u32,
}

impl FlowId {
    /// A small index, unique among open flows, for the carrier's tables.
    pub const fn index(self) -> usize {
        self.slot as usize
    }
}

/// A user and its flows.
#[derive(Clone, Debug)]
struct User {
    radio: Estimate,
    /// Slots of its flows.
    flows: Vec<u32>,
    shared: Shared,
    backlog: Bytes,
    /// Its backlog exceeds the user's cap.
    full: bool,
    /// Its shares have to be recomputed.
    stale: bool,
    /// The deadlines queued for it and for its guard.
    due: Option<Time>,
    guard_due: Option<Time>,
    guard: Guard,
}

/// The owner of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Flow(FlowId),
    User(u32),
    Guard(u32),
}

/// A user without flows whose reports are contradicted is remembered while reports about it arrive at least this often.
const HEARD: Span = Span::SECOND;
/// Unit of the server's window with [`WindowRule::Whole`]: a window scale of 14 (the authors' ns-3 code).
const WHOLE_UNIT: Bytes = Bytes::new(1 << 14);
/// Fraction of a user's cap to which its backlog must fall before its windows reopen.
const REOPEN: (u64, u64) = (3, 4);

/// The allocator of one proxy.
#[derive(Clone, Debug)]
pub struct Rapid<O = ()> {
    settings: Settings,
    observer: O,
    /// By slot; closing a flow increments its slot's generation.
    flows: Vec<Option<Flow>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    users: BTreeMap<u32, User>,
    /// Holds one entry for each open flow that is not idle and for each user whose radio is known.
    due: BinaryHeap<Reverse<(Time, Due)>>,
    changed: Vec<u32>,
    /// Users whose shares have to be recomputed.
    stale: Vec<u32>,
    /// Flows whose period has ended at this instant, for the observer.
    judged: Vec<FlowId>,
    backlog: Bytes,
}

impl Rapid {
    /// A proxy without an observer.
    pub fn new(settings: Settings) -> Self {
        Self::observed(settings, ())
    }
}

impl<O: Observer> Rapid<O> {
    /// A proxy that reports its decisions to the observer.
    pub fn observed(settings: Settings, observer: O) -> Self {
        Self {
            settings,
            observer,
            flows: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            users: BTreeMap::new(),
            due: BinaryHeap::new(),
            changed: Vec::new(),
            stale: Vec::new(),
            judged: Vec::new(),
            backlog: Bytes::ZERO,
        }
    }

    /// Its settings.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// A report of a user's downlink. For a user without flows it is kept for the first one, and dropped once it is a second old.
    pub fn on_radio(&mut self, now: Time, user: u32, hint: &RadioHint) {
        let known = self.users.entry(user).or_insert_with(User::new);
        if self.settings.guard {
            known.guard.promise(now, known.radio.reported(&self.settings, now));
        }
        let moved = known.radio.has_moved(hint);
        let Some(change) = known.radio.take(&self.settings, now, hint) else { return };
        known.guard.on_report();
        let allowance = known.radio.allowance(&self.settings);
        for &slot in &known.flows {
            let Some(flow) = self.flows.get_mut(slot as usize).and_then(Option::as_mut) else { continue };
            if moved {
                flow.forget_ran_rtt();
            }
            if flow.set_allowance(allowance) || moved {
                mark(&mut self.flows, &mut self.changed, slot);
            }
        }
        self.follow(now, user, change);
        self.share_out(now);
        if self.observer.listens()
            && let Some(record) = self.user(now, user)
        {
            self.observer.on_report(&record);
        }
    }

    /// Returns whether one more flow may be split; otherwise it has to bypass the proxy.
    pub fn admits(&self) -> bool {
        let Caps { total, flows, .. } = self.settings.caps;
        self.backlog < total && self.open_flows() < flows as usize
    }

    /// A flow towards a user begins: the server has answered after `wan_rtt`, and segments have `mss` bytes of payload.
    pub fn open(&mut self, now: Time, user: u32, wan_rtt: Span, mss: Bytes) -> FlowId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.generations.push(0);
            self.flows.len() as u32 - 1 // the caps count flows in 32 bits
        });
        let id = FlowId { slot, generation: self.generations[slot as usize] };
        let of = self.users.entry(user).or_insert_with(User::new);
        let allowance = of.radio.allowance(&self.settings);
        let owner = Owner { user, place: of.flows.len() as u32, allowance };
        let mut flow = Flow::new(now, owner, wan_rtt, mss, &self.settings);
        flow.close(now, of.full, &self.settings);
        flow.disturbed = of.guard.trust() == ReportTrust::Probing;
        of.flows.push(slot);
        self.flows[slot as usize] = Some(flow);
        self.mark(slot);
        self.queue_flow(id);
        self.watch(now, user);
        self.stale(user);
        self.share_out(now);
        id
    }

    /// The flow is over.
    pub fn close(&mut self, now: Time, flow: FlowId) {
        let Some((number, place)) = self.flow(flow).map(|flow| (flow.user, flow.place)) else { return };
        self.on_backlog(now, flow, Bytes::ZERO);
        self.flows[flow.index()] = None;
        self.generations[flow.index()] = flow.generation.wrapping_add(1);
        self.free.push(flow.slot);
        self.leave(number, place);
        self.share_out(now);
        self.forget(now, number);
        self.clean_up();
    }

    /// These flows turn out to be of other users than was known, such as of one who has a second address. What waits goes with them;
    /// active ones start afresh, because what they were judged by was the share of another user.
    pub fn assign(&mut self, now: Time, flows: impl IntoIterator<Item = (FlowId, u32)>) {
        let settings = self.settings;
        for (id, number) in flows {
            let Some((before, place, backlog)) =
                self.flow(id).map(|flow| (flow.user, flow.place, flow.backlog))
            else {
                continue;
            };
            if before == number {
                continue;
            }
            self.on_backlog(now, id, Bytes::ZERO);
            self.leave(before, place);
            self.forget(now, before);
            let of = self.users.entry(number).or_insert_with(User::new);
            if let Some(flow) = self.flows[id.index()].as_mut() {
                (flow.user, flow.place) = (number, of.flows.len() as u32); // the caps count flows in 32 bits
                flow.set_allowance(of.radio.allowance(&settings));
                flow.close(now, of.full, &settings);
                flow.disturbed = of.guard.trust() == ReportTrust::Probing;
                if flow.active {
                    flow.begin_anew(now, &settings);
                }
            }
            of.flows.push(id.slot);
            self.on_backlog(now, id, backlog);
            self.mark(id.slot);
            self.watch(now, number);
            self.stale(number);
        }
        self.share_out(now);
    }

    /// The flow at this place among a user's flows is no longer that user's.
    fn leave(&mut self, number: u32, place: u32) {
        if let Some(user) = self.users.get_mut(&number) {
            user.flows.swap_remove(place as usize);
            if let Some(&moved) = user.flows.get(place as usize)
                && let Some(moved) = &mut self.flows[moved as usize]
            {
                moved.place = place;
            }
        }
        self.stale(number);
    }

    /// Payload has come from the server; bytes received before are not counted again.
    #[inline]
    pub fn on_wan_data(&mut self, now: Time, flow: FlowId, bytes: Bytes) {
        let Some(known) = self.flow_mut(flow).filter(|_| !bytes.is_zero()) else { return };
        if known.arrive(now, bytes) {
            self.wake(now, flow);
        }
    }

    /// A packet of `packet` bytes on the wire that is not TCP has bypassed the proxy towards a user. With `account_udp` it reduces
    /// what the user's flows get, from the next report on.
    #[inline]
    pub fn on_passing(&mut self, user: u32, packet: Bytes) {
        if self.settings.account_udp
            && let Some(user) = self.users.get_mut(&user)
        {
            user.radio.pass(packet);
        }
    }

    /// An RTT to the server was measured.
    pub fn on_wan_rtt(&mut self, now: Time, flow: FlowId, rtt: Span) {
        let settings = self.settings;
        let whole = settings.window == WindowRule::Whole;
        let Some(known) = self.flow_mut(flow) else { return };
        if known.take_wan_rtt(rtt, &settings) || whole {
            let user = known.user;
            self.mark(flow.slot); // a window at its floor stays the same, but now means another rate
            self.stale(user);
            self.share_out(now);
        }
    }

    /// An RTT to the user was measured.
    pub fn on_ran_rtt(&mut self, now: Time, id: FlowId, rtt: Span) {
        let settings = self.settings;
        let Some(flow) = self.flow_mut(id) else { return };
        let (tight, least) = (flow.is_tight(&settings), flow.ran_rtt_min(&settings));
        flow.take_ran_rtt(rtt);
        let user = flow.user;
        let other = flow.ran_rtt_min(&settings) != least;
        if other || tight || flow.is_tight(&settings) {
            self.mark(id.slot);
        }
        if other && settings.window == WindowRule::Whole {
            self.stale(user);
            self.share_out(now);
        }
        if settings.guard
            && let Some(user) = self.users.get_mut(&user)
        {
            user.guard.on_rtt(rtt);
        }
    }

    /// The user has acknowledged `bytes` of new payload of the flow.
    #[inline]
    pub fn on_ran_acked(&mut self, flow: FlowId, bytes: Bytes) {
        if self.settings.guard
            && let Some(user) = self.flow(flow).map(|flow| flow.user)
            && let Some(user) = self.users.get_mut(&user)
        {
            user.guard.on_acked(bytes.get());
        }
    }

    /// The proxy's TCP lets the server know of a window of at most `advertised` bytes, which may be less than [`Self::window`]: a kernel
    /// opens a window only as data arrive. What a server could not send does not count as its slowness. Without this call, the server
    /// knows at once of what is decided.
    pub fn on_advertised(&mut self, now: Time, flow: FlowId, advertised: Bytes) {
        let settings = self.settings;
        if let Some(known) = self.flow_mut(flow) {
            known.advertise(now, advertised, &settings);
        }
    }

    /// `backlog` bytes of the flow have been received from the server and not been sent to the user yet.
    #[inline]
    pub fn on_backlog(&mut self, now: Time, flow: FlowId, backlog: Bytes) {
        let Some(known) = self.flows.get_mut(flow.index()).and_then(Option::as_mut) else { return };
        if self.generations[flow.index()] != flow.generation || known.backlog == backlog {
            return;
        }
        let before = known.backlog;
        let tight = known.is_tight(&self.settings);
        known.wait(now, backlog, &self.settings);
        let tight = tight || known.is_tight(&self.settings);
        let user = known.user;
        self.backlog = self.backlog - before + backlog;
        if tight {
            self.mark(flow.slot);
        }
        let Some(user) = self.users.get_mut(&user) else { return };
        user.backlog = user.backlog - before + backlog;
        let limit = self.settings.caps.user;
        let full =
            if user.full { user.backlog > limit.scale(REOPEN.0, REOPEN.1) } else { user.backlog >= limit };
        if full != user.full {
            user.full = full;
            for &slot in &user.flows {
                if let Some(flow) = self.flows.get_mut(slot as usize).and_then(Option::as_mut) {
                    flow.close(now, full, &self.settings);
                }
                mark(&mut self.flows, &mut self.changed, slot);
            }
        }
    }

    /// When [`Self::on_deadline`] has to be called; `None` for never.
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// The deadline has come.
    pub fn on_deadline(&mut self, now: Time) {
        while let Some(&Reverse((at, due))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            match due {
                Due::Flow(flow) => self.end_round(now, flow),
                Due::User(user) => self.grow_old(now, at, user),
                Due::Guard(user) => self.guard(now, at, user),
            }
        }
        // Flows that are judged at the same instant do not influence each other.
        self.share_out(now);
        while let Some(flow) = self.judged.pop() {
            if let Some(record) = self.look(now, flow) {
                self.observer.on_period(&record);
            }
        }
    }

    /// The next flow whose window or allocation has changed since it was last returned here.
    pub fn next_change(&mut self) -> Option<FlowId> {
        while let Some(slot) = self.changed.pop() {
            if let Some(flow) = self.flows.get_mut(slot as usize).and_then(Option::as_mut)
                && flow.changed
            {
                flow.changed = false;
                return Some(FlowId { slot, generation: self.generations[slot as usize] });
            }
        }
        None
    }

    /// The window to advertise to the server, before rounding; `None`: the platform's own, but at most [`Self::room`].
    pub fn window(&self, flow: FlowId) -> Option<Bytes> {
        let flow = self.flow(flow)?;
        let user = self.users.get(&flow.user)?;
        self.advertised(user, flow)
    }

    /// Returns how much the server may still send before the backlog is too large. While a user's radio is not known, this alone limits the
    /// backlog: to about one BDP, or to what the caps allow a flow.
    pub fn room(&self, flow: FlowId) -> Bytes {
        let Some(flow) = self.flow(flow) else { return Bytes::ZERO };
        match self.users.get(&flow.user) {
            Some(user) if user.full => Bytes::ZERO,
            Some(user) if user.radio.mode != Mode::Open => flow.cap(&self.settings) - flow.backlog,
            _ => flow.open_room(&self.settings),
        }
    }

    /// The rate at which to send the flow to the user; `None`: an ordinary control decides.
    pub fn allocation(&self, flow: FlowId) -> Option<Rate> {
        let flow = self.flow(flow)?;
        let user = self.users.get(&flow.user)?;
        let rate = 8.0 * flow.allocation(&self.settings) * user.guard.ran_factor();
        (user.radio.mode != Mode::Open).then(|| Rate::from_bits_per_s_f64(rate))
    }

    /// The congestion window towards the user (5.2.1): the allocation times the smallest RTT there, but at least `ran_floor`
    /// segments; `None` without an allocation.
    pub fn ran_window(&self, flow: FlowId) -> Option<Bytes> {
        let flow = self.flow(flow)?;
        let user = self.users.get(&flow.user)?;
        self.towards_user(user, flow)
    }

    /// Open flows.
    pub fn open_flows(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// Bytes waiting in the proxy.
    pub const fn backlog(&self) -> Bytes {
        self.backlog
    }

    /// The current record of a flow.
    pub fn look(&self, now: Time, id: FlowId) -> Option<FlowRecord> {
        let flow = self.flow(id)?;
        let user = self.users.get(&flow.user)?;
        let rate = |bytes_per_s: f64| Rate::from_bits_per_s_f64(8.0 * bytes_per_s);
        Some(FlowRecord {
            time: now,
            user: flow.user,
            flow: id,
            category: flow.category,
            active: flow.active,
            arrived: rate(flow.rate),
            demand: rate(flow.demand),
            expected: rate(flow.expected),
            share: Bytes::new(flow.share as u64),
            window: Bytes::new(flow.window() as u64),
            advertised: self.advertised(user, flow),
            ran_window: self.towards_user(user, flow),
            wan_rtt: flow.wan.smoothed,
            wan_rtt_min: flow.wan.least,
            ran_rtt_min: flow.ran_rtt_min(&self.settings),
            backlog: flow.backlog,
        })
    }

    /// Returns the current knowledge of a user; `None` if there never was any.
    pub fn user(&self, now: Time, number: u32) -> Option<UserRecord> {
        let user = self.users.get(&number)?;
        let radio = &user.radio;
        Some(UserRecord {
            time: now,
            user: number,
            mode: radio.mode,
            trust: user.guard.trust(),
            granted: radio.granted,
            unused: radio.unused,
            expected: radio.expected,
            mcs: radio.mcs,
            tbs_bits: radio.tbs_bits,
            capacity: Rate::from_bits_per_s_f64(8.0 * user.given(&self.settings, now)),
            passing: Rate::from_bits_per_s_f64(8.0 * radio.passing_rate),
            age: radio.age(now),
            flows: user.shared.flows,
            slow: user.shared.slow,
            released: match self.settings.accounting {
                Accounting::Rate => 8.0 * user.shared.released,
                Accounting::ShareBytes | Accounting::Literal => user.shared.released,
            },
        })
    }

    fn flow(&self, id: FlowId) -> Option<&Flow> {
        let known = self.generations.get(id.index()) == Some(&id.generation);
        self.flows.get(id.index()).and_then(Option::as_ref).filter(|_| known)
    }

    #[inline]
    fn flow_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        let known = self.generations.get(id.index()) == Some(&id.generation);
        self.flows.get_mut(id.index()).and_then(Option::as_mut).filter(|_| known)
    }

    fn advertised(&self, user: &User, flow: &Flow) -> Option<Bytes> {
        if user.radio.mode == Mode::Open {
            return None;
        }
        if user.full {
            return Some(Bytes::ZERO);
        }
        let open = flow.open(&self.settings) as u64;
        Some(match self.settings.window {
            WindowRule::Whole => WHOLE_UNIT * (open / WHOLE_UNIT.get()).max(1),
            WindowRule::Wired | WindowRule::Module => Bytes::new(open),
        })
    }

    fn towards_user(&self, user: &User, flow: &Flow) -> Option<Bytes> {
        let least = f64::from(self.settings.ran_floor) * flow.mss;
        let window = (flow.ran_bdp(&self.settings) * user.guard.ran_factor()).max(least);
        (user.radio.mode != Mode::Open).then_some(Bytes::new(window as u64))
    }

    /// An idle flow has data again.
    fn wake(&mut self, now: Time, id: FlowId) {
        let settings = self.settings;
        let Some(flow) = self.flow_mut(id) else { return };
        flow.active = true;
        flow.begin_anew(now, &settings);
        let user = flow.user;
        self.queue_flow(id);
        self.stale(user);
        self.share_out(now);
    }

    fn end_round(&mut self, now: Time, id: FlowId) {
        let settings = self.settings;
        let Some(flow) = self.flow_mut(id) else { return };
        flow.queued = false;
        if now < flow.round_end {
            // The round was restarted meanwhile.
            return self.queue_flow(id);
        }
        let number = flow.user;
        match flow.end_round(now, &settings) {
            Round::Goes => self.queue_flow(id),
            Round::Idle => self.stale(number),
            Round::Period => {
                let Some(user) = self.users.get(&number) else { return };
                let radio = &user.radio;
                let judge = radio.mode == Mode::Normal && radio.capacity(&settings, now) > 0.0;
                let late = radio.is_late(now);
                let trying = user.guard.trust() == ReportTrust::Probing;
                let Some(flow) = self.flow_mut(id) else { return };
                let (tight, least) = (flow.is_tight(&settings), flow.ran_rtt_min(&settings));
                // A flow's use of a window above its previous one (a probe's) says nothing about its demand.
                flow.end_period(now, judge && !flow.disturbed, &settings);
                flow.disturbed = trying;
                if late {
                    flow.begin_anew(now, &settings);
                }
                // A new category changes the headroom, too.
                let roomy = settings.headroom > 1.0 || settings.spare > 0;
                if roomy || tight || flow.ran_rtt_min(&settings) != least || flow.is_tight(&settings) {
                    self.mark(id.slot);
                }
                self.queue_flow(id);
                self.stale(number);
                if self.observer.listens() {
                    self.judged.push(id);
                }
            }
        }
    }

    fn grow_old(&mut self, now: Time, at: Time, number: u32) {
        let due = Some(at);
        let Some(user) = self.users.get_mut(&number).filter(|user| user.due == due) else { return };
        user.due = None;
        let change = user.radio.grow_old(&self.settings, now);
        self.follow(now, number, change);
        self.forget(now, number);
    }

    /// The guard of a user decides.
    fn guard(&mut self, now: Time, at: Time, number: u32) {
        let settings = self.settings;
        let Some(user) = self.users.get_mut(&number).filter(|user| user.guard_due == Some(at)) else {
            return;
        };
        user.guard_due = None;
        if user.guard.due().is_some_and(|due| due > now) {
            // The guard was restarted meanwhile.
            return self.watch(now, number);
        }
        let reported = user.radio.reported(&settings, now);
        user.guard.promise(now, reported);
        if user.flows.is_empty() {
            user.guard.stop();
        }
        let known = known(user, &self.flows, &settings, reported);
        let outcome = user.guard.decide(now, &known);
        match outcome {
            Outcome::Goes => {}
            Outcome::Other => {
                for &slot in &user.flows {
                    if let Some(flow) = self.flows.get_mut(slot as usize).and_then(Option::as_mut) {
                        flow.disturbed = true;
                    }
                    mark(&mut self.flows, &mut self.changed, slot);
                }
                self.stale(number);
            }
            Outcome::Contradicted | Outcome::Agrees => {
                let change = user.radio.doubt(&settings, now, outcome == Outcome::Contradicted);
                self.follow(now, number, change);
            }
        }
        self.watch(now, number);
        self.forget(now, number);
    }

    /// Starts the guard of a user whose radio is known and who has flows, and queues its deadline.
    fn watch(&mut self, now: Time, number: u32) {
        let Some(user) = self.users.get_mut(&number).filter(|_| self.settings.guard) else { return };
        if user.radio.mode == Mode::Open {
            user.guard.stop();
        } else if !user.flows.is_empty() {
            user.guard.start(now);
        }
        if let Some(at) = user.guard.due()
            && user.guard_due.is_none()
        {
            user.guard_due = Some(at);
            self.due.push(Reverse((at, Due::Guard(number))));
        }
    }

    /// Applies a change of a user's radio.
    fn follow(&mut self, now: Time, number: u32, change: Change) {
        let Some(user) = self.users.get_mut(&number) else { return };
        if change.mode {
            for &slot in &user.flows {
                mark(&mut self.flows, &mut self.changed, slot);
            }
            self.observer.on_mode(now, number, user.radio.mode);
        }
        if change.restart {
            for &slot in &user.flows {
                if let Some(flow) = self.flows[slot as usize].as_mut().filter(|flow| flow.active) {
                    flow.begin_anew(now, &self.settings);
                }
            }
        }
        if user.due.is_none()
            && let Some(at) = user.radio.next_change(&self.settings)
        {
            user.due = Some(at);
            self.due.push(Reverse((at, Due::User(number))));
        }
        self.watch(now, number);
        self.stale(number);
    }

    /// Marks the user's shares for recomputation before the current event ends.
    fn stale(&mut self, number: u32) {
        if let Some(user) = self.users.get_mut(&number)
            && !user.stale
        {
            user.stale = true;
            self.stale.push(number);
        }
    }

    fn share_out(&mut self, now: Time) {
        while let Some(number) = self.stale.pop() {
            let Some(user) = self.users.get_mut(&number) else { continue };
            user.stale = false;
            if user.radio.mode == Mode::Open {
                continue;
            }
            let (flows, changed) = (&mut self.flows, &mut self.changed);
            let given = user.given(&self.settings, now);
            user.shared = share::share(now, &self.settings, given, &user.flows, flows, |flow, slot| {
                if !flow.changed {
                    flow.changed = true;
                    changed.push(slot);
                }
            });
        }
    }

    fn mark(&mut self, slot: u32) {
        mark(&mut self.flows, &mut self.changed, slot);
    }

    fn queue_flow(&mut self, id: FlowId) {
        if let Some(flow) = self.flow_mut(id)
            && !flow.queued
        {
            flow.queued = true;
            let at = flow.round_end;
            self.due.push(Reverse((at, Due::Flow(id))));
        }
    }

    /// Drops a user that has no flows and whose radio is unknown.
    fn forget(&mut self, now: Time, number: u32) {
        let nobody = |user: &User| {
            let is_heard = user.guard.is_contradicted() && user.radio.age(now) <= HEARD;
            user.flows.is_empty() && user.radio.mode == Mode::Open && !is_heard
        };
        if self.users.get(&number).is_some_and(nobody) {
            self.users.remove(&number);
        }
    }

    /// Drops deadlines and changes of closed flows once there are many, so that short flows do not fill the memory.
    fn clean_up(&mut self) {
        let most = 64 + 2 * (self.open_flows() + self.users.len());
        if self.due.len() > most {
            let Self { due, generations, flows, .. } = self;
            due.retain(|Reverse((_, due))| match due {
                Due::Flow(id) => generations[id.index()] == id.generation && flows[id.index()].is_some(),
                Due::User(_) | Due::Guard(_) => true,
            });
        }
        if self.changed.len() > most {
            let Self { changed, flows, .. } = self;
            changed.retain(|slot| flows[*slot as usize].as_ref().is_some_and(|flow| flow.changed));
            changed.sort_unstable();
            changed.dedup();
        }
    }
}

impl User {
    fn new() -> Self {
        Self {
            radio: Estimate::new(),
            flows: Vec::new(),
            shared: Shared::default(),
            backlog: Bytes::ZERO,
            full: false,
            stale: false,
            due: None,
            guard_due: None,
            guard: Guard::new(),
        }
    }

    /// The capacity shared out to its flows, in bytes per second.
    fn given(&self, settings: &Settings, now: Time) -> f64 {
        let given = self.radio.capacity(settings, now);
        match self.radio.mode {
            Mode::Open => given,
            _ => self.guard.tried(self.radio.reported(settings, now), given).unwrap_or(given),
        }
    }
}

/// The inputs of a user's guard.
fn known(user: &User, flows: &[Option<Flow>], settings: &Settings, reported: f64) -> Known {
    let own =
        || user.flows.iter().filter_map(|slot| flows.get(*slot as usize)?.as_ref()).filter(|f| f.active);
    Known {
        reported,
        demand: own().any(|flow| flow.limit.is_none() || !flow.backlog.is_zero()),
        late: user.radio.mode == Mode::Hold,
        mss: own().map(|flow| flow.mss).fold(0.0, f64::max),
        wan_rtt: own().map(|flow| flow.wan.smoothed).max().unwrap_or_default(),
        ran_rtt: own().filter_map(|flow| flow.ran_rtt_min(settings)).min().unwrap_or_default(),
    }
}

/// Adds a flow to the list of changed ones.
fn mark(flows: &mut [Option<Flow>], changed: &mut Vec<u32>, slot: u32) {
    if let Some(flow) = flows.get_mut(slot as usize).and_then(Option::as_mut)
        && !flow.changed
    {
        flow.changed = true;
        changed.push(slot);
    }
}
