//! What is to be downloaded, and how often; and doing it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ranpace_fetch::target::Target;
use ranpace_fetch::trust::Trust;
use ranpace_fetch::{Http, Measured, Meters, Options, check, fetch};
use ranpace_lab::Progress;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::radio;
use crate::failure::Failure;
use crate::{interrupt, output};

/// How often the progress is shown, and Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(100);

/// Something to download, with its place in the table.
struct Item {
    target: Target,
    label: String,
    options: Options,
}

/// All that is to be downloaded.
pub struct Plan {
    items: Vec<Item>,
    repeat: u32,
    parallel: u32,
    radio: Option<radio::Radio>,
}

/// The downloads of a URL.
pub struct Downloads {
    /// Its name in the table.
    pub label: String,
    /// The URL.
    pub url: String,
    /// What came whole, in the order in which it ended.
    pub whole: Vec<Measured>,
    /// Why others failed.
    pub failed: Vec<String>,
}

/// What came of a plan.
pub struct Done {
    /// By URL, in the plan's order.
    pub all: Vec<Downloads>,
    interrupted: bool,
}

impl Plan {
    /// The plan that the options describe.
    pub fn of(asked: super::Fetch) -> Result<Self, Failure> {
        let count = asked.urls.len();
        for (name, given) in [("--label", asked.label.len()), ("--http", asked.http.len())] {
            let once = name == "--http" && given == 1;
            if given != 0 && given != count && !once {
                return Err(Failure::asked(format!(
                    "expected {name} once for each URL, {count} times; found it {given} times"
                )));
            }
        }
        if asked.save.is_some() && (asked.repeat > 1 || asked.parallel > 1) {
            return Err(Failure::asked(
                "--save keeps one download of each URL: leave out --repeat and --parallel",
            ));
        }
        let trust = match (asked.pin, asked.ca) {
            (Some(fingerprint), _) => Trust::Pinned(fingerprint),
            (None, Some(file)) => Trust::File(file),
            (None, None) if asked.insecure => Trust::Anyone,
            (None, None) => Trust::Public,
        };
        let meters = Arc::new(Meters::default());
        let mut names = HashSet::new();
        let mut items = Vec::new();
        for (place, target) in asked.urls.into_iter().enumerate() {
            let given = asked.http.get(place).or(asked.http.first()).copied();
            if given == Some(Http::Three) && !target.is_https() {
                return Err(Failure::asked(format!(
                    "{target}: HTTP/3 is always encrypted; give an https URL, or --http 1.1"
                )));
            }
            let http = if target.is_https() { given.unwrap_or_default() } else { Http::One };
            if let Some(folder) = &asked.save {
                let name = target.file_name().unwrap_or("index.html").to_owned();
                if !names.insert(name.clone()) {
                    return Err(Failure::asked(format!(
                        "two URLs end in {name:?}, and {} can have one file of that name",
                        folder.display()
                    )));
                }
            }
            let options = Options {
                http,
                cc: asked.cc.clone(),
                reports: asked.reports.clone().filter(|_| http == Http::Three),
                trust: trust.clone(),
                window: asked.window.get(),
                patience: Duration::from_nanos(asked.timeout.as_nanos()),
                folder: asked.save.clone(),
                meters: meters.clone(),
            };
            check(&options).map_err(Failure::asked)?;
            let label = asked.label.get(place).cloned().unwrap_or_else(|| {
                let version = if http == Http::Three { "HTTP/3" } else { "HTTP/1.1" };
                format!("{target} ({version})")
            });
            items.push(Item { target, label, options });
        }
        if asked.reports.is_some() && items.iter().all(|item| item.options.reports.is_none()) {
            return Err(Failure::asked(
                "--reports needs HTTP/3: over TCP the kernel reports, see `ranpace kernel load`",
            ));
        }
        let radio = asked.radio.map(|from| radio::Radio::open(&from, asked.user, meters)).transpose()?;
        Ok(Self { items, repeat: asked.repeat, parallel: asked.parallel, radio })
    }

