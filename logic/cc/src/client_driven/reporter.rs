//! Decides how often, and in which format, the receiver of a client-driven control reports its estimate.

use ranpace_units::Rate;

use crate::client_driven::bw_report::Format;
use crate::interface::ReceiverReport;
use crate::options::{OptionError, OptionInfo, Options};

/// The option for the format of reports.
pub(crate) const REPORT: OptionInfo = OptionInfo {
    key: "report",
    values: "v1, exp, thesis-v2, bare [v1]",
    about: "how the reported bandwidth is written",
};
/// The option for the interval between reports.
pub(crate) const REPORT_EVERY: OptionInfo =
    OptionInfo { key: "report-every", values: "1 to 1000000 [1]", about: "acknowledgements per report" };

/// The format that both halves use.
pub(crate) fn format(options: &mut Options) -> Result<Format, OptionError> {
    options.value(REPORT.key, Format::NAMES, Format::V1)
}

/// Puts reports on every n-th acknowledgement, the first included.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    format: Format,
    every: u32,
    /// Acknowledgements until the next report.
    wait: u32,
}

impl Reporter {
    pub(crate) fn new(options: &mut Options) -> Result<Self, OptionError> {
        let every = options.number(REPORT_EVERY.key, 1.0, 1e6, 1.0)? as u32;
        Ok(Self { format: format(options)?, every, wait: 0 })
    }

    /// The report of this estimate for the next acknowledgement, if one is due.
    #[inline]
    pub(crate) fn report(&mut self, estimate: Option<Rate>) -> Option<ReceiverReport> {
        let estimate = estimate?;
        if self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        self.wait = self.every - 1;
        Some(self.format.encode(estimate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_driven::pipe::INITIAL_RATE;

    #[test]
    fn reports_leave_on_every_nth_acknowledgement() {
        for (every, expected) in [("1", "xxxxxx"), ("2", "x_x_x_"), ("4", "x___x_")] {
            let mut options = Options::new([("report-every".to_owned(), Some(every.to_owned()))]);
            let mut reporter = Reporter::new(&mut options).unwrap();
            // An unknown estimate does not consume a turn.
            assert_eq!(reporter.report(None), None);
            let found: String = (0..6)
                .map(|_| if reporter.report(Some(INITIAL_RATE)).is_some() { 'x' } else { '_' })
                .collect();
            assert_eq!(found, expected, "every {every}");
        }
    }
}
