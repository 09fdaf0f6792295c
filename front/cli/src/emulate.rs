//! `ranpace emulate`: a scenario by the real clock, for real programs.

pub mod download;
mod live;
pub mod real;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use ranpace_emulator::{
    Captured, Delivery, EmulationError, EmulationSummary, NamespaceError, Outcome, Plan, Program, Topology,
    Views, Workloads,
};
use ranpace_lab::{Job, RunSummary, Store, flow_rows, peps, proxies, radio, read_run, run_report, table};
use ranpace_scenario::Scenario;
use ranpace_sim::RunResult;
use ranpace_units::{Span, Time};
use serde::Serialize;

use crate::failure::Failure;
use crate::{common, interrupt, output, screen};

/// Exit status of a run in which the machine could not keep up.
pub const INVALID: u8 = 99;

/// Snapshots that wait to be drawn; if there are more, they are left out.
const SNAPSHOTS: usize = 2;

/// Put programs and the kernel's TCP behind the links and cells of a scenario, in real time
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace emulate drive.toml                  the scenario's own flows, over the kernel's TCP and UDP\n  \
    ranpace emulate drive.toml --cc bbr\n  \
    ranpace emulate drive.toml -- curl http://10.77.0.1:8000/        a program at the host where the first flow ends\n  \
    ranpace emulate drive.toml --also server='iperf3 -s' -- iperf3 -c server\n  \
    ranpace emulate cell.toml --in walker.2 -- ./my-program\n  \
    ranpace emulate cell.toml --shell phone\n  \
    ranpace emulate drive.toml --hosts-only --for 10min      enter them by `ip netns exec`\n  \
    ranpace emulate cell.toml --real-proxy      `ranpace proxy` and `ranpace pep` in place of modelled ones\n  \
    ranpace emulate cell.toml --real-proxy --against results/plain.emulated/1      both in one report\n  \
    ranpace emulate --clean                     remove what killed emulations left\n\n\
    Needs root, or a kernel that allows unprivileged user namespaces. Results are those of\n\
    `ranpace run`, in a new folder each time; emulation.json says whether the machine kept up.\n\
    Exit status: the program's, 99 if the machine did not keep up, or 130 after Ctrl-C.\n\
    docs/emulate.md describes it.")]
