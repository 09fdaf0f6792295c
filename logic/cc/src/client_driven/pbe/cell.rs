//! What a cell can give its receiver, from the messages of its control channel: means over a sliding window.
//!
//! Source: Xie et al. 2020, as understood: equations (1) and (2) of the specification of comparators, section 3.
//!
//! ```text
//! C_f = R_w P_cell / N               (1) the fair share, bits per TTI
//! C_p = R_w (P_a + P_idle / N)       (2) what there is
//! ```
//!
//! `P_a` are the receiver's own PRBs (granted, HARQ retransmissions included), `P_idle` what no message takes, `R_w` the bits of a PRB, and
//! `N` the active users, this one included. Ours: PRBs are counted times symbols, so that slots with fewer symbols count in proportion, and
//! those of the other direction as nothing. `R_w` is that of the receiver's grants in the window, else that of its last ones, and before
//! any that of the others. In a cell that allocates symbols, each over the whole band, [`LEAST_PRBS`] does not apply.

use std::collections::VecDeque;

use ranpace_rnis::{CellGrant, ControlChannel, SI_RNTI};
use ranpace_units::{Span, Time};

/// A user is active if it had grants in more than so many TTIs of the window ...
const LEAST_TTIS: u32 = 1;
/// ... of more than so many PRBs on average: others fetch control information alone.
const LEAST_PRBS: f64 = 4.0;
/// Most slots of a window, a bound of memory: a second of LTE. Ours.
const MOST_SLOTS: usize = 1_000;

/// The sums of one slot, or of all of a window. PRBs are counted times symbols.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    available: u64,
    idle: u64,
    own: Part,
    others: Part,
    /// Blocks for this receiver, and retransmissions among them.
    blocks: u64,
    again: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    prb_symbols: u64,
    bits: u64,
}

impl Part {
    /// Bits of a PRB and symbol; `None` without a grant.
    fn density(self) -> Option<f64> {
        (self.prb_symbols > 0).then(|| self.bits as f64 / self.prb_symbols as f64)
    }
}

impl Sums {
    fn add(&mut self, slot: &Self) {
        self.available += slot.available;
        self.idle += slot.idle;
        self.own.prb_symbols += slot.own.prb_symbols;
        self.own.bits += slot.own.bits;
        self.others.prb_symbols += slot.others.prb_symbols;
        self.others.bits += slot.others.bits;
        self.blocks += slot.blocks;
        self.again += slot.again;
    }

    /// `slot` was added before.
    fn remove(&mut self, slot: &Self) {
        self.available -= slot.available;
        self.idle -= slot.idle;
        self.own.prb_symbols -= slot.own.prb_symbols;
        self.own.bits -= slot.own.bits;
        self.others.prb_symbols -= slot.others.prb_symbols;
        self.others.bits -= slot.others.bits;
        self.blocks -= slot.blocks;
        self.again -= slot.again;
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    at: Time,
    sums: Sums,
    /// Number of its messages to other users.
    messages: usize,
}

/// Another user in the window.
#[derive(Clone, Copy, Debug)]
struct Other {
    rnti: u16,
    ttis: u32,
    prb_symbols: u64,
}

/// The capacity that a window shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// `C_f` in bit/s.
    pub fair: f64,
    /// `C_p` in bit/s.
    pub physical: f64,
    /// `C_p` in bits per TTI: a block of this receiver.
    pub block: f64,
    /// Share of the receiver's blocks that were retransmissions.
    pub again: f64,
    /// Active users, this one included.
    pub users: u32,
}

/// A sliding window over the control channel of a cell.
#[derive(Clone, Debug, Default)]
pub struct CellWindow {
    slots: VecDeque<Slot>,
    /// C-RNTI and PRBs times symbols of the messages to others in these slots, in order.
    messages: VecDeque<(u16, u32)>,
    /// By C-RNTI.
    others: Vec<Other>,
    sum: Sums,
    /// Bits of a PRB and symbol in the receiver's last grants.
    density: Option<f64>,
    capacity: Option<Capacity>,
}

