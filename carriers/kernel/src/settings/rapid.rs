//! The RAPID sender's: `struct rapid_settings` of `bpf/arithmetic/rapid.h`.

use ranpace_cc::Options;

use super::Settings;
use crate::error::KernelError;

/// Reads the options.
pub(crate) fn read(_: &str, options: &mut Options) -> Result<Settings, KernelError> {
    let pacing = options.flag("pacing", false).map_err(KernelError::Option)?;
    Ok(vec![("settings.pacing", u64::from(pacing))])
}
