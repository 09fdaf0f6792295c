//! DCIC (TCP-CQIC in LTE): the device's own modem determines the rate, and the sender sends at it.
//!
//! Source: Zhong 2020, sections 5.3 and 5.4. Client: [`client`]. Server: only the pacing interval of equation 5.5 and the
//! window of equation 5.6; no slow start, no probing, no gain but the 2 of equation 5.6, no reaction to loss.
//!
//! State as `inspect` shows it: 0 before the first report (1 MB/s, ours), 1 after it. Ours, where the thesis is silent: see
//! [`crate::client_driven`] for floors and units; after a timeout the window is one segment until the next report.

pub mod client;

use crate::client_driven::guard;
use crate::client_driven::pipe::{self, Pipe, Unit};
use crate::client_driven::reporter::{self, Reporter};
use crate::entry::{Control, Entry, Transport};
use crate::interface::{
    Ack, Congestion, CongestionControl, Context, LossResponse, ReceiverHalf, ReceiverReport, Sample, Window,
};
use crate::options::{OptionError, OptionInfo, Options};

/// Entry in `ranpace list cc`.
pub const ENTRY: Entry = Entry {
    name: "dcic",
    about: "sends at the rate of the downlink grants that the device sees",
    source: "Zhong 2020, sections 5.3 and 5.4",
    options: &[ESTIMATOR, pipe::PKT, reporter::REPORT, reporter::REPORT_EVERY, guard::GUARD],
    transport: Transport::Tcp,
    loss_based: false,
    build: &build,
    receiver: Some(build_receiver),
};

/// The option for the client's estimator, shared with CQIC-S.
pub(crate) const ESTIMATOR: OptionInfo = OptionInfo {
    key: "estimator",
    values: "window, per_dci, gap",
    about: "bits of 50 ms over 50 ms; mean of the grants' rates (as published); the same over the time between grants",
};

fn build(options: &mut Options, _: u64) -> Result<Control, OptionError> {
    let format = reporter::format(options)?;
    let unit = pipe::unit(options)?;
    guard::build(Dcic { pipe: Pipe::new(format, unit) }, format, options)
}

/// The client's half, shared with CQIC-S.
pub(crate) fn build_receiver(options: &mut Options) -> Result<Option<Box<dyn ReceiverHalf>>, OptionError> {
    use client::Estimator::{Gap, PerDci, Window};
    let estimator =
        options.choice(ESTIMATOR.key, &[("window", Window), ("per_dci", PerDci), ("gap", Gap)])?;
    Ok(Some(Box::new(client::DcicClient::new(estimator, Reporter::new(options)?))))
}

/// Pacing gain: none (equation 5.5).
const PACING_GAIN: f64 = 1.0;
/// Window over BDP (equation 5.6).
const CWND_GAIN: f64 = 2.0;

/// The server's half, shared with QUIC-CQIC.
#[derive(Clone, Debug)]
pub struct Dcic {
    pipe: Pipe,
}

impl Dcic {
    /// Creates a control that understands reports of this format.
    pub fn new(format: crate::client_driven::bw_report::Format) -> Self {
        Self { pipe: Pipe::new(format, Unit::Wire) }
    }
}

impl CongestionControl for Dcic {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.pipe.on_start(cx);
        self.pipe.apply(cx, w, PACING_GAIN, CWND_GAIN);
    }

    fn on_sample(&mut self, _: &Context, _: &mut Window, sample: &Sample) {
        self.pipe.on_sample(sample);
    }

    fn on_congestion(&mut self, _: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.pipe.on_congestion(w, event);
        LossResponse::Own
    }

    fn on_ack(&mut self, _: &Context, _: &mut Window, _: &Ack) {}

    fn owns_recovery(&self) -> bool {
        true
    }

    fn on_spurious(&mut self, _: &Context, _: &mut Window, _: &Window) {}

    fn on_path_change(&mut self, _: &Context, _: &mut Window) {
        self.pipe.on_path_change();
    }

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        if self.pipe.on_report(report, false) {
            self.pipe.apply(cx, w, PACING_GAIN, CWND_GAIN);
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("state", f64::from(u8::from(self.pipe.reported.is_some())));
        show("pacing_gain", PACING_GAIN);
        show("cwnd_gain", CWND_GAIN);
        self.pipe.inspect(show);
    }
}

#[cfg(test)]
mod tests;
