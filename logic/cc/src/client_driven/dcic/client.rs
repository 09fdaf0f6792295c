//! DCIC's client: estimates the bandwidth from the downlink control information (DCI) that the device's modem decodes.
//!
//! Source: Zhong 2020, section 5.3.2. Each DCI gives a transport block, summed over codewords, including HARQ
//! retransmissions. Windows of 50 ms tumble from the connection's beginning, and the last complete one is reported (equations
//! 5.7 and 5.8). A window without a DCI reports rBW_0 instead, the running mean of the rates that the CQIs promise (equation
//! 5.9).
//!
//! | estimator | over a window | |
//! |---|---|---|
//! | `per_dci` | mean of block / slot | equation 5.8 literally: one served slot in k yields k times the actual rate |
//! | `gap` | mean of block / time since the last DCI | irregular reception affects the interval |
//! | `window` | sum of blocks / 50 ms | the actual rate |
//!
//! Ours, where the thesis is silent: the mean of rBW_0 starts with the connection and continues after the first DCI; two DCIs
//! of one slot (and the first DCI) count as one slot apart; the hint's own time is used, as long as it does not go backwards.

use ranpace_units::{Rate, Span, Time};

use crate::client_driven::reporter::Reporter;
use crate::client_driven::tumbling::Tumbling;
use crate::interface::{RadioHint, Received, ReceiverHalf, ReceiverReport};

/// Length of a window, T_i (section 5.3.2).
const WINDOW: Span = Span::from_millis(50);
/// OFDM symbols per subframe that carry data: 14 less 3 of control (equation 5.9).
const DATA_SYMBOLS: f64 = 14.0 - 3.0;
/// Subcarriers per PRB, nRE (equation 5.9).
const SUBCARRIERS: f64 = 12.0;
/// Subframes per second (equation 5.9).
const SUBFRAMES: f64 = 1000.0;
/// Share of the subframes assumed to be the user's (section 5.3.2).
const ASSUMED_ACTIVITY: f64 = 0.5;
/// Share of the cell's PRBs assumed before the first DCI (section 5.3.2).
const ASSUMED_PRBS: f64 = 0.5;
/// Slot length if a hint does not specify it: a subframe of LTE.
const SUBFRAME: Span = Span::from_millis(1);

/// Bits per symbol by CQI; TS 36.213 Table 7.2.3-1.
const SPECTRAL_EFFICIENCY: [f64; 16] = [
    0.0, 0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023,
    4.5234, 5.1152, 5.5547,
];

/// `eCapacity` of equation 5.9 in bit/s.
pub fn capacity(cqi: u8, prbs: f64, layers: u8) -> f64 {
    let efficiency = SPECTRAL_EFFICIENCY[usize::from(cqi.min(15))];
    efficiency * DATA_SYMBOLS * prbs * SUBCARRIERS * SUBFRAMES * f64::from(layers.max(1))
}

/// How a window's bandwidth is computed from its DCIs; see the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Mean over the DCIs of block over slot.
    PerDci,
    /// Mean over the DCIs of block over time since the previous one.
    Gap,
    /// Blocks over the window's length.
    Window,
}

/// The client.
#[derive(Clone, Debug)]
pub struct DcicClient {
    estimator: Estimator,
    reporter: Reporter,
    windows: Tumbling,
    /// Time of the newest hint.
    now: Time,
    /// Time of the last DCI.
    last_dci: Option<Time>,
    /// PRBs of the last DCI.
    prbs: Option<f64>,
    /// Sum of bits (`window`) or of bit/s in the current window.
    sum: f64,
    dcis: u32,
    /// Estimate of the last complete window; `None` if it had no DCI.
    estimate: Option<f64>,
    /// Sum and number of eBW_0.
    initial: (f64, u64),
}

impl DcicClient {
    pub(crate) fn new(estimator: Estimator, reporter: Reporter) -> Self {
        Self {
            estimator,
            reporter,
            windows: Tumbling::new(WINDOW),
            now: Time::ZERO,
            last_dci: None,
            prbs: None,
            sum: 0.0,
            dcis: 0,
            estimate: None,
            initial: (0.0, 0),
        }
    }

    /// Records a DCI with a transport block of `bits` bits in `prbs` PRBs, in a slot of length `slot` (equation 5.7).
    pub fn observe_dci(&mut self, at: Time, bits: u32, prbs: f64, slot: Span) {
        self.move_to(at);
        let slot = if slot.is_zero() { SUBFRAME } else { slot };
        let bits = f64::from(bits);
        self.sum += match self.estimator {
            Estimator::PerDci => bits / slot.as_secs_f64(),
            Estimator::Gap => {
                let gap = self.last_dci.map_or(slot, |last| self.now.since(last).max(slot));
                bits / gap.as_secs_f64()
            }
            Estimator::Window => bits,
        };
        self.dcis += 1;
        self.last_dci = Some(self.now);
        if prbs.is_finite() && prbs > 0.0 {
            self.prbs = Some(prbs);
        }
    }

    /// Records a CQI measured in a cell of `cell_prbs` PRBs (equation 5.9).
    pub fn observe_cqi(&mut self, at: Time, cqi: u8, cell_prbs: u16, layers: u8) {
        self.move_to(at);
        let prbs = self.prbs.unwrap_or(f64::from(cell_prbs) * ASSUMED_PRBS);
        self.initial.0 += ASSUMED_ACTIVITY * capacity(cqi, prbs, layers);
        self.initial.1 += 1;
    }

    /// The bandwidth to report now: that of the last complete window, else rBW_0; `None` while both are unknown.
    pub fn estimate(&mut self, now: Time) -> Option<Rate> {
        self.move_to(now);
        let (sum, number) = self.initial;
        let bits_per_s = self.estimate.or((number > 0).then(|| sum / number as f64))?;
        Some(Rate::from_bits_per_s_f64(bits_per_s))
    }

    /// Closes the windows that have ended.
    fn move_to(&mut self, now: Time) {
        self.now = self.now.max(now);
        let ended = self.windows.ended(self.now);
        if ended == 0 {
            return;
        }
        // After more than one, the last complete window is an empty one.
        self.estimate = (ended == 1 && self.dcis > 0).then(|| match self.estimator {
            Estimator::PerDci | Estimator::Gap => self.sum / f64::from(self.dcis),
            Estimator::Window => self.sum / WINDOW.as_secs_f64(),
        });
        (self.sum, self.dcis) = (0.0, 0);
    }
}

impl ReceiverHalf for DcicClient {
    fn on_start(&mut self, now: Time) {
        self.windows.start(now);
    }

    fn on_data(&mut self, _: &Received) {}

    fn wants_radio(&self) -> bool {
        true
    }

    fn wants_quality(&self) -> bool {
        true
    }

    fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        let at = hint.measured_at.min(now);
        if let Some(bits) = hint.tbs_bits {
            self.observe_dci(at, bits, hint.granted, hint.tti);
        }
        if let Some(cqi) = hint.cqi {
            self.observe_cqi(at, cqi, hint.cell, hint.layers);
        }
    }

    fn report(&mut self, now: Time) -> Option<ReceiverReport> {
        let estimate = self.estimate(now);
        self.reporter.report(estimate)
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(estimate) = self.estimate {
            show("estimate_bit_s", estimate);
        }
        let (sum, number) = self.initial;
        if number > 0 {
            show("initial_bit_s", sum / number as f64);
        }
    }
}
