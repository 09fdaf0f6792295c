//! SIGMA's: `struct sigma_settings` of `bpf/arithmetic/sigma.h`.

use ranpace_cc::Options;
use ranpace_cc::sigma::{Average, PMaxRule, read_params};
use ranpace_units::Span;

use super::Settings;
use crate::error::KernelError;

/// Reads the options: all of them are in the kernel.
pub(crate) fn read(_: &str, options: &mut Options) -> Result<Settings, KernelError> {
    let params = read_params(options).map_err(KernelError::Option)?;
    // Rounded down: a utilisation that is exactly as much counts as full.
    let q32 = |ratio: f64| (ratio * f64::from(2_u32).powi(32)) as u64;
    let micros = |span: Span| span.as_micros().min(u64::from(u32::MAX));
    Ok(vec![
        ("settings.efficiency", q32(params.efficiency)),
        ("settings.full", q32(params.full)),
        ("settings.sr_offset_us", micros(params.sr_offset)),
        ("settings.known_rtt_us", params.known_rtt_min.map_or(0, |rtt| micros(rtt).max(1))),
        (
            "settings.reach",
            match params.reach {
                PMaxRule::Reachable => 0,
                PMaxRule::Eq37 => 1,
                PMaxRule::OwnPlusUnused => 2,
            },
        ),
        ("settings.last_tti", u64::from(params.average == Average::LastTti)),
        ("settings.least_of_four", u64::from(params.least_of_four)),
        ("settings.memory", u64::from(params.memory)),
        ("settings.cap", u64::from(params.cap)),
        ("settings.guards", u64::from(params.guards)),
        ("settings.trials", u64::from(params.trials)),
    ])
}
