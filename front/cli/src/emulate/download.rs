//! A QUIC download of a scenario by programs in place of the emulator's own endpoints: `ranpace serve` at its sender, `ranpace fetch` at its
//! receiver, and the RNIS server that tells the sender of the cells, if its control reads radio information.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ranpace_emulator::addresses::v4;
use ranpace_emulator::{Daemon, Outcome, Plan, Program, Ready, Topology, Workloads, own_folder};
use ranpace_quic::{Config, Opener};
use ranpace_scenario::{FlowSpec, Scenario, Transport, Workload};
use ranpace_sim::Transfer;
use ranpace_units::{Bytes, Rate, Span, Time};
use serde_json::Value;

use super::real::{RNIS, feed_period, rnis_file};
use crate::failure::Failure;

/// Interval of the samples of the server's control: that at which the emulator reads them.
const SAMPLES: Span = Span::from_millis(10);

/// The programs of a download, and the folder of what they write. It stays, to look at.
#[derive(Debug)]
pub struct Download {
    folder: PathBuf,
    size: Bytes,
    daemons: Vec<Daemon>,
    fetch: Program,
    files: Vec<(String, String)>,
    cells: Option<PathBuf>,
}

impl Download {
    /// The programs of a scenario's only flow; `None` if that is no QUIC flow. They write to `folder`, in place of what is there.
    pub fn of(scenario: &Scenario, topology: &Topology, folder: &Path) -> Result<Option<Self>, Failure> {
        let [flow] = &scenario.flows[..] else { return Ok(None) };
        let Transport::Quic { algorithm, config } = &flow.transport else { return Ok(None) };
        if cfg!(not(all(feature = "serve", feature = "fetch"))) {
            return Err(Failure::asked(
                "this ranpace was built without `ranpace serve` and `ranpace fetch`; `make install` builds it whole",
            ));
        }
        let size = size_of(flow, config)?;
        refuse_settings(scenario, flow, config, algorithm.ack_every())?;
        let place = |host: usize| {
            let place = topology.hosts.iter().position(|known| *known == host);
            place.ok_or_else(|| Failure::ours(format!("host {host} has no namespace")))
        };
        let address = SocketAddr::from((v4(place(flow.from)?), Topology::port(0)));
        let files = folder.join("files");
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(Failure::ours)?;
        }
        fs::create_dir_all(&files).map_err(Failure::ours)?;
        let exe = std::env::current_exe().map_err(Failure::ours)?.into_os_string();
        let host = |host: usize| scenario.hosts[host].clone();
        let program = |at: usize, words: Vec<OsString>| Program {
            host: host(at),
            words: std::iter::once(exe.clone()).chain(words).collect(),
        };
        let log = |name: &str| folder.join(name);
        let word = |text: &str| OsString::from(text);
        let mut all = Self {
            size,
            daemons: Vec::new(),
            fetch: program(
                flow.to,
                vec![
                    word("fetch"),
                    format!("https://{address}/bytes/{}", size.get()).into(),
                    word("--insecure"),
                    word("--window"),
                    format!("{}B", config.max_data.min(config.max_stream_data).get()).into(),
                    word("--out"),
                    folder.into(),
                ],
            ),
            files: Vec::new(),
            cells: None,
            folder: folder.to_owned(),
        };
        let mut serve = vec![
            word("serve"),
            files.into(),
            word("--listen"),
            address.to_string().into(),
            word("--bytes"),
            format!("{}B", size.get()).into(),
            word("--cc"),
            algorithm.as_str().into(),
            word("--packet"),
            format!("{}B", config.payload().get()).into(),
            // As the simulated endpoint, which sends each packet at the time that the control's pace has for it.
            word("--no-gso"),
            word("--samples"),
            all.samples().into(),
            word("--samples-period"),
            SAMPLES.to_string().into(),
            // When the download has ended, nothing is waited for.
            word("--grace"),
            word("0s"),
        ];
        if algorithm.build(0).wants_radio() && !scenario.cells.is_empty() {
            let cells = own_folder().join("cells.sock");
            all.files.push(("rnis.toml".to_owned(), rnis_file(&cells)));
            all.cells = Some(cells);
            let period = feed_period(scenario)?;
            serve.extend([
                word("--feed"),
                format!("rnis:http://{}", SocketAddr::from(RNIS)).into(),
                word("--feed-period"),
                period.to_string().into(),
            ]);
            all.daemons.push(Daemon {
                name: "the RNIS server".to_owned(),
                program: program(
                    flow.from,
                    vec![word("rnis"), word("serve"), own_folder().join("rnis.toml").into()],
                ),
                ready: Ready::Port(RNIS.into()),
                from: Time::ZERO,
                until: scenario.rnis.stop.map(|stop| (stop, scenario.rnis.resume)),
                log: log("rnis.log"),
            });
        }
        all.daemons.push(Daemon {
            name: "`ranpace serve`".to_owned(),
            program: program(flow.from, serve),
            ready: Ready::Port(address),
            from: Time::ZERO,
            until: None,
            log: log("serve.log"),
        });
        Ok(Some(all))
    }

    fn samples(&self) -> PathBuf {
        self.folder.join("samples")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("fetch.log")
    }

    /// Adds the programs to a plan, which ends with the download.
    pub fn add_to(&self, plan: &mut Plan) {
        plan.files.extend(self.files.clone());
        plan.daemons.extend(self.daemons.clone());
        plan.main = Some(self.fetch.clone());
        plan.views.output = Some(self.log());
        plan.views.rnis.clone_from(&self.cells);
        let workloads = plan.workloads.get_or_insert_with(Workloads::default);
        workloads.followed.insert(0, self.samples());
    }

    /// Adds what `ranpace fetch` has measured to the flow.
    ///
    /// # Errors
    ///
    /// If it has failed.
    pub fn finish(&self, outcome: &mut Outcome) -> Result<(), Failure> {
        let said = || tail(&self.log());
        let completion = match outcome.code {
            Some(0) => Some(self.completion().map_err(|why| Failure::ours(format!("{why}; {}", said())))?),
            // The time was over.
            None => None,
            Some(code) => {
                return Err(Failure::ours(format!("`ranpace fetch` ended with status {code}: {}", said())));
            }
        };
        let Some(flow) = outcome.result.flows.first_mut() else { return Ok(()) };
        if completion.is_some() {
            flow.delivered = self.size;
            flow.goodput =
                if flow.measured.is_zero() { Rate::ZERO } else { Rate::of(self.size, flow.measured) };
        }
        flow.transfers = vec![Transfer {
            start: flow.totals.first_sent.unwrap_or_default(),
            size: self.size,
            completion,
            handed_over: None,
        }];
        Ok(())
    }

    /// Time from the first packet of the handshake to the last byte, from the figures of `ranpace fetch`.
    fn completion(&self) -> Result<Span, String> {
        let path = self.folder.join("fetch/fetch.json");
        let read = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| read(&error))?;
        let figures: Value = serde_json::from_str(&text).map_err(|error| read(&error))?;
        let completion = figures.pointer("/0/each/0/completion_s").and_then(Value::as_f64);
        completion.map(Span::from_secs_f64).ok_or_else(|| read(&"there is no completion_s"))
    }
}