pub struct Emulate {
    /// Scenario file
    #[arg(value_name = "SCENARIO", required_unless_present = "clean")]
    scenario: Option<PathBuf>,
    /// Program to run, and its arguments; the emulation ends with it
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "shell")]
    program: Vec<OsString>,
    /// Run the program behind this host [default: the first user; without cells, where the first flow ends]
    #[arg(long = "in", value_name = "HOST", requires = "program")]
    host: Option<String>,
    /// Open a shell behind this host
    #[arg(long, value_name = "HOST")]
    shell: Option<String>,
    /// Also run this shell command behind a host, as long as the emulation lasts; can be repeated
    #[arg(long, value_name = "HOST=COMMAND", value_parser = beside)]
    also: Vec<(String, String)>,
    /// End the emulation after this time at the latest, such as "30s" [default: without a program, the scenario's duration]
    #[arg(long = "for", value_name = "TIME")]
    limit: Option<Span>,
    /// Generic receive offload: hand packets of one connection that are due together over in one GSO packet, as a modem with
    /// receive offload does. This costs less, and receivers send fewer acknowledgements
    #[arg(long, conflicts_with = "no_gso")]
    gro: bool,
    /// No segmentation offload: write each packet to its host's kernel by itself. This costs more, but sets nothing up at the
    /// ingress of the host's device [default: packets of one connection that are due together cross in one GSO packet, which
    /// the host's kernel segments]
    #[arg(long)]
    no_gso: bool,
    /// The former name of --gro
    #[arg(long, hide = true, conflicts_with_all = ["no_gso", "one_by_one"])]
    coalesce: bool,
    /// The former name of --no-gso
    #[arg(long, hide = true, conflicts_with = "gro")]
    one_by_one: bool,
    /// Let idle processors sleep: saves electricity, but the machine reacts later to packets and timers, on some machines by
    /// 0.1 ms and more [default: processors stay awake, where that is allowed]
    #[arg(long)]
    save_power: bool,
    /// Only create the namespaces: run no program, and play no flows of the scenario
    #[arg(long, conflicts_with_all = ["program", "shell", "workloads"])]
    hosts_only: bool,
    /// Play the flows of the scenario beside the program
    #[arg(long)]
    workloads: bool,
    /// Congestion control of the kernel for all TCP flows of the scenario, such as "bbr" [default: as the scenario says]
    #[arg(long, value_name = "NAME", conflicts_with = "hosts_only")]
    cc: Option<String>,
    /// Write every packet to this file (pcapng), with an interface for each host: what it sends is outbound, what it receives
    /// inbound
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write the radio information of the edge's RNIS and of users' modems to this file or named pipe as it arrives: a line of
    /// JSON for each hint
    #[arg(long, value_name = "FILE")]
    hints: Option<PathBuf>,
    /// Publish the cells while they are played, for `ranpace rnis serve` and other readers: users, grants and queues of every slot,
    /// handovers and signals as lines of JSON on a Unix socket, such as unix:/run/cell.sock
    #[arg(long, value_name = "unix:PATH", value_parser = socket)]
    rnis: Option<PathBuf>,
    /// Run the scenario's proxies and PEPs as daemons (`ranpace proxy`, `ranpace pep`), configured by the scenario's keys, on hosts
    /// whose kernels forward packets. Flows may have the controls of `ranpace kernel`
    #[arg(long)]
    real_proxy: bool,
    /// Results of an earlier emulation, the folder that it named: the table and the report show them beside this one's; can be repeated
    #[arg(long, value_name = "FOLDER")]
    against: Vec<PathBuf>,
    /// Draw rate, delay and queue of each link in the terminal; the output of programs goes to programs.log beside the report
    #[arg(long, conflicts_with = "shell")]
    live: bool,
    /// Seed to play with instead of the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print the summary as one JSON document, after the program's output
    #[arg(long)]
    json: bool,
    /// Remove the namespaces of emulations that were killed, and do nothing else
    #[arg(long, conflicts_with_all = ["scenario", "program", "shell", "also"])]
    clean: bool,
    #[command(flatten)]
    common: common::Common,
}

fn beside(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(host, command)| !host.is_empty() && !command.is_empty());
    let (host, command) = parts.ok_or("expected HOST=COMMAND, such as server='iperf3 -s'")?;
    Ok((host.to_owned(), command.to_owned()))
}

fn socket(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix:").filter(|path| !path.is_empty());
    path.map(PathBuf::from).ok_or_else(|| "expected unix:PATH, such as unix:/run/cell.sock".to_owned())
}

