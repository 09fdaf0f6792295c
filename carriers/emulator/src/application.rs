//! The application of a flow of the scenario, over TCP or QUIC: what it writes, and when its transfers are complete.

use ranpace_network::Transfer;
use ranpace_scenario::{FlowSpec, Workload};
use ranpace_units::{Bytes, Span, Time};

/// An application, with the transfers that it has begun.
#[derive(Debug)]
pub struct Application<'a> {
    spec: &'a FlowSpec,
    transfers: Vec<Transfer>,
    /// Transfers that are complete, or belong to earlier connections.
    complete: usize,
    /// Payload of the complete transfers of the current connection.
    asked: u64,
    /// When it had delivered everything that it will deliver.
    finished: Option<Time>,
    stopped: bool,
}

impl<'a> Application<'a> {
    /// One that has not begun.
    pub fn new(spec: &'a FlowSpec) -> Self {
        Self { spec, transfers: Vec::new(), complete: 0, asked: 0, finished: None, stopped: false }
    }

    /// A connection begins, the first or a later one.
    pub fn on_connection(&mut self) {
        (self.asked, self.complete) = (0, self.transfers.len());
    }

    /// It writes so many bytes ([`Bytes::MAX`]: without end), and is to be asked again at the time, if there is one.
    pub fn write(&mut self, now: Time) -> (Bytes, Option<Time>) {
        if self.stopped {
            return (Bytes::ZERO, None);
        }
        let mut transfer = |size: Bytes| {
            self.transfers.push(Transfer { start: now, size, completion: None, handed_over: None });
            size
        };
        match self.spec.workload {
            Workload::Bulk => (Bytes::MAX, None),
            Workload::Fixed { size } | Workload::Repeat { size, .. } => (transfer(size), None),
            Workload::Paced { rate, interval } => (rate.bytes_in(interval), Some(now + interval)),
            Workload::Web { page, interval } => (transfer(page), Some(now + interval)),
            Workload::Cbr { .. } | Workload::Ppbp { .. } => (Bytes::ZERO, None),
        }
    }

    /// Checks for complete transfers: `read` bytes have been read on this connection, the last of them at `at`. Returns whether the
    /// connection has served its purpose, and when the next one begins.
    pub fn on_read(&mut self, read: u64, at: Time) -> (bool, Option<Time>) {
        if self.complete == self.transfers.len() {
            return (false, None);
        }
        while let Some(transfer) = self.transfers.get_mut(self.complete) {
            if read < self.asked + transfer.size.get() {
                return (false, None);
            }
            self.asked += transfer.size.get();
            transfer.completion = Some(at - transfer.start);
            self.complete += 1;
        }
        match self.spec.workload {
            Workload::Fixed { .. } => {
                self.finished = Some(at);
                (false, None)
            }
            Workload::Repeat { pause, count, .. } => {
                if count.is_some_and(|count| self.transfers.len() >= count as usize) {
                    self.finished = Some(at);
                    return (true, None);
                }
                (true, (!self.stopped).then(|| at + pause))
            }
            _ => (false, None),
        }
    }

    /// It writes nothing from now on, and opens no connection.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether it has stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Its transfers so far.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// The part of its lifetime that was measured between `from` and `end`.
    pub fn measured(&self, from: Time, end: Time) -> Span {
        let stop = self.spec.stop.unwrap_or(Time::MAX).min(self.finished.unwrap_or(Time::MAX)).min(end);
        stop - from.max(self.spec.start)
    }
}
