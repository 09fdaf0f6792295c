//! QUIC-CQIC, on HSPA+: derives the rate from the device's channel quality (CQI) and its share of the time.
//!
//! Source: Lu et al., "CQIC: Revisiting Cross-Layer Congestion Control for Cellular Networks" (HotMobile 2015), as described
//! in Zhong 2020, section 5.3.1 (equations 5.2 to 5.6). Client: in every TTI of 2 ms the CQI promises `TBS(CQI) / 2 ms`; the
//! report is the mean over 500 ms times the share of TTIs in which the device was served (`activity` here; the thesis calls
//! it DTX ratio). Server and its state as `inspect` shows it: as [`crate::client_driven::dcic`].
//!
//! The block sizes by CQI are those of TS 25.214 for the device's category. They are not included, because we could not check
//! them against the standard: the option `tbs` supplies them, and without it nothing is reported.
//!
//! Ours, where the thesis is silent: windows tumble from the connection's beginning; a window without a CQI or without
//! service yields no estimate, and the previous report stays; a CQI above the table counts as its last; more hints than TTIs
//! count as full activity at most. The radio cells of this program are LTE and NR, which define CQI differently: their values
//! are meaningless to this estimator.

use ranpace_units::{Rate, Span, Time};

use crate::client_driven::dcic::Dcic;
use crate::client_driven::guard;
use crate::client_driven::reporter::{self, Reporter};
use crate::client_driven::tumbling::Tumbling;
use crate::entry::{Control, Entry, Transport};
use crate::interface::{RadioHint, Received, ReceiverHalf, ReceiverReport};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "quic-cqic",
    about: "sends at the rate that channel quality and activity promise (HSPA+)",
    source: "Zhong 2020, section 5.3.1",
    options: &[
        OptionInfo {
            key: "tbs",
            values: "up to 30 numbers, such as 137/173/233 [none]",
            about: "transport block in bits for CQI 1, 2, ...: TS 25.214, by category",
        },
        reporter::REPORT,
        reporter::REPORT_EVERY,
        guard::GUARD,
    ],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: Some(build_receiver),
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let format = reporter::format(options)?;
    guard::build(Dcic::new(format), format, options)
}

fn build_receiver(options: &mut Options) -> Result<Option<Box<dyn ReceiverHalf>>, OptionError> {
    let table =
        options.value("tbs", "up to 30 block sizes in bits, such as 137/173/233", BlockSizes::default())?;
    Ok(Some(Box::new(QuicCqicClient::new(table, Reporter::new(options)?))))
}

/// Length of a window, T_i (section 5.3.1).
const WINDOW: Span = Span::from_millis(500);
/// A TTI of HSPA+.
const TTI: Span = Span::from_millis(2);
/// CQIs of HSPA+ except zero, which means out of range.
const CQIS: usize = 30;

/// Transport block in bits by CQI, from 1 on; CQI 0 has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockSizes {
    bits: [u32; CQIS],
    known: usize,
}

impl BlockSizes {
    /// The block of a CQI; a CQI above the table counts as its last.
    pub fn of(&self, cqi: u8) -> u32 {
        match usize::from(cqi).min(self.known) {
            0 => 0,
            place => self.bits[place - 1],
        }
    }
}

impl core::str::FromStr for BlockSizes {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut table = Self::default();
        for number in text.split('/') {
            *table.bits.get_mut(table.known).ok_or(())? = number.trim().parse().map_err(|_| ())?;
            table.known += 1;
        }
        Ok(table)
    }
}

/// The client.
#[derive(Clone, Debug)]
pub struct QuicCqicClient {
    table: BlockSizes,
    reporter: Reporter,
    windows: Tumbling,
    now: Time,
    /// Sum of eBW in bit/s and number of CQIs in the current window.
    promised: (f64, u32),
    /// TTIs in which this device was served.
    served: u32,
    /// The last such TTI: several codewords in one TTI count once.
    last_served: Option<Time>,
    estimate: Option<Rate>,
}

