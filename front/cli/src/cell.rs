//! `ranpace cell`: what a cell does for a user.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Subcommand;
use ranpace_lab::cell_view::{Distances, Moments, Saturation, Subject, View, ViewError};
use ranpace_lab::trace_tools::OutputFile;
use ranpace_lab::{PlotError, TraceLibrary};
use ranpace_scenario::{cells, distance_m};
use ranpace_units::Span;

use crate::failure::Failure;
use crate::{common, output};

/// Show a cell over distance and over time: SINR, CQI, MCS, block size, rate
///
/// The cell is one of `ranpace list cells`, or one of a scenario file. The figures are those of the channel alone: the user has
/// the whole band, its CQI is known at once, and every block arrives. `time --saturate` plays the cell with full buffers, and
/// `ranpace run` plays it with transport.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace cell distance lte --to 2km --step 100m\n  \
    ranpace cell distance zhong-lte-ch6 --fading 200 --out distance.html\n  \
    ranpace cell time nr --time 10s --out time.html\n  \
    ranpace cell time scenario.toml --user phone\n  \
    ranpace cell time lte --saturate 4\n\
    docs/cell.md has more.")]
pub struct Cell {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Distance(Distance),
    Time(Time),
}

/// Show path loss, SINR, CQI, MCS, block size and rate by distance
///
/// Fading and shadowing are left out. Where line of sight is a matter of chance, the more probable case is taken. The user
/// stands east of the base station.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace cell distance lte\n  \
    ranpace cell distance zhong-lte-ch6 --from 100m --to 1200m --step 100m --json\n  \
    ranpace cell distance nr --to 500m --step 10m --fading 200 --out nr.html\n  \
    ranpace cell distance scenario.toml --cell west")]
struct Distance {
    #[command(flatten)]
    chosen: Chosen,
    /// First distance, on the ground
    #[arg(long, value_name = "DISTANCE", default_value = "50m", value_parser = distance_m)]
    from: f64,
    /// Last distance
    #[arg(long, value_name = "DISTANCE", default_value = "1200m", value_parser = distance_m)]
    to: f64,
    /// Distance between two rows
    #[arg(long, value_name = "DISTANCE", default_value = "50m", value_parser = distance_m)]
    step: f64,
    /// Draw fading, shadowing and sight N times at each distance, and show the rate's mean, p10 and p90
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    fading: u32,
    #[command(flatten)]
    shown: Shown,
}

/// Show a user's SINR, CQI, MCS, block size and rate over time, or users with full buffers
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace cell time lte\n  \
    ranpace cell time zhong-lte-ch6 --position 300m --time 60s --out fading.html\n  \
    ranpace cell time scenario.toml --user phone --json\n  \
    ranpace cell time lte --saturate 4 --every 100ms --out shares.html")]
struct Time {
    #[command(flatten)]
    chosen: Chosen,
    /// User of the scenario [default: the first of the cell]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Where the user stands, instead of its own position or recording: a distance east of the base station, or X,Y or
    /// X,Y,Z in metres
    #[arg(long, value_name = "DISTANCE|X,Y", allow_hyphen_values = true)]
    position: Option<Standing>,
    /// How much time to show
    #[arg(long, value_name = "TIME", default_value = "10s")]
    time: Span,
    /// Time between samples; with --saturate, the interval over which grants are counted
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    every: Span,
    /// Keep the buffers of this many users full, down and up, and show PRBs and rate of each
    #[arg(long, value_name = "USERS")]
    saturate: Option<u32>,
    #[command(flatten)]
    shown: Shown,
}

/// Which cell.
#[derive(clap::Args)]
struct Chosen {
    /// A cell of `ranpace list cells`, or a scenario file
    #[arg(value_name = "CELL|SCENARIO")]
    what: String,
    /// Cell of the scenario [default: the user's, or the only one]
    #[arg(long = "cell", value_name = "NAME")]
    cell: Option<String>,
    /// Folder of recorded traces that the scenario names [env: RANPACE_TRACES]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
}

/// How the result is shown.
#[derive(clap::Args)]
struct Shown {
    /// Seed of every random choice [default: the scenario's, or 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also draw it: as a drawing (.svg), or as a self-contained page (.html)
    #[arg(long, value_name = "FILE.svg|FILE.html")]
    out: Option<PathBuf>,
}

/// Where a user stands.
#[derive(Clone, Copy)]
enum Standing {
    /// So many metres from the base station.
    Away(f64),
    /// Here; without a height at the height that users have.
    At(f64, f64, Option<f64>),
}

/// Farthest coordinate in metres; ours, as far as distances go.
const FARTHEST_M: f64 = 100_000.0;

