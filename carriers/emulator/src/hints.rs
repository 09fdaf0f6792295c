//! Writes radio information as it arrives, one line of JSON per hint (`hint_json.rs`), to a file or a named pipe.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use ranpace_cc::RadioHint;
use ranpace_network::{HintDelivery, Reader, Source, Transit};
use ranpace_phy::Direction;
use ranpace_rnis::CellInfo;
use ranpace_scenario::Scenario;
use ranpace_units::{Bytes, Time};

use crate::hint_json::{self, CellJson, Origin, PepJson, RadioJson};
use crate::pep::PepReport;

/// Most lines queued for the file: a second of 60 users every millisecond. Ours.
const WAITING: usize = 1 << 16;
/// Lines are flushed to the file after this time. Ours.
const FLUSH: Duration = Duration::from_millis(1);
/// Time to write the remaining lines at the end. Ours.
const GRACE: Duration = Duration::from_secs(2);
/// The recorded sources and directions. Readers are numbered from the largest number down, since those of participants begin at
/// zero.
const STREAMS: [(Source, Direction); 3] = [
    (Source::Edge, Direction::Downlink),
    (Source::Edge, Direction::Uplink),
    (Source::Modem, Direction::Uplink),
];

/// The subject of a line.
#[derive(Clone, Debug)]
enum Content {
    Hint { at: Time, origin: Origin, direction: Direction, user: u32, hint: RadioHint },
    Pep { at: Time, report: Box<PepReport> },
}

/// Sends lines to the writer thread.
#[derive(Debug)]
pub struct HintLines {
    lines: SyncSender<Content>,
    /// Lines dropped because the queue was full.
    left_out: u64,
}

/// The writer thread. Waiting for it is bounded, because a named pipe without a reader accepts nothing.
pub struct HintWriter {
    ended: Receiver<io::Result<u64>>,
}

/// Begins to write to a file. A named pipe is opened once it has a reader.
pub fn hints_to(path: PathBuf, scenario: &Scenario) -> (HintLines, HintWriter) {
    let (sender, lines) = mpsc::sync_channel(WAITING);
    let (say_ended, ended) = mpsc::channel();
    let users = scenario.users.iter().map(|user| user.name.clone()).collect();
    thread::spawn(move || {
        // The receiver may have given up waiting.
        let _ = say_ended.send(write(&path, &lines, users));
    });
    (HintLines { lines: sender, left_out: 0 }, HintWriter { ended })
}

impl HintLines {
    /// Subscribes to both feeds and the grants of all users.
    pub fn subscribe<C: Copy + Default>(&self, scenario: &Scenario, network: &mut Transit<'_, C>) {
        for user in 0..scenario.users.len() as u32 {
            network.listen(user);
            for (number, (source, direction)) in (0..).zip(STREAMS) {
                network.subscribe_hints(source, Reader::Participant(u32::MAX - number), user, direction, 0);
            }
        }
    }

    /// Queues a hint if it belongs to one of the recorded streams.
    pub fn take(&mut self, at: Time, delivery: &HintDelivery) {
        if let Some((source, direction)) = stream_of(delivery) {
            let origin = if source == Source::Edge { Origin::Rnis } else { Origin::Modem };
            self.send(Content::Hint { at, origin, direction, user: delivery.user, hint: delivery.hint });
        }
    }

    /// Takes a grant in the downlink.
    pub fn take_grant(&mut self, at: Time, user: u32, hint: RadioHint) {
        self.send(Content::Hint { at, origin: Origin::Dci, direction: Direction::Downlink, user, hint });
    }

    /// Takes a verified report of a PEP.
    pub fn take_report(&mut self, at: Time, report: &PepReport) {
        self.send(Content::Pep { at, report: Box::new(report.clone()) });
    }

    fn send(&mut self, content: Content) {
        self.left_out += u64::from(self.lines.try_send(content).is_err());
    }

    /// Number of hints left out because the file was too slow.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn stream_of(delivery: &HintDelivery) -> Option<(Source, Direction)> {
    let Reader::Participant(number) = delivery.reader else { return None };
    STREAMS.get((u32::MAX - number) as usize).copied()
}

impl HintWriter {
    /// Waits until the queued lines are written; returns their number.
    pub fn finish(self) -> io::Result<u64> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "nobody reads it");
        self.ended.recv_timeout(GRACE).unwrap_or_else(|_| Err(late()))
    }
}

