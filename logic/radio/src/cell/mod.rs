//! A cell: users with their bearers, a base station that divides the air among them slot by slot, and its reports.
//!
//! [`Cell`] is a passive state machine, for virtual time and the real clock alike. The caller passes packets to
//! [`Cell::send`], comes back at [`Cell::next_event`] and calls [`Cell::poll`]; a [`Listener`] receives delivered packets,
//! dropped packets with the cause, events, and reports if somebody subscribed. A user is awake while something can happen to
//! it. Sleeping users cost nothing, and a cell whose users all sleep has no next event. Late calls change nothing: slots are
//! played in order, each at its own time, and slots that began before an input arrived are played before it is handled.
//!
//! Order within slot n (TTI): RLC receives the decoded blocks, and its timers expire; then scheduling requests and the
//! uplink grants for the slot `grant_to_pusch` later, retransmissions first; then uplink blocks; then downlink
//! retransmissions, followed by new data; then the report. A block sent in slot n reaches RLC at the beginning of slot n +
//! [`HarqConfig::decode`](crate::harq::HarqConfig::decode).
//!
//! Every random choice depends on the seed and on the user, the time and the purpose, never on what other users do.

mod air;
mod config;
mod control;
mod downlink;
mod plan;
mod quality;
mod reports;
mod standard;
mod subscriber;
#[cfg(test)]
mod tests;
mod ue_context;
mod uplink;

pub use config::{
    AdaptationConfig, Air, CellConfig, CellError, ChannelConfig, ControlChannels, Division, Duplex, Errors,
    FadingConfig, MOST_USERS, OuterLoop, Place, UserConfig,
};
pub use reports::CellSubscription;
pub use subscriber::Subscriber;

use std::collections::VecDeque;
use std::sync::Arc;

use ranpace_link::Packet;
use ranpace_phy::{Both, Direction, Frame};
use ranpace_rnis::{CellInfo, Event, EventKind, Grant, SlotReport};
use ranpace_units::{Bytes, Span, Time};

use self::air::Layout;
use self::quality::{Ahead, Channel, Quality};
use self::subscriber::enqueue;
use self::ue_context::UeContext;
use crate::channel::{Average, CqiScale, Fading, Fast, RadioPath, Rings, Site, Transmitter};
use crate::harq::{Harq, HarqCounters};
use crate::rlc::{DropCause, User, UserPdu};
use crate::scheduler::Scheduler;
use crate::uplink::{Access, PowerControl, Shares};

/// Receives what happens in a cell, when it happens. All methods but the first do nothing by default.
pub trait Listener<P> {
    /// A packet arrived at the other end, in order.
    fn on_delivered(&mut self, now: Time, user: u32, direction: Direction, packet: P);
    /// The packet that the next [`Self::on_delivered`] reports joined its buffer `waited` ago.
    fn on_waited(&mut self, now: Time, user: u32, direction: Direction, packet: &P, waited: Span) {
        let _ = (now, user, direction, packet, waited);
    }
    /// A packet joined a buffer, which then holds `waiting`.
    fn on_enqueued(&mut self, now: Time, user: u32, direction: Direction, packet: &P, waiting: Bytes) {
        let _ = (now, user, direction, packet, waiting);
    }
    /// A user received the control information of a downlink block, whether or not it can decode the block itself.
    fn on_heard(&mut self, now: Time, user: u32, grant: &Grant) {
        let _ = (now, user, grant);
    }
    /// A packet was dropped for good.
    fn on_dropped(&mut self, now: Time, user: u32, direction: Direction, packet: &P, cause: DropCause) {
        let _ = (now, user, direction, packet, cause);
    }
    /// Something happened to a user or a bearer.
    fn on_event(&mut self, event: Event) {
        let _ = event;
    }
    /// A slot with a subscribed report is over.
    fn on_report(&mut self, report: &SlotReport<'_>) {
        let _ = report;
    }
}

