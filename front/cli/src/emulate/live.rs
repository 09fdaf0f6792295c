//! `ranpace emulate --live`: rate, delay and queue of each link in the terminal, while it runs.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use ranpace_emulator::Snapshot;
use ranpace_sim::Moment;
use ranpace_units::Span;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline};

use crate::failure::Failure;
use crate::screen::{self, Signals, View};

/// Values that a line of figures keeps: as many as a wide terminal has columns.
const KEPT: usize = 500;
/// Lines of a link: its figures, what they were, and a gap.
const LINES: u16 = 4;
/// Lines of what programs print.
const TAIL: usize = 6;
/// Bytes at the end of what they print in which these are.
const TAIL_BYTES: u64 = 8 << 10;

/// Checks that there is a terminal to draw on; see [`screen::check`].
pub fn check() -> Result<Signals, Failure> {
    screen::check(
        "--live draws in a terminal, but standard output is none (a file or a pipe?); without --live the report has \
         the same figures over time",
    )
}

/// The last lines of a file, without what moves a cursor.
fn tail(log: &Path) -> Vec<String> {
    let read = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let mut lines: Vec<String> = text.lines().rev().take(TAIL).map(plain).collect();
    lines.reverse();
    lines
}

/// A line as it would be seen: what a carriage return went over is gone, and so are escape sequences.
fn plain(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let mut letters = line.rsplit('\r').next().unwrap_or_default().chars();
    let mut seen = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            // ECMA-48 section 5.4: CSI, parameters, a final letter from '@' on.
            '\x1b' => {
                if letters.next() == Some('[') {
                    let _ = letters.find(|letter| ('@'..='~').contains(letter));
                }
            }
            '\t' => seen.push(' '),
            letter if letter.is_control() => {}
            letter => seen.push(letter),
        }
    }
    seen
}

/// The live view of an emulation.
pub struct Screen {
    title: String,
    links: Vec<Panel>,
    last: Option<Snapshot>,
    /// Commands that enter the namespaces; shown until a program prints something.
    hints: Vec<String>,
    /// File that takes what programs print.
    log: PathBuf,
    tail: Vec<String>,
    /// Whether Ctrl-C was pressed.
    stops: bool,
}

/// A link.
struct Panel {
    name: String,
    moments: VecDeque<Moment>,
    /// Whether any packet has crossed it.
    is_used: bool,
}

impl Screen {
    /// Makes the screen of links with these names; `hints` are shown until programs print something to `log`.
    pub fn new(title: String, links: Vec<String>, hints: Vec<String>, log: PathBuf) -> Self {
        let panel = |name| Panel { name, moments: VecDeque::new(), is_used: false };
        Self {
            title,
            links: links.into_iter().map(panel).collect(),
            last: None,
            hints,
            log,
            tail: Vec::new(),
            stops: false,
        }
    }

    fn headline(&self) -> String {
        let end = if self.stops { "stopping; Ctrl-C again ends it at once" } else { "Ctrl-C ends it" };
        let Some(last) = &self.last else {
            return if self.stops {
                format!("{}: {end}", self.title)
            } else {
                format!("{}: starting", self.title)
            };
        };
        format!(
            "{}   {:.1} s   {} packets, {} late   loop {:.0} % of a core   {end}",
            self.title,
            last.at.as_secs_f64(),
            last.packets,
            last.late_packets,
            last.share * 100.0
        )
    }
}

impl View for Screen {
    type News = Snapshot;

    fn add(&mut self, snapshot: Snapshot) {
        for (panel, moment) in self.links.iter_mut().zip(&snapshot.links) {
            panel.is_used |= !moment.departed.is_zero() || moment.dropped_packets > 0;
            panel.moments.push_back(*moment);
            if panel.moments.len() > KEPT {
                panel.moments.pop_front();
            }
        }
        self.last = Some(snapshot);
    }

