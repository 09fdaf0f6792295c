//! The UE context: a cell's state for one user.

use std::collections::VecDeque;

use ranpace_link::Packet;
use ranpace_phy::{Both, Direction, TransportBlock};
use ranpace_rnis::{Event, EventKind, Grant};
use ranpace_units::{Bytes, Span, Time};

use super::Listener;
use super::air::Layout;
use super::config::{OuterLoop, UserConfig};
use super::quality::{Channel, Sinrs, effective, worst};
use crate::channel::{Mobility, to_db};
use crate::harq::{Draw, Harq, Outcome, Process};
use crate::rlc::{self, DropCause, User, UserPdu};
use crate::uplink::Access;

/// A transport block under way: its content and its grant.
pub(super) struct Block {
    pub content: Vec<UserPdu>,
    pub size: TransportBlock,
    pub padding: Bytes,
    pub mcs: u8,
    /// The MCS whose error curve applies.
    pub rate: u8,
    pub prbs: u16,
    pub symbols: u8,
    /// Units that it takes.
    pub units: u32,
    /// The slot of its first transmission.
    pub sent: u64,
}

/// A grant for a coming slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct UplinkGrant {
    pub slot: u64,
    pub first_prb: u16,
    pub prbs: u16,
    pub symbols: u8,
    pub mcs: u8,
    pub size: TransportBlock,
    /// The process that retransmits its block; `None` for a new block.
    pub again: Option<Process>,
}

/// A cell's state for one user.
pub(super) struct UeContext<P> {
    pub id: u32,
    pub rnti: u16,
    pub rlc: User<P>,
    pub mobility: Mobility,
    pub channel: Both<Channel>,
    pub harq: Both<Harq<Block>>,
    pub access: Access,
    /// Grants for coming slots, at most one per slot, in order.
    pub grants: VecDeque<UplinkGrant>,
    /// Planned downlink retransmissions by slot and process, where both directions share symbols.
    pub again: VecDeque<(u64, Process)>,
    /// Correction by the outer loop, in steps of MCS.
    pub steps: Both<f64>,
    /// Seed of its draws.
    pub seed: u64,
    pub scheduled_bits: Both<u64>,
    pub scheduled_prb_symbols: Both<u64>,
    /// The latest grant and its slot.
    pub latest: Both<Option<(u64, Grant)>>,
    /// Whether the cell visits it in each slot.
    pub awake: bool,
    /// Limits of the buffers, by bearer.
    pub buffers: Vec<Both<Option<Bytes>>>,
    /// Configuration it came with, handed back when it leaves.
    pub config: UserConfig,
    pub subscriber_seed: u64,
    /// Whether its SINR comes from a recording, to which its power does not apply.
    pub recorded: bool,
}

impl<P: Packet> UeContext<P> {
    /// Random numbers for the block sent in this slot. They are a function of the seed, so that one user's actions do not affect
    /// another's draws.
    #[inline]
    pub fn draw(&self, slot: u64, direction: Direction) -> Draw {
        let place = 4 * slot + 2 * u64::from(direction == Direction::Uplink);
        Draw { error: uniform(self.seed, place), misreading: uniform(self.seed, place + 1) }
    }

    /// Returns whether the user decodes the control channels of this slot, at these SINRs over the band. A single draw per slot, since
    /// they are lost for both directions together.
    pub fn hears(&self, layout: &Layout, slot: u64, sinrs: &Sinrs) -> bool {
        // Nothing is lost above -1 dB, and the effective SINR is at least the worst one.
        if worst(layout, sinrs, 0, layout.prbs) > 1.0 {
            return true;
        }
        let rate = ranpace_phy::lte_control_error_rate(to_db(effective(layout, sinrs, 0, layout.prbs)));
        rate <= 0.0 || uniform(!self.seed, slot) >= rate
    }

    /// Passes the blocks that leave HARQ by this slot to RLC.
    #[inline]
    pub fn receive<L: Listener<P>>(
        &mut self,
        (slot, now): (u64, Time),
        direction: Direction,
        spare: &mut Vec<Vec<UserPdu>>,
        listener: &mut L,
    ) {
        while let Some(outcome) = self.harq[direction].outcome(slot) {
            self.on_outcome((outcome, now), direction, spare, listener);
        }
    }

    #[inline(never)]
    fn on_outcome<L: Listener<P>>(
        &mut self,
        (outcome, now): (Outcome<Block>, Time),
        direction: Direction,
        spare: &mut Vec<Vec<UserPdu>>,
        listener: &mut L,
    ) {
        let observer = &mut UserObserver { listener, user: self.id, direction };
        let up = direction == Direction::Uplink;
        let mut content = match outcome {
            Outcome::Decoded(block) => {
                if up {
                    self.access.on_block_decoded(block.sent);
                }
                self.rlc.on_received(now, direction, &block.content, observer);
                block.content
            }
            Outcome::Lost(block) => {
                if up {
                    self.access.on_block_lost(block.sent);
                }
                self.rlc.on_lost(now, direction, &block.content, observer);
                block.content
            }
        };
        content.clear();
        spare.push(content);
    }

    /// Runs the RLC timers that have expired.
    #[inline]
    pub fn on_deadlines<L: Listener<P>>(&mut self, cell: u16, now: Time, listener: &mut L) {
        self.rlc.settle();
        for direction in [Direction::Downlink, Direction::Uplink] {
            if self.rlc.next_deadline(direction) <= now {
                self.on_deadline(cell, now, direction, listener);
            }
        }
        self.rlc.settle();
    }

