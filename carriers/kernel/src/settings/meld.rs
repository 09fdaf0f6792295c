//! MELD's: `struct meld_settings` of `bpf/arithmetic/meld.h`, and which parent it wraps.

use ranpace_cc::Options;
use ranpace_cc::meld::{Variant, read_params};

use super::Settings;
use crate::error::KernelError;

/// MELD-DE over CUBIC.
pub(crate) fn download_over_cubic(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    read(text, options, Variant::Download, 0)
}

/// MELD-ME over CUBIC.
pub(crate) fn mixed_over_cubic(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    read(text, options, Variant::Mixed, 0)
}

/// MELD-DE over Reno.
pub(crate) fn download_over_reno(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    read(text, options, Variant::Download, 1)
}

/// MELD-ME over Reno.
pub(crate) fn mixed_over_reno(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    read(text, options, Variant::Mixed, 1)
}

/// Options of the parent are the kernel's own business.
fn read(text: &str, options: &mut Options, variant: Variant, parent: u64) -> Result<Settings, KernelError> {
    let params = read_params(options, variant).map_err(KernelError::Option)?;
    if params.radio_at_loss {
        return Err(KernelError::OptionNotInKernel {
            text: text.to_owned(),
            key: "radio_at",
            why: "it keeps the newest report of a user alone (detect)",
        });
    }
    Ok(vec![
        ("parent", parent),
        ("settings.max_age", params.max_age.as_nanos()),
        ("settings.queue_factor", (params.queue_factor.0 * f64::from(1 << 20)).round() as u64),
        ("settings.packet", params.packet.get().min(u64::from(u32::MAX))),
        ("settings.mixed", u64::from(variant == Variant::Mixed)),
        ("settings.harq_processes", params.harq_processes),
        ("settings.hold_block", u64::from(params.hold_block)),
        ("settings.full_after_timeout", u64::from(params.full_after_timeout)),
        ("settings.guards", u64::from(params.guards)),
    ])
}
