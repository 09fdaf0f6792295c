//! PBE-CC's receiver: estimates its share of the cell from the control channel, and tells whether the cell is the bottleneck.
//!
//! Source: Xie et al. 2020, as understood; the specification of comparators, section 3, says how sure each rule is.
//!
//! ```text
//! C_t = C_p (1 - gamma) / (1 + TBER)        (3) goodput of C_p
//! D_th = D_prop + 3 HARQ + 3 ms             D_prop: least one-way delay of 10 s
//! N_pkt = 6 C_t / MSS                       packets of six subframes
//! ```
//!
//! | state | reports | leaves when |
//! |---|---|---|
//! | 0 ramp | a rate that rises linearly to the goodput of `C_f` within 3 RTT | it is reached; or as wireless |
//! | 1 wireless | `C_t` | `N_pkt` packets in a row above `D_th`: Internet |
//! | 2 Internet | `C_f`, and the bit | `N_pkt` packets in a row at or below `D_th`, while data arrive at `C_t` or faster |
//!
//! The ramp begins with the first data, at zero, and after a change of the cell at half of the last rate; windows and `D_prop` are then anew.
//!
//! Ours, where the source is silent: the goodput of `C_f` is that of equation (3), too; the HARQ round trip is 8 TTIs of LTE, in NR as long
//! as its processes last, so that all of them could wait; the ramp is left early for a wired bottleneck; windows are as long as the
//! smallest RTT of 10 s, 40 ms before there is one, and within [`SHORTEST`] and [`LONGEST`]; the rate of arrivals is that of the last
//! whole such window; a control channel that was silent for [`STALE`] yields no reports. Own messages are always decoded (`miss`).

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use ranpace_rnis::CellInfo;
use ranpace_units::{Rate, Span, Time};

use super::cell::{Capacity, CellWindow};
use crate::client_driven::pbe_report::{PACKET, Report};
use crate::filter::MaxFilter;
use crate::interface::{ControlChannel, Received, ReceiverHalf, ReceiverReport};

/// Share of a block that is overhead of the protocols, gamma: measured by the authors in their network.
pub(super) const OVERHEAD: f64 = 0.068;
/// Duration of the ramp in RTTs.
const RAMP_RTTS: u64 = 3;
/// HARQ rounds that the delay test tolerates, and jitter beside them.
const HARQ_ROUNDS: u64 = 3;
const JITTER: Span = Span::from_millis(3);
/// Time whose packets have to agree: six subframes.
const AGREEING: f64 = 0.006;
/// Window of the smallest delay and RTT.
const MEMORY: Span = Span::from_secs(10);
/// Length of windows before there is an RTT: the typical one.
const TYPICAL: Span = Span::from_millis(40);
/// Bounds of windows. Ours: two HARQ rounds of LTE; ten typical RTTs.
const SHORTEST: Span = Span::from_millis(16);
const LONGEST: Span = Span::from_millis(400);
/// Age at which the control channel's last slot is not used any more. Ours, as the age rule of the specification for reports.
pub(super) const STALE: Span = Span::from_millis(100);

/// Where the block error rate comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BlockErrors {
    /// The share of own blocks that are retransmissions.
    Measured,
    /// From this bit error rate: `1 - (1 - p)^L`.
    Bits(f64),
}

impl BlockErrors {
    /// TBER for a capacity.
    fn rate(self, capacity: &Capacity) -> f64 {
        match self {
            Self::Measured => capacity.again,
            Self::Bits(p) => -libm::expm1(capacity.block * libm::log1p(-p)),
        }
    }
}

/// Goodput of a physical capacity in bit/s (equation 3).
pub(super) fn goodput(physical: f64, overhead: f64, block_errors: f64) -> f64 {
    physical * (1.0 - overhead) / (1.0 + block_errors)
}

/// The state; `inspect` shows the variant's position here.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Rises from a rate in bit/s since an instant; `None` before the first data.
    Ramp {
        from: f64,
        since: Option<Time>,
    },
    Wireless,
    Internet,
}