impl FromStr for Standing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = |more: &str| {
            format!("expected a distance such as \"300m\", or X,Y or X,Y,Z in metres, found {text:?}{more}")
        };
        let inside = |metres: &f64| (-FARTHEST_M..=FARTHEST_M).contains(metres);
        if !text.contains(',') {
            let metres = distance_m(text).map_err(|_| expected(""))?;
            return match (0.0..=FARTHEST_M).contains(&metres) {
                true => Ok(Self::Away(metres)),
                false => Err(expected("; it is 0m to 100km")),
            };
        }
        let parts: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse::<f64>()).collect();
        let parts = parts.map_err(|_| expected(""))?;
        if !parts.iter().all(inside) {
            return Err(expected("; coordinates are up to 100 km"));
        }
        match parts[..] {
            [x, y] => Ok(Self::At(x, y, None)),
            [x, y, z] => Ok(Self::At(x, y, Some(z))),
            _ => Err(expected("")),
        }
    }
}

impl From<ViewError> for Failure {
    fn from(error: ViewError) -> Self {
        Self::asked(error)
    }
}

impl From<PlotError> for Failure {
    fn from(error: PlotError) -> Self {
        Self::ours(error)
    }
}

impl Cell {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Distance(command) => command.run(),
            What::Time(command) => command.run(),
        }
    }
}

impl Chosen {
    /// The preset of that name, or what the scenario file has.
    fn subject(&self, user: Option<&str>) -> Result<Subject, Failure> {
        let path = Path::new(&self.what);
        let is_file = || path.extension().is_some_and(|extension| extension == "toml") || path.exists();
        if cells::by_name(&self.what).is_some() || !is_file() {
            let subject = Subject::preset(&self.what)?;
            if self.cell.is_some() || user.is_some() {
                return Err(Failure::asked(format!(
                    "--cell and --user name those of a scenario file; {:?} is a cell by itself",
                    self.what
                )));
            }
            return Ok(subject);
        }
        let text = common::read_text(path)?;
        let mut traces = TraceLibrary::new(common::trace_folders(self.traces.as_ref()));
        let scenario = ranpace_scenario::parse(&text, &self.what, &mut traces)?;
        Ok(Subject::of_scenario(&scenario, self.cell.as_deref(), user)?)
    }
}

impl Distance {
    fn run(self) -> Result<(), Failure> {
        let subject = self.chosen.subject(None)?;
        let seed = self.shown.seed.unwrap_or(subject.seed);
        let Self { from: from_m, to: to_m, step: step_m, fading: draws, .. } = self;
        let distances = Distances { from_m, to_m, step_m, draws, seed };
        self.shown.show(|| distances.view(&subject))
    }
}

impl Time {
    fn run(self) -> Result<(), Failure> {
        let mut subject = self.chosen.subject(self.user.as_deref())?;
        if let Some(standing) = self.position {
            subject = match standing {
                Standing::Away(metres) => subject.standing_away(metres)?,
                Standing::At(x, y, z) => subject.standing_at(x, y, z)?,
            };
        }
        let seed = self.shown.seed.unwrap_or(subject.seed);
        let moments = Moments { time: self.time, every: self.every, seed };
        match self.saturate {
            Some(users) => self.shown.show(|| Saturation { moments, users }.view(&subject)),
            None => self.shown.show(|| moments.view(&subject)),
        }
    }
}

impl Shown {
    fn show<V: View>(&self, view: impl FnOnce() -> Result<V, ViewError>) -> Result<(), Failure> {
        show(self.json, self.out.as_deref(), view)
    }
}

/// Looks, prints and draws. A file that cannot be written is found out before the look.
pub fn show<V: View>(
    json: bool,
    out: Option<&Path>,
    view: impl FnOnce() -> Result<V, ViewError>,
) -> Result<(), Failure> {
    let out = match out {
        Some(path) => Some((path, is_page(path)?, OutputFile::create(path)?)),
        None => None,
    };
    let view = view()?;
    if json {
        output::json(&view.json())?
    } else {
        output::line(view.text())?
    }
    if let Some((path, is_page, out)) = out {
        let pictures = view.pictures()?;
        let drawn = if is_page { pictures.html(&common::command_line()) } else { pictures.svg() };
        out.write(|to| to.write_all(drawn.as_bytes()))?;
        common::say(&format!("drawing: {}", path.display()));
    }
    Ok(())
}

/// Returns whether `--out` names a page; otherwise it names a drawing.
fn is_page(path: &Path) -> Result<bool, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => Ok(false),
        Some("html" | "htm") => Ok(true),
        _ => {
            let out = path.display();
            Err(Failure::asked(format!("expected --out to end in .svg or .html, found {out}")))
        }
    }
}
