//! The state of a user that does not depend on its cell.

use std::sync::Arc;

use ranpace_link::Packet;
use ranpace_phy::Direction;
use ranpace_units::Time;

use super::Listener;
use super::config::{Place, UserConfig};
use super::ue_context::UserObserver;
use crate::channel::{Mobility, RandomWalk};
use crate::rlc::User;

/// The state that a user keeps when it moves from cell to cell: its bearers with their queues, and its position.
pub struct Subscriber<P> {
    pub(super) id: u32,
    pub(super) config: UserConfig,
    pub(super) rlc: User<P>,
    pub(super) mobility: Mobility,
    pub(super) seed: u64,
}

impl<P: Packet> Subscriber<P> {
    /// User number `id` under this seed, with empty buffers.
    pub fn new(id: u32, config: &UserConfig, seed: u64) -> Self {
        let own = seed.wrapping_add(u64::from(id).wrapping_mul(0xa076_1d64_78bd_642f));
        let mobility = mobility(&config.place, id, seed);
        Self { id, rlc: User::new(&config.bearers, own), mobility, seed: own, config: config.clone() }
    }

    /// Its number.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Its bearers.
    pub fn rlc(&self) -> &User<P> {
        &self.rlc
    }

    /// Adds a packet to the buffer of a bearer while no cell serves the user.
    pub fn send<L: Listener<P>>(
        &mut self,
        now: Time,
        direction: Direction,
        bearer: u8,
        packet: P,
        listener: &mut L,
    ) {
        enqueue(&mut self.rlc, now, self.id, direction, bearer, packet, listener);
    }

    /// Re-establishes its bearers, as a handover does. Downlink packets that were not delivered are sent again by the new base
    /// station if the old one forwards them (`forward`), and are lost otherwise ([`DropCause::Reset`](crate::rlc::DropCause::Reset));
    /// what is queued on the device stays.
    pub fn restart<L: Listener<P>>(&mut self, now: Time, forward: bool, listener: &mut L) {
        for bearer in 0..self.rlc.bearers().len() as u8 {
            let Some(bearer) = self.rlc.bearer_mut(bearer) else { continue };
            for direction in [Direction::Downlink, Direction::Uplink] {
                let observer = &mut UserObserver { listener, user: self.id, direction };
                let keep = forward || direction == Direction::Uplink;
                bearer.restart(now, direction, keep, observer);
                if !keep {
                    bearer.empty(now, direction, observer);
                }
            }
        }
    }
}

/// The movement of user number `id` that a place means under this seed.
fn mobility(place: &Place, id: u32, seed: u64) -> Mobility {
    match place {
        Place::Static(position) => Mobility::Static(*position),
        Place::Drop(disc) => Mobility::Static(disc.draw(seed, id.into())),
        Place::Path(path) => Mobility::Path(Arc::clone(path)),
        Place::Walk(rule, from) => {
            let from = from.unwrap_or_else(|| rule.area.draw(seed, id.into()));
            Mobility::Walk(Box::new(RandomWalk::new(*rule, from, seed, id.into())))
        }
        Place::Moved(first, moves) => mobility(first, id, seed).moved(moves),
    }
}

/// A packet for a bearer that does not exist goes to the last one.
pub(super) fn enqueue<P: Packet, L: Listener<P>>(
    rlc: &mut User<P>,
    now: Time,
    user: u32,
    direction: Direction,
    bearer: u8,
    packet: P,
    listener: &mut L,
) {
    let last = (rlc.bearers().len() as u8).saturating_sub(1); // at most 256 bearers
    if let Some(bearer) = rlc.bearer_mut(bearer.min(last)) {
        bearer.enqueue(now, direction, packet, &mut UserObserver { listener, user, direction });
    }
}