/// Writes lines until there are no more.
fn write(path: &Path, lines: &Receiver<Content>, users: Vec<String>) -> io::Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut count = 0;
    loop {
        match lines.recv_timeout(FLUSH) {
            Ok(content) => {
                match &content {
                    Content::Hint { at, origin, direction, user, hint } => {
                        let line = line(&users, *at, *origin, *direction, (*user, hint));
                        serde_json::to_writer(&mut file, &line)?;
                    }
                    Content::Pep { at, report } => serde_json::to_writer(&mut file, &pep_line(*at, report))?,
                }
                file.write_all(b"\n")?;
                count += 1;
            }
            Err(RecvTimeoutError::Timeout) => file.flush()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    file.flush()?;
    Ok(count)
}

fn pep_line(at: Time, report: &PepReport) -> PepJson<'_> {
    let PepReport { pep, server, user, verified, view } = report;
    PepJson {
        at_s: at.as_secs_f64(),
        source: hint_json::PEP.into(),
        pep: pep.into(),
        server: *server,
        user: *user,
        cumulative: view.cumulative,
        ranges: view.ranges().into(),
        hold_s: verified.report.hold.as_secs_f64(),
        marked: verified.report.marked,
        new_epoch: verified.new_epoch,
    }
}

fn line<'a>(
    users: &'a [String],
    at: Time,
    source: Origin,
    direction: Direction,
    (user, hint): (u32, &RadioHint),
) -> RadioJson<'a> {
    let RadioHint { measured_at, cqi, mcs, layers, tbs_bits, active_users, handover, .. } = *hint;
    RadioJson {
        at_s: at.as_secs_f64(),
        measured_at_s: measured_at.as_secs_f64(),
        source,
        user: users.get(user as usize).map_or("", String::as_str).into(),
        direction: Some(direction.into()),
        cqi,
        mcs,
        layers,
        tbs_bits,
        tti_s: Some(hint.tti.as_secs_f64()),
        granted_prbs: hint.granted,
        most_granted_prbs: hint.most_granted,
        unused_prbs: hint.unused,
        cell_prbs: hint.cell,
        active_users,
        queue_bytes: hint.queue.get(),
        queue_limit_bytes: hint.queue_limit.map(Bytes::get),
        handover,
        cell: Some(cell(&hint.info)),
    }
}

fn cell(info: &CellInfo) -> CellJson {
    CellJson {
        number: info.cell,
        technology: info.technology.into(),
        symbols: info.symbols,
        fdd: info.fdd,
        share: (info.share.downlink, info.share.uplink),
        data_symbols: (info.data_symbols.downlink, info.data_symbols.uplink),
        shared: info.shared,
        by_symbols: info.by_symbols,
        overhead: info.overhead,
        harq_processes: (info.harq_processes.downlink, info.harq_processes.uplink),
    }
}

#[cfg(test)]
mod tests {
    use ranpace_phy::LteBandwidth;

    use super::*;
    use crate::hint_line::HintLine;

    #[test]
    fn each_hint_of_both_feeds_is_a_line() {
        let text = format!(
            "rnis = {{ period = \"10ms\" }}\nmodem = {{ every = 5 }}\n{}",
            include_str!("../tests/scenarios/cell.toml")
        );
        let scenario = ranpace_scenario::parse(&text, "test.toml", &mut ()).expect("it is right");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hints.jsonl");
        let mut network = Transit::<u32>::new(&scenario);
        let (mut lines, writer) = hints_to(path.clone(), &scenario);
        lines.subscribe(&scenario, &mut network);
        network.advance(Time::from_millis(200));
        while let Some((at, delivery)) = network.take_hint() {
            lines.take(at, &delivery);
        }
        // Nothing is sent, so nothing is granted.
        assert!(network.take_grant().is_none());
        lines.take_grant(
            Time::from_millis(5),
            1,
            RadioHint {
                tbs_bits: Some(1000),
                ..RadioHint::of(CellInfo::lte(0, LteBandwidth::Mhz5), Time::from_millis(5))
            },
        );
        assert_eq!(lines.left_out(), 0);
        drop(lines);
        let count = writer.finish().expect("it is written");
        let written = std::fs::read_to_string(&path).expect("it is there");
        let lines: Vec<serde_json::Value> =
            written.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        assert_eq!(lines.len() as u64, count);
        for line in written.lines() {
            assert!(matches!(HintLine::parse(line.as_bytes()), Ok(HintLine::Radio(_))), "{line}");
        }
        for (source, direction) in [("rnis", "downlink"), ("rnis", "uplink"), ("modem", "uplink")] {
            let of = lines.iter().filter(|line| line["source"] == source && line["direction"] == direction);
            let of: Vec<_> = of.filter(|line| line["user"] == "ue2").collect();
            assert!(of.len() >= 15, "{source} {direction}: {}", of.len());
            assert!(of.iter().all(|line| line["measured_at_s"].as_f64() <= line["at_s"].as_f64()));
        }
        let grants: Vec<_> = lines.iter().filter(|line| line["source"] == "dci").collect();
        assert_eq!(
            (grants.len(), &grants[0]["user"], &grants[0]["tbs_bits"]),
            (1, &"ue2".into(), &1000.into())
        );
    }
}
