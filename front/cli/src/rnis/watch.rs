//! `ranpace rnis watch`: the users of a server's cells in the terminal, live, from its server-sent events.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ranpace_rnis::etsi::TimeStamp;
use ranpace_rnis::etsi::vendor::{LinkMeas, TtiMeas};
use ranpace_rnisd::bytes::Bytes;
use ranpace_rnisd::http_body_util::BodyExt as _;
use ranpace_rnisd::hyper::Method;
use ranpace_rnisd::hyper::body::Incoming;
use ranpace_rnisd::tokio::time::{sleep, timeout};
use ranpace_rnisd::url::Url;
use ranpace_units::Span;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize as _;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};
use serde_json::Value;

use super::ask::{self, Asker, Target};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::{self, View};

/// How often Ctrl-C is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Wait before a lost connection is made again. Ours.
const RETRY: Duration = Duration::from_secs(1);
/// News that wait to be drawn.
const WAITING: usize = 16;
/// Notifications that are shown.
const SHOWN: usize = 8;
/// Members of notifications that the line has in other words, or not at all.
const LEFT_OUT: [&str; 4] = ["notificationType", "associateId", "timeStamp", "_links"];
/// Notifications that come periodically for each user: no line, or they would be all that is seen.
const PERIODIC: [&str; 2] = ["MeasRepUe", "NrMeasRepUe"];
/// The columns: name, width without that of `user`, and in which order they are left out where the terminal is too narrow; 0 is never.
const COLUMNS: [(&str, u16, u8); 12] = [
    ("user", 0, 0),
    ("cell", 9, 1),
    ("CQI", 8, 0),
    ("dl PRBs", 7, 0),
    ("MCS", 3, 2),
    ("block", 7, 3),
    ("queue", 10, 0),
    ("ul PRBs", 7, 0),
    ("MCS", 3, 2),
    ("block", 7, 3),
    ("queue", 10, 0),
    ("age", 7, 0),
];

/// Watch the users of a server's cells in the terminal: channel, grants and queues, and what happens to them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace rnis watch\n  \
    ranpace rnis watch --period 1s --ue-ipv4-address 10.77.0.2 https://mec.example --token @token")]
pub struct Watch {
    #[command(flatten)]
    target: Target,
    /// Time between two looks, 20ms at least
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    period: Span,
    /// Only these users, by IPv4 address; repeat for several
    #[arg(long, value_name = "ADDRESS")]
    ue_ipv4_address: Vec<String>,
    /// Only cells with this cellId; repeat for several
    #[arg(long, value_name = "ID")]
    cell_id: Vec<String>,
}

/// What the server says.
enum News {
    Records(Vec<TtiMeas>),
    Notification(String),
    /// Whether there is a connection, and if not, why.
    Connected(Result<(), String>),
}

impl Watch {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let signals = screen::check(
            "`ranpace rnis watch` draws in a terminal, but standard output is none (a file or a pipe?); `ranpace rnis get tti_meas` \
             prints the same records, `ranpace rnis subscribe vendor_tti_meas` all that follow",
        )?;
        let asker = self.target.asker()?;
        let mut url = asker.url("/rni/v2/vendor/events")?;
        url.query_pairs_mut()
            .append_pair("period_ms", &self.period.as_millis().to_string())
            .extend_pairs(self.ue_ipv4_address.iter().map(|value| ("ue_ipv4_address", value)))
            .extend_pairs(self.cell_id.iter().map(|value| ("cell_id", value)));
        // A server that refuses is told before anything is drawn.
        let mut body = Some(open(&asker, &url)?);
        interrupt::flag();
        let (to, from) = sync_channel(WAITING);
        let name = url.origin().ascii_serialization();
        let drawing = screen::start(Screen::new(name), from, Some(signals));
        while let Some(events) = body {
            tell(&to, News::Connected(Ok(())));
            let mut reason = asker.runtime.block_on(follow(events, &to));
            body = loop {
                if interrupt::is_set() {
                    break None;
                }
                tell(&to, News::Connected(Err(reason)));
                asker.runtime.block_on(async { sleep(RETRY).await });
                match open(&asker, &url) {
                    Ok(opened) => break Some(opened),
                    Err(Failure::Asked(error) | Failure::Ours(error)) => reason = error,
                    Err(failure) => return Err(failure),
                }
            };
        }
        drop(to);
        match drawing.join() {
            Ok(drawn) => {
                drawn.map_err(|error| Failure::ours(format!("cannot draw in the terminal: {error}")))
            }
            Err(_) => Err(Failure::ours("drawing in the terminal failed")),
        }
    }
}

