//! DCIC's and CQIC-S's: `struct dcic_settings`, `struct cdbe_settings` and `struct dcic_client_settings` of `bpf/arithmetic`.

use ranpace_cc::{OptionError, Options};

use super::{Settings, cdbe, guard_off, refuse};
use crate::error::KernelError;

/// Reads DCIC's options.
pub(crate) fn dcic(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    refuse(text, options)?;
    let mut settings = shared(options).map_err(KernelError::Option)?;
    settings.push(("settings.guard.off", guard_off(options).map_err(KernelError::Option)?));
    Ok(settings)
}

/// Reads CQIC-S's options.
pub(crate) fn cqic_s(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    let mut settings = shared(options).map_err(KernelError::Option)?;
    settings.extend(cdbe::sender(text, options)?);
    Ok(settings)
}

/// What both have: a sender that counts packets with their headers, as the radio link does, and the modem's receiver.
fn shared(options: &mut Options) -> Result<Settings, OptionError> {
    // As `enum unit` of bpf/arithmetic/pipe.h and `enum dcic_estimator` of dcic_client.h number them.
    Ok(vec![
        ("settings.unit", options.choice("pkt", &[("headers", 1), ("segment", 0)])?),
        ("client.estimator", options.choice("estimator", &[("window", 0), ("per_dci", 1), ("gap", 2)])?),
        ("client.every", options.number("report-every", 1.0, 1e6, 1.0)? as u64),
    ])
}
