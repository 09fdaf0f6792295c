//! Tests of the cell as a whole: those of the specification, and invariants. This file holds the shared helpers.

mod conservation;
mod frames;
mod handover;
mod harq;
mod losses;
mod lte;
mod shares;
mod uplink;
mod users;

use ranpace_phy::{Direction, Layers, LteBandwidth, LteMcs, Numerology, Prbs, QamTable};
use ranpace_units::{Bytes, Rate};

use super::*;
use crate::channel::{Carrier, PathLoss, Position, Receiver, Sight};
use crate::harq::HarqConfig;
use crate::rlc::{BearerConfig, Config, Format, Timers};
use crate::scheduler::{Alloc, Policy};
use crate::uplink::{AccessConfig, Power};

const DOWN: Direction = Direction::Downlink;
const UP: Direction = Direction::Uplink;

#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram {
    pub id: u64,
    pub size: u32,
    pub sent: Time,
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes::new(self.size.into())
    }
    fn flow(&self) -> u32 {
        0
    }
}

/// The packets that arrived, by user.
#[derive(Default)]
pub(super) struct Log {
    pub bytes: Vec<[u64; 2]>,
    pub arrivals: Vec<(u32, Direction, Time, Span)>,
    pub dropped: u64,
    /// Numbers of dropped packets, in the order of the reports.
    pub lost: Vec<u64>,
    pub events: Vec<Event>,
    pub reports: u64,
    pub latest: Vec<ranpace_rnis::UserReport>,
    pub bearers: Vec<ranpace_rnis::BearerReport>,
    pub used: Both<f64>,
}

impl Listener<Datagram> for Log {
    fn on_delivered(&mut self, now: Time, user: u32, direction: Direction, packet: Datagram) {
        let index = user as usize;
        if self.bytes.len() <= index {
            self.bytes.resize(index + 1, [0; 2]);
        }
        self.bytes[index][usize::from(direction == UP)] += u64::from(packet.size);
        self.arrivals.push((user, direction, now, now - packet.sent));
    }
    fn on_dropped(&mut self, _: Time, _: u32, _: Direction, packet: &Datagram, _: DropCause) {
        self.dropped += 1;
        self.lost.push(packet.id);
    }
    fn on_event(&mut self, event: Event) {
        self.events.push(event);
    }
    fn on_report(&mut self, report: &SlotReport<'_>) {
        self.reports += 1;
        self.latest = report.users.to_vec();
        self.bearers = report.bearers.to_vec();
        self.used.downlink += f64::from(report.used_prbs.downlink);
        self.used.uplink += f64::from(report.used_prbs.uplink);
    }
}

/// The cell of 004, without fading.
pub(super) fn lte(band: LteBandwidth) -> CellConfig {
    CellConfig {
        air: Air::Lte { band: band.prbs() },
        channel: ChannelConfig {
            position: Position::default(),
            carrier: Both { downlink: Carrier::MHZ_2120, uplink: Carrier::MHZ_1930 },
            loss: PathLoss::COST231_NS3,
            sight: Sight::Clear,
            shadowing: None,
            fading: FadingConfig::Steady,
            base_power_dbm: 46.0,
            gain_db: 0.0,
            receiver: Both { downlink: Receiver::quiet(9.0), uplink: Receiver::quiet(5.0) },
        },
        adaptation: AdaptationConfig::NS3,
        harq: Both { downlink: HarqConfig::LTE, uplink: HarqConfig::LTE_UPLINK },
        policy: Policy::PROPORTIONAL_FAIR,
        alloc: Alloc::Queue,
        usable_slots: 1.0,
        control: ControlChannels::Free,
        access: AccessConfig::LTE,
        power: Power { control: PowerControl::LENA, most_dbm: 24.0 },
    }
}

pub(super) fn standing(metres: f64, config: Config) -> UserConfig {
    UserConfig {
        place: Place::Static(Position::new(metres, 0.0, 0.0)),
        recording: None,
        bearers: vec![BearerConfig::both(config)],
    }
}

pub(super) fn um() -> Config {
    Config::um(Bytes::new(1_000_000))
}

pub(super) struct Rig {
    pub cell: Cell<Datagram>,
    pub log: Log,
    pub now: Time,
    /// Bytes that `saturate` keeps queued.
    pub fill: u64,
    pub sent: u64,
}