impl Emulate {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        if self.clean {
            let removed = ranpace_emulator::clean().map_err(failure)?;
            removed.iter().for_each(|name| common::say(&format!("removed: {name}")));
            if removed.is_empty() {
                common::say("nothing was left");
            }
            return Ok(());
        }
        let mut signals = if self.live { Some(live::check()?) } else { None };
        let path = self.scenario.clone().unwrap_or_default();
        let file = path.display().to_string();
        let mut text = common::read_text(&path)?;
        if let Some(seed) = self.seed {
            text = ranpace_scenario::vary(&text, "seed", &seed.to_string())?;
        }
        let mut job = Job::new("", text, &file, &mut self.common.traces())?;
        job.label.clone_from(&job.scenario.name);
        let of = if self.real_proxy { Topology::with_routers } else { Topology::new };
        let topology = of(&job.scenario).map_err(Failure::asked)?;
        let daemons = self
            .real_proxy
            .then(|| real::Daemons::of(&job.scenario, &topology, self.rnis.as_deref()))
            .transpose()?;
        if self.rnis.is_some() && job.scenario.cells.is_empty() {
            return Err(Failure::asked("--rnis publishes cells, and the scenario has none: add a [[cell]]"));
        }
        let earlier = self.earlier()?;
        let mut plan = self.plan(&job.scenario)?;
        // With daemons, controls are loaded before that is known.
        let workloads = plan.workloads.as_ref().filter(|_| daemons.is_none());
        let notes = workloads.map_or(Ok(Vec::new()), |workloads| workloads.check(&topology));
        let notes = notes.map_err(Failure::asked)?;
        // Before there is a second thread.
        ranpace_emulator::become_root().map_err(failure)?;
        ranpace_emulator::check().map_err(failure)?;
        // Each measurement is kept: none is the same as another.
        let all = self.common.store(&common::folder_name(&format!("{}.emulated", job.scenario.name)))?;
        let store = all.next()?;
        let stop = interrupt::flag();
        topology.notes.iter().chain(&notes).for_each(|note| common::say(&format!("note: {note}")));
        let has_program = plan.main.is_some();
        let mut from = None;
        let log = store.folder().join("programs.log");
        if self.live {
            store.write("programs.log", b"")?;
            let (to, snapshots) = sync_channel(SNAPSHOTS);
            (plan.views.live, plan.views.output, from) = (Some(to), Some(log.clone()), Some(snapshots));
        }
        let mut drawing = None;
        let mut ready = |names: &[String]| {
            let hints = names.iter().map(|name| format!("namespace: {name}"));
            if let Some(from) = from.take() {
                let links = ranpace_sim::link_names(&topology.scenario);
                let screen =
                    live::Screen::new(job.scenario.name.clone(), links, hints.collect(), log.clone());
                drawing = Some(screen::start(screen, from, signals.take()));
            } else if !has_program {
                hints.for_each(|hint| common::say(&hint));
            }
        };
        let outcome = match daemons {
            None => ranpace_emulator::emulate(&topology, &plan, stop, ready).map_err(emulation_failure),
            Some(daemons) => {
                for (name, text) in daemons.files() {
                    store.write(name, text.as_bytes())?;
                }
                let mut ready = |names: &[String], notes: &[String]| {
                    notes.iter().for_each(|note| common::say(&format!("note: {note}")));
                    ready(names);
                };
                daemons.emulate(&job.scenario, &topology, &mut plan, store.folder(), stop, &mut ready)
            }
        };
        // It ends when nobody can tell it anything any more.
        drop(plan);
        if let Some(Ok(Err(error))) = drawing.map(|drawing| drawing.join()) {
            common::say(&format!("note: --live could not draw: {error}"));
        }
        let outcome = outcome.inspect_err(|_| store.remove_if_empty());
        self.tell(&job, &store, &earlier, outcome?)
    }

    /// The earlier emulations to compare with, by the ends of their folders' names: `plain.emulated/1`.
    fn earlier(&self) -> Result<Vec<(String, RunResult)>, Failure> {
        let read = |folder: &PathBuf| {
            let run = read_run(folder)?.ok_or_else(|| {
                let folder = folder.display();
                Failure::asked(format!(
                    "{folder} has no results of this version: expected the folder that an emulation named, such as results/drive.emulated/1"
                ))
            })?;
            let parts: Vec<_> = folder.iter().map(|part| part.to_string_lossy()).collect();
            Ok((parts[parts.len().saturating_sub(2)..].join("/"), run))
        };
        self.against.iter().map(read).collect()
    }

    /// The programs to start, and when the emulation ends.
    fn plan(&self, scenario: &Scenario) -> Result<Plan, Failure> {
        let main = match (&self.shell, self.program.is_empty()) {
            (Some(host), _) => {
                let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
                Some(Program { host: host.clone(), words: vec![shell] })
            }
            (None, false) => {
                let first = || Topology::first_user(scenario).map(str::to_owned);
                let host = self.host.clone().or_else(first).unwrap_or_default();
                Some(Program { host, words: self.program.clone() })
            }
            (None, true) => None,
        };
        let beside = self.also.iter().map(|(host, command)| Program {
            host: host.clone(),
            words: ["/bin/sh", "-c", command].map(OsString::from).to_vec(),
        });
        let limit = self.limit.or_else(|| main.is_none().then_some(scenario.duration));
        let exe = std::env::current_exe().map_err(Failure::ours)?;
        let inside = (exe, vec!["emulate-inside".into()]);
        let plays = self.workloads || self.cc.is_some() || main.is_none() && !self.hosts_only;
        let workloads = plays.then(|| Workloads { cc: self.cc.clone(), ..Workloads::default() });
        let views = Views {
            capture: self.pcap.clone(),
            hints: self.hints.clone(),
            rnis: self.rnis.clone(),
            ..Views::default()
        };
        for (is_old, old, new) in
            [(self.coalesce, "--coalesce", "--gro"), (self.one_by_one, "--one-by-one", "--no-gso")]
        {
            if is_old {
                common::say(&format!(
                    "note: {old} is called {new} now; the old name will go with the next release"
                ));
            }
        }
        let delivery = match (self.gro || self.coalesce, self.no_gso || self.one_by_one) {
            (true, _) => Delivery::Gro,
            (_, true) => Delivery::Single,
            _ => Delivery::Gso,
        };
        let (beside, saves_power) = (beside.collect(), self.save_power);
        Ok(Plan { main, beside, limit, workloads, delivery, saves_power, views, inside, ..Plan::default() })
    }

    /// Writes the results and says how it was.
    fn tell(
        &self,
        job: &Job,
        store: &Store,
        earlier: &[(String, RunResult)],
        outcome: Outcome,
    ) -> Result<(), Failure> {
        let Outcome { result, timeliness, code, interrupted, captured, notes } = outcome;
        notes.iter().for_each(|note| common::say(&format!("note: {note}")));
        // Not to be taken for what was played in virtual time.
        let mut origin = job.origin();
        origin.version += " emulated";
        let folder = store.save_here(&origin, &result)?;
        // Runs have labels where there are several.
        let label = if earlier.is_empty() { "" } else { job.scenario.name.as_str() };
        let runs: Vec<(&str, &RunResult)> =
            earlier.iter().map(|(label, run)| (label.as_str(), run)).chain([(label, &result)]).collect();
        let labelled = |(label, run): &(&str, &RunResult)| {
            let mut rows = flow_rows(run);
            if !label.is_empty() {
                rows.iter_mut().for_each(|row| row.cc = format!("{label}: {}", row.cc));
            }
            rows
        };
        let rows: Vec<_> = runs.iter().flat_map(labelled).collect();
        let title = format!("{}, in real time", job.scenario.name);
        let invalid = timeliness.invalid().into_iter().collect();
        let mut report = run_report(title, common::command_line(), &job.origin(), &result, &rows, invalid);
        for group in &mut report.groups {
            let before = earlier.iter().map(|(label, run)| (label.clone(), vec![run]));
            group.runs.splice(0..0, before);
        }
        let emulation = EmulationSummary::of(&timeliness, code);
        let json = serde_json::to_string_pretty(&emulation).map_err(Failure::ours)?;
        store.write("emulation.json", json.as_bytes())?;
        let page = store.write("report.html", report.html().map_err(Failure::ours)?.as_bytes())?;
        interrupt::kept();
        if self.json {
            #[derive(Serialize)]
            struct Both {
                summary: RunSummary,
                emulation: EmulationSummary,
            }
            output::json(&Both { summary: RunSummary::of(&origin, &result), emulation })?;
        } else if !rows.is_empty() {
            common::say(&table::comparison(&rows).to_string());
            let tables = [proxies::tables(&runs), peps::tables(&runs), radio::tables(&runs)];
            tables.iter().flatten().for_each(|tables| common::say(tables));
        }
        common::say(&format!("machine: {}", timeliness.line()));
        common::say(&format!("results: {}", folder.display()));
        common::say(&format!("report: {}", page.display()));
        let mut not_captured = None;
        match captured.zip(self.pcap.as_ref()) {
            Some((Ok(captured), path)) => common::say(&capture_line(captured, path)),
            Some((Err(error), _)) => not_captured = Some(error.to_string()),
            None => {}
        }
        verdict(interrupted.then_some(result.end), timeliness.invalid(), not_captured, code)
    }
}