impl State {
    fn number(self) -> u8 {
        match self {
            Self::Ramp { .. } => 0,
            Self::Wireless => 1,
            Self::Internet => 2,
        }
    }
}

/// The least span of a sliding window; a minimum may be forgotten up to a quarter of the window late.
#[derive(Clone, Debug, Default)]
pub(super) struct Least(MaxFilter);

impl Least {
    #[inline]
    pub(super) fn update(&mut self, now: Time, span: Span) {
        self.0.update(MEMORY.as_nanos(), now.as_nanos(), u64::MAX - span.as_nanos());
    }

    pub(super) fn get(&self) -> Option<Span> {
        let value = self.0.get();
        (value > 0).then(|| Span::from_nanos(u64::MAX - value))
    }
}

/// The receiver.
#[derive(Clone, Debug)]
pub(super) struct PbeClient {
    overhead: f64,
    errors: BlockErrors,
    /// Share of the messages to others that are not decoded, and the draws of which.
    miss: f64,
    random: Xoshiro256PlusPlus,
    window: CellWindow,
    capacity: Option<Capacity>,
    /// Number of the serving cell, its HARQ round trip, when its last slot was, and the age at which that is not used any more.
    cell: Option<u16>,
    harq: Span,
    heard_at: Time,
    stale: Span,
    state: State,
    /// Last reported rate in bit/s.
    last: f64,
    min_rtt: Least,
    min_delay: Least,
    /// Packets in a row that argue for leaving the state.
    row: u64,
    /// Beginning of the window of arrivals, its bytes, and the rate of the window before in bit/s.
    arrivals: (Time, u64),
    arriving: f64,
}

impl PbeClient {
    pub(super) fn new(overhead: f64, errors: BlockErrors, miss: f64) -> Self {
        Self {
            overhead,
            errors,
            miss,
            random: Xoshiro256PlusPlus::seed_from_u64(0),
            window: CellWindow::default(),
            capacity: None,
            cell: None,
            harq: Span::from_millis(8),
            heard_at: Time::ZERO,
            stale: STALE,
            state: State::Ramp { from: 0.0, since: None },
            last: 0.0,
            min_rtt: Least::default(),
            min_delay: Least::default(),
            row: 0,
            arrivals: (Time::ZERO, 0),
            arriving: 0.0,
        }
    }

    /// Length of the windows.
    pub(super) fn length(&self) -> Span {
        self.min_rtt.get().unwrap_or(TYPICAL).clamp(SHORTEST, LONGEST)
    }

    /// `C_t` and the goodput of `C_f` in bit/s.
    fn goodputs(&self) -> Option<(f64, f64)> {
        let capacity = self.capacity?;
        let errors = self.errors.rate(&capacity);
        let goodput = |physical| goodput(physical, self.overhead, errors);
        Some((goodput(capacity.physical), goodput(capacity.fair)))
    }

    /// `D_th`; `None` before there is a delay.
    pub(super) fn threshold(&self) -> Option<Span> {
        Some(self.min_delay.get()? + self.harq * HARQ_ROUNDS + JITTER)
    }

    /// Counts what arrives: the rate of the last whole window.
    fn count_arrival(&mut self, received: &Received) {
        let elapsed = received.now.since(self.arrivals.0);
        if elapsed >= self.length() {
            self.arriving = (8 * self.arrivals.1) as f64 / elapsed.as_secs_f64();
            self.arrivals = (received.now, 0);
        }
        self.arrivals.1 += received.wire.get();
    }

    /// The delay test.
    fn judge(&mut self, delay: Span) {
        let (Some(threshold), Some((goodput, _))) = (self.threshold(), self.goodputs()) else { return };
        let argues = match self.state {
            State::Ramp { .. } | State::Wireless => delay > threshold,
            State::Internet => delay <= threshold && self.arriving >= goodput,
        };
        self.row = if argues { self.row + 1 } else { 0 };
        if argues && self.row >= agreeing_packets(goodput) {
            self.state = if self.state == State::Internet { State::Wireless } else { State::Internet };
            self.row = 0;
        }
    }