impl CellWindow {
    /// Adds a slot; `is_decoded` tells which of the messages to others were decoded. The window is `length` long.
    pub fn push(
        &mut self,
        channel: &ControlChannel<'_>,
        length: Span,
        mut is_decoded: impl FnMut(&CellGrant) -> bool,
    ) {
        let mut sums = Sums { available: channel.available.into(), ..Sums::default() };
        let (mut used, mut messages) = (0, 0);
        for grant in channel.grants {
            let is_own = channel.own == Some(grant.rnti);
            if !is_own && !is_decoded(grant) {
                continue;
            }
            used += u64::from(grant.prb_symbols);
            let part = if is_own { &mut sums.own } else { &mut sums.others };
            if is_own {
                sums.blocks += 1;
                sums.again += u64::from(grant.again);
            } else if grant.rnti == SI_RNTI {
                continue;
            } else {
                messages += 1;
                self.messages.push_back((grant.rnti, grant.prb_symbols));
                self.count(grant.rnti, grant.prb_symbols);
            }
            part.prb_symbols += u64::from(grant.prb_symbols);
            part.bits += u64::from(grant.bits);
        }
        sums.idle = sums.available.saturating_sub(used);
        self.density = sums.own.density().or(self.density);
        self.sum.add(&sums);
        self.slots.push_back(Slot { at: channel.measured_at, sums, messages });
        while self.slots.len() > MOST_SLOTS
            || self.slots.front().is_some_and(|slot| channel.measured_at.since(slot.at) >= length)
        {
            self.forget_oldest();
        }
        self.capacity = self.estimate(channel);
    }

    /// The capacity as of the last slot; `None` while nothing was granted to anybody.
    pub fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn count(&mut self, rnti: u16, prb_symbols: u32) {
        let place = self.others.binary_search_by_key(&rnti, |other| other.rnti).unwrap_or_else(|place| {
            self.others.insert(place, Other { rnti, ttis: 0, prb_symbols: 0 });
            place
        });
        let other = &mut self.others[place];
        other.ttis += 1;
        other.prb_symbols += u64::from(prb_symbols);
    }

    fn forget_oldest(&mut self) {
        let Some(slot) = self.slots.pop_front() else { return };
        self.sum.remove(&slot.sums);
        for (rnti, prb_symbols) in self.messages.drain(..slot.messages) {
            if let Ok(place) = self.others.binary_search_by_key(&rnti, |other| other.rnti) {
                let other = &mut self.others[place];
                other.ttis -= 1;
                other.prb_symbols -= u64::from(prb_symbols);
                if other.ttis == 0 {
                    self.others.remove(place);
                }
            }
        }
    }

    /// Active users of the window, this one included.
    fn users(&self, channel: &ControlChannel<'_>) -> u32 {
        let symbols = f64::from(channel.cell.data_symbols.downlink.max(1));
        let least = if channel.cell.by_symbols { 0.0 } else { LEAST_PRBS * symbols };
        let is_active = |other: &&Other| {
            other.ttis > LEAST_TTIS && other.prb_symbols as f64 > least * f64::from(other.ttis)
        };
        1 + self.others.iter().filter(is_active).count() as u32
    }

    fn estimate(&self, channel: &ControlChannel<'_>) -> Option<Capacity> {
        let Sums { available, idle, own, others, blocks, again } = self.sum;
        let density = own.density().or(self.density).or_else(|| others.density())?;
        let users = self.users(channel);
        let slots = self.slots.len().max(1) as f64;
        let (share, seconds) = (1.0 / f64::from(users), channel.cell.slot.as_secs_f64().max(1e-6));
        let fair = density * available as f64 / slots * share;
        let block = density * (own.prb_symbols as f64 + idle as f64 * share) / slots;
        let again = if blocks == 0 { 0.0 } else { again as f64 / blocks as f64 };
        Some(Capacity { fair: fair / seconds, physical: block / seconds, block, again, users })
    }
}