/// Passes news on, unless too many wait: newer ones follow.
fn tell(to: &SyncSender<News>, news: News) {
    // Whoever draws may have ended: a terminal that is gone, which its thread reports.
    let _ = to.try_send(news);
}

/// Opens the stream of events.
fn open(asker: &Asker, url: &Url) -> Result<Incoming, Failure> {
    let mut headers = asker.headers.clone();
    headers.retain(|(name, _)| *name != "Accept");
    headers.push(("Accept", "text/event-stream".to_owned()));
    let asked = asker.client.open(Method::GET, url, &headers);
    let answer = asker.runtime.block_on(asked).map_err(Failure::ours)?;
    let (parts, body) = answer.into_parts();
    if parts.status.is_success() {
        return Ok(body);
    }
    let text = asker.runtime.block_on(body.collect()).map(|body| body.to_bytes()).unwrap_or_default();
    Err(ask::refusal(url, parts.status, &text))
}

/// Passes events on until Ctrl-C, or until the stream ends: why it did.
async fn follow(mut body: Incoming, to: &SyncSender<News>) -> String {
    let mut events = Events::default();
    while !interrupt::is_set() {
        let frame = match timeout(LOOK, body.frame()).await {
            Err(_) => continue,
            Ok(None) => return "the server closed the connection".to_owned(),
            Ok(Some(Err(error))) => return error.to_string(),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(bytes) = frame.into_data() {
            events.take(&bytes, |name, data| match name {
                "records" => {
                    if let Ok(records) = serde_json::from_str(data) {
                        tell(to, News::Records(records));
                    }
                }
                "notification" => {
                    if let Some(line) = summary(data) {
                        tell(to, News::Notification(line));
                    }
                }
                "missed" => tell(to, News::Notification(format!("missed: {data}"))),
                _ => {}
            });
        }
    }
    String::new()
}

/// Splits a stream into events: WHATWG HTML, 9.2.6, as far as our server writes it (line feeds, `event` and `data`).
#[derive(Default)]
struct Events {
    rest: Vec<u8>,
    name: String,
    data: String,
}

impl Events {
    fn take(&mut self, bytes: &Bytes, mut each: impl FnMut(&str, &str)) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            match line.split_once(':') {
                None if line.is_empty() => {
                    if !self.data.is_empty() {
                        each(&self.name, &self.data);
                    }
                    self.name.clear();
                    self.data.clear();
                }
                Some(("event", name)) => name.trim_start().clone_into(&mut self.name),
                Some(("data", data)) => self.data.push_str(data.strip_prefix(' ').unwrap_or(data)),
                // Comments keep the connection alive.
                _ => {}
            }
        }
    }
}

/// A notification in one line: what, about whom, and the rest as JSON; `None` if it is a periodic one.
fn summary(notification: &str) -> Option<String> {
    let Ok(Value::Object(mut members)) = serde_json::from_str(notification) else {
        return Some(notification.to_owned());
    };
    let kind = members.get("notificationType").and_then(Value::as_str).unwrap_or("Notification");
    let kind = kind.strip_suffix("Notification").unwrap_or(kind).to_owned();
    if PERIODIC.contains(&kind.as_str()) {
        return None;
    }
    let ids = members.get("associateId").and_then(Value::as_array).into_iter().flatten();
    let ids: Vec<&str> = ids.filter_map(|id| id["value"].as_str()).collect();
    let ids = ids.join(" ");
    members.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    let mut rest = Value::Object(members);
    name_cells(&mut rest);
    Some(format!("{kind} {ids} {rest}"))
}

/// Writes cells as their numbers alone: their networks are mostly the same.
fn name_cells(value: &mut Value) {
    match value {
        Value::Object(members) => match members.get("cellId").or_else(|| members.get("nrcellId")) {
            Some(cell) => *value = cell.clone(),
            None => members.values_mut().for_each(name_cells),
        },
        Value::Array(values) => values.iter_mut().for_each(name_cells),
        _ => {}
    }
}

/// The places of the columns that are shown in a terminal of this width, and their widths.
fn columns(width: u16, longest_user: u16) -> Vec<(usize, u16)> {
    let of = |most: u8| {
        let shown = COLUMNS.iter().enumerate().filter(move |(_, (_, _, order))| *order <= most);
        shown.map(move |(place, (_, width, _))| (place, if place == 0 { longest_user } else { *width }))
    };
    let fits = |most: &u8| of(*most).map(|(_, width)| width + 1).sum::<u16>() <= width + 1;
    of((0..=3).rev().find(fits).unwrap_or(0)).collect()
}