    fn look(&mut self, stops: bool) {
        self.tail = tail(&self.log);
        self.stops = stops;
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let said = if self.tail.is_empty() { &self.hints } else { &self.tail };
        let below = if said.is_empty() { 0 } else { said.len().min(TAIL) as u16 + 1 };
        let [head, links, foot] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(0), Constraint::Length(below)])
                .areas(frame.area());
        frame.render_widget(Paragraph::new(vec![Line::from(self.headline()).bold()]), head);
        let used: Vec<&Panel> = self.links.iter().filter(|panel| panel.is_used).collect();
        let fit = usize::from(links.height / LINES);
        let places = Layout::vertical(vec![Constraint::Length(LINES); fit.min(used.len())]).split(links);
        for (panel, area) in used.iter().zip(places.iter()) {
            panel.draw(frame, *area);
        }
        if used.is_empty() {
            frame.render_widget(Paragraph::new("nothing has crossed a link yet").dim(), links);
        }
        if used.len() > fit && links.height > 0 {
            let line = Rect { y: links.bottom() - 1, height: 1, ..links };
            let more = format!("and {} more, for which the terminal is too small", used.len() - fit);
            frame.render_widget(Paragraph::new(more).dim(), line);
        }
        let lines: Vec<Line<'_>> = said.iter().map(|line| Line::from(line.as_str())).collect();
        let [_, foot] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(foot);
        frame.render_widget(Paragraph::new(lines).dim(), foot);
    }
}

impl Panel {
    fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(last) = self.moments.back() else { return };
        let [left, middle, right] = Layout::horizontal([Constraint::Fill(1); 3]).spacing(2).areas(area);
        let capacity = last.capacity.map_or(String::new(), |rate| format!(" of {}", mbits(rate.as_f64())));
        let rate = format!("{}  {}{capacity}", self.name, mbits(last.departed.as_f64()));
        let delay =
            last.delay.map_or("no packet left".to_owned(), |delay| format!("delay {}", millis(delay)));
        let mut queue = format!("queue {:.1} kB", last.queued.as_f64() / 1e3);
        if last.dropped_packets > 0 {
            queue += &format!(", {} dropped", last.dropped_packets);
        }
        let ceiling = self.moments.iter().filter_map(|moment| Some(moment.capacity?.as_f64() as u64)).max();
        let rates: Vec<u64> = self.moments.iter().map(|moment| moment.departed.as_f64() as u64).collect();
        let delays: Vec<u64> =
            self.moments.iter().map(|moment| moment.delay.map_or(0, |delay| delay.as_micros())).collect();
        let queues: Vec<u64> = self.moments.iter().map(|moment| moment.queued.get()).collect();
        line(frame, left, &rate, &rates, ceiling, Color::Green);
        line(frame, middle, &delay, &delays, None, Color::Yellow);
        line(frame, right, &queue, &queues, None, Color::Blue);
    }
}

/// A figure, and below it what it was: the last values that fit, up to `ceiling` or the largest of them.
fn line(frame: &mut Frame<'_>, area: Rect, text: &str, values: &[u64], ceiling: Option<u64>, color: Color) {
    let [above, chart] = Layout::vertical([Constraint::Length(1), Constraint::Length(LINES - 2)]).areas(area);
    frame.render_widget(Paragraph::new(text), above);
    let shown = &values[values.len().saturating_sub(usize::from(chart.width))..];
    let most = shown.iter().copied().max().unwrap_or(0).max(ceiling.unwrap_or(0)).max(1);
    frame.render_widget(Sparkline::default().data(shown).max(most).style(Style::new().fg(color)), chart);
}

fn mbits(rate: f64) -> String {
    format!("{:.1} Mbit/s", rate / 1e6)
}

