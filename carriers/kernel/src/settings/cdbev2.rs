//! CDBEv2's: `struct cdbev2_settings` and `struct cdbev2_client_settings` of `bpf/arithmetic`.

use ranpace_cc::Options;
use ranpace_cc::cdbev2::DrainReference;
use ranpace_cc::cdbev2::filter::Compensation;
use ranpace_cc::cdbev2::machine::DrainDepth;
use ranpace_cc::cdbev2::settings::{Recovery, Settings as Params};
use ranpace_units::Span;

use super::{Settings, TICK_US, guard_off, refuse};
use crate::error::KernelError;

/// Reads the options. Each connection draws its random times from the instant at which it began (`seed` is 0).
pub(crate) fn read(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    refuse(text, options)?;
    let params = Params::parse(options).map_err(KernelError::Option)?;
    let mut more = || {
        Ok([
            ("settings.guard.off", guard_off(options)?),
            ("client.tw", options.span("tw", Span::from_millis(10))?.as_nanos()),
            ("client.every", options.number("report-every", 1.0, 1e9, 1.0)? as u64),
            ("client.literal", options.choice("est", &[("boundary", 0), ("literal", 1)])?),
        ])
    };
    let mut settings = more().map_err(KernelError::Option)?.to_vec();
    // As the enumerations of bpf/arithmetic/cdbev2.h number them.
    let deep = match params.deep {
        DrainDepth::Dual => 0,
        DrainDepth::Single => 1,
        DrainDepth::Off => 2,
    };
    let compensation = match params.compensation {
        Compensation::InFlight => 0,
        Compensation::Bdp => 1,
        Compensation::Off => 2,
    };
    let reference = match params.reference {
        DrainReference::Robust => 0,
        DrainReference::Live => 1,
        DrainReference::Pre => 2,
        DrainReference::Filtered => 3,
        DrainReference::Past => 4,
    };
    let recovery = match params.recovery {
        Recovery::Running => 0,
        Recovery::Assigned => 1,
        Recovery::Last => 2,
    };
    settings.extend([
        ("settings.interval_us", params.interval.as_micros().min(u64::from(u32::MAX))),
        ("settings.k", (params.k * 65_536.0) as u64),
        ("settings.deep_after", u64::from(params.deep_after)),
        ("settings.deep", deep),
        ("settings.compensation", compensation),
        ("settings.reference", reference),
        ("settings.recovery", recovery),
        ("settings.no_fair_quit", u64::from(!params.fair_quit)),
        ("settings.thres1_rtt", u64::from(params.thres1_rtt)),
        ("settings.tick_us", TICK_US),
    ]);
    Ok(settings)
}
