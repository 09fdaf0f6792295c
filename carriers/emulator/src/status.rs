//! What an emulation tells others of itself while it runs: a line of JSON for whoever connects to the socket `status.sock` in its folder
//! ([`crate::own_folder`]). Nothing is read from the socket, so that nobody can disturb the emulation through it, and nothing is
//! gathered unless somebody has asked lately.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ranpace_network::{Series, Transit, link_names, mean_rate};
use ranpace_rnis::update::Update;
use ranpace_scenario::{Scenario, UserSpec};
use ranpace_units::{Span, Time};
use serde::Serialize;

use crate::live::EVERY;
use crate::packet_buffer::Part;
use crate::timeliness::Watch;

/// Name of the socket in the emulation's folder.
pub const SOCKET: &str = "status.sock";
/// Figures are gathered for this long after somebody asked. Ours.
const WANTED: Duration = Duration::from_secs(2);
/// An answer waits this long for new figures: several times [`EVERY`]. Ours.
const FRESH: Duration = Duration::from_millis(300);
/// A reader that does not take its line within this time gets no more of it. Ours.
const PATIENCE: Duration = Duration::from_millis(200);
/// Time between two looks whether the emulation has ended. Ours.
const LOOK: u8 = 100;

/// The figures of a flow, a link or a user: values by the columns' names in the results. A value that is unknown is null.
type Values = BTreeMap<String, f64>;

/// A cell.
#[derive(Debug, Serialize)]
struct CellLine {
    name: String,
    prbs: u16,
    slot_s: f64,
    x_m: f64,
    y_m: f64,
}

/// A link, or a direction of a user, which has neither hosts nor a rate.
#[derive(Debug, Serialize)]
struct LinkLine {
    name: String,
    from: Option<String>,
    to: Option<String>,
    /// Its mean rate; null if it is unlimited.
    rate_bit_s: Option<f64>,
    values: Values,
}

/// A user.
#[derive(Debug, Serialize)]
struct UserLine {
    name: String,
    values: Values,
}

/// A flow of the scenario, or a connection of a program.
#[derive(Debug, Serialize)]
pub struct FlowLine {
    /// As in the results.
    pub name: String,
    /// Name of the host that sends.
    pub from: String,
    /// Name of the host that receives.
    pub to: String,
    /// Its congestion control.
    pub cc: String,
    /// Its last row.
    pub values: Values,
}

/// What is written.
#[derive(Debug, Serialize)]
struct Line {
    /// The scenario's name.
    name: String,
    /// Time since the beginning.
    now_s: f64,
    /// Packets delivered since the beginning.
    packets: u64,
    /// Those of them that were more than [`crate::LATE`] late.
    late_packets: u64,
    /// Share of a core that the loop used since the figures before.
    loop_share: f64,
    cells: Vec<CellLine>,
    links: Vec<LinkLine>,
    users: Vec<UserLine>,
    flows: Vec<FlowLine>,
}

/// The figures that the loop and the player gather, and readers are answered with.
#[derive(Debug)]
pub struct Status {
    began: Instant,
    /// When somebody asked last, in milliseconds since it began and one more; 0: nobody has.
    asked_ms: AtomicU64,
    /// How often the loop has gathered, and what.
    line: Mutex<(u64, Line)>,
    gathered: Condvar,
}

