//! `ranpace kernel check`, `load`, `list`, `set` and `unload`.

use std::fmt;
use std::path::PathBuf;

use ranpace_kernel::{Control, Loaded, Prefix};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// Say what this kernel offers, what is missing, and which commands need it
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  ranpace kernel check\n  ranpace kernel check --json")]
pub struct Check {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command; it fails if something is missing.
    pub fn run(self) -> Result<(), Failure> {
        let findings = ranpace_kernel::check();
        if self.json {
            let list: Vec<_> = findings
                .iter()
                .map(|finding| {
                    serde_json::json!({ "what": finding.what, "since": finding.since, "needed_for": finding.needed_for,
                        "missing": finding.missing })
                })
                .collect();
            output::json(&list)?;
        } else {
            let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
            for finding in &findings {
                let state =
                    finding.missing.as_ref().map_or_else(|| "yes".to_owned(), |why| format!("no: {why}"));
                output::line(format!(
                    "{:width$}  Linux {:5} for {:20} {state}",
                    finding.what, finding.since, finding.needed_for
                ))?;
            }
        }
        match findings.iter().filter(|finding| finding.missing.is_some()).count() {
            0 => Ok(()),
            missing => Err(Failure::Status(1, Some(format!("{missing} of {} are missing", findings.len())))),
        }
    }
}

/// Load a control, so that it stays after this command has ended
///
/// Programs choose it by the socket option TCP_CONGESTION (iperf3 -C NAME), all programs of a network namespace by
/// sysctl net.ipv4.tcp_congestion_control=NAME, and those of a control group by --cgroup.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace kernel load c2tcp:target=50ms\n  \
    ranpace kernel load c2tcp:target=100ms --name c2tcp100\n  \
    ranpace kernel load c2tcp:target=50ms --cgroup /sys/fs/cgroup/system.slice/nginx.service --to 192.0.2.0/24")]
pub struct Load {
    /// The control, as in a scenario; `ranpace kernel check` names those of the kernel
    control: String,
    /// Name under which the kernel lists it (default: the control's own)
    #[arg(long)]
    name: Option<String>,
    /// Control group whose sockets take it without knowing
    #[arg(long, value_name = "PATH")]
    cgroup: Vec<PathBuf>,
    /// With --cgroup: only connections to and from these addresses
    #[arg(long, value_name = "PREFIX", requires = "cgroup")]
    to: Option<String>,
}

impl Load {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let control = Control::parse(&self.control)?;
        let to = prefix(self.to.as_deref())?;
        let name = self.name.unwrap_or_else(|| control.default_name());
        let mut loaded = Loaded::new(&control, &name)?;
        loaded.pin()?;
        for cgroup in &self.cgroup {
            if let Err(error) = loaded.pin_to(cgroup, to) {
                ranpace_kernel::unload(&name)?;
                return Err(error.into());
            }
        }
        output::line(format!(
            "{name}: {} is loaded; `ranpace kernel unload {name}` removes it",
            control.as_str()
        ))
    }
}

/// List the controls of `load` and `exec`, and the control groups whose sockets take them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  ranpace kernel list\n  ranpace kernel list --json")]
pub struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let listed = listed()?;
        if self.json {
            return output::json(&listed);
        }
        if listed.is_empty() {
            return output::line("no control is loaded; `ranpace kernel load` loads one");
        }
        let width = listed.iter().map(|control| control.name.len()).max().unwrap_or(0);
        for control in &listed {
            let text = control.control.as_deref().unwrap_or("(loaded by another version of ranpace)");
            let groups: Vec<String> = control.cgroups.iter().map(Group::to_string).collect();
            let groups =
                if groups.is_empty() { String::new() } else { format!("  for {}", groups.join(", ")) };
            let by = match control.by {
                By::Load => "",
                By::Exec => "  by exec",
                By::Removed => "  removed; connections are left",
            };
            output::line(format!("{:width$}  {text}{by}{groups}", control.name))?;
        }
        Ok(())
    }
}

/// A control in the kernel.
#[derive(Serialize)]
struct Listed {
    name: String,
    /// Its text form; `None` if another version of ranpace loaded it.
    control: Option<String>,
    by: By,
    cgroups: Vec<Group>,
}

/// What has loaded it.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Load,
    Exec,
    /// It was one of these, and connections use it still.
    Removed,
}

/// A control group whose sockets take the control.
#[derive(Serialize)]
struct Group {
    path: PathBuf,
    /// The names of its processes, each once.
    programs: Vec<String>,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.programs.is_empty() { Ok(()) } else { write!(f, " ({})", self.programs.join(", ")) }
    }
}

fn listed() -> Result<Vec<Listed>, Failure> {
    let groups = |numbers: &[u64]| {
        let found = ranpace_kernel::cgroup_folders(numbers).into_iter();
        found.map(|(path, programs)| Group { path, programs }).collect()
    };
    let pinned = ranpace_kernel::list()?.into_iter().map(|pinned| Listed {
        cgroups: groups(&pinned.cgroups),
        name: pinned.name,
        control: pinned.text,
        by: By::Load,
    });
    let running = ranpace_kernel::running()?.into_iter().map(|running| Listed {
        cgroups: groups(&running.cgroups),
        name: running.name,
        control: running.text,
        by: if running.registered { By::Exec } else { By::Removed },
    });
    Ok(pinned.chain(running).collect())
}

/// Change options of a loaded control, for the connections that use it too
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ranpace kernel set c2tcp target=80ms\n  ranpace kernel set c2tcp target=80ms:tuner=off"
)]
pub struct Set {
    /// Its name, as `ranpace kernel list` shows it
    name: String,
    /// Options with their new values, `key=value:key=value`
    options: String,
}

impl Set {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let text = ranpace_kernel::set(&self.name, &self.options)?;
        output::line(format!("{}: {text}", self.name))
    }
}

/// Remove a loaded control; connections that use it keep it until they end
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  ranpace kernel unload c2tcp\n  ranpace kernel unload --all")]
pub struct Unload {
    /// Its name, as `ranpace kernel list` shows it
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    /// All of them
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

impl Unload {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let names = match self.name {
            Some(name) => vec![name],
            None => ranpace_kernel::list()?.into_iter().map(|control| control.name).collect(),
        };
        for name in names {
            ranpace_kernel::unload(&name)?;
            output::line(format!("{name}: removed"))?;
        }
        Ok(())
    }
}

/// Reads `--to`.
pub fn prefix(text: Option<&str>) -> Result<Option<Prefix>, Failure> {
    Ok(text.map(str::parse).transpose()?)
}
