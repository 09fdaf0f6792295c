//! A cell run without transport: shared by the checks of whole cells.

use ranpace_link::Packet;
use ranpace_phy::{Direction, LteBandwidth, LteMcs};
use ranpace_radio::cell::{
    Air, Cell, CellConfig, CellError, CellSubscription, Errors, FadingConfig, Listener, Place, Subscriber,
    UserConfig,
};
use ranpace_radio::channel::Position;
use ranpace_radio::rlc::{BearerConfig, Config, DropCause};
use ranpace_rnis::SlotReport;
use ranpace_scenario::{ScenarioError, cells};
use ranpace_units::{Bytes, Rate, Span, Time};

use super::Row;

pub(super) const DOWN: Direction = Direction::Downlink;
pub(super) const UP: Direction = Direction::Uplink;

/// Why there is nothing to measure.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unplayable {
    #[error("no cell is called {0:?}")]
    NoPreset(&'static str),
    #[error(transparent)]
    Cell(#[from] CellError),
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// A packet of nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram {
    size: u32,
    sent: Time,
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes::new(self.size.into())
    }
    fn flow(&self) -> u32 {
        0
    }
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub user: u32,
    pub direction: Direction,
    pub size: u32,
    pub sent: Time,
    pub at: Time,
}

/// A slot's values for the downlink of the cell and of users 0 and 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct DownlinkSlot {
    pub time: Time,
    /// PRBs used by all.
    pub used: f64,
    /// PRBs of each.
    pub prbs: [u16; 2],
    /// Blocks of each that HARQ gave up so far.
    pub lost: [u64; 2],
}

/// The events of a run.
#[derive(Default)]
pub(super) struct Log {
    pub arrivals: Vec<Arrival>,
    /// When packets were dropped.
    pub dropped: Vec<Time>,
    pub slots: Vec<DownlinkSlot>,
}

impl Listener<Datagram> for Log {
    fn on_delivered(&mut self, now: Time, user: u32, direction: Direction, packet: Datagram) {
        let Datagram { size, sent } = packet;
        self.arrivals.push(Arrival { user, direction, size, sent, at: now });
    }
    fn on_dropped(&mut self, now: Time, _: u32, _: Direction, _: &Datagram, _: DropCause) {
        self.dropped.push(now);
    }
    fn on_report(&mut self, report: &SlotReport<'_>) {
        let mut slot = DownlinkSlot {
            time: report.time,
            used: report.used_prbs.downlink.into(),
            prbs: [0; 2],
            lost: self.slots.last().map_or([0; 2], |slot| slot.lost),
        };
        for user in report.users {
            let (index, link) = (user.user as usize, &user.link.downlink);
            if index < 2 {
                slot.prbs[index] = link.grant.map_or(0, |grant| grant.prbs);
                slot.lost[index] = link.lost;
            }
        }
        self.slots.push(slot);
    }
}

/// LTE as in ns-3, without fading, with this bandwidth: the cell of the experiments with 2120 and 1930 MHz.
pub(super) fn lte(band: LteBandwidth) -> Result<CellConfig, Unplayable> {
    const NAME: &str = "zhong-lte-ch6";
    let mut config = cells::by_name(NAME).ok_or(Unplayable::NoPreset(NAME))?.config();
    config.air = Air::Lte { band: band.prbs() };
    config.channel.fading = FadingConfig::Steady;
    Ok(config)
}

/// 25 PRBs, every block with MCS 28, of which this share fails independently of the channel.
pub(super) fn fixed(error_rate: f64) -> Result<CellConfig, Unplayable> {
    let mut config = lte(LteBandwidth::Mhz5)?;
    config.adaptation.fixed_mcs = Some(LteMcs::MAX);
    config.adaptation.errors = Errors::Fixed(error_rate);
    Ok(config)
}

/// RLC's unacknowledged mode.
pub(super) fn um() -> Config {
    Config::um(Bytes::new(1_000_000))
}

/// A user this far from the base station.
pub(super) fn standing(metres: f64, config: Config) -> UserConfig {
    UserConfig {
        place: Place::Static(Position::new(metres, 0.0, 0.0)),
        recording: None,
        bearers: vec![BearerConfig::both(config)],
    }
}

/// A cell, its users, and the recorded events.
pub(super) struct Rig {
    pub cell: Cell<Datagram>,
    pub log: Log,
    pub now: Time,
}

impl Rig {
    pub fn new(config: &CellConfig, users: &[UserConfig], seed: u64) -> Result<Self, Unplayable> {
        let (mut cell, mut log) = (Cell::new(0, config)?, Log::default());
        for (user, id) in users.iter().zip(0..) {
            cell.attach(Time::ZERO, Subscriber::new(id, user, seed), &mut log);
        }
        Ok(Self { cell, log, now: Time::ZERO })
    }

    /// Requests a report of every slot.
    pub fn subscribe(&mut self) {
        self.cell.subscribe(self.now, Some(CellSubscription::EVERY_SLOT));
    }

    pub fn send(&mut self, user: u32, direction: Direction, size: u32) {
        let packet = Datagram { size, sent: self.now };
        self.cell.send(self.now, user, direction, 0, packet, &mut self.log);
    }

    /// Plays the slots that begin before `end`.
    pub fn play_until(&mut self, end: Time) {
        while self.cell.next_event() < end {
            self.cell.poll(self.cell.next_event(), &mut self.log);
        }
        self.now = end;
    }

    /// Plays this many slots of 1 ms.
    pub fn play(&mut self, millis: u64) {
        self.play_until(self.now + Span::from_millis(millis));
    }

    /// Keeps the downlink buffers of these users filled for this long.
    pub fn saturate(&mut self, users: &[u32], size: u32, millis: u64) {
        for _ in 0..millis {
            for &user in users {
                while self.cell.queued(user, DOWN) < Bytes::new(100_000) {
                    self.send(user, DOWN, size);
                }
            }
            self.play(1);
        }
    }

    /// Rate of arrivals at user 0 from `since` on, in Mbit/s.
    pub fn mbit_s(&self, since: Time) -> f64 {
        let counts =
            |arrival: &&Arrival| (arrival.user, arrival.direction) == (0, DOWN) && arrival.at >= since;
        let bytes = self.log.arrivals.iter().filter(counts).map(|arrival| u64::from(arrival.size)).sum();
        Rate::of(Bytes::new(bytes), self.now - since).as_f64() / 1e6
    }
}

/// A span in ms.
pub(super) fn millis(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e6
}

/// The rows, or one that says why a cell cannot be run.
pub(super) fn or_why(rows: Result<Vec<Row>, Unplayable>) -> Vec<Row> {
    rows.unwrap_or_else(|error| vec![Row::exact(error.to_string(), 0.0, f64::NAN)])
}