/// What is drawn.
struct Screen {
    server: String,
    records: Vec<TtiMeas>,
    notifications: VecDeque<String>,
    lost: Option<String>,
    stops: bool,
}

impl Screen {
    fn new(server: String) -> Self {
        Self { server, records: Vec::new(), notifications: VecDeque::new(), lost: None, stops: false }
    }

    fn headline(&self) -> String {
        let Self { server, records, lost, stops, .. } = self;
        if *stops {
            return format!("{server}   stopping");
        }
        if let Some(reason) = lost {
            return format!("{server}   no connection: {reason}; it is tried again   Ctrl-C ends it");
        }
        let cells: BTreeSet<&str> = records.iter().map(|record| record.ecgi.cell_id.as_str()).collect();
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (users, cells) = (count(records.len(), "user"), count(cells.len(), "cell"));
        format!("{server}   {users} in {cells}   Ctrl-C ends it")
    }

    /// The line of a user, whose record has this age.
    fn row(record: &TtiMeas, now: Duration) -> [String; COLUMNS.len()] {
        let TimeStamp { seconds, nano_seconds } = record.time_stamp;
        let age = now.saturating_sub(Duration::new(seconds.into(), nano_seconds));
        let cqi = match (record.handover, record.cqi) {
            (true, _) => "handover".to_owned(),
            (false, Some(cqi)) => cqi.to_string(),
            (false, None) => "-".to_owned(),
        };
        let link = |link: &LinkMeas| {
            let block =
                link.tbs_bits.map_or("-".to_owned(), |bits| format!("{:.1} kB", f64::from(bits) / 8e3));
            let queue = format!("{:.1} kB", link.queue_bytes as f64 / 1e3);
            [format!("{:.1}", link.prbs), link.mcs.to_string(), block, queue]
        };
        let (user, cell) = (record.associate_id.value.clone(), record.ecgi.cell_id.clone());
        let ([a, b, c, d], [e, f, g, h]) = (link(&record.dl), link(&record.ul));
        [user, cell, cqi, a, b, c, d, e, f, g, h, format!("{} ms", age.as_millis())]
    }
}

impl View for Screen {
    type News = News;

    fn add(&mut self, news: News) {
        match news {
            News::Records(mut records) => {
                records.sort_by(|a, b| {
                    let key = |of: &TtiMeas| {
                        (of.ecgi.cell_id.clone(), of.associate_id.value.parse::<IpAddr>().ok())
                    };
                    key(a).cmp(&key(b))
                });
                self.records = records;
            }
            News::Notification(text) => {
                self.notifications.push_back(text);
                if self.notifications.len() > SHOWN {
                    self.notifications.pop_front();
                }
            }
            News::Connected(state) => self.lost = state.err(),
        }
    }

