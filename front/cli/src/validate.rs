//! `ranpace validate`.

use clap::ValueEnum;
use ranpace_lab::validate;

use crate::failure::Failure;
use crate::{interrupt, output};

/// Compare models with standards, theory and another simulator
///
/// Every row has what is expected, what was measured and by how much they may differ. Rows without a tolerance are printed and
/// not judged. The exit status is 0 if all judged rows are ok, 1 if one is not.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace validate radio\n  \
    ranpace validate radio --json\n\n\
    docs/validate.md says what is compared, and docs/fidelity.md what was found.")]
pub struct Validate {
    /// What to compare
    #[arg(value_enum)]
    what: What,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// The radio access network: block sizes, path loss, fading, block errors
    Radio,
}

impl Validate {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let checks = match self.what {
            What::Radio => validate::radio(),
        };
        let found = validate::run(&checks, self.threads, interrupt::flag());
        if self.json {
            output::json(&found.rows)?;
        } else if !found.rows.is_empty() {
            output::line(format!("{}\n{}", validate::table(&found.rows), validate::counts(&found.rows)))?;
        }
        if found.left > 0 {
            let (left, all) = (found.left, checks.len());
            return Err(Failure::Interrupted(format!(
                "stopped; {left} of {all} checks were not made, and the rows are those of the others"
            )));
        }
        let judged = found.rows.iter().filter(|row| row.ok.is_some()).count();
        match found.rows.iter().filter(|row| row.ok == Some(false)).count() {
            0 => Ok(()),
            failed => Err(Failure::ours(format!("{failed} of {judged} judged rows are not ok"))),
        }
    }
}
