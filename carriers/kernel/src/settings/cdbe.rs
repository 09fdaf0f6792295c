//! CDBE's: `struct cdbe_settings` and `struct cdbe_client_settings` of `bpf/arithmetic`.

use ranpace_cc::Options;
use ranpace_cc::cdbe::server::{Growth, Restart};
use ranpace_cc::cdbe::server_params;
use ranpace_units::Span;

use super::{Settings, TICK_US, guard_off, refuse};
use crate::error::KernelError;

/// Reads the options.
pub(crate) fn read(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    let mut client = || {
        Ok([
            ("client.window", options.span("window", Span::ZERO)?.as_nanos()),
            ("client.every", options.number("report-every", 1.0, 1e6, 1.0)? as u64),
            ("client.literal", options.choice("fence", &[("next_arrival", 0), ("literal", 1)])?),
            ("client.gap_unit", options.choice("gap_unit", &[("ws", 0), ("s", 1), ("ms", 2)])?),
            ("client.tick_us", TICK_US),
        ])
    };
    let mut settings = client().map_err(KernelError::Option)?.to_vec();
    settings.extend(sender(text, options)?);
    Ok(settings)
}

/// Reads the sender's options, which CQIC-S has too.
pub(super) fn sender(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    refuse(text, options)?;
    let params = server_params(options).map_err(KernelError::Option)?;
    if params.granularity != Span::from_micros(TICK_US) {
        return Err(KernelError::OptionNotInKernel {
            text: text.to_owned(),
            key: "ts_granularity",
            why: "the kernel's timestamps tick every millisecond",
        });
    }
    Ok(vec![
        ("settings.guard.off", guard_off(options).map_err(KernelError::Option)?),
        ("settings.tick_us", TICK_US),
        ("settings.startup", u64::from(params.startup)),
        ("settings.drain_cap", u64::from(params.drain_cap)),
        ("settings.min_window", params.min_window.as_nanos()),
        ("settings.growth_alpha", u64::from(params.growth == Growth::Alpha)),
        ("settings.restart_after_limit", u64::from(params.restart == Restart::AfterLimit)),
        ("settings.after_drain", u64::from(params.after_drain)),
    ])
}
