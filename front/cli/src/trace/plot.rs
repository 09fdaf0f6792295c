//! `ranpace trace plot`.

use std::path::PathBuf;

use ranpace_lab::trace_tools::{OutputFile, Picture};
use ranpace_link::LightTrace;
use ranpace_scenario::TraceSource as _;

use super::{Folder, read};
use crate::failure::Failure;
use crate::output;

/// Plot a trace: capacity over time, the distribution of its rates per second, and its gaps
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace trace plot builtin:lte --out lte.html\n  \
    ranpace trace plot builtin:umts --out umts.svg\n  \
    ranpace trace plot down-pdo --light down-delay-light-pdo --out down.html")]
pub struct Plot {
    /// A file of delivery opportunities, plain or gzipped, or the name of a built-in trace
    #[arg(value_name = "FILE|builtin:NAME")]
    file: String,
    /// What was recorded at the same time under light load, as CellReplay records it: its base delay and rate are drawn, too
    #[arg(long, value_name = "FILE")]
    light: Option<String>,
    /// File to write: a plot (.svg) or a self-contained page (.html)
    #[arg(long, value_name = "FILE.svg|FILE.html")]
    out: PathBuf,
    #[command(flatten)]
    folder: Folder,
}

impl Plot {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let is_page = match self.out.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => false,
            Some("html" | "htm") => true,
            _ => {
                let out = self.out.display();
                return Err(Failure::asked(format!("expected --out to end in .svg or .html, found {out}")));
            }
        };
        let out = OutputFile::create(&self.out)?;
        let mut traces = self.folder.traces();
        let found = read(&self.file, &mut traces)?;
        let light = self.light.as_ref().map(|name| {
            let text = traces.text(name).map_err(Failure::asked)?;
            LightTrace::parse(&text).map_err(|error| Failure::asked(format!("{name}: {error}")))
        });
        let light = light.transpose()?;
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        let picture = Picture { name, trace: &found.trace, light: light.as_ref() };
        let text = if is_page { picture.html()? } else { picture.svg()? };
        out.write(|to| to.write_all(text.as_bytes()))?;
        output::line(format!("{}: drawn from {}", self.out.display(), self.file))
    }
}
