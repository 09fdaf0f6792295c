//! Shares a user's bandwidth among its flows (Diarra 2022, equations 5.4, 5.10 to 5.13).
//!
//! The windows are a function of the capacity and of the flows' categories alone; the order in which flows came or were judged does
//! not matter.

use ranpace_units::Time;

use super::flow::Flow;
use super::settings::{Accounting, Settings, WindowRule};

/// Segments of an idle flow's window.
const IDLE_SEGMENTS: f64 = 10.0;
/// Releases are summed in integers of 1/1024 byte (per second), because a sum of floats depends on the order of its terms.
const PARTS: f64 = 1024.0;

/// Result of sharing a capacity out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Shared {
    /// `N`: active flows.
    pub(super) flows: u32,
    /// `Z`: the flows that get less than their share.
    pub(super) slow: u32,
    /// `A`: what these release, in bytes per second, or in bytes.
    pub(super) released: f64,
}

/// Sets the windows of a user's flows; calls `changed` for each slot whose window has changed.
pub(super) fn share(
    now: Time,
    settings: &Settings,
    capacity: f64,
    slots: &[u32],
    flows: &mut [Option<Flow>],
    mut changed: impl FnMut(&mut Flow, u32),
) -> Shared {
    let mut of = Shared { flows: active(slots, flows), ..Shared::default() };
    let each = capacity / parts(settings, of.flows);
    let idle = capacity / parts(settings, of.flows + 1);
    let mut released = 0u64;
    for &slot in slots {
        let Some(flow) = flows.get_mut(slot as usize).and_then(Option::as_mut) else { continue };
        let floor = flow.floor(settings);
        let window = if !flow.active {
            flow.share = idle * flow.rtt_min(settings);
            flow.share.min(IDLE_SEGMENTS * flow.mss)
        } else {
            flow.share = each * flow.rtt_min(settings); // (5.4)
            let Some(limit) = flow.limit else { continue };
            let window = limit.min(flow.share); // (5.10)
            of.slow += 1;
            let left = match settings.accounting {
                Accounting::Rate => (flow.share - window.max(floor)) / flow.rtt_min(settings),
                Accounting::ShareBytes => flow.share - window.max(floor),
                Accounting::Literal => flow.released,
            };
            released = released.saturating_add((left.max(0.0) * PARTS) as u64); // (5.12)
            window
        };
        if flow.set_window(now, window.max(floor), settings) {
            changed(flow, slot);
        }
    }
    of.released = released as f64 / PARTS;
    let extra = of.released / parts(settings, of.flows - of.slow);
    for &slot in slots {
        let Some(flow) = flows.get_mut(slot as usize).and_then(Option::as_mut) else { continue };
        if !flow.active || flow.limit.is_some() {
            continue;
        }
        let more = match settings.accounting {
            _ if flow.category != super::Category::Fast => 0.0,
            Accounting::Rate => extra * flow.rtt_min(settings),
            Accounting::ShareBytes | Accounting::Literal => extra,
        };
        let window = (flow.share + more).min(capacity * flow.rtt_min(settings)); // (5.13)
        if flow.set_window(now, window.max(flow.floor(settings)), settings) {
            changed(flow, slot);
        }
    }
    of
}

/// Number of parts in which `flows` flows share the capacity: as many, or, as in the authors' module, a power of two (3 flows: 4;
/// else rounded down).
fn parts(settings: &Settings, flows: u32) -> f64 {
    f64::from(match (settings.window, flows.max(1)) {
        (WindowRule::Module, 3) => 4,
        (WindowRule::Module, flows) => 1 << flows.ilog2(),
        (WindowRule::Wired | WindowRule::Whole, flows) => flows,
    })
}

fn active(slots: &[u32], flows: &[Option<Flow>]) -> u32 {
    let is_active =
        |slot: &&u32| flows.get(**slot as usize).and_then(Option::as_ref).is_some_and(|flow| flow.active);
    slots.iter().filter(is_active).count() as u32
}