impl Status {
    /// Of an emulation that has not begun.
    pub fn new(scenario: &Scenario) -> Self {
        let link = |(place, name): (usize, String)| {
            let link = scenario.links.get(place);
            let host = |host: usize| scenario.hosts[host].clone();
            LinkLine {
                name,
                from: link.map(|link| host(link.from)),
                to: link.map(|link| host(link.to)),
                rate_bit_s: link.and_then(|link| mean_rate(&link.config.service)),
                values: Values::new(),
            }
        };
        let user = |user: &UserSpec| UserLine { name: user.name.clone(), values: Values::new() };
        let line = Line {
            name: scenario.name.clone(),
            now_s: 0.0,
            packets: 0,
            late_packets: 0,
            loop_share: 0.0,
            cells: Vec::new(),
            links: link_names(scenario).into_iter().enumerate().map(link).collect(),
            users: scenario.users.iter().map(user).collect(),
            flows: Vec::new(),
        };
        Self {
            began: Instant::now(),
            asked_ms: AtomicU64::new(0),
            line: Mutex::new((0, line)),
            gathered: Condvar::new(),
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether somebody has asked lately.
    pub fn is_wanted(&self) -> bool {
        let asked = self.asked_ms.load(Ordering::Relaxed);
        asked > 0 && self.now_ms() < asked + WANTED.as_millis() as u64
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Line)> {
        // A line is whole after any panic: its parts are replaced at once.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what is known of flows.
    pub fn set_flows(&self, flows: Vec<FlowLine>) {
        self.lock().1.flows = flows;
    }

    /// Describes the cells. Call before the first packet.
    pub fn describe<C: Copy + Default>(&self, scenario: &Scenario, network: &Transit<'_, C>) {
        let described = network.describe(&|_| Vec::new());
        let cells = described.into_iter().filter_map(|update| {
            let Update::Cell(cell) = update else { return None };
            let spec = scenario.cells.get(usize::from(cell.info.cell))?;
            Some(CellLine {
                name: spec.name.clone(),
                prbs: cell.info.prbs,
                slot_s: cell.info.slot.as_secs_f64(),
                x_m: spec.config.channel.position.x,
                y_m: spec.config.channel.position.y,
            })
        });
        self.lock().1.cells = cells.collect();
    }

    /// Listens at this path; the socket is for the emulation's own user alone, and removed with its folder.
    ///
    /// # Errors
    ///
    /// If nobody can listen there.
    pub fn listen(path: &Path) -> io::Result<UnixListener> {
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Answers until `is_over`.
    pub fn answer(&self, listener: &UnixListener, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            let mut waiting = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            // An error here is one of accepting, too, which follows.
            let _ = poll(&mut waiting, PollTimeout::from(LOOK));
            match listener.accept() {
                // A reader that has gone is no concern of the emulation.
                Ok((stream, _)) => drop(self.write(&stream)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Out of files, mostly.
                Err(_) => std::thread::sleep(Duration::from_millis(LOOK.into())),
            }
        }
    }

    /// Writes what is gathered next.
    fn write(&self, mut stream: &UnixStream) -> io::Result<()> {
        let before = self.lock().0;
        self.asked_ms.store(self.now_ms() + 1, Ordering::Relaxed);
        let waited = self.gathered.wait_timeout_while(self.lock(), FRESH, |(count, _)| *count == before);
        let (line, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_vec(&line.1);
        drop(line);
        let mut text = text?;
        text.push(b'\n');
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&text)
    }
}

/// The loop's part of a status.
#[derive(Debug)]
pub struct Gatherer<'a> {
    status: &'a Status,
    next: Time,
    last: (Time, Span),
}

impl<'a> Gatherer<'a> {
    /// Gathers for this status.
    pub fn new(status: &'a Status) -> Self {
        Self { status, next: Time::ZERO, last: (Time::ZERO, Span::ZERO) }
    }

    /// Describes the cells. Call before the first packet.
    pub fn describe<C: Copy + Default>(&self, scenario: &Scenario, network: &Transit<'_, C>) {
        self.status.describe(scenario, network);
    }

    /// Gathers if it is due and wanted; `busy` is the loop's CPU time so far.
    #[inline]
    pub fn look(
        &mut self,
        now: Time,
        network: &Transit<'_, Part>,
        watch: &Watch,
        busy: impl FnOnce() -> Span,
    ) {
        if now >= self.next {
            self.next = now + EVERY;
            if self.status.is_wanted() {
                self.gather(now, network, watch, busy());
            }
        }
    }

    #[cold]
    fn gather(&mut self, now: Time, network: &Transit<'_, Part>, watch: &Watch, busy: Span) {
        // Somebody reads the figures before: these are left out.
        let Ok(mut locked) = self.status.line.try_lock() else { return };
        let (count, line) = &mut *locked;
        let (at, before) = self.last;
        self.last = (now, busy);
        line.now_s = now.as_secs_f64();
        line.loop_share = (busy - before).as_secs_f64() / (now - at).as_secs_f64().max(1e-9);
        (line.packets, line.late_packets) = watch.packets();
        let newest = network.rows().saturating_sub(1);
        for (link, series) in line.links.iter_mut().zip(network.links_since(newest)) {
            link.values = last_row(series);
        }
        for (user, series) in line.users.iter_mut().zip(network.users_since(newest)) {
            user.values = last_row(series);
        }
        *count += 1;
        self.status.gathered.notify_all();
    }
}

/// The last row of a series, without its time.
fn last_row(series: Series) -> Values {
    let columns = series.columns.into_iter().filter(|column| column.name != "time_s");
    columns.filter_map(|column| Some((column.name, *column.values.last()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn figures_are_gathered_only_when_somebody_asks_and_a_reader_that_stands_still_delays_nobody() {
        let text = r#"
duration = "1s"
[[link]]
from = "a"
to = "b"
rate = "1Mbit/s"
[[flow]]
from = "a"
to = "b"
transport = "udp"
packet = "1400B"
workload = { kind = "cbr", rate = "100kbit/s" }
"#;
        let scenario = ranpace_scenario::parse(text, "test.toml", &mut ()).unwrap();
        let status = Status::new(&scenario);
        assert!(!status.is_wanted());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SOCKET);
        let listener = Status::listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| status.answer(&listener, &over));
            let _asleep = UnixStream::connect(&path).unwrap();
            let mut line = String::new();
            UnixStream::connect(&path).unwrap().read_to_string(&mut line).unwrap();
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(line["links"][0]["name"], link_names(&scenario)[0].as_str());
            assert!(status.is_wanted());
            over.store(true, Ordering::Relaxed);
        });
    }
}