/// Decides how the command ends: stopped by Ctrl-C at a time, with a run that does not count, without the capture that was asked
/// for, or with the exit code of its program.
fn verdict(
    stopped: Option<Time>,
    invalid: Option<String>,
    not_captured: Option<String>,
    code: Option<i32>,
) -> Result<(), Failure> {
    let invalid = invalid.map(|why| format!("invalid, the machine could not keep up: {why}"));
    let also = not_captured.as_ref().map_or(String::new(), |error| format!("; and {error}"));
    match (stopped, invalid, not_captured, code) {
        (Some(at), Some(why), ..) => {
            let text = format!("stopped after {at}; what was measured until then is {why}{also}");
            Err(Failure::Interrupted(text))
        }
        (Some(at), ..) => Err(Failure::Interrupted(format!("stopped after {at}{also}"))),
        (None, Some(why), ..) => Err(Failure::Status(INVALID, Some(why + &also))),
        (None, None, Some(error), _) => Err(Failure::Ours(error)),
        // A status is of eight bits.
        (None, None, None, Some(code)) if code != 0 => {
            Err(Failure::Status(u8::try_from(code).unwrap_or(1), None))
        }
        (None, None, None, _) => Ok(()),
    }
}

/// A line about a capture: its file and the number of packets.
fn capture_line(Captured { packets, left_out }: Captured, path: &Path) -> String {
    let mut line = format!("capture: {} ({packets} packets)", path.display());
    if left_out > 0 {
        line += &format!(", without {left_out} that could not be written in time");
    }
    line
}