    /// The rate to report in bit/s; ends the ramp at its top.
    fn rate(&mut self, now: Time) -> Option<f64> {
        let (available, fair) = self.goodputs()?;
        let ramp = self.min_rtt.get().unwrap_or(TYPICAL) * RAMP_RTTS;
        match self.state {
            State::Ramp { since: None, .. } => None,
            State::Ramp { from, since: Some(since) } => {
                let part = now.since(since).ratio(ramp.max(Span::from_micros(1)));
                if part > 1.0 {
                    self.state = State::Wireless;
                    return Some(available);
                }
                Some(from + (fair - from) * part)
            }
            State::Wireless => Some(available),
            // The bound is the fair share itself (C_f), as understood.
            State::Internet => self.capacity.map(|capacity| capacity.fair),
        }
    }

    /// A cell serves; if it is another than the one before, delays, the states and the capacity are anew.
    fn enter(&mut self, now: Time, cell: u16) {
        if self.cell.is_some_and(|before| before != cell) {
            self.restart(now);
        }
        self.cell = Some(cell);
    }

    /// Another cell serves: a ramp from half of the last rate.
    pub(super) fn restart(&mut self, now: Time) {
        (self.window, self.capacity) = (CellWindow::default(), None);
        self.min_delay = Least::default();
        self.row = 0;
        self.state = State::Ramp { from: self.last / 2.0, since: Some(now) };
    }

    /// The capacity as somebody else knows it, who measured it at an instant; it is used until it is `stale` old.
    pub(super) fn on_capacity(
        &mut self,
        now: Time,
        cell: &CellInfo,
        measured_at: Time,
        stale: Span,
        capacity: Option<Capacity>,
    ) {
        self.enter(now, cell.cell);
        self.harq = cell.slot * u64::from(cell.harq_processes.downlink);
        (self.heard_at, self.stale, self.capacity) = (measured_at, stale, capacity);
    }
}

/// `N_pkt`: the packets of six subframes at this rate in bit/s, at least one.
pub(super) fn agreeing_packets(goodput: f64) -> u64 {
    ((AGREEING * goodput / (8.0 * PACKET.as_f64())) as u64).max(1)
}

impl ReceiverHalf for PbeClient {
    fn on_data(&mut self, received: &Received) {
        let now = received.now;
        if let State::Ramp { since: since @ None, .. } = &mut self.state {
            *since = Some(now);
            self.arrivals = (now, 0);
        }
        if let Some(rtt) = received.rtt {
            self.min_rtt.update(now, rtt);
        }
        self.count_arrival(received);
        if let Some(delay) = now.checked_since(received.sent_at) {
            self.min_delay.update(now, delay);
            self.judge(delay);
        }
    }

    fn wants_cell(&self) -> bool {
        true
    }

    fn on_cell(&mut self, now: Time, channel: &ControlChannel<'_>) {
        self.enter(now, channel.cell.cell);
        self.harq = channel.cell.slot * u64::from(channel.cell.harq_processes.downlink);
        self.heard_at = channel.measured_at;
        let length = self.length();
        let Self { miss, ref mut random, .. } = *self;
        self.window.push(channel, length, |_| {
            miss == 0.0 || f64::from(random.next_u32()) >= miss * (f64::from(u32::MAX) + 1.0)
        });
        self.capacity = self.window.capacity();
    }

    fn report(&mut self, now: Time) -> Option<ReceiverReport> {
        if now.since(self.heard_at) > self.stale {
            return None;
        }
        let rate = self.rate(now)?;
        self.last = rate;
        let internet = self.state == State::Internet;
        Some(Report { rate: Rate::from_bits_per_s_f64(rate), internet }.encode())
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("pbe_state", f64::from(self.state.number()));
        if let Some(capacity) = self.capacity {
            show("fair_bit_s", capacity.fair);
            show("physical_bit_s", capacity.physical);
            show("users", f64::from(capacity.users));
            show("block_errors", self.errors.rate(&capacity));
        }
        if let Some(threshold) = self.threshold() {
            show("delay_threshold_s", threshold.as_secs_f64());
        }
        show("arriving_bit_s", self.arriving);
    }
}
