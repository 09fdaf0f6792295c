//! A user whose flows receive scripted data. The tests are in a file for each subject.

mod allocation;
mod backlog;
mod feed;
mod field;
mod window_rules;

use ranpace_phy::LteBandwidth;
use ranpace_rnis::{CellInfo, Technology};

use super::*;

pub(super) const MSS: Bytes = Bytes::new(1_440);
pub(super) const RTT: Span = Span::from_millis(20);

pub(super) fn at(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

/// 25 PRBs, own 20, unused 5, MCS 28: C = 18 336 bits per ms.
pub(super) fn report(now: Time) -> RadioHint {
    let hint = RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz5), now);
    RadioHint { granted: 20.0, unused: 5.0, mcs: 28, tbs_bits: Some(14_688), active_users: 1, ..hint }
}

/// A user whose flows receive scripted data, with a report each ms.
pub(super) struct Rig {
    pub(super) rapid: Rapid<Vec<FlowRecord>>,
    pub(super) now: Time,
    pub(super) reports: bool,
}

impl Observer for Vec<FlowRecord> {
    fn on_period(&mut self, record: &FlowRecord) {
        self.push(*record);
    }
}

impl Rig {
    pub(super) fn new(settings: Settings) -> Self {
        let mut rig = Self { rapid: Rapid::observed(settings, Vec::new()), now: Time::ZERO, reports: true };
        rig.report();
        rig
    }

    pub(super) fn report(&mut self) {
        self.rapid.on_radio(self.now, 1, &report(self.now));
    }

    pub(super) fn open(&mut self, rtt: Span) -> FlowId {
        self.rapid.open(self.now, 1, rtt, MSS)
    }

    /// Advances to `until`; each ms each flow gets its rate in bytes/s, limited to its window per RTT.
    pub(super) fn play(&mut self, until: Time, flows: &[(FlowId, f64)]) {
        let ms = Span::from_millis(1);
        while self.now + ms <= until {
            self.now += ms;
            while let Some(due) = self.rapid.next_deadline().filter(|due| *due <= self.now) {
                self.rapid.on_deadline(due);
            }
            if self.reports {
                self.report();
            }
            for &(flow, rate) in flows {
                let Some(known) = self.rapid.flow(flow) else { continue };
                let rate = rate.min(known.window() / known.wan.smoothed.as_secs_f64());
                // Whole bytes; the cumulative count keeps the remainder.
                let up_to = |ms: u64| (rate * ms as f64 / 1e3 + 1e-6) as u64;
                let bytes = up_to(self.now.as_millis()) - up_to(self.now.as_millis() - 1);
                if bytes > 0 {
                    self.rapid.on_wan_data(self.now, flow, Bytes::new(bytes));
                }
            }
        }
    }

    pub(super) fn window(&self, flow: FlowId) -> f64 {
        self.rapid.flow(flow).unwrap().window()
    }

    pub(super) fn categories(&self, flow: FlowId) -> Vec<Category> {
        let periods = self.rapid.observer().iter().filter(|record| record.flow == flow);
        periods.map(|record| record.category).collect()
    }

    /// The first period of test R-1: `a` gets 1440, 2880, 4000, 4000, 4000 bytes, the others fill their windows.
    fn first_period(settings: Settings) -> (Self, [FlowId; 3]) {
        let mut rig = Self::new(settings);
        let flows @ [a, b, c] = [RTT; 3].map(|rtt| rig.open(rtt));
        for flow in flows {
            rig.rapid.on_ran_rtt(rig.now, flow, Span::from_millis(30));
        }
        for (round, bytes) in [1_440, 2_880, 4_000, 4_000, 4_000].into_iter().enumerate() {
            let middle = at(1_500 + 10_000 + 20_000 * round as u64);
            rig.play_reports(middle);
            rig.rapid.on_wan_data(middle, a, Bytes::new(bytes));
            for flow in [b, c] {
                rig.rapid.on_wan_data(middle, flow, Bytes::new(15_280));
            }
        }
        rig.play_reports(at(101_500));
        (rig, flows)
    }

    /// Reports and deadlines up to a time.
    pub(super) fn play_reports(&mut self, until: Time) {
        self.play(until, &[]);
        while let Some(due) = self.rapid.next_deadline().filter(|due| *due <= until) {
            self.rapid.on_deadline(due);
        }
        self.now = until;
    }
}

/// The specification's figures are rounded to a tenth, some less.
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.06, "{found}, expected {expected}");
}
