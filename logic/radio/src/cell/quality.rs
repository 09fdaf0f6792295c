//! The cell's knowledge of a user's channel: the latest measurement that has reached it.

use ranpace_phy::{Cqi, Direction};
use ranpace_units::Time;

use super::air::Layout;
use super::config::{AdaptationConfig, MOST_GROUPS};
use crate::channel::{CqiScale, Look, Mobility, RadioPath, Site, effective_sinr};
use crate::scheduler::Units;

/// SINR of each group as a ratio.
pub(super) type Sinrs = [f32; MOST_GROUPS];

/// A measurement of one direction. Uplink SINRs are for 0 dBm on each PRB, unless they were recorded.
#[derive(Clone, Debug)]
pub(super) struct Quality {
    /// The slot of the measurement; `None` before the first.
    pub slot: Option<u64>,
    /// By group.
    pub sinrs: Sinrs,
    /// CQI by group; downlink only, and computed on demand.
    pub cqis: [u8; MOST_GROUPS],
    pub has_cqis: bool,
    /// CQI of the whole band; downlink only.
    pub wideband: Cqi,
    /// Capacity of the whole band in bit/s/Hz; negative until it is computed.
    pub capacity: f64,
    /// Path loss in dB.
    pub loss_db: f64,
}

impl Quality {
    pub const NONE: Self = Self {
        slot: None,
        sinrs: [0.0; MOST_GROUPS],
        cqis: [0; MOST_GROUPS],
        has_cqis: false,
        wideband: Cqi::MIN,
        capacity: -1.0,
        loss_db: 0.0,
    };
}

/// One direction of a user's channel.
pub(super) struct Channel {
    pub path: RadioPath,
    pub site: std::sync::Arc<Site>,
    pub known: Quality,
    /// Bounds on the uplink for the coming slots.
    pub ahead: Ahead,
}

/// Bounds that hold for an uplink for some slots, so that it need not be measured in them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    /// The slot of the last request.
    pub asked: u64,
    /// Before slot `until`, whether the mean over the band suffices for a grant; `None` if that is uncertain.
    pub has_grant: Option<bool>,
    /// PRBs of such a grant.
    pub prbs: u16,
    pub until: u64,
    /// Before slot `until`, upper bounds on the SINR of each group at 0 dBm on each PRB.
    pub most: Sinrs,
    /// Path loss in dB before slot `until`.
    pub loss_db: f64,
}

impl Channel {
    /// SINR of each group in this slot.
    #[inline]
    pub fn look(&mut self, layout: &Layout, mobility: &mut Mobility, slot: u64, sinrs: &mut Sinrs) -> Look {
        self.path.look(&self.site, mobility, layout.frame.start_of(slot), sinrs)
    }

    /// Sets `known` to the latest measurement available in this slot. Measurements are taken every `period` slots, with an offset
    /// per user, and only computed on demand, since a channel is a function of time.
    pub fn update(
        &mut self,
        layout: &Layout,
        config: &AdaptationConfig,
        mobility: &mut Mobility,
        (user, direction, slot): (u32, Direction, u64),
    ) {
        let delayed = slot.saturating_sub(config.delay[direction]);
        let measured = if config.period == 1 {
            delayed
        } else {
            let offset = u64::from(user) % config.period;
            // Before the first report, the measurement of slot 0 counts.
            let since = delayed.saturating_sub(offset);
            if since == 0 { 0 } else { since - since % config.period + offset }
        };
        if self.known.slot == Some(measured) {
            return;
        }
        let Self { path, site, known, .. } = self;
        let look = path.look(site, mobility, layout.frame.start_of(measured), &mut known.sinrs);
        (known.slot, known.loss_db) = (Some(measured), look.loss_db);
        // The rest is computed on demand.
        (known.has_cqis, known.wideband, known.capacity) = (false, Cqi::MIN, -1.0);
    }

    /// Like [`Self::update`] for the downlink, and computes CQIs by group.
    pub fn update_cqis(
        &mut self,
        layout: &Layout,
        config: &AdaptationConfig,
        scale: &CqiScale,
        mobility: &mut Mobility,
        (user, slot): (u32, u64),
    ) {
        self.update(layout, config, mobility, (user, Direction::Downlink, slot));
        let groups = (layout.groups as usize).min(MOST_GROUPS);
        if !std::mem::replace(&mut self.known.has_cqis, true) {
            scale.cqis(&self.known.sinrs[..groups], &mut self.known.cqis[..groups]);
        }
    }

    /// Known capacity of the whole band, the mean of log2(1 + SINR), and its CQI.
    pub fn wideband(&mut self, layout: &Layout, scale: &CqiScale) -> (f64, Cqi) {
        if self.known.capacity < 0.0 {
            self.known.capacity = capacity(layout, &self.known.sinrs);
            self.known.wideband = scale.cqi_of_capacity(self.known.capacity);
        }
        (self.known.capacity, self.known.wideband)
    }