    fn look(&mut self, stops: bool) {
        self.stops = stops;
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        // At most a third of the terminal.
        let most = usize::from(frame.area().height / 3);
        let skipped = self.notifications.len().saturating_sub(most.saturating_sub(1));
        let lines: Vec<Line<'_>> =
            self.notifications.iter().skip(skipped).map(|line| Line::from(line.as_str())).collect();
        let below = if lines.is_empty() { 0 } else { lines.len() as u16 + 1 };
        let [head, users, foot] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(0), Constraint::Length(below)])
                .areas(frame.area());
        frame.render_widget(Paragraph::new(Line::from(self.headline()).bold()), head);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let longest = self.records.iter().map(|record| record.associate_id.value.len()).max();
        let shown = columns(frame.area().width, longest.unwrap_or(0).clamp(4, 39) as u16);
        let names = shown.iter().map(|(place, _)| COLUMNS[*place].0);
        let widths = shown.iter().map(|(_, width)| Constraint::Length(*width));
        let rows = self.records.iter().map(|record| {
            let mut cells = Self::row(record, now);
            Row::new(shown.iter().map(|(place, _)| std::mem::take(&mut cells[*place])).collect::<Vec<_>>())
        });
        let table = Table::new(rows, widths).header(Row::new(names).dim()).column_spacing(1);
        frame.render_widget(table, users);
        let hidden = (self.records.len() + 1).saturating_sub(usize::from(users.height));
        if hidden > 0 && users.height > 1 {
            let line = Rect { y: users.bottom() - 1, height: 1, ..users };
            let more = format!("and {} more, for which the terminal is too small{:80}", hidden + 1, "");
            frame.render_widget(Paragraph::new(more).dim(), line);
        }
        let [_, foot] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(foot);
        frame.render_widget(Paragraph::new(lines).dim(), foot);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;

    fn record(user: u8, cell: &str) -> TtiMeas {
        let link = json!({ "prbs": 12.5, "unusedPrbs": 37.5, "mcs": 9, "tbsBits": 40_000, "queueBytes": 44_000, "activeUsers": 2 });
        serde_json::from_value(json!({
            "associateId": { "type": 1, "value": format!("10.77.0.{user}") },
            "ecgi": { "cellId": cell, "plmn": { "mcc": "001", "mnc": "01" } },
            "timeStamp": { "seconds": 1, "nanoSeconds": 0 },
            "cqi": 11, "handover": false, "dl": link, "ul": link,
        }))
        .unwrap()
    }

    fn lines(screen: &Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(row).collect()
    }

    #[test]
    fn users_are_sorted_by_cell_and_address_and_notifications_stand_below() {
        let mut screen = Screen::new("mec:8012".to_owned());
        screen.add(News::Records(vec![record(10, "0000002"), record(11, "0000001"), record(9, "0000002")]));
        let change = json!({ "notificationType": "CellChangeNotification", "hoStatus": 3,
            "srcEcgi": { "cellId": "0000001", "plmn": { "mcc": "001", "mnc": "01" } }, "associateId": [{ "type": 1, "value": "10.77.0.9" }], "timeStamp": { "seconds": 1, "nanoSeconds": 0 } });
        screen.add(News::Notification(summary(&change.to_string()).unwrap()));
        assert_eq!(summary(&json!({ "notificationType": "MeasRepUeNotification" }).to_string()), None);
        let shown = lines(&screen, 130, 12);
        assert_eq!(shown[0], "mec:8012   3 users in 2 cells   Ctrl-C ends it");
        let users: Vec<&str> =
            shown[3..6].iter().map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!(users, ["10.77.0.11", "10.77.0.9", "10.77.0.10"]);
        assert!(
            shown[3].contains("0000001") && shown[3].contains("12.5") && shown[3].contains("5.0 kB"),
            "{shown:#?}"
        );
        assert_eq!(shown[11], "CellChange 10.77.0.9 {\"hoStatus\":3,\"srcEcgi\":\"0000001\"}");
        screen.add(News::Connected(Err("refused".to_owned())));
        assert!(screen.headline().contains("no connection: refused"));
    }

    #[test]
    fn any_terminal_size_is_drawn_and_hidden_users_are_counted() {
        let mut screen = Screen::new("mec".to_owned());
        for size in [(1, 1), (3, 2), (10, 3), (20, 5), (200, 3)] {
            lines(&screen, size.0, size.1);
            screen.add(News::Records((0..20).map(|user| record(user, "1")).collect()));
            screen.add(News::Notification("one".to_owned()));
        }
        let shown = lines(&screen, 120, 16);
        assert!(
            shown.iter().any(|line| line.starts_with("and 1") && line.contains(" more, for which")),
            "{shown:#?}"
        );
    }

    #[test]
    fn a_narrow_terminal_shows_fewer_columns_whole() {
        let mut screen = Screen::new("mec".to_owned());
        screen.add(News::Records(vec![record(10, "0000001")]));
        let shown = lines(&screen, 80, 10);
        assert_eq!(
            shown[2].split_whitespace().collect::<Vec<_>>(),
            ["user", "cell", "CQI", "dl", "PRBs", "queue", "ul", "PRBs", "queue", "age"]
        );
        assert!(shown[3].starts_with("10.77.0.10 0000001   11"), "{shown:#?}");
        assert!(lines(&screen, 120, 10)[2].matches("block").count() == 2);
    }

    #[test]
    fn events_are_split_wherever_the_stream_is_cut() {
        let stream = "event: records\ndata: [1]\n\n: alive\n\nevent: notification\ndata: {\"a\":2}\n\n";
        for cut in 0..stream.len() {
            let (mut events, mut found) = (Events::default(), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                events.take(&Bytes::from(part), |name, data| found.push(format!("{name} {data}")));
            }
            assert_eq!(found, ["records [1]", "notification {\"a\":2}"]);
        }
    }
}