impl QuicCqicClient {
    pub(crate) fn new(table: BlockSizes, reporter: Reporter) -> Self {
        Self {
            table,
            reporter,
            windows: Tumbling::new(WINDOW),
            now: Time::ZERO,
            promised: (0.0, 0),
            served: 0,
            last_served: None,
            estimate: None,
        }
    }

    /// Records the CQI of one TTI (equation 5.2).
    pub fn observe_cqi(&mut self, at: Time, cqi: u8) {
        self.move_to(at);
        self.promised.0 += f64::from(self.table.of(cqi)) / TTI.as_secs_f64();
        self.promised.1 += 1;
    }

    /// Records a TTI whose control information announces data for this device (equation 5.3).
    pub fn observe_service(&mut self, at: Time) {
        self.move_to(at);
        if self.last_served != Some(self.now) {
            self.served += 1;
            self.last_served = Some(self.now);
        }
    }

    /// The bandwidth to report now (equation 5.4).
    pub fn estimate(&mut self, now: Time) -> Option<Rate> {
        self.move_to(now);
        self.estimate
    }

    fn move_to(&mut self, now: Time) {
        self.now = self.now.max(now);
        let ended = self.windows.ended(self.now);
        if ended == 0 {
            return;
        }
        let (sum, cqis) = core::mem::take(&mut self.promised);
        let served = f64::from(core::mem::take(&mut self.served));
        if ended == 1 && cqis > 0 {
            let activity = (served / WINDOW.ratio(TTI)).min(1.0);
            let rate = Rate::from_bits_per_s_f64(sum / f64::from(cqis) * activity);
            if !rate.is_zero() {
                self.estimate = Some(rate);
            }
        }
    }
}

impl ReceiverHalf for QuicCqicClient {
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
        if hint.tbs_bits.is_some() {
            self.observe_service(at);
        }
        if let Some(cqi) = hint.cqi {
            self.observe_cqi(at, cqi);
        }
    }

    fn report(&mut self, now: Time) -> Option<ReceiverReport> {
        let estimate = self.estimate(now);
        self.reporter.report(estimate)
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(estimate) = self.estimate {
            show("estimate_bit_s", estimate.as_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(table: &str) -> QuicCqicClient {
        let reporter = Reporter::new(&mut Options::default()).unwrap();
        let mut client = QuicCqicClient::new(table.parse().unwrap(), reporter);
        client.on_start(Time::ZERO);
        client
    }

    #[test]
    fn the_mean_promise_times_the_activity_is_reported_after_500_ms() {
        // Blocks of 2000 and 6000 bits in turn: 1 and 3 Mbit/s, 2 on average; served in one TTI of five: 0.4 Mbit/s.
        let mut client = client("2000/6000");
        for tti in 0..250 {
            let at = Time::from_millis(2 * tti);
            client.observe_cqi(at, 1 + (tti % 2) as u8);
            if tti % 5 == 0 {
                client.observe_service(at);
                client.observe_service(at); // the second codeword
            }
            assert_eq!(client.estimate(at), None);
        }
        assert_eq!(client.estimate(Time::from_millis(500)), Some(Rate::from_bits_per_s(400_000)));
    }

    #[test]
    fn a_window_without_service_changes_nothing() {
        let mut client = client("2000");
        for tti in 0..750 {
            let at = Time::from_millis(2 * tti);
            client.observe_cqi(at, 9);
            if tti < 250 {
                client.observe_service(at);
            }
        }
        assert_eq!(client.estimate(Time::from_millis(1500)), Some(Rate::from_mbit_per_s(1)));
    }

    #[test]
    fn without_a_table_nothing_is_reported() {
        let mut half = "quic-cqic".parse::<crate::Algorithm>().unwrap().receiver().unwrap();
        assert!(half.wants_radio() && half.wants_quality());
        assert_eq!(half.report(Time::from_secs(9)), None);
        assert_eq!((BlockSizes::default().of(15), client("5/6/7").table.of(30)), (0, 7));
        assert!("1/x".parse::<BlockSizes>().is_err());
        assert!(["1"; 31].join("/").parse::<BlockSizes>().is_err());
    }
}
