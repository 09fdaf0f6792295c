//! `ranpace validate`.

#[cfg(target_os = "linux")]
mod emulated;
#[cfg(all(target_os = "linux", feature = "rnis"))]
mod rnis;

use clap::ValueEnum;
#[cfg(target_os = "linux")]
use ranpace_lab::validate::tcp::Grid;
use ranpace_lab::validate::{self, Row};

use crate::failure::Failure;
use crate::{interrupt, output};

/// Compare models with standards, theory, another simulator and the kernel
///
/// Each row shows the expected value, the measured one, and by how much they may differ. Rows without a tolerance are printed
/// and not judged. For `radio` and `rnis` the exit status is 0 if all judged rows are ok, and 1 otherwise. For `tcp` and `kernel` it is 0 if at
/// least 90 % of them are ok, 1 if fewer are, and 99 if the machine did not keep up in more than a fifth of the emulations.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace validate radio\n  \
    ranpace validate radio --json\n  \
    ranpace validate tcp --quick          12 rows, about 3 minutes; needs root\n  \
    ranpace validate tcp                  all rows, about 40 minutes\n  \
    ranpace validate kernel --quick       10 rows, about 3 minutes; needs root\n  \
    ranpace validate kernel               all rows, about 30 minutes\n  \
    ranpace validate kernel --only \"recorded LTE\" --only \"NR cell\"\n  \
    ranpace validate rnis --quick         3 cells, half a minute\n\n\
    docs/validate.md says what is compared, and docs/fidelity.md what was found.")]
pub struct Validate {
    /// What to compare
    #[arg(value_enum)]
    what: What,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
    /// With `tcp`, `kernel` and `rnis`: play only some of the rows, once each
    #[arg(long)]
    quick: bool,
    /// With `tcp` and `kernel`: only rows with this text in their name, such as "recorded LTE"; can be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// With `tcp` and `kernel`: folder that keeps the runs; the same command resumes from it
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: std::path::PathBuf,
    /// Threads [default: one per core]; with `tcp` and `kernel`, emulations side by side [default: one more than cores, at most 3]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Folder of recorded traces, for `tcp` and `kernel` [env: RANPACE_TRACES] [default: traces]
    #[arg(long, value_name = "DIR")]
    traces: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The radio access network: block sizes, path loss, fading, block errors
    Radio,
    /// TCP beside the kernel's reno, cubic and bbr, in real time
    Tcp,
    /// The controls of `ranpace kernel` beside the simulator's, in real time
    Kernel,
    /// Bandwidth and age of the RNIS server's feed beside the simulator's, in real time
    Rnis,
}

impl Validate {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Radio if self.quick || !self.only.is_empty() => Err(Failure::asked(
                "--quick and --only go with `ranpace validate tcp` and `kernel`, --quick with `rnis`, too",
            )),
            What::Radio => self.radio(),
            #[cfg(target_os = "linux")]
            What::Tcp => emulated::run(&self, Grid::Plain),
            #[cfg(all(target_os = "linux", feature = "kernel"))]
            What::Kernel => emulated::run(&self, Grid::Controls),
            #[cfg(all(target_os = "linux", not(feature = "kernel")))]
            What::Kernel => Err(crate::kernel::not_built()),
            #[cfg(all(target_os = "linux", feature = "rnis"))]
            What::Rnis if !self.only.is_empty() => {
                Err(Failure::asked("--only goes with `ranpace validate tcp` and `kernel`"))
            }
            #[cfg(all(target_os = "linux", feature = "rnis"))]
            What::Rnis => {
                let rows = rnis::run(self.quick, &self.common())?;
                self.print(&rows)?;
                conclude(&rows)
            }
            #[cfg(all(target_os = "linux", not(feature = "rnis")))]
            What::Rnis => {
                Err(Failure::asked("this ranpace was built without its RNIS commands (feature `rnis`)"))
            }
            #[cfg(not(target_os = "linux"))]
            What::Tcp | What::Kernel | What::Rnis => Err(Failure::ours("skipped: needs Linux")),
        }
    }

    fn radio(&self) -> Result<(), Failure> {
        let checks = validate::radio();
        let found = validate::run(&checks, self.threads, interrupt::flag());
        self.print(&found.rows)?;
        if found.left > 0 {
            let (left, all) = (found.left, checks.len());
            return Err(Failure::Interrupted(format!(
                "stopped; {left} of {all} checks were not made, and the rows are those of the others"
            )));
        }
        conclude(&found.rows)
    }

    #[cfg(target_os = "linux")]
    fn common(&self) -> crate::common::Common {
        crate::common::Common { out: self.out.clone(), threads: 0, traces: self.traces.clone() }
    }

    fn print(&self, rows: &[Row]) -> Result<(), Failure> {
        if self.json {
            output::json(&rows)?;
        } else if !rows.is_empty() {
            output::line(format!("{}\n{}", validate::table(rows), validate::counts(rows)))?;
        }
        Ok(())
    }
}

/// An error if a judged row is not ok.
fn conclude(rows: &[Row]) -> Result<(), Failure> {
    let judged = rows.iter().filter(|row| row.ok.is_some()).count();
    match rows.iter().filter(|row| row.ok == Some(false)).count() {
        0 => Ok(()),
        failed => Err(Failure::ours(format!("{failed} of {judged} judged rows are not ok"))),
    }
}

#[cfg(all(target_os = "linux", feature = "kernel"))]
pub use emulated::controls;
#[cfg(target_os = "linux")]
pub use emulated::{Inside, Processes, release};