/// A cell.
pub struct Cell<P> {
    config: CellConfig,
    info: CellInfo,
    layout: Layout,
    scale: CqiScale,
    /// Below this SINR an uplink has CQI 0 and gets no grant.
    least_uplink_sinr: f64,
    /// Shared by users without recorded conditions.
    sites: Both<Arc<Site>>,
    /// By user number.
    members: Vec<Option<Box<UeContext<P>>>>,
    /// Numbers of awake users, in order.
    awake: Vec<u32>,
    next_rnti: u16,
    /// The next slot to be played.
    next_slot: u64,
    scheduler: Scheduler,
    shares: Shares,
    reports: Option<reports::Reports>,
    /// Slots played so far.
    played: u64,
    /// PRBs of blocks sent, summed over these slots.
    used_prbs: Both<f64>,
    scratch: Scratch,
}

/// Buffers kept to save allocations.
#[derive(Default)]
struct Scratch {
    content: Vec<Vec<UserPdu>>,
    candidates: Vec<crate::scheduler::Candidate>,
    grants: Vec<crate::scheduler::Grant>,
    demands: Vec<(u32, u16)>,
    /// Symbols that downlink users need, where both directions share them.
    needs: Vec<u16>,
    shares: Vec<crate::uplink::Share>,
    users: Vec<u32>,
    /// Symbols of slots that the uplink takes, where both directions share them.
    uplink_symbols: VecDeque<(u64, u8)>,
}

impl<P: Packet> Cell<P> {
    /// Cell number `number`, without users.
    pub fn new(number: u16, config: &CellConfig) -> Result<Self, CellError> {
        config.check(0)?;
        let layout = Layout::new(config)?;
        let fast = match &config.channel.fading {
            FadingConfig::Steady => Fast::Steady,
            FadingConfig::Multipath(profile, speed) => {
                Fast::Fading(Fading::new(Rings::shared(), *profile, &layout.fading_groups()), *speed)
            }
            FadingConfig::Flicker(flicker) => Fast::Flicker(*flicker),
            FadingConfig::Recorded(recorded) => Fast::Recorded(Arc::clone(recorded)),
        };
        let sites = Both::of(|direction| {
            let transmitter = match direction {
                Direction::Downlink => Transmitter {
                    power_dbm: config.channel.base_power_dbm,
                    gain_db: config.channel.gain_db,
                    prbs: layout.prbs,
                },
                // 0 dBm on each PRB; the power of a grant is added later.
                Direction::Uplink => Transmitter { power_dbm: 0.0, gain_db: config.channel.gain_db, prbs: 1 },
            };
            Arc::new(Site {
                position: config.channel.position,
                carrier: config.channel.carrier[direction],
                transmitter,
                receiver: config.channel.receiver[direction],
                prb_hz: layout.prb_hz(),
                average: Average::Distance {
                    loss: config.channel.loss,
                    sight: config.channel.sight.clone(),
                    shadowing: config.channel.shadowing,
                },
                fast: fast.clone(),
            })
        });
        let scale = match layout.table() {
            ranpace_phy::QamTable::Qam64 => CqiScale::new(config.adaptation.thresholds),
            table => CqiScale::awgn(table),
        };
        let share = Both::of(|direction| share(layout.frame, direction));
        let info = CellInfo {
            cell: number,
            technology: layout.technology(),
            prbs: layout.prbs,
            spacing_hz: layout.spacing_hz(),
            bandwidth_hz: (layout.prb_hz() * f64::from(layout.prbs)) as u64,
            slot: layout.frame.slot(),
            symbols: layout.frame.symbols(),
            fdd: layout.frame.is_fdd(),
            share,
            data_symbols: Both::of(|direction| most_symbols(layout.frame, direction)),
            shared: layout.frame.is_shared(),
            by_symbols: layout.by_symbols,
            usable: Both { downlink: config.usable_slots, uplink: 1.0 },
            overhead: match config.air {
                Air::Nr { overhead, .. } => overhead,
                Air::Lte { .. } | Air::Mmwave => 0,
            },
            layers: match config.air {
                Air::Nr { layers, .. } => layers.get(),
                Air::Lte { .. } | Air::Mmwave => 1,
            },
            harq_processes: config.harq.map(|harq| harq.processes),
        };
        let lena = matches!(config.power.control, PowerControl::Lena { .. });
        Ok(Self {
            least_uplink_sinr: uplink::least_sinr(&scale, lena),
            scheduler: Scheduler::new(config.policy, config.alloc, layout.by_symbols),
            shares: Shares::new(),
            config: config.clone(),
            info,
            layout,
            scale,
            sites,
            members: Vec::new(),
            awake: Vec::new(),
            next_rnti: 1,
            next_slot: 0,
            reports: None,
            played: 0,
            used_prbs: Both::default(),
            scratch: Scratch::default(),
        })
    }

