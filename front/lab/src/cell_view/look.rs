//! A snapshot of a user's channel: what the cell knows of it, and the resulting rate.

use ranpace_link::Packet;
use ranpace_phy::{Both, Direction};
use ranpace_radio::cell::{Cell, CellConfig, Listener, Probe, Subscriber};
use ranpace_radio::channel::Position;
use ranpace_units::{Bytes, Span, Time};
use serde::Serialize;

use super::subject::{Subject, Watched};
use super::{ViewError, finite};

/// Default height of a user in metres, for a cell without users; ours.
const USER_HEIGHT_M: f64 = 1.5;

/// One direction of a user's channel at an instant, if it had the whole band.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkState {
    /// Path loss in dB; `None` if the conditions are recorded.
    pub path_loss_db: Option<f64>,
    /// Effective SINR in dB; `None` without any signal.
    pub sinr_db: Option<f64>,
    /// CQI.
    pub cqi: u8,
    /// MCS; `None` without a grant.
    pub mcs: Option<u8>,
    /// PRBs: all of the band; in the uplink as many as the user's power suffices for.
    pub prbs: u16,
    /// Size of the transport block of a slot, in bits; zero without a grant.
    pub tbs_bits: u32,
    /// Rate of the user in bit/s if it is alone and every block arrives.
    pub rate_bit_s: f64,
}

/// A user's channel at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Position of the user.
    pub position: Position,
    /// Distance on the ground, in metres.
    pub distance_m: f64,
    /// Both directions.
    pub link: Both<LinkState>,
}

/// A packet of which only the size matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram(pub u32);

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes::new(self.0.into())
    }
    fn flow(&self) -> u32 {
        0
    }
}

/// Ignores events.
struct Deaf;

impl Listener<Datagram> for Deaf {
    fn on_delivered(&mut self, _: Time, _: u32, _: Direction, _: Datagram) {}
}

/// A cell to take snapshots of.
pub(super) struct Watch {
    cell: Cell<Datagram>,
    /// Blocks of the largest size per second, if every slot is usable.
    blocks_per_s: Both<f64>,
}

impl Watch {
    /// The cell of this subject with another configuration, and without users.
    pub fn new(subject: &Subject, config: &CellConfig) -> Result<Self, ViewError> {
        let cell = Cell::new(subject.number, config)?;
        let (info, usable) = (cell.info(), config.usable_slots);
        let blocks_per_s = Both::of(|direction| {
            // As in the simulation: a block of a whole slot, times the share of such slots.
            let most = f64::from(cell.most_symbols(direction)).max(1.0);
            let whole = info.share[direction] * f64::from(info.symbols) / most;
            let usable = if direction == Direction::Downlink { usable } else { 1.0 };
            whole * usable / info.slot.as_secs_f64()
        });
        Ok(Self { cell, blocks_per_s })
    }

    /// Length of a slot.
    pub fn slot(&self) -> Span {
        self.cell.info().slot
    }

    /// Adds a user, replacing the one with its number.
    pub fn admit(&mut self, user: &Watched, seed: u64) {
        self.cell.attach(Time::ZERO, Subscriber::new(user.id, &user.config, seed), &mut Deaf);
    }

    /// The cell's knowledge of a user's channel; `None` without such a user.
    pub fn look(&mut self, now: Time, user: u32) -> Option<Look> {
        let probes = self.cell.probe(now, user)?;
        let base = self.cell.config().channel.position;
        let position = probes.downlink.position;
        Some(Look {
            position,
            distance_m: base.ground_distance_m(position),
            link: Both::of(|direction| state(&probes[direction], self.blocks_per_s[direction])),
        })
    }
}

fn state(probe: &Probe, blocks_per_s: f64) -> LinkState {
    LinkState {
        path_loss_db: finite(probe.loss_db),
        sinr_db: finite(probe.sinr_db),
        cqi: probe.cqi.get(),
        mcs: probe.mcs,
        prbs: probe.prbs,
        tbs_bits: probe.block.bits(),
        rate_bit_s: f64::from(probe.block.bits()) * probe.share * blocks_per_s,
    }
}

impl Subject {
    /// A point this far from the base station on the ground, to the east, at the users' height.
    pub fn at_distance(&self, metres: f64) -> Result<Position, ViewError> {
        let base = self.config.channel.position;
        Ok(Position::new(base.x + metres, base.y, self.height_m()?))
    }

    /// Height in metres of the user.
    pub fn height_m(&self) -> Result<f64, ViewError> {
        let Some(user) = self.users.first() else { return Ok(USER_HEIGHT_M) };
        let mut watch = Watch::new(self, &self.config)?;
        watch.admit(user, self.seed);
        Ok(watch.look(ranpace_units::Time::ZERO, user.id).map_or(USER_HEIGHT_M, |look| look.position.z))
    }

    /// The same with the user standing this far from the base station, under the channel of the cell.
    pub fn standing_away(self, metres: f64) -> Result<Self, ViewError> {
        let position = self.at_distance(metres)?;
        Ok(self.standing(position))
    }

    /// The same with the user standing at a point, in metres; without a height, at its previous height.
    pub fn standing_at(self, x: f64, y: f64, z: Option<f64>) -> Result<Self, ViewError> {
        let z = match z {
            Some(z) => z,
            None => self.height_m()?,
        };
        Ok(self.standing(Position::new(x, y, z)))
    }
}