    /// When the known measurement was taken.
    pub fn measured(&self, layout: &Layout) -> Time {
        layout.frame.start_of(self.known.slot.unwrap_or(0))
    }
}

impl Quality {
    /// The CQI of these units: the worst one, or that of their mean efficiency.
    #[inline]
    pub fn cqi_of(&self, layout: &Layout, units: Units, worst: bool) -> Cqi {
        let all = || 0..layout.groups;
        let cqi = |group: u32| self.cqis[group as usize % MOST_GROUPS];
        let worst_of = |groups: &mut dyn Iterator<Item = u32>| Cqi::new(groups.map(cqi).min().unwrap_or(0));
        let mean_of = |groups: &mut dyn Iterator<Item = u32>| {
            let add = |(sum, prbs): (u32, u32), group: u32| {
                let width = u32::from(layout.prbs_of(group));
                (sum + width * u32::from(layout.efficiency_of(cqi(group))), prbs + width)
            };
            let (sum, prbs) = groups.fold((0, 0), add);
            Some(layout.mean_cqi(sum, prbs))
        };
        let found = match (layout.by_symbols, worst) {
            (true, true) => worst_of(&mut all()),
            (true, false) => mean_of(&mut all()),
            (false, true) => worst_of(&mut units.iter()),
            (false, false) => mean_of(&mut units.iter()),
        };
        found.unwrap_or(Cqi::MIN)
    }
}

/// Mean of log2(1 + SINR) over the PRBs of the band.
fn capacity(layout: &Layout, sinrs: &Sinrs) -> f64 {
    // All groups but perhaps the last are equally wide, so one logarithm of a product serves many groups. The four products are
    // independent of each other, for speed. Ratios are at most 10^30, and each product has at most eight factors.
    const FULL: f64 = 1e70;
    let (whole, last_prbs) = (usize::from(layout.prbs / layout.group), layout.prbs % layout.group);
    let mut products = [1.0; 4];
    let multiply = |products: &mut [f64], sinrs: &[f32]| {
        for (product, sinr) in products.iter_mut().zip(sinrs) {
            *product *= 1.0 + f64::from(*sinr);
        }
    };
    let (fours, rest) = sinrs[..whole.min(MOST_GROUPS)].as_chunks::<4>();
    for sinrs in fours {
        multiply(&mut products, sinrs);
    }
    multiply(&mut products, rest);
    let mut bits = if products.iter().all(|product| *product < FULL) {
        log2(products.iter().product())
    } else {
        products.iter().map(|product| log2(*product)).sum()
    };
    bits *= f64::from(layout.group);
    if last_prbs > 0
        && let Some(last) = sinrs.get(whole)
    {
        bits += f64::from(last_prbs) * log2(1.0 + f64::from(*last));
    }
    bits / f64::from(layout.prbs)
}

/// Base-2 logarithm of a normal number not below 1, to seven decimals: the exponent, plus the logarithm of the mantissa in
/// single precision, which is faster.
fn log2(number: f64) -> f64 {
    let bits = number.to_bits();
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    (bits >> 52) as f64 - 1023.0 + f64::from(libm::log2f(mantissa as f32))
}

/// Effective SINR of `prbs` PRBs from `first` on, as a ratio.
pub(super) fn effective(layout: &Layout, sinrs: &Sinrs, first: u16, prbs: u16) -> f64 {
    let (first, last) = (u32::from(first), u32::from(first) + u32::from(prbs.max(1)) - 1);
    let size = u32::from(layout.group);
    let groups = first / size..=(last / size).min(layout.groups - 1);
    effective_sinr(groups.map(|group| {
        let begin = (group * size).max(first);
        let end = ((group + 1) * size - 1).min(last);
        (sinrs[group as usize % MOST_GROUPS], (end + 1 - begin) as u8) // at most the size of a group
    }))
}

/// Effective SINR of these units, as a ratio.
pub(super) fn effective_of(layout: &Layout, sinrs: &Sinrs, units: Units) -> f64 {
    if layout.by_symbols {
        return effective(layout, sinrs, 0, layout.prbs);
    }
    effective_sinr(units.iter().map(|group| (sinrs[group as usize % MOST_GROUPS], layout.prbs_of(group))))
}

/// The worst SINR of `prbs` PRBs from `first` on.
pub(super) fn worst(layout: &Layout, sinrs: &Sinrs, first: u16, prbs: u16) -> f64 {
    let size = layout.group;
    let groups = usize::from(first / size)..=usize::from((first + prbs.max(1) - 1) / size);
    let worst = sinrs.get(groups).into_iter().flatten().copied().fold(f32::INFINITY, f32::min);
    if worst.is_finite() { worst.into() } else { 0.0 }
}