    /// The description of the cell.
    pub fn info(&self) -> &CellInfo {
        &self.info
    }

    /// The configuration it was created with.
    pub fn config(&self) -> &CellConfig {
        &self.config
    }

    /// Its frame structure.
    pub fn frame(&self) -> Frame {
        self.layout.frame
    }

    /// Attaches a user. A user that already has its number is detached and returned.
    pub fn attach<L: Listener<P>>(
        &mut self,
        now: Time,
        user: Subscriber<P>,
        listener: &mut L,
    ) -> Option<Subscriber<P>> {
        self.play_before(now, listener);
        let left = self.detach(now, user.id, listener);
        let Subscriber { id, config, rlc, mobility, seed } = user;
        // In TDD both directions have one channel.
        let fdd = self.layout.frame.is_fdd();
        let cell_seed = seed ^ (u64::from(self.info.cell) << 48);
        let channel = Both::of(|direction| {
            let up = u8::from(fdd && direction == Direction::Uplink);
            let (site, start) = match &config.recording {
                Some((recording, start)) => {
                    let site = Site::clone(&self.sites[direction]);
                    let average = Average::Recording(Arc::clone(recording), Box::new(self.scale));
                    (Arc::new(Site { average, ..site }), *start)
                }
                None => match &self.config.channel.fading {
                    FadingConfig::Recorded(fading) => {
                        (Arc::clone(&self.sites[direction]), fading.draw_start(cell_seed, id.into()))
                    }
                    _ => (Arc::clone(&self.sites[direction]), Span::ZERO),
                },
            };
            let path = RadioPath::new(cell_seed, id.into(), up).starting_at(start);
            Channel { path, site, known: Quality::NONE, ahead: Ahead::default() }
        });
        let index = id as usize;
        if self.members.len() <= index {
            self.members.resize_with(index + 1, || None);
        }
        let bearers = rlc.bearers().len() as u8;
        let limits = |bearer: &crate::rlc::BearerConfig| Both::of(|direction| bearer.buffer(direction));
        let recorded = config.recording.is_some();
        let member = UeContext {
            id,
            rnti: self.next_rnti,
            rlc,
            mobility,
            channel,
            harq: self.config.harq.map(Harq::new),
            access: Access::new(&self.config.access, id),
            grants: VecDeque::new(),
            again: VecDeque::new(),
            steps: Both::default(),
            seed: cell_seed,
            scheduled_bits: Both::default(),
            scheduled_prb_symbols: Both::default(),
            latest: Both::default(),
            awake: false,
            buffers: config.bearers.iter().map(limits).collect(),
            config,
            subscriber_seed: seed,
            recorded,
        };
        self.next_rnti = if usize::from(self.next_rnti) >= MOST_USERS { 1 } else { self.next_rnti + 1 };
        self.members[index] = Some(Box::new(member));
        self.wake(now, id);
        let tell = |kind| Event { time: now, cell: self.info.cell, user: id, kind };
        listener.on_event(tell(EventKind::Attached));
        for bearer in 0..bearers {
            listener.on_event(tell(EventKind::BearerSetUp { bearer }));
        }
        left
    }

