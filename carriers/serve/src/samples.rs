//! A record of the congestion controls of all QUIC connections: a line of JSON for each of them at each interval, and one when it ends.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use noq::Connection;
use ranpace_noq::{ConnectionControl, Sample};
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::radio::Chooser;

/// Where samples go.
#[derive(Debug)]
pub struct Samples {
    file: File,
    interval: Duration,
    /// Connections so far.
    count: AtomicU64,
    /// The disk was full, or gone: that is said once.
    is_broken: AtomicBool,
}

/// A line of the file.
#[derive(Serialize)]
struct Line<'a> {
    /// Number of the connection, since the server began.
    connection: u64,
    client: Option<SocketAddr>,
    control: &'a str,
    /// Time since the connection's handshake.
    time_s: f64,
    #[serde(flatten)]
    sample: Sample,
    /// Whether the connection has ended.
    is_last: bool,
}

impl Samples {
    /// Appends to a file.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn append(path: &Path, interval: Duration) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file, interval, count: AtomicU64::new(0), is_broken: AtomicBool::new(false) })
    }

    /// Records a connection until it is closed, or `over` is cancelled: noq closes a connection that nobody holds, so that this must
    /// not hold it longer than others do.
    pub async fn record(&self, connection: Connection, chooser: Chooser, over: CancellationToken) {
        let (number, begun) = (self.count.fetch_add(1, Ordering::Relaxed), Instant::now());
        let mut tick = interval(self.interval);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let client = || connection.path(noq::PathId::ZERO)?.remote_address().ok();
        let mut last = None;
        loop {
            let is_last = tokio::select! {
                _ = tick.tick() => false,
                _ = connection.closed() => true,
                () = over.cancelled() => true,
            };
            let controls = chooser.controls();
            let sample = ConnectionControl::new(connection.clone(), controls.clone()).sample();
            // A closed connection may have no path any more.
            if let Some(sample) = sample.or_else(|| if is_last { last.take() } else { None }) {
                self.write(&Line {
                    connection: number,
                    client: client(),
                    control: controls.algorithm().as_str(),
                    time_s: begun.elapsed().as_secs_f64(),
                    sample: sample.clone(),
                    is_last,
                });
                last = Some(sample);
            }
            if is_last {
                return;
            }
        }
    }

    fn write(&self, line: &Line<'_>) {
        let text = serde_json::to_vec(line).map_err(io::Error::other);
        let written = text.and_then(|mut text| {
            text.push(b'\n');
            // One call for a whole line, so that lines of different connections do not mix.
            (&self.file).write_all(&text)
        });
        if let Err(error) = written
            && !self.is_broken.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%error, "samples of connections are missing in the file");
        }
    }
}
