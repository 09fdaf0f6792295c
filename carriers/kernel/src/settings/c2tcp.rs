//! C2TCP's: `struct c2tcp_settings` of `bpf/arithmetic/c2tcp.h`, and which parent it wraps.

use ranpace_cc::{Options, c2tcp};
use ranpace_units::Span;

use super::{Settings, q32};
use crate::error::KernelError;

/// Over CUBIC.
pub(crate) fn over_cubic(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    read(text, options, 0)
}

/// Over Reno.
pub(crate) fn over_reno(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    read(text, options, 1)
}

/// Options of the parent are the kernel's own business.
fn read(text: &str, options: &mut Options, parent: u64) -> Result<Settings, KernelError> {
    let params = c2tcp::read_params(options).map_err(KernelError::Option)?;
    if params.deaf != Span::ZERO {
        return Err(KernelError::OptionNotInKernel {
            text: text.to_owned(),
            key: "deaf",
            why: "its CUBIC does not show when an epoch began",
        });
    }
    // C2TCP_ALGORITHM3 and its neighbours.
    let tuner = match params.tuner {
        c2tcp::Tuner::Algorithm3 => 0,
        c2tcp::Tuner::Equation16 => 1,
        c2tcp::Tuner::Memoryless => 2,
        c2tcp::Tuner::Off => 3,
    };
    Ok(vec![
        ("parent", parent),
        ("settings.alpha", q32(params.alpha)),
        ("settings.min_alpha", q32(params.min_alpha)),
        ("settings.max_alpha", q32(params.max_alpha)),
        ("settings.cycle", params.cycle.as_nanos()),
        ("settings.min_rtt_expiry", params.min_rtt_expiry.as_nanos()),
        ("settings.target_us", params.target.as_micros().min(u64::from(u32::MAX))),
        ("settings.tuner", tuner),
        ("settings.avoidance_after_bad", u64::from(params.avoidance_after_bad)),
        ("settings.integer_boost", u64::from(params.integer_boost)),
        ("settings.strict", u64::from(params.strict)),
        ("settings.whole_ms", u64::from(params.whole_ms)),
        ("settings.kernel_compat", u64::from(params.kernel_compat)),
        ("settings.pace", u64::from(params.pace)),
    ])
}