    /// Detaches a user. Blocks in the air are lost; queued packets stay with it. `None` if there is no such user.
    pub fn detach<L: Listener<P>>(
        &mut self,
        now: Time,
        user: u32,
        listener: &mut L,
    ) -> Option<Subscriber<P>> {
        self.play_before(now, listener);
        let mut member = self.members.get_mut(user as usize)?.take()?;
        member.stop(now, listener);
        self.awake.retain(|awake| *awake != user);
        self.scheduler.forget(user);
        listener.on_event(Event { time: now, cell: self.info.cell, user, kind: EventKind::Detached });
        let UeContext { id, config, rlc, mobility, subscriber_seed: seed, .. } = *member;
        Some(Subscriber { id, config, rlc, mobility, seed })
    }

    /// Adds a packet for a user, or from one, to the buffer of a bearer. `false` if there is no such user; the packet is then
    /// gone. Slots that began before `now` are played first.
    pub fn send<L: Listener<P>>(
        &mut self,
        now: Time,
        user: u32,
        direction: Direction,
        bearer: u8,
        packet: P,
        listener: &mut L,
    ) -> bool {
        self.play_before(now, listener);
        let Some(member) = self.members.get_mut(user as usize).and_then(Option::as_mut) else { return false };
        enqueue(&mut member.rlc, now, user, direction, bearer, packet, listener);
        if !member.awake {
            self.wake(now, user);
        }
        true
    }

    /// Starts reports, or stops them with `None`.
    pub fn subscribe(&mut self, now: Time, subscription: Option<CellSubscription>) {
        self.catch_up(now);
        self.reports = subscription
            .map(|subscription| reports::Reports::new(subscription, self.next_slot, self.used_prbs));
    }

    fn wake(&mut self, now: Time, user: u32) {
        let Some(member) = self.members.get_mut(user as usize).and_then(Option::as_mut) else { return };
        member.awake = true;
        self.catch_up(now);
        if let Err(place) = self.awake.binary_search(&user) {
            self.awake.insert(place, user);
        }
    }

    /// Skips the slots that passed while all users slept.
    fn catch_up(&mut self, now: Time) {
        if self.is_asleep() {
            let slot = self.layout.frame.slot_at(now);
            let begun = self.layout.frame.start_of(slot) < now;
            self.next_slot = self.next_slot.max(slot + u64::from(begun));
        }
    }

    fn is_asleep(&self) -> bool {
        self.awake.is_empty() && self.reports.is_none()
    }

    /// When [`Self::poll`] has something to do; [`Time::MAX`] while the cell sleeps.
    #[inline]
    pub fn next_event(&self) -> Time {
        if self.is_asleep() { Time::MAX } else { self.layout.frame.start_of(self.next_slot) }
    }

    /// Plays the slots that have begun by `now`.
    pub fn poll<L: Listener<P>>(&mut self, now: Time, listener: &mut L) {
        while !self.is_asleep() {
            let time = self.layout.frame.start_of(self.next_slot);
            if time > now {
                break;
            }
            let slot = self.next_slot;
            self.next_slot += 1;
            self.play(slot, time, listener);
        }
    }

    /// Plays the slots that began before `now`, so that a late input does not affect slots that precede it, however long the cell
    /// was not called.
    #[inline]
    fn play_before<L: Listener<P>>(&mut self, now: Time, listener: &mut L) {
        if self.next_event() < now {
            self.poll(now - Span::from_nanos(1), listener);
        }
    }

    fn play<L: Listener<P>>(&mut self, slot: u64, now: Time, listener: &mut L) {
        self.played += 1;
        self.receive_and_grant_uplink(slot, now, listener);
        self.send_uplink(slot, now, listener);
        self.send_downlink(slot, now, listener);
        if self.reports.is_some() {
            self.report(slot, now, listener);
        }
        // Users with nothing to do go to sleep. Not checked in every slot, since the check costs more than staying awake a little longer.
        if slot.is_multiple_of(16) {
            let members = &mut self.members;
            self.awake.retain(|user| {
                let member = members.get_mut(*user as usize).and_then(Option::as_mut);
                member.is_some_and(|member| {
                    member.awake = !member.is_idle(slot);
                    member.awake
                })
            });
        }
    }

