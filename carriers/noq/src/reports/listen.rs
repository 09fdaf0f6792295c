//! The sender of the data: hears the reports of the peer.

use std::time::Instant;

use noq::ConnectionError;
use ranpace_quic::reports::{Freshness, NumberedReport, ReportRefusal};

use crate::ConnectionControl;

/// Passes the peer's reports on to the control of its connection, until the connection ends; returns why it did. `heard` is told of
/// each report, taken or refused, such as to count them.
///
/// It reads all DATAGRAM frames of the connection. What a report says is judged by the control's guard, as everywhere.
pub async fn listen(
    control: &ConnectionControl,
    mut heard: impl FnMut(Result<&NumberedReport, ReportRefusal>),
) -> ConnectionError {
    let mut freshness = Freshness::default();
    loop {
        let content = match control.connection.read_datagram().await {
            Ok(content) => content,
            Err(ended) => return ended,
        };
        let now = control.controls.time(Instant::now());
        let read = NumberedReport::parse(&content);
        match read.and_then(|report| freshness.check(now, &report).map(|()| report)) {
            Ok(report) => {
                // Nobody hears it while the connection's path is being replaced.
                control.on_report(&report.report);
                heard(Ok(&report));
            }
            Err(refusal) => heard(Err(refusal)),
        }
    }
}