fn millis(span: Span) -> String {
    format!("{:.1} ms", span.as_secs_f64() * 1e3)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may
mod tests {
    use ranpace_units::{Bytes, Rate, Time};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn snapshot(at: u64, links: &[(u64, u64)]) -> Snapshot {
        let links = links.iter().map(|&(mbits, kilobytes)| Moment {
            queued: Bytes::new(kilobytes * 1000),
            capacity: Some(Rate::from_mbit_per_s(100)),
            departed: Rate::from_mbit_per_s(mbits),
            dropped_packets: kilobytes / 100,
            delay: (mbits > 0).then(|| Span::from_micros(kilobytes * 100)),
        });
        Snapshot {
            at: Time::from_millis(at),
            links: links.collect(),
            packets: at * 8,
            late_packets: 3,
            share: 0.125,
        }
    }

    fn lines(screen: &Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(row).collect()
    }

    fn screen(names: &[&str]) -> Screen {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Screen::new("drive".to_owned(), names, vec!["namespace: ranpace-1-phone".to_owned()], PathBuf::new())
    }

    #[test]
    fn headline_shows_that_ctrl_c_was_pressed() {
        let mut screen = screen(&["down"]);
        screen.stops = true;
        assert_eq!(screen.headline(), "drive: stopping; Ctrl-C again ends it at once");
        screen.add(snapshot(1_500, &[(1, 1)]));
        assert!(screen.headline().ends_with("of a core   stopping; Ctrl-C again ends it at once"));
    }

    #[test]
    fn link_panel_shows_current_and_past_figures() {
        let mut screen = screen(&["down", "up"]);
        for at in 1..=40 {
            screen.add(snapshot(at * 100, &[(at * 2, at * 10), (0, 0)]));
        }
        let lines = lines(&screen, 120, 20);
        assert_eq!(lines[0], "drive   4.0 s   32000 packets, 3 late   loop 12 % of a core   Ctrl-C ends it");
        assert!(lines[2].starts_with("down  80.0 Mbit/s of 100.0 Mbit/s"), "{}", lines[2]);
        assert!(lines[2].contains("delay 40.0 ms"), "{}", lines[2]);
        assert!(lines[2].ends_with("queue 400.0 kB, 4 dropped"), "{}", lines[2]);
        // Rates up to 80 of 100 do not fill the two lines; the largest delay does.
        let columns: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
        let newest = |line: usize, from: usize| columns[line].get(from + 38..from + 40).map(<[char]>::to_vec);
        assert!(columns[3].iter().any(|letter| *letter != ' '), "{lines:#?}");
        assert!(columns[3].contains(&'█') && columns[4].contains(&'█'), "{lines:#?}");
        assert!(newest(3, 0).unwrap().iter().all(|letter| *letter != '█'), "{lines:#?}");
        assert!(!lines.iter().any(|line| line.contains("up  ")), "nothing crossed it: {lines:#?}");
        assert_eq!(lines[19], "namespace: ranpace-1-phone");
    }

    #[test]
    fn program_output_replaces_hints_and_hidden_links_are_counted() {
        let mut screen = screen(&["a", "b", "c", "d"]);
        screen.add(snapshot(100, &[(10, 10); 4]));
        screen.tail = vec!["[  5]  1.00 sec  94 Mbits/sec".to_owned()];
        let lines = lines(&screen, 90, 12);
        assert_eq!(lines[11], "[  5]  1.00 sec  94 Mbits/sec");
        assert!(lines.iter().any(|line| line.starts_with("and 2 more")), "{lines:#?}");
        assert!(lines[2].starts_with("a  10.0 Mbit/s"), "{lines:#?}");
    }

    #[test]
    fn any_terminal_size_is_drawn_without_panic() {
        let mut screen = screen(&["down"]);
        for (width, height) in [(1, 1), (3, 2), (10, 3), (20, 5), (200, 3)] {
            lines(&screen, width, height);
            screen.add(snapshot(100, &[(10, 10)]));
            lines(&screen, width, height);
        }
    }

    #[test]
    fn last_lines_of_program_output_are_shown_as_on_a_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert!(tail(&log).is_empty(), "not there yet");
        let text: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        std::fs::write(&log, text + "10 %\r20 %\n\x1b[1;31mred\x1b[0m\ttext\x07\n").unwrap();
        let lines = tail(&log);
        assert_eq!(lines.len(), TAIL);
        assert_eq!(lines[TAIL - 3..], ["line 999", "20 %", "red text"]);
    }
}
