//! `ranpace kernel show`: the sockets of controls, of `load` and of `exec`.

use std::thread;
use std::time::Duration;

use ranpace_kernel::Socket;

use crate::failure::Failure;
use crate::{interrupt, output};

/// Time between two looks of `--live`.
const EVERY: Duration = Duration::from_secs(1);

/// Show the sockets of this network namespace that use a control of `load` or `exec`, and what it knows of them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace kernel show\n  \
    ranpace kernel show c2tcp --live\n  \
    nsenter --net=/run/netns/NAME ranpace kernel show --json      in another network namespace")]
pub struct Show {
    /// One control alone, by its name in `ranpace kernel list`
    name: Option<String>,
    /// Again every second, until Ctrl-C
    #[arg(long)]
    live: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "live")]
    json: bool,
}

impl Show {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let stop = interrupt::flag();
        loop {
            let shown = self.look()?;
            if self.json {
                return output::json(
                    &shown.iter().map(|(name, socket)| json(name, socket)).collect::<Vec<_>>(),
                );
            }
            if self.live {
                // Clears the screen, and begins at its top.
                output::line("\u{1b}[2J\u{1b}[H")?;
            }
            table(&shown)?;
            if !self.live {
                return Ok(());
            }
            for _ in 0..10 {
                if stop.load(std::sync::atomic::Ordering::SeqCst) {
                    return Ok(());
                }
                thread::sleep(EVERY / 10);
            }
        }
    }

    fn look(&self) -> Result<Vec<(String, Socket)>, Failure> {
        let is_meant = |name: &str| self.name.as_ref().is_none_or(|meant| meant == name);
        let pinned = ranpace_kernel::list()?.into_iter().map(|control| control.name);
        let mut shown = Vec::new();
        for name in pinned.filter(|name| is_meant(name)) {
            shown.extend(ranpace_kernel::sockets(&name)?.into_iter().map(|socket| (name.clone(), socket)));
        }
        let mut is_running = false;
        for control in ranpace_kernel::running()?.into_iter().filter(|control| is_meant(&control.name)) {
            is_running = true;
            shown.extend(control.sockets()?.into_iter().map(|socket| (control.name.clone(), socket)));
        }
        match &self.name {
            // A name that nobody has is an error that says which there are.
            Some(name) if shown.is_empty() && !is_running => {
                Ok(ranpace_kernel::sockets(name)?.into_iter().map(|socket| (name.clone(), socket)).collect())
            }
            _ => Ok(shown),
        }
    }
}

fn json(name: &str, socket: &Socket) -> serde_json::Value {
    let figures: serde_json::Map<_, _> =
        socket.figures.iter().map(|(key, value)| (key.clone(), (*value).into())).collect();
    serde_json::json!({ "control": name, "local": socket.local, "peer": socket.peer, "figures": figures })
}

/// Figures with a column of their own, their unit and what they are divided by; the others follow by name.
const COLUMNS: [(&str, &str, f64); 5] = [
    ("cwnd", "cwnd", 1.0),
    ("ssthresh", "ssthresh", 1.0),
    ("srtt_us", "RTT ms", 1000.0),
    ("rtt_min_us", "min ms", 1000.0),
    ("pacing_Bps", "pace Mbit/s", 125_000.0),
];
/// What is in no column and of no interest beside them.
const HIDDEN: [&str; 4] = ["in_flight", "mss", "delivered", "lost"];
/// From here on a number means infinity (TCP_INFINITE_SSTHRESH, an unpaced socket's rate).
const INFINITE: f64 = 2_147_483_647.0;

fn table(shown: &[(String, Socket)]) -> Result<(), Failure> {
    if shown.is_empty() {
        return output::line("no connection of this network namespace uses a control of `load` or `exec`");
    }
    let mut rows = vec![vec!["control".to_owned(), "local".to_owned(), "peer".to_owned()]];
    rows[0].extend(COLUMNS.map(|(_, title, _)| title.to_owned()));
    for (name, socket) in shown {
        let mut row = vec![name.clone(), socket.local.clone(), socket.peer.clone()];
        row.extend(COLUMNS.map(|(key, _, unit)| match socket.figure(key) {
            Some(value) if value < INFINITE => format!("{:.*}", if unit > 1.0 { 1 } else { 0 }, value / unit),
            _ => "-".to_owned(),
        }));
        let known = |key: &str| HIDDEN.contains(&key) || COLUMNS.iter().any(|(column, _, _)| *column == key);
        let own = socket.figures.iter().filter(|(key, _)| !known(key));
        row.push(own.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "));
        rows.push(row);
    }
    let columns = rows[0].len();
    let widths: Vec<usize> = (0..columns)
        .map(|i| rows.iter().filter_map(|row| row.get(i)).map(String::len).max().unwrap_or(0))
        .collect();
    for row in &rows {
        let cells = row.iter().enumerate().map(|(i, cell)| match widths.get(i) {
            Some(&width) if i >= 3 => format!("{cell:>width$}"),
            Some(&width) => format!("{cell:width$}"),
            None => cell.clone(),
        });
        output::line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}
