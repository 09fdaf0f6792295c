//! What differs between the seeds of a comparison over a link.

use ranpace_scenario::presets::Access;
use ranpace_units::Span;

use crate::{TraceLibrary, TraceLoadError};

/// The link for a seed. The first seed uses it unchanged, the others another trace of the same model, or the recording from another
/// starting point.
pub(super) fn link_of_seed(
    access: &Access,
    seed: u32,
    seeds: u32,
    traces: &mut TraceLibrary,
) -> Result<Access, TraceLoadError> {
    let mut access = access.clone();
    if let Access::Trace { down, up, .. } = &mut access {
        let (share, seeds) = (u64::from(seed - 1), u64::from(seeds));
        for name in [Some(down), up.as_mut()].into_iter().flatten() {
            let trace = traces.get(name)?;
            if seed == 1 || name.contains('@') {
                continue;
            }
            if name.starts_with("builtin:") {
                *name = format!("{name}@{seed}");
            } else {
                // Whole milliseconds, as in the recording.
                let from = Span::from_millis(trace.duration().as_millis() * share / seeds);
                *name = format!("{name}@{from}");
            }
        }
    }
    Ok(access)
}
