//! What options become in the settings of the programs: variables of the section `.data.settings`, by name.

pub(crate) mod c2tcp;
pub(crate) mod cdbe;
pub(crate) mod cdbev2;
pub(crate) mod dcic;
pub(crate) mod mdcc;
pub(crate) mod meld;
pub(crate) mod rapid;
pub(crate) mod sigma;

use ranpace_cc::bw_report::Format;
use ranpace_cc::{OptionError, Options};

use crate::error::KernelError;

/// Variables and their values; members of a structure as `variable.member`.
pub(crate) type Settings = Vec<(&'static str, u64)>;

/// The kernel's tick of timestamps (RFC 7323), microseconds.
const TICK_US: u64 = 1000;

/// A ratio in units of 2^-32.
fn q32(ratio: f64) -> u64 {
    (ratio * f64::from(2_u32).powi(32)).round() as u64
}

/// Whether the guard is off.
fn guard_off(options: &mut Options) -> Result<u64, OptionError> {
    Ok(u64::from(!options.flag("guard", true)?))
}

/// Refuses what needs one clock at both ends, and other formats of the report than that of an experiment.
fn refuse(text: &str, options: &mut Options) -> Result<(), KernelError> {
    let refuse = |key, why| Err(KernelError::OptionNotInKernel { text: text.to_owned(), key, why });
    if options.choice("dsdl", &[("pinned", false), ("true", true)]).map_err(KernelError::Option)? {
        return refuse("dsdl", "the clocks of two hosts do not agree");
    }
    let format = options.value("report", Format::NAMES, Format::Experiment).map_err(KernelError::Option)?;
    if format != Format::Experiment {
        return refuse(
            "report",
            "real segments carry an experiment's option alone (exp); kind 32 is reserved",
        );
    }
    Ok(())
}
