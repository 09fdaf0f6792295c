//! The radio rate of users, as reports give it, with the age rule that all rewriters share.
//!
//! The rate is RAPID's `C` of the same reports (Diarra 2022, section 5.2.2; [`Estimate`]). Ours: a report is used up to three periods, at
//! least 100 ms; after that the least rate of the last second, until the report is a second old; then none, and neither during a handover.

use std::collections::BTreeMap;

use ranpace_rnis::RadioHint;
use ranpace_units::{Bytes, Span, Time};

use crate::rapid::estimate::Estimate;
use crate::rapid::{LateCapacity, Mode, Settings};

/// Users of whom there were reports.
#[derive(Debug)]
pub(super) struct Radios {
    settings: Settings,
    users: BTreeMap<u32, Radio>,
}

#[derive(Debug)]
struct Radio {
    estimate: Estimate,
    queue: Bytes,
    is_handed_over: bool,
}

/// What is known about a user's radio now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    /// Rate in bytes per second.
    pub rate: f64,
    /// The RLC queue.
    pub queue: Bytes,
    /// Age of the measurement.
    pub age: Span,
}

impl Radios {
    /// Reports come every `period`.
    pub fn new(period: Span) -> Self {
        let settings = Settings { period, hold: LateCapacity::Least, ..Settings::FIELD };
        Self { settings, users: BTreeMap::new() }
    }

    pub fn on_report(&mut self, now: Time, user: u32, hint: &RadioHint) {
        let radio = self.users.entry(user).or_insert_with(|| Radio {
            estimate: Estimate::new(),
            queue: Bytes::ZERO,
            is_handed_over: false,
        });
        if radio.estimate.take(&self.settings, now, hint).is_some() {
            (radio.queue, radio.is_handed_over) = (hint.queue, hint.handover);
        }
    }

    /// `None` while nothing is known.
    pub fn of(&mut self, now: Time, user: u32) -> Option<Known> {
        let radio = self.users.get_mut(&user)?;
        radio.estimate.grow_old(&self.settings, now);
        if radio.is_handed_over || radio.estimate.mode == Mode::Open {
            return None;
        }
        let rate = radio.estimate.capacity(&self.settings, now);
        Some(Known { rate, queue: radio.queue, age: radio.estimate.age(now) })
    }
}

/// A report of a user that has all PRBs of a cell of 20 MHz at MCS 28, for tests.
#[cfg(test)]
pub(super) fn whole_cell(measured_at: Time) -> RadioHint {
    let info = ranpace_rnis::CellInfo::lte(1, ranpace_phy::LteBandwidth::Mhz20);
    RadioHint { granted: 100.0, mcs: 28, active_users: 1, ..RadioHint::of(info, measured_at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_used_then_held_then_gone_and_a_handover_voids_it() {
        let mut radios = Radios::new(Span::from_millis(8));
        assert_eq!(radios.of(Time::ZERO, 0), None);
        let at = Time::from_secs(5);
        radios.on_report(at, 0, &whole_cell(at));
        let rate = whole_cell(at).rate(ranpace_phy::Direction::Downlink, 100.0).as_f64() / 8.0;
        for (case, age, expected) in [
            ("fresh", 100, Some(rate)),
            ("held", 101, Some(rate)),
            ("held", 1_000, Some(rate)),
            ("gone", 1_001, None),
        ] {
            let known = radios.of(at + Span::from_millis(age), 0);
            assert_eq!(known.map(|known| known.rate), expected, "{case} at {age} ms");
        }
        let at = Time::from_secs(7);
        // A lost feed is back after ten reports.
        (0..10).for_each(|ms| {
            let at = at + Span::from_millis(ms);
            radios.on_report(at, 0, &whole_cell(at));
        });
        let at = at + Span::from_millis(10);
        assert!(radios.of(at, 0).is_some());
        radios.on_report(at, 0, &RadioHint { handover: true, ..whole_cell(at) });
        assert_eq!(radios.of(at, 0), None);
    }
}