    /// Downloads it all, or until Ctrl-C.
    pub fn run(self) -> Result<Done, Failure> {
        interrupt::flag();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::ours)?;
        let _listening = self.radio.map(radio::Radio::listen);
        let count = self.items.len() as u64 * u64::from(self.repeat) * u64::from(self.parallel);
        let (progress, received) = (Progress::new(count, "downloads"), Arc::new(AtomicU64::new(0)));
        let mut done = Done {
            all: self
                .items
                .iter()
                .map(|item| Downloads::none(item.label.clone(), item.target.to_string()))
                .collect(),
            interrupted: false,
        };
        let items: Vec<Arc<Item>> = self.items.into_iter().map(Arc::new).collect();
        runtime.block_on(async {
            for _ in 0..self.repeat {
                for (item, downloads) in items.iter().zip(&mut done.all) {
                    let mut running = JoinSet::new();
                    for _ in 0..self.parallel {
                        let (item, received) = (item.clone(), received.clone());
                        running.spawn(async move {
                            let count = |bytes| {
                                received.fetch_add(bytes, Ordering::Relaxed);
                            };
                            fetch(&item.target, &item.options, &count).await
                        });
                    }
                    if !collect(&mut running, downloads, &progress, &received).await {
                        done.interrupted = true;
                        return;
                    }
                }
            }
        });
        // Connections that Ctrl-C has ended are not waited for.
        runtime.shutdown_background();
        drop(progress);
        for downloads in &done.all {
            for (count, why) in counted(&downloads.failed) {
                let times = if count == 1 { String::new() } else { format!(" ({count} times)") };
                output::say(&format!("{}: {why}{times}", downloads.label));
            }
        }
        Ok(done)
    }
}

/// Waits for downloads that run at the same time; returns false if Ctrl-C has ended them.
async fn collect(
    running: &mut JoinSet<Result<Measured, ranpace_fetch::FetchError>>,
    downloads: &mut Downloads,
    progress: &Progress,
    received: &AtomicU64,
) -> bool {
    let mut tick = interval(TICK);
    loop {
        tokio::select! {
            ended = running.join_next() => {
                match ended {
                    None => return true,
                    Some(Ok(Ok(measured))) => downloads.whole.push(measured),
                    Some(Ok(Err(error))) => downloads.failed.push(error.to_string()),
                    Some(Err(error)) => downloads.failed.push(error.to_string()),
                }
                progress.advance(1);
            }
            _ = tick.tick() => {
                if interrupt::is_set() {
                    running.abort_all();
                    return false;
                }
                let bytes = ranpace_units::Bytes::new(received.load(Ordering::Relaxed));
                progress.advance(0);
                progress.note(format!("{bytes} of {}", downloads.label));
            }
        }
    }
}

/// Each text with the number of times that it occurs, in the order of its first one.
fn counted(texts: &[String]) -> Vec<(usize, &str)> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for text in texts {
        match found.iter_mut().find(|(_, known)| known == text) {
            Some((count, _)) => *count += 1,
            None => found.push((1, text)),
        }
    }
    found
}

impl Downloads {
    fn none(label: String, url: String) -> Self {
        Self { label, url, whole: Vec::new(), failed: Vec::new() }
    }
}

impl Done {
    /// How the command ends.
    pub fn outcome(&self) -> Result<(), Failure> {
        let failed: usize = self.all.iter().map(|downloads| downloads.failed.len()).sum();
        let whole: usize = self.all.iter().map(|downloads| downloads.whole.len()).sum();
        if self.interrupted {
            return Err(Failure::Interrupted(format!(
                "stopped after {whole} whole downloads; the figures are of these"
            )));
        }
        if failed > 0 {
            return Err(Failure::ours(format!("{failed} of {} downloads failed", failed + whole)));
        }
        Ok(())
    }
}