/// The size of a download that programs can play.
fn size_of(flow: &FlowSpec, config: &Config) -> Result<Bytes, Failure> {
    let wrong = |key: &str, expected: &str| {
        let name = &flow.name;
        Err(Failure::asked(format!("{key} of the flow {name:?}: `ranpace fetch` plays only {expected}")))
    };
    let Workload::Fixed { size } = flow.workload else { return wrong("workload", "kind = \"fixed\"") };
    if config.opener != Opener::Receiver {
        return wrong("opener", "\"receiver\": it asks for a file");
    }
    if flow.start != Time::ZERO || flow.stop.is_some() {
        return wrong("start or stop", "downloads from the beginning to their end");
    }
    Ok(size)
}

/// Refuses settings that the programs do not have.
fn refuse_settings(
    scenario: &Scenario,
    flow: &FlowSpec,
    config: &Config,
    ack_every: Option<u32>,
) -> Result<(), Failure> {
    let default = Config::default();
    let settings = [
        ("initial_window", config.initial_window == default.initial_window),
        // The control's own wish is not written.
        ("ack_every", config.ack_every == ack_every),
        ("ack_delay", config.ack_delay == default.ack_delay),
        ("ecn", config.ecn == default.ecn),
        ("pacing", config.pacing == default.pacing),
        ("certificates", config.certificates == default.certificates),
    ];
    if let Some((key, _)) = settings.iter().find(|(_, is_default)| !is_default) {
        return Err(Failure::asked(format!(
            "{key} of the flow {:?}: `ranpace serve` and `ranpace fetch` have no such setting; leave it out",
            flow.name
        )));
    }
    if !scenario.warmup.is_zero() {
        return Err(Failure::asked(format!(
            "warmup = \"{}\": `ranpace fetch` measures the whole download; leave it out",
            scenario.warmup
        )));
    }
    Ok(())
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use ranpace_lab::{Job, TraceLibrary};

    use super::*;

    const FILE: &str = r#"
duration = "9s"
[[link]]
from = "server"
to = "phone"
rate = "20Mbit/s"
delay = "20ms"
duplex = true
[[flow]]
name = "file"
from = "server"
to = "phone"
transport = "quic"
cc = "cubic"
opener = "receiver"
workload = { kind = "fixed", size = "1MB" }
"#;

    #[test]
    fn settings_that_the_programs_do_not_have_are_refused() {
        let refused = |text: &str| {
            let job = Job::new("", text.to_owned(), "t", &mut TraceLibrary::new(Vec::new())).unwrap();
            let scenario = job.scenario;
            let Transport::Quic { algorithm, config } = &scenario.flows[0].transport else {
                panic!("{text}")
            };
            refuse_settings(&scenario, &scenario.flows[0], config, algorithm.ack_every())
                .err()
                .map(|failure| format!("{failure:?}"))
        };
        assert_eq!(refused(FILE), None);
        assert_eq!(
            refused(&FILE.replace("cubic", "vivace")),
            None,
            "the control wants other acknowledgements"
        );
        for line in [
            "initial_window = 20",
            "ack_every = 7",
            "ack_delay = \"9ms\"",
            "ecn = true",
            "pacing = false",
            "certificates = \"3KB\"",
        ] {
            let key = line.split(' ').next().unwrap();
            let why = refused(&FILE.replace("opener", &format!("{line}\nopener"))).unwrap();
            assert!(why.contains(key), "{line}: {why}");
        }
        let why = refused(&format!("warmup = \"1s\"\n{FILE}")).unwrap();
        assert!(why.contains("warmup"), "{why}");
    }
}