impl Rig {
    pub fn new(config: &CellConfig, users: &[UserConfig]) -> Self {
        let mut log = Log::default();
        let mut cell = Cell::new(0, config).unwrap();
        for (user, id) in users.iter().zip(0..) {
            cell.attach(Time::ZERO, Subscriber::new(id, user, 1), &mut log);
        }
        Self { cell, log, now: Time::ZERO, fill: 100_000, sent: 0 }
    }

    pub fn send(&mut self, user: u32, direction: Direction, size: u32) {
        let packet = Datagram { id: self.sent, size, sent: self.now };
        self.sent += 1;
        self.cell.send(self.now, user, direction, 0, packet, &mut self.log);
    }

    /// Plays the slots that begin before `end`.
    pub fn play_until(&mut self, end: Time) {
        while self.cell.next_event() < end {
            let now = self.cell.next_event();
            self.cell.poll(now, &mut self.log);
        }
        self.now = end;
    }

    /// Keeps the buffers of these users filled for `millis` ms.
    pub fn saturate(&mut self, users: &[u32], direction: Direction, size: u32, millis: u64) {
        for _ in 0..millis {
            for &user in users {
                while self.cell.queued(user, direction) < Bytes::new(self.fill) {
                    self.send(user, direction, size);
                }
            }
            let next = self.now + Span::from_millis(1);
            self.play_until(next);
        }
    }

    /// Lets users send requests and buffer status reports first; deliveries during this time do not count.
    pub fn warm_up(&mut self, users: &[u32], direction: Direction, size: u32) {
        self.saturate(users, direction, size, 100);
        self.log.bytes.clear();
    }

    pub fn rate(&self, user: u32, direction: Direction, millis: u64) -> f64 {
        let bytes = self.log.bytes.get(user as usize).map_or(0, |b| b[usize::from(direction == UP)]);
        Rate::of(Bytes::new(bytes), Span::from_millis(millis)).as_f64() / 1e6
    }
}

/// NR as in test P-2, on one carrier of 132 PRBs at 120 kHz or one per direction, at the highest MCS without errors.
pub(super) fn nr(duplex: Duplex, division: Division) -> CellConfig {
    let mut config = lte(LteBandwidth::Mhz20);
    config.air = Air::Nr {
        band: Prbs::new(132).unwrap(),
        numerology: Numerology::Khz120,
        table: QamTable::Qam64,
        layers: Layers::MIN,
        overhead: 12,
        duplex,
        division,
    };
    config.adaptation = AdaptationConfig {
        fixed_mcs: Some(LteMcs::MAX),
        errors: Errors::Fixed(0.0),
        ..AdaptationConfig::LTE
    };
    config.harq = Both { downlink: HarqConfig::NR, uplink: HarqConfig::NR };
    config.policy = Policy::RoundRobin;
    config.access = AccessConfig::nr(8);
    config.power = Power { control: PowerControl::Fixed, most_dbm: 35.0 };
    config
}

/// The experiments on millimetre waves, at the highest MCS without errors.
pub(super) fn mmwave() -> CellConfig {
    let mut config = nr(Duplex::Dynamic, Division::Symbols);
    config.air = Air::Mmwave;
    config.harq = Both { downlink: HarqConfig::MMWAVE, uplink: HarqConfig::MMWAVE };
    config.access = AccessConfig::MMWAVE;
    config
}

/// Every kind of frame, by name.
pub(super) fn frames() -> [(&'static str, CellConfig); 6] {
    let pattern: ranpace_phy::TddPattern = "DDDSU".parse().unwrap();
    [
        (
            "LTE",
            CellConfig {
                adaptation: nr(Duplex::Fdd, Division::Frequency).adaptation,
                ..lte(LteBandwidth::Mhz20)
            },
        ),
        ("FDD", nr(Duplex::Fdd, Division::Frequency)),
        ("TDD", nr(Duplex::Tdd(pattern), Division::Frequency)),
        ("TDD by symbols", nr(Duplex::Tdd(pattern), Division::Symbols)),
        ("dynamic", nr(Duplex::Dynamic, Division::Symbols)),
        ("millimetre waves", mmwave()),
    ]
}

/// NR's headers, in a buffer large enough for fast links.
pub(super) fn of_nr(config: Config) -> Config {
    Config { format: Format::Nr, timers: Timers { window: 2048, ..config.timers }, ..config }
}