    fn member(&self, user: u32) -> Option<&UeContext<P>> {
        self.members.get(user as usize)?.as_deref()
    }

    /// The most data symbols that a slot has in this direction.
    pub fn most_symbols(&self, direction: Direction) -> u8 {
        most_symbols(self.layout.frame, direction)
    }

    /// Bytes of a user's packets that are neither delivered nor dropped: queued or under way.
    pub fn waiting(&self, user: u32, direction: Direction) -> Bytes {
        self.member(user).map_or(Bytes::ZERO, |member| {
            member.rlc.bearers().iter().map(|bearer| bearer.channel(direction).waiting()).sum()
        })
    }

    /// Bytes that a user has to send, as new data or retransmissions.
    pub fn queued(&self, user: u32, direction: Direction) -> Bytes {
        self.member(user).map_or(Bytes::ZERO, |member| member.rlc.to_be_sent(direction))
    }

    /// A user's bearers; `None` if there is no such user here.
    pub fn rlc(&self, user: u32) -> Option<&User<P>> {
        self.member(user).map(|member| &member.rlc)
    }

    /// HARQ counters of a user.
    pub fn harq(&self, user: u32, direction: Direction) -> Option<HarqCounters> {
        self.member(user).map(|member| *member.harq[direction].counters())
    }

    /// Bits of new data scheduled for a user so far.
    pub fn scheduled_bits(&self, user: u32, direction: Direction) -> u64 {
        self.member(user).map_or(0, |member| member.scheduled_bits[direction])
    }

    /// Slots played so far, and the PRBs used in them, summed.
    pub fn used_prbs(&self) -> (u64, Both<f64>) {
        (self.played, self.used_prbs)
    }

    /// A user's channel now, in both directions. The look has no side effects.
    pub fn probe(&mut self, now: Time, user: u32) -> Option<Both<Probe>> {
        let slot = self.layout.frame.slot_at(now);
        let Self { members, layout, config, scale, .. } = self;
        let member = members.get_mut(user as usize).and_then(Option::as_mut)?;
        let position = member.mobility.at(now).position;
        Some(Both::of(|direction| member.probe(layout, config, scale, direction, slot, position)))
    }

    fn lena(&self) -> bool {
        matches!(self.config.power.control, PowerControl::Lena { .. })
    }
}

/// A user's channel at an instant, for a grant of the whole band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Position of the user.
    pub position: crate::channel::Position,
    /// Path loss in dB.
    pub loss_db: f64,
    /// Effective SINR in dB, at the power of a grant of the whole band.
    pub sinr_db: f64,
    /// CQI.
    pub cqi: ranpace_phy::Cqi,
    /// MCS; `None` if there would be no grant.
    pub mcs: Option<u8>,
    /// PRBs that the user could have: the whole band, or as many as its power suffices for.
    pub prbs: u16,
    /// The block in a slot that the user has alone; zero without a grant. In LTE, that of an ordinary subframe.
    pub block: ranpace_phy::TransportBlock,
    /// Mean over all slots as a share of that block: below 1 where control and broadcast channels are modelled.
    pub share: f64,
    /// Whether some part of the band has an MCS, or had a grant within the last second. The whole band may have none where its worst
    /// part sets the MCS.
    pub in_reach: bool,
}

/// The most data symbols that a slot has in this direction.
fn most_symbols(frame: Frame, direction: Direction) -> u8 {
    let slots = u64::from(frame.pattern().map_or(1, |pattern| pattern.slots()));
    (0..slots).map(|slot| frame.data_symbols(slot, direction)).max().unwrap_or(0)
}

/// Mean share of a slot's symbols that can carry data in this direction.
fn share(frame: Frame, direction: Direction) -> f64 {
    let slots = frame.pattern().map_or(1, |pattern| pattern.slots());
    let symbols = |slot| f64::from(frame.data_symbols(slot, direction));
    (0..u64::from(slots)).map(symbols).sum::<f64>() / (f64::from(slots) * f64::from(frame.symbols()))
}