fn failure(error: NamespaceError) -> Failure {
    Failure::ours(error)
}

fn emulation_failure(error: EmulationError) -> Failure {
    if error.is_asked() { Failure::asked(error) } else { Failure::ours(error) }
}

/// The first process of a program's namespace; `ranpace emulate` calls it
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Inside {
    /// The network namespace
    netns: PathBuf,
    /// Ends with this
    leash: PathBuf,
    /// Names of the hosts
    hosts: PathBuf,
    /// Program and arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<OsString>,
}

impl Inside {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let code = ranpace_emulator::enter(&self.netns, &self.leash, &self.hosts, &self.words);
        match code.map_err(Failure::ours)? {
            0 => Ok(()),
            code => Err(Failure::Status(u8::try_from(code).unwrap_or(1), None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_status_prefers_ctrl_c_then_measurement_errors_then_the_program() {
        let (at, late) = (Time::from_millis(1_500), || Some("10 of 20 packets were late".to_owned()));
        let ended_without = |capture: Option<&str>, stopped, invalid, code| match verdict(
            stopped,
            invalid,
            capture.map(str::to_owned),
            code,
        ) {
            Ok(()) => (0, String::new()),
            Err(Failure::Ours(text)) => (1, text),
            Err(Failure::Interrupted(text)) => (130, text),
            Err(Failure::Status(code, text)) => (code, text.unwrap_or_default()),
            Err(failure) => panic!("{failure:?}"),
        };
        let ended = |stopped, invalid, code| ended_without(None, stopped, invalid, code);
        // A capture that failed is told of, and hides neither.
        let full = Some("a.pcap: no space is left");
        for (stopped, invalid, code, expected) in [
            (Some(at), late(), Some(3), 130),
            (Some(at), None, None, 130),
            (None, late(), Some(3), INVALID),
            (None, None, Some(3), 1),
            (None, None, Some(0), 1),
        ] {
            let (status, text) = ended_without(full, stopped, invalid, code);
            assert_eq!(status, expected, "{text}");
            assert!(text.contains("no space is left"), "{text}");
        }
        let (status, text) = ended(Some(at), late(), Some(3));
        assert_eq!(status, 130);
        assert!(text.contains("1.5s") && text.contains("10 of 20 packets were late"), "{text}");
        assert_eq!(ended(Some(at), None, None).0, 130);
        assert_eq!(ended(None, late(), Some(3)).0, INVALID);
        assert_eq!(ended(None, None, Some(3)).0, 3);
        assert_eq!(ended(None, None, None).0, 0);
    }
}