    #[inline(never)]
    fn on_deadline<L: Listener<P>>(&mut self, cell: u16, now: Time, direction: Direction, listener: &mut L) {
        for bearer in 0..self.rlc.bearers().len() as u8 {
            let Some(channel) = self.rlc.bearer_mut(bearer) else { continue };
            if channel.next_deadline(direction) <= now {
                let observer = UserObserver { listener, user: self.id, direction };
                channel.on_deadline(now, direction, &mut BearerObserver { observer, cell, bearer, now });
            }
        }
    }

    /// Returns whether nothing can happen until a packet arrives for it or from it.
    pub fn is_idle(&self, slot: u64) -> bool {
        let quiet = |direction| {
            self.rlc.next_deadline(direction) == Time::MAX
                && self.harq[direction].is_idle()
                && self.rlc.to_be_sent(direction).is_zero()
                && self.rlc.bearers().iter().all(|bearer| bearer.status_due(direction) == Time::MAX)
        };
        self.grants.is_empty()
            && !self.rlc.is_waiting_above()
            && self.access.next_slot(slot, 0) == u64::MAX
            && quiet(Direction::Downlink)
            && quiet(Direction::Uplink)
    }

    /// Feeds the outcome of a first transmission to the outer loop.
    ///
    /// The loop does not move where the MCS cannot follow (ours): otherwise it would wind up in good conditions and cost failed
    /// blocks when they end.
    pub fn on_attempt(
        &mut self,
        layout: &Layout,
        direction: Direction,
        mcs: u8,
        decoded: bool,
        outer: Option<OuterLoop>,
    ) {
        let Some(OuterLoop { target, step }) = outer else { return };
        if decoded && mcs < layout.most {
            self.steps[direction] += step * target / (1.0 - target);
        } else if !decoded && mcs > layout.least {
            self.steps[direction] -= step;
        }
    }

    /// Records a grant for the report.
    pub fn note(&mut self, slot: u64, direction: Direction, grant: Grant) {
        self.scheduled_prb_symbols[direction] += u64::from(grant.prbs) * u64::from(grant.symbols);
        if !grant.again {
            self.scheduled_bits[direction] += u64::from(grant.block.bits());
        }
        self.latest[direction] = Some((slot, grant));
    }

    /// Drops the blocks in the air, and resets HARQ and grants, as after a handover.
    pub fn stop<L: Listener<P>>(&mut self, now: Time, listener: &mut L) {
        for direction in [Direction::Downlink, Direction::Uplink] {
            let (rlc, user) = (&mut self.rlc, self.id);
            self.harq[direction].clear(|block| {
                rlc.on_lost(now, direction, &block.content, &mut UserObserver { listener, user, direction });
            });
        }
        self.grants.clear();
        self.again.clear();
        self.access.restart();
    }
}

/// A number in [0, 1) at position `place` of a stream (SplitMix64's finaliser).
fn uniform(seed: u64, place: u64) -> f64 {
    let mut z = seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Forwards what RLC reports for one direction of a user to the cell's listener.
pub(super) struct UserObserver<'a, L> {
    pub listener: &'a mut L,
    pub user: u32,
    pub direction: Direction,
}

impl<P, L: Listener<P>> rlc::Observer<P> for UserObserver<'_, L> {
    fn on_delivered(&mut self, now: Time, packet: P) {
        self.listener.on_delivered(now, self.user, self.direction, packet);
    }
    fn on_waited(&mut self, now: Time, packet: &P, waited: Span) {
        self.listener.on_waited(now, self.user, self.direction, packet, waited);
    }
    fn on_enqueued(&mut self, now: Time, packet: &P, waiting: Bytes) {
        self.listener.on_enqueued(now, self.user, self.direction, packet, waiting);
    }
    fn on_dropped(&mut self, now: Time, packet: &P, cause: DropCause) {
        self.listener.on_dropped(now, self.user, self.direction, packet, cause);
    }
}

/// Like [`UserObserver`], and reports bearer failures. A timer that expired within a slot, or while no cell served the user, is
/// reported at the beginning of the slot that notices it, so that time does not run backwards.
struct BearerObserver<'a, L> {
    observer: UserObserver<'a, L>,
    cell: u16,
    bearer: u8,
    now: Time,
}

impl<P, L: Listener<P>> rlc::Observer<P> for BearerObserver<'_, L> {
    fn on_delivered(&mut self, _: Time, packet: P) {
        self.observer.on_delivered(self.now, packet);
    }
    fn on_waited(&mut self, _: Time, packet: &P, waited: Span) {
        rlc::Observer::on_waited(&mut self.observer, self.now, packet, waited);
    }
    fn on_enqueued(&mut self, _: Time, packet: &P, waiting: Bytes) {
        rlc::Observer::on_enqueued(&mut self.observer, self.now, packet, waiting);
    }
    fn on_dropped(&mut self, _: Time, packet: &P, cause: DropCause) {
        rlc::Observer::on_dropped(&mut self.observer, self.now, packet, cause);
    }
    fn on_failed(&mut self, _: Time) {
        let (bearer, direction) = (self.bearer, self.observer.direction);
        let kind = EventKind::BearerFailed { bearer, direction };
        self.observer.listener.on_event(Event {
            time: self.now,
            cell: self.cell,
            user: self.observer.user,
            kind,
        });
    }
}
